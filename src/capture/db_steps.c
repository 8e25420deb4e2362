/*
 * Steps of a database: host ranges from STEP_TIME, and which kernel belongs to which.
 *
 * As the exporter does for its StepTraceTime (torch_npu.md §3.12): a step's window on
 * the device begins with the first task launched by a node call (CANN_API type 10000)
 * that lies within the step's host range, and ends with the last one, but not before the
 * host range does:
 *
 *   host    ├─ step 7 ───────┤├─ step 8 ──────┤      ranges of STEP_TIME
 *            n  n    n    n     n   n                 node calls
 *   device        k  k    k     k │ k   k             their tasks
 *                 ├─── 7 ─────────┤ (windows may overlap: the first one wins)
 *
 * A kernel or collective is in the first window with START <= its start < END.
 *
 * Without any node call in the database (CANN_API absent, or torch's tables alone) the
 * launches are unknown; then a step's window reaches from its host start to the host
 * start of the next one, and the last window has no end, because kernels come later
 * than their launch.
 */
#include <stdlib.h>

#include "capture/db_load.h"

enum { API_NODE = 10000 };

static enum np_status step_row(struct np_dbl *self, const struct np_db_value *row)
{
	int64_t id = np_dbl_i64(&row[0]);
	np_ns start = np_dbl_i64(&row[1]), end = np_dbl_i64(&row[2]), dur;
	if (id == NP_NO_I64 || !np_dbl_time(self, start, end, &dur)) {
		self->bad_time += id == NP_NO_I64;
		return NP_OK;
	}
	uint32_t s = np_profile_add_step(self->profile, id);
	if (s == NP_NO_U32 ||
	    !np_vec_push(&self->steps, (struct np_range){.start = start, .end = end, .row = s}))
		return np_err_nomem(self->err);
	struct np_steps *steps = &self->profile->steps;
	if (steps->host_start_ns[s] == NP_NO_I64 || start < steps->host_start_ns[s])
		steps->host_start_ns[s] = start;
	if (end > steps->host_end_ns[s])
		steps->host_end_ns[s] = end;
	return NP_OK;
}

static enum np_status node_row(struct np_dbl *self, const struct np_db_value *row)
{
	if (np_dbl_i64(&row[2]) != API_NODE)
		return NP_OK;
	self->has_nodes = true;
	int64_t conn = np_dbl_conn(&row[3]);
	np_ns start = np_dbl_i64(&row[0]), end = np_dbl_i64(&row[1]);
	if (conn == NP_NO_I64 || start < 0 || end < start)
		return NP_OK;
	size_t step = np_ranges_find(&self->steps, start, end);
	if (step != SIZE_MAX && !np_ids_put(&self->conn_step, conn, (uint32_t)step))
		return np_err_nomem(self->err);
	return NP_OK;
}

static int by_start(const void *a, const void *b)
{
	const struct np_range *x = a, *y = b;
	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return (x->end > y->end) - (x->end < y->end);
}

/* From host ranges to empty windows, which np_dbl_step_task() widens: `reach` and `from`
 * serve as the extent of the tasks until np_ranges_index() is called again. */
static void prepare_windows(struct np_dbl *self)
{
	for (size_t i = 0; i < self->steps.n; i++) {
		self->steps.v[i].from = INT64_MAX;
		self->steps.v[i].reach = INT64_MIN;
	}
}

enum np_status np_dbl_read_steps(struct np_dbl *self)
{
	static const char *const steps[] = {"id", "startNs", "endNs"};
	static const char *const calls[] = {"startNs", "endNs", "type", "connectionId"};
	bool found;
	NP_TRY(np_dbl_scan(self, "STEP_TIME", steps, NP_DBL_COUNT(steps), step_row, &found));
	if (found)
		self->profile->loaded |= NP_STEPS;
	if (self->steps.n == 0)
		return NP_OK;
	qsort(self->steps.v, self->steps.n, sizeof *self->steps.v, by_start);
	if (!(self->what & (NP_KERNELS | NP_COMM)))
		return NP_OK;
	np_ranges_index(&self->steps);
	NP_TRY(np_dbl_scan(self, "CANN_API", calls, NP_DBL_COUNT(calls), node_row, NULL));
	prepare_windows(self);
	return NP_OK;
}

void np_dbl_step_task(struct np_dbl *self, int64_t conn, np_ns start, np_ns end)
{
	uint32_t step = np_ids_get(&self->conn_step, conn);
	if (step == NP_IDS_NONE)
		return;
	struct np_range *range = &self->steps.v[step];
	if (start < range->from)
		range->from = start;
	if (end > range->reach)
		range->reach = end;
}

static void close_windows(struct np_dbl *self)
{
	for (size_t i = 0; i < self->steps.n; i++) {
		struct np_range *range = &self->steps.v[i];
		if (!self->has_nodes) {
			range->end = i + 1 < self->steps.n ? self->steps.v[i + 1].start : INT64_MAX;
			continue;
		}
		if (range->from != INT64_MAX)
			range->start = range->from;
		if (range->reach > range->end)
			range->end = range->reach;
	}
	np_ranges_index(&self->steps);
}

static uint32_t step_of(const struct np_dbl *self, np_ns start)
{
	size_t i = np_ranges_find(&self->steps, start, start + 1);
	return i == SIZE_MAX ? NP_NO_U32 : self->steps.v[i].row;
}

enum np_status np_dbl_close_steps(struct np_dbl *self)
{
	if (self->steps.n == 0 || !(self->what & (NP_KERNELS | NP_COMM)))
		return NP_OK;
	close_windows(self);
	struct np_kernels *kernels = &self->profile->kernels;
	for (size_t i = self->first_kernel; i < kernels->n; i++)
		kernels->step[i] = step_of(self, kernels->start_ns[i]);
	for (size_t i = 0; i < self->ops.n; i++)
		self->ops.step[i] = step_of(self, self->ops.start_ns[i]);
	return NP_OK;
}
