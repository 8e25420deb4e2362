#include "synth/model.h"

#include <stdio.h>

/* ── names ── */

/* Names that stand in for every fourth kernel's, by fault. */
static const char *const formula_names[] = {"=HYPERLINK(\"http://example.invalid\",\"aclnnAdd\")",
                                            "+aclnnMatmul_MatMulV3", "-2+3", "@SUM(A1:A9)"};
static const char *const hostile_names[] = {
	"aclnnMatmul_\"quoted\", with comma", "aclnnAdd_line\nbreak",
	"aclnnCast_\x1b[31mred\x1b[0m",       "<script>alert(1)</script>",
	"aclnnMul_'); DROP TABLE TASK;--",    "$(touch owned)`id`\\x"};
static const char *const broken_names[] = {"aclnnMatmul_\xff\xfe_MatMulV3", "aclnnAdd_\xc3",
                                           "aclnnCast_\xed\xa0\x80_Cast"};

#define PICK(names, n) (names)[(n) % (sizeof(names) / sizeof *(names))]

const char *np_synth_item_name(const struct np_synth_run *run, const struct np_synth_item *item,
                               char scratch[64])
{
	if (item->kind == NP_ITEM_COPY)
		return "MEMCPY_ASYNC";
	if (item->kind == NP_ITEM_COMM) {
		uint64_t hash = run->plan->groups[item->group].hash;
		(void)snprintf(scratch, 64, "hcom_%s__%03u_%u_1", np_synth_colls[item->coll].op,
		               (unsigned)(hash % 1000), item->index);
		return scratch;
	}
	uint32_t n = item->task / 4;
	if (item->task % 4 == 1) {
		if (np_synth_has(run, NP_SYNTH_FORMULA_NAMES))
			return PICK(formula_names, n);
		if (np_synth_has(run, NP_SYNTH_HOSTILE_NAMES))
			return PICK(hostile_names, n);
		if (np_synth_has(run, NP_SYNTH_BAD_UTF8))
			return PICK(broken_names, n);
	}
	return np_synth_ops[item->op].name;
}

const char *np_synth_comm_type(const struct np_synth_item *item, char scratch[32])
{
	(void)snprintf(scratch, 32, "hcom_%s_", np_synth_colls[item->coll].op);
	return scratch;
}

const char *np_synth_outer_op(const struct np_synth_item *item)
{
	if (item->kind == NP_ITEM_COMM)
		return np_synth_colls[item->coll].torch;
	if (item->kind == NP_ITEM_COPY)
		return item->op ? "aten::item" : "aten::to";
	return np_synth_ops[item->op].aten;
}

const char *np_synth_inner_op(const struct np_synth_item *item)
{
	if (item->kind == NP_ITEM_COMM)
		return np_synth_colls[item->coll].hccl;
	if (item->kind == NP_ITEM_COPY)
		return item->op ? "aten::_local_scalar_dense" : "aten::copy_";
	return np_synth_ops[item->op].acl;
}

/* ── order and lanes ── */

/* Kernels are in order among themselves, and so are collectives: merge the two. */
static bool merge_order(struct np_synth_run *self)
{
	size_t n = self->items.n, i = 0;
	size_t j = np_synth_has(self, NP_SYNTH_NO_COMM_TABLES) ? n : 0;
	const struct np_synth_item *v = self->items.v;
	if (!np_vec_reserve(&self->order, n))
		return false;
	for (;;) {
		while (i < n && v[i].kind != NP_ITEM_KERNEL)
			i++;
		while (j < n && v[j].kind != NP_ITEM_COMM)
			j++;
		if (i == n && j == n)
			return true;
		bool kernel = j == n || (i < n && v[i].start_ns <= v[j].start_ns);
		self->order.v[self->order.n++] = (uint32_t)(kernel ? i++ : j++);
	}
}

static bool span(struct np_synth_run *self, enum np_synth_lane lane, np_ns start, np_ns end)
{
	struct np_synth_span one = {lane, start, end};
	return end <= start || np_vec_push(&self->spans, one);
}

/* Computing and Communication: the intervals themselves, none touches another. */
static bool lane_of(struct np_synth_run *self, enum np_synth_item_kind kind,
                    enum np_synth_lane lane)
{
	for (size_t i = 0; i < self->order.n; i++) {
		const struct np_synth_item *item = &self->items.v[self->order.v[i]];
		if (item->kind == kind &&
		    !span(self, lane, item->start_ns, item->start_ns + item->dur_ns))
			return false;
	}
	return true;
}

/* What of [start, end) no compute interval covers; *k is the first that may. */
static bool uncovered(struct np_synth_run *self, np_ns start, np_ns end, size_t n_compute,
                      size_t *k)
{
	while (*k < n_compute && self->spans.v[*k].end_ns <= start)
		(*k)++;
	for (size_t i = *k; i < n_compute && self->spans.v[i].start_ns < end; i++) {
		np_ns from = self->spans.v[i].start_ns, to = self->spans.v[i].end_ns;
		if (!span(self, NP_LANE_NOT_OVERLAPPED, start, from))
			return false;
		start = to > start ? to : start;
	}
	return span(self, NP_LANE_NOT_OVERLAPPED, start, end);
}

