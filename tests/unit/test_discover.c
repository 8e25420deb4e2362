/* Discovery: what is found, whose it is, what is left out, and that it only reads. */
#include "capture/capture.h"

#include <archive.h>
#include <archive_entry.h>
#include <math.h>
#include <sqlite3.h>

#include "temp_tree.h"

static char root[TREE_PATH];

static int setup(void **state)
{
	(void)state;
	tree_new(root);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	tree_remove(root);
	return 0;
}

/* Find everything, and check on the way that nothing in the tree was touched. */
static struct np_captures *discover(const char *path)
{
	struct np_captures *all = NULL;
	struct np_err err = {0};
	char *before = tree_listing(root);
	if (np_discover(path, &all, &err) != NP_OK)
		fail_msg("%s: %s", err.where, err.msg);
	char *after = tree_listing(root);
	assert_string_equal(before, after);
	free(before);
	free(after);
	return all;
}

static const char *reason_of(const struct np_captures *all, const char *part)
{
	for (size_t i = 0; i < all->left_out.n; i++)
		if (strstr(all->left_out.v[i].path, part))
			return all->left_out.v[i].reason;
	return "";
}

static size_t problems(const struct np_captures *all, const char *code)
{
	size_t n = 0;
	for (size_t i = 0; i < all->problems.n; i++)
		n += strcmp(all->problems.v[i].code, code) == 0;
	for (size_t c = 0; c < all->captures.n; c++)
		for (size_t i = 0; i < all->captures.v[c]->problems.n; i++)
			n += strcmp(all->captures.v[c]->problems.v[i].code, code) == 0;
	return n;
}

static void assert_rank(const struct np_capture *capture, int64_t rank, enum np_rank_source source)
{
	if (capture->rank != rank || capture->rank_source != source)
		fail_msg("%s: rank %lld from %s", capture->name, (long long)capture->rank,
		         np_rank_source_name(capture->rank_source));
}

static void assert_kind(const struct np_capture *capture, const char *expected)
{
	char kind[128];
	np_capture_kind(capture, kind, sizeof kind);
	assert_string_equal(kind, expected);
}

