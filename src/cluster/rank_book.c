#include "cluster/rank_book.h"

#include <stdio.h>

#include "report/write_xlsx.h"

enum { HEADER_FILL = 0xAFEEEE };

static void copy_cell(const struct np_cell *cell, enum np_col_type type, struct np_table *to)
{
	if (cell->na)
		np_cell_na(to);
	else if (type == NP_COL_TEXT)
		np_cell_text(to, cell->s);
	else if (type == NP_COL_REAL || type == NP_COL_PERCENT)
		np_cell_real(to, cell->r);
	else if (type == NP_COL_BOOL)
		np_cell_bool(to, cell->b);
	else
		np_cell_int(to, cell->i);
}

void np_export_copy_cells(const struct np_table *from, size_t row, size_t column,
                          struct np_table *to)
{
	for (size_t c = column; c < from->n_columns; c++)
		copy_cell(np_table_cell(from, row, c), from->columns[c].type, to);
}

static void copy_row(const struct np_table *from, size_t row, const struct np_rank_book *book,
                     struct np_table *to)
{
	for (size_t c = 0; c < from->n_columns; c++)
		if (c != book->rank_column || book->with_rank)
			copy_cell(np_table_cell(from, row, c), from->columns[c].type, to);
}

static enum np_status write_rank(struct np_export *self, const struct np_recipe *recipe,
                                 const struct np_rank_book *book, const struct np_table *rows,
                                 int64_t rank, struct np_err *err)
{
	char name[64];
	(void)snprintf(name, sizeof name, "%s%lld.xlsx", book->file, (long long)rank);
	const char *path = np_export_path(self, recipe->dir, name, err);
	if (!path)
		return err ? err->code : NP_E_IO;
	struct np_xlsx_sheet sheet = {.name = "Sheet1",
	                              .table = rows,
	                              .first_merged = book->first_merged,
	                              .n_merged = book->n_merged,
	                              .header_fill = HEADER_FILL};
	return np_xlsx_write(path, &sheet, 1, err);
}

/* The rows of a rank stand together. */
enum np_status np_export_rank_books(struct np_export *self, const struct np_recipe *recipe,
                                    const struct np_rank_book *book, struct np_err *err)
{
	const struct np_table *table = np_export_table(self->cluster, book->table);
	size_t n = table ? np_table_rows(table) : 0;
	enum np_status status = NP_OK;
	for (size_t row = 0; status == NP_OK && row < n;) {
		int64_t rank = np_table_cell(table, row, book->rank_column)->i;
		struct np_report *report = np_report_new("");
		if (!report)
			return np_err_nomem(err);
		struct np_table *rows =
			np_report_table(report, "Sheet1", "", book->columns, book->n_columns);
		for (; row < n && np_table_cell(table, row, book->rank_column)->i == rank; row++)
			copy_row(table, row, book, rows);
		status = np_report_ok(report, err);
		if (status == NP_OK)
			status = write_rank(self, recipe, book, rows, rank, err);
		np_report_free(report);
	}
	return status;
}
