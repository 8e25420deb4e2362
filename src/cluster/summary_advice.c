/* What stands out: metrics that differ between ranks, and elements that came last. */
#include <math.h>
#include <stdio.h>

#include "cluster/summary.h"

static const double uneven_share = 0.05;

/* ── spread ── */

static const struct np_column spread_columns[] = {
	{"step", "", NP_COL_INT, "step"},
	{"metric", "", NP_COL_TEXT, "column of SummaryRanks"},
	{"max_us", "us", NP_COL_REAL, "largest of the ranks"},
	{"max_rank", "", NP_COL_INT, "that rank"},
	{"min_us", "us", NP_COL_REAL, "smallest of the ranks"},
	{"min_rank", "", NP_COL_INT, "that rank"},
	{"difference_us", "us", NP_COL_REAL, "max - min"},
	{"share", "", NP_COL_PERCENT,
         "difference / mean e2e of the ranks; uneven above a twentieth"},
};

struct spread {
	int64_t step;
	enum np_metric_id metric;
	double max, min, share;
	int64_t max_rank, min_rank;
};

static struct spread spread_of(const struct np_summary *self, size_t i, size_t end,
                               enum np_metric_id metric)
{
	struct spread out = {
		.step = self->rows.v[i].step, .metric = metric, .max = -INFINITY, .min = INFINITY};
	double e2e = 0;
	size_t n = end - i;
	for (; i < end; i++) {
		const struct np_sum_row *row = &self->rows.v[i];
		int64_t rank = self->cluster->ranks.v[row->rank].rank;
		if (row->v[metric] > out.max) {
			out.max = row->v[metric];
			out.max_rank = rank;
		}
		if (row->v[metric] < out.min) {
			out.min = row->v[metric];
			out.min_rank = rank;
		}
		e2e += row->v[NP_SUM_E2E] / (double)n;
	}
	out.share = e2e > 0 && isfinite(out.max) ? (out.max - out.min) / e2e : NAN;
	return out;
}

static void tell_spread(const struct np_summary *self, const struct spread *worst)
{
	if (!(worst->share > uneven_share))
		return;
	struct np_finding *finding =
		np_report_finding(self->cluster->report, "RANKS_UNEVEN", NP_INFO,
	                          "%s differs by %.2f us between ranks: %lld has most, %lld least",
	                          np_sum_names[worst->metric], worst->max - worst->min,
	                          (long long)worst->max_rank, (long long)worst->min_rank);
	np_finding_evidence(finding, NULL, "SummarySpread", NULL,
	                    "%.2f us against %.2f us, %.1f %% of the mean step", worst->max,
	                    worst->min, 100 * worst->share);
	if (worst->metric == NP_SUM_COMPUTING)
		np_finding_advice(finding, "Look for uneven work: layers by stage, tokens by "
		                           "expert, sequence lengths, a slower device.");
	else if (worst->metric == NP_SUM_FREE)
		np_finding_advice(finding, "Look at the host of the rank with most: analyze tells "
		                           "what it waits for.");
	else
		np_finding_advice(finding, "Who communicates long waits for others: see the table "
		                           "SummarySlow and the mode communication.");
}

static void spreads(const struct np_summary *self)
{
	static const enum np_metric_id metrics[] = {NP_SUM_COMPUTING, NP_SUM_NOT_OVERLAPPED,
	                                            NP_SUM_FREE};
	struct np_table *table = NP_REPORT_TABLE(self->cluster->report, "SummarySpread",
	                                         "Differences between ranks", spread_columns);
	struct spread worst[3] = {{.share = 0}};
	for (size_t i = 0, end; i < self->rows.n; i = end) {
		end = np_summary_end(self, i);
		for (int m = 0; end - i > 1 && m < 3; m++) {
			struct spread s = spread_of(self, i, end, metrics[m]);
			worst[m] = s.share > worst[m].share ? s : worst[m];
			np_cell_step(table, s.step);
			np_cell_cstr(table, np_sum_names[s.metric]);
			np_cell_real(table, isfinite(s.max) ? s.max : NAN);
			np_cell_int(table, s.max_rank);
			np_cell_real(table, isfinite(s.min) ? s.min : NAN);
			np_cell_int(table, s.min_rank);
			np_cell_real(table, isfinite(s.max) ? s.max - s.min : NAN);
			np_cell_real(table, s.share);
		}
	}
	for (int m = 0; m < 3; m++)
		tell_spread(self, &worst[m]);
}

/* ── slow elements ── */

