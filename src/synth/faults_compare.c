#include "synth/faults_compare.h"

enum {
	OP_ATTENTION = NP_OP_LAYER + 3,
	OP_CAST = NP_OP_LAYER + 10,
	BEHIND = 1, /* index in the layer */
};

np_ns np_synth_regressed(uint64_t faults, uint32_t op, np_ns dur)
{
	bool slower = (faults >> NP_SYNTH_OP_REGRESSION & 1) && op == OP_ATTENTION;
	return slower ? dur + dur * 3 / 10 : dur;
}

bool np_synth_inserts(uint64_t faults, uint32_t layers, uint32_t layer, uint32_t index,
                      uint32_t *op)
{
	*op = OP_CAST;
	return (faults >> NP_SYNTH_INSERTED_KERNEL & 1) && layer == layers / 2 && index == BEHIND;
}
