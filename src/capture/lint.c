#include "capture/lint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ── sets of captures that belong together ── */

struct set {
	const struct np_captures *all;
	const struct np_summary *summaries; /* of all captures, or NULL */
	struct np_report *report;
	const char *name; /* group_dir, or "" when everything is one set */
	size_t *index;    /* into all->captures */
	size_t n;
};

static const struct np_capture *at(const struct set *set, size_t i)
{
	return set->all->captures.v[set->index[i]];
}

static const char *where(const struct set *set)
{
	return *set->name ? set->name : set->all->input;
}

/* "0, 1, 2 … 7" of a sorted list, at most `max` numbers written out. */
static void list_ranks(struct np_buf *out, const int64_t *ranks, size_t n, size_t max)
{
	for (size_t i = 0; i < n && i < max; i++)
		np_buf_printf(out, "%s%lld", i ? ", " : "", (long long)ranks[i]);
	if (n > max)
		np_buf_printf(out, " … %lld (%zu in all)", (long long)ranks[n - 1], n);
}

/* ── duplicate, unknown and missing ranks ── */

static void lint_duplicates(const struct set *set)
{
	for (size_t i = 0; i < set->n; i++) {
		const struct np_capture *first = at(set, i);
		if (first->rank == NP_NO_I64 || (i > 0 && at(set, i - 1)->rank == first->rank))
			continue;
		size_t end = i + 1;
		while (end < set->n && at(set, end)->rank == first->rank)
			end++;
		if (end - i < 2)
			continue;
		struct np_finding *finding = np_report_finding(
			set->report, "RANK_DUP", NP_ERROR, "rank %lld is there %zu times in %s",
			(long long)first->rank, end - i, where(set));
		np_finding_detail(
			finding,
			"Two captures of one rank are two runs, or one run exported twice. "
			"Other tools silently take the newest by the name of the directory.");
		for (size_t k = i; k < end; k++)
			np_finding_evidence(finding, at(set, k)->path, NULL, NULL,
			                    "rank from %s, batch %s",
			                    np_rank_source_name(at(set, k)->rank_source),
			                    *at(set, k)->batch ? at(set, k)->batch : "unknown");
		np_finding_advice(
			finding,
			"Keep one batch per directory: move the other captures elsewhere.");
		np_finding_command(finding, "mv %s %s", np_shell_quote(set->report, first->path),
		                   np_shell_quote(set->report, "../other_batch/"));
	}
}

static size_t count_unknown(const struct set *set)
{
	size_t unknown = 0;
	for (size_t i = 0; i < set->n; i++)
		unknown += at(set, i)->rank == NP_NO_I64;
	return unknown;
}

static void lint_unknown(const struct set *set)
{
	size_t unknown = count_unknown(set);
	bool single = set->n == 1;
	/* several runs of one process each need no word about it */
	if (unknown == 0 || (single && set->all->captures.n > 1))
		return;
	struct np_finding *finding = np_report_finding(
		set->report, "RANK_UNKNOWN", single ? NP_INFO : NP_WARNING,
		single ? "the capture has no rank id: one process without torch.distributed"
		       : "%zu of %zu captures in %s have no rank id",
		unknown, set->n, where(set));
	for (size_t i = 0; i < set->n; i++)
		if (at(set, i)->rank == NP_NO_I64)
			np_finding_evidence(finding, at(set, i)->path, NULL, NULL,
			                    "no profiler_info_<N>.json, no RANK_DEVICE_MAP, no "
			                    "rank_id, no rank in "
			                    "the name");
	if (single)
		return;
	np_finding_detail(finding,
	                  "msprof-analyze gives them rank -1 and skips their directories. npuprof "
	                  "keeps them, but cannot match them with the other ranks.");
	np_finding_advice(finding,
	                  "Export RANK before the processes start, or rename profiler_info.json to "
	                  "profiler_info_<rank>.json in a copy.");
}

static size_t distinct_ranks(const struct set *set, int64_t *ranks)
{
	size_t n = 0;
	for (size_t i = 0; i < set->n; i++) {
		int64_t rank = at(set, i)->rank;
		if (rank != NP_NO_I64 && (n == 0 || ranks[n - 1] != rank))
			ranks[n++] = rank; /* the captures are sorted by rank */
	}
	return n;
}

