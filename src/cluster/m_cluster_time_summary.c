/*
 * cluster_time_summary (cluster_and_advisor.md §2.9).
 */
#include "cluster/cluster_time.h"
#include "cluster/export.h"
#include "cluster/internal.h"
#include "cluster/parts.h"

static const char TABLE[] = "ClusterTimeSummary";

static enum np_status reduce(struct np_cluster *cluster, const struct np_recipe *self,
                             struct np_err *err)
{
	struct np_time_rows rows;
	bool ok = np_time_rows_make(cluster, &rows);
	if (ok && rows.v.n == 0) {
		np_cluster_nothing(cluster, self, "no rank has steps, a step trace or collectives");
	} else if (ok) {
		np_time_rows_tell(&rows, cluster, self);
		if (!np_export_table(cluster, TABLE))
			np_time_rows_table(&rows, cluster->report);
	}
	np_time_rows_release(&rows);
	return ok ? NP_OK : np_err_nomem(err);
}

static const struct np_part *const parts[] = {&np_part_cluster_time, &np_part_comm_calls, NULL};

static const struct np_recipe_file files[] = {
	{.table = TABLE,
         .csv = "cluster_time_summary.csv",
         .headings = "Rank,Step,Step Time(us),Computation(us),Communication Not Overlap "
                     "Computation(us),Communication Overlap Computation(us),Communication(us),"
                     "Free(us),Communication Wait Stage Time(us),Communication Transmit Stage "
                     "Time(us),Memory(us),Memory Not Overlap Computation Communication(us)"},
	{.table = NULL},
};

const struct np_recipe np_recipe_cluster_time_summary = {
	.name = "cluster_time_summary",
	.dir = "ClusterTimeSummary",
	.summary = NP_N("where the time of each rank and step goes"),
	.parts = parts,
	.reduce = reduce,
	.files = files,
};
