/* Cells that look as the official tool prints them. */
#ifndef NP_CLUSTER_CELLS_H
#define NP_CLUSTER_CELLS_H

#include "report/report.h"

/* A time in us as a Decimal prints: exact, no zeros at the end. */
void np_cell_decimal_us(struct np_table *table, np_ns ns);

/* "1651.3 us": rounded to three decimals, as Python prints it. */
void np_buf_add_python_us(struct np_buf *out, double us);

#endif
