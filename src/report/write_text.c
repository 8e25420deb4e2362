/*
 * Text for people.
 *
 *   npuprof check                          heading
 *   input: …
 *   verdict: FAIL (1 error)
 *
 *   error CODE title                       findings
 *     detail, evidence, impact, advice
 *     $ command
 *
 *   Title                                  tables
 *     name    dur (us)
 *
 *   note: …
 */
#include <math.h>
#include <string.h>

#include "report/lang.h"
#include "report/write.h"

enum {
	INDENT = 2,
	GAP = 2,             /* blanks between columns */
	EVIDENCE_SHOWN = 3,  /* without -v */
	WIDTH_MAX = 4096,    /* of a terminal: bounds the padding of a row */
	PAD_MAX = 200,       /* where nothing is cut, longer cells just stick out */
	TEXT_COLUMN_MIN = 8, /* a text column is not cut below this */
};

enum paint { PLAIN, BOLD, RED, GREEN, YELLOW, CYAN };

struct writer {
	const struct np_write_options *options;
	struct np_buf *out;
	size_t width;      /* 0: no limit */
	size_t line_start; /* offset in out */
	bool begun;        /* a block has been written */
	struct np_buf scratch;
};

static void paint(struct writer *self, enum paint paint)
{
	static const char *const codes[] = {"\x1b[0m",    "\x1b[1m",    "\x1b[1;31m",
	                                    "\x1b[1;32m", "\x1b[1;33m", "\x1b[1;36m"};
	if (self->options->color)
		np_buf_add_cstr(self->out, codes[paint]);
}

static void painted(struct writer *self, enum paint color, np_str text)
{
	while (text.len && text.ptr[text.len - 1] == ' ') /* they would hide behind the colour */
		text.len--;
	paint(self, color);
	np_text_safe(self->out, text);
	paint(self, PLAIN);
}

static void end_line(struct writer *self)
{
	np_write_trim(self->out, self->line_start);
	np_buf_add_char(self->out, '\n');
	self->line_start = self->out->len;
}

static void begin_block(struct writer *self)
{
	if (self->begun)
		end_line(self);
	self->begun = true;
}

/* A line `lead` + text, wrapped. */
static void put_wrapped(struct writer *self, const char *lead, np_str text, size_t indent)
{
	np_buf_add_cstr(self->out, lead);
	np_text_wrap(self->out, text, np_text_width(np_str_of(lead)), indent, self->width);
	end_line(self);
}

/* ── heading ── */

static enum paint verdict_paint(enum np_verdict verdict)
{
	return verdict == NP_VERDICT_PASS ? GREEN : verdict == NP_VERDICT_FAIL ? RED : YELLOW;
}

static void put_count(struct np_buf *out, size_t n, const char *what)
{
	if (n)
		np_buf_printf(out, "%s%zu %s%s", out->len ? ", " : "", n, np_tr(what),
		              n == 1 || np_lang() != NP_LANG_EN ? "" : "s");
}

static void put_verdict(struct writer *self, const struct np_report *report)
{
	struct np_buf *counts = &self->scratch;
	size_t errors = np_report_count(report, NP_ERROR);
	size_t warnings = np_report_count(report, NP_WARNING) - errors;
	if (report->verdict == NP_VERDICT_NONE)
		return;
	np_buf_add_cstr(self->out, np_tr("verdict: "));
	painted(self, verdict_paint(report->verdict),
	        np_str_of(np_tr(np_verdict_name(report->verdict))));
	np_buf_clear(counts);
	put_count(counts, errors, "error");
	put_count(counts, warnings, "warning");
	if (counts->len)
		np_buf_printf(self->out, " (%s)", counts->ptr);
	end_line(self);
}

static void put_heading(struct writer *self, const struct np_report *report)
{
	begin_block(self);
	paint(self, BOLD);
	np_buf_add_cstr(self->out, "npuprof ");
	np_text_safe(self->out, np_str_of(report->command));
	np_write_trim(self->out, self->line_start);
	paint(self, PLAIN);
	end_line(self);
	for (size_t i = 0; i < report->inputs.n; i++) {
		np_buf_add_cstr(self->out, np_tr("input: "));
		np_text_safe(self->out, np_str_of(report->inputs.v[i]));
		end_line(self);
	}
	put_verdict(self, report);
}

/* ── findings ── */

