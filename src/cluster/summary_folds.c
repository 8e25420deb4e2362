/* Times of the ranks folded along the parallel dimensions. */
#include <math.h>

#include "cluster/summary.h"

static const struct np_column fold_columns[] = {
	{"step", "", NP_COL_INT, "step"},
	{"view", "", NP_COL_TEXT, "dimensions that are not folded"},
	{"element", "", NP_COL_TEXT, "place of the ranks that are folded into one"},
	{"ranks", "", NP_COL_TEXT, "those ranks"},
	{"metric", "", NP_COL_TEXT, "column of SummaryRanks"},
	{"max_us", "us", NP_COL_REAL, "largest; in the view dp the sum of the stages' largest"},
	{"min_us", "us", NP_COL_REAL, "smallest"},
	{"range_us", "us", NP_COL_REAL, "max - min"},
};

static const struct np_column domain_columns[] = {
	{"step", "", NP_COL_INT, "step"},
	{"view", "", NP_COL_TEXT, "dimensions that are not folded"},
	{"element", "", NP_COL_TEXT, "place of the ranks that are folded into one"},
	{"ranks", "", NP_COL_TEXT, "those ranks"},
	{"domain", "", NP_COL_TEXT, "groups of this name: tp, cp, pp, dp"},
	{"mean_us", "us", NP_COL_REAL, "mean communication of the ranks in the domain"},
};

/* Room for one step of one run. */
struct room {
	double *by_rank, *means; /* world */
	struct np_fold *folds;   /* world */
	uint32_t *ranks;         /* world */
	struct np_buf text;
};

static bool open(struct room *self, size_t world)
{
	*self = (struct room){.by_rank = np_calloc(world, sizeof *self->by_rank),
	                      .means = np_calloc(world, sizeof *self->means),
	                      .folds = np_calloc(world, sizeof *self->folds),
	                      .ranks = np_calloc(world, sizeof *self->ranks)};
	return self->by_rank && self->means && self->folds && self->ranks;
}

static void release(struct room *self)
{
	np_free(self->by_rank);
	np_free(self->means);
	np_free(self->folds);
	np_free(self->ranks);
	np_buf_release(&self->text);
}

/* A view that folds nothing over the next finer one tells nothing new. */
static bool is_told(const struct np_strategy *s, enum np_view view)
{
	return view != NP_VIEW_TP && np_view_ranks(s, view) > np_view_ranks(s, view - 1);
}

/* step, view, element, ranks */
static void head(struct np_table *table, const struct np_strategy *s, int64_t step,
                 enum np_view view, size_t element, struct room *room)
{
	char name[NP_ELEMENT_NAME];
	size_t n = np_view_ranks(s, view);
	np_view_name_of(s, view, element, name);
	np_view_element_ranks(s, view, element, room->ranks);
	np_buf_clear(&room->text);
	for (size_t i = 0; i < n; i++)
		np_buf_printf(&room->text, "%s%u", i > 0 ? "," : "", room->ranks[i]);
	np_cell_step(table, step);
	np_cell_cstr(table, np_view_name(view));
	np_cell_cstr(table, name);
	np_cell_text(table, np_buf_str(&room->text));
}

static void fold(const struct np_summary *self, struct np_table *table, int64_t step,
                 enum np_view view, enum np_metric_id metric, struct room *room)
{
	const struct np_strategy *s = &self->plan.strategy;
	size_t n = np_view_count(s, view);
	np_fold_times(s, view, room->by_rank, room->folds);
	for (size_t e = 0; e < n; e++) {
		const struct np_fold *f = &room->folds[e];
		if (isnan(f->max))
			continue;
		head(table, s, step, view, e, room);
		np_cell_cstr(table, np_sum_names[metric]);
		np_cell_real(table, f->max);
		np_cell_real(table, f->min);
		np_cell_real(table, f->max - f->min);
	}
}

static void fold_step(const struct np_summary *self, struct np_table *table, size_t i, size_t end,
                      struct room *room)
{
	const struct np_strategy *s = &self->plan.strategy;
	size_t world = np_strategy_world(s);
	for (int m = 0; m < NP_N_SUMS; m++) {
		for (size_t r = 0; r < world; r++)
			room->by_rank[r] = NAN;
		for (size_t u = i; u < end; u++) {
			const struct np_sum_row *row = &self->rows.v[u];
			room->by_rank[self->cluster->ranks.v[row->rank].rank] = row->v[m];
		}
		for (int v = 0; v < NP_N_VIEWS; v++)
			if (is_told(s, (enum np_view)v))
				fold(self, table, self->rows.v[i].step, (enum np_view)v,
				     (enum np_metric_id)m, room);
	}
}

static void domains(const struct np_summary *self, struct np_table *table, int64_t step,
                    struct room *room)
{
	const struct np_strategy *s = &self->plan.strategy;
	for (int d = 0; d < NP_N_DIMS; d++) {
		if (!np_summary_domain(self, step, (enum np_dim)d, room->by_rank))
			continue;
		for (int v = 0; v < NP_VIEW_DP; v++) {
			if (v != NP_VIEW_TP && !is_told(s, (enum np_view)v))
				continue;
			np_fold_mean(s, (enum np_view)v, room->by_rank, room->means);
			for (size_t e = 0; e < np_view_count(s, (enum np_view)v); e++) {
				if (isnan(room->means[e]))
					continue;
				head(table, s, step, (enum np_view)v, e, room);
				np_cell_cstr(table, np_dim_name((enum np_dim)d));
				np_cell_real(table, room->means[e]);
			}
		}
	}
}

bool np_summary_folds(const struct np_summary *self)
{
	struct np_table *folds =
		NP_REPORT_TABLE(self->cluster->report, "SummaryFolds",
	                        "Times folded by parallel dimension", fold_columns);
	struct np_table *means = NP_REPORT_TABLE(self->cluster->report, "SummaryDomains",
	                                         "Communication by domain", domain_columns);
	if (!self->plan.regular)
		return true;
	struct room room;
	bool ok = open(&room, np_strategy_world(&self->plan.strategy));
	for (size_t i = 0, end; ok && i < self->rows.n; i = end) {
		end = np_summary_end(self, i);
		fold_step(self, folds, i, end, &room);
		domains(self, means, self->rows.v[i].step, &room);
	}
	ok = ok && !room.text.failed;
	release(&room);
	return ok;
}
