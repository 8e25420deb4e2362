/*
 * The simulated run, as plain structs, before anyone writes it down.
 *
 *   host    │ProfilerStep#12 ────────────────────────────────────────────│
 *   main    │copy│op│op│op│…│all_reduce│op│…                 │item (sync)│
 *   dequeue │      ▯  ▯  ▯      ▯ node launches, one per op
 *   stream  │copy   ████ ██ ███████ ██ … wait ████ ██           copy
 *   comm    │                 ▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒         ▒▒▒▒▒
 *                             ready │ waits for the last rank │ wire │ end
 *
 * Collectives couple the ranks, so the plan runs all ranks in lock step once,
 * keeping only when each collective ended; np_synth_run_fill() then repeats one
 * rank alone, to the nanosecond, and keeps everything.
 *
 * Kernels do not overlap each other, nor do collectives; the host waits for the
 * device at the end of a step. So the three tests for "which step" in the field
 * (torch_npu.md §3.1, §3.2, §3.8) agree, and every sum is exact.
 */
#ifndef NP_SYNTH_MODEL_H
#define NP_SYNTH_MODEL_H

#include "synth/ops.h"
#include "synth/synth.h"

enum { NP_SYNTH_CARDS = 8, NP_SYNTH_MAX_LINKS = 8 };

struct np_synth_group {
	const char *label;             /* "default_group", "tp", "dp" */
	uint32_t number;               /* of the communicator: group_name_<number> */
	uint32_t first, stride, count; /* members are first + k * stride */
	uint64_t hash;                 /* of its name, torch_npu.md §2.2 */
};

/* Kinds of communication. ALLREDUCE is all that the flat layout has. */
enum np_synth_coll {
	NP_COLL_ALLREDUCE,
	NP_COLL_ALLGATHER,
	NP_COLL_REDUCESCATTER,
	NP_COLL_ALLTOALLV,
	NP_COLL_SEND,
	NP_COLL_RECEIVE,
	NP_COLLS
};
struct np_synth_coll_name {
	const char *op;     /* "allReduce": hcom_allReduce__… */
	const char *matrix; /* its word in communication_matrix.json, torch_npu.md §3.9 */
	const char *torch, *hccl;
};
extern const struct np_synth_coll_name np_synth_colls[NP_COLLS];
static inline bool np_synth_is_p2p(enum np_synth_coll coll)
{
	return coll >= NP_COLL_SEND;
}

/* Which communicator of a rank; those of one kind follow each other in plan->groups. */
enum np_synth_dim {
	NP_DIM_WORLD,
	NP_DIM_TP,
	NP_DIM_DP,
	NP_DIM_EP,
	NP_DIM_EDP,
	NP_DIM_PP,   /* all stages */
	NP_DIM_NEXT, /* this stage and the next: one communicator with PREV of that */
	NP_DIM_PREV,
	NP_DIMS
};

struct np_synth_act; /* a step of a stage: program.h */
struct np_synth_program {
	struct np_synth_act *v;
	size_t n;
	uint32_t comms; /* how many of them communicate */
};

/* One collective, or one pair of send and receive, as it truly was. */
struct np_synth_instance {
	uint32_t group, seq, step;
	uint32_t last_rank;
	uint8_t coll;
	np_ns last_ns; /* when the last member came */
	np_ns late_ns; /* how long after the one before it */
	np_ns wait_ns; /* over all members, until the last came */
	np_ns transfer_ns;
};

struct np_synth_plan {
	struct np_synth_options options; /* with defaults filled in */
	uint32_t tp, dp;
	uint32_t first_step; /* number of the first recorded step */
	struct np_synth_group *groups;
	size_t n_groups;
	uint32_t per_step; /* collectives of one rank in one step; 0 with one rank */
	struct np_synth_meet {
		np_ns last, end; /* when the last rank came, when it was over */
	} * meets;               /* [step][collective][rank], without clock noise */
	int64_t link_a, link_b;  /* the slow link, or -1 */
	uint32_t cards;          /* ranks of a host */
	/* what follows is for options.layout only */
	uint32_t pp, ep, micro_batches;
	uint32_t group_base[NP_DIMS];               /* where the groups of a kind start */
	struct np_synth_program *programs;          /* [pp] */
	NP_VEC(struct np_synth_instance) instances; /* by group, then seq */
	np_ns first_ns, end_ns; /* the first step's begin and the last one's end, over all ranks */
};

