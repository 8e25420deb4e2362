/* Faults that only the comparison of ranks shows. */
#ifndef NP_SYNTH_FAULTS_CLUSTER_H
#define NP_SYNTH_FAULTS_CLUSTER_H

#include "synth/sim.h"

enum {
	NP_LATE_START_NS = 30000000,
	NP_CLOCK_OFFSET_NS = 1700000,
	NP_CLOCK_DRIFT_PPB = 60000,
	NP_SLOW_NODE_FACTOR = 5,
	NP_EXPERT_TOKENS = 4096,
};

/* Does the fault need a layout, because only that has what it changes? */
bool np_synth_needs_layout(enum np_synth_fault_id id);

/* Faults of a host or a stage: is the rank in it? False: the fault is not one of these,
 * and its argument is a rank. */
bool np_synth_cluster_scope(const struct np_synth_plan *plan, const struct np_synth_fault *fault,
                            uint32_t rank, bool *hit);

/* How long a kernel takes on a rank of a layout, of its healthy duration. */
np_ns np_synth_cluster_dur(const struct np_sim *sim, uint32_t op, np_ns dur);

/* Tokens of the experts of a rank: the first number of GroupedMatmul's shapes. */
uint32_t np_synth_tokens(const struct np_synth_plan *plan, uint32_t rank, uint64_t faults);

/* Offset and drift of the host's clock, into a run whose host and faults are known. */
void np_synth_cluster_clock(struct np_synth_run *run);

/* How much slower links of two ranks are: 1 if they are not. */
uint32_t np_synth_link_factor(const struct np_synth_plan *plan, uint32_t a, uint32_t b);

#endif
