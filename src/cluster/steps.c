#include "cluster/steps.h"

#include <stdlib.h>

static int by_start(const void *a, const void *b)
{
	const struct np_step_range *x = a, *y = b;
	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return (x->id > y->id) - (x->id < y->id);
}

bool np_step_finder_init(struct np_step_finder *self, const struct np_steps *steps)
{
	*self = (struct np_step_finder){np_realloc(NULL, steps->n + 1, sizeof *self->v), 0};
	for (size_t i = 0; self->v && i < steps->n; i++)
		if (steps->host_start_ns[i] != NP_NO_I64)
			self->v[self->n++] = (struct np_step_range){
				steps->host_start_ns[i], steps->host_end_ns[i], steps->id[i]};
	if (self->n > 1)
		qsort(self->v, self->n, sizeof *self->v, by_start);
	return self->v != NULL;
}

void np_step_finder_release(struct np_step_finder *self)
{
	np_free(self->v);
	*self = (struct np_step_finder){0};
}

int64_t np_step_find(const struct np_step_finder *self, np_ns at)
{
	size_t low = 0, high = self->n;
	while (low < high) {
		size_t mid = low + (high - low) / 2;
		if (self->v[mid].start <= at)
			low = mid + 1;
		else
			high = mid;
	}
	return low > 0 && at <= self->v[low - 1].end ? self->v[low - 1].id : NP_NO_I64;
}
