/* The files of the mode `communication` among themselves. */
#ifndef NP_CLUSTER_COMMUNICATION_H
#define NP_CLUSTER_COMMUNICATION_H

#include "cluster/insight.h"

enum np_comm_link {
	NP_LINK_SDMA,
	NP_LINK_RDMA,
	NP_LINK_HCCS,
	NP_LINK_PCIE,
	NP_LINK_SIO,
	NP_N_LINKS
};

/* One rank's operations of a group in a step, summed up. */
struct np_comm_unit {
	int64_t step;
	np_id group;
	uint32_t rank; /* row of the cluster */
	size_t ops;
	bool p2p; /* sends, receives or exchanges of uneven size are among them */
	double elapse, transit, wait, sync, idle; /* ms; NaN where an operation does not say */
	double mb[NP_N_LINKS], ms[NP_N_LINKS];
	/* name (tp, dp_cp …) and members, the same for all units of the step and group; NULL:
	 * none of them has recorded it */
	const struct np_group *recorded;
};

extern const char *const np_comm_link_names[NP_N_LINKS];

struct np_comm_units {
	struct np_cluster *cluster;
	struct np_insight_steps steps;
	NP_VEC(struct np_comm_unit) units; /* by step, group, rank */
};

/* Units of one step and group are [i, end). */
size_t np_comm_units_end(const struct np_comm_units *self, size_t i);

/* Steps that --step_id leaves out are not among the units. E_NOMEM. */
bool np_comm_units_collect(struct np_cluster *cluster, struct np_comm_units *out);
void np_comm_units_release(struct np_comm_units *self);

/* The first unit of the step and group, or NULL. */
const struct np_comm_unit *np_comm_units_find(const struct np_comm_units *self, int64_t step,
                                              np_id group);
/* The cells step, group_name, pg_name. */
void np_cell_comm_unit(struct np_table *table, const struct np_comm_units *self,
                       const struct np_comm_unit *unit);
#define NP_COMM_UNIT_COLUMNS                                                                     \
	{"step", "", NP_COL_INT, "step"},                                                        \
		{"group_name", "", NP_COL_TEXT, "hash of the communicator, as data files have"}, \
	{                                                                                        \
		"pg_name", "", NP_COL_TEXT, "name of the process group: tp, dp, default_group"   \
	}

/* Tables and findings; false: out of memory. */
bool np_comm_slow_ranks(const struct np_comm_units *self); /* communication_slow.c */
bool np_comm_operations(const struct np_comm_units *self); /* communication_ops.c */
bool np_comm_links(const struct np_comm_units *self);      /* communication_links.c */
bool np_comm_packets(const struct np_comm_units *self);    /* communication_packets.c */
bool np_comm_advice(const struct np_comm_units *self);     /* communication_advice.c */

#endif
