/*
 * The files of one capture.
 *
 *   X_ascend_pt/            profiler_info, metadata
 *     ASCEND_PROFILER_OUTPUT/   deliverables          ─┐ both kinds of names are
 *     PROF_…/mindstudio_profiler_output/ deliverables ─┘ the same product (R40)
 *     PROF_…/{host,device_N}/   raw
 *     FRAMEWORK/                raw
 *     logs/
 *
 * What torch_npu exported wins over what msprof left below PROF_…: it is the
 * same data with more joined to it.
 */
#include "capture/collect.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/discover.h"

static const char *why_no_file(enum np_file_kind kind)
{
	switch (kind) {
	case NP_FILE_NONE:
		return "a symbolic link that leads nowhere";
	case NP_FILE_DIR:
		return "a directory, where a file belongs";
	default:
		return "neither a file nor a link to one (a pipe, socket or device)";
	}
}

static void add_file(struct np_captures *all, struct np_capture *capture, const char *path,
                     const struct np_name *name)
{
	struct np_file_stat st = {.kind = NP_FILE_NONE};
	struct np_err err = {0};
	if (np_file_stat(path, true, &st, &err) != NP_OK || st.kind != NP_FILE_REG) {
		if (name->role != NP_ROLE_NONE && st.kind != NP_FILE_DIR)
			np_leave_out(all, path, "a link that leads nowhere, or no regular file");
		if (name->role != NP_ROLE_NONE && name->role != NP_ROLE_OTHER_CSV)
			np_problem_add(all, capture, "UNREADABLE", path, "%s",
			               err.code != NP_OK ? err.msg : why_no_file(st.kind));
		return;
	}
	all->files++;
	all->bytes += st.size_bytes;
	if (name->role == NP_ROLE_NONE)
		return;
	struct np_file file = {.role = name->role,
	                       .path = path,
	                       .size_bytes = st.size_bytes,
	                       .mtime_ns = st.mtime_ns,
	                       .slice = name->slice,
	                       .readable = access(path, R_OK) == 0};
	file.timestamp = np_arena_cstr(&all->arena, name->timestamp);
	if (!file.readable)
		np_problem_add(all, capture, "UNREADABLE", path, "no permission to read it");
	all->out_of_memory |= !file.timestamp || !np_vec_push(&capture->files, file);
}

/* All direct files of a directory; sub-directories are the caller's. */
static bool add_dir(struct np_captures *all, struct np_capture *capture, const char *path,
                    struct np_dir *listing)
{
	struct np_err err;
	if (np_dir_list(&all->arena, path, listing, &err) != NP_OK) {
		all->out_of_memory |= err.code == NP_E_NOMEM;
		if (err.code != NP_E_NOTFOUND)
			np_problem_add(all, capture, "UNREADABLE", path, "%s", err.msg);
		return false;
	}
	for (size_t i = 0; i < listing->n; i++) {
		const struct np_dir_entry *entry = &listing->v[i];
		struct np_name name = np_name_parse(np_str_of(entry->name));
		/* any directory may end in .log or .csv; one named kernel_details.csv may not */
		if (entry->kind == NP_FILE_DIR &&
		    (name.role == NP_ROLE_NONE || name.role == NP_ROLE_LOG ||
		     name.role == NP_ROLE_OTHER_CSV))
			continue;
		const char *file = np_path_join(&all->arena, path, entry->name);
		all->out_of_memory |= !file;
		if (file)
			add_file(all, capture, file, &name);
		if (strcmp(entry->name, "analyse.done") == 0)
			capture->analyse_done = true;
	}
	return true;
}

/* Bytes of a raw data directory; only direct files, as the collector lays them. */
static uint64_t raw_bytes(struct np_captures *all, const char *path)
{
	struct np_dir dir;
	uint64_t bytes = 0;
	struct np_err err;
	if (np_dir_list(&all->arena, path, &dir, &err) != NP_OK) {
		all->out_of_memory |= err.code == NP_E_NOMEM;
		return 0;
	}
	for (size_t i = 0; i < dir.n; i++) {
		const char *file = np_path_join(&all->arena, path, dir.v[i].name);
		struct np_file_stat st;
		all->out_of_memory |= !file;
		if (!file || dir.v[i].kind != NP_FILE_REG ||
		    np_file_stat(file, true, &st, NULL) != NP_OK)
			continue;
		bytes += st.size_bytes;
		all->files++;
	}
	all->bytes += bytes;
	return bytes;
}

