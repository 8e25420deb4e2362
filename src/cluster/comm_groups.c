#include "cluster/comm_groups.h"

#include <stdlib.h>
#include <string.h>

#include "cluster/parts.h"

/* ── who has ops of which group ── */

static uint64_t key_of(np_id name, bool p2p)
{
	return (uint64_t)name << 1 | p2p;
}

/* While collecting: ranks grow; they are ascending since the cluster's are. */
struct seen {
	struct np_comm_group group;
	NP_VEC(int64_t) ranks;
};

struct collect {
	struct np_comm_groups *groups;
	NP_VEC(struct seen) v;
};

static bool note(struct collect *self, np_id name, bool p2p, int64_t rank)
{
	uint32_t row = np_map_get(&self->groups->index, key_of(name, p2p), UINT32_MAX);
	if (row == UINT32_MAX) {
		row = (uint32_t)self->v.n;
		if (!np_vec_push(&self->v, (struct seen){.group = {.name = name, .p2p = p2p}}) ||
		    !np_map_put(&self->groups->index, key_of(name, p2p), row))
			return false;
	}
	if (row >= self->v.n)
		return false;
	struct seen *seen = &self->v.v[row];
	if (seen->ranks.n > 0 && seen->ranks.v[seen->ranks.n - 1] == rank)
		return true;
	return np_vec_push(&seen->ranks, rank);
}

static bool note_rank(struct collect *self, const struct np_cluster_rank *rank, unsigned of)
{
	const struct np_digest_comm_times *t = NP_DIGEST_ROWS(rank, np_digest_comm_times);
	const struct np_digest_comm_matrix *m = NP_DIGEST_ROWS(rank, np_digest_comm_matrix);
	bool ok = true;
	/* neighbours mostly are of one group */
	for (size_t i = 0; ok && (of & NP_GROUPS_OF_TIMES) && i < t->n; i++)
		if (i == 0 || t->group[i] != t->group[i - 1] || t->p2p[i] != t->p2p[i - 1])
			ok = note(self, t->group[i], t->p2p[i], rank->rank);
	for (size_t i = 0; ok && (of & NP_GROUPS_OF_MATRIX) && i < m->n; i++)
		if (i == 0 || m->group[i] != m->group[i - 1] || m->p2p[i] != m->p2p[i - 1])
			ok = note(self, m->group[i], m->p2p[i], rank->rank);
	return ok;
}

/* ── what they are called ── */

