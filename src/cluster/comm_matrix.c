#include "cluster/comm_matrix.h"

#include <math.h>
#include <stdlib.h>

#include "cluster/comm_time.h"

const struct np_column np_comm_matrix_columns[10] = {
	{"step", "", NP_COL_TEXT, "step, as in the file of the rank"},
	{"hccl_op_name", "", NP_COL_TEXT, "kind of operator, or Total Op Info: the link's sums"},
	{"group_name", "", NP_COL_TEXT, "decimal hash of the communicator"},
	{"src_rank", "", NP_COL_REAL, "from"},
	{"dst_rank", "", NP_COL_REAL, "to"},
	{"transport_type", "", NP_COL_TEXT, "LOCAL, HCCS, PCIE, RDMA, SIO"},
	{"op_name", "", NP_COL_TEXT, "operator that this kind stands for"},
	{"transit_size", "", NP_COL_REAL, "moved, in MB"},
	{"transit_time", "", NP_COL_REAL, "time of that in ms"},
	{"bandwidth", "", NP_COL_REAL, "size / time in GB/s"},
};

/* ── global ranks ── */

/* A rank has the link to itself under its number in the group. */
static bool learn_ranks(const struct np_cluster *cluster, struct np_map *global)
{
	for (size_t r = 0; r < cluster->ranks.n; r++) {
		const struct np_digest_comm_matrix *m =
			NP_DIGEST_ROWS(&cluster->ranks.v[r], np_digest_comm_matrix);
		for (size_t i = 0; i < m->n; i++) {
			uint64_t key = (uint64_t)m->group[i] << 32 | m->src[i];
			if (m->src[i] == m->dst[i] &&
			    np_map_get(global, key, UINT32_MAX) == UINT32_MAX &&
			    !np_map_put(global, key, (uint32_t)r))
				return false;
		}
	}
	return true;
}

/* -1: nothing tells. The official tool does not get to parallel_group_info. */
static int64_t global_of(const struct np_cluster *cluster, const struct np_map *global,
                         const struct np_comm_group *group, uint32_t local)
{
	uint32_t row = np_map_get(global, (uint64_t)group->name << 32 | local, UINT32_MAX);
	if (row != UINT32_MAX)
		return cluster->ranks.v[row].rank;
	if (cluster->options->compat || !group->info || local >= group->info->n_ranks)
		return -1;
	return group->info->ranks[local];
}

/* ── all links as columns ── */

struct links {
	const struct np_cluster *cluster;
	const struct np_comm_groups *groups;
	size_t n;
	uint32_t *label, *step, *kind, *group, *src, *dst; /* keys; src, dst inside the group */
	uint32_t *rank, *row, *table_row;                  /* where from */
};

enum { N_COLUMNS = 9 };

static bool flatten(struct links *self)
{
	size_t n = 0;
	for (size_t r = 0; r < self->cluster->ranks.n; r++)
		n += NP_DIGEST_ROWS(&self->cluster->ranks.v[r], np_digest_comm_matrix)->n;
	uint32_t **const columns[N_COLUMNS] = {&self->label, &self->step, &self->kind,
	                                       &self->group, &self->src,  &self->dst,
	                                       &self->rank,  &self->row,  &self->table_row};
	bool ok = true;
	for (size_t c = 0; c < N_COLUMNS; c++) {
		*columns[c] = np_realloc(NULL, n + 1, sizeof(uint32_t));
		ok &= *columns[c] != NULL;
	}
	for (size_t r = 0; ok && r < self->cluster->ranks.n; r++) {
		const struct np_digest_comm_matrix *m =
			NP_DIGEST_ROWS(&self->cluster->ranks.v[r], np_digest_comm_matrix);
		for (size_t i = 0; i < m->n; i++, self->n++) {
			size_t g = np_comm_groups_find(self->groups, m->group[i], m->p2p[i]);
			self->label[self->n] = self->groups->v.v[g].label;
			self->step[self->n] = (uint32_t)(uint64_t)m->step[i];
			self->kind[self->n] = m->kind[i];
			self->group[self->n] = m->group[i];
			self->src[self->n] = m->src[i];
			self->dst[self->n] = m->dst[i];
			self->rank[self->n] = (uint32_t)r;
			self->row[self->n] = (uint32_t)i;
			self->table_row[self->n] = (uint32_t)g;
		}
	}
	return ok;
}

