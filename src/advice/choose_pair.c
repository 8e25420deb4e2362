/* A slow rank and a fast one to compare it with. */
#include "advice/choose.h"

struct pair {
	struct np_spread spread; /* its rank and step are the slow one */
	size_t fast;             /* row of the cluster */
	double least;            /* the figure of the fast one */
};

/* Among the rows for which stages[] is `stage` (NULL: all). */
static bool find(const struct np_advice *self, enum np_dimension dimension, const uint32_t *stages,
                 uint32_t stage, struct pair *out)
{
	const struct np_cluster *cluster = self->cluster;
	struct np_spread *spread = &out->spread;
	out->fast = SIZE_MAX;
	if (!np_advice_spread(self, dimension, stages, stage, spread))
		return false;
	for (size_t r = 0; r < cluster->ranks.n; r++) {
		const struct np_timeline_steps *steps =
			np_digest_find(cluster->ranks.v[r].digest, &np_timeline_steps_desc);
		if (r == spread->rank || (stages && stages[r] != stage) ||
		    !np_advice_has_kernels(cluster->ranks.v[r].capture))
			continue;
		for (size_t s = 0; steps && s < steps->n; s++) {
			double value = np_advice_value(steps, s, dimension);
			if (steps->step[s] == spread->step && value >= 0 &&
			    (out->fast == SIZE_MAX || value < out->least)) {
				out->least = value;
				out->fast = r;
			}
		}
	}
	double mean = spread->sum / (double)spread->n;
	return out->fast != SIZE_MAX &&
	       (spread->best - out->least) / mean >= np_rule_value(self, "slow_rank_gap");
}

static double gap_of(const struct pair *pair)
{
	return pair->spread.best - pair->least;
}

bool np_advice_choose_pair(const struct np_advice *self, enum np_dimension dimension,
                           struct np_choice *slow, struct np_choice *fast, double *gap_us)
{
	struct pair best = {.fast = SIZE_MAX}, pair;
	uint32_t n = 0, *stages = NULL;
	if (!self->cluster || self->options->has_rank)
		return false;
	if (dimension == NP_DIM_COMPUTATION) {
		stages = np_advice_stages(self, &n);
		if (!stages)
			return false;
	}
	bool found = n <= 1 && find(self, dimension, NULL, 0, &best);
	for (uint32_t s = 0; n > 1 && s < n; s++)
		if (find(self, dimension, stages, s, &pair) &&
		    (!found || gap_of(&pair) > gap_of(&best))) {
			best = pair;
			found = true;
		}
	np_free(stages);
	if (!found)
		return false;
	np_advice_take(self, &best.spread, slow);
	*fast = *slow;
	fast->capture = self->cluster->ranks.v[best.fast].capture;
	fast->rank = self->cluster->ranks.v[best.fast].rank;
	*gap_us = gap_of(&best);
	return true;
}
