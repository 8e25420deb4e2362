/* What a watch has to say about ranks. */
#include <stdio.h>
#include <string.h>

#include "collect/dynamic_shm.h"
#include "collect/dynamic_watch.h"
#include "report/lang.h"

static const struct np_column rank_columns[] = {
	{"rank", "", NP_COL_INT, "by the name of its log"},
	{"state", "", NP_COL_TEXT, "how far it has come since the trigger"},
	{"start_step", "", NP_COL_INT, "first step of the capture"},
	{"stop_step", "", NP_COL_INT, "step at which it was stopped"},
	{"host", "", NP_COL_TEXT, "of its process"},
	{"pid", "", NP_COL_INT, "of its process"},
	{"output", "", NP_COL_TEXT, "new directory below prof_dir"},
};

static void cell_or_na(struct np_table *table, bool known, int64_t value)
{
	if (known)
		np_cell_int(table, value);
	else
		np_cell_na(table);
}

/* With -1 each rank starts at the step at which it sees the change: on several hosts, whose
 * monitors look at different times, these can be different steps. */
static void tell_apart(struct np_dyn_watching *self)
{
	int64_t least = INT64_MAX, most = -1;
	for (size_t i = 0; i < self->ranks.n; i++) {
		const struct np_dyn_rank *rank = &self->ranks.v[i];
		if (!rank->expected || !rank->log || rank->log->start_step < 0)
			continue;
		least = rank->log->start_step < least ? rank->log->start_step : least;
		most = rank->log->start_step > most ? rank->log->start_step : most;
	}
	if (most < 0 || least == most)
		return;
	struct np_finding *finding =
		np_report_finding(self->report, "DYN_START_DIFFERS", NP_WARNING,
	                          "ranks started at different steps, %lld to %lld: their steps do "
	                          "not belong together",
	                          (long long)least, (long long)most);
	np_finding_evidence(finding, self->dir, NULL, NULL,
	                    "log/dp_*: Start Dynamic Profiler at "
	                    "%lld … %lld step",
	                    (long long)least, (long long)most);
	np_finding_detail(finding, "start_step -1 is the next step after each rank has seen the "
	                           "change, and every host looks at its own times.");
	np_finding_advice(finding,
	                  "for an analysis across ranks give a number that is as many steps "
	                  "ahead as all hosts need to see it: at least the polling "
	                  "interval (2 to 50 s) divided by the time of a step");
	np_finding_command(finding, "npuprof dynamic trigger %s --start-step N",
	                   np_shell_quote(self->report, self->dir));
}

void np_dyn_tell_ranks(struct np_dyn_watching *self)
{
	struct np_table *table =
		NP_REPORT_TABLE(self->report, "ranks", "Ranks of the capture", rank_columns);
	for (size_t i = 0; i < self->ranks.n; i++) {
		const struct np_dyn_rank *rank = &self->ranks.v[i];
		const struct np_dyn_log *log = rank->log;
		if (!rank->expected && rank->state == NP_DYN_WAITING)
			continue; /* of an earlier job */
		np_cell_int(table, rank->rank);
		np_cell_word(table, np_dyn_state_name(rank->state));
		cell_or_na(table, log && log->start_step >= 0, log ? log->start_step : 0);
		cell_or_na(table, log && log->stop_step >= 0, log ? log->stop_step : 0);
		np_cell_cstr(table, log ? log->host : NULL);
		cell_or_na(table, log != NULL, log ? log->pid : 0);
		np_cell_cstr(table, rank->output);
	}
	tell_apart(self);
	if (self->relative)
		np_report_note(self->report,
		               "prof_dir is relative to where the job was started; looked in %s "
		               "from here, see --prof-dir",
		               self->prof_dir);
}

