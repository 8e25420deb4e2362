/*
 * Layer 3b: how much communication is hidden behind computing, per group, and
 * what the exposed part is: waiting for other ranks, or transmitting.
 *
 *   compute    ████████████        █████
 *   group A        ▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒          hidden = ▒ under █, exposed = the rest
 *   plane 0        w w w ▒▒▒▒▒▒▒▒▒▒
 *   plane 1        w ▒▒▒▒▒▒▒▒▒▒▒▒▒▒          the plane that waits least speaks for the group
 *
 * Wait = waits of that plane within exposed communication, transmit = the
 * group's exposed time - wait (cluster_and_advisor.md §4.4). Only planes with a
 * wait are considered, as for databases there: a plane that never waits says
 * nothing about the others. A Notify_Wait behind RDMASend, RDMASend or
 * RDMASend, RDMASend, Notify_Wait, RDMASend is part of the transfer. Beside it
 * stands what communication.json says, which counts hidden time too.
 */
#include <math.h>
#include <stdlib.h>

#include "analysis/evidence.h"

static const struct np_column columns[] = {
	{"group", "", NP_COL_TEXT, "communicator; (all): their union; - unknown"},
	{"ops", "", NP_COL_INT, "collectives and point-to-point operations"},
	{"comm_ns", "us", NP_COL_DUR_NS, "union of them within the spans"},
	{"hidden_ns", "us", NP_COL_DUR_NS, "of that, while something is computed"},
	{"exposed_ns", "us", NP_COL_DUR_NS, "of that, while nothing is computed"},
	{"exposed_share", "", NP_COL_PERCENT, "exposed / spans"},
	{"kind", "", NP_COL_TEXT, "hidden: overlap >= 90 %; exposed: < 10 %; else proportional"},
	{"wait_ns", "us", NP_COL_DUR_NS,
         "exposed time in Notify_Wait of the plane that waits least"},
	{"transmit_ns", "us", NP_COL_DUR_NS, "exposed - wait"},
	{"file_elapse_us", "us", NP_COL_REAL, "Elapse Time of communication.json, hidden included"},
	{"file_transit_us", "us", NP_COL_REAL, "its Transit Time"},
	{"file_wait_us", "us", NP_COL_REAL, "its Wait Time"},
	{"file_sync_us", "us", NP_COL_REAL, "its Synchronization Time"},
	{"file_idle_us", "us", NP_COL_REAL, "its Idle Time"},
};

enum { MAX_GROUPS = 256 }; /* more is no real job; the rest is counted as unknown */

struct group {
	uint32_t id;    /* string: of communication.json, else of the tasks; NP_ID_NONE: unknown */
	uint32_t alias; /* what the tasks call it, NP_ID_NONE */
	size_t ops;
	struct np_intervals busy; /* cut to the spans */
	np_ns comm, exposed, wait, transmit;
	bool has_wait;
	size_t file_rows;
	double elapse_ms, transit_ms, wait_ms, sync_ms, idle_ms;
};

struct wait_task {
	uint32_t group, plane;
	np_ns start, end;
	uint32_t name;
};

struct overlap {
	struct np_analysis *analysis;
	struct np_intervals spans, exposed; /* exposed: communication without compute, in spans */
	struct group groups[MAX_GROUPS];
	size_t n_groups;
	struct np_map by_id;   /* string id → group */
	struct np_map by_op;   /* name of an operation → string id of its group */
	struct np_map aliases; /* the same, as the tasks call the group */
};

/* ── which group ── */

static uint32_t group_of(struct overlap *self, uint32_t id)
{
	uint32_t known = np_map_get(&self->by_id, id, UINT32_MAX);
	if (known != UINT32_MAX)
		return known;
	if (id != NP_ID_NONE && self->n_groups + 1 >= MAX_GROUPS)
		return group_of(self, NP_ID_NONE);
	self->groups[self->n_groups] = (struct group){.id = id, .alias = NP_ID_NONE};
	if (!np_map_put(&self->by_id, id, (uint32_t)self->n_groups))
		self->analysis->oom = true;
	return self->analysis->oom ? 0 : (uint32_t)self->n_groups++;
}

/*
 * Tasks may call a group "0" (its lane in a trace) or by its communicator's name,
 * communication.json by a hash; the operations they share tell that it is one.
 */
