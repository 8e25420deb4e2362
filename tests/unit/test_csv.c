/* src/io/csv: rows, health, text, numbers, chunks, the writer. */
#include "unit.h"

#include <fcntl.h>

#include "base/mem.h"
#include "io/csv.h"

struct reader {
	struct np_input *input;
	struct np_csv *csv;
};

static struct reader reader_of(np_str text, size_t window)
{
	struct reader r = {NULL, NULL};
	assert_int_equal(np_input_open_mem(text, "mem", 0, &r.input, NULL), NP_OK);
	np_input_limit_window(r.input, window);
	assert_int_equal(np_csv_open(r.input, &r.csv, NULL), NP_OK);
	return r;
}

static void reader_close(struct reader r)
{
	np_csv_close(r.csv);
	np_input_close(r.input);
}

static bool next(struct reader r, struct np_csv_row *row)
{
	bool got = false;
	assert_int_equal(np_csv_next(r.csv, row, &got, NULL), NP_OK);
	return got;
}

static void columns_are_found_by_name(void **state)
{
	(void)state;
	struct reader r = reader_of(
		NP_STR("\xef\xbb\xbf\r\n \nStep Id, \"a,b\" ,\"x\"\"y\",Step Id\t\r\n"), 0);
	assert_int_equal(np_csv_n_columns(r.csv), 4);
	assert_str(np_csv_column_name(r.csv, 0), "Step Id");
	assert_str(np_csv_column_name(r.csv, 1), "a,b");
	assert_str(np_csv_column_name(r.csv, 2), "x\"y");
	assert_str(np_csv_column_name(r.csv, 3), "Step Id");
	assert_int_equal(np_csv_column_name(r.csv, 4).len, 0);
	assert_int_equal(np_csv_find(r.csv, "Step Id"), 0);
	assert_int_equal(np_csv_find(r.csv, "step id"), -1);
	static const char *const any[] = {"nope", "a,b", "Step Id", NULL};
	assert_int_equal(np_csv_find_any(r.csv, any), 1);
	assert_int_equal(np_csv_find_any(r.csv, any + 3), -1);
	struct np_csv_row row;
	assert_false(next(r, &row));
	reader_close(r);
}

static void rows_come_raw_with_their_place(void **state)
{
	(void)state;
	struct reader r = reader_of(NP_STR("a,b\n1,\"x\ny\"\r\n\n \r\n2,3"), 0);
	struct np_csv_row row;
	assert_true(next(r, &row));
	assert_str(row.fields[0], "1");
	assert_str(row.fields[1], "\"x\ny\"");
	assert_int_equal(row.number, 1);
	assert_int_equal(row.offset, 4);
	assert_false(row.ragged);
	assert_true(next(r, &row));
	assert_str(row.fields[1], "3");
	assert_int_equal(row.number, 2);
	assert_int_equal(row.offset, 17);
	assert_false(next(r, &row));
	assert_false(next(r, &row));
	const struct np_csv_health *health = np_csv_health(r.csv);
	assert_int_equal(health->rows, 2);
	assert_true(health->no_final_newline);
	assert_int_equal(health->first_bad_row, 0);
	reader_close(r);
}

static void ragged_rows_are_given_and_counted(void **state)
{
	(void)state;
	struct reader r = reader_of(NP_STR("a,b,c\n1,2,3\n4\n5,6,7,8,9\n"), 0);
	struct np_csv_row row;
	assert_true(next(r, &row));
	assert_true(next(r, &row));
	assert_true(row.ragged);
	assert_str(row.fields[0], "4");
	assert_int_equal(row.fields[1].len, 0);
	assert_int_equal(row.fields[2].len, 0);
	assert_true(next(r, &row));
	assert_true(row.ragged);
	assert_str(row.fields[2], "7");
	assert_false(next(r, &row));
	const struct np_csv_health *health = np_csv_health(r.csv);
	assert_int_equal(health->short_rows, 1);
	assert_int_equal(health->long_rows, 1);
	assert_int_equal(health->first_bad_row, 2);
	assert_false(health->no_final_newline);
	reader_close(r);
}

