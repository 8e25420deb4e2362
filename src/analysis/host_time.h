/*
 * What a thread of the host did in given stretches of time.
 *
 *   query      [──────────────────────────)   of one thread
 *   ranges        │aten::item──────────│
 *                     │aclrtSync…│
 *   parts      [un][op][sync     ][op  ][untraced)
 *
 * Queries are disjoint in time, over all threads: a moment of idle time has one
 * culprit. So one pass over the host's rows answers all of them.
 */
#ifndef NP_ANALYSIS_HOST_TIME_H
#define NP_ANALYSIS_HOST_TIME_H

#include "analysis/analysis.h"

struct np_host_query {
	np_ns start, end;
	uint32_t tid;
	uint32_t gap;  /* whatever the caller counts by */
	uint32_t next; /* the next one of the same thread; ours */
	bool queued;   /* nothing recorded means: waiting in the task queue */
};

/* ns of class `class` in gap `gap`; `row` is the longest range of that class, or NP_NO_U32 */
struct np_host_part {
	np_ns ns;
	uint32_t gap, row;
	uint8_t class;
};

struct np_host_time {
	const struct np_analysis *analysis;
	uint8_t *class_of; /* by string id: class + 1 that a name alone gives, 0: the layer's */
	struct np_intervals gc;
	size_t gc_at;
	uint32_t gc_row;
	uint32_t main_tid; /* of ProfilerStep#N, NP_NO_U32 */
	NP_VEC(struct np_host_query) queries;
	NP_VEC(struct np_host_part) parts;
};

/* false: out of memory; np_host_time_release() in every case. */
bool np_host_time_init(struct np_host_time *self, const struct np_analysis *analysis);
void np_host_time_release(struct np_host_time *self);

/* Ask for [start, end); in order of time. Garbage collection stops all threads (it holds
 * the interpreter's lock), so it is cut out here. false: out of memory. */
bool np_host_ask(struct np_host_time *self, np_ns start, np_ns end, uint32_t tid, uint32_t gap,
                 bool queued);

/* Note a part that needs no question. */
bool np_host_part(struct np_host_time *self, uint32_t gap, enum np_idle_class class, np_ns ns,
                  uint32_t row);

/*
 * Answer all: parts of a query sum to its length. What a thread other than the main
 * one was not seen doing is asked of the main thread: work of the backward pass is
 * issued by the engine's thread, which the main thread has yet to call.
 */
bool np_host_answer(struct np_host_time *self);

#endif
