#include "db_fixture.h"

static void scans_agree_for_all_page_sizes(void **state)
{
	(void)state;
	static const int sizes[] = {512, 1024, 4096, 65536};
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		char text[64], name[32];
		(void)snprintf(name, sizeof name, "p%d.db", sizes[i]);
		(void)snprintf(text, sizeof text, "PRAGMA page_size=%d", sizes[i]);
		sqlite3 *db = create(in_dir(name), text);
		sql(db, MIXED);
		(void)sqlite3_close(db);
		check_table(in_dir(name), "mixed", N_MIXED, true);
		check_table(in_dir(name), "MIXED", N_MIXED, true);
	}
}

static void values_have_their_types(void **state)
{
	(void)state;
	make(in_dir("v.db"),
	     "CREATE TABLE t(id INTEGER PRIMARY KEY, r REAL, s TEXT, z);"
	     "INSERT INTO t VALUES(7, 3, '1736412474730135222', NULL), (8, 2.5, 'x', 1)");
	static const char *const columns[] = {"id", "missing|R", "s", "z", "missing", "id"};
	struct np_db *db = open_db(in_dir("v.db"));
	for (unsigned flags = 0; flags <= NP_DB_NO_NATIVE; flags++) {
		struct np_db_scan *scan;
		struct np_db_value row[6];
		bool got = false;
		int64_t i = 0;
		double r = 0;
		assert_int_equal(np_db_scan_open(db, "t", columns, 6, flags, &scan, NULL), NP_OK);
		assert_true(np_db_scan_has_column(scan, 1));
		assert_false(np_db_scan_has_column(scan, 4));
		assert_false(np_db_scan_has_column(scan, 6));
		assert_int_equal(np_db_scan_next(scan, row, &got, NULL), NP_OK);
		assert_true(got && np_db_i64(&row[0], &i) && i == 7);
		assert_int_equal(row[1].type, NP_DB_REAL);
		assert_true(np_db_double(&row[1], &r) && r == 3.0);
		assert_true(np_db_i64(&row[1], &i) && i == 3);
		assert_true(np_db_i64(&row[2], &i) && i == 1736412474730135222);
		assert_str(np_db_text(&row[2]), "1736412474730135222");
		assert_int_equal(row[3].type, NP_DB_NULL);
		assert_false(np_db_i64(&row[3], &i) || np_db_double(&row[3], &r));
		assert_int_equal(row[4].type, NP_DB_NULL);
		assert_true(np_db_i64(&row[5], &i) && i == 7);
		assert_int_equal(np_db_text(&row[0]).len, 0);
		assert_int_equal(np_db_scan_next(scan, row, &got, NULL), NP_OK);
		assert_true(got);
		assert_false(np_db_i64(&row[1], &i) || np_db_i64(&row[2], &i));
		for (int k = 0; k < 2; k++) {
			assert_int_equal(np_db_scan_next(scan, row, &got, NULL), NP_OK);
			assert_false(got);
		}
		np_db_scan_close(scan);
	}
	np_db_close(db);
	int64_t i;
	static const double too_large[] = {0x1p63, -0x1.0001p63, 1e300, 0.5};
	for (size_t k = 0; k < 4; k++)
		assert_false(np_db_i64(&(struct np_db_value){.type = NP_DB_REAL, .r = too_large[k]},
		                       &i));
	assert_true(np_db_i64(&(struct np_db_value){.type = NP_DB_REAL, .r = -0x1p63}, &i));
	assert_true(i == INT64_MIN);
}

static const char ODD[] =
	"CREATE TABLE empty(a, b); CREATE TABLE norow(k TEXT PRIMARY KEY, v) WITHOUT ROWID;"
	"INSERT INTO norow VALUES('b', 1), ('a', 2);"
	"CREATE TABLE desc_key(k INTEGER PRIMARY KEY DESC, v); INSERT INTO desc_key VALUES(5, "
	"6), (4, 7);"
	"CREATE TABLE late_key(v, k INTEGER, PRIMARY KEY(k)); INSERT INTO late_key VALUES(1, "
	"9), (2, 3);"
	"CREATE TABLE two_keys(a INTEGER, b, PRIMARY KEY(a, b)); INSERT INTO two_keys "
	"VALUES(2, 1), (1, 2);"
	"CREATE TABLE int_key(a INT PRIMARY KEY, b); INSERT INTO int_key VALUES(8, 1), (3, 2);"
	"CREATE TABLE gen(a, b AS (a + 1), c AS (a * 2) STORED, d); INSERT INTO gen VALUES(1, "
	"2), (3, 4);"
	"CREATE TABLE hides(rowid, oid, _rowid_); INSERT INTO hides VALUES(3, 2, 1), (1, 2, "
	"3);"
	"CREATE TABLE hides2(_rowid_ TEXT, oid); INSERT INTO hides2 VALUES('q', 2), ('b', 1);"
	"CREATE TABLE \"a \"\"quoted\"\" 'name'; --\"(\"col \"\"x\", \"select\"); "
	"INSERT INTO \"a \"\"quoted\"\" 'name'; --\" VALUES(1, 2);"
	"CREATE TABLE strict_t(a INT, r REAL, x ANY) STRICT; INSERT INTO strict_t VALUES(1, "
	"2, '3');"
	"CREATE TABLE covered(a, b, c); CREATE INDEX cov ON covered(b, a);"
	"INSERT INTO covered VALUES(3, 1, 0), (2, 2, 0), (1, 3, 0);"
	"CREATE VIEW view_t AS SELECT * FROM covered;"
	"CREATE VIRTUAL TABLE fts USING fts5(x)";

