#include "cluster/sink.h"

#include <math.h>
#include <stdio.h>

enum { FLUSH_BYTES = 1 << 20 };

/* ── a text file ── */

enum np_status np_stream_begin(struct np_stream *self, const char *path, struct np_err *err)
{
	*self = (struct np_stream){.open = false};
	self->text.max_bytes = (size_t)1 << 30;
	NP_TRY(np_outfile_begin(&self->file, path, err));
	/* made again from the captures in less time than a disk needs to sync gigabytes */
	self->file.hasty = true;
	self->open = true;
	return NP_OK;
}

static void write_out(struct np_stream *self)
{
	/* a write that fails is found by the commit */
	(void)fwrite(self->text.ptr, 1, self->text.len, self->file.file);
	self->text.len = 0;
}

void np_stream_flush(struct np_stream *self)
{
	if (self->text.len >= FLUSH_BYTES)
		write_out(self);
}

void np_stream_write(struct np_stream *self, np_str text)
{
	if (self->text.len > 0)
		write_out(self);
	if (text.len > 0)
		(void)fwrite(text.ptr, 1, text.len, self->file.file);
}

enum np_status np_stream_end(struct np_stream *self, enum np_status status, struct np_err *err)
{
	if (!self->open)
		return status;
	if (status == NP_OK && self->text.failed)
		status = np_err_nomem(err);
	if (status == NP_OK) {
		if (self->text.len > 0)
			write_out(self);
		status = np_outfile_commit(&self->file, err);
	} else {
		np_outfile_abort(&self->file);
	}
	np_buf_release(&self->text);
	self->open = false;
	return status;
}

/* ── rows ── */

void np_sink_report(struct np_sink *self, struct np_table *table, struct np_err *err)
{
	*self = (struct np_sink){.kind = NP_SINK_REPORT, .table = table, .err = err};
}

void np_sink_db(struct np_sink *self, struct np_db_file *db, const struct np_recipe_file *file,
                const struct np_column *columns, size_t n_columns, struct np_err *err)
{
	*self = (struct np_sink){
		.kind = NP_SINK_DB,
		.shape = {.id = file->table, .columns = columns, .n_columns = n_columns},
		.file = file,
		.err = err};
	struct np_db_form form = {.n_index_columns = file->n_index, .types = file->types};
	self->table = &self->shape;
	self->status = np_db_rows_begin(db, self->table, &form, &self->rows, err);
}

void np_sink_csv(struct np_sink *self, const char *path, const struct np_recipe_file *file,
                 const struct np_column *columns, size_t n_columns, struct np_err *err)
{
	*self = (struct np_sink){
		.kind = NP_SINK_CSV,
		.shape = {.id = file->table, .columns = columns, .n_columns = n_columns},
		.file = file,
		.err = err};
	self->table = &self->shape;
	self->status = np_stream_begin(&self->stream, path, err);
	if (self->status == NP_OK)
		np_export_csv_head(self->table, file, &self->stream.text);
}

struct np_cell np_sink_real(double value)
{
	struct np_cell cell = {.na = isnan(value)};
	if (!cell.na)
		cell.r = value;
	return cell;
}

static void report_row(struct np_table *table, const struct np_cell *cells)
{
	for (size_t c = 0; c < table->n_columns; c++) {
		if (cells[c].na)
			np_cell_na(table);
		else if (table->columns[c].type == NP_COL_TEXT)
			np_cell_text(table, cells[c].s);
		else if (table->columns[c].type == NP_COL_REAL)
			np_cell_real(table, cells[c].r);
		else
			np_cell_int(table, cells[c].i);
	}
}

void np_sink_row(struct np_sink *self, const struct np_cell *cells)
{
	if (self->status != NP_OK)
		return;
	switch (self->kind) {
	case NP_SINK_REPORT:
		report_row(self->table, cells);
		break;
	case NP_SINK_DB:
		self->status = np_db_rows_put(self->rows, cells, self->err);
		break;
	case NP_SINK_CSV:
		np_export_csv_row(self->table, self->file, cells, &self->stream.text);
		np_stream_flush(&self->stream);
		break;
	}
}

enum np_status np_sink_end(struct np_sink *self)
{
	if (self->rows) {
		bool had = self->status != NP_OK;
		enum np_status ended = np_db_rows_end(self->rows, had ? NULL : self->err);
		self->status = had ? self->status : ended;
		self->rows = NULL;
	}
	self->status = np_stream_end(&self->stream, self->status, self->err);
	return self->status;
}
