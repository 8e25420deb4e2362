#include "synth/sim.h"

#include <stdio.h>

#include "synth/faults_cluster.h"
#include "synth/faults_compare.h"
#include "synth/faults_ops.h"
#include "synth/program.h"
#include "synth/rng.h"

enum {
	STEP_SKIP = 10,
	STEP_WARMUP = 2, /* of the schedule: the first recorded step is #12 */
	HOST_OP_NS = 7000,
	HOST_BOUND_FACTOR = 24,
	WARMUP_FACTOR = 30,
	LAYER_BYTES = 8 << 20,
	WORLD_BYTES = 24 << 20,
	EXPOSED_COMM_FACTOR = 8,
	CLOCK_NOISE_NS = 4000, /* between hosts */
};

bool np_synth_fault_hits(const struct np_synth_plan *plan, const struct np_synth_fault *fault,
                         uint32_t rank)
{
	bool last_only = fault->id == NP_SYNTH_MIXED_BATCH || fault->id == NP_SYNTH_MIXED_FORMAT;
	int64_t only = fault->a;
	bool hit = false;
	if (np_synth_cluster_scope(plan, fault, rank, &hit))
		return hit;
	if (fault->id == NP_SYNTH_SLOW_LINK)
		only = -1;
	else if (only < 0 && last_only)
		only = (int64_t)plan->options.ranks - 1;
	else if (only < 0 && fault->id == NP_SYNTH_RANK_UNKNOWN)
		only = 0;
	return only < 0 || only == (int64_t)rank;
}

static uint64_t faults_of(const struct np_synth_plan *plan, uint32_t rank)
{
	uint64_t bits = 0;
	for (size_t i = 0; i < plan->options.n_faults; i++) {
		const struct np_synth_fault *fault = &plan->options.faults[i];
		if (np_synth_fault_hits(plan, fault, rank))
			bits |= 1ull << fault->id;
	}
	return bits;
}

uint64_t np_sim_draw(struct np_sim *sim)
{
	return np_noise(sim->plan->options.seed, ((uint64_t)sim->rank << 40) + sim->draws++);
}

/* ── memory ── */

static void mem_event(struct np_sim *sim, np_ns ns)
{
	struct np_synth_mem_event event = {np_synth_clock(sim->out, ns), sim->mem_total};
	if (!np_vec_push(&sim->out->mem_events, event))
		sim->nomem = true;
}

/* A host op allocates its output and drops the one of NP_SIM_MEM_LIVE ops ago. */
static void mem_use(struct np_sim *sim, uint32_t op)
{
	struct np_synth_run *run = sim->out;
	if (!run || sim->nomem || np_synth_ops[op].out_kb == 0)
		return;
	size_t slot = sim->mem_n++ % NP_SIM_MEM_LIVE;
	if (sim->mem_n > NP_SIM_MEM_LIVE) {
		struct np_synth_mem *old = &run->mem.v[sim->mem_ring[slot]];
		old->free_ns = np_synth_clock(run, sim->host + 100);
		sim->mem_total -= old->size_bytes;
		old->free_total_bytes = sim->mem_total;
		mem_event(sim, sim->host + 100);
	}
	struct np_synth_mem mem = {.op = op, .size_bytes = np_synth_ops[op].out_kb * 1024ull};
	sim->mem_total += mem.size_bytes;
	mem.alloc_total_bytes = sim->mem_total;
	mem.alloc_ns = np_synth_clock(run, sim->host + 500);
	mem_event(sim, sim->host + 500);
	sim->mem_ring[slot] = run->mem.n;
	if (!np_vec_push(&run->mem, mem))
		sim->nomem = true;
}

/* ── host and device ── */

