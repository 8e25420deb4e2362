/*
 * What known lines of logs mean (requirements R11, R61, R62, R65; torch_npu.md §1.3, §4.5).
 *
 * One table for the gate, which reads the parsers' logs, and for `run`, which reads what the
 * command printed. A sign only ever adds to what the files say: a log without one proves
 * nothing (R108). Pure functions over bytes.
 */
#ifndef NP_GATE_LOG_SIGNS_H
#define NP_GATE_LOG_SIGNS_H

#include <stdbool.h>

#include "base/str.h"

struct np_log_sign {
	const char *text;    /* what the line holds; letters as they are written */
	const char *also;    /* and this too; NULL: nothing more */
	bool fatal;          /* the export failed, or what it gave is not whole: the gate fails */
	bool about_run;      /* of the running program, not of an export; the gate passes it */
	const char *meaning; /* one line, marked for translation; use np_tr() */
	const char *advice;  /* what to do, likewise; NULL: np_log_fatal_advice, or nothing more */
	const char *command; /* to copy; NULL */
};

/* For the fatal ones, marked for translation. */
extern const char np_log_fatal_advice[];

size_t np_log_n_signs(void);
const struct np_log_sign *np_log_sign(size_t i);

/* The sign that a line (without escape sequences) shows: the first of the table, its number;
 * np_log_n_signs() when there is none. Linear in the line and the table. */
size_t np_log_sign_of(np_str line);

/* Drop escape sequences (ESC [ … letter; ESC ] … BEL or ESC \; ESC and a character) in place,
 * so that words are found (R108). Returns the new length. Linear. */
size_t np_log_strip_ansi(char *text, size_t len);

#endif
