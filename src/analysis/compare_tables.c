/*
 * Tables of a comparison: totals, counts, overall metrics, groups of kernels.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/compare_side.h"

struct np_table *np_cmp_table(struct np_compare *self, const char *id, const char *title,
                              const struct np_column *columns, size_t n_columns)
{
	for (size_t i = 0; i < self->report->tables.n; i++)
		if (strcmp(self->report->tables.v[i]->id, id) == 0)
			return self->report->tables.v[i];
	return np_report_table(self->report, id, title, columns, n_columns);
}

#define TARGET                                                   \
	{                                                        \
		"target", "", NP_COL_INT, "which TARGET, from 1" \
	}
#define FIGURES                                                                        \
	{"base_ns", "us", NP_COL_DUR_NS, "median over the steps of BASE"},             \
		{"target_ns", "us", NP_COL_DUR_NS, "median over the steps of TARGET"}, \
		{"diff_ns", "us", NP_COL_DUR_NS, "target - base"},                     \
	{                                                                              \
		"change", "", NP_COL_PERCENT, "target / base - 1"                      \
	}
#define INTERVAL                                                                                \
	{"low_ns", "us", NP_COL_DUR_NS, "95 % interval of diff, from three steps per side on"}, \
		{"high_ns", "us", NP_COL_DUR_NS, "its upper end"},                              \
	{                                                                                       \
		"verdict", "", NP_COL_TEXT, "slower, faster, within noise, new, removed, minor" \
	}

static void put_figures(struct np_table *table, np_ns base, np_ns target)
{
	np_cell_int(table, base);
	np_cell_int(table, target);
	np_cell_int(table, target - base);
	np_cell_real(table, np_cmp_change((double)base, (double)target));
}

static void put_interval(struct np_table *table, bool has_interval, np_ns low, np_ns high,
                         const char *verdict)
{
	if (has_interval) {
		np_cell_int(table, low);
		np_cell_int(table, high);
	} else {
		np_cell_na(table);
		np_cell_na(table);
	}
	np_cell_cstr(table, verdict);
}

/* ── totals and counts ── */

void np_cmp_table_totals(struct np_cmp_pair *pair)
{
	static const struct np_column totals[] = {
		TARGET, {"time", "", NP_COL_TEXT, "what is measured, per step"}, FIGURES, INTERVAL};
	static const struct np_column counts[] = {
		TARGET,
		{"count", "", NP_COL_TEXT, "what is counted, per step"},
		{"base", "", NP_COL_REAL, "median over the steps of BASE"},
		{"target_count", "", NP_COL_REAL, "median over the steps of TARGET"},
		{"diff", "", NP_COL_REAL, "target - base"},
		{"change", "", NP_COL_PERCENT, "target / base - 1"}};
	static const char *const total_names[] = {
#define X(id, name, field, what) name,
		NP_CMP_TOTAL_MAP(X)
#undef X
	};
	static const char *const count_names[] = {
#define X(id, name, field, what) name,
		NP_CMP_COUNT_MAP(X)
#undef X
	};
	struct np_table *table = NP_CMP_TABLE(pair->compare, "totals", "Totals per step", totals);
	for (int id = 0; id < NP_CMP_TOTALS; id++) {
		const struct np_cmp_total_row *row = &pair->totals[id];
		np_cell_int(table, pair->number);
		np_cell_cstr(table, total_names[id]);
		put_figures(table, row->base, row->target);
		/* of overlapped neither more nor less is better */
		put_interval(table, row->has_interval, row->low, row->high,
		             id == NP_CMP_TOTAL_OVERLAPPED ? NULL
		                                           : np_cmp_verdict_name(row->verdict));
	}
	table = NP_CMP_TABLE(pair->compare, "counts", "Counts per step", counts);
	for (int id = 0; id < NP_CMP_COUNTS; id++) {
		double base = pair->counts[id].base, target = pair->counts[id].target;
		np_cell_int(table, pair->number);
		np_cell_cstr(table, count_names[id]);
		np_cell_real(table, base);
		np_cell_real(table, target);
		np_cell_real(table, target - base);
		np_cell_real(table, np_cmp_change(base, target));
	}
}

