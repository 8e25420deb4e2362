/* all, communication_*: what the golden outputs do not show. */
#include <sqlite3.h>

#include "cluster/cluster_files.h"
#include "cluster/comm_kinds.h"
#include "cluster/internal.h"
#include "io/json.h"
#include "temp_tree.h"

/* ── four ranks, tp 2, pp 2: tp groups 0,1 and 2,3; pp groups 0,2 and 1,3 ── */

static const char *const tp_ranks[] = {"0,1", "0,1", "2,3", "2,3"};
static const char *const pp_ranks[] = {"0,2", "1,3", "0,2", "1,3"};

struct set {
	char root[TREE_PATH], out[TREE_PATH];
	const char *args; /* distributed_args */
	struct np_captures *all;
	struct np_cluster cluster;
	struct np_cluster_options options;
	struct np_report *report;
	const struct np_recipe *recipes[2];
	struct np_err err;
};

static int set_open(void **state)
{
	struct set *self = calloc(1, sizeof *self);
	assert_non_null(self);
	(void)tree_new(self->root);
	(void)tree_new(self->out);
	self->args = "\"tensor_model_parallel_size\": 2, \"pipeline_model_parallel_size\": 2, "
		     "\"data_parallel_size\": 1, \"world_size\": 4";
	self->options = (struct np_cluster_options){
		.recipes = self->recipes, .n_recipes = 1, .no_cache = true, .threads = 2};
	self->recipes[0] = np_recipe_find(NP_STR("all"));
	*state = self;
	return 0;
}

static void done(struct set *self)
{
	np_cluster_close(&self->cluster);
	np_report_free(self->report);
	np_captures_free(self->all);
	self->report = NULL;
	self->all = NULL;
}

static int set_close(void **state)
{
	struct set *self = *state;
	np_mem_fail_after(0);
	tree_remove(self->root);
	tree_remove(self->out);
	free(self);
	return 0;
}

static void put(struct set *self, int rank, const char *file, const char *text)
{
	char path[TREE_PATH];
	(void)snprintf(path, sizeof path, "h_%d_20260101000000000_ascend_pt/%s", rank, file);
	tree_put(self->root, path, text);
}

static void hash_of(const char *kind, const char *ranks, char out[32])
{
	char name[64];
	(void)snprintf(name, sizeof name, "%s%s", kind, ranks);
	(void)snprintf(out, 32, "%llu", (unsigned long long)np_group_hash(np_str_of(name)));
}

#define OP(name, ms)                                                                        \
	"\"" name "@%s\": {\"Communication Time Info\": {\"Start Timestamp(us)\": 10.5, "   \
	"\"Elapse Time(ms)\": " ms ", \"Transit Time(ms)\": 1, \"Wait Time(ms)\": 3, "      \
	"\"Synchronization Time(ms)\": 1, \"Idle Time(ms)\": 0.5}, "                        \
	"\"Communication Bandwidth Info\": {\"HCCS\": {\"Transit Size(MB)\": 4, "           \
	"\"Transit Time(ms)\": 1, \"Bandwidth(GB/s)\": 4.0, \"Large Packet Ratio\": 0.5, "  \
	"\"Size Distribution\": {\"2.0\": [2, 1.0]}}, \"SDMA\": {\"Transit Size(MB)\": 4, " \
	"\"Transit Time(ms)\": 1, \"Bandwidth(GB/s)\": 4.0, \"Large Packet Ratio\": 0, "    \
	"\"Size Distribution\": {}}}}"
#define LINK(src, dst)                                                                  \
	"\"" src "-" dst "\": {\"Transport Type\": \"HCCS\", \"Transit Size(MB)\": 6, " \
	"\"Transit Time(ms)\": 2, \"Bandwidth(GB/s)\": 3.0, \"Op Name\": \"hcom_x\"}"

