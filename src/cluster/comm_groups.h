/*
 * Communicators as the exporter's summaries name them: which ranks have ops of each,
 * what parallel_group_info calls it, and the pipeline stages that follow.
 */
#ifndef NP_CLUSTER_COMM_GROUPS_H
#define NP_CLUSTER_COMM_GROUPS_H

#include "base/map.h"
#include "cluster/recipe.h"

struct np_ranks {
	const int64_t *v; /* ascending */
	size_t n;
};

struct np_comm_group {
	np_id name; /* decimal hash */
	bool p2p;
	const struct np_group *info; /* of parallel_group_info; NULL: not recorded */
	struct np_ranks seen;        /* ranks that have ops of it */
	struct np_ranks ranks;       /* all its ranks: global_ranks where recorded, else seen */
	/* compat: the official table shows "()" for an empty global_ranks */
	bool shown_empty;
	uint32_t label; /* equal where seen is: groups of the same ranks share it */
};

struct np_comm_groups {
	const struct np_cluster *cluster;
	NP_VEC(struct np_comm_group) v; /* collective first, then by name */
	struct np_map index;            /* by name and kind */
	struct np_arena arena;
};

enum { NP_GROUPS_OF_TIMES = 1, NP_GROUPS_OF_MATRIX = 2 };

/* From the digests of np_part_comm_times, np_part_comm_matrix or both. false: out of memory.
 * Release in every case. */
bool np_comm_groups_make(struct np_comm_groups *self, const struct np_cluster *cluster,
                         unsigned of);
void np_comm_groups_release(struct np_comm_groups *self);

/* The row in v; it is there for every row of those digests. */
size_t np_comm_groups_find(const struct np_comm_groups *self, np_id name, bool p2p);

/* Append "(0,1)", or as Python prints a tuple: "(0, 1)", "(0,)". */
void np_ranks_print(struct np_ranks ranks, bool python, struct np_buf *out);

/* ── stages ── */

struct np_pipe {
	NP_VEC(struct np_ranks) v; /* by first rank */
	struct np_arena arena;
};

/*
 * Ranks that hold the same part of the model: pp groups (point-to-point, name begins with
 * "pp") tie ranks of different stages together; collective groups with at most one rank of
 * each such chain tie the ranks of a stage. None without pp groups. false: out of memory.
 */
bool np_pipe_make(struct np_pipe *self, const struct np_comm_groups *groups);
void np_pipe_release(struct np_pipe *self);
/* SIZE_MAX: in none. */
size_t np_pipe_of(const struct np_pipe *self, int64_t rank);

/* Position of a rank in Megatron's order: tensor, then context, data, pipeline. */
struct np_position {
	int64_t dp, pp, tp;
};

enum np_position_state {
	NP_POSITIONS_OK,
	NP_POSITIONS_UNKNOWN,  /* no capture says anything */
	NP_POSITIONS_MISMATCH, /* the sizes do not fit each other, or the ranks */
};

/* What the captures say of all ranks; sizes that are not recorded count as 1. compat: the
 * official tool gives up where context parallel is larger than 1. */
enum np_position_state np_positions_of(const struct np_cluster *cluster, struct np_parallel *out);
struct np_position np_position_of(const struct np_parallel *sizes, int64_t rank);

#endif