static void release(struct links *self)
{
	uint32_t *const columns[N_COLUMNS] = {self->label, self->step, self->kind,
	                                      self->group, self->src,  self->dst,
	                                      self->rank,  self->row,  self->table_row};
	for (size_t c = 0; c < N_COLUMNS; c++)
		np_free(columns[c]);
}

/* ── sums ── */

static double or_0(double value)
{
	return isnan(value) ? 0 : value;
}

static void sum_up(const struct links *self, const uint32_t *rows, size_t n, bool text,
                   struct np_comm_link_sum *out)
{
	for (size_t k = 0; k < n; k++) {
		const struct np_digest_comm_matrix *m = NP_DIGEST_ROWS(
			&self->cluster->ranks.v[self->rank[rows[k]]], np_digest_comm_matrix);
		size_t i = self->row[rows[k]];
		out->mb += or_0(m->transit_mb[i]);
		out->ms += or_0(m->transit_ms[i]);
		if (k > 0 && !text)
			continue;
		out->transport = m->transport[i];
		out->op = m->op[i];
		out->step = m->step[i];
	}
}

/* Groups by first appearance; those of one label and step, and of one kind and group,
 * are brought together. */
struct place {
	uint32_t label, step, first; /* first: where this kind and group begin */
	uint32_t group;              /* number in np_groups */
};

static int by_place(const void *a, const void *b)
{
	const struct place *x = a, *y = b;
	if (x->label != y->label)
		return x->label < y->label ? -1 : 1;
	if (x->step != y->step)
		return x->step < y->step ? -1 : 1;
	if (x->first != y->first)
		return x->first < y->first ? -1 : 1;
	return (x->group > y->group) - (x->group < y->group);
}

/* NULL: out of memory. */
static struct place *arrange(const struct links *self, const struct np_groups *groups)
{
	struct np_groups kinds;
	const uint32_t *const keys[] = {self->label, self->step, self->kind, self->group};
	uint32_t *first = np_realloc(NULL, self->n + 1, sizeof *first);
	struct place *places = np_realloc(NULL, groups->n + 1, sizeof *places);
	bool ok = np_group_rows(self->n, keys, 4, &kinds) && first && places;
	for (size_t g = 0; ok && g < kinds.n; g++)
		for (size_t i = 0; i < np_group_size(&kinds, g); i++)
			first[kinds.order[kinds.start[g] + i]] = (uint32_t)g;
	for (size_t g = 0; ok && g < groups->n; g++) {
		uint32_t row = np_group_row(groups, g);
		places[g] =
			(struct place){self->label[row], self->step[row], first[row], (uint32_t)g};
	}
	if (ok)
		qsort(places, groups->n, sizeof *places, by_place);
	np_free(first);
	np_groups_release(&kinds);
	if (!ok)
		np_free(places);
	return ok ? places : NULL;
}

static bool counts_as_total(np_str kind, bool text)
{
	if (!text)
		return np_str_contains(kind, NP_STR("total"));
	return !np_str_contains(kind, NP_STR("middle")) && !np_str_contains(kind, NP_STR("top")) &&
	       !np_str_contains(kind, NP_STR("bottom"));
}

static struct np_comm_link_sum total_of(const struct np_comm_matrix_sums *self,
                                        const uint32_t *rows, const uint32_t *order, size_t n,
                                        bool text)
{
	struct np_comm_link_sum total = self->v.v[rows[order[0]]];
	for (size_t i = 1; i < n; i++) {
		const struct np_comm_link_sum *link = &self->v.v[rows[order[i]]];
		total.mb += link->mb;
		total.ms += link->ms;
		if (!text)
			continue;
		total.transport = link->transport;
		total.op = link->op;
	}
	total.kind = NP_ID_NONE;
	return total;
}

