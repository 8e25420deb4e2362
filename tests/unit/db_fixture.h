/* Databases made for a test, and two scans of them side by side. Included by the
 * tests of io/db; everything is static. */
#ifndef NP_TESTS_UNIT_DB_FIXTURE_H
#define NP_TESTS_UNIT_DB_FIXTURE_H

#include "unit.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/fs.h"
#include "io/db.h"

/* ── a directory that goes away ── */

static char dir[] = "/tmp/np_test_db.XXXXXX";

static inline int make_dir(void **state)
{
	(void)state;
	memcpy(dir + sizeof dir - 7, "XXXXXX", 6);
	return mkdtemp(dir) && chmod(dir, 0755) == 0 ? 0 : -1;
}

static inline int remove_dir(void **state)
{
	(void)state;
	char command[64];
	(void)snprintf(command, sizeof command, "rm -rf '%s'", dir);
	return system(command);
}

/* Static memory, good for four calls. */
static inline const char *in_dir(const char *name)
{
	static char paths[4][512];
	static unsigned turn;
	char *path = paths[turn++ % 4];
	(void)snprintf(path, sizeof paths[0], "%s/%s", dir, name);
	return path;
}

static inline void sql(sqlite3 *db, const char *text)
{
	char *message = NULL;
	if (sqlite3_exec(db, text, NULL, NULL, &message) != SQLITE_OK)
		fail_msg("%s: %s", text, message);
}

static inline sqlite3 *create(const char *path, const char *text)
{
	sqlite3 *db;
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	sql(db, text);
	return db;
}

static inline void make(const char *path, const char *text)
{
	(void)sqlite3_close(create(path, text));
}

static inline char *slurp(const char *path, size_t *len)
{
	FILE *f = fopen(path, "rb");
	assert_non_null(f);
	(void)fseek(f, 0, SEEK_END);
	*len = (size_t)ftell(f);
	rewind(f);
	char *bytes = malloc(*len + 1);
	assert_int_equal(fread(bytes, 1, *len, f), *len);
	(void)fclose(f);
	return bytes;
}

static inline void spit(const char *path, const void *bytes, size_t len)
{
	FILE *f = fopen(path, "wb");
	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, len, f), len);
	assert_int_equal(fclose(f), 0);
}

static inline void copy(const char *from, const char *to)
{
	size_t len;
	char *bytes = slurp(from, &len);
	spit(to, bytes, len);
	free(bytes);
}

static inline struct np_db *open_db(const char *path)
{
	struct np_db *db = NULL;
	struct np_err err = {0};
	if (np_db_open(path, &db, &err) != NP_OK)
		fail_msg("%s: %s", err.where, err.msg);
	return db;
}

static inline enum np_status open_status(const char *path)
{
	struct np_db *db = NULL;
	struct np_err err = {0};
	enum np_status status = np_db_open(path, &db, &err);
	assert_true((status == NP_OK) == (db != NULL));
	assert_true(status == NP_OK || (err.code == status && err.msg[0] != '\0'));
	np_db_close(db);
	return status;
}

/* ── two scans, one result ── */

static inline bool same_value(const struct np_db_value *a, const struct np_db_value *b)
{
	if (a->type != b->type)
		return false;
	switch (a->type) {
	case NP_DB_INT:
		return a->i == b->i;
	case NP_DB_REAL:
		return a->r == b->r;
	case NP_DB_TEXT:
	case NP_DB_BLOB:
		return np_str_eq(a->text, b->text);
	default:
		return true;
	}
}

/* All columns of the table by their names, then one that is missing, then the first again. */
static inline size_t all_columns(struct np_db *db, const char *table, const char **out, size_t max,
                                 struct np_arena *arena)
{
	char *query = sqlite3_mprintf("PRAGMA table_xinfo(\"%w\")", table);
	sqlite3_stmt *stmt = NULL;
	size_t n = 0;
	assert_int_equal(sqlite3_prepare_v2(np_db_handle(db), query, -1, &stmt, NULL), SQLITE_OK);
	sqlite3_free(query);
	while (sqlite3_step(stmt) == SQLITE_ROW && n < max - 2)
		out[n++] = np_arena_printf(arena, "%s", (const char *)sqlite3_column_text(stmt, 1));
	(void)sqlite3_finalize(stmt);
	out[n] = "no such column|nor this";
	out[n + 1] = out[0];
	return n + 2;
}

enum { MAX_COLUMNS = 80 };

struct both {
	enum np_status status[2];
	int64_t n_rows;
	bool native; /* from the first row to the last */
};

