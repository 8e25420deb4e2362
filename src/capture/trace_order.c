/*
 * Host rows in order, by radix: a trace has millions of them in a few sorted
 * stretches that overlap, where comparing costs as much as a fifth of the reading.
 */
#include <stdlib.h>

#include "capture/trace_part.h"

enum { DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS };

struct item {
	uint64_t key; /* start - the earliest start */
	uint32_t row;
};

static bool is_sorted(const struct np_host_ops *t, np_ns *first, np_ns *last)
{
	bool sorted = true;
	*first = *last = t->n ? t->start_ns[0] : 0;
	for (size_t i = 1; i < t->n; i++) {
		np_ns start = t->start_ns[i];
		sorted &= start > t->start_ns[i - 1] ||
		          (start == t->start_ns[i - 1] && t->dur_ns[i] <= t->dur_ns[i - 1]);
		*first = start < *first ? start : *first;
		*last = start > *last ? start : *last;
	}
	return sorted;
}

/* One stable pass from a to b. */
static void pass(const struct item *a, struct item *b, size_t n, unsigned shift)
{
	size_t at[DIGITS] = {0};
	for (size_t i = 0; i < n; i++)
		at[(a[i].key >> shift) & (DIGITS - 1)]++;
	for (size_t d = 0, sum = 0; d < DIGITS; d++) {
		size_t count = at[d];
		at[d] = sum;
		sum += count;
	}
	for (size_t i = 0; i < n; i++)
		b[at[(a[i].key >> shift) & (DIGITS - 1)]++] = a[i];
}

static int longer_first(const void *a, const void *b, void *durations)
{
	const struct item *x = a, *y = b;
	const np_ns *dur_ns = durations;
	if (dur_ns[x->row] != dur_ns[y->row])
		return dur_ns[x->row] > dur_ns[y->row] ? -1 : 1;
	return (x->row > y->row) - (x->row < y->row);
}

bool np_trace_sort_host_ops(struct np_profile *profile)
{
	struct np_host_ops *t = &profile->host_ops;
	np_ns first, last;
	if (is_sorted(t, &first, &last))
		return true;
	size_t n = t->n;
	struct item *a = np_realloc(NULL, n, sizeof *a), *b = np_realloc(NULL, n, sizeof *b);
	bool ok = a && b;
	for (size_t i = 0; ok && i < n; i++)
		a[i] = (struct item){(uint64_t)(t->start_ns[i] - first), (uint32_t)i};
	for (unsigned shift = 0; ok && shift < 64 && (uint64_t)(last - first) >> shift;
	     shift += DIGIT_BITS) {
		pass(a, b, n, shift);
		struct item *swap = a;
		a = b;
		b = swap;
	}
	for (size_t i = 0, end; ok && i < n; i = end) {
		for (end = i + 1; end < n && a[end].key == a[i].key; end++)
			;
		if (end > i + 1)
			qsort_r(a + i, end - i, sizeof *a, longer_first, t->dur_ns);
	}
	unsigned *order = (unsigned *)b; /* the room of b is free now, and large enough */
	for (size_t i = 0; ok && i < n; i++)
		order[i] = a[i].row;
	ok = ok && np_rows_permute(t, &np_host_ops_desc, order);
	np_free(a);
	np_free(b);
	return ok;
}
