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
#include "report/lang.h"

/* One finding per kind of file, one row of evidence per capture. */
void np_gate_tell_missing(struct np_gate *gate, const struct np_capture *capture, enum np_role role,
                          const char *why)
{
	struct np_finding *finding = NULL;
	const char *title =
		np_arena_printf(&gate->report->arena, np_tr("%s is missing"), np_role_name(role));
	for (size_t i = 0; title && i < gate->report->findings.n && !finding; i++)
		if (strcmp(gate->report->findings.v[i]->code, "DELIVERABLE_MISSING") == 0 &&
		    strcmp(gate->report->findings.v[i]->title, title) == 0)
			finding = gate->report->findings.v[i];
	if (!finding) {
		finding = np_report_finding(gate->report, "DELIVERABLE_MISSING", NP_ERROR, "%s",
		                            title ? title : "");
		np_finding_detail(finding, "Without it: no %s. %s.", np_tr(np_role_loss(role)),
		                  np_tr(why));
		np_finding_command(finding, "%s", np_reanalyse_command(gate->report, capture));
	}
	np_finding_evidence(finding, capture->output ? capture->output : capture->path, NULL, NULL,
	                    "not there");
}

/* ── trace view ── */

/* Which of the ways to be no JSON it is. */
static const struct {
	const char *code;
} trace_faults[] = {
	{.code = "TRACE_TRUNCATED"},
	{.code = "TRACE_INVALID"},
	{.code = "BAD_UTF8"},
	{.code = "TRACE_REPAIRED"},
};

bool np_gate_trace_is_cut(const struct np_trace_facts *trace)
{
	return trace->status == NP_E_TRUNCATED || trace->status == NP_E_EMPTY ||
	       trace->repairs.unclosed.count > 0;
}

static const char *trace_code(const struct np_trace_facts *trace)
{
	if (np_gate_trace_is_cut(trace))
		return trace_faults[0].code;
	if (trace->status != NP_OK)
		return trace_faults[1].code;
	return trace_faults[trace->repairs.bad_utf8.count ? 2 : 3].code;
}

