/* The flow over arms and hosts, and the report. */
#include "collect/collect.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/fs.h"
#include "collect/collect_internal.h"
#include "report/lang.h"

enum { AT_ONCE = 128, EXIT_FAILED = 1, EXIT_UNKNOWN = 3, EXIT_ENVIRONMENT = 4 };

/* ── legs ── */

/* A host as the name of a directory; two of them never get the same one. */
static const char *dir_name(const struct collect *self, size_t index)
{
	const char *text = self->hosts.v.v[index].text;
	char name[300];
	size_t n = 0;
	for (; n < sizeof name - 16 && text[n]; n++) {
		char c = text[n];
		bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
		             (c >= '0' && c <= '9') || strchr("._-@", c);
		name[n] = plain ? c : '_';
	}
	name[n] = '\0';
	if (strcmp(name, text) != 0 || text[0] == '.')
		(void)snprintf(name + n, sizeof name - n, "_%zu", index);
	return np_arena_cstr(self->arena, np_str_of(name));
}

static enum np_status make_leg(struct collect *self, size_t arm, size_t host, struct np_err *err)
{
	struct leg *leg = &self->legs[arm * self->hosts.v.n + host];
	const char *name = dir_name(self, host), *base = self->options->out;
	leg->all = self;
	leg->arm = &self->arms[arm];
	leg->index = host;
	leg->host = self->hosts.v.v[host].text;
	leg->run_exit = leg->command_exit = NP_NO_EXIT;
	for (int i = 0; i < N_STAGES; i++)
		leg->stages[i].detail = "";
	np_arena_init(&leg->arena);
	leg->report = np_report_new("collect");
	if (leg->arm->name)
		base = np_path_join(&leg->arena, base, leg->arm->name);
	leg->dir = base && name ? np_path_join(&leg->arena, base, name) : NULL;
	if (!leg->report || !leg->dir)
		return np_err_nomem(err);
	return self->resumed ? collect_state_read(leg, err) : NP_OK;
}

static enum np_status make_legs(struct collect *self, struct np_err *err)
{
	size_t n = self->n_arms * self->hosts.v.n;
	self->legs = np_calloc(n, sizeof *self->legs);
	if (!self->legs)
		return np_err_nomem(err);
	for (size_t a = 0; a < self->n_arms; a++)
		for (size_t h = 0; h < self->hosts.v.n; h++)
			NP_TRY(make_leg(self, a, h, err));
	return NP_OK;
}

/* ── phases ── */

struct phase {
	struct collect *all;
	size_t arm;
};

static struct leg *leg_of(const struct phase *phase, size_t host)
{
	return &phase->all->legs[phase->arm * phase->all->hosts.v.n + host];
}

static void name_job(struct leg *leg)
{
	if (leg->job || !leg->workspace)
		return;
	/* hosts may share a file system */
	leg->job = np_arena_printf(&leg->arena, "%s/npuprof_runs/%s%s%s-%zu", leg->workspace,
	                           leg->all->id, leg->arm->name ? "-" : "",
	                           leg->arm->name ? leg->arm->name : "", leg->index);
}

/* A failure that no stage has told of. */
static void tell_untold(struct leg *leg, enum collect_stage stage, enum np_status status,
                        const struct np_err *err)
{
	for (int i = 0; i < N_STAGES; i++)
		if (leg->stages[i].verdict == NP_VERDICT_FAIL)
			return;
	if (status != NP_OK)
		(void)collect_broken(leg, stage, 0, status, err);
}

static void forget_failures(struct leg *leg, int from, int to)
{
	for (int i = from; i < to; i++)
		if (leg->stages[i].verdict == NP_VERDICT_FAIL)
			leg->stages[i] = (struct stage_result){.detail = ""};
}

static enum np_status prepare_job(void *ctx, size_t i, struct np_transport *transport,
                                  struct np_err *err)
{
	struct leg *leg = leg_of(ctx, i);
	leg->transport = transport;
	forget_failures(leg, 0, STAGE_PRE_CHECK);
	enum np_status status = collect_prepare(leg, err);
	tell_untold(leg, STAGE_CONNECT, status, err);
	name_job(leg);
	return status == NP_OK && !leg->job ? np_err_nomem(err) : status;
}

static enum np_status run_job(void *ctx, size_t i, struct np_transport *transport,
                              struct np_err *err)
{
	struct leg *leg = leg_of(ctx, i);
	leg->transport = transport;
	if (collect_failed_before_run(leg) || !leg->job)
		return NP_OK;
	if (!leg->run_over)
		forget_failures(leg, STAGE_PRE_CHECK, STAGE_PULL);
	forget_failures(leg, STAGE_PULL, N_STAGES);
	NP_TRY(collect_run(leg, err));
	return collect_fetch(leg, err);
}

