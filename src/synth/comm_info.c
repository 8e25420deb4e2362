#include "synth/write_comm.h"

#include <stdlib.h>
#include <string.h>

const char *const np_synth_transport_names[NP_LINK_TYPES] = {"RDMA", "HCCS", "PCIE", "SDMA", "SIO"};

int64_t np_synth_gbps(uint64_t len_bytes, np_ns time_ns)
{
	return time_ns > 0
	               ? (int64_t)((len_bytes * 10000 + (uint64_t)time_ns / 2) / (uint64_t)time_ns)
	               : 0;
}

int64_t np_synth_ratio(np_ns part, np_ns rest)
{
	np_ns sum = part + rest;
	return sum > 0 ? (part * 10000 + sum / 2) / sum : 0;
}

static void add_packets(struct np_synth_bandwidth *to, uint64_t len_bytes, uint32_t count,
                        np_ns time_ns, bool large, bool bucket)
{
	to->len_bytes += len_bytes * count;
	to->time_ns += time_ns;
	to->count += count;
	to->large += large ? count : 0;
	if (!bucket)
		return;
	uint32_t i = 0;
	while (i < to->n_buckets && to->bucket[i].len_bytes != len_bytes)
		i++;
	if (i == NP_BUCKETS)
		i--;
	else if (i == to->n_buckets)
		to->bucket[to->n_buckets++].len_bytes = len_bytes;
	to->bucket[i].count += count;
	to->bucket[i].time_ns += time_ns;
}

void np_synth_comm_info(const struct np_synth_run *run, const struct np_synth_item *item,
                        struct np_synth_comm_info *out)
{
	struct np_synth_comm_task tasks[NP_SYNTH_MAX_COMM_TASKS];
	size_t n = np_synth_comm_tasks(run, item, tasks);
	*out = (struct np_synth_comm_info){.start_ns = item->start_ns, .elapse_ns = item->dur_ns};
	bool waiting = true;
	size_t closing = 2u * (size_t)np_synth_handshakes(item);
	for (size_t i = 0; i < n; i++) {
		const struct np_synth_comm_task *task = &tasks[i];
		bool moves = task->payload && !task->on_chip;
		np_ns time = task->dur_ns;
		if (task->rdma && task->payload) /* until the end of the handshake behind it */
			time = tasks[i + closing].start_ns + tasks[i + closing].dur_ns -
			       task->start_ns;
		if (task->plane == 0 && moves) {
			out->transit_ns += time;
			waiting = false;
		} else if (task->plane == 0 && task->name == NP_COMM_NOTIFY_WAIT) {
			out->wait_ns += task->dur_ns;
			out->sync_ns += waiting ? task->dur_ns : 0;
		}
		if (!moves)
			continue;
		if (task->rdma) {
			add_packets(&out->links[NP_LINK_RDMA], task->len_bytes, 1, time,
			            task->len_bytes > 500000, true);
			continue;
		}
		add_packets(&out->links[NP_LINK_HCCS], task->len_bytes, 1, time,
		            task->len_bytes > 32000000, true);
		add_packets(&out->links[NP_LINK_SDMA], task->len_bytes, 1, time, false, false);
	}
	out->idle_ns = out->elapse_ns - out->transit_ns - out->wait_ns;
}

void np_synth_comm_add(struct np_synth_comm_info *a, const struct np_synth_comm_info *b)
{
	a->elapse_ns += b->elapse_ns;
	a->transit_ns += b->transit_ns;
	a->wait_ns += b->wait_ns;
	a->sync_ns += b->sync_ns;
	a->idle_ns += b->idle_ns;
	for (int k = 0; k < NP_LINK_TYPES; k++) {
		const struct np_synth_bandwidth *from = &b->links[k];
		a->links[k].len_bytes += from->len_bytes;
		a->links[k].time_ns += from->time_ns;
		for (uint32_t i = 0; i < from->n_buckets; i++) {
			struct np_synth_bandwidth sum = {.len_bytes = a->links[k].len_bytes,
			                                 .time_ns = a->links[k].time_ns};
			add_packets(&a->links[k], from->bucket[i].len_bytes, from->bucket[i].count,
			            from->bucket[i].time_ns, false, true);
			a->links[k].len_bytes = sum.len_bytes;
			a->links[k].time_ns = sum.time_ns;
		}
	}
}

void np_synth_step_items(const struct np_synth_run *run, uint32_t step, size_t *from, size_t *to)
{
	size_t lo = 0, n = run->items.n;
	/* items of a step are together, and steps are in order; the tail is -1 */
	for (size_t hi = n; lo < hi;) {
		size_t mid = lo + (hi - lo) / 2;
		int32_t at = run->items.v[mid].step;
		if (at >= 0 && at < (int32_t)step)
			lo = mid + 1;
		else
			hi = mid;
	}
	*from = lo;
	while (lo < n && run->items.v[lo].step == (int32_t)step)
		lo++;
	*to = lo;
}

