/*
 * Which call on the host launched a task, and which operator of the framework asked
 * for it.
 *
 *   torch op ──▶ CANN call ──▶ task
 *
 * db: connection ids all the way. Text: the task's connection id gives the CANN call,
 * the arrow async_npu that ends where the task starts gives the operator.
 */
#ifndef NP_CLUSTER_TASK_LINKS_H
#define NP_CLUSTER_TASK_LINKS_H

#include "profile/profile.h"

enum { NP_TASK_LINKS_LOAD = NP_TASKS | NP_HOST_OPS | NP_HOST_CONNS | NP_FLOWS };

/* By row of tasks: rows of host_ops, NP_NO_U32 where it is not known. */
struct np_task_links {
	uint32_t *cann, *torch;
};

/* false: out of memory. np_task_links_release() in every case. */
bool np_task_links_build(const struct np_profile *profile, struct np_task_links *out);
void np_task_links_release(struct np_task_links *self);

static inline bool np_is_cann_layer(uint8_t layer)
{
	return layer >= NP_HOST_ACL && layer <= NP_HOST_RUNTIME;
}

#endif
