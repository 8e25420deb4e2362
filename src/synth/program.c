#include "synth/program.h"

#include <stdio.h>
#include <stdlib.h>

#include "synth/faults_compare.h"
#include "synth/faults_ops.h"
#include "synth/rng.h"

enum {
	TP_BYTES = 4 << 20,
	EP_BYTES = 4 << 20,
	PP_BYTES = 4 << 20,
	GRADIENT_BYTES = 6 << 20,
	WORLD_BYTES = 1 << 20,
	EXPOSED_COMM_FACTOR = 8,
	GROUPED_KERNELS = 2,
};

const struct np_synth_coll_name np_synth_colls[NP_COLLS] = {
	{"allReduce", "allreduce", "c10d::allreduce_", "HcclAllreduce"},
	{"allGather", "allgather", "c10d::_allgather_base_", "HcclAllgather"},
	{"reduceScatter", "reduce", "c10d::_reduce_scatter_base_", "HcclReduceScatter"},
	{"alltoAllV", "alltoall", "c10d::alltoall_base_", "HcclAlltoAllV"},
	{"send", "send", "c10d::send", "HcclSend"},
	{"receive", "receive", "c10d::recv_", "HcclReceive"},
};

/* ── communicators ── */

static const char *const labels[NP_DIMS] = {"default_group", "tp", "dp",     "exp",
                                            "edp",           "pp", "pp_p2p", "pp_p2p"};

bool np_synth_has_dim(const struct np_synth_plan *plan, uint32_t rank, enum np_synth_dim dim)
{
	switch (dim) {
	case NP_DIM_WORLD:
		return plan->options.ranks > 1;
	case NP_DIM_TP:
		return plan->tp > 1;
	case NP_DIM_DP:
		return plan->dp > 1;
	case NP_DIM_EP:
		return plan->ep > 1;
	case NP_DIM_EDP:
		return plan->ep > 1 && plan->dp > plan->ep;
	case NP_DIM_PP:
		return plan->pp > 1;
	case NP_DIM_NEXT:
		return np_synth_stage(plan, rank) + 1 < plan->pp;
	case NP_DIM_PREV:
		return np_synth_stage(plan, rank) > 0;
	default:
		return false;
	}
}

/* How many groups of a kind there are. */
static uint32_t dim_count(const struct np_synth_plan *plan, enum np_synth_dim dim)
{
	uint32_t ranks = plan->options.ranks;
	if (dim == NP_DIM_PREV || (dim == NP_DIM_NEXT && plan->pp <= 2))
		return 0;
	if (dim != NP_DIM_NEXT && !np_synth_has_dim(plan, 0, dim))
		return dim == NP_DIM_WORLD;
	const uint32_t counts[NP_DIMS] = {1,
	                                  ranks / plan->tp,
	                                  ranks / plan->dp,
	                                  ranks / plan->ep,
	                                  plan->pp * plan->ep * plan->tp,
	                                  ranks / plan->pp,
	                                  ranks / plan->pp * (plan->pp - 1)};
	return counts[dim];
}

uint32_t np_synth_group_of(const struct np_synth_plan *plan, uint32_t rank, enum np_synth_dim dim)
{
	uint32_t tp = plan->tp, dp = plan->dp, ep = plan->ep, stage = tp * dp;
	uint32_t t = rank % tp, d = rank / tp % dp, p = rank / stage, base = plan->group_base[dim];
	switch (dim) {
	case NP_DIM_TP:
		return base + rank / tp;
	case NP_DIM_DP:
		return base + p * tp + t;
	case NP_DIM_EP:
		return base + (p * (dp / ep) + d / ep) * tp + t;
	case NP_DIM_EDP:
		return base + (p * ep + d % ep) * tp + t;
	case NP_DIM_PP:
		return base + rank % stage;
	case NP_DIM_NEXT:
		return plan->pp == 2 ? plan->group_base[NP_DIM_PP] + rank % stage : base + rank;
	case NP_DIM_PREV:
		return np_synth_group_of(plan, rank - stage, NP_DIM_NEXT);
	default:
		return base;
	}
}

