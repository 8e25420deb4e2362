/*
 * Causes and what they cost (diagnosis_methods.md §3 "Cost of a cause").
 *
 * The cost of (rank, cause) within one group is the sum, over the collectives in
 * which that was the reason for the last arrival, of last minus second last
 * arrival: the time by which the group had to wait for this alone. One slow rank
 * delays several groups one after the other (tp, then dp), which is the same time
 * seen again; so the cost is that of the group where it is largest.
 */
#ifndef NP_CLUSTER_DIAG_COST_H
#define NP_CLUSTER_DIAG_COST_H

#include "cluster/diag.h"

struct np_diag_cause {
	uint32_t rank;  /* row */
	uint8_t cause;  /* enum np_cause */
	uint8_t depth;  /* the most groups that the blame came through */
	uint32_t group; /* where it costs most; TRANSFER: the group that is slow */
	np_ns cost;     /* over all steps */
	np_ns waits;    /* of all others in all groups, summed */
	size_t count;   /* collectives of that group that it delayed */
	size_t of;      /* collectives that the group had */
	uint32_t worst; /* the instance with the largest delay */
	bool accused;   /* above the noise */
};

struct np_diag_causes {
	NP_VEC(struct np_diag_cause) list; /* by cost, largest first */
};

#define NP_ACCUSE_SHARE  0.01 /* of the step: a cause below it is noise */
#define NP_ACCUSE_COUNT  3    /* collectives at least … */
#define NP_ACCUSE_PART   0.2  /* … and that part of the group's */
#define NP_ACCUSE_TIMES  3.0  /* … and that many times what a typical rank costs by itself */
#define NP_ACCUSE_SINGLE 0.05 /* of the step: accused however seldom it was */

enum { NP_ACCUSE_FEW = 2 }; /* ranks up to which nothing is typical */

/* false: out of memory. Release with np_vec_release(&out->list). */
bool np_diag_cost(const struct np_diagnosis *self, struct np_diag_causes *out);

#endif
