/*
 * The profile: what one rank's capture says, in columns, whatever its format.
 *
 * Strings are ids into `strings`; times are int64 ns since the epoch, durations
 * int64 ns. A value that is absent is absent (NP_ID_NONE, NP_NO_U32, NP_NO_I64,
 * NaN), never 0. Two formats of the same run give equal profiles; where they
 * honestly can't, docs/formats/ lists the difference.
 *
 * Rows that make no sense (unreadable start, negative duration) are not in the
 * tables; they are counted in `dropped` and told in `diags` (field_reports C).
 *
 * Threads: a profile belongs to one thread at a time.
 */
#ifndef NP_PROFILE_PROFILE_H
#define NP_PROFILE_PROFILE_H

#include "base/err.h"
#include "base/intern.h"
#include "base/map.h"
#include "base/time.h"
#include "profile/columns.h"

#define NP_NO_U32 UINT32_MAX
#define NP_NO_I64 INT64_MIN

/*
 * A time range that a table may hold: start in 0…2^62, no negative duration, so
 * that sums and differences of two times cannot overflow. Readers drop and
 * count the rest.
 */
#define NP_TIME_MAX ((np_ns)1 << 62)
static inline bool np_time_sane(np_ns start_ns, np_ns dur_ns)
{
	return start_ns >= 0 && start_ns < NP_TIME_MAX && dur_ns >= 0 && dur_ns < NP_TIME_MAX;
}

/* What to load. A reader loads only what is asked for. */
enum np_load {
	NP_STEPS = 1 << 0,
	NP_KERNELS = 1 << 1,        /* names, times, ids */
	NP_KERNEL_SHAPES = 1 << 2,  /* shapes, dtypes, formats of the kernels */
	NP_KERNEL_METRICS = 1 << 3, /* PMU columns */
	NP_HOST_OPS = 1 << 4,
	NP_TASKS = 1 << 5,
	NP_COMM = 1 << 6,         /* comm_ops and comm_tasks; implies NP_COMM_OPS */
	NP_COMM_SUMMARY = 1 << 7, /* comm_time, comm_bandwidth, comm_matrix */
	NP_FLOWS = 1 << 8,
	NP_STEP_TRACE = 1 << 9,
	NP_MEMORY = 1 << 10, /* op_memory and memory */
	NP_COUNTERS = 1 << 11,
	NP_HOST_ARGS = 1 << 12, /* shapes, dtypes, call stacks of the host ops */
	NP_MSTX = 1 << 13,
	NP_HOST_CONNS = 1 << 14, /* implies NP_HOST_OPS */
	/* comm_ops without what takes a look at every task: their step stays unknown, and
	 * their device where the capture has several and the row doesn't tell */
	NP_COMM_OPS = 1 << 15,
	NP_COMM_SCHEDULE = 1 << 16,
	NP_LOAD_ALL = (1 << 17) - 1,
	/* No table: "N/A" of a database stays a text, to be told from NULL. By default
	 * both are absent, as everywhere else. */
	NP_KEEP_NA = 1 << 17,
	/* host_ops, of a database only the rows of CANN_API and without `item`: spares a look at
	 * every task and at PYTORCH_API. What has been loaded for it has this bit set. */
	NP_HOST_CANN = 1 << 18,
};

/* What is asked for, and what that needs. */
static inline unsigned np_load_implied(unsigned what)
{
	if (what & (NP_KERNEL_SHAPES | NP_KERNEL_METRICS))
		what |= NP_KERNELS;
	if (what & NP_COMM)
		what |= NP_COMM_OPS;
	if (what & NP_HOST_CONNS)
		what |= NP_HOST_OPS;
	if (what & NP_HOST_OPS)
		what &= ~(unsigned)NP_HOST_CANN;
	return what;
}

/* One row per step of the capture, ordered by id once the profile is finished. */
#define NP_STEPS_COLUMNS(X)                                                                     \
	X(int64_t, id, "the number behind ProfilerStep#")                                       \
	X(np_ns, host_start_ns, "start of the host range ProfilerStep#N, NP_NO_I64 if unknown") \
	X(np_ns, host_end_ns, "its end")                                                        \
	X(np_ns, start_ns, "first start of a kernel of the step, NP_NO_I64 if it has none")     \
	X(np_ns, end_ns, "last end of a kernel of the step")                                    \
	X(uint32_t, kernels, "number of kernel rows in the step")

