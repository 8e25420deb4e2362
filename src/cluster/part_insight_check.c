/* Checks of communication that need kernels and tasks. */
#include <stdlib.h>

#include "cluster/insight.h"
#include "profile/interval.h"

#define NP_TAG np_digest_insight_check
NP_TABLE_DESC(, np_digest_insight_check, "insight_check", NP_DIGEST_INSIGHT_CHECK_COLUMNS)
#undef NP_TAG

static const struct np_table_desc *const tables[] = {&np_digest_insight_check_desc, NULL};

static const double contended_gbps = 14.4; /* 0.8 of the 18 GB/s that HCCS reaches */
enum { ALIGNMENT = 512 };

/* The row of (group, what); an unknown group counts as one. SIZE_MAX: out of memory. */
static size_t row_of(const struct np_map_job *job, struct np_digest_insight_check *out,
                     uint32_t group, enum np_insight_check what)
{
	char key[NP_GROUP_KEY_SIZE];
	np_id id = NP_ID_NONE;
	if (group != NP_ID_NONE) {
		np_group_key(np_intern_get(&job->profile->strings, group), key);
		id = np_intern_add(&job->digest->strings, np_str_of(key));
		if (id == NP_ID_NONE)
			return SIZE_MAX;
	}
	for (size_t r = 0; r < out->n; r++)
		if (out->group[r] == id && out->what[r] == what)
			return r;
	size_t r = np_rows_add(out, &np_digest_insight_check_desc);
	if (r == SIZE_MAX)
		return r;
	out->group[r] = id;
	out->what[r] = (uint8_t)what;
	out->op[r] = NP_ID_NONE;
	out->count[r] = out->of[r] = 0;
	out->ms[r] = 0;
	return r;
}

/* ── contention ── */

static bool products(const struct np_profile *profile, struct np_intervals *out)
{
	const struct np_kernels *kernels = &profile->kernels;
	for (size_t i = 0; i < kernels->n; i++) {
		np_str type = np_intern_get(&profile->strings, kernels->type[i]);
		if (np_str_icontains(type, NP_STR("matmul")) &&
		    !np_is_comm_core(np_intern_get(&profile->strings, kernels->core[i])) &&
		    !np_intervals_add(out, kernels->start_ns[i],
		                      kernels->start_ns[i] + kernels->dur_ns[i]))
			return false;
	}
	np_intervals_merge(out);
	return true;
}

/* How much of [start, end) the merged set covers. */
static np_ns covered(const struct np_intervals *set, np_ns start, np_ns end)
{
	size_t low = 0, high = set->n;
	np_ns sum = 0;
	while (low < high) {
		size_t mid = low + (high - low) / 2;
		if (set->v[mid].end <= start)
			low = mid + 1;
		else
			high = mid;
	}
	for (size_t i = low; i < set->n && set->v[i].start < end; i++) {
		np_ns from = set->v[i].start > start ? set->v[i].start : start;
		np_ns to = set->v[i].end < end ? set->v[i].end : end;
		sum += to - from;
	}
	return sum;
}

struct op_time {
	int64_t step;
	uint32_t op, group, row;
};

static int by_op(const void *a, const void *b)
{
	const struct op_time *x = a, *y = b;
	if (x->step != y->step)
		return x->step < y->step ? -1 : 1;
	if (x->op != y->op)
		return x->op < y->op ? -1 : 1;
	if (x->group != y->group)
		return x->group < y->group ? -1 : 1;
	return (x->row > y->row) - (x->row < y->row);
}

static struct op_time *sorted_times(const struct np_comm_time *times)
{
	struct op_time *list = np_realloc(NULL, times->n + 1, sizeof *list);
	for (size_t i = 0; list && i < times->n; i++)
		list[i] = (struct op_time){times->step[i], times->op[i], times->group[i],
		                           (uint32_t)i};
	if (list)
		qsort(list, times->n, sizeof *list, by_op);
	return list;
}

