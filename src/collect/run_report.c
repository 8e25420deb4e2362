/* What is said of a run: tables, and findings with the command that repairs. */
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/fs.h"
#include "collect/export_dumps.h"
#include "collect/run_internal.h"
#include "gate/log_signs.h"
#include "report/lang.h"

enum { LOG_MAX_BYTES = 256 << 20, SHOWN_BYTES = 200 };

/* ── commands to copy ── */

static bool names_option(const char *with, const char *option)
{
	size_t len = strlen(option);
	return with && strncmp(with, option, len) == 0 && (with[len] == ' ' || with[len] == '\0');
}

static void add_option(struct np_run *run, struct np_buf *line, const char *with,
                       const char *option, const char *value)
{
	if (!value || names_option(with, option))
		return;
	np_buf_printf(line, " %s", option);
	if (*value)
		np_buf_printf(line, " %s", np_shell_quote(run->report, value));
}

const char *np_run_again(struct np_run *run, const char *with)
{
	const struct np_run_options *options = run->options;
	struct np_buf line = {0};
	char number[32];
	np_buf_add_cstr(&line, "npuprof run");
	if (with)
		np_buf_printf(&line, " %s", with);
	add_option(run, &line, with, "--preset", run->preset ? run->preset->name : NULL);
	for (size_t i = 0; i < run->n_targets; i++)
		add_option(run, &line, with, "--target", run->targets[i].text);
	if (options->warmup && !names_option(with, "--call"))
		add_option(run, &line, with, "--warmup", options->warmup);
	if (options->call && !names_option(with, "--warmup")) {
		(void)snprintf(number, sizeof number, "%" PRIu64, options->call);
		add_option(run, &line, with, "--call", number);
	}
	add_option(run, &line, with, "--ranks", options->ranks);
	add_option(run, &line, with, "--level", options->level);
	add_option(run, &line, with, "--export-type", options->export_type);
	add_option(run, &line, with, "--watch", options->watch);
	add_option(run, &line, with, "--out", options->out);
	add_option(run, &line, with, "--python", options->python);
	if (options->collectives)
		add_option(run, &line, with, "--collectives", "");
	if (options->stop_after_capture)
		add_option(run, &line, with, "--stop-after-capture", "");
	np_buf_printf(&line, " -- %s", run->command);
	const char *text = np_arena_cstr(&run->report->arena, np_buf_str(&line));
	np_buf_release(&line);
	return text ? text : "";
}

/* A word of the command: np_shell_quote() takes words for paths and protects their dashes. */
static void add_word(struct np_report *report, struct np_buf *line, const char *word)
{
	size_t dashes = strspn(word, "-");
	np_buf_add(line, word, dashes);
	if (dashes == 0 || word[dashes])
		np_buf_add_cstr(line, np_shell_quote(report, word + dashes));
}

const char *np_run_command_line(struct np_report *report, char *const *argv)
{
	struct np_buf text = {0};
	for (size_t i = 0; argv && argv[i]; i++) {
		if (i)
			np_buf_add_char(&text, ' ');
		add_word(report, &text, argv[i]);
	}
	const char *line = np_arena_cstr(&report->arena, np_buf_str(&text));
	np_buf_release(&text);
	return line ? line : "";
}

static const char *finish_command(struct np_run *run)
{
	const char *text = np_arena_printf(&run->report->arena, "npuprof run --finish %s",
	                                   np_shell_quote(run->report, run->dir));
	return text ? text : "";
}

/* ── how the command ended ── */

/* The last line of a log that says something. */
static np_str last_line(struct np_run *run, const char *path)
{
	np_str text;
	if (np_file_slurp(&run->report->arena, path, LOG_MAX_BYTES, &text, NULL) != NP_OK)
		return NP_STR("");
	text = np_str_trim(text);
	size_t at = text.len;
	while (at && text.ptr[at - 1] != '\n')
		at--;
	np_str line = np_str_from(text, at);
	return np_str_sub(line, 0, line.len < SHOWN_BYTES ? line.len : SHOWN_BYTES);
}

static const char *signal_name(int signal)
{
	static const struct {
		int signal;
		const char *name;
	} names[] = {{SIGKILL, "KILL"}, {SIGTERM, "TERM"}, {SIGINT, "INT"}, {SIGSEGV, "SEGV"},
	             {SIGABRT, "ABRT"}, {SIGBUS, "BUS"},   {SIGHUP, "HUP"}, {SIGQUIT, "QUIT"},
	             {SIGPIPE, "PIPE"}, {SIGFPE, "FPE"},   {SIGILL, "ILL"}};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (names[i].signal == signal)
			return names[i].name;
	return "?";
}