/* The group of a kind that `rank` is the first member of. */
static struct np_synth_group group_from(const struct np_synth_plan *plan, uint32_t rank,
                                        enum np_synth_dim dim)
{
	uint32_t tp = plan->tp, dp = plan->dp, ep = plan->ep, stage = tp * dp;
	const uint32_t stride[NP_DIMS] = {1, 1, tp, tp, tp * ep, stage, stage, 0};
	const uint32_t count[NP_DIMS] = {plan->options.ranks, tp, dp, ep, dp / ep, plan->pp, 2, 0};
	return (struct np_synth_group){
		.label = labels[dim], .first = rank, .stride = stride[dim], .count = count[dim]};
}

void np_synth_group_name(const struct np_synth_plan *plan, const struct np_synth_group *group,
                         char out[NP_SYNTH_GROUP_NAME])
{
	if (!plan->options.layout) {
		(void)snprintf(out, NP_SYNTH_GROUP_NAME, "group_name_%u", group->number);
		return;
	}
	uint32_t host = group->first / plan->cards;
	int64_t begun_us = plan->options.start_epoch_ns / 1000 - 60000000;
	(void)snprintf(out, NP_SYNTH_GROUP_NAME, "10.%u.%u.%u%%enp189s0f%u_%u_%u_%lld", host >> 16,
	               host >> 8 & 255, host & 255, group->first % plan->cards % 4,
	               60000 + group->first % plan->cards, group->number,
	               (long long)begun_us + group->number);
}

static enum np_status make_groups(struct np_synth_plan *self, struct np_err *err)
{
	size_t n = 0;
	for (int dim = 0; dim < NP_DIMS; dim++) {
		self->group_base[dim] = (uint32_t)n;
		n += dim_count(self, (enum np_synth_dim)dim);
	}
	self->groups = np_calloc(n, sizeof *self->groups);
	if (!self->groups)
		return np_err_nomem(err);
	self->n_groups = n;
	for (int at = 0; at < NP_DIMS; at++) {
		enum np_synth_dim dim = (enum np_synth_dim)at;
		if (dim_count(self, dim) == 0)
			continue;
		for (uint32_t rank = 0; rank < self->options.ranks; rank++) {
			if (dim != NP_DIM_WORLD && !np_synth_has_dim(self, rank, dim))
				continue;
			struct np_synth_group *to =
				&self->groups[np_synth_group_of(self, rank, dim)];
			if (to->count == 0)
				*to = group_from(self, rank, dim);
		}
	}
	for (size_t i = 0; i < n; i++) {
		char name[NP_SYNTH_GROUP_NAME];
		self->groups[i].number = (uint32_t)i;
		np_synth_group_name(self, &self->groups[i], name);
		self->groups[i].hash = np_synth_name_hash(name);
	}
	return NP_OK;
}

/* ── programs ── */

struct maker {
	const struct np_synth_plan *plan;
	uint32_t rank; /* any of the stage */
	NP_VEC(struct np_synth_act) acts;
	uint32_t comms, first_layer;
	uint32_t pair; /* of the next kernel of a layer; 0 outside */
	bool last_layer, back, open, nomem;
};

static void push(struct maker *self, struct np_synth_act act)
{
	act.last_layer = self->last_layer;
	if (!self->nomem && !np_vec_push(&self->acts, act))
		self->nomem = true;
}

static void make_wait(struct maker *self)
{
	if (self->open)
		push(self, (struct np_synth_act){.kind = NP_ACT_WAIT});
	self->open = false;
}

/* Start a collective; make_wait() or the next one waits for it. */
static void make_comm(struct maker *self, enum np_synth_dim dim, enum np_synth_coll coll,
                      uint32_t len_bytes)
{
	if (!np_synth_has_dim(self->plan, self->rank, dim))
		return;
	make_wait(self);
	push(self, (struct np_synth_act){.kind = NP_ACT_COMM,
	                                 .dim = (uint8_t)dim,
	                                 .coll = (uint8_t)coll,
	                                 .op = self->comms++,
	                                 .len_bytes = len_bytes});
	self->open = true;
}

static void make_kernel(struct maker *self, uint32_t op)
{
	uint32_t pair = self->pair ? self->pair++ : 0;
	push(self, (struct np_synth_act){.kind = NP_ACT_KERNEL, .op = op, .pair = pair});
}

