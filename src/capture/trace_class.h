/*
 * What an event or a process of a trace is (torch_npu trace_view.json, CANN
 * msprof_*.json; exporters of 2024 to 2026). Pure functions.
 */
#ifndef NP_CAPTURE_TRACE_CLASS_H
#define NP_CAPTURE_TRACE_CLASS_H

#include "capture/trace_event.h"
#include "profile/profile.h"

enum np_trace_class {
	NP_TRACE_HOST,
	NP_TRACE_TASK,
	NP_TRACE_COMM_OP,
	NP_TRACE_COMM_TASK,
};

/*
 * By the event alone: its category, its args, the prefix of its name. For
 * NP_TRACE_HOST *layer is set, and *prefix to the length of "Node@" and the
 * like; *layer is NP_HOST_OTHER when only the process can tell.
 */
enum np_trace_class np_trace_classify(const struct np_trace_event *event, enum np_host_layer *layer,
                                      size_t *prefix);

/* "start/end" … as exporters write event_type. */
enum np_mstx_type np_trace_mstx_type(np_str event_type);

/* Is this "Task Type" one of a task that COMPUTE_TASK_INFO lists? */
bool np_trace_is_compute(np_str task_type);

enum np_trace_process_class {
	NP_TRACE_PROCESS_HOST, /* also processes without a name */
	NP_TRACE_PROCESS_GC,
	NP_TRACE_PROCESS_MSTX,
	NP_TRACE_PROCESS_HARDWARE,
	NP_TRACE_PROCESS_COMM,
	NP_TRACE_PROCESS_DERIVED, /* Overlap Analysis, and lanes of devices that we don't know */
};

enum np_trace_process_class np_trace_process_classify(np_str name, np_str labels);

/* Device of a process: "NPU 3"; for a bare "NPU" the low five bits of the pid, which
 * exporters build as (real pid << 10) | (layer << 5) | device. NP_NO_U32 otherwise. */
uint32_t np_trace_device(np_str labels, uint32_t pid, np_str pid_text);

/* "Group <x> Communication" → x; false when it is no such lane. */
bool np_trace_group_lane(np_str thread_name, np_str *group);
/* "Plane 3" → 3; false when it is no such lane. */
bool np_trace_plane_lane(np_str thread_name, uint32_t *plane);

#endif
