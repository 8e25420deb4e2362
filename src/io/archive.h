/*
 * tar, tar.gz/zst and zip files: list them, and unpack a selection safely.
 *
 * Members that could leave the target (absolute paths, "..", links, devices)
 * are refused and counted. Modification times are kept, since they are
 * evidence (requirements §6.5).
 */
#ifndef NP_IO_ARCHIVE_H
#define NP_IO_ARCHIVE_H

#include <stdbool.h>

#include "base/err.h"
#include "base/str.h"

/* By content: does the file start like an archive that we read? A bare .gz of
 * something else than tar is not one. false when unreadable. */
bool np_archive_probe(const char *path);

struct np_archive_stats {
	uint64_t files, bytes; /* unpacked */
	uint64_t refused;      /* members not unpacked because they are unsafe */
	char first_refused[256];
};

/* Is the path of a member safe to create below a directory? Relative, no "..", no NUL,
 * names of at most 255 bytes, 4095 in all. Pure; no file access. */
bool np_archive_safe_path(np_str path);

/*
 * Unpack all regular files for which want(ctx, path) is true (NULL: all) below
 * `dir`, which exists: files with mode 0600, directories 0700, made as needed and
 * never through a link. More than max_bytes in all is E_LIMIT (holes of sparse
 * members count). A damaged archive is E_FORMAT or E_TRUNCATED, an encrypted member
 * E_UNSUPPORTED; what came before stays, counted in *stats, and the member where it
 * happened is removed. Of two members with one name the last stays. A member whose
 * place is taken by something else than a file is refused, too. Only wanted members
 * are counted as refused.
 */
enum np_status np_archive_unpack(const char *path, const char *dir, uint64_t max_bytes,
                                 bool (*want)(void *ctx, np_str member), void *ctx,
                                 struct np_archive_stats *stats, struct np_err *err);

#endif
