/* Outliers, AI CPU, frequency, shapes: each fires on its fault, and only then. */
#include "ops_unit.h"

/* ── outliers ── */

static void a_kernel_that_takes_far_longer_is_an_outlier(void **state)
{
	(void)state;
	struct hand h;
	hand_init(&h);
	for (int i = 0; i < 20; i++)
		(void)hand_kernel(&h, "Add", "AI_VECTOR_CORE", 0, i == 7 ? 90000 : 10000 + i,
		                  "\"8\"", "\"8\"");
	hand_ready(&h);
	np_analyze_outliers(&h.self);
	const struct np_table *table = table_of(h.self.report, "outliers");
	assert_int_equal(np_table_rows(table), 1);
	assert_int_equal(cell_of(table, 0, "outliers")->i, 1);
	assert_int_equal(cell_of(table, 0, "max_ns")->i, 90000);
	assert_int_equal(cell_of(table, 0, "excess_ns")->i, 90000 - cell_of(table, 0, "p50_ns")->i);
	assert_str(cell_of(table, 0, "steps")->s, "12");
	const struct np_finding *finding = finding_of(h.self.report, "OP_OUTLIERS");
	assert_non_null(finding);
	assert_int_equal(finding->severity, NP_INFO);
	hand_release(&h);
}

static void other_shapes_and_few_samples_are_no_outliers(void **state)
{
	(void)state;
	struct hand h;
	hand_init(&h);
	for (int i = 0; i < 9; i++) /* the long ones have a shape of their own, or none */
		(void)hand_kernel(&h, "Add", "AI_VECTOR_CORE", 0, i == 7 ? 90000 : 10000 + i,
		                  i == 7 ? "\"64\"" : "\"8\"", NULL);
	for (int i = 0; i < 9; i++)
		(void)hand_kernel(&h, "Mul", "AI_VECTOR_CORE", 0, i == 7 ? 90000 : 10000, NULL,
		                  NULL);
	for (int i = 0; i < 3; i++)
		(void)hand_kernel(&h, "Sub", "AI_VECTOR_CORE", 0, i == 1 ? 90000 : 10000, "\"8\"",
		                  NULL);
	hand_ready(&h);
	np_analyze_outliers(&h.self);
	assert_null(table_of(h.self.report, "outliers"));
	assert_null(finding_of(h.self.report, "OP_OUTLIERS"));
	hand_release(&h);
}

/* ── AI CPU ── */

/* An AI CPU kernel of 100 us, of which `masked_us` lie below a collective. */
static struct np_report *aicpu_masked(struct hand *h, np_ns masked_us)
{
	hand_init(h);
	size_t row = hand_kernel(h, "IndexPutV2", "AI_CPU", 0, 100000, "\"8\"", "\"8\"");
	np_ns start = h->self.profile->kernels.start_ns[row];
	size_t comm = hand_kernel(h, "hcom_allReduce_", "HCCL", 0, masked_us * 1000, NULL, NULL);
	h->self.profile->kernels.start_ns[comm] = start;
	hand_ready(h);
	np_analyze_aicpu(&h->self);
	return h->self.report;
}

static void ai_cpu_kernels_are_told_by_how_much_is_exposed(void **state)
{
	(void)state;
	static const struct {
		np_ns masked_us;
		const char *code;
	} cases[] = {{100, "AICPU_MASKED_BUT_UNDESIRABLE"}, {90, "AICPU_MASKED_BUT_UNDESIRABLE"},
	             {89, "AICPU_PARTIALLY_EXPOSED"},       {20, "AICPU_PARTIALLY_EXPOSED"},
	             {19, "AICPU_EXPOSED_NOT_ALLOWED"},     {0, "AICPU_EXPOSED_NOT_ALLOWED"}};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hand h;
		struct np_report *report = aicpu_masked(&h, cases[i].masked_us);
		assert_int_equal(report->findings.n, 1);
		assert_string_equal(report->findings.v[0]->code, cases[i].code);
		assert_int_equal(cell_of(table_of(report, "aicpu"), 0, "exposed_ns")->i,
		                 100000 - cases[i].masked_us * 1000);
		hand_release(&h);
	}
}

static void the_fault_aicpu_is_found_and_short_ones_are_not(void **state)
{
	struct fixture *f = *state;
	struct np_report *report = analyzed_fault(f, "aicpu");
	assert_non_null(finding_of(report, "AICPU_EXPOSED_NOT_ALLOWED"));
	np_report_free(report);
	report = analyzed_fault(f, NULL); /* a mask of 12 us on the AI CPU */
	const struct np_table *table = table_of(report, "aicpu");
	assert_str(cell_of(table, 0, "verdict")->s, "short");
	assert_null(finding_of(report, "AICPU_EXPOSED_NOT_ALLOWED"));
	assert_null(finding_of(report, "AICPU_PARTIALLY_EXPOSED"));
	assert_null(finding_of(report, "AICPU_MASKED_BUT_UNDESIRABLE"));
	np_report_free(report);
}

/* ── frequency ── */

static void sample(struct hand *h, np_ns ts_ns, double mhz)
{
	size_t i = np_profile_add(h->self.profile, counters);
	struct np_counters *c = &h->self.profile->counters;
	c->process[i] = hand_text(h, "AI Core Freq");
	c->name[i] = hand_text(h, "AI Core Freq MHz");
	c->device[i] = 0;
	c->ts_ns[i] = ts_ns;
	c->value[i] = mhz;
}

