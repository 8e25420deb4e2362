/*
 * Byte Alignment Analysis (cluster_and_advisor.md §3.6): transfers over SDMA between cards
 * whose size is no multiple of 512 bytes.
 */
#include <stdlib.h>

#include "advice/comm_scope.h"
#include "report/lang.h"

static const struct np_column columns[] = {
	{"op name", "", NP_COL_TEXT, "operator"},
	{"total size(Byte)", "", NP_COL_INT, "sum of its transfers over SDMA between cards"},
	{"duration(us)", "", NP_COL_REAL, "their time"},
	{"abnormal duration(us)", "", NP_COL_REAL, "time of those that are not aligned"},
	{"bandwidth(GB/s)", "", NP_COL_REAL, "size by duration"},
};

enum { SHOWN = 3 }; /* rows of evidence */

struct op {
	uint32_t row; /* in comm_ops */
	int64_t bytes, odd_bytes;
	np_ns ns, odd_ns;
};

/* A transfer has a size and a duration whose sums fit: less than 64 GB, and than a minute. */
static bool is_transfer(const struct np_analysis *rank, size_t i, int64_t least)
{
	const struct np_comm_tasks *tasks = &rank->profile->comm_tasks;
	np_str name = np_text(rank, tasks->name[i]);
	return tasks->size_bytes[i] > least && tasks->size_bytes[i] < INT64_C(1) << 36 &&
	       tasks->dur_ns[i] < (np_ns)1 << 36 &&
	       (np_str_istarts(name, NP_STR("memcpy")) || np_str_istarts(name, NP_STR("reduce"))) &&
	       np_str_is(np_text(rank, tasks->transport[i]), "SDMA") &&
	       !np_str_is(np_text(rank, tasks->link[i]), "ON_CHIP");
}

/* Is a time within a step that is looked at? The steps are in order and apart. */
static bool in_spans(const struct np_analysis *rank, np_ns ts)
{
	size_t low = 0, high = rank->spans.n;
	while (low < high) {
		size_t mid = low + (high - low) / 2;
		if (rank->spans.v[mid].start <= ts)
			low = mid + 1;
		else
			high = mid;
	}
	return low > 0 && ts < rank->spans.v[low - 1].end;
}

/* A trace does not say which step an operator belongs to: then its start tells. */
static bool in_scope(const struct np_advice *self, uint32_t op)
{
	const struct np_comm_ops *ops = &self->rank->profile->comm_ops;
	uint32_t step = ops->step[op];
	if (step < self->rank->profile->steps.n)
		return np_comm_in_scope(self, self->rank->profile->steps.id[step]);
	return !self->rank->options->has_step || in_spans(self->rank, ops->start_ns[op]);
}

/* One entry per row of comm_ops; NULL: out of memory. */
static struct op *sum(const struct np_advice *self)
{
	const struct np_comm_tasks *tasks = &self->rank->profile->comm_tasks;
	size_t n = self->rank->profile->comm_ops.n;
	int64_t unit = (int64_t)np_rule_value(self, "alignment_bytes");
	struct op *ops = np_calloc(n + 1, sizeof *ops);
	unit = unit > 0 ? unit : 1;
	for (size_t i = 0; ops && i < n; i++)
		ops[i].row = (uint32_t)i;
	for (size_t i = 0; ops && i < tasks->n; i++) {
		if (tasks->op[i] >= n || !is_transfer(self->rank, i, unit) ||
		    !in_scope(self, tasks->op[i]))
			continue;
		struct op *op = &ops[tasks->op[i]];
		bool odd = tasks->size_bytes[i] % unit != 0;
		op->bytes += tasks->size_bytes[i];
		op->ns += tasks->dur_ns[i];
		op->odd_bytes += odd ? tasks->size_bytes[i] : 0;
		op->odd_ns += odd ? tasks->dur_ns[i] : 0;
	}
	return ops;
}

