/*
 * Ranks as people write them: "0,4-7". Sorted, each once.
 */
#ifndef NP_COLLECT_RANK_SET_H
#define NP_COLLECT_RANK_SET_H

#include "base/err.h"
#include "base/mem.h"

enum { NP_RANK_SET_MAX = 1 << 20 };

struct np_rank_set {
	const int64_t *v; /* the arena's */
	size_t n;
};

/* E_USAGE for what is no list of ranks, E_LIMIT for too many. */
enum np_status np_rank_set_parse(struct np_arena *arena, const char *text, struct np_rank_set *out,
                                 struct np_err *err);

#endif
