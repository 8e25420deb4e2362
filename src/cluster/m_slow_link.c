/*
 * slow_link (cluster_and_advisor.md §2.12): collectives that moved the same amount of data
 * between as many ranks, and took longer than the others.
 *
 * The transfer of a collective is what its last rank, which waits for nobody, needs: the
 * shortest of its durations. The official test (three sigma over all rows) cannot fire for
 * ten rows or fewer, and one outlier raises the sigma that hides it; so collectives are
 * also judged against the median of their like, by its median absolute deviation
 * (diagnosis_methods.md §3).
 */
#include <math.h>
#include <stdlib.h>

#include "cluster/calls.h"
#include "cluster/internal.h"
#include "cluster/stats.h"

enum { DEFAULT_TOP = 15, MIN_LIKE = 3, TOLD_GROUPS = 5 };

static const double SIGMAS = 3, ROBUST_Z = 3.5, ROBUST_RATIO = 1.3;
static const double MAD_TO_SIGMA = 1.4826; /* of a normal distribution */

struct outlier {
	size_t instance;
	double median, ratio, z; /* z: NaN where the others are all equal */
};

struct judging {
	struct np_cluster *cluster;
	struct np_calls calls;
	struct np_groups instances; /* same collective */
	struct np_groups like;      /* calls of the same type, size and number of ranks */
	int64_t *transmit;          /* per call: of its collective */
	uint32_t *related, *last;   /* per call: ranks of the collective; its last call */
	uint32_t *size_low, *size_high, *instance; /* per call, for grouping */
	int64_t *values;
	double *reals;
	NP_VEC(struct outlier) outliers;
	size_t judged, unknown_size;
};

static void release(struct judging *self)
{
	np_groups_release(&self->instances);
	np_groups_release(&self->like);
	np_calls_release(&self->calls);
	np_free(self->transmit);
	np_free(self->related);
	np_free(self->last);
	np_free(self->size_low);
	np_free(self->size_high);
	np_free(self->instance);
	np_free(self->values);
	np_free(self->reals);
	np_vec_release(&self->outliers);
}

static bool reserve(struct judging *self)
{
	size_t n = self->calls.n + 1;
	self->transmit = np_realloc(NULL, n, sizeof *self->transmit);
	self->related = np_realloc(NULL, n, sizeof *self->related);
	self->last = np_realloc(NULL, n, sizeof *self->last);
	self->size_low = np_realloc(NULL, n, sizeof *self->size_low);
	self->size_high = np_realloc(NULL, n, sizeof *self->size_high);
	self->instance = np_realloc(NULL, n, sizeof *self->instance);
	self->values = np_realloc(NULL, n, sizeof *self->values);
	self->reals = np_realloc(NULL, n, sizeof *self->reals);
	return self->transmit && self->related && self->last && self->size_low && self->size_high &&
	       self->instance && self->values && self->reals;
}

static void relate(struct judging *self, size_t instance)
{
	const uint32_t *rows = &self->instances.order[self->instances.start[instance]];
	size_t n = np_group_size(&self->instances, instance);
	uint32_t last = rows[0];
	for (size_t i = 1; i < n; i++)
		last = self->calls.dur[rows[i]] < self->calls.dur[last] ? rows[i] : last;
	for (size_t i = 0; i < n; i++) {
		uint32_t row = rows[i];
		uint64_t size = (uint64_t)self->calls.size[row];
		self->transmit[row] = self->calls.dur[last];
		self->related[row] = (uint32_t)n;
		self->last[row] = last;
		self->instance[row] = (uint32_t)instance;
		self->size_low[row] = (uint32_t)size;
		self->size_high[row] = (uint32_t)(size >> 32);
		self->unknown_size += self->calls.size[row] == NP_NO_I64;
	}
}

static bool prepare(struct judging *self)
{
	bool compat = self->cluster->options->compat;
	const struct np_calls_filter filter = {.by_step = !compat, .collectives = true};
	if (!np_calls_collect(self->cluster, &filter, &self->calls) ||
	    !np_calls_instances(&self->calls, compat, &self->instances) || !reserve(self))
		return false;
	for (size_t i = 0; i < self->instances.n; i++)
		relate(self, i);
	const uint32_t *const keys[] = {self->calls.type, self->size_low, self->size_high,
	                                self->related};
	return np_group_rows(self->calls.n, keys, 4, &self->like);
}