static void odd_tables_are_read_as_well(void **state)
{
	(void)state;
	make(in_dir("odd.db"), ODD);
	static const struct {
		const char *name;
		int n;
		bool native;
	} tables[] = {
		{"empty", 0, true},    {"norow", 2, false},
		{"desc_key", 2, true}, {"late_key", 2, true},
		{"two_keys", 2, true}, {"int_key", 2, true},
		{"gen", 2, false},     {"hides", 2, false},
		{"hides2", 2, true},   {"a \"quoted\" 'name'; --", 1, true},
		{"strict_t", 1, true}, {"covered", 3, true},
	};
	for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
		check_table(in_dir("odd.db"), tables[i].name, tables[i].n, tables[i].native);
}

static void only_stored_tables_are_there(void **state)
{
	(void)state;
	make(in_dir("odd.db"), ODD);
	struct np_db *db = open_db(in_dir("odd.db"));
	static const char *const none[] = {"view_t", "fts", "sqlite_master", "nothing", ""};
	for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
		struct np_db_scan *scan;
		assert_false(np_db_has_table(db, none[i]));
		assert_int_equal(np_db_count(db, none[i]), -1);
		assert_int_equal(np_db_scan_open(db, none[i], NULL, 0, 0, &scan, NULL),
		                 NP_E_NOTFOUND);
		assert_null(scan);
	}
	assert_true(np_db_has_column(db, "gen", "B"));
	assert_false(np_db_has_column(db, "gen", "x"));
	assert_false(np_db_has_column(db, "nothing", "x"));
	struct np_arena arena;
	np_arena_init(&arena);
	np_str *names;
	size_t n;
	assert_int_equal(np_db_tables(db, &arena, &names, &n, NULL), NP_OK);
	assert_true(n >= 12);
	assert_str(names[0], "a \"quoted\" 'name'; --");
	for (size_t i = 1; i < n; i++)
		assert_true(np_str_cmp(names[i - 1], names[i]) < 0);
	np_arena_release(&arena);
	np_db_close(db);
}

static void columns_that_were_added_later_have_their_defaults(void **state)
{
	(void)state;
	make(in_dir("alter.db"),
	     "CREATE TABLE t(a); WITH RECURSIVE i(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM i "
	     "WHERE i < 500) INSERT INTO t SELECT i FROM i; ALTER TABLE t ADD COLUMN b REAL;"
	     "INSERT INTO t VALUES(501, 3); CREATE TABLE u(a, z);"
	     "INSERT INTO u VALUES(1, 2), (2, 3);"
	     "ALTER TABLE u ADD COLUMN c INTEGER DEFAULT 42; ALTER TABLE u ADD COLUMN d DEFAULT "
	     "NULL;"
	     "INSERT INTO u VALUES(3, 4, 5, 6); CREATE TABLE w(a, b DEFAULT 'x'); "
	     "INSERT INTO w VALUES(1, 2)");
	check_table(in_dir("alter.db"), "t", 501, true);
	check_table(in_dir("alter.db"), "u", 3, false);
	check_table(in_dir("alter.db"), "w", 1, true);

	/* in the middle: a record made short by hand, after rows that were given */
	sqlite3 *db = create(in_dir("mid.db"), "CREATE TABLE t(a)");
	sql(db, "WITH RECURSIVE i(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM i WHERE i < 3000) "
	        "INSERT INTO t(rowid, a) SELECT i * 10, i FROM i");
	sql(db, "ALTER TABLE t ADD COLUMN c DEFAULT 'late'");
	sql(db, "UPDATE t SET c = 'early' WHERE a < 1500");
	(void)sqlite3_close(db);
	check_table(in_dir("mid.db"), "t", 3000, false);
	struct np_db *mid = open_db(in_dir("mid.db"));
	static const char *const a[] = {"a"};
	assert_true(scan_both(mid, "t", a, 1).native); /* does not need that column */
	np_db_close(mid);
}

