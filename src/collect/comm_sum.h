/*
 * Logs of collectives, summed up: what `npuprof comm` tells.
 *
 *   logs ──np_clog_sum_up()──▶ { files, processes, groups, cells, slices, buckets }
 *                                │
 *                                ├─ np_clog_tell()    tables
 *                                └─ np_clog_judge()   findings
 *
 * A log is read once, as a stream; of its records only sums are kept:
 *
 *   cell    per file × stage × operation × group × type × flags
 *   slice   per request × step × stage, over all files
 *   bucket  per stretch of time × stage, over all files, when asked for
 *
 * so memory does not grow with the records, but for the slices: one per step at most.
 *
 * Two layers may have recorded the same traffic in one process: torch.distributed, and HCCL
 * below it. Both are read, one is shown (nothing is counted twice): of a process that has
 * both the torch layer, which knows stages and ranks of a group. The HCCL layer is the truer
 * one of what the device was asked to do, so `layers` compares them.
 *
 * Files are read on several threads; the result does not depend on their number.
 */
#ifndef NP_COLLECT_COMM_SUM_H
#define NP_COLLECT_COMM_SUM_H

#include "base/intern.h"
#include "base/progress.h"
#include "collect/comm_find.h"
#include "collect/comm_log.h"
#include "collect/keys.h"

enum np_clog_show { NP_COMM_SHOW_AUTO, NP_COMM_SHOW_TORCH, NP_COMM_SHOW_HCCL, NP_COMM_SHOW_BOTH };

struct np_clog_options {
	const char *stage, *op,
		*group; /* only this; NULL: all. `other` is the stage without name */
	int64_t rank;   /* only this process; -1: all */
	enum np_clog_show show;
	bool timeline;    /* fill the buckets */
	np_ns bucket_ns;  /* their length; 0: chosen, so that there are at most 60 */
	bool each_group;  /* tables: one row per group, not per size of group */
	unsigned threads; /* 0: all processors */
	struct np_progress *progress;
};

struct np_clog_process {
	uint32_t host, dir; /* strings */
	int32_t pid, rank, world, local_rank, device;
	unsigned layers; /* 1 << enum np_comm_layer, of those with traffic */
	bool killed;     /* a log of it was not closed */
	bool incomplete; /* records of it are missing: overwritten, cut off, lost, damaged */
};

struct np_clog_file {
	const char *path; /* of np_clog_found */
	uint32_t process; /* UINT32_MAX: unreadable */
	uint32_t layer;   /* enum np_comm_layer */
	bool shown;       /* counts in what is shown */
	bool beside; /* shown beside the torch layer of its process: sums over layers lack it */
	bool closed, faulted, empty;
	int32_t tid;
	uint64_t records, overwritten, cut_off, damaged, implausible, lost, no_room;
	uint64_t communicators;  /* comm_init records */
	np_ns first_ns, last_ns; /* of its records; 0: none */
	const char *problem;     /* why it could not be read, NULL: it could */
};

/* A communicator, as one layer calls it. */
struct np_clog_group {
	uint32_t name; /* string: "0,1,2,3" (torch), the communicator (hccl), "" */
	uint64_t hash; /* of the communicator's name; 0: none */
	int32_t world; /* -1 unknown */
	uint8_t layer;
};

struct np_clog_cell {
	uint32_t file, group, stage; /* stage: string, id 0 is the stage without a name */
	uint8_t layer, op, dtype;
	uint16_t flags;
	bool counts;                            /* passes the filter, in a file that is shown */
	uint64_t calls, unsized;                /* unsized: calls of unknown size */
	uint64_t bytes, send_bytes, recv_bytes; /* of calls whose size is known: tensor_bytes, … */
	uint64_t max_bytes, call_ns;
	np_ns first_ns, last_ns;
};

struct np_clog_slice {
	uint32_t request, step, stage;  /* NP_COMM_NO_U32: unknown */
	uint64_t entered, calls, bytes; /* entered: marks of a stage's begin */
	np_ns first_ns, last_ns;
};

struct np_clog_bucket {
	np_ns start_ns;
	uint32_t stage;
	uint64_t calls, bytes;
};

struct np_clog_sum {
	struct np_clog_options options;
	struct np_intern strings; /* id 0: "" */
	struct np_arena arena;
	NP_VEC(struct np_clog_file) files; /* those of the torch layer first, then by path */
	NP_VEC(struct np_clog_process) processes;
	NP_VEC(struct np_clog_group) groups;
	NP_VEC(struct np_clog_cell) cells;     /* by file */
	NP_VEC(struct np_clog_slice) slices;   /* sorted by request, step, stage */
	NP_VEC(struct np_clog_bucket) buckets; /* sorted by start, stage */
	np_ns bucket_ns;
	size_t readable;       /* files */
	bool overflow;         /* more slices than are kept */
	uint64_t out_of_order; /* neighbours in a file whose times run backwards */
};

enum { NP_COMM_MAX_SLICES = 1 << 22 };

/* Errors: E_NOMEM. Files that cannot be read are told in `files`. Release in every case. */
enum np_status np_clog_sum_up(const struct np_clog_found *found,
                              const struct np_clog_options *options, struct np_clog_sum *out,
                              struct np_err *err);
void np_clog_sum_release(struct np_clog_sum *self);

/* ── bytes (requirements R27, torch_npu.md §7.6) ── */

enum np_clog_estimate {
	NP_COMM_NO_ESTIMATE, /* the source guide has no formula, and we have none */
	NP_COMM_GUIDE,       /* R27's formula */
	NP_COMM_DERIVED,     /* our own */
};

/*
 * moved~: an estimate of what a rank moves, not a counter of HCCL. R27: this rank's payload,
 * all_to_all and broadcast ×(w−1)/w, all_reduce ×2(w−1)/w, all_gather ×(w−1); a group of one
 * moves nothing. Derived: reduce_scatter (w−1)/w of what it gives in, send as it is.
 * *out in bytes, rounded; saturates at INT64_MAX.
 */
enum np_clog_estimate np_clog_moved(uint8_t op, int32_t world, uint64_t bytes, uint64_t send_bytes,
                                    uint64_t *out);

/*
 * What bus bandwidth is computed from, another number: the factor of §7.6 on the whole buffer.
 * all_reduce 2(n−1)/n; all_gather, reduce_scatter, all_to_all (n−1)/n; broadcast, reduce 1.
 * false: it has none.
 */
bool np_clog_bus(uint8_t op, int32_t world, const struct np_clog_cell *cell, uint64_t *out);

/* Does it count in what is shown: a collective, of the filter, of the layer? */
bool np_clog_is_shown(const struct np_clog_cell *cell);

/* "dit"; "other" for the stage without a name. And "0,1,2,3", "@5403…", "" for a group. */
const char *np_clog_stage_name(const struct np_clog_sum *self, uint32_t stage);
np_str np_clog_group_name(const struct np_clog_sum *self, const struct np_clog_group *group);

/* The ranks of "0,1,2,3", "0-3,8": at most `max` into out (may be NULL with 0); how many there
 * are, 0: that is no list of ranks. */
size_t np_clog_ranks(np_str text, int64_t *out, size_t max);

#endif
