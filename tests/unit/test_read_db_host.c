#include <math.h>

#include "read_db.h"

#define HOST                                                                                    \
	SMALL API_TABLE                                                                         \
		"CREATE TABLE ENUM_API_TYPE(id INTEGER PRIMARY KEY,name TEXT);"                 \
		"INSERT INTO ENUM_API_TYPE VALUES(6000,'communication'),(50001,'op');"          \
		"CREATE TABLE PYTORCH_API(startNs TEXT,endNs TEXT,globalTid INTEGER,"           \
		"connectionId INTEGER,name INTEGER,sequenceNumber INTEGER,fwdThreadId INTEGER," \
		"inputDtypes INTEGER,inputShapes INTEGER,callchainId INTEGER,type INTEGER);"    \
		"INSERT INTO PYTORCH_API VALUES('1000','1900',30064771080,5,268435456,42,0,"    \
		"268435460,268435459,1,50001),('1100','1200',30064771081,6,24,NULL,NULL,NULL,"  \
		"NULL,"                                                                         \
		"NULL,50002),('1300','1290',1,NULL,24,-1,0,NULL,NULL,NULL,50003);"              \
		"CREATE TABLE CONNECTION_IDS(id INTEGER,connectionId INTEGER);"                 \
		"INSERT INTO CONNECTION_IDS VALUES(5,70),(5,71),(6,5000000000);"                \
		"CREATE TABLE PYTORCH_CALLCHAINS(id INTEGER,stack INTEGER,stackDepth INTEGER);" \
		"INSERT INTO PYTORCH_CALLCHAINS "                                               \
		"VALUES(0,268435458,0),(1,268435457,0),(1,268435458,1);"                        \
		"INSERT INTO CANN_API VALUES(1300,1310,10000,4294967297,70,24),"                \
		"(1320,1330,6000,4294967297,80,24),(1340,1350,31337,4294967297,81,24);"         \
		"CREATE TABLE MSTX_EVENTS(startNs INTEGER,endNs INTEGER,eventType INTEGER,"     \
		"rangeId INTEGER,category INTEGER,message INTEGER,globalTid INTEGER,"           \
		"endGlobalTid INTEGER,domainId INTEGER,connectionId INTEGER);"                  \
		"INSERT INTO MSTX_EVENTS VALUES(1400,0,0,0,0,17,4294967297,0,0,4000000002),"    \
		"(1500,1600,2,0,0,17,4294967297,0,0,4294967295);"                               \
		"CREATE TABLE GC_RECORD(startNs INTEGER,endNs INTEGER,globalTid INTEGER);"      \
		"INSERT INTO GC_RECORD VALUES(1700,1800,4294967298);"

static void host_ranges_come_from_four_tables(void **state)
{
	(void)state;
	struct np_profile *p = load_sql(HOST, NP_HOST_OPS | NP_HOST_ARGS);
	const struct np_host_ops *h = &p->host_ops;
	const uint8_t layers[] = {NP_HOST_OP,    NP_HOST_QUEUE, NP_HOST_NODE, NP_HOST_HCCL,
	                          NP_HOST_OTHER, NP_HOST_MSTX,  NP_HOST_MSTX, NP_HOST_GC};
	assert_int_equal(h->n, 8);
	for (size_t i = 0; i < 8; i++)
		assert_int_equal(h->layer[i], layers[i]);
	assert_str(TEXT(p, h->name[0]), "aten::mm");
	assert_int_equal(h->pid[0], 7);
	assert_int_equal(h->tid[0], 8);
	assert_int_equal(h->start_ns[0], 1000);
	assert_int_equal(h->dur_ns[0], 900);
	assert_int_equal(h->conn[0], 70);
	assert_int_equal(h->seq[0], 42);
	assert_str(TEXT(p, h->shapes[0]), "2,3");
	assert_str(TEXT(p, h->dtypes[0]), "float");
	assert_str(TEXT(p, h->stack[0]), "a.py(1): f;\r\nb.py(2): g");
	assert_int_equal(h->stack[1], NP_ID_NONE);
	assert_true(h->conn[1] == 5000000000);
	assert_int_equal(h->seq[1], NP_NO_I64);
	assert_str(TEXT(p, h->item[2]), "MatMul1");
	assert_int_equal(h->item[3], NP_ID_NONE);
	assert_int_equal(h->dur_ns[5], 0);
	assert_true(h->conn[5] == 4000000002);
	assert_int_equal(h->conn[6], NP_NO_I64);
	assert_str(TEXT(p, h->name[6]), "MESH-RING");
	assert_str(TEXT(p, h->name[7]), "GC");
	assert_int_equal(h->tid[7], 2);
	assert_int_equal(diag(p, "NEGATIVE_DURATION")->count, 1);
	assert_int_equal(p->loaded, NP_HOST_OPS | NP_HOST_ARGS);
	np_profile_free(p);
}

