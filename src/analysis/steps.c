/*
 * Layer 0: the steps, and where their time went.
 */
#include "analysis/analysis.h"

static const struct np_column columns[] = {
	{"step", "", NP_COL_INT, "step id; - when the capture has no steps"},
	{"start_ns", "", NP_COL_TIME_NS, "start of the first kernel"},
	{"span_ns", "us", NP_COL_DUR_NS, "first start to last end of its kernels"},
	{"computing_ns", "us", NP_COL_DUR_NS, "union of the compute kernels"},
	{"comm_not_overlapped_ns", "us", NP_COL_DUR_NS, "communication while nothing is computed"},
	{"overlapped_ns", "us", NP_COL_DUR_NS, "communication while something is computed"},
	{"free_ns", "us", NP_COL_DUR_NS, "neither: span - computing - comm_not_overlapped"},
	{"free_share", "", NP_COL_PERCENT, "free / span"},
	{"preparing_ns", "us", NP_COL_DUR_NS, "host start of the step to its first kernel"},
	{"kernels", "", NP_COL_INT, "kernels, collectives included"},
};

void np_analyze_steps(struct np_analysis *self)
{
	struct np_table *table = NP_REPORT_TABLE(self->report, "steps", "Steps", columns);
	for (size_t i = 0; i < self->spans.n; i++) {
		const struct np_span *span = &self->spans.v[i];
		np_ns length = span->end - span->start;
		if (span->id == NP_NO_I64)
			np_cell_na(table);
		else
			np_cell_int(table, span->id);
		np_cell_int(table, span->start);
		np_cell_int(table, length);
		np_cell_int(table, span->computing);
		np_cell_int(table, span->comm_not_overlapped);
		np_cell_int(table, span->overlapped);
		np_cell_int(table, span->free);
		np_cell_real(table, length > 0 ? (double)span->free / (double)length : 0);
		if (span->preparing == NP_NO_I64)
			np_cell_na(table);
		else
			np_cell_int(table, span->preparing);
		np_cell_int(table, span->kernels);
	}
}
