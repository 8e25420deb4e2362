/* Comparisons of made-up runs with known answers, and of real ones with what the
 * field's tool says of them. */
#include "synth_unit.h"

#include <math.h>

#include "analysis/compare.h"

/* ── running it ── */

struct sides {
	struct np_captures *base, *target;
	struct np_report *report;
	struct np_err err;
};

static const struct np_capture *first(const struct np_captures *all)
{
	for (size_t i = 0; i < all->captures.n; i++)
		if (np_capture_has_data(all->captures.v[i]))
			return all->captures.v[i];
	fail_msg("no capture in %s", all->input);
	return NULL;
}

static enum np_status run(struct sides *s, const char *base, const char *target,
                          const struct np_compare_options *options)
{
	*s = (struct sides){0};
	assert_int_equal(np_discover(base, &s->base, &s->err), NP_OK);
	assert_int_equal(np_discover(target, &s->target, &s->err), NP_OK);
	const struct np_capture *b = first(s->base), *t = first(s->target);
	struct np_compare_input left = {base, &b, 1, NULL}, right = {target, &t, 1, NULL};
	s->report = np_report_new("compare");
	assert_non_null(s->report);
	return np_compare(&left, &right, 1, options, s->report, &s->err);
}

static void done(struct sides *s)
{
	np_captures_free(s->base);
	np_captures_free(s->target);
	np_report_free(s->report);
}

static void must(enum np_status status, const struct sides *s)
{
	if (status != NP_OK)
		fail_msg("%s: %s", s->err.where, s->err.msg);
	for (size_t i = 0; i < s->report->tables.n; i++)
		assert_false(s->report->mistaken);
}

static size_t count(const struct np_report *report, const char *code)
{
	size_t n = 0;
	for (size_t i = 0; i < report->findings.n; i++)
		n += strcmp(report->findings.v[i]->code, code) == 0;
	return n;
}

static const struct np_finding *find(const struct np_report *report, const char *code)
{
	for (size_t i = 0; i < report->findings.n; i++)
		if (strcmp(report->findings.v[i]->code, code) == 0)
			return report->findings.v[i];
	fail_msg("no finding %s", code);
	return NULL;
}

static const struct np_table *table(const struct np_report *report, const char *id)
{
	for (size_t i = 0; i < report->tables.n; i++)
		if (strcmp(report->tables.v[i]->id, id) == 0)
			return report->tables.v[i];
	fail_msg("no table %s", id);
	return NULL;
}

static const struct np_cell *cell_of(const struct np_table *t, size_t row, const char *column)
{
	for (size_t i = 0; i < t->n_columns; i++)
		if (strcmp(t->columns[i].name, column) == 0)
			return np_table_cell(t, row, i);
	fail_msg("no column %s", column);
	return NULL;
}

/* The row whose `column` is `text`; SIZE_MAX. */
static size_t row_of(const struct np_table *t, const char *column, const char *text)
{
	for (size_t i = 0; i < np_table_rows(t); i++)
		if (np_str_is(np_str_trim(cell_of(t, i, column)->s), text))
			return i;
	return SIZE_MAX;
}

/* ── made-up runs ── */

static void write_run(struct fixture *f, const char *dir, uint64_t seed, const char *fault)
{
	(void)snprintf(f->set, sizeof f->set, "%s/%s", f->root, dir);
	f->options.seed = seed;
	write_set(f, fault);
}

static void small_runs(struct fixture *f)
{
	f->options.ranks = 1;
	f->options.steps = 4;
	f->options.layers = 4;
}

static enum np_status run_both(struct fixture *f, struct sides *s,
                               const struct np_compare_options *options)
{
	char base[128], target[128];
	(void)snprintf(base, sizeof base, "%s/base", f->root);
	(void)snprintf(target, sizeof target, "%s/target", f->root);
	return run(s, base, target, options);
}

