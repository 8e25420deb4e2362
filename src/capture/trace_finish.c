/*
 * The end of a trace: all names are known now, so what waited for them is put
 * in its place (see the table in trace_part.h).
 */
#include <stdlib.h>

#include "capture/trace_class.h"
#include "capture/trace_part.h"

void np_trace_base_of(const struct np_profile *profile, struct np_trace_base *out)
{
	*out = (struct np_trace_base){
		.host_ops = profile->host_ops.n,
		.mstx = profile->mstx.n,
		.tasks = profile->tasks.n,
		.comm_ops = profile->comm_ops.n,
		.comm_tasks = profile->comm_tasks.n,
		.counters = profile->counters.n,
	};
}

/* What is known of the process of a row; the last one asked for is kept. */
struct process_view {
	bool valid;
	uint32_t pid, device, name;
	enum np_trace_process_class kind;
};

static const struct process_view *view_of(const struct np_trace_part *self,
                                          struct process_view *view, uint32_t pid)
{
	if (view->valid && view->pid == pid)
		return view;
	const struct np_intern *strings = &self->profile->strings;
	uint32_t at = np_map_get(&self->process_of, pid, NP_NO_U32);
	*view = (struct process_view){true, pid, NP_NO_U32, NP_ID_NONE, NP_TRACE_PROCESS_HOST};
	if (at == NP_NO_U32)
		return view;
	const struct np_trace_process *process = &self->processes.v[at];
	np_str labels = np_intern_get(strings, process->labels), pid_text = {"", 0};
	if (pid >= NP_TRACE_ODD && pid != NP_NO_U32)
		pid_text = np_intern_get(strings, self->odd.v[pid - NP_TRACE_ODD]);
	view->name = process->name;
	view->device = np_trace_device(labels, pid, pid_text);
	view->kind = np_trace_process_classify(np_intern_get(strings, process->name), labels);
	return view;
}

static np_str thread_name(const struct np_trace_part *self, uint32_t pid, uint32_t tid)
{
	uint32_t at = np_map_get(&self->thread_of, (uint64_t)pid << 32 | tid, NP_NO_U32);
	if (at == NP_NO_U32)
		return (np_str){"", 0};
	return np_intern_get(&self->profile->strings, self->threads.v[at].name);
}

/* ── B and E ── */

/* Stacks per thread, linked through `below`; the map holds each one's top. */
static bool pair_marks(struct np_trace_part *self, uint64_t *unmatched)
{
	const uint32_t none = (uint32_t)self->marks.n;
	struct np_map tops;
	bool ok = true;
	np_map_init(&tops);
	*unmatched = 0;
	for (uint32_t i = 0; ok && i < none; i++) {
		struct np_trace_mark *mark = &self->marks.v[i];
		uint64_t key = (uint64_t)mark->range.pid << 32 | mark->range.tid;
		uint32_t top = np_map_get(&tops, key, none);
		if (mark->begin) {
			mark->below = top;
			ok = np_map_put(&tops, key, i);
			++*unmatched;
			continue;
		}
		if (top == none) {
			++*unmatched;
			continue;
		}
		struct np_trace_range *range = &self->marks.v[top].range;
		--*unmatched;
		ok = np_map_put(&tops, key, self->marks.v[top].below);
		range->dur_ns = mark->range.start_ns - range->start_ns;
		if (range->dur_ns < 0) {
			self->negative++;
			self->profile->dropped_rows++;
			continue;
		}
		ok = ok && np_trace_add_step(self, range);
		if (ok && np_trace_wants_host(self, range->layer))
			ok = np_trace_add_host_op(self->profile, range);
		if (ok && range->layer == NP_HOST_MSTX && (self->what & NP_MSTX))
			ok = np_trace_add_mstx(self->profile, range) != SIZE_MAX;
	}
	np_map_release(&tops);
	return ok;
}

/* ── host rows whose event did not say what they are ── */

static bool move_to_tasks(struct np_profile *profile, size_t row)
{
	size_t i = np_profile_add(profile, tasks);
	if (i == SIZE_MAX)
		return false;
	const struct np_host_ops *from = &profile->host_ops;
	struct np_tasks *t = &profile->tasks;
	t->name[i] = from->name[row];
	t->type[i] = NP_ID_NONE;
	t->device[i] = from->pid[row];
	t->stream[i] = from->tid[row]; /* lanes are streams */
	t->task[i] = t->context[i] = NP_NO_U32;
	t->start_ns[i] = from->start_ns[row];
	t->dur_ns[i] = from->dur_ns[row];
	t->conn[i] = from->conn[row];
	t->compute[i] = 0;
	return true;
}

