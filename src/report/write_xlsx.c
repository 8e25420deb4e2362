#include "report/write_xlsx.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <xlsxwriter.h>

#include "base/fs.h"
#include "base/number.h"
#include "report/lang.h"
#include "report/write.h"
#include "report/xlsx.h"

enum {
	WIDTH_ROWS = 1000, /* the first rows tell how wide a column has to be */
	WIDTH_MIN = 8,
	WIDTH_MAX = 60,
	/* above, the rows go to temporary files, and texts are not shared */
	MANY_CELLS = 200000,
	CREATED = 315532800, /* 1980-01-01, as the parts of the file have it */
};

/* a spreadsheet has 15 digits, and a smaller range than doubles */
static const int64_t exact_limit = INT64_C(1000000000000000);
static const double greatest = 9.99999999999999e307;

struct book {
	lxw_workbook *workbook;
	lxw_format *percent, *merged, *title;
	struct np_xlsx_names names;
	struct np_buf text; /* of the cell at hand */
	uint64_t cells;
	lxw_error error; /* the first one; then nothing more is done */
};

/* One sheet of the file: some rows of a table. */
struct page {
	struct book *book;
	const struct np_xlsx_sheet *sheet;
	lxw_worksheet *worksheet;
	lxw_format *header;
	size_t first, n; /* rows of the table */
	lxw_row_t top;   /* row of the header */
};

static void keep_error(struct book *self, lxw_error error)
{
	if (self->error == LXW_NO_ERROR)
		self->error = error;
}

/* ── cells ── */

static void put_text(struct page *self, lxw_row_t row, size_t column, np_str text,
                     lxw_format *format)
{
	struct book *book = self->book;
	np_buf_clear(&book->text);
	np_xlsx_text(&book->text, text, NP_XLSX_TEXT_CHARS);
	if (book->text.failed)
		keep_error(book, LXW_ERROR_MEMORY_MALLOC_FAILED);
	if (book->error != LXW_NO_ERROR || book->text.len == 0)
		return;
	keep_error(book, worksheet_write_string(self->worksheet, row, (lxw_col_t)column,
	                                        book->text.ptr, format));
	book->cells++;
}

static void put_real(struct page *self, lxw_row_t row, size_t column, double value,
                     lxw_format *format)
{
	if (!(fabs(value) <= greatest)) {
		char text[NP_PYTHON_CHARS];
		(void)np_format_python(value, text);
		put_text(self, row, column, np_str_of(text), format);
		return;
	}
	keep_error(self->book,
	           worksheet_write_number(self->worksheet, row, (lxw_col_t)column, value, format));
	self->book->cells++;
}

static void put_int(struct page *self, lxw_row_t row, size_t column, int64_t value,
                    lxw_format *format)
{
	char text[32];
	if (value > -exact_limit && value < exact_limit) {
		put_real(self, row, column, (double)value, format);
		return;
	}
	(void)snprintf(text, sizeof text, "%" PRId64, value);
	put_text(self, row, column, np_str_of(text), format);
}

static np_str text_of(const struct page *self, const struct np_cell *cell)
{
	return self->sheet->translate && cell->word ? np_str_of(np_tr(cell->s.ptr)) : cell->s;
}

static void put_cell(struct page *self, lxw_row_t row, size_t column, const struct np_cell *cell,
                     lxw_format *format)
{
	if (cell->na)
		return;
	switch (self->sheet->table->columns[column].type) {
	case NP_COL_TEXT:
		put_text(self, row, column, text_of(self, cell), format);
		break;
	case NP_COL_REAL:
		put_real(self, row, column, cell->r, format);
		break;
	case NP_COL_PERCENT:
		put_real(self, row, column, cell->r, format ? format : self->book->percent);
		break;
	case NP_COL_BOOL:
		keep_error(self->book, worksheet_write_boolean(self->worksheet, row,
		                                               (lxw_col_t)column, cell->b, format));
		self->book->cells++;
		break;
	case NP_COL_INT:
	case NP_COL_DUR_NS:
	case NP_COL_TIME_NS:
	case NP_COL_BYTES:
		put_int(self, row, column, cell->i, format);
		break;
	}
}

/* ── merging ── */

static bool is_same(const struct np_table *table, size_t row, size_t other, size_t column)
{
	const struct np_cell *a = np_table_cell(table, row, column);
	const struct np_cell *b = np_table_cell(table, other, column);
	if (a->na || b->na)
		return false;
	switch (table->columns[column].type) {
	case NP_COL_TEXT:
		return a->s.len > 0 && np_str_eq(a->s, b->s);
	case NP_COL_REAL:
	case NP_COL_PERCENT:
		return a->r == b->r;
	case NP_COL_BOOL:
		return a->b == b->b;
	case NP_COL_INT:
	case NP_COL_DUR_NS:
	case NP_COL_TIME_NS:
	case NP_COL_BYTES:
		break;
	}
	return a->i == b->i;
}