static bool is_ready(const struct leg *leg)
{
	return !collect_failed_before_run(leg) && leg->job;
}

/* Hosts that wait for each other: without one of them none is to start. */
static bool must_not_start(struct phase *phase)
{
	const struct collect *all = phase->all;
	size_t ready = 0, launched = 0;
	for (size_t i = 0; i < all->hosts.v.n; i++) {
		ready += is_ready(leg_of(phase, i));
		launched += leg_of(phase, i)->launched;
	}
	if (!all->together || ready == all->hosts.v.n || launched)
		return false;
	for (size_t i = 0; i < all->hosts.v.n; i++) {
		struct leg *leg = leg_of(phase, i);
		if (is_ready(leg))
			collect_stage(leg, STAGE_RUN, NP_VERDICT_UNKNOWN, 0, "%s",
			              np_tr(NP_N("not started: another host is not ready")));
	}
	return true;
}

static bool is_interrupted(const struct collect *self)
{
	return self->options->cancel && atomic_load(self->options->cancel);
}

static enum np_status all_arms(struct collect *self, struct np_err *err)
{
	/* hosts that wait for each other must all run at a time */
	unsigned at_once =
		self->together || self->hosts.v.n < AT_ONCE ? (unsigned)self->hosts.v.n : AT_ONCE;
	struct np_host_result *results = np_calloc(self->hosts.v.n, sizeof *results);
	if (!results)
		return np_err_nomem(err);
	for (size_t arm = 0; arm < self->n_arms && !is_interrupted(self); arm++) {
		struct phase phase = {self, arm};
		(void)np_hosts_run(&self->hosts, &self->ssh, at_once, prepare_job, &phase, results);
		for (size_t i = 0; i < self->hosts.v.n; i++)
			tell_untold(leg_of(&phase, i), STAGE_CONNECT, results[i].status,
			            &results[i].err);
		if (is_interrupted(self) || must_not_start(&phase))
			continue;
		(void)np_hosts_run(&self->hosts, &self->ssh, at_once, run_job, &phase, results);
		for (size_t i = 0; i < self->hosts.v.n; i++)
			tell_untold(leg_of(&phase, i), STAGE_RUN, results[i].status,
			            &results[i].err);
	}
	np_free(results);
	return NP_OK;
}

/* ── the report ── */

static const struct np_column stage_columns[] = {
	{"host", "", NP_COL_TEXT, "as it was named"},
	{"arm", "", NP_COL_TEXT, "of the comparison; empty with one only"},
	{"stage", "", NP_COL_TEXT, "in the order in which they come"},
	{"verdict", "", NP_COL_TEXT, "PASS, FAIL, UNKNOWN; empty: not reached or not asked for"},
	{"detail", "", NP_COL_TEXT, "what is to be known of it"},
	{"seconds", "s", NP_COL_REAL, "that it took"},
};

static const struct np_column capture_columns[] = {
	{"host", "", NP_COL_TEXT, "as it was named"},
	{"arm", "", NP_COL_TEXT, "of the comparison; empty with one only"},
	{"verdict", "", NP_COL_TEXT, "of the gate: run's there, the transfer, and ours here"},
	{"command_exit", "", NP_COL_INT, "exit status of the command"},
	{"devices", "", NP_COL_TEXT, "that were visible to it"},
	{"path", "", NP_COL_TEXT, "what was fetched, here"},
	{"source", "", NP_COL_TEXT, "where it lies there"},
};

static enum np_verdict leg_verdict(const struct leg *leg, bool *environment)
{
	bool unknown = leg->stages[STAGE_GATE].verdict != NP_VERDICT_PASS, failed = false;
	*environment = false;
	for (int i = 0; i < N_STAGES; i++) {
		const struct stage_result *stage = &leg->stages[i];
		unknown |= stage->verdict == NP_VERDICT_UNKNOWN;
		failed |= stage->verdict == NP_VERDICT_FAIL && !stage->environment;
		*environment |= stage->verdict == NP_VERDICT_FAIL && stage->environment;
	}
	return failed || *environment ? NP_VERDICT_FAIL
	       : unknown              ? NP_VERDICT_UNKNOWN
	                              : NP_VERDICT_PASS;
}

static void stage_rows(struct np_table *table, const struct leg *leg)
{
	for (int i = 0; i < N_STAGES; i++) {
		const struct stage_result *stage = &leg->stages[i];
		if (stage->verdict == NP_VERDICT_NONE)
			continue;
		np_cell_cstr(table, leg->host);
		np_cell_cstr(table, leg->arm->name);
		np_cell_cstr(table, collect_stage_names[i]);
		np_cell_word(table, np_verdict_name(stage->verdict));
		np_cell_cstr(table, *stage->detail ? stage->detail : NULL);
		np_cell_real(table, (double)stage->took_ns / 1e9);
	}
}

