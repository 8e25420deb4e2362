/*
 * Slow ranks by the viewer's rule: who communicates least has waited least, so it came
 * last. The others have an elapsed time that holds the wait for it.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/communication.h"

enum { SLOW_TOP = 3, NAMED_OPS = 3 };

static const double slow_share = 0.10;

static const struct np_column columns[] = {
	NP_COMM_UNIT_COLUMNS,
	{"rank", "", NP_COL_INT, "rank that the others have waited for"},
	{"elapsed_ms", "ms", NP_COL_REAL, "its communication"},
	{"longest_ms", "ms", NP_COL_REAL, "communication of the rank that has waited most"},
	{"longest_rank", "", NP_COL_INT, "that rank"},
	{"difference_ms", "ms", NP_COL_REAL, "longest - elapsed"},
	{"share", "", NP_COL_PERCENT, "difference / longest; slow from a tenth on"},
	{"operations", "", NP_COL_TEXT, "operations with the greatest differences, in ms"},
};

/* ── operations that differ most ── */

struct op {
	np_id op;
	double ms;
};

typedef NP_VEC(struct op) op_list;

static int by_name(const void *a, const void *b)
{
	const struct op *x = a, *y = b;
	return (x->op > y->op) - (x->op < y->op);
}

static int by_ms(const void *a, const void *b)
{
	const struct op *x = a, *y = b;
	if (x->ms != y->ms)
		return x->ms < y->ms ? 1 : -1;
	return by_name(a, b);
}

static bool ops_of(const struct np_comm_units *self, const struct np_comm_unit *unit, op_list *out)
{
	const struct np_digest_insight_time *in =
		NP_DIGEST_ROWS(&self->cluster->ranks.v[unit->rank], np_digest_insight_time);
	for (size_t i = 0; i < in->n; i++)
		if (in->step[i] == unit->step && in->group[i] == unit->group &&
		    !np_vec_push(out, (struct op){in->op[i], in->elapse_ms[i]}))
			return false;
	if (out->n > 0)
		qsort(out->v, out->n, sizeof *out->v, by_name);
	return true;
}

/* Leaves in `longer` the differences of the operations that both have. */
static void join(op_list *longer, const op_list *own)
{
	size_t kept = 0, o = 0;
	for (size_t l = 0; l < longer->n; l++) {
		while (o < own->n && own->v[o].op < longer->v[l].op)
			o++;
		if (o < own->n && own->v[o].op == longer->v[l].op)
			longer->v[kept++] =
				(struct op){own->v[o].op, longer->v[l].ms - own->v[o].ms};
	}
	longer->n = kept;
	if (kept > 0)
		qsort(longer->v, kept, sizeof *longer->v, by_ms);
}

static bool cell_ops(struct np_table *table, const struct np_comm_units *self,
                     const struct np_comm_unit *unit, const struct np_comm_unit *longest)
{
	op_list own = {0}, longer = {0};
	struct np_buf text = {0};
	bool ok = ops_of(self, unit, &own) && ops_of(self, longest, &longer);
	if (ok)
		join(&longer, &own);
	for (size_t i = 0; ok && i < longer.n && i < NAMED_OPS && longer.v[i].ms > 0; i++)
		np_buf_printf(&text, "%s%.*s %.4f", i > 0 ? ", " : "",
		              NP_FMT(np_cluster_text(self->cluster, longer.v[i].op)),
		              longer.v[i].ms);
	np_cell_text(table, np_buf_str(&text));
	ok = ok && !text.failed;
	np_buf_release(&text);
	np_vec_release(&own);
	np_vec_release(&longer);
	return ok;
}

/* ── one group ── */

static int by_elapse(const void *a, const void *b)
{
	const struct np_comm_unit *x = *(const struct np_comm_unit *const *)a,
				  *y = *(const struct np_comm_unit *const *)b;
	if (x->elapse != y->elapse)
		return x->elapse < y->elapse ? -1 : 1;
	return (x->rank > y->rank) - (x->rank < y->rank);
}

