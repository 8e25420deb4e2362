/*
 * What the old gate never looked at (requirements §2.1 "gaps", R39, R45, R61,
 * R69): the trace, the family of the columns, completeness of every rank,
 * plausibility, the schedule, the logs, provenance.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "capture/lint.h"
#include "gate/context.h"

/* ── trace view ── */

/* Which of the ways to be no JSON it is. */
static const char *trace_code(const struct np_trace_facts *trace)
{
	if (trace->status == NP_E_TRUNCATED || trace->status == NP_E_EMPTY ||
	    trace->repairs.unclosed.count)
		return "TRACE_TRUNCATED";
	if (trace->status != NP_OK)
		return "TRACE_INVALID";
	return trace->repairs.bad_utf8.count ? "BAD_UTF8" : "TRACE_REPAIRED";
}

static void tell_trace(struct np_gate *gate, const struct np_trace_facts *trace, const char *what)
{
	const char *code = trace_code(trace);
	struct np_finding *finding =
		np_report_finding(gate->report, code, NP_ERROR, "%s is not valid JSON",
	                          np_gate_short_path(gate, trace->file->path));
	np_finding_evidence(finding, trace->file->path, NULL, NULL, "%s", what);
	if (strcmp(code, "TRACE_REPAIRED") == 0 || strcmp(code, "BAD_UTF8") == 0)
		np_finding_detail(
			finding,
			"npuprof reads it all the same; chrome://tracing, Perfetto and json.load "
			"may not. A file that ends in ',]' comes from an export that found no "
			"CANN events.");
	else
		np_finding_detail(finding, "The run was stopped inside its recording, the disk was "
		                           "full, or the copy broke. "
		                           "When all parsers failed as well, the output file "
		                           "system is the suspect: copy the "
		                           "capture to a local disk and export again (R62).");
	np_finding_command(finding, "%s", np_reanalyse_command(gate->report, trace->capture));
}

static void judge_trace(struct np_gate *gate, struct np_check_result *out,
                        const struct np_trace_facts *trace)
{
	const char *path = np_gate_short_path(gate, trace->file->path);
	if (trace->status != NP_OK) {
		np_check_fail(out, "%s: %s", path, trace->err.msg);
		tell_trace(gate, trace, trace->err.msg);
	} else if (np_json_repairs_total(&trace->repairs)) {
		struct np_buf text = {0};
		np_json_repairs_describe(&trace->repairs, &text);
		np_check_fail(out, "%s: %s", path, text.ptr ? text.ptr : "");
		tell_trace(gate, trace, text.ptr ? text.ptr : "");
		np_buf_release(&text);
	} else if (trace->events == 0) {
		np_check_fail(out, "%s holds no event", path);
	} else {
		np_check_pass(out, "%s: %" PRIu64 " events", path, trace->events);
	}
}

void np_check_trace(struct np_gate *gate, struct np_check_result *out)
{
	for (size_t i = 0; i < gate->traces.n; i++)
		judge_trace(gate, out, &gate->traces.v[i]);
	for (size_t i = 0; i < gate->all->captures.n; i++) {
		const struct np_capture *capture = gate->all->captures.v[i];
		if (!np_gate_counts(capture) || np_capture_file(capture, NP_ROLE_TRACE))
			continue;
		if (capture->formats & NP_HAS_DB)
			np_check_pass(out, "%s: the database holds the timeline",
			              np_gate_label(gate, capture));
		else
			np_check_fail(out, "%s has no trace_view.json",
			              np_gate_label(gate, capture));
	}
}

/* ── which family of columns: configuration, parse failure, or no device data ── */

/* Device tasks in the trace or the database, looked at only when kernels are missing. */
static size_t device_tasks(const struct np_capture *capture)
{
	struct np_profile *profile = NULL;
	size_t tasks = 0;
	if (np_capture_load(capture, NP_TASKS, 1, &profile, NULL) == NP_OK)
		tasks = profile->tasks.n;
	np_profile_free(profile);
	return tasks;
}

