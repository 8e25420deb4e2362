/* Who waits for what: free_analysis, computational_op_masking, p2p_pairing. */
#include "cluster_unit.h"

#include <math.h>

#include "cluster/summary_files.h"

extern const struct np_recipe np_recipe_free_analysis, np_recipe_computational_op_masking,
	np_recipe_p2p_pairing, np_recipe_export_summary, np_recipe_communication_bottleneck;

static void add_comm(struct np_profile *p, const char *name, const char *group, np_ns start,
                     np_ns end)
{
	size_t i = np_profile_add(p, comm_ops);
	assert_int_not_equal(i, SIZE_MAX);
	struct np_comm_ops *o = &p->comm_ops;
	o->name[i] = id_of(p, name);
	o->type[i] = id_of(p, "hcom_");
	o->group[i] = group ? id_of(p, group) : NP_ID_NONE;
	o->algorithm[i] = o->dtype[i] = NP_ID_NONE;
	o->count[i] = o->conn[i] = NP_NO_I64;
	o->device[i] = 0;
	o->start_ns[i] = start;
	o->dur_ns[i] = end - start;
	o->step[i] = NP_NO_U32;
}

static void add_notify(struct np_profile *p, uint32_t op, const char *name, uint32_t src,
                       uint32_t dst)
{
	size_t i = np_profile_add(p, comm_tasks);
	assert_int_not_equal(i, SIZE_MAX);
	struct np_comm_tasks *t = &p->comm_tasks;
	t->op[i] = op;
	t->name[i] = id_of(p, name);
	t->plane[i] = t->device[i] = t->stream[i] = t->task[i] = 0;
	t->start_ns[i] = t->dur_ns[i] = 0;
	t->src_rank[i] = src;
	t->dst_rank[i] = dst;
	t->transport[i] = t->link[i] = NP_ID_NONE;
	t->size_bytes[i] = NP_NO_I64;
	t->notify[i] = UINT64_MAX;
}

/* A launching call of CANN; add_op() is the operator. */
static void add_call(struct np_profile *p, np_ns start, np_ns end, int64_t conn)
{
	size_t i = np_profile_add(p, host_ops);
	assert_int_not_equal(i, SIZE_MAX);
	struct np_host_ops *h = &p->host_ops;
	h->layer[i] = NP_HOST_NODE;
	h->name[i] = id_of(p, "launch");
	h->item[i] = h->shapes[i] = h->dtypes[i] = h->stack[i] = NP_ID_NONE;
	h->pid[i] = h->tid[i] = 2;
	h->start_ns[i] = start;
	h->dur_ns[i] = end - start;
	h->conn[i] = conn;
	h->seq[i] = NP_NO_I64;
}

/* ── free_analysis ── */

/* A kernel and its task, launched by a call [call, call + took] of an operator that ended
 * at `op_end`. */
static void launched(struct np_profile *p, np_ns start, np_ns dur, int64_t conn, np_ns op_end,
                     np_ns call, np_ns took)
{
	add_kernel(p, "k", start, dur, (uint32_t)conn, NULL);
	add_task(p, start, dur, 1, conn);
	add_op(p, "aten::mm", op_end - 10, op_end, conn);
	add_call(p, call, call + took, conn);
}

static const char *reason_of(struct np_profile *p, bool expect_gap)
{
	static const struct np_cluster_options options;
	static char text[200];
	struct unit_rank rank = {0};
	struct np_report *report = np_report_new("cluster");
	assert_int_equal(
		map_part(np_recipe_free_analysis.parts[0], &rank, p, &options, 0, INT64_MAX),
		NP_OK);
	assert_int_equal(reduce_ranks(&np_recipe_free_analysis, &rank, 1, &options, report), NP_OK);
	const struct np_table *table = table_of(report, "FreeAnalysis");
	assert_true((table != NULL) == expect_gap);
	text[0] = '\0';
	if (table)
		(void)snprintf(text, sizeof text, "%.*s", NP_FMT(np_table_cell(table, 0, 6)->s));
	np_report_free(report);
	np_profile_free(p);
	return text;
}

static void a_gap_has_the_layer_that_was_late(void **state)
{
	(void)state;
	/* the second call came 49.999 us, then 50 us later behind its operator than the first */
	struct np_profile *p = np_profile_new();
	launched(p, 1000000, 1000, 1, 900000, 900100, 50);
	launched(p, 1200000, 1000, 2, 1000000, 1050099, 50);
	assert_string_equal(reason_of(p, true),
	                    "Idle Pytorch layer: no task dispatched in 100.0 us");
	p = np_profile_new();
	launched(p, 1000000, 1000, 1, 900000, 900100, 50);
	launched(p, 1200000, 1000, 2, 1000000, 1050100, 50);
	assert_string_equal(reason_of(p, true), "Abnormal CANN layer: long time between two "
	                                        "node@launch 149.95 us");
	/* the launch itself took longer than the time between the two */
	p = np_profile_new();
	launched(p, 1000000, 1000, 1, 900000, 900100, 50);
	launched(p, 1800000, 1000, 2, 1000000, 1050100, 700000);
	assert_string_equal(reason_of(p, true), "Abnormal CANN layer: long node@launch 700.0 us");
}

