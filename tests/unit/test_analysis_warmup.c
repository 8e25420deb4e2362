#include "analysis_set.h"

/* `n` steps of ten kernels, 100 us each; step `odd` takes `factor` times as long. */
static void add_steps(struct set *f, int n, int odd, int factor)
{
	int64_t at = 0;
	for (int s = 1; s <= n; s++)
		for (int k = 0; k < 10; k++) {
			int64_t dur = s == odd ? 100 * factor : 100;
			add_kernel(f, s, "aclnnAdd", "Add", "AI_VECTOR_CORE", at, dur);
			at += dur + 5;
		}
}

static void steady_steps_give_no_finding(void **state)
{
	add_steps(*state, 5, 0, 1);
	set_analyze(*state);
	expect_healthy(*state);
	assert_false(has_note(*state, "too few"));
}

static void a_long_first_step_is_warm_up(void **state)
{
	add_steps(*state, 5, 1, 2);
	set_analyze(*state);
	const struct np_finding *finding = expect(*state, "WARMUP_NOT_STRIPPED", NP_ERROR);
	/* 2045 us against 1045 us: one step's kernels and its nine pauses */
	assert_true(fabs(finding->impact_us - 1000) < 1);
	assert_non_null(strstr(finding->command, "--step 2"));
	expect_none(*state, "STEP_UNSTEADY"); /* not told twice */
}

static void warm_up_below_the_limit_is_silent(void **state)
{
	struct set *f = *state;
	struct np_rules rules = np_default_rules;
	add_steps(f, 5, 1, 2);
	rules.warmup_ratio = 2;
	f->options.rules = &rules;
	set_analyze(f);
	expect_none(f, "WARMUP_NOT_STRIPPED");
	expect(f, "STEP_UNSTEADY", NP_WARNING);
}

static void two_steps_give_a_note_and_no_verdict(void **state)
{
	add_steps(*state, 2, 1, 4);
	set_analyze(*state);
	expect_healthy(*state);
	assert_true(has_note(*state, "2 steps: too few to judge warm-up"));
}

static void kernels_without_steps_give_a_note(void **state)
{
	add_kernel(*state, -1, "aclnnAdd", "Add", "AI_VECTOR_CORE", 0, 10);
	set_analyze(*state);
	expect_healthy(*state);
	assert_true(has_note(*state, "no steps in this capture"));
}

static void a_later_long_step_is_unsteady(void **state)
{
	add_steps(*state, 5, 3, 2);
	set_analyze(*state);
	const struct np_finding *finding = expect(*state, "STEP_UNSTEADY", NP_WARNING);
	assert_non_null(strstr(finding->evidence.v[0].rows, "3 (+96 %)"));
	expect_none(*state, "WARMUP_NOT_STRIPPED");
}

static void a_kernel_that_compiles_in_the_first_step_is_warm_up(void **state)
{
	add_steps(*state, 4, 0, 1);
	add_kernel(*state, 1, "JitCompile_op", "Add", "AI_VECTOR_CORE", 3, 1);
	set_analyze(*state);
	const struct np_finding *finding = expect(*state, "WARMUP_NOT_STRIPPED", NP_ERROR);
	assert_int_equal(finding->evidence.n, 2);
	expect_none(*state, "RECOMPILE_IN_WINDOW");
}

static void a_kernel_that_compiles_later_is_a_recompilation(void **state)
{
	add_steps(*state, 4, 0, 1);
	add_kernel(*state, 3, "op_compile", "Add", "AI_VECTOR_CORE", 2300, 1);
	set_analyze(*state);
	expect(*state, "RECOMPILE_IN_WINDOW", NP_ERROR);
	expect_none(*state, "WARMUP_NOT_STRIPPED");
}

static void what_only_looks_like_compiling_is_silent(void **state)
{
	add_steps(*state, 4, 0, 1);
	add_kernel(*state, 2, "AddJitter", "Add", "AI_VECTOR_CORE", 1300, 1);
	add_kernel(*state, 2, "CompiledFunction", "Add", "AI_VECTOR_CORE", 1400, 1);
	add_host(*state, "AscendCL@aclopCompileAndExecute", 1300, 2000);
	add_host(*state, "Torch-Compiled Region: 0/0", 0, 50000);
	set_analyze(*state);
	expect_healthy(*state);
}

static void a_long_compile_call_on_the_host_is_told(void **state)
{
	add_steps(*state, 4, 0, 1);
	add_host(*state, "AscendCL@aclopCompileAndExecute", 1300, 12000);
	set_analyze(*state);
	const struct np_finding *finding = expect(*state, "RECOMPILE_IN_WINDOW", NP_ERROR);
	assert_true(fabs(finding->impact_us - 12000) < 1e-6);
	assert_non_null(strstr(finding->evidence.v[0].file, "trace_view.json"));
}

static void one_giant_pause_looks_like_a_recompilation(void **state)
{
	add_steps(*state, 4, 0, 1);
	add_kernel(*state, 4, "aclnnAdd", "Add", "AI_VECTOR_CORE", 60000, 100);
	set_analyze(*state);
	const struct np_finding *finding = expect(*state, "RECOMPILE_IN_WINDOW", NP_ERROR);
	/* from the end of the 40 kernels at 40 * 105 - 5 us */
	assert_true(fabs(finding->impact_us - (60000 - 4195)) < 1e-6);
}

