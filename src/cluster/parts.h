/*
 * The parts that several recipes share, with the tables of their digests. A part
 * that one recipe needs stands in that recipe's file.
 */
#ifndef NP_CLUSTER_PARTS_H
#define NP_CLUSTER_PARTS_H

#include "base/time.h"
#include "cluster/recipe.h"

/* Collectives and point-to-point operations as recorded (COMMUNICATION_OP, trace, kernel table). */
#define NP_DIGEST_COMM_OPS_COLUMNS(X)                                                      \
	X(np_id, name, "hcom_allReduce__865_0_1")                                          \
	X(np_id, type, "hcom_allReduce_")                                                  \
	X(np_id, group, "group id (db) or its decimal hash (text), NP_ID_NONE if unknown") \
	X(np_id, dtype, "data type")                                                       \
	X(int64_t, count, "elements, NP_NO_I64 if unknown")                                \
	X(np_ns, start_ns, "start on the device")                                          \
	X(np_ns, dur_ns, "duration")

NP_TABLE_STRUCT(np_digest_comm_ops, NP_DIGEST_COMM_OPS_COLUMNS);
extern const struct np_table_desc np_digest_comm_ops_desc;

/* All of them, or those that start within the range of --step_id. */
extern const struct np_part np_part_comm_ops;

/*
 * communication.json, CommAnalyzerTime and -Bandwidth: an op, its links, and their
 * packet sizes. Links lie in the order of their ops, packages in that of their links.
 */
#define NP_DIGEST_COMM_TIMES_COLUMNS(X)                                                  \
	X(int64_t, step, "step id, NP_NO_I64 without steps")                             \
	X(uint8_t, p2p, "1 point-to-point, 0 collective")                                \
	X(np_id, op, "operator name, without @group; no totals")                         \
	X(np_id, group, "decimal hash of the group")                                     \
	X(double, start_us, "start; NaN with all times: only links are known of the op") \
	X(double, elapse_ms, "elapse")                                                   \
	X(double, transit_ms, "transit")                                                 \
	X(double, wait_ms, "wait")                                                       \
	X(double, sync_ms, "synchronization")                                            \
	X(double, idle_ms, "idle")                                                       \
	X(uint32_t, links_end, "first row behind its links")

#define NP_DIGEST_COMM_LINKS_COLUMNS(X)                    \
	X(np_id, transport, "RDMA, HCCS, PCIE, SDMA, SIO") \
	X(double, transit_mb, "size")                      \
	X(double, transit_ms, "time")                      \
	X(double, gbps, "bandwidth")                       \
	X(double, large_ratio, "large packet ratio")       \
	X(uint32_t, packages_end, "first row behind its packages")

#define NP_DIGEST_COMM_PACKAGES_COLUMNS(X)        \
	X(double, package_mb, "size of a packet") \
	X(double, count, "how many")              \
	X(double, package_ms, "their time")

/* communication_matrix.json, CommAnalyzerMatrix; ranks as numbers inside the group. */
#define NP_DIGEST_COMM_MATRIX_COLUMNS(X)                                              \
	X(int64_t, step, "step id, NP_NO_I64 without steps")                          \
	X(uint8_t, p2p, "1 point-to-point, 0 collective")                             \
	X(np_id, kind, "allreduce-top1, send-total …; of msprof the operator's name") \
	X(np_id, group, "decimal hash of the group")                                  \
	X(uint32_t, src, "source in the group")                                       \
	X(uint32_t, dst, "destination in the group")                                  \
	X(np_id, transport, "HCCS, RDMA, LOCAL …")                                    \
	X(np_id, op, "operator name, NP_ID_NONE in totals")                           \
	X(double, transit_mb, "size")                                                 \
	X(double, transit_ms, "time")

/* step_trace_time.csv, StepTraceTime; of msprof and MindSpore computed from the tasks. */
#define NP_DIGEST_STEP_TRACE_COLUMNS(X)                      \
	X(int64_t, step, "step id, NP_NO_I64 without steps") \
	X(double, computing, "us; NaN: no such column")      \
	X(double, comm_not_overlapped, "us")                 \
	X(double, overlapped, "us")                          \
	X(double, comm, "us")                                \
	X(double, free, "us")                                \
	X(double, stage, "us")                               \
	X(double, bubble, "us")                              \
	X(double, comm_not_overlapped_exclude_receive, "us") \
	X(double, preparing, "us")

NP_TABLE_STRUCT(np_digest_comm_times, NP_DIGEST_COMM_TIMES_COLUMNS);
NP_TABLE_STRUCT(np_digest_comm_links, NP_DIGEST_COMM_LINKS_COLUMNS);
NP_TABLE_STRUCT(np_digest_comm_packages, NP_DIGEST_COMM_PACKAGES_COLUMNS);
NP_TABLE_STRUCT(np_digest_comm_matrix, NP_DIGEST_COMM_MATRIX_COLUMNS);
NP_TABLE_STRUCT(np_digest_step_trace, NP_DIGEST_STEP_TRACE_COLUMNS);
extern const struct np_table_desc np_digest_comm_times_desc, np_digest_comm_links_desc,
	np_digest_comm_packages_desc, np_digest_comm_matrix_desc, np_digest_step_trace_desc;

extern const struct np_part np_part_comm_times, np_part_comm_matrix, np_part_step_trace;

#endif