static void capture_row(struct np_table *table, struct leg *leg)
{
	bool environment;
	enum np_verdict verdict = leg_verdict(leg, &environment);
	np_cell_cstr(table, leg->host);
	np_cell_cstr(table, leg->arm->name);
	np_cell_word(table, np_verdict_name(verdict));
	if (leg->command_exit == NP_NO_EXIT)
		np_cell_na(table);
	else
		np_cell_int(table, leg->command_exit);
	np_cell_cstr(table, leg->devices && *leg->devices ? leg->devices : NULL);
	if (leg->stages[STAGE_PULL].verdict == NP_VERDICT_PASS)
		np_cell_cstr(table, np_path_join(&leg->arena, leg->dir, "run"));
	else
		np_cell_na(table);
	if (leg->run_over)
		np_cell_printf(table, "%s:%s", leg->host, leg->job);
	else
		np_cell_na(table);
}

static void tell_unverified(const struct collect *self, size_t n)
{
	struct np_finding *finding =
		np_report_finding(self->report, "COLLECT_UNVERIFIED", NP_WARNING,
	                          "%zu of %zu captures are not verified: that is no pass", n,
	                          self->n_arms * self->hosts.v.n);
	const char *out = np_shell_quote(self->report, self->options->out);
	if (self->options->no_pull)
		np_finding_advice(finding, "--no-pull left them there.");
	else if (self->options->no_check)
		np_finding_advice(finding, "--no-check left out the gate.");
	else
		np_finding_advice(finding, "The table of stages says which one left it open.");
	if (self->options->no_pull || !self->options->no_check)
		np_finding_command(finding, "npuprof collect --resume %s", out);
	else
		np_finding_command(finding, "npuprof check %s --start-marker %s", out,
		                   np_shell_quote(self->report, self->marker));
}

static void tell_next(const struct collect *self)
{
	const char *out = np_shell_quote(self->report, self->options->out);
	size_t fetched = 0;
	for (size_t i = 0; i < self->n_arms * self->hosts.v.n; i++)
		fetched += self->legs[i].stages[STAGE_PULL].verdict == NP_VERDICT_PASS;
	if (fetched == 0)
		return;
	if (self->n_arms > 1)
		np_report_note(self->report, "next: npuprof compare %s/%s %s/%s", out,
		               self->arms[1].name, out, self->arms[0].name);
	else
		np_report_note(self->report, "next: npuprof %s %s",
		               self->hosts.v.n > 1 ? "cluster" : "analyze", out);
}

static void tell(const struct collect *self)
{
	struct np_report *report = self->report;
	size_t n = self->n_arms * self->hosts.v.n, unknown = 0;
	bool failed = false, environment = false;
	struct np_table *captures =
		NP_REPORT_TABLE(report, "captures", "Captures", capture_columns);
	struct np_table *stages = NP_REPORT_TABLE(report, "stages", "Stages", stage_columns);
	for (size_t i = 0; i < n; i++) {
		struct leg *leg = &self->legs[i];
		bool own;
		enum np_verdict verdict = leg_verdict(leg, &own);
		failed |= verdict == NP_VERDICT_FAIL && !own;
		environment |= own;
		unknown += verdict == NP_VERDICT_UNKNOWN;
		stage_rows(stages, leg);
		capture_row(captures, leg);
		collect_copy_findings(report, leg->report, NP_INFO, leg->host);
		collect_far_findings(leg, report);
	}
	np_report_unite_findings(report); /* the gates there and here find the same */
	if (unknown)
		tell_unverified(self, unknown);
	report->verdict = failed || environment ? NP_VERDICT_FAIL
	                  : unknown             ? NP_VERDICT_UNKNOWN
	                                        : NP_VERDICT_PASS;
	report->exit_code = failed        ? EXIT_FAILED
	                    : environment ? EXIT_ENVIRONMENT
	                    : unknown     ? EXIT_UNKNOWN
	                                  : 0;
	if (is_interrupted(self)) {
		struct np_finding *finding = np_report_finding(report, "COLLECT_INTERRUPTED",
		                                               NP_WARNING, "it was interrupted");
		np_finding_advice(finding, "What was begun and not ended goes on with the same "
		                           "directory.");
		np_finding_command(finding, "npuprof collect --resume %s",
		                   np_shell_quote(report, self->options->out));
	}
	tell_next(self);
}

/* ── all of it ── */

