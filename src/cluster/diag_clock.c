/*
 * One clock for all hosts, from the ends of collectives.
 *
 * A synchronising collective ends nearly at once on all its ranks. So with T_k
 * the true end of collective k, and o_d the offset of clock d,
 *
 *   end(k, d) = T_k + o_d + noise
 *
 * First a spanning tree of the pairs of clocks that share most collectives, with
 * the median difference on each edge; then T_k and o_d are refined in turn, each
 * the median of what the other leaves (least absolute deviations, so a few late
 * ends move nothing). A drift is a line instead of a constant, taken only where
 * it is larger than the noise. diagnosis_methods.md §2.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/diag.h"

enum {
	ROUNDS = 32,          /* at most; two clocks halve what is left in each */
	DRIFT_MIN = 6,        /* collectives below which no drift is looked for */
	LEAST_DRIFT_NS = 300, /* change of an offset that is too small to matter */
	UNCERTAIN_NS = 50000, /* deviation of ends above which clocks are not trusted */
};

/* The end of one collective in one clock: the median of the clock's ranks in it. */
struct seen {
	uint32_t instance, domain;
	np_ns end;
};

struct pair {
	uint32_t a, b;
	np_ns difference; /* of b against a */
	uint32_t n;
};

struct fit {
	struct np_diagnosis *diag;
	NP_VEC(struct seen) seen; /* by instance */
	size_t *of_domain;        /* seen rows, those of a domain together */
	size_t *start;            /* domains + 1 */
	np_ns *truth;             /* T_k by seen row of its instance's first */
	np_ns *scratch;
	NP_VEC(struct pair) pairs;
};

static int compare_ns(const void *a, const void *b)
{
	np_ns x = *(const np_ns *)a, y = *(const np_ns *)b;
	return (x > y) - (x < y);
}

np_ns np_diag_median(np_ns *v, size_t n)
{
	if (n == 0)
		return 0;
	if (n > 1)
		qsort(v, n, sizeof *v, compare_ns);
	/* the lower of two middle ones and the upper, together: no preference for either */
	return n % 2 ? v[n / 2] : v[n / 2 - 1] + (v[n / 2] - v[n / 2 - 1]) / 2;
}

np_ns np_diag_time(const struct np_diagnosis *self, uint32_t rank, np_ns t)
{
	const struct np_diag_domain *domain = &self->domains.v[self->domain_of[rank]];
	double drift =
		domain->drift_ppm == 0 ? 0 : (double)(t - self->zero) * domain->drift_ppm * 1e-6;
	return t - domain->offset - (np_ns)llround(drift);
}

/* ── clocks ── */

static const char *clock_name(const struct np_capture *capture)
{
	return *capture->host_uid ? capture->host_uid : capture->host;
}

static bool find_domains(struct np_diagnosis *self)
{
	const struct np_cluster *cluster = self->cluster;
	struct np_map known;
	bool ok = true;
	np_map_init(&known);
	for (uint32_t r = 0; ok && r < self->n_ranks; r++) {
		const struct np_capture *capture = cluster->ranks.v[r].capture;
		const char *name = clock_name(capture);
		np_id id = *name ? np_intern_add(&self->cluster->strings, np_str_of(name)) : 0;
		uint32_t d = *name ? np_map_get(&known, id, NP_DIAG_NONE) : NP_DIAG_NONE;
		if (d == NP_DIAG_NONE) {
			d = (uint32_t)self->domains.n;
			struct np_diag_domain domain = {.name = *capture->host ? capture->host
			                                                       : name};
			if (!*name)
				domain.name = np_arena_printf(&self->cluster->arena, "rank %lld",
				                              (long long)cluster->ranks.v[r].rank);
			ok = domain.name && id != NP_ID_NONE &&
			     np_vec_push(&self->domains, domain) &&
			     (!*name || np_map_put(&known, id, d));
		}
		self->domain_of[r] = d;
		if (ok)
			self->domains.v[d].ranks++;
	}
	np_map_release(&known);
	return ok;
}

/* ── what was seen ── */

bool np_diag_synchronises(const struct np_diagnosis *self, const struct np_diag_instance *instance)
{
	static const char *const types[] = {"allreduce",     "allgather",      "allgatherv",
	                                    "reducescatter", "reducescatterv", "alltoall",
	                                    "alltoallv",     "alltoallvc",     "barrier"};
	const struct np_diag_member *m = &self->members.v[instance->first];
	np_str type = np_cluster_text(self->cluster, self->ops[m->rank]->type[m->row]);
	for (size_t i = 0; !instance->p2p && i < sizeof types / sizeof *types; i++)
		if (np_str_is(type, types[i]))
			return true;
	return false;
}