static void make_open(struct maker *self, enum np_synth_mark_kind kind, uint32_t n)
{
	push(self, (struct np_synth_act){.kind = NP_ACT_OPEN, .op = kind, .pair = n});
}

static void make_close(struct maker *self)
{
	push(self, (struct np_synth_act){.kind = NP_ACT_CLOSE});
}

/* A module: hooks of the framework mark the forward pass only. */
static void make_module(struct maker *self, bool open, enum np_synth_mark_kind kind, uint32_t n)
{
	if (self->back)
		return;
	if (open)
		make_open(self, kind, n);
	else
		make_close(self);
}

/* All-to-all, the experts, and back. */
static void make_experts(struct maker *self)
{
	if (!np_synth_has_dim(self->plan, self->rank, NP_DIM_EP))
		return;
	make_comm(self, NP_DIM_EP, NP_COLL_ALLTOALLV, EP_BYTES);
	make_wait(self);
	for (int i = 0; i < GROUPED_KERNELS; i++)
		make_kernel(self, NP_OP_GROUPED);
	make_comm(self, NP_DIM_EP, NP_COLL_ALLTOALLV, EP_BYTES);
	make_wait(self);
}

static void make_layer(struct maker *self, uint32_t layer, bool gradients)
{
	uint32_t ops = self->plan->options.ops;
	/* idle faults strike once every collective is over */
	make_wait(self);
	push(self, (struct np_synth_act){.kind = NP_ACT_STALL});
	enum np_synth_mark_kind mlp = self->plan->ep > 1 ? NP_MARK_MOE : NP_MARK_MLP;
	make_module(self, true, NP_MARK_LAYER, self->first_layer + layer);
	make_module(self, true, NP_MARK_ATTENTION, 0);
	for (uint32_t i = 0; i < ops / 2; i++)
		make_kernel(self, NP_OP_LAYER + i % NP_OPS_PER_LAYER);
	make_comm(self, NP_DIM_TP, NP_COLL_ALLREDUCE, TP_BYTES);
	make_wait(self);
	make_module(self, false, NP_MARK_ATTENTION, 0);
	make_module(self, true, mlp, 0);
	make_experts(self);
	for (uint32_t i = ops / 2; i < ops; i++)
		make_kernel(self, NP_OP_LAYER + i % NP_OPS_PER_LAYER);
	push(self, (struct np_synth_act){.kind = NP_ACT_EXTRA, .op = layer});
	make_comm(self, NP_DIM_TP, NP_COLL_ALLREDUCE, TP_BYTES);
	make_wait(self);
	make_module(self, false, mlp, 0);
	make_module(self, false, NP_MARK_LAYER, 0);
	if (gradients && !np_synth_has_dim(self->plan, self->rank, NP_DIM_TP))
		make_comm(self, NP_DIM_DP, NP_COLL_REDUCESCATTER, GRADIENT_BYTES);
}

static uint32_t stage_layers(const struct np_synth_plan *plan, uint32_t stage)
{
	uint32_t layers = plan->options.layers;
	return layers / plan->pp + (stage < layers % plan->pp);
}

static void make_stage(struct maker *self, uint32_t stage)
{
	uint32_t layers = stage_layers(self->plan, stage), micro = self->plan->micro_batches;
	uint32_t pair = 1;
	for (uint32_t s = 0; s < stage; s++)
		self->first_layer += stage_layers(self->plan, s);
	for (uint32_t m = 0; m < 2 * micro; m++) {
		bool back = m >= micro, last = m + 1 == 2 * micro;
		self->back = back;
		/* kernels of a backward pass are counted like those of its forward pass */
		if (m == 0 || m == micro)
			pair = 1;
		make_comm(self, back ? NP_DIM_NEXT : NP_DIM_PREV, NP_COLL_RECEIVE, PP_BYTES);
		make_wait(self);
		make_open(self, back ? NP_MARK_BACKWARD : NP_MARK_FORWARD, back ? m - micro : m);
		self->pair = pair;
		for (uint32_t l = 0; l < layers; l++) {
			self->last_layer = last && l + 1 == layers;
			make_layer(self, l, last);
		}
		pair = self->pair;
		self->pair = 0;
		self->last_layer = false;
		make_close(self);
		make_comm(self, back ? NP_DIM_PREV : NP_DIM_NEXT, NP_COLL_SEND, PP_BYTES);
		make_wait(self);
	}
	make_comm(self, NP_DIM_DP, NP_COLL_REDUCESCATTER, GRADIENT_BYTES);
	make_kernel(self, NP_OP_NORM);
	make_comm(self, NP_DIM_EDP, NP_COLL_REDUCESCATTER, GRADIENT_BYTES);
	make_comm(self, NP_DIM_WORLD, NP_COLL_ALLREDUCE, WORLD_BYTES);
	make_wait(self);
	make_kernel(self, NP_OP_ADAM);
	make_comm(self, NP_DIM_DP, NP_COLL_ALLGATHER, GRADIENT_BYTES);
	make_wait(self);
}

