/*
 * Layer 3c: what limits each operator – memory, the cube, the vector unit.
 *
 *   memory_bound = mte2_ratio / max(mac_ratio, vec_ratio)     (requirements §2.10)
 *
 * of the core that did the work. A ratio that is N/A, or a divisor of 0, is
 * "unsupported", and never 0.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "analysis/group.h"
#include "analysis/pmu.h"
#include "report/lang.h"

static const struct np_column columns[] = {
	{"type", "", NP_COL_TEXT, "operator type"},
	{"core", "", NP_COL_TEXT, "accelerator core"},
	{"count", "", NP_COL_INT, "kernels in the chosen steps"},
	{"total_ns", "us", NP_COL_DUR_NS, "sum of their durations"},
	{"share", "", NP_COL_PERCENT, "of the sum over all compute kernels"},
	{"memory_bound", "", NP_COL_REAL,
         "median of mte2_ratio / max(mac_ratio, vec_ratio); - when no kernel supports it"},
	{"bound", "", NP_COL_TEXT, "unit with the largest ratio in most of the time"},
	{"bound_share", "", NP_COL_PERCENT, "how much of the time that is"},
	{"mte2_ratio", "", NP_COL_REAL, "median"},
	{"mac_ratio", "", NP_COL_REAL, "median"},
	{"vec_ratio", "", NP_COL_REAL, "median"},
	{"scalar_ratio", "", NP_COL_REAL, "median"},
};

struct figures {
	double memory_bound, mte2, mac, vec, scalar; /* medians, NaN when unknown */
	enum np_bound bound;
	np_ns bound_ns;
	np_ns excess_ns; /* loads that computing does not hide: Σ dur * (mte2 - max(mac, vec)) */
};

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static void swap(double *a, double *b)
{
	double was = *a;
	*a = *b;
	*b = was;
}

/*
 * Put the k-th smallest at values[k]: parts less than, equal to and more than a pivot, and
 * on with the part that holds k. Should the pivots be bad, what is left is sorted.
 */
static double select_kth(double *values, size_t n, size_t k)
{
	size_t low = 0, high = n;
	for (int rounds = 0; high - low > 1 && rounds < 64; rounds++) {
		double pivot = values[low + (high - low) / 2];
		size_t less = low, at = low, more = high;
		while (at < more) {
			if (values[at] < pivot)
				swap(&values[less++], &values[at++]);
			else if (values[at] > pivot)
				swap(&values[at], &values[--more]);
			else
				at++;
		}
		if (k < less)
			high = less;
		else if (k >= more)
			low = more;
		else
			return pivot;
	}
	if (high - low > 1)
		qsort(values + low, high - low, sizeof *values, by_value);
	return values[k];
}

static double median(double *values, size_t n)
{
	if (n == 0)
		return NAN;
	double upper = select_kth(values, n, n / 2);
	return n % 2 ? upper : (select_kth(values, n, n / 2 - 1) + upper) / 2;
}

/*
 * The median of a ratio by counting: ratios are whole 1/1000, so a large group needs no sort.
 */
enum { SLOTS = 1002 };

static double ratio_median(const uint32_t *slots)
{
	size_t n = 0, seen = 0;
	for (int i = 0; i < SLOTS; i++)
		n += slots[i];
	int low = -1;
	for (int i = 0; i < SLOTS; i++) {
		seen += slots[i];
		if (low < 0 && seen * 2 >= n && seen > 0)
			low = i;
		if (low >= 0 && seen * 2 > n)
			return (low + i) / 2000.0;
	}
	return NAN;
}

static void count_ratio(uint32_t *slots, int16_t ratio)
{
	if (ratio >= 0)
		slots[ratio < SLOTS ? ratio : SLOTS - 1]++;
}

