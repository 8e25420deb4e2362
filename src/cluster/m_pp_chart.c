/*
 * pp_chart (cluster_and_advisor.md §2.24): the tasks of a pipeline by rank, and its bubbles.
 *
 *   marks of forward and backward ─▶ FP, BP                       ─┐
 *   pp_info says dualpipev ───────▶ names and phases of the        ├▶ StepTaskInfo
 *                                   schedule, by stage of the rank ─┘   PipelineBubble
 */
#include <math.h>
#include <stdlib.h>

#include "cluster/dualpipev.h"
#include "cluster/internal.h"
#include "cluster/parts.h"
#include "io/json.h"

static const struct np_column task_columns[] = {
	{"rank", "", NP_COL_INT, "rank"},
	{"name", "", NP_COL_TEXT, "FP, BP; micro-batches of DualPipeV: 3F+9B"},
	{"startNs", "", NP_COL_INT, "start on the device"},
	{"endNs", "", NP_COL_INT, "end"},
	{"type", "", NP_COL_INT, "0 forward, 1 backward; DualPipeV: phase 0 … 6"},
};

static const struct np_column bubble_columns[] = {
	{"rank", "", NP_COL_INT, "rank"},
	{"stage", "", NP_COL_INT, "of the pipeline; not available: sizes are not recorded"},
	{"step", "", NP_COL_INT, "step; not available: outside of all"},
	{"tasks", "", NP_COL_INT, "forward and backward passes"},
	{"startNs", "", NP_COL_INT, "start of the first"},
	{"endNs", "", NP_COL_INT, "end of the last"},
	{"busyNs", "", NP_COL_INT, "time covered by them"},
	{"bubbleNs", "", NP_COL_INT, "time between them"},
	{"bubbleShare", "", NP_COL_REAL, "bubbleNs / (endNs - startNs), 0…1"},
};

struct task {
	np_ns start, end;
	int64_t step;
	bool backward;
	const struct np_pipe_task *named; /* NULL: FP or BP */
};

struct chart {
	struct np_cluster *cluster;
	struct np_table *tasks, *bubbles;
	/* DualPipeV */
	bool dual;
	int64_t stages, batches, ranks_per_stage;
	struct np_pipe_tasks *schedules; /* by stage, made when needed */
};

static const struct np_digest_pp_tasks *rows_of(const struct np_cluster *cluster, size_t rank)
{
	return NP_DIGEST_ROWS(&cluster->ranks.v[rank], np_digest_pp_tasks);
}

/* ── which pipeline ── */

/* {"pp_type": "dualpipev", "microbatch_num": 10}. Errors: E_NOMEM; what is no JSON says
 * nothing. */
static enum np_status read_pp_info(struct chart *self, const char *text, bool *dual,
                                   struct np_err *err)
{
	struct np_arena arena;
	struct np_input *input = NULL;
	const struct np_jval *root = NULL;
	np_arena_init(&arena);
	enum np_status status = np_input_open_mem(np_str_of(text), "pp_info", 0, &input, err);
	if (status == NP_OK)
		status = np_json_parse(&arena, input, 0, &root, NULL, err);
	if (status == NP_OK) {
		*dual = np_str_ieq(np_jstr(np_jget(root, "pp_type")), NP_STR("dualpipev"));
		if (!np_ji64(np_jget(root, "microbatch_num"), &self->batches))
			self->batches = 0;
	}
	np_input_close(input);
	np_arena_release(&arena);
	return status == NP_E_NOMEM ? status : NP_OK;
}

/* The ranks of a stage follow each other. The official tool takes tp · dp of them, which is
 * too few with context parallelism. */
static int64_t per_stage(const struct chart *self, const struct np_capture *capture)
{
	const struct np_parallel *p = &capture->parallel;
	int64_t world = capture->world_size;
	bool known = p->tp >= 1 && p->tp <= INT32_MAX && p->dp >= 1 && p->dp <= INT32_MAX;
	if (known && self->cluster->options->compat)
		return p->tp * p->dp;
	if (world >= p->pp && world % p->pp == 0)
		return world / p->pp;
	return known ? p->tp * p->dp : NP_NO_I64;
}

