#include "capture/describe.h"

#include <stdio.h>
#include <string.h>

#include "base/intern.h"
#include "capture/expect.h"
#include "capture/lint.h"
#include "capture/summary.h"
#include "report/lang.h"

/* ── lists of numbers: "0-3, 7" ── */

struct number_list {
	struct np_buf text;
	const char *group; /* parent directory of the ranks that are being added */
	int64_t from, to;
	bool open;
};

static void flush_range(struct number_list *list)
{
	if (!list->open)
		return;
	const char *comma = "";
	if (list->text.len && list->text.ptr[list->text.len - 1] != ' ')
		comma = ", ";
	if (list->from == list->to)
		np_buf_printf(&list->text, "%s%lld", comma, (long long)list->from);
	else
		np_buf_printf(&list->text, "%s%lld-%lld", comma, (long long)list->from,
		              (long long)list->to);
	list->open = false;
}

static void add_number(struct number_list *list, int64_t value)
{
	if (list->open && list->to < INT64_MAX && value == list->to + 1) {
		list->to = value;
		return;
	}
	flush_range(list);
	list->from = list->to = value;
	list->open = true;
}

/*
 * Ranks of several parents are told apart: "actor: 0-3; rollout: 0-7". Where the
 * rank is unknown the parent's name has to do, else the capture's.
 */
static void add_rank(struct number_list *list, const struct np_capture *capture)
{
	bool parent = *capture->group_dir != '\0';
	if (capture->rank == NP_NO_I64) {
		flush_range(list);
		np_buf_printf(&list->text, "%s%s", list->text.len ? "; " : "",
		              parent ? capture->group_dir : capture->name);
		list->group = NULL;
		return;
	}
	if (parent && (!list->group || strcmp(list->group, capture->group_dir) != 0)) {
		flush_range(list);
		np_buf_printf(&list->text, "%s%s: ", list->text.len ? "; " : "",
		              capture->group_dir);
	}
	list->group = capture->group_dir;
	add_number(list, capture->rank);
}

static void cell_list(struct np_table *table, struct number_list *list)
{
	flush_range(list);
	np_cell_text(table, np_buf_str(&list->text));
	np_buf_release(&list->text);
}

static void cell_text_or_na(struct np_table *table, const char *text)
{
	np_cell_cstr(table, text && *text ? text : NULL);
}

static void cell_int_or_na(struct np_table *table, int64_t value)
{
	if (value == NP_NO_I64)
		np_cell_na(table);
	else
		np_cell_int(table, value);
}

/* ── captures ── */

static const struct np_column capture_columns[] = {
	{"rank", "", NP_COL_INT, "global rank; - when unknown"},
	{"rank_from", "", NP_COL_TEXT, "where the rank id was found"},
	{"kind", "", NP_COL_TEXT, "framework and formats"},
	{"role", "", NP_COL_TEXT, "parent directories below the input"},
	{"host", "", NP_COL_TEXT, "host or worker name"},
	{"device", "", NP_COL_INT, "device id"},
	{"batch", "", NP_COL_TEXT, "time stamp of the directory"},
	{"steps", "", NP_COL_TEXT, "ids of the steps"},
	{"kernels", "", NP_COL_INT, "kernel rows, collectives included"},
	{"span_ns", "us", NP_COL_DUR_NS, "first start to last end of its kernels"},
	{"size_bytes", "bytes", NP_COL_BYTES, "deliverables and raw data"},
	{"name", "", NP_COL_TEXT, "directory or file"},
};

static int64_t size_of(const struct np_capture *capture)
{
	uint64_t bytes = capture->raw_bytes;
	for (size_t i = 0; i < capture->files.n; i++)
		bytes += capture->files.v[i].size_bytes;
	return (int64_t)bytes;
}

static void add_capture(struct np_table *table, const struct np_capture *capture,
                        const struct np_summary *sum)
{
	char kind[128];
	struct number_list steps = {.group = NULL};
	np_capture_kind(capture, kind, sizeof kind);
	cell_int_or_na(table, capture->rank);
	np_cell_cstr(table, capture->framework == NP_FW_CLUSTER
	                            ? NULL
	                            : np_rank_source_name(capture->rank_source));
	np_cell_cstr(table, kind);
	cell_text_or_na(table, capture->group_dir);
	cell_text_or_na(table, capture->host);
	cell_int_or_na(table, capture->device);
	cell_text_or_na(table, capture->batch);
	for (size_t i = 0; i < sum->n_steps; i++)
		add_number(&steps, sum->steps[i]);
	if (sum->n_steps)
		cell_list(table, &steps);
	else
		np_cell_na(table);
	cell_int_or_na(table, sum->loaded & NP_KERNELS ? (int64_t)sum->kernels : NP_NO_I64);
	cell_int_or_na(table,
	               sum->first_ns == NP_NO_I64 ? NP_NO_I64 : sum->last_ns - sum->first_ns);
	np_cell_int(table, size_of(capture));
	np_cell_cstr(table, capture->name);
}

