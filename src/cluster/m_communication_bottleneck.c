/*
 * communication_bottleneck (cluster_and_advisor.md §2.19): why one rank kept the others
 * waiting in the longest collectives of --rank_id.
 *
 *   fast rank   ██ ██ │collective, waits ──────────│
 *   slow rank   ██    ██    ██   │collective ──────│
 *               ↑ aligned: here both were equally far
 *
 * The slow rank is the one whose op is the shortest. Its launches before the op tell
 * whether tasks waited for the device or for the host; then both ranks' tasks (or host
 * operators) are compared backwards from the op, to where both were equally far. An op is
 * the same on all ranks when communicator, name and count of the name agree; the official
 * tool takes any op of the name. bottleneck_look.c has a closer look at two ranks.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cluster/bottleneck_look.h"
#include "cluster/cells.h"
#include "cluster/grouping.h"
#include "cluster/internal.h"
#include "cluster/op_group.h"
#include "cluster/parts.h"

enum { DEFAULT_TOP = 10, KEPT = 3 };

static const double SLOW_SHARE = 0.05;

/* An op of all ranks. */
struct op {
	uint32_t rank; /* row of the cluster */
	uint32_t row;  /* of its digest */
};

struct work {
	struct np_cluster *cluster;
	struct op *ops; /* in order of rank and start */
	size_t n;
	np_id *name, *group;
	struct np_groups same; /* by name and communicator */
	uint32_t *group_of;
	uint32_t *targets; /* rows of ops */
	size_t n_targets;
	size_t base; /* row of --rank_id */
	struct np_look *looks[KEPT];
	uint64_t used[KEPT], clock;
};

static const struct np_digest_comm_ops *rows_of(const struct work *self, size_t rank)
{
	return NP_DIGEST_ROWS(&self->cluster->ranks.v[rank], np_digest_comm_ops);
}

static np_ns start_of(const struct work *self, uint32_t op)
{
	return rows_of(self, self->ops[op].rank)->start_ns[self->ops[op].row];
}

static np_ns dur_of(const struct work *self, uint32_t op)
{
	return rows_of(self, self->ops[op].rank)->dur_ns[self->ops[op].row];
}

/* ── all ops, those that are the same together ── */

/* Communicators as np_op_group() has them, in the cluster's strings; 0: all the same. */
static np_id key_of(struct np_cluster *cluster, size_t rank, np_id group, np_id name)
{
	char key[NP_GROUP_KEY_SIZE];
	if (cluster->options->compat)
		return 0;
	(void)snprintf(key, sizeof key, "%" PRIu64,
	               np_op_group(cluster->ranks.v[rank].capture, np_cluster_text(cluster, group),
	                           np_cluster_text(cluster, name)));
	return np_intern_add(&cluster->strings, np_str_of(key));
}

static bool collect(struct work *self)
{
	struct np_cluster *cluster = self->cluster;
	size_t n = 0;
	for (size_t r = 0; r < cluster->ranks.n; r++)
		n += rows_of(self, r)->n;
	self->ops = np_calloc(n + 1, sizeof *self->ops);
	self->name = np_calloc(n + 1, sizeof *self->name);
	self->group = np_calloc(n + 1, sizeof *self->group);
	self->group_of = np_calloc(n + 1, sizeof *self->group_of);
	if (!self->ops || !self->name || !self->group || !self->group_of)
		return false;
	for (size_t r = 0; r < cluster->ranks.n; r++) {
		const struct np_digest_comm_ops *rows = rows_of(self, r);
		for (size_t i = 0; i < rows->n; i++, self->n++) {
			np_id key = key_of(cluster, r, rows->group[i], rows->name[i]);
			if (key == NP_ID_NONE)
				return false;
			self->ops[self->n] = (struct op){(uint32_t)r, (uint32_t)i};
			self->name[self->n] = rows->name[i];
			self->group[self->n] = key;
		}
	}
	const uint32_t *const keys[] = {self->name, self->group};
	if (!np_group_rows(self->n, keys, 2, &self->same))
		return false;
	for (size_t g = 0; g < self->same.n; g++)
		for (size_t i = self->same.start[g]; i < self->same.start[g + 1]; i++)
			self->group_of[self->same.order[i]] = (uint32_t)g;
	return true;
}

