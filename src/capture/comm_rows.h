/*
 * Rows of comm_time, comm_bandwidth and comm_matrix, from JSON or from a database.
 *
 * Both formats are brought to one shape (docs/formats/communication.md): per op and
 * link one row for the link as a whole (package_mb NaN) and one per packet size; links
 * that moved nothing have no row.
 */
#ifndef NP_CAPTURE_COMM_ROWS_H
#define NP_CAPTURE_COMM_ROWS_H

#include "profile/profile.h"

/* What all rows of one operator share. */
struct np_comm_key {
	int64_t step;
	uint8_t p2p;
	uint32_t op, group; /* op: the kind, in comm_matrix */
};

/* "step13" → 13; NP_NO_I64 for "step", and for anything else. */
int64_t np_comm_step(np_str text);

/* Split "hcom_allReduce__865_0_1@1197…" at its first '@'. false: out of memory. */
bool np_comm_name(struct np_profile *profile, np_str text, struct np_comm_key *key);

/*
 * msprof's files have operators where those of torch have steps: is this key one, with
 * its "@group", and is it point-to-point? Its tables have no column that tells, either.
 */
bool np_comm_is_op(np_str key);
bool np_comm_is_p2p(np_str op);

/* A rank or another id in a text, NP_NO_U32 when it is none. */
uint32_t np_comm_u32(np_str text);

struct np_comm_times {
	double start_us, elapse_ms, transit_ms, wait_ms, sync_ms, idle_ms;
};

struct np_comm_link {
	uint32_t transport;
	double transit_mb, transit_ms, gbps, large_ratio;
};

/* All: false when memory is out. */
bool np_comm_add_time(struct np_profile *profile, const struct np_comm_key *key,
                      const struct np_comm_times *times);

/* package[0…2]: size in MB, count, ms; NULL for the link as a whole. */
bool np_comm_add_bandwidth(struct np_profile *profile, const struct np_comm_key *key,
                           const struct np_comm_link *link, const double *package);

bool np_comm_add_matrix(struct np_profile *profile, const struct np_comm_key *key, uint32_t src,
                        uint32_t dst, const struct np_comm_link *link, uint32_t op_name);

/* Did the link move anything? NaN counts as nothing. */
bool np_comm_link_used(const struct np_comm_link *link);

#endif