/* Stages wait for one another, that is the pipeline and no rank's fault. */
static bool is_judged(const struct np_comm_units *self, size_t i, size_t end)
{
	const struct np_group *group = self->units.v[i].recorded;
	bool judged = end - i > 1 && !(group && strcmp(group->name, "pp") == 0);
	for (; i < end; i++)
		judged = judged && !self->units.v[i].p2p && !isnan(self->units.v[i].elapse);
	return judged;
}

static bool row(struct np_table *table, const struct np_comm_units *self,
                const struct np_comm_unit *unit, const struct np_comm_unit *longest)
{
	double difference = longest->elapse - unit->elapse;
	np_cell_comm_unit(table, self, unit);
	np_cell_int(table, self->cluster->ranks.v[unit->rank].rank);
	np_cell_real(table, unit->elapse);
	np_cell_real(table, longest->elapse);
	np_cell_int(table, self->cluster->ranks.v[longest->rank].rank);
	np_cell_real(table, difference);
	np_cell_real(table, difference / longest->elapse);
	return cell_ops(table, self, unit, longest);
}

/* `sorted` has room for all units. */
static bool judge(struct np_table *table, const struct np_comm_units *self, size_t i, size_t end,
                  const struct np_comm_unit **sorted)
{
	size_t n = end - i;
	for (size_t u = 0; u < n; u++)
		sorted[u] = &self->units.v[i + u];
	qsort(sorted, n, sizeof *sorted, by_elapse);
	const struct np_comm_unit *longest = sorted[n - 1];
	for (size_t u = 0; u < n && u < SLOW_TOP; u++) {
		double difference = longest->elapse - sorted[u]->elapse;
		if (longest->elapse <= 0 || difference < slow_share * longest->elapse)
			break;
		if (!row(table, self, sorted[u], longest))
			return false;
	}
	return true;
}

/* ── the finding: the greatest difference of all ── */

static void tell(const struct np_comm_units *self, const struct np_table *table)
{
	enum { KEY = 1, PG, RANK, ELAPSED, LONGEST, LONGEST_RANK, DIFFERENCE, SHARE };
	size_t n = np_table_rows(table), worst = 0;
	for (size_t r = 1; r < n; r++)
		if (np_table_cell(table, r, DIFFERENCE)->r >
		    np_table_cell(table, worst, DIFFERENCE)->r)
			worst = r;
	if (n == 0)
		return;
	const struct np_cell *group = np_table_cell(table, worst, PG);
	if (group->na)
		group = np_table_cell(table, worst, KEY);
	struct np_finding *finding = np_report_finding(
		self->cluster->report, "COMM_SLOW_RANK", NP_INFO,
		"rank %lld arrives last in group %.*s: rank %lld waits %.3f ms longer",
		(long long)np_table_cell(table, worst, RANK)->i,
		NP_FMT(group->na ? NP_STR("-") : group->s),
		(long long)np_table_cell(table, worst, LONGEST_RANK)->i,
		np_table_cell(table, worst, DIFFERENCE)->r);
	np_finding_evidence(finding, NULL, "CommunicationSlowRanks", NULL,
	                    "%zu ranks in steps and groups communicate at least 10 %% less "
	                    "than the longest of their group",
	                    n);
	np_finding_advice(finding, "Look at what this rank does before: its computing and its "
	                           "free time against the others' (mode summary).");
}

bool np_comm_slow_ranks(const struct np_comm_units *self)
{
	struct np_table *table =
		NP_REPORT_TABLE(self->cluster->report, "CommunicationSlowRanks",
	                        "Ranks that the others of their group have waited for", columns);
	const struct np_comm_unit **sorted =
		np_realloc(NULL, self->units.n + 1, sizeof(const struct np_comm_unit *));
	bool ok = sorted != NULL;
	for (size_t i = 0, end; ok && i < self->units.n; i = end) {
		end = np_comm_units_end(self, i);
		if (is_judged(self, i, end))
			ok = judge(table, self, i, end, sorted);
	}
	np_free((void *)sorted);
	if (ok)
		tell(self, table);
	return ok;
}
