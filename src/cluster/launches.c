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

/* The task of a kernel: same start and name, of several the first with an operator. */
static uint32_t op_of_kernel(const struct np_profile *profile, const struct np_task_links *links,
                             uint32_t kernel)
{
	const struct np_tasks *t = &profile->tasks;
	np_ns start = profile->kernels.start_ns[kernel];
	size_t low = 0, high = t->n;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (t->start_ns[middle] < start)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < t->n && t->start_ns[low] == start; low++)
		if (t->name[low] == profile->kernels.name[kernel] && links->torch[low] != NP_NO_U32)
			return links->torch[low];
	return NP_NO_U32;
}

static bool add_to(const struct np_profile *profile, uint32_t op, struct np_launch launch,
                   struct np_launches *out)
{
	launch.op = op;
	if (op == NP_NO_U32)
		return true;
	launch.op_start_ns = profile->host_ops.start_ns[op];
	return np_vec_push(out, launch);
}

static struct np_launch kernel_launch(const struct np_kernels *k, uint32_t i)
{
	return (struct np_launch){.kind = NP_LAUNCH_COMPUTE,
	                          .row = i,
	                          .name = k->name[i],
	                          .start_ns = k->start_ns[i],
	                          .end_ns = k->start_ns[i] + k->dur_ns[i]};
}

static struct np_launch comm_launch(const struct np_comm_ops *c, uint32_t i)
{
	return (struct np_launch){.kind = NP_LAUNCH_COMM,
	                          .row = i,
	                          .name = c->type[i],
	                          .start_ns = c->start_ns[i],
	                          .end_ns = c->start_ns[i] + c->dur_ns[i]};
}

static bool add_traced(const struct np_profile *profile, struct np_launches *out)
{
	struct np_task_links links;
	uint32_t *comm = NULL;
	bool ok = np_task_links_build(profile, &links) && np_comm_links_build(profile, &comm);
	for (uint32_t i = 0; ok && i < profile->kernels.n; i++)
		if (!np_is_comm_core(np_intern_get(&profile->strings, profile->kernels.core[i])))
			ok = add_to(profile, op_of_kernel(profile, &links, i),
			            kernel_launch(&profile->kernels, i), out);
	for (uint32_t i = 0; ok && i < profile->comm_ops.n; i++)
		ok = add_to(profile, comm[i], comm_launch(&profile->comm_ops, i), out);
	np_task_links_release(&links);
	np_free(comm);
	return ok;
}

static bool add_connected(const struct np_profile *profile, struct np_launches *out)
{
	const struct np_kernels *k = &profile->kernels;
	const struct np_comm_ops *c = &profile->comm_ops;
	const struct np_comm_schedule *s = &profile->comm_schedule;
	bool ok = true;
	for (uint32_t i = 0; ok && i < k->n; i++)
		if (k->conn[i] != NP_NO_U32 &&
		    !np_is_comm_core(np_intern_get(&profile->strings, k->core[i])))
			ok = add(profile, k->conn[i], kernel_launch(k, i), out);
	for (uint32_t i = 0; ok && i < c->n; i++)
		ok = add(profile, c->conn[i], comm_launch(c, i), out);
	for (uint32_t i = 0; ok && i < s->n; i++) {
		struct np_launch launch = {.kind = NP_LAUNCH_SCHEDULE,
		                           .row = i,
		                           .name = s->name[i],
		                           .start_ns = s->start_ns[i],
		                           .end_ns = s->start_ns[i] + s->dur_ns[i]};
		ok = add(profile, s->conn[i], launch, out);
	}
	return ok;
}

bool np_launches_collect(const struct np_profile *profile, struct np_launches *out)
{
	*out = (struct np_launches){0};
	bool ok =
		profile->host_conns.n > 0 ? add_connected(profile, out) : add_traced(profile, out);
	if (ok && out->n > 0)
		qsort(out->v, out->n, sizeof *out->v, by_start);
	return ok;
}

void np_launches_release(struct np_launches *self)
{
	np_vec_release(self);
}
