/* What is said of a run: tables, and findings with the command that repairs. */
#include <ctype.h>
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

enum { SHOWN_BYTES = 200 };

/* ── how the command ended ── */

static const char *finish_command(struct np_run *run)
{
	const char *text = np_arena_printf(&run->report->arena, "npuprof run --finish %s",
	                                   np_shell_quote(run->report, run->dir));
	return text ? text : "";
}

/* The last line of a log that says something; only its end is read. */
static const char *last_line(struct np_run *run, const char *path)
{
	char text[4096];
	FILE *file = path ? fopen(path, "re") : NULL;
	size_t n = 0;
	if (file) {
		if (fseek(file, -(long)sizeof text, SEEK_END) != 0)
			rewind(file);
		n = fread(text, 1, sizeof text, file);
		(void)fclose(file);
	}
	np_str end = np_str_trim((np_str){text, np_log_strip_ansi(text, n)});
	size_t at = end.len;
	while (at && end.ptr[at - 1] != '\n' && end.ptr[at - 1] != '\r')
		at--;
	np_str line = np_str_sub(end, at, SHOWN_BYTES);
	const char *copy = np_arena_cstr(&run->report->arena, line);
	return copy ? copy : "";
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
		if (end->interrupted)
			np_finding_evidence(finding, run->log, NULL, NULL,
			                    "npuprof got signal %d and handed it on",
			                    end->interrupted);
		np_finding_command(finding, "tail -n 50 %s", np_shell_quote(run->report, run->log));
	}
	np_finding_evidence(finding, run->log, NULL, NULL, "%s", last_line(run, run->log));
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

/* ── captures ── */

static const struct np_column capture_columns[] = {
	{"capture", "", NP_COL_TEXT, "directory *_ascend_pt, or PROF_* of msprof"},
	{"deliverables", "", NP_COL_BOOL, "new ones of every wanted type are there"},
	{"export", "", NP_COL_TEXT, "analyse, parser (below its decorator), or by itself"},
	{"seconds", "s", NP_COL_REAL, "time of its export; - if several went together"},
};

static void tell_msprof_failed(struct np_run *run, const struct np_dump *dump)
{
	struct np_finding *finding = np_report_finding(run->report, "EXPORT_FAILED", NP_ERROR,
	                                               "the export of %s wrote nothing new",
	                                               np_path_base(dump->path).ptr);
	run->failed = true;
	np_finding_detail(finding, "The deliverables are not there, or not newer than the start of "
	                           "the run (R34, R35). The raw dump is kept.");
	np_finding_command(finding, "msprof --export=on --output=%s",
	                   np_shell_quote(run->report, dump->path));
}

/* The export's command for one dump, or for all of them when nothing else is beside them. */
static const char *export_again(struct np_run *run, size_t failed, const char *first)
{
	const char *what = failed == run->dumps.all.n && failed > 1 && run->search == run->prof_dir
	                           ? run->prof_dir
	                           : first;
	return np_run_export_command(run, run->export_python, what);
}

static void tell_export_failed(struct np_run *run, size_t failed)
{
	const char *log = np_path_join(&run->report->arena, run->log_dir, "export.log"),
		   *first = NULL;
	struct np_finding *finding =
		np_report_finding(run->report, "EXPORT_FAILED", NP_ERROR,
	                          "the export of %zu raw dumps wrote nothing new", failed);
	run->failed = true;
	np_finding_detail(finding, "Whatever it said: the deliverables are not there, or not newer "
	                           "than the start of the run (R34, R35). The raw dumps are kept.");
	np_finding_evidence(finding, log, NULL, NULL, "%s", last_line(run, log));
	for (size_t i = 0; i < run->dumps.all.n; i++) {
		const struct np_dump *dump = &run->dumps.all.v[i];
		if (dump->complete || dump->msprof)
			continue;
		first = first ? first : dump->path;
		np_finding_evidence(finding, dump->path, NULL, NULL, "%s",
		                    dump->raw ? "FRAMEWORK, PROF_*" : np_tr("nothing raw in it"));
	}
	np_finding_advice(finding,
	                  "Is CANN's set_env.sh sourced, so that msprof is in PATH? Is there "
	                  "room on the disk? Else copy the dump to a local disk (R62).");
	np_finding_command(finding, "%s", export_again(run, failed, first));
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
		if (!run->dumps.all.v[i].complete && !run->dumps.all.v[i].msprof)
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
			raw += !dump->complete && !dump->msprof;
		}
	}
	bool tried = run->export_python && !run->options->no_export;
	for (size_t i = 0; i < run->dumps.all.n; i++)
		if (!run->dumps.all.v[i].complete && run->dumps.all.v[i].msprof)
			tell_msprof_failed(run, &run->dumps.all.v[i]);
	if (raw && tried)
		tell_export_failed(run, raw);
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

/* ── the path ── */

/* What torch_npu takes in a path: . _ / - ~, white space, digits, letters, and U+4E00 to
 * U+9FA5 (torch_npu.md §4.5). */
static bool is_usual_path(const char *path)
{
	for (const unsigned char *p = (const unsigned char *)path; *p;) {
		if (*p < 0x80) {
			if (!isalnum(*p) && !strchr("._/-~ \t\n\v\f\r", *p))
				return false;
			p++;
			continue;
		}
		if ((*p & 0xf0) != 0xe0 || (p[1] & 0xc0) != 0x80 || (p[2] & 0xc0) != 0x80)
			return false;
		unsigned code = (*p & 0xfu) << 12 | (p[1] & 0x3fu) << 6 | (p[2] & 0x3fu);
		if (code < 0x4e00 || code > 0x9fa5)
			return false;
		p += 3;
	}
	return true;
}

static void tell_path(struct np_run *run)
{
	if (is_usual_path(run->dir) || run->n_targets == 0)
		return;
	struct np_finding *finding =
		np_report_finding(run->report, "PATH_UNUSUAL", NP_WARNING,
	                          "torch_npu may refuse the path of the run directory");
	np_finding_detail(finding, "It takes letters, digits, Chinese characters, white space and "
	                           "the characters . _ / - ~ only.");
	np_finding_evidence(finding, run->dir, NULL, NULL, "%s", "--out, --name");
	np_finding_command(finding, "%s", np_run_again(run, "--out npuprof-runs"));
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
	np_run_cell(table, run->end.exit_status >= 0 ? run->end.exit_status : NP_NO_I64);
	np_run_cell(table, run->end.signal ? run->end.signal : NP_NO_I64);
	np_cell_int(table, (int64_t)run->dumps.all.n);
	np_cell_word(table, run->gated ? np_verdict_name(run->gate_verdict) : NULL);
}

void np_run_tell(struct np_run *run)
{
	tell_run(run);
	tell_end(run);
	np_run_tell_targets(run);
	np_run_tell_hook(run);
	tell_captures(run);
	np_run_tell_collectives(run);
	tell_path(run);
	tell_rest_of_end(run);
	np_run_tell_log(run);
	np_run_tell_processes(run);
	if (run->options->no_check && !run->failed && run->dumps.all.n) {
		run->unknown = true;
		np_report_note(run->report, "not judged: --no-check was given, which is not a pass "
		                            "(exit status 3)");
	}
}
