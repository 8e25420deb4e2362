/* Bandwidth by transport over the ranks of a group, and how large the packets are. */
#include <math.h>
#include <stdlib.h>

#include "cluster/communication.h"

static const double small_share = 0.20;

/* ── bandwidth ── */

static const struct np_column bandwidth_columns[] = {
	NP_COMM_UNIT_COLUMNS,
	{"transport_type", "", NP_COL_TEXT, "SDMA holds HCCS, PCIE and SIO: do not add them"},
	{"ranks", "", NP_COL_INT, "ranks that used it"},
	{"size_mb", "MB", NP_COL_REAL, "sum over the ranks, 1e6 bytes"},
	{"time_ms", "ms", NP_COL_REAL, "sum over the ranks"},
	{"average_gbps", "GB/s", NP_COL_REAL, "mean of the ranks' size / time"},
	{"max_gbps", "GB/s", NP_COL_REAL, "of the fastest rank"},
	{"min_gbps", "GB/s", NP_COL_REAL, "of the slowest rank"},
	{"difference_gbps", "GB/s", NP_COL_REAL, "max - min"},
	{"empirical_gbps", "GB/s", NP_COL_REAL,
         "what is commonly reached: RDMA 12.5, HCCS 18, "
         "PCIE 20"},
};

static const double empirical[NP_N_LINKS] = {NAN, 12.5, 18, 20, NAN};

static void bandwidth_row(struct np_table *table, const struct np_comm_units *self, size_t i,
                          size_t end, enum np_comm_link link)
{
	double mb = 0, ms = 0, sum = 0, min = INFINITY, max = 0;
	int64_t n = 0;
	for (size_t u = i; u < end; u++) {
		const struct np_comm_unit *unit = &self->units.v[u];
		if (!(unit->ms[link] > 0))
			continue;
		double gbps = unit->mb[link] / unit->ms[link];
		n++;
		mb += unit->mb[link];
		ms += unit->ms[link];
		sum += gbps;
		min = gbps < min ? gbps : min;
		max = gbps > max ? gbps : max;
	}
	if (n == 0)
		return;
	np_cell_comm_unit(table, self, &self->units.v[i]);
	np_cell_cstr(table, np_comm_link_names[link]);
	np_cell_int(table, n);
	np_cell_real(table, mb);
	np_cell_real(table, ms);
	np_cell_real(table, sum / (double)n);
	np_cell_real(table, max);
	np_cell_real(table, min);
	np_cell_real(table, max - min);
	np_cell_real(table, empirical[link]);
}

static void bandwidth(const struct np_comm_units *self)
{
	struct np_table *table =
		NP_REPORT_TABLE(self->cluster->report, "CommunicationBandwidth",
	                        "Bandwidth by group and transport", bandwidth_columns);
	for (size_t i = 0, end; i < self->units.n; i = end) {
		end = np_comm_units_end(self, i);
		for (int l = 0; l < NP_N_LINKS; l++)
			bandwidth_row(table, self, i, end, (enum np_comm_link)l);
	}
}

/* ── packets ── */

static const struct np_column packet_columns[] = {
	NP_COMM_UNIT_COLUMNS,
	{"rank", "", NP_COL_INT, "rank"},
	{"transport_type", "", NP_COL_TEXT, "HCCS, PCIE, SIO, RDMA"},
	{"package_size_mb", "MB", NP_COL_REAL, "size of a packet, 1e6 bytes"},
	{"count", "", NP_COL_REAL, "how many"},
	{"total_duration_ms", "ms", NP_COL_REAL, "their time"},
};

struct pack {
	int64_t step;
	np_id group, transport;
	uint32_t rank;
	double size, count, ms;
};

typedef NP_VEC(struct pack) packs;

#define ORDER(a, b)                                \
	do {                                       \
		if ((a) != (b))                    \
			return (a) < (b) ? -1 : 1; \
	} while (0)

static int by_place(const void *a, const void *b)
{
	const struct pack *x = a, *y = b;
	ORDER(x->step, y->step);
	ORDER(x->group, y->group);
	ORDER(x->rank, y->rank);
	ORDER(x->transport, y->transport);
	ORDER(x->size, y->size);
	ORDER(x->ms, y->ms);
	return 0;
}

static bool same_place(const struct pack *x, const struct pack *y)
{
	return x->step == y->step && x->group == y->group && x->rank == y->rank &&
	       x->transport == y->transport && x->size == y->size;
}

static bool collect(const struct np_comm_units *self, packs *out)
{
	for (size_t r = 0; r < self->cluster->ranks.n; r++) {
		const struct np_digest_insight_pack *in =
			NP_DIGEST_ROWS(&self->cluster->ranks.v[r], np_digest_insight_pack);
		for (size_t i = 0; i < in->n; i++)
			if (np_insight_wants(&self->steps, in->step[i]) &&
			    !np_vec_push(out,
			                 (struct pack){in->step[i], in->group[i], in->transport[i],
			                               (uint32_t)r, in->package_mb[i], in->count[i],
			                               in->ms[i]}))
				return false;
	}
	if (out->n > 0)
		qsort(out->v, out->n, sizeof *out->v, by_place);
	return true;
}

