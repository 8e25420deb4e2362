#include "report/writer.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "report/lang.h"
#include "report/write.h"

bool np_format_parse(const char *name, enum np_format *out)
{
	static const struct {
		const char *name;
		enum np_format format;
	} formats[] = {
		{"text", NP_FORMAT_TEXT}, {"json", NP_FORMAT_JSON}, {"csv", NP_FORMAT_CSV},
		{"md", NP_FORMAT_MD},     {"html", NP_FORMAT_HTML},
	};
	for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
		if (np_str_is(np_str_of(name), formats[i].name)) {
			*out = formats[i].format;
			return true;
		}
	return false;
}

enum np_status np_report_write(const struct np_report *report,
                               const struct np_write_options *options, struct np_buf *out,
                               struct np_err *err)
{
	NP_TRY(np_report_ok(report, err));
	switch (options->format) {
	case NP_FORMAT_TEXT:
		np_write_text(report, options, out);
		break;
	case NP_FORMAT_JSON:
		np_write_json(report, out);
		break;
	case NP_FORMAT_MD:
		np_write_md(report, options, out);
		break;
	case NP_FORMAT_HTML:
		NP_TRY(np_write_html(report, options, out, err));
		break;
	case NP_FORMAT_CSV:
		NP_TRY(np_write_csv(report, options->table, out, err));
		break;
	default:
		return np_err_set(err, NP_E_USAGE, NULL, "no such format: %d",
		                  (int)options->format);
	}
	return out->failed ? np_err_nomem(err) : NP_OK;
}

/* ── what text and md share ── */

bool np_column_is_number(const struct np_column *column)
{
	return column->type != NP_COL_TEXT && column->type != NP_COL_BOOL;
}

void np_column_heading(struct np_buf *out, const struct np_column *column)
{
	/* what the cells show, and the suffix of the name that would belie it */
	const char *unit = column->unit ? column->unit : "", *suffix = NULL;
	np_str name = np_str_of(column->name);
	switch (column->type) {
	case NP_COL_DUR_NS:
		unit = "us";
		suffix = "_ns";
		break;
	case NP_COL_TIME_NS:
		unit = "UTC";
		suffix = "_ns";
		break;
	case NP_COL_BYTES:
		unit = "";
		suffix = "_bytes";
		break;
	case NP_COL_PERCENT:
	case NP_COL_BOOL:
		unit = "";
		break;
	case NP_COL_TEXT:
	case NP_COL_INT:
	case NP_COL_REAL:
		break;
	}
	if (suffix && np_str_ends(name, np_str_of(suffix)))
		name.len -= np_str_of(suffix).len;
	const char *translated = np_tr_column(column->name);
	np_text_safe(out, translated ? np_str_of(translated) : name);
	size_t unit_len = np_str_of(unit).len;
	bool told = np_str_ends(name, np_str_of(unit)) && name.len > unit_len &&
	            name.ptr[name.len - unit_len - 1] == '_';
	told = told || np_str_is(name, "seconds");
	if (*unit && (!told || translated)) {
		np_buf_add_cstr(out, " (");
		np_text_safe(out, np_str_of(unit));
		np_buf_add_char(out, ')');
	}
}

int np_format_percent(char *out, double share)
{
	double percent = share * 100;
	return snprintf(out, NP_CELL_CHARS, fabs(percent) < 1e15 ? "%.1f %%" : "%.6g %%", percent);
}

int np_format_bytes(char *out, int64_t bytes)
{
	static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	double value = (double)bytes;
	if (fabs(value) < 1024)
		return snprintf(out, NP_CELL_CHARS, "%" PRId64 " B", bytes);
	size_t unit = 0;
	/* 1023.95 would be printed as 1024.0 */
	for (value /= 1024; fabs(value) >= 1023.95 && unit + 1 < sizeof units / sizeof *units;
	     unit++)
		value /= 1024;
	return snprintf(out, NP_CELL_CHARS, "%.1f %s", value, units[unit]);
}

/* Three decimals, so that the points stand below each other; else what tells more. */
static int format_real(char *out, double value)
{
	double magnitude = fabs(value);
	bool plain = magnitude == 0 || (magnitude >= 0.0005 && magnitude < 1e15);
	return snprintf(out, NP_CELL_CHARS, plain ? "%.3f" : "%.6g", value);
}

np_str np_cell_shown(const struct np_column *column, const struct np_cell *cell, char *out)
{
	int len = 0;
	if (cell->na)
		return NP_STR("-");
	switch (column->type) {
	case NP_COL_TEXT:
		return cell->word ? np_str_of(np_tr(cell->s.ptr)) : cell->s;
	case NP_COL_INT:
		len = snprintf(out, NP_CELL_CHARS, "%" PRId64, cell->i);
		break;
	case NP_COL_REAL:
		len = format_real(out, cell->r);
		break;
	case NP_COL_DUR_NS:
		len = np_ns_format_us(out, NP_CELL_CHARS, cell->i);
		break;
	case NP_COL_TIME_NS:
		len = np_ns_format_date(out, NP_CELL_CHARS, cell->i);
		break;
	case NP_COL_BYTES:
		len = np_format_bytes(out, cell->i);
		break;
	case NP_COL_PERCENT:
		len = np_format_percent(out, cell->r);
		break;
	case NP_COL_BOOL:
		return np_str_of(cell->b ? np_tr("yes") : np_tr("no"));
	}
	return (np_str){out, len > 0 ? (size_t)len : 0};
}

void np_write_i64(struct np_buf *out, int64_t value)
{
	char text[32];
	int len = snprintf(text, sizeof text, "%" PRId64, value);
	np_buf_add(out, text, (size_t)len);
}
