/*
 * SQLite databases, read only.
 *
 * Two ways to the same rows: libsqlite3, for any query and any odd file; and a
 * page scanner of our own for full scans of plain tables, several times faster:
 *
 *   mapped file ─▶ sqlite_master ─▶ root page ─▶ interior pages ─▶ leaf cells ─▶ columns
 *
 * The scanner is used only when the file is exactly what it knows (rollback
 * journal format or checkpointed WAL, no hot journal, UTF-8, plain rowid table,
 * no overflow in the wanted columns …); in every doubtful case the scan goes to
 * libsqlite3 without the caller noticing, except in np_db_scan_is_native().
 *
 * A database is opened mode=ro and immutable=1, so that nothing is ever created
 * beside it, unless a non-empty -wal file exists; then it is opened mode=ro so
 * that the journal is read. Where even that would have to write (-shm in a
 * read-only directory) the WAL is ignored and np_db_note() says so.
 *
 * Threads: a database, and scans of it, belong to one thread at a time.
 */
#ifndef NP_IO_DB_H
#define NP_IO_DB_H

#include <stdbool.h>

#include "base/err.h"
#include "base/mem.h"

struct np_db;
struct sqlite3;

/* Errors: E_NOTFOUND, E_ACCESS, E_FORMAT (not a database, corrupt header),
 * E_EMPTY (0 bytes), E_TRUNCATED (shorter than its header says). */
enum np_status np_db_open(const char *path, struct np_db **out, struct np_err *err);
void np_db_close(struct np_db *self);

/* Something worth telling about how it was opened, or "" . */
const char *np_db_note(const struct np_db *self);

/* The libsqlite3 connection, for ad-hoc queries. Owned by the np_db. */
struct sqlite3 *np_db_handle(struct np_db *self);

bool np_db_has_table(struct np_db *self, const char *table);
/* Names of all tables, sorted; memory from the arena. */
enum np_status np_db_tables(struct np_db *self, struct np_arena *arena, np_str **names, size_t *n,
                            struct np_err *err);
bool np_db_has_column(struct np_db *self, const char *table, const char *column);
/* Number of rows, -1 when there is no such table or it cannot be read. */
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
 * Errors: E_NOTFOUND (no such table), E_FORMAT, E_NOMEM.
 */
enum np_status np_db_scan_open(struct np_db *self, const char *table, const char *const *columns,
                               size_t n_columns, unsigned flags, struct np_db_scan **out,
                               struct np_err *err);
void np_db_scan_close(struct np_db_scan *self);

/* The next row into row[0…n_columns-1]; *got false at the end. E_FORMAT when the
 * file turns out corrupt on the way; the rows so far were right. */
enum np_status np_db_scan_next(struct np_db_scan *self, struct np_db_value *row, bool *got,
                               struct np_err *err);

bool np_db_scan_has_column(const struct np_db_scan *self, size_t column);
bool np_db_scan_is_native(const struct np_db_scan *self);

/* A value as an integer, also from REAL with no fraction and from decimal TEXT
 * (PYTORCH_API keeps its times as text); false for NULL and anything else. */
bool np_db_i64(const struct np_db_value *value, int64_t *out);
bool np_db_double(const struct np_db_value *value, double *out);
/* TEXT only; empty otherwise. */
np_str np_db_text(const struct np_db_value *value);

#endif
