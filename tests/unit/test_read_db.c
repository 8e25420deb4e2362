#include <math.h>

#include "io/input.h"
#include "profile/interval.h"
#include "read_db.h"

static void a_kernel_is_a_task_with_its_description(void **state)
{
	(void)state;
	struct np_profile *p = load_sql(SMALL, NP_KERNELS | NP_KERNEL_SHAPES);
	const struct np_kernels *k = &p->kernels;
	assert_int_equal(k->n, 3);
	assert_str(TEXT(p, k->name[0]), "MatMul1");
	assert_str(TEXT(p, k->type[0]), "MatMulV2");
	assert_str(TEXT(p, k->core[0]), "AI_CORE");
	assert_int_equal(k->op_state[0], NP_ID_NONE);
	assert_int_equal(k->device[0], 3);
	assert_int_equal(k->stream[0], 2);
	assert_int_equal(k->task[0], 11);
	assert_int_equal(k->context[0], NP_NO_U32);
	assert_int_equal(k->model[0], NP_NO_U32);
	assert_int_equal(k->start_ns[0], 1000);
	assert_int_equal(k->dur_ns[0], 400);
	assert_int_equal(k->wait_ns[0], 0);
	assert_int_equal(k->wait_ns[1], 100);
	assert_int_equal(k->block_num[0], 24);
	assert_int_equal(k->mix_block_num[0], 48);
	assert_int_equal(k->conn[0], 70);
	assert_int_equal(k->step[0], NP_NO_U32);
	assert_int_equal(k->context[1], 5);
	assert_int_equal(k->model[1], 8);
	const struct np_kernel_shapes *s = &p->kernel_shapes;
	assert_int_equal(s->n, 3);
	assert_str(TEXT(p, s->in_shapes[0]), "\"2,3;3,4\"");
	assert_str(TEXT(p, s->in_dtypes[0]), "FLOAT;FLOAT");
	assert_str(TEXT(p, s->in_formats[0]), "ND;ND");
	assert_str(TEXT(p, s->out_shapes[0]), "\"2,4\"");
	assert_int_equal(s->in_shapes[1], NP_ID_NONE);
	assert_int_equal(s->out_formats[2], NP_ID_NONE);
	assert_int_equal(p->loaded, NP_KERNELS | NP_KERNEL_SHAPES);
	assert_int_equal(p->diags.n, 0);
	assert_int_equal(p->tasks.n + p->comm_ops.n + p->comm_tasks.n + p->host_ops.n, 0);
	np_profile_free(p);
}

static void a_collective_is_one_more_kernel_row(void **state)
{
	(void)state;
	struct np_profile *p = load_sql(SMALL, NP_KERNELS);
	const struct np_kernels *k = &p->kernels;
	assert_int_equal(k->n, 3);
	assert_int_equal(p->kernel_shapes.n, 0);
	assert_str(TEXT(p, k->core[2]), "COMMUNICATION");
	assert_str(TEXT(p, k->name[2]), "hcom_allReduce__865_0_1");
	assert_str(TEXT(p, k->type[2]), "hcom_allReduce_");
	assert_int_equal(k->block_num[2], 0);
	assert_int_equal(k->mix_block_num[2], NP_NO_U32);
	assert_int_equal(k->device[2], 3);
	assert_int_equal(k->stream[2], NP_NO_U32);
	assert_int_equal(k->start_ns[2], 2000);
	assert_int_equal(k->dur_ns[2], 900);
	assert_int_equal(k->wait_ns[2], 400);
	assert_int_equal(k->conn[2], 80);
	np_profile_free(p);
}

static void the_newest_block_columns_are_told_from_the_old_one(void **state)
{
	(void)state;
	struct np_profile *p = load_sql(
		STRINGS TASK_TABLE
		"CREATE TABLE COMPUTE_TASK_INFO(name INTEGER,globalTaskId INTEGER PRIMARY KEY,"
		"blockNum INTEGER,mixBlockNum INTEGER,taskType INTEGER,opType INTEGER,"
		"opState INTEGER,hf32Eligible INTEGER,gridDim INTEGER,blockDim INTEGER);"
		"INSERT INTO COMPUTE_TASK_INFO VALUES(1,0,20,40,5,3,22,23,0,99);"
		"INSERT INTO TASK VALUES(10,20,0,1,0,9,7,4294967295,2,11,4294967295);",
		NP_KERNELS | NP_KERNEL_SHAPES);
	assert_int_equal(p->kernels.block_num[0], 20);
	assert_int_equal(p->kernels.mix_block_num[0], 40);
	assert_str(TEXT(p, p->kernels.op_state[0]), "dynamic");
	assert_str(TEXT(p, p->kernels.hf32[0]), "NO");
	assert_int_equal(p->kernel_shapes.in_shapes[0], NP_ID_NONE);
	np_profile_free(p);
}

static void tasks_have_the_names_of_the_timeline(void **state)
{
	(void)state;
	struct np_profile *p = load_sql(SMALL, NP_TASKS);
	const struct np_tasks *t = &p->tasks;
	assert_int_equal(t->n, 5);
	assert_int_equal(p->kernels.n, 0);
	static const char *const names[] = {"MatMul1", "Cast2", "SDMA", "Notify Wait",
	                                    "EVENT_WAIT"};
	for (size_t i = 0; i < 5; i++) {
		assert_str(TEXT(p, t->name[i]), names[i]);
		assert_int_equal(t->compute[i], i < 2);
		assert_int_equal(t->task[i], 11 + i);
	}
	assert_str(TEXT(p, t->type[0]), "KERNEL_AICORE");
	assert_int_equal(t->conn[3], 80);
	assert_int_equal(t->dur_ns[4], 0);
	assert_int_equal(p->loaded, NP_TASKS);
	np_profile_free(p);
}

