/* Checkers of schedule and memory: each fires at its threshold and is silent below it. */
#include "analysis_set.h"

#include "advice/advice.h"

static void raw_event(struct set *self, const char *name, const char *cat, unsigned tid,
                      int64_t start_us, int64_t dur_us, const char *stack)
{
	np_buf_printf(&self->trace,
	              "%s{\"ph\":\"X\",\"name\":\"%s\",\"pid\":7,\"tid\":%u,\"ts\":\"%lld.000\","
	              "\"dur\":%lld,\"cat\":\"%s\",\"args\":{\"Call stack\":\"%s\"}}",
	              self->trace.len ? "," : "[", name, tid,
	              (long long)(ANALYSIS_EPOCH + start_us), (long long)dur_us, cat, stack);
}

/* A call of CANN, which has a process of its own in the trace. */
static void cann(struct set *self, const char *name, int64_t start_us, int64_t dur_us)
{
	if (!self->trace.len)
		np_buf_add_cstr(&self->trace, "[{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":9,"
		                              "\"tid\":0,\"args\":{\"name\":\"CANN\"}}");
	np_buf_printf(&self->trace,
	              ",{\"ph\":\"X\",\"name\":\"%s\",\"pid\":9,\"tid\":7,\"ts\":\"%lld.000\","
	              "\"dur\":%lld,\"args\":{}}",
	              name, (long long)(ANALYSIS_EPOCH + start_us), (long long)dur_us);
}

static void write_rows(struct set *self)
{
	tree_put(self->root, ANALYSIS_OUT "kernel_details.csv", self->kernels.ptr);
	if (self->trace.len) {
		np_buf_add_cstr(&self->trace, "]");
		tree_put(self->root, ANALYSIS_OUT "trace_view.json", self->trace.ptr);
	}
}

static enum np_status advise_with(struct set *self, const char *rules)
{
	struct np_advise_options options = {.threads = 1, .no_cache = true, .rules_file = rules};
	options.dimensions = np_dimension_parse("schedule") | np_dimension_parse("memory");
	np_report_free(self->report);
	np_captures_free(self->all);
	self->all = NULL;
	self->report = np_report_new("advise");
	if (!self->report)
		return NP_E_NOMEM;
	enum np_status status =
		np_discover(tree_path(self->root, ANALYSIS_DIR), &self->all, &self->err);
	return status == NP_OK ? np_advise(self->all, &options, self->report, &self->err) : status;
}

static void advise(struct set *self)
{
	write_rows(self);
	self->status = advise_with(self, NULL);
	if (self->status != NP_OK)
		fail_msg("%s: %s", self->err.where, self->err.msg);
}

/* The device works during [0, 1000) and again from `us` on. */
static void two_kernels(struct set *self, int64_t us)
{
	add_kernel(self, 1, "Add_1", "Add", "AI_VECTOR_CORE", 0, 1000);
	add_kernel(self, 1, "Mul_1", "Mul", "AI_VECTOR_CORE", us, 1000);
}

static const struct np_finding *told(const struct set *self, const char *code, double gain_us)
{
	const struct np_finding *finding = find_code(self, code);
	if (!finding)
		fail_msg("%s is not told", code);
	assert_true(finding->has_impact);
	assert_true(fabs(finding->impact_us - gain_us) < 1e-6);
	assert_non_null(finding->advice);
	return finding;
}

/* ── calls that are counted ── */

static void repeat(struct set *self, const char *name, int n, int64_t dur_us)
{
	two_kernels(self, 50000);
	for (int i = 0; i < n; i++)
		(strchr(name, '@') ? cann : add_host)(self, name, 2000 + i * 2 * dur_us, dur_us);
}

static void compiles_are_told_from_twenty_on(void **state)
{
	struct set *self = *state;
	repeat(self, "AscendCL@aclopCompileAndExecute", 20, 10);
	advise(self);
	(void)told(self, "ADVICE_DISPATCH", 200);
	assert_int_equal(find_cell(self, "dispatch", NULL, NULL, "counts")->i, 20);
	assert_true(find_cell(self, "dispatch", NULL, NULL, "total time")->r == 200);
}

