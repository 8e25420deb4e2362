#include "unit.h"

#include <zlib.h>

#include "io/json.h"

/* ── helpers ────────────────────────────────────────────────────────────────── */

/* What a reader makes of a text, as one line: "{ "a": 1 }" gives `{a:1}`; strings
 * unescaped in quotes, T F N words; an error ends the line with its name@offset. */
struct outcome {
	char line[4096];
	struct np_json_repairs repairs;
	struct np_err err;
};

static void print_token(struct np_buf *out, const struct np_json_token *token)
{
	static const char marks[] = "\0{}[]K\"\0TFN";
	struct np_buf scratch = {0};
	np_str text = token->text;
	if (token->type == NP_JSON_STRING || token->type == NP_JSON_KEY)
		text = np_json_unescape(text, &scratch);
	switch (token->type) {
	case NP_JSON_KEY:
		np_buf_add_str(out, text);
		np_buf_add_char(out, ':');
		break;
	case NP_JSON_STRING:
		np_buf_printf(out, "\"%.*s\" ", NP_FMT(text));
		break;
	case NP_JSON_NUMBER:
		np_buf_printf(out, "%.*s ", NP_FMT(text));
		break;
	default:
		np_buf_add_char(out, marks[token->type]);
	}
	np_buf_release(&scratch);
}

static void read_all(const char *bytes, size_t len, unsigned flags, size_t window,
                     struct outcome *out)
{
	struct np_input *input;
	struct np_json *reader;
	struct np_json_token token;
	struct np_buf line = {0};
	enum np_status status;
	memset(out, 0, sizeof *out);
	char *copy = malloc(len + 1); /* exactly as large, so that reading beyond is seen */
	memcpy(copy, bytes, len);
	char *exact = realloc(copy, len ? len : 1);
	assert_int_equal(np_input_open_mem((np_str){exact, len}, "t", 0, &input, NULL), NP_OK);
	assert_int_equal(np_json_open(input, flags, &reader, NULL), NP_OK);
	if (window)
		np_json_test_windows(reader, window);
	while ((status = np_json_next(reader, &token, &out->err)) == NP_OK &&
	       token.type != NP_JSON_END)
		print_token(&line, &token);
	struct np_err again = {0};
	assert_int_equal(np_json_next(reader, &token, &again), status); /* the same again */
	assert_string_equal(again.msg, out->err.msg);
	if (status != NP_OK)
		np_buf_printf(&line, "!%s@%s", np_status_name(status), out->err.where + 2);
	out->repairs = *np_json_repairs(reader);
	(void)snprintf(out->line, sizeof out->line, "%.*s", NP_FMT(np_buf_str(&line)));
	np_buf_release(&line);
	np_json_close(reader);
	np_input_close(input);
	free(exact);
}

/* The same through windows of several sizes. */
static void expect_len(const char *bytes, size_t len, unsigned flags, const char *line,
                       struct outcome *out)
{
	static const size_t windows[] = {1, 2, 7, 63, 64, 65, 200, 0};
	for (size_t i = 0; i < sizeof windows / sizeof *windows; i++) {
		read_all(bytes, len, flags, windows[i], out);
		if (strcmp(out->line, line) != 0)
			fail_msg("window %zu of %.200s: got %s (%s), expected %s", windows[i],
			         bytes, out->line, out->err.msg, line);
	}
}

static struct np_json_repairs expect(const char *text, const char *line)
{
	static struct outcome out;
	expect_len(text, strlen(text), 0, line, &out);
	return out.repairs;
}

static struct np_json_repairs expect_comments(const char *text, const char *line)
{
	static struct outcome out;
	expect_len(text, strlen(text), NP_JSON_COMMENTS, line, &out);
	return out.repairs;
}

static void expect_strict(const char *text, const char *line)
{
	static struct outcome out;
	expect_len(text, strlen(text), NP_JSON_STRICT, line, &out);
}

#define assert_repair(repair, n, offset)                         \
	do {                                                     \
		assert_int_equal((repair).count, n);             \
		assert_int_equal((repair).first_offset, offset); \
	} while (0)

/* ── the grammar ────────────────────────────────────────────────────────────── */

