/* synth: every fault shows where it should, and nowhere else. */
#include "synth_unit.h"

/* ── faults that change the run ── */

static void a_slow_rank_computes_longer_and_never_waits(void **state)
{
	struct fixture *f = *state;
	f->options.ranks = 4;
	write_set(f, "slow-rank=2");
	for (uint32_t rank = 0; rank < 4; rank++) {
		if (rank == 2)
			continue;
		assert_true(truth(f, 2, "computing_ns") > truth(f, rank, "computing_ns") * 13 / 10);
		assert_true(truth(f, 2, "communication_ns") < truth(f, rank, "communication_ns"));
	}
}

static void a_slow_link_has_an_eighth_of_the_bandwidth(void **state)
{
	struct fixture *f = *state;
	f->options.ranks = 4;
	f->options.formats = NP_SYNTH_DB;
	write_set(f, "slow-link=0-3");
	sqlite3 *db = open_db(out_path(f, 0, "analysis.db"));
	const char *slow =
		"SELECT max(bandwidth * 1000) FROM CommAnalyzerMatrix WHERE src_rank = '0' AND "
		"dst_rank = '3'";
	const char *rest = "SELECT min(bandwidth * 1000) FROM CommAnalyzerMatrix WHERE "
			   "transport_type = 'HCCS' "
			   "AND NOT (src_rank = '0' AND dst_rank = '3')";
	assert_true(query_int(db, slow) * 6 < query_int(db, rest));
	(void)sqlite3_close(db);
}

static void a_host_bound_rank_is_idle_between_kernels(void **state)
{
	struct fixture *f = *state;
	write_set(f, "host-bound=1");
	assert_true(truth(f, 1, "free_ns") > truth(f, 1, "computing_ns") / 2);
	assert_true(truth(f, 0, "free_ns") * 10 < truth(f, 1, "free_ns"));
}

static void warm_up_is_only_in_the_first_step(void **state)
{
	struct fixture *f = *state;
	f->options.layers = 8;
	write_set(f, "warmup-in-window");
	struct sheet s = read_sheet(f, out_path(f, 0, "step_trace_time.csv"));
	assert_true(ns_at(&s, 0, "Stage") > 2 * ns_at(&s, 1, "Stage"));
}

static void an_idle_rank_has_collectives_only(void **state)
{
	struct fixture *f = *state;
	write_set(f, "idle-rank=1");
	assert_int_equal(truth(f, 1, "kernels"), 0);
	assert_int_equal(truth(f, 1, "collectives"), truth(f, 0, "collectives"));
	struct sheet s = read_sheet(f, out_path(f, 1, "step_trace_time.csv"));
	assert_int_equal(ns_at(&s, 0, "Computing"), 0);
}

static void a_long_rank_has_kernels_outside_its_steps(void **state)
{
	struct fixture *f = *state;
	f->options.formats = NP_SYNTH_TEXT | NP_SYNTH_DB;
	write_set(f, "span-mismatch=0");
	struct sheet s = read_sheet(f, out_path(f, 0, "kernel_details.csv"));
	assert_int_equal(cell(&s, s.rows - 1, column(&s, "Step Id")).len, 0);
	sqlite3 *a = open_db(out_path(f, 0, "ascend_pytorch_profiler_0.db"));
	sqlite3 *b = open_db(out_path(f, 1, "ascend_pytorch_profiler_1.db"));
	const char *span = "SELECT endTimeNs - startTimeNs FROM SESSION_TIME_INFO";
	assert_true(query_int(a, span) > 5 * query_int(b, span));
	(void)sqlite3_close(a);
	(void)sqlite3_close(b);
}

static void an_aicpu_kernel_is_in_every_layer(void **state)
{
	struct fixture *f = *state;
	write_set(f, "aicpu=1");
	np_str text = slurp(f, out_path(f, 1, "op_statistic.csv"));
	assert_non_null(strstr(text.ptr, "IndexPutV2,AI_CPU,4,"));
	assert_null(strstr(slurp(f, out_path(f, 0, "op_statistic.csv")).ptr, "IndexPutV2"));
}

