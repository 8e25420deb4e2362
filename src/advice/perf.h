/*
 * Cube, FA and Vector Operator Perf Analysis: one engine, three descriptions. Private to
 * src/advice/.
 *
 *   kernels by (name, input shapes) ──mean of each ratio──▶ unaffine?  shapes that do not fit
 *                                                           bound?     a unit is at its limit
 *                                                           else       room up to the limit
 *
 * The five first of each queue are listed, as in the official tool: unaffine and bound ones
 * by their time, the others by room.
 */
#ifndef NP_ADVICE_PERF_H
#define NP_ADVICE_PERF_H

#include "advice/kernels.h"
#include "advice/units.h"

enum { NP_PERF_LIMITS = 3 };

/* A unit at this share of the time is what bounds an operator. */
struct np_perf_limit {
	enum np_unit unit;
	bool cube;        /* the ratio of the cube side; else of the vector core */
	const char *rule; /* its threshold */
	const char *name; /* "mac" */
};

struct np_perf {
	const char *code;
	struct np_perf_limit limits[NP_PERF_LIMITS];
	int n_limits;
	const char *all_rule; /* NULL: bound by all when each is at its limit (two limits); else
	                       * when their sum reaches this */
	const char *all_name; /* "mac_and_mte2" */
	/* What is looked at: by one kernel of a group. */
	bool (*wanted)(struct np_advice *self, uint32_t row);
	/* Types with a smaller share of all durations, collectives too, are left out, but for those
	 * of a second; NULL: none is. */
	const char *share_rule;
	/* Groups too small to matter are left out; NULL: none is. */
	bool (*matters)(struct np_advice *self, const struct np_op_group *group);
	/* Which dimension does not fit, one sentence into `out`; NULL: not judged. */
	bool (*unaffine)(struct np_advice *self, uint32_t row, char *out, size_t size);
	const char *advice; /* np_tr()able */
};

/* Not every group has the same limits (attention forward and backward): several
 * descriptions make one table. */
void np_perf_run(struct np_advice *self, const struct np_checker *checker,
                 const struct np_perf *const *perfs, size_t n);

#endif
