#include "cluster/commop_db.h"

#include <sqlite3.h>

#include "report/write_db.h"

struct copy {
	struct np_db_file file;
	const struct np_intern *strings; /* of the rows */
	struct np_intern texts;          /* of STRING_IDS */
	NP_VEC(int64_t) ids;             /* by text */
	int64_t max_id;
	sqlite3_stmt *dtype;
};

static enum np_status failed(const struct copy *self, struct np_err *err)
{
	int code = sqlite3_errcode(self->file.db) & 0xff;
	if (code == SQLITE_NOMEM)
		return np_err_nomem(err);
	return np_err_set(err, code == SQLITE_ERROR ? NP_E_FORMAT : NP_E_IO, self->file.out.path,
	                  "cannot add COMMUNICATION_OP: %s", sqlite3_errmsg(self->file.db));
}

/* ── STRING_IDS ── */

static bool know(struct copy *self, np_str text, int64_t id)
{
	uint32_t row = np_intern_add(&self->texts, text);
	if (row == NP_ID_NONE)
		return false;
	while (self->ids.n <= row)
		if (!np_vec_push(&self->ids, INT64_MIN))
			return false;
	if (self->ids.v[row] == INT64_MIN)
		self->ids.v[row] = id;
	return true;
}

static enum np_status read_strings(struct copy *self, struct np_err *err)
{
	sqlite3_stmt *select = NULL;
	bool ok = true;
	int code = sqlite3_prepare_v2(self->file.db, "SELECT id, value FROM STRING_IDS", -1,
	                              &select, NULL);
	if (code != SQLITE_OK)
		return failed(self, err);
	while (ok && (code = sqlite3_step(select)) == SQLITE_ROW) {
		int64_t id = sqlite3_column_int64(select, 0);
		const char *text = (const char *)sqlite3_column_text(select, 1);
		np_str value = {text, (size_t)sqlite3_column_bytes(select, 1)};
		self->max_id = id > self->max_id ? id : self->max_id;
		ok = !text || know(self, value, id);
	}
	(void)sqlite3_finalize(select);
	if (!ok)
		return np_err_nomem(err);
	return code == SQLITE_DONE ? NP_OK : failed(self, err);
}

/* The id of a text; a new one gets the next number and is written at the end. */
static bool id_of(struct copy *self, np_id text, int64_t *out)
{
	np_str value = np_intern_get(self->strings, text);
	uint32_t row = np_intern_find(&self->texts, value);
	if (row == NP_ID_NONE || row >= self->ids.n || self->ids.v[row] == INT64_MIN) {
		if (!know(self, value, self->max_id + 1))
			return false;
		self->max_id++;
		row = np_intern_find(&self->texts, value);
	}
	*out = self->ids.v[row];
	return true;
}

static enum np_status write_strings(struct copy *self, int64_t first, struct np_err *err)
{
	sqlite3_stmt *insert = NULL;
	int code = sqlite3_prepare_v2(self->file.db,
	                              "INSERT INTO STRING_IDS (id, value) VALUES (?1, ?2)", -1,
	                              &insert, NULL);
	for (uint32_t row = 0; code == SQLITE_OK && row < self->ids.n; row++) {
		np_str text = np_intern_get(&self->texts, row);
		if (self->ids.v[row] < first)
			continue;
		(void)sqlite3_bind_int64(insert, 1, self->ids.v[row]);
		(void)sqlite3_bind_text64(insert, 2, text.len ? text.ptr : "", text.len,
		                          SQLITE_STATIC, SQLITE_UTF8);
		(void)sqlite3_step(insert);
		code = sqlite3_reset(insert);
	}
	enum np_status status = code == SQLITE_OK ? NP_OK : failed(self, err);
	(void)sqlite3_finalize(insert);
	return status;
}

/* ── COMMUNICATION_OP ── */

/* As the official tool makes it, column by column. */
static const struct np_column columns[] = {
	{"opId", "", NP_COL_INT, ""},         {"opName", "", NP_COL_INT, ""},
	{"startNs", "", NP_COL_INT, ""},      {"endNs", "", NP_COL_INT, ""},
	{"connectionId", "", NP_COL_INT, ""}, {"groupName", "", NP_COL_INT, ""},
	{"relay", "", NP_COL_TEXT, ""},       {"retry", "", NP_COL_TEXT, ""},
	{"dataType", "", NP_COL_INT, ""},     {"algType", "", NP_COL_TEXT, ""},
	{"count", "", NP_COL_INT, ""},        {"opType", "", NP_COL_INT, ""},
};
static const char *const types[] = {
	[10] = "TEXT", /* count: the message has it as text */
	[11] = NULL,
};

