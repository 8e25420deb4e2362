/*
 * Layer 3a: every nanosecond of Free has a class (idle.h), and the gaps that cost most.
 */
#include <stdlib.h>

#include "analysis/idle_gaps.h"
#include "analysis/select.h"
#include "report/lang.h"

static const struct {
	const char *name, *what, *advice;
} classes[NP_N_IDLE] = {
#define X(id, name, what, advice) [NP_IDLE_##id] = {name, what, advice},
	NP_IDLE_MAP(X)
#undef X
};

const char *np_idle_name(enum np_idle_class class)
{
	return classes[class].name;
}

const char *np_idle_what(enum np_idle_class class)
{
	return classes[class].what;
}

const char *np_idle_advice(enum np_idle_class class)
{
	return classes[class].advice;
}

/* ── texts ── */

static np_str kernel_name(const struct np_analysis *self, const struct np_gap *gap)
{
	return gap->kernel == NP_NO_U32 ? (np_str){NULL, 0}
	                                : np_text(self, self->profile->kernels.name[gap->kernel]);
}

/* The operator in which row `row` lies on its thread, within a bounded look back; or `row`. */
static uint32_t around(const struct np_analysis *self, uint32_t row)
{
	enum { LOOK_BACK = 2000 };
	const struct np_host_ops *ops = &self->profile->host_ops;
	np_ns start = ops->start_ns[row];
	for (uint32_t i = row, seen = 0; i-- > 0 && seen < LOOK_BACK; seen++)
		if (ops->layer[i] == NP_HOST_OP && ops->tid[i] == ops->tid[row] &&
		    ops->start_ns[i] + ops->dur_ns[i] > start &&
		    !np_str_starts(np_text(self, ops->name[i]), NP_STR("ProfilerStep#")))
			return i;
	return row;
}

/* The call on the host that ended the gap: the operator that enqueued T, and the launch. */
static void ended_by(struct np_table *table, const struct np_analysis *self,
                     const struct np_gap *gap)
{
	const struct np_launch *launch =
		gap->kernel == NP_NO_U32 ? NULL : &self->launches[gap->kernel];
	const struct np_host_ops *ops = &self->profile->host_ops;
	if (!launch || launch->how == NP_LAUNCH_NONE) {
		np_cell_na(table);
		return;
	}
	uint32_t call = launch->op != NP_NO_U32 ? launch->op : launch->dequeue;
	uint32_t ask = launch->enqueue != NP_NO_U32 ? launch->enqueue : call;
	if (ask == NP_NO_U32) {
		np_cell_na(table);
		return;
	}
	np_str asked = np_text(self, ops->name[around(self, ask)]), name = asked;
	if (call != NP_NO_U32)
		name = np_text(self, ops->name[call]);
	if (np_str_eq(asked, name))
		np_cell_text(table, asked);
	else
		np_cell_printf(table, "%.*s > %.*s", NP_FMT(asked), NP_FMT(name));
}

static void cell_step(struct np_table *table, const struct np_analysis *self, uint32_t span)
{
	if (self->spans.v[span].id == NP_NO_I64)
		np_cell_na(table);
	else
		np_cell_int(table, self->spans.v[span].id);
}

static void cell_row(struct np_table *table, const struct np_analysis *self, uint32_t row)
{
	if (row == NP_NO_U32)
		np_cell_na(table);
	else
		np_cell_text(table, np_text(self, self->profile->host_ops.name[row]));
}

/* ── sums ── */

struct class_sum {
	np_ns total, largest, p50, p95;
	size_t n;
	const struct np_gap *example; /* with the largest */
	uint32_t row;
	size_t first; /* of its values */
};

struct sums {
	const struct np_analysis *analysis;
	struct np_gaps gaps;
	struct class_sum class[NP_N_IDLE];
	np_ns total, largest_gap;
	size_t n_gaps;
};

