/* Kernels that could be one: known patterns, repeated sequences, and what must not count. */
#include "ops_unit.h"

#define BIG   "\"1,4096,2048\""
#define SMALL "\"7\""

/* A vector kernel with these ratios; they are set by metrics_of_all() once all are there. */
static void metrics_of_all(struct hand *h, double vec, double mte2, double mte3)
{
	for (size_t i = 0; i < h->self.profile->kernels.n; i++) {
		hand_metric(h, i, "aiv_vec_ratio", vec);
		hand_metric(h, i, "aiv_mte2_ratio", mte2);
		hand_metric(h, i, "aiv_mte3_ratio", mte3);
	}
}

static void vector(struct hand *h, const char *type)
{
	(void)hand_kernel(h, type, "AI_VECTOR_CORE", 10, 10000, BIG, BIG);
}

static const struct np_table *fusion(struct hand *h)
{
	hand_ready(h);
	np_analyze_fusion(&h->self);
	assert_false(h->self.oom);
	return table_of(h->self.report, "fusion");
}

static void an_unfused_norm_is_found_with_its_operator(void **state)
{
	struct fixture *f = *state;
	f->options.layers = 4;
	struct np_report *report = analyzed_fault(f, "fusable");
	const struct np_finding *finding = finding_of(report, "FUSION_CANDIDATE");
	assert_non_null(finding);
	assert_int_equal(finding->severity, NP_ERROR);
	assert_non_null(strstr(finding->title, "Pow → ReduceMean → Add → Rsqrt → Mul → Mul"));
	assert_non_null(strstr(finding->advice, "npu_rms_norm"));
	const struct np_table *table = table_of(report, "fusion");
	assert_str(cell_of(table, 0, "name")->s, "rms norm");
	assert_int_equal(cell_of(table, 0, "count")->i, 8);
	assert_int_equal(cell_of(table, 0, "saving_low_ns")->i,
	                 cell_of(table, 0, "saving_high_ns")->i / 2);
	np_report_free(report);
}

static void a_fused_network_has_no_candidate_worth_telling(void **state)
{
	struct fixture *f = *state;
	f->options.layers = 8;
	struct np_report *report = analyzed_fault(f, NULL);
	assert_null(finding_of(report, "FUSION_CANDIDATE"));
	np_report_free(report);
}

static void an_estimate_is_called_so_and_is_never_an_error(void **state)
{
	struct fixture *f = *state;
	f->options.layers = 4;
	struct np_report *report = analyzed_fault(f, "fusable");
	assert_non_null(finding_of(report, "FUSION_CANDIDATE"));
	np_report_free(report);
	f->options.formats = NP_SYNTH_TEXT;
	f->faults[1] = (struct np_synth_fault){.id = NP_SYNTH_NA_METRICS, .a = -1, .b = -1};
	f->options.n_faults = 2;
	assert_int_equal(np_synth_write(f->set, &f->options, NULL, &f->err), NP_OK);
	report = analyzed(f->set, 0);
	const struct np_finding *finding = finding_of(report, "FUSION_CANDIDATE");
	assert_non_null(finding);
	assert_int_equal(finding->severity, NP_INFO);
	assert_non_null(strstr(finding->title, "estimate"));
	assert_str(cell_of(table_of(report, "fusion"), 0, "basis")->s, "estimate");
	np_report_free(report);
}

static void a_saving_is_what_producers_write_and_consumers_read(void **state)
{
	(void)state;
	struct hand h;
	hand_init(&h);
	vector(&h, "Add");
	vector(&h, "RmsNorm");
	metrics_of_all(&h, 0.1, 0.5, 0.3);
	const struct np_table *table = fusion(&h);
	/* mte3 of Add 3 us, mte2 of RmsNorm 5 us */
	assert_int_equal(cell_of(table, 0, "saving_high_ns")->i, 8000);
	assert_int_equal(cell_of(table, 0, "saving_low_ns")->i, 4000);
	assert_int_equal(cell_of(table, 0, "total_ns")->i, 20000);
	hand_release(&h);
}

static void no_saving_exceeds_what_is_not_computing(void **state)
{
	(void)state;
	struct hand h;
	hand_init(&h);
	for (int i = 0; i < 3; i++) {
		vector(&h, "Exp");
		vector(&h, "Sub");
		vector(&h, "Log");
		vector(&h, "Abs");
		(void)hand_kernel(&h, "hcom_allReduce_", "HCCL", 0, 100, NULL, NULL);
	}
	metrics_of_all(&h, 0.4, 0.99, 0.99);
	const struct np_table *table = fusion(&h);
	assert_int_equal(cell_of(table, 0, "count")->i, 3);
	/* three pairs of 19.8 us each are more than the 24 us that are not vec */
	assert_int_equal(cell_of(table, 0, "saving_high_ns")->i, 3 * 24000);
	hand_release(&h);
}

