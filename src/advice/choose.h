/* Which rank and step of a cluster each dimension looks at. Private to src/advice/. */
#ifndef NP_ADVICE_CHOOSE_H
#define NP_ADVICE_CHOOSE_H

#include "advice/checker.h"
#include "cluster/timeline.h"

struct np_choice {
	const struct np_capture *capture; /* NULL: none */
	int64_t rank;
	bool has_step;
	int64_t step;
};

/*
 * The worst (rank, step) for the dimension, as the official tool chooses
 * (cluster_and_advisor.md §3.1), among captures that have kernels: most computing for
 * computation, most free time for schedule and memory, least bandwidth for communication.
 * Where ranks differ by less than the rule, or nothing tells: the first rank, all steps.
 * `cluster` NULL: the first capture with data. The user's --rank and --step go first.
 */
void np_advice_choose(const struct np_advice *self, enum np_dimension dimension,
                      struct np_choice *out);

/*
 * The worst rank and step for computation or schedule, and the best rank of the same step,
 * and for computation of the same stage of a pipeline; false where they differ by less than
 * the rule, or nothing tells, or memory is out. choose_pair.c
 */
bool np_advice_choose_pair(const struct np_advice *self, enum np_dimension dimension,
                           struct np_choice *slow, struct np_choice *fast, double *gap_us);

/* Has it kernels that the checkers of a rank can look at? */
bool np_advice_has_kernels(const struct np_capture *capture);

/*
 * For computation in a pipeline: ranks of different stages have different work, so of every
 * stage whose ranks differ by the rule or more the slowest (rank, step), in order of the
 * stages; of more than NP_STAGE_CHOICES those that differ most (a note says so). *n = 0:
 * no stages are known, or none has such ranks; then np_advice_choose() tells. false: out of
 * memory. choose_stages.c
 */
enum { NP_STAGE_CHOICES = 8 };
bool np_advice_choose_stages(const struct np_advice *self, struct np_choice out[NP_STAGE_CHOICES],
                             size_t *n);

/* Stage of the pipeline of each rank of the cluster, NP_NO_U32 where it is not known; *n = 0:
 * no stages are known. An np_alloc'd array; NULL: out of memory. choose_stages.c */
uint32_t *np_advice_stages(const struct np_advice *self, uint32_t *n);

/* The spread of a figure over the ranks and steps, for both. */
struct np_spread {
	double max, min, sum;
	double best;    /* the largest of a rank with kernels */
	size_t n, rank; /* … and that rank, row of the cluster; SIZE_MAX: none */
	int64_t step;   /* … and its step */
};

/* The figure of a row of steps. */
double np_advice_value(const struct np_timeline_steps *steps, size_t row,
                       enum np_dimension dimension);

/* Only rows of the cluster for which rows[] is `row` (NULL: all). True when the rule says that
 * the largest is worth a look. */
bool np_advice_spread(const struct np_advice *self, enum np_dimension dimension,
                      const uint32_t *rows, uint32_t row, struct np_spread *out);
/* The rank and step of a spread, as a choice. */
void np_advice_take(const struct np_advice *self, const struct np_spread *spread,
                    struct np_choice *out);

/* For communication: the rank (with kernels) and step of the least SDMA bandwidth, by the
 * digests of communication.json; leaves *out as it is when nothing tells. choose_link.c */
void np_advice_least_bandwidth(const struct np_advice *self, struct np_choice *out);

#endif
