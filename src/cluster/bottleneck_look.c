#include "cluster/bottleneck_look.h"

#include <stdlib.h>
#include <string.h>

#include "cluster/cells.h"
#include "profile/search.h"

/* config.json of the official tool, which its users may change; these are its defaults */
enum { DIFF_WAIT_NS = 100000, ALIGNED_NS = 1000000 };

static const double DEVICE_SHARE = 0.5;

enum { SLOTS = 8 }; /* of np_look_list.name */

/* ── lists ── */

static void release_list(struct np_look_list *self)
{
	np_free(self->name);
	np_free(self->start);
	np_free(self->end);
	np_free(self->before);
	np_free(self->last);
}

static bool make_list(struct np_look_list *self, size_t cap)
{
	self->name = np_realloc(NULL, cap + 1, sizeof *self->name);
	self->start = np_realloc(NULL, cap + 1, sizeof *self->start);
	self->end = np_realloc(NULL, cap + 1, sizeof *self->end);
	return self->name && self->start && self->end;
}

static void put(struct np_look_list *self, uint32_t name, unsigned slot, np_ns start, np_ns dur)
{
	self->name[self->n] = name * SLOTS + slot;
	self->start[self->n] = start;
	self->end[self->n++] = start + dur;
}

static int by_start(const void *a, const void *b, void *ctx)
{
	const struct np_look_list *list = ctx;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	if (list->start[x] != list->start[y])
		return list->start[x] < list->start[y] ? -1 : 1;
	return (x > y) - (x < y);
}

static bool sort_list(struct np_look_list *self)
{
	struct np_look_list sorted = {0};
	uint32_t *order = np_realloc(NULL, self->n + 1, sizeof *order);
	bool ok = order && make_list(&sorted, self->n);
	for (size_t i = 0; ok && i < self->n; i++)
		order[i] = (uint32_t)i;
	if (ok)
		qsort_r(order, self->n, sizeof *order, by_start, self);
	for (size_t i = 0; ok && i < self->n; i++) {
		sorted.name[i] = self->name[order[i]];
		sorted.start[i] = self->start[order[i]];
		sorted.end[i] = self->end[order[i]];
	}
	sorted.n = self->n;
	np_free(order);
	release_list(ok ? self : &sorted);
	if (ok)
		*self = sorted;
	return ok;
}

static bool chain_list(struct np_look_list *self, size_t n_strings)
{
	self->n_names = n_strings * SLOTS;
	self->before = np_realloc(NULL, self->n + 1, sizeof *self->before);
	self->last = np_realloc(NULL, self->n_names + 1, sizeof *self->last);
	if (!self->before || !self->last)
		return false;
	memset(self->last, 0xff, (self->n_names + 1) * sizeof *self->last); /* NP_NO_U32 */
	for (size_t i = 0; i < self->n; i++) {
		self->before[i] = self->last[self->name[i]];
		self->last[self->name[i]] = (uint32_t)i;
	}
	return true;
}

/* "MEMCPY_ASYNC" of databases; what the trace calls a copy by DMA. */
static bool is_copy(np_str type)
{
	return np_str_icontains(type, NP_STR("memcpy")) || np_str_is(type, "PCIE_DMA_SQE");
}

static bool list_device(struct np_look *self)
{
	const struct np_profile *profile = self->profile;
	const struct np_kernels *kernels = &profile->kernels;
	const struct np_comm_ops *ops = &profile->comm_ops;
	const struct np_tasks *tasks = &profile->tasks;
	if (!make_list(&self->device, kernels->n + ops->n + tasks->n))
		return false;
	for (size_t i = 0; i < kernels->n; i++)
		if (kernels->name[i] != NP_ID_NONE &&
		    !np_is_comm_core(np_intern_get(&profile->strings, kernels->core[i])))
			put(&self->device, kernels->name[i], 0, kernels->start_ns[i],
			    kernels->dur_ns[i]);
	for (size_t i = 0; i < ops->n; i++)
		if (ops->name[i] != NP_ID_NONE)
			put(&self->device, ops->name[i], 0, ops->start_ns[i], ops->dur_ns[i]);
	for (size_t i = 0; i < tasks->n; i++)
		if (tasks->type[i] != NP_ID_NONE &&
		    is_copy(np_intern_get(&profile->strings, tasks->type[i])))
			put(&self->device, tasks->type[i], 0, tasks->start_ns[i], tasks->dur_ns[i]);
	return sort_list(&self->device);
}