static void two_healthy_runs_are_within_noise(void **state)
{
	struct fixture *f = *state;
	struct sides s;
	for (uint32_t steps = 2; steps <= 5; steps += 3) {
		small_runs(f);
		f->options.steps = steps;
		write_run(f, "base", 1, NULL);
		write_run(f, "target", 2, NULL);
		must(run_both(f, &s, &(struct np_compare_options){0}), &s);
		assert_int_equal(s.report->verdict, NP_VERDICT_PASS);
		assert_int_equal(s.report->exit_code, 0);
		assert_int_equal(s.report->findings.n, 0);
		assert_int_equal(np_table_rows(table(s.report, "alignment")), 0);
		assert_int_equal(np_table_rows(table(s.report, "new")), 0);
		assert_int_equal(np_table_rows(table(s.report, "removed")), 0);
		const struct np_table *totals = table(s.report, "totals");
		assert_str(cell_of(totals, 0, "verdict")->s, "within noise");
		assert_int_equal(cell_of(totals, 0, "low_ns")->na, steps < 3);
		done(&s);
	}
}

static void a_regression_in_one_operator_is_that_operator(void **state)
{
	struct fixture *f = *state;
	struct sides s;
	small_runs(f);
	write_run(f, "base", 1, NULL);
	write_run(f, "target", 2, "regression-in-one-op");
	must(run_both(f, &s, &(struct np_compare_options){0}), &s);
	assert_int_equal(count(s.report, "OP_SLOWER"), 1);
	assert_int_equal(count(s.report, "OP_FASTER"), 0);
	assert_int_equal(count(s.report, "KERNELS_MOVED"), 0);
	assert_non_null(strstr(find(s.report, "OP_SLOWER")->title, "FlashAttentionScore"));
	const struct np_table *types = table(s.report, "op_types");
	assert_str(cell_of(types, 0, "type")->s, "FlashAttentionScore");
	assert_true(fabs(cell_of(types, 0, "change")->r - 0.30) < 0.03);
	assert_str(cell_of(types, 0, "verdict")->s, "slower");
	done(&s);
}

static void a_total_that_grows_by_the_limit_fails(void **state)
{
	struct fixture *f = *state;
	struct sides s;
	small_runs(f);
	write_run(f, "base", 1, NULL);
	write_run(f, "target", 2, "slow-rank=0");
	must(run_both(f, &s, &(struct np_compare_options){0}), &s);
	assert_int_equal(s.report->verdict, NP_VERDICT_FAIL);
	assert_int_equal(s.report->exit_code, 1);
	assert_int_equal(count(s.report, "TOTAL_REGRESSED"), 1);
	done(&s);
	struct np_rules rules = np_default_rules;
	assert_int_equal(np_rules_set(&rules, "compare_fail=0.9", NULL), NP_OK);
	must(run_both(f, &s, &(struct np_compare_options){.rules = &rules}), &s);
	assert_int_equal(s.report->verdict, NP_VERDICT_PASS);
	assert_int_equal(count(s.report, "TOTAL_SLOWER"), 1);
	done(&s);
}

static void the_other_way_round_it_is_an_improvement(void **state)
{
	struct fixture *f = *state;
	struct sides s;
	small_runs(f);
	write_run(f, "base", 1, "slow-rank=0");
	write_run(f, "target", 2, NULL);
	must(run_both(f, &s, &(struct np_compare_options){0}), &s);
	assert_int_equal(s.report->verdict, NP_VERDICT_PASS);
	assert_int_equal(count(s.report, "TOTAL_IMPROVED"), 1);
	assert_true(count(s.report, "OP_FASTER") > 0);
	assert_int_equal(np_report_count(s.report, NP_WARNING), 0);
	done(&s);
}

static void an_inserted_kernel_is_shown_where_it_was_inserted(void **state)
{
	struct fixture *f = *state;
	struct sides s;
	small_runs(f);
	write_run(f, "base", 1, NULL);
	write_run(f, "target", 2, "inserted-kernel");
	must(run_both(f, &s, &(struct np_compare_options){0}), &s);
	assert_int_equal(s.report->findings.n, 1);
	assert_int_equal(count(s.report, "KERNELS_MOVED"), 1);
	const struct np_table *t = table(s.report, "alignment");
	assert_int_equal(np_table_rows(t), 1);
	assert_str(cell_of(t, 0, "change")->s, "inserted");
	/* embedding, mask, two layers of twelve, norm and matmul of the third */
	assert_int_equal(cell_of(t, 0, "target_at")->i, 2 + 2 * 12 + 2);
	assert_int_equal(cell_of(t, 0, "target_kernels")->i, 1);
	assert_int_equal(cell_of(t, 0, "base_kernels")->i, 0);
	assert_str(cell_of(t, 0, "kernels")->s, "aclnnCast_CastAiCore_Cast");
	done(&s);
}

