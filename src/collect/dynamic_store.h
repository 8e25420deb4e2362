/*
 * Changing profiler_config.json while others read and write it.
 *
 * torch_npu's monitor polls the file by its path: it stats it, and when the second of its
 * mtime differs it opens and reads it, without any lock. So (R84):
 *
 *   - The file stays the same inode: no temporary file, no rename.
 *   - Every instant must be valid JSON. A longer text first grows the file by spaces behind
 *     the old text, which JSON allows, since the size of a file changes only after the bytes
 *     are there and a reader would see the new text cut. Then one pwrite() replaces the text,
 *     padded by spaces when it is shorter. Then ftruncate() takes the spaces away. A disk
 *     that is full fails at the first step, where the old text still stands.
 *   - A read may still overlap the copying of that one pwrite() (ext4 does not exclude the
 *     two). So it happens under a write lease (fcntl F_SETLEASE): the kernel grants it only
 *     while nobody else has the file open, and lets their open() wait until it is released,
 *     microseconds later. Where there are no leases (NFS, Lustre, FUSE; a file of somebody
 *     else, or a file that somebody keeps open) the text is compared once more right before,
 *     and between the spaces and the text there is a pause: who reads in two calls has come to
 *     an end with the old text. What remains is the time of copying one page.
 *   - flock() on the file keeps other calls of this program out. One that waits closes the
 *     file meanwhile: being open, it would keep the other's lease away.
 *   - The whole second of the mtime must grow, or the monitor sees nothing; so a second
 *     change within a second waits for the next one. mtime is never set into the future:
 *     ranks would ignore every later change until then.
 */
#ifndef NP_COLLECT_DYNAMIC_STORE_H
#define NP_COLLECT_DYNAMIC_STORE_H

#include <sys/types.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/time.h"

/* Make the new text of the old one: appended to `out`. May be called more than once. */
typedef enum np_status np_dyn_transform(void *context, np_str old, struct np_buf *out,
                                        struct np_err *err);

struct np_dyn_rewrite {
	bool dry_run;
	bool same_second;        /* do not wait until the second of the mtime grows: tests only */
	bool no_lease;           /* as if the file system had none: tests only */
	double patience_seconds; /* for the lock and for the next second; 0: 10 s */
	/* results */
	struct np_buf old_text, new_text;
	np_ns mtime_before, mtime_after;
	uint64_t inode;
	bool leased;      /* no reader could have the file open meanwhile */
	bool overwritten; /* somebody wrote again, before we had looked */
	unsigned retries; /* somebody wrote between our reading and writing */
};

/*
 * Rewrite the file by `transform`. Errors: E_NOTFOUND, E_ACCESS, E_FORMAT (no regular
 * file, or what the transform says), E_LIMIT (more than 1 MiB), E_EXISTS (another call holds
 * the lock), E_RANGE (the old mtime lies further in the future than the patience), E_IO.
 * The file is as it was after all of them. np_dyn_rewrite_release() in any case.
 */
enum np_status np_dyn_rewrite(const char *path, np_dyn_transform *transform, void *context,
                              struct np_dyn_rewrite *self, struct np_err *err);
void np_dyn_rewrite_release(struct np_dyn_rewrite *self);

/* The whole file, as np_file_slurp(), which does not wait for a lease; this tries again. */
enum np_status np_dyn_read(struct np_arena *arena, const char *path, np_str *out,
                           struct np_err *err);

#endif
