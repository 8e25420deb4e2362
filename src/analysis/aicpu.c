/*
 * Layer 4: kernels on the AI CPU, and how much of their time something else covers.
 *
 *   AI CPU      ██████████      ██████████
 *   others   ▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒     ▒▒▒
 *             masked: 100 %       masked: 30 %, exposed: 70 %
 */
#include <stdlib.h>

#include "analysis/aicpu.h"
#include "analysis/group.h"
#include "report/lang.h"

static const struct np_column columns[] = {
	{"type", "", NP_COL_TEXT, "operator type"},
	{"count", "", NP_COL_INT, "kernels on the AI CPU"},
	{"total_ns", "us", NP_COL_DUR_NS, "sum of their durations"},
	{"max_ns", "us", NP_COL_DUR_NS, "longest"},
	{"masked_ns", "us", NP_COL_DUR_NS, "while another kernel or a collective ran"},
	{"exposed_ns", "us", NP_COL_DUR_NS, "total - masked"},
	{"masked_share", "", NP_COL_PERCENT, "masked / total"},
	{"verdict", "", NP_COL_TEXT, "masked, partly exposed, exposed; short: none took long"},
};

enum verdict { MASKED, PARTLY, EXPOSED, SHORT };

struct type {
	uint32_t id;
	uint32_t count;
	np_ns total, max, masked;
	enum verdict verdict;
};

struct types {
	NP_VEC(struct type) of;
};

bool np_aicpu_others(const struct np_analysis *self, struct np_intervals *out)
{
	const struct np_kernels *kernels = &self->profile->kernels;
	bool ok = true;
	for (size_t i = 0; ok && i < self->n_rows; i++) {
		uint32_t row = self->rows[i];
		np_ns start = kernels->start_ns[row];
		if (self->class[row] != NP_CLASS_AICPU)
			ok = np_intervals_add(out, start, start + kernels->dur_ns[row]);
	}
	np_intervals_merge(out);
	return ok;
}

static struct type *type_of(struct types *types, struct np_map *numbers, uint32_t id)
{
	uint32_t number = np_map_get(numbers, id, UINT32_MAX);
	if (number == UINT32_MAX) {
		number = (uint32_t)types->of.n;
		if (!np_vec_push(&types->of, (struct type){.id = id}) ||
		    !np_map_put(numbers, id, number))
			return NULL;
	}
	return &types->of.v[number];
}

static bool gather(const struct np_analysis *self, struct types *types)
{
	const struct np_kernels *kernels = &self->profile->kernels;
	struct np_intervals others = {0};
	struct np_cover cover = {0};
	struct np_map numbers;
	np_map_init(&numbers);
	bool ok = np_aicpu_others(self, &others) && np_cover_init(&cover, &others);
	for (size_t i = 0; ok && i < self->n_rows; i++) {
		uint32_t row = self->rows[i];
		if (self->class[row] != NP_CLASS_AICPU)
			continue;
		struct type *type = type_of(types, &numbers, np_op_type(self, row));
		ok = type != NULL;
		if (!ok)
			break;
		np_ns start = kernels->start_ns[row], dur = kernels->dur_ns[row];
		type->count++;
		type->total = np_ns_sum(type->total, dur);
		type->max = dur > type->max ? dur : type->max;
		type->masked = np_ns_sum(type->masked, np_cover_length(&cover, start, start + dur));
	}
	np_cover_release(&cover);
	np_intervals_release(&others);
	np_map_release(&numbers);
	return ok;
}

static int by_total(const void *a, const void *b)
{
	const struct type *x = a, *y = b;
	if (x->total != y->total)
		return x->total < y->total ? 1 : -1;
	return (x->id > y->id) - (x->id < y->id);
}

static double masked_share(const struct type *type)
{
	return type->total > 0 ? (double)type->masked / (double)type->total : 1;
}

static enum verdict judge(const struct np_rules *rules, const struct type *type)
{
	if ((double)type->max < rules->aicpu_min_us * 1e3)
		return SHORT;
	double share = masked_share(type);
	return share >= rules->aicpu_masked    ? MASKED
	       : share >= rules->aicpu_partial ? PARTLY
	                                       : EXPOSED;
}

static void put_row(struct np_table *table, const struct np_analysis *self, const struct type *type)
{
	static const char *const verdicts[] = {"masked", "partly exposed", "exposed", "short"};
	np_cell_text(table, np_text(self, type->id));
	np_cell_int(table, type->count);
	np_cell_int(table, type->total);
	np_cell_int(table, type->max);
	np_cell_int(table, type->masked);
	np_cell_int(table, type->total - type->masked);
	np_cell_real(table, masked_share(type));
	np_cell_cstr(table, verdicts[type->verdict]);
}

/* One finding for all types of a verdict; the largest is named. */
static void tell(struct np_analysis *self, const struct types *types, enum verdict verdict,
                 const char *code, const char *how)
{
	const struct type *largest = NULL;
	np_ns total = 0, exposed = 0;
	size_t count = 0;
	for (size_t i = 0; i < types->of.n; i++) {
		const struct type *type = &types->of.v[i];
		if (type->verdict != verdict)
			continue;
		largest = largest ? largest : type;
		count += type->count;
		total = np_ns_sum(total, type->total);
		exposed = np_ns_sum(exposed, type->total - type->masked);
	}
	if (!largest)
		return;
	np_str name = np_text(self, largest->id);
	struct np_finding *finding = np_report_finding(
		self->report, code, NP_INFO,
		"%zu kernels on the AI CPU, %s: %.1f us, of them exposed %.1f us (%.1f %% of the "
		"span); most in %.*s",
		count, np_tr(how), (double)total / 1e3, (double)exposed / 1e3,
		np_share(self, exposed) * 100, NP_FMT(name));
	np_finding_detail(finding, "the AI CPU is a slow general-purpose core; an operator lands "
	                           "there when the AI cores have no kernel for its types");
	char rows[160];
	np_str shown = np_str_sub(name, 0, 100);
	(void)snprintf(rows, sizeof rows, "Type = %.*s, Accelerator Core = AI_CPU", NP_FMT(shown));
	np_finding_evidence(finding, np_kernel_source(self), "Duration(us)", rows,
	                    "%u kernels, the longest %.1f us", largest->count,
	                    (double)largest->max / 1e3);
	np_finding_impact(finding, (double)exposed / 1e3, np_share(self, exposed));
	np_finding_advice(finding, "convert double and int64 inputs to types that the AI cores "
	                           "support, replace the operator (index_put, nonzero, argmin are "
	                           "common ones), or move it out of the step");
}

void np_analyze_aicpu(struct np_analysis *self)
{
	struct types types = {0};
	if (!gather(self, &types)) {
		self->oom = true;
	} else if (types.of.n) {
		qsort(types.of.v, types.of.n, sizeof *types.of.v, by_total);
		struct np_table *table =
			NP_REPORT_TABLE(self->report, "aicpu", "Kernels on the AI CPU", columns);
		for (size_t i = 0; i < types.of.n; i++) {
			struct type *type = &types.of.v[i];
			type->verdict = judge(self->rules, type);
			if (i < np_top(self))
				put_row(table, self, type);
		}
		tell(self, &types, MASKED, "AICPU_MASKED_BUT_UNDESIRABLE",
		     NP_N("behind other work"));
		tell(self, &types, PARTLY, "AICPU_PARTIALLY_EXPOSED",
		     NP_N("partly behind other work"));
		tell(self, &types, EXPOSED, "AICPU_EXPOSED_NOT_ALLOWED",
		     NP_N("with nothing else running"));
	}
	np_vec_release(&types.of);
}
