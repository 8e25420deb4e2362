#include "analysis_set.h"

static void advice_is_ranked_by_priority_then_by_gain(void **state)
{
	struct set *f = *state;
	f->report = np_report_new("analyze");
	struct np_analysis self = {.report = f->report, .options = &f->options, .total_ns = 1000};
	np_finding_impact(np_report_finding(f->report, "VECTOR_HEAVY", NP_INFO, "a"), 900, 0.9);
	np_report_finding(f->report, "STEP_PARTIAL", NP_WARNING, "b");
	np_finding_impact(np_report_finding(f->report, "COMM_EXPOSED", NP_WARNING, "c"), 5, 0.1);
	np_finding_impact(np_report_finding(f->report, "STEP_UNSTEADY", NP_WARNING, "d"), 7, 0.1);
	struct np_finding *last =
		np_report_finding(f->report, "WARMUP_NOT_STRIPPED", NP_ERROR, "e");
	np_finding_advice(last, "leave it out");
	np_finding_command(last, "npuprof info x");
	np_analyze_advice(&self);
	static const char *const codes[] = {"WARMUP_NOT_STRIPPED", "STEP_UNSTEADY", "COMM_EXPOSED",
	                                    "STEP_PARTIAL", "VECTOR_HEAVY"};
	static const char *const priorities[] = {"P0", "P1", "P1", "P1", "P2"};
	const struct np_table *table = find_table(f, "advice");
	assert_int_equal(np_table_rows(table), 5);
	for (size_t i = 0; i < 5; i++) {
		assert_str(np_table_cell(table, i, 0)->s, priorities[i]);
		assert_str(np_table_cell(table, i, 1)->s, codes[i]);
		assert_string_equal(f->report->findings.v[i]->code, codes[i]);
	}
	assert_str(np_table_cell(table, 0, 2)->s, "leave it out");
	assert_str(np_table_cell(table, 0, 5)->s, "npuprof info x");
	assert_str(np_table_cell(table, 1, 2)->s, "d"); /* no advice: what was seen */
	assert_true(np_table_cell(table, 3, 3)->na);
	assert_true(np_table_cell(table, 1, 3)->r == 7);
}

static void without_findings_there_is_no_table(void **state)
{
	struct set *f = *state;
	f->report = np_report_new("analyze");
	struct np_analysis self = {.report = f->report, .options = &f->options};
	np_analyze_advice(&self);
	assert_null(find_table(f, "advice"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_open, set_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(advice_is_ranked_by_priority_then_by_gain),
		TEST(without_findings_there_is_no_table),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
