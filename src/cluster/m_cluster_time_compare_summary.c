/*
 * cluster_time_compare_summary (cluster_and_advisor.md §2.10): ClusterTimeSummary of two sets
 * of captures beside each other. The official tool compares the tables of two earlier runs;
 * here both are made of the captures.
 */
#include <math.h>
#include <stdlib.h>

#include "cluster/cluster_time.h"
#include "cluster/export.h"
#include "cluster/internal.h"
#include "cluster/parts.h"

extern const struct np_recipe np_recipe_cluster_time_summary;

static const char SUMMARY[] = "ClusterTimeSummary";

#define THREE(name)                                                          \
	{name, "us", NP_COL_REAL, "as in ClusterTimeSummary"},               \
		{name "Base", "us", NP_COL_REAL, "of the captures of --bp"}, \
	{                                                                    \
		name "Diff", "us", NP_COL_REAL, "the first less the second"  \
	}

static const struct np_column columns[] = {
	{"rank", "", NP_COL_INT, "rank"},
	{"step", "", NP_COL_INT, "step"},
	THREE("stepTime"),
	THREE("computation"),
	THREE("communicationNotOverlapComputation"),
	THREE("communicationOverlapComputation"),
	THREE("communication"),
	THREE("free"),
	THREE("communicationWaitStageTime"),
	THREE("communicationTransmitStageTime"),
	THREE("memory"),
	THREE("memoryNotOverlapComputationCommunication"),
};

/* The other side: its own captures, cluster and report. */
struct base {
	struct np_captures *all;
	struct np_report *report;
	struct np_cluster_options options;
	struct np_cluster cluster;
	bool opened;
	struct np_time_rows rows;
};

static const struct np_recipe *const base_recipes[] = {&np_recipe_cluster_time_summary};

static void close_base(struct base *self)
{
	np_time_rows_release(&self->rows);
	if (self->opened)
		np_cluster_close(&self->cluster);
	np_report_free(self->report);
	np_captures_free(self->all);
}

static enum np_status open_base(const struct np_cluster *cluster, struct base *self,
                                struct np_err *err)
{
	self->options = *cluster->options;
	self->options.recipes = base_recipes;
	self->options.n_recipes = 1;
	self->options.progress = NULL;
	self->report = np_report_new("cluster");
	if (!self->report)
		return np_err_nomem(err);
	NP_TRY(np_discover(cluster->options->bp, &self->all, err));
	self->opened = true;
	NP_TRY(np_cluster_open(&self->cluster, self->all, &self->options, self->report, err));
	if (self->cluster.refused)
		return NP_OK;
	self->cluster.alone = true;
	NP_TRY(np_cluster_map(&self->cluster, err));
	if (!np_time_rows_make(&self->cluster, &self->rows))
		return np_err_nomem(err);
	np_time_rows_tell(&self->rows, &self->cluster, &np_recipe_cluster_time_summary);
	return NP_OK;
}

/* What was found about the base is said of the base. */
static void tell_base(struct np_cluster *cluster, const struct base *base)
{
	for (size_t i = 0; i < base->report->findings.n; i++) {
		const struct np_finding *from = base->report->findings.v[i];
		struct np_finding *to = np_report_finding(cluster->report, from->code,
		                                          from->severity, "--bp: %s", from->title);
		for (size_t e = 0; e < from->evidence.n; e++)
			np_finding_evidence(
				to, from->evidence.v[e].file, from->evidence.v[e].column,
				from->evidence.v[e].rows, "%s",
				from->evidence.v[e].text ? from->evidence.v[e].text : "");
	}
	np_cluster_exit(cluster, base->report->exit_code);
}

static void compare_row(const struct np_time_row *a, const struct np_time_row *b,
                        struct np_table *table)
{
	np_cell_int(table, a->rank);
	np_cell_int(table, a->step);
	for (size_t c = 0; c < NP_TIME_COLUMNS; c++) {
		np_cell_real(table, a->us[c]);
		np_cell_real(table, b->us[c]);
		np_cell_real(table, a->us[c] - b->us[c]);
	}
}

static int order_of(const struct np_time_row *a, const struct np_time_row *b)
{
	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	return (a->step > b->step) - (a->step < b->step);
}

/* Both are by rank and step. Rows of one side only are told. */
static void compare(struct np_cluster *cluster, const struct np_recipe *recipe,
                    const struct np_time_rows *ours, const struct np_time_rows *base)
{
	size_t i = 0, j = 0, both = 0;
	struct np_table *table = NULL;
	while (i < ours->v.n && j < base->v.n) {
		int order = order_of(&ours->v.v[i], &base->v.v[j]);
		if (order == 0) {
			if (!table)
				table = NP_REPORT_TABLE(
					cluster->report, "ClusterTimeCompareSummary",
					"Time of each step beside that of --bp", columns);
			compare_row(&ours->v.v[i], &base->v.v[j], table);
			both++;
		}
		i += order <= 0;
		j += order >= 0;
	}
	if (both == 0) {
		np_cluster_nothing(cluster, recipe,
		                   "no rank and step is on both sides (%zu rows here, %zu in "
		                   "--bp)",
		                   ours->v.n, base->v.n);
	} else if (both < ours->v.n || both < base->v.n) {
		(void)np_report_finding(cluster->report, "CLUSTER_BASE_PARTLY", NP_WARNING,
		                        "%zu rows here and %zu rows of --bp have no counterpart",
		                        ours->v.n - both, base->v.n - both);
		np_cluster_exit(cluster, 3);
	}
}

static enum np_status reduce(struct np_cluster *cluster, const struct np_recipe *self,
                             struct np_err *err)
{
	struct base base = {.all = NULL};
	struct np_time_rows rows = {.has = NULL};
	struct np_err why = {0};
	enum np_status status = NP_OK;
	if (!cluster->options->bp) {
		np_cluster_nothing(cluster, self, "there is no --bp to compare with");
		return NP_OK;
	}
	if (!np_time_rows_make(cluster, &rows))
		status = np_err_nomem(err);
	else
		status = open_base(cluster, &base, &why);
	if (status == NP_OK) {
		np_time_rows_tell(&rows, cluster, self);
		tell_base(cluster, &base);
		if (!np_export_table(cluster, SUMMARY) && rows.v.n > 0)
			np_time_rows_table(&rows, cluster->report);
		if (!base.cluster.refused)
			compare(cluster, self, &rows, &base.rows);
	} else if (status == NP_E_NOMEM) {
		(void)np_err_nomem(err);
	} else {
		np_cluster_nothing(cluster, self, "--bp: %s", why.msg);
		status = NP_OK;
	}
	np_time_rows_release(&rows);
	close_base(&base);
	return status;
}

static const struct np_part *const parts[] = {&np_part_cluster_time, &np_part_comm_calls, NULL};

static const struct np_recipe_file files[] = {
	{.table = SUMMARY},
	{.table = "ClusterTimeCompareSummary", .csv = "cluster_time_compare_summary.csv"},
	{.table = NULL},
};

const struct np_recipe np_recipe_cluster_time_compare_summary = {
	.name = "cluster_time_compare_summary",
	.dir = "ClusterTimeCompareSummary",
	.summary = NP_N("time of each rank and step beside that of other captures (--bp)"),
	.parts = parts,
	.reduce = reduce,
	.files = files,
};
