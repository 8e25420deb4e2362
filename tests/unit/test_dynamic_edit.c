/* Editing profiler_config.json: the text, the file in place, and the logs that tell of it. */
#include <sys/stat.h>
#include <sys/wait.h>

#include "collect/dynamic_log.h"
#include "collect/dynamic_store.h"
#include "collect/dynamic_text.h"
#include "collect/dynamic_watch.h"
#include "profile/profile.h"
#include "temp_tree.h"

static void edited(const char *text, const struct np_dyn_change *changes, size_t n,
                   const char *expected)
{
	struct np_buf out = {0};
	struct np_err err = {0};
	if (np_dyn_text_edit(np_str_of(text), "test", changes, n, &out, &err) != NP_OK)
		fail_msg("%s: %s", err.where, err.msg);
	assert_str(np_buf_str(&out), expected);
	np_buf_release(&out);
}

static void only_the_value_changes(void **state)
{
	(void)state;
	const struct np_dyn_change steps[] = {{NP_DYN_ACTIVE, "3"}, {NP_DYN_START_STEP, "-1"}};
	const struct np_dyn_change level[] = {{NP_DYN_LEVEL, "\"Level2\""}};
	const struct np_dyn_change ranks[] = {{NP_DYN_RANK_LIST, "[0, 1]"}};
	edited("{ \"start_step\" :  0 ,\t\"odd\":{\"active\":9},\"active\":1}\n", steps, 2,
	       "{ \"start_step\" :  -1 ,\t\"odd\":{\"active\":9},\"active\":3}\n");
	/* added behind the last member, with its space */
	edited("{\n    \"active\": 3\n}", steps, 2,
	       "{\n    \"active\": 3,\n    \"start_step\": -1\n}");
	edited("{}", steps, 2, "{\"active\": 3, \"start_step\": -1}");
	edited("{\"experimental_config\": {\"a\":1}}", level, 1,
	       "{\"experimental_config\": {\"a\":1,\"profiler_level\": \"Level2\"}}");
	edited("{\"experimental_config\": null}", level, 1,
	       "{\"experimental_config\": {\"profiler_level\": \"Level2\"}}");
	edited("{\"x\": 1}", level, 1,
	       "{\"x\": 1,\"experimental_config\": {\"profiler_level\": \"Level2\"}}");
	/* what is so already keeps its spelling */
	edited("{\"rank_list\": [ 0,1 ]}", ranks, 1, "{\"rank_list\": [ 0,1 ]}");
	/* of equal keys the last one counts */
	edited("{\"rank_list\": [], \"rank_list\": [5]}", ranks, 1,
	       "{\"rank_list\": [], \"rank_list\": [0, 1]}");
	edited("{\"rank\\u005flist\": []}", ranks, 1, "{\"rank\\u005flist\": [0, 1]}");
}

static void what_is_no_json_is_refused(void **state)
{
	static const char *const bad[] = {
		"",        "[]", "{\"a\": 1,}", "{\"a\": 1} # x", "{\"a\": tru}", "{\"a\": 1}}",
		"{'a': 1}"};
	const struct np_dyn_change step = {NP_DYN_START_STEP, "-1"};
	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct np_buf out = {0};
		struct np_err err = {0};
		assert_int_not_equal(
			np_dyn_text_edit(np_str_of(bad[i]), "test", &step, 1, &out, &err), NP_OK);
		assert_true(err.msg[0] != '\0');
		assert_int_equal(out.len, 0);
		np_buf_release(&out);
	}
}

static void comments_are_taken_out_but_not_of_strings(void **state)
{
	struct np_buf out = {0};
	(void)state;
	np_dyn_strip_comments(NP_STR("{\n\"a\": \"# no // no\\\" #\", # yes\n\"b\": 1 // yes\n}#"),
	                      &out);
	assert_str(np_buf_str(&out), "{\n\"a\": \"# no // no\\\" #\",\n\"b\": 1\n}");
	np_buf_release(&out);
}

/* ── in place ── */

struct wish {
	enum np_dyn_id id;
	char json[64];
};

static enum np_status set_field(void *context, np_str old, struct np_buf *out, struct np_err *err)
{
	const struct wish *wish = context;
	const struct np_dyn_change change = {wish->id, wish->json};
	return np_dyn_text_edit(old, "test", &change, 1, out, err);
}