static int64_t recorded_world(const struct set *set)
{
	int64_t world = NP_NO_I64;
	for (size_t i = 0; i < set->n; i++)
		if (at(set, i)->world_size > world)
			world = at(set, i)->world_size;
	return world;
}

/* "0, 3 …": ranks below `world` that are not in the sorted list, 16 at most. */
static void list_missing(struct np_buf *out, const int64_t *ranks, size_t n, int64_t world)
{
	size_t shown = 0, k = 0;
	for (int64_t rank = 0; rank < world && shown < 16; rank++) {
		while (k < n && ranks[k] < rank)
			k++;
		if (k < n && ranks[k] == rank)
			continue;
		np_buf_printf(out, "%s%lld", shown++ ? ", " : "", (long long)rank);
	}
	if ((int64_t)n + (int64_t)shown < world)
		np_buf_add_cstr(out, " …");
}

static void lint_missing(const struct set *set)
{
	int64_t *ranks = np_realloc(NULL, set->n, sizeof *ranks);
	if (!ranks)
		return;
	size_t n = distinct_ranks(set, ranks);
	int64_t recorded = recorded_world(set);
	bool known = recorded > 0;
	int64_t world = known ? recorded : n ? ranks[n - 1] + 1 : 0;
	enum { MAX_WORLD = 1 << 20 };
	/* one capture says nothing about how many there should be, unless it recorded it */
	if (n > 0 && world <= MAX_WORLD && (int64_t)n < world && (known || n > 1)) {
		int64_t gone = world - (int64_t)n;
		/* captures that do not say whose they are may be the missing ones */
		size_t unknown = count_unknown(set);
		bool sure = known && (int64_t)unknown < gone;
		struct np_buf missing = {0};
		list_missing(&missing, ranks, n, world);
		struct np_finding *finding = np_report_finding(
			set->report, "RANK_MISSING", sure ? NP_ERROR : NP_WARNING,
			"%lld of %lld ranks are missing in %s: %s", (long long)gone,
			(long long)world, where(set), missing.ptr ? missing.ptr : "");
		np_finding_detail(
			finding,
			known ? "The world size of %lld is recorded with the capture. Analyses "
				"over all ranks need every one of them (R86)."
			      : "Ranks up to %lld were found, so there should be as many. Analyses "
				"over all ranks need every one of them (R86).",
			(long long)(known ? world : world - 1));
		if (unknown)
			np_finding_evidence(finding, NULL, NULL, NULL,
			                    "%zu captures without a rank id may be among them",
			                    unknown);
		np_finding_advice(
			finding,
			"Copy the missing captures into the same directory; ranks on other "
			"hosts are there.");
		np_buf_release(&missing);
	}
	np_free(ranks);
}

/* ── batches and formats ── */

/* "20250109084754123" or epoch ms "1700000000000" in seconds; -1 when it is neither */
static double batch_seconds(const char *batch)
{
	int64_t v = 0;
	size_t len = strlen(batch);
	if (!np_str_to_i64(np_str_of(batch), &v))
		return -1;
	if (len == 13)
		return (double)v / 1e3;
	if (len != 17)
		return -1;
	struct tm tm = {.tm_year = (int)(v / 10000000000000) - 1900,
	                .tm_mon = (int)(v / 100000000000 % 100) - 1,
	                .tm_mday = (int)(v / 1000000000 % 100),
	                .tm_hour = (int)(v / 10000000 % 100),
	                .tm_min = (int)(v / 100000 % 100)};
	return (double)timegm(&tm) + (double)(v % 100000) / 1e3;
}

/*
 * When a capture was taken. The three clocks (local time in the name, UTC of the
 * recorded end, the device's) are never compared with each other.
 */
enum clock { CLOCK_NAME, CLOCK_END, CLOCK_KERNELS, N_CLOCKS };

static double taken_at(const struct set *set, size_t i, enum clock clock)
{
	const struct np_capture *capture = at(set, i);
	if (clock == CLOCK_NAME)
		return batch_seconds(capture->batch);
	np_ns ns = capture->config.end_ns;
	if (clock == CLOCK_KERNELS)
		ns = set->summaries ? set->summaries[set->index[i]].first_ns : NP_NO_I64;
	return ns == NP_NO_I64 ? -1 : (double)ns / 1e9;
}

