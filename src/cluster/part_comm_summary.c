/*
 * The exporter's summaries of communication, packed: bandwidth as rows per op,
 * link and packet size (profile) becomes three tables without repeated keys.
 */
#include <math.h>
#include <string.h>

#include "cluster/comm_kinds.h"
#include "cluster/grouping.h"
#include "cluster/parts.h"

#define NP_TAG np_digest_comm_times
NP_TABLE_DESC(, np_digest_comm_times, "comm_times", NP_DIGEST_COMM_TIMES_COLUMNS)
#undef NP_TAG
#define NP_TAG np_digest_comm_links
NP_TABLE_DESC(, np_digest_comm_links, "comm_links", NP_DIGEST_COMM_LINKS_COLUMNS)
#undef NP_TAG
#define NP_TAG np_digest_comm_packages
NP_TABLE_DESC(, np_digest_comm_packages, "comm_packages", NP_DIGEST_COMM_PACKAGES_COLUMNS)
#undef NP_TAG
#define NP_TAG np_digest_comm_matrix
NP_TABLE_DESC(, np_digest_comm_matrix, "comm_matrix", NP_DIGEST_COMM_MATRIX_COLUMNS)
#undef NP_TAG

/*
 * Rows of comm_time and, behind them, of comm_bandwidth, brought together by op. The
 * rows of one op lie beside each other in both, so nearly all are found beside the last.
 */
struct ops {
	const struct np_profile *profile;
	const struct np_intern *from;
	struct np_digest *digest;
	struct np_digest_comm_times *times;
	struct np_digest_comm_links *links;
	struct np_digest_comm_packages *packages;
	size_t n_times, n; /* rows of comm_time, and all */
	uint32_t *step, *p2p, *op, *group, *transport;
};

static bool make_columns(struct ops *self)
{
	const struct np_comm_time *t = &self->profile->comm_time;
	const struct np_comm_bandwidth *b = &self->profile->comm_bandwidth;
	size_t bytes = (t->n + b->n + 1) * sizeof(uint32_t);
	self->n_times = t->n;
	self->n = t->n + b->n;
	self->step = np_alloc(bytes);
	self->p2p = np_alloc(bytes);
	self->op = np_alloc(bytes);
	self->group = np_alloc(bytes);
	self->transport = np_alloc(bytes);
	if (!self->step || !self->p2p || !self->op || !self->group || !self->transport)
		return false;
	for (size_t i = 0; i < self->n; i++) {
		bool time = i < t->n;
		size_t k = time ? i : i - t->n;
		/* the low half tells steps apart as long as there are fewer than 2^32 */
		self->step[i] = (uint32_t)(uint64_t)(time ? t->step[k] : b->step[k]);
		self->p2p[i] = time ? t->p2p[k] : b->p2p[k];
		self->op[i] = time ? t->op[k] : b->op[k];
		self->group[i] = time ? t->group[k] : b->group[k];
		self->transport[i] = time ? NP_ID_NONE : b->transport[k];
	}
	return true;
}

static void release(struct ops *self)
{
	np_free(self->step);
	np_free(self->p2p);
	np_free(self->op);
	np_free(self->group);
	np_free(self->transport);
}

static bool add_time(struct ops *self, uint32_t row)
{
	const struct np_comm_time *t = &self->profile->comm_time;
	const struct np_comm_bandwidth *b = &self->profile->comm_bandwidth;
	struct np_digest_comm_times *to = self->times;
	size_t r = np_rows_add(to, &np_digest_comm_times_desc);
	if (r == SIZE_MAX)
		return false;
	bool time = row < self->n_times;
	size_t k = time ? row : row - self->n_times;
	to->step[r] = time ? t->step[k] : b->step[k];
	to->p2p[r] = (uint8_t)self->p2p[row];
	to->start_us[r] = time ? t->start_us[k] : NAN;
	to->elapse_ms[r] = time ? t->elapse_ms[k] : NAN;
	to->transit_ms[r] = time ? t->transit_ms[k] : NAN;
	to->wait_ms[r] = time ? t->wait_ms[k] : NAN;
	to->sync_ms[r] = time ? t->sync_ms[k] : NAN;
	to->idle_ms[r] = time ? t->idle_ms[k] : NAN;
	return np_digest_string(self->digest, self->from, self->op[row], &to->op[r]) &&
	       np_digest_string(self->digest, self->from, self->group[row], &to->group[r]);
}

static bool add_link(struct ops *self, size_t row)
{
	const struct np_comm_bandwidth *b = &self->profile->comm_bandwidth;
	struct np_digest_comm_links *to = self->links;
	size_t r = np_rows_add(to, &np_digest_comm_links_desc);
	if (r == SIZE_MAX)
		return false;
	to->transit_mb[r] = b->transit_mb[row];
	to->transit_ms[r] = b->transit_ms[row];
	to->gbps[r] = b->gbps[row];
	to->large_ratio[r] = b->large_ratio[row];
	return np_digest_string(self->digest, self->from, b->transport[row], &to->transport[r]);
}

static bool add_package(struct ops *self, size_t row)
{
	const struct np_comm_bandwidth *b = &self->profile->comm_bandwidth;
	struct np_digest_comm_packages *to = self->packages;
	size_t r = np_rows_add(to, &np_digest_comm_packages_desc);
	if (r == SIZE_MAX)
		return false;
	to->package_mb[r] = b->package_mb[row];
	to->count[r] = b->package_count[row];
	to->package_ms[r] = b->package_ms[row];
	return true;
}

/* The links of one op: rows[] are its rows of comm_bandwidth, in file order. A link's
 * rows need not lie together, but there are five links at most: look from each first
 * row ahead. */
