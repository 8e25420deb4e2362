/*
 * One page that needs nothing else:
 *
 *   policy (hashes) · style · <script type="application/json"> data · script
 *
 * The data are never code: the browser does not run that type, np_json_quote()
 * writes every '<' as \u003c so that none can end the element, and the script
 * makes text nodes of them only (ui/report/dom.ts).
 *
 * The page has a limit. Everything that repeats is a list of rows, written into
 * a buffer of its own first; where they are too much together, the longest lists
 * are cut at one level, like hedges:
 *
 *   bytes  ┆ ▒
 *   level ─┆─▒─────▒──
 *          ┆ █  █  █  █      ▒ left out, and told
 */
#include <math.h>

#include "io/json.h"
#include "report/embed.h"
#include "report/html_hashes.h"
#include "report/html_words.h"
#include "report/write.h"

enum {
	TEXT_BYTES = 4096,   /* of one text; beyond it is cut */
	EVIDENCE_SHOWN = 20, /* per finding */
	INPUTS_SHOWN = 100,  /* paths in the heading */
	EXACT_IN_JS = 53,    /* bits of an integer that a double holds */
};

/* A list of rows, comma separated. */
struct list {
	struct np_buf text;
	NP_VEC(size_t) ends; /* offset behind each row */
	size_t total, shown; /* rows there are, rows that are written */
};

struct writer {
	struct np_buf *out; /* where the next part goes */
	struct np_buf safe;
	size_t max_bytes; /* a list longer than that need not be written on */
	bool failed;
};

/* ── JSON that is inert in HTML ── */

static void put(struct writer *self, const char *text)
{
	np_buf_add_cstr(self->out, text);
}

/* At most TEXT_BYTES of it, ending with a whole character. */
static np_str cut(np_str text, bool *was_cut)
{
	*was_cut = text.len > TEXT_BYTES;
	if (!*was_cut)
		return text;
	size_t len = TEXT_BYTES;
	while (len > TEXT_BYTES - 4 && ((unsigned char)text.ptr[len] & 0xc0) == 0x80)
		len--;
	return np_str_sub(text, 0, len);
}

static void put_str(struct writer *self, np_str text)
{
	bool was_cut;
	np_buf_clear(&self->safe);
	np_text_safe(&self->safe, cut(text, &was_cut));
	if (was_cut)
		np_buf_add_cstr(&self->safe, "…");
	self->failed = self->failed || self->safe.failed;
	np_json_quote(self->out, np_buf_str(&self->safe)); /* escapes what HTML would see */
}

static void put_text(struct writer *self, const char *text)
{
	if (text)
		put_str(self, np_str_of(text));
	else
		put(self, "null");
}

static void put_member(struct writer *self, const char *lead, const char *text)
{
	put(self, lead);
	put_text(self, text);
}

static void put_i64(struct writer *self, int64_t value)
{
	int64_t limit = INT64_C(1) << EXACT_IN_JS;
	bool exact = value > -limit && value < limit;
	put(self, exact ? "" : "\"");
	np_write_i64(self->out, value);
	put(self, exact ? "" : "\"");
}

static void put_number(struct writer *self, const char *lead, bool there, double value)
{
	put(self, lead);
	if (there)
		np_json_number(self->out, value);
	else
		put(self, "null");
}

/* ── lists ── */

static bool is_full(const struct writer *self, const struct list *list)
{
	return self->failed || list->text.failed || list->text.len > self->max_bytes;
}

static void end_row(struct writer *self, struct list *list)
{
	if (!np_vec_push(&list->ends, list->text.len))
		self->failed = true;
}

static void begin_row(struct writer *self, struct list *list)
{
	self->out = &list->text;
	if (list->ends.n)
		put(self, ",\n");
}

static void put_finding(struct writer *self, const struct np_finding *finding)
{
	size_t n = finding->evidence.n < EVIDENCE_SHOWN ? finding->evidence.n : EVIDENCE_SHOWN;
	bool has = finding->has_impact;
	put_member(self, "{\"severity\":", np_severity_name(finding->severity));
	put_member(self, ",\"code\":", finding->code);
	put_member(self, ",\"title\":", finding->title);
	put_member(self, ",\"detail\":", finding->detail);
	put(self, ",\"evidence\":[");
	for (size_t i = 0; i < n; i++) {
		const struct np_evidence *evidence = &finding->evidence.v[i];
		put_member(self, i ? ",{\"file\":" : "{\"file\":", evidence->file);
		put_member(self, ",\"column\":", evidence->column);
		put_member(self, ",\"rows\":", evidence->rows);
		put_member(self, ",\"text\":", evidence->text);
		put(self, "}");
	}
	np_buf_printf(self->out, "],\"evidence_total\":%zu", finding->evidence.n);
	put_number(self, ",\"impact_us\":", has && !isnan(finding->impact_us), finding->impact_us);
	put_number(self, ",\"impact_share\":", has && !isnan(finding->impact_share),
	           finding->impact_share);
	put_member(self, ",\"advice\":", finding->advice);
	put_member(self, ",\"command\":", finding->command);
	put(self, "}");
}

