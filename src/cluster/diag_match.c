/*
 * The same collective on all its ranks: by group and sequence, not by name.
 *
 * Names carry counters that differ between ranks (warm-up, restarts), so the
 * k-th op of a group within a step is the same op on every rank, checked by
 * type, data type and count. Where ranks disagree, the longest common sequence
 * with the rank that has most is matched, and the rest is counted.
 *
 * Send and receive are paired where the group has two ranks: the k-th send of
 * one with the k-th receive of the other, each direction by itself.
 */
#include <stdlib.h>
#include <string.h>

#include "cluster/diag.h"
#include "cluster/grouping.h"

enum { MAX_MIDDLE = 2000 }; /* ops that differ, per rank, beyond which only the ends match */

/* All ops, flat, in order of rank and start, with the keys that they are grouped by. */
struct flat {
	size_t n;
	struct np_diag_member *op;
	uint32_t *group; /* row in self->groups, NP_DIAG_NONE */
	uint32_t *way;   /* 0 collective, 1 batchsendrecv, 2 + source rank of a send or receive */
	uint32_t *step;  /* ids made dense */
	uint64_t *sign;  /* type, dtype, count: equal on all ranks */
};

static bool is_type(const struct np_diagnosis *self, const struct np_diag_member *op,
                    const char *type)
{
	return np_str_is(np_cluster_text(self->cluster, self->ops[op->rank]->type[op->row]), type);
}

static bool is_send(const struct np_diagnosis *self, const struct np_diag_member *op)
{
	return is_type(self, op, "send");
}

static bool is_receive(const struct np_diagnosis *self, const struct np_diag_member *op)
{
	return is_type(self, op, "receive") || is_type(self, op, "recv");
}

/* ── groups ── */

static const struct np_group *recorded_group(const struct np_diagnosis *self, np_str key)
{
	uint64_t hash;
	if (!np_str_to_u64(key, &hash))
		return NULL;
	for (size_t r = 0; r < self->n_ranks; r++) {
		const struct np_capture *capture = self->cluster->ranks.v[r].capture;
		for (size_t g = 0; g < capture->n_groups; g++)
			if (capture->groups[g].hash == hash)
				return &capture->groups[g];
	}
	return NULL;
}

static bool add_group(struct np_diagnosis *self, const struct flat *flat,
                      const struct np_groups *found, size_t g)
{
	const uint32_t *rows = &found->order[found->start[g]];
	size_t n = np_group_size(found, g);
	struct np_diag_group group = {.ranks = np_realloc(NULL, self->n_ranks, sizeof(uint32_t))};
	if (!group.ranks)
		return false;
	const struct np_diag_member *first = &flat->op[rows[0]];
	group.key = self->ops[first->rank]->group[first->row];
	for (size_t i = 0; i < n; i++) {
		uint32_t rank = flat->op[rows[i]].rank;
		if (group.n_ranks == 0 || group.ranks[group.n_ranks - 1] != rank)
			group.ranks[group.n_ranks++] = rank;
		flat->group[rows[i]] = (uint32_t)self->groups.n;
	}
	uint32_t *fitted = np_realloc(group.ranks, group.n_ranks, sizeof *fitted);
	group.ranks = fitted ? fitted : group.ranks;
	group.recorded = recorded_group(self, np_cluster_text(self->cluster, group.key));
	group.expected = group.n_ranks;
	if (group.recorded && group.recorded->n_ranks > group.n_ranks)
		group.expected = (uint32_t)group.recorded->n_ranks;
	if (np_vec_push(&self->groups, group))
		return true;
	np_free(group.ranks);
	return false;
}

static bool find_groups(struct np_diagnosis *self, struct flat *flat)
{
	struct np_groups found;
	const uint32_t *const keys[] = {flat->group};
	for (size_t i = 0; i < flat->n; i++)
		flat->group[i] = self->ops[flat->op[i].rank]->group[flat->op[i].row];
	bool ok = np_group_rows(flat->n, keys, 1, &found);
	for (size_t g = 0; ok && g < found.n; g++) {
		if (flat->group[np_group_row(&found, g)] == NP_ID_NONE) {
			self->n_no_group += np_group_size(&found, g);
			continue;
		}
		ok = add_group(self, flat, &found, g);
	}
	np_groups_release(&found);
	return ok;
}