static void collectives_and_their_tasks_are_joined(void **state)
{
	(void)state;
	struct np_profile *p = load_sql(SMALL, NP_COMM);
	const struct np_comm_ops *o = &p->comm_ops;
	assert_int_equal(o->n, 1);
	assert_str(TEXT(p, o->name[0]), "hcom_allReduce__865_0_1");
	assert_str(TEXT(p, o->type[0]), "hcom_allReduce__865_0_1");
	assert_str(TEXT(p, o->group[0]), "1197");
	assert_str(TEXT(p, o->algorithm[0]), "MESH-RING");
	assert_str(TEXT(p, o->dtype[0]), "FP32");
	assert_int_equal(o->count[0], 4097);
	assert_int_equal(o->device[0], 3);
	assert_int_equal(o->start_ns[0], 2000);
	assert_int_equal(o->dur_ns[0], 900);
	assert_int_equal(o->conn[0], 80);
	const struct np_comm_tasks *c = &p->comm_tasks;
	assert_int_equal(c->n, 2);
	assert_int_equal(c->op[0], 0);
	assert_str(TEXT(p, c->name[0]), "Memcpy");
	assert_str(TEXT(p, c->transport[0]), "SDMA");
	assert_str(TEXT(p, c->link[0]), "HCCS");
	assert_int_equal(c->size_bytes[0], 2064384);
	assert_true(c->notify[0] == UINT64_MAX);
	assert_int_equal(c->dst_rank[0], 1);
	assert_int_equal(c->plane[1], 1);
	assert_int_equal(c->stream[1], 5);
	assert_int_equal(c->task[1], 14);
	assert_int_equal(c->start_ns[1], 2100);
	assert_int_equal(c->dur_ns[1], 800);
	assert_int_equal(c->src_rank[1], NP_NO_U32);
	assert_int_equal(c->transport[1], NP_ID_NONE);
	assert_int_equal(c->link[1], NP_ID_NONE);
	assert_int_equal(c->size_bytes[1], NP_NO_I64);
	assert_true(c->notify[1] == 77);
	np_profile_free(p);
}

static void collectives_alone_take_no_look_at_the_tasks(void **state)
{
	(void)state;
	/* no task could be read: a broken TASK would be told */
	struct np_profile *p = load_sql(
		SMALL "DROP TABLE TASK;CREATE TABLE RANK_DEVICE_MAP(rankId INTEGER,deviceId "
		      "INTEGER);INSERT INTO RANK_DEVICE_MAP VALUES(4,6);",
		NP_COMM_OPS);
	assert_int_equal(p->comm_ops.n, 1);
	assert_int_equal(p->comm_tasks.n, 0);
	assert_int_equal(p->comm_ops.device[0], 6);
	assert_str(TEXT(p, p->comm_ops.dtype[0]), "FP32");
	assert_int_equal(p->loaded, NP_COMM_OPS);
	np_profile_free(p);
	p = load_sql(SMALL "CREATE TABLE RANK_DEVICE_MAP(rankId INTEGER,deviceId INTEGER);"
	                   "INSERT INTO RANK_DEVICE_MAP VALUES(4,6),(5,7);",
	             NP_COMM_OPS);
	assert_int_equal(p->comm_ops.device[0], NP_NO_U32);
	np_profile_free(p);
}

static void not_available_may_be_told_from_null(void **state)
{
	(void)state;
	struct np_profile *p = load_sql(
		SMALL "UPDATE COMPUTE_TASK_INFO SET opType=0, taskType=NULL, inputShapes=0 "
		      "WHERE globalTaskId=(SELECT min(globalTaskId) FROM COMPUTE_TASK_INFO);"
		      "UPDATE COMMUNICATION_OP SET opType=0;",
		NP_KERNELS | NP_KERNEL_SHAPES | NP_COMM | NP_KEEP_NA);
	assert_str(TEXT(p, p->kernels.type[0]), "N/A");
	assert_int_equal(p->kernels.core[0], NP_ID_NONE);
	assert_str(TEXT(p, p->kernel_shapes.in_shapes[0]), "N/A");
	assert_str(TEXT(p, p->comm_ops.type[0]), "N/A");
	assert_str(TEXT(p, p->kernels.type[2]), "hcom_allReduce_");
	np_profile_free(p);
}

static void the_type_of_a_collective_follows_from_its_name(void **state)
{
	(void)state;
	struct np_profile *p = load_sql(SMALL "UPDATE COMMUNICATION_OP SET opType=0;", NP_COMM);
	assert_str(TEXT(p, p->comm_ops.type[0]), "hcom_allReduce_");
	np_profile_free(p);
}

