/*
 * compute_op_sum (cluster_and_advisor.md §2.14): durations of the compute kernels by
 * type and core, of all ranks and of each, and by name and shapes.
 *
 * The digest has the different durations of each group and how often they occur: all
 * that exact quantiles over several ranks need, and on a device whose clock ticks
 * every 20 ns far fewer than there are kernels.
 */
#include <stdlib.h>

#include "cluster/grouping.h"
#include "cluster/internal.h"
#include "cluster/stats.h"
#include "report/lang.h"

static const char ABSENT[] = "N/A"; /* as the exporters write it */

/* ── the part ── */

#define OPS_COLUMNS(X)                     \
	X(np_id, name, "kernel")           \
	X(np_id, type, "operator type")    \
	X(np_id, core, "accelerator core") \
	X(np_id, shapes, "input shapes")   \
	X(uint32_t, n_runs, "its rows in the table of runs: they follow one another")

#define RUNS_COLUMNS(X)                \
	X(int64_t, dur_ns, "duration") \
	X(uint64_t, times, "how often")

NP_TABLE_STRUCT(np_digest_compute_ops, OPS_COLUMNS);
NP_TABLE_STRUCT(np_digest_compute_runs, RUNS_COLUMNS);
#define NP_TAG np_digest_compute_ops
NP_TABLE_DESC(static, np_digest_compute_ops, "compute_ops", OPS_COLUMNS)
#undef NP_TAG
#define NP_TAG np_digest_compute_runs
NP_TABLE_DESC(static, np_digest_compute_runs, "compute_runs", RUNS_COLUMNS)
#undef NP_TAG

/* The kernels of the range, by columns, so that they can be grouped. */
struct picked {
	size_t n;
	uint32_t *name, *type, *core, *shapes;
	int64_t *dur;
};

static void release_picked(struct picked *self)
{
	np_free(self->name);
	np_free(self->type);
	np_free(self->core);
	np_free(self->shapes);
	np_free(self->dur);
}

static bool pick(const struct np_map_job *job, struct picked *self)
{
	const struct np_profile *p = job->profile;
	const struct np_kernels *k = &p->kernels;
	*self = (struct picked){.name = np_realloc(NULL, k->n + 1, sizeof(uint32_t)),
	                        .type = np_realloc(NULL, k->n + 1, sizeof(uint32_t)),
	                        .core = np_realloc(NULL, k->n + 1, sizeof(uint32_t)),
	                        .shapes = np_realloc(NULL, k->n + 1, sizeof(uint32_t)),
	                        .dur = np_realloc(NULL, k->n + 1, sizeof(int64_t))};
	if (!self->name || !self->type || !self->core || !self->shapes || !self->dur)
		return false;
	for (size_t i = 0; i < k->n; i++) {
		if (k->start_ns[i] < job->from_ns || k->start_ns[i] > job->to_ns ||
		    np_is_comm_core(np_intern_get(&p->strings, k->core[i])))
			continue;
		self->name[self->n] = k->name[i];
		self->type[self->n] = k->type[i];
		self->core[self->n] = k->core[i];
		self->shapes[self->n] =
			i < p->kernel_shapes.n ? p->kernel_shapes.in_shapes[i] : NP_ID_NONE;
		self->dur[self->n++] = k->dur_ns[i];
	}
	return true;
}

static bool add_runs(const struct picked *picked, const struct np_groups *groups, size_t g,
                     int64_t *values, struct np_digest_compute_runs *runs, uint32_t *n_runs)
{
	size_t n = np_group_size(groups, g), r = SIZE_MAX;
	for (size_t i = 0; i < n; i++)
		values[i] = picked->dur[groups->order[groups->start[g] + i]];
	np_stats_sort(values, n);
	*n_runs = 0;
	for (size_t i = 0; i < n; i++) {
		if (i > 0 && values[i] == values[i - 1]) {
			runs->times[r]++;
			continue;
		}
		r = np_rows_add(runs, &np_digest_compute_runs_desc);
		if (r == SIZE_MAX)
			return false;
		runs->dur_ns[r] = values[i];
		runs->times[r] = 1;
		++*n_runs;
	}
	return true;
}

