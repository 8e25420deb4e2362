#include "unit.h"

#include <math.h>

#include "io/json.h"
#include "io/json_text.h"

/* ── validate ───────────────────────────────────────────────────────────────── */

static uint64_t elements_of(const char *text, enum np_status expected)
{
	struct np_input *input;
	struct np_json_repairs repairs;
	uint64_t n = 99;
	assert_int_equal(np_input_open_mem(np_str_of(text), "t", 0, &input, NULL), NP_OK);
	assert_int_equal(np_json_validate(input, &repairs, &n, NULL), expected);
	np_input_close(input);
	return n;
}

static void validate_counts_elements_to_the_last_byte(void **state)
{
	(void)state;
	assert_int_equal(elements_of("[]", NP_OK), 0);
	assert_int_equal(elements_of("[1,[2,3],{\"a\":4},\"x\"]", NP_OK), 4);
	assert_int_equal(
		elements_of("{\"a\":[1,2],\"traceEvents\":[{},{\"x\":[1]},[]],\"z\":[1]}", NP_OK),
		3);
	assert_int_equal(elements_of("{\"a\":{\"traceEvents\":[1]}}", NP_OK), 0);
	assert_int_equal(elements_of("{\"traceEvents\":\"no\",\"b\":[1]}", NP_OK), 0);
	assert_int_equal(elements_of("7", NP_OK), 0);
	(void)elements_of("[1] x", NP_E_FORMAT);
	(void)elements_of("", NP_E_EMPTY);
	(void)elements_of("[1,\"a", NP_E_TRUNCATED);
}

static void a_real_trace_is_valid_and_whole(void **state)
{
	(void)state;
	const char *path =
		shared_path("data/ddp2/text/level2/rank0_ascend_pt/ASCEND_PROFILER_OUTPUT/"
	                    "trace_view.json");
	if (!path)
		skip();
	struct np_input *input;
	struct np_json_repairs repairs;
	uint64_t n;
	struct np_err err = {0};
	assert_int_equal(np_input_open(path, &input, &err), NP_OK);
	assert_int_equal(np_json_validate(input, &repairs, &n, &err), NP_OK);
	assert_int_equal(n, 10476); /* as python3's json counts */
	assert_int_equal(np_json_repairs_total(&repairs), 0);
	np_input_close(input);
}

/* ── the tree ───────────────────────────────────────────────────────────────── */

static enum np_status parse(struct np_arena *arena, const char *text, unsigned flags,
                            const struct np_jval **out, struct np_json_repairs *repairs)
{
	struct np_input *input;
	enum np_status status = np_input_open_mem(np_str_of(text), "t", 0, &input, NULL);
	if (status != NP_OK)
		return status;
	status = np_json_parse(arena, input, flags, out, repairs, NULL);
	np_input_close(input);
	return status;
}

static const char config[] =
	"{\"config\": {\"common_config\": {\"schedule\": {\"active\": 3, \"wait\": \"12\"}, "
	"\"record_shapes\": true, \"path\": \"a\\/b\", \"ratio\": 0.25, \"none\": null}}, "
	"\"ranks\": [0, 1, [2]], \"big\": 18446744073709551617, \"dup\": 1, \"dup\": 2}";

static void the_tree_is_walked_by_keys_and_paths(void **state)
{
	(void)state;
	struct np_arena arena;
	const struct np_jval *root;
	int64_t i = 0;
	double d = 0;
	bool b = false;
	np_arena_init(&arena);
	assert_int_equal(parse(&arena, config, 0, &root, NULL), NP_OK);
	assert_int_equal(root->type, NP_J_OBJECT);
	assert_int_equal(root->n, 5);
	const struct np_jval *common = np_jpath(root, "config.common_config");
	assert_true(np_ji64(np_jpath(root, "config.common_config.schedule.active"), &i) && i == 3);
	assert_true(np_ji64(np_jpath(common, "schedule.wait"), &i) && i == 12);
	assert_true(np_jbool(np_jget(common, "record_shapes"), &b) && b);
	assert_str(np_jstr(np_jget(common, "path")), "a/b");
	assert_true(np_jdouble(np_jget(common, "ratio"), &d) && d == 0.25);
	assert_int_equal(np_jget(common, "none")->type, NP_J_NULL);
	const struct np_jval *ranks = np_jget(root, "ranks");
	assert_int_equal(ranks->n, 3);
	assert_str(ranks->child[1].text, "1");
	assert_int_equal(ranks->child[2].child[0].type, NP_J_NUMBER);
	assert_str(np_jget(root, "big")->text, "18446744073709551617");
	assert_false(np_ji64(np_jget(root, "big"), &i));
	assert_true(np_ji64(np_jget(root, "dup"), &i) && i == 2);
	/* NULL and wrong types */
	assert_null(np_jget(NULL, "a"));
	assert_null(np_jget(ranks, "a"));
	assert_null(np_jpath(root, "config.nothing.schedule"));
	assert_int_equal(np_jstr(ranks).len, 0);
	assert_int_equal(np_jstr(np_jget(root, "big")).len, 0);
	assert_false(np_jbool(np_jget(root, "dup"), &b));
	assert_false(np_ji64(NULL, &i) || np_jdouble(ranks, &d) || np_jbool(NULL, &b));
	np_arena_release(&arena);
}