static void rewrite(const char *path, enum np_dyn_id id, const char *json, bool no_lease)
{
	struct wish wish = {.id = id};
	struct np_dyn_rewrite how = {.same_second = true, .no_lease = no_lease};
	struct np_err err = {0};
	(void)snprintf(wish.json, sizeof wish.json, "%s", json);
	if (np_dyn_rewrite(path, set_field, &wish, &how, &err) != NP_OK) {
		(void)fprintf(stderr, "%s: %s\n", err.where, err.msg);
		_exit(1);
	}
	np_dyn_rewrite_release(&how);
}

enum { ROUNDS = 150 };

/* In a process of its own: a field of its own, now longer, now shorter. */
static pid_t start_editor(const char *path, enum np_dyn_id id, const char *long_json)
{
	pid_t pid = fork();
	assert_true(pid >= 0);
	for (int i = 0; pid == 0 && i < ROUNDS; i++)
		rewrite(path, id, i % 2 ? "\"x\"" : long_json, false);
	if (pid == 0)
		_exit(0);
	return pid;
}

static bool is_valid(const char *path, np_str *text, struct np_arena *arena)
{
	struct np_dyn_text doc;
	char bytes[4096];
	FILE *file = fopen(path, "rbe");
	assert_non_null(file);
	size_t got = fread(bytes, 1, sizeof bytes, file);
	(void)fclose(file);
	*text = np_arena_dup(arena, (np_str){bytes, got});
	if (np_dyn_text_read(arena, *text, path, true, &doc, NULL) != NP_OK)
		return false;
	bool complete =
		np_dyn_member(&doc, NP_DYN_METADATA) && np_dyn_member(&doc, NP_DYN_PROF_DIR);
	np_dyn_text_release(&doc);
	return complete;
}

static void a_reader_sees_json_at_every_instant(void **state)
{
	char root[TREE_PATH], path[TREE_PATH + 32];
	struct stat before, after;
	pid_t editors[2];
	size_t reads = 0;
	int running = 2, status;
	np_str text;
	(void)state;
	tree_new(root);
	tree_put(root, NP_DYN_FILE_NAME,
	         "{\n  \"prof_dir\": \"x\",\n  \"metadata\": {\"mine\": [1, 2]},\n"
	         "  \"experimental_config\": {\"aic_metrics\": \"x\"}\n}\n");
	(void)snprintf(path, sizeof path, "%s/" NP_DYN_FILE_NAME, root);
	assert_int_equal(stat(path, &before), 0);
	editors[0] = start_editor(path, NP_DYN_PROF_DIR, "\"/a/path/of/some/length\"");
	editors[1] = start_editor(path, NP_DYN_METRICS, "\"ArithmeticUtilization\"");
	while (running > 0) {
		struct np_arena arena;
		np_arena_init(&arena);
		if (!is_valid(path, &text, &arena))
			fail_msg("after %zu reads: '%.*s'", reads, NP_FMT(text));
		np_arena_release(&arena);
		reads++;
		for (int i = 0; i < 2; i++)
			if (editors[i] && waitpid(editors[i], &status, WNOHANG) == editors[i]) {
				assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
				editors[i] = 0;
				running--;
			}
	}
	assert_true(reads > 10);
	assert_int_equal(stat(path, &after), 0);
	assert_int_equal(before.st_ino, after.st_ino);
	struct np_arena arena;
	np_arena_init(&arena);
	assert_true(is_valid(path, &text, &arena));
	assert_str(text, "{\n  \"prof_dir\": \"x\",\n  \"metadata\": {\"mine\": [1, 2]},\n"
	                 "  \"experimental_config\": {\"aic_metrics\": \"x\"}\n}\n");
	np_arena_release(&arena);
	tree_remove(root);
}

static void without_leases_the_file_is_right_too(void **state)
{
	char root[TREE_PATH], path[TREE_PATH + 32];
	struct np_arena arena;
	np_str text;
	(void)state;
	tree_new(root);
	tree_put(root, NP_DYN_FILE_NAME, "{\"prof_dir\": \"x\", \"metadata\": {}}\n");
	(void)snprintf(path, sizeof path, "%s/" NP_DYN_FILE_NAME, root);
	rewrite(path, NP_DYN_PROF_DIR, "\"something longer\"", true);
	rewrite(path, NP_DYN_PROF_DIR, "\"y\"", true);
	np_arena_init(&arena);
	assert_int_equal(np_file_slurp(&arena, path, 4096, &text, NULL), NP_OK);
	assert_str(text, "{\"prof_dir\": \"y\", \"metadata\": {}}\n");
	np_arena_release(&arena);
	tree_remove(root);
}

