/*
 * The walk: directories in, captures out. Sorted, bounded in depth, read-only.
 */
#include "capture/discover.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/map.h"
#include "capture/collect.h"
#include "io/archive.h"

#define UNPACK_MAX_BYTES (UINT64_C(64) << 30)

struct dir_id {
	uint64_t dev, ino;
};

struct walk {
	struct np_captures *all;
	struct np_map seen;              /* key of every directory that was entered */
	NP_VEC(struct dir_id) ancestors; /* of the one that is being read */
	bool oom;
};

void np_problem_add(struct np_captures *all, struct np_capture *capture, const char *code,
                    const char *file, const char *fmt, ...)
{
	char text[1024];
	va_list ap;
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	struct np_problem problem = {.code = code};
	problem.text = np_arena_cstr(&all->arena, np_str_of(text));
	problem.file = file ? np_arena_cstr(&all->arena, np_str_of(file)) : "";
	bool ok = problem.text && problem.file;
	if (ok && capture)
		ok = np_vec_push(&capture->problems, problem);
	else if (ok)
		ok = np_vec_push(&all->problems, problem);
	all->out_of_memory |= !ok;
}

void np_leave_out(struct np_captures *all, const char *path, const char *reason)
{
	struct np_left_out row = {np_arena_cstr(&all->arena, np_str_of(path)),
	                          np_arena_cstr(&all->arena, np_str_of(reason))};
	all->out_of_memory |= !row.path || !row.reason || !np_vec_push(&all->left_out, row);
}

static bool is_ancestor(const struct walk *walk, struct dir_id id)
{
	for (size_t i = 0; i < walk->ancestors.n; i++)
		if (walk->ancestors.v[i].dev == id.dev && walk->ancestors.v[i].ino == id.ino)
			return true;
	return false;
}

/* Inode numbers stay far below 2^44, device numbers fill the rest. */
static uint64_t dir_key(struct dir_id id)
{
	return id.ino ^ (id.dev << 44) ^ (id.dev >> 20);
}

/* Enter each directory once, however many links lead there. */
static bool may_enter(struct walk *walk, const char *path, struct dir_id *id)
{
	struct np_file_stat st;
	struct np_err err = {0};
	if (np_file_stat(path, true, &st, &err) != NP_OK || st.kind != NP_FILE_DIR) {
		if (err.code != NP_OK)
			np_problem_add(walk->all, NULL, "UNREADABLE", path, "%s", err.msg);
		else if (st.kind == NP_FILE_NONE)
			np_leave_out(walk->all, path, "a link that leads nowhere");
		return false;
	}
	*id = (struct dir_id){st.dev, st.ino};
	if (is_ancestor(walk, *id)) {
		np_problem_add(walk->all, NULL, "SYMLINK_LOOP", path,
		               "a link leads back to a directory above it; not followed");
		np_leave_out(walk->all, path, "symbolic link to a directory above");
		return false;
	}
	if (np_map_get(&walk->seen, dir_key(*id), 0)) {
		np_leave_out(walk->all, path, "reached already by another path");
		return false;
	}
	walk->oom |= !np_map_put(&walk->seen, dir_key(*id), 1);
	return !walk->oom;
}

/* Names tell what a directory is and whose; "." and ".." have to be asked for theirs. */
static np_str name_of(struct np_captures *all, const char *path)
{
	np_str base = np_path_base(path);
	if (!np_str_is(base, ".") && !np_str_is(base, ".."))
		return base;
	char *real = realpath(path, NULL);
	const char *copy = real ? np_arena_cstr(&all->arena, np_str_of(real)) : NULL;
	free(real);
	return copy ? np_path_base(copy) : base;
}

static struct np_capture *new_capture(struct walk *walk, enum np_framework framework,
                                      const char *path, const char *group_dir)
{
	struct np_capture *capture = np_arena_zalloc(&walk->all->arena, sizeof *capture);
	if (!capture || !np_vec_push(&walk->all->captures, capture)) {
		walk->oom = true;
		return NULL;
	}
	capture->framework = framework;
	capture->path = path;
	capture->name = np_arena_cstr(&walk->all->arena, name_of(walk->all, path));
	capture->group_dir = group_dir;
	capture->rank = capture->device = capture->pid = capture->world_size = NP_NO_I64;
	capture->host = capture->host_uid = capture->npu_name = capture->batch =
		capture->distributed = "";
	walk->oom |= !capture->name;
	return capture;
}

