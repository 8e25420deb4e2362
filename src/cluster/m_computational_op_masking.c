/*
 * computational_op_masking (cluster_and_advisor.md §2.20): how much of the
 * communication of each kind of parallelism is hidden behind computing.
 *
 *   step     ├────────────────────────────┤
 *   tp       ████   ██████        ████           total = 14
 *   compute     ██████████   ███                 not masked = 3 + 4 = 7
 *
 * Operations that only touch the step count in full, as the official tool has it.
 */
#include <stdlib.h>

#include "base/number.h"
#include "cluster/internal.h"
#include "cluster/op_group.h"
#include "cluster/parts.h"
#include "profile/interval.h"

#define DEFAULT_TYPES "dp,edp;edp;dp;ep;pp;mp;tp"

enum { MAX_NAMES = 64 }; /* group names of one set */

#define ROW_COLUMNS(X)                                     \
	X(np_id, type, "names of the groups, joined by +") \
	X(int64_t, step, "step id")                        \
	X(np_ns, start_ns, "start of the step")            \
	X(np_ns, end_ns, "its end")                        \
	X(np_ns, comm_ns, "communication, overlaps once")  \
	X(np_ns, bare_ns, "of it without computing meanwhile")

NP_TABLE_STRUCT(np_digest_masking, ROW_COLUMNS);
#define NP_TAG np_digest_masking
NP_TABLE_DESC(static, np_digest_masking, "masking", ROW_COLUMNS)
#undef NP_TAG

#define SEEN_COLUMNS(X)                               \
	X(uint8_t, steps, "1: the capture has steps") \
	X(uint8_t, groups, "1: it knows the names of its groups")

NP_TABLE_STRUCT(np_digest_masking_seen, SEEN_COLUMNS);
#define NP_TAG np_digest_masking_seen
NP_TABLE_DESC(static, np_digest_masking_seen, "masking_seen", SEEN_COLUMNS)
#undef NP_TAG

/* ── the groups of one set ── */

struct set {
	np_str names[MAX_NAMES];
	size_t n;
};

static np_str next_set(np_str text, struct set *out)
{
	np_str rest, list = np_str_cut(text, ';', &rest);
	out->n = 0;
	while (list.len > 0 && out->n < MAX_NAMES) {
		np_str name = np_str_trim(np_str_cut(list, ',', &list));
		if (name.len > 0)
			out->names[out->n++] = name;
	}
	return rest;
}

static bool in_set(const struct set *set, const char *name)
{
	for (size_t i = 0; i < set->n; i++)
		if (np_str_is(set->names[i], name))
			return true;
	return false;
}

static np_id set_name(const struct set *set, struct np_intern *strings)
{
	struct np_buf text = {0};
	for (size_t i = 0; i < set->n; i++) {
		np_buf_add_cstr(&text, i > 0 ? "+" : "");
		np_buf_add_str(&text, set->names[i]);
	}
	np_id id = text.failed ? NP_ID_NONE : np_intern_add(strings, np_buf_str(&text));
	np_buf_release(&text);
	return id;
}

/* Is the op of a group of the set? */
static bool is_member(const struct np_map_job *job, const struct set *set, size_t op)
{
	const struct np_comm_ops *ops = &job->profile->comm_ops;
	const struct np_intern *strings = &job->profile->strings;
	uint64_t group = np_op_group(job->capture, np_intern_get(strings, ops->group[op]),
	                             np_intern_get(strings, ops->name[op]));
	for (size_t g = 0; group != UINT64_MAX && g < job->capture->n_groups; g++)
		if (job->capture->groups[g].hash == group &&
		    in_set(set, job->capture->groups[g].name))
			return true;
	return false;
}

/* ── one rank ── */

/* Ranges by start, with the largest end so far: so the first that reaches into a step is
 * found by bisection. */
struct span {
	np_ns start, end, reach;
};

struct spans {
	struct span *v;
	size_t n;
};

static int by_start(const void *a, const void *b)
{
	const struct span *x = a, *y = b;
	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return (x->end > y->end) - (x->end < y->end);
}

static void index_spans(struct spans *self)
{
	np_ns reach = INT64_MIN;
	bool sorted = true;
	for (size_t i = 1; i < self->n && sorted; i++)
		sorted = self->v[i - 1].start <= self->v[i].start;
	if (!sorted)
		qsort(self->v, self->n, sizeof *self->v, by_start);
	for (size_t i = 0; i < self->n; i++) {
		reach = self->v[i].end > reach ? self->v[i].end : reach;
		self->v[i].reach = reach;
	}
}

static bool take_kernels(const struct np_profile *profile, struct spans *out)
{
	const struct np_kernels *kernels = &profile->kernels;
	out->v = np_realloc(NULL, kernels->n + 1, sizeof *out->v);
	for (size_t i = 0; out->v && i < kernels->n; i++)
		if (!np_is_comm_core(np_intern_get(&profile->strings, kernels->core[i])))
			out->v[out->n++] =
				(struct span){.start = kernels->start_ns[i],
			                      .end = kernels->start_ns[i] + kernels->dur_ns[i]};
	if (out->v)
		index_spans(out);
	return out->v != NULL;
}

