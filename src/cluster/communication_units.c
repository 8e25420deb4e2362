/* Sums per step, group and rank, of which most tables of `communication` are made. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/communication.h"

const char *const np_comm_link_names[NP_N_LINKS] = {"SDMA", "RDMA", "HCCS", "PCIE", "SIO"};

void np_comm_units_release(struct np_comm_units *self)
{
	np_vec_release(&self->units);
}

size_t np_comm_units_end(const struct np_comm_units *self, size_t i)
{
	const struct np_comm_unit *v = self->units.v;
	size_t end = i;
	while (end < self->units.n && v[end].step == v[i].step && v[end].group == v[i].group)
		end++;
	return end;
}

void np_cell_comm_unit(struct np_table *table, const struct np_comm_units *self,
                       const struct np_comm_unit *unit)
{
	np_cell_step(table, unit->step);
	if (unit->group == NP_ID_NONE)
		np_cell_na(table);
	else
		np_cell_text(table, np_cluster_text(self->cluster, unit->group));
	np_cell_cstr(table, unit->recorded && *unit->recorded->name ? unit->recorded->name : NULL);
}

/* ── collecting ── */

static int by_key(const void *a, const void *b)
{
	const struct np_comm_unit *x = a, *y = b;
	if (x->step != y->step)
		return x->step < y->step ? -1 : 1;
	if (x->group != y->group)
		return x->group < y->group ? -1 : 1;
	return (x->rank > y->rank) - (x->rank < y->rank);
}

const struct np_comm_unit *np_comm_units_find(const struct np_comm_units *self, int64_t step,
                                              np_id group)
{
	struct np_comm_unit wanted = {.step = step, .group = group};
	size_t low = 0, high = self->units.n;
	while (low < high) {
		size_t mid = low + (high - low) / 2;
		if (by_key(&self->units.v[mid], &wanted) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	const struct np_comm_unit *found = &self->units.v[low];
	return low < self->units.n && found->step == step && found->group == group ? found : NULL;
}

/* The unit among those of this rank, which begin at `first`; NULL: out of memory. */
static struct np_comm_unit *unit_of(struct np_comm_units *self, size_t first, int64_t step,
                                    np_id group, uint32_t rank)
{
	for (size_t i = self->units.n; i > first; i--)
		if (self->units.v[i - 1].step == step && self->units.v[i - 1].group == group)
			return &self->units.v[i - 1];
	struct np_comm_unit unit = {.step = step, .group = group, .rank = rank};
	unit.recorded = np_insight_group(self->cluster->ranks.v[rank].capture,
	                                 np_cluster_text(self->cluster, group));
	return np_vec_push(&self->units, unit) ? &self->units.v[self->units.n - 1] : NULL;
}

/* Their members wait for one another in other ways than in a collective. */
static bool is_uneven(np_str op)
{
	static const char *const parts[] = {"send", "receive", "recv", "alltoallv"};
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
		if (np_str_icontains(op, np_str_of(parts[i])))
			return true;
	return false;
}

static bool add_times(struct np_comm_units *self, uint32_t rank, size_t first)
{
	const struct np_digest_insight_time *in =
		NP_DIGEST_ROWS(&self->cluster->ranks.v[rank], np_digest_insight_time);
	for (size_t i = 0; i < in->n; i++) {
		if (!np_insight_wants(&self->steps, in->step[i]))
			continue;
		struct np_comm_unit *unit = unit_of(self, first, in->step[i], in->group[i], rank);
		if (!unit)
			return false;
		unit->ops++;
		unit->p2p |= in->p2p[i] || is_uneven(np_cluster_text(self->cluster, in->op[i]));
		unit->elapse += in->elapse_ms[i];
		unit->transit += in->transit_ms[i];
		unit->wait += in->wait_ms[i];
		unit->sync += in->sync_ms[i];
		unit->idle += in->idle_ms[i];
	}
	return true;
}

/* Links only of groups that have times: the exporter writes both or none. */
static void add_bandwidth(struct np_comm_units *self, uint32_t rank, size_t first)
{
	const struct np_digest_insight_band *in =
		NP_DIGEST_ROWS(&self->cluster->ranks.v[rank], np_digest_insight_band);
	for (size_t i = 0; i < in->n; i++) {
		np_str transport = np_cluster_text(self->cluster, in->transport[i]);
		for (size_t u = first; u < self->units.n; u++) {
			struct np_comm_unit *unit = &self->units.v[u];
			if (unit->step != in->step[i] || unit->group != in->group[i])
				continue;
			for (int l = 0; l < NP_N_LINKS; l++) {
				if (!np_str_is(transport, np_comm_link_names[l]))
					continue;
				unit->mb[l] += in->mb[i];
				unit->ms[l] += in->ms[i];
			}
			break;
		}
	}
}

/* What one of a group's ranks has recorded holds for all. */
static void share_records(struct np_comm_units *self)
{
	struct np_comm_unit *v = self->units.v;
	for (size_t i = 0, end; i < self->units.n; i = end) {
		const struct np_group *recorded = NULL;
		end = np_comm_units_end(self, i);
		for (size_t u = i; u < end && !recorded; u++)
			recorded = v[u].recorded;
		for (size_t u = i; u < end; u++)
			v[u].recorded = recorded;
	}
}

static bool has_step(const struct np_cluster_rank *rank, int64_t step)
{
	const struct np_digest_insight_time *in = NP_DIGEST_ROWS(rank, np_digest_insight_time);
	for (size_t i = 0; i < in->n; i++)
		if (in->step[i] == step)
			return true;
	return false;
}

bool np_comm_units_collect(struct np_cluster *cluster, struct np_comm_units *out)
{
	*out = (struct np_comm_units){.cluster = cluster,
	                              .steps = np_insight_steps_of(cluster, has_step)};
	for (size_t r = 0; r < cluster->ranks.n; r++) {
		size_t first = out->units.n;
		if (!add_times(out, (uint32_t)r, first))
			return false;
		add_bandwidth(out, (uint32_t)r, first);
	}
	if (out->units.n > 0)
		qsort(out->units.v, out->units.n, sizeof *out->units.v, by_key);
	share_records(out);
	return true;
}
