/*
 * SQLite databases, read only.
 *
 * Two ways to the same rows: libsqlite3, for any query and any odd file; and a
 * page scanner of our own for full scans of plain tables, several times faster:
 *
 *   mapped file ─▶ sqlite_master ─▶ root page ─▶ interior pages ─▶ leaf cells ─▶ columns
 *
 * The scanner is used only when the file is exactly what it knows (no WAL or a
 * checkpointed one, no rollback journal, UTF-8, plain rowid table without
 * generated columns …); in every doubtful case the scan goes to libsqlite3
 * without the caller noticing, except in np_db_scan_is_native(). That also
 * happens in the middle of a scan: libsqlite3 then goes on with the next row.
 * docs/formats/sqlite.md says what it reads.
 *
 * Nothing is ever created or written beside a database. It is opened mode=ro
 * and immutable=1, which ignores journals; unless a non-empty -wal file exists:
 * then mode=ro without locks and with the WAL index on the heap, so that its
 * rows are seen and no -shm file is made. No lock is taken in either case: a
 * database that is being written right now may read as corrupt. What had to be
 * ignored is told by np_db_note().
 *
 * "Table" means a table that is stored in the file. Views and virtual tables
 * are not there for these functions (a hostile one could compute for ever), nor
 * are SQLite's own tables (sqlite_...). Names are compared as SQL does, ASCII
 * letters without case.
 *
 * Threads: a database, and scans of it, belong to one thread at a time.
 */
#ifndef NP_IO_DB_H
#define NP_IO_DB_H

#include <stdbool.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

struct np_db;
struct sqlite3;

/* Errors: E_NOTFOUND, E_ACCESS, E_FORMAT (not a regular file, not a database, corrupt
 * header or schema), E_EMPTY (0 bytes), E_TRUNCATED (shorter than its header says),
 * E_IO, E_NOMEM. */
enum np_status np_db_open(const char *path, struct np_db **out, struct np_err *err);
void np_db_close(struct np_db *self); /* NULL is fine; close its scans before */

/* Something worth telling about how it was opened, or "" . */
const char *np_db_note(const struct np_db *self);

/* The libsqlite3 connection, for ad-hoc queries. Owned by the np_db. Read only;
 * views, triggers, extensions and untrusted functions in the schema are off. */
struct sqlite3 *np_db_handle(struct np_db *self);

/* Append `name` as an SQL identifier: "na""me" */
void np_db_quote(struct np_buf *out, const char *name);

bool np_db_has_table(struct np_db *self, const char *table);
/* Names of all tables, sorted; memory from the arena. */
enum np_status np_db_tables(struct np_db *self, struct np_arena *arena, np_str **names, size_t *n,
                            struct np_err *err);
bool np_db_has_column(struct np_db *self, const char *table, const char *column);
/* Number of rows, -1 when there is no such table or it cannot be read. Costs one
 * look at each page. */
int64_t np_db_count(struct np_db *self, const char *table);

enum np_db_type { NP_DB_NULL, NP_DB_INT, NP_DB_REAL, NP_DB_TEXT, NP_DB_BLOB };

struct np_db_value {
	enum np_db_type type;
	union {
		int64_t i;
		double r;
		np_str text; /* TEXT, BLOB: valid until the next row */
	};
};

struct np_db_scan;

enum np_db_scan_flags {
	NP_DB_NO_NATIVE = 1 << 0, /* libsqlite3 only, for tests and comparisons */
};

/*
 * Scan all rows of a table in rowid order. columns[i] is a name, or several
 * alternatives separated by '|' ("blockNum|blockDim"); a column that the table
 * lacks reads as NULL and np_db_scan_has_column() is false for it.
 * Errors: E_NOTFOUND (no such table), E_FORMAT, E_LIMIT (too many columns), E_NOMEM.
 */
enum np_status np_db_scan_open(struct np_db *self, const char *table, const char *const *columns,
                               size_t n_columns, unsigned flags, struct np_db_scan **out,
                               struct np_err *err);
void np_db_scan_close(struct np_db_scan *self); /* NULL is fine */

/* The next row into row[0…n_columns-1]; *got false at the end, and row is then
 * undefined. E_FORMAT when the file turns out corrupt on the way (also when
 * rowids do not ascend); the rows so far were right. E_IO when the file shrank
 * meanwhile: then the last rows may not have been. */
enum np_status np_db_scan_next(struct np_db_scan *self, struct np_db_value *row, bool *got,
                               struct np_err *err);

bool np_db_scan_has_column(const struct np_db_scan *self, size_t column);
bool np_db_scan_is_native(const struct np_db_scan *self);

/* A value as an integer, also from REAL with no fraction and from decimal TEXT
 * (PYTORCH_API keeps its times as text); false for NULL and anything else, and
 * for what does not fit. *out is set only on success. The second gives INT, REAL
 * and numeric TEXT. */
bool np_db_i64(const struct np_db_value *value, int64_t *out);
bool np_db_double(const struct np_db_value *value, double *out);
/* TEXT only; empty otherwise. Valid as long as the value. */
np_str np_db_text(const struct np_db_value *value);

#endif
