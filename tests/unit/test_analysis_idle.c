/* Idle time: planted causes are found at their cost, and every nanosecond has one. */
#include "synth_unit.h"

#include "analysis/analysis.h"
#include "analysis/select.h"

/* ── a report of a synthetic capture ── */

static struct np_report *analyze_path(const char *path, const char *rule, struct np_err *err)
{
	struct np_captures *all = NULL;
	struct np_rules rules = np_default_rules;
	struct np_analyze_options options = {.top = 100000, .threads = 1, .rules = &rules};
	struct np_report *report = np_report_new("analyze");
	enum np_status status = np_discover(path, &all, err);
	np_str rest = np_str_of(rule ? rule : "");
	while (rest.len > 0) {
		char one[64];
		np_str text = np_str_cut(rest, ',', &rest);
		(void)snprintf(one, sizeof one, "%.*s", NP_FMT(text));
		assert_int_equal(np_rules_set(&rules, one, err), NP_OK);
	}
	if (status == NP_OK && report)
		status = np_analyze(all->captures.v[0], &options, report, err);
	np_captures_free(all);
	if (status == NP_OK)
		return report;
	np_report_free(report);
	return NULL;
}

static struct np_report *analyze_set(struct fixture *f, unsigned format, const char *fault,
                                     const char *rule)
{
	f->options.formats = format;
	(void)np_tree_remove(f->set, NULL);
	write_set(f, fault);
	struct np_report *report = analyze_path(rank_dir(f, 0), rule, &f->err);
	if (!report)
		fail_msg("%s: %s", fault ? fault : "healthy", f->err.msg);
	return report;
}

static const struct np_table *table(const struct np_report *report, const char *id)
{
	for (size_t i = 0; i < report->tables.n; i++)
		if (strcmp(report->tables.v[i]->id, id) == 0)
			return report->tables.v[i];
	fail_msg("no table %s", id);
	return NULL;
}

static const struct np_cell *at(const struct np_table *t, size_t row, const char *name)
{
	for (size_t c = 0; c < t->n_columns; c++)
		if (strcmp(t->columns[c].name, name) == 0)
			return np_table_cell(t, row, c);
	fail_msg("no column %s", name);
	return NULL;
}

static int64_t sum(const struct np_table *t, const char *name)
{
	int64_t all = 0;
	for (size_t row = 0; row < np_table_rows(t); row++)
		all += at(t, row, name)->i;
	return all;
}

static const struct np_finding *finding(const struct np_report *report, const char *code)
{
	for (size_t i = 0; i < report->findings.n; i++)
		if (strcmp(report->findings.v[i]->code, code) == 0)
			return report->findings.v[i];
	return NULL;
}

static void assert_partition(const struct np_report *report)
{
	assert_int_equal(sum(table(report, "idle"), "total_ns"),
	                 sum(table(report, "steps"), "free_ns"));
	assert_int_equal(sum(table(report, "gaps"), "length_ns"),
	                 sum(table(report, "steps"), "free_ns"));
}

static void assert_same_table(const struct np_report *a, const struct np_report *b, const char *id)
{
	const struct np_table *x = table(a, id), *y = table(b, id);
	assert_int_equal(np_table_rows(x), np_table_rows(y));
	for (size_t row = 0; row < np_table_rows(x); row++) {
		for (size_t c = 0; c < x->n_columns; c++) {
			const struct np_cell *p = np_table_cell(x, row, c),
					     *q = np_table_cell(y, row, c);
			assert_int_equal(p->na, q->na);
			if (p->na)
				continue;
			if (x->columns[c].type == NP_COL_TEXT)
				assert_true(np_str_eq(p->s, q->s));
			else
				assert_memory_equal(&p->i, &q->i, sizeof p->i);
		}
	}
}

