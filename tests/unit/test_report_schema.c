/* The JSON writer against docs/schema/report.schema.json, by a validator of just
 * the keywords that schema uses; it fails on any other. */
#include "unit.h"

#include "io/json.h"
#include "report/writer.h"
#include "report_fixture.h"

static const struct np_jval *schema_root;
static char complaint[256];

static bool complain(const char *what, np_str where)
{
	if (!complaint[0])
		(void)snprintf(complaint, sizeof complaint, "%s at \"%.*s\"", what, NP_FMT(where));
	return false;
}

static bool same(const struct np_jval *a, const struct np_jval *b)
{
	return a->type == b->type && np_str_eq(a->text, b->text) && a->n == 0 && b->n == 0;
}

static bool type_is(const struct np_jval *value, np_str name)
{
	static const char *const names[] = {"null",   "boolean", "boolean", "number",
	                                    "string", "array",   "object"};
	return np_str_is(name, names[value->type]);
}

static bool one_of_types(const struct np_jval *value, const struct np_jval *type)
{
	bool ok = type->type == NP_J_STRING && type_is(value, type->text);
	for (size_t i = 0; i < type->n; i++)
		ok = ok || type_is(value, type->child[i].text);
	return ok;
}

static bool valid(const struct np_jval *value, const struct np_jval *schema);

static const struct np_jval *resolve(np_str ref)
{
	char name[64];
	assert_true(np_str_starts(ref, NP_STR("#/$defs/")));
	(void)snprintf(name, sizeof name, "%.*s", NP_FMT(np_str_from(ref, strlen("#/$defs/"))));
	const struct np_jval *schema = np_jget(np_jget(schema_root, "$defs"), name);
	assert_non_null(schema);
	return schema;
}

static bool has(const struct np_jval *object, np_str key)
{
	for (size_t i = 0; i < object->n; i++)
		if (np_str_eq(object->child[i].key, key))
			return true;
	return false;
}

static bool members_valid(const struct np_jval *value, const struct np_jval *properties)
{
	for (size_t i = 0; i < value->n; i++) {
		const struct np_jval *schema = NULL;
		for (size_t k = 0; k < properties->n; k++)
			if (np_str_eq(properties->child[k].key, value->child[i].key))
				schema = &properties->child[k];
		if (!schema)
			return complain("member not in the schema", value->child[i].key);
		if (!valid(&value->child[i], schema))
			return false;
	}
	return true;
}

static bool keyword_holds(const struct np_jval *value, const struct np_jval *keyword)
{
	bool ok = true;
	if (np_str_is(keyword->key, "$ref"))
		return valid(value, resolve(keyword->text));
	if (np_str_is(keyword->key, "type")) {
		ok = one_of_types(value, keyword);
	} else if (np_str_is(keyword->key, "const")) {
		ok = same(value, keyword);
	} else if (np_str_is(keyword->key, "enum")) {
		ok = false;
		for (size_t i = 0; i < keyword->n; i++)
			ok = ok || same(value, &keyword->child[i]);
	} else if (np_str_is(keyword->key, "required")) {
		for (size_t i = 0; i < keyword->n; i++)
			ok = ok && has(value, keyword->child[i].text);
	} else if (np_str_is(keyword->key, "properties")) {
		return members_valid(value, keyword);
	} else if (np_str_is(keyword->key, "items")) {
		for (size_t i = 0; i < value->n; i++)
			if (!valid(&value->child[i], keyword))
				return false;
	} else if (np_str_is(keyword->key, "additionalProperties")) {
		assert_int_equal(keyword->type, NP_J_FALSE); /* members_valid() is that strict */
	} else if (np_str_is(keyword->key, "pattern")) {
		for (size_t i = 0; i < value->text.len; i++)
			ok = ok &&
			     strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_", value->text.ptr[i]);
	} else if (!np_str_is(keyword->key, "description") && !np_str_is(keyword->key, "title") &&
	           !np_str_is(keyword->key, "$schema") && !np_str_is(keyword->key, "$defs")) {
		fail_msg("keyword %.*s is not known here", NP_FMT(keyword->key));
	}
	return ok || complain("keyword does not hold", keyword->key);
}

static bool valid(const struct np_jval *value, const struct np_jval *schema)
{
	for (size_t i = 0; i < schema->n; i++)
		if (!keyword_holds(value, &schema->child[i]))
			return complain("invalid", value->key);
	return true;
}

static const struct np_jval *parse(struct np_arena *arena, np_str text)
{
	struct np_input *input = NULL;
	struct np_err err = {0};
	const struct np_jval *root = NULL;
	assert_int_equal(np_input_open_mem(text, "report", 0, &input, &err), NP_OK);
	if (np_json_parse(arena, input, NP_JSON_STRICT, &root, NULL, &err) != NP_OK)
		fail_msg("%s: %s", err.where, err.msg);
	np_input_close(input);
	return root;
}

