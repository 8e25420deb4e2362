/* Cells with one key put together. */
#include <stdlib.h>
#include <string.h>

#include "collect/comm_tell.h"

static bool add_member(struct np_keys *set, uint32_t row, uint32_t member, uint32_t *count)
{
	struct np_key key = {{np_key_pair(row, member), 0, 0, 0}};
	size_t before = set->keys.n;
	if (np_keys_add(set, &key) == UINT32_MAX)
		return false;
	*count += set->keys.n > before;
	return true;
}

static void add_sums(struct np_clog_row *row, const struct np_clog_cell *cell, int32_t world)
{
	uint64_t moved, bus;
	enum np_clog_estimate estimate =
		np_clog_moved(cell->op, world, cell->bytes, cell->send_bytes, &moved);
	row->sum.calls += cell->calls;
	row->sum.unsized += cell->unsized;
	row->sum.flags |= cell->flags;
	np_clog_add(&row->sum.bytes, cell->bytes);
	np_clog_add(&row->sum.send_bytes, cell->send_bytes);
	np_clog_add(&row->sum.recv_bytes, cell->recv_bytes);
	np_clog_add(&row->sum.call_ns, cell->call_ns);
	np_clog_add(&row->moved, moved);
	if (cell->max_bytes > row->sum.max_bytes)
		row->sum.max_bytes = cell->max_bytes;
	row->estimated = row->estimated || estimate != NP_COMM_NO_ESTIMATE;
	row->derived = row->derived || estimate == NP_COMM_DERIVED;
	if (np_clog_bus(cell->op, world, cell, &bus)) {
		row->has_bus = true;
		np_clog_add(&row->bus, bus);
	}
}

bool np_clog_rows_add(struct np_clog_rows *self, const struct np_clog_sum *sum,
                      const struct np_key *key, const struct np_clog_cell *cell)
{
	uint32_t i = np_keys_add(&self->keys, key);
	if (i == UINT32_MAX)
		return false;
	if (i == self->v.n) {
		struct np_clog_row fresh = {.key = *key, .sum = *cell};
		fresh.sum.calls = fresh.sum.unsized = fresh.sum.bytes = fresh.sum.send_bytes = 0;
		fresh.sum.recv_bytes = fresh.sum.call_ns = fresh.sum.max_bytes = 0;
		if (!np_vec_push(&self->v, fresh))
			return false;
	}
	struct np_clog_row *row = &self->v.v[i];
	add_sums(row, cell, sum->groups.v[cell->group].world);
	return add_member(&self->processes, i, sum->files.v[cell->file].process, &row->processes) &&
	       add_member(&self->groups, i, cell->group, &row->groups);
}

static int largest_first(const void *a, const void *b)
{
	const struct np_clog_row *x = a, *y = b;
	if (x->sum.bytes != y->sum.bytes)
		return x->sum.bytes > y->sum.bytes ? -1 : 1;
	if (x->sum.calls != y->sum.calls)
		return x->sum.calls > y->sum.calls ? -1 : 1;
	for (size_t i = 0; i < 4; i++)
		if (x->key.w[i] != y->key.w[i])
			return x->key.w[i] < y->key.w[i] ? -1 : 1;
	return 0;
}

void np_clog_rows_sort(struct np_clog_rows *self)
{
	if (self->v.n)
		qsort(self->v.v, self->v.n, sizeof *self->v.v, largest_first);
}

void np_clog_rows_release(struct np_clog_rows *self)
{
	np_keys_release(&self->keys);
	np_keys_release(&self->processes);
	np_keys_release(&self->groups);
	np_vec_release(&self->v);
}

uint8_t np_clog_family(uint8_t op)
{
	switch (op) {
	case 13: /* barrier: an all_reduce of one element */
		return 1;
	case 18:
		return 2;
	case 14:
	case 17:
		return 3;
	case 15:
		return 4;
	case 6:
	case 16:
		return 5;
	case 20:
		return 8;
	case 19:
		return 9;
	case 11:
	case 12:
		return 10;
	default:
		return op;
	}
}

/* torch_npu.md §7.6 */
const char *np_clog_why(uint8_t family, unsigned flags, bool cast, bool barriers, bool more_below)
{
	if (!more_below)
		return NP_N("another backend, a replayed graph, or a fused operator");
	if (family == 10)
		return NP_N("batch_isend_irecv is one BatchSendRecv");
	if (flags & NP_COMM_OBJECT)
		return NP_N("objects: their sizes are sent first");
	if (flags & NP_COMM_COALESCED)
		return NP_N("coalesced: several calls below");
	if (family == 1 && barriers)
		return NP_N("a barrier is an all_reduce of one element");
	if (family == 1 && cast)
		return NP_N("uint8 and bool are reduced as int32");
	return NP_N("not through torch.distributed (DDP's reducer, C++)");
}