enum { BATCH_SPREAD_SECONDS = 600 };

/* Earliest and latest by one clock; the seconds between them, 0 with less than two. */
static double spread_of(const struct set *set, enum clock clock, size_t *first, size_t *last)
{
	*first = *last = set->n;
	for (size_t i = 0; i < set->n; i++) {
		double t = taken_at(set, i, clock);
		if (t < 0)
			continue;
		if (*first == set->n || t < taken_at(set, *first, clock))
			*first = i;
		if (*last == set->n || t > taken_at(set, *last, clock))
			*last = i;
	}
	return *first == set->n ? 0 : taken_at(set, *last, clock) - taken_at(set, *first, clock);
}

static void lint_batches(const struct set *set)
{
	size_t first = 0, last = 0;
	double spread = 0;
	for (enum clock clock = 0; clock < N_CLOCKS && spread <= BATCH_SPREAD_SECONDS; clock++)
		spread = spread_of(set, clock, &first, &last);
	if (spread <= BATCH_SPREAD_SECONDS)
		return;
	struct np_finding *finding = np_report_finding(
		set->report, "BATCH_MIXED", NP_ERROR,
		"captures in %s were taken %.0f s apart: more than one batch", where(set), spread);
	np_finding_detail(finding,
	                  "Ranks of one run start within seconds of each other. Mixing runs gives "
	                  "wrong link matrices and wrong slow ranks (R89).");
	np_finding_evidence(finding, at(set, first)->path, NULL, NULL, "the earliest");
	np_finding_evidence(finding, at(set, last)->path, NULL, NULL, "the latest");
	np_finding_advice(finding, "Put each batch into a directory of its own.");
}

static void lint_formats(const struct set *set)
{
	size_t text = 0, db = 0, text_at = 0, db_at = 0;
	for (size_t i = 0; i < set->n; i++) {
		unsigned formats = at(set, i)->formats;
		if ((formats & NP_HAS_DB) && !(formats & NP_HAS_TEXT)) {
			db++;
			db_at = i;
		} else if ((formats & NP_HAS_TEXT) && !(formats & NP_HAS_DB)) {
			text++;
			text_at = i;
		}
	}
	if (text == 0 || db == 0)
		return;
	struct np_finding *finding = np_report_finding(
		set->report, "TYPE_MIXED", NP_WARNING,
		"%zu captures are text only and %zu are db only in %s", text, db, where(set));
	np_finding_detail(finding,
	                  "npuprof reads both; msprof-analyze calls such a directory invalid.");
	np_finding_evidence(finding, at(set, text_at)->path, NULL, NULL, "text");
	np_finding_evidence(finding, at(set, db_at)->path, NULL, NULL, "db");
	np_finding_command(finding, "%s", np_reanalyse_command(set->report, at(set, db_at)));
}

static void tell_config(struct np_finding *finding, const struct np_capture *capture)
{
	const struct np_config *config = &capture->config;
	char active[32] = "not recorded";
	if (config->active != NP_NO_I64)
		(void)snprintf(active, sizeof active, "%lld", (long long)config->active);
	np_finding_evidence(finding, capture->path, NULL, NULL, "%s, %s, active steps %s",
	                    *config->level ? config->level : "level not recorded",
	                    *config->aic_metrics ? config->aic_metrics : "aic_metrics not recorded",
	                    active);
}

static void lint_config(const struct set *set)
{
	size_t first = 0;
	while (first < set->n && !at(set, first)->config.recorded)
		first++;
	for (size_t i = first + 1; i < set->n; i++) {
		const struct np_config *a = &at(set, first)->config, *b = &at(set, i)->config;
		if (!b->recorded)
			continue;
		bool level = strcmp(a->level, b->level) != 0;
		bool metrics = strcmp(a->aic_metrics, b->aic_metrics) != 0;
		bool schedule = a->active != b->active || a->skip_first != b->skip_first ||
		                a->warmup != b->warmup || a->wait != b->wait;
		if (!level && !metrics && !schedule)
			continue;
		struct np_finding *finding =
			np_report_finding(set->report, "CONFIG_MIXED", NP_WARNING,
		                          "ranks in %s were collected differently: %s", where(set),
		                          level     ? "profiler level"
		                          : metrics ? "aic_metrics"
		                                    : "schedule");
		tell_config(finding, at(set, first));
		tell_config(finding, at(set, i));
		np_finding_advice(finding, "Compare only ranks with the same configuration.");
		return;
	}
}