static bool percentiles(struct sums *self)
{
	size_t n = 0, filled[NP_N_IDLE] = {0};
	for (unsigned c = 0; c < NP_N_IDLE; c++) {
		self->class[c].first = n;
		n += self->class[c].n;
	}
	np_ns *values = np_realloc(NULL, n ? n : 1, sizeof *values);
	if (!values)
		return false;
	for (size_t g = 0; g < self->gaps.v.n; g++) {
		const struct np_gap *gap = &self->gaps.v.v[g];
		const struct np_host_part *part = self->gaps.parts + gap->part;
		for (uint32_t i = 0; gap->kind == NP_GAP_INTERNAL && i < gap->n_parts; i++)
			values[self->class[part[i].class].first + filled[part[i].class]++] =
				part[i].ns;
	}
	for (unsigned c = 0; c < NP_N_IDLE; c++) {
		struct class_sum *sum = &self->class[c];
		if (sum->n == 0)
			continue;
		sum->p50 = np_percentile_ns(values + sum->first, sum->n, 50);
		sum->p95 = np_percentile_ns(values + sum->first, sum->n, 95);
	}
	np_free(values);
	return true;
}

static bool sum_up(struct np_analysis *analysis, struct sums *self)
{
	for (size_t g = 0; g < self->gaps.v.n; g++) {
		const struct np_gap *gap = &self->gaps.v.v[g];
		if (gap->kind != NP_GAP_INTERNAL)
			continue;
		np_ns length = gap->end - gap->start;
		self->n_gaps++;
		self->total += length;
		self->largest_gap = length > self->largest_gap ? length : self->largest_gap;
		for (uint32_t i = 0; i < gap->n_parts; i++) {
			const struct np_host_part *part = &self->gaps.parts[gap->part + i];
			struct class_sum *to = &self->class[part->class];
			to->total += part->ns;
			to->n++;
			if (part->ns <= to->largest)
				continue;
			to->largest = part->ns;
			to->example = gap;
			to->row = part->row;
		}
	}
	for (unsigned c = 0; c < NP_N_IDLE; c++)
		analysis->idle_ns[c] = self->class[c].total;
	return percentiles(self);
}

/* Classes with time in them, the largest first. Returns how many. */
static size_t rank_classes(const struct sums *self, enum np_idle_class order[NP_N_IDLE])
{
	size_t n = 0;
	for (unsigned c = 0; c < NP_N_IDLE; c++) {
		if (self->class[c].total == 0)
			continue;
		size_t at = n++;
		for (; at > 0 && self->class[order[at - 1]].total < self->class[c].total; at--)
			order[at] = order[at - 1];
		order[at] = (enum np_idle_class)c;
	}
	return n;
}

/* ── tables ── */

static const struct np_column idle_columns[] = {
	{"class", "", NP_COL_TEXT,
         "who kept the device waiting; diagnosis by host call and thread"},
	{"total_ns", "us", NP_COL_DUR_NS, "sum; the classes sum to Free exactly"},
	{"share", "", NP_COL_PERCENT, "of the steps' time"},
	{"count", "", NP_COL_INT, "gaps with a part of this class"},
	{"p50_ns", "us", NP_COL_DUR_NS, "median of the parts"},
	{"p95_ns", "us", NP_COL_DUR_NS, "95th percentile of the parts, nearest rank"},
	{"largest_ns", "us", NP_COL_DUR_NS, "the longest part"},
	{"largest_at_ns", "", NP_COL_TIME_NS, "start of the gap with the longest part"},
	{"example", "", NP_COL_TEXT, "what the host was in during the longest part"},
	{"before", "", NP_COL_TEXT, "kernel that ended that gap"},
	{"meaning", "", NP_COL_TEXT, "the class in words"},
};