enum np_synth_item_kind { NP_ITEM_KERNEL, NP_ITEM_COMM, NP_ITEM_COPY };

/* What the host issued; all times by the rank's own clock. */
struct np_synth_item {
	uint8_t kind;
	bool negative;              /* written with a negative duration */
	uint32_t op;                /* KERNEL: row of np_synth_ops; COPY: 0 to the device, 1 back */
	int32_t step;               /* index into steps, -1 outside */
	uint32_t corr;              /* of enqueue and dequeue; COPY has none */
	uint32_t conn;              /* connection id of the launch */
	uint32_t task;              /* id on its stream */
	np_ns host_ns, host_dur_ns; /* the host op; copy: until it is done */
	np_ns launch_ns;            /* of the node launch; of the acl call of a copy */
	np_ns start_ns, dur_ns;     /* on the device */
	/* COMM */
	uint32_t group, index; /* index counts per group */
	np_ns last_ns;         /* when the last rank came */
	uint64_t len_bytes;
	uint8_t coll;  /* enum np_synth_coll */
	uint32_t pair; /* of a kernel of a layer: the same for forward and backward; 0: none */
	uint8_t dim;   /* enum np_synth_dim; flat: WORLD or TP */
	np_ns slow_ns; /* the launching call takes that much longer */
};

/* An idle fault strikes: the device has run dry, and then something takes its time. */
struct np_synth_stall {
	enum np_synth_fault_id fault;
	uint32_t conn, task;    /* of a sync call; of a wait on the stream */
	np_ns start_ns, end_ns; /* of what is recorded: on the host, or the wait on the device */
	np_ns planted_ns;       /* idle time that this alone makes */
};

/* fixed distances around a launch */
enum {
	NP_INNER_NS = 400,   /* the nested op starts and ends this much inside */
	NP_ENQUEUE_NS = 600, /* length of an enqueue; it ends 700 before the op */
	NP_DEQUEUE_LEAD_NS = 800,
	NP_DEQUEUE_NS = 3600,     /* the launch is 800 into the dequeue */
	NP_LAUNCH_NS = 2200,      /* at most */
	NP_ACL_LEAD_NS = 400,     /* the acl call is around the launch: 400 before, 300 behind */
	NP_COPY_API_NS = 4200,    /* the acl call of a copy */
	NP_RUNTIME_LEAD_NS = 300, /* level 2: the runtime call is that much inside the launch */
	NP_CONNS = 3,             /* connection ids of one item: launch, acl call, runtime call */
};
np_ns np_synth_enqueue_ns(const struct np_synth_item *item);
/* length of the launch of a kernel or collective */
static inline np_ns np_synth_launch_len(const struct np_synth_item *item)
{
	return 1800 + item->conn * 37 % (NP_LAUNCH_NS - 1800) + item->slow_ns;
}
static inline np_ns np_synth_dequeue_len(const struct np_synth_item *item)
{
	return NP_DEQUEUE_NS + item->slow_ns;
}
static inline np_ns np_synth_acl_len(const struct np_synth_item *item)
{
	return NP_ACL_LEAD_NS + np_synth_launch_len(item) + 300;
}
static inline np_ns np_synth_runtime_len(const struct np_synth_item *item)
{
	return np_synth_launch_len(item) - 2 * NP_RUNTIME_LEAD_NS;
}
#define NP_RUNTIME_CALL "KernelLaunchWithHandle"
/* what files say: start + duration, negative when that fault is on */
static inline np_ns np_synth_written_dur(const struct np_synth_item *item)
{
	return item->negative ? -item->dur_ns : item->dur_ns;
}
/* The host op and the one nested in it. */
const char *np_synth_outer_op(const struct np_synth_item *item);
const char *np_synth_inner_op(const struct np_synth_item *item);

enum np_synth_lane {
	NP_LANE_COMPUTING,
	NP_LANE_COMMUNICATION,
	NP_LANE_NOT_OVERLAPPED,
	NP_LANE_FREE
};
struct np_synth_span {
	enum np_synth_lane lane;
	np_ns start_ns, end_ns;
};

