/*
 * slow rank (cluster_and_advisor.md §3.2): ranks whose computing, uncovered communication or
 * free time in a step differ by more than 5 % of the mean step.
 *
 * Within a step: the official tool takes the largest and the smallest of all steps together,
 * so steps of different length look like a slow rank (docs/differences.md).
 */
#include <math.h>

#include "advice/cluster_rows.h"
#include "report/lang.h"

static const struct np_column columns[] = {
	{"step", "", NP_COL_INT, "step id"},
	{"rank_id", "", NP_COL_INT, "rank"},
	{"compute(us)", "", NP_COL_REAL, "computing"},
	{"communication(us)", "", NP_COL_REAL, "communication that computing does not hide"},
	{"free(us)", "", NP_COL_REAL, "neither"},
};

enum { COMPUTING, COMMUNICATION, FREE, N_KINDS };

static const struct {
	const char *title, *advice;
} kinds[N_KINDS] = {
	{NP_N("computing: rank %lld takes %.3f ms longer than rank %lld in %s, %.1f %% of the mean "
              "step"),
         NP_N("Has that rank more work (sequence lengths, experts, layers), or is its card slower "
              "(frequency, temperature, other processes)? Compare the two ranks.")},
	{NP_N("communication: rank %lld takes %.3f ms longer than rank %lld in %s, %.1f %% of the "
              "mean "
              "step"),
         NP_N("The rank with least communication comes last, and the others wait for it: look at "
              "what it does before its collectives (npuprof cluster -m diagnose).")},
	{NP_N("idle device: rank %lld takes %.3f ms longer than rank %lld in %s, %.1f %% of the "
              "mean "
              "step"),
         NP_N("The host of that rank does not issue work in time: other processes, garbage "
              "collection, data loading, log level. Look at schedule of that rank.")},
};

/* The step in which the ranks differ most. */
struct gap {
	double us, share, gain_us;
	const struct np_step_row *max, *min;
	size_t steps, found; /* judged, and above the threshold */
};

/* rows[0…n) are the ranks of one step. */
static void judge(const struct np_advice *self, const struct np_step_row *rows, size_t n,
                  size_t kind, struct gap *gap)
{
	const struct np_step_row *max = rows, *min = rows;
	double sum = 0, all = 0;
	for (size_t i = 0; i < n; i++) {
		max = rows[i].us[kind] > max->us[kind] ? &rows[i] : max;
		min = rows[i].us[kind] < min->us[kind] ? &rows[i] : min;
		sum += rows[i].us[kind];
		all += rows[i].us[COMPUTING] + rows[i].us[COMMUNICATION] + rows[i].us[FREE];
	}
	double us = max->us[kind] - min->us[kind], share = all > 0 ? us / (all / (double)n) : 0;
	double mean = sum / (double)n;
	gap->steps++;
	if (!(share > np_rule_value(self, "slow_rank_gap")))
		return;
	gap->found++;
	/* won when the slowest rank becomes like the mean; waiting ends with the last to come */
	gap->gain_us += kind == COMMUNICATION ? mean - min->us[kind] : max->us[kind] - mean;
	if (us > gap->us) {
		gap->us = us;
		gap->share = share;
		gap->max = max;
		gap->min = min;
	}
}

static void add_evidence(struct np_advice *self, struct np_finding *finding,
                         const struct np_step_row *row)
{
	const struct np_cluster_rank *rank = &self->cluster->ranks.v[row->rank];
	char name[NP_STEP_NAME_SIZE];
	np_finding_evidence(finding, rank->capture->path, NULL, np_step_name(row->step, name),
	                    "rank %lld: computing %.3f, communication %.3f, free %.3f us",
	                    (long long)rank->rank, row->us[COMPUTING], row->us[COMMUNICATION],
	                    row->us[FREE]);
}

static void tell(struct np_advice *self, const struct np_checker *checker, size_t kind,
                 const struct gap *gap)
{
	const struct np_cluster_rank *slow = &self->cluster->ranks.v[gap->max->rank];
	const struct np_cluster_rank *fast = &self->cluster->ranks.v[gap->min->rank];
	char name[NP_STEP_NAME_SIZE];
	struct np_problem_text text = {.code = "ADVICE_SLOW_RANK",
	                               .count = gap->found,
	                               .total_us = gap->us,
	                               .gain_us = gap->gain_us / (double)gap->steps,
	                               .advice = kinds[kind].advice};
	struct np_finding *finding = np_advice_problem(
		self, checker, &text, kinds[kind].title, (long long)slow->rank, gap->us / 1000,
		(long long)fast->rank, np_step_name(gap->max->step, name), gap->share * 100);
	add_evidence(self, finding, gap->max);
	add_evidence(self, finding, gap->min);
	if (kind == FREE)
		np_finding_command(finding, "npuprof analyze %s",
		                   np_shell_quote(self->report, slow->capture->path));
	else
		np_finding_command(finding, "npuprof compare %s %s",
		                   np_shell_quote(self->report, fast->capture->path),
		                   np_shell_quote(self->report, slow->capture->path));
}

static void fill(struct np_advice *self, const struct np_checker *checker,
                 const struct np_step_rows *rows)
{
	struct np_table *table = NP_ADVICE_TABLE(self, checker, columns);
	for (size_t i = 0; i < rows->n; i++) {
		if (rows->v[i].step == NP_NO_I64)
			np_cell_na(table);
		else
			np_cell_int(table, rows->v[i].step);
		np_cell_int(table, self->cluster->ranks.v[rows->v[i].rank].rank);
		for (size_t k = 0; k < N_KINDS; k++)
			np_cell_real(table, rows->v[i].us[k]);
	}
}

static void run(struct np_advice *self, const struct np_checker *checker)
{
	struct np_step_rows rows;
	struct gap gaps[N_KINDS] = {{0}};
	self->oom |= !np_advice_step_rows(self, &rows);
	for (size_t i = 0, end; i < rows.n; i = end) {
		for (end = i + 1; end < rows.n && rows.v[end].step == rows.v[i].step;)
			end++;
		for (size_t k = 0; end - i > 1 && k < N_KINDS; k++)
			judge(self, &rows.v[i], end - i, k, &gaps[k]);
	}
	if (!self->oom && gaps[0].steps == 0)
		np_advice_unknown(self, checker,
		                  "no two ranks have a step of step_trace_time in common");
	for (size_t k = 0; !self->oom && k < N_KINDS; k++)
		if (gaps[k].found > 0)
			tell(self, checker, k, &gaps[k]);
	if (!self->oom && rows.n > 0)
		fill(self, checker, &rows);
	np_vec_release(&rows);
}

const struct np_checker np_checker_slow_rank = {
	.name = "slow_rank",
	.dimension = NP_DIM_CLUSTER,
	.category = NP_N("slow rank"),
	.category_zh = "慢卡分析",
	.run = run,
};
