#include "collect/keys.h"

#include <string.h>

#include "base/seed.h"

void np_keys_release(struct np_keys *self)
{
	np_vec_release(&self->keys);
	np_free(self->slots);
	*self = (struct np_keys){.mask = 0};
}

static size_t hash(const struct np_keys *self, const struct np_key *key)
{
	const uint64_t odd = UINT64_C(0x9E3779B97F4A7C15);
	uint64_t a = (key->w[0] ^ self->seed) * odd,
		 b = (key->w[1] + self->seed) * (odd ^ 0x5bd1e994);
	a ^= a >> 32;
	b ^= b >> 29;
	a = (a + key->w[2]) * (self->seed | 1);
	b = (b ^ key->w[3]) * odd;
	a ^= b ^ (a >> 31);
	a *= odd;
	return (size_t)(a ^ (a >> 32));
}

static bool same(const struct np_key *a, const struct np_key *b)
{
	return ((a->w[0] ^ b->w[0]) | (a->w[1] ^ b->w[1]) | (a->w[2] ^ b->w[2]) |
	        (a->w[3] ^ b->w[3])) == 0;
}

static size_t probe(const struct np_keys *self, const struct np_key *key)
{
	size_t i = hash(self, key) & self->mask;
	while (self->slots[i] && !same(&self->keys.v[self->slots[i] - 1], key))
		i = (i + 1) & self->mask;
	return i;
}

static bool grow(struct np_keys *self)
{
	size_t n = self->slots ? (self->mask + 1) * 2 : 64;
	uint32_t *slots = np_calloc(n, sizeof *slots);
	if (!slots)
		return false;
	if (!self->slots)
		self->seed = np_hash_seed();
	np_free(self->slots);
	self->slots = slots;
	self->mask = n - 1;
	for (size_t i = 0; i < self->keys.n; i++)
		self->slots[probe(self, &self->keys.v[i])] = (uint32_t)i + 1;
	return true;
}

uint32_t np_keys_add(struct np_keys *self, const struct np_key *key)
{
	if (self->keys.n * 2 >= self->mask && (self->keys.n >= UINT32_MAX / 2 || !grow(self)))
		return UINT32_MAX;
	size_t slot = probe(self, key);
	if (self->slots[slot])
		return self->slots[slot] - 1;
	if (!np_vec_push(&self->keys, *key))
		return UINT32_MAX;
	self->slots[slot] = (uint32_t)self->keys.n;
	return (uint32_t)self->keys.n - 1;
}

uint32_t np_keys_find(const struct np_keys *self, const struct np_key *key)
{
	return self->slots ? self->slots[probe(self, key)] - 1 : UINT32_MAX;
}
