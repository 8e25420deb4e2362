/* The slowest ranks of a pipeline's stages. */
#include "advice/choose.h"
#include "cluster/parallel.h"

/* A stage whose ranks differ, and by how much. */
struct gap {
	uint32_t stage;
	struct np_spread spread;
};

struct gaps {
	NP_VEC(struct gap) of;
};

static double width(const struct gap *gap)
{
	return gap->spread.max - gap->spread.min;
}

/* Stage of each rank into `out`; how many there are. */
static uint32_t stages_of(const struct np_advice *self, const struct np_parallel_plan *plan,
                          uint32_t *out)
{
	uint32_t n = 0;
	for (size_t r = 0; r < self->cluster->ranks.n; r++) {
		out[r] = plan->places[r].digit[NP_DIM_PP];
		if (out[r] != NP_NO_INDEX && out[r] >= n)
			n = out[r] + 1;
	}
	return n > self->cluster->ranks.n ? 0 : n;
}

uint32_t *np_advice_stages(const struct np_advice *self, uint32_t *n)
{
	struct np_parallel_plan plan;
	bool ok = np_parallel_of(self->cluster, &plan, NULL) == NP_OK;
	uint32_t *stages = ok ? np_realloc(NULL, self->cluster->ranks.n + 1, sizeof *stages) : NULL;
	*n = stages ? stages_of(self, &plan, stages) : 0;
	np_parallel_release(&plan);
	return stages;
}

static bool find_gaps(const struct np_advice *self, struct gaps *out)
{
	uint32_t n, *stages = np_advice_stages(self, &n);
	bool ok = stages != NULL;
	for (uint32_t s = 0; ok && n > 1 && s < n; s++) {
		struct gap gap = {.stage = s};
		if (np_advice_spread(self, NP_DIM_COMPUTATION, stages, s, &gap.spread))
			ok = np_vec_push(&out->of, gap);
	}
	np_free(stages);
	return ok;
}

/* Leave the widest, in order. */
static void drop_narrow(const struct np_advice *self, struct gaps *gaps)
{
	if (gaps->of.n > NP_STAGE_CHOICES)
		np_report_note(
			self->report,
			"computation: ranks of %zu stages of the pipeline differ; the %d that "
			"differ most are looked at",
			gaps->of.n, NP_STAGE_CHOICES);
	while (gaps->of.n > NP_STAGE_CHOICES) {
		size_t least = 0;
		for (size_t i = 1; i < gaps->of.n; i++)
			if (width(&gaps->of.v[i]) < width(&gaps->of.v[least]))
				least = i;
		for (size_t i = least; i + 1 < gaps->of.n; i++)
			gaps->of.v[i] = gaps->of.v[i + 1];
		gaps->of.n--;
	}
}

bool np_advice_choose_stages(const struct np_advice *self, struct np_choice out[NP_STAGE_CHOICES],
                             size_t *n)
{
	struct gaps gaps = {.of = {0}};
	*n = 0;
	if (!self->cluster || self->options->has_rank)
		return true;
	bool ok = find_gaps(self, &gaps);
	if (ok)
		drop_narrow(self, &gaps);
	for (size_t i = 0; ok && i < gaps.of.n; i++)
		np_advice_take(self, &gaps.of.v[i].spread, &out[(*n)++]);
	np_vec_release(&gaps.of);
	return ok;
}