static void documents_that_are_json_are_read_without_repairs(void **state)
{
	(void)state;
	static const char *const cases[][2] = {
		{"{}", "{}"},
		{"[]", "[]"},
		{" [ ] ", "[]"},
		{"1", "1 "},
		{"-0", "-0 "},
		{" 12.5e-3\n", "12.5e-3 "},
		{"true", "T"},
		{" null ", "N"},
		{"\"\"", "\"\" "},
		{"\"a\"", "\"a\" "},
		{"[1,2 , 3]", "[1 2 3 ]"},
		{"[true,false,null]", "[TFN]"},
		{"{\"a\":1,\"b\":[{}]}", "{a:1 b:[{}]}"},
		{"{\"a\" : {\"b\" : \"c\"} , \"d\" : -1.5E+10 }", "{a:{b:\"c\" }d:-1.5E+10 }"},
		{"[\"a,b\",\"[\",\"}\",\":\"]", "[\"a,b\" \"[\" \"}\" \":\" ]"},
		{"[\"\\\"\",\"\\\\\",\"\\\\\\\"x\"]", "[\"\"\" \"\\\" \"\\\"x\" ]"},
		{"[\"\\u4f60\\ud83d\\ude00\\/\\t\"]", "[\"\xe4\xbd\xa0\xf0\x9f\x98\x80/\t\" ]"},
		{"[\"\xe4\xbd\xa0\"]", "[\"\xe4\xbd\xa0\" ]"},
		{"{\"a\":1,\"a\":2}", "{a:1 a:2 }"},
		{"[340282366920938463463374607431768211456]",
	         "[340282366920938463463374607431768211456 ]"},
		{"\r\n\t [1]\r\n\t ", "[1 ]"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct np_json_repairs repairs = expect(cases[i][0], cases[i][1]);
		assert_int_equal(np_json_repairs_total(&repairs), 0);
		expect_strict(cases[i][0], cases[i][1]);
	}
}

static void what_is_no_json_is_refused_at_its_byte(void **state)
{
	(void)state;
	static const char *const cases[][2] = {
		{"", "!E_EMPTY@0"},
		{" \n", "!E_EMPTY@2"},
		{"x", "!E_FORMAT@0"},
		{"tru x", "!E_FORMAT@0"},
		{"truex", "!E_FORMAT@0"},
		{"[1 2]", "[1 !E_FORMAT@3"},
		{"[1x]", "[!E_FORMAT@1"},
		{"[\"a\"b]", "[\"a\" !E_FORMAT@4"},
		{"[\"a\" \"b\"]", "[\"a\" !E_FORMAT@5"},
		{"[1\"b\"]", "[1 !E_FORMAT@2"},
		{"[,1]", "[!E_FORMAT@1"},
		{"{,}", "{!E_FORMAT@1"},
		{"[:]", "[!E_FORMAT@1"},
		{"[1:2]", "[1 !E_FORMAT@2"},
		{"{\"a\"}", "{!E_FORMAT@4"},
		{"{\"a\",1}", "{!E_FORMAT@4"},
		{"{\"a\"::1}", "{a:!E_FORMAT@5"},
		{"{\"a\":}", "{a:!E_FORMAT@5"},
		{"{\"a\":,}", "{a:!E_FORMAT@5"},
		{"{\"a\":1 \"b\":2}", "{a:1 !E_FORMAT@7"},
		{"{a:1}", "{!E_FORMAT@1"},
		{"{1:1}", "{!E_FORMAT@1"},
		{"{'a':1}", "{!E_FORMAT@1"},
		{"[1}", "[1 !E_FORMAT@2"},
		{"{\"a\":1]", "{a:1 !E_FORMAT@6"},
		{"]", "!E_FORMAT@0"},
		{"[1]]", "[1 ]!E_FORMAT@3"},
		{"[1],", "[1 ]!E_FORMAT@3"},
		{"[1] x", "[1 ]!E_FORMAT@4"},
		{"1 2", "1 !E_FORMAT@2"},
		{"{}{}", "{}!E_FORMAT@2"},
		{"[.5]", "[!E_FORMAT@1"},
		{"[5.]", "[!E_FORMAT@1"},
		{"[1e]", "[!E_FORMAT@1"},
		{"[--1]", "[!E_FORMAT@1"},
		{"[0x10]", "[!E_FORMAT@1"},
		{"[nan]", "[!E_FORMAT@1"},
		{"[True]", "[!E_FORMAT@1"},
		{"[1,\\\"a\"]", "[1 !E_FORMAT@3"},
		{"# c\n[1]", "!E_FORMAT@0"},
		{"[1 // c\n]", "[1 !E_FORMAT@3"},
		{"[1\x0b]", "[!E_FORMAT@1"},
		{"[1,\x0c]", "[1 !E_FORMAT@3"},
		{"[1\x1a]", "[1 !E_FORMAT@2"},
		{"[1,\xc2\xa0 2]", "[1 !E_FORMAT@3"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		(void)expect(cases[i][0], cases[i][1]);
}

static void an_end_inside_a_token_is_truncation_at_its_start(void **state)
{
	(void)state;
	static const char *const cases[][2] = {
		{"[\"abc", "[!E_TRUNCATED@1"},
		{"\"", "!E_TRUNCATED@0"},
		{"[\"abc\\\"", "[!E_TRUNCATED@1"},
		{"[1, \"x\\", "[1 !E_TRUNCATED@4"},
		{"{\"ab", "{!E_TRUNCATED@1"},
		{"{\"a\"", "{!E_TRUNCATED@1"},
		{"{\"a\": ", "{a:!E_TRUNCATED@1"},
		{"[tru", "[!E_TRUNCATED@1"},
		{"nul", "!E_TRUNCATED@0"},
		{"[1, -", "[1 !E_TRUNCATED@4"},
		{"[12", "[!E_TRUNCATED@1"},
		{"[1.", "[!E_TRUNCATED@1"},
		{"1e+", "!E_TRUNCATED@0"},
		{"[-Infin", "[!E_TRUNCATED@1"},
		{"[{\"ts\": 17364", "[{ts:!E_TRUNCATED@8"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		(void)expect(cases[i][0], cases[i][1]);
}

/* ── repairs ────────────────────────────────────────────────────────────────── */

static void commas_too_many_are_counted(void **state)
{
	(void)state;
	struct np_json_repairs r = expect("[1,]", "[1 ]");
	assert_repair(r.trailing_comma, 1, 2);
	r = expect("{\"a\":1,}", "{a:1 }");
	assert_repair(r.trailing_comma, 1, 6);
	r = expect("[1,,2]", "[1 2 ]");
	assert_repair(r.trailing_comma, 1, 3);
	r = expect("[1, , ,]", "[1 ]");
	assert_repair(r.trailing_comma, 3, 4);
	r = expect("[{},\n", "[{}]");
	assert_repair(r.trailing_comma, 1, 3);
	assert_repair(r.unclosed, 1, 0);
	expect_strict("[1,]", "[1 !E_FORMAT@2");
	expect_strict("[1,,2]", "[1 !E_FORMAT@3");
	expect_strict("[1 , ", "[1 !E_FORMAT@3");
}

static void containers_never_closed_get_their_ends(void **state)
{
	(void)state;
	struct np_json_repairs r = expect(" [{\"a\":\"b\"}", "[{a:\"b\" }]");
	assert_repair(r.unclosed, 1, 1);
	r = expect("[{\"a\":[{\"b\":true", "[{a:[{b:T}]}]");
	assert_repair(r.unclosed, 4, 0);
	r = expect("[", "[]");
	assert_repair(r.unclosed, 1, 0);
	r = expect("{\"a\":1 ", "{a:1 }"); /* the space says that the number is complete */
	assert_repair(r.unclosed, 1, 0);
	expect_strict("[[]", "[[]!E_FORMAT@0");
}

static void strings_with_bytes_that_do_not_belong_are_counted(void **state)
{
	(void)state;
	struct np_json_repairs r = expect("[\"a\nb\tc\"]", "[\"a\nb\tc\" ]");
	assert_repair(r.control_char, 2, 3);
	r = expect("[\"\xff\xc3(\xed\xa0\x80\"]",
	           "[\"\xef\xbf\xbd\xef\xbf\xbd(\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\" ]");
	assert_repair(r.bad_utf8, 5, 2);
	r = expect("[\"\\x41 \\u12G4 \\ud800 \\udc00\"]",
	           "[\"x41 u12G4 \xef\xbf\xbd \xef\xbf\xbd\" ]");
	assert_repair(r.bad_escape, 4, 2);
	r = expect("{\"k\\q\":1}", "{kq:1 }");
	assert_repair(r.bad_escape, 1, 3);
	expect_strict("[\"ok\",\"a\nb\"]", "[\"ok\" !E_FORMAT@8");
	expect_strict("[\"\xff\"]", "[!E_FORMAT@2");
	expect_strict("[\"\\x\"]", "[!E_FORMAT@2");
	expect_strict("[\"\\udc00\"]", "[!E_FORMAT@2");
}

static void numbers_of_other_languages_are_counted(void **state)
{
	(void)state;
	struct np_json_repairs r =
		expect("[NaN, -Infinity, 007, +5, -01.5]", "[NaN -Infinity 007 +5 -01.5 ]");
	assert_repair(r.bad_number, 5, 1);
	expect_strict("[1, NaN]", "[1 !E_FORMAT@4");
	expect_strict("[00]", "[!E_FORMAT@1");
}

static void comments_are_read_only_when_asked_for(void **state)
{
	(void)state;
	struct np_json_repairs r = expect_comments(
		"# a \" quote\n{\"u\": \"http://x#y\", // b ] }\n\"n\": 12# c\n}//d",
		"{u:\"http://x#y\" n:12 }");
	assert_repair(r.comment, 4, 0);
	r = expect_comments("[1,2]\n# end\n// and end", "[1 2 ]");
	assert_repair(r.comment, 2, 6);
	(void)expect_comments("[1 / 2]", "[1 !E_FORMAT@3");
	(void)expect_comments("[1] /", "[1 ]!E_FORMAT@4");
	(void)expect_comments("[1] / x", "[1 ]!E_FORMAT@4");
	(void)expect_comments("[1 # never closed", "[1 ]");
	(void)expect_comments("# nothing", "!E_EMPTY@9");
	static struct outcome nul;
	expect_len("[1]\0 # once", 11, NP_JSON_COMMENTS, "[1 ]", &nul);
	assert_repair(nul.repairs.comment, 1, 5);
	/* a comment mark that straddles the border of a block, for any place of it */
	for (int pad = 50; pad < 80; pad++) {
		char text[200];
		(void)snprintf(text, sizeof text, "[1,%*s//,3,\n2]", pad, "");
		r = expect_comments(text, "[1 2 ]");
		assert_repair(r.comment, 1, (uint64_t)pad + 3);
	}
	static struct outcome out;
	expect_len("[1]#", 4, NP_JSON_COMMENTS | NP_JSON_STRICT, "[1 ]!E_FORMAT@3", &out);
}

static void garbage_behind_the_end_is_counted_up_to_a_limit(void **state)
{
	(void)state;
	static struct outcome out;
	expect_len("[1]\n\0\0\x1a \0", 9, 0, "[1 ]", &out);
	assert_repair(out.repairs.trailing_bytes, 4, 4);
	expect_len("12\0\0", 4, 0, "12 ", &out);
	expect_len("[1]\0", 4, NP_JSON_STRICT, "[1 ]!E_FORMAT@3", &out);
	size_t len = 100000;
	char *text = calloc(1, len);
	memcpy(text, "[1]", 3);
	read_all(text, len, 0, 0, &out);
	assert_string_equal(out.line, "[1 ]!E_FORMAT@65539");
	free(text);
}

static void a_byte_order_mark_is_counted(void **state)
{
	(void)state;
	struct np_json_repairs r = expect("\xef\xbb\xbf[1]", "[1 ]");
	assert_repair(r.bom, 1, 0);
	expect_strict("\xef\xbb\xbf[1]", "!E_FORMAT@0");
	(void)expect("\xef\xbb", "!E_FORMAT@0");
}

static void a_nul_byte_is_an_error_where_it_stands(void **state)
{
	(void)state;
	static struct outcome out;
	expect_len("\0\0", 2, 0, "!E_FORMAT@0", &out);
	expect_len("[1,\0]", 5, 0, "[1 !E_FORMAT@3", &out);
	expect_len("[1\0]", 4, 0, "[1 !E_FORMAT@2", &out);
	expect_len("[\"a\0b\"]", 7, 0, "[!E_FORMAT@3", &out);
	expect_len("{\"a\"\0:1}", 8, 0, "{!E_FORMAT@4", &out);
	char text[500];
	for (size_t at = 3; at < 400; at++) {
		char line[64];
		memset(text, ' ', sizeof text);
		memcpy(text, "[1,", 3);
		text[at] = 0;
		(void)snprintf(line, sizeof line, "[1 !E_FORMAT@%zu", at);
		read_all(text, sizeof text, 0, 0, &out);
		assert_string_equal(out.line, line);
	}
}

static void repairs_are_told_in_one_line(void **state)
{
	(void)state;
	struct np_buf line = {0};
	struct np_json_repairs r = expect("[1,,{\"a\":2,}", "[1 {a:2 }]");
	np_json_repairs_describe(&r, &line);
	assert_str(np_buf_str(&line), "2 trailing commas (first at byte 3), "
	                              "1 container never closed (byte 0)");
	assert_int_equal(np_json_repairs_total(&r), 3);
	np_buf_clear(&line);
	r = expect("[1]", "[1 ]");
	np_json_repairs_describe(&r, &line);
	assert_int_equal(line.len, 0);
	np_buf_release(&line);
}

/* ── limits and windows ─────────────────────────────────────────────────────── */

static void nesting_ends_at_its_limit(void **state)
{
	(void)state;
	static struct outcome out;
	char text[2 * NP_JSON_MAX_DEPTH + 3];
	memset(text, '[', NP_JSON_MAX_DEPTH + 1);
	memset(text + NP_JSON_MAX_DEPTH, ']', NP_JSON_MAX_DEPTH);
	read_all(text, 2 * NP_JSON_MAX_DEPTH, 0, 0, &out);
	assert_int_equal(out.err.code, NP_OK);
	memset(text, '[', NP_JSON_MAX_DEPTH + 1);
	read_all(text, NP_JSON_MAX_DEPTH + 1, 0, 0, &out);
	assert_int_equal(out.err.code, NP_E_LIMIT);
	assert_string_equal(out.err.where, "t:1024");
}

static void depth_and_offset_of_tokens_are_right_beyond_4_gib(void **state)
{
	(void)state;
	static const uint64_t base = 5ull << 30;
	static const struct {
		enum np_json_type type;
		uint32_t depth;
		uint64_t offset;
	} want[] = {
		{NP_JSON_ARRAY_BEGIN, 0, 0}, {NP_JSON_OBJECT_BEGIN, 1, 1}, {NP_JSON_KEY, 2, 2},
		{NP_JSON_NUMBER, 2, 7},      {NP_JSON_OBJECT_END, 1, 8},   {NP_JSON_STRING, 1, 10},
		{NP_JSON_ARRAY_END, 0, 13},  {NP_JSON_END, 0, 14},
	};
	struct np_input *input;
	struct np_json *reader;
	assert_int_equal(np_input_open_mem(NP_STR("[{\"a\": 1},\"x\"]"), "t", base, &input, NULL),
	                 0);
	assert_int_equal(np_json_open(input, 0, &reader, NULL), NP_OK);
	for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
		struct np_json_token token;
		assert_int_equal(np_json_next(reader, &token, NULL), NP_OK);
		assert_int_equal(token.type, want[i].type);
		assert_int_equal(token.depth, want[i].depth);
		assert_int_equal(token.offset, base + want[i].offset);
	}
	assert_int_equal(np_json_offset(reader), base + 14);
	np_json_close(reader);
	np_input_close(input);
}

/* A document of every kind of token, larger than some batches. */
static void random_value(struct np_buf *out, int depth)
{
	static const char *const scalars[] = {
		"1736412474714258.990",
		"-1",
		"true",
		"null",
		"\"\"",
		"\"aten::empty\"",
		"\"a\\\\\\\"b;\\r\\n\"",
		"\"\xe4\xbd\xa0\xe5\xa5\xbd\"",
		"[]",
		"{}",
		"\"{[,:]}\"",
	};
	static const char *const spaces[] = {"", "", " ", "\n\t  "};
	long kind = depth > 5 ? 0 : random() % 4;
	if (kind < 2) {
		np_buf_add_cstr(out,
		                scalars[(size_t)random() % (sizeof scalars / sizeof *scalars)]);
		return;
	}
	np_buf_add_char(out, kind == 2 ? '[' : '{');
	for (long n = random() % 12, i = 0; i < n; i++) {
		np_buf_add_cstr(out, i ? "," : "");
		np_buf_add_cstr(out, spaces[random() % 4]);
		if (kind == 3)
			np_buf_printf(out, "\"key%ld\\t\"%s:%s", random() % 1000,
			              spaces[random() % 4], spaces[random() % 4]);
		random_value(out, depth + 1);
		np_buf_add_cstr(out, spaces[random() % 4]);
	}
	np_buf_add_char(out, kind == 2 ? ']' : '}');
}

static struct np_buf random_document(size_t min_bytes)
{
	struct np_buf out = {0};
	np_buf_add_char(&out, '[');
	while (out.len < min_bytes) {
		random_value(&out, 0);
		np_buf_add_char(&out, ',');
	}
	np_buf_add_cstr(&out, "0]");
	return out;
}

static struct np_json *open_text(np_str text, struct np_input **input)
{
	struct np_json *reader;
	assert_int_equal(np_input_open_mem(text, "t", 0, input, NULL), NP_OK);
	assert_int_equal(np_json_open(*input, 0, &reader, NULL), NP_OK);
	return reader;
}

static void tokens_are_the_same_through_windows_of_any_size(void **state)
{
	(void)state;
	static const size_t windows[] = {1, 13, 64, 100, 5000, 40000};
	srandom(3);
	for (size_t w = 0; w < sizeof windows / sizeof *windows; w++) {
		struct np_buf text = random_document(windows[w] < 100 ? 30000 : 400000);
		struct np_input *inputs[2];
		struct np_json *one = open_text(np_buf_str(&text), &inputs[0]);
		struct np_json *many = open_text(np_buf_str(&text), &inputs[1]);
		np_json_test_windows(many, windows[w]);
		struct np_json_token a, b;
		do {
			assert_int_equal(np_json_next(one, &a, NULL), NP_OK);
			assert_int_equal(np_json_next(many, &b, NULL), NP_OK);
			assert_int_equal(a.type, b.type);
			assert_int_equal(a.offset, b.offset);
			assert_int_equal(a.depth, b.depth);
			assert_int_equal(a.escaped, b.escaped);
			assert_true(np_str_eq(a.text, b.text));
		} while (a.type != NP_JSON_END);
		assert_int_equal(np_json_repairs_total(np_json_repairs(one)), 0);
		np_json_close(one);
		np_json_close(many);
		np_input_close(inputs[0]);
		np_input_close(inputs[1]);
		np_buf_release(&text);
	}
}

static void tokens_are_the_same_from_a_gzip_file(void **state)
{
	(void)state;
	char path[] = "/tmp/npuprof_json_XXXXXX";
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	srandom(4);
	struct np_buf text = random_document(3000000);
	gzFile file = gzdopen(fd, "wb");
	assert_int_equal(gzwrite(file, text.ptr, (unsigned)text.len), (int)text.len);
	assert_int_equal(gzclose(file), Z_OK);
	struct np_input *inputs[2];
	struct np_json *one = open_text(np_buf_str(&text), &inputs[0]), *many;
	assert_int_equal(np_input_open(path, &inputs[1], NULL), NP_OK);
	assert_int_equal(np_json_open(inputs[1], 0, &many, NULL), NP_OK);
	struct np_json_token a, b;
	do {
		assert_int_equal(np_json_next(one, &a, NULL), NP_OK);
		assert_int_equal(np_json_next(many, &b, NULL), NP_OK);
		assert_true(a.type == b.type && a.offset == b.offset && np_str_eq(a.text, b.text));
	} while (a.type != NP_JSON_END);
	np_json_close(one);
	np_json_close(many);
	np_input_close(inputs[0]);
	np_input_close(inputs[1]);
	np_buf_release(&text);
	assert_int_equal(unlink(path), 0);
}

static void escapes_are_noticed_across_the_border_of_a_batch(void **state)
{
	(void)state;
	enum { BATCH = 32 << 10 };
	for (size_t shift = 0; shift < 8; shift++) {
		char *text = malloc(BATCH + 100);
		memset(text, ' ', BATCH + 100);
		memcpy(text, "[\"plain\",", 9);
		memcpy(text + BATCH - shift, "\"a\\nb\"", 6);
		memcpy(text + BATCH + 20, ",\"c\"]", 5);
		struct np_input *input;
		struct np_json *reader = open_text((np_str){text, BATCH + 100}, &input);
		struct np_json_token token;
		for (int i = 0; i < 3; i++)
			assert_int_equal(np_json_next(reader, &token, NULL), NP_OK);
		assert_str(token.text, "a\\nb");
		assert_true(token.escaped);
		assert_int_equal(np_json_next(reader, &token, NULL), NP_OK);
		assert_str(token.text, "c");
		assert_false(token.escaped);
		np_json_close(reader);
		np_input_close(input);
		free(text);
	}
}

/* ── skip, members, rewind ──────────────────────────────────────────────────── */

static void skip_steps_over_what_the_last_token_began(void **state)
{
	(void)state;
	static const char text[] = "[{\"a\": {\"x\":[1,\"]\"]}, \"b\": 12 , \"c\":true},[3,[4]],5]";
	for (size_t window = 0; window < 70; window += 23) {
		struct np_input *input;
		struct np_json *reader = open_text(np_str_of(text), &input);
		struct np_json_token token;
		np_str raw;
		uint64_t offset = 0;
		if (window)
			np_json_test_windows(reader, window);
		for (int i = 0; i < 3; i++)
			assert_int_equal(np_json_next(reader, &token, NULL), NP_OK);
		assert_int_equal(np_json_skip(reader, &raw, &offset, NULL), NP_OK); /* a */
		assert_str(raw, window ? "" : "{\"x\":[1,\"]\"]}");
		assert_int_equal(offset, window ? 0 : 7);
		assert_int_equal(np_json_next(reader, &token, NULL), NP_OK);
		assert_int_equal(np_json_skip(reader, &raw, &offset, NULL), NP_OK); /* b */
		assert_str(raw, window ? "" : "12");
		assert_int_equal(np_json_skip(reader, &raw, &offset, NULL), NP_OK); /* nothing */
		assert_int_equal(raw.len, 0);
		assert_int_equal(np_json_next(reader, &token, NULL), NP_OK);
		assert_str(token.text, "c");
		for (int i = 0; i < 3; i++)
			assert_int_equal(np_json_next(reader, &token, NULL), NP_OK);
		assert_int_equal(token.type, NP_JSON_ARRAY_BEGIN);
		assert_int_equal(np_json_skip(reader, &raw, &offset, NULL), NP_OK);
		assert_str(raw, window ? "" : "[3,[4]]");
		assert_int_equal(np_json_next(reader, &token, NULL), NP_OK);
		assert_str(token.text, "5");
		assert_int_equal(np_json_next(reader, &token, NULL), NP_OK);
		assert_int_equal(np_json_next(reader, &token, NULL), NP_OK);
		assert_int_equal(token.type, NP_JSON_END);
		np_json_close(reader);
		np_input_close(input);
	}
}

static void expect_skip(const char *bytes, size_t len, enum np_status expected, const char *where)
{
	struct np_input *input;
	struct np_json *reader = open_text((np_str){bytes, len}, &input);
	struct np_json_token token;
	struct np_err err = {0};
	assert_int_equal(np_json_next(reader, &token, NULL), NP_OK);
	assert_int_equal(np_json_skip(reader, NULL, NULL, &err), expected);
	assert_string_equal(err.where, where);
	if (expected == NP_OK) {
		assert_int_equal(np_json_next(reader, &token, NULL), NP_OK);
		assert_int_equal(token.type, NP_JSON_END);
		assert_int_equal(np_json_repairs(reader)->unclosed.count, 3);
	}
	np_json_close(reader);
	np_input_close(input);
}

static void skip_refuses_wrong_brackets_and_open_strings(void **state)
{
	(void)state;
	char deep[1200];
	memset(deep, '[', sizeof deep);
	expect_skip("[[1}]", 5, NP_E_FORMAT, "t:3");
	expect_skip("[[1], \"a]]", 10, NP_E_TRUNCATED, "t:6");
	expect_skip("[[1,\0]]", 7, NP_E_FORMAT, "t:4");
	expect_skip("[[{\"a\":1", 8, NP_OK, "");
	expect_skip(deep, sizeof deep, NP_E_LIMIT, "t:1024");
}

static void members_are_those_that_next_gives(void **state)
{
	(void)state;
	static const char text[] = "[{\"ph\": \"X\", \"id\": 99999999999999999999, \"args\": "
				   "{\"a\": [1, {}]}, \"e\\n\": \"\\t\"},\n"
				   "{}, {\"k\": null,}, {\"a\":1,\"b\":2,\"c\":3,\"d\":[4]}]";
	for (size_t window = 0; window < 40; window++) {
		struct np_input *input;
		struct np_json *reader = open_text(np_str_of(text), &input);
		struct np_json_member m[4];
		struct np_json_token token;
		size_t n;
		if (window)
			np_json_test_windows(reader, window);
		assert_int_equal(np_json_next(reader, &token, NULL), NP_OK);
		assert_int_equal(np_json_members(reader, m, 4, &n, NULL), NP_E_USAGE);
		assert_int_equal(np_json_next(reader, &token, NULL), NP_OK);
		assert_int_equal(np_json_members(reader, m, 4, &n, NULL), NP_OK);
		assert_int_equal(n, 4);
		assert_str(m[0].key, "ph");
		assert_str(m[0].value.text, "X");
		assert_int_equal(m[0].value.depth, 2);
		assert_str(m[1].value.text, "99999999999999999999");
		assert_int_equal(m[1].value.type, NP_JSON_NUMBER);
		assert_str(m[2].key, "args");
		assert_int_equal(m[2].value.type, NP_JSON_OBJECT_BEGIN);
		assert_str(m[2].value.text, "{\"a\": [1, {}]}");
		assert_true(m[3].key_escaped && m[3].value.escaped);
		assert_str(m[3].key, "e\\n");
		assert_str(m[3].value.text, "\\t");
		assert_int_equal(np_json_members(reader, m, 4, &n, NULL), NP_OK);
		assert_int_equal(n, 0);
		assert_int_equal(np_json_next(reader, &token, NULL), NP_OK);
		assert_int_equal(np_json_members(reader, m, 4, &n, NULL), NP_OK);
		assert_int_equal(n, 0);
		assert_int_equal(np_json_next(reader, &token, NULL), NP_OK);
		assert_int_equal(np_json_members(reader, m, 4, &n, NULL), NP_OK);
		assert_int_equal(n, 1);
		assert_int_equal(m[0].value.type, NP_JSON_NULL);
		assert_int_equal(np_json_next(reader, &token, NULL), NP_OK);
		assert_int_equal(np_json_members(reader, m, 3, &n, NULL), NP_OK);
		assert_int_equal(n, 3);
		assert_int_equal(np_json_members(reader, m, 3, &n, NULL), NP_OK);
		assert_int_equal(n, 1);
		assert_str(m[0].key, "d");
		assert_str(m[0].value.text, "[4]");
		assert_int_equal(np_json_next(reader, &token, NULL), NP_OK);
		assert_int_equal(token.type, NP_JSON_ARRAY_END);
		assert_int_equal(np_json_next(reader, &token, NULL), NP_OK);
		assert_int_equal(token.type, NP_JSON_END);
		assert_repair(np_json_repairs(reader)->trailing_comma, 1, 93);
		np_json_close(reader);
		np_input_close(input);
	}
}

static void a_reader_can_be_rewound_over_the_text_of_a_member(void **state)
{
	(void)state;
	struct np_input *inputs[2];
	struct np_json *reader = open_text(NP_STR("[{\"args\":{\"Task Id\":7}},1]"), &inputs[0]);
	struct np_json *inner = open_text(NP_STR("0"), &inputs[1]);
	struct np_json_token token;
	struct np_json_member m[2];
	size_t n;
	assert_int_equal(np_json_next(reader, &token, NULL), NP_OK);
	assert_int_equal(np_json_next(reader, &token, NULL), NP_OK);
	assert_int_equal(np_json_members(reader, m, 2, &n, NULL), NP_OK);
	for (int i = 0; i < 3; i++) {
		np_json_rewind(inner, m[0].value.text, m[0].value.offset);
		assert_int_equal(np_json_next(inner, &token, NULL), NP_OK);
		struct np_json_member arg[2];
		assert_int_equal(np_json_members(inner, arg, 2, &n, NULL), NP_OK);
		assert_int_equal(n, 1);
		assert_str(arg[0].key, "Task Id");
		assert_str(arg[0].value.text, "7");
		assert_int_equal(arg[0].value.offset, 20);
	}
	assert_int_equal(np_json_next(reader, &token, NULL), NP_OK);
	assert_str(token.text, "1");
	np_json_close(reader);
	np_json_close(inner);
	np_input_close(inputs[0]);
	np_input_close(inputs[1]);
}

static void a_window_that_cannot_grow_is_an_error(void **state)
{
	(void)state;
	struct np_input *input;
	struct np_json *reader = open_text(NP_STR("[1,2,3]"), &input);
	struct np_json_token token;
	struct np_err err;
	np_json_test_windows(reader, 2);
	np_mem_fail_after(2);
	assert_int_equal(np_json_next(reader, &token, &err), NP_E_NOMEM);
	np_mem_fail_after(0);
	assert_int_equal(np_json_next(reader, &token, &err), NP_E_NOMEM);
	np_json_close(reader);
	np_input_close(input);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(documents_that_are_json_are_read_without_repairs),
		cmocka_unit_test(what_is_no_json_is_refused_at_its_byte),
		cmocka_unit_test(an_end_inside_a_token_is_truncation_at_its_start),
		cmocka_unit_test(commas_too_many_are_counted),
		cmocka_unit_test(containers_never_closed_get_their_ends),
		cmocka_unit_test(strings_with_bytes_that_do_not_belong_are_counted),
		cmocka_unit_test(numbers_of_other_languages_are_counted),
		cmocka_unit_test(comments_are_read_only_when_asked_for),
		cmocka_unit_test(garbage_behind_the_end_is_counted_up_to_a_limit),
		cmocka_unit_test(a_byte_order_mark_is_counted),
		cmocka_unit_test(a_nul_byte_is_an_error_where_it_stands),
		cmocka_unit_test(repairs_are_told_in_one_line),
		cmocka_unit_test(nesting_ends_at_its_limit),
		cmocka_unit_test(depth_and_offset_of_tokens_are_right_beyond_4_gib),
		cmocka_unit_test(tokens_are_the_same_through_windows_of_any_size),
		cmocka_unit_test(tokens_are_the_same_from_a_gzip_file),
		cmocka_unit_test(escapes_are_noticed_across_the_border_of_a_batch),
		cmocka_unit_test(skip_steps_over_what_the_last_token_began),
		cmocka_unit_test(skip_refuses_wrong_brackets_and_open_strings),
		cmocka_unit_test(members_are_those_that_next_gives),
		cmocka_unit_test(a_reader_can_be_rewound_over_the_text_of_a_member),
		cmocka_unit_test(a_window_that_cannot_grow_is_an_error),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
