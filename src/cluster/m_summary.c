/*
 * summary: the page of that name of MindStudio Insight as tables (insight.md §1.5):
 * where the time of each rank and step went, folded along the parallel dimensions,
 * and what stands out.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/internal.h"
#include "cluster/summary.h"
#include "report/lang.h"

const char *const np_sum_names[NP_N_SUMS] = {
	"computing", "pure_computing", "overlapped", "communication_not_overlapped",
	"free",      "preparing",      "e2e",        "communication",
};

size_t np_summary_end(const struct np_summary *self, size_t i)
{
	size_t end = i;
	while (end < self->rows.n && self->rows.v[end].step == self->rows.v[i].step)
		end++;
	return end;
}

/* ── rows ── */

static double or0(double v)
{
	return isnan(v) ? 0 : v;
}

static struct np_sum_row row_of(const struct np_digest_summary_step *in, size_t i, uint32_t rank)
{
	struct np_sum_row row = {.step = in->step[i], .rank = rank, .computed = in->computed[i]};
	double preparing = or0(in->preparing[i]);
	row.v[NP_SUM_COMPUTING] = in->computing[i];
	row.v[NP_SUM_OVERLAPPED] = in->overlapped[i];
	row.v[NP_SUM_PURE] = in->computing[i] - in->overlapped[i];
	row.v[NP_SUM_NOT_OVERLAPPED] = in->comm_not_overlapped[i];
	row.v[NP_SUM_FREE] = in->free[i];
	row.v[NP_SUM_PREPARING] = in->preparing[i];
	row.v[NP_SUM_COMM] = in->comm[i];
	row.v[NP_SUM_E2E] = in->computing[i] + in->comm_not_overlapped[i] + in->free[i] +
	                    (preparing > 0 ? preparing : 0);
	row.stage = in->stage[i];
	row.bubble = in->bubble[i];
	return row;
}

static int by_step_and_rank(const void *a, const void *b)
{
	const struct np_sum_row *x = a, *y = b;
	if (x->step != y->step)
		return x->step < y->step ? -1 : 1;
	return (x->rank > y->rank) - (x->rank < y->rank);
}

/* Several devices of one rank and step: the one that took longest stands for it. */
static void unite(struct np_summary *self)
{
	size_t kept = 0;
	for (size_t i = 0; i < self->rows.n; i++) {
		struct np_sum_row *last = kept > 0 ? &self->rows.v[kept - 1] : NULL;
		const struct np_sum_row *row = &self->rows.v[i];
		if (!last || by_step_and_rank(last, row) != 0)
			self->rows.v[kept++] = *row;
		else if (row->v[NP_SUM_E2E] > last->v[NP_SUM_E2E])
			*last = *row;
	}
	self->rows.n = kept;
}

static bool has_step(const struct np_cluster_rank *rank, int64_t step)
{
	const struct np_digest_summary_step *in = NP_DIGEST_ROWS(rank, np_digest_summary_step);
	for (size_t i = 0; i < in->n; i++)
		if (in->step[i] == step)
			return true;
	return false;
}

static bool collect(struct np_summary *self)
{
	struct np_cluster *cluster = self->cluster;
	for (size_t r = 0; r < cluster->ranks.n; r++) {
		const struct np_digest_summary_step *in =
			NP_DIGEST_ROWS(&cluster->ranks.v[r], np_digest_summary_step);
		for (size_t i = 0; i < in->n; i++)
			if (np_insight_wants(&self->steps, in->step[i]) &&
			    !np_vec_push(&self->rows, row_of(in, i, (uint32_t)r)))
				return false;
	}
	if (self->rows.n > 0)
		qsort(self->rows.v, self->rows.n, sizeof *self->rows.v, by_step_and_rank);
	unite(self);
	return true;
}

/* ── the table by rank ── */

static const struct np_column rank_columns[] = {
	{"step", "", NP_COL_INT, "step"},
	{"rank", "", NP_COL_INT, "rank"},
	{"element", "", NP_COL_TEXT, "its place in the parallel strategy"},
	{"computing_us", "us", NP_COL_REAL, "union of the computing kernels"},
	{"pure_computing_us", "us", NP_COL_REAL, "computing - overlapped"},
	{"overlapped_us", "us", NP_COL_REAL, "communication beside computing"},
	{"communication_not_overlapped_us", "us", NP_COL_REAL, "communication alone"},
	{"free_us", "us", NP_COL_REAL, "neither computing nor communication"},
	{"preparing_us", "us", NP_COL_REAL, "from the start of the step to its first kernel"},
	{"e2e_us", "us", NP_COL_REAL, "computing + not overlapped + free + preparing"},
	{"communication_us", "us", NP_COL_REAL, "overlapped + not overlapped"},
	{"stage_us", "us", NP_COL_REAL, "from the first to the last kernel, without bubble"},
	{"bubble_us", "us", NP_COL_REAL, "receiving from another stage"},
	{"computing_ratio", "", NP_COL_PERCENT, "computing / e2e"},
	{"communication_ratio", "", NP_COL_PERCENT, "communication / e2e, as the viewer's code"},
	{"communication_not_overlapped_ratio", "", NP_COL_PERCENT,
         "not overlapped / e2e, as the viewer's manual"},
	{"source", "", NP_COL_TEXT, "the exporter's step table, or computed from the kernels"},
};

