/*
 * The overall metrics of one rank: where its time went, as the field's comparison
 * tool splits it, so that the figures of both can be laid side by side.
 *
 *   E2E ┬ Computing ┬ Flash Attention, Conv, Matmul (forward/backward, cube/vector)
 *       │           ├ Page Attention, MC2, Vector, Cube, SDMA (Tensor Move)
 *       │           └ Other = Computing - all of these, at least 0
 *       ├ Uncovered Communication ── per group: Wait, Transmit
 *       └ Free Time ┬ SDMA
 *                   └ Free
 *
 * Computing is the union of the kernels, the parts are sums of their durations: on one
 * stream the parts make the whole, on several they may exceed it.
 *
 * A kernel belongs to attention, convolution or matmul when the framework's operator that
 * issued it does (launch → dequeue → enqueue, overall_issue.c), else by its type. Where
 * the capture does not say which core a kernel ran on
 * (Level0 text) Computing is not split.
 */
#ifndef NP_ANALYSIS_OVERALL_H
#define NP_ANALYSIS_OVERALL_H

#include "analysis/analysis.h"

/* id, depth, label */
#define NP_OVERALL_MAP(X)                                                \
	X(COMPUTING, 0, "Computing Time")                                \
	X(MC2, 1, "MC2")                                                 \
	X(FA_FWD, 1, "Flash Attention (Forward)")                        \
	X(FA_FWD_CUBE, 2, "Flash Attention (Forward) (Cube)")            \
	X(FA_FWD_VECTOR, 2, "Flash Attention (Forward) (Vector)")        \
	X(FA_BWD, 1, "Flash Attention (Backward)")                       \
	X(FA_BWD_CUBE, 2, "Flash Attention (Backward) (Cube)")           \
	X(FA_BWD_VECTOR, 2, "Flash Attention (Backward) (Vector)")       \
	X(CONV_FWD, 1, "Conv (Forward)")                                 \
	X(CONV_FWD_CUBE, 2, "Conv (Forward) (Cube)")                     \
	X(CONV_FWD_VECTOR, 2, "Conv (Forward) (Vector)")                 \
	X(CONV_BWD, 1, "Conv (Backward)")                                \
	X(CONV_BWD_CUBE, 2, "Conv (Backward) (Cube)")                    \
	X(CONV_BWD_VECTOR, 2, "Conv (Backward) (Vector)")                \
	X(MATMUL, 1, "Matmul")                                           \
	X(MATMUL_CUBE, 2, "Matmul (Cube)")                               \
	X(MATMUL_VECTOR, 2, "Matmul (Vector)")                           \
	X(PAGE_ATTENTION, 1, "Page Attention")                           \
	X(VECTOR, 1, "Vector")                                           \
	X(VECTOR_TRANS, 2, "Vector (Trans)")                             \
	X(VECTOR_NO_TRANS, 2, "Vector (No Trans)")                       \
	X(CUBE, 1, "Cube")                                               \
	X(TENSOR_MOVE, 1, "SDMA (Tensor Move)")                          \
	X(OTHER, 1, "Other")                                             \
	X(UNCOVERED, 0, "Uncovered Communication Time")                  \
	X(UNCOVERED_OVERLAPPED, 1, "Uncovered Communication Overlapped") \
	X(FREE_TIME, 0, "Free Time")                                     \
	X(SDMA, 1, "SDMA")                                               \
	X(FREE, 1, "Free")                                               \
	X(E2E, 0, "E2E Time")

enum np_overall_id {
#define X(id, depth, label) NP_OVERALL_##id,
	NP_OVERALL_MAP(X)
#undef X
		NP_OVERALL_ROWS
};

struct np_overall_info {
	const char *label;
	int depth;
};
extern const struct np_overall_info np_overall_infos[NP_OVERALL_ROWS];

/* One communication group; ns within the uncovered communication. */
struct np_overall_group {
	uint32_t name; /* string of the profile */
	np_ns total, wait, transmit;
	bool has_wait; /* tasks were recorded, so wait is known */
};

struct np_overall {
	np_ns ns[NP_OVERALL_ROWS];
	int64_t count[NP_OVERALL_ROWS];         /* kernels; NP_NO_I64 where that makes no sense */
	bool split;                             /* Computing could be split */
	NP_VEC(struct np_overall_group) groups; /* in order of appearance */
};

/*
 * Over all kernels of the analysed device, or with --step over that step's. `wide`: E2E
 * reaches from the first to the last device task (copies and events included), as the
 * field's tool has it for databases, else from the first to the last kernel.
 * false: out of memory. np_overall_release() in every case.
 */
bool np_overall_compute(const struct np_analysis *analysis, bool wide, struct np_overall *out);
void np_overall_release(struct np_overall *self);

/* Of np_overall_compute(): `uncovered` by group, into out->groups (overall_comm.c). */
bool np_overall_groups(const struct np_analysis *analysis, const struct np_intervals *uncovered,
                       struct np_overall *out);

/*
 * When the framework issued each kernel: host time by kernel row, NP_NO_I64 where it is
 * unknown. An np_alloc'd array; NULL: out of memory.
 */
np_ns *np_issue_times(const struct np_profile *profile);

#endif