static void tasks_that_unfold_collectives_have_a_table(void **state)
{
	(void)state;
	struct np_profile *p =
		load_sql(SMALL "CREATE TABLE COMMUNICATION_SCHEDULE_TASK_INFO(name INTEGER,"
	                       "globalTaskId INTEGER PRIMARY KEY,taskType INTEGER,opType INTEGER);"
	                       "INSERT INTO COMMUNICATION_SCHEDULE_TASK_INFO VALUES(15,901,5,3),"
	                       "(16,900,0,3),(15,902,5,3);"
	                       "INSERT INTO TASK VALUES(9000,9100,3,95,901,9,7,4294967295,2,51,6),"
	                       "(8000,8050,3,4294967295,900,9,7,1,2,52,4294967295);",
	                 NP_COMM_SCHEDULE);
	const struct np_comm_schedule *s = &p->comm_schedule;
	assert_int_equal(s->n, 2);
	assert_int_equal(diag(p, "ORPHAN_TASK_INFO")->count, 1);
	assert_true(s->start_ns[0] == 8000 && s->dur_ns[0] == 50 && s->conn[0] == NP_NO_I64);
	assert_true(s->core[0] == NP_ID_NONE && s->model[0] == NP_NO_U32 && s->context[0] == 1);
	assert_str(TEXT(p, s->name[0]), "1197");
	assert_str(TEXT(p, s->name[1]), "hcom_allReduce__865_0_1");
	assert_str(TEXT(p, s->core[1]), "AI_CORE");
	assert_str(TEXT(p, s->type[1]), "MatMulV2");
	assert_true(s->conn[1] == 95 && s->device[1] == 3 && s->stream[1] == 2);
	assert_true(s->task[1] == 51 && s->model[1] == 6 && s->context[1] == NP_NO_U32);
	assert_int_equal(p->loaded, NP_COMM_SCHEDULE);
	assert_int_equal(p->kernels.n, 0);
	np_profile_free(p);
}

static void the_device_of_a_collective_is_found_in_three_ways(void **state)
{
	(void)state;
	struct np_profile *p = load_sql(
		STRINGS TASK_TABLE OP_TABLE COMM_TASK_TABLE
		"INSERT INTO TASK VALUES(10,20,0,1,0,9,20,0,1,1,0),(30,40,1,2,1,9,20,0,1,2,0),"
		"(50,60,0,3,2,9,20,0,1,3,0),(50,60,1,3,3,9,20,0,1,4,0),(70,80,1,9,4,9,20,0,1,5,0);"
		"INSERT INTO COMMUNICATION_OP VALUES(15,10,20,1,16,1,0,0,4,17,1,15),"
		"(15,30,40,2,16,2,0,0,4,17,1,15),(15,50,60,3,16,3,0,0,4,17,1,15),"
		"(15,70,80,77,16,4,0,0,4,17,1,15),(15,90,95,78,16,5,0,0,4,17,1,15);"
		"INSERT INTO COMMUNICATION_TASK_INFO VALUES"
		"(15,4,18,0,16,0,0,0,0,0,0,0,0,4);",
		NP_COMM | NP_KERNELS);
	const uint32_t devices[] = {0, 1, NP_NO_U32, 1, NP_NO_U32};
	assert_int_equal(p->comm_ops.n, 5);
	for (size_t i = 0; i < 5; i++)
		assert_int_equal(p->comm_ops.device[i], devices[i]);
	np_profile_free(p);
	p = load_sql(STRINGS TASK_TABLE OP_TABLE
	             "INSERT INTO TASK VALUES(10,20,6,1,0,9,20,0,1,1,0);"
	             "INSERT INTO COMMUNICATION_OP VALUES(15,90,95,78,16,5,0,0,4,17,1,15);",
	             NP_COMM);
	assert_int_equal(p->comm_ops.device[0], 6);
	np_profile_free(p);
	p = load_sql(STRINGS OP_TABLE
	             "ALTER TABLE COMMUNICATION_OP ADD COLUMN deviceId INTEGER;"
	             "INSERT INTO COMMUNICATION_OP VALUES(15,90,95,78,16,5,0,0,4,17,1,15,2);",
	             NP_KERNELS);
	assert_int_equal(p->kernels.device[0], 2);
	assert_int_equal(p->loaded, NP_KERNELS);
	np_profile_free(p);
}

#define STEP_TABLES                                                         \
	"CREATE TABLE STEP_TIME(id INTEGER,startNs INTEGER,endNs INTEGER);" \
	"INSERT INTO STEP_TIME VALUES(8,2000,3000),(7,1000,2000);"