static void element_cell(struct np_table *table, const struct np_summary *self, int64_t rank)
{
	char name[NP_ELEMENT_NAME];
	if (!self->plan.regular) {
		np_cell_na(table);
		return;
	}
	np_view_name_of(&self->plan.strategy, NP_VIEW_TP,
	                np_view_of_rank(&self->plan.strategy, NP_VIEW_TP, (size_t)rank), name);
	np_cell_cstr(table, name);
}

static void ranks(const struct np_summary *self)
{
	struct np_table *table =
		NP_REPORT_TABLE(self->cluster->report, "SummaryRanks",
	                        "Where the time went, by step and rank", rank_columns);
	for (size_t i = 0; i < self->rows.n; i++) {
		const struct np_sum_row *row = &self->rows.v[i];
		double e2e = row->v[NP_SUM_E2E];
		int64_t rank = self->cluster->ranks.v[row->rank].rank;
		np_cell_step(table, row->step);
		np_cell_int(table, rank);
		element_cell(table, self, rank);
		for (int m = 0; m < NP_N_SUMS; m++)
			np_cell_real(table, row->v[m]);
		np_cell_real(table, row->stage);
		np_cell_real(table, row->bubble);
		np_cell_real(table, e2e > 0 ? row->v[NP_SUM_COMPUTING] / e2e : NAN);
		np_cell_real(table, e2e > 0 ? row->v[NP_SUM_COMM] / e2e : NAN);
		np_cell_real(table, e2e > 0 ? row->v[NP_SUM_NOT_OVERLAPPED] / e2e : NAN);
		np_cell_word(table, row->computed ? NP_N("kernels") : NP_N("step table"));
	}
}

/* ── domains ── */

bool np_summary_domain(const struct np_summary *self, int64_t step, enum np_dim dim,
                       double *by_rank)
{
	size_t world = np_strategy_world(&self->plan.strategy);
	bool any = false;
	for (size_t r = 0; r < world; r++)
		by_rank[r] = NAN;
	for (size_t r = 0; r < self->cluster->ranks.n; r++) {
		const struct np_cluster_rank *rank = &self->cluster->ranks.v[r];
		const struct np_digest_insight_time *in =
			NP_DIGEST_ROWS(rank, np_digest_insight_time);
		np_id last = NP_ID_NONE;
		bool wanted = false;
		if (rank->rank < 0 || (uint64_t)rank->rank >= world)
			continue;
		for (size_t i = 0; i < in->n; i++) {
			if (in->step[i] != step || in->group[i] == NP_ID_NONE)
				continue;
			if (in->group[i] != last) {
				const struct np_group *group = np_insight_group(
					rank->capture,
					np_cluster_text(self->cluster, in->group[i]));
				wanted = group && strcmp(group->name, np_dim_name(dim)) == 0;
				last = in->group[i];
			}
			if (!wanted || isnan(in->elapse_ms[i]))
				continue;
			by_rank[rank->rank] = or0(by_rank[rank->rank]) + in->elapse_ms[i] * 1e3;
			any = true;
		}
	}
	return any;
}

/* ── all of it ── */

static bool fill(struct np_summary *self, const struct np_recipe *recipe)
{
	bool *has = np_calloc(self->cluster->ranks.n + 1, sizeof *has);
	bool ok = has && np_summary_base(self);
	if (ok) {
		for (size_t i = 0; i < self->rows.n; i++)
			has[self->rows.v[i].rank] = true;
		np_parallel_tell(&self->plan, self->cluster);
		np_summary_strategy(self);
		ranks(self);
		ok = np_summary_folds(self) && np_summary_advice(self);
		np_summary_detail(self);
		np_cluster_lacking(self->cluster, recipe, has,
		                   "step_trace_time.csv, StepTraceTime or kernels");
	}
	np_free(has);
	return ok;
}

static enum np_status reduce(struct np_cluster *cluster, const struct np_recipe *self,
                             struct np_err *err)
{
	struct np_summary summary = {.cluster = cluster,
	                             .steps = np_insight_steps_of(cluster, has_step)};
	enum np_status status = np_parallel_of(cluster, &summary.plan, err);
	if (status == NP_OK && !collect(&summary))
		status = np_err_nomem(err);
	if (status == NP_OK && summary.rows.n == 0)
		np_cluster_nothing(cluster, self, "no rank has kernels or a step table");
	else if (status == NP_OK && !fill(&summary, self))
		status = np_err_nomem(err);
	np_vec_release(&summary.rows);
	np_parallel_release(&summary.plan);
	return status;
}

static const struct np_part *const parts[] = {&np_part_summary, &np_part_insight_comm, NULL};

static const struct np_recipe_file files[] = {
	{.table = "SummaryBase", .csv = "base.csv"},
	{.table = "SummaryStrategy", .csv = "strategy.csv"},
	{.table = "SummaryRanks", .csv = "ranks.csv"},
	{.table = "SummaryFolds", .csv = "folds.csv"},
	{.table = "SummaryDomains", .csv = "domains.csv"},
	{.table = "SummarySpread", .csv = "spread.csv"},
	{.table = "SummarySlow", .csv = "slow.csv"},
	{.table = "SummaryComputing", .csv = "computing.csv"},
	{.table = "SummaryCommunication", .csv = "communication.csv"},
	{.table = NULL},
};

const struct np_recipe np_recipe_summary = {
	.name = "summary",
	.dir = "Summary",
	.summary = NP_N("where the time of each rank and step went, folded by dimension"),
	.parts = parts,
	.reduce = reduce,
	.files = files,
};