static void the_calls_of_cann_can_be_read_alone(void **state)
{
	(void)state;
	struct np_profile *p = load_sql(HOST, NP_HOST_CANN);
	const struct np_host_ops *h = &p->host_ops;
	const uint8_t layers[] = {NP_HOST_NODE, NP_HOST_HCCL, NP_HOST_OTHER};
	assert_int_equal(h->n, 3);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(h->layer[i], layers[i]);
	assert_int_equal(h->start_ns[0], 1300);
	assert_int_equal(h->conn[0], 70);
	assert_int_equal(h->item[0], NP_ID_NONE);
	assert_int_equal(p->loaded, NP_HOST_CANN);
	np_profile_free(p);
}

static void all_connections_of_an_op_are_in_the_order_of_their_ids(void **state)
{
	(void)state;
	/* op 9 begins before op 5 and shares 70 and 71 with it; 8 is no op */
	struct np_profile *p = load_sql(
		HOST "INSERT INTO CONNECTION_IDS VALUES(9,71),(8,70),(9,70),(9,72);"
		     "INSERT INTO PYTORCH_API VALUES('500','600.4',30064771080,9,24,7,0,NULL,"
		     "NULL,NULL,50001),('499.7','600',30064771080,NULL,24,7,0,NULL,NULL,NULL,"
		     "50001);",
		NP_HOST_CONNS);
	static const struct {
		int64_t conn, id;
		uint32_t op;
	} expected[] = {{70, 5, 2}, {70, 9, 0}, {71, 5, 2},
	                {71, 9, 0}, {72, 9, 0}, {5000000000, 6, 3}};
	const struct np_host_conns *c = &p->host_conns;
	assert_int_equal(c->n, 6);
	for (size_t i = 0; i < c->n; i++) {
		assert_true(c->conn[i] == expected[i].conn && c->id[i] == expected[i].id);
		assert_int_equal(c->op[i], expected[i].op);
	}
	/* times with a fraction are rounded to the ns */
	assert_int_equal(p->host_ops.start_ns[0], 500);
	assert_int_equal(p->host_ops.dur_ns[1], 100);
	assert_int_equal(p->loaded, NP_HOST_OPS | NP_HOST_CONNS);
	np_profile_free(p);
}

static void without_connection_ids_an_op_has_its_own(void **state)
{
	(void)state;
	struct np_profile *p = load_sql(HOST "DROP TABLE CONNECTION_IDS;", NP_HOST_CONNS);
	assert_int_equal(p->host_conns.n, 2);
	assert_true(p->host_conns.conn[0] == 5 && p->host_conns.op[0] == 0);
	assert_true(p->host_conns.conn[1] == 6 && p->host_conns.op[1] == 1);
	np_profile_free(p);
}

static void events_of_mstx_keep_all_their_columns(void **state)
{
	(void)state;
	struct np_profile *p = load_sql(
		HOST "INSERT INTO MSTX_EVENTS VALUES(1390,1395,3,7,9,17,4294967298,4294967299,24,"
		     "4000000003),(10,5,2,0,0,17,1,1,0,0),(20,25,300,-1,-1,NULL,-1,-1,NULL,-1);",
		NP_MSTX);
	const struct np_mstx *m = &p->mstx;
	assert_int_equal(m->n, 4);
	assert_int_equal(p->host_ops.n, 0);
	assert_int_equal(diag(p, "NEGATIVE_DURATION")->count, 1);
	assert_int_equal(m->event_type[0], NP_MSTX_UNKNOWN);
	assert_true(m->range_id[0] == NP_NO_I64 && m->category[0] == NP_NO_I64);
	assert_true(m->pid[0] == NP_NO_U32 && m->tid[0] == NP_NO_U32 && m->conn[0] == NP_NO_I64);
	assert_true(m->message[0] == NP_ID_NONE && m->domain[0] == NP_ID_NONE);
	assert_int_equal(m->start_ns[1], 1390);
	assert_int_equal(m->end_ns[1], 1390); /* a mark */
	assert_int_equal(m->event_type[1], NP_MSTX_MARKER_EX);
	assert_true(m->range_id[1] == 7 && m->category[1] == 9);
	assert_str(TEXT(p, m->message[1]), "MESH-RING");
	assert_true(m->domain[1] != m->message[1] && m->domain[1] != NP_ID_NONE);
	assert_true(m->pid[1] == 1 && m->tid[1] == 2 && m->end_tid[1] == 3);
	assert_true(m->conn[1] == 4000000003);
	assert_int_equal(m->event_type[2], NP_MSTX_MARKER);
	assert_int_equal(m->event_type[3], NP_MSTX_START_END);
	assert_int_equal(m->end_ns[3], 1600);
	assert_true(m->conn[3] == NP_NO_I64);
	assert_int_equal(p->loaded, NP_MSTX);
	np_profile_free(p);
	/* beside the host ops a row that is dropped counts once */
	p = load_sql(HOST "INSERT INTO MSTX_EVENTS VALUES(10,5,2,0,0,17,1,1,0,0);",
	             NP_MSTX | NP_HOST_OPS);
	assert_int_equal(diag(p, "NEGATIVE_DURATION")->count, 2); /* one of PYTORCH_API */
	assert_int_equal(p->mstx.n, 2);
	np_profile_free(p);
}

