#include "cluster/launches.h"

#include <stdlib.h>

size_t np_conns_find(const struct np_host_conns *conns, int64_t conn)
{
	size_t low = 0, high = conns->n;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (conns->conn[middle] < conn)
			low = middle + 1;
		else
			high = middle;
	}
	return low < conns->n && conns->conn[low] == conn ? low : conns->n;
}

/* One launch per operator of the connection. */
static bool add(const struct np_profile *profile, int64_t conn, struct np_launch launch,
                struct np_launches *out)
{
	const struct np_host_conns *conns = &profile->host_conns;
	if (conn == NP_NO_I64)
		return true;
	for (size_t i = np_conns_find(conns, conn); i < conns->n && conns->conn[i] == conn; i++) {
		launch.op = conns->op[i];
		launch.op_start_ns = profile->host_ops.start_ns[launch.op];
		if (!np_vec_push(out, launch))
			return false;
	}
	return true;
}

static int by_start(const void *a, const void *b)
{
	const struct np_launch *x = a, *y = b;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	if (x->op_start_ns != y->op_start_ns)
		return x->op_start_ns < y->op_start_ns ? -1 : 1;
	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	if (x->row != y->row)
		return x->row < y->row ? -1 : 1;
	return (x->op > y->op) - (x->op < y->op);
}

static bool add_kernels(const struct np_profile *profile, struct np_launches *out)
{
	const struct np_kernels *k = &profile->kernels;
	bool ok = true;
	for (uint32_t i = 0; ok && i < k->n; i++) {
		if (k->conn[i] == NP_NO_U32 ||
		    np_is_comm_core(np_intern_get(&profile->strings, k->core[i])))
			continue;
		struct np_launch launch = {.kind = NP_LAUNCH_COMPUTE,
		                           .row = i,
		                           .name = k->name[i],
		                           .start_ns = k->start_ns[i],
		                           .end_ns = k->start_ns[i] + k->dur_ns[i]};
		ok = add(profile, k->conn[i], launch, out);
	}
	return ok;
}

bool np_launches_collect(const struct np_profile *profile, struct np_launches *out)
{
	const struct np_comm_ops *c = &profile->comm_ops;
	const struct np_comm_schedule *s = &profile->comm_schedule;
	*out = (struct np_launches){0};
	bool ok = add_kernels(profile, out);
	for (uint32_t i = 0; ok && i < c->n; i++) {
		struct np_launch launch = {.kind = NP_LAUNCH_COMM,
		                           .row = i,
		                           .name = c->type[i],
		                           .start_ns = c->start_ns[i],
		                           .end_ns = c->start_ns[i] + c->dur_ns[i]};
		ok = add(profile, c->conn[i], launch, out);
	}
	for (uint32_t i = 0; ok && i < s->n; i++) {
		struct np_launch launch = {.kind = NP_LAUNCH_SCHEDULE,
		                           .row = i,
		                           .name = s->name[i],
		                           .start_ns = s->start_ns[i],
		                           .end_ns = s->start_ns[i] + s->dur_ns[i]};
		ok = add(profile, s->conn[i], launch, out);
	}
	if (ok && out->n > 0)
		qsort(out->v, out->n, sizeof *out->v, by_start);
	return ok;
}

void np_launches_release(struct np_launches *self)
{
	np_vec_release(self);
}
