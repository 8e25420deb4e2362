/* Checkers of overall, cluster, communication and comparison: each fires just above its
 * threshold and is silent at it. Captures are made of text files. */
#include "analysis_set.h"

#include "advice/advice.h"
#include "advice/checker.h"
#include "base/mem.h"

#define OUT "ASCEND_PROFILER_OUTPUT/"
#define STEP_TRACE                                                                    \
	"Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free," \
	"Stage,Bubble,Communication(Not Overlapped and Exclude Receive),Preparing\n"

static void put(struct set *self, int rank, const char *file, const char *text)
{
	char path[200];
	(void)snprintf(path, sizeof path, "rank_%d_ascend_pt/%s", rank, file);
	tree_put(self->root, path, text);
}

/* A rank with one kernel per step, and its row of step_trace_time per step. */
static void put_rank(struct set *self, int rank, const char *step_rows)
{
	char text[1000];
	(void)snprintf(text, sizeof text, "profiler_info_%d.json", rank);
	put(self, rank, text, "{}");
	(void)snprintf(text, sizeof text, "%s1,Add_1,Add,AI_VECTOR_CORE,%lld,100,0\n",
	               ANALYSIS_HEADER, (long long)ANALYSIS_EPOCH);
	put(self, rank, OUT "kernel_details.csv", text);
	(void)snprintf(text, sizeof text, STEP_TRACE "%s", step_rows);
	put(self, rank, OUT "step_trace_time.csv", text);
}

struct op {
	const char *name;
	double elapse_ms;
	const char *link;
	double mb, ms;
};

static void put_comm(struct set *self, int rank, const struct op *ops, size_t n)
{
	struct np_buf text = {0};
	np_buf_add_cstr(&text, "{\"step1\":{\"p2p\":{},\"collective\":{");
	for (size_t i = 0; i < n; i++)
		np_buf_printf(
			&text,
			"%s\"%s@77\":{\"Communication Time Info\":{\"Start Timestamp(us)\":"
			"%lld.0,\"Elapse Time(ms)\":%.6f,\"Transit Time(ms)\":%.6f,"
			"\"Wait Time(ms)\":0,\"Synchronization Time(ms)\":0,\"Idle Time(ms)\":0,"
			"\"Wait Time Ratio\":0,\"Synchronization Time Ratio\":0},"
			"\"Communication Bandwidth Info\":{\"%s\":{\"Transit Size(MB)\":%.6f,"
			"\"Transit Time(ms)\":%.6f,\"Bandwidth(GB/s)\":%.6f,"
			"\"Large Packet Ratio\":0,\"Size Distribution\":{\"%.6f\":[1,%.6f]}}}}",
			i ? "," : "", ops[i].name, (long long)ANALYSIS_EPOCH, ops[i].elapse_ms,
			ops[i].ms, ops[i].link, ops[i].mb, ops[i].ms, ops[i].mb / ops[i].ms,
			ops[i].mb, ops[i].ms);
	np_buf_add_cstr(&text, "}}}");
	put(self, rank, OUT "communication.json", text.ptr);
	np_buf_release(&text);
}

static enum np_status advise_at(struct set *self, const char *path, struct np_advise_options *how)
{
	how->threads = 1;
	how->no_cache = true;
	np_report_free(self->report);
	np_captures_free(self->all);
	self->all = NULL;
	self->report = np_report_new("advise");
	if (!self->report)
		return NP_E_NOMEM;
	enum np_status status = np_discover(path, &self->all, &self->err);
	return status == NP_OK ? np_advise(self->all, how, self->report, &self->err) : status;
}

static void advise(struct set *self, const char *dimension)
{
	struct np_advise_options how = {.dimensions = np_dimension_parse(dimension)};
	if (advise_at(self, self->root, &how) != NP_OK)
		fail_msg("%s: %s", self->err.where, self->err.msg);
}

static const struct np_finding *told(const struct set *self, const char *code, double gain_us)
{
	const struct np_finding *finding = find_code(self, code);
	if (!finding)
		fail_msg("%s is not told", code);
	assert_true(finding->has_impact);
	assert_true(fabs(finding->impact_us - gain_us) < 1e-3);
	assert_non_null(finding->advice);
	assert_true(finding->evidence.n > 0);
	return finding;
}

/* ── slow rank ── */

