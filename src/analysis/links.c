/*
 * Kernels and the calls that launched them (launch.h has the picture). All of
 * it is merge joins over tables that are in order of time, and tables by id.
 */
#include <stdlib.h>

#include "analysis/analysis.h"

/* Exporters print one start in two files from a double or with other rounding. */
enum { SLACK_NS = 500 };

/* ── a table by id: dense where the ids are (they count up), else a map ── */

struct by_id {
	int64_t first;
	size_t n; /* of the dense table */
	uint32_t *rows;
	struct np_map map;
	bool dense;
};

static bool by_id_init(struct by_id *self, int64_t first, int64_t last, size_t ids)
{
	*self = (struct by_id){.first = first};
	np_map_init(&self->map);
	uint64_t span = last >= first ? (uint64_t)last - (uint64_t)first + 1 : 0;
	self->dense = span <= 16 * (uint64_t)ids + 65536;
	if (!self->dense)
		return true;
	self->n = (size_t)span;
	self->rows = np_realloc(NULL, self->n ? self->n : 1, sizeof *self->rows);
	for (size_t i = 0; self->rows && i < self->n; i++)
		self->rows[i] = NP_NO_U32;
	return self->rows != NULL;
}

static void by_id_release(struct by_id *self)
{
	np_free(self->rows);
	np_map_release(&self->map);
}

static uint32_t by_id_get(const struct by_id *self, int64_t id)
{
	if (!self->dense)
		return np_map_get(&self->map, (uint64_t)id, NP_NO_U32);
	uint64_t at = (uint64_t)id - (uint64_t)self->first;
	return at < self->n ? self->rows[at] : NP_NO_U32;
}

static bool by_id_put(struct by_id *self, int64_t id, uint32_t row)
{
	if (!self->dense)
		return np_map_put(&self->map, (uint64_t)id, row);
	uint64_t at = (uint64_t)id - (uint64_t)self->first;
	if (at < self->n)
		self->rows[at] = row;
	return true;
}

/* ── the connection of each kernel ── */

static np_ns distance(np_ns a, np_ns b)
{
	return a > b ? a - b : b - a;
}

static bool same_task(const struct np_kernels *kernels, size_t k, const struct np_tasks *tasks,
                      size_t t, uint32_t device)
{
	if (tasks->device[t] != NP_NO_U32 && device != NP_NO_U32 && tasks->device[t] != device)
		return false;
	if (kernels->task[k] != NP_NO_U32 && tasks->task[t] != NP_NO_U32)
		return kernels->task[k] == tasks->task[t] &&
		       (kernels->stream[k] == tasks->stream[t] || kernels->stream[k] == NP_NO_U32);
	return kernels->name[k] == tasks->name[t];
}

/* Both are in order of start: the task that starts nearest is the kernel's. */
static void join_tasks(struct np_analysis *self, int64_t *conn)
{
	const struct np_kernels *kernels = &self->profile->kernels;
	const struct np_tasks *tasks = &self->profile->tasks;
	size_t first = 0;
	for (size_t k = 0; k < kernels->n; k++) {
		np_ns start = kernels->start_ns[k], best = SLACK_NS + 1;
		if (kernels->device[k] != self->device || self->class[k] == NP_CLASS_COMM)
			continue;
		while (first < tasks->n && tasks->start_ns[first] < start - SLACK_NS)
			first++;
		for (size_t t = first; t < tasks->n && tasks->start_ns[t] <= start + SLACK_NS;
		     t++) {
			np_ns off = distance(tasks->start_ns[t], start);
			if (off >= best || !same_task(kernels, k, tasks, t, self->device))
				continue;
			best = off;
			if (conn[k] == NP_NO_I64)
				conn[k] = tasks->conn[t];
			self->launches[k].stream = tasks->stream[t];
		}
	}
}

static void join_comm(struct np_analysis *self, int64_t *conn)
{
	const struct np_kernels *kernels = &self->profile->kernels;
	const struct np_comm_ops *ops = &self->profile->comm_ops;
	size_t first = 0;
	for (size_t k = 0; k < kernels->n; k++) {
		np_ns start = kernels->start_ns[k];
		if (kernels->device[k] != self->device || self->class[k] != NP_CLASS_COMM)
			continue;
		while (first < ops->n && ops->start_ns[first] < start - SLACK_NS)
			first++;
		for (size_t o = first; o < ops->n && ops->start_ns[o] <= start + SLACK_NS; o++)
			if (ops->name[o] == kernels->name[k] && conn[k] == NP_NO_I64)
				conn[k] = ops->conn[o];
	}
}

