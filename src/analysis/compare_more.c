/*
 * Tables of a comparison: communication groups, memory, host operators, joined names.
 */
#include <math.h>
#include <stdlib.h>

#include "analysis/compare_side.h"

/* ── communication groups ── */

/*
 * The one group that only this side has, or NP_NO_U32: of two sides with one such group
 * each, these are the same group, whose name changed with the run (it holds an address
 * and a time).
 */
static uint32_t lonely_group(const struct np_cmp_side *side, const struct np_cmp_side *other)
{
	uint32_t found = NP_NO_U32;
	for (size_t i = 0; i < side->group_times.n; i++) {
		uint32_t name = side->group_times.v[i].name;
		bool there = false;
		for (size_t k = 0; k < other->group_times.n; k++)
			there = there || other->group_times.v[k].name == name;
		if (there)
			continue;
		if (found != NP_NO_U32)
			return NP_NO_U32;
		found = name;
	}
	return found;
}

bool np_cmp_pair_groups(struct np_cmp_pair *pair)
{
	struct np_compare *self = pair->compare;
	uint32_t base = lonely_group(pair->base, pair->target);
	uint32_t target = lonely_group(pair->target, pair->base);
	if (base == NP_NO_U32 || target == NP_NO_U32)
		return true;
	for (size_t i = 0; i < pair->target->group_times.n; i++)
		if (pair->target->group_times.v[i].name == target)
			pair->target->group_times.v[i].name = base;
	for (size_t i = 0; i < pair->target->comm.n; i++) {
		struct np_cmp_point *point = &pair->target->comm.v[i];
		struct np_cmp_key key = self->comm.v.v[point->key];
		if (key.a == target)
			point->key = np_cmp_keys_add(&self->comm, base, key.b, key.c);
		if (point->key == NP_NO_U32)
			return false;
	}
	return true;
}

static const struct np_column comm_columns[] = {
	{"target", "", NP_COL_INT, "which TARGET, from 1"},
	{"group", "", NP_COL_TEXT, "communication group"},
	{"op", "", NP_COL_TEXT, "collective"},
	{"base_count", "", NP_COL_REAL, "per step of BASE"},
	{"target_count", "", NP_COL_REAL, "per step of TARGET"},
	{"base_ns", "us", NP_COL_DUR_NS, "time per step of BASE, the median"},
	{"target_ns", "us", NP_COL_DUR_NS, "time per step of TARGET, the median"},
	{"diff_ns", "us", NP_COL_DUR_NS, "target - base"},
	{"change", "", NP_COL_PERCENT, "target / base - 1"},
	{"verdict", "", NP_COL_TEXT, "slower, faster, within noise, new, removed, minor"},
};

static bool put_comm(struct np_cmp_pair *pair)
{
	struct np_compare *self = pair->compare;
	if (!pair->base->has_comm_ops || !pair->target->has_comm_ops) {
		if (pair->base->has_comm_ops || pair->target->has_comm_ops)
			np_report_note(self->report,
			               "comm_groups: collectives are recorded on one side only");
		return true;
	}
	struct np_cmp_groups groups = {0};
	bool ok =
		np_cmp_group(pair, &pair->base->comm, &pair->target->comm, self->comm.v.n, &groups);
	struct np_table *table =
		NP_CMP_TABLE(self, "comm_groups", "Communication by group", comm_columns);
	for (size_t i = 0; ok && i < groups.v.n; i++) {
		const struct np_cmp_group *group = &groups.v.v[i];
		const struct np_cmp_key *key = &self->comm.v.v[group->key];
		np_cell_int(table, pair->number);
		np_cell_text(table, np_cmp_text(self, key->a));
		np_cell_text(table, np_cmp_text(self, key->b));
		np_cell_real(table, group->base.count);
		np_cell_real(table, group->target.count);
		np_cell_int(table, group->base.median);
		np_cell_int(table, group->target.median);
		np_cell_int(table, group->target.median - group->base.median);
		np_cell_real(table, np_cmp_change((double)group->base.median,
		                                  (double)group->target.median));
		np_cell_cstr(table, np_cmp_verdict_name(group->verdict));
	}
	np_vec_release(&groups.v);
	return ok;
}

/* ── memory ── */

static const struct np_column memory_columns[] = {
	{"target", "", NP_COL_INT, "which TARGET, from 1"},
	{"component", "", NP_COL_TEXT, "PTA, GE, APP …"},
	{"base_allocated", "MiB", NP_COL_REAL, "peak of BASE"},
	{"target_allocated", "MiB", NP_COL_REAL, "peak of TARGET"},
	{"base_reserved", "MiB", NP_COL_REAL, "peak of BASE"},
	{"target_reserved", "MiB", NP_COL_REAL, "peak of TARGET"},
	{"change", "", NP_COL_PERCENT, "of the reserved peak: target / base - 1"},
};

static const struct np_cmp_peak *find_peak(const struct np_cmp_side *side, uint32_t component)
{
	static const struct np_cmp_peak none = {0, NAN, NAN};
	for (size_t i = 0; i < side->peaks.n; i++)
		if (side->peaks.v[i].component == component)
			return &side->peaks.v[i];
	return &none;
}

static void put_peak(const struct np_cmp_pair *pair, struct np_table *table, uint32_t component)
{
	const struct np_cmp_peak *base = find_peak(pair->base, component);
	const struct np_cmp_peak *target = find_peak(pair->target, component);
	np_cell_int(table, pair->number);
	np_cell_text(table, np_cmp_text(pair->compare, component));
	np_cell_real(table, base->allocated_mb);
	np_cell_real(table, target->allocated_mb);
	np_cell_real(table, base->reserved_mb);
	np_cell_real(table, target->reserved_mb);
	np_cell_real(table, np_cmp_change(base->reserved_mb, target->reserved_mb));
}

