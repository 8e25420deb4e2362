#include "unit.h"

#include "base/mem.h"
#include "report/embed.h"
#include "report/lang.h"
#include "report/report.h"
#include "report/writer.h"

static int back_to_english(void **state)
{
	(void)state;
	np_mem_fail_after(0);
	return np_lang_use(NP_LANG_EN, NULL);
}

static void chinese(void)
{
	assert_int_equal(np_lang_use(NP_LANG_ZH, NULL), NP_OK);
}

static bool count_entry(void *to, np_str context, np_str id, np_str text)
{
	char a[1024], b[1024];
	(void)context;
	if (id.len == 0)
		return true;
	(void)snprintf(a, sizeof a, "%.*s", NP_FMT(id));
	(void)snprintf(b, sizeof b, "%.*s", NP_FMT(text));
	if (!np_format_equal(a, b))
		fail_msg("\"%s\" and \"%s\" take different arguments", a, b);
	++*(size_t *)to;
	return true;
}

static void every_translation_takes_the_arguments_of_its_english(void **state)
{
	(void)state;
	size_t n = 0;
	assert_true(np_po_read(np_embedded_po(), count_entry, &n));
	assert_true(n > 300);
}

static void english_is_given_back_as_it_is(void **state)
{
	(void)state;
	static const char text[] = "Steps";
	assert_int_equal(np_lang(), NP_LANG_EN);
	assert_ptr_equal(np_tr(text), text);
	assert_null(np_tr_column("step"));
	chinese();
	static const char unknown[] = "no such text anywhere";
	assert_ptr_equal(np_tr(unknown), unknown);
	assert_ptr_equal(np_tr(""), np_tr(""));
	assert_null(np_tr(NULL));
	assert_null(np_tr_column("no_such_column"));
}

static void texts_and_columns_are_translated_apart(void **state)
{
	(void)state;
	chinese();
	assert_string_equal(np_tr("Steps"), "步");
	assert_string_equal(np_tr("free / span"), "空闲 / 时长");
	assert_string_equal(np_tr_column("free_share"), "空闲占比");
	assert_string_equal(np_tr("free_share"), "free_share"); /* a column's name is no text */
}

static void a_report_speaks_chinese_where_it_is_made(void **state)
{
	(void)state;
	static const struct np_column columns[] = {{"span_ns", "us", NP_COL_DUR_NS, ""}};
	chinese();
	struct np_report *report = np_report_new("check");
	struct np_finding *finding = np_report_finding(
		report, "RAW_ONLY", NP_ERROR, "%zu raw dumps were never exported", (size_t)3);
	np_finding_advice(finding, "%s", "The same command for each of them.");
	np_finding_detail(finding, "%s", "named in a capture");
	struct np_table *table = NP_REPORT_TABLE(report, "steps", "Steps", columns);
	np_cell_int(table, 1500);
	report->verdict = NP_VERDICT_FAIL;
	assert_string_equal(finding->title, "3 份原始数据从未导出");
	assert_string_equal(finding->advice, "对每一份执行同样的命令。");
	assert_string_equal(finding->detail, "named in a capture");

	struct np_buf out = {0};
	struct np_write_options options = {.format = NP_FORMAT_TEXT};
	assert_int_equal(np_report_write(report, &options, &out, NULL), NP_OK);
	assert_string_equal(out.ptr, "npuprof check\n"
	                             "结论：不通过 (1 错误)\n"
	                             "\n"
	                             "错误 RAW_ONLY 3 份原始数据从未导出\n"
	                             "  named in a capture\n"
	                             "  建议：对每一份执行同样的命令。\n"
	                             "\n"
	                             "步\n"
	                             "  时长 (us)\n"
	                             "      1.500\n");
	np_buf_clear(&out);
	options.format = NP_FORMAT_JSON; /* programs read the same keys in any language */
	assert_int_equal(np_report_write(report, &options, &out, NULL), NP_OK);
	assert_non_null(strstr(out.ptr, "\"verdict\": \"FAIL\""));
	assert_non_null(strstr(out.ptr, "\"severity\": \"error\""));
	assert_non_null(strstr(out.ptr, "\"name\": \"span_ns\""));
	np_buf_release(&out);
	np_report_free(report);
}

static void a_word_is_translated_for_people_and_kept_for_programs(void **state)
{
	(void)state;
	static const struct np_column columns[] = {{"class", "", NP_COL_TEXT, ""},
	                                           {"name", "", NP_COL_TEXT, ""}};
	static const enum np_format formats[] = {NP_FORMAT_TEXT, NP_FORMAT_MD, NP_FORMAT_HTML,
	                                         NP_FORMAT_JSON, NP_FORMAT_CSV};
	chinese();
	struct np_report *report = np_report_new("analyze");
	struct np_table *table = NP_REPORT_TABLE(report, "classes", "Kinds of work", columns);
	np_cell_word(table, "communication");
	np_cell_text(table, NP_STR("vector")); /* stands in a capture */
	np_cell_word(table, NULL);
	np_cell_word(table, "no such word");
	for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
		struct np_buf out = {0};
		struct np_write_options options = {.format = formats[i], .table = "classes"};
		bool program = formats[i] == NP_FORMAT_JSON || formats[i] == NP_FORMAT_CSV;
		assert_int_equal(np_report_write(report, &options, &out, NULL), NP_OK);
		assert_true((strstr(out.ptr, "通信") != NULL) == !program);
		assert_true((strstr(out.ptr, "communication") != NULL) == program);
		assert_non_null(strstr(out.ptr, "vector"));
		assert_non_null(strstr(out.ptr, "no such word"));
		np_buf_release(&out);
	}
	np_report_free(report);
}

