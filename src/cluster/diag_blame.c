/*
 * Who came last, how late, and why (diagnosis_methods.md §2 "Arrival", §3).
 *
 * Between the last point at which all ranks of the group were together and this
 * collective, a rank's time is computing + exposed communication + idle. The
 * part in which the last rank exceeds the median of its peers is the cause. When
 * that part is waiting in another group, the blame moves on to whoever came last
 * there, and so on backwards in time.
 */
#include <stdlib.h>

#include "cluster/diag.h"
#include "report/lang.h"

enum {
	MAX_DEPTH = 64,  /* groups that a blame moves through */
	MAX_BACK = 4096, /* ops that are looked back for a common point */
	MAX_GROUPS = 4,  /* of a sender, in which its peers are looked for */
	MAX_PEERS = 64,  /* that a rank is compared with; of larger groups every n-th */
	EXPLAINS = 5,    /* a part explains a delay of at most so many times its length */
};

const char *np_cause_name(enum np_cause cause)
{
	static const char *const names[NP_N_CAUSES] = {NP_N("unknown"), NP_N("start of capture"),
	                                               NP_N("computing"), NP_N("idle"),
	                                               NP_N("transfer")};
	return names[cause];
}

/* ── arrivals ── */

/*
 * When the member came. Where clocks can't be trusted, of a collective that ends
 * at once everywhere: its duration before the common end, which needs no clock.
 */
static np_ns arrival_of(const struct np_diagnosis *self, const struct np_diag_instance *instance,
                        const struct np_diag_member *m, np_ns end)
{
	if (!self->by_duration || !np_diag_synchronises(self, instance))
		return np_diag_start(self, m);
	return end - self->ops[m->rank]->dur_ns[m->row];
}

static void arrive(struct np_diagnosis *self, struct np_diag_instance *instance)
{
	const struct np_diag_member *members = &self->members.v[instance->first];
	np_ns last = INT64_MIN, second = INT64_MIN, sum = 0, end = INT64_MAX;
	for (uint32_t m = 0; m < instance->n; m++) {
		np_ns own = np_diag_end(self, &members[m]);
		end = own < end ? own : end;
	}
	for (uint32_t m = 0; m < instance->n; m++) {
		np_ns start = arrival_of(self, instance, &members[m], end);
		if (start > last) {
			second = last;
			last = start;
			instance->last = members[m].rank;
		} else if (start > second) {
			second = start;
		}
		sum += start - end; /* small, so that the sum of many fits */
	}
	instance->arrival = last;
	instance->lateness = last - second;
	instance->waits = (last - end) * (np_ns)instance->n - sum;
	instance->transfer = end - last;
	if (instance->transfer < 0) {
		instance->transfer = 0;
		self->n_clamped++;
	}
}

/* How long the member waited for the last. */
np_ns np_diag_wait(const struct np_diagnosis *self, const struct np_diag_instance *instance,
                   const struct np_diag_member *m)
{
	if (self->by_duration && np_diag_synchronises(self, instance))
		return self->ops[m->rank]->dur_ns[m->row] - instance->transfer;
	return instance->arrival - np_diag_start(self, m);
}

bool np_diag_arrive(struct np_diagnosis *self)
{
	for (size_t i = 0; i < self->instances.n; i++)
		arrive(self, &self->instances.v[i]);
	return true;
}

/* ── where all were together before ── */

struct blame {
	struct np_diagnosis *diag;
	struct np_map contains; /* group a << 32 | b → 1: all ranks of b are in a, 0 */
	np_ns *scratch;
	bool oom;
	/* medians over all ranks of computing and free, by step */
	struct np_map step_rows;
	NP_VEC(struct typical { np_ns ns[2]; }) typical;
};

static bool is_subset(const struct np_diag_group *small, const struct np_diag_group *large)
{
	uint32_t k = 0;
	for (uint32_t i = 0; i < small->n_ranks; i++) {
		while (k < large->n_ranks && large->ranks[k] < small->ranks[i])
			k++;
		if (k == large->n_ranks || large->ranks[k] != small->ranks[i])
			return false;
	}
	return true;
}

