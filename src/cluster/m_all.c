/*
 * all, communication_time, communication_matrix: the built-in modes of the official tool
 * (cluster_and_advisor.md §2.3 to §2.5), for both formats and into both.
 */
#include <string.h>

#include "cluster/comm_modes.h"

static unsigned what_of(const struct np_recipe *self)
{
	if (strcmp(self->name, "communication_time") == 0)
		return NP_COMM_SHOW_TIMES;
	if (strcmp(self->name, "communication_matrix") == 0)
		return NP_COMM_SHOW_MATRIX;
	return NP_COMM_SHOW_TIMES | NP_COMM_SHOW_MATRIX;
}

static bool make_groups(struct np_comm_groups *groups, const struct np_cluster *cluster)
{
	return np_comm_groups_make(groups, cluster, NP_GROUPS_OF_TIMES | NP_GROUPS_OF_MATRIX);
}

static enum np_status reduce(struct np_cluster *cluster, const struct np_recipe *self,
                             struct np_err *err)
{
	struct np_comm_groups groups;
	bool any, ok = make_groups(&groups, cluster) && np_table_steps(cluster, &groups);
	enum np_status status = ok ? NP_OK : np_err_nomem(err);
	if (ok && groups.v.n > 0)
		np_table_groups(cluster, &groups);
	if (ok)
		status = np_comm_reduce(cluster, self, &groups, what_of(self), &any, err);
	if (ok)
		np_table_identity(cluster);
	np_comm_groups_release(&groups);
	return status;
}

static enum np_status write_texts(struct np_export *out, const struct np_comm_groups *groups,
                                  unsigned what, struct np_err *err)
{
	NP_TRY(np_write_group_json(out, groups, err));
	NP_TRY(np_write_steps_csv(out, err));
	if (what & NP_COMM_SHOW_TIMES)
		NP_TRY(np_write_time_json(out, groups, err));
	if (!(what & NP_COMM_SHOW_MATRIX))
		return NP_OK;
	struct np_comm_matrix_sums sums;
	enum np_status status =
		np_comm_matrix_sum(&sums, out->cluster, groups, true) ? NP_OK : np_err_nomem(err);
	if (status == NP_OK)
		status = np_write_matrix_json(out, groups, &sums, err);
	np_comm_matrix_release(&sums);
	return status;
}

static enum np_status export(struct np_cluster *cluster, const struct np_recipe *self,
                             struct np_export *out, struct np_err *err) {
	struct np_comm_groups groups;
	enum np_status status = make_groups(&groups, cluster) ? NP_OK : np_err_nomem(err);
	if (status == NP_OK)
		status = out->type == NP_EXPORT_DB
	                         ? np_comm_export(out, self, &groups, what_of(self), err)
	                         : write_texts(out, &groups, what_of(self), err);
	np_comm_groups_release(&groups);
	return status;
}

static const struct np_part *const parts[] = {&np_part_comm_times, &np_part_comm_matrix,
                                              &np_part_step_trace, NULL};

static const struct np_recipe_file files[] = {
	{.table = "CommunicationGroupMapping"},
	{.table = "ClusterStepTraceTime", .types = np_step_types},
	{.table = "ClusterBaseInfo"},
	{.table = "HostInfo"},
	{.table = "RankDeviceMap"},
	{.table = NULL},
};

#define BUILTIN(mode, text)                         \
	const struct np_recipe np_recipe_##mode = { \
		.name = #mode,                      \
		.dir = NULL,                        \
		.summary = (text),                  \
		.parts = parts,                     \
		.reduce = reduce,                   \
		.files = files,                     \
		.export = export,                   \
		.builtin = true,                    \
	}

BUILTIN(all, "communication times, bandwidths and links, groups, and step times of all ranks");
BUILTIN(communication_matrix, "links of all ranks, groups, and step times");
BUILTIN(communication_time, "communication times and bandwidths, groups, and step times");
