/*
 * Times and bandwidth of collectives over all ranks: ClusterCommunicationTime,
 * ClusterCommunicationBandwidth (cluster_and_advisor.md §2.7), and the sums behind both
 * formats. Rows are made one by one: there are millions of them in a large cluster.
 */
#ifndef NP_CLUSTER_COMM_TIME_H
#define NP_CLUSTER_COMM_TIME_H

#include "cluster/comm_groups.h"
#include "cluster/grouping.h"
#include "cluster/parts.h"
#include "cluster/sink.h"

/* The digest of one rank, with its ops by step and group. */
struct np_comm_rank {
	int64_t rank;
	const struct np_digest_comm_times *times;
	const struct np_digest_comm_links *links;
	const struct np_digest_comm_packages *packages;
	struct np_groups groups; /* rows of times of one step and group (both kinds) */
};

/* false: out of memory; release in every case. */
bool np_comm_rank_open(struct np_comm_rank *self, const struct np_cluster_rank *rank);
void np_comm_rank_close(struct np_comm_rank *self);

static inline uint32_t np_comm_links_begin(const struct np_digest_comm_times *times, size_t row)
{
	return row > 0 ? times->links_end[row - 1] : 0;
}

static inline uint32_t np_comm_packages_begin(const struct np_digest_comm_links *links, size_t link)
{
	return link > 0 ? links->packages_end[link - 1] : 0;
}

/* An op that has times, and is not only known by its links. */
bool np_comm_has_times(const struct np_digest_comm_times *times, size_t row);

struct np_comm_sums {
	double elapse, transit, wait, sync, idle;
};
void np_comm_sum(struct np_comm_sums *sums, const struct np_digest_comm_times *times, size_t row);

/* part / (part + transit), to four decimals; 0 where both are 0 (or NaN). */
double np_comm_ratio(double part, double transit);
/* size / time, to four decimals; 0 without time. */
double np_comm_gbps(double mb, double ms);

/* One packet size of one kind of link, with the sums over all ops of that kind. */
struct np_comm_size {
	np_id transport;
	double package_mb, count, package_ms;
	double transit_mb, transit_ms;
};

struct np_comm_sizes {
	NP_VEC(struct np_comm_size) v;
};

/* Add the links of these rows of times. Then _finish(): sorted by transport and size, each
 * once; a link without packets gives one row of size 0. false: out of memory. */
bool np_comm_sizes_add(struct np_comm_sizes *self, const struct np_comm_rank *rank,
                       const uint32_t *rows, size_t n);
void np_comm_sizes_finish(struct np_comm_sizes *self);

extern const struct np_column np_comm_time_columns[12], np_comm_bandwidth_columns[12];

/* All rows of the two tables. Errors: E_NOMEM; those of the sink are in the sink. */
enum np_status np_comm_time_rows(const struct np_cluster *cluster,
                                 const struct np_comm_groups *groups, struct np_sink *sink,
                                 struct np_err *err);
enum np_status np_comm_bandwidth_rows(const struct np_cluster *cluster, struct np_sink *sink,
                                      struct np_err *err);

/* "step13", or "step" without one. */
void np_comm_step_text(int64_t step, char out[32]);

#endif
