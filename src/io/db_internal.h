/*
 * What db.c (opening, catalogue) and db_scan.c (rows) share. Not for others.
 */
#ifndef NP_IO_DB_INTERNAL_H
#define NP_IO_DB_INTERNAL_H

#include <sqlite3.h>

#include "io/db.h"
#include "io/db_pages.h"
#include "io/input.h"

struct np_db {
	char *path; /* as the caller named it, for messages */
	struct sqlite3 *handle;
	struct np_input *input; /* the mapped file; NULL when scans cannot be native */
	struct np_pages pages;
	char note[256];
};

/* Fill err from the connection's last error. */
enum np_status np_db_sql_error(const struct np_db *self, int rc, struct np_err *err);

/* Prepare SQL of any length. */
enum np_status np_db_prepare(const struct np_db *self, const char *sql, size_t len,
                             sqlite3_stmt **out, struct np_err *err);

struct np_db_column {
	const char *name;
	bool real;        /* REAL affinity */
	bool has_default; /* and it is not NULL */
	bool rowid;       /* INTEGER PRIMARY KEY */
};

struct np_db_table {
	const char *name;       /* as stored */
	uint32_t root;          /* page; 0 when it is not a number a page can have */
	const char *rowid_name; /* an unquoted name of the rowid; NULL: it has none */
	bool plain;             /* rowid table whose records hold columns[i] at place i */
	struct np_db_column *columns;
	size_t n_columns;
};

/* All about one table; memory from the arena. E_NOTFOUND: no such table. */
enum np_status np_db_table_load(const struct np_db *self, const char *name, struct np_arena *arena,
                                struct np_db_table *out, struct np_err *err);

#endif
