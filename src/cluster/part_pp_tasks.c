/* Tasks of the marks of forward and backward passes (cluster_and_advisor.md §2.24). */
#include <stdlib.h>

#include "cluster/mstx.h"
#include "cluster/parts.h"

#define NP_TAG np_digest_pp_tasks
NP_TABLE_DESC(, np_digest_pp_tasks, "pp_tasks", NP_DIGEST_PP_TASKS_COLUMNS)
#undef NP_TAG

struct pass {
	np_ns start, end;
	int64_t step;
	uint32_t mark, task;
	bool backward;
};

struct passes {
	struct pass *v;
	size_t n, cap;
};

static int by_start(const void *a, const void *b)
{
	const struct pass *x = a, *y = b;
	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (x->mark != y->mark)
		return x->mark < y->mark ? -1 : 1;
	return (x->task > y->task) - (x->task < y->task);
}

/* The official condition is "forward OR backward OR (pop AND in the range)". */
static bool is_pass(const struct np_map_job *job, size_t mark, bool *backward)
{
	const struct np_profile *profile = job->profile;
	np_ns start = profile->mstx.start_ns[mark];
	bool in_range = start >= job->from_ns && start <= job->to_ns;
	*backward = !np_mstx_says(profile, mark, NP_STR("forward"));
	if (!*backward || np_mstx_says(profile, mark, NP_STR("backward")))
		return in_range || job->options->compat;
	return in_range && np_mstx_says(profile, mark, NP_STR("WeightGradStore_pop"));
}

static bool collect(const struct np_map_job *job, const struct np_step_times *steps,
                    const struct np_conn_tasks *tasks, struct passes *passes)
{
	const struct np_mstx *m = &job->profile->mstx;
	const struct np_tasks *t = tasks->tasks;
	bool ok = true;
	for (uint32_t i = 0; ok && i < m->n; i++) {
		struct pass pass = {.mark = i};
		if (m->conn[i] == NP_NO_I64 || !is_pass(job, i, &pass.backward))
			continue;
		pass.step = steps->n ? np_step_of(steps, m->start_ns[i], m->end_ns[i]) : 0;
		for (size_t at = np_conn_tasks_find(tasks, m->conn[i]);
		     ok && at < tasks->n && t->conn[tasks->order[at]] == m->conn[i]; at++) {
			pass.task = tasks->order[at];
			pass.start = t->start_ns[pass.task];
			pass.end = pass.start + t->dur_ns[pass.task];
			ok = np_vec_push(passes, pass);
		}
	}
	if (ok && passes->n > 0)
		qsort(passes->v, passes->n, sizeof *passes->v, by_start);
	return ok;
}

static enum np_status map(const struct np_map_job *job, struct np_err *err)
{
	struct np_digest_pp_tasks *rows = np_digest_table(job->digest, &np_digest_pp_tasks_desc);
	struct np_step_times steps = {0};
	struct np_conn_tasks tasks = {0};
	struct passes passes = {0};
	bool ok = rows && np_step_times_make(job->profile, &steps) &&
	          np_conn_tasks_make(job->profile, &tasks) && collect(job, &steps, &tasks, &passes);
	for (size_t i = 0; ok && i < passes.n; i++) {
		size_t r = np_rows_add(rows, &np_digest_pp_tasks_desc);
		ok = r != SIZE_MAX;
		if (!ok)
			break;
		rows->start_ns[r] = passes.v[i].start;
		rows->end_ns[r] = passes.v[i].end;
		rows->step[r] = passes.v[i].step;
		rows->backward[r] = passes.v[i].backward;
	}
	np_vec_release(&passes);
	np_step_times_release(&steps);
	np_conn_tasks_release(&tasks);
	return ok ? NP_OK : np_err_nomem(err);
}

static const struct np_table_desc *const tables[] = {&np_digest_pp_tasks_desc, NULL};

const struct np_part np_part_pp_tasks = {
	.name = "pp_tasks",
	.revision = 1,
	.load = NP_MSTX | NP_TASKS | NP_STEPS,
	.by_options = true,
	.tables = tables,
	.map = map,
};
