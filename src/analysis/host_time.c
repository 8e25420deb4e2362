#include "analysis/host_time.h"

#include <stdlib.h>
#include <string.h>

/* ── what a range is ── */

static bool has_any(np_str text, const char *const *words)
{
	for (; *words; words++)
		if (np_str_contains(text, np_str_of(*words)))
			return true;
	return false;
}

static bool is_sync(np_str name, bool python)
{
	static const char *const calls[] = {"ynchronize", "_local_scalar_dense", NULL};
	static const char *const methods[] = {"method item of", "method tolist of", "method cpu of",
	                                      NULL};
	if (python)
		return np_str_ends(name, NP_STR("synchronize")) || has_any(name, methods);
	return has_any(name, calls) || np_str_is(name, "aclrtMemcpy") ||
	       np_str_is(name, "aten::item") || np_str_is(name, "aten::is_nonzero");
}

/* The class that a name gives whatever its layer, or NP_N_IDLE. */
static enum np_idle_class by_name(np_str name, bool python)
{
	static const char *const data[] = {"DataLoader", "dataloader", "data_loader", NULL};
	static const char *const memory[] = {"Malloc",     "aclrtFree",   "DevFree",
	                                     "emptyCache", "empty_cache", NULL};
	static const char *const compile[] = {"convert_frame.py", "compile_fx.py", NULL};
	if (np_str_contains(name, NP_STR("built-in function collect")))
		return NP_IDLE_GC;
	if (is_sync(name, python))
		return NP_IDLE_SYNC;
	if (has_any(name, data))
		return NP_IDLE_DATALOADER;
	if (!python && has_any(name, memory))
		return NP_IDLE_ALLOCATOR;
	/* aclopCompileAndExecute is around every call, opCompile only where it compiles */
	if (np_str_is(name, "opCompile") || has_any(name, compile))
		return NP_IDLE_COMPILE;
	/* the range around a step says nothing */
	return np_str_starts(name, NP_STR("ProfilerStep#")) ? NP_IDLE_UNTRACED : NP_N_IDLE;
}

static enum np_idle_class by_layer(const struct np_analysis *analysis, size_t row)
{
	const struct np_host_ops *ops = &analysis->profile->host_ops;
	switch ((enum np_host_layer)ops->layer[row]) {
	case NP_HOST_GC:
		return NP_IDLE_GC;
	case NP_HOST_PYTHON:
		return NP_IDLE_PYTHON;
	case NP_HOST_MSTX:
		return NP_IDLE_MSTX;
	case NP_HOST_QUEUE:
		return np_str_starts(np_text(analysis, ops->name[row]), NP_STR("Dequeue"))
		               ? NP_IDLE_CANN
		               : NP_IDLE_OP;
	case NP_HOST_ACL:
	case NP_HOST_MODEL:
	case NP_HOST_NODE:
	case NP_HOST_HCCL:
	case NP_HOST_RUNTIME:
		return NP_IDLE_CANN;
	case NP_HOST_OP:
	case NP_HOST_OTHER:
		break;
	}
	return NP_IDLE_OP;
}

static enum np_idle_class class_of(struct np_host_time *self, size_t row)
{
	const struct np_host_ops *ops = &self->analysis->profile->host_ops;
	uint32_t name = ops->name[row];
	if (name >= self->analysis->profile->strings.strings.n)
		return by_layer(self->analysis, row);
	if (self->class_of[name] == 0) /* 0: not looked at yet */
		self->class_of[name] = (uint8_t)(1 + by_name(np_text(self->analysis, name),
		                                             ops->layer[row] == NP_HOST_PYTHON));
	enum np_idle_class class = (enum np_idle_class)(self->class_of[name] - 1);
	return class == NP_N_IDLE ? by_layer(self->analysis, row) : class;
}

/* ── queries ── */

static bool collect_gc(struct np_host_time *self)
{
	const struct np_host_ops *ops = &self->analysis->profile->host_ops;
	bool ok = true;
	for (size_t i = 0; ok && i < ops->n; i++) {
		if (self->main_tid == NP_NO_U32 && ops->layer[i] == NP_HOST_OP &&
		    class_of(self, i) == NP_IDLE_UNTRACED) /* ProfilerStep#N */
			self->main_tid = ops->tid[i];
		if (ops->layer[i] != NP_HOST_GC)
			continue;
		self->gc_row = self->gc_row == NP_NO_U32 ? (uint32_t)i : self->gc_row;
		ok = np_intervals_add(&self->gc, ops->start_ns[i],
		                      ops->start_ns[i] + ops->dur_ns[i]);
	}
	np_intervals_merge(&self->gc);
	return ok;
}

bool np_host_time_init(struct np_host_time *self, const struct np_analysis *analysis)
{
	*self = (struct np_host_time){
		.analysis = analysis, .main_tid = NP_NO_U32, .gc_row = NP_NO_U32};
	self->class_of = np_calloc(analysis->profile->strings.strings.n + 1, 1);
	return self->class_of && collect_gc(self);
}