/* ── overall metrics ── */

static const struct np_column overall_columns[] = {
	TARGET,
	{"metric", "", NP_COL_TEXT, "Computing, Uncovered Communication, Free, and their parts"},
	{"base_ns", "us", NP_COL_DUR_NS, "over the whole capture (first run) of BASE"},
	{"base_share", "", NP_COL_PERCENT, "share of its E2E Time"},
	{"base_number", "", NP_COL_INT, "kernels"},
	{"target_ns", "us", NP_COL_DUR_NS, "over the whole capture (first run) of TARGET"},
	{"target_share", "", NP_COL_PERCENT, "share of its E2E Time"},
	{"target_number", "", NP_COL_INT, "kernels"},
	{"diff_ns", "us", NP_COL_DUR_NS, "target - base"},
	{"ratio", "", NP_COL_REAL, "target / base"},
};

struct overall_side {
	bool known;
	np_ns ns, e2e;
	int64_t count;
};

static void put_overall_side(struct np_table *table, const struct overall_side *side)
{
	if (!side->known) {
		np_cell_na(table);
		np_cell_na(table);
		np_cell_na(table);
		return;
	}
	np_cell_int(table, side->ns);
	np_cell_real(table, side->e2e > 0 ? (double)side->ns / (double)side->e2e : NAN);
	if (side->count == NP_NO_I64)
		np_cell_na(table);
	else
		np_cell_int(table, side->count);
}

static void put_overall(const struct np_cmp_pair *pair, struct np_table *table, int depth,
                        np_str label, const struct overall_side *base,
                        const struct overall_side *target)
{
	if ((!base->known || base->ns == 0) && (!target->known || target->ns == 0))
		return;
	np_cell_int(table, pair->number);
	np_cell_printf(table, "%*s%.*s", 2 * depth, "", NP_FMT(label));
	put_overall_side(table, base);
	put_overall_side(table, target);
	if (base->known && target->known) {
		np_cell_int(table, target->ns - base->ns);
		np_cell_real(table, base->ns > 0 ? (double)target->ns / (double)base->ns : NAN);
	} else {
		np_cell_na(table);
		np_cell_na(table);
	}
}

static const struct np_cmp_group_time *find_group(const struct np_cmp_side *side, uint32_t name)
{
	for (size_t i = 0; i < side->group_times.n; i++)
		if (side->group_times.v[i].name == name)
			return &side->group_times.v[i];
	return NULL;
}

static void put_group(const struct np_cmp_pair *pair, struct np_table *table,
                      const struct np_cmp_group_time *base, const struct np_cmp_group_time *target)
{
	static const struct np_cmp_group_time none = {0};
	uint32_t name = base ? base->name : target->name;
	np_ns base_e2e = pair->base->overall.ns[NP_OVERALL_E2E];
	np_ns target_e2e = pair->target->overall.ns[NP_OVERALL_E2E];
	const struct np_cmp_group_time *b = base ? base : &none, *t = target ? target : &none;
	struct overall_side left = {true, b->total, base_e2e, NP_NO_I64};
	struct overall_side right = {true, t->total, target_e2e, NP_NO_I64};
	put_overall(pair, table, 1, np_cmp_text(pair->compare, name), &left, &right);
	if (!b->has_wait && !t->has_wait)
		return;
	left = (struct overall_side){b->has_wait, b->wait, base_e2e, NP_NO_I64};
	right = (struct overall_side){t->has_wait, t->wait, target_e2e, NP_NO_I64};
	put_overall(pair, table, 2, NP_STR("Wait"), &left, &right);
	left.ns = b->transmit;
	right.ns = t->transmit;
	put_overall(pair, table, 2, NP_STR("Transmit"), &left, &right);
}

