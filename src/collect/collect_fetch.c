/* Stages pull and gate. */
#include <stdio.h>
#include <string.h>

#include "base/fs.h"
#include "collect/collect_internal.h"
#include "collect/manifest.h"
#include "collect/pull.h"
#include "gate/gate.h"
#include "report/lang.h"

/* Without the raw data that the export has read: products, descriptions and logs. */
static const char *const products[] = {
	"log",        "*.status",     "*.json",
	"*.jsonl",    "*.log",        "*.txt",
	"*.db",       "*.npcomm",     "*/ASCEND_PROFILER_OUTPUT/*",
	"*/comm/*",   "*/logs/*",     "*/mindstudio_profiler_output/*",
	"*/events/*", "start_marker", ".start*",
};

/* ── pull ── */

static enum np_status open_link(void *ctx, struct np_transport **out, struct np_err *err)
{
	struct leg *leg = ctx;
	struct np_ssh_options ssh = leg->all->ssh;
	if (leg->stopped)
		ssh.cancel = NULL; /* it has been heard; another one ends this program */
	return np_transport_ssh(&leg->all->hosts.v.v[leg->index], &ssh, out, err);
}

static void tell_pull(struct leg *leg, const struct np_pull_result *result,
                      const struct np_report *report, np_ns begin)
{
	char size[32];
	(void)snprintf(size, sizeof size, "%.1f MiB", (double)result->bytes / 1048576.0);
	collect_copy_findings(leg->report, report, NP_WARNING, NULL);
	if (report->exit_code == 0)
		collect_stage(leg, STAGE_PULL, NP_VERDICT_PASS, begin, np_tr("%zu files, %s"),
		              result->files, size);
	else
		collect_stage(leg, STAGE_PULL,
		              report->exit_code == 3 ? NP_VERDICT_UNKNOWN : NP_VERDICT_FAIL, begin,
		              np_tr("%zu files, %s; not all, or not verified"), result->files,
		              size);
	leg->stages[STAGE_PULL].environment = report->exit_code == 4;
	leg->pulled_now = report->exit_code == 0;
}

static enum np_status pull(struct leg *leg, struct np_err *err)
{
	const struct np_collect_options *options = leg->all->options;
	struct np_report *report = np_report_new("pull");
	struct np_pull_result result;
	np_ns begin = np_time_now();
	struct np_pull_link link = {open_link, leg, leg->all->place};
	struct np_pull_options todo = {
		.source = np_arena_printf(&leg->arena, "%s:%s", leg->host, leg->job),
		.path = leg->job,
		.dest = np_path_join(&leg->arena, leg->dir, "run"),
		.arm = leg->arm->name,
		.cancel = leg->stopped ? NULL : options->cancel};
	if (leg->exported && !options->keep_raw) {
		todo.only = products;
		todo.n_only = sizeof products / sizeof *products;
	}
	enum np_status status = report && todo.source && todo.dest
	                                ? np_pull(&link, &todo, &result, report, err)
	                                : np_err_nomem(err);
	if (status == NP_OK)
		tell_pull(leg, &result, report, begin);
	else
		(void)collect_broken(leg, STAGE_PULL, begin, status, err);
	np_report_free(report);
	return status;
}

/* ── gate ── */

enum np_status collect_judge(const char *dir, const char *marker, const char *profile,
                             unsigned threads, struct np_report *report, struct np_err *err)
{
	struct np_captures *all = NULL;
	struct np_gate_options gate = {.start_marker = marker, .threads = threads};
	(void)np_gate_profile_parse(profile ? profile : "kernel", &gate.profile);
	NP_TRY(np_discover(dir, &all, err));
	enum np_status status = np_gate_run(all, &gate, report, err);
	np_captures_free(all);
	return status;
}

/* What an earlier call fetched is compared with its manifest: it may have been touched since. */
static enum np_status verify(struct leg *leg, const char *dir, bool *good, struct np_err *err)
{
	*good = true;
	if (leg->pulled_now)
		return NP_OK;
	struct np_report *report = np_report_new("pull");
	if (!report)
		return np_err_nomem(err);
	enum np_status status =
		np_manifest_verify(dir, leg->all->options->threads, NULL, report, err);
	if (status == NP_OK) {
		*good = report->exit_code == 0;
		collect_copy_findings(leg->report, report, NP_WARNING, NULL);
	}
	np_report_free(report);
	return status;
}

/* The three verdicts as one; see collect.h. */
static enum np_verdict worst(enum np_verdict a, enum np_verdict b)
{
	if (a == NP_VERDICT_FAIL || b == NP_VERDICT_FAIL)
		return NP_VERDICT_FAIL;
	return a == NP_VERDICT_PASS && b == NP_VERDICT_PASS ? NP_VERDICT_PASS : NP_VERDICT_UNKNOWN;
}

static enum np_status gate(struct leg *leg, struct np_err *err)
{
	np_ns begin = np_time_now();
	const char *dir = np_path_join(&leg->arena, leg->dir, "run");
	struct np_report *report = np_report_new("check");
	bool good = false;
	if (!dir || !report) {
		np_report_free(report);
		return np_err_nomem(err);
	}
	enum np_status status = verify(leg, dir, &good, err);
	if (status == NP_OK)
		status = collect_judge(dir, leg->all->marker, leg->gate_profile,
		                       leg->all->options->threads, report, err);
	if (status == NP_OK || status == NP_E_NOTFOUND) {
		enum np_verdict here = status == NP_OK ? report->verdict : NP_VERDICT_UNKNOWN;
		enum np_verdict whole = worst(good ? here : NP_VERDICT_FAIL, leg->run_verdict);
		collect_copy_findings(leg->report, report, NP_WARNING, NULL);
		collect_stage(leg, STAGE_GATE, whole, begin, np_tr("there %s, here %s, files %s"),
		              np_tr(leg->run_verdict == NP_VERDICT_NONE
		                            ? "UNKNOWN"
		                            : np_verdict_name(leg->run_verdict)),
		              np_tr(np_verdict_name(here)), np_tr(good ? "PASS" : "FAIL"));
		status = NP_OK;
	} else {
		(void)collect_broken(leg, STAGE_GATE, begin, status, err);
	}
	np_report_free(report);
	return status;
}

enum np_status collect_fetch(struct leg *leg, struct np_err *err)
{
	const struct np_collect_options *options = leg->all->options;
	if (!leg->run_over)
		return NP_OK;
	if (options->no_pull) {
		collect_stage(leg, STAGE_PULL, NP_VERDICT_UNKNOWN, 0, "--no-pull: %s:%s", leg->host,
		              leg->job);
		return NP_OK;
	}
	if (leg->stages[STAGE_PULL].verdict != NP_VERDICT_PASS)
		NP_TRY(pull(leg, err));
	if (leg->stages[STAGE_PULL].verdict == NP_VERDICT_FAIL)
		return NP_OK;
	if (options->no_check) {
		collect_stage(leg, STAGE_GATE, NP_VERDICT_UNKNOWN, 0, "--no-check");
		return NP_OK;
	}
	if (leg->run_verdict == NP_VERDICT_NONE) { /* there was nothing to judge: raw data only */
		collect_stage(leg, STAGE_GATE, NP_VERDICT_UNKNOWN, 0, "%s",
		              np_tr(NP_N("nothing is exported: not judged")));
		return NP_OK;
	}
	return gate(leg, err);
}
