/*
 * mstx_sum (cluster_and_advisor.md §2.21): durations between marks and of ranges of mstx
 * in the framework, in CANN and on the device, per rank and over all ranks.
 */
#include <math.h>
#include <stdlib.h>

#include "cluster/grouping.h"
#include "cluster/internal.h"
#include "cluster/parts.h"
#include "cluster/rank_book.h"
#include "cluster/stats.h"

enum level { FRAMEWORK, CANN, DEVICE, N_LEVELS };
enum { LONE_SHOWN = 8 };

struct mark {
	int64_t ns[N_LEVELS];   /* NP_NO_I64: unknown */
	double ratio[N_LEVELS]; /* percent of the rank's total */
	int64_t step;
	np_id name;
	uint32_t rank; /* row of the cluster */
	uint32_t row;  /* of the rank's digest */
};

struct sum {
	struct np_cluster *cluster;
	size_t n;
	struct mark *marks;
	bool compat;
};

static const struct np_digest_mstx *rows_of(const struct np_cluster *cluster, size_t rank)
{
	return NP_DIGEST_ROWS(&cluster->ranks.v[rank], np_digest_mstx);
}

/* ── marks of all ranks ── */

static void add_rank(struct sum *self, size_t rank)
{
	const struct np_digest_mstx *rows = rows_of(self->cluster, rank);
	int64_t total[N_LEVELS] = {0};
	for (size_t i = 0; i < rows->n; i++) {
		struct mark *mark = &self->marks[self->n + i];
		*mark = (struct mark){
			.ns = {rows->framework_ns[i], rows->cann_ns[i], rows->device_ns[i]},
			.step = rows->step[i],
			.name = rows->name[i],
			.rank = (uint32_t)rank,
			.row = (uint32_t)i};
		for (size_t l = 0; l < N_LEVELS; l++)
			total[l] += mark->ns[l] != NP_NO_I64 ? mark->ns[l] : 0;
	}
	for (size_t i = 0; i < rows->n; i++)
		for (size_t l = 0; l < N_LEVELS; l++) {
			struct mark *mark = &self->marks[self->n + i];
			mark->ratio[l] = mark->ns[l] == NP_NO_I64 ? NAN
			                 : total[l] == 0
			                         ? 0
			                         : (double)mark->ns[l] / (double)total[l] * 100;
		}
	self->n += rows->n;
}

static int by_ratio(const void *a, const void *b)
{
	const struct mark *x = a, *y = b;
	if (x->ratio[CANN] != y->ratio[CANN])
		return x->ratio[CANN] > y->ratio[CANN] ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return (x->row > y->row) - (x->row < y->row);
}

static bool collect(struct np_cluster *cluster, struct sum *self)
{
	size_t n = 0;
	for (size_t r = 0; r < cluster->ranks.n; r++)
		n += rows_of(cluster, r)->n;
	*self = (struct sum){.cluster = cluster,
	                     .marks = np_calloc(n + 1, sizeof *self->marks),
	                     .compat = cluster->options->compat};
	for (size_t r = 0; self->marks && r < cluster->ranks.n; r++)
		add_rank(self, r);
	if (self->marks && n > 0)
		qsort(self->marks, n, sizeof *self->marks, by_ratio);
	return self->marks != NULL;
}

static const struct np_column mark_columns[] = {
	{"index", "", NP_COL_INT, "place in the order"},
	{"Name", "", NP_COL_TEXT, "of the marks without _start and _stop; of the range"},
	{"FrameworkDurationNs", "", NP_COL_REAL, "between the operators that set the marks"},
	{"FrameworkDurationRatio(%)", "", NP_COL_REAL, "share of the rank's total"},
	{"CannDurationNs", "", NP_COL_REAL, "on the host"},
	{"CannDurationRatio(%)", "", NP_COL_REAL, "share of the rank's total"},
	{"DeviceDurationNs", "", NP_COL_REAL, "on the stream"},
	{"DeviceDurationRatio(%)", "", NP_COL_REAL, "share of the rank's total"},
	{"Rank", "", NP_COL_INT, "rank"},
	{"StepId", "", NP_COL_INT, "step, 0 outside every step"},
};