static bool name_groups(struct overlap *self)
{
	const struct np_comm_ops *ops = &self->analysis->profile->comm_ops;
	const struct np_comm_time *times = &self->analysis->profile->comm_time;
	bool ok = true;
	for (size_t i = 0; ok && i < ops->n; i++)
		if (ops->group[i] != NP_ID_NONE)
			ok = np_map_put(&self->aliases, ops->name[i], ops->group[i]) &&
			     np_map_put(&self->by_op, ops->name[i], ops->group[i]);
	for (size_t i = 0; ok && i < times->n; i++)
		if (times->group[i] != NP_ID_NONE)
			ok = np_map_put(&self->by_op, times->op[i], times->group[i]);
	return ok;
}

/* The collectives of the chosen steps, by group. */
static bool add_ops(struct overlap *self)
{
	struct np_analysis *a = self->analysis;
	const struct np_kernels *kernels = &a->profile->kernels;
	bool ok = name_groups(self);
	for (size_t i = 0; ok && i < a->n_rows; i++) {
		uint32_t row = a->rows[i], name = kernels->name[row];
		if (a->class[row] != NP_CLASS_COMM)
			continue;
		uint32_t id = np_map_get(&self->by_op, name, NP_ID_NONE);
		struct group *group = &self->groups[group_of(self, id)];
		group->alias = np_map_get(&self->aliases, name, NP_ID_NONE);
		group->ops++;
		ok = !a->oom && np_intervals_add(&group->busy, kernels->start_ns[row],
		                                 kernels->start_ns[row] + kernels->dur_ns[row]);
	}
	return ok;
}

/* ── times ── */

static bool make_common(struct overlap *self)
{
	const struct np_analysis *a = self->analysis;
	struct np_intervals all = {0};
	bool ok = true;
	for (size_t s = 0; ok && s < a->spans.n; s++)
		ok = np_intervals_add(&self->spans, a->spans.v[s].start, a->spans.v[s].end);
	np_intervals_merge(&self->spans);
	ok = ok && np_intervals_subtract(&a->comm, &a->compute, &all) &&
	     np_intervals_intersect(&all, &self->spans, &self->exposed);
	np_intervals_release(&all);
	return ok;
}

static bool measure_group(struct overlap *self, struct group *group, struct np_intervals *scratch)
{
	np_intervals_merge(&group->busy);
	if (!np_intervals_intersect(&group->busy, &self->spans, scratch))
		return false;
	struct np_intervals swap = group->busy;
	group->busy = *scratch;
	*scratch = swap;
	group->comm = np_intervals_length(&group->busy);
	if (!np_intervals_intersect(&group->busy, &self->exposed, scratch))
		return false;
	group->exposed = np_intervals_length(scratch);
	return true;
}

/* ── waits ── */

static int by_plane_and_start(const void *a, const void *b)
{
	const struct wait_task *x = a, *y = b;
	if (x->group != y->group)
		return x->group < y->group ? -1 : 1;
	if (x->plane != y->plane)
		return x->plane < y->plane ? -1 : 1;
	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return (x->end > y->end) - (x->end < y->end);
}

/* The tasks of known groups, by group, plane and start. NULL with *n = 0: none; oom is noted. */
static struct wait_task *collect_tasks(struct overlap *self, size_t *n)
{
	struct np_analysis *a = self->analysis;
	const struct np_comm_tasks *tasks = &a->profile->comm_tasks;
	const struct np_comm_ops *ops = &a->profile->comm_ops;
	struct wait_task *out = tasks->n ? np_realloc(NULL, tasks->n, sizeof *out) : NULL;
	*n = 0;
	a->oom |= tasks->n && !out;
	bool sorted = true;
	for (size_t i = 0; out && i < tasks->n; i++) {
		bool ours = a->device == NP_NO_U32 || tasks->device[i] == NP_NO_U32 ||
		            tasks->device[i] == a->device;
		if (!ours || tasks->op[i] >= ops->n)
			continue;
		uint32_t id = np_map_get(&self->by_op, ops->name[tasks->op[i]], NP_ID_NONE);
		uint32_t group = np_map_get(&self->by_id, id, UINT32_MAX);
		if (group == UINT32_MAX)
			continue;
		out[*n] = (struct wait_task){group, tasks->plane[i], tasks->start_ns[i],
		                             tasks->start_ns[i] + tasks->dur_ns[i], tasks->name[i]};
		if (*n > 0 && by_plane_and_start(&out[*n - 1], &out[*n]) > 0)
			sorted = false;
		++*n;
	}
	if (!sorted)
		qsort(out, *n, sizeof *out, by_plane_and_start);
	return out;
}

