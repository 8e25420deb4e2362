/*
 * Layer 4: operators whose input shapes change from step to step.
 *
 * op_state says "dynamic" for nearly everything that torch launches, so it is
 * shown, but proves nothing. Many shapes prove nothing either: the layers of a
 * network differ, and so do the parameters of an optimizer. What counts is a
 * call in a later step with a shape that the first step did not have:
 *
 *   step 12   32,64  32,128  32,64
 *   step 13   32,64  48,128  32,64     48,128 is new
 *
 * One step alone can't tell.
 */
#include <stdlib.h>

#include "analysis/group.h"
#include "report/lang.h"

static const struct np_column columns[] = {
	{"type", "", NP_COL_TEXT, "operator type"},
	{"count", "", NP_COL_INT, "kernels with recorded input shapes"},
	{"shapes", "", NP_COL_INT, "distinct input shapes"},
	{"new_calls", "", NP_COL_INT, "calls behind the first step with a shape it did not have"},
	{"new_share", "", NP_COL_PERCENT, "of the calls behind the first step"},
	{"total_ns", "us", NP_COL_DUR_NS, "sum of the durations of all its kernels"},
	{"dynamic_state", "", NP_COL_PERCENT,
         "calls whose op_state is dynamic; - when not recorded"},
};

struct type {
	uint32_t id, count, shapes, fresh, later; /* later: calls behind the first step */
	uint32_t stated, dynamic;
	np_ns total;
};

struct types {
	NP_VEC(struct type) of;
	struct np_map numbers, seen;
	uint32_t dynamic; /* string id of "dynamic" */
};

static struct type *type_of(struct types *self, uint32_t id)
{
	uint32_t number = np_map_get(&self->numbers, id, UINT32_MAX);
	if (number == UINT32_MAX) {
		number = (uint32_t)self->of.n;
		if (!np_vec_push(&self->of, (struct type){.id = id}) ||
		    !np_map_put(&self->numbers, id, number))
			return NULL;
	}
	return &self->of.v[number];
}

/* One call; those of the first step come first. */
static bool add_call(const struct np_analysis *self, struct types *types, uint32_t row,
                     uint32_t shapes)
{
	enum { NOT_SEEN, IN_FIRST, LATER };
	struct type *type = type_of(types, np_op_type(self, row));
	if (!type)
		return false;
	uint32_t state = self->profile->kernels.op_state[row];
	uint64_t key = (uint64_t)type->id << 32 | shapes;
	uint32_t seen = np_map_get(&types->seen, key, NOT_SEEN);
	bool first = self->span_of[row] == 0;
	type->count++;
	type->total = np_ns_sum(type->total, self->profile->kernels.dur_ns[row]);
	type->shapes += seen == NOT_SEEN;
	type->later += !first;
	type->fresh += !first && seen != IN_FIRST;
	if (state != 0 && state != NP_ID_NONE) {
		type->stated++;
		type->dynamic += state == types->dynamic;
	}
	return seen != NOT_SEEN || np_map_put(&types->seen, key, first ? IN_FIRST : LATER);
}

static double fresh_share(const struct type *type)
{
	return type->later ? (double)type->fresh / type->later : 0;
}

static bool changes(const struct np_rules *rules, const struct type *type)
{
	return type->shapes >= rules->shape_distinct && fresh_share(type) >= rules->shape_new;
}

static int by_fresh(const void *a, const void *b)
{
	const struct type *x = a, *y = b;
	if (x->fresh != y->fresh)
		return x->fresh < y->fresh ? 1 : -1;
	if (x->shapes != y->shapes)
		return x->shapes < y->shapes ? 1 : -1;
	return (x->id > y->id) - (x->id < y->id);
}

static void put_rows(struct np_analysis *self, const struct types *types)
{
	struct np_table *table = NULL;
	for (size_t i = 0; i < types->of.n && i < np_top(self); i++) {
		const struct type *type = &types->of.v[i];
		if (type->fresh == 0)
			break;
		if (!table)
			table = NP_REPORT_TABLE(self->report, "shapes",
			                        "Operators with new input shapes", columns);
		np_cell_text(table, np_text(self, type->id));
		np_cell_int(table, type->count);
		np_cell_int(table, type->shapes);
		np_cell_int(table, type->fresh);
		np_cell_real(table, fresh_share(type));
		np_cell_int(table, type->total);
		if (type->stated)
			np_cell_real(table, (double)type->dynamic / type->stated);
		else
			np_cell_na(table);
	}
}

static void tell(struct np_analysis *self, const struct types *types)
{
	const struct type *first = NULL;
	size_t n = 0;
	uint64_t calls = 0;
	for (size_t i = 0; i < types->of.n; i++) {
		const struct type *type = &types->of.v[i];
		if (!changes(self->rules, type))
			continue;
		first = first ? first : type;
		calls += type->fresh;
		n++;
	}
	if (!first)
		return;
	np_str name = np_text(self, first->id);
	struct np_finding *finding = np_report_finding(
		self->report, "DYNAMIC_SHAPE", NP_INFO,
		"%zu operator type%s with input shapes that change from step to step: %llu calls "
		"with a shape that the first step did not have; most in %.*s (%u shapes)",
		n, n == 1 || np_lang() != NP_LANG_EN ? "" : "s", (unsigned long long)calls,
		NP_FMT(name), first->shapes);
	np_finding_detail(finding, "each new shape costs a tiling on the host, and with compiled "
	                           "operators or graphs a compilation; memory is reused less well");
	np_finding_evidence(finding, np_kernel_source(self), "Input Shapes", NULL,
	                    "%.*s: %u distinct shapes in %u calls, new in %u", NP_FMT(name),
	                    first->shapes, first->count, first->fresh);
	np_finding_advice(finding, "pad or bucket the inputs to a few sizes; with eager code set "
	                           "torch_npu.npu.set_compile_mode(jit_compile=False) and "
	                           "torch_npu.npu.config.allow_internal_format = False");
}

/* Types of the calls of one part: the first span, or all behind it. */
static bool add_calls(const struct np_analysis *self, struct types *types, bool first)
{
	bool ok = true;
	for (size_t i = 0; ok && i < self->n_rows; i++) {
		uint32_t row = self->rows[i], shapes = np_in_shapes(self, row);
		if ((self->span_of[row] == 0) == first && self->class[row] != NP_CLASS_COMM &&
		    shapes != NP_ID_NONE)
			ok = add_call(self, types, row, shapes);
	}
	return ok;
}

void np_analyze_shapes(struct np_analysis *self)
{
	struct types types = {.dynamic =
	                              np_intern_find(&self->profile->strings, NP_STR("dynamic"))};
	if (!np_has_shapes(self)) {
		np_report_note(self->report, "dynamic shapes: input shapes were not collected; "
		                             "needed is profiler_level Level1 or Level2");
		return;
	}
	if (self->spans.n < 2) {
		np_report_note(self->report, "dynamic shapes: can't be told from one step; two or "
		                             "more would show whether shapes change");
		return;
	}
	np_map_init(&types.numbers);
	np_map_init(&types.seen);
	bool ok = add_calls(self, &types, true) && add_calls(self, &types, false);
	if (ok && types.of.n) {
		qsort(types.of.v, types.of.n, sizeof *types.of.v, by_fresh);
		put_rows(self, &types);
		tell(self, &types);
	}
	np_vec_release(&types.of);
	np_map_release(&types.numbers);
	np_map_release(&types.seen);
	self->oom = self->oom || !ok;
}
