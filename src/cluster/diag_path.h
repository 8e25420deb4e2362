/*
 * The critical path of a step across ranks (diagnosis_methods.md §4).
 *
 * Backwards from the step's latest end: what the rank did since its last exposed
 * collective, the collective's transfer, and then on at the rank that came last,
 * at its arrival. Waiting is never on the path. The parts sum to the length of
 * the step exactly; where clocks can't be trusted there is no common length, and
 * the path is its own measure.
 */
#ifndef NP_CLUSTER_DIAG_PATH_H
#define NP_CLUSTER_DIAG_PATH_H

#include "cluster/diag.h"

enum np_path_bound {
	NP_BOUND_COMPUTE,  /* computing */
	NP_BOUND_IDLE,     /* the device idles: host, dependency */
	NP_BOUND_UNKNOWN,  /* computing or idle, of a rank without kernels */
	NP_BOUND_TRANSFER, /* the wire: from the last arrival to the end */
	NP_BOUND_COMM,     /* exposed communication that is not matched across ranks */
	NP_BOUND_START,    /* before the rank's first op or kernel of the step */
	NP_BOUND_CLOCK,    /* what clocks do not explain: ends before the last arrival */
	NP_N_BOUNDS,
};

struct np_path_segment {
	int64_t step;
	uint32_t rank;     /* row */
	uint8_t bound;     /* enum np_path_bound */
	uint32_t instance; /* TRANSFER: which; else the one behind it; NP_DIAG_NONE */
	np_ns start, dur;  /* common clock */
};

struct np_path {
	np_ns by_bound[NP_N_BOUNDS];
	np_ns *by_rank;        /* n_ranks */
	np_ns total;           /* = sum of by_bound = sum of by_rank */
	size_t changes, steps; /* how often the path changes rank, over all steps */
	NP_VEC(struct np_path_segment) longest; /* the longest, longest first */
};

enum { NP_PATH_LONGEST = 10 };

/* Also fills self->total and self->n_steps. false: out of memory. np_path_release() always. */
bool np_diag_path(struct np_diagnosis *self, struct np_path *out);
void np_path_release(struct np_path *self);

const char *np_path_bound_name(enum np_path_bound bound);

#endif