/*
 * One row per kernel and per collective (core = COMMUNICATION: the collective
 * as a whole, from its first to its last task), ordered by device and start.
 */
#define NP_KERNELS_COLUMNS(X)                                                                    \
	X(uint32_t, step, "row in steps, NP_NO_U32 outside every step")                          \
	X(uint32_t, device, "device id")                                                         \
	X(uint32_t, stream, "physical stream id")                                                \
	X(uint32_t, task, "task id")                                                             \
	X(uint32_t, context, "context id (FFTS+ sub-task)")                                      \
	X(uint32_t, model, "model id, NP_NO_U32 for single operators")                           \
	X(uint32_t, name, "kernel name")                                                         \
	X(uint32_t, type, "operator type")                                                       \
	X(uint32_t, core, "accelerator core: AI_CORE, AI_VECTOR_CORE, MIX_AIC, COMMUNICATION …") \
	X(uint32_t, op_state, "static, dynamic")                                                 \
	X(np_ns, start_ns, "start on the device")                                                \
	X(np_ns, dur_ns, "duration")                                                             \
	X(np_ns, wait_ns, "gap to the end of the previous row, 0 when they overlap")             \
	X(uint32_t, block_num, "blocks launched (Block Num, older Block Dim)")                   \
	X(uint32_t, mix_block_num, "blocks of the other core of a mixed kernel")                 \
	X(uint32_t, hf32, "HF32 Eligible: YES or NO")                                            \
	X(uint32_t, conn, "connection id to the launch on the host (db only)")

/* Loaded with NP_KERNEL_SHAPES: as many rows as kernels, else none. */
#define NP_KERNEL_SHAPES_COLUMNS(X)                  \
	X(uint32_t, in_shapes, "input shapes")       \
	X(uint32_t, in_dtypes, "input data types")   \
	X(uint32_t, in_formats, "input formats")     \
	X(uint32_t, out_shapes, "output shapes")     \
	X(uint32_t, out_dtypes, "output data types") \
	X(uint32_t, out_formats, "output formats")

/* host layers; the db's ENUM_API_TYPE and the trace's categories map to these */
enum np_host_layer {
	NP_HOST_OP,      /* aten::…, autograd, ProfilerStep#N: cat cpu_op, type 50001 */
	NP_HOST_QUEUE,   /* Enqueue@…, Dequeue@…: type 50002 */
	NP_HOST_PYTHON,  /* python_function, type 50003 */
	NP_HOST_MSTX,    /* ranges and marks of the user, type 50004 or MSTX_EVENTS */
	NP_HOST_GC,      /* garbage collection */
	NP_HOST_ACL,     /* AscendCL@…, type 20000 */
	NP_HOST_MODEL,   /* Model@…, type 15000 */
	NP_HOST_NODE,    /* Node@…, type 10000 */
	NP_HOST_HCCL,    /* Communication@… (old Hccl@…), type 5500 */
	NP_HOST_RUNTIME, /* Runtime@…, type 5000 */
	NP_HOST_OTHER,
};

/* A call of CANN: what a database has in CANN_API. */
static inline bool np_is_cann_layer(uint8_t layer)
{
	return layer >= NP_HOST_ACL && layer <= NP_HOST_RUNTIME;
}

/* Ranges on the host, ordered by start, then longer first. */
#define NP_HOST_OPS_COLUMNS(X)                                                                \
	X(uint8_t, layer, "enum np_host_layer")                                               \
	X(uint32_t, name, "without the layer's prefix: aclrtMemcpyAsync, aten::add, launch")  \
	X(uint32_t, item, "the operator of a CANN node call (item_id), NP_ID_NONE otherwise") \
	X(uint32_t, pid, "process")                                                           \
	X(uint32_t, tid, "thread")                                                            \
	X(np_ns, start_ns, "start")                                                           \
	X(np_ns, dur_ns, "duration")                                                          \
	X(int64_t, conn, "connection id (CANN) or correlation id (queue), NP_NO_I64 if none") \
	X(int64_t, seq, "sequence number of a torch op, NP_NO_I64 if none")                   \
	X(uint32_t, shapes, "input shapes, with NP_HOST_ARGS")                                \
	X(uint32_t, dtypes, "input types, with NP_HOST_ARGS")                                 \
	X(uint32_t, stack, "call stack, with NP_HOST_ARGS")