/* Mean step 1000 us: computing differs by `gap` us. */
static void two_ranks(struct set *self, int gap)
{
	char row[100];
	(void)snprintf(row, sizeof row, "1,%d,300,0,300,200,1000,0,300,0\n", 500 + gap / 2);
	put_rank(self, 0, row);
	(void)snprintf(row, sizeof row, "1,%d,300,0,300,200,1000,0,300,0\n", 500 - gap / 2);
	put_rank(self, 1, row);
}

static void a_rank_is_slow_above_five_percent(void **state)
{
	struct set *self = *state;
	two_ranks(self, 52);
	advise(self, "cluster");
	/* as the mean of the ranks: half of the difference */
	const struct np_finding *finding = told(self, "ADVICE_SLOW_RANK", 26);
	assert_non_null(strstr(finding->title, "rank 0 takes 0.052 ms longer than rank 1"));
	assert_int_equal(finding->severity, NP_INFO);
	assert_int_equal(find_cell(self, "slow_rank", NULL, NULL, "step")->i, 1);
}

static void a_rank_is_not_slow_at_five_percent(void **state)
{
	struct set *self = *state;
	two_ranks(self, 50);
	advise(self, "cluster");
	expect_none(self, "ADVICE_SLOW_RANK");
	/* the table is there all the same */
	assert_int_equal(find_cell(self, "slow_rank", NULL, NULL, "rank_id")->i, 0);
}

/* Steps of different length are no slow rank: the official tool mixes them. */
static void steps_are_not_compared_with_each_other(void **state)
{
	struct set *self = *state;
	for (int rank = 0; rank < 2; rank++)
		put_rank(self, rank,
		         "1,500,300,0,300,200,1000,0,300,0\n2,900,300,0,300,200,1400,0,300,0\n");
	advise(self, "cluster");
	expect_none(self, "ADVICE_SLOW_RANK");
}

static void ranks_without_a_common_step_are_not_judged(void **state)
{
	struct set *self = *state;
	put_rank(self, 0, "1,500,300,0,300,200,1000,0,300,0\n");
	put_rank(self, 1, "2,900,300,0,300,200,1400,0,300,0\n");
	advise(self, "cluster");
	expect_none(self, "ADVICE_SLOW_RANK");
	assert_int_equal(self->report->exit_code, 3);
}

/* ── slow link ── */

static void two_links(struct set *self, double slower_ms)
{
	two_ranks(self, 0);
	struct op fast[] = {{"hcom_allReduce__1_0_1", 2, "SDMA", 100, 10},
	                    {"Total Op Info", 2, "SDMA", 100, 10}};
	struct op slow[] = {{"hcom_allReduce__1_0_1", 2, "SDMA", 100, slower_ms}};
	put_comm(self, 0, fast, 2);
	put_comm(self, 1, slow, 1);
}

static void a_link_is_slow_five_percent_below_the_mean(void **state)
{
	struct set *self = *state;
	two_links(self, 11.2); /* 8.929 GB/s, mean 9.464: 5.66 % below */
	advise(self, "cluster");
	const struct np_finding *finding =
		told(self, "ADVICE_SLOW_LINK", (11.2 - 100 / ((10 + 100 / 11.2) / 2)) * 1000);
	assert_non_null(strstr(finding->title, "rank 1"));
	/* Total Op Info counts once more in the official tool */
	assert_true(find_cell(self, "slow_link", NULL, NULL, "SDMA size(mb)")->r == 100);
}

static void a_link_is_not_slow_above_that(void **state)
{
	struct set *self = *state;
	two_links(self, 11.0); /* 9.091 GB/s, mean 9.545: 4.76 % below */
	advise(self, "cluster");
	expect_none(self, "ADVICE_SLOW_LINK");
}

/* ── retransmission ── */

static void send_again(struct set *self, double elapse0, double elapse1, double rdma_ms)
{
	two_ranks(self, 0);
	struct op first[] = {{"hcom_allReduce__1_0_1", elapse0, "RDMA", 50, rdma_ms}};
	struct op second[] = {{"hcom_allReduce__1_0_1", elapse1, "RDMA", 50, 10}};
	put_comm(self, 0, first, 1);
	put_comm(self, 1, second, 1);
}

static void packets_are_sent_again_after_four_seconds(void **state)
{
	struct set *self = *state;
	send_again(self, 4100, 4000, 4001);
	advise(self, "cluster");
	(void)told(self, "ADVICE_RETRANSMISSION", 4000 * 1000);
	assert_int_equal(find_cell(self, "retransmission", NULL, NULL, "Rank id")->i, 0);
}

