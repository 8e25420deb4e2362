#define XXH_INLINE_ALL
#include "cluster/grouping.h"

#include <string.h>
#include <xxhash.h>

#include "base/mem.h"
#include "base/seed.h"

struct slots {
	uint32_t *group; /* UINT32_MAX: empty */
	size_t mask;
	uint64_t seed;
};

static uint64_t hash_of(const struct slots *self, const uint32_t *const *keys, size_t n_keys,
                        size_t row)
{
	uint64_t hash = self->seed;
	for (size_t k = 0; k < n_keys; k++)
		hash = (hash ^ keys[k][row]) * UINT64_C(0x9E3779B97F4A7C15) + (hash >> 29);
	return XXH64_avalanche(hash);
}

static bool same(const uint32_t *const *keys, size_t n_keys, size_t a, size_t b)
{
	for (size_t k = 0; k < n_keys; k++)
		if (keys[k][a] != keys[k][b])
			return false;
	return true;
}

static bool make_slots(struct slots *self, size_t n_rows)
{
	size_t n = 16;
	while (n < n_rows + n_rows / 2)
		n *= 2;
	*self = (struct slots){np_realloc(NULL, n, sizeof *self->group), n - 1, np_hash_seed()};
	if (self->group)
		memset(self->group, 0xff, n * sizeof *self->group);
	return self->group != NULL;
}

/* group_of[row] for all rows; first[g] the first row of each group. Returns their number. */
static size_t assign(struct slots *slots, size_t n, const uint32_t *const *keys, size_t n_keys,
                     uint32_t *group_of, uint32_t *first)
{
	size_t n_groups = 0;
	for (size_t row = 0; row < n; row++) {
		size_t i = hash_of(slots, keys, n_keys, row) & slots->mask;
		while (slots->group[i] != UINT32_MAX &&
		       !same(keys, n_keys, first[slots->group[i]], row))
			i = (i + 1) & slots->mask;
		if (slots->group[i] == UINT32_MAX) {
			first[n_groups] = (uint32_t)row;
			slots->group[i] = (uint32_t)n_groups++;
		}
		group_of[row] = slots->group[i];
	}
	return n_groups;
}

bool np_group_rows(size_t n, const uint32_t *const *keys, size_t n_keys, struct np_groups *out)
{
	struct slots slots = {0};
	uint32_t *group_of = np_realloc(NULL, n + 1, sizeof *group_of);
	uint32_t *first = np_realloc(NULL, n + 1, sizeof *first);
	*out = (struct np_groups){.order = np_realloc(NULL, n + 1, sizeof *out->order)};
	bool ok = group_of && first && out->order && n < UINT32_MAX && make_slots(&slots, n);
	if (ok) {
		out->n = assign(&slots, n, keys, n_keys, group_of, first);
		out->start = np_calloc(out->n + 2, sizeof *out->start);
		ok = out->start != NULL;
	}
	/* a counting sort: start[g + 1] is where the next row of group g goes, then its end */
	for (size_t row = 0; ok && row < n; row++)
		out->start[group_of[row] + 2]++;
	for (size_t g = 0; ok && g < out->n; g++)
		out->start[g + 2] += out->start[g + 1];
	for (size_t row = 0; ok && row < n; row++)
		out->order[out->start[group_of[row] + 1]++] = (uint32_t)row;
	np_free(group_of);
	np_free(first);
	np_free(slots.group);
	return ok;
}

void np_groups_release(struct np_groups *self)
{
	np_free(self->order);
	np_free(self->start);
	*self = (struct np_groups){0};
}
