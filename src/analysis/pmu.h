/*
 * What the PMU says about a kernel: which unit was busy, by the core that worked.
 *
 * A ratio is the share of the core's time in which a unit worked. It is kept in
 * 1/1000, as the csv prints it; a database has more digits, and rounding them
 * here makes both formats give one answer.
 */
#ifndef NP_ANALYSIS_PMU_H
#define NP_ANALYSIS_PMU_H

#include "analysis/analysis.h"

#define NP_NO_RATIO ((int16_t)-1)

/* id, name: the unit with the largest ratio (requirements §2.10) */
#define NP_BOUND_MAP(X)           \
	X(CUBE, "cube-bound")     \
	X(VECTOR, "vector-bound") \
	X(MTE, "mte-bound")       \
	X(SCALAR, "scalar-bound") \
	X(NONE, "unsupported")

enum np_bound {
#define X(id, name) NP_BOUND_##id,
	NP_BOUND_MAP(X)
#undef X
		NP_N_BOUNDS,
};

const char *np_bound_name(enum np_bound bound);

/* Ratios of one kernel in 1/1000; NP_NO_RATIO where it is N/A or not collected. */
struct np_pipes {
	int16_t mac, vec, mte1, mte2, mte3, scalar, fixpipe;
	uint8_t bound; /* enum np_bound */
	uint8_t cube;  /* 1: the ratios are those of the cube core, 0: of the vector core */
};

/* By kernel row, for the rows of the analysis; the others have no ratios. NULL: out of
 * memory. The caller frees it. */
struct np_pipes *np_pipes_all(const struct np_analysis *self);

/* Is any kernel's bound known? */
bool np_pipes_known(const struct np_analysis *self, const struct np_pipes *pipes);

/* max(mac, vec), NP_NO_RATIO when neither is known. */
int16_t np_pipes_busy(const struct np_pipes *pipes);

/* mte2 / max(mac, vec); NaN, "unsupported", when one is N/A or the divisor is 0 (never 0:
 * requirements §2.10). */
double np_pipes_memory_bound(const struct np_pipes *pipes);

#endif