/* Something of the device was exported, but not its kernels. */
static void tell_kernels_missing(struct np_gate *gate, struct np_check_result *out,
                                 const struct np_capture *capture, size_t tasks)
{
	const char *label = np_gate_label(gate, capture);
	if (tasks)
		np_check_fail(out, "%s: %zu device tasks, but no kernel table: the parse failed",
		              label, tasks);
	else
		np_check_fail(out, "%s: neither a kernel table nor a timeline", label);
	struct np_finding *finding = np_report_finding(
		gate->report, "KERNELS_MISSING", NP_ERROR,
		tasks ? "%s: device tasks were collected, the kernel table was not written"
		      : "%s: neither a kernel table nor a timeline is here",
		label);
	np_finding_evidence(finding, capture->path, NULL, NULL, "%zu device tasks in the timeline",
	                    tasks);
	if (tasks)
		np_finding_detail(
			finding, "The export broke off, or the capture was made in graph mode that "
				 "hides its kernels; eager mode shows them.");
	else
		np_finding_detail(finding,
		                  "They were not exported, or left behind when the capture was "
		                  "copied.");
	np_finding_command(finding, "%s", np_reanalyse_command(gate->report, capture));
}

static void tell_no_device_data(struct np_gate *gate, struct np_check_result *out,
                                const struct np_capture *capture)
{
	const char *label = np_gate_label(gate, capture);
	np_check_fail(out, "%s: no device data at all", label);
	struct np_finding *finding = np_report_finding(
		gate->report, "NO_DEVICE_DATA", NP_ERROR,
		"%s holds host events only: nothing of the NPU was collected", label);
	np_finding_evidence(
		finding, capture->path, NULL, NULL, "no kernel and no device task; activities: %s",
		*capture->config.activities ? capture->config.activities : "not recorded");
	np_finding_detail(
		finding,
		"Usual causes: ProfilerActivity.NPU not among the activities, a worker that "
		"was spawned without the patch, graph mode without device tracing.");
	np_finding_advice(finding,
	                  "Collect again with activities=[ProfilerActivity.CPU, "
	                  "ProfilerActivity.NPU], in the process that launches the kernels.");
}

static void tell_no_kernels(struct np_gate *gate, struct np_check_result *out,
                            const struct np_capture *capture)
{
	size_t tasks = device_tasks(capture);
	bool timeline = np_capture_file(capture, NP_ROLE_TRACE) || (capture->formats & NP_HAS_DB);
	if (tasks || !timeline)
		tell_kernels_missing(gate, out, capture, tasks);
	else
		tell_no_device_data(gate, out, capture);
}

static void judge_header(struct np_gate *gate, struct np_check_result *out,
                         const struct np_csv_facts *csv)
{
	const struct np_kernel_header *header = &csv->header;
	const char *path = np_gate_short_path(gate, csv->file->path);
	if (header->column[NP_KCOL_NAME] < 0 || header->column[NP_KCOL_DURATION] < 0)
		np_check_fail(out, "%s: %zu columns, none of a kernel table: the parse failed",
		              path, header->n_columns);
	else if (header->group == NP_PMU_NONE)
		np_check_fail(out, "%s: %zu columns, the default configuration (Level0)", path,
		              header->n_columns);
	else if (header->group != NP_PMU_PIPE && header->group != NP_PMU_PIPE_910A)
		np_check_fail(out, "%s: %zu columns of PMU group %s", path, header->n_columns,
		              np_pmu_group_name(header->group));
	else
		np_check_pass(out, "%s: %zu columns of %s", path, header->n_columns,
		              np_pmu_group_name(header->group));
}

void np_check_header(struct np_gate *gate, struct np_check_result *out)
{
	for (size_t i = 0; i < gate->csv.n; i++)
		if (gate->csv.v[i].is_kernel_table && gate->csv.v[i].status == NP_OK)
			judge_header(gate, out, &gate->csv.v[i]);
	for (size_t i = 0; i < gate->all->captures.n; i++) {
		const struct np_capture *capture = gate->all->captures.v[i];
		const struct np_summary *sum = &gate->summaries[i];
		if (!np_gate_counts(capture) || !np_capture_has_data(capture))
			continue;
		if (sum->kernels == 0)
			tell_no_kernels(gate, out, capture);
		else if ((capture->formats & NP_HAS_DB) &&
		         !np_capture_file(capture, NP_ROLE_KERNELS) && sum->units == 0)
			np_check_fail(
				out,
				"%s: the database has no PMU values (level %s, aic_metrics %s)",
				np_gate_label(gate, capture),
				*capture->config.level ? capture->config.level : "unknown",
				*capture->config.aic_metrics ? capture->config.aic_metrics
							     : "unknown");
		else if ((capture->formats & NP_HAS_DB) &&
		         !np_capture_file(capture, NP_ROLE_KERNELS))
			np_check_pass(out, "%s: PMU values in the database",
			              np_gate_label(gate, capture));
	}
}

