/* Databases of Nsight Systems, and names that are alike: calibrate_npu_gpu. */
#include "cluster_unit.h"

#include <math.h>
#include <sqlite3.h>

#include "cluster/modules.h"
#include "cluster/nsys.h"
#include "cluster/similarity.h"

extern const struct np_recipe np_recipe_calibrate_npu_gpu;

/* ── difflib's figures, from Python ── */

static void names_are_as_alike_as_difflib_says(void **state)
{
	(void)state;
	static const struct {
		const char *a, *b;
		double ratio;
	} pairs[] = {
		{"TransformerLayer_0/SelfAttention", "Qwen2Model/Attention", 0.5},
		{"abcd", "bcde", 0.75},
		{"Qwen2/Layer/Attention", "Qwen2/AscendLayer/Attention", 0.875},
		{"abxcd", "abcd", 0.8888888888888888},
		{"ab/cd/ef", "ef/cd/ab", 0.5},
		{"", "x", 0},
		{"", "", 1},
		{"same", "same", 1},
	};
	for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
		double ratio = np_similarity(np_str_of(pairs[i].a), np_str_of(pairs[i].b), 0);
		assert_true(fabs(ratio - pairs[i].ratio) < 1e-12);
	}
	/* too little in common, in any order: not worth a look */
	assert_true(np_similarity(NP_STR("abcd"), NP_STR("wxyd"), 0.5) == 0);
	/* no common byte, twice the length that is looked at, and one long run */
	char a[2000], b[2000];
	memset(a, 'a', sizeof a);
	memset(b, 'b', sizeof b);
	assert_true(np_similarity((np_str){a, sizeof a}, (np_str){b, sizeof b}, 0) == 0);
	assert_true(np_similarity((np_str){a, sizeof a}, (np_str){a, sizeof a}, 0) == 1);
	/* every second byte in common: many blocks */
	for (size_t i = 0; i < sizeof a; i += 2)
		a[i] = b[i] = 'x';
	assert_true(np_similarity((np_str){a, sizeof a}, (np_str){b, sizeof b}, 0) > 0.4);
}

/* ── a database ── */

static const char schema[] =
	"create table StringIds(id INTEGER PRIMARY KEY, value TEXT);"
	"create table NVTX_EVENTS(start INTEGER, end INTEGER, eventType INTEGER, text TEXT,"
	" textId INTEGER, globalTid INTEGER);"
	"create table CUPTI_ACTIVITY_KIND_RUNTIME(start INTEGER, end INTEGER, globalTid INTEGER,"
	" correlationId INTEGER);"
	"create table CUPTI_ACTIVITY_KIND_KERNEL(start INTEGER, end INTEGER, deviceId INTEGER,"
	" correlationId INTEGER, globalPid INTEGER, shortName INTEGER);"
	"insert into StringIds values (1,'gemm'),(2,'add'),(3,'Attention');";

/* 16777223 is thread 7 of process 1 << 24, 33554439 that of 2 << 24. */
static const char good[] =
	"insert into NVTX_EVENTS values (100,900,59,'Qwen2Model',NULL,16777223),"
	"(110,400,59,NULL,3,16777223),(120,200,59,'aten::mm, seq = 5',NULL,16777223),"
	"(130,140,59,'no module',NULL,16777223),(0,9999,60,'Linear',NULL,16777223),"
	"(0,9999,59,'Linear',NULL,33554439);"
	"insert into CUPTI_ACTIVITY_KIND_RUNTIME values (150,151,16777223,1),"
	"(300,301,16777223,2),(500,501,16777223,3),(950,951,16777223,4),(10,11,33554439,1);"
	"insert into CUPTI_ACTIVITY_KIND_KERNEL values (1000,1100,0,1,16777216,1),"
	"(2000,2010,0,2,16777216,2),(3000,3005,0,3,16777216,2),(4000,4001,0,4,16777216,2),"
	"(5000,5007,1,1,33554432,1);";

static const char *make(const char *more)
{
	static char path[256];
	sqlite3 *db;
	const char *dir = getenv("TMPDIR");
	(void)snprintf(path, sizeof path, "%s/npuprof_nsys_%ld.sqlite", dir ? dir : "/tmp",
	               (long)getpid());
	(void)unlink(path);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, schema, NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, more, NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
	return path;
}

static const char *text_of(const struct np_nsys *data, size_t i)
{
	static char text[256];
	const struct np_nsys_row *row = &data->rows.v[i];
	(void)snprintf(text, sizeof text, "%u|%s|%s|%s|%s|%lld|%llu", row->device,
	               np_intern_get(&data->strings, row->parent).ptr,
	               np_intern_get(&data->strings, row->module).ptr,
	               np_intern_get(&data->strings, row->op).ptr,
	               np_intern_get(&data->strings, row->kernel).ptr, (long long)row->total_ns,
	               (unsigned long long)row->count);
	return text;
}

