/* The checkers of the computation: each at its threshold, on both sides. */
#include "advice_unit.h"

#include "advice/aicpu_dtypes.h"
#include "advice/dims.h"

static void near(double value, double expected)
{
	if (!(fabs(value - expected) < 1e-6))
		fail_msg("%.12g, expected %.12g", value, expected);
}

/* ── AI CPU ── */

static void an_operator_of_20_us_on_the_ai_cpu_is_told(void **state)
{
	(void)state;
	for (int over = 0; over < 2; over++) {
		struct advice a;
		advice_init(&a);
		size_t row =
			hand_kernel(&a.h, "Cast", "AI_CPU", 0, over ? 20000 : 19999, "128", "128");
		a.h.self.profile->kernel_shapes.in_dtypes[row] = hand_text(&a.h, "DOUBLE");
		(void)hand_kernel(&a.h, "Add", "AI_VECTOR_CORE", 0, 90000, "8", "8");
		advice_ready(&a);
		const struct np_finding *finding = advised(&a, "aicpu");
		assert_int_equal(finding != NULL, over);
		if (over) {
			near(finding->impact_us, 20);
			assert_non_null(strstr(finding->detail, "DOUBLE in Cast"));
			assert_int_equal(np_table_rows(advice_table_of(&a, "aicpu")), 1);
		}
		advice_release(&a);
	}
}

static void what_other_kernels_hide_is_no_gain(void **state)
{
	(void)state;
	struct advice a;
	advice_init(&a);
	size_t row = hand_kernel(&a.h, "Index", "AI_CPU", 0, 30000, NULL, NULL);
	size_t other = hand_kernel(&a.h, "Add", "AI_VECTOR_CORE", 0, 30000, NULL, NULL);
	a.h.self.profile->kernels.start_ns[other] = a.h.self.profile->kernels.start_ns[row] + 10000;
	advice_ready(&a);
	const struct np_finding *finding = advised(&a, "aicpu");
	assert_non_null(finding);
	near(finding->impact_us, 10);
	assert_non_null(strstr(finding->detail, "index_select"));
	advice_release(&a);
}

static void equal_rows_are_told_once(void **state)
{
	(void)state;
	struct advice a;
	advice_init(&a);
	for (int i = 0; i < 5; i++)
		(void)hand_kernel(&a.h, "Cast", "AI_CPU", 0, i < 3 ? 30000 : 25000, "128", "128");
	advice_ready(&a);
	assert_non_null(advised(&a, "aicpu"));
	const struct np_table *table = advice_table_of(&a, "aicpu");
	assert_int_equal(np_table_rows(table), 2);
	near(cell_of(table, 0, "task_duration")->r, 30);
	const struct np_table *problems = advice_table_of(&a, "problems");
	assert_int_equal(cell_of(problems, 0, "problem count")->i, 5);
	advice_release(&a);
}

static np_str bad(const char *op, const char *types, bool output, const char *cann)
{
	const char *instead;
	return np_aicpu_dtype(np_str_of(op), np_str_of(types), output, cann, &instead);
}

static void data_types_are_judged_for_every_version(void **state)
{
	(void)state;
	static const char *const versions[] = {"7.0.0", "8.0.RC1", "8.0.RC2",
	                                       "8.0.0", "8.3.RC1", ""};
	for (size_t v = 0; v < sizeof versions / sizeof *versions; v++) {
		assert_true(np_str_is(bad("Add", "FLOAT;DOUBLE", false, versions[v]), "DOUBLE"));
		assert_true(np_str_is(bad("Add", "UINT16", false, versions[v]), "UINT16"));
		assert_int_equal(bad("Add", "FLOAT;DT_BF16;INT64", false, versions[v]).len, 0);
		assert_int_equal(bad("Mul", "COMPLEX64", false, versions[v]).len, 0);
		assert_true(np_str_is(bad("Equal", "FLOAT", true, versions[v]), "FLOAT"));
		assert_int_equal(bad("Equal", "INT64", false, versions[v]).len, 0);
		assert_true(np_str_is(bad("TensorEqual", "INT64", false, versions[v]), "INT64"));
	}
	assert_int_equal(bad("Add", "UINT16", false, "7.0.RC1").len, 0);
	assert_true(np_str_is(bad("Mul", "COMPLEX64", false, "7.0.RC1"), "COMPLEX64"));
	assert_int_equal(bad("Add", "", false, "").len + bad("Add", "N/A;", false, "").len, 0);
	assert_non_null(np_aicpu_guide(NP_STR("IndexPutV2")));
	assert_null(np_aicpu_guide(NP_STR("Add")));
}

/* ── block dim ── */

