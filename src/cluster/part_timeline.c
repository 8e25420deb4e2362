#include <ctype.h>
#include <math.h>
#include <stdlib.h>

#include "base/map.h"
#include "cluster/timeline.h"
#include "profile/interval.h"
#include "profile/search.h"

#define NP_TAG np_timeline_ops
NP_TABLE_DESC(, np_timeline_ops, "timeline_ops", NP_TIMELINE_OPS_COLUMNS)
#undef NP_TAG
#define NP_TAG np_timeline_steps
NP_TABLE_DESC(, np_timeline_steps, "timeline_steps", NP_TIMELINE_STEPS_COLUMNS)
#undef NP_TAG
#define NP_TAG np_timeline_facts
NP_TABLE_DESC(, np_timeline_facts, "timeline_facts", NP_TIMELINE_FACTS_COLUMNS)
#undef NP_TAG

/* Intervals, and the sum of the lengths before each. */
struct sums {
	struct np_intervals set;
	np_ns *before;
};

struct build {
	const struct np_map_job *job;
	const struct np_profile *profile;
	struct np_digest *digest;
	struct np_timeline_ops *ops;
	struct np_timeline_steps *steps;
	struct np_map step_rows;
	struct sums compute, exposed;
	bool has_kernels, rounded;
	uint32_t no_group;
};

/* ── ops, from the best source there is ── */

/* "hcom_allReduce__865_0_1" → "allreduce" */
static np_str short_type(np_str name, char out[64])
{
	size_t n = 0;
	if (np_str_istarts(name, NP_STR("hcom_")))
		name = np_str_from(name, 5);
	for (; n < name.len && n < 63 && name.ptr[n] != '_'; n++)
		out[n] = (char)tolower((unsigned char)name.ptr[n]);
	return (np_str){out, n};
}

static bool set_names(struct build *self, size_t r, uint32_t name, uint32_t group)
{
	char type[64], key[NP_GROUP_KEY_SIZE] = "";
	const struct np_intern *strings = &self->profile->strings;
	np_str group_text = np_intern_get(strings, group);
	struct np_timeline_ops *ops = self->ops;
	ops->type[r] = np_intern_add(&self->digest->strings,
	                             short_type(np_intern_get(strings, name), type));
	ops->group[r] = NP_ID_NONE;
	if (group != NP_ID_NONE && group_text.len > 0) {
		np_group_key(group_text, key);
		ops->group[r] = np_intern_add(&self->digest->strings, np_str_of(key));
		if (ops->group[r] == NP_ID_NONE)
			return false;
	} else {
		self->no_group++;
	}
	return ops->type[r] != NP_ID_NONE &&
	       np_digest_string(self->digest, strings, name, &ops->name[r]);
}

static size_t add_op(struct build *self, uint32_t name, uint32_t group, np_ns start, np_ns dur)
{
	if (start < self->job->from_ns || start > self->job->to_ns)
		return SIZE_MAX - 1;
	size_t r = np_rows_add(self->ops, &np_timeline_ops_desc);
	if (r == SIZE_MAX || !set_names(self, r, name, group))
		return SIZE_MAX;
	struct np_timeline_ops *ops = self->ops;
	ops->start_ns[r] = start;
	ops->dur_ns[r] = dur;
	ops->dtype[r] = NP_ID_NONE;
	ops->count[r] = ops->step[r] = NP_NO_I64;
	ops->wait_us[r] = ops->transit_us[r] = NAN;
	return r;
}

/*
 * Of the kernel table alone (level 0 has no communication.json): names like
 * hcom_allReduce__271_0_1, whose second part is the end of the group's hash.
 */
