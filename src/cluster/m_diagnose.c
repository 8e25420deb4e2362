/*
 * diagnose: the mode without which nobody needs to open a viewer. Who makes the
 * others wait, why, and what it costs; clocks; the critical path.
 */
#include <stdlib.h>
#include <string.h>

#include "cluster/diag_cost.h"
#include "cluster/diag_path.h"
#include "cluster/internal.h"

static const char *text_of(const struct np_diagnosis *self, np_id id)
{
	return np_cluster_text(self->cluster, id).ptr;
}

const char *np_diag_group_name(const struct np_diagnosis *self, uint32_t group)
{
	const struct np_diag_group *g = &self->groups.v[group];
	np_str key = np_cluster_text(self->cluster, g->key);
	const char *name = g->recorded && *g->recorded->name ? g->recorded->name : NULL;
	np_str tail = np_str_from(key, key.len > 3 ? key.len - 3 : 0);
	const char *text =
		name ? np_arena_printf(&self->cluster->arena, "%s#%.*s", name, NP_FMT(tail))
		     : np_arena_printf(&self->cluster->arena, "#%.*s", NP_FMT(tail));
	return text ? text : "";
}

static int64_t rank_id(const struct np_diagnosis *self, uint32_t row)
{
	return self->cluster->ranks.v[row].rank;
}

static double share(const struct np_diagnosis *self, np_ns ns)
{
	return self->total > 0 ? (double)ns / (double)self->total : 0;
}

static double us_per_step(const struct np_diagnosis *self, np_ns ns)
{
	return self->n_steps > 0 ? (double)ns / 1000 / (double)self->n_steps : 0;
}

/* ── tables ── */

static const struct np_column cause_columns[] = {
	{"rank", "", NP_COL_INT, "who makes the others wait"},
	{"cause", "", NP_COL_TEXT, "in what it exceeds the median of its peers"},
	{"cost_us", "us", NP_COL_REAL, "last minus second last arrival, per step"},
	{"share", "", NP_COL_PERCENT, "of the step"},
	{"group", "", NP_COL_TEXT, "communicator in which it costs that"},
	{"late", "", NP_COL_INT, "collectives of that group that it delayed"},
	{"of", "", NP_COL_INT, "collectives of that group"},
	{"waits_us", "us", NP_COL_REAL, "waiting of all other ranks together, per step"},
	{"verdict", "", NP_COL_TEXT, "accused, or below the noise"},
};

enum { SHOWN_CAUSES = 10 };

static void causes_table(const struct np_diagnosis *self, const struct np_diag_causes *causes)
{
	struct np_table *table = NP_REPORT_TABLE(self->cluster->report, "diagnose_causes",
	                                         "Who makes the others wait", cause_columns);
	for (size_t i = 0; i < causes->list.n && i < SHOWN_CAUSES; i++) {
		const struct np_diag_cause *cause = &causes->list.v[i];
		np_cell_int(table, rank_id(self, cause->rank));
		np_cell_word(table, np_cause_name((enum np_cause)cause->cause));
		np_cell_real(table, us_per_step(self, cause->cost));
		np_cell_real(table, share(self, cause->cost));
		np_cell_cstr(table, cause->group == NP_DIAG_NONE
		                            ? NULL
		                            : np_diag_group_name(self, cause->group));
		np_cell_int(table, (int64_t)cause->count);
		np_cell_int(table, (int64_t)cause->of);
		np_cell_real(table, us_per_step(self, cause->waits));
		np_cell_word(table, cause->accused ? "accused" : "noise");
	}
}

static const struct np_column clock_columns[] = {
	{"clock", "", NP_COL_TEXT, "host, or rank whose host is not recorded"},
	{"ranks", "", NP_COL_INT, "ranks that go by it"},
	{"offset_us", "us", NP_COL_REAL, "ahead of the first clock, at the first collective"},
	{"drift_ppm", "", NP_COL_REAL, "change of the offset, us per second"},
	{"spread_us", "us", NP_COL_REAL, "median absolute deviation of the ends"},
	{"collectives", "", NP_COL_INT, "by which it was measured"},
};