static bool list_host(struct np_look *self)
{
	const struct np_host_ops *ops = &self->profile->host_ops;
	const struct np_intern *strings = &self->profile->strings;
	if (!make_list(&self->torch, ops->n) || !make_list(&self->cann, ops->n))
		return false;
	for (size_t i = 0; i < ops->n; i++) {
		if (ops->name[i] == NP_ID_NONE)
			continue;
		if (np_is_cann_layer(ops->layer[i]))
			put(&self->cann, ops->name[i], ops->layer[i] - NP_HOST_ACL,
			    ops->start_ns[i], ops->dur_ns[i]);
		else if (np_str_contains(np_intern_get(strings, ops->name[i]), NP_STR("::")))
			put(&self->torch, ops->name[i], 0, ops->start_ns[i], ops->dur_ns[i]);
	}
	return true;
}

enum np_status np_look_new(const struct np_cluster *cluster, uint32_t rank, struct np_look **out,
                           struct np_err *err)
{
	unsigned what = NP_KERNELS | NP_COMM_OPS | NP_TASK_LINKS_LOAD;
	struct np_look *self = np_calloc(1, sizeof *self);
	*out = self;
	if (!self)
		return np_err_nomem(err);
	self->rank = rank;
	NP_TRY(np_cluster_load(cluster, rank, what, &self->profile, err));
	size_t names = self->profile->strings.strings.n;
	if (!np_task_links_build(self->profile, &self->links) || !list_device(self) ||
	    !list_host(self) || !chain_list(&self->device, names) ||
	    !chain_list(&self->torch, names) || !chain_list(&self->cann, names))
		return np_err_nomem(err);
	return NP_OK;
}

void np_look_free(struct np_look *self)
{
	if (!self)
		return;
	np_task_links_release(&self->links);
	release_list(&self->device);
	release_list(&self->torch);
	release_list(&self->cann);
	np_profile_free(self->profile);
	np_free(self);
}

/* ── device or host? ── */

/* Tasks launched between the fast rank's start of the op and the slow one's end, by the slow
 * rank's clock: the ends of a collective are at one time. */
static void count_bound(const struct np_look_pair *pair, size_t *n, size_t *n_device)
{
	const struct np_look *look = pair->slow;
	const struct np_tasks *tasks = &look->profile->tasks;
	const struct np_host_ops *ops = &look->profile->host_ops;
	uint32_t launch = np_intern_find(&look->profile->strings, NP_STR("launch"));
	np_ns from = pair->fast_start - (pair->fast_end - pair->slow_end);
	*n = *n_device = 0;
	for (size_t i = np_first_from(tasks->start_ns, tasks->n, from + 1);
	     i < tasks->n && tasks->start_ns[i] < pair->slow_end; i++) {
		uint32_t cann = look->links.cann[i], torch = look->links.torch[i];
		if (tasks->start_ns[i] + tasks->dur_ns[i] >= pair->slow_end || cann == NP_NO_U32 ||
		    torch == NP_NO_U32 || launch == NP_ID_NONE ||
		    ops->layer[cann] != NP_HOST_NODE || ops->name[cann] != launch)
			continue;
		np_ns host = ops->start_ns[cann] - (ops->start_ns[torch] + ops->dur_ns[torch]);
		np_ns device = tasks->start_ns[i] - (ops->start_ns[cann] + ops->dur_ns[cann]);
		++*n;
		*n_device += device - host > DIFF_WAIT_NS;
	}
}

/* ── the walk ── */

struct walk {
	bool any, aligned;
	uint32_t slow_by_dur, slow_by_start; /* rows of the slow list */
	np_ns dur, start;                    /* the largest differences */
};

static void note_pair(struct walk *walk, uint32_t row, np_ns dur, np_ns start)
{
	if (!walk->any || dur > walk->dur) {
		walk->dur = dur;
		walk->slow_by_dur = row;
	}
	if (!walk->any || start > walk->start) {
		walk->start = start;
		walk->slow_by_start = row;
	}
	walk->any = true;
}

/* The fast list's id of a name of the slow one, or NP_NO_U32. */
static uint32_t translate(const struct np_look_pair *pair, uint32_t name)
{
	np_str text = np_intern_get(&pair->slow->profile->strings, name / SLOTS);
	uint32_t id = np_intern_find(&pair->fast->profile->strings, text);
	return id == NP_ID_NONE ? NP_NO_U32 : id * SLOTS + name % SLOTS;
}

/* Both lists are walked from the latest row; `cursor` holds how far each name has got, so a
 * row is passed once. */