static bool ops_of_kernels(struct build *self)
{
	const struct np_kernels *k = &self->profile->kernels;
	const struct np_intern *strings = &self->profile->strings;
	for (size_t i = 0; i < k->n; i++) {
		np_str rest, name = np_intern_get(strings, k->name[i]);
		if (!np_str_istarts(name, NP_STR("hcom_")))
			continue;
		size_t r = add_op(self, k->name[i], NP_ID_NONE, k->start_ns[i], k->dur_ns[i]);
		if (r == SIZE_MAX)
			return false;
		if (r == SIZE_MAX - 1)
			continue;
		if (k->step[i] < self->profile->steps.n)
			self->ops->step[r] = self->profile->steps.id[k->step[i]];
		(void)np_str_cut(np_str_from(name, 5), '_', &rest);
		(void)np_str_cut(rest, '_', &rest); /* two of them */
		np_str group = np_str_cut(rest, '_', &rest);
		uint64_t number;
		if (!np_str_to_u64(group, &number))
			continue;
		self->no_group--;
		self->ops->group[r] = np_intern_add(&self->digest->strings, group);
		if (self->ops->group[r] == NP_ID_NONE)
			return false;
	}
	return true;
}

/* Recorded waits by (name, group, step): the rows of comm_time. */
static uint64_t time_key(np_id name, np_id group, int64_t step)
{
	return ((uint64_t)name << 32 ^ group) + (uint64_t)step * UINT64_C(0x9E3779B97F4A7C15);
}

static bool is_total(np_str name)
{
	return np_str_istarts(name, NP_STR("total"));
}

/* Row of the kernel of this name that starts within 1 us of `start`, or SIZE_MAX. Kernels are
 * ordered by device, then start; captures of one rank have one device. */
static size_t kernel_at(const struct np_kernels *k, uint32_t name, np_ns start)
{
	enum { NEAR_NS = 1000 };
	size_t low = np_first_from(k->start_ns, k->n, start - NEAR_NS);
	for (; low < k->n && k->start_ns[low] <= start + NEAR_NS; low++)
		if (k->name[low] == name)
			return low;
	return SIZE_MAX;
}

/* The step whose host range covers the time: for ops that were launched before it began. */
static uint32_t step_at(const struct np_steps *steps, np_ns t)
{
	for (size_t s = 0; s < steps->n; s++)
		if (steps->host_start_ns[s] != NP_NO_I64 && steps->host_start_ns[s] <= t &&
		    t <= steps->host_end_ns[s])
			return (uint32_t)s;
	return NP_NO_U32;
}

/* Of the database or the trace: exact. */
static bool ops_of_device(struct build *self)
{
	const struct np_comm_ops *from = &self->profile->comm_ops;
	const struct np_steps *steps = &self->profile->steps;
	const struct np_kernels *kernels = &self->profile->kernels;
	for (size_t i = 0; i < from->n; i++) {
		size_t r = add_op(self, from->name[i], from->group[i], from->start_ns[i],
		                  from->dur_ns[i]);
		if (r == SIZE_MAX)
			return false;
		if (r == SIZE_MAX - 1)
			continue;
		self->ops->count[r] = from->count[i];
		/* the kernels know the step; collectives alone do not */
		size_t k = from->step[i] < steps->n
		                   ? SIZE_MAX
		                   : kernel_at(kernels, from->name[i], from->start_ns[i]);
		uint32_t step = k != SIZE_MAX ? kernels->step[k] : from->step[i];
		if (step == NP_NO_U32)
			step = step_at(steps, from->start_ns[i]);
		if (step < steps->n)
			self->ops->step[r] = steps->id[step];
		if (!np_digest_string(self->digest, &self->profile->strings, from->dtype[i],
		                      &self->ops->dtype[r]))
			return false;
	}
	return true;
}