static int64_t *connections(struct np_analysis *self)
{
	const struct np_kernels *kernels = &self->profile->kernels;
	int64_t *conn = np_realloc(NULL, kernels->n, sizeof *conn);
	bool missing = false;
	for (size_t k = 0; conn && k < kernels->n; k++) {
		conn[k] = kernels->conn[k] == NP_NO_U32 ? NP_NO_I64 : (int64_t)kernels->conn[k];
		missing = missing || conn[k] == NP_NO_I64;
		self->launches[k] = (struct np_launch){.start = NP_NO_I64,
		                                       .end = NP_NO_I64,
		                                       .op = NP_NO_U32,
		                                       .dequeue = NP_NO_U32,
		                                       .enqueue = NP_NO_U32,
		                                       .tid = NP_NO_U32,
		                                       .stream = kernels->stream[k]};
	}
	if (conn && missing) {
		join_tasks(self, conn);
		join_comm(self, conn);
	}
	return conn;
}

/* ── the task queue: who is in which Dequeue now, and which Enqueue fed it ── */

struct queue {
	struct np_map thread_of; /* tid → index in current */
	NP_VEC(uint32_t) current;
	struct by_id enqueue_of; /* correlation id → row */
};

static bool is_dequeue(const struct np_analysis *self, size_t row)
{
	return np_str_starts(np_text(self, self->profile->host_ops.name[row]), NP_STR("Dequeue"));
}

static bool queue_init(struct queue *self, const struct np_analysis *analysis)
{
	const struct np_host_ops *ops = &analysis->profile->host_ops;
	int64_t low = INT64_MAX, high = INT64_MIN;
	size_t n = 0;
	*self = (struct queue){.current = {.v = NULL}};
	np_map_init(&self->thread_of);
	for (size_t i = 0; i < ops->n; i++) {
		if (ops->layer[i] != NP_HOST_QUEUE || ops->conn[i] == NP_NO_I64)
			continue;
		low = ops->conn[i] < low ? ops->conn[i] : low;
		high = ops->conn[i] > high ? ops->conn[i] : high;
		n++;
	}
	return by_id_init(&self->enqueue_of, low, high, n);
}

static void queue_release(struct queue *self)
{
	np_map_release(&self->thread_of);
	np_vec_release(&self->current);
	by_id_release(&self->enqueue_of);
}

/* A row of the queue's layer comes by, in order of start. */
static bool queue_see(struct queue *self, const struct np_analysis *analysis, uint32_t row)
{
	const struct np_host_ops *ops = &analysis->profile->host_ops;
	if (!is_dequeue(analysis, row))
		return ops->conn[row] == NP_NO_I64 ||
		       by_id_put(&self->enqueue_of, ops->conn[row], row);
	uint32_t at = np_map_get(&self->thread_of, ops->tid[row], NP_NO_U32);
	if (at != NP_NO_U32) {
		self->current.v[at] = row;
		return true;
	}
	return np_vec_push(&self->current, row) &&
	       np_map_put(&self->thread_of, ops->tid[row], (uint32_t)self->current.n - 1);
}

/* The queue's part of a launch at `ns` on `tid`. */
static void queue_ask(const struct queue *self, const struct np_analysis *analysis, uint32_t tid,
                      np_ns ns, struct np_launch *out)
{
	const struct np_host_ops *ops = &analysis->profile->host_ops;
	uint32_t at = np_map_get(&self->thread_of, tid, NP_NO_U32);
	uint32_t row = at == NP_NO_U32 ? NP_NO_U32 : self->current.v[at];
	out->dequeue = out->enqueue = NP_NO_U32;
	if (row == NP_NO_U32 || ops->start_ns[row] + ops->dur_ns[row] < ns)
		return;
	out->dequeue = row;
	if (ops->conn[row] != NP_NO_I64)
		out->enqueue = by_id_get(&self->enqueue_of, ops->conn[row]);
}

/* ── calls ── */

