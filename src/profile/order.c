/*
 * Orders of the tables, and what follows from the order.
 *
 * Sorting is stable by construction: the row number is the last key. Tables
 * are mostly sorted already, so a check for that comes first.
 */
#include <stdlib.h>

#include "profile/profile.h"

struct key {
	int64_t first, second;
	uint32_t row;
};

static int by_key(const void *a, const void *b)
{
	const struct key *x = a, *y = b;
	if (x->first != y->first)
		return x->first < y->first ? -1 : 1;
	if (x->second != y->second)
		return x->second < y->second ? -1 : 1;
	return (x->row > y->row) - (x->row < y->row);
}

/*
 * The permutation that sorts by (first, second, row): NULL with *ok true when
 * the rows are in order already, NULL with *ok false when memory is out.
 */
static unsigned *sorted_order(size_t n, struct key *keys, bool *ok)
{
	bool sorted = true;
	for (size_t i = 1; i < n && sorted; i++)
		sorted = by_key(&keys[i - 1], &keys[i]) <= 0;
	*ok = true;
	if (sorted)
		return NULL;
	unsigned *order = np_realloc(NULL, n, sizeof *order);
	if (!order) {
		*ok = false;
		return NULL;
	}
	qsort(keys, n, sizeof *keys, by_key);
	for (size_t i = 0; i < n; i++)
		order[i] = keys[i].row;
	return order;
}

static struct key *new_keys(size_t n)
{
	return np_realloc(NULL, n, sizeof(struct key));
}

static bool permute_metric(struct np_metric *metric, const unsigned *order, size_t n)
{
	double *moved = np_realloc(NULL, n, sizeof *moved);
	if (!moved)
		return false;
	for (size_t i = 0; i < n; i++)
		moved[i] = metric->v[order[i]];
	np_free(metric->v);
	metric->v = moved;
	return true;
}

static bool sort_kernels(struct np_profile *self)
{
	struct np_kernels *kernels = &self->kernels;
	struct key *keys = new_keys(kernels->n);
	bool ok = keys != NULL;
	for (size_t i = 0; ok && i < kernels->n; i++)
		keys[i] = (struct key){kernels->device[i], kernels->start_ns[i], (uint32_t)i};
	unsigned *order = ok ? sorted_order(kernels->n, keys, &ok) : NULL;
	if (order) {
		ok = np_rows_permute(kernels, &np_kernels_desc, order);
		if (ok && self->kernel_shapes.n == kernels->n)
			ok = np_rows_permute(&self->kernel_shapes, &np_kernel_shapes_desc, order);
		for (size_t m = 0; ok && m < self->metrics.n; m++)
			ok = permute_metric(&self->metrics.v[m], order, kernels->n);
	}
	np_free(order);
	np_free(keys);
	return ok;
}

/* max(0, start - end of the row before), per device order (torch_npu.md §3.1);
 * the first row of all prints 0, there is no reset at a change of device. */
static void fill_waits(struct np_kernels *kernels)
{
	for (size_t i = 0; i < kernels->n; i++) {
		if (kernels->wait_ns[i] != NP_NO_I64)
			continue;
		np_ns wait = i == 0 ? 0
		                    : kernels->start_ns[i] - kernels->start_ns[i - 1] -
		                              kernels->dur_ns[i - 1];
		kernels->wait_ns[i] = wait > 0 ? wait : 0;
	}
}

static void move_step(uint32_t *step, size_t n, const uint32_t *new_row)
{
	for (size_t i = 0; i < n; i++)
		if (step[i] != NP_NO_U32)
			step[i] = new_row[step[i]];
}