static void collect_prof_part(struct np_captures *all, struct np_capture *capture, const char *path,
                              const char *name)
{
	struct np_dir listing;
	if (strcmp(name, NP_MSPROF_OUTPUT_DIR) == 0 || strcmp(name, "analyze") == 0) {
		(void)add_dir(all, capture, path, &listing);
		if (!capture->output && strcmp(name, NP_MSPROF_OUTPUT_DIR) == 0)
			capture->output = path;
		return;
	}
	if (strcmp(name, "host") != 0 && strncmp(name, "device_", 7) != 0)
		return;
	(void)add_dir(all, capture, path, &listing);
	const char *data = np_path_join(&all->arena, path, "data");
	all->out_of_memory |= !data;
	uint64_t bytes = data ? raw_bytes(all, data) : 0;
	capture->raw_bytes += bytes;
	if (bytes)
		capture->formats |= NP_HAS_RAW;
	int64_t device = 0;
	if (name[0] == 'd' && capture->device == NP_NO_I64 &&
	    np_str_to_i64(np_str_of(name + 7), &device))
		capture->device = device;
}

static void collect_prof(struct np_captures *all, struct np_capture *capture, const char *path)
{
	struct np_dir listing;
	all->out_of_memory |= !np_vec_push(&capture->prof_dirs, path);
	if (!add_dir(all, capture, path, &listing))
		return;
	for (size_t i = 0; i < listing.n; i++) {
		if (listing.v[i].kind != NP_FILE_DIR)
			continue;
		const char *child = np_path_join(&all->arena, path, listing.v[i].name);
		all->out_of_memory |= !child;
		if (child)
			collect_prof_part(all, capture, child, listing.v[i].name);
	}
}

static void collect_part(struct np_captures *all, struct np_capture *capture, const char *path,
                         const char *name)
{
	struct np_dir listing;
	if (strcmp(name, NP_OUTPUT_DIR) == 0) {
		capture->output = path;
		(void)add_dir(all, capture, path, &listing);
	} else if (strcmp(name, NP_FRAMEWORK_DIR) == 0) {
		capture->has_framework_dir = true;
		uint64_t bytes = raw_bytes(all, path);
		capture->raw_bytes += bytes;
		if (bytes)
			capture->formats |= NP_HAS_RAW;
	} else if (strcmp(name, "logs") == 0) {
		(void)add_dir(all, capture, path, &listing);
	} else if (strncmp(name, "PROF_", 5) == 0) {
		collect_prof(all, capture, path);
	} else {
		np_leave_out(all, path, "no part of a capture, inside of one");
	}
}

/* ── which of several ── */

static bool below(const char *path, const char *dir)
{
	size_t len = dir ? strlen(dir) : 0;
	return len && strncmp(path, dir, len) == 0 && path[len] == '/';
}

/* Keep those for which keep() is true, in their order; it tells why not. */
static void keep_files(struct np_captures *all, struct np_capture *capture,
                       bool (*keep)(struct np_captures *all, struct np_capture *capture,
                                    const struct np_file *file, void *ctx),
                       void *ctx)
{
	size_t n = 0;
	for (size_t i = 0; i < capture->files.n; i++)
		if (keep(all, capture, &capture->files.v[i], ctx))
			capture->files.v[n++] = capture->files.v[i];
	capture->files.n = n;
}

/* What torch_npu makes of an msprof deliverable (R40); NONE: nothing takes its place. */
static enum np_role torch_name_of(enum np_role role)
{
	switch (role) {
	case NP_ROLE_OP_SUMMARY:
	case NP_ROLE_TASK_TIME:
		return NP_ROLE_KERNELS;
	case NP_ROLE_MSPROF_DB:
		return NP_ROLE_PROFILER_DB;
	case NP_ROLE_STEP_TRACE_MSPROF:
		return NP_ROLE_STEP_TRACE;
	case NP_ROLE_INFO_JSON:
	case NP_ROLE_SAMPLE_JSON:
		return NP_ROLE_NONE;
	default:
		return role;
	}
}

/* Is it a file of msprof below PROF_… whose data torch_npu exported as well? File by
 * file, since an export that failed half-way leaves the rest to msprof's. */