static void clock_table(const struct np_diagnosis *self)
{
	if (self->domains.n < 2)
		return;
	struct np_table *table = NP_REPORT_TABLE(self->cluster->report, "diagnose_clocks",
	                                         "Clocks, by the ends of collectives",
	                                         clock_columns);
	for (size_t d = 0; d < self->domains.n; d++) {
		const struct np_diag_domain *domain = &self->domains.v[d];
		np_cell_cstr(table, domain->name);
		np_cell_int(table, domain->ranks);
		if (domain->known && domain->n > 0) {
			np_cell_real(table, (double)domain->offset / 1000);
			np_cell_real(table, domain->drift_ppm);
			np_cell_real(table, (double)domain->spread / 1000);
		} else {
			np_cell_na(table);
			np_cell_na(table);
			np_cell_na(table);
		}
		np_cell_int(table, (int64_t)domain->n);
	}
}

static const struct np_column path_columns[] = {
	{"bound_by", "", NP_COL_TEXT, "what the step waits for on its critical path"},
	{"per_step_us", "us", NP_COL_REAL, "per step"},
	{"share", "", NP_COL_PERCENT, "of the step"},
};

static void path_table(const struct np_diagnosis *self, const struct np_path *path)
{
	struct np_table *table = NP_REPORT_TABLE(self->cluster->report, "diagnose_path",
	                                         "Critical path across ranks", path_columns);
	for (int b = 0; b < NP_N_BOUNDS; b++) {
		if (path->by_bound[b] == 0)
			continue;
		np_cell_word(table, np_path_bound_name((enum np_path_bound)b));
		np_cell_real(table, us_per_step(self, path->by_bound[b]));
		np_cell_real(table, share(self, path->by_bound[b]));
	}
}

static const struct np_column group_columns[] = {
	{"group", "", NP_COL_TEXT, "name and last digits of the communicator"},
	{"ranks", "", NP_COL_INT, "ranks with ops of it"},
	{"expected", "", NP_COL_INT, "recorded size"},
	{"collectives", "", NP_COL_INT, "matched across ranks"},
	{"wait_us", "us", NP_COL_REAL, "mean wait of a rank for the last, per collective"},
	{"transfer_us", "us", NP_COL_REAL, "mean from the last arrival to the first end"},
	{"most_often_last", "", NP_COL_INT, "rank that came last most often"},
	{"times", "", NP_COL_INT, "how often"},
};

static bool group_table(const struct np_diagnosis *self)
{
	struct np_table *table = NP_REPORT_TABLE(self->cluster->report, "diagnose_groups",
	                                         "Collectives by communicator", group_columns);
	struct sum {
		double wait, transfer;
	} *sums = np_calloc(self->groups.n + 1, sizeof *sums);
	uint32_t *late = np_calloc(self->groups.n + 1, sizeof *late);
	uint32_t *counts = np_calloc(self->n_ranks + 1, sizeof *counts);
	NP_VEC(uint32_t) order = {0};
	bool ok = sums && late && counts;
	for (uint32_t g = 0; ok && g < self->groups.n; g++)
		ok = np_vec_push(&order, g);
	for (size_t i = 0; ok && i < self->instances.n; i++) {
		const struct np_diag_instance *k = &self->instances.v[i];
		sums[k->group].wait += (double)k->waits / (k->n - 1);
		sums[k->group].transfer += (double)k->transfer;
	}
	for (uint32_t g = 0; ok && g < self->groups.n; g++) {
		const struct np_diag_group *group = &self->groups.v[g];
		uint32_t best = 0;
		double n = group->n_instances > 0 ? (double)group->n_instances : 1;
		memset(counts, 0, self->n_ranks * sizeof *counts);
		for (size_t i = 0; i < self->instances.n && self->groups.n <= 64; i++)
			if (self->instances.v[i].group == g)
				counts[self->instances.v[i].last]++;
		for (uint32_t r = 1; r < self->n_ranks; r++)
			best = counts[r] > counts[best] ? r : best;
		np_cell_cstr(table, np_diag_group_name(self, g));
		np_cell_int(table, group->n_ranks);
		np_cell_int(table, group->expected);
		np_cell_int(table, (int64_t)group->n_instances);
		np_cell_real(table, sums[g].wait / 1000 / n);
		np_cell_real(table, sums[g].transfer / 1000 / n);
		if (counts[best] > 0)
			np_cell_int(table, rank_id(self, best));
		else
			np_cell_na(table);
		np_cell_int(table, counts[best]);
	}
	np_free(sums);
	np_free(late);
	np_free(counts);
	np_vec_release(&order);
	return ok;
}

