/*
 * CSV after RFC 4180, lines ending in CRLF. Numbers are those of the JSON
 * document, what is not available is empty. Control characters are written as in
 * the text ("\x1b"), but for tabs and line breaks.
 */
#include <math.h>

#include "io/csv.h"
#include "io/json.h"
#include "report/write.h"

#define FINDINGS "findings"

static void end_record(struct np_buf *out)
{
	np_buf_add_cstr(out, "\r\n");
}

/* Control characters, but for those that texts have: a terminal would obey them. */
static size_t control_at(np_str text, size_t at)
{
	unsigned char byte = (unsigned char)text.ptr[at];
	if (byte == '\t' || byte == '\n' || byte == '\r')
		return 0;
	if (byte < 0x20 || byte == 0x7f)
		return 1;
	bool c1 = byte == 0xc2 && at + 1 < text.len && (unsigned char)text.ptr[at + 1] >= 0x80 &&
	          (unsigned char)text.ptr[at + 1] < 0xa0;
	return c1 ? 2 : 0;
}

static void put_text(struct np_buf *out, np_str text)
{
	struct np_buf safe = {0};
	size_t done = 0, bytes = 0;
	for (size_t at = 0; at < text.len; at += bytes ? bytes : 1) {
		bytes = control_at(text, at);
		if (bytes == 0)
			continue;
		np_buf_add(&safe, text.ptr + done, at - done);
		np_text_safe(&safe, np_str_sub(text, at, bytes));
		done = at + bytes;
	}
	if (done)
		np_buf_add(&safe, text.ptr + done, text.len - done);
	np_csv_write_text(out, done ? np_buf_str(&safe) : text);
	out->failed |= safe.failed;
	np_buf_release(&safe);
}

/* A record of one empty field would be a blank line, which readers skip. */
static void put_field(struct np_buf *out, np_str text, bool alone)
{
	if (text.len == 0 && alone)
		np_buf_add_cstr(out, "\"\"");
	else
		put_text(out, text);
}

static void put_cell(struct np_buf *out, enum np_col_type type, const struct np_cell *cell,
                     bool alone)
{
	if (cell->na) {
		put_field(out, (np_str){NULL, 0}, alone);
		return;
	}
	switch (type) {
	case NP_COL_TEXT:
		put_field(out, cell->s, alone);
		break;
	case NP_COL_INT:
	case NP_COL_DUR_NS:
	case NP_COL_TIME_NS:
	case NP_COL_BYTES:
		np_write_i64(out, cell->i);
		break;
	case NP_COL_REAL:
	case NP_COL_PERCENT:
		if (isfinite(cell->r))
			np_json_number(out, cell->r);
		else
			put_field(out, (np_str){NULL, 0}, alone);
		break;
	case NP_COL_BOOL:
		np_buf_add_cstr(out, cell->b ? "true" : "false");
		break;
	}
}

static void put_table(struct np_buf *out, const struct np_table *table)
{
	size_t rows = np_table_rows(table);
	bool alone = table->n_columns == 1;
	for (size_t c = 0; c < table->n_columns; c++) {
		if (c)
			np_buf_add_char(out, ',');
		put_field(out, np_str_of(table->columns[c].name), alone);
	}
	end_record(out);
	for (size_t r = 0; r < rows && !out->failed; r++) {
		for (size_t c = 0; c < table->n_columns; c++) {
			if (c)
				np_buf_add_char(out, ',');
			put_cell(out, table->columns[c].type, np_table_cell(table, r, c), alone);
		}
		end_record(out);
	}
}

static void put_findings(struct np_buf *out, const struct np_report *report)
{
	np_buf_add_cstr(out, "code,severity,title,detail,advice,command");
	end_record(out);
	for (size_t i = 0; i < report->findings.n; i++) {
		const struct np_finding *finding = report->findings.v[i];
		const char *const fields[] = {
			finding->code,   np_severity_name(finding->severity),
			finding->title,  finding->detail,
			finding->advice, finding->command,
		};
		for (size_t k = 0; k < sizeof fields / sizeof *fields; k++) {
			if (k)
				np_buf_add_char(out, ',');
			put_text(out, np_str_of(fields[k]));
		}
		end_record(out);
	}
}

static void put_id(struct np_buf *out, bool several, const char *id)
{
	if (!several)
		return;
	np_buf_add_cstr(out, "# table: ");
	np_text_safe(out, np_str_of(id));
	end_record(out);
}

static void put_all(struct np_buf *out, const struct np_report *report)
{
	bool findings = report->findings.n > 0 || report->tables.n == 0;
	bool several = report->tables.n + findings > 1;
	for (size_t i = 0; i < report->tables.n; i++) {
		put_id(out, several, report->tables.v[i]->id);
		put_table(out, report->tables.v[i]);
	}
	if (findings) {
		put_id(out, several, FINDINGS);
		put_findings(out, report);
	}
}

static enum np_status not_found(const struct np_report *report, const char *id, struct np_err *err)
{
	struct np_buf names = {0};
	for (size_t i = 0; i < report->tables.n; i++) {
		np_text_safe(&names, np_str_of(report->tables.v[i]->id));
		np_buf_add_cstr(&names, ", ");
	}
	enum np_status status = np_err_set(err, NP_E_NOTFOUND, id,
	                                   "no such table in this report; there are: %s" FINDINGS,
	                                   names.ptr ? names.ptr : "");
	np_buf_release(&names);
	return status;
}

enum np_status np_write_csv(const struct np_report *report, const char *id, struct np_buf *out,
                            struct np_err *err)
{
	if (!id) {
		put_all(out, report);
		return NP_OK;
	}
	for (size_t i = 0; i < report->tables.n; i++)
		if (np_str_is(np_str_of(report->tables.v[i]->id), id)) {
			put_table(out, report->tables.v[i]);
			return NP_OK;
		}
	if (!np_str_is(NP_STR(FINDINGS), id))
		return not_found(report, id, err);
	put_findings(out, report);
	return NP_OK;
}
