/*
 * A hash map from uint64 to uint32: row numbers by task id, string ids by
 * database id. Open addressing, no deletion.
 *
 * Threads: one writer; readers may share a map that no longer changes.
 */
#ifndef NP_BASE_MAP_H
#define NP_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct np_map {
	struct np_map_slot *slots; /* NULL while empty */
	size_t mask, n;
	uint64_t seed; /* of the hash, see base/seed.h */
};

void np_map_init(struct np_map *self);
void np_map_release(struct np_map *self);

/* Room for `n` keys, so that putting them moves none. false: out of memory. */
bool np_map_reserve(struct np_map *self, size_t n);

/* Set key to value (not UINT32_MAX), replacing an older one. false: out of memory. */
bool np_map_put(struct np_map *self, uint64_t key, uint32_t value);

/* The value of key, or `missing`. */
uint32_t np_map_get(const struct np_map *self, uint64_t key, uint32_t missing);

#endif
