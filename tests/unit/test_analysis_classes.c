#include "analysis_set.h"

static void assert_class(const char *name, const char *type, const char *core, enum np_class class)
{
	enum np_class got = np_classify(np_str_of(name), np_str_of(type), np_str_of(core));
	if (got != class)
		fail_msg("%s, %s, %s is %s, expected %s", name, type, core, np_class_name(got),
		         np_class_name(class));
}

/* Every kind of type that the real captures have. */
static void types_and_cores_decide_the_class(void **state)
{
	(void)state;
	assert_class("hcom_allReduce__1_0_1", "hcom_allReduce_", "COMMUNICATION", NP_CLASS_COMM);
	assert_class("hcom_allReduce__1_0_1", "", "HCCL", NP_CLASS_COMM);
	assert_class("HCOM_broadcast__1", "", "AI_CORE", NP_CLASS_COMM);
	assert_class("a", "FlashAttentionScoreGrad", "MIX_AIC", NP_CLASS_ATTENTION);
	assert_class("a", "FusedInferAttentionScore", "MIX_AIC", NP_CLASS_ATTENTION);
	assert_class("a", "MatMulV3", "MIX_AIC", NP_CLASS_MATMUL);
	assert_class("a", "Conv2DBackpropFilter", "AI_CORE", NP_CLASS_MATMUL);
	assert_class("a", "GroupedMatmul", "AI_CORE", NP_CLASS_MATMUL);
	assert_class("a", "UnheardOfCubeThing", "AI_CORE", NP_CLASS_MATMUL);
	assert_class("a", "RmsNormGrad", "MIX_AIV", NP_CLASS_VECTOR);
	assert_class("a", "LpNormV2", "MIX_AIV", NP_CLASS_VECTOR);
	assert_class("aclnnTopk_0_TopKV2AiCore_TopKV2", "TopKV2", "AI_VECTOR_CORE",
	             NP_CLASS_VECTOR);
	assert_class("a", "TransData", "AI_VECTOR_CORE", NP_CLASS_TRANSFER);
	assert_class("aclnnInplaceCopy_SliceAiCore_Slice", "Slice", "AI_VECTOR_CORE",
	             NP_CLASS_TRANSFER);
	assert_class("a", "ConcatD", "AI_VECTOR_CORE", NP_CLASS_TRANSFER);
	assert_class("a", "MemSet", "AI_VECTOR_CORE", NP_CLASS_TRANSFER);
	assert_class("aclnnTopk_39_TopKAicpu_TopK", "TopK", "AI_CPU", NP_CLASS_AICPU);
	assert_class("a", "DSAGenBitMask", "DSA_SQE", NP_CLASS_OTHER);
	assert_class("a", "", "NOTIFY_WAIT_SQE", NP_CLASS_SYNC);
	assert_class("a", "", "DAVID_EVENT_WAIT", NP_CLASS_SYNC);
	assert_class("a", "Add", "KERNEL_AIVEC", NP_CLASS_VECTOR);
}

static void words_by_chance_do_not_decide(void **state)
{
	(void)state;
	assert_class("a", "UpsampleBilinear2d", "AI_VECTOR_CORE", NP_CLASS_VECTOR);
	assert_class("a", "CausalConv1d", "AI_VECTOR_CORE", NP_CLASS_VECTOR);
	assert_class("aclnnMatmul_TransData_TransData", "", "", NP_CLASS_TRANSFER);
	assert_class("aclnnMatmul_MatMulV3Common_MatMulV3", "", "", NP_CLASS_MATMUL);
	assert_class("aclnnTopk_39_TopKAicpu_TopK", "", "", NP_CLASS_AICPU);
	assert_class("trans_TransData_0", "", "", NP_CLASS_TRANSFER);
	assert_class("", "", "", NP_CLASS_VECTOR);
	assert_class("aclnn", "", "", NP_CLASS_VECTOR);
	assert_class("aclnn_", "", "", NP_CLASS_VECTOR);
}

static int64_t int_of(const struct set *f, const char *table, const char *key, const char *value,
                      const char *column)
{
	return find_cell(f, table, key, value, column)->i;
}

static void without_vector_cores_unnamed_work_is_vector_work(void **state)
{
	add_kernel(*state, 1, "a", "Add", "AI_CORE", 0, 10);
	add_kernel(*state, 1, "b", "MatMul", "AI_CORE", 20, 30);
	set_analyze(*state);
	assert_int_equal(int_of(*state, "classes", "class", "vector", "total_ns"), 10000);
	assert_int_equal(int_of(*state, "classes", "class", "matmul/conv", "total_ns"), 30000);
}