static bool is_not_redundant(struct np_captures *all, struct np_capture *capture,
                             const struct np_file *file, void *ctx)
{
	const bool *exported = ctx; /* by role, in torch_npu's output */
	enum np_role own = torch_name_of(file->role);
	bool msprof = false;
	for (size_t k = 0; k < capture->prof_dirs.n && !msprof; k++)
		msprof = below(file->path, capture->prof_dirs.v[k]);
	if (!msprof || own == NP_ROLE_NONE || (!exported[NP_ROLE_PROFILER_DB] && !exported[own]))
		return true;
	np_leave_out(all, file->path, "torch_npu exported the same data");
	return false;
}

static void prefer_torch_output(struct np_captures *all, struct np_capture *capture)
{
	bool exported[NP_N_ROLES] = {false};
	if (!capture->output || !np_str_is(np_path_base(capture->output), NP_OUTPUT_DIR))
		return;
	for (size_t i = 0; i < capture->files.n; i++)
		if (below(capture->files.v[i].path, capture->output))
			exported[capture->files.v[i].role] = true;
	keep_files(all, capture, is_not_redundant, exported);
}

static bool is_newest(struct np_captures *all, struct np_capture *capture,
                      const struct np_file *file, void *ctx)
{
	const char *newest = ((const char **)ctx)[file->role];
	if (file->role == NP_ROLE_LOG || !*file->timestamp || strcmp(newest, file->timestamp) == 0)
		return true;
	np_problem_add(all, capture, "SEVERAL_EXPORTS", file->path,
	               "left out, an export of %s is newer", newest);
	np_leave_out(all, file->path, "an older export of the same data");
	return false;
}

/* A second export leaves a second time stamp: only the newest of a role counts. */
static void keep_newest_stamp(struct np_captures *all, struct np_capture *capture)
{
	const char *newest[NP_N_ROLES] = {NULL};
	for (size_t i = 0; i < capture->files.n; i++) {
		const struct np_file *file = &capture->files.v[i];
		if (!newest[file->role] || strcmp(file->timestamp, newest[file->role]) > 0)
			newest[file->role] = file->timestamp;
	}
	keep_files(all, capture, is_newest, newest);
}

/* Tables that one export writes once: a second one beside it is somebody's copy, and
 * reading both would count every kernel twice. The shortest name is the exporter's. */
static bool is_single(enum np_role role)
{
	return role == NP_ROLE_KERNELS || role == NP_ROLE_OP_SUMMARY || role == NP_ROLE_TRACE ||
	       role == NP_ROLE_PROFILER_DB || role == NP_ROLE_MSPROF_DB ||
	       role == NP_ROLE_STEP_TRACE || role == NP_ROLE_COMM_JSON ||
	       role == NP_ROLE_COMM_MATRIX;
}

/* The better one of two files of one kind: the shorter name, then the first. */
static bool is_better(const struct np_file *file, const struct np_file *other)
{
	size_t len = strlen(file->path), other_len = strlen(other->path);
	return len != other_len ? len < other_len : strcmp(file->path, other->path) < 0;
}

/* The files are sorted, so those of one role and slice stand together. */
static void keep_one_of_each(struct np_captures *all, struct np_capture *capture)
{
	struct np_file *files = capture->files.v;
	size_t n = 0, end;
	for (size_t i = 0; i < capture->files.n; i = end) {
		struct np_file best = files[i];
		for (end = i + 1; end < capture->files.n && files[end].role == best.role &&
		                  files[end].slice == best.slice;
		     end++)
			if (is_better(&files[end], &best))
				best = files[end];
		for (size_t k = i; k < end; k++) {
			if (!is_single(best.role) || files[k].path == best.path) {
				files[n++] = files[k];
				continue;
			}
			np_problem_add(all, capture, "SEVERAL_FILES", files[k].path,
			               "left out, %s is of the same kind", best.path);
			np_leave_out(all, files[k].path,
			             "another file of the same kind is beside it");
		}
	}
	capture->files.n = n;
}

static int by_role(const void *a, const void *b)
{
	const struct np_file *x = a, *y = b;
	if (x->role != y->role)
		return x->role < y->role ? -1 : 1;
	if (x->slice != y->slice)
		return x->slice < y->slice ? -1 : 1;
	return strcmp(x->path, y->path);
}

