/*
 * What a column of the kernels is called where they were read, so that evidence
 * can be looked up: kernel_details.csv and a database have other names.
 */
#ifndef NP_ANALYSIS_EVIDENCE_H
#define NP_ANALYSIS_EVIDENCE_H

#include "analysis/analysis.h"

static inline bool np_kernels_from_db(const struct np_analysis *self)
{
	return np_str_ends(np_str_of(np_kernel_source(self)), NP_STR(".db"));
}

static inline const char *np_time_columns(const struct np_analysis *self)
{
	return np_kernels_from_db(self) ? "TASK.startNs, endNs" : "Start Time(us), Duration(us)";
}

static inline const char *np_step_column(const struct np_analysis *self)
{
	return np_kernels_from_db(self) ? "STEP_TIME.id" : "Step Id";
}

static inline const char *np_name_column(const struct np_analysis *self)
{
	return np_kernels_from_db(self) ? "COMPUTE_TASK_INFO.name" : "Name";
}

/* The rows of collectives. */
static inline const char *np_comm_rows(const struct np_analysis *self)
{
	return np_kernels_from_db(self) ? "COMMUNICATION_OP"
	                                : "Accelerator Core = COMMUNICATION or HCCL";
}

#endif
