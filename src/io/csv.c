#include "io/csv.h"

#include <string.h>

#include "io/csv_scan.h"

/*
 * Rows are found in steps of INDEX_STEP bytes, small enough that the bytes are
 * still in the first caches when the fields are read:
 *
 *    window   ....[row starts][row][row][row][part]..............
 *                 ^base                      ^row  ^scanned
 *    seps     , , ⏎ , , ⏎ , , ⏎ ,
 *             ^sep_i (first of the next row)   relative to base
 *    rows         2     5     8
 *
 * When all whole rows are given, what is left of `seps` moves to the front,
 * base becomes the start of the row that is being collected, and the next step
 * is indexed behind it. Of a part with more separators than columns only the
 * first n_columns are kept, which are enough to know that the row is too long; so
 * `seps` has a fixed size.
 */
enum { INDEX_STEP = 64 << 10 };

struct np_csv {
	struct np_input *input;
	struct np_arena arena; /* column names */
	np_str *names;
	size_t n_columns;
	size_t n_wanted; /* fields behind these are not made */
	np_str *fields;
	uint64_t data_start; /* bytes in front of the first row, from the input's begin */
	enum np_simd simd;

	struct np_window window;
	size_t base, row, scanned; /* offsets in the window */
	struct np_csv_scan scan;
	struct np_csv_marks marks;
	size_t sep_i, row_i;
	bool maybe_nul;    /* a NUL byte is somewhere in the indexed bytes */
	bool open_quote;   /* the row to be given next was cut off at its line's end */
	bool unterminated; /* the last row in `marks` ends where the input ends */

	enum np_status failed; /* the input's end was an error: it stays one */
	struct np_err error;
	struct np_csv_health health;
};

/* ── header ── */

static bool is_blank(const char *p, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (p[i] != ' ' && p[i] != '\t' && p[i] != '\r')
			return false;
	return true;
}

/* The first line break outside quotes; len when there is none. */
static size_t line_end(const char *p, size_t len, bool *inside)
{
	*inside = false;
	for (size_t i = 0; i < len; i++) {
		if (p[i] == '"')
			*inside = !*inside;
		else if (p[i] == '\n' && !*inside)
			return i;
	}
	return len;
}

static enum np_status header_limit(const struct np_csv *self, struct np_err *err)
{
	return np_err_set(err, NP_E_LIMIT, np_input_name(self->input),
	                  "no header line within %d bytes; is this a CSV file?",
	                  NP_CSV_MAX_HEADER_BYTES);
}

/* Look at the line at window[pos]. *found says whether *header is it; else more of
 * the window is needed. */
static enum np_status header_in_window(struct np_csv *self, size_t pos, np_str *header, bool *found,
                                       struct np_err *err)
{
	const char *p = self->window.ptr + pos;
	size_t left = self->window.len - pos;
	size_t len = left > NP_CSV_MAX_HEADER_BYTES ? NP_CSV_MAX_HEADER_BYTES : left;
	bool inside = false, more_to_come = !self->window.eof && left <= NP_CSV_MAX_HEADER_BYTES;
	size_t end = line_end(p, len, &inside);
	*found = false;
	if (end == len && more_to_come)
		return NP_OK;
	if (end == len && inside) {
		/* as for rows: a quote that never closes ends with its line */
		const char *newline = memchr(p, '\n', len);
		self->health.open_quotes++;
		end = newline ? (size_t)(newline - p) : len;
	}
	if (end == len && len < left)
		return header_limit(self, err);
	*header = (np_str){p, end};
	*found = true;
	return NP_OK;
}

/* The first line that is not blank; the window then starts at or before it, and
 * self->row is behind it. */