static void partial_steps_at_both_ends_are_told(void **state)
{
	add_kernel(*state, 0, "aclnnAdd", "Add", "AI_VECTOR_CORE", -200, 100);
	add_steps(*state, 4, 0, 1);
	add_kernel(*state, 5, "aclnnAdd", "Add", "AI_VECTOR_CORE", 4300, 100);
	set_analyze(*state);
	size_t n = 0;
	struct set *f = *state;
	for (size_t i = 0; i < f->report->findings.n; i++)
		n += strcmp(f->report->findings.v[i]->code, "STEP_PARTIAL") == 0;
	assert_int_equal(n, 2);
	expect(f, "STEP_PARTIAL", NP_WARNING);
	expect_none(f, "STEP_UNSTEADY");
}

static void steps_of_the_host_without_kernels_are_told(void **state)
{
	add_steps(*state, 4, 0, 1);
	for (int s = 1; s <= 5; s++) {
		char name[32];
		(void)snprintf(name, sizeof name, "ProfilerStep#%d", s);
		add_host(*state, name, (s - 1) * 1050, 1040);
	}
	set_analyze(*state);
	const struct np_finding *finding = expect(*state, "STEPS_WITHOUT_KERNELS", NP_WARNING);
	assert_non_null(strstr(finding->title, "1 of 5"));
	assert_non_null(strstr(finding->evidence.v[0].rows, "ProfilerStep#5"));
}

static void a_chosen_step_is_not_judged(void **state)
{
	struct set *f = *state;
	f->options.has_step = true;
	f->options.step = 1;
	add_steps(f, 5, 1, 3);
	set_analyze(f);
	expect_healthy(f);
	assert_true(has_note(f, "one chosen step"));
}

static void healthy_synthetic_runs_of_all_sizes_are_silent(void **state)
{
	static const struct {
		unsigned formats;
		uint32_t ranks, steps, layers;
	} sizes[] = {
		{NP_SYNTH_TEXT, 1, 2, 4}, {NP_SYNTH_TEXT, 2, 6, 4}, {NP_SYNTH_DB, 2, 6, 4},
		{NP_SYNTH_TEXT, 4, 3, 1}, {NP_SYNTH_DB, 16, 4, 8},
	};
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		set_analyze_synth(*state, sizes[i].formats, sizes[i].ranks, sizes[i].steps,
		                  sizes[i].layers, NULL);
		expect_healthy(*state);
		tree_remove(tree_path(((struct set *)*state)->root, "synth"));
	}
}

static void planted_warm_up_is_found_in_text_and_db(void **state)
{
	set_analyze_synth(*state, NP_SYNTH_TEXT, 2, 4, 4, "warmup-in-window");
	expect(*state, "WARMUP_NOT_STRIPPED", NP_ERROR);
	tree_remove(tree_path(((struct set *)*state)->root, "synth"));
	set_analyze_synth(*state, NP_SYNTH_DB, 2, 4, 4, "warmup-in-window");
	expect(*state, "WARMUP_NOT_STRIPPED", NP_ERROR);
}

/* Allocations fail from the n-th on: an error or the whole result, nothing else. */
static void an_allocation_that_fails_is_an_error(void **state)
{
	struct set *f = *state;
	add_steps(f, 4, 1, 3);
	add_kernel(f, 2, "hcom_allReduce__1_0_1", "hcom_allReduce_", "COMMUNICATION", 3500, 900);
	static const struct np_opt_pattern stage = {"all", "*"};
	f->options.stages = &stage;
	f->options.n_stages = 1;
	set_analyze(f);
	const struct np_capture *capture = f->all->captures.v[0];
	size_t findings = f->report->findings.n;
	enum np_status status = NP_E_NOMEM;
	for (uint64_t n = 1; status != NP_OK; n++) {
		assert_true(n < 100000);
		np_report_free(f->report);
		f->report = np_report_new("analyze");
		np_mem_fail_after(n);
		status = np_analyze(capture, &f->options, f->report, &f->err);
		np_mem_fail_after(0);
		assert_true(status == NP_OK || status == NP_E_NOMEM);
	}
	assert_int_equal(f->report->findings.n, findings);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_open, set_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(steady_steps_give_no_finding),
		TEST(a_long_first_step_is_warm_up),
		TEST(warm_up_below_the_limit_is_silent),
		TEST(two_steps_give_a_note_and_no_verdict),
		TEST(kernels_without_steps_give_a_note),
		TEST(a_later_long_step_is_unsteady),
		TEST(a_kernel_that_compiles_in_the_first_step_is_warm_up),
		TEST(a_kernel_that_compiles_later_is_a_recompilation),
		TEST(what_only_looks_like_compiling_is_silent),
		TEST(a_long_compile_call_on_the_host_is_told),
		TEST(one_giant_pause_looks_like_a_recompilation),
		TEST(partial_steps_at_both_ends_are_told),
		TEST(steps_of_the_host_without_kernels_are_told),
		TEST(a_chosen_step_is_not_judged),
		TEST(healthy_synthetic_runs_of_all_sizes_are_silent),
		TEST(planted_warm_up_is_found_in_text_and_db),
		TEST(an_allocation_that_fails_is_an_error),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