static void a_quote_that_never_closes_costs_one_row(void **state)
{
	(void)state;
	struct reader r = reader_of(NP_STR("a,b\n1,2\n3,\"4,5\n6,7\n8,9\n"), 0);
	struct np_csv_row row;
	assert_true(next(r, &row));
	assert_true(next(r, &row));
	assert_str(row.fields[0], "3");
	assert_str(row.fields[1], "\"4,5");
	assert_true(row.ragged);
	assert_true(next(r, &row));
	assert_str(row.fields[0], "6");
	assert_false(row.ragged);
	assert_true(next(r, &row));
	assert_str(row.fields[1], "9");
	assert_false(next(r, &row));
	const struct np_csv_health *health = np_csv_health(r.csv);
	assert_int_equal(health->open_quotes, 1);
	assert_int_equal(health->first_bad_row, 2);
	assert_int_equal(health->rows, 4);
	assert_false(health->no_final_newline);
	reader_close(r);
}

static void a_nul_byte_marks_its_row_only(void **state)
{
	(void)state;
	struct reader r = reader_of(NP_STR("a\n1\n\0002\n3\n"), 0);
	struct np_csv_row row;
	while (next(r, &row))
		assert_false(row.ragged);
	assert_int_equal(np_csv_health(r.csv)->nul_bytes, 1);
	assert_int_equal(np_csv_health(r.csv)->first_bad_row, 2);
	reader_close(r);
}

static enum np_status open_status(np_str text)
{
	struct np_input *input = NULL;
	struct np_csv *csv = NULL;
	assert_int_equal(np_input_open_mem(text, "mem", 0, &input, NULL), NP_OK);
	enum np_status status = np_csv_open(input, &csv, NULL);
	np_csv_close(csv);
	np_input_close(input);
	return status;
}

static void a_file_without_header_is_told(void **state)
{
	(void)state;
	assert_int_equal(open_status(NP_STR("")), NP_E_EMPTY);
	assert_int_equal(open_status(NP_STR("\xef\xbb\xbf")), NP_E_EMPTY);
	assert_int_equal(open_status(NP_STR("\n\r\n  \n")), NP_E_EMPTY);
	assert_int_equal(open_status(NP_STR("a")), NP_OK);
	char *commas = malloc(3 << 20);
	memset(commas, ',', 3 << 20);
	assert_int_equal(open_status((np_str){commas, NP_CSV_MAX_COLUMNS - 1}), NP_OK);
	assert_int_equal(open_status((np_str){commas, NP_CSV_MAX_COLUMNS}), NP_E_LIMIT);
	memset(commas, 'x', 3 << 20);
	assert_int_equal(open_status((np_str){commas, 3 << 20}), NP_E_LIMIT);
	assert_int_equal(open_status((np_str){commas, NP_CSV_MAX_HEADER_BYTES}), NP_OK);
	commas[(2 << 20) - 3] = '\n';
	assert_int_equal(open_status((np_str){commas, 3 << 20}), NP_E_LIMIT);
	free(commas);
}

static void a_sparse_file_is_a_limit_soon(void **state)
{
	(void)state;
	char path[] = "/tmp/npuprof-csv-XXXXXX";
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "a,b\n1,2\n", 8), 8);
	if (ftruncate(fd, (off_t)10 << 30) != 0) {
		(void)unlink(path);
		skip(); /* the file system has no room for holes of that size */
	}
	struct reader r = {NULL, NULL};
	assert_int_equal(np_input_open(path, &r.input, NULL), NP_OK);
	assert_int_equal(np_csv_open(r.input, &r.csv, NULL), NP_OK);
	struct np_csv_row row;
	struct np_err err;
	bool got = false;
	assert_true(next(r, &row));
	assert_int_equal(np_csv_next(r.csv, &row, &got, &err), NP_E_LIMIT);
	assert_non_null(strstr(err.where, ":8"));
	memset(&err, 0, sizeof err);
	assert_int_equal(np_csv_next(r.csv, &row, &got, &err), NP_E_LIMIT);
	assert_non_null(strstr(err.where, ":8"));
	reader_close(r);
	(void)close(fd);
	(void)unlink(path);
}

