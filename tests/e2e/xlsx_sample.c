/*
 * Writes the workbooks that xlsx.py reads: xlsx_sample DIR. What stands in them is
 * known to both; numbers are also in DIR/numbers.json.
 */
#include <inttypes.h>
#include <stdio.h>

#include "report/write_xlsx.h"
#include "report/writer.h"

static const struct np_column text_columns[] = {
	{"no", "", NP_COL_INT, ""},
	{"text", "", NP_COL_TEXT, ""},
};

static const struct np_column number_columns[] = {
	{"int", "", NP_COL_INT, ""},    {"real", "", NP_COL_REAL, ""},
	{"dur", "", NP_COL_DUR_NS, ""}, {"time", "", NP_COL_TIME_NS, ""},
	{"size", "", NP_COL_BYTES, ""}, {"share", "", NP_COL_PERCENT, ""},
	{"flag", "", NP_COL_BOOL, ""},
};

static const struct np_column merge_columns[] = {
	{"Parent Module", "", NP_COL_TEXT, ""},
	{"Module", "", NP_COL_TEXT, ""},
	{"Op Count", "", NP_COL_INT, ""},
};

/* xlsx.py has what each of them is to become. */
static const char *const texts[] = {
	"=1+1",
	"+x",
	"-2+3",
	"@SUM(A1:A2)",
	"{=1}",
	"http://example.com/a?b=c&d",
	"mailto:a@example.com",
	"<b>&amp;</b> \"quoted\" 'it'",
	"\x1b[31mred\x07",
	"two\nlines\r\nand a\ttab, a lone \r return",
	"  blanks  ",
	"",
	"_x0041_ and _xD83D__x0001_",
	"bad \xff\xc2 utf8 \xc2\x9b",
	"\xef\xbf\xbe\xef\xbf\xbf",
	"矩阵乘法 \xf0\x9f\x98\x80",
	"\xe2\x80\xaetxt.exe",
	"007",
	"1e5",
	"TRUE",
	"]]>",
};

static const char *const names[] = {
	"plain",
	"Plain",
	"PLAIN",
	"[a]:b*c?d/e\\f'g",
	"a name of a sheet that is far too long for one",
	"a name of a sheet that is far too long for two",
	"通信矩阵的一个非常非常长的名字，比三十一个字符还要长得多得多得多",
	"通信矩阵的一个非常非常长的名字，比三十一个字符还要长得多得多得少",
	"",
	"history",
	"<&\">",
	"A1",
	"2024",
	"\x1b[31m\xff",
	"😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀",
	"ÄPFEL",
	"äpfel",
};

static void add_texts(struct np_report *report)
{
	struct np_table *table = NP_REPORT_TABLE(report, "texts", "Texts", text_columns);
	int64_t no = 0;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		np_cell_int(table, no++);
		np_cell_cstr(table, texts[i]);
	}
	struct np_buf longest = {0};
	for (int i = 0; i < 32767; i++)
		np_buf_add_char(&longest, 'x');
	np_cell_int(table, no++);
	np_cell_text(table, np_buf_str(&longest));
	np_buf_add_char(&longest, 'y');
	np_cell_int(table, no++);
	np_cell_text(table, np_buf_str(&longest));
	np_buf_clear(&longest);
	for (int i = 0; i < 20000; i++)
		np_buf_add_cstr(&longest, "😀");
	np_cell_int(table, no++);
	np_cell_text(table, np_buf_str(&longest));
	np_buf_release(&longest);
	np_cell_int(table, no++);
	np_cell_text(table, (np_str){"a\0b", 3});
	np_cell_int(table, no);
	np_cell_na(table);
}

static void add_numbers(struct np_report *report)
{
	static const int64_t ints[] = {0,
	                               -1,
	                               42,
	                               999999999999999,
	                               1000000000000000,
	                               -1000000000000000,
	                               1736412474730135222,
	                               INT64_MAX,
	                               INT64_MIN};
	static const double reals[] = {0,      -0.5,    0.1,   1e300,           5e-324,
	                               123.25, 1.0 / 3, -1e-9, 12345678901234.5};
	struct np_table *table = NP_REPORT_TABLE(report, "numbers", "Numbers", number_columns);
	for (size_t i = 0; i < sizeof ints / sizeof *ints; i++) {
		np_cell_int(table, ints[i]);
		np_cell_real(table, reals[i]);
		np_cell_int(table, ints[i]);
		np_cell_int(table, ints[i]);
		np_cell_int(table, ints[i]);
		np_cell_real(table, (double)i / 8);
		np_cell_bool(table, i % 2);
	}
	for (size_t c = 0; c < sizeof number_columns / sizeof *number_columns; c++)
		np_cell_na(table);
}

