/*
 * Joining parts: the later one's string ids, and its ids of odd pids and tids,
 * are exchanged for those of the earlier one while its rows are appended.
 * Strings are added in the order in which the later part met them, so the
 * result is the same as if one part had seen everything.
 */
#include "capture/trace_part.h"

struct remap {
	uint32_t *strings; /* by string id of `from` */
	uint32_t *odd;     /* by odd id of `from` - NP_TRACE_ODD; NULL when there are none */
};

static inline uint32_t string_id(const struct remap *remap, uint32_t id)
{
	return id == NP_ID_NONE ? id : remap->strings[id];
}

static inline uint32_t number_id(const struct remap *remap, uint32_t id)
{
	bool plain = id < NP_TRACE_ODD || id == NP_NO_U32 || !remap->odd;
	return plain ? id : remap->odd[id - NP_TRACE_ODD];
}

static void move_strings(const struct remap *remap, uint32_t *ids, size_t first, size_t n)
{
	for (size_t i = first; i < n; i++)
		ids[i] = string_id(remap, ids[i]);
}

static void move_numbers(const struct remap *remap, uint32_t *ids, size_t first, size_t n)
{
	if (!remap->odd)
		return;
	for (size_t i = first; i < n; i++)
		ids[i] = number_id(remap, ids[i]);
}

static bool build(struct np_trace_part *self, const struct np_trace_part *from, struct remap *remap)
{
	struct np_intern *strings = &self->profile->strings;
	size_t n = from->profile->strings.strings.n;
	remap->strings = np_realloc(NULL, n, sizeof *remap->strings);
	if (!remap->strings)
		return false;
	for (size_t i = 0; i < n; i++) {
		uint32_t id = np_intern_add(strings, from->profile->strings.strings.v[i]);
		if (id == NP_ID_NONE)
			return false;
		remap->strings[i] = id;
	}
	if (from->odd.n == 0)
		return true;
	remap->odd = np_realloc(NULL, from->odd.n, sizeof *remap->odd);
	if (!remap->odd)
		return false;
	for (size_t i = 0; i < from->odd.n; i++) {
		remap->odd[i] = np_trace_odd_id(self, remap->strings[from->odd.v[i]]);
		if (remap->odd[i] == NP_NO_U32)
			return false;
	}
	return true;
}

static void move_host_ops(struct np_host_ops *t, size_t first, const struct remap *remap)
{
	move_strings(remap, t->name, first, t->n);
	move_strings(remap, t->item, first, t->n);
	move_strings(remap, t->shapes, first, t->n);
	move_strings(remap, t->dtypes, first, t->n);
	move_strings(remap, t->stack, first, t->n);
	move_numbers(remap, t->pid, first, t->n);
	move_numbers(remap, t->tid, first, t->n);
}

static void move_mstx(struct np_mstx *t, size_t first, const struct remap *remap)
{
	move_strings(remap, t->message, first, t->n);
	move_strings(remap, t->domain, first, t->n);
	move_numbers(remap, t->pid, first, t->n);
	move_numbers(remap, t->tid, first, t->n);
	move_numbers(remap, t->end_tid, first, t->n);
}

static void move_tasks(struct np_tasks *t, size_t first, const struct remap *remap)
{
	move_strings(remap, t->name, first, t->n);
	move_strings(remap, t->type, first, t->n);
	move_numbers(remap, t->device, first, t->n);
}

static void move_comm(struct np_comm_ops *ops, size_t first_op, struct np_comm_tasks *tasks,
                      size_t first_task, const struct remap *remap)
{
	move_strings(remap, ops->name, first_op, ops->n);
	move_strings(remap, ops->algorithm, first_op, ops->n);
	move_strings(remap, ops->dtype, first_op, ops->n);
	move_numbers(remap, ops->group, first_op, ops->n);
	move_numbers(remap, ops->device, first_op, ops->n);
	move_strings(remap, tasks->name, first_task, tasks->n);
	move_strings(remap, tasks->transport, first_task, tasks->n);
	move_strings(remap, tasks->link, first_task, tasks->n);
	move_numbers(remap, tasks->plane, first_task, tasks->n);
	move_numbers(remap, tasks->device, first_task, tasks->n);
}