/* ── faults that change the files ── */

static void headers_have_the_columns_of_their_dialect(void **state)
{
	static const struct {
		const char *fault;
		size_t columns;
		const char *has;
	} dialects[] = {{NULL, 47, "Block Num"},
	                {"old-header", 46, "Block Dim"},
	                {"no-metrics", 9, "Block Num"},
	                {"910a", 36, "memory_bound"}};
	struct fixture *f = *state;
	for (size_t i = 0; i < sizeof dialects / sizeof *dialects; i++) {
		write_set(f, dialects[i].fault);
		struct sheet s = read_sheet(f, out_path(f, 0, "kernel_details.csv"));
		assert_int_equal(s.columns, dialects[i].columns);
		assert_false(s.ragged);
		(void)column(&s, dialects[i].has);
	}
}

/* Each of these is about files of rank 1 being there or not. */
static void faults_leave_out_what_they_say(void **state)
{
	static const struct {
		const char *fault, *gone, *kept;
	} cases[] = {
		{"no-kernel-details", "kernel_details.csv", "trace_view.json"},
		{"header-only", "nothing", "kernel_details.csv"},
		{"no-metrics", "op_statistic.csv", "kernel_details.csv"},
		{"no-metrics", "communication.json", "trace_view.json"},
		{"empty-dir", "trace_view.json", "."},
		{"raw-only", ".", "../FRAMEWORK/torch.op_range"},
		{"mixed-format", "kernel_details.csv", "ascend_pytorch_profiler_1.db"},
		{"host-only", "step_trace_time.csv", "operator_details.csv"},
		{"host-only", "kernel_details.csv", "trace_view.json"},
		{"no-comm-tables", "communication.json", "kernel_details.csv"},
		{"rank-unknown=1", "../profiler_info_1.json", "../profiler_info.json"},
		{"missing-rank=0", "nothing", "../profiler_info_1.json"},
		{"run-failed-log", "nothing", "../../log_1.log"},
	};
	struct fixture *f = *state;
	f->options.steps = 1;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		write_set(f, cases[i].fault);
		if (exists(out_path(f, 1, cases[i].gone)))
			fail_msg("%s: %s is there", cases[i].fault, cases[i].gone);
		/* without ASCEND_PROFILER_OUTPUT, ".." has to start from the rank's directory */
		const char *kept = strncmp(cases[i].kept, "../", 3) == 0
		                           ? np_arena_printf(&f->arena, "%s/%s", rank_dir(f, 1),
		                                             cases[i].kept + 3)
		                           : out_path(f, 1, cases[i].kept);
		if (!exists(kept))
			fail_msg("%s: %s is missing", cases[i].fault, cases[i].kept);
	}
}

static void ranks_are_missing_doubled_and_from_another_day(void **state)
{
	struct fixture *f = *state;
	f->options.ranks = 4;
	f->options.steps = 1;
	write_set(f, "missing-rank=2");
	assert_int_equal(count_dirs(f), 3);
	assert_string_equal(rank_dir(f, 2), "");
	write_set(f, "duplicate-rank=2");
	assert_int_equal(count_dirs(f), 5);
	assert_non_null(strstr(rank_dir(f, 2), "_20250601070000")); /* the older sorts first */
	write_set(f, "mixed-batch");
	assert_int_equal(count_dirs(f), 4);
	assert_non_null(strstr(rank_dir(f, 3), "_20250531080000"));
	assert_non_null(strstr(rank_dir(f, 0), "_20250601080000"));
}

static void metrics_are_na_but_only_where_asked(void **state)
{
	struct fixture *f = *state;
	f->options.formats = NP_SYNTH_TEXT | NP_SYNTH_DB;
	write_set(f, "na-metrics=1");
	struct sheet bad = read_sheet(f, out_path(f, 1, "kernel_details.csv"));
	struct sheet good = read_sheet(f, out_path(f, 0, "kernel_details.csv"));
	size_t ratio = column(&bad, "aic_mac_ratio"), numbers = 0;
	for (size_t i = 0; i < bad.rows; i++) {
		assert_str(cell(&bad, i, ratio), "N/A");
		numbers += !np_str_is(cell(&good, i, ratio), "N/A");
	}
	assert_true(numbers > 0);
	sqlite3 *db = open_db(out_path(f, 1, "ascend_pytorch_profiler_1.db"));
	assert_int_equal(query_int(db, "SELECT count(*) FROM TASK_PMU_INFO"), 0);
	(void)sqlite3_close(db);
}

