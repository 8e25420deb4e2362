#include "cluster/diag_link.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/grouping.h"

#define Z_LIMIT     3.5
#define RATIO_LIMIT 1.3
#define MAD_SCALE   1.4826
/* a spread below this part of the median is rounding, not noise */
#define LEAST_MAD 0.01
/* of the step: what a slow link costs at least to be told */
#define LEAST_COST 0.001
enum { LEAST_LIKE = 4 }; /* links below which there is nothing to compare with */

/* ── the part: totals per link ── */

#define LINK_COLUMNS(X)                                     \
	X(np_id, group, "decimal hash of the communicator") \
	X(np_id, kind, "allreduce, send: the operator")     \
	X(np_id, transport, "HCCS, RDMA, …")                \
	X(int64_t, step, "step id")                         \
	X(uint32_t, src, "rank within the group")           \
	X(uint32_t, dst, "rank within the group")           \
	X(double, mb, "size, 1e6 bytes")                    \
	X(double, ms, "time")

NP_TABLE_STRUCT(np_digest_links, LINK_COLUMNS);
#define NP_TAG np_digest_links
NP_TABLE_DESC(static, np_digest_links, "links", LINK_COLUMNS)
#undef NP_TAG

/* "allreduce-total" → "allreduce"; other kinds (top1, middle, bottom1) are picks of it. */
static bool is_total(np_str kind, np_str *op)
{
	for (size_t i = 0; i < kind.len; i++)
		if (kind.ptr[i] == '-') {
			*op = np_str_sub(kind, 0, i);
			return np_str_is(np_str_from(kind, i + 1), "total");
		}
	*op = kind; /* the old format has plain names */
	return !np_str_istarts(kind, NP_STR("total"));
}

static enum np_status map(const struct np_map_job *job, struct np_err *err)
{
	const struct np_comm_matrix *from = &job->profile->comm_matrix;
	const struct np_intern *strings = &job->profile->strings;
	struct np_digest_links *rows = np_digest_table(job->digest, &np_digest_links_desc);
	const struct np_cluster_options *options = job->options;
	for (size_t i = 0; i < from->n; i++) {
		np_str op;
		if (!is_total(np_intern_get(strings, from->kind[i]), &op) ||
		    !(from->transit_mb[i] > 0 && from->transit_ms[i] > 0) ||
		    from->src[i] == from->dst[i] ||
		    (options->has_step && from->step[i] != options->step))
			continue;
		size_t r = np_rows_add(rows, &np_digest_links_desc);
		if (r == SIZE_MAX)
			return np_err_nomem(err);
		rows->kind[r] = np_intern_add(&job->digest->strings, op);
		rows->step[r] = from->step[i];
		rows->src[r] = from->src[i];
		rows->dst[r] = from->dst[i];
		rows->mb[r] = from->transit_mb[i];
		rows->ms[r] = from->transit_ms[i];
		if (rows->kind[r] == NP_ID_NONE ||
		    !np_digest_string(job->digest, strings, from->group[i], &rows->group[r]) ||
		    !np_digest_string(job->digest, strings, from->transport[i],
		                      &rows->transport[r]))
			return np_err_nomem(err);
	}
	return NP_OK;
}

static const struct np_table_desc *const tables[] = {&np_digest_links_desc, NULL};

const struct np_part np_part_links = {
	.name = "links",
	.revision = 1,
	.load = NP_COMM_SUMMARY,
	.by_options = true,
	.tables = tables,
	.map = map,
};

/* ── all links, flat ── */

struct flat {
	struct np_diagnosis *diag;
	size_t n;
	uint32_t *src, *dst, *transport, *kind, *name, *step; /* keys; name: of the group */
	double *mb, *ms;
	struct np_map steps;
};

static void release(struct flat *self)
{
	np_free(self->src);
	np_free(self->dst);
	np_free(self->transport);
	np_free(self->kind);
	np_free(self->name);
	np_free(self->step);
	np_free(self->mb);
	np_free(self->ms);
	np_map_release(&self->steps);
}

