#include "analysis/idle_gaps.h"

#include <string.h>

/* What a walk over the kernels in order of start needs; all cursors only go on. */
struct finder {
	const struct np_analysis *analysis;
	struct np_gaps *out;
	struct np_host_time time;
	struct np_intervals copies;
	size_t copy_at, task_at, span_at;
	struct np_map wait_of; /* stream → the last wait task that began before now */
	np_ns slack;
	np_ns told; /* gaps up to here are listed: host times of steps may overlap */
	bool ok;
};

/* ── tasks that are no work ── */

static bool is_wait(np_str type)
{
	return np_str_icontains(type, NP_STR("wait"));
}

static bool is_copy(np_str text)
{
	return np_str_icontains(text, NP_STR("memcpy")) ||
	       np_str_icontains(text, NP_STR("pcie_dma")) ||
	       np_str_icontains(text, NP_STR("memset"));
}

static bool on_device(const struct finder *self, size_t task)
{
	uint32_t device = self->analysis->profile->tasks.device[task];
	return device == self->analysis->device || device == NP_NO_U32 ||
	       self->analysis->device == NP_NO_U32;
}

/* Verdicts on the few distinct texts of a column, each looked at once. */
static uint8_t *judge_strings(const struct np_profile *profile)
{
	size_t n = profile->strings.strings.n;
	uint8_t *kinds = np_calloc(n + 1, 1); /* 1: wait, 2: copy, 4: looked at */
	for (size_t t = 0; kinds && t < profile->tasks.n; t++) {
		const uint32_t ids[] = {profile->tasks.type[t], profile->tasks.name[t]};
		for (int i = 0; i < 2; i++) {
			if (ids[i] >= n || kinds[ids[i]])
				continue;
			np_str text = np_intern_get(&profile->strings, ids[i]);
			kinds[ids[i]] =
				(uint8_t)(4 | (is_wait(text) ? 1 : 0) | (is_copy(text) ? 2 : 0));
		}
	}
	return kinds;
}

static uint8_t kind_of(const uint8_t *kinds, size_t n, uint32_t type, uint32_t name)
{
	return (uint8_t)((type < n ? kinds[type] : 0) | (name < n ? kinds[name] & 2 : 0));
}

static bool collect_copies(struct finder *self, const uint8_t *kinds)
{
	const struct np_profile *profile = self->analysis->profile;
	const struct np_tasks *tasks = &profile->tasks;
	size_t n = profile->strings.strings.n;
	bool ok = true;
	for (size_t t = 0; ok && t < tasks->n; t++)
		if (!tasks->compute[t] && on_device(self, t) &&
		    (kind_of(kinds, n, tasks->type[t], tasks->name[t]) & 2))
			ok = np_intervals_add(&self->copies, tasks->start_ns[t],
			                      tasks->start_ns[t] + tasks->dur_ns[t]);
	np_intervals_merge(&self->copies);
	return ok;
}

/* The last wait on `stream` that began before `ns`: row of the task, or NP_NO_U32. */
static uint32_t wait_before(struct finder *self, const uint8_t *kinds, uint32_t stream, np_ns ns)
{
	const struct np_profile *profile = self->analysis->profile;
	const struct np_tasks *tasks = &profile->tasks;
	size_t n = profile->strings.strings.n;
	for (; self->task_at < tasks->n && tasks->start_ns[self->task_at] < ns; self->task_at++) {
		size_t t = self->task_at;
		if (on_device(self, t) && tasks->type[t] < n && (kinds[tasks->type[t]] & 1) &&
		    !np_map_put(&self->wait_of, tasks->stream[t], (uint32_t)t))
			self->ok = false;
	}
	return np_map_get(&self->wait_of, stream, NP_NO_U32);
}

/* ── the parts of one gap ── */

static void part(struct finder *self, enum np_idle_class class, np_ns ns)
{
	self->ok = self->ok &&
	           np_host_part(&self->time, (uint32_t)self->out->v.n, class, ns, NP_NO_U32);
}

/* [from, to): launched, not started. Copies first, then what its stream waited for. */
static void part_issued(struct finder *self, const uint8_t *kinds, np_ns from, np_ns to,
                        uint32_t stream)
{
	const struct np_tasks *tasks = &self->analysis->profile->tasks;
	uint32_t wait = wait_before(self, kinds, stream, to);
	np_ns waited = from, copied = 0, waiting = 0;
	if (wait != NP_NO_U32)
		waited = tasks->start_ns[wait] + tasks->dur_ns[wait];
	if (waited > to - self->slack && waited > from)
		waited = to;
	waited = waited < from ? from : waited;
	waiting = waited - from;
	const struct np_intervals *copies = &self->copies;
	while (self->copy_at < copies->n && copies->v[self->copy_at].end <= from)
		self->copy_at++;
	for (size_t c = self->copy_at; c < copies->n && copies->v[c].start < to; c++) {
		np_ns begin = copies->v[c].start > from ? copies->v[c].start : from;
		np_ns end = copies->v[c].end < to ? copies->v[c].end : to;
		copied += end - begin;
		if (begin < waited)
			waiting -= (end < waited ? end : waited) - begin;
	}
	part(self, NP_IDLE_COPY, copied);
	part(self, NP_IDLE_DEPENDENCY, waiting);
	part(self, NP_IDLE_LATENCY, to - from - copied - waiting);
}