static void put_evidence(struct writer *self, const struct np_finding *finding)
{
	size_t n = finding->evidence.n;
	size_t shown = self->options->verbose || n <= EVIDENCE_SHOWN ? n : EVIDENCE_SHOWN;
	for (size_t i = 0; i < shown; i++) {
		const struct np_evidence *evidence = &finding->evidence.v[i];
		const char *const where[] = {evidence->file, evidence->column, evidence->rows};
		struct np_buf *line = &self->scratch;
		np_buf_clear(line);
		for (size_t k = 0; k < sizeof where / sizeof *where; k++)
			if (where[k]) {
				np_buf_add_cstr(line, line->len ? ": " : "");
				np_buf_add_cstr(line, where[k]);
			}
		if (*evidence->text) {
			np_buf_add_cstr(line, line->len ? ": " : "");
			np_buf_add_cstr(line, evidence->text);
		}
		self->out->failed = self->out->failed || line->failed;
		put_wrapped(self, "  - ", np_buf_str(line), 4);
	}
	if (shown < n) {
		np_buf_printf(self->out, np_tr("  … %zu more (-v shows all)"), n - shown);
		end_line(self);
	}
}

static void put_impact(struct writer *self, const struct np_finding *finding)
{
	char share[NP_CELL_CHARS];
	if (!finding->has_impact || (isnan(finding->impact_us) && isnan(finding->impact_share)))
		return;
	if (finding->impact_us == 0 && !(finding->impact_share > 0))
		return; /* an advice without a gain in time */
	np_buf_add_cstr(self->out, np_tr("  impact: at most"));
	if (!isnan(finding->impact_us))
		np_buf_printf(self->out, " %.3f us", finding->impact_us);
	if (!isnan(finding->impact_us) && !isnan(finding->impact_share))
		np_buf_add_char(self->out, ',');
	if (!isnan(finding->impact_share)) {
		(void)np_format_percent(share, finding->impact_share);
		np_buf_printf(self->out, np_tr(" %s of the step"), share);
	}
	end_line(self);
}

static void put_finding(struct writer *self, const struct np_finding *finding)
{
	static const enum paint paints[] = {CYAN, YELLOW, RED};
	const char *severity = np_tr(np_severity_name(finding->severity));
	begin_block(self);
	painted(self, (unsigned)finding->severity < 3 ? paints[finding->severity] : RED,
	        np_str_of(severity));
	np_buf_printf(self->out, " %s ", finding->code);
	size_t column = np_text_width(np_str_of(severity)) + strlen(finding->code) + 2;
	np_text_wrap(self->out, np_str_of(finding->title), column, INDENT, self->width);
	end_line(self);
	if (finding->detail)
		put_wrapped(self, "  ", np_str_of(finding->detail), INDENT);
	put_evidence(self, finding);
	put_impact(self, finding);
	if (finding->advice)
		put_wrapped(self, np_tr("  advice: "), np_str_of(finding->advice), INDENT);
	if (finding->command) {
		np_buf_add_cstr(self->out, "  $ ");
		np_text_safe(self->out, np_str_of(finding->command));
		end_line(self);
	}
}

/* ── tables ── */

struct layout {
	size_t *widths; /* one per column */
	size_t pad;     /* blanks owed before the next cell */
};

static size_t heading_width(struct writer *self, const struct np_column *column)
{
	np_buf_clear(&self->scratch);
	np_column_heading(&self->scratch, column);
	self->out->failed = self->out->failed || self->scratch.failed;
	return np_text_width(np_buf_str(&self->scratch));
}

static void natural_widths(struct writer *self, const struct np_table *table, size_t *widths)
{
	char shown[NP_CELL_CHARS];
	size_t rows = np_table_rows(table);
	for (size_t c = 0; c < table->n_columns; c++)
		widths[c] = heading_width(self, &table->columns[c]);
	for (size_t r = 0; r < rows; r++)
		for (size_t c = 0; c < table->n_columns; c++) {
			np_str cell = np_cell_shown(&table->columns[c], np_table_cell(table, r, c),
			                            shown);
			size_t width = np_text_width(cell);
			if (width > widths[c])
				widths[c] = width;
		}
}

/* The width of the whole table when no text column is wider than `level`. */
static size_t table_width(const struct np_table *table, const size_t *widths, size_t level)
{
	size_t total = INDENT + GAP * (table->n_columns - 1);
	for (size_t c = 0; c < table->n_columns; c++) {
		bool cut = table->columns[c].type == NP_COL_TEXT && widths[c] > level;
		total += cut ? level : widths[c];
	}
	return total;
}

/*
 * Text columns are cut at one level, like hedges, so the widest lose first: the
 * highest level at which the table fits, and what is then left over goes to the
 * first of them, one column each.
 */
static void cut_to_fit(const struct np_table *table, size_t *widths, size_t limit)
{
	size_t low = TEXT_COLUMN_MIN, high = limit;
	if (table_width(table, widths, SIZE_MAX) <= limit)
		return;
	while (low < high) {
		size_t level = low + (high - low + 1) / 2;
		if (table_width(table, widths, level) <= limit)
			low = level;
		else
			high = level - 1;
	}
	size_t used = table_width(table, widths, low);
	size_t left = used < limit ? limit - used : 0;
	for (size_t c = 0; c < table->n_columns; c++)
		if (table->columns[c].type == NP_COL_TEXT && widths[c] > low) {
			widths[c] = low + (left > 0);
			left -= left > 0;
		}
}