void np_cmp_table_overall(struct np_cmp_pair *pair)
{
	const struct np_overall *base = &pair->base->overall, *target = &pair->target->overall;
	struct np_table *table =
		NP_CMP_TABLE(pair->compare, "overall", "Overall metrics", overall_columns);
	for (int id = 0; id < NP_OVERALL_ROWS; id++) {
		const struct np_overall_info *info = &np_overall_infos[id];
		bool part = id > NP_OVERALL_COMPUTING && id < NP_OVERALL_OTHER;
		struct overall_side left = {!part || base->split, base->ns[id],
		                            base->ns[NP_OVERALL_E2E], base->count[id]};
		struct overall_side right = {!part || target->split, target->ns[id],
		                             target->ns[NP_OVERALL_E2E], target->count[id]};
		put_overall(pair, table, info->depth, np_str_of(info->label), &left, &right);
		if (id != NP_OVERALL_UNCOVERED)
			continue;
		for (size_t i = 0; i < pair->base->group_times.n; i++) {
			const struct np_cmp_group_time *group = &pair->base->group_times.v[i];
			put_group(pair, table, group, find_group(pair->target, group->name));
		}
		for (size_t i = 0; i < pair->target->group_times.n; i++)
			if (!find_group(pair->base, pair->target->group_times.v[i].name))
				put_group(pair, table, NULL, &pair->target->group_times.v[i]);
	}
}

/* ── groups of kernels ── */

static const struct np_column class_columns[] = {
	TARGET,
	{"class", "", NP_COL_TEXT, "kind of work"},
	{"base_count", "", NP_COL_REAL, "kernels per step of BASE"},
	{"target_count", "", NP_COL_REAL, "kernels per step of TARGET"},
	FIGURES,
	INTERVAL};
static const struct np_column type_columns[] = {
	TARGET,
	{"type", "", NP_COL_TEXT,
         "operator type; the name of collectives, and where none is recorded"},
	{"base_count", "", NP_COL_REAL, "kernels per step of BASE"},
	{"target_count", "", NP_COL_REAL, "kernels per step of TARGET"},
	FIGURES,
	INTERVAL};
static const struct np_column op_columns[] = {
	TARGET,
	{"name", "", NP_COL_TEXT, "kernel name without counters, addresses, hashes"},
	{"type", "", NP_COL_TEXT, "operator type"},
	{"shapes", "", NP_COL_TEXT, "input shapes"},
	{"base_count", "", NP_COL_REAL, "kernels per step of BASE"},
	{"target_count", "", NP_COL_REAL, "kernels per step of TARGET"},
	FIGURES,
	INTERVAL};

enum order { BY_SIZE, BY_DIFF };

struct ranked {
	np_ns weight;
	size_t group;
};

static int heaviest_first(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;
	if (x->weight != y->weight)
		return x->weight > y->weight ? -1 : 1;
	return (x->group > y->group) - (x->group < y->group);
}

typedef bool wanted_fn(const struct np_cmp_group *group);

static bool want_all(const struct np_cmp_group *group)
{
	(void)group;
	return true;
}
static bool want_new(const struct np_cmp_group *group)
{
	return group->verdict == NP_CMP_NEW;
}
static bool want_removed(const struct np_cmp_group *group)
{
	return group->verdict == NP_CMP_REMOVED;
}
static bool want_changed(const struct np_cmp_group *group)
{
	return group->verdict == NP_CMP_SLOWER || group->verdict == NP_CMP_FASTER;
}

/* The groups that are wanted, the heaviest first. NULL: out of memory. */
static struct ranked *rank(const struct np_cmp_groups *groups, wanted_fn *wanted, enum order order,
                           size_t *n)
{
	struct ranked *out = np_realloc(NULL, groups->v.n + 1, sizeof *out);
	*n = 0;
	for (size_t i = 0; out && i < groups->v.n; i++) {
		const struct np_cmp_group *group = &groups->v.v[i];
		np_ns base = group->base.median, target = group->target.median;
		np_ns diff = target > base ? target - base : base - target;
		if (wanted(group))
			out[(*n)++] = (struct ranked){
				order == BY_DIFF ? diff : (base > target ? base : target), i};
	}
	if (out && *n > 0)
		qsort(out, *n, sizeof *out, heaviest_first);
	return out;
}