static bool contains(struct blame *self, uint32_t large, uint32_t small)
{
	uint64_t key = (uint64_t)large << 32 | small;
	uint32_t known = large == small ? 1 : np_map_get(&self->contains, key, 2);
	if (known == 2) {
		known = is_subset(&self->diag->groups.v[small], &self->diag->groups.v[large]);
		self->oom |= !np_map_put(&self->contains, key, known);
	}
	return known == 1;
}

/*
 * The latest instance before this one in which all its ranks took part, seen from
 * the rank that was last; NP_DIAG_NONE.
 *
 * A send and its receive bring nobody together, and the two ranks do different
 * things. The sender's peers are those of its other groups: before such an op it
 * is the latest collective of each of the rank's groups in turn (tp, then dp),
 * the first of which `from` tells: its group is looked for no more.
 */
static uint32_t together_before(struct blame *self, uint32_t at, uint32_t *from, uint32_t skip)
{
	const struct np_diagnosis *diag = self->diag;
	const struct np_diag_instance *instance = &diag->instances.v[at];
	const struct np_diag_member *last = np_diag_member_of(diag, instance, instance->last);
	uint32_t stop = last->row > MAX_BACK ? last->row - MAX_BACK : 0;
	for (uint32_t row = *from; row-- > stop;) {
		uint32_t k = np_diag_instance_of(diag, last->rank, row);
		if (k == NP_DIAG_NONE || k == at || diag->instances.v[k].p2p ||
		    diag->instances.v[k].group == skip)
			continue;
		if (!instance->p2p &&
		    (diag->instances.v[k].n < instance->n ||
		     !contains(self, diag->instances.v[k].group, instance->group)))
			continue;
		*from = row;
		return k;
	}
	return NP_DIAG_NONE;
}

/* ── the parts ── */

struct parts {
	np_ns compute, exposed, idle;
};

/* What a rank did from the end of its op `a` to the start of its op `b`; false when the two
 * overlap. */
static bool parts_between(const struct np_diagnosis *self, uint32_t rank, uint32_t a, uint32_t b,
                          struct parts *out)
{
	const struct np_timeline_ops *ops = self->ops[rank];
	np_ns from = ops->start_ns[a] + ops->dur_ns[a], to = ops->start_ns[b];
	out->compute = ops->compute_start_ns[b] - ops->compute_end_ns[a];
	out->exposed = ops->exposed_start_ns[b] - ops->exposed_end_ns[a];
	out->idle = to - from - out->compute - out->exposed;
	return to > from;
}

/*
 * The op of `rank` that corresponds to the instance: its own; of a send or receive of two
 * other ranks the one with the same number among its ops of that kind since `before`.
 * NP_DIAG_NONE.
 */
static uint32_t counterpart(const struct np_diagnosis *self, const struct np_diag_instance *before,
                            const struct np_diag_instance *instance, uint32_t rank)
{
	const struct np_diag_member *own = np_diag_member_of(self, instance, rank);
	if (!instance->p2p || rank == instance->last)
		return own ? own->row : NP_DIAG_NONE;
	const struct np_diag_member *last = np_diag_member_of(self, instance, instance->last);
	const struct np_diag_member *from = np_diag_member_of(self, before, instance->last);
	const struct np_timeline_ops *ops = self->ops[last->rank];
	np_id type = ops->type[last->row];
	size_t number = 0;
	for (uint32_t row = from->row + 1; row <= last->row; row++)
		number += ops->type[row] == type;
	ops = self->ops[rank];
	for (uint32_t row = np_diag_member_of(self, before, rank)->row + 1; row < ops->n; row++)
		if (ops->type[row] == type && --number == 0)
			return row;
	return NP_DIAG_NONE;
}

static bool parts_of(const struct np_diagnosis *self, const struct np_diag_instance *before,
                     const struct np_diag_instance *instance, uint32_t rank, struct parts *out)
{
	const struct np_diag_member *a = np_diag_member_of(self, before, rank);
	uint32_t b = a ? counterpart(self, before, instance, rank) : NP_DIAG_NONE;
	return b != NP_DIAG_NONE && parts_between(self, rank, a->row, b, out);
}

