/*
 * Vector Operator Perf Analysis (cluster_and_advisor.md §3.4): vector operators whose type
 * takes 1 % of all durations, or a second.
 */
#include "advice/perf.h"
#include "report/lang.h"

static bool wanted(struct np_advice *self, uint32_t row)
{
	return (np_kernel_on(self->rank, row, "AI_VECTOR_CORE") ||
	        np_kernel_on(self->rank, row, "MIX_AIV")) &&
	       np_in_shapes(self->rank, row) != NP_ID_NONE;
}

static const struct np_perf vector = {
	.code = "ADVICE_VECTOR",
	.limits = {{NP_UNIT_MTE2, false, "vector_single", "mte2"},
                   {NP_UNIT_MTE3, false, "vector_single", "mte3"},
                   {NP_UNIT_VEC, false, "vector_single", "vec"}},
	.n_limits = 3,
	.all_rule = "vector_sum",
	.all_name = "vec_mte2_mte3",
	.wanted = wanted,
	.share_rule = "vector_share",
	.advice = NP_N("Bound by mte2 or mte3: the operator runs at the speed of memory; fuse it "
                       "with its neighbours, or use a smaller data type. Room: too little work per "
                       "call, or a tiling that does not overlap; fuse or make it larger."),
};

static void run(struct np_advice *self, const struct np_checker *checker)
{
	const struct np_perf *perfs[] = {&vector};
	np_perf_run(self, checker, perfs, 1);
}

const struct np_checker np_checker_perf_vector = {
	.name = "perf_vector",
	.dimension = NP_DIM_COMPUTATION,
	.category = NP_N("Vector Operator Perf Analysis"),
	.category_zh = "Vector算子性能分析",
	.run = run,
};