static bool uneven(const char *core, uint32_t blocks, uint32_t mix)
{
	struct advice a;
	advice_init(&a);
	a.h.capture.chip = (struct np_chip){true, 24, 48, 1800, 0};
	size_t row = hand_kernel(&a.h, "X", core, 0, 10000, "8", "8");
	a.h.self.profile->kernels.block_num[row] = blocks;
	a.h.self.profile->kernels.mix_block_num[row] = mix;
	advice_ready(&a);
	bool told = advised(&a, "block_dim") != NULL;
	advice_release(&a);
	return told;
}

static void blocks_that_leave_cores_idle_are_told(void **state)
{
	(void)state;
	assert_false(uneven("AI_CORE", 24, 0));
	assert_true(uneven("AI_CORE", 23, 0));
	assert_true(uneven("AI_CORE", 25, 0));
	assert_false(uneven("AI_CORE", 48, 0));
	assert_true(uneven("AI_VECTOR_CORE", 24, 0));
	assert_false(uneven("AI_VECTOR_CORE", 48, 0));
	assert_false(uneven("MIX_AIC", 24, 0));
	assert_true(uneven("MIX_AIC", 20, 40));
	assert_false(uneven("MIX_AIC", 20, 48));
	assert_false(uneven("AI_CORE", 0, 0));
	assert_false(uneven("AI_CORE", NP_NO_U32, 0));
	assert_false(uneven("AI_CPU", 1, 0));
}

static void the_income_is_the_share_of_idle_places(void **state)
{
	(void)state;
	struct advice a;
	advice_init(&a);
	a.h.capture.chip = (struct np_chip){true, 24, NP_NO_I64, 1800, 0};
	size_t row = hand_kernel(&a.h, "X", "AI_VECTOR_CORE", 0, 12000, "8", "8");
	a.h.self.profile->kernels.block_num[row] = 36;
	advice_ready(&a);
	const struct np_finding *finding = advised(&a, "block_dim");
	assert_non_null(finding); /* 36 of 48 places, and no vector cores of their own */
	near(finding->impact_us, 3);
	a.h.capture.chip.recorded = false;
	assert_null(advised(&a, "block_dim"));
	assert_true(has_note(a.self.report, "info.json"));
	assert_int_equal(a.self.report->exit_code, 0);
	advice_release(&a);
}

/* ── no bound ── */

static bool unbound(double ratio, np_ns dur, const char *metric)
{
	struct advice a;
	advice_init(&a);
	size_t bound = hand_kernel(&a.h, "First", "AI_VECTOR_CORE", 0, 50000, "8", "8");
	size_t row = hand_kernel(&a.h, "X", "AI_VECTOR_CORE", 0, dur, "8", "8");
	hand_metric(&a.h, bound, "aiv_vec_ratio", 0.95);
	hand_metric(&a.h, row, "aiv_vec_ratio", 0.2);
	hand_metric(&a.h, row, metric, ratio);
	advice_ready(&a);
	bool told = advised(&a, "no_bound") != NULL;
	advice_release(&a);
	return told;
}

static void an_operator_without_a_busy_unit_is_told(void **state)
{
	(void)state;
	assert_true(unbound(0.8, 20001, "aiv_mte2_ratio"));
	assert_false(unbound(0.801, 20001, "aiv_mte2_ratio"));
	assert_false(unbound(0.801, 20001, "aiv_scalar_ratio"));
	assert_false(unbound(0.8, 20000, "aiv_mte2_ratio"));
	/* what a database has of the core that did nothing does not count */
	assert_true(unbound(0.99, 20001, "aic_mte2_ratio"));
	assert_true(unbound(0.99, 20001, "aiv_mac_ratio"));
}

static void a_mixed_kernel_may_be_bound_on_either_core(void **state)
{
	(void)state;
	struct advice a;
	advice_init(&a);
	size_t row = hand_kernel(&a.h, "MatMulV3", "MIX_AIC", 0, 50000, "8", "8");
	hand_metric(&a.h, row, "aic_mac_ratio", 0.81);
	hand_metric(&a.h, row, "aiv_vec_ratio", 0.1);
	advice_ready(&a);
	assert_null(advised(&a, "no_bound"));
	hand_metric(&a.h, row, "aic_mac_ratio", 0.4);
	const struct np_finding *finding = advised(&a, "no_bound");
	assert_non_null(finding);
	near(finding->impact_us, 25);
	advice_release(&a);
}

static void without_pmu_columns_it_says_so(void **state)
{
	(void)state;
	struct advice a;
	advice_init(&a);
	(void)hand_kernel(&a.h, "X", "AI_CORE", 0, 50000, "8", "8");
	advice_ready(&a);
	assert_null(advised(&a, "no_bound"));
	assert_int_equal(a.self.report->exit_code, 3);
	assert_true(has_note(a.self.report, "Level1"));
	advice_release(&a);
}