/* "0-3, 7" of the expected ranks in a state. */
static size_t list_ranks(const struct np_dyn_watching *self, enum np_dyn_state state,
                         struct np_buf *out)
{
	size_t n = 0;
	for (size_t i = 0; i < self->ranks.n; i++) {
		if (!self->ranks.v[i].expected || self->ranks.v[i].state != state)
			continue;
		size_t last = i;
		while (last + 1 < self->ranks.n && self->ranks.v[last + 1].expected &&
		       self->ranks.v[last + 1].state == state &&
		       self->ranks.v[last + 1].rank == self->ranks.v[last].rank + 1)
			last++;
		np_buf_printf(out, "%s%lld", out->len ? ", " : "",
		              (long long)self->ranks.v[i].rank);
		if (last > i)
			np_buf_printf(out, "-%lld", (long long)self->ranks.v[last].rank);
		n += last - i + 1;
		i = last;
	}
	return n;
}

struct monitors {
	size_t n;
	unsigned loads, failed;
	const char *why, *path;
};

static struct monitors monitors_of(const struct np_dyn_watching *self)
{
	struct monitors all = {0};
	for (size_t i = 0; i < self->logs.v.n; i++) {
		const struct np_dyn_log *log = &self->logs.v.v[i];
		if (!log->is_monitor)
			continue;
		all.n++;
		all.loads += log->loads;
		all.failed += log->failed_loads;
		if (log->failed_loads) {
			all.why = log->why;
			all.path = log->path;
		}
	}
	return all;
}

static void tell_waiting(struct np_dyn_watching *self, const char *ranks)
{
	struct monitors monitors = monitors_of(self);
	struct np_finding *finding;
	if (monitors.failed && !monitors.loads) {
		finding =
			np_report_finding(self->report, "DYN_LOAD_FAILED", NP_ERROR,
		                          "the monitor could not load the configuration (ranks %s "
		                          "wait)",
		                          ranks);
		np_finding_evidence(finding, monitors.path, NULL, NULL, "%s", monitors.why);
	} else if (!self->triggered) {
		finding = np_report_finding(self->report, "DYN_NOT_TRIGGERED", NP_ERROR,
		                            "start_step is still 0: nobody asked for a capture");
		np_finding_evidence(finding, self->config, "start_step", NULL, "0");
		np_finding_command(finding, "npuprof dynamic trigger %s",
		                   np_shell_quote(self->report, self->dir));
		return;
	} else if (!monitors.loads) {
		finding = np_report_finding(self->report, "DYN_NOT_LOADED", NP_ERROR,
		                            "no monitor has loaded the change (ranks %s wait)",
		                            ranks);
		np_finding_evidence(finding, self->dir, NULL, NULL, "%zu monitor logs", monitors.n);
		np_finding_advice(
			finding,
			"the monitor died with an earlier job and its shared memory was "
			"joined; or the file's time is not newer than what it has seen; or "
			"it looks only every 50 s because steps are long");
	} else {
		finding = np_report_finding(self->report, "DYN_NOT_STARTED", NP_ERROR,
		                            "the change was loaded, but ranks %s have not reacted",
		                            ranks);
		np_finding_evidence(finding, self->dir, NULL, NULL, "%u loads", monitors.loads);
		np_finding_advice(
			finding, "no dp.step() since (an optimizer of one's own does not count for "
				 "PROF_CONFIG_PATH); start_step is still to come; or the ranks "
				 "started on both sides of a full hour and the late ones have no "
				 "monitor");
	}
	np_finding_command(finding, "npuprof dynamic check %s",
	                   np_shell_quote(self->report, self->dir));
}

/* The line that the first rank of this state has logged. */
static void add_why(struct np_dyn_watching *self, struct np_finding *finding,
                    enum np_dyn_state state)
{
	for (size_t i = 0; i < self->ranks.n; i++) {
		const struct np_dyn_rank *rank = &self->ranks.v[i];
		if (!rank->expected || rank->state != state || !rank->log)
			continue;
		np_finding_evidence(finding, rank->log->path, NULL, NULL, "%s",
		                    *rank->log->why ? rank->log->why : np_dyn_state_name(state));
		return;
	}
}

