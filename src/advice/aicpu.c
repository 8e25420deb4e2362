/*
 * AICPU Issues (cluster_and_advisor.md §3.4): operators on the AI CPU, and what keeps them off the
 * AI cores.
 *
 * The official tool asks whether any operator of the capture takes 20 us; here it is
 * one of the AI CPU that has to.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "advice/aicpu_dtypes.h"
#include "advice/kernels.h"
#include "analysis/aicpu.h"
#include "report/lang.h"

static const struct np_column columns[] = {
	NP_KERNEL_NAME_COLUMNS,
	{"task_duration", "", NP_COL_REAL, "duration, us"},
	NP_KERNEL_SHAPE_COLUMNS,
	{"stack_info", "", NP_COL_TEXT, "call stack of the operator that launched it"},
	{"suggestion", "", NP_COL_TEXT, "what keeps it off the AI cores, as far as is known"},
};

static bool on_aicpu(const void *how, uint32_t row)
{
	return ((const struct np_analysis *)how)->class[row] == NP_CLASS_AICPU;
}

enum { WHY_SIZE = 400 };

/* What the shapes' columns tell about this kernel; "" for nothing. */
static void why(const struct np_analysis *rank, uint32_t row, char out[WHY_SIZE])
{
	const struct np_kernel_shapes *shapes = &rank->profile->kernel_shapes;
	np_str type = np_text(rank, np_op_type(rank, row));
	const char *guide = np_aicpu_guide(type), *instead = NULL;
	np_str bad = {"", 0};
	out[0] = '\0';
	for (int output = 0; row < shapes->n && output < 2 && bad.len == 0; output++)
		bad = np_aicpu_dtype(
			type,
			np_text(rank, output ? shapes->out_dtypes[row] : shapes->in_dtypes[row]),
			output, rank->capture->config.cann_version, &instead);
	if (bad.len) {
		bad = np_str_sub(bad, 0, 40);
		np_str op = np_str_sub(type, 0, 80);
		(void)snprintf(out, WHY_SIZE,
		               np_tr(NP_N("data type %.*s in %.*s has no kernel of the AI cores: "
		                          "convert to one of%s")),
		               NP_FMT(bad), NP_FMT(op), instead);
	} else if (guide) {
		(void)snprintf(out, WHY_SIZE, "%s", np_tr(guide));
	}
}

static void put(const void *how, struct np_table *table, uint32_t row)
{
	const struct np_advice *self = how;
	char text[WHY_SIZE];
	uint32_t op;
	np_cells_kernel_name(self->rank, table, row);
	np_cell_kernel_us(self->rank, table, row);
	np_cells_kernel_shapes(self->rank, table, row);
	np_cell_id(self->rank, table, np_kernel_stack(self, row, &op));
	why(self->rank, row, text);
	np_cell_cstr(table, text[0] ? text : NULL);
}

/* What no other kernel or collective hides: more cannot be won. */
static np_ns exposed(struct np_advice *self, const struct np_kernel_list *list)
{
	const struct np_kernels *kernels = &self->rank->profile->kernels;
	struct np_intervals others = {0};
	struct np_cover cover = {0};
	np_ns sum = 0;
	bool ok = np_aicpu_others(self->rank, &others) && np_cover_init(&cover, &others);
	for (size_t i = 0; ok && i < list->rows.n; i++) {
		np_ns start = kernels->start_ns[list->rows.v[i]];
		np_ns dur = kernels->dur_ns[list->rows.v[i]];
		sum = np_ns_sum(sum, dur - np_cover_length(&cover, start, start + dur));
	}
	np_cover_release(&cover);
	np_intervals_release(&others);
	self->oom |= !ok;
	return sum;
}

/* What is known about the longest ones, each sentence once. */
static void explain(const struct np_analysis *rank, const struct np_kernel_list *list,
                    struct np_finding *finding)
{
	enum { LOOKED = 200, TOLD = 3 };
	char told[TOLD][WHY_SIZE], text[WHY_SIZE];
	size_t n = 0;
	for (size_t i = 0; i < list->rows.n && i < LOOKED && n < TOLD; i++) {
		size_t t = 0;
		why(rank, list->rows.v[i], text);
		while (t < n && np_str_is(np_str_of(text), told[t]) == false)
			t++;
		if (text[0] && t == n)
			(void)snprintf(told[n++], WHY_SIZE, "%s", text);
	}
	if (n > 0)
		np_finding_detail(finding, "%s%s%s%s%s", told[0], n > 1 ? "; " : "",
		                  n > 1 ? told[1] : "", n > 2 ? "; " : "", n > 2 ? told[2] : "");
}

static void run(struct np_advice *self, const struct np_checker *checker)
{
	struct np_kernel_list list;
	if (np_kernels_where(self, on_aicpu, self->rank, &list) && list.rows.n > 0 &&
	    (double)list.longest >= np_rule_value(self, "aicpu_us") * 1000) {
		char types[NP_TYPES_SIZE];
		struct np_problem_text text = {
			.code = "ADVICE_AICPU",
			.count = list.rows.n,
			.total_us = np_per_step_us(self, list.total),
			.gain_us = np_per_step_us(self, exposed(self, &list)),
			.advice = NP_N(
				"Keep operators off the AI CPU: convert double and int64 inputs "
				"to types that the AI cores support, or write the code with "
				"another operator (the table says which)."),
		};
		np_kernel_types(self, &list, types);
		struct np_finding *finding = np_advice_problem(
			self, checker, &text,
			"%zu operators run on the AI CPU, the longest %.1f us: %s", list.rows.n,
			(double)list.longest / 1e3, types);
		explain(self->rank, &list, finding);
		np_kernel_evidence(self, &list, finding);
		np_kernel_rows(self, &list, NP_ADVICE_TABLE(self, checker, columns), put, self);
	}
	np_kernel_list_release(&list);
}

const struct np_checker np_checker_aicpu = {
	.name = "aicpu",
	.dimension = NP_DIM_COMPUTATION,
	.category = NP_N("AICPU Issues"),
	.category_zh = "AICPU 问题",
	.run = run,
	.load = NP_HOST_ARGS,
};