static void formats_are_equal_when_they_take_the_same_arguments(void **state)
{
	(void)state;
	assert_true(np_format_equal("%zu of %s", "%zu（%s）"));
	assert_true(np_format_equal("100 %% of %5.1f", "%5.1f 的 100 %%"));
	assert_true(np_format_equal("", "一"));
	assert_false(np_format_equal("%s", "%d"));
	assert_false(np_format_equal("%s of %zu", "%zu of %s"));
	assert_false(np_format_equal("%ld", "%lld"));
	assert_false(np_format_equal("none", "%n"));
	assert_false(np_format_equal("%s", "%s %"));
	assert_false(np_format_equal("%s %*d", "%s %d"));
}

struct entries {
	size_t n;
	char text[512];
};

static bool note_entry(void *to, np_str context, np_str id, np_str text)
{
	struct entries *entries = to;
	size_t len = strlen(entries->text);
	(void)snprintf(entries->text + len, sizeof entries->text - len, "[%.*s|%.*s|%.*s]",
	               NP_FMT(context), NP_FMT(id), NP_FMT(text));
	entries->n++;
	return true;
}

static void a_catalogue_is_read_with_its_continuations_and_escapes(void **state)
{
	(void)state;
	struct entries got = {0};
	assert_true(np_po_read(NP_STR("# head\nmsgid \"\"\nmsgstr \"x: y\\n\"\n\n#: a.c\n"
	                              "msgid \"one \"\n\"two\\t\\\"\"\nmsgstr \"\"\n\"eins\\n\"\n"
	                              "msgctxt \"column\"\nmsgid \"a\"\nmsgstr \"b\"\r\n"
	                              "msgid \"empty\"\nmsgstr \"\"\nmsgid \"z\"\nmsgstr \"Z\""),
	                       note_entry, &got));
	assert_string_equal(got.text, "[||x: y\n][|one two\t\"|eins\n][column|a|b][|z|Z]");
}

static void a_malformed_entry_is_left_out_and_the_rest_is_read(void **state)
{
	(void)state;
	static const char *const bad[] = {
		"msgid \"a\nmsgstr \"A\"\n",
		"msgid a\nmsgstr \"A\"\n",
		"msgid \"a\"\nmsgstr \"\\q\"\n",
		"msgid \"a\"\nmsgstr \"\\\"\n",
		"msgid \"a\"\nmsgstr \"A\"\nxyz\n",
		"\"alone\"\n",
		"msgid\n",
		"msgstr \"",
	};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct entries got = {0};
		char text[256];
		(void)snprintf(text, sizeof text, "%s\nmsgid \"z\"\nmsgstr \"Z\"\n", bad[i]);
		assert_true(np_po_read(np_str_of(text), note_entry, &got));
		assert_non_null(strstr(got.text, "|z|Z]"));
		assert_null(strstr(got.text, "[|a|A"));
	}
}

static void languages_have_names(void **state)
{
	(void)state;
	enum np_lang lang = NP_LANG_EN;
	assert_true(np_lang_parse("zh_CN.UTF-8", &lang));
	assert_int_equal(lang, NP_LANG_ZH);
	assert_true(np_lang_parse("en", &lang));
	assert_int_equal(lang, NP_LANG_EN);
	assert_false(np_lang_parse("de_DE", &lang));
	assert_false(np_lang_parse("", &lang));
	assert_false(np_lang_parse(NULL, &lang));
}

static void without_memory_the_language_stays_english(void **state)
{
	(void)state;
	bool done = false;
	for (uint64_t n = 1; !done && n < 10000; n++) {
		np_mem_fail_after(n);
		enum np_status status = np_lang_use(NP_LANG_ZH, NULL);
		np_mem_fail_after(0);
		done = status == NP_OK;
		assert_int_equal(np_lang(), done ? NP_LANG_ZH : NP_LANG_EN);
		assert_true(done || status == NP_E_NOMEM);
	}
	assert_true(done);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(every_translation_takes_the_arguments_of_its_english,
	                                  back_to_english),
		cmocka_unit_test_teardown(english_is_given_back_as_it_is, back_to_english),
		cmocka_unit_test_teardown(texts_and_columns_are_translated_apart, back_to_english),
		cmocka_unit_test_teardown(a_report_speaks_chinese_where_it_is_made,
	                                  back_to_english),
		cmocka_unit_test_teardown(a_word_is_translated_for_people_and_kept_for_programs,
	                                  back_to_english),
		cmocka_unit_test(formats_are_equal_when_they_take_the_same_arguments),
		cmocka_unit_test(a_catalogue_is_read_with_its_continuations_and_escapes),
		cmocka_unit_test(a_malformed_entry_is_left_out_and_the_rest_is_read),
		cmocka_unit_test(languages_have_names),
		cmocka_unit_test_teardown(without_memory_the_language_stays_english,
	                                  back_to_english),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