static void put_memory(struct np_cmp_pair *pair)
{
	if (!pair->base->has_memory && !pair->target->has_memory)
		return;
	struct np_table *table =
		NP_CMP_TABLE(pair->compare, "memory", "Memory peaks", memory_columns);
	for (size_t i = 0; i < pair->base->peaks.n; i++)
		put_peak(pair, table, pair->base->peaks.v[i].component);
	for (size_t i = 0; i < pair->target->peaks.n; i++) {
		uint32_t component = pair->target->peaks.v[i].component;
		const struct np_cmp_peak *base = find_peak(pair->base, component);
		if (isnan(base->allocated_mb) && isnan(base->reserved_mb))
			put_peak(pair, table, component);
	}
}

/* ── host operators ── */

static const struct np_column api_columns[] = {
	{"target", "", NP_COL_INT, "which TARGET, from 1"},
	{"layer", "", NP_COL_TEXT, "torch, queue, mstx, acl, model, node, hccl, runtime"},
	{"name", "", NP_COL_TEXT, "operator or call"},
	{"base_count", "", NP_COL_REAL, "calls per step of BASE"},
	{"target_count", "", NP_COL_REAL, "calls per step of TARGET"},
	{"base_ns", "us", NP_COL_DUR_NS, "total per step of BASE, the median"},
	{"target_ns", "us", NP_COL_DUR_NS, "total per step of TARGET, the median"},
	{"base_self_ns", "us", NP_COL_DUR_NS, "the same without nested calls of the layer"},
	{"target_self_ns", "us", NP_COL_DUR_NS, "the same without nested calls of the layer"},
	{"diff_ns", "us", NP_COL_DUR_NS, "target - base, of the total"},
	{"change", "", NP_COL_PERCENT, "target / base - 1, of the total"},
	{"verdict", "", NP_COL_TEXT, "slower, faster, within noise, new, removed, minor"},
};

static const char *layer_name(uint32_t layer)
{
	static const char *const names[] = {"torch", "queue", "python", "mstx",    "gc",   "acl",
	                                    "model", "node",  "hccl",   "runtime", "other"};
	return layer < sizeof names / sizeof *names ? names[layer] : "other";
}

static int by_self(const void *a, const void *b)
{
	const struct np_cmp_group *x = a, *y = b;
	np_ns xs = x->base.self > x->target.self ? x->base.self : x->target.self;
	np_ns ys = y->base.self > y->target.self ? y->base.self : y->target.self;
	if (xs != ys)
		return xs > ys ? -1 : 1;
	return (x->key > y->key) - (x->key < y->key);
}

static bool put_api(struct np_cmp_pair *pair)
{
	struct np_compare *self = pair->compare;
	if (!pair->base->has_api || !pair->target->has_api) {
		if (pair->base->has_api || pair->target->has_api)
			np_report_note(self->report, "api: the host is recorded on one side only");
		return true;
	}
	struct np_cmp_groups groups = {0};
	size_t top = self->options->top ? self->options->top : 20;
	bool ok = np_cmp_group(pair, &pair->base->api, &pair->target->api, self->api.v.n, &groups);
	if (ok && groups.v.n > 1)
		qsort(groups.v.v, groups.v.n, sizeof *groups.v.v, by_self);
	struct np_table *table = NP_CMP_TABLE(self, "api", "Host operators", api_columns);
	for (size_t i = 0; ok && i < groups.v.n && i < top; i++) {
		const struct np_cmp_group *group = &groups.v.v[i];
		np_cell_int(table, pair->number);
		np_cell_cstr(table, layer_name(self->api.v.v[group->key].a));
		np_cell_text(table, np_cmp_text(self, self->api.v.v[group->key].b));
		np_cell_real(table, group->base.count);
		np_cell_real(table, group->target.count);
		np_cell_int(table, group->base.median);
		np_cell_int(table, group->target.median);
		np_cell_int(table, group->base.self);
		np_cell_int(table, group->target.self);
		np_cell_int(table, group->target.median - group->base.median);
		np_cell_real(table, np_cmp_change((double)group->base.median,
		                                  (double)group->target.median));
		np_cell_cstr(table, np_cmp_verdict_name(group->verdict));
	}
	if (groups.v.n > top)
		np_report_note(self->report, "table api: %zu of %zu rows (--top)", top, groups.v.n);
	np_vec_release(&groups.v);
	return ok;
}

bool np_cmp_table_more(struct np_cmp_pair *pair)
{
	if (!put_comm(pair))
		return false;
	put_memory(pair);
	return put_api(pair);
}

/* ── --show-normalised ── */

void np_cmp_table_normalised(struct np_compare *self)
{
	static const struct np_column columns[] = {
		{"normalised", "", NP_COL_TEXT, "what the names became"},
		{"name", "", NP_COL_TEXT, "a name of a capture"},
		{"rules", "", NP_COL_TEXT, "what was taken out"},
	};
	struct np_table *table = NP_CMP_TABLE(self, "normalised", "Joined names", columns);
	for (size_t i = 0; i < self->joined.v.n; i++) {
		const struct np_cmp_key *key = &self->joined.v.v[i];
		struct np_buf rules = {0};
		for (int rule = 0; rule < NP_NORMALISE_RULES; rule++) {
			if (!(key->c >> rule & 1))
				continue;
			if (rules.len > 0)
				np_buf_add_cstr(&rules, ", ");
			np_buf_add_cstr(&rules,
			                np_normalise_rule_name((enum np_normalise_rule)rule));
		}
		np_cell_text(table, np_cmp_text(self, key->a));
		np_cell_text(table, np_cmp_text(self, key->b));
		np_cell_text(table, np_buf_str(&rules));
		np_buf_release(&rules);
	}
}
