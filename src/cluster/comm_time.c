#include "cluster/comm_time.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/number.h"

const struct np_column np_comm_time_columns[12] = {
	{"step", "", NP_COL_TEXT, "step, as in the file of the rank"},
	{"rank_id", "", NP_COL_INT, "rank"},
	{"hccl_op_name", "", NP_COL_TEXT, "operator, or Total Op Info: the group's sums"},
	{"group_name", "", NP_COL_TEXT, "decimal hash of the communicator"},
	{"start_timestamp", "", NP_COL_REAL, "start in us since the epoch"},
	{"elapsed_time", "", NP_COL_REAL, "from start to end in ms"},
	{"transit_time", "", NP_COL_REAL, "on the links, in ms"},
	{"wait_time", "", NP_COL_REAL, "waiting for others, in ms"},
	{"synchronization_time", "", NP_COL_REAL, "waiting before the first transit, in ms"},
	{"idle_time", "", NP_COL_REAL, "the rest, in ms"},
	{"synchronization_time_ratio", "", NP_COL_REAL,
         "synchronization / (synchronization + "
         "transit)"},
	{"wait_time_ratio", "", NP_COL_REAL, "wait / (wait + transit)"},
};

const struct np_column np_comm_bandwidth_columns[12] = {
	{"step", "", NP_COL_TEXT, "step, as in the file of the rank"},
	{"rank_id", "", NP_COL_INT, "rank"},
	{"hccl_op_name", "", NP_COL_TEXT, "operator, or Total Op Info: the group's sums"},
	{"group_name", "", NP_COL_TEXT, "decimal hash of the communicator"},
	{"band_type", "", NP_COL_TEXT, "RDMA, HCCS, PCIE, SDMA, SIO"},
	{"transit_size", "", NP_COL_REAL, "moved over this kind of link, in MB"},
	{"transit_time", "", NP_COL_REAL, "time of that in ms"},
	{"bandwidth", "", NP_COL_REAL, "size / time in GB/s"},
	{"large_packet_ratio", "", NP_COL_REAL, "share of packets that are large enough"},
	{"package_size", "", NP_COL_REAL, "packets of this size in MB, 0: sizes are unknown"},
	{"count", "", NP_COL_INT, "how many"},
	{"total_duration", "", NP_COL_REAL, "their time in ms"},
};

void np_comm_step_text(int64_t step, char out[32])
{
	if (step == NP_NO_I64)
		(void)snprintf(out, 32, "step");
	else
		(void)snprintf(out, 32, "step%lld", (long long)step);
}

double np_comm_ratio(double part, double transit)
{
	double whole = part + transit;
	return fabs(whole) < 1e-15 || isnan(whole) ? 0 : np_round_half_even(part / whole, 4);
}

double np_comm_gbps(double mb, double ms)
{
	return fabs(ms) < 1e-15 || isnan(ms) || isnan(mb) ? 0 : np_round_half_even(mb / ms, 4);
}

/* ── one rank ── */

bool np_comm_rank_open(struct np_comm_rank *self, const struct np_cluster_rank *rank)
{
	const struct np_digest_comm_times *t = NP_DIGEST_ROWS(rank, np_digest_comm_times);
	*self = (struct np_comm_rank){
		.rank = rank->rank,
		.times = t,
		.links = NP_DIGEST_ROWS(rank, np_digest_comm_links),
		.packages = NP_DIGEST_ROWS(rank, np_digest_comm_packages),
	};
	uint32_t *step = np_alloc((t->n + 1) * sizeof *step);
	for (size_t i = 0; step && i < t->n; i++)
		step[i] = (uint32_t)(uint64_t)t->step[i];
	const uint32_t *const keys[] = {step, t->group};
	bool ok = step && np_group_rows(t->n, keys, 2, &self->groups);
	np_free(step);
	return ok;
}

void np_comm_rank_close(struct np_comm_rank *self)
{
	np_groups_release(&self->groups);
}

bool np_comm_has_times(const struct np_digest_comm_times *times, size_t row)
{
	return !isnan(times->elapse_ms[row]);
}

static double or_0(double value)
{
	return isnan(value) ? 0 : value;
}

void np_comm_sum(struct np_comm_sums *sums, const struct np_digest_comm_times *times, size_t row)
{
	sums->elapse += or_0(times->elapse_ms[row]);
	sums->transit += or_0(times->transit_ms[row]);
	sums->wait += or_0(times->wait_ms[row]);
	sums->sync += or_0(times->sync_ms[row]);
	sums->idle += or_0(times->idle_ms[row]);
}

/* ── times ── */

struct time_rows {
	const struct np_cluster *cluster;
	const struct np_comm_groups *groups;
	struct np_sink *sink;
	char step[32];
};

