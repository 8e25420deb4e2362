#include "advice/perf.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "report/lang.h"

static const struct np_column columns[] = {
	{"Type", "", NP_COL_TEXT, "set: room for optimization, bound, or unaffine shapes"},
	{"Description", "", NP_COL_TEXT, "as the official tool words it"},
	{"op_name", "", NP_COL_TEXT, "name of the kernel"},
	{"input_shapes", "", NP_COL_TEXT, "shapes of the inputs"},
	{"count", "", NP_COL_INT, "calls"},
	{"total_time(us)", "", NP_COL_REAL, "sum of their durations"},
	{"income(us)", "", NP_COL_REAL, "upper bound: until the first unit is at its limit"},
};

enum set { ROOM, BOUND, UNAFFINE, N_SETS };

static const char *const set_names[N_SETS] = {
	NP_N("set of performance optimization operators"),
	NP_N("set of bound operators"),
	NP_N("set of unaffine operators"),
};

enum { WHY_SIZE = 160 };

struct entry {
	const struct np_op_group *group;
	const struct np_perf *perf;
	double room;   /* ROOM: the largest distance to a limit */
	double income; /* ROOM: ns */
	char why[WHY_SIZE];
};

struct work {
	struct np_advice *self;
	struct np_unit_columns columns;
	struct np_op_groups groups;
	struct np_map types; /* operator type → index in totals */
	NP_VEC(np_ns) totals;
	np_ns total; /* of all kernels, collectives too */
	NP_VEC(struct entry) sets[N_SETS];
};

enum { SECOND_NS = 1000000000 };

/* The time of each operator type. */
static bool sum_types(struct work *work)
{
	const struct np_analysis *rank = work->self->rank;
	for (size_t i = 0; i < rank->n_rows; i++) {
		uint32_t row = rank->rows[i], type = np_op_type(rank, row);
		uint32_t number = np_map_get(&work->types, type, UINT32_MAX);
		np_ns dur = rank->profile->kernels.dur_ns[row];
		if (number == UINT32_MAX) {
			number = (uint32_t)work->totals.n;
			if (!np_vec_push(&work->totals, 0) ||
			    !np_map_put(&work->types, type, number))
				return false;
		}
		work->totals.v[number] = np_ns_sum(work->totals.v[number], dur);
		work->total = np_ns_sum(work->total, dur);
	}
	return true;
}

static bool has_share(const struct work *work, const struct np_perf *perf,
                      const struct np_op_group *group)
{
	if (!perf->share_rule)
		return true;
	uint32_t type = np_op_type(work->self->rank, group->example);
	np_ns total = work->totals.v[np_map_get(&work->types, type, 0)];
	return total >= SECOND_NS ||
	       (double)total >= np_rule_value(work->self, perf->share_rule) * (double)work->total;
}

static bool wanted(const struct work *work, const struct np_perf *perf,
                   const struct np_op_group *group)
{
	return perf->wanted(work->self, group->example) && has_share(work, perf, group) &&
	       (!perf->matters || perf->matters(work->self, group));
}

/* Means over the calls; false: of no call a ratio is known. */
static bool means(const struct work *work, const struct np_perf *perf,
                  const struct np_op_group *group, double out[NP_PERF_LIMITS])
{
	bool known = false;
	for (int l = 0; l < perf->n_limits; l++) {
		double sum = 0;
		size_t n = 0;
		for (uint32_t i = 0; i < group->n; i++) {
			double ratio =
				np_unit_on(&work->columns, work->groups.rows[group->first + i],
			                   perf->limits[l].cube, perf->limits[l].unit);
			if (isnan(ratio))
				continue;
			sum += ratio;
			n++;
		}
		out[l] = n > 0 ? sum / (double)n : 0;
		known |= sum > 0;
	}
	return known;
}

static double limit_of(const struct work *work, const struct np_perf *perf, int l)
{
	return np_rule_value(work->self, perf->limits[l].rule);
}

/* The name of what bounds it, or NULL. Sums of ratios of 1/1000 must not fail by rounding. */
static const char *bound_of(const struct work *work, const struct np_perf *perf,
                            const double ratio[NP_PERF_LIMITS])
{
	double sum = 0;
	int at = 0, first = -1;
	for (int l = 0; l < perf->n_limits; l++) {
		sum += ratio[l];
		if (ratio[l] >= limit_of(work, perf, l) - 1e-9) {
			at++;
			first = first < 0 ? l : first;
		}
	}
	bool all = perf->all_rule ? sum >= np_rule_value(work->self, perf->all_rule) - 1e-9
	                          : at == perf->n_limits;
	if (all)
		return perf->all_name;
	return first >= 0 ? perf->limits[first].name : NULL;
}

static void set_room(const struct work *work, const double ratio[NP_PERF_LIMITS],
                     struct entry *entry)
{
	double nearest = 0;
	for (int l = 0; l < entry->perf->n_limits; l++) {
		double limit = limit_of(work, entry->perf, l);
		entry->room = fmax(entry->room, limit - ratio[l]);
		nearest = limit > 0 ? fmax(nearest, ratio[l] / limit) : 1;
	}
	entry->income = (double)entry->group->total * (1 - fmin(nearest, 1));
}

static bool judge(struct work *work, const struct np_perf *perf, const struct np_op_group *group)
{
	double ratio[NP_PERF_LIMITS];
	struct entry entry = {.group = group, .perf = perf};
	enum set set = ROOM;
	if (!means(work, perf, group, ratio))
		return true;
	const char *bound = bound_of(work, perf, ratio);
	if (perf->unaffine &&
	    perf->unaffine(work->self, group->example, entry.why, sizeof entry.why)) {
		set = UNAFFINE;
	} else if (bound) {
		set = BOUND;
		(void)snprintf(entry.why, sizeof entry.why, "bound type: %s bound", bound);
	} else {
		set_room(work, ratio, &entry);
		(void)snprintf(entry.why, sizeof entry.why,
		               "suspect there is room for performance optimization, refer to "
		               "Performance Optimization Space: %.2f%%",
		               entry.room * 100);
	}
	return np_vec_push(&work->sets[set], entry);
}