static void nineteen_compiles_are_silent(void **state)
{
	struct set *self = *state;
	repeat(self, "AscendCL@aclopCompileAndExecute", 19, 10);
	advise(self);
	expect_none(self, "ADVICE_DISPATCH");
}

static void sync_batch_norm_is_told_from_twenty_on(void **state)
{
	struct set *self = *state;
	repeat(self, "SyncBatchNorm", 20, 10);
	advise(self);
	(void)told(self, "ADVICE_SYNC_BATCH_NORM", 200);
}

static void nineteen_sync_batch_norms_are_silent(void **state)
{
	struct set *self = *state;
	repeat(self, "SyncBatchNorm", 19, 10);
	add_host(self, "SyncBatchNormBackward", 40000, 10);
	advise(self);
	expect_none(self, "ADVICE_SYNC_BATCH_NORM");
}

static void launches(struct set *self, int n, int synchronized)
{
	two_kernels(self, 50000);
	for (int i = 0; i < n; i++) {
		cann(self, "Node@launch", 2000 + i * 100, 10);
		if (i < synchronized)
			cann(self, "AscendCL@aclrtSynchronizeStream", 2020 + i * 100, 50);
	}
}

static void most_launches_with_a_wait_behind(void **state)
{
	struct set *self = *state;
	launches(self, 4, 3);
	advise(self);
	(void)told(self, "ADVICE_SYNCHRONIZE", 49000); /* all idle time */
}

static void half_of_the_launches_with_a_wait_are_silent(void **state)
{
	struct set *self = *state;
	launches(self, 4, 2);
	cann(self, "AscendCL@aclrtSynchronizeStream", 2080, 5); /* no launch before it */
	advise(self);
	expect_none(self, "ADVICE_SYNCHRONIZE");
}

/* ── calls that are long ── */

static void slow_loader_gains_only_idle_time(void **state)
{
	struct set *self = *state;
	two_kernels(self, 8000);
	add_host(self, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 500, 10000);
	advise(self);
	const struct np_finding *finding = told(self, "ADVICE_DATALOADER", 7000);
	assert_non_null(strstr(finding->advice, "num_workers > 0"));
}

static void a_loader_below_the_threshold_is_silent(void **state)
{
	struct set *self = *state;
	two_kernels(self, 8000);
	add_host(self, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 500, 9999);
	add_host(self, "aten::add", 20000, 20000);
	advise(self);
	expect_none(self, "ADVICE_DATALOADER");
}

static void collections_longest_first(void **state)
{
	struct set *self = *state;
	two_kernels(self, 50000);
	raw_event(self, "GC", "GC", 7, 2000, 1000, "");
	raw_event(self, "GC", "GC", 7, 4000, 999, "");
	raw_event(self, "GC", "GC", 7, 6000, 3000, "");
	advise(self);
	(void)told(self, "ADVICE_GC", 4000);
	const struct np_table *table = find_table(self, "gc");
	assert_int_equal(np_table_rows(table), 2);
	assert_int_equal(np_table_cell(table, 0, 1)->i, ANALYSIS_EPOCH + 6000);
	assert_true(np_table_cell(table, 0, 2)->r == 3000);
}

static void memory_calls(void **state)
{
	struct set *self = *state;
	two_kernels(self, 50000);
	cann(self, "AscendCL@aclMallocMemInner", 2000, 6000);
	cann(self, "AscendCL@aclMallocMemInner", 10000, 4000);
	cann(self, "AscendCL@aclrtFree", 20000, 9999);
	advise(self);
	(void)told(self, "ADVICE_MEMORY_OPS", 10000);
	assert_int_equal(np_table_rows(find_table(self, "memory_ops")), 1);
	assert_int_equal(find_cell(self, "memory_ops", "name", "aclMallocMemInner", "count")->i, 2);
}

/* ── perhaps garbage collection ── */

