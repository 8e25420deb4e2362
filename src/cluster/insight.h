/*
 * What the modes `summary` and `communication` share: the pages of MindStudio
 * Insight of these names, as tables. Private to src/cluster/.
 */
#ifndef NP_CLUSTER_INSIGHT_H
#define NP_CLUSTER_INSIGHT_H

#include "cluster/recipe.h"

/* Operations as the exporter summed them up (communication.json, CommAnalyzerTime), without
 * its totals. Where a capture has no such file: the durations of its collectives as elapsed
 * time, the other times NaN. */
#define NP_DIGEST_INSIGHT_TIME_COLUMNS(X)                                 \
	X(int64_t, step, "step id, NP_NO_I64 for captures without steps") \
	X(np_id, group, "decimal hash of the communicator")               \
	X(np_id, op, "hcom_allReduce__865_0_1")                           \
	X(uint8_t, p2p, "1 point-to-point, 0 collective")                 \
	X(double, start_us, "start; a double, as in the file")            \
	X(double, elapse_ms, "elapse")                                    \
	X(double, transit_ms, "transit, NaN if unknown")                  \
	X(double, wait_ms, "wait, NaN if unknown")                        \
	X(double, sync_ms, "synchronization, NaN if unknown")             \
	X(double, idle_ms, "idle, NaN if unknown")

/* Sums over the operations of a group, by transport. Small packets: see np_insight_small_mb(). */
#define NP_DIGEST_INSIGHT_BAND_COLUMNS(X)                   \
	X(int64_t, step, "step id")                         \
	X(np_id, group, "decimal hash of the communicator") \
	X(np_id, transport, "RDMA, HCCS, PCIE, SDMA, SIO")  \
	X(double, mb, "transit size, 1e6 bytes")            \
	X(double, ms, "transit time")                       \
	X(int64_t, ops, "operations that have packets")     \
	X(int64_t, small_ops, "operations that have small packets")

/* Packets by size, summed over the operations of a group. */
#define NP_DIGEST_INSIGHT_PACK_COLUMNS(X)                   \
	X(int64_t, step, "step id")                         \
	X(np_id, group, "decimal hash of the communicator") \
	X(np_id, transport, "RDMA, HCCS, PCIE, SIO")        \
	X(double, package_mb, "size of a packet")           \
	X(double, count, "how many")                        \
	X(double, ms, "their time")

/* Operations with RDMA: for the check for retransmission. */
#define NP_DIGEST_INSIGHT_RDMA_COLUMNS(X)                   \
	X(int64_t, step, "step id")                         \
	X(np_id, group, "decimal hash of the communicator") \
	X(np_id, op, "operator")                            \
	X(double, ms, "transit time on RDMA")

/* Links inside a group, as recorded. */
#define NP_DIGEST_INSIGHT_LINK_COLUMNS(X)                   \
	X(int64_t, step, "step id")                         \
	X(np_id, group, "decimal hash of the communicator") \
	X(np_id, kind, "allreduce-top1, send-total …")      \
	X(np_id, transport, "HCCS, RDMA, LOCAL …")          \
	X(uint32_t, src, "source rank in the group")        \
	X(uint32_t, dst, "destination rank in the group")   \
	X(double, mb, "size, 1e6 bytes")                    \
	X(double, ms, "time")

/* What needs kernels and tasks: operations on a slow link beside a matrix product, and
 * copies of sizes that are no multiple of 512 bytes; summed up by group. */
#define NP_DIGEST_INSIGHT_CHECK_COLUMNS(X)                                             \
	X(np_id, group, "decimal hash of the communicator")                            \
	X(uint8_t, what, "enum np_insight_check")                                      \
	X(np_id, op, "an operation of the kind: the longest contended, the first odd") \
	X(int64_t, count, "how many operations or copies")                             \
	X(int64_t, of, "of how many")                                                  \
	X(double, ms, "time of contention, or of the copies")

enum np_insight_check { NP_INSIGHT_CONTENTION, NP_INSIGHT_ALIGNMENT };

NP_TABLE_STRUCT(np_digest_insight_time, NP_DIGEST_INSIGHT_TIME_COLUMNS);
NP_TABLE_STRUCT(np_digest_insight_band, NP_DIGEST_INSIGHT_BAND_COLUMNS);
NP_TABLE_STRUCT(np_digest_insight_pack, NP_DIGEST_INSIGHT_PACK_COLUMNS);
NP_TABLE_STRUCT(np_digest_insight_rdma, NP_DIGEST_INSIGHT_RDMA_COLUMNS);
NP_TABLE_STRUCT(np_digest_insight_link, NP_DIGEST_INSIGHT_LINK_COLUMNS);
NP_TABLE_STRUCT(np_digest_insight_check, NP_DIGEST_INSIGHT_CHECK_COLUMNS);
extern const struct np_table_desc np_digest_insight_time_desc, np_digest_insight_band_desc,
	np_digest_insight_pack_desc, np_digest_insight_rdma_desc, np_digest_insight_link_desc,
	np_digest_insight_check_desc;

extern const struct np_part np_part_insight_comm; /* all but the checks */
extern const struct np_part np_part_insight_check;

/* Packets below this size are small, by the viewer's rule. */
double np_insight_small_mb(np_str transport);

/* Step id as a cell, not available when there is none. */
void np_cell_step(struct np_table *table, int64_t step);

/* What --step_id asks for: one step, or all, also when no rank has that step (which the map
 * has told). `has`: does a rank have it? Zeroed: all. */
struct np_insight_steps {
	bool one;
	int64_t step;
};
struct np_insight_steps np_insight_steps_of(const struct np_cluster *cluster,
                                            bool (*has)(const struct np_cluster_rank *rank,
                                                        int64_t step));

static inline bool np_insight_wants(const struct np_insight_steps *self, int64_t step)
{
	return !self->one || self->step == step;
}

/* The group of this key as the capture recorded it, or NULL. */
const struct np_group *np_insight_group(const struct np_capture *capture, np_str key);

#endif
