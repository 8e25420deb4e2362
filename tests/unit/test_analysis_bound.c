/* What limits an operator: ratios of the core that worked, and nothing made up. */
#include "ops_unit.h"

#include "analysis/pmu.h"

static struct np_pipes pipes_of(struct hand *h, size_t row)
{
	struct np_pipes *all = np_pipes_all(&h->self);
	assert_non_null(all);
	struct np_pipes one = all[row];
	np_free(all);
	return one;
}

static void near(double value, double expected)
{
	if (!(fabs(value - expected) < 1e-9))
		fail_msg("%.12g, expected %.12g", value, expected);
}

static void a_vector_kernel_is_judged_by_its_vector_core(void **state)
{
	(void)state;
	struct hand h;
	hand_init(&h);
	size_t row = hand_kernel(&h, "Add", "AI_VECTOR_CORE", 0, 1000, NULL, NULL);
	hand_metric(&h, row, "aic_mac_ratio", 0.9);
	hand_metric(&h, row, "aic_mte2_ratio", 0.1);
	hand_metric(&h, row, "aiv_vec_ratio", 0.2);
	hand_metric(&h, row, "aiv_mte2_ratio", 0.5);
	hand_ready(&h);
	struct np_pipes p = pipes_of(&h, row);
	near(np_pipes_memory_bound(&p), 2.5);
	assert_int_equal(p.bound, NP_BOUND_MTE);
	assert_int_equal(p.mac, NP_NO_RATIO);
	hand_release(&h);
}

static void a_mixed_kernel_is_judged_by_the_core_that_works_longer(void **state)
{
	(void)state;
	struct hand h;
	hand_init(&h);
	size_t cube = hand_kernel(&h, "FlashAttentionScore", "MIX_AIC", 0, 1000, NULL, NULL);
	size_t vector = hand_kernel(&h, "FlashAttentionScore", "MIX_AIC", 0, 1000, NULL, NULL);
	for (size_t row = cube; row <= vector; row++) {
		hand_metric(&h, row, "aic_mac_ratio", 0.8);
		hand_metric(&h, row, "aic_mte2_ratio", 0.4);
		hand_metric(&h, row, "aiv_vec_ratio", 0.3);
		hand_metric(&h, row, "aiv_mte2_ratio", 0.6);
		hand_metric(&h, row, "aicore_time(us)", row == cube ? 0.9 : 0.2);
		hand_metric(&h, row, "aiv_time(us)", 0.5);
	}
	hand_ready(&h);
	struct np_pipes a = pipes_of(&h, cube), b = pipes_of(&h, vector);
	near(np_pipes_memory_bound(&a), 0.5);
	assert_int_equal(a.bound, NP_BOUND_CUBE);
	near(np_pipes_memory_bound(&b), 2);
	assert_int_equal(b.bound, NP_BOUND_MTE);
	hand_release(&h);
}

static void columns_without_prefix_are_those_of_a_910a(void **state)
{
	(void)state;
	struct hand h;
	hand_init(&h);
	size_t row = hand_kernel(&h, "Add", "AI_CORE", 0, 1000, NULL, NULL);
	hand_metric(&h, row, "mac_ratio", 0);
	hand_metric(&h, row, "vec_ratio", 0.25);
	hand_metric(&h, row, "mte2_ratio", 0.5);
	hand_metric(&h, row, "scalar_ratio", 0.7);
	hand_ready(&h);
	struct np_pipes p = pipes_of(&h, row);
	near(np_pipes_memory_bound(&p), 2);
	assert_int_equal(p.bound, NP_BOUND_SCALAR);
	hand_release(&h);
}

static void na_and_a_divisor_of_zero_are_unsupported_and_not_zero(void **state)
{
	(void)state;
	struct hand h;
	hand_init(&h);
	size_t zero = hand_kernel(&h, "Copy", "AI_VECTOR_CORE", 0, 1000, NULL, NULL);
	size_t na = hand_kernel(&h, "Fill", "AI_VECTOR_CORE", 0, 1000, NULL, NULL);
	hand_metric(&h, zero, "aiv_vec_ratio", 0);
	hand_metric(&h, zero, "aiv_mte2_ratio", 0.9);
	hand_metric(&h, na, "aiv_mte2_ratio", NAN);
	hand_ready(&h);
	struct np_pipes p = pipes_of(&h, zero), q = pipes_of(&h, na);
	assert_true(isnan(np_pipes_memory_bound(&p)));
	assert_int_equal(p.bound, NP_BOUND_MTE);
	assert_true(isnan(np_pipes_memory_bound(&q)));
	assert_int_equal(q.bound, NP_BOUND_NONE);
	np_analyze_bound(&h.self);
	const struct np_table *bound = table_of(h.self.report, "bound");
	size_t row = row_of(bound, "type", "Fill", NULL, NULL);
	assert_true(cell_of(bound, row, "memory_bound")->na);
	assert_str(cell_of(bound, row, "bound")->s, "unsupported");
	assert_true(cell_of(bound, row, "vec_ratio")->na);
	hand_release(&h);
}