static void kernels_go_to_the_module_of_their_launch(void **state)
{
	(void)state;
	struct np_nsys data;
	const char *path = make(good);
	assert_int_equal(np_nsys_read(path, &data, NULL), NP_OK);
	static const char *const expected[] = {
		"0|Qwen2Model|Attention|aten::mm|gemm|100|1", /* the op's tail is cut */
		"0|Qwen2Model|Attention||add|10|1",           /* behind the op, in the module */
		"0||Qwen2Model||add|5|1",
		"1||Linear||gemm|7|1", /* the same correlation id, another process */
	};
	assert_int_equal(data.rows.n, 4);
	for (size_t i = 0; i < 4; i++)
		assert_string_equal(text_of(&data, i), expected[i]);
	assert_int_equal(data.kernels, 5);
	assert_int_equal(data.outside, 1);
	assert_int_equal(data.dropped, 0);
	np_nsys_release(&data);
	(void)unlink(path);
}

static void odd_rows_are_counted_and_left_out(void **state)
{
	(void)state;
	struct np_nsys data;
	const char *path =
		make("insert into NVTX_EVENTS values (NULL,900,59,'Linear',NULL,1),"
	             "(900,100,59,'Linear',NULL,1),(-5,100,59,'Linear',NULL,1),"
	             "(1,9223372036854775807,59,'Linear',NULL,1),(1,2,59,x'00ff',NULL,1);"
	             "insert into CUPTI_ACTIVITY_KIND_RUNTIME values ('x',1,1,1),(5,6,1,2);"
	             "insert into CUPTI_ACTIVITY_KIND_KERNEL values "
	             "(0,9223372036854775807,0,2,0,99),(0,9223372036854775807,0,2,0,99),"
	             "(9,1,0,2,0,1),(1,2,-1,2,0,1),(1,2,0,77,0,1),(1,2,4294967295,2,0,1);");
	assert_int_equal(np_nsys_read(path, &data, NULL), NP_OK);
	assert_int_equal(data.rows.n, 1);
	/* the sum of two does not fit: the largest number, not a negative one */
	assert_string_equal(text_of(&data, 0), "0||Linear|||9223372036854775807|2");
	assert_int_equal(data.dropped, 3 + 1 + 4);
	np_nsys_release(&data);
	(void)unlink(path);
}

static void deep_modules_have_an_end(void **state)
{
	(void)state;
	struct np_buf sql = {0};
	struct np_nsys data;
	for (int i = 0; i < 200; i++)
		np_buf_printf(&sql, "insert into NVTX_EVENTS values (%d,%d,59,'Linear%d',NULL,1);",
		              i, 9999 - i, i);
	np_buf_add_cstr(&sql, "insert into CUPTI_ACTIVITY_KIND_RUNTIME values (5000,5001,1,1);"
	                      "insert into CUPTI_ACTIVITY_KIND_KERNEL values (1,2,0,1,0,1);");
	const char *path = make(sql.ptr);
	assert_int_equal(np_nsys_read(path, &data, NULL), NP_OK);
	assert_int_equal(data.rows.n, 1);
	assert_str(np_intern_get(&data.strings, data.rows.v[0].module), "Linear19");
	np_nsys_release(&data);
	np_buf_release(&sql);
	(void)unlink(path);
}

static void an_old_export_has_one_process(void **state)
{
	(void)state;
	struct np_nsys data;
	const char *path =
		make("drop table CUPTI_ACTIVITY_KIND_KERNEL;"
	             "create table CUPTI_ACTIVITY_KIND_KERNEL(start INTEGER, end INTEGER,"
	             " deviceId INTEGER, correlationId INTEGER, demangledName INTEGER);"
	             "insert into NVTX_EVENTS values (1,9,59,'Linear',NULL,16777223);"
	             "insert into CUPTI_ACTIVITY_KIND_RUNTIME values (5,6,16777223,1);"
	             "insert into CUPTI_ACTIVITY_KIND_KERNEL values (7,9,3,1,2);");
	assert_int_equal(np_nsys_read(path, &data, NULL), NP_OK);
	assert_int_equal(data.rows.n, 1);
	assert_string_equal(text_of(&data, 0), "3||Linear||add|2|1");
	np_nsys_release(&data);
	(void)unlink(path);
}

static void other_databases_are_told(void **state)
{
	(void)state;
	struct np_nsys data;
	struct np_err err;
	const char *path = make("drop table NVTX_EVENTS");
	assert_int_equal(np_nsys_read(path, &data, &err), NP_E_FORMAT);
	assert_non_null(strstr(err.msg, "NVTX_EVENTS"));
	np_nsys_release(&data);
	(void)unlink(path);
	assert_int_equal(np_nsys_read(path, &data, &err), NP_E_NOTFOUND);
	np_nsys_release(&data);
}

