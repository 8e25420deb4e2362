/*
 * A database being written: one transaction, no journal, rows of integers.
 *
 * The first failure is kept and every later call does nothing; np_db_out_close()
 * tells it. Tables are made from a list of {name, columns}; a statement counts
 * its own parameters.
 */
#ifndef NP_SYNTH_DB_OUT_H
#define NP_SYNTH_DB_OUT_H

#include "synth/write.h"

struct sqlite3;
struct sqlite3_stmt;

struct np_db_out {
	struct sqlite3 *db;
	int code; /* first SQLite error, 0 while there is none */
	char path[NP_SYNTH_PATH];
};

struct np_db_table {
	const char *name, *columns; /* "a INTEGER,b TEXT" */
};

/* Stands for NULL in a row of integers. */
#define NP_DB_NULL INT64_MIN

/* A new file; one that is there is removed. Errors: E_LIMIT, E_IO. */
enum np_status np_db_out_open(struct np_db_out *self, const char *dir, const char *name,
                              struct np_err *err);
/* Commit and close; counts the file. Errors: E_IO, E_NOMEM. */
enum np_status np_db_out_close(struct np_db_out *self, struct np_synth_stats *stats,
                               struct np_err *err);

void np_db_out_exec(struct np_db_out *self, const char *sql);
void np_db_out_table(struct np_db_out *self, const struct np_db_table *table);

/* An insert with n values; NULL after a failure, and the others take that. */
struct sqlite3_stmt *np_db_out_insert(struct np_db_out *self, const char *table, int n);
void np_db_out_row(struct np_db_out *self, struct sqlite3_stmt *stmt, const int64_t *values, int n);
/* The same in pieces: bind, then step. `at` counts from 1. */
void np_db_out_int(struct np_db_out *self, struct sqlite3_stmt *stmt, int at, int64_t value);
void np_db_out_real(struct np_db_out *self, struct sqlite3_stmt *stmt, int at, double value);
void np_db_out_text(struct np_db_out *self, struct sqlite3_stmt *stmt, int at, const char *text,
                    size_t len);
void np_db_out_step(struct np_db_out *self, struct sqlite3_stmt *stmt);
void np_db_out_done(struct np_db_out *self, struct sqlite3_stmt *stmt);

/* The two files (write_db.c, write_analysis.c). */
enum np_status np_synth_write_profiler_db(const struct np_synth_run *run, const char *dir,
                                          struct np_synth_stats *stats, struct np_err *err);
enum np_status np_synth_write_analysis_db(const struct np_synth_run *run, const char *dir,
                                          struct np_synth_stats *stats, struct np_err *err);

#endif
