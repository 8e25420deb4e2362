/*
 * Many ranks together: map each rank to a digest, reduce the digests to a report.
 *
 *   captures ──choose──▶ ranks ──map (parts, on threads and processes)──▶ digests
 *                                                                           │
 *                 files (db, csv, json) ◀──export── report ◀──reduce (recipes)
 *
 * A *part* is a unit of the map: which tables it loads, and what it keeps of
 * them. A *recipe* is a mode of the command: the parts it needs, and a reduce()
 * over the digests. So modes that run together read each capture once, and a
 * digest that is in the cache is not made again. Memory is one profile per
 * worker and the digests, whatever the cluster's size.
 *
 * Everything is in order of rank; the output does not depend on the number of
 * threads or processes.
 */
#ifndef NP_CLUSTER_CLUSTER_H
#define NP_CLUSTER_CLUSTER_H

#include "base/progress.h"
#include "capture/capture.h"
#include "cluster/digest.h"
#include "report/report.h"

struct np_recipe;
struct np_part;

enum np_export_type {
	NP_EXPORT_AUTO, /* what the official tool does: its built-in modes as the captures are,
	                 * recipes as db */
	NP_EXPORT_DB,
	NP_EXPORT_TEXT,
	NP_EXPORT_HTML, /* where the official tool makes a notebook */
};

struct np_cluster_options {
	const struct np_recipe *const *recipes; /* to run, in order */
	size_t n_recipes;
	const char *rank_list; /* "0,1,5", "all" or NULL */
	bool has_step;
	int64_t step;               /* --step_id */
	uint64_t top;               /* --top_num; 0: the recipe's own */
	int64_t rank;               /* --rank_id of communication_bottleneck, default 0 */
	const char *bp;             /* --bp: the other side of cluster_time_compare_summary */
	const char *baseline;       /* --baseline_profiling_path of calibrate_npu_gpu */
	const char *parallel_types; /* --parallel_types of computational_op_masking */
	double fuzzy_threshold;     /* of calibrate_npu_gpu; 0: 0.8 */
	bool exclude_op_name;       /* of compute_op_sum */
	bool compat;                /* the official tool's figures, defects and all */
	bool force, no_cache;
	bool full_tables; /* the largest tables too, for programs: JSON and CSV */
	unsigned threads; /* 0: all processors */
	struct np_progress *progress;
};

struct np_cluster_rank {
	const struct np_capture *capture;
	int64_t rank;
	struct np_digest *digest; /* its strings are the cluster's; NULL: could not be read */
	const char *why;          /* it could not be read; NULL otherwise */
};

struct np_cluster {
	const struct np_captures *all;
	const struct np_cluster_options *options;
	struct np_report *report;
	struct np_arena arena;
	struct np_intern strings;
	NP_VEC(struct np_cluster_rank) ranks; /* by rank, each once */
	NP_VEC(const struct np_part *) parts; /* that the recipes need */
	bool refused;                         /* the linter forbids it, and no --force */
	bool is_db; /* at least one capture has a profiler db or an analysis.db */
	bool sole;  /* this process is the one that reduces and reports */
};

/*
 * Choose the ranks and say what is wrong with them (findings into `report`):
 * mixed batches and duplicate ranks are refused (self->refused, exit code 1) unless
 * options->force, which takes the newest of each rank and says so. `all`, `options` and `report` must
 * live as long as the cluster. Errors: E_EMPTY (no rank with data), E_NOTFOUND (none
 * of --rank_list), E_USAGE, E_NOMEM. np_cluster_close() in every case.
 */
enum np_status np_cluster_open(struct np_cluster *self, const struct np_captures *all,
                               const struct np_cluster_options *options, struct np_report *report,
                               struct np_err *err);
void np_cluster_close(struct np_cluster *self);

/* Make the digests of all ranks. A rank that cannot be read is told in the report, the rest
 * goes on. Errors: E_NOMEM, and E_IO when another process of the job has died. */
enum np_status np_cluster_map(struct np_cluster *self, struct np_err *err);

/* Run the recipes: tables and findings into the report. A recipe without data says so
 * in a finding and sets the exit code 3. Errors: E_NOMEM. */
enum np_status np_cluster_reduce(struct np_cluster *self, struct np_err *err);

/* Write what the recipes have made into DIR/cluster_analysis_output, and note the files. */
enum np_status np_cluster_export(struct np_cluster *self, const char *dir, enum np_export_type type,
                                 struct np_err *err);

/* ── for recipes ── */

/* Text of a string id of the digests. */
static inline np_str np_cluster_text(const struct np_cluster *self, np_id id)
{
	return np_intern_get(&self->strings, id);
}

/* The row number of a rank id, or SIZE_MAX. */
size_t np_cluster_find_rank(const struct np_cluster *self, int64_t rank);

/* Tables of one more capture or of a rank again (few: for recipes that look closer at the
 * ranks they have found). Freed with np_profile_free(). */
enum np_status np_cluster_load(const struct np_cluster *self, size_t rank, unsigned what,
                               struct np_profile **out, struct np_err *err);

/* "Nothing to report" of a recipe, with the reason: finding CLUSTER_MODE_EMPTY, exit code 3. */
void np_cluster_nothing(struct np_cluster *self, const struct np_recipe *recipe, const char *fmt,
                        ...) __attribute__((format(printf, 3, 4)));

/* A note like "communication_time_sum: ranks 1, 3 have no analysis.db", exit code 3; `has`
 * by index of the rank. Says nothing when all have it. */
void np_cluster_lacking(struct np_cluster *self, const struct np_recipe *recipe, const bool *has,
                        const char *what);

#endif