/* ── keys ── */

static uint64_t sign_of(const struct np_diagnosis *self, const struct np_diag_member *op)
{
	const struct np_timeline_ops *ops = self->ops[op->rank];
	uint64_t sign = (uint64_t)ops->type[op->row] << 32 ^ ops->dtype[op->row];
	return (sign ^ (uint64_t)ops->count[op->row]) * UINT64_C(0x9E3779B97F4A7C15);
}

/* Which way a point-to-point op goes; NP_DIAG_NONE: its partner can't be told. */
static uint32_t way_of(const struct np_diagnosis *self, const struct np_diag_member *op,
                       uint32_t group)
{
	const struct np_diag_group *g = &self->groups.v[group];
	bool send = is_send(self, op), receive = is_receive(self, op);
	if (!send && !receive)
		return is_type(self, op, "batchsendrecv") ? 1 : 0;
	if (g->n_ranks != 2 || g->expected != 2)
		return NP_DIAG_NONE;
	uint32_t other = g->ranks[0] == op->rank ? g->ranks[1] : g->ranks[0];
	return 2 + (send ? op->rank : other);
}

static bool make_keys(struct np_diagnosis *self, struct flat *flat)
{
	struct np_map steps;
	uint32_t n_steps = 0;
	bool ok = true;
	np_map_init(&steps);
	for (size_t i = 0; ok && i < flat->n; i++) {
		const struct np_diag_member *op = &flat->op[i];
		uint64_t id = (uint64_t)self->ops[op->rank]->step[op->row];
		uint32_t dense = np_map_get(&steps, id, NP_DIAG_NONE);
		if (dense == NP_DIAG_NONE) {
			dense = n_steps++;
			ok = np_map_put(&steps, id, dense);
		}
		flat->step[i] = dense;
		flat->way[i] = 0;
		if (flat->group[i] != NP_DIAG_NONE)
			flat->way[i] = way_of(self, op, flat->group[i]);
		/* a send and its receive are alike */
		flat->sign[i] = flat->way[i] >= 2 ? flat->way[i] : sign_of(self, op);
	}
	np_map_release(&steps);
	return ok;
}

/* ── sequences ── */

/* Ops of one rank: flat[order[start … end - 1]]. */
struct run {
	size_t start, end;
};

/* What one rank's ops are in the reference: at[i] for its i-th op, NP_DIAG_NONE. */
struct align {
	const struct flat *flat;
	const uint32_t *order;
	struct run reference;
	uint32_t *at;
	uint16_t *table; /* of the middle, (MAX_MIDDLE + 1) squared; made when needed */
};

static uint64_t sign_at(const struct align *self, size_t i)
{
	return self->flat->sign[self->order[i]];
}

/* The longest common sequence of two short runs, by the textbook's table. */
static bool align_middle(struct align *self, struct run a, struct run b, uint32_t *at)
{
	size_t n = a.end - a.start, m = b.end - b.start, width = m + 1;
	if (n == 0 || m == 0 || n > MAX_MIDDLE || m > MAX_MIDDLE)
		return true;
	if (!self->table)
		self->table =
			np_realloc(NULL, (MAX_MIDDLE + 1) * (MAX_MIDDLE + 1), sizeof *self->table);
	if (!self->table)
		return false;
	uint16_t *t = self->table;
	memset(&t[n * width], 0, width * sizeof *t);
	for (size_t i = n; i-- > 0;) {
		t[i * width + m] = 0;
		for (size_t k = m; k-- > 0;) {
			uint16_t down = t[(i + 1) * width + k], right = t[i * width + k + 1];
			t[i * width + k] = down > right ? down : right;
			if (sign_at(self, a.start + i) == sign_at(self, b.start + k))
				t[i * width + k] = (uint16_t)(t[(i + 1) * width + k + 1] + 1);
		}
	}
	for (size_t i = 0, k = 0; i < n && k < m;) {
		if (sign_at(self, a.start + i) == sign_at(self, b.start + k))
			at[i++] = (uint32_t)(b.start + k++ - self->reference.start);
		else if (t[(i + 1) * width + k] >= t[i * width + k + 1])
			i++;
		else
			k++;
	}
	return true;
}

