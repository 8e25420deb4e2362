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

/* The same by row of comm_ops, of text captures. An np_alloc'd array, also on failure. */
bool np_comm_links_build(const struct np_profile *profile, uint32_t **torch);

/* Arrows of a trace from operator to operator: rows of host_ops. */
struct np_arrows {
	struct np_arrow {
		uint32_t from, to;
	} * v;
	size_t n, cap;
};

/* false: out of memory. np_vec_release() in every case. */
bool np_arrows_build(const struct np_profile *profile, np_str category, struct np_arrows *out);

#endif