/* ── the official test ── */

struct sum {
	size_t group;
	struct np_describe d;
	double offset;
	uint32_t max, min; /* calls */
	bool kept;
};

static void sum_up(const struct judging *self, struct sum *out)
{
	const uint32_t *rows = &self->like.order[self->like.start[out->group]];
	size_t n = np_group_size(&self->like, out->group);
	out->max = out->min = rows[0];
	for (size_t i = 0; i < n; i++) {
		self->values[i] = self->transmit[rows[i]];
		out->max = self->transmit[rows[i]] > self->transmit[out->max] ? rows[i] : out->max;
		out->min = self->transmit[rows[i]] < self->transmit[out->min] ? rows[i] : out->min;
	}
	np_describe_i64(self->values, n, &out->d);
	double above = out->d.max - out->d.mean, below = out->d.mean - out->d.min;
	double farthest = above > below ? above : below;
	double pop = n > 1 ? out->d.std * sqrt((double)(n - 1) / (double)n) : 0;
	out->kept = pop > 0 && farthest > SIGMAS * pop && self->calls.size[rows[0]] != NP_NO_I64;
	out->offset = farthest / out->d.std;
}

static int by_offset(const void *a, const void *b)
{
	const struct sum *x = a, *y = b;
	if (x->offset != y->offset)
		return x->offset < y->offset ? 1 : -1;
	return (x->group > y->group) - (x->group < y->group);
}

static const struct np_column sum_columns[] = {
	{"opTypeRelatedRanksDataSize", "", NP_COL_TEXT, "type, number of ranks, bytes"},
	{"Count", "", NP_COL_INT, "operations of all ranks"},
	{"MeanNs", "", NP_COL_REAL, "mean of their transfer times"},
	{"StdNs", "", NP_COL_REAL, "standard deviation of the sample (n - 1)"},
	{"MinNs", "", NP_COL_INT, "shortest"},
	{"Q1Ns", "", NP_COL_REAL, "first quartile, linear interpolation"},
	{"MedianNs", "", NP_COL_REAL, "median"},
	{"Q3Ns", "", NP_COL_REAL, "third quartile"},
	{"MaxNs", "", NP_COL_INT, "longest"},
	{"SumNs", "", NP_COL_INT, "sum"},
	{"offsetRatio", "", NP_COL_REAL, "farthest from the mean, in standard deviations"},
	{"maxRank", "", NP_COL_INT, "last rank of the collective with the longest transfer"},
	{"minRank", "", NP_COL_INT, "last rank of the collective with the shortest transfer"},
};

/* Every rank of a collective has its transfer time: the one that measured it is meant. The
 * official tool gives the first one it meets. */
static int64_t extreme_rank(const struct judging *self, uint32_t row)
{
	return np_calls_rank(&self->calls, self->cluster->options->compat ? row : self->last[row]);
}

static void sum_row(const struct judging *self, const struct sum *sum, struct np_table *table)
{
	uint32_t row = np_group_row(&self->like, sum->group);
	np_str type = np_cluster_text(self->cluster, self->calls.type[row]);
	np_cell_printf(table, "%.*s%u_%lld", NP_FMT(type), self->related[row],
	               (long long)self->calls.size[row]);
	np_cell_int(table, (int64_t)sum->d.n);
	np_cell_real(table, sum->d.mean);
	np_cell_real(table, sum->d.std);
	np_cell_int(table, self->transmit[sum->min]);
	np_cell_real(table, sum->d.q1);
	np_cell_real(table, sum->d.median);
	np_cell_real(table, sum->d.q3);
	np_cell_int(table, self->transmit[sum->max]);
	np_cell_int(table, (int64_t)sum->d.sum);
	np_cell_real(table, sum->offset);
	np_cell_int(table, extreme_rank(self, sum->max));
	np_cell_int(table, extreme_rank(self, sum->min));
}

