/*
 * Layer 0: the exporter's own step times beside what the kernels say.
 *
 * Three definitions of one step (torch_npu.md §3.2, §3.12):
 *
 *            first kernel         last kernel   next step
 *   device   ├████░░███─────██████┤─────────────├███
 *   here     [ span, cut there     )                      what `steps` shows
 *   text     [ intervals that start in it, whole )        Free up to the next step
 *   db       [ the same            )                      Free between first and last only
 *
 * So a third figure is computed, by the exporter's definition: where that equals
 * the exporter's, the difference is one of definition; else something is missing
 * (text: tasks that are no kernels lie at the ends of its timeline).
 */
#include <math.h>

#include "analysis/analysis.h"
#include "report/lang.h"

static const struct np_column columns[] = {
	{"step", "", NP_COL_INT, "step id; - when the capture has no steps"},
	{"quantity", "", NP_COL_TEXT, "column of step_trace_time.csv"},
	{"exporter_us", "us", NP_COL_REAL, "what the exporter wrote"},
	{"recomputed_us", "us", NP_COL_REAL, "from the kernels, as in the table steps"},
	{"difference_us", "us", NP_COL_REAL, "recomputed - exporter"},
	{"by_its_definition_us", "us", NP_COL_REAL,
         "from the kernels, by the exporter's definition (torch_npu.md 3.2, 3.12)"},
	{"same", "", NP_COL_BOOL, "equal within 1 us or 1e-6"},
};

/* id, name, column of np_step_trace */
#define QUANTITIES(X)                                                              \
	X(COMPUTING, "Computing", computing_us)                                    \
	X(NOT_OVERLAPPED, "Communication(Not Overlapped)", comm_not_overlapped_us) \
	X(OVERLAPPED, "Overlapped", overlapped_us)                                 \
	X(COMMUNICATION, "Communication", comm_us)                                 \
	X(FREE, "Free", free_us)                                                   \
	X(STAGE, "Stage", stage_us)                                                \
	X(BUBBLE, "Bubble", bubble_us)                                             \
	X(EXCLUDE_RECEIVE, "Communication(Not Overlapped and Exclude Receive)",    \
	  comm_not_overlapped_exclude_receive_us)                                  \
	X(PREPARING, "Preparing", preparing_us)

enum quantity {
#define X(id, name, column) id,
	QUANTITIES(X)
#undef X
		N_QUANTITIES,
};

static const char *const names[] = {
#define X(id, name, column) name,
	QUANTITIES(X)
#undef X
};

/* Times of a step in ns; NP_NO_I64 where unknown. */
struct times {
	np_ns v[N_QUANTITIES];
};

/* How one quantity differed over the steps. */
struct difference {
	size_t steps, by_definition;
	double largest_us;
};

/* A step and the exporter's row for it. */
struct pair {
	size_t span, row;
};

struct trace {
	struct np_analysis *analysis;
	bool text; /* else db */
	const char *file;
	struct np_intervals exposed, busy;
	np_ns *bubble; /* by span */
	struct difference differ[N_QUANTITIES];
	NP_VEC(struct pair) pairs;
};

/* ── by our definition ── */

static struct times ours(const struct trace *self, size_t s)
{
	const struct np_span *span = &self->analysis->spans.v[s];
	np_ns bubble = self->bubble[s], left = span->comm_not_overlapped - bubble;
	struct times t;
	t.v[COMPUTING] = span->computing;
	t.v[NOT_OVERLAPPED] = span->comm_not_overlapped;
	t.v[OVERLAPPED] = span->overlapped;
	t.v[COMMUNICATION] = span->comm;
	t.v[FREE] = span->free;
	t.v[STAGE] = span->end - span->start - bubble;
	t.v[BUBBLE] = bubble;
	t.v[EXCLUDE_RECEIVE] = left > 0 ? left : 0;
	t.v[PREPARING] = span->preparing;
	return t;
}

/* ── by the exporter's ── */

struct window {
	np_ns start, end;  /* of the step, [start, end) */
	np_ns first, last; /* extent of what starts in it */
};

/* Intervals that start in the window, uncut: their sum; the extent grows. */
static np_ns sum_starting(const struct np_intervals *set, struct window *window)
{
	size_t low = 0, high = set->n;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (set->v[middle].start < window->start)
			low = middle + 1;
		else
			high = middle;
	}
	np_ns sum = 0;
	for (size_t i = low; i < set->n && set->v[i].start < window->end; i++) {
		sum += set->v[i].end - set->v[i].start;
		if (set->v[i].start < window->first)
			window->first = set->v[i].start;
		if (set->v[i].end > window->last)
			window->last = set->v[i].end;
	}
	return sum;
}

/* Start of the step after this one on the device, or the end of time. */
static np_ns next_start(const struct np_analysis *self, size_t s)
{
	np_ns start = self->spans.v[s].start, next = NP_TIME_MAX;
	if (!self->options->has_step)
		return s + 1 < self->spans.n ? self->spans.v[s + 1].start : next;
	const struct np_steps *steps = &self->profile->steps;
	for (size_t i = 0; i < steps->n; i++)
		if (steps->kernels[i] && steps->start_ns[i] > start && steps->start_ns[i] < next)
			next = steps->start_ns[i];
	return next;
}