/* The host's part [from, to): the producer until it had enqueued, then the consumer. */
static void part_host(struct finder *self, const struct np_launch *launch, np_ns from, np_ns to)
{
	const struct np_host_ops *ops = &self->analysis->profile->host_ops;
	uint32_t gap = (uint32_t)self->out->v.n;
	if (launch->enqueue != NP_NO_U32) {
		uint32_t row = launch->enqueue;
		np_ns queued = ops->start_ns[row] + ops->dur_ns[row];
		queued = queued < from ? from : queued > to ? to : queued;
		self->ok = self->ok &&
		           np_host_ask(&self->time, from, queued, ops->tid[row], gap, false);
		from = queued;
	}
	self->ok = self->ok && np_host_ask(&self->time, from, to, launch->tid, gap,
	                                   launch->enqueue != NP_NO_U32);
}

static np_ns clamp(np_ns ns, np_ns low, np_ns high)
{
	return ns < low ? low : ns > high ? high : ns;
}

static void add_gap(struct finder *self, const uint8_t *kinds, struct np_gap gap)
{
	const struct np_launch *launch = NULL;
	if (gap.kernel != NP_NO_U32)
		launch = &self->analysis->launches[gap.kernel];
	gap.start = gap.start < self->told ? self->told : gap.start;
	if (gap.start >= gap.end)
		return;
	self->told = gap.end;
	gap.row = NP_NO_U32;
	if (gap.kind == NP_GAP_TAIL && self->analysis->profile->host_ops.n == 0) {
		part(self, NP_IDLE_NOT_COLLECTED, gap.end - gap.start);
	} else if (gap.kind == NP_GAP_TAIL) {
		self->ok = self->ok &&
		           np_host_ask(&self->time, gap.start, gap.end, self->time.main_tid,
		                       (uint32_t)self->out->v.n, false);
	} else if (gap.kind == NP_GAP_INTERNAL && self->analysis->span_of[gap.kernel] != gap.span &&
	           self->analysis->span_of[gap.kernel] != NP_NO_U32) {
		part(self, NP_IDLE_BETWEEN, gap.end - gap.start);
	} else if (launch->how == NP_LAUNCH_NONE) {
		part(self, NP_IDLE_NOT_COLLECTED, gap.end - gap.start);
	} else {
		np_ns h0 = clamp(launch->start, gap.start, gap.end);
		np_ns h1 = clamp(launch->end, h0, gap.end);
		part_host(self, launch, gap.start, h0);
		part(self, NP_IDLE_LAUNCH, h1 - h0);
		if (h1 < gap.end)
			part_issued(self, kinds, h1, gap.end, launch->stream);
	}
	self->ok = self->ok && np_vec_push(&self->out->v, gap);
}

/* ── the gaps ── */

static void tail_of(struct finder *self, const uint8_t *kinds, size_t s, np_ns next)
{
	const struct np_span *span = &self->analysis->spans.v[s];
	np_ns end = span->host_end;
	if (end == NP_NO_I64)
		return;
	if (end > next)
		end = next;
	if (end > span->end)
		add_gap(self, kinds,
		        (struct np_gap){.start = span->end,
		                        .end = end,
		                        .kernel = NP_NO_U32,
		                        .span = (uint32_t)s,
		                        .kind = NP_GAP_TAIL});
}

/*
 * Nothing ran in [busy, start); kernel row k begins at start. Spans begin and end
 * with kernels, so the gap lies within one, or in none: then it is the tail of the
 * span before it and the preparation of the one that begins at its end.
 */
static void see_gap(struct finder *self, const uint8_t *kinds, np_ns busy, np_ns start, uint32_t k)
{
	const struct np_analysis *analysis = self->analysis;
	size_t n = analysis->spans.n;
	while (self->span_at < n && analysis->spans.v[self->span_at].end <= busy) {
		if (analysis->spans.v[self->span_at].end == busy)
			tail_of(self, kinds, self->span_at, start);
		self->span_at++;
	}
	if (self->span_at >= n)
		return;
	const struct np_span *span = &analysis->spans.v[self->span_at];
	struct np_gap gap = {.end = start, .kernel = k, .span = (uint32_t)self->span_at};
	if (span->start <= busy) {
		gap.start = busy;
		gap.kind = NP_GAP_INTERNAL;
	} else if (span->start == start && span->host_start != NP_NO_I64) {
		gap.start = span->host_start > busy ? span->host_start : busy;
		gap.kind = NP_GAP_PREPARING;
	} else {
		return;
	}
	add_gap(self, kinds, gap);
}

