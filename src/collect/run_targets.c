/* What is said of targets and processes: what the hook did, and why a call was not reached. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "collect/run_internal.h"

/* ── targets ── */

static const char *first_near(struct np_run *run, const char *near)
{
	np_str rest;
	return np_arena_cstr(&run->report->arena, np_str_cut(np_str_of(near), ',', &rest));
}

np_str np_run_first_name(const struct np_run_target *target)
{
	np_str rest;
	return np_str_cut(np_str_of(target->qualname), '.', &rest);
}

/* The command with another name for a target. */
static const char *with_name(struct np_run *run, const struct np_run_target *target,
                             const char *module, const char *qualname)
{
	const char *name = np_arena_printf(&run->report->arena, "%s:%s", module, qualname);
	return name ? np_run_again_with_target(run, target->text, name) : "";
}

static void tell_no_python(struct np_run *run, struct np_finding *finding)
{
	if (run->end.out_bytes == 0 && run->events.files == 0)
		np_finding_detail(finding, "No Python process with the hook was seen at all.");
	else
		np_finding_detail(finding, "No Python process with the hook was seen.");
	np_finding_advice(
		finding,
		"The hook comes through PYTHONPATH: `python -I`, `-E` and `-S`, `sudo`, `docker "
		"run` "
		"and `ssh` lose it. Start the Python program itself under npuprof run, in the "
		"container or on the host where it runs.");
	np_finding_command(finding, "%s", np_run_again(run, NULL));
}

static void tell_too_few(struct np_run *run, struct np_finding *finding,
                         const struct np_target_facts *facts)
{
	char with[64];
	np_finding_detail(finding,
	                  "It was called %" PRId64 " times at most in one process; call %" PRIu64
	                  " was to be recorded.",
	                  facts->most_calls, run->call);
	np_finding_advice(finding,
	                  "Give it more work (requests, steps), or a shorter warm-up; with a "
	                  "compiler the first 10 calls stay warm-up (R6, R15).");
	if (*facts->overridden_by)
		np_finding_evidence(finding, run->events_dir, NULL, NULL,
		                    "overridden by %s: name that one", facts->overridden_by);
	if (facts->most_calls > 0)
		(void)snprintf(with, sizeof with, "--warmup %" PRId64, facts->most_calls - 1);
	np_finding_command(finding, "%s", np_run_again(run, facts->most_calls > 0 ? with : NULL));
}

static void tell_not_imported(struct np_run *run, const struct np_run_target *target,
                              const struct np_target_facts *facts, struct np_finding *finding)
{
	const char *near = *facts->near ? first_near(run, facts->near) : NULL;
	np_finding_detail(finding, "%s was never imported by any of %zu Python processes.",
	                  target->module, np_run_events_count(&run->events, "start"));
	if (near) {
		np_finding_advice(finding, "Modules that were: %s", facts->near);
		np_finding_command(finding, "%s", with_name(run, target, near, target->qualname));
		return;
	}
	np_finding_advice(finding, "Look for the class in the installed package; a program that is "
	                           "started as a script has the module __main__.");
	np_finding_command(finding, "grep -rnE --include='*.py' '(class|def) %.*s' .",
	                   NP_FMT(np_run_first_name(target)));
}

static void explain(struct np_run *run, const struct np_run_target *target,
                    const struct np_target_facts *facts, struct np_finding *finding)
{
	if (np_run_events_count(&run->events, "start") == 0) {
		tell_no_python(run, finding);
	} else if (facts->wrapped == 0 && facts->imported) {
		np_finding_detail(finding, "%s was imported, but: %s", target->module,
		                  *facts->reason ? facts->reason : "?");
		const char *near = *facts->near ? first_near(run, facts->near) : NULL;
		if (*facts->near)
			np_finding_advice(finding, "Names that are there: %s", facts->near);
		np_finding_command(finding, "%s",
		                   near ? with_name(run, target, target->module, near)
		                        : np_run_again(run, NULL));
	} else if (facts->wrapped == 0) {
		tell_not_imported(run, target, facts, finding);
	} else if (facts->profiling > facts->profiled) {
		np_finding_detail(finding,
		                  "Recording began and did not end: the process was killed, or "
		                  "it hangs.");
		np_finding_command(finding, "%s", np_run_again(run, NULL));
	} else if (facts->skipped) {
		np_finding_detail(finding, "It was called by ranks that are not to be recorded.");
		np_finding_command(finding, "%s", np_run_again(run, "--ranks all"));
	} else if (facts->most_calls != NP_NO_I64) {
		tell_too_few(run, finding, facts);
	} else {
		np_finding_detail(finding,
		                  "It was found in %zu processes, none of which lived to tell "
		                  "how often it was called.",
		                  facts->wrapped);
		np_finding_command(finding, "%s", np_run_again(run, NULL));
	}
}