static void medians_are_those_of_sorted_values(void **state)
{
	(void)state;
	for (size_t n = 1; n <= 40; n++) {
		struct hand h;
		hand_init(&h);
		for (size_t i = 0; i < n; i++)
			(void)hand_kernel(&h, "Add", "AI_VECTOR_CORE", 0, 1000, NULL, NULL);
		for (size_t i = 0; i < n; i++) { /* mte2 is 0.010, 0.020 … in some order */
			hand_metric(&h, i, "aiv_vec_ratio", 0.5);
			hand_metric(&h, i, "aiv_mte2_ratio",
			            (double)(i % 2 ? n - i / 2 : 1 + i / 2) * 0.01);
		}
		hand_ready(&h);
		np_analyze_bound(&h.self);
		const struct np_table *bound = table_of(h.self.report, "bound");
		double middle = (double)(n + 1) / 2 * 0.01;
		near(cell_of(bound, 0, "mte2_ratio")->r, middle);
		near(cell_of(bound, 0, "memory_bound")->r, middle * 2);
		hand_release(&h);
	}
}

static void memory_bound_operators_are_found(void **state)
{
	struct fixture *f = *state;
	f->options.layers = 24;
	struct np_report *report = analyzed_fault(f, "memory-bound");
	const struct np_finding *finding = finding_of(report, "MEMORY_BOUND_OPS");
	assert_non_null(finding);
	assert_int_equal(finding->severity, NP_INFO);
	assert_non_null(strstr(finding->title, "ConcatD/AI_VECTOR_CORE"));
	assert_true(finding->has_impact && finding->impact_us > 0 && finding->impact_share < 1);
	np_report_free(report);
}

static void a_network_of_matmuls_is_not_memory_bound(void **state)
{
	struct fixture *f = *state;
	f->options.layers = 24;
	struct np_report *report = analyzed_fault(f, NULL);
	assert_null(finding_of(report, "MEMORY_BOUND_OPS"));
	const struct np_table *bound = table_of(report, "bound");
	size_t row = row_of(bound, "type", "MatMulV3", "core", "AI_CORE");
	assert_str(cell_of(bound, row, "bound")->s, "cube-bound");
	np_report_free(report);
}

static void without_metrics_it_is_told_what_to_collect(void **state)
{
	struct fixture *f = *state;
	static const char *const faults[] = {"na-metrics", "no-metrics"};
	for (size_t i = 0; i < 2; i++) {
		struct np_report *report = analyzed_fault(f, faults[i]);
		assert_null(table_of(report, "bound"));
		assert_true(has_note(report, "bound types: not collected"));
		assert_null(finding_of(report, "MEMORY_BOUND_OPS"));
		np_report_free(report);
	}
}

static void it_survives_without_memory(void **state)
{
	(void)state;
	struct hand h;
	hand_init(&h);
	size_t row = hand_kernel(&h, "Add", "AI_VECTOR_CORE", 0, 1000, NULL, NULL);
	hand_metric(&h, row, "aiv_vec_ratio", 0.2);
	hand_metric(&h, row, "aiv_mte2_ratio", 0.5);
	hand_ready(&h);
	assert_survives_no_memory(&h, np_analyze_bound);
	hand_release(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_vector_kernel_is_judged_by_its_vector_core),
		cmocka_unit_test(a_mixed_kernel_is_judged_by_the_core_that_works_longer),
		cmocka_unit_test(columns_without_prefix_are_those_of_a_910a),
		cmocka_unit_test(na_and_a_divisor_of_zero_are_unsupported_and_not_zero),
		cmocka_unit_test(medians_are_those_of_sorted_values),
		TEST(memory_bound_operators_are_found),
		TEST(a_network_of_matmuls_is_not_memory_bound),
		TEST(without_metrics_it_is_told_what_to_collect),
		cmocka_unit_test(it_survives_without_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