static bool add_group(const struct np_map_job *job, const struct picked *picked,
                      const struct np_groups *groups, size_t g, int64_t *values)
{
	const struct np_intern *strings = &job->profile->strings;
	struct np_digest_compute_ops *ops =
		np_digest_table(job->digest, &np_digest_compute_ops_desc);
	struct np_digest_compute_runs *runs =
		np_digest_table(job->digest, &np_digest_compute_runs_desc);
	uint32_t first = np_group_row(groups, g);
	size_t r = np_rows_add(ops, &np_digest_compute_ops_desc);
	return r != SIZE_MAX && add_runs(picked, groups, g, values, runs, &ops->n_runs[r]) &&
	       np_digest_string(job->digest, strings, picked->name[first], &ops->name[r]) &&
	       np_digest_string(job->digest, strings, picked->type[first], &ops->type[r]) &&
	       np_digest_string(job->digest, strings, picked->core[first], &ops->core[r]) &&
	       np_digest_string(job->digest, strings, picked->shapes[first], &ops->shapes[r]);
}

static enum np_status map(const struct np_map_job *job, struct np_err *err)
{
	struct picked picked;
	struct np_groups groups = {0};
	bool ok = pick(job, &picked);
	const uint32_t *const keys[] = {picked.name, picked.type, picked.core, picked.shapes};
	int64_t *values = ok ? np_realloc(NULL, picked.n + 1, sizeof *values) : NULL;
	ok = ok && values && np_group_rows(picked.n, keys, 4, &groups);
	for (size_t g = 0; ok && g < groups.n; g++)
		ok = add_group(job, &picked, &groups, g, values);
	np_free(values);
	np_groups_release(&groups);
	release_picked(&picked);
	return ok ? NP_OK : np_err_nomem(err);
}

static const struct np_table_desc *const tables[] = {&np_digest_compute_ops_desc,
                                                     &np_digest_compute_runs_desc, NULL};

static const struct np_part part = {
	.name = "compute_ops",
	.revision = 1,
	.load = NP_KERNELS | NP_KERNEL_SHAPES,
	.tables = tables,
	.map = map,
};

/* ── the reduce ── */

/* The groups of all ranks, in order of rank, and their runs. */
struct ops {
	struct np_cluster *cluster;
	size_t n, n_runs;
	np_id *name, *type, *core, *shapes;
	uint32_t *rank;    /* row of the cluster */
	size_t *first_run; /* n + 1 */
	struct np_run *runs, *scratch;
};

static void release(struct ops *self)
{
	np_free(self->name);
	np_free(self->type);
	np_free(self->core);
	np_free(self->shapes);
	np_free(self->rank);
	np_free(self->first_run);
	np_free(self->runs);
	np_free(self->scratch);
}

static bool reserve(struct ops *self)
{
	size_t n = 0, n_runs = 0;
	for (size_t r = 0; r < self->cluster->ranks.n; r++) {
		const struct np_cluster_rank *rank = &self->cluster->ranks.v[r];
		n += NP_DIGEST_ROWS(rank, np_digest_compute_ops)->n;
		n_runs += NP_DIGEST_ROWS(rank, np_digest_compute_runs)->n;
	}
	self->name = np_realloc(NULL, n + 1, sizeof *self->name);
	self->type = np_realloc(NULL, n + 1, sizeof *self->type);
	self->core = np_realloc(NULL, n + 1, sizeof *self->core);
	self->shapes = np_realloc(NULL, n + 1, sizeof *self->shapes);
	self->rank = np_realloc(NULL, n + 1, sizeof *self->rank);
	self->first_run = np_realloc(NULL, n + 1, sizeof *self->first_run);
	self->runs = np_realloc(NULL, n_runs + 1, sizeof *self->runs);
	self->scratch = np_realloc(NULL, n_runs + 1, sizeof *self->scratch);
	return self->name && self->type && self->core && self->shapes && self->rank &&
	       self->first_run && self->runs && self->scratch;
}