/* Every n-th member of a large group, so that the work grows with the ranks, not squared. */
static uint32_t peer_stride(const struct np_diag_instance *peers)
{
	return peers->n / MAX_PEERS + 1;
}

/* Median of a part over the peers; false when there is none to compare with. */
static bool median_parts(struct blame *self, const struct np_diag_instance *before,
                         const struct np_diag_instance *instance, struct parts *out)
{
	const struct np_diagnosis *diag = self->diag;
	const struct np_diag_instance *peers = instance->p2p ? before : instance;
	size_t n = 0, stride = MAX_PEERS + 1;
	for (uint32_t m = 0; m < peers->n; m += peer_stride(peers)) {
		struct parts parts;
		uint32_t rank = diag->members.v[peers->first + m].rank;
		if (rank == instance->last || !parts_of(diag, before, instance, rank, &parts))
			continue;
		self->scratch[n] = parts.compute;
		self->scratch[stride + n] = parts.exposed;
		self->scratch[2 * stride + n] = parts.idle;
		n++;
	}
	out->compute = np_diag_median(self->scratch, n);
	out->exposed = np_diag_median(&self->scratch[stride], n);
	out->idle = np_diag_median(&self->scratch[2 * stride], n);
	return n > 0;
}

static void settle(struct np_diag_instance *instance, uint32_t rank, enum np_cause cause)
{
	instance->culprit = rank;
	instance->cause = (uint8_t)cause;
	instance->blamed = true;
}

/* ── waiting in other groups: the blame moves on ── */

/* Who made the last rank wait on its way, and by how much more than a peer. */
struct tally {
	uint32_t rank, group;
	uint8_t cause, depth;
	np_ns sum;
};

enum { MAX_TALLY = 64 };

struct tallies {
	struct tally v[MAX_TALLY];
	size_t n;
};

static void count(struct tallies *self, struct tally one)
{
	size_t i = 0;
	while (i < self->n && (self->v[i].rank != one.rank || self->v[i].cause != one.cause ||
	                       self->v[i].group != one.group))
		i++;
	if (i == MAX_TALLY)
		return; /* so many culprits that none of them matters */
	if (i == self->n)
		self->v[self->n++] = (struct tally){one.rank, one.group, one.cause, 0, 0};
	self->v[i].sum += one.sum;
	if (one.depth > self->v[i].depth)
		self->v[i].depth = one.depth;
}

/* Waiting for others in an op, and the rest of its duration; 0 where it is not matched. */
static void wait_in(const struct np_diagnosis *self, uint32_t rank, uint32_t row, np_ns *wait,
                    np_ns *rest)
{
	uint32_t k = np_diag_instance_of(self, rank, row);
	*wait = *rest = 0;
	if (k == NP_DIAG_NONE)
		return;
	const struct np_diag_instance *op = &self->instances.v[k];
	*wait = np_diag_wait(self, op, np_diag_member_of(self, op, rank));
	*rest = self->ops[rank]->dur_ns[row] - *wait;
}

/* The peer whose exposed communication is nearest to the median. */
static uint32_t typical_peer(struct blame *self, const struct np_diag_instance *before,
                             const struct np_diag_instance *instance, np_ns median)
{
	const struct np_diagnosis *diag = self->diag;
	const struct np_diag_instance *peers = instance->p2p ? before : instance;
	uint32_t best = NP_DIAG_NONE;
	np_ns nearest = INT64_MAX;
	for (uint32_t m = 0; m < peers->n; m += peer_stride(peers)) {
		struct parts parts;
		uint32_t rank = diag->members.v[peers->first + m].rank;
		if (rank == instance->last || !parts_of(diag, before, instance, rank, &parts))
			continue;
		np_ns off =
			parts.exposed > median ? parts.exposed - median : median - parts.exposed;
		if (off < nearest) {
			nearest = off;
			best = rank;
		}
	}
	return best;
}

static void blame_at(struct blame *self, uint32_t at, unsigned depth);

