/*
 * Two captures beside each other: target and benchmark, what they have in common by key.
 * Private to src/advice/.
 */
#ifndef NP_ADVICE_BESIDE_H
#define NP_ADVICE_BESIDE_H

#include "advice/choose.h"

enum { NP_TARGET, NP_BENCHMARK, NP_N_SIDES };

struct np_beside_sum {
	double total_ns, self_ns, max_ns, min_ns;
	uint64_t calls;
};

struct np_beside_line {
	uint32_t a, b; /* strings: type and core of kernels; name and "" of operators */
	struct np_beside_sum sum[NP_N_SIDES];
};

struct np_beside {
	struct np_intern strings;
	struct np_map keys;
	NP_VEC(struct np_beside_line) lines;
	unsigned steps[NP_N_SIDES]; /* that were summed; at least 1 */
	np_ns span_ns;              /* length of the target's kernels or operators */
	const char *title; /* "… of Rank1 Step50 and Rank0 Step50", in the arena of the report */
	double gap_us;     /* what cluster data tell between the two; NaN: nothing */
};

/* What is summed: np_beside_kernels or np_beside_api (beside.c). false: out of memory. */
typedef bool np_beside_fn(struct np_beside *self, const struct np_profile *profile,
                          uint32_t step_row, unsigned side);
np_beside_fn np_beside_kernels, np_beside_api;

/*
 * Choose the pair: with --bp the rank of `dimension` and the same of the other side, else the
 * slow and the fast rank of the cluster; load both, sum, order by how much longer the target
 * takes per step. false: there is nothing to compare, or memory is out (self->oom).
 * np_beside_release() in every case.
 */
bool np_beside_make(struct np_advice *advice, const struct np_checker *checker,
                    enum np_dimension dimension, unsigned load, np_beside_fn *sum,
                    struct np_beside *out);
void np_beside_release(struct np_beside *self);

/* ns per step of a side. */
static inline double np_beside_ns(const struct np_beside *self, const struct np_beside_line *line,
                                  unsigned side)
{
	return line->sum[side].total_ns / self->steps[side];
}

/* The cell target / benchmark, rounded to four places; not available when either is 0. */
void np_beside_ratio(struct np_table *table, double target, double benchmark);

#endif
