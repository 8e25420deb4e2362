#include "unit.h"

#include <errno.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/resource.h>

#include "report/write_db.h"
#include "report_fixture.h"
#include "temp_tree.h"

static struct np_report *one_table(int first, int rows)
{
	static const struct np_column columns[] = {
		{"index", "", NP_COL_INT, ""},
		{"startTime(us)", "us", NP_COL_REAL, ""},
		{"say \"hi\"", "", NP_COL_TEXT, ""},
	};
	struct np_report *report = np_report_new("cluster");
	assert_non_null(report);
	struct np_table *table = NP_REPORT_TABLE(report, "Times", "Times", columns);
	for (int i = 0; i < rows; i++) {
		np_cell_int(table, first + i);
		np_cell_real(table, i / 8.0);
		np_cell_printf(table, "name %d", i);
	}
	return report;
}

static void write_one(const char *path, bool keep, int first, int rows, size_t n_index_columns)
{
	struct np_db_file file;
	struct np_err err;
	struct np_report *report = one_table(first, rows);
	struct np_db_form form = {.n_index_columns = n_index_columns};
	assert_int_equal(np_db_file_begin(&file, path, keep, &err), NP_OK);
	assert_int_equal(np_db_file_table(&file, report->tables.v[0], &form, &err), NP_OK);
	assert_int_equal(np_db_file_commit(&file, &err), NP_OK);
	np_report_free(report);
}

/* Everything a query gives, values quoted as SQL, in static memory. */
static const char *ask(const char *path, const char *sql)
{
	static char out[8192];
	sqlite3 *db = NULL;
	sqlite3_stmt *stmt = NULL;
	size_t at = 0;
	out[0] = '\0';
	assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
	if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) != SQLITE_OK)
		fail_msg("%s: %s", sql, sqlite3_errmsg(db));
	while (sqlite3_step(stmt) == SQLITE_ROW)
		for (int c = 0; c < sqlite3_column_count(stmt); c++) {
			const char *text = (const char *)sqlite3_column_text(stmt, c);
			at += (size_t)snprintf(out + at, sizeof out - at, "%s%s",
			                       c    ? "|"
			                       : at ? "\n"
			                            : "",
			                       text ? text : "NULL");
			assert_true(at < sizeof out);
		}
	assert_int_equal(sqlite3_finalize(stmt), SQLITE_OK);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
	return out;
}

