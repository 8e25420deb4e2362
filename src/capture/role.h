/*
 * What a file is, by its name: one table for the whole tool.
 */
#ifndef NP_CAPTURE_ROLE_H
#define NP_CAPTURE_ROLE_H

#include "base/str.h"

/* id, short name, what is lost without it */
#define NP_ROLE_MAP(X)                                                                             \
	X(PROFILER_INFO, "profiler_info", "rank, level and schedule of the capture")               \
	X(METADATA, "profiler_metadata", "parallel groups and environment")                        \
	X(TRACE, "trace_view", "timeline, host operators, launch delays")                          \
	X(KERNELS, "kernel_details", "every kernel with shapes and unit utilisation")              \
	X(OP_SUMMARY, "op_summary", "every kernel with shapes and unit utilisation")               \
	X(TASK_TIME, "task_time", "kernel times")                                                  \
	X(STEP_TRACE, "step_trace_time", "computing, communication and free time per step")        \
	X(OP_STATISTIC, "op_statistic", "time per operator type")                                  \
	X(API_STATISTIC, "api_statistic", "time in host APIs")                                     \
	X(OPERATOR_DETAILS, "operator_details", "host and device time per torch operator")         \
	X(OPERATOR_MEMORY, "operator_memory", "allocations")                                       \
	X(MEMORY_RECORD, "memory_record", "memory over time")                                      \
	X(NPU_MODULE_MEM, "npu_module_mem", "memory of CANN's modules")                            \
	X(STATIC_OP_MEM, "static_op_mem", "memory of static graphs")                               \
	X(L2_CACHE, "l2_cache", "L2 hit rates")                                                    \
	X(SOC_PMU, "soc_pmu", "TLB hit rates")                                                     \
	X(DATA_PREPROCESS, "data_preprocess", "AI CPU operators")                                  \
	X(COMM_JSON, "communication", "collectives: transit, wait, bandwidth")                     \
	X(COMM_MATRIX, "communication_matrix", "bandwidth per link")                               \
	X(COMM_STATISTIC, "communication_statistic", "collectives per type")                       \
	X(LINK_CSV, "link counters", "network and bus bandwidth over time")                        \
	X(STEP_TRACE_MSPROF, "step_trace", "msprof's own step table")                              \
	X(PROFILER_DB, "profiler db", "everything: tasks, kernels, host calls, collectives")       \
	X(MSPROF_DB, "msprof db", "everything of CANN: tasks, kernels, host calls, collectives")   \
	X(ANALYSIS_DB, "analysis db", "collectives: transit, wait, bandwidth, matrix; step times") \
	X(MSMONITOR_DB, "msmonitor db", "kernels and collectives sampled by msmonitor")            \
	X(CLUSTER_DB, "cluster_analysis db", "results over all ranks")                             \
	X(CLUSTER_FILE, "cluster result", "results over all ranks")                                \
	X(INSIGHT_DB, "MindStudio Insight's own db", "nothing: a cache of the viewer")             \
	X(INFO_JSON, "info.json", "host, device and clock frequencies")                            \
	X(SAMPLE_JSON, "sample.json", "what msprof collected")                                     \
	X(LOG, "log", "messages of the parsers")                                                   \
	X(OTHER_CSV, "other csv", "nothing that npuprof reads")

enum np_role {
	NP_ROLE_NONE, /* not a file of a capture */
#define X(id, name, loss) NP_ROLE_##id,
	NP_ROLE_MAP(X)
#undef X
		NP_N_ROLES,
};

const char *np_role_name(enum np_role role);
const char *np_role_loss(enum np_role role);

/* A name taken apart. */
struct np_name {
	enum np_role role;
	int slice;        /* behind _slice_, -1 without */
	np_str timestamp; /* the digits of <name>_<ts>.csv; view into the name */
	int64_t rank; /* profiler_info_3.json, ascend_pytorch_profiler_3.db; NP_NO_I64 without */
	bool gzip;    /* ends in .gz */
};

/* Pure; any bytes. */
struct np_name np_name_parse(np_str file_name);

#endif
