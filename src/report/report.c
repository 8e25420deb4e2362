#include "report/report.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/intern.h"
#include "report/lang.h"
#include "report/writer.h"

/* What callers get when memory is out. Never written: every setter looks for the report first. */
static struct np_table no_table = {.id = "", .title = ""};
static struct np_finding no_finding = {.code = "", .title = ""};

static const struct np_cell no_cell = {.na = true};

const char *np_severity_name(enum np_severity severity)
{
	static const char *const names[] = {NP_N("info"), NP_N("warning"), NP_N("error")};
	return (unsigned)severity < 3 ? names[severity] : "error";
}

const char *np_verdict_name(enum np_verdict verdict)
{
	static const char *const names[] = {"NONE", NP_N("PASS"), NP_N("FAIL"), NP_N("UNKNOWN")};
	return (unsigned)verdict < 4 ? names[verdict] : "UNKNOWN";
}

static bool usable(const struct np_report *self)
{
	return self && !self->failed;
}

/* A copy in the arena; NULL for NULL, and (with `failed` set) when memory is out. */
static const char *copy(struct np_report *self, const char *text)
{
	if (!text)
		return NULL;
	const char *mine = np_arena_cstr(&self->arena, np_str_of(text));
	if (!mine)
		self->failed = true;
	return mine;
}

/* The format is looked up in the reader's language, and so is the only argument of "%s":
 * many texts come from tables of constants that way. */
static const char *format(struct np_report *self, const char *fmt, va_list ap)
{
	va_list again;
	if (strcmp(fmt, "%s") == 0) {
		va_copy(again, ap);
		const char *text = va_arg(again, const char *);
		va_end(again);
		return copy(self, text ? np_tr(text) : "");
	}
	fmt = np_tr(fmt);
	va_copy(again, ap);
	int len = vsnprintf(NULL, 0, fmt, again);
	va_end(again);
	char *text = len < 0 ? NULL : np_arena_alloc(&self->arena, (size_t)len + 1);
	if (!text) {
		self->failed = true;
		return NULL;
	}
	(void)vsnprintf(text, (size_t)len + 1, fmt, ap);
	return text;
}

struct np_report *np_report_new(const char *command)
{
	struct np_report *self = np_calloc(1, sizeof *self);
	if (!self)
		return NULL;
	np_arena_init(&self->arena);
	self->command = copy(self, command ? command : "");
	if (self->failed) {
		np_report_free(self);
		return NULL;
	}
	return self;
}

void np_report_free(struct np_report *self)
{
	if (!self)
		return;
	for (size_t i = 0; i < self->tables.n; i++)
		np_vec_release(&self->tables.v[i]->cells);
	for (size_t i = 0; i < self->findings.n; i++)
		np_vec_release(&self->findings.v[i]->evidence);
	np_vec_release(&self->inputs);
	np_vec_release(&self->tables);
	np_vec_release(&self->findings);
	np_vec_release(&self->notes);
	np_arena_release(&self->arena);
	np_free(self);
}

enum np_status np_report_ok(const struct np_report *self, struct np_err *err)
{
	return usable(self) ? NP_OK : np_err_nomem(err);
}

void np_report_input(struct np_report *self, const char *path)
{
	if (!usable(self) || !path)
		return;
	const char *mine = copy(self, path);
	if (!mine || !np_vec_push(&self->inputs, mine))
		self->failed = true;
}

void np_report_note(struct np_report *self, const char *fmt, ...)
{
	if (!usable(self))
		return;
	va_list ap;
	va_start(ap, fmt);
	const char *note = format(self, fmt, ap);
	va_end(ap);
	if (!note || !np_vec_push(&self->notes, note))
		self->failed = true;
}

/* ── tables ── */

struct np_table *np_report_table(struct np_report *self, const char *id, const char *title,
                                 const struct np_column *columns, size_t n_columns)
{
	if (!usable(self))
		return &no_table;
	struct np_table *table = np_arena_zalloc(&self->arena, sizeof *table);
	/* the elements are pointers: NOLINTNEXTLINE(bugprone-sizeof-expression) */
	if (!table || !np_vec_push(&self->tables, table)) {
		self->failed = true;
		return &no_table;
	}
	table->id = copy(self, id ? id : "");
	table->title = copy(self, title ? np_tr(title) : "");
	table->columns = columns;
	table->n_columns = n_columns;
	table->report = self;
	return self->failed ? &no_table : table;
}

/* The type the next cell must have; false when nothing may be added. */
static bool next_type(const struct np_table *table, enum np_col_type *type)
{
	if (!usable(table->report) || table->n_columns == 0)
		return false;
	*type = table->columns[table->cells.n % table->n_columns].type;
	return true;
}

