/*
 * Uncovered communication by group, and how much of it is waiting.
 *
 * Waiting is Notify_Wait on a plane, except where it only confirms RDMA sends (the two
 * tasks before it on the plane are RDMASend, or RDMASend, Notify_Wait, RDMASend with
 * another RDMASend before). A group waits on all its planes at once: the plane that waits
 * least tells how long nothing moved at all. Planes without any wait say nothing (the
 * field's tool counts them as 0 when it reads text, docs/differences.md).
 */
#include <stdlib.h>

#include "analysis/overall.h"

enum task { TASK_OTHER, TASK_SEND, TASK_WAIT };

/* One plane of one group while its tasks go by. */
struct plane {
	uint32_t group;
	np_ns wait;
	uint8_t last[4]; /* enum task, the newest first */
	struct np_intervals waits;
};

struct planes {
	NP_VEC(struct plane) all;
	struct np_map by_key;   /* group and plane → index */
	struct np_map by_group; /* string of a group → index in out->groups */
};

static uint32_t group_index(struct planes *self, struct np_overall *out, uint32_t name)
{
	uint32_t at = np_map_get(&self->by_group, name, NP_NO_U32);
	struct np_overall_group group = {.name = name};
	if (at == NP_NO_U32 && np_vec_push(&out->groups, group) &&
	    np_map_put(&self->by_group, name, (uint32_t)out->groups.n - 1))
		at = (uint32_t)out->groups.n - 1;
	return at;
}

static struct plane *plane_of(struct planes *self, uint32_t group, uint32_t plane)
{
	uint64_t key = (uint64_t)group << 32 | plane;
	uint32_t at = np_map_get(&self->by_key, key, NP_NO_U32);
	struct plane fresh = {.group = group};
	if (at == NP_NO_U32 && np_vec_push(&self->all, fresh) &&
	    np_map_put(&self->by_key, key, (uint32_t)self->all.n - 1))
		at = (uint32_t)self->all.n - 1;
	return at == NP_NO_U32 ? NULL : &self->all.v[at];
}

static bool confirms_send(const uint8_t last[4])
{
	if (last[0] != TASK_SEND)
		return false;
	return last[1] == TASK_SEND ||
	       (last[1] == TASK_WAIT && last[2] == TASK_SEND && last[3] == TASK_SEND);
}

static enum task task_of(np_str name)
{
	if (np_str_istarts(name, NP_STR("notify_wait")) ||
	    np_str_istarts(name, NP_STR("notify wait")))
		return TASK_WAIT;
	return np_str_istarts(name, NP_STR("rdmasend")) ? TASK_SEND : TASK_OTHER;
}

static bool add_tasks(const struct np_analysis *analysis, struct planes *self,
                      struct np_overall *out)
{
	const struct np_comm_tasks *tasks = &analysis->profile->comm_tasks;
	const struct np_comm_ops *ops = &analysis->profile->comm_ops;
	for (size_t i = 0; i < tasks->n; i++) { /* ordered by start */
		if (tasks->op[i] == NP_NO_U32 || tasks->op[i] >= ops->n)
			continue;
		uint32_t group = group_index(self, out, ops->group[tasks->op[i]]);
		struct plane *plane =
			group == NP_NO_U32 ? NULL : plane_of(self, group, tasks->plane[i]);
		if (!plane)
			return false;
		enum task task = task_of(np_text(analysis, tasks->name[i]));
		np_ns start = tasks->start_ns[i], dur = tasks->dur_ns[i];
		if (task == TASK_WAIT && !confirms_send(plane->last)) {
			plane->wait += dur;
			if (!np_intervals_add(&plane->waits, start, start + dur))
				return false;
		}
		if (task == TASK_WAIT)
			out->groups.v[group].has_wait = true;
		for (int k = 3; k > 0; k--)
			plane->last[k] = plane->last[k - 1];
		plane->last[0] = (uint8_t)task;
	}
	return true;
}

static bool add_ops(const struct np_analysis *analysis, struct planes *self,
                    const struct np_intervals *uncovered, struct np_overall *out)
{
	const struct np_comm_ops *ops = &analysis->profile->comm_ops;
	for (size_t i = 0; i < ops->n; i++)
		if (group_index(self, out, ops->group[i]) == NP_NO_U32)
			return false;
	size_t n = out->groups.n;
	struct np_intervals *by_group = np_calloc(n + 1, sizeof *by_group), common = {0};
	bool ok = by_group != NULL;
	for (size_t i = 0; ok && i < ops->n; i++) {
		uint32_t group = np_map_get(&self->by_group, ops->group[i], 0);
		ok = np_intervals_add(&by_group[group], ops->start_ns[i],
		                      ops->start_ns[i] + ops->dur_ns[i]);
	}
	for (size_t g = 0; ok && g < n; g++) {
		np_intervals_merge(&by_group[g]);
		ok = np_intervals_intersect(&by_group[g], uncovered, &common);
		out->groups.v[g].total = np_intervals_length(&common);
	}
	for (size_t g = 0; by_group && g < n; g++)
		np_intervals_release(&by_group[g]);
	np_free(by_group);
	np_intervals_release(&common);
	return ok;
}

/* The plane that waits least, of those that wait, by group. */
static bool add_waits(struct planes *self, const struct np_intervals *uncovered,
                      struct np_overall *out)
{
	struct np_intervals common = {0};
	bool ok = true;
	for (size_t g = 0; ok && g < out->groups.n; g++) {
		struct np_overall_group *group = &out->groups.v[g];
		struct plane *least = NULL;
		for (size_t i = 0; i < self->all.n; i++) {
			struct plane *plane = &self->all.v[i];
			if (plane->group == g && plane->waits.n > 0 &&
			    (!least || plane->wait < least->wait))
				least = plane;
		}
		if (least) {
			np_intervals_merge(&least->waits);
			ok = np_intervals_intersect(&least->waits, uncovered, &common);
			group->wait = np_intervals_length(&common);
			/* a wait that reaches beyond its group's operators is none of its own */
			group->wait = group->wait < group->total ? group->wait : group->total;
		}
		group->transmit = group->total - group->wait;
	}
	np_intervals_release(&common);
	return ok;
}

bool np_overall_groups(const struct np_analysis *analysis, const struct np_intervals *uncovered,
                       struct np_overall *out)
{
	struct planes self = {0};
	np_map_init(&self.by_key);
	np_map_init(&self.by_group);
	bool ok = add_ops(analysis, &self, uncovered, out) && add_tasks(analysis, &self, out) &&
	          add_waits(&self, uncovered, out);
	for (size_t i = 0; i < self.all.n; i++)
		np_intervals_release(&self.all.v[i].waits);
	np_vec_release(&self.all);
	np_map_release(&self.by_key);
	np_map_release(&self.by_group);
	return ok;
}
