/*
 * Causes and what they cost (diagnosis_methods.md §3 "Cost of a cause").
 *
 * The cost of (rank, cause) within one group is the sum, over the collectives in
 * which that was the reason for the last arrival, of last minus second last
 * arrival: the time by which the group had to wait for this alone. One slow rank
 * delays several groups one after the other (tp, then dp), which is the same time
 * seen again; so the cost is that of the group where it is largest.
 *
 * Jitter makes every rank come last now and then. So the delays of the group are
 * taken with a sign, those of this cause positive, all others negative: of jitter
 * the sum is nothing or less, of a slow rank it is nearly its cost, and t tells
 * the two apart.
 *
 * And cards differ by a percent or two. Whoever is accused of computing or idling
 * stands out among its peers, the ranks of its pipeline stage, over all steps.
 */
#ifndef NP_CLUSTER_DIAG_COST_H
#define NP_CLUSTER_DIAG_COST_H

#include "cluster/diag.h"

struct np_diag_cause {
	uint32_t rank;       /* row */
	uint8_t cause;       /* enum np_cause */
	uint8_t depth;       /* the most groups that the blame came through */
	uint32_t group;      /* where it costs most; TRANSFER: the group that is slow */
	np_ns cost;          /* over all steps */
	np_ns waits;         /* of all others in all groups, summed */
	size_t count;        /* collectives of that group that it delayed */
	size_t of;           /* collectives that the group had */
	uint32_t worst;      /* the instance with the largest delay */
	uint32_t late_group; /* where it came late: `group` but for TRANSFER */
	np_ns net;           /* cost less what the others' delays in that group cost */
	double t;     /* of the delays in that group, its own positive, the others' negative */
	bool accused; /* above the noise */
};

struct np_diag_causes {
	NP_VEC(struct np_diag_cause) list; /* by cost, largest first */
};

#define NP_ACCUSE_SHARE  0.01 /* of the step: a cause below it is noise */
#define NP_ACCUSE_COUNT  3    /* collectives at least … */
#define NP_ACCUSE_PART   0.2  /* … and that part of the group's */
#define NP_ACCUSE_T      5.0  /* … and not by chance: t of its lead over the others' delays */
#define NP_ACCUSE_MORE   0.05 /* its computing exceeds that of a typical peer by this part */
#define NP_ACCUSE_Z      3.5  /* … and its computing or idle time the peers' spread: robust z */
#define NP_ACCUSE_SINGLE 0.05 /* of the step: accused however seldom it was */

/* false: out of memory. Release with np_vec_release(&out->list). */
bool np_diag_cost(const struct np_diagnosis *self, struct np_diag_causes *out);

#endif