static void new_kernels_are_new_and_more(void **state)
{
	struct fixture *f = *state;
	struct sides s;
	small_runs(f);
	f->options.ops = 6;
	write_run(f, "base", 1, NULL);
	write_run(f, "target", 2, "aicpu");
	struct np_rules rules = np_default_rules;
	assert_int_equal(np_rules_set(&rules, "compare_new_us=1000", NULL), NP_OK);
	must(run_both(f, &s, &(struct np_compare_options){.rules = &rules}), &s);
	assert_int_equal(count(s.report, "KERNELS_MORE"), 1);
	assert_int_equal(count(s.report, "NEW_WORK"), 1);
	const struct np_table *t = table(s.report, "new");
	assert_int_equal(np_table_rows(t), 1);
	assert_str(cell_of(t, 0, "type")->s, "IndexPutV2");
	assert_int_equal(cell_of(t, 0, "base_ns")->i, 0);
	done(&s);
	must(run_both(f, &s, &(struct np_compare_options){0}), &s);
	assert_int_equal(count(s.report, "NEW_WORK"), 0);
	done(&s);
}

static void runs_of_one_step_each_are_samples_too(void **state)
{
	struct fixture *f = *state;
	struct np_captures *all[6];
	const struct np_capture *captures[6];
	struct np_err err = {0};
	small_runs(f);
	f->options.steps = 1;
	for (int i = 0; i < 6; i++) {
		char dir[16], path[128];
		(void)snprintf(dir, sizeof dir, "run%d", i);
		(void)snprintf(path, sizeof path, "%s/%s", f->root, dir);
		write_run(f, dir, (uint64_t)i + 1, i < 3 ? NULL : "regression-in-one-op");
		assert_int_equal(np_discover(path, &all[i], &err), NP_OK);
		captures[i] = first(all[i]);
	}
	struct np_compare_input base = {"base", captures, 3, NULL};
	struct np_compare_input target = {"target", captures + 3, 3, NULL};
	struct np_compare_options options = {0};
	struct np_report *report = np_report_new("compare");
	assert_int_equal(np_compare(&base, &target, 1, &options, report, &err), NP_OK);
	assert_false(cell_of(table(report, "totals"), 0, "low_ns")->na);
	assert_int_equal(count(report, "OP_SLOWER"), 1);
	np_report_free(report);
	/* two targets: a row each, the worst verdict counts */
	const struct np_compare_input targets[] = {base, target};
	report = np_report_new("compare");
	options.fail_on = "op:FlashAttentionScore>10%";
	assert_int_equal(np_compare(&base, targets, 2, &options, report, &err), NP_OK);
	assert_int_equal(report->exit_code, 1);
	const struct np_table *checks = table(report, "checks");
	size_t last = np_table_rows(checks) - 1;
	assert_int_equal(cell_of(checks, last, "target")->i, 2);
	assert_str(cell_of(checks, last, "result")->s, "FAIL");
	assert_str(cell_of(checks, last / 2, "result")->s, "PASS");
	np_report_free(report);
	for (int i = 0; i < 6; i++)
		np_captures_free(all[i]);
}

/* ── conditions ── */

