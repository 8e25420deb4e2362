/*
 * Following a capture of dynamic_profile until the outputs of all ranks are there, then
 * judging them.
 *
 *   DIR/log/dp_*.log, monitor_dp_*.log ──▶ how far each rank has come
 *   prof_dir/…_ascend_pt               ──▶ which outputs are new, and complete
 *                                          └──▶ the gate, over these only
 *
 * An output belongs to the rank whose log has its host and pid, else to the rank that its
 * profiler_info names. It is new when its directory was changed at or after `since`, and the
 * time in its name is not before (the clock being that of the rank's log). It is
 * complete with ASCEND_PROFILER_OUTPUT/analyse.done; where analyse is off, with the
 * profiler_info that ends a dump.
 */
#ifndef NP_COLLECT_DYNAMIC_WATCH_H
#define NP_COLLECT_DYNAMIC_WATCH_H

#include "base/progress.h"
#include "collect/dynamic_log.h"
#include "gate/gate.h"

struct np_dyn_watch_options {
	const int64_t *ranks; /* expected; NULL: those with a log, by rank_list if that is on */
	size_t n_ranks;
	const char *prof_dir; /* NULL: that of the configuration */
	bool has_since;       /* else the time of the configuration */
	np_ns since;
	double timeout_seconds; /* 0: for ever */
	double poll_seconds;    /* 0: 0.5 */
	const char *shm_dir;
	bool has_profile; /* else kernel when the configuration can pass that only, cluster */
	struct np_gate_options gate; /* profile, tolerance, threads, progress */
};

/*
 * Watch the configuration's directory `dir`. The table `ranks` tells every rank, findings why
 * some are missing; then the report of the gate. Exit code: the gate's; 3 when time is over
 * first, 1 when no rank can become complete any more. Errors: E_NOTFOUND (no directory, no
 * configuration and no prof_dir), E_FORMAT (the configuration cannot be read), E_NOMEM.
 */
enum np_status np_dyn_watch(const char *dir, const struct np_dyn_watch_options *options,
                            struct np_report *report, struct np_err *err);

/* "8" is ranks 0 … 7; "0,3,8-11" and "5," are lists. Sorted, each once; np_free() them.
 * E_USAGE: something else. */
enum np_status np_dyn_ranks_parse(const char *text, int64_t **out, size_t *n, struct np_err *err);

/* ── for dynamic_tell.c; not for use outside ── */

struct np_dyn_rank {
	int64_t rank;
	bool expected;
	enum np_dyn_state state;
	const struct np_dyn_log *log; /* NULL */
	const char *output;           /* name below prof_dir, NULL */
};

struct np_dyn_watching {
	const struct np_dyn_watch_options *options;
	const char *dir, *config, *prof_dir;
	bool relative; /* prof_dir is relative, so where it is depends on the job */
	bool analyse;  /* the configuration asks for it, and it works */
	bool is_rank;
	bool triggered; /* start_step is not 0 */
	np_ns since, config_time;
	struct np_arena arena; /* of the last look */
	struct np_dyn_logs logs;
	NP_VEC(struct np_dyn_rank) ranks; /* sorted */
	NP_VEC(int64_t) listed;           /* rank_list */
	enum np_gate_profile profile;
	struct np_report *report;
	struct np_err *err;
};

void np_dyn_tell_ranks(struct np_dyn_watching *self);
/* Why the expected ranks that are not complete are not. */
void np_dyn_tell_missing(struct np_dyn_watching *self);

#endif
