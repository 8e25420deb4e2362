#include "analysis/pmu.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_RATIO = 9999 };

enum { AIC, AIV, PLAIN, SIDES };

/* Columns of one side: aic_mac_ratio, aiv_mac_ratio, or mac_ratio of a 910A. */
struct side {
	const double *mac, *vec, *mte1, *mte2, *mte3, *scalar, *fixpipe, *time;
	bool any;
};

const char *np_bound_name(enum np_bound bound)
{
	static const char *const names[] = {
#define X(id, name) name,
		NP_BOUND_MAP(X)
#undef X
	};
	return names[bound];
}

static const double *find(const struct np_profile *profile, const char *prefix, const char *unit)
{
	char name[48];
	(void)snprintf(name, sizeof name, "%s%s_ratio", prefix, unit);
	const struct np_metric *metric = np_profile_metric(profile, name);
	return metric ? metric->v : NULL;
}

static struct side side_of(const struct np_profile *profile, const char *prefix,
                           const char *time_name)
{
	struct side side = {
		.mac = find(profile, prefix, "mac"),
		.vec = find(profile, prefix, "vec"),
		.mte1 = find(profile, prefix, "mte1"),
		.mte2 = find(profile, prefix, "mte2"),
		.mte3 = find(profile, prefix, "mte3"),
		.scalar = find(profile, prefix, "scalar"),
		.fixpipe = find(profile, prefix, "fixpipe"),
	};
	const struct np_metric *time = np_profile_metric(profile, time_name);
	side.time = time ? time->v : NULL;
	side.any = side.mac || side.vec || side.mte2;
	return side;
}

static int16_t ratio_at(const double *column, uint32_t row)
{
	if (!column || !(column[row] >= 0)) /* NaN too */
		return NP_NO_RATIO;
	double rounded = column[row] * 1000 + 0.5;
	return rounded < MAX_RATIO ? (int16_t)rounded : (int16_t)MAX_RATIO;
}

static double time_at(const struct side *side, uint32_t row)
{
	return side->time && side->time[row] >= 0 ? side->time[row] : -1;
}

/* Where the ratios of a core are; of a mixed kernel on the side that worked longer. */
enum where { ON_AIC, ON_AIV, ON_PLAIN, LONGER_OR_AIC, LONGER_OR_AIV };

static enum where where_of(const struct side *sides, np_str core)
{
	if (!sides[AIC].any && !sides[AIV].any)
		return ON_PLAIN;
	if (np_str_is(core, "AI_CORE"))
		return ON_AIC;
	if (np_str_is(core, "AI_VECTOR_CORE"))
		return ON_AIV;
	return np_str_is(core, "MIX_AIV") ? LONGER_OR_AIV : LONGER_OR_AIC;
}

static int side_for(const struct side *sides, enum where where, uint32_t row)
{
	if (where <= ON_PLAIN)
		return (int)where;
	double aic = time_at(&sides[AIC], row), aiv = time_at(&sides[AIV], row);
	if (aic == aiv)
		return where == LONGER_OR_AIV ? AIV : AIC;
	return aic > aiv ? AIC : AIV;
}

static int16_t largest(int16_t a, int16_t b)
{
	return a > b ? a : b;
}

static enum np_bound bound_of(const struct np_pipes *p)
{
	const int16_t of[NP_BOUND_NONE] = {
		[NP_BOUND_CUBE] = p->mac,
		[NP_BOUND_VECTOR] = p->vec,
		[NP_BOUND_MTE] = largest(largest(p->mte1, p->mte2), largest(p->mte3, p->fixpipe)),
		[NP_BOUND_SCALAR] = p->scalar,
	};
	int best = NP_BOUND_NONE;
	for (int i = 0; i < NP_BOUND_NONE; i++)
		if (of[i] > 0 && (best == NP_BOUND_NONE || of[i] > of[best]))
			best = i;
	return (enum np_bound)best;
}

struct np_pipes *np_pipes_all(const struct np_analysis *self)
{
	const struct np_profile *profile = self->profile;
	const struct np_kernels *kernels = &profile->kernels;
	const struct side sides[SIDES] = {
		[AIC] = side_of(profile, "aic_", "aicore_time(us)"),
		[AIV] = side_of(profile, "aiv_", "aiv_time(us)"),
		[PLAIN] = side_of(profile, "", "aicore_time(us)"),
	};
	struct np_pipes *pipes = np_realloc(NULL, kernels->n, sizeof *pipes);
	for (size_t i = 0; pipes && i < kernels->n; i++)
		pipes[i] = (struct np_pipes){-1, -1, -1, -1, -1, -1, -1, NP_BOUND_NONE, 0};
	uint32_t core = NP_ID_NONE;
	enum where where = where_of(sides, NP_STR(""));
	for (size_t i = 0; pipes && i < self->n_rows; i++) {
		uint32_t row = self->rows[i];
		if (self->class[row] == NP_CLASS_COMM || self->class[row] == NP_CLASS_AICPU)
			continue;
		if (kernels->core[row] != core) {
			core = kernels->core[row];
			where = where_of(sides, np_text(self, core));
		}
		int which = side_for(sides, where, row);
		const struct side *side = &sides[which];
		struct np_pipes *p = &pipes[row];
		p->mac = ratio_at(side->mac, row);
		p->vec = ratio_at(side->vec, row);
		p->mte1 = ratio_at(side->mte1, row);
		p->mte2 = ratio_at(side->mte2, row);
		p->mte3 = ratio_at(side->mte3, row);
		p->scalar = ratio_at(side->scalar, row);
		p->fixpipe = ratio_at(side->fixpipe, row);
		/* a database has ratios of units that the core does not have */
		if (which == AIC)
			p->vec = p->mte3 = NP_NO_RATIO;
		if (which == AIV)
			p->mac = p->mte1 = p->fixpipe = NP_NO_RATIO;
		p->bound = (uint8_t)bound_of(p);
		p->cube = which == AIC || (which == PLAIN && p->mac > p->vec);
	}
	return pipes;
}

bool np_pipes_known(const struct np_analysis *self, const struct np_pipes *pipes)
{
	for (size_t i = 0; i < self->n_rows; i++)
		if (pipes[self->rows[i]].bound != NP_BOUND_NONE)
			return true;
	return false;
}

int16_t np_pipes_busy(const struct np_pipes *pipes)
{
	return largest(pipes->mac, pipes->vec);
}

double np_pipes_memory_bound(const struct np_pipes *pipes)
{
	int16_t busy = np_pipes_busy(pipes);
	return busy > 0 && pipes->mte2 >= 0 ? (double)pipes->mte2 / busy : NAN;
}