static void other_tasks_in_the_gap_come_first(void **state)
{
	(void)state;
	struct np_profile *p = np_profile_new();
	launched(p, 1000, 100, 1, 900, 910, 5);
	add_task(p, 1100, 50, 1, NP_NO_I64); /* begins at the border: not inside */
	add_task(p, 1200, 100, 1, NP_NO_I64);
	add_task(p, 1350, 50, 1, NP_NO_I64);
	p->tasks.type[2] = id_of(p, "SDMA");
	p->tasks.type[3] = id_of(p, "MEMCPY_ASYNC");
	launched(p, 2000, 100, 2, 910, 920, 5);
	assert_string_equal(reason_of(p, true), "Device task running: 1 SDMA tasks, 1 "
	                                        "MEMCPY_ASYNC tasks, max remaining free 0.6 us");
}

static void what_is_unknown_is_told(void **state)
{
	(void)state;
	struct np_profile *p = np_profile_new();
	add_kernel(p, "k", 1000, 100, 1, NULL);
	add_kernel(p, "k", 2000, 100, 2, NULL);
	assert_string_equal(reason_of(p, true), "Skip free analysis due to no prev or next task.");
	p = np_profile_new();
	add_kernel(p, "k", 1000, 100, 1, NULL);
	add_kernel(p, "k", 2000, 100, 2, NULL);
	add_task(p, 1000, 100, 1, 1);
	add_task(p, 2000, 100, 1, 2);
	assert_string_equal(reason_of(p, true),
	                    "Skip free analysis due to no pytorch dispatch time.");
	p = np_profile_new(); /* touching: no gap */
	add_kernel(p, "k", 1000, 100, 1, NULL);
	add_kernel(p, "k", 1100, 100, 2, NULL);
	assert_string_equal(reason_of(p, false), "");
	assert_string_equal(reason_of(np_profile_new(), false), "");
}

/* Gaps of 1 to 13 ns, three of each, in no order: the longest come first, of equal ones the
 * earliest. */
static void the_longest_gaps_come_first(void **state)
{
	(void)state;
	enum { LENGTHS = 13, GAPS = 3 * LENGTHS };
	for (uint64_t top = 1; top <= GAPS + 1; top++) {
		const struct np_cluster_options options = {.top = top};
		struct unit_rank rank = {0};
		struct np_report *report = np_report_new("cluster");
		struct np_profile *p = np_profile_new();
		np_ns at = 1000;
		add_kernel(p, "k", at, 10, 1, NULL);
		for (int i = 1; i <= GAPS; i++) {
			at += 10 + 1 + i * 5 % LENGTHS;
			add_kernel(p, "k", at, 10, 1, NULL);
		}
		assert_int_equal(map_part(np_recipe_free_analysis.parts[0], &rank, p, &options, 0,
		                          INT64_MAX),
		                 NP_OK);
		assert_int_equal(reduce_ranks(&np_recipe_free_analysis, &rank, 1, &options, report),
		                 NP_OK);
		const struct np_table *table = table_of(report, "FreeAnalysis");
		size_t rows = np_table_rows(table);
		assert_int_equal(rows, top < GAPS ? top : GAPS);
		for (size_t r = 0; r < rows; r++) {
			double expected = (double)(LENGTHS - r / 3) / 1000;
			assert_true(fabs(np_table_cell(table, r, 3)->r - expected) < 1e-9);
			assert_true(r % 3 == 0 || np_str_cmp(np_table_cell(table, r - 1, 1)->s,
			                                     np_table_cell(table, r, 1)->s) < 0);
		}
		np_profile_free(p);
		np_report_free(report);
	}
}

/* ── computational_op_masking ── */

