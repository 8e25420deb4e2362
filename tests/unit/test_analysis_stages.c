#include "analysis_set.h"

static void add_work(struct set *f)
{
	add_kernel(f, 1, "m", "MatMul", "AI_CORE", 0, 80);
	add_kernel(f, 1, "v", "Add", "AI_VECTOR_CORE", 100, 15);
	add_kernel(f, 1, "hcom_x", "hcom_x", "COMMUNICATION", 120, 5);
}

static void nothing_names_a_stage_and_a_note_tells_how(void **state)
{
	add_work(*state);
	set_analyze(*state);
	assert_null(find_table(*state, "stages"));
	assert_true(has_note(*state, "--stage NAME=PATTERN"));
	expect_none(*state, "STAGE_DOMINATES");
}

static void patterns_match_types_of_kernels(void **state)
{
	struct set *f = *state;
	static const struct np_opt_pattern stages[] = {{"cube", "Mat*"}, {"comm", "hcom_*"}};
	f->options.stages = stages;
	f->options.n_stages = 2;
	add_work(f);
	set_analyze(f);
	assert_int_equal(np_table_rows(find_table(f, "stages")), 3);
	assert_int_equal(find_cell(f, "stages", "stage", "cube", "total_ns")->i, 80000);
	assert_int_equal(find_cell(f, "stages", "stage", "comm", "comm_ns")->i, 5000);
	assert_int_equal(find_cell(f, "stages", "stage", "(no stage)", "total_ns")->i, 15000);
	const struct np_finding *finding = expect(f, "STAGE_DOMINATES", NP_INFO);
	assert_non_null(strstr(finding->title, "cube is 80.0 %"));
}

static void a_stage_below_its_limit_is_silent(void **state)
{
	struct set *f = *state;
	static const struct np_opt_pattern stage = {"cube", "Mat*"};
	f->options.stages = &stage;
	f->options.n_stages = 1;
	add_work(f);
	add_kernel(f, 1, "v", "Add", "AI_VECTOR_CORE", 200, 30);
	set_analyze(f);
	expect_none(f, "STAGE_DOMINATES");
}

/* ── ranges on the host, by hand ── */

struct hand {
	struct np_capture capture;
	struct np_analyze_options options;
	struct np_analysis self;
	struct set set; /* only its report */
};

/* Four kernels of 10 ns launched at 10, 20, 30 and 40. */
static void hand_open(struct hand *h)
{
	memset(h, 0, sizeof *h);
	h->capture.path = "x";
	h->set.report = np_report_new("analyze");
	struct np_profile *p = np_profile_new();
	h->self = (struct np_analysis){.capture = &h->capture,
	                               .profile = p,
	                               .report = h->set.report,
	                               .options = &h->options,
	                               .rules = &np_default_rules,
	                               .n_rows = 4,
	                               .total_ns = 40};
	h->self.rows = np_calloc(4, sizeof *h->self.rows);
	h->self.class = np_calloc(4, 1);
	h->self.launch = np_calloc(4, sizeof *h->self.launch);
	for (uint32_t i = 0; i < 4; i++) {
		size_t k = np_profile_add(p, kernels), o = np_profile_add(p, host_ops);
		p->kernels.name[k] = np_intern_add(&p->strings, NP_STR("k"));
		p->kernels.type[k] = 0;
		p->kernels.start_ns[k] = 1000 + 10 * (np_ns)i;
		p->kernels.dur_ns[k] = 10;
		p->host_ops.layer[o] = NP_HOST_NODE;
		p->host_ops.name[o] = np_intern_add(&p->strings, NP_STR("launch"));
		p->host_ops.start_ns[o] = 10 + 10 * (np_ns)i;
		p->host_ops.dur_ns[o] = 1;
		h->self.rows[i] = h->self.launch[i] = i;
		h->self.class[i] = NP_CLASS_VECTOR;
	}
}

/* In order of start. */
static void hand_range(struct hand *h, uint8_t layer, const char *name, np_ns start, np_ns end)
{
	struct np_profile *p = h->self.profile;
	size_t o = np_profile_add(p, host_ops);
	p->host_ops.layer[o] = layer;
	p->host_ops.name[o] = np_intern_add(&p->strings, np_str_of(name));
	p->host_ops.start_ns[o] = start;
	p->host_ops.dur_ns[o] = end - start;
}

static void hand_run(struct hand *h)
{
	np_analyze_stages(&h->self);
	assert_false(h->self.oom);
}

static int64_t hand_kernels(const struct hand *h, const char *stage)
{
	return find_cell(&h->set, "stages", "stage", stage, "kernels")->i;
}

