/* What all stages of a leg use, and those which prepare: connect, environment, ship, deploy. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "collect/collect_internal.h"
#include "collect/deploy.h"
#include "report/lang.h"

const char *const collect_stage_names[N_STAGES] = {
#define X(name, text) text,
	COLLECT_STAGE_MAP(X)
#undef X
};

/* ── telling ── */

void collect_say(struct leg *leg, const char *fmt, ...)
{
	struct np_buf line = {0};
	char text[1024];
	va_list ap;
	if (!leg->all->options->say)
		return;
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	np_buf_printf(&line, "%s%s%s: %s", leg->host, leg->arm->name ? "/" : "",
	              leg->arm->name ? leg->arm->name : "", text);
	(void)pthread_mutex_lock(&leg->all->lock);
	if (!line.failed)
		leg->all->options->say(line.ptr);
	(void)pthread_mutex_unlock(&leg->all->lock);
	np_buf_release(&line);
}

void collect_stage(struct leg *leg, enum collect_stage stage, enum np_verdict verdict, np_ns begin,
                   const char *fmt, ...)
{
	char text[1024];
	va_list ap;
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof text, np_tr(fmt), ap);
	va_end(ap);
	const char *detail = np_arena_cstr(&leg->arena, np_str_of(text));
	leg->stages[stage] = (struct stage_result){.verdict = verdict,
	                                           .detail = detail ? detail : "",
	                                           .took_ns = begin ? np_time_now() - begin : 0};
	if (verdict != NP_VERDICT_NONE)
		collect_say(leg, "%-11s %s%s%s", collect_stage_names[stage],
		            np_tr(np_verdict_name(verdict)), *text ? "  " : "", text);
	struct np_err err;
	if (collect_state_write(leg, &err) != NP_OK)
		collect_say(leg, "%s: %s", err.where, err.msg);
}

const char *collect_resume_line(struct leg *leg)
{
	const char *line = np_arena_printf(&leg->arena, "npuprof collect --resume %s",
	                                   np_shell_quote(leg->report, leg->all->options->out));
	return line ? line : "";
}

enum np_status collect_broken(struct leg *leg, enum collect_stage stage, np_ns begin,
                              enum np_status status, const struct np_err *err)
{
	collect_stage(leg, stage, NP_VERDICT_FAIL, begin, "%s", err->msg);
	leg->stages[stage].environment = true;
	(void)collect_state_write(leg, NULL);
	struct np_finding *finding =
		np_report_finding(leg->report, "COLLECT_HOST_FAILED", NP_ERROR, "stage %s: %s",
	                          collect_stage_names[stage], err->msg);
	np_finding_evidence(finding, NULL, NULL, NULL, "%s", *err->where ? err->where : leg->host);
	np_finding_advice(finding, "What other hosts recorded is not touched by it. Once it is "
	                           "repaired, the collect goes on where it was.");
	np_finding_command(finding, "%s", collect_resume_line(leg));
	return status;
}

bool collect_cancelled(const struct leg *leg)
{
	const atomic_bool *cancel = leg->all->options->cancel;
	return cancel && atomic_load(cancel);
}

bool collect_failed_before_run(const struct leg *leg)
{
	for (int i = 0; i < STAGE_PRE_CHECK; i++)
		if (leg->stages[i].verdict == NP_VERDICT_FAIL)
			return true;
	return false;
}

void collect_copy_findings(struct np_report *to, const struct np_report *from,
                           enum np_severity at_least, const char *host)
{
	for (size_t i = 0; i < from->findings.n; i++) {
		const struct np_finding *old = from->findings.v[i];
		if (old->severity < at_least)
			continue;
		struct np_finding *copy =
			np_report_finding(to, old->code, old->severity, "%s%s%s", host ? host : "",
		                          host ? ": " : "", old->title ? old->title : "");
		if (old->detail)
			np_finding_detail(copy, "%s", old->detail);
		for (size_t k = 0; k < old->evidence.n; k++) {
			const struct np_evidence *seen = &old->evidence.v[k];
			np_finding_evidence(copy, seen->file, seen->column, seen->rows, "%s",
			                    seen->text ? seen->text : "");
		}
		if (old->advice)
			np_finding_advice(copy, "%s", old->advice);
		if (old->command)
			np_finding_command(copy, "%s", old->command);
	}
}

