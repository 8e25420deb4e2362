#include "collect/plan_schedule.h"

#include <stdio.h>
#include <string.h>

#include "report/lang.h"

enum {
	ROWS_HEAD = 5000, /* of the table schedule, at both ends of a long one */
	PICTURE_LINES = 40,
	CYCLES_SHOWN = 100,
	RANGES_SHOWN = 24, /* in recorded_steps */
	GROUP = 10,        /* steps between two blanks of the picture */
};

struct plan {
	const struct np_plan_schedule *options;
	struct np_schedule schedule;
	struct np_schedule_need need;
	struct np_schedule_end end;
	int64_t steps;
	struct np_report *report;
};

typedef long long ll;

/* ── what was given ── */

static void tell_reset(struct plan *self, const bool reset[NP_SCHEDULE_FIELDS])
{
	for (enum np_schedule_field i = 0; i < NP_SCHEDULE_FIELDS; i++) {
		if (!reset[i])
			continue;
		const char *name = np_schedule_field_name(i);
		struct np_finding *finding = np_report_finding(
			self->report, "SCHEDULE_RESET", NP_WARNING,
			"torch_npu will not take %s = %s: it prints \"Invalid parameter %s, reset "
			"it "
			"to %d.\" and goes on",
			name, self->options->words[i], name, i == NP_SCHEDULE_ACTIVE);
		np_finding_advice(finding, "write the number that is meant; the plan below uses "
		                           "what torch_npu uses");
	}
	if (self->schedule.warmup == 0) {
		struct np_finding *finding = np_report_finding(
			self->report, "SCHEDULE_NO_WARMUP", NP_INFO,
			"warmup is 0: torch_npu prints \"Profiler won't be using warmup, this can "
			"skew profiler results\"");
		np_finding_detail(
			finding, "The first recorded step then carries the start of the profiler "
				 "itself. One step of warm-up costs nothing; compiling (JIT, graph "
				 "mode) belongs in front of the profiler in any case.");
	}
}

/* This plan with another schedule or number of calls, as a command to copy. */
static void tell_command(struct np_finding *finding, const struct plan *self,
                         const struct np_schedule *s, int64_t steps)
{
	struct np_buf line = {0}, *out = &line;
	np_buf_printf(out, "npuprof plan schedule --wait %lld --warmup %lld --active %lld",
	              (ll)s->wait, (ll)s->warmup, (ll)s->active);
	np_buf_printf(out, " --repeat %lld --skip-first %lld", (ll)s->repeat, (ll)s->skip_first);
	if (s->skip_first_wait)
		np_buf_printf(out, " --skip-first-wait %lld", (ll)s->skip_first_wait);
	np_buf_printf(out, " --steps %lld", (ll)steps);
	if (line.ptr)
		np_finding_command(finding, "%s", line.ptr);
	self->report->failed = self->report->failed || line.failed;
	np_buf_release(&line);
}

/* ── the verdict ── */

/* What stop() meets, as one sentence. */
static struct np_finding *begin_incomplete(struct plan *self)
{
	const struct np_schedule_end *end = &self->end;
	struct np_cycle cycle;
	ll steps = self->steps;
	np_schedule_cycle(&self->schedule, self->steps, end->complete + 1, &cycle);
	if (cycle.fate == NP_CYCLE_PARTIAL)
		return np_report_finding(
			self->report, "SCHEDULE_INCOMPLETE", NP_ERROR,
			"%lld calls of step() stop in the middle of cycle %lld: %lld of its %lld "
			"steps are begun",
			steps, (ll)cycle.number, (ll)cycle.recorded, (ll)self->schedule.active);
	if (cycle.fate == NP_CYCLE_DELETED && end->complete > 0)
		return np_report_finding(self->report, "SCHEDULE_INCOMPLETE", NP_ERROR,
		                         "%lld calls of step() stop in the warm-up of cycle %lld: "
		                         "its directory is removed, %lld of %lld cycles are there",
		                         steps, (ll)cycle.number, (ll)end->complete,
		                         (ll)self->schedule.repeat);
	if (cycle.fate == NP_CYCLE_DELETED)
		return np_report_finding(self->report, "SCHEDULE_INCOMPLETE", NP_ERROR,
		                         "%lld calls of step() stop in the warm-up: the directory "
		                         "is removed, nothing is left",
		                         steps);
	if (end->complete > 0)
		return np_report_finding(self->report, "SCHEDULE_INCOMPLETE", NP_ERROR,
		                         "%lld calls of step() give %lld of %lld cycles; no "
		                         "message tells of the others",
		                         steps, (ll)end->complete, (ll)self->schedule.repeat);
	return np_report_finding(self->report, "SCHEDULE_INCOMPLETE", NP_ERROR,
	                         "%lld calls of step() never leave NONE: nothing is written, and "
	                         "no message says so",
	                         steps);
}