static void put_rank(struct set *self, int rank)
{
	char text[8192], tp[32], pp[32];
	hash_of("t", tp_ranks[rank], tp);
	hash_of("p", pp_ranks[rank], pp);
	(void)snprintf(text, sizeof text, "{\"rank_id\": %d}", rank);
	char name[64];
	(void)snprintf(name, sizeof name, "profiler_info_%d.json", rank);
	put(self, rank, name, text);
	(void)snprintf(text, sizeof text,
	               "{\"distributed_args\": {%s}, \"parallel_group_info\": {"
	               "\"t%s\": {\"group_name\": \"tp\", \"global_ranks\": [%s]}, "
	               "\"p%s\": {\"group_name\": \"pp\", \"global_ranks\": [%s]}}}",
	               self->args, tp_ranks[rank], tp_ranks[rank], pp_ranks[rank], pp_ranks[rank]);
	put(self, rank, "profiler_metadata.json", text);
	(void)snprintf(text, sizeof text,
	               "{\"step7\": {\"p2p\": {" OP("hcom_send_", "4.5") "}, \"collective\": {" OP(
			       "hcom_allReduce_a", "4.5") ", " OP("hcom_allReduce_b", "5.5") "}}}",
	               pp, tp, tp);
	put(self, rank, "ASCEND_PROFILER_OUTPUT/communication.json", text);
	(void)snprintf(text, sizeof text,
	               "{\"step7\": {\"p2p\": {}, \"collective\": {\"allreduce-total@%s\": {"
	               "\"%d-%d\": {\"Transport Type\": \"LOCAL\", \"Transit Size(MB)\": 1, "
	               "\"Transit Time(ms)\": 1, \"Bandwidth(GB/s)\": 1.0, \"Op Name\": \"\"}, "
	               "%s}}}}",
	               tp, rank % 2, rank % 2, rank % 2 ? LINK("1", "0") : LINK("0", "1"));
	put(self, rank, "ASCEND_PROFILER_OUTPUT/communication_matrix.json", text);
	(void)snprintf(text, sizeof text,
	               "Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,"
	               "Stage,Bubble,Communication(Not Overlapped and Exclude Receive)\n"
	               "7,%d.5,2,3,4,5,6,7,8\n",
	               100 + rank);
	put(self, rank, "ASCEND_PROFILER_OUTPUT/step_trace_time.csv", text);
}

static enum np_status try_run(struct set *self, enum np_export_type type, bool write)
{
	self->report = np_report_new("cluster");
	self->cluster = (struct np_cluster){.all = NULL};
	if (!self->report)
		return NP_E_NOMEM;
	NP_TRY(np_discover(self->root, &self->all, &self->err));
	NP_TRY(np_cluster_open(&self->cluster, self->all, &self->options, self->report,
	                       &self->err));
	NP_TRY(np_cluster_map(&self->cluster, &self->err));
	NP_TRY(np_cluster_reduce(&self->cluster, &self->err));
	return write ? np_cluster_export(&self->cluster, self->out, type, &self->err) : NP_OK;
}

static void run(struct set *self, enum np_export_type type, bool write)
{
	if (try_run(self, type, write) != NP_OK)
		fail_msg("%s: %s", self->err.where, self->err.msg);
}

static const struct np_table *table(const struct set *self, const char *id)
{
	const struct np_table *found = np_export_table(&self->cluster, id);
	if (!found)
		fail_msg("no table %s", id);
	return found;
}

static void expect_cell(const struct np_table *table, size_t row, size_t column, const char *text)
{
	const struct np_cell *cell = np_table_cell(table, row, column);
	assert_int_equal(cell->na, text == NULL);
	if (text && !np_str_is(cell->s, text))
		fail_msg("%s[%zu][%zu] is '%.*s', not '%s'", table->id, row, column,
		         NP_FMT(cell->s), text);
}

static const struct np_finding *finding(const struct set *self, const char *code)
{
	for (size_t i = 0; i < self->report->findings.n; i++)
		if (strcmp(self->report->findings.v[i]->code, code) == 0)
			return self->report->findings.v[i];
	return NULL;
}

/* ── groups, stages, positions ── */

static void stages_follow_from_the_pp_groups(void **state)
{
	struct set *self = *state;
	for (int r = 0; r < 4; r++)
		put_rank(self, r);
	run(self, NP_EXPORT_AUTO, false);
	const struct np_table *groups = table(self, "CommunicationGroupMapping");
	assert_int_equal(np_table_rows(groups), 4);
	expect_cell(groups, 0, 0, "collective");
	expect_cell(groups, 3, 0, "p2p");
	expect_cell(groups, 3, 4, "pp");
	const struct np_table *steps = table(self, "ClusterStepTraceTime");
	assert_int_equal(np_table_rows(steps), 6);
	expect_cell(steps, 3, 2, "3");
	expect_cell(steps, 3, 13, "1"); /* pp */
	expect_cell(steps, 3, 14, "1"); /* tp */
	expect_cell(steps, 4, 1, "stage");
	expect_cell(steps, 4, 2, "(0,1)");
	expect_cell(steps, 5, 2, "(2,3)");
	expect_cell(steps, 5, 12, "NA");
	assert_true(np_table_cell(steps, 4, 3)->r == 101.5); /* the larger of both */
	assert_true(np_table_cell(steps, 0, 11)->na);        /* no column Preparing */
	done(self);
}

