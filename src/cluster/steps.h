/*
 * Which step a time of the host belongs to.
 */
#ifndef NP_CLUSTER_STEPS_H
#define NP_CLUSTER_STEPS_H

#include "profile/profile.h"

struct np_step_range {
	np_ns start, end; /* both belong to it */
	int64_t id;
};

struct np_step_finder {
	struct np_step_range *v; /* by start */
	size_t n;
};

/* The steps that have a range on the host. false: out of memory. Release in every case. */
bool np_step_finder_init(struct np_step_finder *self, const struct np_steps *steps);
void np_step_finder_release(struct np_step_finder *self);

/* The id of the last step that began by then and has not ended, or NP_NO_I64. */
int64_t np_step_find(const struct np_step_finder *self, np_ns at);

#endif