bool np_profile_finish_steps(struct np_profile *self)
{
	struct np_steps *steps = &self->steps;
	struct key *keys = new_keys(steps->n);
	uint32_t *new_row = np_realloc(NULL, steps->n, sizeof *new_row);
	bool ok = keys && new_row;
	for (size_t i = 0; ok && i < steps->n; i++)
		keys[i] = (struct key){steps->id[i], 0, (uint32_t)i};
	unsigned *order = ok ? sorted_order(steps->n, keys, &ok) : NULL;
	if (order) {
		ok = np_rows_permute(steps, &np_steps_desc, order);
		for (size_t i = 0; ok && i < steps->n; i++) {
			new_row[order[i]] = (uint32_t)i;
			ok = np_map_put(&self->step_rows, (uint64_t)steps->id[i], (uint32_t)i);
		}
		if (ok) {
			move_step(self->kernels.step, self->kernels.n, new_row);
			move_step(self->comm_ops.step, self->comm_ops.n, new_row);
		}
	}
	np_free(order);
	np_free(keys);
	np_free(new_row);
	return ok;
}

static void fill_steps(struct np_profile *self)
{
	struct np_steps *steps = &self->steps;
	const struct np_kernels *kernels = &self->kernels;
	for (size_t s = 0; s < steps->n; s++) {
		steps->start_ns[s] = steps->end_ns[s] = NP_NO_I64;
		steps->kernels[s] = 0;
	}
	for (size_t i = 0; i < kernels->n; i++) {
		uint32_t s = kernels->step[i];
		if (s == NP_NO_U32)
			continue;
		np_ns start = kernels->start_ns[i], end = start + kernels->dur_ns[i];
		if (steps->kernels[s]++ == 0 || start < steps->start_ns[s])
			steps->start_ns[s] = start;
		if (end > steps->end_ns[s])
			steps->end_ns[s] = end;
	}
}

bool np_profile_finish_kernels(struct np_profile *self)
{
	if (!sort_kernels(self))
		return false;
	fill_waits(&self->kernels);
	fill_steps(self);
	return true;
}

static bool sort_table(void *table, const struct np_table_desc *desc, const np_ns *start_ns,
                       const np_ns *dur_ns, unsigned **kept_order)
{
	size_t n = ((struct np_rows *)table)->n;
	struct key *keys = new_keys(n);
	bool ok = keys != NULL;
	for (size_t i = 0; ok && i < n; i++)
		keys[i] = (struct key){start_ns[i], dur_ns ? -dur_ns[i] : 0, (uint32_t)i};
	unsigned *order = ok ? sorted_order(n, keys, &ok) : NULL;
	if (order)
		ok = np_rows_permute(table, desc, order);
	np_free(keys);
	if (kept_order)
		*kept_order = order;
	else
		np_free(order);
	return ok;
}

bool np_profile_sort_host_ops(struct np_profile *self)
{
	return sort_table(&self->host_ops, &np_host_ops_desc, self->host_ops.start_ns,
	                  self->host_ops.dur_ns, NULL);
}

/* comm_tasks refer to comm_ops by row, so they follow the new order. */
static bool sort_comm_ops(struct np_profile *self)
{
	unsigned *order = NULL;
	bool ok = sort_table(&self->comm_ops, &np_comm_ops_desc, self->comm_ops.start_ns, NULL,
	                     &order);
	uint32_t *new_row =
		order && ok ? np_realloc(NULL, self->comm_ops.n, sizeof *new_row) : NULL;
	if (order && ok && !new_row)
		ok = false;
	for (size_t i = 0; new_row && i < self->comm_ops.n; i++)
		new_row[order[i]] = (uint32_t)i;
	for (size_t i = 0; new_row && i < self->comm_tasks.n; i++)
		if (self->comm_tasks.op[i] != NP_NO_U32)
			self->comm_tasks.op[i] = new_row[self->comm_tasks.op[i]];
	np_free(new_row);
	np_free(order);
	return ok;
}

bool np_profile_sort_tasks(struct np_profile *self)
{
	return sort_table(&self->tasks, &np_tasks_desc, self->tasks.start_ns, NULL, NULL) &&
	       sort_comm_ops(self) &&
	       sort_table(&self->comm_tasks, &np_comm_tasks_desc, self->comm_tasks.start_ns, NULL,
	                  NULL);
}