static bool allocate(struct flat *self, size_t n)
{
	self->src = np_realloc(NULL, n + 1, sizeof(uint32_t));
	self->dst = np_realloc(NULL, n + 1, sizeof(uint32_t));
	self->transport = np_realloc(NULL, n + 1, sizeof(uint32_t));
	self->kind = np_realloc(NULL, n + 1, sizeof(uint32_t));
	self->name = np_realloc(NULL, n + 1, sizeof(uint32_t));
	self->step = np_realloc(NULL, n + 1, sizeof(uint32_t));
	self->mb = np_realloc(NULL, n + 1, sizeof(double));
	self->ms = np_realloc(NULL, n + 1, sizeof(double));
	np_map_init(&self->steps);
	return self->src && self->dst && self->transport && self->kind && self->name &&
	       self->step && self->mb && self->ms;
}

/* The recorded group of a hash; groups of the collectives know theirs. */
static const struct np_diag_group *group_of(const struct np_diagnosis *self, np_id key)
{
	for (size_t g = 0; g < self->groups.n; g++)
		if (self->groups.v[g].key == key)
			return &self->groups.v[g];
	return NULL;
}

/* Rank id of a rank within the group: as recorded, else by order of those that are there. */
static bool global_rank(const struct np_diagnosis *self, const struct np_diag_group *group,
                        uint32_t local, uint32_t *out)
{
	int64_t rank = -1;
	if (group && group->recorded && local < group->recorded->n_ranks)
		rank = group->recorded->ranks[local];
	else if (group && !group->recorded && local < group->n_ranks)
		rank = self->cluster->ranks.v[group->ranks[local]].rank;
	*out = (uint32_t)rank;
	return rank >= 0 && rank < UINT32_MAX;
}

static bool dense_step(struct flat *self, int64_t step, uint32_t *out)
{
	*out = np_map_get(&self->steps, (uint64_t)step, NP_DIAG_NONE);
	if (*out != NP_DIAG_NONE)
		return true;
	*out = (uint32_t)self->steps.n;
	return np_map_put(&self->steps, (uint64_t)step, *out);
}

static bool collect(struct flat *self, struct np_links *out)
{
	struct np_diagnosis *diag = self->diag;
	struct np_cluster *cluster = diag->cluster;
	size_t n = 0;
	for (size_t r = 0; r < cluster->ranks.n; r++)
		n += NP_DIGEST_ROWS(&cluster->ranks.v[r], np_digest_links)->n;
	if (!allocate(self, n))
		return false;
	np_id last_key = NP_ID_NONE;
	const struct np_diag_group *group = NULL;
	for (size_t r = 0; r < cluster->ranks.n; r++) {
		const struct np_digest_links *rows =
			NP_DIGEST_ROWS(&cluster->ranks.v[r], np_digest_links);
		for (size_t i = 0; i < rows->n; i++) {
			size_t at = self->n;
			if (rows->group[i] != last_key)
				group = group_of(diag, rows->group[i]);
			last_key = rows->group[i];
			if (!global_rank(diag, group, rows->src[i], &self->src[at]) ||
			    !global_rank(diag, group, rows->dst[i], &self->dst[at])) {
				out->n_unmapped++;
				continue;
			}
			np_str name = np_str_of(group->recorded ? group->recorded->name : "");
			self->name[at] = np_intern_add(&cluster->strings, name);
			self->kind[at] = rows->kind[i];
			self->transport[at] = rows->transport[i];
			self->mb[at] = rows->mb[i];
			self->ms[at] = rows->ms[i];
			if (self->name[at] == NP_ID_NONE ||
			    !dense_step(self, rows->step[i], &self->step[at]))
				return false;
			self->n++;
		}
	}
	return true;
}

/* ── judging ── */

