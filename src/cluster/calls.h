/*
 * The collectives of all ranks in one list, in order of rank and time, and which of them
 * are the same collective on several ranks.
 */
#ifndef NP_CLUSTER_CALLS_H
#define NP_CLUSTER_CALLS_H

#include "cluster/grouping.h"
#include "cluster/parts.h"

struct np_calls {
	const struct np_cluster *cluster;
	size_t n;
	np_id *name, *type, *group, *key, *dtype;
	uint32_t *nth, *rank; /* row of the cluster */
	uint8_t *p2p;
	int64_t *start, *dur, *size, *step;
};

struct np_calls_filter {
	bool by_step;     /* only those of --step_id */
	bool by_launch;   /* only those whose launch is known */
	bool collectives; /* no point-to-point operations */
};

/* false: out of memory. Release in every case. */
bool np_calls_collect(const struct np_cluster *cluster, const struct np_calls_filter *filter,
                      struct np_calls *out);
void np_calls_release(struct np_calls *self);

/*
 * One group per collective: the same group, name, step, and occurrence of the name within the
 * step. `loose`: of the group and name alone, as the official tool has it.
 */
bool np_calls_instances(const struct np_calls *self, bool loose, struct np_groups *out);

static inline int64_t np_calls_rank(const struct np_calls *self, uint32_t row)
{
	return self->cluster->ranks.v[self->rank[row]].rank;
}

/* What the group is called, else its hash. */
np_str np_calls_group(const struct np_calls *self, uint32_t row);

/* Which ranks have any (unreadable ones count as having, they are told elsewhere): into
 * has[], one per rank of the cluster. */
void np_calls_has(const struct np_cluster *cluster, bool *has);

#endif
