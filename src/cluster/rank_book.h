/*
 * A workbook per rank from a table of all ranks, as the text export of some modes has it:
 * DIR/<recipe's dir>/<file><rank>.xlsx, one sheet "Sheet1".
 */
#ifndef NP_CLUSTER_RANK_BOOK_H
#define NP_CLUSTER_RANK_BOOK_H

#include "cluster/export.h"

struct np_rank_book {
	const char *table;               /* of the report */
	size_t rank_column;              /* INT; chooses the rows */
	const struct np_column *columns; /* of the sheet: the table's in order, without the rank's
	                                  * unless with_rank; types are the table's */
	size_t n_columns;
	bool with_rank;
	const char *file;    /* "module_statistic_" */
	size_t first_merged; /* columns before it keep a cell in every row */
	size_t n_merged;     /* from there: equal cells below each other are one */
};

enum np_status np_export_rank_books(struct np_export *self, const struct np_recipe *recipe,
                                    const struct np_rank_book *book, struct np_err *err);

/* The cells of a row from this column on, into a table with as many columns of these types. */
void np_export_copy_cells(const struct np_table *from, size_t row, size_t column,
                          struct np_table *to);

#endif