/* 70 MB without a closing quote within the limit, then a closing one. */
static void a_quote_that_closes_too_late_is_cut(void **state)
{
	(void)state;
	size_t line = 1000, n = 70000, len = 0;
	char *text = malloc(line * n + 100);
	len += (size_t)snprintf(text, 100, "a,b\n1,\"2\n");
	for (size_t i = 0; i < n; i++, len += line) {
		memset(text + len, 'x', line);
		text[len + 1] = ',';
		text[len + line - 1] = '\n';
	}
	len += (size_t)snprintf(text + len, 50, "3,\"\n4,5\n\"6,7\n8,9\n");
	struct reader r = reader_of((np_str){text, len}, 0);
	struct np_csv_row row;
	uint64_t rows = 0, ragged = 0, last_offset = 0;
	for (; next(r, &row); rows++) {
		ragged += row.ragged;
		last_offset = row.offset;
	}
	/* the first is cut; of the end, "3,…4,5…6,7" is one row with three fields */
	assert_int_equal(np_csv_health(r.csv)->open_quotes, 1);
	assert_int_equal(np_csv_health(r.csv)->long_rows, 1);
	assert_int_equal(rows, 1 + n + 1 + 1);
	assert_int_equal(ragged, 2);
	assert_int_equal(last_offset, len - 4);

	np_str chunks[7];
	uint64_t offsets[7], in_chunks = 0;
	size_t made = np_csv_split(r.csv, 7, chunks, offsets);
	assert_int_equal(made, 7);
	for (size_t i = 0; i < made; i++) {
		struct reader chunk;
		assert_int_equal(np_input_open_mem(chunks[i], "c", offsets[i], &chunk.input, NULL),
		                 NP_OK);
		assert_int_equal(np_csv_open_chunk(r.csv, chunk.input, &chunk.csv, NULL), NP_OK);
		while (next(chunk, &row))
			in_chunks++;
		reader_close(chunk);
	}
	assert_int_equal(in_chunks, rows);
	reader_close(r);
	free(text);
}

static void many_bad_quotes_cost_no_more_than_their_length(void **state)
{
	(void)state;
	enum { N = 100001 };
	struct np_buf text = {0};
	np_buf_add_cstr(&text, "a,b\n");
	for (int i = 0; i < N; i++)
		np_buf_add_cstr(&text, "x\",y\n");
	struct reader r = reader_of(np_buf_str(&text), 0);
	struct np_csv_row row;
	uint64_t rows = 0;
	while (next(r, &row))
		rows++;
	/* in pairs, `x",y⏎x",y`, and one is left over */
	assert_int_equal(rows, N / 2 + 1);
	assert_int_equal(np_csv_health(r.csv)->open_quotes, 1);
	reader_close(r);
	np_buf_release(&text);
}

static void a_row_of_a_million_fields_is_one_long_row(void **state)
{
	(void)state;
	struct np_buf text = {0};
	np_buf_add_cstr(&text, "a,b\n1,2,");
	for (int i = 0; i < 1000000; i++)
		np_buf_add_char(&text, ',');
	np_buf_add_cstr(&text, "\n3,4\n\"5,");
	for (int i = 0; i < 1000000; i++)
		np_buf_add_char(&text, i % 1000 ? ',' : 'x');
	np_buf_add_cstr(&text, "\n6,7\n");
	struct reader r = reader_of(np_buf_str(&text), 0);
	struct np_csv_row row;
	assert_true(next(r, &row));
	assert_str(row.fields[1], "2");
	assert_true(row.ragged);
	assert_true(next(r, &row));
	assert_str(row.fields[0], "3");
	assert_true(next(r, &row));
	assert_int_equal(row.fields[0].len, 1000003);
	assert_true(next(r, &row));
	assert_str(row.fields[1], "7");
	assert_false(row.ragged);
	assert_false(next(r, &row));
	assert_int_equal(np_csv_health(r.csv)->long_rows, 1);
	reader_close(r);
	np_buf_release(&text);
}

/* ── against a parser that is too simple to be wrong ── */