static void put_group_row(const struct np_cmp_pair *pair, struct np_table *table,
                          const struct np_cmp_groups *groups, const struct np_cmp_group *group)
{
	struct np_compare *self = pair->compare;
	np_cell_int(table, pair->number);
	if (groups == &pair->by_class) {
		np_cell_word(table, np_class_name((enum np_class)group->key));
	} else if (groups == &pair->by_type) {
		np_cell_text(table, np_cmp_text(self, pair->types.v.v[group->key].a));
	} else {
		const struct np_cmp_key *key = &pair->ops.v.v[group->key];
		np_cell_text(table, np_cmp_text(self, key->b));
		np_cell_text(table, np_cmp_text(self, key->a));
		np_cell_text(table, np_cmp_text(self, key->c));
	}
	np_cell_real(table, group->base.count);
	np_cell_real(table, group->target.count);
	put_figures(table, group->base.median, group->target.median);
	put_interval(table, group->has_interval, group->low, group->high,
	             np_cmp_verdict_name(group->verdict));
}

static bool put_groups(struct np_cmp_pair *pair, struct np_table *table,
                       const struct np_cmp_groups *groups, wanted_fn *wanted, enum order order)
{
	size_t n = 0, top = pair->compare->options->top ? pair->compare->options->top : 20;
	struct ranked *ranked = rank(groups, wanted, order, &n);
	for (size_t i = 0; ranked && i < n && i < top; i++)
		put_group_row(pair, table, groups, &groups->v.v[ranked[i].group]);
	if (n > top)
		np_report_note(pair->compare->report, "table %s: %zu of %zu rows (--top)",
		               table->id, top, n);
	np_free(ranked);
	return ranked != NULL;
}

/* Copies by type, the whole last; only when there are any. */
static bool put_copies(struct np_cmp_pair *pair)
{
	struct np_map copies;
	bool ok = true;
	np_map_init(&copies);
	for (int s = 0; s < 2; s++) {
		const struct np_cmp_side *side = s ? pair->target : pair->base;
		for (size_t i = 0; ok && i < side->kernels.n; i++)
			if (side->kernels.v[i].copy)
				ok = np_map_put(&copies, side->kernels.v[i].key_op, 1);
	}
	struct np_table *table =
		NP_CMP_TABLE(pair->compare, "copy_ops", "Copies: growth", op_columns);
	for (size_t i = 0; ok && i < pair->by_op.v.n; i++)
		if (np_map_get(&copies, pair->by_op.v.v[i].key, 0))
			put_group_row(pair, table, &pair->by_op, &pair->by_op.v.v[i]);
	np_map_release(&copies);
	return ok;
}

bool np_cmp_table_groups(struct np_cmp_pair *pair)
{
	struct np_compare *self = pair->compare;
	return put_groups(pair, NP_CMP_TABLE(self, "classes", "Classes", class_columns),
	                  &pair->by_class, want_all, BY_SIZE) &&
	       put_groups(pair, NP_CMP_TABLE(self, "op_types", "Operator types", type_columns),
	                  &pair->by_type, want_all, BY_DIFF) &&
	       put_groups(pair,
	                  NP_CMP_TABLE(self, "ops", "Operators by name and shapes", op_columns),
	                  &pair->by_op, want_all, BY_SIZE) &&
	       put_groups(pair, NP_CMP_TABLE(self, "changed", "Changed operators", op_columns),
	                  &pair->by_op, want_changed, BY_DIFF) &&
	       put_groups(pair, NP_CMP_TABLE(self, "new", "New operators", op_columns),
	                  &pair->by_op, want_new, BY_DIFF) &&
	       put_groups(pair, NP_CMP_TABLE(self, "removed", "Removed operators", op_columns),
	                  &pair->by_op, want_removed, BY_DIFF) &&
	       put_copies(pair);
}