/* Is the wait at `i` (of its plane's tasks) one of an RDMA transfer? */
static bool of_transfer(const struct wait_task *plane, size_t i, uint32_t rdma, uint32_t wait)
{
	if (rdma == NP_ID_NONE || i < 2)
		return false;
	if (plane[i - 1].name == rdma && plane[i - 2].name == rdma)
		return true;
	return i >= 4 && plane[i - 1].name == rdma && plane[i - 2].name == wait &&
	       plane[i - 3].name == rdma && plane[i - 4].name == rdma;
}

/* One plane's waits; they replace those of the group's earlier planes when they are fewer. */
static bool weigh_plane(struct overlap *self, const struct wait_task *plane, size_t n, np_ns *least,
                        struct np_intervals *waits, struct np_intervals *scratch)
{
	const struct np_intern *strings = &self->analysis->profile->strings;
	uint32_t rdma = np_intern_find(strings, NP_STR("RDMASend"));
	uint32_t wait = np_intern_find(strings, NP_STR("Notify_Wait"));
	struct group *group = &self->groups[plane->group];
	np_ns total = 0;
	waits->n = 0;
	for (size_t i = 0; i < n; i++) {
		if (plane[i].name != wait || of_transfer(plane, i, rdma, wait))
			continue;
		total += plane[i].end - plane[i].start;
		if (!np_intervals_add(waits, plane[i].start, plane[i].end))
			return false;
	}
	if (total == 0 || (group->has_wait && total >= *least))
		return true;
	*least = total;
	np_intervals_merge(waits);
	/* the group's own exposed time, so that wait + transmit = exposed */
	struct np_intervals own = {0};
	bool ok = np_intervals_intersect(&group->busy, &self->exposed, scratch) &&
	          np_intervals_intersect(waits, scratch, &own);
	group->has_wait = true;
	group->wait = np_intervals_length(&own);
	group->transmit = group->exposed - group->wait;
	np_intervals_release(&own);
	return ok;
}

static bool add_waits(struct overlap *self)
{
	size_t n = 0;
	np_ns least = 0;
	struct np_intervals waits = {0}, scratch = {0};
	struct wait_task *tasks = collect_tasks(self, &n);
	bool ok = !self->analysis->oom;
	for (size_t i = 0, end; ok && i < n; i = end) {
		for (end = i; end < n && tasks[end].group == tasks[i].group &&
		              tasks[end].plane == tasks[i].plane;)
			end++;
		ok = weigh_plane(self, &tasks[i], end - i, &least, &waits, &scratch);
	}
	np_intervals_release(&waits);
	np_intervals_release(&scratch);
	np_free(tasks);
	return ok;
}

/* ── communication.json ── */

static double plus(double sum, double value)
{
	return isnan(value) ? sum : sum + value;
}

static bool wants_step(const struct np_analysis *self, int64_t id)
{
	if (!self->options->has_step)
		return true;
	return id == self->options->step;
}

static void add_file_times(struct overlap *self)
{
	const struct np_comm_time *t = &self->analysis->profile->comm_time;
	for (size_t i = 0; i < t->n && !self->analysis->oom; i++) {
		if (!wants_step(self->analysis, t->step[i]) ||
		    np_str_istarts(np_text(self->analysis, t->op[i]), NP_STR("Total Op Info")))
			continue;
		struct group *group = &self->groups[group_of(self, t->group[i])];
		group->file_rows++;
		group->elapse_ms = plus(group->elapse_ms, t->elapse_ms[i]);
		group->transit_ms = plus(group->transit_ms, t->transit_ms[i]);
		group->wait_ms = plus(group->wait_ms, t->wait_ms[i]);
		group->sync_ms = plus(group->sync_ms, t->sync_ms[i]);
		group->idle_ms = plus(group->idle_ms, t->idle_ms[i]);
	}
}

