#include "advice/advice.h"

#include <stdlib.h>
#include <string.h>

#include "advice/choose.h"
#include "advice/cluster_rows.h"
#include "cluster/parts.h"
#include "cluster/recipe.h"
#include "cluster/timeline.h"

static const char *const dimension_names[NP_N_DIMENSIONS] = {
	"overall", "cluster", "computation", "schedule", "communication", "memory", "comparison"};

unsigned np_dimension_parse(const char *name)
{
	if (strcmp(name, "all") == 0)
		return (1U << NP_N_DIMENSIONS) - 1;
	for (unsigned d = 0; d < NP_N_DIMENSIONS; d++)
		if (strcmp(name, dimension_names[d]) == 0)
			return 1U << d;
	return 0;
}

static bool wants(const struct np_advice *self, enum np_dimension dimension)
{
	return !self->options->dimensions || (self->options->dimensions & 1U << dimension);
}

static void run_checkers(struct np_advice *self, enum np_dimension dimension)
{
	for (size_t i = 0; i < np_n_checkers && !self->oom; i++)
		if (np_checkers[i]->dimension == dimension)
			np_checkers[i]->run(self, np_checkers[i]);
}

/* ── the cluster ── */

/* Not a mode: it only says which digests the checkers look at. */
static const struct np_part *const cluster_parts[] = {&np_part_timeline, &np_part_step_trace,
                                                      &np_part_comm_times, NULL};
static const struct np_recipe cluster_digests = {.name = "advise", .parts = cluster_parts};

static size_t count_ranks(const struct np_captures *all)
{
	size_t n = 0;
	for (size_t i = 0; i < all->captures.n; i++)
		n += all->captures.v[i]->framework != NP_FW_CLUSTER &&
		     all->captures.v[i]->rank != NP_NO_I64;
	return n;
}

/* The mean step of all ranks, against which the cluster's findings are weighed. */
static bool measure_cluster(struct np_advice *self)
{
	struct np_step_rows rows;
	double sum = 0;
	bool ok = np_advice_step_rows(self, &rows);
	for (size_t i = 0; i < rows.n; i++)
		sum += rows.v[i].us[0] + rows.v[i].us[1] + rows.v[i].us[2];
	self->steps = 1;
	self->step_us = rows.n > 0 ? sum / (double)rows.n : 0;
	np_vec_release(&rows);
	return ok;
}

static enum np_status look_at_cluster(struct np_advice *self, struct np_err *err)
{
	const struct np_recipe *diagnose = np_recipe_find(NP_STR("diagnose"));
	NP_TRY(np_cluster_map(self->cluster, err));
	if (!self->cluster->sole || !wants(self, NP_DIM_CLUSTER))
		return NP_OK;
	NP_TRY(diagnose->reduce(self->cluster, diagnose, err));
	self->oom |= !measure_cluster(self);
	run_checkers(self, NP_DIM_CLUSTER);
	return self->oom ? np_err_nomem(err) : NP_OK;
}

/* ── ranks ── */

static const enum np_dimension rank_dimensions[] = {
	NP_DIM_OVERALL, NP_DIM_COMPUTATION, NP_DIM_SCHEDULE, NP_DIM_COMMUNICATION, NP_DIM_MEMORY};
enum { N_RANK_DIMENSIONS = sizeof rank_dimensions / sizeof *rank_dimensions };

static unsigned loads_of(unsigned dimensions)
{
	unsigned load = 0;
	for (size_t i = 0; i < np_n_checkers; i++)
		if (dimensions & 1U << np_checkers[i]->dimension)
			load |= np_checkers[i]->load;
	return load;
}

static void measure(struct np_advice *self)
{
	const struct np_analysis *rank = self->rank;
	self->steps = rank->spans.n > 0 ? (unsigned)rank->spans.n : 1;
	self->step_us = (double)rank->total_ns / 1000 / self->steps;
}

static enum np_status look_at_rank(struct np_advice *self, const struct np_choice *choice,
                                   unsigned dimensions, struct np_err *err)
{
	struct np_analysis analysis;
	struct np_err why = {0};
	struct np_analyze_options options = {.has_step = choice->has_step,
	                                     .step = choice->step,
	                                     .threads = self->options->threads,
	                                     .progress = self->options->progress};
	enum np_status status = np_analysis_prepare(&analysis, choice->capture, &options,
	                                            self->report, loads_of(dimensions), &why);
	if (status == NP_OK && !np_links_build(&analysis))
		status = NP_E_NOMEM;
	if (status == NP_E_NOMEM || status == NP_OK) {
		self->rank = &analysis; // cppcheck-suppress autoVariables; NULL again below
		self->rank_id = choice->rank;
		for (size_t d = 0; status == NP_OK && d < N_RANK_DIMENSIONS; d++) {
			if (!(dimensions & 1U << rank_dimensions[d]))
				continue;
			measure(self);
			run_checkers(self, rank_dimensions[d]);
			if (analysis.oom || self->oom)
				status = NP_E_NOMEM;
		}
		self->rank = NULL;
	} else {
		np_report_note(self->report, "%s was not looked at: %s", choice->capture->name,
		               why.msg);
		if (self->report->exit_code == 0)
			self->report->exit_code = 3;
	}
	np_analysis_release(&analysis);
	return status == NP_E_NOMEM ? np_err_nomem(err) : NP_OK;
}

static bool same_choice(const struct np_choice *a, const struct np_choice *b)
{
	return a->capture == b->capture && a->has_step == b->has_step &&
	       (!a->has_step || a->step == b->step);
}

/* Each dimension has its rank; those that have the same share one load. Computation may have
 * a rank per stage of the pipeline. */
