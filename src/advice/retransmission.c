/*
 * Communication Retransmission Analysis (cluster_and_advisor.md §3.6): an operator that takes
 * all its ranks 4 s or more, over RDMA, has most likely lost a packet: the network card sends
 * it again after 4 s.
 */
#include <math.h>
#include <stdlib.h>

#include "advice/cluster_rows.h"
#include "cluster/parts.h"
#include "report/lang.h"

static const struct np_column columns[] = {
	{"Communication group", "", NP_COL_TEXT, "hash of the group"},
	{"Op name", "", NP_COL_TEXT, "operator"},
	{"Step id", "", NP_COL_INT, "step"},
	{"Rank id", "", NP_COL_INT, "rank whose transfer took longer than the limit"},
	{"RDMA transmit size(MB)", "", NP_COL_REAL, "transit size over RDMA"},
	{"RDMA transmit time(ms)", "", NP_COL_REAL, "transit time over RDMA"},
	{"RDMA bandwidth", "", NP_COL_REAL, "size by time, GB/s"},
};

/* One operator as one rank saw it. */
struct seen {
	int64_t step;
	np_id group, op;
	size_t rank;
	double elapse_ms, mb, ms;
};

struct all {
	struct seen *v;
	size_t n, cap;
};

static int same_op(const struct seen *x, const struct seen *y)
{
	if (x->step != y->step)
		return x->step < y->step ? -1 : 1;
	if (x->group != y->group)
		return x->group < y->group ? -1 : 1;
	return (x->op > y->op) - (x->op < y->op);
}

static int by_op(const void *a, const void *b)
{
	const struct seen *x = a, *y = b;
	int order = same_op(x, y);
	return order ? order : (x->rank > y->rank) - (x->rank < y->rank);
}

/* Only what takes long on a rank is kept: nearly nothing, in a cluster of any size. */
static bool collect(struct np_advice *self, size_t rank, double limit_ms, struct all *out)
{
	const struct np_cluster_rank *of = &self->cluster->ranks.v[rank];
	const struct np_digest_comm_times *times = NP_DIGEST_ROWS(of, np_digest_comm_times);
	const struct np_digest_comm_links *links = NP_DIGEST_ROWS(of, np_digest_comm_links);
	size_t from = 0;
	for (size_t i = 0; i < times->n; i++) {
		size_t begin = from;
		from = times->links_end[i];
		if (!(times->elapse_ms[i] >= limit_ms) ||
		    (self->options->has_step && times->step[i] != self->options->step))
			continue;
		struct seen row = {.step = times->step[i],
		                   .group = times->group[i],
		                   .op = times->op[i],
		                   .rank = rank,
		                   .elapse_ms = times->elapse_ms[i]};
		for (size_t k = begin; k < from && k < links->n; k++) {
			np_str transport = np_cluster_text(self->cluster, links->transport[k]);
			if (np_str_is(transport, "RDMA") && links->transit_ms[k] > 0) {
				row.mb += links->transit_mb[k];
				row.ms += links->transit_ms[k];
			}
		}
		if (!np_vec_push(out, row))
			return false;
	}
	return true;
}

/* One operator that took long: all.v[from … end), and how many ranks saw it at all. */
struct op {
	size_t from, end;
	size_t slow_ranks, ranks;
	size_t last; /* rank that was counted last */
};

struct ops {
	struct op *v; /* by same_op() */
	size_t n, cap;
};

static bool group(const struct all *all, struct ops *out)
{
	for (size_t i = 0; i < all->n; i++) {
		bool fresh = i == 0 || same_op(&all->v[i - 1], &all->v[i]) != 0;
		struct op op = {.from = i, .last = SIZE_MAX};
		if (fresh && !np_vec_push(out, op))
			return false;
		struct op *last = &out->v[out->n - 1];
		last->end = i + 1;
		last->slow_ranks += fresh || all->v[i - 1].rank != all->v[i].rank;
	}
	return true;
}