void np_sim_keep(struct np_sim *sim, struct np_synth_item *item)
{
	struct np_synth_run *run = sim->out;
	if (!run)
		return;
	np_ns end = np_synth_clock(run, item->start_ns + item->dur_ns);
	item->host_ns = np_synth_clock(run, item->host_ns);
	item->launch_ns = np_synth_clock(run, item->launch_ns);
	item->start_ns = np_synth_clock(run, item->start_ns);
	if (item->kind == NP_ITEM_COMM)
		item->last_ns = np_synth_clock(run, item->last_ns);
	item->dur_ns = end - item->start_ns;
	item->step = sim->step;
	if (!np_vec_push(&run->items, *item))
		sim->nomem = true;
}

np_ns np_synth_enqueue_ns(const struct np_synth_item *item)
{
	return item->host_ns + item->host_dur_ns - 700 - NP_ENQUEUE_NS;
}

/* The host op, its enqueue, the dequeue thread's launch. Returns when the device
 * may start. */
np_ns np_sim_issue(struct np_sim *sim, struct np_synth_item *item)
{
	np_ns cost = np_jitter(HOST_OP_NS, 150, np_sim_draw(sim));
	if (np_sim_has(sim, NP_SYNTH_HOST_BOUND))
		cost *= HOST_BOUND_FACTOR;
	if (np_sim_has(sim, NP_SYNTH_WARMUP) && sim->step == 0)
		cost *= WARMUP_FACTOR;
	item->host_ns = sim->host;
	item->host_dur_ns = cost;
	item->corr = sim->corr++;
	item->conn = sim->conn;
	sim->conn += NP_CONNS;
	np_ns queued = np_synth_enqueue_ns(item) + NP_ENQUEUE_NS + 300;
	np_ns deq = queued > sim->deq ? queued : sim->deq;
	item->launch_ns = deq + NP_DEQUEUE_LEAD_NS;
	item->slow_ns = sim->slow_launch;
	sim->slow_launch = 0;
	sim->deq = deq + np_synth_dequeue_len(item) + 200;
	sim->host += cost + 700;
	return item->launch_ns + NP_LAUNCH_NS + item->slow_ns + 1500;
}

void np_sim_kernel(struct np_sim *sim, uint32_t op)
{
	if (np_sim_has(sim, NP_SYNTH_IDLE_RANK))
		return;
	mem_use(sim, op);
	struct np_synth_item item = {
		.kind = NP_ITEM_KERNEL, .op = op, .task = sim->task++, .pair = sim->pair};
	np_ns ready = np_sim_issue(sim, &item);
	np_ns next = sim->dev + 600 + (np_ns)(np_sim_draw(sim) % 900);
	np_ns dur = np_jitter((np_ns)np_synth_ops[op].dur_ns, 60, np_sim_draw(sim));
	dur = np_synth_regressed(sim->faults, op, dur);
	if (np_sim_has(sim, NP_SYNTH_SLOW_RANK))
		dur += dur * 2 / 5;
	if (sim->plan->options.layout)
		dur = np_synth_cluster_dur(sim, op, dur);
	if (np_sim_has(sim, NP_SYNTH_WARMUP) && sim->step == 0)
		dur += dur / 5;
	item.start_ns = ready > next ? ready : next;
	item.dur_ns = dur;
	sim->dev = item.start_ns + dur;
	if (sim->out) {
		item.negative = np_sim_has(sim, NP_SYNTH_NEGATIVE) && sim->out->n_kernels < 3;
		sim->out->n_kernels++;
	}
	np_sim_keep(sim, &item);
}

/* A copy that the host does itself, without the queue. */
static void sim_copy(struct np_sim *sim, bool back)
{
	struct np_synth_item item = {.kind = NP_ITEM_COPY, .op = back, .task = sim->task++};
	item.host_ns = sim->host;
	item.conn = sim->conn;
	sim->conn += NP_CONNS;
	item.launch_ns = sim->host + 1500;
	np_ns free_at = back && sim->comm > sim->dev ? sim->comm : sim->dev;
	np_ns ready = item.launch_ns + NP_COPY_API_NS;
	item.start_ns = (ready > free_at ? ready : free_at) + 1200;
	item.dur_ns = back ? 2400 : 38000;
	sim->dev = item.start_ns + item.dur_ns;
	/* the host waits for a result; for its input it does not */
	np_ns done = back ? sim->dev + 4000 : item.launch_ns + NP_COPY_API_NS + 900;
	item.host_dur_ns = done - item.host_ns;
	sim->host = done + 700;
	np_sim_keep(sim, &item);
}