static int by_rank(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

static bool copy_ranks(struct np_arena *arena, const int64_t *v, size_t n, struct np_ranks *out)
{
	int64_t *copy = np_arena_alloc(arena, n * sizeof *copy);
	if (!copy)
		return false;
	if (n > 0)
		memcpy(copy, v, n * sizeof *copy);
	qsort(copy, n, sizeof *copy, by_rank);
	size_t kept = 0;
	for (size_t i = 0; i < n; i++)
		if (copy[i] >= 0 && (kept == 0 || copy[i] != copy[kept - 1]))
			copy[kept++] = copy[i];
	*out = (struct np_ranks){copy, kept};
	return true;
}

/* The official tool asks the profiler db for the groups wherever there is a database. */
static bool has_groups(const struct np_cluster *cluster, const struct np_capture *capture)
{
	return !(cluster->options->compat && cluster->is_db) || (capture->formats & NP_HAS_DB);
}

/* Group names are decimal hashes in both formats. The first rank that knows one wins. */
static bool name_groups(struct collect *self, const struct np_cluster *cluster)
{
	struct np_map by_hash;
	NP_VEC(const struct np_group *) infos = {0};
	np_map_init(&by_hash);
	bool ok = true;
	for (size_t r = 0; ok && r < cluster->ranks.n; r++) {
		const struct np_capture *capture = cluster->ranks.v[r].capture;
		for (size_t g = 0; ok && has_groups(cluster, capture) && g < capture->n_groups;
		     g++) {
			const struct np_group *info = &capture->groups[g];
			if (np_map_get(&by_hash, info->hash, UINT32_MAX) == UINT32_MAX)
				ok = np_map_put(&by_hash, info->hash, (uint32_t)infos.n) &&
				     np_vec_push(&infos, info);
		}
	}
	for (size_t i = 0; ok && i < self->v.n; i++) {
		struct np_comm_group *group = &self->v.v[i].group;
		uint64_t hash;
		np_str name = np_cluster_text(cluster, group->name);
		if (!np_str_to_u64(name, &hash))
			hash = np_group_hash(name);
		uint32_t row = np_map_get(&by_hash, hash, UINT32_MAX);
		group->info = row < infos.n ? infos.v[row] : NULL;
	}
	np_vec_release(&infos);
	np_map_release(&by_hash);
	return ok;
}

static bool set_ranks(struct collect *self, const struct np_cluster *cluster,
                      struct np_intern *labels)
{
	struct np_buf text = {0};
	bool ok = true;
	for (size_t i = 0; ok && i < self->v.n; i++) {
		struct seen *seen = &self->v.v[i];
		struct np_comm_group *group = &seen->group;
		struct np_arena *arena = &self->groups->arena;
		ok = copy_ranks(arena, seen->ranks.v, seen->ranks.n, &group->seen);
		group->ranks = group->seen;
		if (ok && group->info)
			ok = copy_ranks(arena, group->info->ranks, group->info->n_ranks,
			                &group->ranks);
		if (group->ranks.n == 0) {
			group->shown_empty = cluster->options->compat && cluster->is_db;
			group->ranks = group->seen;
		}
		np_buf_clear(&text);
		np_ranks_print(group->seen, false, &text);
		group->label = np_intern_add(labels, np_buf_str(&text));
		ok = ok && !text.failed && group->label != NP_ID_NONE;
	}
	np_buf_release(&text);
	return ok;
}

/* ── the table ── */

struct sort_row {
	np_str name;
	struct np_comm_group group;
};

static int by_name(const void *a, const void *b)
{
	const struct sort_row *x = a, *y = b;
	if (x->group.p2p != y->group.p2p)
		return x->group.p2p ? 1 : -1;
	return np_str_cmp(x->name, y->name);
}

static bool finish(struct collect *self, const struct np_cluster *cluster)
{
	struct np_comm_groups *groups = self->groups;
	struct sort_row *rows = np_realloc(NULL, self->v.n + 1, sizeof *rows);
	bool ok = rows && np_vec_reserve(&groups->v, self->v.n);
	for (size_t i = 0; ok && i < self->v.n; i++)
		rows[i] = (struct sort_row){np_cluster_text(cluster, self->v.v[i].group.name),
		                            self->v.v[i].group};
	if (ok)
		qsort(rows, self->v.n, sizeof *rows, by_name);
	for (size_t i = 0; ok && i < self->v.n; i++) {
		const struct np_comm_group *group = &rows[i].group;
		groups->v.v[groups->v.n++] = *group;
		ok = np_map_put(&groups->index, key_of(group->name, group->p2p), (uint32_t)i);
	}
	np_free(rows);
	return ok;
}

bool np_comm_groups_make(struct np_comm_groups *self, const struct np_cluster *cluster, unsigned of)
{
	struct collect collect = {.groups = self};
	struct np_intern labels;
	*self = (struct np_comm_groups){.cluster = cluster};
	np_arena_init(&self->arena);
	np_map_init(&self->index);
	bool ok = np_intern_init(&labels);
	for (size_t r = 0; ok && r < cluster->ranks.n; r++)
		ok = note_rank(&collect, &cluster->ranks.v[r], of);
	ok = ok && name_groups(&collect, cluster) && set_ranks(&collect, cluster, &labels) &&
	     finish(&collect, cluster);
	for (size_t i = 0; i < collect.v.n; i++)
		np_vec_release(&collect.v.v[i].ranks);
	np_vec_release(&collect.v);
	np_intern_release(&labels);
	return ok;
}

void np_comm_groups_release(struct np_comm_groups *self)
{
	np_vec_release(&self->v);
	np_map_release(&self->index);
	np_arena_release(&self->arena);
}

size_t np_comm_groups_find(const struct np_comm_groups *self, np_id name, bool p2p)
{
	return np_map_get(&self->index, key_of(name, p2p), UINT32_MAX);
}

void np_ranks_print(struct np_ranks ranks, bool python, struct np_buf *out)
{
	np_buf_add_char(out, '(');
	for (size_t i = 0; i < ranks.n; i++) {
		if (i > 0)
			np_buf_add_cstr(out, python ? ", " : ",");
		np_buf_printf(out, "%lld", (long long)ranks.v[i]);
	}
	np_buf_add_cstr(out, python && ranks.n == 1 ? ",)" : ")");
}