static bool take_ops(const struct np_map_job *job, const struct set *set, struct spans *out)
{
	const struct np_comm_ops *ops = &job->profile->comm_ops;
	out->n = 0;
	if (!out->v)
		out->v = np_realloc(NULL, ops->n + 1, sizeof *out->v);
	for (size_t i = 0; out->v && i < ops->n; i++)
		if (is_member(job, set, i))
			out->v[out->n++] = (struct span){.start = ops->start_ns[i],
			                                 .end = ops->start_ns[i] + ops->dur_ns[i]};
	if (out->v)
		index_spans(out);
	return out->v != NULL;
}

/* Those that overlap (start, end), whole. */
static bool overlapping(const struct spans *all, np_ns start, np_ns end, struct np_intervals *out)
{
	size_t low = 0, high = all->n;
	while (low < high) {
		size_t mid = low + (high - low) / 2;
		if (all->v[mid].reach <= start)
			low = mid + 1;
		else
			high = mid;
	}
	out->n = 0;
	for (size_t i = low; i < all->n && all->v[i].start < end; i++)
		if (all->v[i].end > start && !np_intervals_add(out, all->v[i].start, all->v[i].end))
			return false;
	np_intervals_merge(out);
	return true;
}

struct work {
	const struct np_map_job *job;
	struct np_digest_masking *rows;
	struct spans compute, comm;
	struct np_intervals comm_set, compute_set, bare;
};

static bool do_step(struct work *self, size_t s, np_id type)
{
	const struct np_steps *steps = &self->job->profile->steps;
	np_ns start = steps->host_start_ns[s], end = steps->host_end_ns[s];
	if (start == NP_NO_I64 || end <= start ||
	    (self->job->options->has_step && steps->id[s] != self->job->options->step))
		return true;
	if (!overlapping(&self->comm, start, end, &self->comm_set))
		return false;
	if (self->comm_set.n == 0)
		return true;
	if (!overlapping(&self->compute, start, end, &self->compute_set) ||
	    !np_intervals_subtract(&self->comm_set, &self->compute_set, &self->bare))
		return false;
	size_t r = np_rows_add(self->rows, &np_digest_masking_desc);
	if (r == SIZE_MAX)
		return false;
	self->rows->type[r] = type;
	self->rows->step[r] = steps->id[s];
	self->rows->start_ns[r] = start;
	self->rows->end_ns[r] = end;
	self->rows->comm_ns[r] = np_intervals_length(&self->comm_set);
	self->rows->bare_ns[r] = np_intervals_length(&self->bare);
	return true;
}

static bool do_set(struct work *self, const struct set *set)
{
	const struct np_profile *profile = self->job->profile;
	np_id type = set_name(set, &self->job->digest->strings);
	if (type == NP_ID_NONE || !take_ops(self->job, set, &self->comm))
		return false;
	for (size_t s = 0; s < profile->steps.n; s++)
		if (!do_step(self, s, type))
			return false;
	return true;
}

static bool note_seen(const struct np_map_job *job)
{
	struct np_digest_masking_seen *seen =
		np_digest_table(job->digest, &np_digest_masking_seen_desc);
	const struct np_steps *steps = &job->profile->steps;
	size_t r = np_rows_add(seen, &np_digest_masking_seen_desc);
	if (r == SIZE_MAX)
		return false;
	seen->groups[r] = job->capture->n_groups > 0;
	seen->steps[r] = 0;
	for (size_t i = 0; i < steps->n; i++)
		seen->steps[r] |= steps->host_start_ns[i] != NP_NO_I64;
	return true;
}

static enum np_status map(const struct np_map_job *job, struct np_err *err)
{
	const char *types = job->options->parallel_types;
	struct work work = {.job = job,
	                    .rows = np_digest_table(job->digest, &np_digest_masking_desc)};
	bool ok = note_seen(job) && take_kernels(job->profile, &work.compute);
	np_str rest = np_str_of(types && *types ? types : DEFAULT_TYPES);
	while (ok && rest.len > 0) {
		struct set set;
		rest = next_set(rest, &set);
		ok = set.n == 0 || do_set(&work, &set);
	}
	np_free(work.compute.v);
	np_free(work.comm.v);
	np_intervals_release(&work.comm_set);
	np_intervals_release(&work.compute_set);
	np_intervals_release(&work.bare);
	return ok ? NP_OK : np_err_nomem(err);
}

static const struct np_table_desc *const tables[] = {&np_digest_masking_desc,
                                                     &np_digest_masking_seen_desc, NULL};

