/*
 * Environment Variable Issues (cluster_and_advisor.md §3.3): what ENV_VARIABLES lists,
 * in profiler_metadata.json or META_DATA. A variable that is not listed is not judged.
 */
#include <math.h>
#include <string.h>

#include "advice/checker.h"
#include "report/lang.h"

static const struct np_column columns[] = {
	{"Environment", "", NP_COL_TEXT, "name of the variable"},
	{"Value", "", NP_COL_TEXT, "as recorded; none where it was not set"},
	{"Description", "", NP_COL_TEXT, "what it does"},
	{"Suggestion", "", NP_COL_TEXT, "what to set"},
};

/* ── conditions ── */

static bool is_set(const struct np_advice *self, np_str value)
{
	(void)self;
	return value.len > 0;
}

static bool is_one(const struct np_advice *self, np_str value)
{
	(void)self;
	return np_str_is(value, "1");
}

static bool logs_much(const struct np_advice *self, np_str value)
{
	(void)self;
	return value.len > 0 && !np_str_is(value, "3");
}

static bool caches_little(const struct np_advice *self, np_str value)
{
	int64_t n;
	return value.len == 0 ||
	       (np_str_to_i64(value, &n) && (double)n < np_rule_value(self, "aclnn_cache_limit"));
}

static bool is_off(const struct np_advice *self, np_str value)
{
	int64_t n;
	(void)self;
	return value.len == 0 || (np_str_to_i64(value, &n) && n == 0);
}

static bool cannot_expand(const struct np_advice *self, np_str value)
{
	(void)self;
	return !np_str_contains(value, NP_STR("expandable_segments:True"));
}

static const struct {
	const char *name;
	bool (*bad)(const struct np_advice *self, np_str value);
	const char *description, *suggestion;
} known[] = {
	{"ASCEND_GLOBAL_LOG_LEVEL", logs_much,
         NP_N("Level of the logs: 0 debug, 1 info, 2 warning, 3 error (the default)."),
         NP_N("Logging below the level of errors costs host time: export "
              "ASCEND_GLOBAL_LOG_LEVEL=3")},
	{"HCCL_RDMA_TC", is_set, NP_N("Traffic class of the RDMA network."),
         NP_N("Only right where the switches are configured for this value: unset it, or check it "
              "with those who run the network.")},
	{"HCCL_RDMA_SL", is_set, NP_N("Service level of the RDMA network."),
         NP_N("Only right where the switches are configured for this value: unset it, or check it "
              "with those who run the network.")},
	{"ACLNN_CACHE_LIMIT", caches_little,
         NP_N("How many aclnn operators the host keeps ready to be launched again."),
         NP_N("Where the host is the bottleneck: export ACLNN_CACHE_LIMIT=100000")},
	{"HOST_CACHE_CAPACITY", is_off,
         NP_N("How many input shapes the host keeps the launch data of; 0, the default, keeps "
              "none."),
         NP_N("Where shapes change and come again: export HOST_CACHE_CAPACITY=20. Host memory "
              "grows.")},
	{"PYTORCH_NPU_ALLOC_CONF", cannot_expand,
         NP_N("How the caching allocator of torch_npu works."),
         NP_N("Segments that can grow leave fewer holes: export "
              "PYTORCH_NPU_ALLOC_CONF=expandable_segments:True")},
	{"ASCEND_LAUNCH_BLOCKING", is_one, NP_N("1: each launch waits until the kernel has run."),
         NP_N("For looking for errors only: export ASCEND_LAUNCH_BLOCKING=0")},
	{"HCCL_ALGO", is_set, NP_N("Algorithms of the collectives, instead of HCCL's own choice."),
         NP_N("Unset it, unless it was measured to be faster than HCCL's own choice.")},
};
enum { N_KNOWN = sizeof known / sizeof *known };

