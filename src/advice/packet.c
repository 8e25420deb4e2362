/*
 * Packet Analysis (cluster_and_advisor.md §3.6): many collectives that move little cost more
 * to issue than to transfer. Each operator counts once, without "Total Op Info".
 */
#include "advice/comm_scope.h"
#include "report/lang.h"

static const struct np_column columns[] = {
	{"SDMA total count", "", NP_COL_INT, "operators that send over SDMA"},
	{"Small SDMA count", "", NP_COL_INT, "those that send little"},
	{"Small SDMA ratio", "", NP_COL_REAL, "small by total count, 0…1"},
	{"Small SDMA duration(ms)", "", NP_COL_REAL, "transit time of the small ones"},
	{"RDMA total count", "", NP_COL_INT, "operators that send over RDMA"},
	{"Small RDMA count", "", NP_COL_INT, "those that send little"},
	{"Small RDMA ratio", "", NP_COL_REAL, "small by total count, 0…1"},
	{"Small RDMA duration(ms)", "", NP_COL_REAL, "transit time of the small ones"},
};

enum { SDMA, RDMA, N_KINDS };
static const char *const names[N_KINDS] = {"SDMA", "RDMA"};
static const char *const limits[N_KINDS] = {"packet_sdma_mb", "packet_rdma_mb"};

struct packets {
	size_t n, small;
	double small_mb, small_ms, large_mb, large_ms;
};

static void count(const struct np_advice *self, struct packets *out)
{
	const struct np_comm_bandwidth *b = &self->rank->profile->comm_bandwidth;
	for (size_t i = 0; i < b->n; i++) {
		np_str transport = np_text(self->rank, b->transport[i]);
		size_t kind = 0;
		while (kind < N_KINDS && !np_str_is(transport, names[kind]))
			kind++;
		if (kind == N_KINDS || !isnan(b->package_mb[i]) || !(b->transit_mb[i] > 0) ||
		    np_comm_is_total(self, b->op[i]) || !np_comm_in_scope(self, b->step[i]))
			continue;
		struct packets *to = &out[kind];
		double ms = b->transit_ms[i] > 0 ? b->transit_ms[i] : 0;
		bool small = b->transit_mb[i] < np_rule_value(self, limits[kind]);
		to->n++;
		to->small += small;
		*(small ? &to->small_mb : &to->large_mb) += b->transit_mb[i];
		*(small ? &to->small_ms : &to->large_ms) += ms;
	}
}

static bool many_small(const struct np_advice *self, const struct packets *packets)
{
	return packets->n > 0 &&
	       (double)packets->small / (double)packets->n > np_rule_value(self, "packet_share");
}

static void tell(struct np_advice *self, const struct np_checker *checker, size_t kind,
                 const struct packets *packets)
{
	/* at the bandwidth of the large ones, where there are any */
	double left_ms = packets->large_mb > 0
	                         ? packets->small_mb * packets->large_ms / packets->large_mb
	                         : 0;
	struct np_problem_text text = {
		.code = "ADVICE_SMALL_PACKETS",
		.count = packets->small,
		.total_us = packets->small_ms * 1000 / self->steps,
		.gain_us = np_comm_gain_us(self, packets->small_ms - left_ms),
		.advice = NP_N("Data parallel: larger batch, gradient accumulation, larger buckets "
	                       "(bucket_cap_mb). Otherwise unite tensors before they are sent, and "
	                       "see whether ZeRO splits them needlessly.")};
	double share = (double)packets->small / (double)packets->n;
	struct np_finding *finding = np_advice_problem(
		self, checker, &text,
		"%s: %.2f %% of the collectives send less than %g MB, %.3f ms in all", names[kind],
		share * 100, np_rule_value(self, limits[kind]), packets->small_ms);
	np_finding_evidence(finding, np_comm_source(self->rank->capture), "Transit Size(MB)", NULL,
	                    "%zu of %zu operators are small: %.6g MB in %.3f ms", packets->small,
	                    packets->n, packets->small_mb, packets->small_ms);
}

static void run(struct np_advice *self, const struct np_checker *checker)
{
	struct packets packets[N_KINDS] = {{0}};
	bool found = false;
	count(self, packets);
	for (size_t k = 0; k < N_KINDS; k++) {
		if (!many_small(self, &packets[k]))
			continue;
		tell(self, checker, k, &packets[k]);
		found = true;
	}
	if (!found)
		return;
	struct np_table *table = NP_ADVICE_TABLE(self, checker, columns);
	for (size_t k = 0; k < N_KINDS; k++) {
		np_cell_int(table, (int64_t)packets[k].n);
		np_cell_int(table, (int64_t)packets[k].small);
		np_cell_real(table, packets[k].n > 0
		                            ? (double)packets[k].small / (double)packets[k].n
		                            : NAN);
		np_cell_real(table, packets[k].small_ms);
	}
}

const struct np_checker np_checker_packet = {
	.name = "packet",
	.dimension = NP_DIM_COMMUNICATION,
	.category = NP_N("Packet Analysis"),
	.category_zh = "通信小包分析",
	.run = run,
};
