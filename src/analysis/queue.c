/*
 * Layer 3a: how deep the queues were, and so who bounds the device.
 *
 * The depth of a stream is what was launched on it and had not started. Two lists
 * in order of time, launches and starts, are merged; every stretch between two
 * events counts with its time inside of the steps, and with that part of it in
 * which the device was idle.
 */
#include <stdlib.h>

#include "analysis/analysis.h"
#include "report/lang.h"

enum {
	DEPTHS = 1024,   /* the last one stands for all above */
	MAX_LANES = 256, /* streams beyond share the last one */
};

struct lane {
	uint32_t stream, depth, max;
	size_t kernels;
	np_ns since; /* in span time */
	double sum;  /* depth x time */
	np_ns *at;   /* time at each depth */
};

struct event {
	np_ns ns;
	uint32_t lane;
};

/* Time since the beginning of a merged set, up to `ns`, for times that only go on. */
struct clock {
	const struct np_intervals *set;
	size_t at;
	np_ns before; /* length of all intervals before v[at] */
};

static np_ns clock_at(struct clock *self, np_ns ns)
{
	const struct np_intervals *set = self->set;
	for (; self->at < set->n && set->v[self->at].end <= ns; self->at++)
		self->before += set->v[self->at].end - set->v[self->at].start;
	if (self->at < set->n && set->v[self->at].start < ns)
		return self->before + ns - set->v[self->at].start;
	return self->before;
}

struct depths {
	struct np_analysis *analysis;
	struct np_map lane_of;
	NP_VEC(struct lane) lanes; /* by first start; [0] is all together */
	struct event *launches, *starts;
	size_t n;
	struct np_intervals spans, idle;
	np_ns empty_idle, queued_idle; /* the device idle and nothing, or something, launched */
};

/* ── events ── */

static bool new_lane(struct depths *self, uint32_t stream)
{
	struct lane lane = {.stream = stream, .at = np_calloc(DEPTHS, sizeof(np_ns))};
	if (!lane.at)
		return false;
	if (np_vec_push(&self->lanes, lane))
		return true;
	np_free(lane.at);
	return false;
}

static uint32_t lane_of(struct depths *self, uint32_t stream)
{
	uint32_t at = np_map_get(&self->lane_of, stream, NP_NO_U32);
	if (at != NP_NO_U32)
		return at;
	if (self->lanes.n >= MAX_LANES)
		return MAX_LANES - 1;
	at = (uint32_t)self->lanes.n;
	return new_lane(self, stream) && np_map_put(&self->lane_of, stream, at) ? at : NP_NO_U32;
}

static int by_ns(const void *a, const void *b)
{
	const struct event *x = a, *y = b;
	if (x->ns != y->ns)
		return x->ns < y->ns ? -1 : 1;
	return (x->lane > y->lane) - (x->lane < y->lane);
}

static bool collect(struct depths *self)
{
	const struct np_analysis *analysis = self->analysis;
	bool sorted = true;
	self->launches = np_realloc(NULL, analysis->n_rows, sizeof *self->launches);
	self->starts = np_realloc(NULL, analysis->n_rows, sizeof *self->starts);
	if (!self->launches || !self->starts || !new_lane(self, NP_NO_U32))
		return false;
	for (size_t i = 0; i < analysis->n_rows; i++) {
		uint32_t k = analysis->rows[i];
		const struct np_launch *launch = &analysis->launches[k];
		np_ns start = analysis->profile->kernels.start_ns[k];
		if (launch->how == NP_LAUNCH_NONE)
			continue;
		uint32_t lane = lane_of(self, launch->stream);
		if (lane == NP_NO_U32)
			return false;
		self->lanes.v[lane].kernels++;
		self->lanes.v[0].kernels++;
		/* a kernel may begin before its launching call returns */
		np_ns launched = launch->end < start ? launch->end : start;
		self->launches[self->n] = (struct event){launched, lane};
		self->starts[self->n] = (struct event){start, lane};
		sorted = sorted && (self->n == 0 || self->launches[self->n - 1].ns <= launched);
		self->n++;
	}
	if (!sorted)
		qsort(self->launches, self->n, sizeof *self->launches, by_ns);
	return true;
}

