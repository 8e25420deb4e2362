/*
 * Kernel compare (cluster_and_advisor.md §3.8): what a slow rank computes, beside a fast one or
 * the capture of --bp. A ratio above 1 is a kernel that takes longer on the target: the
 * official tool divides the other way round (docs/differences.md).
 */
#include <math.h>

#include "advice/beside.h"
#include "report/lang.h"

static const struct np_column columns[] = {
	{"Order Id", "", NP_COL_INT, "by how much longer the target takes per step"},
	{"Kernel Type", "", NP_COL_TEXT, "operator type"},
	{"Core Type", "", NP_COL_TEXT, "accelerator core"},
	{"Total Duration(us)", "", NP_COL_REAL, "of the target"},
	{"Avg Duration(us)", "", NP_COL_REAL, "of the target"},
	{"Max Duration(us)", "", NP_COL_REAL, "of the target"},
	{"Min Duration(us)", "", NP_COL_REAL, "of the target"},
	{"Calls", "", NP_COL_INT, "of the target"},
	{"Benchmark  Total Duration(us)", "", NP_COL_REAL, "of the benchmark"},
	{"Benchmark  Avg Duration(us)", "", NP_COL_REAL, "of the benchmark"},
	{"Benchmark  Max Duration(us)", "", NP_COL_REAL, "of the benchmark"},
	{"Benchmark  Min Duration(us)", "", NP_COL_REAL, "of the benchmark"},
	{"Benchmark  Calls", "", NP_COL_INT, "of the benchmark"},
	{"Diff Total Ratio", "", NP_COL_REAL, "target by benchmark, per step"},
	{"Diff Avg Ratio", "", NP_COL_REAL, "target by benchmark"},
};

enum { SHOWN = 3 }; /* rows of evidence */

static double average(const struct np_beside_sum *sum)
{
	return sum->calls > 0 ? sum->total_ns / (double)sum->calls : 0;
}

static void add_side(struct np_table *table, const struct np_beside_sum *sum)
{
	if (sum->calls == 0) {
		for (int i = 0; i < 4; i++)
			np_cell_na(table);
		np_cell_int(table, 0);
		return;
	}
	np_cell_real(table, sum->total_ns / 1000);
	np_cell_real(table, average(sum) / 1000);
	np_cell_real(table, sum->max_ns / 1000);
	np_cell_real(table, sum->min_ns / 1000);
	np_cell_int(table, (int64_t)sum->calls);
}

static void fill(struct np_advice *self, const struct np_checker *checker,
                 const struct np_beside *beside)
{
	struct np_table *table = np_report_table(self->report, checker->name, beside->title,
	                                         columns, sizeof columns / sizeof *columns);
	for (size_t i = 0; i < beside->lines.n; i++) {
		const struct np_beside_line *line = &beside->lines.v[i];
		np_cell_int(table, (int64_t)i + 1);
		np_cell_text(table, np_intern_get(&beside->strings, line->a));
		np_cell_text(table, np_intern_get(&beside->strings, line->b));
		add_side(table, &line->sum[NP_TARGET]);
		add_side(table, &line->sum[NP_BENCHMARK]);
		np_beside_ratio(table, np_beside_ns(beside, line, NP_TARGET),
		                np_beside_ns(beside, line, NP_BENCHMARK));
		np_beside_ratio(table, average(&line->sum[NP_TARGET]),
		                average(&line->sum[NP_BENCHMARK]));
	}
}

static void tell(struct np_advice *self, const struct np_checker *checker,
                 const struct np_beside *beside, double target_us, double benchmark_us)
{
	double longer_us = target_us - benchmark_us;
	struct np_problem_text text = {
		.code = "ADVICE_KERNEL_COMPARE",
		.count = beside->lines.n,
		.total_us = target_us,
		.gain_us = isnan(beside->gap_us) ? longer_us : fmin(longer_us, beside->gap_us),
		.advice = NP_N(
			"Look at the kernels on top of the table: more calls or larger shapes mean "
			"more work, a longer average means a slower card or other settings.")};
	struct np_finding *finding = np_advice_problem(
		self, checker, &text, "%s: the kernels of the target take %.3f ms longer per step",
		beside->title, longer_us / 1000);
	for (size_t i = 0; i < beside->lines.n && i < SHOWN; i++) {
		const struct np_beside_line *line = &beside->lines.v[i];
		np_str type = np_intern_get(&beside->strings, line->a);
		double target = np_beside_ns(beside, line, NP_TARGET) / 1000;
		double benchmark = np_beside_ns(beside, line, NP_BENCHMARK) / 1000;
		if (target > benchmark)
			np_finding_evidence(finding, NULL, NULL, NULL,
			                    "%.*s: %.3f us per step, %.3f us there", NP_FMT(type),
			                    target, benchmark);
	}
}

static void run(struct np_advice *self, const struct np_checker *checker)
{
	struct np_beside beside;
	if (np_beside_make(self, checker, NP_DIM_COMPUTATION, NP_KERNELS, np_beside_kernels,
	                   &beside)) {
		double us[NP_N_SIDES] = {0};
		for (size_t i = 0; i < beside.lines.n; i++)
			for (unsigned s = 0; s < NP_N_SIDES; s++)
				us[s] += np_beside_ns(&beside, &beside.lines.v[i], s) / 1000;
		fill(self, checker, &beside);
		if (us[NP_TARGET] > us[NP_BENCHMARK])
			tell(self, checker, &beside, us[NP_TARGET], us[NP_BENCHMARK]);
	}
	np_beside_release(&beside);
}

const struct np_checker np_checker_kernel_compare = {
	.name = "kernel_compare",
	.dimension = NP_DIM_COMPARISON,
	.category = NP_N("Kernel compare"),
	.category_zh = "Kernel compare",
	.run = run,
};
