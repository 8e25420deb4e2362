/* All ranks of a layout together, keeping only when each collective was over. */
#include <stdlib.h>

#include "synth/program.h"
#include "synth/rng.h"

enum { END_JITTER_NS = 400 }; /* by which the ends of a collective differ, at most */

/* What a communicator waits for: members come in turn, and one at a time is open. */
struct open_comm {
	uint32_t arrived, seq;
	uint32_t last_rank;
	np_ns last, second, sum; /* sum of arrivals, relative to the first */
	np_ns base;
};

struct lockstep {
	struct np_synth_plan *plan;
	struct np_sim *sims;
	struct open_comm *open; /* per group */
	uint32_t *ready;        /* ring of ranks that can run */
	bool *blocked;          /* per rank */
	size_t head, n;
	uint32_t done;
};

static void make_ready(struct lockstep *self, uint32_t rank)
{
	self->ready[(self->head + self->n++) % self->plan->options.ranks] = rank;
}

static void arrive(struct open_comm *open, uint32_t rank, np_ns at)
{
	if (open->arrived++ == 0) {
		open->base = open->last = at;
		open->last_rank = rank;
		open->sum = 0;
		return;
	}
	open->sum += at - open->base;
	if (at > open->last || (at == open->last && rank < open->last_rank)) {
		open->second = open->last;
		open->last = at;
		open->last_rank = rank;
	} else if (open->arrived == 2 || at > open->second) {
		open->second = at;
	}
}

/* The last member came: now all know the end, and who waited for it goes on. */
static bool resolve(struct lockstep *self, const struct np_synth_item *item)
{
	struct np_synth_plan *plan = self->plan;
	const struct np_synth_group *group = &plan->groups[item->group];
	struct open_comm *open = &self->open[item->group];
	uint64_t key = np_synth_comm_key(plan, item);
	np_ns wire = np_synth_wire_ns(plan, group, np_synth_shared_bytes(item), key);
	uint32_t n = group->count;
	struct np_synth_instance instance = {
		.group = item->group,
		.seq = open->seq++,
		.step = (uint32_t)item->step,
		.last_rank = open->last_rank,
		/* of a pair: the send stands for both */
		.coll = np_synth_is_p2p((enum np_synth_coll)item->coll) ? NP_COLL_SEND : item->coll,
		.last_ns = open->last,
		.late_ns = open->last - open->second,
		.wait_ns = (open->last - open->base) * n - open->sum,
		.transfer_ns = wire};
	for (uint32_t k = 0; k < n; k++) {
		uint32_t rank = np_synth_member_rank(group, k);
		struct np_sim *sim = &self->sims[rank];
		uint64_t noise = np_noise(plan->options.seed ^ 0xe4d5, (key << 14) + rank);
		*np_synth_meet_at(plan, (uint32_t)sim->step, sim->posted, rank) =
			(struct np_synth_meet){open->last,
		                               open->last + wire + (np_ns)(noise % END_JITTER_NS)};
		if (self->blocked[rank]) {
			self->blocked[rank] = false;
			make_ready(self, rank);
		}
	}
	open->arrived = 0;
	return np_vec_push(&plan->instances, instance);
}

/* The collective that the rank has just posted. */
static bool posted(struct lockstep *self, struct np_sim *sim)
{
	struct np_synth_plan *plan = self->plan;
	const struct np_synth_program *program = &plan->programs[np_synth_stage(plan, sim->rank)];
	const struct np_synth_act *act = &program->v[sim->at - 1];
	uint32_t group = np_synth_group_of(plan, sim->rank, (enum np_synth_dim)act->dim);
	struct open_comm *open = &self->open[group];
	np_ns at = np_synth_meet_at(plan, (uint32_t)sim->step, act->op, sim->rank)->last;
	arrive(open, sim->rank, at);
	if (open->arrived < plan->groups[group].count)
		return true;
	const struct np_synth_item item = {.coll = act->coll,
	                                   .group = group,
	                                   .index = open->seq,
	                                   .step = sim->step,
	                                   .len_bytes = np_synth_act_bytes(plan, act)};
	return resolve(self, &item);
}

static bool run_ready(struct lockstep *self)
{
	uint32_t ranks = self->plan->options.ranks;
	uint32_t rank = self->ready[self->head];
	self->head = (self->head + 1) % ranks;
	self->n--;
	struct np_sim *sim = &self->sims[rank];
	if (sim->step < 0 && sim->next_step == 0)
		if (self->plan->first_ns == 0 || sim->host < self->plan->first_ns)
			self->plan->first_ns = sim->host;
	for (;;) {
		enum np_sim_stop stop = np_sim_run(sim);
		if (stop == NP_SIM_DONE)
			break;
		if (stop == NP_SIM_WAITS) {
			self->blocked[rank] = true;
			return true;
		}
		if (!posted(self, sim))
			return false;
	}
	self->done++;
	if (sim->host > self->plan->end_ns)
		self->plan->end_ns = sim->host;
	return true;
}

static int by_group(const void *a, const void *b)
{
	const struct np_synth_instance *x = a, *y = b;
	if (x->group != y->group)
		return x->group < y->group ? -1 : 1;
	return x->seq < y->seq ? -1 : x->seq > y->seq;
}

enum np_status np_synth_run_all(struct np_synth_plan *self, struct np_err *err)
{
	const struct np_synth_options *options = &self->options;
	size_t n = (size_t)options->steps * self->per_step * options->ranks;
	struct lockstep all = {.plan = self};
	if (n > 0)
		self->meets = np_calloc(n, sizeof *self->meets);
	all.sims = np_calloc(options->ranks, sizeof *all.sims);
	all.open = np_calloc(self->n_groups, sizeof *all.open);
	all.ready = np_calloc(options->ranks, sizeof *all.ready);
	all.blocked = np_calloc(options->ranks, sizeof *all.blocked);
	bool fine = (self->meets || n == 0) && all.sims && all.open && all.ready && all.blocked;
	for (uint32_t rank = 0; fine && rank < options->ranks; rank++) {
		np_sim_init(&all.sims[rank], self, rank);
		make_ready(&all, rank);
	}
	while (fine && all.n > 0)
		fine = run_ready(&all);
	np_free(all.sims);
	np_free(all.open);
	np_free(all.ready);
	np_free(all.blocked);
	if (!fine)
		return np_err_nomem(err);
	if (all.done < options->ranks)
		return np_err_set(err, NP_E_UNSUPPORTED, "layout", "%u ranks wait for each other",
		                  options->ranks - all.done);
	if (self->instances.n > 0)
		qsort(self->instances.v, self->instances.n, sizeof *self->instances.v, by_group);
	return NP_OK;
}
