/*
 * The whole capture in a few hundred stretches of equal length, for a chart:
 *
 *   compute   ████    ██████          the first start to the last end of what is
 *   comm         ██████               analysed, cut into `buckets`; each tells how
 *             |    |    |    |        much of it was computing, exposed
 *                                     communication, or neither
 *
 * The three parts of a bucket sum to its length exactly, in ns; the shares that
 * the table shows are those parts by the length.
 */
#include "analysis/analysis.h"

static const struct np_column columns[] = {
	{"start_ns", "", NP_COL_TIME_NS, "start of the stretch"},
	{"computing", "", NP_COL_PERCENT, "share of it with a compute kernel running"},
	{"comm_not_overlapped", "", NP_COL_PERCENT, "share with communication only"},
	{"free", "", NP_COL_PERCENT, "share with neither"},
};

/* One of two walks over sorted intervals that never go back. */
struct walk {
	const struct np_intervals *set;
	size_t at;
};

/* How much of [start, end) the set covers; calls come with growing windows. */
static np_ns covered(struct walk *walk, np_ns start, np_ns end)
{
	np_ns sum = 0;
	const struct np_intervals *set = walk->set;
	while (walk->at < set->n && set->v[walk->at].end <= start)
		walk->at++;
	for (size_t i = walk->at; i < set->n && set->v[i].start < end; i++) {
		np_ns from = set->v[i].start > start ? set->v[i].start : start;
		np_ns to = set->v[i].end < end ? set->v[i].end : end;
		sum += to - from;
		if (set->v[i].end > end)
			break;
	}
	return sum;
}

static bool whole(const struct np_analysis *self, np_ns *start, np_ns *end)
{
	bool any = false;
	for (size_t i = 0; i < self->spans.n; i++) {
		const struct np_span *span = &self->spans.v[i];
		if (!any || span->start < *start)
			*start = span->start;
		if (!any || span->end > *end)
			*end = span->end;
		any = true;
	}
	return any && *end > *start;
}

static void add_buckets(const struct np_analysis *self, const struct np_intervals *busy,
                        np_ns start, np_ns end)
{
	struct np_table *table =
		NP_REPORT_TABLE(self->report, "thumbnail", "Timeline thumbnail", columns);
	struct walk compute = {&self->compute, 0}, any = {busy, 0};
	np_ns length = end - start, n = self->options->buckets;
	if (n > length)
		n = length;
	for (np_ns i = 0; i < n; i++) {
		/* length / n * i alone would lose the remainder, length * i could overflow */
		np_ns from = start + length / n * i + length % n * i / n;
		np_ns to = start + length / n * (i + 1) + length % n * (i + 1) / n;
		np_ns computing = covered(&compute, from, to);
		np_ns exposed = covered(&any, from, to) - computing;
		double size = (double)(to - from);
		np_cell_int(table, from);
		np_cell_real(table, (double)computing / size);
		np_cell_real(table, (double)exposed / size);
		np_cell_real(table, (double)(to - from - computing - exposed) / size);
	}
}

void np_analyze_thumbnail(struct np_analysis *self)
{
	struct np_intervals busy = {0};
	np_ns start = 0, end = 0;
	if (self->options->buckets == 0 || !whole(self, &start, &end))
		return;
	if (np_intervals_union(&self->compute, &self->comm, &busy))
		add_buckets(self, &busy, start, end);
	else
		self->oom = true;
	np_intervals_release(&busy);
}