void np_host_time_release(struct np_host_time *self)
{
	np_free(self->class_of);
	np_intervals_release(&self->gc);
	np_vec_release(&self->queries);
	np_vec_release(&self->parts);
}

bool np_host_part(struct np_host_time *self, uint32_t gap, enum np_idle_class class, np_ns ns,
                  uint32_t row)
{
	return ns <= 0 ||
	       np_vec_push(&self->parts,
	                   (struct np_host_part){
				   .ns = ns, .gap = gap, .row = row, .class = (uint8_t) class});
}

static bool push_query(struct np_host_time *self, np_ns start, np_ns end, uint32_t tid,
                       uint32_t gap, bool queued)
{
	return start >= end ||
	       np_vec_push(&self->queries, (struct np_host_query){.start = start,
	                                                          .end = end,
	                                                          .tid = tid,
	                                                          .gap = gap,
	                                                          .queued = queued});
}

bool np_host_ask(struct np_host_time *self, np_ns start, np_ns end, uint32_t tid, uint32_t gap,
                 bool queued)
{
	while (self->gc_at < self->gc.n && self->gc.v[self->gc_at].end <= start)
		self->gc_at++;
	for (size_t i = self->gc_at; i < self->gc.n && self->gc.v[i].start < end; i++) {
		np_ns from = self->gc.v[i].start > start ? self->gc.v[i].start : start;
		np_ns to = self->gc.v[i].end < end ? self->gc.v[i].end : end;
		if (to <= from)
			continue;
		if (!push_query(self, start, from, tid, gap, queued) ||
		    !np_host_part(self, gap, NP_IDLE_GC, to - from, self->gc_row))
			return false;
		start = to;
	}
	return push_query(self, start, end, tid, gap, queued);
}

/* ── answers ── */

/* A range that is open; `class` and `row` are the best of it and those around it. */
struct frame {
	np_ns end;
	uint32_t row;
	uint8_t class;
};

struct thread {
	uint32_t tid, query, last; /* first and last query that are not answered */
	np_ns now;                 /* up to here it is told */
	NP_VEC(struct frame) stack;
	np_ns ns[NP_N_IDLE], longest[NP_N_IDLE]; /* of the query being answered */
	uint32_t row[NP_N_IDLE];
};

struct pass {
	struct np_host_time *time;
	struct np_map thread_of;
	NP_VEC(struct thread) threads;
	NP_VEC(struct np_host_query) left; /* for the main thread */
	bool open_to_main;
	bool ok;
};

static void finish_query(struct pass *pass, struct thread *thread)
{
	struct np_host_time *time = pass->time;
	const struct np_host_query *query = &time->queries.v[thread->query];
	for (unsigned c = 0; pass->ok && c < NP_N_IDLE; c++) {
		if (thread->ns[c] == 0)
			continue;
		pass->ok = np_host_part(time, query->gap, (enum np_idle_class)c, thread->ns[c],
		                        thread->row[c]);
		thread->ns[c] = thread->longest[c] = 0;
		thread->row[c] = NP_NO_U32;
	}
	thread->query = query->next;
}

static void tell(struct pass *pass, struct thread *thread, np_ns from, np_ns to,
                 enum np_idle_class class, uint32_t row)
{
	const struct np_host_query *query = &pass->time->queries.v[thread->query];
	if (class == NP_IDLE_UNTRACED && query->queued)
		class = NP_IDLE_QUEUED;
	if (class == NP_IDLE_UNTRACED && pass->open_to_main &&
	    thread->tid != pass->time->main_tid) {
		struct np_host_query again = *query;
		again.start = from;
		again.end = to;
		again.tid = pass->time->main_tid;
		pass->ok = pass->ok && np_vec_push(&pass->left, again);
		return;
	}
	thread->ns[class] += to - from;
	if (to - from > thread->longest[class]) {
		thread->longest[class] = to - from;
		thread->row[class] = row;
	}
}

/* The thread was in `class` during [from, to). */
static void emit(struct pass *pass, struct thread *thread, np_ns from, np_ns to,
                 enum np_idle_class class, uint32_t row)
{
	while (from < to && thread->query != NP_NO_U32 && pass->ok) {
		const struct np_host_query *query = &pass->time->queries.v[thread->query];
		np_ns begin = query->start > from ? query->start : from;
		np_ns end = query->end < to ? query->end : to;
		if (begin < end)
			tell(pass, thread, begin, end, class, row);
		if (query->end > to)
			return;
		finish_query(pass, thread);
	}
}

