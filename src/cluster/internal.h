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

/* ── share.c: several processes ── */

/*
 * Which of several processes (mpirun) this is; 0 of 1 without. Ranks are shared out
 * evenly: row i belongs to process i % np_share_count(). np_share_gather() brings all
 * digests and reasons to process 0; the others are done then.
 */
unsigned np_share_index(void);
unsigned np_share_count(void);
enum np_status np_share_gather(struct np_cluster *self, struct np_err *err);

#endif
