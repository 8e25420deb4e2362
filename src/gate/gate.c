#include "gate/gate.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "capture/lint.h"
#include "gate/context.h"
#include "report/lang.h"

/* ── answers ── */

static void add_message(struct np_check_result *self, enum np_verdict verdict, const char *fmt,
                        va_list ap) __attribute__((format(printf, 3, 0)));

static void add_message(struct np_check_result *self, enum np_verdict verdict, const char *fmt,
                        va_list ap)
{
	static const int weight[] = {[NP_VERDICT_NONE] = 0,
	                             [NP_VERDICT_PASS] = 1,
	                             [NP_VERDICT_UNKNOWN] = 2,
	                             [NP_VERDICT_FAIL] = 3};
	if (weight[verdict] > weight[self->verdict]) {
		/* what passed is no news beside what failed */
		np_buf_clear(&self->message);
		self->told = self->untold = 0;
		self->verdict = verdict;
	} else if (weight[verdict] < weight[self->verdict]) {
		return;
	}
	/* what passed need not be told at length */
	if (self->told == (verdict == NP_VERDICT_PASS ? 2 : NP_GATE_NAMES_SHOWN)) {
		self->untold++;
		return;
	}
	char text[1024];
	(void)vsnprintf(text, sizeof text, np_tr(fmt), ap);
	np_buf_printf(&self->message, "%s%s", self->told++ ? "; " : "", text);
}

#define DEFINE_ANSWER(name, verdict)                                  \
	void name(struct np_check_result *self, const char *fmt, ...) \
	{                                                             \
		va_list ap;                                           \
		va_start(ap, fmt);                                    \
		add_message(self, verdict, fmt, ap);                  \
		va_end(ap);                                           \
	}
DEFINE_ANSWER(np_check_pass, NP_VERDICT_PASS)
DEFINE_ANSWER(np_check_unknown, NP_VERDICT_UNKNOWN)
DEFINE_ANSWER(np_check_fail, NP_VERDICT_FAIL)

bool np_gate_counts(const struct np_capture *capture)
{
	return capture->framework != NP_FW_CLUSTER;
}

const char *np_gate_label(struct np_gate *gate, const struct np_capture *capture)
{
	const char *in = *capture->group_dir ? capture->group_dir : NULL;
	const char *text;
	if (capture->rank == NP_NO_I64)
		text = capture->name;
	else if (in)
		text = np_arena_printf(&gate->report->arena, "%s/rank %lld", in,
		                       (long long)capture->rank);
	else
		text = np_arena_printf(&gate->report->arena, "rank %lld", (long long)capture->rank);
	return text ? text : "";
}

struct np_finding *np_gate_finding(struct np_gate *gate, const char *code, const char *file,
                                   const char *fmt, ...)
{
	for (size_t i = 0; i < gate->report->findings.n; i++) {
		const struct np_finding *told = gate->report->findings.v[i];
		if (strcmp(told->code, code) != 0)
			continue;
		for (size_t k = 0; k < told->evidence.n; k++)
			if (told->evidence.v[k].file && strcmp(told->evidence.v[k].file, file) == 0)
				return NULL;
	}
	char title[1024];
	va_list ap;
	va_start(ap, fmt);
	(void)vsnprintf(title, sizeof title, np_tr(fmt), ap);
	va_end(ap);
	return np_report_finding(gate->report, code, NP_ERROR, "%s", title);
}

bool np_gate_step_rows(const struct np_summary *sum)
{
	return sum->profile && sum->profile->step_trace.n > 0;
}

bool np_gate_db_only(const struct np_capture *capture)
{
	return (capture->formats & NP_HAS_DB) && !np_capture_file(capture, NP_ROLE_KERNELS) &&
	       !np_capture_file(capture, NP_ROLE_OP_SUMMARY);
}

/* The capture that a path lies in, or NULL. */
static const struct np_capture *capture_of(const struct np_gate *gate, const char *path)
{
	for (size_t i = 0; i < gate->all->captures.n; i++) {
		const char *home = gate->all->captures.v[i]->path;
		size_t len = strlen(home);
		if (strncmp(path, home, len) == 0 && path[len] == '/')
			return gate->all->captures.v[i];
	}
	return NULL;
}

