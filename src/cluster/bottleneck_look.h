/*
 * A closer look at the two ranks of a collective: what the slow one did differently.
 *
 * Three lists per rank, in order of start: tasks of the device, operators of the
 * framework, CANN calls. Two lists are walked backwards from the op; each row of the slow
 * rank is paired with the next one of that name on the fast rank, until a pair began less
 * than 1 ms apart: there both ranks were equally far.
 */
#ifndef NP_CLUSTER_BOTTLENECK_LOOK_H
#define NP_CLUSTER_BOTTLENECK_LOOK_H

#include "cluster/cluster.h"
#include "cluster/task_links.h"

struct np_look_list {
	size_t n, n_names;
	uint32_t *name; /* string id of the profile * 8 + a number of the list's own */
	np_ns *start, *end;
	uint32_t *before; /* the last row before this one with its name, NP_NO_U32 */
	uint32_t *last;   /* by name: its last row */
};

struct np_look {
	uint32_t rank; /* row of the cluster */
	struct np_profile *profile;
	struct np_task_links links;
	struct np_look_list device, torch, cann;
};

/* Errors: E_NOMEM. */
enum np_status np_look_new(const struct np_cluster *cluster, uint32_t rank, struct np_look **out,
                           struct np_err *err);
void np_look_free(struct np_look *self); /* NULL is fine */

struct np_look_pair {
	const struct np_look *slow, *fast;
	np_ns slow_start, slow_end, fast_start, fast_end; /* of the op */
	bool whole; /* device tasks behind the op count, too, as the official tool has it */
};

/* Append the reason. false: out of memory. */
bool np_look_compare(const struct np_look_pair *pair, struct np_buf *out);

#endif
