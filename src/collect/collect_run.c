/* Stages pre-check, run and export: launch `npuprof run` there, follow it, learn how it ended. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collect/collect_internal.h"
#include "collect/collect_script.h"
#include "io/json.h"
#include "report/lang.h"

enum { DEFAULT_PATIENCE_S = 600, STOP_S = 90, START_S = 30, TALK_MS = 5000 };

/* ── go.sh ── */

static void assign(struct np_buf *out, const char *name, const char *value)
{
	np_buf_printf(out, "%s=", name);
	np_quote_word(out, np_str_of(value));
	np_buf_add_char(out, '\n');
}

static void export_text(struct np_buf *out, const char *variable)
{
	const char *equal = strchr(variable, '=');
	if (!equal)
		return;
	np_buf_printf(out, "export %.*s=", (int)(equal - variable), variable);
	np_quote_word(out, np_str_of(equal + 1));
	np_buf_add_char(out, '\n');
}

static void environment(struct leg *leg, struct np_buf *out)
{
	const struct collect *all = leg->all;
	const struct np_collect_options *options = all->options;
	const char *script = options->set_env;
	if (leg->has_set_env) {
		np_buf_add_cstr(out, "set --\n. "); /* it must not see arguments */
		np_quote_word(
			out,
			np_str_of(script ? script : "/usr/local/Ascend/ascend-toolkit/set_env.sh"));
		np_buf_add_char(out, '\n');
	}
	np_buf_add_cstr(out, "export PLATFORM=${PLATFORM:-ascend_npu}\n");
	np_buf_printf(out, "export HCCL_NPU_SOCKET_PORT_RANGE=${HCCL_NPU_SOCKET_PORT_RANGE:-");
	np_quote_word(out, np_str_of(options->port_range ? options->port_range : "20000-21000"));
	np_buf_add_cstr(out, "}\n");
	if (*leg->devices)
		np_buf_printf(out, "export ASCEND_RT_VISIBLE_DEVICES=%s\n", leg->devices);
	np_buf_printf(out, "export NPUPROF_HOST_INDEX=%zu NPUPROF_N_HOSTS=%zu NPUPROF_HOSTS=",
	              leg->index, all->hosts.v.n);
	for (size_t i = 0; i < all->hosts.v.n; i++) {
		np_buf_add_cstr(out, i ? "," : "");
		np_quote_word(out, np_str_of(all->hosts.v.v[i].name));
	}
	np_buf_add_char(out, '\n');
	for (size_t i = 0; options->env && options->env[i]; i++)
		export_text(out, options->env[i]);
	for (size_t i = 0; leg->arm->env && leg->arm->env[i]; i++)
		export_text(out, leg->arm->env[i]);
}

/* "0,1" as words; a lock per device. */
static void devices(const struct leg *leg, struct np_buf *out)
{
	np_buf_add_cstr(out, "devices='");
	for (const char *at = leg->devices; *at; at++)
		np_buf_add_char(out, *at == ',' ? ' ' : *at);
	np_buf_add_cstr(out, "'\n");
}

static void head(struct leg *leg, const char *tag, struct np_buf *out)
{
	assign(out, "job", leg->job);
	np_buf_add_cstr(out, "cd -- \"$job\" || exit 73\n");
	devices(leg, out);
	np_buf_add_cstr(out, COLLECT_LOCK_SCRIPT);
	np_buf_printf(out,
	              "echo \"$$ $(cut -d' ' -f22 /proc/$$/stat)\" > %s.pid.part && mv -f "
	              "%s.pid.part %s.pid\n"
	              "end() { cd -- \"$job\"; unlock; echo \"$1\" > %s.status.part && "
	              "mv -f %s.status.part %s.status; exit 0; }\n"
	              "trap 'end 143' TERM\n"
	              "exec >> log 2>&1\n",
	              tag, tag, tag, tag, tag, tag);
	environment(leg, out);
}

