/*
 * export_summary (cluster_and_advisor.md §2.25): api_statistic.csv and
 * kernel_details.csv of each rank, from whatever format its capture has.
 *
 * The official tool writes them into the capture; here they go to
 * DIR/cluster_analysis_output/ExportSummary/<rank>/, and without -o the report tells
 * what there is. summary_files.c makes the text.
 */
#include "base/pool.h"
#include "cluster/export.h"
#include "cluster/internal.h"
#include "cluster/summary_files.h"

#define SIZE_COLUMNS(X)                                                \
	X(uint64_t, kernels, "rows that kernel_details.csv will have") \
	X(uint64_t, tasks, "tasks of the device")

NP_TABLE_STRUCT(np_digest_summary, SIZE_COLUMNS);
#define NP_TAG np_digest_summary
NP_TABLE_DESC(static, np_digest_summary, "summary", SIZE_COLUMNS)
#undef NP_TAG

static enum np_status map(const struct np_map_job *job, struct np_err *err)
{
	struct np_digest_summary *rows = np_digest_table(job->digest, &np_digest_summary_desc);
	size_t r = np_rows_add(rows, &np_digest_summary_desc);
	if (r == SIZE_MAX)
		return np_err_nomem(err);
	rows->kernels[r] = job->profile->kernels.n + job->profile->comm_schedule.n;
	rows->tasks[r] = job->profile->tasks.n;
	return NP_OK;
}

static const struct np_table_desc *const tables[] = {&np_digest_summary_desc, NULL};

static const struct np_part part = {
	.name = "summary",
	.revision = 1,
	.load = NP_KERNELS | NP_COMM_SCHEDULE | NP_TASKS,
	.tables = tables,
	.map = map,
};

static const struct np_column columns[] = {
	{"rankId", "", NP_COL_INT, "rank"},
	{"kernels", "", NP_COL_INT, "rows of kernel_details.csv"},
	{"tasks", "", NP_COL_INT, "tasks that api_statistic.csv is made of"},
	{"directory", "", NP_COL_TEXT, "where -o writes the two files, below its directory"},
};

static bool is_empty(const struct np_cluster *cluster, size_t rank)
{
	const struct np_digest_summary *rows =
		NP_DIGEST_ROWS(&cluster->ranks.v[rank], np_digest_summary);
	return rows->n == 0 || (rows->kernels[0] == 0 && rows->tasks[0] == 0);
}

static enum np_status reduce(struct np_cluster *cluster, const struct np_recipe *self,
                             struct np_err *err)
{
	bool *has = np_calloc(cluster->ranks.n + 1, sizeof *has);
	size_t n = 0;
	if (!has)
		return np_err_nomem(err);
	for (size_t r = 0; r < cluster->ranks.n; r++) {
		bool full = !is_empty(cluster, r);
		has[r] = full || !cluster->ranks.v[r].digest; /* the latter is told elsewhere */
		n += full;
	}
	np_cluster_lacking(cluster, self, has, "kernels or tasks");
	np_free(has);
	if (n == 0) {
		np_cluster_nothing(cluster, self, "no rank has kernels or tasks");
		return NP_OK;
	}
	struct np_table *table =
		NP_REPORT_TABLE(cluster->report, "ExportSummary", "Files of each rank", columns);
	for (size_t r = 0; r < cluster->ranks.n; r++) {
		const struct np_digest_summary *rows =
			NP_DIGEST_ROWS(&cluster->ranks.v[r], np_digest_summary);
		if (is_empty(cluster, r))
			continue;
		np_cell_int(table, cluster->ranks.v[r].rank);
		np_cell_int(table, (int64_t)rows->kernels[0]);
		np_cell_int(table, (int64_t)rows->tasks[0]);
		np_cell_printf(table, "cluster_analysis_output/ExportSummary/%lld",
		               (long long)cluster->ranks.v[r].rank);
	}
	np_report_note(cluster->report, "export_summary: -o DIR writes api_statistic.csv and "
	                                "kernel_details.csv of each rank there");
	return NP_OK;
}

/* ── files ── */

struct job {
	size_t rank;
	const char *apis, *kernels; /* paths */
	enum np_status status;
	struct np_err err;
};

struct jobs {
	const struct np_cluster *cluster;
	struct job *v;
	size_t n;
};

static enum np_status write_rank(const struct np_cluster *cluster, struct job *job)
{
	bool compat = cluster->options->compat;
	struct np_profile *profile = NULL;
	struct np_buf text = {.max_bytes = SIZE_MAX / 4};
	enum np_status status = np_capture_load(cluster->ranks.v[job->rank].capture,
	                                        NP_SUMMARY_LOAD | (compat ? NP_KEEP_NA : 0), 1,
	                                        &profile, &job->err);
	if (status == NP_OK)
		status = np_summary_apis(profile, &text)
		                 ? np_export_write(job->apis, &text, &job->err)
		                 : np_err_nomem(&job->err);
	np_buf_clear(&text);
	if (status == NP_OK)
		status = np_summary_kernels(profile, compat, &text)
		                 ? np_export_write(job->kernels, &text, &job->err)
		                 : np_err_nomem(&job->err);
	np_buf_release(&text);
	np_profile_free(profile);
	return status;
}

static void run_job(void *ctx, size_t i)
{
	struct jobs *jobs = ctx;
	jobs->v[i].status = write_rank(jobs->cluster, &jobs->v[i]);
}

static enum np_status plan(struct np_export *out, struct jobs *jobs, struct np_err *err)
{
	struct np_cluster *cluster = out->cluster;
	for (size_t r = 0; r < cluster->ranks.n; r++) {
		if (is_empty(cluster, r))
			continue;
		const char *sub = np_arena_printf(&cluster->arena, "ExportSummary/%lld",
		                                  (long long)cluster->ranks.v[r].rank);
		if (!sub)
			return np_err_nomem(err);
		struct job *job = &jobs->v[jobs->n++];
		job->rank = r;
		job->apis = np_export_path(out, sub, "api_statistic.csv", err);
		job->kernels =
			job->apis ? np_export_path(out, sub, "kernel_details.csv", err) : NULL;
		if (!job->kernels)
			return err ? err->code : NP_E_IO;
	}
	return NP_OK;
}

static enum np_status export(struct np_cluster *cluster, const struct np_recipe *self,
                             struct np_export *out, struct np_err *err) {
	(void)self; struct jobs jobs = {.cluster = cluster,
	                                .v = np_calloc(cluster->ranks.n + 1, sizeof *jobs.v)};
	enum np_status status = jobs.v ? plan(out, &jobs, err) : np_err_nomem(err);
	if (status == NP_OK) np_pool_run(cluster->options->threads, jobs.n, run_job, &jobs);
	for (size_t i = 0; status == NP_OK && i < jobs.n;
	     i++){status = jobs.v[i].status; if (status != NP_OK && err) *err = jobs.v[i].err;}
np_free(jobs.v);
return status;
}

static const struct np_part *const parts[] = {&part, NULL};

const struct np_recipe np_recipe_export_summary = {
	.name = "export_summary",
	.dir = "ExportSummary",
	.summary = NP_N("kernel_details.csv and api_statistic.csv of each rank (with -o)"),
	.parts = parts,
	.reduce = reduce,
	.export = export,
};