static void fail_on_decides_instead_of_the_thresholds(void **state)
{
	static const struct {
		const char *text;
		int exit_code;
	} cases[] = {{"total>50%", 0},
	             {"op:FlashAttentionScore>10%", 1},
	             {"op:MatMulV3>10%, kernels>10%", 0},
	             {"total>50%,class:attention>200us", 1},
	             {"class:attention>20ms", 0},
	             {"op:NoSuchOperator>3%", 3},
	             {"memory>5%", 0},
	             {"new>1us", 0}};
	struct fixture *f = *state;
	small_runs(f);
	write_run(f, "base", 1, NULL);
	write_run(f, "target", 2, "regression-in-one-op");
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct sides s;
		must(run_both(f, &s, &(struct np_compare_options){.fail_on = cases[i].text}), &s);
		if (s.report->exit_code != cases[i].exit_code)
			fail_msg("%s: exit %d", cases[i].text, s.report->exit_code);
		assert_int_equal(count(s.report, "FAIL_ON_MATCHED"), cases[i].exit_code == 1);
		done(&s);
	}
}

static void conditions_that_cannot_be_read_are_usage_errors(void **state)
{
	static const char *const bad[] = {"",          "total",       "total>", "total>5",
	                                  "wall>5%",   "kernels>5ms", "op:>5%", "total>x%",
	                                  "total>5%,", "memory>1ms",  "new>5%"};
	struct fixture *f = *state;
	small_runs(f);
	f->options.steps = 1;
	write_run(f, "base", 1, NULL);
	write_run(f, "target", 2, NULL);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct sides s;
		enum np_status status =
			run_both(f, &s, &(struct np_compare_options){.fail_on = bad[i]});
		/* a comma at the end is forgiven */
		bool forgiven = strcmp(bad[i], "total>5%,") == 0;
		if (status != (forgiven ? NP_OK : NP_E_USAGE))
			fail_msg("'%s' gives %d", bad[i], (int)status);
		done(&s);
	}
}

/* ── what cannot be compared ── */

static void another_number_of_ranks_is_not_comparable_unless_forced(void **state)
{
	struct fixture *f = *state;
	struct sides s;
	small_runs(f);
	f->options.ranks = 2;
	write_run(f, "base", 1, NULL);
	f->options.ranks = 4;
	write_run(f, "target", 1, NULL);
	must(run_both(f, &s, &(struct np_compare_options){0}), &s);
	assert_int_equal(count(s.report, "NOT_COMPARABLE"), 1);
	assert_int_equal(s.report->verdict, NP_VERDICT_UNKNOWN);
	assert_int_equal(s.report->exit_code, 3);
	done(&s);
	must(run_both(f, &s, &(struct np_compare_options){.force = true}), &s);
	assert_int_equal(count(s.report, "NOT_COMPARABLE"), 1);
	assert_int_not_equal(s.report->verdict, NP_VERDICT_UNKNOWN);
	done(&s);
}

static void differences_of_the_recording_are_told(void **state)
{
	struct fixture *f = *state;
	struct sides s;
	small_runs(f);
	write_run(f, "base", 1, NULL);
	f->options.steps = 6;
	f->options.level = 2;
	f->options.formats = NP_SYNTH_DB;
	write_run(f, "target", 1, NULL);
	must(run_both(f, &s, &(struct np_compare_options){0}), &s);
	assert_int_equal(count(s.report, "COMPARED_DIFFERENT_STEPS"), 1);
	assert_int_equal(count(s.report, "COMPARED_DIFFERENT_LEVEL"), 1);
	assert_int_equal(count(s.report, "COMPARED_DIFFERENT_FORMAT"), 1);
	assert_int_equal(s.report->verdict, NP_VERDICT_PASS);
	done(&s);
	f->options.steps = 4;
	f->options.layers = 16;
	write_run(f, "target", 1, NULL);
	must(run_both(f, &s, &(struct np_compare_options){0}), &s);
	assert_int_equal(count(s.report, "COMPARED_DIFFERENT_WINDOW"), 1);
	done(&s);
}

static void level0_is_compared_by_names_alone(void **state)
{
	struct fixture *f = *state;
	struct sides s;
	small_runs(f);
	write_run(f, "base", 1, NULL);
	f->options.level = 0;
	write_run(f, "target", 1, NULL);
	must(run_both(f, &s, &(struct np_compare_options){0}), &s);
	assert_int_equal(np_table_rows(table(s.report, "new")), 0);
	assert_int_equal(np_table_rows(table(s.report, "removed")), 0);
	assert_int_equal(np_table_rows(table(s.report, "alignment")), 0);
	done(&s);
}

