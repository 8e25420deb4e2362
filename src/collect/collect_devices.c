/* Stage devices: free ones of one group, or those that were named, for the same group in all arms
 * (R11a: comparisons use one card group). */
#include <stdlib.h>
#include <string.h>

#include "collect/collect_internal.h"
#include "collect/collect_script.h"
#include "collect/devices.h"
#include "collect/rank_set.h"
#include "report/lang.h"

/* ── how many ── */

/* What torchrun calls its processes per node. */
static bool take_nproc(const char *word, const char *next, uint64_t *out)
{
	static const char *const names[] = {"--nproc_per_node", "--nproc-per-node"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		size_t len = strlen(names[i]);
		if (strncmp(word, names[i], len) != 0)
			continue;
		if (word[len] == '=')
			return np_str_to_u64(np_str_of(word + len + 1), out);
		if (word[len] == '\0' && next)
			return np_str_to_u64(np_str_of(next), out);
	}
	return false;
}

static uint64_t wanted(const struct np_collect_options *options)
{
	uint64_t n = 0;
	for (size_t i = 0; options->command[i]; i++)
		if (take_nproc(options->command[i], options->command[i + 1], &n) && n)
			return n;
	return 1;
}

/* ── which ── */

struct search {
	struct leg *leg;
	struct np_npu_set set;
	const char **busy;
	size_t *groups;
	np_str locked; /* lines of COLLECT_LOCKED_SCRIPT */
};

/* The line of a device's lock, without its number; empty. */
static np_str lock_of(np_str lines, int64_t logical)
{
	while (lines.len) {
		np_str line = np_str_cut(lines, '\n', &lines), rest;
		int64_t number = -1;
		if (np_str_to_i64(np_str_cut(line, ' ', &rest), &number) && number == logical)
			return rest;
	}
	return (np_str){NULL, 0};
}

static enum np_status judge(struct search *self, struct np_err *err)
{
	struct np_arena *arena = &self->set.arena;
	size_t n = self->set.devices.n;
	self->busy = np_arena_zalloc(arena, (n + 1) * sizeof *self->busy);
	self->groups = np_arena_zalloc(arena, (n + 1) * sizeof *self->groups);
	if (!self->busy || !self->groups)
		return np_err_nomem(err);
	(void)np_npu_groups(&self->set, self->groups);
	for (size_t i = 0; i < n; i++) {
		np_str lock = lock_of(self->locked, np_npu_logical(&self->set, i));
		self->busy[i] = lock.len ? np_arena_printf(arena, np_tr("locked by process %.*s"),
		                                           NP_FMT(lock))
		                         : np_npu_busy(&self->set, i, 0);
		if (!self->busy[i])
			return np_err_nomem(err);
	}
	return NP_OK;
}

static struct np_finding *refuse(struct search *self, np_ns begin, const char *code,
                                 const char *what)
{
	struct leg *leg = self->leg;
	struct np_finding *finding = np_report_finding(leg->report, code, NP_ERROR, "%s", what);
	for (size_t i = 0; i < self->set.devices.n; i++)
		if (*self->busy[i])
			np_finding_evidence(finding, NULL, "reason", NULL, "device %lld: %s",
			                    (long long)np_npu_logical(&self->set, i),
			                    self->busy[i]);
	np_finding_advice(finding, "Nothing was run. Wait for the others to end, or take another "
	                           "host or other devices.");
	np_finding_command(finding, "%s", collect_resume_line(leg));
	collect_stage(leg, STAGE_DEVICES, NP_VERDICT_FAIL, begin, "%s", what);
	return finding;
}

static const char *join(struct search *self, const size_t *chosen, size_t n)
{
	struct np_buf text = {0};
	for (size_t i = 0; i < n; i++)
		np_buf_printf(&text, "%s%lld", i ? "," : "",
		              (long long)np_npu_logical(&self->set, chosen[i]));
	const char *out = text.failed ? NULL : np_arena_cstr(&self->leg->arena, np_buf_str(&text));
	np_buf_release(&text);
	return out;
}

