/*
 * The readers: one per format, each fills the same profile.
 *
 * A reader appends to the tables named in `what` (enum np_load) that its file
 * can answer, sets the bits in profile->loaded, and tells what it repaired or
 * dropped by np_profile_diag(). It returns an error only for what makes the
 * file useless or when memory is out; rows read before stay. Callers turn the
 * error into a diagnostic and go on with the next file.
 */
#ifndef NP_CAPTURE_READER_H
#define NP_CAPTURE_READER_H

#include "profile/profile.h"

struct np_read {
	struct np_profile *profile;
	unsigned what;    /* enum np_load bits wanted from this file */
	unsigned threads; /* for one large file; 1 when other ranks keep the cores busy */
};

/* kernel_details*.csv, op_summary*.csv (slices: call once per file, in order), task_time*.csv */
enum np_status np_read_kernels_csv(const struct np_read *read, const char *path,
                                   struct np_err *err);

/* trace_view.json, msprof_*.json: host ops, tasks, comm, flows, counters, step ranges */
enum np_status np_read_trace(const struct np_read *read, const char *path, struct np_err *err);

/* ascend_pytorch_profiler*.db, ascend_mindspore_profiler*.db, msprof_*.db */
enum np_status np_read_profiler_db(const struct np_read *read, const char *path,
                                   struct np_err *err);

/* analysis.db, communication_analyzer.db */
enum np_status np_read_analysis_db(const struct np_read *read, const char *path,
                                   struct np_err *err);

/* communication.json, communication_matrix.json */
enum np_status np_read_comm_json(const struct np_read *read, const char *path, struct np_err *err);
enum np_status np_read_comm_matrix(const struct np_read *read, const char *path,
                                   struct np_err *err);

/* step_trace_time.csv */
enum np_status np_read_step_trace(const struct np_read *read, const char *path, struct np_err *err);

/* operator_memory*.csv, memory_record*.csv, npu_module_mem*.csv */
enum np_status np_read_op_memory(const struct np_read *read, const char *path, struct np_err *err);
enum np_status np_read_memory(const struct np_read *read, const char *path, struct np_err *err);

#endif