static void time_row(struct time_rows *self, const struct np_comm_rank *rank, size_t row)
{
	const struct np_digest_comm_times *t = rank->times;
	bool compat = self->cluster->options->compat; /* it loses the ratios of the ops */
	np_comm_step_text(t->step[row], self->step);
	const struct np_cell cells[] = {
		np_sink_text(np_str_of(self->step)),
		np_sink_int(rank->rank),
		np_sink_text(np_cluster_text(self->cluster, t->op[row])),
		np_sink_text(np_cluster_text(self->cluster, t->group[row])),
		np_sink_real(t->start_us[row]),
		np_sink_real(t->elapse_ms[row]),
		np_sink_real(t->transit_ms[row]),
		np_sink_real(t->wait_ms[row]),
		np_sink_real(t->sync_ms[row]),
		np_sink_real(t->idle_ms[row]),
		np_sink_real(compat ? 0 : np_comm_ratio(t->sync_ms[row], t->transit_ms[row])),
		np_sink_real(compat ? 0 : np_comm_ratio(t->wait_ms[row], t->transit_ms[row])),
	};
	np_sink_row(self->sink, cells);
}

/* A group with both kinds of ops has two rows in the mapping that the official tool joins. */
static double factor_of(const struct time_rows *self, np_id group)
{
	if (!self->cluster->options->compat)
		return 1;
	return np_comm_groups_find(self->groups, group, false) < self->groups->v.n &&
	                       np_comm_groups_find(self->groups, group, true) < self->groups->v.n
	               ? 2
	               : 1;
}

static void time_total(struct time_rows *self, const struct np_comm_rank *rank, size_t g)
{
	const struct np_digest_comm_times *t = rank->times;
	const uint32_t *rows = &rank->groups.order[rank->groups.start[g]];
	struct np_comm_sums sums = {0};
	bool any = false;
	for (size_t i = 0; i < np_group_size(&rank->groups, g); i++) {
		any |= np_comm_has_times(t, rows[i]);
		np_comm_sum(&sums, t, rows[i]);
	}
	if (!any)
		return;
	double f = factor_of(self, t->group[rows[0]]);
	np_comm_step_text(t->step[rows[0]], self->step);
	const struct np_cell cells[] = {
		np_sink_text(np_str_of(self->step)),
		np_sink_int(rank->rank),
		np_sink_text(NP_STR("Total Op Info")),
		np_sink_text(np_cluster_text(self->cluster, t->group[rows[0]])),
		np_sink_real(0),
		np_sink_real(sums.elapse * f),
		np_sink_real(sums.transit * f),
		np_sink_real(sums.wait * f),
		np_sink_real(sums.sync * f),
		np_sink_real(sums.idle * f),
		np_sink_real(np_comm_ratio(sums.sync, sums.transit)),
		np_sink_real(np_comm_ratio(sums.wait, sums.transit)),
	};
	np_sink_row(self->sink, cells);
}

enum np_status np_comm_time_rows(const struct np_cluster *cluster,
                                 const struct np_comm_groups *groups, struct np_sink *sink,
                                 struct np_err *err)
{
	struct time_rows self = {.cluster = cluster, .groups = groups, .sink = sink};
	bool ok = true;
	for (size_t r = 0; ok && r < cluster->ranks.n; r++) {
		struct np_comm_rank rank;
		ok = np_comm_rank_open(&rank, &cluster->ranks.v[r]);
		for (size_t i = 0; ok && i < rank.times->n; i++)
			if (np_comm_has_times(rank.times, i))
				time_row(&self, &rank, i);
		for (size_t g = 0; ok && g < rank.groups.n; g++)
			time_total(&self, &rank, g);
		np_comm_rank_close(&rank);
	}
	return ok ? NP_OK : np_err_nomem(err);
}

/* ── sums of packets ── */

bool np_comm_sizes_add(struct np_comm_sizes *self, const struct np_comm_rank *rank,
                       const uint32_t *rows, size_t n)
{
	const struct np_digest_comm_links *links = rank->links;
	const struct np_digest_comm_packages *packages = rank->packages;
	for (size_t i = 0; i < n; i++) {
		uint32_t link = np_comm_links_begin(rank->times, rows[i]);
		for (; link < rank->times->links_end[rows[i]]; link++) {
			struct np_comm_size size = {.transport = links->transport[link],
			                            .transit_mb = or_0(links->transit_mb[link]),
			                            .transit_ms = or_0(links->transit_ms[link])};
			uint32_t p = np_comm_packages_begin(links, link);
			if (p == links->packages_end[link] && !np_vec_push(&self->v, size))
				return false;
			for (; p < links->packages_end[link]; p++) {
				size.package_mb = packages->package_mb[p];
				size.count = packages->count[p];
				size.package_ms = packages->package_ms[p];
				if (!np_vec_push(&self->v, size))
					return false;
				size.transit_mb = size.transit_ms = 0; /* counted once */
			}
		}
	}
	return true;
}

static int by_size(const void *a, const void *b)
{
	const struct np_comm_size *x = a, *y = b;
	if (x->transport != y->transport)
		return x->transport < y->transport ? -1 : 1;
	return (x->package_mb > y->package_mb) - (x->package_mb < y->package_mb);
}

