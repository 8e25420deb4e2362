/*
 * `plan route`: is a profiler wired into this source tree already, or must the capture be
 * injected? (R55, R117)
 *
 *   A  the framework's own profiler: executor/utils/profiler_context.py is there, or code and
 *      configuration of executor/ and models/ know enable_profiler; elsewhere a profiler of
 *      torch_npu whose step() is called in a loop, or behind a switch of the program's own
 *   B  none, or single uses of the API: inject (plan snippet)
 *
 * Comments and doc strings do not count, nor do tests and documents for "wired". Links are
 * not followed; .git and the like, binary files and large files are left out. Everything is
 * sorted by path. What was left out for its limits is told, and B is then not certain.
 */
#ifndef NP_COLLECT_ROUTE_H
#define NP_COLLECT_ROUTE_H

#include <stdbool.h>

#include "base/err.h"
#include "base/mem.h"
#include "report/report.h"

enum np_route_kind {
	NP_ROUTE_CONTEXT, /* the file executor/utils/profiler_context.py */
	NP_ROUTE_RECIPES, /* enable_profiler below executor/ or models/ */
	NP_ROUTE_SWITCH,  /* a switch in code: enable_profiler, --profile */
	NP_ROUTE_KEY,     /* a key of a configuration file: enable_profiler, profile, … */
	NP_ROUTE_LOOP,    /* step() of a profiler, or a `with` of one, in a loop */
	NP_ROUTE_STEP,    /* step() of a profiler elsewhere */
	NP_ROUTE_API,     /* torch_npu.profiler, its tensorboard_trace_handler */
	NP_ROUTE_TORCH,   /* torch.profiler, which records no NPU by itself */
	NP_ROUTE_COMMENT, /* enable_profiler in a comment */
	NP_ROUTE_KINDS,
};
const char *np_route_kind_name(enum np_route_kind kind); /* a word for people, NP_N() */

struct np_route_hit {
	enum np_route_kind kind;
	const char *file; /* relative to the root */
	uint64_t line;    /* from 1; 0: the file as such */
	const char *text; /* the line, trimmed and cut */
	bool aside;       /* below tests or docs */
};

enum {
	NP_ROUTE_FILE_MAX = 2 << 20, /* bytes; larger ones are no source */
	NP_ROUTE_FILES_MAX = 50000,
	NP_ROUTE_DEPTH_MAX = 40,
	NP_ROUTE_HITS_MAX = 20000, /* the kinds are still counted */
};

struct np_route {
	struct np_arena arena;
	NP_VEC(struct np_route_hit) hits;
	uint64_t counts[NP_ROUTE_KINDS]; /* without those aside */
	uint64_t files, links, unreadable, large, binary;
	bool cut; /* a limit ended the walk */
};

/* Text of one file into `self`; `file` as it will be shown, kept as a pointer. What it is
 * goes by the name's ending: configuration, else Python. */
enum np_status np_route_scan(struct np_route *self, const char *file, np_str text,
                             struct np_err *err);

/* Walk the tree. Release with np_route_release() whatever this returns. Errors:
 * E_NOTFOUND, E_USAGE when it is no directory, E_ACCESS for the root itself. */
enum np_status np_route_walk(struct np_route *self, const char *root, struct np_err *err);
void np_route_release(struct np_route *self);

enum np_route_path { NP_ROUTE_A_RECIPES, NP_ROUTE_A_OTHER, NP_ROUTE_B };
enum np_route_path np_route_choose(const struct np_route *self);

/* The report. Exit code 3 where B is said of a tree that was not read completely. */
enum np_status np_plan_route(const char *root, struct np_report *report, struct np_err *err);

#endif
