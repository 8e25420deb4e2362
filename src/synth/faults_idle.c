/* What each fault that idles the device leaves behind in a capture. */
#include "synth/model.h"

enum np_synth_fault_id np_synth_stall_fault(uint64_t faults)
{
	for (int id = NP_SYNTH_IDLE_HOST_OP; id <= NP_SYNTH_IDLE_UNTRACED; id++)
		if (faults >> id & 1)
			return (enum np_synth_fault_id)id;
	return NP_SYNTH_FAULTS;
}

const char *np_synth_stall_op(const struct np_synth_stall *stall)
{
	switch ((int)stall->fault) {
	case NP_SYNTH_IDLE_HOST_OP:
		return "aten::unique_consecutive";
	case NP_SYNTH_IDLE_SYNC:
		return "aten::item";
	case NP_SYNTH_IDLE_DATALOADER:
		return "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__";
	default:
		return NULL;
	}
}

np_ns np_synth_stall_sum(const struct np_synth_run *run)
{
	np_ns sum = 0;
	for (size_t i = 0; i < run->stalls.n; i++)
		sum += run->stalls.v[i].planted_ns;
	return sum;
}