/* The first capture that tells them; all ranks of a run say the same. */
static void find_sizes(struct chart *self)
{
	self->stages = self->ranks_per_stage = NP_NO_I64;
	for (size_t r = 0; r < self->cluster->ranks.n && self->stages == NP_NO_I64; r++) {
		const struct np_capture *capture = self->cluster->ranks.v[r].capture;
		int64_t stages = capture->parallel.pp;
		if (stages < 1 || stages > NP_PIPE_MAX_STAGES)
			continue;
		self->ranks_per_stage = per_stage(self, capture);
		if (self->ranks_per_stage != NP_NO_I64)
			self->stages = stages;
	}
}

static int64_t stage_of(const struct chart *self, int64_t rank)
{
	if (self->stages == NP_NO_I64 || rank < 0 || rank / self->ranks_per_stage >= self->stages)
		return NP_NO_I64;
	return rank / self->ranks_per_stage;
}

static void tell_no_schedule(struct chart *self, const char *why)
{
	struct np_finding *finding =
		np_report_finding(self->cluster->report, "CLUSTER_PP_SCHEDULE", NP_WARNING,
	                          "pp_chart: the tasks cannot be named by the schedule of "
	                          "DualPipeV and are shown as FP and BP");
	np_finding_evidence(finding, NULL, NULL, NULL, "%s", why);
	np_cluster_exit(self->cluster, 3);
}

static enum np_status find_pipeline(struct chart *self, struct np_err *err)
{
	bool dual = false;
	find_sizes(self);
	for (size_t r = 0; r < self->cluster->ranks.n; r++) {
		const char *info = self->cluster->ranks.v[r].capture->pp_info;
		if (info && *info) {
			NP_TRY(read_pp_info(self, info, &dual, err));
			break;
		}
	}
	if (dual && self->stages == NP_NO_I64)
		tell_no_schedule(self, "the sizes of the parallel groups are not recorded");
	else if (dual && !np_dualpipev_fits(self->stages, self->batches))
		tell_no_schedule(self, "pp_info has fewer micro-batches than two per stage");
	else if (dual)
		self->dual = true;
	if (!self->dual)
		return NP_OK;
	self->schedules = np_calloc((size_t)self->stages, sizeof *self->schedules);
	return self->schedules ? NP_OK : np_err_nomem(err);
}

static enum np_status schedule_of(struct chart *self, int64_t stage,
                                  const struct np_pipe_tasks **out, struct np_err *err)
{
	struct np_pipe_tasks *tasks = &self->schedules[stage];
	*out = tasks;
	if (tasks->n == 0 &&
	    !np_dualpipev((size_t)self->stages, (size_t)self->batches, (size_t)stage, tasks))
		return np_err_nomem(err);
	return NP_OK;
}

/* ── tasks of one rank ── */

struct tasks {
	struct task *v;
	size_t n;
};

static bool load(const struct np_digest_pp_tasks *rows, struct tasks *out)
{
	*out = (struct tasks){np_calloc(rows->n + 1, sizeof *out->v), 0};
	for (size_t i = 0; out->v && i < rows->n; i++)
		out->v[out->n++] = (struct task){.start = rows->start_ns[i],
		                                 .end = rows->end_ns[i],
		                                 .step = rows->step[i],
		                                 .backward = rows->backward[i]};
	return out->v != NULL;
}

static int by_step(const void *a, const void *b)
{
	const struct task *x = a, *y = b;
	if (x->step != y->step)
		return x->step < y->step ? -1 : 1;
	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return (x->end > y->end) - (x->end < y->end);
}

