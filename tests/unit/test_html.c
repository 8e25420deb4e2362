#include "unit.h"

#include "report/embed.h"
#include "report/html_hashes.h"
#include "report/writer.h"
#include "report_fixture.h"

static const struct np_column name_columns[] = {
	{"name", "", NP_COL_TEXT, ""},
	{"count", "", NP_COL_INT, ""},
};

static struct np_buf page_of(const struct np_report *report, size_t max_bytes)
{
	struct np_buf out = {.max_bytes = SIZE_MAX / 4};
	struct np_err err = {0};
	struct np_write_options options = {.format = NP_FORMAT_HTML, .max_bytes = max_bytes};
	if (np_report_write(report, &options, &out, &err) != NP_OK)
		fail_msg("%s", err.msg);
	return out;
}

static size_t count(const char *text, const char *what)
{
	size_t n = 0;
	for (const char *at = text; (at = strstr(at, what)); at++)
		n++;
	return n;
}

static void add_table(struct np_report *report, const char *id, size_t rows, const char *name)
{
	struct np_table *table = NP_REPORT_TABLE(report, id, "Names", name_columns);
	for (size_t i = 0; i < rows; i++) {
		np_cell_cstr(table, name);
		np_cell_int(table, (int64_t)i);
	}
}

static void the_policy_admits_the_own_script_and_style_only(void **state)
{
	(void)state;
	struct np_report *report = fixture_report();
	struct np_buf page = page_of(report, 0);
	assert_non_null(strstr(page.ptr, "content=\"default-src 'none'; script-src "
	                                 "'sha256-" NP_HTML_SCRIPT_SHA256 "'; style-src "
	                                 "'sha256-" NP_HTML_STYLE_SHA256 "'; base-uri 'none'; "
	                                 "form-action 'none'\""));
	np_str script = np_embedded_script(), style = np_embedded_style();
	assert_non_null(memmem(page.ptr, page.len, script.ptr, script.len));
	assert_non_null(memmem(page.ptr, page.len, style.ptr, style.len));
	assert_null(memmem(script.ptr, script.len, "</", 2));
	np_buf_release(&page);
	np_report_free(report);
}

static void no_name_can_end_the_data(void **state)
{
	(void)state;
	static const char evil[] = "</script><!--<script>alert(1)</script>";
	struct np_report *report = np_report_new(evil);
	np_report_input(report, evil);
	np_report_note(report, "%s", evil);
	add_table(report, evil, 3, evil);
	struct np_finding *finding = np_report_finding(report, "EVIL", NP_ERROR, "%s", evil);
	np_finding_detail(finding, "%s", evil);
	np_finding_advice(finding, "%s", evil);
	np_finding_command(finding, "%s", evil);
	np_finding_evidence(finding, evil, evil, evil, "%s", evil);
	struct np_buf page = page_of(report, 0);
	/* the data and the code: two elements, two ends */
	assert_int_equal(count(page.ptr, "<script"), 2);
	assert_int_equal(count(page.ptr, "</script"), 2);
	assert_int_equal(count(page.ptr, "<!--"), 0);
	assert_int_equal(count(page.ptr, "\\u003cscript\\u003ealert(1)"), 15);
	np_buf_release(&page);
	np_report_free(report);
}

static void the_longest_table_loses_rows_and_the_page_tells(void **state)
{
	(void)state;
	enum { LIMIT = 100000 };
	struct np_report *report = np_report_new("report");
	add_table(report, "long", 50000, "a name of some length");
	add_table(report, "short", 7, "kept");
	struct np_buf page = page_of(report, LIMIT);
	assert_in_range(page.len, LIMIT - 1000, LIMIT);
	assert_non_null(strstr(page.ptr, "\"total\":50000,"));
	assert_int_equal(count(page.ptr, "[\"kept\","), 7);
	assert_in_range(count(page.ptr, "a name of some length"), 1000, 49999);
	np_buf_release(&page);
	np_report_free(report);
}

static void hostile_names_do_not_burst_the_limit(void **state)
{
	(void)state;
	enum { NAME = 20000 };
	char *name = malloc(NAME + 1);
	memset(name, '<', NAME); /* six bytes each */
	name[NAME] = '\0';
	struct np_report *report = np_report_new("report");
	add_table(report, "names", 500, name);
	for (int i = 0; i < 300; i++)
		np_report_note(report, "%s", name);
	struct np_buf page = page_of(report, 0);
	assert_true(page.len <= NP_HTML_BYTES);
	assert_true(count(page.ptr, "\\u003c…\"") > 10); /* cut, at a whole character */
	np_buf_release(&page);
	np_report_free(report);
	free(name);
}

