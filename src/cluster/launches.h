/*
 * What the operators of the framework have launched: each kernel and collective beside
 * each operator that has its connection.
 *
 *   db    kernels, comm_ops, comm_schedule ──conn──▶ host_conns ──▶ host_ops
 *   text  kernels ──start, name──▶ tasks ──arrow async_npu──▶ host_ops
 *         comm_ops ─────────────start──────────────┘
 */
#ifndef NP_CLUSTER_LAUNCHES_H
#define NP_CLUSTER_LAUNCHES_H

#include "cluster/task_links.h"

enum np_launch_kind {
	NP_LAUNCH_COMPUTE,  /* row of kernels */
	NP_LAUNCH_COMM,     /* row of comm_ops */
	NP_LAUNCH_SCHEDULE, /* row of comm_schedule */
};

struct np_launch {
	np_ns op_start_ns;
	np_ns start_ns, end_ns; /* of the kernel */
	uint32_t op;            /* row in host_ops */
	uint32_t row;           /* by kind */
	uint32_t name;          /* string of the profile: the kernel, of a collective its type */
	uint8_t kind;           /* enum np_launch_kind */
};

struct np_launches {
	struct np_launch *v;
	size_t n, cap;
};

enum {
	NP_LAUNCHES_LOAD = NP_KERNELS | NP_COMM_OPS | NP_COMM_SCHEDULE | NP_TASK_LINKS_LOAD,
};

/* By kind, start of the operator, start of the kernel. false: out of memory;
 * np_launches_release() in every case. */
bool np_launches_collect(const struct np_profile *profile, struct np_launches *out);
void np_launches_release(struct np_launches *self);

/* The first row of host_conns of this connection, or their number: follow it while the
 * connection stays. */
size_t np_conns_find(const struct np_host_conns *conns, int64_t conn);

#endif