static size_t group_of(const struct np_synth_plan *plan, uint32_t rank, uint32_t index)
{
	if (index == plan->options.layers)
		return 0;
	return plan->tp > 1 ? 1 + rank / plan->tp : 1;
}

struct np_synth_meet *np_synth_meet_at(const struct np_synth_plan *plan, uint32_t step,
                                       uint32_t index, uint32_t rank)
{
	return &plan->meets[((size_t)step * plan->per_step + index) * plan->options.ranks + rank];
}

static uint64_t comm_bytes(const struct np_synth_options *options, uint32_t index)
{
	uint64_t bytes = index == options->layers ? WORLD_BYTES : LAYER_BYTES;
	for (size_t i = 0; i < options->n_faults; i++)
		if (options->faults[i].id == NP_SYNTH_EXPOSED_COMM)
			return bytes * EXPOSED_COMM_FACTOR;
	return bytes;
}

/* Post a collective. While planning, its end is not known yet: `end` is set later. */
static void sim_comm(struct np_sim *sim, uint32_t index)
{
	if (sim->plan->per_step == 0)
		return;
	struct np_synth_item item = {.kind = NP_ITEM_COMM, .op = index, .task = sim->comm_task++};
	item.group = (uint32_t)group_of(sim->plan, sim->rank, index);
	item.dim = item.group ? NP_DIM_TP : NP_DIM_WORLD;
	item.len_bytes = comm_bytes(&sim->plan->options, index);
	uint32_t step = (uint32_t)sim->step;
	item.index = index == sim->plan->options.layers ? step
	                                                : step * (sim->plan->per_step - 1) + index;
	np_ns ready = np_sim_issue(sim, &item);
	if (sim->dev + 900 > ready)
		ready = sim->dev + 900;
	if (sim->comm + 500 > ready)
		ready = sim->comm + 500;
	struct np_synth_meet *meet = np_synth_meet_at(sim->plan, step, index, sim->rank);
	item.start_ns = ready;
	if (sim->out) {
		item.last_ns = meet->last;
		item.dur_ns = meet->end - ready;
		sim->out->n_comms++;
		np_sim_keep(sim, &item);
	} else {
		meet->last = ready;
	}
}

/* The compute stream waits for a collective. */
static void sim_wait(struct np_sim *sim, uint32_t index)
{
	if (sim->plan->per_step == 0)
		return;
	np_ns end = np_synth_meet_at(sim->plan, (uint32_t)sim->step, index, sim->rank)->end;
	sim->comm = end;
	if (sim->dev < end)
		sim->dev = end;
}

/* Where idle faults strike; all collectives posted so far are known to be over then. */
void np_sim_stall(struct np_sim *sim)
{
	enum np_synth_fault_id fault = np_synth_stall_fault(sim->faults);
	np_ns dry = sim->comm > sim->dev ? sim->comm : sim->dev;
	if (fault == NP_SYNTH_FAULTS || np_sim_has(sim, NP_SYNTH_IDLE_RANK))
		return;
	struct np_synth_stall stall = {.fault = fault, .planted_ns = NP_STALL_NS};
	dry = fault != NP_SYNTH_IDLE_DEPENDENCY && sim->host > dry ? sim->host : dry;
	stall.start_ns = fault == NP_SYNTH_IDLE_SYNC ? sim->host : dry;
	stall.end_ns = dry + NP_STALL_NS;
	stall.conn = sim->conn;
	sim->conn += NP_CONNS;
	if (fault == NP_SYNTH_IDLE_DEPENDENCY) {
		stall.task = sim->task++;
		sim->dev = stall.end_ns;
	} else if (fault == NP_SYNTH_IDLE_LAUNCH) {
		sim->slow_launch = NP_STALL_NS;
		sim->host = dry;
	} else {
		sim->host = stall.end_ns + 300;
	}
	if (!sim->out)
		return;
	stall.start_ns = np_synth_clock(sim->out, stall.start_ns);
	stall.end_ns = np_synth_clock(sim->out, stall.end_ns);
	if (!np_vec_push(&sim->out->stalls, stall))
		sim->nomem = true;
}

