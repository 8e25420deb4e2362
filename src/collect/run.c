/* The flow of a run. What is said of it stands in run_report.c. */
#include "collect/run.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/fs.h"
#include "collect/export_dumps.h"
#include "collect/run_internal.h"
#include "collect/sink.h"
#include "report/lang.h"

enum { SETTLE_MS = 1500, PRE_CHECK_SECONDS = 3600 };

static void say(const struct np_run *run, const char *line)
{
	if (run->options->say && line)
		run->options->say(line);
}

/* ── before ── */

/* One step of inference, by the user's own command: it must end well and print something
 * (R17). *good is the answer. */
static enum np_status pre_check(struct np_run *run, bool *good, struct np_err *err)
{
	const char *command = run->options->pre_check;
	char *argv[] = {(char[]){"sh"}, (char[]){"-c"}, (char *)(uintptr_t)command, NULL};
	char **env = NULL;
	struct np_spawn_end end;
	*good = true;
	if (!command)
		return NP_OK;
	extern char **environ;
	env = environ;
	const char *log = np_path_join(&run->report->arena, run->log_dir, "pre_check.log");
	struct np_spawn spec = {.argv = argv,
	                        .env = env,
	                        .log = log,
	                        .out_fd = run->options->out_fd,
	                        .err_fd = run->options->err_fd,
	                        .no_stdin = true,
	                        .timeout_s = PRE_CHECK_SECONDS,
	                        .grace_s = 10};
	say(run, np_tr("pre-check"));
	NP_TRY(np_spawn_run(&spec, &end, err));
	*good = np_spawn_succeeded(&end) && end.out_bytes > 0;
	if (*good)
		return NP_OK;
	struct np_finding *finding =
		np_report_finding(run->report, "PRECHECK_FAILED", NP_ERROR, "%s",
	                          end.exit_status == 0 ? NP_N("the pre-check printed nothing")
	                                               : NP_N("the pre-check failed"));
	np_finding_detail(finding, "The command was not started: a profile of a wrong result is of "
	                           "no use (R17).");
	np_finding_evidence(finding, log, NULL, NULL, "exit status %d, signal %d, %llu bytes",
	                    end.exit_status, end.signal, (unsigned long long)end.out_bytes);
	np_finding_command(finding, "sh -c %s", np_shell_quote(run->report, command));
	run->report->verdict = NP_VERDICT_FAIL;
	run->report->exit_code = 2;
	return NP_OK;
}

/* ── the command ── */

/* Has everything been recorded that was wanted? Twice in a row, so that a rank that starts
 * late is seen. */
static bool has_enough(void *ctx)
{
	struct np_run *run = ctx;
	struct np_arena arena;
	struct np_run_events events;
	np_arena_init(&arena);
	bool done = np_run_events_read(&arena, run->events_dir, &events, NULL) == NP_OK &&
	            np_run_events_done(&events, run->ranks, run->n_ranks);
	np_run_events_release(&events);
	np_arena_release(&arena);
	np_ns now = np_monotonic();
	if (!done)
		run->looked_ns = 0;
	else if (run->looked_ns == 0)
		run->looked_ns = now;
	return done && now - run->looked_ns >= (np_ns)SETTLE_MS * 1000000;
}

static void on_started(void *ctx, pid_t pid)
{
	struct np_run *run = ctx;
	run->end.pid = pid;
	say(run, np_arena_printf(&run->report->arena, np_tr("run directory: %s"), run->dir));
	if (run->preset && run->preset->server && !run->options->stop_after_capture)
		say(run, np_tr("it runs until the service ends; --stop-after-capture ends it "
		               "once all is recorded"));
	(void)np_run_write_json(run, NULL); /* it is complete without the pid, too */
}