static void naive_row(np_str line, size_t offset, bool open, size_t n_columns, struct np_buf *out)
{
	struct np_buf fields = {0};
	size_t n = 0, start = 0;
	bool inside = false;
	for (size_t i = 0; i <= line.len; i++) {
		if (i < line.len && line.ptr[i] == '"')
			inside = !inside;
		if (i < line.len && (inside || line.ptr[i] != ','))
			continue;
		if (n++ < n_columns) {
			np_buf_printf(&fields, "|%zu:", i - start);
			np_buf_add(&fields, line.ptr + start, i - start);
		}
		start = i + 1;
	}
	if (n != 1 || np_str_trim(line).len) {
		np_buf_printf(out, "%zu %d ", offset, open || n != n_columns);
		np_buf_add_str(out, np_buf_str(&fields));
		for (; n < n_columns; n++)
			np_buf_add_cstr(out, "|0:");
		np_buf_add_char(out, '\n');
	}
	np_buf_release(&fields);
}

/* Write the rows of `text` to `out` in a canonical form: offset, flag and every field.
 * The header is the first line. */
static void naive(np_str text, size_t n_columns, struct np_buf *out)
{
	size_t at = (size_t)((const char *)memchr(text.ptr, '\n', text.len) - text.ptr) + 1;
	while (at < text.len) {
		bool inside = false;
		size_t end = at;
		for (; end < text.len && (inside || text.ptr[end] != '\n'); end++)
			inside ^= text.ptr[end] == '"';
		bool open = inside;
		if (open)
			for (end = at; end < text.len && text.ptr[end] != '\n'; end++)
				;
		size_t stop = end > at && text.ptr[end - 1] == '\r' ? end - 1 : end;
		naive_row((np_str){text.ptr + at, stop - at}, at, open, n_columns, out);
		at = end + 1;
	}
}

static void write_rows(struct reader r, struct np_buf *out)
{
	struct np_csv_row row;
	while (next(r, &row)) {
		np_buf_printf(out, "%zu %d ", (size_t)row.offset, row.ragged);
		for (size_t i = 0; i < np_csv_n_columns(r.csv); i++) {
			np_buf_printf(out, "|%zu:", row.fields[i].len);
			np_buf_add_str(out, row.fields[i]);
		}
		np_buf_add_char(out, '\n');
	}
}

static void assert_same_rows(const struct np_buf *got, const struct np_buf *expected, np_str text)
{
	if (!np_str_eq(np_buf_str(got), np_buf_str(expected)))
		fail_msg("for <<%.*s>>\ngot\n%.*s\nexpected\n%.*s", NP_FMT(text),
		         NP_FMT(np_buf_str(got)), NP_FMT(np_buf_str(expected)));
}

static void write_rows_of_chunks(const struct np_csv *header, size_t n, struct np_buf *out)
{
	np_str chunks[8];
	uint64_t offsets[8];
	size_t made = np_csv_split(header, n, chunks, offsets);
	assert_true(made <= n);
	for (size_t i = 0; i < made; i++) {
		assert_true(chunks[i].len > 0);
		if (i + 1 < made) { /* whole lines, without a gap */
			assert_int_equal(chunks[i].ptr[chunks[i].len - 1], '\n');
			assert_ptr_equal(chunks[i].ptr + chunks[i].len, chunks[i + 1].ptr);
		}
		struct reader r = {NULL, NULL};
		assert_int_equal(np_input_open_mem(chunks[i], "c", offsets[i], &r.input, NULL),
		                 NP_OK);
		assert_int_equal(np_csv_open_chunk(header, r.input, &r.csv, NULL), NP_OK);
		write_rows(r, out);
		reader_close(r);
	}
}

static void random_document(struct np_buf *text, size_t len)
{
	static const char alphabet[] = "ab,,,\n\n\r\"\" 1\t";
	size_t kinds = (size_t)random() % 3 ? sizeof alphabet - 1 : 8;
	np_buf_clear(text);
	np_buf_add_cstr(text, "a,b,c\n");
	for (size_t i = 0; i < len; i++) {
		bool rare = random() % 1000 == 0;
		np_buf_add_char(text, rare ? '\0' : alphabet[(size_t)random() % kinds]);
	}
}