/* ── spans, steps, idle ranks: need the kernels ── */

static int by_ns(const void *a, const void *b)
{
	np_ns x = *(const np_ns *)a, y = *(const np_ns *)b;
	return (x > y) - (x < y);
}

static const struct np_summary *sum_at(const struct set *set, size_t i)
{
	return &set->summaries[set->index[i]];
}

static np_ns median_of(np_ns *values, size_t n)
{
	if (n == 0)
		return 0;
	qsort(values, n, sizeof *values, by_ns);
	return values[n / 2];
}

static void lint_spans(const struct set *set)
{
	np_ns *spans = np_realloc(NULL, set->n, sizeof *spans);
	size_t n = 0;
	for (size_t i = 0; spans && i < set->n; i++)
		if (sum_at(set, i)->first_ns != NP_NO_I64)
			spans[n++] = sum_at(set, i)->last_ns - sum_at(set, i)->first_ns;
	np_ns median = spans ? median_of(spans, n) : 0;
	np_free(spans);
	if (n < 2 || median <= 0)
		return;
	struct np_finding *finding = NULL;
	for (size_t i = 0; i < set->n; i++) {
		const struct np_summary *sum = sum_at(set, i);
		if (sum->first_ns == NP_NO_I64)
			continue;
		double ratio = (double)(sum->last_ns - sum->first_ns) / (double)median;
		if (ratio >= 0.5 && ratio <= 2.0)
			continue;
		if (!finding)
			finding = np_report_finding(
				set->report, "SPAN_MISMATCH", NP_WARNING,
				"the ranks in %s did not record the same stretch of time",
				where(set));
		char span[32];
		(void)np_ns_format_human(span, sizeof span, sum->last_ns - sum->first_ns);
		np_finding_evidence(finding, at(set, i)->path, NULL, NULL,
		                    "its kernels span %s, %.2f times the median rank", span, ratio);
	}
	if (finding) {
		np_finding_detail(
			finding,
			"The stop reached the ranks at different times, or some ran other work. "
			"Totals of such ranks cannot be compared; steps can.");
		np_finding_advice(
			finding,
			"Bound the capture by steps (schedule active) rather than by start and "
			"stop calls.");
	}
}

static void lint_idle(const struct set *set)
{
	np_ns *busy = np_realloc(NULL, set->n, sizeof *busy);
	size_t n = 0;
	for (size_t i = 0; busy && i < set->n; i++)
		if (sum_at(set, i)->loaded & NP_KERNELS)
			busy[n++] = sum_at(set, i)->busy_ns;
	np_ns median = busy ? median_of(busy, n) : 0;
	np_free(busy);
	for (size_t i = 0; i < set->n && n > 1; i++) {
		const struct np_summary *sum = sum_at(set, i);
		if (!(sum->loaded & NP_KERNELS) || (double)sum->busy_ns >= (double)median * 0.01)
			continue;
		struct np_finding *finding =
			np_report_finding(set->report, "IDLE_RANK", NP_WARNING,
		                          "rank %lld did nearly nothing while others worked",
		                          (long long)at(set, i)->rank);
		np_finding_evidence(finding, at(set, i)->path, NULL, NULL,
		                    "%zu kernels, computing %.1f us, median rank %.1f us",
		                    sum->kernels, (double)sum->busy_ns / 1e3, (double)median / 1e3);
		np_finding_advice(
			finding,
			"An idle data-parallel group recorded for nothing: leave it out of the "
			"next capture.");
	}
}

