#include "db_fixture.h"

static size_t entries(void)
{
	struct np_arena arena;
	struct np_dir list;
	np_arena_init(&arena);
	assert_int_equal(np_dir_list(&arena, dir, &list, NULL), NP_OK);
	np_arena_release(&arena);
	return list.n;
}

/* Leaves a.db, in WAL mode with 2 rows in the file and `n` more in the log. */
static void make_wal(int n)
{
	sqlite3 *db = create(in_dir("w.db"),
	                     "PRAGMA journal_mode=WAL; CREATE TABLE t(a);"
	                     "INSERT INTO t VALUES(1), (2); PRAGMA wal_checkpoint(TRUNCATE)");
	for (int i = 0; i < n; i++)
		sql(db, "INSERT INTO t VALUES(3)");
	copy(in_dir("w.db"), in_dir("a.db"));
	if (n > 0)
		copy(in_dir("w.db-wal"), in_dir("a.db-wal"));
	(void)sqlite3_close(db);
	(void)unlink(in_dir("w.db"));
}

static void check_untouched(int64_t n_rows, bool native)
{
	size_t before = entries();
	check_table(in_dir("a.db"), "t", n_rows, native);
	assert_int_equal(entries(), before);
	/* root may write anywhere: be somebody else */
	assert_int_equal(chmod(dir, 0555), 0);
	bool root = geteuid() == 0;
	if (root)
		assert_int_equal(seteuid(65534), 0);
	assert_true(access(dir, W_OK) != 0 || root);
	struct np_db *db = open_db(in_dir("a.db"));
	int64_t n = np_db_count(db, "t");
	assert_string_equal(np_db_note(db), "");
	bool agree = scans_agree(db, "t", n_rows);
	np_db_close(db);
	if (root)
		assert_int_equal(seteuid(0), 0);
	assert_int_equal(chmod(dir, 0755), 0);
	assert_int_equal(n, n_rows);
	assert_int_equal(agree, native);
	assert_int_equal(entries(), before);
}

static void opening_leaves_no_file_behind(void **state)
{
	(void)state;
	make(in_dir("a.db"), "CREATE TABLE t(a); INSERT INTO t VALUES(1), (2), (3)");
	check_untouched(3, true);
	(void)unlink(in_dir("a.db"));
	make_wal(0);
	check_untouched(2, true);
	spit(in_dir("a.db-wal"), "", 0);
	check_untouched(2, true);
	make_wal(5);
	check_untouched(7, false);
	assert_int_equal(symlink(in_dir("a.db"), in_dir("link.db")), 0);
	check_table(in_dir("link.db"), "t", 7, false);
}

static void a_log_of_garbage_does_not_hide_the_rows(void **state)
{
	(void)state;
	make(in_dir("a.db"), "CREATE TABLE t(a); INSERT INTO t VALUES(1), (2), (3)");
	char noise[5000];
	memset(noise, 0x5a, sizeof noise);
	spit(in_dir("a.db-wal"), noise, sizeof noise);
	check_table(in_dir("a.db"), "t", 3, false);
	assert_int_equal(unlink(in_dir("a.db-wal")), 0);
	spit(in_dir("a.db-journal"), noise, sizeof noise);
	struct np_db *db = open_db(in_dir("a.db"));
	assert_true(strstr(np_db_note(db), "journal") != NULL);
	np_db_close(db);
	check_table(in_dir("a.db"), "t", 3, false);
	assert_int_equal(entries(), 2);
}

static void a_log_that_cannot_be_used_is_told(void **state)
{
	(void)state;
	/* with a journal that must be rolled back first, which reading cannot do */
	make_wal(5);
	spit(in_dir("a.db-journal"), "\xd9\xd5\x05\xf9\x20\xa1\x63\xd7 and so on", 18);
	struct np_db *db = open_db(in_dir("a.db"));
	assert_true(strstr(np_db_note(db), "log beside it is ignored") != NULL);
	np_db_close(db);
	check_table(in_dir("a.db"), "t", 2, false);
	assert_int_equal(entries(), 3);
}

