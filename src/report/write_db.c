#include "report/write_db.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <utf8proc.h>

#include "io/db.h"

static enum np_status explain(const struct np_db_file *self, int code, struct np_err *err)
{
	const char *text = self->db ? sqlite3_errmsg(self->db) : sqlite3_errstr(code);
	switch (code & 0xff) {
	case SQLITE_NOMEM:
		return np_err_nomem(err);
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
		return np_err_set(err, NP_E_FORMAT, self->out.path, "damaged database: %s", text);
	case SQLITE_ERROR: /* a statement that cannot be */
	case SQLITE_TOOBIG:
		return np_err_set(err, NP_E_USAGE, self->out.path, "cannot write the table: %s",
		                  text);
	default:
		return np_err_set(err, NP_E_IO, self->out.path, "cannot write the database: %s",
		                  text);
	}
}

static enum np_status run(struct np_db_file *self, const char *sql, struct np_err *err)
{
	int code = sqlite3_exec(self->db, sql, NULL, NULL, NULL);
	return code == SQLITE_OK ? NP_OK : explain(self, code, err);
}

/* ── begin and end ── */

static void close_db(struct np_db_file *self)
{
	(void)sqlite3_close(self->db);
	self->db = NULL;
}

/* A journal would be played back into the new file by whoever opens that. */
static enum np_status check_no_journal(const struct np_db_file *self, struct np_err *err)
{
	static const char *const suffixes[] = {"-wal", "-journal"};
	for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
		char path[sizeof self->out.path + 16];
		struct np_file_stat st;
		(void)snprintf(path, sizeof path, "%s%s", self->out.path, suffixes[i]);
		NP_TRY(np_file_stat(path, true, &st, err));
		if (st.kind != NP_FILE_NONE && st.size_bytes > 0)
			return np_err_set(err, NP_E_EXISTS, path,
			                  "another program is writing this database, or died while "
			                  "doing so; open it once with sqlite3, or remove both");
	}
	return NP_OK;
}

