/*
 * Tables of a report in an SQLite file, for other programs: the names are those
 * that the caller gives, the values those of JSON (durations and times in ns,
 * shares as 0…1), words untranslated.
 *
 *   np_db_file_begin() ─▶ np_db_file_table() … ─▶ np_db_file_commit()
 *                                              └▶ np_db_file_abort()
 *
 * The file is written beside its target and renamed when it is complete, so that
 * a reader never sees half of it and a full disk loses nothing that was there.
 * Equal tables give equal bytes (of one version of SQLite).
 *
 * INT, DUR_NS, TIME_NS, BYTES, BOOL are INTEGER; REAL, PERCENT are REAL; TEXT is
 * TEXT; what is not available is NULL. In text, what is not UTF-8 and NUL become
 * U+FFFD.
 *
 * Threads: a file belongs to one thread at a time.
 */
#ifndef NP_REPORT_WRITE_DB_H
#define NP_REPORT_WRITE_DB_H

#include "base/fs.h"
#include "report/report.h"

struct sqlite3;

struct np_db_file {
	struct np_outfile out;
	struct sqlite3 *db;
	enum np_status failed; /* of a table: then nothing is committed */
};

/*
 * keep: what the file holds stays, but for the tables that are written; else it is
 * replaced. A file that is absent or empty is a new one in both cases.
 * Errors: E_EXISTS (a directory, a device, or a journal beside it: somebody is
 * writing, or died while doing so), E_ACCESS, E_IO, E_NOMEM, E_LIMIT; with keep those
 * of np_db_open(), too. After an error nothing has to be released.
 */
enum np_status np_db_file_begin(struct np_db_file *self, const char *path, bool keep,
                                struct np_err *err);

struct np_db_form {
	const char *name;         /* of the SQL table; NULL: the table's id */
	size_t n_index_columns;   /* index ix_NAME_COLUMN[_COLUMN…] on that many first ones */
	const char *const *types; /* declared types, one per column, NULL for the default;
	                           * or NULL. Trusted text. */
};

/*
 * Create the table, in place of a table or view of that name, and fill it. `form`
 * may be NULL. After an error only abort is left to do.
 * Errors: E_IO, E_NOMEM, E_FORMAT (what was kept is damaged), E_USAGE (no columns, two
 * of one name, or a name that SQLite has for itself).
 */
enum np_status np_db_file_table(struct np_db_file *self, const struct np_table *table,
                                const struct np_db_form *form, struct np_err *err);

/*
 * The same for a table too large to be built first: rows one by one, with the columns of
 * `shape` (whose own rows are not looked at; form->name or its id names the table).
 *
 *   np_db_rows_begin() ─▶ np_db_rows_put() … ─▶ np_db_rows_end()
 *
 * put: as many cells as columns, of their types; texts need to live until it returns only.
 * end releases, also after an error, and makes the index. Errors as above.
 */
struct np_db_rows;
enum np_status np_db_rows_begin(struct np_db_file *self, const struct np_table *shape,
                                const struct np_db_form *form, struct np_db_rows **out,
                                struct np_err *err);
enum np_status np_db_rows_put(struct np_db_rows *self, const struct np_cell *cells,
                              struct np_err *err);
enum np_status np_db_rows_end(struct np_db_rows *self, struct np_err *err);

/* Both release everything. Errors: E_IO, E_NOMEM, E_ACCESS; what was there then stays. */
enum np_status np_db_file_commit(struct np_db_file *self, struct np_err *err);
void np_db_file_abort(struct np_db_file *self);

#endif
