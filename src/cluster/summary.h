/* The files of the mode `summary` among themselves. */
#ifndef NP_CLUSTER_SUMMARY_H
#define NP_CLUSTER_SUMMARY_H

#include "cluster/insight.h"
#include "cluster/parallel.h"

/* Where the time of a step went, us: the exporter's row, or computed from the kernels. */
#define NP_DIGEST_SUMMARY_STEP_COLUMNS(X)                       \
	X(int64_t, step, "step id, NP_NO_I64 without steps")    \
	X(double, computing, "union of the kernels")            \
	X(double, comm_not_overlapped, "communication alone")   \
	X(double, overlapped, "communication beside computing") \
	X(double, comm, "communication")                        \
	X(double, free, "neither")                              \
	X(double, stage, "from the first to the last kernel")   \
	X(double, bubble, "waiting for another stage")          \
	X(double, preparing, "before the first kernel")         \
	X(uint8_t, computed, "1: from the kernels")

/* Kernels by accelerator core; collectives stand in their own columns below. */
#define NP_DIGEST_SUMMARY_CORE_COLUMNS(X)                    \
	X(int64_t, step, "step id")                          \
	X(np_id, core, "AI_CORE, AI_VECTOR_CORE, MIX_AIC …") \
	X(int64_t, kernels, "how many")                      \
	X(np_ns, dur_ns, "sum of their durations")

/* Communication of the kernels, as sets of time. */
#define NP_DIGEST_SUMMARY_COMM_COLUMNS(X)                        \
	X(int64_t, step, "step id")                              \
	X(np_ns, start_ns, "first start of a kernel")            \
	X(np_ns, alone_ns, "collectives while nothing computes") \
	X(np_ns, beside_ns, "collectives beside computing")

NP_TABLE_STRUCT(np_digest_summary_step, NP_DIGEST_SUMMARY_STEP_COLUMNS);
NP_TABLE_STRUCT(np_digest_summary_core, NP_DIGEST_SUMMARY_CORE_COLUMNS);
NP_TABLE_STRUCT(np_digest_summary_comm, NP_DIGEST_SUMMARY_COMM_COLUMNS);
extern const struct np_table_desc np_digest_summary_step_desc, np_digest_summary_core_desc,
	np_digest_summary_comm_desc;
extern const struct np_part np_part_summary;

/* Metrics of a rank and step, in the order of the tables. */
enum np_metric_id {
	NP_SUM_COMPUTING,
	NP_SUM_PURE,
	NP_SUM_OVERLAPPED,
	NP_SUM_NOT_OVERLAPPED,
	NP_SUM_FREE,
	NP_SUM_PREPARING,
	NP_SUM_E2E,
	NP_SUM_COMM,
	NP_N_SUMS,
};
extern const char *const np_sum_names[NP_N_SUMS];

/* One rank in one step; us. */
struct np_sum_row {
	int64_t step;
	uint32_t rank; /* row of the cluster */
	double v[NP_N_SUMS], stage, bubble;
	bool computed;
};

struct np_summary {
	struct np_cluster *cluster;
	struct np_insight_steps steps;
	struct np_parallel_plan plan;
	NP_VEC(struct np_sum_row) rows; /* by step, rank */
};

/* Rows of one step are [i, end). */
size_t np_summary_end(const struct np_summary *self, size_t i);

/* Tables and findings; false: out of memory. */
bool np_summary_base(const struct np_summary *self);     /* summary_base.c */
void np_summary_strategy(const struct np_summary *self); /* summary_base.c */
void np_summary_detail(const struct np_summary *self);   /* summary_base.c */
bool np_summary_folds(const struct np_summary *self);    /* summary_folds.c */
bool np_summary_advice(const struct np_summary *self);   /* summary_advice.c */

/*
 * us of communication in the domain `dim` by global rank, NaN where a rank has none; only
 * ranks below the strategy's world. by_rank has np_strategy_world() entries. false: no rank
 * has any.
 */
bool np_summary_domain(const struct np_summary *self, int64_t step, enum np_dim dim,
                       double *by_rank);

#endif
