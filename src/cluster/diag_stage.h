/*
 * Stages of a pipeline: do they have equal work, and how long do they wait for
 * each other?
 *
 * Work of a rank in a step is its computing; of a stage the median of its ranks.
 * The bubble of a rank is what it waits in sends and receives. By kernels where
 * there are, else by step_trace_time.
 */
#ifndef NP_CLUSTER_DIAG_STAGE_H
#define NP_CLUSTER_DIAG_STAGE_H

#include "cluster/diag.h"
#include "cluster/parallel.h"

struct np_stage {
	uint32_t ranks;
	np_ns work; /* median of its ranks, per step */
	np_ns wait; /* in sends and receives, mean of its ranks, per step */
};

struct np_stages {
	struct np_parallel_plan plan;
	bool has_plan;
	NP_VEC(struct np_stage) list; /* by pp index; none unless there are several stages */
	np_ns wait;                   /* mean of all ranks, per step */
	uint32_t slowest;             /* stage with most work */
	np_ns excess;                 /* of its work over the median of the stages, per step */
	uint32_t micro_batches;       /* sends of the first stage per step; 0 unknown */
};

/* false: out of memory. np_stages_release() always. */
bool np_diag_stages(struct np_diagnosis *self, struct np_stages *out);
void np_stages_release(struct np_stages *self);

#endif
