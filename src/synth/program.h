/*
 * Parallel layouts: tensor, expert, data and pipeline parallel, ranks in Megatron's
 * order tp-ep-dp-pp. Every stage of the pipeline has a program, a list of acts that
 * is the same in every step:
 *
 *   copy in │ for each micro-batch: receive │ layers │ send
 *           │ for each micro-batch: receive │ layers │ send      backward
 *           │ gradients: dp, edp │ world │ optimizer │ weights: dp │ copy back
 *
 * A rank runs until it must wait for a collective that not all have reached, then
 * another goes on: a Kahn network, whose times do not depend on who runs first. At
 * most one collective of a rank is open at any time.
 */
#ifndef NP_SYNTH_PROGRAM_H
#define NP_SYNTH_PROGRAM_H

#include "synth/sim.h"

enum np_synth_act_kind {
	NP_ACT_KERNEL,
	NP_ACT_COMM,
	NP_ACT_WAIT,
	NP_ACT_STALL,
	NP_ACT_EXTRA,
	NP_ACT_OPEN,
	NP_ACT_CLOSE
};
struct np_synth_act {
	uint8_t kind, dim, coll;
	bool last_layer;
	uint32_t pair; /* KERNEL: np_synth_item.pair; OPEN: the mark's n */
	uint32_t op;   /* KERNEL: row of np_synth_ops; COMM: how many were before; EXTRA: layer;
		      * OPEN: kind of mark */
	uint32_t len_bytes;
};

/* Is there such a communicator, and which is it for a rank? */
bool np_synth_has_dim(const struct np_synth_plan *plan, uint32_t rank, enum np_synth_dim dim);
uint32_t np_synth_group_of(const struct np_synth_plan *plan, uint32_t rank, enum np_synth_dim dim);
static inline uint32_t np_synth_stage(const struct np_synth_plan *plan, uint32_t rank)
{
	return rank / (plan->tp * plan->dp);
}

/* Fill in pp, ep, dp, layers; errors: E_USAGE for sizes that do not fit together. */
enum np_status np_synth_layout_options(struct np_synth_options *options, struct np_err *err);

/* Groups, programs and the whole run of all ranks. Errors: E_NOMEM, E_LIMIT. */
enum np_status np_synth_layout_plan(struct np_synth_plan *self, struct np_err *err);

/* What a collective moves. */
uint64_t np_synth_act_bytes(const struct np_synth_plan *plan, const struct np_synth_act *act);

/* Run on until the end, until a collective was posted (while planning), or until one
 * must be waited for whose end is not known. */
enum np_sim_stop { NP_SIM_DONE, NP_SIM_POSTED, NP_SIM_WAITS };
enum np_sim_stop np_sim_run(struct np_sim *sim);

/* All ranks together: fills plan->meets and plan->instances (lockstep.c). Errors: E_NOMEM. */
enum np_status np_synth_run_all(struct np_synth_plan *self, struct np_err *err);

#endif
