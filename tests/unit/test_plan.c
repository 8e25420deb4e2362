/* plan: limits of schedules, requests, window rates, route decisions. Schedules beside an
 * independent model are in tests/e2e/collect_plan.py. */
#include "unit.h"

#include "collect/plan_schedule.h"
#include "collect/request.h"
#include "collect/route.h"
#include "collect/snippet.h"
#include "collect/window.h"
#include "temp_tree.h"

/* ── schedule ── */

static struct np_schedule schedule_of(const char *wait, const char *warmup, const char *active,
                                      const char *repeat, const char *skip_first)
{
	const char *const words[NP_SCHEDULE_FIELDS] = {wait, warmup, active, repeat, skip_first};
	struct np_schedule schedule;
	bool reset[NP_SCHEDULE_FIELDS];
	assert_int_equal(np_schedule_parse(words, &schedule, reset, NULL), NP_OK);
	return schedule;
}

static void recorded_captures_have_the_steps_that_the_plan_says(void **state)
{
	(void)state;
	static const struct {
		const char *warmup, *skip_first;
		int64_t step;
	} real[] = {{"10", "40", 50}, {"1", "12", 13}}; /* of two public captures */
	for (size_t i = 0; i < sizeof real / sizeof *real; i++) {
		struct np_schedule s =
			schedule_of("0", real[i].warmup, "1", "1", real[i].skip_first);
		struct np_cycle cycle;
		np_schedule_cycle(&s, 1000, 1, &cycle);
		assert_int_equal(cycle.first, real[i].step);
		assert_int_equal(cycle.last, real[i].step);
		assert_int_equal(cycle.fate, NP_CYCLE_COMPLETE);
	}
}

static void skip_warm_active_needs_one_more_only_as_margin(void **state)
{
	(void)state;
	struct np_schedule s = schedule_of("0", "0", "3", "1", "3"); /* decode of the framework */
	struct np_schedule_need need = np_schedule_need(&s);
	assert_int_equal(need.data, 5);
	assert_int_equal(need.clean, 6);
	assert_int_equal(need.advised, 7);
}

static void what_is_no_parameter_is_reset_or_refused(void **state)
{
	(void)state;
	static const char *const odd[NP_SCHEDULE_FIELDS] = {"-1", "1.5", "0", "-7", "2e0", "-3"};
	struct np_schedule s;
	struct np_err err = {0};
	bool reset[NP_SCHEDULE_FIELDS];
	assert_int_equal(np_schedule_parse(odd, &s, reset, &err), NP_OK);
	assert_true(reset[NP_SCHEDULE_WAIT] && reset[NP_SCHEDULE_WARMUP]);
	assert_true(reset[NP_SCHEDULE_ACTIVE] && reset[NP_SCHEDULE_REPEAT]);
	assert_true(reset[NP_SCHEDULE_SKIP_FIRST]); /* 2e0 is a float */
	assert_false(reset[NP_SCHEDULE_SKIP_FIRST_WAIT]);
	assert_int_equal(s.active, 1);
	assert_int_equal(s.skip_first, 0);
	assert_int_equal(s.skip_first_wait, -3); /* any integer, and not 0 */
	static const char *const bad[] = {
		"", "x", "1 ", "10000001", "-1e30", "nan", "99999999999999999999"};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		const char *const words[NP_SCHEDULE_FIELDS] = {NULL, bad[i]};
		assert_int_equal(np_schedule_parse(words, &s, reset, &err), NP_E_USAGE);
		assert_non_null(strstr(err.msg, "warmup"));
	}
}

static void the_largest_schedule_is_worked_out_without_overflow(void **state)
{
	(void)state;
	struct np_schedule s =
		schedule_of("10000000", "10000000", "10000000", "10000000", "1000000000");
	struct np_schedule_end end;
	int64_t last = np_schedule_saved_in(&s, s.repeat);
	assert_int_equal(last, INT64_C(1000000000) + INT64_C(10000000) * 30000000);
	np_schedule_finish(&s, last, &end);
	assert_int_equal(end.state, NP_STEP_NONE);
	assert_int_equal(end.complete, 10000000);
	np_schedule_finish(&s, last - 1, &end);
	assert_int_equal(end.state, NP_STEP_SAVE);
	np_schedule_finish(&s, NP_SCHEDULE_STEPS_MAX, &end);
	assert_int_equal(end.ready, 10000000);
	assert_int_equal(np_schedule_run_end(&s, last), INT64_MAX);
	assert_int_equal(np_schedule_run_end(&s, 0), 1000000000 + 10000000 - 1);
}

