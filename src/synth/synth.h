/*
 * Captures of any size, made up, with planted faults and known answers.
 *
 *   options ─▶ plan (all ranks, collectives only) ─▶ one rank at a time ─▶ files
 *                                                         └─▶ truth.json
 *
 * The run that is simulated is a transformer: every step is `layers` layers of
 * `ops` kernels with one all-reduce each, which overlaps with the first half of
 * the next layer, then an all-reduce of the world, then the optimizer. Tables,
 * columns, number formats and formulas are those of specs/torch_npu.md §2-§4,
 * so a reader that recomputes step times, operator statistics or communication
 * times must get what the files say, and what truth.json says.
 *
 *   DIR/truth.json
 *   DIR/<host>_<pid>_<17 digits>_ascend_pt/         one per rank
 *       profiler_info_<rank>.json  profiler_metadata.json  logs/
 *       ASCEND_PROFILER_OUTPUT/    text and/or db
 *       PROF_<n>_<17 digits>_<id>/mindstudio_profiler_output/   msprof
 *
 * Everything follows from the options: the same options give the same bytes, on
 * any machine (databases: with the same SQLite). Nothing asks the clock, the
 * locale or the environment.
 *
 * Threads: np_synth_write() uses no global state.
 */
#ifndef NP_SYNTH_SYNTH_H
#define NP_SYNTH_SYNTH_H

#include "base/err.h"
#include "base/mem.h"
#include "base/time.h"

enum np_synth_format {
	NP_SYNTH_TEXT = 1 << 0,   /* csv and json files of torch_npu */
	NP_SYNTH_DB = 1 << 1,     /* ascend_pytorch_profiler_<rank>.db, analysis.db */
	NP_SYNTH_MSPROF = 1 << 2, /* PROF_* with op_summary_*.csv and msprof_*.json */
};

/* id, name, argument, code that a checker should report, help.
 * Arguments: "" none · "R" a rank · "[R]" a rank or, left out, the ranks the
 * help names (all, if it names none) · "A-B" two ranks · "H" a host · "S" a stage. */