static void the_longest_operators_are_listed_for_aoe(void **state)
{
	(void)state;
	struct advice a;
	struct np_buf text = {.max_bytes = 4096};
	char name[32];
	advice_init(&a);
	for (int i = 0; i < 12; i++) {
		(void)snprintf(name, sizeof name, "Op\"%02d", i);
		for (int twice = 0; twice < 2; twice++)
			(void)hand_kernel(&a.h, name, "AI_CORE", 0, 50000 - i * 10, "8", "8");
	}
	for (size_t row = 0; row < 24; row++)
		hand_metric(&a.h, row, "aic_mac_ratio", 0.4);
	advice_ready(&a);
	assert_false(np_advise_tuning(a.self.report, &text));
	assert_non_null(advised(&a, "no_bound"));
	assert_true(np_advise_tuning(a.self.report, &text));
	assert_non_null(strstr(text.ptr, "{\"tune_ops_name\": [\"Op\\\"00\", \"Op\\\"01\""));
	assert_non_null(strstr(text.ptr, "09\"]}"));
	np_buf_release(&text);
	advice_release(&a);
}

/* ── dynamic shape ── */

static void a_static_operator_or_none_with_a_state_is_no_dynamic_shape(void **state)
{
	(void)state;
	struct advice a;
	advice_init(&a);
	size_t one = hand_kernel(&a.h, "TransData", "AI_VECTOR_CORE", 0, 7000, "8", "8");
	size_t two = hand_kernel(&a.h, "Add", "AI_VECTOR_CORE", 0, 1000, "8", "8");
	advice_ready(&a);
	uint32_t *states = a.h.self.profile->kernels.op_state;
	uint32_t dynamic = hand_text(&a.h, "dynamic");
	assert_null(advised(&a, "dynamic_shape")); /* Level0: the column is not there */
	states[one] = states[two] = dynamic;
	const struct np_finding *finding = advised(&a, "dynamic_shape");
	assert_non_null(finding);
	near(finding->impact_us, 7);
	states[two] = hand_text(&a.h, "static");
	assert_null(advised(&a, "dynamic_shape"));
	advice_release(&a);
}

static void where_nothing_is_compiled_dynamic_shapes_are_fine(void **state)
{
	(void)state;
	struct advice a;
	advice_init(&a);
	size_t row = hand_kernel(&a.h, "Add", "AI_VECTOR_CORE", 0, 4000, "8", "8");
	struct np_profile *profile = a.h.self.profile;
	profile->kernels.op_state[row] = hand_text(&a.h, "dynamic");
	advice_ready(&a);
	assert_non_null(advised(&a, "dynamic_shape")); /* the host is not recorded */
	size_t op = np_profile_add(profile, host_ops);
	assert_true(op == 0);
	profile->host_ops.layer[op] = NP_HOST_ACL;
	profile->host_ops.name[op] = hand_text(&a.h, "aclrtMalloc");
	profile->host_ops.start_ns[op] = profile->kernels.start_ns[row] - 6000;
	profile->host_ops.dur_ns[op] = 9000; /* 6 us of it before the kernel, 3 us behind it */
	assert_null(advised(&a, "dynamic_shape"));
	profile->host_ops.name[op] = hand_text(&a.h, "aclopCompileAndExecute");
	const struct np_finding *finding = advised(&a, "dynamic_shape");
	assert_non_null(finding);
	near(finding->impact_us, 6);
	advice_release(&a);
}

/* ── frequency ── */

static void sample(struct advice *a, np_ns ts, double mhz)
{
	struct np_profile *p = a->h.self.profile;
	size_t row = np_profile_add(p, counters);
	assert_true(row != SIZE_MAX);
	p->counters.process[row] = hand_text(&a->h, "AI Core Freq");
	p->counters.name[row] = hand_text(&a->h, "MHz");
	p->counters.device[row] = 0;
	p->counters.ts_ns[row] = ts;
	p->counters.value[row] = mhz;
}

static const struct np_finding *at_mhz(struct advice *a, const char *core, double mhz,
                                       double nominal)
{
	advice_init(a);
	a->h.capture.chip = (struct np_chip){nominal > 0, 24, 48, nominal, 0};
	(void)hand_kernel(&a->h, "MatMulV3", core, 1000, 10000, "8", "8");
	sample(a, 0, 1800);
	sample(a, 1000500, mhz);
	advice_ready(a);
	return advised(a, "frequency");
}