static void traces_are_cut_and_spoilt(void **state)
{
	struct fixture *f = *state;
	write_set(f, NULL);
	np_str whole = slurp(f, out_path(f, 0, "trace_view.json"));
	assert_true(np_str_ends(whole, NP_STR("}]")));
	write_set(f, "trace-comma");
	assert_true(np_str_ends(slurp(f, out_path(f, 0, "trace_view.json")), NP_STR("},]")));
	write_set(f, "truncated-trace=0");
	np_str cut = slurp(f, out_path(f, 0, "trace_view.json"));
	assert_true(cut.len < whole.len && np_str_starts(whole, cut));
	assert_true(np_str_ends(slurp(f, out_path(f, 1, "trace_view.json")), NP_STR("}]")));
	write_set(f, "host-only");
	np_str host = slurp(f, out_path(f, 0, "trace_view.json"));
	assert_null(strstr(host.ptr, "Ascend Hardware"));
	assert_non_null(strstr(host.ptr, "ProfilerStep#12"));
}

static void names_are_hostile(void **state)
{
	static const struct {
		const char *fault, *in_csv;
	} cases[] = {{"bad-utf8", "\xff\xfe_MatMulV3"},
	             {"formula-names", "\n12,0,4294967295,11005,2,@SUM(A1:A9),"},
	             {"hostile-names", "\"aclnnAdd_line\nbreak\""},
	             {"hostile-names", "\"aclnnMatmul_\"\"quoted\"\", with comma\""}};
	struct fixture *f = *state;
	f->options.formats = NP_SYNTH_TEXT | NP_SYNTH_DB;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		write_set(f, cases[i].fault);
		np_str text = slurp(f, out_path(f, 0, "kernel_details.csv"));
		if (!strstr(text.ptr, cases[i].in_csv))
			fail_msg("%s: no such name in the csv", cases[i].fault);
	}
	assert_non_null(
		strstr(slurp(f, out_path(f, 0, "trace_view.json")).ptr, "aclnnAdd_line\\nbreak"));
}

static void rows_are_ragged_or_negative_or_gone(void **state)
{
	struct fixture *f = *state;
	write_set(f, "ragged-rows");
	assert_true(read_sheet(f, out_path(f, 0, "kernel_details.csv")).ragged);
	write_set(f, "header-only");
	struct sheet empty = read_sheet(f, out_path(f, 0, "kernel_details.csv"));
	assert_int_equal(empty.rows, 0);
	assert_int_equal(empty.columns, 47);
	write_set(f, "negative-duration");
	struct sheet s = read_sheet(f, out_path(f, 0, "kernel_details.csv"));
	size_t negative = 0;
	for (size_t i = 0; i < s.rows; i++)
		negative += ns_at(&s, i, "Duration(us)") < 0;
	assert_int_equal(negative, 3);
}

static void logs_tell_of_failures_and_the_schedule_of_missing_steps(void **state)
{
	struct fixture *f = *state;
	char path[128];
	(void)snprintf(path, sizeof path, "%s/log_0.log", f->set);
	write_set(f, "run-failed-log=0");
	np_str text = slurp(f, path);
	assert_non_null(strstr(text.ptr, "\x1b[31m[ERROR]\x1b[0m"));
	assert_non_null(strstr(text.ptr, "Task [KernelViewParser] run failed."));
	assert_non_null(strstr(text.ptr,
	                       "Incorrect schedule: Stop profiler while current state is RECORD"));
	write_set(f, "unclosed-step");
	text = slurp(f, np_path_join(&f->arena, rank_dir(f, 0), "profiler_info_0.json"));
	assert_int_equal(json_int(text, "schedule", "active"), f->options.steps + 2);
	assert_int_equal(json_int(text, "schedule", "skip_first") +
	                         json_int(text, "schedule", "warmup"),
	                 12);
}

