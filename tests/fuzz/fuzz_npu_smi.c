/* Any bytes as the output of npu-smi, and what is picked of it. */
#include <stdlib.h>

#include "collect/npu_pick.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void pick(struct np_npu_set *set, size_t wanted, bool span)
{
	size_t groups[NP_NPU_MAX], chosen[NP_NPU_MAX];
	const char *busy[NP_NPU_MAX];
	size_t n = set->devices.n;
	enum np_npu_grouping grouping = np_npu_groups(set, groups);
	if (!np_npu_grouping_text(grouping))
		abort();
	for (size_t i = 0; i < n; i++) {
		busy[i] = np_npu_busy(set, i, 0);
		if (!busy[i] || groups[i] > i)
			abort();
	}
	struct np_npu_choice choice = np_npu_pick(set, busy, groups, wanted, span, chosen);
	if (!choice.found)
		return;
	for (size_t i = 0; i < wanted; i++) {
		if (chosen[i] >= n || *busy[chosen[i]] ||
		    (!span && groups[chosen[i]] != choice.group))
			abort();
		for (size_t k = 0; k < i; k++)
			if (chosen[k] == chosen[i])
				abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct np_npu_set set;
	struct np_err err = {0};
	np_npu_set_init(&set);
	enum np_status status =
		np_npu_parse((np_str){(const char *)data, size}, "npu-smi", &set, &err);
	if (status != NP_OK && err.msg[0] == '\0')
		abort();
	if (status == NP_OK && (set.devices.n == 0 || set.devices.n > NP_NPU_MAX))
		abort();
	for (size_t n = 1; status == NP_OK && n <= 8; n *= 2) {
		pick(&set, n, false);
		pick(&set, n, true);
	}
	np_npu_set_release(&set);
	return 0;
}
