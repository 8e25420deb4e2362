/*
 * The communicator of a collective, the same on every rank and in every format.
 *
 * A database has its name, analysis.db the hash of it; a trace only "Group 0", a number
 * that means another group on each rank. But the name of the op has three digits of the
 * hash, hcom_allReduce__909_4_1, and with the capture's parallel_group_info they tell it.
 */
#ifndef NP_CLUSTER_OP_GROUP_H
#define NP_CLUSTER_OP_GROUP_H

#include "capture/capture.h"

/* Its hash; only the three digits where more is not known; UINT64_MAX: nothing is. */
uint64_t np_op_group(const struct np_capture *capture, np_str group, np_str op_name);

#endif