/* Gaps between everything; the copies at both ends extend the range (§4.4). */
static bool lane_free(struct np_synth_run *self)
{
	np_ns at = INT64_MAX, last = INT64_MIN;
	for (size_t i = 0; i < self->items.n; i++) {
		const struct np_synth_item *item = &self->items.v[i];
		if (item->kind != NP_ITEM_COPY)
			continue;
		at = item->start_ns < at ? item->start_ns : at;
		last = item->start_ns + item->dur_ns > last ? item->start_ns + item->dur_ns : last;
	}
	for (size_t i = 0; i < self->order.n; i++) {
		const struct np_synth_item *item = &self->items.v[self->order.v[i]];
		if (!span(self, NP_LANE_FREE, at, item->start_ns))
			return false;
		np_ns end = item->start_ns + item->dur_ns;
		at = end > at || at == INT64_MAX ? end : at;
	}
	return span(self, NP_LANE_FREE, at, last);
}

static bool make_lanes(struct np_synth_run *self)
{
	if (!lane_of(self, NP_ITEM_KERNEL, NP_LANE_COMPUTING))
		return false;
	size_t n_compute = self->spans.n, k = 0;
	if (!lane_of(self, NP_ITEM_COMM, NP_LANE_COMMUNICATION))
		return false;
	size_t n_comm = self->spans.n;
	for (size_t i = n_compute; i < n_comm; i++)
		if (!uncovered(self, self->spans.v[i].start_ns, self->spans.v[i].end_ns, n_compute,
		               &k))
			return false;
	return lane_free(self);
}

/* ── steps ── */

/* The window of a step: its first kernel or collective, to the host's end. The
 * smallest correlation id with device work is the first one issued (§4.3). */
static void make_windows(struct np_synth_run *self)
{
	for (size_t i = 0; i < self->items.n; i++) {
		const struct np_synth_item *item = &self->items.v[i];
		if (item->step < 0 || item->kind == NP_ITEM_COPY ||
		    (item->kind == NP_ITEM_COMM && self->n_comms == 0))
			continue;
		struct np_synth_step *step = &self->steps[item->step];
		if (!step->device) {
			step->device = true;
			step->start_ns = item->start_ns;
			step->preparing_ns = item->start_ns - step->host_start_ns;
			step->end_ns = step->host_end_ns;
		}
		step->kernels += item->kind == NP_ITEM_KERNEL;
		step->collectives += item->kind == NP_ITEM_COMM;
		if (item->kind == NP_ITEM_COMM && item->coll == NP_COLL_RECEIVE)
			step->bubble_ns += item->dur_ns;
	}
}

struct extent {
	np_ns first, last;
};

static void extend(struct extent *extent, const struct np_synth_span *span)
{
	if (extent->last == 0 || span->start_ns < extent->first)
		extent->first = span->start_ns;
	if (span->end_ns > extent->last)
		extent->last = span->end_ns;
}

/* Both definitions of free and stage, each as its file has it. */
static void sum_lanes(struct np_synth_run *self, struct np_synth_step *step, size_t at[4],
                      const size_t end[4])
{
	struct extent csv = {0, 0}, work = {0, 0};
	np_ns sums[4] = {0};
	for (int lane = 0; lane < 4; lane++) {
		for (; at[lane] < end[lane]; at[lane]++) {
			const struct np_synth_span *span = &self->spans.v[at[lane]];
			if (span->start_ns < step->start_ns)
				continue;
			if (span->start_ns >= step->end_ns)
				break;
			sums[lane] += span->end_ns - span->start_ns;
			extend(&csv, span);
			if (lane <= NP_LANE_COMMUNICATION)
				extend(&work, span);
		}
	}
	step->computing_ns = sums[NP_LANE_COMPUTING];
	step->communication_ns = sums[NP_LANE_COMMUNICATION];
	step->not_overlapped_ns = sums[NP_LANE_NOT_OVERLAPPED];
	step->free_csv_ns = sums[NP_LANE_FREE];
	step->stage_csv_ns = csv.last - csv.first - step->bubble_ns;
	step->free_ns = work.last - work.first - step->computing_ns - step->not_overlapped_ns;
	step->stage_ns = work.last - work.first - step->bubble_ns;
}

enum np_status np_synth_run_derive(struct np_synth_run *self, struct np_err *err)
{
	if (np_synth_has(self, NP_SYNTH_NO_COMM_TABLES))
		self->n_comms = 0;
	if (np_synth_has(self, NP_SYNTH_HOST_ONLY)) {
		self->n_kernels = self->n_comms = 0;
		return NP_OK;
	}
	if (!merge_order(self) || !make_lanes(self))
		return np_err_nomem(err);
	make_windows(self);
	size_t at[4] = {0}, end[4] = {0};
	for (size_t i = 0, lane = 0; lane < 4; lane++) {
		at[lane] = i;
		while (i < self->spans.n && self->spans.v[i].lane == lane)
			i++;
		end[lane] = i;
	}
	for (uint32_t s = 0; s < self->plan->options.steps; s++)
		if (self->steps[s].device)
			sum_lanes(self, &self->steps[s], at, end);
	return NP_OK;
}
