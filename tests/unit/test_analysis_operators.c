/* Operators by core, type, name, shapes: the official figures come out. */
#include "ops_unit.h"

/* ── the viewer's figures of a real capture ── */

/* The text of `"key": …` behind `from`, up to a comma or the end of its string. */
static np_str json_value(const char *from, const char *key)
{
	char quoted[32];
	(void)snprintf(quoted, sizeof quoted, "\"%s\": ", key);
	const char *at = strstr(from, quoted);
	assert_non_null(at);
	at += strlen(quoted);
	bool text = *at == '"';
	at += text;
	return (np_str){at, strcspn(at, text ? "\"" : ",}")};
}

/* One figure of a table row, in us. */
static double figure(const struct np_table *table, size_t row, const char *name)
{
	if (strcmp(name, "count") == 0)
		return (double)cell_of(table, row, "count")->i;
	if (strcmp(name, "total time") == 0)
		return (double)cell_of(table, row, "total_ns")->i / 1e3;
	if (strcmp(name, "average time") == 0)
		return cell_of(table, row, "mean_us")->r;
	return (double)cell_of(table, row, strcmp(name, "maximum time") ? "min_ns" : "max_ns")->i /
	       1e3;
}

/* Ours for "total time on accelerator core X", "Type/CORE total time", …; NaN: not here */
static double our_figure(const struct np_report *rank_0, const struct np_report *rank_2, int id,
                         np_str what)
{
	char text[128], *slash, *blank;
	(void)snprintf(text, sizeof text, "%.*s", NP_FMT(what));
	const struct np_table *cores = table_of(rank_2, "cores"),
			      *types = table_of(rank_2, "op_types"),
			      *all = table_of(rank_0, "compute_kernels");
	const char *const of_all[] = {"total time", "count", "average time", "minimum time",
	                              "maximum time"};
	if (id >= 35)
		return figure(all, 0, of_all[id - 35]);
	if (id <= 8) {
		const char *core = id == 8 ? "COMMUNICATION" : strrchr(text, ' ') + 1;
		return figure(cores, row_of(cores, "core", core, NULL, NULL), "total time");
	}
	slash = strchr(text, '/');
	blank = strchr(text, ' ');
	assert_true(slash && blank && slash < blank);
	*slash = *blank = '\0';
	size_t row = row_of(types, "type", text, "core", slash + 1);
	assert_true(row != SIZE_MAX);
	return figure(types, row, blank + 1);
}

static struct np_report *qwen(const char *rank_dir_name, int64_t rank)
{
	const char *path = shared_path(rank_dir_name);
	if (!path)
		skip();
	return analyzed(path, rank);
}

static void the_viewers_operator_figures_come_out_to_the_last_digit(void **state)
{
	struct fixture *f = *state;
	const char *golden = shared_path("golden/insight_qwen3_4rank.json");
	if (!golden)
		skip();
	np_str text = slurp(f, golden);
	struct np_report *rank_0 = qwen("data/qwen3_4rank/rank_0_ascend_pt", 0);
	struct np_report *rank_2 = qwen("data/qwen3_4rank/rank_2_ascend_pt", 2);
	int compared = 0;
	for (int id = 4; id <= 39; id++) {
		char key[32];
		double value = 0, tolerance = 0;
		(void)snprintf(key, sizeof key, "\"qwen3-%02d\"", id);
		const char *at = strstr(text.ptr, key);
		assert_non_null(at);
		assert_true(np_str_to_double(json_value(at, "value"), &value));
		assert_true(np_str_to_double(json_value(at, "tolerance"), &tolerance));
		double ours = our_figure(rank_0, rank_2, id, json_value(at, "what"));
		bool right = np_str_is(json_value(at, "rule"), "truncate")
		                     ? fabs(trunc(ours) - value) < 0.5
		                     : fabs(ours - value) <= tolerance;
		if (!right)
			fail_msg("qwen3-%02d: %.6f, expected %.6f", id, ours, value);
		compared++;
	}
	assert_int_equal(compared, 36);
	np_report_free(rank_0);
	np_report_free(rank_2);
}

/* ── op_statistic.csv ── */

static double number_at(const struct sheet *s, size_t row, const char *name)
{
	double value = 0;
	assert_true(np_str_to_double(cell(s, row, column(s, name)), &value));
	return value;
}

/*
 * Every row of the file is a row of ours, with the same figures to 3 decimals. With
 * `fractions` the file sums durations with parts of a ns, which kernel_details.csv rounds: each
 * kernel may add half a ns.
 */