static void five_percent_below_nominal_is_told(void **state)
{
	(void)state;
	static const struct {
		const char *core;
		double mhz, nominal;
		bool told;
	} cases[] = {
		{"AI_CORE", 1710, 1800, true}, {"AI_CORE", 1711, 1800, false},
		{"MIX_AIC", 1710, 1800, true}, {"AI_VECTOR_CORE", 900, 1800, false},
		{"AI_CORE", 1710, 0, true},    {"AI_CORE", 1711, 0, false},
		{"AI_CORE", 1800, 2000, true}, {"AI_CORE", 1900, 1800, false},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct advice a;
		const struct np_finding *finding =
			at_mhz(&a, cases[i].core, cases[i].mhz, cases[i].nominal);
		if ((finding != NULL) != cases[i].told)
			fail_msg("%s at %g of %g", cases[i].core, cases[i].mhz, cases[i].nominal);
		advice_release(&a);
	}
}

static void the_frequency_of_a_kernel_is_the_mean_over_its_time(void **state)
{
	(void)state;
	struct advice a;
	advice_init(&a);
	size_t row = hand_kernel(&a.h, "MatMulV3", "AI_CORE", 0, 10000, "8", "8");
	np_ns start = a.h.self.profile->kernels.start_ns[row];
	sample(&a, start - 5, 1800);
	sample(&a, start + 5000, 1400);
	sample(&a, start + 10000, 800); /* begins when the kernel is over */
	advice_ready(&a);
	const struct np_finding *finding = advised(&a, "frequency");
	assert_non_null(finding);
	near(cell_of(advice_table_of(&a, "frequency"), 0, "Average frequency")->r, 1600);
	near(finding->impact_us, 10.0 * 200 / 1800);
	advice_release(&a);
}

/* ── what bounds cube, attention and vector operators ── */

struct verdict {
	char set[64], why[400];
	double income;
};

/* The one row of its table; set "" when the checker is silent. */
static struct verdict verdict_of(struct advice *a, const char *checker)
{
	struct verdict out = {.set = ""};
	if (!advised(a, checker))
		return out;
	const struct np_table *table = advice_table_of(a, checker);
	assert_int_equal(np_table_rows(table), 1);
	(void)snprintf(out.set, sizeof out.set, "%.*s", NP_FMT(cell_of(table, 0, "Type")->s));
	(void)snprintf(out.why, sizeof out.why, "%.*s",
	               NP_FMT(cell_of(table, 0, "Description")->s));
	out.income = cell_of(table, 0, "income(us)")->na ? 0 : cell_of(table, 0, "income(us)")->r;
	return out;
}

static struct verdict cube(const char *in, const char *out, double mac, double mte2)
{
	struct advice a;
	advice_init(&a);
	size_t row = hand_kernel(&a.h, "MatMulV3", "AI_CORE", 0, 100000, in, out);
	hand_metric(&a.h, row, "aic_mac_ratio", mac);
	hand_metric(&a.h, row, "aic_mte2_ratio", mte2);
	advice_ready(&a);
	struct verdict verdict = verdict_of(&a, "perf_cube");
	advice_release(&a);
	return verdict;
}

static void expect_set(const struct verdict *verdict, const char *set, const char *why)
{
	if (!strstr(verdict->set, set) || !strstr(verdict->why, why))
		fail_msg("\"%s\": %s, expected %s: %s", verdict->set, verdict->why, set, why);
}

/* 2 bytes x (5120*5120 + 2 * 5120*2560) = 100 MiB */
#define IN  "\"5120,5120;5120,2560\""
#define OUT "\"5120,2560\""

static void matrix_products_are_bound_at_their_thresholds(void **state)
{
	(void)state;
	struct verdict v = cube(IN, OUT, 0.8, 0.5);
	expect_set(&v, "bound", "bound type: mac bound");
	v = cube(IN, OUT, 0.799, 0.5);
	expect_set(&v, "optimization", "Space: 45.00%");
	near(v.income, 100 * (1 - 0.799 / 0.8));
	v = cube(IN, OUT, 0.5, 0.95);
	expect_set(&v, "bound", "mte2 bound");
	v = cube(IN, OUT, 0.5, 0.949);
	expect_set(&v, "optimization", "Space: 30.00%");
	v = cube(IN, OUT, 0.8, 0.95);
	expect_set(&v, "bound", "mac_and_mte2 bound");
	v = cube("5120,5120;5120,2560", "5120,2559", 0.5, 0.5);
	assert_string_equal(v.set, ""); /* a little less than 100 MiB */
}

static void inner_axes_of_matrix_products_have_to_fit(void **state)
{
	(void)state;
	struct verdict v = cube("\"9000,5119;5120,2560\"", OUT, 0.9, 0.5);
	expect_set(&v, "unaffine", "inner axis of input 0 is 5119");
	v = cube("\"9000,5120;5120,2561\"", OUT, 0.9, 0.5);
	expect_set(&v, "unaffine", "inner axis of input 1 is 2561");
	v = cube("\"9000,16,16,100;99,32,8,99\"", OUT, 0.9, 0.5);
	expect_set(&v, "bound", "mac bound"); /* NZ: 16*16 and 32*8 */
	v = cube("\"9000,16,15,100;99,32,8,99\"", OUT, 0.9, 0.5);
	expect_set(&v, "unaffine", "is 240");
}