static void long_gap(struct set *self, int64_t gap_us, int calls)
{
	two_kernels(self, 1000 + gap_us);
	cann(self, "AscendCL@aclrtLaunch", 10, 5); /* before the gap */
	for (int i = 0; i < calls; i++)
		cann(self, "AscendCL@aclrtLaunch", 1100 + i * 100, 5);
}

static void a_long_gap_without_calls(void **state)
{
	struct set *self = *state;
	long_gap(self, 200001, 20);
	advise(self);
	(void)told(self, "ADVICE_CONJECTURED_GC", 200001);
	assert_int_equal(find_cell(self, "conjectured_gc", NULL, NULL, "acl calls")->i, 20);
}

static void a_gap_with_calls_is_silent(void **state)
{
	struct set *self = *state;
	long_gap(self, 200001, 21);
	advise(self);
	expect_none(self, "ADVICE_CONJECTURED_GC");
}

static void a_gap_at_the_threshold_is_silent(void **state)
{
	struct set *self = *state;
	long_gap(self, 200000, 0);
	advise(self);
	expect_none(self, "ADVICE_CONJECTURED_GC");
}

static void nothing_is_conjectured_where_collections_are_recorded(void **state)
{
	struct set *self = *state;
	long_gap(self, 200001, 0);
	raw_event(self, "GC", "GC", 7, 100, 5, "");
	advise(self);
	expect_none(self, "ADVICE_CONJECTURED_GC");
}

/* ── affinity ── */

static void rms_norm(struct set *self, unsigned tid, int64_t at, const char *last)
{
	raw_event(self, "aten::pow", "cpu_op", tid, at, 10,
	          "/lib/site-packages/x.py(1): f;my.py(2): g");
	raw_event(self, "aten::mean", "cpu_op", tid, at + 20, 30, "");
	raw_event(self, "aten::sum", "cpu_op", tid, at + 25, 10, ""); /* inside of mean */
	raw_event(self, "aten::rsqrt", "cpu_op", tid, at + 60, 10, "");
	raw_event(self, last, "cpu_op", tid, at + 80, 10, "");
}

static void sequences_are_found_on_each_thread(void **state)
{
	struct set *self = *state;
	two_kernels(self, 50000);
	rms_norm(self, 7, 2000, "aten::mul");
	rms_norm(self, 8, 2005, "aten::mul"); /* interleaved */
	rms_norm(self, 7, 3000, "aten::div"); /* none */
	raw_event(self, "Optimizer.step#AdamW.step", "cpu_op", 7, 4000, 100, "");
	raw_event(self, "Optimizer.step#NpuFusedAdamW.step", "cpu_op", 7, 5000, 100, "");
	advise(self);
	const struct np_finding *finding = find_code(self, "ADVICE_AFFINITY_API");
	assert_non_null(finding);
	assert_int_equal(np_table_rows(find_table(self, "affinity")), 2);
	const struct np_cell *calls = find_cell(self, "affinity", "Affinity API",
	                                        "torch_npu.npu_rms_norm", "Stack called counts");
	assert_int_equal(calls->i, 2);
	calls = find_cell(self, "affinity", "Affinity API", "torch_npu.optim.NpuFusedAdamW",
	                  "Stack called counts");
	assert_int_equal(calls->i, 1);
	bool user = false;
	for (size_t i = 0; i < finding->evidence.n; i++)
		user |= strstr(finding->evidence.v[i].text, "at my.py(2): g") != NULL;
	assert_true(user);
}

static void an_operator_between_breaks_a_sequence(void **state)
{
	struct set *self = *state;
	two_kernels(self, 50000);
	add_host(self, "aten::add", 2000, 10);
	add_host(self, "npu::npu_format_cast", 2020, 10);
	add_host(self, "aten::layer_norm", 2040, 10);
	advise(self);
	expect_none(self, "ADVICE_AFFINITY_API");
}

/* ── sequences of kernels ── */