static void put_classes(const struct sums *self, const enum np_idle_class *order, size_t n)
{
	const struct np_analysis *analysis = self->analysis;
	struct np_table *table =
		NP_REPORT_TABLE(analysis->report, "idle", "Idle time by cause", idle_columns);
	for (size_t i = 0; i < n; i++) {
		const struct class_sum *sum = &self->class[order[i]];
		np_cell_cstr(table, classes[order[i]].name);
		np_cell_int(table, sum->total);
		np_cell_real(table, np_share(analysis, sum->total));
		np_cell_int(table, (int64_t)sum->n);
		np_cell_int(table, sum->p50);
		np_cell_int(table, sum->p95);
		np_cell_int(table, sum->largest);
		np_cell_int(table, sum->example->start);
		cell_row(table, analysis, sum->row);
		np_cell_text(table, kernel_name(analysis, sum->example));
		np_cell_word(table, classes[order[i]].what);
	}
}

static const struct np_column gap_columns[] = {
	{"step", "", NP_COL_INT, "step id; - when the capture has no steps"},
	{"start_ns", "", NP_COL_TIME_NS, "when the device ran out of work"},
	{"length_ns", "us", NP_COL_DUR_NS, "until the next kernel began"},
	{"before", "", NP_COL_TEXT, "the kernel that ended it"},
	{"ended_by", "", NP_COL_TEXT, "the host's call that launched that kernel"},
	{"class", "", NP_COL_TEXT, "class of the largest part, as in table idle"},
	{"class_share", "", NP_COL_PERCENT, "its part of the gap"},
	{"host_activity", "", NP_COL_TEXT, "what the host was in during that part"},
};

static int longer_first(const void *a, const void *b)
{
	const struct np_gap *x = *(const struct np_gap *const *)a,
			    *y = *(const struct np_gap *const *)b;
	np_ns p = x->end - x->start, q = y->end - y->start;
	if (p != q)
		return p > q ? -1 : 1;
	return (x->start > y->start) - (x->start < y->start);
}

/* The `want` longest inner gaps into list, which has room for all of them. false: no memory. */
static bool longest(const struct sums *self, size_t *want, const struct np_gap **list)
{
	np_ns *lengths = np_realloc(NULL, self->n_gaps, sizeof *lengths), limit = 0;
	size_t n = 0;
	if (!lengths)
		return false;
	for (size_t g = 0; g < self->gaps.v.n; g++)
		if (self->gaps.v.v[g].kind == NP_GAP_INTERNAL)
			lengths[n++] = self->gaps.v.v[g].end - self->gaps.v.v[g].start;
	if (*want < n)
		limit = np_select_ns(lengths, n, n - *want);
	np_free(lengths);
	n = 0;
	for (size_t g = 0; g < self->gaps.v.n; g++) {
		const struct np_gap *gap = &self->gaps.v.v[g];
		if (gap->kind == NP_GAP_INTERNAL && gap->end - gap->start >= limit)
			list[n++] = gap;
	}
	qsort(list, n, sizeof *list, longer_first);
	*want = n < *want ? n : *want;
	return true;
}

static bool put_gaps(const struct sums *self)
{
	const struct np_analysis *analysis = self->analysis;
	size_t n = np_top(analysis);
	struct np_table *table =
		NP_REPORT_TABLE(analysis->report, "gaps", "Largest gaps", gap_columns);
	if (self->n_gaps == 0)
		return true;
	const struct np_gap **list = np_realloc(NULL, self->n_gaps, sizeof *list);
	bool ok = list && longest(self, &n, list);
	for (size_t i = 0; ok && i < n; i++) {
		const struct np_gap *gap = list[i];
		np_ns length = gap->end - gap->start;
		cell_step(table, analysis, gap->span);
		np_cell_int(table, gap->start);
		np_cell_int(table, length);
		np_cell_text(table, kernel_name(analysis, gap));
		ended_by(table, analysis, gap);
		np_cell_cstr(table, classes[gap->class].name);
		np_cell_real(table, (double)gap->largest_ns / (double)length);
		cell_row(table, analysis, gap->row);
	}
	np_free(list);
	return ok;
}