static void tell_incomplete(struct plan *self)
{
	struct np_finding *finding = begin_incomplete(self);
	int64_t missing = self->need.advised - self->steps;
	np_finding_detail(finding, "%lld calls are needed, %lld with one as margin.",
	                  (ll)self->need.clean, (ll)self->need.advised);
	if (self->end.warning)
		np_finding_evidence(finding, NULL, NULL, NULL, "[WARNING] %s", self->end.warning);
	if (missing <= self->schedule.skip_first)
		np_finding_advice(finding,
		                  "run %lld iterations more, each with its prof.step(), or lower "
		                  "skip_first to %lld",
		                  (ll)missing, (ll)(self->schedule.skip_first - missing));
	else
		np_finding_advice(finding,
		                  "run %lld iterations more, each with its prof.step(), or lower "
		                  "wait, warmup, active or repeat",
		                  (ll)missing);
	tell_command(finding, self, &self->schedule, self->need.advised);
}

static void tell_unclean(struct plan *self)
{
	struct np_finding *finding =
		np_report_finding(self->report, "SCHEDULE_UNCLEAN_EXIT", NP_WARNING,
	                          "after %lld calls of step() stop() meets %s", (ll)self->steps,
	                          np_step_action_name(self->end.state));
	np_finding_evidence(finding, NULL, NULL, NULL, "[WARNING] %s", self->end.warning);
	if (self->end.state == NP_STEP_SAVE)
		np_finding_detail(finding,
		                  "stop() closes the last step and saves, so the data are complete "
		                  "if the work of ProfilerStep#%lld runs before stop(). Where "
		                  "step() stands behind the work, that step is empty.",
		                  (ll)self->steps);
	else if (self->end.deleted)
		np_finding_detail(finding, "The directory of the next cycle, which has just begun, "
		                           "is removed; those before it stay.");
	else
		np_finding_detail(finding, "One more directory is written, with the beginning of "
		                           "another cycle; those before it are complete.");
	struct np_schedule once = self->schedule;
	if (once.repeat == 0)
		np_finding_advice(finding, "repeat 0 begins cycle after cycle: set repeat=1 where "
		                           "one is wanted");
	else
		np_finding_advice(finding, "call prof.step() once more behind the loop");
	once.repeat = once.repeat ? once.repeat : 1;
	tell_command(finding, self, &once, np_schedule_need(&once).advised);
}

static void judge(struct plan *self)
{
	const struct np_schedule *s = &self->schedule;
	int64_t asked = s->repeat > 0 ? s->repeat : 1;
	bool complete = self->end.complete >= asked;
	if (!complete)
		tell_incomplete(self);
	else if (self->end.warning)
		tell_unclean(self);
	if (!self->options->has_steps)
		return;
	self->report->verdict = complete ? NP_VERDICT_PASS : NP_VERDICT_FAIL;
	self->report->exit_code = complete ? 0 : 1;
}

/* ── tables ── */

static const struct np_column summary_columns[] = {
	{"state_at_exit", "", NP_COL_TEXT, "action that stop() leaves: that of step K"},
	{"recorded_steps", "", NP_COL_TEXT,
         "numbers N of ProfilerStep#N with RECORD or "
         "RECORD_AND_SAVE, step K included"},
	{"trace_ready_count", "", NP_COL_INT, "how often on_trace_ready runs, stop() included"},
	{"min_steps", "", NP_COL_INT,
         "calls of step() for a clean end: S = skip_first + "
         "repeat x (wait + warmup + active), without the first "
         "wait where skip_first_wait is set"},
	{"recommended_steps", "", NP_COL_INT, "one more as margin"},
	{"warning", "", NP_COL_TEXT, "what torch_npu prints at stop()"},
};

/* "5-7, 12-14": cycles that touch are one range. */
static void put_recorded(struct np_buf *out, const struct plan *self)
{
	const struct np_schedule *s = &self->schedule;
	bool gapless = s->wait + s->warmup == 0;
	int64_t shown = 0;
	struct np_cycle cycle;
	for (int64_t k = 1; k <= self->end.begun; k++) {
		if (shown++ == RANGES_SHOWN) {
			np_buf_printf(out, ", … (%lld)", (ll)self->end.begun);
			return;
		}
		np_schedule_cycle(s, self->steps, k, &cycle);
		int64_t first = cycle.first;
		if (gapless) {
			k = self->end.begun;
			np_schedule_cycle(s, self->steps, k, &cycle);
		}
		int64_t last = cycle.first + cycle.recorded - 1;
		np_buf_printf(out, "%s%lld", shown > 1 ? ", " : "", (ll)first);
		if (last > first)
			np_buf_printf(out, "-%lld", (ll)last);
	}
}