/* The row of the operation in comm_time, or SIZE_MAX. */
static size_t find_time(const struct op_time *list, size_t n, const struct op_time *wanted)
{
	size_t low = 0, high = n;
	while (low < high) {
		size_t mid = low + (high - low) / 2;
		if (by_op(&list[mid], wanted) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	bool same = low < n && list[low].step == wanted->step && list[low].op == wanted->op &&
	            list[low].group == wanted->group;
	return same ? list[low].row : SIZE_MAX;
}

/* One SDMA row: is the link slow, and does a matrix product run beside it? */
static bool check_link(const struct np_map_job *job, const struct op_time *list,
                       const struct np_intervals *set, size_t i,
                       struct np_digest_insight_check *out, double *longest)
{
	const struct np_comm_bandwidth *in = &job->profile->comm_bandwidth;
	const struct np_comm_time *times = &job->profile->comm_time;
	struct op_time wanted = {in->step[i], in->op[i], in->group[i], 0};
	size_t time = find_time(list, times->n, &wanted);
	if (time == SIZE_MAX || !(times->start_us[time] >= 0) || !(times->elapse_ms[time] >= 0) ||
	    times->start_us[time] > 4e15 || times->elapse_ms[time] > 1e12)
		return true;
	np_ns start = (np_ns)(times->start_us[time] * 1e3);
	np_ns beside = covered(set, start, start + (np_ns)(times->elapse_ms[time] * 1e6));
	size_t r = row_of(job, out, in->group[i], NP_INSIGHT_CONTENTION);
	if (r == SIZE_MAX)
		return false;
	out->of[r]++;
	if (!(in->gbps[i] < contended_gbps) || beside == 0)
		return true;
	out->count[r]++;
	out->ms[r] += (double)beside / 1e6;
	if (out->op[r] != NP_ID_NONE && (double)beside <= *longest)
		return true;
	*longest = (double)beside;
	return np_digest_string(job->digest, &job->profile->strings, in->op[i], &out->op[r]);
}

static bool contention(const struct np_map_job *job, struct np_digest_insight_check *out)
{
	const struct np_comm_bandwidth *in = &job->profile->comm_bandwidth;
	struct np_intervals set = {0};
	double longest = 0;
	struct op_time *list = sorted_times(&job->profile->comm_time);
	bool ok = list && products(job->profile, &set);
	for (size_t i = 0; ok && set.n > 0 && i < in->n; i++)
		if (in->transit_ms[i] > 0 && !(in->package_mb[i] >= 0) &&
		    np_str_is(np_intern_get(&job->profile->strings, in->transport[i]), "SDMA"))
			ok = check_link(job, list, &set, i, out, &longest);
	np_free(list);
	np_intervals_release(&set);
	return ok;
}

/* ── alignment ── */

static bool is_copy(const struct np_map_job *job, size_t i)
{
	const struct np_comm_tasks *tasks = &job->profile->comm_tasks;
	const struct np_intern *strings = &job->profile->strings;
	np_str name = np_intern_get(strings, tasks->name[i]);
	return tasks->size_bytes[i] > ALIGNMENT &&
	       (np_str_is(name, "Memcpy") || np_str_is(name, "Reduce_Inline")) &&
	       np_str_is(np_intern_get(strings, tasks->transport[i]), "SDMA") &&
	       !np_str_is(np_intern_get(strings, tasks->link[i]), "ON_CHIP");
}

static bool alignment(const struct np_map_job *job, struct np_digest_insight_check *out)
{
	const struct np_comm_tasks *tasks = &job->profile->comm_tasks;
	const struct np_comm_ops *ops = &job->profile->comm_ops;
	for (size_t i = 0; i < tasks->n; i++) {
		if (!is_copy(job, i))
			continue;
		bool known = tasks->op[i] < ops->n;
		size_t r = row_of(job, out, known ? ops->group[tasks->op[i]] : NP_ID_NONE,
		                  NP_INSIGHT_ALIGNMENT);
		if (r == SIZE_MAX)
			return false;
		out->of[r]++;
		if (tasks->size_bytes[i] % ALIGNMENT == 0)
			continue;
		out->count[r]++;
		out->ms[r] += (double)tasks->dur_ns[i] / 1e6;
		if (out->op[r] == NP_ID_NONE && known &&
		    !np_digest_string(job->digest, &job->profile->strings, ops->name[tasks->op[i]],
		                      &out->op[r]))
			return false;
	}
	return true;
}

static enum np_status map(const struct np_map_job *job, struct np_err *err)
{
	struct np_digest_insight_check *out =
		np_digest_table(job->digest, &np_digest_insight_check_desc);
	return out && contention(job, out) && alignment(job, out) ? NP_OK : np_err_nomem(err);
}

const struct np_part np_part_insight_check = {
	.name = "insight_check",
	.revision = 1,
	.load = NP_KERNELS | NP_COMM | NP_COMM_SUMMARY,
	.tables = tables,
	.map = map,
};