/* Of tasks that overlap the first; those outside of all steps belong to no schedule. */
static void keep_schedulable(struct tasks *tasks)
{
	size_t n = 0;
	np_ns last = INT64_MIN;
	for (size_t i = 0; i < tasks->n; i++) {
		struct task task = tasks->v[i];
		if (task.start < last)
			continue;
		last = task.end;
		if (task.step != NP_NO_I64)
			tasks->v[n++] = task;
	}
	tasks->n = n;
}

static size_t step_end(const struct tasks *tasks, size_t from)
{
	size_t end = from + 1;
	while (end < tasks->n && tasks->v[end].step == tasks->v[from].step)
		end++;
	return end;
}

static void tell_count(struct chart *self, int64_t rank, int64_t step, size_t expected, size_t n)
{
	struct np_finding *finding =
		np_report_finding(self->cluster->report, "CLUSTER_PP_SCHEDULE", NP_WARNING,
	                          "pp_chart: rank %lld, step %lld: the schedule of DualPipeV has "
	                          "%zu tasks, there are %zu",
	                          (long long)rank, (long long)step, expected, n);
	np_finding_evidence(finding, NULL, NULL, NULL,
	                    "%lld stages, %lld micro-batches; shown as FP and BP",
	                    (long long)self->stages, (long long)self->batches);
	np_cluster_exit(self->cluster, 3);
}

static void tell_no_stage(struct chart *self, int64_t rank)
{
	struct np_finding *finding = np_report_finding(
		self->cluster->report, "CLUSTER_PP_SCHEDULE", NP_WARNING,
		"pp_chart: rank %lld is in no stage of the pipeline", (long long)rank);
	np_finding_evidence(finding, NULL, NULL, NULL,
	                    "%lld stages of %lld ranks; shown as FP and BP",
	                    (long long)self->stages, (long long)self->ranks_per_stage);
	np_cluster_exit(self->cluster, 3);
}

static enum np_status name_tasks(struct chart *self, int64_t rank, struct tasks *tasks,
                                 struct np_err *err)
{
	int64_t stage = stage_of(self, rank);
	const struct np_pipe_tasks *schedule;
	static const struct np_pipe_task unnamed;
	if (!self->dual || tasks->n == 0)
		return NP_OK;
	if (stage == NP_NO_I64) {
		tell_no_stage(self, rank);
		return NP_OK;
	}
	NP_TRY(schedule_of(self, stage, &schedule, err));
	for (size_t i = 0, end; i < tasks->n; i = end) {
		end = step_end(tasks, i);
		bool fits = end - i == schedule->n;
		if (!fits)
			tell_count(self, rank, tasks->v[i].step, schedule->n, end - i);
		for (size_t k = i; k < end; k++) {
			if (fits)
				tasks->v[k].named = &schedule->v[k - i];
			else if (self->cluster->options->compat)
				tasks->v[k].named = &unnamed;
		}
	}
	return NP_OK;
}

static void task_rows(const struct chart *self, int64_t rank, const struct tasks *tasks)
{
	for (size_t i = 0; i < tasks->n; i++) {
		const struct task *task = &tasks->v[i];
		np_cell_int(self->tasks, rank);
		np_cell_cstr(self->tasks, task->named      ? task->named->name
		                          : task->backward ? "BP"
		                                           : "FP");
		np_cell_int(self->tasks, task->start);
		np_cell_int(self->tasks, task->end);
		np_cell_int(self->tasks, task->named ? task->named->phase : task->backward);
	}
}

/* ── bubbles ── */

static void int_or_na(struct np_table *table, int64_t value)
{
	if (value == NP_NO_I64)
		np_cell_na(table);
	else
		np_cell_int(table, value);
}