/* ── matrix ── */

struct link_record {
	const struct np_synth_item *item;
	uint32_t group, dst;
	enum np_synth_coll coll;
	const char *transport;
	uint64_t len_bytes;
	np_ns time_ns;
	uint32_t order;
};

/* by group, kind, link, bandwidth descending; equal ones as they came */
static int by_bandwidth(const void *a, const void *b)
{
	const struct link_record *x = a, *y = b;
	if (x->group != y->group)
		return x->group < y->group ? -1 : 1;
	if (x->coll != y->coll)
		return x->coll < y->coll ? -1 : 1;
	if (x->dst != y->dst)
		return x->dst < y->dst ? -1 : 1;
	int64_t fast = np_synth_gbps(x->len_bytes, x->time_ns),
		slow = np_synth_gbps(y->len_bytes, y->time_ns);
	if (fast != slow)
		return fast > slow ? -1 : 1;
	return x->order < y->order ? -1 : 1;
}

/* The links of one collective; on-chip copies are the link to itself. */
static void add_links(const struct np_synth_run *run, const struct np_synth_item *item,
                      struct link_record *records, size_t *n)
{
	struct np_synth_comm_task tasks[NP_SYNTH_MAX_COMM_TASKS];
	size_t n_tasks = np_synth_comm_tasks(run, item, tasks), first = *n;
	uint32_t self = np_synth_member(&run->plan->groups[item->group], run->rank);
	for (size_t i = 0; i < n_tasks; i++) {
		if (!tasks[i].payload)
			continue;
		uint32_t dst = tasks[i].on_chip ? self : tasks[i].dst;
		size_t k = first;
		while (k < *n && records[k].dst != dst)
			k++;
		if (k == *n) {
			records[(*n)++] =
				(struct link_record){.item = item,
			                             .group = item->group,
			                             .coll = (enum np_synth_coll)item->coll,
			                             .dst = dst,
			                             .order = (uint32_t)k,
			                             .transport = tasks[i].on_chip ? "LOCAL"
			                                          : tasks[i].rdma  ? "RDMA"
			                                                           : "HCCS"};
		}
		records[k].len_bytes += tasks[i].len_bytes;
		records[k].time_ns += tasks[i].dur_ns;
	}
}

static const char *const places[] = {"top1", "middle", "bottom1", "bottom2", "bottom3", "total"};

/* Which of `n` sorted records stands in a place; n: none. */
static size_t place_index(size_t place, size_t n)
{
	switch (place) {
	case 0:
		return 0;
	case 1:
		return n / 2;
	default: /* bottom1…3 */
		return n >= place - 1 ? n - (place - 1) : n;
	}
}

static void emit_group(const struct np_synth_run *run, const struct link_record *v, size_t n,
                       void (*row)(void *ctx, const struct np_synth_matrix_row *row), void *ctx)
{
	uint32_t self = np_synth_member(&run->plan->groups[v[0].group], run->rank);
	for (size_t place = 0; place < 6; place++) {
		for (size_t from = 0, to; from < n; from = to) {
			for (to = from; to < n && v[to].dst == v[from].dst;)
				to++;
			struct np_synth_matrix_row out = {.place = places[place],
			                                  .group = v[0].group,
			                                  .coll = v[0].coll,
			                                  .src = self,
			                                  .dst = v[from].dst,
			                                  .transport = v[from].transport};
			size_t at = place < 5 ? place_index(place, to - from) : 0;
			if (at == to - from)
				continue;
			if (place < 5) {
				out.item = v[from + at].item;
				out.len_bytes = v[from + at].len_bytes;
				out.time_ns = v[from + at].time_ns;
			}
			for (size_t i = from; place == 5 && i < to; i++) {
				out.len_bytes += v[i].len_bytes;
				out.time_ns += v[i].time_ns;
			}
			row(ctx, &out);
		}
	}
}

enum np_status np_synth_matrix(const struct np_synth_run *run, uint32_t step,
                               void (*row)(void *ctx, const struct np_synth_matrix_row *row),
                               void *ctx, struct np_err *err)
{
	size_t from, to, n = 0;
	np_synth_step_items(run, step, &from, &to);
	struct link_record *records = np_calloc(
		(size_t)run->plan->per_step * (NP_SYNTH_MAX_LINKS + 1) + 1, sizeof *records);
	if (!records)
		return np_err_nomem(err);
	for (size_t i = from; i < to; i++)
		if (run->items.v[i].kind == NP_ITEM_COMM)
			add_links(run, &run->items.v[i], records, &n);
	qsort(records, n, sizeof *records, by_bandwidth);
	for (size_t i = 0, end; i < n; i = end) {
		for (end = i; end < n && records[end].group == records[i].group &&
		              records[end].coll == records[i].coll;)
			end++;
		emit_group(run, records + i, end - i, row, ctx);
	}
	np_free(records);
	return NP_OK;
}
