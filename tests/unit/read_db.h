/* Small databases as the exporters make them, and how the tests load them. */
#ifndef NP_TESTS_READ_DB_H
#define NP_TESTS_READ_DB_H

#include "capture/reader.h"
#include "temp_file.h"

/* What np_capture_load() does when all files are read. */
static inline void finish(struct np_profile *p)
{
	assert_true(np_profile_finish_steps(p));
	assert_true(np_profile_finish_kernels(p));
}

static inline struct np_profile *load_path(const char *path, unsigned what)
{
	struct np_profile *p = np_profile_new();
	struct np_err err = {.code = NP_OK};
	struct np_read read = {.profile = p, .what = what, .threads = 1};
	if (np_read_profiler_db(&read, path, &err) != NP_OK)
		fail_msg("%s: %s", err.where, err.msg);
	finish(p);
	return p;
}

static inline struct np_profile *load_sql(const char *sql, unsigned what)
{
	const char *path = temp_db(sql);
	struct np_profile *p = load_path(path, what);
	temp_remove(path);
	return p;
}

static inline const struct np_diag *diag(const struct np_profile *p, const char *code)
{
	for (size_t i = 0; i < p->diags.n; i++)
		if (strcmp(p->diags.v[i].code, code) == 0)
			return &p->diags.v[i];
	return NULL;
}

#define TEXT(p, id) np_intern_get(&(p)->strings, (id))

#define STRINGS                                                                            \
	"CREATE TABLE STRING_IDS(id INTEGER PRIMARY KEY, value TEXT);"                     \
	"INSERT INTO STRING_IDS VALUES(0,'N/A'),(1,'MatMul1'),(2,'Cast2'),(3,'MatMulV2')," \
	"(4,'Cast'),(5,'AI_CORE'),(6,'AI_VECTOR_CORE'),(7,'KERNEL_AICORE'),"               \
	"(8,'KERNEL_AIVEC'),(9,'\"2,3;3,4\"'),(10,'FLOAT;FLOAT'),(11,'ND;ND'),"            \
	"(12,'\"2,4\"'),(13,'FLOAT'),(14,'ND'),(15,'hcom_allReduce__865_0_1'),"            \
	"(16,'1197'),(17,'MESH-RING'),(18,'Memcpy'),(19,'Notify_Wait'),(20,'SDMA'),"       \
	"(21,'Notify Wait'),(22,'dynamic'),(23,'NO'),(24,'EVENT_WAIT'),"                   \
	"(30,'aic_total_time'),(31,'aic_mac_ratio'),(32,'aiv_vec_time'),"                  \
	"(33,'aic_l2_read_bw'),(34,'read_main_memory_datas_extra'),"                       \
	"(268435456,'aten::mm'),(268435457,'a.py(1): f'),(268435458,'b.py(2): g'),"        \
	"(268435459,'2,3'),(268435460,'float'),(536870912,'PTA'),(536870913,'aten::empty');"

#define TASK_TABLE                                                                      \
	"CREATE TABLE TASK(startNs INTEGER,endNs INTEGER,deviceId INTEGER,"             \
	"connectionId INTEGER,globalTaskId INTEGER,globalPid INTEGER,taskType INTEGER," \
	"contextId INTEGER,streamId INTEGER,taskId INTEGER,modelId INTEGER);"

#define COMPUTE_TABLE                                                                   \
	"CREATE TABLE COMPUTE_TASK_INFO(name INTEGER,globalTaskId INTEGER PRIMARY KEY," \
	"blockDim INTEGER,mixBlockDim INTEGER,taskType INTEGER,opType INTEGER,"         \
	"inputFormats INTEGER,inputDataTypes INTEGER,inputShapes INTEGER,"              \
	"outputFormats INTEGER,outputDataTypes INTEGER,outputShapes INTEGER,attrInfo INTEGER);"

#define OP_TABLE                                                                         \
	"CREATE TABLE COMMUNICATION_OP(opName INTEGER,startNs INTEGER,endNs INTEGER,"    \
	"connectionId INTEGER,groupName INTEGER,opId INTEGER PRIMARY KEY,relay INTEGER," \
	"retry INTEGER,dataType INTEGER,algType INTEGER,count NUMERIC,opType INTEGER);"

#define COMM_TASK_TABLE                                                                          \
	"CREATE TABLE COMMUNICATION_TASK_INFO(name INTEGER,globalTaskId INTEGER,"                \
	"taskType INTEGER,planeId INTEGER,groupName INTEGER,notifyId INTEGER,"                   \
	"rdmaType INTEGER,srcRank INTEGER,dstRank INTEGER,transportType INTEGER,"                \
	"size INTEGER,dataType INTEGER,linkType INTEGER,opId INTEGER);"                          \
	"CREATE TABLE ENUM_HCCL_LINK_TYPE(id INTEGER PRIMARY KEY,name TEXT);"                    \
	"INSERT INTO ENUM_HCCL_LINK_TYPE VALUES(0,'ON_CHIP'),(1,'HCCS'),(65535,'INVALID_TYPE');" \
	"CREATE TABLE ENUM_HCCL_TRANSPORT_TYPE(id INTEGER PRIMARY KEY,name TEXT);"               \
	"INSERT INTO ENUM_HCCL_TRANSPORT_TYPE VALUES(0,'SDMA'),(65534,'N/A');"                   \
	"CREATE TABLE ENUM_HCCL_DATA_TYPE(id INTEGER PRIMARY KEY,name TEXT);"                    \
	"INSERT INTO ENUM_HCCL_DATA_TYPE VALUES(4,'FP32');"

/* two kernels, one collective of two tasks, one event */
#define SMALL                                                                                 \
	STRINGS TASK_TABLE COMPUTE_TABLE OP_TABLE COMM_TASK_TABLE                             \
		"INSERT INTO TASK VALUES(1000,1400,3,70,0,9,7,4294967295,2,11,4294967295),"   \
		"(1500,1600,3,71,1,9,8,5,2,12,8),(2000,2500,3,80,2,9,20,0,4,13,4294967295),"  \
		"(2100,2900,3,80,3,9,21,1,5,14,4294967295),"                                  \
		"(3000,3000,3,90,4,9,24,4294967295,6,15,4294967295);"                         \
		"INSERT INTO COMPUTE_TASK_INFO VALUES(1,0,24,48,5,3,11,10,9,14,13,12,0),"     \
		"(2,1,8,0,6,4,0,0,0,0,0,0,0);"                                                \
		"INSERT INTO COMMUNICATION_OP VALUES(15,2000,2900,80,16,1,0,0,4,17,4097,15);" \
		"INSERT INTO COMMUNICATION_TASK_INFO VALUES"                                  \
		"(15,2,18,0,16,9223372036854775807,65535,0,1,0,2064384,4,1,1),"               \
		"(15,3,19,1,16,77,65535,4294967295,2,65534,-1,65535,65535,1);"

#define API_TABLE                                                           \
	"CREATE TABLE CANN_API(startNs INTEGER,endNs INTEGER,type INTEGER," \
	"globalTid INTEGER,connectionId INTEGER PRIMARY KEY,name INTEGER);"

#endif