static bool move_to_comm_ops(struct np_profile *profile, size_t row)
{
	size_t i = np_profile_add(profile, comm_ops);
	if (i == SIZE_MAX)
		return false;
	const struct np_host_ops *from = &profile->host_ops;
	struct np_comm_ops *t = &profile->comm_ops;
	t->name[i] = from->name[row];
	t->group[i] = from->tid[row];
	t->type[i] = t->algorithm[i] = t->dtype[i] = NP_ID_NONE;
	t->count[i] = NP_NO_I64;
	t->device[i] = from->pid[row];
	t->start_ns[i] = from->start_ns[row];
	t->dur_ns[i] = from->dur_ns[row];
	t->conn[i] = from->conn[row];
	t->step[i] = NP_NO_U32;
	return true;
}

static bool move_to_comm_tasks(struct np_profile *profile, size_t row)
{
	size_t i = np_profile_add(profile, comm_tasks);
	if (i == SIZE_MAX)
		return false;
	const struct np_host_ops *from = &profile->host_ops;
	struct np_comm_tasks *t = &profile->comm_tasks;
	t->op[i] = NP_NO_U32;
	t->name[i] = from->name[row];
	t->plane[i] = from->tid[row];
	t->device[i] = from->pid[row];
	t->stream[i] = t->task[i] = NP_NO_U32;
	t->start_ns[i] = from->start_ns[row];
	t->dur_ns[i] = from->dur_ns[row];
	t->src_rank[i] = t->dst_rank[i] = NP_NO_U32;
	t->transport[i] = t->link[i] = NP_ID_NONE;
	t->size_bytes[i] = NP_NO_I64;
	t->notify[i] = UINT64_MAX;
	return true;
}

/* What the process alone tells to be the user's has no type. */
static bool copy_to_mstx(struct np_profile *profile, size_t row)
{
	const struct np_host_ops *from = &profile->host_ops;
	const struct np_trace_range range = {.name = from->name[row],
	                                     .pid = from->pid[row],
	                                     .tid = from->tid[row],
	                                     .start_ns = from->start_ns[row],
	                                     .dur_ns = from->dur_ns[row],
	                                     .conn = from->conn[row]};
	return np_trace_add_mstx(profile, &range) != SIZE_MAX;
}

/* The layer of a row that stays on the host; else it is copied to where it belongs. */
static bool place(struct np_trace_part *self, struct process_view *view, size_t row, bool *stays)
{
	struct np_host_ops *t = &self->profile->host_ops;
	uint32_t pid = t->pid[row], plane;
	*stays = false;
	switch (view_of(self, view, pid)->kind) {
	case NP_TRACE_PROCESS_HARDWARE:
		return !(self->what & NP_TASKS) || move_to_tasks(self->profile, row);
	case NP_TRACE_PROCESS_COMM:
		if (np_trace_plane_lane(thread_name(self, pid, t->tid[row]), &plane))
			return !(self->what & NP_COMM) || move_to_comm_tasks(self->profile, row);
		return !(self->what & NP_COMM_OPS) || move_to_comm_ops(self->profile, row);
	case NP_TRACE_PROCESS_DERIVED:
		return true;
	case NP_TRACE_PROCESS_GC:
		t->layer[row] = NP_HOST_GC;
		break;
	case NP_TRACE_PROCESS_MSTX:
		t->layer[row] = NP_HOST_MSTX;
		if ((self->what & NP_MSTX) && !copy_to_mstx(self->profile, row))
			return false;
		break;
	case NP_TRACE_PROCESS_HOST:
		break;
	}
	*stays = true;
	return true;
}

static void copy_host_op(struct np_host_ops *t, size_t to, size_t from)
{
	t->layer[to] = t->layer[from];
	t->name[to] = t->name[from];
	t->item[to] = t->item[from];
	t->pid[to] = t->pid[from];
	t->tid[to] = t->tid[from];
	t->start_ns[to] = t->start_ns[from];
	t->dur_ns[to] = t->dur_ns[from];
	t->conn[to] = t->conn[from];
	t->seq[to] = t->seq[from];
	t->shapes[to] = t->shapes[from];
	t->dtypes[to] = t->dtypes[from];
	t->stack[to] = t->stack[from];
}

static bool place_host_rows(struct np_trace_part *self, size_t first)
{
	struct np_host_ops *t = &self->profile->host_ops;
	struct process_view view = {.valid = false};
	size_t kept = first;
	for (size_t i = first; i < t->n; i++) {
		bool stays = true;
		if (t->layer[i] == NP_HOST_OTHER && !place(self, &view, i, &stays))
			return false;
		if (!stays || !(self->what & NP_HOST_OPS))
			continue;
		if (kept != i)
			copy_host_op(t, kept, i);
		kept++;
	}
	t->n = kept;
	return true;
}