/*
 * The connections of the host ops, all of them (db only): an op of torch may
 * have several, and several ops may share one. Ordered by (conn, id), so of a
 * connection between forward and backward the first row is the forward op and
 * the last one the backward op.
 */
#define NP_HOST_CONNS_COLUMNS(X)           \
	X(uint32_t, op, "row in host_ops") \
	X(int64_t, conn, "connection id")  \
	X(int64_t, id, "CONNECTION_IDS.id, which PYTORCH_API.connectionId refers to")

/* eventType of MSTX_EVENTS, event_type of the trace */
enum np_mstx_type {
	NP_MSTX_MARKER = 0,
	NP_MSTX_PUSH_POP = 1,
	NP_MSTX_START_END = 2,
	NP_MSTX_MARKER_EX = 3,
	NP_MSTX_UNKNOWN = 255,
};

/* Ranges and marks of the user (mstx, the older msproftx), ordered by start. They are
 * in host_ops too. */
#define NP_MSTX_COLUMNS(X)                                                            \
	X(np_ns, start_ns, "start")                                                   \
	X(np_ns, end_ns, "end; of a mark its start")                                  \
	X(uint8_t, event_type, "enum np_mstx_type")                                   \
	X(uint32_t, message, "message")                                               \
	X(uint32_t, domain, "domain: \"default\" unless the user made one (db only)") \
	X(int64_t, range_id, "id of the range (db only), NP_NO_I64 without")          \
	X(int64_t, category, "category, NP_NO_I64 without")                           \
	X(uint32_t, pid, "process")                                                   \
	X(uint32_t, tid, "thread that began it")                                      \
	X(uint32_t, end_tid, "thread that ended it")                                  \
	X(int64_t, conn, "connection id to its task on a stream, NP_NO_I64 without one")

/* Every task of a device, ordered by start. */
#define NP_TASKS_COLUMNS(X)                                                            \
	X(uint32_t, name, "operator, or the task type where it has none")              \
	X(uint32_t, type, "task type: KERNEL_AIVEC, EVENT_WAIT, MEMCPY_ASYNC, SDMA …") \
	X(uint32_t, device, "device id")                                               \
	X(uint32_t, stream, "physical stream id")                                      \
	X(uint32_t, task, "task id")                                                   \
	X(uint32_t, context, "context id")                                             \
	X(np_ns, start_ns, "start")                                                    \
	X(np_ns, dur_ns, "duration")                                                   \
	X(int64_t, conn, "connection id to the launch, NP_NO_I64 if none")             \
	X(uint8_t, compute, "1 when it is a compute task (COMPUTE_TASK_INFO)")

/* Collectives and point-to-point operations of this rank, ordered by start. */
#define NP_COMM_OPS_COLUMNS(X)                                                            \
	X(uint32_t, name, "hcom_allReduce__865_0_1")                                      \
	X(uint32_t, type, "hcom_allReduce_; from the name where not recorded")            \
	X(uint32_t, group, "communicator name (db), or its decimal hash: np_group_key()") \
	X(uint32_t, algorithm, "algorithm")                                               \
	X(uint32_t, dtype, "data type")                                                   \
	X(int64_t, count, "elements, NP_NO_I64 if unknown")                               \
	X(uint32_t, device, "device id")                                                  \
	X(np_ns, start_ns, "start")                                                       \
	X(np_ns, dur_ns, "duration")                                                      \
	X(int64_t, conn, "connection id to the launch, NP_NO_I64 if none")                \
	X(uint32_t, step, "row in steps, NP_NO_U32 outside every step")