static void assert_is_statistic(struct fixture *f, const char *csv, const struct np_report *report,
                                bool fractions)
{
	struct sheet s = read_sheet(f, csv);
	const struct np_table *types = table_of(report, "op_types");
	assert_non_null(types);
	assert_int_equal(np_table_rows(types), s.rows);
	for (size_t r = 0; r < s.rows; r++) {
		char type[128], core[64];
		(void)snprintf(type, sizeof type, "%.*s",
		               NP_FMT(cell(&s, r, column(&s, "OP Type"))));
		(void)snprintf(core, sizeof core, "%.*s",
		               NP_FMT(cell(&s, r, column(&s, "Core Type"))));
		size_t ours = row_of(types, "type", type, "core", core);
		if (ours == SIZE_MAX)
			fail_msg("no row %s %s", type, core);
		const struct {
			const char *csv;
			double ours;
		} pairs[] = {
			{"Count", figure(types, ours, "count")},
			{"Total Time(us)", figure(types, ours, "total time")},
			{"Avg Time(us)", figure(types, ours, "average time")},
			{"Min Time(us)", figure(types, ours, "minimum time")},
			{"Max Time(us)", figure(types, ours, "maximum time")},
			{"Ratio(%)", cell_of(types, ours, "share")->r * 100},
		};
		for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
			double more = pairs[i].ours - number_at(&s, r, pairs[i].csv);
			/* newer exporters cut the average off, older ones round it */
			double allowed = i == 2 ? 0.001001 : 0.000501;
			double less = 0.000501;
			if (i == 1 && fractions)
				less = allowed = 0.000501 * (pairs[0].ours + 1);
			else if (i == 2 && fractions)
				less = 0.001001;
			if (more > allowed || more < -less)
				fail_msg("%s %s: %s is %.6f", type, core, pairs[i].csv,
				         pairs[i].ours);
		}
	}
}

static void op_statistic_of_real_captures_is_reproduced(void **state)
{
	static const struct {
		const char *dir;
		int64_t rank;
		bool fractions;
	} captures[] = {
		{"data/qwen3_4rank/rank_0_ascend_pt", 0, false},
		{"data/qwen3_4rank/rank_2_ascend_pt", 2, false},
		{"data/ddp2/text/level2/rank0_ascend_pt", 0, true},
		{"data/ddp2/text/level2/rank1_ascend_pt", 1, true},
	};
	struct fixture *f = *state;
	size_t compared = 0;
	for (size_t i = 0; i < sizeof captures / sizeof *captures; i++) {
		const char *found = shared_path(captures[i].dir);
		if (!found)
			skip();
		const char *dir = np_arena_printf(&f->arena, "%s", found);
		const char *csv = np_arena_printf(&f->arena, "%s/" OUTPUT "/op_statistic.csv", dir);
		if (!exists(csv))
			continue;
		struct np_report *report = analyzed(dir, captures[i].rank);
		assert_is_statistic(f, csv, report, captures[i].fractions);
		np_report_free(report);
		compared++;
	}
	assert_true(compared > 0);
}

static void op_statistic_of_synth_is_reproduced(void **state)
{
	struct fixture *f = *state;
	struct np_report *report = analyzed_fault(f, "fusable");
	assert_is_statistic(f, out_path(f, 0, "op_statistic.csv"), report, false);
	np_report_free(report);
}

/* ── the tables ── */

static void tables_by_type_name_and_shape_sum_to_the_same(void **state)
{
	struct fixture *f = *state;
	struct np_report *report = analyzed_fault(f, NULL);
	int64_t all = cell_of(table_of(report, "compute_kernels"), 0, "total_ns")->i;
	static const char *const ids[] = {"op_types", "ops", "op_shapes"};
	for (size_t i = 0; i < 3; i++) {
		const struct np_table *table = table_of(report, ids[i]);
		int64_t sum = 0;
		for (size_t r = 0; r < np_table_rows(table); r++)
			sum += cell_of(table, r, "total_ns")->i;
		assert_int_equal(sum, all);
	}
	np_report_free(report);
}