/* One op on the way: what it cost this rank beyond the peer, put down to its culprit. */
static void count_op(struct blame *self, uint32_t rank, uint32_t row, np_ns peer_wait,
                     np_ns peer_rest, unsigned depth, struct tallies *tallies)
{
	struct np_diagnosis *diag = self->diag;
	np_ns wait, rest;
	uint32_t k = np_diag_instance_of(diag, rank, row);
	if (k == NP_DIAG_NONE || diag->instances.v[k].busy)
		return;
	wait_in(diag, rank, row, &wait, &rest);
	struct np_diag_instance *op = &diag->instances.v[k];
	if (wait > peer_wait && op->last != rank) {
		blame_at(self, k, depth + 1);
		count(tallies, (struct tally){op->culprit, op->cause_group, op->cause,
		                              (uint8_t)(op->depth + 1), wait - peer_wait});
	}
	if (rest > peer_rest)
		count(tallies,
		      (struct tally){rank, op->group, NP_CAUSE_TRANSFER, 0, rest - peer_rest});
}

/*
 * The ops of the last rank since `before`, beside those of a typical peer: ranks of one
 * group run the same program, so the i-th op of one is the i-th of the other. Whoever is
 * behind most of the difference is the culprit.
 */
static void pass_on(struct blame *self, struct np_diag_instance *instance,
                    const struct np_diag_instance *before, const struct parts *excess, np_ns median,
                    unsigned depth)
{
	struct np_diagnosis *diag = self->diag;
	struct tallies tallies = {.n = 0};
	uint32_t rank = instance->last, peer = typical_peer(self, before, instance, median);
	uint32_t from = np_diag_member_of(diag, before, rank)->row;
	uint32_t to = np_diag_member_of(diag, instance, rank)->row;
	uint32_t peer_from = np_diag_member_of(diag, before, peer)->row;
	uint32_t peer_to = counterpart(diag, before, instance, peer);
	bool alike = peer_to - peer_from == to - from;
	for (uint32_t i = 1; from + i < to; i++) {
		np_ns wait = 0, rest = 0;
		if (alike)
			wait_in(diag, peer, peer_from + i, &wait, &rest);
		count_op(self, rank, from + i, wait, rest, depth, &tallies);
	}
	const struct tally *most = NULL;
	for (size_t i = 0; i < tallies.n; i++)
		if (!most || tallies.v[i].sum > most->sum)
			most = &tallies.v[i];
	if (!most || most->sum * 10 < excess->exposed * 3) {
		settle(instance, rank, NP_CAUSE_UNKNOWN);
		return;
	}
	settle(instance, most->rank, (enum np_cause)most->cause);
	instance->cause_group = most->group;
	instance->depth = most->depth;
}

/* ── captures without kernels: the step rows tell computing from idle ── */

static double us_of(const struct np_timeline_steps *steps, size_t row, int which)
{
	double us = which == 0 ? steps->computing_us[row] : steps->free_us[row];
	return us >= 0 && us < 1e12 ? us : -1;
}

static size_t find_step(const struct np_timeline_steps *steps, int64_t step)
{
	size_t row = 0;
	while (row < steps->n && steps->step[row] != step)
		row++;
	return row;
}

static np_ns step_median(struct blame *self, int64_t step, int which)
{
	const struct np_diagnosis *diag = self->diag;
	size_t n = 0;
	for (size_t r = 0; r < diag->n_ranks; r++) {
		size_t row = find_step(diag->steps[r], step);
		if (row < diag->steps[r]->n && us_of(diag->steps[r], row, which) >= 0)
			self->scratch[n++] = (np_ns)(us_of(diag->steps[r], row, which) * 1000);
	}
	return np_diag_median(self->scratch, n);
}

static const struct typical *typical_of(struct blame *self, int64_t step)
{
	uint32_t row = np_map_get(&self->step_rows, (uint64_t)step, NP_DIAG_NONE);
	if (row != NP_DIAG_NONE)
		return &self->typical.v[row];
	struct typical typical = {{step_median(self, step, 0), step_median(self, step, 1)}};
	if (!np_map_put(&self->step_rows, (uint64_t)step, (uint32_t)self->typical.n) ||
	    !np_vec_push(&self->typical, typical)) {
		self->oom = true;
		return NULL;
	}
	return &self->typical.v[self->typical.n - 1];
}

