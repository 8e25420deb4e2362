/*
 * Parts and recipes: what a mode of `cluster` is made of. Private to src/cluster/.
 *
 * A new mode is one file m_<mode>.c with its struct np_recipe, and one line in
 * recipes.c. Its tables have the names and columns of the official tool
 * (cluster_and_advisor.md §2), so that they can be written as they are into
 * cluster_analysis.db: table id = SQL table, column name = SQL column, INT →
 * INTEGER, REAL → REAL, TEXT → TEXT.
 */
#ifndef NP_CLUSTER_RECIPE_H
#define NP_CLUSTER_RECIPE_H

#include "cluster/cluster.h"

/* One rank while its profile is in memory. Many run at a time: map() touches nothing else. */
struct np_map_job {
	const struct np_cluster_options *options;
	const struct np_capture *capture;
	int64_t rank;
	const struct np_profile *profile;
	/* the range of --step_id: [from_ns, to_ns], everything without it (§2.2) */
	np_ns from_ns, to_ns;
	struct np_digest *digest; /* to fill: the tables of the part, always made */
};

struct np_part {
	const char *name;   /* in names of the cache's files */
	unsigned revision;  /* raised when map() changes: older files of the cache are void */
	unsigned load;      /* enum np_load bits */
	unsigned load_text; /* those of a capture that has text; 0: the same. So that a part which
	                     * small files can answer does not read a trace */
	/* more of them for captures like this one; NULL: none */
	unsigned (*load_more)(const struct np_capture *capture);
	bool by_options; /* map() looks at the options or the range: they are in the cache's key */
	const struct np_table_desc *const *tables; /* that map() fills; NULL-terminated */
	enum np_status (*map)(const struct np_map_job *job, struct np_err *err); /* E_NOMEM */
};

/* How a table goes into the text export. */
struct np_recipe_file {
	const char *table;        /* id in the report */
	const char *csv;          /* "all_stats.csv"; NULL: not in the text export */
	size_t n_index;           /* leading columns that the db indexes */
	const char *headings;     /* comma-separated column names of the csv; NULL: see export.h */
	const char *const *types; /* declared types of the db's columns; NULL: by their type */
	double ns_divisor;        /* of columns "…Ns"; 0: 1000, headed "…(Us)" */
};

struct np_export; /* export.h */

struct np_recipe {
	const char *name;                   /* of the mode: "hccl_sum" */
	const char *dir;                    /* of the text export: "HcclSum" */
	const char *summary;                /* one line for the help */
	const struct np_part *const *parts; /* NULL-terminated */
	enum np_status (*reduce)(struct np_cluster *cluster, const struct np_recipe *self,
	                         struct np_err *err); /* E_NOMEM; the rest are findings */
	const struct np_recipe_file *files;           /* ends with table NULL; may be NULL */
	/* Writes files of its own besides `files`; NULL: none. */
	enum np_status (*export)(struct np_cluster *cluster, const struct np_recipe *self,
	                         struct np_export *out, struct np_err *err);
	bool builtin; /* all, communication_time, communication_matrix: format of the captures */
};

extern const struct np_recipe *const np_recipes[]; /* sorted by name */
extern const size_t np_n_recipes;
/* NULL: no such mode. */
const struct np_recipe *np_recipe_find(np_str name);

/* A table of one rank's digest, for reduce(): `const struct TAG *`, never NULL; without
 * rows where the rank has none. */
#define NP_DIGEST_ROWS(cluster_rank, tag) \
	((const struct tag *)np_digest_rows((cluster_rank)->digest, &tag##_desc))
const void *np_digest_rows(const struct np_digest *digest, const struct np_table_desc *desc);

#endif
