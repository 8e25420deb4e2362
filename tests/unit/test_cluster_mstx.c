/* Marks and messages of mstx: mstx_sum, mstx2commop. */
#include "cluster_unit.h"

#include <sqlite3.h>

#include "cluster/commop_db.h"
#include "cluster/mstx.h"
#include "temp_tree.h"

extern const struct np_recipe np_recipe_mstx_sum, np_recipe_mstx2commop;

static const struct np_cluster_options plain, compat = {.compat = true};

static void mark(struct np_profile *p, const char *message, np_ns at, int64_t conn)
{
	add_mstx(p, NP_MSTX_MARKER_EX, message, at, at, conn);
}

struct expected {
	const char *name;
	int64_t step, framework, cann, device;
};

static void expect_times(const struct np_profile *p, const struct np_cluster_options *options,
                         const struct expected *expected, size_t n)
{
	struct unit_rank rank = {0};
	assert_int_equal(map_part(&np_part_mstx_times, &rank, p, options, 0, INT64_MAX), NP_OK);
	const struct np_digest_mstx *rows = np_digest_find(rank.digest, &np_digest_mstx_desc);
	assert_int_equal(rows->n, n);
	for (size_t i = 0; i < n; i++) {
		assert_str(np_intern_get(&rank.digest->strings, rows->name[i]), expected[i].name);
		assert_int_equal(rows->step[i], expected[i].step);
		assert_int_equal(rows->framework_ns[i], expected[i].framework);
		assert_int_equal(rows->cann_ns[i], expected[i].cann);
		assert_int_equal(rows->device_ns[i], expected[i].device);
	}
	np_digest_free(rank.digest);
}

/* ── mstx_sum ── */

static struct np_profile *marks(void)
{
	struct np_profile *p = np_profile_new();
	add_step(p, 7, 0, 1000);
	add_step(p, 8, 1001, 2000);
	mark(p, "load_start", 100, 1);
	mark(p, "load_start", 110, 2); /* within the first */
	mark(p, "load_stop", 130, 3);
	mark(p, "load_stop", 160, 4);
	mark(p, "load_stop", 170, 5); /* nothing to stop */
	mark(p, "load_start", 1100, 6);
	mark(p, "load_stop", 1150, 7);
	mark(p, "other", 1160, 8);
	for (int i = 0; i < 7; i++) {
		static const np_ns at[] = {100, 110, 130, 160, 170, 1100, 1150};
		add_op(p, "mstx_mark_op", at[i] - 2 * i, at[i] + 50, i + 1);
		add_task(p, 10 * at[i], 5, 2, i + 1);
	}
	return p;
}

static void the_last_start_is_stopped_first(void **state)
{
	(void)state;
	struct np_profile *p = marks();
	/* the framework's times come 2 ns earlier per mark */
	static const struct expected right[] = {
		{"load_0", 7, 18, 20, 200}, {"load_1", 7, 54, 60, 600}, {"load", 8, 48, 50, 500}};
	static const struct expected official[] = {
		{"load_0", 7, 0, 20, 0}, {"load_1", 7, 0, 60, 0}, {"load", 8, 0, 50, 0}};
	expect_times(p, &plain, right, 3);
	expect_times(p, &compat, official, 3);
	np_profile_free(p);
}

static void marks_of_other_threads_are_no_partners(void **state)
{
	(void)state;
	struct np_profile *p = np_profile_new();
	mark(p, "x_start", 100, NP_NO_I64);
	mark(p, "x_stop", 130, NP_NO_I64);
	p->mstx.tid[1] = 2;
	struct unit_rank rank = {0};
	struct np_report *report = np_report_new("cluster");
	assert_int_equal(map_part(&np_part_mstx_times, &rank, p, &plain, 0, INT64_MAX), NP_OK);
	assert_int_equal(reduce_ranks(&np_recipe_mstx_sum, &rank, 1, &plain, report), NP_OK);
	assert_int_equal(findings_of(report, "CLUSTER_MSTX_UNMATCHED"), 1);
	assert_int_equal(findings_of(report, "CLUSTER_MODE_EMPTY"), 1);
	assert_int_equal(report->exit_code, 3);
	np_report_free(report);
	np_profile_free(p);
}