/* ── table ── */

/* The label of the metadata, for example "default_group (5862276093215481612)". */
static const char *label(const struct np_analysis *self, uint32_t id)
{
	np_str text = np_text(self, id);
	uint64_t hash = 0;
	bool number = np_str_to_u64(text, &hash);
	for (size_t i = 0; id != NP_ID_NONE && i < self->capture->n_groups; i++) {
		const struct np_group *group = &self->capture->groups[i];
		if ((number && group->hash == hash) || np_str_is(text, group->comm_name))
			return group->name;
	}
	return NULL;
}

static void name_cell(const struct np_analysis *self, struct np_table *table,
                      const struct group *group)
{
	const char *name = label(self, group->id);
	if (!name)
		name = label(self, group->alias);
	np_str text = np_text(self, group->id), alias = np_text(self, group->alias);
	uint64_t number;
	if (group->id == NP_ID_NONE)
		np_cell_na(table);
	else if (name && *name)
		np_cell_printf(table, "%s (%.*s)", name, NP_FMT(text));
	else if (group->alias != group->id && alias.len && !np_str_to_u64(alias, &number))
		np_cell_printf(table, "%.*s (%.*s)", NP_FMT(alias), NP_FMT(text));
	else
		np_cell_text(table, text);
}

static const char *kind(const struct np_analysis *self, np_ns comm, np_ns exposed)
{
	if (comm == 0)
		return NULL;
	double hidden = (double)(comm - exposed) / (double)comm;
	if (hidden >= self->rules->overlap_hidden)
		return "hidden";
	return hidden < self->rules->overlap_exposed ? "exposed" : "proportional";
}

static void ms_cell(struct np_table *table, const struct group *group, double ms)
{
	np_cell_real(table, group->file_rows ? ms * 1000 : NAN);
}

static void row(const struct overlap *self, struct np_table *table, const struct group *group,
                bool all)
{
	const struct np_analysis *a = self->analysis;
	if (all)
		np_cell_cstr(table, "(all)");
	else
		name_cell(a, table, group);
	np_cell_int(table, (int64_t)group->ops);
	np_cell_int(table, group->comm);
	np_cell_int(table, group->comm - group->exposed);
	np_cell_int(table, group->exposed);
	np_cell_real(table, np_share(a, group->exposed));
	np_cell_cstr(table, kind(a, group->comm, group->exposed));
	if (group->has_wait) {
		np_cell_int(table, group->wait);
		np_cell_int(table, group->transmit);
	} else {
		np_cell_na(table);
		np_cell_na(table);
	}
	ms_cell(table, group, group->elapse_ms);
	ms_cell(table, group, group->transit_ms);
	ms_cell(table, group, group->wait_ms);
	ms_cell(table, group, group->sync_ms);
	ms_cell(table, group, group->idle_ms);
}

static struct group whole(const struct overlap *self)
{
	struct group all = {.id = NP_ID_NONE};
	for (size_t i = 0; i < self->analysis->spans.n; i++) {
		all.comm += self->analysis->spans.v[i].comm;
		all.exposed += self->analysis->spans.v[i].comm_not_overlapped;
	}
	for (size_t i = 0; i < self->n_groups; i++) {
		const struct group *group = &self->groups[i];
		all.ops += group->ops;
		all.file_rows += group->file_rows;
		all.elapse_ms += group->elapse_ms;
		all.transit_ms += group->transit_ms;
		all.wait_ms += group->wait_ms;
		all.sync_ms += group->sync_ms;
		all.idle_ms += group->idle_ms;
	}
	return all;
}

static int by_exposed(const void *a, const void *b)
{
	const struct group *x = a, *y = b;
	if (x->exposed != y->exposed)
		return x->exposed > y->exposed ? -1 : 1;
	if (x->comm != y->comm)
		return x->comm > y->comm ? -1 : 1;
	return (x->id > y->id) - (x->id < y->id);
}

/* ── finding ── */

/*
 * How much of it is transfer, 0…1, and says so; NaN when not collected. The file
 * goes first: where tasks are few (FFTS+), their waits are not all recorded.
 */