/* The command itself is wrong: what it should be, where that can be known. */
static enum np_status not_started(struct np_run *run, int why, struct np_err *err)
{
	const char *name = run->argv[0];
	struct np_file_stat stat;
	bool there = np_file_stat(name, true, &stat, NULL) == NP_OK && stat.kind == NP_FILE_REG;
	bool script = np_str_ends(np_str_of(name), NP_STR(".py"));
	if (there && script)
		return np_err_set(err, NP_E_NOTFOUND, name,
		                  "cannot run: %s; start it by Python: npuprof run … -- python3 %s",
		                  strerror(why), run->command);
	if (there && !strchr(name, '/'))
		return np_err_set(err, NP_E_NOTFOUND, name,
		                  "it is not in PATH; for the file here: npuprof run … -- ./%s",
		                  run->command);
	if (there)
		return np_err_set(err, NP_E_NOTFOUND, name,
		                  "cannot run: %s; is it executable (chmod +x), and is there what "
		                  "its first line names?",
		                  strerror(why));
	return np_err_set(err, NP_E_NOTFOUND, name, "cannot run: %s; is it %s?", strerror(why),
	                  strchr(name, '/') ? "the right path" : "in PATH, and spelt right");
}

static enum np_status run_command(struct np_run *run, struct np_err *err)
{
	const struct np_run_options *options = run->options;
	char **env = NULL;
	NP_TRY(np_run_environment(run, &env, err));
	struct np_spawn spec = {.argv = run->argv,
	                        .env = env,
	                        .log = run->log,
	                        .out_fd = options->out_fd,
	                        .err_fd = options->err_fd,
	                        .timeout_s = options->timeout_s,
	                        .grace_s = options->grace_s > 0 ? options->grace_s : 30,
	                        .enough = options->stop_after_capture ? has_enough : NULL,
	                        .started = on_started,
	                        .ctx = run};
	struct np_spawn_end end;
	enum np_status status = np_spawn_run(&spec, &end, err);
	if (status != NP_OK) {
		/* nothing ran: nothing is left behind */
		np_remove_tree(run->dir);
		return end.exec_errno ? not_started(run, end.exec_errno, err) : status;
	}
	run->end = end;
	run->command_state = NP_RUN_ENDED;
	return NP_OK;
}

/* ── after ── */

/* SIGTERM and SIGHUP come from someone who wants an end now; ^C ends the command only. */
static bool must_hurry(const struct np_run *run)
{
	return run->end.interrupted == SIGTERM || run->end.interrupted == SIGHUP ||
	       run->end.interrupted == SIGQUIT;
}

static enum np_status export_all(struct np_run *run, struct np_err *err)
{
	size_t todo = 0;
	NP_TRY(np_dumps_find(&run->report->arena, run->search, run->start_ns, &run->dumps, err));
	for (size_t i = 0; i < run->dumps.all.n; i++) {
		struct np_dump *dump = &run->dumps.all.v[i];
		dump->complete = np_run_is_complete(run, dump);
		if (dump->complete)
			dump->how = "by itself";
		else
			todo += dump->raw;
	}
	if (todo == 0 || run->options->no_export || must_hurry(run))
		return NP_OK;
	run->state = "exporting";
	NP_TRY(np_run_write_json(run, err));
	run->export_python = np_run_find_python(run);
	if (!run->export_python)
		return NP_OK;
	say(run, np_arena_printf(&run->report->arena,
	                         np_tr("exporting %zu raw dumps with %s; ^C skips it"), todo,
	                         run->export_python));
	return np_run_export(run, err);
}

/* A watched directory holds older captures as well, which are not this run's: how many are,
 * in their order, in front of the others. */
static size_t new_in_front(const struct np_run *run, struct np_captures *all)
{
	size_t kept = 0;
	for (size_t i = 0; i < all->captures.n; i++) {
		const char *path = all->captures.v[i]->path;
		bool is_new = false;
		for (size_t d = 0; d < run->dumps.all.n && !is_new; d++) {
			size_t len = strlen(run->dumps.all.v[d].path);
			is_new = strncmp(path, run->dumps.all.v[d].path, len) == 0 &&
			         (path[len] == '\0' || path[len] == '/');
		}
		if (!is_new)
			continue;
		struct np_capture *old = all->captures.v[kept];
		all->captures.v[kept++] = all->captures.v[i];
		all->captures.v[i] = old;
	}
	return kept;
}