static void describe_captures(const struct np_captures *all, const struct np_summary *sums,
                              struct np_report *report)
{
	struct np_table *table = NP_REPORT_TABLE(report, "captures", "Captures", capture_columns);
	for (size_t i = 0; i < all->captures.n; i++)
		add_capture(table, all->captures.v[i], &sums[i]);
}

/* ── configuration: one row per distinct one ── */

static const struct np_column config_columns[] = {
	{"ranks", "", NP_COL_TEXT, "ranks with this configuration"},
	{"level", "", NP_COL_TEXT, "profiler_level"},
	{"aic_metrics", "", NP_COL_TEXT, "PMU group"},
	{"schedule", "", NP_COL_TEXT, "skip_first/wait/warmup/active x repeat"},
	{"activities", "", NP_COL_TEXT, "ProfilerActivity"},
	{"export", "", NP_COL_TEXT, "export_type"},
	{"options", "", NP_COL_TEXT, "with_stack, record_shapes, profile_memory, l2_cache"},
	{"npu", "", NP_COL_TEXT, "chip"},
	{"torch_npu", "", NP_COL_TEXT, "version of torch_npu"},
	{"cann", "", NP_COL_TEXT, "version of CANN"},
};

static void schedule_text(const struct np_config *config, char *out, size_t size)
{
	if (!config->has_schedule || config->active == NP_NO_I64) {
		(void)snprintf(out, size, "%s", config->recorded ? "none" : "");
		return;
	}
	(void)snprintf(out, size, "%lld/%lld/%lld/%lld x%lld", (long long)config->skip_first,
	               (long long)config->wait, (long long)config->warmup,
	               (long long)config->active, (long long)config->repeat);
}

static void options_text(const struct np_config *config, char *out, size_t size)
{
	const struct {
		int on;
		const char *name;
	} flags[] = {
		{config->with_stack, "stack"},
		{config->record_shapes, "shapes"},
		{config->profile_memory, "memory"},
		{config->l2_cache, "l2"},
	};
	size_t len = 0;
	out[0] = '\0';
	for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
		if (flags[i].on > 0 && len < size)
			len += (size_t)snprintf(out + len, size - len, "%s%s", len ? "," : "",
			                        flags[i].name);
}

static bool same_config(const struct np_capture *a, const struct np_capture *b)
{
	/* the cheap half first: thousands of captures are compared in pairs */
	if (strcmp(a->config.level, b->config.level) != 0 ||
	    strcmp(a->config.aic_metrics, b->config.aic_metrics) != 0 ||
	    strcmp(a->config.export_types, b->config.export_types) != 0 ||
	    strcmp(a->config.activities, b->config.activities) != 0 ||
	    strcmp(a->npu_name, b->npu_name) != 0 ||
	    strcmp(a->config.torch_npu_version, b->config.torch_npu_version) != 0 ||
	    strcmp(a->config.cann_version, b->config.cann_version) != 0)
		return false;
	char x[2][96], y[2][96];
	schedule_text(&a->config, x[0], sizeof x[0]);
	schedule_text(&b->config, y[0], sizeof y[0]);
	options_text(&a->config, x[1], sizeof x[1]);
	options_text(&b->config, y[1], sizeof y[1]);
	return strcmp(x[0], y[0]) == 0 && strcmp(x[1], y[1]) == 0;
}

static void add_config(struct np_table *table, const struct np_captures *all, size_t first)
{
	const struct np_capture *capture = all->captures.v[first];
	char schedule[96], options[96];
	struct number_list ranks = {.group = NULL};
	for (size_t i = first; i < all->captures.n; i++)
		if (all->captures.v[i]->framework != NP_FW_CLUSTER &&
		    same_config(capture, all->captures.v[i]))
			add_rank(&ranks, all->captures.v[i]);
	schedule_text(&capture->config, schedule, sizeof schedule);
	options_text(&capture->config, options, sizeof options);
	cell_list(table, &ranks);
	cell_text_or_na(table, capture->config.level);
	cell_text_or_na(table, capture->config.aic_metrics);
	cell_text_or_na(table, schedule);
	cell_text_or_na(table, capture->config.activities);
	cell_text_or_na(table, capture->config.export_types);
	cell_text_or_na(table, options);
	cell_text_or_na(table, capture->npu_name);
	cell_text_or_na(table, capture->config.torch_npu_version);
	cell_text_or_na(table, capture->config.cann_version);
}

