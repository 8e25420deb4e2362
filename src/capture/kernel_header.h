/*
 * The header of a kernel table: which column is what, by name.
 *
 * kernel_details.csv and op_summary_*.csv exist in many generations (8 … 48
 * columns, torch_npu.md §3.1, requirements §6.3). Columns are found by name in
 * alias sets (R106), never by position, and the count of columns is only a
 * hint. What is not a known column is a metric of the recorded PMU group.
 */
#ifndef NP_CAPTURE_KERNEL_HEADER_H
#define NP_CAPTURE_KERNEL_HEADER_H

#include "io/csv.h"

/* id, alternatives separated by '|' */
#define NP_KCOL_MAP(X)                                                           \
	X(STEP, "Step Id|Step ID")                                               \
	X(DEVICE, "Device_id|Device Id|Device ID|device_id")                     \
	X(MODEL, "Model ID|Model Id")                                            \
	X(TASK, "Task ID|Task Id|task_id")                                       \
	X(STREAM, "Stream ID|Stream Id|stream_id")                               \
	X(NAME, "Name|Op Name|kernel_name")                                      \
	X(TYPE, "Type|OP Type|Op Type")                                          \
	X(STATE, "OP State|Op State")                                            \
	X(CORE, "Accelerator Core|Task Type|kernel_type")                        \
	X(START, "Start Time(us)|Task Start Time(us)|task_start(us)")            \
	X(DURATION, "Duration(us)|Task Duration(us)|duration(us)|task_time(us)") \
	X(WAIT, "Wait Time(us)|Task Wait Time(us)")                              \
	X(BLOCK, "Block Num|Block Dim")                                          \
	X(MIX_BLOCK, "Mix Block Num|Mix Block Dim")                              \
	X(HF32, "HF32 Eligible")                                                 \
	X(IN_SHAPES, "Input Shapes")                                             \
	X(IN_DTYPES, "Input Data Types")                                         \
	X(IN_FORMATS, "Input Formats")                                           \
	X(OUT_SHAPES, "Output Shapes")                                           \
	X(OUT_DTYPES, "Output Data Types")                                       \
	X(OUT_FORMATS, "Output Formats")                                         \
	X(CONTEXT, "Context ID|Context Id")                                      \
	X(TASK_STOP, "task_stop(us)")

enum np_kcol {
#define X(id, names) NP_KCOL_##id,
	NP_KCOL_MAP(X)
#undef X
		NP_N_KCOLS,
};

/* The four families of unit utilisation, R45. */
enum np_unit { NP_UNIT_VEC, NP_UNIT_MAC, NP_UNIT_MTE2, NP_UNIT_MTE3, NP_N_UNITS };

/* Which PMU group a header carries. */
enum np_pmu_group {
	NP_PMU_NONE,      /* no metric columns: Level0, or aic_metrics = AiCoreNone */
	NP_PMU_PIPE,      /* aic_/aiv_ ratios of PipeUtilization */
	NP_PMU_PIPE_910A, /* the same without prefix: 910A and other non-STARS chips */
	NP_PMU_ARITHMETIC,
	NP_PMU_MEMORY,
	NP_PMU_MEMORY_L0,
	NP_PMU_MEMORY_UB,
	NP_PMU_RESOURCE_CONFLICT,
	NP_PMU_L2_CACHE,
	NP_PMU_MEMORY_ACCESS,
	NP_PMU_OTHER, /* metric columns of no group that is known */
};

/* "PipeUtilization", … as ExperimentalConfig calls it. */
const char *np_pmu_group_name(enum np_pmu_group group);

struct np_kernel_header {
	int column[NP_N_KCOLS]; /* -1: not there */
	size_t n_columns;
	size_t n_metrics;
	unsigned units; /* bit per enum np_unit that has a ratio column */
	enum np_pmu_group group;
	bool op_summary_names; /* "Op Name" rather than "Name" */
};

void np_kernel_header_read(const struct np_csv *csv, struct np_kernel_header *out);

/* Is column i a metric (neither known nor blank)? */
bool np_kernel_header_is_metric(const struct np_kernel_header *header, size_t i, np_str name);

/* The family of a ratio column, with or without aic_/aiv_; NP_N_UNITS if it is none. */
enum np_unit np_unit_of(np_str column_name);

const char *np_unit_name(enum np_unit unit); /* "vec", "mac", "mte2", "mte3" */

/* All names a column may have, for messages: "Duration(us)|Task Duration(us)|…". */
const char *np_kcol_names(enum np_kcol column);

#endif