static size_t rows_of(const struct np_report *report, const char *id)
{
	for (size_t i = 0; i < report->tables.n; i++)
		if (strcmp(report->tables.v[i]->id, id) == 0)
			return np_table_rows(report->tables.v[i]);
	fail_msg("no table %s", id);
	return 0;
}

static void long_plans_give_bounded_tables(void **state)
{
	(void)state;
	struct np_plan_schedule plan = {
		.words = {[NP_SCHEDULE_WAIT] = "1", [NP_SCHEDULE_ACTIVE] = "1"},
		.has_steps = true,
		.steps = (uint64_t)NP_SCHEDULE_STEPS_MAX};
	for (unsigned width = 0; width < 200; width += 40) {
		struct np_report *report = np_report_new("plan schedule");
		plan.width = width;
		assert_int_equal(np_plan_schedule(&plan, report, NULL), NP_OK);
		assert_int_equal(np_report_ok(report, NULL), NP_OK);
		assert_int_equal(rows_of(report, "schedule"), 10000);
		assert_int_equal(rows_of(report, "picture"), 41);
		assert_int_equal(rows_of(report, "cycles"), 100);
		np_report_free(report);
	}
	struct np_err err = {0};
	struct np_report *report = np_report_new("plan schedule");
	plan.steps++;
	assert_int_equal(np_plan_schedule(&plan, report, &err), NP_E_USAGE);
	np_report_free(report);
}

static void a_plan_survives_every_lack_of_memory(void **state)
{
	(void)state;
	struct np_plan_schedule plan = {.words = {[NP_SCHEDULE_REPEAT] = "-3"}, .has_steps = true};
	for (uint64_t n = 1; n < 60; n++) {
		struct np_report *report = np_report_new("plan schedule");
		assert_non_null(report);
		np_mem_fail_after(n);
		(void)np_plan_schedule(&plan, report, NULL);
		np_mem_fail_after(0);
		np_report_free(report);
	}
}

/* ── request ── */

static void a_call_is_the_request_and_step_of_the_field_guide(void **state)
{
	(void)state;
	struct np_request_place place = np_request_of_call(&(struct np_request_shape){4, 1}, 5);
	assert_int_equal(place.request, 2);
	assert_int_equal(place.step, 2);
}

static void every_call_is_counted_out(void **state)
{
	(void)state;
	for (uint64_t n = 1; n <= 7; n++)
		for (uint64_t f = 1; f <= 2; f++) {
			struct np_request_shape shape = {n, f};
			uint64_t call = 0;
			for (uint64_t request = 1; request <= 5; request++)
				for (uint64_t step = 1; step <= n; step++)
					for (uint64_t forward = 1; forward <= f; forward++) {
						struct np_request_place place =
							np_request_of_call(&shape, call);
						assert_int_equal(place.request, request);
						assert_int_equal(place.step, step);
						assert_int_equal(place.forward, forward);
						assert_int_equal(np_request_call_of(&shape, request,
						                                    step, forward),
						                 call++);
					}
		}
}

static void requests_that_cannot_be_are_refused(void **state)
{
	(void)state;
	static const struct np_plan_request bad[] = {
		{.shape = {0, 1}, .by_call = true},
		{.shape = {4, 0}, .by_call = true},
		{.shape = {4, 3}, .by_call = true},
		{.shape = {4, 1}, .by_call = true, .call = UINT64_MAX},
		{.shape = {4, 1}, .request = 0, .step = 1},
		{.shape = {4, 1}, .request = 1, .step = 5},
		{.shape = {4, 1}, .request = 1, .step = 0},
		{.shape = {UINT64_MAX, 2}, .request = 1, .step = 1},
		{.shape = {4, 1}, .request = UINT64_MAX, .step = 1},
	};
	struct np_report *report = np_report_new("plan request");
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_int_equal(np_plan_request(&bad[i], report, NULL), NP_E_USAGE);
	assert_int_equal(report->tables.n, 0);
	np_report_free(report);
}

/* ── window ── */

static void sizes_grow_with_level_and_stacks(void **state)
{
	(void)state;
	for (int db = 0; db < 2; db++)
		for (int level = 0; level < 3; level++) {
			struct np_size_range with = np_window_per_kernel(level, true, db);
			struct np_size_range without = np_window_per_kernel(level, false, db);
			assert_true(without.low < with.low && without.high <= with.high);
			assert_true(with.low <= with.high);
		}
	/* the observation that no rate may contradict: 64 ranks, 5 s, 25.1 GiB */
	struct np_size_range rate = np_window_per_second();
	double seen = 25.1 * 1024 * 1024 * 1024 / 64 / 5;
	assert_true(rate.low < seen && seen < rate.high);
}

