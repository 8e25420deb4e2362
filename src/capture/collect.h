/*
 * Inside discovery: which files belong to a capture. Not for use outside src/capture/.
 */
#ifndef NP_CAPTURE_COLLECT_H
#define NP_CAPTURE_COLLECT_H

#include "capture/capture.h"

#define NP_OUTPUT_DIR        "ASCEND_PROFILER_OUTPUT"
#define NP_FRAMEWORK_DIR     "FRAMEWORK"
#define NP_MSPROF_OUTPUT_DIR "mindstudio_profiler_output"

/* Fill files, formats, prof_dirs, raw_bytes, output of a capture directory. */
void np_collect_files(struct np_captures *all, struct np_capture *capture);

/* The same for one file given by path: its role is found by name, else by content. */
void np_collect_single_file(struct np_captures *all, struct np_capture *capture);

/* Remember what was seen and left out, with the reason. */
void np_leave_out(struct np_captures *all, const char *path, const char *reason);

#endif
