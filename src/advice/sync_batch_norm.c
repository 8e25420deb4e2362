/* SyncBatchNorm Issues (cluster_and_advisor.md §3.5): batch norms that wait for all ranks. */
#include <math.h>

#include "advice/host.h"
#include "report/lang.h"

static void run(struct np_advice *self, const struct np_checker *checker)
{
	const struct np_host_ops *ops = &self->rank->profile->host_ops;
	struct np_host_calls calls = {.total = 0};
	struct np_problem_text text = {
		.code = "ADVICE_SYNC_BATCH_NORM",
		.advice = NP_N(
			"Each one exchanges its statistics with all ranks. Use BatchNorm where the "
			"batch of a rank is large enough, or convert only the layers that need it "
			"(convert_sync_batchnorm), or give them a smaller process_group: the ranks "
			"of one node.")};
	for (uint32_t i = 0; i < ops->n; i++)
		if (ops->layer[i] == NP_HOST_OP &&
		    np_str_ieq(np_text(self->rank, ops->name[i]), NP_STR("syncbatchnorm")))
			self->oom |= !np_host_calls_add(&calls, ops, i);
	if ((double)calls.rows.n >= np_rule_value(self, "sync_batch_norm") && !self->oom) {
		np_host_calls_worth(self, &calls, &text);
		struct np_finding *finding =
			np_advice_problem(self, checker, &text,
		                          "SyncBatchNorm is called %zu times, and waits for all "
		                          "ranks each time",
		                          calls.rows.n);
		np_host_calls_evidence(self, &calls, finding);
	}
	np_host_calls_release(&calls);
}

const struct np_checker np_checker_sync_batch_norm = {
	.name = "sync_batch_norm",
	.dimension = NP_DIM_SCHEDULE,
	.category = "SyncBatchNorm Issues",
	.category_zh = "SyncBatchNorm 问题",
	.run = run,
	.load = NP_HOST_ARGS,
};
