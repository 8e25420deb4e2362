/*
 * JSON of any bytes: the reader in one window, in small windows, with skips, by
 * members, and the tree must not crash, and must agree with each other.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(condition)                                                              \
	do {                                                                          \
		if (!(condition)) {                                                   \
			(void)fprintf(stderr, "line %d: %s\n", __LINE__, #condition); \
			abort();                                                      \
		}                                                                     \
	} while (0)

struct pair {
	struct np_input *input;
	struct np_json *reader;
};

static struct pair open_reader(np_str text, unsigned flags, size_t window)
{
	struct pair pair = {0};
	CHECK(np_input_open_mem(text, "fuzz", 0, &pair.input, NULL) == NP_OK);
	CHECK(np_json_open(pair.input, flags, &pair.reader, NULL) == NP_OK);
	if (window)
		np_json_test_windows(pair.reader, window);
	return pair;
}

static void close_reader(struct pair pair)
{
	np_json_close(pair.reader);
	np_input_close(pair.input);
}

/* One window and small ones give the same tokens, repairs and error. */
static enum np_status compare_windows(np_str text, unsigned flags, size_t window)
{
	struct pair one = open_reader(text, flags, 0), many = open_reader(text, flags, window);
	struct np_json_token a = {0}, b = {0};
	struct np_err err_a = {0}, err_b = {0};
	struct np_buf scratch = {0};
	enum np_status status;
	do {
		status = np_json_next(one.reader, &a, &err_a);
		CHECK(np_json_next(many.reader, &b, &err_b) == status);
		CHECK(strcmp(err_a.where, err_b.where) == 0 && strcmp(err_a.msg, err_b.msg) == 0);
		if (status != NP_OK)
			break;
		CHECK(a.type == b.type && a.depth == b.depth && a.offset == b.offset);
		CHECK(a.escaped == b.escaped && np_str_eq(a.text, b.text));
		if (a.type == NP_JSON_STRING)
			(void)np_json_unescape(a.text, &scratch);
	} while (a.type != NP_JSON_END);
	const struct np_json_repairs *r = np_json_repairs(one.reader);
	const struct np_json_repairs *s = np_json_repairs(many.reader);
	if (!(flags & NP_JSON_COMMENTS) || status == NP_OK) /* comments are read ahead */
		CHECK(memcmp(r, s, sizeof *r) == 0);
	CHECK(!(flags & NP_JSON_STRICT) || status != NP_OK || np_json_repairs_total(r) == 0);
	np_buf_release(&scratch);
	close_reader(one);
	close_reader(many);
	return status;
}

/* A document that is read whole can be skipped whole, and by members. */
static void skip_some(np_str text, size_t window, bool readable)
{
	struct pair pair = open_reader(text, 0, window);
	struct np_json_token token = {0};
	struct np_json_member member[3];
	enum np_status status;
	size_t n, turn = text.len;
	while ((status = np_json_next(pair.reader, &token, NULL)) == NP_OK &&
	       token.type != NP_JSON_END) {
		np_str raw;
		uint64_t offset;
		if (token.type == NP_JSON_OBJECT_BEGIN && turn++ % 3) {
			while ((status = np_json_members(pair.reader, member, 3, &n, NULL)) ==
			               NP_OK &&
			       n == 3) {
			}
		} else if (turn++ % 4 == 0) {
			status = np_json_skip(pair.reader, &raw, &offset, NULL);
			CHECK(status != NP_OK || !raw.len || text.ptr + offset == raw.ptr);
		}
		if (status != NP_OK)
			break;
	}
	CHECK(!readable || status == NP_OK);
	close_reader(pair);
}

