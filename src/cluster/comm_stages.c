/* Pipeline stages and the position of a rank (cluster_and_advisor.md §2.3). */
#include <stdlib.h>
#include <string.h>

#include "cluster/comm_groups.h"

/* ── sets of ranks that are tied together ── */

struct forest {
	int64_t *rank; /* ascending */
	uint32_t *parent;
	size_t n;
};

static size_t row_of(const struct forest *self, int64_t rank)
{
	size_t low = 0, high = self->n;
	while (low < high) {
		size_t mid = low + (high - low) / 2;
		if (self->rank[mid] < rank)
			low = mid + 1;
		else
			high = mid;
	}
	return low < self->n && self->rank[low] == rank ? low : SIZE_MAX;
}

static uint32_t root_of(struct forest *self, uint32_t row)
{
	while (self->parent[row] != row) {
		self->parent[row] = self->parent[self->parent[row]];
		row = self->parent[row];
	}
	return row;
}

/* The smaller row becomes the root, so a root is the first rank of its set. */
static void tie(struct forest *self, struct np_ranks ranks)
{
	for (size_t i = 1; i < ranks.n; i++) {
		uint32_t a = root_of(self, (uint32_t)row_of(self, ranks.v[0]));
		uint32_t b = root_of(self, (uint32_t)row_of(self, ranks.v[i]));
		if (a < b)
			self->parent[b] = a;
		else
			self->parent[a] = b;
	}
}

