/*
 * The two tables of the Fusible Operator Analysis. Rows are those of the official
 * sheets; they overlap, so what they are worth is counted on the kernels:
 *
 *   kernels   A ─gap─ B ─gap─ C ─gap─ D        a pair counts once, however many
 *   rows      └───────────────┘                sequences it is part of
 *                     └───────────────┘
 */
#include "advice/fusible.h"

#include <math.h>
#include <stdlib.h>

#include "report/lang.h"

enum { SHOWN = 200 };

static const struct np_column columns[] = {
	{"start index", "", NP_COL_INT, "row of the first kernel, from 0, in kernel_details.csv"},
	{"end index", "", NP_COL_INT, "row of its last kernel"},
	{"total time(us)", "", NP_COL_REAL, "of all occurrences, with the gaps"},
	{"execution time(us)", "", NP_COL_REAL, "sum of their kernels' durations"},
	{"mte time(us)", "", NP_COL_REAL, "sum of their kernels' transfers"},
	{"occurrences", "", NP_COL_INT, "those that are bound by the host or by transfers"},
	{"mte bound", "", NP_COL_BOOL, "transfers, against the time of the cores"},
	{"host bound", "", NP_COL_BOOL, "the kernels' time, against the time with gaps"},
	{"sequence", "", NP_COL_TEXT, "operator types"},
};

struct worth {
	double total_us, gain_us; /* of all steps */
};

static bool is_of(const struct np_sequence *one, bool host)
{
	return one->told && (host ? one->host : one->mte && !one->host);
}

/* Kernel i belongs to an occurrence that goes on to i + 1. */
static bool mark_pairs(const struct np_fusible *all, bool host, bool *pair)
{
	size_t reach = 0;
	bool any = false;
	for (size_t i = 0; i < all->n; i++) {
		for (uint32_t l = all->shortest; l <= all->longest; l++) {
			uint32_t number = all->number[l][i];
			if (number != NP_NO_U32 && is_of(&all->of.v[number], host) &&
			    i + l - 1 > reach)
				reach = i + l - 1;
		}
		pair[i] = i < reach;
		any |= pair[i];
	}
	return any;
}

/*
 * What of the transfers between i and i + 1 fusing could keep on the chip: i writes, i + 1
 * reads it back (not its weights). Not where one is attention, which is fused already, nor
 * between two matmuls, which no fused kernel holds (requirements §2.10).
 */
static double between(const struct np_advice *self, const struct np_fusible *all, size_t i)
{
	uint8_t a = self->rank->class[self->rank->rows[i]];
	uint8_t b = self->rank->class[self->rank->rows[i + 1]];
	if (a == NP_CLASS_ATTENTION || b == NP_CLASS_ATTENTION ||
	    (a == NP_CLASS_MATMUL && b == NP_CLASS_MATMUL))
		return 0;
	return all->out_us[i] + fmin(all->in_us[i + 1], all->out_us[i]);
}

/* Host: the gaps go. Transfers: see between(). */
static struct worth worth_of(const struct np_advice *self, const struct np_fusible *all, bool host,
                             const bool *pair)
{
	const struct np_kernels *kernels = &self->rank->profile->kernels;
	struct worth worth = {.total_us = 0};
	for (size_t i = 0; i < all->n; i++) {
		uint32_t row = self->rank->rows[i];
		double dur = (double)kernels->dur_ns[row] / 1e3, gap = 0;
		bool before = i > 0 && pair[i - 1];
		if (!pair[i] && !before)
			continue;
		if (pair[i])
			gap = (double)(kernels->start_ns[self->rank->rows[i + 1]] -
			               kernels->start_ns[row]) /
			              1e3 -
			      dur;
		gap = gap > 0 ? gap : 0;
		worth.total_us += dur + gap;
		if (host)
			worth.gain_us += gap;
		else if (pair[i])
			worth.gain_us += fmin(between(self, all, i), dur);
	}
	return worth;
}

static int most_time(const void *a, const void *b)
{
	const struct np_sequence *x = *(struct np_sequence *const *)a;
	const struct np_sequence *y = *(struct np_sequence *const *)b;
	if (x->wall_us != y->wall_us)
		return x->wall_us > y->wall_us ? -1 : 1;
	if (x->first != y->first)
		return x->first < y->first ? -1 : 1;
	return (x->length > y->length) - (x->length < y->length);
}

static void put_sequence(const struct np_advice *self, const struct np_sequence *one,
                         struct np_buf *text)
{
	const struct np_kernels *kernels = &self->rank->profile->kernels;
	np_buf_clear(text);
	for (uint32_t i = 0; i < one->length; i++) {
		uint32_t row = self->rank->rows[one->first + i], type = kernels->type[row];
		type = type == 0 || type == NP_ID_NONE ? kernels->name[row] : type;
		np_buf_add_cstr(text, i ? " → " : "");
		np_buf_add_str(text, np_str_sub(np_text(self->rank, type), 0, 60));
	}
}

