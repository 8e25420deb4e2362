/*
 * The reduce of ClusterTimeSummary (cluster_and_advisor.md §2.9): a collective's transfer is
 * the shortest of its durations over the ranks; what a rank needs more, it waits.
 */
#include "cluster/cluster_time.h"

#include <math.h>
#include <stdlib.h>

#include "cluster/calls.h"
#include "cluster/cluster_time_part.h"
#include "cluster/internal.h"

static const double NS_PER_US = 1e3;

enum { NO_STEP = -1 };

static const struct np_column columns[] = {
	{"rank", "", NP_COL_INT, "rank"},
	{"step", "", NP_COL_INT, "step, -1 for a capture without steps"},
	{"stepTime", "us", NP_COL_REAL, "length of the step on the host"},
	{"computation", "us", NP_COL_REAL, "of the exporter's step trace"},
	{"communicationNotOverlapComputation", "us", NP_COL_REAL, "of the step trace"},
	{"communicationOverlapComputation", "us", NP_COL_REAL, "of the step trace"},
	{"communication", "us", NP_COL_REAL, "of the step trace"},
	{"free", "us", NP_COL_REAL, "free of the step trace less the exposed copies"},
	{"communicationWaitStageTime", "us", NP_COL_REAL,
         "durations of the collectives less their transfers"},
	{"communicationTransmitStageTime", "us", NP_COL_REAL,
         "transfers: the shortest duration over the ranks"},
	{"memory", "us", NP_COL_REAL, "copies (MEMCPY_ASYNC)"},
	{"memoryNotOverlapComputationCommunication", "us", NP_COL_REAL,
         "of them neither under compute nor under communication"},
};

/* ── rows ── */

struct making {
	const struct np_cluster *cluster;
	struct np_time_rows *out;
	struct np_calls calls;
	struct np_groups instances;
	struct np_groups by_key; /* calls of one communicator */
	size_t *members;         /* per group of by_key: ranks that it has */
	uint32_t *key_group;     /* per call: its group of by_key */
	size_t n_talking;        /* ranks that have any calls */
};

static void empty_row(struct np_time_row *row, int64_t rank, int64_t step)
{
	*row = (struct np_time_row){.rank = rank, .step = step};
	for (size_t c = 0; c < NP_TIME_COLUMNS; c++)
		row->us[c] = NAN;
}

static double us_of(int64_t ns)
{
	return ns == NP_NO_I64 ? NAN : (double)ns / NS_PER_US;
}

static bool add_digest(struct making *self, size_t rank)
{
	const struct np_cluster_rank *from = &self->cluster->ranks.v[rank];
	const struct np_digest_step_times *t = NP_DIGEST_ROWS(from, np_digest_step_times);
	for (size_t i = 0; i < t->n; i++) {
		struct np_time_row row;
		empty_row(&row, from->rank, t->step[i]);
		row.us[NP_TIME_STEP] = us_of(t->step_ns[i]);
		row.us[NP_TIME_COMPUTING] = t->computing_us[i];
		row.us[NP_TIME_NOT_OVERLAPPED] = t->not_overlapped_us[i];
		row.us[NP_TIME_OVERLAPPED] = t->overlapped_us[i];
		row.us[NP_TIME_COMMUNICATION] = t->comm_us[i];
		row.us[NP_TIME_FREE] = t->free_us[i];
		row.us[NP_TIME_MEMORY] = us_of(t->memory_ns[i]);
		row.us[NP_TIME_MEMORY_EXPOSED] = us_of(t->memory_exposed_ns[i]);
		if (!np_vec_push(&self->out->v, row))
			return false;
	}
	return true;
}

static int by_rank_and_step(const void *a, const void *b)
{
	const struct np_time_row *x = a, *y = b;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return (x->step > y->step) - (x->step < y->step);
}

static struct np_time_row *find_row(struct np_time_rows *rows, int64_t rank, int64_t step)
{
	const struct np_time_row key = {.rank = rank, .step = step};
	if (rows->v.n == 0)
		return NULL;
	return bsearch(&key, rows->v.v, rows->v.n, sizeof key, by_rank_and_step);
}

