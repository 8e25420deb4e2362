/* The text of the two files of export_summary, of one rank. */
#ifndef NP_CLUSTER_SUMMARY_FILES_H
#define NP_CLUSTER_SUMMARY_FILES_H

#include "profile/profile.h"

enum {
	NP_SUMMARY_LOAD = NP_KERNELS | NP_KERNEL_SHAPES | NP_KERNEL_METRICS | NP_COMM_SCHEDULE |
	                  NP_TASKS | NP_HOST_OPS
};

/* Durations of tasks by the call that launched them, largest total first. */
bool np_summary_apis(const struct np_profile *profile, struct np_buf *out);

/*
 * Kernels and collectives in order of start. compat: what the official tool writes, times
 * as doubles, the wait from end to the previous start, and 0 for counters that a kernel
 * does not have. Both: false when memory is out, also in out->failed.
 */
bool np_summary_kernels(const struct np_profile *profile, bool compat, struct np_buf *out);

#endif