static void msprof_is_laid_out_as_msprof_does(void **state)
{
	struct fixture *f = *state;
	struct np_dir dir;
	f->options.ranks = 1;
	f->options.formats = NP_SYNTH_MSPROF;
	write_set(f, "slices");
	assert_int_equal(np_dir_list(&f->arena, f->set, &dir, NULL), NP_OK);
	assert_int_equal(dir.n, 2); /* PROF_*, truth.json */
	const char *out = np_arena_printf(&f->arena, "%s/%s/mindstudio_profiler_output", f->set,
	                                  dir.v[0].name);
	size_t rows = 0;
	for (int i = 0; i < 3; i++) {
		struct sheet s = read_sheet(
			f, np_arena_printf(&f->arena, "%s/op_summary_20250601080000_slice_%d.csv",
		                           out, i));
		assert_int_equal(s.columns, 46);
		(void)column(&s, "Task Start Time(us)");
		rows += s.rows;
	}
	assert_int_equal(rows, truth(f, 0, "kernels"));
	assert_true(exists(np_path_join(&f->arena, out, "msprof_20250601080000.json")));
	assert_true(exists(np_path_join(&f->arena, out, "task_time_20250601080000.csv")));
}

static void missing_communication_is_missing_in_the_db_too(void **state)
{
	struct fixture *f = *state;
	f->options.formats = NP_SYNTH_DB;
	write_set(f, "no-comm-tables");
	sqlite3 *db = open_db(out_path(f, 0, "ascend_pytorch_profiler_0.db"));
	assert_int_equal(
		query_int(db, "SELECT count(*) FROM sqlite_master WHERE name LIKE 'COMM%'"), 0);
	assert_true(query_int(db, "SELECT count(*) FROM TASK") > 0);
	(void)sqlite3_close(db);
}

static np_ns mtime_of(const char *path)
{
	struct np_file_stat st;
	assert_int_equal(np_file_stat(path, true, &st, NULL), NP_OK);
	return st.mtime_ns;
}

static void file_times_are_set_on_demand(void **state)
{
	struct fixture *f = *state;
	const np_ns start = 1748764800ll * 1000000000, hour = 3600ll * 1000000000;
	write_set(f, "stale=1");
	assert_int_equal(mtime_of(out_path(f, 1, "kernel_details.csv")), start - hour);
	assert_true(mtime_of(out_path(f, 0, "kernel_details.csv")) > start);
	f->options.set_mtimes = true;
	write_set(f, NULL);
	np_ns end = mtime_of(out_path(f, 0, "kernel_details.csv"));
	assert_true(end > start && end < start + hour);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_slow_rank_computes_longer_and_never_waits),
		TEST(a_slow_link_has_an_eighth_of_the_bandwidth),
		TEST(a_host_bound_rank_is_idle_between_kernels),
		TEST(warm_up_is_only_in_the_first_step),
		TEST(an_idle_rank_has_collectives_only),
		TEST(a_long_rank_has_kernels_outside_its_steps),
		TEST(an_aicpu_kernel_is_in_every_layer),
		TEST(headers_have_the_columns_of_their_dialect),
		TEST(faults_leave_out_what_they_say),
		TEST(ranks_are_missing_doubled_and_from_another_day),
		TEST(metrics_are_na_but_only_where_asked),
		TEST(traces_are_cut_and_spoilt),
		TEST(names_are_hostile),
		TEST(rows_are_ragged_or_negative_or_gone),
		TEST(logs_tell_of_failures_and_the_schedule_of_missing_steps),
		TEST(msprof_is_laid_out_as_msprof_does),
		TEST(missing_communication_is_missing_in_the_db_too),
		TEST(file_times_are_set_on_demand),
	};
	return cmocka_run_group_tests_name("synth faults", tests, NULL, NULL);
}
