/*
 * How a command that runs over ssh tells when it began and how it ended. ssh itself uses the
 * exit status 255 for its own failures, and what a login shell prints comes before the command.
 *
 *   stdout   noise of .bashrc … ␞NONCE+4711⏎ bytes of the command
 *   stderr   talk of ssh … ␞NONCE+⏎ bytes of the command ␞NONCE=255⏎ talk of ssh
 *
 * The nonce is 128 random bits, and the record separator (0x1e) before it is made by printf on
 * the far side, so neither `set -x` nor the command itself writes a mark by chance. A mark may
 * come in pieces: bytes that could begin one wait for the next ones.
 */
#ifndef NP_COLLECT_SSH_MARKS_H
#define NP_COLLECT_SSH_MARKS_H

#include "collect/subprocess.h"

enum { NP_MARK_BYTES = 33 /* 0x1e and 32 hex digits */, NP_MARK_NOISE = 8192 };

struct np_marks {
	char mark[NP_MARK_BYTES + 1];
};

/* A fresh nonce. E_IO when the system has no random bytes. */
enum np_status np_marks_make(struct np_marks *self, struct np_err *err);

/*
 * The line for the far login shell which runs `argv` between marks. It becomes `sh`, whose
 * process id the first mark tells. In the arena; NULL: out of memory.
 */
const char *np_marks_line(const struct np_marks *self, struct np_arena *arena,
                          const char *const *argv);

/* One stream: takes what ssh hands on, gives what the command wrote. */
struct np_mark_filter {
	const struct np_marks *marks;
	struct np_sink to;
	/* what came before the first mark and after the last one; no more than NP_MARK_NOISE */
	struct np_buf noise;
	char held[128]; /* bytes that may be a mark */
	size_t n_held;
	bool begun, ended;
	int64_t pid; /* 0: not told */
	int status;  /* once `ended` */
};

void np_mark_filter_init(struct np_mark_filter *self, const struct np_marks *marks,
                         struct np_sink to);
/* As struct np_sink's take, with ctx the filter. */
enum np_status np_mark_filter_take(void *self, const void *bytes, size_t len, struct np_err *err);
/* The stream has ended: what is still held was no mark. */
enum np_status np_mark_filter_end(struct np_mark_filter *self, struct np_err *err);
void np_mark_filter_release(struct np_mark_filter *self);

#endif
