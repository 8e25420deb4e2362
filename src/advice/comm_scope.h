/* What the checkers of communication share. Private to src/advice/. */
#ifndef NP_ADVICE_COMM_SCOPE_H
#define NP_ADVICE_COMM_SCOPE_H

#include <math.h>

#include "advice/checker.h"

/* Is a row of communication.json with this step looked at? The step is a number on both
 * sides: the official tool compares 50 with "step50", and so finds nothing. */
static inline bool np_comm_in_scope(const struct np_advice *self, int64_t step)
{
	const struct np_analyze_options *options = self->rank->options;
	return !options->has_step || options->step == step;
}

/* The exporter's own sums, "Total Op Info", are no operators. */
static inline bool np_comm_is_total(const struct np_advice *self, uint32_t op)
{
	return np_str_istarts(np_text(self->rank, op), NP_STR("total"));
}

/* No change of communication wins more than what is not hidden by computing: ms of all that
 * is looked at → us per step. */
static inline double np_comm_gain_us(const struct np_advice *self, double ms)
{
	np_ns uncovered = 0;
	for (size_t i = 0; i < self->rank->spans.n; i++)
		uncovered += self->rank->spans.v[i].comm_not_overlapped;
	return fmin(fmax(ms, 0) * 1000 / (self->steps > 0 ? self->steps : 1),
	            np_per_step_us(self, uncovered));
}

/* The file that comm_time and comm_bandwidth are of. */
static inline const char *np_comm_source(const struct np_capture *capture)
{
	const struct np_file *file = np_capture_file(capture, NP_ROLE_COMM_JSON);
	file = file ? file : np_capture_file(capture, NP_ROLE_ANALYSIS_DB);
	return file ? file->path : capture->path;
}

#endif
