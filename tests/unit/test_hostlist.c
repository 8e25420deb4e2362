/* Lists of hosts. */
#include "collect/hostlist.h"

#include "unit.h"

/* The names of a list, a space between; "!" and the message when it is refused. */
static const char *names(const char *list)
{
	static char text[4096];
	struct np_hosts hosts;
	struct np_err err = {0};
	size_t len = 0;
	np_hosts_init(&hosts);
	text[0] = '\0';
	if (np_hosts_parse(&hosts, np_str_of(list), "HOST", &err) != NP_OK)
		(void)snprintf(text, sizeof text, "! %s: %s", err.where, err.msg);
	else
		for (size_t i = 0; i < hosts.v.n && len < sizeof text; i++)
			len += (size_t)snprintf(text + len, sizeof text - len, "%s%s", i ? " " : "",
			                        hosts.v.v[i].text);
	np_hosts_release(&hosts);
	return text;
}

static void lists_expand_in_order(void **state)
{
	(void)state;
	assert_string_equal(names("node7"), "node7");
	assert_string_equal(names(" a, b ,c"), "a b c");
	assert_string_equal(names("node[1-3]"), "node1 node2 node3");
	assert_string_equal(names("node[08-11]"), "node08 node09 node10 node11");
	assert_string_equal(names("node[001-003]"), "node001 node002 node003");
	assert_string_equal(names("n[9-11]"), "n9 n10 n11");
	assert_string_equal(names("rack[1-2]n[01-02,07]"),
	                    "rack1n01 rack1n02 rack1n07 rack2n01 rack2n02 rack2n07");
	assert_string_equal(names("u@n[1-2].lan:22,x"), "u@n1.lan:22 u@n2.lan:22 x");
	assert_string_equal(names("n[1-2]:[2201-2202]"), "n1:2201 n1:2202 n2:2201 n2:2202");
	assert_string_equal(names("[fe80::1%eth0]:22,::1,r@[::1]"),
	                    "[fe80::1%eth0]:22 ::1 r@[::1]");
	assert_string_equal(names("n[0-0]"), "n0");
	assert_string_equal(names("\xe8\x8a\x82\xe7\x82\xb9[1-2]"), "\xe8\x8a\x82\xe7\x82\xb9"
	                                                            "1 \xe8\x8a\x82\xe7\x82\xb9"
	                                                            "2");
}

static void a_host_that_was_there_is_left_out(void **state)
{
	(void)state;
	assert_string_equal(names("b,a,b,a"), "b a");
	assert_string_equal(names("n[1-3],n2,n[2-4]"), "n1 n2 n3 n4");
	assert_string_equal(names("a,a:22,u@a"), "a a:22 u@a");
}

static void users_and_ports_are_told_apart(void **state)
{
	struct np_hosts hosts;
	(void)state;
	np_hosts_init(&hosts);
	assert_int_equal(np_hosts_parse(&hosts,
	                                NP_STR("n1,me@n2:2222,dom\\me@n3,a@b@n4,me@[::1]:2200"),
	                                "HOST", NULL),
	                 NP_OK);
	assert_int_equal(hosts.v.n, 5);
	assert_null(hosts.v.v[0].user);
	assert_int_equal(hosts.v.v[0].port, 0);
	assert_string_equal(hosts.v.v[1].user, "me");
	assert_string_equal(hosts.v.v[1].name, "n2");
	assert_int_equal(hosts.v.v[1].port, 2222);
	assert_string_equal(hosts.v.v[2].user, "dom\\me");
	assert_string_equal(hosts.v.v[3].user, "a@b");
	assert_string_equal(hosts.v.v[3].name, "n4");
	assert_string_equal(hosts.v.v[4].name, "::1");
	assert_int_equal(hosts.v.v[4].port, 2200);
	np_hosts_release(&hosts);
}

