/*
 * Orders of the tables, and what follows from the order.
 *
 * Sorting is stable. Tables are mostly sorted already, so a check for that comes
 * first. Others are sorted by radix: a trace has millions of rows in a few sorted
 * stretches that overlap, where comparing costs as much as a fifth of the reading.
 */
#include <string.h>

#include "profile/profile.h"

enum {
	DIGIT_BITS = 11,
	DIGITS = 1 << DIGIT_BITS,
	MAX_PASSES = (64 + DIGIT_BITS - 1) / DIGIT_BITS,
	FEW = 64, /* rows that are sorted by insertion */
};

/* What to sort by: v, or backwards when all bits of `flip` are set; NULL: all are alike. */
struct key {
	const int64_t *v;
	int64_t flip;
};

static inline int64_t key_of(struct key by, size_t row)
{
	return by.v ? by.v[row] ^ by.flip : 0;
}

static void order_few(unsigned *rows, size_t n, struct key by)
{
	for (size_t i = 1, to; i < n; i++) {
		unsigned row = rows[i];
		int64_t key = key_of(by, row);
		for (to = i; to > 0 && key_of(by, rows[to - 1]) > key; to--)
			rows[to] = rows[to - 1];
		rows[to] = row;
	}
}

/*
 * From the lowest digit to the highest, each pass stable. Only row numbers move;
 * that leaves the keys to be looked up, but moving them costs more.
 */
static void order_many(unsigned *rows, unsigned *spare, size_t n, struct key by)
{
	unsigned at[MAX_PASSES][DIGITS], passes = 0, *from = rows, *to = spare;
	int64_t first = key_of(by, rows[0]), last = first;
	for (size_t i = 1; i < n; i++) {
		int64_t key = key_of(by, rows[i]);
		first = key < first ? key : first;
		last = key > last ? key : last;
	}
	uint64_t low = (uint64_t)first, range = (uint64_t)last - low;
	while (passes < MAX_PASSES && range >> passes * DIGIT_BITS)
		memset(at[passes++], 0, sizeof at[0]);
	for (size_t i = 0; i < n; i++) {
		uint64_t key = (uint64_t)key_of(by, rows[i]) - low;
		for (unsigned p = 0; p < passes; p++, key >>= DIGIT_BITS)
			at[p][key & (DIGITS - 1)]++;
	}
	for (unsigned p = 0; p < passes; p++) {
		for (unsigned d = 0, sum = 0; d < DIGITS; d++) {
			unsigned count = at[p][d];
			at[p][d] = sum;
			sum += count;
		}
		for (size_t i = 0; i < n; i++) {
			uint64_t key = (uint64_t)key_of(by, from[i]) - low;
			to[at[p][(key >> p * DIGIT_BITS) & (DIGITS - 1)]++] = from[i];
		}
		unsigned *swap = from;
		from = to;
		to = swap;
	}
	if (from != rows)
		memcpy(rows, from, n * sizeof *rows);
}

static void order_rows(unsigned *rows, unsigned *spare, size_t n, struct key by)
{
	if (!by.v || n < 2)
		return;
	if (n <= FEW)
		order_few(rows, n, by);
	else
		order_many(rows, spare, n, by);
}

static bool is_sorted(size_t n, struct key by, struct key then)
{
	for (size_t i = 1; i < n; i++) {
		int64_t a = key_of(by, i - 1), b = key_of(by, i);
		if (a > b || (a == b && key_of(then, i - 1) > key_of(then, i)))
			return false;
	}
	return true;
}

/*
 * The permutation that sorts by (by, then, row): NULL with *ok true when the
 * rows are in order already, NULL with *ok false when memory is out.
 */
