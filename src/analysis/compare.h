/*
 * Compare runs: BASE against one or more TARGETs, each of them one capture or several
 * runs of the same work, in any mix of formats.
 *
 *   captures ─▶ np_cmp_side (a few columns, names interned in common) ─┐
 *   captures ─▶ np_cmp_side ───────────────────────────────────────────┴▶ tables, checks,
 *                                                                         findings, verdict
 * A side is a list of samples: the steps of all its runs. A figure of a side is its median
 * over the samples; with three or more on both sides the difference of the medians has a
 * 95 % bootstrap interval (bootstrap.h), and what lies around 0 is "within noise". With
 * fewer the thresholds alone decide, and the report says so.
 *
 * The profile of a run is freed as soon as it is a side, so the peak is one profile and
 * the columns.
 */
#ifndef NP_ANALYSIS_COMPARE_H
#define NP_ANALYSIS_COMPARE_H

#include "analysis/analysis.h"

struct np_compare_input {
	const char *label;                        /* path as given */
	const struct np_capture *const *captures; /* one per run */
	size_t n;
	const char *gpu_trace; /* a chrome trace of a GPU instead of captures; or NULL */
};

/* Is this file a chrome trace of a GPU: JSON whose outermost value is an object? Those of
 * NPUs are arrays. */
bool np_is_gpu_trace(const char *path);

struct np_compare_options {
	bool has_step;
	int64_t step; /* only this step, on both sides */
	unsigned top; /* rows of long tables; 0: 20 */
	unsigned threads;
	bool force; /* a verdict although the sides are not comparable */
	bool show_normalised;
	const char *fail_on; /* "total>5%,op:MatMulV3>3%,new>10ms" instead of the default; NULL */
	const struct np_rules *rules; /* NULL: the defaults */
	struct np_progress *progress; /* or NULL */
};

/*
 * Everything about the comparison into `report`: tables totals, overall, classes, op_types,
 * ops, new, removed, changed, copy_ops, comm_groups, memory, api, alignment, checks; in
 * each the column `target` counts the targets from 1.
 *
 * Verdict and exit code: FAIL 1 when a check fails; UNKNOWN 3 when the sides are not
 * comparable or a check of --fail-on could not be judged; else PASS 0.
 * E_EMPTY when a capture has no kernels, E_USAGE for a bad fail_on, E_NOMEM.
 */
enum np_status np_compare(const struct np_compare_input *base,
                          const struct np_compare_input *targets, size_t n_targets,
                          const struct np_compare_options *options, struct np_report *report,
                          struct np_err *err);

#endif