static void files_of_other_kinds_are_read_as_well(void **state)
{
	(void)state;
	make(in_dir("vacuum.db"), "PRAGMA auto_vacuum=FULL; PRAGMA page_size=512;" MIXED);
	check_table(in_dir("vacuum.db"), "mixed", N_MIXED, true);
	make(in_dir("utf16.db"), "PRAGMA encoding='UTF-16';" MIXED);
	check_table(in_dir("utf16.db"), "mixed", N_MIXED, false);
	make(in_dir("old.db"), "PRAGMA legacy_file_format=ON;" MIXED);
	check_table(in_dir("old.db"), "mixed", N_MIXED, true);
	make(in_dir("deleted.db"),
	     "PRAGMA page_size=512;" MIXED "DELETE FROM mixed WHERE a % 3 = 0;"
	     "DELETE FROM mixed WHERE length(t) > 1500");
	check_table(in_dir("deleted.db"), "mixed", -1, true);
	make(in_dir("emptied.db"), MIXED "DELETE FROM mixed");
	check_table(in_dir("emptied.db"), "mixed", 0, true);

	sqlite3 *db = create(in_dir("reserved.db"), "PRAGMA page_size=1024");
	int reserved = 32;
	assert_int_equal(sqlite3_file_control(db, NULL, SQLITE_FCNTL_RESERVE_BYTES, &reserved),
	                 SQLITE_OK);
	sql(db, "VACUUM;" MIXED);
	(void)sqlite3_close(db);
	size_t len;
	char *bytes = slurp(in_dir("reserved.db"), &len);
	assert_int_equal(bytes[20], 32);
	free(bytes);
	check_table(in_dir("reserved.db"), "mixed", N_MIXED, true);
}

static void a_hundred_thousand_rows_agree(void **state)
{
	(void)state;
	make(in_dir("large.db"),
	     "PRAGMA page_size=512; CREATE TABLE t(a INTEGER, b INTEGER, c TEXT, d REAL);"
	     "WITH RECURSIVE i(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM i WHERE i < 100000)"
	     "INSERT INTO t SELECT 1736412474730135222 + i * 977, i % 300, i, i * 0.5 FROM i");
	check_table(in_dir("large.db"), "t", 100000, true);
}

/* ── damage ── */

static void put32(char *at, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		at[i] = (char)(v >> (24 - 8 * i));
}

static void trees_that_loop_end(void **state)
{
	(void)state;
	make(in_dir("x.db"),
	     "PRAGMA page_size=512; CREATE TABLE t(a); CREATE TABLE w(k PRIMARY KEY) "
	     "WITHOUT ROWID; WITH RECURSIVE i(i) AS (VALUES(1) UNION ALL SELECT i + 1 "
	     "FROM i WHERE i < 2000) INSERT INTO t SELECT i FROM i;"
	     "INSERT INTO w SELECT a FROM t");
	size_t len;
	char *bytes = slurp(in_dir("x.db"), &len);
	for (int root = 2; root <= 3; root++) {
		/* all children of the root are the root, or all are its last leaf */
		char *page = bytes + (root - 1) * 512;
		unsigned n = (unsigned)(unsigned char)page[3] << 8 | (unsigned char)page[4];
		assert_true(n > 1 && (page[0] == 5 || page[0] == 2));
		uint32_t last = 0;
		for (int i = 0; i < 4; i++)
			last = last << 8 | (unsigned char)page[8 + i];
		for (int loop = 0; loop < 2; loop++) {
			for (unsigned i = 0; i < n; i++) {
				unsigned at = (unsigned)(unsigned char)page[12 + 2 * i] << 8 |
				              (unsigned char)page[13 + 2 * i];
				put32(page + at, loop ? (uint32_t)root : last);
			}
			spit(in_dir("y.db"), bytes, len);
			struct np_db *db = open_db(in_dir("y.db"));
			static const char *const columns[] = {"a|k"};
			struct both both = scan_both(db, root == 2 ? "t" : "w", columns, 1);
			if (root == 2 || loop) {
				assert_int_equal(both.status[0], NP_E_FORMAT);
				assert_int_equal(both.status[1], NP_E_FORMAT);
			}
			(void)np_db_count(db, root == 2 ? "t" : "w");
			np_db_close(db);
		}
	}
	free(bytes);
}

/* Rows until the end or an error. */
static enum np_status scan_alone(struct np_db *db, const char *table, const char *const *columns,
                                 size_t n, unsigned flags)
{
	struct np_db_scan *scan;
	struct np_db_value row[MAX_COLUMNS];
	bool got = true;
	enum np_status status = np_db_scan_open(db, table, columns, n, flags, &scan, NULL);
	while (status == NP_OK && got)
		status = np_db_scan_next(scan, row, &got, NULL);
	np_db_scan_close(scan);
	return status;
}