static bool walk_lists(const struct np_look_pair *pair, const struct np_look_list *slow,
                       const struct np_look_list *fast, struct walk *out)
{
	bool whole = pair->whole && slow == &pair->slow->device;
	np_ns shift = pair->fast_end - pair->slow_end;
	np_ns slow_to = whole ? INT64_MAX : pair->slow_start;
	np_ns fast_to = whole ? INT64_MAX : pair->fast_start;
	size_t limit = np_first_from(fast->start, fast->n, fast_to);
	uint32_t *cursor = np_realloc(NULL, fast->n_names + 1, sizeof *cursor);
	*out = (struct walk){0};
	if (!cursor)
		return false;
	memcpy(cursor, fast->last, fast->n_names * sizeof *cursor);
	for (size_t i = np_first_from(slow->start, slow->n, slow_to); i-- > 0;) {
		if (slow->end[i] >= slow_to)
			continue;
		uint32_t name = translate(pair, slow->name[i]);
		if (name == NP_NO_U32)
			continue;
		uint32_t at = cursor[name];
		while (at != NP_NO_U32 && (at >= limit || fast->end[at] >= fast_to))
			at = fast->before[at];
		cursor[name] = at;
		if (at == NP_NO_U32)
			continue;
		limit = at;
		np_ns start = slow->start[i] - fast->start[at] + shift;
		note_pair(out, (uint32_t)i,
		          (slow->end[i] - slow->start[i]) - (fast->end[at] - fast->start[at]),
		          start);
		if (start < ALIGNED_NS) {
			out->aligned = true;
			break;
		}
	}
	np_free(cursor);
	return true;
}

/* ── words ── */

static void add_name(const struct np_look *look, const struct np_look_list *list, uint32_t row,
                     struct np_buf *out)
{
	static const char *const prefixes[] = {"acl@", "model@", "node@", "hccl@", "runtime@"};
	unsigned slot = list->name[row] % SLOTS;
	if (list == &look->cann && slot < sizeof prefixes / sizeof *prefixes)
		np_buf_add_cstr(out, prefixes[slot]);
	np_buf_add_str(out, np_intern_get(&look->profile->strings, list->name[row] / SLOTS));
}

static void add_walk(const struct np_look *look, const struct np_look_list *list,
                     const struct walk *walk, struct np_buf *out)
{
	if (!walk->aligned) {
		np_buf_add_cstr(out, "not aligned from the beginning.");
		return;
	}
	np_buf_add_cstr(out, "max duration-diff op ");
	add_name(look, list, walk->slow_by_dur, out);
	np_buf_add_cstr(out, ", diff ");
	np_buf_add_python_us(out, (double)walk->dur / 1000);
	np_buf_add_cstr(out, ", max start-time-diff op ");
	add_name(look, list, walk->slow_by_start, out);
	np_buf_add_cstr(out, ", diff ");
	np_buf_add_python_us(out, (double)walk->start / 1000);
	np_buf_add_char(out, '.');
}

static const char unaligned[] = " Tasks are not aligned between slow and fast NPU from the "
				"beginning";

bool np_look_compare(const struct np_look_pair *pair, struct np_buf *out)
{
	const struct np_look *slow = pair->slow, *fast = pair->fast;
	size_t n, n_device;
	struct walk first, second;
	count_bound(pair, &n, &n_device);
	if (n == 0) {
		np_buf_add_cstr(out,
		                "[Failed] Insufficient data for analyzing slow NPU bottleneck");
		return true;
	}
	if ((double)n_device / (double)n > DEVICE_SHARE) {
		if (!walk_lists(pair, &slow->device, &fast->device, &first))
			return false;
		np_buf_add_cstr(out, "[Device-bound]");
		np_buf_add_cstr(out, first.aligned ? "Device: " : unaligned);
		if (first.aligned)
			add_walk(slow, &slow->device, &first, out);
		return true;
	}
	if (!walk_lists(pair, &slow->torch, &fast->torch, &first) ||
	    !walk_lists(pair, &slow->cann, &fast->cann, &second))
		return false;
	np_buf_add_cstr(out, "[Host-bound]");
	if (!first.aligned && !second.aligned) {
		np_buf_add_cstr(out, unaligned);
		return true;
	}
	np_buf_add_cstr(out, " PyTorch: ");
	add_walk(slow, &slow->torch, &first, out);
	np_buf_add_cstr(out, " | CANN: ");
	add_walk(slow, &slow->cann, &second, out);
	return true;
}
