/* Trees that nobody's exporter wrote: what cannot be read is told, and nothing is slow. */
#include <fcntl.h>
#include <ftw.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "capture/capture.h"
#include "capture/describe.h"
#include "temp_file.h"
#include "unit.h"

static char top[4096];

static void in_top(char *out, size_t size, const char *name)
{
	assert_true(snprintf(out, size, "%s/%s", top, name) < (int)size);
}

static void put(const char *name, const char *text)
{
	char path[4096];
	in_top(path, sizeof path, name);
	FILE *file = fopen(path, "wb");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static void put_dir(const char *name)
{
	char path[4096];
	in_top(path, sizeof path, name);
	assert_int_equal(mkdir(path, 0700), 0);
}

static int make_top(void **state)
{
	(void)state;
	(void)snprintf(top, sizeof top, "%s", temp_path("_ascend_pt"));
	assert_int_equal(mkdir(top, 0700), 0);
	put_dir("ASCEND_PROFILER_OUTPUT");
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static int remove_top(void **state)
{
	(void)state;
	return nftw(top, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static const char *problem_of(const struct np_captures *all, const char *name)
{
	for (size_t c = 0; c < all->captures.n; c++)
		for (size_t i = 0; i < all->captures.v[c]->problems.n; i++) {
			const struct np_problem *problem = &all->captures.v[c]->problems.v[i];
			if (strcmp(problem->code, "UNREADABLE") == 0 &&
			    np_str_is(np_path_base(problem->file), name))
				return problem->text;
		}
	return "";
}

#define OUTPUT "ASCEND_PROFILER_OUTPUT/"

static void a_deliverable_that_is_no_file_is_told(void **state)
{
	(void)state;
	char path[4096];
	put("profiler_info_0.json", "{}");
	put_dir(OUTPUT "kernel_details.csv");
	put_dir(OUTPUT "old.csv"); /* what nobody reads may be anything */
	in_top(path, sizeof path, OUTPUT "trace_view.json");
	assert_int_equal(symlink("nowhere", path), 0);
	in_top(path, sizeof path, OUTPUT "step_trace_time.csv");
	assert_int_equal(mkfifo(path, 0600), 0);
	in_top(path, sizeof path, OUTPUT "communication.json");
	assert_int_equal(symlink("communication.json", path), 0);
	in_top(path, sizeof path, OUTPUT "op_statistic.csv");
	assert_int_equal(symlink("/dev/zero", path), 0);
	struct np_captures *all = NULL;
	assert_int_equal(np_discover(top, &all, NULL), NP_OK);
	assert_int_equal(all->captures.n, 1);
	assert_non_null(strstr(problem_of(all, "kernel_details.csv"), "a directory"));
	assert_non_null(strstr(problem_of(all, "trace_view.json"), "leads nowhere"));
	assert_non_null(strstr(problem_of(all, "step_trace_time.csv"), "pipe"));
	assert_non_null(strstr(problem_of(all, "op_statistic.csv"), "device"));
	assert_string_not_equal(problem_of(all, "communication.json"), "");
	assert_string_equal(problem_of(all, "old.csv"), "");
	assert_int_equal(np_capture_count(all->captures.v[0], NP_ROLE_KERNELS), 0);
	np_captures_free(all);
}

static void a_time_beyond_2262_is_the_latest_there_is(void **state)
{
	(void)state;
	char path[4096];
	struct np_file_stat st;
	put("late", "");
	in_top(path, sizeof path, "late");
	struct timespec times[2] = {{.tv_sec = 12000000000}, {.tv_sec = 12000000000}};
	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
	struct stat plain;
	assert_int_equal(stat(path, &plain), 0);
	if (plain.st_mtim.tv_sec != 12000000000)
		skip(); /* a file system without such times */
	assert_int_equal(np_file_stat(path, true, &st, NULL), NP_OK);
	assert_true(st.mtime_ns == INT64_MAX);
}

static void an_output_to_a_pipe_or_device_leaves_it_what_it_is(void **state)
{
	(void)state;
	char path[4096], got[16] = "";
	in_top(path, sizeof path, "pipe");
	assert_int_equal(mkfifo(path, 0600), 0);
	int reader = open(path, O_RDWR | O_CLOEXEC);
	struct np_outfile out;
	assert_int_equal(np_outfile_begin(&out, path, NULL), NP_OK);
	assert_true(fputs("text", out.file) >= 0);
	assert_int_equal(np_outfile_commit(&out, NULL), NP_OK);
	assert_int_equal(read(reader, got, sizeof got), 4);
	assert_string_equal(got, "text");
	assert_int_equal(np_outfile_begin(&out, path, NULL), NP_OK);
	np_outfile_abort(&out);
	assert_int_equal(close(reader), 0);
	struct stat st;
	assert_int_equal(stat(path, &st), 0);
	assert_true(S_ISFIFO(st.st_mode));
}

static void of_several_exports_the_newest_of_each_role_stays(void **state)
{
	(void)state;
	put_dir("PROF_000001_20250601080000000_ABCDEFGH");
	put_dir("PROF_000001_20250601080000000_ABCDEFGH/mindstudio_profiler_output");
	const char *names[] = {"op_summary_20250601080000.csv",   "op_summary_20250602080000.csv",
	                       "op_summary_20250601090000.csv",   "op_statistic_20250601090000.csv",
	                       "op_statistic_20250601080000.csv", "msprof_20250601080000.json"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		char name[256];
		(void)snprintf(name, sizeof name,
		               "PROF_000001_20250601080000000_ABCDEFGH/"
		               "mindstudio_profiler_output/%s",
		               names[i]);
		put(name, "a\n");
	}
	struct np_captures *all = NULL;
	assert_int_equal(np_discover(top, &all, NULL), NP_OK);
	assert_int_equal(all->captures.n, 1);
	const struct np_capture *capture = all->captures.v[0];
	assert_int_equal(capture->files.n, 3);
	assert_string_equal(np_capture_file(capture, NP_ROLE_OP_SUMMARY)->timestamp,
	                    "20250602080000");
	assert_string_equal(np_capture_file(capture, NP_ROLE_OP_STATISTIC)->timestamp,
	                    "20250601090000");
	assert_int_equal(all->left_out.n, 3);
	np_captures_free(all);
}

static void kernels_without_a_step_go_to_the_last_that_began(void **state)
{
	(void)state;
	put("profiler_info_0.json", "{}");
	put(OUTPUT "trace_view.json",
	    "[{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":1,\"tid\":0,"
	    "\"args\":{\"name\":\"Python\"}},"
	    "{\"ph\":\"X\",\"name\":\"ProfilerStep#7\",\"pid\":1,\"tid\":1,\"cat\":\"cpu_op\","
	    "\"ts\":\"3000.000\",\"dur\":500,\"args\":{}},"
	    "{\"ph\":\"X\",\"name\":\"ProfilerStep#5\",\"pid\":1,\"tid\":1,\"cat\":\"cpu_op\","
	    "\"ts\":\"1000.000\",\"dur\":500,\"args\":{}},"
	    "{\"ph\":\"X\",\"name\":\"ProfilerStep#6\",\"pid\":1,\"tid\":1,\"cat\":\"cpu_op\","
	    "\"ts\":\"2000.000\",\"dur\":500,\"args\":{}}]");
	put(OUTPUT "kernel_details.csv",
	    "Name,Type,Accelerator Core,Start Time(us),Duration(us)\n"
	    "before,A,AI_CORE,999.999,1\nfirst,A,AI_CORE,1000,1\nbetween,A,AI_CORE,1900,1\n"
	    "second,A,AI_CORE,2000,1\nthird,A,AI_CORE,3500,1\nafter,A,AI_CORE,3500.001,1\n");
	static const int64_t expected[] = {NP_NO_I64, 5, 5, 6, 7, NP_NO_I64};
	struct np_captures *all = NULL;
	struct np_profile *profile = NULL;
	assert_int_equal(np_discover(top, &all, NULL), NP_OK);
	assert_int_equal(
		np_capture_load(all->captures.v[0], NP_KERNELS | NP_STEPS, 1, &profile, NULL),
		NP_OK);
	assert_int_equal(profile->steps.n, 3);
	assert_int_equal(profile->kernels.n, 6);
	for (size_t i = 0; i < 6; i++) {
		uint32_t step = profile->kernels.step[i];
		assert_true((step == NP_NO_U32 ? NP_NO_I64 : profile->steps.id[step]) ==
		            expected[i]);
	}
	np_profile_free(profile);
	np_captures_free(all);
}

static void each_communicator_is_listed_once_also_one_without_a_name(void **state)
{
	(void)state;
	char path[4096];
	static const char *const ranks[] = {"a_ascend_pt", "b_ascend_pt"};
	for (size_t i = 0; i < 2; i++) {
		char name[64];
		put_dir(ranks[i]);
		(void)snprintf(name, sizeof name, "%s/profiler_info_%zu.json", ranks[i], i);
		put(name, "{}");
		(void)snprintf(name, sizeof name, "%s/profiler_metadata.json", ranks[i]);
		put(name, i ? "{\"parallel_group_info\":{\"x\":{\"global_ranks\":[0,1]},"
		              "\"\":{\"global_ranks\":[9223372036854775807,-9223372036854775808]},"
		              "\"z\":{}}}"
		            : "{\"parallel_group_info\":{\"x\":{\"global_ranks\":[0,1]},"
		              "\"\":{\"global_ranks\":[9223372036854775807,"
		              "-9223372036854775808]}}}");
	}
	/* the parent must not look like a capture itself */
	in_top(path, sizeof path, "ASCEND_PROFILER_OUTPUT");
	assert_int_equal(rmdir(path), 0);
	char plain[4096];
	(void)snprintf(plain, sizeof plain, "%.*s", (int)(strlen(top) - strlen("_ascend_pt")), top);
	assert_int_equal(rename(top, plain), 0);
	(void)snprintf(top, sizeof top, "%s", plain);
	struct np_captures *all = NULL;
	struct np_report *report = np_report_new("info");
	assert_int_equal(np_discover(top, &all, NULL), NP_OK);
	assert_int_equal(all->captures.n, 2);
	assert_int_equal(np_describe(all, 1, NULL, report, NULL), NP_OK);
	size_t rows = 0;
	for (size_t i = 0; i < report->tables.n; i++)
		if (strcmp(report->tables.v[i]->id, "groups") == 0)
			rows = np_table_rows(report->tables.v[i]);
	assert_int_equal(rows, 3);
	np_report_free(report);
	np_captures_free(all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_deliverable_that_is_no_file_is_told, make_top,
	                                        remove_top),
		cmocka_unit_test_setup_teardown(a_time_beyond_2262_is_the_latest_there_is, make_top,
	                                        remove_top),
		cmocka_unit_test_setup_teardown(an_output_to_a_pipe_or_device_leaves_it_what_it_is,
	                                        make_top, remove_top),
		cmocka_unit_test_setup_teardown(of_several_exports_the_newest_of_each_role_stays,
	                                        make_top, remove_top),
		cmocka_unit_test_setup_teardown(kernels_without_a_step_go_to_the_last_that_began,
	                                        make_top, remove_top),
		cmocka_unit_test_setup_teardown(
			each_communicator_is_listed_once_also_one_without_a_name, make_top,
			remove_top),
	};
	return cmocka_run_group_tests_name("hostile trees", tests, NULL, NULL);
}