#define MEMORY                                                                           \
	STRINGS                                                                          \
	"INSERT INTO STRING_IDS VALUES(50,'app'),(51,'device');"                         \
	"CREATE TABLE OP_MEMORY(name INTEGER,size INTEGER,allocationTime INTEGER,"       \
	"releaseTime INTEGER,activeReleaseTime INTEGER,duration INTEGER,"                \
	"activeDuration INTEGER,allocationTotalAllocated INTEGER,"                       \
	"allocationTotalReserved INTEGER,allocationTotalActive INTEGER,"                 \
	"releaseTotalAllocated INTEGER,releaseTotalReserved INTEGER,"                    \
	"releaseTotalActive INTEGER,streamPtr INTEGER,deviceId INTEGER);"                \
	"INSERT INTO OP_MEMORY VALUES(536870913,512,1000,2000,NULL,1000,NULL,1048576,"   \
	"3145728,NULL,1,1,1,1162636336,0),(536870913,512,NULL,1,1,1,1,1,1,1,1,1,1,1,0);" \
	"CREATE TABLE MEMORY_RECORD(component INTEGER,timestamp INTEGER,"                \
	"totalAllocated INTEGER,totalReserved INTEGER,totalActive INTEGER,"              \
	"streamPtr INTEGER,deviceId INTEGER);"                                           \
	"INSERT INTO MEMORY_RECORD VALUES(536870912,1500,1048576,2097152,NULL,1,0);"     \
	"CREATE TABLE NPU_MODULE_MEM(moduleId INTEGER,timestampNs INTEGER,"              \
	"totalReserved NUMERIC,deviceId INTEGER);"                                       \
	"INSERT INTO NPU_MODULE_MEM VALUES(3,1600,524288,0);"                            \
	"CREATE TABLE ENUM_MODULE(id INTEGER PRIMARY KEY,name TEXT);"                    \
	"INSERT INTO ENUM_MODULE VALUES(3,'HCCL');"                                      \
	"CREATE TABLE NPU_MEM(type INTEGER,ddr NUMERIC,hbm NUMERIC,timestampNs INTEGER," \
	"deviceId INTEGER);"                                                             \
	"INSERT INTO NPU_MEM VALUES(50,1048576,4194304,1700,0),(51,0,1024,1800,0);"

static void memory_is_in_bytes_and_mib(void **state)
{
	(void)state;
	struct np_profile *p = load_sql(MEMORY, NP_MEMORY | NP_COUNTERS);
	const struct np_op_memory *o = &p->op_memory;
	assert_int_equal(o->n, 1);
	assert_str(TEXT(p, o->name[0]), "aten::empty");
	assert_int_equal(o->size_bytes[0], 512);
	assert_int_equal(o->alloc_ns[0], 1000);
	assert_int_equal(o->release_ns[0], 2000);
	assert_int_equal(o->active_release_ns[0], NP_NO_I64);
	assert_true(o->allocated_mb[0] == 1 && o->reserved_mb[0] == 3 && isnan(o->active_mb[0]));
	assert_int_equal(o->stream[0], 1162636336);
	assert_int_equal(diag(p, "BAD_TIME")->count, 1);
	const struct np_memory *m = &p->memory;
	assert_int_equal(m->n, 3);
	assert_str(TEXT(p, m->component[0]), "PTA");
	assert_true(m->allocated_mb[0] == 1 && m->reserved_mb[0] == 2 && isnan(m->active_mb[0]));
	assert_str(TEXT(p, m->component[1]), "HCCL");
	assert_true(m->reserved_mb[1] == 0.5 && isnan(m->allocated_mb[1]));
	assert_str(TEXT(p, m->component[2]), "APP");
	assert_true(m->reserved_mb[2] == 5);
	const struct np_counters *c = &p->counters;
	assert_int_equal(c->n, 6);
	assert_str(TEXT(p, c->name[0]), "APP/DDR KB");
	assert_true(c->value[2] == 5120);
	assert_str(TEXT(p, c->name[5]), "Device/Memory KB");
	assert_true(c->value[5] == 1);
	np_profile_free(p);
}