static void lint_steps(const struct set *set)
{
	size_t reference = set->n;
	for (size_t i = 0; i < set->n; i++) {
		const struct np_summary *sum = sum_at(set, i);
		if (sum->n_steps == 0)
			continue;
		if (reference == set->n) {
			reference = i;
			continue;
		}
		const struct np_summary *other = sum_at(set, reference);
		if (other->n_steps == sum->n_steps &&
		    memcmp(other->steps, sum->steps, sum->n_steps * sizeof *sum->steps) == 0)
			continue;
		struct np_finding *finding =
			np_report_finding(set->report, "STEPS_DIFFER", NP_WARNING,
		                          "the ranks in %s recorded different steps", where(set));
		for (size_t k = 0; k < 2; k++) {
			struct np_buf text = {0};
			const struct np_summary *side = k ? sum : other;
			list_ranks(&text, side->steps, side->n_steps, 8);
			np_finding_evidence(finding, at(set, k ? i : reference)->path, "Step Id",
			                    NULL, "steps %s", text.ptr ? text.ptr : "");
			np_buf_release(&text);
		}
		np_finding_advice(finding, "Analyse the steps that all ranks have (--step).");
		return;
	}
}

/* ── devices without link counters ── */

static void lint_ccu(const struct set *set)
{
	for (size_t i = 0; i < set->n; i++) {
		if (!strstr(at(set, i)->npu_name, "950"))
			continue;
		struct np_finding *finding = np_report_finding(
			set->report, "CCU_NO_LINK_DATA", NP_INFO,
			"%s communicates through its CCU: link bandwidth is not recorded",
			at(set, i)->npu_name);
		np_finding_evidence(finding, at(set, i)->path, NULL, NULL, "NPU_INFO says %s",
		                    at(set, i)->npu_name);
		np_finding_detail(
			finding,
			"Communication matrix and slow link analyses are not applicable (R102).");
		return;
	}
}

/* ── single captures ── */

const char *np_reanalyse_command(struct np_report *report, const struct np_capture *capture)
{
	const char *path = np_shell_quote(report, capture->path);
	/* the command is right only where the raw dump is; say so when it is not here */
	const char *remark = capture->formats & NP_HAS_RAW
	                             ? ""
	                             : "  # where its FRAMEWORK/ and PROF_*/ are: not in this copy";
	const char *text;
	if (capture->framework == NP_FW_MSPROF)
		text = np_arena_printf(&report->arena, "msprof --export=on --output=%s%s", path,
		                       remark);
	else if (capture->framework == NP_FW_MINDSPORE)
		text = np_arena_printf(
			&report->arena,
			"python3 -c 'import sys; from mindspore.profiler.profiler import "
			"analyse; analyse(sys.argv[1])' %s%s",
			path, remark);
	else
		/* the path goes in as an argument, so no quoting can break out of the program */
		text = np_arena_printf(
			&report->arena,
			"python3 -c 'import sys; from torch_npu.profiler.profiler import "
			"analyse; analyse(sys.argv[1], max_process_number=8)' %s%s",
			path, remark);
	return text ? text : "";
}

static bool holds_nothing(const struct np_capture *capture)
{
	return !np_capture_has_data(capture) && capture->framework != NP_FW_CLUSTER;
}

static void lint_empty(const struct np_capture *capture, struct np_report *report)
{
	struct np_finding *finding =
		np_report_finding(report, "OUTPUT_EMPTY", NP_ERROR,
	                          "%s holds nothing that can be analysed", capture->name);
	np_finding_evidence(finding, capture->path, NULL, NULL, "no deliverable and no raw data");
	np_finding_detail(finding,
	                  "Usual causes: no prof.step() call, fewer steps than the warm-up, no "
	                  "on_trace_ready, a full disk (see ~/ascend/log for CANN's own log).");
	np_finding_advice(finding,
	                  "Collect again with a schedule that is passed through completely.");
}

