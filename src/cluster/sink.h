/*
 * Where the rows of a table go that is too large to be built first: a table of the
 * report, a table of the database, or a csv file, one row after the other.
 *
 *   np_sink_report() │ np_sink_db() │ np_sink_csv() ─▶ np_sink_row() … ─▶ np_sink_end()
 *
 * Errors stick: the first is kept, the rest of the rows is ignored, np_sink_end() gives it
 * and releases everything.
 */
#ifndef NP_CLUSTER_SINK_H
#define NP_CLUSTER_SINK_H

#include "cluster/export.h"

/* A text file as it grows; it appears with np_stream_end() only. */
struct np_stream {
	struct np_outfile file;
	struct np_buf text; /* to append to; emptied by np_stream_flush() */
	bool open;
};

enum np_status np_stream_begin(struct np_stream *self, const char *path, struct np_err *err);
/* Write what has come together, when it is worth it. */
void np_stream_flush(struct np_stream *self);
/* Write this behind it. */
void np_stream_write(struct np_stream *self, np_str text);
/* `status` NP_OK: write the rest and commit; else abort and give it back. */
enum np_status np_stream_end(struct np_stream *self, enum np_status status, struct np_err *err);

struct np_sink {
	enum { NP_SINK_REPORT, NP_SINK_DB, NP_SINK_CSV } kind;
	struct np_table *table; /* of the report; else without rows */
	struct np_table shape;
	struct np_db_rows *rows;
	struct np_stream stream;
	const struct np_recipe_file *file;
	enum np_status status;
	struct np_err *err;
};

void np_sink_report(struct np_sink *self, struct np_table *table, struct np_err *err);
/* `file`: its table names the SQL table; its csv the file. */
void np_sink_db(struct np_sink *self, struct np_db_file *db, const struct np_recipe_file *file,
                const struct np_column *columns, size_t n_columns, struct np_err *err);
void np_sink_csv(struct np_sink *self, const char *path, const struct np_recipe_file *file,
                 const struct np_column *columns, size_t n_columns, struct np_err *err);

/* As many cells as columns: INT, REAL, TEXT only. Texts must live until np_sink_row() returns. */
void np_sink_row(struct np_sink *self, const struct np_cell *cells);
enum np_status np_sink_end(struct np_sink *self);

/* Cells. */
static inline struct np_cell np_sink_int(int64_t value)
{
	return (struct np_cell){.i = value};
}

static inline struct np_cell np_sink_text(np_str text)
{
	return (struct np_cell){.s = text};
}

struct np_cell np_sink_real(double value); /* NaN: not available */

#endif
