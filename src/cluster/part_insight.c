#include <math.h>
#include <string.h>

#include "cluster/insight.h"

#define NP_TAG np_digest_insight_time
NP_TABLE_DESC(, np_digest_insight_time, "insight_time", NP_DIGEST_INSIGHT_TIME_COLUMNS)
#undef NP_TAG
#define NP_TAG np_digest_insight_band
NP_TABLE_DESC(, np_digest_insight_band, "insight_band", NP_DIGEST_INSIGHT_BAND_COLUMNS)
#undef NP_TAG
#define NP_TAG np_digest_insight_pack
NP_TABLE_DESC(, np_digest_insight_pack, "insight_pack", NP_DIGEST_INSIGHT_PACK_COLUMNS)
#undef NP_TAG
#define NP_TAG np_digest_insight_rdma
NP_TABLE_DESC(, np_digest_insight_rdma, "insight_rdma", NP_DIGEST_INSIGHT_RDMA_COLUMNS)
#undef NP_TAG
#define NP_TAG np_digest_insight_link
NP_TABLE_DESC(, np_digest_insight_link, "insight_link", NP_DIGEST_INSIGHT_LINK_COLUMNS)
#undef NP_TAG

static const struct np_table_desc *const tables[] = {
	&np_digest_insight_time_desc, &np_digest_insight_band_desc, &np_digest_insight_pack_desc,
	&np_digest_insight_rdma_desc, &np_digest_insight_link_desc, NULL};

void np_cell_step(struct np_table *table, int64_t step)
{
	if (step == NP_NO_I64)
		np_cell_na(table);
	else
		np_cell_int(table, step);
}

double np_insight_small_mb(np_str transport)
{
	return np_str_is(transport, "RDMA") ? 1 : 16;
}

struct np_insight_steps np_insight_steps_of(const struct np_cluster *cluster,
                                            bool (*has)(const struct np_cluster_rank *rank,
                                                        int64_t step))
{
	struct np_insight_steps out = {.step = cluster->options->step};
	for (size_t r = 0; cluster->options->has_step && r < cluster->ranks.n && !out.one; r++)
		out.one = has(&cluster->ranks.v[r], out.step);
	return out;
}

const struct np_group *np_insight_group(const struct np_capture *capture, np_str key)
{
	uint64_t hash;
	if (!np_str_to_u64(key, &hash))
		return NULL;
	for (size_t g = 0; g < capture->n_groups; g++)
		if (capture->groups[g].hash == hash)
			return &capture->groups[g];
	return NULL;
}

static bool is_total(const struct np_profile *profile, uint32_t op)
{
	return np_str_starts(np_intern_get(&profile->strings, op), NP_STR("Total Op Info"));
}

/* The key of the group, whether the table has its name or its key already. */
static bool take_group(const struct np_map_job *job, uint32_t group, np_id *out)
{
	char key[NP_GROUP_KEY_SIZE];
	*out = NP_ID_NONE;
	if (group == NP_ID_NONE)
		return true;
	np_group_key(np_intern_get(&job->profile->strings, group), key);
	*out = np_intern_add(&job->digest->strings, np_str_of(key));
	return *out != NP_ID_NONE;
}

static bool take(const struct np_map_job *job, uint32_t id, np_id *out)
{
	return np_digest_string(job->digest, &job->profile->strings, id, out);
}

/* ── times ── */

static bool take_times(const struct np_map_job *job)
{
	const struct np_comm_time *in = &job->profile->comm_time;
	struct np_digest_insight_time *out =
		np_digest_table(job->digest, &np_digest_insight_time_desc);
	for (size_t i = 0; out && i < in->n; i++) {
		if (is_total(job->profile, in->op[i]))
			continue;
		size_t r = np_rows_add(out, &np_digest_insight_time_desc);
		if (r == SIZE_MAX || !take_group(job, in->group[i], &out->group[r]) ||
		    !take(job, in->op[i], &out->op[r]))
			return false;
		out->step[r] = in->step[i];
		out->p2p[r] = in->p2p[i];
		out->start_us[r] = in->start_us[i];
		out->elapse_ms[r] = in->elapse_ms[i];
		out->transit_ms[r] = in->transit_ms[i];
		out->wait_ms[r] = in->wait_ms[i];
		out->sync_ms[r] = in->sync_ms[i];
		out->idle_ms[r] = in->idle_ms[i];
	}
	return out != NULL;
}