/* The sum of n_runs is what the table has, unless the digest is not one of ours. */
static void collect_rank(struct ops *self, size_t r)
{
	const struct np_cluster_rank *rank = &self->cluster->ranks.v[r];
	const struct np_digest_compute_ops *ops = NP_DIGEST_ROWS(rank, np_digest_compute_ops);
	const struct np_digest_compute_runs *runs = NP_DIGEST_ROWS(rank, np_digest_compute_runs);
	for (size_t i = 0, at = 0; i < ops->n && ops->n_runs[i] <= runs->n - at; i++) {
		size_t row = self->n++;
		self->name[row] = ops->name[i];
		self->type[row] = ops->type[i];
		self->core[row] = ops->core[i];
		self->shapes[row] = ops->shapes[i];
		self->rank[row] = (uint32_t)r;
		self->first_run[row] = self->n_runs;
		for (uint32_t j = 0; j < ops->n_runs[i]; j++, at++)
			self->runs[self->n_runs++] =
				(struct np_run){runs->dur_ns[at], runs->times[at]};
	}
	self->first_run[self->n] = self->n_runs;
}

struct row {
	size_t group;
	uint32_t first; /* its first row */
	struct np_describe d;
};

static int by_sum(const void *a, const void *b)
{
	const struct row *x = a, *y = b;
	if (x->d.sum != y->d.sum)
		return x->d.sum < y->d.sum ? 1 : -1;
	return (x->first > y->first) - (x->first < y->first);
}

static void describe(const struct ops *self, const struct np_groups *groups, struct row *row)
{
	const uint32_t *rows = &groups->order[groups->start[row->group]];
	size_t n = 0;
	for (size_t i = 0; i < np_group_size(groups, row->group); i++)
		for (size_t j = self->first_run[rows[i]]; j < self->first_run[rows[i] + 1]; j++)
			self->scratch[n++] = self->runs[j];
	if (np_group_size(groups, row->group) > 1)
		n = np_runs_unite(self->scratch, n);
	np_describe_runs(self->scratch, n, &row->d);
	row->first = rows[0];
}

static void key_cell(const struct ops *self, struct np_table *table, np_id id)
{
	np_str text = np_cluster_text(self->cluster, id);
	if (id == NP_ID_NONE)
		np_cell_cstr(table, ABSENT);
	else
		np_cell_text(table, text);
}

/* What distinguishes the three tables. */
struct form {
	const char *id, *title;
	const struct np_column *columns;
	size_t n_columns;
	bool by_name, by_rank;
};

static void fill_row(const struct ops *self, const struct form *form, const struct row *row,
                     struct np_table *table)
{
	if (form->by_name)
		key_cell(self, table, self->name[row->first]);
	key_cell(self, table, self->type[row->first]);
	key_cell(self, table, self->core[row->first]);
	if (form->by_name)
		key_cell(self, table, self->shapes[row->first]);
	np_cell_describe(table, &row->d);
	if (form->by_rank)
		np_cell_int(table, self->cluster->ranks.v[self->rank[row->first]].rank);
}

static bool fill_table(const struct ops *self, const struct form *form)
{
	struct np_groups groups;
	const uint32_t *keys[5];
	size_t n_keys = 0;
	keys[n_keys++] = self->type;
	keys[n_keys++] = self->core;
	if (form->by_rank)
		keys[n_keys++] = self->rank;
	if (form->by_name) {
		keys[n_keys++] = self->name;
		keys[n_keys++] = self->shapes;
	}
	bool ok = np_group_rows(self->n, keys, n_keys, &groups);
	struct row *rows = ok ? np_realloc(NULL, groups.n + 1, sizeof *rows) : NULL;
	struct np_table *table = np_report_table(self->cluster->report, form->id, form->title,
	                                         form->columns, form->n_columns);
	for (size_t g = 0; rows && g < groups.n; g++) {
		rows[g].group = g;
		describe(self, &groups, &rows[g]);
	}
	if (rows)
		qsort(rows, groups.n, sizeof *rows, by_sum);
	for (size_t g = 0; rows && g < groups.n; g++)
		fill_row(self, form, &rows[g], table);
	ok = rows != NULL;
	np_free(rows);
	np_groups_release(&groups);
	return ok;
}