static void names_with_odd_characters_open(void **state)
{
	(void)state;
	static const char *const names[] = {
		"a?b=c.db",  "50%.db",    "%41.db",          "a#b.db",        "a b.db",
		"a'b\"c.db", "file:x.db", "\xe4\xb8\xad.db", "a&mode=rwc.db", "\x01\xff.db"};
	make(in_dir("plain.db"), "CREATE TABLE t(a); INSERT INTO t VALUES(1)");
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		copy(in_dir("plain.db"), in_dir(names[i]));
		size_t before = entries();
		check_table(in_dir(names[i]), "t", 1, true);
		assert_int_equal(entries(), before);
	}
	char *here = getcwd(NULL, 0);
	assert_int_equal(chdir(dir), 0);
	check_table("file:x.db", "t", 1, true);
	check_table("./50%.db", "t", 1, true);
	assert_int_equal(chdir(here), 0);
	free(here);
	char doubled[512];
	(void)snprintf(doubled, sizeof doubled, "//%s//plain.db", dir);
	check_table(doubled, "t", 1, true);
}

static void files_that_are_no_database_are_refused(void **state)
{
	(void)state;
	assert_int_equal(open_status(in_dir("none.db")), NP_E_NOTFOUND);
	assert_int_equal(open_status(""), NP_E_NOTFOUND);
	assert_int_equal(open_status(dir), NP_E_FORMAT);
	spit(in_dir("x.db"), "", 0);
	assert_int_equal(open_status(in_dir("x.db")), NP_E_EMPTY);
	spit(in_dir("x.db"), "hello", 5);
	assert_int_equal(open_status(in_dir("x.db")), NP_E_FORMAT);
	spit(in_dir("x.db"), "SQLite format 3", 16);
	assert_int_equal(open_status(in_dir("x.db")), NP_E_TRUNCATED);
	spit(in_dir("x.db"), "SQLi", 4);
	assert_int_equal(open_status(in_dir("x.db")), NP_E_TRUNCATED);
	char zeros[4096] = "SQLite format 3";
	spit(in_dir("x.db"), zeros, sizeof zeros);
	assert_int_equal(open_status(in_dir("x.db")), NP_E_FORMAT);

	make(in_dir("whole.db"), "PRAGMA page_size=512;" MIXED);
	size_t len;
	char *bytes = slurp(in_dir("whole.db"), &len);
	spit(in_dir("x.db"), bytes, len - 512);
	assert_int_equal(open_status(in_dir("x.db")), NP_E_TRUNCATED);
	spit(in_dir("x.db"), bytes, len - 1);
	assert_int_equal(open_status(in_dir("x.db")), NP_E_TRUNCATED);
	free(bytes);
	if (geteuid() == 0) {
		assert_int_equal(chmod(in_dir("whole.db"), 0), 0);
		assert_int_equal(seteuid(65534), 0);
		enum np_status status = open_status(in_dir("whole.db"));
		assert_int_equal(seteuid(0), 0);
		assert_int_equal(status, NP_E_ACCESS);
	}
}

static void a_schema_cannot_do_anything(void **state)
{
	(void)state;
	make(in_dir("x.db"),
	     "CREATE TABLE t(a); INSERT INTO t VALUES(1);"
	     "CREATE VIEW bomb AS WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM n) "
	     "SELECT count(*) AS a FROM n");
	struct np_db *db = open_db(in_dir("x.db"));
	static const char *const refused[] = {
		"SELECT * FROM bomb",
		"INSERT INTO t VALUES(2)",
		"CREATE TABLE u(a)",
		"PRAGMA writable_schema=ON; DELETE FROM sqlite_master",
		"SELECT load_extension('x')",
		"SELECT \"no such column\" FROM t",
	};
	for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
		assert_int_not_equal(sqlite3_exec(np_db_handle(db), refused[i], NULL, NULL, NULL),
		                     SQLITE_OK);
	np_db_close(db);
}

/* cmocka has its own handler for SIGBUS, so this runs in a child before it does. */
static int shrinking_status;

static enum np_status scan_while_shrinking(void)
{
	static const char *const columns[] = {"a"};
	struct np_db *db = open_db(in_dir("x.db"));
	struct np_db_scan *scan;
	struct np_db_value row[1];
	bool got = false;
	enum np_status status = np_db_scan_open(db, "t", columns, 1, 0, &scan, NULL);
	if (status == NP_OK)
		status = np_db_scan_next(scan, row, &got, NULL);
	if (!got || !np_db_scan_is_native(scan) || truncate(in_dir("x.db"), 16384) != 0)
		_exit(99);
	while (status == NP_OK && got)
		status = np_db_scan_next(scan, row, &got, NULL);
	np_db_scan_close(scan);
	np_db_close(db);
	return status;
}