static enum np_status make_programs(struct np_synth_plan *self, struct np_err *err)
{
	self->programs = np_calloc(self->pp, sizeof *self->programs);
	if (!self->programs)
		return np_err_nomem(err);
	for (uint32_t stage = 0; stage < self->pp; stage++) {
		struct maker maker = {.plan = self, .rank = stage * self->tp * self->dp};
		make_stage(&maker, stage);
		struct np_synth_program *to = &self->programs[stage];
		*to = (struct np_synth_program){maker.acts.v, maker.acts.n, maker.comms};
		if (maker.nomem)
			return np_err_nomem(err);
		self->per_step = maker.comms > self->per_step ? maker.comms : self->per_step;
	}
	return NP_OK;
}

/* ── one rank ── */

uint64_t np_synth_comm_key(const struct np_synth_plan *plan, const struct np_synth_item *item)
{
	if (plan->options.layout)
		return np_noise(item->group, item->index);
	return (uint64_t)item->step * plan->per_step + item->op;
}

uint64_t np_synth_act_bytes(const struct np_synth_plan *plan, const struct np_synth_act *act)
{
	uint64_t len_bytes = act->len_bytes;
	for (size_t i = 0; i < plan->options.n_faults; i++)
		if (plan->options.faults[i].id == NP_SYNTH_EXPOSED_COMM)
			len_bytes *= EXPOSED_COMM_FACTOR;
	/* fewer micro-batches than asked for, by fault: each is larger */
	bool per_batch =
		act->dim != NP_DIM_DP && act->dim != NP_DIM_EDP && act->dim != NP_DIM_WORLD;
	return per_batch ? len_bytes * (plan->options.micro_batches / plan->micro_batches)
	                 : len_bytes;
}

static void run_comm(struct np_sim *sim, const struct np_synth_act *act)
{
	struct np_synth_item item = {.kind = NP_ITEM_COMM, .op = act->op, .task = sim->comm_task++};
	item.coll = act->coll;
	item.dim = act->dim;
	item.group = np_synth_group_of(sim->plan, sim->rank, (enum np_synth_dim)act->dim);
	item.len_bytes = np_synth_act_bytes(sim->plan, act);
	item.index = sim->seq[act->dim]++;
	np_ns ready = np_sim_issue(sim, &item);
	if (sim->dev + 900 > ready)
		ready = sim->dev + 900;
	if (sim->comm + 500 > ready)
		ready = sim->comm + 500;
	item.start_ns = ready;
	struct np_synth_meet *meet =
		np_synth_meet_at(sim->plan, (uint32_t)sim->step, act->op, sim->rank);
	if (sim->out) {
		item.last_ns = meet->last;
		item.dur_ns = meet->end - ready;
		sim->out->n_comms++;
		np_sim_keep(sim, &item);
	} else {
		meet->last = ready;
	}
	sim->waits = true;
	sim->posted = act->op;
}

/* False: not over yet. */
static bool run_wait(struct np_sim *sim)
{
	np_ns end = np_synth_meet_at(sim->plan, (uint32_t)sim->step, sim->posted, sim->rank)->end;
	if (end == 0)
		return false;
	sim->waits = false;
	sim->comm = end;
	if (sim->dev < end)
		sim->dev = end;
	return true;
}

/* ── marks: cost no time, so that lite sets have the same times ── */