/* Scan both ways, side by side; rows must be equal as long as both have some. */
static inline struct both scan_both(struct np_db *db, const char *table, const char *const *columns,
                                    size_t n)
{
	struct both out = {0};
	struct np_db_scan *scan[2] = {NULL, NULL};
	struct np_err err = {0};
	for (int k = 0; k < 2; k++)
		out.status[k] = np_db_scan_open(db, table, columns, n, k ? NP_DB_NO_NATIVE : 0,
		                                &scan[k], &err);
	if (out.status[1] == NP_OK)
		assert_false(np_db_scan_is_native(scan[1]));
	while (out.status[0] == NP_OK && out.status[1] == NP_OK) {
		struct np_db_value row[2][MAX_COLUMNS];
		bool got[2] = {false, false};
		memset(row, 0xa5, sizeof row);
		for (int k = 0; k < 2; k++)
			out.status[k] = np_db_scan_next(scan[k], row[k], &got[k], &err);
		if (out.status[0] != NP_OK || out.status[1] != NP_OK)
			break;
		if (got[0] != got[1])
			fail_msg("%s: row %lld: one of them ends", table, (long long)out.n_rows);
		if (!got[0])
			break;
		for (size_t i = 0; i < n; i++)
			if (!same_value(&row[0][i], &row[1][i]))
				fail_msg("%s: row %lld, column %s differs", table,
				         (long long)out.n_rows, columns[i]);
		out.n_rows++;
	}
	out.native = scan[0] && np_db_scan_is_native(scan[0]);
	np_db_scan_close(scan[0]);
	np_db_scan_close(scan[1]);
	return out;
}

/* All rows of a table, whole and by a few columns backwards; true when native. */
static inline bool scans_agree(struct np_db *db, const char *table, int64_t n_expected)
{
	struct np_arena arena;
	const char *columns[MAX_COLUMNS], *some[3];
	np_arena_init(&arena);
	size_t n = all_columns(db, table, columns, MAX_COLUMNS, &arena);
	some[0] = columns[n - 3];
	some[1] = columns[(n - 2) / 2];
	some[2] = columns[0];
	struct both whole = scan_both(db, table, columns, n);
	struct both part = scan_both(db, table, some, 3);
	np_arena_release(&arena);
	for (int k = 0; k < 2; k++) {
		assert_int_equal(whole.status[k], NP_OK);
		assert_int_equal(part.status[k], NP_OK);
	}
	assert_int_equal(whole.n_rows, part.n_rows);
	assert_int_equal(np_db_count(db, table), whole.n_rows);
	if (n_expected >= 0)
		assert_int_equal(whole.n_rows, n_expected);
	return whole.native && part.native;
}

static inline void check_table(const char *path, const char *table, int64_t n_rows, bool native)
{
	struct np_db *db = open_db(path);
	assert_true(np_db_has_table(db, table));
	if (scans_agree(db, table, n_rows) != native)
		fail_msg("%s should %sbe native", table, native ? "" : "not ");
	np_db_close(db);
}

/* Every kind of value, in every place, with overflow on small pages. */
#define MIXED                                                                                      \
	"CREATE TABLE mixed(id INTEGER PRIMARY KEY, a INTEGER, r REAL, t TEXT, b BLOB, x, "        \
	"d DOUBLE PRECISION, n NUMERIC);"                                                          \
	"INSERT INTO mixed VALUES"                                                                 \
	"(-9223372036854775808, 0, 0, '', x'', NULL, 1, '12.50'),"                                 \
	"(-5, 1, 1, 'one', x'00', 1.5, 2.5, 'abc'),"                                               \
	"(1, -1, 1e300, 'zwei', x'0102', 'text', NULL, 3.0),"                                      \
	"(2, 127, -2, NULL, NULL, x'ff', -0.0, 1e20), (3, -128, 3, 'a', x'b0', 0, 4, 0),"          \
	"(4, 128, 4, 'b', 'text', 9e999, -9e999, 1), (5, 32767, 32768.0, 'c', 1, 1, 1, 1),"        \
	"(6, -32769, 0.1, 'd', 2, 2, 2, 2), (7, 8388607, 8388608, 'e', 3, 3, 3, 3),"               \
	"(8, -8388609, 5, 'f', 4, 4, 4, 4), (9, 2147483647, 6, 'g', 5, 5, 5, 5),"                  \
	"(10, -2147483649, 7, 'h', 6, 6, 6, 6), (11, 140737488355327, 8, 'i', 7, 7, 7, 7),"        \
	"(12, -140737488355329, 9, 'j', 8, 8, 8, 8), (13, 9223372036854775807, 9, 'k', 9, 9, 9, "  \
	"9),"                                                                                      \
	"(14, -9223372036854775808, 9007199254740993, 'l', 0, 0, 9007199254740993, 0);"            \
	"WITH RECURSIVE i(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM i WHERE i < 300)"           \
	"INSERT INTO mixed SELECT 1000000000000 + i * i * i * 977, i * i, i, "                     \
	"printf('%.*c', i * 7, 'x'), zeroblob(i % 50), i * 1.25, i / 3, i % 2 FROM i;"             \
	"INSERT INTO mixed VALUES(4000000000000000000, 1, 2, printf('%.*c', 200000, 'y'), 4, 5, "  \
	"6, 7);"                                                                                   \
	"INSERT INTO mixed VALUES(9223372036854775807, 9, 9, 'z' || char(0) || 'z', x'09', 'ä', " \
	"9, 9);"
enum { N_MIXED = 16 + 300 + 2 };

#define IN_DIR(test) cmocka_unit_test_setup_teardown(test, make_dir, remove_dir)

#endif