static void int_or_na(struct np_table *table, int64_t value)
{
	if (value == INT64_MIN)
		np_cell_na(table);
	else
		np_cell_int(table, value);
}

static int64_t dtype_of(struct copy *self, np_id dtype)
{
	np_str text = np_intern_get(self->strings, dtype);
	int64_t id = INT64_MIN;
	(void)sqlite3_bind_text64(self->dtype, 1, text.len ? text.ptr : "", text.len, SQLITE_STATIC,
	                          SQLITE_UTF8);
	if (sqlite3_step(self->dtype) == SQLITE_ROW)
		id = sqlite3_column_int64(self->dtype, 0);
	(void)sqlite3_reset(self->dtype);
	return id;
}

static bool add_row(struct copy *self, const struct np_digest_commop *rows, size_t r,
                    struct np_table *table)
{
	int64_t type, name, group;
	if (!id_of(self, rows->type[r], &type) || !id_of(self, rows->name[r], &name) ||
	    !id_of(self, rows->group[r], &group))
		return false;
	np_cell_int(table, (int64_t)r);
	np_cell_int(table, name);
	np_cell_int(table, rows->start_ns[r]);
	np_cell_int(table, rows->end_ns[r]);
	int_or_na(table, rows->conn[r]);
	np_cell_int(table, group);
	np_cell_na(table);
	np_cell_na(table);
	int_or_na(table, self->dtype ? dtype_of(self, rows->dtype[r]) : INT64_MIN);
	np_cell_na(table);
	int_or_na(table, rows->count[r]);
	np_cell_int(table, type);
	return true;
}

static enum np_status write_ops(struct copy *self, const struct np_digest_commop *rows,
                                struct np_err *err)
{
	struct np_db_form form = {.name = "COMMUNICATION_OP", .n_index_columns = 1, .types = types};
	struct np_report *report = np_report_new("");
	if (!report)
		return np_err_nomem(err);
	struct np_table *table = NP_REPORT_TABLE(report, "COMMUNICATION_OP", "", columns);
	bool ok = true;
	for (size_t r = 0; ok && r < rows->n; r++)
		ok = add_row(self, rows, r, table);
	enum np_status status = ok ? np_report_ok(report, err) : np_err_nomem(err);
	if (status == NP_OK)
		status = np_db_file_table(&self->file, table, &form, err);
	np_report_free(report);
	return status;
}

static enum np_status fill(struct copy *self, const struct np_digest_commop *rows,
                           struct np_err *err)
{
	NP_TRY(read_strings(self, err));
	/* three new texts per row at most */
	if (self->max_id > INT64_MAX - 1 - 3 * (int64_t)rows->n)
		return np_err_set(err, NP_E_FORMAT, self->file.out.path,
		                  "the ids of STRING_IDS leave no room for more");
	int64_t first = self->max_id + 1;
	/* without the table of types their ids stay unknown */
	(void)sqlite3_prepare_v2(self->file.db,
	                         "SELECT id FROM ENUM_HCCL_DATA_TYPE WHERE lower(name) = "
	                         "lower(?1) ORDER BY id",
	                         -1, &self->dtype, NULL);
	enum np_status status = write_ops(self, rows, err);
	(void)sqlite3_finalize(self->dtype);
	return status == NP_OK ? write_strings(self, first, err) : status;
}

enum np_status np_commop_db_write(const char *from, const char *to, const struct np_intern *strings,
                                  const struct np_digest_commop *rows, struct np_err *err)
{
	struct copy self = {.strings = strings};
	NP_TRY(np_db_file_begin_copy(&self.file, to, from, err));
	enum np_status status =
		np_intern_init(&self.texts) ? fill(&self, rows, err) : np_err_nomem(err);
	if (status == NP_OK)
		status = np_db_file_commit(&self.file, err);
	else
		np_db_file_abort(&self.file);
	np_intern_release(&self.texts);
	np_vec_release(&self.ids);
	return status;
}