static void tell_killed(struct np_run *run, struct np_finding *finding)
{
	if (run->end.interrupted)
		np_finding_detail(finding,
		                  "It was ended from outside: npuprof got signal %d and "
		                  "handed it on.",
		                  run->end.interrupted);
	else if (run->end.signal == SIGKILL)
		np_finding_detail(finding,
		                  "Nobody can catch this signal: what is exported at the exit of a "
		                  "process never "
		                  "ran. A `pkill -9` at the end of a script does it, and the "
		                  "kernel when memory "
		                  "is out. npuprof exports what lies on the disk by itself (R38).");
	else
		np_finding_detail(finding, "A signal ended the process before its own end.");
}

static void tell_end(struct np_run *run)
{
	const struct np_spawn_end *end = &run->end;
	struct np_finding *finding = NULL;
	if (run->command_state == NP_RUN_LAUNCHER_DIED) {
		run->unknown = true;
		finding = np_report_finding(
			run->report, "LAUNCHER_DIED", NP_WARNING,
			"npuprof itself was ended: how the command ended is not known");
		np_finding_detail(finding,
		                  "run.json still says '%s'. What lies in the directory is "
		                  "judged all the same.",
		                  "running");
		return;
	}
	if (np_spawn_succeeded(end))
		return;
	run->failed = true;
	if (end->timed_out) {
		finding = np_report_finding(run->report, "COMMAND_TIMEOUT", NP_ERROR,
		                            "the command did not end within %g s",
		                            run->options->timeout_s);
		np_finding_command(finding, "%s", np_run_again(run, "--timeout 0"));
	} else if (end->signal) {
		finding = np_report_finding(run->report, "COMMAND_KILLED", NP_ERROR,
		                            "the command was ended by signal %d (%s)", end->signal,
		                            signal_name(end->signal));
		tell_killed(run, finding);
		np_finding_command(finding, "%s", np_run_again(run, NULL));
	} else {
		finding = np_report_finding(run->report, "COMMAND_FAILED", NP_ERROR,
		                            "the command ended with exit status %d",
		                            end->exit_status);
		np_finding_detail(finding, "Its capture, if there is one, is judged below; a run "
		                           "that fails is no base for figures.");
		np_finding_command(finding, "tail -n 50 %s", np_shell_quote(run->report, run->log));
	}
	np_str line = last_line(run, run->log);
	np_finding_evidence(finding, run->log, NULL, NULL, "%.*s", NP_FMT(line));
}

static void tell_rest_of_end(struct np_run *run)
{
	const struct np_spawn_end *end = &run->end;
	if (end->group_left) {
		struct np_finding *finding =
			np_report_finding(run->report, "STILL_RUNNING", NP_WARNING,
		                          "processes that the command started go on");
		np_finding_detail(finding,
		                  "They may hold the card, and the next run then is out of "
		                  "memory or slow.");
		np_finding_command(finding, "kill -- -%ld", (long)end->pid);
	}
	if (end->log_errno) {
		struct np_finding *finding =
			np_report_finding(run->report, "LOG_INCOMPLETE", NP_WARNING,
		                          "the log could not be written to its end");
		np_finding_evidence(finding, run->log, NULL, NULL, "%s", strerror(end->log_errno));
	}
	if (end->unseen_bytes)
		np_report_note(run->report,
		               "%" PRIu64
		               " bytes of output did not reach the terminal, which stood "
		               "still; the log has them",
		               end->unseen_bytes);
	if (run->events.broken)
		np_report_note(run->report, "%zu lines of %s are damaged: processes were killed",
		               run->events.broken, run->events_dir);
}

/* ── targets ── */

static const char *first_near(struct np_run *run, const char *near)
{
	np_str rest;
	return np_arena_cstr(&run->report->arena, np_str_cut(np_str_of(near), ',', &rest));
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
		np_finding_command(
			finding, "%s",
			np_run_again(run, np_arena_printf(&run->report->arena, "--target %s:%s",
		                                          near, target->qualname)));
		return;
	}
	np_finding_advice(finding, "Look for the class in the installed package; a program that is "
	                           "started as a script has the module __main__.");
	np_str rest, class = np_str_cut(np_str_of(target->qualname), '.', &rest);
	np_finding_command(finding, "grep -rnE --include='*.py' '(class|def) %.*s' .",
	                   NP_FMT(class));
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
		const char *with = near ? np_arena_printf(&run->report->arena, "--target %s:%s",
		                                          target->module, near)
		                        : NULL;
		np_finding_command(finding, "%s", np_run_again(run, with));
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

