/*
 * Inside spawn: the lines of one pipe, and a reader of ours that may stand still.
 */
#ifndef NP_COLLECT_SINK_H
#define NP_COLLECT_SINK_H

#include <stdbool.h>

#include "base/str.h"
#include "base/time.h"

/* One of our own streams. Bytes wait in `pending`; a regular file never has any. */
struct np_sink {
	int fd;      /* -1: closed */
	bool own;    /* fd is another opening of the stream, without blocking */
	bool direct; /* a regular file: writing does not block */
	bool shedding;
	struct np_buf pending;
	size_t at;         /* of pending, already written */
	np_ns stuck_since; /* monotonic; 0: it moves */
	uint64_t lost;
};

enum { NP_SINK_PENDING = 1 << 20 };

/* `fd` stays the caller's; -1 gives a closed sink. */
void np_sink_open(struct np_sink *self, int fd);
void np_sink_close(struct np_sink *self);
void np_sink_add(struct np_sink *self, np_str bytes);
/* Something waits to be written, and poll() said that there is room. */
void np_sink_flush(struct np_sink *self, np_ns now);
bool np_sink_waits(const struct np_sink *self);
/* So much waits that no more should be read from the child now. */
bool np_sink_full(struct np_sink *self, np_ns now);

/* CLOCK_MONOTONIC. */
np_ns np_monotonic(void);

#endif