static void the_second_of_the_mtime_grows(void **state)
{
	char root[TREE_PATH], path[TREE_PATH + 32];
	struct wish wish = {.id = NP_DYN_START_STEP, .json = "-1"};
	struct np_err err = {0};
	(void)state;
	tree_new(root);
	tree_put(root, NP_DYN_FILE_NAME, "{\"start_step\": -1}");
	(void)snprintf(path, sizeof path, "%s/" NP_DYN_FILE_NAME, root);
	for (int i = 0; i < 2; i++) {
		struct np_dyn_rewrite how = {0};
		assert_int_equal(np_dyn_rewrite(path, set_field, &wish, &how, &err), NP_OK);
		assert_true(how.mtime_after / 1000000000 > how.mtime_before / 1000000000);
		assert_true(how.mtime_after <= np_time_now());
		assert_false(how.overwritten);
		np_dyn_rewrite_release(&how);
	}
	/* a time in the future: ranks would ignore what we write */
	const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = time(NULL) + 3600}};
	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
	struct np_dyn_rewrite how = {0};
	assert_int_equal(np_dyn_rewrite(path, set_field, &wish, &how, &err), NP_E_RANGE);
	np_dyn_rewrite_release(&how);
	tree_remove(root);
}

/* ── logs ── */

static void log_names_are_taken_apart(void **state)
{
	struct np_arena arena;
	struct np_dyn_log log;
	(void)state;
	np_arena_init(&arena);
	assert_true(np_dyn_log_name(&arena, "dp_node_1_4711_rank_12.log", &log));
	assert_string_equal(log.host, "node_1");
	assert_int_equal(log.pid, 4711);
	assert_int_equal(log.rank, 12);
	assert_false(log.is_monitor);
	assert_true(np_dyn_log_name(&arena, "monitor_dp_h_1_rank_-1.log", &log));
	assert_true(log.is_monitor && log.rank == -1);
	assert_false(np_dyn_log_name(&arena, "dp_h_1_rank_0.log.1", &log));
	assert_false(np_dyn_log_name(&arena, "dp_h_rank_x.log", &log));
	assert_false(np_dyn_log_name(&arena, ".log", &log));
	np_arena_release(&arena);
}

static void log_lines_make_states(void **state)
{
	static const struct {
		const char *text;
		enum np_dyn_state state;
		int64_t start, stop;
	} cases[] = {
		{"", NP_DYN_WAITING, -1, -1},
		{"Rank 3 shared memory is connected.\n", NP_DYN_WAITING, -1, -1},
		{"Start step will be set to 12.\n", NP_DYN_TRIGGERED, 12, -1},
		{"\033[1mStart Dynamic Profiler at 12 step.\033[0m\n", NP_DYN_RECORDING, 12, -1},
		{"Start Dynamic Profiler at 12 step.", NP_DYN_WAITING, -1, -1}, /* half a line */
		{"Start Dynamic Profiler at 12 step.\nStop Dynamic Profiler at 15 step.\n",
	         NP_DYN_STOPPED, 12, 15},
		{"Rank 0 not in valid rank_list [1]!\n", NP_DYN_EXCLUDED, -1, -1},
		{"Dynamic Profiler config is not effective. The start_step=3, current_step=9\n",
	         NP_DYN_REFUSED, -1, -1},
		{"Share memory read error: x\n", NP_DYN_BROKEN, -1, -1},
		{"Start Dynamic Profiler at 1 step.\nProfiler stop when process exit, check cfg "
	         "json active whether over all step!\n",
	         NP_DYN_ENDED, 1, -1},
		{"Start Dynamic Profiler at 99999999999999999999 step.\n", NP_DYN_RECORDING, -1,
	         -1},
	};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct np_dyn_log log = {.start_step = -1, .stop_step = -1};
		np_dyn_log_take(&log, np_str_of(cases[i].text), 0, 0);
		if (log.state != cases[i].state || log.start_step != cases[i].start ||
		    log.stop_step != cases[i].stop)
			fail_msg("case %zu: %s", i, np_dyn_state_name(log.state));
	}
}