static const struct np_column op_columns[] = {
	{"rankId", "", NP_COL_INT, "rank"},
	{"groupName", "", NP_COL_TEXT, "communicator"},
	{"communicationTime", "ns", NP_COL_INT, "duration on this rank"},
	{"opName", "", NP_COL_TEXT, "name of the collective"},
	{"opType", "", NP_COL_TEXT, "its type"},
	{"dataType", "", NP_COL_TEXT, "data type"},
	{"dataSize", "bytes", NP_COL_INT, "payload"},
	{"transmitTime", "ns", NP_COL_INT, "shortest duration of its ranks"},
	{"relatedRanks", "", NP_COL_INT, "number of ranks that have it"},
};

static void op_row(const struct judging *self, uint32_t row, struct np_table *table)
{
	const struct np_calls *calls = &self->calls;
	np_cell_int(table, np_calls_rank(calls, row));
	np_cell_text(table, np_calls_group(calls, row));
	np_cell_int(table, calls->dur[row]);
	np_cell_text(table, np_cluster_text(self->cluster, calls->name[row]));
	np_cell_text(table, np_cluster_text(self->cluster, calls->type[row]));
	if (calls->dtype[row] == NP_ID_NONE)
		np_cell_na(table);
	else
		np_cell_text(table, np_cluster_text(self->cluster, calls->dtype[row]));
	np_cell_int(table, calls->size[row]);
	np_cell_int(table, self->transmit[row]);
	np_cell_int(table, self->related[row]);
}

/* Returns how many groups were kept, SIZE_MAX: out of memory. */
static size_t three_sigma(struct judging *self)
{
	size_t kept = 0,
	       top = self->cluster->options->top ? self->cluster->options->top : DEFAULT_TOP;
	struct sum *sums = np_realloc(NULL, self->like.n + 1, sizeof *sums);
	if (!sums)
		return SIZE_MAX;
	for (size_t g = 0; g < self->like.n; g++) {
		sums[kept].group = g;
		sum_up(self, &sums[kept]);
		kept += sums[kept].kept;
	}
	if (kept > 1)
		qsort(sums, kept, sizeof *sums, by_offset);
	if (kept > 0) {
		struct np_table *sum_table = NP_REPORT_TABLE(
			self->cluster->report, "SlowLinkSum",
			"Collectives of one kind with outliers (three sigma)", sum_columns);
		struct np_table *op_table =
			NP_REPORT_TABLE(self->cluster->report, "SlowLinkOps",
		                        "All operations of these kinds", op_columns);
		for (size_t i = 0; i < kept && i < top; i++)
			sum_row(self, &sums[i], sum_table);
		for (size_t i = 0; i < kept; i++)
			for (size_t j = 0; j < np_group_size(&self->like, sums[i].group); j++)
				op_row(self, self->like.order[self->like.start[sums[i].group] + j],
				       op_table);
	}
	np_free(sums);
	return kept;
}

/* ── against the median ── */

/* The transfer time of each collective of a kind, once: that of its first call. (Calls of
 * one collective that differ in size are of two kinds; the first call's counts.) */
static size_t transfers(struct judging *self, size_t g, double *out)
{
	const uint32_t *rows = &self->like.order[self->like.start[g]];
	size_t n = 0;
	for (size_t i = 0; i < np_group_size(&self->like, g); i++)
		if (rows[i] == np_group_row(&self->instances, self->instance[rows[i]]))
			out[n++] = (double)self->transmit[rows[i]];
	return n;
}

static bool judge_like(struct judging *self, size_t g)
{
	const uint32_t *rows = &self->like.order[self->like.start[g]];
	size_t n = transfers(self, g, self->reals);
	if (n < MIN_LIKE || self->calls.size[rows[0]] == NP_NO_I64 || self->related[rows[0]] < 2)
		return true;
	self->judged += n;
	double median = np_median_f64(self->reals, n);
	double sigma = MAD_TO_SIGMA * np_mad_f64(self->reals, n, median);
	for (size_t i = 0; i < np_group_size(&self->like, g); i++) {
		size_t instance = self->instance[rows[i]];
		double value = (double)self->transmit[rows[i]], off = value - median;
		if (rows[i] != np_group_row(&self->instances, instance) ||
		    !(value > ROBUST_RATIO * median) || !(off > ROBUST_Z * sigma))
			continue;
		if (!np_vec_push(&self->outliers, (struct outlier){instance, median, value / median,
		                                                   sigma > 0 ? off / sigma : NAN}))
			return false;
	}
	return true;
}