static void add_merged(struct np_report *report)
{
	static const char *const rows[][2] = {
		{"A", "x"},  {"A", "x"},  {"A", "y"}, {"B", "y"}, {"B", "y"},
		{"B", NULL}, {"B", NULL}, {"C", "z"}, {"", "z"},  {"", "z"},
	};
	struct np_table *table = NP_REPORT_TABLE(report, "merged", "Merged", merge_columns);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		np_cell_cstr(table, rows[i][0]);
		np_cell_cstr(table, rows[i][1]);
		np_cell_int(table, (int64_t)i);
	}
}

static struct np_table *add_many(struct np_report *report, int64_t rows)
{
	struct np_table *table = NP_REPORT_TABLE(report, "many", "Many", text_columns);
	for (int64_t i = 0; i < rows; i++) {
		np_cell_int(table, i);
		np_cell_printf(table, "=row & %" PRId64, i % 1000);
	}
	return table;
}

static const char *path_of(const char *dir, const char *name)
{
	static char path[4096];
	(void)snprintf(path, sizeof path, "%s/%s", dir, name);
	return path;
}

static int write_book(const char *dir, const char *name, const struct np_xlsx_sheet *sheets,
                      size_t n)
{
	struct np_err err;
	if (np_xlsx_write(path_of(dir, name), sheets, n, &err) == NP_OK)
		return 0;
	(void)fprintf(stderr, "%s: %s\n", err.where, err.msg);
	return 1;
}

static int write_json(const char *dir, const struct np_report *report)
{
	struct np_write_options options = {.format = NP_FORMAT_JSON};
	struct np_buf out = {0};
	FILE *file = fopen(path_of(dir, "numbers.json"), "w");
	bool ok = file && np_report_write(report, &options, &out, NULL) == NP_OK &&
	          fwrite(out.ptr, 1, out.len, file) == out.len;
	ok = (!file || fclose(file) == 0) && ok;
	np_buf_release(&out);
	return ok ? 0 : 1;
}

static int write_all(const char *dir, struct np_report *report, struct np_report *many)
{
	enum { N_NAMES = sizeof names / sizeof *names };
	struct np_xlsx_sheet named[N_NAMES], sheets[3] = {{.name = "texts"}};
	sheets[0].table = report->tables.v[0];
	sheets[1] =
		(struct np_xlsx_sheet){.table = report->tables.v[1], .title = "=A title & more"};
	sheets[2] = (struct np_xlsx_sheet){.name = "Sheet1",
	                                   .table = report->tables.v[2],
	                                   .n_merged = 2,
	                                   .header_fill = 0xAFEEEE,
	                                   .header_color = 0xFFFFFF,
	                                   .header_font = "Arial"};
	for (size_t i = 0; i < N_NAMES; i++)
		named[i] = (struct np_xlsx_sheet){.name = names[i], .table = report->tables.v[2]};
	struct np_xlsx_sheet big = {.name = "big", .table = add_many(many, 110000)};
	struct np_xlsx_sheet split = {
		.name = "split", .table = add_many(many, 1000), .title = "split", .max_rows = 302};
	return write_book(dir, "sample.xlsx", sheets, 3) ||
	       write_book(dir, "again.xlsx", sheets, 3) ||
	       write_book(dir, "names.xlsx", named, N_NAMES) ||
	       write_book(dir, "big.xlsx", &big, 1) || write_book(dir, "split.xlsx", &split, 1) ||
	       write_json(dir, report);
}

int main(int argc, char **argv)
{
	struct np_report *report = np_report_new("sample"), *many = np_report_new("many");
	if (argc != 2 || !report || !many) {
		(void)fprintf(stderr, "usage: xlsx_sample DIR\n");
		return 2;
	}
	add_texts(report);
	add_numbers(report);
	add_merged(report);
	int status = write_all(argv[1], report, many);
	np_report_free(report);
	np_report_free(many);
	return status;
}