/* What a directory is, from its name and its direct children. */
enum dir_kind { DIR_PLAIN, DIR_TORCH, DIR_MINDSPORE, DIR_PROF, DIR_OUTPUT, DIR_CLUSTER, DIR_LOOSE };

static bool is_deliverable(enum np_role role)
{
	switch (role) {
	case NP_ROLE_NONE:
	case NP_ROLE_LOG:
	case NP_ROLE_OTHER_CSV:
	case NP_ROLE_INFO_JSON:
	case NP_ROLE_SAMPLE_JSON:
	case NP_ROLE_INSIGHT_DB:
	case NP_ROLE_CLUSTER_FILE:
	case NP_ROLE_CLUSTER_DB:
		return false;
	default:
		return true;
	}
}

static enum dir_kind kind_of_dir(np_str name, const struct np_dir *dir)
{
	if (np_str_ends(name, NP_STR("ascend_ms")))
		return DIR_MINDSPORE;
	if (np_str_ends(name, NP_STR("ascend_pt")))
		return DIR_TORCH;
	if (np_str_is(name, NP_OUTPUT_DIR) || np_str_is(name, NP_MSPROF_OUTPUT_DIR))
		return DIR_OUTPUT;
	if (np_str_ends(name, NP_STR("cluster_analysis_output")))
		return DIR_CLUSTER;
	if (np_str_starts(name, NP_STR("PROF_")))
		return DIR_PROF;
	bool loose = false;
	for (size_t i = 0; i < dir->n; i++) {
		np_str child = np_str_of(dir->v[i].name);
		if (dir->v[i].kind == NP_FILE_REG) {
			enum np_role role = np_name_parse(child).role;
			if (role == NP_ROLE_PROFILER_INFO)
				return DIR_TORCH;
			loose |= is_deliverable(role);
		} else if (np_str_is(child, NP_OUTPUT_DIR) || np_str_is(child, NP_FRAMEWORK_DIR)) {
			return DIR_TORCH;
		}
	}
	return loose ? DIR_LOOSE : DIR_PLAIN;
}

static void visit(struct walk *walk, const char *path, const char *group_dir, int depth);

/* The group of what lies in the directory `path`, itself of the group `group_dir`. */
static const char *group_below(struct walk *walk, const char *path, const char *group_dir,
                               int depth)
{
	if (depth == 0)
		return "";
	return np_arena_printf(&walk->all->arena, "%s%s%.*s", group_dir, *group_dir ? "/" : "",
	                       NP_FMT(np_path_base(path)));
}

static void visit_children(struct walk *walk, const char *path, const char *group_dir, int depth,
                           const struct np_dir *dir)
{
	if (depth >= NP_DISCOVER_MAX_DEPTH) {
		np_leave_out(walk->all, path, "deeper than 10 directories");
		return;
	}
	for (size_t i = 0; i < dir->n && !walk->oom; i++) {
		const struct np_dir_entry *entry = &dir->v[i];
		if (entry->kind != NP_FILE_DIR && entry->kind != NP_FILE_LINK)
			continue;
		const char *child = np_path_join(&walk->all->arena, path, entry->name);
		const char *below = group_below(walk, path, group_dir, depth);
		walk->oom |= !child || !below;
		if (!walk->oom)
			visit(walk, child, below, depth + 1);
	}
}

/* ".../X_ascend_pt/ASCEND_PROFILER_OUTPUT" given as such: the capture is its parent. */
static void visit_output_dir(struct walk *walk, const char *path, const char *group_dir)
{
	size_t len = (size_t)(np_path_base(path).ptr - path);
	np_str base = np_path_base(path);
	bool dots = np_str_is(base, ".") || np_str_is(base, "..");
	while (len > 1 && path[len - 1] == '/')
		len--;
	const char *parent = dots  ? np_path_join(&walk->all->arena, path, "..")
	                     : len ? np_arena_cstr(&walk->all->arena, (np_str){path, len})
	                           : ".";
	walk->oom |= !parent;
	if (walk->oom)
		return;
	bool msprof = np_str_is(name_of(walk->all, path), NP_MSPROF_OUTPUT_DIR);
	bool mindspore = np_str_ends(name_of(walk->all, parent), NP_STR("ascend_ms"));
	struct np_capture *capture = new_capture(walk,
	                                         msprof      ? NP_FW_MSPROF
	                                         : mindspore ? NP_FW_MINDSPORE
	                                                     : NP_FW_TORCH,
	                                         parent, group_dir);
	if (capture)
		np_collect_files(walk->all, capture);
}

