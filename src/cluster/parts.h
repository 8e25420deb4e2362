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

/* ── mstx_sum ── */

/* Marks x_start … x_stop, in order of the stops, then ranges; options->compat is looked at. */
#define NP_DIGEST_MSTX_COLUMNS(X)                                              \
	X(np_id, name,                                                         \
	  "of the marks without their end, of the range; with _0, _1, … if " \
	  "several of the step have it")                                       \
	X(int64_t, step, "step id, 0 outside every step")                      \
	X(int64_t, framework_ns,                                               \
	  "between the operators that set the marks; NP_NO_I64: "              \
	  "unknown; 0 for ranges")                                             \
	X(int64_t, cann_ns, "between the marks on the host")                   \
	X(int64_t, device_ns, "between their tasks, of the range's task; NP_NO_I64: unknown")

NP_TABLE_STRUCT(np_digest_mstx, NP_DIGEST_MSTX_COLUMNS);
extern const struct np_table_desc np_digest_mstx_desc;

/* Marks without a partner. */
#define NP_DIGEST_MSTX_LONE_COLUMNS(X) X(np_id, message, "x_start or x_stop")

NP_TABLE_STRUCT(np_digest_mstx_lone, NP_DIGEST_MSTX_LONE_COLUMNS);
extern const struct np_table_desc np_digest_mstx_lone_desc;

extern const struct np_part np_part_mstx_times;

/* ── operator_mfu ── */

/* In order of the operators' start; options->compat is looked at. */
#define NP_DIGEST_OP_MFU_COLUMNS(X)                                             \
	X(np_id, op, "operator of the framework")                               \
	X(np_id, kernel, "kernel")                                              \
	X(np_id, flops_op, "what the range is called")                          \
	X(np_id, in_shapes, "input shapes without quotes, NP_ID_NONE: unknown") \
	X(np_id, out_shapes, "output shapes")                                   \
	X(np_ns, start_ns, "start")                                             \
	X(np_ns, end_ns, "end")                                                 \
	X(double, mfu, "share of the peak")                                     \
	X(double, flops_per_s, "operations per second")                         \
	X(double, peak, "the same of the chip")                                 \
	X(double, flops, "its part of the range's operations; compat: all")

NP_TABLE_STRUCT(np_digest_op_mfu, NP_DIGEST_OP_MFU_COLUMNS);
extern const struct np_table_desc np_digest_op_mfu_desc;

/* One row. */
#define NP_DIGEST_MFU_FACTS_COLUMNS(X)                                     \
	X(int64_t, ranges, "ranges with a number of operations")           \
	X(int64_t, launches, "kernels and collectives of known operators") \
	X(uint8_t, chip, "1: number and frequency of the AI cores are known")

NP_TABLE_STRUCT(np_digest_mfu_facts, NP_DIGEST_MFU_FACTS_COLUMNS);
extern const struct np_table_desc np_digest_mfu_facts_desc;

/* Fills np_digest_module_mfu (modules.h), too. */
extern const struct np_part np_part_op_mfu;

/* ── mstx2commop ── */

/* Collectives that messages of mstx describe, in order of the messages; options->compat and
 * the range of --step_id are looked at. */
#define NP_DIGEST_COMMOP_COLUMNS(X)                               \
	X(np_id, name, "Hcclop_allReduce__597_0_1")               \
	X(np_id, type, "Hcclop_allReduce_")                       \
	X(np_id, group, "communicator")                           \
	X(np_id, dtype, "data type as the message has it: bfp16") \
	X(int64_t, count, "elements, NP_NO_I64 if unknown")       \
	X(np_ns, start_ns, "start of the task")                   \
	X(np_ns, end_ns, "its end")                               \
	X(int64_t, conn, "connection id of the task, NP_NO_I64 if none")

NP_TABLE_STRUCT(np_digest_commop, NP_DIGEST_COMMOP_COLUMNS);
extern const struct np_table_desc np_digest_commop_desc;