/* The words of `npuprof run`: exec'ed by a shell that has noted its number. */
static void start(struct leg *leg, struct np_buf *out)
{
	np_buf_add_cstr(out, "sh -c 'echo \"$$ $(cut -d\" \" -f22 /proc/$$/stat)\" > "
	                     "\"$0/npuprof.pid\"; exec \"$@\"' \"$job\" ");
	np_quote_word(out, np_str_of(leg->npuprof));
	/* what it finds is told here as well, in one language */
	np_buf_printf(out, " run --json --lang %s -o \"$job/report.json\"",
	              np_lang() == NP_LANG_ZH ? "zh" : "en");
}

static void tail(struct np_buf *out)
{
	np_buf_add_cstr(out, " < /dev/null\nend $?\n");
}

static void words(struct np_buf *out, const char *const *list)
{
	for (size_t i = 0; list && list[i]; i++) {
		np_buf_add_char(out, ' ');
		np_quote_word(out, np_str_of(list[i]));
	}
}

static void go_script(struct leg *leg, const char *const *command, struct np_buf *out)
{
	const char *chdir = leg->all->options->chdir;
	head(leg, "go", out);
	np_buf_add_cstr(out, "cd -- ");
	np_quote_word(out, np_str_of(leg->workspace));
	np_buf_add_cstr(out, " || end 4\n");
	if (leg->cwd != leg->workspace || chdir) {
		np_buf_add_cstr(out, "cd -- ");
		np_quote_word(out, np_str_of(leg->cwd));
		np_buf_add_cstr(out, " || end 4\n");
	}
	start(leg, out);
	np_buf_add_cstr(out, " --out \"$job\" --name run");
	words(out, leg->all->options->run);
	np_buf_add_cstr(out, " --");
	words(out, command);
	tail(out);
}

static void finish_script(struct leg *leg, struct np_buf *out)
{
	head(leg, "finish", out);
	start(leg, out);
	np_buf_add_cstr(out, " --finish \"$job/\"");
	np_quote_word(out, np_str_of(leg->run_dir));
	tail(out);
}

/* ── launching ── */

static enum np_status launch(struct leg *leg, const char *tag, struct np_err *err)
{
	struct np_buf script = {0};
	struct np_outcome outcome;
	const char *const args[] = {leg->job, tag, NULL};
	const char *const *command = collect_command(leg);
	if (!command)
		return np_err_nomem(err);
	if (strcmp(tag, "go") == 0)
		go_script(leg, command, &script);
	else
		finish_script(leg, &script);
	struct np_source input = {.kind = NP_SOURCE_BYTES, .bytes = np_buf_str(&script)};
	enum np_status status = script.failed
	                                ? np_err_nomem(err)
	                                : collect_ask(leg, "launch", COLLECT_LAUNCH_SCRIPT, args,
	                                              &input, NULL, &outcome, NULL, err);
	if (!script.failed)
		np_outcome_release(&outcome);
	np_buf_release(&script);
	return status;
}

/* ── following ── */

bool collect_far_parse(np_str text, struct far *out)
{
	static const char *const names[] = {"starts", "runs", "ended", "busy", "gone"};
	np_str line = np_str_cut(text, '\n', &out->log), word = np_str_cut(line, ' ', &line);
	size_t i = 0;
	while (i < sizeof names / sizeof *names && !np_str_is(word, names[i]))
		i++;
	out->state = (enum far_state)i;
	word = np_str_cut(line, ' ', &line);
	if (!np_str_to_i64(word, &out->status))
		out->status = NP_NO_EXIT;
	word = np_str_cut(line, ' ', &line);
	return i < sizeof names / sizeof *names && np_str_to_u64(word, &out->bytes) &&
	       np_str_to_u64(np_str_trim(line), &out->lines);
}

