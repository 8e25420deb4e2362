/*
 * Interval algebra: sets of half-open time ranges [start, end).
 *
 * A set is "merged" when its intervals are sorted, not empty, and neither
 * overlap nor touch; every function but np_intervals_add() and _merge() wants
 * merged sets and gives one.
 */
#ifndef NP_PROFILE_INTERVAL_H
#define NP_PROFILE_INTERVAL_H

#include "base/mem.h"
#include "base/time.h"

struct np_interval {
	np_ns start, end;
};

struct np_intervals {
	struct np_interval *v;
	size_t n, cap;
};

void np_intervals_release(struct np_intervals *self);

/* Append [start, end); empty ones are ignored. false: out of memory. */
bool np_intervals_add(struct np_intervals *self, np_ns start, np_ns end);

/* Sort, and join what overlaps or touches. */
void np_intervals_merge(struct np_intervals *self);

/* out (emptied first, not a or b) = a without b; the common part; all of both. */
bool np_intervals_subtract(const struct np_intervals *a, const struct np_intervals *b,
                           struct np_intervals *out);
bool np_intervals_intersect(const struct np_intervals *a, const struct np_intervals *b,
                            struct np_intervals *out);
bool np_intervals_union(const struct np_intervals *a, const struct np_intervals *b,
                        struct np_intervals *out);

/* The sum of the lengths. */
np_ns np_intervals_length(const struct np_intervals *self);

#endif