struct end {
	uint32_t domain;
	np_ns end;
};

static int by_domain(const void *a, const void *b)
{
	const struct end *x = a, *y = b;
	if (x->domain != y->domain)
		return x->domain < y->domain ? -1 : 1;
	return (x->end > y->end) - (x->end < y->end);
}

static bool look_at(struct fit *self, uint32_t k, struct end *ends)
{
	struct np_diagnosis *diag = self->diag;
	const struct np_diag_instance *instance = &diag->instances.v[k];
	const struct np_diag_member *members = &diag->members.v[instance->first];
	for (uint32_t m = 0; m < instance->n; m++) {
		const struct np_timeline_ops *ops = diag->ops[members[m].rank];
		ends[m] = (struct end){diag->domain_of[members[m].rank],
		                       ops->start_ns[members[m].row] + ops->dur_ns[members[m].row]};
	}
	qsort(ends, instance->n, sizeof *ends, by_domain);
	if (ends[0].domain == ends[instance->n - 1].domain)
		return true; /* one clock: nothing to learn */
	for (uint32_t i = 0; i < instance->n;) {
		uint32_t end = i;
		while (end < instance->n && ends[end].domain == ends[i].domain)
			end++;
		if (!np_vec_push(&self->seen,
		                 (struct seen){k, ends[i].domain, ends[i + (end - i) / 2].end}))
			return false;
		i = end;
	}
	return true;
}

static bool look_at_all(struct fit *self)
{
	struct np_diagnosis *diag = self->diag;
	struct end *ends = np_realloc(NULL, diag->n_ranks + 1, sizeof *ends);
	bool ok = ends != NULL;
	for (uint32_t k = 0; ok && k < diag->instances.n; k++)
		if (np_diag_synchronises(diag, &diag->instances.v[k]))
			ok = look_at(self, k, ends);
	np_free(ends);
	return ok;
}

static int by_end(const void *a, const void *b, void *ctx)
{
	const struct fit *self = ctx;
	const struct seen *x = &self->seen.v[*(const size_t *)a];
	const struct seen *y = &self->seen.v[*(const size_t *)b];
	if (x->end != y->end)
		return x->end < y->end ? -1 : 1;
	return (x->instance > y->instance) - (x->instance < y->instance);
}

/* of_domain and start: the seen rows of each clock, in order of time. */
static bool index_domains(struct fit *self)
{
	size_t n = self->seen.n, n_domains = self->diag->domains.n;
	self->of_domain = np_realloc(NULL, n + 1, sizeof *self->of_domain);
	self->start = np_calloc(n_domains + 2, sizeof *self->start);
	self->truth = np_realloc(NULL, n + 1, sizeof *self->truth);
	self->scratch = np_realloc(NULL, n + 1, sizeof *self->scratch);
	if (!self->of_domain || !self->start || !self->truth || !self->scratch)
		return false;
	for (size_t i = 0; i < n; i++)
		self->start[self->seen.v[i].domain + 2]++;
	for (size_t d = 0; d < n_domains; d++)
		self->start[d + 2] += self->start[d + 1];
	for (size_t i = 0; i < n; i++)
		self->of_domain[self->start[self->seen.v[i].domain + 1]++] = i;
	for (size_t d = 0; d < n_domains; d++)
		if (self->start[d + 1] > self->start[d])
			qsort_r(&self->of_domain[self->start[d]],
			        self->start[d + 1] - self->start[d], sizeof *self->of_domain,
			        by_end, self);
	for (size_t d = 0; d < n_domains; d++)
		self->diag->domains.v[d].n = self->start[d + 1] - self->start[d];
	return true;
}

/* ── the first guess: a spanning tree ── */

static int by_pair(const void *a, const void *b)
{
	const struct pair *x = a, *y = b;
	if (x->a != y->a)
		return x->a < y->a ? -1 : 1;
	if (x->b != y->b)
		return x->b < y->b ? -1 : 1;
	return (x->difference > y->difference) - (x->difference < y->difference);
}

static int by_count(const void *a, const void *b)
{
	const struct pair *x = a, *y = b;
	if (x->n != y->n)
		return x->n > y->n ? -1 : 1;
	return by_pair(a, b);
}