/* Their tasks on the planes. */
#define NP_COMM_TASKS_COLUMNS(X)                                                           \
	X(uint32_t, op, "row in comm_ops, NP_NO_U32 if unknown")                           \
	X(uint32_t, name, "Memcpy, Reduce_Inline, Notify_Wait, Notify_Record, RDMASend …") \
	X(uint32_t, plane, "plane")                                                        \
	X(uint32_t, device, "device id")                                                   \
	X(uint32_t, stream, "stream id")                                                   \
	X(uint32_t, task, "task id")                                                       \
	X(np_ns, start_ns, "start")                                                        \
	X(np_ns, dur_ns, "duration")                                                       \
	X(uint32_t, src_rank, "rank inside the group, NP_NO_U32 if none")                  \
	X(uint32_t, dst_rank, "rank inside the group, NP_NO_U32 if none")                  \
	X(uint32_t, transport, "SDMA, RDMA, LOCAL")                                        \
	X(uint32_t, link, "ON_CHIP, HCCS, PCIE, ROCE, SIO")                                \
	X(int64_t, size_bytes, "payload, NP_NO_I64 if none")                               \
	X(uint64_t, notify, "notify id, UINT64_MAX if none")

/* Tasks of the device's CPU that unfold collectives (COMMUNICATION_SCHEDULE_TASK_INFO, db
 * only), ordered by start. */
#define NP_COMM_SCHEDULE_COLUMNS(X)                                    \
	X(uint32_t, name, "name")                                      \
	X(uint32_t, type, "operator type")                             \
	X(uint32_t, core, "task type: AI_CPU …")                       \
	X(uint32_t, device, "device id")                               \
	X(uint32_t, stream, "physical stream id")                      \
	X(uint32_t, task, "task id")                                   \
	X(uint32_t, context, "context id")                             \
	X(uint32_t, model, "model id, NP_NO_U32 for single operators") \
	X(np_ns, start_ns, "start")                                    \
	X(np_ns, dur_ns, "duration")                                   \
	X(int64_t, conn, "connection id to the launch, NP_NO_I64 if none")

/* communication.json, CommAnalyzerTime: one row per op and per "Total Op Info". Times in ms. */
#define NP_COMM_TIME_COLUMNS(X)                                           \
	X(int64_t, step, "step id, NP_NO_I64 for captures without steps") \
	X(uint8_t, p2p, "1 point-to-point, 0 collective")                 \
	X(uint32_t, op, "operator name, without @group")                  \
	X(uint32_t, group, "group id")                                    \
	X(double, start_us, "start; a double, as in the file")            \
	X(double, elapse_ms, "elapse")                                    \
	X(double, transit_ms, "transit")                                  \
	X(double, wait_ms, "wait")                                        \
	X(double, sync_ms, "synchronization")                             \
	X(double, idle_ms, "idle")

/* Per op, link and packet size; package_mb is NaN in the row for the link as a whole. */
#define NP_COMM_BANDWIDTH_COLUMNS(X)                                \
	X(int64_t, step, "step id")                                 \
	X(uint8_t, p2p, "1 point-to-point, 0 collective")           \
	X(uint32_t, op, "operator name")                            \
	X(uint32_t, group, "group id")                              \
	X(uint32_t, transport, "RDMA, HCCS, PCIE, SDMA, SIO")       \
	X(double, transit_mb, "transit size, 1e6 bytes")            \
	X(double, transit_ms, "transit time")                       \
	X(double, gbps, "bandwidth, GB/s; NaN in totals")           \
	X(double, large_ratio, "large packet ratio; NaN in totals") \
	X(double, package_mb, "size of the packets of this row")    \
	X(double, package_count, "how many of them")                \
	X(double, package_ms, "their time")

/* communication_matrix.json, CommAnalyzerMatrix. src and dst are ranks inside the group. */
#define NP_COMM_MATRIX_COLUMNS(X)                         \
	X(int64_t, step, "step id")                       \
	X(uint8_t, p2p, "1 point-to-point, 0 collective") \
	X(uint32_t, kind, "allreduce-top1, send-total …") \
	X(uint32_t, group, "group id")                    \
	X(uint32_t, src, "source rank in the group")      \
	X(uint32_t, dst, "destination rank in the group") \
	X(uint32_t, transport, "HCCS, RDMA, LOCAL …")     \
	X(double, transit_mb, "size, 1e6 bytes")          \
	X(double, transit_ms, "time")                     \
	X(double, gbps, "bandwidth")                      \
	X(uint32_t, op, "operator name, NP_ID_NONE in totals")

/* Arrows of a trace, as they are in the file; ids are texts since they exceed 64 bits. */
#define NP_FLOWS_COLUMNS(X)                                   \
	X(uint8_t, end, "0 the start of an arrow, 1 its end") \
	X(uint32_t, cat, "HostToDevice, async_npu, …")        \
	X(uint32_t, id, "id, as text")                        \
	X(uint32_t, pid, "process")                           \
	X(uint32_t, tid, "thread")                            \
	X(np_ns, ts_ns, "time")

