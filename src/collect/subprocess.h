/*
 * A child process with its three streams: started, fed, read and waited for in one call.
 *
 *   argv ─▶ child ─ stdout ─▶ sink      one poll loop reads both outputs and writes the input,
 *   input ─▶ stdin ─ stderr ─▶ sink     so no side waits for another whatever their sizes are
 *
 * The child leads a process group of its own: a timeout or a cancel ends the group, by its id.
 * SIGPIPE is blocked in the calling thread only, while it writes; the child has the default.
 * What the child leaves behind and keeps its streams open (`sleep 100 &`) is not waited for
 * longer than NP_SUBPROCESS_GRACE_MS after the child itself is gone.
 *
 * Threads: any number of calls at once, each of its own.
 */
#ifndef NP_COLLECT_SUBPROCESS_H
#define NP_COLLECT_SUBPROCESS_H

#include <stdatomic.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/mem.h"

enum {
	NP_SUBPROCESS_GRACE_MS = 500,
	NP_SUBPROCESS_TERM_MS = 2000,       /* between SIGTERM and SIGKILL */
	NP_SUBPROCESS_MAX_BYTES = 64 << 20, /* of an output that is kept in memory */
};

/* Takes bytes as they come. Anything but NP_OK ends the child, and is what the call returns. */
struct np_sink {
	enum np_status (*take)(void *ctx, const void *bytes, size_t len, struct np_err *err);
	void *ctx;
};

enum np_source_kind { NP_SOURCE_NONE, NP_SOURCE_BYTES, NP_SOURCE_FD, NP_SOURCE_PULL };

/* Where stdin comes from; zeroed memory is /dev/null. */
struct np_source {
	enum np_source_kind kind;
	np_str bytes; /* BYTES */
	int fd;       /* FD: becomes the child's stdin; stays the caller's to close */
	/* PULL: at most `size` bytes into `buf`; 0 at the end, -1 to end the child (E_IO) */
	ssize_t (*pull)(void *ctx, void *buf, size_t size);
	void *ctx;
};

struct np_subprocess {
	const char *const *argv; /* argv[0] is looked up in PATH */
	const char *const *env;  /* "NAME=value" to set beside ours; NULL */
	struct np_source input;
	struct np_sink out, err;   /* take NULL: kept in the result */
	uint64_t timeout_ms;       /* 0: none */
	const atomic_bool *cancel; /* looked at ten times a second; NULL */
};

struct np_subprocess_result {
	int status; /* exit status; 128 + the signal when one ended it */
	int signal; /* 0: it exited */
	bool timed_out, cancelled;
	bool left_behind;       /* its streams are still open in another process */
	struct np_buf out, err; /* of the streams without a sink */
};

/*
 * Run it to its end. NP_OK when it ended by itself, whatever its status is, and also when
 * `timed_out` or `cancelled` says that it was ended. E_NOTFOUND, E_ACCESS: argv[0] cannot be
 * started; E_LIMIT: an output without a sink is too large; E_IO, E_NOMEM; or what a sink says.
 * `result` is to be released in every case.
 */
enum np_status np_subprocess_run(const struct np_subprocess *self,
                                 struct np_subprocess_result *result, struct np_err *err);
void np_subprocess_release(struct np_subprocess_result *result);

/* CLOCK_MONOTONIC. */
uint64_t np_clock_ms(void);

/* Sleep, but not on when `cancel` (may be NULL) becomes true; false then. */
bool np_sleep_ms(uint64_t ms, const atomic_bool *cancel);

#endif
