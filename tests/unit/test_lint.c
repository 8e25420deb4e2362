/* The linter: each finding fires where it should and is silent where it should be. */
#include "capture/lint.h"

#include <sqlite3.h>

#include "capture/describe.h"
#include "synth_set.h"

static char root[TREE_PATH];
static struct np_captures *all;
static struct np_report *report;

static int setup(void **state)
{
	(void)state;
	tree_new(root);
	return 0;
}

static void release(void)
{
	np_report_free(report);
	np_captures_free(all);
	report = NULL;
	all = NULL;
}

static int teardown(void **state)
{
	(void)state;
	release();
	tree_remove(root);
	return 0;
}

static size_t lint(const char *path)
{
	struct np_summary *sums = NULL;
	release();
	report = np_report_new("info");
	assert_non_null(report);
	assert_int_equal(np_discover(path, &all, NULL), NP_OK);
	assert_int_equal(np_summarize(all, NP_KERNELS | NP_STEP_TRACE, 1, NULL, &sums, NULL),
	                 NP_OK);
	size_t errors = np_lint(all, sums, report);
	np_lint_problems(all, report);
	np_lint_diags(sums, all->captures.n, report);
	np_summaries_free(sums, all->captures.n);
	return errors;
}

static const struct np_finding *find(const char *code)
{
	for (size_t i = 0; i < report->findings.n; i++)
		if (strcmp(report->findings.v[i]->code, code) == 0)
			return report->findings.v[i];
	return NULL;
}

static const struct np_finding *found(const char *code, enum np_severity severity)
{
	const struct np_finding *finding = find(code);
	if (!finding)
		fail_msg("no finding %s", code);
	assert_int_equal(finding->severity, severity);
	return finding;
}

/* Synth with faults, linted; the fault's set lies below `root`. */
static void lint_synth(unsigned formats, uint32_t ranks, const char *faults)
{
	static unsigned count;
	char dir[TREE_PATH + 32];
	(void)snprintf(dir, sizeof dir, "%s/s%u", root, ++count);
	synth_set(dir, formats, ranks, 1, faults);
	(void)lint(dir);
}

static void silent(const char *code)
{
	if (find(code))
		fail_msg("%s: %s", code, find(code)->title);
}

static void a_set_without_faults_is_silent(void **state)
{
	(void)state;
	lint_synth(NP_SYNTH_TEXT, 4, "");
	assert_int_equal(report->findings.n, 0);
	lint_synth(NP_SYNTH_DB, 4, "");
	assert_int_equal(report->findings.n, 0);
	lint_synth(NP_SYNTH_MSPROF, 2, "");
	assert_int_equal(report->findings.n, 0);
}

static void each_planted_fault_is_found(void **state)
{
	(void)state;
	static const struct {
		const char *fault, *code;
		enum np_severity severity;
		unsigned formats;
	} cases[] = {
		{"duplicate-rank=1", "RANK_DUP", NP_ERROR, NP_SYNTH_TEXT},
		{"rank-unknown", "RANK_UNKNOWN", NP_WARNING, NP_SYNTH_TEXT},
		{"missing-rank=2", "RANK_MISSING", NP_ERROR, NP_SYNTH_TEXT},
		{"missing-rank=2", "RANK_MISSING", NP_ERROR, NP_SYNTH_DB},
		{"mixed-batch", "BATCH_MIXED", NP_ERROR, NP_SYNTH_TEXT},
		{"mixed-format", "TYPE_MIXED", NP_WARNING, NP_SYNTH_TEXT},
		{"mixed-format", "TYPE_MIXED", NP_WARNING, NP_SYNTH_DB},
		{"span-mismatch=1", "SPAN_MISMATCH", NP_WARNING, NP_SYNTH_TEXT},
		{"span-mismatch=1", "SPAN_MISMATCH", NP_WARNING, NP_SYNTH_DB},
		{"idle-rank=3", "IDLE_RANK", NP_WARNING, NP_SYNTH_TEXT},
		{"idle-rank=3", "IDLE_RANK", NP_WARNING, NP_SYNTH_DB},
		{"no-metrics=1", "CONFIG_MIXED", NP_WARNING, NP_SYNTH_TEXT},
		{"raw-only=1", "RAW_ONLY", NP_ERROR, NP_SYNTH_TEXT},
		{"empty-dir=1", "OUTPUT_EMPTY", NP_ERROR, NP_SYNTH_TEXT},
		{"negative-duration=1", "NEGATIVE_DURATION", NP_WARNING, NP_SYNTH_TEXT},
		{"ragged-rows=1", "RAGGED_ROWS", NP_WARNING, NP_SYNTH_TEXT},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		lint_synth(cases[i].formats, 4, cases[i].fault);
		const struct np_finding *finding = find(cases[i].code);
		if (!finding || finding->severity != cases[i].severity)
			fail_msg("%s should give %s", cases[i].fault, cases[i].code);
		assert_true(finding->evidence.n > 0 || strcmp(cases[i].code, "RANK_MISSING") == 0);
	}
}