static void what_computing_hides_is_not_counted(void **state)
{
	(void)state;
	struct np_group groups[] = {
		{.comm_name = "g1", .name = "dp", .hash = np_group_hash(NP_STR("g1"))},
		{.comm_name = "g2", .name = "edp", .hash = np_group_hash(NP_STR("g2"))},
		{.comm_name = "g3", .name = "tp", .hash = np_group_hash(NP_STR("g3"))}};
	struct unit_rank rank = {.capture = {.groups = groups, .n_groups = 3}};
	struct np_cluster_options options = {.parallel_types = "dp, edp;;tp;none"};
	struct np_report *report = np_report_new("cluster");
	struct np_profile *p = np_profile_new();
	char key[NP_GROUP_KEY_SIZE];
	np_group_key(NP_STR("g2"), key);
	add_step(p, 7, 1000, 2000);
	add_comm(p, "a", "g1", 900, 1000); /* ends where the step begins: not of it */
	add_comm(p, "b", "g1", 1100, 1300);
	add_comm(p, "c", key, 1200, 1400); /* a text capture has the hash */
	char name[64]; /* a trace has a number, and digits of the hash in the op's name */
	(void)snprintf(name, sizeof name, "hcom_allReduce__%03u_0_1",
	               (unsigned)(groups[2].hash % 1000));
	add_comm(p, name, "0", 1990, 2100);
	add_comm(p, "e", "0", 1000, 2000); /* of no group that is known */
	add_kernel(p, "k", 1250, 100, 1, NULL);
	add_kernel(p, "k", 1260, 10, 1, NULL);
	assert_int_equal(map_part(np_recipe_computational_op_masking.parts[0], &rank, p, &options,
	                          0, INT64_MAX),
	                 NP_OK);
	assert_int_equal(
		reduce_ranks(&np_recipe_computational_op_masking, &rank, 1, &options, report),
		NP_OK);
	const struct np_table *table = table_of(report, "ComputationalOperatorMaskingLinearity");
	assert_int_equal(np_table_rows(table), 2);
	assert_str(np_table_cell(table, 0, 1)->s, "dp+edp");
	assert_int_equal(np_table_cell(table, 0, 4)->i, 300);
	assert_int_equal(np_table_cell(table, 0, 6)->i, 200);
	assert_true(np_table_cell(table, 0, 7)->r == 0.2);
	assert_int_equal(np_table_cell(table, 1, 4)->i, 110); /* in full, not only in the step */
	np_profile_free(p);
	np_report_free(report);
}

/* ── p2p_pairing ── */

static void p2p_rank(struct np_profile *p, struct unit_rank *rank)
{
	static const struct np_cluster_options options;
	assert_int_equal(map_part(np_recipe_p2p_pairing.parts[0], rank, p, &options, 0, INT64_MAX),
	                 NP_OK);
	np_profile_free(p);
}

static struct np_report *pair_up(bool compat)
{
	struct np_cluster_options options = {.compat = compat};
	struct unit_rank ranks[2] = {0};
	struct np_report *report = np_report_new("cluster");
	struct np_profile *p = np_profile_new();
	/* two communicators with the same local ranks */
	add_comm(p, "hcom_send__111_0_1", "g1", 100, 250);
	add_comm(p, "hcom_send__222_0_1", "g2", 300, 400);
	add_comm(p, "hcom_send__111_1_1", "g1", 500, 600);
	add_comm(p, "hcom_allReduce__111_0_1", "g1", 700, 800);
	add_comm(p, "hcom_send__111_2_1", "g1", 900, 1000); /* two pairs: not one transfer */
	add_notify(p, 0, "Notify_Record", 0, 1);
	add_notify(p, 0, "Notify_Wait", 0, 1);
	add_notify(p, 0, "Memcpy", 5, 6);
	add_notify(p, 1, "Notify_Wait", 0, 1);
	add_notify(p, 2, "Notify_Wait", 0, 1);
	add_notify(p, 3, "Notify_Wait", 0, 1);
	add_notify(p, 4, "Notify_Wait", 0, 1);
	add_notify(p, 4, "Notify_Wait", 1, 0);
	add_notify(p, NP_NO_U32, "Notify_Wait", 1, 0);
	p2p_rank(p, &ranks[0]);
	p = np_profile_new();
	add_comm(p, "hcom_receive__111_0_1", "g1", 200, 250);
	add_comm(p, "hcom_Recv__222_0_1", "g2", 200, 250);
	add_notify(p, 0, "Notify_Wait", 1, 0); /* a receive's own rank comes first */
	add_notify(p, 1, "Notify_Wait", 1, 0);
	p2p_rank(p, &ranks[1]);
	assert_int_equal(reduce_ranks(&np_recipe_p2p_pairing, ranks, 2, &options, report), NP_OK);
	return report;
}