static void add_summary(struct plan *self)
{
	struct np_table *table =
		NP_REPORT_TABLE(self->report, "summary", "Summary", summary_columns);
	struct np_buf recorded = {0};
	put_recorded(&recorded, self);
	np_cell_cstr(table, np_step_action_name(self->end.state));
	np_cell_cstr(table, recorded.ptr);
	np_cell_int(table, self->end.ready);
	np_cell_int(table, self->need.clean);
	np_cell_int(table, self->need.advised);
	np_cell_cstr(table, self->end.warning);
	self->report->failed = self->report->failed || recorded.failed;
	np_buf_release(&recorded);
}

static const struct np_column need_columns[] = {
	{"steps", "", NP_COL_INT, "calls of prof.step()"},
	{"what", "", NP_COL_TEXT, "what they are enough for"},
	{"state_at_exit", "", NP_COL_TEXT, "action that stop() then leaves"},
};

static void add_need_row(struct plan *self, struct np_table *table, int64_t steps, const char *what)
{
	np_cell_int(table, steps);
	np_cell_word(table, what);
	np_cell_cstr(table, np_step_action_name(np_schedule_action(&self->schedule, steps)));
}

static void add_need(struct plan *self)
{
	struct np_table *table =
		NP_REPORT_TABLE(self->report, "need", "How many calls of step()", need_columns);
	add_need_row(self, table, self->need.data,
	             NP_N("fewest with complete data; a warning at stop()"));
	add_need_row(self, table, self->need.clean,
	             NP_N("minimum: the last on_trace_ready has run"));
	if (self->need.advised > self->need.clean)
		add_need_row(self, table, self->need.advised, NP_N("recommended: one as margin"));
	if (self->options->has_steps)
		add_need_row(self, table, self->steps, NP_N("given"));
}

static const struct np_column picture_columns[] = {
	{"from_step", "", NP_COL_INT, "number of the first step of the line"},
	{"steps", "", NP_COL_TEXT, "one character per step, in tens"},
};

/* How many steps a line has: whole tens, as many as fit. */
static int64_t line_length(const struct plan *self)
{
	enum { OTHERS = 2 + 2 + 1, FEWEST = GROUP, MOST = 100, USUAL = 50 };
	size_t left = (size_t)snprintf(NULL, 0, "%lld", (ll)self->steps);
	if (left < strlen("from_step"))
		left = strlen("from_step");
	int64_t room = (int64_t)self->options->width - (int64_t)left - OTHERS;
	if (self->options->width == 0)
		return USUAL;
	int64_t length = (room + 1) / (GROUP + 1) * GROUP;
	return length < FEWEST ? FEWEST : length > MOST ? MOST : length;
}

static void add_line(struct plan *self, struct np_table *table, int64_t from, int64_t length)
{
	static const char letters[] = {'.', 'w', 'R', 'S'};
	char line[128];
	size_t len = 0;
	for (int64_t i = from; i < from + length && i <= self->steps; i++) {
		if (i > from && (i - from) % GROUP == 0)
			line[len++] = ' ';
		line[len++] = letters[np_schedule_action(&self->schedule, i)];
		if (i == self->steps)
			line[len++] = '|';
	}
	np_cell_int(table, from);
	np_cell_text(table, (np_str){line, len});
}

/* A line for `length` steps; lines that hold nothing but one action are told in one. */
static void add_picture(struct plan *self)
{
	struct np_table *table =
		NP_REPORT_TABLE(self->report, "picture",
	                        "Picture: . none, w warm-up, R record, S record and save, | stop()",
	                        picture_columns);
	int64_t length = line_length(self), from = 0;
	for (int lines = 0; from <= self->steps; lines++) {
		int64_t end = np_schedule_run_end(&self->schedule, from);
		int64_t same = (end < self->steps ? end + 1 - from : self->steps - from) / length;
		if (lines == PICTURE_LINES) {
			np_cell_na(table);
			np_cell_printf(table, np_tr("… and so on up to step %lld"),
			               (ll)self->steps);
			return;
		}
		if (same > 1) {
			np_cell_int(table, from);
			int64_t told = same * length;
			np_cell_printf(
				table, np_tr("… %lld steps, all %s"), (ll)told,
				np_step_action_name(np_schedule_action(&self->schedule, from)));
			from += told;
			continue;
		}
		add_line(self, table, from, length);
		from += length;
	}
}

static const struct np_column cycle_columns[] = {
	{"cycle", "", NP_COL_INT, "1 … repeat; a directory *_ascend_pt each"},
	{"first_step", "", NP_COL_INT, "first N of ProfilerStep#N that is recorded"},
	{"last_step", "", NP_COL_INT, "last one, by the schedule"},
	{"recorded", "", NP_COL_INT, "how many of them these calls begin"},
	{"saved_in_call", "", NP_COL_INT, "call of step(), from 1, in which on_trace_ready runs"},
	{"data", "", NP_COL_TEXT, "what becomes of it"},
};

