/*
 * hccl_sum (cluster_and_advisor.md §2.13): durations of collectives by type, by
 * type and rank, the slowest names, and which ranks each group has.
 */
#include <stdlib.h>
#include <string.h>

#include "cluster/grouping.h"
#include "cluster/internal.h"
#include "cluster/parts.h"
#include "cluster/stats.h"

enum { DEFAULT_TOP = 15 };

/* The ops of all ranks, in order of rank. */
struct ops {
	struct np_cluster *cluster;
	size_t n;
	np_id *name, *type, *group;
	uint32_t *rank; /* row of the cluster */
	int64_t *dur, *values;
};

static void release(struct ops *self)
{
	np_free(self->name);
	np_free(self->type);
	np_free(self->group);
	np_free(self->rank);
	np_free(self->dur);
	np_free(self->values);
}

static bool collect(struct np_cluster *cluster, struct ops *self)
{
	size_t n = 0;
	for (size_t r = 0; r < cluster->ranks.n; r++)
		n += NP_DIGEST_ROWS(&cluster->ranks.v[r], np_digest_comm_ops)->n;
	*self = (struct ops){.cluster = cluster,
	                     .name = np_realloc(NULL, n + 1, sizeof(np_id)),
	                     .type = np_realloc(NULL, n + 1, sizeof(np_id)),
	                     .group = np_realloc(NULL, n + 1, sizeof(np_id)),
	                     .rank = np_realloc(NULL, n + 1, sizeof(uint32_t)),
	                     .dur = np_realloc(NULL, n + 1, sizeof(int64_t)),
	                     .values = np_realloc(NULL, n + 1, sizeof(int64_t))};
	if (!self->name || !self->type || !self->group || !self->rank || !self->dur ||
	    !self->values)
		return false;
	for (size_t r = 0; r < cluster->ranks.n; r++) {
		const struct np_digest_comm_ops *rows =
			NP_DIGEST_ROWS(&cluster->ranks.v[r], np_digest_comm_ops);
		for (size_t i = 0; i < rows->n; i++, self->n++) {
			self->name[self->n] = rows->name[i];
			self->type[self->n] = rows->type[i];
			self->group[self->n] = rows->group[i];
			self->rank[self->n] = (uint32_t)r;
			self->dur[self->n] = rows->dur_ns[i];
		}
	}
	return true;
}

static void describe(const struct ops *self, const struct np_groups *groups, size_t g,
                     struct np_describe *out)
{
	size_t n = np_group_size(groups, g);
	for (size_t i = 0; i < n; i++)
		self->values[i] = self->dur[groups->order[groups->start[g] + i]];
	np_describe_i64(self->values, n, out);
}

static void text_cell(struct np_table *table, const struct ops *self, np_id id)
{
	np_cell_text(table, np_cluster_text(self->cluster, id));
}

static int64_t rank_of(const struct ops *self, uint32_t row)
{
	return self->cluster->ranks.v[self->rank[row]].rank;
}

/* ── by type ── */

static const struct np_column all_columns[] = {{"OpType", "", NP_COL_TEXT, "type of collective"},
                                               NP_DESCRIBE_COLUMNS};

static const struct np_column rank_columns[] = {{"OpType", "", NP_COL_TEXT, "type of collective"},
                                                NP_DESCRIBE_COLUMNS,
                                                {"Rank", "", NP_COL_INT, "rank"}};

static bool by_type(const struct ops *self)
{
	struct np_groups groups;
	const uint32_t *const keys[] = {self->type};
	struct np_describe d;
	bool ok = np_group_rows(self->n, keys, 1, &groups);
	struct np_table *table = NP_REPORT_TABLE(self->cluster->report, "HcclAllRankStats",
	                                         "Collectives by type", all_columns);
	for (size_t g = 0; ok && g < groups.n; g++) {
		describe(self, &groups, g, &d);
		text_cell(table, self, self->type[np_group_row(&groups, g)]);
		np_cell_describe(table, &d);
	}
	np_groups_release(&groups);
	return ok;
}

/* Rows are in order of rank, and so are the groups: by their first row. */
static bool by_rank(const struct ops *self)
{
	struct np_groups groups;
	const uint32_t *const keys[] = {self->rank, self->type};
	struct np_describe d;
	bool ok = np_group_rows(self->n, keys, 2, &groups);
	struct np_table *table = NP_REPORT_TABLE(self->cluster->report, "HcclPerRankStats",
	                                         "Collectives by type and rank", rank_columns);
	for (size_t g = 0; ok && g < groups.n; g++) {
		uint32_t row = np_group_row(&groups, g);
		describe(self, &groups, g, &d);
		text_cell(table, self, self->type[row]);
		np_cell_describe(table, &d);
		np_cell_int(table, rank_of(self, row));
	}
	np_groups_release(&groups);
	return ok;
}

/* ── the slowest names ── */

static const struct np_column top_columns[] = {
	{"OpName", "", NP_COL_TEXT, "name of the collective"},
	NP_DESCRIBE_COLUMNS,
	{"MinRank", "", NP_COL_INT, "rank with the shortest, the lowest of several"},
	{"MaxRank", "", NP_COL_INT, "rank with the longest, the lowest of several"}};