static bool marks_are_kept(const struct np_sim *sim)
{
	return sim->out && !sim->plan->options.lite;
}

static void mark_add(struct np_sim *sim, struct np_synth_mark mark)
{
	const struct np_synth_run *run = sim->out;
	mark.start_ns = np_synth_clock(run, mark.start_ns);
	mark.end_ns = np_synth_clock(run, mark.end_ns);
	mark.dev_start_ns = np_synth_clock(run, mark.dev_start_ns);
	mark.dev_end_ns = np_synth_clock(run, mark.dev_end_ns);
	if (!np_vec_push(&sim->out->marks, mark))
		sim->nomem = true;
}

static void mark_open(struct np_sim *sim, const struct np_synth_act *act)
{
	if (!marks_are_kept(sim))
		return;
	np_ns dev = sim->dev > sim->host + 5000 ? sim->dev : sim->host + 5000;
	sim->open[sim->n_open++] = sim->out->marks.n;
	mark_add(sim, (struct np_synth_mark){.kind = (uint8_t)act->op,
	                                     .n = act->pair,
	                                     .start_ns = sim->host,
	                                     .end_ns = sim->host,
	                                     .dev_start_ns = dev,
	                                     .dev_end_ns = dev});
}

static void mark_close(struct np_sim *sim)
{
	if (!marks_are_kept(sim) || sim->nomem)
		return;
	struct np_synth_mark *mark = &sim->out->marks.v[sim->open[--sim->n_open]];
	/* the next operator starts at sim->host, and is not in it */
	mark->end_ns = np_synth_clock(sim->out, sim->host - 300);
	np_ns dev = np_synth_clock(sim->out, sim->dev);
	mark->dev_end_ns = dev > mark->dev_start_ns ? dev : mark->dev_start_ns;
}

static void mark_loader(struct np_sim *sim, uint32_t step)
{
	if (!marks_are_kept(sim))
		return;
	np_ns at = sim->out->steps[step].true_start_ns;
	mark_add(sim, (struct np_synth_mark){.kind = NP_MARK_LOADER,
	                                     .start_ns = at + 500,
	                                     .end_ns = at + 4500,
	                                     .dev_start_ns = at + 600,
	                                     .dev_end_ns = at + 4600});
}

static void run_kernel(struct np_sim *sim, const struct np_synth_act *act)
{
	np_ns before = sim->host;
	sim->pair = act->pair;
	np_sim_kernel(sim, act->op);
	sim->pair = 0;
	if (!marks_are_kept(sim) || !act->pair || np_synth_flops(act->op, 1) == 0)
		return;
	mark_add(sim, (struct np_synth_mark){.kind = NP_MARK_FLOPS,
	                                     .n = act->op,
	                                     .start_ns = before,
	                                     .end_ns = sim->host - 300,
	                                     .dev_start_ns = before,
	                                     .dev_end_ns = before});
}

/* What faults of operators add to a layer. */
static void run_extra(struct np_sim *sim, uint32_t layer)
{
	uint32_t stage = np_synth_stage(sim->plan, sim->rank);
	uint32_t more = 0, extra[NP_SYNTH_MAX_EXTRA];
	if (np_synth_inserts(sim->faults, stage_layers(sim->plan, stage), layer, 1, &more))
		np_sim_kernel(sim, more);
	size_t n = np_synth_extra_ops(sim->faults, extra);
	for (size_t i = 0; i < n; i++)
		np_sim_kernel(sim, extra[i]);
}

static bool run_act(struct np_sim *sim, const struct np_synth_act *act)
{
	sim->last_layer = act->last_layer;
	switch (act->kind) {
	case NP_ACT_KERNEL:
		run_kernel(sim, act);
		break;
	case NP_ACT_OPEN:
		mark_open(sim, act);
		break;
	case NP_ACT_CLOSE:
		mark_close(sim);
		break;
	case NP_ACT_COMM:
		run_comm(sim, act);
		break;
	case NP_ACT_WAIT:
		return run_wait(sim);
	case NP_ACT_EXTRA:
		run_extra(sim, act->op);
		break;
	default:
		np_sim_stall(sim);
		break;
	}
	return true;
}

static void step_begin(struct np_sim *sim)
{
	np_sim_step_begin(sim, sim->next_step);
	mark_loader(sim, sim->next_step);
}

