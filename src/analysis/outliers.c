/*
 * Layer 4: kernels that took much longer than others of the same name and shapes.
 *
 *   fence = Q3 + 1.5 * (Q3 - Q1), at least 4 samples       (cannbot step 3)
 *
 * What they cost is their excess over the median of their group. Kernels without
 * recorded shapes are left out: of another size, another time is no surprise.
 */
#include <stdlib.h>

#include "analysis/group.h"

static const struct np_column columns[] = {
	{"name", "", NP_COL_TEXT, "kernel name"},
	{"input_shapes", "", NP_COL_TEXT, "input shapes"},
	{"count", "", NP_COL_INT, "kernels of this name and shape"},
	{"outliers", "", NP_COL_INT, "of them beyond the fence"},
	{"p50_ns", "us", NP_COL_DUR_NS, "median (nearest rank)"},
	{"fence_ns", "us", NP_COL_DUR_NS, "Q3 + outlier_iqr * (Q3 - Q1)"},
	{"max_ns", "us", NP_COL_DUR_NS, "longest"},
	{"excess_ns", "us", NP_COL_DUR_NS, "sum of (duration - median) of the outliers"},
	{"steps", "", NP_COL_TEXT, "steps they are in"},
};

struct outliers {
	uint32_t group, n; /* the last n of the group's rows */
	np_ns fence, p50, excess;
};

static int by_excess(const void *a, const void *b)
{
	const struct outliers *x = a, *y = b;
	if (x->excess != y->excess)
		return x->excess < y->excess ? 1 : -1;
	return (x->group > y->group) - (x->group < y->group);
}

/* n is 0 when the group has none. */
static struct outliers outliers_of(const struct np_analysis *self,
                                   const struct np_op_groups *groups, uint32_t g)
{
	const struct np_op_group *group = &groups->groups[g];
	struct outliers out = {.group = g};
	if (group->n < self->rules->outlier_min || np_in_shapes(self, group->example) == NP_ID_NONE)
		return out;
	np_ns q1 = np_op_quantile(self, groups, group, 0.25);
	np_ns q3 = np_op_quantile(self, groups, group, 0.75);
	double fence = (double)q3 + self->rules->outlier_iqr * (double)(q3 - q1);
	out.fence = fence < 0 ? 0 : fence < (double)NP_TIME_MAX ? (np_ns)fence : NP_TIME_MAX;
	out.p50 = np_op_quantile(self, groups, group, 0.5);
	while (out.n < group->n) {
		np_ns dur = self->profile->kernels
		                    .dur_ns[groups->rows[group->first + group->n - 1 - out.n]];
		if (dur <= out.fence || dur <= out.p50)
			break;
		out.excess = np_ns_sum(out.excess, dur - out.p50);
		out.n++;
	}
	return out;
}

static int by_id(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

/* The steps of the largest outliers, each once, in order: "12, 14, …". */
static void put_steps(struct np_table *table, const struct np_analysis *self,
                      const struct np_op_groups *groups, const struct outliers *o)
{
	enum { LISTED = 8, LOOKED_AT = 64 };
	const struct np_op_group *group = &groups->groups[o->group];
	int64_t ids[LOOKED_AT] = {0};
	size_t n = 0;
	for (uint32_t i = 0; i < o->n && i < LOOKED_AT; i++) {
		uint32_t row = groups->rows[group->first + group->n - 1 - i];
		ids[n++] = self->spans.v[self->span_of[row]].id;
	}
	qsort(ids, n, sizeof *ids, by_id);
	char text[LISTED * 24 + 8];
	size_t used = 0, listed = 0;
	for (size_t i = 0; i < n && used < sizeof text; i++) {
		if (ids[i] == NP_NO_I64 || (i > 0 && ids[i] == ids[i - 1]))
			continue;
		if (listed++ == LISTED) {
			(void)snprintf(text + used, sizeof text - used, ", …");
			break;
		}
		used += (size_t)snprintf(text + used, sizeof text - used, "%s%lld",
		                         listed > 1 ? ", " : "", (long long)ids[i]);
	}
	np_cell_cstr(table, listed ? text : NULL);
}

static void put_row(struct np_table *table, const struct np_analysis *self,
                    const struct np_op_groups *groups, const struct outliers *o)
{
	const struct np_op_group *group = &groups->groups[o->group];
	np_cell_text(table, np_text(self, self->profile->kernels.name[group->example]));
	np_cell_text(table, np_text(self, np_in_shapes(self, group->example)));
	np_cell_int(table, group->n);
	np_cell_int(table, o->n);
	np_cell_int(table, o->p50);
	np_cell_int(table, o->fence);
	np_cell_int(table, np_op_quantile(self, groups, group, 1));
	np_cell_int(table, o->excess);
	put_steps(table, self, groups, o);
}

static void tell(struct np_analysis *self, const struct np_op_groups *groups,
                 const struct outliers *worst, size_t kernels, np_ns excess)
{
	if (np_share(self, excess) <= self->rules->outlier_cost)
		return;
	uint32_t name = self->profile->kernels.name[groups->groups[worst->group].example];
	struct np_finding *finding = np_report_finding(
		self->report, "OP_OUTLIERS", NP_INFO,
		"%zu kernels took much longer than others of the same name and shape: %.1f us, "
		"%.1f %% of the span",
		kernels, (double)excess / 1e3, np_share(self, excess) * 100);
	np_finding_detail(finding,
	                  "the same work should take the same time: contention for memory, "
	                  "a drop of frequency or a cold cache makes a difference");
	np_finding_evidence(finding, np_kernel_source(self), "Duration(us)", NULL,
	                    "most in %.*s: %u of %u beyond %.1f us, median %.1f us",
	                    NP_FMT(np_text(self, name)), worst->n, groups->groups[worst->group].n,
	                    (double)worst->fence / 1e3, (double)worst->p50 / 1e3);
	np_finding_impact(finding, (double)excess / 1e3, np_share(self, excess));
	np_finding_advice(finding,
	                  "look at what ran beside them (a collective, a copy), and at the "
	                  "frequency; collect a second time to see whether it repeats");
}

void np_analyze_outliers(struct np_analysis *self)
{
	struct np_op_groups groups;
	NP_VEC(struct outliers) found = {0};
	np_ns excess = 0;
	size_t kernels = 0;
	size_t n = 0;
	if (!np_has_shapes(self)) {
		np_report_note(self->report, "outliers: input shapes were not collected; needed is "
		                             "profiler_level Level1 or Level2");
		return;
	}
	uint32_t *order = np_op_order(self, true, &n);
	bool ok = np_op_groups_build(self, NP_BY_NAME_SHAPE, order, n, &groups);
	for (size_t g = 0; ok && g < groups.n; g++) {
		struct outliers one = outliers_of(self, &groups, (uint32_t)g);
		if (one.n == 0)
			continue;
		ok = np_vec_push(&found, one);
		kernels += one.n;
		excess = np_ns_sum(excess, one.excess);
	}
	if (ok && found.n) {
		qsort(found.v, found.n, sizeof *found.v, by_excess);
		struct np_table *table = NP_REPORT_TABLE(self->report, "outliers",
		                                         "Kernels that took too long", columns);
		for (size_t i = 0; i < found.n && i < np_top(self); i++)
			put_row(table, self, &groups, &found.v[i]);
		tell(self, &groups, &found.v[0], kernels, excess);
	}
	np_vec_release(&found);
	np_free(order);
	np_op_groups_release(&groups);
	self->oom = self->oom || !ok;
}
