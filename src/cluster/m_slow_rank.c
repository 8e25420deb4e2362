/*
 * slow_rank (cluster_and_advisor.md §2.11): who is last. In a collective everybody waits
 * for the last one, whose own time is the shortest by far; each such collective is a vote.
 */
#include <stdlib.h>

#include "cluster/calls.h"
#include "cluster/dixon.h"
#include "cluster/internal.h"
#include "cluster/stats.h"

static const double NS_PER_US = 1e3;

/* One collective on several ranks. */
struct op {
	size_t instance;
	np_ns first_start; /* of its slow ranks */
};

struct voting {
	struct np_cluster *cluster;
	struct np_calls calls;
	struct np_groups instances; /* same collective */
	struct np_groups groups;    /* instances of the same communicator */
	uint32_t *key;              /* of each instance */
	int64_t *values, *scratch;
	bool *low;
	uint8_t *slow;       /* per call: it is a vote against its rank */
	uint64_t *votes;     /* per rank of the cluster */
	uint64_t *judged_of; /* per rank: collectives that were judged and that it has */
	double *late_ns;     /* per rank: by how much it was later than the second last */
	struct op *ops;      /* that have slow ranks */
	size_t n_ops, judged, too_few, uneven_groups;
};

static void release(struct voting *self)
{
	np_groups_release(&self->instances);
	np_groups_release(&self->groups);
	np_calls_release(&self->calls);
	np_free(self->key);
	np_free(self->values);
	np_free(self->scratch);
	np_free(self->low);
	np_free(self->slow);
	np_free(self->votes);
	np_free(self->judged_of);
	np_free(self->late_ns);
	np_free(self->ops);
}

static bool prepare(struct voting *self)
{
	bool compat = self->cluster->options->compat;
	const struct np_calls_filter filter = {
		.by_step = true, .by_launch = compat, .collectives = true};
	if (!np_calls_collect(self->cluster, &filter, &self->calls) ||
	    !np_calls_instances(&self->calls, compat, &self->instances))
		return false;
	size_t n = self->calls.n + 1, n_ranks = self->cluster->ranks.n + 1;
	self->key = np_realloc(NULL, self->instances.n + 1, sizeof *self->key);
	self->ops = np_realloc(NULL, self->instances.n + 1, sizeof *self->ops);
	self->values = np_realloc(NULL, n, sizeof *self->values);
	self->scratch = np_realloc(NULL, n, sizeof *self->scratch);
	self->low = np_realloc(NULL, n, sizeof *self->low);
	self->slow = np_calloc(n, sizeof *self->slow);
	self->votes = np_calloc(n_ranks, sizeof *self->votes);
	self->judged_of = np_calloc(n_ranks, sizeof *self->judged_of);
	self->late_ns = np_calloc(n_ranks, sizeof *self->late_ns);
	if (!self->key || !self->ops || !self->values || !self->scratch || !self->low ||
	    !self->slow || !self->votes || !self->judged_of || !self->late_ns)
		return false;
	for (size_t i = 0; i < self->instances.n; i++)
		self->key[i] = self->calls.key[np_group_row(&self->instances, i)];
	const uint32_t *const keys[] = {self->key};
	return np_group_rows(self->instances.n, keys, 1, &self->groups);
}

/* scratch is sorted ascending: how much later the last one came than the one before it. */
static void accuse(struct voting *self, size_t instance, size_t n)
{
	const uint32_t *rows = &self->instances.order[self->instances.start[instance]];
	struct op *op = &self->ops[self->n_ops++];
	*op = (struct op){instance, INT64_MAX};
	np_stats_sort(self->values, n);
	for (size_t i = 0; i < n; i++) {
		if (!self->low[i])
			continue;
		uint32_t row = rows[i];
		self->slow[row] = 1;
		self->votes[self->calls.rank[row]]++;
		self->late_ns[self->calls.rank[row]] += (double)(self->values[1] - self->values[0]);
		if (self->calls.start[row] < op->first_start)
			op->first_start = self->calls.start[row];
	}
}