static void context_parallel_ranks_have_a_position(void **state)
{
	const struct np_parallel sizes = {.tp = 2, .cp = 2, .dp = 2, .pp = 2, .world = 16};
	struct np_position at = np_position_of(&sizes, 13); /* tp 1, cp 0, dp 1, pp 1 */
	assert_int_equal(at.tp, 1);
	assert_int_equal(at.dp, 1);
	assert_int_equal(at.pp, 1);
	struct set *self = *state;
	self->args = "\"tensor_model_parallel_size\": 1, \"pipeline_model_parallel_size\": 2, "
		     "\"context_parallel_size\": 2, \"world_size\": 4";
	for (int r = 0; r < 4; r++)
		put_rank(self, r);
	run(self, NP_EXPORT_AUTO, false);
	expect_cell(table(self, "ClusterStepTraceTime"), 2, 13, "1");
	done(self);
	self->options.compat = true; /* the official tool gives up */
	run(self, NP_EXPORT_AUTO, false);
	expect_cell(table(self, "ClusterStepTraceTime"), 2, 13, "0");
	done(self);
}

static void sizes_that_do_not_fit_are_told(void **state)
{
	struct set *self = *state;
	self->args = "\"tensor_model_parallel_size\": 3, \"pipeline_model_parallel_size\": 2, "
		     "\"world_size\": 4";
	for (int r = 0; r < 4; r++)
		put_rank(self, r);
	run(self, NP_EXPORT_AUTO, false);
	assert_non_null(finding(self, "CLUSTER_PARALLEL_MISMATCH"));
	expect_cell(table(self, "ClusterStepTraceTime"), 0, 12, NULL);
	assert_int_equal(self->report->exit_code, 3);
	done(self);
}

/* ── the matrix ── */

static void links_to_ranks_without_data_stay(void **state)
{
	struct set *self = *state;
	self->options.full_tables = true;
	put_rank(self, 0); /* rank 1 is not there: 0-1 is known from the groups only */
	run(self, NP_EXPORT_AUTO, false);
	const struct np_table *matrix = table(self, "ClusterCommunicationMatrix");
	assert_int_equal(np_table_rows(matrix), 4); /* two links, each with its total */
	assert_true(np_table_cell(matrix, 1, 4)->r == 1);
	assert_true(np_table_cell(matrix, 1, 9)->r == 3);
	assert_null(finding(self, "CLUSTER_LINK_UNMAPPED"));
	done(self);
	self->options.compat = true;
	run(self, NP_EXPORT_AUTO, false);
	assert_int_equal(np_table_rows(table(self, "ClusterCommunicationMatrix")), 2);
	assert_non_null(finding(self, "CLUSTER_LINK_UNMAPPED"));
	done(self);
}

static void operators_of_msprof_become_kinds(void **state)
{
	(void)state;
	struct np_buf lower = {0};
	assert_true(np_str_is(np_comm_kind_of(NP_STR("hcom_allReduce__1_2"), &lower), "allreduce"));
	assert_true(np_str_is(np_comm_kind_of(NP_STR("hcom_reduceScatter_"), &lower), "reduce"));
	assert_true(
		np_str_is(np_comm_kind_of(NP_STR("hcom_batchSendRecv"), &lower), "batchsendrecv"));
	assert_true(np_str_is(np_comm_kind_of(NP_STR("Mine__1"), &lower), "mine"));
	np_buf_release(&lower);
	assert_true(np_comm_is_kind(NP_STR("send-total")));
	assert_false(np_comm_is_kind(NP_STR("hcom_send__1_2")));
}