/* A line without what colours it (R11e), at most `size` bytes; whole characters of UTF-8. */
static void plain(np_str line, char *out, size_t size)
{
	size_t n = 0;
	for (size_t i = 0; i < line.len && n + 1 < size; i++) {
		unsigned char c = (unsigned char)line.ptr[i];
		if (c == 0x1b && i + 1 < line.len && line.ptr[i + 1] == '[') {
			i += 2;
			while (i < line.len && (line.ptr[i] < '@' || line.ptr[i] > '~'))
				i++;
		} else if (c >= 0x20 && c != 0x7f) {
			out[n++] = (char)c;
		}
	}
	if (n + 1 == size) { /* it may have been cut within a character */
		while (n > 0 && ((unsigned char)out[n - 1] & 0xc0U) == 0x80U)
			n--;
		n -= n > 0 && (unsigned char)out[n - 1] >= 0xc0;
	}
	out[n] = '\0';
}

/* The last line with something in it. */
static void last_line(np_str log, char *out, size_t size)
{
	char text[128];
	*out = '\0';
	while (log.len) {
		plain(np_str_trim(np_str_cut(log, '\n', &log)), text, sizeof text);
		if (*text)
			(void)snprintf(out, size, "%s", text);
	}
}

struct follow {
	struct leg *leg;
	const char *tag;
	uint64_t known_bytes, told_lines, told_ms, lost_ms, begun_ms;
	bool stopping;
	uint64_t stop_ms;
	char busy[512];
};

static const atomic_bool never;

static void tell_log(struct follow *self, const struct far *far)
{
	uint64_t now = np_clock_ms();
	char line[128];
	if (far->lines == self->told_lines ||
	    (self->told_ms && now - self->told_ms < TALK_MS && far->state == FAR_RUNS))
		return;
	last_line(far->log, line, sizeof line);
	self->told_lines = far->lines;
	self->told_ms = now;
	collect_say(self->leg, np_tr("%llu lines of log: %s"), (unsigned long long)far->lines,
	            line);
}

static enum np_status look(struct follow *self, struct far *far, struct np_outcome *outcome,
                           struct np_err *err)
{
	char known[24];
	(void)snprintf(known, sizeof known, "%llu", (unsigned long long)self->known_bytes);
	const char *const args[] = {self->leg->job, self->tag, known, NULL};
	/* while it is stopped, Ctrl-C has been heard already */
	NP_TRY(collect_ask(self->leg, "look", COLLECT_LOOK_SCRIPT, args, NULL,
	                   self->stopping ? &never : NULL, outcome, NULL, err));
	if (!collect_far_parse(np_buf_str(&outcome->out), far))
		return np_err_set(err, NP_E_FORMAT, self->leg->host,
		                  "it tells something strange about the run");
	return NP_OK;
}

static enum np_status stop(struct follow *self, struct np_err *err)
{
	struct np_outcome outcome;
	const char *const args[] = {self->leg->job, NULL};
	self->stopping = true;
	self->leg->stopped = true;
	self->stop_ms = np_clock_ms();
	collect_say(self->leg, "%s", np_tr(NP_N("ending the run; what exists is fetched")));
	enum np_status status = collect_ask(self->leg, "stop", COLLECT_STOP_SCRIPT, args, NULL,
	                                    &never, &outcome, NULL, err);
	np_outcome_release(&outcome);
	return status;
}

/* A connection that is lost is no end: the run goes on. E_IO when it stays lost. */
static bool is_patient(struct follow *self, const struct np_err *err)
{
	double patience = self->leg->all->options->patience_s;
	uint64_t now = np_clock_ms(),
		 limit = (uint64_t)((patience > 0 ? patience : DEFAULT_PATIENCE_S) * 1000);
	if (self->lost_ms == 0) {
		self->lost_ms = now;
		collect_say(self->leg, np_tr("%s; the run goes on there, trying again"), err->msg);
	}
	return now - self->lost_ms < limit;
}