static const struct np_column outlier_columns[] = {
	{"group", "", NP_COL_TEXT, "communicator"},
	{"op", "", NP_COL_TEXT, "name of the collective"},
	{"type", "", NP_COL_TEXT, "its type"},
	{"bytes", "bytes", NP_COL_INT, "payload"},
	{"ranks", "", NP_COL_INT, "number of ranks that have it"},
	{"last_rank", "", NP_COL_INT, "rank that came last, whose duration is the transfer"},
	{"transfer_ns", "ns", NP_COL_INT, "its transfer"},
	{"median_ns", "ns", NP_COL_REAL, "median transfer of its like: type, bytes, ranks"},
	{"ratio", "", NP_COL_REAL, "transfer / median"},
	{"z", "", NP_COL_REAL,
         "distance from the median over 1.4826 times the median absolute deviation; not "
         "available where all others are equal"},
};

static double excess(const struct judging *self, const struct outlier *outlier)
{
	uint32_t row = np_group_row(&self->instances, outlier->instance);
	return (double)self->transmit[row] - outlier->median;
}

static void outlier_rows(const struct judging *self)
{
	struct np_table *table =
		NP_REPORT_TABLE(self->cluster->report, "SlowLinkOutliers",
	                        "Collectives slower than their like (median)", outlier_columns);
	for (size_t i = 0; i < self->outliers.n; i++) {
		const struct outlier *outlier = &self->outliers.v[i];
		uint32_t row = np_group_row(&self->instances, outlier->instance);
		np_cell_text(table, np_calls_group(&self->calls, row));
		np_cell_text(table, np_cluster_text(self->cluster, self->calls.name[row]));
		np_cell_text(table, np_cluster_text(self->cluster, self->calls.type[row]));
		np_cell_int(table, self->calls.size[row]);
		np_cell_int(table, self->related[row]);
		np_cell_int(table, np_calls_rank(&self->calls, self->last[row]));
		np_cell_int(table, self->transmit[row]);
		np_cell_real(table, outlier->median);
		np_cell_real(table, outlier->ratio);
		np_cell_real(table, outlier->z);
	}
}

/* ── findings: one per communicator, the costliest first ── */

struct blame {
	uint32_t row; /* of one of its collectives */
	size_t n;
	double excess_ns, worst;
};

static int by_excess(const void *a, const void *b)
{
	const struct blame *x = a, *y = b;
	if (x->excess_ns != y->excess_ns)
		return x->excess_ns < y->excess_ns ? 1 : -1;
	return (x->row > y->row) - (x->row < y->row);
}

static void tell_blame(const struct judging *self, const struct blame *blame)
{
	enum { US = 1000, SHOWN = 16 };
	struct np_buf ranks = {0};
	size_t instance = self->instance[blame->row];
	const uint32_t *rows = &self->instances.order[self->instances.start[instance]];
	size_t n = np_group_size(&self->instances, instance);
	for (size_t i = 0; i < n && i < SHOWN; i++)
		np_buf_printf(&ranks, "%s%lld", i > 0 ? ", " : "",
		              (long long)np_calls_rank(&self->calls, rows[i]));
	np_buf_printf(&ranks, "%s", n > SHOWN ? ", …" : "");
	struct np_finding *finding = np_report_finding(
		self->cluster->report, "SLOW_LINK", NP_WARNING,
		"%zu collectives of ranks %.*s took up to %.2f times as long as their like",
		blame->n, NP_FMT(np_buf_str(&ranks)), blame->worst);
	np_finding_evidence(finding, NULL, "transfer_ns", "SlowLinkOutliers",
	                    "group %.*s: %.3f us more than the median, together",
	                    NP_FMT(np_calls_group(&self->calls, blame->row)),
	                    blame->excess_ns / US);
	np_finding_advice(finding, "Compare the bandwidths of this group's links "
	                           "(communication_matrix), and what else ran meanwhile.");
	np_buf_release(&ranks);
}

