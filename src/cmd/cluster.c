#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/cluster.h"
#include "cluster/recipe.h"
#include "cmd/drill.h"
#include "cmd/progress.h"

enum { MAX_MODES = 64, SHOWN_ROWS = 20, SCREEN_ROWS = 8 };

struct options {
	const char *path, *modes, *output, *export_type, *rank_list, *step, *top, *rank;
	const char *bp, *baseline, *parallel_types, *fuzzy, *parallel_mode;
	bool exclude_op_name, compat, force, no_cache, list_modes;
};

#define AT(field) offsetof(struct options, field)

static const struct np_option options[] = {
	{"mode", 'm', NP_OPT_STRING, AT(modes), "MODE[,MODE…]",
         "what to tell (default: diagnose; with -o diagnose,all); see --list-modes"},
	{"list-modes", 0, NP_OPT_FLAG, AT(list_modes), NULL, "tell all modes, without a PATH"},
	{"profiling_path", 'd', NP_OPT_STRING, AT(path), "PATH",
         "the captures, instead of PATH at the end"},
	{"output", 'o', NP_OPT_STRING, AT(output), "DIR",
         "write files to DIR/cluster_analysis_output (default: nothing is written)"},
	{"output_path", 0, NP_OPT_STRING, AT(output), "DIR", "same as --output"},
	{"export_type", 0, NP_OPT_STRING, AT(export_type), "TYPE",
         "with -o: db, text or html (default: db; mode all: as the captures are)"},
	{"rank_list", 0, NP_OPT_STRING, AT(rank_list), "LIST",
         "only these ranks: 0,1,5 (default: all)"},
	{"step_id", 0, NP_OPT_STRING, AT(step), "ID", "only this step (default: -1, all)"},
	{"top_num", 0, NP_OPT_STRING, AT(top), "N",
         "rows in tables of the longest (default: that of the mode, 10 or 15)"},
	{"compat", 0, NP_OPT_FLAG, AT(compat), NULL,
         "the figures of msprof-analyze, with its defects"},
	{"force", 0, NP_OPT_FLAG, AT(force), NULL,
         "go on with mixed batches and duplicate ranks: the newest of each rank"},
	{"no-cache", 0, NP_OPT_FLAG, AT(no_cache), NULL, "read everything anew, keep nothing"},
	{"rank_id", 0, NP_OPT_STRING, AT(rank), "N",
         "communication_bottleneck: collectives of this rank (default: 0)"},
	{"bp", 0, NP_OPT_STRING, AT(bp), "PATH",
         "cluster_time_compare_summary: the captures to compare with"},
	{"baseline_profiling_path", 0, NP_OPT_STRING, AT(baseline), "FILE",
         "calibrate_npu_gpu: the GPU's database of Nsight Systems"},
	{"fuzzy_threshold", 0, NP_OPT_STRING, AT(fuzzy), "X",
         "calibrate_npu_gpu: how alike names of modules must be (default: 0.8)"},
	{"parallel_types", 0, NP_OPT_STRING, AT(parallel_types), "\"A;B,C\"",
         "computational_op_masking: sets of group names"},
	{"exclude_op_name", 0, NP_OPT_FLAG, AT(exclude_op_name), NULL,
         "compute_op_sum: no table by name"},
	{"parallel_mode", 0, NP_OPT_STRING, AT(parallel_mode), "MODE",
         "accepted and ignored, for command lines of msprof-analyze"},
};

static const struct np_column mode_columns[] = {
	{"mode", "", NP_COL_TEXT, "name for -m"},
	{"tells", "", NP_COL_TEXT, "what it tells"},
};

static void list_modes(struct np_report *report)
{
	struct np_table *table = NP_REPORT_TABLE(report, "modes", "Modes", mode_columns);
	for (size_t i = 0; i < np_n_recipes; i++) {
		np_cell_cstr(table, np_recipes[i]->name);
		np_cell_word(table, np_recipes[i]->summary);
	}
}

/* ── options ── */

struct modes {
	const struct np_recipe *v[MAX_MODES];
	size_t n;
};

static bool has_mode(const struct modes *modes, const struct np_recipe *recipe)
{
	for (size_t i = 0; i < modes->n; i++)
		if (modes->v[i] == recipe)
			return true;
	return false;
}