/* n times A B C, each kernel `dur` long, `gap` between them, a collective behind each. */
static void sequences(struct set *self, int n, int64_t dur, int64_t gap)
{
	static const char *const names[] = {"Add", "Cast", "Mul"};
	int64_t at = 0;
	for (int i = 0; i < n; i++) {
		for (int k = 0; k < 3; k++, at += dur + gap)
			add_kernel(self, 1, names[k], names[k], "AI_VECTOR_CORE", at, dur);
		add_kernel(self, 1, "hcom_allReduce__1_0_1", "hcom_allReduce_", "COMMUNICATION", at,
		           10);
		at += 20;
	}
}

static void a_sequence_six_times_waits_for_the_host(void **state)
{
	struct set *self = *state;
	sequences(self, 6, 10, 40);
	advise(self);
	(void)told(self, "ADVICE_FUSIBLE_HOST", 6 * 2 * 40);
	expect_none(self, "ADVICE_FUSIBLE_MTE");
	assert_int_equal(np_table_rows(find_table(self, "fusible_host")), 1);
	const struct np_cell *cell = find_cell(self, "fusible_host", NULL, NULL, "total time(us)");
	assert_true(cell->r == 6 * (3 * 10 + 2 * 40));
	assert_int_equal(find_cell(self, "fusible_host", NULL, NULL, "occurrences")->i, 6);
	assert_int_equal(find_cell(self, "fusible_host", NULL, NULL, "start index")->i, 0);
	assert_int_equal(find_cell(self, "fusible_host", NULL, NULL, "end index")->i, 2);
	assert_str(find_cell(self, "fusible_host", NULL, NULL, "sequence")->s, "Add → Cast → Mul");
}

static void five_times_or_without_gaps_is_silent(void **state)
{
	struct set *self = *state;
	sequences(self, 5, 10, 40);
	advise(self);
	expect_none(self, "ADVICE_FUSIBLE_HOST");
	np_buf_clear(&self->kernels);
	np_buf_add_cstr(&self->kernels, ANALYSIS_HEADER);
	sequences(self, 6, 10, 22); /* 30 of 74 us: 0.405 */
	advise(self);
	expect_none(self, "ADVICE_FUSIBLE_HOST");
}

/* A matmul between two vector kernels, 10 us each; transfers by the PMU. */
static void transfers(struct set *self, double cube_in_us)
{
	np_buf_clear(&self->kernels);
	np_buf_add_cstr(&self->kernels,
	                "Step Id,Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait "
	                "Time(us),aicore_time(us),aic_mte2_time(us),aic_fixpipe_time(us),"
	                "aiv_time(us),aiv_mte2_time(us),aiv_mte3_time(us)\n");
	for (int i = 0; i < 6; i++) {
		long long at = ANALYSIS_EPOCH + i * 40;
		np_buf_printf(
			&self->kernels,
			"1,Add,Add,AI_VECTOR_CORE,%lld\t,10,0,0,0,0,9,4,4\n"
			"1,MatMul,MatMulV3,AI_CORE,%lld\t,10,0,10,%.3f,0.5,0,0,0\n"
			"1,Mul,Mul,AI_VECTOR_CORE,%lld\t,10,0,0,0,0,9,4,4\n"
			"1,hcom_allReduce__1,hcom_allReduce_,COMMUNICATION,%lld\t,10,0,,,,,,\n",
			at, at + 10, cube_in_us, at + 20, at + 30);
	}
}

static void transfers_beyond_the_share_are_told(void **state)
{
	struct set *self = *state;
	transfers(self, 5.901); /* 8 + 5.901 + 0.5 + 8 of 9 + 10 + 9 us: 0.80004 */
	advise(self);
	/* written 4 and read back 4 of 5.901; written 0.5 and read back 0.5 of 4 */
	(void)told(self, "ADVICE_FUSIBLE_MTE", 6 * (4 + 4 + 0.5 + 0.5));
	expect_none(self, "ADVICE_FUSIBLE_HOST");
	assert_true(find_cell(self, "fusible_mte", NULL, NULL, "mte bound")->b);
}