static bool tell_groups(struct judging *self)
{
	size_t n = self->outliers.n;
	struct np_groups groups = {0};
	uint32_t *keys = np_realloc(NULL, n + 1, sizeof *keys);
	for (size_t i = 0; keys && i < n; i++)
		keys[i] =
			self->calls
				.key[np_group_row(&self->instances, self->outliers.v[i].instance)];
	const uint32_t *const columns[] = {keys};
	bool ok = keys && np_group_rows(n, columns, 1, &groups);
	struct blame *blames = ok ? np_calloc(groups.n + 1, sizeof *blames) : NULL;
	for (size_t g = 0; blames && g < groups.n; g++)
		for (size_t i = groups.start[g]; i < groups.start[g + 1]; i++) {
			const struct outlier *outlier = &self->outliers.v[groups.order[i]];
			struct blame *blame = &blames[g];
			if (blame->n++ == 0)
				blame->row = np_group_row(&self->instances, outlier->instance);
			blame->excess_ns += excess(self, outlier);
			if (outlier->ratio > blame->worst)
				blame->worst = outlier->ratio;
		}
	if (blames)
		qsort(blames, groups.n, sizeof *blames, by_excess);
	for (size_t g = 0; blames && g < groups.n && g < TOLD_GROUPS; g++)
		tell_blame(self, &blames[g]);
	ok = blames != NULL;
	np_free(blames);
	np_free(keys);
	np_groups_release(&groups);
	return ok;
}

/* ── the mode ── */

static bool conclude(struct judging *self, const struct np_recipe *recipe)
{
	struct np_cluster *cluster = self->cluster;
	size_t kept = three_sigma(self);
	if (kept == SIZE_MAX)
		return false;
	for (size_t g = 0; !cluster->options->compat && g < self->like.n; g++)
		if (!judge_like(self, g))
			return false;
	if (self->outliers.n > 0) {
		outlier_rows(self);
		return tell_groups(self);
	}
	if (kept > 0)
		return true;
	if (self->calls.n == 0)
		np_cluster_nothing(cluster, recipe, "no rank has recorded a collective");
	else if (self->unknown_size == self->calls.n)
		np_cluster_nothing(cluster, recipe,
		                   "no collective tells how much data it moved: that is in "
		                   "communication.json, and in captures of level 1 and above");
	else if (self->judged == 0 && !cluster->options->compat)
		np_cluster_nothing(cluster, recipe,
		                   "no three collectives of the same type, size and number of "
		                   "ranks, two at least");
	else
		(void)np_report_finding(
			cluster->report, "SLOW_LINK_NONE", NP_INFO,
			"no slow link found: none of %zu collectives is slower than its like",
			cluster->options->compat ? self->instances.n : self->judged);
	return true;
}

static enum np_status reduce(struct np_cluster *cluster, const struct np_recipe *self,
                             struct np_err *err)
{
	struct judging judging = {.cluster = cluster};
	bool *has = np_calloc(cluster->ranks.n + 1, sizeof *has);
	bool ok = has && prepare(&judging);
	if (ok && judging.calls.n > 0) {
		np_calls_has(cluster, has);
		np_cluster_lacking(cluster, self, has,
		                   "communication.json, trace_view.json or COMMUNICATION_OP");
	}
	ok = ok && conclude(&judging, self);
	np_free(has);
	release(&judging);
	return ok ? NP_OK : np_err_nomem(err);
}

static const struct np_part *const parts[] = {&np_part_comm_calls, NULL};

static const struct np_recipe_file files[] = {
	{.table = "SlowLinkSum", .csv = "slow_link_sum.csv"},
	{.table = "SlowLinkOps", .csv = "slow_link_ops.csv"},
	{.table = "SlowLinkOutliers", .csv = "slow_link_outliers.csv"},
	{.table = NULL},
};

const struct np_recipe np_recipe_slow_link = {
	.name = "slow_link",
	.dir = "SlowLink",
	.summary = NP_N("collectives slower than others of their kind"),
	.parts = parts,
	.reduce = reduce,
	.files = files,
};