/* ── ranks ── */

static void a_duplicate_names_both_places(void **state)
{
	(void)state;
	tree_torch(root, "a_1_20250101000000000_ascend_pt", 0);
	tree_torch(root, "b_2_20250101000000000_ascend_pt", 0);
	tree_torch(root, "c_3_20250101000000000_ascend_pt", 1);
	assert_true(lint(root) > 0);
	const struct np_finding *finding = found("RANK_DUP", NP_ERROR);
	assert_int_equal(finding->evidence.n, 2);
	assert_non_null(strstr(finding->title, "rank 0 is there 2 times"));
	assert_non_null(finding->command);
	silent("RANK_MISSING");
	silent("BATCH_MIXED");
}

static void one_capture_alone_may_lack_its_rank(void **state)
{
	(void)state;
	tree_torch(root, "a_ascend_pt", -1);
	assert_int_equal(lint(root), 0);
	(void)found("RANK_UNKNOWN", NP_INFO);
	tree_torch(root, "b_ascend_pt", 1);
	assert_int_equal(lint(root), 0);
	(void)found("RANK_UNKNOWN", NP_WARNING);
}

static void ranks_below_the_greatest_are_missed_even_if_no_world_is_recorded(void **state)
{
	(void)state;
	tree_torch(root, "a_ascend_pt", 0);
	tree_torch(root, "d_ascend_pt", 3);
	assert_int_equal(lint(root), 0);
	const struct np_finding *finding = found("RANK_MISSING", NP_WARNING);
	assert_non_null(strstr(finding->title, "2 of 4 ranks"));
	assert_non_null(strstr(finding->title, ": 1, 2"));
	/* one rank alone says nothing about the others */
	tree_torch(root, "alone/d_ascend_pt", 3);
	assert_int_equal(lint(tree_path(root, "alone")), 0);
	silent("RANK_MISSING");
}

static void who_does_not_say_its_rank_may_be_the_missing_one(void **state)
{
	(void)state;
	static const char world[] = "{\"distributed_args\": {\"world_size\": 3}}";
	tree_torch(root, "a_ascend_pt", 0);
	tree_put(root, "a_ascend_pt/profiler_metadata.json", world);
	tree_torch(root, "b_ascend_pt", 1);
	assert_int_equal(lint(root), 1);
	(void)found("RANK_MISSING", NP_ERROR);
	tree_torch(root, "c_ascend_pt", -1);
	assert_int_equal(lint(root), 0);
	(void)found("RANK_MISSING", NP_WARNING);
	(void)found("RANK_UNKNOWN", NP_WARNING);
}

static void hosts_in_any_order_make_one_set(void **state)
{
	(void)state;
	/* host a has the later ranks, and the two are interleaved */
	tree_torch(root, "a/x_ascend_pt", 1);
	tree_torch(root, "a/y_ascend_pt", 4);
	tree_torch(root, "b/x_ascend_pt", 0);
	tree_torch(root, "b/y_ascend_pt", 3);
	tree_put(root, "b/y_ascend_pt/profiler_metadata.json",
	         "{\"distributed_args\": {\"world_size\": 6}}");
	assert_int_equal(lint(root), 1);
	assert_non_null(strstr(found("RANK_MISSING", NP_ERROR)->title, ": 2, 5"));
	silent("RANK_DUP");
}

static void one_rank_on_two_hosts_is_a_duplicate_and_not_a_role(void **state)
{
	(void)state;
	for (int rank = 0; rank < 6; rank++) {
		char dir[64];
		(void)snprintf(dir, sizeof dir, "h%d/r%d_ascend_pt", rank / 3, rank);
		tree_torch(root, dir, rank);
	}
	tree_torch(root, "h1/again_ascend_pt", 2);
	assert_int_equal(lint(root), 1);
	(void)found("RANK_DUP", NP_ERROR);
}

static void roles_have_ranks_of_their_own(void **state)
{
	(void)state;
	tree_torch(root, "actor/a_ascend_pt", 0);
	tree_torch(root, "actor/b_ascend_pt", 1);
	tree_torch(root, "rollout/a_ascend_pt", 0);
	tree_torch(root, "rollout/b_ascend_pt", 1);
	assert_int_equal(lint(root), 0);
	assert_int_equal(report->findings.n, 0);
}

