/*
 * The parts that several recipes share, with the tables of their digests. A part
 * that one recipe needs stands in that recipe's file.
 */
#ifndef NP_CLUSTER_PARTS_H
#define NP_CLUSTER_PARTS_H

#include "base/time.h"
#include "cluster/recipe.h"

/* Collectives and point-to-point operations as recorded (COMMUNICATION_OP, trace, kernel table). */
#define NP_DIGEST_COMM_OPS_COLUMNS(X)                                                      \
	X(np_id, name, "hcom_allReduce__865_0_1")                                          \
	X(np_id, type, "hcom_allReduce_")                                                  \
	X(np_id, group, "group id (db) or its decimal hash (text), NP_ID_NONE if unknown") \
	X(np_id, dtype, "data type")                                                       \
	X(int64_t, count, "elements, NP_NO_I64 if unknown")                                \
	X(np_ns, start_ns, "start on the device")                                          \
	X(np_ns, dur_ns, "duration")

NP_TABLE_STRUCT(np_digest_comm_ops, NP_DIGEST_COMM_OPS_COLUMNS);
extern const struct np_table_desc np_digest_comm_ops_desc;

/* All of them, or those that start within the range of --step_id. */
extern const struct np_part np_part_comm_ops;

#endif
