/*
 * cann_api_sum (cluster_and_advisor.md §2.15): the calls of CANN on the host, by name.
 */
#include <math.h>
#include <stdlib.h>

#include "base/number.h"
#include "cluster/grouping.h"
#include "cluster/internal.h"
#include "cluster/parts.h"
#include "cluster/stats.h"

/* ── the part: statistics of one rank ── */

#define APIS_COLUMNS(X)                    \
	X(np_id, name, "call")             \
	X(uint64_t, count, "how many")     \
	X(int64_t, total_ns, "sum")        \
	X(int64_t, min_ns, "shortest")     \
	X(int64_t, max_ns, "longest")      \
	X(double, q1_ns, "first quartile") \
	X(double, median_ns, "median")     \
	X(double, q3_ns, "third quartile") \
	X(double, std_ns, "standard deviation of all (n)")

NP_TABLE_STRUCT(np_digest_cann_apis, APIS_COLUMNS);
#define NP_TAG np_digest_cann_apis
NP_TABLE_DESC(static, np_digest_cann_apis, "cann_apis", APIS_COLUMNS)
#undef NP_TAG

struct calls {
	size_t n;
	uint32_t *name;
	int64_t *dur, *values;
};

static bool pick(const struct np_map_job *job, struct calls *self)
{
	const struct np_host_ops *ops = &job->profile->host_ops;
	*self = (struct calls){.name = np_realloc(NULL, ops->n + 1, sizeof *self->name),
	                       .dur = np_realloc(NULL, ops->n + 1, sizeof *self->dur),
	                       .values = np_realloc(NULL, ops->n + 1, sizeof *self->values)};
	if (!self->name || !self->dur || !self->values)
		return false;
	for (size_t i = 0; i < ops->n; i++)
		if (np_is_cann_layer(ops->layer[i]) && ops->start_ns[i] >= job->from_ns &&
		    ops->start_ns[i] <= job->to_ns) {
			self->name[self->n] = ops->name[i];
			self->dur[self->n++] = ops->dur_ns[i];
		}
	return true;
}

static bool add_api(const struct np_map_job *job, const struct calls *calls,
                    const struct np_groups *groups, size_t g)
{
	struct np_digest_cann_apis *apis = np_digest_table(job->digest, &np_digest_cann_apis_desc);
	struct np_describe d;
	size_t n = np_group_size(groups, g), r = np_rows_add(apis, &np_digest_cann_apis_desc);
	if (r == SIZE_MAX)
		return false;
	int64_t total = 0;
	for (size_t i = 0; i < n; i++) {
		int64_t dur = calls->dur[groups->order[groups->start[g] + i]];
		calls->values[i] = dur;
		total = dur > INT64_MAX - total ? INT64_MAX : total + dur;
	}
	np_describe_i64(calls->values, n, &d);
	apis->count[r] = n;
	apis->total_ns[r] = total;
	apis->min_ns[r] = calls->values[0];
	apis->max_ns[r] = calls->values[n - 1];
	apis->q1_ns[r] = d.q1;
	apis->median_ns[r] = d.median;
	apis->q3_ns[r] = d.q3;
	apis->std_ns[r] = n > 1 ? d.std * sqrt((double)(n - 1) / (double)n) : 0;
	return np_digest_string(job->digest, &job->profile->strings,
	                        calls->name[np_group_row(groups, g)], &apis->name[r]);
}

static enum np_status map(const struct np_map_job *job, struct np_err *err)
{
	struct calls calls;
	struct np_groups groups = {0};
	bool ok = pick(job, &calls);
	const uint32_t *const keys[] = {calls.name};
	ok = ok && np_group_rows(calls.n, keys, 1, &groups);
	for (size_t g = 0; ok && g < groups.n; g++)
		ok = add_api(job, &calls, &groups, g);
	np_groups_release(&groups);
	np_free(calls.name);
	np_free(calls.dur);
	np_free(calls.values);
	return ok ? NP_OK : np_err_nomem(err);
}

static const struct np_table_desc *const tables[] = {&np_digest_cann_apis_desc, NULL};

static const struct np_part part = {
	.name = "cann_apis",
	.revision = 1,
	.load = NP_HOST_CANN,
	.tables = tables,
	.map = map,
};

/* ── one table row per rank and name ── */