struct link {
	uint32_t row; /* in flat, the first of it */
	double cost;  /* ms per MB */
	double mb, ms;
	size_t start, end; /* in the groups' order */
};

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double median_of(double *v, size_t n)
{
	qsort(v, n, sizeof *v, by_value);
	return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

struct judge {
	const struct flat *flat;
	const struct np_groups *links; /* rows by link */
	const struct link *link;
	double *scratch;
	struct np_links *out;
};

/* In how many steps the link took longer than the limit says, of those that it was used in. */
static void count_steps(const struct judge *self, const struct link *link, double limit,
                        struct np_slow_link *out)
{
	const uint32_t *rows = self->links->order;
	for (size_t i = link->start; i < link->end; i++) {
		out->of++;
		out->steps += self->flat->ms[rows[i]] / self->flat->mb[rows[i]] > limit;
	}
}

/* The links order[0 … n - 1] are alike. */
static bool judge_like(struct judge *self, const uint32_t *order, size_t n)
{
	if (n < LEAST_LIKE)
		return true;
	for (size_t i = 0; i < n; i++)
		self->scratch[i] = self->link[order[i]].cost;
	double typical = median_of(self->scratch, n);
	for (size_t i = 0; i < n; i++)
		self->scratch[i] = fabs(self->link[order[i]].cost - typical);
	double mad = median_of(self->scratch, n);
	mad = MAD_SCALE * (mad > LEAST_MAD * typical ? mad : LEAST_MAD * typical);
	for (size_t i = 0; i < n; i++) {
		const struct link *link = &self->link[order[i]];
		struct np_slow_link slow = {.z = (link->cost - typical) / mad,
		                            .ratio = link->cost / typical};
		if (!(slow.z > Z_LIMIT && slow.ratio > RATIO_LIMIT))
			continue;
		count_steps(self, link, typical * RATIO_LIMIT, &slow);
		if (slow.steps * 2 < slow.of)
			continue;
		slow.src = self->flat->src[link->row];
		slow.dst = self->flat->dst[link->row];
		slow.transport = self->flat->transport[link->row];
		slow.kind = self->flat->kind[link->row];
		slow.group =
			np_cluster_text(self->flat->diag->cluster, self->flat->name[link->row]).ptr;
		slow.gbps = 1 / link->cost;
		slow.typical_gbps = 1 / typical;
		slow.extra_us = (link->ms - link->mb * typical) * 1000 /
		                (double)(slow.of > 0 ? slow.of : 1);
		if (slow.extra_us * 1000 * (double)self->flat->diag->n_steps <
		    LEAST_COST * (double)self->flat->diag->total)
			continue;
		if (!np_vec_push(&self->out->slow, slow))
			return false;
	}
	return true;
}

static int by_extra(const void *a, const void *b)
{
	const struct np_slow_link *x = a, *y = b;
	if (x->extra_us != y->extra_us)
		return x->extra_us > y->extra_us ? -1 : 1;
	if (x->src != y->src)
		return x->src < y->src ? -1 : 1;
	return (x->dst > y->dst) - (x->dst < y->dst);
}

static bool judge_all(struct judge *self, const struct link *link)
{
	const struct flat *flat = self->flat;
	size_t n = self->links->n;
	uint32_t *keys[3] = {NULL, NULL, NULL};
	struct np_groups like = {0};
	bool ok = true;
	for (int k = 0; k < 3; k++) {
		keys[k] = np_realloc(NULL, n + 1, sizeof(uint32_t));
		ok &= keys[k] != NULL;
	}
	for (size_t i = 0; ok && i < n; i++) {
		keys[0][i] = flat->transport[link[i].row];
		keys[1][i] = flat->kind[link[i].row];
		keys[2][i] = flat->name[link[i].row];
	}
	ok = ok && np_group_rows(n, (const uint32_t *const *)keys, 3, &like);
	for (size_t g = 0; ok && g < like.n; g++)
		ok = judge_like(self, &like.order[like.start[g]], np_group_size(&like, g));
	for (int k = 0; k < 3; k++)
		np_free(keys[k]);
	np_groups_release(&like);
	return ok;
}

/* ── what slow links have in common ── */

static const char *host_of(const struct np_diagnosis *self, int64_t rank)
{
	size_t row = np_cluster_find_rank(self->cluster, rank);
	if (row == SIZE_MAX)
		return "";
	const struct np_capture *capture = self->cluster->ranks.v[row].capture;
	return *capture->host ? capture->host : capture->host_uid;
}

static bool same_pair(const struct np_slow_link *a, const struct np_slow_link *b)
{
	return (a->src == b->src && a->dst == b->dst) || (a->src == b->dst && a->dst == b->src);
}

static bool touches(const struct np_slow_link *link, int64_t rank)
{
	return link->src == rank || link->dst == rank;
}

/* One host or one rank that all slow links touch. */
static void find_end(const struct np_diagnosis *self, struct np_links *out, int64_t rank)
{
	enum { LEAST_SLOW = 3 };
	const struct np_slow_link *v = out->slow.v;
	const char *host = host_of(self, rank);
	bool by_rank = true, by_host = *host != '\0' && self->domains.n > 1;
	for (size_t i = 1; i < out->slow.n; i++) {
		by_rank &= touches(&v[i], rank);
		by_host &= strcmp(host_of(self, v[i].src), host) == 0 ||
		           strcmp(host_of(self, v[i].dst), host) == 0;
	}
	if (out->slow.n >= LEAST_SLOW && by_rank) {
		out->share = NP_SHARE_RANK;
		out->rank = rank;
	} else if (out->slow.n >= LEAST_SLOW && by_host && out->share == NP_SHARE_NONE) {
		out->share = NP_SHARE_HOST;
		out->host = host;
	}
}

static void find_common(const struct np_diagnosis *self, struct np_links *out)
{
	const struct np_slow_link *v = out->slow.v;
	bool pair = true;
	for (size_t i = 1; i < out->slow.n; i++)
		pair &= same_pair(&v[0], &v[i]);
	if (out->slow.n == 0)
		return;
	if (pair) {
		out->share = NP_SHARE_PAIR;
		return;
	}
	find_end(self, out, v[0].src);
	if (out->share != NP_SHARE_RANK)
		find_end(self, out, v[0].dst);
}

static int by_ends(const void *a, const void *b)
{
	const struct np_slow_link *x = a, *y = b;
	if (x->src != y->src)
		return x->src < y->src ? -1 : 1;
	if (x->dst != y->dst)
		return x->dst < y->dst ? -1 : 1;
	return (x->extra_us < y->extra_us) - (x->extra_us > y->extra_us);
}

/* A link carries several kinds of traffic, one after the other. */
static void find_cost(struct np_links *out)
{
	double sum = 0;
	if (out->slow.n > 0)
		qsort(out->slow.v, out->slow.n, sizeof *out->slow.v, by_ends);
	for (size_t i = 0; i < out->slow.n; i++) {
		const struct np_slow_link *link = &out->slow.v[i];
		bool same = i > 0 && link[-1].src == link->src && link[-1].dst == link->dst;
		sum = same ? sum + link->extra_us : link->extra_us;
		out->cost_us = sum > out->cost_us ? sum : out->cost_us;
	}
}

bool np_diag_links(struct np_diagnosis *self, struct np_links *out)
{
	struct flat flat = {.diag = self};
	struct np_groups links = {0};
	*out = (struct np_links){.share = NP_SHARE_NONE};
	bool ok = collect(&flat, out);
	const uint32_t *const keys[] = {flat.src, flat.dst, flat.transport, flat.kind, flat.name};
	ok = ok && np_group_rows(flat.n, keys, 5, &links);
	struct link *link = ok ? np_calloc(links.n + 1, sizeof *link) : NULL;
	struct judge judge = {.flat = &flat,
	                      .links = &links,
	                      .link = link,
	                      .out = out,
	                      .scratch = ok ? np_calloc(links.n + 1, sizeof(double)) : NULL};
	for (size_t g = 0; link && g < links.n; g++) {
		link[g] = (struct link){.row = np_group_row(&links, g),
		                        .start = links.start[g],
		                        .end = links.start[g + 1]};
		for (size_t i = link[g].start; i < link[g].end; i++) {
			link[g].mb += flat.mb[links.order[i]];
			link[g].ms += flat.ms[links.order[i]];
		}
		link[g].cost = link[g].ms / link[g].mb;
	}
	ok = ok && link && judge.scratch && judge_all(&judge, link);
	out->n_links = links.n;
	find_cost(out);
	if (out->slow.n > 0)
		qsort(out->slow.v, out->slow.n, sizeof *out->slow.v, by_extra);
	find_common(self, out);
	np_free(link);
	np_free(judge.scratch);
	np_groups_release(&links);
	release(&flat);
	return ok;
}
