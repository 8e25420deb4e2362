#include "unit.h"

#include <signal.h>
#include <sys/resource.h>

#include "base/fs.h"
#include "report/xlsx.h"
#include "report_fixture.h"
#include "temp_tree.h"

/* What a workbook holds is looked at by tests/e2e/xlsx.py. */

static void assert_text(np_str text, size_t max_units, const char *expected)
{
	struct np_buf out = {0};
	np_xlsx_text(&out, text, max_units);
	assert_false(out.failed);
	assert_str(np_buf_str(&out), expected);
	np_buf_release(&out);
}

static void texts_are_made_harmless_and_cut(void **state)
{
	(void)state;
	assert_text(NP_STR("plain"), 5, "plain");
	assert_text(NP_STR("plain!"), 5, "plai…");
	assert_text(NP_STR(""), 5, "");
	assert_text(NP_STR("a\nb\tc"), 5, "a\nb\tc");
	assert_text(NP_STR("a\r\nb\rc"), 9, "a\nb\\rc");
	assert_text(NP_STR("\x1b[0m"), 9, "\\x1b[0m");
	assert_text((np_str){"a\0b", 3}, 9, "a\\x00b");
	assert_text(NP_STR("\x7f\xc2\x85\xff"), 20, "\\x7f\\u0085\\xff");
	assert_text(NP_STR("\xef\xbf\xbf"), 20, "\\uffff");
	assert_text(NP_STR("_x0041_"), 20, "_x005F_x0041_");
	assert_text(NP_STR("_x0041"), 20, "_x0041");
	assert_text(NP_STR("_x00g1_"), 20, "_x00g1_");
	assert_text(NP_STR("_x005F_"), 20, "_x005F_x005F_");
	/* cut by UTF-16 units, and never inside an escape */
	assert_text(NP_STR("矩阵乘法"), 4, "矩阵乘法");
	assert_text(NP_STR("矩阵乘法"), 3, "矩阵…");
	assert_text(NP_STR("\xf0\x9f\x98\x80\xf0\x9f\x98\x80"), 4,
	            "\xf0\x9f\x98\x80\xf0\x9f\x98\x80");
	assert_text(NP_STR("\xf0\x9f\x98\x80\xf0\x9f\x98\x80"), 3, "\xf0\x9f\x98\x80…");
	assert_text(NP_STR("ab\x1b"), 5, "ab…");
	assert_text(NP_STR("ab_x0041_"), 8, "ab…");
}

static void assert_name(struct np_xlsx_names *names, const char *wanted, const char *expected)
{
	const char *name = np_xlsx_name(names, wanted);
	assert_non_null(name);
	assert_string_equal(name, expected);
}

static void names_of_sheets_are_allowed_and_unique(void **state)
{
	(void)state;
	struct np_xlsx_names names = {0};
	assert_name(&names, "Api Compare", "Api Compare");
	assert_name(&names, "API compare", "API compare~2");
	assert_name(&names, "api compare~2", "api compare~2~2");
	assert_name(&names, "rank[0]: a/b\\c*d?'", "rank_0__ a_b_c_d__");
	assert_name(&names, "1234567890123456789012345678901", "1234567890123456789012345678901");
	assert_name(&names, "12345678901234567890123456789012", "12345678901234567890123456789~2");
	assert_name(&names, "  ", "Sheet");
	assert_name(&names, "", "Sheet~2");
	assert_name(&names, "History", "History~2");
	np_xlsx_names_release(&names);
}

static void a_thousand_sheets_of_one_name_are_told_apart(void **state)
{
	(void)state;
	struct np_xlsx_names names = {0};
	const char *name = "";
	for (int i = 0; i < 1000; i++) {
		name = np_xlsx_name(&names, "a name that is longer than a sheet's may be");
		assert_non_null(name);
		assert_true(strlen(name) <= NP_XLSX_NAME_CHARS);
	}
	assert_string_equal(name, "a name that is longer than~1000");
	np_xlsx_names_release(&names);
}

static void names_that_formulas_misread_are_known(void **state)
{
	(void)state;
	static const char *const ambiguous[] = {"A1",   "xfd1048576", "R1C1", "rc",   "r",
	                                        "2024", "0",          ".5",   "TRUE", "TOP10"};
	static const char *const plain[] = {"Sheet1", "rank 0", "A 1", "matmul", "_1", "通信1"};
	for (size_t i = 0; i < sizeof ambiguous / sizeof *ambiguous; i++)
		assert_true(np_xlsx_name_is_ambiguous(ambiguous[i]));
	for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
		assert_false(np_xlsx_name_is_ambiguous(plain[i]));
}

static size_t count_files(const char *dir)
{
	struct np_arena arena;
	struct np_dir list;
	np_arena_init(&arena);
	assert_int_equal(np_dir_list(&arena, dir, &list, NULL), NP_OK);
	np_arena_release(&arena);
	return list.n;
}

