/*
 * A report: everything that a command has to say, before anyone renders it.
 *
 *   report { tool, command, inputs[], tables[], findings[], verdict, exit_code, notes[] }
 *   table  { id, title, columns[{name, unit, type, help}], rows }
 *   finding{ code, severity, title, detail, evidence[], impact, advice, command }
 *
 * Commands and analyses fill it; writers (writer.h) render it and know nothing
 * of analyses. Building cannot fail half-way: when memory runs out the report
 * remembers it, further calls do nothing, and np_report_ok() says so once at
 * the end. All texts are copied.
 *
 * Threads: a report belongs to one thread at a time.
 */
#ifndef NP_REPORT_REPORT_H
#define NP_REPORT_REPORT_H

#include "base/err.h"
#include "base/mem.h"
#include "base/time.h"

enum np_col_type {
	NP_COL_TEXT,
	NP_COL_INT,     /* int64, e.g. counts and ids */
	NP_COL_REAL,    /* double in `unit` */
	NP_COL_DUR_NS,  /* int64 ns; text shows us, json and csv give ns */
	NP_COL_TIME_NS, /* int64 ns since the epoch; text shows date and time, csv and json ns */
	NP_COL_BYTES,   /* int64; text shows KiB, MiB, …, json and csv give bytes */
	NP_COL_PERCENT, /* double 0…1; text shows 12.3 %, json and csv the share */
	NP_COL_BOOL,
};

struct np_column {
	const char *name; /* key in json, header in csv and text: lower_snake */
	const char *unit; /* "us", "bytes", "" */
	enum np_col_type type;
	const char *help; /* one sentence, with the source of a formula */
};

enum np_severity { NP_INFO, NP_WARNING, NP_ERROR };
enum np_verdict { NP_VERDICT_NONE, NP_VERDICT_PASS, NP_VERDICT_FAIL, NP_VERDICT_UNKNOWN };

const char *np_severity_name(enum np_severity severity); /* "info", "warning", "error" */
const char *np_verdict_name(enum np_verdict verdict);    /* "NONE", "PASS", "FAIL", "UNKNOWN" */

struct np_cell {
	bool na;   /* not available: null in json, empty in csv, "-" in text */
	bool word; /* TEXT: in the reader's language but in json and csv; ends in NUL */
	union {
		int64_t i;
		double r;
		np_str s;
		bool b;
	};
};

struct np_table {
	const char *id, *title;
	const struct np_column *columns;
	size_t n_columns;
	NP_VEC(struct np_cell) cells; /* row-major, n_columns each */
	struct np_report *report;
};

struct np_evidence {
	const char *file;   /* path, or NULL */
	const char *column; /* or table column; NULL when the whole file is meant */
	const char *rows;   /* which rows, as text: "1-200", "Step Id = 50"; or NULL */
	const char *text;   /* what is seen there */
};

struct np_finding {
	const char *code; /* UPPER_SNAKE, stable, documented in docs/findings.md */
	enum np_severity severity;
	const char *title;  /* one line */
	const char *detail; /* why it matters; or NULL */
	NP_VEC(struct np_evidence) evidence;
	bool has_impact;
	double impact_us, impact_share; /* upper bound; share of the step, 0…1 */
	const char *advice;             /* what to change; or NULL */
	const char *command;            /* a command to copy; or NULL */
	struct np_report *report;
};

struct np_report {
	struct np_arena arena;
	const char *command;
	NP_VEC(const char *) inputs;
	NP_VEC(struct np_table *) tables;
	NP_VEC(struct np_finding *) findings;
	NP_VEC(const char *) notes;
	enum np_verdict verdict;
	int exit_code;
	bool failed;   /* memory ran out somewhere */
	bool mistaken; /* a cell of the wrong type was noted */
};

/* NULL: out of memory. */
struct np_report *np_report_new(const char *command);
void np_report_free(struct np_report *self);
enum np_status np_report_ok(const struct np_report *self, struct np_err *err);

void np_report_input(struct np_report *self, const char *path);
void np_report_note(struct np_report *self, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* `columns` must be static. Never NULL: when memory is out, a dummy takes the calls. */
struct np_table *np_report_table(struct np_report *self, const char *id, const char *title,
                                 const struct np_column *columns, size_t n_columns);
#define NP_REPORT_TABLE(report, id, title, columns) \
	np_report_table((report), (id), (title), (columns), sizeof(columns) / sizeof *(columns))

/* Cells are added left to right; a row is complete after n_columns of them (what an
 * unfinished last row lacks is not available). A cell whose type is not the column's
 * is not available either, and a note says that npuprof has a defect. */
void np_cell_text(struct np_table *table, np_str text);
void np_cell_cstr(struct np_table *table, const char *text); /* NULL: not available */
/* A word of npuprof's own, e.g. the name of a class: people read it in their language,
 * json and csv keep it as it is. */
void np_cell_word(struct np_table *table, const char *word);
void np_cell_printf(struct np_table *table, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void np_cell_int(struct np_table *table, int64_t value); /* INT, DUR_NS, TIME_NS, BYTES */
void np_cell_real(struct np_table *table, double value); /* REAL, PERCENT; NaN: not available */
void np_cell_bool(struct np_table *table, bool value);
void np_cell_na(struct np_table *table);
size_t np_table_rows(const struct np_table *table);
/* Never NULL: beyond the table there is a cell that is not available. */
const struct np_cell *np_table_cell(const struct np_table *table, size_t row, size_t column);

/* Never NULL, as above. `code` must be static. */
struct np_finding *np_report_finding(struct np_report *self, const char *code,
                                     enum np_severity severity, const char *title_fmt, ...)
	__attribute__((format(printf, 4, 5)));
void np_finding_detail(struct np_finding *finding, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void np_finding_advice(struct np_finding *finding, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* A command line to copy. Paths in it must have gone through np_shell_quote(). */
void np_finding_command(struct np_finding *finding, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* file, column, rows may be NULL. */
void np_finding_evidence(struct np_finding *finding, const char *file, const char *column,
                         const char *rows, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));
void np_finding_impact(struct np_finding *finding, double impact_us, double impact_share);

/* Drop every finding that says what one before it says: same code, same title. Linear. */
void np_report_unite_findings(struct np_report *self);

/* How many findings have at least this severity. */
size_t np_report_count(const struct np_report *self, enum np_severity at_least);

/* A path as one shell word: as it is when harmless, else in single quotes; with ./ in
 * front when it begins with a dash. What np_text_safe() would alter is written as
 * $'\033' (bash, ksh, zsh, POSIX 2024), so that the shown line still is the command.
 * In the report's arena; "" when memory is out. */
const char *np_shell_quote(struct np_report *self, const char *word);

#endif
