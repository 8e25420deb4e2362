/*
 * Operator No Bound Issues (cluster_and_advisor.md §3.4): no unit of the core is busy.
 *
 * Differences: every operator is judged by itself (the official tool skips all when the first
 * one is bound), by the ratios of the cores that did the work (there mte2 and scalar of a
 * vector kernel are those of the idle cube core), a cube kernel that waits for its fixpipe is
 * bound, and text captures are judged too.
 */
#include <math.h>
#include <stdlib.h>

#include "advice/kernels.h"
#include "advice/units.h"
#include "report/lang.h"

static const struct np_column columns[] = {
	NP_KERNEL_NAME_COLUMNS,
	{"task_type", "", NP_COL_TEXT, "accelerator core"},
	{"task_duration", "", NP_COL_REAL, "duration, us"},
	{"vec_ratio", "", NP_COL_REAL, "share of the core's time in which its vector unit worked"},
	{"mac_ratio", "", NP_COL_REAL, "cube"},
	{"scalar_ratio", "", NP_COL_REAL, "scalar unit"},
	{"mte1_ratio", "", NP_COL_REAL, "moves between the core's buffers"},
	{"mte2_ratio", "", NP_COL_REAL, "loads from memory"},
	{"mte3_ratio", "", NP_COL_REAL, "stores to memory"},
	{"fixpipe_ratio", "", NP_COL_REAL, "stores of the cube's results"},
	{"block_dim", "", NP_COL_INT, "blocks"},
	NP_KERNEL_SHAPE_COLUMNS,
};

struct limit {
	const struct np_unit_columns *columns;
	double most; /* below or equal is not bound */
};

static bool unbound(const void *how, uint32_t row)
{
	const struct limit *limit = how;
	struct np_unit_ratios ratios;
	np_units_of(limit->columns, row, &ratios);
	return np_units_busiest(&ratios) <= limit->most;
}

static void put(const void *how, struct np_table *table, uint32_t row)
{
	const struct limit *limit = how;
	const struct np_analysis *rank = limit->columns->rank;
	uint32_t blocks = rank->profile->kernels.block_num[row];
	struct np_unit_ratios ratios;
	np_units_of(limit->columns, row, &ratios);
	np_cells_kernel_name(rank, table, row);
	np_cell_id(rank, table, rank->profile->kernels.core[row]);
	np_cell_kernel_us(rank, table, row);
	for (int unit = 0; unit < NP_N_UNITS; unit++)
		np_cell_real(table, ratios.of[unit]);
	if (blocks == NP_NO_U32)
		np_cell_na(table);
	else
		np_cell_int(table, blocks);
	np_cells_kernel_shapes(rank, table, row);
}

/* Were the busiest unit at the limit, a kernel would take this much less. */
static double gain_ns(const struct limit *limit, const struct np_kernel_list *list)
{
	double gain = 0;
	for (size_t i = 0; i < list->rows.n; i++) {
		uint32_t row = list->rows.v[i];
		struct np_unit_ratios ratios;
		np_units_of(limit->columns, row, &ratios);
		gain += (double)limit->columns->rank->profile->kernels.dur_ns[row] *
		        (1 - np_units_busiest(&ratios) / limit->most);
	}
	return gain;
}

static void tell(struct np_advice *self, const struct np_checker *checker,
                 const struct limit *limit, const struct np_kernel_list *list)
{
	char types[NP_TYPES_SIZE];
	struct np_problem_text text = {
		.code = "ADVICE_NO_BOUND",
		.count = list->rows.n,
		.total_us = np_per_step_us(self, list->total),
		.gain_us = gain_ns(limit, list) / 1000 / self->steps,
		.advice = NP_N("Fuse small operators or make them larger: below some tens of us a "
	                       "kernel's start weighs more than its work. Tune the long ones "
	                       "(tiling; AOE where the operators are compiled)."),
	};
	np_kernel_types(self, list, types);
	struct np_finding *finding = np_advice_problem(self, checker, &text,
	                                               "in %zu operators no unit of the core is "
	                                               "busy for more than %.0f %% of the time: %s",
	                                               list->rows.n, limit->most * 100, types);
	np_kernel_evidence(self, list, finding);
	np_kernel_rows(self, list, NP_ADVICE_TABLE(self, checker, columns), put, limit);
}

static void run(struct np_advice *self, const struct np_checker *checker)
{
	struct np_unit_columns found;
	struct np_kernel_list list = {.total = 0};
	struct limit limit = {&found, np_rule_value(self, "no_bound_ratio")};
	np_unit_columns_find(self->rank, &found);
	if (!found.any)
		np_advice_unknown(
			self, checker,
			"the units of the cores (aic_metrics) were not collected, by which "
			"bounds of operators are told too: profiler_level Level1 or higher");
	if (found.any && np_kernels_where(self, unbound, &limit, &list) && list.rows.n > 0 &&
	    (double)list.longest > np_rule_value(self, "no_bound_us") * 1000)
		tell(self, checker, &limit, &list);
	np_kernel_list_release(&list);
}

const struct np_checker np_checker_no_bound = {
	.name = "no_bound",
	.dimension = NP_DIM_COMPUTATION,
	.category = NP_N("Operator No Bound Issues"),
	.category_zh = "算子无 bound 问题",
	.run = run,
};
