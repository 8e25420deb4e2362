#include "cluster/diag_cost.h"

#include <math.h>
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
	cause->late_group = v[0].group;
	cause->group = cause->cause == NP_CAUSE_TRANSFER
	                       ? self->instances.v[v[0].instance].cause_group
	                       : v[0].group;
}

/* All delays of a group, whoever caused them. */
struct sum {
	double delays, squares;
	size_t n;
};

static void weigh(const struct sum *sum, struct np_diag_cause *cause)
{
	double n = (double)sum->n, signed_sum = 2 * (double)cause->cost - sum->delays;
	double mean = signed_sum / n;
	double variance = sum->n > 1 ? (sum->squares - n * mean * mean) / (n - 1) : 0;
	cause->net = (np_ns)signed_sum;
	/* delays that are all alike have no variance: then the sign is all there is to know */
	cause->t = variance > 0 ? mean / sqrt(variance / n) : mean > 0 ? NP_ACCUSE_T : 0;
}

/* Computing or idle time of the rank over all steps: by kernels, else as recorded; -1. */
static np_ns total_of(const struct np_diagnosis *self, uint32_t rank, bool compute)
{
	const struct np_timeline_steps *steps = self->steps[rank];
	np_ns sum = 0;
	for (size_t s = 0; s < steps->n; s++) {
		if (!self->kernels[rank]) {
			double us = compute ? steps->computing_us[s] : steps->free_us[s];
			if (!(us >= 0 && us < 1e12))
				return -1;
			sum += (np_ns)(us * 1000);
		} else if (steps->start_ns[s] != NP_NO_I64) {
			np_ns computing = steps->compute_end_ns[s] - steps->compute_start_ns[s];
			np_ns exposed = steps->exposed_end_ns[s] - steps->exposed_start_ns[s];
			sum += compute ? computing
			               : steps->end_ns[s] - steps->start_ns[s] - computing -
			                         exposed;
		}
	}
	return sum;
}

/* Does the rank's total exceed those of its peers by more than they differ themselves? */
static bool stands_out(const struct np_diagnosis *self, const struct np_diag_cause *cause,
                       np_ns *scratch)
{
	bool compute = cause->cause == NP_CAUSE_COMPUTE;
	np_ns own = total_of(self, cause->rank, compute);
	size_t n = 0;
	if (own < 0 || (!compute && cause->cause != NP_CAUSE_IDLE))
		return true;
	for (uint32_t r = 0; r < self->n_ranks; r++) {
		np_ns total = r != cause->rank && self->stage_of[r] == self->stage_of[cause->rank]
		                      ? total_of(self, r, compute)
		                      : -1;
		if (total >= 0)
			scratch[n++] = total;
	}
	if (n == 0)
		return true;
	np_ns typical = np_diag_median(scratch, n);
	for (size_t i = 0; i < n; i++)
		scratch[i] = scratch[i] > typical ? scratch[i] - typical : typical - scratch[i];
	double spread = NP_ACCUSE_Z * 1.4826 * (double)np_diag_median(scratch, n);
	double least =
		compute ? NP_ACCUSE_MORE * (double)typical : NP_ACCUSE_SHARE * (double)self->total;
	return (double)(own - typical) > (spread > least ? spread : least);
}

static bool is_accused(const struct np_diagnosis *self, const struct np_diag_cause *cause)
{
	double total = self->total > 0 ? (double)self->total : 1;
	if (cause->cause == NP_CAUSE_START)
		return false; /* ranks do not begin to record at the same time */
	if ((double)cause->net >= NP_ACCUSE_SINGLE * total)
		return true;
	return (double)cause->cost >= NP_ACCUSE_SHARE * total && cause->count >= NP_ACCUSE_COUNT &&
	       (double)cause->count >= NP_ACCUSE_PART * (double)cause->of &&
	       cause->t >= NP_ACCUSE_T;
}

static bool accuse(const struct np_diagnosis *self, struct np_diag_causes *all)
{
	struct sum *sums = np_calloc(self->groups.n + 1, sizeof *sums);
	np_ns *scratch = np_realloc(NULL, self->n_ranks + 1, sizeof *scratch);
	for (size_t i = 0; sums && i < self->instances.n; i++) {
		const struct np_diag_instance *k = &self->instances.v[i];
		if (k->p2p || k->cause == NP_CAUSE_START)
			continue;
		sums[k->group].delays += (double)k->lateness;
		sums[k->group].squares += (double)k->lateness * (double)k->lateness;
		sums[k->group].n++;
	}
	for (size_t i = 0; sums && scratch && i < all->list.n; i++) {
		struct np_diag_cause *cause = &all->list.v[i];
		if (sums[cause->late_group].n > 0)
			weigh(&sums[cause->late_group], cause);
		cause->accused = is_accused(self, cause) && stands_out(self, cause, scratch);
	}
	bool ok = sums && scratch;
	np_free(sums);
	np_free(scratch);
	return ok;
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