/* A call outside every step belongs to the capture's only row where it knows of no step or
 * of one only. */
static struct np_time_row *row_of_call(const struct making *self, uint32_t call)
{
	int64_t rank = np_calls_rank(&self->calls, call), step = self->calls.step[call];
	const struct np_digest_step_times *t = NP_DIGEST_ROWS(
		&self->cluster->ranks.v[self->calls.rank[call]], np_digest_step_times);
	if (step == NP_NO_I64 && t->n == 1 && t->step_ns[0] == NP_NO_I64)
		step = t->step[0];
	else if (step == NP_NO_I64)
		step = NO_STEP;
	return find_row(self->out, rank, step);
}

/* ── which groups are complete ── */

/* What the metadata say of the communicator whose hash is `key`; NULL: nothing. */
static const struct np_group *metadata_of(const struct making *self, uint32_t call)
{
	np_str key = np_cluster_text(self->cluster, self->calls.key[call]);
	const struct np_capture *capture = self->cluster->ranks.v[self->calls.rank[call]].capture;
	uint64_t hash;
	if (!np_str_to_u64(key, &hash))
		return NULL;
	for (size_t g = 0; g < capture->n_groups; g++)
		if (capture->groups[g].hash == hash && capture->groups[g].n_ranks > 0)
			return &capture->groups[g];
	return NULL;
}

/* A group has the ranks that parallel_group_info gives it, else those that were seen. */
static bool count_members(struct making *self)
{
	const uint32_t *const keys[] = {self->calls.key};
	if (!np_group_rows(self->calls.n, keys, 1, &self->by_key))
		return false;
	self->members = np_calloc(self->by_key.n + 1, sizeof *self->members);
	self->key_group = np_realloc(NULL, self->calls.n + 1, sizeof *self->key_group);
	if (!self->members || !self->key_group)
		return false;
	for (size_t g = 0; g < self->by_key.n; g++) {
		const uint32_t *rows = &self->by_key.order[self->by_key.start[g]];
		const struct np_group *told = metadata_of(self, rows[0]);
		for (size_t i = 0; i < np_group_size(&self->by_key, g); i++) {
			self->key_group[rows[i]] = (uint32_t)g;
			if (i == 0 || self->calls.rank[rows[i]] != self->calls.rank[rows[i - 1]])
				self->members[g]++;
		}
		if (told && told->n_ranks > self->members[g])
			self->members[g] = told->n_ranks;
	}
	return true;
}

static bool is_complete(const struct making *self, size_t instance)
{
	uint32_t row = np_group_row(&self->instances, instance);
	return self->cluster->options->compat || self->calls.p2p[row] ||
	       np_group_size(&self->instances, instance) >= self->members[self->key_group[row]];
}

/* ── wait and transfer ── */

static void add_to(double *sum, double value)
{
	*sum = isnan(*sum) ? value : *sum + value;
}

static void share_out(struct making *self, size_t instance)
{
	const uint32_t *rows = &self->instances.order[self->instances.start[instance]];
	size_t n = np_group_size(&self->instances, instance);
	bool complete = is_complete(self, instance);
	int64_t transfer = self->calls.dur[rows[0]];
	self->out->left_out += !complete;
	for (size_t i = 1; i < n; i++)
		transfer =
			self->calls.dur[rows[i]] < transfer ? self->calls.dur[rows[i]] : transfer;
	/* with one rank nobody knows what was waiting: 0, as officially */
	bool counts = complete && self->n_talking > 1;
	for (size_t i = 0; i < n; i++) {
		struct np_time_row *row = row_of_call(self, rows[i]);
		if (!row)
			continue;
		int64_t wait = self->calls.dur[rows[i]] - transfer;
		add_to(&row->us[NP_TIME_WAIT], counts ? (double)wait / NS_PER_US : 0);
		add_to(&row->us[NP_TIME_TRANSMIT], counts ? (double)transfer / NS_PER_US : 0);
	}
}