static void make(const char *path, const char *sql)
{
	sqlite3 *db = NULL;
	char *message = NULL;
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	if (sqlite3_exec(db, sql, NULL, NULL, &message) != SQLITE_OK)
		fail_msg("%s", message);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static size_t count_files(const char *dir)
{
	struct np_arena arena;
	struct np_dir list;
	struct np_err err;
	np_arena_init(&arena);
	assert_int_equal(np_dir_list(&arena, dir, &list, &err), NP_OK);
	np_arena_release(&arena);
	return list.n;
}

static np_str slurp(struct np_arena *arena, const char *path)
{
	struct np_err err;
	np_str text;
	assert_int_equal(np_file_slurp(arena, path, 1 << 30, &text, &err), NP_OK);
	return text;
}

static void all_types_come_back(void **state)
{
	(void)state;
	char root[TREE_PATH];
	struct np_db_file file;
	struct np_err err;
	const char *path = tree_path(tree_new(root), "out.db");
	struct np_report *report = fixture_report();
	assert_int_equal(np_db_file_begin(&file, path, false, &err), NP_OK);
	assert_int_equal(np_db_file_table(&file, report->tables.v[0], NULL, &err), NP_OK);
	assert_int_equal(np_db_file_table(&file, report->tables.v[1], NULL, &err), NP_OK);
	assert_int_equal(access(path, F_OK), -1); /* not before it is complete */
	assert_int_equal(np_db_file_commit(&file, &err), NP_OK);
	assert_string_equal(ask(path, "SELECT group_concat(name || ' ' || type) FROM "
	                              "pragma_table_info('ops')"),
	                    "name TEXT,count INTEGER,bandwidth REAL,dur_ns INTEGER,start_ns "
	                    "INTEGER,size_bytes INTEGER,busy REAL,async INTEGER");
	assert_string_equal(ask(path, "SELECT * FROM ops WHERE rowid IN (1, 2, 11)"),
	                    "MatMul_1|9223372036854775807|0.0|0|1736412474730135222|"
	                    "-9223372036854775808|0.0|1\n"
	                    "矩阵乘法|-1|NULL|1234567|1736412474730135223|544|0.125|0\n"
	                    "NULL|NULL|NULL|NULL|NULL|NULL|NULL|NULL");
	assert_string_equal(ask(path, "SELECT name FROM ops WHERE rowid = 9"),
	                    "bad \357\277\275\357\277\275 utf8 \302\233");
	assert_string_equal(ask(path, "SELECT count(*), typeof(name) FROM ops WHERE name = ''"),
	                    "1|text");
	assert_string_equal(ask(path, "SELECT typeof(count), typeof(busy), typeof(async) FROM ops "
	                              "WHERE rowid = 1"),
	                    "integer|real|integer");
	assert_string_equal(ask(path, "SELECT count(*) FROM ranks"), "0");
	assert_int_equal(count_files(root), 1);
	np_report_free(report);
	tree_remove(root);
}

static void odd_names_types_and_indexes_are_as_asked(void **state)
{
	(void)state;
	char root[TREE_PATH];
	static const char *const types[] = {"NUMERIC", NULL, "VARCHAR(10)"};
	struct np_db_file file;
	struct np_err err;
	const char *path = tree_path(tree_new(root), "out.db");
	struct np_report *report = one_table(7, 2);
	struct np_db_form form = {"select \"x\"; --", 2, types};
	assert_int_equal(np_db_file_begin(&file, path, false, &err), NP_OK);
	assert_int_equal(np_db_file_table(&file, report->tables.v[0], &form, &err), NP_OK);
	assert_int_equal(np_db_file_commit(&file, &err), NP_OK);
	assert_string_equal(ask(path, "SELECT name || ' on ' || tbl_name FROM sqlite_master ORDER "
	                              "BY type"),
	                    "ix_select \"x\"; --_index_startTime(us) on select \"x\"; --\n"
	                    "select \"x\"; -- on select \"x\"; --");
	assert_string_equal(ask(path, "SELECT group_concat(name || ' ' || type) FROM "
	                              "pragma_table_info('select \"x\"; --')"),
	                    "index NUMERIC,startTime(us) REAL,say \"hi\" VARCHAR(10)");
	assert_string_equal(ask(path,
	                        "SELECT \"index\", \"startTime(us)\", \"say \"\"hi\"\"\" FROM "
	                        "\"select \"\"x\"\"; --\""),
	                    "7|0.0|name 0\n8|0.125|name 1");
	np_report_free(report);
	tree_remove(root);
}

static void keep_leaves_what_else_is_there(void **state)
{
	(void)state;
	char root[TREE_PATH];
	const char *path = tree_path(tree_new(root), "out.db");
	write_one(path, true, 1, 3, 1); /* nothing there: a new file */
	make(path, "CREATE TABLE other(a); INSERT INTO other VALUES(42);"
	           "CREATE TRIGGER t AFTER INSERT ON times BEGIN DELETE FROM other; END");
	write_one(path, true, 10, 2, 1);
	assert_string_equal(ask(path, "SELECT * FROM other"), "42");
	assert_string_equal(ask(path, "SELECT group_concat(\"index\") FROM Times"), "10,11");
	assert_string_equal(ask(path, "PRAGMA integrity_check"), "ok");
	write_one(path, false, 20, 1, 1);
	assert_string_equal(ask(path, "SELECT group_concat(name) FROM sqlite_master"),
	                    "Times,ix_Times_index");
	assert_int_equal(count_files(root), 1);
	tree_remove(root);
}

static void keep_takes_the_place_of_a_view_and_leaves_wal_mode(void **state)
{
	(void)state;
	char root[TREE_PATH];
	const char *path = tree_path(tree_new(root), "out.db");
	make(path, "PRAGMA journal_mode=WAL; PRAGMA page_size=1024; CREATE TABLE other(a);"
	           "INSERT INTO other VALUES(42); CREATE VIEW TIMES AS SELECT * FROM other");
	write_one(path, true, 5, 1, 0);
	assert_int_equal(count_files(root), 1);
	assert_string_equal(ask(path, "SELECT \"index\", (SELECT a FROM other) FROM Times"),
	                    "5|42");
	assert_string_equal(ask(path, "PRAGMA journal_mode"), "delete");
	assert_int_equal(count_files(root), 1);
	tree_remove(root);
}

static void equal_tables_give_equal_bytes(void **state)
{
	(void)state;
	char root[TREE_PATH], first[TREE_PATH + 64];
	struct np_arena arena;
	np_arena_init(&arena);
	(void)snprintf(first, sizeof first, "%s/a.db", tree_new(root));
	write_one(first, false, 1, 5000, 2);
	write_one(tree_path(root, "b.db"), false, 1, 5000, 2);
	np_str a = slurp(&arena, first), b = slurp(&arena, tree_path(root, "b.db"));
	assert_true(a.len > 10000 && np_str_eq(a, b));
	np_arena_release(&arena);
	tree_remove(root);
}

static void assert_refused(const char *path, bool keep, enum np_status expected)
{
	struct np_db_file file;
	struct np_err err;
	assert_int_equal(np_db_file_begin(&file, path, keep, &err), expected);
	assert_int_equal(err.code, expected);
	assert_true(strlen(err.msg) > 5);
}

static void what_is_no_database_is_refused_and_stays(void **state)
{
	(void)state;
	char root[TREE_PATH];
	struct np_arena arena;
	np_arena_init(&arena);
	tree_put(tree_new(root), "text.db",
	         "this is a text, much longer than it would have to be "
	         "for a header, which takes a hundred bytes: here");
	tree_put(root, "empty.db", "");
	tree_dir(root, "dir");
	assert_refused(tree_path(root, "text.db"), true, NP_E_FORMAT);
	assert_refused(tree_path(root, "dir"), true, NP_E_EXISTS);
	assert_refused(tree_path(root, "dir"), false, NP_E_EXISTS);
	assert_refused("/dev/null", false, NP_E_EXISTS);
	assert_refused("/nonexistent/dir/out.db", false, NP_E_NOTFOUND);
	assert_int_equal(slurp(&arena, tree_path(root, "text.db")).len, 100);
	assert_int_equal(count_files(root), 3);
	write_one(tree_path(root, "empty.db"), true, 1, 1, 0);
	write_one(tree_path(root, "text.db"), false, 1, 1, 0); /* replaced, as any file */
	assert_string_equal(ask(tree_path(root, "empty.db"), "SELECT count(*) FROM Times"), "1");
	assert_int_equal(count_files(root), 3);
	np_arena_release(&arena);
	tree_remove(root);
}

static void a_damaged_file_is_refused_and_stays(void **state)
{
	(void)state;
	char root[TREE_PATH], path[TREE_PATH + 64];
	(void)snprintf(path, sizeof path, "%s/out.db", tree_new(root));
	write_one(path, false, 1, 1000, 1);
	FILE *file = fopen(path, "r+b");
	assert_non_null(file);
	assert_int_equal(fseek(file, 100, SEEK_SET), 0);
	for (int i = 0; i < 3000; i++)
		assert_int_equal(fputc(0xaa, file), 0xaa);
	assert_int_equal(fclose(file), 0);
	assert_refused(path, true, NP_E_FORMAT);
	assert_int_equal(truncate(path, 4096), 0);
	assert_refused(path, true, NP_E_TRUNCATED);
	assert_int_equal(count_files(root), 1);
	tree_remove(root);
}

/* Whoever opens the new file would play it back. */
static void a_journal_of_somebody_else_is_refused(void **state)
{
	(void)state;
	char root[TREE_PATH];
	write_one(tree_path(tree_new(root), "a.db"), false, 1, 1, 0);
	tree_put(root, "a.db-journal", "x");
	assert_refused(tree_path(root, "a.db"), true, NP_E_EXISTS);
	assert_refused(tree_path(root, "a.db"), false, NP_E_EXISTS);
	tree_put(root, "b.db-wal", "x");
	assert_refused(tree_path(root, "b.db"), false, NP_E_EXISTS);
	assert_int_equal(count_files(root), 3);
	tree_remove(root);
}

static void an_aborted_or_failed_file_leaves_the_old_one(void **state)
{
	(void)state;
	char root[TREE_PATH], gone[TREE_PATH + 16];
	struct np_db_file file;
	struct np_err err;
	struct np_report *report = one_table(50, 10);
	struct np_db_form reserved = {.name = "sqlite_mine"};
	write_one(tree_path(tree_new(root), "out.db"), false, 1, 1, 0);
	assert_int_equal(np_db_file_begin(&file, tree_path(root, "out.db"), true, &err), NP_OK);
	assert_int_equal(np_db_file_table(&file, report->tables.v[0], NULL, &err), NP_OK);
	np_db_file_abort(&file);
	assert_int_equal(np_db_file_begin(&file, tree_path(root, "out.db"), true, &err), NP_OK);
	assert_int_equal(np_db_file_table(&file, report->tables.v[0], &reserved, &err), NP_E_USAGE);
	assert_int_equal(np_db_file_table(&file, report->tables.v[0], NULL, &err), NP_E_USAGE);
	assert_int_equal(np_db_file_commit(&file, &err), NP_E_USAGE);
	assert_string_equal(ask(tree_path(root, "out.db"), "SELECT \"index\" FROM Times"), "1");
	assert_int_equal(count_files(root), 1);

	/* the directory is replaced while the file is being written */
	assert_int_equal(np_db_file_begin(&file, tree_path(root, "sub/out.db"), false, &err),
	                 NP_OK);
	assert_int_equal(np_db_file_table(&file, report->tables.v[0], NULL, &err), NP_OK);
	(void)snprintf(gone, sizeof gone, "%s/gone", root);
	assert_int_equal(rename(tree_path(root, "sub"), gone), 0);
	assert_int_equal(np_db_file_commit(&file, &err), NP_E_NOTFOUND);
	np_report_free(report);
	tree_remove(root);
}

static void a_full_disk_loses_nothing(void **state)
{
	(void)state;
	char root[TREE_PATH];
	struct np_db_file file;
	struct np_err err;
	struct rlimit old, small = {200000, 200000};
	struct np_report *report = one_table(50, 100000);
	write_one(tree_path(tree_new(root), "out.db"), false, 1, 1, 0);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	small.rlim_max = old.rlim_max;
	(void)signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	enum np_status status = np_db_file_begin(&file, tree_path(root, "out.db"), true, &err);
	assert_int_equal(status, NP_OK);
	status = np_db_file_table(&file, report->tables.v[0], NULL, &err);
	enum np_status committed = np_db_file_commit(&file, &err);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_true(status == NP_E_IO || status == NP_OK); /* the cache may hold it all */
	assert_int_equal(committed, NP_E_IO);
	assert_string_equal(ask(tree_path(root, "out.db"), "SELECT \"index\" FROM Times"), "1");
	assert_int_equal(count_files(root), 1);
	np_report_free(report);
	tree_remove(root);
}

static enum np_status write_fixture(const struct np_report *report, const char *path)
{
	struct np_db_file file;
	struct np_db_form form = {.n_index_columns = 3};
	NP_TRY(np_db_file_begin(&file, path, true, NULL));
	enum np_status status = np_db_file_table(&file, report->tables.v[0], &form, NULL);
	if (status == NP_OK)
		return np_db_file_commit(&file, NULL);
	np_db_file_abort(&file);
	return status;
}

static void out_of_memory_is_told_at_every_allocation(void **state)
{
	(void)state;
	char root[TREE_PATH];
	struct np_report *report = fixture_report();
	enum np_status status = NP_E_NOMEM;
	uint64_t n = 0;
	write_one(tree_path(tree_new(root), "out.db"), false, 1, 1, 0);
	while (status != NP_OK) {
		np_mem_fail_after(++n);
		status = write_fixture(report, tree_path(root, "out.db"));
		np_mem_fail_after(0);
		assert_true(status == NP_OK || status == NP_E_NOMEM);
		assert_int_equal(count_files(root), 1);
		assert_true(n < 100);
	}
	assert_true(n > 3);
	assert_string_equal(ask(tree_path(root, "out.db"),
	                        "SELECT (SELECT count(*) FROM ops), (SELECT count(*) FROM Times)"),
	                    "11|1");
	np_report_free(report);
	tree_remove(root);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_types_come_back),
		cmocka_unit_test(odd_names_types_and_indexes_are_as_asked),
		cmocka_unit_test(keep_leaves_what_else_is_there),
		cmocka_unit_test(keep_takes_the_place_of_a_view_and_leaves_wal_mode),
		cmocka_unit_test(equal_tables_give_equal_bytes),
		cmocka_unit_test(what_is_no_database_is_refused_and_stays),
		cmocka_unit_test(a_damaged_file_is_refused_and_stays),
		cmocka_unit_test(a_journal_of_somebody_else_is_refused),
		cmocka_unit_test(an_aborted_or_failed_file_leaves_the_old_one),
		cmocka_unit_test(a_full_disk_loses_nothing),
		cmocka_unit_test(out_of_memory_is_told_at_every_allocation),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
