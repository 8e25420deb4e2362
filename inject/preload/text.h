/*
 * Strings that live as long as the process, each once: names of communicators and stages.
 * Two equal strings are one pointer, so a log needs to write each only once.
 *
 * Interning takes a lock and is not for the hot path; reading an np_text needs none.
 */
#ifndef NP_PRELOAD_TEXT_H
#define NP_PRELOAD_TEXT_H

#include <stddef.h>
#include <stdint.h>

enum {
	NP_TEXT_MAX = 1000,      /* different strings in a process */
	NP_TEXT_BYTES_MAX = 1024 /* of one; the rest is cut off */
};

struct np_text {
	uint32_t length;
	uint32_t slot; /* 0, 1, … < NP_TEXT_MAX */
	char bytes[];  /* length of them, then NUL */
};

/* The string; NULL for an empty one, &np_text_no_room when there are too many. */
const struct np_text *np_text_intern(const char *bytes, size_t length);
extern const struct np_text np_text_no_room;

/* In the child after fork(): the thread that held the lock is not there. */
void np_text_after_fork(void);

#endif