static void shrink_in_a_child(void)
{
	(void)make_dir(NULL);
	sqlite3 *db;
	if (sqlite3_open(in_dir("x.db"), &db) != SQLITE_OK ||
	    sqlite3_exec(db,
	                 "CREATE TABLE t(a, b); WITH RECURSIVE i(i) AS (VALUES(1) UNION ALL "
	                 "SELECT i + 1 FROM i WHERE i < 50000) INSERT INTO t SELECT i, i FROM i",
	                 NULL, NULL, NULL) != SQLITE_OK)
		abort();
	(void)sqlite3_close(db);
	pid_t child = fork();
	if (child == 0)
		_exit((int)scan_while_shrinking());
	(void)waitpid(child, &shrinking_status, 0);
	(void)remove_dir(NULL);
}

static void a_file_that_shrinks_is_an_error(void **state)
{
	(void)state;
	assert_true(WIFEXITED(shrinking_status));
	assert_int_equal(WEXITSTATUS(shrinking_status), NP_E_IO);
}

/* ── memory ── */

static enum np_status use_all(const char *path)
{
	static const char *const columns[] = {"id", "a", "r", "t", "b", "none", "a"};
	struct np_db *db = NULL;
	struct np_arena arena;
	np_str *names;
	size_t n;
	np_arena_init(&arena);
	enum np_status status = np_db_open(path, &db, NULL);
	if (status == NP_OK)
		status = np_db_tables(db, &arena, &names, &n, NULL);
	for (unsigned flags = 0; flags <= NP_DB_NO_NATIVE && status == NP_OK; flags++) {
		struct np_db_scan *scan = NULL;
		struct np_db_value row[7];
		bool got = true;
		status = np_db_scan_open(db, "mixed", columns, 7, flags, &scan, NULL);
		while (status == NP_OK && got)
			status = np_db_scan_next(scan, row, &got, NULL);
		np_db_scan_close(scan);
	}
	if (status == NP_OK && np_db_count(db, "mixed") != N_MIXED)
		status = NP_E_NOMEM;
	np_db_close(db);
	np_arena_release(&arena);
	return status;
}

static void running_out_of_memory_is_told(void **state)
{
	(void)state;
	make(in_dir("m.db"), MIXED);
	uint64_t n = 0;
	enum np_status status;
	do {
		np_mem_fail_after(++n);
		status = use_all(in_dir("m.db"));
		np_mem_fail_after(0);
		assert_true(status == NP_OK || status == NP_E_NOMEM);
	} while (status != NP_OK && n < 1000);
	assert_true(n > 20 && n < 1000);
}

static void sqlite_running_out_of_memory_is_told(void **state)
{
	(void)state;
	make(in_dir("m.db"), MIXED);
	bool failed = false, worked = false;
	for (sqlite3_int64 limit = 20000; limit < 4000000 && !worked; limit += limit / 20) {
		(void)sqlite3_hard_heap_limit64(limit);
		enum np_status status = use_all(in_dir("m.db"));
		(void)sqlite3_hard_heap_limit64(0);
		assert_true(status == NP_OK || status == NP_E_NOMEM);
		failed = failed || status == NP_E_NOMEM;
		worked = status == NP_OK;
	}
	assert_true(failed && worked);
}

int main(void)
{
	shrink_in_a_child();
	const struct CMUnitTest tests[] = {
		IN_DIR(opening_leaves_no_file_behind),
		IN_DIR(a_log_of_garbage_does_not_hide_the_rows),
		IN_DIR(a_log_that_cannot_be_used_is_told),
		IN_DIR(names_with_odd_characters_open),
		IN_DIR(files_that_are_no_database_are_refused),
		IN_DIR(a_schema_cannot_do_anything),
		cmocka_unit_test(a_file_that_shrinks_is_an_error),
		IN_DIR(running_out_of_memory_is_told),
		IN_DIR(sqlite_running_out_of_memory_is_told),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