static void describe_config(const struct np_captures *all, struct np_report *report)
{
	struct np_table *table =
		NP_REPORT_TABLE(report, "config", "Recorded configuration", config_columns);
	for (size_t i = 0; i < all->captures.n; i++) {
		bool seen = all->captures.v[i]->framework == NP_FW_CLUSTER;
		for (size_t k = 0; k < i && !seen; k++)
			seen = same_config(all->captures.v[k], all->captures.v[i]);
		if (!seen)
			add_config(table, all, i);
	}
}

/* ── deliverables ── */

static const struct np_column deliverable_columns[] = {
	{"deliverable", "", NP_COL_TEXT, "kind of file"},
	{"state", "", NP_COL_TEXT, "present, missing (asked for, not there), not collected"},
	{"ranks", "", NP_COL_TEXT, "the ranks of this row"},
	{"files", "", NP_COL_INT, "how many files, slices counted each"},
	{"size_bytes", "bytes", NP_COL_BYTES, "their size"},
	{"needs", "", NP_COL_TEXT, "what must be recorded for it"},
	{"tells", "", NP_COL_TEXT, "what is lost without it"},
};

static void add_deliverable(struct np_table *table, const struct np_captures *all,
                            enum np_role role, enum np_presence state)
{
	static const char *const names[] = {NP_N("present"), NP_N("missing"), NP_N("not collected"),
	                                    ""};
	struct number_list ranks = {.group = NULL};
	const char *needs = "", *why;
	int64_t files = 0;
	uint64_t bytes = 0;
	for (size_t i = 0; i < all->captures.n; i++) {
		const struct np_capture *capture = all->captures.v[i];
		bool own = np_capture_file(capture, role) != NULL;
		if (np_expect(capture, role, &why) != state || (state == NP_PRESENT && !own))
			continue;
		needs = why;
		add_rank(&ranks, capture);
		for (size_t f = 0; f < capture->files.n; f++)
			if (capture->files.v[f].role == role) {
				files++;
				bytes += capture->files.v[f].size_bytes;
			}
	}
	flush_range(&ranks);
	if (ranks.text.len) {
		np_cell_cstr(table, np_role_name(role));
		np_cell_word(table, names[state]);
		np_cell_text(table, np_buf_str(&ranks.text));
		cell_int_or_na(table, state == NP_PRESENT ? files : NP_NO_I64);
		cell_int_or_na(table, state == NP_PRESENT ? (int64_t)bytes : NP_NO_I64);
		cell_text_or_na(table, needs);
		np_cell_word(table, np_role_loss(role));
	}
	np_buf_release(&ranks.text);
}

static void describe_deliverables(const struct np_captures *all, struct np_report *report)
{
	struct np_table *table =
		NP_REPORT_TABLE(report, "deliverables", "Deliverables", deliverable_columns);
	for (enum np_role role = NP_ROLE_NONE + 1; role < NP_N_ROLES; role++)
		for (enum np_presence state = NP_PRESENT; state <= NP_NOT_COLLECTED; state++)
			add_deliverable(table, all, role, state);
}

/* Missing ones are a finding as well, with the way to get them. */
static void find_missing(const struct np_captures *all, struct np_report *report)
{
	struct np_finding *finding = NULL;
	for (enum np_role role = NP_ROLE_NONE + 1; role < NP_N_ROLES; role++) {
		struct number_list ranks = {.group = NULL};
		const char *why = "", *needs = "";
		for (size_t i = 0; i < all->captures.n; i++) {
			const struct np_capture *capture = all->captures.v[i];
			if (np_expect(capture, role, &why) != NP_MISSING)
				continue;
			needs = why;
			add_rank(&ranks, capture);
			if (finding)
				continue;
			finding = np_report_finding(
				report, "DELIVERABLE_MISSING", NP_WARNING,
				"files that the recorded configuration asks for are not there");
			np_finding_advice(
				finding, "If they were left behind, copy them; if the export broke "
					 "off, export again from the raw dump.");
			np_finding_command(finding, "%s", np_reanalyse_command(report, capture));
		}
		flush_range(&ranks);
		if (ranks.text.len)
			np_finding_evidence(finding, NULL, NULL, NULL, "%s, ranks %s (%s): %s",
			                    np_role_name(role), ranks.text.ptr, needs,
			                    np_tr(np_role_loss(role)));
		np_buf_release(&ranks.text);
	}
}

/* ── groups, left out ── */

static const struct np_column group_columns[] = {
	{"group", "", NP_COL_TEXT, "name of the parallel group"},
	{"ranks", "", NP_COL_TEXT, "global ranks"},
	{"hash", "", NP_COL_TEXT, "what communication data call it (hash of the communicator)"},
	{"communicator", "", NP_COL_TEXT, "communicator name"},
};