static const struct np_column rank_columns[] = {
	{"name", "", NP_COL_TEXT, "call of CANN"},
	{"durationRatio", "", NP_COL_REAL, "share of all calls of the rank, percent"},
	{"totalTimeNs", "", NP_COL_INT, "sum"},
	{"totalCount", "", NP_COL_INT, "how many"},
	{"averageNs", "", NP_COL_REAL, "mean"},
	{"minNs", "", NP_COL_REAL, "shortest"},
	{"Q1Ns", "", NP_COL_REAL, "first quartile, linear interpolation"},
	{"medNs", "", NP_COL_REAL, "median"},
	{"Q3Ns", "", NP_COL_REAL, "third quartile"},
	{"maxNs", "", NP_COL_REAL, "longest"},
	{"stdev", "", NP_COL_REAL, "standard deviation of all (n), ns"},
	{"rank", "", NP_COL_INT, "rank"},
};

/* An exact half away from zero, as SQLite does, whose round() made the figures of a rank;
 * those of all ranks went through Python. */
static double round_half_away(double value, int decimals)
{
	double scale = 2 * (decimals == 1 ? 10 : 100), twice = value * scale;
	if (twice == rint(twice) && fmod(twice, 2) != 0 && fma(value, scale, -twice) == 0)
		return (twice + copysign(1, value)) / scale;
	return np_round_half_even(value, decimals);
}

static void sql_cell(struct np_table *table, double value, int decimals)
{
	np_cell_real(table, round_half_away(value, decimals));
}

static void rounded_cell(struct np_table *table, double value)
{
	np_cell_real(table, np_round_half_even(value, 1));
}

struct order {
	int64_t total;
	size_t row;
	np_str name;
};

static int by_total(const void *a, const void *b)
{
	const struct order *x = a, *y = b;
	if (x->total != y->total)
		return x->total < y->total ? 1 : -1;
	return np_str_cmp(x->name, y->name);
}

static void rank_row(const struct np_digest_cann_apis *apis, const struct order *order,
                     double all_ns, int64_t rank, struct np_table *table)
{
	size_t r = order->row;
	double total = (double)apis->total_ns[r];
	np_cell_text(table, order->name);
	sql_cell(table, all_ns > 0 ? total / all_ns * 100 : 0, 2);
	np_cell_int(table, apis->total_ns[r]);
	np_cell_int(table, (int64_t)apis->count[r]);
	sql_cell(table, total / (double)apis->count[r], 1);
	sql_cell(table, (double)apis->min_ns[r], 1);
	sql_cell(table, apis->q1_ns[r], 1);
	sql_cell(table, apis->median_ns[r], 1);
	sql_cell(table, apis->q3_ns[r], 1);
	sql_cell(table, (double)apis->max_ns[r], 1);
	sql_cell(table, apis->std_ns[r], 1);
	np_cell_int(table, rank);
}

static bool rank_rows(struct np_cluster *cluster, size_t rank, struct np_table *table)
{
	const struct np_digest_cann_apis *apis =
		NP_DIGEST_ROWS(&cluster->ranks.v[rank], np_digest_cann_apis);
	struct order *order = np_realloc(NULL, apis->n + 1, sizeof *order);
	double all_ns = 0;
	for (size_t i = 0; order && i < apis->n; i++) {
		order[i] = (struct order){apis->total_ns[i], i,
		                          np_cluster_text(cluster, apis->name[i])};
		all_ns += (double)apis->total_ns[i];
	}
	if (order && apis->n > 1)
		qsort(order, apis->n, sizeof *order, by_total);
	for (size_t i = 0; order && i < apis->n; i++)
		rank_row(apis, &order[i], all_ns, cluster->ranks.v[rank].rank, table);
	np_free(order);
	return order != NULL;
}

/* ── one row per name ── */

static const struct np_column all_columns[] = {
	{"name", "", NP_COL_TEXT, "call of CANN"},
	{"timeRatio", "", NP_COL_REAL, "share of all calls of all ranks, percent"},
	{"totalTimeNs", "", NP_COL_INT, "sum"},
	{"totalCount", "", NP_COL_INT, "how many"},
	{"averageNs", "", NP_COL_REAL, "mean"},
	{"Q1Ns", "", NP_COL_REAL, "smallest first quartile of a rank"},
	{"medNs", "", NP_COL_REAL, "median of the ranks' medians"},
	{"Q3Ns", "", NP_COL_REAL, "largest third quartile of a rank"},
	{"minNs", "", NP_COL_REAL, "shortest"},
	{"maxNs", "", NP_COL_REAL, "longest"},
	{"stdev", "", NP_COL_REAL, "standard deviation of all (n), ns"},
	{"minRank", "", NP_COL_TEXT, "ranks with the shortest"},
	{"maxRank", "", NP_COL_TEXT, "ranks with the longest"},
};