static struct op *find(const struct all *all, const struct ops *ops, const struct seen *key)
{
	size_t low = 0, high = ops->n;
	while (low < high) {
		size_t mid = low + (high - low) / 2;
		int order = same_op(&all->v[ops->v[mid].from], key);
		if (order == 0)
			return &ops->v[mid];
		if (order < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return NULL;
}

static void count_ranks(const struct np_advice *self, const struct all *all, struct ops *ops)
{
	for (size_t r = 0; ops->n > 0 && r < self->cluster->ranks.n; r++) {
		const struct np_digest_comm_times *times =
			NP_DIGEST_ROWS(&self->cluster->ranks.v[r], np_digest_comm_times);
		for (size_t i = 0; i < times->n; i++) {
			struct seen key = {.step = times->step[i],
			                   .group = times->group[i],
			                   .op = times->op[i]};
			struct op *op = find(all, ops, &key);
			if (op && op->last != r) {
				op->last = r;
				op->ranks++;
			}
		}
	}
}

static void add_row(struct np_advice *self, struct np_table *table, const struct seen *row)
{
	np_cell_text(table, np_cluster_text(self->cluster, row->group));
	np_cell_text(table, np_cluster_text(self->cluster, row->op));
	if (row->step == NP_NO_I64)
		np_cell_na(table);
	else
		np_cell_int(table, row->step);
	np_cell_int(table, self->cluster->ranks.v[row->rank].rank);
	np_cell_real(table, row->mb);
	np_cell_real(table, row->ms);
	np_cell_real(table, round(row->mb / row->ms * 1e4) / 1e4);
}

struct found {
	size_t ops;
	double ms; /* that all ranks of these operators lost */
	const struct seen *worst;
	struct np_table *table;
};

static void judge(struct np_advice *self, const struct np_checker *checker, const struct all *all,
                  const struct op *op, double limit_ms, struct found *found)
{
	const struct seen *worst = NULL;
	double least = INFINITY;
	for (size_t i = op->from; i < op->end; i++) {
		worst = !worst || all->v[i].ms > worst->ms ? &all->v[i] : worst;
		least = fmin(least, all->v[i].elapse_ms);
	}
	/* a rank that was done sooner has only been waited for */
	if (!worst || !(worst->ms > limit_ms) || op->ranks > op->slow_ranks)
		return;
	if (!found->table)
		found->table = NP_ADVICE_TABLE(self, checker, columns);
	found->ops++;
	found->ms += least;
	if (!found->worst || worst->ms > found->worst->ms)
		found->worst = worst;
	for (size_t i = op->from; i < op->end; i++)
		if (all->v[i].ms > limit_ms)
			add_row(self, found->table, &all->v[i]);
}

static void tell(struct np_advice *self, const struct np_checker *checker,
                 const struct found *found)
{
	const struct np_cluster_rank *rank = &self->cluster->ranks.v[found->worst->rank];
	np_str op = np_cluster_text(self->cluster, found->worst->op);
	char name[NP_STEP_NAME_SIZE];
	struct np_problem_text text = {
		.code = "ADVICE_RETRANSMISSION",
		.count = found->ops,
		.total_us = found->ms * 1000,
		.gain_us = found->ms * 1000,
		.advice = NP_N(
			"Packets are lost and sent again: look at the cards, cables, optical "
			"modules and switches between the ranks of the table (hccn_tool -stat), "
			"at flow control (PFC), and at HCCL_RDMA_TIMEOUT.")};
	struct np_finding *finding = np_advice_problem(
		self, checker, &text,
		"%zu operators took all their ranks %.1f s or more: packets were sent again",
		found->ops, np_rule_value(self, "retransmission_ms") / 1000);
	np_finding_evidence(finding, rank->capture->path, NULL,
	                    np_step_name(found->worst->step, name),
	                    "rank %lld, %.*s: RDMA %.3f MB in %.1f ms", (long long)rank->rank,
	                    NP_FMT(op), found->worst->mb, found->worst->ms);
}

static void run(struct np_advice *self, const struct np_checker *checker)
{
	double limit_ms = np_rule_value(self, "retransmission_ms");
	struct all all = {0};
	struct ops ops = {0};
	struct found found = {0};
	for (size_t r = 0; !self->oom && r < self->cluster->ranks.n; r++)
		self->oom |= !collect(self, r, limit_ms, &all);
	if (!self->oom && all.n > 1)
		qsort(all.v, all.n, sizeof *all.v, by_op);
	self->oom |= !group(&all, &ops);
	count_ranks(self, &all, &ops);
	for (size_t i = 0; !self->oom && all.n > 0 && i < ops.n; i++)
		judge(self, checker, &all, &ops.v[i], limit_ms, &found);
	if (found.ops > 0)
		tell(self, checker, &found);
	np_vec_release(&all);
	np_vec_release(&ops);
}

const struct np_checker np_checker_retransmission = {
	.name = "retransmission",
	.dimension = NP_DIM_CLUSTER,
	.category = NP_N("Communication Retransmission Analysis"),
	.category_zh = "通信重传分析",
	.run = run,
};
