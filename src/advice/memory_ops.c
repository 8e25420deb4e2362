/* Memory Operator Issues (cluster_and_advisor.md §3.7): device memory taken and given back. */
#include <math.h>

#include "advice/host.h"
#include "report/lang.h"

static const char *const malloc_names[] = {"aclMallocMemInner", NULL};
static const char *const physical_names[] = {"aclrtFreePhysical", NULL};
static const char *const free_names[] = {"aclrtFree", NULL};

static const struct {
	const char *const *names;
	const char *advice;
} kinds[] = {
	{malloc_names, NP_N("Let blocks grow: PYTORCH_NPU_ALLOC_CONF=expandable_segments:True.")},
	{physical_names, NP_N("Memory runs short and is given back: smaller batch or sequence, "
                              "recomputation, no torch.npu.empty_cache() in the loop.")},
	{free_names,
         NP_N("Memory runs short or is given back: no torch.npu.empty_cache() in the loop, "
              "smaller batch; PYTORCH_NPU_ALLOC_CONF=expandable_segments:True.")},
};

static const struct np_column columns[] = {
	{"name", "", NP_COL_TEXT, "the call of AscendCL"},
	{"count", "", NP_COL_INT, "calls"},
	{"total time(us)", "", NP_COL_REAL, "sum of their durations"},
	{"max time(us)", "", NP_COL_REAL, "the longest"},
};

static void tell(struct np_advice *self, const struct np_checker *checker, size_t kind,
                 const struct np_host_calls *calls, struct np_table **table)
{
	const struct np_host_ops *ops = &self->rank->profile->host_ops;
	const char *name = kinds[kind].names[0];
	struct np_problem_text text = {.code = "ADVICE_MEMORY_OPS", .advice = kinds[kind].advice};
	np_host_calls_worth(self, calls, &text);
	struct np_finding *finding = np_advice_problem(
		self, checker, &text, "%s took %.1f ms in %zu calls: device memory comes and goes",
		name, (double)calls->total / 1e6, calls->rows.n);
	np_host_calls_evidence(self, calls, finding);
	if (!*table)
		*table = NP_ADVICE_TABLE(self, checker, columns);
	np_cell_cstr(*table, name);
	np_cell_int(*table, (int64_t)calls->rows.n);
	np_cell_real(*table, (double)calls->total / 1e3);
	np_cell_real(*table, (double)ops->dur_ns[calls->longest] / 1e3);
}

static void run(struct np_advice *self, const struct np_checker *checker)
{
	struct np_table *table = NULL;
	double least = np_rule_value(self, "memory_op_us") * 1000;
	for (size_t k = 0; k < sizeof kinds / sizeof *kinds && !self->oom; k++) {
		struct np_host_calls calls;
		np_host_calls_named(self, NP_HOST_ACL, kinds[k].names, &calls);
		if (calls.rows.n > 0 && (double)calls.total >= least && !self->oom)
			tell(self, checker, k, &calls, &table);
		np_host_calls_release(&calls);
	}
}

const struct np_checker np_checker_memory_ops = {
	.name = "memory_ops",
	.dimension = NP_DIM_MEMORY,
	.category = "Memory Operator Issues",
	.category_zh = "内存算子问题",
	.run = run,
	.load = NP_HOST_ARGS,
};
