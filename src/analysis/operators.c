/*
 * Layer 4: which operators the computing time goes to – by core, type, name, and
 * type with input shapes. By type these are the rows of op_statistic.csv.
 */
#include "analysis/group.h"
#include "analysis/pmu.h"

#define CORE                                                \
	{                                                   \
		"core", "", NP_COL_TEXT, "accelerator core" \
	}
#define COUNT                                                          \
	{                                                              \
		"count", "", NP_COL_INT, "kernels in the chosen steps" \
	}
#define TOTAL                                                             \
	{                                                                 \
		"total_ns", "us", NP_COL_DUR_NS, "sum of their durations" \
	}
#define SHARE                                                                      \
	{                                                                          \
		"share", "", NP_COL_PERCENT, "of the sum over all compute kernels" \
	}
#define MEAN                                                  \
	{                                                     \
		"mean_us", "us", NP_COL_REAL, "total / count" \
	}
#define MIN                                               \
	{                                                 \
		"min_ns", "us", NP_COL_DUR_NS, "shortest" \
	}
#define MAX                                              \
	{                                                \
		"max_ns", "us", NP_COL_DUR_NS, "longest" \
	}
#define P50                                                            \
	{                                                              \
		"p50_ns", "us", NP_COL_DUR_NS, "median (nearest rank)" \
	}
#define P95                                                                     \
	{                                                                       \
		"p95_ns", "us", NP_COL_DUR_NS, "95th percentile (nearest rank)" \
	}
#define BOUND                                                                            \
	{                                                                                \
		"bound", "", NP_COL_TEXT, "the unit that is busiest in most of the time" \
	}

static const struct np_column all_columns[] = {COUNT, TOTAL, MEAN, MIN, MAX};

static const struct np_column type_columns[] = {
	{"type", "", NP_COL_TEXT, "operator type"},
	CORE,
	COUNT,
	TOTAL,
	SHARE,
	MEAN,
	MIN,
	MAX,
	P50,
	P95,
	BOUND,
};

static const struct np_column name_columns[] = {
	{"name", "", NP_COL_TEXT, "kernel name"},
	CORE,
	COUNT,
	TOTAL,
	SHARE,
	MEAN,
	MIN,
	MAX,
	P50,
	P95,
	BOUND,
};

static const struct np_column shape_columns[] = {
	{"type", "", NP_COL_TEXT, "operator type"},
	{"input_shapes", "", NP_COL_TEXT, "input shapes"},
	CORE,
	COUNT,
	TOTAL,
	SHARE,
	MEAN,
	MIN,
	MAX,
	P50,
	P95,
	BOUND,
};

/* ── all together ── */

struct sum {
	int64_t count;
	np_ns total, min, max;
};

static void sum_add(struct sum *sum, np_ns dur)
{
	if (sum->count == 0 || dur < sum->min)
		sum->min = dur;
	if (dur > sum->max)
		sum->max = dur;
	sum->total = np_ns_sum(sum->total, dur);
	sum->count++;
}

static void put_sum(struct np_table *table, const struct sum *sum)
{
	np_cell_int(table, sum->count);
	np_cell_int(table, sum->total);
	np_cell_real(table, (double)sum->total / 1e3 / (double)sum->count);
	np_cell_int(table, sum->min);
	np_cell_int(table, sum->max);
}

/* One row: all compute kernels together. */
static void put_compute_kernels(struct np_analysis *self)
{
	const struct np_kernels *kernels = &self->profile->kernels;
	struct sum all = {0};
	for (size_t i = 0; i < self->n_rows; i++)
		if (self->class[self->rows[i]] != NP_CLASS_COMM)
			sum_add(&all, kernels->dur_ns[self->rows[i]]);
	if (all.count)
		put_sum(NP_REPORT_TABLE(self->report, "compute_kernels", "Compute kernels",
		                        all_columns),
		        &all);
}

/* ── by type, name, shapes ── */