static enum np_status find_header(struct np_csv *self, np_str *header, struct np_err *err)
{
	size_t pos = 0;
	NP_TRY(np_input_next(self->input, 0, &self->window, err));
	uint64_t begin = self->window.offset;
	while (self->window.len < 3 && !self->window.eof)
		NP_TRY(np_input_next(self->input, 0, &self->window, err));
	if (self->window.len >= 3 && memcmp(self->window.ptr, "\xef\xbb\xbf", 3) == 0)
		pos = 3;
	for (;;) {
		bool found = false;
		NP_TRY(header_in_window(self, pos, header, &found, err));
		if (!found) {
			NP_TRY(np_input_next(self->input, pos, &self->window, err));
			pos = 0;
			continue;
		}
		size_t end = pos + header->len;
		self->row = end < self->window.len ? end + 1 : end;
		self->data_start = self->window.offset - begin + self->row;
		if (!is_blank(header->ptr, header->len))
			return NP_OK;
		if (end == self->window.len && self->window.eof)
			return np_err_set(err, NP_E_EMPTY, np_input_name(self->input),
			                  "the file is empty: there is no header");
		pos = self->row;
	}
}

static size_t field_end(np_str line, size_t start)
{
	bool inside = false;
	size_t i = start;
	for (; i < line.len && (inside || line.ptr[i] != ','); i++)
		if (line.ptr[i] == '"')
			inside = !inside;
	return i;
}

static enum np_status name_columns(struct np_csv *self, np_str line, struct np_err *err)
{
	size_t n = 0;
	for (size_t at = 0; at <= line.len; at = field_end(line, at) + 1)
		n++;
	if (n > NP_CSV_MAX_COLUMNS)
		return np_err_set(err, NP_E_LIMIT, np_input_name(self->input),
		                  "%zu columns, more than %d", n, NP_CSV_MAX_COLUMNS);
	self->names = np_arena_alloc(&self->arena, n * sizeof *self->names);
	if (!self->names)
		return np_err_nomem(err);
	struct np_buf scratch = {0};
	bool ok = true;
	for (size_t at = 0; at <= line.len && ok; self->n_columns++) {
		size_t end = field_end(line, at);
		np_str name = np_csv_text((np_str){line.ptr + at, end - at}, &scratch);
		self->names[self->n_columns] = np_arena_dup(&self->arena, name);
		ok = !scratch.failed && self->names[self->n_columns].ptr;
		at = end + 1;
	}
	np_buf_release(&scratch);
	return ok ? NP_OK : np_err_nomem(err);
}

/* ── life ── */

static struct np_csv *reader_new(struct np_input *input, struct np_err *err)
{
	struct np_csv *self = np_calloc(1, sizeof *self);
	if (!self) {
		(void)np_err_nomem(err);
		return NULL;
	}
	self->input = input;
	self->simd = np_simd_level();
	np_arena_init(&self->arena);
	return self;
}

/* What depends on the number of columns. */
static enum np_status reader_prepare(struct np_csv *self, struct np_err *err)
{
	size_t room = self->n_columns + NP_CSV_SCAN_ROOM(INDEX_STEP);
	self->fields = np_calloc(self->n_columns, sizeof *self->fields);
	self->marks.seps = np_alloc(room * sizeof *self->marks.seps);
	self->marks.rows = np_alloc(room * sizeof *self->marks.rows);
	if (!self->fields || !self->marks.seps || !self->marks.rows)
		return np_err_nomem(err);
	self->base = self->scanned = self->row;
	self->n_wanted = self->n_columns;
	return NP_OK;
}

enum np_status np_csv_open(struct np_input *input, struct np_csv **out, struct np_err *err)
{
	*out = NULL;
	struct np_csv *self = reader_new(input, err);
	if (!self)
		return NP_E_NOMEM;
	np_str header = {NULL, 0};
	enum np_status status = find_header(self, &header, err);
	if (status == NP_OK)
		status = name_columns(self, header, err);
	if (status == NP_OK)
		status = reader_prepare(self, err);
	if (status != NP_OK) {
		np_csv_close(self);
		return status;
	}
	*out = self;
	return NP_OK;
}