static const struct np_column edge_columns[] = {
	{"step", "", NP_COL_INT, "step id"},
	{"edge", "", NP_COL_TEXT, "preparing: before its first kernel; tail: behind its last"},
	{"length_ns", "us", NP_COL_DUR_NS, "the device does nothing; not part of Free"},
	{"class", "", NP_COL_TEXT, "class of the largest part"},
	{"class_share", "", NP_COL_PERCENT, "its part of the whole"},
	{"host_activity", "", NP_COL_TEXT, "what the host was in during that part"},
};

static void put_edges(const struct sums *self)
{
	const struct np_analysis *analysis = self->analysis;
	struct np_table *table = NP_REPORT_TABLE(analysis->report, "idle_edges",
	                                         "Idle time around the steps", edge_columns);
	for (size_t g = 0; g < self->gaps.v.n; g++) {
		const struct np_gap *gap = &self->gaps.v.v[g];
		if (gap->kind == NP_GAP_INTERNAL)
			continue;
		cell_step(table, analysis, gap->span);
		np_cell_cstr(table, gap->kind == NP_GAP_TAIL ? "tail" : "preparing");
		np_cell_int(table, gap->end - gap->start);
		np_cell_cstr(table, classes[gap->class].name);
		np_cell_real(table, (double)gap->largest_ns / (double)(gap->end - gap->start));
		cell_row(table, analysis, gap->row);
	}
}

/* ── findings ── */

/* requirements §2.4: by how much of the idle time is covered by what. */
static const char *attribution(const struct sums *self)
{
	np_ns sync = self->class[NP_IDLE_SYNC].total + self->class[NP_IDLE_COPY].total;
	np_ns wait = self->class[NP_IDLE_DEPENDENCY].total,
	      host = self->class[NP_IDLE_LAUNCH].total;
	double all = (double)self->total;
	for (unsigned c = 0; c < NP_N_IDLE; c++)
		if (np_idle_is_busy_host((enum np_idle_class)c))
			host += self->class[c].total;
	if ((double)self->class[NP_IDLE_NOT_COLLECTED].total > all / 2)
		return "insufficient_evidence";
	if ((double)sync >= 0.20 * all)
		return "possible_sync_or_h2d";
	if ((double)wait >= 0.20 * all)
		return "possible_comm_wait";
	if ((double)host < 0.05 * all && self->class[NP_IDLE_UNTRACED].total > 0)
		return "possible_untraced_host_blocking";
	return (double)host >= 0.10 * all ? "possible_host_launch_lag" : "insufficient_evidence";
}

static void find_idle(const struct sums *self, const enum np_idle_class *order, size_t n)
{
	const struct np_analysis *analysis = self->analysis;
	double share = np_share(analysis, self->total);
	if (n == 0 || share < analysis->rules->idle_heavy)
		return;
	const struct class_sum *first = &self->class[order[0]];
	struct np_finding *finding =
		np_report_finding(analysis->report, "DEVICE_IDLE_GAP_HEAVY", NP_WARNING,
	                          "the device is idle for %.1f %% of the steps, %s%s", share * 100,
	                          np_tr(order[0] == NP_IDLE_NOT_COLLECTED ? "why is not collected: "
	                                                                  : "mostly because "),
	                          np_tr(classes[order[0]].what));
	np_finding_detail(finding, "%s: %.1f %% of the idle time%s%s%s; %s", classes[order[0]].name,
	                  100 * (double)first->total / (double)self->total,
	                  n > 1 ? np_tr(", then ") : "", n > 1 ? classes[order[1]].name : "",
	                  n > 2 ? np_tr(" and others") : "", attribution(self));
	np_finding_evidence(finding, np_kernel_source(analysis), "Start Time(us), Duration(us)",
	                    NULL, "%zu gaps, %.0f us in all, the largest %.1f us", self->n_gaps,
	                    (double)self->total / 1e3, (double)self->largest_gap / 1e3);
	np_finding_evidence(finding, NULL, "class, total_ns", "table idle",
	                    "%zu parts of class %s, the largest %.1f us", first->n,
	                    classes[order[0]].name, (double)first->largest / 1e3);
	np_finding_impact(finding, (double)self->total / 1e3, share);
	np_finding_advice(finding, "%s", classes[order[0]].advice);
}

