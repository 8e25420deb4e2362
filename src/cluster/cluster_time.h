/*
 * Where the time of each rank and step goes: ClusterTimeSummary, for the modes
 * cluster_time_summary and cluster_time_compare_summary.
 */
#ifndef NP_CLUSTER_CLUSTER_TIME_H
#define NP_CLUSTER_CLUSTER_TIME_H

#include "cluster/recipe.h"

/* The columns of a row behind rank and step; all us. */
enum np_time_column {
	NP_TIME_STEP,
	NP_TIME_COMPUTING,
	NP_TIME_NOT_OVERLAPPED,
	NP_TIME_OVERLAPPED,
	NP_TIME_COMMUNICATION,
	NP_TIME_FREE,
	NP_TIME_WAIT,
	NP_TIME_TRANSMIT,
	NP_TIME_MEMORY,
	NP_TIME_MEMORY_EXPOSED,
	NP_TIME_COLUMNS,
};

struct np_time_row {
	int64_t rank, step;         /* step -1: the capture has none */
	double us[NP_TIME_COLUMNS]; /* NaN: not known */
};

struct np_time_rows {
	NP_VEC(struct np_time_row) v; /* by rank and step */
	size_t left_out;              /* collectives whose group is not complete */
	bool *has;                    /* per rank of the cluster: it has rows */
};

/* What the map must give. */
extern const struct np_part np_part_cluster_time;

/* false: out of memory. Release in every case. */
bool np_time_rows_make(const struct np_cluster *cluster, struct np_time_rows *out);
void np_time_rows_release(struct np_time_rows *self);

/* Which ranks and collectives are left out; into the report of the cluster. */
void np_time_rows_tell(const struct np_time_rows *self, struct np_cluster *cluster,
                       const struct np_recipe *recipe);

/* The report's table ClusterTimeSummary. */
void np_time_rows_table(const struct np_time_rows *self, struct np_report *report);

#endif
