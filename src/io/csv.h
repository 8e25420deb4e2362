/*
 * CSV as the exporters write it, read at memory speed.
 *
 *   bytes ─▶ 64-byte blocks ─▶ bit masks (separators outside quotes) ─▶ rows
 *
 * The header is read first and columns are looked up by name. A row is then an
 * array of raw fields (views), typed only when somebody asks. Accepted: a UTF-8
 * byte order mark, LF and CRLF, quoted fields with commas, line breaks and
 * doubled quotes, tabs and blanks around values. Rows with too few or too many
 * fields are counted and given with the flag set: missing fields are empty,
 * surplus ones dropped. A quote that never closes is counted too; the reader
 * goes on at the next line behind the row's start.
 *
 * Threads: a reader belongs to one thread at a time; np_csv_split() gives
 * chunks for several.
 */
#ifndef NP_IO_CSV_H
#define NP_IO_CSV_H

#include "base/mem.h"
#include "base/time.h"
#include "io/input.h"

enum {
	NP_CSV_MAX_COLUMNS = 4096,
	NP_CSV_MAX_ROW_BYTES = 64 << 20,
	NP_CSV_MAX_HEADER_BYTES = 1 << 20
};

struct np_csv_health {
	uint64_t rows;          /* data rows given, blank lines don't count */
	uint64_t short_rows;    /* with fewer fields than the header */
	uint64_t long_rows;     /* with more */
	uint64_t open_quotes;   /* quotes that never close */
	uint64_t nul_bytes;     /* rows with a NUL byte in them */
	uint64_t first_bad_row; /* the first such row, 1 = the first behind the header; 0 none */
	bool no_final_newline;  /* the last row does not end in a line break */
};

struct np_csv;

/*
 * Open and read the header. `input` is borrowed. Errors: E_EMPTY (no header at
 * all), E_LIMIT (header or columns beyond the caps), those of the input.
 */
enum np_status np_csv_open(struct np_input *input, struct np_csv **out, struct np_err *err);
void np_csv_close(struct np_csv *self);

size_t np_csv_n_columns(const struct np_csv *self);
/* Trimmed and unquoted; duplicates are kept. */
np_str np_csv_column_name(const struct np_csv *self, size_t column);

/* Column with this exact name, the first if several; -1 when there is none. */
int np_csv_find(const struct np_csv *self, const char *name);
/* First of the NULL-terminated alternatives that is there (R106). */
int np_csv_find_any(const struct np_csv *self, const char *const *names);

/*
 * Only the first `n` columns are wanted: the fields behind them are given empty,
 * which saves their time. Rows are counted and checked all the same.
 */
void np_csv_want(struct np_csv *self, size_t n);

struct np_csv_row {
	const np_str *fields; /* np_csv_n_columns() of them, raw: quotes still on */
	uint64_t number;      /* 1 for the first row behind the header */
	uint64_t offset;      /* of its first byte */
	bool ragged;          /* had too few or too many fields, or an open quote */
};

/* *got is false at the end. Views are valid until the next call (for mapped and
 * memory inputs: as long as the input). Errors: those of the input, E_LIMIT. */
enum np_status np_csv_next(struct np_csv *self, struct np_csv_row *row, bool *got,
                           struct np_err *err);

const struct np_csv_health *np_csv_health(const struct np_csv *self);

/*
 * A field's text: surrounding quotes removed, doubled ones halved (into
 * `scratch`, cleared first, when needed), blanks, tabs and CR trimmed.
 */
np_str np_csv_text(np_str raw, struct np_buf *scratch);

/* Numbers in raw fields, quoted or not; see np_num in base/time.h for NA. */
enum np_num np_csv_us_to_ns(np_str raw, int64_t *ns);
enum np_num np_csv_double(np_str raw, double *out);
enum np_num np_csv_i64(np_str raw, int64_t *out);

/*
 * Cut the data rows of a mapped or memory input into at most `n` chunks at row
 * borders, exactly: quotes are counted from the start. chunks[i] is a view of
 * whole rows in order, *offsets[i] its content offset. Returns how many.
 */
size_t np_csv_split(const struct np_csv *self, size_t n, np_str *chunks, uint64_t *offsets);

/* A reader over one chunk with the header of `header`; row numbers count from 1
 * in each chunk. `input` is the chunk as a memory input, borrowed. */
enum np_status np_csv_open_chunk(const struct np_csv *header, struct np_input *input,
                                 struct np_csv **out, struct np_err *err);

/* ── writing ── */

/* Append one field, quoted when it must be. Text that a spreadsheet would run as a
 * formula (it starts with = + - @ TAB CR, and is not a number) gets a ' in front. */
void np_csv_write_text(struct np_buf *out, np_str text);

#endif
