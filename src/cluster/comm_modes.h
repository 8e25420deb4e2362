/*
 * What the six modes about the exporter's communication summaries do, in pieces.
 */
#ifndef NP_CLUSTER_COMM_MODES_H
#define NP_CLUSTER_COMM_MODES_H

#include "cluster/cluster_files.h"

/* The largest tables are made for programs only, and for so many ranks. */
enum { NP_FULL_TABLES_RANKS = 64 };

enum {
	NP_COMM_SHOW_TIMES = 1 << 0,  /* per group: ops and where their time went */
	NP_COMM_SHOW_MATRIX = 1 << 1, /* per kind of link: size, time, the slowest */
};

/*
 * Findings and tables that are of use to a reader, with --json and the like the full ones
 * too (options->full_tables). false in *any: no rank has such data, which has been told.
 */
enum np_status np_comm_reduce(struct np_cluster *cluster, const struct np_recipe *recipe,
                              const struct np_comm_groups *groups, unsigned what, bool *any,
                              struct np_err *err);

/* The full tables into the database (out->db), or as csv below the recipe's directory. */
enum np_status np_comm_export(struct np_export *out, const struct np_recipe *recipe,
                              const struct np_comm_groups *groups, unsigned what,
                              struct np_err *err);

extern const struct np_part *const np_comm_parts[]; /* times and matrix */

#endif