static bool is_cann(uint8_t layer)
{
	return layer >= NP_HOST_ACL && layer <= NP_HOST_RUNTIME;
}

/* A node's launch, then communication, then what is outside or inside of them. */
static int rank_of(uint8_t layer)
{
	return layer == NP_HOST_NODE ? 4 : layer == NP_HOST_HCCL ? 3 : layer == NP_HOST_ACL ? 2 : 1;
}

static bool index_connections(const int64_t *conn, size_t n, struct by_id *out)
{
	int64_t low = INT64_MAX, high = INT64_MIN;
	for (size_t k = 0; k < n; k++) {
		if (conn[k] == NP_NO_I64)
			continue;
		low = conn[k] < low ? conn[k] : low;
		high = conn[k] > high ? conn[k] : high;
	}
	return by_id_init(out, low, high, n);
}

/*
 * One pass over the host's rows in order of start. Calls are found by the ids that
 * the kernels have; `slots` keeps one launch per id, since many kernels may share it.
 */
static bool find_calls(struct np_analysis *self, struct queue *queue, struct by_id *wanted,
                       struct np_launch *slots)
{
	const struct np_host_ops *ops = &self->profile->host_ops;
	for (size_t i = 0; i < ops->n; i++) {
		if (ops->layer[i] == NP_HOST_QUEUE && !queue_see(queue, self, (uint32_t)i))
			return false;
		if (!is_cann(ops->layer[i]) || ops->conn[i] == NP_NO_I64)
			continue;
		uint32_t slot = by_id_get(wanted, ops->conn[i]);
		if (slot == NP_NO_U32)
			continue;
		struct np_launch *to = &slots[slot];
		if (to->op != NP_NO_U32 && rank_of(ops->layer[to->op]) >= rank_of(ops->layer[i]))
			continue;
		to->how = NP_LAUNCH_CALL;
		to->op = (uint32_t)i;
		to->start = ops->start_ns[i];
		to->end = ops->start_ns[i] + ops->dur_ns[i];
		to->tid = ops->tid[i];
		queue_ask(queue, self, to->tid, to->start, to);
	}
	return true;
}

/* The first kernel of each id lends its launch as the slot; the others copy it. */
static bool link_calls(struct np_analysis *self, struct queue *queue, const int64_t *conn)
{
	size_t n = self->profile->kernels.n;
	struct by_id wanted;
	bool ok = index_connections(conn, n, &wanted);
	for (size_t k = 0; ok && k < n; k++)
		if (conn[k] != NP_NO_I64 && by_id_get(&wanted, conn[k]) == NP_NO_U32)
			ok = by_id_put(&wanted, conn[k], (uint32_t)k);
	ok = ok && find_calls(self, queue, &wanted, self->launches);
	for (size_t k = 0; ok && k < n; k++) {
		uint32_t slot = conn[k] == NP_NO_I64 ? NP_NO_U32 : by_id_get(&wanted, conn[k]);
		if (slot == NP_NO_U32 || slot == k)
			continue;
		uint32_t stream = self->launches[k].stream;
		self->launches[k] = self->launches[slot];
		self->launches[k].stream = stream;
	}
	by_id_release(&wanted);
	return ok;
}

/* ── arrows, where the calls were pruned ── */

static bool arrows_wanted(const struct np_analysis *self)
{
	size_t missing = 0;
	if (!np_capture_file(self->capture, NP_ROLE_TRACE))
		return false;
	for (size_t i = 0; i < self->n_rows; i++)
		missing += self->launches[self->rows[i]].how == NP_LAUNCH_NONE;
	return missing * 20 > self->n_rows; /* more than 5 %: worth reading the trace again */
}

/* Starts of arrows by the id's number in the table of strings; ends by time. */
static bool arrow_tables(const struct np_profile *from, const char *category, struct np_map *starts,
                         struct np_map *ends)
{
	const struct np_flows *flows = &from->flows;
	bool ok = true;
	for (size_t i = 0; ok && i < flows->n; i++) {
		if (!np_str_is(np_intern_get(&from->strings, flows->cat[i]), category))
			continue;
		ok = flows->end[i] ? np_map_put(ends, (uint64_t)flows->ts_ns[i], (uint32_t)i)
		                   : np_map_put(starts, flows->id[i], (uint32_t)i);
	}
	return ok;
}