static const struct np_finding *find(const struct np_report *report, const char *code)
{
	for (size_t i = 0; i < report->findings.n; i++)
		if (strcmp(report->findings.v[i]->code, code) == 0)
			return report->findings.v[i];
	return NULL;
}

static void a_disk_is_judged_by_both_ends(void **state)
{
	(void)state;
	char root[TREE_PATH];
	tree_new(root);
	static const struct {
		uint64_t active, ranks;
		int exit_code;
	} cases[] = {{1, 1, 0}, {1000000000, 1000000000, 1}};
	for (size_t i = 0; i < 2; i++) {
		struct np_report *report = np_report_new("plan window");
		struct np_plan_window plan = {.active = cases[i].active,
		                              .ranks = cases[i].ranks,
		                              .level = 1,
		                              .step_ms = 1,
		                              .disk = root};
		assert_int_equal(np_plan_window(&plan, report, NULL), NP_OK);
		assert_int_equal(report->exit_code, cases[i].exit_code);
		assert_int_equal(find(report, "DISK_SHORT") != NULL, cases[i].exit_code);
		np_report_free(report);
	}
	struct np_report *report = np_report_new("plan window");
	struct np_plan_window plan = {
		.active = 1, .ranks = 1, .level = 1, .disk = "/nonexistent/dir"};
	assert_int_equal(np_plan_window(&plan, report, NULL), NP_E_NOTFOUND);
	np_report_free(report);
	tree_remove(root);
}

static void a_long_window_is_told_with_a_shorter_one(void **state)
{
	(void)state;
	struct np_report *report = np_report_new("plan window");
	struct np_plan_window plan = {.active = 100, .ranks = 1, .level = 1, .step_ms = 100};
	assert_int_equal(np_plan_window(&plan, report, NULL), NP_OK);
	const struct np_finding *finding = find(report, "CAPTURE_LARGE");
	assert_non_null(finding); /* 10 s */
	assert_non_null(strstr(finding->command, "--active 50 "));
	np_report_free(report);
}

/* ── route ── */

static enum np_route_path path_of(const char *file, const char *text, enum np_route_kind kind,
                                  uint64_t line)
{
	struct np_route route = {0};
	np_arena_init(&route.arena);
	assert_int_equal(np_route_scan(&route, file, np_str_of(text), NULL), NP_OK);
	bool seen = false;
	for (size_t i = 0; i < route.hits.n; i++)
		seen |= route.hits.v[i].kind == kind && route.hits.v[i].line == line;
	if (kind != NP_ROUTE_KINDS && !seen)
		fail_msg("%s: line %d is no %s", file, (int)line, np_route_kind_name(kind));
	if (kind == NP_ROUTE_KINDS)
		assert_int_equal(route.hits.n, 0);
	enum np_route_path path = np_route_choose(&route);
	np_route_release(&route);
	return path;
}

#define LOOP                                           \
	"with torch_npu.profiler.profile() as prof:\n" \
	"    for batch in data:\n"                     \
	"        work(batch)\n"                        \
	"        prof.step()\n"

static void a_profiler_that_is_stepped_in_a_loop_is_path_a(void **state)
{
	(void)state;
	assert_int_equal(path_of("run.py", LOOP, NP_ROUTE_LOOP, 4), NP_ROUTE_A_OTHER);
	assert_int_equal(path_of("tests/run.py", LOOP, NP_ROUTE_LOOP, 4), NP_ROUTE_B);
	assert_int_equal(path_of("run.py",
	                         "import torch_npu.profiler\n"
	                         "while True:\n\n# work\n\tself.my_profiler.step( )\n",
	                         NP_ROUTE_LOOP, 5),
	                 NP_ROUTE_A_OTHER);
	assert_int_equal(path_of("run.py",
	                         "for i in range(3):\n    with torch_npu.profiler.profile():\n"
	                         "        work()\n",
	                         NP_ROUTE_LOOP, 2),
	                 NP_ROUTE_A_OTHER);
}