void np_sim_step_begin(struct np_sim *sim, uint32_t step)
{
	sim->step = (int32_t)step;
	if (sim->out) {
		struct np_synth_step *to = &sim->out->steps[step];
		*to = (struct np_synth_step){.id = sim->plan->first_step + step};
		to->true_start_ns = sim->host;
		to->host_start_ns = np_synth_clock(sim->out, sim->host);
	}
	sim->host += 5000;
	sim_copy(sim, false);
	np_sim_kernel(sim, NP_OP_EMBEDDING);
	np_sim_kernel(sim, NP_OP_MASK);
}

void np_sim_step_end(struct np_sim *sim)
{
	for (int i = 0; i < 2; i++)
		np_sim_kernel(sim, NP_OP_NORM);
	for (int i = 0; i < 4; i++)
		np_sim_kernel(sim, NP_OP_ADAM);
	sim_copy(sim, true);
	sim->host += 10000;
	if (sim->out) {
		sim->out->steps[sim->step].true_end_ns = sim->host;
		sim->out->steps[sim->step].host_end_ns = np_synth_clock(sim->out, sim->host);
	}
	sim->host += 30000;
	sim->step = -1;
}

/*
 * A step in per-collective pieces: piece i ends when collective i is posted, and
 * may use the ends of those before it. Piece `layers` posts the world's, the one
 * behind it finishes the step.
 */
static void sim_piece(struct np_sim *sim, uint32_t step, uint32_t piece)
{
	const struct np_synth_options *options = &sim->plan->options;
	if (piece == 0)
		np_sim_step_begin(sim, step);
	if (piece < options->layers) {
		for (uint32_t i = 0; i < options->ops; i++) {
			if (piece > 0 && i == options->ops / 2) {
				sim_wait(sim, piece - 1);
				np_sim_stall(sim);
			}
			np_sim_kernel(sim, NP_OP_LAYER + i % NP_OPS_PER_LAYER);
			uint32_t more = 0;
			if (np_synth_inserts(sim->faults, options->layers, piece, i, &more))
				np_sim_kernel(sim, more);
		}
		uint32_t extra[NP_SYNTH_MAX_EXTRA];
		size_t n_extra = np_synth_extra_ops(sim->faults, extra);
		for (size_t i = 0; i < n_extra; i++)
			np_sim_kernel(sim, extra[i]);
		sim_comm(sim, piece);
	} else if (piece == options->layers) {
		sim_wait(sim, piece - 1);
		sim_comm(sim, piece);
	} else {
		sim_wait(sim, piece - 1);
		np_sim_stall(sim);
		np_sim_step_end(sim);
	}
}

void np_sim_init(struct np_sim *sim, const struct np_synth_plan *plan, uint32_t rank)
{
	*sim = (struct np_sim){.plan = plan, .rank = rank, .step = -1};
	sim->faults = faults_of(plan, rank);
	sim->host = plan->options.start_epoch_ns + 2000000 + (np_ns)(np_sim_draw(sim) % 60000);
	sim->corr = 8000 + rank % 97;
	sim->conn = 900;
	sim->task = 11000;
	sim->comm_task = 800;
	if (np_sim_has(sim, NP_SYNTH_LATE_START))
		sim->host += NP_LATE_START_NS;
	sim->deq = sim->dev = sim->comm = sim->host;
	sim->mem_total = NP_MEM_BASE_BYTES;
}

/* ── the plan ── */

uint64_t np_synth_name_hash(const char *name)
{
	uint32_t h0 = 0, h1 = 0;
	for (; *name; name++) {
		h0 = h0 * 29 + (unsigned char)*name;
		h1 = h1 * 131 + (unsigned char)*name;
	}
	return (uint64_t)h0 << 32 | h1;
}

