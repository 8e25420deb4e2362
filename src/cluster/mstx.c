#include "cluster/mstx.h"

#include <stdlib.h>

/* ── steps ── */

static int by_time(const void *a, const void *b)
{
	const struct np_step_time *x = a, *y = b;
	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return (x->id > y->id) - (x->id < y->id);
}

bool np_step_times_make(const struct np_profile *profile, struct np_step_times *out)
{
	const struct np_steps *steps = &profile->steps;
	*out = (struct np_step_times){np_calloc(steps->n + 1, sizeof *out->v), 0};
	for (size_t i = 0; out->v && i < steps->n; i++)
		if (steps->host_start_ns[i] != NP_NO_I64 && steps->host_end_ns[i] != NP_NO_I64)
			out->v[out->n++] = (struct np_step_time){
				steps->host_start_ns[i], steps->host_end_ns[i], steps->id[i]};
	if (out->v && out->n > 0)
		qsort(out->v, out->n, sizeof *out->v, by_time);
	return out->v != NULL;
}

void np_step_times_release(struct np_step_times *self)
{
	np_free(self->v);
	*self = (struct np_step_times){0};
}

/* Steps do not overlap but by their ends, so the last two that began before are enough. */
int64_t np_step_of(const struct np_step_times *self, np_ns from, np_ns to)
{
	size_t low = 0, high = self->n;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (self->v[middle].start <= from)
			low = middle + 1;
		else
			high = middle;
	}
	int64_t id = NP_NO_I64;
	for (size_t i = low; i > 0 && i + 2 > low; i--)
		if (to <= self->v[i - 1].end)
			id = self->v[i - 1].id;
	return id;
}

/* ── tasks ── */

struct key {
	int64_t conn;
	uint32_t row;
};

static int by_conn(const void *a, const void *b)
{
	const struct key *x = a, *y = b;
	if (x->conn != y->conn)
		return x->conn < y->conn ? -1 : 1;
	return (x->row > y->row) - (x->row < y->row);
}

bool np_conn_tasks_make(const struct np_profile *profile, struct np_conn_tasks *out)
{
	const struct np_tasks *tasks = &profile->tasks;
	struct key *keys = np_realloc(NULL, tasks->n + 1, sizeof *keys);
	*out = (struct np_conn_tasks){.tasks = tasks,
	                              .order = np_realloc(NULL, tasks->n + 1, sizeof *out->order)};
	bool ok = keys && out->order;
	for (uint32_t i = 0; ok && i < tasks->n; i++)
		if (tasks->conn[i] != NP_NO_I64)
			keys[out->n++] = (struct key){tasks->conn[i], i};
	if (ok && out->n > 0)
		qsort(keys, out->n, sizeof *keys, by_conn);
	for (size_t i = 0; ok && i < out->n; i++)
		out->order[i] = keys[i].row;
	np_free(keys);
	return ok;
}

void np_conn_tasks_release(struct np_conn_tasks *self)
{
	np_free(self->order);
	*self = (struct np_conn_tasks){0};
}

size_t np_conn_tasks_find(const struct np_conn_tasks *self, int64_t conn)
{
	size_t low = 0, high = self->n;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (self->tasks->conn[self->order[middle]] < conn)
			low = middle + 1;
		else
			high = middle;
	}
	return low < self->n && self->tasks->conn[self->order[low]] == conn ? low : self->n;
}