struct np_synth_step {
	uint32_t id;
	np_ns host_start_ns, host_end_ns;
	np_ns start_ns, end_ns; /* device window, torch_npu.md §4.3 */
	bool device;            /* has kernels or collectives */
	uint64_t kernels, collectives;
	np_ns computing_ns, communication_ns, not_overlapped_ns, preparing_ns;
	np_ns bubble_ns;                  /* in hcom_receive */
	np_ns true_start_ns, true_end_ns; /* of the host's part, by the true clock */
	np_ns free_csv_ns,
		stage_csv_ns;    /* by §3.2: Overlap Analysis events that start in the window */
	np_ns free_ns, stage_ns; /* by §3.12: between first and last device work of the step */
};

/* "Communication(Not Overlapped and Exclude Receive)" */
static inline np_ns np_synth_exclude_receive(const struct np_synth_step *step)
{
	np_ns rest = step->not_overlapped_ns - step->bubble_ns;
	return rest > 0 ? rest : 0;
}

/* What a training script marks with mstx; only layouts that are not lite have any. */
enum np_synth_mark_kind {
	NP_MARK_FORWARD, /* of one micro-batch */
	NP_MARK_BACKWARD,
	NP_MARK_LAYER, /* modules, forward only; n is the layer */
	NP_MARK_ATTENTION,
	NP_MARK_MLP,
	NP_MARK_MOE,
	NP_MARK_FLOPS, /* around an operator; n is its row of np_synth_ops */
	NP_MARK_LOADER /* two marks without a length: start and stop */
};
struct np_synth_mark {
	uint8_t kind;
	uint32_t n;
	np_ns start_ns, end_ns;         /* on the host */
	np_ns dev_start_ns, dev_end_ns; /* FORWARD, BACKWARD, LOADER: on the stream */
};

struct np_synth_mem {
	uint32_t op;
	uint64_t size_bytes, alloc_total_bytes, free_total_bytes;
	np_ns alloc_ns, free_ns; /* free_ns 0: not within the window */
};
struct np_synth_mem_event {
	np_ns ns;
	uint64_t total_bytes;
};

enum { NP_MEM_RESERVED_BYTES = 0x70000000, NP_MEM_BASE_BYTES = 0x30000000 };

struct np_synth_run {
	const struct np_synth_plan *plan;
	uint32_t rank, device, host;
	uint32_t pid, deq_tid; /* the main thread's id is pid */
	uint64_t faults;       /* bit per np_synth_fault_id */
	int level;
	np_ns shift_ns;    /* added to all times: clock noise, other batch */
	int64_t drift_ppb; /* how much too fast the host's clock runs */
	np_ns session_start_ns, session_end_ns;
	NP_VEC(struct np_synth_item) items; /* in host order */
	NP_VEC(uint32_t) order;             /* kernels and collectives by start */
	NP_VEC(struct np_synth_span) spans; /* by lane, then start */
	NP_VEC(struct np_synth_stall) stalls;
	NP_VEC(struct np_synth_mark) marks; /* as they began */
	NP_VEC(struct np_synth_mem) mem;
	NP_VEC(struct np_synth_mem_event) mem_events;
	struct np_synth_step *steps; /* plan->options.steps */
	uint64_t n_kernels, n_comms;
};

/* What the host's clock says at the true time `ns`. */
static inline np_ns np_synth_clock(const struct np_synth_run *run, np_ns ns)
{
	np_ns since = ns - run->plan->options.start_epoch_ns;
	return ns + run->shift_ns + since / 1000 * run->drift_ppb / 1000000;
}

static inline bool np_synth_has(const struct np_synth_run *run, enum np_synth_fault_id fault)
{
	return run->faults >> fault & 1;
}

/* `options` must be valid (np_synth_write checks them). Errors: E_NOMEM. */
enum np_status np_synth_plan_init(struct np_synth_plan *self,
                                  const struct np_synth_options *options, struct np_err *err);
void np_synth_plan_release(struct np_synth_plan *self);

/* Simulate one rank. `shift_ns` is for copies of a rank from another time. The
 * run is empty or was used before. Errors: E_NOMEM. */
enum np_status np_synth_run_fill(struct np_synth_run *self, const struct np_synth_plan *plan,
                                 uint32_t rank, np_ns shift_ns, struct np_err *err);
void np_synth_run_release(struct np_synth_run *self);

