/*
 * A log of collectives beside what the device recorded of them in a capture (R28).
 *
 *   log:     calls as they were issued on the host, all the time
 *   capture: what ran on the device, in the recorded window
 *
 * Of each rank that both have, calls and bytes per group × operation, those of the log that
 * were issued within the capture's steps. Groups are the same when the hash of the
 * communicator's name is (torch_npu.md §2.2), or when the capture says that it has the ranks
 * that torch lists. Of a process with both layers that of HCCL is taken.
 */
#ifndef NP_COLLECT_COMM_AGAINST_H
#define NP_COLLECT_COMM_AGAINST_H

#include "collect/comm_tell.h"

/*
 * Table `against`, findings, verdict and exit_code: PASS when all that both know is equal and
 * neither knows more, FAIL (1) when a number of calls or bytes differs, UNKNOWN (3) when
 * nothing, or not all, could be compared. An exit_code above stays. Errors: those of
 * np_discover(), E_NOMEM.
 */
enum np_status np_clog_against(const struct np_clog_sum *sum, const char *path,
                               struct np_report *report, struct np_err *err);

#endif