/* Only then are transfers of vector kernels held against the time of the cube. */
static void transfers_at_the_share_need_the_official_rule(void **state)
{
	struct set *self = *state;
	char rules[2 * TREE_PATH];
	transfers(self, 5.899);
	advise(self);
	expect_none(self, "ADVICE_FUSIBLE_MTE");
	tree_put(self->root, "rules.json", "{\"fusible_mte_all_cores\": 0}");
	(void)snprintf(rules, sizeof rules, "%s/rules.json", self->root);
	assert_int_equal(advise_with(self, rules), NP_OK);
	assert_non_null(find_code(self, "ADVICE_FUSIBLE_MTE"));
}

static void a_shorter_sequence_needs_occurrences_of_its_own(void **state)
{
	struct set *self = *state;
	int64_t at = 0;
	for (int i = 0; i < 18; i++) { /* A B C D 6 times, A B C 12 times */
		for (int k = 0; k < (i < 6 ? 4 : 3); k++, at += 50) {
			const char *name = (const char *const[]){"A", "B", "C", "D"}[k];
			add_kernel(self, 1, name, name, "AI_VECTOR_CORE", at, 10);
		}
		add_kernel(self, 1, "hcom_x", "hcom_x", "COMMUNICATION", at, 10);
		at += 20;
	}
	advise(self);
	/* A B C has 12 more than A B C D, B C D (6) begins with nothing else */
	assert_int_equal(np_table_rows(find_table(self, "fusible_host")), 3);
	told(self, "ADVICE_FUSIBLE_HOST", (6 * 3 + 12 * 2) * 40);
}

/* ── launches ── */

static void the_host_is_slower_than_the_device(void **state)
{
	struct set *self = *state;
	struct np_synth_fault fault;
	struct np_synth_options options;
	struct np_advise_options how = {.threads = 1, .no_cache = true};
	char dir[2 * TREE_PATH];
	for (int slow = 0; slow < 2; slow++) {
		np_synth_options_init(&options);
		options.ranks = 1;
		options.force = true;
		assert_int_equal(np_synth_parse_fault("idle-launch=0", &fault, &self->err), NP_OK);
		options.faults = &fault;
		options.n_faults = (size_t)slow;
		(void)snprintf(dir, sizeof dir, "%s/synth", self->root);
		assert_int_equal(np_synth_write(dir, &options, NULL, &self->err), NP_OK);
		np_report_free(self->report);
		np_captures_free(self->all);
		self->report = np_report_new("advise");
		assert_int_equal(np_discover(dir, &self->all, &self->err), NP_OK);
		how.dimensions = np_dimension_parse("schedule");
		assert_int_equal(np_advise(self->all, &how, self->report, &self->err), NP_OK);
		if (!slow) {
			expect_none(self, "ADVICE_OPERATOR_LAUNCH");
			continue;
		}
		const struct np_finding *finding = find_code(self, "ADVICE_OPERATOR_LAUNCH");
		assert_non_null(finding);
		assert_true(finding->impact_us > 3900); /* 1 ms in each of 4 layers */
		assert_non_null(finding->command);
	}
}

/* ── memory ── */

static void memory_at(struct set *self, double allocated, double reserved)
{
	char text[600];
	(void)snprintf(text, sizeof text,
	               "Component,Timestamp(us),Total Allocated(MB),Total Reserved(MB),Total "
	               "Active(MB),Stream Ptr,Device Type\n"
	               "PTA,1700000000000100.000\t,%.1f,%.1f,1,,NPU:0\n"
	               "PTA,1700000000000200.000\t,10,11,1,,NPU:0\n",
	               allocated, reserved);
	two_kernels(self, 2000);
	tree_put(self->root, ANALYSIS_OUT "memory_record.csv", text);
	advise(self);
}

static void memory_that_is_reserved_and_not_used(void **state)
{
	struct set *self = *state;
	memory_at(self, 4096, 5120); /* 1024 MiB, 20 % */
	assert_non_null(find_code(self, "ADVICE_MEMORY_FRAGMENTATION"));
	expect_none(self, "ADVICE_MEMORY_PEAK");
	assert_true(find_cell(self, "memory_peak", "component", "PTA", "fragmentation(MB)")->r ==
	            1024);
	memory_at(self, 4097, 5120); /* 1023 MiB */
	expect_none(self, "ADVICE_MEMORY_FRAGMENTATION");
	memory_at(self, 40960.5, 51200); /* 19.99 % */
	expect_none(self, "ADVICE_MEMORY_FRAGMENTATION");
}

