/* Retransmission on RDMA, contention with matrix products, sizes that are no multiple. */
#include <math.h>
#include <stdlib.h>

#include "cluster/communication.h"

enum { SHOWN = 3 };

static const double retransmission_ms = 4000; /* the time-out of RoCE before it sends again */

/* ── retransmission: on every rank the operation lasts as long as the time-out ── */

struct suspect {
	int64_t step;
	np_id group, op;
	double transit, shortest; /* longest on RDMA; shortest elapsed of the ranks */
};

typedef NP_VEC(struct suspect) suspects;

static int by_op(const void *a, const void *b)
{
	const struct suspect *x = a, *y = b;
	if (x->step != y->step)
		return x->step < y->step ? -1 : 1;
	if (x->group != y->group)
		return x->group < y->group ? -1 : 1;
	return (x->op > y->op) - (x->op < y->op);
}

static bool suspects_of(const struct np_comm_units *self, suspects *out)
{
	for (size_t r = 0; r < self->cluster->ranks.n; r++) {
		const struct np_digest_insight_rdma *in =
			NP_DIGEST_ROWS(&self->cluster->ranks.v[r], np_digest_insight_rdma);
		for (size_t i = 0; i < in->n; i++)
			if (in->ms[i] > retransmission_ms &&
			    np_insight_wants(&self->steps, in->step[i]) &&
			    !np_vec_push(out, (struct suspect){in->step[i], in->group[i], in->op[i],
			                                       in->ms[i], INFINITY}))
				return false;
	}
	if (out->n > 0)
		qsort(out->v, out->n, sizeof *out->v, by_op);
	size_t kept = 0;
	for (size_t i = 0; i < out->n; i++) {
		if (kept == 0 || by_op(&out->v[kept - 1], &out->v[i]) != 0)
			out->v[kept++] = out->v[i];
		else if (out->v[i].transit > out->v[kept - 1].transit)
			out->v[kept - 1].transit = out->v[i].transit;
	}
	out->n = kept;
	return true;
}

static void shortest(const struct np_comm_units *self, suspects *all)
{
	for (size_t r = 0; all->n > 0 && r < self->cluster->ranks.n; r++) {
		const struct np_digest_insight_time *in =
			NP_DIGEST_ROWS(&self->cluster->ranks.v[r], np_digest_insight_time);
		for (size_t i = 0; i < in->n; i++) {
			struct suspect wanted = {
				.step = in->step[i], .group = in->group[i], .op = in->op[i]};
			struct suspect *found =
				bsearch(&wanted, all->v, all->n, sizeof *all->v, by_op);
			if (found && in->elapse_ms[i] < found->shortest)
				found->shortest = in->elapse_ms[i];
		}
	}
}

static bool retransmission(const struct np_comm_units *self)
{
	suspects all = {0};
	bool ok = suspects_of(self, &all);
	struct np_finding *finding = NULL;
	size_t n = 0;
	if (ok)
		shortest(self, &all);
	for (size_t i = 0; ok && i < all.n; i++)
		n += all.v[i].shortest > retransmission_ms && isfinite(all.v[i].shortest);
	if (n > 0)
		finding =
			np_report_finding(self->cluster->report, "COMM_RETRANSMISSION", NP_WARNING,
		                          "%zu operations look like retransmission on RDMA: "
		                          "longer than 4 s on every rank",
		                          n);
	for (size_t i = 0, told = 0; finding && i < all.n && told < SHOWN; i++) {
		const struct suspect *s = &all.v[i];
		if (!(s->shortest > retransmission_ms) || !isfinite(s->shortest))
			continue;
		told++;
		np_finding_evidence(finding, NULL, "CommunicationOps", NULL,
		                    "%.*s: at least %.1f ms on every rank, %.1f ms on RDMA",
		                    NP_FMT(np_cluster_text(self->cluster, s->op)), s->shortest,
		                    s->transit);
	}
	if (finding)
		np_finding_advice(finding,
		                  "Look for packet loss: RoCE counters of the NICs, PFC and ECN "
		                  "of the switches, optical modules.");
	np_vec_release(&all);
	return ok;
}

/* ── checks that each rank has made of its own kernels and tasks ── */

struct sum {
	int64_t count, of, ranks;
	double ms;
	np_id op;
	int64_t rank;
	double worst;
};

static struct sum sum_of(const struct np_comm_units *self, enum np_insight_check what)
{
	struct sum sum = {.op = NP_ID_NONE};
	for (size_t r = 0; r < self->cluster->ranks.n; r++) {
		const struct np_digest_insight_check *in =
			NP_DIGEST_ROWS(&self->cluster->ranks.v[r], np_digest_insight_check);
		int64_t before = sum.count;
		for (size_t i = 0; i < in->n; i++) {
			if (in->what[i] != what)
				continue;
			sum.count += in->count[i];
			sum.of += in->of[i];
			sum.ms += in->ms[i];
			if (in->count[i] > 0 && in->ms[i] > sum.worst) {
				sum.worst = in->ms[i];
				sum.op = in->op[i];
				sum.rank = self->cluster->ranks.v[r].rank;
			}
		}
		sum.ranks += sum.count > before;
	}
	return sum;
}

static void contention(const struct np_comm_units *self)
{
	struct sum sum = sum_of(self, NP_INSIGHT_CONTENTION);
	if (sum.count == 0)
		return;
	struct np_finding *finding = np_report_finding(
		self->cluster->report, "COMM_CONTENTION", NP_INFO,
		"%lld of %lld operations on SDMA stay below 14.4 GB/s while a matrix product runs",
		(long long)sum.count, (long long)sum.of);
	np_finding_evidence(finding, NULL, NULL, NULL,
	                    "%lld ranks, beside products for %.3f ms; most on rank %lld, e.g. %.*s",
	                    (long long)sum.ranks, sum.ms, (long long)sum.rank,
	                    NP_FMT(np_cluster_text(self->cluster, sum.op)));
	np_finding_advice(finding, "Both want the memory's bandwidth. Try to shift the "
	                           "collectives, or fewer of them beside the products.");
}

static void alignment(const struct np_comm_units *self)
{
	struct sum sum = sum_of(self, NP_INSIGHT_ALIGNMENT);
	if (sum.count == 0)
		return;
	struct np_finding *finding = np_report_finding(
		self->cluster->report, "COMM_UNALIGNED", NP_INFO,
		"%lld of %lld copies on SDMA have a size that is no multiple of 512 bytes",
		(long long)sum.count, (long long)sum.of);
	np_finding_evidence(finding, NULL, NULL, NULL,
	                    "%lld ranks, %.3f ms; most on rank %lld, e.g. %.*s",
	                    (long long)sum.ranks, sum.ms, (long long)sum.rank,
	                    NP_FMT(np_cluster_text(self->cluster, sum.op)));
	np_finding_advice(finding, "Pad what is sent to a multiple of 512 bytes per rank.");
}

bool np_comm_advice(const struct np_comm_units *self)
{
	contention(self);
	alignment(self);
	return retransmission(self);
}