/*
 *   matmul ████████░░░░          0-80
 *   vector     ██░░░░░░          40-60
 *   comm           ████████      60-140, then a pause to 200, vector 200-210
 */
static void alone_several_and_nothing_sum_to_the_span(void **state)
{
	add_kernel(*state, 1, "m", "MatMul", "AI_CORE", 0, 80);
	add_kernel(*state, 1, "v", "Add", "AI_VECTOR_CORE", 40, 20);
	add_kernel(*state, 1, "hcom_x", "hcom_x", "COMMUNICATION", 60, 80);
	add_kernel(*state, 1, "v", "Add", "AI_VECTOR_CORE", 200, 10);
	add_kernel(*state, 1, "w", "", "NOTIFY_WAIT_SQE", 140, 60);
	set_analyze(*state);
	assert_int_equal(int_of(*state, "classes", "class", "matmul/conv", "alone_ns"), 40000);
	assert_int_equal(int_of(*state, "classes", "class", "vector", "alone_ns"), 10000);
	assert_int_equal(int_of(*state, "classes", "class", "communication", "alone_ns"), 60000);
	assert_int_equal(int_of(*state, "classes", "class", "(several at once)", "alone_ns"),
	                 40000);
	assert_int_equal(int_of(*state, "classes", "class", "(nothing)", "alone_ns"), 60000);
	assert_int_equal(int_of(*state, "classes", "class", "vector", "kernels"), 2);
}

/* In whole captures too, and the pause is the steps' free time. */
static void rows_sum_to_the_spans_in_synthetic_runs(void **state)
{
	set_analyze_synth(*state, NP_SYNTH_TEXT, 2, 4, 4, NULL);
	const struct np_table *classes = find_table(*state, "classes");
	const struct np_table *steps = find_table(*state, "steps");
	int64_t alone = 0, span = 0, idle = 0;
	for (size_t i = 0; i < np_table_rows(classes); i++)
		alone += np_table_cell(classes, i, 4)->i;
	for (size_t i = 0; i < np_table_rows(steps); i++) {
		span += np_table_cell(steps, i, 2)->i;
		idle += np_table_cell(steps, i, 6)->i;
	}
	assert_int_equal(alone, span);
	assert_int_equal(int_of(*state, "classes", "class", "(nothing)", "alone_ns"), idle);
}

static void shares_beyond_their_limit_are_told_as_information(void **state)
{
	add_kernel(*state, 1, "m", "MatMul", "AI_CORE", 0, 51);
	add_kernel(*state, 1, "v", "Add", "AI_VECTOR_CORE", 60, 49);
	set_analyze(*state);
	const struct np_finding *finding = expect(*state, "MATMUL_DOMINATES", NP_INFO);
	assert_true(fabs(finding->impact_us - 51) < 1e-9);
	expect(*state, "VECTOR_HEAVY", NP_INFO);
	expect_none(*state, "ATTENTION_DOMINATES");
}

static void shares_at_their_limit_are_silent(void **state)
{
	add_kernel(*state, 1, "m", "MatMul", "AI_CORE", 0, 50);
	add_kernel(*state, 1, "a", "FlashAttentionScore", "MIX_AIC", 60, 30);
	add_kernel(*state, 1, "v", "Add", "AI_VECTOR_CORE", 100, 20);
	add_kernel(*state, 1, "hcom_x", "hcom_x", "COMMUNICATION", 120, 1);
	set_analyze(*state);
	expect_none(*state, "MATMUL_DOMINATES");
	expect_none(*state, "VECTOR_HEAVY");
	expect_none(*state, "ATTENTION_DOMINATES");
}

static void attention_beyond_its_limit_is_told(void **state)
{
	add_kernel(*state, 1, "a", "FlashAttentionScore", "MIX_AIC", 60, 31);
	add_kernel(*state, 1, "m", "MatMul", "AI_CORE", 100, 69);
	set_analyze(*state);
	expect(*state, "ATTENTION_DOMINATES", NP_INFO);
}

/* ── golden/insight_qwen3_4rank.json: figures of the viewer ── */

static int64_t core_us(const struct set *f, const char *core)
{
	return int_of(f, "cores", "core", core, "total_ns") / 1000;
}

