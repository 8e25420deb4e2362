#include "advice/units.h"

#include <math.h>
#include <stdio.h>

static const char *const names[NP_N_UNITS] = {"vec",  "mac",  "scalar", "mte1",
                                              "mte2", "mte3", "fixpipe"};

static bool find_side(const struct np_profile *profile, const char *prefix,
                      const double *out[NP_N_UNITS])
{
	bool any = false;
	for (int u = 0; u < NP_N_UNITS; u++) {
		char name[48];
		(void)snprintf(name, sizeof name, "%s%s_ratio", prefix, names[u]);
		const struct np_metric *metric = np_profile_metric(profile, name);
		out[u] = metric ? metric->v : NULL;
		any |= metric != NULL;
	}
	return any;
}

void np_unit_columns_find(const struct np_analysis *rank, struct np_unit_columns *out)
{
	*out = (struct np_unit_columns){.rank = rank};
	bool aic = find_side(rank->profile, "aic_", out->aic);
	out->split = find_side(rank->profile, "aiv_", out->aiv) || aic;
	bool plain = find_side(rank->profile, "", out->plain);
	out->any = out->split || plain;
}

static double at(const double *column, uint32_t row)
{
	return column && column[row] >= 0 ? round(column[row] * 1000) / 1000 : NAN;
}

/* A database has ratios of units that a core does not have. */
static bool has_unit(bool cube, int unit)
{
	return cube ? unit != NP_UNIT_VEC && unit != NP_UNIT_MTE3
	            : unit != NP_UNIT_MAC && unit != NP_UNIT_MTE1 && unit != NP_UNIT_FIXPIPE;
}

void np_units_of(const struct np_unit_columns *columns, uint32_t row, struct np_unit_ratios *out)
{
	const struct np_analysis *rank = columns->rank;
	np_str core = np_text(rank, rank->profile->kernels.core[row]);
	enum np_class class = (enum np_class)rank->class[row];
	bool works = class != NP_CLASS_COMM && class != NP_CLASS_AICPU;
	bool aic = works && columns->split && !np_str_is(core, "AI_VECTOR_CORE");
	bool aiv = works && columns->split && !np_str_is(core, "AI_CORE");
	for (int u = 0; u < NP_N_UNITS; u++) {
		double cube = aic && has_unit(true, u) ? at(columns->aic[u], row) : NAN;
		double vector = aiv && has_unit(false, u) ? at(columns->aiv[u], row) : NAN;
		out->of[u] = fmax(cube, vector); /* of a number and NaN the number */
		if (works && !columns->split)
			out->of[u] = at(columns->plain[u], row);
	}
}

double np_unit_on(const struct np_unit_columns *columns, uint32_t row, bool cube, enum np_unit unit)
{
	if (!columns->split)
		return at(columns->plain[unit], row);
	return at(cube ? columns->aic[unit] : columns->aiv[unit], row);
}

double np_units_busiest(const struct np_unit_ratios *ratios)
{
	double most = NAN;
	for (int u = 0; u < NP_N_UNITS; u++)
		most = fmax(most, ratios->of[u]);
	return most > 0 ? most : NAN;
}