static const struct np_column target_columns[] = {
	{"target", "", NP_COL_TEXT, "module:qualname"},
	{"found_in", "", NP_COL_INT, "processes in which it was wrapped"},
	{"calls", "", NP_COL_INT, "of the process that called it most; - if none lived to tell"},
	{"recorded_call", "", NP_COL_INT, "number of the call that is to be recorded, from 1"},
	{"recorded_in", "", NP_COL_INT, "processes that recorded it in good order"},
};

static void tell_targets(struct np_run *run)
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

static void cell_or_na(struct np_table *table, int64_t value)
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

static void tell_processes(struct np_run *run)
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
		cell_or_na(table, start->pid);
		cell_or_na(table, start->ppid);
		cell_or_na(table, start->rank);
		np_cell_cstr(table, start->method);
		np_cell_cstr(table, done ? done->target : NULL);
		np_cell_bool(table, of_process(run, start->pid, "end") != NULL);
		np_cell_text(table, np_str_sub(argv, 0, argv.len < 120 ? argv.len : 120));
	}
}

static void tell_hook(struct np_run *run)
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
			                    "pid %" PRId64 ": %s", event->pid, event->error);
		}
	}
	if (hook) {
		np_finding_detail(hook, "events/<pid>.jsonl has the traceback.");
		np_finding_command(hook, "grep -h hook_failed %s/*.jsonl",
		                   np_shell_quote(run->report, run->events_dir));
	}
	if (missing)
		np_finding_command(missing,
		                   "source /usr/local/Ascend/ascend-toolkit/set_env.sh && %s",
		                   np_run_again(run, NULL));
}

/* ── captures ── */

static const struct np_column capture_columns[] = {
	{"capture", "", NP_COL_TEXT, "directory *_ascend_pt"},
	{"deliverables", "", NP_COL_BOOL, "new ones of every wanted type are there"},
	{"export", "", NP_COL_TEXT, "analyse, parser (below its decorator), or by itself"},
	{"seconds", "s", NP_COL_REAL, "time of its export; - if several went together"},
};

static void tell_export_failed(struct np_run *run, const struct np_dump *dump)
{
	struct np_finding *finding = np_report_finding(run->report, "EXPORT_FAILED", NP_ERROR,
	                                               "the export of %s wrote nothing new",
	                                               np_path_base(dump->path).ptr);
	const char *log = np_path_join(&run->report->arena, run->log_dir, "export.log");
	np_str line = last_line(run, log ? log : "");
	run->failed = true;
	np_finding_detail(finding, "Whatever it said: the deliverables are not there, or not newer "
	                           "than the start of the run (R34, R35). The raw dump is kept.");
	np_finding_evidence(finding, log, NULL, NULL, "%.*s", NP_FMT(line));
	np_finding_advice(finding,
	                  "Is CANN's set_env.sh sourced, so that msprof is in PATH? Is there "
	                  "room on the disk? Else copy the dump to a local disk (R62).");
	np_finding_command(finding, "%s",
	                   np_run_export_command(run, run->export_python, dump->path));
}

static void tell_raw_only(struct np_run *run, size_t raw)
{
	struct np_finding *finding =
		np_report_finding(run->report, "RAW_ONLY", NP_WARNING,
	                          "%zu raw dumps were recorded and are not exported", raw);
	run->unknown = true;
	if (run->options->no_export)
		np_finding_detail(finding, "--no-export was given.");
	else if (!run->export_python)
		np_finding_detail(finding,
		                  "No Python here finds torch_npu. The export needs it, but no "
		                  "card: any host with torch_npu and CANN will do.");
	else
		np_finding_detail(finding, "The export was not started, or was interrupted.");
	for (size_t i = 0; i < run->dumps.all.n; i++)
		if (!run->dumps.all.v[i].complete)
			np_finding_evidence(finding, run->dumps.all.v[i].path, NULL, NULL, "%s",
			                    "FRAMEWORK, PROF_*");
	np_finding_advice(finding, "--python names the Python that has torch_npu.");
	np_finding_command(finding, "%s", finish_command(run));
}