/* The exporter's own step rows, us, exactly as in step_trace_time.csv or StepTraceTime. */
#define NP_STEP_TRACE_COLUMNS(X)                                           \
	X(uint32_t, device, "device id, NP_NO_U32 where not recorded")     \
	X(int64_t, step, "step id, NP_NO_I64 when blank")                  \
	X(double, computing_us, "Computing")                               \
	X(double, comm_not_overlapped_us, "Communication(Not Overlapped)") \
	X(double, overlapped_us, "Overlapped")                             \
	X(double, comm_us, "Communication")                                \
	X(double, free_us, "Free")                                         \
	X(double, stage_us, "Stage")                                       \
	X(double, bubble_us, "Bubble")                                     \
	X(double, comm_not_overlapped_exclude_receive_us,                  \
	  "Communication(Not Overlapped and Exclude Receive)")             \
	X(double, preparing_us, "Preparing")

/* One row per allocation. */
#define NP_OP_MEMORY_COLUMNS(X)                                       \
	X(uint32_t, name, "operator")                                 \
	X(uint32_t, device, "device id")                              \
	X(int64_t, size_bytes, "size")                                \
	X(np_ns, alloc_ns, "allocation")                              \
	X(np_ns, release_ns, "release, NP_NO_I64 while it lives")     \
	X(np_ns, active_release_ns, "active release")                 \
	X(double, allocated_mb, "total allocated at allocation, MiB") \
	X(double, reserved_mb, "total reserved at allocation, MiB")   \
	X(double, active_mb, "total active at allocation, MiB")       \
	X(int64_t, stream, "stream id or pointer")

/* Samples of a component's total. */
#define NP_MEMORY_COLUMNS(X)                                              \
	X(uint32_t, component, "PTA, GE, PTA+GE, APP, WORKSPACE, SLOG …") \
	X(uint32_t, device, "device id")                                  \
	X(np_ns, ts_ns, "time")                                           \
	X(double, allocated_mb, "MiB, NaN if absent")                     \
	X(double, reserved_mb, "MiB, NaN if absent")                      \
	X(double, active_mb, "MiB, NaN if absent")

#define NP_COUNTERS_COLUMNS(X)                                             \
	X(uint32_t, process, "AI Core Freq, HBM, LLC, NPU MEM, …")         \
	X(uint32_t, name, "counter and series: \"HBM 0/Read Read(MB/s)\"") \
	X(uint32_t, device, "device id")                                   \
	X(np_ns, ts_ns, "time")                                            \
	X(double, value, "value")

/* tag, columns, member of np_profile, name for people and sql */
#define NP_TABLES(T)                                                    \
	T(np_steps, NP_STEPS_COLUMNS, steps)                            \
	T(np_kernels, NP_KERNELS_COLUMNS, kernels)                      \
	T(np_kernel_shapes, NP_KERNEL_SHAPES_COLUMNS, kernel_shapes)    \
	T(np_host_ops, NP_HOST_OPS_COLUMNS, host_ops)                   \
	T(np_host_conns, NP_HOST_CONNS_COLUMNS, host_conns)             \
	T(np_mstx, NP_MSTX_COLUMNS, mstx)                               \
	T(np_tasks, NP_TASKS_COLUMNS, tasks)                            \
	T(np_comm_ops, NP_COMM_OPS_COLUMNS, comm_ops)                   \
	T(np_comm_tasks, NP_COMM_TASKS_COLUMNS, comm_tasks)             \
	T(np_comm_schedule, NP_COMM_SCHEDULE_COLUMNS, comm_schedule)    \
	T(np_comm_time, NP_COMM_TIME_COLUMNS, comm_time)                \
	T(np_comm_bandwidth, NP_COMM_BANDWIDTH_COLUMNS, comm_bandwidth) \
	T(np_comm_matrix, NP_COMM_MATRIX_COLUMNS, comm_matrix)          \
	T(np_flows, NP_FLOWS_COLUMNS, flows)                            \
	T(np_step_trace, NP_STEP_TRACE_COLUMNS, step_trace)             \
	T(np_op_memory, NP_OP_MEMORY_COLUMNS, op_memory)                \
	T(np_memory, NP_MEMORY_COLUMNS, memory)                         \
	T(np_counters, NP_COUNTERS_COLUMNS, counters)

