#include "synth/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/fs.h"

enum { MAX_DEPTH = 32 };

static enum np_status walk(struct np_arena *arena, const char *path, enum np_file_kind kind,
                           int depth,
                           enum np_status (*leave)(const char *path, const void *ctx,
                                                   struct np_err *err),
                           const void *ctx, struct np_err *err)
{
	if (depth > MAX_DEPTH)
		return np_err_set(err, NP_E_LIMIT, path, "directories are nested too deep");
	if (kind == NP_FILE_DIR) {
		struct np_dir dir;
		NP_TRY(np_dir_list(arena, path, &dir, err));
		for (size_t i = 0; i < dir.n; i++) {
			const char *child = np_path_join(arena, path, dir.v[i].name);
			if (!child)
				return np_err_nomem(err);
			NP_TRY(walk(arena, child, dir.v[i].kind, depth + 1, leave, ctx, err));
		}
	}
	return leave(path, ctx, err);
}

static enum np_status walk_tree(const char *path,
                                enum np_status (*leave)(const char *path, const void *ctx,
                                                        struct np_err *err),
                                const void *ctx, struct np_err *err)
{
	struct np_file_stat st;
	NP_TRY(np_file_stat(path, false, &st, err));
	struct np_arena arena;
	np_arena_init(&arena);
	enum np_status status = walk(&arena, path, st.kind, 0, leave, ctx, err);
	np_arena_release(&arena);
	return status;
}

static enum np_status touch(const char *path, const void *ctx, struct np_err *err)
{
	const np_ns *ns = ctx;
	struct timespec at = {(time_t)(*ns / 1000000000), (long)(*ns % 1000000000)};
	struct timespec times[2] = {at, at};
	if (utimensat(AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW) != 0)
		return np_err_sys(err, errno, path, "set the time of");
	return NP_OK;
}

static enum np_status erase(const char *path, const void *ctx, struct np_err *err)
{
	(void)ctx;
	return remove(path) == 0 ? NP_OK : np_err_sys(err, errno, path, "remove");
}

enum np_status np_tree_touch(const char *path, np_ns mtime_ns, struct np_err *err)
{
	return walk_tree(path, touch, &mtime_ns, err);
}

enum np_status np_tree_remove(const char *path, struct np_err *err)
{
	return walk_tree(path, erase, NULL, err);
}
