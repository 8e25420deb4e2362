/*
 * What the injected package did in the processes of a run: events/<pid>.jsonl
 * (docs/formats/inject.md), and what follows from it for each target.
 */
#ifndef NP_COLLECT_EVENTS_H
#define NP_COLLECT_EVENTS_H

#include "base/mem.h"
#include "profile/profile.h"

/* One line. Texts are "" and numbers NP_NO_I64 where the line has none. */
struct np_run_event {
	const char *event, *target, *dir, *error, *reason, *kind, *python, *method, *state, *where;
	/* python: the path of the interpreter, `executable`, which older packages do not tell */
	const char *near, *argv, *overridden_by; /* lists, joined by ", " and by " " */
	int64_t pid, ppid, rank, call, calls;
	double time, seconds; /* NaN */
	bool library;
};

/* E_FORMAT when the line is no object with a text `event`. Memory from the arena. */
enum np_status np_run_event_parse(struct np_arena *arena, np_str line, struct np_run_event *out,
                                  struct np_err *err);

struct np_run_events {
	NP_VEC(struct np_run_event) all; /* by file, then as they were written */
	size_t files, broken;            /* lines that are none: a process was killed in writing */
};

/* All of a directory; one that is not there has none. Memory of texts from the arena. */
enum np_status np_run_events_read(struct np_arena *arena, const char *dir,
                                  struct np_run_events *out, struct np_err *err);
void np_run_events_release(struct np_run_events *self);

/* What became of one target ("module:qualname") over all processes. */
struct np_target_facts {
	size_t wrapped, not_found, skipped, profiling, profiled; /* processes */
	int64_t most_calls; /* of one process; NP_NO_I64: no process lived to tell */
	int64_t sum_calls;
	size_t told_calls;         /* processes that told */
	bool imported;             /* some process imported its module */
	const char *near, *reason; /* of the last not_found, of a process that imported it if any */
	const char *overridden_by; /* subclasses whose own method is called instead; "" */
};
void np_target_facts(const struct np_run_events *events, const char *target,
                     struct np_target_facts *out);

/* How many events of this name there are. */
size_t np_run_events_count(const struct np_run_events *events, const char *name);
/* Has this rank recorded? A process without RANK counts as 0. */
bool np_run_events_recorded(const struct np_run_events *events, int64_t rank);
/* Have all ranks that wrapped a target, and are wanted, finished recording? `ranks`: n_ranks
 * wanted ones, or NULL for all. False while nobody has, and while one that lives is recording. */
bool np_run_events_done(const struct np_run_events *events, const int64_t *ranks, size_t n_ranks);

#endif