/* One look. *over: `far` is the end. */
static enum np_status step(struct follow *self, struct far *far, bool *over, struct np_err *err)
{
	struct np_outcome outcome = {0};
	if (!self->stopping && collect_cancelled(self->leg))
		NP_TRY(stop(self, err));
	enum np_status status = look(self, far, &outcome, err);
	uint64_t now = np_clock_ms();
	if (status == NP_OK) {
		self->lost_ms = 0;
		tell_log(self, far);
		self->known_bytes = far->bytes;
		if (far->state == FAR_BUSY)
			(void)snprintf(self->busy, sizeof self->busy, "%.*s", NP_FMT(far->log));
		*over = far->state == FAR_ENDED || far->state == FAR_BUSY ||
		        far->state == FAR_GONE ||
		        (far->state == FAR_STARTS && now - self->begun_ms > START_S * 1000U) ||
		        (self->stopping && now - self->stop_ms > STOP_S * 1000U);
	} else if ((status == NP_E_IO && is_patient(self, err)) ||
	           (!self->stopping && collect_cancelled(self->leg))) {
		status = NP_OK;
	}
	far->log = (np_str){NULL, 0};
	np_outcome_release(&outcome);
	return status;
}

static enum np_status follow(struct follow *self, struct far *far, struct np_err *err)
{
	double poll = self->leg->all->options->poll_s;
	uint64_t most = (uint64_t)((poll > 0 ? poll : 2) * 1000), wait = most < 200 ? most : 200;
	bool over = false;
	self->begun_ms = np_clock_ms();
	for (;;) {
		NP_TRY(step(self, far, &over, err));
		if (over)
			return NP_OK;
		(void)np_sleep_ms(wait, self->stopping ? NULL : self->leg->all->options->cancel);
		wait = wait * 2 < most ? wait * 2 : most;
	}
}

/* ── how it ended ── */

struct ended {
	bool known; /* there is a run.json */
	bool finished;
	bool succeeded;
	int64_t exit_code, signal;
	size_t n_captures, n_exported;
};

static void take_captures(const struct np_jval *root, struct ended *out)
{
	const struct np_jval *list = np_jget(root, "captures");
	for (size_t i = 0; list && list->type == NP_J_ARRAY && i < list->n; i++) {
		bool complete = false;
		out->n_captures++;
		if (np_jbool(np_jget(&list->child[i], "complete"), &complete) && complete)
			out->n_exported++;
	}
}

static enum np_verdict verdict_of(np_str name)
{
	for (int v = NP_VERDICT_PASS; v <= (int)NP_VERDICT_UNKNOWN; v++)
		if (np_str_is(name, np_verdict_name((enum np_verdict)v)))
			return (enum np_verdict)v;
	return NP_VERDICT_NONE;
}

static enum np_status take_result(struct leg *leg, np_str text, struct ended *out,
                                  struct np_err *err)
{
	const struct np_jval *root = NULL;
	struct np_input *input = NULL;
	np_str dir = np_str_cut(text, '\n', &text);
	text = np_arena_dup(&leg->arena, text);
	leg->run_dir = np_arena_cstr(&leg->arena, dir);
	if (!text.ptr || !leg->run_dir)
		return np_err_nomem(err);
	NP_TRY(np_input_open_mem(text, "run.json", 0, &input, err));
	enum np_status status = np_json_parse(&leg->arena, input, NP_JSON_STRICT, &root, NULL, err);
	np_input_close(input);
	NP_TRY(status);
	const struct np_jval *command = np_jget(root, "command_status");
	out->known = true;
	out->finished = np_str_is(np_jstr(np_jget(root, "state")), "finished");
	out->signal = 0;
	(void)np_ji64(np_jget(root, "exit_code"), &out->exit_code);
	(void)np_jbool(np_jget(command, "succeeded"), &out->succeeded);
	if (!np_ji64(np_jget(command, "exit"), &leg->command_exit) &&
	    np_ji64(np_jget(command, "signal"), &out->signal))
		leg->command_exit = 128 + out->signal;
	leg->run_verdict = verdict_of(np_jstr(np_jpath(root, "gate.verdict")));
	np_str profile = np_jstr(np_jget(root, "gate_profile"));
	leg->gate_profile = np_arena_cstr(&leg->arena, profile.len ? profile : NP_STR("kernel"));
	take_captures(root, out);
	leg->exported = out->n_captures > 0 && out->n_exported == out->n_captures;
	return leg->gate_profile ? NP_OK : np_err_nomem(err);
}

