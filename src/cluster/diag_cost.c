#include "cluster/diag_cost.h"

#include <stdlib.h>

/* One delayed collective. */
struct delay {
	uint32_t rank, cause, group, instance;
};

static int by_cause(const void *a, const void *b)
{
	const struct delay *x = a, *y = b;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	if (x->cause != y->cause)
		return x->cause < y->cause ? -1 : 1;
	if (x->group != y->group)
		return x->group < y->group ? -1 : 1;
	return (x->instance > y->instance) - (x->instance < y->instance);
}

static int by_cost(const void *a, const void *b)
{
	const struct np_diag_cause *x = a, *y = b;
	if (x->cost != y->cost)
		return x->cost > y->cost ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return (x->cause > y->cause) - (x->cause < y->cause);
}

/* The delays v[0 … n-1] of one rank, cause and group. */
static void add_group(const struct np_diagnosis *self, const struct delay *v, size_t n,
                      struct np_diag_cause *cause)
{
	np_ns cost = 0, most = -1;
	uint32_t worst = v[0].instance;
	for (size_t i = 0; i < n; i++) {
		const struct np_diag_instance *instance = &self->instances.v[v[i].instance];
		cost += instance->lateness;
		cause->waits += instance->waits;
		if (instance->depth > cause->depth)
			cause->depth = instance->depth;
		if (instance->lateness > most) {
			most = instance->lateness;
			worst = v[i].instance;
		}
	}
	if (cause->count > 0 && cost <= cause->cost)
		return;
	cause->cost = cost;
	cause->count = n;
	cause->of = self->groups.v[v[0].group].n_instances;
	cause->worst = worst;
	cause->group = cause->cause == NP_CAUSE_TRANSFER
	                       ? self->instances.v[v[0].instance].cause_group
	                       : v[0].group;
}

/*
 * What a typical rank costs the others by its own jitter: the median over all other ranks of
 * what they cost by computing and idle, 0 for those that never came last. Who is not well
 * above that is one of many.
 */
static bool typical_cost(const struct np_diagnosis *self, const struct np_diag_causes *all,
                         uint32_t rank, np_ns *scratch, np_ns *out)
{
	size_t n = 0;
	for (size_t r = 0; r < self->n_ranks; r++)
		scratch[r] = 0;
	for (size_t i = 0; i < all->list.n; i++) {
		const struct np_diag_cause *cause = &all->list.v[i];
		if (cause->cause != NP_CAUSE_START && cause->cost > scratch[cause->rank])
			scratch[cause->rank] = cause->cost;
	}
	for (size_t r = 0; r < self->n_ranks; r++)
		if (r != rank)
			scratch[n++] = scratch[r];
	*out = np_diag_median(scratch, n);
	return n > 0;
}

static bool is_accused(const struct np_diagnosis *self, const struct np_diag_cause *cause,
                       np_ns typical)
{
	double share = self->total > 0 ? (double)cause->cost / (double)self->total : 0;
	if (cause->cause == NP_CAUSE_START)
		return false; /* ranks do not begin to record at the same time */
	if (self->n_ranks > NP_ACCUSE_FEW &&
	    (double)cause->cost < NP_ACCUSE_TIMES * (double)typical)
		return false;
	return share >= NP_ACCUSE_SINGLE ||
	       (share >= NP_ACCUSE_SHARE && cause->count >= NP_ACCUSE_COUNT &&
	        (double)cause->count >= NP_ACCUSE_PART * (double)cause->of);
}

static bool accuse(const struct np_diagnosis *self, struct np_diag_causes *all)
{
	np_ns *scratch = np_realloc(NULL, self->n_ranks + 1, sizeof *scratch), typical;
	for (size_t i = 0; scratch && i < all->list.n; i++) {
		struct np_diag_cause *cause = &all->list.v[i];
		/* costs are in order: nothing below the share can be accused */
		if ((double)cause->cost < NP_ACCUSE_SHARE * (double)self->total)
			break;
		(void)typical_cost(self, all, cause->rank, scratch, &typical);
		cause->accused = is_accused(self, cause, typical);
	}
	np_free(scratch);
	return scratch != NULL;
}

static bool put_together(const struct np_diagnosis *self, const struct delay *v, size_t n,
                         struct np_diag_causes *out)
{
	for (size_t i = 0; i < n;) {
		struct np_diag_cause cause = {.rank = v[i].rank, .cause = (uint8_t)v[i].cause};
		size_t end = i;
		while (end < n && v[end].rank == v[i].rank && v[end].cause == v[i].cause) {
			size_t stop = end;
			while (stop < n && v[stop].rank == v[i].rank &&
			       v[stop].cause == v[i].cause && v[stop].group == v[end].group)
				stop++;
			add_group(self, &v[end], stop - end, &cause);
			end = stop;
		}
		if (!np_vec_push(&out->list, cause))
			return false;
		i = end;
	}
	if (out->list.n > 0)
		qsort(out->list.v, out->list.n, sizeof *out->list.v, by_cost);
	return true;
}

bool np_diag_cost(const struct np_diagnosis *self, struct np_diag_causes *out)
{
	NP_VEC(struct delay) delays = {0};
	bool ok = true;
	for (uint32_t i = 0; ok && i < self->instances.n; i++) {
		const struct np_diag_instance *k = &self->instances.v[i];
		/* a receiver that waits for its sender is how pipelines work: no delay by itself */
		if (k->blamed && !k->p2p && k->lateness > 0 && k->culprit != NP_DIAG_NONE)
			ok = np_vec_push(&delays,
			                 (struct delay){k->culprit, k->cause, k->group, i});
	}
	if (delays.n > 0)
		qsort(delays.v, delays.n, sizeof *delays.v, by_cause);
	ok = ok && put_together(self, delays.v, delays.n, out) && accuse(self, out);
	np_vec_release(&delays);
	return ok;
}