struct top {
	size_t group;
	struct np_describe d;
};

static int by_mean(const void *a, const void *b)
{
	const struct top *x = a, *y = b;
	if (x->d.mean != y->d.mean)
		return x->d.mean < y->d.mean ? 1 : -1;
	return (x->group > y->group) - (x->group < y->group);
}

static void top_row(const struct ops *self, const struct np_groups *groups, const struct top *top,
                    struct np_table *table)
{
	const uint32_t *rows = &groups->order[groups->start[top->group]];
	uint32_t min = rows[0], max = rows[0];
	for (size_t i = 1; i < np_group_size(groups, top->group); i++) {
		min = self->dur[rows[i]] < self->dur[min] ? rows[i] : min;
		max = self->dur[rows[i]] > self->dur[max] ? rows[i] : max;
	}
	text_cell(table, self, self->name[rows[0]]);
	np_cell_describe(table, &top->d);
	np_cell_int(table, rank_of(self, min));
	np_cell_int(table, rank_of(self, max));
}

static bool slowest(const struct ops *self)
{
	struct np_groups groups;
	const uint32_t *const keys[] = {self->name};
	bool ok = np_group_rows(self->n, keys, 1, &groups);
	struct top *tops = ok ? np_realloc(NULL, groups.n + 1, sizeof *tops) : NULL;
	struct np_table *table = NP_REPORT_TABLE(self->cluster->report, "HcclTopOpStats",
	                                         "Collectives by mean duration", top_columns);
	size_t top = self->cluster->options->top ? self->cluster->options->top : DEFAULT_TOP;
	for (size_t g = 0; tops && g < groups.n; g++) {
		tops[g].group = g;
		describe(self, &groups, g, &tops[g].d);
	}
	if (tops)
		qsort(tops, groups.n, sizeof *tops, by_mean);
	for (size_t i = 0; tops && i < groups.n && i < top; i++)
		top_row(self, &groups, &tops[i], table);
	ok = tops != NULL;
	np_free(tops);
	np_groups_release(&groups);
	return ok;
}

/* ── groups ── */

static const struct np_column group_columns[] = {
	{"GroupName", "", NP_COL_TEXT, "communicator"},
	{"GroupId", "", NP_COL_TEXT, "last three digits of its hash, as in the names of its ops"},
	{"Ranks", "", NP_COL_TEXT, "ranks that have ops of it"}};

static void group_row(const struct ops *self, const struct np_groups *groups, size_t g,
                      struct np_table *table)
{
	enum { ID_DIGITS = 3 };
	char key[NP_GROUP_KEY_SIZE]; /* the hash, which text captures have for a name */
	struct np_buf ranks = {0};
	const uint32_t *rows = &groups->order[groups->start[g]];
	np_str name = np_cluster_text(self->cluster, self->group[rows[0]]);
	for (size_t i = 0; i < np_group_size(groups, g); i++)
		if (i == 0 || self->rank[rows[i]] != self->rank[rows[i - 1]])
			np_buf_printf(&ranks, "%s%lld", ranks.len > 0 ? ";" : "",
			              (long long)rank_of(self, rows[i]));
	np_cell_text(table, name);
	np_group_key(name, key);
	size_t len = strlen(key);
	np_cell_cstr(table, len > ID_DIGITS ? key + len - ID_DIGITS : key);
	np_cell_text(table, np_buf_str(&ranks));
	np_buf_release(&ranks);
}

static bool group_map(const struct ops *self)
{
	struct np_groups groups;
	const uint32_t *const keys[] = {self->group};
	bool ok = np_group_rows(self->n, keys, 1, &groups);
	struct np_table *table = NP_REPORT_TABLE(self->cluster->report, "HcclGroupNameMap",
	                                         "Communicators", group_columns);
	for (size_t g = 0; ok && g < groups.n; g++)
		group_row(self, &groups, g, table);
	np_groups_release(&groups);
	return ok;
}

static enum np_status reduce(struct np_cluster *cluster, const struct np_recipe *self,
                             struct np_err *err)
{
	struct ops ops;
	bool ok = collect(cluster, &ops);
	if (ok && ops.n == 0)
		np_cluster_nothing(cluster, self, "no rank has recorded a collective");
	else if (ok)
		ok = by_type(&ops) && by_rank(&ops) && slowest(&ops) && group_map(&ops);
	release(&ops);
	return ok ? NP_OK : np_err_nomem(err);
}

static const struct np_part *const parts[] = {&np_part_comm_ops, NULL};

static const struct np_recipe_file files[] = {
	{.table = "HcclAllRankStats", .csv = "all_stats.csv", .n_index = 1},
	{.table = "HcclPerRankStats", .csv = "rank_stats.csv", .n_index = 1},
	{.table = "HcclTopOpStats", .csv = "top_op_stats.csv", .n_index = 1},
	{.table = "HcclGroupNameMap", .csv = "group_name_map.csv", .n_index = 1},
	{.table = NULL},
};

const struct np_recipe np_recipe_hccl_sum = {
	.name = "hccl_sum",
	.dir = "HcclSum",
	.summary = NP_N("durations of collectives by type, rank and name"),
	.parts = parts,
	.reduce = reduce,
	.files = files,
};