/* ── NPU beside GPU ── */

static enum np_status compare(const struct np_cluster_options *options, struct np_report *report)
{
	struct unit_rank rank = {0};
	struct np_profile *p = np_profile_new();
	add_in_domain(p, "Module", "Qwen2Model", 100, 900);
	add_in_domain(p, "Module", "AscendAttention", 110, 400);
	add_in_domain(p, "Module", "Attention_0", 450, 500);
	add_op(p, "aten::mm", 120, 200, 1);
	add_op(p, "aten::mul", 460, 470, 2);
	add_kernel(p, "k", 1000, 50, 1, NULL);
	add_kernel(p, "m", 2000, 5, 2, NULL);
	enum np_status status = map_part(&np_part_modules, &rank, p, options, 0, INT64_MAX);
	np_profile_free(p);
	if (status == NP_OK)
		return reduce_ranks(&np_recipe_calibrate_npu_gpu, &rank, 1, options, report);
	np_digest_free(rank.digest);
	return status;
}

static void modules_are_paired_by_path_then_by_likeness(void **state)
{
	(void)state;
	const char *path = make(good);
	struct np_cluster_options options = {.baseline = path};
	struct np_report *report = np_report_new("cluster");
	assert_int_equal(compare(&options, report), NP_OK);
	const struct np_table *table = table_of(report, "CompareProfileReportRank0");
	assert_non_null(table);
	/* AscendAttention: exact without "Ascend", two rows of the GPU; Attention_0: alike */
	assert_str(np_table_cell(table, 0, 0)->s, "Qwen2Model/Attention");
	assert_str(np_table_cell(table, 0, 6)->s, "Qwen2Model/Attention");
	assert_true(np_table_cell(table, 0, 3)->r == 50);
	assert_true(np_table_cell(table, 0, 9)->r == 100);
	assert_true(fabs(np_table_cell(table, 0, 12)->r - 50.0 / 110) < 1e-12);
	assert_true(np_table_cell(table, 0, 13)->r == -60);
	assert_true(np_table_cell(table, 1, 1)->na);
	assert_true(np_table_cell(table, 1, 9)->r == 10);
	assert_str(np_table_cell(table, 2, 0)->s, "Qwen2Model/Attention_0");
	assert_str(np_table_cell(table, 2, 6)->s, "Qwen2Model/Attention");
	/* the GPU's own module comes last */
	assert_int_equal(np_table_rows(table), 5);
	assert_true(np_table_cell(table, 4, 0)->na);
	assert_str(np_table_cell(table, 4, 6)->s, "Qwen2Model");
	np_report_free(report);
	/* 2 * 20 / 42 = 0.952: a higher threshold leaves it alone */
	options.fuzzy_threshold = 0.96;
	report = np_report_new("cluster");
	assert_int_equal(compare(&options, report), NP_OK);
	table = table_of(report, "CompareProfileReportRank0");
	assert_true(np_table_cell(table, 2, 6)->na);
	np_report_free(report);
	(void)unlink(path);
}

static void a_missing_baseline_is_told(void **state)
{
	(void)state;
	struct np_cluster_options options = {.baseline = NULL};
	struct np_report *report = np_report_new("cluster");
	assert_int_equal(compare(&options, report), NP_OK);
	assert_int_equal(findings_of(report, "CLUSTER_MODE_EMPTY"), 1);
	options.baseline = "/nonexistent/x.sqlite";
	assert_int_equal(compare(&options, report), NP_OK);
	assert_int_equal(findings_of(report, "CLUSTER_MODE_EMPTY"), 2);
	assert_int_equal(report->exit_code, 3);
	np_report_free(report);
}

/* What was read with little memory is all of it, or nothing. */
static enum np_status read_once(void *ctx)
{
	struct np_nsys data;
	enum np_status status = np_nsys_read(ctx, &data, NULL);
	if (status == NP_OK)
		assert_int_equal(data.rows.n, 4);
	np_nsys_release(&data);
	return status;
}

static void memory_may_run_out_while_reading(void **state)
{
	(void)state;
	char path[256];
	(void)snprintf(path, sizeof path, "%s", make(good));
	survive_no_memory(read_once, path);
	(void)unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_as_alike_as_difflib_says),
		cmocka_unit_test(kernels_go_to_the_module_of_their_launch),
		cmocka_unit_test(odd_rows_are_counted_and_left_out),
		cmocka_unit_test(deep_modules_have_an_end),
		cmocka_unit_test(an_old_export_has_one_process),
		cmocka_unit_test(other_databases_are_told),
		cmocka_unit_test(modules_are_paired_by_path_then_by_likeness),
		cmocka_unit_test(a_missing_baseline_is_told),
		cmocka_unit_test(memory_may_run_out_while_reading),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