static enum np_status learn(struct leg *leg, struct ended *out, struct np_err *err)
{
	struct np_outcome outcome;
	int status_there = 0;
	const char *const args[] = {leg->job, NULL};
	*out = (struct ended){.exit_code = NP_NO_EXIT};
	enum np_status status =
		collect_ask(leg, "result", COLLECT_RESULT_SCRIPT, args, NULL,
	                    leg->stopped ? &never : NULL, &outcome, &status_there, err);
	if (status == NP_OK && status_there == 0)
		status = take_result(leg, np_buf_str(&outcome.out), out, err);
	np_outcome_release(&outcome);
	return status;
}

/* ── what that means ── */

static void run_failed(struct leg *leg, const char *what)
{
	struct np_finding *finding =
		np_report_finding(leg->report, "COLLECT_RUN_FAILED", NP_ERROR, "%s", what);
	np_finding_evidence(finding, "run/log", NULL, NULL, "%s", leg->job);
	np_finding_advice(finding, "The log and report.json of npuprof run tell why; they are "
	                           "fetched with what was recorded. When it is repaired, collect "
	                           "into another directory.");
}

static void tell_pre_check(struct leg *leg, const struct ended *ended)
{
	bool asked = false;
	for (size_t i = 0; leg->all->options->run && leg->all->options->run[i]; i++)
		asked |= strncmp(leg->all->options->run[i], "--pre-check=", 12) == 0;
	if (!asked)
		return;
	bool failed = leg->run_exit == 2 && leg->command_exit == NP_NO_EXIT;
	if (!ended->known && !failed)
		return;
	collect_stage(leg, STAGE_PRE_CHECK, failed ? NP_VERDICT_FAIL : NP_VERDICT_PASS, 0, "%s",
	              failed ? np_tr(NP_N("the command was not started")) : "");
	if (failed)
		run_failed(leg, np_tr(NP_N("the pre-check failed, the command was not started")));
}

static void tell_export(struct leg *leg, const struct ended *ended)
{
	enum np_verdict verdict = leg->exported                            ? NP_VERDICT_PASS
	                          : leg->stopped || ended->n_captures == 0 ? NP_VERDICT_UNKNOWN
	                          : leg->run_exit == 1                     ? NP_VERDICT_FAIL
	                                                                   : NP_VERDICT_UNKNOWN;
	collect_stage(leg, STAGE_EXPORT, verdict, 0, "%zu of %zu captures", ended->n_exported,
	              ended->n_captures);
}

