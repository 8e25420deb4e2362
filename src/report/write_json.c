/*
 * One JSON document; its schema is docs/schema/report.schema.json. One line per
 * finding and per row, so that line tools and diffs stay useful.
 */
#include "io/json.h"
#include "report/write.h"

enum { SCHEMA_VERSION = 1 };

static const char *type_name(enum np_col_type type)
{
	static const char *const names[] = {
		[NP_COL_TEXT] = "text",       [NP_COL_INT] = "int",      [NP_COL_REAL] = "real",
		[NP_COL_DUR_NS] = "duration", [NP_COL_TIME_NS] = "time", [NP_COL_BYTES] = "bytes",
		[NP_COL_PERCENT] = "percent", [NP_COL_BOOL] = "bool",
	};
	return names[type];
}

/* The unit of the numbers as they stand in the document. */
static const char *unit_name(const struct np_column *column)
{
	switch (column->type) {
	case NP_COL_DUR_NS:
	case NP_COL_TIME_NS:
		return "ns";
	case NP_COL_BYTES:
		return "bytes";
	case NP_COL_PERCENT:
		return "share";
	case NP_COL_TEXT:
	case NP_COL_INT:
	case NP_COL_REAL:
	case NP_COL_BOOL:
		break;
	}
	return column->unit ? column->unit : "";
}

static void put_text(struct np_buf *out, const char *text)
{
	if (text)
		np_json_quote(out, np_str_of(text));
	else
		np_buf_add_cstr(out, "null");
}

/* "key": text, with what stands in front of it. */
static void put_member(struct np_buf *out, const char *lead, const char *key, const char *text)
{
	np_buf_add_cstr(out, lead);
	np_json_quote(out, np_str_of(key));
	np_buf_add_cstr(out, ": ");
	put_text(out, text);
}

static void put_list(struct np_buf *out, const char *key, const char *const *texts, size_t n)
{
	np_buf_printf(out, ",\n  \"%s\": [", key);
	for (size_t i = 0; i < n; i++) {
		np_buf_add_cstr(out, i ? ",\n    " : "\n    ");
		put_text(out, texts[i]);
	}
	np_buf_add_cstr(out, n ? "\n  ]" : "]");
}

static void put_number_or_null(struct np_buf *out, const char *lead, bool there, double value)
{
	np_buf_add_cstr(out, lead);
	if (there)
		np_json_number(out, value);
	else
		np_buf_add_cstr(out, "null");
}

static void put_finding(struct np_buf *out, const struct np_finding *finding)
{
	put_member(out, "{", "code", finding->code);
	put_member(out, ", ", "severity", np_severity_name(finding->severity));
	put_member(out, ", ", "title", finding->title);
	put_member(out, ", ", "detail", finding->detail);
	np_buf_add_cstr(out, ", \"evidence\": [");
	for (size_t i = 0; i < finding->evidence.n; i++) {
		const struct np_evidence *evidence = &finding->evidence.v[i];
		put_member(out, i ? ", {" : "{", "file", evidence->file);
		put_member(out, ", ", "column", evidence->column);
		put_member(out, ", ", "rows", evidence->rows);
		put_member(out, ", ", "text", evidence->text);
		np_buf_add_char(out, '}');
	}
	put_number_or_null(out, "], \"impact_us\": ", finding->has_impact, finding->impact_us);
	put_number_or_null(out, ", \"impact_share\": ", finding->has_impact, finding->impact_share);
	put_member(out, ", ", "advice", finding->advice);
	put_member(out, ", ", "command", finding->command);
	np_buf_add_char(out, '}');
}

static void put_cell(struct np_buf *out, enum np_col_type type, const struct np_cell *cell)
{
	if (cell->na) {
		np_buf_add_cstr(out, "null");
		return;
	}
	switch (type) {
	case NP_COL_TEXT:
		np_json_quote(out, cell->s);
		break;
	case NP_COL_INT:
	case NP_COL_DUR_NS:
	case NP_COL_TIME_NS:
	case NP_COL_BYTES:
		np_write_i64(out, cell->i);
		break;
	case NP_COL_REAL:
	case NP_COL_PERCENT:
		np_json_number(out, cell->r);
		break;
	case NP_COL_BOOL:
		np_buf_add_cstr(out, cell->b ? "true" : "false");
		break;
	}
}

static void put_table(struct np_buf *out, const struct np_table *table)
{
	size_t rows = np_table_rows(table);
	put_member(out, "{", "id", table->id);
	put_member(out, ", ", "title", table->title);
	np_buf_add_cstr(out, ",\n      \"columns\": [");
	for (size_t c = 0; c < table->n_columns; c++) {
		const struct np_column *column = &table->columns[c];
		put_member(out, c ? ",\n        {" : "\n        {", "name", column->name);
		put_member(out, ", ", "unit", unit_name(column));
		put_member(out, ", ", "type", type_name(column->type));
		put_member(out, ", ", "help", column->help ? column->help : "");
		np_buf_add_char(out, '}');
	}
	np_buf_add_cstr(out, "],\n      \"rows\": [");
	for (size_t r = 0; r < rows && !out->failed; r++) {
		np_buf_add_cstr(out, r ? ",\n        [" : "\n        [");
		for (size_t c = 0; c < table->n_columns; c++) {
			if (c)
				np_buf_add_cstr(out, ", ");
			put_cell(out, table->columns[c].type, np_table_cell(table, r, c));
		}
		np_buf_add_char(out, ']');
	}
	np_buf_add_cstr(out, "]}");
}

void np_write_json(const struct np_report *report, struct np_buf *out)
{
	np_buf_printf(out, "{\n  \"schema_version\": %d", SCHEMA_VERSION);
	put_member(out, ",\n  ", "tool", "npuprof");
	put_member(out, ",\n  ", "version", NPUPROF_VERSION);
	put_member(out, ",\n  ", "command", report->command);
	put_list(out, "inputs", report->inputs.v, report->inputs.n);
	put_member(out, ",\n  ", "verdict",
	           report->verdict == NP_VERDICT_NONE ? NULL : np_verdict_name(report->verdict));
	np_buf_printf(out, ",\n  \"exit_code\": %d", report->exit_code);
	np_buf_add_cstr(out, ",\n  \"findings\": [");
	for (size_t i = 0; i < report->findings.n; i++) {
		np_buf_add_cstr(out, i ? ",\n    " : "\n    ");
		put_finding(out, report->findings.v[i]);
	}
	np_buf_add_cstr(out,
	                report->findings.n ? "\n  ],\n  \"tables\": [" : "],\n  \"tables\": [");
	for (size_t i = 0; i < report->tables.n; i++) {
		np_buf_add_cstr(out, i ? ",\n    " : "\n    ");
		put_table(out, report->tables.v[i]);
	}
	np_buf_add_cstr(out, report->tables.n ? "\n  ]" : "]");
	put_list(out, "notes", report->notes.v, report->notes.n);
	np_buf_add_cstr(out, "\n}\n");
}