static void single_uses_are_path_b(void **state)
{
	(void)state;
	assert_int_equal(path_of("a.py",
	                         "for x in y:\n    pass\nprof = torch_npu.profiler.profile()\n"
	                         "prof.step()\n",
	                         NP_ROUTE_STEP, 4),
	                 NP_ROUTE_B);
	assert_int_equal(path_of("a.py", "from torch_npu.profiler import *\n", NP_ROUTE_API, 1),
	                 NP_ROUTE_B);
	assert_int_equal(path_of("a.py", "for i in x:\n    optimizer.step()\n    lr.step()\n",
	                         NP_ROUTE_KINDS, 0),
	                 NP_ROUTE_B);
	assert_int_equal(path_of("a.py",
	                         "for i in x:\n    torch.profiler.profile()\n    prof.step()\n",
	                         NP_ROUTE_TORCH, 2),
	                 NP_ROUTE_B);
	assert_int_equal(path_of("a.py", "p(tensorboard_trace_handler('x'))\n", NP_ROUTE_TORCH, 1),
	                 NP_ROUTE_B);
	assert_int_equal(path_of("a.py", "import torch_npu\np(tensorboard_trace_handler('x'))\n",
	                         NP_ROUTE_API, 2),
	                 NP_ROUTE_B);
}

static void a_step_behind_a_switch_is_path_a(void **state)
{
	(void)state;
	assert_int_equal(path_of("a.py",
	                         "import torch_npu.profiler\n"
	                         "p.add_argument('--profile', action='store_true')\n"
	                         "def one(self):\n    self.prof.step()\n",
	                         NP_ROUTE_SWITCH, 2),
	                 NP_ROUTE_A_OTHER);
}

static void the_framework_is_known_by_its_files(void **state)
{
	(void)state;
	assert_int_equal(path_of("executor/utils/profiler_context.py", "", NP_ROUTE_CONTEXT, 0),
	                 NP_ROUTE_A_RECIPES);
	assert_int_equal(path_of("x/executor/utils/profiler_context.py", "", NP_ROUTE_CONTEXT, 0),
	                 NP_ROUTE_A_RECIPES);
	assert_int_equal(path_of("my_executor/utils/profiler_context.py", "", NP_ROUTE_KINDS, 0),
	                 NP_ROUTE_B);
	assert_int_equal(
		path_of("models/m/a.yaml", "x:\n  enable_profiler: False\n", NP_ROUTE_RECIPES, 2),
		NP_ROUTE_A_RECIPES);
	assert_int_equal(path_of("executor/a.py", "if c.enable_profiler:\n", NP_ROUTE_RECIPES, 1),
	                 NP_ROUTE_A_RECIPES);
	assert_int_equal(path_of("lib/a.yaml", "enable_profiler: True\n", NP_ROUTE_KEY, 1),
	                 NP_ROUTE_B);
}

static void comments_and_strings_are_no_code(void **state)
{
	(void)state;
	assert_int_equal(path_of("executor/a.py", "# enable_profiler\n", NP_ROUTE_COMMENT, 1),
	                 NP_ROUTE_B);
	assert_int_equal(path_of("a.py", "x = 1  # torch_npu.profiler\n", NP_ROUTE_KINDS, 0),
	                 NP_ROUTE_B);
	assert_int_equal(path_of("a.py", "'''\n" LOOP "'''\n", NP_ROUTE_KINDS, 0), NP_ROUTE_B);
	assert_int_equal(path_of("a.py", "\"\"\"one line\"\"\"\n" LOOP, NP_ROUTE_LOOP, 5),
	                 NP_ROUTE_A_OTHER);
	assert_int_equal(path_of("a.py", "s = '#'; torch_npu.profiler\n", NP_ROUTE_API, 1),
	                 NP_ROUTE_B);
	assert_int_equal(path_of("models/a.yml", "# enable_profiler: True\n", NP_ROUTE_COMMENT, 1),
	                 NP_ROUTE_B);
	assert_int_equal(path_of("a.json", "{\"profile\" : true}", NP_ROUTE_KEY, 1), NP_ROUTE_B);
	assert_int_equal(path_of("a.toml", "profiles = 1\nreprofile = 2\n", NP_ROUTE_KINDS, 0),
	                 NP_ROUTE_B);
}

