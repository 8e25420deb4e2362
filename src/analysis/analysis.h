/*
 * One rank: what its profile tells, in five layers.
 *
 *   capture ─load─▶ profile ─prepare─▶ np_analysis ─▶ one function per analysis ─▶ report
 *                                      (steps, classes, busy times: derived once)
 *
 * An analysis is one file and one row of the table in analyze.c. It reads the
 * context, adds tables and findings to the report, and prints nothing. The
 * three rules that make the numbers trustworthy: parts sum to the whole
 * exactly, in integer ns; the same input gives the same output; what is unknown
 * is a class of its own (N/A is never 0).
 *
 * Severity of a finding is its priority: NP_ERROR = P0, NP_WARNING = P1,
 * NP_INFO = P2. A healthy capture has no P0 and no P1.
 */
#ifndef NP_ANALYSIS_ANALYSIS_H
#define NP_ANALYSIS_ANALYSIS_H

#include "analysis/classify.h"
#include "analysis/idle.h"
#include "analysis/launch.h"
#include "analysis/rules.h"
#include "base/progress.h"
#include "capture/capture.h"
#include "profile/interval.h"
#include "report/report.h"

/*
 * A step as the device saw it: from the first start to the last end of its
 * kernels (what the exporter calls Stage), cut at the start of the next step
 * where they overlap. A capture without steps is one span with id NP_NO_I64.
 * computing + comm_not_overlapped + free == end - start, exactly.
 */
struct np_span {
	int64_t id;
	np_ns start, end;
	np_ns host_start, host_end; /* of ProfilerStep#N, NP_NO_I64 when unknown */
	np_ns computing, comm, comm_not_overlapped, overlapped, free; /* ns */
	np_ns preparing; /* start - host_start, NP_NO_I64 when unknown */
	uint32_t kernels, comm_kernels;
	uint32_t step_row; /* in profile->steps, NP_NO_U32 */
};

struct np_analyze_options {
	bool has_step;
	int64_t step; /* only this step */
	unsigned top; /* rows of long tables; 0: 20 */
	unsigned threads;
	unsigned buckets; /* rows of the table `thumbnail`; 0: it is not made */
	const struct np_opt_pattern {
		const char *name, *pattern;
	} * stages; /* --stage NAME=PATTERN */
	size_t n_stages;
	const struct np_rules *rules; /* NULL: the defaults */
	struct np_progress *progress; /* or NULL */
};

struct np_analysis {
	const struct np_capture *capture;
	struct np_profile *profile;
	struct np_report *report;
	const struct np_analyze_options *options;
	const struct np_rules *rules;
	uint32_t device; /* the one that is analysed; NP_NO_U32 when the capture doesn't say */

	/* Kernels of this device in the chosen steps, in order of start. Collectives
	 * are among them, sync tasks are not. */
	uint32_t *rows;
	size_t n_rows;
	uint8_t *class;    /* enum np_class by kernel row (not by index in rows) */
	uint32_t *span_of; /* index in spans by kernel row, NP_NO_U32 outside */

	NP_VEC(struct np_span) spans;
	struct np_intervals compute, comm; /* merged, over the whole capture, this device */
	np_ns total_ns;                    /* sum of the spans' lengths */

	/* Where a kernel was launched: row in profile->host_ops by kernel row, NP_NO_U32
	 * when unknown; NULL until np_links_build(). */
	uint32_t *launch;
	bool oom;

	struct np_launch *launches; /* by kernel row, as `launch`; see launch.h */
	np_ns idle_ns[NP_N_IDLE];   /* Free by class, after np_analyze_idle(); see idle.h */
};

/*
 * Everything about one rank into `report`: tables and findings of all layers,
 * ranked advice, verdict NONE. E_EMPTY when the capture has no kernels (the
 * message says what would be needed); E_NOMEM.
 */
enum np_status np_analyze(const struct np_capture *capture,
                          const struct np_analyze_options *options, struct np_report *report,
                          struct np_err *err);

/* Load and derive only; for `compare`, `report` and tests. np_analysis_release() in every case. */
enum np_status np_analysis_prepare(struct np_analysis *self, const struct np_capture *capture,
                                   const struct np_analyze_options *options,
                                   struct np_report *report, unsigned extra_tables,
                                   struct np_err *err);
void np_analysis_release(struct np_analysis *self);

/* Connect kernels with their launches on the host (links.c). false: out of memory. */
bool np_links_build(struct np_analysis *self);

/* Text of a string id, and of a kernel's name, for tables. */
static inline np_str np_text(const struct np_analysis *self, uint32_t id)
{
	return np_intern_get(&self->profile->strings, id);
}

/* How many rows a long table gets. */
static inline size_t np_top(const struct np_analysis *self)
{
	return self->options->top ? self->options->top : 20;
}

/* Share of ns in the sum of the spans, 0…1. */
static inline double np_share(const struct np_analysis *self, np_ns ns)
{
	return self->total_ns > 0 ? (double)ns / (double)self->total_ns : 0;
}

/* Where the kernels come from, for evidence: path of the file, or of the db. */
const char *np_kernel_source(const struct np_analysis *self);

/* The analyses, in the order in which they run. Each may assume what stands before it. */
typedef void np_analysis_fn(struct np_analysis *self);
np_analysis_fn np_analyze_warmup, np_analyze_steps, np_analyze_step_trace; /* layer 0 */
np_analysis_fn np_analyze_stages;                                          /* layer 1 */
np_analysis_fn np_analyze_classes;                                         /* layer 2 */
np_analysis_fn np_analyze_idle, np_analyze_launch, np_analyze_queue;       /* layer 3a */
np_analysis_fn np_analyze_overlap;                                         /* layer 3b */
np_analysis_fn np_analyze_bound, np_analyze_fusion;                        /* layer 3c */
np_analysis_fn np_analyze_operators, np_analyze_outliers, np_analyze_aicpu, np_analyze_frequency,
	np_analyze_shapes;           /* layer 4 */
np_analysis_fn np_analyze_advice;    /* layer 5 */
np_analysis_fn np_analyze_thumbnail; /* for the chart of `report` */

#endif
