#include "io/db.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "io/db_internal.h"

/* ── small things ── */

enum np_status np_db_sql_error(const struct np_db *self, int rc, struct np_err *err)
{
	enum np_status code = NP_E_FORMAT;
	switch (rc & 0xff) {
	case SQLITE_NOMEM:
		return np_err_nomem(err);
	case SQLITE_IOERR:
		code = NP_E_IO;
		break;
	case SQLITE_CANTOPEN:
	case SQLITE_PERM:
	case SQLITE_AUTH:
		code = NP_E_ACCESS;
		break;
	case SQLITE_TOOBIG:
		code = NP_E_LIMIT;
		break;
	default:
		break;
	}
	const char *text = self->handle && sqlite3_errcode(self->handle) != SQLITE_OK
	                           ? sqlite3_errmsg(self->handle)
	                           : sqlite3_errstr(rc);
	return np_err_set(err, code, self->path, "sqlite: %s", text);
}

enum np_status np_db_prepare(const struct np_db *self, const char *sql, size_t len,
                             sqlite3_stmt **out, struct np_err *err)
{
	*out = NULL;
	if (len > INT_MAX)
		return np_err_set(err, NP_E_LIMIT, self->path, "the query is too long");
	int rc = sqlite3_prepare_v2(self->handle, sql, (int)len, out, NULL);
	return rc == SQLITE_OK ? NP_OK : np_db_sql_error(self, rc, err);
}

void np_db_quote(struct np_buf *out, const char *name)
{
	np_buf_add_char(out, '"');
	for (; *name; name++) {
		if (*name == '"')
			np_buf_add_char(out, '"');
		np_buf_add_char(out, *name);
	}
	np_buf_add_char(out, '"');
}

/* ── opening ── */

/* "file:" URI of a path: all but the plainest characters are escaped. An
 * absolute path gets an empty authority, so that "//x/y" has none. */
static void add_uri(struct np_buf *out, const char *path)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				    "/._-~";
	np_buf_add_cstr(out, path[0] == '/' ? "file://" : "file:");
	for (; *path; path++) {
		if (strchr(plain, *path))
			np_buf_add_char(out, *path);
		else
			np_buf_printf(out, "%%%02X", (unsigned)(unsigned char)*path);
	}
}

/* A database from somewhere: nothing in its schema may do more than be read. */
static int harden(struct sqlite3 *handle)
{
	static const struct {
		int option, value;
	} config[] = {
		{SQLITE_DBCONFIG_DEFENSIVE, 1},      {SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0},
		{SQLITE_DBCONFIG_ENABLE_TRIGGER, 0}, {SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1},
		{SQLITE_DBCONFIG_DQS_DML, 0}, /* "no_such_column" is an error, not a text */
#ifdef SQLITE_DBCONFIG_ENABLE_VIEW            /* 3.30 */
		{SQLITE_DBCONFIG_ENABLE_VIEW, 0},
#endif
	};
	for (size_t i = 0; i < sizeof config / sizeof *config; i++) {
		int rc = sqlite3_db_config(handle, config[i].option, config[i].value, NULL);
		if (rc != SQLITE_OK)
			return rc;
	}
	return sqlite3_exec(handle,
	                    "PRAGMA trusted_schema=OFF; PRAGMA cell_size_check=ON;"
	                    "PRAGMA query_only=ON; PRAGMA mmap_size=0; PRAGMA temp_store=MEMORY",
	                    NULL, NULL, NULL);
}

static void disconnect(struct np_db *self)
{
	(void)sqlite3_close_v2(self->handle);
	self->handle = NULL;
}

/*
 * Connect, and read the schema, which finds most kinds of damage. With the WAL:
 * the VFS "unix-none" takes no locks, and exclusive mode keeps the WAL index on
 * the heap, so neither -shm nor a writable directory is needed.
 */
