/*
 * Between the three files of the fusion analysis: kernels as chains, and what
 * fusing a stretch of them could save.
 *
 *   stream 2   Add ─▶ RmsNorm ─▶ MatMul │ hcom… │ Cast ─▶ Add ─▶ …
 *   run          3        2         1      0       9       8        kernels until the next
 *                                                                   break
 *   save[i+1] - save[i]   what the pair (i, i+1) saves:  mte3 of i + mte2 of i+1
 *   room[i+1] - room[i]   what kernel i spends on anything but computing
 *
 * A stretch saves at most the sum of its pairs, and never more than its room
 * (pipes overlap, so mte2 + mte3 may exceed the duration).
 *
 * Breaks: another stream or step, collectives, attention (a kernel that is fused
 * already), AI CPU, sync (requirements §2.10, scope rules).
 */
#ifndef NP_ANALYSIS_FUSION_H
#define NP_ANALYSIS_FUSION_H

#include "analysis/group.h"
#include "analysis/pmu.h"

enum { NP_GRAM_MIN = 3, NP_GRAM_MAX = 8 };

struct np_chain {
	size_t n;
	uint32_t *row;            /* kernel rows, stream by stream, in order of start */
	uint32_t *type;           /* string ids */
	uint8_t *run;             /* kernels from here to the break, at most 255; 0: a break */
	np_ns *save, *room, *dur; /* sums before i; n + 1 entries */
	uint32_t *cubes;          /* matmuls before i; n + 1 entries */
	bool *used;               /* belongs to a candidate already */
	bool measured;            /* by PMU; else by fixed ratios */
};

/* What was found: a known pattern, or a sequence that the data repeat. */
struct np_candidate {
	const struct np_pattern *pattern; /* NULL: a frequent sequence */
	uint32_t at, length;              /* the first occurrence, index in the chain */
	uint32_t count;
	np_ns total, low, high; /* durations; range of the saving */
};

struct np_candidates {
	NP_VEC(struct np_candidate) of;
};

struct np_pattern {
	const char *name, *advice;
	double low, high; /* saved share of the duration where the PMU says nothing */
};

/* Sums over [at, at + length). */
np_ns np_chain_dur(const struct np_chain *chain, size_t at, size_t length);
np_ns np_chain_save(const struct np_chain *chain, size_t at, size_t length);

/* Known patterns, longest first; marks what they use. false: out of memory. */
bool np_fusion_match(const struct np_analysis *self, struct np_chain *chain,
                     struct np_candidates *out);

/* Frequent sequences among what is not used yet; marks what they use. false: out of memory. */
bool np_fusion_grams(const struct np_analysis *self, struct np_chain *chain,
                     struct np_candidates *out);

#endif
