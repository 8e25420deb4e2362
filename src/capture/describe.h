/*
 * `info`: what is here, as a report.
 */
#ifndef NP_CAPTURE_DESCRIBE_H
#define NP_CAPTURE_DESCRIBE_H

#include "base/progress.h"
#include "capture/capture.h"
#include "report/report.h"

/*
 * Tables `captures`, `steps`, `config`, `deliverables`, `groups`, `left_out`,
 * and the linter's findings. exit_code: 0, or 4 when something could not be
 * read, or 2 when there is no capture at all. `progress` may be NULL. E_NOMEM only.
 */
enum np_status np_describe(const struct np_captures *all, unsigned threads,
                           struct np_progress *progress, struct np_report *report,
                           struct np_err *err);

#endif