/* The longest gap of each kind whose length passes the threshold of its step, or NULL. */
static void heavy(const struct sums *self, const struct np_gap *worst[NP_GAP_TAIL + 1])
{
	const struct np_rules *rules = self->analysis->rules;
	for (size_t g = 0; g < self->gaps.v.n; g++) {
		const struct np_gap *gap = &self->gaps.v.v[g], *other = worst[gap->kind];
		np_ns length = gap->end - gap->start;
		if ((double)length < rules->gap_min_us * 1e3 ||
		    (other && length <= other->end - other->start))
			continue;
		const struct np_span *span = &self->analysis->spans.v[gap->span];
		if ((double)length >= rules->gap_min_share * (double)(span->end - span->start))
			worst[gap->kind] = gap;
	}
}

static void find_gap(const struct sums *self, const struct np_gap *gap, const char *code,
                     enum np_severity severity, const char *what)
{
	const struct np_analysis *analysis = self->analysis;
	if (!gap)
		return;
	const struct np_span *span = &analysis->spans.v[gap->span];
	np_ns length = gap->end - gap->start, step = span->end - span->start;
	struct np_finding *finding = np_report_finding(
		analysis->report, code, severity, "%s: %.1f us; for %.0f %% of them %s",
		np_tr(what), (double)length / 1e3, 100 * (double)gap->largest_ns / (double)length,
		np_tr(classes[gap->class].what));
	np_str host = {"-", 1};
	if (gap->row != NP_NO_U32)
		host = np_text(analysis, analysis->profile->host_ops.name[gap->row]);
	np_finding_detail(finding, "class %s; the host was in: %.*s", classes[gap->class].name,
	                  NP_FMT(host));
	np_finding_evidence(finding, np_kernel_source(analysis), "Start Time(us)", NULL,
	                    "nothing runs on the device from %lld to %lld ns%s%.*s",
	                    (long long)gap->start, (long long)gap->end,
	                    gap->kernel == NP_NO_U32 ? "" : np_tr(", then "),
	                    NP_FMT(kernel_name(analysis, gap)));
	np_finding_impact(finding, (double)length / 1e3,
	                  step > 0 ? (double)length / (double)step : 0);
	np_finding_advice(finding, "%s", classes[gap->class].advice);
}

static void tell(const struct sums *self)
{
	enum np_idle_class order[NP_N_IDLE];
	size_t n = rank_classes(self, order);
	put_classes(self, order, n);
	put_edges(self);
	find_idle(self, order, n);
	const struct np_gap *worst[NP_GAP_TAIL + 1] = {NULL};
	heavy(self, worst);
	find_gap(self, worst[NP_GAP_INTERNAL], "INTERNAL_BUBBLE_HEAVY", NP_WARNING,
	         NP_N("a long gap inside of a step"));
	find_gap(self, worst[NP_GAP_PREPARING], "PRELAUNCH_GAP_HEAVY", NP_INFO,
	         NP_N("a long gap before the first kernel of a step"));
	find_gap(self, worst[NP_GAP_TAIL], "TAIL_GAP_HEAVY", NP_INFO,
	         NP_N("a long gap behind the last kernel of a step"));
	if (self->class[NP_IDLE_NOT_COLLECTED].n > 0)
		np_report_note(self->analysis->report,
		               "%zu gaps end with a kernel whose launch is not in the capture: "
		               "their cause is not collected (trace_view.json, or CANN_API in a "
		               "db, has it when CPU and NPU activities are profiled)",
		               self->class[NP_IDLE_NOT_COLLECTED].n);
}

void np_analyze_idle(struct np_analysis *analysis)
{
	struct sums self = {.analysis = analysis};
	bool ok = np_links_build(analysis) && np_gaps_find(analysis, &self.gaps) &&
	          sum_up(analysis, &self);
	if (ok) {
		tell(&self);
		ok = put_gaps(&self);
	}
	np_gaps_release(&self.gaps);
	if (!ok)
		analysis->oom = true;
}