static void tell_captures(struct np_run *run)
{
	size_t raw = 0;
	if (run->dumps.all.n) {
		struct np_table *table =
			NP_REPORT_TABLE(run->report, "captures", "Captures", capture_columns);
		for (size_t i = 0; i < run->dumps.all.n; i++) {
			const struct np_dump *dump = &run->dumps.all.v[i];
			np_cell_cstr(table, dump->path);
			np_cell_bool(table, dump->complete);
			np_cell_cstr(table, dump->how);
			np_cell_real(table, dump->seconds > 0 ? dump->seconds : NAN);
			raw += !dump->complete;
		}
	}
	bool tried = run->export_python && !run->options->no_export;
	if (raw && tried)
		for (size_t i = 0; i < run->dumps.all.n; i++)
			if (!run->dumps.all.v[i].complete)
				tell_export_failed(run, &run->dumps.all.v[i]);
	if (raw && !tried)
		tell_raw_only(run, raw);
	bool wanted = np_run_events_count(&run->events, "profiled") > 0 ||
	              (run->n_targets == 0 && run->search != run->prof_dir);
	if (run->dumps.all.n || !wanted)
		return;
	run->failed = true;
	struct np_finding *finding =
		np_report_finding(run->report, "CAPTURE_MISSING", NP_ERROR,
	                          "nothing new was written below %s", run->search);
	np_finding_detail(finding, "%zu older captures are there; they are not of this run (R34).",
	                  run->dumps.old);
	np_finding_advice(finding,
	                  "Too few steps leave the recording in its warm-up, and torch_npu "
	                  "then removes the directory. Is the disk full?");
	np_finding_command(finding, "%s", np_run_again(run, NULL));
}

/* ── collectives ── */

static void tell_collectives(struct np_run *run)
{
	struct np_dir dir = {0};
	size_t logs = 0;
	if (!run->options->collectives)
		return;
	(void)np_dir_list(&run->report->arena, run->comm_dir, &dir, NULL);
	for (size_t i = 0; i < dir.n; i++)
		logs += np_str_ends(np_str_of(dir.v[i].name), NP_STR(".nplog"));
	if (logs) {
		np_report_note(run->report, "%zu logs of collectives: npuprof comm %s", logs,
		               np_shell_quote(run->report, run->comm_dir));
		return;
	}
	run->failed = true;
	struct np_finding *finding = np_report_finding(run->report, "COLLECTIVES_MISSING", NP_ERROR,
	                                               "no collective was recorded");
	np_finding_detail(finding,
	                  "Neither torch.distributed nor HCCL was called in a process with "
	                  "the recorder, or no process had it.");
	np_finding_command(finding, "%s", np_run_again(run, NULL));
}

/* ── the log ── */

static const struct np_column sign_columns[] = {
	{"line", "", NP_COL_INT, "of log/run.log, the first with this sign"},
	{"lines", "", NP_COL_INT, "with this sign"},
	{"sign", "", NP_COL_TEXT, "what the line holds"},
	{"meaning", "", NP_COL_TEXT, "what it means"},
};

struct seen_sign {
	size_t lines, first;
	np_str text;
};

static void tell_sign(struct np_run *run, const struct np_log_sign *sign,
                      const struct seen_sign *seen)
{
	char rows[32];
	struct np_finding *finding =
		np_report_finding(run->report, sign->fatal ? "RUN_FAILED" : "LOG_WARNING",
	                          sign->fatal ? NP_ERROR : NP_WARNING, "%s", sign->meaning);
	(void)snprintf(rows, sizeof rows, "%zu", seen->first);
	np_finding_evidence(finding, run->log, NULL, rows, "%.*s",
	                    (int)(seen->text.len < SHOWN_BYTES ? seen->text.len : SHOWN_BYTES),
	                    seen->text.ptr);
	if (sign->advice)
		np_finding_advice(finding, "%s", sign->advice);
	if (sign->command)
		np_finding_command(finding, "%s", sign->command);
}

void np_run_tell_log(struct np_run *run)
{
	struct np_arena *arena = &run->report->arena;
	np_str text = {NULL, 0}, rest;
	struct seen_sign *seen = np_arena_zalloc(arena, np_log_n_signs() * sizeof *seen);
	struct np_table *table = NULL;
	size_t number = 0;
	if (!seen || np_file_slurp(arena, run->log, LOG_MAX_BYTES, &text, NULL) != NP_OK ||
	    text.len == 0)
		return;
	char *copy = np_arena_alloc(arena, text.len);
	if (!copy)
		return;
	memcpy(copy, text.ptr, text.len);
	rest = (np_str){copy, np_log_strip_ansi(copy, text.len)};
	while (rest.len) {
		np_str line = np_str_cut(rest, '\n', &rest);
		size_t which = np_log_sign_of(line);
		number++;
		if (which == np_log_n_signs())
			continue;
		if (seen[which].lines++ == 0) {
			seen[which].first = number;
			seen[which].text = np_str_trim(line);
		}
	}
	for (size_t i = 0; i < np_log_n_signs(); i++) {
		if (seen[i].lines == 0)
			continue;
		if (!table)
			table = NP_REPORT_TABLE(run->report, "log_signs", "Signs in the log",
			                        sign_columns);
		np_cell_int(table, (int64_t)seen[i].first);
		np_cell_int(table, (int64_t)seen[i].lines);
		np_cell_cstr(table, np_log_sign(i)->text);
		np_cell_word(table, np_log_sign(i)->meaning);
		tell_sign(run, np_log_sign(i), &seen[i]);
	}
}