static enum np_status make_groups(struct np_synth_plan *self, struct np_err *err)
{
	uint32_t ranks = self->options.ranks;
	size_t n = 1 + (self->tp > 1 ? self->dp : 0) + (self->dp > 1 ? self->tp : 0);
	self->groups = np_calloc(n, sizeof *self->groups);
	if (!self->groups)
		return np_err_nomem(err);
	struct np_synth_group *to = self->groups;
	*to++ = (struct np_synth_group){.label = "default_group", .stride = 1, .count = ranks};
	for (uint32_t i = 0; self->tp > 1 && i < self->dp; i++)
		*to++ = (struct np_synth_group){
			.label = "tp", .first = i * self->tp, .stride = 1, .count = self->tp};
	for (uint32_t i = 0; self->dp > 1 && i < self->tp; i++)
		*to++ = (struct np_synth_group){
			.label = "dp", .first = i, .stride = self->tp, .count = self->dp};
	self->n_groups = n;
	for (size_t i = 0; i < n; i++) {
		char name[32];
		(void)snprintf(name, sizeof name, "group_name_%zu", i);
		self->groups[i].number = (uint32_t)i;
		self->groups[i].hash = np_synth_name_hash(name);
	}
	return NP_OK;
}

/* All ranks have posted collective `index`: when is each group done? */
static void resolve(struct np_synth_plan *self, uint32_t step, uint32_t index)
{
	uint64_t key = (uint64_t)step * self->per_step + index;
	bool world = index == self->options.layers;
	size_t from = world ? 0 : 1, to = world ? 1 : (self->tp > 1 ? 1 + self->dp : 2);
	for (size_t g = from; g < to; g++) {
		const struct np_synth_group *group = &self->groups[g];
		np_ns last = INT64_MIN;
		for (uint32_t k = 0; k < group->count; k++) {
			np_ns at = np_synth_meet_at(self, step, index,
			                            group->first + k * group->stride)
			                   ->last;
			last = at > last ? at : last;
		}
		np_ns end = last +
		            np_synth_wire_ns(self, group, comm_bytes(&self->options, index), key);
		for (uint32_t k = 0; k < group->count; k++)
			*np_synth_meet_at(self, step, index, group->first + k * group->stride) =
				(struct np_synth_meet){last, end};
	}
}

static enum np_status lock_step(struct np_synth_plan *self, struct np_err *err)
{
	const struct np_synth_options *options = &self->options;
	size_t n = (size_t)options->steps * self->per_step * options->ranks;
	self->meets = np_calloc(n, sizeof *self->meets);
	struct np_sim *sims = np_calloc(options->ranks, sizeof *sims);
	if (!self->meets || !sims) {
		np_free(sims);
		return np_err_nomem(err);
	}
	for (uint32_t r = 0; r < options->ranks; r++)
		np_sim_init(&sims[r], self, r);
	for (uint32_t step = 0; step < options->steps; step++) {
		for (uint32_t piece = 0; piece <= options->layers + 1; piece++) {
			for (uint32_t r = 0; r < options->ranks; r++)
				sim_piece(&sims[r], step, piece);
			if (piece <= options->layers)
				resolve(self, step, piece);
		}
	}
	np_free(sims);
	return NP_OK;
}

enum np_status np_synth_plan_init(struct np_synth_plan *self,
                                  const struct np_synth_options *options, struct np_err *err)
{
	*self = (struct np_synth_plan){.options = *options, .link_a = -1, .link_b = -1};
	self->cards = options->ranks_per_host ? options->ranks_per_host : NP_SYNTH_CARDS;
	self->tp = options->tp ? options->tp : options->ranks % 2 == 0 ? 2 : 1;
	self->pp = self->ep = 1;
	self->dp = options->ranks / self->tp;
	self->first_step = STEP_SKIP + STEP_WARMUP;
	for (size_t i = 0; i < options->n_faults; i++) {
		if (options->faults[i].id == NP_SYNTH_SLOW_LINK) {
			self->link_a = options->faults[i].a;
			self->link_b = options->faults[i].b;
		}
	}
	enum np_status status =
		options->layout ? np_synth_layout_plan(self, err) : make_groups(self, err);
	if (status == NP_OK && !options->layout && options->ranks > 1) {
		self->per_step = options->layers + 1;
		status = lock_step(self, err);
	}
	if (status != NP_OK)
		np_synth_plan_release(self);
	return status;
}