/* The value of a key just read, token by token: its first token to *first, its end. */
static uint64_t read_value(struct np_json *reader, struct np_json_token *first)
{
	struct np_json_token token;
	CHECK(np_json_next(reader, first, NULL) == NP_OK);
	if (first->type == NP_JSON_OBJECT_BEGIN || first->type == NP_JSON_ARRAY_BEGIN) {
		do {
			CHECK(np_json_next(reader, &token, NULL) == NP_OK);
		} while (token.depth != first->depth);
	}
	return np_json_offset(reader);
}

/* np_json_members() gives what np_json_next() gives, for a text that is readable. */
static void compare_members(np_str text, size_t window)
{
	struct pair long_way = open_reader(text, 0, 0), fast = open_reader(text, 0, window);
	struct np_json_token a = {0}, b = {0}, key;
	struct np_json_member member[4];
	size_t n = 0;
	do {
		CHECK(np_json_next(long_way.reader, &a, NULL) == NP_OK);
		CHECK(np_json_next(fast.reader, &b, NULL) == NP_OK);
		CHECK(a.type == b.type && a.offset == b.offset && a.depth == b.depth);
		if (a.type != NP_JSON_OBJECT_BEGIN)
			continue;
		do {
			CHECK(np_json_members(fast.reader, member, 4, &n, NULL) == NP_OK);
			for (size_t i = 0; i < n; i++) {
				const struct np_json_token *value = &member[i].value;
				CHECK(np_json_next(long_way.reader, &key, NULL) == NP_OK);
				CHECK(key.type == NP_JSON_KEY &&
				      np_str_eq(key.text, member[i].key));
				CHECK(key.escaped == member[i].key_escaped);
				CHECK(key.offset == member[i].key_offset);
				uint64_t end = read_value(long_way.reader, &key);
				if (key.type == NP_JSON_OBJECT_BEGIN ||
				    key.type == NP_JSON_ARRAY_BEGIN)
					key.text = np_str_sub(text, key.offset, end - key.offset);
				CHECK(key.type == value->type && key.offset == value->offset);
				CHECK(key.escaped == value->escaped && key.depth == value->depth);
				CHECK(np_str_eq(key.text, value->text));
			}
		} while (n == 4);
		CHECK(np_json_next(long_way.reader, &a, NULL) == NP_OK);
		CHECK(a.type == NP_JSON_OBJECT_END);
	} while (a.type != NP_JSON_END);
	close_reader(long_way);
	close_reader(fast);
}

static size_t count_nodes(const struct np_jval *node)
{
	size_t n = 1;
	for (size_t i = 0; i < node->n; i++)
		n += count_nodes(&node->child[i]);
	return n;
}

static void parse_tree(np_str text, enum np_status expected)
{
	struct np_arena arena;
	struct np_input *input;
	const struct np_jval *root;
	np_arena_init(&arena);
	CHECK(np_input_open_mem(text, "fuzz", 0, &input, NULL) == NP_OK);
	CHECK(np_json_parse(&arena, input, 0, &root, NULL, NULL) == expected);
	CHECK((root != NULL) == (expected == NP_OK));
	if (root)
		CHECK(count_nodes(root) > 0);
	np_input_close(input);
	np_arena_release(&arena);
}

/* Any bytes, quoted, are one string of valid JSON. */
static void quote(np_str text)
{
	struct np_buf out = {0};
	np_json_quote(&out, text);
	CHECK(!out.failed);
	CHECK(compare_windows(np_buf_str(&out), NP_JSON_STRICT, 5) == NP_OK);
	np_buf_release(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	np_str text = {(const char *)data, size};
	size_t window = size ? 1 + data[size - 1] % 97u : 1;
	enum np_status status = compare_windows(text, 0, window);
	(void)compare_windows(text, NP_JSON_STRICT, window);
	(void)compare_windows(text, NP_JSON_COMMENTS, window);
	skip_some(text, 0, status == NP_OK);
	skip_some(text, window, status == NP_OK);
	if (status == NP_OK) {
		compare_members(text, 0);
		compare_members(text, window);
	}
	parse_tree(text, status);
	quote(text);
	return 0;
}
