/*
 * Durations between marks and of ranges of mstx (cluster_and_advisor.md §2.21), on the
 * three levels: framework (the call of the operator that set the mark), CANN (the mark
 * itself), device (its task on a stream).
 */
#include <stdlib.h>

#include "cluster/grouping.h"
#include "cluster/launches.h"
#include "cluster/mstx.h"
#include "cluster/parts.h"

#define NP_TAG np_digest_mstx
NP_TABLE_DESC(, np_digest_mstx, "mstx", NP_DIGEST_MSTX_COLUMNS)
#undef NP_TAG
#define NP_TAG np_digest_mstx_lone
NP_TABLE_DESC(, np_digest_mstx_lone, "mstx_lone", NP_DIGEST_MSTX_LONE_COLUMNS)
#undef NP_TAG

enum {
	MAX_DEPTH = 100,      /* of ranges in names "a::b", as the official tool */
	NAME_BYTES = 1 << 12, /* of such a name; what is longer is cut */
};

struct times {
	const struct np_map_job *job;
	const struct np_profile *profile;
	struct np_step_times steps;
	struct np_conn_tasks tasks;
	struct np_digest_mstx *rows;
	struct np_digest_mstx_lone *lone;
};

static bool in_range(const struct times *self, size_t row)
{
	np_ns start = self->profile->mstx.start_ns[row];
	return start >= self->job->from_ns && start <= self->job->to_ns;
}

/* ── one row ── */

static int64_t framework_time(const struct times *self, size_t mark)
{
	const struct np_host_conns *conns = &self->profile->host_conns;
	int64_t conn = self->profile->mstx.conn[mark];
	size_t at = conn == NP_NO_I64 ? conns->n : np_conns_find(conns, conn);
	return at < conns->n ? self->profile->host_ops.start_ns[conns->op[at]] : NP_NO_I64;
}

static int64_t device_time(const struct times *self, size_t mark)
{
	size_t at = np_conn_tasks_find(&self->tasks, self->profile->mstx.conn[mark]);
	return at < self->tasks.n ? self->tasks.tasks->start_ns[self->tasks.order[at]] : NP_NO_I64;
}

static int64_t between(int64_t from, int64_t to)
{
	return from == NP_NO_I64 || to == NP_NO_I64 ? NP_NO_I64 : to - from;
}

static size_t add_row(struct times *self, np_id name, np_ns start)
{
	size_t r = np_rows_add(self->rows, &np_digest_mstx_desc);
	if (r == SIZE_MAX)
		return r;
	int64_t step = np_step_of(&self->steps, start, start);
	self->rows->name[r] = name;
	self->rows->step[r] = step == NP_NO_I64 ? 0 : step;
	self->rows->framework_ns[r] = self->rows->cann_ns[r] = self->rows->device_ns[r] = 0;
	return r;
}

/* ── marks: "x_start" … "x_stop" of one thread ── */

struct marks {
	size_t n;
	uint32_t *row;  /* of mstx */
	uint32_t *base; /* the name without its end, in the digest's strings */
	uint32_t *pid, *tid;
	bool *stop;
	uint32_t *begin; /* of a stop: its start among the marks, or none */
	uint32_t *below; /* of a start: the start before it that is still open */
};

static void release_marks(struct marks *self)
{
	np_free(self->row);
	np_free(self->base);
	np_free(self->pid);
	np_free(self->tid);
	np_free(self->stop);
	np_free(self->begin);
	np_free(self->below);
}

static bool collect_marks(struct times *self, struct marks *marks)
{
	const struct np_mstx *m = &self->profile->mstx;
	uint32_t **const columns[] = {&marks->row, &marks->base,  &marks->pid,
	                              &marks->tid, &marks->begin, &marks->below};
	bool ok = (marks->stop = np_calloc(m->n + 1, sizeof *marks->stop)) != NULL;
	for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
		ok &= (*columns[i] = np_calloc(m->n + 1, sizeof **columns[i])) != NULL;
	for (uint32_t i = 0; ok && i < m->n; i++) {
		np_str name = np_intern_get(&self->profile->strings, m->message[i]);
		bool start = np_str_ends(name, NP_STR("_start"));
		bool stop = np_str_ends(name, NP_STR("_stop"));
		if (m->event_type[i] != NP_MSTX_MARKER_EX || (!start && !stop) ||
		    !in_range(self, i))
			continue;
		size_t k = marks->n++;
		marks->row[k] = i;
		marks->pid[k] = m->pid[i];
		marks->tid[k] = m->tid[i];
		marks->stop[k] = stop;
		marks->begin[k] = NP_NO_U32;
		np_str base = np_str_sub(name, 0, name.len - (start ? 6 : 5));
		marks->base[k] = np_intern_add(&self->job->digest->strings, base);
		ok = marks->base[k] != NP_ID_NONE;
	}
	return ok;
}