static struct verdict attention(const char *type, const char *in, const char *out,
                                const char *metric, double ratio, double mte2)
{
	struct advice a;
	advice_init(&a);
	size_t row = hand_kernel(&a.h, type, "MIX_AIC", 0, 100000, in, out);
	hand_metric(&a.h, row, metric, ratio);
	hand_metric(&a.h, row, "aic_mte2_ratio", mte2);
	advice_ready(&a);
	struct verdict verdict = verdict_of(&a, "perf_fa");
	advice_release(&a);
	return verdict;
}

#define FA       "FlashAttentionScore"
#define GRAD     "FlashAttentionScoreGrad"
#define FIT      "2,8,256,128;2,8,256,128;2,8,256,128"
#define GRAD_FIT "512,2,1024;512,2,1024;512,2,1024;512,2,1024;64,64;2,8,512,8;2,8,512,8"

static void attention_is_bound_at_its_thresholds(void **state)
{
	(void)state;
	struct verdict v = attention(FA, FIT, "2,8,256,8", "aiv_vec_ratio", 0.75, 0.1);
	expect_set(&v, "bound", "vec bound");
	v = attention(FA, FIT, "2,8,256,8", "aiv_vec_ratio", 0.749, 0.1);
	expect_set(&v, "optimization", "Space: 70.00%");
	v = attention(FA, FIT, "2,8,256,8", "aiv_vec_ratio", 0.1, 0.8);
	expect_set(&v, "bound", "mte2 bound");
	v = attention(FA, FIT, "2,8,256,8", "aic_fixpipe_ratio", 0.9, 0.799);
	expect_set(&v, "optimization", "Space: 75.00%");
	v = attention(GRAD, GRAD_FIT, "512,2,1024", "aic_fixpipe_ratio", 0.75, 0.1);
	expect_set(&v, "bound", "fixpipe bound");
	v = attention(GRAD, GRAD_FIT, "512,2,1024", "aiv_vec_ratio", 0.9, 0.1);
	expect_set(&v, "optimization", "Space: 75.00%");
	v = attention("FlashAttention", FIT, "2,8,256,8", "aiv_vec_ratio", 0.9, 0.1);
	assert_string_equal(v.set, "");
}

static void head_dimension_and_sequence_have_to_fit(void **state)
{
	(void)state;
	struct verdict v =
		attention(FA, "2,8,256,127;2,8,256,127", "2,8,256,8", "aiv_vec_ratio", 0.9, 0.1);
	expect_set(&v, "unaffine", "head dimension is 127");
	v = attention(FA, "2,8,64,128;2,8,64,128", "2,8,64,8", "aiv_vec_ratio", 0.9, 0.1);
	expect_set(&v, "unaffine", "sequence length is 64"); /* two digits, too */
	v = attention(FA, "256,2,768;256,2,768", "2,8,256,8", "aiv_vec_ratio", 0.9, 0.1);
	expect_set(&v, "unaffine", "head dimension is 96");
	v = attention(FA, "300,8,128;300,8,128", "300,8,8;300,8,8", "aiv_vec_ratio", 0.9, 0.1);
	expect_set(&v, "bound", "vec bound"); /* TND: lengths vary */
	v = attention(FA, "300,8,64;300,8,64", "300,8,8;300,8,8", "aiv_vec_ratio", 0.9, 0.1);
	expect_set(&v, "unaffine", "head dimension is 64");
	v = attention(GRAD, "512,2,768;512,2,768;512,2,768;512,2,768;64,64;2,8,512,8", "1",
	              "aic_fixpipe_ratio", 0.9, 0.1);
	expect_set(&v, "unaffine", "head dimension is 96");
}

static struct verdict vector(np_ns others, double vec, double mte2, double mte3)
{
	struct advice a;
	advice_init(&a);
	size_t row = hand_kernel(&a.h, "Add", "AI_VECTOR_CORE", 0, 10000, "8", "8");
	(void)hand_kernel(&a.h, "hcom_allReduce_", "COMMUNICATION", 0, others, NULL, NULL);
	hand_metric(&a.h, row, "aiv_vec_ratio", vec);
	hand_metric(&a.h, row, "aiv_mte2_ratio", mte2);
	hand_metric(&a.h, row, "aiv_mte3_ratio", mte3);
	advice_ready(&a);
	struct verdict verdict = verdict_of(&a, "perf_vector");
	advice_release(&a);
	return verdict;
}