static void put_db(const char *relative, const char *sql)
{
	sqlite3 *db = NULL;
	assert_int_equal(sqlite3_open(tree_path(root, relative), &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* ── shapes of trees ── */

static void a_flat_cluster_root_is_sorted_by_rank(void **state)
{
	(void)state;
	tree_torch(root, "b_11_20250101000000000_ascend_pt", 10);
	tree_torch(root, "c_12_20250101000000001_ascend_pt", 2);
	tree_torch(root, "a_13_20250101000000002_ascend_pt", 0);
	struct np_captures *all = discover(root);
	assert_int_equal(all->captures.n, 3);
	assert_rank(all->captures.v[0], 0, NP_RANK_INFO_NAME);
	assert_rank(all->captures.v[1], 2, NP_RANK_INFO_NAME);
	assert_rank(all->captures.v[2], 10, NP_RANK_INFO_NAME);
	assert_string_equal(all->captures.v[2]->host, "b");
	assert_int_equal(all->captures.v[2]->pid, 11);
	assert_string_equal(all->captures.v[2]->batch, "20250101000000000");
	assert_string_equal(all->captures.v[2]->group_dir, "");
	assert_kind(all->captures.v[0], "torch_text");
	np_captures_free(all);
}

static void directories_of_hosts_and_roles_are_told_as_groups(void **state)
{
	(void)state;
	tree_torch(root, "prof/actor/a_ascend_pt", 0);
	tree_torch(root, "prof/actor/b_ascend_pt", 1);
	tree_torch(root, "prof/rollout/c_ascend_pt", 0);
	struct np_captures *all = discover(root);
	assert_int_equal(all->captures.n, 3);
	assert_string_equal(all->captures.v[0]->group_dir, "prof/actor");
	assert_string_equal(all->captures.v[1]->group_dir, "prof/actor");
	assert_string_equal(all->captures.v[2]->group_dir, "prof/rollout");
	np_captures_free(all);
}

static void the_output_directory_may_be_given_itself(void **state)
{
	(void)state;
	tree_torch(root, "h_7_20250101000000000_ascend_pt", 3);
	char path[2 * TREE_PATH];
	(void)snprintf(path, sizeof path, "%s",
	               tree_path(root, "h_7_20250101000000000_ascend_pt/ASCEND_PROFILER_OUTPUT"));
	struct np_captures *all = discover(path);
	assert_int_equal(all->captures.n, 1);
	assert_rank(all->captures.v[0], 3, NP_RANK_INFO_NAME);
	assert_string_equal(all->captures.v[0]->name, "h_7_20250101000000000_ascend_pt");
	np_captures_free(all);
}

static void the_current_directory_has_a_name_too(void **state)
{
	(void)state;
	char here[TREE_PATH];
	assert_non_null(getcwd(here, sizeof here));
	tree_torch(root, "h_7_20250101000000000_ascend_pt", 3);
	tree_put(root, "PROF_000001_20250101000000000_ABC/device_2/data/x.slice_0", "raw");
	assert_int_equal(chdir(tree_path(root, "h_7_20250101000000000_ascend_pt/")), 0);
	struct np_captures *all = discover(".");
	assert_int_equal(all->captures.n, 1);
	assert_string_equal(all->captures.v[0]->name, "h_7_20250101000000000_ascend_pt");
	assert_string_equal(all->captures.v[0]->host, "h");
	np_captures_free(all);
	assert_int_equal(chdir("ASCEND_PROFILER_OUTPUT"), 0);
	all = discover(".");
	assert_int_equal(all->captures.n, 1);
	assert_rank(all->captures.v[0], 3, NP_RANK_INFO_NAME);
	np_captures_free(all);
	assert_int_equal(chdir(tree_path(root, "PROF_000001_20250101000000000_ABC/")), 0);
	all = discover(".");
	assert_int_equal(all->captures.n, 1);
	assert_kind(all->captures.v[0], "msprof_raw");
	assert_int_equal(all->captures.v[0]->device, 2);
	np_captures_free(all);
	assert_int_equal(chdir(here), 0);
}

static void every_single_file_is_a_capture(void **state)
{
	(void)state;
	static const struct {
		const char *name, *text;
		enum np_role role;
	} files[] = {
		{"kernel_details.csv", TREE_KERNELS, NP_ROLE_KERNELS},
		{"op_summary_20250101000000.csv", TREE_KERNELS, NP_ROLE_OP_SUMMARY},
		{"trace_view.json", "[]", NP_ROLE_TRACE},
		{"step_trace_time.csv", "Step\n", NP_ROLE_STEP_TRACE},
		{"communication.json", "{}", NP_ROLE_COMM_JSON},
		{"my export.csv", TREE_KERNELS, NP_ROLE_KERNELS}, /* by its content */
		{"my trace.json", "[{}]", NP_ROLE_TRACE},
		{"notes.txt", "nothing", NP_ROLE_NONE},
	};
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		tree_put(root, files[i].name, files[i].text);
		struct np_captures *all = discover(tree_path(root, files[i].name));
		assert_int_equal(all->captures.n, 1);
		if (files[i].role == NP_ROLE_NONE) {
			assert_int_equal(all->captures.v[0]->files.n, 0);
			assert_false(np_capture_has_data(all->captures.v[0]));
		} else {
			assert_non_null(np_capture_file(all->captures.v[0], files[i].role));
		}
		np_captures_free(all);
	}
}

static void a_loose_directory_is_one_capture_or_several_ranks(void **state)
{
	(void)state;
	tree_put(root, "one/kernel_details.csv", TREE_KERNELS);
	tree_put(root, "one/step_trace_time.csv", "Step\n");
	tree_put(root, "tables/kernel_details_rank0.csv", TREE_KERNELS);
	tree_put(root, "tables/kernel_details_rank1.csv", TREE_KERNELS);
	tree_put(root, "tables/step_trace_time.csv", "Step\n");
	put_db("dbs/ascend_pytorch_profiler_0.db", "CREATE TABLE TASK(startNs)");
	put_db("dbs/ascend_pytorch_profiler_1.db", "CREATE TABLE TASK(startNs)");
	struct np_captures *all = discover(root);
	assert_int_equal(all->captures.n, 5);
	assert_int_equal(all->captures.v[0]->files.n, 2);
	assert_rank(all->captures.v[0], NP_NO_I64, NP_RANK_UNKNOWN);
	assert_rank(all->captures.v[1], 0, NP_RANK_DB_NAME);
	assert_string_equal(all->captures.v[1]->group_dir, "dbs");
	assert_rank(all->captures.v[2], 1, NP_RANK_DB_NAME);
	assert_rank(all->captures.v[3], 0, NP_RANK_DIR_NAME);
	assert_rank(all->captures.v[4], 1, NP_RANK_DIR_NAME);
	assert_non_null(strstr(reason_of(all, "tables/step_trace_time.csv"), "not known"));
	np_captures_free(all);
}

static void of_two_files_of_one_kind_one_is_read(void **state)
{
	(void)state;
	tree_torch(root, "a_ascend_pt", 0);
	tree_put(root, "a_ascend_pt/ASCEND_PROFILER_OUTPUT/kernel_details_old.csv", TREE_KERNELS);
	struct np_captures *all = discover(root);
	assert_int_equal(np_capture_count(all->captures.v[0], NP_ROLE_KERNELS), 1);
	assert_non_null(strstr(np_capture_file(all->captures.v[0], NP_ROLE_KERNELS)->path,
	                       "/kernel_details.csv"));
	assert_int_equal(problems(all, "SEVERAL_FILES"), 1);
	assert_string_not_equal(reason_of(all, "kernel_details_old.csv"), "");
	np_captures_free(all);
}

#define MSPROF "PROF_000001_20250101000000000_ABC/mindstudio_profiler_output/"

static void the_older_of_two_exports_is_left_out_with_the_reason(void **state)
{
	(void)state;
	tree_put(root, MSPROF "op_summary_20250101000000.csv", "Op Name\n");
	tree_put(root, MSPROF "op_summary_slice_0_20250102000000.csv", "Op Name\n");
	tree_put(root, MSPROF "op_summary_slice_1_20250102000000.csv", "Op Name\n");
	tree_put(root, MSPROF "task_time_20250102000000.csv", "kernel_name\n");
	struct np_captures *all = discover(root);
	assert_int_equal(all->captures.n, 1);
	const struct np_capture *capture = all->captures.v[0];
	assert_kind(capture, "msprof_text");
	assert_int_equal(np_capture_count(capture, NP_ROLE_OP_SUMMARY), 2);
	assert_int_equal(np_capture_file(capture, NP_ROLE_OP_SUMMARY)->slice, 0);
	assert_non_null(np_capture_file(capture, NP_ROLE_TASK_TIME));
	assert_string_equal(reason_of(all, "op_summary_20250101000000.csv"),
	                    "an older export of the same data");
	assert_int_equal(problems(all, "SEVERAL_EXPORTS"), 1);
	assert_string_equal(capture->batch, "20250101000000000");
	np_captures_free(all);
}

/* R40, B2: the export said OK and wrote the layout of MindStudio only. */
static void the_layout_of_mindstudio_inside_of_a_torch_capture_is_used(void **state)
{
	(void)state;
	tree_put(root, "a_ascend_pt/profiler_info_4.json", "{}");
	tree_put(root, "a_ascend_pt/" MSPROF "op_summary_20250101000000.csv", TREE_KERNELS);
	tree_put(root, "a_ascend_pt/" MSPROF "msprof_20250101000000.json", "[]");
	struct np_captures *all = discover(root);
	assert_int_equal(all->captures.n, 1);
	assert_kind(all->captures.v[0], "torch_text");
	assert_int_equal(all->captures.v[0]->rank, 4);
	assert_non_null(np_capture_file(all->captures.v[0], NP_ROLE_OP_SUMMARY));
	assert_non_null(np_capture_file(all->captures.v[0], NP_ROLE_TRACE));
	np_captures_free(all);
}

static void what_torch_npu_exported_replaces_its_twin_and_nothing_else(void **state)
{
	(void)state;
	tree_put(root, "a_ascend_pt/ASCEND_PROFILER_OUTPUT/trace_view.json", "[]");
	tree_put(root, "a_ascend_pt/" MSPROF "op_summary_20250101000000.csv", TREE_KERNELS);
	tree_put(root, "a_ascend_pt/" MSPROF "msprof_20250101000000.json", "[]");
	struct np_captures *all = discover(root);
	assert_int_equal(np_capture_count(all->captures.v[0], NP_ROLE_TRACE), 1);
	assert_non_null(np_capture_file(all->captures.v[0], NP_ROLE_OP_SUMMARY));
	assert_string_equal(reason_of(all, "msprof_20250101000000.json"),
	                    "torch_npu exported the same data");
	np_captures_free(all);
	tree_torch(root, "a_ascend_pt", 0);
	all = discover(root);
	assert_null(np_capture_file(all->captures.v[0], NP_ROLE_OP_SUMMARY));
	np_captures_free(all);
}

static void mindspore_raw_and_cluster_results_are_told_apart(void **state)
{
	(void)state;
	tree_put(root, "a/x_ascend_ms/ASCEND_PROFILER_OUTPUT/kernel_details.csv", TREE_KERNELS);
	tree_put(root, "b/x_ascend_pt/FRAMEWORK/torch.op_range", "raw");
	tree_put(root, "b/x_ascend_pt/PROF_1_20250101000000000_A/device_5/data/s.slice_0", "raw");
	tree_put(root, "c/cluster_analysis_output/cluster_analysis.db", "");
	tree_put(root, "d/PROF_1_20250101000000000_A/host/data/s.slice_0", "raw!");
	tree_dir(root, "e_ascend_pt");
	struct np_captures *all = discover(root);
	assert_int_equal(all->captures.n, 5);
	assert_kind(all->captures.v[0], "torch_empty");
	assert_kind(all->captures.v[1], "mindspore_text");
	assert_kind(all->captures.v[2], "torch_raw");
	assert_int_equal(all->captures.v[2]->raw_bytes, 6);
	assert_true(all->captures.v[2]->has_framework_dir);
	assert_int_equal(all->captures.v[2]->device, 5);
	assert_kind(all->captures.v[3], "cluster_results");
	assert_kind(all->captures.v[4], "msprof_raw");
	np_captures_free(all);
}

/* ── links, depth, numbers ── */

static void links_are_followed_once_and_loops_are_told(void **state)
{
	(void)state;
	char real[TREE_PATH];
	tree_new(real);
	tree_torch(real, "x_ascend_pt", 6);
	char target[TREE_PATH + 32];
	(void)snprintf(target, sizeof target, "%s/x_ascend_pt", real);
	tree_link(root, "set/linked_ascend_pt", target);
	tree_link(root, "set/twice_ascend_pt", target);
	tree_link(root, "set/up", "..");
	tree_link(root, "set/gone", "/nonexistent/capture");
	tree_torch(root, "set/plain_ascend_pt", 1);
	tree_link(root, "set/plain_ascend_pt/ASCEND_PROFILER_OUTPUT/trace_view.json", "nowhere");
	struct np_captures *all = discover(root);
	assert_int_equal(all->captures.n, 2);
	assert_rank(all->captures.v[0], 1, NP_RANK_INFO_NAME);
	assert_rank(all->captures.v[1], 6, NP_RANK_INFO_NAME);
	assert_string_equal(reason_of(all, "twice_ascend_pt"), "reached already by another path");
	assert_string_equal(reason_of(all, "set/up"), "symbolic link to a directory above");
	assert_string_equal(reason_of(all, "set/gone"), "a link that leads nowhere");
	assert_non_null(strstr(reason_of(all, "trace_view.json"), "leads nowhere"));
	assert_int_equal(problems(all, "SYMLINK_LOOP"), 1);
	np_captures_free(all);
	tree_remove(real);
}

static void what_lies_too_deep_is_told(void **state)
{
	(void)state;
	tree_torch(root, "1/2/3/4/5/6/7/8/9/x_ascend_pt", 0);
	tree_torch(root, "1/2/3/4/5/6/7/8/9/10/y_ascend_pt", 1);
	struct np_captures *all = discover(root);
	assert_int_equal(all->captures.n, 1);
	assert_int_equal(all->captures.v[0]->rank, 0);
	assert_string_equal(reason_of(all, "8/9/10"), "deeper than 10 directories");
	np_captures_free(all);
}

static void three_hundred_captures_come_in_order_and_twice_the_same(void **state)
{
	(void)state;
	for (int i = 0; i < 300; i++) {
		char name[64];
		(void)snprintf(name, sizeof name, "n%d_%d_20250101000000000_ascend_pt", i * 7 % 300,
		               i);
		tree_torch(root, name, i);
	}
	struct np_captures *all = discover(root), *again = discover(root);
	assert_int_equal(all->captures.n, 300);
	assert_int_equal(again->captures.n, 300);
	for (size_t i = 0; i < 300; i++) {
		assert_int_equal(all->captures.v[i]->rank, i);
		assert_string_equal(all->captures.v[i]->path, again->captures.v[i]->path);
		assert_int_equal(all->captures.v[i]->files.n, again->captures.v[i]->files.n);
	}
	np_captures_free(all);
	np_captures_free(again);
}

static void any_bytes_may_stand_in_a_name(void **state)
{
	(void)state;
	static const char *const names[] = {
		"it's \"quoted\"_ascend_pt", "line\nbreak_ascend_pt",     "\x1b[31mred_ascend_pt",
		"$(rm -rf x);_ascend_pt",    "bad\xff\xfeutf8_ascend_pt", "-n_ascend_pt",
	};
	for (int i = 0; i < 6; i++)
		tree_torch(root, names[i], i);
	struct np_captures *all = discover(root);
	assert_int_equal(all->captures.n, 6);
	for (int i = 0; i < 6; i++)
		assert_string_equal(all->captures.v[i]->name, names[i]);
	np_captures_free(all);
}

/* ── whose is it ── */

static void the_sources_of_the_rank_answer_in_order(void **state)
{
	(void)state;
	static const char map[] = "CREATE TABLE RANK_DEVICE_MAP(rankId, deviceId);"
				  "INSERT INTO RANK_DEVICE_MAP VALUES(12, 4)";
	static const char plain[] = "CREATE TABLE TASK(startNs)";
	tree_put(root, "1/x_rank5_ascend_pt/profiler_info_11.json", "{\"rank_id\": 14}");
	put_db("1/x_rank5_ascend_pt/ASCEND_PROFILER_OUTPUT/ascend_pytorch_profiler_13.db", map);
	tree_put(root, "2/x_rank5_ascend_pt/profiler_info.json", "{\"rank_id\": 14}");
	put_db("2/x_rank5_ascend_pt/ASCEND_PROFILER_OUTPUT/ascend_pytorch_profiler_13.db", map);
	tree_put(root, "3/x_rank5_ascend_pt/profiler_info.json", "{\"rank_id\": 14}");
	put_db("3/x_rank5_ascend_pt/ASCEND_PROFILER_OUTPUT/ascend_pytorch_profiler_13.db", plain);
	tree_put(root, "4/x_rank5_ascend_pt/profiler_info.json", "{\"rank_id\": 14}");
	tree_put(root, "5/x_rank5_ascend_pt/profiler_info.json", "{\"rank_id\": -1}");
	tree_torch(root, "6/x_ascend_pt", -1);
	tree_put(root, "7/rank_3/PROF_1_20250101000000000_A/host/info.json", "{\"rank_id\": -1}");
	tree_put(root, "8/PROF_1_20250101000000000_A/host/info.json",
	         "{\"rank_id\": 9, \"hostname\": \"n1\"}");
	struct np_captures *all = discover(root);
	assert_int_equal(all->captures.n, 8);
	struct np_capture **v = all->captures.v;
	assert_rank(v[0], 11, NP_RANK_INFO_NAME);
	assert_rank(v[1], 12, NP_RANK_DEVICE_MAP);
	assert_int_equal(v[1]->device, 4);
	assert_rank(v[2], 13, NP_RANK_DB_NAME);
	assert_rank(v[3], 14, NP_RANK_INFO_CONTENT);
	assert_rank(v[4], 5, NP_RANK_DIR_NAME);
	assert_rank(v[5], NP_NO_I64, NP_RANK_UNKNOWN);
	assert_true(v[5]->n_a_rank_ok);
	assert_rank(v[6], 3, NP_RANK_DIR_NAME);
	assert_rank(v[7], 9, NP_RANK_INFO_CONTENT);
	assert_string_equal(v[7]->host, "n1");
	np_captures_free(all);
}

static void sources_that_contradict_each_other_are_told(void **state)
{
	(void)state;
	tree_put(root, "a_ascend_pt/profiler_info_1.json", "{\"rank_id\": 2}");
	tree_put(root, "b_ascend_pt/profiler_info_3.json", "{\"rank_id\": 3}");
	put_db("c_ascend_pt/ASCEND_PROFILER_OUTPUT/ascend_pytorch_profiler_7.db",
	       "CREATE TABLE RANK_DEVICE_MAP(rankId, deviceId);"
	       "INSERT INTO RANK_DEVICE_MAP VALUES(6, 0)");
	/* a directory often holds the rank inside of its host */
	tree_put(root, "d_rank0_ascend_pt/profiler_info_8.json", "{}");
	struct np_captures *all = discover(root);
	assert_int_equal(all->captures.n, 4);
	assert_int_equal(problems(all, "RANK_CONTRADICTION"), 2);
	assert_int_equal(all->captures.v[0]->problems.n, 1);
	assert_int_equal(all->captures.v[0]->rank, 1);
	assert_int_equal(all->captures.v[2]->rank, 6);
	np_captures_free(all);
}

static void damage_in_small_files_spoils_nothing_else(void **state)
{
	(void)state;
	tree_torch(root, "a_ascend_pt", -1);
	tree_put(root, "a_ascend_pt/profiler_info_2.json", "{\"rank_id\": 2, \"config\": ");
	tree_put(root, "a_ascend_pt/profiler_metadata.json", "{} # remark\n");
	tree_put(root, "b_ascend_pt/ASCEND_PROFILER_OUTPUT/ascend_pytorch_profiler_1.db",
	         "no database");
	struct np_captures *all = discover(root);
	assert_int_equal(all->captures.n, 2);
	assert_int_equal(all->captures.v[0]->rank, 1);
	assert_int_equal(problems(all, "DB_UNREADABLE"), 1);
	assert_int_equal(all->captures.v[1]->rank, 2);
	assert_true(problems(all, "CONFIG_UNREADABLE") + problems(all, "JSON_REPAIRED") >= 2);
	np_captures_free(all);
}

static void an_unreadable_directory_is_told_and_the_rest_found(void **state)
{
	(void)state;
	if (geteuid() == 0)
		skip(); /* nothing is unreadable for root */
	tree_torch(root, "a_ascend_pt", 0);
	tree_torch(root, "locked/b_ascend_pt", 1);
	assert_int_equal(chmod(tree_path(root, "locked"), 0), 0);
	struct np_captures *all = NULL;
	assert_int_equal(np_discover(root, &all, NULL), NP_OK);
	assert_int_equal(all->captures.n, 1);
	assert_int_equal(problems(all, "UNREADABLE"), 1);
	np_captures_free(all);
	assert_int_equal(chmod(tree_path(root, "locked"), 0700), 0);
}

static void configuration_and_groups_are_read(void **state)
{
	(void)state;
	tree_torch(root, "a_ascend_pt", -1);
	tree_put(root, "a_ascend_pt/profiler_info_0.json",
	         "{\"config\": {\"common_config\": {\"activities\": [\"ProfilerActivity.CPU\", "
	         "\"ProfilerActivity.NPU\"], \"schedule\": {\"wait\": 1, \"active\": 5, "
	         "\"warmup\": 2, \"repeat\": 1, \"skip_first\": 3}, \"record_shapes\": true, "
	         "\"profile_memory\": false}, \"experimental_config\": {\"_profiler_level\": "
	         "\"Level1\", \"_aic_metrics\": \"ACL_AICORE_PIPE_UTILIZATION\", "
	         "\"_export_type\": [\"text\", \"db\"]}}, \"torch_npu_version\": \"2.5.1\", "
	         "\"end_info\": {\"collectionTimeEnd\": 1700000000000000001}}");
	tree_put(root, "a_ascend_pt/profiler_metadata.json",
	         "{\"parallel_group_info\": {\"group_name_0\": {\"group_name\": \"default_group\", "
	         "\"group_rank\": 0, \"global_ranks\": [0, 1, 2, 3]}}, \"distributed_args\": "
	         "{\"tensor_model_parallel_size\": 2, \"data_parallel_size\": 2, \"rank\": 3, "
	         "\"sequence_parallel\": false, \"world_size\": 4}, \"pp_info\": "
	         "{\"pp_type\":\"dualpipev\",\"microbatch_num\":10}}");
	struct np_captures *all = discover(root);
	const struct np_capture *capture = all->captures.v[0];
	const struct np_config *config = &capture->config;
	assert_true(config->recorded);
	assert_string_equal(config->level, "Level1");
	assert_string_equal(config->aic_metrics, "PipeUtilization");
	assert_string_equal(config->activities, "CPU,NPU");
	assert_string_equal(config->export_types, "text,db");
	assert_string_equal(config->torch_npu_version, "2.5.1");
	assert_int_equal(config->active, 5);
	assert_int_equal(config->skip_first, 3);
	assert_int_equal(config->record_shapes, 1);
	assert_int_equal(config->profile_memory, 0);
	assert_int_equal(config->with_stack, -1);
	assert_int_equal(config->end_ns, 1700000000000000001);
	assert_int_equal(capture->world_size, 4);
	assert_string_equal(capture->distributed, "tp=2 dp=2");
	assert_true(capture->parallel.tp == 2 && capture->parallel.dp == 2);
	assert_true(capture->parallel.pp == NP_NO_I64 && capture->parallel.world == 4);
	assert_string_equal(capture->distributed_args,
	                    "{\"tensor_model_parallel_size\": 2, \"data_parallel_size\": 2, "
	                    "\"sequence_parallel\": false, \"world_size\": 4}");
	assert_string_equal(capture->pp_info,
	                    "{\"pp_type\": \"dualpipev\", \"microbatch_num\": 10}");
	assert_int_equal(capture->n_rank_devices, 0);
	assert_true(!capture->chip.recorded && isnan(capture->chip.aic_mhz));
	assert_int_equal(capture->n_groups, 1);
	assert_int_equal(capture->groups[0].n_ranks, 4);
	np_captures_free(all);
}

static void a_database_and_its_raw_dump_tell_as_much(void **state)
{
	(void)state;
	tree_put(root, "a_ascend_pt/profiler_info_0.json", "{}");
	tree_put(root, "a_ascend_pt/PROF_1_2_A/host/info.json", "{\"DeviceInfo\": []}");
	tree_put(root, "a_ascend_pt/PROF_1_2_A/device_3/info.json.3",
	         "{\"DeviceInfo\": [{\"id\": 3, \"ai_core_num\": 24, \"aic_frequency\": "
	         "\"1800\"}, {\"ai_core_num\": 9}], \"rank_id\": 5}");
	tree_put(root, "a_ascend_pt/ASCEND_PROFILER_OUTPUT/x.txt", "");
	put_db("a_ascend_pt/ASCEND_PROFILER_OUTPUT/ascend_pytorch_profiler_0.db",
	       "CREATE TABLE RANK_DEVICE_MAP(rankId INTEGER, deviceId INTEGER);"
	       "INSERT INTO RANK_DEVICE_MAP VALUES(0,3),(1,-1);"
	       "CREATE TABLE HOST_INFO(hostUid TEXT,hostName TEXT);"
	       "INSERT INTO HOST_INFO VALUES('77','host-a');"
	       "CREATE TABLE META_DATA(name TEXT,value TEXT);"
	       "INSERT INTO META_DATA VALUES('SCHEMA_VERSION','1.0.0'),('distributed_args',"
	       "'{\"pipeline_model_parallel_size\": 2, \"rank\": 0}'),('pp_info','[1]'),"
	       "('pp_info','{\"microbatch_num\": 8}'),('parallel_group_info',"
	       "'{\"c\": {\"group_name\": \"pp\", \"global_ranks\": [0, 4]}}');");
	struct np_captures *all = discover(root);
	const struct np_capture *capture = all->captures.v[0];
	assert_int_equal(capture->n_rank_devices, 2);
	assert_true(capture->rank_devices[0].rank == 0 && capture->rank_devices[0].device == 3);
	assert_true(capture->rank_devices[1].rank == 1);
	assert_true(capture->rank_devices[1].device == NP_NO_I64);
	assert_int_equal(capture->device, 3);
	assert_string_equal(capture->host, "host-a");
	assert_string_equal(capture->host_uid, "77");
	assert_true(capture->chip.recorded && capture->chip.ai_cores == 24);
	assert_true(capture->chip.aic_mhz == 1800 && capture->chip.rank == 5);
	assert_true(capture->parallel.pp == 2 && capture->parallel.world == NP_NO_I64);
	assert_string_equal(capture->distributed_args, "{\"pipeline_model_parallel_size\": 2}");
	assert_string_equal(capture->pp_info, "{\"microbatch_num\": 8}");
	assert_int_equal(capture->n_groups, 1);
	np_captures_free(all);
}

static void a_group_is_called_by_its_hash(void **state)
{
	(void)state;
	char key[NP_GROUP_KEY_SIZE];
	/* of a real capture: COMMUNICATION_OP and CommAnalyzerTime of one rank */
	np_group_key(NP_STR("90.91.105.46%enp189s0f0_60000_0_1736414082311975"), key);
	assert_string_equal(key, "11978775601474615865");
	np_group_key(NP_STR("11978775601474615865"), key);
	assert_string_equal(key, "11978775601474615865");
	np_group_key(NP_STR("18446744073709551616"), key); /* no 64-bit number: a name */
	assert_string_not_equal(key, "18446744073709551616");
	np_group_key(NP_STR(""), key);
	assert_string_equal(key, "0");
}

/* ── archives ── */

static void put_archive(const char *name, int format, int filter, const char *const *members,
                        size_t n)
{
	struct archive *out = archive_write_new();
	assert_int_equal(archive_write_set_format(out, format), ARCHIVE_OK);
	assert_int_equal(archive_write_add_filter(out, filter), ARCHIVE_OK);
	assert_int_equal(archive_write_open_filename(out, tree_path(root, name)), ARCHIVE_OK);
	for (size_t i = 0; i < n; i++) {
		struct archive_entry *entry = archive_entry_new();
		archive_entry_set_pathname(entry, members[i]);
		archive_entry_set_size(entry, sizeof TREE_KERNELS - 1);
		archive_entry_set_filetype(entry, AE_IFREG);
		archive_entry_set_perm(entry, 0644);
		archive_entry_set_mtime(entry, 1700000000, 0);
		assert_int_equal(archive_write_header(out, entry), ARCHIVE_OK);
		(void)archive_write_data(out, TREE_KERNELS, sizeof TREE_KERNELS - 1);
		archive_entry_free(entry);
	}
	assert_int_equal(archive_write_close(out), ARCHIVE_OK);
	assert_int_equal(archive_write_free(out), ARCHIVE_OK);
}

static void captures_in_archives_are_found_and_what_was_unpacked_goes(void **state)
{
	(void)state;
	static const char *const members[] = {
		"p/a_1_20250101000000000_ascend_pt/profiler_info_2.json",
		"p/a_1_20250101000000000_ascend_pt/ASCEND_PROFILER_OUTPUT/kernel_details.csv",
	};
	static const struct {
		const char *name;
		int format, filter;
	} kinds[] = {
		{"c.tar", ARCHIVE_FORMAT_TAR_PAX_RESTRICTED, ARCHIVE_FILTER_NONE},
		{"c.tar.gz", ARCHIVE_FORMAT_TAR_GNUTAR, ARCHIVE_FILTER_GZIP},
		{"c.zip", ARCHIVE_FORMAT_ZIP, ARCHIVE_FILTER_NONE},
	};
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		put_archive(kinds[i].name, kinds[i].format, kinds[i].filter, members, 2);
		char path[2 * TREE_PATH], unpacked[TREE_PATH];
		(void)snprintf(path, sizeof path, "%s", tree_path(root, kinds[i].name));
		struct np_captures *all = discover(path);
		assert_int_equal(all->captures.n, 1);
		assert_rank(all->captures.v[0], 2, NP_RANK_INFO_NAME);
		/* the times in the archive are evidence (requirements 6.5) */
		assert_int_equal(np_capture_file(all->captures.v[0], NP_ROLE_KERNELS)->mtime_ns,
		                 INT64_C(1700000000) * 1000000000);
		(void)snprintf(unpacked, sizeof unpacked, "%s", all->temp_dir);
		assert_int_equal(access(unpacked, F_OK), 0);
		np_captures_free(all);
		assert_int_not_equal(access(unpacked, F_OK), 0);
	}
}

static void members_that_would_leave_the_directory_are_refused(void **state)
{
	(void)state;
	static const char *const members[] = {
		"a_ascend_pt/ASCEND_PROFILER_OUTPUT/kernel_details.csv", "../../outside.csv",
		"/etc/outside.csv"};
	put_archive("evil.tar", ARCHIVE_FORMAT_TAR_PAX_RESTRICTED, ARCHIVE_FILTER_NONE, members, 3);
	struct np_captures *all = discover(tree_path(root, "evil.tar"));
	assert_int_equal(all->captures.n, 1);
	assert_int_equal(problems(all, "ARCHIVE_UNSAFE_MEMBER"), 1);
	np_captures_free(all);
}

static void of_a_cut_archive_the_whole_part_is_used(void **state)
{
	(void)state;
	static const char *const members[] = {
		"a_ascend_pt/ASCEND_PROFILER_OUTPUT/kernel_details.csv",
		"a_ascend_pt/ASCEND_PROFILER_OUTPUT/op_statistic.csv"};
	put_archive("cut.tar", ARCHIVE_FORMAT_TAR_USTAR, ARCHIVE_FILTER_NONE, members, 2);
	assert_int_equal(truncate(tree_path(root, "cut.tar"), 512 * 3 + 40), 0);
	struct np_captures *all = discover(tree_path(root, "cut.tar"));
	assert_int_equal(all->captures.n, 1);
	assert_int_equal(problems(all, "ARCHIVE_DAMAGED"), 1);
	assert_non_null(np_capture_file(all->captures.v[0], NP_ROLE_KERNELS));
	np_captures_free(all);
}

/* ── errors ── */

static void what_is_not_there_is_an_error_and_what_is_empty_is_not(void **state)
{
	(void)state;
	struct np_captures *all = NULL;
	struct np_err err = {0};
	assert_int_equal(np_discover("/nonexistent/x", &all, &err), NP_E_NOTFOUND);
	assert_null(all);
	assert_int_equal(np_discover("/dev/null", &all, &err), NP_E_FORMAT);
	all = discover(root);
	assert_int_equal(all->captures.n, 0);
	np_captures_free(all);
	np_captures_free(NULL);
}

/* Discover with the n-th allocation and all behind it failing; is one left after that? */
static enum np_status discover_until(uint64_t n, bool *left)
{
	struct np_captures *all = NULL;
	np_mem_fail_after(n);
	enum np_status status = np_discover(root, &all, NULL);
	void *probe = np_alloc(1);
	np_mem_fail_after(0);
	if (left)
		*left = probe != NULL;
	np_free(probe);
	assert_true(status == NP_OK || all == NULL);
	np_captures_free(all);
	return status;
}

static void memory_may_run_out_anywhere(void **state)
{
	(void)state;
	tree_torch(root, "a_rank5_ascend_pt", 0);
	tree_put(root, "a_rank5_ascend_pt/profiler_metadata.json",
	         "{\"parallel_group_info\": {\"g\": {\"global_ranks\": [0, 1]}}}");
	tree_link(root, "up", ".");
	uint64_t n = 1;
	while (n < 4000 && discover_until(n, NULL) == NP_E_NOMEM)
		n++;
	/* it needs n - 1: with one more it leaves one, or it went on without one of them */
	bool left = false;
	assert_int_equal(discover_until(n + 1, &left), NP_OK);
	assert_true(left);
	assert_true(n > 10);
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(a_flat_cluster_root_is_sorted_by_rank),
		T(directories_of_hosts_and_roles_are_told_as_groups),
		T(the_output_directory_may_be_given_itself),
		T(the_current_directory_has_a_name_too),
		T(every_single_file_is_a_capture),
		T(a_loose_directory_is_one_capture_or_several_ranks),
		T(of_two_files_of_one_kind_one_is_read),
		T(the_older_of_two_exports_is_left_out_with_the_reason),
		T(the_layout_of_mindstudio_inside_of_a_torch_capture_is_used),
		T(what_torch_npu_exported_replaces_its_twin_and_nothing_else),
		T(mindspore_raw_and_cluster_results_are_told_apart),
		T(links_are_followed_once_and_loops_are_told),
		T(what_lies_too_deep_is_told),
		T(three_hundred_captures_come_in_order_and_twice_the_same),
		T(any_bytes_may_stand_in_a_name),
		T(the_sources_of_the_rank_answer_in_order),
		T(sources_that_contradict_each_other_are_told),
		T(damage_in_small_files_spoils_nothing_else),
		T(an_unreadable_directory_is_told_and_the_rest_found),
		T(configuration_and_groups_are_read),
		T(a_database_and_its_raw_dump_tell_as_much),
		T(a_group_is_called_by_its_hash),
		T(captures_in_archives_are_found_and_what_was_unpacked_goes),
		T(members_that_would_leave_the_directory_are_refused),
		T(of_a_cut_archive_the_whole_part_is_used),
		T(what_is_not_there_is_an_error_and_what_is_empty_is_not),
		T(memory_may_run_out_anywhere),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
