/*
 * Which logs there are: the words of a command line become files.
 *
 *   a file             itself
 *   a run directory    its comm/…, and what its events tell of anchors (docs/formats/inject.md)
 *   a directory        all *.nplog below it, 10 levels deep, links not followed
 *
 * Sorted by path, each once. A capture (…_ascend_pt, PROF_…) is not entered.
 */
#ifndef NP_COLLECT_COMM_FIND_H
#define NP_COLLECT_COMM_FIND_H

#include "base/err.h"
#include "base/mem.h"

enum { NP_COMM_FIND_DEPTH = 10, NP_COMM_FIND_MAX = 100000 };

/* An anchor of a stage that was asked for and found nowhere, as the injected package says it. A
 * launcher does not have what its workers have, so one process that found it is enough. */
struct np_clog_anchor {
	const char *stage, *target, *reason, *near; /* near: names, "a, b"; "" */
	size_t processes;                           /* that say so */
	size_t file;                                /* the last that did: of its events */
};

struct np_clog_problem {
	const char *path, *text;
};

struct np_clog_found {
	struct np_arena arena;
	NP_VEC(const char *) logs;
	NP_VEC(const char *) events;             /* files of the events */
	NP_VEC(struct np_clog_anchor) anchors;   /* not found */
	NP_VEC(const char *) placed;             /* "stage target" of those that were */
	NP_VEC(struct np_clog_problem) problems; /* directories that cannot be read */
};

/* Errors: E_NOTFOUND (no such path, or no log below any of them), E_NOMEM, E_LIMIT. *out is
 * to be released in every case. */
enum np_status np_clog_find(char *const *words, size_t n, struct np_clog_found *out,
                            struct np_err *err);
void np_clog_found_release(struct np_clog_found *self);

#endif
