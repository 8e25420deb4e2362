#include "capture/db_ranges.h"

void np_ranges_index(struct np_ranges *self)
{
	np_ns reach = INT64_MIN, from = INT64_MAX;
	for (size_t i = 0; i < self->n; i++) {
		if (self->v[i].end > reach)
			reach = self->v[i].end;
		self->v[i].reach = reach;
	}
	for (size_t i = self->n; i-- > 0;) {
		if (self->v[i].start < from)
			from = self->v[i].start;
		self->v[i].from = from;
	}
}

size_t np_ranges_find(const struct np_ranges *self, np_ns from, np_ns to)
{
	size_t low = 0, high = self->n;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (self->v[middle].reach < to)
			low = middle + 1;
		else
			high = middle;
	}
	for (size_t i = low; i < self->n && self->v[i].from <= from; i++)
		if (self->v[i].start <= from && to <= self->v[i].end)
			return i;
	return SIZE_MAX;
}
