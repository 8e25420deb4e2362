#include "synth/faults_cluster.h"
#include "synth/rng.h"

/* GB/s are bytes per ns */
enum { HCCS_GBPS = 18, RDMA_GBPS = 11, SLOW_LINK_FACTOR = 8 };
/* what a collective costs besides its slowest transfer; more than all the small
 * tasks of np_synth_comm_tasks() together */
enum { OVERHEAD_NS = 12000, HANDSHAKE_NS = 700 };

static bool is_member(const struct np_synth_group *group, uint32_t rank)
{
	return rank >= group->first && (rank - group->first) % group->stride == 0 &&
	       (rank - group->first) / group->stride < group->count;
}

static struct np_synth_link make_link(const struct np_synth_plan *plan,
                                      const struct np_synth_group *group, uint32_t rank,
                                      uint32_t peer, bool rdma, uint64_t key)
{
	struct np_synth_link link = {.peer = np_synth_member(group, peer), .rdma = rdma};
	uint64_t noise =
		np_noise(plan->options.seed ^ 0x11c6, (key << 30) + rank * 16411ull + peer);
	link.dur_ns = (np_ns)(noise & 63) - 32; /* permille, scaled when the size is known */
	if ((plan->link_a == rank && plan->link_b == peer) ||
	    (plan->link_a == peer && plan->link_b == rank))
		link.len_bytes = SLOW_LINK_FACTOR;
	else
		link.len_bytes = np_synth_link_factor(plan, rank, peer);
	return link;
}

/* The peer on another host: the same card of the next host that has one in the
 * group, else simply the next member there. UINT32_MAX: the group is on one host. */
static uint32_t remote_peer(const struct np_synth_plan *plan, const struct np_synth_group *group,
                            uint32_t rank)
{
	uint32_t ranks = plan->options.ranks, cards = plan->cards, host = rank / cards;
	uint32_t hosts = (ranks + cards - 1) / cards;
	if (group->first / cards == np_synth_member_rank(group, group->count - 1) / cards)
		return UINT32_MAX;
	for (uint32_t k = 1; k < hosts; k++) {
		uint32_t base = (host + k) % hosts * cards;
		uint32_t same = base + rank % cards;
		if (same < ranks && is_member(group, same))
			return same;
		for (uint32_t c = 0; c < cards; c++)
			if (base + c < ranks && is_member(group, base + c))
				return base + c;
	}
	return UINT32_MAX;
}

size_t np_synth_links(const struct np_synth_plan *plan, const struct np_synth_group *group,
                      uint32_t rank, uint64_t len_bytes, uint64_t key,
                      struct np_synth_link links[NP_SYNTH_MAX_LINKS])
{
	size_t n = 0;
	uint32_t cards = plan->cards, base = rank / cards * cards;
	for (uint32_t k = 1; k < cards; k++) {
		uint32_t peer = base + (rank - base + k) % cards;
		if (peer < plan->options.ranks && is_member(group, peer))
			links[n++] = make_link(plan, group, rank, peer, false, key);
	}
	uint32_t remote = remote_peer(plan, group, rank);
	if (remote != UINT32_MAX)
		links[n++] = make_link(plan, group, rank, remote, true, key);
	for (size_t i = 0; i < n; i++) {
		struct np_synth_link *link = &links[i];
		np_ns slower = (np_ns)link->len_bytes, noise = link->dur_ns;
		link->len_bytes = len_bytes / (n + 1) / 512 * 512;
		np_ns ideal = (np_ns)link->len_bytes / (link->rdma ? RDMA_GBPS : HCCS_GBPS);
		link->dur_ns = (ideal + ideal * noise / 1000) * slower;
	}
	return n;
}

/* on-chip copy of a rank's own part, into the exchange buffer and out of it */
static np_ns local_copy_ns(uint64_t len_bytes)
{
	return 1000 + (np_ns)(len_bytes / 600);
}

np_ns np_synth_wire_ns(const struct np_synth_plan *plan, const struct np_synth_group *group,
                       uint64_t len_bytes, uint64_t key)
{
	np_ns wire = 0;
	for (uint32_t k = 0; k < group->count; k++) {
		struct np_synth_link links[NP_SYNTH_MAX_LINKS];
		size_t n = np_synth_links(plan, group, group->first + k * group->stride, len_bytes,
		                          key, links);
		/* plane 0 does the first transfer, then the one to the other host */
		np_ns master = 0, slowest = 0;
		for (size_t i = 0; i < n; i++) {
			if (i == 0 || links[i].rdma)
				master += links[i].dur_ns;
			if (links[i].dur_ns > slowest)
				slowest = links[i].dur_ns;
		}
		slowest = master > slowest ? master : slowest;
		slowest += 2 * local_copy_ns(len_bytes / (n + 1));
		wire = slowest > wire ? slowest : wire;
	}
	return wire + OVERHEAD_NS;
}

struct task_list {
	struct np_synth_comm_task *v;
	size_t n;
	np_ns at; /* where the next task of this plane starts */
};

