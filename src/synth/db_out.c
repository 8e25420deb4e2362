#include "synth/db_out.h"

#include <sqlite3.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"

static void keep(struct np_db_out *self, int code)
{
	if (self->code == 0 && code != SQLITE_OK && code != SQLITE_DONE)
		self->code = code;
}

enum np_status np_db_out_open(struct np_db_out *self, const char *dir, const char *name,
                              struct np_err *err)
{
	*self = (struct np_db_out){.code = 0};
	int n = snprintf(self->path, sizeof self->path, "%s/%s", dir, name);
	if (n < 0 || (size_t)n >= sizeof self->path)
		return np_err_set(err, NP_E_LIMIT, dir, "path is too long");
	(void)unlink(self->path);
	keep(self, sqlite3_open_v2(self->path, &self->db,
	                           SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
	                           NULL));
	np_db_out_exec(self,
	               "PRAGMA page_size=4096; PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;"
	               "PRAGMA locking_mode=EXCLUSIVE; PRAGMA cache_size=-16384; BEGIN");
	return NP_OK;
}

enum np_status np_db_out_close(struct np_db_out *self, struct np_synth_stats *stats,
                               struct np_err *err)
{
	np_db_out_exec(self, "COMMIT");
	const char *text = sqlite3_errstr(self->code);
	keep(self, sqlite3_close(self->db));
	self->db = NULL;
	if (self->code == SQLITE_NOMEM)
		return np_err_nomem(err);
	if (self->code)
		return np_err_set(err, NP_E_IO, self->path, "cannot write the database: %s", text);
	struct np_file_stat st;
	NP_TRY(np_file_stat(self->path, true, &st, err));
	stats->files++;
	stats->bytes += st.size_bytes;
	if (chmod(self->path, 0640) != 0)
		return np_err_set(err, NP_E_IO, self->path, "cannot set the mode");
	return NP_OK;
}

void np_db_out_exec(struct np_db_out *self, const char *sql)
{
	if (self->code == 0)
		keep(self, sqlite3_exec(self->db, sql, NULL, NULL, NULL));
}

void np_db_out_table(struct np_db_out *self, const struct np_db_table *table)
{
	char sql[1024];
	(void)snprintf(sql, sizeof sql, "CREATE TABLE %s (%s)", table->name, table->columns);
	np_db_out_exec(self, sql);
}

struct sqlite3_stmt *np_db_out_insert(struct np_db_out *self, const char *table, int n)
{
	char sql[256];
	sqlite3_stmt *stmt = NULL;
	int at = snprintf(sql, sizeof sql, "INSERT INTO %s VALUES(?", table);
	for (int i = 1; i < n; i++)
		at += snprintf(sql + at, sizeof sql - (size_t)at, ",?");
	(void)snprintf(sql + at, sizeof sql - (size_t)at, ")");
	if (self->code == 0)
		keep(self, sqlite3_prepare_v2(self->db, sql, -1, &stmt, NULL));
	return stmt;
}

void np_db_out_int(struct np_db_out *self, struct sqlite3_stmt *stmt, int at, int64_t value)
{
	if (self->code == 0)
		keep(self, value == NP_DB_NULL ? sqlite3_bind_null(stmt, at)
		                               : sqlite3_bind_int64(stmt, at, value));
}

void np_db_out_real(struct np_db_out *self, struct sqlite3_stmt *stmt, int at, double value)
{
	if (self->code == 0)
		keep(self, sqlite3_bind_double(stmt, at, value));
}

void np_db_out_text(struct np_db_out *self, struct sqlite3_stmt *stmt, int at, const char *text,
                    size_t len)
{
	if (self->code == 0)
		keep(self, sqlite3_bind_text64(stmt, at, text, len, SQLITE_TRANSIENT, SQLITE_UTF8));
}

void np_db_out_step(struct np_db_out *self, struct sqlite3_stmt *stmt)
{
	if (self->code != 0)
		return;
	keep(self, sqlite3_step(stmt));
	keep(self, sqlite3_reset(stmt));
}

void np_db_out_row(struct np_db_out *self, struct sqlite3_stmt *stmt, const int64_t *values, int n)
{
	for (int i = 0; i < n; i++)
		np_db_out_int(self, stmt, i + 1, values[i]);
	np_db_out_step(self, stmt);
}

void np_db_out_done(struct np_db_out *self, struct sqlite3_stmt *stmt)
{
	(void)self;
	(void)sqlite3_finalize(stmt);
}

enum np_status np_synth_write_dbs(const struct np_synth_run *run, const char *dir,
                                  struct np_synth_stats *stats, struct np_err *err)
{
	NP_TRY(np_synth_write_profiler_db(run, dir, stats, err));
	return np_synth_has(run, NP_SYNTH_HOST_ONLY)
	               ? NP_OK
	               : np_synth_write_analysis_db(run, dir, stats, err);
}
