/*
 * The matrix of `npu-smi info -t topo`, line by line for npu_smi.c, and the groups of devices
 * that it makes: those which reach each other without PCIe.
 */
#ifndef NP_COLLECT_NPU_TOPO_H
#define NP_COLLECT_NPU_TOPO_H

#include "collect/npu_smi.h"

/* "NPU0 NPU1 … CPU Affinity", "Phy-ID0 Phy-ID1 …" */
bool np_npu_is_topo_head(np_str line);
bool np_npu_topo_head(struct np_npu_topo *self, np_str line);

/* "NPU0 X HCCS … 144-167"; lines of network cards ("NIC0 …") are rows, too, and left out. */
bool np_npu_is_topo_row(np_str line);
bool np_npu_topo_row(struct np_npu_topo *self, struct np_arena *arena, np_str line);
bool np_npu_topo_is_whole(const struct np_npu_topo *self);

enum np_npu_grouping {
	NP_GROUPS_TOPO,  /* what is linked by HCCS, HCCS_SW, SIO, UB or XLink */
	NP_GROUPS_MODEL, /* no topology: how servers with this chip are built */
	NP_GROUPS_CARD,  /* neither: the chips of one NPU */
};

/*
 * The group of each device (0, 1, …, in order of the first device) into groups[devices.n].
 * Without a topology: 910A: rings of four NPUs; 910B and what came after it (A3): eight NPUs
 * (a server, or a half of one with sixteen); other chips: those of one NPU.
 */
enum np_npu_grouping np_npu_groups(const struct np_npu_set *set, size_t *groups);

/* Sentence about how groups were found, for a note; to be looked up by np_tr(). */
const char *np_npu_grouping_text(enum np_npu_grouping grouping);

#endif
