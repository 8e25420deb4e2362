/*
 * The context that all analyses share: loaded once, derived once.
 *
 *   kernels of the device ─▶ class ─▶ compute and comm intervals
 *            └─▶ step ─▶ span [first start, last end) ─▶ busy and free time in it
 */
#include <stdlib.h>
#include <string.h>

#include "analysis/analysis.h"
#include "capture/lint.h"

enum {
	TABLES = NP_STEPS | NP_KERNELS | NP_KERNEL_SHAPES | NP_KERNEL_METRICS | NP_HOST_OPS |
	         NP_TASKS | NP_COMM | NP_COMM_SUMMARY | NP_STEP_TRACE | NP_COUNTERS,
};

/* The device with most kernels; a rank has one, a PROF_* may have several. */
static uint32_t main_device(const struct np_kernels *kernels)
{
	uint32_t best = NP_NO_U32, device = NP_NO_U32;
	size_t best_n = 0, n = 0;
	for (size_t i = 0; i < kernels->n; i++) { /* ordered by device */
		n = i > 0 && kernels->device[i] == device ? n + 1 : 1;
		device = kernels->device[i];
		if (n > best_n) {
			best_n = n;
			best = device;
		}
	}
	return best;
}

/* ── spans ── */

static bool new_span(struct np_analysis *self, int64_t id, uint32_t step_row)
{
	struct np_span span = {
		.id = id, .start = NP_NO_I64, .end = NP_NO_I64, .step_row = step_row};
	span.host_start = span.host_end = span.preparing = NP_NO_I64;
	if (step_row != NP_NO_U32) {
		span.host_start = self->profile->steps.host_start_ns[step_row];
		span.host_end = self->profile->steps.host_end_ns[step_row];
	}
	return np_vec_push(&self->spans, span);
}

static bool wants_step(const struct np_analysis *self, int64_t id)
{
	return !self->options->has_step || self->options->step == id;
}

static bool make_spans(struct np_analysis *self)
{
	const struct np_steps *steps = &self->profile->steps;
	for (size_t s = 0; s < steps->n; s++)
		if (steps->kernels[s] && wants_step(self, steps->id[s]) &&
		    !new_span(self, steps->id[s], (uint32_t)s))
			return false;
	if (self->spans.n == 0 && !self->options->has_step)
		return new_span(self, NP_NO_I64, NP_NO_U32);
	return true;
}

/* Span of each step by its row; the entry behind the last is for kernels of no step. */
static uint32_t *span_by_step(const struct np_analysis *self)
{
	size_t n = self->profile->steps.n;
	uint32_t *map = np_realloc(NULL, n + 1, sizeof *map);
	if (!map)
		return NULL;
	bool whole = self->spans.n == 1 && self->spans.v[0].step_row == NP_NO_U32;
	for (size_t s = 0; s <= n; s++)
		map[s] = whole ? 0 : NP_NO_U32;
	for (size_t i = 0; !whole && i < self->spans.n; i++)
		map[self->spans.v[i].step_row] = (uint32_t)i;
	return map;
}

static bool assign_kernels(struct np_analysis *self)
{
	const struct np_kernels *kernels = &self->profile->kernels;
	uint32_t *map = span_by_step(self);
	bool ok = map != NULL;
	for (size_t i = 0; ok && i < kernels->n; i++) {
		self->span_of[i] = NP_NO_U32;
		if (kernels->device[i] != self->device || self->class[i] == NP_CLASS_SYNC)
			continue;
		np_ns start = kernels->start_ns[i], end = start + kernels->dur_ns[i];
		bool comm = self->class[i] == NP_CLASS_COMM;
		ok = np_intervals_add(comm ? &self->comm : &self->compute, start, end);
		uint32_t s = map[kernels->step[i] == NP_NO_U32 ? self->profile->steps.n
		                                               : kernels->step[i]];
		self->span_of[i] = s;
		if (s == NP_NO_U32)
			continue;
		struct np_span *span = &self->spans.v[s];
		if (span->start == NP_NO_I64 || start < span->start)
			span->start = start;
		if (end > span->end)
			span->end = end;
		span->kernels++;
		span->comm_kernels += comm;
		self->rows[self->n_rows++] = (uint32_t)i;
	}
	np_free(map);
	np_intervals_merge(&self->compute);
	np_intervals_merge(&self->comm);
	return ok;
}

struct start_key {
	np_ns start;
	uint32_t span;
};

static int by_start(const void *a, const void *b)
{
	const struct start_key *x = a, *y = b;
	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return (x->span > y->span) - (x->span < y->span);
}