static void mark_table(const struct sum *self)
{
	struct np_table *table = NP_REPORT_TABLE(self->cluster->report, "MSTXMarkStats",
	                                         "Marks and ranges of mstx", mark_columns);
	for (size_t i = 0; i < self->n; i++) {
		const struct mark *mark = &self->marks[i];
		np_cell_int(table, (int64_t)i);
		np_cell_text(table, np_cluster_text(self->cluster, mark->name));
		for (size_t l = 0; l < N_LEVELS; l++) {
			np_cell_real(table, mark->ns[l] == NP_NO_I64 ? NAN : (double)mark->ns[l]);
			np_cell_real(table, mark->ratio[l]);
		}
		np_cell_int(table, self->cluster->ranks.v[mark->rank].rank);
		np_cell_int(table, mark->step);
	}
}

/* ── over all ranks ── */

struct summary {
	struct np_describe d;
	double dispersion;
	int64_t step;
	np_str name;
	const struct mark *min, *max;
};

static int by_dispersion(const void *a, const void *b)
{
	const struct summary *x = a, *y = b;
	if (x->step != y->step)
		return x->step < y->step ? -1 : 1;
	if (x->dispersion != y->dispersion)
		return x->dispersion > y->dispersion ? -1 : 1;
	return np_str_cmp(x->name, y->name);
}

/* The lowest rank of several, with compat the first in order of the ratio. */
static bool takes_over(const struct sum *self, const struct mark *mark, const struct mark *best,
                       int64_t a, int64_t b)
{
	return !best || a < b || (a == b && !self->compat && mark->rank < best->rank);
}

/* false: no value is known. */
static bool summarize(const struct sum *self, const struct np_groups *groups, size_t g,
                      enum level level, int64_t *values, struct summary *out)
{
	size_t n = 0;
	*out = (struct summary){0};
	for (size_t i = groups->start[g]; i < groups->start[g + 1]; i++) {
		const struct mark *mark = &self->marks[groups->order[i]];
		int64_t ns = mark->ns[level];
		if (ns == NP_NO_I64)
			continue;
		values[n++] = ns;
		if (takes_over(self, mark, out->min, ns, out->min ? out->min->ns[level] : 0))
			out->min = mark;
		if (takes_over(self, mark, out->max, -ns, out->max ? -out->max->ns[level] : 0))
			out->max = mark;
	}
	if (n == 0)
		return false;
	np_describe_i64(values, n, &out->d);
	const struct mark *first = &self->marks[np_group_row(groups, g)];
	out->step = first->step;
	out->name = np_cluster_text(self->cluster, first->name);
	out->dispersion = out->d.sum != 0 ? (out->d.max - out->d.q3) / out->d.sum * 100 : 0;
	return true;
}

static const struct np_column all_columns[] = {
	{"Name", "", NP_COL_TEXT, "of the marks, of the range"},
	{"Count", "", NP_COL_REAL, "how many"},
	{"MeanNs", "", NP_COL_REAL, "mean"},
	{"StdNs", "", NP_COL_REAL, "standard deviation of the sample (n - 1)"},
	{"MinNs", "", NP_COL_REAL, "smallest"},
	{"MinRank", "", NP_COL_INT, "rank with the smallest"},
	{"Q1Ns", "", NP_COL_REAL, "first quartile, linear interpolation"},
	{"MedianNs", "", NP_COL_REAL, "median"},
	{"Q3Ns", "", NP_COL_REAL, "third quartile"},
	{"MaxNs", "", NP_COL_REAL, "largest"},
	{"MaxRank", "", NP_COL_INT, "rank with the largest"},
	{"SumNs", "", NP_COL_REAL, "sum"},
	{"Dispersion(%)", "", NP_COL_REAL, "(max - Q3) / sum"},
	{"StepId", "", NP_COL_INT, "step, 0 outside every step"},
};