/* The last start that is still open is the first to be stopped. */
static bool pair_marks(struct marks *marks)
{
	const uint32_t *const keys[] = {marks->pid, marks->tid, marks->base};
	struct np_groups groups;
	bool ok = np_group_rows(marks->n, keys, 3, &groups);
	for (size_t g = 0; ok && g < groups.n; g++) {
		uint32_t open = NP_NO_U32;
		for (size_t i = groups.start[g]; i < groups.start[g + 1]; i++) {
			uint32_t k = groups.order[i];
			if (!marks->stop[k]) {
				marks->below[k] = open;
				open = k;
			} else if (open != NP_NO_U32) {
				marks->begin[k] = open;
				marks->begin[open] = k; /* so a start without is alone */
				open = marks->below[open];
			}
		}
	}
	np_groups_release(&groups);
	return ok;
}

static bool add_lone(struct times *self, size_t mark)
{
	size_t r = np_rows_add(self->lone, &np_digest_mstx_lone_desc);
	return r != SIZE_MAX &&
	       np_digest_string(self->job->digest, &self->profile->strings,
	                        self->profile->mstx.message[mark], &self->lone->message[r]);
}

static bool add_marks(struct times *self)
{
	const struct np_mstx *m = &self->profile->mstx;
	struct marks marks = {0};
	bool ok = collect_marks(self, &marks) && pair_marks(&marks);
	for (size_t k = 0; ok && k < marks.n; k++) {
		if (marks.begin[k] == NP_NO_U32) {
			ok = add_lone(self, marks.row[k]);
			continue;
		}
		if (!marks.stop[k])
			continue;
		size_t from = marks.row[marks.begin[k]], to = marks.row[k];
		size_t r = add_row(self, marks.base[k], m->start_ns[from]);
		ok = r != SIZE_MAX;
		if (!ok)
			break;
		self->rows->cann_ns[r] = m->start_ns[to] - m->start_ns[from];
		if (self->job->options->compat) /* which looks for the tables in vain */
			continue;
		self->rows->framework_ns[r] =
			between(framework_time(self, from), framework_time(self, to));
		self->rows->device_ns[r] = between(device_time(self, from), device_time(self, to));
	}
	release_marks(&marks);
	return ok;
}

/* ── ranges ── */

struct range {
	np_ns start, end;
	uint64_t thread;
	uint32_t row; /* of mstx */
	np_id name;
	uint32_t depth;
};

struct ranges {
	struct range *v;
	size_t n, cap;
};

static int by_nesting(const void *a, const void *b)
{
	const struct range *x = a, *y = b;
	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (x->end != y->end)
		return x->end > y->end ? -1 : 1;
	return (x->row > y->row) - (x->row < y->row);
}

static int by_row(const void *a, const void *b)
{
	const struct range *x = a, *y = b;
	return (x->row > y->row) - (x->row < y->row);
}

static bool name_within(struct times *self, const struct range *outer, struct range *range)
{
	struct np_intern *strings = &self->job->digest->strings;
	struct np_buf text = {0};
	np_str name =
		np_intern_get(&self->profile->strings, self->profile->mstx.message[range->row]);
	if (outer && range->depth < MAX_DEPTH) {
		np_buf_add_str(&text, np_intern_get(strings, outer->name));
		np_buf_add_cstr(&text, "::");
	}
	np_buf_add_str(&text, name);
	range->name =
		text.failed ? NP_ID_NONE
			    : np_intern_add(strings, np_str_sub(np_buf_str(&text), 0, NAME_BYTES));
	np_buf_release(&text);
	return range->name != NP_ID_NONE;
}

/* "outer::inner" by containment, in each thread (the official tool: over all threads). */
static bool name_ranges(struct times *self, struct ranges *ranges)
{
	NP_VEC(uint32_t) stack = {0};
	bool ok = true;
	if (ranges->n > 0)
		qsort(ranges->v, ranges->n, sizeof *ranges->v, by_nesting);
	for (uint32_t i = 0; ok && i < ranges->n; i++) {
		struct range *range = &ranges->v[i];
		while (stack.n > 0 && (ranges->v[stack.v[stack.n - 1]].end < range->end ||
		                       ranges->v[stack.v[stack.n - 1]].thread != range->thread))
			stack.n--;
		const struct range *outer = stack.n > 0 ? &ranges->v[stack.v[stack.n - 1]] : NULL;
		range->depth = (uint32_t)stack.n + 1;
		ok = name_within(self, outer, range) && np_vec_push(&stack, i);
	}
	np_vec_release(&stack);
	if (ranges->n > 0)
		qsort(ranges->v, ranges->n, sizeof *ranges->v, by_row);
	return ok;
}

