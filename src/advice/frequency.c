/*
 * AI Core Frequency Issues (cluster_and_advisor.md §3.4): cube operators that ran at less than
 * the nominal frequency.
 *
 *   MHz      1800 ─────────┐        ┌──────
 *                     1200 └────────┘
 *   kernels  ████ ███ ██      ██ ██    ███     of each the mean over its own time counts
 *
 * Text and databases alike (the official tool never looks at a database's samples). Where the
 * raw dump's info.json is not there, nominal is the largest frequency that was seen.
 */
#include "analysis/frequency.h"

#include <math.h>
#include <stdlib.h>

#include "advice/kernels.h"
#include "report/lang.h"

static const struct np_column columns[] = {
	{"Operator name", "", NP_COL_TEXT, "name of the kernel"},
	{"Count", "", NP_COL_INT, "calls while the frequency was known"},
	{"Total duration(us)", "", NP_COL_REAL, "sum of their durations"},
	{"AI CORE frequency decreased ratio", "", NP_COL_REAL,
         "mean of (nominal - frequency) / nominal"},
	{"Average frequency", "", NP_COL_REAL, "MHz, mean of the calls"},
	{"Max frequency", "", NP_COL_REAL, "MHz, of the fastest call"},
	{"Min frequency", "", NP_COL_REAL, "MHz, of the slowest call"},
};

struct clock {
	const struct np_freq_samples *samples;
	double *before; /* MHz times ns up to each sample */
	double nominal;
};

/* Index of the sample that holds at this time, SIZE_MAX before the first. */
static size_t sample_at(const struct np_freq_samples *samples, np_ns time)
{
	size_t low = 0, high = samples->of.n;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (samples->of.v[middle].start <= time)
			low = middle + 1;
		else
			high = middle;
	}
	return low - 1;
}

static double integral(const struct clock *clock, np_ns time)
{
	size_t i = sample_at(clock->samples, time);
	const struct np_freq_sample *sample = &clock->samples->of.v[i];
	return clock->before[i] + sample->mhz * (double)(time - sample->start);
}

/* Mean frequency of a time range, NaN when it began before the first sample. */
static double frequency_in(const struct clock *clock, np_ns start, np_ns dur)
{
	size_t first = sample_at(clock->samples, start);
	if (first == SIZE_MAX)
		return NAN;
	if (dur <= 0 || first == sample_at(clock->samples, start + dur))
		return clock->samples->of.v[first].mhz; /* exact, as almost always */
	return (integral(clock, start + dur) - integral(clock, start)) / (double)dur;
}

static bool clock_init(struct clock *self, const struct np_freq_samples *samples, double nominal)
{
	double seen = 0;
	*self = (struct clock){.samples = samples};
	self->before = np_realloc(NULL, samples->of.n, sizeof *self->before);
	if (!self->before)
		return false;
	for (size_t i = 0; i < samples->of.n; i++) {
		const struct np_freq_sample *at = &samples->of.v[i];
		self->before[i] = i == 0 ? 0
		                         : self->before[i - 1] +
		                                   at[-1].mhz * (double)(at->start - at[-1].start);
		seen = at->mhz > seen ? at->mhz : seen;
	}
	self->nominal = nominal > 0 ? nominal : seen;
	return true;
}

/* ── operators ── */

struct slowed {
	uint32_t example;
	size_t n;
	np_ns total;
	double sum, max, min, drop; /* drop: sum over the calls */
	double lost_ns;
};

struct slowed_list {
	NP_VEC(struct slowed) of;
	np_ns total;
	size_t n;
	double lost_ns;
};

static struct slowed measure(const struct np_analysis *rank, const struct clock *clock,
                             const struct np_op_groups *groups, const struct np_op_group *group)
{
	const struct np_kernels *kernels = &rank->profile->kernels;
	struct slowed out = {.example = group->example, .min = INFINITY};
	for (uint32_t i = 0; i < group->n; i++) {
		uint32_t row = groups->rows[group->first + i];
		double mhz = frequency_in(clock, kernels->start_ns[row], kernels->dur_ns[row]);
		if (isnan(mhz))
			continue;
		double drop = mhz < clock->nominal ? 1 - mhz / clock->nominal : 0;
		out.n++;
		out.total = np_ns_sum(out.total, kernels->dur_ns[row]);
		out.sum += mhz;
		out.max = mhz > out.max ? mhz : out.max;
		out.min = mhz < out.min ? mhz : out.min;
		out.drop += drop;
		out.lost_ns += drop * (double)kernels->dur_ns[row];
	}
	return out;
}