/* `scratch` has room for the group. */
static void figure(const struct np_analysis *self, const struct np_op_groups *groups,
                   const struct np_op_group *group, const struct np_pipes *pipes, double *scratch,
                   struct figures *out)
{
	uint32_t mte2[SLOTS] = {0}, mac[SLOTS] = {0}, vec[SLOTS] = {0}, scalar[SLOTS] = {0};
	np_ns by_bound[NP_N_BOUNDS] = {0};
	size_t n = 0;
	*out = (struct figures){.bound = NP_BOUND_NONE};
	for (uint32_t i = 0; i < group->n; i++) {
		uint32_t row = groups->rows[group->first + i];
		const struct np_pipes *p = &pipes[row];
		np_ns dur = self->profile->kernels.dur_ns[row];
		count_ratio(mte2, p->mte2);
		count_ratio(mac, p->mac);
		count_ratio(vec, p->vec);
		count_ratio(scalar, p->scalar);
		by_bound[p->bound] = np_ns_sum(by_bound[p->bound], dur);
		double memory_bound = np_pipes_memory_bound(p);
		if (isnan(memory_bound))
			continue;
		scratch[n++] = memory_bound;
		int more = p->mte2 - np_pipes_busy(p);
		if (more > 0)
			out->excess_ns = np_ns_sum(out->excess_ns,
			                           np_ns_permille(dur, more < 1000 ? more : 1000));
	}
	out->memory_bound = median(scratch, n);
	out->mte2 = ratio_median(mte2);
	out->mac = ratio_median(mac);
	out->vec = ratio_median(vec);
	out->scalar = ratio_median(scalar);
	for (int b = 0; b < NP_BOUND_NONE; b++) {
		if (by_bound[b] > out->bound_ns) {
			out->bound = (enum np_bound)b;
			out->bound_ns = by_bound[b];
		}
	}
}

static void put_row(struct np_table *table, const struct np_analysis *self,
                    const struct np_op_groups *groups, const struct np_op_group *group,
                    const struct figures *f)
{
	np_str core = np_text(self, self->profile->kernels.core[group->example]);
	np_cell_text(table, np_text(self, np_op_type(self, group->example)));
	np_cell_cstr(table, core.len ? core.ptr : NULL);
	np_cell_int(table, group->n);
	np_cell_int(table, group->total);
	np_cell_real(table, groups->total > 0 ? (double)group->total / (double)groups->total : 0);
	np_cell_real(table, f->memory_bound);
	np_cell_cstr(table, np_bound_name(f->bound));
	if (f->bound == NP_BOUND_NONE || group->total == 0)
		np_cell_na(table);
	else
		np_cell_real(table, (double)f->bound_ns / (double)group->total);
	np_cell_real(table, f->mte2);
	np_cell_real(table, f->mac);
	np_cell_real(table, f->vec);
	np_cell_real(table, f->scalar);
}

enum { NAMED = 4 };

/* Operators that wait for memory, summed up; those that lose most by it are named. */
struct memory_bound {
	size_t n;
	np_ns total, excess;
	struct loser {
		const struct np_op_group *group;
		np_ns excess;
	} worst[NAMED]; /* falling */
};

static void remember(struct memory_bound *to, const struct np_op_group *group,
                     const struct figures *f)
{
	size_t at = to->n < NAMED ? to->n : NAMED;
	for (; at > 0 && to->worst[at - 1].excess < f->excess_ns; at--)
		if (at < NAMED)
			to->worst[at] = to->worst[at - 1];
	if (at < NAMED)
		to->worst[at] = (struct loser){group, f->excess_ns};
	to->n++;
	to->total = np_ns_sum(to->total, group->total);
	to->excess = np_ns_sum(to->excess, f->excess_ns);
}

/* "Exp/AI_VECTOR_CORE 16051.5 us, …" */
static void name_worst(const struct np_analysis *self, const struct memory_bound *all,
                       struct np_buf *out)
{
	for (size_t i = 0; i < all->n && i < NAMED; i++) {
		const struct np_op_group *group = all->worst[i].group;
		np_str type = np_text(self, np_op_type(self, group->example));
		np_str core = np_text(self, self->profile->kernels.core[group->example]);
		np_buf_printf(out, "%s%.*s/%.*s %.1f us", i ? ", " : "", NP_FMT(type), NP_FMT(core),
		              (double)group->total / 1e3);
	}
	if (all->n > NAMED)
		np_buf_add_cstr(out, ", …");
}

