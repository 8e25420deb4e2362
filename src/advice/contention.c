/*
 * Bandwidth Contention Analysis (cluster_and_advisor.md §3.6): collectives over SDMA that run
 * beside a matmul, and slower than they could: both want the memory.
 */
#include <stdlib.h>

#include "advice/comm_scope.h"
#include "report/lang.h"

static const struct np_column columns[] = {
	{"op name", "", NP_COL_TEXT, "operator"},
	{"duration(ms)", "", NP_COL_REAL, "elapse"},
	{"bandwidth(GB/s)", "", NP_COL_REAL, "over SDMA"},
};

enum { SHOWN = 3 }; /* rows of evidence */

struct op {
	uint32_t row;       /* in comm_time */
	uint32_t bandwidth; /* in comm_bandwidth */
	double lost_ms;     /* against the limit, no more than beside matmul */
};

struct ops {
	struct op *v;
	size_t n, cap;
};

/* ── matmul ── */

struct matmul {
	struct np_intervals busy;
	np_ns *before; /* busy time before the start of each interval */
};

static bool collect_matmul(const struct np_advice *self, struct matmul *out)
{
	const struct np_kernels *kernels = &self->rank->profile->kernels;
	for (size_t i = 0; i < self->rank->n_rows; i++) {
		size_t row = self->rank->rows[i];
		if (self->rank->class[row] != NP_CLASS_COMM &&
		    np_str_icontains(np_text(self->rank, kernels->name[row]), NP_STR("matmul")) &&
		    !np_intervals_add(&out->busy, kernels->start_ns[row],
		                      kernels->start_ns[row] + kernels->dur_ns[row]))
			return false;
	}
	np_intervals_merge(&out->busy);
	out->before = np_calloc(out->busy.n + 1, sizeof *out->before);
	for (size_t i = 0; out->before && i < out->busy.n; i++)
		out->before[i + 1] = out->before[i] + out->busy.v[i].end - out->busy.v[i].start;
	return out->before != NULL;
}

/* Matmul before a time. */
static np_ns matmul_before(const struct matmul *self, np_ns ts)
{
	size_t low = 0, high = self->busy.n;
	while (low < high) {
		size_t mid = low + (high - low) / 2;
		if (self->busy.v[mid].start < ts)
			low = mid + 1;
		else
			high = mid;
	}
	if (low == 0)
		return 0;
	const struct np_interval *last = &self->busy.v[low - 1];
	return self->before[low - 1] + (ts < last->end ? ts : last->end) - last->start;
}

/* ── operators and their bandwidth ── */

struct index {
	struct np_map ops;  /* (operator, group) → number */
	struct np_map rows; /* (number, step) → row of comm_bandwidth */
	uint32_t n;
};

static uint64_t key_of(const struct index *self, uint32_t op, uint32_t group, int64_t step)
{
	uint32_t number = np_map_get(&self->ops, (uint64_t)op << 32 | group, NP_NO_U32);
	return (uint64_t)number << 32 | (uint32_t)(uint64_t)step;
}

static bool index_bandwidth(const struct np_advice *self, struct index *out)
{
	const struct np_comm_bandwidth *b = &self->rank->profile->comm_bandwidth;
	for (size_t i = 0; i < b->n; i++) {
		uint64_t op = (uint64_t)b->op[i] << 32 | b->group[i];
		if (!isnan(b->package_mb[i]) || !(b->transit_mb[i] > 0) ||
		    !np_str_is(np_text(self->rank, b->transport[i]), "SDMA"))
			continue;
		if (np_map_get(&out->ops, op, NP_NO_U32) == NP_NO_U32 &&
		    !np_map_put(&out->ops, op, out->n++))
			return false;
		if (!np_map_put(&out->rows, key_of(out, b->op[i], b->group[i], b->step[i]),
		                (uint32_t)i))
			return false;
	}
	return true;
}

