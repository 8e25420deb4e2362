#include "unit.h"

#include "collect/deploy_tree.h"
#include "collect/manifest.h"
#include "collect/rank_set.h"
#include "collect/remote_list.h"
#include "collect/remote_path.h"

static void paths_name_a_host_as_scp_does(void **state)
{
	static const struct {
		const char *text, *host, *path;
	} cases[] = {
		{"node7:/data", "node7", "/data"},
		{"user@node7:prof", "user@node7", "prof"},
		{"node7:~/a b", "node7", "~/a b"},
		{"[fe80::1]:/data", "[fe80::1]", "/data"},
		{"me@[fe80::1%eth0]:x", "me@[fe80::1%eth0]", "x"},
		{"ssh://u@n:22/d/e", "u@n:22", "/d/e"},
		{"/data/with:colon", NULL, "/data/with:colon"},
		{"./a:b", NULL, "./a:b"},
		{"plain", NULL, "plain"},
		{"a[1]:x", "a[1]", "x"},
	};
	static const char *const bad[] = {"", ":/x", "node7:", "ssh://node7", "ssh:///x"};
	struct np_arena arena;
	struct np_remote_path out;
	(void)state;
	np_arena_init(&arena);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		assert_int_equal(np_remote_path_parse(&arena, cases[i].text, &out, NULL), NP_OK);
		if (cases[i].host)
			assert_string_equal(out.host, cases[i].host);
		else
			assert_null(out.host);
		assert_string_equal(out.path, cases[i].path);
	}
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_int_equal(np_remote_path_parse(&arena, bad[i], &out, NULL), NP_E_USAGE);
	np_arena_release(&arena);
}

static void ranks_are_sorted_and_each_once(void **state)
{
	static const char *const bad[] = {"", ",", "x", "3-1", "-1", "1-", "1,,2", "1-99999999999"};
	struct np_arena arena;
	struct np_rank_set set = {0};
	(void)state;
	np_arena_init(&arena);
	assert_int_equal(np_rank_set_parse(&arena, "7,0-2, 1,2", &set, NULL), NP_OK);
	assert_int_equal(set.n, 4);
	assert_int_equal(set.v[0], 0);
	assert_int_equal(set.v[3], 7);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_int_equal(np_rank_set_parse(&arena, bad[i], &set, NULL), NP_E_USAGE);
	assert_int_equal(np_rank_set_parse(&arena, "0-99999999", &set, NULL), NP_E_LIMIT);
	np_arena_release(&arena);
}

static void paths_that_leave_are_no_safe_paths(void **state)
{
	static const char *const good[] = {"a", "a/b", ".hidden", "a..b/..c", "-x", "a b"};
	static const char *const bad[] = {"", "/a", "../a", "a/..", "a//b", "a/", "./a", "a/./b"};
	char longest[4200];
	(void)state;
	for (size_t i = 0; i < sizeof good / sizeof *good; i++)
		assert_true(np_is_safe_path(np_str_of(good[i])));
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_false(np_is_safe_path(np_str_of(bad[i])));
	assert_false(np_is_safe_path((np_str){"a\0b", 3}));
	memset(longest, 'a', sizeof longest);
	assert_false(np_is_safe_path((np_str){longest, sizeof longest}));
}

#define LIST(text) ((np_str){text, sizeof text - 1})

static void a_list_tells_files_ranks_and_links(void **state)
{
	static const char text[] = "root /data\0has zstd\0f 3 1.5 644 ./b_ascend_pt/x/k.csv\0"
				   "f 4 2.000000001 755 ./b_ascend_pt/profiler_info_12.json\0"
				   "f 0 0 600 ./a b\0l 5 1.0 777 ./link\0p 0 1.0 644 ./fifo\0"
				   "f 1 1.0 644 ./c_ascend_pt/profiler_info.json\0"
				   "f 1 1.0 644 ./d_ascend_pt/O/ascend_pytorch_profiler_3.db\0";
	struct np_remote_list list;
	struct np_err err = {0};
	(void)state;
	assert_int_equal(np_remote_list_parse(&list, LIST(text), "host", &err), NP_OK);
	assert_string_equal(list.root, "/data");
	assert_true(list.tools.zstd);
	assert_false(list.tools.openssl);
	assert_int_equal(list.files.n, 5);
	assert_string_equal(list.files.v[0].path, "a b");
	assert_int_equal(list.files.v[0].rank, NP_REMOTE_NO_RANK);
	assert_int_equal(list.files.v[1].rank, 12);
	assert_int_equal(list.files.v[1].mtime_ns, 2000000001);
	assert_int_equal(list.files.v[1].mode, 0755);
	assert_int_equal(list.files.v[2].rank, 12);
	assert_int_equal(list.files.v[3].rank, NP_REMOTE_NO_RANK);
	assert_int_equal(list.files.v[4].rank, 3);
	assert_int_equal(list.links.n, 1);
	assert_int_equal(list.n_others, 1);
	np_remote_list_release(&list);
}

static void lists_that_lie_are_refused(void **state)
{
	static const np_str bad[] = {
		LIST("f 1 1.0 644 ./x\0"),        /* no root */
		LIST("root /d\0f 1 1.0 644 ./x"), /* cut */
		LIST("root /d\0f -1 1.0 644 ./x\0"),
		LIST("root /d\0f 1 1.0 999 ./x\0"),
		LIST("root /d\0f 1 x 644 ./x\0"),
		LIST("root /d\0f 1 1.0 644 ../x\0"),
		LIST("root /d\0f 1 1.0 644 ./a/../../x\0"),
		LIST("root /d\0f 1 1.0 644 /etc/passwd\0"),
		LIST("root /d\0f 1 1.0 644 ./x\0f 2 1.0 644 ./x\0"),
		LIST("root /d\0f 99999999999999999999 1.0 644 ./x\0"),
		LIST("\0"),
	};
	struct np_remote_list list;
	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		assert_int_not_equal(np_remote_list_parse(&list, bad[i], "host", NULL), NP_OK);
		np_remote_list_release(&list);
	}
}

static void carriage_returns_go_before_line_feeds_only(void **state)
{
	struct np_buf text = {0};
	(void)state;
	np_buf_add_cstr(&text, "a\r\nb\rc\r\r\n\r");
	assert_true(np_drop_cr(&text));
	assert_int_equal(text.len, 8);
	assert_memory_equal(text.ptr, "a\nb\rc\r\n\r", 8);
	assert_false(np_drop_cr(&(struct np_buf){0}));
	np_buf_release(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paths_name_a_host_as_scp_does),
		cmocka_unit_test(ranks_are_sorted_and_each_once),
		cmocka_unit_test(paths_that_leave_are_no_safe_paths),
		cmocka_unit_test(a_list_tells_files_ranks_and_links),
		cmocka_unit_test(lists_that_lie_are_refused),
		cmocka_unit_test(carriage_returns_go_before_line_feeds_only),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