static enum np_status take_modes(const char *names, struct modes *out, struct np_err *err)
{
	np_str rest = np_str_of(names);
	do {
		np_str name = np_str_trim(np_str_cut(rest, ',', &rest));
		const struct np_recipe *recipe = np_recipe_find(name);
		if (!recipe)
			return np_err_set(
				err, NP_E_USAGE, NULL,
				"unknown mode '%.*s'; npuprof cluster --list-modes tells all",
				NP_FMT(name));
		if (!has_mode(out, recipe) && out->n < MAX_MODES)
			out->v[out->n++] = recipe;
	} while (rest.len > 0);
	return NP_OK;
}

/* What a mode cannot do without. */
static enum np_status check_modes(const struct modes *modes, const struct options *own,
                                  struct np_err *err)
{
	for (size_t i = 0; i < modes->n; i++)
		if (strcmp(modes->v[i]->name, "cluster_time_compare_summary") == 0 && !own->bp)
			return np_err_set(err, NP_E_USAGE, NULL,
			                  "%s compares two sets of captures: give the other one "
			                  "with --bp PATH",
			                  modes->v[i]->name);
	return NP_OK;
}

static enum np_status take_type(const char *name, enum np_export_type *out, struct np_err *err)
{
	static const struct {
		const char *name;
		enum np_export_type type;
	} types[] = {{"db", NP_EXPORT_DB},
	             {"text", NP_EXPORT_TEXT},
	             {"html", NP_EXPORT_HTML},
	             {"notebook", NP_EXPORT_HTML}};
	*out = NP_EXPORT_AUTO;
	for (size_t i = 0; name && i < sizeof types / sizeof *types; i++)
		if (strcmp(types[i].name, name) == 0)
			*out = types[i].type;
	if (name && *out == NP_EXPORT_AUTO)
		return np_err_set(err, NP_E_USAGE, NULL,
		                  "unknown --export_type '%s': use db, text or html", name);
	return NP_OK;
}

static enum np_status take_number(const char *option, const char *text, int64_t min, int64_t *out,
                                  struct np_err *err)
{
	if (text && (!np_str_to_i64(np_str_of(text), out) || *out < min))
		return np_err_set(err, NP_E_USAGE, NULL, "%s wants a number, got '%s'", option,
		                  text);
	return NP_OK;
}

static bool is_for_programs(const struct np_common *common)
{
	return common->json || (common->format && (strcmp(common->format, "json") == 0 ||
	                                           strcmp(common->format, "csv") == 0));
}

static enum np_status take_options(const struct np_call *call, const struct modes *modes,
                                   struct np_cluster_options *out, struct np_err *err)
{
	const struct options *own = call->options;
	int64_t top = 0, step = -1;
	*out = (struct np_cluster_options){.recipes = modes->v,
	                                   .n_recipes = modes->n,
	                                   .rank_list = own->rank_list,
	                                   .bp = own->bp,
	                                   .baseline = own->baseline,
	                                   .parallel_types = own->parallel_types,
	                                   .exclude_op_name = own->exclude_op_name,
	                                   .compat = own->compat,
	                                   .force = own->force,
	                                   .no_cache = own->no_cache,
	                                   .full_tables = is_for_programs(call->common),
	                                   .threads = (unsigned)call->common->jobs};
	NP_TRY(take_number("--step_id", own->step, -1, &step, err));
	NP_TRY(take_number("--top_num", own->top, 1, &top, err));
	NP_TRY(take_number("--rank_id", own->rank, 0, &out->rank, err));
	out->has_step = step >= 0; /* -1 is the official tool's word for all */
	out->step = step;
	out->top = (uint64_t)top;
	if (own->fuzzy && !np_str_to_double(np_str_of(own->fuzzy), &out->fuzzy_threshold))
		return np_err_set(err, NP_E_USAGE, NULL, "--fuzzy_threshold wants a number");
	return NP_OK;
}

/* ── the run ── */

static enum np_status run_modes(struct np_cluster *cluster, const char *output,
                                enum np_export_type type, struct np_err *err)
{
	if (output && cluster->sole)
		NP_TRY(np_cluster_export_check(cluster, output, err));
	NP_TRY(np_cluster_map(cluster, err));
	if (!cluster->sole)
		return NP_OK;
	NP_TRY(np_cluster_reduce(cluster, err));
	return output ? np_cluster_export(cluster, output, type, err) : NP_OK;
}