static void a_drop_while_kernels_run_is_found(void **state)
{
	struct fixture *f = *state;
	struct np_report *report = analyzed_fault(f, "freq-drop");
	const struct np_finding *finding = finding_of(report, "FREQ_DROP");
	assert_non_null(finding);
	assert_int_equal(finding->severity, NP_WARNING);
	assert_true(finding->impact_us > 0 && finding->impact_share < 1.0 / 3);
	const struct np_table *table = table_of(report, "frequency");
	assert_int_equal(np_table_rows(table), 2);
	np_report_free(report);
	report = analyzed_fault(f, NULL);
	assert_null(finding_of(report, "FREQ_DROP"));
	np_report_free(report);
}

static void a_drop_in_idle_time_does_not_count(void **state)
{
	(void)state;
	struct hand h;
	hand_init(&h);
	(void)hand_kernel(&h, "Add", "AI_VECTOR_CORE", 0, 100000, NULL, NULL);
	(void)hand_kernel(&h, "Add", "AI_VECTOR_CORE", 500000, 100000, NULL, NULL);
	sample(&h, 1000000, 1800);
	sample(&h, 1100000, 800);  /* the device is idle from here … */
	sample(&h, 1600000, 1800); /* … to here */
	hand_ready(&h);
	np_analyze_frequency(&h.self);
	assert_null(finding_of(h.self.report, "FREQ_DROP"));
	const struct np_table *table = table_of(h.self.report, "frequency");
	assert_int_equal(cell_of(table, 1, "busy_ns")->i, 0);
	assert_int_equal(cell_of(table, 1, "time_ns")->i, 500000);
	assert_int_equal(cell_of(table, 0, "busy_ns")->i, 200000);
	hand_release(&h);
}

static void without_samples_it_is_told_what_to_collect(void **state)
{
	(void)state;
	struct hand h;
	hand_init(&h);
	(void)hand_kernel(&h, "Add", "AI_VECTOR_CORE", 0, 100000, NULL, NULL);
	hand_ready(&h);
	np_analyze_frequency(&h.self);
	np_analyze_shapes(&h.self);
	np_analyze_outliers(&h.self);
	assert_true(has_note(h.self.report, "frequency: not collected"));
	assert_true(has_note(h.self.report, "dynamic shapes: input shapes were not collected"));
	assert_true(has_note(h.self.report, "outliers: input shapes were not collected"));
	hand_release(&h);
}

/* ── shapes ── */

static void shapes_that_change_between_steps_are_found(void **state)
{
	struct fixture *f = *state;
	struct np_report *report = analyzed_fault(f, "dynamic-shape");
	const struct np_finding *finding = finding_of(report, "DYNAMIC_SHAPE");
	assert_non_null(finding);
	assert_non_null(strstr(finding->title, "MatMulV3"));
	np_report_free(report);
	report = analyzed_fault(f, NULL);
	assert_null(finding_of(report, "DYNAMIC_SHAPE"));
	assert_null(table_of(report, "shapes"));
	np_report_free(report);
}

static void one_step_can_not_tell_about_shapes(void **state)
{
	struct fixture *f = *state;
	f->options.steps = 1;
	struct np_report *report = analyzed_fault(f, "dynamic-shape");
	assert_null(finding_of(report, "DYNAMIC_SHAPE"));
	assert_true(has_note(report, "can't be told from one step"));
	np_report_free(report);
}

static void they_survive_without_memory(void **state)
{
	(void)state;
	struct hand h;
	hand_init(&h);
	for (int i = 0; i < 12; i++)
		(void)hand_kernel(&h, i == 3 ? "Tril" : "Add", i == 3 ? "AI_CPU" : "AI_VECTOR_CORE",
		                  0, i == 7 ? 90000 : 10000 + i, "\"8\"", "\"8\"");
	sample(&h, 1000000, 1800);
	sample(&h, 1050000, 900);
	hand_ready(&h);
	assert_survives_no_memory(&h, np_analyze_outliers);
	assert_survives_no_memory(&h, np_analyze_aicpu);
	assert_survives_no_memory(&h, np_analyze_frequency);
	struct np_span second = {.id = 13, .start = h.now, .end = h.now};
	assert_true(np_vec_push(&h.self.spans, second));
	h.self.span_of[11] = 1;
	assert_survives_no_memory(&h, np_analyze_shapes);
	hand_release(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_kernel_that_takes_far_longer_is_an_outlier),
		cmocka_unit_test(other_shapes_and_few_samples_are_no_outliers),
		cmocka_unit_test(ai_cpu_kernels_are_told_by_how_much_is_exposed),
		TEST(the_fault_aicpu_is_found_and_short_ones_are_not),
		TEST(a_drop_while_kernels_run_is_found),
		cmocka_unit_test(a_drop_in_idle_time_does_not_count),
		cmocka_unit_test(without_samples_it_is_told_what_to_collect),
		TEST(shapes_that_change_between_steps_are_found),
		TEST(one_step_can_not_tell_about_shapes),
		cmocka_unit_test(they_survive_without_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