static int by_rank(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

static bool plant(struct forest *self, const struct np_comm_groups *groups)
{
	size_t n = 0;
	for (size_t g = 0; g < groups->v.n; g++)
		n += groups->v.v[g].ranks.n;
	*self = (struct forest){.rank = np_realloc(NULL, n + 1, sizeof *self->rank),
	                        .parent = np_realloc(NULL, n + 1, sizeof *self->parent)};
	if (!self->rank || !self->parent || n >= UINT32_MAX)
		return false;
	for (size_t g = 0; g < groups->v.n; g++) {
		struct np_ranks ranks = groups->v.v[g].ranks;
		memcpy(self->rank + self->n, ranks.v, ranks.n * sizeof *ranks.v);
		self->n += ranks.n;
	}
	qsort(self->rank, self->n, sizeof *self->rank, by_rank);
	size_t kept = 0;
	for (size_t i = 0; i < self->n; i++)
		if (kept == 0 || self->rank[i] != self->rank[kept - 1])
			self->rank[kept++] = self->rank[i];
	self->n = kept;
	for (size_t i = 0; i < kept; i++)
		self->parent[i] = (uint32_t)i;
	return true;
}

static void fell(struct forest *self)
{
	np_free(self->rank);
	np_free(self->parent);
}

/* ── stages ── */

static bool is_pipeline(const struct np_comm_group *group)
{
	return group->p2p && group->info &&
	       np_str_istarts(np_str_of(group->info->name), NP_STR("pp"));
}

/* At most one rank of each chain; mark[] remembers by which group a chain was met. Ranks
 * in no chain are chains of their own. */
static bool is_across(struct forest *chains, struct np_ranks ranks, uint32_t *mark, uint32_t id)
{
	for (size_t i = 0; i < ranks.n; i++) {
		uint32_t root = root_of(chains, (uint32_t)row_of(chains, ranks.v[i]));
		if (mark[root] == id)
			return false;
		mark[root] = id;
	}
	return true;
}

/* The sets of the forest with ranks that `in` marks. */
static bool harvest(struct np_pipe *self, struct forest *forest, const bool *in)
{
	size_t *count = np_calloc(forest->n + 1, sizeof *count);
	int64_t **to = np_calloc(forest->n + 1, sizeof *to);
	bool ok = count && to;
	for (size_t i = 0; ok && i < forest->n; i++)
		count[root_of(forest, (uint32_t)i)] += in[i];
	for (size_t i = 0; ok && i < forest->n; i++) {
		if (count[i] == 0)
			continue;
		to[i] = np_arena_alloc(&self->arena, count[i] * sizeof **to);
		ok = to[i] && np_vec_push(&self->v, (struct np_ranks){to[i], count[i]});
	}
	for (size_t i = 0; ok && i < forest->n; i++)
		if (in[i])
			*to[root_of(forest, (uint32_t)i)]++ = forest->rank[i];
	np_free(count);
	np_free(to);
	return ok;
}

static bool grow(struct np_pipe *self, const struct np_comm_groups *groups, struct forest *chains,
                 struct forest *stages)
{
	uint32_t *mark = np_calloc(chains->n + 1, sizeof *mark);
	bool *in = np_calloc(chains->n + 1, sizeof *in);
	bool ok = mark && in, any = false;
	for (size_t g = 0; ok && g < groups->v.n; g++)
		if (is_pipeline(&groups->v.v[g])) {
			tie(chains, groups->v.v[g].ranks);
			any = true;
		}
	for (size_t g = 0; ok && any && g < groups->v.n; g++) {
		struct np_ranks ranks = groups->v.v[g].ranks;
		if (groups->v.v[g].p2p || !is_across(chains, ranks, mark, (uint32_t)g + 1))
			continue;
		tie(stages, ranks);
		for (size_t i = 0; i < ranks.n; i++)
			in[row_of(stages, ranks.v[i])] = true;
	}
	ok = ok && harvest(self, stages, in);
	np_free(mark);
	np_free(in);
	return ok;
}

bool np_pipe_make(struct np_pipe *self, const struct np_comm_groups *groups)
{
	struct forest chains = {0}, stages = {0};
	*self = (struct np_pipe){.v = {0}};
	np_arena_init(&self->arena);
	bool ok = plant(&chains, groups) && plant(&stages, groups) &&
	          grow(self, groups, &chains, &stages);
	fell(&chains);
	fell(&stages);
	return ok;
}

void np_pipe_release(struct np_pipe *self)
{
	np_vec_release(&self->v);
	np_arena_release(&self->arena);
}

size_t np_pipe_of(const struct np_pipe *self, int64_t rank)
{
	for (size_t s = 0; s < self->v.n; s++)
		if (bsearch(&rank, self->v.v[s].v, self->v.v[s].n, sizeof rank, by_rank))
			return s;
	return SIZE_MAX;
}

/* ── the position of a rank ── */

/* A size that is not recorded is 1; what cannot be a size is 0. */
static int64_t size_of(int64_t recorded)
{
	enum { MOST = 1 << 24 };
	if (recorded == NP_NO_I64)
		return 1;
	return recorded < 1 || recorded > MOST ? 0 : recorded;
}

/* Their product is the world's size, which they give where it is not recorded. */
static bool fits(struct np_parallel *p)
{
	int64_t world = 1;
	const int64_t sizes[] = {p->tp, p->pp, p->dp, p->cp};
	for (size_t i = 0; i < 4; i++)
		if (sizes[i] == 0 || __builtin_mul_overflow(world, sizes[i], &world))
			return false;
	if (p->world == NP_NO_I64)
		p->world = world;
	return world == p->world;
}

enum np_position_state np_positions_of(const struct np_cluster *cluster, struct np_parallel *out)
{
	const struct np_capture *known = NULL;
	for (size_t r = 0; r < cluster->ranks.n && !known; r++)
		if (*cluster->ranks.v[r].capture->distributed_args)
			known = cluster->ranks.v[r].capture;
	if (!known)
		return NP_POSITIONS_UNKNOWN;
	const struct np_parallel *p = &known->parallel;
	*out = (struct np_parallel){.tp = size_of(p->tp),
	                            .pp = size_of(p->pp),
	                            .dp = size_of(p->dp),
	                            .cp = size_of(p->cp),
	                            .ep = size_of(p->ep),
	                            .world = p->world};
	if (p->tp == NP_NO_I64 && p->pp == NP_NO_I64 && p->dp == NP_NO_I64)
		return NP_POSITIONS_UNKNOWN;
	if (cluster->options->compat && out->cp > 1)
		return NP_POSITIONS_UNKNOWN;
	int64_t last = cluster->ranks.v[cluster->ranks.n - 1].rank;
	return fits(out) && last < out->world ? NP_POSITIONS_OK : NP_POSITIONS_MISMATCH;
}

struct np_position np_position_of(const struct np_parallel *sizes, int64_t rank)
{
	int64_t inner = sizes->tp * sizes->cp;
	return (struct np_position){.dp = rank / inner % sizes->dp,
	                            .pp = rank / (inner * sizes->dp),
	                            .tp = rank % sizes->tp};
}