static void assert_still_old(const char *path)
{
	struct np_arena arena;
	np_str text;
	np_arena_init(&arena);
	assert_int_equal(np_file_slurp(&arena, path, 100, &text, NULL), NP_OK);
	assert_str(text, "old");
	np_arena_release(&arena);
}

static void what_cannot_be_written_is_told_and_nothing_is_lost(void **state)
{
	(void)state;
	char root[TREE_PATH];
	struct np_err err;
	struct np_report *report = fixture_report();
	struct np_table wide = *report->tables.v[0];
	struct np_xlsx_sheet sheet = {.table = report->tables.v[0]};
	tree_put(tree_new(root), "out.xlsx", "old");
	tree_dir(root, "dir");
	assert_int_equal(np_xlsx_write(tree_path(root, "out.xlsx"), &sheet, 0, &err), NP_E_EMPTY);
	assert_int_equal(np_xlsx_write(tree_path(root, "dir"), &sheet, 1, &err), NP_E_EXISTS);
	assert_int_equal(np_xlsx_write("/dev/null", &sheet, 1, &err), NP_E_EXISTS);
	assert_int_equal(np_xlsx_write("/nonexistent/a/out.xlsx", &sheet, 1, &err), NP_E_NOTFOUND);
	wide.n_columns = NP_XLSX_COLUMNS + 1;
	sheet.table = &wide;
	assert_int_equal(np_xlsx_write(tree_path(root, "out.xlsx"), &sheet, 1, &err), NP_E_LIMIT);
	assert_still_old(tree_path(root, "out.xlsx"));
	assert_int_equal(count_files(root), 2);
	np_report_free(report);
	tree_remove(root);
}

/* Too small for the workbook itself, or only for libxlsxwriter's temporary files. */
static void a_full_disk_loses_nothing(void **state)
{
	(void)state;
	static const struct np_column columns[] = {{"no", "", NP_COL_INT, ""},
	                                           {"text", "", NP_COL_TEXT, ""}};
	char root[TREE_PATH];
	struct np_err err;
	struct rlimit old, small;
	struct np_report *report = np_report_new("x");
	struct np_table *table = NP_REPORT_TABLE(report, "many", "Many", columns);
	for (int i = 0; i < 110000; i++) {
		np_cell_int(table, 0);
		np_cell_cstr(table, "a text that is always the same");
	}
	struct np_xlsx_sheet sheet = {.table = table};
	tree_put(tree_new(root), "out.xlsx", "old");
	assert_int_equal(np_xlsx_write(tree_path(root, "whole.xlsx"), &sheet, 1, &err), NP_OK);
	struct np_file_stat st;
	assert_int_equal(np_file_stat(tree_path(root, "whole.xlsx"), true, &st, &err), NP_OK);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	(void)signal(SIGXFSZ, SIG_IGN);
	const uint64_t limits[] = {st.size_bytes / 2, st.size_bytes * 2};
	for (size_t i = 0; i < 2; i++) {
		small = (struct rlimit){limits[i], old.rlim_max};
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
		enum np_status status = np_xlsx_write(tree_path(root, "out.xlsx"), &sheet, 1, &err);
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
		assert_int_equal(status, NP_E_IO);
		assert_still_old(tree_path(root, "out.xlsx"));
		assert_int_equal(count_files(root), 2);
	}
	np_report_free(report);
	tree_remove(root);
}

static void out_of_memory_is_told_at_every_allocation(void **state)
{
	(void)state;
	char root[TREE_PATH];
	struct np_report *report = fixture_report();
	struct np_xlsx_sheet sheets[] = {{.table = report->tables.v[0], .n_merged = 1},
	                                 {.name = "OPS", .table = report->tables.v[0]}};
	enum np_status status = NP_E_NOMEM;
	uint64_t n = 0;
	tree_put(tree_new(root), "out.xlsx", "old");
	while (status != NP_OK) {
		assert_still_old(tree_path(root, "out.xlsx"));
		np_mem_fail_after(++n);
		status = np_xlsx_write(tree_path(root, "out.xlsx"), sheets, 2, NULL);
		np_mem_fail_after(0);
		assert_true(status == NP_OK || status == NP_E_NOMEM);
		assert_int_equal(count_files(root), 1);
		assert_true(n < 100);
	}
	assert_true(n > 5);
	np_report_free(report);
	tree_remove(root);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts_are_made_harmless_and_cut),
		cmocka_unit_test(names_of_sheets_are_allowed_and_unique),
		cmocka_unit_test(a_thousand_sheets_of_one_name_are_told_apart),
		cmocka_unit_test(names_that_formulas_misread_are_known),
		cmocka_unit_test(what_cannot_be_written_is_told_and_nothing_is_lost),
		cmocka_unit_test(a_full_disk_loses_nothing),
		cmocka_unit_test(out_of_memory_is_told_at_every_allocation),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