static void flipped_bits_give_equal_rows_or_an_error(void **state)
{
	(void)state;
	make(in_dir("x.db"),
	     "PRAGMA page_size=512; CREATE TABLE t(id INTEGER PRIMARY KEY, a INTEGER, r REAL, s "
	     "TEXT, b);"
	     "WITH RECURSIVE i(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM i WHERE i < 60) "
	     "INSERT INTO t SELECT i * i, i * 100, i, printf('%.*c', i * i, 'x'), i / 2.0 FROM i;"
	     "ALTER TABLE t ADD COLUMN late DEFAULT 5; UPDATE t SET late = 6 WHERE id < 1000;"
	     "CREATE TABLE w(k PRIMARY KEY, v) WITHOUT ROWID; INSERT INTO w SELECT a, b FROM t");
	size_t len, n_open = 0, n_equal = 0, n_error = 0, n_native = 0, n_differ = 0;
	char *bytes = slurp(in_dir("x.db"), &len);
	srandom(5);
	for (int round = 0; round < 2000; round++) {
		char *copied = malloc(len);
		memcpy(copied, bytes, len);
		for (long flips = 1 + random() % 4; flips > 0; flips--)
			copied[random() % (long)(round % 3 ? len : 1024)] ^=
				(char)(1 << random() % 8);
		spit(in_dir("y.db"), copied, len);
		free(copied);
		struct np_db *db = NULL;
		if (np_db_open(in_dir("y.db"), &db, NULL) != NP_OK)
			continue;
		n_open++;
		static const char *const tables[] = {"t", "w"};
		static const char *const columns[] = {"id", "a", "r", "s|k", "b|v", "late"};
		for (int k = 0; k < 2; k++) {
			/* equal as far as both go */
			struct both both = scan_both(db, tables[k], columns, k ? 6 : 5);
			(void)np_db_count(db, tables[k]);
			n_native += both.native;
			n_equal += both.status[0] == NP_OK && both.status[1] == NP_OK;
			n_error += both.status[1] != NP_OK;
			n_differ += scan_alone(db, tables[k], columns, 6, 0) !=
			            scan_alone(db, tables[k], columns, 6, NP_DB_NO_NATIVE);
		}
		np_db_close(db);
	}
	free(bytes);
	assert_true(n_open > 1000 && n_equal > 500 && n_error > 100 && n_native > 300);
	/* libsqlite3 looks at some things that no row depends on: the page types that
	 * an auto_vacuum database keeps, for example */
	assert_true(n_differ < 10);
}

/* ── real captures ── */

static size_t n_databases, n_tables, n_native;

static void check_database(const char *path)
{
	struct np_db *db = open_db(path);
	struct np_arena arena;
	np_arena_init(&arena);
	np_str *names;
	size_t n;
	assert_int_equal(np_db_tables(db, &arena, &names, &n, NULL), NP_OK);
	for (size_t i = 0; i < n; i++, n_tables++)
		n_native += scans_agree(db, names[i].ptr, -1);
	n_databases++;
	np_arena_release(&arena);
	np_db_close(db);
}

static void check_below(const char *path)
{
	struct np_arena arena;
	struct np_dir list;
	np_arena_init(&arena);
	assert_int_equal(np_dir_list(&arena, path, &list, NULL), NP_OK);
	for (size_t i = 0; i < list.n; i++) {
		const char *name = np_path_join(&arena, path, list.v[i].name);
		if (list.v[i].kind == NP_FILE_DIR)
			check_below(name);
		else if (list.v[i].kind == NP_FILE_REG &&
		         np_str_ends(np_str_of(name), NP_STR(".db")))
			check_database(name);
	}
	np_arena_release(&arena);
}

static void scans_agree_on_all_real_captures(void **state)
{
	(void)state;
	const char *data = shared_path("data");
	if (!data)
		skip();
	char root[4096];
	(void)snprintf(root, sizeof root, "%s", data);
	check_below(root);
	print_message("%zu databases, %zu tables, %zu of them native\n", n_databases, n_tables,
	              n_native);
	assert_true(n_databases > 0 && n_native == n_tables);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_DIR(scans_agree_for_all_page_sizes),
		IN_DIR(values_have_their_types),
		IN_DIR(odd_tables_are_read_as_well),
		IN_DIR(only_stored_tables_are_there),
		IN_DIR(columns_that_were_added_later_have_their_defaults),
		IN_DIR(files_of_other_kinds_are_read_as_well),
		IN_DIR(a_hundred_thousand_rows_agree),
		IN_DIR(trees_that_loop_end),
		IN_DIR(flipped_bits_give_equal_rows_or_an_error),
		cmocka_unit_test(scans_agree_on_all_real_captures),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