/* One row. */
#define NP_DIGEST_COMMOP_FACTS_COLUMNS(X)                                        \
	X(int64_t, recorded, "collectives that the capture has recorded itself") \
	X(int64_t, messages, "messages that describe one")                       \
	X(int64_t, lone, "of these, without a task")                             \
	X(uint8_t, cut, "1: compat made more rows than can be kept")

NP_TABLE_STRUCT(np_digest_commop_facts, NP_DIGEST_COMMOP_FACTS_COLUMNS);
extern const struct np_table_desc np_digest_commop_facts_desc;

extern const struct np_part np_part_commop;

/* ── pp_chart ── */

/* Tasks of the marks of forward and backward passes, by start; options->compat and the
 * range of --step_id are looked at. */
#define NP_DIGEST_PP_TASKS_COLUMNS(X)                                       \
	X(np_ns, start_ns, "start of the task")                             \
	X(np_ns, end_ns, "its end")                                         \
	X(int64_t, step, "step, 0 without steps, NP_NO_I64 outside of all") \
	X(uint8_t, backward, "0: the message says \"forward\"")

NP_TABLE_STRUCT(np_digest_pp_tasks, NP_DIGEST_PP_TASKS_COLUMNS);
extern const struct np_table_desc np_digest_pp_tasks_desc;

extern const struct np_part np_part_pp_tasks;
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
/*
 * The same for what looks at launches, steps and payloads; and where no op is recorded
 * singly, those of communication.json or analysis.db (lite captures).
 */
#define NP_DIGEST_COMM_CALLS_COLUMNS(X)                                                \
	X(np_id, name, "hcom_allReduce__865_0_1")                                      \
	X(np_id, type, "hcom_allReduce_")                                              \
	X(np_id, group, "group as recorded, NP_ID_NONE if unknown")                    \
	X(np_id, key, "the same group on every rank and in every format: its hash")    \
	X(np_id, dtype, "data type")                                                   \
	X(np_ns, start_ns, "start on the device")                                      \
	X(np_ns, dur_ns, "duration")                                                   \
	X(int64_t, conn, "connection to the launch, NP_NO_I64 if unknown")             \
	X(np_ns, launch_ns, "start of its call of CANN, NP_NO_I64 if unknown")         \
	X(int64_t, step, "id of the step of its launch, NP_NO_I64 outside every step") \
	X(int64_t, size_bytes, "payload, NP_NO_I64 if unknown")                        \
	X(uint32_t, nth, "how many of this name and group came before it in its step") \
	X(uint8_t, p2p, "1 point-to-point")                                            \
	X(uint8_t, within, "1 when --step_id takes it, by its launch")

NP_TABLE_STRUCT(np_digest_comm_calls, NP_DIGEST_COMM_CALLS_COLUMNS);
extern const struct np_table_desc np_digest_comm_calls_desc;
extern const struct np_part np_part_comm_calls;

/* hcom_send__…, hcom_receive__…, hcom_batchSendRecv__… */
bool np_is_p2p_name(np_str name);

/* Is it an operation's row, and no "Total Op Info"? */
bool np_is_comm_op_name(np_str name);

/* "865" of hcom_allReduce__865_0_1: the last digits of the group's hash; "" without. */
np_str np_comm_domain(np_str name);

/* A lane of the oldest traces is numbered, "Group 0": that means nothing on another rank. */
bool np_is_lane_number(np_str group);

/* Starts of CANN's calls by connection: host_ops of NP_HOST_CANN. */
struct np_cann_calls {
	struct np_map row_of; /* connection → row in host_ops */
	const struct np_host_ops *ops;
};
/* all: of every connection, else of those of comm_ops. false: out of memory. Release in every
 * case. */
bool np_cann_calls_init(struct np_cann_calls *self, const struct np_profile *profile, bool all);
void np_cann_calls_release(struct np_cann_calls *self);
np_ns np_cann_call_start(const struct np_cann_calls *self, int64_t conn); /* or NP_NO_I64 */

#endif