static enum np_status pick(struct search *self, uint64_t n, np_ns begin, struct np_err *err)
{
	size_t chosen[NP_NPU_MAX] = {0}, all = self->set.devices.n;
	struct np_npu_choice choice = {0};
	char what[160];
	if (n <= all && n <= NP_NPU_MAX)
		choice = np_npu_pick(&self->set, self->busy, self->groups, (size_t)n,
		                     self->leg->all->options->span_groups, chosen);
	for (size_t i = 0; i < all && n > all; i++)
		choice.n_free += !*self->busy[i];
	if (!choice.found) {
		(void)snprintf(
			what, sizeof what,
			np_tr("%llu free devices of one group are wanted, %zu of %zu are free"),
			(unsigned long long)n, choice.n_free, all);
		struct np_finding *finding = refuse(self, begin, "DEVICES_NONE_FREE", what);
		if (choice.n_free >= n)
			np_finding_advice(finding, "--span-groups takes devices of several groups, "
			                           "which talk over PCIe.");
		return np_err_set(err, NP_E_EMPTY, self->leg->host, "%s", what);
	}
	self->leg->devices = join(self, chosen, (size_t)n);
	return self->leg->devices ? NP_OK : np_err_nomem(err);
}

/* Those that were named: each is there and free. */
static enum np_status take_named(struct search *self, const char *list, np_ns begin,
                                 struct np_err *err)
{
	struct np_rank_set ids = {0};
	struct leg *leg = self->leg;
	size_t chosen[NP_NPU_MAX] = {0};
	char what[160];
	NP_TRY(np_rank_set_parse(&leg->arena, list, &ids, err));
	for (size_t k = 0; k < ids.n; k++) {
		size_t i = 0;
		while (i < self->set.devices.n && np_npu_logical(&self->set, i) != ids.v[k])
			i++;
		bool there = i < self->set.devices.n && k < NP_NPU_MAX;
		if (there && !*self->busy[i]) {
			chosen[k] = i;
			continue;
		}
		(void)snprintf(what, sizeof what,
		               there ? np_tr("device %lld is not free")
		                     : np_tr("device %lld is not there"),
		               (long long)ids.v[k]);
		(void)refuse(self, begin, "DEVICE_BUSY", what);
		return np_err_set(err, NP_E_EMPTY, leg->host, "%s", what);
	}
	leg->devices = join(self, chosen, ids.n);
	return leg->devices ? NP_OK : np_err_nomem(err);
}

static enum np_status search(struct search *self, const char *list, uint64_t n, np_ns begin,
                             struct np_err *err)
{
	struct leg *leg = self->leg;
	struct np_outcome outcome = {0};
	const char *const none[] = {NULL};
	enum np_status status = collect_ask(leg, "locks of devices", COLLECT_LOCKED_SCRIPT, none,
	                                    NULL, NULL, &outcome, NULL, err);
	if (status == NP_OK)
		status = np_devices_ask(leg->transport, leg->all->place.container, 0, &self->set,
		                        err);
	if (status != NP_OK)
		(void)collect_broken(leg, STAGE_DEVICES, begin, status, err);
	self->locked = np_buf_str(&outcome.out);
	if (status == NP_OK)
		status = judge(self, err);
	if (status == NP_OK)
		status = list ? take_named(self, list, begin, err) : pick(self, n, begin, err);
	np_outcome_release(&outcome);
	return status;
}

/* The devices of the first arm on this host, for the other arms. */
static const char *of_first_arm(const struct leg *leg)
{
	const struct leg *first = &leg->all->legs[leg->index];
	return first == leg ? NULL : first->devices;
}

enum np_status collect_devices(struct leg *leg, struct np_err *err)
{
	const char *asked = leg->all->options->devices;
	np_ns begin = np_time_now();
	uint64_t n = 0;
	if (asked && strcmp(asked, "none") == 0) {
		leg->devices = "";
		return NP_OK;
	}
	struct search self = {.leg = leg};
	const char *list = of_first_arm(leg);
	if (!list && asked && strncmp(asked, "id:", 3) == 0)
		list = asked + 3;
	else if (!list && asked && !np_str_to_u64(np_str_of(asked), &n))
		list = asked;
	if (n == 0)
		n = wanted(leg->all->options);
	np_npu_set_init(&self.set);
	enum np_status status = search(&self, list, n, begin, err);
	np_npu_set_release(&self.set);
	if (status == NP_OK)
		collect_stage(leg, STAGE_DEVICES, NP_VERDICT_PASS, begin, "%s", leg->devices);
	return status;
}
