/* What the checkers of the cluster compare: one row per step and rank. Private to src/advice/. */
#ifndef NP_ADVICE_CLUSTER_ROWS_H
#define NP_ADVICE_CLUSTER_ROWS_H

#include "advice/checker.h"

/* One row of step_trace_time. */
struct np_step_row {
	int64_t step; /* NP_NO_I64: the capture has no steps */
	size_t rank;  /* index in cluster->ranks */
	double us[3]; /* computing, communication (not overlapped), free */
};

struct np_step_rows {
	struct np_step_row *v; /* by step, then rank */
	size_t n, cap;
};

/* One step's traffic of a rank by kind of link, each operator counted once. */
enum np_link_kind { NP_LINK_RDMA, NP_LINK_SDMA, NP_N_LINK_KINDS };

struct np_link_row {
	int64_t step;
	size_t rank;
	double mb[NP_N_LINK_KINDS], ms[NP_N_LINK_KINDS];
};

struct np_link_rows {
	struct np_link_row *v; /* by step, then rank */
	size_t n, cap;
};

/* Of all ranks, only of the user's --step where there is one; false: out of memory.
 * np_vec_release() the rows in every case. */
bool np_advice_step_rows(const struct np_advice *self, struct np_step_rows *out);
bool np_advice_link_rows(const struct np_advice *self, struct np_link_rows *out);

/* GB/s; 0 where nothing was sent. */
static inline double np_link_gbps(const struct np_link_row *row, enum np_link_kind kind)
{
	return row->ms[kind] > 0 ? row->mb[kind] / row->ms[kind] : 0;
}

/* "step 50", or "all steps" for NP_NO_I64. */
enum { NP_STEP_NAME_SIZE = 40 };
const char *np_step_name(int64_t step, char out[NP_STEP_NAME_SIZE]);

#endif