#define NP_SYNTH_FAULT_MAP(X)                                                                     \
	X(SLOW_RANK, "slow-rank", "R", "SLOW_RANK", "kernels of rank R take 1.4 times as long")   \
	X(SLOW_LINK, "slow-link", "A-B", "SLOW_LINK",                                             \
	  "the link between A and B has 1/8 of its speed")                                        \
	X(HOST_BOUND, "host-bound", "R", "HOST_BOUND",                                            \
	  "rank R issues work slower than it is done")                                            \
	X(IDLE_HOST_OP, "idle-host-op", "[R]", "HOST_BOUND",                                      \
	  "the device waits 1 ms per layer for a slow operator on the host")                      \
	X(IDLE_SYNC, "idle-sync", "[R]", "SYNC_BOUND",                                            \
	  "the device waits 1 ms per layer for a host blocked in a sync call")                    \
	X(IDLE_DATALOADER, "idle-dataloader", "[R]", "HOST_BOUND",                                \
	  "the device waits 1 ms per layer for the data loader")                                  \
	X(IDLE_GC, "idle-gc", "[R]", "HOST_BOUND",                                                \
	  "the device waits 1 ms per layer for garbage collection")                               \
	X(IDLE_DEPENDENCY, "idle-dependency", "[R]", "DEPENDENCY_BOUND",                          \
	  "the stream waits 1 ms per layer for an event")                                         \
	X(IDLE_LAUNCH, "idle-launch", "[R]", "HOST_BOUND",                                        \
	  "a launching call takes 1 ms per layer")                                                \
	X(IDLE_UNTRACED, "idle-untraced", "[R]", "DEVICE_IDLE_GAP_HEAVY",                         \
	  "the device waits 1 ms per layer, the host outside of every range")                     \
	X(WARMUP, "warmup-in-window", "", "WARMUP_NOT_STRIPPED",                                  \
	  "the first recorded step compiles: slow host, slower kernels")                          \
	X(EXPOSED_COMM, "exposed-comm", "", "COMM_EXPOSED",                                       \
	  "collectives move 8 times as much: computing cannot hide them")                         \
	X(STALE, "stale", "[R]", "STALE", "files are an hour older than the capture's start")     \
	X(NA_METRICS, "na-metrics", "[R]", "METRICS_NA", "all metric cells are N/A")              \
	X(NO_METRICS, "no-metrics", "[R]", "CONFIG_MISSING", "Level0: 9 columns, no statistics")  \
	X(OLD_HEADER, "old-header", "[R]", "",                                                    \
	  "columns of 2024: no Device_id, Block Dim instead of Block Num")                        \
	X(ASCEND_910A, "910a", "[R]", "", "the 36 columns of a 910A")                             \
	X(HEADER_ONLY, "header-only", "[R]", "HEADER_ONLY", "kernel_details.csv has no rows")     \
	X(NO_KERNELS, "no-kernel-details", "[R]", "KERNELS_MISSING",                              \
	  "kernel_details.csv is absent")                                                         \
	X(EMPTY_DIR, "empty-dir", "[R]", "OUTPUT_EMPTY", "ASCEND_PROFILER_OUTPUT is empty")       \
	X(RAW_ONLY, "raw-only", "[R]", "RAW_ONLY", "FRAMEWORK and PROF_* that nobody exported")   \
	X(TRUNCATED, "truncated-trace", "[R]", "TRACE_TRUNCATED", "trace_view.json stops midway") \
	X(TRACE_COMMA, "trace-comma", "[R]", "TRACE_REPAIRED", "trace_view.json ends in ,]")      \
	X(BAD_UTF8, "bad-utf8", "[R]", "BAD_UTF8", "names hold bytes that are not UTF-8")         \
	X(MISSING_RANK, "missing-rank", "R", "RANK_MISSING", "rank R has no directory")           \
	X(DUPLICATE_RANK, "duplicate-rank", "R", "RANK_DUP",                                      \
	  "rank R has a second, older directory")                                                 \
	X(MIXED_BATCH, "mixed-batch", "[R]", "BATCH_MIXED",                                       \
	  "rank R, else the last one, is from the day before")                                    \
	X(MIXED_FORMAT, "mixed-format", "[R]", "TYPE_MIXED",                                      \
	  "rank R, else the last one, is db only (text only in a db set)")                        \
	X(RANK_UNKNOWN, "rank-unknown", "[R]", "RANK_UNKNOWN",                                    \
	  "rank R, else rank 0, does not say which rank it is")                                   \
	X(HOST_ONLY, "host-only", "[R]", "NO_DEVICE_DATA", "no device events at all")             \
	X(AICPU, "aicpu", "[R]", "AICPU", "an AI_CPU kernel of 0.3 ms in every layer")            \
	X(MEMORY_BOUND, "memory-bound", "[R]", "MEMORY_BOUND_OPS",                                \
	  "a concat of 0.4 ms in every layer, which only moves data")                             \
	X(FUSABLE, "fusable", "[R]", "FUSION_CANDIDATE",                                          \
	  "every layer has an rms norm made of six kernels")                                      \
	X(FREQ_DROP, "freq-drop", "[R]", "FREQ_DROP",                                             \
	  "AI Core Freq says 1200 MHz in the middle third of the capture")                        \
	X(DYNAMIC_SHAPE, "dynamic-shape", "[R]", "DYNAMIC_SHAPE",                                 \
	  "matmuls have other input shapes in every step")                                        \
	X(NO_COMM_TABLES, "no-comm-tables", "[R]", "COMM_MISSING",                                \
	  "communication was not collected: no files, no tables")                                 \
	X(RUN_FAILED, "run-failed-log", "[R]", "RUN_FAILED",                                      \
	  "logs tell of failed tasks and of a wrong schedule, in colours")                        \
	X(NEGATIVE, "negative-duration", "[R]", "NEGATIVE_DURATION",                              \
	  "three kernels end before they start")                                                  \
	X(RAGGED, "ragged-rows", "[R]", "RAGGED_ROWS",                                            \
	  "rows of kernel_details.csv with too few or too many cells")                            \
	X(IDLE_RANK, "idle-rank", "R", "IDLE_RANK", "rank R only takes part in collectives")      \
	X(SPAN, "span-mismatch", "R", "SPAN_MISMATCH", "rank R records ten times as long")        \
	X(UNCLOSED_STEP, "unclosed-step", "[R]", "SCHEDULE_INCOMPLETE",                           \
	  "the schedule asks for two more steps than were recorded")                              \
	X(SLICES, "slices", "[R]", "",                                                            \
	  "op_summary comes in three slices (adds the msprof format)")                            \
	X(OP_REGRESSION, "regression-in-one-op", "[R]", "OP_SLOWER",                              \
	  "attention kernels take 1.3 times as long; compare it with a set without")              \
	X(INSERTED_KERNEL, "inserted-kernel", "[R]", "KERNELS_MOVED",                             \
	  "one cast more in the middle layer of every step; compare it with a set without")       \
	X(LOW_FREQ, "low-freq", "R", "LOW_FREQUENCY",                                             \
	  "rank R runs at 1200 MHz, and its kernels take 1.5 times as long")                      \
	X(EXPERT_IMBALANCE, "expert-imbalance", "R", "IMBALANCE",                                 \
	  "the experts of rank R get three times the tokens (needs --ep)")                        \
	X(CARRIED_DELAY, "carried-delay", "R", "SLOW_RANK",                                       \
	  "rank R is slow in the last layer: its tp group comes late to others (needs --tp)")     \
	X(LATE_START, "late-start", "R", "LATE_START",                                            \
	  "rank R begins 30 ms late, once, and then keeps up")                                    \
	X(STAGE_IMBALANCE, "stage-imbalance", "S", "STAGE_IMBALANCE",                             \
	  "kernels of pipeline stage S take 1.5 times as long (needs --pp)")                      \
	X(PIPELINE_BUBBLE, "pipeline-bubble", "", "PIPELINE_BUBBLE",                              \
	  "one micro-batch: one stage works while the others wait (needs --pp)")                  \
	X(SLOW_NODE, "slow-node", "H", "SLOW_LINK",                                               \
	  "all links from and to host H have 1/5 of their speed")                                 \
	X(CLOCK_OFFSET, "clock-offset", "[H]", "CLOCK_OFFSET",                                    \
	  "the clock of host H, else of all but the first, is 1 to 2 ms off")                     \
	X(CLOCK_DRIFT, "clock-drift", "[H]", "CLOCK_DRIFT",                                       \
	  "the clock of host H, else of all but the first, runs 42 to 78 ppm off")                \
	X(FORMULA_NAMES, "formula-names", "[R]", "", "kernel names that a spreadsheet would run") \
	X(HOSTILE_NAMES, "hostile-names", "[R]", "",                                              \
	  "kernel names with quotes, line breaks, escapes")