static void hand_close(struct hand *h)
{
	np_analysis_release(&h->self);
	np_report_free(h->set.report);
}

static void the_innermost_range_around_the_launch_is_the_stage(void **state)
{
	(void)state;
	struct hand h;
	hand_open(&h);
	hand_range(&h, NP_HOST_MSTX, "outer", 5, 35);
	hand_range(&h, NP_HOST_MSTX, "inner", 15, 25);
	hand_run(&h);
	assert_int_equal(hand_kernels(&h, "outer"), 2);
	assert_int_equal(hand_kernels(&h, "inner"), 1);
	assert_int_equal(hand_kernels(&h, "(no stage)"), 1);
	hand_close(&h);
}

static void ranges_that_overlap_are_cut(void **state)
{
	(void)state;
	struct hand h;
	hand_open(&h);
	hand_range(&h, NP_HOST_MSTX, "a", 5, 25);
	hand_range(&h, NP_HOST_MSTX, "b", 15, 45);
	hand_run(&h);
	assert_int_equal(hand_kernels(&h, "a"), 1);
	assert_int_equal(hand_kernels(&h, "b"), 3);
	hand_close(&h);
}

static void ranges_of_tools_are_no_stages(void **state)
{
	(void)state;
	struct hand h;
	hand_open(&h);
	hand_range(&h, NP_HOST_MSTX, "{\"streamId\": 3}", 5, 45);
	hand_range(&h, NP_HOST_MSTX, "8589934592-MatMul", 6, 44);
	hand_run(&h);
	assert_null(find_table(&h.set, "stages"));
	hand_close(&h);
}

static void presets_know_modules_but_no_python_function(void **state)
{
	(void)state;
	struct hand h;
	hand_open(&h);
	hand_range(&h, NP_HOST_PYTHON, "codecs.py(319): decode", 5, 45);
	hand_range(&h, NP_HOST_PYTHON, "nn.Module: AutoencoderKL_0", 15, 25);
	hand_range(&h, NP_HOST_PYTHON, "nn.Module: LlamaDecoderLayer_3", 26, 29);
	hand_range(&h, NP_HOST_OP, "prefill", 29, 35);
	hand_run(&h);
	assert_int_equal(hand_kernels(&h, "VAE"), 1);
	assert_int_equal(hand_kernels(&h, "prefill"), 1);
	assert_int_equal(hand_kernels(&h, "(no stage)"), 2);
	hand_close(&h);
}

static void patterns_match_ranges_and_win_over_presets(void **state)
{
	(void)state;
	struct hand h;
	static const struct np_opt_pattern stage = {"mine", "pre*"};
	hand_open(&h);
	h.options.stages = &stage;
	h.options.n_stages = 1;
	hand_range(&h, NP_HOST_OP, "prefill", 5, 35);
	hand_run(&h);
	assert_int_equal(hand_kernels(&h, "mine"), 3);
	hand_close(&h);
}

static void without_launches_ranges_name_nothing_and_a_note_says_so(void **state)
{
	(void)state;
	struct hand h;
	hand_open(&h);
	np_free(h.self.launch);
	h.self.launch = NULL;
	hand_range(&h, NP_HOST_MSTX, "outer", 5, 35);
	hand_run(&h);
	assert_null(find_table(&h.set, "stages"));
	assert_true(has_note(&h.set, "nothing connects"));
	hand_close(&h);
}

static void more_ranges_than_stages_go_to_the_rest(void **state)
{
	(void)state;
	struct hand h;
	hand_open(&h);
	for (int i = 0; i < 40; i++) {
		char name[16];
		(void)snprintf(name, sizeof name, "r%d", i);
		hand_range(&h, NP_HOST_MSTX, name, 5 + i, 6 + i);
	}
	hand_run(&h);
	assert_int_equal(hand_kernels(&h, "r5"), 1);
	assert_int_equal(hand_kernels(&h, "(no stage)"), 2);
	hand_close(&h);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_open, set_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(nothing_names_a_stage_and_a_note_tells_how),
		TEST(patterns_match_types_of_kernels),
		TEST(a_stage_below_its_limit_is_silent),
		cmocka_unit_test(the_innermost_range_around_the_launch_is_the_stage),
		cmocka_unit_test(ranges_that_overlap_are_cut),
		cmocka_unit_test(ranges_of_tools_are_no_stages),
		cmocka_unit_test(presets_know_modules_but_no_python_function),
		cmocka_unit_test(patterns_match_ranges_and_win_over_presets),
		cmocka_unit_test(without_launches_ranges_name_nothing_and_a_note_says_so),
		cmocka_unit_test(more_ranges_than_stages_go_to_the_rest),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