static void tell_trace(struct np_gate *gate, const struct np_trace_facts *trace, const char *what)
{
	const char *code = trace_code(trace);
	struct np_finding *finding =
		np_gate_finding(gate, code, trace->file->path, "%s is not valid JSON",
	                        np_gate_short_path(gate, trace->file->path));
	if (!finding)
		return;
	/* the error's place is the path with the byte offset */
	bool placed = trace->status != NP_OK && *trace->err.where;
	np_finding_evidence(finding, placed ? trace->err.where : trace->file->path, NULL, NULL,
	                    "%s", what);
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
		const char *label = np_gate_label(gate, capture);
		if (capture->formats & NP_HAS_DB) {
			np_check_pass(out, "%s: the database holds the timeline", label);
			continue;
		}
		np_check_fail(out, "%s has no trace_view.json", label);
		if (np_capture_has_data(capture))
			np_gate_tell_missing(gate, capture, NP_ROLE_TRACE, NP_N("R39 asks for it"));
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

static void tell_kernels_missing(struct np_gate *gate, const struct np_capture *capture,
                                 const char *evidence)
{
	struct np_finding *finding =
		np_gate_finding(gate, "KERNELS_MISSING", capture->path, "%s has no row of a kernel",
	                        np_gate_label(gate, capture));
	if (!finding)
		return;
	np_finding_evidence(finding, capture->path, NULL, NULL, "%s", evidence);
	np_finding_detail(finding,
	                  "The export broke off, or the table was left behind when the capture was "
	                  "copied; in graph mode kernels are hidden, eager mode shows them.");
	np_finding_command(finding, "%s", np_reanalyse_command(gate->report, capture));
}

static void tell_no_device_data(struct np_gate *gate, const struct np_capture *capture)
{
	struct np_finding *finding =
		np_gate_finding(gate, "NO_DEVICE_DATA", capture->path,
	                        "%s holds host events only: nothing of the NPU was collected",
	                        np_gate_label(gate, capture));
	if (!finding)
		return;
	np_finding_evidence(
		finding, capture->path, NULL, NULL, "no kernel and no device task; activities: %s",
		*capture->config.activities ? capture->config.activities : np_tr("not recorded"));
	np_finding_detail(
		finding,
		"Usual causes: ProfilerActivity.NPU not among the activities, a worker that "
		"was spawned without the patch, graph mode without device tracing.");
	np_finding_advice(finding,
	                  "Collect again with activities=[ProfilerActivity.CPU, "
	                  "ProfilerActivity.NPU], in the process that launches the kernels.");
}

/* Step rows and communication files are made from device data: where they are, the
 * device was recorded even if nothing else of it is here. */
static const char *sign_of_device(const struct np_capture *capture, const struct np_summary *sum)
{
	if (np_capture_file(capture, NP_ROLE_COMM_JSON) ||
	    np_capture_file(capture, NP_ROLE_COMM_MATRIX))
		return NP_N("communication files");
	if (np_gate_step_rows(sum))
		return NP_N("the exporter's step times");
	return NULL;
}

/* Parse failure, partial copy, or never collected? */
static void tell_no_kernels(struct np_gate *gate, struct np_check_result *out, size_t i)
{
	const struct np_capture *capture = gate->all->captures.v[i];
	const char *label = np_gate_label(gate, capture);
	const char *sign = sign_of_device(capture, &gate->summaries[i]);
	size_t tasks = device_tasks(capture);
	char text[96];
	bool timeline = np_capture_file(capture, NP_ROLE_TRACE) || (capture->formats & NP_HAS_DB);
	if (tasks == 0 && !sign && timeline) {
		np_check_fail(out, "%s: no device data at all", label);
		tell_no_device_data(gate, capture);
		return;
	}
	if (tasks)
		(void)snprintf(text, sizeof text, np_tr("%zu device tasks in the timeline"), tasks);
	else
		(void)snprintf(text, sizeof text, "%s%s", np_tr(sign ? sign : "no timeline either"),
		               sign ? np_tr(" tell of work on the device") : "");
	np_check_fail(out, "%s: no row of a kernel; %s", label, text);
	tell_kernels_missing(gate, capture, text);
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
			tell_no_kernels(gate, out, i);
		else if (!np_gate_db_only(capture))
			continue;
		else if (sum->comm_kernels == sum->kernels)
			np_check_pass(out, "%s: collectives only", np_gate_label(gate, capture));
		else if (sum->units == 0)
			np_check_fail(
				out,
				"%s: the database has no PMU values (level %s, aic_metrics %s)",
				np_gate_label(gate, capture),
				*capture->config.level ? capture->config.level : "unknown",
				*capture->config.aic_metrics ? capture->config.aic_metrics
							     : "unknown");
		else
			np_check_pass(out, "%s: PMU values in the database",
			              np_gate_label(gate, capture));
	}
}

/* ── every rank ── */

/* torch_npu begins an export by emptying ASCEND_PROFILER_OUTPUT, fills it file by file, and leaves
 * analyse.done at the end, whatever failed (torch_npu.md §4.5). Where the raw dump lies beside it
 * and the mark does not, an export was cut off, and a table that ends with a whole row does not
 * show it. A copy without FRAMEWORK tells nothing. */
static bool was_cut_off(const struct np_capture *capture)
{
	return capture->framework == NP_FW_TORCH && capture->has_framework_dir &&
	       !capture->analyse_done && np_capture_has_data(capture);
}