static void sends_find_their_receives(void **state)
{
	(void)state;
	struct np_report *report = pair_up(false);
	const struct np_table *table = table_of(report, "P2PPairing");
	assert_int_equal(np_table_rows(table), 5);
	assert_str(np_table_cell(table, 0, 6)->s, "111_0_1_0");
	assert_int_equal(np_table_cell(table, 0, 9)->i, 1);     /* partner */
	assert_int_equal(np_table_cell(table, 0, 12)->i, 0);    /* waiting: began at 100 */
	assert_int_equal(np_table_cell(table, 0, 13)->i, 100);  /* until 200 */
	assert_str(np_table_cell(table, 1, 6)->s, "222_0_1_0"); /* a count of its own */
	assert_true(np_table_cell(table, 1, 13)->na);           /* received before it was sent */
	assert_str(np_table_cell(table, 2, 6)->s, "111_0_1_1");
	assert_true(np_table_cell(table, 2, 9)->na); /* no partner */
	assert_int_equal(findings_of(report, "P2P_UNPAIRED"), 1);
	assert_int_equal(findings_of(report, "P2P_CLOCKS_DIFFER"), 1);
	np_report_free(report);
	report = pair_up(true);
	table = table_of(report, "P2PPairing");
	assert_str(np_table_cell(table, 1, 6)->s, "222_0_1_1"); /* one count for both */
	assert_str(np_table_cell(table, 2, 6)->s, "111_0_1_2");
	assert_int_equal(np_table_cell(table, 0, 9)->i, 1);
	np_report_free(report);
}

/* ── export_summary ── */

static void the_wait_is_the_gap_before(void **state)
{
	(void)state;
	struct np_buf text = {0};
	struct np_profile *p = np_profile_new();
	add_kernel(p, "a,\"b\"", 1000000, 500, 1, "F");
	add_kernel(p, "b", 1002000, 1000, 2, NULL);
	add_kernel(p, "c", 1002500, 1000, 3, NULL); /* overlaps: no gap */
	assert_true(np_summary_kernels(p, false, &text));
	assert_non_null(
		strstr(text.ptr, "\n\"a,\"\"b\"\"\",0,0,N/A,AI_CORE,N/A,\"\"\"16,16\"\"\",F,"));
	assert_non_null(strstr(text.ptr, ",1000.000,0.5,0,0,0,0,0,0.0\n"));
	assert_non_null(strstr(text.ptr, ",1002.000,1.0,0,0,0,0,0,1.5\n"));
	assert_non_null(strstr(text.ptr, ",1002.500,1.0,0,0,0,0,0,0.0\n"));
	np_buf_clear(&text);
	assert_true(np_summary_kernels(p, true, &text));
	assert_non_null(strstr(text.ptr, ",1002.0,1.0,0,0,0,0,0,3.0\n"));
	np_buf_release(&text);
	np_profile_free(p);
}

/* ── memory ── */

static enum np_status everything(void *ctx)
{
	const struct np_profile *p = ctx;
	static const struct np_cluster_options options;
	const struct np_recipe *const recipes[] = {
		&np_recipe_free_analysis, &np_recipe_computational_op_masking,
		&np_recipe_p2p_pairing, &np_recipe_export_summary};
	enum np_status status = NP_OK;
	for (size_t i = 0; status == NP_OK && i < sizeof recipes / sizeof *recipes; i++) {
		struct unit_rank rank = {0};
		struct np_report *report = np_report_new("cluster");
		status = report ? map_part(recipes[i]->parts[0], &rank, p, &options, 0, INT64_MAX)
		                : NP_E_NOMEM;
		if (status == NP_OK)
			status = reduce_ranks(recipes[i], &rank, 1, &options, report);
		else
			np_digest_free(rank.digest);
		if (status == NP_OK)
			status = np_report_ok(report, NULL);
		np_report_free(report);
	}
	struct np_buf text = {0};
	if (status == NP_OK && (!np_summary_apis(p, &text) || !np_summary_kernels(p, false, &text)))
		status = NP_E_NOMEM;
	np_buf_release(&text);
	return status;
}

static void memory_may_run_out(void **state)
{
	(void)state;
	struct np_profile *p = np_profile_new();
	launched(p, 1000, 100, 1, 900, 910, 5);
	launched(p, 2000, 100, 2, 910, 920, 5);
	add_comm(p, "hcom_send__111_0_1", "g1", 2100, 2200);
	add_notify(p, 0, "Notify_Record", 0, 1);
	add_step(p, 1, 0, 5000);
	survive_no_memory(everything, p);
	np_profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_gap_has_the_layer_that_was_late),
		cmocka_unit_test(other_tasks_in_the_gap_come_first),
		cmocka_unit_test(what_is_unknown_is_told),
		cmocka_unit_test(the_longest_gaps_come_first),
		cmocka_unit_test(what_computing_hides_is_not_counted),
		cmocka_unit_test(sends_find_their_receives),
		cmocka_unit_test(the_wait_is_the_gap_before),
		cmocka_unit_test(memory_may_run_out),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
