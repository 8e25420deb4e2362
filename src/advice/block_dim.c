/*
 * Block Dim Issues (cluster_and_advisor.md §3.4): kernels that leave cores idle.
 *
 *   24 cores, 32 blocks    round 1  ████████████████████████
 *                          round 2  ████████                   of 48 places 32 are used
 *
 * Differences: kernels of dynamic shape are judged too (nothing about them makes the number
 * wrong), and of a mixed kernel the cube's blocks are counted in cube cores.
 */
#include <math.h>
#include <stdlib.h>

#include "advice/kernels.h"
#include "report/lang.h"

static const struct np_column columns[] = {
	NP_KERNEL_NAME_COLUMNS,
	{"task_type", "", NP_COL_TEXT, "accelerator core"},
	{"task_duration", "", NP_COL_REAL, "duration, us"},
	{"income", "", NP_COL_REAL, "us, upper bound: its time times the share of idle places"},
	{"block_dim", "", NP_COL_INT, "blocks"},
	{"mix_block_dim", "", NP_COL_INT, "blocks of the other core of a mixed kernel"},
	NP_KERNEL_SHAPE_COLUMNS,
};

struct cores {
	const struct np_analysis *rank;
	uint32_t cube, vector;
};

/* How many cores its blocks are spread over; 0: not judged. */
static uint32_t cores_of(const struct cores *cores, uint32_t row)
{
	if (np_kernel_on(cores->rank, row, "AI_VECTOR_CORE"))
		return cores->vector;
	return np_kernel_on(cores->rank, row, "AI_CORE") ||
	                       np_kernel_on(cores->rank, row, "MIX_AIC")
	               ? cores->cube
	               : 0;
}

static bool uneven(const void *how, uint32_t row)
{
	const struct cores *cores = how;
	const struct np_kernels *kernels = &cores->rank->profile->kernels;
	uint32_t blocks = kernels->block_num[row], mix = kernels->mix_block_num[row];
	uint32_t n = cores_of(cores, row);
	if (n == 0 || blocks == 0 || blocks == NP_NO_U32 || blocks % n == 0)
		return false;
	/* a mixed kernel may use all vector cores instead */
	return !(np_kernel_on(cores->rank, row, "MIX_AIC") && mix > 0 && mix != NP_NO_U32 &&
	         mix % cores->vector == 0);
}

/* Of its time, what full rounds would save: they'd do in the same time more. */
static double income_ns(const struct cores *cores, uint32_t row)
{
	double n = cores_of(cores, row), blocks = cores->rank->profile->kernels.block_num[row];
	double places = ceil(blocks / n) * n;
	return (double)cores->rank->profile->kernels.dur_ns[row] * (1 - blocks / places);
}

static void put(const void *how, struct np_table *table, uint32_t row)
{
	const struct cores *cores = how;
	const struct np_kernels *kernels = &cores->rank->profile->kernels;
	uint32_t mix = kernels->mix_block_num[row];
	np_cells_kernel_name(cores->rank, table, row);
	np_cell_id(cores->rank, table, kernels->core[row]);
	np_cell_kernel_us(cores->rank, table, row);
	np_cell_real(table, income_ns(cores, row) / 1e3);
	np_cell_int(table, kernels->block_num[row]);
	if (mix == NP_NO_U32)
		np_cell_na(table);
	else
		np_cell_int(table, mix);
	np_cells_kernel_shapes(cores->rank, table, row);
}

static void tell(struct np_advice *self, const struct np_checker *checker,
                 const struct cores *cores, const struct np_kernel_list *list)
{
	char types[NP_TYPES_SIZE];
	double income = 0;
	for (size_t i = 0; i < list->rows.n; i++)
		income += income_ns(cores, list->rows.v[i]);
	struct np_problem_text text = {
		.code = "ADVICE_BLOCK_DIM",
		.count = list->rows.n,
		.total_us = np_per_step_us(self, list->total),
		.gain_us = income / 1000 / self->steps,
		.advice = NP_N("Shapes that split evenly over the cores (batch, heads, sequence as "
	                       "multiples of their number), larger batches, or fused operators; "
	                       "an operator of your own: choose the number of blocks by the "
	                       "number of cores."),
	};
	np_kernel_types(self, list, types);
	struct np_finding *finding = np_advice_problem(
		self, checker, &text,
		"%zu operators do not make full use of %u AI cores or %u vector cores: %s",
		list->rows.n, cores->cube, cores->vector, types);
	np_kernel_evidence(self, list, finding);
	np_kernel_rows(self, list, NP_ADVICE_TABLE(self, checker, columns), put, cores);
}

static void run(struct np_advice *self, const struct np_checker *checker)
{
	const struct np_chip *chip = &self->rank->capture->chip;
	struct cores cores = {.rank = self->rank};
	struct np_kernel_list list;
	if (!chip->recorded || chip->ai_cores <= 0 || chip->ai_cores > 10000) {
		/* only the raw dump knows, and most captures come without: no reason to fail */
		np_report_note(self->report,
		               "Block Dim Issues was not judged: the number of cores is in "
		               "info.json of the raw dump (PROF_*/device_N), which is not here");
		return;
	}
	cores.cube = cores.vector = (uint32_t)chip->ai_cores;
	if (chip->vector_cores > 0 && chip->vector_cores <= 10000)
		cores.vector = (uint32_t)chip->vector_cores;
	if (np_kernels_where(self, uneven, &cores, &list) && list.rows.n > 0)
		tell(self, checker, &cores, &list);
	np_kernel_list_release(&list);
}

const struct np_checker np_checker_block_dim = {
	.name = "block_dim",
	.dimension = NP_DIM_COMPUTATION,
	.category = NP_N("Block Dim Issues"),
	.category_zh = "block dim 问题",
	.run = run,
};