static void shorter_is_no_retransmission(void **state)
{
	struct set *self = *state;
	send_again(self, 4100, 3999, 4001); /* one of the ranks was done sooner */
	advise(self, "cluster");
	expect_none(self, "ADVICE_RETRANSMISSION");
	send_again(self, 4100, 4100, 4000); /* waiting, not sending */
	advise(self, "cluster");
	expect_none(self, "ADVICE_RETRANSMISSION");
}

/* ── communication of a rank ── */

static void one_rank(struct set *self)
{
	put_rank(self, 0, "1,500,300,0,300,200,1000,0,300,0\n");
}

static void small_packets_are_told_above_a_fifth(void **state)
{
	struct set *self = *state;
	struct op ops[] = {{"a", 1, "SDMA", 15.9, 1}, {"b", 1, "SDMA", 16, 1},
	                   {"c", 1, "SDMA", 16, 1},   {"d", 1, "SDMA", 16, 1},
	                   {"e", 1, "SDMA", 16, 1},   {"Total Op Info", 1, "SDMA", 80, 5}};
	one_rank(self);
	put_comm(self, 0, ops, 4);
	advise(self, "communication");
	assert_non_null(find_code(self, "ADVICE_SMALL_PACKETS")); /* 1 of 4 */
	assert_int_equal(find_cell(self, "packet", NULL, NULL, "SDMA total count")->i, 4);
	put_comm(self, 0, ops, 5);
	advise(self, "communication");
	expect_none(self, "ADVICE_SMALL_PACKETS"); /* 1 of 5 */
	put_comm(self, 0, ops, 6);
	advise(self, "communication");
	expect_none(self, "ADVICE_SMALL_PACKETS");
}

/* The step is a number here and "step1" there: the official tool then finds nothing. */
static void a_chosen_step_is_the_step_of_the_file(void **state)
{
	struct set *self = *state;
	struct op ops[] = {{"a", 1, "SDMA", 1, 1}};
	struct np_advise_options how = {
		.dimensions = np_dimension_parse("communication"), .has_step = true, .step = 1};
	one_rank(self);
	put_comm(self, 0, ops, 1);
	assert_int_equal(advise_at(self, self->root, &how), NP_OK);
	assert_non_null(find_code(self, "ADVICE_SMALL_PACKETS"));
}

static void beside_matmul(struct set *self, const char *kernel, double gbps)
{
	char text[1000];
	struct op ops[] = {{"hcom_allReduce__1_0_1", 10, "SDMA", 100, 100 / gbps}};
	one_rank(self);
	(void)snprintf(text, sizeof text,
	               "%s1,%s,MatMulV2,AI_CORE,%lld,2000,0\n"
	               "1,hcom_allReduce__1_0_1,hcom_allReduce_,COMMUNICATION,%lld,10000,0\n",
	               ANALYSIS_HEADER, kernel, (long long)ANALYSIS_EPOCH + 1000,
	               (long long)ANALYSIS_EPOCH);
	put(self, 0, OUT "kernel_details.csv", text);
	put_comm(self, 0, ops, 1);
	advise(self, "communication");
}

static void contention_is_told_below_the_bandwidth(void **state)
{
	struct set *self = *state;
	beside_matmul(self, "MatMul_1", 14.3);
	(void)told(self, "ADVICE_CONTENTION", (100 / 14.3 - 100 / 14.4) * 1000);
	beside_matmul(self, "MatMul_1", 14.4);
	expect_none(self, "ADVICE_CONTENTION");
	beside_matmul(self, "Add_1", 10);
	expect_none(self, "ADVICE_CONTENTION");
}

static void transfer(struct set *self, long long bytes)
{
	struct np_buf text = {0};
	one_rank(self);
	np_buf_printf(
		&text,
		"[{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":9,\"tid\":0,\"args\":{\"name\":"
		"\"Communication\"}},{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":9,\"tid\":1,"
		"\"args\":{\"name\":\"Group 77 Communication\"}},{\"ph\":\"M\",\"name\":"
		"\"thread_name\",\"pid\":9,\"tid\":2,\"args\":{\"name\":\"Plane 0\"}},"
		"{\"ph\":\"X\",\"name\":\"hcom_allReduce__077_0_1\",\"pid\":9,\"tid\":1,\"ts\":"
		"\"%lld.000\",\"dur\":100,\"args\":{}},{\"ph\":\"X\",\"name\":\"Memcpy\",\"pid\":9,"
		"\"tid\":2,\"ts\":\"%lld.000\",\"dur\":50,\"args\":{\"transport type\":\"SDMA\","
		"\"size(Byte)\":%lld,\"link type\":\"HCCS\",\"task type\":\"Memcpy\",\"task id\":1,"
		"\"stream id\":1,\"src rank\":0,\"dst rank\":1}}]",
		(long long)ANALYSIS_EPOCH, (long long)ANALYSIS_EPOCH + 10, bytes);
	put(self, 0, OUT "trace_view.json", text.ptr);
	np_buf_release(&text);
	advise(self, "communication");
}