/* A row of one rank's digest, and the sums over the rows of a name. */
struct source {
	const struct np_digest_cann_apis *apis;
	uint32_t rank, row;
};

struct total {
	const struct source *sources; /* of this name, n of them, in order of rank */
	size_t n;
	np_str name;
	uint64_t count;
	int64_t total, min, max;
	double q1, median, q3, std;
};

/*
 * Of the ranks' own deviations: exactly that of all calls. The official tool weighs
 * deviations that were divided by n as if they had been by n - 1.
 */
static double pooled_std(const struct total *self, bool compat)
{
	double mean = (double)self->total / (double)self->count, squares = 0;
	for (size_t i = 0; i < self->n; i++) {
		const struct np_digest_cann_apis *apis = self->sources[i].apis;
		uint32_t r = self->sources[i].row;
		double n = (double)apis->count[r], std = apis->std_ns[r];
		double own = (double)apis->total_ns[r] / n;
		if (compat) { /* which has the rounded figures of a rank only */
			std = round_half_away(std, 1);
			own = round_half_away(own, 1);
		}
		double off = own - mean;
		squares += (compat ? n - 1 : n) * std * std + n * off * off;
	}
	if (self->n == 1)
		return self->sources->apis->std_ns[self->sources->row];
	return sqrt(squares / ((double)self->count - (compat ? 1 : 0)));
}

static void add_source(struct total *self, const struct source *source)
{
	const struct np_digest_cann_apis *apis = source->apis;
	uint32_t r = source->row;
	bool first = self->count == 0;
	self->count += apis->count[r];
	self->total = apis->total_ns[r] > INT64_MAX - self->total ? INT64_MAX
	                                                          : self->total + apis->total_ns[r];
	self->min = first || apis->min_ns[r] < self->min ? apis->min_ns[r] : self->min;
	self->max = first || apis->max_ns[r] > self->max ? apis->max_ns[r] : self->max;
	self->q1 = first || apis->q1_ns[r] < self->q1 ? apis->q1_ns[r] : self->q1;
	self->q3 = first || apis->q3_ns[r] > self->q3 ? apis->q3_ns[r] : self->q3;
}

static void ranks_cell(const struct np_cluster *cluster, const struct total *self, bool max,
                       struct np_table *table)
{
	struct np_buf list = {0};
	for (size_t i = 0; i < self->n; i++) {
		const struct source *source = &self->sources[i];
		int64_t value =
			max ? source->apis->max_ns[source->row] : source->apis->min_ns[source->row];
		if (value == (max ? self->max : self->min))
			np_buf_printf(&list, "%s%lld", list.len > 0 ? ", " : "",
			              (long long)cluster->ranks.v[source->rank].rank);
	}
	np_cell_text(table, np_buf_str(&list));
	np_buf_release(&list);
}

static void all_row(const struct np_cluster *cluster, const struct total *self, double all_ns,
                    struct np_table *table)
{
	np_cell_text(table, self->name);
	rounded_cell(table, all_ns > 0 ? (double)self->total / all_ns * 100 : 0);
	np_cell_int(table, self->total);
	np_cell_int(table, (int64_t)self->count);
	rounded_cell(table, (double)self->total / (double)self->count);
	rounded_cell(table, self->q1);
	rounded_cell(table, self->median);
	rounded_cell(table, self->q3);
	rounded_cell(table, (double)self->min);
	rounded_cell(table, (double)self->max);
	rounded_cell(table, self->std);
	ranks_cell(cluster, self, false, table);
	ranks_cell(cluster, self, true, table);
}

static int totals_by_time(const void *a, const void *b)
{
	const struct total *x = a, *y = b;
	if (x->total != y->total)
		return x->total < y->total ? 1 : -1;
	return np_str_cmp(x->name, y->name);
}

/* All rows of all ranks: names, and where they are. */
struct all {
	size_t n;
	uint32_t *name;
	struct source *sources, *grouped;
	double *medians;
};