enum np_status np_csv_open_chunk(const struct np_csv *header, struct np_input *input,
                                 struct np_csv **out, struct np_err *err)
{
	*out = NULL;
	struct np_csv *self = reader_new(input, err);
	if (!self)
		return NP_E_NOMEM;
	bool ok = true;
	self->names = np_arena_alloc(&self->arena, header->n_columns * sizeof *self->names);
	for (size_t i = 0; self->names && i < header->n_columns && ok; i++) {
		self->names[i] = np_arena_dup(&self->arena, header->names[i]);
		ok = self->names[i].ptr != NULL;
	}
	self->n_columns = header->n_columns;
	enum np_status status = self->names && ok ? reader_prepare(self, err) : np_err_nomem(err);
	if (status != NP_OK) {
		np_csv_close(self);
		return status;
	}
	*out = self;
	return NP_OK;
}

void np_csv_close(struct np_csv *self)
{
	if (!self)
		return;
	np_free(self->marks.seps);
	np_free(self->marks.rows);
	np_free(self->fields);
	np_arena_release(&self->arena);
	np_free(self);
}

void np_csv_want(struct np_csv *self, size_t n)
{
	self->n_wanted = n < self->n_columns ? n : self->n_columns;
	for (size_t i = self->n_wanted; i < self->n_columns; i++)
		self->fields[i] = (np_str){NULL, 0};
}

size_t np_csv_n_columns(const struct np_csv *self)
{
	return self->n_columns;
}

np_str np_csv_column_name(const struct np_csv *self, size_t column)
{
	return column < self->n_columns ? self->names[column] : (np_str){NULL, 0};
}

int np_csv_find(const struct np_csv *self, const char *name)
{
	for (size_t i = 0; i < self->n_columns; i++)
		if (np_str_is(self->names[i], name))
			return (int)i;
	return -1;
}

int np_csv_find_any(const struct np_csv *self, const char *const *names)
{
	int found = -1;
	for (; *names && found < 0; names++)
		found = np_csv_find(self, *names);
	return found;
}

const struct np_csv_health *np_csv_health(const struct np_csv *self)
{
	return &self->health;
}

/* ── index ── */

/* Move the separators of the unfinished row to the front and make its start the base. */
static void compact(struct np_csv *self)
{
	struct np_csv_marks *marks = &self->marks;
	uint32_t shift = (uint32_t)(self->row - self->base);
	size_t left = marks->n_seps - self->sep_i;
	if (left > self->n_columns)
		left = self->n_columns;
	if (self->sep_i || shift)
		for (size_t i = 0; i < left; i++)
			marks->seps[i] = marks->seps[self->sep_i + i] - shift;
	marks->n_seps = left;
	marks->n_rows = 0;
	self->sep_i = self->row_i = 0;
	self->base = self->row;
}

static void index_step(struct np_csv *self, size_t len)
{
	self->scan.nul = false;
	np_csv_scan_index(self->simd, &self->scan, self->window.ptr + self->scanned, len,
	                  (uint32_t)(self->scanned - self->base), &self->marks);
	self->maybe_nul |= self->scan.nul;
	self->scanned += len;
}

/* The row ends at window[end] although no line break was seen there by the index. */
static void end_row_at(struct np_csv *self, size_t end)
{
	struct np_csv_marks *marks = &self->marks;
	marks->rows[marks->n_rows++] = (uint32_t)marks->n_seps;
	marks->seps[marks->n_seps++] = (uint32_t)(end - self->base);
	self->unterminated = end == self->window.len;
}

/* A quote that never closes: the row is its first line, and the next begins behind it. */
static enum np_status cut_row(struct np_csv *self, struct np_err *err)
{
	const char *start = self->window.ptr + self->row;
	size_t left = self->window.len - self->row;
	size_t most = left > NP_CSV_MAX_ROW_BYTES ? (size_t)NP_CSV_MAX_ROW_BYTES + 1 : left;
	const char *newline = memchr(start, '\n', most);
	if (!newline && left > NP_CSV_MAX_ROW_BYTES)
		return np_err_at(err, NP_E_LIMIT, np_input_name(self->input),
		                 self->window.offset + self->row, "no line break within %d MiB",
		                 NP_CSV_MAX_ROW_BYTES >> 20);
	size_t end = self->row + (newline ? (size_t)(newline - start) : left);
	self->marks.n_seps = 0;
	self->sep_i = 0;
	self->scanned = self->row;
	self->scan.inside = 0;
	compact(self);
	while (self->scanned < end) {
		index_step(self,
		           end - self->scanned < INDEX_STEP ? end - self->scanned : INDEX_STEP);
		compact(self);
	}
	end_row_at(self, end);
	self->scanned = newline ? end + 1 : end;
	self->scan.inside = 0;
	self->open_quote = true;
	return NP_OK;
}