static void ranges_are_named_by_those_around_them(void **state)
{
	(void)state;
	struct np_profile *p = np_profile_new();
	add_mstx(p, NP_MSTX_START_END, "outer", 100, 200, 1);
	add_mstx(p, NP_MSTX_START_END, "inner", 110, 150, 2);
	add_mstx(p, NP_MSTX_START_END, "elsewhere", 120, 140, 3);
	add_mstx(p, NP_MSTX_START_END, "no stream", 121, 122, NP_NO_I64);
	add_mstx(p, NP_MSTX_START_END, "longer", 190, 210, 4);
	p->mstx.tid[2] = 9;
	add_task(p, 1000, 10, 2, 2);
	add_task(p, 1020, 15, 2, 2);
	static const struct expected right[] = {{"outer", 0, 0, 100, NP_NO_I64},
	                                        {"outer::inner", 0, 0, 40, 35},
	                                        {"elsewhere", 0, 0, 20, NP_NO_I64},
	                                        {"longer", 0, 0, 20, NP_NO_I64}};
	expect_times(p, &plain, right, 4);
	struct expected official[4];
	memcpy(official, right, sizeof official);
	official[2].name = "outer::inner::elsewhere"; /* whatever its thread */
	expect_times(p, &compat, official, 4);
	np_profile_free(p);
}

static void the_step_filter_looks_at_the_start(void **state)
{
	(void)state;
	struct np_profile *p = marks();
	struct unit_rank rank = {0};
	assert_int_equal(map_part(&np_part_mstx_times, &rank, p, &plain, 1001, 2000), NP_OK);
	const struct np_digest_mstx *rows = np_digest_find(rank.digest, &np_digest_mstx_desc);
	assert_int_equal(rows->n, 1);
	assert_str(np_intern_get(&rank.digest->strings, rows->name[0]), "load");
	np_digest_free(rank.digest);
	np_profile_free(p);
}

static void unknown_times_are_not_zero(void **state)
{
	(void)state;
	struct np_profile *p = np_profile_new();
	struct unit_rank ranks[2] = {0};
	struct np_report *report = np_report_new("cluster");
	mark(p, "x_start", 100, 1);
	mark(p, "x_stop", 130, 2);
	for (size_t r = 0; r < 2; r++) {
		assert_int_equal(map_part(&np_part_mstx_times, &ranks[r], p, &plain, 0, INT64_MAX),
		                 NP_OK);
		mark(p, "x_start", 200, 3); /* rank 1 has 60 more */
		mark(p, "x_stop", 260, 4);
	}
	assert_int_equal(reduce_ranks(&np_recipe_mstx_sum, ranks, 2, &plain, report), NP_OK);
	const struct np_table *table = table_of(report, "MSTXMarkStats");
	assert_int_equal(np_table_rows(table), 3);
	assert_true(np_table_cell(table, 0, 2)->na);
	assert_true(np_table_cell(table, 0, 5)->r == 100); /* rank 0: all of its time */
	assert_null(table_of(report, "MSTXAllFrameworkStats"));
	assert_null(table_of(report, "MSTXAllDeviceStats"));
	const struct np_table *all = table_of(report, "MSTXAllCannStats");
	assert_int_equal(np_table_rows(all), 3);   /* x; x_0 and x_1 of the other rank */
	assert_true(np_table_cell(all, 0, 3)->na); /* deviation of one value */
	np_report_free(report);
	np_profile_free(p);
}

static enum np_status sum_once(void *ctx)
{
	struct unit_rank rank = {0};
	struct np_err err;
	struct np_report *report = np_report_new("cluster");
	enum np_status status =
		report ? map_part(&np_part_mstx_times, &rank, ctx, &plain, 0, INT64_MAX)
		       : NP_E_NOMEM;
	if (status == NP_OK)
		status = reduce_ranks(&np_recipe_mstx_sum, &rank, 1, &plain, report);
	else
		np_digest_free(rank.digest);
	if (status == NP_OK)
		status = np_report_ok(report, &err);
	np_report_free(report);
	return status;
}

