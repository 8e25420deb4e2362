/*
 * The parallel strategy of a run: which rank does which part of the work.
 *
 *   rank ──place──▶ (dp, pp, cp, tp; ep)         a mixed-radix counter, fast digit first
 *   ranks ──view──▶ elements dp1-pp0-cp1 {6,7}   some digits folded away
 *   ranks ──groups─▶ {0,1} {2,3} …               which communicate along some digits
 *
 * Pure functions of sizes; only np_parallel_of() looks at a cluster. The model is
 * that of MindStudio Insight, so that names and figures can be compared with it.
 */
#ifndef NP_CLUSTER_PARALLEL_H
#define NP_CLUSTER_PARALLEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct np_cluster;

enum np_layout {
	NP_LAYOUT_MEGATRON,    /* Megatron-LM tp-cp-ep-dp-pp */
	NP_LAYOUT_MEGATRON_PP, /* Megatron-LM tp-cp-pp-ep-dp */
	NP_LAYOUT_MINDSPEED,   /* MindSpeed tp-cp-ep-dp-pp: places as Megatron-LM does */
	NP_LAYOUT_MINDIE,      /* MindIE-LLM tp-dp-ep-pp-moetp */
	NP_LAYOUT_VLLM,        /* vLLM tp-pp-dp-ep */
	NP_N_LAYOUTS,
};

enum np_dim { NP_DIM_TP, NP_DIM_CP, NP_DIM_PP, NP_DIM_DP, NP_N_DIMS };

struct np_strategy {
	enum np_layout layout;
	uint32_t size[NP_N_DIMS]; /* each at least 1 */
	uint32_t ep, moe_tp;      /* at least 1; moe_tp is MindIE's alone */
};

enum { NP_WORLD_MAX = 1 << 20, NP_ELEMENT_NAME = 64 };
#define NP_NO_INDEX UINT32_MAX

/* Which digits are folded away, as Insight's tabs are called by what they show. */
enum np_view {
	NP_VIEW_TP, /* nothing: every rank */
	NP_VIEW_CP, /* TP: DP+PP+CP */
	NP_VIEW_PP, /* TP, CP: DP+PP */
	NP_VIEW_DP, /* TP, CP, PP */
	NP_N_VIEWS,
};

const char *np_layout_name(enum np_layout layout); /* "megatron-lm(tp-cp-ep-dp-pp)" */
const char *np_dim_name(enum np_dim dim);          /* "tp" */
const char *np_view_name(enum np_view view);       /* "dp-pp-cp-tp" */

/* Sizes in range, their product at most NP_WORLD_MAX, and EP fits in: else false and the
 * reason. The functions below want a sound strategy, and ranks below its world. */
bool np_strategy_sound(const struct np_strategy *self, const char **why);
size_t np_strategy_world(const struct np_strategy *self);

/* ── places ── */

struct np_place {
	uint32_t digit[NP_N_DIMS]; /* NP_NO_INDEX where unknown */
	uint32_t ep;               /* index in the expert group */
};

void np_strategy_place(const struct np_strategy *self, size_t rank, struct np_place *out);
/* And back; folded digits as 0. */
size_t np_strategy_rank(const struct np_strategy *self, const uint32_t digit[NP_N_DIMS]);

/* ── elements of a view, in the order of their lowest rank ── */

size_t np_view_count(const struct np_strategy *self, enum np_view view);
size_t np_view_of_rank(const struct np_strategy *self, enum np_view view, size_t rank);
/* Digits of element i (folded ones 0) and where it is drawn. */
struct np_element {
	uint32_t digit[NP_N_DIMS];
	uint32_t x, y;
};
void np_view_element(const struct np_strategy *self, enum np_view view, size_t i,
                     struct np_element *out);
/* "dp1-pp0-cp1": digits that are shown and have more than one value; "dp0" if none has. */
void np_view_name_of(const struct np_strategy *self, enum np_view view, size_t i,
                     char out[NP_ELEMENT_NAME]);
/* Ranks of an element, ascending, into out (np_view_ranks() of them). */
size_t np_view_ranks(const struct np_strategy *self, enum np_view view);
void np_view_element_ranks(const struct np_strategy *self, enum np_view view, size_t i,
                           uint32_t *out);