/* Of communication.json: us as doubles; exact where the kernel table has the op, too. */
static bool ops_of_summary(struct build *self)
{
	const struct np_comm_time *from = &self->profile->comm_time;
	const struct np_kernels *kernels = &self->profile->kernels;
	for (size_t i = 0; i < from->n; i++) {
		np_ns start = (np_ns)llround(from->start_us[i] * 1000);
		np_ns dur = (np_ns)llround(from->elapse_ms[i] * 1e6);
		if (is_total(np_intern_get(&self->profile->strings, from->op[i])) ||
		    !np_time_sane(start, dur))
			continue;
		size_t k = kernel_at(kernels, from->op[i], start);
		if (k != SIZE_MAX) {
			start = kernels->start_ns[k];
			dur = kernels->dur_ns[k];
		} else {
			self->rounded = true;
		}
		size_t r = add_op(self, from->op[i], from->group[i], start, dur);
		if (r == SIZE_MAX)
			return false;
		if (r == SIZE_MAX - 1)
			continue;
		self->ops->step[r] = from->step[i];
		self->ops->wait_us[r] = from->wait_ms[i] * 1000;
		self->ops->transit_us[r] = from->transit_ms[i] * 1000;
	}
	return true;
}

/* Waits that the summary has recorded beside the ops of the device. */
static bool add_waits(struct build *self)
{
	const struct np_comm_time *from = &self->profile->comm_time;
	struct np_timeline_ops *ops = self->ops;
	struct np_map rows;
	bool ok = true;
	np_map_init(&rows);
	for (size_t i = 0; ok && i < from->n; i++) {
		np_id name = np_intern_find(&self->digest->strings,
		                            np_intern_get(&self->profile->strings, from->op[i]));
		np_id group =
			np_intern_find(&self->digest->strings,
		                       np_intern_get(&self->profile->strings, from->group[i]));
		if (name != NP_ID_NONE)
			ok = np_map_put(&rows, time_key(name, group, from->step[i]), (uint32_t)i);
	}
	for (size_t r = 0; ok && r < ops->n; r++) {
		uint32_t i = np_map_get(&rows, time_key(ops->name[r], ops->group[r], ops->step[r]),
		                        NP_NO_U32);
		if (i != NP_NO_U32) {
			ops->wait_us[r] = from->wait_ms[i] * 1000;
			ops->transit_us[r] = from->transit_ms[i] * 1000;
		}
	}
	np_map_release(&rows);
	return ok;
}

struct by_start {
	np_ns start;
	unsigned row;
};

static int compare_starts(const void *a, const void *b)
{
	const struct by_start *x = a, *y = b;
	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return (x->row > y->row) - (x->row < y->row);
}

static bool sort_ops(struct np_timeline_ops *ops)
{
	struct by_start *keys = np_realloc(NULL, ops->n + 1, sizeof *keys);
	unsigned *order = np_realloc(NULL, ops->n + 1, sizeof *order);
	bool ok = keys && order;
	for (size_t i = 0; ok && i < ops->n; i++)
		keys[i] = (struct by_start){ops->start_ns[i], (unsigned)i};
	if (ok)
		qsort(keys, ops->n, sizeof *keys, compare_starts);
	for (size_t i = 0; ok && i < ops->n; i++)
		order[i] = keys[i].row;
	ok = ok && np_rows_permute(ops, &np_timeline_ops_desc, order);
	np_free(keys);
	np_free(order);
	return ok;
}

/* ── running sums ── */

static bool finish_sums(struct sums *self)
{
	np_ns sum = 0;
	self->before = np_realloc(NULL, self->set.n + 1, sizeof *self->before);
	for (size_t i = 0; self->before && i < self->set.n; i++) {
		self->before[i] = sum;
		sum += self->set.v[i].end - self->set.v[i].start;
	}
	return self->before != NULL;
}

/* Length of the set before t. */
static np_ns sum_before(const struct sums *self, np_ns t)
{
	size_t low = 0, high = self->set.n;
	while (low < high) {
		size_t mid = low + (high - low) / 2;
		if (self->set.v[mid].start < t)
			low = mid + 1;
		else
			high = mid;
	}
	if (low == 0)
		return 0;
	const struct np_interval *last = &self->set.v[low - 1];
	return self->before[low - 1] + (t < last->end ? t : last->end) - last->start;
}