static void steps_reach_from_their_first_to_their_last_launched_task(void **state)
{
	(void)state;
	struct np_profile *p = load_sql(
		STRINGS TASK_TABLE COMPUTE_TABLE OP_TABLE STEP_TABLES API_TABLE
		/* 1, 2 in step 7, 3 in step 8; 4 crosses its end; 5 is no node call */
		"INSERT INTO CANN_API VALUES(1100,1150,10000,1,1,1),(1900,2000,10000,1,2,1),"
		"(2100,2150,10000,1,3,1),(2950,3001,10000,1,4,1),(2200,2250,20000,1,5,1);"
		"INSERT INTO TASK "
		"VALUES(1050,1060,0,99,0,9,7,0,1,1,0),(1200,1300,0,1,1,9,7,0,1,2,0),"
		"(2400,2600,0,2,2,9,7,0,1,3,0),(2500,2550,0,3,3,9,7,0,1,4,0),"
		"(2600,2700,0,3,4,9,7,0,1,5,0),(3000,3100,0,4,5,9,7,0,1,6,0);"
		"INSERT INTO COMPUTE_TASK_INFO SELECT 1,globalTaskId,1,0,5,3,0,0,0,0,0,0,0 "
		"FROM TASK;"
		"INSERT INTO COMMUNICATION_OP VALUES(15,2590,2700,1,16,1,0,0,4,17,1,15);",
		NP_STEPS | NP_KERNELS | NP_COMM);
	const struct np_steps *s = &p->steps;
	assert_int_equal(s->n, 2);
	assert_int_equal(s->id[0], 7);
	assert_int_equal(s->host_start_ns[0], 1000);
	assert_int_equal(s->host_end_ns[0], 2000);
	assert_int_equal(s->id[1], 8);
	/* window of 7: 1200…2600, of 8: 2500…3000: the first one wins, ends are outside */
	const uint32_t steps[] = {NP_NO_U32, 0, 0, 0, 0, 1, NP_NO_U32};
	assert_int_equal(p->kernels.n, 7);
	for (size_t i = 0; i < 7; i++)
		assert_int_equal(p->kernels.step[i], steps[i]);
	assert_int_equal(p->comm_ops.step[0], 0);
	assert_int_equal(s->start_ns[0], 1200);
	assert_int_equal(s->end_ns[0], 2700);
	assert_int_equal(s->kernels[0], 4);
	assert_int_equal(s->start_ns[1], 2600);
	np_profile_free(p);
}

static void without_launches_a_step_reaches_to_the_next_one(void **state)
{
	(void)state;
	struct np_profile *p = load_sql(
		STRINGS TASK_TABLE COMPUTE_TABLE STEP_TABLES
		"INSERT INTO TASK VALUES(900,910,0,1,0,9,7,0,1,1,0),(1000,1010,0,2,1,9,7,0,1,2,0),"
		"(1999,2500,0,2,2,9,7,0,1,3,0),(2000,2600,0,3,3,9,7,0,1,4,0),"
		"(9000,9100,0,3,4,9,7,0,1,5,0);"
		"INSERT INTO COMPUTE_TASK_INFO VALUES(1,0,1,0,5,3,0,0,0,0,0,0,0),"
		"(1,1,1,0,5,3,0,0,0,0,0,0,0),(1,2,1,0,5,3,0,0,0,0,0,0,0),"
		"(1,3,1,0,5,3,0,0,0,0,0,0,0),(1,4,1,0,5,3,0,0,0,0,0,0,0);",
		NP_STEPS | NP_KERNELS);
	const uint32_t steps[] = {NP_NO_U32, 0, 0, 1, 1};
	for (size_t i = 0; i < 5; i++)
		assert_int_equal(p->kernels.step[i], steps[i]);
	np_profile_free(p);
}

static void a_step_without_launches_keeps_its_host_range(void **state)
{
	(void)state;
	struct np_profile *p =
		load_sql(STRINGS TASK_TABLE COMPUTE_TABLE STEP_TABLES API_TABLE
	                 "INSERT INTO CANN_API VALUES(2100,2150,10000,1,3,1);"
	                 "INSERT INTO TASK "
	                 "VALUES(1500,1510,0,1,0,9,7,0,1,1,0),(2500,2510,0,3,1,9,7,0,1,2,0);"
	                 "INSERT INTO COMPUTE_TASK_INFO VALUES(1,0,1,0,5,3,0,0,0,0,0,0,0),"
	                 "(1,1,1,0,5,3,0,0,0,0,0,0,0);",
	                 NP_STEPS | NP_KERNELS);
	assert_int_equal(p->kernels.step[0], 0);
	assert_int_equal(p->kernels.step[1], 1);
	np_profile_free(p);
}

#define PMU                                                                                 \
	"CREATE TABLE TASK_PMU_INFO(globalTaskId INTEGER,name INTEGER,value NUMERIC);"      \
	"INSERT INTO TASK_PMU_INFO VALUES(0,30,14364.5),(0,31,0.25),(0,32,500),(0,33,1.5)," \
	"(0,34,8),(777,31,9),(1,31,NULL);"

static void metrics_have_the_names_and_units_of_kernel_details(void **state)
{
	(void)state;
	struct np_profile *p = load_sql(SMALL PMU, NP_KERNELS | NP_KERNEL_METRICS);
	static const struct {
		const char *name;
		double value;
	} metrics[] = {{"aicore_time(us)", 14.3645},
	               {"aic_mac_ratio", 0.25},
	               {"aiv_vec_time(us)", 0.5},
	               {"aic_l2_read_bw(GB/s)", 1.5},
	               {"read_main_memory_datas(KB)", 8}};
	assert_int_equal(p->metrics.n, 5);
	for (size_t i = 0; i < 5; i++) {
		const struct np_metric *metric = np_profile_metric(p, metrics[i].name);
		assert_non_null(metric);
		assert_true(fabs(metric->v[0] - metrics[i].value) < 1e-12);
		assert_true(isnan(metric->v[1]));
		assert_true(isnan(metric->v[2]));
	}
	assert_int_equal(p->loaded, NP_KERNELS | NP_KERNEL_METRICS);
	np_profile_free(p);
}