/* Index on, until there is a whole row or the end (then there is none). */
static enum np_status refill(struct np_csv *self, struct np_err *err)
{
	if (self->maybe_nul) /* of the rows given, or also in the one that is begun? */
		self->maybe_nul = memchr(self->window.ptr + self->row, '\0',
		                         self->scanned - self->row) != NULL;
	compact(self);
	np_input_release_behind(self->input, self->window.offset + self->row);
	while (self->marks.n_rows == 0) {
		if (self->scanned - self->row > NP_CSV_MAX_ROW_BYTES)
			return cut_row(self, err);
		if (self->scanned < self->window.len) {
			size_t left = self->window.len - self->scanned;
			index_step(self, left < INDEX_STEP ? left : INDEX_STEP);
			if (self->marks.n_rows == 0)
				compact(self);
			continue;
		}
		if (self->window.eof) {
			if (self->row == self->window.len)
				return NP_OK;
			if (self->scan.inside)
				return cut_row(self, err);
			end_row_at(self, self->window.len);
			return NP_OK;
		}
		size_t consumed = self->row;
		NP_TRY(np_input_next(self->input, consumed, &self->window, err));
		self->scanned -= consumed;
		self->base = self->row = 0;
	}
	return NP_OK;
}

/* ── rows ── */

static void count_bad(struct np_csv *self, struct np_csv_row *row, size_t n_fields, size_t start,
                      size_t end)
{
	struct np_csv_health *health = &self->health;
	bool short_row = n_fields<self->n_columns, long_row = n_fields> self->n_columns;
	bool nul = self->maybe_nul && end > start &&
	           memchr(self->window.ptr + start, '\0', end - start);
	health->short_rows += short_row;
	health->long_rows += long_row;
	health->open_quotes += self->open_quote;
	health->nul_bytes += nul;
	row->ragged = short_row || long_row || self->open_quote;
	if ((row->ragged || nul) && !health->first_bad_row)
		health->first_bad_row = row->number;
}

/* Make the views; `n` of them are there, the last one without its CR. */
static void fill_fields(struct np_csv *self, size_t n)
{
	const char *base = self->window.ptr + self->base;
	const uint32_t *seps = self->marks.seps + self->sep_i;
	np_str *fields = self->fields;
	size_t from = self->row - self->base;
	for (size_t i = 0; i < n; i++) {
		size_t to = seps[i];
		fields[i] = (np_str){base + from, to - from};
		from = to + 1;
	}
	for (size_t i = n; i < self->n_wanted; i++)
		fields[i] = (np_str){NULL, 0};
}

/* Step over the next indexed row; false: it is a blank line. */
static bool take_row(struct np_csv *self, struct np_csv_row *row)
{
	size_t last = self->marks.rows[self->row_i];
	size_t start = self->row, end = self->base + self->marks.seps[last];
	size_t n_fields = last - self->sep_i + 1;
	bool at_end = self->unterminated && self->row_i + 1 == self->marks.n_rows;
	if (end > start && self->window.ptr[end - 1] == '\r')
		self->marks.seps[last]--;
	bool blank = n_fields == 1 && is_blank(self->window.ptr + start, end - start);
	if (!blank) {
		fill_fields(self, n_fields < self->n_wanted ? n_fields : self->n_wanted);
		row->fields = self->fields;
		row->number = ++self->health.rows;
		row->offset = self->window.offset + start;
		row->ragged = false;
		if (n_fields != self->n_columns || self->open_quote || self->maybe_nul)
			count_bad(self, row, n_fields, start, end);
		self->health.no_final_newline |= at_end;
	}
	self->row = at_end ? end : end + 1;
	self->sep_i = last + 1;
	self->row_i++;
	self->open_quote = false;
	return !blank;
}