static void a_device_that_is_nearly_full(void **state)
{
	struct set *self = *state;
	memory_at(self, 62000, 62259.2); /* 95 % of 64 GiB */
	assert_non_null(find_code(self, "ADVICE_MEMORY_PEAK"));
	memory_at(self, 62000, 62259.1);
	expect_none(self, "ADVICE_MEMORY_PEAK");
	char rules[2 * TREE_PATH];
	tree_put(self->root, "rules.json", "{\"memory_device_mib\": 0}");
	(void)snprintf(rules, sizeof rules, "%s/rules.json", self->root);
	memory_at(self, 62000, 65000);
	assert_non_null(find_code(self, "ADVICE_MEMORY_PEAK"));
	assert_int_equal(advise_with(self, rules), NP_OK);
	expect_none(self, "ADVICE_MEMORY_PEAK");
}

/* ── out of memory ── */

static void everything_with_little_memory(void **state)
{
	struct set *self = *state;
	sequences(self, 7, 100, 400);
	add_kernel(self, 1, "Add", "Add", "AI_VECTOR_CORE", 30000, 300000);
	add_kernel(self, 1, "Add", "Add", "AI_VECTOR_CORE", 600000, 10);
	for (int i = 0; i < 25; i++) {
		cann(self, "AscendCL@aclopCompileAndExecute", 2000 + i * 40, 10);
		add_host(self, "SyncBatchNorm", 4000 + i * 40, 10);
	}
	rms_norm(self, 7, 6000, "aten::mul");
	add_host(self, "DataLoader", 20000, 20000);
	cann(self, "AscendCL@aclrtFree", 50000, 20000);
	write_rows(self);
	bool done = false;
	for (uint64_t n = 1; n < 200000 && !done; n += n < 40 ? 1 : 1 + n / 13) {
		np_mem_fail_after(n);
		enum np_status status = advise_with(self, NULL);
		np_mem_fail_after(0);
		assert_true(status == NP_OK || status == NP_E_NOMEM);
		assert_false(n == 1 && status == NP_OK);
		done = status == NP_OK;
	}
	assert_true(done);
	assert_non_null(find_code(self, "ADVICE_MEMORY_OPS"));
	assert_non_null(find_code(self, "ADVICE_CONJECTURED_GC"));
	assert_non_null(find_code(self, "ADVICE_FUSIBLE_HOST"));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_open, set_close)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		CASE(compiles_are_told_from_twenty_on),
		CASE(nineteen_compiles_are_silent),
		CASE(sync_batch_norm_is_told_from_twenty_on),
		CASE(nineteen_sync_batch_norms_are_silent),
		CASE(most_launches_with_a_wait_behind),
		CASE(half_of_the_launches_with_a_wait_are_silent),
		CASE(slow_loader_gains_only_idle_time),
		CASE(a_loader_below_the_threshold_is_silent),
		CASE(collections_longest_first),
		CASE(memory_calls),
		CASE(a_long_gap_without_calls),
		CASE(a_gap_with_calls_is_silent),
		CASE(a_gap_at_the_threshold_is_silent),
		CASE(nothing_is_conjectured_where_collections_are_recorded),
		CASE(sequences_are_found_on_each_thread),
		CASE(an_operator_between_breaks_a_sequence),
		CASE(a_sequence_six_times_waits_for_the_host),
		CASE(five_times_or_without_gaps_is_silent),
		CASE(transfers_beyond_the_share_are_told),
		CASE(transfers_at_the_share_need_the_official_rule),
		CASE(a_shorter_sequence_needs_occurrences_of_its_own),
		CASE(the_host_is_slower_than_the_device),
		CASE(memory_that_is_reserved_and_not_used),
		CASE(a_device_that_is_nearly_full),
		CASE(everything_with_little_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