static void a_second_database_is_appended_to_the_first(void **state)
{
	(void)state;
	char first[4096];
	(void)snprintf(first, sizeof first, "%s", temp_db(SMALL PMU));
	const char *second = temp_db(SMALL);
	struct np_profile *p = load_path(first, NP_LOAD_ALL);
	struct np_read read = {.profile = p, .what = NP_LOAD_ALL, .threads = 1};
	assert_int_equal(np_read_profiler_db(&read, second, NULL), NP_OK);
	finish(p);
	assert_int_equal(p->kernels.n, 6);
	assert_int_equal(p->kernel_shapes.n, 6);
	assert_int_equal(p->comm_ops.n, 2);
	assert_int_equal(p->comm_tasks.n, 4);
	assert_int_equal(p->tasks.n, 10);
	/* ordered by start: the twins follow each other, the first file's in front */
	const struct np_metric *metric = np_profile_metric(p, "aic_mac_ratio");
	assert_true(metric->v[0] == 0.25);
	for (size_t i = 1; i < 6; i++)
		assert_true(isnan(metric->v[i]));
	assert_str(TEXT(p, p->kernel_shapes.in_shapes[1]), "\"2,3;3,4\"");
	assert_int_equal(p->comm_tasks.op[0], 0);
	assert_int_equal(p->comm_tasks.op[1], 1);
	np_profile_free(p);
	temp_remove(first);
	temp_remove(second);
}

static void rows_without_sense_are_dropped_and_counted(void **state)
{
	(void)state;
	struct np_profile *p = load_sql(
		SMALL PMU
		"UPDATE TASK SET endNs = 999 WHERE globalTaskId = 0;" /* ends before it starts */
		"UPDATE TASK SET startNs = NULL WHERE globalTaskId = 2;"
		"UPDATE TASK SET startNs = 9223372036854775807 WHERE globalTaskId = 4;"
		"UPDATE COMPUTE_TASK_INFO SET name = 4711 WHERE globalTaskId = 1;"
		"INSERT INTO COMPUTE_TASK_INFO VALUES(1,123456,1,0,5,3,0,0,0,0,0,0,0);"
		"INSERT INTO TASK SELECT * FROM TASK WHERE globalTaskId = 1;",
		NP_KERNELS | NP_KERNEL_SHAPES | NP_KERNEL_METRICS | NP_COMM);
	assert_int_equal(p->kernels.n, 2);
	assert_int_equal(p->kernel_shapes.n, 2);
	assert_int_equal(p->kernels.name[0], NP_ID_NONE);
	assert_int_equal(p->kernels.task[0], 12);
	assert_str(TEXT(p, p->kernels.type[0]), "Cast");
	assert_int_equal(p->kernel_shapes.in_shapes[0], NP_ID_NONE);
	assert_true(isnan(np_profile_metric(p, "aic_mac_ratio")->v[0]));
	assert_int_equal(p->comm_tasks.n, 1);
	assert_int_equal(diag(p, "NEGATIVE_DURATION")->count, 1);
	assert_int_equal(diag(p, "BAD_TIME")->count, 2);
	assert_int_equal(diag(p, "DANGLING_STRING")->count, 1);
	assert_int_equal(diag(p, "ORPHAN_TASK_INFO")->count, 3);
	assert_int_equal(diag(p, "DUPLICATE_TASK")->count, 1);
	np_profile_free(p);
}

static void tables_that_are_not_there_were_not_collected(void **state)
{
	(void)state;
	struct np_profile *p = load_sql("CREATE TABLE status_info(a,b);", NP_LOAD_ALL);
	assert_int_equal(p->loaded, 0);
	assert_int_equal(p->diags.n, 0);
	assert_int_equal(p->kernels.n + p->tasks.n + p->steps.n + p->host_ops.n, 0);
	np_profile_free(p);
}

static void what_is_no_database_is_an_error(void **state)
{
	(void)state;
	struct np_profile *p = np_profile_new();
	struct np_read read = {.profile = p, .what = NP_LOAD_ALL, .threads = 1};
	struct np_err err;
	const char *path = temp_text(".db", "");
	assert_int_equal(np_read_profiler_db(&read, path, &err), NP_E_EMPTY);
	assert_int_equal(np_read_analysis_db(&read, path, &err), NP_E_EMPTY);
	temp_remove(path);
	path = temp_text(".db",
	                 "Step,Computing\n1,2\nthis is no database, however long it may be....."
	                 "..........................................................");
	assert_int_equal(np_read_profiler_db(&read, path, &err), NP_E_FORMAT);
	assert_int_equal(np_read_analysis_db(&read, path, &err), NP_E_FORMAT);
	temp_remove(path);
	assert_int_equal(np_read_profiler_db(&read, path, &err), NP_E_NOTFOUND);
	np_profile_free(p);
}

