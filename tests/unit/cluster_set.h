/* A made-up set of captures, and np_cluster over it with a mode. */
#ifndef NP_TESTS_CLUSTER_SET_H
#define NP_TESTS_CLUSTER_SET_H

#include "cluster/internal.h"
#include "synth_set.h"

struct cset {
	char root[TREE_PATH];    /* everything is below it; XDG_CACHE_HOME is root/cache */
	char dir[2 * TREE_PATH]; /* the captures */
	struct np_captures *all;
	struct np_report *report;
	const struct np_recipe *recipes[4];
	struct np_cluster_options options;
	struct np_cluster cluster;
	struct np_progress progress;
	struct np_err err;
	enum np_status status;
	bool open;
};

static inline int cset_new(void **state)
{
	char cache[2 * TREE_PATH];
	struct cset *self = calloc(1, sizeof *self);
	assert_non_null(self);
	(void)tree_new(self->root);
	(void)snprintf(cache, sizeof cache, "%s/cache", self->root);
	assert_int_equal(setenv("XDG_CACHE_HOME", cache, 1), 0);
	(void)snprintf(self->dir, sizeof self->dir, "%s/set", self->root);
	self->recipes[0] = np_recipe_find(NP_STR("hccl_sum"));
	self->options = (struct np_cluster_options){.recipes = self->recipes,
	                                            .n_recipes = 1,
	                                            .threads = 2,
	                                            .progress = &self->progress};
	*state = self;
	return 0;
}

static inline void cset_close(struct cset *self)
{
	if (self->open)
		np_cluster_close(&self->cluster);
	self->open = false;
	np_report_free(self->report);
	self->report = NULL;
	np_captures_free(self->all);
	self->all = NULL;
}

static inline int cset_free(void **state)
{
	struct cset *self = *state;
	np_mem_fail_after(0);
	cset_close(self);
	tree_remove(self->root);
	free(self);
	return 0;
}

/* open, map and reduce; the first failure is in self->status */
static inline void cset_run_at(struct cset *self, const char *path)
{
	cset_close(self);
	self->report = np_report_new("cluster");
	assert_non_null(self->report);
	assert_int_equal(np_discover(path, &self->all, &self->err), NP_OK);
	self->status = np_cluster_open(&self->cluster, self->all, &self->options, self->report,
	                               &self->err);
	self->open = true;
	if (self->status == NP_OK && !self->cluster.refused)
		self->status = np_cluster_map(&self->cluster, &self->err);
	if (self->status == NP_OK && !self->cluster.refused)
		self->status = np_cluster_reduce(&self->cluster, &self->err);
}

static inline void cset_run(struct cset *self)
{
	cset_run_at(self, self->dir);
	if (self->status != NP_OK)
		fail_msg("%s: %s", self->err.where, self->err.msg);
}

static inline const struct np_finding *cset_find(const struct cset *self, const char *code)
{
	for (size_t i = 0; i < self->report->findings.n; i++)
		if (strcmp(self->report->findings.v[i]->code, code) == 0)
			return self->report->findings.v[i];
	return NULL;
}

static inline const struct np_finding *cset_expect(const struct cset *self, const char *code)
{
	const struct np_finding *finding = cset_find(self, code);
	if (!finding)
		fail_msg("%s is not told", code);
	return finding;
}

/* A file of a rank: .../ASCEND_PROFILER_OUTPUT/NAME. Static memory. */
static inline const char *cset_file(const struct cset *self, size_t row, const char *name)
{
	static char path[2 * TREE_PATH];
	(void)snprintf(path, sizeof path, "%s/%s", self->cluster.ranks.v[row].capture->output,
	               name);
	return path;
}

#endif
