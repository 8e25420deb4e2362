#include "cluster/calls.h"

void np_calls_release(struct np_calls *self)
{
	np_free(self->name);
	np_free(self->type);
	np_free(self->group);
	np_free(self->key);
	np_free(self->dtype);
	np_free(self->nth);
	np_free(self->rank);
	np_free(self->p2p);
	np_free(self->step);
	np_free(self->start);
	np_free(self->dur);
	np_free(self->size);
}

static bool reserve(struct np_calls *self, size_t n)
{
	self->name = np_realloc(NULL, n, sizeof *self->name);
	self->type = np_realloc(NULL, n, sizeof *self->type);
	self->group = np_realloc(NULL, n, sizeof *self->group);
	self->key = np_realloc(NULL, n, sizeof *self->key);
	self->dtype = np_realloc(NULL, n, sizeof *self->dtype);
	self->nth = np_realloc(NULL, n, sizeof *self->nth);
	self->rank = np_realloc(NULL, n, sizeof *self->rank);
	self->p2p = np_realloc(NULL, n, sizeof *self->p2p);
	self->step = np_realloc(NULL, n, sizeof *self->step);
	self->start = np_realloc(NULL, n, sizeof *self->start);
	self->dur = np_realloc(NULL, n, sizeof *self->dur);
	self->size = np_realloc(NULL, n, sizeof *self->size);
	return self->name && self->type && self->group && self->key && self->dtype && self->nth &&
	       self->rank && self->p2p && self->step && self->start && self->dur && self->size;
}

static void add_rank(struct np_calls *self, size_t rank, const struct np_calls_filter *filter)
{
	const struct np_digest_comm_calls *rows =
		NP_DIGEST_ROWS(&self->cluster->ranks.v[rank], np_digest_comm_calls);
	for (size_t i = 0; i < rows->n; i++) {
		if ((filter->by_step && !rows->within[i]) ||
		    (filter->by_launch && rows->launch_ns[i] == NP_NO_I64) ||
		    (filter->collectives && rows->p2p[i]))
			continue;
		size_t to = self->n++;
		self->name[to] = rows->name[i];
		self->type[to] = rows->type[i];
		self->group[to] = rows->group[i];
		self->key[to] = rows->key[i];
		self->dtype[to] = rows->dtype[i];
		self->nth[to] = rows->nth[i];
		self->rank[to] = (uint32_t)rank;
		self->p2p[to] = rows->p2p[i];
		self->step[to] = rows->step[i];
		self->start[to] = rows->start_ns[i];
		self->dur[to] = rows->dur_ns[i];
		self->size[to] = rows->size_bytes[i];
	}
}

bool np_calls_collect(const struct np_cluster *cluster, const struct np_calls_filter *filter,
                      struct np_calls *out)
{
	size_t n = 0;
	*out = (struct np_calls){.cluster = cluster};
	for (size_t r = 0; r < cluster->ranks.n; r++)
		n += NP_DIGEST_ROWS(&cluster->ranks.v[r], np_digest_comm_calls)->n;
	if (!reserve(out, n + 1))
		return false;
	for (size_t r = 0; r < cluster->ranks.n; r++)
		add_rank(out, r, filter);
	return true;
}

bool np_calls_instances(const struct np_calls *self, bool loose, struct np_groups *out)
{
	/* a step's id is what the framework counts: 32 bits of it tell steps of a run apart */
	uint32_t *step = np_realloc(NULL, self->n + 1, sizeof *step);
	for (size_t i = 0; step && i < self->n; i++)
		step[i] = (uint32_t)self->step[i];
	const uint32_t *const keys[] = {self->key, self->name, step, self->nth};
	*out = (struct np_groups){0};
	bool ok = step && np_group_rows(self->n, keys, loose ? 2 : 4, out);
	np_free(step);
	return ok;
}

np_str np_calls_group(const struct np_calls *self, uint32_t row)
{
	np_id id = self->group[row] != NP_ID_NONE ? self->group[row] : self->key[row];
	return np_cluster_text(self->cluster, id);
}

void np_calls_has(const struct np_cluster *cluster, bool *has)
{
	for (size_t r = 0; r < cluster->ranks.n; r++)
		has[r] = !cluster->ranks.v[r].digest ||
		         NP_DIGEST_ROWS(&cluster->ranks.v[r], np_digest_comm_calls)->n > 0;
}
