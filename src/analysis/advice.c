/*
 * Layer 5: what to do, in order. Every finding of the layers above, the most
 * urgent first, then the one with most to gain. A gain is an upper bound: what
 * the step would lose if the cause vanished; gains overlap and must not be added.
 * The findings themselves are put into the same order.
 */
#include <stdlib.h>

#include "analysis/analysis.h"

static const struct np_column columns[] = {
	{"priority", "", NP_COL_TEXT, "P0 first of all, P1 worth the work, P2 good to know"},
	{"code", "", NP_COL_TEXT, "finding, described in docs/findings.md"},
	{"what", "", NP_COL_TEXT, "what to change"},
	{"gain_us", "us", NP_COL_REAL, "upper bound; gains overlap, do not add them"},
	{"share", "", NP_COL_PERCENT, "gain / spans"},
	{"command", "", NP_COL_TEXT, "what to run next"},
};

struct key {
	struct np_finding *finding;
	size_t at;
};

static int by_urgency(const void *a, const void *b)
{
	const struct key *x = a, *y = b;
	if (x->finding->severity != y->finding->severity)
		return x->finding->severity > y->finding->severity ? -1 : 1;
	double gain = x->finding->has_impact ? x->finding->impact_us : -1;
	double other = y->finding->has_impact ? y->finding->impact_us : -1;
	if (gain > other || gain < other)
		return gain > other ? -1 : 1;
	return x->at < y->at ? -1 : 1;
}

void np_analyze_advice(struct np_analysis *self)
{
	static const char *const priorities[] = {
		[NP_INFO] = "P2", [NP_WARNING] = "P1", [NP_ERROR] = "P0"};
	size_t n = self->report->findings.n;
	struct key *keys = n ? np_realloc(NULL, n, sizeof *keys) : NULL;
	if (!keys) {
		self->oom |= n > 0;
		return;
	}
	for (size_t i = 0; i < n; i++)
		keys[i] = (struct key){self->report->findings.v[i], i};
	qsort(keys, n, sizeof *keys, by_urgency);
	struct np_table *table = NP_REPORT_TABLE(self->report, "advice", "What to do", columns);
	for (size_t i = 0; i < n; i++) {
		struct np_finding *finding = keys[i].finding;
		self->report->findings.v[i] = finding;
		np_cell_cstr(table, priorities[finding->severity]);
		np_cell_cstr(table, finding->code);
		np_cell_cstr(table, finding->advice ? finding->advice : finding->title);
		if (finding->has_impact) {
			np_cell_real(table, finding->impact_us);
			np_cell_real(table, finding->impact_share);
		} else {
			np_cell_na(table);
			np_cell_na(table);
		}
		np_cell_cstr(table, finding->command);
	}
	np_free(keys);
}