/* ── collectives ── */

/* A lane of a group, or a collective in it. */
struct lane {
	uint64_t key; /* pid << 32 | tid */
	np_ns start_ns;
	uint32_t row;
};

static int by_lane(const void *a, const void *b)
{
	const struct lane *x = a, *y = b;
	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	return (x->row > y->row) - (x->row < y->row);
}

/* All collectives by lane and start; lanes without any have one entry before all
 * times, so that their planes don't find the lane in front of them. */
static struct lane *list_lanes(const struct np_trace_part *self, size_t first, size_t *n)
{
	const struct np_comm_ops *ops = &self->profile->comm_ops;
	struct lane *lanes = np_realloc(NULL, ops->n - first + self->threads.n, sizeof *lanes);
	*n = 0;
	if (!lanes)
		return NULL;
	for (size_t i = first; i < ops->n; i++)
		lanes[(*n)++] = (struct lane){(uint64_t)ops->device[i] << 32 | ops->group[i],
		                              ops->start_ns[i], (uint32_t)i};
	for (size_t i = 0; i < self->threads.n; i++) {
		const struct np_trace_thread *thread = &self->threads.v[i];
		np_str group;
		if (np_trace_group_lane(np_intern_get(&self->profile->strings, thread->name),
		                        &group))
			lanes[(*n)++] = (struct lane){(uint64_t)thread->pid << 32 | thread->tid, -1,
			                              NP_NO_U32};
	}
	if (*n > 1)
		qsort(lanes, *n, sizeof *lanes, by_lane);
	return lanes;
}

/* The last entry not behind (key, start). */
static const struct lane *find_lane(const struct lane *lanes, size_t n, uint64_t key,
                                    np_ns start_ns)
{
	size_t low = 0, high = n;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		bool before = lanes[middle].key < key ||
		              (lanes[middle].key == key && lanes[middle].start_ns <= start_ns);
		if (before)
			low = middle + 1;
		else
			high = middle;
	}
	return low > 0 ? &lanes[low - 1] : NULL;
}

/*
 * A plane's tid is that of its group's lane + 1 + plane: the lane is the last one
 * in front of it, in the same process. The operation is the last one that began in
 * that lane; not only while it lasts, since exporters end it with its main stream
 * and tasks of the other planes may run a little longer.
 */
static bool relate_comm_tasks(struct np_trace_part *self, const struct np_trace_base *base)
{
	struct np_comm_tasks *tasks = &self->profile->comm_tasks;
	size_t n;
	if (tasks->n == base->comm_tasks)
		return true;
	struct lane *lanes = list_lanes(self, base->comm_ops, &n);
	if (!lanes)
		return false;
	for (size_t i = base->comm_tasks; i < tasks->n; i++) {
		uint64_t key = (uint64_t)tasks->device[i] << 32 | tasks->plane[i];
		const struct lane *lane = find_lane(lanes, n, key, NP_TIME_MAX);
		if (!lane || lane->key >> 32 != tasks->device[i])
			continue;
		key = lane->key;
		lane = find_lane(lanes, n, key, tasks->start_ns[i]);
		if (!lane || lane->key != key || lane->row == NP_NO_U32)
			continue;
		tasks->op[i] = lane->row;
	}
	np_free(lanes);
	return true;
}

/* ── columns that hold pids and tids so far ── */

static bool name_comm(struct np_trace_part *self, const struct np_trace_base *base)
{
	struct np_comm_ops *ops = &self->profile->comm_ops;
	struct np_comm_tasks *tasks = &self->profile->comm_tasks;
	struct process_view view = {.valid = false};
	for (size_t i = base->comm_ops; i < ops->n; i++) {
		np_str name = thread_name(self, ops->device[i], ops->group[i]), group = name;
		(void)np_trace_group_lane(name, &group);
		ops->type[i] = np_profile_comm_type(self->profile, ops->name[i]);
		if (ops->type[i] == NP_ID_NONE && ops->name[i] != NP_ID_NONE)
			return false;
		ops->group[i] = NP_ID_NONE;
		if (group.len > 0) {
			ops->group[i] = np_intern_add(&self->profile->strings, group);
			if (ops->group[i] == NP_ID_NONE)
				return false;
		}
		ops->device[i] = view_of(self, &view, ops->device[i])->device;
	}
	for (size_t i = base->comm_tasks; i < tasks->n; i++) {
		uint32_t pid = tasks->device[i], plane = NP_NO_U32;
		(void)np_trace_plane_lane(thread_name(self, pid, tasks->plane[i]), &plane);
		tasks->plane[i] = plane;
		tasks->device[i] = view_of(self, &view, pid)->device;
	}
	return true;
}