static bool is_p2p(np_str name)
{
	return np_str_icontains(name, NP_STR("send")) || np_str_icontains(name, NP_STR("rec"));
}

/* Without the exporter's summary: elapsed times alone. */
static bool take_ops(const struct np_map_job *job)
{
	const struct np_profile *profile = job->profile;
	const struct np_comm_ops *in = &profile->comm_ops;
	struct np_digest_insight_time *out =
		np_digest_table(job->digest, &np_digest_insight_time_desc);
	for (size_t i = 0; out && i < in->n; i++) {
		size_t r = np_rows_add(out, &np_digest_insight_time_desc);
		if (r == SIZE_MAX || !take_group(job, in->group[i], &out->group[r]) ||
		    !take(job, in->name[i], &out->op[r]))
			return false;
		out->step[r] =
			in->step[i] < profile->steps.n ? profile->steps.id[in->step[i]] : NP_NO_I64;
		out->p2p[r] = is_p2p(np_intern_get(&profile->strings, in->name[i]));
		out->start_us[r] = (double)in->start_ns[i] / 1e3;
		out->elapse_ms[r] = (double)in->dur_ns[i] / 1e6;
		out->transit_ms[r] = out->wait_ms[r] = out->sync_ms[r] = out->idle_ms[r] = NAN;
	}
	return out != NULL;
}

/* ── bandwidth ── */

/* Rows of one key stand near each other: look at the last ones. What is further away gets
 * a second row, which reduce() adds. */
enum { NEAR = 1024 };
#define FIND_BACK(rows, row, match)                                                         \
	for ((row) = (rows)->n; (row) > 0 && (rows)->n - (row) < NEAR && !(match((row)-1)); \
	     (row)--)                                                                       \
		;                                                                           \
	(row) = (row) > 0 && (rows)->n - (row) < NEAR ? (row)-1 : SIZE_MAX

static size_t band_row(struct np_digest_insight_band *out, int64_t step, np_id group,
                       np_id transport)
{
	size_t r;
#define MATCH(i) (out->step[i] == step && out->group[i] == group && out->transport[i] == transport)
	FIND_BACK(out, r, MATCH);
#undef MATCH
	if (r != SIZE_MAX)
		return r;
	r = np_rows_add(out, &np_digest_insight_band_desc);
	if (r == SIZE_MAX)
		return r;
	out->step[r] = step;
	out->group[r] = group;
	out->transport[r] = transport;
	out->mb[r] = out->ms[r] = 0;
	out->ops[r] = out->small_ops[r] = 0;
	return r;
}

static size_t pack_row(struct np_digest_insight_pack *out, int64_t step, np_id group,
                       np_id transport, double size)
{
	size_t r;
#define MATCH(i)                                                                             \
	(out->step[i] == step && out->group[i] == group && out->transport[i] == transport && \
	 out->package_mb[i] == size)
	FIND_BACK(out, r, MATCH);
#undef MATCH
	if (r != SIZE_MAX)
		return r;
	r = np_rows_add(out, &np_digest_insight_pack_desc);
	if (r == SIZE_MAX)
		return r;
	out->step[r] = step;
	out->group[r] = group;
	out->transport[r] = transport;
	out->package_mb[r] = size;
	out->count[r] = out->ms[r] = 0;
	return r;
}

static bool take_rdma(const struct np_map_job *job, struct np_digest_insight_rdma *out, size_t i,
                      np_id group)
{
	const struct np_comm_bandwidth *in = &job->profile->comm_bandwidth;
	size_t r = np_rows_add(out, &np_digest_insight_rdma_desc);
	if (r == SIZE_MAX || !take(job, in->op[i], &out->op[r]))
		return false;
	out->step[r] = in->step[i];
	out->group[r] = group;
	out->ms[r] = in->transit_ms[i];
	return true;
}

/* Where the packets of one operation go; those of one stand together. */
struct bands {
	struct np_digest_insight_band *band;
	struct np_digest_insight_pack *pack;
	struct np_digest_insight_rdma *rdma;
	size_t last; /* row of comm_bandwidth with packets before this one, SIZE_MAX */
	bool last_small;
};