static const struct planted {
	const char *fault, *class, *code, *hint;
} planted[] = {
	{"idle-host-op", "host_op", "HOST_BOUND", "possible_host_launch_lag"},
	{"idle-sync", "host_sync", "SYNC_BOUND", "possible_sync_or_h2d"},
	{"idle-dataloader", "host_dataloader", "HOST_BOUND", "possible_host_launch_lag"},
	{"idle-gc", "host_gc", "HOST_BOUND", "possible_host_launch_lag"},
	{"idle-dependency", "dependency", "DEPENDENCY_BOUND", "possible_comm_wait"},
	{"idle-launch", "launch", "HOST_BOUND", "possible_host_launch_lag"},
	{"idle-untraced", "host_untraced", NULL, "possible_untraced_host_blocking"},
};
enum { N_PLANTED = sizeof planted / sizeof *planted };

static void assert_planted(struct fixture *f, const struct planted *p,
                           const struct np_report *report)
{
	const struct np_table *idle = table(report, "idle");
	int64_t cost = truth(f, 0, "stall_ns"), found = at(idle, 0, "total_ns")->i;
	assert_true(cost > 0);
	assert_str(at(idle, 0, "class")->s, p->class);
	if (found < cost - cost / 10 || found > cost + cost / 10)
		fail_msg("%s: planted %lld ns, found %lld", p->fault, (long long)cost,
		         (long long)found);
	const struct np_finding *heavy = finding(report, "DEVICE_IDLE_GAP_HEAVY");
	assert_non_null(heavy);
	assert_int_equal(heavy->severity, NP_WARNING);
	assert_non_null(strstr(heavy->detail, p->hint));
	assert_ptr_equal(strstr(heavy->detail, p->class), heavy->detail);
	static const char *const verdicts[] = {"HOST_BOUND", "SYNC_BOUND", "DEPENDENCY_BOUND"};
	for (int i = 0; i < 3; i++)
		assert_int_equal(finding(report, verdicts[i]) != NULL,
		                 p->code && strcmp(p->code, verdicts[i]) == 0);
	assert_partition(report);
}

static void each_planted_cause_is_named_first_at_its_cost(void **state)
{
	struct fixture *f = *state;
	f->options.ranks = 1;
	f->options.layers = 4;
	for (int i = 0; i < N_PLANTED; i++) {
		struct np_report *text = analyze_set(f, NP_SYNTH_TEXT, planted[i].fault, NULL);
		assert_planted(f, &planted[i], text);
		struct np_report *db = analyze_set(f, NP_SYNTH_DB, planted[i].fault, NULL);
		assert_planted(f, &planted[i], db);
		assert_same_table(text, db, "idle");
		assert_same_table(text, db, "gaps");
		assert_same_table(text, db, "idle_edges");
		assert_same_table(text, db, "launch");
		assert_same_table(text, db, "queue");
		np_report_free(text);
		np_report_free(db);
	}
}

static void causes_are_found_without_the_calls_of_level0_too(void **state)
{
	static const int visible[] = {0, 1, 2, 3, 4, 6}; /* how long a launch took is not */
	struct fixture *f = *state;
	f->options.ranks = 1;
	f->options.layers = 4;
	f->options.level = 0;
	for (size_t i = 0; i < sizeof visible / sizeof *visible; i++) {
		const struct planted *p = &planted[visible[i]];
		struct np_report *report = analyze_set(f, NP_SYNTH_TEXT, p->fault, NULL);
		assert_planted(f, p, report);
		assert_int_equal(sum(table(report, "launch"), "unlinked"), 0);
		assert_true(at(table(report, "launch"), 0, "shorter")->na);
		np_report_free(report);
	}
}

static void a_bound_rank_is_told_among_others(void **state)
{
	struct fixture *f = *state;
	struct np_report *report = analyze_set(f, NP_SYNTH_DB, "host-bound=0", NULL);
	assert_non_null(finding(report, "HOST_BOUND"));
	assert_str(at(table(report, "idle"), 0, "class")->s, "host_op");
	assert_partition(report);
	np_report_free(report);
	report = analyze_set(f, NP_SYNTH_DB, "host-bound=1", NULL); /* not this rank */
	assert_null(finding(report, "HOST_BOUND"));
	assert_null(finding(report, "DEVICE_IDLE_GAP_HEAVY"));
	np_report_free(report);
}