/* Pauses that start in the window. The last one of a text step ends where the next
 * step begins; behind the last work of the capture there is none that we know. */
static np_ns free_starting(const struct np_intervals *busy, struct window *window)
{
	np_ns sum = 0;
	size_t low = 0, high = busy->n;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (busy->v[middle].end < window->start)
			low = middle + 1;
		else
			high = middle;
	}
	for (size_t i = low; i + 1 < busy->n && busy->v[i].end < window->end; i++) {
		sum += busy->v[i + 1].start - busy->v[i].end;
		if (busy->v[i + 1].start > window->last)
			window->last = busy->v[i + 1].start;
	}
	return sum;
}

static struct times theirs(const struct trace *self, size_t s)
{
	const struct np_analysis *a = self->analysis;
	const struct np_span *span = &a->spans.v[s];
	struct window w = {span->start, next_start(a, s), NP_TIME_MAX, 0};
	struct times t;
	np_ns bubble = self->bubble[s];
	t.v[COMPUTING] = sum_starting(&a->compute, &w);
	t.v[COMMUNICATION] = sum_starting(&a->comm, &w);
	t.v[NOT_OVERLAPPED] = sum_starting(&self->exposed, &w);
	t.v[OVERLAPPED] = t.v[COMMUNICATION] - t.v[NOT_OVERLAPPED];
	if (self->text)
		t.v[FREE] = free_starting(&self->busy, &w);
	else
		t.v[FREE] = w.last - w.first - t.v[COMPUTING] - t.v[NOT_OVERLAPPED];
	t.v[STAGE] = w.last - w.first - bubble;
	t.v[BUBBLE] = bubble;
	np_ns left = t.v[NOT_OVERLAPPED] - bubble;
	t.v[EXCLUDE_RECEIVE] = left > 0 ? left : 0;
	t.v[PREPARING] = span->host_start == NP_NO_I64 ? NP_NO_I64 : w.first - span->host_start;
	return t;
}

/* ── comparing ── */

static double us(np_ns ns)
{
	return ns == NP_NO_I64 ? NAN : (double)ns / 1000;
}

static bool same(double a, double b)
{
	return fabs(a - b) <= 1 || fabs(a - b) <= 1e-6 * fabs(b);
}

static double exporter_value(const struct np_step_trace *t, size_t row, enum quantity q)
{
	const double *const values[] = {
#define X(id, name, column) t->column,
		QUANTITIES(X)
#undef X
	};
	return values[q][row];
}

/* What one step says of one quantity. */
struct figure {
	double file, own, like; /* exporter, ours, by its definition; NaN: unknown */
	bool known, same;
};

static struct figure figure_of(const struct trace *self, const struct pair *pair, enum quantity q)
{
	struct times mine = ours(self, pair->span), its = theirs(self, pair->span);
	struct figure f = {.own = us(mine.v[q]), .like = us(its.v[q])};
	f.file = exporter_value(&self->analysis->profile->step_trace, pair->row, q);
	f.known = !isnan(f.file) && !isnan(f.own);
	f.same = f.known && same(f.own, f.file);
	return f;
}

static void count_pair(struct trace *self, const struct pair *pair)
{
	for (enum quantity q = 0; q < N_QUANTITIES; q++) {
		struct figure f = figure_of(self, pair, q);
		struct difference *d = &self->differ[q];
		if (!f.known || f.same)
			continue;
		d->steps++;
		d->by_definition += same(f.like, f.file);
		if (fabs(f.own - f.file) > d->largest_us)
			d->largest_us = fabs(f.own - f.file);
	}
}

static void show_figure(const struct trace *self, struct np_table *table, const struct pair *pair,
                        enum quantity q)
{
	struct figure f = figure_of(self, pair, q);
	int64_t id = self->analysis->spans.v[pair->span].id;
	if (id == NP_NO_I64)
		np_cell_na(table);
	else
		np_cell_int(table, id);
	np_cell_cstr(table, names[q]);
	np_cell_real(table, f.file);
	np_cell_real(table, f.own);
	np_cell_real(table, round((f.own - f.file) * 1000) / 1000 + 0.0); /* no noise, no -0 */
	np_cell_real(table, f.like);
	if (f.known)
		np_cell_bool(table, f.same);
	else
		np_cell_na(table);
}

/* Step id → the exporter's first row for it on this device. */
static bool map_rows(const struct np_analysis *self, struct np_map *out)
{
	const struct np_step_trace *t = &self->profile->step_trace;
	bool ok = true;
	for (size_t i = t->n; ok && i-- > 0;)
		if (t->device[i] == NP_NO_U32 || self->device == NP_NO_U32 ||
		    t->device[i] == self->device)
			ok = np_map_put(out, (uint64_t)t->step[i], (uint32_t)i);
	return ok;
}

/* ── telling ── */