static enum np_status make_id(struct collect *self, struct np_err *err)
{
	unsigned char bytes[4];
	char stamp[32];
	time_t now = time(NULL);
	struct tm utc;
	if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
		return np_err_sys(err, errno, NULL, "get random bytes");
	(void)gmtime_r(&now, &utc);
	(void)strftime(stamp, sizeof stamp, "%Y%m%dT%H%M%SZ", &utc);
	self->id = np_arena_printf(self->arena, "%s-%02x%02x%02x%02x", stamp, bytes[0], bytes[1],
	                           bytes[2], bytes[3]);
	return self->id ? NP_OK : np_err_nomem(err);
}

/* R53: written before anything runs, and only once. */
static enum np_status write_marker(struct collect *self, struct np_err *err)
{
	self->marker = np_path_join(self->arena, self->options->out, ".npuprof_start");
	if (!self->marker)
		return np_err_nomem(err);
	int fd = open(self->marker, O_WRONLY | O_CREAT | O_CLOEXEC, 0640);
	if (fd < 0)
		return np_err_sys(err, errno, self->marker, "create");
	(void)close(fd);
	return NP_OK;
}

static enum np_status know_ourselves(struct collect *self, struct np_err *err)
{
	struct utsname name;
	struct np_digests digests;
	if (uname(&name) == 0)
		(void)snprintf(self->machine, sizeof self->machine, "%.64s", name.machine);
	if (self->options->remote_npuprof)
		return NP_OK;
	NP_TRY(np_hash_file("/proc/self/exe", false, &digests, NULL, err));
	memcpy(self->sha256, digests.sha256, sizeof self->sha256);
	return NP_OK;
}

static enum np_status check_new(const struct collect *self, struct np_err *err)
{
	struct np_file_stat stat;
	const char *path = np_path_join(self->arena, self->options->out, "collect.json");
	if (!path)
		return np_err_nomem(err);
	NP_TRY(np_file_stat(path, true, &stat, err));
	if (stat.kind != NP_FILE_NONE)
		return np_err_set(err, NP_E_USAGE, self->options->out,
		                  "it holds a collect already: go on with --resume, or give "
		                  "another --out DIR");
	return np_mkdirs(self->options->out, err);
}

static enum np_status work(struct collect *self, struct np_err *err)
{
	NP_TRY(collect_plan_resolve(self, err));
	NP_TRY(know_ourselves(self, err));
	if (!self->resumed) {
		NP_TRY(check_new(self, err));
		NP_TRY(make_id(self, err));
		NP_TRY(collect_plan_write(self, err));
	}
	NP_TRY(write_marker(self, err));
	NP_TRY(make_legs(self, err));
	for (size_t i = 0; i < self->hosts.v.n; i++)
		np_report_input(self->report, self->hosts.v.v[i].text);
	NP_TRY(all_arms(self, err));
	for (size_t arm = 0; arm < self->n_arms; arm++)
		NP_TRY(collect_list(self, arm, err));
	tell(self);
	return NP_OK;
}

static void begin(struct collect *self, struct np_report *report)
{
	*self = (struct collect){.report = report, .arena = &report->arena};
	np_hosts_init(&self->hosts);
	(void)pthread_mutex_init(&self->lock, NULL);
}

static void end(struct collect *self)
{
	for (size_t i = 0; self->legs && i < self->n_arms * self->hosts.v.n; i++) {
		np_report_free(self->legs[i].report);
		np_arena_release(&self->legs[i].arena);
	}
	np_free(self->legs);
	np_hosts_release(&self->hosts);
	(void)pthread_mutex_destroy(&self->lock);
}

/* --resume may come from another directory. */
static enum np_status make_absolute(struct np_arena *arena, const char **path, struct np_err *err)
{
	if (!*path)
		return NP_OK;
	char *real = realpath(*path, NULL);
	if (!real)
		return np_err_sys(err, errno, *path, "find");
	*path = np_arena_cstr(arena, np_str_of(real));
	free(real);
	return *path ? NP_OK : np_err_nomem(err);
}

enum np_status np_collect(const struct np_collect_options *options, struct np_report *report,
                          struct np_err *err)
{
	struct collect self;
	struct np_collect_options own = *options;
	begin(&self, report);
	self.options = &own;
	enum np_status status = make_absolute(&report->arena, &own.deploy, err);
	if (status == NP_OK && own.ssh_config && strcmp(own.ssh_config, "none") != 0)
		status = make_absolute(&report->arena, &own.ssh_config, err);
	if (status == NP_OK)
		status = work(&self, err);
	end(&self);
	return status;
}

enum np_status np_collect_resume(const char *out, const struct np_collect_options *options,
                                 struct np_report *report, struct np_err *err)
{
	struct collect self;
	struct np_collect_options own = *options;
	begin(&self, report);
	self.resumed = true;
	self.options = &own;
	enum np_status status = collect_plan_read(&self, out, &own, err);
	if (status == NP_OK)
		status = work(&self, err);
	end(&self);
	return status;
}