static void put_bound(struct np_table *table, const struct np_analysis *self,
                      const struct np_op_groups *groups, const struct np_op_group *group,
                      const uint8_t *bounds)
{
	np_ns by_bound[NP_N_BOUNDS] = {0};
	for (uint32_t i = 0; i < group->n; i++) {
		uint32_t row = groups->rows[group->first + i];
		np_ns *to = &by_bound[bounds[row]];
		*to = np_ns_sum(*to, self->profile->kernels.dur_ns[row]);
	}
	int best = NP_BOUND_NONE;
	for (int b = 0; b < NP_BOUND_NONE; b++)
		if (by_bound[b] > 0 && (best == NP_BOUND_NONE || by_bound[b] > by_bound[best]))
			best = b;
	if (best == NP_BOUND_NONE)
		np_cell_na(table);
	else
		np_cell_cstr(table, np_bound_name((enum np_bound)best));
}

static void put_text(struct np_table *table, np_str text)
{
	if (text.len)
		np_cell_text(table, text);
	else
		np_cell_na(table);
}

static void put_group(struct np_table *table, const struct np_analysis *self,
                      const struct np_op_groups *groups, const struct np_op_group *group,
                      const uint8_t *bounds)
{
	put_text(table, np_text(self, self->profile->kernels.core[group->example]));
	np_cell_int(table, group->n);
	np_cell_int(table, group->total);
	np_cell_real(table, groups->total > 0 ? (double)group->total / (double)groups->total : 0);
	np_cell_real(table, (double)group->total / 1e3 / group->n);
	np_cell_int(table, np_op_quantile(self, groups, group, 0));
	np_cell_int(table, np_op_quantile(self, groups, group, 1));
	np_cell_int(table, np_op_quantile(self, groups, group, 0.5));
	np_cell_int(table, np_op_quantile(self, groups, group, 0.95));
	put_bound(table, self, groups, group, bounds);
}

static bool put_groups(struct np_analysis *self, enum np_op_group_by by, const uint32_t *order,
                       size_t n_order, const uint8_t *bounds)
{
	struct np_op_groups groups;
	bool ok = np_op_groups_build(self, by, order, n_order, &groups);
	if (ok && groups.n) {
		struct np_report *to = self->report;
		struct np_table *table =
			by == NP_BY_TYPE
				? NP_REPORT_TABLE(to, "op_types", "Operators by type", type_columns)
			: by == NP_BY_NAME
				? NP_REPORT_TABLE(to, "ops", "Operators by name", name_columns)
				: NP_REPORT_TABLE(to, "op_shapes", "Operators by input shapes",
		                                  shape_columns);
		for (size_t g = 0; g < groups.n && g < np_top(self); g++) {
			const struct np_op_group *group = &groups.groups[g];
			uint32_t row = group->example;
			put_text(table,
			         np_text(self, by == NP_BY_NAME ? self->profile->kernels.name[row]
			                                        : np_op_type(self, row)));
			if (by == NP_BY_TYPE_SHAPE)
				put_text(table, np_text(self, np_in_shapes(self, row)));
			put_group(table, self, &groups, group, bounds);
		}
		if (groups.n > np_top(self))
			np_report_note(to, "table %s shows %zu of %zu rows; --top N shows more",
			               table->id, np_top(self), groups.n);
	}
	np_op_groups_release(&groups);
	return ok;
}

/* enum np_bound by kernel row. NULL: out of memory. */
static uint8_t *bounds_all(const struct np_analysis *self)
{
	size_t n = self->profile->kernels.n;
	struct np_pipes *pipes = np_pipes_all(self);
	uint8_t *bounds = pipes ? np_realloc(NULL, n, sizeof *bounds) : NULL;
	for (size_t i = 0; bounds && i < n; i++)
		bounds[i] = pipes[i].bound;
	np_free(pipes);
	return bounds;
}

void np_analyze_operators(struct np_analysis *self)
{
	size_t n = 0;
	uint8_t *bounds = bounds_all(self);
	uint32_t *order = np_op_order(self, true, &n);
	put_compute_kernels(self);
	bool ok = bounds && order && put_groups(self, NP_BY_TYPE, order, n, bounds) &&
	          put_groups(self, NP_BY_NAME, order, n, bounds);
	if (ok && np_has_shapes(self))
		ok = put_groups(self, NP_BY_TYPE_SHAPE, order, n, bounds);
	self->oom = self->oom || !ok;
	np_free(order);
	np_free(bounds);
}