static void walk(struct finder *self, const uint8_t *kinds)
{
	const struct np_analysis *analysis = self->analysis;
	const struct np_kernels *kernels = &analysis->profile->kernels;
	np_ns busy = 0;
	for (size_t k = 0; self->ok && k < kernels->n; k++) {
		if (kernels->device[k] != analysis->device || analysis->class[k] == NP_CLASS_SYNC)
			continue;
		np_ns start = kernels->start_ns[k], end = start + kernels->dur_ns[k];
		if (start > busy)
			see_gap(self, kinds, busy, start, (uint32_t)k);
		busy = end > busy ? end : busy;
	}
	for (; self->ok && self->span_at < analysis->spans.n; self->span_at++)
		if (analysis->spans.v[self->span_at].end == busy)
			tail_of(self, kinds, self->span_at, INT64_MAX);
}

/* ── parts by gap ── */

/* The parts came by thread, or in order where no thread was asked: put those of a gap
 * together (a counting sort). Takes over parts. */
static bool order_parts(struct np_gaps *self, struct np_host_part **parts, size_t n)
{
	bool sorted = true;
	uint32_t at = 0;
	for (size_t i = 0; i < n; i++) {
		self->v.v[(*parts)[i].gap].n_parts++;
		sorted = sorted && (i == 0 || (*parts)[i - 1].gap <= (*parts)[i].gap);
	}
	for (size_t g = 0; g < self->v.n; g++) {
		self->v.v[g].part = at;
		at += self->v.v[g].n_parts;
		if (!sorted)
			self->v.v[g].n_parts = 0;
	}
	if (sorted) {
		self->parts = *parts;
		*parts = NULL;
		return true;
	}
	self->parts = np_realloc(NULL, n, sizeof *self->parts);
	for (size_t i = 0; self->parts && i < n; i++) {
		struct np_gap *gap = &self->v.v[(*parts)[i].gap];
		self->parts[gap->part + gap->n_parts++] = (*parts)[i];
	}
	return self->parts != NULL;
}

/* One part per class, in order of class: an insertion sort, since they are few. `row` is
 * that of the longest piece, so pieces keep their length in `longest` until all are joined. */
static void join_parts(struct np_gap *gap, struct np_host_part *parts)
{
	struct np_host_part *own = parts + gap->part;
	np_ns longest[NP_N_IDLE];
	uint32_t kept = 0;
	for (uint32_t i = 0; i < gap->n_parts; i++) {
		struct np_host_part part = own[i];
		uint32_t to = kept;
		while (to > 0 && own[to - 1].class > part.class)
			to--;
		if (to > 0 && own[to - 1].class == part.class) {
			own[to - 1].ns += part.ns;
			if (part.ns <= longest[part.class])
				continue;
			longest[part.class] = part.ns;
			own[to - 1].row = part.row;
			continue;
		}
		longest[part.class] = part.ns;
		memmove(own + to + 1, own + to, (kept - to) * sizeof *own);
		own[to] = part;
		kept++;
	}
	gap->n_parts = kept;
	for (uint32_t i = 0; i < kept; i++) {
		if (own[i].ns <= gap->largest_ns)
			continue;
		gap->largest_ns = own[i].ns;
		gap->class = own[i].class;
		gap->row = own[i].row;
	}
}

bool np_gaps_find(const struct np_analysis *analysis, struct np_gaps *out)
{
	struct finder self = {.analysis = analysis, .out = out, .ok = true};
	self.slack = (np_ns)(analysis->rules->dependency_slack_us * 1000);
	*out = (struct np_gaps){.parts = NULL};
	np_map_init(&self.wait_of);
	uint8_t *kinds = judge_strings(analysis->profile);
	self.ok = np_host_time_init(&self.time, analysis) && kinds != NULL &&
	          collect_copies(&self, kinds);
	if (self.ok)
		walk(&self, kinds);
	self.ok = self.ok && np_host_answer(&self.time) &&
	          order_parts(out, &self.time.parts.v, self.time.parts.n);
	for (size_t g = 0; self.ok && g < out->v.n; g++)
		join_parts(&out->v.v[g], out->parts);
	np_host_time_release(&self.time);
	np_intervals_release(&self.copies);
	np_map_release(&self.wait_of);
	np_free(kinds);
	return self.ok;
}

void np_gaps_release(struct np_gaps *self)
{
	np_vec_release(&self->v);
	np_free(self->parts);
	memset(self, 0, sizeof *self);
}