#define TYPE_COLUMNS                                            \
	{"OpType", "", NP_COL_TEXT, "operator type"},           \
	{                                                       \
		"TaskType", "", NP_COL_TEXT, "accelerator core" \
	}

static const struct np_column all_columns[] = {TYPE_COLUMNS, NP_DESCRIBE_COLUMNS};
static const struct np_column type_columns[] = {
	TYPE_COLUMNS, NP_DESCRIBE_COLUMNS, {"Rank", "", NP_COL_INT, "rank"}};
static const struct np_column name_columns[] = {{"OpName", "", NP_COL_TEXT, "kernel"},
                                                TYPE_COLUMNS,
                                                {"InputShapes", "", NP_COL_TEXT, "input shapes"},
                                                NP_DESCRIBE_COLUMNS,
                                                {"Rank", "", NP_COL_INT, "rank"}};

#define FORM(id, title, columns, by_name, by_rank)                                        \
	{                                                                                 \
		id, title, columns, sizeof(columns) / sizeof *(columns), by_name, by_rank \
	}

static const struct form forms[] = {
	FORM("ComputeOpAllRankStats", NP_N("Compute kernels by type"), all_columns, false, false),
	FORM("ComputeOpPerRankStatsByOpType", NP_N("Compute kernels by type and rank"),
             type_columns, false, true),
	FORM("ComputeOpPerRankStatsByOpName", NP_N("Compute kernels by name, shapes and rank"),
             name_columns, true, true),
};

static enum np_status reduce(struct np_cluster *cluster, const struct np_recipe *self,
                             struct np_err *err)
{
	struct ops ops = {.cluster = cluster};
	bool *has = np_calloc(cluster->ranks.n + 1, sizeof *has);
	bool ok = has && reserve(&ops);
	for (size_t r = 0; ok && r < cluster->ranks.n; r++) {
		size_t before = ops.n;
		collect_rank(&ops, r);
		has[r] = ops.n > before || !cluster->ranks.v[r].digest;
	}
	if (ok && ops.n == 0)
		np_cluster_nothing(cluster, self, "no rank has recorded a compute kernel");
	else if (ok)
		np_cluster_lacking(cluster, self, has, "kernel_details.csv or COMPUTE_TASK_INFO");
	for (size_t i = 0; ok && ops.n > 0 && i < sizeof forms / sizeof *forms; i++)
		if (!forms[i].by_name || !cluster->options->exclude_op_name)
			ok = fill_table(&ops, &forms[i]);
	np_free(has);
	release(&ops);
	return ok ? NP_OK : np_err_nomem(err);
}

static const struct np_part *const parts[] = {&part, NULL};

static const struct np_recipe_file files[] = {
	{.table = "ComputeOpAllRankStats", .csv = "all_stats.csv", .n_index = 2},
	{.table = "ComputeOpPerRankStatsByOpType", .csv = "rank_stats_by_optype.csv", .n_index = 2},
	{.table = "ComputeOpPerRankStatsByOpName", .csv = "rank_stats_by_opname.csv", .n_index = 4},
	{.table = NULL},
};

const struct np_recipe np_recipe_compute_op_sum = {
	.name = "compute_op_sum",
	.dir = "ComputeOpSum",
	.summary = NP_N("durations of compute kernels by type, rank and name"),
	.parts = parts,
	.reduce = reduce,
	.files = files,
};