static void load_schema(struct np_arena *arena)
{
	char path[4096];
	struct np_err err = {0};
	const char *source = getenv("NPUPROF_SOURCE");
	(void)snprintf(path, sizeof path, "%s/docs/schema/report.schema.json",
	               source ? source : ".");
	if (np_json_parse_file(arena, path, NP_JSON_STRICT, &schema_root, NULL, &err) != NP_OK)
		fail_msg("%s: %s", err.where, err.msg);
	complaint[0] = '\0';
}

static void write_json(struct np_report *report, struct np_buf *out)
{
	struct np_write_options options = {.format = NP_FORMAT_JSON};
	assert_non_null(report);
	assert_int_equal(np_report_write(report, &options, out, NULL), NP_OK);
	np_report_free(report);
}

static void reports_are_valid(void **state)
{
	(void)state;
	struct np_arena arena;
	np_arena_init(&arena);
	load_schema(&arena);
	struct np_report *reports[] = {fixture_report(), np_report_new("info")};
	for (size_t i = 0; i < sizeof reports / sizeof *reports; i++) {
		struct np_buf out = {0};
		write_json(reports[i], &out);
		if (!valid(parse(&arena, np_buf_str(&out)), schema_root))
			fail_msg("%s", complaint);
		np_buf_release(&out);
	}
	np_arena_release(&arena);
}

static void cells_have_the_type_of_their_column(void **state)
{
	(void)state;
	struct np_arena arena;
	struct np_buf out = {0};
	np_arena_init(&arena);
	write_json(fixture_report(), &out);
	const struct np_jval *table = np_jget(parse(&arena, np_buf_str(&out)), "tables")->child;
	const struct np_jval *columns = np_jget(table, "columns"), *rows = np_jget(table, "rows");
	assert_int_equal(rows->n, sizeof fixture_names / sizeof *fixture_names + 1);
	for (size_t r = 0; r < rows->n; r++) {
		assert_int_equal(rows->child[r].n, columns->n);
		for (size_t c = 0; c < columns->n; c++) {
			const struct np_jval *cell = &rows->child[r].child[c];
			np_str type = np_jstr(np_jget(&columns->child[c], "type"));
			bool na = cell->type == NP_J_NULL;
			bool boolean = cell->type == NP_J_TRUE || cell->type == NP_J_FALSE;
			assert_true(na || (cell->type == NP_J_STRING) == np_str_is(type, "text"));
			assert_true(na || boolean == np_str_is(type, "bool"));
			bool integer = np_str_is(type, "int") || np_str_is(type, "duration") ||
			               np_str_is(type, "time") || np_str_is(type, "bytes");
			int64_t value;
			assert_true(na || !integer || np_str_to_i64(cell->text, &value));
		}
	}
	np_buf_release(&out);
	np_arena_release(&arena);
}

static void names_come_back_as_they_were(void **state)
{
	(void)state;
	struct np_arena arena;
	struct np_buf out = {0};
	np_arena_init(&arena);
	write_json(fixture_report(), &out);
	const struct np_jval *table = np_jget(parse(&arena, np_buf_str(&out)), "tables")->child;
	for (size_t i = 0; i < sizeof fixture_names / sizeof *fixture_names; i++) {
		np_str got = np_jget(table, "rows")->child[i].child[0].text;
		if (i == 8) /* invalid UTF-8 can't stand in JSON */
			assert_str(got, "bad \xef\xbf\xbd\xef\xbf\xbd utf8 \xc2\x9b");
		else
			assert_str(got, fixture_names[i]);
	}
	np_buf_release(&out);
	np_arena_release(&arena);
}

static void the_validator_finds_what_is_wrong(void **state)
{
	(void)state;
	static const struct {
		const char *from, *to;
	} changes[] = {
		{"\"tool\": \"npuprof\"", "\"tool\": \"other\""},
		{"\"verdict\": \"FAIL\"", "\"verdict\": \"GOOD\""},
		{"\"exit_code\": 1", "\"exit_code\": 9"},
		{"\"notes\"", "\"Notes\""},
		{"\"severity\": \"error\"", "\"severity\": 1"},
		{"\"rows\": [\n", "\"rows\": [3,\n"},
		{"\"type\": \"duration\"", "\"type\": \"durance\""},
		{"\"KERNELS_EMPTY\"", "\"kernels\""},
	};
	struct np_arena arena;
	struct np_buf out = {0}, changed = {0};
	np_arena_init(&arena);
	load_schema(&arena);
	write_json(fixture_report(), &out);
	for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
		char *hit = strstr(out.ptr, changes[i].from);
		assert_non_null(hit);
		np_buf_clear(&changed);
		np_buf_add(&changed, out.ptr, (size_t)(hit - out.ptr));
		np_buf_add_cstr(&changed, changes[i].to);
		np_buf_add_cstr(&changed, hit + strlen(changes[i].from));
		if (valid(parse(&arena, np_buf_str(&changed)), schema_root))
			fail_msg("%s passed", changes[i].to);
	}
	np_buf_release(&out);
	np_buf_release(&changed);
	np_arena_release(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reports_are_valid),
		cmocka_unit_test(cells_have_the_type_of_their_column),
		cmocka_unit_test(names_come_back_as_they_were),
		cmocka_unit_test(the_validator_finds_what_is_wrong),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