/* The gravest first, so that these stay when the page is full. */
static void list_findings(struct writer *self, struct list *list, const struct np_report *report)
{
	list->total = report->findings.n;
	for (int severity = NP_ERROR; severity >= NP_INFO; severity--)
		for (size_t i = 0; i < report->findings.n && !is_full(self, list); i++) {
			if ((int)report->findings.v[i]->severity != severity)
				continue;
			begin_row(self, list);
			put_finding(self, report->findings.v[i]);
			end_row(self, list);
		}
}

static void list_notes(struct writer *self, struct list *list, const struct np_report *report)
{
	list->total = report->notes.n;
	for (size_t i = 0; i < report->notes.n && !is_full(self, list); i++) {
		begin_row(self, list);
		put_text(self, report->notes.v[i]);
		end_row(self, list);
	}
}

static void put_cell(struct writer *self, enum np_col_type type, const struct np_cell *cell)
{
	if (cell->na) {
		put(self, "null");
		return;
	}
	switch (type) {
	case NP_COL_TEXT:
		put_str(self, cell->word ? np_str_of(np_tr(cell->s.ptr)) : cell->s);
		break;
	case NP_COL_TIME_NS: /* always beyond what a double holds */
		put(self, "\"");
		np_write_i64(self->out, cell->i);
		put(self, "\"");
		break;
	case NP_COL_INT:
	case NP_COL_DUR_NS:
	case NP_COL_BYTES:
		put_i64(self, cell->i);
		break;
	case NP_COL_REAL:
	case NP_COL_PERCENT:
		np_json_number(self->out, cell->r);
		break;
	case NP_COL_BOOL:
		put(self, cell->b ? "true" : "false");
		break;
	}
}

static void list_rows(struct writer *self, struct list *list, const struct np_table *table)
{
	list->total = np_table_rows(table);
	for (size_t r = 0; r < list->total && !is_full(self, list); r++) {
		begin_row(self, list);
		for (size_t c = 0; c < table->n_columns; c++) {
			put(self, c ? "," : "[");
			put_cell(self, table->columns[c].type, np_table_cell(table, r, c));
		}
		put(self, "]");
		end_row(self, list);
	}
}

/* The lists shortened so that they have at most `budget` bytes together. */
static void fit(struct list *lists, size_t n, size_t budget)
{
	size_t low = 0, high = budget;
	while (low < high) { /* the highest level that fits */
		size_t level = low + (high - low + 1) / 2, sum = 0;
		for (size_t i = 0; i < n; i++)
			sum += lists[i].text.len < level ? lists[i].text.len : level;
		if (sum <= budget)
			low = level;
		else
			high = level - 1;
	}
	for (size_t i = 0; i < n; i++) {
		struct list *list = &lists[i];
		list->shown = list->ends.n;
		while (list->shown && list->ends.v[list->shown - 1] > low)
			list->shown--;
	}
}

static void put_list(struct writer *self, const struct list *list)
{
	size_t len = list->shown ? list->ends.v[list->shown - 1] : 0;
	np_buf_printf(self->out, "\"total\":%zu,\"rows\":[", list->total);
	np_buf_add(self->out, list->text.ptr, len);
	put(self, "]");
}

/* ── the page ── */

static void put_columns(struct writer *self, const struct np_table *table)
{
	static const char *const types[] = {
		[NP_COL_TEXT] = "text",       [NP_COL_INT] = "int",      [NP_COL_REAL] = "real",
		[NP_COL_DUR_NS] = "duration", [NP_COL_TIME_NS] = "time", [NP_COL_BYTES] = "bytes",
		[NP_COL_PERCENT] = "percent", [NP_COL_BOOL] = "bool",
	};
	struct np_buf heading = {0};
	put(self, ",\"columns\":[");
	for (size_t c = 0; c < table->n_columns; c++) {
		const struct np_column *column = &table->columns[c];
		np_buf_clear(&heading);
		np_column_heading(&heading, column);
		self->failed = self->failed || heading.failed;
		put_member(self, c ? ",{\"name\":" : "{\"name\":", column->name);
		put(self, ",\"heading\":");
		put_str(self, np_buf_str(&heading));
		put_member(self, ",\"type\":", types[column->type]);
		put_member(self, ",\"help\":", column->help ? np_tr(column->help) : "");
		put(self, "}");
	}
	put(self, "],");
	np_buf_release(&heading);
}