enum np_status collect_ask(struct leg *leg, const char *what, const char *script,
                           const char *const *args, const struct np_source *input,
                           const atomic_bool *cancel, struct np_outcome *outcome, int *status,
                           struct np_err *err)
{
	struct np_command command = {
		.argv = np_place_script(&leg->arena, &leg->all->place, input != NULL, script, args),
		.what = what,
		.repeatable = true,
		.cancel = cancel ? cancel : leg->all->options->cancel};
	if (input)
		command.input = *input;
	*outcome = (struct np_outcome){0};
	if (!command.argv)
		return np_err_nomem(err);
	if (!status)
		return np_transport_check(leg->transport, &command, outcome, err);
	NP_TRY(np_transport_run(leg->transport, &command, outcome, err));
	*status = outcome->status;
	return NP_OK;
}

/* ── connect, environment ── */

/* The toolkit's own script, where another one is not named (R9). */
#define SET_ENV "/usr/local/Ascend/ascend-toolkit/set_env.sh"

/* $1 workspace, $2 set_env. Prints the machine, yes or no, the absolute workspace. */
static const char look_script[] = "w=$1\n"
				  "case $w in '~') w=$HOME ;; '~/'*) w=$HOME/${w#??} ;; esac\n"
				  "mkdir -p -- \"$w/.npuprof\" \"$w/npuprof_runs\" || exit 73\n"
				  "cd -- \"$w\" || exit 73\n"
				  "uname -m\n"
				  "if [ -r \"$2\" ]; then echo yes; else echo no; fi\n"
				  "pwd -P\n";

static bool same_machine(np_str there, const char *here)
{
	bool arm_there = np_str_is(there, "arm64") || np_str_is(there, "aarch64");
	bool arm_here = strcmp(here, "arm64") == 0 || strcmp(here, "aarch64") == 0;
	return np_str_is(there, here) || (arm_there && arm_here);
}

static enum np_status other_machine(struct leg *leg, np_str machine, np_ns begin,
                                    struct np_err *err)
{
	struct np_finding *finding = np_report_finding(leg->report, "COLLECT_ARCH", NP_ERROR,
	                                               "the host is %.*s, this npuprof is for %s",
	                                               NP_FMT(machine), leg->all->machine);
	np_finding_advice(finding, "Build or install npuprof for %.*s there and say where it is.",
	                  NP_FMT(machine));
	np_finding_command(finding, "npuprof collect --remote-npuprof /PATH/npuprof %s -- CMD",
	                   leg->host);
	collect_stage(leg, STAGE_ENVIRONMENT, NP_VERDICT_FAIL, begin,
	              "the host is %.*s, this npuprof is for %s", NP_FMT(machine),
	              leg->all->machine);
	leg->stages[STAGE_ENVIRONMENT].environment = true;
	return np_err_set(err, NP_E_UNSUPPORTED, leg->host, "another machine");
}

static enum np_status take_look(struct leg *leg, np_str text, np_ns begin, struct np_err *err)
{
	const char *set_env = leg->all->options->set_env;
	np_str machine = np_str_cut(text, '\n', &text), found = np_str_cut(text, '\n', &text);
	if (text.len < 2 || text.ptr[0] != '/')
		return np_err_set(err, NP_E_FORMAT, leg->host, "its shell does not answer as one");
	text.len--; /* the line end */
	leg->workspace = np_arena_cstr(&leg->arena, text);
	leg->has_set_env = np_str_is(found, "yes");
	if (!leg->workspace)
		return np_err_nomem(err);
	collect_stage(leg, STAGE_CONNECT, NP_VERDICT_PASS, begin, "%s", leg->workspace);
	if (!leg->all->options->remote_npuprof && !same_machine(machine, leg->all->machine))
		return other_machine(leg, machine, begin, err);
	bool named = set_env && strcmp(set_env, "none") != 0;
	if (named && !leg->has_set_env) {
		collect_stage(leg, STAGE_ENVIRONMENT, NP_VERDICT_FAIL, begin, "%s cannot be read",
		              set_env);
		leg->stages[STAGE_ENVIRONMENT].environment = true;
		struct np_finding *finding =
			np_report_finding(leg->report, "COLLECT_HOST_FAILED", NP_ERROR,
		                          "%s cannot be read there", set_env);
		np_finding_advice(finding, "--set-env names a script there; none is for an "
		                           "environment that needs no script.");
		return np_err_set(err, NP_E_NOTFOUND, leg->host, "%s", set_env);
	}
	collect_stage(leg, STAGE_ENVIRONMENT, NP_VERDICT_PASS, begin, "%.*s, %s", NP_FMT(machine),
	              leg->has_set_env ? (named ? set_env : SET_ENV)
	                               : np_tr(NP_N("no set_env.sh")));
	return NP_OK;
}

