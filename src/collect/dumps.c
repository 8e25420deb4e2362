#include "collect/dumps.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"

enum { MAX_DEPTH = 8 };

static bool is_dump_name(const char *name)
{
	return np_str_ends(np_str_of(name), NP_STR("_ascend_pt"));
}

static bool is_msprof_name(const char *name)
{
	return np_str_starts(np_str_of(name), NP_STR("PROF_"));
}

static bool is_of_dump(const char *name)
{
	np_str text = np_str_of(name);
	return np_str_is(text, "host") || np_str_is(text, "mindstudio_profiler_output") ||
	       np_str_starts(text, NP_STR("device_")) || np_str_is(text, "FRAMEWORK") ||
	       np_str_is(text, "ASCEND_PROFILER_OUTPUT") || np_str_starts(text, NP_STR("PROF_")) ||
	       np_str_starts(text, NP_STR("profiler_info"));
}

/* Add the dump when anything of it was written since the start. */
static enum np_status look_at(struct np_arena *arena, const char *path, np_ns start_ns,
                              struct np_dumps *out, struct np_err *err)
{
	struct np_dir dir;
	struct np_dump dump = {.path = path, .msprof = is_msprof_name(np_path_base(path).ptr)};
	bool is_new = false;
	NP_TRY(np_dir_list(arena, path, &dir, err));
	for (size_t i = 0; i < dir.n; i++) {
		struct np_file_stat stat;
		if (!is_of_dump(dir.v[i].name))
			continue;
		dump.raw |= strcmp(dir.v[i].name, "FRAMEWORK") == 0 ||
		            strncmp(dir.v[i].name, "PROF_", 5) == 0;
		const char *inside = np_path_join(arena, path, dir.v[i].name);
		if (!inside)
			return np_err_nomem(err);
		is_new |= np_file_stat(inside, false, &stat, NULL) == NP_OK &&
		          stat.mtime_ns >= start_ns;
	}
	if (!is_new) {
		out->old++;
		return NP_OK;
	}
	return np_vec_push(&out->all, dump) ? NP_OK : np_err_nomem(err);
}

static enum np_status walk(struct np_arena *arena, const char *path, np_ns start_ns, int depth,
                           struct np_dumps *out, struct np_err *err)
{
	struct np_dir dir;
	NP_TRY(np_dir_list(arena, path, &dir, err));
	for (size_t i = 0; i < dir.n; i++) {
		if (dir.v[i].kind != NP_FILE_DIR)
			continue;
		const char *inside = np_path_join(arena, path, dir.v[i].name);
		if (!inside)
			return np_err_nomem(err);
		enum np_status status = NP_OK;
		if (is_dump_name(dir.v[i].name) || is_msprof_name(dir.v[i].name))
			status = look_at(arena, inside, start_ns, out, err);
		else if (depth < MAX_DEPTH)
			status = walk(arena, inside, start_ns, depth + 1, out, err);
		if (status == NP_E_NOMEM)
			return status; /* what cannot be read is the gate's to tell */
	}
	return NP_OK;
}

enum np_status np_dumps_find(struct np_arena *arena, const char *root, np_ns start_ns,
                             struct np_dumps *out, struct np_err *err)
{
	*out = (struct np_dumps){.old = 0};
	const char *base = np_path_base(root).ptr;
	enum np_status status = is_dump_name(base) || is_msprof_name(base)
	                                ? look_at(arena, root, start_ns, out, err)
	                                : walk(arena, root, start_ns, 0, out, err);
	if (status == NP_E_NOTFOUND)
		return NP_OK;
	if (status != NP_OK)
		np_dumps_release(out);
	return status;
}

static bool is_new_file(const char *dir, const char *name, np_ns start_ns)
{
	struct np_arena arena;
	struct np_file_stat stat = {.kind = NP_FILE_NONE};
	np_arena_init(&arena);
	const char *path = np_path_join(&arena, dir, name);
	bool good = path && np_file_stat(path, true, &stat, NULL) == NP_OK &&
	            stat.kind == NP_FILE_REG && stat.size_bytes > 0 && stat.mtime_ns >= start_ns;
	np_arena_release(&arena);
	return good;
}

static bool has_new(struct np_arena *arena, const char *output, const char *begin, const char *end,
                    np_ns start_ns)
{
	struct np_dir dir;
	if (!output || np_dir_list(arena, output, &dir, NULL) != NP_OK)
		return false;
	for (size_t i = 0; i < dir.n; i++) {
		np_str name = np_str_of(dir.v[i].name);
		if (np_str_starts(name, np_str_of(begin)) && np_str_ends(name, np_str_of(end)) &&
		    is_new_file(output, dir.v[i].name, start_ns))
			return true;
	}
	return false;
}

bool np_dump_is_complete(const char *path, np_ns start_ns, bool text, bool db, bool kernels)
{
	struct np_arena arena;
	np_arena_init(&arena);
	const char *output = np_path_join(&arena, path, "ASCEND_PROFILER_OUTPUT");
	bool good = output && (text || db);
	if (good && text)
		good = is_new_file(output, "trace_view.json", start_ns) &&
		       (!kernels || is_new_file(output, "kernel_details.csv", start_ns));
	if (good && db)
		good = has_new(&arena, output, "ascend_pytorch_profiler", ".db", start_ns);
	np_arena_release(&arena);
	return good;
}

bool np_dump_msprof_is_complete(const char *path, np_ns start_ns)
{
	struct np_arena arena;
	np_arena_init(&arena);
	const char *output = np_path_join(&arena, path, "mindstudio_profiler_output");
	bool good = has_new(&arena, output, "op_summary", ".csv", start_ns) ||
	            has_new(&arena, path, "msprof_", ".db", start_ns);
	np_arena_release(&arena);
	return good;
}

static const char *mark_of(struct np_arena *arena, const char *path)
{
	return np_path_join(arena, path, "ASCEND_PROFILER_OUTPUT/analyse.done");
}

bool np_dump_is_finished(const char *path, np_ns start_ns)
{
	struct np_arena arena;
	struct np_file_stat stat = {.kind = NP_FILE_NONE};
	np_arena_init(&arena);
	const char *mark = mark_of(&arena, path);
	bool good = mark && np_file_stat(mark, true, &stat, NULL) == NP_OK &&
	            stat.kind == NP_FILE_REG && stat.mtime_ns >= start_ns;
	np_arena_release(&arena);
	return good;
}

void np_dump_set_finished(const char *path)
{
	struct np_arena arena;
	np_arena_init(&arena);
	const char *mark = mark_of(&arena, path);
	int fd = mark ? open(mark, O_WRONLY | O_CREAT | O_CLOEXEC, 0640) : -1;
	if (fd >= 0)
		(void)close(fd);
	np_arena_release(&arena);
}

void np_dumps_release(struct np_dumps *self)
{
	np_vec_release(&self->all);
}