static bool tell(struct np_analysis *self, const struct np_op_groups *groups,
                 const struct memory_bound *all)
{
	double share = groups->total > 0 ? (double)all->total / (double)groups->total : 0;
	if (all->n == 0 || share < self->rules->memory_bound_share)
		return true;
	struct np_buf names = {0};
	char rows[128];
	np_str worst = np_text(self, np_op_type(self, all->worst[0].group->example));
	worst = np_str_sub(worst, 0, 100);
	(void)snprintf(rows, sizeof rows, "Type = %.*s", NP_FMT(worst));
	name_worst(self, all, &names);
	if (names.failed) {
		np_buf_release(&names);
		return false;
	}
	struct np_finding *finding = np_report_finding(
		self->report, "MEMORY_BOUND_OPS", NP_INFO,
		"%zu operator type%s wait for memory: %.1f us, %.1f %% of computing; most is lost "
		"in "
		"%s",
		all->n, all->n == 1 || np_lang() != NP_LANG_EN ? "" : "s", (double)all->total / 1e3,
		share * 100, names.ptr);
	np_finding_detail(
		finding, "moving data in (mte2) takes longer than computing with it: these kernels "
			 "run at the speed of the memory, and only less traffic makes them faster");
	np_finding_evidence(finding, np_kernel_source(self), "mte2_ratio, mac_ratio, vec_ratio",
	                    rows, "median of mte2_ratio / max(mac_ratio, vec_ratio) above %g",
	                    self->rules->memory_bound);
	np_finding_impact(finding, (double)all->excess / 1e3, np_share(self, all->excess));
	np_finding_advice(finding, "fuse them with their neighbours (table fusion), drop needless "
	                           "casts and copies, use a smaller data type, or tile so that "
	                           "inputs stay in L2");
	np_buf_release(&names);
	return true;
}

static bool put_all(struct np_analysis *self, const struct np_pipes *pipes)
{
	struct np_op_groups groups;
	struct memory_bound all = {0};
	size_t n = 0;
	uint32_t *order = np_op_order(self, false, &n);
	bool ok = np_op_groups_build(self, NP_BY_TYPE, order, n, &groups);
	double *scratch = ok ? np_realloc(NULL, groups.n_rows + 1, sizeof *scratch) : NULL;
	struct np_table *table = NULL;
	ok = scratch != NULL;
	if (ok && groups.n)
		table = NP_REPORT_TABLE(self->report, "bound", "What limits the operators",
		                        columns);
	for (size_t g = 0; ok && g < groups.n; g++) {
		const struct np_op_group *group = &groups.groups[g];
		struct figures f;
		figure(self, &groups, group, pipes, scratch, &f);
		if (g < np_top(self))
			put_row(table, self, &groups, group, &f);
		if (f.memory_bound > self->rules->memory_bound && f.bound == NP_BOUND_MTE)
			remember(&all, group, &f);
	}
	ok = ok && tell(self, &groups, &all);
	np_free(scratch);
	np_free(order);
	np_op_groups_release(&groups);
	return ok;
}

void np_analyze_bound(struct np_analysis *self)
{
	struct np_pipes *pipes = np_pipes_all(self);
	if (!pipes)
		self->oom = true;
	else if (!np_pipes_known(self, pipes))
		np_report_note(
			self->report,
			"bound types: not collected; needed are the mac, vec and mte2 ratios: "
			"profiler_level Level1 or Level2 with aic_metrics PipeUtilization "
			"(msprof: --aic-metrics=PipeUtilization)");
	else if (!put_all(self, pipes))
		self->oom = true;
	np_free(pipes);
}