static const char *reason(const struct trace *self, enum quantity q)
{
	if (q == PREPARING)
		return NP_N("it counts to the first interval of its own step window");
	if (self->text && (q == FREE || q == STAGE))
		return NP_N("its step reaches to the start of the next one, and over tasks that "
		            "are no kernels; here a step ends with its last kernel");
	if (self->text)
		return NP_N("it counts an interval whole in the step in which it starts; here it "
		            "is cut where the next step begins");
	return NP_N("it takes what starts in the window of the step's launches, uncut; here a "
	            "step is its own kernels");
}

static void tell(struct trace *self)
{
	size_t quantities = 0, explained = 0, differing = 0;
	for (enum quantity q = 0; q < N_QUANTITIES; q++) {
		quantities += self->differ[q].steps > 0;
		differing += self->differ[q].steps;
		explained += self->differ[q].by_definition;
	}
	if (!quantities)
		return;
	struct np_report *report = self->analysis->report;
	struct np_finding *finding = np_report_finding(
		report, "STEP_TRACE_DIFFERS", NP_INFO,
		"%zu of %d step times of the exporter differ from the kernels%s", quantities,
		N_QUANTITIES,
		explained == differing ? np_tr(": it defines them in another way") : "");
	np_finding_detail(
		finding,
		"%s; the table step_trace has both, and what the exporter's "
		"definition gives.",
		np_tr(self->text ? "step_trace_time.csv sums whole intervals by their start"
	                         : "analysis.db sums the operators of a window of launches"));
	for (enum quantity q = 0; q < N_QUANTITIES; q++) {
		const struct difference *d = &self->differ[q];
		if (d->steps)
			np_finding_evidence(
				finding, self->file, names[q], NULL,
				"in %zu of %zu steps, up to %.3f us: %s%s", d->steps, self->pairs.n,
				d->largest_us, np_tr(reason(self, q)),
				d->by_definition == d->steps
					? ""
					: np_tr("; that alone doesn't explain it in all of "
			                        "them"));
	}
	np_finding_command(finding, "npuprof analyze %s --format csv --table step_trace",
	                   np_shell_quote(report, self->analysis->capture->path));
}

/* Durations of hcom_receive* by span: what the exporter calls Bubble. */
static bool sum_bubbles(struct trace *self)
{
	const struct np_analysis *a = self->analysis;
	self->bubble = np_calloc(a->spans.n, sizeof *self->bubble);
	if (!self->bubble)
		return false;
	for (size_t i = 0; i < a->n_rows; i++) {
		uint32_t row = a->rows[i];
		if (a->class[row] == NP_CLASS_COMM &&
		    np_str_starts(np_text(a, a->profile->kernels.name[row]),
		                  NP_STR("hcom_receive")))
			self->bubble[a->span_of[row]] += a->profile->kernels.dur_ns[row];
	}
	return true;
}

static bool pair_all(struct trace *self)
{
	const struct np_analysis *a = self->analysis;
	struct np_map rows;
	np_map_init(&rows);
	bool ok = map_rows(a, &rows);
	for (size_t s = 0; ok && s < a->spans.n; s++) {
		uint32_t row = np_map_get(&rows, (uint64_t)a->spans.v[s].id, NP_NO_U32);
		if (row != NP_NO_U32)
			ok = np_vec_push(&self->pairs, (struct pair){s, row});
	}
	np_map_release(&rows);
	return ok;
}

/* All of the first step; of the others what differs in any step, up to --top rows. */
static void show(const struct trace *self)
{
	struct np_analysis *a = self->analysis;
	size_t rows = 0, most = np_top(a) > N_QUANTITIES ? np_top(a) : N_QUANTITIES, left = 0;
	if (!self->pairs.n)
		return;
	struct np_table *table =
		NP_REPORT_TABLE(a->report, "step_trace", "Exporter's step times", columns);
	for (size_t i = 0; i < self->pairs.n; i++)
		for (enum quantity q = 0; q < N_QUANTITIES; q++) {
			if (i > 0 && !self->differ[q].steps)
				continue;
			if (rows++ < most)
				show_figure(self, table, &self->pairs.v[i], q);
			else
				left++;
		}
	if (left)
		np_report_note(a->report, "table step_trace: %zu rows more (--top)", left);
}

void np_analyze_step_trace(struct np_analysis *self)
{
	if (self->profile->step_trace.n == 0)
		return;
	const struct np_file *csv = np_capture_file(self->capture, NP_ROLE_STEP_TRACE);
	const struct np_file *db = np_capture_file(self->capture, NP_ROLE_ANALYSIS_DB);
	struct trace trace = {.analysis = self, .text = csv != NULL};
	trace.file = csv ? csv->path : db ? db->path : self->capture->path;
	if (np_intervals_subtract(&self->comm, &self->compute, &trace.exposed) &&
	    np_intervals_union(&self->comm, &self->compute, &trace.busy) && sum_bubbles(&trace) &&
	    pair_all(&trace)) {
		for (size_t i = 0; i < trace.pairs.n; i++)
			count_pair(&trace, &trace.pairs.v[i]);
		show(&trace);
		tell(&trace);
	} else {
		self->oom = true;
	}
	np_intervals_release(&trace.exposed);
	np_intervals_release(&trace.busy);
	np_free(trace.bubble);
	np_vec_release(&trace.pairs);
}