static void quantiles_are_durations_that_occurred(void **state)
{
	(void)state;
	struct hand h;
	hand_init(&h);
	for (int i = 20; i >= 1; i--)
		(void)hand_kernel(&h, "Add", "AI_VECTOR_CORE", 10, i * 1000, "\"8\"", "\"8\"");
	hand_ready(&h);
	np_analyze_operators(&h.self);
	const struct np_table *types = table_of(h.self.report, "op_types");
	assert_int_equal(cell_of(types, 0, "p50_ns")->i, 10000);
	assert_int_equal(cell_of(types, 0, "p95_ns")->i, 19000);
	assert_int_equal(cell_of(types, 0, "min_ns")->i, 1000);
	assert_int_equal(cell_of(types, 0, "max_ns")->i, 20000);
	assert_true(cell_of(types, 0, "bound")->na);
	hand_release(&h);
}

static void a_type_on_two_cores_is_two_rows(void **state)
{
	(void)state;
	struct hand h;
	hand_init(&h);
	(void)hand_kernel(&h, "MatMulV3", "AI_CORE", 0, 5000, "\"8\"", "\"8\"");
	(void)hand_kernel(&h, "MatMulV3", "MIX_AIC", 0, 7000, "\"8\"", "\"8\"");
	(void)hand_kernel(&h, "hcom_allReduce_", "HCCL", 0, 9000, NULL, NULL);
	hand_ready(&h);
	np_analyze_operators(&h.self);
	const struct np_table *types = table_of(h.self.report, "op_types");
	assert_int_equal(np_table_rows(types), 2);
	assert_str(cell_of(types, 0, "core")->s, "MIX_AIC");
	hand_release(&h);
}

static void hostile_durations_do_not_overflow(void **state)
{
	(void)state;
	struct hand h;
	hand_init(&h);
	for (int i = 0; i < 8; i++) {
		(void)hand_kernel(&h, "Add", "AI_VECTOR_CORE", 0, NP_TIME_MAX - 1, "\"8\"", NULL);
		h.now = 1000000;
	}
	hand_ready(&h);
	np_analyze_operators(&h.self);
	np_analyze_bound(&h.self);
	np_analyze_fusion(&h.self);
	np_analyze_outliers(&h.self);
	np_analyze_aicpu(&h.self);
	assert_int_equal(cell_of(table_of(h.self.report, "op_types"), 0, "total_ns")->i, INT64_MAX);
	hand_release(&h);
}

static void operators_survive_without_memory(void **state)
{
	(void)state;
	struct hand h;
	hand_init(&h);
	for (int i = 0; i < 6; i++)
		(void)hand_kernel(&h, i % 2 ? "Add" : "Mul", "AI_VECTOR_CORE", 0, 1000, "\"8\"",
		                  "\"8\"");
	hand_ready(&h);
	assert_survives_no_memory(&h, np_analyze_operators);
	hand_release(&h);
}

static void healthy_captures_have_no_grave_finding(void **state)
{
	static const struct {
		uint32_t ranks, steps, layers, ops;
	} sizes[] = {{1, 1, 1, 1},  {1, 2, 4, 2},   {1, 2, 4, 3},  {1, 2, 4, 7},
	             {2, 3, 4, 12}, {4, 2, 12, 12}, {1, 3, 30, 40}};
	struct fixture *f = *state;
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		f->options.ranks = sizes[i].ranks;
		f->options.steps = sizes[i].steps;
		f->options.layers = sizes[i].layers;
		f->options.ops = sizes[i].ops;
		struct np_report *report = analyzed_fault(f, NULL);
		for (size_t k = 0; k < report->findings.n; k++)
			if (report->findings.v[k]->severity != NP_INFO)
				fail_msg("%zu: %s", i, report->findings.v[k]->title);
		np_report_free(report);
	}
}

static void text_and_database_give_the_same_analysis(void **state)
{
	static const char *const faults[] = {NULL,    "memory-bound",  "fusable",    "freq-drop",
	                                     "aicpu", "dynamic-shape", "na-metrics", "slow-rank=0"};
	for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
		assert_text_is_db(*state, faults[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_viewers_operator_figures_come_out_to_the_last_digit),
		TEST(op_statistic_of_real_captures_is_reproduced),
		TEST(op_statistic_of_synth_is_reproduced),
		TEST(tables_by_type_name_and_shape_sum_to_the_same),
		cmocka_unit_test(quantiles_are_durations_that_occurred),
		cmocka_unit_test(a_type_on_two_cores_is_two_rows),
		cmocka_unit_test(hostile_durations_do_not_overflow),
		cmocka_unit_test(operators_survive_without_memory),
		TEST(healthy_captures_have_no_grave_finding),
		TEST(text_and_database_give_the_same_analysis),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