static enum np_status look_at_ranks(struct np_advice *self, struct np_err *err)
{
	struct np_choice choices[N_RANK_DIMENSIONS], stages[NP_STAGE_CHOICES];
	bool done[N_RANK_DIMENSIONS] = {false};
	size_t n_stages = 0;
	if (wants(self, NP_DIM_COMPUTATION) && !np_advice_choose_stages(self, stages, &n_stages))
		return np_err_nomem(err);
	for (size_t d = 0; d < N_RANK_DIMENSIONS; d++) {
		np_advice_choose(self, rank_dimensions[d], &choices[d]);
		if (rank_dimensions[d] == NP_DIM_COMPUTATION && n_stages > 0)
			choices[d] = stages[0];
	}
	for (size_t d = 0; d < N_RANK_DIMENSIONS; d++) {
		unsigned dimensions = 0;
		for (size_t e = d; e < N_RANK_DIMENSIONS; e++) {
			if (done[e] || !wants(self, rank_dimensions[e]) ||
			    !same_choice(&choices[d], &choices[e]))
				continue;
			dimensions |= 1U << rank_dimensions[e];
			done[e] = true;
		}
		if (dimensions && choices[d].capture)
			NP_TRY(look_at_rank(self, &choices[d], dimensions, err));
	}
	for (size_t s = 1; s < n_stages; s++)
		NP_TRY(look_at_rank(self, &stages[s], 1U << NP_DIM_COMPUTATION, err));
	return NP_OK;
}

/* ── the whole ── */

static int by_worth(const void *a, const void *b)
{
	const struct np_finding *x = *(struct np_finding *const *)a;
	const struct np_finding *y = *(struct np_finding *const *)b;
	double u = x->has_impact ? x->impact_us : 0, v = y->has_impact ? y->impact_us : 0;
	if (x->severity != y->severity)
		return x->severity > y->severity ? -1 : 1;
	if (u != v)
		return u > v ? -1 : 1;
	int order = strcmp(x->code, y->code);
	return order ? order : strcmp(x->title, y->title);
}

/* Two ranks at a time, which the checkers choose. */
static enum np_status compare(struct np_advice *self, struct np_err *err)
{
	if (self->cluster)
		self->oom |= !measure_cluster(self);
	run_checkers(self, NP_DIM_COMPARISON);
	return self->oom ? np_err_nomem(err) : NP_OK;
}

static enum np_status advise(struct np_advice *self, struct np_err *err)
{
	struct np_choice first;
	np_advice_choose(self, NP_DIM_OVERALL, &first);
	if (!first.capture)
		return np_err_set(err, NP_E_EMPTY, self->all->input,
		                  "no capture with data (npuprof info tells what is there)");
	(void)np_advice_overview(self->report); /* before all other tables, also when empty */
	if (self->cluster)
		NP_TRY(look_at_cluster(self, err));
	if (self->cluster && !self->cluster->sole)
		return NP_OK;
	NP_TRY(look_at_ranks(self, err));
	if (wants(self, NP_DIM_COMPARISON))
		NP_TRY(compare(self, err));
	if (self->report->findings.n > 1)
		qsort(self->report->findings.v, self->report->findings.n,
		      sizeof *self->report->findings.v, by_worth);
	return np_report_ok(self->report, err);
}

static enum np_status advise_with_cluster(struct np_advice *self, struct np_err *err)
{
	const struct np_recipe *const recipes[] = {np_recipe_find(NP_STR("diagnose")),
	                                           &cluster_digests};
	struct np_cluster cluster;
	struct np_cluster_options options = {.recipes = recipes,
	                                     .n_recipes = 2,
	                                     .force = self->options->force,
	                                     .no_cache = self->options->no_cache,
	                                     .has_step = self->options->has_step,
	                                     .step = self->options->step,
	                                     .threads = self->options->threads,
	                                     .progress = self->options->progress};
	enum np_status status = np_cluster_open(&cluster, self->all, &options, self->report, err);
	if (status == NP_OK && !cluster.refused) {
		self->cluster = &cluster;
		self->many = true;
		status = advise(self, err);
		self->cluster = NULL;
	}
	np_cluster_close(&cluster);
	return status;
}

enum np_status np_advise(const struct np_captures *all, const struct np_advise_options *options,
                         struct np_report *report, struct np_err *err)
{
	struct np_advice_rules rules;
	struct np_advice self = {.options = options, .all = all, .rules = &rules, .report = report};
	enum np_status status = np_advice_rules_load(&rules, options->rules_file, err);
	if (status == NP_OK)
		status = count_ranks(all) > 1 && !options->has_rank
		                 ? advise_with_cluster(&self, err)
		                 : advise(&self, err);
	np_advice_rules_release(&rules);
	return status;
}

/* ── rules ── */

static const struct np_column rule_columns[] = {
	{"rule", "", NP_COL_TEXT, "key in the file of --rules"},
	{"value", "", NP_COL_REAL, "threshold"},
	{"unit", "", NP_COL_TEXT, "of the value"},
	{"source", "", NP_COL_TEXT, "where it comes from"},
};

enum np_status np_advise_list_rules(const char *rules_file, struct np_report *report,
                                    struct np_err *err)
{
	struct np_advice_rules rules;
	enum np_status status = np_advice_rules_load(&rules, rules_file, err);
	struct np_table *table =
		status == NP_OK ? NP_REPORT_TABLE(report, "rules", "Thresholds", rule_columns)
				: NULL;
	for (size_t i = 0; status == NP_OK && i < rules.list.n; i++) {
		np_cell_cstr(table, rules.list.v[i].name);
		np_cell_real(table, rules.list.v[i].value);
		np_cell_cstr(table, rules.list.v[i].unit);
		np_cell_cstr(table, rules.list.v[i].changed ? "--rules" : rules.list.v[i].source);
	}
	np_advice_rules_release(&rules);
	return status;
}