static int longest_first(const void *a, const void *b)
{
	const struct slowed *x = a, *y = b;
	if (x->total != y->total)
		return x->total > y->total ? -1 : 1;
	return (x->example > y->example) - (x->example < y->example);
}

static bool gather(struct np_advice *self, const struct clock *clock, struct slowed_list *out)
{
	const struct np_analysis *rank = self->rank;
	double least = np_rule_value(self, "frequency_drop");
	struct np_op_groups groups = {0};
	size_t n = 0;
	uint32_t *order = np_op_order(rank, false, &n);
	bool ok = order && np_op_groups_build(rank, NP_BY_NAME, order, n, &groups);
	for (size_t g = 0; ok && g < groups.n; g++) {
		uint32_t row = groups.groups[g].example;
		if (!np_kernel_on(rank, row, "AI_CORE") && !np_kernel_on(rank, row, "MIX_AIC"))
			continue;
		struct slowed one = measure(rank, clock, &groups, &groups.groups[g]);
		/* the rounding of 1 - 1710 / 1800 must not decide */
		if (one.n == 0 || one.drop / (double)one.n < least - 1e-9)
			continue;
		out->total = np_ns_sum(out->total, one.total);
		out->n += one.n;
		out->lost_ns += one.lost_ns;
		ok = np_vec_push(&out->of, one);
	}
	if (ok && out->of.n > 1)
		qsort(out->of.v, out->of.n, sizeof *out->of.v, longest_first);
	np_op_groups_release(&groups);
	np_free(order);
	return ok;
}

static void put_rows(struct np_advice *self, const struct np_checker *checker,
                     const struct slowed_list *list)
{
	struct np_table *table = NP_ADVICE_TABLE(self, checker, columns);
	size_t most = (size_t)np_rule_value(self, "table_rows");
	for (size_t i = 0; i < list->of.n && i < most; i++) {
		const struct slowed *one = &list->of.v[i];
		np_cell_id(self->rank, table, self->rank->profile->kernels.name[one->example]);
		np_cell_int(table, (int64_t)one->n);
		np_cell_real(table, (double)one->total / 1e3);
		np_cell_real(table, one->drop / (double)one->n);
		np_cell_real(table, one->sum / (double)one->n);
		np_cell_real(table, one->max);
		np_cell_real(table, one->min);
	}
}

static void tell(struct np_advice *self, const struct np_checker *checker,
                 const struct clock *clock, const struct slowed_list *list)
{
	const struct slowed *first = &list->of.v[0];
	np_str name = np_str_sub(
		np_text(self->rank, self->rank->profile->kernels.name[first->example]), 0, 120);
	struct np_problem_text text = {
		.code = "ADVICE_FREQUENCY",
		.count = list->n,
		.total_us = np_per_step_us(self, list->total),
		.gain_us = list->lost_ns / 1000 / self->steps,
		.advice =
			NP_N("Compare temperature and power (npu-smi info) with cards that are not "
	                     "slowed; cooling and power limits come before code."),
		.command = "npu-smi info",
	};
	struct np_finding *finding = np_advice_problem(
		self, checker, &text,
		"%zu calls of %zu cube operators ran below the %.0f MHz of the AI cores", list->n,
		list->of.n, clock->nominal);
	np_finding_evidence(finding, np_kernel_source(self->rank), "AI Core Freq", NULL,
	                    "%.*s: %zu calls, mean %.0f MHz, least %.0f MHz", NP_FMT(name),
	                    first->n, first->sum / (double)first->n, first->min);
	put_rows(self, checker, list);
}

static void run(struct np_advice *self, const struct np_checker *checker)
{
	const struct np_chip *chip = &self->rank->capture->chip;
	struct np_freq_samples samples = {0};
	struct slowed_list list = {.n = 0};
	struct clock clock = {.before = NULL};
	bool ok = np_freq_samples_read(self->rank, &samples);
	if (ok && samples.of.n > 0) {
		ok = clock_init(&clock, &samples, chip->recorded ? chip->aic_mhz : NAN) &&
		     gather(self, &clock, &list);
		if (ok && list.of.n > 0)
			tell(self, checker, &clock, &list);
	}
	np_free(clock.before);
	np_vec_release(&samples.of);
	np_vec_release(&list.of);
	self->oom |= !ok;
}

const struct np_checker np_checker_frequency = {
	.name = "frequency",
	.dimension = NP_DIM_COMPUTATION,
	.category = NP_N("AI Core Frequency Issues"),
	.category_zh = "AI Core 频率问题",
	.run = run,
};
