/*
 * The file system: paths, directory listings, small files, atomic writes.
 *
 * Listings are sorted by byte order, so nothing downstream depends on the
 * order a directory happens to have. Outputs are written beside their target
 * and renamed, so a reader never sees half a file and a full disk loses
 * nothing that was there.
 */
#ifndef NP_BASE_FS_H
#define NP_BASE_FS_H

#include <sys/types.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/time.h"

enum np_file_kind {
	NP_FILE_NONE, /* does not exist */
	NP_FILE_REG,
	NP_FILE_DIR,
	NP_FILE_LINK, /* symbolic link, only from np_file_stat with follow = false */
	NP_FILE_OTHER,
};

struct np_file_stat {
	enum np_file_kind kind;
	uint64_t size_bytes;
	np_ns mtime_ns; /* that of the year 2262 for a later one */
	uint64_t dev, ino;
	unsigned mode;
};

/* NP_OK with kind NP_FILE_NONE when nothing is there. Errors: E_ACCESS, E_IO. */
enum np_status np_file_stat(const char *path, bool follow, struct np_file_stat *out,
                            struct np_err *err);

struct np_dir_entry {
	const char *name;       /* in the arena */
	enum np_file_kind kind; /* of the entry itself: links are NP_FILE_LINK */
};

struct np_dir {
	struct np_dir_entry *v;
	size_t n;
};

enum { NP_DIR_MAX_ENTRIES = 1000000 };

/* All entries but "." and "..", sorted by name; memory from the arena.
 * Errors: E_NOTFOUND, E_ACCESS, E_IO, E_NOMEM, E_LIMIT. */
enum np_status np_dir_list(struct np_arena *arena, const char *path, struct np_dir *out,
                           struct np_err *err);

/* "dir/name" in the arena; NULL on failure. `dir` may be "" or end in "/". */
const char *np_path_join(struct np_arena *arena, const char *dir, const char *name);

/* The part behind the last "/", ignoring trailing ones. A view into path. */
np_str np_path_base(const char *path);

/* A file of at most max_bytes read into the arena, NUL behind it.
 * Errors: those of open and read, E_LIMIT when it is larger. */
enum np_status np_file_slurp(struct np_arena *arena, const char *path, size_t max_bytes,
                             np_str *out, struct np_err *err);

/* All of standard input, at most max_bytes, behind what `out` holds. E_IO, E_LIMIT. */
enum np_status np_stdin_slurp(struct np_buf *out, size_t max_bytes, struct np_err *err);

/*
 * A file that appears under `path` only when it is complete: begin, write to
 * `file`, then commit (flush, fsync, rename) or abort. What is no regular file
 * (/dev/null, a named pipe) is written to directly and never replaced; of a link
 * the file that it points to is replaced.
 */
struct np_outfile {
	struct _IO_FILE *file; /* a FILE * */
	char path[4096], temp[4096 + 32];
	bool direct; /* path is a device, a pipe or the like: written to as it is */
	bool hasty;  /* set it after begin: no fsync, for what can be made again */
};

enum np_status np_outfile_begin(struct np_outfile *self, const char *path, struct np_err *err);
enum np_status np_outfile_commit(struct np_outfile *self, struct np_err *err);
void np_outfile_abort(struct np_outfile *self);

/* mkdir -p with mode 0750. */
enum np_status np_mkdirs(const char *path, struct np_err *err);

/* A temporary directory with all that is in it; links are removed, not followed.
 * What cannot be removed stays, and ends it. */
void np_remove_tree(const char *path);

#endif