static void what_is_wrong_is_told_with_its_column(void **state)
{
	static const char *const cases[][2] = {
		{"", "! HOST:1: the name of a host is missing"},
		{"a,,b", "! HOST:3: the name of a host is missing"},
		{"a,", "! HOST:3: the name of a host is missing"},
		{"a b", "! HOST:1: 'a b' is not the name of a host"},
		{"ok,-oProxyCommand=x", "! HOST:4: '-oProxyCommand=x' is not the name of a host"},
		{"u@-x", "! HOST:1: '-x' is not the name of a host"},
		{"-u@x", "! HOST:1: '-u' is not the name of a user"},
		{"@x", "! HOST:1: '' is not the name of a user"},
		{"a:0", "! HOST:1: '0' is not the number of a port"},
		{"a:65536", "! HOST:1: '65536' is not the number of a port"},
		{"a:", "! HOST:1: '' is not the number of a port"},
		{"[::1]:", "! HOST:1: '' is not the number of a port"},
		{"a:x", "! HOST:1: 'x' is not the number of a port"},
		{"n[1-3", "! HOST:1: a bracket is not closed in 'n[1-3'"},
		{"n1-3]", "! HOST:1: 'n1-3]' is not the name of a host"},
		{"n[3-1]", "! HOST:1: the range '3-1' runs backwards"},
		{"n[001-10]", "! HOST:1: the ends of '001-10' have different widths"},
		{"n[]", "! HOST:1: '' is not a range of numbers like 01-16"},
		{"n[1,]", "! HOST:1: '' is not a range of numbers like 01-16"},
		{"n[a-b]", "! HOST:1: 'a-b' is not a range of numbers like 01-16"},
		{"n[1-]", "! HOST:1: '1-' is not a range of numbers like 01-16"},
		{"n[-1]", "! HOST:1: '-1' is not a range of numbers like 01-16"},
		{"n[1-2-3]", "! HOST:1: '1-2-3' is not a range of numbers like 01-16"},
		{"n[0-9999]", "! HOST: more than 4096 hosts"},
		{"n[0-999999999]", "! HOST: more than 4096 hosts"},
		{"$(id)", "! HOST:1: '$(id)' is not the name of a host"},
		{"a;b", "! HOST:1: 'a;b' is not the name of a host"},
	};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_string_equal(names(cases[i][0]), cases[i][1]);
}

static void ranges_that_repeat_themselves_come_to_an_end(void **state)
{
	struct np_hosts hosts;
	struct np_err err = {0};
	enum np_status status = NP_OK;
	(void)state;
	np_hosts_init(&hosts);
	for (int i = 0; i < 100 && status == NP_OK; i++)
		status = np_hosts_parse(&hosts, NP_STR("n[1-4000]"), "HOST", &err);
	assert_int_equal(status, NP_E_LIMIT);
	assert_int_equal(hosts.v.n, 4000);
	np_hosts_release(&hosts);
}

static void a_file_has_comments_and_any_line_ends(void **state)
{
	struct np_hosts hosts;
	struct np_err err = {0};
	(void)state;
	np_hosts_init(&hosts);
	assert_int_equal(np_hosts_parse_lines(&hosts,
	                                      NP_STR("# rack 1\r\nn[1-2]\r\n\n  n3 , n1 # twice\n"),
	                                      "hosts.txt", &err),
	                 NP_OK);
	assert_int_equal(hosts.v.n, 3);
	assert_string_equal(hosts.v.v[2].text, "n3");
	assert_int_equal(np_hosts_parse_lines(&hosts, NP_STR("a\nb;c\n"), "hosts.txt", &err),
	                 NP_E_USAGE);
	assert_string_equal(err.where, "hosts.txt:2:1");
	np_hosts_release(&hosts);
	np_hosts_init(&hosts);
	assert_int_equal(np_hosts_parse_lines(&hosts, NP_STR("# none\n"), "hosts.txt", &err),
	                 NP_E_EMPTY);
	assert_int_equal(np_hosts_read(&hosts, "/nowhere/hosts", &err), NP_E_NOTFOUND);
	np_hosts_release(&hosts);
}

static void memory_that_runs_out_is_told(void **state)
{
	(void)state;
	for (uint64_t n = 1; n < 12; n++) {
		struct np_hosts hosts;
		np_hosts_init(&hosts);
		np_mem_fail_after(n);
		enum np_status status =
			np_hosts_parse(&hosts, NP_STR("u@n[1-40]:22"), "HOST", NULL);
		np_mem_fail_after(0);
		assert_true(status == NP_OK || status == NP_E_NOMEM);
		np_hosts_release(&hosts);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists_expand_in_order),
		cmocka_unit_test(a_host_that_was_there_is_left_out),
		cmocka_unit_test(users_and_ports_are_told_apart),
		cmocka_unit_test(what_is_wrong_is_told_with_its_column),
		cmocka_unit_test(ranges_that_repeat_themselves_come_to_an_end),
		cmocka_unit_test(a_file_has_comments_and_any_line_ends),
		cmocka_unit_test(memory_that_runs_out_is_told),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