#define NP_DECLARE_(tag, COLUMNS, member) \
	NP_TABLE_STRUCT(tag, COLUMNS);    \
	extern const struct np_table_desc tag##_desc;
NP_TABLES(NP_DECLARE_)
#undef NP_DECLARE_

/* Append a row: np_profile_add(profile, kernels) → row number, or SIZE_MAX. */
#define np_profile_add(profile, member) np_rows_add(&(profile)->member, &np_##member##_desc)

/* One PMU column: as many values as kernels, NaN where not available. */
struct np_metric {
	uint32_t name; /* as in kernel_details.csv: "aic_mac_ratio", "aic_mac_time(us)" */
	double *v;
};

/* Something a reader noticed: what was repaired, dropped or is missing. */
struct np_diag {
	const char *code; /* UPPER_SNAKE, as in docs/findings.md; static */
	const char *file, *text;
	uint64_t count;
};

struct np_profile {
	struct np_intern strings;
	struct np_arena arena; /* texts of the diagnostics */
#define NP_MEMBER_(tag, COLUMNS, member) struct tag member;
	NP_TABLES(NP_MEMBER_)
#undef NP_MEMBER_
	NP_VEC(struct np_metric) metrics;
	NP_VEC(struct np_diag) diags;
	struct np_map step_rows; /* id → row in steps */
	unsigned loaded;         /* enum np_load bits that a file of the capture answered */
	uint64_t dropped_rows;
};

/* NULL: out of memory. */
struct np_profile *np_profile_new(void);
void np_profile_free(struct np_profile *self); /* NULL is fine */

/* Remember something for the report. Texts are copied; `file` may be NULL. Once
 * memory is out nothing is remembered. */
void np_profile_diag(struct np_profile *self, const char *code, const char *file, uint64_t count,
                     const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* The metric column of this name, or NULL. */
const struct np_metric *np_profile_metric(const struct np_profile *self, const char *name);

/* A metric column for all rows of `kernels` that exist now, filled with NaN;
 * NULL: out of memory. Found when it is there already. */
struct np_metric *np_profile_metric_add(struct np_profile *self, np_str name);

/*
 * The same with values at hand: takes over `v`, an np_alloc'd array of as many
 * values as kernels, also on failure. An older column of that name stays.
 */
bool np_profile_metric_adopt(struct np_profile *self, np_str name, double *v);

/*
 * Order the kernels by (device, start, row), with their shapes and metrics;
 * compute wait_ns where it is NP_NO_I64; fill start_ns, end_ns and kernels of
 * the steps. A reader calls it once, at the end.
 */
bool np_profile_finish_kernels(struct np_profile *self);

/* Order host_ops by (start, longer first), host_conns with them; tasks, comm_ops,
 * comm_tasks and comm_schedule by start; mstx by start. */
bool np_profile_sort_host_ops(struct np_profile *self);
bool np_profile_sort_tasks(struct np_profile *self);
bool np_profile_sort_mstx(struct np_profile *self);

/* Row of the step with this id, or NP_NO_U32. */
uint32_t np_profile_find_step(const struct np_profile *self, int64_t id);
/* The same, appended when it is not there; NP_NO_U32: out of memory. */
uint32_t np_profile_add_step(struct np_profile *self, int64_t id);

/* Order the steps by id; kernels and comm_ops follow. Then np_profile_finish_kernels(). */
bool np_profile_finish_steps(struct np_profile *self);

/*
 * Append the kernels of `from` with their shapes, metrics and steps; strings are
 * taken over. For chunks of one file that were read apart, and for slices.
 */
bool np_profile_append_kernels(struct np_profile *self, const struct np_profile *from);

/* "hcom_allReduce__865_0_1" → "hcom_allReduce_", as kernel_details.csv has it; names
 * without "__" are their own type. NP_ID_NONE: none, or out of memory. */
uint32_t np_profile_comm_type(struct np_profile *self, uint32_t name);

/* Is this row's core COMMUNICATION (or the old HCCL)? */
bool np_is_comm_core(np_str core);

#endif
