#include "profile/interval.h"

#include <stdlib.h>

void np_intervals_release(struct np_intervals *self)
{
	np_vec_release(self);
}

bool np_intervals_add(struct np_intervals *self, np_ns start, np_ns end)
{
	if (end <= start)
		return true;
	return np_vec_push(self, (struct np_interval){start, end});
}

static int by_start(const void *a, const void *b)
{
	const struct np_interval *x = a, *y = b;
	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return (x->end > y->end) - (x->end < y->end);
}

void np_intervals_merge(struct np_intervals *self)
{
	if (self->n < 2)
		return;
	bool sorted = true;
	for (size_t i = 1; i < self->n && sorted; i++)
		sorted = self->v[i - 1].start <= self->v[i].start;
	if (!sorted)
		qsort(self->v, self->n, sizeof *self->v, by_start);
	size_t last = 0;
	for (size_t i = 1; i < self->n; i++) {
		if (self->v[i].start > self->v[last].end)
			self->v[++last] = self->v[i];
		else if (self->v[i].end > self->v[last].end)
			self->v[last].end = self->v[i].end;
	}
	self->n = last + 1;
}

bool np_intervals_subtract(const struct np_intervals *a, const struct np_intervals *b,
                           struct np_intervals *out)
{
	out->n = 0;
	size_t j = 0;
	for (size_t i = 0; i < a->n; i++) {
		np_ns from = a->v[i].start, end = a->v[i].end;
		while (j < b->n && b->v[j].end <= from)
			j++;
		for (size_t k = j; k < b->n && b->v[k].start < end; k++) {
			if (!np_intervals_add(out, from, b->v[k].start))
				return false;
			from = b->v[k].end;
		}
		if (!np_intervals_add(out, from, end))
			return false;
	}
	return true;
}

bool np_intervals_intersect(const struct np_intervals *a, const struct np_intervals *b,
                            struct np_intervals *out)
{
	out->n = 0;
	for (size_t i = 0, j = 0; i < a->n && j < b->n;) {
		np_ns start = a->v[i].start > b->v[j].start ? a->v[i].start : b->v[j].start;
		np_ns end = a->v[i].end < b->v[j].end ? a->v[i].end : b->v[j].end;
		if (!np_intervals_add(out, start, end))
			return false;
		if (a->v[i].end < b->v[j].end)
			i++;
		else
			j++;
	}
	return true;
}

bool np_intervals_union(const struct np_intervals *a, const struct np_intervals *b,
                        struct np_intervals *out)
{
	out->n = 0;
	for (size_t i = 0; i < a->n; i++)
		if (!np_intervals_add(out, a->v[i].start, a->v[i].end))
			return false;
	for (size_t i = 0; i < b->n; i++)
		if (!np_intervals_add(out, b->v[i].start, b->v[i].end))
			return false;
	np_intervals_merge(out);
	return true;
}

np_ns np_intervals_length(const struct np_intervals *self)
{
	np_ns sum = 0;
	for (size_t i = 0; i < self->n; i++)
		sum += self->v[i].end - self->v[i].start;
	return sum;
}
