/*
 * A small deliverable: a CSV file opened by path, its columns by name.
 *
 * Threads: belongs to one thread at a time.
 */
#ifndef NP_CAPTURE_CSV_TABLE_H
#define NP_CAPTURE_CSV_TABLE_H

#include "io/csv.h"
#include "profile/profile.h"

enum { NP_CSV_TABLE_ALTERNATIVES = 3, NP_CSV_TABLE_MAX_COLUMNS = 16 };

/* The names that a column has had, newest first; unused ones NULL. */
struct np_csv_column {
	const char *names[NP_CSV_TABLE_ALTERNATIVES + 1];
};

struct np_csv_table {
	struct np_profile *profile;
	const char *path;
	struct np_input *input;
	struct np_csv *csv;
	struct np_csv_row row;
	int columns[NP_CSV_TABLE_MAX_COLUMNS]; /* place of each wanted column, -1: not there */
	struct np_buf scratch;
	uint64_t bad_time, bad_number;
};

/* Errors of np_input_open() and np_csv_open(). Close it in every case. */
enum np_status np_csv_table_open(struct np_csv_table *self, struct np_profile *profile,
                                 const char *path, struct np_err *err);

/* Tells what was odd about the file. */
void np_csv_table_close(struct np_csv_table *self);

/* Look up wanted[0…n-1], n <= NP_CSV_TABLE_MAX_COLUMNS: fills columns. */
void np_csv_table_columns(struct np_csv_table *self, const struct np_csv_column *wanted, size_t n);

enum np_status np_csv_table_next(struct np_csv_table *self, bool *got, struct np_err *err);

/* Fields of the current row, by index in `wanted`; absent when the column is. */
np_str np_csv_table_text(struct np_csv_table *self, size_t i);
double np_csv_table_double(struct np_csv_table *self, size_t i); /* NaN */
int64_t np_csv_table_i64(struct np_csv_table *self, size_t i);   /* NP_NO_I64 */
uint32_t np_csv_table_u32(struct np_csv_table *self, size_t i);  /* NP_NO_U32 */
np_ns np_csv_table_time(struct np_csv_table *self, size_t i);    /* us → ns; NP_NO_I64 */

/* The string id of a field, NP_ID_NONE when blank or N/A. false: out of memory. */
bool np_csv_table_intern(struct np_csv_table *self, size_t i, uint32_t *id);

/* "NPU:3" → 3; NP_NO_U32 otherwise. */
uint32_t np_npu_number(np_str text);

#endif