static void judge(struct voting *self, size_t instance)
{
	size_t n = np_group_size(&self->instances, instance);
	const uint32_t *rows = &self->instances.order[self->instances.start[instance]];
	for (size_t i = 0; i < n; i++)
		self->values[i] = self->calls.dur[rows[i]];
	if (n <= NP_DIXON_MIN) { /* three values are never more than three different ones */
		self->too_few++;
		return;
	}
	self->judged++;
	for (size_t i = 0; i < n; i++)
		self->judged_of[self->calls.rank[rows[i]]]++;
	if (np_low_outliers(self->values, n, self->scratch, self->low) > 0)
		accuse(self, instance, n);
}

/*
 * An instance that not all ranks of the group have says nothing about those that it lacks.
 * The official tool then leaves the whole group out; here only those instances are.
 */
static void judge_group(struct voting *self, size_t g)
{
	const uint32_t *instances = &self->groups.order[self->groups.start[g]];
	size_t most = 0, least = SIZE_MAX;
	for (size_t i = 0; i < np_group_size(&self->groups, g); i++) {
		size_t n = np_group_size(&self->instances, instances[i]);
		most = n > most ? n : most;
		least = n < least ? n : least;
	}
	self->uneven_groups += most != least;
	if (most != least && self->cluster->options->compat)
		return;
	for (size_t i = 0; i < np_group_size(&self->groups, g); i++)
		if (np_group_size(&self->instances, instances[i]) == most)
			judge(self, instances[i]);
}

/* ── tables ── */

static const struct np_column rank_columns[] = {
	{"rankId", "", NP_COL_INT, "rank"},
	{"slowAffectCount", "", NP_COL_INT, "collectives at which it was last by far"},
};

struct accused {
	uint64_t votes;
	size_t rank;
};

static int by_votes(const void *a, const void *b)
{
	const struct accused *x = a, *y = b;
	if (x->votes != y->votes)
		return x->votes < y->votes ? 1 : -1;
	return (x->rank > y->rank) - (x->rank < y->rank);
}

static void tell_worst(const struct voting *self, const struct accused *worst)
{
	struct np_finding *finding = np_report_finding(
		self->cluster->report, "SLOW_RANK", NP_WARNING,
		"rank %lld was the last by far at %llu of its %llu collectives",
		(long long)self->cluster->ranks.v[worst->rank].rank,
		(unsigned long long)worst->votes, (unsigned long long)self->judged_of[worst->rank]);
	np_finding_detail(finding, "Everybody else in the group waited for it.");
	np_finding_evidence(finding, NULL, "slowAffectCount", "SlowRank",
	                    "together %.3f us later than the last but one",
	                    self->late_ns[worst->rank] / NS_PER_US);
	np_finding_advice(finding, "Compare this rank with another one (npuprof compare): its "
	                           "kernels, its host, its clock, its share of the work.");
}

static bool rank_table(const struct voting *self)
{
	size_t n = 0;
	struct np_cluster *cluster = self->cluster;
	struct accused *all = np_realloc(NULL, cluster->ranks.n + 1, sizeof *all);
	struct np_table *table =
		NP_REPORT_TABLE(cluster->report, "SlowRank", "Ranks that were last", rank_columns);
	for (size_t r = 0; all && r < cluster->ranks.n; r++)
		if (self->votes[r] > 0)
			all[n++] = (struct accused){self->votes[r], r};
	if (all && n > 1)
		qsort(all, n, sizeof *all, by_votes);
	for (size_t i = 0; all && i < n; i++) {
		np_cell_int(table, cluster->ranks.v[all[i].rank].rank);
		np_cell_int(table, (int64_t)all[i].votes);
	}
	if (all && n > 0)
		tell_worst(self, &all[0]);
	np_free(all);
	return all != NULL;
}

static const struct np_column op_columns[] = {
	{"SlowRank", "", NP_COL_TEXT, "ranks that were last"},
	{"OpName", "", NP_COL_TEXT, "name of the collective"},
	{"GroupName", "", NP_COL_TEXT, "communicator"},
	{"Timestamp", "", NP_COL_INT, "start on those ranks, the earliest, ns since the epoch"},
	NP_DESCRIBE_COLUMNS,
};

static int by_time(const void *a, const void *b)
{
	const struct op *x = a, *y = b;
	if (x->first_start != y->first_start)
		return x->first_start < y->first_start ? -1 : 1;
	return (x->instance > y->instance) - (x->instance < y->instance);
}