/* The totals of the label and step whose rows begin at `from`. */
static bool add_totals(struct np_comm_matrix_sums *self, const struct np_cluster *cluster,
                       size_t from, bool text)
{
	size_t end = self->v.n;
	uint32_t *keys = np_realloc(NULL, (end - from) * 3 + 1, sizeof *keys);
	uint32_t *group = keys, *src = keys + (end - from), *dst = keys + 2 * (end - from);
	uint32_t *rows = np_realloc(NULL, end - from + 1, sizeof *rows), n = 0;
	for (size_t i = from; keys && rows && i < end; i++) {
		const struct np_comm_link_sum *link = &self->v.v[i];
		if (!counts_as_total(np_cluster_text(cluster, link->kind), text))
			continue;
		group[n] = link->group;
		src[n] = (uint32_t)link->src;
		dst[n] = (uint32_t)link->dst;
		rows[n++] = (uint32_t)i;
	}
	struct np_groups sums = {0};
	const uint32_t *const columns[] = {group, src, dst};
	bool ok = keys && rows && np_group_rows(n, columns, 3, &sums);
	struct place *places = ok ? np_realloc(NULL, sums.n + 1, sizeof *places) : NULL;
	ok = places != NULL;
	/* those of one group together */
	for (size_t g = 0; ok && g < sums.n; g++)
		places[g] = (struct place){group[np_group_row(&sums, g)], 0, 0, (uint32_t)g};
	if (ok && sums.n > 0)
		qsort(places, sums.n, sizeof *places, by_place);
	for (size_t p = 0; ok && p < sums.n; p++) {
		size_t g = places[p].group;
		struct np_comm_link_sum sum = total_of(self, rows, &sums.order[sums.start[g]],
		                                       np_group_size(&sums, g), text);
		ok = np_vec_push(&self->v, sum);
	}
	np_free(places);
	np_groups_release(&sums);
	np_free(keys);
	np_free(rows);
	return ok;
}

static bool add_sums(struct np_comm_matrix_sums *self, const struct links *links,
                     const struct np_groups *groups, const struct np_map *global, bool text)
{
	struct place *places = arrange(links, groups);
	bool ok = places != NULL;
	size_t from = 0;
	for (size_t p = 0; ok && p < groups->n; p++) {
		const struct place *place = &places[p];
		const uint32_t *rows = &groups->order[groups->start[place->group]];
		const struct np_comm_group *group = &links->groups->v.v[links->table_row[rows[0]]];
		struct np_comm_link_sum sum = {
			.label = place->label,
			.kind = links->kind[rows[0]],
			.group = group->name,
			.src = global_of(links->cluster, global, group, links->src[rows[0]]),
			.dst = global_of(links->cluster, global, group, links->dst[rows[0]])};
		sum_up(links, rows, np_group_size(groups, place->group), text, &sum);
		if (sum.src < 0 || sum.dst < 0)
			self->unmapped++;
		else
			ok = np_vec_push(&self->v, sum);
		bool last = p + 1 == groups->n || places[p + 1].label != place->label ||
		            places[p + 1].step != place->step;
		if (ok && last) {
			ok = add_totals(self, links->cluster, from, text);
			from = self->v.n;
		}
	}
	np_free(places);
	return ok;
}

bool np_comm_matrix_sum(struct np_comm_matrix_sums *self, const struct np_cluster *cluster,
                        const struct np_comm_groups *groups, bool text)
{
	struct links links = {.cluster = cluster, .groups = groups};
	struct np_groups by_link = {0};
	struct np_map global;
	*self = (struct np_comm_matrix_sums){.v = {0}};
	np_map_init(&global);
	bool ok = learn_ranks(cluster, &global) && flatten(&links);
	if (ok) {
		const uint32_t *const keys[] = {links.label, links.step, links.kind,
		                                links.group, links.src,  links.dst};
		ok = np_group_rows(links.n, keys, 6, &by_link) &&
		     add_sums(self, &links, &by_link, &global, text);
	}
	np_groups_release(&by_link);
	np_map_release(&global);
	release(&links);
	return ok;
}

void np_comm_matrix_release(struct np_comm_matrix_sums *self)
{
	np_vec_release(&self->v);
}

void np_comm_matrix_rows(const struct np_cluster *cluster, const struct np_comm_matrix_sums *sums,
                         struct np_sink *sink)
{
	char step[32];
	for (size_t i = 0; i < sums->v.n; i++) {
		const struct np_comm_link_sum *link = &sums->v.v[i];
		bool total = link->kind == NP_ID_NONE;
		np_comm_step_text(link->step, step);
		const struct np_cell cells[] = {
			np_sink_text(np_str_of(step)),
			np_sink_text(total ? NP_STR("Total Op Info")
		                           : np_cluster_text(cluster, link->kind)),
			np_sink_text(np_cluster_text(cluster, link->group)),
			np_sink_real((double)link->src),
			np_sink_real((double)link->dst),
			np_sink_text(np_cluster_text(cluster, link->transport)),
			np_sink_text(np_cluster_text(cluster, link->op)),
			np_sink_real(link->mb),
			np_sink_real(link->ms),
			np_sink_real(link->ms != 0 ? link->mb / link->ms : 0),
		};
		np_sink_row(sink, cells);
	}
}