static void text_and_db_of_one_run_are_the_same(void **state)
{
	struct fixture *f = *state;
	struct sides s;
	small_runs(f);
	f->options.ranks = 2;
	write_run(f, "base", 1, NULL);
	f->options.formats = NP_SYNTH_DB;
	write_run(f, "target", 1, NULL);
	must(run_both(f, &s, &(struct np_compare_options){.top = 1000}), &s);
	static const char *const tables[] = {"totals", "classes", "op_types", "ops", "comm_groups"};
	for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
		const struct np_table *t = table(s.report, tables[i]);
		assert_true(np_table_rows(t) > 0);
		for (size_t row = 0; row < np_table_rows(t); row++)
			assert_int_equal(cell_of(t, row, "diff_ns")->i, 0);
	}
	assert_int_equal(np_table_rows(table(s.report, "alignment")), 0);
	done(&s);
}

static void joined_names_are_listed_on_demand(void **state)
{
	struct fixture *f = *state;
	struct sides s;
	small_runs(f);
	f->options.ranks = 2;
	write_run(f, "base", 1, NULL);
	write_run(f, "target", 1, NULL);
	must(run_both(f, &s, &(struct np_compare_options){.show_normalised = true}), &s);
	const struct np_table *t = table(s.report, "normalised");
	assert_true(np_table_rows(t) > 0);
	assert_str(cell_of(t, 0, "normalised")->s, "hcom_allReduce");
	done(&s);
}

static void memory_that_runs_out_is_one_error(void **state)
{
	struct fixture *f = *state;
	small_runs(f);
	f->options.steps = 1;
	f->options.layers = 1;
	f->options.ranks = 2;
	write_run(f, "base", 1, NULL);
	write_run(f, "target", 2, NULL);
	char base[128], target[128];
	(void)snprintf(base, sizeof base, "%s/base", f->root);
	(void)snprintf(target, sizeof target, "%s/target", f->root);
	struct sides s = {0};
	assert_int_equal(np_discover(base, &s.base, &s.err), NP_OK);
	assert_int_equal(np_discover(target, &s.target, &s.err), NP_OK);
	const struct np_capture *b = first(s.base), *t = first(s.target);
	struct np_compare_input left = {base, &b, 1, NULL}, right = {target, &t, 1, NULL};
	struct np_compare_options options = {.threads = 1, .show_normalised = true};
	uint64_t step = 1;
	for (uint64_t n = 1;; n += step) {
		s.report = np_report_new("compare");
		np_mem_fail_after(n);
		enum np_status status = np_compare(&left, &right, 1, &options, s.report, &s.err);
		np_mem_fail_after(0);
		np_report_free(s.report);
		s.report = NULL;
		if (status == NP_OK)
			break;
		assert_int_equal(status, NP_E_NOMEM);
		step = 1 + n / 60;
	}
	done(&s);
}

/* ── what the field's tool says ── */

struct expected {
	const char *metric;
	double base_ms, target_ms;
	int base_number, target_number; /* -1: none */
};

static void check_row(const struct np_table *t, const struct expected *expected, double tolerance)
{
	size_t row = row_of(t, "metric", expected->metric);
	if (row == SIZE_MAX)
		fail_msg("no row %s", expected->metric);
	double b = (double)cell_of(t, row, "base_ns")->i / 1e6;
	double g = (double)cell_of(t, row, "target_ns")->i / 1e6;
	if (fabs(b - expected->base_ms) > tolerance * expected->base_ms ||
	    fabs(g - expected->target_ms) > tolerance * expected->target_ms)
		fail_msg("%s is %.6f and %.6f, expected %.6f and %.6f", expected->metric, b, g,
		         expected->base_ms, expected->target_ms);
	if (expected->base_number < 0)
		return;
	assert_int_equal(cell_of(t, row, "base_number")->i, expected->base_number);
	assert_int_equal(cell_of(t, row, "target_number")->i, expected->target_number);
}