/* Do all columns up to this one go on from the row before? */
static bool goes_on(const struct np_table *table, size_t row, size_t column)
{
	for (size_t c = 0; c <= column; c++)
		if (!is_same(table, row - 1, row, c))
			return false;
	return true;
}

/* The cells of the run are there already; all but the first become empty ones. */
static void merge_run(struct page *self, size_t column, size_t first, size_t end)
{
	if (end - first < 2 || self->book->error != LXW_NO_ERROR)
		return;
	const struct np_table *table = self->sheet->table;
	lxw_row_t row = self->top + 1 + (lxw_row_t)(first - self->first);
	keep_error(self->book, worksheet_merge_range(self->worksheet, row, (lxw_col_t)column,
	                                             row + (lxw_row_t)(end - first) - 1,
	                                             (lxw_col_t)column, "", self->book->merged));
	uint64_t cells = self->book->cells;
	put_cell(self, row, column, np_table_cell(table, first, column), self->book->merged);
	self->book->cells = cells;
}

static void merge_columns(struct page *self)
{
	const struct np_table *table = self->sheet->table;
	size_t end = self->first + self->n;
	size_t first = self->sheet->first_merged;
	for (size_t c = first; c - first < self->sheet->n_merged && c < table->n_columns; c++) {
		size_t start = self->first;
		for (size_t r = self->first + 1; r < end; r++)
			if (!goes_on(table, r, c)) {
				merge_run(self, c, start, r);
				start = r;
			}
		if (self->n > 0)
			merge_run(self, c, start, end);
	}
}

/* ── a sheet ── */

static np_str heading(const struct page *self, size_t column)
{
	const char *name = self->sheet->table->columns[column].name;
	const char *translated = self->sheet->translate ? np_tr_column(name) : NULL;
	return np_str_of(translated ? translated : name);
}

static size_t wider(size_t width, size_t than)
{
	return width > than ? width : than;
}

static void set_width(struct page *self, size_t column)
{
	const struct np_table *table = self->sheet->table;
	const struct np_column *type = &table->columns[column];
	size_t width = np_text_width(heading(self, column)) + 2; /* for the arrow of the filter */
	char shown[NP_CELL_CHARS] = "";
	for (size_t r = 0; r < self->n && r < WIDTH_ROWS && width < WIDTH_MAX; r++) {
		const struct np_cell *cell = np_table_cell(table, self->first + r, column);
		np_str text = {NULL, 0};
		if (!cell->na && type->type == NP_COL_TEXT)
			text = np_str_sub(text_of(self, cell), 0, (size_t)4 * WIDTH_MAX);
		else if (!cell->na && type->type != NP_COL_REAL && type->type != NP_COL_PERCENT &&
		         type->type != NP_COL_BOOL)
			text = (np_str){shown,
			                (size_t)snprintf(shown, sizeof shown, "%" PRId64, cell->i)};
		width = wider(width, np_text_width(text));
	}
	width = wider(width, type->type == NP_COL_REAL ? 12 : WIDTH_MIN);
	keep_error(self->book,
	           worksheet_set_column(self->worksheet, (lxw_col_t)column, (lxw_col_t)column,
	                                (double)(width < WIDTH_MAX ? width : WIDTH_MAX) + 1, NULL));
}

static lxw_format *header_format(struct book *book, const struct np_xlsx_sheet *sheet)
{
	lxw_format *format = workbook_add_format(book->workbook);
	if (!format) {
		keep_error(book, LXW_ERROR_MEMORY_MALLOC_FAILED);
		return NULL;
	}
	format_set_bold(format);
	if (sheet->header_fill)
		format_set_bg_color(format, sheet->header_fill);
	if (sheet->header_color)
		format_set_font_color(format, sheet->header_color);
	if (sheet->header_font)
		format_set_font_name(format, sheet->header_font);
	return format;
}

static void put_page(struct page *self, const char *name)
{
	const struct np_table *table = self->sheet->table;
	if (self->sheet->title)
		put_text(self, 0, 0, np_str_of(self->sheet->title), self->book->title);
	for (size_t c = 0; c < table->n_columns; c++) {
		set_width(self, c);
		put_text(self, self->top, c, heading(self, c), self->header);
	}
	for (size_t r = 0; r < self->n && self->book->error == LXW_NO_ERROR; r++)
		for (size_t c = 0; c < table->n_columns; c++)
			put_cell(self, self->top + 1 + (lxw_row_t)r, c,
			         np_table_cell(table, self->first + r, c), NULL);
	merge_columns(self);
	worksheet_freeze_panes(self->worksheet, self->top + 1, 0);
	/* a filter would tear merged cells apart */
	if (self->n > 0 && table->n_columns > 0 && self->sheet->n_merged == 0 &&
	    !np_xlsx_name_is_ambiguous(name))
		keep_error(self->book, worksheet_autofilter(self->worksheet, self->top, 0,
		                                            self->top + (lxw_row_t)self->n,
		                                            (lxw_col_t)(table->n_columns - 1)));
}

