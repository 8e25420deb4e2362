/* The longest operations of each group, on all its ranks. */
#include <math.h>
#include <stdlib.h>

#include "cluster/communication.h"

enum { DEFAULT_TOP = 10 };

static const struct np_column columns[] = {
	NP_COMM_UNIT_COLUMNS,
	{"operation", "", NP_COL_TEXT, "operation; --top_num sets how many of a group"},
	{"rank", "", NP_COL_INT, "rank"},
	{"start_ns", "", NP_COL_TIME_NS, "start by the rank's own clock, to 250 ns"},
	{"elapsed_ms", "ms", NP_COL_REAL, "from first to last task"},
	{"transit_ms", "ms", NP_COL_REAL, "time on the wire"},
	{"synchronization_ms", "ms", NP_COL_REAL, "wait before the first transfer"},
	{"wait_ms", "ms", NP_COL_REAL, "wait for others, synchronization included"},
	{"idle_ms", "ms", NP_COL_REAL, "elapsed - transit - wait"},
};

struct op_row {
	int64_t step;
	np_id group, op;
	uint32_t rank, row;
	double elapse;
};

typedef NP_VEC(struct op_row) op_rows;

static int by_op(const void *a, const void *b)
{
	const struct op_row *x = a, *y = b;
	if (x->step != y->step)
		return x->step < y->step ? -1 : 1;
	if (x->group != y->group)
		return x->group < y->group ? -1 : 1;
	if (x->op != y->op)
		return x->op < y->op ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return (x->row > y->row) - (x->row < y->row);
}

static bool collect(const struct np_comm_units *self, op_rows *out)
{
	for (size_t r = 0; r < self->cluster->ranks.n; r++) {
		const struct np_digest_insight_time *in =
			NP_DIGEST_ROWS(&self->cluster->ranks.v[r], np_digest_insight_time);
		for (size_t i = 0; i < in->n; i++)
			if (np_insight_wants(&self->steps, in->step[i]) &&
			    !np_vec_push(out, (struct op_row){in->step[i], in->group[i], in->op[i],
			                                      (uint32_t)r, (uint32_t)i,
			                                      in->elapse_ms[i]}))
				return false;
	}
	if (out->n > 0)
		qsort(out->v, out->n, sizeof *out->v, by_op);
	return true;
}

/* Rows [first, first + n) of one operation of a group. */
struct range {
	size_t first, n;
	double longest;
};

typedef NP_VEC(struct range) ranges;

static int by_longest(const void *a, const void *b)
{
	const struct range *x = a, *y = b;
	if (x->longest != y->longest)
		return x->longest < y->longest ? 1 : -1;
	return (x->first > y->first) - (x->first < y->first);
}

static void start(struct np_table *table, double us)
{
	if (us >= 0 && us < (double)NP_TIME_MAX / 1e3)
		np_cell_int(table, (int64_t)(us * 1e3));
	else
		np_cell_na(table);
}

static void rows_of(struct np_table *table, const struct np_comm_units *self, const op_rows *rows,
                    const struct range *range, const struct np_comm_unit *unit)
{
	for (size_t i = range->first; i < range->first + range->n; i++) {
		const struct op_row *row = &rows->v[i];
		const struct np_digest_insight_time *in =
			NP_DIGEST_ROWS(&self->cluster->ranks.v[row->rank], np_digest_insight_time);
		np_cell_comm_unit(table, self, unit);
		np_cell_text(table, np_cluster_text(self->cluster, row->op));
		np_cell_int(table, self->cluster->ranks.v[row->rank].rank);
		start(table, in->start_us[row->row]);
		np_cell_real(table, in->elapse_ms[row->row]);
		np_cell_real(table, in->transit_ms[row->row]);
		np_cell_real(table, in->sync_ms[row->row]);
		np_cell_real(table, in->wait_ms[row->row]);
		np_cell_real(table, in->idle_ms[row->row]);
	}
}

/* The operations of the group that begins at row i; returns where the next one does. */
static size_t group_of(const op_rows *rows, size_t i, ranges *out, bool *ok)
{
	size_t start = i;
	out->n = 0;
	for (; i < rows->n; i++) {
		const struct op_row *row = &rows->v[i], *first = &rows->v[start];
		if (row->step != first->step || row->group != first->group)
			break;
		bool next = i == start || row->op != rows->v[i - 1].op;
		if (next && !np_vec_push(out, (struct range){i, 0, -INFINITY})) {
			*ok = false;
			break;
		}
		struct range *range = &out->v[out->n - 1];
		range->n++;
		range->longest = row->elapse > range->longest ? row->elapse : range->longest;
	}
	return i;
}

bool np_comm_operations(const struct np_comm_units *self)
{
	struct np_table *table =
		NP_REPORT_TABLE(self->cluster->report, "CommunicationOps",
	                        "Longest operations of each group, by rank", columns);
	size_t top = self->cluster->options->top ? self->cluster->options->top : DEFAULT_TOP;
	op_rows rows = {0};
	ranges ops = {0};
	bool ok = collect(self, &rows);
	for (size_t i = 0, next; ok && i < rows.n; i = next) {
		const struct np_comm_unit *unit =
			np_comm_units_find(self, rows.v[i].step, rows.v[i].group);
		next = group_of(&rows, i, &ops, &ok);
		if (!ok || !unit)
			continue;
		qsort(ops.v, ops.n, sizeof *ops.v, by_longest);
		for (size_t o = 0; o < ops.n && o < top; o++)
			rows_of(table, self, &rows, &ops.v[o], unit);
	}
	np_vec_release(&rows);
	np_vec_release(&ops);
	return ok;
}