static void without_memory_there_are_no_sums(void **state)
{
	(void)state;
	struct np_profile *p = marks();
	add_mstx(p, NP_MSTX_START_END, "outer", 1200, 1300, 1);
	add_mstx(p, NP_MSTX_START_END, "inner", 1210, 1250, 2);
	survive_no_memory(sum_once, p);
	np_profile_free(p);
}

static void a_time_between_steps_has_none(void **state)
{
	(void)state;
	struct np_profile *p = np_profile_new();
	struct np_step_times steps;
	add_step(p, 1, 100, 200);
	add_step(p, 2, 200, 300);
	add_step(p, 4, 400, 500);
	assert_true(np_step_times_make(p, &steps));
	static const struct {
		np_ns from, to;
		int64_t step;
	} cases[] = {{99, 99, NP_NO_I64}, {100, 100, 1},         {200, 200, 1},
	             {200, 201, 2},       {150, 250, NP_NO_I64}, {350, 350, NP_NO_I64},
	             {400, 500, 4},       {400, 501, NP_NO_I64}};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_int_equal(np_step_of(&steps, cases[i].from, cases[i].to), cases[i].step);
	np_step_times_release(&steps);
	np_profile_free(p);
}

/* ── mstx2commop ── */

#define JSON(op, stream)                                                 \
	"{\"streamId\": \"" stream                                       \
	"\", \"count\": \"64\", \"dataType\": \"fp16\", \"groupName\": " \
	"\"g\", \"opName\": \"" op "\"}"

static struct np_profile *messages(void)
{
	struct np_profile *p = np_profile_new();
	add_mstx(p, NP_MSTX_START_END, JSON("Hcclop_allReduce", "9"), 10, 11, 1);
	add_mstx(p, NP_MSTX_START_END, JSON("Hcclop_send", "9"), 20, 21, 2);
	add_mstx(p, NP_MSTX_START_END, JSON("Hcclop_allReduce", "9"), 30, 31, 3);
	add_mstx(p, NP_MSTX_START_END, "comm:HcclAllGather,g,fp16,128", 40, 41, 4);
	add_mstx(p, NP_MSTX_START_END,
	         "{\\\"streamId\\\": 9, \\\"count\\\": 7, \\\"dataType\\\": \\\"int8\\\", "
	         "\\\"groupName\\\": \\\"g\\\", \\\"opName\\\": \\\"x\\\"}",
	         50, 51, 5);
	/* none of these describes a collective */
	add_mstx(p, NP_MSTX_START_END, "{\"streamId\": \"9\", \"opName\": \"x\"}", 60, 61, 6);
	add_mstx(p, NP_MSTX_START_END, "{\"streamId\": ", 60, 61, 6);
	add_mstx(p, NP_MSTX_START_END, "comm:HcclAllGather,g,fp16", 60, 61, 6);
	add_mstx(p, NP_MSTX_START_END, "comm:Hccl,g,fp16,1", 60, 61, 6);
	add_mstx(p, NP_MSTX_START_END, "forward", 60, 61, 6);
	/* its task is not there */
	add_mstx(p, NP_MSTX_START_END, JSON("Hcclop_allReduce", "5"), 70, 71, 7);
	for (int i = 1; i <= 6; i++)
		add_task(p, 1000 * i, 50, 9, i);
	add_task(p, 1020, 60, 9, 1);
	return p;
}

static const struct np_digest_commop *map_commop(struct unit_rank *rank, const struct np_profile *p,
                                                 const struct np_cluster_options *options)
{
	assert_int_equal(map_part(&np_part_commop, rank, p, options, 0, INT64_MAX), NP_OK);
	return np_digest_find(rank->digest, &np_digest_commop_desc);
}