static void push(struct np_table *table, struct np_cell cell)
{
	if (!np_vec_push(&table->cells, cell))
		table->report->failed = true;
}

/* A caller's mistake must not be read through the wrong member of the union,
 * nor go unseen: the cell is not available, and the report says so once. */
static void push_mistake(struct np_table *table)
{
	struct np_report *report = table->report;
	const char *name = table->columns[table->cells.n % table->n_columns].name;
	push(table, no_cell);
	if (report->mistaken)
		return;
	report->mistaken = true;
	np_report_note(report, "defect in npuprof: table %s, column %s: cell of another type",
	               table->id, name);
}

void np_cell_na(struct np_table *table)
{
	enum np_col_type type;
	if (next_type(table, &type))
		push(table, no_cell);
}

void np_cell_text(struct np_table *table, np_str text)
{
	enum np_col_type type;
	if (!next_type(table, &type))
		return;
	if (type != NP_COL_TEXT) {
		push_mistake(table);
		return;
	}
	struct np_cell cell = {.s = np_arena_dup(&table->report->arena, text)};
	if (cell.s.ptr)
		push(table, cell);
	else
		table->report->failed = true;
}

void np_cell_cstr(struct np_table *table, const char *text)
{
	if (text)
		np_cell_text(table, np_str_of(text));
	else
		np_cell_na(table);
}

void np_cell_word(struct np_table *table, const char *word)
{
	enum np_col_type type;
	if (!word) {
		np_cell_na(table);
		return;
	}
	if (!next_type(table, &type))
		return;
	if (type != NP_COL_TEXT) {
		push_mistake(table);
		return;
	}
	const char *text = np_arena_cstr(&table->report->arena, np_str_of(word));
	if (text)
		push(table, (struct np_cell){.word = true, .s = np_str_of(text)});
	else
		table->report->failed = true;
}

void np_cell_printf(struct np_table *table, const char *fmt, ...)
{
	enum np_col_type type;
	if (!next_type(table, &type))
		return;
	if (type != NP_COL_TEXT) {
		push_mistake(table);
		return;
	}
	va_list ap;
	va_start(ap, fmt);
	const char *text = format(table->report, fmt, ap);
	va_end(ap);
	if (text)
		push(table, (struct np_cell){.s = np_str_of(text)});
}

void np_cell_int(struct np_table *table, int64_t value)
{
	enum np_col_type type;
	if (!next_type(table, &type))
		return;
	if (type == NP_COL_INT || type == NP_COL_DUR_NS || type == NP_COL_TIME_NS ||
	    type == NP_COL_BYTES)
		push(table, (struct np_cell){.i = value});
	else
		push_mistake(table);
}

void np_cell_real(struct np_table *table, double value)
{
	enum np_col_type type;
	if (!next_type(table, &type))
		return;
	if (type != NP_COL_REAL && type != NP_COL_PERCENT)
		push_mistake(table);
	else if (isnan(value))
		push(table, no_cell);
	else
		push(table, (struct np_cell){.r = value});
}

void np_cell_bool(struct np_table *table, bool value)
{
	enum np_col_type type;
	if (!next_type(table, &type))
		return;
	if (type == NP_COL_BOOL)
		push(table, (struct np_cell){.b = value});
	else
		push_mistake(table);
}

size_t np_table_rows(const struct np_table *table)
{
	if (table->n_columns == 0)
		return 0;
	return table->cells.n / table->n_columns + (table->cells.n % table->n_columns != 0);
}

const struct np_cell *np_table_cell(const struct np_table *table, size_t row, size_t column)
{
	if (column >= table->n_columns || row >= np_table_rows(table))
		return &no_cell;
	size_t at = row * table->n_columns + column;
	return at < table->cells.n ? &table->cells.v[at] : &no_cell;
}

/* ── findings ── */

struct np_finding *np_report_finding(struct np_report *self, const char *code,
                                     enum np_severity severity, const char *title_fmt, ...)
{
	if (!usable(self))
		return &no_finding;
	struct np_finding *finding = np_arena_zalloc(&self->arena, sizeof *finding);
	/* the elements are pointers: NOLINTNEXTLINE(bugprone-sizeof-expression) */
	if (!finding || !np_vec_push(&self->findings, finding)) {
		self->failed = true;
		return &no_finding;
	}
	va_list ap;
	va_start(ap, title_fmt);
	finding->title = format(self, title_fmt, ap);
	va_end(ap);
	finding->code = code;
	finding->severity = severity;
	finding->report = self;
	return self->failed ? &no_finding : finding;
}

#define SET_FORMATTED(finding, member, fmt)                               \
	do {                                                              \
		if (!usable((finding)->report))                           \
			return;                                           \
		va_list ap;                                               \
		va_start(ap, fmt);                                        \
		(finding)->member = format((finding)->report, (fmt), ap); \
		va_end(ap);                                               \
	} while (0)

