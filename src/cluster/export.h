/*
 * Files for other tools: DIR/cluster_analysis_output with cluster_analysis.db, or
 * the text files of each recipe, as the official tool names and lays them out
 * (cluster_and_advisor.md §1.8, §2.2). Each file appears complete or not at all.
 *
 * The CSV of a table: its columns, but those whose name ends in "Ns" are divided by
 * 1000 and headed "…(Us)"; numbers as Python prints them; NULL is empty.
 */
#ifndef NP_CLUSTER_EXPORT_H
#define NP_CLUSTER_EXPORT_H

#include "cluster/recipe.h"
#include "report/write_db.h"

/* Where a recipe's export() writes. */
struct np_export {
	struct np_cluster *cluster;
	const char *dir;          /* …/cluster_analysis_output, exists */
	enum np_export_type type; /* DB, TEXT or HTML */
	struct np_db_file *db;    /* open while type is DB, else NULL */
};

/* The path DIR/SUB/NAME (SUB may be NULL), its directory made; in the cluster's arena.
 * Noted in the report as written, so call it once per file. NULL: see err. */
const char *np_export_path(struct np_export *self, const char *sub, const char *name,
                           struct np_err *err);

/* The table as such a CSV. */
void np_export_csv(const struct np_table *table, const struct np_recipe_file *file,
                   struct np_buf *out);

/* Its parts: the headings, and one row of them. */
void np_export_csv_head(const struct np_table *table, const struct np_recipe_file *file,
                        struct np_buf *out);
void np_export_csv_row(const struct np_table *table, const struct np_recipe_file *file,
                       const struct np_cell *cells, struct np_buf *out);

/* Write a whole file. */
enum np_status np_export_write(const char *path, const struct np_buf *text, struct np_err *err);

/* The report's table of this id, or NULL. */
const struct np_table *np_export_table(const struct np_cluster *cluster, const char *id);

#endif
