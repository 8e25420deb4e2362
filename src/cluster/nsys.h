/*
 * A database of Nsight Systems (nsys export --type sqlite): which kernels of a GPU were
 * launched within which modules of the model.
 *
 *   NVTX_EVENTS (59: push and pop)  │Qwen2Model───────────────────│
 *                                     │Attention──────│
 *                                       │aten::mm, seq = 7│
 *   CUPTI_…_RUNTIME                         ▯ launch, correlation id 12, same thread
 *   CUPTI_…_KERNEL                               ████ correlation id 12
 *
 * A module is a range whose name holds one of a few words (Attention, Linear, …); the
 * operator is the innermost range whose name holds "::".
 */
#ifndef NP_CLUSTER_NSYS_H
#define NP_CLUSTER_NSYS_H

#include "base/err.h"
#include "base/intern.h"
#include "base/time.h"

enum {
	NP_NSYS_MAX_DEPTH = 20,       /* modules within each other; deeper ones count as the last */
	NP_NSYS_NAME_BYTES = 1 << 10, /* of a module's name in a path; longer ones are cut */
};

/* Kernels of one name, by operator and module. Texts are ids of np_nsys.strings. */
struct np_nsys_row {
	uint32_t device;
	uint32_t parent; /* "a/b": names of the modules around it */
	uint32_t module, op, kernel;
	np_ns total_ns;
	uint64_t count;
};

struct np_nsys {
	struct np_intern strings;
	NP_VEC(struct np_nsys_row) rows; /* by first launch, per thread */
	uint64_t kernels, outside;       /* all kernels; those outside of every module */
	uint64_t dropped;                /* rows without a time or a launch */
};

/* Errors: those of np_db_open(), E_FORMAT (not of Nsight Systems: a table is missing),
 * E_NOMEM. np_nsys_release() in every case. */
enum np_status np_nsys_read(const char *path, struct np_nsys *out, struct np_err *err);
void np_nsys_release(struct np_nsys *self);

#endif