static void counters_have_the_names_and_units_of_the_trace(void **state)
{
	(void)state;
	struct np_profile *p = load_sql(
		"CREATE TABLE STRING_IDS(id INTEGER PRIMARY KEY, value TEXT);"
		"INSERT INTO STRING_IDS VALUES(1,'read'),(2,'write'),(3,'neither');"
		"CREATE TABLE AICORE_FREQ(deviceId INTEGER,timestampNs NUMERIC,freq INTEGER);"
		"INSERT INTO AICORE_FREQ VALUES(5,100,1800);"
		"CREATE TABLE HBM(deviceId INTEGER,timestampNs INTEGER,bandwidth NUMERIC,"
		"hbmId INTEGER,type INTEGER);"
		"INSERT INTO HBM VALUES(5,100,2097152,3,2),(5,100,1,3,3);"
		"CREATE TABLE LLC(deviceId INTEGER,llcId INTEGER,timestampNs INTEGER,hitRate REAL,"
		"throughput INTEGER,mode INTEGER);"
		"INSERT INTO LLC VALUES(5,1,100,84.0,1048576,1);",
		NP_COUNTERS);
	static const struct {
		const char *process, *name;
		double value;
	} expected[] = {{"AI Core Freq", "AI Core Freq MHz", 1800},
	                {"HBM", "HBM 3/Write Write(MB/s)", 2},
	                {"LLC", "LLC 1 Read/Throughput Throughput(MB/s)", 1},
	                {"LLC", "LLC 1 Read/Hit Rate Hit Rate(%)", 0.84}};
	assert_int_equal(p->counters.n, 4);
	for (size_t i = 0; i < 4; i++) {
		assert_str(TEXT(p, p->counters.process[i]), expected[i].process);
		assert_str(TEXT(p, p->counters.name[i]), expected[i].name);
		assert_true(p->counters.value[i] == expected[i].value);
		assert_int_equal(p->counters.device[i], 5);
		assert_int_equal(p->counters.ts_ns[i], 100);
	}
	np_profile_free(p);
}

static void memory_may_run_out_anywhere(void **state)
{
	(void)state;
	static const char *const sql[] = {HOST, MEMORY};
	for (size_t i = 0; i < 2; i++) {
		char path[4096];
		(void)snprintf(path, sizeof path, "%s", temp_db(sql[i]));
		unsigned failed = 0;
		for (uint64_t n = 1; n < 1000; n++) {
			struct np_profile *p = np_profile_new();
			struct np_read read = {.profile = p, .what = NP_LOAD_ALL, .threads = 1};
			np_mem_fail_after(n);
			enum np_status st = np_read_profiler_db(&read, path, NULL);
			np_mem_fail_after(0);
			if (st == NP_OK)
				assert_int_equal(i == 0 ? p->host_ops.n : p->memory.n,
				                 i == 0 ? 8 : 3);
			else
				assert_int_equal(st, NP_E_NOMEM);
			failed += st != NP_OK;
			np_profile_free(p);
		}
		assert_true(failed > 20 && failed < 999);
		temp_remove(path);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(host_ranges_come_from_four_tables),
		cmocka_unit_test(the_calls_of_cann_can_be_read_alone),
		cmocka_unit_test(all_connections_of_an_op_are_in_the_order_of_their_ids),
		cmocka_unit_test(without_connection_ids_an_op_has_its_own),
		cmocka_unit_test(events_of_mstx_keep_all_their_columns),
		cmocka_unit_test(memory_is_in_bytes_and_mib),
		cmocka_unit_test(counters_have_the_names_and_units_of_the_trace),
		cmocka_unit_test(memory_may_run_out_anywhere),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