static void vector_operators_are_bound_at_their_thresholds(void **state)
{
	(void)state;
	struct verdict v = vector(1000, 0.3, 0.3, 0.3);
	expect_set(&v, "bound", "vec_mte2_mte3 bound");
	v = vector(1000, 0.3, 0.3, 0.299);
	expect_set(&v, "optimization", "Space: 40.10%");
	near(v.income, 10 * (1 - 0.3 / 0.7));
	v = vector(1000, 0.1, 0.7, 0);
	expect_set(&v, "bound", "type: mte2 bound");
	v = vector(1000, 0.1, 0.699, 0);
	expect_set(&v, "optimization", "Space: 70.00%");
	v = vector(1000, 0, 0.1, 0.7);
	expect_set(&v, "bound", "type: mte3 bound");
	v = vector(1000, 0.7, 0.1, 0);
	expect_set(&v, "bound", "type: vec bound");
	v = vector(990000, 0.7, 0.1, 0);
	expect_set(&v, "bound", "vec bound"); /* 1 % of all durations */
	v = vector(990001, 0.7, 0.1, 0);
	assert_string_equal(v.set, "");
}

/* ── which ranks of a pipeline are looked at ── */

/* Eight ranks: tp 2, dp 2, and two stages of ranks 0 to 3 and 4 to 7. */
static struct np_report *advised_pipeline_on(struct fixture *f, enum np_dimension dimension,
                                             const char *first, const char *second)
{
	struct np_captures *all = NULL;
	struct np_report *report = np_report_new("advise");
	struct np_advise_options options = {
		.dimensions = 1U << dimension, .no_cache = true, .threads = 2};
	const char *faults[] = {first, second};
	f->options.ranks = 8;
	f->options.tp = f->options.pp = 2;
	f->options.force = true;
	f->options.n_faults = 0;
	for (size_t i = 0; i < 2 && faults[i]; i++)
		assert_int_equal(
			np_synth_parse_fault(faults[i], &f->faults[f->options.n_faults++], &f->err),
			NP_OK);
	if (np_synth_write(f->set, &f->options, NULL, &f->err) != NP_OK)
		fail_msg("%s: %s", f->err.where, f->err.msg);
	assert_non_null(report);
	assert_int_equal(np_discover(f->set, &all, &f->err), NP_OK);
	if (np_advise(all, &options, report, &f->err) != NP_OK)
		fail_msg("%s: %s", f->err.where, f->err.msg);
	assert_false(report->mistaken);
	np_captures_free(all);
	return report;
}

static struct np_report *advised_pipeline(struct fixture *f, const char *first, const char *second)
{
	return advised_pipeline_on(f, NP_DIM_COMPUTATION, first, second);
}

static size_t about(const struct np_report *report, const char *rank)
{
	size_t n = 0;
	for (size_t i = 0; i < report->findings.n; i++)
		n += strncmp(report->findings.v[i]->title, rank, strlen(rank)) == 0;
	return n;
}

static void of_each_stage_the_slowest_rank_is_looked_at(void **state)
{
	struct fixture *f = *state;
	struct np_report *both = advised_pipeline(f, "slow-rank=5", "slow-rank=2");
	assert_true(about(both, "rank 2: ") > 0);
	assert_true(about(both, "rank 5: ") > 0);
	assert_int_equal(about(both, "rank "), about(both, "rank 2: ") + about(both, "rank 5: "));
	assert_non_null(table_of(both, "no_bound"));
	assert_non_null(table_of(both, "no_bound_rank5"));
	np_report_free(both);
	struct np_report *one = advised_pipeline(f, "slow-rank=2", NULL);
	assert_true(about(one, "rank 2: ") > 0);
	assert_int_equal(about(one, "rank "), about(one, "rank 2: "));
	assert_null(table_of(one, "no_bound_rank2"));
	np_report_free(one);
}

static void stages_with_different_work_are_not_compared(void **state)
{
	struct fixture *f = *state;
	/* all of stage 1 take 1.5 times as long, rank 2 of stage 0 1.4 times */
	struct np_report *report = advised_pipeline(f, "stage-imbalance=1", "slow-rank=2");
	assert_true(about(report, "rank 2: ") > 0);
	assert_int_equal(about(report, "rank "), about(report, "rank 2: "));
	np_report_free(report);
}

/* How often a finding of slow ranks speaks of stages. */
static size_t slow_ranks_of_stages(const struct np_report *report)
{
	size_t n = 0;
	for (size_t i = 0; i < report->findings.n; i++) {
		const struct np_finding *finding = report->findings.v[i];
		n += strcmp(finding->code, "ADVICE_SLOW_RANK") == 0 && finding->detail &&
		     strstr(finding->detail, "in stage 1") &&
		     strstr(finding->advice, "CLUSTER_STAGE_IMBALANCE");
	}
	return n;
}