static void a_sequence_that_repeats_is_found(void **state)
{
	(void)state;
	struct hand h;
	hand_init(&h);
	for (int i = 0; i < 5; i++) {
		vector(&h, "Exp");
		vector(&h, "Sub");
		vector(&h, "Log");
		(void)hand_kernel(&h, "FlashAttentionScore", "MIX_AIC", 0, 100, BIG, BIG);
	}
	metrics_of_all(&h, 0.1, 0.5, 0.3);
	const struct np_table *table = fusion(&h);
	assert_int_equal(np_table_rows(table), 1);
	assert_str(cell_of(table, 0, "kind")->s, "sequence");
	assert_str(cell_of(table, 0, "sequence")->s, "Exp → Sub → Log");
	assert_int_equal(cell_of(table, 0, "count")->i, 5);
	hand_release(&h);
}

static void occurrences_do_not_overlap_and_none_is_counted_twice(void **state)
{
	(void)state;
	struct hand h;
	hand_init(&h);
	static const char *const types[] = {"Exp", "Sub", "Log", "Abs", "Tan", "Neg", "Cos"};
	for (int i = 0; i < 40; i++)
		vector(&h, types[i % 7]);
	metrics_of_all(&h, 0.1, 0.5, 0.3);
	const struct np_table *table = fusion(&h);
	int64_t kernels_ns = 0;
	for (size_t r = 0; r < np_table_rows(table); r++)
		kernels_ns += cell_of(table, r, "total_ns")->i;
	assert_true(kernels_ns <= 40 * 10000);
	assert_int_equal(cell_of(table, 0, "count")->i, 5);
	hand_release(&h);
}

static void calls_of_one_type_in_a_row_are_no_chain(void **state)
{
	(void)state;
	struct hand h;
	hand_init(&h);
	for (int i = 0; i < 40; i++)
		vector(&h, "ApplyAdamWV2");
	for (int i = 0; i < 40; i++)
		vector(&h, i % 2 ? "Exp" : "Log");
	metrics_of_all(&h, 0.1, 0.5, 0.3);
	const struct np_table *table = fusion(&h);
	for (size_t r = 0; table && r < np_table_rows(table); r++) {
		np_str sequence = cell_of(table, r, "sequence")->s;
		assert_false(np_str_contains(sequence, NP_STR("WV2 → ApplyAdamWV2 → Apply")));
		assert_false(np_str_contains(sequence, NP_STR("Exp → Log → Exp → Log")));
	}
	hand_release(&h);
}

static void shapes_that_do_not_fit_save_nothing(void **state)
{
	(void)state;
	struct hand h;
	hand_init(&h);
	(void)hand_kernel(&h, "Add", "AI_VECTOR_CORE", 0, 10000, BIG, BIG);
	(void)hand_kernel(&h, "RmsNorm", "AI_VECTOR_CORE", 0, 10000, SMALL, SMALL);
	metrics_of_all(&h, 0.1, 0.5, 0.3);
	assert_null(fusion(&h));
	hand_release(&h);
}

static void a_view_of_the_same_size_fits(void **state)
{
	(void)state;
	struct hand h;
	hand_init(&h);
	(void)hand_kernel(&h, "Add", "AI_VECTOR_CORE", 0, 10000, BIG, BIG);
	(void)hand_kernel(&h, "RmsNorm", "AI_VECTOR_CORE", 0, 10000, "\"4096,16,128;128\"", BIG);
	metrics_of_all(&h, 0.1, 0.5, 0.3);
	assert_non_null(fusion(&h));
	hand_release(&h);
}

static void vector_saturated_kernels_are_vetoed(void **state)
{
	(void)state;
	struct hand h;
	hand_init(&h);
	vector(&h, "Add");
	vector(&h, "RmsNorm");
	metrics_of_all(&h, 0.95, 0.02, 0.3);
	assert_null(fusion(&h));
	hand_release(&h);
}