static void visit_file(struct walk *walk, const char *path, const char *group_dir)
{
	struct np_capture *capture = new_capture(walk, NP_FW_UNKNOWN, path, group_dir);
	if (capture)
		np_collect_single_file(walk->all, capture);
}

/* Databases or kernel tables of several ranks in one directory: each is a capture of
 * its own. false when there are not several. */
static bool visit_loose_ranks(struct walk *walk, const char *path, const char *group_dir, int depth,
                              const struct np_dir *dir)
{
	const char *group = group_below(walk, path, group_dir, depth);
	walk->oom |= !group;
	size_t count[NP_N_ROLES] = {0};
	for (size_t i = 0; i < dir->n; i++)
		count[np_name_parse(np_str_of(dir->v[i].name)).role] +=
			dir->v[i].kind == NP_FILE_REG;
	enum np_role several = count[NP_ROLE_PROFILER_DB] > 1 ? NP_ROLE_PROFILER_DB
	                       : count[NP_ROLE_KERNELS] > 1   ? NP_ROLE_KERNELS
	                                                      : NP_ROLE_NONE;
	for (size_t i = 0; several && i < dir->n && !walk->oom; i++) {
		enum np_role role = np_name_parse(np_str_of(dir->v[i].name)).role;
		const char *file = np_path_join(&walk->all->arena, path, dir->v[i].name);
		walk->oom |= !file;
		if (!file || dir->v[i].kind != NP_FILE_REG)
			continue;
		if (role == several)
			visit_file(walk, file, group);
		else if (is_deliverable(role))
			np_leave_out(walk->all, file,
			             "not known to which of several captures it belongs");
	}
	return several != NP_ROLE_NONE;
}

static void visit(struct walk *walk, const char *path, const char *group_dir, int depth)
{
	struct dir_id id;
	if (!may_enter(walk, path, &id))
		return;
	walk->all->directories++;
	struct np_dir dir;
	struct np_err err;
	if (np_dir_list(&walk->all->arena, path, &dir, &err) != NP_OK) {
		walk->oom |= err.code == NP_E_NOMEM;
		np_problem_add(walk->all, NULL, "UNREADABLE", path, "%s", err.msg);
		np_leave_out(walk->all, path, err.msg);
		return;
	}
	enum dir_kind kind = kind_of_dir(name_of(walk->all, path), &dir);
	static const enum np_framework framework[] = {
		[DIR_TORCH] = NP_FW_TORCH,   [DIR_MINDSPORE] = NP_FW_MINDSPORE,
		[DIR_PROF] = NP_FW_MSPROF,   [DIR_CLUSTER] = NP_FW_CLUSTER,
		[DIR_LOOSE] = NP_FW_UNKNOWN,
	};
	walk->oom |= !np_vec_push(&walk->ancestors, id);
	if (kind == DIR_OUTPUT) {
		visit_output_dir(walk, path, group_dir);
	} else if (kind != DIR_PLAIN &&
	           !(kind == DIR_LOOSE && visit_loose_ranks(walk, path, group_dir, depth, &dir))) {
		struct np_capture *capture = new_capture(walk, framework[kind], path, group_dir);
		if (capture)
			np_collect_files(walk->all, capture);
	}
	if (kind == DIR_PLAIN || kind == DIR_LOOSE)
		visit_children(walk, path, group_dir, depth, &dir);
	if (walk->ancestors.n)
		walk->ancestors.n--;
}

/* ── archives ── */

static enum np_status unpack(struct np_captures *all, struct np_err *err)
{
	const char *base = getenv("TMPDIR");
	const char *pattern =
		np_arena_printf(&all->arena, "%s/npuprof-XXXXXX", base && *base ? base : P_tmpdir);
	char *dir = pattern ? np_alloc(strlen(pattern) + 1) : NULL;
	if (!dir)
		return np_err_nomem(err);
	memcpy(dir, pattern, strlen(pattern) + 1);
	if (!mkdtemp(dir)) {
		enum np_status status = np_err_set(err, NP_E_IO, dir,
		                                   "cannot create a directory to unpack the "
		                                   "archive; set TMPDIR to a place with room");
		np_free(dir);
		return status;
	}
	all->temp_dir = dir;
	all->root = dir;
	struct np_archive_stats stats = {0};
	struct np_err damage = {0};
	enum np_status status =
		np_archive_unpack(all->input, dir, UNPACK_MAX_BYTES, NULL, NULL, &stats, &damage);
	if (stats.refused)
		np_problem_add(
			all, NULL, "ARCHIVE_UNSAFE_MEMBER", all->input,
			"%llu members refused since they could leave the directory, first: %s",
			(unsigned long long)stats.refused, stats.first_refused);
	if (status == NP_OK)
		return NP_OK;
	if (stats.files == 0 || status == NP_E_NOMEM || status == NP_E_LIMIT) {
		if (err)
			*err = damage;
		return status;
	}
	np_problem_add(all, NULL, "ARCHIVE_DAMAGED", all->input,
	               "%s; %llu files before that were read", damage.msg,
	               (unsigned long long)stats.files);
	return NP_OK;
}

