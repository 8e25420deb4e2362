/*
 * communication_group_map, communication_time_sum, communication_matrix_sum: the parts of
 * `all` that the official tool offers apart (cluster_and_advisor.md §2.6 to §2.8).
 */
#include <string.h>

#include "cluster/comm_modes.h"

static const struct np_part *const time_parts[] = {&np_part_comm_times, NULL};
static const struct np_part *const matrix_parts[] = {&np_part_comm_matrix, NULL};

static unsigned groups_of(const struct np_recipe *self)
{
	return self->parts == matrix_parts ? NP_GROUPS_OF_MATRIX : NP_GROUPS_OF_TIMES;
}

static unsigned what_of(const struct np_recipe *self)
{
	return self->parts == matrix_parts ? NP_COMM_SHOW_MATRIX : NP_COMM_SHOW_TIMES;
}

static enum np_status reduce(struct np_cluster *cluster, const struct np_recipe *self,
                             struct np_err *err)
{
	struct np_comm_groups groups;
	bool any = false, ok = np_comm_groups_make(&groups, cluster, groups_of(self));
	enum np_status status = ok ? NP_OK : np_err_nomem(err);
	if (ok)
		status = np_comm_reduce(cluster, self, &groups, what_of(self), &any, err);
	if (status == NP_OK && any && self->parts != matrix_parts)
		np_table_groups(cluster, &groups);
	np_comm_groups_release(&groups);
	return status;
}

static enum np_status export(struct np_cluster *cluster, const struct np_recipe *self,
                             struct np_export *out, struct np_err *err) {
	struct np_comm_groups groups;
	enum np_status status = np_comm_groups_make(&groups, cluster, groups_of(self))
	                                ? np_comm_export(out, self, &groups, what_of(self), err)
	                                : np_err_nomem(err);
	np_comm_groups_release(&groups);
	return status;
}

static const struct np_recipe_file group_files[] = {
	{.table = "CommunicationGroupMapping", .csv = "communication_group_mapping.csv"},
	{.table = NULL},
};
static const struct np_recipe_file time_files[] = {
	{.table = "CommunicationGroupMapping"},
	{.table = NULL},
};
static const struct np_recipe_file no_files[] = {{.table = NULL}};

const struct np_recipe np_recipe_communication_group_map = {
	.name = "communication_group_map",
	.dir = "CommunicationGroupMap",
	.summary = "communicators: their ranks and what the framework calls them",
	.parts = time_parts,
	.reduce = reduce,
	.files = group_files,
};

const struct np_recipe np_recipe_communication_matrix_sum = {
	.name = "communication_matrix_sum",
	.dir = "CommMatrixSum",
	.summary = "size, time and bandwidth of every link between ranks",
	.parts = matrix_parts,
	.reduce = reduce,
	.files = no_files,
	.export = export,
};

const struct np_recipe np_recipe_communication_time_sum = {
	.name = "communication_time_sum",
	.dir = "CommunicationTimeSum",
	.summary = "transit, wait and idle times of collectives, and the bandwidth of their links",
	.parts = time_parts,
	.reduce = reduce,
	.files = time_files,
	.export = export,
};