static int by_length(const void *a, const void *b, void *ctx)
{
	const struct work *self = ctx;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	np_ns m = dur_of(self, x), n = dur_of(self, y);
	if (m != n)
		return m < n ? 1 : -1;
	return (x > y) - (x < y);
}

static bool choose_targets(struct work *self)
{
	size_t top = self->cluster->options->top ? self->cluster->options->top : DEFAULT_TOP;
	self->targets = np_calloc(self->n + 1, sizeof *self->targets);
	for (size_t i = 0; self->targets && i < self->n; i++)
		if (self->ops[i].rank == self->base)
			self->targets[self->n_targets++] = (uint32_t)i;
	if (!self->targets)
		return false;
	qsort_r(self->targets, self->n_targets, sizeof *self->targets, by_length, self);
	self->n_targets = self->n_targets < top ? self->n_targets : top;
	return true;
}

/* How many ops of the group and rank come before this one. */
static size_t count_before(const struct work *self, uint32_t op)
{
	const struct np_groups *same = &self->same;
	size_t n = 0;
	for (size_t i = same->start[self->group_of[op]]; same->order[i] != op; i++)
		n += self->ops[same->order[i]].rank == self->ops[op].rank;
	return n;
}

struct extremes {
	uint32_t fast, slow; /* ops with the longest and the shortest duration */
	size_t ranks;
};

static void find_extremes(const struct work *self, uint32_t op, struct extremes *out)
{
	const struct np_groups *same = &self->same;
	size_t wanted = self->cluster->options->compat ? 0 : count_before(self, op), seen = 0;
	*out = (struct extremes){.fast = NP_NO_U32, .slow = NP_NO_U32};
	for (size_t i = same->start[self->group_of[op]]; i < same->start[self->group_of[op] + 1];
	     i++) {
		uint32_t at = same->order[i];
		bool is_next = i > same->start[self->group_of[op]] &&
		               self->ops[same->order[i - 1]].rank == self->ops[at].rank;
		seen = is_next ? seen + 1 : 0;
		if (seen != wanted)
			continue;
		out->ranks++;
		if (out->fast == NP_NO_U32 || dur_of(self, at) > dur_of(self, out->fast))
			out->fast = at;
		if (out->slow == NP_NO_U32 || dur_of(self, at) < dur_of(self, out->slow))
			out->slow = at;
	}
}

/* ── two ranks again, closer ── */

/* The rank's look, of those that are kept, else in place of the one not used for longest. */
static enum np_status look_at(struct work *self, uint32_t rank, const struct np_look **out,
                              struct np_err *err)
{
	size_t place = 0;
	for (size_t i = 0; i < KEPT; i++) {
		if (self->looks[i] && self->looks[i]->rank == rank) {
			self->used[i] = ++self->clock;
			*out = self->looks[i];
			return NP_OK;
		}
		if (self->used[i] < self->used[place])
			place = i;
	}
	np_look_free(self->looks[place]);
	self->looks[place] = NULL;
	self->used[place] = ++self->clock;
	NP_TRY(np_look_new(self->cluster, rank, &self->looks[place], err));
	*out = self->looks[place];
	return NP_OK;
}

static enum np_status explain(struct work *self, const struct extremes *ends, struct np_buf *out,
                              bool *has_ranks, struct np_err *err)
{
	np_ns longest = dur_of(self, ends->fast), shortest = dur_of(self, ends->slow);
	*has_ranks = false;
	if (ends->ranks < 2 && !self->cluster->options->compat) {
		np_buf_add_cstr(out, "[Failed] No other rank has recorded this operator");
		return NP_OK;
	}
	if (longest == 0 || (double)(longest - shortest) / (double)longest < SLOW_SHARE) {
		np_buf_printf(out,
		              "[Completed] No slow NPU detected: execution time difference is "
		              "less than %s",
		              self->cluster->options->compat ? "0.05%" : "5%");
		return NP_OK;
	}
	struct np_look_pair pair = {
		.slow_start = start_of(self, ends->slow),
		.slow_end = start_of(self, ends->slow) + shortest,
		.fast_start = start_of(self, ends->fast),
		.fast_end = start_of(self, ends->fast) + longest,
		.whole = self->cluster->options->compat,
	};
	*has_ranks = true;
	NP_TRY(look_at(self, self->ops[ends->slow].rank, &pair.slow, err));
	NP_TRY(look_at(self, self->ops[ends->fast].rank, &pair.fast, err));
	return np_look_compare(&pair, out) ? NP_OK : np_err_nomem(err);
}

