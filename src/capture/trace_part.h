/*
 * The rows of a stretch of a trace.
 *
 * One part is fed event after event and writes straight into the tables of a
 * profile. What an event is follows from the event itself, never from what came
 * before, so a trace may be cut anywhere and the parts joined in order:
 *
 *   bytes   ──────chunk 0──────┬──────chunk 1──────┬─ …
 *   parts   tables + names     │ tables + names    │
 *                 └── np_trace_part_merge() ◀──────┘
 *                              ▼
 *                     np_trace_part_finish()
 *
 * Names of processes and threads may come behind the events that need them.
 * Until finish, columns hold what leads there:
 *
 *   column              holds            becomes
 *   host_ops.layer      NP_HOST_OTHER    a layer, a row of another table, or no row,
 *                                        when only the process can tell
 *   *.device            pid              device id
 *   comm_ops.group      tid              name of the group, from the lane's name
 *   comm_tasks.plane    tid              number of the plane, from the lane's name
 *   counters.process    pid              name of the process
 *
 * pids and tids are kept as numbers where they are numbers below NP_TRACE_ODD;
 * others (strings, larger ones) get NP_TRACE_ODD + k, k in order of appearance.
 *
 * Threads: a part belongs to one thread at a time.
 */
#ifndef NP_CAPTURE_TRACE_PART_H
#define NP_CAPTURE_TRACE_PART_H

#include "base/map.h"
#include "capture/trace_event.h"
#include "profile/profile.h"

#define NP_TRACE_ODD 0xff000000u
enum {
	NP_TRACE_MAX_ODD = 0xfffffe, /* ids that are no small numbers */
	NP_TRACE_MAX_STEPS = 1 << 16,
	NP_TRACE_NAME_BITS = 12,
	NP_TRACE_NAME_CACHE = 1 << NP_TRACE_NAME_BITS,
	NP_TRACE_FLOW_BITS = 6,
	NP_TRACE_SERIES_CACHE = 256,
};

struct np_trace_process {
	uint32_t pid;
	uint32_t name, labels; /* strings, NP_ID_NONE without */
};

struct np_trace_thread {
	uint32_t pid, tid, name;
};

/* A host range. */
struct np_trace_range {
	uint8_t layer;
	uint32_t name, item, pid, tid, shapes, dtypes, stack;
	np_ns start_ns, dur_ns;
	int64_t conn, seq;
};

/* B or E; pairs are made at the end since they may be in different parts. */
struct np_trace_mark {
	struct np_trace_range range; /* of E only pid, tid and start_ns */
	uint32_t below;              /* the mark under it while it is open */
	bool begin;
};

struct np_trace_step {
	int64_t id;
	np_ns start_ns, end_ns;
	uint8_t layer; /* torch's own range (NP_HOST_OP) goes before one of mstx */
};

/* A name met lately. */
struct np_trace_cached {
	uint64_t head, tail; /* first and last eight bytes: all there is up to 16 */
	const char *ptr;     /* in the intern table; NULL: free */
	uint32_t len, id;
};

struct np_trace_part {
	struct np_profile *profile; /* borrowed */
	unsigned what;
	struct np_trace_event event;

	NP_VEC(struct np_trace_process) processes;
	NP_VEC(struct np_trace_thread) threads;
	NP_VEC(uint32_t) odd;                        /* strings of the odd pids and tids */
	struct np_map process_of, thread_of, odd_of; /* pid, (pid << 32 | tid), string → index */
	NP_VEC(struct np_trace_mark) marks;
	NP_VEC(struct np_trace_step) steps;

	struct np_json_repairs repairs;
	uint64_t bad_times, negative, not_events;
	bool no_memory, too_many_ids;

	struct np_buf scratch;
	struct np_trace_cached *names; /* NP_TRACE_NAME_CACHE of them */
	struct np_trace_cached flow_ids[1 << NP_TRACE_FLOW_BITS];
	struct np_trace_series {
		uint64_t key; /* counter << 32 | series */
		uint32_t id;
	} series[NP_TRACE_SERIES_CACHE];
};

/* Release is right in every case. */
enum np_status np_trace_part_init(struct np_trace_part *self, struct np_profile *profile,
                                  unsigned what, struct np_err *err);
void np_trace_part_release(struct np_trace_part *self);

/* Forget all rows, of the profile too, and keep the memory. On E_NOMEM only release is right. */
enum np_status np_trace_part_reset(struct np_trace_part *self, struct np_err *err);

/* Take over self->event. Errors: E_NOMEM, E_LIMIT (pids and tids). */
enum np_status np_trace_part_add(struct np_trace_part *self, struct np_err *err);

/* String id of a value; NP_ID_NONE (and no_memory) when memory is out. */
uint32_t np_trace_intern(struct np_trace_part *self, const struct np_trace_value *value);

/* The first two are false when memory is out. Ranges that are no step are left alone. */
bool np_trace_add_step(struct np_trace_part *self, const struct np_trace_range *range);
bool np_trace_add_host_op(struct np_profile *profile, const struct np_trace_range *range);
/* A row of mstx with what a range tells; its number, SIZE_MAX when memory is out. */
size_t np_trace_add_mstx(struct np_profile *profile, const struct np_trace_range *range);
/* Is a host row of this layer wanted, if only until its process is known? */
bool np_trace_wants_host(const struct np_trace_part *self, uint8_t layer);

/* The pieces of the two above that joining needs. */
uint32_t np_trace_odd_id(struct np_trace_part *self, uint32_t string);
void np_trace_name_process(struct np_trace_part *self, uint32_t pid, uint32_t name,
                           uint32_t labels);
void np_trace_name_thread(struct np_trace_part *self, uint32_t pid, uint32_t tid, uint32_t name);
enum np_status np_trace_part_status(const struct np_trace_part *self, struct np_err *err);

/* Append what `from` has, with its own profile, behind `self`. */
enum np_status np_trace_part_merge(struct np_trace_part *self, const struct np_trace_part *from,
                                   struct np_err *err);

/* Rows that the tables had before this file. */
struct np_trace_base {
	size_t host_ops, mstx, tasks, comm_ops, comm_tasks, counters;
};
void np_trace_base_of(const struct np_profile *profile, struct np_trace_base *out);

/* Pair B and E, resolve what waits for names, set the steps, sort. */
enum np_status np_trace_part_finish(struct np_trace_part *self, const struct np_trace_base *base,
                                    const char *file, struct np_err *err);

#endif