/* at[] of the run: equal ends directly, what is between them by the table. */
static bool align_run(struct align *self, struct run run)
{
	struct run a = run, b = self->reference;
	for (size_t i = 0; i < run.end - run.start; i++)
		self->at[i] = NP_DIAG_NONE;
	while (a.start < a.end && b.start < b.end &&
	       sign_at(self, a.start) == sign_at(self, b.start))
		self->at[a.start++ - run.start] = (uint32_t)(b.start++ - self->reference.start);
	while (a.start < a.end && b.start < b.end &&
	       sign_at(self, a.end - 1) == sign_at(self, b.end - 1)) {
		a.end--;
		b.end--;
		self->at[a.end - run.start] = (uint32_t)(b.end - self->reference.start);
	}
	return align_middle(self, a, b, &self->at[a.start - run.start]);
}

/* The runs of the ranks in order[start … end - 1]; returns their number. */
static size_t split_runs(const struct flat *flat, const uint32_t *order, size_t start, size_t end,
                         struct run *runs)
{
	size_t n = 0;
	for (size_t i = start; i < end; i++) {
		if (i == start || flat->op[order[i]].rank != flat->op[order[i - 1]].rank)
			runs[n++].start = i;
		runs[n - 1].end = i + 1;
	}
	return n;
}

static struct run longest_of(const struct run *runs, size_t n)
{
	struct run best = runs[0];
	for (size_t i = 1; i < n; i++)
		if (runs[i].end - runs[i].start > best.end - best.start)
			best = runs[i];
	return best;
}

/* ── instances ── */

struct match {
	struct np_diagnosis *self;
	const struct flat *flat;
	const uint32_t *order;
	struct run *runs;       /* one per rank */
	NP_VEC(uint32_t) slots; /* [position × n_runs]: index into order + 1, 0: absent */
	struct align align;
};

static bool add_instance(struct match *self, size_t position, size_t n_runs)
{
	struct np_diagnosis *diag = self->self;
	const uint32_t *slots = &self->slots.v[position * n_runs];
	struct np_diag_instance instance = {.first = diag->members.n,
	                                    .seq = (uint32_t)position,
	                                    .culprit = NP_DIAG_NONE,
	                                    .last = NP_DIAG_NONE,
	                                    .cause_group = NP_DIAG_NONE};
	uint32_t found = 0, row = 0;
	for (size_t r = 0; r < n_runs; r++)
		found += slots[r] != 0;
	if (found < 2) {
		diag->n_unmatched += found;
		return true;
	}
	for (size_t r = 0; r < n_runs; r++) {
		if (slots[r] == 0)
			continue;
		row = self->order[slots[r] - 1];
		const struct np_diag_member *op = &self->flat->op[row];
		if (!np_vec_push(&diag->members, *op))
			return false;
		diag->instance_of[diag->first_op[op->rank] + op->row] = (uint32_t)diag->instances.n;
	}
	const struct np_diag_member *op = &self->flat->op[row];
	instance.n = found;
	instance.group = self->flat->group[row];
	instance.step = diag->ops[op->rank]->step[op->row];
	instance.p2p = self->flat->way[row] != 0;
	instance.complete = found == diag->groups.v[instance.group].expected;
	diag->groups.v[instance.group].n_instances++;
	return diag->instances.n < NP_DIAG_NONE - 1 && np_vec_push(&diag->instances, instance);
}