static void a_limit_below_the_empty_page_is_an_error(void **state)
{
	(void)state;
	struct np_report *report = fixture_report();
	struct np_buf out = {0};
	struct np_write_options options = {.format = NP_FORMAT_HTML, .max_bytes = 1000};
	assert_int_equal(np_report_write(report, &options, &out, NULL), NP_E_LIMIT);
	np_buf_release(&out);
	np_report_free(report);
}

static void the_gravest_findings_come_first(void **state)
{
	(void)state;
	struct np_report *report = np_report_new("report");
	(void)np_report_finding(report, "MILD", NP_INFO, "mild");
	(void)np_report_finding(report, "GRAVE", NP_ERROR, "grave");
	(void)np_report_finding(report, "MIDDLE", NP_WARNING, "middle");
	struct np_buf page = page_of(report, 0);
	const char *grave = strstr(page.ptr, "\"GRAVE\"");
	const char *middle = strstr(page.ptr, "\"MIDDLE\""), *mild = strstr(page.ptr, "\"MILD\"");
	assert_true(grave && grave < middle && middle < mild);
	np_buf_release(&page);
	np_report_free(report);
}

static void integers_that_a_script_would_round_are_texts(void **state)
{
	(void)state;
	struct np_report *report = np_report_new("report");
	struct np_table *table = NP_REPORT_TABLE(report, "ids", "Ids", name_columns);
	np_cell_cstr(table, "a");
	np_cell_int(table, INT64_C(9007199254740993));
	np_cell_cstr(table, "b");
	np_cell_int(table, INT64_C(-9007199254740991));
	struct np_buf page = page_of(report, 0);
	assert_non_null(strstr(page.ptr, "[\"a\",\"9007199254740993\"]"));
	assert_non_null(strstr(page.ptr, "[\"b\",-9007199254740991]"));
	np_buf_release(&page);
	np_report_free(report);
}

static void md_can_be_short_enough_to_paste(void **state)
{
	(void)state;
	struct np_report *report = np_report_new("report");
	struct np_buf out = {0};
	struct np_write_options options = {.format = NP_FORMAT_MD, .max_rows = 2};
	add_table(report, "names", 5, "x");
	struct np_finding *finding = np_report_finding(report, "F", NP_INFO, "f");
	for (int i = 0; i < 3; i++)
		np_finding_evidence(finding, NULL, NULL, NULL, "evidence %d", i);
	assert_int_equal(np_report_write(report, &options, &out, NULL), NP_OK);
	assert_int_equal(count(out.ptr, "| x |"), 2);
	assert_non_null(strstr(out.ptr, "\n… 3 more rows\n"));
	assert_int_equal(count(out.ptr, "evidence "), 2);
	assert_non_null(strstr(out.ptr, "\n  - … 1 more\n"));
	np_buf_release(&out);
	np_report_free(report);
}

static void equal_findings_are_united(void **state)
{
	(void)state;
	struct np_report *report = np_report_new("report");
	for (int i = 0; i < 4; i++) {
		struct np_finding *finding =
			np_report_finding(report, i == 3 ? "B" : "A", NP_INFO, "%d", i % 2);
		np_finding_evidence(finding, NULL, NULL, NULL, "%d", i);
	}
	np_report_unite_findings(report);
	assert_int_equal(report->findings.n, 3);
	assert_string_equal(report->findings.v[0]->evidence.v[0].text, "0");
	assert_string_equal(report->findings.v[1]->evidence.v[0].text, "1");
	assert_string_equal(report->findings.v[2]->code, "B");
	np_report_free(report);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_policy_admits_the_own_script_and_style_only),
		cmocka_unit_test(no_name_can_end_the_data),
		cmocka_unit_test(the_longest_table_loses_rows_and_the_page_tells),
		cmocka_unit_test(hostile_names_do_not_burst_the_limit),
		cmocka_unit_test(a_limit_below_the_empty_page_is_an_error),
		cmocka_unit_test(the_gravest_findings_come_first),
		cmocka_unit_test(integers_that_a_script_would_round_are_texts),
		cmocka_unit_test(md_can_be_short_enough_to_paste),
		cmocka_unit_test(equal_findings_are_united),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