/* Whichever exceeds the median of all ranks more, in the step. */
static enum np_cause by_step(struct blame *self, uint32_t rank, int64_t step)
{
	const struct np_timeline_steps *steps = self->diag->steps[rank];
	size_t row = find_step(steps, step);
	const struct typical *typical = typical_of(self, step);
	if (!typical || row == steps->n || us_of(steps, row, 0) < 0 || us_of(steps, row, 1) < 0)
		return NP_CAUSE_UNKNOWN;
	np_ns compute = (np_ns)(us_of(steps, row, 0) * 1000) - typical->ns[0];
	np_ns idle = (np_ns)(us_of(steps, row, 1) * 1000) - typical->ns[1];
	if (compute <= 0 && idle <= 0)
		return NP_CAUSE_UNKNOWN;
	return compute >= idle ? NP_CAUSE_COMPUTE : NP_CAUSE_IDLE;
}

/* ── the verdict on one instance ── */

/* Settles the instance; false when what happened since `before` does not explain it. */
static bool judge(struct blame *self, struct np_diag_instance *instance,
                  const struct np_diag_instance *before, unsigned depth)
{
	struct parts own, typical;
	uint32_t rank = instance->last;
	settle(instance, rank, NP_CAUSE_UNKNOWN);
	if (!parts_of(self->diag, before, instance, rank, &own) ||
	    !median_parts(self, before, instance, &typical))
		return false;
	struct parts excess = {own.compute - typical.compute, own.exposed - typical.exposed,
	                       own.idle - typical.idle};
	np_ns most = excess.compute > excess.idle ? excess.compute : excess.idle;
	if (excess.exposed > most && excess.exposed > 0)
		pass_on(self, instance, before, &excess, typical.exposed, depth);
	else if (most > 0 && !self->diag->has_kernels)
		settle(instance, rank, by_step(self, rank, instance->step));
	else if (most > 0)
		settle(instance, rank,
		       excess.compute >= excess.idle ? NP_CAUSE_COMPUTE : NP_CAUSE_IDLE);
	np_ns all = excess.exposed > most ? excess.exposed : most;
	return instance->cause != NP_CAUSE_UNKNOWN && all * EXPLAINS > instance->lateness;
}

static void blame_at(struct blame *self, uint32_t at, unsigned depth)
{
	struct np_diagnosis *diag = self->diag;
	struct np_diag_instance *instance = &diag->instances.v[at];
	if (instance->blamed)
		return;
	settle(instance, instance->last, depth < MAX_DEPTH ? NP_CAUSE_START : NP_CAUSE_UNKNOWN);
	instance->busy = true;
	uint32_t from = np_diag_member_of(diag, instance, instance->last)->row;
	uint32_t skip = NP_DIAG_NONE;
	for (int tries = 0; depth < MAX_DEPTH && tries < MAX_GROUPS; tries++) {
		uint32_t k = together_before(self, at, &from, skip);
		if (k == NP_DIAG_NONE)
			break;
		instance->busy = true;
		if (judge(self, instance, &diag->instances.v[k], depth) || !instance->p2p)
			break;
		skip = diag->instances.v[k].group;
	}
	instance->busy = false;
}

bool np_diag_blame(struct np_diagnosis *self)
{
	struct blame blame = {.diag = self};
	size_t room = self->n_ranks > MAX_PEERS ? self->n_ranks : MAX_PEERS;
	blame.scratch = np_realloc(NULL, 3 * (room + 1), sizeof *blame.scratch);
	np_map_init(&blame.contains);
	np_map_init(&blame.step_rows);
	for (uint32_t i = 0; blame.scratch && i < self->instances.n; i++)
		blame_at(&blame, i, 0);
	np_map_release(&blame.contains);
	np_map_release(&blame.step_rows);
	np_vec_release(&blame.typical);
	bool ok = blame.scratch && !blame.oom;
	np_free(blame.scratch);
	return ok;
}
