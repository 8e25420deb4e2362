/*
 * operator_mfu (cluster_and_advisor.md §2.23): model FLOPs utilisation by kernel and by
 * module.
 */
#include <math.h>

#include "cluster/internal.h"
#include "cluster/modules.h"
#include "cluster/parts.h"
#include "cluster/rank_book.h"

static const struct np_column kernel_columns[] = {
	{"rank_id", "", NP_COL_INT, "rank"},
	{"op_name", "", NP_COL_TEXT, "operator of the framework"},
	{"kernel_name", "", NP_COL_TEXT, "kernel"},
	{"kernel_start(ns)", "", NP_COL_INT, "its start"},
	{"kernel_end(ns)", "", NP_COL_INT, "its end"},
	{"kernel_duration(ns)", "", NP_COL_REAL, "its duration"},
	{"mfu", "", NP_COL_REAL, "share of the chip's peak, 0…1"},
	{"actual_tflops", "", NP_COL_REAL, "operations per second, 1e12"},
	{"chip_peak_tflops", "", NP_COL_REAL,
         "AI cores × frequency × operations per cycle, 1e12 per second"},
	{"flops", "", NP_COL_REAL, "its share of the range's operations, by duration"},
	{"flops_op_name", "", NP_COL_TEXT, "what the range is called"},
	{"input_shapes", "", NP_COL_TEXT, "shapes of the inputs"},
	{"output_shapes", "", NP_COL_TEXT, "shapes of the outputs"},
};

static const struct np_column module_columns[] = {
	{"rank_id", "", NP_COL_INT, "rank"},
	{"parent_module", "", NP_COL_TEXT, "modules around it, from the outermost"},
	{"module", "", NP_COL_TEXT, "module; [Backward] before those of the backward pass"},
	{"op_name", "", NP_COL_TEXT, "operator of the framework"},
	{"kernel_list", "", NP_COL_TEXT, "what the operator launched"},
	{"total_kernel_duration(ns)", "", NP_COL_REAL, "time of the kernels, all instances"},
	{"avg_kernel_duration(ns)", "", NP_COL_REAL, "the same per instance"},
	{"op_count", "", NP_COL_INT, "instances"},
	{"avg_mfu", "", NP_COL_TEXT, "mean MFU of each kernel of the list that has one"},
};

/* As numpy rounds. */
static double rounded(double value, double scale)
{
	return rint(value * scale) / scale;
}

static void text_or_na(const struct np_cluster *cluster, struct np_table *table, np_id id)
{
	if (id == NP_ID_NONE)
		np_cell_na(table);
	else
		np_cell_text(table, np_cluster_text(cluster, id));
}

static void kernel_rows(const struct np_cluster *cluster, size_t rank, struct np_table *table)
{
	const struct np_digest_op_mfu *rows =
		NP_DIGEST_ROWS(&cluster->ranks.v[rank], np_digest_op_mfu);
	for (size_t i = 0; i < rows->n; i++) {
		np_cell_int(table, cluster->ranks.v[rank].rank);
		np_cell_text(table, np_cluster_text(cluster, rows->op[i]));
		np_cell_text(table, np_cluster_text(cluster, rows->kernel[i]));
		np_cell_int(table, rows->start_ns[i]);
		np_cell_int(table, rows->end_ns[i]);
		np_cell_real(table, (double)(rows->end_ns[i] - rows->start_ns[i]));
		np_cell_real(table, rounded(rows->mfu[i], 1e4));
		np_cell_real(table, rounded(rows->flops_per_s[i] / 1e12, 1e2));
		np_cell_real(table, rounded(rows->peak[i] / 1e12, 1e2));
		np_cell_real(table, rows->flops[i]);
		np_cell_text(table, np_cluster_text(cluster, rows->flops_op[i]));
		text_or_na(cluster, table, rows->in_shapes[i]);
		text_or_na(cluster, table, rows->out_shapes[i]);
	}
}

static const struct np_digest_modules *modules_of(const struct np_cluster *cluster, size_t rank)
{
	return np_digest_rows(cluster->ranks.v[rank].digest, &np_digest_module_mfu_desc);
}

static void module_rows(const struct np_cluster *cluster, size_t rank, struct np_table *table)
{
	const struct np_digest_modules *rows = modules_of(cluster, rank);
	for (size_t i = 0; i < rows->n; i++) {
		np_cell_int(table, cluster->ranks.v[rank].rank);
		np_cell_text(table, np_cluster_text(cluster, rows->parent[i]));
		np_cell_text(table, np_cluster_text(cluster, rows->module[i]));
		np_cell_text(table, np_cluster_text(cluster, rows->op[i]));
		np_cell_text(table, np_cluster_text(cluster, rows->kernels[i]));
		np_cell_real(table, (double)rows->total_ns[i]);
		np_cell_real(table, (double)rows->total_ns[i] / (double)rows->count[i]);
		np_cell_int(table, rows->count[i]);
		np_cell_text(table, np_cluster_text(cluster, rows->mfu[i]));
	}
}

/* ── what is missing ── */

#define NO_RANGES   NP_N("ranges of mstx in the domain \"mfu_flops\"")
#define NO_CHIP     NP_N("info.json with ai_core_num and aic_frequency (raw dump, PROF_…/device_…)")
#define NO_LAUNCHES NP_N("kernels connected to operators of the framework")
#define NO_KERNELS  NP_N("kernel of a known data type in a range of the domain \"mfu_flops\"")

enum lack { LACK_NOTHING, LACK_RANGES, LACK_CHIP, LACK_LAUNCHES, LACK_KERNELS, N_LACKS };