static unsigned *sorted_order(size_t n, struct key by, struct key then, bool *ok)
{
	*ok = true;
	if (is_sorted(n, by, then))
		return NULL;
	unsigned *rows = np_realloc(NULL, n, sizeof *rows);
	unsigned *spare = np_realloc(NULL, n, sizeof *spare);
	if (!rows || !spare) {
		*ok = false;
		np_free(rows);
		np_free(spare);
		return NULL;
	}
	for (size_t i = 0; i < n; i++)
		rows[i] = (unsigned)i;
	order_rows(rows, spare, n, by);
	for (size_t i = 0, end; then.v && i < n; i = end) {
		for (end = i + 1; end < n && key_of(by, rows[end]) == key_of(by, rows[i]); end++)
			;
		order_rows(rows + i, spare, end - i, then);
	}
	np_free(spare);
	return rows;
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
	int64_t *devices = np_realloc(NULL, kernels->n, sizeof *devices);
	bool ok = devices != NULL;
	for (size_t i = 0; ok && i < kernels->n; i++)
		devices[i] = kernels->device[i];
	unsigned *order = ok ? sorted_order(kernels->n, (struct key){devices, 0},
	                                    (struct key){kernels->start_ns, 0}, &ok)
	                     : NULL;
	if (order) {
		ok = np_rows_permute(kernels, &np_kernels_desc, order);
		if (ok && self->kernel_shapes.n == kernels->n)
			ok = np_rows_permute(&self->kernel_shapes, &np_kernel_shapes_desc, order);
		for (size_t m = 0; ok && m < self->metrics.n; m++)
			ok = permute_metric(&self->metrics.v[m], order, kernels->n);
	}
	np_free(order);
	np_free(devices);
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
	uint32_t *new_row = np_realloc(NULL, steps->n, sizeof *new_row);
	bool ok = new_row != NULL;
	unsigned *order =
		ok ? sorted_order(steps->n, (struct key){steps->id, 0}, (struct key){NULL, 0}, &ok)
		   : NULL;
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

/* by start; with durations the longer ones first */
static bool sort_table(void *table, const struct np_table_desc *desc, const np_ns *start_ns,
                       const np_ns *dur_ns, unsigned **kept_order)
{
	bool ok;
	unsigned *order = sorted_order(((struct np_rows *)table)->n, (struct key){start_ns, 0},
	                               (struct key){dur_ns, -1}, &ok);
	if (order)
		ok = np_rows_permute(table, desc, order);
	if (kept_order)
		*kept_order = order;
	else
		np_free(order);
	return ok;
}

/* order[new row] = old row; the numbers in rows[] are old ones, NP_NO_U32 stays. */
static bool follow_rows(uint32_t *rows, size_t n, const unsigned *order, size_t n_order)
{
	uint32_t *new_row = order && n ? np_realloc(NULL, n_order, sizeof *new_row) : NULL;
	if (!new_row)
		return !order || n == 0;
	for (size_t i = 0; i < n_order; i++)
		new_row[order[i]] = (uint32_t)i;
	for (size_t i = 0; i < n; i++)
		if (rows[i] != NP_NO_U32)
			rows[i] = new_row[rows[i]];
	np_free(new_row);
	return true;
}

bool np_profile_sort_host_ops(struct np_profile *self)
{
	struct np_host_conns *conns = &self->host_conns;
	unsigned *order = NULL;
	bool ok = sort_table(&self->host_ops, &np_host_ops_desc, self->host_ops.start_ns,
	                     self->host_ops.dur_ns, &order);
	ok = ok && follow_rows(conns->op, conns->n, order, self->host_ops.n);
	np_free(order);
	if (!ok)
		return false;
	order = sorted_order(conns->n, (struct key){conns->conn, 0}, (struct key){conns->id, 0},
	                     &ok);
	if (order)
		ok = np_rows_permute(conns, &np_host_conns_desc, order);
	np_free(order);
	return ok;
}

bool np_profile_sort_mstx(struct np_profile *self)
{
	return sort_table(&self->mstx, &np_mstx_desc, self->mstx.start_ns, NULL, NULL);
}

/* comm_tasks refer to comm_ops by row, so they follow the new order. */
static bool sort_comm_ops(struct np_profile *self)
{
	unsigned *order = NULL;
	bool ok = sort_table(&self->comm_ops, &np_comm_ops_desc, self->comm_ops.start_ns, NULL,
	                     &order);
	ok = ok && follow_rows(self->comm_tasks.op, self->comm_tasks.n, order, self->comm_ops.n);
	np_free(order);
	return ok;
}

bool np_profile_sort_tasks(struct np_profile *self)
{
	return sort_table(&self->tasks, &np_tasks_desc, self->tasks.start_ns, NULL, NULL) &&
	       sort_comm_ops(self) &&
	       sort_table(&self->comm_tasks, &np_comm_tasks_desc, self->comm_tasks.start_ns, NULL,
	                  NULL) &&
	       sort_table(&self->comm_schedule, &np_comm_schedule_desc,
	                  self->comm_schedule.start_ns, NULL, NULL);
}
