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

/*
 * The same for what looks at launches, steps and payloads; and where no op is recorded
 * singly, those of communication.json or analysis.db (lite captures).
 */
#define NP_DIGEST_COMM_CALLS_COLUMNS(X)                                                \
	X(np_id, name, "hcom_allReduce__865_0_1")                                      \
	X(np_id, type, "hcom_allReduce_")                                              \
	X(np_id, group, "group as recorded, NP_ID_NONE if unknown")                    \
	X(np_id, key, "the same group on every rank and in every format: its hash")    \
	X(np_id, dtype, "data type")                                                   \
	X(np_ns, start_ns, "start on the device")                                      \
	X(np_ns, dur_ns, "duration")                                                   \
	X(int64_t, conn, "connection to the launch, NP_NO_I64 if unknown")             \
	X(np_ns, launch_ns, "start of its call of CANN, NP_NO_I64 if unknown")         \
	X(int64_t, step, "id of the step of its launch, NP_NO_I64 outside every step") \
	X(int64_t, size_bytes, "payload, NP_NO_I64 if unknown")                        \
	X(uint32_t, nth, "how many of this name and group came before it in its step") \
	X(uint8_t, p2p, "1 point-to-point")                                            \
	X(uint8_t, within, "1 when --step_id takes it, by its launch")

NP_TABLE_STRUCT(np_digest_comm_calls, NP_DIGEST_COMM_CALLS_COLUMNS);
extern const struct np_table_desc np_digest_comm_calls_desc;
extern const struct np_part np_part_comm_calls;

/* hcom_send__…, hcom_receive__…, hcom_batchSendRecv__… */
bool np_is_p2p_name(np_str name);

/* Is it an operation's row, and no "Total Op Info"? */
bool np_is_comm_op_name(np_str name);

/* "865" of hcom_allReduce__865_0_1: the last digits of the group's hash; "" without. */
np_str np_comm_domain(np_str name);

/* A lane of the oldest traces is numbered, "Group 0": that means nothing on another rank. */
bool np_is_lane_number(np_str group);

/* Starts of CANN's calls by connection: host_ops of NP_HOST_CANN. */
struct np_cann_calls {
	struct np_map row_of; /* connection → row in host_ops */
	const struct np_host_ops *ops;
};
/* all: of every connection, else of those of comm_ops. false: out of memory. Release in every
 * case. */
bool np_cann_calls_init(struct np_cann_calls *self, const struct np_profile *profile, bool all);
void np_cann_calls_release(struct np_cann_calls *self);
np_ns np_cann_call_start(const struct np_cann_calls *self, int64_t conn); /* or NP_NO_I64 */

/* A call of CANN: what a database has in CANN_API. */
static inline bool np_is_cann_layer(uint8_t layer)
{
	return layer >= NP_HOST_ACL && layer <= NP_HOST_RUNTIME;
}

#endif
