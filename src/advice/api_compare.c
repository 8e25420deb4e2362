/*
 * Api compare (cluster_and_advisor.md §3.8): what the host of a slow rank does, beside a fast
 * one or the capture of --bp. A ratio above 1 is an operator that takes longer on the target:
 * the official tool divides the other way round (docs/differences.md).
 */
#include <math.h>

#include "advice/beside.h"
#include "report/lang.h"

static const struct np_column columns[] = {
	{"Order Id", "", NP_COL_INT, "by how much longer the target takes per step"},
	{"api name", "", NP_COL_TEXT, "operator of the framework"},
	{"Total Duration(ms)", "", NP_COL_REAL, "of the target"},
	{"Self Time(ms)", "", NP_COL_REAL, "without the operators inside, on the same thread"},
	{"Avg Duration(ms)", "", NP_COL_REAL, "of the target"},
	{"Calls", "", NP_COL_INT, "of the target"},
	{"Benchmark  Total Duration(ms)", "", NP_COL_REAL, "of the benchmark"},
	{"Benchmark  Self Time(ms)", "", NP_COL_REAL, "of the benchmark"},
	{"Benchmark  Avg Duration(ms)", "", NP_COL_REAL, "of the benchmark"},
	{"Benchmark  Calls", "", NP_COL_INT, "of the benchmark"},
	{"Diff Total Ratio", "", NP_COL_REAL, "target by benchmark, per step"},
	{"Diff Self Ratio", "", NP_COL_REAL, "target by benchmark, per step"},
	{"Diff Avg Ratio", "", NP_COL_REAL, "target by benchmark"},
	{"Diff Calls Ratio", "", NP_COL_REAL, "target by benchmark, per step"},
};

enum { SHOWN = 3 }; /* rows of evidence */

static double average(const struct np_beside_sum *sum)
{
	return sum->calls > 0 ? sum->total_ns / (double)sum->calls : 0;
}

static void add_side(struct np_table *table, const struct np_beside_sum *sum)
{
	if (sum->calls == 0) {
		for (int i = 0; i < 3; i++)
			np_cell_na(table);
		np_cell_int(table, 0);
		return;
	}
	np_cell_real(table, sum->total_ns / 1e6);
	np_cell_real(table, sum->self_ns / 1e6);
	np_cell_real(table, average(sum) / 1e6);
	np_cell_int(table, (int64_t)sum->calls);
}

static void fill(struct np_advice *self, const struct np_checker *checker,
                 const struct np_beside *beside)
{
	struct np_table *table = np_report_table(self->report, checker->name, beside->title,
	                                         columns, sizeof columns / sizeof *columns);
	const unsigned *steps = beside->steps;
	for (size_t i = 0; i < beside->lines.n; i++) {
		const struct np_beside_line *line = &beside->lines.v[i];
		const struct np_beside_sum *t = &line->sum[NP_TARGET];
		const struct np_beside_sum *b = &line->sum[NP_BENCHMARK];
		np_cell_int(table, (int64_t)i + 1);
		np_cell_text(table, np_intern_get(&beside->strings, line->a));
		add_side(table, t);
		add_side(table, b);
		np_beside_ratio(table, t->total_ns / steps[NP_TARGET],
		                b->total_ns / steps[NP_BENCHMARK]);
		np_beside_ratio(table, t->self_ns / steps[NP_TARGET],
		                b->self_ns / steps[NP_BENCHMARK]);
		np_beside_ratio(table, average(t), average(b));
		np_beside_ratio(table, (double)t->calls / steps[NP_TARGET],
		                (double)b->calls / steps[NP_BENCHMARK]);
	}
}

static double self_us(const struct np_beside *beside, const struct np_beside_line *line,
                      unsigned side)
{
	return line->sum[side].self_ns / 1000 / beside->steps[side];
}

/* Time on the host is not time of the step: what a change wins is known of a cluster only,
 * where the idle times of the two ranks are. */
static void tell(struct np_advice *self, const struct np_checker *checker,
                 const struct np_beside *beside, double target_us, double benchmark_us)
{
	double longer_us = target_us - benchmark_us;
	struct np_problem_text text = {
		.code = "ADVICE_API_COMPARE",
		.count = beside->lines.n,
		.total_us = NAN,
		.gain_us = isnan(beside->gap_us) ? NAN : fmin(longer_us, beside->gap_us),
		.advice = NP_N(
			"Look at the operators on top of the table: more calls mean other code or "
			"data, a longer average means a slower or busier host.")};
	struct np_finding *finding = np_advice_problem(
		self, checker, &text,
		"%s: the operators of the target take the host %.3f ms longer per step",
		beside->title, longer_us / 1000);
	for (size_t i = 0; i < beside->lines.n && i < SHOWN; i++) {
		const struct np_beside_line *line = &beside->lines.v[i];
		np_str name = np_intern_get(&beside->strings, line->a);
		double target = np_beside_ns(beside, line, NP_TARGET) / 1000;
		double benchmark = np_beside_ns(beside, line, NP_BENCHMARK) / 1000;
		if (target > benchmark)
			np_finding_evidence(finding, NULL, NULL, NULL,
			                    "%.*s: %.3f us per step, %.3f us there", NP_FMT(name),
			                    target, benchmark);
	}
}

static void run(struct np_advice *self, const struct np_checker *checker)
{
	struct np_beside beside;
	if (np_beside_make(self, checker, NP_DIM_SCHEDULE, NP_HOST_OPS, np_beside_api, &beside)) {
		double us[NP_N_SIDES] = {0};
		for (size_t i = 0; i < beside.lines.n; i++)
			for (unsigned s = 0; s < NP_N_SIDES; s++)
				us[s] += self_us(&beside, &beside.lines.v[i], s);
		fill(self, checker, &beside);
		if (us[NP_TARGET] > us[NP_BENCHMARK])
			tell(self, checker, &beside, us[NP_TARGET], us[NP_BENCHMARK]);
	}
	np_beside_release(&beside);
}

const struct np_checker np_checker_api_compare = {
	.name = "api_compare",
	.dimension = NP_DIM_COMPARISON,
	.category = NP_N("Api compare"),
	.category_zh = "Api compare",
	.run = run,
};