/* ── batches ── */

static void times_of_different_clocks_are_not_compared(void **state)
{
	(void)state;
	/* the name holds local time, eight hours from the recorded end */
	tree_torch(root, "a_1_20231115061320000_ascend_pt", 0);
	tree_torch(root, "rank_1_ascend_pt", -1);
	tree_put(root, "rank_1_ascend_pt/profiler_info_1.json",
	         "{\"end_info\": {\"collectionTimeEnd\": 1700000000000000000}}");
	assert_int_equal(lint(root), 0);
	silent("BATCH_MIXED");
	tree_torch(root, "rank_2_ascend_pt", -1);
	tree_put(root, "rank_2_ascend_pt/profiler_info_2.json",
	         "{\"end_info\": {\"collectionTimeEnd\": 1700000900000000000}}");
	assert_int_equal(lint(root), 1);
	assert_non_null(strstr(found("BATCH_MIXED", NP_ERROR)->title, "900 s"));
}

static void ten_minutes_are_one_batch(void **state)
{
	(void)state;
	tree_torch(root, "a_1_20250101000000000_ascend_pt", 0);
	tree_torch(root, "b_2_20250101001000000_ascend_pt", 1);
	(void)lint(root);
	silent("BATCH_MIXED");
	tree_torch(root, "c_3_20250101001000001_ascend_pt", 2);
	(void)lint(root);
	(void)found("BATCH_MIXED", NP_ERROR);
}

static void only_configurations_that_are_recorded_are_compared(void **state)
{
	(void)state;
	static const char info[] = "{\"config\": {\"common_config\": {}, \"experimental_config\": "
				   "{\"_profiler_level\": \"%s\"}}}";
	char text[256];
	tree_torch(root, "a_ascend_pt", 0);
	tree_torch(root, "b_ascend_pt", 1);
	(void)snprintf(text, sizeof text, info, "Level1");
	tree_put(root, "b_ascend_pt/profiler_info_1.json", text);
	(void)lint(root);
	silent("CONFIG_MIXED");
	tree_torch(root, "c_ascend_pt", 2);
	(void)snprintf(text, sizeof text, info, "Level2");
	tree_put(root, "c_ascend_pt/profiler_info_2.json", text);
	(void)lint(root);
	assert_non_null(strstr(found("CONFIG_MIXED", NP_WARNING)->title, "profiler level"));
}

static void different_steps_are_told_with_their_numbers(void **state)
{
	(void)state;
	static const char other[] = "Step Id,Name,Accelerator Core,Start Time(us),Duration(us)\n"
				    "2,a,AI_CORE,1700000000000000,12.5\n";
	tree_torch(root, "a_ascend_pt", 0);
	tree_torch(root, "b_ascend_pt", 1);
	(void)lint(root);
	silent("STEPS_DIFFER");
	tree_put(root, "b_ascend_pt/ASCEND_PROFILER_OUTPUT/kernel_details.csv", other);
	(void)lint(root);
	const struct np_finding *finding = found("STEPS_DIFFER", NP_WARNING);
	assert_string_equal(finding->evidence.v[0].text, "steps 1");
	assert_string_equal(finding->evidence.v[1].text, "steps 2");
}

static void a_chip_with_ccu_has_no_link_data(void **state)
{
	(void)state;
	sqlite3 *db = NULL;
	const char *path =
		tree_path(root, "a_ascend_pt/ASCEND_PROFILER_OUTPUT/ascend_pytorch_profiler_0.db");
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db,
	                              "CREATE TABLE NPU_INFO(id, name);"
	                              "INSERT INTO NPU_INFO VALUES(0, 'Ascend950PR')",
	                              NULL, NULL, NULL),
	                 SQLITE_OK);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
	(void)lint(root);
	(void)found("CCU_NO_LINK_DATA", NP_INFO);
	lint_synth(NP_SYNTH_DB, 2, "");
	silent("CCU_NO_LINK_DATA");
}

/* ── commands ── */

static void commands_quote_what_a_name_holds(void **state)
{
	(void)state;
	tree_put(root, "x'; rm -rf ~ '_ascend_pt/FRAMEWORK/torch.op_range", "raw");
	(void)lint(root);
	const char *command = found("RAW_ONLY", NP_ERROR)->command;
	assert_non_null(strstr(command, "analyse(sys.argv[1], max_process_number=8)' '"));
	assert_non_null(strstr(command, "x'\\''; rm -rf ~ '\\''_ascend_pt'"));
}