static void the_tree_reports_repairs_and_errors(void **state)
{
	(void)state;
	struct np_arena arena;
	const struct np_jval *root;
	struct np_json_repairs repairs;
	np_arena_init(&arena);
	assert_int_equal(parse(&arena, "{\"a\":[1,2,], # c\n", NP_JSON_COMMENTS, &root, &repairs),
	                 NP_OK);
	assert_int_equal(root->child[0].n, 2);
	assert_int_equal(np_json_repairs_total(&repairs), 4);
	assert_int_equal(parse(&arena, "{\"a\":[1,2,]}", NP_JSON_STRICT, &root, &repairs),
	                 NP_E_FORMAT);
	assert_null(root);
	assert_int_equal(parse(&arena, "", 0, &root, &repairs), NP_E_EMPTY);
	assert_int_equal(parse(&arena, "\"x\"", 0, &root, &repairs), NP_OK);
	assert_str(np_jstr(root), "x");
	np_arena_release(&arena);
}

static void every_allocation_may_fail(void **state)
{
	(void)state;
	const struct np_jval *root;
	enum np_status status = NP_E_NOMEM;
	uint64_t n = 0;
	while (status == NP_E_NOMEM) {
		struct np_arena arena;
		np_arena_init(&arena);
		np_mem_fail_after(++n);
		status = parse(&arena, config, 0, &root, NULL);
		np_mem_fail_after(0);
		np_arena_release(&arena);
	}
	assert_int_equal(status, NP_OK);
	assert_true(n > 5);
}

/* ── text ───────────────────────────────────────────────────────────────────── */

