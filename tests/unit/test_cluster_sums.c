/* compute_op_sum, cann_api_sum, freq_analysis, ep_load_balance, hccl_sum. */
#include "cluster_dir_unit.h"
#include "synth_set.h"

static void text_and_db_of_a_run_have_the_same_kernels(void **state)
{
	static const char *const ids[] = {"ComputeOpAllRankStats", "ComputeOpPerRankStatsByOpType",
	                                  "ComputeOpPerRankStatsByOpName"};
	char root[TREE_PATH], text[2 * TREE_PATH], db[2 * TREE_PATH];
	(void)state;
	tree_new(root);
	(void)snprintf(text, sizeof text, "%s/text", root);
	(void)snprintf(db, sizeof db, "%s/db", root);
	synth_set(text, NP_SYNTH_TEXT, 2, 1, "");
	synth_set(db, NP_SYNTH_DB, 2, 1, "");
	struct np_report *a = cluster_run(text, "compute_op_sum", NULL);
	struct np_report *b = cluster_run(db, "compute_op_sum", NULL);
	for (size_t t = 0; t < 3; t++) {
		const struct np_table *x = cluster_table(a, ids[t]), *y = cluster_table(b, ids[t]);
		assert_non_null(x);
		assert_non_null(y);
		assert_true(np_table_rows(x) > 1);
		assert_int_equal(np_table_rows(x), np_table_rows(y));
		for (size_t r = 0; r < np_table_rows(x); r++)
			for (size_t c = 0; c < x->n_columns; c++) {
				const struct np_cell *p = np_table_cell(x, r, c);
				const struct np_cell *q = np_table_cell(y, r, c);
				assert_int_equal(p->na, q->na);
				if (x->columns[c].type == NP_COL_TEXT)
					assert_true(np_str_eq(p->s, q->s));
				else if (x->columns[c].type == NP_COL_INT)
					assert_int_equal(p->i, q->i);
				else if (!p->na)
					assert_true(p->r == q->r);
			}
	}
	np_report_free(a);
	np_report_free(b);
	const struct np_cluster_options brief = {.exclude_op_name = true};
	a = cluster_run(db, "compute_op_sum", &brief);
	assert_null(cluster_table(a, ids[2]));
	np_report_free(a);
	cluster_out_of_memory(db, "compute_op_sum", NULL);
	cluster_out_of_memory(db, "cann_api_sum", NULL);
	tree_remove(root);
}

static void what_is_not_recorded_is_told(void **state)
{
	static const char *const modes[] = {"compute_op_sum", "cann_api_sum", "freq_analysis",
	                                    "ep_load_balance"};
	char root[TREE_PATH];
	(void)state;
	tree_new(root);
	lite_capture(root, 0, "");
	lite_capture(root, 1, "");
	for (size_t m = 0; m < sizeof modes / sizeof *modes; m++) {
		struct np_report *report = cluster_run(root, modes[m], NULL);
		assert_non_null(cluster_finding(report, "CLUSTER_MODE_EMPTY"));
		assert_int_equal(report->exit_code, 3);
		np_report_free(report);
	}
	tree_remove(root);
}

/* ── clocks ── */

static void clocks(const char *root, int rank, const char *values)
{
	char path[160], text[2048] = "[";
	(void)snprintf(path, sizeof path, "h_%d_20250601080000000_ascend_pt/profiler_info_%d.json",
	               rank, rank);
	tree_put(root, path, "{}");
	double ts = 1.7e15;
	for (const char *v = values; *v;) {
		size_t len = strlen(text);
		(void)snprintf(text + len, sizeof text - len,
		               "%s{\"name\":\"AI Core Freq\",\"ts\":\"%.3f\",\"pid\":4,\"tid\":0,"
		               "\"args\":{\"MHz\":%.*s},\"ph\":\"C\"}",
		               text[1] ? "," : "", ts, (int)strcspn(v, " "), v);
		v += strcspn(v, " ");
		v += strspn(v, " ");
		ts += 1000;
	}
	size_t len = strlen(text);
	(void)snprintf(text + len, sizeof text - len,
	               ",{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":4,\"tid\":0,"
	               "\"args\":{\"name\":\"AI Core Freq\"}}]");
	(void)snprintf(path, sizeof path,
	               "h_%d_20250601080000000_ascend_pt/ASCEND_PROFILER_OUTPUT/trace_view.json",
	               rank);
	tree_put(root, path, text);
}