static void a_stage_with_more_work_is_not_blamed_on_its_card(void **state)
{
	struct fixture *f = *state;
	struct np_report *work = advised_pipeline_on(f, NP_DIM_CLUSTER, "stage-imbalance=1", NULL);
	assert_true(slow_ranks_of_stages(work) > 0);
	np_report_free(work);
	struct np_report *card = advised_pipeline_on(f, NP_DIM_CLUSTER, "slow-rank=2", NULL);
	assert_true(about(card, "computing: rank 2 takes") > 0);
	assert_int_equal(slow_ranks_of_stages(card), 0);
	np_report_free(card);
}

/* ── what synth plants ── */

static struct np_report *advised_fault(struct fixture *f, unsigned formats, const char *fault)
{
	struct np_captures *all = NULL;
	struct np_report *report = np_report_new("advise");
	struct np_advise_options options = {
		.dimensions = 1U << NP_DIM_COMPUTATION, .has_rank = true, .threads = 1};
	f->options.ranks = 2;
	f->options.layers = 4;
	f->options.formats = formats;
	write_set(f, fault);
	assert_non_null(report);
	assert_int_equal(np_discover(f->set, &all, &f->err), NP_OK);
	if (np_advise(all, &options, report, &f->err) != NP_OK)
		fail_msg("%s: %s", f->err.where, f->err.msg);
	assert_false(report->mistaken);
	np_captures_free(all);
	return report;
}

static void planted_faults_are_found_in_both_formats_and_only_they(void **state)
{
	struct fixture *f = *state;
	static const struct {
		const char *fault, *code;
	} cases[] = {
		{"aicpu=0", "ADVICE_AICPU"},
		{"freq-drop=0", "ADVICE_FREQUENCY"},
		{NULL, NULL},
	};
	for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
		struct np_report *text = advised_fault(f, NP_SYNTH_TEXT, cases[c].fault);
		struct np_report *db = advised_fault(f, NP_SYNTH_DB, cases[c].fault);
		for (size_t k = 0; k < 2; k++)
			if ((finding_of(text, cases[k].code) != NULL) != (k == c))
				fail_msg("%s: %s", cases[c].fault ? cases[c].fault : "healthy",
				         cases[k].code);
		assert_same_report(text, db);
		np_report_free(text);
		np_report_free(db);
	}
}

static void memory_bound_vector_operators_are_told_as_bound(void **state)
{
	struct fixture *f = *state;
	struct np_report *report = advised_fault(f, NP_SYNTH_TEXT, "memory-bound=0");
	const struct np_table *table = table_of(report, "perf_vector");
	assert_non_null(table);
	size_t row = SIZE_MAX;
	for (size_t r = 0; r < np_table_rows(table) && row == SIZE_MAX; r++)
		if (np_str_contains(cell_of(table, r, "op_name")->s, NP_STR("Concat")))
			row = r;
	assert_true(row != SIZE_MAX);
	assert_true(np_str_is(cell_of(table, row, "Type")->s, "set of bound operators"));
	np_report_free(report);
}

static void level0_has_one_note_and_no_advice(void **state)
{
	struct fixture *f = *state;
	struct np_report *report = advised_fault(f, NP_SYNTH_TEXT, "no-metrics=0");
	assert_int_equal(report->findings.n, 0);
	assert_int_equal(report->exit_code, 3);
	assert_true(has_note(report, "Level1"));
	np_report_free(report);
}

/* ── the rest ── */

static void shapes_are_read_with_care(void **state)
{
	(void)state;
	struct np_dims dims = np_dims_of(NP_STR("\"4096,1024;;7\""), 0);
	assert_int_equal(dims.n, 2);
	near(np_dims_elements(&dims), 4194304);
	assert_int_equal(np_dims_of(NP_STR("\"4096,1024;;7\""), 1).n, 0);
	assert_int_equal(np_dims_of(NP_STR("\"4096,1024;;7\""), 2).of[0], 7);
	assert_int_equal(np_dims_of(NP_STR("\"4096,1024;;7\""), 3).n, 0);
	assert_int_equal(np_dims_count(NP_STR("\"4096,1024;;7\"")), 3);
	assert_int_equal(np_dims_count(NP_STR("")), 0);
	assert_int_equal(np_dims_of(NP_STR("N/A"), 0).n, 0);
	assert_int_equal(np_dims_of(NP_STR("-1,5"), 0).n, 0);
	assert_int_equal(np_dims_of(NP_STR("1,1,1,1,1,1,1,1,1,1,1,1,1"), 0).n, 0);
	assert_int_equal(np_dims_of(NP_STR("99999999999999999999"), 0).n, 0);
}