const char *np_gate_short_path(struct np_gate *gate, const char *path)
{
	const struct np_capture *capture = capture_of(gate, path);
	size_t len = strlen(gate->all->root);
	if (!capture)
		return strncmp(path, gate->all->root, len) == 0 && path[len] == '/' ? path + len + 1
		                                                                    : path;
	const char *inside = path + strlen(capture->path) + 1;
	static const char output[] = "ASCEND_PROFILER_OUTPUT/";
	if (strncmp(inside, output, sizeof output - 1) == 0)
		inside += sizeof output - 1;
	const char *text = np_arena_printf(&gate->report->arena, "%s: %s",
	                                   np_gate_label(gate, capture), inside);
	return text ? text : path;
}

/* ── the table of checks ── */

enum { K = 1 << NP_GATE_KERNEL, F = 1 << NP_GATE_FRAMEWORK, C = 1 << NP_GATE_CLUSTER };

static const struct {
	const char *id, *title;
	unsigned profiles;
	np_check_fn *run;
} checks[] = {
	{"artefacts_exist", NP_N("artefacts exist"), K | F | C, np_check_artefacts},
	{"execution_order", NP_N("execution order usable"), K | F, np_check_order},
	{"unit_utilisation", NP_N("unit utilisation usable"), K | F, np_check_units},
	{"judged_values", NP_N("judged columns have values"), K | F, np_check_values},
	{"data_rows", NP_N("data rows > 0"), K | F | C, np_check_rows},
	{"freshness", NP_N("newer than the start of the capture"), K | F | C, np_check_freshness},
	{"trace_view", NP_N("trace view is valid JSON to its last byte"), K | F, np_check_trace},
	{"header_family", NP_N("columns are of the right family"), K | F, np_check_header},
	{"ranks_complete", NP_N("every rank is complete"), K | F | C, np_check_ranks},
	{"kernels_plausible", NP_N("kernel rows are plausible"), K | F | C, np_check_plausible},
	{"steps_complete", NP_N("all scheduled steps are there"), K | F | C, np_check_steps},
	{"log_signs", NP_N("no failure in the logs"), K | F | C, np_check_logs},
	{"provenance", NP_N("the configuration is recorded"), K | F | C, np_check_provenance},
	{"all_fresh", NP_N("every deliverable is fresh"), K | F | C, np_check_all_fresh},
	{"framework_files", NP_N("statistics files are there"), F, np_check_framework_files},
	{"communication", NP_N("communication and steps are recorded"), C, np_check_communication},
};

enum { N_CHECKS = sizeof checks / sizeof *checks };

static const struct np_column check_columns[] = {
	{"check", "", NP_COL_TEXT, "id of the check"},
	{"title", "", NP_COL_TEXT, "what is asked"},
	{"verdict", "", NP_COL_TEXT, "PASS, FAIL, or UNKNOWN: cannot be judged"},
	{"message", "", NP_COL_TEXT, "the evidence"},
};

static const char *const profile_names[] = {"kernel", "framework", "cluster"};

const char *np_gate_profile_name(enum np_gate_profile profile)
{
	return profile_names[profile];
}

bool np_gate_profile_parse(const char *name, enum np_gate_profile *out)
{
	for (unsigned i = 0; i < NP_GATE_N_PROFILES; i++)
		if (strcmp(name, profile_names[i]) == 0) {
			*out = (enum np_gate_profile)i;
			return true;
		}
	return false;
}

static bool is_about_age(np_check_fn *check)
{
	return check == np_check_freshness || check == np_check_all_fresh;
}

/* Run the checks of a profile; rows go to `table` unless it is NULL. */
static enum np_verdict run_checks(struct np_gate *gate, enum np_gate_profile profile,
                                  struct np_table *table)
{
	bool failed = false, unknown = false;
	for (size_t i = 0; i < N_CHECKS; i++) {
		if (!(checks[i].profiles & (1u << profile)) ||
		    (gate->options->any_age && is_about_age(checks[i].run)))
			continue;
		struct np_check_result result = {.gate = gate};
		checks[i].run(gate, &result);
		if (result.verdict == NP_VERDICT_NONE)
			np_check_unknown(&result, "nothing to look at");
		failed |= result.verdict == NP_VERDICT_FAIL;
		unknown |= result.verdict == NP_VERDICT_UNKNOWN;
		if (result.untold)
			np_buf_printf(&result.message, np_tr("; … %zu more"), result.untold);
		gate->oom |= result.message.failed;
		if (table) {
			np_cell_cstr(table, checks[i].id);
			np_cell_word(table, checks[i].title);
			np_cell_word(table, np_verdict_name(result.verdict));
			np_cell_text(table, np_buf_str(&result.message));
		}
		np_buf_release(&result.message);
	}
	return failed ? NP_VERDICT_FAIL : unknown ? NP_VERDICT_UNKNOWN : NP_VERDICT_PASS;
}