static void check_golden(const char *base, const char *target, const struct expected *rows,
                         double tolerance)
{
	char left[4096], right[4096];
	const char *path = shared_path(base);
	if (!path)
		skip();
	(void)snprintf(left, sizeof left, "%s", path);
	(void)snprintf(right, sizeof right, "%s", shared_path(target));
	struct sides s;
	must(run(&s, left, right, &(struct np_compare_options){0}), &s);
	const struct np_table *t = table(s.report, "overall");
	for (; rows->metric; rows++)
		check_row(t, rows, tolerance);
	done(&s);
}

static void a_database_gives_the_field_tools_figures(void **state)
{
	(void)state;
	static const struct expected rows[] = {
		{"Computing Time", 8.900456, 8.926368, 187, 187},
		{"Conv (Forward)", 1.108784, 1.110163, 20, 20},
		{"Conv (Forward) (Cube)", 0.723836, 0.719215, 5, 5},
		{"Conv (Forward) (Vector)", 0.384948, 0.390948, 15, 15},
		{"Conv (Backward)", 1.957882, 1.961298, 46, 46},
		{"Conv (Backward) (Cube)", 1.091903, 1.098062, 9, 9},
		{"Conv (Backward) (Vector)", 0.865979, 0.863236, 37, 37},
		{"Matmul", 1.109662, 1.131783, 14, 14},
		{"Matmul (Cube)", 1.041501, 1.061502, 9, 9},
		{"Matmul (Vector)", 0.068161, 0.070281, 5, 5},
		{"Vector", 4.145077, 4.144532, 96, 96},
		{"Vector (Trans)", 0.472467, 0.471613, 25, 25},
		{"Vector (No Trans)", 3.67261, 3.672919, 71, 71},
		{"SDMA (Tensor Move)", 0.579051, 0.578592, 11, 11},
		{"Uncovered Communication Time", 90.080699, 96.29392, -1, -1},
		{"Wait", 0.00554, 0.016081, -1, -1},
		{"Transmit", 90.075159, 96.277839, -1, -1},
		{"Free Time", 30.225247, 29.887871, -1, -1},
		{"Free", 30.225247, 29.887871, -1, -1},
		{"E2E Time", 129.206402, 135.108159, -1, -1},
		{0}};
	check_golden("data/ddp2/db/level2/rank0_ascend_pt", "data/ddp2/db/level2/rank1_ascend_pt",
	             rows, 1e-9);
}

static void a_database_of_level0_gives_them_too(void **state)
{
	(void)state;
	static const struct expected rows[] = {
		{"Computing Time", 8.84391, 8.831637, 187, 187},
		{"Conv (Forward) (Cube)", 0.734354, 0.729476, 5, 5},
		{"Conv (Backward) (Vector)", 0.858836, 0.861539, 37, 37},
		{"Matmul", 1.095422, 1.0748, 14, 14},
		{"Vector", 4.011558, 4.024277, 88, 88},
		{"Cube", 0.0997, 0.100742, 8, 8},
		{"SDMA (Tensor Move)", 0.56987, 0.572892, 11, 11},
		{"Uncovered Communication Time", 85.881122, 90.000781, -1, -1},
		{"Free Time", 30.117602, 30.926994, -1, -1},
		{"E2E Time", 124.842634, 129.759412, -1, -1},
		{0}};
	check_golden("data/ddp2/db/level0/rank0_ascend_pt", "data/ddp2/db/level0/rank1_ascend_pt",
	             rows, 1e-9);
}

/* Its sums of rounded pieces are off by up to 25 ns (docs/differences.md), as are the two
 * kernels that it leaves out. */