/* Of several tasks from the first start to the last end. */
static int64_t device_duration(const struct times *self, int64_t conn)
{
	const struct np_conn_tasks *t = &self->tasks;
	size_t at = np_conn_tasks_find(t, conn);
	if (at == t->n)
		return NP_NO_I64;
	np_ns start = t->tasks->start_ns[t->order[at]], end = start;
	for (; at < t->n && t->tasks->conn[t->order[at]] == conn; at++) {
		np_ns stop = t->tasks->start_ns[t->order[at]] + t->tasks->dur_ns[t->order[at]];
		end = stop > end ? stop : end;
	}
	return end - start;
}

static bool add_ranges(struct times *self)
{
	const struct np_mstx *m = &self->profile->mstx;
	struct ranges ranges = {0};
	bool ok = true;
	for (uint32_t i = 0; ok && i < m->n; i++) {
		if (m->event_type[i] != NP_MSTX_START_END || m->conn[i] == NP_NO_I64 ||
		    !in_range(self, i))
			continue;
		struct range range = {.start = m->start_ns[i], .end = m->end_ns[i], .row = i};
		if (!self->job->options->compat)
			range.thread = (uint64_t)m->pid[i] << 32 | m->tid[i];
		ok = np_vec_push(&ranges, range);
	}
	ok = ok && name_ranges(self, &ranges);
	for (size_t i = 0; ok && i < ranges.n; i++) {
		const struct range *range = &ranges.v[i];
		size_t r = add_row(self, range->name, range->start);
		ok = r != SIZE_MAX;
		if (!ok)
			break;
		self->rows->cann_ns[r] = range->end - range->start;
		self->rows->device_ns[r] = device_duration(self, m->conn[range->row]);
	}
	np_vec_release(&ranges);
	return ok;
}

/* ── names that occur again within a step get _0, _1, … ── */

static bool number_names(struct times *self)
{
	struct np_digest_mstx *rows = self->rows;
	uint32_t *low = np_calloc(rows->n + 1, sizeof *low);
	uint32_t *high = np_calloc(rows->n + 1, sizeof *high);
	const uint32_t *const keys[] = {low, high, rows->name};
	struct np_groups groups = {0};
	struct np_buf text = {0};
	for (size_t r = 0; low && high && r < rows->n; r++) {
		low[r] = (uint32_t)rows->step[r];
		high[r] = (uint32_t)((uint64_t)rows->step[r] >> 32);
	}
	bool ok = low && high && np_group_rows(rows->n, keys, 3, &groups);
	for (size_t g = 0; ok && g < groups.n; g++) {
		np_id name = rows->name[np_group_row(&groups, g)];
		for (size_t i = 0;
		     ok && np_group_size(&groups, g) > 1 && i < np_group_size(&groups, g); i++) {
			np_buf_clear(&text);
			np_buf_add_str(&text, np_intern_get(&self->job->digest->strings, name));
			np_buf_printf(&text, "_%zu", i);
			np_id numbered =
				np_intern_add(&self->job->digest->strings, np_buf_str(&text));
			rows->name[groups.order[groups.start[g] + i]] = numbered;
			ok = !text.failed && numbered != NP_ID_NONE;
		}
	}
	np_buf_release(&text);
	np_groups_release(&groups);
	np_free(low);
	np_free(high);
	return ok;
}

static enum np_status map(const struct np_map_job *job, struct np_err *err)
{
	struct times self = {.job = job,
	                     .profile = job->profile,
	                     .rows = np_digest_table(job->digest, &np_digest_mstx_desc),
	                     .lone = np_digest_table(job->digest, &np_digest_mstx_lone_desc)};
	bool ok = self.rows && self.lone && np_step_times_make(job->profile, &self.steps) &&
	          np_conn_tasks_make(job->profile, &self.tasks);
	ok = ok && add_marks(&self) && add_ranges(&self) && number_names(&self);
	np_step_times_release(&self.steps);
	np_conn_tasks_release(&self.tasks);
	return ok ? NP_OK : np_err_nomem(err);
}

static const struct np_table_desc *const tables[] = {&np_digest_mstx_desc,
                                                     &np_digest_mstx_lone_desc, NULL};

const struct np_part np_part_mstx_times = {
	.name = "mstx_times",
	.revision = 1,
	.load = NP_MSTX | NP_TASKS | NP_HOST_CONNS | NP_STEPS,
	.tables = tables,
	.map = map,
};