static int longest_first(const void *a, const void *b)
{
	const struct op *x = a, *y = b;
	if (x->odd_ns != y->odd_ns)
		return x->odd_ns > y->odd_ns ? -1 : 1;
	return (x->row > y->row) - (x->row < y->row);
}

/* How much longer the transfers take than aligned ones of the same operators do, per byte;
 * where there are none: all of their time. */
static double lost_ms(const struct op *all)
{
	int64_t even_bytes = all->bytes - all->odd_bytes;
	double usual = even_bytes > 0 ? (double)(all->ns - all->odd_ns) / (double)even_bytes *
	                                        (double)all->odd_bytes
	                              : 0;
	return ((double)all->odd_ns - usual) / 1e6;
}

static void fill(struct np_advice *self, const struct np_checker *checker, const struct op *ops,
                 size_t n, struct np_finding *finding)
{
	const struct np_comm_ops *names = &self->rank->profile->comm_ops;
	struct np_table *table = NP_ADVICE_TABLE(self, checker, columns);
	for (size_t i = 0; i < n; i++) {
		np_str name = np_text(self->rank, names->name[ops[i].row]);
		if (i < SHOWN)
			np_finding_evidence(finding, NULL, NULL, NULL,
			                    "%.*s: %.1f of %.1f us in transfers that are "
			                    "not aligned",
			                    NP_FMT(name), (double)ops[i].odd_ns / 1000,
			                    (double)ops[i].ns / 1000);
		np_cell_text(table, name);
		np_cell_int(table, ops[i].bytes);
		np_cell_real(table, (double)ops[i].ns / 1000);
		np_cell_real(table, (double)ops[i].odd_ns / 1000);
		np_cell_real(table,
		             ops[i].ns > 0
		                     ? round((double)ops[i].bytes / (double)ops[i].ns * 1e4) / 1e4
		                     : NAN);
	}
}

static void tell(struct np_advice *self, const struct np_checker *checker, const struct op *ops,
                 size_t n)
{
	struct op all = {0};
	for (size_t i = 0; i < n; i++) {
		all.bytes += ops[i].bytes;
		all.odd_bytes += ops[i].odd_bytes;
		all.ns += ops[i].ns;
		all.odd_ns += ops[i].odd_ns;
	}
	double share = all.ns > 0 ? (double)all.odd_ns / (double)all.ns : 0;
	struct np_problem_text text = {
		.code = "ADVICE_BYTE_ALIGNMENT",
		.count = n,
		.total_us = np_per_step_us(self, all.odd_ns),
		.gain_us = np_comm_gain_us(self, lost_ms(&all)),
		.advice = NP_N(
			"Make what a rank sends a multiple of 512 bytes: pad tensors, or choose "
			"bucket and shard sizes that divide evenly by the number of ranks.")};
	struct np_finding *finding = np_advice_problem(
		self, checker, &text,
		"the data of %zu collectives are not aligned to %g bytes: %.1f %% of the time of "
		"their transfers",
		n, np_rule_value(self, "alignment_bytes"), share * 100);
	/* the official priority: by the share among the transfers */
	if (share < np_rule_value(self, "alignment_low"))
		finding->severity = NP_INFO;
	else if (share < np_rule_value(self, "alignment_high") && finding->severity == NP_ERROR)
		finding->severity = NP_WARNING;
	fill(self, checker, ops, n, finding);
}

static void run(struct np_advice *self, const struct np_checker *checker)
{
	struct op *ops = sum(self);
	size_t n = 0;
	self->oom |= !ops;
	for (size_t i = 0; ops && i < self->rank->profile->comm_ops.n; i++)
		if (ops[i].odd_ns > 0)
			ops[n++] = ops[i];
	if (n > 1)
		qsort(ops, n, sizeof *ops, longest_first);
	if (n > 0)
		tell(self, checker, ops, n);
	np_free(ops);
}

const struct np_checker np_checker_alignment = {
	.name = "byte_alignment",
	.dimension = NP_DIM_COMMUNICATION,
	.category = NP_N("Byte Alignment Analysis"),
	.category_zh = "字节对齐分析",
	.run = run,
};