/* Raw dumps: one finding for all of them, since one cause is likely. */
static void lint_raw(const struct np_captures *all, struct np_report *report)
{
	size_t n = 0;
	for (size_t i = 0; i < all->captures.n; i++)
		n += holds_nothing(all->captures.v[i]) &&
		     (all->captures.v[i]->formats & NP_HAS_RAW);
	struct np_finding *finding = NULL;
	for (size_t i = 0; i < all->captures.n; i++) {
		const struct np_capture *capture = all->captures.v[i];
		if (!holds_nothing(capture))
			continue;
		if (!(capture->formats & NP_HAS_RAW)) {
			lint_empty(capture, report);
			continue;
		}
		if (!finding) {
			finding = np_report_finding(report, "RAW_ONLY", NP_ERROR,
			                            n == 1 ? "%zu raw dump was never exported"
			                                   : "%zu raw dumps were never exported",
			                            n);
			np_finding_detail(
				finding,
				"The process was killed before its export, or the export "
				"failed silently: a message 'done' or 'OK' is no evidence. "
				"Exporting needs no NPU and no running process (R33-R37).");
			np_finding_command(finding, "%s", np_reanalyse_command(report, capture));
			if (n > 1)
				np_finding_advice(finding, "The same command for each of them.");
		}
		np_finding_evidence(finding, capture->path, NULL, NULL, "%.1f MiB of raw data",
		                    (double)capture->raw_bytes / 1048576.0);
	}
}

/* ── the whole ── */

static void lint_set(const struct set *set)
{
	lint_duplicates(set);
	lint_unknown(set);
	lint_missing(set);
	lint_batches(set);
	lint_formats(set);
	lint_config(set);
	lint_ccu(set);
	if (set->summaries) {
		lint_spans(set);
		lint_steps(set);
		lint_idle(set);
	}
}

/* ── which captures belong together ── */

/* The end of the run of captures with one parent that begins at `from`. */
static size_t parent_end(const struct np_captures *all, size_t from)
{
	size_t end = from + 1;
	while (end < all->captures.n &&
	       strcmp(all->captures.v[end]->group_dir, all->captures.v[from]->group_dir) == 0)
		end++;
	return end;
}

static size_t count_ranked(const struct np_captures *all, size_t from, size_t end)
{
	size_t n = 0;
	for (size_t i = from; i < end; i++)
		n += all->captures.v[i]->rank != NP_NO_I64;
	return n;
}

/* Ranks that are below both parents; each is sorted by rank. */
static size_t count_shared(const struct np_captures *all, size_t a, size_t a_end, size_t b,
                           size_t b_end)
{
	size_t shared = 0;
	while (a < a_end && b < b_end) {
		int64_t x = all->captures.v[a]->rank, y = all->captures.v[b]->rank;
		if (x == NP_NO_I64 || y == NP_NO_I64)
			break; /* unknown ranks come last */
		shared += x == y;
		a += x <= y;
		b += y <= x;
	}
	return shared;
}

/*
 * Are the parents roles or runs, each with ranks of its own, rather than hosts of one
 * run? They are when two of them share at least half of the smaller one's ranks, or both
 * have ranks that are unknown. A single rank that is on two hosts is a mistake to be told.
 */
static bool parents_are_roles(const struct np_captures *all)
{
	for (size_t a = 0; a < all->captures.n; a = parent_end(all, a))
		for (size_t b = parent_end(all, a); b < all->captures.n; b = parent_end(all, b)) {
			size_t a_end = parent_end(all, a), b_end = parent_end(all, b);
			size_t in_a = count_ranked(all, a, a_end);
			size_t in_b = count_ranked(all, b, b_end);
			size_t shared = count_shared(all, a, a_end, b, b_end);
			bool unknown = in_a < a_end - a && in_b < b_end - b;
			if (unknown || (shared > 0 && shared * 2 >= (in_a < in_b ? in_a : in_b)))
				return true;
		}
	return false;
}

/* By rank, whatever the parents; unknown ranks last, equal ones as discovery has them. */
static int by_rank(const void *a, const void *b, void *ctx)
{
	const struct np_captures *all = ((const struct set *)ctx)->all;
	size_t i = *(const size_t *)a, k = *(const size_t *)b;
	int64_t x = all->captures.v[i]->rank, y = all->captures.v[k]->rank;
	if (x == y)
		return (i > k) - (i < k);
	if (x == NP_NO_I64 || y == NP_NO_I64)
		return x == NP_NO_I64 ? 1 : -1;
	return x < y ? -1 : 1;
}

