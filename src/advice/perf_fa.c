/*
 * FA Operator Perf Analysis (cluster_and_advisor.md §3.4): flash attention, forward and
 * backward.
 *
 * Differences: whose bound is mte2 is called so (the official tool says mac), and a sequence
 * length of any number of digits is looked at.
 */
#include <stdio.h>

#include "advice/dims.h"
#include "advice/perf.h"
#include "report/lang.h"

static bool is_type(const struct np_advice *self, uint32_t row, const char *type)
{
	return np_str_is(np_text(self->rank, np_op_type(self->rank, row)), type) &&
	       np_in_shapes(self->rank, row) != NP_ID_NONE;
}

static bool forward(struct np_advice *self, uint32_t row)
{
	return is_type(self, row, "FlashAttentionScore");
}

static bool backward(struct np_advice *self, uint32_t row)
{
	return is_type(self, row, "FlashAttentionScoreGrad");
}

/*
 * Layouts, as shapes tell them: query and the softmax statistics of a forward call.
 *   TND       query T,N,D                          statistics T,N,8     head_dim D
 *   BNSD      query B,N,S,D                        statistics B,N,S,8   head_dim D, sequence S
 *   SBH, BSH  query S,B,H or B,S,H (H = N*D)       statistics B,N,S,8   head_dim H/N, sequence S
 */
static bool sizes(np_str in, np_str statistics_of, int first, int64_t *head, int64_t *sequence)
{
	struct np_dims query = np_dims_of(in, 0), statistics = {.n = 0};
	int n = np_dims_count(statistics_of);
	for (int i = first; i < n && i < 16 && statistics.n == 0; i++) {
		struct np_dims dims = np_dims_of(statistics_of, i);
		if ((dims.n == 4 || dims.n == 3) && dims.of[dims.n - 1] == 8)
			statistics = dims;
	}
	*sequence = 0;
	if (query.n == 4) {
		*head = query.of[3];
		*sequence = query.of[2];
	} else if (query.n == 3 && statistics.n == 4 && statistics.of[1] > 0) {
		*head = query.of[2] / statistics.of[1];
		*sequence = statistics.of[2];
	} else if (query.n == 3 && statistics.n == 3) {
		*head = query.of[2];
	} else {
		return false;
	}
	return true;
}

static bool misfit(struct np_advice *self, int64_t head, int64_t sequence, char *out, size_t size)
{
	int64_t align = (int64_t)np_rule_value(self, "fa_align");
	if (align > 0 && head % align != 0)
		(void)snprintf(out, size, "head dimension is %lld, not a multiple of %lld: pad it",
		               (long long)head, (long long)align);
	else if (align > 0 && sequence % align != 0)
		(void)snprintf(out, size, "sequence length is %lld, not a multiple of %lld: pad it",
		               (long long)sequence, (long long)align);
	else
		return false;
	return true;
}

static bool unaffine_forward(struct np_advice *self, uint32_t row, char *out, size_t size)
{
	const struct np_kernel_shapes *shapes = &self->rank->profile->kernel_shapes;
	int64_t head, sequence;
	return sizes(np_text(self->rank, shapes->in_shapes[row]),
	             np_text(self->rank, shapes->out_shapes[row]), 0, &head, &sequence) &&
	       misfit(self, head, sequence, out, size);
}

/* The statistics are inputs here. */
static bool unaffine_backward(struct np_advice *self, uint32_t row, char *out, size_t size)
{
	np_str in = np_text(self->rank, np_in_shapes(self->rank, row));
	int64_t head, sequence;
	return sizes(in, in, 4, &head, &sequence) && misfit(self, head, sequence, out, size);
}

#define ADVICE                                                                                  \
	NP_N("Pad the head dimension and the sequence to multiples of 128, prefer the layouts " \
	     "BNSD or TND, pass a compressed mask (sparse_mode 2 to 4) instead of a full one, " \
	     "and take longer sequences per call.")

static const struct np_perf perf_forward = {
	.code = "ADVICE_FA",
	.limits = {{NP_UNIT_VEC, false, "fa_vec", "vec"}, {NP_UNIT_MTE2, true, "fa_mte2", "mte2"}},
	.n_limits = 2,
	.all_name = "vec_and_mte2",
	.wanted = forward,
	.unaffine = unaffine_forward,
	.advice = ADVICE,
};

static const struct np_perf perf_backward = {
	.code = "ADVICE_FA",
	.limits = {{NP_UNIT_FIXPIPE, true, "fa_fixpipe", "fixpipe"},
                   {NP_UNIT_MTE2, true, "fa_mte2", "mte2"}},
	.n_limits = 2,
	.all_name = "fixpipe_and_mte2",
	.wanted = backward,
	.unaffine = unaffine_backward,
	.advice = ADVICE,
};

static void run(struct np_advice *self, const struct np_checker *checker)
{
	const struct np_perf *perfs[] = {&perf_forward, &perf_backward};
	np_perf_run(self, checker, perfs, 2);
}

const struct np_checker np_checker_perf_fa = {
	.name = "perf_fa",
	.dimension = NP_DIM_COMPUTATION,
	.category = NP_N("FA Operator Perf Analysis"),
	.category_zh = "FA算子性能分析",
	.run = run,
};