/* The spans, and what of them nobody works in. */
static bool collect_times(struct depths *self)
{
	const struct np_analysis *analysis = self->analysis;
	struct np_intervals busy = {0};
	bool ok = true;
	for (size_t s = 0; ok && s < analysis->spans.n; s++)
		ok = np_intervals_add(&self->spans, analysis->spans.v[s].start,
		                      analysis->spans.v[s].end);
	np_intervals_merge(&self->spans);
	ok = ok && np_intervals_union(&analysis->compute, &analysis->comm, &busy) &&
	     np_intervals_subtract(&self->spans, &busy, &self->idle);
	np_intervals_release(&busy);
	return ok;
}

/* ── time at each depth ── */

static void settle(struct lane *lane, np_ns now)
{
	uint32_t depth = lane->depth < DEPTHS ? lane->depth : DEPTHS - 1;
	lane->at[depth] += now - lane->since;
	lane->sum += (double)lane->depth * (double)(now - lane->since);
	if (now > lane->since && lane->depth > lane->max)
		lane->max = lane->depth;
	lane->since = now;
}

static void sweep(struct depths *self)
{
	struct clock spans = {.set = &self->spans}, idle = {.set = &self->idle};
	np_ns idle_before = 0, end = NP_TIME_MAX;
	size_t l = 0, s = 0;
	while (s < self->n) { /* each start has its launch before it, or at the same time */
		bool launch = l < self->n && self->launches[l].ns <= self->starts[s].ns;
		const struct event *event = launch ? &self->launches[l++] : &self->starts[s++];
		np_ns now = clock_at(&spans, event->ns), idled = clock_at(&idle, event->ns);
		if (self->lanes.v[0].depth == 0)
			self->empty_idle += idled - idle_before;
		else
			self->queued_idle += idled - idle_before;
		idle_before = idled;
		for (int both = 0; both < 2; both++) {
			struct lane *lane = &self->lanes.v[both ? event->lane : 0];
			settle(lane, now);
			lane->depth = launch ? lane->depth + 1 : lane->depth - 1;
		}
	}
	for (size_t i = 0; i < self->lanes.n; i++)
		settle(&self->lanes.v[i], clock_at(&spans, end));
	self->empty_idle += clock_at(&idle, end) - idle_before;
}

/* ── table ── */

static const struct np_column columns[] = {
	{"stream", "", NP_COL_TEXT, "stream id; all: of all streams together"},
	{"kernels", "", NP_COL_INT, "kernels with a known launch"},
	{"mean", "", NP_COL_REAL, "depth: launched minus started, weighted by time"},
	{"p50", "", NP_COL_INT, "median over time"},
	{"p95", "", NP_COL_INT, "95th percentile over time"},
	{"max", "", NP_COL_INT, "largest depth that lasted"},
	{"empty_share", "", NP_COL_PERCENT, "of the steps' time with nothing launched"},
	{"empty_idle_share", "", NP_COL_PERCENT, "… and the device idle (row all only)"},
	{"queued_idle_share", "", NP_COL_PERCENT,
         "of the steps' time: the device idle with work launched (row all only)"},
};

static int64_t depth_at(const struct lane *lane, unsigned percent)
{
	np_ns total = lane->since, sum = 0; /* since: all of the spans' time by now */
	for (int64_t d = 0; d < DEPTHS; d++) {
		sum += lane->at[d];
		if (sum >= total / 100 * percent + total % 100 * percent / 100)
			return d;
	}
	return DEPTHS - 1;
}

static void put(const struct depths *self)
{
	const struct np_analysis *analysis = self->analysis;
	struct np_table *table = NP_REPORT_TABLE(analysis->report, "queue", "Queue depth", columns);
	size_t n = self->lanes.n < np_top(analysis) + 1 ? self->lanes.n : np_top(analysis) + 1;
	for (size_t i = 0; i < n && self->n > 0; i++) {
		const struct lane *lane = &self->lanes.v[i];
		double total = lane->since > 0 ? (double)lane->since : 1;
		if (i == 0)
			np_cell_cstr(table, "all");
		else if (lane->stream == NP_NO_U32)
			np_cell_na(table);
		else
			np_cell_printf(table, "%u", lane->stream);
		np_cell_int(table, (int64_t)lane->kernels);
		np_cell_real(table, lane->sum / total);
		np_cell_int(table, depth_at(lane, 50));
		np_cell_int(table, depth_at(lane, 95));
		np_cell_int(table, lane->max);
		np_cell_real(table, (double)lane->at[0] / total);
		if (i > 0) {
			np_cell_na(table);
			np_cell_na(table);
		} else {
			np_cell_real(table, np_share(analysis, self->empty_idle));
			np_cell_real(table, np_share(analysis, self->queued_idle));
		}
	}
}