/* Of those that were wanted, and of all: of those that had the target, some did not record. */
static void tell_ranks(struct np_run *run)
{
	struct np_buf list = {.max_bytes = 4096};
	size_t n = 0;
	for (size_t i = 0; run->ranks && i < run->n_ranks; i++)
		if (!np_run_events_recorded(&run->events, run->ranks[i]))
			np_buf_printf(&list, n++ ? ", %" PRId64 : "%" PRId64, run->ranks[i]);
	int64_t last = -1;
	for (size_t i = 0; !run->ranks && i < run->events.all.n; i++) {
		const struct np_run_event *event = &run->events.all.v[i];
		if (strcmp(event->event, "wrapped") != 0 || event->rank == NP_NO_I64 ||
		    event->rank == last || np_run_events_recorded(&run->events, event->rank))
			continue;
		last = event->rank;
		np_buf_printf(&list, n++ ? ", %" PRId64 : "%" PRId64, last);
	}
	if (n) {
		run->failed = true;
		struct np_finding *finding = np_report_finding(
			run->report, "RANK_NOT_RECORDED", NP_ERROR,
			"%zu ranks that were to record did not: %s", n, list.ptr ? list.ptr : "");
		np_finding_detail(finding,
		                  "Their processes ended before their call, or there is no "
		                  "such rank. The table of processes tells who was there.");
		np_finding_command(finding, "%s", np_run_again(run, NULL));
	}
	np_buf_release(&list);
}

static const struct np_column target_columns[] = {
	{"target", "", NP_COL_TEXT, "module:qualname"},
	{"found_in", "", NP_COL_INT, "processes in which it was wrapped"},
	{"calls", "", NP_COL_INT, "of the process that called it most; - if none lived to tell"},
	{"recorded_call", "", NP_COL_INT, "number of the call that is to be recorded, from 1"},
	{"recorded_in", "", NP_COL_INT, "processes that recorded it in good order"},
};

void np_run_tell_targets(struct np_run *run)
{
	struct np_target_facts facts[NP_RUN_MAX_TARGETS];
	size_t reached = 0;
	if (run->n_targets == 0)
		return;
	struct np_table *table = NP_REPORT_TABLE(run->report, "targets", "Targets", target_columns);
	for (size_t i = 0; i < run->n_targets; i++) {
		np_target_facts(&run->events, run->targets[i].text, &facts[i]);
		reached += facts[i].profiled;
		np_cell_cstr(table, run->targets[i].text);
		np_cell_int(table, (int64_t)facts[i].wrapped);
		if (facts[i].most_calls == NP_NO_I64)
			np_cell_na(table);
		else
			np_cell_int(table, facts[i].most_calls);
		np_cell_int(table, (int64_t)run->call);
		np_cell_int(table, (int64_t)facts[i].profiled);
	}
	if (reached)
		tell_ranks(run);
	/* several targets are a choice: the first that reaches its call is recorded */
	if (reached || np_run_events_count(&run->events, "no_torch_npu"))
		return;
	run->failed = true;
	for (size_t i = 0; i < run->n_targets; i++) {
		struct np_finding *finding =
			np_report_finding(run->report, "TARGET_NOT_REACHED", NP_ERROR,
		                          "%s was not recorded", run->targets[i].text);
		explain(run, &run->targets[i], &facts[i], finding);
	}
}

/* ── processes ── */