static void unescape_gives_valid_utf8_for_anything(void **state)
{
	(void)state;
	static const char *const cases[][2] = {
		{"plain", "plain"},
		{"\\\"\\\\\\/\\b\\f\\n\\r\\t", "\"\\/\b\f\n\r\t"},
		{"\\u0041\\u00e9\\u20ac", "A\xc3\xa9\xe2\x82\xac"},
		{"\\uD83D\\uDE00", "\xf0\x9f\x98\x80"},
		{"\\uD83Dx", "\xef\xbf\xbdx"},
		{"\\uD83D\\u0041", "\xef\xbf\xbd\x41"},
		{"\\uDE00\\uD83D", "\xef\xbf\xbd\xef\xbf\xbd"},
		{"\\q\\1", "q1"},
		{"\\u12", "u12"},
		{"\\", "\\"},
		{"\xf4\x90\x80\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
		{"\xe4\xbd", "\xef\xbf\xbd"},
		{"\xc0\x80", "\xef\xbf\xbd\xef\xbf\xbd"},
		{"\x01\xe4\xbd\xa0\\n", "\x01\xe4\xbd\xa0\n"},
	};
	struct np_buf scratch = {0};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_str(np_json_unescape(np_str_of(cases[i][0]), &scratch), cases[i][1]);
	np_str raw = NP_STR("\xe4\xbd\xa0 same");
	assert_ptr_equal(np_json_unescape(raw, &scratch).ptr, raw.ptr);
	np_buf_release(&scratch);
}

static void quoted_text_may_stand_in_html_and_reads_back(void **state)
{
	(void)state;
	struct np_buf out = {0}, scratch = {0};
	np_json_quote(&out, NP_STR("a\"\\\n\x01</script>&\xe2\x80\xa8\xff\x7f"));
	assert_str(np_buf_str(&out), "\"a\\\"\\\\\\n\\u0001\\u003c/script\\u003e\\u0026\\u2028"
	                             "\xef\xbf\xbd\\u007f\"");
	srandom(5);
	for (int round = 0; round < 2000; round++) {
		char text[40];
		size_t len = (size_t)random() % sizeof text;
		for (size_t i = 0; i < len; i++)
			text[i] = (char)(random() % 128);
		np_buf_clear(&out);
		np_json_quote(&out, (np_str){text, len});
		np_str inner = np_str_sub(np_buf_str(&out), 1, out.len - 2);
		assert_true(np_str_eq(np_json_unescape(inner, &scratch), (np_str){text, len}));
	}
	np_buf_release(&out);
	np_buf_release(&scratch);
}

static void written_numbers_read_back_the_same(void **state)
{
	(void)state;
	struct np_buf out = {0};
	static const double fixed[] = {0,        -0.0, 0.1, 1e300, 5e-324, 1.7976931348623157e308,
	                               123456789};
	srandom(6);
	for (size_t i = 0; i < 20000; i++) {
		double value, back;
		uint64_t bits =
			(uint64_t)random() << 42 ^ (uint64_t)random() << 21 ^ (uint64_t)random();
		if (i < sizeof fixed / sizeof *fixed)
			value = fixed[i];
		else
			memcpy(&value, &bits, sizeof value);
		np_buf_clear(&out);
		np_json_number(&out, value);
		if (!isfinite(value)) {
			assert_str(np_buf_str(&out), "null");
			continue;
		}
		assert_true(np_str_to_double(np_buf_str(&out), &back));
		assert_memory_equal(&back, &value, sizeof value);
	}
	np_buf_clear(&out);
	np_json_number(&out, 0.1);
	assert_str(np_buf_str(&out), "0.1");
	np_buf_release(&out);
}

static void the_quick_check_of_numbers_agrees_with_the_long_one(void **state)
{
	(void)state;
	static const char alphabet[] = "0123456789012345678901234567890.0.-+eEx ";
	srandom(8);
	for (int round = 0; round < 200000; round++) {
		char text[32]; /* what is behind the number must not matter */
		size_t len = (size_t)random() % 18;
		for (size_t i = 0; i < sizeof text; i++)
			text[i] =
				alphabet[(size_t)random() % (round % 2 ? 33 : sizeof alphabet - 1)];
		np_str number = {text, len};
		if (np_json_is_plain_number(number) &&
		    np_json_check_number(number) != NP_JSON_NUMERIC_OK)
			fail_msg("\"%.*s\" is not a number", NP_FMT(number));
	}
	static const char *const plain[] = {
		"0", "7", "167.56", "0.5", "3178231", "1234567890123456", "12345678.1234567"};
	for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) {
		char text[32];
		(void)snprintf(text, sizeof text, "%s, \"a\": 0", plain[i]);
		assert_true(np_json_is_plain_number((np_str){text, strlen(plain[i])}));
	}
}

static void a_tree_is_written_as_python_writes_it(void **state)
{
	(void)state;
	const struct np_jval *root = NULL;
	struct np_arena arena;
	struct np_buf out = {0};
	np_arena_init(&arena);
	static const char text[] =
		"{\"a\":[1,-2.50e3,[],{}],\"rank\":3,"
		"\"b\":{\"rank\":null,\"x\\ty\":\"\\\"q\\\"\"},\"c\":true,\"d\":false}";
	assert_int_equal(parse(&arena, text, 0, &root, NULL), NP_OK);
	np_json_dump(&out, root, "rank");
	assert_str(np_buf_str(&out), "{\"a\": [1, -2.50e3, [], {}], \"b\": {\"rank\": null, "
	                             "\"x\\ty\": \"\\\"q\\\"\"}, \"c\": true, \"d\": false}");
	np_buf_release(&out);
	np_arena_release(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(validate_counts_elements_to_the_last_byte),
		cmocka_unit_test(a_real_trace_is_valid_and_whole),
		cmocka_unit_test(the_tree_is_walked_by_keys_and_paths),
		cmocka_unit_test(the_tree_reports_repairs_and_errors),
		cmocka_unit_test(every_allocation_may_fail),
		cmocka_unit_test(unescape_gives_valid_utf8_for_anything),
		cmocka_unit_test(quoted_text_may_stand_in_html_and_reads_back),
		cmocka_unit_test(written_numbers_read_back_the_same),
		cmocka_unit_test(a_tree_is_written_as_python_writes_it),
		cmocka_unit_test(the_quick_check_of_numbers_agrees_with_the_long_one),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