/* ── the whole ── */

static int64_t rank_key(const struct np_capture *capture)
{
	return capture->rank == NP_NO_I64 ? INT64_MAX : capture->rank;
}

static int by_place(const void *a, const void *b)
{
	const struct np_capture *x = *(struct np_capture *const *)a;
	const struct np_capture *y = *(struct np_capture *const *)b;
	int order = strcmp(x->group_dir, y->group_dir);
	if (order == 0 && rank_key(x) != rank_key(y))
		order = rank_key(x) < rank_key(y) ? -1 : 1;
	if (order == 0)
		order = strcmp(x->batch, y->batch);
	return order ? order : strcmp(x->path, y->path);
}

static enum np_status run(struct walk *walk, struct np_err *err)
{
	struct np_captures *all = walk->all;
	struct np_file_stat st;
	NP_TRY(np_file_stat(all->input, true, &st, err));
	if (st.kind == NP_FILE_NONE)
		return np_err_set(err, NP_E_NOTFOUND, all->input, "no such file or directory");
	if (st.kind == NP_FILE_REG && np_archive_probe(all->input)) {
		NP_TRY(unpack(all, err));
		st.kind = NP_FILE_DIR;
	}
	if (st.kind == NP_FILE_DIR) {
		if (access(all->root, R_OK | X_OK) != 0)
			return np_err_set(err, NP_E_ACCESS, all->input,
			                  "cannot read the directory: "
			                  "permission denied");
		visit(walk, all->root, "", 0);
	} else if (st.kind == NP_FILE_REG) {
		visit_file(walk, all->root, "");
	} else {
		return np_err_set(err, NP_E_FORMAT, all->input,
		                  "neither a directory nor a regular file");
	}
	for (size_t i = 0; i < all->captures.n && !walk->oom; i++) {
		struct np_capture *capture = all->captures.v[i];
		np_capture_parse_name(all, capture);
		np_config_read(all, capture);
		np_rank_find(all, capture);
	}
	if (walk->oom || all->out_of_memory)
		return np_err_nomem(err);
	if (all->captures.n)
		qsort(all->captures.v, all->captures.n, sizeof *all->captures.v, by_place);
	return NP_OK;
}

enum np_status np_discover(const char *path, struct np_captures **out, struct np_err *err)
{
	*out = NULL;
	struct np_captures *all = np_calloc(1, sizeof *all);
	if (!all)
		return np_err_nomem(err);
	np_arena_init(&all->arena);
	struct walk walk = {.all = all};
	size_t len = strlen(path);
	while (len > 1 && path[len - 1] == '/')
		len--;
	all->input = all->root = np_arena_cstr(&all->arena, (np_str){path, len});
	enum np_status status = all->input ? run(&walk, err) : np_err_nomem(err);
	np_map_release(&walk.seen);
	np_vec_release(&walk.ancestors);
	if (status != NP_OK) {
		np_captures_free(all);
		return status;
	}
	*out = all;
	return NP_OK;
}

void np_captures_free(struct np_captures *self)
{
	if (!self)
		return;
	if (self->temp_dir) {
		np_remove_tree(self->temp_dir);
		np_free(self->temp_dir);
	}
	for (size_t i = 0; i < self->captures.n; i++) {
		np_vec_release(&self->captures.v[i]->files);
		np_vec_release(&self->captures.v[i]->problems);
		np_vec_release(&self->captures.v[i]->prof_dirs);
	}
	np_vec_release(&self->captures);
	np_vec_release(&self->left_out);
	np_vec_release(&self->problems);
	np_arena_release(&self->arena);
	np_free(self);
}