static void long_tables_are_cut_and_say_so(void **state)
{
	(void)state;
	struct advice a;
	advice_init(&a);
	for (int i = 0; i < 1001; i++)
		(void)hand_kernel(&a.h, "Cast", "AI_CPU", 0, 30000 + i, "128", "128");
	advice_ready(&a);
	assert_non_null(advised(&a, "aicpu"));
	assert_int_equal(np_table_rows(advice_table_of(&a, "aicpu")), 1000);
	assert_true(has_note(a.self.report, "1 kernels more"));
	advice_release(&a);
}

static void checkers_say_when_memory_is_out(void **state)
{
	(void)state;
	static const char *const names[] = {"aicpu",         "block_dim", "no_bound",
	                                    "dynamic_shape", "frequency", "perf_cube",
	                                    "perf_vector",   "perf_fa"};
	struct advice a;
	advice_init(&a);
	a.h.capture.chip = (struct np_chip){true, 24, 48, 1800, 0};
	size_t aicpu = hand_kernel(&a.h, "Cast", "AI_CPU", 0, 30000, "128", "128");
	size_t cast = hand_kernel(&a.h, "TransData", "AI_VECTOR_CORE", 0, 30000, "128", "128");
	size_t matmul = hand_kernel(&a.h, "MatMulV3", "AI_CORE", 0, 90000, IN, OUT);
	size_t fa = hand_kernel(&a.h, FA, "MIX_AIC", 0, 90000, FIT, "2,8,256,8");
	struct np_profile *profile = a.h.self.profile;
	profile->kernels.block_num[cast] = 5;
	profile->kernels.op_state[cast] = hand_text(&a.h, "dynamic");
	profile->kernel_shapes.in_dtypes[aicpu] = hand_text(&a.h, "DOUBLE");
	hand_metric(&a.h, cast, "aiv_vec_ratio", 0.1);
	hand_metric(&a.h, matmul, "aic_mac_ratio", 0.1);
	hand_metric(&a.h, fa, "aiv_vec_ratio", 0.1);
	sample(&a, 0, 1000);
	advice_ready(&a);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		assert_checker_survives_no_memory(&a, names[i]);
	advice_release(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_operator_of_20_us_on_the_ai_cpu_is_told),
		cmocka_unit_test(what_other_kernels_hide_is_no_gain),
		cmocka_unit_test(equal_rows_are_told_once),
		cmocka_unit_test(data_types_are_judged_for_every_version),
		cmocka_unit_test(blocks_that_leave_cores_idle_are_told),
		cmocka_unit_test(the_income_is_the_share_of_idle_places),
		cmocka_unit_test(an_operator_without_a_busy_unit_is_told),
		cmocka_unit_test(a_mixed_kernel_may_be_bound_on_either_core),
		cmocka_unit_test(without_pmu_columns_it_says_so),
		cmocka_unit_test(the_longest_operators_are_listed_for_aoe),
		cmocka_unit_test(a_static_operator_or_none_with_a_state_is_no_dynamic_shape),
		cmocka_unit_test(where_nothing_is_compiled_dynamic_shapes_are_fine),
		cmocka_unit_test(five_percent_below_nominal_is_told),
		cmocka_unit_test(the_frequency_of_a_kernel_is_the_mean_over_its_time),
		cmocka_unit_test(matrix_products_are_bound_at_their_thresholds),
		cmocka_unit_test(inner_axes_of_matrix_products_have_to_fit),
		cmocka_unit_test(attention_is_bound_at_its_thresholds),
		cmocka_unit_test(head_dimension_and_sequence_have_to_fit),
		cmocka_unit_test(vector_operators_are_bound_at_their_thresholds),
		cmocka_unit_test_setup_teardown(of_each_stage_the_slowest_rank_is_looked_at, setup,
	                                        teardown),
		cmocka_unit_test_setup_teardown(a_stage_with_more_work_is_not_blamed_on_its_card,
	                                        setup, teardown),
		cmocka_unit_test_setup_teardown(stages_with_different_work_are_not_compared, setup,
	                                        teardown),
		cmocka_unit_test_setup_teardown(
			planted_faults_are_found_in_both_formats_and_only_they, setup, teardown),
		cmocka_unit_test_setup_teardown(memory_bound_vector_operators_are_told_as_bound,
	                                        setup, teardown),
		cmocka_unit_test_setup_teardown(level0_has_one_note_and_no_advice, setup, teardown),
		cmocka_unit_test(shapes_are_read_with_care),
		cmocka_unit_test(long_tables_are_cut_and_say_so),
		cmocka_unit_test(checkers_say_when_memory_is_out),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
