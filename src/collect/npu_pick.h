/*
 * Which devices are free, and N of them that belong together (R11a, requirements §2.6).
 *
 * A device is free when its health is OK, the table of processes names none on it, its AI cores
 * do nothing, and little of its memory is taken. The last one catches what a container hides:
 * processes of other containers are not in its table.
 */
#ifndef NP_COLLECT_NPU_PICK_H
#define NP_COLLECT_NPU_PICK_H

#include "collect/npu_topo.h"

enum {
	NP_NPU_IDLE_MB = 4096,  /* what a driver and firmware take at most … */
	NP_NPU_IDLE_SHARE = 10, /* … or so many percent, whatever is more */
	NP_NPU_IDLE_AICORE = 5, /* percent */
};

/* Why a device is not free; "" when it is. Static or in the arena of `set`; NULL: no memory. */
const char *np_npu_busy(struct np_npu_set *set, size_t device, uint64_t max_used_mb);

/* The logical id, as ASCEND_RT_VISIBLE_DEVICES wants it: what npu-smi told, else the position
 * among the devices that are seen. */
int64_t np_npu_logical(const struct np_npu_set *set, size_t device);
/* Did npu-smi tell all logical ids? */
bool np_npu_knows_logical(const struct np_npu_set *set);

struct np_npu_choice {
	size_t n_free, n_best; /* free ones in all, and in the group with most of them */
	size_t group;          /* the chosen one; that of the first device when it spans several */
	bool found;
};

/*
 * Choose n devices: chosen[n], in order of their logical ids. The group which n of its free
 * devices leave the fewest of is taken, and in it whole NPUs before parts of some. `busy` holds
 * np_npu_busy() of each device, `groups` np_npu_groups(). `span`: from several groups when none
 * has enough. max_used_mb 0: the limits above.
 */
struct np_npu_choice np_npu_pick(const struct np_npu_set *set, const char *const *busy,
                                 const size_t *groups, size_t n, bool span, size_t *chosen);

#endif
