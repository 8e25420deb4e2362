/*
 * The logs of dynamic_profile below DIR/log: dp_{host}_{pid}_rank_{rank}.log of each rank and
 * monitor_dp_… of the one process per host that looks at the file; 200 KB each, with the
 * older part in a file of the same name and `.1` (torch_npu.md §6.1). They are read whole when
 * they have changed, so a rotation loses nothing.
 */
#ifndef NP_COLLECT_DYNAMIC_LOG_H
#define NP_COLLECT_DYNAMIC_LOG_H

#include "base/fs.h"

/* How far a rank has come, in the order of the states. */
enum np_dyn_state {
	NP_DYN_UNSEEN,    /* no log */
	NP_DYN_WAITING,   /* there, and nothing happened since the trigger */
	NP_DYN_TRIGGERED, /* it knows its start step */
	NP_DYN_RECORDING,
	NP_DYN_STOPPED,  /* recorded; it may analyse now */
	NP_DYN_COMPLETE, /* its output is complete: said by who looks at the outputs */
	NP_DYN_EXCLUDED, /* not in rank_list */
	NP_DYN_REFUSED,  /* start_step was over */
	NP_DYN_BROKEN,   /* no shared memory, or it cannot be read */
	NP_DYN_ENDED,    /* the process ended while recording */
	NP_DYN_N_STATES,
};

const char *np_dyn_state_name(enum np_dyn_state state); /* "waiting", … */

struct np_dyn_log {
	bool is_monitor;
	int64_t rank; /* NP_NO_I64 or -1: none */
	int64_t pid;
	const char *host, *path;
	np_ns mtime_ns, read_ns;
	np_ns shift_ns; /* from its local time to ours */
	/* what it says from `since` on */
	enum np_dyn_state state;       /* of a rank */
	int64_t start_step, stop_step; /* -1: none */
	bool analyse_off;              /* rank_list without async_mode: the dump stays raw */
	char why[256];                 /* the line that tells of a failure */
	unsigned loads, failed_loads;  /* of a monitor */
	int64_t poll_seconds;          /* -1: not said */
};

struct np_dyn_logs {
	NP_VEC(struct np_dyn_log) v; /* sorted by name */
};

/* host, pid, rank of "dp_a_b_4711_rank_3.log"; false: no such name. */
bool np_dyn_log_name(struct np_arena *arena, const char *name, struct np_dyn_log *out);

/*
 * Take in a log's text, complete lines only; lines before `since` tell only that the rank is
 * there. `shift_ns` is added to the times of the lines, which are in the local time of the
 * host that wrote them; without milliseconds the whole second counts. Lines without a time
 * belong to the line before.
 */
void np_dyn_log_take(struct np_dyn_log *self, np_str text, np_ns since, np_ns shift_ns);

/* By how much the local time of the text's lines differs from ours, in quarters of an hour:
 * its last line was written at mtime. */
np_ns np_dyn_log_shift(np_str text, np_ns mtime_ns);

/*
 * All logs below config_dir/log, with what they say from `since` on. No such directory: none.
 * Names are in the arena. *previous (may be NULL) is an earlier result: what has not changed
 * since is not read again. Errors: E_NOMEM.
 */
enum np_status np_dyn_logs_read(struct np_arena *arena, const char *config_dir, np_ns since,
                                const struct np_dyn_logs *previous, struct np_dyn_logs *out,
                                struct np_err *err);
void np_dyn_logs_release(struct np_dyn_logs *self);

/* The newest log of a rank, or NULL. */
const struct np_dyn_log *np_dyn_log_of(const struct np_dyn_logs *self, int64_t rank);

/* The local time in the name of an output, "…_20250131123456789_ascend_pt"; false: none. */
bool np_dyn_output_time(const char *name, np_ns *out);

/* Is the process of a log known to be gone? Only on this host. */
bool np_dyn_log_is_dead(const struct np_dyn_log *self);

#endif