static bool collect(const struct np_cluster *cluster, struct all *self)
{
	size_t n = 0;
	for (size_t r = 0; r < cluster->ranks.n; r++)
		n += NP_DIGEST_ROWS(&cluster->ranks.v[r], np_digest_cann_apis)->n;
	*self = (struct all){.name = np_realloc(NULL, n + 1, sizeof *self->name),
	                     .sources = np_realloc(NULL, n + 1, sizeof *self->sources),
	                     .grouped = np_realloc(NULL, n + 1, sizeof *self->grouped),
	                     .medians = np_realloc(NULL, n + 1, sizeof *self->medians)};
	if (!self->name || !self->sources || !self->grouped || !self->medians)
		return false;
	for (size_t r = 0; r < cluster->ranks.n; r++) {
		const struct np_digest_cann_apis *apis =
			NP_DIGEST_ROWS(&cluster->ranks.v[r], np_digest_cann_apis);
		for (size_t i = 0; i < apis->n; i++, self->n++) {
			self->name[self->n] = apis->name[i];
			self->sources[self->n] = (struct source){apis, (uint32_t)r, (uint32_t)i};
		}
	}
	return true;
}

static void sum_up(const struct np_cluster *cluster, struct all *all,
                   const struct np_groups *groups, size_t g, struct total *out)
{
	size_t from = groups->start[g], n = np_group_size(groups, g);
	*out = (struct total){.sources = &all->grouped[from],
	                      .n = n,
	                      .name = np_cluster_text(cluster, all->name[np_group_row(groups, g)])};
	for (size_t i = 0; i < n; i++) {
		const struct source *source = &all->sources[groups->order[from + i]];
		all->grouped[from + i] = *source;
		all->medians[i] = source->apis->median_ns[source->row];
		add_source(out, source);
	}
	out->median = np_median_f64(all->medians, n);
	out->std = pooled_std(out, cluster->options->compat);
}

static bool all_rows(struct np_cluster *cluster)
{
	struct all all;
	struct np_groups groups = {0};
	bool ok = collect(cluster, &all);
	const uint32_t *const keys[] = {all.name};
	ok = ok && np_group_rows(all.n, keys, 1, &groups);
	struct total *totals = ok ? np_realloc(NULL, groups.n + 1, sizeof *totals) : NULL;
	struct np_table *table = NP_REPORT_TABLE(cluster->report, "CannApiSum",
	                                         "Calls of CANN by name", all_columns);
	double all_ns = 0;
	for (size_t g = 0; totals && g < groups.n; g++) {
		sum_up(cluster, &all, &groups, g, &totals[g]);
		all_ns += (double)totals[g].total;
	}
	if (totals && groups.n > 1)
		qsort(totals, groups.n, sizeof *totals, totals_by_time);
	for (size_t g = 0; totals && g < groups.n; g++)
		all_row(cluster, &totals[g], all_ns, table);
	np_free(totals);
	np_groups_release(&groups);
	np_free(all.name);
	np_free(all.sources);
	np_free(all.grouped);
	np_free(all.medians);
	return totals != NULL;
}

static enum np_status reduce(struct np_cluster *cluster, const struct np_recipe *self,
                             struct np_err *err)
{
	bool any = false, *has = np_calloc(cluster->ranks.n + 1, sizeof *has);
	for (size_t r = 0; has && r < cluster->ranks.n; r++) {
		const struct np_cluster_rank *rank = &cluster->ranks.v[r];
		bool rows = NP_DIGEST_ROWS(rank, np_digest_cann_apis)->n > 0;
		has[r] = rows || !rank->digest;
		any |= rows;
	}
	bool ok = has != NULL;
	if (ok && !any) {
		np_cluster_nothing(cluster, self, "no rank has recorded calls of CANN");
	} else if (ok) {
		np_cluster_lacking(cluster, self, has, "trace_view.json or CANN_API");
		ok = all_rows(cluster);
		struct np_table *table =
			NP_REPORT_TABLE(cluster->report, "CannApiSumRank",
		                        "Calls of CANN by name and rank", rank_columns);
		for (size_t r = 0; ok && r < cluster->ranks.n; r++)
			ok = rank_rows(cluster, r, table);
	}
	np_free(has);
	return ok ? NP_OK : np_err_nomem(err);
}

static const struct np_part *const parts[] = {&part, NULL};

static const struct np_recipe_file files[] = {
	{.table = "CannApiSum", .csv = "all_stats.csv", .n_index = 1, .also_ns = "stdev"},
	{.table = "CannApiSumRank", .csv = "rank_stats.csv", .also_ns = "stdev"},
	{.table = NULL},
};

const struct np_recipe np_recipe_cann_api_sum = {
	.name = "cann_api_sum",
	.dir = "CannApiSum",
	.summary = NP_N("calls of CANN on the host by name and rank"),
	.parts = parts,
	.reduce = reduce,
	.files = files,
};
