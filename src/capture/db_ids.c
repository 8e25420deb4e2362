#include "capture/db_ids.h"

#include <string.h>

#include "base/mem.h"

enum { SMALL = 1 << 20, SPARSE = 8 };

void np_ids_release(struct np_ids *self)
{
	np_free(self->v);
	np_map_release(&self->rest);
	memset(self, 0, sizeof *self);
}

static bool grow(struct np_ids *self, uint64_t need)
{
	uint64_t cap = self->cap + self->cap / 2 + 64;
	if (cap < need)
		cap = need;
	uint32_t *bigger = np_realloc(self->v, cap, sizeof *bigger);
	if (!bigger)
		return false;
	memset(bigger + self->cap, 0xFF, (cap - self->cap) * sizeof *bigger);
	self->v = bigger;
	self->cap = cap;
	return true;
}

bool np_ids_put(struct np_ids *self, int64_t key, uint32_t value)
{
	if (key < 0)
		return true;
	uint64_t at = (uint64_t)key;
	self->n++;
	if (at >= self->cap) {
		uint64_t limit = self->n < SMALL / SPARSE ? SMALL : self->n * SPARSE;
		if (at >= limit)
			return np_map_put(&self->rest, at, value);
		if (!grow(self, at + 1))
			return false;
	}
	self->v[at] = value;
	return true;
}