static bool make_sums(struct build *self)
{
	const struct np_kernels *k = &self->profile->kernels;
	const struct np_timeline_ops *ops = self->ops;
	struct np_intervals comm = {0};
	bool ok = true;
	for (size_t i = 0; ok && i < k->n; i++)
		if (!np_is_comm_core(np_intern_get(&self->profile->strings, k->core[i])))
			ok = np_intervals_add(&self->compute.set, k->start_ns[i],
			                      k->start_ns[i] + k->dur_ns[i]);
	for (size_t i = 0; ok && i < ops->n; i++)
		ok = np_intervals_add(&comm, ops->start_ns[i], ops->start_ns[i] + ops->dur_ns[i]);
	np_intervals_merge(&self->compute.set);
	np_intervals_merge(&comm);
	self->has_kernels = self->compute.set.n > 0;
	ok = ok && np_intervals_subtract(&comm, &self->compute.set, &self->exposed.set);
	np_intervals_release(&comm);
	return ok && finish_sums(&self->compute) && finish_sums(&self->exposed);
}

static void put_sums(struct build *self)
{
	struct np_timeline_ops *ops = self->ops;
	struct np_timeline_steps *steps = self->steps;
	for (size_t i = 0; i < ops->n; i++) {
		np_ns end = ops->start_ns[i] + ops->dur_ns[i];
		ops->compute_start_ns[i] = sum_before(&self->compute, ops->start_ns[i]);
		ops->compute_end_ns[i] = sum_before(&self->compute, end);
		ops->exposed_start_ns[i] = sum_before(&self->exposed, ops->start_ns[i]);
		ops->exposed_end_ns[i] = sum_before(&self->exposed, end);
	}
	for (size_t s = 0; s < steps->n; s++) {
		bool empty = steps->start_ns[s] == NP_NO_I64;
		np_ns start = empty ? 0 : steps->start_ns[s], end = empty ? 0 : steps->end_ns[s];
		steps->compute_start_ns[s] = sum_before(&self->compute, start);
		steps->compute_end_ns[s] = sum_before(&self->compute, end);
		steps->exposed_start_ns[s] = sum_before(&self->exposed, start);
		steps->exposed_end_ns[s] = sum_before(&self->exposed, end);
	}
}

/* ── steps ── */

static size_t step_row(struct build *self, int64_t id)
{
	uint32_t known = np_map_get(&self->step_rows, (uint64_t)id, NP_NO_U32);
	if (known != NP_NO_U32)
		return known;
	size_t r = np_rows_add(self->steps, &np_timeline_steps_desc);
	if (r == SIZE_MAX || !np_map_put(&self->step_rows, (uint64_t)id, (uint32_t)r))
		return SIZE_MAX;
	self->steps->step[r] = id;
	self->steps->start_ns[r] = self->steps->end_ns[r] = NP_NO_I64;
	self->steps->computing_us[r] = self->steps->free_us[r] = NAN;
	return r;
}

static bool widen(struct build *self, int64_t step, np_ns start, np_ns end)
{
	size_t r = step_row(self, step);
	if (r == SIZE_MAX)
		return false;
	struct np_timeline_steps *steps = self->steps;
	if (steps->start_ns[r] == NP_NO_I64 || start < steps->start_ns[r])
		steps->start_ns[r] = start;
	if (steps->end_ns[r] == NP_NO_I64 || end > steps->end_ns[r])
		steps->end_ns[r] = end;
	return true;
}