void np_synth_plan_release(struct np_synth_plan *self)
{
	for (uint32_t stage = 0; self->programs && stage < self->pp; stage++)
		np_free(self->programs[stage].v);
	np_free(self->programs);
	np_vec_release(&self->instances);
	np_free(self->groups);
	np_free(self->meets);
	self->programs = NULL;
	self->groups = NULL;
	self->meets = NULL;
}

/* ── one rank ── */

/* Nine more stretches as long as the run, with one kernel each: it was stopped late. */
static void run_on(struct np_sim *sim, np_ns begin)
{
	np_ns length = sim->host - begin;
	for (int i = 0; i < 9; i++) {
		sim->host += length;
		np_sim_kernel(sim, NP_OP_EMBEDDING);
	}
}

void np_synth_run_clock(struct np_synth_run *self, np_ns shift_ns)
{
	self->faults = faults_of(self->plan, self->rank);
	self->shift_ns = shift_ns;
	self->drift_ppb = 0;
	if (self->host > 0)
		self->shift_ns += (np_ns)(np_noise(self->plan->options.seed ^ 0xc10c, self->host) %
		                          (2 * CLOCK_NOISE_NS)) -
		                  CLOCK_NOISE_NS;
	np_synth_cluster_clock(self);
}

enum np_status np_synth_run_fill(struct np_synth_run *self, const struct np_synth_plan *plan,
                                 uint32_t rank, np_ns shift_ns, struct np_err *err)
{
	const struct np_synth_options *options = &plan->options;
	self->plan = plan;
	self->rank = rank;
	self->device = rank % plan->cards;
	self->host = rank / plan->cards;
	self->pid = 100000 + rank * 7;
	self->deq_tid = self->pid + 211;
	np_synth_run_clock(self, shift_ns);
	self->level = np_synth_has(self, NP_SYNTH_NO_METRICS) ? 0 : options->level;
	self->items.n = self->order.n = self->spans.n = self->mem.n = self->mem_events.n = 0;
	self->stalls.n = self->marks.n = 0;
	self->n_kernels = self->n_comms = 0;
	if (!self->steps)
		self->steps = np_calloc(options->steps, sizeof *self->steps);
	if (!self->steps)
		return np_err_nomem(err);
	struct np_sim sim;
	np_sim_init(&sim, plan, rank);
	sim.out = self;
	np_ns begin = sim.host;
	if (options->layout)
		(void)np_sim_run(&sim);
	for (uint32_t step = 0; !options->layout && step < options->steps && !sim.nomem; step++)
		for (uint32_t piece = 0; piece <= options->layers + 1; piece++)
			sim_piece(&sim, step, piece);
	if (np_synth_has(self, NP_SYNTH_SPAN) && !sim.nomem)
		run_on(&sim, begin);
	if (sim.nomem)
		return np_err_nomem(err);
	np_ns end = sim.dev > sim.host ? sim.dev : sim.host;
	self->session_start_ns = np_synth_clock(self, options->start_epoch_ns);
	self->session_end_ns = np_synth_clock(self, end + 3000000);
	return np_synth_run_derive(self, err);
}

void np_synth_run_release(struct np_synth_run *self)
{
	np_vec_release(&self->items);
	np_vec_release(&self->order);
	np_vec_release(&self->spans);
	np_vec_release(&self->stalls);
	np_vec_release(&self->marks);
	np_vec_release(&self->mem);
	np_vec_release(&self->mem_events);
	np_free(self->steps);
	self->steps = NULL;
}
