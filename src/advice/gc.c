/* GC Analysis (cluster_and_advisor.md §3.5): garbage collections that take long. */
#include <math.h>
#include <stdlib.h>

#include "advice/checker.h"

static const struct np_column columns[] = {
	{"timestamp", "", NP_COL_REAL, "start, us"},
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

static void run(struct np_advice *self, const struct np_checker *checker)
{
	struct np_host_ops *ops = &self->rank->profile->host_ops;
	double least = np_rule_value(self, "gc_us");
	NP_VEC(unsigned) rows = {0};
	np_ns total = 0;
	for (unsigned i = 0; i < ops->n; i++) {
		if (ops->layer[i] != NP_HOST_GC || (double)ops->dur_ns[i] < least * 1000)
			continue;
		total += ops->dur_ns[i];
		self->oom |= !np_vec_push(&rows, i);
	}
	if (rows.n > 0) {
		struct np_table *table = NP_ADVICE_TABLE(self, checker, columns);
		double us = np_per_step_us(self, total);
		struct np_problem_text text = {
			.code = "ADVICE_GC",
			.count = rows.n,
			.total_us = us,
			.gain_us = us,
			.advice =
				"Collect at fixed points outside of the step: gc.disable(), then "
				"gc.collect() every N steps; gc.freeze() after the warm-up; fewer "
				"reference cycles."};
		qsort_r(rows.v, rows.n, sizeof *rows.v, longest_first, ops);
		(void)np_advice_problem(self, checker, &text,
		                        "garbage was collected %zu times for %.1f ms in all, which "
		                        "holds the host",
		                        rows.n, (double)total / 1e6);
		for (size_t i = 0; i < rows.n; i++) {
			np_cell_real(table, (double)ops->start_ns[rows.v[i]] / 1000);
			np_cell_real(table, (double)ops->dur_ns[rows.v[i]] / 1000);
		}
	}
	np_vec_release(&rows);
}

const struct np_checker np_checker_gc = {
	.name = "gc",
	.dimension = NP_DIM_SCHEDULE,
	.category = "GC Analysis",
	.category_zh = "GC 分析",
	.run = run,
};