static bool same_op(const struct np_comm_bandwidth *in, size_t a, size_t b)
{
	return a != SIZE_MAX && in->op[a] == in->op[b] && in->group[a] == in->group[b] &&
	       in->step[a] == in->step[b] && in->transport[a] == in->transport[b];
}

static void count_op(const struct np_map_job *job, struct bands *self, size_t i, size_t r)
{
	const struct np_comm_bandwidth *in = &job->profile->comm_bandwidth;
	np_str transport = np_intern_get(&job->profile->strings, in->transport[i]);
	bool small = in->package_mb[i] < np_insight_small_mb(transport);
	bool same = same_op(in, self->last, i);
	self->band->ops[r] += !same;
	self->band->small_ops[r] += small && !(same && self->last_small);
	self->last_small = small || (same && self->last_small);
	self->last = i;
}

static bool take_band_row(const struct np_map_job *job, struct bands *self, size_t i)
{
	const struct np_comm_bandwidth *in = &job->profile->comm_bandwidth;
	np_id group, transport;
	if (!take_group(job, in->group[i], &group) || !take(job, in->transport[i], &transport))
		return false;
	size_t r = band_row(self->band, in->step[i], group, transport);
	if (r == SIZE_MAX)
		return false;
	if (isnan(in->package_mb[i])) {
		self->band->mb[r] += isnan(in->transit_mb[i]) ? 0 : in->transit_mb[i];
		self->band->ms[r] += isnan(in->transit_ms[i]) ? 0 : in->transit_ms[i];
		np_str name = np_intern_get(&job->profile->strings, in->transport[i]);
		return !np_str_is(name, "RDMA") || !(in->transit_ms[i] > 0) ||
		       take_rdma(job, self->rdma, i, group);
	}
	count_op(job, self, i, r);
	r = pack_row(self->pack, in->step[i], group, transport, in->package_mb[i]);
	if (r == SIZE_MAX)
		return false;
	self->pack->count[r] += isnan(in->package_count[i]) ? 0 : in->package_count[i];
	self->pack->ms[r] += isnan(in->package_ms[i]) ? 0 : in->package_ms[i];
	return true;
}

static bool take_bandwidth(const struct np_map_job *job)
{
	const struct np_comm_bandwidth *in = &job->profile->comm_bandwidth;
	struct np_digest *digest = job->digest;
	struct bands bands = {.band = np_digest_table(digest, &np_digest_insight_band_desc),
	                      .pack = np_digest_table(digest, &np_digest_insight_pack_desc),
	                      .rdma = np_digest_table(digest, &np_digest_insight_rdma_desc),
	                      .last = SIZE_MAX};
	bool ok = bands.band && bands.pack && bands.rdma;
	for (size_t i = 0; ok && i < in->n; i++)
		if (!is_total(job->profile, in->op[i]))
			ok = take_band_row(job, &bands, i);
	return ok;
}

/* ── links ── */

static bool take_links(const struct np_map_job *job)
{
	const struct np_comm_matrix *in = &job->profile->comm_matrix;
	struct np_digest_insight_link *out =
		np_digest_table(job->digest, &np_digest_insight_link_desc);
	for (size_t i = 0; out && i < in->n; i++) {
		size_t r = np_rows_add(out, &np_digest_insight_link_desc);
		if (r == SIZE_MAX || !take_group(job, in->group[i], &out->group[r]) ||
		    !take(job, in->kind[i], &out->kind[r]) ||
		    !take(job, in->transport[i], &out->transport[r]))
			return false;
		out->step[r] = in->step[i];
		out->src[r] = in->src[i];
		out->dst[r] = in->dst[i];
		out->mb[r] = in->transit_mb[i];
		out->ms[r] = in->transit_ms[i];
	}
	return out != NULL;
}

static enum np_status map(const struct np_map_job *job, struct np_err *err)
{
	bool summed = job->profile->comm_time.n > 0;
	bool ok = (summed ? take_times(job) : take_ops(job)) && take_bandwidth(job) &&
	          take_links(job);
	return ok ? NP_OK : np_err_nomem(err);
}

const struct np_part np_part_insight_comm = {
	.name = "insight_comm",
	.revision = 1,
	.load = NP_COMM_SUMMARY | NP_COMM_OPS | NP_STEPS,
	.tables = tables,
	.map = map,
};