static void the_fastest_the_middle_and_the_slowest_stand_for_all(void **state)
{
	(void)state;
	struct np_profile *p = np_profile_new();
	struct np_digest *digest = np_digest_new();
	assert_true(p && digest);
	for (unsigned i = 0; i < 4; i++) {
		size_t r = np_profile_add(p, comm_matrix);
		struct np_comm_matrix *m = &p->comm_matrix;
		char name[32];
		(void)snprintf(name, sizeof name, "hcom_send__1_%u", i);
		m->step[r] = NP_NO_I64;
		m->p2p[r] = 1;
		m->kind[r] = np_intern_add(&p->strings, np_str_of(name));
		m->group[r] = np_intern_add(&p->strings, NP_STR("77"));
		m->src[r] = 0;
		m->dst[r] = 1;
		m->transport[r] = np_intern_add(&p->strings, NP_STR("HCCS"));
		m->transit_mb[r] = 1;
		m->transit_ms[r] = 1;
		m->gbps[r] = (double[]){2, 9, 1, 5}[i]; /* sorted: 9 5 2 1 */
		m->op[r] = NP_ID_NONE;
	}
	struct np_digest_comm_matrix *to = np_digest_table(digest, &np_digest_comm_matrix_desc);
	assert_true(np_comm_kinds_add(&p->comm_matrix, &p->strings, digest, to));
	static const char *const expected[][2] = {
		{"send-top1", "hcom_send__1_1"},    {"send-middle", "hcom_send__1_0"},
		{"send-bottom1", "hcom_send__1_2"}, {"send-bottom2", "hcom_send__1_0"},
		{"send-bottom3", "hcom_send__1_3"}, {"send-total", ""}};
	assert_int_equal(to->n, 6);
	for (size_t i = 0; i < 6; i++) {
		assert_true(
			np_str_is(np_intern_get(&digest->strings, to->kind[i]), expected[i][0]));
		assert_true(np_str_is(np_intern_get(&digest->strings, to->op[i]), expected[i][1]));
	}
	assert_true(to->transit_mb[5] == 4);
	np_digest_free(digest);
	np_profile_free(p);
}

/* ── totals ── */

/* The op names of one group in both classes. */
static void put_both_kinds(struct set *self)
{
	char text[8192], tp[32];
	put_rank(self, 0);
	hash_of("t", tp_ranks[0], tp);
	(void)snprintf(text, sizeof text,
	               "{\"step7\": {\"p2p\": {" OP("hcom_send_", "4.5") "}, \"collective\": {" OP(
			       "hcom_allReduce_a", "5.5") "}}}",
	               tp, tp);
	put(self, 0, "ASCEND_PROFILER_OUTPUT/communication.json", text);
}

static double total_elapse(const struct set *self)
{
	const struct np_table *times = table(self, "ClusterCommunicationTime");
	size_t last = np_table_rows(times) - 1;
	expect_cell(times, last, 2, "Total Op Info");
	return np_table_cell(times, last, 5)->r;
}

static void a_group_with_both_kinds_is_summed_once(void **state)
{
	struct set *self = *state;
	self->options.full_tables = true;
	put_both_kinds(self);
	run(self, NP_EXPORT_AUTO, false);
	assert_true(total_elapse(self) == 10);
	done(self);
	self->options.compat = true;
	run(self, NP_EXPORT_AUTO, false);
	assert_true(total_elapse(self) == 20);
	done(self);
}

static void large_clusters_have_no_full_tables(void **state)
{
	struct set *self = *state;
	put_rank(self, 0);
	run(self, NP_EXPORT_AUTO, false);
	assert_null(np_export_table(&self->cluster, "ClusterCommunicationTime"));
	assert_non_null(np_export_table(&self->cluster, "communication_groups"));
	done(self);
}

/* ── nothing to tell ── */

static void without_summaries_the_steps_are_told(void **state)
{
	struct set *self = *state;
	char path[TREE_PATH];
	put_rank(self, 0);
	for (int i = 0; i < 2; i++) {
		(void)snprintf(path, sizeof path,
		               "h_0_20260101000000000_ascend_pt/ASCEND_PROFILER_OUTPUT/%s.json",
		               i ? "communication" : "communication_matrix");
		assert_int_equal(remove(tree_path(self->root, path)), 0);
	}
	run(self, NP_EXPORT_TEXT, true);
	assert_non_null(finding(self, "CLUSTER_MODE_EMPTY"));
	assert_int_equal(self->report->exit_code, 3);
	assert_int_equal(np_table_rows(table(self, "ClusterStepTraceTime")), 1);
	assert_int_equal(access(tree_path(self->out, "cluster_analysis_output/"
	                                             "cluster_communication.json"),
	                        F_OK),
	                 -1);
	assert_int_equal(access(tree_path(self->out, "cluster_analysis_output/"
	                                             "communication_group.json"),
	                        F_OK),
	                 0);
	done(self);
}

/* ── files ── */

