/* Operator Dispatch Issues (cluster_and_advisor.md §3.5): operators compiled while training. */
#include "advice/host.h"
#include "report/lang.h"

static const char *const names[] = {"aclopCompileAndExecute", "aclopCompileAndExecuteV2", NULL};

static const struct np_column columns[] = {
	{"Issues", "", NP_COL_TEXT, "what it is about"},
	{"op name", "", NP_COL_TEXT, "the call"},
	{"counts", "", NP_COL_INT, "calls"},
	{"total time", "us", NP_COL_REAL, "sum of their durations, us"},
};

static void run(struct np_advice *self, const struct np_checker *checker)
{
	struct np_host_calls calls;
	struct np_problem_text text = {
		.code = "ADVICE_DISPATCH",
		.advice = NP_N(
			"Put torch_npu.npu.set_compile_mode(jit_compile=False) and "
			"torch_npu.npu.config.allow_internal_format = False at the entry of the "
			"script, so that operators come from the binary package.")};
	np_host_calls_named(self, NP_HOST_ACL, names, &calls);
	if ((double)calls.rows.n >= np_rule_value(self, "dispatch_compiles") && !self->oom) {
		np_host_calls_worth(self, &calls, &text);
		struct np_finding *finding = np_advice_problem(
			self, checker, &text,
			"operators were compiled %zu times while the model ran, for %.1f ms in all",
			calls.rows.n, (double)calls.total / 1e6);
		np_host_calls_evidence(self, &calls, finding);
		struct np_table *table = NP_ADVICE_TABLE(self, checker, columns);
		np_cell_word(table, "operator dispatch");
		np_cell_cstr(table, "aclopCompileAndExecute");
		np_cell_int(table, (int64_t)calls.rows.n);
		np_cell_real(table, (double)calls.total / 1e3);
	}
	np_host_calls_release(&calls);
}

const struct np_checker np_checker_dispatch = {
	.name = "dispatch",
	.dimension = NP_DIM_SCHEDULE,
	.category = "Operator Dispatch Issues",
	.category_zh = "算子下发问题",
	.run = run,
	.load = NP_HOST_ARGS,
};