static int by_room(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	if (x->room != y->room)
		return x->room > y->room ? -1 : 1;
	return (x->group->example > y->group->example) - (x->group->example < y->group->example);
}

static int by_time(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	if (x->group->total != y->group->total)
		return x->group->total > y->group->total ? -1 : 1;
	return (x->group->example > y->group->example) - (x->group->example < y->group->example);
}

static bool gather(struct work *work, const struct np_perf *const *perfs, size_t n)
{
	const struct np_analysis *rank = work->self->rank;
	size_t n_order = 0;
	uint32_t *order = np_op_order(rank, false, &n_order);
	bool ok = order && sum_types(work) &&
	          np_op_groups_build(rank, NP_BY_NAME_SHAPE, order, n_order, &work->groups);
	for (size_t g = 0; ok && g < work->groups.n; g++) {
		const struct np_op_group *group = &work->groups.groups[g];
		for (size_t p = 0; ok && p < n; p++)
			if (wanted(work, perfs[p], group))
				ok = judge(work, perfs[p], group);
	}
	for (int s = 0; ok && s < N_SETS; s++)
		if (work->sets[s].n > 1)
			qsort(work->sets[s].v, work->sets[s].n, sizeof *work->sets[s].v,
			      s == ROOM ? by_room : by_time);
	np_free(order);
	return ok;
}

static void put_row(const struct work *work, struct np_table *table, enum set set,
                    const struct entry *entry)
{
	const struct np_analysis *rank = work->self->rank;
	const struct np_kernel_shapes *shapes = &rank->profile->kernel_shapes;
	uint32_t row = entry->group->example;
	np_str in = np_text(rank, np_in_shapes(rank, row));
	np_str dtypes = row < shapes->n ? np_text(rank, shapes->in_dtypes[row]) : (np_str){"", 0};
	np_str name = np_text(rank, rank->profile->kernels.name[row]);
	if (in.len >= 2 && in.ptr[0] == '"')
		in = np_str_sub(in, 1, in.len - 2);
	np_cell_word(table, set_names[set]);
	np_cell_printf(table, "%.*s Op shape: %.*s dtype: %.*s %s", NP_FMT(name), NP_FMT(in),
	               NP_FMT(dtypes), entry->why);
	np_cell_text(table, name);
	np_cell_text(table, in);
	np_cell_int(table, entry->group->n);
	np_cell_real(table, (double)entry->group->total / 1e3);
	np_cell_real(table, set == ROOM ? entry->income / 1e3 : NAN);
}

static void tell(struct work *work, const struct np_checker *checker, const struct np_perf *perf)
{
	struct np_advice *self = work->self;
	np_ns total = 0;
	double income = 0;
	size_t n[N_SETS], all = 0;
	for (int s = 0; s < N_SETS; s++) {
		n[s] = work->sets[s].n;
		all += n[s];
		for (size_t i = 0; i < n[s]; i++) {
			total = np_ns_sum(total, work->sets[s].v[i].group->total);
			income += work->sets[s].v[i].income;
		}
	}
	if (all == 0)
		return;
	struct np_problem_text text = {.code = perf->code,
	                               .count = all,
	                               .total_us = np_per_step_us(self, total),
	                               .gain_us = income / 1000 / self->steps,
	                               .advice = perf->advice};
	struct np_finding *finding =
		np_advice_problem(self, checker, &text,
	                          "of %zu operators with their shapes %zu have room for "
	                          "optimization, %zu are bound by "
	                          "a unit, and of %zu the shapes do not fit the cores",
	                          all, n[ROOM], n[BOUND], n[UNAFFINE]);
	struct np_table *table = NP_ADVICE_TABLE(self, checker, columns);
	size_t most = (size_t)np_rule_value(self, "perf_rows");
	for (int s = 0; s < N_SETS; s++)
		for (size_t i = 0; i < n[s] && i < most; i++)
			put_row(work, table, (enum set)s, &work->sets[s].v[i]);
	for (int s = 0; s < N_SETS; s++) {
		if (n[s] == 0)
			continue;
		const struct np_op_group *group = work->sets[s].v[0].group;
		np_str name = np_str_sub(
			np_text(self->rank, self->rank->profile->kernels.name[group->example]), 0,
			120);
		np_finding_evidence(finding, np_kernel_source(self->rank), "Name, Input Shapes",
		                    np_tr(set_names[s]), "%.*s: %u calls, %.1f us; %s",
		                    NP_FMT(name), group->n, (double)group->total / 1e3,
		                    work->sets[s].v[0].why);
	}
}

void np_perf_run(struct np_advice *self, const struct np_checker *checker,
                 const struct np_perf *const *perfs, size_t n)
{
	struct work work = {.self = self};
	np_map_init(&work.types);
	np_unit_columns_find(self->rank, &work.columns);
	if (!work.columns.any || !np_has_shapes(self->rank))
		return; /* np_checker_no_bound says that nothing was collected */
	if (gather(&work, perfs, n))
		tell(&work, checker, perfs[0]);
	else
		self->oom = true;
	for (int s = 0; s < N_SETS; s++)
		np_vec_release(&work.sets[s]);
	np_op_groups_release(&work.groups);
	np_vec_release(&work.totals);
	np_map_release(&work.types);
}