/* A row that only ends behind the limit is treated as one that was cut there. */
static bool next_row_is_too_long(const struct np_csv *self)
{
	size_t end = self->base + self->marks.seps[self->marks.rows[self->row_i]];
	return end - self->row > NP_CSV_MAX_ROW_BYTES;
}

static enum np_status fail(struct np_csv *self, enum np_status status, struct np_err *err)
{
	self->failed = status;
	if (err)
		*err = self->error;
	return status;
}

enum np_status np_csv_next(struct np_csv *self, struct np_csv_row *row, bool *got,
                           struct np_err *err)
{
	*got = false;
	if (self->failed)
		return fail(self, self->failed, err);
	for (;;) {
		enum np_status status = NP_OK;
		if (self->row_i == self->marks.n_rows)
			status = refill(self, &self->error);
		if (status == NP_OK && self->row_i == self->marks.n_rows)
			return NP_OK;
		if (status == NP_OK && next_row_is_too_long(self))
			status = cut_row(self, &self->error);
		if (status != NP_OK)
			return fail(self, status, err);
		if (take_row(self, row)) {
			*got = true;
			return NP_OK;
		}
	}
}

/* ── chunks ──
 *
 * The same walk as the reader's, but only over line breaks, so that both agree
 * on every row start, also behind a quote that never closes.
 */
struct splitter {
	np_str data;
	enum np_simd simd;
	struct np_csv_scan scan;
	size_t row, at; /* start of the row that `at` is in */
};

/* Scan to `to`. *start is the first row start found there when true is given. */
static bool scan_to(struct splitter *self, size_t to, size_t *start)
{
	size_t first = 0, last = 0, from = self->at;
	bool found = np_csv_scan_breaks(self->simd, &self->scan, self->data.ptr + from, to - from,
	                                &first, &last);
	if ((found ? from + first : to) - self->row > NP_CSV_MAX_ROW_BYTES) {
		const char *line = self->data.ptr + self->row;
		const char *newline = memchr(line, '\n', (size_t)NP_CSV_MAX_ROW_BYTES + 1);
		self->row = newline ? (size_t)(newline - self->data.ptr) + 1 : self->data.len;
		self->at = self->row;
		self->scan.inside = 0;
		*start = self->row;
		return true;
	}
	self->at = to;
	if (found) {
		self->row = from + last + 1;
		*start = from + first + 1;
	}
	return found;
}

/* The first row start at or behind `target`; data.len when there is none. */
static size_t row_start_from(struct splitter *self, size_t target)
{
	size_t start = 0;
	/* up to the byte in front of the target: when that is a line break, the
	 * target itself is a row start */
	while (self->at + 1 < target) {
		size_t to = target - 1 - self->at < INDEX_STEP ? target - 1 : self->at + INDEX_STEP;
		(void)scan_to(self, to, &start);
	}
	if (self->row >= target)
		return self->row;
	while (self->at < self->data.len) {
		size_t left = self->data.len - self->at;
		size_t step = left < 4096 ? left : 4096;
		if (scan_to(self, self->at + step, &start) && start >= target)
			return start;
	}
	return self->data.len;
}

size_t np_csv_split(const struct np_csv *self, size_t n, np_str *chunks, uint64_t *offsets)
{
	np_str whole = np_input_whole(self->input);
	if (n == 0 || whole.len <= self->data_start)
		return 0;
	size_t skip = (size_t)self->data_start;
	struct splitter splitter = {.data = {whole.ptr + skip, whole.len - skip},
	                            .simd = self->simd};
	uint64_t content = np_input_begin(self->input) + skip;
	size_t len = splitter.data.len, made = 0, begin = 0;
	for (size_t i = 1; i <= n && begin < len; i++) {
		size_t target = len / n * i + len % n * i / n;
		if (i < n && target <= begin)
			continue;
		size_t end = i == n ? len : row_start_from(&splitter, target);
		if (end == begin)
			continue;
		chunks[made] = (np_str){splitter.data.ptr + begin, end - begin};
		offsets[made++] = content + begin;
		begin = end;
	}
	return made;
}