static void random_documents_agree_with_a_naive_parser(void **state)
{
	(void)state;
	struct np_buf text = {0}, expected = {0}, got = {0};
	srandom(3);
	for (int round = 0; round < 3000; round++) {
		random_document(&text, (size_t)random() % (round % 50 ? 120 : 200000));
		np_buf_clear(&expected);
		naive(np_buf_str(&text), 3, &expected);
		size_t windows[] = {0, 1 + (size_t)random() % 40, 1000 + (size_t)random() % 70000};
		for (int w = 0; w < 3; w++) {
			if (w == 1 && text.len > 1000)
				continue;
			np_buf_clear(&got);
			struct reader r = reader_of(np_buf_str(&text), windows[w]);
			write_rows(r, &got);
			assert_same_rows(&got, &expected, np_buf_str(&text));
			np_buf_clear(&got);
			write_rows_of_chunks(r.csv, 1 + (size_t)random() % 8, &got);
			assert_same_rows(&got, &expected, np_buf_str(&text));
			reader_close(r);
		}
	}
	np_buf_release(&text);
	np_buf_release(&expected);
	np_buf_release(&got);
}

/* ── fields ── */

static void text_is_unquoted_and_trimmed(void **state)
{
	(void)state;
	static const struct {
		const char *raw, *text;
	} cases[] = {
		{"plain", "plain"},
		{"  x y\t\r", "x y"},
		{"", ""},
		{"   ", ""},
		{"\"\"", ""},
		{"\"", ""},
		{"\"a,b\"", "a,b"},
		{" \" a \" ", "a"},
		{"\"\"\"32,3,224,224\"\"\"", "\"32,3,224,224\""},
		{"\"say \"\"x\"\"\"", "say \"x\""},
		{"\"\"\"\"", "\""},
		{"\"open", "open"},
		{"\"a\"tail", "atail"},
		{"\"a\"tail\"", "atail\""},
		{"mid\"dle", "mid\"dle"},
		{"\"two\nlines\"", "two\nlines"},
	};
	struct np_buf scratch = {0};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_str(np_csv_text(np_str_of(cases[i].raw), &scratch), cases[i].text);
	assert_int_equal(np_csv_text((np_str){NULL, 0}, &scratch).len, 0);
	np_buf_release(&scratch);
}

static void numbers_are_read_quoted_or_not(void **state)
{
	(void)state;
	int64_t value = 0;
	double ratio = 0;
	assert_int_equal(np_csv_us_to_ns(NP_STR("1736412474730135.222\t"), &value), NP_NUM_OK);
	assert_int_equal(value, 1736412474730135222);
	assert_int_equal(np_csv_us_to_ns(NP_STR("\" 1.5 \"\r"), &value), NP_NUM_OK);
	assert_int_equal(value, 1500);
	assert_int_equal(np_csv_us_to_ns(NP_STR("\"N/A\""), &value), NP_NUM_NA);
	assert_int_equal(np_csv_us_to_ns((np_str){NULL, 0}, &value), NP_NUM_NA);
	assert_int_equal(np_csv_us_to_ns(NP_STR("\"\"\"1\"\"\""), &value), NP_NUM_BAD);
	assert_int_equal(np_csv_i64(NP_STR("\"42\""), &value), NP_NUM_OK);
	assert_int_equal(value, 42);
	assert_int_equal(np_csv_i64(NP_STR("x"), &value), NP_NUM_BAD);
	assert_int_equal(np_csv_double(NP_STR(" 0.525"), &ratio), NP_NUM_OK);
	assert_true(ratio == 0.525);
	assert_int_equal(np_csv_double(NP_STR("\""), &ratio), NP_NUM_BAD);
}

