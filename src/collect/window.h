/*
 * `plan window`: how large will a capture be, and is one window the right one?
 *
 * Every figure is an estimate between two ends, from rates that were observed and are
 * named beside it (table rates): captures of others differ by an order of magnitude with
 * the model, the level and the stacks, so that an estimate without its source is worthless.
 *
 * Three bases, each where its inputs are given: the kernels of a step (bytes per kernel),
 * the recorded time (bytes per rank and second), and the known size of one denoising step.
 */
#ifndef NP_COLLECT_WINDOW_H
#define NP_COLLECT_WINDOW_H

#include <stdbool.h>

#include "base/err.h"
#include "report/report.h"

struct np_plan_window {
	uint64_t active;  /* recorded steps, ≥ 1 */
	uint64_t ranks;   /* that record, ≥ 1 */
	int level;        /* 0, 1 or 2 */
	bool with_stack;  /* Python stacks (with_stack, with_modules) */
	double step_ms;   /* 0: not known */
	uint64_t kernels; /* per step and rank; 0: not known */
	const char *disk; /* directory whose free space is compared; NULL */
};

/* Bytes of one rank, the two ends of an estimate. */
struct np_size_range {
	double low, high;
};

/* Bytes that one kernel takes in ASCEND_PROFILER_OUTPUT, as text or (db) as databases. */
struct np_size_range np_window_per_kernel(int level, bool with_stack, bool db);

/* Bytes per rank and second of recording, raw and exported together. */
struct np_size_range np_window_per_second(void);

/*
 * With `disk` the verdict is PASS when the upper end fits, FAIL (exit 1) when the lower
 * one does not, UNKNOWN (exit 3) between. Errors: E_USAGE, those of statfs().
 */
enum np_status np_plan_window(const struct np_plan_window *self, struct np_report *report,
                              struct np_err *err);

#endif