static void tell_run(struct leg *leg, const struct ended *ended, np_ns begin)
{
	char what[200];
	enum np_verdict verdict = NP_VERDICT_FAIL;
	if (leg->stopped)
		(void)snprintf(what, sizeof what, "%s", np_tr(NP_N("ended by Ctrl-C")));
	else if (!ended->known)
		(void)snprintf(what, sizeof what,
		               leg->run_exit == NP_NO_EXIT
		                       ? np_tr("npuprof run never began, or was ended (%lld); see "
		                               "the log")
		                       : np_tr("npuprof run ended with %lld and left no run.json"),
		               (long long)leg->run_exit);
	else if (leg->command_exit == NP_NO_EXIT)
		(void)snprintf(what, sizeof what, "%s",
		               leg->stages[STAGE_PRE_CHECK].verdict == NP_VERDICT_FAIL
		                       ? np_tr(NP_N("not started"))
		                       : np_tr(NP_N("how the command ended is not known")));
	else
		(void)snprintf(what, sizeof what,
		               np_tr("the command ended with %lld, npuprof run with %lld"),
		               (long long)leg->command_exit, (long long)leg->run_exit);
	bool good = ended->known && ended->succeeded && !leg->stopped;
	if (good && leg->run_exit == 0)
		verdict = NP_VERDICT_PASS;
	else if (good && leg->run_exit == 3)
		verdict = NP_VERDICT_UNKNOWN;
	collect_stage(leg, STAGE_RUN, verdict, begin, "%s", what);
	if (verdict == NP_VERDICT_FAIL && leg->stages[STAGE_PRE_CHECK].verdict != NP_VERDICT_FAIL)
		run_failed(leg, what);
}

static void tell_busy(struct leg *leg, const char *holder, np_ns begin)
{
	struct np_finding *finding =
		np_report_finding(leg->report, "DEVICE_BUSY", NP_ERROR,
	                          "another run has a device meanwhile: one run at a time");
	np_finding_evidence(finding, NULL, NULL, NULL, "%s", holder);
	np_finding_advice(finding, "Nothing was run. Wait for it to end.");
	np_finding_command(finding, "%s", collect_resume_line(leg));
	collect_stage(leg, STAGE_DEVICES, NP_VERDICT_FAIL, begin, "locked: %s", holder);
	leg->launched = false;
	(void)collect_state_write(leg, NULL);
}

/* ── the stage ── */

static enum np_status follow_tag(struct leg *leg, const char *tag, struct far *far, char *busy,
                                 size_t size, struct np_err *err)
{
	struct follow self = {.leg = leg, .tag = tag};
	*far = (struct far){.status = NP_NO_EXIT};
	NP_TRY(launch(leg, tag, err));
	NP_TRY(follow(&self, far, err));
	(void)snprintf(busy, size, "%s", self.busy);
	return NP_OK;
}

static enum np_status run(struct leg *leg, np_ns begin, struct np_err *err)
{
	struct far far;
	struct ended ended;
	char busy[512];
	NP_TRY(follow_tag(leg, "go", &far, busy, sizeof busy, err));
	if (far.state == FAR_BUSY) {
		tell_busy(leg, busy, begin);
		return NP_OK;
	}
	leg->run_exit = far.status;
	NP_TRY(learn(leg, &ended, err));
	/* npuprof run was killed there, or the host began anew: export and judge what it left */
	if (ended.known && !ended.finished && !leg->stopped) {
		collect_say(leg, "%s",
		            np_tr(NP_N("npuprof run is gone without an end: finishing "
		                       "what it left")));
		NP_TRY(follow_tag(leg, "finish", &far, busy, sizeof busy, err));
		leg->run_exit = far.status;
		NP_TRY(learn(leg, &ended, err));
	}
	tell_pre_check(leg, &ended);
	tell_run(leg, &ended, begin);
	if (ended.known && leg->stages[STAGE_PRE_CHECK].verdict != NP_VERDICT_FAIL)
		tell_export(leg, &ended);
	leg->run_over = true;
	return collect_state_write(leg, err);
}

enum np_status collect_run(struct leg *leg, struct np_err *err)
{
	np_ns begin = np_time_now();
	if (leg->run_over)
		return NP_OK;
	if (!leg->launched && collect_cancelled(leg))
		return np_err_set(err, NP_E_IO, leg->host, "interrupted");
	leg->launched = true;
	NP_TRY(collect_state_write(leg, err));
	enum np_status status = run(leg, begin, err);
	if (status != NP_OK)
		(void)collect_broken(leg, STAGE_RUN, begin, status, err);
	return status;
}