static void streams_and_collectives_break_a_chain(void **state)
{
	(void)state;
	struct hand h;
	hand_init(&h);
	for (int i = 0; i < 6; i++) {
		vector(&h, "Add");
		if (i < 3)
			(void)hand_kernel(&h, "hcom_allReduce_", "HCCL", 0, 100, NULL, NULL);
		size_t row = hand_kernel(&h, "RmsNorm", "AI_VECTOR_CORE", 0, 10000, BIG, BIG);
		h.self.profile->kernels.stream[row] = i < 3 ? 2 : 5;
	}
	metrics_of_all(&h, 0.1, 0.5, 0.3);
	const struct np_table *table = fusion(&h);
	for (size_t r = 0; table && r < np_table_rows(table); r++)
		assert_true(cell_of(table, r, "name")->na ||
		            !np_str_is(cell_of(table, r, "name")->s, "add + rms norm"));
	hand_release(&h);
}

static void a_sequence_has_at_most_one_matmul(void **state)
{
	(void)state;
	struct hand h;
	hand_init(&h);
	for (int i = 0; i < 5; i++) {
		vector(&h, "Exp");
		(void)hand_kernel(&h, "MatMulV3", "AI_CORE", 0, 90000, BIG, BIG);
		vector(&h, "Log");
		(void)hand_kernel(&h, "MatMulV2", "AI_CORE", 0, 90000, BIG, BIG);
		vector(&h, "Abs");
	}
	metrics_of_all(&h, 0.1, 0.5, 0.3);
	const struct np_table *table = fusion(&h);
	for (size_t r = 0; table && r < np_table_rows(table); r++) {
		np_str sequence = cell_of(table, r, "sequence")->s;
		assert_false(np_str_contains(sequence, NP_STR("MatMulV3")) &&
		             np_str_contains(sequence, NP_STR("MatMulV2")));
	}
	hand_release(&h);
}

static void versions_of_a_type_are_one_word(void **state)
{
	(void)state;
	static const struct {
		const char *types[6];
		const char *name;
	} cases[] = {
		{{"MatMulV3", "Add"}, "matmul + bias"},
		{{"BatchMatMulV2", "Muls", "MaskedFill", "SoftmaxV2", "BatchMatMulV2"},
	         "attention"},
		{{"StridedSliceD", "Neg", "ConcatD", "Mul", "Mul", "Add"}, "rotary embedding"},
		{{"LayerNormV4", "Mul", "Add"}, "adaptive layer norm"},
		{{"Swish", "Mul"}, "swiglu"},
		{{"RealDiv", "Erf", "Adds", "Mul"}, "gelu (erf)"},
	};
	for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
		struct hand h;
		hand_init(&h);
		for (int i = 0; i < 6 && cases[c].types[i]; i++)
			vector(&h, cases[c].types[i]);
		metrics_of_all(&h, 0.1, 0.5, 0.3);
		const struct np_table *table = fusion(&h);
		if (!table || np_table_rows(table) != 1)
			fail_msg("%s is not found", cases[c].name);
		assert_str(cell_of(table, 0, "name")->s, cases[c].name);
		hand_release(&h);
	}
}

static void it_survives_without_memory(void **state)
{
	(void)state;
	struct hand h;
	hand_init(&h);
	for (int i = 0; i < 4; i++) {
		vector(&h, "Exp");
		vector(&h, "Sub");
		vector(&h, "Log");
		vector(&h, "Add");
		vector(&h, "RmsNorm");
	}
	metrics_of_all(&h, 0.1, 0.5, 0.3);
	hand_ready(&h);
	assert_survives_no_memory(&h, np_analyze_fusion);
	hand_release(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_unfused_norm_is_found_with_its_operator),
		TEST(a_fused_network_has_no_candidate_worth_telling),
		TEST(an_estimate_is_called_so_and_is_never_an_error),
		cmocka_unit_test(a_saving_is_what_producers_write_and_consumers_read),
		cmocka_unit_test(no_saving_exceeds_what_is_not_computing),
		cmocka_unit_test(a_sequence_that_repeats_is_found),
		cmocka_unit_test(occurrences_do_not_overlap_and_none_is_counted_twice),
		cmocka_unit_test(calls_of_one_type_in_a_row_are_no_chain),
		cmocka_unit_test(shapes_that_do_not_fit_save_nothing),
		cmocka_unit_test(a_view_of_the_same_size_fits),
		cmocka_unit_test(vector_saturated_kernels_are_vetoed),
		cmocka_unit_test(streams_and_collectives_break_a_chain),
		cmocka_unit_test(a_sequence_has_at_most_one_matmul),
		cmocka_unit_test(versions_of_a_type_are_one_word),
		cmocka_unit_test(it_survives_without_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
