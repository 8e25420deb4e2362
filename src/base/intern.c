#define XXH_INLINE_ALL
#include "base/intern.h"

#include <string.h>
#include <xxhash.h>

#include "base/seed.h"

struct np_intern_slot {
	uint32_t tag; /* the upper half of the hash */
	uint32_t id;  /* NP_ID_NONE: empty */
};

enum { FIRST_SLOTS = 1024 };

static uint64_t hash_of(const struct np_intern *self, np_str text)
{
	return XXH3_64bits_withSeed(text.ptr ? text.ptr : "", text.len, self->seed);
}

static bool resize(struct np_intern *self, size_t slots)
{
	struct np_intern_slot *fresh = np_realloc(NULL, slots, sizeof *fresh);
	if (!fresh)
		return false;
	memset(fresh, 0xff, slots * sizeof *fresh);
	for (size_t id = 0; id < self->strings.n; id++) {
		uint64_t hash = hash_of(self, self->strings.v[id]);
		size_t i = hash & (slots - 1);
		while (fresh[i].id != NP_ID_NONE)
			i = (i + 1) & (slots - 1);
		fresh[i] = (struct np_intern_slot){(uint32_t)(hash >> 32), (uint32_t)id};
	}
	np_free(self->slots);
	self->slots = fresh;
	self->mask = slots - 1;
	return true;
}

bool np_intern_init(struct np_intern *self)
{
	memset(self, 0, sizeof *self);
	np_arena_init(&self->text);
	self->seed = np_hash_seed();
	return resize(self, FIRST_SLOTS) && np_intern_add(self, NP_STR("")) == 0;
}

void np_intern_release(struct np_intern *self)
{
	np_arena_release(&self->text);
	np_vec_release(&self->strings);
	np_free(self->slots);
	self->slots = NULL;
	self->mask = 0;
}

/* The slot where `text` is, or where it would go. */
static size_t probe(const struct np_intern *self, np_str text, uint64_t hash)
{
	size_t i = hash & self->mask;
	for (; self->slots[i].id != NP_ID_NONE; i = (i + 1) & self->mask)
		if (self->slots[i].tag == (uint32_t)(hash >> 32) &&
		    np_str_eq(self->strings.v[self->slots[i].id], text))
			break;
	return i;
}

uint32_t np_intern_add(struct np_intern *self, np_str text)
{
	uint64_t hash = hash_of(self, text);
	size_t at = probe(self, text, hash);
	if (self->slots[at].id != NP_ID_NONE)
		return self->slots[at].id;
	size_t id = self->strings.n;
	if (id >= NP_ID_NONE)
		return NP_ID_NONE;
	if ((id + 1) * 2 > self->mask) {
		if (!resize(self, (self->mask + 1) * 2))
			return NP_ID_NONE;
		at = probe(self, text, hash);
	}
	np_str copy = np_arena_dup(&self->text, text);
	if (!copy.ptr || !np_vec_push(&self->strings, copy))
		return NP_ID_NONE;
	self->slots[at] = (struct np_intern_slot){(uint32_t)(hash >> 32), (uint32_t)id};
	return (uint32_t)id;
}

uint32_t np_intern_find(const struct np_intern *self, np_str text)
{
	return self->slots[probe(self, text, hash_of(self, text))].id;
}

np_str np_intern_get(const struct np_intern *self, uint32_t id)
{
	return id < self->strings.n ? self->strings.v[id] : (np_str){"", 0};
}