static void cores_of_rank_2_are_those_of_the_viewer(void **state)
{
	if (!set_analyze_shared(*state, "data/qwen3_4rank/rank_2_ascend_pt"))
		skip();
	assert_int_equal(core_us(*state, "AI_CORE"), 84415);         /* qwen3-04 */
	assert_int_equal(core_us(*state, "AI_VECTOR_CORE"), 168357); /* 05 */
	assert_int_equal(core_us(*state, "MIX_AIC"), 124287);        /* 06 */
	assert_int_equal(core_us(*state, "MIX_AIV"), 23387);         /* 07 */
	assert_int_equal(core_us(*state, "COMMUNICATION"), 277649);  /* 08 */
}

static void overall_metrics_of_rank_0_are_those_of_the_viewer(void **state)
{
	if (!set_analyze_shared(*state, "data/qwen3_4rank/rank_0_ascend_pt"))
		skip();
	const struct np_table *cores = find_table(*state, "cores");
	int64_t n = 0, total = 0, shortest = INT64_MAX, longest = 0, any = 0;
	for (size_t i = 0; i < np_table_rows(cores); i++) {
		int64_t max = np_table_cell(cores, i, 6)->i;
		any = max > any ? max : any;
		if (np_str_is(np_table_cell(cores, i, 0)->s, "COMMUNICATION"))
			continue;
		n += np_table_cell(cores, i, 1)->i;
		total += np_table_cell(cores, i, 2)->i;
		if (np_table_cell(cores, i, 5)->i < shortest)
			shortest = np_table_cell(cores, i, 5)->i;
		longest = max > longest ? max : longest;
	}
	assert_int_equal(total, 231290100);                                   /* qwen3-35 */
	assert_int_equal(n, 2448);                                            /* 36 */
	assert_true(fabs((double)total / 1000 / (double)n - 94.48) < 0.0051); /* 37 */
	assert_int_equal(shortest, 1060);                                     /* 38 */
	assert_int_equal(longest, 3680760);                                   /* 39 */
	assert_int_equal(any, 158553280);                                     /* 44 */
	int64_t span = int_of(*state, "steps", NULL, NULL, "span_ns");
	int64_t comm = int_of(*state, "steps", NULL, NULL, "comm_not_overlapped_ns");
	int64_t idle = int_of(*state, "steps", NULL, NULL, "free_ns");
	assert_int_equal(span, 810022360);                                      /* 40 */
	assert_true(fabs((double)total * 100 / (double)span - 28.55) < 0.0051); /* 41 */
	assert_true(fabs((double)comm * 100 / (double)span - 51.87) < 0.0051);  /* 42 */
	assert_true(fabs((double)idle * 100 / (double)span - 19.57) < 0.0051);  /* 43 */
}

/* The same run recorded twice, as text and as db: equal counts of every class. */
static void text_and_db_have_the_same_classes(void **state)
{
	static const char *const pairs[][2] = {
		{"data/ddp2/text/level0/rank0_ascend_pt", "data/ddp2/db/level0/rank0_ascend_pt"},
		{"data/ddp2/text/level2/rank1_ascend_pt", "data/ddp2/db/level2/rank1_ascend_pt"},
	};
	for (size_t p = 0; p < 2; p++) {
		int64_t counts[2][NP_N_CLASSES] = {{0}};
		for (int k = 0; k < 2; k++) {
			if (!set_analyze_shared(*state, pairs[p][k]))
				skip();
			const struct np_table *table = find_table(*state, "classes");
			for (size_t i = 0; i < np_table_rows(table); i++)
				for (int c = 0; c < NP_N_CLASSES; c++)
					if (np_str_is(np_table_cell(table, i, 0)->s,
					              np_class_name((enum np_class)c)))
						counts[k][c] = np_table_cell(table, i, 1)->i;
		}
		for (int c = 0; c < NP_N_CLASSES; c++)
			assert_int_equal(counts[0][c], counts[1][c]);
		assert_int_equal(counts[0][NP_CLASS_COMM], 4);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_open, set_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(types_and_cores_decide_the_class),
		cmocka_unit_test(words_by_chance_do_not_decide),
		TEST(without_vector_cores_unnamed_work_is_vector_work),
		TEST(alone_several_and_nothing_sum_to_the_span),
		TEST(rows_sum_to_the_spans_in_synthetic_runs),
		TEST(shares_beyond_their_limit_are_told_as_information),
		TEST(shares_at_their_limit_are_silent),
		TEST(attention_beyond_its_limit_is_told),
		TEST(cores_of_rank_2_are_those_of_the_viewer),
		TEST(overall_metrics_of_rank_0_are_those_of_the_viewer),
		TEST(text_and_db_have_the_same_classes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
