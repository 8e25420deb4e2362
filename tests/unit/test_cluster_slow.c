#include "cluster/dixon.h"
#include "cluster/stats.h"
#include "cluster_dir_unit.h"

/* ── the test for a small value ── */

/* n values of which the ratio's spread is 1000 and the distance to its next value `gap`. */
static void spread(int64_t *v, size_t n, int64_t gap)
{
	for (size_t i = 0; i < n; i++)
		v[i] = 1000 + (int64_t)(i % 3); /* more than three different values with v[0] */
	v[0] = 0;
	size_t next = n >= 11 ? 2 : 1, top = n >= 14 ? 3 : n >= 8 ? 2 : 1;
	for (size_t i = 1; i <= next; i++)
		v[i] = gap;
	for (size_t i = next + 1; i < n; i++)
		v[i] = i + top >= n ? 1000 : gap + 1 + (int64_t)(i % 3);
	for (size_t i = n - top; i < n; i++)
		v[i] = 1000 + (int64_t)(i - (n - top)); /* v[n - top] is 1000 */
}

static size_t outliers(const int64_t *sorted, size_t n, size_t at, bool *low)
{
	int64_t v[256], scratch[256];
	for (size_t i = 0; i < n; i++) /* the smallest one stands at `at` */
		v[(i + at) % n] = sorted[i];
	return np_low_outliers(v, n, scratch, low);
}

static void the_limit_is_crossed_at_every_size(void **state)
{
	static const struct {
		size_t n;
		int64_t limit;
	} cases[] = {{4, 920},  {5, 823},  {7, 680},  {8, 723},  {10, 638}, {11, 707},
	             {13, 649}, {14, 672}, {15, 649}, {50, 409}, {99, 341}, {100, 341}};
	(void)state;
	for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
		size_t n = cases[c].n;
		int64_t v[256];
		bool low[256];
		assert_true(np_dixon_limit(n) * 1000 == (double)cases[c].limit);
		spread(v, n, cases[c].limit);
		assert_true(np_dixon_ratio(v, n) * 1000 == (double)cases[c].limit);
		assert_int_equal(outliers(v, n, 2, low), 0);
		spread(v, n, cases[c].limit + 1);
		assert_int_equal(outliers(v, n, 2, low), 1);
		for (size_t i = 0; i < n; i++)
			assert_int_equal(low[i], i == 2);
	}
}

static void few_values_accuse_nobody(void **state)
{
	const int64_t three[] = {1, 1000, 1001}, equal[] = {5, 5, 5, 5},
		      pairs[] = {0, 9, 9, 10, 10};
	int64_t scratch[8];
	bool low[8];
	(void)state;
	assert_int_equal(np_low_outliers(three, 0, scratch, low), 0);
	assert_int_equal(np_low_outliers(three, 1, scratch, low), 0);
	assert_int_equal(np_low_outliers(three, 2, scratch, low), 0);
	assert_true(np_dixon_limit(3) == .994);
	assert_true(np_dixon_ratio(three, 3) > .994);
	assert_int_equal(np_low_outliers(three, 3, scratch, low), 0);
	assert_int_equal(np_low_outliers(equal, 4, scratch, low), 0);
	assert_int_equal(np_low_outliers(pairs, 5, scratch, low), 0); /* three different ones */
	assert_true(np_dixon_limit(2) != np_dixon_limit(2));
	assert_true(np_dixon_limit(101) != np_dixon_limit(101));
}

static void above_a_hundred_values_three_sigma_decide(void **state)
{
	int64_t v[101], scratch[101];
	bool low[101];
	(void)state;
	for (size_t i = 0; i < 101; i++)
		v[i] = 1000 + (int64_t)(i % 2) * 20; /* sigma about 10 */
	assert_int_equal(np_low_outliers(v, 101, scratch, low), 0);
	v[40] = 900; /* far below */
	v[50] = 901;
	assert_int_equal(np_low_outliers(v, 101, scratch, low), 2);
	assert_true(low[40] && low[50]);
	v[40] = 1000;
	v[50] = 1000;
	v[60] = 1200; /* one that waited far too long: the first smallest is accused */
	assert_int_equal(np_low_outliers(v, 101, scratch, low), 1);
	assert_true(low[0]);
}

/* ── statistics ── */