/* The official columns named Ns hold microseconds. */
static void to_us(struct np_describe *d)
{
	d->mean /= NS_PER_US;
	d->std /= NS_PER_US;
	d->min /= NS_PER_US;
	d->q1 /= NS_PER_US;
	d->median /= NS_PER_US;
	d->q3 /= NS_PER_US;
	d->max /= NS_PER_US;
	d->sum /= NS_PER_US;
}

static void op_row(struct voting *self, const struct op *op, struct np_table *table)
{
	size_t n = np_group_size(&self->instances, op->instance);
	const uint32_t *rows = &self->instances.order[self->instances.start[op->instance]];
	struct np_buf ranks = {0};
	struct np_describe d;
	for (size_t i = 0; i < n; i++) {
		self->values[i] = self->calls.dur[rows[i]];
		if (self->slow[rows[i]])
			np_buf_printf(&ranks, "%s%lld", ranks.len > 0 ? "," : "",
			              (long long)np_calls_rank(&self->calls, rows[i]));
	}
	np_describe_i64(self->values, n, &d);
	if (self->cluster->options->compat)
		to_us(&d);
	np_cell_text(table, np_buf_str(&ranks));
	np_cell_text(table, np_cluster_text(self->cluster, self->calls.name[rows[0]]));
	np_cell_text(table, np_calls_group(&self->calls, rows[0]));
	np_cell_int(table, op->first_start);
	np_cell_describe(table, &d);
	np_buf_release(&ranks);
}

static bool tables(struct voting *self)
{
	if (!rank_table(self))
		return false;
	struct np_table *table =
		NP_REPORT_TABLE(self->cluster->report, "SlowOpStats",
	                        "Collectives that waited for a slow rank", op_columns);
	if (self->n_ops > 1)
		qsort(self->ops, self->n_ops, sizeof *self->ops, by_time);
	for (size_t i = 0; i < self->n_ops; i++)
		op_row(self, &self->ops[i], table);
	return true;
}

/* ── the mode ── */

static bool conclude(struct voting *self, const struct np_recipe *recipe)
{
	struct np_cluster *cluster = self->cluster;
	if (self->uneven_groups > 0)
		(void)np_report_finding(
			cluster->report, "CLUSTER_GROUP_UNEVEN", NP_INFO,
			"%zu groups have collectives that not all of their ranks have; these are "
			"not judged",
			self->uneven_groups);
	if (self->n_ops > 0)
		return tables(self);
	if (self->judged == 0)
		np_cluster_nothing(cluster, recipe,
		                   self->calls.n == 0
		                           ? "no rank has recorded a collective"
		                           : "no collective with four ranks or more; with fewer "
		                             "the last one does not stand out");
	else
		(void)np_report_finding(
			cluster->report, "SLOW_RANK_NONE", NP_INFO,
			"no slow rank found: at none of %zu collectives one rank was last by far",
			self->judged);
	return true;
}

static enum np_status reduce(struct np_cluster *cluster, const struct np_recipe *self,
                             struct np_err *err)
{
	struct voting voting = {.cluster = cluster};
	bool *has = np_calloc(cluster->ranks.n + 1, sizeof *has);
	bool ok = has && prepare(&voting);
	for (size_t g = 0; ok && g < voting.groups.n; g++)
		judge_group(&voting, g);
	if (ok && voting.calls.n > 0) {
		np_calls_has(cluster, has);
		np_cluster_lacking(cluster, self, has,
		                   "communication.json, trace_view.json or COMMUNICATION_OP");
	}
	ok = ok && conclude(&voting, self);
	np_free(has);
	release(&voting);
	return ok ? NP_OK : np_err_nomem(err);
}

static const struct np_part *const parts[] = {&np_part_comm_calls, NULL};

static const struct np_recipe_file files[] = {
	{.table = "SlowRank", .csv = "rank_stats.csv", .n_index = 1},
	{.table = "SlowOpStats", .csv = "slow_op_stats.csv"},
	{.table = NULL},
};

const struct np_recipe np_recipe_slow_rank = {
	.name = "slow_rank",
	.dir = "SlowRankAnalysis",
	.summary = NP_N("ranks that the others wait for"),
	.parts = parts,
	.reduce = reduce,
	.files = files,
};
