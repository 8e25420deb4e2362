#include "synth/faults_ops.h"

#include "synth/faults_cluster.h"

#include <stdio.h>
#include <string.h>

enum {
	NOMINAL_MHZ = 1800,
	SLOW_MHZ = 1200,
	SHAPES_PER_STEP = 16,
};

static bool has(uint64_t faults, enum np_synth_fault_id fault)
{
	return faults >> fault & 1;
}

size_t np_synth_extra_ops(uint64_t faults, uint32_t ops[NP_SYNTH_MAX_EXTRA])
{
	size_t n = 0;
	if (has(faults, NP_SYNTH_AICPU))
		ops[n++] = NP_OP_INDEX_PUT;
	if (has(faults, NP_SYNTH_MEMORY_BOUND))
		ops[n++] = NP_OP_CONCAT;
	for (uint32_t i = 0; has(faults, NP_SYNTH_FUSABLE) && i < NP_OPS_CHAIN; i++)
		ops[n++] = NP_OP_CHAIN + i;
	return n;
}

const char *np_synth_in_shapes(const struct np_synth_run *run, const struct np_synth_item *item,
                               char scratch[64])
{
	const struct np_synth_op *op = &np_synth_ops[item->op];
	if (item->op == NP_OP_GROUPED) {
		(void)snprintf(scratch, 64, "\"%u,2048;8,2048,1024;8\"",
		               np_synth_tokens(run->plan, run->rank, run->faults));
		return scratch;
	}
	if (!np_synth_has(run, NP_SYNTH_DYNAMIC_SHAPE) || strcmp(op->type, "MatMulV3") != 0)
		return op->in_shapes;
	/* sequences of another length in each step */
	uint32_t step = item->step > 0 ? (uint32_t)item->step : 0;
	uint32_t length = 1024 + 8 * (step * SHAPES_PER_STEP + item->task % SHAPES_PER_STEP);
	(void)snprintf(scratch, 64, "\"%u,2048;3072,2048\"", length);
	return scratch;
}

size_t np_synth_freq(const struct np_synth_run *run,
                     struct np_synth_freq samples[NP_SYNTH_MAX_FREQ])
{
	np_ns begin = run->session_start_ns, end = run->session_end_ns, third = (end - begin) / 3;
	size_t n = 0;
	bool low = np_synth_has(run, NP_SYNTH_LOW_FREQ);
	samples[n++] = (struct np_synth_freq){begin, low ? SLOW_MHZ : NOMINAL_MHZ};
	if (np_synth_has(run, NP_SYNTH_FREQ_DROP)) {
		samples[n++] = (struct np_synth_freq){begin + third, SLOW_MHZ};
		samples[n++] = (struct np_synth_freq){end - third, NOMINAL_MHZ};
	}
	samples[n++] = (struct np_synth_freq){end, low ? SLOW_MHZ : NOMINAL_MHZ};
	return n;
}