static bool append_tables(struct np_profile *to, const struct np_profile *from,
                          const struct remap *remap)
{
	struct np_trace_base base;
	size_t flows = to->flows.n;
	np_trace_base_of(to, &base);
	if (!np_rows_append(&to->host_ops, &from->host_ops, &np_host_ops_desc) ||
	    !np_rows_append(&to->mstx, &from->mstx, &np_mstx_desc) ||
	    !np_rows_append(&to->tasks, &from->tasks, &np_tasks_desc) ||
	    !np_rows_append(&to->comm_ops, &from->comm_ops, &np_comm_ops_desc) ||
	    !np_rows_append(&to->comm_tasks, &from->comm_tasks, &np_comm_tasks_desc) ||
	    !np_rows_append(&to->flows, &from->flows, &np_flows_desc) ||
	    !np_rows_append(&to->counters, &from->counters, &np_counters_desc)) {
		/* no row with foreign ids stays */
		to->host_ops.n = base.host_ops;
		to->mstx.n = base.mstx;
		to->tasks.n = base.tasks;
		to->comm_ops.n = base.comm_ops;
		to->comm_tasks.n = base.comm_tasks;
		to->flows.n = flows;
		to->counters.n = base.counters;
		return false;
	}
	move_host_ops(&to->host_ops, base.host_ops, remap);
	move_mstx(&to->mstx, base.mstx, remap);
	move_tasks(&to->tasks, base.tasks, remap);
	move_comm(&to->comm_ops, base.comm_ops, &to->comm_tasks, base.comm_tasks, remap);
	move_strings(remap, to->flows.cat, flows, to->flows.n);
	move_strings(remap, to->flows.id, flows, to->flows.n);
	move_numbers(remap, to->flows.pid, flows, to->flows.n);
	move_numbers(remap, to->flows.tid, flows, to->flows.n);
	move_strings(remap, to->counters.name, base.counters, to->counters.n);
	move_numbers(remap, to->counters.process, base.counters, to->counters.n);
	return true;
}

static bool append_lists(struct np_trace_part *self, const struct np_trace_part *from,
                         const struct remap *remap)
{
	for (size_t i = 0; i < from->processes.n; i++) {
		const struct np_trace_process *process = &from->processes.v[i];
		np_trace_name_process(self, number_id(remap, process->pid),
		                      string_id(remap, process->name),
		                      string_id(remap, process->labels));
	}
	for (size_t i = 0; i < from->threads.n; i++) {
		const struct np_trace_thread *thread = &from->threads.v[i];
		np_trace_name_thread(self, number_id(remap, thread->pid),
		                     number_id(remap, thread->tid), string_id(remap, thread->name));
	}
	for (size_t i = 0; i < from->marks.n; i++) {
		struct np_trace_mark mark = from->marks.v[i];
		mark.range.name = string_id(remap, mark.range.name);
		mark.range.item = string_id(remap, mark.range.item);
		mark.range.shapes = string_id(remap, mark.range.shapes);
		mark.range.dtypes = string_id(remap, mark.range.dtypes);
		mark.range.stack = string_id(remap, mark.range.stack);
		mark.range.pid = number_id(remap, mark.range.pid);
		mark.range.tid = number_id(remap, mark.range.tid);
		if (!np_vec_push(&self->marks, mark))
			return false;
	}
	for (size_t i = 0; i < from->steps.n; i++)
		if (!np_vec_push(&self->steps, from->steps.v[i]))
			return false;
	return true;
}

enum np_status np_trace_part_merge(struct np_trace_part *self, const struct np_trace_part *from,
                                   struct np_err *err)
{
	struct remap remap = {NULL, NULL};
	if (!build(self, from, &remap) || !append_tables(self->profile, from->profile, &remap) ||
	    !append_lists(self, from, &remap))
		self->no_memory |= !self->too_many_ids;
	np_free(remap.strings);
	np_free(remap.odd);
	np_trace_repairs_add(&self->repairs, &from->repairs);
	self->bad_times += from->bad_times;
	self->negative += from->negative;
	self->not_events += from->not_events;
	self->profile->dropped_rows += from->profile->dropped_rows;
	return np_trace_part_status(self, err);
}
