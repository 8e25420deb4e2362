/*
 * Classes of idle time, and who spent the host's part of it (diagnosis §1).
 *
 *    g0                       h0        h1                    g1
 *    │  host not issued       │ launch  │  issued, not started │
 *    └────────────────────────┴─────────┴──────────────────────┘
 *      what the thread did       ↑        copy · dependency · device latency
 *
 * The host's part belongs to the thread that produced the work: until the end of
 * the Enqueue to that thread, from there to the thread that took it from the
 * queue. Every instant has one class: of nested ranges the first in the order of
 * the list wins, so that a synchronisation inside of a data loader is one.
 */
#ifndef NP_ANALYSIS_IDLE_H
#define NP_ANALYSIS_IDLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/time.h"

/* id, name in tables, what it means, what to do */
#define NP_IDLE_MAP(X)                                                                          \
	X(GC, "host_gc", "the host collected garbage",                                          \
	  "collect at fixed points outside the step: gc.disable(), gc.freeze(), gc.collect()")  \
	X(SYNC, "host_sync", "the host waited for the device",                                  \
	  "remove synchronising calls from the loop: item(), print of a tensor, blocking "      \
	  "copies; copy with non_blocking=True from pinned memory")                             \
	X(DATALOADER, "host_dataloader", "the host waited for data",                            \
	  "more num_workers, pin_memory=True, prefetch_factor; move preprocessing off the "     \
	  "training process")                                                                   \
	X(ALLOCATOR, "host_allocator", "the host allocated or freed device memory",             \
	  "keep memory cached: no empty_cache() in the loop, "                                  \
	  "PYTORCH_NPU_ALLOC_CONF=expandable_segments:True")                                    \
	X(COMPILE, "host_compile", "the host compiled operators",                               \
	  "torch.npu.set_compile_mode(jit_compile=False), fixed shapes, or warm up longer")     \
	X(CANN, "host_cann", "the host was in CANN calls before the launch",                    \
	  "TASK_QUEUE_ENABLE=2; fewer and larger operators; graph mode")                        \
	X(OP, "host_op", "the host was in framework operators",                                 \
	  "fewer and larger operators: fused operators, graph mode; bind the process to "       \
	  "cores (CPU_AFFINITY_CONF=1)")                                                        \
	X(PYTHON, "host_python", "the host was in Python functions",                            \
	  "take Python work out of the loop; graph mode")                                       \
	X(MSTX, "host_mstx", "the host was in a range of the user, nothing else recorded",      \
	  "look at the code of that range; profile it with with_stack=True")                    \
	X(QUEUED, "host_queued", "the operator waited in the task queue",                       \
	  "the launching thread sleeps or shares its core: bind cores (CPU_AFFINITY_CONF=1), "  \
	  "check the host's load")                                                              \
	X(UNTRACED, "host_untraced", "the host was outside of every traced range",              \
	  "profile again with with_stack=True (and GC) to see what it did")                     \
	X(LAUNCH, "launch", "the launching call ran",                                           \
	  "TASK_QUEUE_ENABLE=2, graph mode; check the host's load and frequency")               \
	X(COPY, "copy", "the device copied memory for the next kernel",                         \
	  "overlap copies with computing: pinned memory, non_blocking=True, a stream of "       \
	  "their own")                                                                          \
	X(DEPENDENCY, "dependency", "the next kernel's stream waited for an event or a notify", \
	  "look at what records the event: another stream, another rank, or the host")          \
	X(LATENCY, "device_latency", "the next kernel was launched and had not started",        \
	  "many small kernels: fuse them, or use graph mode")                                   \
	X(BETWEEN, "between_steps", "the gap crosses the border of a step",                     \
	  "look at what the host does between steps")                                           \
	X(NOT_COLLECTED, "not_collected", "the launch is not in the capture",                   \
	  "profile with ProfilerActivity.CPU and NPU together")

enum np_idle_class {
#define X(id, name, what, advice) NP_IDLE_##id,
	NP_IDLE_MAP(X)
#undef X
		NP_N_IDLE,
};

const char *np_idle_name(enum np_idle_class class);
const char *np_idle_what(enum np_idle_class class);
const char *np_idle_advice(enum np_idle_class class);

/* host_gc … host_untraced: the host had not issued it. */
static inline bool np_idle_is_host(enum np_idle_class class)
{
	return class <= NP_IDLE_UNTRACED;
}
/* … and was doing something that was recorded: neither blocked nor absent. */
static inline bool np_idle_is_busy_host(enum np_idle_class class)
{
	return class < NP_IDLE_QUEUED && class != NP_IDLE_SYNC;
}

#endif
