/*
 * Run one command and wait for it: its output into a file and through to our own streams,
 * signals handed on, an end by time or by wish.
 *
 *   child's stdout, stderr ──pipes──▶ lines ─┬▶ the log, always
 *                                            └▶ our stdout and stderr, when they keep up
 *
 * The child leads a process group of its own. SIGINT, SIGTERM, SIGHUP and SIGQUIT that reach
 * us go to that group; a second SIGINT kills it. ^Z stops both, `fg` continues both. A child
 * that wants to read the terminal is given it (then ^C reaches it directly), and we take it
 * back at its end.
 *
 * A reader of our output that stands still is waited for two seconds; then what comes is in
 * the log only, until it moves again. So a stuck terminal never stops the child.
 *
 * Threads: one np_spawn_run() at a time in a process: it owns the signals while it runs.
 */
#ifndef NP_COLLECT_SPAWN_H
#define NP_COLLECT_SPAWN_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/time.h"

struct np_spawn {
	char *const *argv; /* argv[0] is looked up in our PATH */
	char *const *env;
	const char *log;    /* file to append to; NULL: none */
	int out_fd, err_fd; /* where the child's stdout and stderr go to as well; -1: nowhere */
	bool no_stdin;      /* /dev/null instead of ours */
	double timeout_s;   /* 0: none */
	double grace_s;     /* between SIGTERM and SIGKILL */
	/* Asked twice a second: true ends the command, as what it was wanted for is done. */
	bool (*enough)(void *ctx);
	/* Once, when the child runs; with its pid. */
	void (*started)(void *ctx, pid_t pid);
	void *ctx;
};

struct np_spawn_end {
	pid_t pid;       /* also the number of its process group */
	int exec_errno;  /* why it could not be started; 0 */
	int exit_status; /* -1: it did not exit */
	int signal;      /* that killed it; 0 */
	bool timed_out;  /* ended by the time limit */
	bool enough;     /* ended by enough() */
	int interrupted; /* the first signal handed on; 0 */
	bool killed;     /* we sent SIGKILL */
	bool group_left; /* processes of its group go on */
	double seconds;
	uint64_t out_bytes;    /* what it printed */
	uint64_t unseen_bytes; /* of that, not passed on to a reader that stood still */
	int log_errno;         /* the log could not be written, from some byte on; 0 */
};

/* E_NOTFOUND, E_ACCESS: no such program (end->exec_errno); E_IO: no pipe, no process, no log;
 * E_NOMEM. NP_OK says that it ran, not that it succeeded. */
enum np_status np_spawn_run(const struct np_spawn *self, struct np_spawn_end *end,
                            struct np_err *err);

/* Did it end as wished: exit status 0, or by enough()? */
bool np_spawn_succeeded(const struct np_spawn_end *end);

#endif