/* Everything that analyses rely on. */
static void assert_consistent(const struct np_profile *p)
{
	for (size_t i = 0; i < p->kernels.n; i++) {
		assert_true(np_time_sane(p->kernels.start_ns[i], p->kernels.dur_ns[i]));
		assert_true(p->kernels.step[i] == NP_NO_U32 || p->kernels.step[i] < p->steps.n);
	}
	assert_true(p->kernel_shapes.n == 0 || p->kernel_shapes.n == p->kernels.n);
	double sum = 0;
	for (size_t m = 0; m < p->metrics.n; m++)
		for (size_t i = 0; i < p->kernels.n; i++)
			sum += p->metrics.v[m].v[i];
	(void)sum;
	for (size_t i = 0; i < p->comm_tasks.n; i++) {
		assert_true(np_time_sane(p->comm_tasks.start_ns[i], p->comm_tasks.dur_ns[i]));
		assert_true(p->comm_tasks.op[i] == NP_NO_U32 ||
		            p->comm_tasks.op[i] < p->comm_ops.n);
	}
	for (size_t i = 0; i < p->host_ops.n; i++)
		assert_true(np_time_sane(p->host_ops.start_ns[i], p->host_ops.dur_ns[i]));
}

static void memory_may_run_out_anywhere(void **state)
{
	(void)state;
	char path[4096];
	(void)snprintf(
		path, sizeof path, "%s",
		temp_db(SMALL PMU STEP_TABLES API_TABLE
	                "INSERT INTO CANN_API VALUES(1100,1150,10000,1,70,1);"
	                "INSERT INTO COMPUTE_TASK_INFO VALUES(1,99,1,0,5,3,0,0,0,0,0,0,0);"));
	unsigned failed = 0;
	for (uint64_t n = 1; n < 2000; n++) {
		struct np_profile *p = np_profile_new();
		struct np_read read = {.profile = p, .what = NP_LOAD_ALL, .threads = 1};
		struct np_err err = {.code = NP_OK};
		np_mem_fail_after(n);
		enum np_status st = np_read_profiler_db(&read, path, &err);
		np_mem_fail_after(0);
		assert_consistent(p);
		if (st == NP_OK) {
			/* the texts of diagnostics are what may be lost without an error */
			assert_int_equal(p->kernels.n, 3);
			assert_int_equal(p->comm_tasks.n, 2);
			np_profile_free(p);
			if (failed > 0 && n > failed + 8)
				break;
			continue;
		}
		failed++;
		assert_int_equal(st, NP_E_NOMEM);
		np_profile_free(p);
	}
	assert_true(failed > 50);
	temp_remove(path);
}

static void damage_anywhere_is_survived(void **state)
{
	(void)state;
	char path[4096];
	(void)snprintf(path, sizeof path, "%s", temp_db(SMALL PMU STEP_TABLES API_TABLE));
	FILE *file = fopen(path, "rb");
	static unsigned char bytes[1 << 20];
	size_t size = fread(bytes, 1, sizeof bytes, file);
	assert_int_equal(fclose(file), 0);
	uint64_t seed = 42;
	unsigned read_anything = 0;
	for (unsigned round = 0; round < 300; round++) {
		unsigned char *copy = malloc(size);
		memcpy(copy, bytes, size);
		for (unsigned k = 0; k < 1 + round % 16; k++) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			copy[100 + (seed >> 33) % (size - 100)] = (unsigned char)(seed >> 24);
		}
		file = fopen(path, "wb");
		assert_int_equal(fwrite(copy, 1, round % 8 ? size : size / 2, file),
		                 round % 8 ? size : size / 2);
		assert_int_equal(fclose(file), 0);
		free(copy);
		struct np_profile *p = np_profile_new();
		struct np_read read = {.profile = p, .what = NP_LOAD_ALL, .threads = 1};
		(void)np_read_profiler_db(&read, path, NULL);
		assert_consistent(p);
		read_anything += p->kernels.n > 0;
		np_profile_free(p);
	}
	assert_true(read_anything > 20);
	temp_remove(path);
}

/* ── real captures ── */

/* Lengths in ns of what a step computes and communicates, as StepTraceTime has them. */
static void assert_step_times(struct np_profile *p)
{
	const struct np_kernels *k = &p->kernels;
	const struct np_step_trace *t = &p->step_trace;
	assert_true(t->n > 0);
	for (size_t s = 0; s < t->n; s++) {
		struct np_intervals compute = {0}, comm = {0}, alone = {0};
		uint32_t row = np_profile_find_step(p, t->step[s]);
		assert_int_not_equal(row, NP_NO_U32);
		for (size_t i = 0; i < k->n; i++)
			if (k->step[i] == row)
				assert_true(np_intervals_add(
					np_is_comm_core(TEXT(p, k->core[i])) ? &comm : &compute,
					k->start_ns[i], k->start_ns[i] + k->dur_ns[i]));
		np_intervals_merge(&compute);
		np_intervals_merge(&comm);
		assert_true(np_intervals_subtract(&comm, &compute, &alone));
		assert_int_equal(np_intervals_length(&compute), llround(t->computing_us[s] * 1000));
		assert_int_equal(np_intervals_length(&comm), llround(t->comm_us[s] * 1000));
		assert_int_equal(np_intervals_length(&alone),
		                 llround(t->comm_not_overlapped_us[s] * 1000));
		np_intervals_release(&compute);
		np_intervals_release(&comm);
		np_intervals_release(&alone);
	}
}

static struct np_profile *load_rank(const char *directory, int rank)
{
	char relative[512];
	(void)snprintf(relative, sizeof relative, "%s/ascend_pytorch_profiler_%d.db", directory,
	               rank);
	const char *path = shared_path(relative);
	if (!path)
		return NULL;
	struct np_profile *p = load_path(path, NP_LOAD_ALL);
	struct np_read read = {.profile = p, .what = NP_LOAD_ALL, .threads = 1};
	(void)snprintf(relative, sizeof relative, "%s/analysis.db", directory);
	path = shared_path(relative);
	assert_non_null(path);
	assert_int_equal(np_read_analysis_db(&read, path, NULL), NP_OK);
	assert_consistent(p);
	return p;
}