void np_comm_sizes_finish(struct np_comm_sizes *self)
{
	if (self->v.n == 0)
		return;
	struct np_comm_size *v = self->v.v;
	qsort(v, self->v.n, sizeof *v, by_size);
	size_t kept = 0, first = 0;
	for (size_t i = 1; i < self->v.n; i++) {
		if (v[i].transport == v[first].transport) {
			v[first].transit_mb += v[i].transit_mb;
			v[first].transit_ms += v[i].transit_ms;
		}
		if (by_size(&v[i], &v[kept]) == 0) {
			v[kept].count += v[i].count;
			v[kept].package_ms += v[i].package_ms;
			continue;
		}
		kept++;
		if (v[i].transport != v[first].transport)
			first = kept;
		v[kept] = v[i];
	}
	self->v.n = kept + 1;
	for (size_t i = 1; i < self->v.n; i++)
		if (v[i].transport == v[i - 1].transport) {
			v[i].transit_mb = v[i - 1].transit_mb;
			v[i].transit_ms = v[i - 1].transit_ms;
		}
}

/* ── bandwidth ── */

struct band_rows {
	const struct np_cluster *cluster;
	struct np_sink *sink;
	const struct np_comm_rank *rank;
	char step[32];
	np_str op, group;
};

static void band_row(struct band_rows *self, const struct np_comm_size *size, double gbps,
                     double large_ratio)
{
	const struct np_cell cells[] = {
		np_sink_text(np_str_of(self->step)),
		np_sink_int(self->rank->rank),
		np_sink_text(self->op),
		np_sink_text(self->group),
		np_sink_text(np_cluster_text(self->cluster, size->transport)),
		np_sink_real(size->transit_mb),
		np_sink_real(size->transit_ms),
		np_sink_real(gbps),
		np_sink_real(large_ratio),
		np_sink_real(size->package_mb),
		np_sink_int(size->count < 9e15 ? (int64_t)size->count : 0),
		np_sink_real(size->package_ms),
	};
	np_sink_row(self->sink, cells);
}

static void band_op(struct band_rows *self, size_t row)
{
	const struct np_digest_comm_times *t = self->rank->times;
	const struct np_digest_comm_links *links = self->rank->links;
	const struct np_digest_comm_packages *packages = self->rank->packages;
	np_comm_step_text(t->step[row], self->step);
	self->op = np_cluster_text(self->cluster, t->op[row]);
	self->group = np_cluster_text(self->cluster, t->group[row]);
	for (uint32_t link = np_comm_links_begin(t, row); link < t->links_end[row]; link++) {
		struct np_comm_size size = {.transport = links->transport[link],
		                            .transit_mb = links->transit_mb[link],
		                            .transit_ms = links->transit_ms[link]};
		uint32_t p = np_comm_packages_begin(links, link), end = links->packages_end[link];
		if (p == end)
			band_row(self, &size, links->gbps[link], links->large_ratio[link]);
		for (; p < end; p++) {
			size.package_mb = packages->package_mb[p];
			size.count = packages->count[p];
			size.package_ms = packages->package_ms[p];
			band_row(self, &size, links->gbps[link], links->large_ratio[link]);
		}
	}
}

static bool band_total(struct band_rows *self, size_t g)
{
	const struct np_comm_rank *rank = self->rank;
	const uint32_t *rows = &rank->groups.order[rank->groups.start[g]];
	struct np_comm_sizes sizes = {.v = {0}};
	bool ok = np_comm_sizes_add(&sizes, rank, rows, np_group_size(&rank->groups, g));
	np_comm_sizes_finish(&sizes);
	np_comm_step_text(rank->times->step[rows[0]], self->step);
	self->op = NP_STR("Total Op Info");
	self->group = np_cluster_text(self->cluster, rank->times->group[rows[0]]);
	for (size_t i = 0; ok && i < sizes.v.n; i++)
		band_row(self, &sizes.v.v[i],
		         np_comm_gbps(sizes.v.v[i].transit_mb, sizes.v.v[i].transit_ms), 0);
	np_vec_release(&sizes.v);
	return ok;
}

enum np_status np_comm_bandwidth_rows(const struct np_cluster *cluster, struct np_sink *sink,
                                      struct np_err *err)
{
	struct band_rows self = {.cluster = cluster, .sink = sink};
	bool ok = true;
	for (size_t r = 0; ok && r < cluster->ranks.n; r++) {
		struct np_comm_rank rank;
		ok = np_comm_rank_open(&rank, &cluster->ranks.v[r]);
		self.rank = &rank;
		for (size_t i = 0; ok && i < rank.times->n; i++)
			band_op(&self, i);
		for (size_t g = 0; ok && g < rank.groups.n; g++)
			ok = band_total(&self, g);
		np_comm_rank_close(&rank);
	}
	return ok ? NP_OK : np_err_nomem(err);
}