/* Drop spans without kernels, order them in time, and cut them where they overlap. */
static bool settle_spans(struct np_analysis *self)
{
	size_t n = self->spans.n, kept = 0;
	struct start_key *keys = np_realloc(NULL, n, sizeof *keys);
	uint32_t *moved = np_realloc(NULL, n, sizeof *moved);
	struct np_span *ordered = np_realloc(NULL, n, sizeof *ordered);
	bool ok = keys && moved && ordered;
	for (size_t s = 0; ok && s < n; s++)
		if (self->spans.v[s].kernels)
			keys[kept++] = (struct start_key){self->spans.v[s].start, (uint32_t)s};
	if (ok && kept)
		qsort(keys, kept, sizeof *keys, by_start);
	for (size_t k = 0; ok && k < kept; k++) {
		ordered[k] = self->spans.v[keys[k].span];
		moved[keys[k].span] = (uint32_t)k;
		if (k > 0 && ordered[k - 1].end > ordered[k].start)
			ordered[k - 1].end = ordered[k].start;
	}
	for (size_t i = 0; ok && i < self->n_rows; i++)
		self->span_of[self->rows[i]] = moved[self->span_of[self->rows[i]]];
	if (ok) {
		memcpy(self->spans.v, ordered, kept * sizeof *ordered);
		self->spans.n = kept;
	}
	np_free(keys);
	np_free(moved);
	np_free(ordered);
	return ok;
}

/* ── times within a span ── */

/* Of a merged set, within [start, end). By search: a capture may have 100,000 steps. */
static np_ns length_within(const struct np_intervals *set, np_ns start, np_ns end)
{
	size_t low = 0, high = set->n;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (set->v[middle].end <= start)
			low = middle + 1;
		else
			high = middle;
	}
	np_ns sum = 0;
	for (size_t i = low; i < set->n && set->v[i].start < end; i++) {
		np_ns from = set->v[i].start > start ? set->v[i].start : start;
		sum += (set->v[i].end < end ? set->v[i].end : end) - from;
	}
	return sum;
}

static bool sum_spans(struct np_analysis *self)
{
	struct np_intervals exposed = {0};
	bool ok = np_intervals_subtract(&self->comm, &self->compute, &exposed);
	for (size_t s = 0; ok && s < self->spans.n; s++) {
		struct np_span *span = &self->spans.v[s];
		span->computing = length_within(&self->compute, span->start, span->end);
		span->comm = length_within(&self->comm, span->start, span->end);
		span->comm_not_overlapped = length_within(&exposed, span->start, span->end);
		span->overlapped = span->comm - span->comm_not_overlapped;
		span->free = span->end - span->start - span->computing - span->comm_not_overlapped;
		if (span->host_start != NP_NO_I64)
			span->preparing = span->start - span->host_start;
		self->total_ns += span->end - span->start;
	}
	np_intervals_release(&exposed);
	return ok;
}

/* ── the whole ── */

static enum np_status check_content(const struct np_analysis *self, struct np_err *err)
{
	const struct np_capture *capture = self->capture;
	if (self->profile->kernels.n == 0)
		return np_err_set(
			err, NP_E_EMPTY, capture->path,
			"no kernels in this capture: kernel_details.csv, op_summary or a database "
			"with device tasks is needed (npuprof check tells what is missing)");
	if (self->n_rows == 0 && self->options->has_step)
		return np_err_set(err, NP_E_NOTFOUND, capture->path, "step %lld has no kernels",
		                  (long long)self->options->step);
	if (self->n_rows == 0)
		return np_err_set(err, NP_E_EMPTY, capture->path, "no kernel lies in a step");
	return NP_OK;
}

enum np_status np_analysis_prepare(struct np_analysis *self, const struct np_capture *capture,
                                   const struct np_analyze_options *options,
                                   struct np_report *report, unsigned extra_tables,
                                   struct np_err *err)
{
	*self = (struct np_analysis){.capture = capture, .options = options, .report = report};
	self->rules = options->rules ? options->rules : &np_default_rules;
	NP_TRY(np_capture_load(capture, TABLES | extra_tables, options->threads, &self->profile,
	                       err));
	np_lint_profile(self->profile, report); /* no figure without what it leaves out */
	size_t n = self->profile->kernels.n;
	self->device = main_device(&self->profile->kernels);
	self->rows = np_realloc(NULL, n, sizeof *self->rows);
	self->class = np_realloc(NULL, n, sizeof *self->class);
	self->span_of = np_realloc(NULL, n, sizeof *self->span_of);
	if (!self->rows || !self->class || !self->span_of ||
	    !np_classify_all(self->profile, self->class) || !make_spans(self) ||
	    !assign_kernels(self))
		return np_err_nomem(err);
	NP_TRY(check_content(self, err));
	if (!settle_spans(self) || !sum_spans(self))
		return np_err_nomem(err);
	return NP_OK;
}

void np_analysis_release(struct np_analysis *self)
{
	np_profile_free(self->profile);
	np_free(self->rows);
	np_free(self->class);
	np_free(self->span_of);
	np_free(self->launch);
	np_free(self->launches);
	np_vec_release(&self->spans);
	np_intervals_release(&self->compute);
	np_intervals_release(&self->comm);
	memset(self, 0, sizeof *self);
}

const char *np_kernel_source(const struct np_analysis *self)
{
	static const enum np_role roles[] = {NP_ROLE_KERNELS, NP_ROLE_OP_SUMMARY,
	                                     NP_ROLE_PROFILER_DB, NP_ROLE_MSPROF_DB,
	                                     NP_ROLE_TASK_TIME};
	for (size_t i = 0; i < sizeof roles / sizeof *roles; i++) {
		const struct np_file *file = np_capture_file(self->capture, roles[i]);
		if (file)
			return file->path;
	}
	return self->capture->path;
}