static const struct np_column columns[] = {
	{"startTime(us)", "", NP_COL_TEXT, "start on --rank_id, us"},
	{"endTime(us)", "", NP_COL_TEXT, "its end, us"},
	{"duration(us)", "", NP_COL_REAL, "its duration, us"},
	{"communicationOp", "", NP_COL_TEXT, "collective"},
	{"slowRankId", "", NP_COL_INT, "rank that came last: its op is the shortest"},
	{"fastRankId", "", NP_COL_INT, "rank that waited longest"},
	{"reason", "", NP_COL_TEXT, "why the slow rank was late"},
};

static enum np_status put_row(struct work *self, uint32_t op, struct np_table *table,
                              struct np_err *err)
{
	struct np_buf reason = {0};
	struct extremes ends;
	bool has_ranks;
	find_extremes(self, op, &ends);
	enum np_status status = explain(self, &ends, &reason, &has_ranks, err);
	if (status == NP_OK && reason.failed)
		status = np_err_nomem(err);
	if (status == NP_OK) {
		const struct np_cluster_rank *ranks = self->cluster->ranks.v;
		np_cell_decimal_us(table, start_of(self, op));
		np_cell_decimal_us(table, start_of(self, op) + dur_of(self, op));
		np_cell_real(table, (double)dur_of(self, op) / 1000);
		np_cell_text(table, np_cluster_text(self->cluster, self->name[op]));
		if (has_ranks) {
			np_cell_int(table, ranks[self->ops[ends.slow].rank].rank);
			np_cell_int(table, ranks[self->ops[ends.fast].rank].rank);
		} else {
			np_cell_na(table);
			np_cell_na(table);
		}
		np_cell_text(table, np_buf_str(&reason));
	}
	np_buf_release(&reason);
	return status;
}

static enum np_status report(struct work *self, const struct np_recipe *recipe, struct np_err *err)
{
	if (self->base == SIZE_MAX) {
		np_cluster_nothing(self->cluster, recipe, "there is no rank %lld (--rank_id)",
		                   (long long)self->cluster->options->rank);
		return NP_OK;
	}
	if (!collect(self) || !choose_targets(self))
		return np_err_nomem(err);
	if (self->n_targets == 0) {
		np_cluster_nothing(self->cluster, recipe, "rank %lld has recorded no collective",
		                   (long long)self->cluster->options->rank);
		return NP_OK;
	}
	struct np_table *table = NP_REPORT_TABLE(self->cluster->report, "CommunicationBottleneck",
	                                         "Longest collectives, and who was late", columns);
	for (size_t i = 0; i < self->n_targets; i++)
		NP_TRY(put_row(self, self->targets[i], table, err));
	return NP_OK;
}

static enum np_status reduce(struct np_cluster *cluster, const struct np_recipe *recipe,
                             struct np_err *err)
{
	struct work work = {.cluster = cluster,
	                    .base = np_cluster_find_rank(cluster, cluster->options->rank)};
	enum np_status status = report(&work, recipe, err);
	for (size_t i = 0; i < KEPT; i++)
		np_look_free(work.looks[i]);
	np_groups_release(&work.same);
	np_free(work.ops);
	np_free(work.name);
	np_free(work.group);
	np_free(work.group_of);
	np_free(work.targets);
	return status;
}

static const struct np_part *const parts[] = {&np_part_comm_ops, NULL};

static const struct np_recipe_file files[] = {
	{.table = "CommunicationBottleneck",
         .csv = "communication_bottleneck.csv",
         .headings = "Start Time(us),End Time(us),Duration(us),Communication Op,Slow Rank ID,"
                     "Fast Rank ID,Reason"},
	{.table = NULL},
};

const struct np_recipe np_recipe_communication_bottleneck = {
	.name = "communication_bottleneck",
	.dir = "CommunicatonBottleneckAnalysis", /* so it is spelt */
	.summary = NP_N("who was late for the longest collectives of a rank, and why"),
	.parts = parts,
	.reduce = reduce,
	.files = files,
};
