/* collect: what is kept of a leg, what a host tells of a run, and the words of a command. */
#include "collect/collect_internal.h"
#include "unit.h"

static const struct arm no_arm;

static void begin(struct leg *leg)
{
	*leg = (struct leg){.arm = &no_arm,
	                    .host = "node1",
	                    .run_exit = NP_NO_EXIT,
	                    .command_exit = NP_NO_EXIT};
	np_arena_init(&leg->arena);
	for (int i = 0; i < N_STAGES; i++)
		leg->stages[i].detail = "";
}

static enum np_status parse(struct leg *leg, const char *text)
{
	struct np_input *input = NULL;
	struct np_err err;
	assert_int_equal(np_input_open_mem(np_str_of(text), "state", 0, &input, &err), NP_OK);
	enum np_status status = collect_state_parse(leg, input, &err);
	np_input_close(input);
	return status;
}

static void state_comes_back_as_it_was(void **state)
{
	(void)state;
	struct leg leg, again;
	struct np_buf json = {0}, other = {0};
	begin(&leg);
	begin(&again);
	leg.workspace = "/w \"x\"";
	leg.npuprof = "/n";
	leg.cwd = "/w/tree";
	leg.devices = "0,1";
	leg.job = "/w/j";
	leg.run_dir = "run_1";
	leg.gate_profile = "cluster";
	leg.launched = leg.run_over = leg.exported = true;
	leg.run_exit = 3;
	leg.command_exit = 137;
	leg.run_verdict = NP_VERDICT_UNKNOWN;
	leg.stages[STAGE_RUN] = (struct stage_result){NP_VERDICT_UNKNOWN, false, "d\n'", 7};
	leg.stages[STAGE_PULL] = (struct stage_result){NP_VERDICT_FAIL, true, "", 0};
	collect_state_json(&leg, &json);
	assert_int_equal(parse(&again, json.ptr), NP_OK);
	collect_state_json(&again, &other);
	assert_string_equal(json.ptr, other.ptr);
	assert_true(again.stages[STAGE_PULL].environment);
	assert_int_equal(again.command_exit, 137);
	np_buf_release(&json);
	np_buf_release(&other);
	np_arena_release(&leg.arena);
	np_arena_release(&again.arena);
}

static void a_state_that_is_not_whole(void **state)
{
	(void)state;
	static const char *const bad[] = {
		"",
		"[]",
		"{}",
		"{\"version\": 2}",
		"{\"version\": 1,}",
		"{\"version\": 1, \"launched\": true}",
		"{\"version\": 1, \"launched\": true, \"job\": \"/j\", \"cwd\": \"/c\"}",
	};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct leg leg;
		begin(&leg);
		assert_int_not_equal(parse(&leg, bad[i]), NP_OK);
		np_arena_release(&leg.arena);
	}
}

static void what_a_host_tells(void **state)
{
	(void)state;
	struct far far;
	assert_true(collect_far_parse(NP_STR("runs - 120 3\nstep\n"), &far));
	assert_int_equal(far.state, FAR_RUNS);
	assert_int_equal(far.status, NP_NO_EXIT);
	assert_int_equal(far.bytes, 120);
	assert_int_equal(far.lines, 3);
	assert_true(np_str_is(far.log, "step\n"));
	assert_true(collect_far_parse(NP_STR("ended 137 0 0\n"), &far));
	assert_int_equal(far.state, FAR_ENDED);
	assert_int_equal(far.status, 137);
	assert_true(collect_far_parse(NP_STR("gone - 5 1"), &far));
	assert_int_equal(far.state, FAR_GONE);
	static const char *const bad[] = {"",           "\n",          "runs",
	                                  "runs -",     "runs - x 1",  "runs - 1",
	                                  "Runs - 1 1", "runs - -1 1", "hello"};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_false(collect_far_parse(np_str_of(bad[i]), &far));
}

static void words_of_a_command(void **state)
{
	(void)state;
	static const char *const command[] = {
		"run", "{host}:{index}", "{options}", "{n}{other}", "{master", "{arm}", NULL};
	static const char *const words[] = {"--a", "b {host}", NULL};
	const struct arm arm = {.name = "with", .words = words};
	const struct np_collect_options options = {.command = command};
	struct collect all = {.options = &options};
	struct leg leg;
	begin(&leg);
	np_hosts_init(&all.hosts);
	assert_int_equal(np_hosts_parse(&all.hosts, NP_STR("n1,u@n2:22"), "H", NULL), NP_OK);
	leg.all = &all;
	leg.arm = &arm;
	leg.index = 1;
	const char *const *out = collect_command(&leg);
	static const char *const expected[] = {"run",      "n2:1",    "--a", "b {host}",
	                                       "2{other}", "{master", "with"};
	for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
		assert_string_equal(out[i], expected[i]);
	assert_null(out[sizeof expected / sizeof *expected]);
	np_hosts_release(&all.hosts);
	np_arena_release(&leg.arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(state_comes_back_as_it_was),
		cmocka_unit_test(a_state_that_is_not_whole),
		cmocka_unit_test(what_a_host_tells),
		cmocka_unit_test(words_of_a_command),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
