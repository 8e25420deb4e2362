/*
 * Layer 3a: how long a kernel waits behind its launch, and kernels that are shorter
 * than the call that launches them: those can never keep the device busy.
 */
#include "analysis/analysis.h"
#include "analysis/select.h"

struct group {
	size_t n, unlinked, timed, shorter;
	np_ns min, max, p50, p95;
	size_t first; /* of its values */
};

static void count(const struct np_analysis *self, struct group groups[NP_N_CLASSES])
{
	const struct np_kernels *kernels = &self->profile->kernels;
	for (size_t i = 0; i < self->n_rows; i++) {
		uint32_t k = self->rows[i];
		struct group *to = &groups[self->class[k]];
		const struct np_launch *launch = &self->launches[k];
		if (launch->how == NP_LAUNCH_NONE) {
			to->unlinked++;
			continue;
		}
		to->n++;
		if (launch->how != NP_LAUNCH_CALL)
			continue; /* its length is not known */
		to->timed++;
		to->shorter += kernels->dur_ns[k] < launch->end - launch->start;
	}
}

static bool delays(const struct np_analysis *self, struct group groups[NP_N_CLASSES])
{
	size_t n = 0, filled[NP_N_CLASSES] = {0};
	for (unsigned c = 0; c < NP_N_CLASSES; c++) {
		groups[c].first = n;
		n += groups[c].n;
	}
	np_ns *values = np_realloc(NULL, n ? n : 1, sizeof *values);
	if (!values)
		return false;
	for (size_t i = 0; i < self->n_rows; i++) {
		uint32_t k = self->rows[i];
		struct group *to = &groups[self->class[k]];
		if (self->launches[k].how == NP_LAUNCH_NONE)
			continue;
		np_ns delay = self->profile->kernels.start_ns[k] - self->launches[k].end;
		size_t at = filled[self->class[k]]++;
		values[to->first + at] = delay;
		to->min = at == 0 || delay < to->min ? delay : to->min;
		to->max = at == 0 || delay > to->max ? delay : to->max;
	}
	for (unsigned c = 0; c < NP_N_CLASSES; c++) {
		if (groups[c].n == 0)
			continue;
		groups[c].p50 = np_percentile_ns(values + groups[c].first, groups[c].n, 50);
		groups[c].p95 = np_percentile_ns(values + groups[c].first, groups[c].n, 95);
	}
	np_free(values);
	return true;
}

static const struct np_column columns[] = {
	{"class", "", NP_COL_TEXT, "class of the kernels"},
	{"n", "", NP_COL_INT, "kernels with a known launch"},
	{"min_ns", "us", NP_COL_DUR_NS,
         "start of the kernel - end of its launching call; < 0: it began before the call returned"},
	{"p50_ns", "us", NP_COL_DUR_NS, "median"},
	{"p95_ns", "us", NP_COL_DUR_NS, "95th percentile, nearest rank"},
	{"max_ns", "us", NP_COL_DUR_NS, "largest; long delays behind a full queue are healthy"},
	{"shorter", "", NP_COL_INT, "kernels shorter than their launching call"},
	{"shorter_share", "", NP_COL_PERCENT, "of those whose call's length is known"},
	{"unlinked", "", NP_COL_INT, "kernels whose launch is not in the capture"},
};

static void put_group(struct np_table *table, enum np_class class, const struct group *group)
{
	const np_ns times[] = {group->min, group->p50, group->p95, group->max};
	np_cell_word(table, np_class_name(class));
	np_cell_int(table, (int64_t)group->n);
	for (int i = 0; i < 4; i++) {
		if (group->n)
			np_cell_int(table, times[i]);
		else
			np_cell_na(table);
	}
	if (group->timed) {
		np_cell_int(table, (int64_t)group->shorter);
		np_cell_real(table, (double)group->shorter / (double)group->timed);
	} else {
		np_cell_na(table);
		np_cell_na(table);
	}
	np_cell_int(table, (int64_t)group->unlinked);
}

void np_analyze_launch(struct np_analysis *self)
{
	struct group groups[NP_N_CLASSES] = {{0}};
	size_t unlinked = 0;
	bool ok = np_links_build(self);
	if (ok)
		count(self, groups);
	if (!ok || !delays(self, groups)) {
		self->oom = true;
		return;
	}
	struct np_table *table = NP_REPORT_TABLE(self->report, "launch", "Launch delay", columns);
	for (unsigned c = 0; c < NP_N_CLASSES; c++) {
		unlinked += groups[c].unlinked;
		if (groups[c].n + groups[c].unlinked > 0)
			put_group(table, (enum np_class)c, &groups[c]);
	}
	if (unlinked > 0)
		np_report_note(self->report, "%zu of %zu kernels have no launch in the capture",
		               unlinked, self->n_rows);
}