/* ── every rank ── */

static void judge_rank(struct np_gate *gate, struct np_check_result *out, size_t i)
{
	const struct np_capture *capture = gate->all->captures.v[i];
	const struct np_summary *sum = &gate->summaries[i];
	const char *label = np_gate_label(gate, capture);
	bool cluster = gate->options->profile == NP_GATE_CLUSTER;
	bool kernels = np_capture_file(capture, NP_ROLE_KERNELS) ||
	               np_capture_file(capture, NP_ROLE_OP_SUMMARY) ||
	               (capture->formats & NP_HAS_DB);
	bool steps = np_capture_file(capture, NP_ROLE_STEP_TRACE) ||
	             (capture->formats & (NP_HAS_ANALYSIS | NP_HAS_DB));
	if (!np_capture_has_data(capture))
		np_check_fail(out, "%s was never exported", label);
	else if (!cluster && !kernels)
		np_check_fail(out, "%s has no kernel table", label);
	else if (cluster && !steps)
		np_check_fail(out, "%s has no step times", label);
	else if (sum->status != NP_OK)
		np_check_fail(out, "%s: %s", label, sum->err.msg);
	else
		np_check_pass(out, "%s", label);
	for (size_t p = 0; p < capture->problems.n; p++)
		if (strstr(capture->problems.v[p].code, "UNREADABLE"))
			np_check_fail(out, "%s: %s cannot be read", label,
			              np_gate_short_path(gate, capture->problems.v[p].file));
}

void np_check_ranks(struct np_gate *gate, struct np_check_result *out)
{
	for (size_t i = 0; i < gate->all->captures.n; i++)
		if (np_gate_counts(gate->all->captures.v[i]))
			judge_rank(gate, out, i);
	for (size_t i = 0; i < gate->all->problems.n; i++)
		if (strcmp(gate->all->problems.v[i].code, "UNREADABLE") == 0)
			np_check_fail(out, "%s cannot be read",
			              np_gate_short_path(gate, gate->all->problems.v[i].file));
	size_t errors = np_lint(gate->all, gate->summaries, gate->report);
	if (errors)
		np_check_fail(out, "%zu finding(s) about the ranks, see above", errors);
	if (out->verdict == NP_VERDICT_NONE)
		np_check_fail(out, "no capture found");
}

/* ── plausible kernels ── */

/* The recorded end of the collection and the kernels must be of one day. */
enum { MAX_CLOCK_GAP_SECONDS = 86400 };

static void judge_kernels(struct np_gate *gate, struct np_check_result *out, size_t i)
{
	const struct np_capture *capture = gate->all->captures.v[i];
	const struct np_summary *sum = &gate->summaries[i];
	const char *label = np_gate_label(gate, capture);
	double rows = (double)sum->kernels + (double)sum->dropped_rows;
	if (!(sum->loaded & NP_KERNELS) || rows <= 0)
		return;
	if ((double)sum->dropped_rows > rows / 100)
		np_check_fail(out, "%s: %" PRIu64 " of %.0f rows have impossible times", label,
		              sum->dropped_rows, rows);
	else if (sum->dropped_rows)
		np_check_unknown(out, "%s: %" PRIu64 " of %.0f rows have impossible times", label,
		                 sum->dropped_rows, rows);
	if (sum->kernels && sum->zero_duration == sum->kernels)
		np_check_fail(out, "%s: every duration is 0", label);
	if (sum->kernels && capture->config.end_ns != NP_NO_I64) {
		double gap = (double)(capture->config.end_ns - sum->last_ns) / 1e9;
		if (gap > MAX_CLOCK_GAP_SECONDS || gap < -MAX_CLOCK_GAP_SECONDS)
			np_check_fail(out, "%s: its kernels are %.0f h away from the recorded end",
			              label, gap / 3600);
	}
	if (sum->kernels)
		np_check_pass(out, "%s: %zu kernels", label, sum->kernels);
}

void np_check_plausible(struct np_gate *gate, struct np_check_result *out)
{
	for (size_t i = 0; i < gate->all->captures.n; i++)
		if (np_gate_counts(gate->all->captures.v[i]))
			judge_kernels(gate, out, i);
	if (out->verdict == NP_VERDICT_NONE)
		np_check_unknown(out, "there are no kernel rows to look at");
}

/* ── schedule ── */