static void alignment_is_told_of_odd_sizes(void **state)
{
	struct set *self = *state;
	transfer(self, 1025);
	assert_non_null(find_code(self, "ADVICE_BYTE_ALIGNMENT"));
	assert_int_equal(find_cell(self, "byte_alignment", NULL, NULL, "total size(Byte)")->i,
	                 1025);
	transfer(self, 1024);
	expect_none(self, "ADVICE_BYTE_ALIGNMENT");
	transfer(self, 512); /* too small to matter */
	expect_none(self, "ADVICE_BYTE_ALIGNMENT");
}

/* ── environment ── */

static void variable(struct set *self, const char *name, const char *value)
{
	char text[300];
	one_rank(self);
	(void)snprintf(text, sizeof text, "{\"ENV_VARIABLES\":{\"%s\":\"%s\"}}", name, value);
	put(self, 0, "profiler_metadata.json", text);
	advise(self, "overall");
}

static void variables_are_judged_one_by_one(void **state)
{
	static const struct {
		const char *name, *bad, *good;
	} rules[] = {
		{"ASCEND_GLOBAL_LOG_LEVEL", "1", "3"},
		{"ASCEND_GLOBAL_LOG_LEVEL", "0", ""},
		{"HCCL_RDMA_TC", "132", ""},
		{"HCCL_RDMA_SL", "4", ""},
		{"ACLNN_CACHE_LIMIT", "9999", "10000"},
		{"ACLNN_CACHE_LIMIT", "", "100000"},
		{"HOST_CACHE_CAPACITY", "0", "1"},
		{"PYTORCH_NPU_ALLOC_CONF", "max_split_size_mb:512", "expandable_segments:True"},
		{"ASCEND_LAUNCH_BLOCKING", "1", "0"},
		{"HCCL_ALGO", "level0:NA;level1:H-D_R", ""},
		{"HCCL_ALGO", "x", ""},
	};
	struct set *self = *state;
	for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
		variable(self, rules[i].name, rules[i].bad);
		if (!find_code(self, "ADVICE_ENVIRONMENT"))
			fail_msg("%s=%s is not told", rules[i].name, rules[i].bad);
		variable(self, rules[i].name, rules[i].good);
		expect_none(self, "ADVICE_ENVIRONMENT");
	}
	variable(self, "HOME", "x"); /* not one of ours */
	expect_none(self, "ADVICE_ENVIRONMENT");
}

static void blocking_launches_have_a_finding_of_their_own(void **state)
{
	struct set *self = *state;
	variable(self, "ASCEND_LAUNCH_BLOCKING", "1");
	assert_non_null(find_code(self, "ADVICE_LAUNCH_BLOCKING"));
	variable(self, "ASCEND_LAUNCH_BLOCKING", "0");
	expect_none(self, "ADVICE_LAUNCH_BLOCKING");
}

/* ── overall, comparison ── */

static void the_summary_is_of_a_single_rank(void **state)
{
	struct set *self = *state;
	one_rank(self);
	advise(self, "overall");
	assert_non_null(find_code(self, "ADVICE_OVERALL"));
	assert_true(
		find_cell(self, "overall_summary", "Performance Index", "E2E Time", "Duration(ms)")
			->r == 0.1);
	two_ranks(self, 0);
	advise(self, "overall");
	expect_none(self, "ADVICE_OVERALL");
}

/* Kernels of rank 0 take `us` longer than the 400 us of rank 1; the step rows say so too. */
static void slow_and_fast(struct set *self, int us)
{
	char text[500];
	two_ranks(self, us);
	(void)snprintf(text, sizeof text, "%s1,Add_1,Add,AI_VECTOR_CORE,%lld,%d,0\n",
	               ANALYSIS_HEADER, (long long)ANALYSIS_EPOCH, 400 + us);
	put(self, 0, OUT "kernel_details.csv", text);
	(void)snprintf(text, sizeof text, "%s1,Add_1,Add,AI_VECTOR_CORE,%lld,400,0\n",
	               ANALYSIS_HEADER, (long long)ANALYSIS_EPOCH);
	put(self, 1, OUT "kernel_details.csv", text);
}