void np_finding_detail(struct np_finding *finding, const char *fmt, ...)
{
	SET_FORMATTED(finding, detail, fmt);
}

void np_finding_advice(struct np_finding *finding, const char *fmt, ...)
{
	SET_FORMATTED(finding, advice, fmt);
}

void np_finding_command(struct np_finding *finding, const char *fmt, ...)
{
	SET_FORMATTED(finding, command, fmt);
}

void np_finding_evidence(struct np_finding *finding, const char *file, const char *column,
                         const char *rows, const char *fmt, ...)
{
	struct np_report *report = finding->report;
	if (!usable(report))
		return;
	va_list ap;
	va_start(ap, fmt);
	const char *text = format(report, fmt, ap);
	va_end(ap);
	struct np_evidence evidence = {copy(report, file), copy(report, column), copy(report, rows),
	                               text};
	if (!report->failed && !np_vec_push(&finding->evidence, evidence))
		report->failed = true;
}

void np_finding_impact(struct np_finding *finding, double impact_us, double impact_share)
{
	if (!usable(finding->report))
		return;
	finding->has_impact = true;
	finding->impact_us = impact_us;
	finding->impact_share = impact_share;
}

void np_report_unite_findings(struct np_report *self)
{
	struct np_intern seen;
	struct np_buf key = {0};
	size_t kept = 0;
	if (!usable(self))
		return;
	bool ok = np_intern_init(&seen);
	for (size_t i = 0; ok && i < self->findings.n; i++) {
		struct np_finding *finding = self->findings.v[i];
		size_t known = seen.strings.n;
		np_buf_clear(&key);
		np_buf_add_cstr(&key, finding->code);
		np_buf_add_char(&key, '\n');
		np_buf_add_cstr(&key, finding->title);
		uint32_t id = key.failed ? NP_ID_NONE : np_intern_add(&seen, np_buf_str(&key));
		ok = id != NP_ID_NONE;
		if (id >= known)
			self->findings.v[kept++] = finding;
		else
			np_vec_release(&finding->evidence);
	}
	if (ok)
		self->findings.n = kept;
	else
		self->failed = true;
	np_buf_release(&key);
	np_intern_release(&seen);
}

size_t np_report_count(const struct np_report *self, enum np_severity at_least)
{
	size_t n = 0;
	for (size_t i = 0; i < self->findings.n; i++)
		n += self->findings.v[i]->severity >= at_least;
	return n;
}

/* ── shell words ── */

/* Each byte that must not be shown or that the quotes know as \ooo, three octal
 * digits, so that a digit behind it can't be taken for a part of it. */
static void quote_octal(struct np_buf *out, const char *word)
{
	np_buf_add_cstr(out, "$'");
	for (const char *p = word; *p; p++) {
		unsigned char byte = (unsigned char)*p;
		if (byte < 0x20 || byte >= 0x7f || byte == '\'' || byte == '\\')
			np_buf_printf(out, "\\%03o", byte);
		else
			np_buf_add_char(out, *p);
	}
	np_buf_add_char(out, '\'');
}

static void quote_single(struct np_buf *out, const char *word)
{
	np_buf_add_char(out, '\'');
	for (const char *p = word; *p; p++) {
		if (*p == '\'')
			np_buf_add_cstr(out, "'\\''");
		else
			np_buf_add_char(out, *p);
	}
	np_buf_add_char(out, '\'');
}

const char *np_shell_quote(struct np_report *self, const char *word)
{
	static const char harmless[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				       "0123456789_./:=@%+,-";
	if (!usable(self))
		return "";
	if (!word)
		word = "";
	struct np_buf path = {0}, shown = {0}, out = {0};
	if (word[0] == '-') /* else the command takes it for an option */
		np_buf_add_cstr(&path, "./");
	np_buf_add_cstr(&path, word);
	np_text_safe(&shown, np_buf_str(&path));
	if (path.len && strspn(word, harmless) == strlen(word))
		np_buf_add_str(&out, np_buf_str(&path));
	else if (!path.failed && !np_str_eq(np_buf_str(&shown), np_buf_str(&path)))
		quote_octal(&out, path.ptr);
	else
		quote_single(&out, path.ptr ? path.ptr : "");
	const char *quoted = NULL;
	if (!path.failed && !shown.failed && !out.failed)
		quoted = np_arena_cstr(&self->arena, np_buf_str(&out));
	self->failed = self->failed || !quoted;
	np_buf_release(&path);
	np_buf_release(&shown);
	np_buf_release(&out);
	return quoted ? quoted : "";
}
