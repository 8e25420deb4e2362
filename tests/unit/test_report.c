#include "unit.h"

#include "report/report.h"
#include "report/writer.h"
#include "report_fixture.h"

static void assert_safe(const char *text, const char *expected)
{
	struct np_buf out = {0};
	np_text_safe(&out, np_str_of(text));
	assert_str(np_buf_str(&out), expected);
	/* made safe twice is the same, and the width is that of what is shown */
	assert_int_equal(np_text_width(np_str_of(text)), np_text_width(np_buf_str(&out)));
	struct np_buf again = {0};
	np_text_safe(&again, np_buf_str(&out));
	assert_str(np_buf_str(&again), expected);
	np_buf_release(&again);
	np_buf_release(&out);
}

static void what_drives_a_terminal_becomes_visible(void **state)
{
	(void)state;
	assert_safe("plain text, 100 %", "plain text, 100 %");
	assert_safe("\x1b[2J\x07\x7f", "\\x1b[2J\\x07\\x7f");
	assert_safe("a\nb\rc\td", "a\\nb\\rc\\td");
	assert_safe("\xc2\x9b"
	            "31m",
	            "\\u009b31m");
	assert_safe("\xe2\x80\xae\xe2\x80\xaa\xe2\x81\xa6\xe2\x81\xa9",
	            "\\u202e\\u202a\\u2066\\u2069");
	assert_safe("\xe2\x80\x8e\xd8\x9c\xe2\x80\xa8", "\\u200e\\u061c\\u2028");
	assert_safe("\xff\xc0\x80\xed\xa0\x80\xf5", "\\xff\\xc0\\x80\\xed\\xa0\\x80\\xf5");
	assert_safe("cut \xe7\x9f", "cut \\xe7\\x9f");
	assert_safe("矩阵乘法 é ✓ \xf0\x9f\x98\x80", "矩阵乘法 é ✓ \xf0\x9f\x98\x80");
	struct np_buf out = {0};
	np_text_safe(&out, (np_str){"a\0b", 3});
	assert_str(np_buf_str(&out), "a\\x00b");
	np_buf_release(&out);
}

static void width_is_what_a_terminal_shows(void **state)
{
	(void)state;
	assert_int_equal(np_text_width(np_str_of("")), 0);
	assert_int_equal(np_text_width((np_str){NULL, 0}), 0);
	assert_int_equal(np_text_width(np_str_of("abc")), 3);
	assert_int_equal(np_text_width(np_str_of("矩阵ab")), 6);
	assert_int_equal(np_text_width(np_str_of("e\xcc\x81")), 1); /* a combining accent */
	assert_int_equal(np_text_width(np_str_of("\x1b")), 4);
	assert_int_equal(np_text_width(np_str_of("\n")), 2);
	assert_int_equal(np_text_width(np_str_of("\xe2\x80\xae")), 6);
}

static void random_bytes_are_safe_after_one_pass(void **state)
{
	(void)state;
	srandom(11);
	for (int i = 0; i < 20000; i++) {
		char bytes[40];
		size_t len = (size_t)random() % sizeof bytes;
		for (size_t k = 0; k < len; k++)
			bytes[k] = (char)(random() % 3 ? random()
			                               : "\xe2\x80\xae\xc2\x9b\x1b"[random() % 6]);
		struct np_buf once = {0}, twice = {0};
		np_text_safe(&once, (np_str){bytes, len});
		np_text_safe(&twice, np_buf_str(&once));
		assert_true(np_str_eq(np_buf_str(&once), np_buf_str(&twice)));
		assert_int_equal(np_text_width((np_str){bytes, len}),
		                 np_text_width(np_buf_str(&once)));
		for (size_t k = 0; k < once.len; k++)
			assert_true((unsigned char)once.ptr[k] >= 0x20 && once.ptr[k] != 0x7f);
		np_buf_release(&once);
		np_buf_release(&twice);
	}
}

static void a_path_becomes_one_shell_word(void **state)
{
	(void)state;
	static const struct {
		const char *path, *word;
	} cases[] = {
		{"/data/run_1/x.csv:3=@%+,-", "/data/run_1/x.csv:3=@%+,-"},
		{"a b", "'a b'"},
		{"it's", "'it'\\''s'"},
		{"$(rm -rf ~)`x`;&|<>*?[]{}!#\\\"", "'$(rm -rf ~)`x`;&|<>*?[]{}!#\\\"'"},
		{"-rf", "./-rf"},
		{"-r f", "'./-r f'"},
		{"", "''"},
		{"~root", "'~root'"},
		{"矩阵", "'矩阵'"},
		{"a\nb'c\\", "$'a\\012b\\047c\\134'"},
		{"\x1b"
	         "1\xff",
	         "$'\\0331\\377'"},
		{"-\x1b", "$'./-\\033'"},
	};
	struct np_report *report = np_report_new("x");
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_string_equal(np_shell_quote(report, cases[i].path), cases[i].word);
	np_report_free(report);
}