static void the_slow_rank_is_laid_beside_the_fast_one(void **state)
{
	struct set *self = *state;
	slow_and_fast(self, 100);
	advise(self, "comparison");
	const struct np_finding *finding = told(self, "ADVICE_KERNEL_COMPARE", 100);
	assert_non_null(strstr(finding->title, "Kernel compare of Rank0 Step1 and Rank1 Step1"));
	/* above 1: the target is slower. The official tool has it the other way round */
	assert_true(find_cell(self, "kernel_compare", NULL, NULL, "Diff Total Ratio")->r == 1.25);
	slow_and_fast(self, 20); /* 4 % of the mean computing */
	advise(self, "comparison");
	expect_none(self, "ADVICE_KERNEL_COMPARE");
}

static void a_baseline_is_compared_by_rank(void **state)
{
	struct set *self = *state;
	struct np_captures *base = NULL;
	char target[TREE_PATH * 2], other[TREE_PATH * 2];
	slow_and_fast(self, 100);
	(void)snprintf(target, sizeof target, "%s/rank_0_ascend_pt", self->root);
	(void)snprintf(other, sizeof other, "%s/rank_1_ascend_pt", self->root);
	assert_int_equal(np_discover(other, &base, &self->err), NP_OK);
	struct np_advise_options how = {.dimensions = np_dimension_parse("comparison"),
	                                .base = base};
	assert_int_equal(advise_at(self, target, &how), NP_OK);
	const struct np_finding *finding = told(self, "ADVICE_KERNEL_COMPARE", 100);
	assert_non_null(strstr(finding->title, "Kernel compare of Target and Benchmark"));
	np_captures_free(base);
}

/* ── the whole ── */

static void out_of_memory_is_an_error_everywhere(void **state)
{
	struct set *self = *state;
	struct np_advise_options how = {.dimensions = np_dimension_parse("all")};
	enum np_status status = NP_E_NOMEM;
	slow_and_fast(self, 100);
	send_again(self, 4100, 4000, 4001);
	for (uint64_t n = 1; status == NP_E_NOMEM; n += 1 + n / 7) {
		np_mem_fail_after(n);
		status = advise_at(self, self->root, &how);
		np_mem_fail_after(0);
	}
	assert_int_equal(status, NP_OK);
	assert_non_null(find_code(self, "ADVICE_RETRANSMISSION"));
}

static void every_rule_in_the_sources_exists(void **state)
{
	static const char *const used[] = {
		"slow_rank_gap",  "slow_link_gap",  "retransmission_ms", "packet_sdma_mb",
		"packet_rdma_mb", "packet_share",   "contention_gbps",   "alignment_bytes",
		"alignment_low",  "alignment_high", "aclnn_cache_limit"};
	struct np_advice_rules rules;
	struct np_err err;
	(void)state;
	assert_int_equal(np_advice_rules_load(&rules, NULL, &err), NP_OK);
	for (size_t i = 0; i < sizeof used / sizeof *used; i++)
		assert_false(isnan(np_advice_rule(&rules, used[i])));
	np_advice_rules_release(&rules);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_open, set_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_rank_is_slow_above_five_percent),
		TEST(a_rank_is_not_slow_at_five_percent),
		TEST(steps_are_not_compared_with_each_other),
		TEST(ranks_without_a_common_step_are_not_judged),
		TEST(a_link_is_slow_five_percent_below_the_mean),
		TEST(a_link_is_not_slow_above_that),
		TEST(packets_are_sent_again_after_four_seconds),
		TEST(shorter_is_no_retransmission),
		TEST(small_packets_are_told_above_a_fifth),
		TEST(a_chosen_step_is_the_step_of_the_file),
		TEST(contention_is_told_below_the_bandwidth),
		TEST(alignment_is_told_of_odd_sizes),
		TEST(variables_are_judged_one_by_one),
		TEST(blocking_launches_have_a_finding_of_their_own),
		TEST(the_summary_is_of_a_single_rank),
		TEST(the_slow_rank_is_laid_beside_the_fast_one),
		TEST(a_baseline_is_compared_by_rank),
		TEST(out_of_memory_is_an_error_everywhere),
		TEST(every_rule_in_the_sources_exists),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
