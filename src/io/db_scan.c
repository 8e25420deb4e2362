#include <string.h>

#include "io/db_internal.h"

enum { ABSENT = -1 };

/* A column of the row that the page scan does not fill: missing in the table
 * (from == ABSENT), or asked for twice. */
struct patch {
	size_t to;
	ptrdiff_t from; /* index in the row */
};

struct np_db_scan {
	struct np_db *db;
	bool native, over;
	struct np_pages_scan pages;
	struct patch *patches;
	size_t n_patches;

	sqlite3_stmt *stmt; /* column 0: rowid or NULL; then ours */
	bool ordered;       /* column 0 is the rowid */
	uint64_t n_given, most_rows;
	int64_t last_rowid;

	size_t n_columns;
	ptrdiff_t *place; /* of each column in the table, or ABSENT */
	struct np_db_table table;
	struct np_arena arena; /* all of the above */
};

/* ── opening ── */

static ptrdiff_t find_column(const struct np_db_table *table, const char *names)
{
	np_str rest = np_str_of(names);
	do {
		np_str name = np_str_cut(rest, '|', &rest);
		for (size_t i = 0; i < table->n_columns; i++)
			if (np_str_ieq(name, np_str_of(table->columns[i].name)))
				return (ptrdiff_t)i;
	} while (rest.len > 0);
	return ABSENT;
}

/* What the page scan does with each value of a record, and what is left. */
static enum np_status plan_native(struct np_db_scan *self, struct np_err *err)
{
	const struct np_db_table *table = &self->table;
	struct np_pages_column *plan =
		np_arena_zalloc(&self->arena, (table->n_columns + 1) * sizeof *plan);
	self->patches = np_arena_alloc(&self->arena, (self->n_columns + 1) * sizeof *self->patches);
	if (!plan || !self->patches)
		return np_err_nomem(err);
	size_t n_wanted = 0;
	for (size_t i = 0; i < self->n_columns; i++) {
		ptrdiff_t at = self->place[i];
		if (at == ABSENT || plan[at].rule != NP_PAGES_SKIP) {
			self->patches[self->n_patches++] =
				(struct patch){i, at == ABSENT ? ABSENT : plan[at].out};
			continue;
		}
		const struct np_db_column *column = &table->columns[at];
		plan[at].out = (uint16_t)i;
		plan[at].has_default = column->has_default;
		plan[at].rule = column->rowid  ? NP_PAGES_ROWID
		                : column->real ? NP_PAGES_REAL
		                               : NP_PAGES_PLAIN;
		if ((size_t)at + 1 > n_wanted)
			n_wanted = (size_t)at + 1;
	}
	np_pages_scan_init(&self->pages, &self->db->pages, table->root, plan, n_wanted);
	self->native = true;
	return NP_OK;
}

/* More rows than the pages can hold: a cell has at least four bytes. */
static enum np_status find_most_rows(struct np_db_scan *self, struct np_err *err)
{
	static const char sql[] = "PRAGMA main.page_count";
	sqlite3_stmt *stmt;
	NP_TRY(np_db_prepare(self->db, sql, sizeof sql - 1, &stmt, err));
	int rc = sqlite3_step(stmt);
	if (rc == SQLITE_ROW)
		self->most_rows = (uint64_t)sqlite3_column_int64(stmt, 0) * (65536 / 4);
	(void)sqlite3_finalize(stmt);
	return rc == SQLITE_ROW ? NP_OK : np_db_sql_error(self->db, rc, err);
}

/*
 * SELECT t.rowid, t."a", NULL, ... FROM "table" t NOT INDEXED ORDER BY 1
 *
 * NOT INDEXED keeps the planner from walking a covering index and sorting.
 */
static enum np_status prepare_sql(struct np_db_scan *self, struct np_err *err)
{
	struct np_buf sql = {0};
	const char *rowid = self->table.rowid_name;
	np_buf_printf(&sql, "SELECT %s%s", rowid ? "t." : "", rowid ? rowid : "NULL");
	for (size_t i = 0; i < self->n_columns; i++) {
		if (self->place[i] == ABSENT) {
			np_buf_add_cstr(&sql, ", NULL");
			continue;
		}
		np_buf_add_cstr(&sql, ", t.");
		np_db_quote(&sql, self->table.columns[self->place[i]].name);
	}
	np_buf_add_cstr(&sql, " FROM main.");
	np_db_quote(&sql, self->table.name);
	np_buf_add_cstr(&sql, " AS t NOT INDEXED");
	if (rowid)
		np_buf_printf(&sql, " ORDER BY t.%s", rowid);
	enum np_status status =
		sql.failed ? np_err_nomem(err)
			   : np_db_prepare(self->db, sql.ptr, sql.len, &self->stmt, err);
	np_buf_release(&sql);
	self->ordered = rowid != NULL;
	self->native = false;
	return status == NP_OK ? find_most_rows(self, err) : status;
}