static bool make_steps(struct build *self)
{
	const struct np_profile *p = self->profile;
	bool has_ids = p->steps.n > 0 || p->step_trace.n > 0;
	for (size_t i = 0; i < p->kernels.n; i++) {
		np_ns start = p->kernels.start_ns[i];
		int64_t id = p->kernels.step[i] < p->steps.n ? p->steps.id[p->kernels.step[i]]
		                                             : NP_NO_I64;
		if ((id == NP_NO_I64 && has_ids) || start < self->job->from_ns ||
		    start > self->job->to_ns)
			continue;
		if (!widen(self, id, start, start + p->kernels.dur_ns[i]))
			return false;
	}
	for (size_t i = 0; i < self->ops->n; i++)
		if (!widen(self, self->ops->step[i], self->ops->start_ns[i],
		           self->ops->start_ns[i] + self->ops->dur_ns[i]))
			return false;
	for (size_t i = 0; i < p->step_trace.n; i++) {
		int64_t id = p->step_trace.step[i];
		if (self->job->options->has_step && id != self->job->options->step)
			continue;
		size_t r = step_row(self, id);
		if (r == SIZE_MAX)
			return false;
		self->steps->computing_us[r] = p->step_trace.computing_us[i];
		self->steps->free_us[r] = p->step_trace.free_us[i];
	}
	return true;
}

static bool sort_steps(struct np_timeline_steps *steps)
{
	struct by_start *keys = np_realloc(NULL, steps->n + 1, sizeof *keys);
	unsigned *order = np_realloc(NULL, steps->n + 1, sizeof *order);
	bool ok = keys && order;
	for (size_t i = 0; ok && i < steps->n; i++)
		keys[i] = (struct by_start){steps->step[i], (unsigned)i};
	if (ok)
		qsort(keys, steps->n, sizeof *keys, compare_starts);
	for (size_t i = 0; ok && i < steps->n; i++)
		order[i] = keys[i].row;
	ok = ok && np_rows_permute(steps, &np_timeline_steps_desc, order);
	np_free(keys);
	np_free(order);
	return ok;
}

/* ── the whole ── */

static bool build(struct build *self)
{
	struct np_timeline_facts *facts = np_digest_table(self->digest, &np_timeline_facts_desc);
	bool device = self->profile->comm_ops.n > 0, summary = self->profile->comm_time.n > 0;
	if (!(device    ? ops_of_device(self)
	      : summary ? ops_of_summary(self)
	                : ops_of_kernels(self)) ||
	    !sort_ops(self->ops) || (device && !add_waits(self)) || !make_sums(self) ||
	    !make_steps(self))
		return false;
	put_sums(self);
	if (!sort_steps(self->steps))
		return false;
	size_t r = np_rows_add(facts, &np_timeline_facts_desc);
	if (r == SIZE_MAX)
		return false;
	facts->has_kernels[r] = self->has_kernels;
	facts->rounded[r] = self->rounded;
	facts->no_group[r] = self->no_group;
	return true;
}

static enum np_status map(const struct np_map_job *job, struct np_err *err)
{
	struct build self = {.job = job,
	                     .profile = job->profile,
	                     .digest = job->digest,
	                     .ops = np_digest_table(job->digest, &np_timeline_ops_desc),
	                     .steps = np_digest_table(job->digest, &np_timeline_steps_desc)};
	np_map_init(&self.step_rows);
	bool ok = build(&self);
	np_map_release(&self.step_rows);
	np_intervals_release(&self.compute.set);
	np_intervals_release(&self.exposed.set);
	np_free(self.compute.before);
	np_free(self.exposed.before);
	return ok ? NP_OK : np_err_nomem(err);
}

static const struct np_table_desc *const tables[] = {&np_timeline_ops_desc, &np_timeline_steps_desc,
                                                     &np_timeline_facts_desc, NULL};

const struct np_part np_part_timeline = {
	.name = "timeline",
	.revision = 4,
	.load = NP_KERNELS | NP_STEPS | NP_COMM_OPS | NP_COMM_SUMMARY | NP_STEP_TRACE,
	.load_text = NP_KERNELS | NP_COMM_SUMMARY | NP_STEP_TRACE,
	.tables = tables,
	.map = map,
};
