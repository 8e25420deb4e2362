/*
 * Per step: how long it was, what the exporter's step trace says of it, and the copies
 * between host and device.
 */
#include <math.h>
#include <stdlib.h>

#include "cluster/cluster_time_part.h"
#include "cluster/parts.h"
#include "cluster/steps.h"
#include "profile/interval.h"

#define NP_TAG np_digest_step_times
NP_TABLE_DESC(, np_digest_step_times, "step_times", NP_DIGEST_STEP_TIMES_COLUMNS)
#undef NP_TAG

enum { NO_STEP = -1 };

struct timing {
	const struct np_map_job *job;
	struct np_digest_step_times *rows;
	struct np_step_finder steps;
	struct np_cann_calls launches;
	struct np_map row_of; /* step → row */
	uint32_t memcpy_id;   /* of the profile's strings */
};

/* The row of a step, made when it is not there; SIZE_MAX: out of memory. */
static size_t row_of(struct timing *self, int64_t step)
{
	struct np_digest_step_times *rows = self->rows;
	uint32_t known = np_map_get(&self->row_of, (uint64_t)step, NP_NO_U32);
	if (known != NP_NO_U32)
		return known;
	size_t r = np_rows_add(rows, &np_digest_step_times_desc);
	if (r == SIZE_MAX || !np_map_put(&self->row_of, (uint64_t)step, (uint32_t)r))
		return SIZE_MAX;
	rows->step[r] = step;
	rows->step_ns[r] = NP_NO_I64;
	rows->computing_us[r] = rows->not_overlapped_us[r] = rows->overlapped_us[r] =
		rows->comm_us[r] = rows->free_us[r] = NAN;
	rows->memory_ns[r] = rows->memory_exposed_ns[r] = NP_NO_I64;
	return r;
}

static bool wanted(const struct timing *self, int64_t step)
{
	const struct np_cluster_options *options = self->job->options;
	return !options->has_step || step == options->step;
}

static bool add_steps(struct timing *self)
{
	for (size_t i = 0; i < self->steps.n; i++) {
		const struct np_step_range *step = &self->steps.v[i];
		if (!wanted(self, step->id))
			continue;
		size_t r = row_of(self, step->id);
		if (r == SIZE_MAX)
			return false;
		self->rows->step_ns[r] = step->end - step->start;
	}
	return true;
}

static bool add_trace(struct timing *self)
{
	const struct np_step_trace *t = &self->job->profile->step_trace;
	for (size_t i = 0; i < t->n; i++) {
		int64_t step = t->step[i] == NP_NO_I64 ? NO_STEP : t->step[i];
		if (!wanted(self, step))
			continue;
		size_t r = row_of(self, step);
		if (r == SIZE_MAX)
			return false;
		self->rows->computing_us[r] = t->computing_us[i];
		self->rows->not_overlapped_us[r] = t->comm_not_overlapped_us[i];
		self->rows->overlapped_us[r] = t->overlapped_us[i];
		self->rows->comm_us[r] = t->comm_us[i];
		self->rows->free_us[r] = t->free_us[i];
	}
	return true;
}

/* ── copies ── */

/* A database has the kind of a task in its type, a trace in its name. */
static bool is_copy(const struct timing *self, size_t task)
{
	const struct np_tasks *t = &self->job->profile->tasks;
	return self->memcpy_id != NP_ID_NONE &&
	       (t->type[task] == self->memcpy_id || t->name[task] == self->memcpy_id);
}

/* The step of a time on the host; NO_STEP where the capture has none, NP_NO_I64 outside. */
static int64_t step_at(const struct timing *self, np_ns at)
{
	return self->steps.n == 0 ? NO_STEP : np_step_find(&self->steps, at);
}

static bool in_range(const struct timing *self, np_ns at)
{
	return at >= self->job->from_ns && at <= self->job->to_ns;
}

struct block {
	np_ns start, end;
	int64_t step;
	bool copy;
};

static int by_step(const void *a, const void *b)
{
	const struct block *x = a, *y = b;
	if (x->step != y->step)
		return x->step < y->step ? -1 : 1;
	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return (x->end > y->end) - (x->end < y->end);
}

/* What compute and communication cover, of whatever step. */
static bool find_busy(const struct timing *self, struct np_intervals *out)
{
	const struct np_tasks *t = &self->job->profile->tasks;
	const struct np_comm_ops *ops = &self->job->profile->comm_ops;
	for (size_t i = 0; i < t->n; i++)
		if (t->compute[i] &&
		    !np_intervals_add(out, t->start_ns[i], t->start_ns[i] + t->dur_ns[i]))
			return false;
	for (size_t i = 0; i < ops->n; i++)
		if (!np_intervals_add(out, ops->start_ns[i], ops->start_ns[i] + ops->dur_ns[i]))
			return false;
	np_intervals_merge(out);
	return true;
}

/* One step's copies, less what is covered. false: out of memory. */
static bool expose(const struct block *v, size_t n, const struct np_intervals *busy, np_ns *out)
{
	struct np_intervals copies = {0}, rest = {0};
	bool ok = true;
	for (size_t i = 0; ok && i < n; i++)
		ok = np_intervals_add(&copies, v[i].start, v[i].end);
	np_intervals_merge(&copies);
	ok = ok && np_intervals_subtract(&copies, busy, &rest);
	*out = np_intervals_length(&rest);
	np_intervals_release(&copies);
	np_intervals_release(&rest);
	return ok;
}

/* ── the official sweep ── */

static np_ns positive(np_ns value)
{
	return value > 0 ? value : 0;
}