static void put_words(struct writer *self)
{
	static const struct {
		const char *key, *english;
	} words[] = {
#define X(key, english) {key, english},
		NP_HTML_WORDS(X)
#undef X
	};
	put(self, ",\n\"words\":{");
	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		put_member(self, i ? "," : "", words[i].key);
		put_member(self, ":", np_tr(words[i].english));
	}
	put(self, "}");
}

/* lists: findings, notes, then one per table */
static void put_data(struct writer *self, const struct np_report *report, const struct list *lists)
{
	size_t inputs = report->inputs.n < INPUTS_SHOWN ? report->inputs.n : INPUTS_SHOWN;
	put_member(self, "{\"version\":", NPUPROF_VERSION);
	put_member(self, ",\"lang\":", np_lang() == NP_LANG_ZH ? "zh" : "en");
	put_member(self, ",\"command\":", report->command);
	put_member(self, ",\"verdict\":",
	           report->verdict == NP_VERDICT_NONE ? NULL : np_verdict_name(report->verdict));
	put(self, ",\"inputs\":[");
	for (size_t i = 0; i < inputs; i++)
		put_member(self, i ? "," : "", report->inputs.v[i]);
	put(self, "]");
	put_words(self);
	put(self, ",\n\"findings\":{");
	put_list(self, &lists[0]);
	put(self, "},\n\"notes\":{");
	put_list(self, &lists[1]);
	put(self, "},\n\"tables\":[");
	for (size_t i = 0; i < report->tables.n; i++) {
		put_member(self, i ? ",\n{\"id\":" : "\n{\"id\":", report->tables.v[i]->id);
		put_member(self, ",\"title\":", report->tables.v[i]->title);
		put_columns(self, report->tables.v[i]);
		put_list(self, &lists[2 + i]);
		put(self, "}");
	}
	put(self, "]}");
}

static void put_page(struct writer *self, const struct np_report *report, const struct list *lists)
{
	np_buf_printf(self->out,
	              "<!doctype html>\n<html lang=\"%s\">\n<head>\n<meta charset=\"utf-8\">\n"
	              "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
	              "script-src 'sha256-%s'; style-src 'sha256-%s'; base-uri 'none'; "
	              "form-action 'none'\">\n<meta name=\"viewport\" "
	              "content=\"width=device-width, initial-scale=1\">\n<title>npuprof</title>\n"
	              "<style>",
	              np_lang() == NP_LANG_ZH ? "zh-CN" : "en", NP_HTML_SCRIPT_SHA256,
	              NP_HTML_STYLE_SHA256);
	np_buf_add_str(self->out, np_embedded_style());
	np_buf_printf(
		self->out,
		"</style>\n</head>\n<body>\n<noscript>%s</noscript>\n<main id=\"app\"></main>\n"
		"<script type=\"application/json\" id=\"data\">",
		np_tr("This page needs JavaScript; npuprof report --format md does not."));
	put_data(self, report, lists);
	put(self, "</script>\n<script>");
	np_buf_add_str(self->out, np_embedded_script());
	put(self, "</script>\n</body>\n</html>\n");
}

static void fill_lists(struct writer *self, struct list *lists, const struct np_report *report)
{
	list_findings(self, &lists[0], report);
	list_notes(self, &lists[1], report);
	for (size_t i = 0; i < report->tables.n; i++)
		list_rows(self, &lists[2 + i], report->tables.v[i]);
	for (size_t i = 0; i < report->tables.n + 2; i++)
		self->failed = self->failed || lists[i].text.failed;
}

enum np_status np_write_html(const struct np_report *report, const struct np_write_options *options,
                             struct np_buf *out, struct np_err *err)
{
	size_t n = report->tables.n + 2;
	size_t max_bytes = options->max_bytes ? options->max_bytes : NP_HTML_BYTES;
	enum np_status status = NP_OK;
	struct writer self = {.max_bytes = max_bytes};
	struct np_buf frame = {0};
	struct list *lists = np_calloc(n, sizeof *lists);
	if (!lists)
		return np_err_nomem(err);
	self.out = &frame; /* the page without rows, to know what is left for them */
	put_page(&self, report, lists);
	fill_lists(&self, lists, report);
	size_t used = frame.len + 32 * n; /* the totals have more digits than the frame's */
	self.failed = self.failed || frame.failed;
	np_buf_release(&frame);
	if (self.failed) {
		status = np_err_nomem(err);
	} else if (used >= max_bytes) {
		status = np_err_set(err, NP_E_LIMIT, NULL,
		                    "a page without rows has %zu bytes, "
		                    "more than %zu",
		                    used, max_bytes);
	} else {
		fit(lists, n, max_bytes - used);
		self.out = out;
		put_page(&self, report, lists);
		out->failed = out->failed || self.failed;
	}
	for (size_t i = 0; i < n; i++) {
		np_buf_release(&lists[i].text);
		np_vec_release(&lists[i].ends);
	}
	np_free(lists);
	np_buf_release(&self.safe);
	return status;
}