static void summary_row(const struct sum *self, const struct summary *s, struct np_table *table)
{
	/* where nothing took any time the official tool names rank 0 */
	bool zero = self->compat && s->d.min == 0 && s->d.max == 0;
	np_cell_text(table, s->name);
	np_cell_real(table, (double)s->d.n);
	np_cell_real(table, s->d.mean);
	np_cell_real(table, s->d.std);
	np_cell_real(table, s->d.min);
	np_cell_int(table, zero ? 0 : self->cluster->ranks.v[s->min->rank].rank);
	np_cell_real(table, s->d.q1);
	np_cell_real(table, s->d.median);
	np_cell_real(table, s->d.q3);
	np_cell_real(table, s->d.max);
	np_cell_int(table, zero ? 0 : self->cluster->ranks.v[s->max->rank].rank);
	np_cell_real(table, s->d.sum);
	np_cell_real(table, s->dispersion);
	np_cell_int(table, s->step);
}

static bool level_table(const struct sum *self, const struct np_groups *groups, enum level level)
{
	static const struct {
		const char *id, *title;
	} names[] = {
		{"MSTXAllFrameworkStats", "Marks by step: framework"},
		{"MSTXAllCannStats", "Marks by step: host"},
		{"MSTXAllDeviceStats", "Marks by step: device"},
	};
	struct summary *all = np_calloc(groups->n + 1, sizeof *all);
	int64_t *values = np_calloc(self->n + 1, sizeof *values);
	size_t n = 0;
	for (size_t g = 0; all && values && g < groups->n; g++)
		n += summarize(self, groups, g, level, values, &all[n]);
	if (all && values && n > 0) {
		struct np_table *table = NP_REPORT_TABLE(self->cluster->report, names[level].id,
		                                         names[level].title, all_columns);
		qsort(all, n, sizeof *all, by_dispersion);
		for (size_t i = 0; i < n; i++)
			summary_row(self, &all[i], table);
	}
	bool ok = all && values;
	np_free(all);
	np_free(values);
	return ok;
}

static bool level_tables(const struct sum *self)
{
	uint32_t *keys[3];
	bool ok = true;
	for (size_t k = 0; k < 3; k++)
		ok &= (keys[k] = np_calloc(self->n + 1, sizeof *keys[k])) != NULL;
	for (size_t i = 0; ok && i < self->n; i++) {
		keys[0][i] = (uint32_t)self->marks[i].step;
		keys[1][i] = (uint32_t)((uint64_t)self->marks[i].step >> 32);
		keys[2][i] = self->marks[i].name;
	}
	const uint32_t *const columns[] = {keys[0], keys[1], keys[2]};
	struct np_groups groups = {0};
	ok = ok && np_group_rows(self->n, columns, 3, &groups);
	for (enum level level = FRAMEWORK; ok && level < N_LEVELS; level++)
		ok = level_table(self, &groups, level);
	np_groups_release(&groups);
	for (size_t k = 0; k < 3; k++)
		np_free(keys[k]);
	return ok;
}

/* ── what is missing ── */

static void tell_lone(struct np_cluster *cluster)
{
	size_t n = 0, ranks = 0;
	for (size_t r = 0; r < cluster->ranks.n; r++) {
		size_t here = NP_DIGEST_ROWS(&cluster->ranks.v[r], np_digest_mstx_lone)->n;
		n += here;
		ranks += here > 0;
	}
	if (n == 0)
		return;
	struct np_finding *finding = np_report_finding(
		cluster->report, "CLUSTER_MSTX_UNMATCHED", NP_WARNING,
		"%zu marks of mstx on %zu ranks have no partner and are left out", n, ranks);
	size_t shown = 0;
	for (size_t r = 0; r < cluster->ranks.n && shown < LONE_SHOWN; r++) {
		const struct np_digest_mstx_lone *lone =
			NP_DIGEST_ROWS(&cluster->ranks.v[r], np_digest_mstx_lone);
		for (size_t i = 0; i < lone->n && shown < LONE_SHOWN; i++, shown++)
			np_finding_evidence(finding, cluster->ranks.v[r].capture->path, NULL, NULL,
			                    "rank %lld: %.*s", (long long)cluster->ranks.v[r].rank,
			                    NP_FMT(np_cluster_text(cluster, lone->message[i])));
	}
}