static void the_nominal_clock_is_that_of_the_data(void **state)
{
	char root[TREE_PATH];
	(void)state;
	tree_new(root);
	clocks(root, 0, "1650 1650 1650");
	clocks(root, 1, "1650 800 1650");
	clocks(root, 2, "1650 1200");
	struct np_report *report = cluster_run(root, "freq_analysis", NULL);
	const struct np_table *idle = cluster_table(report, "FreeFrequencyRanks");
	const struct np_table *odd = cluster_table(report, "AbnormalFrequencyRanks");
	assert_non_null(idle);
	assert_non_null(odd);
	assert_int_equal(np_table_rows(idle), 1);
	assert_int_equal(np_table_cell(idle, 0, 0)->i, 1);
	assert_str(np_table_cell(idle, 0, 1)->s, "[800, 1650]");
	assert_int_equal(np_table_rows(odd), 1);
	assert_int_equal(np_table_cell(odd, 0, 0)->i, 2);
	assert_non_null(cluster_finding(report, "FREQ_ABNORMAL"));
	assert_non_null(cluster_finding(report, "FREQ_IDLE"));
	np_report_free(report);
	/* officially everything but 1800 and 800 is abnormal */
	const struct np_cluster_options compat = {.compat = true};
	report = cluster_run(root, "freq_analysis", &compat);
	assert_int_equal(np_table_rows(cluster_table(report, "AbnormalFrequencyRanks")), 3);
	np_report_free(report);
	const struct np_cluster_options one = {.rank_list = "0"};
	report = cluster_run(root, "freq_analysis", &one);
	assert_non_null(cluster_finding(report, "FREQ_NOMINAL"));
	assert_null(cluster_finding(report, "CLUSTER_MODE_EMPTY"));
	np_report_free(report);
	cluster_out_of_memory(root, "freq_analysis", NULL);
	tree_remove(root);
}

/* ── tokens ── */

static void tokens(const char *root, int rank, const char *groups, const char *shapes)
{
	char path[1200], text[1024];
	const char *dir = "h_%d_20250601080000000_ascend_pt/%s";
	(void)snprintf(path, sizeof path, dir, rank, "profiler_metadata.json");
	(void)snprintf(text, sizeof text, "{\"parallel_group_info\": {%s}}", groups);
	tree_put(root, path, text);
	(void)snprintf(text, sizeof text, "profiler_info_%d.json", rank);
	(void)snprintf(path, sizeof path, dir, rank, text);
	tree_put(root, path, "{}");
	(void)snprintf(path, sizeof path, dir, rank, "ASCEND_PROFILER_OUTPUT/kernel_details.csv");
	(void)snprintf(text, sizeof text,
	               "Step Id,Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait "
	               "Time(us),Input Shapes\n1,gmm,GroupedMatmul,AI_CORE,1000.000\t,5,0,\"%s\"\n",
	               shapes);
	tree_put(root, path, text);
}