static void a_real_level2_capture_agrees_with_the_exporters_step_times(void **state)
{
	(void)state;
	struct np_profile *p =
		load_rank("data/ddp2/db/level2/rank0_ascend_pt/ASCEND_PROFILER_OUTPUT", 0);
	if (!p)
		skip();
	assert_int_equal(p->kernels.n, 187 + 4);
	assert_int_equal(p->tasks.n, 552);
	assert_int_equal(p->comm_ops.n, 4);
	assert_int_equal(p->comm_tasks.n, 296);
	assert_int_equal(p->host_ops.n, 2460 + 1133);
	assert_int_equal(p->steps.n, 1);
	assert_int_equal(p->steps.id[0], 50);
	assert_int_equal(p->op_memory.n, 184);
	assert_int_equal(p->memory.n, 990 + 1078 + 13);
	assert_int_equal(p->comm_time.n, 4);
	assert_int_equal(llround(p->step_trace.computing_us[0] * 1000), 8900456);
	assert_int_equal(llround(p->step_trace.comm_us[0] * 1000), 94107521);
	assert_step_times(p);
	assert_int_equal(p->metrics.n, 28);
	const struct np_metric *time = np_profile_metric(p, "aiv_time(us)");
	assert_non_null(time);
	size_t kernels_with_time = 0;
	for (size_t i = 0; i < p->kernels.n; i++) {
		assert_true(isnan(time->v[i]) || time->v[i] * 1000 <= 1.2 * p->kernels.dur_ns[i]);
		kernels_with_time += time->v[i] > 0;
	}
	assert_true(kernels_with_time > 100);
	assert_int_equal(diag(p, "DANGLING_STRING"), NULL);
	np_profile_free(p);
}

/* Generated ranks of the second pipeline stage are not among them: their steps begin with
 * a receive that no node call launches, which the exporter's rule leaves out. */
static void real_captures_agree_with_the_exporters_step_times(void **state)
{
	(void)state;
	static const struct {
		const char *directory;
		int rank;
	} captures[] = {
		{"data/ddp2/db/level0/rank0_ascend_pt", 0},
		{"data/ddp2/db/level0/rank1_ascend_pt", 1},
		{"data/ddp2/db/level2/rank1_ascend_pt", 1},
		{"data/synth8/host_1700000000000_ascend_pt", 0},
		{"data/synth8/host_1700000000002_ascend_pt", 2},
		{"data/synth8_base/host_1700000000001_ascend_pt", 1},
		{"data/synth8_base/host_1700000000003_ascend_pt", 3},
	};
	if (!shared_path("data"))
		skip();
	for (size_t i = 0; i < sizeof captures / sizeof *captures; i++) {
		char directory[512];
		(void)snprintf(directory, sizeof directory, "%s/ASCEND_PROFILER_OUTPUT",
		               captures[i].directory);
		struct np_profile *p = load_rank(directory, captures[i].rank);
		assert_non_null(p);
		assert_step_times(p);
		np_profile_free(p);
	}
}

static void a_real_level0_capture_has_no_types(void **state)
{
	(void)state;
	struct np_profile *p =
		load_rank("data/ddp2/db/level0/rank0_ascend_pt/ASCEND_PROFILER_OUTPUT", 0);
	if (!p)
		skip();
	assert_int_equal(p->kernels.n, 187 + 4);
	assert_int_equal(p->kernels.type[0], NP_ID_NONE);
	assert_int_equal(p->kernels.core[0], NP_ID_NONE);
	assert_int_equal(p->kernels.block_num[0], 0);
	assert_int_equal(p->kernel_shapes.in_shapes[0], NP_ID_NONE);
	assert_int_equal(p->metrics.n, 0);
	assert_false(p->loaded & NP_KERNEL_METRICS);
	assert_true(p->comm_tasks.n > 0);
	for (size_t i = 0; i < p->comm_tasks.n; i++) {
		assert_int_equal(p->comm_tasks.name[i], NP_ID_NONE);
		assert_int_equal(p->comm_tasks.size_bytes[i], NP_NO_I64);
		assert_true(p->comm_tasks.notify[i] == UINT64_MAX);
	}
	np_profile_free(p);
}

/* A gzipped file of the shared folder, inflated; NULL when absent. */
static const char *inflated(const char *relative)
{
	const char *path = shared_path(relative);
	if (!path)
		return NULL;
	struct np_input *input;
	struct np_window window;
	assert_int_equal(np_input_open(path, &input, NULL), NP_OK);
	path = temp_path(".db");
	FILE *file = fopen(path, "wb");
	size_t consumed = 0;
	do {
		assert_int_equal(np_input_next(input, consumed, &window, NULL), NP_OK);
		assert_int_equal(fwrite(window.ptr, 1, window.len, file), window.len);
		consumed = window.len;
	} while (!window.eof);
	assert_int_equal(fclose(file), 0);
	np_input_close(input);
	return path;
}

