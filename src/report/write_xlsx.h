/*
 * Tables of a report as a workbook (.xlsx), one sheet each, for people who go on
 * in a spreadsheet: header row that stays in sight, filters, fitting widths.
 *
 * Numbers are numbers, as in JSON: durations and times in ns, shares as 0…1 shown
 * in percent. Integers of more than 15 digits are text, since a spreadsheet would
 * round them; so is what is beyond its range ("inf", "1e+308"). Real numbers have
 * the 16 digits that libxlsxwriter writes.
 * Texts are always texts, never a formula or a link. What XML cannot carry is
 * written as on a terminal ("\x1b"); more than 32,767 characters are cut, with "…".
 * What is not available is an empty cell.
 *
 * A table of more rows than a sheet has goes on in further sheets. Equal tables
 * give equal bytes (of one version of libxlsxwriter).
 */
#ifndef NP_REPORT_WRITE_XLSX_H
#define NP_REPORT_WRITE_XLSX_H

#include "report/report.h"

enum {
	NP_XLSX_ROWS = 1048576, /* of a sheet, headings included */
	NP_XLSX_COLUMNS = 16384,
	NP_XLSX_NAME_CHARS = 31,    /* UTF-16 units of a sheet's name */
	NP_XLSX_TEXT_CHARS = 32767, /* and of a cell */
};

struct np_xlsx_sheet {
	/* What a sheet may not be called is altered: []:*?/\' and control characters to
	 * '_', more than 31 characters cut, the second of one name (letters without
	 * case) gets "~2". */
	const char *name;
	const struct np_table *table;
	const char *title;       /* a row above the header; or NULL */
	size_t first_merged;     /* columns before it are not merged */
	size_t n_merged;         /* in so many columns from there, equal cells below each other are
	                              * one cell, within that of the column before */
	unsigned header_fill;    /* 0xRRGGBB; 0: none */
	unsigned header_color;   /* of the text; 0: black */
	const char *header_font; /* or NULL: as the cells */
	bool translate;          /* headings and words of npuprof in the reader's language */
	size_t max_rows;         /* per sheet, to test the splitting; 0: NP_XLSX_ROWS */
};

/*
 * Write the workbook beside `path`, look whether all of it is there, and rename it.
 * Errors: E_EMPTY (no sheets), E_LIMIT (columns), E_EXISTS (a directory or a device
 * there), E_ACCESS, E_NOTFOUND, E_IO, E_NOMEM; what was there then stays.
 */
enum np_status np_xlsx_write(const char *path, const struct np_xlsx_sheet *sheets, size_t n_sheets,
                             struct np_err *err);

#endif