static void a_healthy_capture_is_left_alone(void **state)
{
	static const struct {
		uint32_t ranks, steps, layers, ops;
		int level;
	} sizes[] = {{1, 1, 1, 1, 1}, {2, 2, 2, 12, 0}, {2, 3, 8, 5, 2}, {4, 1, 24, 12, 1}};
	struct fixture *f = *state;
	for (size_t i = 0; i < 2 * sizeof sizes / sizeof *sizes; i++) {
		f->options.ranks = sizes[i / 2].ranks;
		f->options.tp = 1;
		f->options.steps = sizes[i / 2].steps;
		f->options.layers = sizes[i / 2].layers;
		f->options.ops = sizes[i / 2].ops;
		f->options.level = sizes[i / 2].level;
		struct np_report *report =
			analyze_set(f, i % 2 ? NP_SYNTH_DB : NP_SYNTH_TEXT, NULL, NULL);
		for (size_t k = 0; k < report->findings.n; k++)
			if (report->findings.v[k]->severity != NP_INFO)
				fail_msg("%s", report->findings.v[k]->title);
		assert_int_equal(sum(table(report, "launch"), "unlinked"), 0);
		assert_partition(report);
		np_report_free(report);
	}
}

static void long_gaps_are_findings_by_their_place(void **state)
{
	static const char *const codes[] = {"INTERNAL_BUBBLE_HEAVY", "PRELAUNCH_GAP_HEAVY",
	                                    "TAIL_GAP_HEAVY"};
	struct fixture *f = *state;
	struct np_report *report =
		analyze_set(f, NP_SYNTH_DB, NULL, "gap_min_us=1,gap_min_share=0.00001");
	for (int i = 0; i < 3; i++) {
		assert_non_null(finding(report, codes[i]));
		assert_non_null(finding(report, codes[i])->advice);
	}
	np_report_free(report);
	report = analyze_set(f, NP_SYNTH_DB, NULL, NULL);
	for (int i = 0; i < 3; i++)
		assert_null(finding(report, codes[i]));
	np_report_free(report);
	f->options.ranks = 1;
	report = analyze_set(f, NP_SYNTH_TEXT, "idle-gc", NULL);
	assert_non_null(finding(report, "INTERNAL_BUBBLE_HEAVY"));
	np_report_free(report);
}

static void without_a_trace_the_cause_is_not_collected(void **state)
{
	struct fixture *f = *state;
	f->options.ranks = 1;
	(void)np_tree_remove(f->set, NULL);
	write_set(f, "idle-gc");
	assert_int_equal(unlink(out_path(f, 0, "trace_view.json")), 0);
	struct np_report *report = analyze_path(rank_dir(f, 0), NULL, &f->err);
	assert_non_null(report);
	const struct np_table *idle = table(report, "idle");
	assert_int_equal(np_table_rows(idle), 1);
	assert_str(at(idle, 0, "class")->s, "not_collected");
	assert_partition(report);
	assert_null(finding(report, "HOST_BOUND"));
	assert_non_null(
		strstr(finding(report, "DEVICE_IDLE_GAP_HEAVY")->detail, "insufficient_evidence"));
	assert_int_equal(np_table_rows(table(report, "queue")), 0);
	assert_true(report->notes.n >= 1);
	np_report_free(report);
}

static void one_step_is_parted_as_well(void **state)
{
	struct fixture *f = *state;
	struct np_captures *all = NULL;
	struct np_analyze_options options = {.has_step = true, .step = 13, .top = 100000};
	f->options.steps = 3;
	f->options.formats = NP_SYNTH_DB;
	write_set(f, NULL);
	assert_int_equal(np_discover(rank_dir(f, 1), &all, &f->err), NP_OK);
	struct np_report *report = np_report_new("analyze");
	assert_int_equal(np_analyze(all->captures.v[0], &options, report, &f->err), NP_OK);
	assert_int_equal(np_table_rows(table(report, "steps")), 1);
	assert_partition(report);
	np_report_free(report);
	np_captures_free(all);
}