static enum np_status look(struct leg *leg, struct np_err *err)
{
	const struct np_collect_options *options = leg->all->options;
	np_ns begin = np_time_now();
	struct np_outcome outcome;
	const char *set_env = options->set_env ? options->set_env : SET_ENV;
	if (strcmp(set_env, "none") == 0)
		set_env = "/nonexistent/none";
	const char *const args[] = {options->workspace ? options->workspace : "~/npuprof", set_env,
	                            NULL};
	enum np_status status =
		collect_ask(leg, "workspace", look_script, args, NULL, NULL, &outcome, NULL, err);
	if (status != NP_OK)
		(void)collect_broken(leg, STAGE_CONNECT, begin, status, err);
	else
		status = take_look(leg, np_buf_str(&outcome.out), begin, err);
	np_outcome_release(&outcome);
	return status;
}

/* ── ship ── */

/* $1 file, $2 digest. Takes the program from stdin; it has its name when it is whole. */
static const char ship_script[] =
	"t=$1.part.$$\n"
	"cat > \"$t\" || exit 73\n"
	"if command -v sha256sum >/dev/null 2>&1; then d=$(sha256sum < \"$t\"); d=${d%% *}\n"
	"elif command -v openssl >/dev/null 2>&1; then d=$(openssl dgst -sha256 -r < \"$t\"); "
	"d=${d%% *}\n"
	"else d=$2; fi\n"
	"if [ \"$d\" != \"$2\" ]; then rm -f \"$t\"; echo 'it arrived damaged' >&2; exit 74; fi\n"
	"chmod 755 \"$t\" && mv -f \"$t\" \"$1\"\n";

/* $1 program. 66: it is not there; 69: it cannot run, and why, to stdout. */
static const char probe_script[] =
	"[ -x \"$1\" ] || exit 66\n"
	"if v=$(\"$1\" version 2>&1); then printf '%s\\n' \"$v\" | head -n 1; exit 0; fi\n"
	"ldd \"$1\" 2>&1 | grep 'not found'\n"
	"printf '%s\\n' \"$v\" | head -n 3\n"
	"exit 69\n";

struct reader {
	int fd;
};

static ssize_t pull_bytes(void *ctx, void *buf, size_t size)
{
	struct reader *reader = ctx;
	return read(reader->fd, buf, size);
}

static void begin_again(void *ctx)
{
	struct reader *reader = ctx;
	(void)lseek(reader->fd, 0, SEEK_SET);
}

static enum np_status send_program(struct leg *leg, struct np_err *err)
{
	struct reader reader = {open("/proc/self/exe", O_RDONLY | O_CLOEXEC)};
	const char *const args[] = {leg->npuprof, leg->all->sha256, NULL};
	struct np_command command = {
		.argv = np_place_script(&leg->arena, &leg->all->place, true, ship_script, args),
		.what = "ship npuprof",
		.input = {.kind = NP_SOURCE_PULL, .pull = pull_bytes, .ctx = &reader},
		.repeatable = true,
		.restart = begin_again,
		.restart_ctx = &reader,
		.cancel = leg->all->options->cancel};
	struct np_outcome outcome = {0};
	if (reader.fd < 0)
		return np_err_sys(err, errno, "/proc/self/exe", "open");
	enum np_status status =
		command.argv ? np_transport_check(leg->transport, &command, &outcome, err)
			     : np_err_nomem(err);
	np_outcome_release(&outcome);
	(void)close(reader.fd);
	return status;
}

static enum np_status cannot_run(struct leg *leg, np_str said, np_ns begin, struct np_err *err)
{
	struct np_finding *finding =
		np_report_finding(leg->report, "COLLECT_NPUPROF_UNUSABLE", NP_ERROR,
	                          "%s does not run there", leg->npuprof);
	for (np_str rest = said; rest.len;) {
		np_str line = np_str_trim(np_str_cut(rest, '\n', &rest));
		if (line.len)
			np_finding_evidence(finding, leg->npuprof, NULL, NULL, "%.*s",
			                    (int)(line.len < 300 ? line.len : 300), line.ptr);
	}
	np_finding_advice(finding, "Install the missing libraries, or npuprof itself, there, and "
	                           "say where it is.");
	np_finding_command(finding, "npuprof collect --remote-npuprof /PATH/npuprof %s -- CMD",
	                   leg->host);
	np_str line = np_str_trim(np_str_cut(said, '\n', &said));
	collect_stage(leg, STAGE_SHIP, NP_VERDICT_FAIL, begin, "npuprof does not run there: %.*s",
	              (int)(line.len < 200 ? line.len : 200), line.ptr ? line.ptr : "");
	leg->stages[STAGE_SHIP].environment = true;
	return np_err_set(err, NP_E_UNSUPPORTED, leg->host, "npuprof does not run there");
}