static void runs_are_described_as_their_values(void **state)
{
	const struct np_run shuffled[] = {{70, 1}, {20, 3}, {50, 2}, {20, 1}, {90, 4}};
	int64_t all[] = {20, 20, 20, 20, 50, 50, 70, 90, 90, 90, 90};
	struct np_run runs[5];
	struct np_describe a, b;
	(void)state;
	memcpy(runs, shuffled, sizeof runs);
	size_t n = np_runs_unite(runs, 5);
	assert_int_equal(n, 4);
	assert_int_equal(runs[0].times, 4);
	np_describe_runs(runs, n, &a);
	np_describe_i64(all, 11, &b);
	assert_memory_equal(&a, &b, sizeof a);
	assert_true(a.q1 == 20 && a.median == 50 && a.q3 == 90);
	const struct np_run one = {7, 1};
	np_describe_runs(&one, 1, &a);
	assert_true(a.mean == 7 && a.q1 == 7 && a.q3 == 7 && a.std != a.std);
	const struct np_run two[] = {{10, 1}, {20, 1}};
	np_describe_runs(two, 2, &a);
	assert_true(a.q1 == 12.5 && a.median == 15 && a.q3 == 17.5);
}

static void the_median_is_not_moved_by_one_outlier(void **state)
{
	double v[] = {5, 1, 100, 3, 4};
	(void)state;
	assert_true(np_median_f64(v, 5) == 4);
	assert_true(np_mad_f64(v, 5, 4) == 1); /* 1 3 0 1 96 */
}

/* ── modes on communication.json alone ── */

static void lite_set(const char *root, int ranks, int ops, int last_rank, int slow_op)
{
	char *text = calloc(1, LITE_OPS_SIZE);
	assert_non_null(text);
	for (int r = 0; r < ranks; r++) {
		*text = '\0';
		for (int k = 0; k < ops; k++) {
			double wire = k == slow_op ? 0.2 : 0.1 + 0.0001 * (k % 3);
			double wait = r == last_rank ? 0 : 1 + 0.01 * r + 0.003 * k;
			lite_op(text, k, 1.7e15 + 1000 * k, wire + wait, 8.0);
		}
		lite_capture(root, r, text);
	}
	free(text);
}

static void the_last_rank_is_found_in_lite_captures(void **state)
{
	char root[TREE_PATH];
	(void)state;
	tree_new(root);
	lite_set(root, 8, 6, 5, -1);
	struct np_report *report = cluster_run(root, "slow_rank", NULL);
	const struct np_table *table = cluster_table(report, "SlowRank");
	assert_non_null(table);
	assert_int_equal(np_table_rows(table), 1);
	assert_int_equal(np_table_cell(table, 0, 0)->i, 5);
	assert_int_equal(np_table_cell(table, 0, 1)->i, 6);
	table = cluster_table(report, "SlowOpStats");
	assert_int_equal(np_table_rows(table), 6);
	assert_str(np_table_cell(table, 0, 1)->s, "hcom_allReduce__271_0_1");
	assert_str(np_table_cell(table, 0, 2)->s, "11022204950826225271");
	assert_true(np_table_cell(table, 0, 7)->r == 100000); /* MinNs is in ns */
	assert_non_null(cluster_finding(report, "SLOW_RANK"));
	np_report_free(report);
	/* the official tool joins the launches, which are not recorded */
	const struct np_cluster_options compat = {.compat = true};
	report = cluster_run(root, "slow_rank", &compat);
	assert_non_null(cluster_finding(report, "CLUSTER_MODE_EMPTY"));
	np_report_free(report);
	tree_remove(root);
}

static void no_slow_rank_is_an_answer_and_two_ranks_are_none(void **state)
{
	char root[TREE_PATH];
	(void)state;
	tree_new(root);
	lite_set(root, 8, 6, -1, -1);
	struct np_report *report = cluster_run(root, "slow_rank", NULL);
	assert_non_null(cluster_finding(report, "SLOW_RANK_NONE"));
	assert_null(cluster_table(report, "SlowRank"));
	assert_null(cluster_finding(report, "CLUSTER_MODE_EMPTY"));
	np_report_free(report);
	const struct np_cluster_options two = {.rank_list = "0,1"};
	report = cluster_run(root, "slow_rank", &two);
	assert_non_null(cluster_finding(report, "CLUSTER_MODE_EMPTY"));
	assert_int_equal(report->exit_code, 3);
	np_report_free(report);
	tree_remove(root);
}