static void the_shell_reads_a_quoted_path_back(void **state)
{
	(void)state;
	if (access("/bin/bash", X_OK) != 0)
		skip();
	static const char *const paths[] = {"it's a $(test)", "a\nb\x1b[2J1'\\", "-n",
	                                    "\xff\xe2\x80\xae"};
	struct np_report *report = np_report_new("x");
	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
		char command[512], got[256];
		(void)snprintf(
			command, sizeof command,
			"LC_ALL=C exec /bin/bash -c \"$(cat <<'EOT'\nprintf %%s %s\nEOT\n)\"",
			np_shell_quote(report, paths[i]));
		FILE *pipe = popen(command, "r");
		assert_non_null(pipe);
		size_t len = fread(got, 1, sizeof got, pipe);
		assert_int_equal(pclose(pipe), 0);
		np_str expected = np_str_of(paths[i]);
		bool dash = paths[i][0] == '-';
		assert_true(np_str_eq(np_str_from((np_str){got, len}, dash ? 2 : 0), expected));
	}
	np_report_free(report);
}

static void rows_are_complete_after_their_columns(void **state)
{
	(void)state;
	static const struct np_column columns[] = {{"a", "", NP_COL_INT, ""},
	                                           {"b", "", NP_COL_TEXT, ""}};
	struct np_report *report = np_report_new("x");
	struct np_table *table = NP_REPORT_TABLE(report, "t", "T", columns);
	assert_int_equal(np_table_rows(table), 0);
	char name[] = "name";
	np_cell_int(table, 7);
	np_cell_cstr(table, name);
	name[0] = '!'; /* texts are copied */
	np_cell_int(table, 8);
	assert_int_equal(np_table_rows(table), 2);
	assert_int_equal(np_table_cell(table, 0, 0)->i, 7);
	assert_str(np_table_cell(table, 0, 1)->s, "name");
	assert_true(np_table_cell(table, 1, 1)->na); /* what is lacking is not available */
	assert_true(np_table_cell(table, 2, 0)->na);
	assert_true(np_table_cell(table, 0, 2)->na);
	np_cell_cstr(table, NULL);
	assert_true(np_table_cell(table, 1, 1)->na);
	np_report_free(report);
}

static void a_cell_of_the_wrong_type_is_absent_and_told_once(void **state)
{
	(void)state;
	struct np_report *report = np_report_new("x");
	struct np_table *table = NP_REPORT_TABLE(report, "ops", "T", fixture_columns);
	np_cell_int(table, 0x41414141); /* into TEXT */
	np_cell_real(table, 1.5);       /* into INT */
	np_cell_int(table, 3);          /* into REAL */
	np_cell_cstr(table, "12");      /* into DUR */
	np_cell_printf(table, "%d", 1); /* into TIME */
	np_cell_bool(table, true);      /* into BYTES */
	np_cell_int(table, 1);          /* into PERCENT */
	np_cell_real(table, 1);         /* into BOOL */
	for (size_t c = 0; c < table->n_columns; c++)
		assert_true(np_table_cell(table, 0, c)->na);
	assert_int_equal(report->notes.n, 1);
	assert_non_null(strstr(report->notes.v[0], "table ops, column name"));
	assert_int_equal(np_report_ok(report, NULL), NP_OK);
	np_report_free(report);
}

static void nan_is_not_available(void **state)
{
	(void)state;
	static const struct np_column columns[] = {{"a", "", NP_COL_REAL, ""}};
	struct np_report *report = np_report_new("x");
	struct np_table *table = NP_REPORT_TABLE(report, "t", "T", columns);
	np_cell_real(table, NAN);
	np_cell_real(table, 0);
	assert_true(np_table_cell(table, 0, 0)->na);
	assert_false(np_table_cell(table, 1, 0)->na);
	np_report_free(report);
}

static void findings_are_counted_by_severity(void **state)
{
	(void)state;
	struct np_report *report = fixture_report();
	assert_int_equal(np_report_count(report, NP_ERROR), 1);
	assert_int_equal(np_report_count(report, NP_WARNING), 2);
	assert_int_equal(np_report_count(report, NP_INFO), 3);
	assert_string_equal(np_severity_name(NP_WARNING), "warning");
	assert_string_equal(np_verdict_name(NP_VERDICT_UNKNOWN), "UNKNOWN");
	np_report_free(report);
}

/* Building goes on over any failure, and the report says so at the end. */
static void memory_that_runs_out_is_told_once(void **state)
{
	(void)state;
	uint64_t n = 1;
	for (; n < 10000; n++) {
		np_mem_fail_after(n);
		struct np_report *report = fixture_report();
		np_mem_fail_after(0);
		struct np_err err = {0};
		enum np_status status = report ? np_report_ok(report, &err) : NP_E_NOMEM;
		if (report && status != NP_OK) {
			assert_int_equal(err.code, NP_E_NOMEM);
			/* still harmless to use */
			fixture_findings(report);
			fixture_table(report);
			assert_string_equal(np_shell_quote(report, "a"), "");
			assert_int_equal(np_report_ok(report, NULL), NP_E_NOMEM);
		}
		np_report_free(report);
		if (status == NP_OK)
			break;
	}
	assert_in_range(n, 5, 9999); /* it failed somewhere, and came through in the end */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_drives_a_terminal_becomes_visible),
		cmocka_unit_test(width_is_what_a_terminal_shows),
		cmocka_unit_test(random_bytes_are_safe_after_one_pass),
		cmocka_unit_test(a_path_becomes_one_shell_word),
		cmocka_unit_test(the_shell_reads_a_quoted_path_back),
		cmocka_unit_test(rows_are_complete_after_their_columns),
		cmocka_unit_test(a_cell_of_the_wrong_type_is_absent_and_told_once),
		cmocka_unit_test(nan_is_not_available),
		cmocka_unit_test(findings_are_counted_by_severity),
		cmocka_unit_test(memory_that_runs_out_is_told_once),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