static void put_sheet(struct book *book, const struct np_xlsx_sheet *sheet)
{
	struct page page = {.book = book, .sheet = sheet, .top = sheet->title ? 1 : 0};
	size_t rows = np_table_rows(sheet->table), most = NP_XLSX_ROWS;
	if (sheet->max_rows > 2 && sheet->max_rows < most)
		most = sheet->max_rows;
	most -= page.top + 1;
	page.header = header_format(book, sheet);
	do {
		page.n = rows - page.first < most ? rows - page.first : most;
		const char *name =
			np_xlsx_name(&book->names, sheet->name ? sheet->name : sheet->table->id);
		page.worksheet = name ? workbook_add_worksheet(book->workbook, name) : NULL;
		if (!page.worksheet)
			keep_error(book, LXW_ERROR_MEMORY_MALLOC_FAILED);
		if (book->error != LXW_NO_ERROR)
			return;
		put_page(&page, name);
		page.first += page.n;
	} while (page.first < rows && book->error == LXW_NO_ERROR);
}

/* ── the workbook ── */

static bool open_book(struct book *self, const char *path, const struct np_xlsx_sheet *sheets,
                      size_t n_sheets)
{
	lxw_workbook_options options = {.use_zip64 = LXW_FALSE};
	size_t cells = 0;
	bool merges = false; /* which has to go back to rows before */
	for (size_t i = 0; i < n_sheets; i++) {
		cells += sheets[i].table->cells.n;
		merges |= sheets[i].n_merged > 0;
	}
	options.constant_memory = cells > MANY_CELLS && !merges;
	options.use_zip64 = cells > (size_t)50 * 1000 * 1000;
	*self = (struct book){.workbook = workbook_new_opt(path, &options)};
	if (!self->workbook)
		return false;
	self->percent = workbook_add_format(self->workbook);
	self->merged = workbook_add_format(self->workbook);
	self->title = workbook_add_format(self->workbook);
	if (!self->percent || !self->merged || !self->title) {
		keep_error(self, LXW_ERROR_MEMORY_MALLOC_FAILED);
		return true;
	}
	format_set_num_format(self->percent, "0.0%");
	format_set_align(self->merged, LXW_ALIGN_VERTICAL_CENTER);
	format_set_bold(self->title);
	format_set_font_size(self->title, 14);
	lxw_doc_properties properties = {.created = CREATED};
	keep_error(self, workbook_set_properties(self->workbook, &properties));
	return true;
}

static enum np_status explain(lxw_error error, const char *path, struct np_err *err)
{
	if (error == LXW_ERROR_MEMORY_MALLOC_FAILED)
		return np_err_nomem(err);
	return np_err_set(err, NP_E_IO, path, "cannot write the workbook: %s", lxw_strerror(error));
}

static enum np_status write_book(const struct np_outfile *out, const struct np_xlsx_sheet *sheets,
                                 size_t n_sheets, struct np_err *err)
{
	struct book book;
	if (!open_book(&book, out->temp, sheets, n_sheets))
		return np_err_nomem(err);
	for (size_t i = 0; i < n_sheets && book.error == LXW_NO_ERROR; i++)
		put_sheet(&book, &sheets[i]);
	uint64_t strings = book.workbook->sst ? book.workbook->sst->unique_count : 0;
	if (book.error == LXW_NO_ERROR)
		keep_error(&book, workbook_close(book.workbook));
	else
		lxw_workbook_free(book.workbook);
	np_buf_release(&book.text);
	np_xlsx_names_release(&book.names);
	if (book.error != LXW_NO_ERROR)
		return explain(book.error, out->path, err);
	return np_xlsx_verify(out->temp, out->path, book.cells, strings, err);
}

enum np_status np_xlsx_write(const char *path, const struct np_xlsx_sheet *sheets, size_t n_sheets,
                             struct np_err *err)
{
	struct np_outfile out;
	struct np_file_stat st;
	if (n_sheets == 0)
		return np_err_set(err, NP_E_EMPTY, path, "a workbook needs a sheet");
	for (size_t i = 0; i < n_sheets; i++)
		if (sheets[i].table->n_columns > NP_XLSX_COLUMNS)
			return np_err_set(err, NP_E_LIMIT, path,
			                  "a sheet has at most %d columns, %s needs %zu",
			                  (int)NP_XLSX_COLUMNS, sheets[i].table->id,
			                  sheets[i].table->n_columns);
	NP_TRY(np_file_stat(path, true, &st, err));
	if (st.kind == NP_FILE_DIR || st.kind == NP_FILE_OTHER)
		return np_err_set(err, NP_E_EXISTS, path,
		                  "not a regular file, a workbook cannot be written there");
	NP_TRY(np_outfile_begin(&out, path, err));
	enum np_status status = write_book(&out, sheets, n_sheets, err);
	if (status == NP_OK)
		return np_outfile_commit(&out, err);
	np_outfile_abort(&out);
	return status;
}
