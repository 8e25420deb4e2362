/*
 * Reading and writing the delivery list. Format: docs/formats/manifest.md.
 */
#include "collect/manifest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "capture/summary.h"
#include "io/json.h"

void np_manifest_init(struct np_manifest *self)
{
	*self = (struct np_manifest){.source = "", .arm = ""};
	np_arena_init(&self->arena);
}

void np_manifest_release(struct np_manifest *self)
{
	np_vec_release(&self->files);
	np_arena_release(&self->arena);
}

bool np_is_safe_path(np_str path)
{
	enum { MAX_BYTES = 4000 };
	if (path.len == 0 || path.len > MAX_BYTES || path.ptr[0] == '/' ||
	    memchr(path.ptr, '\0', path.len))
		return false;
	while (path.len) {
		bool last = !memchr(path.ptr, '/', path.len);
		np_str part = np_str_cut(path, '/', &path);
		if (part.len == 0 || np_str_is(part, ".") || np_str_is(part, "..") ||
		    (!last && path.len == 0))
			return false;
	}
	return true;
}

bool np_manifest_put(struct np_manifest *self, const struct np_manifest_file *file)
{
	struct np_manifest_file copy = *file;
	copy.path = np_arena_cstr(&self->arena, np_str_of(file->path));
	return copy.path && np_vec_push(&self->files, copy);
}

/* By path; while unite() runs mtime_ns is the order of arrival, and the latest comes first. */
static int by_path(const void *a, const void *b)
{
	const struct np_manifest_file *x = a, *y = b;
	int order = strcmp(x->path, y->path);
	return order ? order : (x->mtime_ns < y->mtime_ns) - (x->mtime_ns > y->mtime_ns);
}

/* Sort; of several entries of one path keep the one that was put last. */
static void unite(struct np_manifest *self)
{
	struct np_manifest_file *v = self->files.v;
	size_t n = self->files.n, kept = 0;
	/* the order of arrival, for a moment where qsort (which is not stable) can see it */
	np_ns *mtimes = np_alloc((n ? n : 1) * sizeof *mtimes);
	if (!mtimes)
		return; /* unsorted is still right */
	for (size_t i = 0; i < n; i++) {
		mtimes[i] = v[i].mtime_ns;
		v[i].mtime_ns = (np_ns)i;
	}
	if (n)
		qsort(v, n, sizeof *v, by_path);
	for (size_t i = 0; i < n; i++) {
		v[i].mtime_ns = mtimes[v[i].mtime_ns];
		if (kept && strcmp(v[kept - 1].path, v[i].path) == 0)
			continue;
		v[kept++] = v[i];
	}
	self->files.n = kept;
	np_free(mtimes);
}

/* ── reading ── */

static enum np_status read_file(struct np_manifest *self, const char *where,
                                const struct np_jval *value, struct np_err *err)
{
	struct np_manifest_file file = {0};
	np_str path = np_jstr(np_jget(value, "path")), sha256 = np_jstr(np_jget(value, "sha256"));
	np_str md5 = np_jstr(np_jget(value, "md5"));
	int64_t size = -1;
	if (!np_is_safe_path(path))
		return np_err_set(err, NP_E_FORMAT, where,
		                  "a path that leaves the directory, or none: '%.*s'",
		                  (int)(path.len < 200 ? path.len : 200), path.ptr ? path.ptr : "");
	if (!np_ji64(np_jget(value, "size"), &size) || size < 0 || !np_is_sha256(sha256) ||
	    (md5.len && md5.len != NP_MD5_HEX))
		return np_err_set(err, NP_E_FORMAT, where, "no size or no sha256 of '%.*s'",
		                  (int)(path.len < 200 ? path.len : 200), path.ptr);
	(void)np_ji64(np_jget(value, "mtime_ns"), &file.mtime_ns);
	file.size_bytes = (uint64_t)size;
	memcpy(file.digests.sha256, sha256.ptr, NP_SHA256_HEX);
	if (md5.len)
		memcpy(file.digests.md5, md5.ptr, NP_MD5_HEX);
	file.path = np_arena_cstr(&self->arena, path);
	if (!file.path || !np_vec_push(&self->files, file))
		return np_err_nomem(err);
	return NP_OK;
}

enum np_status np_manifest_read(struct np_manifest *self, const char *dir, struct np_err *err)
{
	const struct np_jval *root = NULL;
	const char *path = np_path_join(&self->arena, dir, NP_MANIFEST_NAME);
	int64_t version = 0;
	if (!path)
		return np_err_nomem(err);
	NP_TRY(np_json_parse_file(&self->arena, path, NP_JSON_STRICT, &root, NULL, err));
	const struct np_jval *files = np_jget(root, "files");
	if (!np_ji64(np_jget(root, "version"), &version) || version != 1 || !files ||
	    files->type != NP_J_ARRAY)
		return np_err_set(err, NP_E_FORMAT, path, "no manifest of version 1");
	(void)np_ji64(np_jget(root, "created_ns"), &self->created_ns);
	self->source = np_arena_cstr(&self->arena, np_jstr(np_jget(root, "source")));
	self->arm = np_arena_cstr(&self->arena, np_jstr(np_jget(root, "arm")));
	if (!self->source || !self->arm)
		return np_err_nomem(err);
	for (size_t i = 0; i < files->n; i++)
		NP_TRY(read_file(self, path, &files->child[i], err));
	unite(self);
	return NP_OK;
}

