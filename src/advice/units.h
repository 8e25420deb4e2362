/*
 * How busy the units of the cores were, by kernel: what the PMU's columns say of the
 * cores that the kernel ran on. Private to src/advice/.
 *
 *   AI_CORE          aic_*            mac scalar mte1 mte2 fixpipe
 *   AI_VECTOR_CORE   aiv_*            vec scalar mte2 mte3
 *   mixed            both             the busier one's scalar and mte2
 *   910A             no prefix        all
 *
 * The bound of src/analysis/pmu.h is that of the one side that worked longer; a mixed kernel
 * without any busy unit has to be so on both. Ratios are rounded to 1/1000, as text prints
 * them, so that both formats give one answer.
 */
#ifndef NP_ADVICE_UNITS_H
#define NP_ADVICE_UNITS_H

#include "analysis/analysis.h"

enum np_unit {
	NP_UNIT_VEC,
	NP_UNIT_MAC,
	NP_UNIT_SCALAR,
	NP_UNIT_MTE1,
	NP_UNIT_MTE2,
	NP_UNIT_MTE3,
	NP_UNIT_FIXPIPE,
	NP_N_UNITS,
};

struct np_unit_columns {
	const struct np_analysis *rank;
	const double *aic[NP_N_UNITS], *aiv[NP_N_UNITS], *plain[NP_N_UNITS]; /* or NULL */
	bool any;   /* was anything collected? */
	bool split; /* the columns have the prefixes aic_, aiv_ */
};

void np_unit_columns_find(const struct np_analysis *rank, struct np_unit_columns *out);

/* Ratios of one kernel; NaN: its cores have no such unit, or nothing is recorded. */
struct np_unit_ratios {
	double of[NP_N_UNITS];
};

void np_units_of(const struct np_unit_columns *columns, uint32_t row, struct np_unit_ratios *out);

/* The ratio of a unit on one side of a mixed kernel: the cube's (aic_*) or the vector core's;
 * without prefixes the only one. NaN as above. */
double np_unit_on(const struct np_unit_columns *columns, uint32_t row, bool cube,
                  enum np_unit unit);

/* The largest ratio; NaN: none is known, or all are 0. */
double np_units_busiest(const struct np_unit_ratios *ratios);

#endif
