/*
 * When a job began.
 */
#ifndef NP_COLLECT_DYNAMIC_JOB_H
#define NP_COLLECT_DYNAMIC_JOB_H

#include "base/err.h"
#include "base/time.h"

/* "4711" (a process of this host) or "1736412474.5" (seconds since the epoch: a number that
 * no pid can be). E_USAGE: neither; E_NOTFOUND: no such process. */
enum np_status np_dyn_job_start(const char *text, np_ns *out, struct np_err *err);

#endif