static enum np_status fill_from(const struct np_call *call, const char *path,
                                struct np_report *report, struct np_err *err)
{
	const struct options *own = call->options;
	struct modes modes = {.n = 0};
	struct np_cluster_options how;
	enum np_export_type type;
	struct np_captures *all = NULL;
	/* with -o the files of mode all are what is wanted, beside the diagnosis */
	NP_TRY(take_modes(own->modes    ? own->modes
	                  : own->output ? "diagnose,all"
	                                : "diagnose",
	                  &modes, err));
	NP_TRY(check_modes(&modes, own, err));
	NP_TRY(take_type(own->export_type, &type, err));
	NP_TRY(take_options(call, &modes, &how, err));
	NP_TRY(np_discover(path, &all, err));
	np_report_input(report, path);
	struct np_progress_line *line =
		np_cluster_is_root() ? np_progress_show(call->common) : NULL;
	how.progress = np_progress_of(line);
	struct np_cluster cluster;
	enum np_status status = np_cluster_open(&cluster, all, &how, report, err);
	if (status == NP_OK && !cluster.refused)
		status = run_modes(&cluster, own->output, type, err);
	if (status == NP_OK && np_cluster_is_root())
		np_drill_note(all, path, report);
	np_progress_hide(line);
	np_cluster_close(&cluster);
	np_captures_free(all);
	return status;
}

static enum np_status fill(const struct np_call *call, struct np_report *report, struct np_err *err)
{
	const struct options *own = call->options;
	if (own->list_modes) {
		list_modes(report);
		return NP_OK;
	}
	const char *path = own->path ? own->path : call->argc > 0 ? call->argv[0] : NULL;
	if (!path || (own->path && call->argc > 0))
		return np_err_set(err, NP_E_USAGE, NULL,
		                  "one PATH is wanted: npuprof cluster PATH, or -d PATH");
	return fill_from(call, path, report, err);
}

static int run(const struct np_call *call)
{
	struct np_err err = {0};
	struct np_report *report = np_report_new("cluster");
	enum np_status status = np_cluster_join(&err);
	if (status == NP_OK) {
		status = report ? fill(call, report, &err) : np_err_nomem(&err);
		np_cluster_leave(status, &err);
	}
	/* mpirun gives its processes a terminal of its own, also when it writes to a file */
	const struct options *own = call->options;
	struct np_finish how = {.max_rows = own->list_modes ? MAX_MODES
	                                    : own->modes    ? SHOWN_ROWS
	                                                    : SCREEN_ROWS,
	                        .no_terminal = np_cluster_is_shared()};
	int exit_code = NP_EXIT_OK; /* of the other processes of mpirun: the root speaks for all */
	if (np_cluster_is_root())
		exit_code =
			status == NP_OK ? np_cmd_finish_as(call, report, &how) : np_cmd_fail(&err);
	np_report_free(report);
	return exit_code;
}

static const char *const examples[] = {
	"npuprof cluster captures/",
	"npuprof cluster -m slow_rank,slow_link -d captures/",
	"npuprof cluster -m all captures/ -o result/",
	"mpirun -n 4 npuprof cluster /shared/captures",
	NULL,
};

const struct np_cmd np_cmd_cluster = {
	.name = "cluster",
	.summary = "across ranks: who is slow, which link, and why",
	.words = "PATH",
	.min_words = 0,
	.max_words = 1,
	.detail =
		"Reads all captures below PATH, one per rank, text or db. Without -m it tells who "
		"makes the\n"
		"others wait, on one screen; the other modes give the tables of msprof-analyze and "
		"MindStudio\n"
		"Insight. With -o they are written as files, too; captures never are.\n"
		"\n"
		"Exit status: 0 done, 1 refused (mixed batches or duplicate ranks, see --force), 2 "
		"usage,\n"
		"3 a mode or a rank had nothing to tell, or something is missing, 4 a rank could "
		"not be read.",
	.examples = examples,
	.options = options,
	.n_options = sizeof options / sizeof *options,
	.options_size = sizeof(struct options),
	.run = run,
};
