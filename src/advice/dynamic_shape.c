/*
 * Operator Dynamic Shape Issues (cluster_and_advisor.md §3.4): no operator is static.
 *
 * That is normal with jit_compile=False, which a capture does not tell; so it is said only
 * where there is something to win by it: calls that compile while the device idles, or kernels
 * that convert internal formats; and where the host was not recorded. Without the column OP State (Level0 as text,
 * older databases) nothing is said: the official tool takes its absence for "dynamic".
 */
#include <math.h>

#include "advice/kernels.h"
#include "report/lang.h"

struct costs {
	size_t compiles, converts;
	np_ns compile; /* while the device had nothing to do */
	np_ns convert;
};

/* Do kernels tell their state, and is none static? */
static bool all_dynamic(const struct np_analysis *rank)
{
	const struct np_profile *profile = rank->profile;
	uint32_t dynamic = np_intern_find(&profile->strings, NP_STR("dynamic"));
	uint32_t fixed = np_intern_find(&profile->strings, NP_STR("static"));
	size_t n = 0;
	for (size_t i = 0; i < rank->n_rows; i++) {
		uint32_t state = profile->kernels.op_state[rank->rows[i]];
		if (fixed != NP_ID_NONE && state == fixed)
			return false;
		n += dynamic != NP_ID_NONE && state == dynamic;
	}
	return n > 0;
}

/* When the device worked. */
static bool busy_time(const struct np_analysis *rank, struct np_intervals *out)
{
	bool ok = true;
	for (size_t i = 0; ok && i < rank->compute.n; i++)
		ok = np_intervals_add(out, rank->compute.v[i].start, rank->compute.v[i].end);
	for (size_t i = 0; ok && i < rank->comm.n; i++)
		ok = np_intervals_add(out, rank->comm.v[i].start, rank->comm.v[i].end);
	np_intervals_merge(out);
	return ok;
}

static bool is_compile(const struct np_analysis *rank, size_t op)
{
	return rank->profile->host_ops.layer[op] == NP_HOST_ACL &&
	       np_str_starts(np_text(rank, rank->profile->host_ops.name[op]),
	                     NP_STR("aclopCompileAndExecute"));
}

/* Calls that compile in the looked-at steps. */
static bool count_compiles(const struct np_analysis *rank, struct costs *out)
{
	const struct np_host_ops *ops = &rank->profile->host_ops;
	np_ns from = rank->spans.v[0].host_start, to = rank->spans.v[rank->spans.n - 1].host_end;
	struct np_intervals busy = {0};
	struct np_cover cover = {0};
	bool ok = busy_time(rank, &busy) && np_cover_init(&cover, &busy);
	for (size_t i = 0; ok && i < ops->n; i++) {
		np_ns start = ops->start_ns[i], dur = ops->dur_ns[i];
		bool within = from == NP_NO_I64 || to == NP_NO_I64 || (start >= from && start < to);
		if (!within || !is_compile(rank, i))
			continue;
		out->compiles++;
		out->compile =
			np_ns_sum(out->compile, dur - np_cover_length(&cover, start, start + dur));
	}
	np_cover_release(&cover);
	np_intervals_release(&busy);
	return ok;
}

static void count_converts(const struct np_analysis *rank, struct costs *out)
{
	for (size_t i = 0; i < rank->n_rows; i++) {
		uint32_t row = rank->rows[i];
		if (!np_str_starts(np_text(rank, np_op_type(rank, row)), NP_STR("TransData")))
			continue;
		out->converts++;
		out->convert = np_ns_sum(out->convert, rank->profile->kernels.dur_ns[row]);
	}
}

/* Not even whether anything was compiled is known. */
static struct np_finding *tell_unknown(struct np_advice *self, const struct np_checker *checker,
                                       const struct np_problem_text *text)
{
	return np_advice_problem(
		self, checker, text,
		"all operators are of dynamic shape; whether the host compiled any "
		"is not recorded");
}

static struct np_finding *tell_costs(struct np_advice *self, const struct np_checker *checker,
                                     const struct np_problem_text *text, const struct costs *costs)
{
	return np_advice_problem(self, checker, text,
	                         "all operators are of dynamic shape; the device idled %.1f us per "
	                         "step in %zu calls that compile, and %zu TransData kernels took "
	                         "%.1f us",
	                         np_per_step_us(self, costs->compile), costs->compiles,
	                         costs->converts, np_per_step_us(self, costs->convert));
}

static void run(struct np_advice *self, const struct np_checker *checker)
{
	const struct np_analysis *rank = self->rank;
	struct costs costs = {0};
	if (rank->capture->framework != NP_FW_TORCH || !all_dynamic(rank))
		return;
	self->oom |= !count_compiles(rank, &costs);
	count_converts(rank, &costs);
	bool nothing = costs.compiles + costs.converts == 0;
	if (nothing && rank->profile->host_ops.n > 0)
		return;
	double us = np_per_step_us(self, np_ns_sum(costs.compile, costs.convert));
	struct np_problem_text text = {
		.code = "ADVICE_DYNAMIC_SHAPE",
		.count = 1,
		.total_us = nothing ? NAN : us,
		.gain_us = nothing ? NAN : us,
		.advice = NP_N("At the entrance of the script: "
	                       "torch_npu.npu.set_compile_mode(jit_compile=False) and "
	                       "torch_npu.npu.config.allow_internal_format = False (nothing to do "
	                       "where both are set)."),
	};
	struct np_finding *finding = nothing ? tell_unknown(self, checker, &text)
	                                     : tell_costs(self, checker, &text, &costs);
	np_finding_evidence(finding, np_kernel_source(rank), "OP State, Type", "Type = TransData",
	                    "%zu kernels, %.1f us in all", costs.converts,
	                    (double)costs.convert / 1e3);
}

const struct np_checker np_checker_dynamic_shape = {
	.name = "dynamic_shape",
	.dimension = NP_DIM_COMPUTATION,
	.category = NP_N("Operator Dynamic Shape Issues"),
	.category_zh = "动态 shape 算子",
	.run = run,
};
