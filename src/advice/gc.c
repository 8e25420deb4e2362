/* GC Analysis (cluster_and_advisor.md §3.5): garbage collections that take long. */
#include <stdlib.h>

#include "advice/host.h"
#include "report/lang.h"

static const struct np_column columns[] = {
	{"Rank id", "", NP_COL_INT, "the rank"},
	{"timestamp", "us", NP_COL_INT, "start"},
	{"duration(us)", "", NP_COL_REAL, "how long the host was held"},
};

static int longest_first(const void *a, const void *b, void *ctx)
{
	const struct np_host_ops *ops = ctx;
	unsigned x = *(const unsigned *)a, y = *(const unsigned *)b;
	if (ops->dur_ns[x] != ops->dur_ns[y])
		return ops->dur_ns[x] > ops->dur_ns[y] ? -1 : 1;
	return (x > y) - (x < y);
}

static void tell(struct np_advice *self, const struct np_checker *checker,
                 struct np_host_calls *calls)
{
	struct np_host_ops *ops = &self->rank->profile->host_ops;
	struct np_problem_text text = {
		.code = "ADVICE_GC",
		.advice = NP_N("Collect at fixed points outside of the step: gc.disable(), then "
	                       "gc.collect() every N steps; gc.freeze() after the warm-up; fewer "
	                       "reference cycles.")};
	np_host_calls_worth(self, calls, &text);
	struct np_finding *finding =
		np_advice_problem(self, checker, &text,
	                          "garbage was collected %zu times for %.1f ms in all, which "
	                          "holds the host",
	                          calls->rows.n, (double)calls->total / 1e6);
	np_host_calls_evidence(self, calls, finding);
	struct np_table *table = NP_ADVICE_TABLE(self, checker, columns);
	qsort_r(calls->rows.v, calls->rows.n, sizeof *calls->rows.v, longest_first, ops);
	for (size_t i = 0; i < calls->rows.n; i++) {
		if (self->rank_id == NP_NO_I64)
			np_cell_na(table);
		else
			np_cell_int(table, self->rank_id);
		np_cell_int(table, ops->start_ns[calls->rows.v[i]] / 1000);
		np_cell_real(table, (double)ops->dur_ns[calls->rows.v[i]] / 1000);
	}
}

static void run(struct np_advice *self, const struct np_checker *checker)
{
	const struct np_host_ops *ops = &self->rank->profile->host_ops;
	double least = np_rule_value(self, "gc_us");
	struct np_host_calls calls = {.total = 0};
	for (uint32_t i = 0; i < ops->n; i++)
		if (ops->layer[i] == NP_HOST_GC && (double)ops->dur_ns[i] >= least * 1000)
			self->oom |= !np_host_calls_add(&calls, ops, i);
	if (calls.rows.n > 0 && !self->oom)
		tell(self, checker, &calls);
	np_host_calls_release(&calls);
}

const struct np_checker np_checker_gc = {
	.name = "gc",
	.dimension = NP_DIM_SCHEDULE,
	.category = "GC Analysis",
	.category_zh = "GC 分析",
	.run = run,
};
