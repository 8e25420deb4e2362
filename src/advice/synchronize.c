/*
 * Synchronize Stream Issues (cluster_and_advisor.md §3.5): the host waits for the stream
 * behind most launches, so that nothing is ever queued.
 */
#include "advice/host.h"
#include "report/lang.h"

/* A sync call that comes next behind a launch, on whatever thread: the launch may be of the
 * thread that empties the task queue, and the wait of the one that filled it. */
static size_t count(struct np_advice *self, struct np_host_calls *calls)
{
	const struct np_profile *profile = self->rank->profile;
	const struct np_host_ops *ops = &profile->host_ops;
	const struct np_intern *strings = &profile->strings;
	uint32_t launch = np_intern_find(strings, NP_STR("launch"));
	uint32_t sync = np_intern_find(strings, NP_STR("aclrtSynchronizeStream"));
	uint32_t timed = np_intern_find(strings, NP_STR("aclrtSynchronizeStreamWithTimeout"));
	size_t launches = 0;
	bool behind = false;
	for (uint32_t i = 0; i < ops->n; i++) {
		uint32_t name = ops->name[i];
		if (name == NP_ID_NONE)
			continue;
		if (ops->layer[i] == NP_HOST_NODE && name == launch) {
			launches++;
			behind = true;
		} else if (ops->layer[i] == NP_HOST_ACL && (name == sync || name == timed)) {
			if (behind)
				self->oom |= !np_host_calls_add(calls, ops, i);
			behind = false;
		}
	}
	return launches;
}

static void run(struct np_advice *self, const struct np_checker *checker)
{
	struct np_host_calls calls = {.total = 0};
	struct np_problem_text text = {
		.code = "ADVICE_SYNCHRONIZE",
		.advice = NP_N(
			"Unset ASCEND_LAUNCH_BLOCKING if it is 1. Take out of the loop what waits "
			"for the device: item(), print of a tensor, blocking copies, "
			"torch.npu.synchronize().")};
	size_t launches = count(self, &calls);
	double ratio = launches ? (double)calls.rows.n / (double)launches : 0;
	if (ratio > np_rule_value(self, "synchronize_ratio") && !self->oom) {
		np_host_calls_worth(self, &calls, &text);
		text.gain_us = np_free_us(self); /* what queued work could fill */
		struct np_finding *finding =
			np_advice_problem(self, checker, &text,
		                          "the host waits for the stream behind %zu of %zu "
		                          "launches, so that no work is queued",
		                          calls.rows.n, launches);
		np_host_calls_evidence(self, &calls, finding);
	}
	np_host_calls_release(&calls);
}

const struct np_checker np_checker_synchronize = {
	.name = "synchronize",
	.dimension = NP_DIM_SCHEDULE,
	.category = "Synchronize Stream Issues",
	.category_zh = "同步流问题",
	.run = run,
	.load = NP_HOST_ARGS,
};