size_t np_lint(const struct np_captures *all, const struct np_summary *summaries,
               struct np_report *report)
{
	lint_raw(all, report);
	size_t before = np_report_count(report, NP_ERROR);
	bool apart = parents_are_roles(all);
	struct set set = {.all = all, .summaries = summaries, .report = report, .name = ""};
	set.index = np_realloc(NULL, all->captures.n, sizeof *set.index);
	for (size_t i = 0; set.index && i < all->captures.n;) {
		size_t end = apart ? parent_end(all, i) : all->captures.n;
		set.name = apart ? all->captures.v[i]->group_dir : "";
		set.n = 0;
		for (; i < end; i++)
			if (all->captures.v[i]->framework != NP_FW_CLUSTER)
				set.index[set.n++] = i;
		if (set.n == 0)
			continue;
		qsort_r(set.index, set.n, sizeof *set.index, by_rank, &set);
		lint_set(&set);
	}
	np_free(set.index);
	return np_report_count(report, NP_ERROR) - before;
}

enum np_severity np_lint_severity(const char *code)
{
	static const char *const mild[] = {"DB_NOTE", "SEVERAL_EXPORTS"};
	for (size_t i = 0; i < sizeof mild / sizeof *mild; i++)
		if (strcmp(code, mild[i]) == 0)
			return NP_INFO;
	static const char *const grave[] = {"UNREADABLE", "DB_UNREADABLE", "FILE_DAMAGED",
	                                    "ARCHIVE_DAMAGED"};
	for (size_t i = 0; i < sizeof grave / sizeof *grave; i++)
		if (strcmp(code, grave[i]) == 0)
			return NP_ERROR;
	return NP_WARNING;
}

static void tell_problem(const struct np_problem *problem, struct np_report *report)
{
	struct np_finding *finding = np_report_finding(
		report, problem->code, np_lint_severity(problem->code), "%s", problem->text);
	if (*problem->file)
		np_finding_evidence(finding, problem->file, NULL, NULL, "%s", "");
	if (strcmp(problem->code, "UNREADABLE") == 0 && *problem->file)
		np_finding_command(finding, "sudo chmod -R a+rX %s",
		                   np_shell_quote(report, problem->file));
}

void np_lint_problems(const struct np_captures *all, struct np_report *report)
{
	for (size_t i = 0; i < all->problems.n; i++)
		tell_problem(&all->problems.v[i], report);
	for (size_t i = 0; i < all->captures.n; i++)
		for (size_t k = 0; k < all->captures.v[i]->problems.n; k++)
			tell_problem(&all->captures.v[i]->problems.v[k], report);
}

/* The finding that tells the same of the same file already. */
static struct np_finding *told_before(const struct np_report *report, const struct np_diag *diag)
{
	for (size_t i = 0; i < report->findings.n; i++) {
		struct np_finding *finding = report->findings.v[i];
		if (strcmp(finding->code, diag->code) == 0 && finding->evidence.n &&
		    finding->evidence.v[0].file && diag->file &&
		    strcmp(finding->evidence.v[0].file, diag->file) == 0)
			return finding;
	}
	return NULL;
}

static bool has_evidence(const struct np_finding *finding, const struct np_diag *diag)
{
	for (size_t i = 0; i < finding->evidence.n; i++)
		if (strcmp(finding->evidence.v[i].text, diag->text) == 0)
			return true;
	return false;
}

void np_lint_profile(const struct np_profile *profile, struct np_report *report)
{
	for (size_t i = 0; i < profile->diags.n; i++) {
		const struct np_diag *diag = &profile->diags.v[i];
		struct np_finding *finding = told_before(report, diag);
		if (finding && has_evidence(finding, diag))
			continue; /* a report judges and analyses the same files */
		if (!finding)
			finding = np_report_finding(report, diag->code,
			                            np_lint_severity(diag->code), "%s", diag->text);
		if (diag->file)
			np_finding_evidence(finding, diag->file, NULL, NULL, "%s", diag->text);
	}
}

void np_lint_diags(const struct np_summary *summaries, size_t n, struct np_report *report)
{
	for (size_t i = 0; i < n; i++)
		if (summaries[i].profile)
			np_lint_profile(summaries[i].profile, report);
}