static void one_slow_collective_of_six_is_found_by_the_median(void **state)
{
	char root[TREE_PATH];
	(void)state;
	tree_new(root);
	lite_set(root, 2, 6, 1, 4);
	struct np_report *report = cluster_run(root, "slow_link", NULL);
	assert_null(cluster_table(report, "SlowLinkSum")); /* twelve rows, two of them slow */
	const struct np_table *table = cluster_table(report, "SlowLinkOutliers");
	assert_non_null(table);
	assert_int_equal(np_table_rows(table), 1);
	assert_str(np_table_cell(table, 0, 1)->s, "hcom_allReduce__271_4_1");
	assert_int_equal(np_table_cell(table, 0, 3)->i, 8000000);
	assert_int_equal(np_table_cell(table, 0, 5)->i, 1); /* it came last */
	assert_int_equal(np_table_cell(table, 0, 6)->i, 200000);
	assert_non_null(cluster_finding(report, "SLOW_LINK"));
	np_report_free(report);
	const struct np_cluster_options compat = {.compat = true};
	report = cluster_run(root, "slow_link", &compat);
	assert_null(cluster_table(report, "SlowLinkOutliers"));
	assert_non_null(cluster_finding(report, "SLOW_LINK_NONE"));
	np_report_free(report);
	tree_remove(root);
}

static void no_slow_link_is_an_answer(void **state)
{
	char root[TREE_PATH];
	(void)state;
	tree_new(root);
	lite_set(root, 2, 6, 1, -1);
	struct np_report *report = cluster_run(root, "slow_link", NULL);
	assert_non_null(cluster_finding(report, "SLOW_LINK_NONE"));
	assert_null(cluster_finding(report, "CLUSTER_MODE_EMPTY"));
	np_report_free(report);
	lite_set(root, 2, 2, 1, -1); /* too few of a kind */
	report = cluster_run(root, "slow_link", NULL);
	assert_non_null(cluster_finding(report, "CLUSTER_MODE_EMPTY"));
	np_report_free(report);
	lite_set(root, 2, 0, 1, -1);
	report = cluster_run(root, "slow_link", NULL);
	assert_non_null(cluster_finding(report, "CLUSTER_MODE_EMPTY"));
	assert_int_equal(report->exit_code, 3);
	np_report_free(report);
	tree_remove(root);
}

static void a_collective_that_a_rank_lacks_is_not_judged(void **state)
{
	char root[TREE_PATH], *text = calloc(1, LITE_OPS_SIZE);
	(void)state;
	assert_non_null(text);
	tree_new(root);
	lite_set(root, 8, 6, 5, -1);
	for (int k = 1; k < 6; k++) /* rank 3 without operation 0 */
		lite_op(text, k, 1.7e15 + 1000 * k, 1.2 + 0.003 * k, 8.0);
	lite_capture(root, 3, text);
	struct np_report *report = cluster_run(root, "slow_rank", NULL);
	assert_non_null(cluster_finding(report, "CLUSTER_GROUP_UNEVEN"));
	assert_int_equal(np_table_cell(cluster_table(report, "SlowRank"), 0, 1)->i, 5);
	np_report_free(report);
	free(text);
	tree_remove(root);
}

static void memory_may_run_out_anywhere(void **state)
{
	char root[TREE_PATH];
	(void)state;
	tree_new(root);
	lite_set(root, 5, 3, 1, 2);
	cluster_out_of_memory(root, "slow_rank", NULL);
	cluster_out_of_memory(root, "slow_link", NULL);
	tree_remove(root);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_limit_is_crossed_at_every_size),
		cmocka_unit_test(few_values_accuse_nobody),
		cmocka_unit_test(above_a_hundred_values_three_sigma_decide),
		cmocka_unit_test(runs_are_described_as_their_values),
		cmocka_unit_test(the_median_is_not_moved_by_one_outlier),
		cmocka_unit_test(the_last_rank_is_found_in_lite_captures),
		cmocka_unit_test(no_slow_rank_is_an_answer_and_two_ranks_are_none),
		cmocka_unit_test(one_slow_collective_of_six_is_found_by_the_median),
		cmocka_unit_test(no_slow_link_is_an_answer),
		cmocka_unit_test(a_collective_that_a_rank_lacks_is_not_judged),
		cmocka_unit_test(memory_may_run_out_anywhere),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
