/*
 * module_statistic (cluster_and_advisor.md §2.22): time of the kernels by module and
 * operator, per rank.
 */
#include "cluster/internal.h"
#include "cluster/modules.h"
#include "cluster/parts.h"
#include "cluster/rank_book.h"

static const struct np_column columns[] = {
	{"parentModule", "", NP_COL_TEXT, "modules around it, from the outermost"},
	{"module", "", NP_COL_TEXT, "module; [Backward] before those of the backward pass"},
	{"opName", "", NP_COL_TEXT, "operator of the framework"},
	{"kernelList", "", NP_COL_TEXT, "what the operator launched"},
	{"totalKernelDuration(ns)", "", NP_COL_REAL, "time of the kernels, all instances"},
	{"avgKernelDuration(ns)", "", NP_COL_REAL, "the same per instance"},
	{"opCount", "", NP_COL_INT, "instances"},
	{"rankID", "", NP_COL_INT, "rank"},
};

static void rank_rows(const struct np_cluster *cluster, size_t rank, struct np_table *table)
{
	const struct np_digest_modules *rows =
		NP_DIGEST_ROWS(&cluster->ranks.v[rank], np_digest_modules);
	for (size_t i = 0; i < rows->n; i++) {
		np_cell_text(table, np_cluster_text(cluster, rows->parent[i]));
		np_cell_text(table, np_cluster_text(cluster, rows->module[i]));
		np_cell_text(table, np_cluster_text(cluster, rows->op[i]));
		np_cell_text(table, np_cluster_text(cluster, rows->kernels[i]));
		np_cell_real(table, (double)rows->total_ns[i]);
		np_cell_real(table, (double)rows->total_ns[i] / (double)rows->count[i]);
		np_cell_int(table, rows->count[i]);
		np_cell_int(table, cluster->ranks.v[rank].rank);
	}
}

static enum np_status reduce(struct np_cluster *cluster, const struct np_recipe *self,
                             struct np_err *err)
{
	bool *has = np_calloc(cluster->ranks.n + 1, sizeof *has);
	size_t n = 0;
	for (size_t r = 0; has && r < cluster->ranks.n; r++) {
		has[r] = NP_DIGEST_ROWS(&cluster->ranks.v[r], np_digest_modules)->n > 0;
		n += has[r];
	}
	if (has && n == 0)
		np_cluster_nothing(cluster, self, NP_MODULES_ABSENT);
	if (has && n > 0) {
		struct np_table *table = NP_REPORT_TABLE(cluster->report, "ModuleStatistic",
		                                         "Kernels by module", columns);
		for (size_t r = 0; r < cluster->ranks.n; r++)
			rank_rows(cluster, r, table);
		np_cluster_lacking(cluster, self, has, NP_MODULES_LACKING);
	}
	np_free(has);
	return has ? NP_OK : np_err_nomem(err);
}

static const struct np_part *const parts[] = {&np_part_modules, NULL};

static const struct np_recipe_file files[] = {
	{.table = "ModuleStatistic"},
	{.table = NULL},
};

static const struct np_column sheet[] = {
	{"Parent Module", "", NP_COL_TEXT, ""},
	{"Module", "", NP_COL_TEXT, ""},
	{"Op Name", "", NP_COL_TEXT, ""},
	{"Kernel List", "", NP_COL_TEXT, ""},
	{"Total Kernel Duration(ns)", "", NP_COL_REAL, ""},
	{"Avg Kernel Duration(ns)", "", NP_COL_REAL, ""},
	{"Op Count", "", NP_COL_INT, ""},
};

static const struct np_rank_book book = {
	.table = "ModuleStatistic",
	.rank_column = 7,
	.columns = sheet,
	.n_columns = sizeof sheet / sizeof *sheet,
	.file = "module_statistic_",
	.n_merged = 2,
};

static enum np_status export(struct np_cluster *cluster, const struct np_recipe *self,
                             struct np_export *out, struct np_err *err) {
	(void)cluster;
	return out->type == NP_EXPORT_TEXT ? np_export_rank_books(out, self, &book, err) : NP_OK;
}

const struct np_recipe np_recipe_module_statistic = {
	.name = "module_statistic",
	.dir = "ModuleStatistic",
	.summary = NP_N("kernels by module and operator of the model"),
	.parts = parts,
	.reduce = reduce,
	.files = files,
	.export = export,
};