/* ── all of it ── */

static const struct np_column run_columns[] = {
	{"directory", "", NP_COL_TEXT, "of this run"},
	{"command", "", NP_COL_TEXT, "what was run"},
	{"started", "", NP_COL_TIME_NS, "UTC"},
	{"seconds", "s", NP_COL_REAL, "how long the command ran"},
	{"exit_status", "", NP_COL_INT, "of the command; - when a signal ended it"},
	{"signal", "", NP_COL_INT, "that ended it"},
	{"captures", "", NP_COL_INT, "new ones"},
	{"gate", "", NP_COL_TEXT, "verdict of the gate; - when it did not run"},
};

static void tell_run(struct np_run *run)
{
	struct np_table *table = NP_REPORT_TABLE(run->report, "run", "Run", run_columns);
	np_cell_cstr(table, run->dir);
	np_cell_cstr(table, run->command);
	np_cell_int(table, run->started_ns);
	np_cell_real(table, run->command_state == NP_RUN_ENDED ? run->end.seconds : NAN);
	cell_or_na(table, run->end.exit_status >= 0 ? run->end.exit_status : NP_NO_I64);
	cell_or_na(table, run->end.signal ? run->end.signal : NP_NO_I64);
	np_cell_int(table, (int64_t)run->dumps.all.n);
	np_cell_word(table, run->gated ? np_verdict_name(run->report->verdict) : NULL);
}

void np_run_tell(struct np_run *run)
{
	tell_run(run);
	tell_end(run);
	tell_targets(run);
	tell_hook(run);
	tell_captures(run);
	tell_collectives(run);
	tell_rest_of_end(run);
	np_run_tell_log(run);
	tell_processes(run);
	if (run->options->no_check && !run->failed && run->dumps.all.n) {
		run->unknown = true;
		np_report_note(run->report, "not judged: --no-check was given, which is not a pass "
		                            "(exit status 3)");
	}
}

/* ── presets ── */

static const struct np_column preset_columns[] = {
	{"preset", "", NP_COL_TEXT, "name for --preset"},
	{"framework", "", NP_COL_TEXT, "what it is for"},
	{"target", "", NP_COL_TEXT, "the call that is recorded; -: give --target"},
	{"warmup", "", NP_COL_INT, "calls before it"},
	{"compile_warmup", "", NP_COL_INT, "the same with --compile (R6)"},
	{"variables", "", NP_COL_TEXT, "set unless they are set already"},
	{"choose", "", NP_COL_TEXT, "which call to give"},
	{"notes", "", NP_COL_TEXT, "what else to know"},
};

static const struct np_column hint_columns[] = {
	{"preset", "", NP_COL_TEXT, "name for --preset"},
	{"model", "", NP_COL_TEXT, "or role"},
	{"target", "", NP_COL_TEXT, "for --target; look whether your version has it"},
};

void np_run_list_presets(struct np_report *report)
{
	struct np_table *table = NP_REPORT_TABLE(report, "presets", "Presets", preset_columns);
	struct np_table *hints = NP_REPORT_TABLE(report, "known_targets",
	                                         "Targets that depend on the model", hint_columns);
	for (size_t i = 0; i < np_n_presets(); i++) {
		const struct np_preset *preset = np_preset(i);
		struct np_buf text = {0};
		for (size_t v = 0; v < NP_PRESET_VARIABLES && preset->variables[v]; v++)
			np_buf_printf(&text, v ? " %s" : "%s", preset->variables[v]);
		np_cell_cstr(table, preset->name);
		np_cell_cstr(table, preset->framework);
		np_cell_cstr(table, preset->targets[0]);
		np_cell_int(table, preset->warmup);
		np_cell_int(table, preset->compile_warmup);
		np_cell_cstr(table, text.len ? text.ptr : NULL);
		np_cell_word(table, preset->choose);
		np_cell_word(table, preset->notes);
		np_buf_release(&text);
		for (size_t h = 0; h < NP_PRESET_HINTS && preset->hints[h].target; h++) {
			np_cell_cstr(hints, preset->name);
			np_cell_cstr(hints, preset->hints[h].model);
			np_cell_cstr(hints, preset->hints[h].target);
		}
	}
}