static int64_t count_rows(const char *path, const char *name)
{
	sqlite3 *db = NULL;
	sqlite3_stmt *query = NULL;
	char sql[128];
	(void)snprintf(sql, sizeof sql, "SELECT count(*) FROM %s", name);
	assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &query, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(query), SQLITE_ROW);
	int64_t n = sqlite3_column_int64(query, 0);
	(void)sqlite3_finalize(query);
	(void)sqlite3_close(db);
	return n;
}

static void text_captures_give_a_database(void **state)
{
	struct set *self = *state;
	char path[2 * TREE_PATH];
	for (int r = 0; r < 4; r++)
		put_rank(self, r);
	run(self, NP_EXPORT_DB, true);
	(void)snprintf(path, sizeof path, "%s/cluster_analysis_output/cluster_analysis.db",
	               self->out);
	assert_int_equal(count_rows(path, "ClusterCommunicationTime"), 4 * 5);
	assert_int_equal(count_rows(path, "ClusterCommunicationBandwidth"), 4 * 10);
	assert_int_equal(count_rows(path, "ClusterCommunicationMatrix"), 4 * 4);
	assert_int_equal(count_rows(path, "ClusterStepTraceTime"), 6);
	done(self);
}

static const struct np_jval *member(const struct np_jval *object, const char *key)
{
	const struct np_jval *found = np_jget(object, key);
	if (!found)
		fail_msg("no key %s", key);
	return found;
}

static void text_files_are_json(void **state)
{
	struct set *self = *state;
	struct np_arena arena;
	const struct np_jval *root = NULL;
	double d;
	for (int r = 0; r < 4; r++)
		put_rank(self, r);
	run(self, NP_EXPORT_TEXT, true);
	np_arena_init(&arena);
	assert_int_equal(np_json_parse_file(&arena,
	                                    tree_path(self->out, "cluster_analysis_output/"
	                                                         "cluster_communication.json"),
	                                    NP_JSON_STRICT, &root, NULL, &self->err),
	                 NP_OK);
	assert_int_equal(root->n, 4);
	char total[64], hash[32];
	hash_of("t", tp_ranks[3], hash);
	(void)snprintf(total, sizeof total, "Total Op Info@%s", hash);
	const struct np_jval *rank =
		member(member(member(member(root, "(2, 3)"), "step7"), total), "3");
	const struct np_jval *time = member(rank, "Communication Time Info");
	assert_true(np_jdouble(member(time, "Elapse Time(ms)"), &d) && d == 10);
	assert_true(np_jdouble(member(time, "Wait Time Ratio"), &d) && d == 0.75);
	const struct np_jval *links = member(rank, "Communication Bandwidth Info");
	assert_int_equal(links->n, 5);
	assert_true(np_jdouble(member(member(links, "HCCS"), "Transit Size(MB)"), &d) && d == 8);
	assert_int_equal(
		np_json_parse_file(&arena,
	                           tree_path(self->out, "cluster_analysis_output/"
	                                                "cluster_communication_matrix.json"),
	                           NP_JSON_STRICT, &root, NULL, &self->err),
		NP_OK);
	assert_int_equal(root->n, 2);
	np_arena_release(&arena);
	done(self);
}

static void memory_may_run_out_anywhere(void **state)
{
	struct set *self = *state;
	unsigned failed = 0;
	bool ok = false;
	self->options.threads = 1;
	self->options.full_tables = true;
	put_rank(self, 0);
	put_rank(self, 1);
	for (uint64_t n = 1; !ok && n < 20000; n += 1 + n / 40) {
		np_mem_fail_after(n);
		enum np_status status = try_run(self, NP_EXPORT_TEXT, true);
		np_mem_fail_after(0);
		ok = status == NP_OK;
		failed += !ok;
		if (!ok)
			assert_int_equal(status, NP_E_NOMEM);
		done(self);
	}
	assert_true(ok && failed > 50);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_open, set_close)
	const struct CMUnitTest tests[] = {
		TEST(stages_follow_from_the_pp_groups),
		TEST(context_parallel_ranks_have_a_position),
		TEST(sizes_that_do_not_fit_are_told),
		TEST(links_to_ranks_without_data_stay),
		TEST(operators_of_msprof_become_kinds),
		TEST(the_fastest_the_middle_and_the_slowest_stand_for_all),
		TEST(a_group_with_both_kinds_is_summed_once),
		TEST(large_clusters_have_no_full_tables),
		TEST(without_summaries_the_steps_are_told),
		TEST(text_captures_give_a_database),
		TEST(text_files_are_json),
		TEST(memory_may_run_out_anywhere),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