static enum np_status probe(struct leg *leg, np_ns begin, int *exit_status, bool final, bool sent,
                            struct np_err *err)
{
	struct np_outcome outcome;
	const char *const args[] = {leg->npuprof, NULL};
	enum np_status status = collect_ask(leg, "npuprof version", probe_script, args, NULL, NULL,
	                                    &outcome, exit_status, err);
	if (status == NP_OK && *exit_status == 0)
		collect_stage(leg, STAGE_SHIP, NP_VERDICT_PASS, begin, "%s%s", leg->npuprof,
		              sent ? np_tr(NP_N(", sent")) : "");
	else if (status == NP_OK && final)
		status = cannot_run(leg,
		                    *exit_status == 66 ? NP_STR("there is no such program")
		                                       : np_buf_str(&outcome.out),
		                    begin, err);
	else if (status != NP_OK)
		(void)collect_broken(leg, STAGE_SHIP, begin, status, err);
	np_outcome_release(&outcome);
	return status;
}

static enum np_status ship(struct leg *leg, struct np_err *err)
{
	const struct np_collect_options *options = leg->all->options;
	np_ns begin = np_time_now();
	int there = 0;
	leg->npuprof = options->remote_npuprof
	                       ? options->remote_npuprof
	                       : np_arena_printf(&leg->arena, "%s/.npuprof/npuprof-%.12s",
	                                         leg->workspace, leg->all->sha256);
	if (!leg->npuprof)
		return np_err_nomem(err);
	NP_TRY(probe(leg, begin, &there, options->remote_npuprof != NULL, false, err));
	if (there == 0)
		return NP_OK;
	enum np_status status = there == 66 ? send_program(leg, err) : NP_OK;
	if (status != NP_OK)
		return collect_broken(leg, STAGE_SHIP, begin, status, err);
	return probe(leg, begin, &there, true, true, err);
}

/* ── deploy ── */

static enum np_status deploy(struct leg *leg, struct np_err *err)
{
	const struct np_collect_options *options = leg->all->options;
	np_ns begin = np_time_now();
	leg->cwd = options->chdir ? options->chdir : leg->workspace;
	if (!options->deploy)
		return NP_OK;
	struct np_report *report = np_report_new("deploy");
	size_t n = 0;
	np_str base = np_path_base(options->deploy);
	const char *name = np_arena_cstr(&leg->arena, base);
	while (np_deploy_excludes[n])
		n++;
	struct np_deploy_options todo = {.path = options->deploy,
	                                 .workspace = leg->workspace,
	                                 .name = name,
	                                 .choice = {.excludes = np_deploy_excludes,
	                                            .n_excludes = n,
	                                            .threads = options->threads},
	                                 .place = leg->all->place,
	                                 .cancel = options->cancel};
	enum np_status status =
		report ? np_deploy(leg->transport, &todo, report, err) : np_err_nomem(err);
	if (status == NP_OK) {
		const char *tree =
			np_arena_printf(&leg->arena, "%s/%.*s", leg->workspace, NP_FMT(base));
		leg->cwd = options->chdir ? options->chdir : tree;
		collect_copy_findings(leg->report, report, NP_WARNING, NULL);
		collect_stage(leg, STAGE_DEPLOY, NP_VERDICT_PASS, begin, "%s", tree ? tree : "");
	} else {
		(void)collect_broken(leg, STAGE_DEPLOY, begin, status, err);
	}
	np_report_free(report);
	return status;
}

enum np_status collect_prepare(struct leg *leg, struct np_err *err)
{
	NP_TRY(look(leg, err));
	NP_TRY(ship(leg, err));
	if (leg->launched) /* the tree of a run is not changed under it */
		return NP_OK;
	NP_TRY(deploy(leg, err));
	return collect_devices(leg, err);
}
