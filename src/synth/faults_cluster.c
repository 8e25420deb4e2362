#include "synth/faults_cluster.h"

#include "synth/program.h"
#include "synth/rng.h"

bool np_synth_needs_layout(enum np_synth_fault_id id)
{
	return id >= NP_SYNTH_LOW_FREQ && id <= NP_SYNTH_CLOCK_DRIFT;
}

bool np_synth_cluster_scope(const struct np_synth_plan *plan, const struct np_synth_fault *fault,
                            uint32_t rank, bool *hit)
{
	int64_t own;
	switch ((int)fault->id) {
	case NP_SYNTH_SLOW_NODE:
	case NP_SYNTH_CLOCK_OFFSET:
	case NP_SYNTH_CLOCK_DRIFT:
		own = rank / plan->cards;
		break;
	case NP_SYNTH_STAGE_IMBALANCE:
		own = np_synth_stage(plan, rank);
		break;
	default:
		return false;
	}
	/* without an argument every clock but the first host's is wrong */
	*hit = fault->a < 0 ? own > 0 : own == fault->a;
	return true;
}

uint32_t np_synth_tokens(const struct np_synth_plan *plan, uint32_t rank, uint64_t faults)
{
	uint64_t noise = np_noise(plan->options.seed ^ 0x70c5, rank);
	uint32_t tokens = NP_EXPERT_TOKENS - 64 + (uint32_t)(noise % 129);
	return faults >> NP_SYNTH_EXPERT_IMBALANCE & 1 ? 3 * tokens : tokens;
}

np_ns np_synth_cluster_dur(const struct np_sim *sim, uint32_t op, np_ns dur)
{
	bool ai_core = np_synth_ops[op].core != NP_CORE_AICPU;
	if (op == NP_OP_GROUPED)
		dur = dur * np_synth_tokens(sim->plan, sim->rank, sim->faults) / NP_EXPERT_TOKENS;
	if (np_sim_has(sim, NP_SYNTH_LOW_FREQ) && ai_core)
		dur += dur / 2;
	if (np_sim_has(sim, NP_SYNTH_STAGE_IMBALANCE))
		dur += dur / 2;
	if (np_sim_has(sim, NP_SYNTH_CARRIED_DELAY) && sim->last_layer)
		dur *= 8;
	/* one micro-batch with the work of all */
	if (np_sim_has(sim, NP_SYNTH_PIPELINE_BUBBLE))
		dur *= sim->plan->options.micro_batches;
	return dur;
}

void np_synth_cluster_clock(struct np_synth_run *run)
{
	uint64_t seed = run->plan->options.seed;
	int64_t sign = np_noise(seed ^ 0x51c4, run->host) & 1 ? 1 : -1;
	uint64_t part = 700 + np_noise(seed ^ 0xd41f, run->host) % 601;
	if (np_synth_has(run, NP_SYNTH_CLOCK_OFFSET))
		run->shift_ns += sign * (np_ns)(NP_CLOCK_OFFSET_NS / 1000 * part);
	if (np_synth_has(run, NP_SYNTH_CLOCK_DRIFT))
		run->drift_ppb += -sign * (int64_t)(NP_CLOCK_DRIFT_PPB / 1000 * part);
}

uint32_t np_synth_link_factor(const struct np_synth_plan *plan, uint32_t a, uint32_t b)
{
	if (!plan->options.layout)
		return 1;
	for (size_t i = 0; i < plan->options.n_faults; i++) {
		const struct np_synth_fault *fault = &plan->options.faults[i];
		bool at = fault->a == a / plan->cards || fault->a == b / plan->cards;
		if (fault->id == NP_SYNTH_SLOW_NODE && at)
			return NP_SLOW_NODE_FACTOR;
	}
	return 1;
}