static void tell_cut_off(struct np_gate *gate, struct np_check_result *out,
                         const struct np_capture *capture)
{
	np_check_unknown(out, "%s: its export did not come to its end",
	                 np_gate_label(gate, capture));
	struct np_finding *finding = np_gate_finding(gate, "EXPORT_UNFINISHED", capture->path,
	                                             "the export of %s did not come to its end",
	                                             np_gate_label(gate, capture));
	if (!finding)
		return;
	np_finding_detail(finding, "analyse.done, which torch_npu writes last, is missing beside "
	                           "the raw dump: files may be half written, or missing.");
	np_finding_evidence(finding, capture->path, NULL, NULL, "%s",
	                    NP_N("FRAMEWORK is there, analyse.done is not"));
	np_finding_command(finding, "%s", np_reanalyse_command(gate->report, capture));
}

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
		np_check_fail(
			out, "%s %s", label,
			np_tr(capture->formats & NP_HAS_RAW ? "was never exported" : "is empty"));
	else if (!cluster && !kernels)
		np_check_fail(out, "%s has no kernel table", label);
	else if (cluster && !steps && capture->framework != NP_FW_MSPROF) {
		np_check_fail(out, "%s has no step times", label);
		np_gate_tell_missing(gate, capture, NP_ROLE_STEP_TRACE, NP_N("R90 asks for it"));
	} else if (sum->status != NP_OK)
		np_check_fail(out, "%s: %s", label, sum->err.msg);
	else
		np_check_pass(out, "%s", label);
	if (was_cut_off(capture))
		tell_cut_off(gate, out, capture);
	if (cluster && np_capture_has_data(capture) && sum->kernels == 0 && !np_gate_step_rows(sum))
		tell_no_kernels(gate, out, i);
	for (size_t p = 0; p < capture->problems.n; p++)
		if (strstr(capture->problems.v[p].code, "UNREADABLE"))
			np_check_fail(out, "%s: %s cannot be read", label,
			              np_gate_short_path(gate, capture->problems.v[p].file));
}

/* What the linter found is said in the check's own words, too. */
static void judge_findings(struct np_gate *gate, struct np_check_result *out, size_t from)
{
	for (size_t i = from; i < gate->report->findings.n; i++) {
		struct np_finding *finding = gate->report->findings.v[i];
		bool unknown = strcmp(finding->code, "RANK_UNKNOWN") == 0;
		if (finding->severity == NP_ERROR)
			np_check_fail(out, "%s: %s", finding->code, finding->title);
		else if (unknown && finding->severity == NP_WARNING)
			np_check_unknown(out, "%s: %s", finding->code, finding->title);
	}
}

/* Recorded on rank 0 only, on purpose: the others are no failure, but worth a word. */
static void excuse_missing(struct np_gate *gate, size_t from)
{
	for (size_t i = from; i < gate->report->findings.n; i++)
		if (strcmp(gate->report->findings.v[i]->code, "RANK_MISSING") == 0)
			gate->report->findings.v[i]->severity = NP_INFO;
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
	size_t from = gate->report->findings.n;
	(void)np_lint(gate->all, gate->summaries, gate->report);
	if (gate->options->some_ranks)
		excuse_missing(gate, from);
	judge_findings(gate, out, from);
	if (out->verdict == NP_VERDICT_NONE)
		np_check_fail(out, "no capture found");
}

/* ── plausible kernels ── */

/* The recorded end of the collection and the kernels must be of one day. */
enum { MAX_CLOCK_GAP_SECONDS = 86400 };

static void tell_clock_gap(struct np_gate *gate, struct np_check_result *out,
                           const struct np_capture *capture, double gap_seconds)
{
	np_check_fail(out, "%s: its kernels are %.0f h away from the recorded end",
	              np_gate_label(gate, capture), gap_seconds / 3600);
	struct np_finding *finding = np_gate_finding(
		gate, "CLOCK_GAP", capture->path,
		"the kernels of %s and the recorded end of its collection are %.0f h apart",
		np_gate_label(gate, capture), gap_seconds / 3600);
	if (!finding)
		return;
	np_finding_evidence(finding, capture->path, NULL, NULL,
	                    "collectionTimeEnd and the kernels");
	np_finding_detail(finding, "The kernel table is of another run than profiler_info, or the "
	                           "clocks of host and device were set in between.");
	np_finding_command(finding, "%s", np_reanalyse_command(gate->report, capture));
}

static void tell_zero_durations(struct np_gate *gate, struct np_check_result *out,
                                const struct np_capture *capture, size_t kernels)
{
	np_check_fail(out, "%s: every duration is 0", np_gate_label(gate, capture));
	struct np_finding *finding =
		np_gate_finding(gate, "ZERO_DURATIONS", capture->path,
	                        "every kernel of %s lasts 0 us", np_gate_label(gate, capture));
	if (!finding)
		return;
	np_finding_evidence(finding, capture->path, NULL, NULL, "%zu kernels", kernels);
	np_finding_command(finding, "%s", np_reanalyse_command(gate->report, capture));
}