/* Each clock of a collective against its first; then one pair with the median of each. */
static bool make_pairs(struct fit *self)
{
	size_t first = 0, n = 0;
	for (size_t i = 1; i < self->seen.n; i++) {
		const struct seen *a = &self->seen.v[first], *b = &self->seen.v[i];
		if (a->instance != b->instance)
			first = i;
		else if (!np_vec_push(&self->pairs,
		                      (struct pair){a->domain, b->domain, b->end - a->end, 1}))
			return false;
	}
	if (self->pairs.n > 0)
		qsort(self->pairs.v, self->pairs.n, sizeof *self->pairs.v, by_pair);
	for (size_t i = 0; i < self->pairs.n;) {
		size_t end = i;
		while (end < self->pairs.n && self->pairs.v[end].a == self->pairs.v[i].a &&
		       self->pairs.v[end].b == self->pairs.v[i].b)
			end++;
		struct pair pair = self->pairs.v[i + (end - i) / 2];
		pair.n = (uint32_t)(end - i);
		self->pairs.v[n++] = pair;
		i = end;
	}
	self->pairs.n = n;
	if (n > 0)
		qsort(self->pairs.v, n, sizeof *self->pairs.v, by_count);
	return true;
}

/*
 * Prim's way over the pairs, most collectives first: whoever touches the known
 * ones becomes known. Clocks that nothing connects stay at offset 0 and unknown.
 */
static void span(struct fit *self)
{
	struct np_diag_domain *d = self->diag->domains.v;
	d[0].known = true;
	for (bool grew = true; grew;) {
		grew = false;
		for (size_t i = 0; i < self->pairs.n; i++) {
			const struct pair *p = &self->pairs.v[i];
			if (d[p->a].known == d[p->b].known)
				continue;
			if (d[p->a].known)
				d[p->b].offset = d[p->a].offset + p->difference;
			else
				d[p->a].offset = d[p->b].offset - p->difference;
			d[p->a].known = d[p->b].known = true;
			grew = true;
			break;
		}
	}
}

/* ── refinement ── */

static np_ns predicted(const struct fit *self, const struct seen *seen)
{
	const struct np_diag_domain *d = &self->diag->domains.v[seen->domain];
	return d->offset +
	       (np_ns)llround((double)(seen->end - self->diag->zero) * d->drift_ppm * 1e-6);
}

static void refine_truth(struct fit *self)
{
	for (size_t i = 0; i < self->seen.n;) {
		size_t end = i, n = 0;
		for (; end < self->seen.n && self->seen.v[end].instance == self->seen.v[i].instance;
		     end++)
			self->scratch[n++] =
				self->seen.v[end].end - predicted(self, &self->seen.v[end]);
		np_ns median = np_diag_median(self->scratch, n);
		for (; i < end; i++)
			self->truth[i] = median;
	}
}

/* What remains of the domain's seen rows [from, to) when their truth is taken away. */
static np_ns median_rest(struct fit *self, size_t from, size_t to, np_ns *time)
{
	for (size_t i = from; i < to; i++)
		self->scratch[i - from] = self->seen.v[self->of_domain[i]].end;
	*time = np_diag_median(self->scratch, to - from);
	for (size_t i = from; i < to; i++) {
		size_t row = self->of_domain[i];
		self->scratch[i - from] = self->seen.v[row].end - self->truth[row];
	}
	return np_diag_median(self->scratch, to - from);
}

static np_ns spread_of(struct fit *self, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++) {
		const struct seen *seen = &self->seen.v[self->of_domain[i]];
		np_ns rest = seen->end - self->truth[self->of_domain[i]] - predicted(self, seen);
		self->scratch[i - from] = rest < 0 ? -rest : rest;
	}
	return np_diag_median(self->scratch, to - from);
}

/* A line through the medians of the earlier and the later half; kept when the change over
 * the capture is larger than the noise of a median of so many. */
static void refine_domain(struct fit *self, size_t d, bool drift)
{
	struct np_diag_domain *domain = &self->diag->domains.v[d];
	size_t from = self->start[d], to = self->start[d + 1], mid = from + (to - from) / 2;
	np_ns t1, t2, t;
	if (from == to || !domain->known || d == 0)
		return;
	domain->drift_ppm = 0;
	domain->offset = median_rest(self, from, to, &t);
	np_ns noise = spread_of(self, from, to);
	domain->spread = noise;
	if (!drift || to - from < DRIFT_MIN)
		return;
	np_ns early = median_rest(self, from, mid, &t1), late = median_rest(self, mid, to, &t2);
	double change = (double)(late - early);
	/* a drift is most of its own noise around a constant: look at what the line leaves */
	domain->drift_ppm = t2 > t1 ? change / (double)(t2 - t1) * 1e6 : 0;
	np_ns offset = domain->offset;
	domain->offset =
		early - (np_ns)llround((double)(t1 - self->diag->zero) * domain->drift_ppm * 1e-6);
	domain->spread = spread_of(self, from, to);
	double error = 4 * 1.4826 * (double)domain->spread / sqrt((double)(to - from) / 2);
	if (fabs(change) > error + LEAST_DRIFT_NS && domain->spread < noise)
		return;
	domain->drift_ppm = 0;
	domain->offset = offset;
	domain->spread = noise;
}

