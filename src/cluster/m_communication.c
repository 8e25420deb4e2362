/*
 * communication: the page of that name of MindStudio Insight as tables (insight.md
 * §1.6): times and bandwidth per step, group and rank, slow ranks, packets, links.
 */
#include <math.h>

#include "cluster/communication.h"
#include "cluster/internal.h"
#include "report/lang.h"

/* ── groups ── */

static const struct np_column group_columns[] = {
	NP_COMM_UNIT_COLUMNS,
	{"ranks", "", NP_COL_TEXT, "members as recorded"},
	{"with_data", "", NP_COL_INT, "ranks that have operations of the group"},
	{"operations", "", NP_COL_INT, "operations of the rank with the most"},
};

static bool members(const struct np_comm_units *self, size_t i, size_t end, struct np_buf *out)
{
	const struct np_group *group = self->units.v[i].recorded;
	np_buf_clear(out);
	for (size_t m = 0; group && m < group->n_ranks; m++)
		np_buf_printf(out, "%s%lld", m > 0 ? "," : "", (long long)group->ranks[m]);
	for (; !group && i < end; i++)
		np_buf_printf(out, "%s%lld", out->len > 0 ? "," : "",
		              (long long)self->cluster->ranks.v[self->units.v[i].rank].rank);
	return !out->failed;
}

static bool groups(const struct np_comm_units *self)
{
	struct np_table *table = NP_REPORT_TABLE(self->cluster->report, "CommunicationGroups",
	                                         "Groups that communicate, by step", group_columns);
	struct np_buf text = {0};
	bool ok = true;
	for (size_t i = 0, end; ok && i < self->units.n; i = end) {
		size_t ops = 0;
		end = np_comm_units_end(self, i);
		for (size_t u = i; u < end; u++)
			ops = self->units.v[u].ops > ops ? self->units.v[u].ops : ops;
		ok = members(self, i, end, &text);
		np_cell_comm_unit(table, self, &self->units.v[i]);
		np_cell_text(table, np_buf_str(&text));
		np_cell_int(table, (int64_t)(end - i));
		np_cell_int(table, (int64_t)ops);
	}
	np_buf_release(&text);
	return ok;
}

/* ── times ── */

static const struct np_column time_columns[] = {
	NP_COMM_UNIT_COLUMNS,
	{"rank", "", NP_COL_INT, "rank"},
	{"operations", "", NP_COL_INT, "how many operations"},
	{"elapsed_ms", "ms", NP_COL_REAL, "sum over the operations, from first to last task"},
	{"transit_ms", "ms", NP_COL_REAL, "time on the wire"},
	{"synchronization_ms", "ms", NP_COL_REAL, "wait before the first transfer"},
	{"wait_ms", "ms", NP_COL_REAL, "wait for others, synchronization included"},
	{"idle_ms", "ms", NP_COL_REAL, "elapsed - transit - wait"},
	{"synchronization_ratio", "", NP_COL_REAL, "synchronization / (synchronization + transit)"},
	{"wait_ratio", "", NP_COL_REAL, "wait / (wait + transit)"},
	{"sdma_gbps", "GB/s", NP_COL_REAL, "size / time on SDMA: HCCS, PCIE and SIO together"},
	{"rdma_gbps", "GB/s", NP_COL_REAL, "size / time on RDMA"},
	{"hccs_gbps", "GB/s", NP_COL_REAL, "size / time on HCCS"},
	{"pcie_gbps", "GB/s", NP_COL_REAL, "size / time on PCIE"},
	{"sio_gbps", "GB/s", NP_COL_REAL, "size / time on SIO"},
};

/* 0 for 0 / 0, as the viewer shows it; NaN stays. */
static double ratio(double part, double rest)
{
	return part + rest == 0 ? 0 : part / (part + rest);
}

static void times(const struct np_comm_units *self)
{
	struct np_table *table =
		NP_REPORT_TABLE(self->cluster->report, "CommunicationTime",
	                        "Communication by step, group and rank", time_columns);
	for (size_t i = 0; i < self->units.n; i++) {
		const struct np_comm_unit *unit = &self->units.v[i];
		np_cell_comm_unit(table, self, unit);
		np_cell_int(table, self->cluster->ranks.v[unit->rank].rank);
		np_cell_int(table, (int64_t)unit->ops);
		np_cell_real(table, unit->elapse);
		np_cell_real(table, unit->transit);
		np_cell_real(table, unit->sync);
		np_cell_real(table, unit->wait);
		np_cell_real(table, unit->idle);
		np_cell_real(table, ratio(unit->sync, unit->transit));
		np_cell_real(table, ratio(unit->wait, unit->transit));
		for (int l = 0; l < NP_N_LINKS; l++)
			np_cell_real(table, unit->ms[l] > 0 ? unit->mb[l] / unit->ms[l] : NAN);
	}
}

/* ── what is missing ── */

static enum np_status lacking(const struct np_comm_units *self, const struct np_recipe *recipe,
                              struct np_err *err)
{
	bool *summed = np_calloc(self->cluster->ranks.n + 1, sizeof *summed);
	if (!summed)
		return np_err_nomem(err);
	for (size_t i = 0; i < self->units.n; i++)
		summed[self->units.v[i].rank] |= !isnan(self->units.v[i].transit);
	np_cluster_lacking(self->cluster, recipe, summed,
	                   "transit, wait and bandwidth (communication.json or analysis.db, "
	                   "level 1 or higher)");
	np_free(summed);
	return NP_OK;
}

static enum np_status reduce(struct np_cluster *cluster, const struct np_recipe *self,
                             struct np_err *err)
{
	struct np_comm_units units;
	enum np_status status = NP_OK;
	bool ok = np_comm_units_collect(cluster, &units);
	if (ok && units.units.n == 0) {
		np_cluster_nothing(cluster, self, "no rank has recorded a collective");
	} else if (ok) {
		ok = groups(&units);
		times(&units);
		ok = ok && np_comm_slow_ranks(&units) && np_comm_operations(&units) &&
		     np_comm_packets(&units) && np_comm_links(&units) && np_comm_advice(&units);
		status = ok ? lacking(&units, self, err) : NP_OK;
	}
	np_comm_units_release(&units);
	return ok ? status : np_err_nomem(err);
}

static const struct np_part *const parts[] = {&np_part_insight_comm, &np_part_insight_check, NULL};

static const struct np_recipe_file files[] = {
	{.table = "CommunicationGroups", .csv = "groups.csv"},
	{.table = "CommunicationTime", .csv = "time.csv"},
	{.table = "CommunicationSlowRanks", .csv = "slow_ranks.csv"},
	{.table = "CommunicationOps", .csv = "ops.csv"},
	{.table = "CommunicationBandwidth", .csv = "bandwidth.csv"},
	{.table = "CommunicationPackets", .csv = "packets.csv"},
	{.table = "CommunicationSmallPackets", .csv = "small_packets.csv"},
	{.table = "CommunicationMatrix", .csv = "matrix.csv"},
	{.table = NULL},
};

const struct np_recipe np_recipe_communication = {
	.name = "communication",
	.dir = "Communication",
	.summary = NP_N("times, bandwidth, packets, links and slow ranks by step and group"),
	.parts = parts,
	.reduce = reduce,
	.files = files,
};
