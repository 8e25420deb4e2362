/*
 * When the framework issued each kernel.
 *
 *   main thread    │ aten::mm ────────── Enqueue ▪─────┐ correlation id
 *   dequeue thread │                       Dequeue ▪▪▪▪▪▪▪ launch ▪┐ connection id
 *   device         │                                            kernel
 *
 * Kernels of a database have the connection id; those of a table get it from the task
 * that began with them in the trace. Without a queue the launch is on the main thread.
 * (The trace also has arrows, async_npu, from the first to the last. They tell the same,
 * but their ids are as many texts, which cost more than all the rest of a comparison.)
 */
#include "analysis/overall.h"

/* ── launch → dequeue → enqueue ── */

struct queue {
	const struct np_host_ops *ops;
	struct np_map by_corr; /* correlation → row of the enqueue, which comes first */
	struct np_map open;    /* thread → row of its last dequeue */
	struct np_map by_conn; /* connection of a launch → row whose start is the issue */
};

/* By thread id alone: a trace has the layers of one process under several "pids". */
static uint64_t thread_of(const struct np_host_ops *ops, size_t row)
{
	return ops->tid[row];
}

static bool queue_op(struct queue *self, size_t row)
{
	if (self->ops->conn[row] == NP_NO_I64)
		return true;
	uint64_t corr = (uint64_t)self->ops->conn[row];
	if (np_map_get(&self->by_corr, corr, NP_NO_U32) == NP_NO_U32)
		return np_map_put(&self->by_corr, corr, (uint32_t)row);
	return np_map_put(&self->open, thread_of(self->ops, row), (uint32_t)row);
}

static bool launch_op(struct queue *self, size_t row)
{
	const struct np_host_ops *ops = self->ops;
	if (ops->conn[row] == NP_NO_I64)
		return true;
	uint32_t dequeue = np_map_get(&self->open, thread_of(ops, row), NP_NO_U32);
	uint32_t issue = (uint32_t)row;
	if (dequeue != NP_NO_U32 &&
	    ops->start_ns[row] <= ops->start_ns[dequeue] + ops->dur_ns[dequeue])
		issue = np_map_get(&self->by_corr, (uint64_t)ops->conn[dequeue], issue);
	return np_map_put(&self->by_conn, (uint64_t)ops->conn[row], issue);
}

static bool read_host(struct queue *self)
{
	bool ok = true;
	for (size_t i = 0; ok && i < self->ops->n; i++) { /* ordered by start */
		if (self->ops->layer[i] == NP_HOST_QUEUE)
			ok = queue_op(self, i);
		else if (self->ops->layer[i] == NP_HOST_NODE)
			ok = launch_op(self, i);
	}
	return ok;
}

/* ── kernels ── */

/* Row of the task that begins with kernel `row`; `cursor` moves along the tasks. */
static size_t task_of(const struct np_profile *profile, size_t row, size_t *cursor)
{
	const struct np_tasks *tasks = &profile->tasks;
	const struct np_kernels *kernels = &profile->kernels;
	np_ns start = kernels->start_ns[row];
	/* both are in order of start; a second device begins anew */
	if (row > 0 && kernels->device[row] != kernels->device[row - 1])
		*cursor = 0;
	while (*cursor < tasks->n && tasks->start_ns[*cursor] < start)
		(*cursor)++;
	for (size_t i = *cursor; i < tasks->n && tasks->start_ns[i] == start; i++)
		if (tasks->conn[i] != NP_NO_I64 &&
		    (tasks->device[i] == kernels->device[row] || /* old tables don't say */
		     tasks->device[i] == NP_NO_U32 || kernels->device[row] == NP_NO_U32))
			return i;
	return SIZE_MAX;
}

static void find_issues(const struct np_profile *profile, const struct queue *queue, np_ns *out)
{
	const struct np_kernels *kernels = &profile->kernels;
	size_t cursor = 0;
	for (size_t i = 0; i < kernels->n; i++) {
		uint64_t conn = kernels->conn[i];
		out[i] = NP_NO_I64;
		if (kernels->conn[i] == NP_NO_U32) {
			size_t task = task_of(profile, i, &cursor);
			if (task == SIZE_MAX)
				continue;
			conn = (uint64_t)profile->tasks.conn[task];
		}
		uint32_t row = np_map_get(&queue->by_conn, conn, NP_NO_U32);
		if (row != NP_NO_U32)
			out[i] = queue->ops->start_ns[row];
	}
}

np_ns *np_issue_times(const struct np_profile *profile)
{
	struct queue queue = {.ops = &profile->host_ops};
	np_map_init(&queue.by_corr);
	np_map_init(&queue.open);
	np_map_init(&queue.by_conn);
	np_ns *out = np_realloc(NULL, profile->kernels.n + 1, sizeof *out);
	if (out && read_host(&queue)) {
		find_issues(profile, &queue, out);
	} else {
		np_free(out);
		out = NULL;
	}
	np_map_release(&queue.by_corr);
	np_map_release(&queue.open);
	np_map_release(&queue.by_conn);
	return out;
}