static size_t rule_of(const char *name)
{
	size_t k = 0;
	while (k < N_KNOWN && strcmp(known[k].name, name) != 0)
		k++;
	return k;
}

static bool is_bad(const struct np_advice *self, const struct np_variable *variable)
{
	size_t k = rule_of(variable->name);
	return k < N_KNOWN && known[k].bad(self, np_str_of(variable->value));
}

/* ── telling ── */

static const char *source_of(const struct np_capture *capture)
{
	static const enum np_role roles[] = {NP_ROLE_METADATA, NP_ROLE_PROFILER_DB,
	                                     NP_ROLE_MSPROF_DB};
	for (size_t i = 0; i < sizeof roles / sizeof *roles; i++) {
		const struct np_file *file = np_capture_file(capture, roles[i]);
		if (file)
			return file->path;
	}
	return capture->path;
}

static void add_evidence(struct np_finding *finding, const struct np_capture *capture,
                         const struct np_variable *variable)
{
	np_finding_evidence(finding, source_of(capture), "ENV_VARIABLES", NULL, "%s=%s",
	                    variable->name, variable->value);
}

/* Launches that wait leave the device idle between any two kernels: at most that is won. */
static void tell_blocking(struct np_advice *self, const struct np_checker *checker,
                          const struct np_variable *variable)
{
	np_ns idle = 0;
	for (size_t i = 0; i < self->rank->spans.n; i++)
		idle += self->rank->spans.v[i].free;
	struct np_problem_text text = {
		.code = "ADVICE_LAUNCH_BLOCKING",
		.count = 1,
		.total_us = np_per_step_us(self, idle),
		.gain_us = np_per_step_us(self, idle),
		.advice =
			NP_N("export ASCEND_LAUNCH_BLOCKING=0, and profile again: other figures of "
	                     "this capture are distorted by it."),
	};
	struct np_finding *finding = np_advice_problem(
		self, checker, &text,
		"ASCEND_LAUNCH_BLOCKING=1: the host waits for each kernel before it launches the "
		"next");
	add_evidence(finding, self->rank->capture, variable);
}

static void tell_all(struct np_advice *self, const struct np_checker *checker, size_t n)
{
	const struct np_capture *capture = self->rank->capture;
	struct np_problem_text text = {
		.code = "ADVICE_ENVIRONMENT",
		.count = n,
		.total_us = NAN,
		.gain_us = NAN,
		.advice = NP_N("Set what the table Environment Variable Issues "
	                       "says, one by one, and measure.")};
	struct np_finding *finding = np_advice_problem(
		self, checker, &text, "%zu environment variables are not at their best", n);
	struct np_table *table = NP_ADVICE_TABLE(self, checker, columns);
	for (size_t i = 0; i < capture->n_variables; i++) {
		const struct np_variable *variable = &capture->variables[i];
		if (!is_bad(self, variable))
			continue;
		size_t k = rule_of(variable->name);
		add_evidence(finding, capture, variable);
		np_cell_cstr(table, variable->name);
		np_cell_cstr(table, *variable->value ? variable->value : NULL);
		np_cell_word(table, known[k].description);
		np_cell_word(table, known[k].suggestion);
	}
}

static void run(struct np_advice *self, const struct np_checker *checker)
{
	const struct np_capture *capture = self->rank->capture;
	size_t n = 0;
	for (size_t i = 0; i < capture->n_variables; i++) {
		const struct np_variable *variable = &capture->variables[i];
		bool bad = is_bad(self, variable);
		n += bad;
		if (bad && strcmp(variable->name, "ASCEND_LAUNCH_BLOCKING") == 0)
			tell_blocking(self, checker, variable);
	}
	if (n > 0)
		tell_all(self, checker, n);
}

const struct np_checker np_checker_environment = {
	.name = "environment",
	.dimension = NP_DIM_OVERALL,
	.category = NP_N("Environment Variable Issues"),
	.category_zh = "环境变量分析",
	.run = run,
};
