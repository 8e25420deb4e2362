#include "advice/choose.h"

#include <math.h>

#include "cluster/timeline.h"

bool np_advice_has_kernels(const struct np_capture *capture)
{
	return np_capture_count(capture, NP_ROLE_KERNELS) > 0 ||
	       np_capture_count(capture, NP_ROLE_OP_SUMMARY) > 0 ||
	       (capture->formats & NP_HAS_DB) != 0;
}

/* The first with kernels, else the first with data. */
static const struct np_capture *first_of(const struct np_advice *self)
{
	const struct np_capture *any = NULL;
	for (size_t i = 0; i < self->all->captures.n; i++) {
		const struct np_capture *capture = self->all->captures.v[i];
		if (!np_capture_has_data(capture) ||
		    (self->options->has_rank && capture->rank != self->options->rank))
			continue;
		if (np_advice_has_kernels(capture))
			return capture;
		any = any ? any : capture;
	}
	return any;
}

/* One value of a rank and step: the largest is looked for among ranks with kernels. */
static void add(struct np_spread *self, double value, size_t rank, int64_t step, bool usable)
{
	if (!(value >= 0 && value < 1e15))
		return;
	if (usable && (self->rank == SIZE_MAX || value > self->best)) {
		self->best = value;
		self->rank = rank;
		self->step = step;
	}
	self->max = self->n == 0 || value > self->max ? value : self->max;
	self->min = self->n == 0 || value < self->min ? value : self->min;
	self->sum += value;
	self->n++;
}

double np_advice_value(const struct np_timeline_steps *steps, size_t row,
                       enum np_dimension dimension)
{
	return dimension == NP_DIM_COMPUTATION ? steps->computing_us[row] : steps->free_us[row];
}

bool np_advice_spread(const struct np_advice *self, enum np_dimension dimension,
                      const uint32_t *rows, uint32_t row, struct np_spread *out)
{
	const struct np_cluster *cluster = self->cluster;
	*out = (struct np_spread){.rank = SIZE_MAX};
	for (size_t r = 0; r < cluster->ranks.n; r++) {
		const struct np_timeline_steps *steps =
			np_digest_find(cluster->ranks.v[r].digest, &np_timeline_steps_desc);
		bool usable = np_advice_has_kernels(cluster->ranks.v[r].capture);
		if (rows && rows[r] != row)
			continue;
		for (size_t s = 0; steps && s < steps->n; s++)
			if (!self->options->has_step || steps->step[s] == self->options->step)
				add(out, np_advice_value(steps, s, dimension), r, steps->step[s],
				    usable);
	}
	double mean = out->n > 0 ? out->sum / (double)out->n : 0;
	return out->rank != SIZE_MAX && mean > 0 &&
	       (out->max - out->min) / mean >= np_rule_value(self, "slow_rank_gap");
}

void np_advice_take(const struct np_advice *self, const struct np_spread *spread,
                    struct np_choice *out)
{
	*out = (struct np_choice){.capture = self->cluster->ranks.v[spread->rank].capture,
	                          .rank = self->cluster->ranks.v[spread->rank].rank,
	                          .has_step = self->options->has_step,
	                          .step = self->options->step};
	if (!out->has_step && spread->step != NP_NO_I64) {
		out->has_step = true;
		out->step = spread->step;
	}
}

void np_advice_choose(const struct np_advice *self, enum np_dimension dimension,
                      struct np_choice *out)
{
	struct np_spread spread;
	*out = (struct np_choice){.capture = first_of(self),
	                          .has_step = self->options->has_step,
	                          .step = self->options->step};
	out->rank = out->capture ? out->capture->rank : NP_NO_I64;
	if (!self->cluster || self->options->has_rank)
		return;
	if (dimension == NP_DIM_COMMUNICATION) {
		np_advice_least_bandwidth(self, out);
		return;
	}
	if (np_advice_spread(self, dimension, NULL, 0, &spread))
		np_advice_take(self, &spread, out);
}