/* The faults of a rank and the clock of its host; plan, rank and host are set. */
void np_synth_run_clock(struct np_synth_run *self, np_ns shift_ns);
/* Is the rank one of those that a fault is planted in? */
bool np_synth_fault_hits(const struct np_synth_plan *plan, const struct np_synth_fault *fault,
                         uint32_t rank);

/* After filling: the order, the lanes, the steps' sums (derive.c). Errors: E_NOMEM. */
enum np_status np_synth_run_derive(struct np_synth_run *self, struct np_err *err);

/* The name on the device; collectives are printed into scratch. */
const char *np_synth_item_name(const struct np_synth_run *run, const struct np_synth_item *item,
                               char scratch[64]);

/* "hcom_allReduce_" */
const char *np_synth_comm_type(const struct np_synth_item *item, char scratch[32]);

/* ── idle faults (faults_idle.c) ── */

enum { NP_STALL_NS = 1000000 };

/* The idle fault among these bits, NP_SYNTH_FAULTS when there is none. */
enum np_synth_fault_id np_synth_stall_fault(uint64_t faults);
/* The operator that the main thread is in meanwhile, or NULL. */
const char *np_synth_stall_op(const struct np_synth_stall *stall);
/* All that was planted. */
np_ns np_synth_stall_sum(const struct np_synth_run *run);
#define NP_STALL_SYNC_CALL "aclrtSynchronizeStreamWithTimeout"

/* ── collectives (comm.c) ── */

struct np_synth_link {
	uint32_t peer; /* rank in the group */
	bool rdma;
	np_ns dur_ns;
	uint64_t len_bytes;
};

/* What one member sends in a collective: its peers on the same host, then at most
 * one on another host. Returns how many, at most NP_SYNTH_MAX_LINKS. */
size_t np_synth_links(const struct np_synth_plan *plan, const struct np_synth_group *group,
                      uint32_t rank, uint64_t len_bytes, uint64_t key,
                      struct np_synth_link links[NP_SYNTH_MAX_LINKS]);

/* What np_synth_links() shares out: a send gives all of its bytes to one link. */
static inline uint64_t np_synth_shared_bytes(const struct np_synth_item *item)
{
	return np_synth_is_p2p((enum np_synth_coll)item->coll) ? 2 * item->len_bytes
	                                                       : item->len_bytes;
}

/* How long the collective takes once all are there: of the slowest member. */
np_ns np_synth_wire_ns(const struct np_synth_plan *plan, const struct np_synth_group *group,
                       uint64_t len_bytes, uint64_t key);

/* The tasks of one collective on one rank. */
enum np_synth_comm_name {
	NP_COMM_NOTIFY_RECORD,
	NP_COMM_NOTIFY_WAIT,
	NP_COMM_MEMCPY,
	NP_COMM_REDUCE,
	NP_COMM_RDMA
};
struct np_synth_comm_task {
	enum np_synth_comm_name name;
	bool payload; /* moves data: counts for bandwidth and matrix */
	bool rdma, on_chip;
	uint32_t plane, dst; /* dst: rank in the group */
	uint64_t len_bytes;
	np_ns start_ns, dur_ns;
};
enum { NP_SYNTH_MAX_COMM_TASKS = 64 };
/* Pairs of tasks that close a transfer by RDMA. */
static inline int np_synth_handshakes(const struct np_synth_item *item)
{
	return np_synth_is_p2p((enum np_synth_coll)item->coll) ? 1 : 2;
}
size_t np_synth_comm_tasks(const struct np_synth_run *run, const struct np_synth_item *item,
                           struct np_synth_comm_task tasks[NP_SYNTH_MAX_COMM_TASKS]);

static inline uint32_t np_synth_member(const struct np_synth_group *group, uint32_t rank)
{
	return (rank - group->first) / group->stride;
}
static inline uint32_t np_synth_member_rank(const struct np_synth_group *group, uint32_t k)
{
	return group->first + k * group->stride;
}

/* "group_name_3", or the root's address, port and time as HCCL makes them. */
enum { NP_SYNTH_GROUP_NAME = 96 };
void np_synth_group_name(const struct np_synth_plan *plan, const struct np_synth_group *group,
                         char out[NP_SYNTH_GROUP_NAME]);

/* One number per collective, the same on all its ranks. */
uint64_t np_synth_comm_key(const struct np_synth_plan *plan, const struct np_synth_item *item);

#endif