static void name_devices(struct np_trace_part *self, const struct np_trace_base *base)
{
	struct np_tasks *tasks = &self->profile->tasks;
	struct np_counters *counters = &self->profile->counters;
	struct process_view view = {.valid = false};
	for (size_t i = base->tasks; i < tasks->n; i++)
		tasks->device[i] = view_of(self, &view, tasks->device[i])->device;
	for (size_t i = base->counters; i < counters->n; i++) {
		const struct process_view *process = view_of(self, &view, counters->process[i]);
		counters->device[i] = process->device;
		counters->process[i] = process->name;
	}
}

/* ── steps ── */

static int by_step(const void *a, const void *b)
{
	const struct np_trace_step *x = a, *y = b;
	if (x->id != y->id)
		return x->id < y->id ? -1 : 1;
	bool x_torch = x->layer == NP_HOST_OP, y_torch = y->layer == NP_HOST_OP;
	if (x_torch != y_torch)
		return x_torch ? -1 : 1;
	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	return (x->end_ns > y->end_ns) - (x->end_ns < y->end_ns);
}

/* The first range of each id; torch's own goes before one of mstx. */
static bool set_steps(struct np_trace_part *self, const char *file)
{
	struct np_steps *steps = &self->profile->steps;
	size_t distinct = 0;
	if (self->steps.n > 1)
		qsort(self->steps.v, self->steps.n, sizeof *self->steps.v, by_step);
	for (size_t i = 0; i < self->steps.n; i++) {
		const struct np_trace_step *step = &self->steps.v[i];
		if (i > 0 && step[-1].id == step->id)
			continue;
		if (++distinct > NP_TRACE_MAX_STEPS)
			continue;
		uint32_t row = np_profile_add_step(self->profile, step->id);
		if (row == NP_NO_U32)
			return false;
		steps->host_start_ns[row] = step->start_ns;
		steps->host_end_ns[row] = step->end_ns;
	}
	if (distinct > NP_TRACE_MAX_STEPS)
		np_profile_diag(self->profile, "TOO_MANY_STEPS", file,
		                distinct - NP_TRACE_MAX_STEPS,
		                "more than %d different ProfilerStep# ranges, the rest is ignored",
		                NP_TRACE_MAX_STEPS);
	return true;
}

static void tell(struct np_trace_part *self, const char *file, uint64_t unmatched)
{
	struct np_profile *profile = self->profile;
	if (self->negative)
		np_profile_diag(profile, "NEGATIVE_DURATION", file, self->negative,
		                "%llu events with a negative duration dropped",
		                (unsigned long long)self->negative);
	if (self->bad_times)
		np_profile_diag(profile, "BAD_TIME", file, self->bad_times,
		                "%llu events without a readable time or duration dropped",
		                (unsigned long long)self->bad_times);
	if (unmatched)
		np_profile_diag(profile, "UNMATCHED_BEGIN_END", file, unmatched,
		                "%llu begin or end events without a partner",
		                (unsigned long long)unmatched);
	if (self->not_events)
		np_profile_diag(profile, "NOT_AN_EVENT", file, self->not_events,
		                "%llu elements of the event list are no objects",
		                (unsigned long long)self->not_events);
	if (np_json_repairs_total(&self->repairs) == 0)
		return;
	np_buf_clear(&self->scratch);
	np_json_repairs_describe(&self->repairs, &self->scratch);
	np_profile_diag(profile, "JSON_REPAIRED", file, np_json_repairs_total(&self->repairs),
	                "%.*s", NP_FMT(np_buf_str(&self->scratch)));
}

enum np_status np_trace_part_finish(struct np_trace_part *self, const struct np_trace_base *base,
                                    const char *file, struct np_err *err)
{
	uint64_t unmatched;
	bool ok = pair_marks(self, &unmatched) && place_host_rows(self, base->host_ops) &&
	          relate_comm_tasks(self, base) && name_comm(self, base);
	if (ok) {
		name_devices(self, base);
		ok = set_steps(self, file);
	}
	if (ok && (self->what & NP_HOST_OPS))
		ok = np_profile_sort_host_ops(self->profile);
	if (ok && (self->what & NP_MSTX))
		ok = np_profile_sort_mstx(self->profile);
	if (ok && (self->what & (NP_TASKS | NP_COMM_OPS)))
		ok = np_profile_sort_tasks(self->profile);
	if (!ok)
		return np_err_nomem(err);
	tell(self, file, unmatched);
	return NP_OK;
}
