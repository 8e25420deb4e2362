#include "collect/npu_pick.h"

#include <math.h>

#include "report/lang.h"

static uint64_t limit_mb(int64_t total_mb, uint64_t max_used_mb)
{
	uint64_t share = total_mb > 0 ? (uint64_t)total_mb * NP_NPU_IDLE_SHARE / 100 : 0;
	if (max_used_mb)
		return max_used_mb;
	return share > NP_NPU_IDLE_MB ? share : NP_NPU_IDLE_MB;
}

static const char *first_process(struct np_npu_set *set, const struct np_npu_device *device)
{
	for (size_t i = 0; i < set->processes.n; i++) {
		const struct np_npu_process *process = &set->processes.v[i];
		if (process->npu != device->npu || process->chip != device->chip)
			continue;
		const char *more = device->n_processes > 1 ? np_tr(" and others") : "";
		if (process->name.len == 0)
			return np_arena_printf(&set->arena, np_tr("busy: process %lld%s"),
			                       (long long)process->pid, more);
		return np_arena_printf(&set->arena, np_tr("busy: process %lld (%.*s)%s"),
		                       (long long)process->pid, NP_FMT(process->name), more);
	}
	return np_tr("busy");
}

const char *np_npu_busy(struct np_npu_set *set, size_t index, uint64_t max_used_mb)
{
	const struct np_npu_device *device = &set->devices.v[index];
	bool hbm = device->hbm_total_mb > 0;
	int64_t total = hbm ? device->hbm_total_mb : device->mem_total_mb;
	int64_t used = hbm ? device->hbm_used_mb : device->mem_used_mb;
	if (!np_str_ieq(device->health, NP_STR("OK")))
		return np_arena_printf(&set->arena, np_tr("health: %.*s"), NP_FMT(device->health));
	if (device->n_processes)
		return first_process(set, device);
	if (!device->processes_told)
		return np_tr("the table of processes does not tell of it");
	if (total <= 0 || used < 0)
		return np_tr("the memory in use is not told");
	if ((uint64_t)used > limit_mb(total, max_used_mb))
		return np_arena_printf(
			&set->arena,
			np_tr("%lld of %lld MB in use, by a process that is not seen from here"),
			(long long)used, (long long)total);
	if (isnan(device->aicore))
		return np_tr("the load of the AI cores is not told");
	if (device->aicore > NP_NPU_IDLE_AICORE)
		return np_arena_printf(&set->arena, np_tr("AI cores at %.0f %%"), device->aicore);
	return "";
}

bool np_npu_knows_logical(const struct np_npu_set *set)
{
	for (size_t i = 0; i < set->devices.n; i++)
		if (set->devices.v[i].logic == NP_NPU_NONE)
			return false;
	return true;
}

int64_t np_npu_logical(const struct np_npu_set *set, size_t device)
{
	return np_npu_knows_logical(set) ? set->devices.v[device].logic : (int64_t)device;
}

/* ── choosing ── */

/* How many devices of the NPU of this one are there, and free? */
static bool is_whole_npu_free(const struct np_npu_set *set, const char *const *busy, size_t device)
{
	for (size_t i = 0; i < set->devices.n; i++)
		if (set->devices.v[i].npu == set->devices.v[device].npu && *busy[i])
			return false;
	return true;
}

static size_t count_free(const struct np_npu_set *set, const char *const *busy,
                         const size_t *groups, size_t group)
{
	size_t n = 0;
	for (size_t i = 0; i < set->devices.n; i++)
		n += groups[i] == group && !*busy[i];
	return n;
}

/* Add free devices of a group, or of all (group SIZE_MAX), until there are n. */
static size_t take(const struct np_npu_set *set, const char *const *busy, const size_t *groups,
                   size_t group, bool whole, size_t n, size_t taken, size_t *chosen)
{
	for (size_t i = 0; i < set->devices.n && taken < n; i++)
		if (!*busy[i] && (group == SIZE_MAX || groups[i] == group) &&
		    is_whole_npu_free(set, busy, i) == whole)
			chosen[taken++] = i;
	return taken;
}

static void sort_by_logical(const struct np_npu_set *set, size_t *chosen, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		size_t one = chosen[i], k = i;
		for (; k > 0 && np_npu_logical(set, chosen[k - 1]) > np_npu_logical(set, one); k--)
			chosen[k] = chosen[k - 1];
		chosen[k] = one;
	}
}

struct np_npu_choice np_npu_pick(const struct np_npu_set *set, const char *const *busy,
                                 const size_t *groups, size_t n, bool span, size_t *chosen)
{
	struct np_npu_choice choice = {0};
	size_t best_left = SIZE_MAX;
	for (size_t i = 0; i < set->devices.n; i++) {
		size_t in_group = count_free(set, busy, groups, groups[i]);
		choice.n_free += !*busy[i];
		if (in_group > choice.n_best)
			choice.n_best = in_group;
		if (in_group < n || in_group - n >= best_left)
			continue;
		best_left = in_group - n;
		choice.group = groups[i];
		choice.found = true;
	}
	size_t group = choice.group;
	if (!choice.found && span && choice.n_free >= n) {
		choice.found = true;
		group = SIZE_MAX;
	}
	if (!choice.found || n == 0)
		return choice;
	/* one device: rather the free half of an NPU that is in use already */
	size_t taken = take(set, busy, groups, group, n > 1, n, 0, chosen);
	(void)take(set, busy, groups, group, n <= 1, n, taken, chosen);
	sort_by_logical(set, chosen, n);
	if (group == SIZE_MAX)
		choice.group = groups[chosen[0]];
	return choice;
}