static const struct np_part part = {
	.name = "masking",
	.revision = 1,
	.load = NP_STEPS | NP_KERNELS | NP_COMM_OPS,
	.by_options = true,
	.tables = tables,
	.map = map,
};

/* ── all ranks ── */

#define OFFICIAL_COLUMNS                                                                          \
	{"stepId", "", NP_COL_INT, "step"}, {"parallelType", "", NP_COL_TEXT, "kinds of groups"}, \
		{"stepStartTime", "", NP_COL_INT, "start of the step on the host, ns"},           \
		{"stepEndTime", "", NP_COL_INT, "its end, ns"},                                   \
		{"totalCommunicationOperatorTime", "", NP_COL_INT,                                \
	         "communication of these groups, overlaps once, ns"},                             \
		{"timeRatioOfStepCommunicationOperator", "", NP_COL_REAL,                         \
	         "that by the length of the step"},                                               \
		{"totalTimeWithoutCommunicationBlackout", "", NP_COL_INT,                         \
	         "of it without a compute kernel at the same time, ns"},                          \
	{                                                                                         \
		"ratioOfUnmaskedCommunication", "", NP_COL_REAL,                                  \
			"that by the length of the step, 5 decimals"                              \
	}

static const struct np_column own_columns[] = {OFFICIAL_COLUMNS,
                                               {"rankId", "", NP_COL_INT, "rank"}};
static const struct np_column official_columns[] = {OFFICIAL_COLUMNS};

static void put_row(struct np_table *table, const struct np_cluster *cluster,
                    const struct np_digest_masking *rows, size_t i)
{
	double length = (double)(rows->end_ns[i] - rows->start_ns[i]);
	np_cell_int(table, rows->step[i]);
	np_cell_text(table, np_cluster_text(cluster, rows->type[i]));
	np_cell_int(table, rows->start_ns[i]);
	np_cell_int(table, rows->end_ns[i]);
	np_cell_int(table, rows->comm_ns[i]);
	np_cell_real(table, (double)rows->comm_ns[i] / length);
	np_cell_int(table, rows->bare_ns[i]);
	np_cell_real(table, np_round_half_even((double)rows->bare_ns[i] / length, 5));
}

static bool tell_lacking(struct np_cluster *cluster, const struct np_recipe *self)
{
	bool *steps = np_calloc(cluster->ranks.n + 1, sizeof *steps);
	bool *groups = np_calloc(cluster->ranks.n + 1, sizeof *groups);
	for (size_t r = 0; steps && groups && r < cluster->ranks.n; r++) {
		const struct np_digest_masking_seen *seen =
			NP_DIGEST_ROWS(&cluster->ranks.v[r], np_digest_masking_seen);
		steps[r] = seen->n == 0 || seen->steps[0];
		groups[r] = seen->n == 0 || seen->groups[0];
	}
	bool ok = steps && groups;
	if (ok) {
		np_cluster_lacking(cluster, self, steps, "steps (call prof.step())");
		np_cluster_lacking(cluster, self, groups,
		                   "names of their groups (parallel_group_info)");
	}
	np_free(steps);
	np_free(groups);
	return ok;
}

static enum np_status reduce(struct np_cluster *cluster, const struct np_recipe *self,
                             struct np_err *err)
{
	bool compat = cluster->options->compat;
	size_t n = 0;
	for (size_t r = 0; r < cluster->ranks.n; r++)
		n += NP_DIGEST_ROWS(&cluster->ranks.v[r], np_digest_masking)->n;
	if (!tell_lacking(cluster, self))
		return np_err_nomem(err);
	if (n == 0) {
		np_cluster_nothing(cluster, self,
		                   "no step has communication of a group with such a name");
		return NP_OK;
	}
	struct np_table *table = np_report_table(
		cluster->report, "ComputationalOperatorMaskingLinearity",
		"Communication behind computing", compat ? official_columns : own_columns,
		compat ? sizeof official_columns / sizeof *official_columns
		       : sizeof own_columns / sizeof *own_columns);
	for (size_t r = 0; r < cluster->ranks.n; r++) {
		const struct np_digest_masking *rows =
			NP_DIGEST_ROWS(&cluster->ranks.v[r], np_digest_masking);
		for (size_t i = 0; i < rows->n; i++) {
			put_row(table, cluster, rows, i);
			if (!compat)
				np_cell_int(table, cluster->ranks.v[r].rank);
		}
	}
	return NP_OK;
}

static const struct np_part *const parts[] = {&part, NULL};

static const struct np_recipe_file files[] = {
	{.table = "ComputationalOperatorMaskingLinearity",
         .csv = "computational_operator_masking_linearity.csv"},
	{.table = NULL},
};

const struct np_recipe np_recipe_computational_op_masking = {
	.name = "computational_op_masking",
	.dir = "ComputationalOpMasking",
	.summary = NP_N("communication that no computing hides, by kind of parallelism"),
	.parts = parts,
	.reduce = reduce,
	.files = files,
};
