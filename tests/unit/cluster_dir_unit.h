/* Modes of `cluster` run on a directory; lite captures that have communication.json only. */
#ifndef NP_TESTS_CLUSTER_UNIT_H
#define NP_TESTS_CLUSTER_UNIT_H

#include "cluster/recipe.h"
#include "temp_tree.h"

/* The report of a mode, NULL when memory has run out; options may be NULL. */
static inline struct np_report *cluster_run(const char *dir, const char *mode,
                                            const struct np_cluster_options *options)
{
	const struct np_recipe *recipe = np_recipe_find(np_str_of(mode));
	struct np_cluster_options how = {.no_cache = true};
	struct np_captures *all = NULL;
	struct np_cluster cluster;
	struct np_err err = {0};
	assert_non_null(recipe);
	if (options)
		how = *options;
	how.no_cache = true;
	how.recipes = &recipe;
	how.n_recipes = 1;
	how.threads = 1;
	struct np_report *report = np_report_new("cluster");
	if (!report)
		return NULL;
	enum np_status status = np_discover(dir, &all, &err);
	if (status == NP_OK) {
		status = np_cluster_open(&cluster, all, &how, report, &err);
		if (status == NP_OK)
			status = np_cluster_map(&cluster, &err);
		if (status == NP_OK)
			status = np_cluster_reduce(&cluster, &err);
		np_cluster_close(&cluster);
	}
	np_captures_free(all);
	if (status == NP_E_NOMEM) {
		np_report_free(report);
		return NULL;
	}
	if (status != NP_OK)
		fail_msg("%s: %s", err.where, err.msg);
	return report;
}

static inline const struct np_finding *cluster_finding(const struct np_report *report,
                                                       const char *code)
{
	for (size_t i = 0; i < report->findings.n; i++)
		if (strcmp(report->findings.v[i]->code, code) == 0)
			return report->findings.v[i];
	return NULL;
}

static inline const struct np_table *cluster_table(const struct np_report *report, const char *id)
{
	for (size_t i = 0; i < report->tables.n; i++)
		if (strcmp(report->tables.v[i]->id, id) == 0)
			return report->tables.v[i];
	return NULL;
}

/* Fails with every allocation in turn, until it succeeds. */
static inline void cluster_out_of_memory(const char *dir, const char *mode,
                                         const struct np_cluster_options *options)
{
	enum { MOST = 100000 };
	for (uint64_t n = 0; n < MOST; n++) {
		np_mem_fail_after(n);
		struct np_report *report = cluster_run(dir, mode, options);
		np_mem_fail_after(UINT64_MAX);
		bool done = report != NULL;
		np_report_free(report);
		if (done)
			return;
	}
	fail_msg("%s never succeeds", mode);
}

/* rank<N>_…_ascend_pt with communication.json of these ops ("" or "a,b" without braces). */
static inline void lite_capture(const char *root, int rank, const char *ops)
{
	char path[128], *text = malloc(strlen(ops) + 256);
	assert_non_null(text);
	(void)snprintf(path, sizeof path, "h_%d_20250601080000000_ascend_pt/profiler_info_%d.json",
	               rank, rank);
	tree_put(root, path, "{}");
	(void)snprintf(path, sizeof path,
	               "h_%d_20250601080000000_ascend_pt/ASCEND_PROFILER_OUTPUT/"
	               "communication.json",
	               rank);
	(void)snprintf(text, strlen(ops) + 256, "{\"step1\": {\"p2p\": {}, \"collective\": {%s}}}",
	               ops);
	tree_put(root, path, text);
	free(text);
}

enum { LITE_OPS_SIZE = 1 << 16 };

/* One op of it, appended to the LITE_OPS_SIZE bytes. */
static inline void lite_op(char *ops, int nth, double start_us, double elapse_ms, double mb)
{
	size_t len = strlen(ops);
	(void)snprintf(ops + len, LITE_OPS_SIZE - len,
	               "%s\"hcom_allReduce__271_%d_1@11022204950826225271\": {"
	               "\"Communication Time Info\": {\"Start Timestamp(us)\": %.3f, "
	               "\"Elapse Time(ms)\": %.6f, \"Transit Time(ms)\": 0.1, "
	               "\"Wait Time(ms)\": 0, \"Synchronization Time(ms)\": 0, "
	               "\"Idle Time(ms)\": 0}, \"Communication Bandwidth Info\": {\"HCCS\": {"
	               "\"Transit Size(MB)\": %.3f, \"Transit Time(ms)\": 0.1, "
	               "\"Bandwidth(GB/s)\": 1, \"Large Packet Ratio\": 0, "
	               "\"Size Distribution\": {}}}}",
	               *ops ? ", " : "", nth, start_us, elapse_ms, mb);
}

#endif
