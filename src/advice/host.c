#include "advice/host.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/group.h"

bool np_host_calls_add(struct np_host_calls *self, const struct np_host_ops *ops, uint32_t row)
{
	if (self->rows.n == 0 || ops->dur_ns[row] > ops->dur_ns[self->longest])
		self->longest = row;
	self->total = np_ns_sum(self->total, ops->dur_ns[row]);
	return np_vec_push(&self->rows, row);
}

void np_host_calls_release(struct np_host_calls *self)
{
	np_vec_release(&self->rows);
}

void np_host_calls_named(struct np_advice *self, enum np_host_layer layer, const char *const *names,
                         struct np_host_calls *out)
{
	const struct np_profile *profile = self->rank->profile;
	const struct np_host_ops *ops = &profile->host_ops;
	uint32_t ids[8];
	size_t n = 0;
	*out = (struct np_host_calls){.total = 0};
	for (; n < sizeof ids / sizeof *ids && names[n]; n++)
		ids[n] = np_intern_find(&profile->strings, np_str_of(names[n]));
	for (uint32_t i = 0; i < ops->n; i++) {
		if (ops->layer[i] != layer)
			continue;
		for (size_t k = 0; k < n; k++)
			if (ids[k] != NP_ID_NONE && ops->name[i] == ids[k] &&
			    !np_host_calls_add(out, ops, i))
				self->oom = true;
	}
}

unsigned np_capture_steps(const struct np_advice *self)
{
	const struct np_steps *steps = &self->rank->profile->steps;
	unsigned n = 0;
	for (size_t s = 0; s < steps->n; s++)
		n += steps->kernels[s] > 0;
	return n > 0 ? n : 1;
}

double np_free_us(const struct np_advice *self)
{
	np_ns sum = 0;
	for (size_t s = 0; s < self->rank->spans.n; s++)
		sum = np_ns_sum(sum, self->rank->spans.v[s].free);
	return np_per_step_us(self, sum);
}

/* From the first start to the last end of a kernel, without what any kernel covers. */
static bool idle_of(const struct np_analysis *rank, struct np_intervals *out)
{
	struct np_intervals busy = {0}, all = {0};
	bool ok = np_intervals_union(&rank->compute, &rank->comm, &busy);
	if (ok && busy.n > 0)
		ok = np_intervals_add(&all, busy.v[0].start, busy.v[busy.n - 1].end) &&
		     np_intervals_subtract(&all, &busy, out);
	np_intervals_release(&busy);
	np_intervals_release(&all);
	return ok;
}

void np_host_calls_worth(struct np_advice *self, const struct np_host_calls *calls,
                         struct np_problem_text *text)
{
	const struct np_host_ops *ops = &self->rank->profile->host_ops;
	struct np_intervals idle = {0}, when = {0}, both = {0};
	double steps = np_capture_steps(self);
	bool ok = idle_of(self->rank, &idle);
	for (size_t i = 0; ok && i < calls->rows.n; i++) {
		np_ns start = ops->start_ns[calls->rows.v[i]];
		ok = np_intervals_add(&when, start, start + ops->dur_ns[calls->rows.v[i]]);
	}
	if (ok) {
		np_intervals_merge(&when);
		ok = np_intervals_intersect(&idle, &when, &both);
	}
	text->count = calls->rows.n;
	text->total_us = (double)calls->total / 1e3 / steps;
	text->gain_us = (double)np_intervals_length(&both) / 1e3 / steps;
	np_intervals_release(&idle);
	np_intervals_release(&when);
	np_intervals_release(&both);
	self->oom |= !ok;
}

/* ── who made them ── */

static bool is_package(np_str frame)
{
	static const char *const parts[] = {"/site-packages/", "/dist-packages/", "<built-in",
	                                    "<frozen", "/lib/python3"};
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
		if (np_str_contains(frame, np_str_of(parts[i])))
			return true;
	return np_str_starts(frame, NP_STR("torch/")) || np_str_starts(frame, NP_STR("torch_npu/"));
}

static unsigned add_frames(np_str stack, unsigned most, bool packages, struct np_buf *out)
{
	unsigned n = 0;
	while (stack.len > 0 && n < most) {
		np_str frame = np_str_trim(np_str_cut(stack, ';', &stack));
		if (frame.len == 0 || (!packages && is_package(frame)))
			continue;
		np_buf_add_cstr(out, n++ ? "; " : "");
		np_buf_add_str(out, np_str_sub(frame, 0, 200));
	}
	return n;
}

void np_user_frames(np_str stack, unsigned most, struct np_buf *out)
{
	if (add_frames(stack, most, false, out) == 0)
		(void)add_frames(stack, most, true, out);
}

struct open {
	uint32_t row;
	np_ns end;
};

struct thread {
	NP_VEC(struct open) open; /* framework operators, the innermost last */
};

struct threads {
	struct np_map by_tid;
	NP_VEC(struct thread) of;
};

