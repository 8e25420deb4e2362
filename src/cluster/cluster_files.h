/*
 * What the built-in modes (all, communication_time, communication_matrix) share: tables
 * of the report, and the text files in cluster_analysis_output.
 */
#ifndef NP_CLUSTER_CLUSTER_FILES_H
#define NP_CLUSTER_CLUSTER_FILES_H

#include "cluster/comm_groups.h"
#include "cluster/comm_matrix.h"
#include "cluster/comm_time.h"
#include "cluster/export.h"

/* ── tables, by the names of the database; each does nothing when it is there already ── */

/* CommunicationGroupMapping */
void np_table_groups(struct np_cluster *cluster, const struct np_comm_groups *groups);
/* ClusterStepTraceTime; false: out of memory */
bool np_table_steps(struct np_cluster *cluster, const struct np_comm_groups *groups);
/* ClusterBaseInfo, HostInfo, RankDeviceMap */
void np_table_identity(struct np_cluster *cluster);

extern const char *const np_step_types[15];

/* ── text files ── */

enum np_status np_write_group_json(struct np_export *out, const struct np_comm_groups *groups,
                                   struct np_err *err);
/* Not written when no rank has such data. */
enum np_status np_write_time_json(struct np_export *out, const struct np_comm_groups *groups,
                                  struct np_err *err);
enum np_status np_write_matrix_json(struct np_export *out, const struct np_comm_groups *groups,
                                    const struct np_comm_matrix_sums *sums, struct np_err *err);
/* cluster_step_trace_time.csv, from the report's table */
enum np_status np_write_steps_csv(struct np_export *out, struct np_err *err);

#endif