static void add_group(struct np_report *report, struct np_table **table,
                      const struct np_group *group)
{
	struct number_list ranks = {.group = NULL};
	if (!*table)
		*table = NP_REPORT_TABLE(report, "groups", "Parallel groups", group_columns);
	for (size_t r = 0; r < group->n_ranks; r++)
		add_number(&ranks, group->ranks[r]);
	cell_text_or_na(*table, group->name);
	cell_list(*table, &ranks);
	np_cell_printf(*table, "%llu", (unsigned long long)group->hash);
	np_cell_cstr(*table, group->comm_name);
}

/* Every rank records all its groups: each communicator once. */
static bool describe_groups(const struct np_captures *all, struct np_report *report)
{
	struct np_table *table = NULL;
	struct np_intern seen;
	bool ok = np_intern_init(&seen), nameless = false;
	for (size_t i = 0; ok && i < all->captures.n; i++)
		for (size_t g = 0; ok && g < all->captures.v[i]->n_groups; g++) {
			const struct np_group *group = &all->captures.v[i]->groups[g];
			size_t before = seen.strings.n;
			ok = np_intern_add(&seen, np_str_of(group->comm_name)) != NP_ID_NONE;
			bool fresh = *group->comm_name ? seen.strings.n > before : !nameless;
			nameless |= !*group->comm_name; /* every intern table has "" */
			if (fresh)
				add_group(report, &table, group);
		}
	np_intern_release(&seen);
	return ok;
}

static const struct np_column left_out_columns[] = {
	{"path", "", NP_COL_TEXT, "what was seen and not used"},
	{"reason", "", NP_COL_TEXT, "why"},
};

static void describe_left_out(const struct np_captures *all, struct np_report *report)
{
	if (all->left_out.n == 0)
		return;
	struct np_table *table =
		NP_REPORT_TABLE(report, "left_out", "Seen and left out", left_out_columns);
	for (size_t i = 0; i < all->left_out.n; i++) {
		np_cell_cstr(table, all->left_out.v[i].path);
		np_cell_cstr(table, all->left_out.v[i].reason);
	}
}

/* ── the whole ── */

static void add_notes(const struct np_captures *all, struct np_report *report)
{
	const char *shown = "";
	for (size_t i = 0; i < all->captures.n; i++)
		if (*all->captures.v[i]->distributed) {
			shown = all->captures.v[i]->distributed;
			break;
		}
	if (*shown)
		np_report_note(report, "parallel strategy recorded: %s", shown);
	np_report_note(report, "%llu files, %.1f MiB seen", (unsigned long long)all->files,
	               (double)all->bytes / 1048576.0);
}

static bool unreadable(const struct np_report *report)
{
	static const char *const codes[] = {"UNREADABLE", "DB_UNREADABLE", "FILE_DAMAGED",
	                                    "ARCHIVE_DAMAGED"};
	for (size_t i = 0; i < report->findings.n; i++)
		for (size_t c = 0; c < sizeof codes / sizeof *codes; c++)
			if (strcmp(report->findings.v[i]->code, codes[c]) == 0)
				return true;
	return false;
}

enum np_status np_describe(const struct np_captures *all, unsigned threads,
                           struct np_progress *progress, struct np_report *report,
                           struct np_err *err)
{
	struct np_summary *sums = NULL;
	NP_TRY(np_summarize(all, NP_KERNELS | NP_STEP_TRACE, threads, progress, &sums, err));
	if (all->captures.n == 0) {
		struct np_finding *finding = np_report_finding(report, "NO_CAPTURE", NP_ERROR,
		                                               "no capture below %s", all->input);
		np_finding_detail(
			finding,
			"Looked for *_ascend_pt, *_ascend_ms, PROF_*, "
			"ASCEND_PROFILER_OUTPUT, mindstudio_profiler_output, and for single "
			"deliverables, %d directories deep.",
			NP_DISCOVER_MAX_DEPTH);
		report->exit_code = 2;
	} else {
		describe_captures(all, sums, report);
		describe_config(all, report);
		describe_deliverables(all, report);
		if (!describe_groups(all, report)) {
			np_summaries_free(sums, all->captures.n);
			return np_err_nomem(err);
		}
	}
	np_lint(all, sums, report);
	find_missing(all, report);
	np_lint_problems(all, report);
	np_lint_diags(sums, all->captures.n, report);
	describe_left_out(all, report);
	add_notes(all, report);
	if (report->exit_code == 0 && unreadable(report))
		report->exit_code = 4;
	np_summaries_free(sums, all->captures.n);
	return np_report_ok(report, err);
}
