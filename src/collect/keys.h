/*
 * Keys of four words, numbered in order of first appearance: what a log is summed by.
 *
 * Threads: one writer.
 */
#ifndef NP_COLLECT_KEYS_H
#define NP_COLLECT_KEYS_H

#include "base/mem.h"

struct np_key {
	uint64_t w[4];
};

struct np_keys {
	NP_VEC(struct np_key) keys; /* by number */
	uint32_t *slots;            /* open addressing: number + 1, 0 empty */
	size_t mask;
	uint64_t seed; /* base/seed.h */
};

void np_keys_release(struct np_keys *self); /* zeroed memory is a valid empty one */

/* The number of a key, a new one when it is new: then it is keys.n - 1. UINT32_MAX: out of
 * memory. */
uint32_t np_keys_add(struct np_keys *self, const struct np_key *key);
/* UINT32_MAX: it is not there. */
uint32_t np_keys_find(const struct np_keys *self, const struct np_key *key);

static inline uint64_t np_key_pair(uint32_t low, uint32_t high)
{
	return low | (uint64_t)high << 32;
}

#endif
