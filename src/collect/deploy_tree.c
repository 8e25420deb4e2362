#include "collect/deploy_tree.h"

#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/pool.h"

enum { MAX_DEPTH = 64, MAX_ENTRIES = 1000000 };
#define MAX_FILE_BYTES ((size_t)4 << 30)

const char *const np_deploy_excludes[] = {".git",       "__pycache__", "dist",
                                          "*.egg-info", "_build",      ".pytest_cache",
                                          ".coverage",  "build/",      NULL};

/* ── the walk ── */

struct walk {
	struct np_deploy_tree *tree;
	const struct np_deploy_choice *choice;
};

static bool matches(const char *pattern, const char *path, bool is_dir)
{
	char copy[256];
	size_t len = strlen(pattern);
	if (len == 0 || len >= sizeof copy)
		return false;
	memcpy(copy, pattern, len + 1);
	if (copy[len - 1] == '/') {
		if (!is_dir)
			return false;
		copy[len - 1] = '\0';
	}
	return fnmatch(copy, strchr(copy, '/') ? path : np_path_base(path).ptr, FNM_PATHNAME) == 0;
}

static bool is_excluded(const struct walk *walk, const char *path, bool is_dir)
{
	for (size_t i = 0; i < walk->choice->n_excludes; i++)
		if (matches(walk->choice->excludes[i], path, is_dir))
			return true;
	return false;
}

/* Does a link stay in the tree? Counted by components, without looking at the disk. */
static bool stays_inside(const char *path, const char *target)
{
	int depth = 0;
	np_str rest = np_str_of(path), part;
	while (memchr(rest.ptr, '/', rest.len)) {
		(void)np_str_cut(rest, '/', &rest);
		depth++;
	}
	if (target[0] == '/')
		return false;
	rest = np_str_of(target);
	while (rest.len && depth >= 0) {
		part = np_str_cut(rest, '/', &rest);
		if (np_str_is(part, ".."))
			depth--;
		else if (part.len && !np_str_is(part, "."))
			depth++;
	}
	return depth >= 0;
}

static enum np_status leave_out(struct walk *walk, const char *path, struct np_err *err)
{
	return np_vec_push(&walk->tree->left_out, path) ? NP_OK : np_err_nomem(err);
}

static enum np_status add_link(struct walk *walk, const char *full, const char *path,
                               struct np_err *err)
{
	char target[PATH_MAX];
	ssize_t len = readlink(full, target, sizeof target - 1);
	if (len < 0)
		return np_err_set(err, NP_E_IO, full, "%s", strerror(errno));
	target[len] = '\0';
	if (!stays_inside(path, target))
		return leave_out(walk, path, err);
	struct np_deploy_entry entry = {.path = path, .mode = 0777};
	entry.target = np_arena_cstr(&walk->tree->arena, np_str_of(target));
	return entry.target && np_vec_push(&walk->tree->v, entry) ? NP_OK : np_err_nomem(err);
}

static enum np_status add_file(struct walk *walk, const char *full, const char *path,
                               struct np_err *err)
{
	struct np_file_stat stat;
	NP_TRY(np_file_stat(full, false, &stat, err));
	if (walk->tree->v.n >= MAX_ENTRIES)
		return np_err_set(err, NP_E_LIMIT, walk->tree->root, "more than %d files",
		                  MAX_ENTRIES);
	struct np_deploy_entry entry = {
		.path = path, .size_bytes = stat.size_bytes, .mode = stat.mode & 0777};
	return np_vec_push(&walk->tree->v, entry) ? NP_OK : np_err_nomem(err);
}

static enum np_status walk_dir(struct walk *walk, const char *below, unsigned depth,
                               struct np_err *err)
{
	struct np_deploy_tree *tree = walk->tree;
	struct np_dir list;
	const char *dir = *below ? np_path_join(&tree->arena, tree->root, below) : tree->root;
	if (!dir)
		return np_err_nomem(err);
	if (depth > MAX_DEPTH)
		return np_err_set(err, NP_E_LIMIT, dir, "too deep");
	NP_TRY(np_dir_list(&tree->arena, dir, &list, err));
	for (size_t i = 0; i < list.n; i++) {
		const struct np_dir_entry *entry = &list.v[i];
		const char *path =
			*below ? np_path_join(&tree->arena, below, entry->name) : entry->name;
		const char *full = path ? np_path_join(&tree->arena, tree->root, path) : NULL;
		if (!full)
			return np_err_nomem(err);
		if (is_excluded(walk, path, entry->kind == NP_FILE_DIR)) {
			tree->n_excluded++;
			continue;
		}
		if (entry->kind == NP_FILE_DIR)
			NP_TRY(walk_dir(walk, path, depth + 1, err));
		else if (entry->kind == NP_FILE_LINK)
			NP_TRY(add_link(walk, full, path, err));
		else if (entry->kind == NP_FILE_REG)
			NP_TRY(add_file(walk, full, path, err));
		else
			NP_TRY(leave_out(walk, path, err));
	}
	return NP_OK;
}

/* ── contents ── */

static bool is_text(const char *path)
{
	static const char *const ends[] = {".py", ".sh",   ".json", ".txt",
	                                   ".md", ".yaml", ".yml",  ".cfg"};
	np_str name = np_str_of(path);
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
		if (np_str_ends(name, np_str_of(ends[i])))
			return true;
	return false;
}