/* ── communication groups ── */

struct np_rank_groups {
	size_t n, size;
	uint32_t *ranks; /* n times `size`, ascending in each */
};

/*
 * Ranks that differ in the digits of the token only: "tp", "cp", "dp", "pp", "dp-cp",
 * "tp-pp" (mp), "tp-dp-cp", …; with experts "ep", "tp-ep", "dp-modulo-ep",
 * "dp-cp-modulo-ep", "tp-ep-pp" (mp_exp), and "moe-tp" of MindIE. E_USAGE: no such
 * token; E_NOMEM. np_rank_groups_release() in every case.
 */
enum np_status np_strategy_groups(const struct np_strategy *self, const char *token,
                                  struct np_rank_groups *out, struct np_err *err);
/* The same for any counter: sizes[0] counts fastest, bit d of `chosen` is sizes[d]. */
bool np_orthogonal_groups(const uint32_t *sizes, size_t n, unsigned chosen,
                          struct np_rank_groups *out);
void np_rank_groups_release(struct np_rank_groups *self);

/* ── figures per rank, folded into the elements of a view ── */

/* NaN: no rank of the element has a figure. In NP_VIEW_DP max is the sum of the maxima of
 * the stages, and min is NaN. */
struct np_fold {
	double max, min;
};

/* by_rank: np_strategy_world() figures, NaN where missing; out: np_view_count() of them. */
void np_fold_times(const struct np_strategy *self, enum np_view view, const double *by_rank,
                   struct np_fold *out);
/* Time of communication in a domain: the mean; all NaN in NP_VIEW_DP. */
void np_fold_mean(const struct np_strategy *self, enum np_view view, const double *by_rank,
                  double *out);

/* ── who made the others wait ── */

enum { NP_SLOW_TOP = 3 };

struct np_slow {
	size_t element;
	double total, sync[NP_N_DIMS]; /* time that others waited more, by domain; 0: not slow */
};

struct np_slow_list {
	enum np_view view; /* of the elements: the deepest domain that has figures */
	size_t n;
	struct np_slow v[NP_SLOW_TOP]; /* the worst first */
};

/*
 * Who communicates least waits least, and is late: sync = longest of the group - own.
 * Slow is sync > 5 % of the longest. Down from dp over cp to tp, inside the three worst
 * of the level above, or in all where none is slow. by_rank[dim]: the times of
 * the domain, NaN where missing, or NULL. Nothing when no domain has figures.
 * false: out of memory.
 */
bool np_slow_elements(const struct np_strategy *self, const double *const by_rank[NP_N_DIMS],
                      struct np_slow_list *out);

/* ── the strategy of a run ── */

enum np_parallel_source {
	NP_PARALLEL_UNKNOWN, /* nothing recorded, or nothing that fits: all are data parallel */
	NP_PARALLEL_ARGS,    /* distributed_args alone */
	NP_PARALLEL_GROUPS,  /* the recorded groups alone */
	NP_PARALLEL_BOTH,    /* both, and they agree */
	NP_PARALLEL_DISPUTE, /* both, and they do not: the groups are believed */
};

struct np_parallel_plan {
	struct np_strategy strategy; /* sound in every case */
	enum np_parallel_source source;
	/* The strategy explains every recorded group and has every rank: elements and groups
	 * of it are right. Else only `places` are, as far as the groups tell. */
	bool regular;
	struct np_place *places; /* by row of cluster->ranks */
	size_t n_problems;
	const char *problems[8]; /* what does not fit, for people; in the cluster's arena */
};

/* Errors: E_NOMEM. np_parallel_release() in every case. */
enum np_status np_parallel_of(struct np_cluster *cluster, struct np_parallel_plan *out,
                              struct np_err *err);
void np_parallel_release(struct np_parallel_plan *self);
/* How it was found, one sentence. */
const char *np_parallel_how(const struct np_parallel_plan *self);
/* The problems as finding PARALLEL_CONTRADICTION, if there are any. */
void np_parallel_tell(const struct np_parallel_plan *self, struct np_cluster *cluster);

#endif