static bool add_links(struct ops *self, const uint32_t *rows, size_t n)
{
	const uint32_t *transport = self->transport;
	for (size_t i = 0; i < n; i++) {
		bool first = true;
		for (size_t k = i; k-- > 0 && first;)
			first = transport[rows[k]] != transport[rows[i]];
		if (!first)
			continue;
		if (!add_link(self, rows[i] - self->n_times))
			return false;
		for (size_t k = i; k < n; k++) {
			size_t row = rows[k] - self->n_times;
			if (transport[rows[k]] == transport[rows[i]] &&
			    !isnan(self->profile->comm_bandwidth.package_mb[row]) &&
			    !add_package(self, row))
				return false;
		}
		self->links->packages_end[self->links->n - 1] = (uint32_t)self->packages->n;
	}
	return true;
}

/* The exporter's own totals are made anew, over all ranks. */
static bool is_total(const struct ops *self, uint32_t row)
{
	return np_str_istarts(np_intern_get(self->from, self->op[row]), NP_STR("total"));
}

/* Exactly as much as is needed: thousands of digests are kept. */
static bool reserve(struct ops *self)
{
	const struct np_comm_bandwidth *b = &self->profile->comm_bandwidth;
	size_t links = 0;
	for (size_t i = 0; i < b->n; i++)
		links += isnan(b->package_mb[i]) ? 1 : 0;
	return np_rows_reserve(self->times, &np_digest_comm_times_desc, self->n_times) &&
	       np_rows_reserve(self->links, &np_digest_comm_links_desc, links) &&
	       np_rows_reserve(self->packages, &np_digest_comm_packages_desc, b->n - links);
}

static bool add_ops(struct ops *self)
{
	struct np_groups groups;
	const uint32_t *const keys[] = {self->step, self->p2p, self->op, self->group};
	bool ok = np_group_rows(self->n, keys, 4, &groups);
	for (size_t g = 0; ok && g < groups.n; g++) {
		const uint32_t *rows = &groups.order[groups.start[g]];
		size_t n = np_group_size(&groups, g), n_times = 0;
		if (is_total(self, rows[0]))
			continue;
		/* the same op twice is two ops; links go to the last of them */
		while (ok && n_times < n && rows[n_times] < self->n_times) {
			ok = add_time(self, rows[n_times++]);
			if (ok)
				self->times->links_end[self->times->n - 1] =
					(uint32_t)self->links->n;
		}
		if (ok && n_times == 0)
			ok = add_time(self, rows[0]);
		ok = ok && add_links(self, rows + n_times, n - n_times);
		if (ok)
			self->times->links_end[self->times->n - 1] = (uint32_t)self->links->n;
	}
	np_groups_release(&groups);
	return ok;
}

static enum np_status map_times(const struct np_map_job *job, struct np_err *err)
{
	struct ops ops = {
		.profile = job->profile,
		.from = &job->profile->strings,
		.digest = job->digest,
		.times = np_digest_table(job->digest, &np_digest_comm_times_desc),
		.links = np_digest_table(job->digest, &np_digest_comm_links_desc),
		.packages = np_digest_table(job->digest, &np_digest_comm_packages_desc),
	};
	bool ok = ops.times && ops.links && ops.packages && make_columns(&ops) && reserve(&ops) &&
	          add_ops(&ops);
	release(&ops);
	return ok ? NP_OK : np_err_nomem(err);
}

static enum np_status map_matrix(const struct np_map_job *job, struct np_err *err)
{
	const struct np_comm_matrix *m = &job->profile->comm_matrix;
	const struct np_intern *from = &job->profile->strings;
	struct np_digest_comm_matrix *to =
		np_digest_table(job->digest, &np_digest_comm_matrix_desc);
	if (!to || !np_rows_reserve(to, &np_digest_comm_matrix_desc, m->n))
		return np_err_nomem(err);
	for (size_t i = 0; i < m->n; i++) {
		if (!np_comm_is_kind(np_intern_get(from, m->kind[i])))
			continue;
		size_t r = np_rows_add(to, &np_digest_comm_matrix_desc);
		if (r == SIZE_MAX)
			return np_err_nomem(err);
		to->step[r] = m->step[i];
		to->p2p[r] = m->p2p[i];
		to->src[r] = m->src[i];
		to->dst[r] = m->dst[i];
		to->transit_mb[r] = m->transit_mb[i];
		to->transit_ms[r] = m->transit_ms[i];
		if (!np_digest_string(job->digest, from, m->kind[i], &to->kind[r]) ||
		    !np_digest_string(job->digest, from, m->group[i], &to->group[r]) ||
		    !np_digest_string(job->digest, from, m->transport[i], &to->transport[r]) ||
		    !np_digest_string(job->digest, from, m->op[i], &to->op[r]))
			return np_err_nomem(err);
	}
	return np_comm_kinds_add(m, from, job->digest, to) ? NP_OK : np_err_nomem(err);
}

static const struct np_table_desc *const time_tables[] = {&np_digest_comm_times_desc,
                                                          &np_digest_comm_links_desc,
                                                          &np_digest_comm_packages_desc, NULL};
static const struct np_table_desc *const matrix_tables[] = {&np_digest_comm_matrix_desc, NULL};

const struct np_part np_part_comm_times = {
	.name = "comm_times",
	.revision = 1,
	.load = NP_COMM_SUMMARY,
	.tables = time_tables,
	.map = map_times,
};

const struct np_part np_part_comm_matrix = {
	.name = "comm_matrix",
	.revision = 1,
	.load = NP_COMM_SUMMARY,
	.tables = matrix_tables,
	.map = map_matrix,
};
