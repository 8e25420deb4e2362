/*
 * Sequences of kernels that repeat and could be one kernel (cluster_and_advisor.md
 * §3.5, Fusible Operator Analysis). Private to src/advice/.
 *
 *   kernels    A  B  C  D │hcom│ A  B  C  D …     windows of 3 to 10, none across a break
 *   length 3   0  1        -     0  1             number of (number one shorter, key behind it)
 *   length 4   2           -     2
 *
 * A key is name, input and output shapes. Equal numbers mean equal sequences, so
 * each length is one pass over the kernels, and a sequence that is rare is not
 * looked at again when it grows. An occurrence counts when it is bound itself:
 *
 *   host bound   its kernels' time < fusible_host of its wall time
 *   mte bound    its transfers > fusible_mte of the time of its cores; the official tool
 *                leaves out the time of vector cores, but not their transfers, so that with
 *                it any two transfers of vector kernels make a matmul mte bound
 */
#ifndef NP_ADVICE_FUSIBLE_H
#define NP_ADVICE_FUSIBLE_H

#include "advice/checker.h"

enum { NP_FUSIBLE_LONGEST = 16 };

struct np_sequence {
	uint32_t length, parent; /* the one without its last kernel */
	uint32_t first;       /* of the occurrences that count: index in `rows` of the analysis */
	uint32_t seen, count; /* occurrences; those that count */
	uint32_t longer;      /* largest count of a candidate that begins with it */
	double wall_us, busy_us, mte_us, core_us;
	bool host, mte, told; /* told: a candidate that no longer one stands for */
};

struct np_fusible {
	NP_VEC(struct np_sequence) of;
	uint32_t *number[NP_FUSIBLE_LONGEST + 1]; /* [length][i], NP_NO_U32: none */
	size_t n;                                 /* kernels */
	unsigned shortest, longest;
	bool measured;                      /* by PMU */
	double *busy_us, *mte_us, *core_us; /* sums before i; n + 1 entries */
	double *in_us, *out_us;             /* of each kernel: mte2; fixpipe or mte3 */
};

/* false: out of memory; release in every case. */
bool np_fusible_find(const struct np_advice *self, struct np_fusible *out);
void np_fusible_release(struct np_fusible *self);

#endif