/* Until nothing moves: the sum of what offsets and drifts have changed, in ns. */
static void refine(struct fit *self)
{
	struct np_diagnosis *diag = self->diag;
	for (int round = 0; round < ROUNDS; round++) {
		double moved = 0;
		refine_truth(self);
		for (size_t d = 1; d < diag->domains.n; d++) {
			struct np_diag_domain before = diag->domains.v[d];
			refine_domain(self, d, round >= 1);
			moved += fabs((double)(diag->domains.v[d].offset - before.offset)) +
			         fabs(diag->domains.v[d].drift_ppm - before.drift_ppm) * 1000;
		}
		if (round > 1 && moved < 1)
			break;
	}
	refine_truth(self);
	if (self->seen.n > 0 && self->start[1] > 0)
		diag->domains.v[0].spread = spread_of(self, 0, self->start[1]);
}

/* ── do the ends agree now? ── */

/* What one rank's end is off by in one collective. */
struct off {
	uint32_t rank;
	np_ns by;
};

static int by_rank(const void *a, const void *b)
{
	const struct off *x = a, *y = b;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return (x->by > y->by) - (x->by < y->by);
}

static void fit_rank(struct np_diag_fit *fit, struct off *v, size_t n)
{
	fit->n = n;
	fit->median = v[n / 2].by;
	for (size_t i = 0; i < n; i++)
		v[i].by = v[i].by > fit->median ? v[i].by - fit->median : fit->median - v[i].by;
	qsort(v, n, sizeof *v, by_rank);
	fit->spread = v[n / 2].by;
}

static bool find_offs(const struct np_diagnosis *self, np_ns *scratch, struct off **out, size_t *n)
{
	NP_VEC(struct off) offs = {0};
	bool ok = true;
	for (size_t k = 0; ok && k < self->instances.n; k++) {
		const struct np_diag_instance *instance = &self->instances.v[k];
		const struct np_diag_member *members = &self->members.v[instance->first];
		if (!np_diag_synchronises(self, instance))
			continue;
		for (uint32_t m = 0; m < instance->n; m++)
			scratch[m] = np_diag_end(self, &members[m]);
		np_ns median = np_diag_median(scratch, instance->n);
		for (uint32_t m = 0; ok && m < instance->n; m++)
			ok = np_vec_push(&offs,
			                 (struct off){members[m].rank,
			                              np_diag_end(self, &members[m]) - median});
	}
	*out = offs.v;
	*n = offs.n;
	return ok;
}

/*
 * Ranks of one host share a clock, so nothing was measured between them; here it is.
 * Where an end is off by more than the limit, half of the time, clocks can't be trusted:
 * the host is not one machine, or the capture is not of one run.
 */
static bool check_ends(struct np_diagnosis *self)
{
	struct off *offs = NULL;
	size_t n = 0;
	np_ns *scratch = np_realloc(NULL, self->n_ranks + 1, sizeof *scratch);
	self->fits = np_calloc(self->n_ranks + 1, sizeof *self->fits);
	bool ok = scratch && self->fits && find_offs(self, scratch, &offs, &n);
	if (ok && n > 0)
		qsort(offs, n, sizeof *offs, by_rank);
	for (size_t i = 0; ok && i < n;) {
		size_t end = i;
		while (end < n && offs[end].rank == offs[i].rank)
			end++;
		struct np_diag_fit *fit = &self->fits[offs[i].rank];
		fit_rank(fit, &offs[i], end - i);
		self->n_off += fit->spread > UNCERTAIN_NS || fit->median > UNCERTAIN_NS ||
		               fit->median < -UNCERTAIN_NS;
		i = end;
	}
	self->by_duration = self->n_off > 0;
	np_free(scratch);
	np_free(offs);
	return ok;
}

bool np_diag_clock(struct np_diagnosis *self)
{
	struct fit fit = {.diag = self};
	self->domain_of = np_calloc(self->n_ranks + 1, sizeof *self->domain_of);
	bool ok = self->domain_of && find_domains(self) && look_at_all(&fit);
	if (ok && fit.seen.n > 0)
		self->zero = fit.seen.v[0].end;
	ok = ok && index_domains(&fit) && make_pairs(&fit);
	if (ok) {
		span(&fit);
		refine(&fit);
	}
	ok = ok && check_ends(self);
	np_vec_release(&fit.seen);
	np_vec_release(&fit.pairs);
	np_free(fit.of_domain);
	np_free(fit.start);
	np_free(fit.truth);
	np_free(fit.scratch);
	return ok;
}
