/*
 * Kernels that a checker of the computation complains about. Private to src/advice/.
 *
 *   rows of the rank ──wanted?──▶ list, longest first ──▶ problem, evidence, rows of its table
 *
 * Rows that are equal in every column are written once (as the official tool does), so
 * the number of problems may exceed that of the table.
 */
#ifndef NP_ADVICE_KERNELS_H
#define NP_ADVICE_KERNELS_H

#include "advice/checker.h"
#include "analysis/group.h"

struct np_kernel_list {
	NP_VEC(uint32_t) rows; /* kernel rows */
	np_ns total, longest;
};

/* The kernels of the rank for which wanted() holds, longest first. false: out of memory
 * (self->oom is set). Release in every case. */
bool np_kernels_where(struct np_advice *self, bool (*wanted)(const void *how, uint32_t row),
                      const void *how, struct np_kernel_list *out);
void np_kernel_list_release(struct np_kernel_list *self);

/* Is the kernel on this core ("AI_CORE")? */
static inline bool np_kernel_on(const struct np_analysis *rank, uint32_t row, const char *core)
{
	return np_str_is(np_text(rank, rank->profile->kernels.core[row]), core);
}

enum { NP_TYPES_SIZE = 400, NP_TYPES_SHOWN = 10 };

/* The first ten operator types of the list: "MatMulV3, Add". */
void np_kernel_types(const struct np_advice *self, const struct np_kernel_list *list,
                     char out[NP_TYPES_SIZE]);

/* Where the three longest are: step, stream, task, duration, and the call stack or the
 * operator that launched them where they are recorded. */
void np_kernel_evidence(const struct np_advice *self, const struct np_kernel_list *list,
                        struct np_finding *finding);

/* The call stack of the host operator around the launch; where none is recorded NP_ID_NONE.
 * *op: that operator's name, or NP_ID_NONE. Wants np_links_build() and NP_HOST_ARGS. */
uint32_t np_kernel_stack(const struct np_advice *self, uint32_t row, uint32_t *op);

/* Its first rows without those that repeat one before in all columns, at most the rule
 * `table_rows`; put() writes one. Says in a note when there are more. */
void np_kernel_rows(struct np_advice *self, const struct np_kernel_list *list,
                    struct np_table *table,
                    void (*put)(const void *how, struct np_table *table, uint32_t row),
                    const void *how);

/* Cells of many official sheets: op_name, op_type; the duration in us; and shapes, data types
 * and formats of inputs and outputs. */
#define NP_KERNEL_NAME_COLUMNS                              \
	{"op_name", "", NP_COL_TEXT, "name of the kernel"}, \
	{                                                   \
		"op_type", "", NP_COL_TEXT, "operator type" \
	}
#define NP_KERNEL_SHAPE_COLUMNS                                              \
	{"input_shapes", "", NP_COL_TEXT, "shapes of the inputs"},           \
		{"input_data_types", "", NP_COL_TEXT, "their data types"},   \
		{"input_formats", "", NP_COL_TEXT, "their formats"},         \
		{"output_shapes", "", NP_COL_TEXT, "shapes of the outputs"}, \
		{"output_data_types", "", NP_COL_TEXT, "their data types"},  \
	{                                                                    \
		"output_formats", "", NP_COL_TEXT, "their formats"           \
	}
void np_cells_kernel_name(const struct np_analysis *rank, struct np_table *table, uint32_t row);
void np_cell_kernel_us(const struct np_analysis *rank, struct np_table *table, uint32_t row);
void np_cells_kernel_shapes(const struct np_analysis *rank, struct np_table *table, uint32_t row);
/* A text of the capture; not available when it is empty. */
void np_cell_id(const struct np_analysis *rank, struct np_table *table, uint32_t id);

#endif
