/* The gate on results of cann-recipes-infer: RES/log_0.log beside RES/prof/{prefill,decode}. */
#include <stdlib.h>

#include "gate/gate.h"
#include "synth_set.h"

static char root[TREE_PATH];
static struct np_report *report;

#define CASE "0919/case"

static int setup(void **state)
{
	(void)state;
	tree_new(root);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	np_report_free(report);
	report = NULL;
	tree_remove(root);
	return 0;
}

static int check(const char *path)
{
	struct np_captures *all = NULL;
	struct np_gate_options options = {.profile = NP_GATE_FRAMEWORK,
	                                  .threads = 1,
	                                  .has_start_epoch = true,
	                                  .start_epoch = SYNTH_START};
	np_report_free(report);
	report = np_report_new("check");
	assert_non_null(report);
	assert_int_equal(np_discover(path, &all, NULL), NP_OK);
	assert_int_equal(np_gate_run(all, &options, report, NULL), NP_OK);
	np_captures_free(all);
	return report->exit_code;
}

static const struct np_finding *find(const char *code)
{
	for (size_t i = 0; i < report->findings.n; i++)
		if (strcmp(report->findings.v[i]->code, code) == 0)
			return report->findings.v[i];
	return NULL;
}

/* A capture of one rank in RES/prof/<phase>. */
static void put_phase(const char *phase)
{
	char path[TREE_PATH + 64];
	(void)snprintf(path, sizeof path, "%s/" CASE "/prof/%s", root, phase);
	synth_set(path, NP_SYNTH_TEXT, 1, 1, "");
}

static void put_case(void)
{
	tree_dir(root, "0919");
	tree_dir(root, CASE);
	tree_dir(root, CASE "/prof");
	tree_put(root, CASE "/log_0.log", "\x1b[32mall parsers finished\x1b[0m\n");
}

/* The deliverable of the only capture of a phase, below the root. */
static const char *deliverable(const char *phase, const char *name)
{
	static char path[TREE_PATH + 64];
	struct np_captures *all = NULL;
	(void)snprintf(path, sizeof path, "%s/" CASE "/prof/%s", root, phase);
	assert_int_equal(np_discover(path, &all, NULL), NP_OK);
	assert_int_equal(all->captures.n, 1);
	(void)snprintf(path, sizeof path, "%s/%s", all->captures.v[0]->output + strlen(root) + 1,
	               name);
	np_captures_free(all);
	return path;
}

/* R61, R108: the log lies neither in the capture nor in the directory that was asked for. */
static void a_log_above_the_captures_is_read(void **state)
{
	(void)state;
	put_case();
	put_phase("prefill");
	put_phase("decode");
	assert_int_equal(check(root), 0);
	assert_int_equal(report->findings.n, 0);
	tree_put(root, CASE "/log_0.log", "\x1b[31mKernelParser run\x1b[0m failed\n");
	assert_int_equal(check(root), 1);
	assert_non_null(find("RUN_FAILED"));
	assert_null(find("OUTPUT_FS_SUSPECT")); /* one sign of three */
	/* a log beside the way is none of theirs */
	tree_put(root, CASE "/log_0.log", "fine\n");
	tree_dir(root, "0918");
	tree_put(root, "0918/log_0.log", "run failed\n");
	assert_int_equal(check(root), 0);
}

/* R61: a phase that was begun and left nothing is a failure; one that was never begun is not. */
static void an_empty_phase_fails(void **state)
{
	(void)state;
	put_case();
	put_phase("prefill");
	assert_int_equal(check(root), 0);
	tree_dir(root, CASE "/prof/decode");
	assert_int_equal(check(root), 1);
	const struct np_finding *finding = find("PHASE_MISSING");
	assert_non_null(finding);
	assert_non_null(strstr(finding->title, "decode"));
	assert_non_null(strstr(finding->command, "plan schedule"));
	put_phase("decode");
	assert_int_equal(check(root), 0);
}

/* R62: all parsers failed, no CSV, and a cut trace. */
static void the_three_signs_of_a_bad_disk_are_told(void **state)
{
	static const char *const tables[] = {
		"kernel_details.csv",  "step_trace_time.csv", "op_statistic.csv",
		"api_statistic.csv",   "task_time.csv",       "operator_details.csv",
		"operator_memory.csv", "memory_record.csv",   "npu_module_mem.csv"};
	(void)state;
	put_case();
	put_phase("decode");
	const char *trace = tree_path(root, deliverable("decode", "trace_view.json"));
	assert_int_equal(truncate(trace, 5000), 0);
	for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
		(void)unlink(tree_path(root, deliverable("decode", tables[i])));
	assert_int_equal(check(root), 1);
	assert_null(find("OUTPUT_FS_SUSPECT")); /* two of three */
	tree_put(root, CASE "/log_0.log", "[ERROR] TraceViewParser run failed\n");
	assert_int_equal(check(root), 1);
	const struct np_finding *finding = find("OUTPUT_FS_SUSPECT");
	assert_non_null(finding);
	assert_non_null(strstr(finding->advice, "ln -sfn LOCAL_DISK/recipes_res models/MODEL/res"));
	assert_non_null(strstr(finding->command, "cp -r "));
	assert_non_null(strstr(finding->command, "analyse("));
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(a_log_above_the_captures_is_read),
		T(an_empty_phase_fails),
		T(the_three_signs_of_a_bad_disk_are_told),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