/* Packets of all groups on one kind of transport. */
struct tally {
	double limit, count, small, ms, small_ms; /* packets */
	int64_t ops, small_ops;
};

static void add(struct tally *tally, const struct pack *pack)
{
	bool small = pack->size < tally->limit;
	tally->count += pack->count;
	tally->ms += pack->ms;
	tally->small += small ? pack->count : 0;
	tally->small_ms += small ? pack->ms : 0;
}

static void add_ops(const struct np_comm_units *self, struct tally *sdma, struct tally *rdma)
{
	for (size_t r = 0; r < self->cluster->ranks.n; r++) {
		const struct np_digest_insight_band *in =
			NP_DIGEST_ROWS(&self->cluster->ranks.v[r], np_digest_insight_band);
		for (size_t i = 0; i < in->n; i++) {
			np_str name = np_cluster_text(self->cluster, in->transport[i]);
			struct tally *tally = np_str_is(name, "RDMA") ? rdma : sdma;
			if (!np_insight_wants(&self->steps, in->step[i]))
				continue;
			tally->ops += in->ops[i];
			tally->small_ops += in->small_ops[i];
		}
	}
}

static const struct np_column tally_columns[] = {
	{"transport_type", "", NP_COL_TEXT, "SDMA: HCCS, PCIE and SIO"},
	{"small_below_mb", "MB", NP_COL_REAL, "packets below this size are small"},
	{"packets", "", NP_COL_REAL, "packets of all groups and ranks"},
	{"small_packets", "", NP_COL_REAL, "how many of them are small"},
	{"small_share", "", NP_COL_PERCENT, "of the packets; more than a fifth is a problem"},
	{"operations", "", NP_COL_INT, "operations that have packets, of all groups and ranks"},
	{"small_operations", "", NP_COL_INT, "how many of them have small ones"},
	{"small_operations_share", "", NP_COL_PERCENT, "what MindStudio Insight shows as share"},
	{"small_time_ms", "ms", NP_COL_REAL, "time of the small packets"},
	{"time_ms", "ms", NP_COL_REAL, "time of all"},
};

static void tally_row(struct np_table *table, const struct np_comm_units *self,
                      const struct tally *tally, const char *name)
{
	if (!(tally->count > 0))
		return;
	double share = tally->small / tally->count;
	np_cell_cstr(table, name);
	np_cell_real(table, tally->limit);
	np_cell_real(table, tally->count);
	np_cell_real(table, tally->small);
	np_cell_real(table, share);
	np_cell_int(table, tally->ops);
	np_cell_int(table, tally->small_ops);
	np_cell_real(table, tally->ops > 0 ? (double)tally->small_ops / (double)tally->ops : NAN);
	np_cell_real(table, tally->small_ms);
	np_cell_real(table, tally->ms);
	if (!(share > small_share))
		return;
	struct np_finding *finding =
		np_report_finding(self->cluster->report, "COMM_SMALL_PACKETS", NP_INFO,
	                          "%.1f %% of the packets on %s are smaller than %g MB",
	                          100 * share, name, tally->limit);
	np_finding_detail(finding,
	                  "They cost %.3f ms of %.3f ms on the wire, over all ranks and groups.",
	                  tally->small_ms, tally->ms);
	np_finding_evidence(finding, NULL, "CommunicationPackets", NULL, "%.0f of %.0f packets",
	                    tally->small, tally->count);
	np_finding_advice(finding, "Move more at once: larger batches or buckets, fewer "
	                           "gradient buckets, fused collectives.");
}

bool np_comm_packets(const struct np_comm_units *self)
{
	bandwidth(self);
	struct np_report *report = self->cluster->report;
	struct np_table *table =
		NP_REPORT_TABLE(report, "CommunicationPackets", "Packets by size", packet_columns);
	struct tally sdma = {.limit = np_insight_small_mb(NP_STR("SDMA"))},
		     rdma = {.limit = np_insight_small_mb(NP_STR("RDMA"))};
	packs all = {0};
	bool ok = collect(self, &all);
	for (size_t i = 0, next; ok && i < all.n; i = next) {
		struct pack sum = all.v[i];
		for (next = i + 1; next < all.n && same_place(&sum, &all.v[next]); next++) {
			sum.count += all.v[next].count;
			sum.ms += all.v[next].ms;
		}
		np_str transport = np_cluster_text(self->cluster, sum.transport);
		const struct np_comm_unit *unit = np_comm_units_find(self, sum.step, sum.group);
		if (!unit)
			continue;
		add(np_str_is(transport, "RDMA") ? &rdma : &sdma, &sum);
		np_cell_comm_unit(table, self, unit);
		np_cell_int(table, self->cluster->ranks.v[sum.rank].rank);
		np_cell_text(table, transport);
		np_cell_real(table, sum.size);
		np_cell_real(table, sum.count);
		np_cell_real(table, sum.ms);
	}
	np_vec_release(&all);
	table = NP_REPORT_TABLE(report, "CommunicationSmallPackets", "Small packets",
	                        tally_columns);
	add_ops(self, &sdma, &rdma);
	tally_row(table, self, &sdma, "SDMA");
	tally_row(table, self, &rdma, "RDMA");
	return ok;
}
