#include "base/map.h"

#include <string.h>

#include "base/mem.h"
#include "base/seed.h"

struct np_map_slot {
	uint64_t key;
	uint32_t value; /* UINT32_MAX: empty */
};

void np_map_init(struct np_map *self)
{
	memset(self, 0, sizeof *self);
}

void np_map_release(struct np_map *self)
{
	np_free(self->slots);
	np_map_init(self);
}

/* Ids are dense, or spaced evenly, or chosen by somebody who knows this function. */
static size_t slot_of(const struct np_map *self, uint64_t key)
{
	uint64_t hash = (key ^ self->seed) * UINT64_C(0x9E3779B97F4A7C15);
	hash = (hash ^ (hash >> 32)) * (self->seed | 1);
	return (size_t)(hash >> 20) & self->mask;
}

static struct np_map_slot *probe(const struct np_map *self, uint64_t key)
{
	size_t i = slot_of(self, key);
	while (self->slots[i].value != UINT32_MAX && self->slots[i].key != key)
		i = (i + 1) & self->mask;
	return &self->slots[i];
}

static bool resize(struct np_map *self, size_t slots)
{
	struct np_map fresh = {.mask = slots - 1, .n = self->n, .seed = self->seed};
	if (!self->slots)
		fresh.seed = np_hash_seed();
	fresh.slots = np_realloc(NULL, slots, sizeof *fresh.slots);
	if (!fresh.slots)
		return false;
	memset(fresh.slots, 0xff, slots * sizeof *fresh.slots);
	for (size_t i = 0; self->slots && i <= self->mask; i++)
		if (self->slots[i].value != UINT32_MAX)
			*probe(&fresh, self->slots[i].key) = self->slots[i];
	np_free(self->slots);
	*self = fresh;
	return true;
}

bool np_map_reserve(struct np_map *self, size_t n)
{
	size_t slots = self->slots ? self->mask + 1 : 64;
	while (slots / 2 <= n && slots <= SIZE_MAX / 4)
		slots *= 2;
	return (self->slots && slots == self->mask + 1) || resize(self, slots);
}

bool np_map_put(struct np_map *self, uint64_t key, uint32_t value)
{
	if ((!self->slots || (self->n + 1) * 2 > self->mask) &&
	    !resize(self, self->slots ? (self->mask + 1) * 2 : 64))
		return false;
	struct np_map_slot *slot = probe(self, key);
	self->n += slot->value == UINT32_MAX;
	*slot = (struct np_map_slot){.key = key, .value = value};
	return true;
}

uint32_t np_map_get(const struct np_map *self, uint64_t key, uint32_t missing)
{
	if (!self->slots)
		return missing;
	uint32_t value = probe(self, key)->value;
	return value == UINT32_MAX ? missing : value;
}
