/*
 * The diagnosis across ranks (diagnosis_methods.md §2–§4). Private to the mode
 * `diagnose`; one file per step:
 *
 *   timelines ─▶ diag_match    the same collective on all its ranks
 *             ─▶ diag_clock    what time it was, in one clock
 *             ─▶ diag_blame    who came last, how late, and why: computing, idle, another group
 *             ─▶ diag_cost     what it costs, and who is accused
 *             ─▶ diag_link     links slower than their like
 *             ─▶ diag_stage    work and waiting of the pipeline's stages
 *             ─▶ diag_path     the critical path of each step
 *             ─▶ diag_look     a closer look at the few ranks that are accused
 *             ─▶ diag_tell     tables and findings
 *
 * All times are ns; "row" of a rank is its index in cluster->ranks.
 */
#ifndef NP_CLUSTER_DIAG_H
#define NP_CLUSTER_DIAG_H

#include "base/map.h"
#include "cluster/timeline.h"

#define NP_DIAG_NONE UINT32_MAX

enum np_cause {
	NP_CAUSE_UNKNOWN,
	NP_CAUSE_START,    /* the first op of the capture: nothing before it is recorded */
	NP_CAUSE_COMPUTE,  /* it computed for longer than its peers */
	NP_CAUSE_IDLE,     /* its device idled for longer: host, dependency */
	NP_CAUSE_TRANSFER, /* it was held by the transfer in another group */
	NP_N_CAUSES,
};

struct np_diag_member {
	uint32_t rank, row; /* row of the rank, row of the op in its timeline */
};

/* One collective, or one pair of send and receive. */
struct np_diag_instance {
	uint32_t group, seq; /* its number within the group and step */
	int64_t step;
	size_t first; /* members[first … first + n - 1], by rank */
	uint32_t n;
	bool p2p, complete; /* complete: every rank of the group is there */

	/* diag_blame: arrivals, in the common clock */
	uint32_t last;  /* row of the rank that came last */
	np_ns arrival;  /* when it came */
	np_ns lateness; /* behind the second last */
	np_ns waits;    /* of all others together */
	np_ns transfer; /* from the last arrival to the first end, at least 0 */

	/* diag_blame */
	bool blamed, busy;
	uint8_t cause;        /* enum np_cause */
	uint8_t depth;        /* how many groups the blame has moved through */
	uint32_t culprit;     /* row of the rank */
	uint32_t cause_group; /* TRANSFER: in which group */
};

struct np_diag_group {
	np_id key;                       /* decimal hash */
	const struct np_group *recorded; /* parallel_group_info, or NULL */
	uint32_t *ranks;                 /* rows with ops of it, ascending */
	uint32_t n_ranks, expected;      /* expected: recorded size, else n_ranks */
	size_t n_instances;
};

/* A clock: a host, or a rank whose host is not known. */
struct np_diag_domain {
	const char *name;
	np_ns offset;     /* its clock minus that of the first domain, at `zero` */
	double drift_ppm; /* change of the offset, 0 where it is not significant */
	np_ns spread;     /* median absolute deviation of what remains */
	size_t n;         /* collectives that it was measured by */
	bool known;       /* connected with the first domain by collectives */
	uint32_t ranks;
};

/* How well a rank's ends agree with those of the others once clocks are corrected. */
struct np_diag_fit {
	np_ns median, spread; /* of its ends against the median end of each collective */
	size_t n;
};

struct np_diagnosis {
	struct np_cluster *cluster;
	size_t n_ranks;
	const struct np_timeline_ops **ops;     /* by row of the rank */
	const struct np_timeline_steps **steps; /* by row of the rank */
	size_t *first_op;      /* n_ranks + 1: where a rank's ops begin in instance_of */
	uint32_t *instance_of; /* by op of all ranks; NP_DIAG_NONE */
	bool *kernels;         /* by row of the rank: its kernels are recorded */
	bool has_kernels;      /* all have: computing between ops is known */

	uint32_t *stage_of; /* by row of the rank: its stage of the pipeline, 0 where unknown */

	NP_VEC(struct np_diag_group) groups;
	NP_VEC(struct np_diag_instance) instances;
	NP_VEC(struct np_diag_member) members;
	size_t n_unmatched, n_no_group, n_p2p_unmatched;

	uint32_t *domain_of; /* by row of the rank */
	NP_VEC(struct np_diag_domain) domains;
	np_ns zero;               /* the time at which offsets are meant */
	struct np_diag_fit *fits; /* by row of the rank */
	size_t n_off;     /* ranks whose ends do not fit although their clock is corrected */
	bool by_duration; /* clocks can't be trusted: who came last is told by durations */
	size_t n_clamped; /* ends before the last arrival */

	np_ns total; /* sum over steps of their length in the common clock */
	size_t n_steps;
};

/* The timelines of all ranks; false: out of memory. np_diagnosis_close() in every case. */
bool np_diagnosis_open(struct np_diagnosis *self, struct np_cluster *cluster);
void np_diagnosis_close(struct np_diagnosis *self);

/* The steps, in this order. Each returns false when memory is out. */
bool np_diag_match(struct np_diagnosis *self);
bool np_diag_clock(struct np_diagnosis *self);
bool np_diag_arrive(struct np_diagnosis *self);
bool np_diag_blame(struct np_diagnosis *self);

/* Does it end at once on all ranks? Not what has a root or a direction. */
bool np_diag_synchronises(const struct np_diagnosis *self, const struct np_diag_instance *instance);

/* A time of the rank in the common clock. */
np_ns np_diag_time(const struct np_diagnosis *self, uint32_t rank, np_ns t);

static inline np_ns np_diag_start(const struct np_diagnosis *self, const struct np_diag_member *m)
{
	return np_diag_time(self, m->rank, self->ops[m->rank]->start_ns[m->row]);
}

static inline np_ns np_diag_end(const struct np_diagnosis *self, const struct np_diag_member *m)
{
	const struct np_timeline_ops *ops = self->ops[m->rank];
	return np_diag_time(self, m->rank, ops->start_ns[m->row] + ops->dur_ns[m->row]);
}

/* How long a member of the instance waited for the last one. */
np_ns np_diag_wait(const struct np_diagnosis *self, const struct np_diag_instance *instance,
                   const struct np_diag_member *m);

/* The instance of an op, or NP_DIAG_NONE. */
static inline uint32_t np_diag_instance_of(const struct np_diagnosis *self, uint32_t rank,
                                           uint32_t row)
{
	return self->instance_of[self->first_op[rank] + row];
}

/* The member of this rank, or NULL. */
const struct np_diag_member *np_diag_member_of(const struct np_diagnosis *self,
                                               const struct np_diag_instance *instance,
                                               uint32_t rank);

/* The k-th smallest of n values, reordering them; the median is k = n / 2 (upper of two). */
np_ns np_diag_median(np_ns *v, size_t n);

/* "tp", else the last digits of the hash as in names of ops; in the cluster's arena. */
const char *np_diag_group_name(const struct np_diagnosis *self, uint32_t group);

const char *np_cause_name(enum np_cause cause);

#endif