static void raw_dumps_of_each_tool_get_its_command(void **state)
{
	(void)state;
	tree_put(root, "m/x_ascend_ms/FRAMEWORK/op_range", "raw");
	(void)lint(root);
	assert_non_null(strstr(found("RAW_ONLY", NP_ERROR)->command, "mindspore.profiler"));
	tree_put(root, "p/PROF_1_20250101000000000_A/device_0/data/s.slice_0", "raw");
	char path[TREE_PATH + 8];
	(void)snprintf(path, sizeof path, "%s/p", root);
	(void)lint(path);
	assert_non_null(
		strstr(found("RAW_ONLY", NP_ERROR)->command, "msprof --export=on --output="));
}

static void what_discovery_and_readers_noticed_becomes_findings(void **state)
{
	(void)state;
	tree_torch(root, "a_ascend_pt", 0);
	tree_put(root, "a_ascend_pt/ASCEND_PROFILER_OUTPUT/kernel_details.csv",
	         TREE_KERNELS "1,b,c\r\n1,a,b,AI_CORE,1700000000000001,-1,0,surplus\r\n");
	tree_put(root, "a_ascend_pt/profiler_info_0.json", "{\"rank_id\": 5}");
	tree_put(root, "a_ascend_pt/profiler_metadata.json", "{\"a\": 1,}");
	tree_link(root, "up", ".");
	(void)lint(root);
	(void)found("NEGATIVE_DURATION", NP_WARNING);
	(void)found("RANK_CONTRADICTION", NP_WARNING);
	(void)found("JSON_REPAIRED", NP_WARNING);
	(void)found("SYMLINK_LOOP", NP_WARNING);
	/* too few and too many fields of one file are one finding with two rows of evidence */
	assert_int_equal(found("RAGGED_ROWS", NP_WARNING)->evidence.n, 2);
}

static void info_misses_what_the_configuration_asks_for(void **state)
{
	(void)state;
	char dir[TREE_PATH + 8];
	(void)snprintf(dir, sizeof dir, "%s/s", root);
	synth_set(dir, NP_SYNTH_TEXT, 2, 1, "no-kernel-details=1");
	report = np_report_new("info");
	assert_int_equal(np_discover(dir, &all, NULL), NP_OK);
	assert_int_equal(np_describe(all, 1, NULL, report, NULL), NP_OK);
	const struct np_finding *finding = found("DELIVERABLE_MISSING", NP_WARNING);
	assert_int_equal(finding->evidence.n, 1);
	assert_non_null(strstr(finding->evidence.v[0].text, "kernel_details, ranks 1 "));
	assert_int_equal(report->exit_code, 0);
	release();
	/* nothing at all is status 2, damage is 4 */
	report = np_report_new("info");
	tree_dir(root, "empty");
	assert_int_equal(np_discover(tree_path(root, "empty"), &all, NULL), NP_OK);
	assert_int_equal(np_describe(all, 1, NULL, report, NULL), NP_OK);
	(void)found("NO_CAPTURE", NP_ERROR);
	assert_int_equal(report->exit_code, 2);
	release();
	report = np_report_new("info");
	tree_put(root, "bad/ascend_pytorch_profiler_0.db", "nothing");
	assert_int_equal(np_discover(tree_path(root, "bad"), &all, NULL), NP_OK);
	assert_int_equal(np_describe(all, 1, NULL, report, NULL), NP_OK);
	(void)found("DB_UNREADABLE", NP_ERROR);
	assert_int_equal(report->exit_code, 4);
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(a_set_without_faults_is_silent),
		T(each_planted_fault_is_found),
		T(a_duplicate_names_both_places),
		T(one_capture_alone_may_lack_its_rank),
		T(ranks_below_the_greatest_are_missed_even_if_no_world_is_recorded),
		T(who_does_not_say_its_rank_may_be_the_missing_one),
		T(hosts_in_any_order_make_one_set),
		T(one_rank_on_two_hosts_is_a_duplicate_and_not_a_role),
		T(roles_have_ranks_of_their_own),
		T(times_of_different_clocks_are_not_compared),
		T(ten_minutes_are_one_batch),
		T(only_configurations_that_are_recorded_are_compared),
		T(different_steps_are_told_with_their_numbers),
		T(a_chip_with_ccu_has_no_link_data),
		T(commands_quote_what_a_name_holds),
		T(raw_dumps_of_each_tool_get_its_command),
		T(what_discovery_and_readers_noticed_becomes_findings),
		T(info_misses_what_the_configuration_asks_for),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