static bool link_arrows(struct np_analysis *self, const struct np_profile *from,
                        const char *category)
{
	const struct np_kernels *kernels = &self->profile->kernels;
	struct np_map starts, ends;
	np_map_init(&starts);
	np_map_init(&ends);
	bool ok = arrow_tables(from, category, &starts, &ends);
	for (size_t k = 0; ok && k < kernels->n; k++) {
		struct np_launch *to = &self->launches[k];
		if (to->how != NP_LAUNCH_NONE || kernels->device[k] != self->device)
			continue;
		uint32_t end = NP_NO_U32;
		for (int off = 0; off < 3 && end == NP_NO_U32; off++) /* 0, +1, -1 ns */
			end = np_map_get(&ends,
			                 (uint64_t)(kernels->start_ns[k] + (off == 2 ? -1 : off)),
			                 NP_NO_U32);
		uint32_t start = end == NP_NO_U32
		                         ? NP_NO_U32
		                         : np_map_get(&starts, from->flows.id[end], NP_NO_U32);
		if (start == NP_NO_U32)
			continue;
		to->how = NP_LAUNCH_ARROW;
		to->start = to->end = from->flows.ts_ns[start];
		to->tid = from->flows.tid[start];
	}
	np_map_release(&starts);
	np_map_release(&ends);
	return ok;
}

struct arrow {
	np_ns ns;
	uint32_t kernel;
};

static int by_ns(const void *a, const void *b)
{
	const struct arrow *x = a, *y = b;
	if (x->ns != y->ns)
		return x->ns < y->ns ? -1 : 1;
	return (x->kernel > y->kernel) - (x->kernel < y->kernel);
}

/* In which Dequeue did each arrow begin? */
static bool place_arrows(struct np_analysis *self)
{
	const struct np_host_ops *ops = &self->profile->host_ops;
	size_t n = self->profile->kernels.n, found = 0, next = 0;
	struct queue queue;
	struct arrow *arrows = np_realloc(NULL, n, sizeof *arrows);
	bool ok = queue_init(&queue, self) && arrows != NULL;
	for (size_t k = 0; ok && k < n; k++)
		if (self->launches[k].how == NP_LAUNCH_ARROW)
			arrows[found++] = (struct arrow){self->launches[k].start, (uint32_t)k};
	if (ok && found > 1)
		qsort(arrows, found, sizeof *arrows, by_ns);
	for (size_t i = 0; ok && next < found; i++) {
		while (next < found && (i >= ops->n || arrows[next].ns < ops->start_ns[i])) {
			struct np_launch *to = &self->launches[arrows[next++].kernel];
			queue_ask(&queue, self, to->tid, to->start, to);
		}
		if (i < ops->n && ops->layer[i] == NP_HOST_QUEUE)
			ok = queue_see(&queue, self, (uint32_t)i);
	}
	queue_release(&queue);
	np_free(arrows);
	return ok;
}

/* The arrows are read only where they are needed: they are most of a trace. */
static bool use_arrows(struct np_analysis *self)
{
	struct np_profile *from = NULL;
	struct np_err err = {0};
	enum np_status status =
		np_capture_load(self->capture, NP_FLOWS, self->options->threads, &from, &err);
	bool ok = status != NP_E_NOMEM;
	if (status == NP_OK)
		ok = link_arrows(self, from, "HostToDevice") &&
		     link_arrows(self, from, "async_npu") && place_arrows(self);
	np_profile_free(from);
	return ok;
}

bool np_links_build(struct np_analysis *self)
{
	size_t n = self->profile->kernels.n;
	struct queue queue;
	if (self->launches)
		return true;
	self->launches = np_realloc(NULL, n, sizeof *self->launches);
	self->launch = np_realloc(NULL, n, sizeof *self->launch);
	int64_t *conn = self->launches && self->launch ? connections(self) : NULL;
	bool ok = queue_init(&queue, self) && conn != NULL && link_calls(self, &queue, conn);
	queue_release(&queue);
	np_free(conn);
	if (ok && arrows_wanted(self))
		ok = use_arrows(self);
	for (size_t k = 0; ok && k < n; k++)
		self->launch[k] = self->launches[k].op;
	return ok;
}