static bool match_bucket(struct match *self, size_t start, size_t end)
{
	size_t n_runs = split_runs(self->flat, self->order, start, end, self->runs);
	struct run reference = longest_of(self->runs, n_runs);
	size_t n = reference.end - reference.start;
	if (!np_vec_reserve(&self->slots, n * n_runs))
		return false;
	if (n * n_runs > 0)
		memset(self->slots.v, 0, n * n_runs * sizeof *self->slots.v);
	self->align.reference = reference;
	for (size_t r = 0; r < n_runs; r++) {
		if (!align_run(&self->align, self->runs[r]))
			return false;
		for (size_t i = self->runs[r].start; i < self->runs[r].end; i++) {
			uint32_t at = self->align.at[i - self->runs[r].start];
			if (at == NP_DIAG_NONE)
				self->self->n_unmatched++;
			else
				self->slots.v[at * n_runs + r] = (uint32_t)i + 1;
		}
	}
	for (size_t i = 0; i < n; i++)
		if (!add_instance(self, i, n_runs))
			return false;
	return true;
}

static bool match_all(struct np_diagnosis *self, const struct flat *flat)
{
	struct np_groups buckets;
	const uint32_t *const keys[] = {flat->group, flat->way, flat->step};
	bool ok = np_group_rows(flat->n, keys, 3, &buckets);
	struct match match = {.self = self,
	                      .flat = flat,
	                      .order = buckets.order,
	                      .runs = np_realloc(NULL, self->n_ranks + 1, sizeof(struct run))};
	match.align = (struct align){.flat = flat,
	                             .order = buckets.order,
	                             .at = np_realloc(NULL, flat->n + 1, sizeof(uint32_t))};
	ok = ok && match.runs && match.align.at;
	for (size_t b = 0; ok && b < buckets.n; b++) {
		uint32_t row = np_group_row(&buckets, b);
		if (flat->group[row] == NP_DIAG_NONE)
			continue;
		if (flat->way[row] == NP_DIAG_NONE)
			self->n_p2p_unmatched += np_group_size(&buckets, b);
		else
			ok = match_bucket(&match, buckets.start[b], buckets.start[b + 1]);
	}
	np_free(match.runs);
	np_vec_release(&match.slots);
	np_free(match.align.at);
	np_free(match.align.table);
	np_groups_release(&buckets);
	return ok;
}

bool np_diag_match(struct np_diagnosis *self)
{
	size_t n = self->first_op[self->n_ranks];
	struct flat flat = {.n = n,
	                    .op = np_realloc(NULL, n + 1, sizeof *flat.op),
	                    .group = np_realloc(NULL, n + 1, sizeof(uint32_t)),
	                    .way = np_realloc(NULL, n + 1, sizeof(uint32_t)),
	                    .step = np_realloc(NULL, n + 1, sizeof(uint32_t)),
	                    .sign = np_realloc(NULL, n + 1, sizeof(uint64_t))};
	bool ok = flat.op && flat.group && flat.way && flat.step && flat.sign;
	for (uint32_t r = 0; ok && r < self->n_ranks; r++)
		for (uint32_t i = 0; i < self->ops[r]->n; i++)
			flat.op[self->first_op[r] + i] = (struct np_diag_member){r, i};
	ok = ok && find_groups(self, &flat) && make_keys(self, &flat) && match_all(self, &flat);
	np_free(flat.op);
	np_free(flat.group);
	np_free(flat.way);
	np_free(flat.step);
	np_free(flat.sign);
	return ok;
}

const struct np_diag_member *np_diag_member_of(const struct np_diagnosis *self,
                                               const struct np_diag_instance *instance,
                                               uint32_t rank)
{
	const struct np_diag_member *members = &self->members.v[instance->first];
	size_t low = 0, high = instance->n;
	while (low < high) {
		size_t mid = low + (high - low) / 2;
		if (members[mid].rank < rank)
			low = mid + 1;
		else
			high = mid;
	}
	return low < instance->n && members[low].rank == rank ? &members[low] : NULL;
}