static void bubble_row(const struct chart *self, int64_t rank, const struct task *tasks, size_t n)
{
	struct np_table *table = self->bubbles;
	np_ns start = tasks[0].start, end = start, busy = 0;
	for (size_t i = 0; i < n; i++) {
		np_ns from = tasks[i].start > end ? tasks[i].start : end;
		if (tasks[i].end > from) {
			busy += tasks[i].end - from;
			end = tasks[i].end;
		}
	}
	np_cell_int(table, rank);
	int_or_na(table, stage_of(self, rank));
	int_or_na(table, tasks[0].step);
	np_cell_int(table, (int64_t)n);
	np_cell_int(table, start);
	np_cell_int(table, end);
	np_cell_int(table, busy);
	np_cell_int(table, end - start - busy);
	np_cell_real(table,
	             end > start ? (double)(end - start - busy) / (double)(end - start) : NAN);
}

static enum np_status chart_rank(struct chart *self, size_t row, struct np_err *err)
{
	const struct np_digest_pp_tasks *rows = rows_of(self->cluster, row);
	int64_t rank = self->cluster->ranks.v[row].rank;
	struct tasks tasks;
	if (!load(rows, &tasks))
		return np_err_nomem(err);
	/* by start, of equal ones in their order; within steps once they are named by them */
	if (self->dual && tasks.n > 0) {
		keep_schedulable(&tasks);
		qsort(tasks.v, tasks.n, sizeof *tasks.v, by_step);
	}
	enum np_status status = name_tasks(self, rank, &tasks, err);
	task_rows(self, rank, &tasks);
	if (tasks.n > 0)
		qsort(tasks.v, tasks.n, sizeof *tasks.v, by_step);
	for (size_t i = 0, end; i < tasks.n; i = end) {
		end = step_end(&tasks, i);
		bubble_row(self, rank, &tasks.v[i], end - i);
	}
	np_free(tasks.v);
	return status;
}

/* ── the whole ── */

static enum np_status chart_all(struct chart *self, struct np_err *err)
{
	struct np_cluster *cluster = self->cluster;
	NP_TRY(find_pipeline(self, err));
	self->tasks = NP_REPORT_TABLE(cluster->report, "StepTaskInfo", "Tasks of the pipeline",
	                              task_columns);
	self->bubbles = NP_REPORT_TABLE(cluster->report, "PipelineBubble",
	                                "Bubbles by rank and step", bubble_columns);
	for (size_t r = 0; r < cluster->ranks.n; r++)
		NP_TRY(chart_rank(self, r, err));
	return NP_OK;
}

static enum np_status reduce(struct np_cluster *cluster, const struct np_recipe *recipe,
                             struct np_err *err)
{
	struct chart self = {.cluster = cluster};
	bool *has = np_calloc(cluster->ranks.n + 1, sizeof *has);
	size_t n = 0;
	if (!has)
		return np_err_nomem(err);
	for (size_t r = 0; r < cluster->ranks.n; r++) {
		has[r] = rows_of(cluster, r)->n > 0;
		n += has[r];
	}
	enum np_status status = NP_OK;
	if (n == 0)
		np_cluster_nothing(cluster, recipe,
		                   "no rank has marks of mstx on a stream that say \"forward\" or "
		                   "\"backward\"");
	else
		status = chart_all(&self, err);
	if (n > 0)
		np_cluster_lacking(cluster, recipe, has,
		                   "marks of mstx that say \"forward\" or \"backward\"");
	for (int64_t s = 0; self.schedules && s < self.stages; s++)
		np_pipe_tasks_release(&self.schedules[s]);
	np_free(self.schedules);
	np_free(has);
	return status;
}

static const struct np_part *const parts[] = {&np_part_pp_tasks, NULL};

static const struct np_recipe_file files[] = {
	{.table = "StepTaskInfo", .csv = "step_task_info.csv"},
	{.table = "PipelineBubble", .csv = "pipeline_bubble.csv"},
	{.table = NULL},
};

const struct np_recipe np_recipe_pp_chart = {
	.name = "pp_chart",
	.dir = "PPChart",
	.summary = NP_N("forward and backward passes of a pipeline, and its bubbles"),
	.parts = parts,
	.reduce = reduce,
	.files = files,
};