static struct np_synth_comm_task *add(struct task_list *list, enum np_synth_comm_name name,
                                      uint32_t plane, uint32_t dst, np_ns dur_ns)
{
	struct np_synth_comm_task *task = &list->v[list->n++];
	*task = (struct np_synth_comm_task){
		.name = name, .plane = plane, .dst = dst, .start_ns = list->at, .dur_ns = dur_ns};
	list->at += dur_ns + 280;
	return task;
}

static void add_local_copy(struct task_list *list, uint32_t self, uint64_t len_bytes, np_ns dur_ns)
{
	struct np_synth_comm_task *task = add(list, NP_COMM_MEMCPY, 0, self, dur_ns);
	task->payload = task->on_chip = true;
	task->len_bytes = len_bytes;
}

static void add_transfer(struct task_list *list, enum np_synth_comm_name name, uint32_t plane,
                         const struct np_synth_link *link, int handshakes)
{
	struct np_synth_comm_task *task = add(list, name, plane, link->peer, link->dur_ns);
	task->payload = true;
	task->rdma = link->rdma;
	task->len_bytes = link->len_bytes;
	if (!link->rdma)
		return;
	/* the closing handshake: four tasks, or two, as torch_npu.md §3.8 wants them */
	task->dur_ns -= handshakes * (HANDSHAKE_NS + 2 * 280);
	list->at = task->start_ns + task->dur_ns + 280;
	for (int i = 0; i < handshakes; i++) {
		add(list, NP_COMM_RDMA, plane, link->peer, HANDSHAKE_NS)->rdma = true;
		add(list, NP_COMM_NOTIFY_WAIT, plane, link->peer, 0);
	}
}

/* Planes 1… wait for their peer, reduce its part, and tell it. */
static void add_slave_plane(struct task_list *list, uint32_t plane, np_ns start_ns, np_ns ready_ns,
                            const struct np_synth_link *link)
{
	list->at = start_ns + 2900 + 100 * (np_ns)plane;
	add(list, NP_COMM_NOTIFY_RECORD, plane, link->peer, 690);
	np_ns wait = ready_ns - list->at;
	add(list, NP_COMM_NOTIFY_WAIT, plane, link->peer, wait > 20 ? wait : 20);
	add_transfer(list, NP_COMM_REDUCE, plane, link, 0);
	add(list, NP_COMM_NOTIFY_RECORD, plane, link->peer, 680);
	add(list, NP_COMM_NOTIFY_WAIT, plane, link->peer, 20);
}

/* A receive tells its peer that it is ready, and waits until the data are there. */
static size_t receive_tasks(const struct np_synth_item *item, uint32_t self,
                            struct np_synth_comm_task tasks[NP_SYNTH_MAX_COMM_TASKS])
{
	struct task_list list = {.v = tasks, .at = item->start_ns};
	add(&list, NP_COMM_NOTIFY_RECORD, 0, 1 - self, 620);
	add(&list, NP_COMM_NOTIFY_WAIT, 0, 1 - self, item->start_ns + item->dur_ns - list.at);
	return list.n;
}

size_t np_synth_comm_tasks(const struct np_synth_run *run, const struct np_synth_item *item,
                           struct np_synth_comm_task tasks[NP_SYNTH_MAX_COMM_TASKS])
{
	const struct np_synth_group *group = &run->plan->groups[item->group];
	uint32_t self = np_synth_member(group, run->rank);
	struct np_synth_link links[NP_SYNTH_MAX_LINKS];
	uint64_t key = np_synth_comm_key(run->plan, item), shared = np_synth_shared_bytes(item);
	size_t n = np_synth_links(run->plan, group, run->rank, shared, key, links);
	uint64_t part = shared / (n + 1) / 512 * 512;
	if (item->coll == NP_COLL_RECEIVE)
		return receive_tasks(item, self, tasks);

	struct task_list list = {.v = tasks, .at = item->start_ns};
	struct np_synth_comm_task *sync = add(&list, NP_COMM_REDUCE, 0, self, 600);
	sync->payload = sync->on_chip = true;
	sync->len_bytes = 4;
	add_local_copy(&list, self, part, local_copy_ns(part));
	np_ns ready = item->last_ns + 20 > list.at + 20 ? item->last_ns + 20 : list.at + 20;
	add(&list, NP_COMM_NOTIFY_WAIT, 0, n ? links[0].peer : self, ready - list.at);
	for (size_t i = 0; i < n; i++)
		if (i == 0 || links[i].rdma)
			add_transfer(&list, NP_COMM_MEMCPY, 0, &links[i],
			             np_synth_handshakes(item));
	np_ns last = local_copy_ns(part);
	list.at = item->start_ns + item->dur_ns - last;
	add_local_copy(&list, self, part, last);
	for (uint32_t i = 1; i < n; i++)
		if (!links[i].rdma)
			add_slave_plane(&list, i, item->start_ns, ready, &links[i]);
	for (size_t i = 0; i < list.n; i++)
		if (tasks[i].rdma && tasks[i].payload)
			tasks[i].name = NP_COMM_RDMA;
	return list.n;
}