static void a_tree_is_walked_without_its_traps(void **state)
{
	(void)state;
	char root[TREE_PATH];
	struct np_route route;
	tree_new(root);
	tree_put(root, "推理/循环.py",
	         "import torch_npu.profiler\nfor i in 数据:\n    prof.step()\n");
	tree_put(root, ".git/hook.py", LOOP);
	tree_put(root, "b/__pycache__/x.py", LOOP);
	tree_put(root, "b/notes.txt", LOOP);
	tree_put(root, "b/empty.py", "");
	tree_link(root, "b/up", "..");
	tree_link(root, "b/link.py", "../推理/循环.py");
	FILE *file = fopen(tree_path(root, "binary.py"), "wb");
	assert_non_null(file);
	assert_int_equal(fwrite("torch_npu.profiler\0x", 1, 20, file), 20);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(truncate((tree_put(root, "large.py", "x"), tree_path(root, "large.py")),
	                          NP_ROUTE_FILE_MAX + 1),
	                 0);
	assert_int_equal(np_route_walk(&route, root, NULL), NP_OK);
	assert_int_equal(route.hits.n, 2);
	assert_string_equal(route.hits.v[0].file, "推理/循环.py");
	assert_int_equal(route.links, 2);
	assert_int_equal(route.binary, 1);
	assert_int_equal(route.large, 1);
	assert_int_equal(np_route_choose(&route), NP_ROUTE_A_OTHER);
	np_route_release(&route);
	tree_remove(root);
}

static void a_large_file_leaves_path_b_open(void **state)
{
	(void)state;
	char root[TREE_PATH];
	tree_new(root);
	tree_put(root, "large.py", "x");
	assert_int_equal(truncate(tree_path(root, "large.py"), NP_ROUTE_FILE_MAX + 1), 0);
	struct np_report *report = np_report_new("plan route");
	assert_int_equal(np_plan_route(root, report, NULL), NP_OK);
	assert_int_equal(report->exit_code, 3);
	assert_non_null(find(report, "ROUTE_PARTIAL"));
	assert_non_null(find(report, "ROUTE_B"));
	np_report_free(report);
	tree_remove(root);
}

static void a_walk_needs_a_directory(void **state)
{
	(void)state;
	char root[TREE_PATH];
	struct np_route route;
	tree_new(root);
	tree_put(root, "x.py", "");
	assert_int_equal(np_route_walk(&route, tree_path(root, "x.py"), NULL), NP_E_USAGE);
	np_route_release(&route);
	assert_int_equal(np_route_walk(&route, tree_path(root, "none"), NULL), NP_E_NOTFOUND);
	np_route_release(&route);
	tree_remove(root);
}

/* ── snippet ── */

static void a_list_of_ranks_is_sorted_and_once(void **state)
{
	(void)state;
	struct np_snippet snippet;
	struct np_snippet_words words = {.target = "dynamic", .rank_list = "8, 2-4,3,0"};
	static const uint32_t expected[] = {0, 2, 3, 4, 8};
	assert_int_equal(np_snippet_choose(&words, &snippet, NULL), NP_OK);
	assert_int_equal(snippet.ranks.n, 5);
	assert_memory_equal(snippet.ranks.v, expected, sizeof expected);
	np_snippet_release(&snippet);
	words.rank_list = "0-65535,0-65535";
	assert_int_equal(np_snippet_choose(&words, &snippet, NULL), NP_E_USAGE);
	np_snippet_release(&snippet);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(recorded_captures_have_the_steps_that_the_plan_says),
		cmocka_unit_test(skip_warm_active_needs_one_more_only_as_margin),
		cmocka_unit_test(what_is_no_parameter_is_reset_or_refused),
		cmocka_unit_test(the_largest_schedule_is_worked_out_without_overflow),
		cmocka_unit_test(long_plans_give_bounded_tables),
		cmocka_unit_test(a_plan_survives_every_lack_of_memory),
		cmocka_unit_test(a_call_is_the_request_and_step_of_the_field_guide),
		cmocka_unit_test(every_call_is_counted_out),
		cmocka_unit_test(requests_that_cannot_be_are_refused),
		cmocka_unit_test(sizes_grow_with_level_and_stacks),
		cmocka_unit_test(a_disk_is_judged_by_both_ends),
		cmocka_unit_test(a_long_window_is_told_with_a_shorter_one),
		cmocka_unit_test(a_profiler_that_is_stepped_in_a_loop_is_path_a),
		cmocka_unit_test(single_uses_are_path_b),
		cmocka_unit_test(a_step_behind_a_switch_is_path_a),
		cmocka_unit_test(the_framework_is_known_by_its_files),
		cmocka_unit_test(comments_and_strings_are_no_code),
		cmocka_unit_test(a_tree_is_walked_without_its_traps),
		cmocka_unit_test(a_large_file_leaves_path_b_open),
		cmocka_unit_test(a_walk_needs_a_directory),
		cmocka_unit_test(a_list_of_ranks_is_sorted_and_once),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