bool np_drop_cr(struct np_buf *text)
{
	size_t kept = 0;
	for (size_t i = 0; i < text->len; i++)
		if (text->ptr[i] != '\r' || i + 1 == text->len || text->ptr[i + 1] != '\n')
			text->ptr[kept++] = text->ptr[i];
	bool found = kept < text->len;
	text->len = kept;
	return found;
}

static enum np_status read_file(const char *path, struct np_buf *out, struct np_err *err)
{
	struct np_arena arena;
	np_str text = {0};
	np_arena_init(&arena);
	enum np_status status = np_file_slurp(&arena, path, MAX_FILE_BYTES, &text, err);
	out->max_bytes = MAX_FILE_BYTES + 1;
	if (status == NP_OK)
		np_buf_add_str(out, text);
	np_arena_release(&arena);
	return status == NP_OK && out->failed ? np_err_nomem(err) : status;
}

static const char *full_path(struct np_arena *arena, const struct np_deploy_tree *self,
                             const struct np_deploy_entry *entry)
{
	return np_path_join(arena, self->root, entry->path);
}

enum np_status np_deploy_content(const struct np_deploy_tree *self,
                                 const struct np_deploy_entry *entry, struct np_buf *out,
                                 struct np_err *err)
{
	struct np_arena arena;
	np_arena_init(&arena);
	const char *path = full_path(&arena, self, entry);
	enum np_status status = path ? read_file(path, out, err) : np_err_nomem(err);
	if (status == NP_OK && entry->converted)
		(void)np_drop_cr(out);
	np_arena_release(&arena);
	return status;
}

struct digest_work {
	struct np_deploy_tree *tree;
	bool keep_crlf;
	struct np_err *errs; /* per entry */
};

/* Text is read whole, to see its line ends; the rest streams. */
static enum np_status digest(struct digest_work *work, struct np_deploy_entry *entry,
                             const char *path, struct np_err *err)
{
	struct np_buf text = {0};
	if (work->keep_crlf || !is_text(entry->path))
		return np_hash_file(path, false, &entry->digests, &entry->size_bytes, err);
	enum np_status status = read_file(path, &text, err);
	struct np_hash *hash = np_hash_new(false);
	if (status == NP_OK) {
		entry->converted = np_drop_cr(&text);
		entry->size_bytes = text.len;
		status = hash && np_hash_add(hash, text.ptr, text.len) &&
		                         np_hash_end(hash, &entry->digests)
		                 ? NP_OK
		                 : np_err_nomem(err);
	}
	np_hash_free(hash);
	np_buf_release(&text);
	return status;
}

static void digest_one(void *arg, size_t i)
{
	struct digest_work *work = arg;
	struct np_deploy_entry *entry = &work->tree->v.v[i];
	struct np_arena arena;
	if (entry->target)
		return;
	np_arena_init(&arena);
	const char *path = full_path(&arena, work->tree, entry);
	if (path)
		(void)digest(work, entry, path, &work->errs[i]);
	else
		(void)np_err_nomem(&work->errs[i]);
	np_arena_release(&arena);
}

static enum np_status digest_all(struct np_deploy_tree *self, const struct np_deploy_choice *choice,
                                 struct np_err *err)
{
	enum np_status status = NP_OK;
	struct digest_work work = {self, choice->keep_crlf,
	                           np_calloc(self->v.n + 1, sizeof *work.errs)};
	if (!work.errs)
		return np_err_nomem(err);
	np_pool_run(choice->threads, self->v.n, digest_one, &work);
	for (size_t i = 0; i < self->v.n && status == NP_OK; i++) {
		status = work.errs[i].code;
		if (status != NP_OK && err)
			*err = work.errs[i];
	}
	np_free(work.errs);
	return status;
}

static int by_path(const void *a, const void *b)
{
	const struct np_deploy_entry *x = a, *y = b;
	return strcmp(x->path, y->path);
}

enum np_status np_deploy_tree_read(struct np_deploy_tree *self, const char *root,
                                   const struct np_deploy_choice *choice, struct np_err *err)
{
	struct walk walk = {self, choice};
	struct np_file_stat stat;
	*self = (struct np_deploy_tree){0};
	np_arena_init(&self->arena);
	NP_TRY(np_file_stat(root, true, &stat, err));
	if (stat.kind == NP_FILE_NONE)
		return np_err_set(err, NP_E_NOTFOUND, root, "no such file or directory");
	if (stat.kind == NP_FILE_DIR) {
		self->root = np_arena_cstr(&self->arena, np_str_of(root));
		NP_TRY(self->root ? walk_dir(&walk, "", 0, err) : np_err_nomem(err));
	} else {
		np_str name = np_path_base(root);
		size_t before = (size_t)(name.ptr - root);
		self->root = before ? np_arena_cstr(&self->arena, (np_str){root, before}) : ".";
		const char *path = np_arena_cstr(&self->arena, name);
		NP_TRY(self->root && path ? add_file(&walk, root, path, err) : np_err_nomem(err));
	}
	if (self->v.n)
		qsort(self->v.v, self->v.n, sizeof *self->v.v, by_path);
	return digest_all(self, choice, err);
}

void np_deploy_tree_release(struct np_deploy_tree *self)
{
	np_vec_release(&self->v);
	np_vec_release(&self->left_out);
	np_arena_release(&self->arena);
}