/* Time goes on to `to`: ranges end. */
static void advance(struct pass *pass, struct thread *thread, np_ns to)
{
	while (thread->stack.n > 0) {
		const struct frame *top = &thread->stack.v[thread->stack.n - 1];
		np_ns end = top->end < to ? top->end : to;
		if (end > thread->now) {
			emit(pass, thread, thread->now, end, (enum np_idle_class)top->class,
			     top->row);
			thread->now = end;
		}
		if (top->end > to)
			return;
		thread->stack.n--;
	}
	if (to > thread->now)
		emit(pass, thread, thread->now, to, NP_IDLE_UNTRACED, NP_NO_U32);
	thread->now = to > thread->now ? to : thread->now;
}

static void enter(struct pass *pass, struct thread *thread, uint32_t row)
{
	const struct np_host_ops *ops = &pass->time->analysis->profile->host_ops;
	np_ns start = ops->start_ns[row];
	if (start + ops->dur_ns[row] <= pass->time->queries.v[thread->query].start)
		return; /* over before anyone asks */
	enum np_idle_class class = class_of(pass->time, row);
	advance(pass, thread, start);
	struct frame frame = {start + ops->dur_ns[row], row, (uint8_t) class};
	if (class == NP_IDLE_UNTRACED || ops->dur_ns[row] == 0)
		return;
	if (thread->stack.n > 0) {
		const struct frame *around = &thread->stack.v[thread->stack.n - 1];
		/* an Enqueue inside of an operator is that operator's */
		bool mere = ops->layer[row] == NP_HOST_QUEUE && around->class == frame.class;
		if (around->class < frame.class || mere) {
			frame.class = around->class;
			frame.row = around->row;
		}
	}
	pass->ok = pass->ok && np_vec_push(&thread->stack, frame);
}

/* ── passes ── */

static struct thread *thread_at(struct pass *pass, uint32_t tid, bool add)
{
	uint32_t at = np_map_get(&pass->thread_of, tid, NP_NO_U32);
	if (at == NP_NO_U32 && add) {
		struct thread thread = {
			.tid = tid, .query = NP_NO_U32, .last = NP_NO_U32, .now = INT64_MIN};
		at = (uint32_t)pass->threads.n;
		pass->ok = pass->ok && np_vec_push(&pass->threads, thread) &&
		           np_map_put(&pass->thread_of, tid, at);
		if (!pass->ok)
			return NULL;
	}
	return at == NP_NO_U32 ? NULL : &pass->threads.v[at];
}

/* Chain the queries of each thread. */
static void give_queries(struct pass *pass)
{
	struct np_host_time *time = pass->time;
	for (size_t q = 0; pass->ok && q < time->queries.n; q++) {
		struct np_host_query *query = &time->queries.v[q];
		struct thread *thread = thread_at(pass, query->tid, true);
		query->next = NP_NO_U32;
		if (!thread)
			return;
		if (thread->last == NP_NO_U32)
			thread->query = (uint32_t)q;
		else
			time->queries.v[thread->last].next = (uint32_t)q;
		thread->last = (uint32_t)q;
	}
}

static void run_pass(struct pass *pass)
{
	const struct np_host_ops *ops = &pass->time->analysis->profile->host_ops;
	uint32_t last_tid = NP_NO_U32;
	struct thread *thread = NULL;
	give_queries(pass);
	for (size_t i = 0; pass->ok && i < ops->n; i++) {
		if (ops->tid[i] != last_tid || i == 0) {
			thread = thread_at(pass, ops->tid[i], false);
			last_tid = ops->tid[i];
		}
		if (thread && thread->query != NP_NO_U32)
			enter(pass, thread, (uint32_t)i);
	}
	for (size_t t = 0; pass->ok && t < pass->threads.n; t++)
		advance(pass, &pass->threads.v[t], INT64_MAX);
	for (size_t t = 0; t < pass->threads.n; t++)
		np_vec_release(&pass->threads.v[t].stack);
	np_vec_release(&pass->threads);
	np_map_release(&pass->thread_of);
}

static int by_start(const void *a, const void *b)
{
	const struct np_host_query *x = a, *y = b;
	return (x->start > y->start) - (x->start < y->start);
}

bool np_host_answer(struct np_host_time *self)
{
	struct pass first = {.time = self, .open_to_main = self->main_tid != NP_NO_U32, .ok = true};
	np_map_init(&first.thread_of);
	run_pass(&first);
	self->queries.n = 0;
	bool ok = first.ok;
	if (ok && first.left.n > 0) {
		struct pass second = {.time = self, .ok = true};
		np_map_init(&second.thread_of);
		if (first.left.n > 1)
			qsort(first.left.v, first.left.n, sizeof *first.left.v, by_start);
		for (size_t i = 0; second.ok && i < first.left.n; i++)
			second.ok = np_vec_push(&self->queries, first.left.v[i]);
		if (second.ok)
			run_pass(&second);
		ok = second.ok;
		self->queries.n = 0;
	}
	np_vec_release(&first.left);
	return ok;
}
