/*
 * What moved over which link, over all ranks, with global ranks: the rows of
 * ClusterCommunicationMatrix and of cluster_communication_matrix.json
 * (cluster_and_advisor.md §2.3, §2.8).
 */
#ifndef NP_CLUSTER_COMM_MATRIX_H
#define NP_CLUSTER_COMM_MATRIX_H

#include "cluster/comm_groups.h"
#include "cluster/sink.h"

/* One kind of operator on one link of one group. */
struct np_comm_link_sum {
	uint32_t label; /* of the group: equal ranks, equal label */
	int64_t step;
	np_id kind; /* NP_ID_NONE: Total Op Info */
	np_id group;
	int64_t src, dst; /* global */
	np_id transport, op;
	double mb, ms;
};

struct np_comm_matrix_sums {
	/* by label, step, then in order of appearance: the links of a kind and group together,
	 * and the totals of a label and step behind its kinds */
	NP_VEC(struct np_comm_link_sum) v;
	uint64_t unmapped; /* rows of links to a rank that nothing tells */
};

/* last: transport and op of the last rank that has the link (text), else of the first (db);
 * `plain`: totals are over all kinds but top, middle, bottom (text), else over those
 * that contain "total" (db). false: out of memory. */
bool np_comm_matrix_sum(struct np_comm_matrix_sums *self, const struct np_cluster *cluster,
                        const struct np_comm_groups *groups, bool text);
void np_comm_matrix_release(struct np_comm_matrix_sums *self);

extern const struct np_column np_comm_matrix_columns[10];
void np_comm_matrix_rows(const struct np_cluster *cluster, const struct np_comm_matrix_sums *sums,
                         struct np_sink *sink);

#endif