static void tell_impossible(struct np_gate *gate, struct np_check_result *out,
                            const struct np_capture *capture, uint64_t dropped, double rows)
{
	const char *label = np_gate_label(gate, capture);
	np_check_fail(out, "%s: %" PRIu64 " of %.0f rows have impossible times", label, dropped,
	              rows);
	struct np_finding *finding =
		np_gate_finding(gate, "IMPOSSIBLE_TIMES", capture->path,
	                        "%" PRIu64 " of %.0f kernels of %s end before they start, or have "
	                        "no time",
	                        dropped, rows, label);
	if (!finding)
		return;
	np_finding_evidence(finding, capture->path, NULL, NULL, "more than one in a hundred");
	np_finding_command(finding, "%s", np_reanalyse_command(gate->report, capture));
}

static void judge_kernels(struct np_gate *gate, struct np_check_result *out, size_t i)
{
	const struct np_capture *capture = gate->all->captures.v[i];
	const struct np_summary *sum = &gate->summaries[i];
	const char *label = np_gate_label(gate, capture);
	double rows = (double)sum->kernels + (double)sum->dropped_rows;
	if (!(sum->loaded & NP_KERNELS) || rows <= 0)
		return;
	if ((double)sum->dropped_rows > rows / 100)
		tell_impossible(gate, out, capture, sum->dropped_rows, rows);
	else if (sum->dropped_rows)
		np_check_unknown(out, "%s: %" PRIu64 " of %.0f rows have impossible times", label,
		                 sum->dropped_rows, rows);
	if (sum->kernels && sum->zero_duration == sum->kernels)
		tell_zero_durations(gate, out, capture, sum->kernels);
	if (sum->kernels && capture->config.end_ns != NP_NO_I64) {
		double gap = (double)(capture->config.end_ns - sum->last_ns) / 1e9;
		if (gap > MAX_CLOCK_GAP_SECONDS || gap < -MAX_CLOCK_GAP_SECONDS)
			tell_clock_gap(gate, out, capture, gap);
	}
	if (sum->kernels)
		np_check_pass(out, "%s: %zu kernels", label, sum->kernels);
}

void np_check_plausible(struct np_gate *gate, struct np_check_result *out)
{
	for (size_t i = 0; i < gate->all->captures.n; i++)
		if (np_gate_counts(gate->all->captures.v[i]))
			judge_kernels(gate, out, i);
	/* step times and collectives are all that is asked of a cluster (R90) */
	bool steps = false;
	for (size_t i = 0; i < gate->all->captures.n; i++)
		steps |= np_gate_step_rows(&gate->summaries[i]);
	if (out->verdict == NP_VERDICT_NONE && steps && gate->options->profile == NP_GATE_CLUSTER)
		np_check_pass(out, "no kernel rows; the step times do without");
	else if (out->verdict == NP_VERDICT_NONE)
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
		} else if (sum->kernels == 0 && !(sum->loaded & NP_STEP_TRACE)) {
			np_check_unknown(out, "%s: no table that tells its steps", label);
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
			                                     : np_tr("level not recorded"),
			              *capture->config.aic_metrics
			                      ? capture->config.aic_metrics
			                      : np_tr("aic_metrics not recorded"));
		else
			np_check_unknown(
				out,
				"%s: no profiler_info: level, schedule and warm-up are unknown",
				label);
	}
	if (out->verdict == NP_VERDICT_NONE)
		np_check_unknown(out, "no capture found");
}

/* ── profile cluster: R90 ── */

static void tell_no_communication(struct np_gate *gate, const struct np_capture *capture)
{
	if (!np_capture_has_data(capture))
		return;
	struct np_finding *finding =
		np_gate_finding(gate, "COMM_MISSING", capture->path, "%s has no communication data",
	                        np_gate_label(gate, capture));
	if (!finding)
		return;
	np_finding_evidence(finding, capture->path, NULL, NULL,
	                    "no communication.json, no analysis.db, no collective among the "
	                    "kernels; level %s",
	                    *capture->config.level ? capture->config.level : np_tr("not recorded"));
	np_finding_advice(finding,
	                  "Collect again with profiler_level=torch_npu.profiler.ProfilerLevel."
	                  "Level1 or higher, in a job of more than one rank.");
}

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
		else {
			np_check_fail(out,
			              "%s has no communication data (Level1 or higher is needed)",
			              label);
			tell_no_communication(gate, capture);
		}
	}
}