enum np_synth_fault_id {
#define X(id, name, argument, code, help) NP_SYNTH_##id,
	NP_SYNTH_FAULT_MAP(X)
#undef X
		NP_SYNTH_FAULTS
};

struct np_synth_fault_info {
	const char *name, *argument;
	const char *code; /* what a checker should report; "": nothing, it must cope */
	const char *help;
};

/* The table above, NP_SYNTH_FAULTS rows, indexed by id. */
const struct np_synth_fault_info *np_synth_fault_info(enum np_synth_fault_id id);

/* What its argument is: "rank", "host" or "stage". */
const char *np_synth_fault_scope(enum np_synth_fault_id id);

struct np_synth_fault {
	enum np_synth_fault_id id;
	int64_t a, b; /* ranks, a host or a stage; -1: not given */
};

/* "slow-rank=3", "slow-link=0-1", "stale". Errors: E_USAGE with what was wrong. */
enum np_status np_synth_parse_fault(const char *text, struct np_synth_fault *out,
                                    struct np_err *err);

/* "text,db", "msprof", "all". Errors: E_USAGE. */
enum np_status np_synth_parse_formats(const char *text, unsigned *out, struct np_err *err);

struct np_synth_options {
	uint32_t ranks, steps, layers;
	uint32_t ops; /* kernels per layer */
	uint32_t tp;  /* ranks of a tensor-parallel group, divides `ranks`; 0: 2 if even, else 1 */
	/* A parallel layout (program.h) instead of tp and dp alone. Set by np_synth_write() too,
	 * when a number below is given or a fault needs it. */
	bool layout;
	bool comm_log;           /* also what the collective recorder would have left: DIR/comm */
	bool lite;               /* only the small files that an analysis across ranks reads */
	uint32_t pp, dp, ep;     /* 0: 1, what is left, 1 */
	uint32_t micro_batches;  /* per step; 0: as many as stages */
	uint32_t comm_ops;       /* collectives of a rank per step, at least: sets `layers` */
	uint32_t ranks_per_host; /* 0: 8 */
	unsigned formats;        /* of np_synth_format */
	int level;               /* profiler level 0, 1, 2 */
	uint64_t seed;
	np_ns start_epoch_ns; /* start of the capture; 0: 2025-06-01 08:00 UTC */
	bool set_mtimes; /* files get the time of the capture's end, else they stay as written */
	bool force;      /* write over an earlier result of np_synth_write() */
	const struct np_synth_fault *faults; /* borrowed */
	size_t n_faults;
};

/* 2 ranks, 2 steps, 4 layers of 12 kernels, text, level 1, seed 1. */
void np_synth_options_init(struct np_synth_options *self);

enum {
	NP_SYNTH_MAX_RANKS = 16384,
	NP_SYNTH_MAX_STEPS = 100000,
	NP_SYNTH_MAX_LAYERS = 10000,
	NP_SYNTH_MAX_OPS = 1000,
	NP_SYNTH_MAX_KERNELS = 20000000, /* per rank */
};

struct np_synth_stats {
	uint64_t directories, files, bytes;
	uint64_t kernels, collectives; /* over all written ranks */
};

/*
 * Write the set below `dir`, which is made if need be. *stats may be NULL.
 * Errors: E_USAGE (options that do not fit together), E_RANGE (rank of a fault
 * beyond `ranks`), E_LIMIT, E_EXISTS (dir is not empty, or `force` without a
 * truth.json of ours in it), E_IO, E_NOMEM. After an error DIR is incomplete
 * and has no truth.json.
 */
enum np_status np_synth_write(const char *dir, const struct np_synth_options *options,
                              struct np_synth_stats *stats, struct np_err *err);

#endif