static struct thread *thread_of(struct threads *self, uint32_t tid)
{
	uint32_t at = np_map_get(&self->by_tid, tid, NP_NO_U32);
	if (at == NP_NO_U32) {
		at = (uint32_t)self->of.n;
		if (!np_vec_push(&self->of, (struct thread){.open = {0}}) ||
		    !np_map_put(&self->by_tid, tid, at))
			return NULL;
	}
	return &self->of.v[at];
}

/* For each call the framework operator around it, on the same thread. */
static bool find_parents(const struct np_host_ops *ops, const struct np_host_calls *calls,
                         uint32_t *parents)
{
	struct threads threads = {.of = {0}};
	size_t next = 0;
	bool ok = true;
	np_map_init(&threads.by_tid);
	for (uint32_t i = 0; ok && i < ops->n && next < calls->rows.n; i++) {
		bool asked = calls->rows.v[next] == i;
		if (!asked && ops->layer[i] != NP_HOST_OP)
			continue;
		struct thread *thread = thread_of(&threads, ops->tid[i]);
		if (!thread)
			ok = false;
		while (thread && thread->open.n > 0 &&
		       thread->open.v[thread->open.n - 1].end <= ops->start_ns[i])
			thread->open.n--;
		if (thread && asked)
			parents[next++] = thread->open.n > 0
			                          ? thread->open.v[thread->open.n - 1].row
			                          : NP_NO_U32;
		if (thread && ops->layer[i] == NP_HOST_OP)
			ok = np_vec_push(&thread->open,
			                 (struct open){i, ops->start_ns[i] + ops->dur_ns[i]});
	}
	for (size_t t = 0; threads.of.v && t < threads.of.n; t++)
		np_vec_release(&threads.of.v[t].open);
	np_vec_release(&threads.of);
	np_map_release(&threads.by_tid);
	return ok;
}

struct caller {
	uint32_t name;
	size_t n;
	np_ns total;
};

static int most_time(const void *a, const void *b)
{
	const struct caller *x = a, *y = b;
	if (x->total != y->total)
		return x->total > y->total ? -1 : 1;
	return (x->name > y->name) - (x->name < y->name);
}

static void tell_callers(const struct np_analysis *rank, const struct np_host_calls *calls,
                         const uint32_t *parents, struct np_finding *finding, bool *ok)
{
	enum { TOLD = 3 };
	const struct np_host_ops *ops = &rank->profile->host_ops;
	NP_VEC(struct caller) callers = {0};
	struct np_map by_name;
	np_map_init(&by_name);
	for (size_t i = 0; *ok && i < calls->rows.n; i++) {
		if (parents[i] == NP_NO_U32)
			continue;
		uint32_t name = ops->name[parents[i]];
		uint32_t at = np_map_get(&by_name, name, NP_NO_U32);
		if (at == NP_NO_U32) {
			at = (uint32_t)callers.n;
			*ok = np_vec_push(&callers, (struct caller){.name = name}) &&
			      np_map_put(&by_name, name, at);
		}
		if (!*ok || !callers.v)
			break;
		callers.v[at].n++;
		callers.v[at].total = np_ns_sum(callers.v[at].total, ops->dur_ns[calls->rows.v[i]]);
	}
	if (callers.n > 1)
		qsort(callers.v, callers.n, sizeof *callers.v, most_time);
	for (size_t i = 0; i < callers.n && i < TOLD; i++)
		np_finding_evidence(finding, NULL, NULL, NULL, "%zu of %zu in %.*s, %.1f us in all",
		                    callers.v[i].n, calls->rows.n,
		                    NP_FMT(np_text(rank, callers.v[i].name)),
		                    (double)callers.v[i].total / 1e3);
	np_vec_release(&callers);
	np_map_release(&by_name);
}

void np_host_calls_evidence(struct np_advice *self, const struct np_host_calls *calls,
                            struct np_finding *finding)
{
	const struct np_analysis *rank = self->rank;
	const struct np_host_ops *ops = &rank->profile->host_ops;
	if (calls->rows.n == 0)
		return;
	uint32_t *parents = np_realloc(NULL, calls->rows.n, sizeof *parents);
	struct np_buf frames = {0};
	bool ok = parents != NULL && find_parents(ops, calls, parents);
	if (ok)
		tell_callers(rank, calls, parents, finding, &ok);
	if (ok) {
		uint32_t stack = ops->stack[calls->longest];
		for (size_t i = 0; i < calls->rows.n && stack == NP_ID_NONE; i++)
			if (calls->rows.v[i] == calls->longest && parents[i] != NP_NO_U32)
				stack = ops->stack[parents[i]];
		if (stack != NP_ID_NONE && stack != 0)
			np_user_frames(np_text(rank, stack), 3, &frames);
		np_finding_evidence(finding, NULL, NULL, NULL,
		                    "longest: %.1f us, start %lld ns%s%.*s",
		                    (double)ops->dur_ns[calls->longest] / 1e3,
		                    (long long)ops->start_ns[calls->longest],
		                    frames.len ? "; called at " : "", NP_FMT(np_buf_str(&frames)));
	}
	self->oom |= !ok || frames.failed;
	np_buf_release(&frames);
	np_free(parents);
}
