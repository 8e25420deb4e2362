/*
 * Markdown as GitHub renders it. Texts are made safe as for a terminal and then
 * escaped, so that a name can be neither markup nor the end of a cell.
 */
#include <math.h>
#include <string.h>

#include "report/lang.h"
#include "report/write.h"

struct writer {
	struct np_buf *out;
	size_t max_rows;       /* 0: no limit */
	struct np_buf scratch; /* texts made safe, before they are escaped */
};

static bool is_word(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

/* How a character of text must be written; NULL: as it is. */
static const char *escaped(np_str text, size_t at)
{
	bool inside = at > 0 && at + 1 < text.len;
	switch (text.ptr[at]) {
	case '<':
		return "&lt;";
	case '>':
		return "&gt;";
	case '&':
		return "&amp;";
	case '_': /* within a word it is no emphasis, and names stay legible */
		return inside && is_word(text.ptr[at - 1]) && is_word(text.ptr[at + 1]) ? NULL
		                                                                        : "\\_";
	case '|':
		return "\\|";
	case '\\':
		return "\\\\";
	case '`':
		return "\\`";
	case '*':
		return "\\*";
	case '[':
		return "\\[";
	case ']':
		return "\\]";
	case '~':
		return "\\~";
	case '$':
		return "\\$";
	default:
		return NULL;
	}
}

/* Where a backslash keeps the text from beginning a heading or a list: before its
 * first character or, as in "1. x", behind the digits. SIZE_MAX: nowhere. */
static size_t block_mark(np_str text)
{
	size_t at = 0;
	if (text.len && text.ptr[0] && strchr("#+-=", text.ptr[0]))
		return 0;
	while (at < text.len && text.ptr[at] >= '0' && text.ptr[at] <= '9')
		at++;
	if (at == 0 || at == text.len || (text.ptr[at] != '.' && text.ptr[at] != ')'))
		return SIZE_MAX;
	return at + 1 == text.len || text.ptr[at + 1] == ' ' ? at : SIZE_MAX;
}

static void put(struct writer *self, const char *text)
{
	np_buf_add_cstr(self->out, text);
}

/* `begins`: the text is the first of its line. */
static void put_text(struct writer *self, np_str text, bool begins)
{
	np_buf_clear(&self->scratch);
	np_text_safe(&self->scratch, text);
	self->out->failed = self->out->failed || self->scratch.failed;
	np_str safe = np_buf_str(&self->scratch);
	size_t done = 0, mark = begins ? block_mark(safe) : SIZE_MAX;
	for (size_t at = 0; at < safe.len; at++) {
		const char *as = escaped(safe, at);
		if (!as && at != mark)
			continue;
		np_buf_add(self->out, safe.ptr + done, at - done);
		np_buf_add_cstr(self->out, as ? as : "\\");
		done = at + (as != NULL);
	}
	if (done < safe.len)
		np_buf_add(self->out, safe.ptr + done, safe.len - done);
}

static void put_cstr(struct writer *self, const char *lead, const char *text, const char *tail)
{
	put(self, lead);
	put_text(self, np_str_of(text), true);
	put(self, tail);
}

/* A fence longer than any run of backticks in the text can't be closed by it. */
static void put_command(struct writer *self, const char *command)
{
	size_t longest = 2, run = 0;
	for (const char *p = command; *p; p++) {
		run = *p == '`' ? run + 1 : 0;
		longest = run > longest ? run : longest;
	}
	put(self, "\n  ");
	for (size_t i = 0; i <= longest; i++)
		np_buf_add_char(self->out, '`');
	put(self, "sh\n  ");
	np_text_safe(self->out, np_str_of(command));
	put(self, "\n  ");
	for (size_t i = 0; i <= longest; i++)
		np_buf_add_char(self->out, '`');
	put(self, "\n");
}

static void put_impact(struct writer *self, const struct np_finding *finding)
{
	char share[NP_CELL_CHARS];
	bool us = finding->has_impact && !isnan(finding->impact_us);
	bool of_step = finding->has_impact && !isnan(finding->impact_share);
	if (!us && !of_step)
		return;
	put(self, np_tr("\n  Impact: at most"));
	if (us)
		np_buf_printf(self->out, " %.3f us%s", finding->impact_us, of_step ? "," : "");
	if (of_step) {
		(void)np_format_percent(share, finding->impact_share);
		np_buf_printf(self->out, np_tr(" %s of the step"), share);
	}
	put(self, "\n");
}

static size_t limited(const struct writer *self, size_t n)
{
	return self->max_rows && n > self->max_rows ? self->max_rows : n;
}

static void put_finding(struct writer *self, const struct np_finding *finding)
{
	np_buf_printf(self->out, "- **%s** `%s` ", np_tr(np_severity_name(finding->severity)),
	              finding->code);
	put_cstr(self, "", finding->title, "\n");
	if (finding->detail)
		put_cstr(self, "\n  ", finding->detail, "\n");
	if (finding->evidence.n)
		put(self, "\n");
	size_t shown = limited(self, finding->evidence.n);
	for (size_t i = 0; i < shown; i++) {
		const struct np_evidence *evidence = &finding->evidence.v[i];
		const char *const where[] = {evidence->file, evidence->column, evidence->rows};
		put(self, "  - ");
		for (size_t k = 0; k < sizeof where / sizeof *where; k++)
			if (where[k])
				put_cstr(self, "", where[k], ": ");
		put_cstr(self, "", evidence->text, "\n");
	}
	if (shown < finding->evidence.n)
		np_buf_printf(self->out, np_tr("  - … %zu more\n"), finding->evidence.n - shown);
	put_impact(self, finding);
	if (finding->advice)
		put_cstr(self, np_tr("\n  Advice: "), finding->advice, "\n");
	if (finding->command)
		put_command(self, finding->command);
}

static void put_table(struct writer *self, const struct np_table *table)
{
	char shown[NP_CELL_CHARS];
	struct np_buf heading = {0};
	size_t rows = np_table_rows(table);
	put_cstr(self, "\n## ", table->title, "\n\n");
	if (rows == 0) {
		put(self, np_tr("(no rows)\n"));
		return;
	}
	for (size_t c = 0; c < table->n_columns; c++) {
		np_buf_clear(&heading);
		np_column_heading(&heading, &table->columns[c]);
		self->out->failed = self->out->failed || heading.failed;
		put(self, c ? " | " : "| ");
		put_text(self, np_buf_str(&heading), false);
	}
	np_buf_release(&heading);
	put(self, " |\n");
	for (size_t c = 0; c < table->n_columns; c++)
		put(self, np_column_is_number(&table->columns[c]) ? "| ---: " : "| --- ");
	put(self, "|\n");
	size_t shown_rows = limited(self, rows);
	for (size_t r = 0; r < shown_rows && !self->out->failed; r++) {
		for (size_t c = 0; c < table->n_columns; c++) {
			const struct np_cell *cell = np_table_cell(table, r, c);
			put(self, c ? " | " : "| ");
			put_text(self, np_cell_shown(&table->columns[c], cell, shown), false);
		}
		put(self, " |\n");
	}
	if (shown_rows < rows)
		np_buf_printf(self->out, np_tr("\n… %zu more rows\n"), rows - shown_rows);
}

void np_write_md(const struct np_report *report, const struct np_write_options *options,
                 struct np_buf *out)
{
	struct writer self = {.out = out, .max_rows = options->max_rows};
	put_cstr(&self, "# npuprof ", report->command, "\n");
	for (size_t i = 0; i < report->inputs.n; i++)
		put_cstr(&self, i ? np_tr("- Input: ") : np_tr("\n- Input: "), report->inputs.v[i],
		         "\n");
	if (report->verdict != NP_VERDICT_NONE)
		np_buf_printf(out, np_tr("%s- Verdict: **%s**\n"), report->inputs.n ? "" : "\n",
		              np_tr(np_verdict_name(report->verdict)));
	if (report->findings.n)
		put(&self, np_tr("\n## Findings\n\n"));
	for (size_t i = 0; i < report->findings.n; i++)
		put_finding(&self, report->findings.v[i]);
	for (size_t i = 0; i < report->tables.n; i++)
		put_table(&self, report->tables.v[i]);
	if (report->notes.n)
		put(&self, np_tr("\n## Notes\n\n"));
	for (size_t i = 0; i < report->notes.n; i++)
		put_cstr(&self, "- ", report->notes.v[i], "\n");
	np_buf_release(&self.scratch);
}