static bool tell_missing(const struct sum *self, const struct np_recipe *recipe)
{
	struct np_cluster *cluster = self->cluster;
	bool *has = np_calloc(cluster->ranks.n + 1, sizeof *has);
	size_t unknown = 0;
	for (size_t i = 0; has && i < self->n; i++) {
		has[self->marks[i].rank] = true;
		unknown += self->marks[i].ns[FRAMEWORK] == NP_NO_I64;
	}
	if (has)
		np_cluster_lacking(cluster, recipe, has, "marks or ranges of mstx on a stream");
	if (unknown > 0)
		np_report_note(cluster->report,
		               "mstx_sum: of %zu of %zu marks the framework's time is not "
		               "recorded (databases with PYTORCH_API have it)",
		               unknown, self->n);
	np_free(has);
	return has != NULL;
}

static enum np_status reduce(struct np_cluster *cluster, const struct np_recipe *recipe,
                             struct np_err *err)
{
	struct sum self;
	bool ok = collect(cluster, &self);
	if (ok && self.n == 0)
		np_cluster_nothing(cluster, recipe,
		                   "no rank has marks x_start and x_stop, or ranges on a stream");
	if (ok)
		tell_lone(cluster);
	if (ok && self.n > 0) {
		mark_table(&self);
		ok = level_tables(&self) && tell_missing(&self, recipe);
	}
	np_free(self.marks);
	return ok ? NP_OK : np_err_nomem(err);
}

static const struct np_part *const parts[] = {&np_part_mstx_times, NULL};

static const struct np_recipe_file files[] = {
	{.table = "MSTXMarkStats", .n_index = 1}, /* its csv: see export() */
	{.table = "MSTXAllFrameworkStats",
         .csv = "all_fwk_stats.csv",
         .n_index = 1,
         .ns_divisor = 1e6},
	{.table = "MSTXAllCannStats", .csv = "all_cann_stats.csv", .n_index = 1, .ns_divisor = 1e6},
	{.table = "MSTXAllDeviceStats",
         .csv = "all_device_stats.csv",
         .n_index = 1,
         .ns_divisor = 1e6},
	{.table = NULL},
};

/* mark_stats.csv has no column for the place. */
static enum np_status export(struct np_cluster *cluster, const struct np_recipe *self,
                             struct np_export *out, struct np_err *err) {
	static const struct np_recipe_file file = {.ns_divisor = 1e6};
	const struct np_table *all = np_export_table(cluster, "MSTXMarkStats");
	if (out->type != NP_EXPORT_TEXT || !all) return NP_OK;
	struct np_report *report = np_report_new(""); if (!report) return np_err_nomem(err);
	struct np_table *table = np_report_table(report, "mark_stats", "", mark_columns + 1,
	                                         all->n_columns - 1);
	for (size_t r = 0; r < np_table_rows(all); r++) np_export_copy_cells(all, r, 1, table);
	struct np_buf text = {.max_bytes = SIZE_MAX / 4}; np_export_csv(table, &file, &text);
	enum np_status status = np_report_ok(report, err); const char *path = NULL;
	if (status == NP_OK){path = np_export_path(out, self->dir, "mark_stats.csv", err);
	                     status = path  ? np_export_write(path, &text, err)
	                              : err ? err->code
	                                    : NP_E_IO;}
np_buf_release(&text);
np_report_free(report);
return status;
}

const struct np_recipe np_recipe_mstx_sum = {
	.name = "mstx_sum",
	.dir = "MstxSum",
	.summary = NP_N("time between marks and of ranges of mstx"),
	.parts = parts,
	.reduce = reduce,
	.files = files,
	.export = export,
};
