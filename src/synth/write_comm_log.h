/*
 * The log that the collective recorder would have left of a run (include/npuprof/comm_log.h):
 * two files per rank, of the torch layer and of HCCL below it, with the calls of the
 * capture and, before them, those of one step that was not captured.
 *
 * Stages: "dit" for collectives of tensor-parallel and expert groups, "sync" for the others;
 * what is issued outside of a step has none. Steps count from 1, the step before the capture
 * included; each is its own request.
 */
#ifndef NP_SYNTH_WRITE_COMM_LOG_H
#define NP_SYNTH_WRITE_COMM_LOG_H

#include "synth/write.h"

/* Into root/comm, which is made. */
enum np_status np_synth_write_comm_log(const struct np_synth_run *run, const char *root,
                                       struct np_synth_stats *stats, struct np_err *err);

/* For truth.json: calls and payload of one layer's log. */
void np_synth_comm_log_truth(const struct np_synth_run *run, uint64_t *calls, uint64_t *bytes);

#endif