static void put_row(const struct np_advice *self, struct np_table *table,
                    const struct np_sequence *one, np_str sequence)
{
	np_cell_int(table, self->rank->rows[one->first]);
	np_cell_int(table, self->rank->rows[one->first + one->length - 1]);
	np_cell_real(table, one->wall_us);
	np_cell_real(table, one->busy_us);
	np_cell_real(table, one->mte_us);
	np_cell_int(table, one->count);
	np_cell_bool(table, one->mte);
	np_cell_bool(table, one->host);
	np_cell_text(table, sequence);
}

static const struct np_problem_text kinds[] = {
	{.code = "ADVICE_FUSIBLE_MTE",
         .advice = NP_N(
		 "Fuse them so that results stay on the chip: a fused operator of torch_npu, a "
		 "graph compiler, or one kernel (Triton-Ascend, Ascend C).")},
	{.code = "ADVICE_FUSIBLE_HOST",
         .advice = NP_N("Fewer and larger operators: a fused operator of torch_npu, or a graph "
                        "compiler; where neither fits, look at the code that makes them (profile "
                        "with with_stack=True).")},
};

static void tell(struct np_advice *self, const struct np_checker *checker, bool host,
                 struct np_sequence *const *list, size_t n, const struct worth *worth)
{
	struct np_problem_text text = kinds[host];
	text.count = n;
	text.total_us = worth->total_us / (self->steps ? self->steps : 1);
	text.gain_us = worth->gain_us / (self->steps ? self->steps : 1);
	struct np_buf sequence = {0};
	struct np_finding *finding =
		host ? np_advice_problem(self, checker, &text,
	                                 "%zu repeated sequences of kernels wait for the host: "
	                                 "%.1f ms of gaps within %.1f ms",
	                                 n, worth->gain_us / 1e3, worth->total_us / 1e3)
		     : np_advice_problem(self, checker, &text,
	                                 "%zu repeated sequences of kernels are bound by "
	                                 "transfers: %.1f ms of them within %.1f ms",
	                                 n, worth->gain_us / 1e3, worth->total_us / 1e3);
	struct np_table *table = NP_ADVICE_TABLE(self, checker, columns);
	for (size_t i = 0; i < n && i < SHOWN; i++) {
		put_sequence(self, list[i], &sequence);
		put_row(self, table, list[i], np_buf_str(&sequence));
		if (i == 0)
			np_finding_evidence(finding, np_kernel_source(self->rank), NULL, NULL,
			                    "%u times from row %u on: %.*s", list[i]->count,
			                    self->rank->rows[list[i]->first],
			                    NP_FMT(np_buf_str(&sequence)));
	}
	self->oom |= sequence.failed;
	np_buf_release(&sequence);
}

static void run(struct np_advice *self, const struct np_checker *checker, bool host)
{
	struct np_fusible all;
	NP_VEC(struct np_sequence *) list = {0};
	bool ok = np_fusible_find(self, &all);
	bool *pair = ok ? np_calloc(all.n + 1, sizeof *pair) : NULL;
	ok = pair != NULL;
	for (size_t s = 0; ok && s < all.of.n; s++)
		if (is_of(&all.of.v[s], host))
			ok = np_vec_push(&list, &all.of.v[s]);
	if (ok && list.n > 0 && mark_pairs(&all, host, pair)) {
		struct worth worth = worth_of(self, &all, host, pair);
		qsort(list.v, list.n, sizeof *list.v, most_time);
		tell(self, checker, host, list.v, list.n, &worth);
	}
	self->oom |= !ok;
	np_free(pair);
	np_vec_release(&list);
	np_fusible_release(&all);
}

static void run_host(struct np_advice *self, const struct np_checker *checker)
{
	run(self, checker, true);
}

static void run_mte(struct np_advice *self, const struct np_checker *checker)
{
	run(self, checker, false);
}

/* The official sheets have one name in English, so that the second is lost; here they are
 * two. */
const struct np_checker np_checker_fusible_host = {
	.name = "fusible_host",
	.dimension = NP_DIM_SCHEDULE,
	.category = "Fusible Operators Host Bound",
	.category_zh = "可融合算子序列 下发瓶颈",
	.run = run_host,
};

const struct np_checker np_checker_fusible_mte = {
	.name = "fusible_mte",
	.dimension = NP_DIM_SCHEDULE,
	.category = "Fusible Operators MTE Bound",
	.category_zh = "可融合算子序列 搬运瓶颈",
	.run = run_mte,
};
