#include "analysis_set.h"

/* Two steps: 100 us computing, a pause of 20, 50 us communication half hidden. */
static void add_two_steps(struct set *f)
{
	for (int s = 1; s <= 2; s++) {
		int64_t at = s * 1000;
		add_kernel(f, s, "aclnnAdd", "Add", "AI_VECTOR_CORE", at, 60);
		add_kernel(f, s, "aclnnAdd", "Add", "AI_VECTOR_CORE", at + 80, 40);
		add_kernel(f, s, "hcom_allReduce__1_0_1", "hcom_allReduce_", "COMMUNICATION",
		           at + 95, 50);
	}
}

/* The row of a step: Computing, not overlapped, overlapped, communication, free, stage. */
static void add_exporter(struct set *f, int step, const char *values)
{
	if (!f->step_trace.len)
		np_buf_add_cstr(&f->step_trace,
		                "Device_id,Step,Computing,Communication(Not Overlapped),Overlapped,"
		                "Communication,Free,Stage,Bubble,Communication(Not Overlapped and "
		                "Exclude Receive),Preparing\n");
	np_buf_printf(&f->step_trace, "0,%d,%s\n", step, values);
}

static void equal_step_times_give_no_finding(void **state)
{
	add_two_steps(*state);

	add_exporter(*state, 1, "100,25,25,50,20,145,0,25,");
	add_exporter(*state, 2, "100.5,25,25,50,20,145.9,0,25,");
	set_analyze(*state);
	expect_none(*state, "STEP_TRACE_DIFFERS");
	assert_true(find_cell(*state, "step_trace", "quantity", "Computing", "same")->b);
}

static void the_exporters_definition_of_free_is_recognised(void **state)
{
	add_two_steps(*state);
	add_exporter(*state, 1, "100,25,25,50,875,1000,0,25,");
	add_exporter(*state, 2, "100,25,25,50,20,145,0,25,");
	set_analyze(*state);
	const struct np_finding *finding = expect(*state, "STEP_TRACE_DIFFERS", NP_INFO);
	assert_non_null(strstr(finding->title, "2 of 9"));
	assert_non_null(strstr(finding->title, "defines them in another way"));
	assert_string_equal(finding->evidence.v[0].column, "Free");
	assert_string_equal(finding->evidence.v[1].column, "Stage");
	assert_true(find_cell(*state, "step_trace", "quantity", "Free", "recomputed_us")->r == 20);
	assert_true(
		find_cell(*state, "step_trace", "quantity", "Free", "by_its_definition_us")->r ==
		875);
}

static void a_difference_without_a_reason_says_so(void **state)
{
	add_two_steps(*state);
	add_exporter(*state, 1, "90,25,25,50,20,145,0,25,");
	set_analyze(*state);
	const struct np_finding *finding = expect(*state, "STEP_TRACE_DIFFERS", NP_INFO);
	assert_string_equal(finding->evidence.v[0].column, "Computing");
	assert_non_null(strstr(finding->evidence.v[0].text, "doesn't explain"));
	assert_true(find_cell(*state, "step_trace", "quantity", "Computing", "difference_us")->r ==
	            10);
}

static void without_exporter_rows_there_is_no_table(void **state)
{
	add_two_steps(*state);
	set_analyze(*state);
	assert_null(find_table(*state, "step_trace"));
}

static void databases_of_synth_agree_in_every_column(void **state)
{
	set_analyze_synth(*state, NP_SYNTH_DB, 2, 4, 4, NULL);
	expect_none(*state, "STEP_TRACE_DIFFERS");
	assert_int_equal(np_table_rows(find_table(*state, "step_trace")), 9); /* no more to say */
}

static void real_captures_agree_in_every_column(void **state)
{
	static const char *const paths[] = {
		"data/qwen3_4rank/rank_0_ascend_pt",     "data/qwen3_4rank/rank_2_ascend_pt",
		"data/ddp2/text/level0/rank0_ascend_pt", "data/ddp2/text/level2/rank1_ascend_pt",
		"data/ddp2/db/level0/rank0_ascend_pt",   "data/ddp2/db/level2/rank1_ascend_pt",
	};
	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
		if (!set_analyze_shared(*state, paths[i]))
			skip();
		expect_none(*state, "STEP_TRACE_DIFFERS");
		assert_true(np_table_rows(find_table(*state, "step_trace")) >= 8);
	}
}

static void only_the_asked_number_of_rows_is_shown(void **state)
{
	struct set *f = *state;
	f->options.top = 10;
	set_analyze_synth(f, NP_SYNTH_TEXT, 2, 4, 4, NULL);
	/* nine of the first step, then Free and Stage of three others */
	assert_int_equal(np_table_rows(find_table(f, "step_trace")), 10);
	assert_true(has_note(f, "5 rows more"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_open, set_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(equal_step_times_give_no_finding),
		TEST(the_exporters_definition_of_free_is_recognised),
		TEST(a_difference_without_a_reason_says_so),
		TEST(without_exporter_rows_there_is_no_table),
		TEST(databases_of_synth_agree_in_every_column),
		TEST(real_captures_agree_in_every_column),
		TEST(only_the_asked_number_of_rows_is_shown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