static void memory_may_run_out_anywhere(void **state)
{
	struct fixture *f = *state;
	struct np_captures *all = NULL;
	struct np_analyze_options options = {.threads = 1};
	f->options.ranks = f->options.steps = f->options.layers = 1;
	f->options.level = 0;
	write_set(f, "idle-gc");
	assert_int_equal(np_discover(rank_dir(f, 0), &all, &f->err), NP_OK);
	bool done = false;
	for (uint64_t n = 1; !done && n < 100000; n += 1 + n / 64) {
		struct np_report *report = np_report_new("analyze");
		np_mem_fail_after(n);
		enum np_status status = np_analyze(all->captures.v[0], &options, report, &f->err);
		np_mem_fail_after(0);
		done = status == NP_OK;
		if (!done)
			assert_int_equal(status, NP_E_NOMEM);
		np_report_free(report);
	}
	assert_true(done);
	np_captures_free(all);
}

/* ── real captures ── */

static void real_captures_agree_in_text_and_db(void **state)
{
	static const char *const paths[] = {
		"data/ddp2/text/level0/rank0_ascend_pt", "data/ddp2/db/level0/rank0_ascend_pt",
		"data/ddp2/text/level2/rank1_ascend_pt", "data/ddp2/db/level2/rank1_ascend_pt"};
	struct fixture *f = *state;
	for (size_t i = 0; i < 4; i++) {
		const char *path = shared_path(paths[i]);
		if (!path)
			skip();
		struct np_report *report = analyze_path(path, NULL, &f->err);
		assert_non_null(report);
		const struct np_table *idle = table(report, "idle");
		assert_partition(report);
		assert_int_equal(sum(table(report, "launch"), "unlinked"), 0);
		assert_str(at(idle, 0, "class")->s, "host_op");
		double share = (double)at(idle, 0, "total_ns")->i /
		               (double)sum(table(report, "steps"), "free_ns");
		assert_true(share > 0.5 && share < 0.7);
		np_report_free(report);
	}
}

static void a_real_capture_without_a_trace_says_so(void **state)
{
	struct fixture *f = *state;
	const char *path = shared_path("data/qwen3_4rank/rank_0_ascend_pt");
	if (!path)
		skip();
	struct np_report *report = analyze_path(path, NULL, &f->err);
	assert_non_null(report);
	assert_partition(report);
	assert_str(at(table(report, "idle"), 0, "class")->s, "not_collected");
	np_report_free(report);
}

/* ── selection ── */

static int by_value(const void *a, const void *b)
{
	np_ns x = *(const np_ns *)a, y = *(const np_ns *)b;
	return (x > y) - (x < y);
}

static void percentiles_are_those_of_sorted_values(void **state)
{
	np_ns sorted[257], work[257];
	uint64_t seed = 7;
	(void)state;
	for (size_t n = 1; n <= 257; n += 16) {
		for (size_t i = 0; i < n; i++) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			sorted[i] = (np_ns)(seed >> 58) - 20; /* with many equal ones */
		}
		memcpy(work, sorted, sizeof work);
		qsort(sorted, n, sizeof *sorted, by_value);
		for (size_t k = 0; k < n; k++)
			assert_int_equal(np_select_ns(work, n, k), sorted[k]);
		assert_int_equal(np_percentile_ns(work, n, 100), sorted[n - 1]);
		assert_int_equal(np_percentile_ns(work, n, 0), sorted[0]);
		assert_int_equal(np_percentile_ns(work, n, 50), sorted[(n + 1) / 2 - 1]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_planted_cause_is_named_first_at_its_cost),
		TEST(causes_are_found_without_the_calls_of_level0_too),
		TEST(a_bound_rank_is_told_among_others),
		TEST(a_healthy_capture_is_left_alone),
		TEST(long_gaps_are_findings_by_their_place),
		TEST(without_a_trace_the_cause_is_not_collected),
		TEST(one_step_is_parted_as_well),
		TEST(memory_may_run_out_anywhere),
		TEST(real_captures_agree_in_text_and_db),
		TEST(a_real_capture_without_a_trace_says_so),
		cmocka_unit_test(percentiles_are_those_of_sorted_values),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
