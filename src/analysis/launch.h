/*
 * Where a kernel was launched: the call on the host, and who asked for it.
 *
 *   producer  │aten::add ────────│
 *             │        Enqueue ▯ │            enqueue: end of what the producer did for it
 *   consumer  │            Dequeue ───────│
 *             │               ▯ launch    │   [start, end): the launching call
 *   device    │                     ████
 *
 * The connection is, by what the capture has:
 *   db     kernels.conn = conn of a CANN call
 *   text   kernel ─(stream, task, start)─▶ task.conn = conn of a CANN call
 *   text, CANN calls pruned (Level0)
 *          arrow HostToDevice that ends where the kernel starts; else async_npu
 */
#ifndef NP_ANALYSIS_LAUNCH_H
#define NP_ANALYSIS_LAUNCH_H

#include "base/time.h"

enum np_launch_how {
	NP_LAUNCH_NONE,  /* not collected */
	NP_LAUNCH_CALL,  /* a CANN call with the kernel's connection id */
	NP_LAUNCH_ARROW, /* an arrow: when it began is known, not how long it took */
};

struct np_launch {
	np_ns start, end; /* of the launching call; equal for arrows; NP_NO_I64 without any */
	uint32_t op;      /* row in host_ops of the launching call, NP_NO_U32 */
	uint32_t dequeue; /* row of the Dequeue around it, NP_NO_U32 */
	uint32_t enqueue; /* row of the Enqueue that fed that, NP_NO_U32 */
	uint32_t tid;     /* thread that launched; NP_NO_U32 */
	uint32_t stream;  /* of the kernel; from the task where the kernel table has none */
	uint8_t how;      /* enum np_launch_how */
};

#endif