static void assert_same_kernels(const struct np_profile *db, const struct np_profile *text)
{
	const struct np_kernels *d = &db->kernels, *t = &text->kernels;
	assert_int_equal(d->n, t->n);
	for (size_t i = 0; i < d->n; i++) {
		assert_int_equal(d->start_ns[i], t->start_ns[i]);
		assert_int_equal(d->dur_ns[i], t->dur_ns[i]);
		assert_str(TEXT(db, d->name[i]), TEXT(text, t->name[i]).ptr);
		assert_str(TEXT(db, d->core[i]), TEXT(text, t->core[i]).ptr);
		assert_str(TEXT(db, d->op_state[i]), TEXT(text, t->op_state[i]).ptr);
		assert_str(TEXT(db, d->hf32[i]), TEXT(text, t->hf32[i]).ptr);
		assert_int_equal(d->device[i], t->device[i]);
		assert_int_equal(d->block_num[i], t->block_num[i]);
		if (np_is_comm_core(TEXT(db, d->core[i])))
			continue;
		assert_str(TEXT(db, d->type[i]), TEXT(text, t->type[i]).ptr);
		assert_str(TEXT(db, db->kernel_shapes.in_shapes[i]),
		           TEXT(text, text->kernel_shapes.in_shapes[i]).ptr);
		assert_str(TEXT(db, db->kernel_shapes.out_formats[i]),
		           TEXT(text, text->kernel_shapes.out_formats[i]).ptr);
		assert_int_equal(d->stream[i], t->stream[i]);
		assert_int_equal(d->task[i], t->task[i]);
		assert_int_equal(d->context[i], t->context[i]);
	}
}

/* The text rounds to 3 decimals and lacks what the chip doesn't have. */
static void assert_same_metrics(const struct np_profile *db, const struct np_profile *text)
{
	assert_true(text->metrics.n > 0);
	for (size_t m = 0; m < text->metrics.n; m++) {
		const char *name = TEXT(text, text->metrics.v[m].name).ptr;
		const struct np_metric *metric = np_profile_metric(db, name);
		if (strcmp(name, "cube_utilization(%)") == 0)
			continue;
		if (!metric)
			fail_msg("no %s in the db", name);
		for (size_t i = 0; i < text->kernels.n; i++) {
			double value = text->metrics.v[m].v[i];
			assert_int_equal(isnan(value), isnan(metric->v[i]));
			assert_true(isnan(value) || fabs(value - metric->v[i]) < 0.000501);
		}
	}
}

static void text_and_db_of_one_run_have_the_same_kernels(void **state)
{
	(void)state;
	static const char *const runs[] = {"pipe1000", "memory300", "memoryub300", "oddclock400",
	                                   "idwrap500"};
	for (size_t r = 0; r < sizeof runs / sizeof *runs; r++) {
		char name[512];
		(void)snprintf(name, sizeof name, "golden/raw/%s/cpp/msprof.db.gz", runs[r]);
		const char *path = inflated(name);
		if (!path)
			skip();
		struct np_profile *db = load_path(path, NP_LOAD_ALL);
		temp_remove(path);
		struct np_profile *text = np_profile_new();
		struct np_read read = {.profile = text, .what = NP_LOAD_ALL, .threads = 1};
		(void)snprintf(name, sizeof name, "golden/raw/%s/cpp/op_summary.csv", runs[r]);
		assert_int_equal(np_read_kernels_csv(&read, shared_path(name), NULL), NP_OK);
		finish(text);
		assert_consistent(db);
		assert_same_kernels(db, text);
		assert_same_metrics(db, text);
		np_profile_free(db);
		np_profile_free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_kernel_is_a_task_with_its_description),
		cmocka_unit_test(a_collective_is_one_more_kernel_row),
		cmocka_unit_test(the_newest_block_columns_are_told_from_the_old_one),
		cmocka_unit_test(tasks_have_the_names_of_the_timeline),
		cmocka_unit_test(collectives_and_their_tasks_are_joined),
		cmocka_unit_test(collectives_alone_take_no_look_at_the_tasks),
		cmocka_unit_test(not_available_may_be_told_from_null),
		cmocka_unit_test(the_type_of_a_collective_follows_from_its_name),
		cmocka_unit_test(tasks_that_unfold_collectives_have_a_table),
		cmocka_unit_test(the_device_of_a_collective_is_found_in_three_ways),
		cmocka_unit_test(steps_reach_from_their_first_to_their_last_launched_task),
		cmocka_unit_test(without_launches_a_step_reaches_to_the_next_one),
		cmocka_unit_test(a_step_without_launches_keeps_its_host_range),
		cmocka_unit_test(metrics_have_the_names_and_units_of_kernel_details),
		cmocka_unit_test(a_second_database_is_appended_to_the_first),
		cmocka_unit_test(rows_without_sense_are_dropped_and_counted),
		cmocka_unit_test(tables_that_are_not_there_were_not_collected),
		cmocka_unit_test(what_is_no_database_is_an_error),
		cmocka_unit_test(memory_may_run_out_anywhere),
		cmocka_unit_test(damage_anywhere_is_survived),
		cmocka_unit_test(a_real_level2_capture_agrees_with_the_exporters_step_times),
		cmocka_unit_test(real_captures_agree_with_the_exporters_step_times),
		cmocka_unit_test(a_real_level0_capture_has_no_types),
		cmocka_unit_test(text_and_db_of_one_run_have_the_same_kernels),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
