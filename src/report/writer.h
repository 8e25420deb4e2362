/*
 * Writers: a report rendered as text, json, csv, md or html into a buffer.
 *
 * Text is for people: aligned tables by display width (East Asian wide
 * characters count two), cut to the terminal's width, colour only when asked.
 * Anything from a capture is made harmless first: control characters and escape
 * sequences become visible, so a name cannot drive the terminal.
 */
#ifndef NP_REPORT_WRITER_H
#define NP_REPORT_WRITER_H

#include "report/report.h"

enum np_format { NP_FORMAT_TEXT, NP_FORMAT_JSON, NP_FORMAT_CSV, NP_FORMAT_MD, NP_FORMAT_HTML };

/* "text", "json", "csv", "md", "html"; false when unknown. */
bool np_format_parse(const char *name, enum np_format *out);

enum { NP_HTML_BYTES = 1000000 };

struct np_write_options {
	enum np_format format;
	bool color;        /* ANSI colours in text */
	unsigned width;    /* columns of the terminal; 0: do not cut */
	bool verbose;      /* text: all evidence, help lines; else a few */
	const char *table; /* csv: only this table id, e.g. "findings"; NULL: all */
	size_t max_rows;   /* text: per table unless verbose; md: per table, and pieces of evidence
	                    * per finding; 0: all */
	size_t max_bytes;  /* html: of the page; 0: NP_HTML_BYTES */
};

/*
 * Append the rendered report to `out`. E_NOMEM (what `out` got is then incomplete);
 * E_NOTFOUND for an unknown table.
 *
 * text  headings tell the unit that is shown: dur_ns is "dur (us)". Where the width is
 *       too small the widest text columns lose first; numbers are never cut.
 * json  docs/schema/report.schema.json. Durations and times are integers in ns.
 * csv   RFC 4180. Control characters are shown as in text, but tabs and line breaks are
 *       kept. The findings are the table "findings" (code, severity, title, detail,
 *       advice, command); without `table` they follow when there are any, or nothing
 *       else. A line "# table: id" stands before each when there are several.
 * md    for GitHub: tables, findings as a list; figures as in text.
 * html  one page that needs nothing else: no network, a policy (CSP) that admits the
 *       page's own script and style by their hashes only, and everything from the report
 *       as JSON that the script turns into text nodes. Beyond max_bytes the longest tables
 *       lose rows at their ends, and the page tells how many.
 */
enum np_status np_report_write(const struct np_report *report,
                               const struct np_write_options *options, struct np_buf *out,
                               struct np_err *err);

/* Append `text` as it may be shown on a terminal: control characters, C1, bidi
 * overrides and invalid UTF-8 as visible escapes (\x1b, \u202e), else unchanged. */
void np_text_safe(struct np_buf *out, np_str text);

/* Columns that `text` takes on a terminal (after np_text_safe). */
size_t np_text_width(np_str text);

#endif