static void written_text_is_safe_and_comes_back(void **state)
{
	(void)state;
	static const struct {
		const char *text, *written;
	} cases[] = {
		{"", ""},
		{"MatMul", "MatMul"},
		{"a,b", "\"a,b\""},
		{"say \"x\"", "\"say \"\"x\"\"\""},
		{"two\nlines", "\"two\nlines\""},
		{" edge", "\" edge\""},
		{"-1.5", "-1.5"},
		{"+3e5", "+3e5"},
		{"-", "'-"},
		{"=1+1", "'=1+1"},
		{"@SUM(A1,B1)", "\"'@SUM(A1,B1)\""},
		{"\tx", "\"'\tx\""},
		{"-2+3+cmd|' /C calc'!A0", "'-2+3+cmd|' /C calc'!A0"},
	};
	struct np_buf out = {0}, scratch = {0};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		np_buf_clear(&out);
		np_csv_write_text(&out, np_str_of(cases[i].text));
		assert_str(np_buf_str(&out), cases[i].written);
		np_str back = np_csv_text(np_buf_str(&out), &scratch);
		if (back.len && back.ptr[0] == '\'')
			back = np_str_from(back, 1);
		assert_true(np_str_eq(np_str_trim(back), np_str_trim(np_str_of(cases[i].text))));
	}
	np_buf_release(&out);
	np_buf_release(&scratch);
}

static void running_out_of_memory_is_told(void **state)
{
	(void)state;
	bool succeeded = false;
	for (uint64_t n = 1; n < 40 && !succeeded; n++) {
		struct np_input *input = NULL;
		struct np_csv *csv = NULL, *chunk = NULL;
		assert_int_equal(
			np_input_open_mem(NP_STR("a,\"b\"\"c\"\n1,2\n"), "m", 0, &input, NULL),
			NP_OK);
		np_mem_fail_after(n);
		enum np_status status = np_csv_open(input, &csv, NULL);
		if (status == NP_OK)
			status = np_csv_open_chunk(csv, input, &chunk, NULL);
		np_mem_fail_after(0);
		assert_true(status == NP_OK || status == NP_E_NOMEM);
		succeeded = status == NP_OK;
		np_csv_close(chunk);
		np_csv_close(csv);
		np_input_close(input);
	}
	assert_true(succeeded);
}

/* ── real captures ── */

static void real_files_have_no_bad_rows(void **state)
{
	(void)state;
	static const char dir[] = "data/ddp2/text/level2/rank0_ascend_pt/ASCEND_PROFILER_OUTPUT/";
	static const char *const names[] = {"kernel_details.csv", "operator_details.csv",
	                                    "op_statistic.csv", "memory_record.csv"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		char relative[200];
		(void)snprintf(relative, sizeof relative, "%s%s", dir, names[i]);
		const char *path = shared_path(relative);
		if (!path)
			skip();
		struct reader r = {NULL, NULL};
		assert_int_equal(np_input_open(path, &r.input, NULL), NP_OK);
		assert_int_equal(np_csv_open(r.input, &r.csv, NULL), NP_OK);
		np_str whole = np_input_whole(r.input);
		struct np_buf got = {0}, expected = {0};
		write_rows(r, &got);
		naive(whole, np_csv_n_columns(r.csv), &expected);
		assert_true(np_str_eq(np_buf_str(&got), np_buf_str(&expected)));
		assert_int_equal(np_csv_health(r.csv)->first_bad_row, 0);
		assert_true(np_csv_health(r.csv)->rows > 5);
		np_buf_release(&got);
		np_buf_release(&expected);
		reader_close(r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(columns_are_found_by_name),
		cmocka_unit_test(rows_come_raw_with_their_place),
		cmocka_unit_test(ragged_rows_are_given_and_counted),
		cmocka_unit_test(a_quote_that_never_closes_costs_one_row),
		cmocka_unit_test(a_nul_byte_marks_its_row_only),
		cmocka_unit_test(a_file_without_header_is_told),
		cmocka_unit_test(a_sparse_file_is_a_limit_soon),
		cmocka_unit_test(a_quote_that_closes_too_late_is_cut),
		cmocka_unit_test(many_bad_quotes_cost_no_more_than_their_length),
		cmocka_unit_test(a_row_of_a_million_fields_is_one_long_row),
		cmocka_unit_test(random_documents_agree_with_a_naive_parser),
		cmocka_unit_test(text_is_unquoted_and_trimmed),
		cmocka_unit_test(numbers_are_read_quoted_or_not),
		cmocka_unit_test(written_text_is_safe_and_comes_back),
		cmocka_unit_test(running_out_of_memory_is_told),
		cmocka_unit_test(real_files_have_no_bad_rows),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
