/*
 * Raw dumps: find those that are new, have them exported, see whether anything came of it.
 */
#ifndef NP_COLLECT_DUMPS_H
#define NP_COLLECT_DUMPS_H

#include "base/err.h"
#include "base/mem.h"
#include "base/time.h"

struct np_dump {
	const char *path;
	bool msprof;     /* PROF_*, which the program msprof made and exports itself */
	bool raw;        /* FRAMEWORK or PROF_* are there */
	bool complete;   /* new deliverables of every wanted type are there */
	const char *how; /* "analyse", "parser", "by itself"; NULL: not exported */
	double seconds;
};

struct np_dumps {
	NP_VEC(struct np_dump) all; /* sorted by path */
	size_t old;                 /* *_ascend_pt that are not newer than the start */
};

/* Directories *_ascend_pt, and PROF_* outside of them, below `root`, links not followed, that
 * hold something written since
 * start_ns. A root that is not there has none. Texts in the arena. */
enum np_status np_dumps_find(struct np_arena *arena, const char *root, np_ns start_ns,
                             struct np_dumps *out, struct np_err *err);

/* Are there new, non-empty deliverables: trace_view.json and, if `kernels`, kernel_details.csv
 * for text; ascend_pytorch_profiler*.db for db? They may be half written still. */
bool np_dump_is_complete(const char *path, np_ns start_ns, bool text, bool db, bool kernels);
/* Did an export come to its end: is analyse.done there, and not older than the start? */
bool np_dump_is_finished(const char *path, np_ns start_ns);
/* Set that mark, as analyse() does, for an export below it that ended well. */
void np_dump_set_finished(const char *path);

/* The same for PROF_*: a new op_summary_*.csv, or msprof_*.db. */
bool np_dump_msprof_is_complete(const char *path, np_ns start_ns);

void np_dumps_release(struct np_dumps *self);

#endif