/*
 * One block is current: from where on nothing is settled yet, to the farthest end, of the
 * kind that has it. A shorter interval within a copy cuts its front off; when a second one
 * lies before that cut, the front is put back, and counted again (the official defect).
 */
static np_ns official_exposed(const struct block *v, size_t n)
{
	np_ns exposed = 0;
	struct block now = v[0];
	for (size_t i = 1; i < n; i++) {
		const struct block *next = &v[i];
		if (next->start >= now.end) {
			exposed += now.copy ? positive(now.end - now.start) : 0;
			now = *next;
		} else if (now.copy && !next->copy) {
			exposed += positive(next->start - now.start);
			if (next->end >= now.end)
				now = *next;
			else
				now.start = next->end;
		} else if (!now.copy && next->copy) {
			if (next->end > now.end) {
				np_ns from = now.end;
				now = *next;
				now.start = from;
			}
		} else if (next->end > now.end) {
			now.end = next->end;
		}
	}
	return exposed + (now.copy ? positive(now.end - now.start) : 0);
}

/* The copies; for the official sweep what may cover them, too. */
static size_t collect_blocks(const struct timing *self, struct block *v)
{
	const struct np_tasks *t = &self->job->profile->tasks;
	const struct np_comm_ops *ops = &self->job->profile->comm_ops;
	bool compat = self->job->options->compat;
	size_t n = 0;
	for (size_t i = 0; i < t->n; i++) {
		bool copy = is_copy(self, i);
		if (!copy && (!compat || !t->compute[i] || t->dur_ns[i] == 0))
			continue;
		np_ns at = copy ? t->start_ns[i] : np_cann_call_start(&self->launches, t->conn[i]);
		if (at != NP_NO_I64 && in_range(self, at))
			v[n++] = (struct block){t->start_ns[i], t->start_ns[i] + t->dur_ns[i],
			                        step_at(self, at), copy};
	}
	for (size_t i = 0; compat && i < ops->n; i++) {
		np_ns at = np_cann_call_start(&self->launches, ops->conn[i]);
		if (at != NP_NO_I64 && in_range(self, at))
			v[n++] = (struct block){ops->start_ns[i], ops->start_ns[i] + ops->dur_ns[i],
			                        step_at(self, at), false};
	}
	return n;
}

/* Blocks of one step. */
static bool add_copies(struct timing *self, const struct block *v, size_t n,
                       const struct np_intervals *busy)
{
	int64_t sum = 0;
	np_ns exposed = 0;
	for (size_t i = 0; i < n; i++)
		sum += v[i].copy ? v[i].end - v[i].start : 0;
	if (sum == 0 || v[0].step == NP_NO_I64 || !wanted(self, v[0].step))
		return true;
	size_t r = row_of(self, v[0].step);
	if (r == SIZE_MAX)
		return false;
	if (self->job->options->compat)
		exposed = official_exposed(v, n);
	else if (!expose(v, n, busy, &exposed))
		return false;
	self->rows->memory_ns[r] = sum;
	self->rows->memory_exposed_ns[r] = exposed;
	return true;
}

static bool add_memory(struct timing *self)
{
	const struct np_profile *p = self->job->profile;
	struct np_intervals busy = {0};
	struct block *v = np_realloc(NULL, p->tasks.n + p->comm_ops.n + 1, sizeof *v);
	bool ok = v && (self->job->options->compat || find_busy(self, &busy));
	size_t n = ok ? collect_blocks(self, v) : 0;
	for (size_t r = 0; r < self->rows->n; r++)
		self->rows->memory_ns[r] = self->rows->memory_exposed_ns[r] = 0;
	if (n > 1)
		qsort(v, n, sizeof *v, by_step);
	for (size_t i = 0, to; ok && i < n; i = to) {
		for (to = i; to < n && v[to].step == v[i].step;)
			to++;
		ok = add_copies(self, &v[i], to - i, &busy);
	}
	np_free(v);
	np_intervals_release(&busy);
	return ok;
}

static enum np_status map(const struct np_map_job *job, struct np_err *err)
{
	const struct np_profile *profile = job->profile;
	struct timing self = {.job = job,
	                      .rows = np_digest_table(job->digest, &np_digest_step_times_desc),
	                      .memcpy_id =
	                              np_intern_find(&profile->strings, NP_STR("MEMCPY_ASYNC"))};
	np_map_init(&self.row_of);
	np_map_init(&self.launches.row_of);
	bool ok = np_step_finder_init(&self.steps, &profile->steps) &&
	          (!job->options->compat || np_cann_calls_init(&self.launches, profile, true)) &&
	          add_steps(&self) && add_trace(&self);
	/* the official table has a row for a capture without STEP_TIME */
	if (ok && self.steps.n == 0 && !job->options->has_step &&
	    (job->options->compat || self.rows->n == 0) && profile->loaded != 0)
		ok = row_of(&self, NO_STEP) != SIZE_MAX;
	if (ok && (profile->loaded & NP_TASKS))
		ok = add_memory(&self);
	np_map_release(&self.row_of);
	np_step_finder_release(&self.steps);
	np_cann_calls_release(&self.launches);
	return ok ? NP_OK : np_err_nomem(err);
}

static const struct np_table_desc *const tables[] = {&np_digest_step_times_desc, NULL};

const struct np_part np_part_cluster_time = {
	.name = "cluster_time",
	.revision = 1,
	.load = NP_STEPS | NP_STEP_TRACE | NP_TASKS | NP_COMM_OPS | NP_HOST_CANN,
	.by_options = true,
	.tables = tables,
	.map = map,
};