void np_check_steps(struct np_gate *gate, struct np_check_result *out)
{
	for (size_t i = 0; i < gate->all->captures.n; i++) {
		const struct np_capture *capture = gate->all->captures.v[i];
		const struct np_summary *sum = &gate->summaries[i];
		const struct np_config *config = &capture->config;
		if (!np_gate_counts(capture) || !np_capture_has_data(capture))
			continue;
		const char *label = np_gate_label(gate, capture);
		if (!config->has_schedule || config->active == NP_NO_I64) {
			np_check_pass(out, "%s: no schedule recorded, %zu steps", label,
			              sum->n_steps);
		} else if ((int64_t)sum->n_steps < config->active) {
			np_check_fail(out, "%s: %zu of %" PRId64 " steps", label, sum->n_steps,
			              config->active);
			struct np_finding *finding = np_report_finding(
				gate->report, "SCHEDULE_INCOMPLETE", NP_ERROR,
				"%s recorded %zu steps, the schedule asks for %" PRId64, label,
				sum->n_steps, config->active);
			np_finding_evidence(finding, capture->path, "schedule", NULL,
			                    "wait %" PRId64 ", warmup %" PRId64 ", active %" PRId64
			                    ", repeat %" PRId64 ", skip_first %" PRId64,
			                    config->wait, config->warmup, config->active,
			                    config->repeat, config->skip_first);
			np_finding_advice(
				finding,
				"Call prof.step() at the end of every step, and run at least "
				"skip_first + wait + warmup + active + 1 of them (R65).");
		} else {
			np_check_pass(out, "%s: %zu steps", label, sum->n_steps);
		}
	}
	if (out->verdict == NP_VERDICT_NONE)
		np_check_unknown(out, "there is nothing that could have steps");
}

/* ── provenance ── */

void np_check_provenance(struct np_gate *gate, struct np_check_result *out)
{
	for (size_t i = 0; i < gate->all->captures.n; i++) {
		const struct np_capture *capture = gate->all->captures.v[i];
		if (!np_gate_counts(capture))
			continue;
		const char *label = np_gate_label(gate, capture);
		if (capture->config.recorded)
			np_check_pass(out, "%s: %s, %s", label,
			              *capture->config.level ? capture->config.level
			                                     : "level not recorded",
			              *capture->config.aic_metrics ? capture->config.aic_metrics
			                                           : "aic_metrics not recorded");
		else
			np_check_unknown(
				out,
				"%s: no profiler_info: level, schedule and warm-up are unknown",
				label);
	}
	if (out->verdict == NP_VERDICT_NONE)
		np_check_unknown(out, "no capture found");
}

/* ── profile framework: R61, R69 ── */

void np_check_framework_files(struct np_gate *gate, struct np_check_result *out)
{
	static const enum np_role wanted[] = {NP_ROLE_OP_STATISTIC, NP_ROLE_API_STATISTIC,
	                                      NP_ROLE_STEP_TRACE};
	for (size_t i = 0; i < gate->all->captures.n; i++) {
		const struct np_capture *capture = gate->all->captures.v[i];
		if (!np_gate_counts(capture))
			continue;
		for (size_t k = 0; k < sizeof wanted / sizeof *wanted; k++) {
			/* msprof has no step summary (R40) */
			if (capture->framework == NP_FW_MSPROF && wanted[k] == NP_ROLE_STEP_TRACE)
				continue;
			if (np_capture_file(capture, wanted[k]))
				np_check_pass(out, "%s: %s", np_gate_label(gate, capture),
				              np_role_name(wanted[k]));
			else
				np_check_fail(out, "%s has no %s.csv", np_gate_label(gate, capture),
				              np_role_name(wanted[k]));
		}
	}
}

/* ── profile cluster: R90 ── */

void np_check_communication(struct np_gate *gate, struct np_check_result *out)
{
	for (size_t i = 0; i < gate->all->captures.n; i++) {
		const struct np_capture *capture = gate->all->captures.v[i];
		if (!np_gate_counts(capture))
			continue;
		const char *label = np_gate_label(gate, capture);
		bool summary = np_capture_file(capture, NP_ROLE_COMM_JSON) ||
		               (capture->formats & NP_HAS_ANALYSIS);
		if (summary || gate->summaries[i].comm_kernels)
			np_check_pass(out, "%s", label);
		else
			np_check_fail(out,
			              "%s has no communication data (Level1 or higher is needed)",
			              label);
	}
}