static const struct np_column process_columns[] = {
	{"pid", "", NP_COL_INT, "process"},
	{"parent", "", NP_COL_INT, "process that started it"},
	{"rank", "", NP_COL_INT, "RANK; - without"},
	{"start", "", NP_COL_TEXT, "exec, fork or spawn"},
	{"recorded", "", NP_COL_TEXT, "target that it recorded"},
	{"ended", "", NP_COL_BOOL, "it came to its own end"},
	{"command", "", NP_COL_TEXT, "its arguments"},
};

void np_run_cell(struct np_table *table, int64_t value)
{
	if (value == NP_NO_I64)
		np_cell_na(table);
	else
		np_cell_int(table, value);
}

static const struct np_run_event *of_process(const struct np_run *run, int64_t pid,
                                             const char *name)
{
	for (size_t i = 0; i < run->events.all.n; i++)
		if (run->events.all.v[i].pid == pid &&
		    strcmp(run->events.all.v[i].event, name) == 0)
			return &run->events.all.v[i];
	return NULL;
}

/* Workers that are forked or spawned often learn their RANK only then: later events have it. */
static int64_t rank_of_process(const struct np_run *run, int64_t pid)
{
	for (size_t i = 0; i < run->events.all.n; i++)
		if (run->events.all.v[i].pid == pid && run->events.all.v[i].rank != NP_NO_I64)
			return run->events.all.v[i].rank;
	return NP_NO_I64;
}

void np_run_tell_processes(struct np_run *run)
{
	if (np_run_events_count(&run->events, "start") == 0)
		return;
	struct np_table *table =
		NP_REPORT_TABLE(run->report, "processes", "Python processes", process_columns);
	for (size_t i = 0; i < run->events.all.n; i++) {
		const struct np_run_event *start = &run->events.all.v[i];
		if (strcmp(start->event, "start") != 0)
			continue;
		const struct np_run_event *done = of_process(run, start->pid, "profiled");
		np_str argv = np_str_of(start->argv);
		np_run_cell(table, start->pid);
		np_run_cell(table, start->ppid);
		np_run_cell(table, rank_of_process(run, start->pid));
		np_cell_cstr(table, start->method);
		np_cell_cstr(table, done ? done->target : NULL);
		np_cell_bool(table, of_process(run, start->pid, "end") != NULL);
		np_cell_text(table, np_str_sub(argv, 0, argv.len < 120 ? argv.len : 120));
	}
}

static const char *python_of(const struct np_run *run, int64_t pid)
{
	const struct np_run_event *start = of_process(run, pid, "start");
	return start && *start->python ? start->python : "?";
}

void np_run_tell_hook(struct np_run *run)
{
	struct np_finding *hook = NULL, *missing = NULL;
	bool recorded = np_run_events_count(&run->events, "profiled") > 0;
	for (size_t i = 0; i < run->events.all.n; i++) {
		const struct np_run_event *event = &run->events.all.v[i];
		if (strcmp(event->event, "hook_failed") == 0) {
			if (!hook)
				hook = np_report_finding(run->report, "HOOK_FAILED",
				                         recorded ? NP_WARNING : NP_ERROR,
				                         "the injected hook failed; the program "
				                         "went on without it");
			np_finding_evidence(hook, run->events_dir, NULL, NULL,
			                    "pid %" PRId64 ", %s: %s", event->pid, event->where,
			                    event->error);
		} else if (strcmp(event->event, "no_torch_npu") == 0) {
			run->failed = true;
			if (!missing)
				missing = np_report_finding(
					run->report, "NO_TORCH_NPU", NP_ERROR,
					"the call was reached, but torch_npu cannot be "
					"imported");
			np_finding_evidence(missing, run->events_dir, NULL, NULL,
			                    "pid %" PRId64 ", %s: %s", event->pid,
			                    python_of(run, event->pid), event->error);
		}
	}
	if (hook) {
		run->failed |= !recorded;
		np_finding_detail(hook, "events/<pid>.jsonl has the traceback.");
		np_finding_command(hook, "grep -h hook_failed %s/*.jsonl",
		                   np_shell_quote(run->report, run->events_dir));
	}
	if (missing) {
		np_finding_detail(missing,
		                  "torch_npu belongs into the Python that runs the program, and "
		                  "CANN's environment has to be set.");
		np_finding_command(missing,
		                   "source /usr/local/Ascend/ascend-toolkit/set_env.sh && %s",
		                   np_run_again(run, NULL));
	}
}