static double transfer_share(const struct overlap *self, const struct group *all,
                             struct np_finding *finding)
{
	np_ns wait = 0, known = 0;
	for (size_t i = 0; i < self->n_groups; i++) {
		wait += self->groups[i].wait;
		known += self->groups[i].has_wait ? self->groups[i].exposed : 0;
	}
	if (all->file_rows && all->elapse_ms > 0) {
		double whole = all->elapse_ms / 100;
		np_finding_detail(
			finding,
			"By the exporter's own sums %.1f %% of its time is transfer, %.1f %% "
			"waiting for other ranks, %.1f %% neither.",
			all->transit_ms / whole, all->wait_ms / whole, all->idle_ms / whole);
		return all->transit_ms / all->elapse_ms;
	}
	if (known == 0)
		return NAN;
	np_finding_detail(finding,
	                  "%.1f %% of the exposed time is waiting for other ranks, the "
	                  "rest is transmitting.",
	                  (double)wait * 100 / (double)known);
	return (double)(known - wait) / (double)known;
}

static void tell(const struct overlap *self, const struct group *all)
{
	struct np_analysis *a = self->analysis;
	double share = np_share(a, all->exposed);
	if (share <= a->rules->exposed_comm_warn)
		return;
	struct np_finding *finding = np_report_finding(
		a->report, "COMM_EXPOSED", NP_WARNING,
		"%.1f %% of the step is communication that nothing hides", share * 100);
	np_finding_evidence(finding, np_kernel_source(a), np_time_columns(a), np_comm_rows(a),
	                    "%zu operations: %.3f us, of which %.3f us while nothing is computed",
	                    all->ops, (double)all->comm / 1000, (double)all->exposed / 1000);
	np_finding_impact(finding, (double)all->exposed / 1000, share);
	if (transfer_share(self, all, finding) < 0.5)
		np_finding_advice(
			finding, "Hardly the network: the ranks do not arrive together. Look for "
				 "the one that is late (uneven data, pipeline bubble, slow host or "
				 "card) first.");
	else
		np_finding_advice(finding,
		                  "Start collectives earlier and beside computing (overlap of "
		                  "gradient reduction, prefetch of parameters, larger buckets), or "
		                  "communicate less (parallel layout, lower precision).");
	np_finding_command(finding, "npuprof analyze %s --format csv --table overlap",
	                   np_shell_quote(a->report, a->capture->path));
}

static bool measure(struct overlap *self)
{
	struct np_intervals scratch = {0};
	bool ok = make_common(self) && add_ops(self);
	for (size_t i = 0; ok && i < self->n_groups; i++)
		ok = measure_group(self, &self->groups[i], &scratch);
	np_intervals_release(&scratch);
	return ok && add_waits(self);
}

static void show(struct overlap *self)
{
	struct np_analysis *a = self->analysis;
	add_file_times(self);
	struct group all = whole(self);
	if (all.ops == 0 && all.file_rows == 0)
		return;
	qsort(self->groups, self->n_groups, sizeof *self->groups, by_exposed);
	struct np_table *table =
		NP_REPORT_TABLE(a->report, "overlap", "Communication: hidden or exposed", columns);
	row(self, table, &all, true);
	for (size_t i = 0; i < self->n_groups; i++)
		row(self, table, &self->groups[i], false);
	if (a->profile->comm_tasks.n == 0 && all.file_rows == 0)
		np_report_note(a->report,
		               "waiting and transmitting of collectives were not collected "
		               "(profiler_level Level1, with trace_view.json or a database)");
	tell(self, &all);
}

void np_analyze_overlap(struct np_analysis *self)
{
	struct overlap *overlap = np_calloc(1, sizeof *overlap);
	if (!overlap) {
		self->oom = true;
		return;
	}
	overlap->analysis = self;
	np_map_init(&overlap->by_id);
	np_map_init(&overlap->by_op);
	np_map_init(&overlap->aliases);
	if (measure(overlap))
		show(overlap);
	else
		self->oom = true;
	for (size_t i = 0; i < overlap->n_groups; i++)
		np_intervals_release(&overlap->groups[i].busy);
	np_intervals_release(&overlap->spans);
	np_intervals_release(&overlap->exposed);
	np_map_release(&overlap->by_id);
	np_map_release(&overlap->by_op);
	np_map_release(&overlap->aliases);
	np_free(overlap);
}
