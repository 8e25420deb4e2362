/*
 * The part behind `diagnose`: a rank's collectives, and what it did between them.
 *
 * Every op carries the rank's computing and exposed communication (not hidden by
 * computing) up to its start and up to its end, as running sums. So the time
 * between any two ops a and b of a rank is a sum of three parts, exactly:
 *
 *   start(b) - end(a) = computing + exposed communication + idle
 *
 * (diagnosis_methods.md §3), whichever pair the reduce looks at.
 *
 * Of captures without kernels (communication.json and step_trace_time.csv only)
 * the running sums of computing are absent; the step rows stand in.
 */
#ifndef NP_CLUSTER_TIMELINE_H
#define NP_CLUSTER_TIMELINE_H

#include "base/time.h"
#include "cluster/recipe.h"

/* Ordered by start. */
#define NP_TIMELINE_OPS_COLUMNS(X)                                                        \
	X(np_id, name, "hcom_allReduce__865_0_1")                                         \
	X(np_id, type, "allreduce: lower case, without hcom_")                            \
	X(np_id, group, "decimal hash of the communicator, NP_ID_NONE if unknown")        \
	X(np_id, dtype, "data type, NP_ID_NONE if unknown")                               \
	X(int64_t, count, "elements, NP_NO_I64 if unknown")                               \
	X(int64_t, step, "step id, NP_NO_I64 outside every step")                         \
	X(np_ns, start_ns, "start in the rank's clock")                                   \
	X(np_ns, dur_ns, "duration")                                                      \
	X(np_ns, compute_start_ns, "computing of this rank before the start")             \
	X(np_ns, compute_end_ns, "… before the end")                                      \
	X(np_ns, exposed_start_ns, "exposed communication of this rank before the start") \
	X(np_ns, exposed_end_ns, "… before the end")                                      \
	X(double, wait_us, "recorded wait (communication.json), NaN if none")             \
	X(double, transit_us, "recorded transit, NaN if none")

/* One row per step, by id. */
#define NP_TIMELINE_STEPS_COLUMNS(X)                                                      \
	X(int64_t, step, "step id, NP_NO_I64 for captures without steps")                 \
	X(np_ns, start_ns, "first start of a kernel or op")                               \
	X(np_ns, end_ns, "last end of a kernel or op")                                    \
	X(np_ns, compute_start_ns, "computing of this rank before the start")             \
	X(np_ns, compute_end_ns, "… before the end")                                      \
	X(np_ns, exposed_start_ns, "exposed communication of this rank before the start") \
	X(np_ns, exposed_end_ns, "… before the end")                                      \
	X(double, computing_us, "of step_trace_time, NaN if none")                        \
	X(double, free_us, "of step_trace_time, NaN if none")

/* One row. */
#define NP_TIMELINE_FACTS_COLUMNS(X)                                               \
	X(uint8_t, has_kernels, "1: the sums of computing are those of kernels")   \
	X(uint8_t, rounded, "1: times of the ops are doubles of us in the source") \
	X(uint32_t, no_group, "ops whose group is not recorded")

NP_TABLE_STRUCT(np_timeline_ops, NP_TIMELINE_OPS_COLUMNS);
NP_TABLE_STRUCT(np_timeline_steps, NP_TIMELINE_STEPS_COLUMNS);
NP_TABLE_STRUCT(np_timeline_facts, NP_TIMELINE_FACTS_COLUMNS);
extern const struct np_table_desc np_timeline_ops_desc, np_timeline_steps_desc,
	np_timeline_facts_desc;

extern const struct np_part np_part_timeline;

#endif