enum np_sim_stop np_sim_run(struct np_sim *sim)
{
	const struct np_synth_program *program =
		&sim->plan->programs[np_synth_stage(sim->plan, sim->rank)];
	while (sim->next_step < sim->plan->options.steps && !sim->nomem) {
		if (sim->at == 0 && sim->step < 0)
			step_begin(sim);
		while (sim->at < program->n) {
			const struct np_synth_act *act = &program->v[sim->at];
			if (!run_act(sim, act))
				return NP_SIM_WAITS;
			sim->at++;
			if (act->kind == NP_ACT_COMM && !sim->out)
				return NP_SIM_POSTED;
		}
		sim->at = 0;
		np_sim_step_end(sim);
		sim->next_step++;
	}
	return NP_SIM_DONE;
}

/* ── options, and the plan ── */

static enum np_status check_dims(const struct np_synth_options *options, struct np_err *err)
{
	uint32_t ranks = options->ranks, pp = options->pp, dp = options->dp, ep = options->ep;
	if ((uint64_t)options->tp * pp * dp != ranks)
		return np_err_set(err, NP_E_USAGE, "ranks", "%u is not tp %u * pp %u * dp %u",
		                  ranks, options->tp, pp, dp);
	if (dp % ep)
		return np_err_set(err, NP_E_USAGE, "ep", "must divide dp, %u", dp);
	if (options->layers < pp)
		return np_err_set(err, NP_E_USAGE, "layers", "%u stages need as many", pp);
	if (options->ranks_per_host > NP_SYNTH_CARDS)
		return np_err_set(err, NP_E_USAGE, "ranks-per-host", "must be 1 to %d",
		                  NP_SYNTH_CARDS);
	if (options->micro_batches > 1024)
		return np_err_set(err, NP_E_USAGE, "micro-batches", "must be 1 to 1024");
	return NP_OK;
}

/* Layers so that the stage with the fewest collectives has `comm_ops` per step. */
static enum np_status layers_for(struct np_synth_options *options, struct np_err *err)
{
	uint32_t micro = options->micro_batches;
	uint32_t per_layer = options->tp > 1 ? 4 * micro : options->dp > 1 ? 1 : 0;
	per_layer += options->ep > 1 ? 4 * micro : 0;
	if (per_layer == 0)
		return np_err_set(err, NP_E_USAGE, "comm-ops", "needs tp, dp or ep above 1");
	uint64_t layers = (options->comm_ops + per_layer - 1) / per_layer;
	if (layers * options->pp > NP_SYNTH_MAX_LAYERS)
		return np_err_set(err, NP_E_LIMIT, "comm-ops", "that takes more than %d layers",
		                  NP_SYNTH_MAX_LAYERS);
	options->layers = (uint32_t)layers * options->pp;
	return NP_OK;
}

enum np_status np_synth_layout_options(struct np_synth_options *options, struct np_err *err)
{
	options->pp = options->pp ? options->pp : 1;
	options->ep = options->ep ? options->ep : 1;
	uint32_t left = options->ranks / options->pp;
	if (options->tp == 0)
		options->tp = options->dp ? left / options->dp : left % 2 == 0 ? 2 : 1;
	options->tp = options->tp ? options->tp : 1;
	if (options->dp == 0)
		options->dp = left / options->tp;
	options->dp = options->dp ? options->dp : 1;
	if (options->micro_batches == 0)
		options->micro_batches = options->pp;
	if (options->comm_ops)
		NP_TRY(layers_for(options, err));
	return check_dims(options, err);
}

enum np_status np_synth_layout_plan(struct np_synth_plan *self, struct np_err *err)
{
	const struct np_synth_options *options = &self->options;
	self->tp = options->tp;
	self->dp = options->dp;
	self->pp = options->pp;
	self->ep = options->ep;
	self->micro_batches = options->micro_batches;
	for (size_t i = 0; i < options->n_faults; i++)
		if (options->faults[i].id == NP_SYNTH_PIPELINE_BUBBLE)
			self->micro_batches = 1;
	NP_TRY(make_groups(self, err));
	NP_TRY(make_programs(self, err));
	return np_synth_run_all(self, err);
}