/* Fine for npuprof, but the field's text tools will find nothing (A41). */
static void tell_db_only(const struct np_gate *gate)
{
	struct np_finding *finding = NULL;
	for (size_t i = 0; i < gate->all->captures.n; i++) {
		const struct np_capture *capture = gate->all->captures.v[i];
		if (!(capture->formats & NP_HAS_DB) || (capture->formats & NP_HAS_TEXT))
			continue;
		if (!finding) {
			finding = np_report_finding(
				gate->report, "DB_ONLY", NP_INFO,
				"exported as databases only: judged by their tables");
			np_finding_detail(
				finding,
				"Tools that read kernel_details.csv and trace_view.json find "
				"nothing here; an export as text makes those files.");
			if (capture->framework == NP_FW_TORCH)
				np_finding_command(
					finding,
					"python3 -c 'import sys; from torch_npu.profiler.profiler "
					"import "
					"analyse; analyse(sys.argv[1], export_type=[\"text\"])' %s",
					np_shell_quote(gate->report, capture->path));
		}
		np_finding_evidence(finding, capture->path, NULL, NULL, "%s", "");
	}
}

/* Was it collected without what this profile needs, on purpose? */
static bool made_for_something_else(const struct np_gate *gate)
{
	for (size_t i = 0; i < gate->all->captures.n; i++) {
		const struct np_capture *capture = gate->all->captures.v[i];
		if (!np_gate_counts(capture))
			continue;
		bool no_pmu = strcmp(capture->config.aic_metrics, "AiCoreNone") == 0 ||
		              strcmp(capture->config.level, "Level0") == 0;
		bool no_text = np_capture_has_data(capture) && !(capture->formats & NP_HAS_TEXT);
		if (no_pmu || no_text)
			return true;
	}
	return false;
}

/* A capture made for something else is told so; it is never judged by a weaker
 * profile without being asked. */
static void suggest_profile(struct np_gate *gate, struct np_report *report)
{
	if (!made_for_something_else(gate))
		return;
	for (unsigned p = 0; p < NP_GATE_N_PROFILES; p++) {
		if (p == (unsigned)gate->options->profile)
			continue;
		gate->report = np_report_new("check");
		if (!gate->report)
			gate->oom = true;
		enum np_verdict verdict = gate->report
		                                  ? run_checks(gate, (enum np_gate_profile)p, NULL)
		                                  : NP_VERDICT_FAIL;
		np_report_free(gate->report);
		gate->report = report;
		if (verdict == NP_VERDICT_FAIL)
			continue;
		struct np_finding *finding = np_report_finding(
			report, "OTHER_PROFILE_FITS", NP_INFO,
			"the capture does not fit profile '%s', but profile '%s' does",
			np_gate_profile_name(gate->options->profile), profile_names[p]);
		np_finding_detail(finding,
		                  "It was made for another purpose. Nothing was judged by that "
		                  "profile; ask for it if it is what you need.");
		np_finding_command(finding, "npuprof check --profile %s %s", profile_names[p],
		                   np_shell_quote(report, gate->all->input));
		return;
	}
}

static void conclude(struct np_report *report, enum np_verdict verdict)
{
	report->verdict = verdict;
	report->exit_code = verdict == NP_VERDICT_PASS ? 0 : verdict == NP_VERDICT_FAIL ? 1 : 3;
}

enum np_status np_gate_run(const struct np_captures *all, const struct np_gate_options *options,
                           struct np_report *report, struct np_err *err)
{
	struct np_gate gate = {.all = all, .options = options, .report = report};
	enum np_status status = np_gate_gather(&gate, err);
	if (status == NP_OK) {
		struct np_table *table = NP_REPORT_TABLE(report, "checks", "Checks", check_columns);
		enum np_verdict verdict = run_checks(&gate, options->profile, table);
		np_gate_tell_output_fs(&gate);
		if (verdict == NP_VERDICT_FAIL)
			suggest_profile(&gate, report);
		if (options->profile != NP_GATE_CLUSTER)
			tell_db_only(&gate);
		np_lint_problems(all, report);
		np_lint_diags(gate.summaries, all->captures.n, report);
		conclude(report, verdict);
		if (gate.oom)
			status = np_err_nomem(err);
	}
	np_gate_release(&gate);
	return status == NP_OK ? np_report_ok(report, err) : status;
}