static enum np_status connect_to(struct np_db *self, const char *path, bool with_wal,
                                 struct np_err *err)
{
	struct np_buf uri = {0};
	add_uri(&uri, path);
	np_buf_add_cstr(&uri, with_wal ? "?mode=ro" : "?mode=ro&immutable=1");
	if (uri.failed) {
		np_buf_release(&uri);
		return np_err_nomem(err);
	}
	int flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX |
	            SQLITE_OPEN_PRIVATECACHE;
	int rc = sqlite3_open_v2(uri.ptr, &self->handle, flags, with_wal ? "unix-none" : NULL);
	np_buf_release(&uri);
	if (rc == SQLITE_OK)
		rc = harden(self->handle);
	if (rc == SQLITE_OK && with_wal)
		rc = sqlite3_exec(self->handle, "PRAGMA locking_mode=EXCLUSIVE", NULL, NULL, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_exec(self->handle, "SELECT count(*) FROM sqlite_master", NULL, NULL,
		                  NULL);
	if (rc == SQLITE_OK)
		return NP_OK;
	enum np_status status = np_db_sql_error(self, rc, err);
	disconnect(self);
	return status;
}

/* Is `path` + suffix there and not empty? */
static enum np_status beside(const char *path, const char *suffix, bool *out, struct np_err *err)
{
	struct np_buf name = {0};
	struct np_file_stat st = {0};
	np_buf_add_cstr(&name, path);
	np_buf_add_cstr(&name, suffix);
	enum np_status status =
		name.failed ? np_err_nomem(err) : np_file_stat(name.ptr, true, &st, err);
	np_buf_release(&name);
	*out = status == NP_OK && st.kind == NP_FILE_REG && st.size_bytes > 0;
	return status;
}

/* Look at the first bytes, for better messages than libsqlite3 can give. */
static enum np_status check_header(const struct np_db *self, bool has_wal, struct np_err *err)
{
	np_str whole = np_input_whole(self->input);
	uint64_t size = np_input_file_size(self->input);
	static const char magic[16] = "SQLite format 3";
	if (size == 0)
		return np_err_set(err, NP_E_EMPTY, self->path, "the database has 0 bytes");
	size_t common = whole.len < sizeof magic ? whole.len : sizeof magic;
	struct np_pages_header header;
	if (common == 0 || memcmp(whole.ptr, magic, common) != 0)
		return np_err_set(err, NP_E_FORMAT, self->path, "not an SQLite database");
	if (whole.len < NP_PAGES_HEADER_SIZE)
		return np_err_set(err, NP_E_TRUNCATED, self->path,
		                  "only %zu bytes, not even a database header", whole.len);
	if (!np_pages_header(whole.ptr, whole.len, &header))
		return np_err_set(err, NP_E_FORMAT, self->path, "the database header is corrupt");
	uint64_t expected = (uint64_t)header.n_pages * header.page_size;
	if (!has_wal && size < expected)
		return np_err_set(err, NP_E_TRUNCATED, self->path,
		                  "%llu bytes, but its header says %llu", (unsigned long long)size,
		                  (unsigned long long)expected);
	return NP_OK;
}

static enum np_status open_resolved(struct np_db *self, const char *path, struct np_err *err)
{
	bool has_wal, has_journal;
	NP_TRY(np_input_open(path, &self->input, err));
	NP_TRY(beside(path, "-wal", &has_wal, err));
	NP_TRY(beside(path, "-journal", &has_journal, err));
	NP_TRY(check_header(self, has_wal, err));
	struct np_err why = {0};
	enum np_status status = connect_to(self, path, has_wal, &why);
	if (status != NP_OK && status != NP_E_NOMEM && has_wal) {
		(void)snprintf(self->note, sizeof self->note,
		               "the write-ahead log beside it is ignored (%.150s)", why.msg);
		status = connect_to(self, path, false, &why);
	}
	if (status != NP_OK && err)
		*err = why;
	NP_TRY(status);
	if (has_journal && !self->note[0])
		(void)snprintf(self->note, sizeof self->note,
		               "a rollback journal lies beside it: the last transaction may be "
		               "unfinished");
	np_str whole = np_input_whole(self->input);
	if (has_wal || has_journal || np_pages_init(&self->pages, whole.ptr, whole.len)) {
		np_input_close(self->input);
		self->input = NULL;
	}
	return NP_OK;
}

enum np_status np_db_open(const char *path, struct np_db **out, struct np_err *err)
{
	*out = NULL;
	struct np_db *self = np_calloc(1, sizeof *self);
	size_t len = strlen(path) + 1;
	if (!self || !(self->path = np_alloc(len))) {
		np_free(self);
		return np_err_nomem(err);
	}
	memcpy(self->path, path, len);
	/* journals lie beside the file itself, not beside a link to it */
	char real[PATH_MAX];
	enum np_status status = open_resolved(self, realpath(path, real) ? real : path, err);
	if (status != NP_OK) {
		np_db_close(self);
		return status;
	}
	*out = self;
	return NP_OK;
}

void np_db_close(struct np_db *self)
{
	if (!self)
		return;
	disconnect(self);
	np_input_close(self->input);
	np_free(self->path);
	np_free(self);
}

const char *np_db_note(const struct np_db *self)
{
	return self->note;
}

struct sqlite3 *np_db_handle(struct np_db *self)
{
	return self->handle;
}

/* ── catalogue ── */

/* views and virtual tables have no root page */
#define STORED_TABLES                                                    \
	"SELECT name, rootpage FROM sqlite_master WHERE type = 'table' " \
	"AND rootpage > 0 AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' "

static const char *column_cstr(struct np_arena *arena, sqlite3_stmt *stmt, int i)
{
	const unsigned char *text = sqlite3_column_text(stmt, i);
	return np_arena_cstr(arena, np_str_of(text ? (const char *)text : ""));
}

static enum np_status find_table(const struct np_db *self, const char *name, struct np_arena *arena,
                                 struct np_db_table *out, struct np_err *err)
{
	static const char sql[] = STORED_TABLES "AND name = ?1 COLLATE NOCASE";
	sqlite3_stmt *stmt;
	NP_TRY(np_db_prepare(self, sql, sizeof sql - 1, &stmt, err));
	enum np_status status = NP_OK;
	int rc = sqlite3_bind_text(stmt, 1, name, -1, SQLITE_STATIC);
	if (rc == SQLITE_OK)
		rc = sqlite3_step(stmt);
	if (rc == SQLITE_ROW) {
		int64_t root = sqlite3_column_int64(stmt, 1);
		out->root = root > 1 && root < UINT32_MAX ? (uint32_t)root : 0;
		out->name = column_cstr(arena, stmt, 0);
		if (!out->name)
			status = np_err_nomem(err);
	} else if (rc == SQLITE_DONE) {
		status = np_err_set(err, NP_E_NOTFOUND, self->path, "there is no table %.100s",
		                    name);
	} else {
		status = np_db_sql_error(self, rc, err);
	}
	(void)sqlite3_finalize(stmt);
	return status;
}

/* `PRAGMA main.<pragma>("table")` */
static enum np_status prepare_pragma(const struct np_db *self, const char *pragma,
                                     const char *table, sqlite3_stmt **out, struct np_err *err)
{
	struct np_buf sql = {0};
	*out = NULL;
	np_buf_printf(&sql, "PRAGMA main.%s(", pragma);
	np_db_quote(&sql, table);
	np_buf_add_char(&sql, ')');
	enum np_status status =
		sql.failed ? np_err_nomem(err) : np_db_prepare(self, sql.ptr, sql.len, out, err);
	np_buf_release(&sql);
	return status;
}

/* Affinity of a declared type is REAL: https://sqlite.org/datatype3.html §3.1 */
static bool is_real(np_str type)
{
	static const char *const stronger[] = {"INT", "CHAR", "CLOB", "TEXT", "BLOB"};
	static const char *const real[] = {"REAL", "FLOA", "DOUB"};
	for (size_t i = 0; i < sizeof stronger / sizeof *stronger; i++)
		if (np_str_icontains(type, np_str_of(stronger[i])))
			return false;
	for (size_t i = 0; i < sizeof real / sizeof *real; i++)
		if (np_str_icontains(type, np_str_of(real[i])))
			return true;
	return false;
}

struct columns {
	NP_VEC(struct np_db_column) list;
	size_t n_primary;   /* columns of the primary key */
	size_t integer_key; /* place + 1 of one that is declared INTEGER */
	bool generated;
};

/* table_xinfo: cid, name, type, notnull, dflt_value, pk, hidden */
static enum np_status add_column(sqlite3_stmt *stmt, struct np_arena *arena, struct columns *out,
                                 struct np_err *err)
{
	np_str type = np_str_of((const char *)sqlite3_column_text(stmt, 2));
	const char *initial = (const char *)sqlite3_column_text(stmt, 4);
	struct np_db_column column = {
		.name = column_cstr(arena, stmt, 1),
		.real = is_real(type),
		.has_default = initial && sqlite3_stricmp(initial, "NULL") != 0,
	};
	if (!column.name || !np_vec_push(&out->list, column))
		return np_err_nomem(err);
	if (sqlite3_column_int(stmt, 5) > 0) {
		out->n_primary++;
		if (np_str_ieq(type, NP_STR("INTEGER")))
			out->integer_key = out->list.n;
	}
	if (sqlite3_column_int(stmt, 6) != 0)
		out->generated = true;
	return NP_OK;
}

static enum np_status load_columns(const struct np_db *self, const char *table,
                                   struct np_arena *arena, struct columns *out, struct np_err *err)
{
	sqlite3_stmt *stmt;
	NP_TRY(prepare_pragma(self, "table_xinfo", table, &stmt, err));
	enum np_status status = NP_OK;
	int rc = SQLITE_DONE;
	while (status == NP_OK && (rc = sqlite3_step(stmt)) == SQLITE_ROW)
		status = add_column(stmt, arena, out, err);
	if (status == NP_OK && rc != SQLITE_DONE)
		status = np_db_sql_error(self, rc, err);
	(void)sqlite3_finalize(stmt);
	return status;
}

/* An INTEGER PRIMARY KEY has no index, all others have ("... DESC" in the column's
 * definition is such a one, for historic reasons). index_list: seq, name, unique, origin */
static enum np_status has_key_index(const struct np_db *self, const char *table, bool *out,
                                    struct np_err *err)
{
	sqlite3_stmt *stmt;
	*out = false;
	NP_TRY(prepare_pragma(self, "index_list", table, &stmt, err));
	int rc;
	while ((rc = sqlite3_step(stmt)) == SQLITE_ROW)
		if (np_str_is(np_str_of((const char *)sqlite3_column_text(stmt, 3)), "pk"))
			*out = true;
	enum np_status status = rc == SQLITE_DONE ? NP_OK : np_db_sql_error(self, rc, err);
	(void)sqlite3_finalize(stmt);
	return status;
}

/* A name of the rowid that no column hides, if the table has a rowid at all. */
static enum np_status find_rowid(const struct np_db *self, struct np_db_table *table,
                                 struct np_err *err)
{
	static const char *const names[] = {"_rowid_", "rowid", "oid"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		bool hidden = false;
		for (size_t c = 0; c < table->n_columns; c++)
			hidden = hidden || sqlite3_stricmp(names[i], table->columns[c].name) == 0;
		if (hidden)
			continue;
		struct np_buf sql = {0};
		np_buf_printf(&sql, "SELECT %s FROM main.", names[i]);
		np_db_quote(&sql, table->name);
		sqlite3_stmt *stmt = NULL;
		enum np_status status = sql.failed
		                                ? np_err_nomem(err)
		                                : np_db_prepare(self, sql.ptr, sql.len, &stmt, err);
		np_buf_release(&sql);
		(void)sqlite3_finalize(stmt);
		if (status == NP_OK)
			table->rowid_name = names[i];
		return status == NP_E_NOMEM ? status : NP_OK; /* failing: WITHOUT ROWID */
	}
	return NP_OK;
}

enum np_status np_db_table_load(const struct np_db *self, const char *name, struct np_arena *arena,
                                struct np_db_table *out, struct np_err *err)
{
	struct columns columns = {0};
	bool key_index = false;
	*out = (struct np_db_table){0};
	NP_TRY(find_table(self, name, arena, out, err));
	enum np_status status = load_columns(self, out->name, arena, &columns, err);
	if (status == NP_OK)
		status = has_key_index(self, out->name, &key_index, err);
	if (status == NP_OK && columns.n_primary == 1 && columns.integer_key && !key_index)
		columns.list.v[columns.integer_key - 1].rowid = true;
	if (status == NP_OK && columns.list.n > 0) {
		size_t bytes = columns.list.n * sizeof *out->columns;
		out->columns = np_arena_alloc(arena, bytes);
		if (out->columns)
			memcpy(out->columns, columns.list.v, bytes);
		else
			status = np_err_nomem(err);
		out->n_columns = columns.list.n;
	}
	np_vec_release(&columns.list);
	if (status == NP_OK)
		status = find_rowid(self, out, err);
	out->plain = out->rowid_name && !columns.generated;
	return status;
}

bool np_db_has_table(struct np_db *self, const char *table)
{
	struct np_arena arena;
	struct np_db_table unused = {0};
	np_arena_init(&arena);
	enum np_status status = find_table(self, table, &arena, &unused, NULL);
	np_arena_release(&arena);
	return status == NP_OK;
}

bool np_db_has_column(struct np_db *self, const char *table, const char *column)
{
	struct np_arena arena;
	struct np_db_table info = {0};
	bool found = false;
	np_arena_init(&arena);
	if (np_db_table_load(self, table, &arena, &info, NULL) == NP_OK)
		for (size_t i = 0; i < info.n_columns && !found; i++)
			found = sqlite3_stricmp(column, info.columns[i].name) == 0;
	np_arena_release(&arena);
	return found;
}

enum np_status np_db_tables(struct np_db *self, struct np_arena *arena, np_str **names, size_t *n,
                            struct np_err *err)
{
	static const char sql[] = STORED_TABLES "ORDER BY name";
	NP_VEC(np_str) list = {0};
	sqlite3_stmt *stmt;
	*names = NULL;
	*n = 0;
	NP_TRY(np_db_prepare(self, sql, sizeof sql - 1, &stmt, err));
	enum np_status status = NP_OK;
	int rc = SQLITE_DONE;
	while (status == NP_OK && (rc = sqlite3_step(stmt)) == SQLITE_ROW) {
		const char *name = column_cstr(arena, stmt, 0);
		if (!name || !np_vec_push(&list, np_str_of(name)))
			status = np_err_nomem(err);
	}
	if (status == NP_OK && rc != SQLITE_DONE)
		status = np_db_sql_error(self, rc, err);
	(void)sqlite3_finalize(stmt);
	if (status == NP_OK && list.n > 0) {
		*names = np_arena_alloc(arena, list.n * sizeof **names);
		if (*names)
			memcpy(*names, list.v, list.n * sizeof **names);
		else
			status = np_err_nomem(err);
	}
	*n = status == NP_OK ? list.n : 0;
	np_vec_release(&list);
	return status;
}

/* ── count ── */

/* A row at a time: count(*) would follow pages that refer to each other for
 * ever, a scan notices them. */
static int64_t count_rows(struct np_db *self, const char *table)
{
	struct np_db_scan *scan;
	if (np_db_scan_open(self, table, NULL, 0, NP_DB_NO_NATIVE, &scan, NULL) != NP_OK)
		return -1;
	int64_t n = -1;
	bool got = true;
	enum np_status status = NP_OK;
	for (; status == NP_OK && got; n++)
		status = np_db_scan_next(scan, NULL, &got, NULL);
	np_db_scan_close(scan);
	return status == NP_OK ? n : -1;
}

int64_t np_db_count(struct np_db *self, const char *table)
{
	struct np_arena arena;
	struct np_db_table info = {0};
	int64_t n = -1;
	np_arena_init(&arena);
	if (np_db_table_load(self, table, &arena, &info, NULL) == NP_OK) {
		if (!self->input || !info.plain)
			n = count_rows(self, info.name);
		else if (np_pages_count(&self->pages, info.root, &n) != NP_PAGES_END ||
		         np_input_faulted(self->input))
			n = -1;
	}
	np_arena_release(&arena);
	return n;
}