static void text_gives_them_but_for_the_documented_differences(void **state)
{
	(void)state;
	static const struct expected rows[] = {
		{"Computing Time", 8.86824, 8.902301, 187, 187},
		{"Conv (Forward)", 1.109801, 1.116941, 20, 20},
		{"Conv (Backward) (Cube)", 1.106863, 1.101363, 9, 9},
		{"Conv (Backward) (Vector)", 0.850371, 0.861831, 37, 37},
		{"Matmul (Cube)", 1.011159, 1.035781, 9, 9},
		{"Matmul (Vector)", 0.070701, 0.067281, 5, 5},
		{"Vector (Trans)", 0.469406, 0.471145, 25, 25},
		{"SDMA (Tensor Move)", 0.57735, 0.57333, 11, 11},
		{"Uncovered Communication Time", 95.962016, 93.411782, -1, -1},
		{"Free Time", 25.032619, 26.441689, -1, -1},
		{"E2E Time", 129.862875, 128.755772, -1, -1},
		{0}};
	static const struct expected level0[] = {
		{"Computing Time", 8.827473, 8.813173, 187, 187},
		{"Other", 8.827473, 8.813173, -1, -1},
		{"Uncovered Communication Time", 81.515607, 64.616114, -1, -1},
		{"Free Time", 25.908102, 27.172943, -1, -1},
		{"E2E Time", 116.251182, 100.60223, -1, -1},
		{0}};
	check_golden("data/ddp2/text/level2/rank0_ascend_pt",
	             "data/ddp2/text/level2/rank1_ascend_pt", rows, 3e-6);
	check_golden("data/ddp2/text/level0/rank0_ascend_pt",
	             "data/ddp2/text/level0/rank1_ascend_pt", level0, 3e-6);
}

static void groups_of_a_cluster_give_them(void **state)
{
	(void)state;
	static const struct expected rows[] = {
		{"Computing Time", 7.717904, 8.125106, 334, 334},
		{"Flash Attention (Forward)", 2.94192, 2.947884, 32, 32},
		{"Matmul (Cube)", 3.210786, 3.604748, 64, 64},
		{"Vector (Trans)", 0.24, 0.24, 8, 8},
		{"Vector (No Trans)", 1.325198, 1.332474, 230, 230},
		{"Uncovered Communication Time", 13.606523, 13.502469, -1, -1},
		{"tp", 0.982141, 0.982292, -1, -1},
		{"pp", 0.26, 0.26, -1, -1},
		{"default_group", 11.544139, 11.434997, -1, -1},
		{"dp", 0.820243, 0.82518, -1, -1},
		{"Free", 0.746391, 0.550607, -1, -1},
		{"E2E Time", 22.070818, 22.178182, -1, -1},
		{0}};
	check_golden("data/synth8_base/host_1700000000000_ascend_pt",
	             "data/synth8/host_1700000000000_ascend_pt", rows, 1e-9);
}

/* ── GPU ── */

static enum np_status run_gpu(struct fixture *f, const char *text, struct np_report *report,
                              struct np_err *err)
{
	char path[128];
	(void)snprintf(path, sizeof path, "%s/gpu.json", f->root);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	(void)fputs(text, file);
	(void)fclose(file);
	assert_int_equal(np_is_gpu_trace(path), text[0] == '{');
	struct np_compare_input gpu = {.label = path, .gpu_trace = path};
	return np_compare(&gpu, &gpu, 1, &(struct np_compare_options){0}, report, err);
}

static void a_gpu_trace_is_a_side(void **state)
{
	struct fixture *f = *state;
	struct np_err err = {0};
	struct np_report *report = np_report_new("compare");
	static const char text[] =
		"{\"traceEvents\": ["
		"{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::mm\",\"pid\":1,\"tid\":1,"
		"\"ts\":1000.0,\"dur\":30},"
		"{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\",\"pid\":1,"
		"\"tid\":1,\"ts\":1010.0,\"dur\":5,\"args\":{\"correlation\":3}},"
		"{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"ampere_gemm\",\"ts\":1500,"
		"\"dur\":60.5,\"args\":{\"stream\":7,\"correlation\":3}},"
		"{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"ncclKernel_AllReduce\",\"ts\":1550,"
		"\"dur\":20.5,\"args\":{\"stream\":9}},"
		"{\"cat\":\"kernel\",\"ts\":\"x\",\"dur\":-1}, 7, null, {\"cat\":\"kernel\"}]}";
	if (run_gpu(f, text, report, &err) != NP_OK)
		fail_msg("%s: %s", err.where, err.msg);
	assert_int_equal(count(report, "COMPARED_WITH_GPU"), 1);
	const struct np_table *t = table(report, "overall");
	assert_int_equal(cell_of(t, row_of(t, "metric", "Matmul (Cube)"), "base_ns")->i, 60500);
	assert_int_equal(
		cell_of(t, row_of(t, "metric", "Uncovered Communication Time"), "base_ns")->i,
		10000);
	assert_int_equal(report->verdict, NP_VERDICT_PASS);
	np_report_free(report);
}