static enum np_status scan_start(struct np_db_scan *self, const char *table,
                                 const char *const *columns, unsigned flags, struct np_err *err)
{
	NP_TRY(np_db_table_load(self->db, table, &self->arena, &self->table, err));
	self->place = np_arena_alloc(&self->arena, (self->n_columns + 1) * sizeof *self->place);
	if (!self->place)
		return np_err_nomem(err);
	for (size_t i = 0; i < self->n_columns; i++)
		self->place[i] = find_column(&self->table, columns[i]);
	if (self->db->input && self->table.plain && !(flags & NP_DB_NO_NATIVE))
		return plan_native(self, err);
	return prepare_sql(self, err);
}

enum np_status np_db_scan_open(struct np_db *self, const char *table, const char *const *columns,
                               size_t n_columns, unsigned flags, struct np_db_scan **out,
                               struct np_err *err)
{
	*out = NULL;
	if (n_columns >= NP_PAGES_MAX_COLUMNS)
		return np_err_set(err, NP_E_LIMIT, self->path, "%zu columns are too many",
		                  n_columns);
	struct np_db_scan *scan = np_calloc(1, sizeof *scan);
	if (!scan)
		return np_err_nomem(err);
	scan->db = self;
	scan->n_columns = n_columns;
	np_arena_init(&scan->arena);
	enum np_status status = scan_start(scan, table, columns, flags, err);
	if (status != NP_OK) {
		np_db_scan_close(scan);
		return status;
	}
	*out = scan;
	return NP_OK;
}

void np_db_scan_close(struct np_db_scan *self)
{
	if (!self)
		return;
	(void)sqlite3_finalize(self->stmt);
	np_pages_scan_release(&self->pages);
	np_arena_release(&self->arena);
	np_free(self);
}

bool np_db_scan_has_column(const struct np_db_scan *self, size_t column)
{
	return column < self->n_columns && self->place[column] != ABSENT;
}

bool np_db_scan_is_native(const struct np_db_scan *self)
{
	return self->native;
}

/* ── rows by libsqlite3 ── */

static enum np_status corrupt_order(const struct np_db_scan *self, struct np_err *err)
{
	return np_err_set(err, NP_E_FORMAT, self->db->path,
	                  "table %.100s is corrupt: its rows are not in order", self->table.name);
}

/* Step, and prove that rowids ascend, or that there are not too many rows where
 * there is no rowid; else pages that refer to each other could go on for ever. */
static enum np_status sql_step(struct np_db_scan *self, bool *got, struct np_err *err)
{
	int rc = sqlite3_step(self->stmt);
	*got = rc == SQLITE_ROW;
	if (rc == SQLITE_DONE)
		return NP_OK;
	if (rc != SQLITE_ROW)
		return np_db_sql_error(self->db, rc, err);
	if (self->ordered) {
		int64_t rowid = sqlite3_column_int64(self->stmt, 0);
		if (self->n_given > 0 && rowid <= self->last_rowid)
			return corrupt_order(self, err);
		self->last_rowid = rowid;
	}
	if (++self->n_given > self->most_rows)
		return corrupt_order(self, err);
	return NP_OK;
}

/* false: out of memory. */
static bool sql_value(sqlite3_stmt *stmt, int i, struct np_db_value *out)
{
	switch (sqlite3_column_type(stmt, i)) {
	case SQLITE_INTEGER:
		out->type = NP_DB_INT;
		out->i = sqlite3_column_int64(stmt, i);
		return true;
	case SQLITE_FLOAT:
		out->type = NP_DB_REAL;
		out->r = sqlite3_column_double(stmt, i);
		return true;
	case SQLITE_TEXT:
		out->type = NP_DB_TEXT;
		out->text.ptr = (const char *)sqlite3_column_text(stmt, i);
		out->text.len = (size_t)sqlite3_column_bytes(stmt, i);
		return out->text.ptr != NULL;
	case SQLITE_BLOB:
		out->type = NP_DB_BLOB;
		out->text.ptr = sqlite3_column_blob(stmt, i);
		out->text.len = (size_t)sqlite3_column_bytes(stmt, i);
		return out->text.ptr != NULL || out->text.len == 0;
	default:
		out->type = NP_DB_NULL;
		out->i = 0;
		return true;
	}
}