static void put_cell(struct writer *self, struct layout *layout, const struct np_table *table,
                     size_t c, np_str text)
{
	const struct np_column *column = &table->columns[c];
	size_t width = layout->widths[c];
	bool number = np_column_is_number(column);
	if (number) {
		size_t taken = np_text_width(text);
		layout->pad += width > taken ? width - taken : 0;
	}
	if (text.len)
		np_write_blanks(self->out, layout->pad);
	size_t before = text.len ? 0 : layout->pad, taken = 0;
	if (column->type == NP_COL_TEXT && self->width) {
		taken = np_text_cut(self->out, text, width);
	} else {
		np_text_safe(self->out, text);
		taken = number ? width : np_text_width(text);
	}
	layout->pad = before + GAP + (!number && width > taken ? width - taken : 0);
}

/* Of a long table only the beginning is shown where max_rows says so. */
static size_t rows_shown(const struct writer *self, const struct np_table *table)
{
	size_t rows = np_table_rows(table), max = self->options->max_rows;
	return max && rows > max && !self->options->verbose ? max : rows;
}

static void put_rest(struct writer *self, const struct np_table *table)
{
	size_t rows = np_table_rows(table), shown = rows_shown(self, table);
	if (rows == shown)
		return;
	np_buf_add_cstr(self->out, "  ");
	np_buf_printf(self->out, np_tr("… %zu more rows (-v or --json shows all)"), rows - shown);
	end_line(self);
}

static void put_rows(struct writer *self, struct layout *layout, const struct np_table *table)
{
	char shown[NP_CELL_CHARS];
	size_t rows = rows_shown(self, table);
	paint(self, BOLD);
	layout->pad = INDENT;
	for (size_t c = 0; c < table->n_columns; c++) {
		(void)heading_width(self, &table->columns[c]);
		put_cell(self, layout, table, c, np_buf_str(&self->scratch));
	}
	np_write_trim(self->out, self->line_start);
	paint(self, PLAIN);
	end_line(self);
	for (size_t r = 0; r < rows && !self->out->failed; r++) {
		layout->pad = INDENT;
		for (size_t c = 0; c < table->n_columns; c++)
			put_cell(self, layout, table, c,
			         np_cell_shown(&table->columns[c], np_table_cell(table, r, c),
			                       shown));
		end_line(self);
	}
}

static void put_help(struct writer *self, const struct np_table *table)
{
	for (size_t c = 0; c < table->n_columns; c++) {
		const struct np_column *column = &table->columns[c];
		if (!column->help || !*column->help)
			continue;
		np_buf_add_cstr(self->out, "  ");
		np_text_safe(self->out, np_str_of(column->name));
		np_buf_add_cstr(self->out, ": ");
		np_text_wrap(self->out, np_str_of(np_tr(column->help)),
		             INDENT + np_text_width(np_str_of(column->name)) + 2, 4, self->width);
		end_line(self);
	}
}

static void put_table(struct writer *self, const struct np_table *table)
{
	begin_block(self);
	painted(self, BOLD, np_str_of(table->title));
	end_line(self);
	if (np_table_rows(table) == 0) {
		np_buf_add_cstr(self->out, np_tr("  (no rows)"));
		end_line(self);
		return;
	}
	struct layout layout = {.widths = np_calloc(table->n_columns, sizeof *layout.widths)};
	if (!layout.widths) {
		self->out->failed = true;
		return;
	}
	natural_widths(self, table, layout.widths);
	if (self->width)
		cut_to_fit(table, layout.widths, self->width);
	for (size_t c = 0; c < table->n_columns && !self->width; c++)
		if (layout.widths[c] > PAD_MAX)
			layout.widths[c] = PAD_MAX;
	put_rows(self, &layout, table);
	put_rest(self, table);
	np_free(layout.widths);
	if (self->options->verbose)
		put_help(self, table);
}

void np_write_text(const struct np_report *report, const struct np_write_options *options,
                   struct np_buf *out)
{
	struct writer self = {.options = options, .out = out, .line_start = out->len};
	self.width = options->width < WIDTH_MAX ? options->width : WIDTH_MAX;
	put_heading(&self, report);
	for (size_t i = 0; i < report->findings.n; i++)
		put_finding(&self, report->findings.v[i]);
	for (size_t i = 0; i < report->tables.n; i++)
		put_table(&self, report->tables.v[i]);
	for (size_t i = 0; i < report->notes.n; i++) {
		if (i == 0)
			begin_block(&self);
		put_wrapped(&self, np_tr("note: "), np_str_of(report->notes.v[i]), 6);
	}
	np_buf_release(&self.scratch);
}