static void what_is_no_gpu_trace_is_an_error(void **state)
{
	static const struct {
		const char *text;
		enum np_status status;
	} cases[] = {{"{}", NP_E_FORMAT},
	             {"{\"traceEvents\": 5}", NP_E_FORMAT},
	             {"{\"traceEvents\": []}", NP_E_EMPTY},
	             {"{\"traceEvents\": [{\"cat\": \"cpu_op\"}]}", NP_E_EMPTY}};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct np_err err = {0};
		struct np_report *report = np_report_new("compare");
		assert_int_equal(run_gpu(*state, cases[i].text, report, &err), cases[i].status);
		np_report_free(report);
	}
	assert_false(np_is_gpu_trace("/nonexistent.json"));
}

static void a_gpu_gives_the_field_tools_figures(void **state)
{
	(void)state;
	static const struct expected rows[] = {
		{"Computing Time", 1.974, 8.900456, 40, 187}, /* counted in whole us there */
		{"Flash Attention (Forward) (Vector)", 0.9059410419105585, 0, 10, 0},
		{"Conv (Forward) (Cube)", 0.4054594942276692, 0.723836, 10, 5},
		{"Matmul (Cube)", 0.6055596941783775, 1.041501, 10, 9},
		{"Vector (No Trans)", 0.06406070663209343, 3.67261, 10, 71},
		{"Uncovered Communication Time", 0.4, 90.080699, -1, -1},
		{"SDMA", 0.024, 0, -1, -1},
		{"E2E Time", 2.4482, 129.206402, -1, -1},
		{0}};
	char gpu[4096], npu[4096];
	const char *path = shared_path("data/gpu/gpu_trace.json");
	if (!path)
		skip();
	(void)snprintf(gpu, sizeof gpu, "%s", path);
	(void)snprintf(npu, sizeof npu, "%s", shared_path("data/ddp2/db/level2/rank0_ascend_pt"));
	struct sides s = {.report = np_report_new("compare")};
	assert_int_equal(np_discover(npu, &s.target, &s.err), NP_OK);
	const struct np_capture *capture = first(s.target);
	struct np_compare_input base = {.label = gpu, .gpu_trace = gpu},
				target = {npu, &capture, 1, NULL};
	must(np_compare(&base, &target, 1, &(struct np_compare_options){0}, s.report, &s.err), &s);
	for (const struct expected *row = rows; row->metric; row++)
		check_row(table(s.report, "overall"), row, 4e-3);
	done(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(two_healthy_runs_are_within_noise),
		TEST(a_regression_in_one_operator_is_that_operator),
		TEST(a_total_that_grows_by_the_limit_fails),
		TEST(the_other_way_round_it_is_an_improvement),
		TEST(an_inserted_kernel_is_shown_where_it_was_inserted),
		TEST(new_kernels_are_new_and_more),
		TEST(runs_of_one_step_each_are_samples_too),
		TEST(fail_on_decides_instead_of_the_thresholds),
		TEST(conditions_that_cannot_be_read_are_usage_errors),
		TEST(another_number_of_ranks_is_not_comparable_unless_forced),
		TEST(differences_of_the_recording_are_told),
		TEST(level0_is_compared_by_names_alone),
		TEST(text_and_db_of_one_run_are_the_same),
		TEST(joined_names_are_listed_on_demand),
		TEST(memory_that_runs_out_is_one_error),
		TEST(a_database_gives_the_field_tools_figures),
		TEST(a_database_of_level0_gives_them_too),
		TEST(text_gives_them_but_for_the_documented_differences),
		TEST(groups_of_a_cluster_give_them),
		TEST(a_gpu_trace_is_a_side),
		TEST(what_is_no_gpu_trace_is_an_error),
		TEST(a_gpu_gives_the_field_tools_figures),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
