/* The digest of np_part_cluster_time. */
#ifndef NP_CLUSTER_CLUSTER_TIME_PART_H
#define NP_CLUSTER_CLUSTER_TIME_PART_H

#include "cluster/cluster_time.h"

#define NP_DIGEST_STEP_TIMES_COLUMNS(X)                                         \
	X(int64_t, step, "its id, -1 for a capture without steps")              \
	X(int64_t, step_ns, "length on the host, NP_NO_I64 if unknown")         \
	X(double, computing_us, "of the exporter's step trace, NaN without it") \
	X(double, not_overlapped_us, "communication(not overlapped)")           \
	X(double, overlapped_us, "overlapped")                                  \
	X(double, comm_us, "communication")                                     \
	X(double, free_us, "free")                                              \
	X(int64_t, memory_ns, "copies, NP_NO_I64 if no tasks are recorded")     \
	X(int64_t, memory_exposed_ns, "of them not under compute or communication")

NP_TABLE_STRUCT(np_digest_step_times, NP_DIGEST_STEP_TIMES_COLUMNS);
extern const struct np_table_desc np_digest_step_times_desc;

#endif
