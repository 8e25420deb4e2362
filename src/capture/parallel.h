/*
 * What a capture says of how the ranks share the work: distributed_args,
 * parallel_group_info and pp_info, from profiler_metadata.json or from META_DATA.
 * The first that says something counts.
 */
#ifndef NP_CAPTURE_PARALLEL_H
#define NP_CAPTURE_PARALLEL_H

#include "capture/capture.h"

void np_parallel_args(struct np_captures *all, struct np_capture *capture,
                      const struct np_jval *args);
void np_parallel_groups(struct np_captures *all, struct np_capture *capture,
                        const struct np_jval *info);
void np_parallel_pipeline(struct np_captures *all, struct np_capture *capture,
                          const struct np_jval *info);

#endif