static void tokens_are_the_first_dimensions_but_of_weights_and_list(void **state)
{
	static const char exp[] =
		"\"a\": {\"group_name\": \"exp\", \"group_rank\": 0, \"global_ranks\": [0, 1]}";
	char root[TREE_PATH];
	(void)state;
	tree_new(root);
	tokens(root, 0, exp, "4096,1024;8,1024,512;8");
	tokens(root, 1, exp, "1024,1024;1024,512;8,1024,512;8");
	struct np_report *report = cluster_run(root, "ep_load_balance", NULL);
	const struct np_table *table = cluster_table(report, "EPTokensSummary");
	assert_non_null(table);
	assert_int_equal(np_table_rows(table), 2);
	assert_str(np_table_cell(table, 0, 1)->s, "0,1");
	assert_int_equal(np_table_cell(table, 0, 2)->i, 4096);
	assert_int_equal(np_table_cell(table, 1, 2)->i, 2048);
	assert_int_equal(np_table_cell(cluster_table(report, "TopEPTokensInfo"), 0, 1)->i, 2048);
	assert_non_null(cluster_finding(report, "EP_IMBALANCE")); /* 4096 / 3072 = 1.33 */
	np_report_free(report);
	cluster_out_of_memory(root, "ep_load_balance", NULL);
	tokens(root, 0, exp, "3980,1024;8,1024,512;8"); /* 3980 / 3069 is below 1.3 */
	tokens(root, 1, exp, "2158,1024;8,1024,512;8");
	report = cluster_run(root, "ep_load_balance", NULL);
	assert_null(cluster_finding(report, "EP_IMBALANCE"));
	np_report_free(report);
	tokens(root, 0, exp, "x,1024;8,1024,512;8"); /* no number: the row doesn't tell */
	tokens(root, 1, exp, "8");                   /* one part */
	report = cluster_run(root, "ep_load_balance", NULL);
	assert_non_null(cluster_finding(report, "CLUSTER_MODE_EMPTY"));
	np_report_free(report);
	tree_remove(root);
}

/* ── groups of text captures ── */

/* Lanes of the trace as "Group NAME Communication", with one collective each. */
static void traced(const char *root, int rank, const char *group)
{
	char path[160], text[1024];
	(void)snprintf(path, sizeof path, "h_%d_20250601080000000_ascend_pt/profiler_info_%d.json",
	               rank, rank);
	tree_put(root, path, "{}");
	(void)snprintf(text, sizeof text,
	               "[{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":4,\"tid\":0,\"args\":"
	               "{\"name\":\"Communication\"}},{\"name\":\"thread_name\",\"ph\":\"M\","
	               "\"pid\":4,\"tid\":0,\"args\":{\"name\":\"Group %s Communication\"}},"
	               "{\"name\":\"hcom_allReduce__271_0_1\",\"pid\":4,\"tid\":0,\"ts\":"
	               "\"1700000000000000.000\",\"dur\":5.5,\"args\":{\"connection_id\":1},"
	               "\"ph\":\"X\"}]",
	               group);
	(void)snprintf(path, sizeof path,
	               "h_%d_20250601080000000_ascend_pt/ASCEND_PROFILER_OUTPUT/trace_view.json",
	               rank);
	tree_put(root, path, text);
}

static void a_group_of_a_trace_has_its_id(void **state)
{
	static const char *const names[][2] = {
		{"11022204950826225271", "11022204950826225271"}, /* the hash */
		{"0", "271"},                                     /* the number of a lane */
	};
	char root[TREE_PATH];
	(void)state;
	tree_new(root);
	for (size_t i = 0; i < 2; i++) {
		traced(root, 0, names[i][0]);
		traced(root, 1, names[i][0]);
		struct np_report *report = cluster_run(root, "hccl_sum", NULL);
		const struct np_table *table = cluster_table(report, "HcclGroupNameMap");
		assert_non_null(table);
		assert_int_equal(np_table_rows(table), 1);
		assert_str(np_table_cell(table, 0, 0)->s, names[i][1]);
		assert_str(np_table_cell(table, 0, 1)->s, "271");
		assert_str(np_table_cell(table, 0, 2)->s, "0;1");
		np_report_free(report);
	}
	tree_remove(root);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_and_db_of_a_run_have_the_same_kernels),
		cmocka_unit_test(what_is_not_recorded_is_told),
		cmocka_unit_test(the_nominal_clock_is_that_of_the_data),
		cmocka_unit_test(tokens_are_the_first_dimensions_but_of_weights_and_list),
		cmocka_unit_test(a_group_of_a_trace_has_its_id),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
