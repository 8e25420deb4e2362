/*
 * slow rank (cluster_and_advisor.md §3.2): ranks whose computing, uncovered communication or
 * free time in a step differ by more than 5 % of the mean step. In a pipeline ranks are
 * compared within their stage; where only stages differ, that is what is told.
 *
 * Within a step: the official tool takes the largest and the smallest of all steps together,
 * so steps of different length look like a slow rank (docs/differences.md).
 */
#include <math.h>

#include "advice/choose.h"
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

/* How ranks of one step differ. */
struct spread {
	double us, share, gain_us;
	const struct np_step_row *max, *min;
};

/* The step in which the ranks differ most. */
struct gap {
	struct spread widest;
	double gain_us;
	size_t steps, found; /* judged, and above the threshold */
};

/* Whom a rank is compared with. */
struct gaps {
	struct gap within[N_KINDS]; /* ranks of the same stage of the pipeline */
	struct gap across[N_KINDS]; /* all ranks */
};

enum { ALL_STAGES = -1 };

/* rows[0…n) are the ranks of one step, of which those of `stage` count. */
static struct spread spread_of(const struct np_step_row *rows, size_t n, size_t kind,
                               const uint32_t *stages, int64_t stage)
{
	const struct np_step_row *max = NULL, *min = NULL;
	double sum = 0, all = 0, ranks = 0;
	for (size_t i = 0; i < n; i++) {
		if (stage != ALL_STAGES && stages[rows[i].rank] != stage)
			continue;
		max = !max || rows[i].us[kind] > max->us[kind] ? &rows[i] : max;
		min = !min || rows[i].us[kind] < min->us[kind] ? &rows[i] : min;
		sum += rows[i].us[kind];
		all += rows[i].us[COMPUTING] + rows[i].us[COMMUNICATION] + rows[i].us[FREE];
		ranks++;
	}
	if (!max || !min || max == min)
		return (struct spread){0}; /* one rank, or all alike */
	double us = max->us[kind] - min->us[kind], mean = sum / ranks;
	return (struct spread){
		.us = us,
		.share = all > 0 ? us / (all / ranks) : 0,
		/* won when the slowest becomes like the mean; waiting ends with the last to come */
		.gain_us = kind == COMMUNICATION ? mean - min->us[kind] : max->us[kind] - mean,
		.max = max,
		.min = min};
}

static void add(const struct np_advice *self, struct gap *gap, const struct spread *spread)
{
	gap->steps++;
	if (!(spread->share > np_rule_value(self, "slow_rank_gap")))
		return;
	gap->found++;
	gap->gain_us += spread->gain_us;
	if (spread->us > gap->widest.us)
		gap->widest = *spread;
}

static void judge(const struct np_advice *self, const struct np_step_row *rows, size_t n,
                  const uint32_t *stages, uint32_t n_stages, struct gaps *gaps)
{
	for (size_t k = 0; k < N_KINDS; k++) {
		struct spread all = spread_of(rows, n, k, stages, ALL_STAGES), widest = {0};
		for (uint32_t s = 0; n_stages > 1 && s < n_stages; s++) {
			struct spread spread = spread_of(rows, n, k, stages, s);
			widest = spread.us > widest.us ? spread : widest;
		}
		add(self, &gaps->across[k], &all);
		add(self, &gaps->within[k], &widest);
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

/* Ranks of different stages of a pipeline have different work: neither card nor host is slow. */
static bool stages_differ(const struct gap *gap, const uint32_t *stages)
{
	uint32_t slow = stages[gap->widest.max->rank], fast = stages[gap->widest.min->rank];
	return slow != fast && slow != NP_NO_U32 && fast != NP_NO_U32;
}

static void tell(struct np_advice *self, const struct np_checker *checker, size_t kind,
                 const struct gap *gap, const uint32_t *stages)
{
	const struct np_step_row *max = gap->widest.max, *min = gap->widest.min;
	const struct np_cluster_rank *slow = &self->cluster->ranks.v[max->rank];
	const struct np_cluster_rank *fast = &self->cluster->ranks.v[min->rank];
	bool differ = stages_differ(gap, stages);
	char name[NP_STEP_NAME_SIZE];
	struct np_problem_text text = {
		.code = "ADVICE_SLOW_RANK",
		.count = gap->found,
		.total_us = gap->widest.us,
		.gain_us = gap->gain_us / (double)gap->steps,
		.advice = differ ? NP_N("First share out the layers evenly "
	                                "(CLUSTER_STAGE_IMBALANCE tells by how much); then "
	                                "compare the ranks of one stage.")
	                         : kinds[kind].advice};
	struct np_finding *finding =
		np_advice_problem(self, checker, &text, kinds[kind].title, (long long)slow->rank,
	                          gap->widest.us / 1000, (long long)fast->rank,
	                          np_step_name(max->step, name), gap->widest.share * 100);
	add_evidence(self, finding, max);
	add_evidence(self, finding, min);
	if (differ) {
		np_finding_detail(finding,
		                  "Stages of the pipeline: rank %lld is in stage %u, rank %lld in "
		                  "stage %u; stages have different work.",
		                  (long long)slow->rank, stages[max->rank], (long long)fast->rank,
		                  stages[min->rank]);
		np_finding_command(finding, "npuprof cluster -m pp_chart,slow_rank %s",
		                   np_shell_quote(self->report, self->all->input));
	} else if (kind == FREE) {
		np_finding_command(finding, "npuprof analyze %s",
		                   np_shell_quote(self->report, slow->capture->path));
	} else {
		np_finding_command(finding, "npuprof compare %s %s",
		                   np_shell_quote(self->report, fast->capture->path),
		                   np_shell_quote(self->report, slow->capture->path));
	}
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
	struct gaps gaps = {0};
	uint32_t n_stages, *stages = np_advice_stages(self, &n_stages);
	self->oom |= !np_advice_step_rows(self, &rows) || !stages;
	for (size_t i = 0, end; !self->oom && i < rows.n; i = end) {
		for (end = i + 1; end < rows.n && rows.v[end].step == rows.v[i].step;)
			end++;
		if (end - i > 1)
			judge(self, &rows.v[i], end - i, stages, n_stages, &gaps);
	}
	if (!self->oom && gaps.across[0].steps == 0)
		np_advice_unknown(self, checker,
		                  "no two ranks have a step of step_trace_time in common");
	for (size_t k = 0; !self->oom && k < N_KINDS; k++) {
		/* stages that differ are told where their own ranks do not */
		const struct gap *gap =
			gaps.within[k].widest.max ? &gaps.within[k] : &gaps.across[k];
		if (gap->widest.max)
			tell(self, checker, k, gap, stages);
	}
	if (!self->oom && rows.n > 0)
		fill(self, checker, &rows);
	np_vec_release(&rows);
	np_free(stages);
}

const struct np_checker np_checker_slow_rank = {
	.name = "slow_rank",
	.dimension = NP_DIM_CLUSTER,
	.category = NP_N("slow rank"),
	.category_zh = "慢卡分析",
	.run = run,
};