static enum np_status judge(struct np_run *run, struct np_err *err)
{
	struct np_captures *all = NULL;
	struct np_gate_options gate = {.profile = run->profile,
	                               .start_marker = run->marker,
	                               .some_ranks = run->n_targets && run->ranks,
	                               .threads = run->options->threads,
	                               .progress = run->options->progress};
	if (run->search != run->prof_dir) { /* another file system, another clock */
		gate.has_start_epoch = true;
		gate.start_epoch = (double)run->start_ns / 1e9;
		gate.tolerance_seconds = 1e-6; /* a double of seconds is good to 0.24 us */
	}
	enum np_status status = np_discover(run->search, &all, err);
	if (status == NP_E_NOTFOUND)
		return NP_OK; /* nothing was written at all, which the report tells */
	if (status == NP_OK) {
		size_t n = all->captures.n;
		all->captures.n = new_in_front(run, all);
		status = np_gate_run(all, &gate, run->report, err);
		all->captures.n = n; /* all are to be freed */
		run->gated = status == NP_OK;
		run->gate_verdict = run->report->verdict;
	}
	np_captures_free(all);
	return status;
}

/* Something can be judged: at least one dump has new deliverables, or an export was tried. */
static bool can_judge(const struct np_run *run)
{
	bool any = false, tried = false;
	for (size_t i = 0; i < run->dumps.all.n; i++) {
		any |= run->dumps.all.v[i].complete;
		tried |= run->dumps.all.v[i].msprof ||
		         (run->dumps.all.v[i].raw && run->export_python);
	}
	return any || tried;
}

static void conclude(struct np_run *run)
{
	struct np_report *report = run->report;
	run->failed |= run->gate_verdict == NP_VERDICT_FAIL;
	run->unknown |= run->gate_verdict == NP_VERDICT_UNKNOWN;
	report->verdict = run->failed    ? NP_VERDICT_FAIL
	                  : run->unknown ? NP_VERDICT_UNKNOWN
	                                 : NP_VERDICT_PASS;
	report->exit_code = run->failed ? 1 : run->unknown ? 3 : 0;
}

/* What was put in front goes behind what came after it. */
static void rotate(void **items, size_t n, size_t front)
{
	void *kept;
	for (size_t i = 0; i < front && front < n; i++) {
		kept = items[0];
		memmove(items, items + 1, (n - 1) * sizeof *items);
		items[n - 1] = kept;
	}
}

static enum np_status after(struct np_run *run, struct np_err *err)
{
	struct np_report *report = run->report;
	NP_TRY(np_run_events_read(&run->report->arena, run->events_dir, &run->events, err));
	NP_TRY(export_all(run, err));
	if (!run->options->no_check && can_judge(run))
		NP_TRY(judge(run, err));
	size_t tables = report->tables.n, findings = report->findings.n;
	np_run_tell(run);
	/* the run first, then the gate's details */
	rotate((void **)report->tables.v, report->tables.n, tables);
	rotate((void **)report->findings.v, report->findings.n, findings);
	conclude(run);
	run->state = "finished";
	run->ended_ns = np_time_now();
	return np_run_write_json(run, err);
}

static void release(struct np_run *run)
{
	np_run_events_release(&run->events);
	np_dumps_release(&run->dumps);
}

enum np_status np_run(const struct np_run_options *options, struct np_report *report,
                      struct np_err *err)
{
	struct np_run run = {.options = options, .report = report};
	bool good = false;
	NP_TRY(np_run_resolve(&run, err));
	NP_TRY(np_run_make_dir(&run, err));
	np_report_input(report, run.dir);
	NP_TRY(pre_check(&run, &good, err));
	if (!good) {
		run.state = "finished";
		return np_run_write_json(&run, err);
	}
	enum np_status status = run_command(&run, err);
	if (status == NP_OK)
		status = after(&run, err);
	release(&run);
	return status;
}

enum np_status np_run_finish(const char *dir, const struct np_run_options *options,
                             struct np_report *report, struct np_err *err)
{
	struct np_run_options own = *options;
	struct np_run run = {.options = &own, .report = report};
	NP_TRY(np_run_read_json(&run, &own, dir, err));
	if (options->profile && !np_gate_profile_parse(options->profile, &run.profile))
		return np_err_set(err, NP_E_USAGE, "--profile",
		                  "unknown profile '%s': use kernel, framework or cluster",
		                  options->profile);
	np_report_input(report, run.dir);
	enum np_status status = after(&run, err);
	release(&run);
	return status;
}