static void set_formats(struct np_capture *capture)
{
	for (size_t i = 0; i < capture->files.n; i++) {
		switch (capture->files.v[i].role) {
		case NP_ROLE_PROFILER_DB:
		case NP_ROLE_MSPROF_DB:
		case NP_ROLE_MSMONITOR_DB:
			capture->formats |= NP_HAS_DB;
			break;
		case NP_ROLE_ANALYSIS_DB:
			capture->formats |= NP_HAS_ANALYSIS;
			break;
		case NP_ROLE_CLUSTER_DB:
		case NP_ROLE_CLUSTER_FILE:
			capture->formats |= NP_HAS_CLUSTER;
			break;
		case NP_ROLE_TRACE:
		case NP_ROLE_KERNELS:
		case NP_ROLE_OP_SUMMARY:
		case NP_ROLE_TASK_TIME:
		case NP_ROLE_STEP_TRACE:
		case NP_ROLE_STEP_TRACE_MSPROF:
		case NP_ROLE_OP_STATISTIC:
		case NP_ROLE_API_STATISTIC:
		case NP_ROLE_OPERATOR_DETAILS:
		case NP_ROLE_OPERATOR_MEMORY:
		case NP_ROLE_MEMORY_RECORD:
		case NP_ROLE_COMM_JSON:
		case NP_ROLE_COMM_MATRIX:
		case NP_ROLE_COMM_STATISTIC:
			capture->formats |= NP_HAS_TEXT;
			break;
		default:
			break;
		}
	}
}

static void finish(struct np_captures *all, struct np_capture *capture)
{
	if (capture->files.n)
		qsort(capture->files.v, capture->files.n, sizeof *capture->files.v, by_role);
	prefer_torch_output(all, capture);
	keep_newest_stamp(all, capture);
	keep_one_of_each(all, capture);
	set_formats(capture);
	if (capture->prof_dirs.n > 1)
		np_problem_add(all, capture, "SEVERAL_PROF", capture->path,
		               "%zu PROF_* directories; torch_npu takes an arbitrary one of them",
		               capture->prof_dirs.n);
}

void np_collect_files(struct np_captures *all, struct np_capture *capture)
{
	if (capture->framework == NP_FW_MSPROF) {
		collect_prof(all, capture, capture->path);
	} else {
		struct np_dir listing;
		if (!add_dir(all, capture, capture->path, &listing))
			listing.n = 0;
		if (capture->framework == NP_FW_UNKNOWN || capture->framework == NP_FW_CLUSTER)
			capture->output = capture->path;
		for (size_t i = 0; i < listing.n && capture->framework != NP_FW_UNKNOWN; i++) {
			if (listing.v[i].kind != NP_FILE_DIR && listing.v[i].kind != NP_FILE_LINK)
				continue;
			const char *child =
				np_path_join(&all->arena, capture->path, listing.v[i].name);
			all->out_of_memory |= !child;
			if (child)
				collect_part(all, capture, child, listing.v[i].name);
		}
	}
	finish(all, capture);
}

/* ── a single file ── */

static enum np_role sniff(const char *path)
{
	char head[4096] = "";
	FILE *file = fopen(path, "re");
	if (!file)
		return NP_ROLE_NONE;
	np_str text = {head, fread(head, 1, sizeof head, file)};
	(void)fclose(file);
	if (np_str_starts(text, NP_STR("SQLite format 3")))
		return NP_ROLE_PROFILER_DB;
	np_str trimmed = np_str_trim(text);
	if (trimmed.len && (trimmed.ptr[0] == '[' || trimmed.ptr[0] == '{'))
		return NP_ROLE_TRACE;
	if (np_str_contains(text, NP_STR("uration(us)")))
		return NP_ROLE_KERNELS;
	return NP_ROLE_NONE;
}

void np_collect_single_file(struct np_captures *all, struct np_capture *capture)
{
	struct np_name name = np_name_parse(np_path_base(capture->path));
	if (name.role == NP_ROLE_NONE || name.role == NP_ROLE_OTHER_CSV) {
		enum np_role seen = sniff(capture->path);
		if (seen != NP_ROLE_NONE)
			name.role = seen;
	}
	add_file(all, capture, capture->path, &name);
	finish(all, capture);
}
