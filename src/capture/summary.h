/*
 * One capture in a few numbers: what `info`, the linter and the gate need from
 * its tables. Kernels and step rows are read, traces are not.
 */
#ifndef NP_CAPTURE_SUMMARY_H
#define NP_CAPTURE_SUMMARY_H

#include "base/progress.h"
#include "capture/capture.h"

struct np_summary {
	enum np_status status; /* of loading; the rest is zero unless NP_OK */
	struct np_err err;
	unsigned loaded; /* enum np_load bits that were answered */
	size_t kernels, comm_kernels,
		judged_kernels; /* judged: on AI cores, not comm, not AI CPU */
	size_t with_units;      /* judged kernels with at least one unit ratio that is not N/A */
	size_t outside_steps;   /* kernels of no step, when there are steps */
	size_t zero_duration;
	uint64_t dropped_rows;
	np_ns first_ns,
		last_ns; /* start of the first, end of the last kernel; NP_NO_I64 without any */
	np_ns busy_ns;   /* union of the kernels that are not communication */
	int64_t *steps;  /* ids, ascending; owned */
	size_t n_steps;
	unsigned units;             /* bit per enum np_unit that has a column, in any format */
	struct np_profile *profile; /* kept for its diagnostics; tables may be looked at */
};

/* Load and sum up every capture, on `threads` threads; `progress` may be NULL. out:
 * one per capture, freed with np_summaries_free(). Only E_NOMEM is an error; the rest is
 * in .status. */
enum np_status np_summarize(const struct np_captures *all, unsigned what, unsigned threads,
                            struct np_progress *progress, struct np_summary **out,
                            struct np_err *err);
void np_summaries_free(struct np_summary *self, size_t n);

/* Does the core do work that a person would optimise: AI_CORE, AI_VECTOR_CORE, MIX_*? */
bool np_is_judged_core(np_str core);

#endif