static void tell_failed(struct np_dyn_watching *self, enum np_dyn_state state, const char *ranks)
{
	const char *dir = np_shell_quote(self->report, self->dir);
	struct np_finding *finding;
	if (state == NP_DYN_EXCLUDED) {
		finding = np_report_finding(self->report, "DYN_RANK_EXCLUDED", NP_ERROR,
		                            "ranks %s are expected, but not in rank_list", ranks);
		np_finding_command(finding, "npuprof dynamic trigger %s --ranks all", dir);
	} else if (state == NP_DYN_REFUSED) {
		finding = np_report_finding(self->report, "DYN_REFUSED", NP_ERROR,
		                            "start_step was over when ranks %s saw it", ranks);
		np_finding_command(finding, "npuprof dynamic trigger %s --start-step -1", dir);
	} else if (state == NP_DYN_BROKEN) {
		finding = np_report_finding(self->report, "DYN_SHM_ERROR", NP_ERROR,
		                            "ranks %s cannot read the shared memory", ranks);
		np_finding_advice(finding, "stop the job, clean up, start it again: dynamic "
		                           "profiling is off in these processes");
		np_finding_command(finding, "npuprof dynamic clean %s", dir);
	} else {
		finding = np_report_finding(self->report, "DYN_ENDED_EARLY", NP_ERROR,
		                            "ranks %s ended while they recorded", ranks);
		np_finding_advice(finding, "trigger earlier, or fewer steps: active + warmup steps "
		                           "have to follow start_step");
		np_finding_command(finding, "npuprof dynamic trigger %s --steps 1 --warmup 0", dir);
	}
	add_why(self, finding, state);
}

static void tell_late(struct np_dyn_watching *self, enum np_dyn_state state, const char *ranks)
{
	struct np_finding *finding;
	if (state == NP_DYN_UNSEEN) {
		finding = np_report_finding(self->report, "DYN_RANK_SILENT", NP_ERROR,
		                            "ranks %s have no log here", ranks);
		np_finding_evidence(finding, self->dir, NULL, NULL, "log/dp_*_rank_N.log");
		np_finding_advice(finding,
		                  "their processes have not called dp.init(), or with "
		                  "another directory; PROF_CONFIG_PATH has to be set on "
		                  "every host before the start, and takes effect after the "
		                  "first optimizer step");
		return;
	}
	if (state == NP_DYN_STOPPED)
		finding = np_report_finding(
			self->report, "DYN_NOT_ANALYSED", NP_ERROR,
			"ranks %s have recorded, but their output is not complete", ranks);
	else
		finding = np_report_finding(self->report, "DYN_NOT_STOPPED", NP_ERROR,
		                            "ranks %s are still recording, or about to", ranks);
	add_why(self, finding, state);
	np_finding_evidence(finding, self->prof_dir, NULL, NULL, "%s",
	                    np_tr(NP_N("no new complete *_ascend_pt of theirs")));
	if (state == NP_DYN_STOPPED)
		np_finding_advice(finding,
		                  "a longer --timeout; the right --prof-dir; or the analysis "
		                  "failed: see the capture's logs and npuprof check");
	else
		np_finding_advice(finding,
		                  "a longer --timeout: active + warmup steps have to pass; a "
		                  "rank that hangs in a collective never stops");
}

void np_dyn_tell_missing(struct np_dyn_watching *self)
{
	bool any = false;
	for (enum np_dyn_state state = NP_DYN_UNSEEN; state < NP_DYN_N_STATES; state++) {
		struct np_buf ranks = {0};
		if (state != NP_DYN_COMPLETE && list_ranks(self, state, &ranks) && ranks.ptr) {
			any = true;
			if (state == NP_DYN_WAITING)
				tell_waiting(self, ranks.ptr);
			else if (state > NP_DYN_COMPLETE)
				tell_failed(self, state, ranks.ptr);
			else
				tell_late(self, state, ranks.ptr);
		}
		np_buf_release(&ranks);
	}
	if (any)
		return;
	struct np_finding *finding = np_report_finding(self->report, "DYN_RANK_SILENT", NP_ERROR,
	                                               "no rank has a log here");
	np_finding_evidence(finding, self->dir, NULL, NULL, "log/dp_*_rank_N.log");
	np_finding_advice(finding, "no process uses this directory: PROF_CONFIG_PATH or dp.init() "
	                           "with another one, or no optimizer step yet");
}