static enum np_status open_db(struct np_db_file *self, struct np_err *err)
{
	int code = sqlite3_open_v2(self->out.temp, &self->db,
	                           SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
	if (code != SQLITE_OK)
		return explain(self, code, err);
	(void)sqlite3_db_config(self->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	(void)sqlite3_db_config(self->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	(void)sqlite3_db_config(self->db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
	(void)sqlite3_db_config(self->db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
	return NP_OK;
}

static enum np_status copy_from(struct np_db_file *self, struct np_db *source, struct np_err *err)
{
	sqlite3_backup *backup =
		sqlite3_backup_init(self->db, "main", np_db_handle(source), "main");
	if (!backup)
		return explain(self, sqlite3_errcode(self->db), err);
	(void)sqlite3_backup_step(backup, -1);
	int code = sqlite3_backup_finish(backup);
	return code == SQLITE_OK ? NP_OK : explain(self, code, err);
}

static enum np_status copy_existing(struct np_db_file *self, struct np_err *err)
{
	struct np_db *source = NULL;
	struct np_err why;
	enum np_status status = np_db_open(self->out.path, &source, &why);
	if (status == NP_E_NOTFOUND || status == NP_E_EMPTY)
		return NP_OK;
	if (status != NP_OK) {
		if (err)
			*err = why;
		return status;
	}
	status = copy_from(self, source, err);
	np_db_close(source);
	return status;
}

static enum np_status prepare(struct np_db_file *self, bool keep, struct np_err *err)
{
	if (self->out.direct)
		return np_err_set(err, NP_E_EXISTS, self->out.path,
		                  "not a regular file, a database cannot be written there");
	NP_TRY(check_no_journal(self, err));
	NP_TRY(open_db(self, err));
	if (keep)
		NP_TRY(copy_existing(self, err));
	/* what fails is thrown away: no journal; but a kept file may be in WAL mode */
	return run(self,
	           "PRAGMA page_size=4096; PRAGMA locking_mode=EXCLUSIVE;"
	           "PRAGMA journal_mode=DELETE; PRAGMA journal_mode=OFF;"
	           "PRAGMA synchronous=OFF; PRAGMA cache_size=-16384; BEGIN",
	           err);
}

enum np_status np_db_file_begin(struct np_db_file *self, const char *path, bool keep,
                                struct np_err *err)
{
	struct np_file_stat st;
	self->db = NULL;
	self->out.file = NULL;
	self->failed = NP_OK;
	NP_TRY(np_file_stat(path, true, &st, err));
	if (st.kind == NP_FILE_DIR)
		return np_err_set(err, NP_E_EXISTS, path, "is a directory");
	NP_TRY(np_outfile_begin(&self->out, path, err));
	enum np_status status = prepare(self, keep, err);
	if (status != NP_OK)
		np_db_file_abort(self);
	return status;
}

enum np_status np_db_file_commit(struct np_db_file *self, struct np_err *err)
{
	enum np_status status = self->failed;
	if (status != NP_OK)
		(void)np_err_set(err, status, self->out.path, "a table could not be written");
	else
		status = run(self, "COMMIT", err);
	if (status != NP_OK) {
		np_db_file_abort(self);
		return status;
	}
	close_db(self);
	return np_outfile_commit(&self->out, err);
}

void np_db_file_abort(struct np_db_file *self)
{
	close_db(self);
	np_outfile_abort(&self->out);
}

/* ── a table ── */

static const char *declared_type(const struct np_table *table, const struct np_db_form *form,
                                 size_t column)
{
	if (form->types && form->types[column])
		return form->types[column];
	switch (table->columns[column].type) {
	case NP_COL_TEXT:
		return "TEXT";
	case NP_COL_REAL:
	case NP_COL_PERCENT:
		return "REAL";
	case NP_COL_INT:
	case NP_COL_DUR_NS:
	case NP_COL_TIME_NS:
	case NP_COL_BYTES:
	case NP_COL_BOOL:
		break;
	}
	return "INTEGER";
}

static enum np_status run_buf(struct np_db_file *self, struct np_buf *sql, struct np_err *err)
{
	enum np_status status = sql->failed ? np_err_nomem(err) : run(self, sql->ptr, err);
	np_buf_clear(sql);
	return status;
}

/* A kept file may hold something of that name. */
static enum np_status drop(struct np_db_file *self, struct np_buf *sql, const char *name,
                           struct np_err *err)
{
	sqlite3_stmt *found = NULL;
	int code = sqlite3_prepare_v2(self->db,
	                              "SELECT type FROM sqlite_master WHERE name = ?1 COLLATE "
	                              "NOCASE AND type IN ('table', 'view')",
	                              -1, &found, NULL);
	if (code == SQLITE_OK)
		code = sqlite3_bind_text(found, 1, name, -1, SQLITE_STATIC);
	if (code == SQLITE_OK)
		code = sqlite3_step(found);
	if (code == SQLITE_ROW) {
		const char *type = (const char *)sqlite3_column_text(found, 0);
		np_buf_add_cstr(sql,
		                type && strcmp(type, "view") == 0 ? "DROP VIEW " : "DROP TABLE ");
		np_db_quote(sql, name);
	}
	(void)sqlite3_finalize(found);
	if (code != SQLITE_ROW && code != SQLITE_DONE)
		return explain(self, code, err);
	return code == SQLITE_ROW ? run_buf(self, sql, err) : NP_OK;
}

static enum np_status create(struct np_db_file *self, struct np_buf *sql,
                             const struct np_table *table, const struct np_db_form *form,
                             struct np_err *err)
{
	NP_TRY(drop(self, sql, form->name, err));
	np_buf_add_cstr(sql, "CREATE TABLE ");
	np_db_quote(sql, form->name);
	for (size_t c = 0; c < table->n_columns; c++) {
		np_buf_add_cstr(sql, c ? ",\n  " : " (\n");
		np_db_quote(sql, table->columns[c].name);
		np_buf_add_char(sql, ' ');
		np_buf_add_cstr(sql, declared_type(table, form, c));
	}
	np_buf_add_cstr(sql, "\n)");
	return run_buf(self, sql, err);
}

/* Faster behind the rows than before them. */
static enum np_status create_index(struct np_db_file *self, struct np_buf *sql,
                                   const struct np_table *table, const struct np_db_form *form,
                                   struct np_err *err)
{
	size_t n =
		form->n_index_columns < table->n_columns ? form->n_index_columns : table->n_columns;
	if (n == 0)
		return NP_OK;
	struct np_buf name = {0};
	np_buf_printf(&name, "ix_%s", form->name);
	for (size_t c = 0; c < n; c++)
		np_buf_printf(&name, "_%s", table->columns[c].name);
	np_buf_add_cstr(sql, "CREATE INDEX ");
	np_db_quote(sql, name.ptr ? name.ptr : "");
	sql->failed |= name.failed;
	np_buf_release(&name);
	np_buf_add_cstr(sql, " ON ");
	np_db_quote(sql, form->name);
	for (size_t c = 0; c < n; c++) {
		np_buf_add_cstr(sql, c ? ", " : " (");
		np_db_quote(sql, table->columns[c].name);
	}
	np_buf_add_char(sql, ')');
	return run_buf(self, sql, err);
}

/* ── its rows ── */

static bool is_plain(np_str text)
{
	for (size_t i = 0; i < text.len; i++)
		if (text.ptr[i] == '\0' || (unsigned char)text.ptr[i] >= 0x80)
			return false;
	return true;
}

/* Text as all readers of SQLite can read it; `copy` is used when it has to change. */
static np_str readable(np_str text, struct np_buf *copy)
{
	if (is_plain(text))
		return text;
	np_buf_clear(copy);
	for (size_t at = 0; at < text.len;) {
		size_t left = text.len - at;
		utf8proc_int32_t code = -1;
		utf8proc_ssize_t n = utf8proc_iterate((const utf8proc_uint8_t *)text.ptr + at,
		                                      left > 4 ? 4 : (utf8proc_ssize_t)left, &code);
		if (n <= 0 || code <= 0)
			np_buf_add_cstr(copy, "\xef\xbf\xbd");
		else
			np_buf_add(copy, text.ptr + at, (size_t)n);
		at += n > 0 ? (size_t)n : 1;
	}
	return np_buf_str(copy);
}

static int bind_cell(sqlite3_stmt *insert, int at, enum np_col_type type,
                     const struct np_cell *cell, struct np_buf *copy)
{
	if (cell->na)
		return sqlite3_bind_null(insert, at);
	switch (type) {
	case NP_COL_TEXT: {
		np_str text = readable(cell->s, copy);
		/* what lies in `copy` is gone with the next cell */
		return sqlite3_bind_text64(insert, at, text.len ? text.ptr : "", text.len,
		                           text.len && text.ptr == copy->ptr ? SQLITE_TRANSIENT
		                                                             : SQLITE_STATIC,
		                           SQLITE_UTF8);
	}
	case NP_COL_REAL:
	case NP_COL_PERCENT:
		return sqlite3_bind_double(insert, at, cell->r);
	case NP_COL_BOOL:
		return sqlite3_bind_int(insert, at, cell->b);
	case NP_COL_INT:
	case NP_COL_DUR_NS:
	case NP_COL_TIME_NS:
	case NP_COL_BYTES:
		break;
	}
	return sqlite3_bind_int64(insert, at, cell->i);
}

/* ── rows ── */

struct np_db_rows {
	struct np_db_file *file;
	const struct np_table *shape;
	struct np_db_form form;
	sqlite3_stmt *insert;
	struct np_buf sql, copy;
};

static int put(struct np_db_rows *self, const struct np_cell *cells)
{
	const struct np_table *shape = self->shape;
	int code = SQLITE_OK;
	for (size_t c = 0; c < shape->n_columns && code == SQLITE_OK; c++)
		code = bind_cell(self->insert, (int)c + 1, shape->columns[c].type, &cells[c],
		                 &self->copy);
	if (code == SQLITE_OK && self->copy.failed)
		code = SQLITE_NOMEM;
	if (code == SQLITE_OK) {
		(void)sqlite3_step(self->insert);
		code = sqlite3_reset(self->insert); /* the same, once more */
	}
	return code;
}

static enum np_status prepare_insert(struct np_db_rows *self, struct np_err *err)
{
	struct np_buf *sql = &self->sql;
	np_buf_add_cstr(sql, "INSERT INTO ");
	np_db_quote(sql, self->form.name);
	for (size_t c = 0; c < self->shape->n_columns; c++)
		np_buf_add_cstr(sql, c ? ",?" : " VALUES(?");
	np_buf_add_char(sql, ')');
	int code = sql->failed
	                   ? SQLITE_NOMEM
	                   : sqlite3_prepare_v2(self->file->db, sql->ptr, -1, &self->insert, NULL);
	enum np_status status = code == SQLITE_OK ? NP_OK : explain(self->file, code, err);
	np_buf_clear(sql);
	return status;
}

enum np_status np_db_rows_begin(struct np_db_file *self, const struct np_table *shape,
                                const struct np_db_form *form, struct np_db_rows **out,
                                struct np_err *err)
{
	*out = NULL;
	if (self->failed != NP_OK)
		return np_err_set(err, self->failed, self->out.path,
		                  "a table before could not be written");
	struct np_db_rows *rows = np_calloc(1, sizeof *rows);
	if (!rows)
		return self->failed = np_err_nomem(err);
	rows->file = self;
	rows->shape = shape;
	rows->form = form ? *form : (struct np_db_form){0};
	if (!rows->form.name)
		rows->form.name = shape->id;
	enum np_status status = create(self, &rows->sql, shape, &rows->form, err);
	if (status == NP_OK)
		status = prepare_insert(rows, err);
	self->failed = status;
	if (status == NP_OK)
		*out = rows;
	else
		(void)np_db_rows_end(rows, NULL);
	return status;
}

enum np_status np_db_rows_put(struct np_db_rows *self, const struct np_cell *cells,
                              struct np_err *err)
{
	int code = self->file->failed == NP_OK ? put(self, cells) : SQLITE_OK;
	if (code != SQLITE_OK)
		self->file->failed = explain(self->file, code, err);
	return self->file->failed;
}

enum np_status np_db_rows_end(struct np_db_rows *self, struct np_err *err)
{
	struct np_db_file *file = self->file;
	enum np_status status = file->failed;
	(void)sqlite3_finalize(self->insert);
	if (status == NP_OK)
		status = create_index(file, &self->sql, self->shape, &self->form, err);
	np_buf_release(&self->sql);
	np_buf_release(&self->copy);
	np_free(self);
	return file->failed = status;
}

/* A last row that lacks cells: they are not available. */
static enum np_status put_unfinished(struct np_db_rows *self, const struct np_table *table,
                                     size_t row, struct np_err *err)
{
	struct np_cell *cells = np_calloc(table->n_columns, sizeof *cells);
	for (size_t c = 0; cells && c < table->n_columns; c++)
		cells[c] = *np_table_cell(table, row, c);
	enum np_status status = cells ? np_db_rows_put(self, cells, err) : np_err_nomem(err);
	np_free(cells);
	return status;
}

enum np_status np_db_file_table(struct np_db_file *self, const struct np_table *table,
                                const struct np_db_form *form, struct np_err *err)
{
	struct np_db_rows *rows;
	NP_TRY(np_db_rows_begin(self, table, form, &rows, err));
	enum np_status status = NP_OK;
	size_t n = np_table_rows(table);
	for (size_t r = 0; status == NP_OK && r < n; r++)
		status = (r + 1) * table->n_columns <= table->cells.n
		                 ? np_db_rows_put(rows, np_table_cell(table, r, 0), err)
		                 : put_unfinished(rows, table, r, err);
	enum np_status ended = np_db_rows_end(rows, status == NP_OK ? err : NULL);
	return status == NP_OK ? ended : status;
}