/* The official tool knows collectives by group, name and step. */
static bool group_calls(struct making *self)
{
	if (!self->cluster->options->compat)
		return np_calls_instances(&self->calls, false, &self->instances);
	uint32_t *nth = self->calls.nth;
	for (size_t i = 0; i < self->calls.n; i++)
		nth[i] = 0;
	return np_calls_instances(&self->calls, false, &self->instances);
}

static bool add_calls(struct making *self)
{
	const struct np_calls_filter filter = {.by_step = true,
	                                       .by_launch = self->cluster->options->compat};
	if (!np_calls_collect(self->cluster, &filter, &self->calls) || !group_calls(self) ||
	    !count_members(self))
		return false;
	for (size_t i = 0; i < self->calls.n; i++)
		self->n_talking += i == 0 || self->calls.rank[i] != self->calls.rank[i - 1];
	for (size_t i = 0; i < self->instances.n; i++)
		share_out(self, i);
	return true;
}

static void finish_row(struct np_time_row *row, bool compat)
{
	double *us = row->us;
	for (size_t c = 0; compat && c < NP_TIME_COLUMNS; c++)
		if (c != NP_TIME_STEP && isnan(us[c]))
			us[c] = 0;
	if (!isnan(us[NP_TIME_MEMORY_EXPOSED]))
		us[NP_TIME_FREE] -= us[NP_TIME_MEMORY_EXPOSED];
	if (isnan(us[NP_TIME_STEP]))
		us[NP_TIME_STEP] =
			us[NP_TIME_COMPUTING] + us[NP_TIME_NOT_OVERLAPPED] + us[NP_TIME_FREE];
}

bool np_time_rows_make(const struct np_cluster *cluster, struct np_time_rows *out)
{
	struct making making = {.cluster = cluster, .out = out};
	size_t n_ranks = cluster->ranks.n;
	*out = (struct np_time_rows){.has = np_calloc(n_ranks + 1, sizeof *out->has)};
	bool ok = out->has != NULL;
	for (size_t r = 0; ok && r < n_ranks; r++) {
		size_t before = out->v.n;
		ok = add_digest(&making, r);
		out->has[r] = out->v.n > before || !cluster->ranks.v[r].digest;
	}
	if (out->v.n > 1)
		qsort(out->v.v, out->v.n, sizeof *out->v.v, by_rank_and_step);
	ok = ok && add_calls(&making);
	for (size_t i = 0; ok && i < out->v.n; i++)
		finish_row(&out->v.v[i], cluster->options->compat);
	np_groups_release(&making.instances);
	np_groups_release(&making.by_key);
	np_calls_release(&making.calls);
	np_free(making.members);
	np_free(making.key_group);
	return ok;
}

void np_time_rows_release(struct np_time_rows *self)
{
	np_vec_release(&self->v);
	np_free(self->has);
}

void np_time_rows_tell(const struct np_time_rows *self, struct np_cluster *cluster,
                       const struct np_recipe *recipe)
{
	np_cluster_lacking(cluster, recipe, self->has,
	                   "step_trace_time.csv, trace_view.json or profiler database");
	if (self->left_out == 0)
		return;
	(void)np_report_finding(cluster->report, "CLUSTER_GROUP_INCOMPLETE", NP_WARNING,
	                        "%zu collectives are left out of wait and transfer: ranks of "
	                        "their groups have no data",
	                        self->left_out);
	np_cluster_exit(cluster, 3);
}

void np_time_rows_table(const struct np_time_rows *self, struct np_report *report)
{
	struct np_table *table = NP_REPORT_TABLE(report, "ClusterTimeSummary",
	                                         "Where the time of each step goes", columns);
	for (size_t i = 0; i < self->v.n; i++) {
		np_cell_int(table, self->v.v[i].rank);
		np_cell_int(table, self->v.v[i].step);
		for (size_t c = 0; c < NP_TIME_COLUMNS; c++)
			np_cell_real(table, self->v.v[i].us[c]);
	}
}
