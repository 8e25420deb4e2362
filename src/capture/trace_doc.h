/*
 * A trace as a document: `[event, …]` or `{"traceEvents": [event, …], …}`.
 *
 *   bytes ─▶ span: elements one by one ─▶ event ─▶ part
 *            fast reader; where it balks, io/json.h for that element
 *
 * Large mapped files are read by several threads in waves. Within a wave the
 * borders are guesses: a `}, {` near where the border should be.
 *
 *      proven                 guessed            guessed
 *   ──────┬──────────────────────┬──────────────────┬─────────
 *         chunk 0 ────────────▶ ?= chunk 1 ──────▶ ?= chunk 2 …
 *
 * A chunk is taken when the one before it, itself taken, arrived exactly at its
 * first byte and there an element begins. Otherwise (the guess was inside a
 * string, or in a nested array) what was read of it is thrown away and that
 * stretch is read again from where the reading truly is. So the result is the
 * same for any number of threads.
 */
#ifndef NP_CAPTURE_TRACE_DOC_H
#define NP_CAPTURE_TRACE_DOC_H

#include "capture/reader.h"
#include "capture/trace_part.h"
#include "io/input.h"

enum { NP_TRACE_CHUNK_BYTES = 8 << 20 };

struct np_trace_plan {
	size_t chunk_bytes;    /* per thread and wave; 0: NP_TRACE_CHUNK_BYTES */
	size_t parallel_bytes; /* files smaller than this are read by one thread; 0: 32 MiB */
	bool exact;            /* io/json.h for every element (tests) */
};

/* np_read_trace() for an input that is open; plan may be NULL. */
enum np_status np_trace_read_input(const struct np_read *read, struct np_input *input,
                                   const struct np_trace_plan *plan, struct np_err *err);

/* ── elements ── */

enum np_trace_stop {
	NP_TRACE_STOP_MORE,  /* the element at `p` is not complete before `end` */
	NP_TRACE_STOP_LIMIT, /* an element begins at `p`, and p >= limit */
	NP_TRACE_STOP_CLOSE, /* `p` is behind the closing bracket */
	NP_TRACE_STOP_ERROR,
};

struct np_trace_span {
	const char *p, *end, *limit;
	const char *origin;     /* the byte that has offset 0, possibly not in memory any more */
	const char *file;       /* for messages */
	const char *last_comma; /* since the last element, NULL without */
	bool after_element;     /* no comma since the last element */
	bool exact;
};

/* Elements into the part, until one of the stops; *err is set for STOP_ERROR. */
enum np_trace_stop np_trace_span_run(struct np_trace_span *self, struct np_trace_part *part,
                                     enum np_status *status, struct np_err *err);

/*
 * Read on from span->p, which is proven, with up to `threads` threads for one
 * wave of chunks. Stops as np_trace_span_run() does with the wave's end as limit.
 */
enum np_trace_stop np_trace_wave_run(struct np_trace_span *span, struct np_trace_part *part,
                                     unsigned threads, size_t chunk_bytes, enum np_status *status,
                                     struct np_err *err);

#endif