static enum lack lack_of(const struct np_cluster_rank *rank)
{
	const struct np_digest_mfu_facts *facts = NP_DIGEST_ROWS(rank, np_digest_mfu_facts);
	if (facts->n == 0 || facts->ranges[0] == 0)
		return LACK_RANGES;
	if (!facts->chip[0])
		return LACK_CHIP;
	if (facts->launches[0] == 0)
		return LACK_LAUNCHES;
	return NP_DIGEST_ROWS(rank, np_digest_op_mfu)->n > 0 ? LACK_NOTHING : LACK_KERNELS;
}

/* Ranks by what they lack; with all of them lacking, that is why there is no result. */
static bool tell_lacking(struct np_cluster *cluster, const struct np_recipe *self)
{
	static const char *const what[N_LACKS] = {NULL, NO_RANGES, NO_CHIP, NO_LAUNCHES,
	                                          NO_KERNELS};
	bool *has = np_calloc(cluster->ranks.n + 1, sizeof *has);
	for (int lack = LACK_RANGES; has && lack < N_LACKS; lack++) {
		size_t n = 0;
		for (size_t r = 0; r < cluster->ranks.n; r++) {
			has[r] = (int)lack_of(&cluster->ranks.v[r]) != lack;
			n += !has[r];
		}
		if (n > 0 && n == cluster->ranks.n)
			np_cluster_nothing(cluster, self, "no rank has %s", np_tr(what[lack]));
		else
			np_cluster_lacking(cluster, self, has, what[lack]);
	}
	np_free(has);
	return has != NULL;
}

static enum np_status reduce(struct np_cluster *cluster, const struct np_recipe *self,
                             struct np_err *err)
{
	size_t kernels = 0, modules = 0;
	for (size_t r = 0; r < cluster->ranks.n; r++) {
		kernels += NP_DIGEST_ROWS(&cluster->ranks.v[r], np_digest_op_mfu)->n;
		modules += modules_of(cluster, r)->n;
	}
	if (kernels > 0) {
		struct np_table *table = NP_REPORT_TABLE(cluster->report, "OperatorMFU",
		                                         "MFU by kernel", kernel_columns);
		for (size_t r = 0; r < cluster->ranks.n; r++)
			kernel_rows(cluster, r, table);
	}
	if (modules > 0) {
		struct np_table *table = NP_REPORT_TABLE(cluster->report, "ModuleMFU",
		                                         "MFU by module", module_columns);
		for (size_t r = 0; r < cluster->ranks.n; r++)
			module_rows(cluster, r, table);
	}
	return tell_lacking(cluster, self) ? NP_OK : np_err_nomem(err);
}

/* ── files ── */

static const struct np_recipe_file files[] = {
	{.table = "OperatorMFU"},
	{.table = "ModuleMFU"},
	{.table = NULL},
};

static const struct np_column kernel_sheet[] = {
	{"Rank ID", "", NP_COL_INT, ""},
	{"Op Name", "", NP_COL_TEXT, ""},
	{"Kernel Name", "", NP_COL_TEXT, ""},
	{"Kernel Start(ns)", "", NP_COL_INT, ""},
	{"Kernel End(ns)", "", NP_COL_INT, ""},
	{"Kernel Duration(ns)", "", NP_COL_REAL, ""},
	{"MFU", "", NP_COL_REAL, ""},
	{"actual_tflops", "", NP_COL_REAL, ""},
	{"chip_peak_tflops", "", NP_COL_REAL, ""},
	{"flops", "", NP_COL_REAL, ""},
	{"flops_op_name", "", NP_COL_TEXT, ""},
	{"input_shapes", "", NP_COL_TEXT, ""},
	{"output_shapes", "", NP_COL_TEXT, ""},
};

static const struct np_column module_sheet[] = {
	{"Rank ID", "", NP_COL_INT, ""},
	{"Parent Module", "", NP_COL_TEXT, ""},
	{"Module", "", NP_COL_TEXT, ""},
	{"Op Name", "", NP_COL_TEXT, ""},
	{"Kernel List", "", NP_COL_TEXT, ""},
	{"Total Kernel Duration(ns)", "", NP_COL_REAL, ""},
	{"Avg Kernel Duration(ns)", "", NP_COL_REAL, ""},
	{"Op Count", "", NP_COL_INT, ""},
	{"Avg MFU", "", NP_COL_TEXT, ""},
};

static const struct np_rank_book kernel_book = {
	.table = "OperatorMFU",
	.columns = kernel_sheet,
	.n_columns = sizeof kernel_sheet / sizeof *kernel_sheet,
	.with_rank = true,
	.file = "operator_mfu_kernel_",
};

static const struct np_rank_book module_book = {
	.table = "ModuleMFU",
	.columns = module_sheet,
	.n_columns = sizeof module_sheet / sizeof *module_sheet,
	.with_rank = true,
	.file = "operator_mfu_module_",
	.first_merged = 1,
	.n_merged = 2,
};

static enum np_status export(struct np_cluster *cluster, const struct np_recipe *self,
                             struct np_export *out, struct np_err *err) {
	(void)cluster; if (out->type != NP_EXPORT_TEXT) return NP_OK;
	NP_TRY(np_export_rank_books(out, self, &kernel_book, err));
	return np_export_rank_books(out, self, &module_book, err);
}

static const struct np_part *const parts[] = {&np_part_op_mfu, NULL};

const struct np_recipe np_recipe_operator_mfu = {
	.name = "operator_mfu",
	.dir = "OperatorMfu",
	.summary = NP_N("how much of the chip's peak kernels and modules reach"),
	.parts = parts,
	.reduce = reduce,
	.files = files,
	.export = export,
};
