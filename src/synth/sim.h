/* One rank being simulated: what model.c (one rank) and program.c (a rank of a
 * pipeline, and all of them together) share. */
#ifndef NP_SYNTH_SIM_H
#define NP_SYNTH_SIM_H

#include "synth/model.h"

enum { NP_SIM_MEM_LIVE = 6 }; /* kernels until an output is freed */

/* Cursors of the host and its streams; true times. */
struct np_sim {
	const struct np_synth_plan *plan;
	uint32_t rank;
	uint64_t faults;
	np_ns host, deq, dev, comm; /* when each is free next */
	uint32_t corr, conn, task, comm_task;
	uint64_t draws;
	np_ns slow_launch; /* of the next launch */
	int32_t step;
	struct np_synth_run *out; /* NULL while planning */
	uint64_t mem_total, mem_ring[NP_SIM_MEM_LIVE];
	size_t mem_n;
	bool nomem;
	/* of a layout (program.c) */
	uint32_t next_step;
	size_t at;             /* in the stage's program */
	bool waits;            /* a collective is posted and was not waited for */
	uint32_t posted;       /* which of the step's */
	uint32_t seq[NP_DIMS]; /* collectives so far, per communicator */
	uint32_t pair;         /* of the next kernel */
	size_t open[4];        /* marks that are open */
	uint32_t n_open;
	bool last_layer; /* of the step */
};

static inline bool np_sim_has(const struct np_sim *sim, enum np_synth_fault_id fault)
{
	return sim->faults >> fault & 1;
}

void np_sim_init(struct np_sim *sim, const struct np_synth_plan *plan, uint32_t rank);
uint64_t np_sim_draw(struct np_sim *sim);
/* Store an item of the run that is filled, by the rank's clock. */
void np_sim_keep(struct np_sim *sim, struct np_synth_item *item);
/* The host op and its launch; returns when the device may start. */
np_ns np_sim_issue(struct np_sim *sim, struct np_synth_item *item);
void np_sim_kernel(struct np_sim *sim, uint32_t op);
void np_sim_stall(struct np_sim *sim);
void np_sim_step_begin(struct np_sim *sim, uint32_t step);
void np_sim_step_end(struct np_sim *sim);
struct np_synth_meet *np_synth_meet_at(const struct np_synth_plan *plan, uint32_t step,
                                       uint32_t index, uint32_t rank);
uint64_t np_synth_name_hash(const char *name);

#endif