static void lines_before_the_trigger_do_not_count(void **state)
{
	static const char text[] = "[2025-03-01 10:00:00,123] Start Dynamic Profiler at 1 step.\n"
				   "[2025-03-01 10:00:05,123] Stop Dynamic Profiler at 3 step.\n"
				   "[2025-03-01 10:10:00,123] Start Dynamic Profiler at 90 step.\n";
	struct tm local = {.tm_year = 125,
	                   .tm_mon = 2,
	                   .tm_mday = 1,
	                   .tm_hour = 10,
	                   .tm_min = 5,
	                   .tm_isdst = -1};
	np_ns since = (np_ns)mktime(&local) * 1000000000;
	(void)state;
	struct np_dyn_log log = {.start_step = -1, .stop_step = -1};
	np_dyn_log_take(&log, np_str_of(text), since, 0);
	assert_int_equal(log.state, NP_DYN_RECORDING);
	assert_int_equal(log.start_step, 90);
	assert_int_equal(log.stop_step, -1);
	/* written by a container that is eight hours behind */
	np_ns written = since + (5 * 60 + 1) * 1000000000LL + 8 * 3600 * 1000000000LL;
	np_ns shift = np_dyn_log_shift(np_str_of(text), written);
	assert_int_equal(shift, 8 * 3600 * 1000000000LL);
	struct np_dyn_log other = {.start_step = -1, .stop_step = -1};
	np_dyn_log_take(&other, np_str_of(text), since + shift, shift);
	assert_int_equal(other.state, NP_DYN_RECORDING);
	assert_int_equal(other.start_step, 90);
}

static void milliseconds_tell_two_triggers_apart(void **state)
{
	struct tm local = {
		.tm_year = 125, .tm_mon = 2, .tm_mday = 1, .tm_hour = 10, .tm_isdst = -1};
	np_ns second = (np_ns)mktime(&local) * 1000000000, named;
	np_ns since = second + 300000000;
	struct np_dyn_log early = {.start_step = -1}, late = early, coarse = early;
	(void)state;
	np_dyn_log_take(&early,
	                NP_STR("[2025-03-01 10:00:00,123] Start Dynamic Profiler at 1 step.\n"),
	                since, 0);
	np_dyn_log_take(&late,
	                NP_STR("[2025-03-01 10:00:00,300] Start Dynamic Profiler at 2 step.\n"),
	                since, 0);
	np_dyn_log_take(&coarse, NP_STR("2025-03-01 10:00:00 Start Dynamic Profiler at 3 step.\n"),
	                since, 0);
	assert_int_equal(early.state, NP_DYN_WAITING);
	assert_int_equal(late.start_step, 2);
	assert_int_equal(coarse.start_step, 3);
	assert_true(np_dyn_output_time("h_1_20250301100000250_ascend_pt", &named));
	assert_int_equal(named, second + 250000000);
	assert_false(np_dyn_output_time("rank0_ascend_pt", &named));
	assert_false(np_dyn_output_time("20250301100000250_ascend_pt", &named));
}

static void ranks_of_the_command_line(void **state)
{
	static const struct {
		const char *text;
		size_t n;
		int64_t first, last;
	} cases[] = {{"4", 4, 0, 3},  {"5,", 1, 5, 5}, {"0,3,8-11", 6, 0, 11}, {"3,1,3", 2, 1, 3},
	             {"", 0, 0, 0},   {"a", 0, 0, 0},  {"-1", 0, 0, 0},        {"3-1", 0, 0, 0},
	             {"0-", 0, 0, 0}, {"0", 1, 0, 0}};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		int64_t *ranks = NULL;
		size_t n = 0;
		enum np_status status = np_dyn_ranks_parse(cases[i].text, &ranks, &n, NULL);
		if ((status == NP_OK) != (cases[i].n > 0) || n != cases[i].n)
			fail_msg("'%s': %zu", cases[i].text, n);
		if (n)
			assert_true(ranks[0] == cases[i].first && ranks[n - 1] == cases[i].last);
		np_free(ranks);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_the_value_changes),
		cmocka_unit_test(what_is_no_json_is_refused),
		cmocka_unit_test(comments_are_taken_out_but_not_of_strings),
		cmocka_unit_test(a_reader_sees_json_at_every_instant),
		cmocka_unit_test(without_leases_the_file_is_right_too),
		cmocka_unit_test(the_second_of_the_mtime_grows),
		cmocka_unit_test(log_names_are_taken_apart),
		cmocka_unit_test(log_lines_make_states),
		cmocka_unit_test(lines_before_the_trigger_do_not_count),
		cmocka_unit_test(milliseconds_tell_two_triggers_apart),
		cmocka_unit_test(ranks_of_the_command_line),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
