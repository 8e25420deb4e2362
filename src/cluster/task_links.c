#include "cluster/task_links.h"

#include "profile/search.h"

/* ── connection ids ── */

/* The first row of each connection. Rows from the last to the first, so that it wins. */
static bool index_cann(const struct np_profile *profile, struct np_map *out)
{
	const struct np_host_ops *ops = &profile->host_ops;
	/* a launch for each task, as a rule */
	if (!np_map_reserve(out, profile->tasks.n < ops->n ? profile->tasks.n : ops->n))
		return false;
	for (size_t i = ops->n; i-- > 0;)
		if (np_is_cann_layer(ops->layer[i]) && ops->conn[i] != NP_NO_I64 &&
		    !np_map_put(out, (uint64_t)ops->conn[i], (uint32_t)i))
			return false;
	return true;
}

static bool index_torch(const struct np_profile *profile, struct np_map *out)
{
	const struct np_host_conns *conns = &profile->host_conns;
	if (!np_map_reserve(out, conns->n))
		return false;
	for (size_t i = conns->n; i-- > 0;)
		if (!np_map_put(out, (uint64_t)conns->conn[i], conns->op[i]))
			return false;
	return true;
}

static bool link_connections(const struct np_profile *profile, struct np_task_links *out)
{
	const struct np_tasks *tasks = &profile->tasks;
	struct np_map cann, torch;
	np_map_init(&cann);
	np_map_init(&torch);
	bool ok = index_cann(profile, &cann) && index_torch(profile, &torch);
	for (size_t i = 0; i < tasks->n; i++) {
		bool known = ok && tasks->conn[i] != NP_NO_I64;
		uint64_t conn = (uint64_t)tasks->conn[i];
		out->cann[i] = known ? np_map_get(&cann, conn, NP_NO_U32) : NP_NO_U32;
		out->torch[i] = known ? np_map_get(&torch, conn, NP_NO_U32) : NP_NO_U32;
	}
	np_map_release(&cann);
	np_map_release(&torch);
	return ok;
}

/* ── arrows ── */

/* The operator of the thread that starts there. */
static uint32_t op_at(const struct np_host_ops *ops, np_ns ts, uint32_t tid)
{
	for (size_t i = np_first_from(ops->start_ns, ops->n, ts);
	     i < ops->n && ops->start_ns[i] == ts; i++)
		if (ops->tid[i] == tid && !np_is_cann_layer(ops->layer[i]))
			return (uint32_t)i;
	return NP_NO_U32;
}

static void arrive(const struct np_tasks *tasks, np_ns ts, uint32_t stream, uint32_t op,
                   struct np_task_links *out)
{
	for (size_t i = np_first_from(tasks->start_ns, tasks->n, ts);
	     i < tasks->n && tasks->start_ns[i] == ts; i++)
		if (tasks->stream[i] == stream && out->torch[i] == NP_NO_U32)
			out->torch[i] = op;
}

/* Collectives have no stream: the start alone has to do. */
static void arrive_comm(const struct np_comm_ops *ops, np_ns ts, uint32_t op, uint32_t *torch)
{
	for (size_t i = np_first_from(ops->start_ns, ops->n, ts);
	     i < ops->n && ops->start_ns[i] == ts; i++)
		if (torch[i] == NP_NO_U32)
			torch[i] = op;
}

/* `out`: of the tasks; `comm`: of the collectives; one of them is NULL. */
static bool link_arrows(const struct np_profile *profile, struct np_task_links *out, uint32_t *comm)
{
	const struct np_flows *flows = &profile->flows;
	uint32_t cat = np_intern_find(&profile->strings, NP_STR("async_npu"));
	struct np_map from;
	bool ok = true;
	if (cat == NP_ID_NONE)
		return true;
	np_map_init(&from);
	for (size_t i = 0; ok && i < flows->n; i++)
		if (flows->cat[i] == cat && !flows->end[i])
			ok = np_map_put(&from, flows->id[i], (uint32_t)i);
	for (size_t i = 0; ok && i < flows->n; i++) {
		if (flows->cat[i] != cat || !flows->end[i])
			continue;
		uint32_t start = np_map_get(&from, flows->id[i], NP_NO_U32);
		if (start == NP_NO_U32)
			continue;
		uint32_t op = op_at(&profile->host_ops, flows->ts_ns[start], flows->tid[start]);
		if (op != NP_NO_U32 && out)
			arrive(&profile->tasks, flows->ts_ns[i], flows->tid[i], op, out);
		if (op != NP_NO_U32 && comm)
			arrive_comm(&profile->comm_ops, flows->ts_ns[i], op, comm);
	}
	np_map_release(&from);
	return ok;
}

bool np_task_links_build(const struct np_profile *profile, struct np_task_links *out)
{
	size_t n = profile->tasks.n;
	*out = (struct np_task_links){.cann = np_realloc(NULL, n + 1, sizeof(uint32_t)),
	                              .torch = np_realloc(NULL, n + 1, sizeof(uint32_t))};
	if (!out->cann || !out->torch || !link_connections(profile, out))
		return false;
	return profile->host_conns.n > 0 || link_arrows(profile, out, NULL);
}

bool np_comm_links_build(const struct np_profile *profile, uint32_t **torch)
{
	*torch = np_realloc(NULL, profile->comm_ops.n + 1, sizeof **torch);
	for (size_t i = 0; *torch && i < profile->comm_ops.n; i++)
		(*torch)[i] = NP_NO_U32;
	return *torch && link_arrows(profile, NULL, *torch);
}

bool np_arrows_build(const struct np_profile *profile, np_str category, struct np_arrows *out)
{
	const struct np_flows *flows = &profile->flows;
	uint32_t cat = np_intern_find(&profile->strings, category);
	struct np_map from;
	bool ok = true;
	*out = (struct np_arrows){0};
	np_map_init(&from);
	for (size_t i = 0; ok && cat != NP_ID_NONE && i < flows->n; i++)
		if (flows->cat[i] == cat && !flows->end[i])
			ok = np_map_put(&from, flows->id[i], (uint32_t)i);
	for (size_t i = 0; ok && cat != NP_ID_NONE && i < flows->n; i++) {
		if (flows->cat[i] != cat || !flows->end[i])
			continue;
		uint32_t start = np_map_get(&from, flows->id[i], NP_NO_U32);
		if (start == NP_NO_U32)
			continue;
		struct np_arrow arrow = {
			op_at(&profile->host_ops, flows->ts_ns[start], flows->tid[start]),
			op_at(&profile->host_ops, flows->ts_ns[i], flows->tid[i])};
		ok = arrow.from == NP_NO_U32 || arrow.to == NP_NO_U32 || np_vec_push(out, arrow);
	}
	np_map_release(&from);
	return ok;
}

void np_task_links_release(struct np_task_links *self)
{
	np_free(self->cann);
	np_free(self->torch);
}