static void each_message_is_one_collective(void **state)
{
	(void)state;
	struct np_profile *p = messages();
	struct unit_rank rank = {0};
	const struct np_digest_commop *rows = map_commop(&rank, p, &plain);
	char names[5][64];
	static const char *const formats[] = {"Hcclop_allReduce__%03u_0_1", "Hcclop_send__%03u_0_1",
	                                      "Hcclop_allReduce__%03u_1_1",
	                                      "hcom_AllGather__%03u_0_1", "x__%03u_0_1"};
	static const int64_t counts[] = {64, 64, 64, 128, 7};
	assert_int_equal(rows->n, 5);
	for (size_t i = 0; i < 5; i++) {
		char *at = strstr(formats[i], "%03u");
		(void)snprintf(names[i], sizeof names[i], "%.*s%03u%s", (int)(at - formats[i]),
		               formats[i], (unsigned)(np_group_hash(NP_STR("g")) % 1000), at + 4);
		assert_str(np_intern_get(&rank.digest->strings, rows->name[i]), names[i]);
		assert_int_equal(rows->count[i], counts[i]);
		assert_int_equal(rows->start_ns[i], 1000 * (i + 1));
		assert_int_equal(rows->end_ns[i], i == 0 ? 1080 : 1000 * (i + 1) + 50);
	}
	const struct np_digest_commop_facts *facts =
		np_digest_find(rank.digest, &np_digest_commop_facts_desc);
	assert_int_equal(facts->messages[0], 6);
	assert_int_equal(facts->lone[0], 1);
	np_digest_free(rank.digest);
	/* official: four messages of stream 9 meet its seven tasks each, that of stream 5 none,
	 * and the form with commas never gets through */
	rows = map_commop(&rank, p, &compat);
	assert_int_equal(rows->n, 4 * 7);
	np_digest_free(rank.digest);
	np_profile_free(p);
}

static size_t add_comm_op(struct np_profile *p)
{
	size_t i = np_profile_add(p, comm_ops);
	struct np_comm_ops *c = &p->comm_ops;
	c->name[i] = c->type[i] = c->group[i] = id_of(p, "hcom_send__1_0_1");
	c->algorithm[i] = c->dtype[i] = NP_ID_NONE;
	c->count[i] = c->start_ns[i] = c->dur_ns[i] = c->conn[i] = 1;
	c->device[i] = c->step[i] = 0;
	return i;
}

static void recorded_collectives_are_left_alone(void **state)
{
	(void)state;
	struct np_profile *p = messages();
	struct unit_rank rank = {0};
	struct np_report *report = np_report_new("cluster");
	assert_int_equal(add_comm_op(p), 0);
	assert_int_equal(map_commop(&rank, p, &plain)->n, 0);
	assert_int_equal(reduce_ranks(&np_recipe_mstx2commop, &rank, 1, &plain, report), NP_OK);
	assert_int_equal(findings_of(report, "CLUSTER_MODE_EMPTY"), 1);
	assert_non_null(strstr(report->findings.v[0]->title, "recorded"));
	np_report_free(report);
	np_profile_free(p);
}

static enum np_status commop_once(void *ctx)
{
	struct unit_rank rank = {0};
	struct np_err err;
	struct np_report *report = np_report_new("cluster");
	enum np_status status =
		report ? map_part(&np_part_commop, &rank, ctx, &plain, 0, INT64_MAX) : NP_E_NOMEM;
	if (status == NP_OK)
		status = reduce_ranks(&np_recipe_mstx2commop, &rank, 1, &plain, report);
	else
		np_digest_free(rank.digest);
	if (status == NP_OK)
		status = np_report_ok(report, &err);
	np_report_free(report);
	return status;
}

static void without_memory_there_are_no_collectives(void **state)
{
	(void)state;
	struct np_profile *p = messages();
	survive_no_memory(commop_once, p);
	np_profile_free(p);
}

/* ── the copy ── */

static void run_sql(const char *path, const char *sql)
{
	sqlite3 *db;
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
}

static const char *ask(const char *path, const char *sql)
{
	static char answer[256];
	sqlite3 *db;
	sqlite3_stmt *select;
	assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &select, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(select), SQLITE_ROW);
	(void)snprintf(answer, sizeof answer, "%s", (const char *)sqlite3_column_text(select, 0));
	sqlite3_finalize(select);
	sqlite3_close(db);
	return answer;
}

#define STRINGS "CREATE TABLE STRING_IDS (id INTEGER PRIMARY KEY, value TEXT);"