static void add_cycles(struct plan *self)
{
	const struct np_schedule *s = &self->schedule;
	struct np_table *table = NP_REPORT_TABLE(self->report, "cycles", "Cycles", cycle_columns);
	/* of an endless schedule those that begin, and the first in any case */
	int64_t n = s->repeat > 0 ? s->repeat : self->end.begun + self->end.deleted;
	n = n > 0 ? n : 1;
	for (int64_t k = 1; k <= n && k <= CYCLES_SHOWN; k++) {
		struct np_cycle cycle;
		np_schedule_cycle(s, self->steps, k, &cycle);
		np_cell_int(table, k);
		np_cell_int(table, cycle.first);
		np_cell_int(table, cycle.last);
		np_cell_int(table, cycle.recorded);
		np_cell_int(table, cycle.saved_in);
		np_cell_word(table, np_cycle_fate_name(cycle.fate));
	}
	if (n > CYCLES_SHOWN)
		np_report_note(self->report, "the table of cycles has the first %d of %lld",
		               CYCLES_SHOWN, (ll)n);
}

static const struct np_column schedule_columns[] = {
	{"step", "", NP_COL_INT, "0: entered by start(); i: entered by the i-th call of step()"},
	{"action", "", NP_COL_TEXT, "NONE, WARMUP, RECORD or RECORD_AND_SAVE"},
};

static void add_steps(struct plan *self)
{
	struct np_table *table =
		NP_REPORT_TABLE(self->report, "schedule", "Action of every step", schedule_columns);
	ll rows = self->steps + 1;
	bool cut = rows > 2 * ROWS_HEAD;
	for (int64_t i = 0; i <= self->steps; i++) {
		if (cut && i == ROWS_HEAD)
			i = self->steps - ROWS_HEAD + 1;
		np_cell_int(table, i);
		np_cell_cstr(table, np_step_action_name(np_schedule_action(&self->schedule, i)));
	}
	if (cut)
		np_report_note(self->report,
		               "the table of steps has the first and the last %d of %lld",
		               ROWS_HEAD, rows);
}

/* ── notes ── */

static void add_notes(struct plan *self)
{
	const struct np_schedule *s = &self->schedule;
	struct np_report *report = self->report;
	np_report_note(report, "ProfilerStep#i is what runs between call i of prof.step() (0: "
	                       "start()) and the next one. Where step() stands behind the work, "
	                       "it is iteration i, counted from 0.");
	np_report_note(report,
	               "with %lld calls the data are complete only if the work of the last "
	               "active step runs between the last call and stop()",
	               (ll)self->need.data);
	if (!self->options->has_steps)
		np_report_note(report, "no --steps: planned for the recommended %lld calls",
		               (ll)self->steps);
	if (self->end.state == NP_STEP_RECORD || self->end.state == NP_STEP_SAVE)
		np_report_note(report,
		               "ProfilerStep#%lld lies between the last call of step() and stop(): "
		               "it is empty unless work runs there",
		               (ll)self->steps);
	if (s->repeat == 0)
		np_report_note(report, "repeat 0 goes on for ever: the numbers of calls are those "
		                       "of the first cycle");
	if (s->repeat > 1 || self->end.begun > 1)
		np_report_note(report, "each cycle gets a directory *_ascend_pt of its own");
	if (self->end.warning)
		np_report_note(report, "only processes with RANK unset or 0 print the warning, and "
		                       "none with TORCH_NPU_WARNING_DISABLE=1");
	np_report_note(report, "in online inference the calls are the decode steps, which "
	                       "max_new_tokens bounds: raise it together with active");
}

enum np_status np_plan_schedule(const struct np_plan_schedule *self, struct np_report *report,
                                struct np_err *err)
{
	struct plan plan = {.options = self, .report = report};
	bool reset[NP_SCHEDULE_FIELDS];
	NP_TRY(np_schedule_parse(self->words, &plan.schedule, reset, err));
	if (self->has_steps && self->steps > (uint64_t)NP_SCHEDULE_STEPS_MAX)
		return np_err_set(err, NP_E_USAGE, NULL, "--steps is at most %lld",
		                  (ll)NP_SCHEDULE_STEPS_MAX);
	plan.need = np_schedule_need(&plan.schedule);
	plan.steps = self->has_steps ? (int64_t)self->steps : plan.need.advised;
	np_schedule_finish(&plan.schedule, plan.steps, &plan.end);
	tell_reset(&plan, reset);
	judge(&plan);
	add_summary(&plan);
	add_need(&plan);
	add_picture(&plan);
	add_cycles(&plan);
	add_steps(&plan);
	add_notes(&plan);
	return NP_OK;
}
