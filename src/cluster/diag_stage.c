#include "cluster/diag_stage.h"

#include <stdlib.h>

static np_ns work_of(const struct np_diagnosis *self, uint32_t rank)
{
	const struct np_timeline_steps *steps = self->steps[rank];
	np_ns sum = 0, n = 0;
	for (size_t s = 0; s < steps->n; s++) {
		if (self->kernels[rank] && steps->start_ns[s] != NP_NO_I64)
			sum += steps->compute_end_ns[s] - steps->compute_start_ns[s];
		else if (!self->kernels[rank] && steps->computing_us[s] >= 0 &&
		         steps->computing_us[s] < 1e12)
			sum += (np_ns)(steps->computing_us[s] * 1000);
		else
			continue;
		n++;
	}
	return n > 0 ? sum / n : -1;
}

/* What a rank waits for its neighbours in the pipeline, per step. */
static np_ns wait_of(const struct np_diagnosis *self, uint32_t rank)
{
	np_ns sum = 0;
	for (uint32_t row = 0; row < self->ops[rank]->n; row++) {
		uint32_t k = np_diag_instance_of(self, rank, row);
		if (k == NP_DIAG_NONE || !self->instances.v[k].p2p)
			continue;
		const struct np_diag_instance *instance = &self->instances.v[k];
		np_ns wait = np_diag_wait(self, instance, np_diag_member_of(self, instance, rank));
		sum += wait > 0 ? wait : 0;
	}
	return self->n_steps > 0 ? sum / (np_ns)self->n_steps : 0;
}

static void judge_stages(struct np_stages *self, np_ns *scratch)
{
	for (uint32_t s = 0; s < self->list.n; s++) {
		scratch[s] = self->list.v[s].work;
		if (self->list.v[s].work > self->list.v[self->slowest].work)
			self->slowest = s;
	}
	/* of two stages the other one is what to compare with, not the mean of both */
	np_ns typical = self->list.n == 2 ? self->list.v[1 - self->slowest].work
	                                  : np_diag_median(scratch, self->list.n);
	self->excess = self->list.v[self->slowest].work - typical;
}

static bool sum_stage(const struct np_diagnosis *self, struct np_stages *out, uint32_t index,
                      np_ns *scratch)
{
	struct np_stage stage = {.ranks = 0};
	size_t n = 0;
	for (uint32_t r = 0; r < self->n_ranks; r++) {
		if (out->plan.places[r].digit[NP_DIM_PP] != index)
			continue;
		np_ns work = work_of(self, r);
		if (work >= 0)
			scratch[n++] = work;
		stage.wait += wait_of(self, r);
		stage.ranks++;
	}
	out->wait += stage.wait;
	stage.work = np_diag_median(scratch, n);
	if (stage.ranks > 0)
		stage.wait /= stage.ranks;
	return np_vec_push(&out->list, stage);
}

/* A rank of the first stage sends each micro-batch on once. */
static uint32_t count_sends(const struct np_diagnosis *self, const struct np_stages *stages)
{
	uint32_t least = UINT32_MAX;
	for (uint32_t r = 0; r < self->n_ranks; r++) {
		const struct np_timeline_ops *ops = self->ops[r];
		uint32_t n = 0;
		if (stages->plan.places[r].digit[NP_DIM_PP] != 0)
			continue;
		for (uint32_t row = 0; row < ops->n; row++)
			n += np_str_is(np_cluster_text(self->cluster, ops->type[row]), "send");
		least = n < least ? n : least;
	}
	return least == UINT32_MAX || self->n_steps == 0 ? 0 : least / (uint32_t)self->n_steps;
}

bool np_diag_stages(struct np_diagnosis *self, struct np_stages *out)
{
	*out = (struct np_stages){.wait = 0};
	out->has_plan = np_parallel_of(self->cluster, &out->plan, NULL) == NP_OK;
	if (!out->has_plan)
		return false;
	uint32_t n_stages = 0;
	for (uint32_t r = 0; r < self->n_ranks; r++) {
		uint32_t pp = out->plan.places[r].digit[NP_DIM_PP];
		self->stage_of[r] = pp != NP_NO_INDEX ? pp : 0;
		if (pp != NP_NO_INDEX && pp + 1 > n_stages)
			n_stages = pp + 1;
	}
	if (n_stages < 2 || n_stages > self->n_ranks)
		return true;
	np_ns *scratch = np_realloc(NULL, self->n_ranks + 1, sizeof *scratch);
	bool ok = scratch != NULL;
	for (uint32_t s = 0; ok && s < n_stages; s++)
		ok = sum_stage(self, out, s, scratch);
	if (ok) {
		judge_stages(out, scratch);
		out->micro_batches = count_sends(self, out);
		out->wait /= (np_ns)self->n_ranks;
	}
	np_free(scratch);
	return ok;
}

void np_stages_release(struct np_stages *self)
{
	if (self->has_plan)
		np_parallel_release(&self->plan);
	np_vec_release(&self->list);
}