static enum np_status copy(const char *from, const char *to, const struct unit_rank *rank)
{
	struct np_err err;
	return np_commop_db_write(from, to, &rank->digest->strings,
	                          np_digest_find(rank->digest, &np_digest_commop_desc), &err);
}

static void the_copy_has_the_collectives(void **state)
{
	(void)state;
	char root[TREE_PATH], from[TREE_PATH * 2], to[TREE_PATH * 2];
	struct np_profile *p = messages();
	struct unit_rank rank = {0};
	(void)tree_new(root);
	(void)snprintf(from, sizeof from, "%s/in.db", root);
	(void)snprintf(to, sizeof to, "%s/out.db", root);
	run_sql(from, STRINGS "INSERT INTO STRING_IDS VALUES (3, 'g'), (8, 'Hcclop_send_');"
	                      "CREATE TABLE ENUM_HCCL_DATA_TYPE (id INTEGER, name TEXT);"
	                      "INSERT INTO ENUM_HCCL_DATA_TYPE VALUES (4, 'FP16');");
	(void)map_commop(&rank, p, &plain);
	assert_int_equal(copy(from, to, &rank), NP_OK);
	assert_string_equal(ask(to, "SELECT count(*) || ' ' || count(DISTINCT opName) || ' ' || "
	                            "min(groupName) || ' ' || max(groupName) || ' ' || "
	                            "sum(dataType = 4) || ' ' || sum(dataType IS NULL) || ' ' || "
	                            "min(typeof(count)) FROM COMMUNICATION_OP"),
	                    "5 5 3 3 4 1 text");
	assert_string_equal(ask(to, "SELECT group_concat(s.value) FROM (SELECT s.value FROM "
	                            "COMMUNICATION_OP c JOIN STRING_IDS s ON s.id = c.opType "
	                            "ORDER BY opId) s"),
	                    "Hcclop_allReduce_,Hcclop_send_,Hcclop_allReduce_,hcom_AllGather_,x_");
	/* new ids follow the greatest: 3 types and 5 names; the old ones stay */
	assert_string_equal(ask(to, "SELECT count(*) || ' ' || max(id) FROM STRING_IDS"), "10 16");
	assert_string_equal(ask(from, "SELECT count(*) FROM sqlite_master"), "2");
	np_digest_free(rank.digest);
	np_profile_free(p);
	tree_remove(root);
}

static void databases_that_cannot_take_them_are_not_copied(void **state)
{
	(void)state;
	static const char *const schemas[] = {
		"CREATE TABLE other (x);",
		STRINGS "INSERT INTO STRING_IDS VALUES (9223372036854775800, 'far');"};
	struct np_profile *p = messages();
	struct unit_rank rank = {0};
	(void)map_commop(&rank, p, &plain);
	for (size_t i = 0; i < 2; i++) {
		char root[TREE_PATH], from[TREE_PATH * 2], to[TREE_PATH * 2];
		(void)tree_new(root);
		(void)snprintf(from, sizeof from, "%s/in.db", root);
		(void)snprintf(to, sizeof to, "%s/out.db", root);
		run_sql(from, schemas[i]);
		assert_int_equal(copy(from, to, &rank), NP_E_FORMAT);
		assert_int_not_equal(access(to, F_OK), 0);
		assert_int_equal(copy(to, from, &rank), NP_E_NOTFOUND); /* no input at all */
		tree_remove(root);
	}
	np_digest_free(rank.digest);
	np_profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_last_start_is_stopped_first),
		cmocka_unit_test(marks_of_other_threads_are_no_partners),
		cmocka_unit_test(ranges_are_named_by_those_around_them),
		cmocka_unit_test(the_step_filter_looks_at_the_start),
		cmocka_unit_test(unknown_times_are_not_zero),
		cmocka_unit_test(without_memory_there_are_no_sums),
		cmocka_unit_test(a_time_between_steps_has_none),
		cmocka_unit_test(each_message_is_one_collective),
		cmocka_unit_test(recorded_collectives_are_left_alone),
		cmocka_unit_test(without_memory_there_are_no_collectives),
		cmocka_unit_test(the_copy_has_the_collectives),
		cmocka_unit_test(databases_that_cannot_take_them_are_not_copied),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
