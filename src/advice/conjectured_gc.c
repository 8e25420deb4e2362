/*
 * Conjectured Gc (cluster_and_advisor.md §3.5): the device idles for long, and the host
 * hardly calls AscendCL meanwhile: something holds the interpreter. Only where the
 * collections themselves are not recorded.
 */
#include <stdlib.h>

#include "advice/host.h"
#include "analysis/group.h"
#include "report/lang.h"

enum { SHOWN = 10 };

static const struct np_column columns[] = {
	{"timestamp", "us", NP_COL_INT, "start of the gap"},
	{"duration(us)", "", NP_COL_REAL, "time in which the device was idle"},
	{"acl calls", "", NP_COL_INT, "AscendCL calls that ran in it"},
	{"acl time(us)", "", NP_COL_REAL, "time of the gap in which one of them ran"},
};

struct gap {
	np_ns start, end, acl_ns;
	size_t calls;
};

/* AscendCL calls: merged, and their starts and ends, each in order. */
struct acl {
	struct np_intervals merged;
	struct np_cover cover;
	np_ns *starts, *ends;
	size_t n;
};

static int by_ns(const void *a, const void *b)
{
	np_ns x = *(const np_ns *)a, y = *(const np_ns *)b;
	return (x > y) - (x < y);
}

static bool acl_init(struct acl *self, const struct np_host_ops *ops)
{
	self->starts = np_realloc(NULL, ops->n + 1, sizeof *self->starts);
	self->ends = np_realloc(NULL, ops->n + 1, sizeof *self->ends);
	bool ok = self->starts && self->ends;
	for (size_t i = 0; ok && i < ops->n; i++) {
		if (ops->layer[i] != NP_HOST_ACL)
			continue;
		self->starts[self->n] = ops->start_ns[i];
		self->ends[self->n++] = ops->start_ns[i] + ops->dur_ns[i];
		ok = np_intervals_add(&self->merged, ops->start_ns[i],
		                      ops->start_ns[i] + ops->dur_ns[i]);
	}
	if (ok && self->n > 1)
		qsort(self->ends, self->n, sizeof *self->ends, by_ns);
	np_intervals_merge(&self->merged);
	return ok && np_cover_init(&self->cover, &self->merged);
}

static void acl_release(struct acl *self)
{
	np_cover_release(&self->cover);
	np_intervals_release(&self->merged);
	np_free(self->starts);
	np_free(self->ends);
}

/* How many of an ordered list are below `ns`. */
static size_t below(const np_ns *v, size_t n, np_ns ns)
{
	size_t low = 0;
	while (low < n) {
		size_t middle = low + (n - low) / 2;
		if (v[middle] < ns)
			low = middle + 1;
		else
			n = middle;
	}
	return low;
}

static int longest_first(const void *a, const void *b)
{
	const struct gap *x = a, *y = b;
	np_ns u = x->end - x->start, v = y->end - y->start;
	if (u != v)
		return u > v ? -1 : 1;
	return (x->start > y->start) - (x->start < y->start);
}

static bool has_gc(const struct np_host_ops *ops)
{
	for (size_t i = 0; i < ops->n; i++)
		if (ops->layer[i] == NP_HOST_GC)
			return true;
	return false;
}

static void tell(struct np_advice *self, const struct np_checker *checker, const struct gap *gaps,
                 size_t n)
{
	np_ns total = 0;
	for (size_t i = 0; i < n; i++)
		total = np_ns_sum(total, gaps[i].end - gaps[i].start);
	double us = (double)total / 1e3 / np_capture_steps(self);
	struct np_problem_text text = {
		.code = "ADVICE_CONJECTURED_GC",
		.count = n,
		.total_us = us,
		.gain_us = us,
		.advice = NP_N(
			"Record what the host does: profile with gc_detect_threshold and "
			"with_stack=True. If it collects garbage: gc.disable(), gc.collect() every "
			"N steps, gc.freeze() after the warm-up.")};
	struct np_finding *finding = np_advice_problem(
		self, checker, &text,
		"the device idled %zu times for %.1f ms in all while the host hardly called it: "
		"perhaps garbage collection",
		n, (double)total / 1e6);
	struct np_table *table = NP_ADVICE_TABLE(self, checker, columns);
	for (size_t i = 0; i < n && i < SHOWN; i++) {
		np_cell_int(table, gaps[i].start / 1000);
		np_cell_real(table, (double)(gaps[i].end - gaps[i].start) / 1e3);
		np_cell_int(table, (int64_t)gaps[i].calls);
		np_cell_real(table, (double)gaps[i].acl_ns / 1e3);
	}
	np_finding_evidence(finding, np_kernel_source(self->rank), NULL, NULL,
	                    "the longest: %.1f ms from %lld ns on, %zu AscendCL calls",
	                    (double)(gaps[0].end - gaps[0].start) / 1e6, (long long)gaps[0].start,
	                    gaps[0].calls);
}

static void look(struct np_advice *self, const struct np_checker *checker,
                 const struct np_intervals *busy, const struct acl *acl)
{
	double least = np_rule_value(self, "gc_free_us"),
	       share = np_rule_value(self, "gc_acl_share");
	double per_us = np_rule_value(self, "gc_acl_per_us");
	NP_VEC(struct gap) gaps = {0};
	for (size_t i = 1; i < busy->n; i++) {
		struct gap gap = {.start = busy->v[i - 1].end, .end = busy->v[i].start};
		double us = (double)(gap.end - gap.start) / 1e3;
		if (!(us > least))
			continue;
		gap.acl_ns = np_cover_length(&acl->cover, gap.start, gap.end);
		gap.calls = below(acl->starts, acl->n, gap.end) -
		            below(acl->ends, acl->n, gap.start + 1);
		if ((double)gap.acl_ns / 1e3 < share * us && (double)gap.calls < per_us * us)
			self->oom |= !np_vec_push(&gaps, gap);
	}
	if (gaps.n > 1)
		qsort(gaps.v, gaps.n, sizeof *gaps.v, longest_first);
	if (gaps.n > 0 && !self->oom)
		tell(self, checker, gaps.v, gaps.n);
	np_vec_release(&gaps);
}

static void run(struct np_advice *self, const struct np_checker *checker)
{
	const struct np_host_ops *ops = &self->rank->profile->host_ops;
	struct np_intervals busy = {0};
	struct acl acl = {.n = 0};
	/* without calls of the host a gap without calls says nothing */
	if (ops->n == 0 || has_gc(ops))
		return;
	bool ok = np_intervals_union(&self->rank->compute, &self->rank->comm, &busy) &&
	          acl_init(&acl, ops);
	if (ok && acl.n > 0)
		look(self, checker, &busy, &acl);
	self->oom |= !ok;
	acl_release(&acl);
	np_intervals_release(&busy);
}

const struct np_checker np_checker_conjectured_gc = {
	.name = "conjectured_gc",
	.dimension = NP_DIM_SCHEDULE,
	.category = "Conjectured Gc",
	.category_zh = "疑似 GC 分析",
	.run = run,
};