static const struct np_column slow_columns[] = {
	{"step", "", NP_COL_INT, "step"},
	{"element", "", NP_COL_TEXT, "place that the others have waited for"},
	{"ranks", "", NP_COL_TEXT, "its ranks"},
	{"dp_us", "us", NP_COL_REAL, "how much longer others of its dp group communicate"},
	{"cp_us", "us", NP_COL_REAL, "the same in its cp group"},
	{"tp_us", "us", NP_COL_REAL, "the same in its tp group"},
	{"total_us", "us", NP_COL_REAL, "sum of the three"},
};

/* Communication times of dp, cp and tp by rank; world of each. */
struct domains {
	double *times[NP_N_DIMS];
	const double *found[NP_N_DIMS];
};

static const enum np_dim judged[] = {NP_DIM_DP, NP_DIM_CP, NP_DIM_TP};

static void release(struct domains *self)
{
	for (int d = 0; d < NP_N_DIMS; d++)
		np_free(self->times[d]);
}

static bool open(struct domains *self, size_t world)
{
	bool ok = true;
	*self = (struct domains){.times = {NULL}};
	for (size_t j = 0; j < sizeof judged / sizeof *judged; j++) {
		self->times[judged[j]] = np_calloc(world, sizeof(double));
		ok = ok && self->times[judged[j]];
	}
	return ok;
}

static bool slow_row(const struct np_summary *self, struct np_table *table, int64_t step,
                     const struct np_slow_list *list, const struct np_slow *slow)
{
	const struct np_strategy *s = &self->plan.strategy;
	char name[NP_ELEMENT_NAME];
	struct np_buf text = {0};
	size_t n = np_view_ranks(s, list->view);
	uint32_t *ranks = np_calloc(n, sizeof *ranks);
	if (ranks)
		np_view_element_ranks(s, list->view, slow->element, ranks);
	for (size_t i = 0; ranks && i < n; i++)
		np_buf_printf(&text, "%s%u", i > 0 ? "," : "", ranks[i]);
	bool ok = ranks && !text.failed;
	np_view_name_of(s, list->view, slow->element, name);
	np_cell_step(table, step);
	np_cell_cstr(table, name);
	np_cell_text(table, np_buf_str(&text));
	np_cell_real(table, slow->sync[NP_DIM_DP]);
	np_cell_real(table, slow->sync[NP_DIM_CP]);
	np_cell_real(table, slow->sync[NP_DIM_TP]);
	np_cell_real(table, slow->total);
	np_buf_release(&text);
	np_free(ranks);
	return ok;
}

static void tell_slow(const struct np_summary *self, int64_t step, const struct np_slow_list *list)
{
	char name[NP_ELEMENT_NAME], rows[40] = "";
	const struct np_slow *worst = &list->v[0];
	if (step != NP_NO_I64)
		(void)snprintf(rows, sizeof rows, "step = %lld", (long long)step);
	np_view_name_of(&self->plan.strategy, list->view, worst->element, name);
	struct np_finding *finding = np_report_finding(
		self->cluster->report, "SLOW_GROUP", NP_INFO,
		"%s is slow: others communicate %.2f us longer", name, worst->total);
	np_finding_evidence(finding, NULL, "SummarySlow", *rows ? rows : NULL,
	                    "dp %.2f us, cp %.2f us, tp %.2f us", worst->sync[NP_DIM_DP],
	                    worst->sync[NP_DIM_CP], worst->sync[NP_DIM_TP]);
	np_finding_advice(finding, "It comes last to the collectives of its groups. Compare its "
	                           "computing and free time with theirs (SummaryRanks).");
}

static bool slow(const struct np_summary *self)
{
	struct np_table *table = NP_REPORT_TABLE(self->cluster->report, "SummarySlow",
	                                         "Who made its groups wait", slow_columns);
	struct domains domains;
	struct np_slow_list worst = {.n = 0};
	int64_t worst_step = 0;
	if (!self->plan.regular)
		return true;
	bool ok = open(&domains, np_strategy_world(&self->plan.strategy));
	for (size_t i = 0; ok && i < self->rows.n; i = np_summary_end(self, i)) {
		int64_t step = self->rows.v[i].step;
		struct np_slow_list list;
		for (size_t j = 0; j < sizeof judged / sizeof *judged; j++) {
			double *times = domains.times[judged[j]];
			domains.found[judged[j]] =
				np_summary_domain(self, step, judged[j], times) ? times : NULL;
		}
		ok = np_slow_elements(&self->plan.strategy, domains.found, &list);
		for (size_t r = 0; ok && r < list.n; r++)
			ok = slow_row(self, table, step, &list, &list.v[r]);
		if (ok && list.n > 0 && (worst.n == 0 || list.v[0].total > worst.v[0].total)) {
			worst = list;
			worst_step = step;
		}
	}
	release(&domains);
	if (ok && worst.n > 0)
		tell_slow(self, worst_step, &worst);
	return ok;
}

bool np_summary_advice(const struct np_summary *self)
{
	spreads(self);
	return slow(self);
}