static bool collect(const struct np_advice *self, const struct index *index,
                    const struct matmul *matmul, struct ops *out)
{
	const struct np_comm_time *t = &self->rank->profile->comm_time;
	const struct np_comm_bandwidth *b = &self->rank->profile->comm_bandwidth;
	double limit = np_rule_value(self, "contention_gbps");
	for (size_t i = 0; i < t->n; i++) {
		uint32_t row = np_map_get(
			&index->rows, key_of(index, t->op[i], t->group[i], t->step[i]), NP_NO_U32);
		if (row == NP_NO_U32 || !(b->gbps[row] < limit) ||
		    np_comm_is_total(self, t->op[i]) || !np_comm_in_scope(self, t->step[i]) ||
		    !(t->start_us[i] >= 0 && t->start_us[i] < 1e15 * 4) ||
		    !(t->elapse_ms[i] > 0 && t->elapse_ms[i] < 1e12))
			continue;
		np_ns start = (np_ns)(t->start_us[i] * 1000);
		np_ns end = start + (np_ns)(t->elapse_ms[i] * 1e6);
		np_ns beside = matmul_before(matmul, end) - matmul_before(matmul, start);
		double lost = b->transit_ms[row] - b->transit_mb[row] / limit;
		struct op op = {(uint32_t)i, row, fmax(0, fmin(lost, (double)beside / 1e6))};
		if (beside > 0 && !np_vec_push(out, op))
			return false;
	}
	return true;
}

/* ── telling ── */

static int slowest_first(const void *a, const void *b, void *ctx)
{
	const struct np_comm_bandwidth *rows = ctx;
	const struct op *x = a, *y = b;
	double u = rows->gbps[x->bandwidth], v = rows->gbps[y->bandwidth];
	if (u != v)
		return u < v ? -1 : 1;
	return (x->row > y->row) - (x->row < y->row);
}

static void tell(struct np_advice *self, const struct np_checker *checker, const struct ops *ops)
{
	const struct np_comm_time *t = &self->rank->profile->comm_time;
	const struct np_comm_bandwidth *b = &self->rank->profile->comm_bandwidth;
	double elapse_ms = 0, lost_ms = 0;
	for (size_t i = 0; i < ops->n; i++) {
		elapse_ms += t->elapse_ms[ops->v[i].row];
		lost_ms += ops->v[i].lost_ms;
	}
	struct np_problem_text text = {
		.code = "ADVICE_CONTENTION",
		.count = ops->n,
		.total_us = elapse_ms * 1000 / self->steps,
		.gain_us = np_comm_gain_us(self, lost_ms),
		.advice = NP_N(
			"Computing and communication compete for the memory: overlap "
			"collectives with operators that are not bound by memory, give matmul "
			"fewer cores (MC2), or try without overlapping (overlap_grad_reduce).")};
	struct np_finding *finding = np_advice_problem(
		self, checker, &text,
		"%zu collectives run beside matmul with less than %g GB/s over SDMA", ops->n,
		np_rule_value(self, "contention_gbps"));
	struct np_table *table = NP_ADVICE_TABLE(self, checker, columns);
	for (size_t i = 0; i < ops->n; i++) {
		np_str name = np_text(self->rank, t->op[ops->v[i].row]);
		double ms = t->elapse_ms[ops->v[i].row], gbps = b->gbps[ops->v[i].bandwidth];
		if (i < SHOWN)
			np_finding_evidence(finding, np_comm_source(self->rank->capture), NULL,
			                    NULL, "%.*s: %.3f ms, %.3f GB/s", NP_FMT(name), ms,
			                    gbps);
		np_cell_text(table, name);
		np_cell_real(table, ms);
		np_cell_real(table, gbps);
	}
}

static void run(struct np_advice *self, const struct np_checker *checker)
{
	struct matmul matmul = {{0}, NULL};
	struct index index = {.n = 0};
	struct ops ops = {0};
	np_map_init(&index.ops);
	np_map_init(&index.rows);
	self->oom |= !collect_matmul(self, &matmul) || !index_bandwidth(self, &index) ||
	             !collect(self, &index, &matmul, &ops);
	if (!self->oom && ops.n > 0) {
		qsort_r(ops.v, ops.n, sizeof *ops.v, slowest_first,
		        &self->rank->profile->comm_bandwidth);
		tell(self, checker, &ops);
	}
	np_intervals_release(&matmul.busy);
	np_free(matmul.before);
	np_map_release(&index.ops);
	np_map_release(&index.rows);
	np_vec_release(&ops);
}

const struct np_checker np_checker_contention = {
	.name = "contention",
	.dimension = NP_DIM_COMMUNICATION,
	.category = NP_N("Bandwidth Contention Analysis"),
	.category_zh = "带宽抢占分析",
	.run = run,
};
