/*
 * What the writers share. Private to src/report/.
 *
 * A writer appends to `out` and looks at no result: `out->failed` says at the
 * end whether memory was enough. Each is linear in the report's size.
 */
#ifndef NP_REPORT_WRITE_H
#define NP_REPORT_WRITE_H

#include "report/writer.h"

void np_write_text(const struct np_report *report, const struct np_write_options *options,
                   struct np_buf *out);
void np_write_json(const struct np_report *report, struct np_buf *out);
void np_write_md(const struct np_report *report, const struct np_write_options *options,
                 struct np_buf *out);
/* E_LIMIT: not even the page without rows fits into options->max_bytes. */
enum np_status np_write_html(const struct np_report *report, const struct np_write_options *options,
                             struct np_buf *out, struct np_err *err);
/* E_NOTFOUND: no table `id` (which may be NULL). */
enum np_status np_write_csv(const struct np_report *report, const char *id, struct np_buf *out,
                            struct np_err *err);

/* Is this column set flush right, and never cut? (TEXT and BOOL are not.) */
bool np_column_is_number(const struct np_column *column);

/* Append the heading of a column for people: the name, and the unit in brackets
 * when neither the name nor the cells show it: "dur_ns" is "dur (us)". */
void np_column_heading(struct np_buf *out, const struct np_column *column);

enum { NP_CELL_CHARS = 64 };

/* A cell for people, into out[NP_CELL_CHARS] unless it is TEXT, of which it is a view. */
np_str np_cell_shown(const struct np_column *column, const struct np_cell *cell, char *out);

/* "12.3 %" and "1.5 MiB" in at most NP_CELL_CHARS bytes with the NUL. */
int np_format_percent(char *out, double share);
int np_format_bytes(char *out, int64_t bytes);

void np_write_i64(struct np_buf *out, int64_t value);
void np_write_blanks(struct np_buf *out, size_t n);
/* Remove the blanks at the end of out, but none before the offset `from`. */
void np_write_trim(struct np_buf *out, size_t from);

/* Append at most `width` columns of text, made safe, with … at the end when it is
 * cut. Returns the columns written. */
size_t np_text_cut(struct np_buf *out, np_str text, size_t width);

/*
 * Append text, made safe and broken at blanks (Chinese: between characters) to
 * lines of `width` columns (0: never). The first line goes on at `column`; the
 * others are indented. Words too long for a line stay whole, so that paths can
 * be copied. No blanks at the ends of lines.
 */
void np_text_wrap(struct np_buf *out, np_str text, size_t column, size_t indent, size_t width);

#endif