/* ── verdict ── */

static void report(const struct depths *self, const char *code, np_ns ns, const char *title,
                   const char *advice, const char *what, double part)
{
	const struct np_analysis *analysis = self->analysis;
	double share = np_share(analysis, ns);
	struct np_finding *finding =
		np_report_finding(analysis->report, code, NP_WARNING, "%s (%.1f %% of the steps)",
	                          np_tr(title), share * 100);
	np_finding_detail(finding, "of that time, %s for %.0f %%", np_tr(what), part * 100);
	np_finding_evidence(finding, np_kernel_source(analysis), "Start Time(us)", NULL,
	                    "%zu kernels with a known launch", self->n);
	np_finding_evidence(finding, NULL, "empty_idle_share, queued_idle_share",
	                    "table queue, row all",
	                    "nothing launched and idle: %.0f us; "
	                    "launched and idle: %.0f us",
	                    (double)self->empty_idle / 1e3, (double)self->queued_idle / 1e3);
	np_finding_impact(finding, (double)ns / 1e3, share);
	np_finding_advice(finding, "%s", advice);
}

/* diagnosis §1. The table idle says what the host did in the time that nothing was launched. */
static void judge(const struct depths *self)
{
	const struct np_analysis *analysis = self->analysis;
	const struct np_rules *rules = analysis->rules;
	const np_ns *idle = analysis->idle_ns;
	np_ns all = idle[NP_IDLE_LAUNCH], busy = idle[NP_IDLE_LAUNCH];
	enum np_idle_class worst = NP_IDLE_LAUNCH;
	for (unsigned c = 0; c < NP_N_IDLE; c++) {
		if (!np_idle_is_host((enum np_idle_class)c))
			continue;
		all += idle[c];
		if (!np_idle_is_busy_host((enum np_idle_class)c))
			continue;
		busy += idle[c];
		worst = idle[c] > idle[worst] ? (enum np_idle_class)c : worst;
	}
	double busy_share = all > 0 ? (double)busy / (double)all : 0;
	double sync_share = all > 0 ? (double)idle[NP_IDLE_SYNC] / (double)all : 0;
	if (np_share(analysis, self->empty_idle) >= rules->host_bound_idle) {
		if (busy_share >= rules->host_bound_busy)
			report(self, "HOST_BOUND", self->empty_idle,
			       "the host issues work slower than the device does it",
			       np_idle_advice(worst), NP_N("the launching thread was busy"),
			       busy_share);
		else if (idle[NP_IDLE_SYNC] >= busy && idle[NP_IDLE_SYNC] >= idle[NP_IDLE_UNTRACED])
			report(self, "SYNC_BOUND", self->empty_idle,
			       "the device starves while the host is blocked in synchronisation",
			       np_idle_advice(NP_IDLE_SYNC),
			       NP_N("the launching thread was blocked in a sync call"), sync_share);
	}
	np_ns waits = idle[NP_IDLE_DEPENDENCY] + idle[NP_IDLE_COPY];
	if (np_share(analysis, self->queued_idle) >= rules->host_bound_idle &&
	    waits >= self->queued_idle / 2)
		report(self, "DEPENDENCY_BOUND", self->queued_idle,
		       "the device is idle although work is launched",
		       np_idle_advice(idle[NP_IDLE_COPY] > idle[NP_IDLE_DEPENDENCY]
		                              ? NP_IDLE_COPY
		                              : NP_IDLE_DEPENDENCY),
		       NP_N("the next kernel's stream waited for an event or a copy"),
		       (double)waits / (double)self->queued_idle);
}

void np_analyze_queue(struct np_analysis *analysis)
{
	struct depths self = {.analysis = analysis};
	np_map_init(&self.lane_of);
	bool ok = np_links_build(analysis) && collect(&self) && collect_times(&self);
	if (ok) {
		sweep(&self);
		put(&self);
		/* where most launches are unknown, an empty queue says nothing */
		if (self.n * 2 >= analysis->n_rows)
			judge(&self);
	}
	for (size_t i = 0; i < self.lanes.n; i++)
		np_free(self.lanes.v[i].at);
	np_vec_release(&self.lanes);
	np_map_release(&self.lane_of);
	np_free(self.launches);
	np_free(self.starts);
	np_intervals_release(&self.spans);
	np_intervals_release(&self.idle);
	if (!ok)
		analysis->oom = true;
}
