#include "analysis/group.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS };

void np_op_groups_release(struct np_op_groups *self)
{
	np_free(self->groups);
	np_free(self->rows);
	memset(self, 0, sizeof *self);
}

/* Sort rows by duration; equal ones keep their order. Least digit first, and only the
 * digits that occur. */
static bool sort_by_duration(const np_ns *dur_ns, uint32_t *rows, size_t n)
{
	uint32_t *other = np_realloc(NULL, n, sizeof *other), *from = rows, *to = other;
	np_ns all = 0;
	for (size_t i = 0; i < n; i++)
		all |= dur_ns[rows[i]];
	for (unsigned shift = 0; other && shift < 63 && all >> shift; shift += DIGIT_BITS) {
		size_t start[DIGITS + 1] = {0};
		for (size_t i = 0; i < n; i++)
			start[1 + (dur_ns[from[i]] >> shift & (DIGITS - 1))]++;
		for (size_t d = 0; d < DIGITS; d++)
			start[d + 1] += start[d];
		for (size_t i = 0; i < n; i++)
			to[start[dur_ns[from[i]] >> shift & (DIGITS - 1)]++] = from[i];
		uint32_t *swap = from;
		from = to;
		to = swap;
	}
	if (other && from != rows)
		memcpy(rows, from, n * sizeof *rows);
	np_free(other);
	return other != NULL;
}

/* Dense numbers of keys of three ids: two maps of pairs. */
struct numbering {
	struct np_map pairs, triples;
};

static uint32_t number_in(struct np_map *map, uint32_t a, uint32_t b)
{
	uint64_t key = (uint64_t)a << 32 | b;
	uint32_t number = np_map_get(map, key, UINT32_MAX);
	if (number == UINT32_MAX && np_map_put(map, key, (uint32_t)map->n))
		number = (uint32_t)map->n - 1;
	return number;
}

static uint32_t number_of(const struct np_analysis *self, struct numbering *keys,
                          enum np_op_group_by by, uint32_t row)
{
	bool by_name = by == NP_BY_NAME || by == NP_BY_NAME_SHAPE;
	uint32_t op = by_name ? self->profile->kernels.name[row] : np_op_type(self, row);
	uint32_t pair = number_in(&keys->pairs, op, self->profile->kernels.core[row]);
	if (pair == UINT32_MAX || by == NP_BY_TYPE || by == NP_BY_NAME)
		return pair;
	return number_in(&keys->triples, pair, np_in_shapes(self, row));
}

/* Group number by kernel row, and example, n, total of every group. */
static bool number_rows(const struct np_analysis *self, enum np_op_group_by by, uint32_t *group_of,
                        struct np_op_groups *out)
{
	NP_VEC(struct np_op_group) groups = {0};
	struct numbering keys;
	bool ok = true;
	np_map_init(&keys.pairs);
	np_map_init(&keys.triples);
	for (size_t i = 0; ok && i < self->n_rows; i++) {
		uint32_t row = self->rows[i];
		if (self->class[row] == NP_CLASS_COMM)
			continue;
		uint32_t g = number_of(self, &keys, by, row);
		ok = g != UINT32_MAX &&
		     (g < groups.n || np_vec_push(&groups, (struct np_op_group){.example = row}));
		if (!ok)
			break;
		group_of[row] = g;
		groups.v[g].n++;
		np_ns dur = self->profile->kernels.dur_ns[row];
		groups.v[g].total = np_ns_sum(groups.v[g].total, dur);
		out->total = np_ns_sum(out->total, dur);
		out->n_rows++;
	}
	np_map_release(&keys.pairs);
	np_map_release(&keys.triples);
	out->groups = groups.v;
	out->n = groups.n;
	return ok;
}

static int by_total(const void *a, const void *b)
{
	const struct np_op_group *x = a, *y = b;
	if (x->total != y->total)
		return x->total < y->total ? 1 : -1;
	return (x->example > y->example) - (x->example < y->example);
}

/* The kernels in order of duration into one run per group. */
static bool spread(struct np_op_groups *out, const uint32_t *group_of, const uint32_t *order)
{
	uint32_t *next = np_realloc(NULL, out->n + 1, sizeof *next);
	uint32_t at = 0;
	out->rows = np_realloc(NULL, out->n_rows + 1, sizeof *out->rows);
	bool ok = next && out->rows;
	for (size_t g = 0; ok && g < out->n; g++) {
		out->groups[g].first = next[g] = at;
		at += out->groups[g].n;
	}
	for (size_t i = 0; ok && i < out->n_rows; i++)
		out->rows[next[group_of[order[i]]]++] = order[i];
	np_free(next);
	return ok;
}

uint32_t *np_op_order(const struct np_analysis *self, bool by_duration, size_t *n)
{
	uint32_t *order = np_realloc(NULL, self->n_rows + 1, sizeof *order);
	*n = 0;
	for (size_t i = 0; order && i < self->n_rows; i++)
		if (self->class[self->rows[i]] != NP_CLASS_COMM)
			order[(*n)++] = self->rows[i];
	if (order && *n && by_duration &&
	    !sort_by_duration(self->profile->kernels.dur_ns, order, *n)) {
		np_free(order);
		order = NULL;
	}
	return order;
}

bool np_op_groups_build(const struct np_analysis *self, enum np_op_group_by by,
                        const uint32_t *order, size_t n_order, struct np_op_groups *out)
{
	memset(out, 0, sizeof *out);
	uint32_t *group_of = np_realloc(NULL, self->profile->kernels.n, sizeof *group_of);
	bool ok = order && group_of && number_rows(self, by, group_of, out) &&
	          out->n_rows == n_order && spread(out, group_of, order);
	if (ok && out->n)
		qsort(out->groups, out->n, sizeof *out->groups, by_total);
	np_free(group_of);
	return ok;
}

np_ns np_op_quantile(const struct np_analysis *self, const struct np_op_groups *groups,
                     const struct np_op_group *group, double share)
{
	size_t rank = (size_t)ceil(share * group->n);
	rank = rank < 1 ? 1 : rank > group->n ? group->n : rank;
	return self->profile->kernels.dur_ns[groups->rows[group->first + rank - 1]];
}

bool np_cover_init(struct np_cover *self, const struct np_intervals *set)
{
	self->set = set;
	self->before = np_realloc(NULL, set->n + 1, sizeof *self->before);
	np_ns sum = 0;
	for (size_t i = 0; self->before && i < set->n; i++) {
		self->before[i] = sum;
		sum += set->v[i].end - set->v[i].start;
	}
	return self->before != NULL;
}

void np_cover_release(struct np_cover *self)
{
	np_free(self->before);
	self->before = NULL;
}

/* Covered length before t: of the last interval that starts before t, its part up to t. */
static np_ns covered_before(const struct np_cover *self, np_ns t)
{
	size_t low = 0, high = self->set->n;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (self->set->v[middle].start < t)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0)
		return 0;
	const struct np_interval *last = &self->set->v[low - 1];
	return self->before[low - 1] + (t < last->end ? t : last->end) - last->start;
}

np_ns np_cover_length(const struct np_cover *self, np_ns start, np_ns end)
{
	return end > start ? covered_before(self, end) - covered_before(self, start) : 0;
}

bool np_has_shapes(const struct np_analysis *self)
{
	for (size_t i = 0; i < self->n_rows; i++)
		if (np_in_shapes(self, self->rows[i]) != NP_ID_NONE)
			return true;
	return false;
}