/* ── writing ── */

static void add_files(struct np_buf *out, const struct np_manifest *self)
{
	np_buf_add_cstr(out, " \"files\": [");
	for (size_t i = 0; i < self->files.n; i++) {
		const struct np_manifest_file *file = &self->files.v[i];
		np_buf_add_cstr(out, i ? ",\n  {\"path\": " : "\n  {\"path\": ");
		np_json_quote(out, np_str_of(file->path));
		np_buf_printf(out, ", \"size\": %llu, \"sha256\": \"%s\", \"md5\": ",
		              (unsigned long long)file->size_bytes, file->digests.sha256);
		if (*file->digests.md5)
			np_buf_printf(out, "\"%s\"", file->digests.md5);
		else
			np_buf_add_cstr(out, "null");
		np_buf_printf(out, ", \"mtime_ns\": %lld}", (long long)file->mtime_ns);
	}
	np_buf_add_cstr(out, "\n ]");
}

static void add_steps(struct np_buf *out, const struct np_summary *summary)
{
	np_buf_add_cstr(out, ", \"steps\": [");
	for (size_t i = 0; i < summary->n_steps; i++)
		np_buf_printf(out, "%s%lld", i ? ", " : "", (long long)summary->steps[i]);
	np_buf_add_cstr(out, "]");
}

static void add_capture(struct np_buf *out, const char *dir, const struct np_capture *capture,
                        const struct np_summary *summary)
{
	char kind[64];
	size_t skip = strlen(dir);
	const char *path = capture->path;
	if (strncmp(path, dir, skip) == 0)
		for (path += skip; *path == '/'; path++)
			continue;
	np_capture_kind(capture, kind, sizeof kind);
	np_buf_add_cstr(out, "{\"path\": ");
	np_json_quote(out, np_str_of(path));
	np_buf_printf(out, ", \"kind\": \"%s\", \"rank\": ", kind);
	if (capture->rank == NP_NO_I64)
		np_buf_add_cstr(out, "null");
	else
		np_buf_printf(out, "%lld", (long long)capture->rank);
	np_buf_add_cstr(out, ", \"level\": ");
	np_json_quote(out, np_str_of(capture->config.level));
	if (summary->status == NP_OK) {
		add_steps(out, summary);
		np_buf_printf(out, ", \"kernels\": %zu", summary->kernels);
		if (summary->first_ns != NP_NO_I64)
			np_buf_printf(out, ", \"span_ns\": %lld",
			              (long long)(summary->last_ns - summary->first_ns));
	}
	np_buf_add_char(out, '}');
}

/* What the files are of: rank, steps, span of each capture. A tree without any has none. */
static enum np_status add_captures(struct np_buf *out, const char *dir, struct np_err *err)
{
	struct np_captures *all = NULL;
	struct np_summary *summaries = NULL;
	NP_TRY(np_discover(dir, &all, err));
	enum np_status status = np_summarize(all, NP_STEPS | NP_KERNELS, 0, NULL, &summaries, err);
	np_buf_add_cstr(out, ",\n \"captures\": [");
	bool first = true;
	for (size_t i = 0; status == NP_OK && i < all->captures.n; i++) {
		if (all->captures.v[i]->framework == NP_FW_CLUSTER)
			continue;
		np_buf_add_cstr(out, first ? "\n  " : ",\n  ");
		add_capture(out, dir, all->captures.v[i], &summaries[i]);
		first = false;
	}
	np_buf_add_cstr(out, first ? "]" : "\n ]");
	np_summaries_free(summaries, status == NP_OK ? all->captures.n : 0);
	np_captures_free(all);
	return status;
}

static enum np_status render(struct np_manifest *self, const char *dir, struct np_buf *out,
                             struct np_err *err)
{
	np_buf_printf(out,
	              "{\"version\": 1, \"tool\": \"npuprof %s\", \"source\": ", NPUPROF_VERSION);
	np_json_quote(out, np_str_of(self->source));
	np_buf_printf(out, ",\n \"created_ns\": %lld, \"arm\": ", (long long)self->created_ns);
	if (*self->arm)
		np_json_quote(out, np_str_of(self->arm));
	else
		np_buf_add_cstr(out, "null");
	np_buf_add_cstr(out, ",\n");
	add_files(out, self);
	NP_TRY(add_captures(out, dir, err));
	np_buf_add_cstr(out, "}\n");
	return out->failed ? np_err_nomem(err) : NP_OK;
}

enum np_status np_manifest_write(struct np_manifest *self, const char *dir, struct np_err *err)
{
	struct np_buf text = {0};
	struct np_outfile file;
	const char *path = np_path_join(&self->arena, dir, NP_MANIFEST_NAME);
	if (!path)
		return np_err_nomem(err);
	unite(self);
	enum np_status status = render(self, dir, &text, err);
	if (status == NP_OK)
		status = np_outfile_begin(&file, path, err);
	if (status == NP_OK) {
		(void)fwrite(text.ptr, 1, text.len, file.file);
		status = np_outfile_commit(&file, err);
	}
	np_buf_release(&text);
	return status;
}