static enum np_status sql_next(struct np_db_scan *self, struct np_db_value *row, bool *got,
                               struct np_err *err)
{
	enum np_status status = sql_step(self, got, err);
	for (size_t i = 0; status == NP_OK && *got && i < self->n_columns; i++)
		if (!sql_value(self->stmt, (int)i + 1, &row[i]))
			status = np_err_nomem(err);
	if (status != NP_OK || !*got) {
		*got = false;
		self->over = true;
		/* the end is told for ever; after an error, so is the end */
		(void)sqlite3_reset(self->stmt);
	}
	return status;
}

/* ── rows by our own page scan ── */

/*
 * libsqlite3 takes over behind the rows already given. They are skipped by
 * number, not by "rowid > ?": a search goes by the keys of interior pages,
 * which a plain scan never looks at, and where those are damaged the two would
 * not see the same rows.
 */
static enum np_status hand_over(struct np_db_scan *self, struct np_err *err)
{
	uint64_t n_skip = self->pages.n_given;
	int64_t last = self->pages.last_rowid;
	NP_TRY(prepare_sql(self, err));
	for (uint64_t i = 0; i < n_skip; i++) {
		bool got;
		NP_TRY(sql_step(self, &got, err));
		if (!got)
			return corrupt_order(self, err);
	}
	return n_skip > 0 && self->last_rowid != last ? corrupt_order(self, err) : NP_OK;
}

static void apply_patches(const struct np_db_scan *self, struct np_db_value *row)
{
	for (size_t i = 0; i < self->n_patches; i++) {
		const struct patch *patch = &self->patches[i];
		if (patch->from == ABSENT)
			row[patch->to] = (struct np_db_value){.type = NP_DB_NULL};
		else
			row[patch->to] = row[patch->from];
	}
}

/* The page scan did not give a row. */
static enum np_status native_stopped(struct np_db_scan *self, enum np_pages_step step,
                                     struct np_db_value *row, bool *got, struct np_err *err)
{
	*got = false;
	enum np_status status = NP_OK;
	/* pages that are gone read as zeros: never a sound tree, so it is enough to look here */
	if (np_input_faulted(self->db->input))
		status = np_err_set(err, NP_E_IO, self->db->path,
		                    "the file shrank while it was read");
	else if (step == NP_PAGES_NOMEM)
		status = np_err_nomem(err);
	else if (step == NP_PAGES_DOUBT)
		status = hand_over(self, err);
	if (status == NP_OK && step == NP_PAGES_DOUBT)
		return sql_next(self, row, got, err);
	self->over = true;
	return status;
}

enum np_status np_db_scan_next(struct np_db_scan *self, struct np_db_value *row, bool *got,
                               struct np_err *err)
{
	if (self->over) {
		*got = false;
		return NP_OK;
	}
	if (!self->native)
		return sql_next(self, row, got, err);
	enum np_pages_step step = np_pages_scan_next(&self->pages, row);
	if (step != NP_PAGES_ROW)
		return native_stopped(self, step, row, got, err);
	if (self->n_patches)
		apply_patches(self, row);
	*got = true;
	return NP_OK;
}

/* ── values ── */

bool np_db_i64(const struct np_db_value *value, int64_t *out)
{
	switch (value->type) {
	case NP_DB_INT:
		*out = value->i;
		return true;
	case NP_DB_REAL:
		/* -2^63 … 2^63 - 1024; NaN fails both comparisons */
		if (!(value->r >= -9223372036854775808.0 && value->r < 9223372036854775808.0) ||
		    (double)(int64_t)value->r != value->r)
			return false;
		*out = (int64_t)value->r;
		return true;
	case NP_DB_TEXT:
		return np_str_to_i64(value->text, out);
	default:
		return false;
	}
}

bool np_db_double(const struct np_db_value *value, double *out)
{
	switch (value->type) {
	case NP_DB_INT:
		*out = (double)value->i;
		return true;
	case NP_DB_REAL:
		*out = value->r;
		return true;
	case NP_DB_TEXT:
		return np_str_to_double(value->text, out);
	default:
		return false;
	}
}

np_str np_db_text(const struct np_db_value *value)
{
	return value->type == NP_DB_TEXT ? value->text : (np_str){NULL, 0};
}
