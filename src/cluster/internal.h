/* What the files of src/cluster/ share among themselves. */
#ifndef NP_CLUSTER_INTERNAL_H
#define NP_CLUSTER_INTERNAL_H

#include "cluster/recipe.h"

/* Raise the report's exit code: 1 beats 4 beats 3 beats 0. */
void np_cluster_exit(struct np_cluster *self, int code);

/* The parts that the recipes of the options need, each once. */
enum np_status np_cluster_choose_parts(struct np_cluster *self, struct np_err *err);

/* ── cache.c: digests of one part on disk ── */

/*
 * The digest of this part of this capture, from the cache; NULL when it is not there or
 * not for exactly these files (path, size, mtime), this version and these options.
 */
struct np_digest *np_cache_get(const struct np_cluster_options *options,
                               const struct np_capture *capture, const struct np_part *part);
/* Put it there, atomically; what cannot be written is not cached. */
void np_cache_put(const struct np_cluster_options *options, const struct np_capture *capture,
                  const struct np_part *part, const struct np_digest *digest);

/* The pieces of these, for tests. Everything that the digest depends on, as text: */
void np_cache_key(const struct np_cluster_options *options, const struct np_capture *capture,
                  const struct np_part *part, struct np_buf *key);
/* A file's contents. decode: NULL when they are damaged or of another key. */
void np_cache_encode(np_str key, const struct np_digest *digest, struct np_buf *out);
struct np_digest *np_cache_decode(np_str bytes, np_str key, const struct np_part *part);
/* Remove digests that are too old, then the longest unused until the rest fits. */
enum { NP_CACHE_MAX_DAYS = 30 };
#define NP_CACHE_MAX_BYTES (UINT64_C(2) << 30)
void np_cache_sweep(const char *dir, uint64_t max_bytes);

/* ── share.c: several processes ── */

/*
 * Which of several processes (mpirun) this is; 0 of 1 without. Ranks are shared out
 * evenly: row i belongs to process i % np_share_count().
 */
unsigned np_share_index(void);
unsigned np_share_count(void);

/*
 * Wait for all others and tell them how it went here. What is wrong anywhere is wrong
 * for all: NP_OK only when every process is well and sees the same ranks. With `status`
 * not NP_OK, `err` is what went wrong here; else it is filled. After a failure this
 * process is on its own. `cluster` may be NULL when `status` is a failure.
 */
enum np_status np_share_agree(const struct np_cluster *cluster, enum np_status status,
                              struct np_err *err);

/*
 * Brings all digests and reasons to process 0, where they are adopted in order of rank; the
 * others are done then. Errors: E_NOMEM, E_IO when a process is gone.
 */
enum np_status np_share_gather(struct np_cluster *self, struct np_err *err);

/* All tables that a digest of this cluster may have, NULL-terminated; np_free() it. NULL:
 * out of memory. */
const struct np_table_desc **np_cluster_tables(const struct np_cluster *self);

#endif
