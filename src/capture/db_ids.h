/*
 * A map from the ids of a database to row numbers or string ids.
 *
 * Those ids are dense from 0 nearly always (globalTaskId, STRING_IDS,
 * connectionId), so most of the map is a plain array; a few stray ids, as the
 * strings of the framework from 1 << 28, go to a hash map:
 *
 *   key < cap ? v[key] : rest
 *
 * The array is never longer than eight times the number of keys (and 2^20), so
 * a hostile id cannot make it huge.
 *
 * Threads: one writer; readers may share a map that no longer changes.
 */
#ifndef NP_CAPTURE_DB_IDS_H
#define NP_CAPTURE_DB_IDS_H

#include "base/map.h"

#define NP_IDS_NONE UINT32_MAX

/* Zeroed memory is an empty map. */
struct np_ids {
	uint32_t *v;
	uint64_t cap;
	uint64_t n; /* keys put, repeated ones counted again */
	struct np_map rest;
};

void np_ids_release(struct np_ids *self);

/* Set key to value (not NP_IDS_NONE), replacing an older one. Negative keys are
 * ignored. false: out of memory. */
bool np_ids_put(struct np_ids *self, int64_t key, uint32_t value);

/* The value of key, or NP_IDS_NONE. */
static inline uint32_t np_ids_get(const struct np_ids *self, int64_t key)
{
	/* a negative key is beyond every array */
	if ((uint64_t)key < self->cap && self->v[key] != NP_IDS_NONE)
		return self->v[key];
	return self->rest.n ? np_map_get(&self->rest, (uint64_t)key, NP_IDS_NONE) : NP_IDS_NONE;
}

#endif