/* ── the whole ── */

static bool gather(struct np_diagnosis *self, struct np_cluster *cluster)
{
	size_t n = cluster->ranks.n, ops = 0;
	*self = (struct np_diagnosis){.cluster = cluster,
	                         .n_ranks = n,
	                         .ops = np_calloc(n + 1, sizeof *self->ops),
	                         .steps = np_calloc(n + 1, sizeof *self->steps),
	                         .first_op = np_calloc(n + 1, sizeof *self->first_op),
	                         .kernels = np_calloc(n + 1, sizeof *self->kernels),
	                         .has_kernels = true};
	if (!self->ops || !self->steps || !self->first_op || !self->kernels)
		return false;
	for (size_t r = 0; r < n; r++) {
		const struct np_timeline_facts *facts =
			NP_DIGEST_ROWS(&cluster->ranks.v[r], np_timeline_facts);
		self->ops[r] = NP_DIGEST_ROWS(&cluster->ranks.v[r], np_timeline_ops);
		self->steps[r] = NP_DIGEST_ROWS(&cluster->ranks.v[r], np_timeline_steps);
		self->kernels[r] = facts->n > 0 && facts->has_kernels[0];
		self->has_kernels &= self->kernels[r];
		ops += self->ops[r]->n;
		self->first_op[r + 1] = ops;
	}
	self->instance_of = np_realloc(NULL, ops + 1, sizeof *self->instance_of);
	for (size_t i = 0; self->instance_of && i < ops; i++)
		self->instance_of[i] = NP_DIAG_NONE;
	return self->instance_of != NULL;
}

static void release(struct np_diagnosis *self)
{
	for (size_t g = 0; g < self->groups.n; g++)
		np_free(self->groups.v[g].ranks);
	np_vec_release(&self->groups);
	np_vec_release(&self->instances);
	np_vec_release(&self->members);
	np_vec_release(&self->domains);
	np_free(self->ops);
	np_free(self->steps);
	np_free(self->first_op);
	np_free(self->instance_of);
	np_free(self->domain_of);
	np_free(self->kernels);
	np_free(self->fits);
}

static bool diagnose(struct np_diagnosis *self)
{
	struct np_path path;
	struct np_diag_causes causes = {0};
	bool ok = np_diag_match(self) && np_diag_clock(self) && np_diag_arrive(self) &&
	          np_diag_blame(self);
	if (!ok)
		return false;
	ok = np_diag_path(self, &path) && np_diag_cost(self, &causes);
	if (ok) {
		causes_table(self, &causes);
		path_table(self, &path);
		clock_table(self);
		ok = group_table(self);
	}
	np_vec_release(&causes.list);
	np_path_release(&path);
	return ok;
}

static enum np_status reduce(struct np_cluster *cluster, const struct np_recipe *self,
                             struct np_err *err)
{
	struct np_diagnosis diag;
	(void)self;
	bool ok = gather(&diag, cluster) && diagnose(&diag);
	(void)text_of;
	release(&diag);
	return ok ? NP_OK : np_err_nomem(err);
}

static const struct np_part *const parts[] = {&np_part_timeline, NULL};

const struct np_recipe np_recipe_diagnose = {
	.name = "diagnose",
	.dir = "Diagnose",
	.summary = "who makes the others wait, why, and what it costs",
	.parts = parts,
	.reduce = reduce,
};
