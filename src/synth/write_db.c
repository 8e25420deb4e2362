/* ascend_pytorch_profiler_<rank>.db: tables of CANN and of the framework (§3.11).
 * Text is in STRING_IDS only, so every other row is integers. */
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "base/intern.h"
#include "synth/db_out.h"
#include "synth/faults_cluster.h"
#include "synth/faults_ops.h"
#include "synth/write_comm.h"

/* id spaces of STRING_IDS: CANN, framework, memory */
enum space { CANN, TORCH, MEMORY, SPACES };
enum { SPACE_SHIFT = 28, CORR_OFFSET = 5 << 28 };
/* connections that an operator of the forward pass shares with one of the backward pass; of
 * mstx */
#define FWD_BWD_OFFSET (6ll << 28)
#define MSTX_OFFSET    4000000000ll
#define NONE32         4294967295ll

struct dbw {
	struct np_db_out db;
	const struct np_synth_run *run;
	struct np_intern strings[SPACES];
	bool nomem, old;
	int64_t next_task, next_conn, next_op;
	sqlite3_stmt *task, *compute, *pmu, *comm_op, *comm_task, *cann, *torch, *conn;
};

static int64_t str(struct dbw *w, enum space space, const char *text)
{
	uint32_t id = np_intern_add(&w->strings[space], np_str_of(text));
	if (id == NP_ID_NONE)
		w->nomem = true;
	return ((int64_t)space << SPACE_SHIFT) + id;
}

#define ROW(w, stmt, ...)                                                                 \
	do {                                                                              \
		const int64_t row_[] = {__VA_ARGS__};                                     \
		np_db_out_row(&(w)->db, (stmt), row_, (int)(sizeof row_ / sizeof *row_)); \
	} while (0)

/* ── tables ── */

static const struct np_db_table tables[] = {
	{"SESSION_TIME_INFO", "startTimeNs INTEGER,endTimeNs INTEGER"},
	{"NPU_INFO", "id INTEGER,name TEXT"},
	{"HOST_INFO", "hostUid TEXT,hostName TEXT"},
	{"RANK_DEVICE_MAP", "rankId INTEGER, deviceId INTEGER"},
	{"META_DATA", "name TEXT,value TEXT"},
	{"STEP_TIME", "id INTEGER, startNs INTEGER, endNs INTEGER"},
	{"STRING_IDS", "id INTEGER PRIMARY KEY,value TEXT"},
	{"TASK",
         "startNs INTEGER,endNs INTEGER,deviceId INTEGER,connectionId INTEGER,globalTaskId INTEGER,"
         "globalPid INTEGER,taskType INTEGER,contextId INTEGER,streamId INTEGER,taskId "
         "INTEGER,modelId INTEGER"},
	{"CANN_API", "startNs INTEGER,endNs INTEGER,type INTEGER,globalTid INTEGER,connectionId "
                     "INTEGER PRIMARY KEY,"
                     "name INTEGER"},
	{"PYTORCH_API",
         "startNs TEXT, endNs TEXT, globalTid INTEGER, connectionId INTEGER, name INTEGER, "
         "sequenceNumber INTEGER, fwdThreadId INTEGER, inputDtypes INTEGER, inputShapes INTEGER, "
         "callchainId INTEGER, type INTEGER"},
	{"CONNECTION_IDS", "id INTEGER, connectionId INTEGER"},
	{"PYTORCH_CALLCHAINS", "id INTEGER, stack INTEGER, stackDepth INTEGER"},
	{"AICORE_FREQ", "deviceId INTEGER,timestampNs NUMERIC,freq INTEGER"},
	{"TASK_PMU_INFO", "globalTaskId INTEGER,name INTEGER,value NUMERIC"},
	{"NPU_MODULE_MEM",
         "moduleId INTEGER,timestampNs INTEGER,totalReserved NUMERIC,deviceId INTEGER"},
	{"MEMORY_RECORD",
         "component INTEGER, timestamp INTEGER, totalAllocated INTEGER, totalReserved INTEGER, "
         "totalActive INTEGER, streamPtr INTEGER, deviceId INTEGER"},
	{"OP_MEMORY", "name INTEGER, size INTEGER, allocationTime INTEGER, releaseTime INTEGER, "
                      "activeReleaseTime INTEGER, duration INTEGER, activeDuration INTEGER, "
                      "allocationTotalAllocated INTEGER, allocationTotalReserved INTEGER, "
                      "allocationTotalActive INTEGER, releaseTotalAllocated INTEGER, "
                      "releaseTotalReserved INTEGER, "
                      "releaseTotalActive INTEGER, streamPtr INTEGER, deviceId INTEGER"},
};

#define COMPUTE_TAIL                                                                              \
	"taskType INTEGER,opType INTEGER,inputFormats INTEGER,inputDataTypes INTEGER,"            \
	"inputShapes INTEGER,outputFormats INTEGER,outputDataTypes INTEGER,outputShapes INTEGER," \
	"attrInfo INTEGER"
#define COMM_OP                                                                                  \
	"opName INTEGER,startNs INTEGER,endNs INTEGER,connectionId INTEGER,groupName INTEGER,"   \
	"opId INTEGER PRIMARY KEY,relay INTEGER,retry INTEGER,dataType INTEGER,algType INTEGER," \
	"count NUMERIC,opType INTEGER"
#define COMM_TASK                                                                                  \
	"name INTEGER,globalTaskId INTEGER,taskType INTEGER,planeId INTEGER,groupName INTEGER,"    \
	"notifyId INTEGER,rdmaType INTEGER,srcRank INTEGER,dstRank INTEGER,transportType INTEGER," \
	"size INTEGER,dataType INTEGER,linkType INTEGER,opId INTEGER"

/* what changed since 2024 */
static const struct np_db_table compute_tables[] = {
	{"COMPUTE_TASK_INFO",
         "name INTEGER,globalTaskId INTEGER PRIMARY KEY,blockNum INTEGER,"
         "mixBlockNum INTEGER," COMPUTE_TAIL ",opState INTEGER,hf32Eligible INTEGER"},
	{"COMPUTE_TASK_INFO", "name INTEGER,globalTaskId INTEGER PRIMARY KEY,blockDim INTEGER,"
                              "mixBlockDim INTEGER," COMPUTE_TAIL},
};
static const struct np_db_table comm_op_tables[] = {
	{"COMMUNICATION_OP", COMM_OP ",deviceId INTEGER,rankSize INTEGER"},
	{"COMMUNICATION_OP", COMM_OP},
};
static const struct np_db_table comm_task_tables[] = {
	{"COMMUNICATION_TASK_INFO", COMM_TASK ",isMaster INTEGER,bandwidth NUMERIC"},
	{"COMMUNICATION_TASK_INFO", COMM_TASK},
};

struct enum_row {
	int32_t id;
	const char *name;
};
static const struct enum_row api_types[] = {{5000, "runtime"}, {5500, "communication"},
                                            {10000, "node"},   {15000, "model"},
                                            {20000, "acl"},    {50001, "op"},
                                            {50002, "queue"},  {50003, "trace"},
                                            {50004, "mstx"},   {0, NULL}};
static const struct enum_row data_types[] = {
	{0, "INT8"},  {1, "INT16"},  {2, "INT32"},  {3, "FP16"},    {4, "FP32"},
	{5, "INT64"}, {6, "UINT64"}, {11, "BFP16"}, {65534, "N/A"}, {65535, "INVALID_TYPE"},
	{0, NULL}};
static const struct enum_row link_types[] = {{0, "ON_CHIP"},
                                             {1, "HCCS"},
                                             {2, "PCIE"},
                                             {3, "ROCE"},
                                             {4, "SIO"},
                                             {5, "HCCS_SW"},
                                             {6, "STANDARD_ROCE"},
                                             {7, "RESERVED"},
                                             {65534, "N/A"},
                                             {65535, "INVALID_TYPE"},
                                             {0, NULL}};
static const struct enum_row transport_types[] = {
	{0, "SDMA"}, {1, "RDMA"}, {2, "LOCAL"}, {65534, "N/A"}, {65535, "INVALID_TYPE"}, {0, NULL}};
static const struct enum_row rdma_types[] = {{0, "RDMA_SEND_NOTIFY"},
                                             {1, "RDMA_SEND_PAYLOAD"},
                                             {2, "RDMA_PAYLOAD_PREPARE"},
                                             {3, "RDMA_PAYLOAD_CHECK"},
                                             {4, "RDMA_PAYLOAD_ACK"},
                                             {5, "RDMA_SEND_OP"},
                                             {65534, "N/A"},
                                             {65535, "INVALID_TYPE"},
                                             {0, NULL}};
static const struct enum_row mstx_types[] = {
	{0, "marker"}, {1, "push/pop"}, {2, "start/end"}, {3, "marker_ex"}, {0, NULL}};
static const struct {
	const char *name;
	const struct enum_row *rows;
} enums[] = {
	{"ENUM_API_TYPE", api_types},

	{"ENUM_HCCL_DATA_TYPE", data_types},
	{"ENUM_HCCL_LINK_TYPE", link_types},
	{"ENUM_HCCL_TRANSPORT_TYPE", transport_types},
	{"ENUM_HCCL_RDMA_TYPE", rdma_types},
	{"ENUM_MSTX_EVENT_TYPE", mstx_types},
};

static void put_enums(struct dbw *w)
{
	for (size_t i = 0; i < sizeof enums / sizeof *enums; i++) {
		struct np_db_table table = {enums[i].name, "id INTEGER PRIMARY KEY,name TEXT"};
		np_db_out_table(&w->db, &table);
		sqlite3_stmt *stmt = np_db_out_insert(&w->db, table.name, 2);
		for (const struct enum_row *row = enums[i].rows; row->name; row++) {
			np_db_out_int(&w->db, stmt, 1, row->id);
			np_db_out_text(&w->db, stmt, 2, row->name, strlen(row->name));
			np_db_out_step(&w->db, stmt);
		}
		np_db_out_done(&w->db, stmt);
	}
}

static void put_module_names(struct dbw *w)
{
	static const struct np_db_table table = {"ENUM_MODULE", "id INTEGER PRIMARY KEY,name TEXT"};
	np_db_out_table(&w->db, &table);
	sqlite3_stmt *stmt = np_db_out_insert(&w->db, table.name, 2);
	for (size_t m = 0; m < NP_SYNTH_MODULES; m++) {
		const char *name = np_synth_modules[m].name;
		np_db_out_int(&w->db, stmt, 1, np_synth_modules[m].id);
		np_db_out_text(&w->db, stmt, 2, name, strlen(name));
		np_db_out_step(&w->db, stmt);
	}
	np_db_out_done(&w->db, stmt);
}

static void put_pair(struct dbw *w, const char *table, const char *a, const char *b, size_t b_len)
{
	sqlite3_stmt *stmt = np_db_out_insert(&w->db, table, 2);
	np_db_out_text(&w->db, stmt, 1, a, strlen(a));
	np_db_out_text(&w->db, stmt, 2, b, b_len);
	np_db_out_step(&w->db, stmt);
	np_db_out_done(&w->db, stmt);
}

static void put_once(struct dbw *w, const char *table, const int64_t *values, int n)
{
	sqlite3_stmt *stmt = np_db_out_insert(&w->db, table, n);
	np_db_out_row(&w->db, stmt, values, n);
	np_db_out_done(&w->db, stmt);
}

/* What describes the capture: session, host, rank, steps, configuration. */
static void put_info(struct dbw *w)
{
	const struct np_synth_run *run = w->run;
	char uid[32], host[32];
	put_once(w, "SESSION_TIME_INFO", (int64_t[]){run->session_start_ns, run->session_end_ns},
	         2);
	put_pair(w, "NPU_INFO", "0", "Ascend910B", 10);
	(void)snprintf(uid, sizeof uid, "%llu", 3538958389648580163ull + run->host);
	(void)snprintf(host, sizeof host, "node%u", run->host);
	put_pair(w, "HOST_INFO", uid, host, strlen(host));
	bool unknown = np_synth_has(run, NP_SYNTH_RANK_UNKNOWN);
	put_once(w, "RANK_DEVICE_MAP", (int64_t[]){unknown ? -1 : (int64_t)run->rank, run->device},
	         2);
	put_pair(w, "META_DATA", "SCHEMA_VERSION", w->old ? "1.0.0" : "1.1.2", 5);
	put_pair(w, "META_DATA", "ENV_VARIABLES", np_synth_env_json, strlen(np_synth_env_json));
	struct np_buf groups = {.ptr = NULL};
	np_synth_groups_json(&groups, run);
	if (groups.failed)
		w->nomem = true;
	else
		put_pair(w, "META_DATA", "parallel_group_info", groups.ptr, groups.len);
	np_buf_release(&groups);
	if (run->plan->options.layout) {
		struct np_buf args = {.ptr = NULL};
		np_synth_distributed_json(&args, run);
		if (args.failed)
			w->nomem = true;
		else
			put_pair(w, "META_DATA", "distributed_args", args.ptr, args.len);
		np_buf_release(&args);
	}
	for (uint32_t s = 0; s < run->plan->options.steps; s++) {
		const struct np_synth_step *step = &run->steps[s];
		put_once(w, "STEP_TIME",
		         (int64_t[]){step->id, step->host_start_ns, step->host_end_ns}, 3);
	}
	if (np_synth_has(run, NP_SYNTH_HOST_ONLY))
		return;
	struct np_synth_freq samples[NP_SYNTH_MAX_FREQ];
	size_t n = np_synth_freq(run, samples);
	for (size_t i = 0; i < n; i++)
		put_once(w, "AICORE_FREQ", (int64_t[]){run->device, samples[i].ns, samples[i].mhz},
		         3);
}

/* ── one item ── */

static void put_pmu(struct dbw *w, const struct np_synth_item *item, int64_t task)
{
	static const struct {
		const char *time, *ratio; /* one of them or both, of a share */
	} names[NP_PMU_VALUES] = {
		[NP_PMU_AIC_TIME] = {"aic_total_time", NULL},
		[NP_PMU_AIC_CYCLES] = {"aic_total_cycles", NULL},
		[NP_PMU_AIC_MAC] = {"aic_mac_time", "aic_mac_ratio"},
		[NP_PMU_AIC_SCALAR] = {"aic_scalar_time", "aic_scalar_ratio"},
		[NP_PMU_AIC_MTE1] = {"aic_mte1_time", "aic_mte1_ratio"},
		[NP_PMU_AIC_MTE2] = {"aic_mte2_time", "aic_mte2_ratio"},
		[NP_PMU_AIC_FIXPIPE] = {"aic_fixpipe_time", "aic_fixpipe_ratio"},
		[NP_PMU_AIC_ICACHE] = {NULL, "aic_icache_miss_rate"},
		[NP_PMU_AIV_TIME] = {"aiv_total_time", NULL},
		[NP_PMU_AIV_CYCLES] = {"aiv_total_cycles", NULL},
		[NP_PMU_AIV_VEC] = {"aiv_vec_time", "aiv_vec_ratio"},
		[NP_PMU_AIV_SCALAR] = {"aiv_scalar_time", "aiv_scalar_ratio"},
		[NP_PMU_AIV_MTE2] = {"aiv_mte2_time", "aiv_mte2_ratio"},
		[NP_PMU_AIV_MTE3] = {"aiv_mte3_time", "aiv_mte3_ratio"},
		[NP_PMU_AIV_ICACHE] = {NULL, "aiv_icache_miss_rate"},
	};
	int64_t pmu[NP_PMU_VALUES];
	np_synth_pmu(w->run, item, pmu);
	for (int i = 0; i < NP_PMU_VALUES; i++) {
		int64_t total = pmu[i < NP_PMU_AIV_TIME ? NP_PMU_AIC_TIME : NP_PMU_AIV_TIME];
		for (int ratio = 0; ratio < 2; ratio++) {
			const char *name = ratio ? names[i].ratio : names[i].time;
			if (!name)
				continue;
			np_db_out_int(&w->db, w->pmu, 1, task);
			np_db_out_int(&w->db, w->pmu, 2, str(w, CANN, name));
			if (ratio)
				np_db_out_real(&w->db, w->pmu, 3, (double)pmu[i] / 1000);
			else
				np_db_out_int(&w->db, w->pmu, 3,
				              names[i].ratio ? total * pmu[i] / 1000 : pmu[i]);
			np_db_out_step(&w->db, w->pmu);
		}
	}
}

static void put_task(struct dbw *w, const struct np_synth_item *item, const char *type,
                     int64_t context)
{
	ROW(w, w->task, item->start_ns, item->start_ns + np_synth_written_dur(item), w->run->device,
	    item->conn, w->next_task, w->run->pid, str(w, CANN, type), context, 2, item->task,
	    NONE32);
}

static void put_kernel(struct dbw *w, const struct np_synth_item *item)
{
	const struct np_synth_op *op = &np_synth_ops[item->op];
	char scratch[64], shapes[64];
	int64_t task = w->next_task;
	put_task(w, item, np_synth_task_type(op->core), op->core == NP_CORE_MIX ? 0 : NONE32);
	const int64_t row[] = {str(w, CANN, np_synth_item_name(w->run, item, scratch)),
	                       task,
	                       op->blocks,
	                       op->mix_blocks,
	                       str(w, CANN, np_synth_core_name(op->core)),
	                       str(w, CANN, op->type),
	                       str(w, CANN, op->in_formats),
	                       str(w, CANN, op->in_types),
	                       str(w, CANN, np_synth_in_shapes(w->run, item, shapes)),
	                       str(w, CANN, op->out_formats),
	                       str(w, CANN, op->out_types),
	                       str(w, CANN, op->out_shapes),
	                       str(w, CANN, "N/A"),
	                       str(w, CANN, "dynamic"),
	                       str(w, CANN, op->hf32 ? "YES" : "NO")};
	np_db_out_row(&w->db, w->compute, row, w->old ? 13 : 15);
	if (w->run->level > 0 && op->core != NP_CORE_AICPU &&
	    !np_synth_has(w->run, NP_SYNTH_NA_METRICS))
		put_pmu(w, item, task);
	w->next_task++;
}

static void put_comm_task(struct dbw *w, const struct np_synth_item *item, int64_t op,
                          int64_t group, const struct np_synth_comm_task *task, int64_t context)
{
	static const char *const names[] = {"Notify_Record", "Notify_Wait", "Memcpy",
	                                    "Reduce_Inline", "RDMASend"};
	static const char *const types[] = {"Write Value", "Notify Wait", "SDMA", "SDMA",
	                                    "Write Value"};
	const struct np_synth_group *members = &w->run->plan->groups[item->group];
	bool notify = task->name == NP_COMM_NOTIFY_WAIT || task->name == NP_COMM_NOTIFY_RECORD;
	char scratch[64];
	ROW(w, w->task, task->start_ns, task->start_ns + task->dur_ns, w->run->device, item->conn,
	    w->next_task, w->run->pid, str(w, CANN, types[task->name]), context, 4, item->task,
	    NONE32);
	int sync = task->name == NP_COMM_REDUCE && task->on_chip;
	const int64_t row[] = {str(w, CANN, np_synth_item_name(w->run, item, scratch)),
	                       w->next_task++,
	                       str(w, CANN, names[task->name]),
	                       task->plane,
	                       group,
	                       notify ? ((int64_t)task->dst << 32) + 84 + task->plane : INT64_MAX,
	                       !task->rdma     ? 65535
	                       : task->payload ? 1
	                                       : 0,
	                       np_synth_member(members, w->run->rank),
	                       sync ? NONE32 : task->dst,
	                       task->rdma                          ? 1
	                       : task->name == NP_COMM_NOTIFY_WAIT ? 2
	                                                           : 0,
	                       (int64_t)task->len_bytes,
	                       task->name == NP_COMM_REDUCE ? 4 : 65535,
	                       task->on_chip    ? 0
	                       : !task->payload ? 65535
	                       : task->rdma     ? 3
	                                        : 1,
	                       op,
	                       task->plane == 0};
	for (int i = 0; i < (w->old ? 14 : 15); i++)
		np_db_out_int(&w->db, w->comm_task, i + 1, row[i]);
	if (!w->old)
		np_db_out_real(
			&w->db, w->comm_task, 16,
			(double)(task->payload ? np_synth_gbps(task->len_bytes, task->dur_ns) : 0) /
				1e4);
	np_db_out_step(&w->db, w->comm_task);
}

static void put_comm(struct dbw *w, const struct np_synth_item *item)
{
	const struct np_synth_group *members = &w->run->plan->groups[item->group];
	struct np_synth_comm_task tasks[NP_SYNTH_MAX_COMM_TASKS];
	char scratch[64], scratch2[32], hash[24];
	(void)snprintf(hash, sizeof hash, "%llu", (unsigned long long)members->hash);
	int64_t group = str(w, CANN, hash), op = w->next_op++;
	const int64_t row[] = {str(w, CANN, np_synth_item_name(w->run, item, scratch)),
	                       item->start_ns,
	                       item->start_ns + item->dur_ns,
	                       item->conn,
	                       group,
	                       op,
	                       0,
	                       0,
	                       4,
	                       str(w, CANN, "MESH-RING"),
	                       (int64_t)item->len_bytes / 4,
	                       str(w, CANN, np_synth_comm_type(item, scratch2)),
	                       w->run->device,
	                       members->count};
	np_db_out_row(&w->db, w->comm_op, row, w->old ? 12 : 14);
	size_t n = np_synth_comm_tasks(w->run, item, tasks);
	for (size_t i = 0; i < n; i++)
		put_comm_task(w, item, op, group, &tasks[i], (int64_t)i);
}

static int64_t global_tid(const struct np_synth_run *run, uint32_t tid)
{
	return (int64_t)run->pid << 32 | tid;
}

static void put_api(struct dbw *w, const struct np_synth_item *item)
{
	const struct np_synth_run *run = w->run;
	int64_t deq = global_tid(run, run->deq_tid);
	if (item->kind == NP_ITEM_COPY) {
		ROW(w, w->cann, item->launch_ns, item->launch_ns + NP_COPY_API_NS, 20000,
		    global_tid(run, run->pid), item->conn, str(w, CANN, "aclrtMemcpyAsync"));
		return;
	}
	ROW(w, w->cann, item->launch_ns, item->launch_ns + np_synth_launch_len(item), 10000, deq,
	    item->conn, str(w, CANN, "launch"));
	if (item->kind != NP_ITEM_KERNEL)
		return;
	np_ns acl = item->launch_ns - NP_ACL_LEAD_NS,
	      runtime = item->launch_ns + NP_RUNTIME_LEAD_NS;
	ROW(w, w->cann, acl, acl + np_synth_acl_len(item), 20000, deq, item->conn + 1,
	    str(w, CANN, np_synth_ops[item->op].acl));
	if (run->level > 1)
		ROW(w, w->cann, runtime, runtime + np_synth_runtime_len(item), 5000, deq,
		    item->conn + 2, str(w, CANN, NP_RUNTIME_CALL));
}

/* A framework row; `conn` NP_DB_NULL: none, else CONNECTION_IDS gets it. */
static void put_torch(struct dbw *w, np_ns start, np_ns dur, uint32_t tid, const char *prefix,
                      const char *name, int64_t conn, int64_t type)
{
	char text[128];
	int64_t id = NP_DB_NULL, op = type == 50001 ? 0 : NP_DB_NULL;
	(void)snprintf(text, sizeof text, "%s%s", prefix, name);
	if (conn != NP_DB_NULL) {
		id = w->next_conn++;
		ROW(w, w->conn, id, conn);
	}
	ROW(w, w->torch, start, start + dur, global_tid(w->run, tid), id, str(w, TORCH, text),
	    op == 0 ? -1 : NP_DB_NULL, op, NP_DB_NULL, NP_DB_NULL, NP_DB_NULL, type);
}

static void put_framework(struct dbw *w, const struct np_synth_item *item)
{
	const struct np_synth_run *run = w->run;
	bool copy = item->kind == NP_ITEM_COPY;
	int64_t corr = copy ? NP_DB_NULL : (int64_t)item->corr + CORR_OFFSET;
	const char *inner = np_synth_inner_op(item);
	int64_t outer = corr;
	if (run->plan->options.layout) /* as today: the queue's id is not the operator's */
		outer = item->pair ? FWD_BWD_OFFSET + ((int64_t)item->step << 20) + item->pair
		                   : NP_DB_NULL;
	put_torch(w, item->host_ns, item->host_dur_ns, run->pid, "", np_synth_outer_op(item), outer,
	          50001);
	put_torch(w, item->host_ns + NP_INNER_NS, item->host_dur_ns - 2 * NP_INNER_NS, run->pid, "",
	          inner, item->conn, 50001);
	if (copy)
		return;
	put_torch(w, np_synth_enqueue_ns(item), NP_ENQUEUE_NS, run->pid, "Enqueue@", inner, corr,
	          50002);
	put_torch(w, item->launch_ns - NP_DEQUEUE_LEAD_NS, np_synth_dequeue_len(item), run->deq_tid,
	          "Dequeue@", inner, corr, 50002);
}

/* ── mstx ── */

enum { MSTX_RANGE = 2, MSTX_MARK = 3, MARK_STREAM = 77, MARK_NS = 50 };

struct mstx {
	sqlite3_stmt *events;
	int64_t next;
};

static void put_event(struct dbw *w, struct mstx *mstx, np_ns start, np_ns end, int64_t type,
                      const char *domain, const char *message, int64_t conn)
{
	int64_t tid = global_tid(w->run, w->run->pid);
	ROW(w, mstx->events, start, end, type, type == MSTX_RANGE ? mstx->next : 0, 0,
	    str(w, CANN, message), tid, tid, str(w, CANN, domain), conn);
}

/* What the device does when the stream reaches a mark. */
static void put_mark_task(struct dbw *w, np_ns start, np_ns end, int64_t conn)
{
	if (np_synth_has(w->run, NP_SYNTH_HOST_ONLY))
		return;
	int64_t task = w->next_task++;
	ROW(w, w->task, start, end, w->run->device, conn, task, w->run->pid,
	    str(w, CANN, "STARS_COMMON"), NONE32, MARK_STREAM, task & 0xffff, NONE32);
}

static void put_instant(struct dbw *w, struct mstx *mstx, np_ns at, np_ns dev, const char *message)
{
	int64_t conn = MSTX_OFFSET + mstx->next++;
	put_event(w, mstx, at, at, MSTX_MARK, "default", message, conn);
	put_mark_task(w, dev, dev + MARK_NS, conn);
	put_torch(w, at, 100, w->run->pid, "", "mstx_mark_op", conn, 50004);
}

/* Half of what the shapes say: a kernel that did all of it in its time would be faster
 * than the chip. */
static uint64_t flops_of(const struct np_synth_run *run, uint32_t op)
{
	uint32_t rows = op == NP_OP_GROUPED ? np_synth_tokens(run->plan, run->rank, run->faults)
	                                    : NP_EXPERT_TOKENS;
	return np_synth_flops(op, rows) / 2;
}

static void put_mark(struct dbw *w, struct mstx *mstx, const struct np_synth_mark *mark)
{
	static const char *const modules[] = {[NP_MARK_ATTENTION] = "SelfAttention",
	                                      [NP_MARK_MLP] = "MLP",
	                                      [NP_MARK_MOE] = "MoELayer"};
	char text[64];
	int64_t conn = MSTX_OFFSET + mstx->next;
	switch ((enum np_synth_mark_kind)mark->kind) {
	case NP_MARK_FORWARD:
	case NP_MARK_BACKWARD:
		put_event(w, mstx, mark->start_ns, mark->end_ns, MSTX_RANGE, "default",
		          mark->kind == NP_MARK_FORWARD ? "forward_step" : "backward_step", conn);
		put_mark_task(w, mark->dev_start_ns, mark->dev_end_ns, conn);
		break;
	case NP_MARK_LOADER:
		put_instant(w, mstx, mark->start_ns, mark->dev_start_ns, "dataloader_start");
		put_instant(w, mstx, mark->end_ns, mark->dev_end_ns, "dataloader_stop");
		return;
	case NP_MARK_FLOPS:
		(void)snprintf(text, sizeof text, "%llu-%s",
		               (unsigned long long)flops_of(w->run, mark->n),
		               np_synth_ops[mark->n].type);
		put_event(w, mstx, mark->start_ns, mark->end_ns, MSTX_RANGE, "mfu_flops", text,
		          NONE32);
		break;
	case NP_MARK_LAYER:
		(void)snprintf(text, sizeof text, "TransformerLayer_%u", mark->n);
		put_event(w, mstx, mark->start_ns, mark->end_ns, MSTX_RANGE, "Module", text,
		          NONE32);
		break;
	default:
		put_event(w, mstx, mark->start_ns, mark->end_ns, MSTX_RANGE, "Module",
		          modules[mark->kind], NONE32);
		break;
	}
	mstx->next++;
}

static void put_mstx(struct dbw *w)
{
	static const struct np_db_table table = {
		"MSTX_EVENTS",
		"startNs INTEGER,endNs INTEGER,eventType INTEGER,rangeId INTEGER,category INTEGER,"
		"message INTEGER,globalTid INTEGER,endGlobalTid INTEGER,domainId INTEGER,"
		"connectionId INTEGER"};
	if (w->run->marks.n == 0)
		return;
	np_db_out_table(&w->db, &table);
	struct mstx mstx = {.events = np_db_out_insert(&w->db, table.name, 10)};
	for (size_t i = 0; i < w->run->marks.n && !w->nomem; i++)
		put_mark(w, &mstx, &w->run->marks.v[i]);
	np_db_out_done(&w->db, mstx.events);
}

static void put_gc(struct dbw *w)
{
	static const struct np_db_table table = {
		"GC_RECORD", "startNs INTEGER, endNs INTEGER, globalTid INTEGER"};
	const struct np_synth_run *run = w->run;
	np_db_out_table(&w->db, &table);
	for (size_t i = 0; i < run->stalls.n; i++)
		put_once(w, table.name,
		         (int64_t[]){run->stalls.v[i].start_ns, run->stalls.v[i].end_ns,
		                     global_tid(run, run->pid)},
		         3);
}

/* What idle faults leave: on the host, in CANN, on the stream. */
static void put_stalls(struct dbw *w)
{
	const struct np_synth_run *run = w->run;
	bool device = !np_synth_has(run, NP_SYNTH_HOST_ONLY);
	for (size_t i = 0; i < run->stalls.n; i++) {
		const struct np_synth_stall *stall = &run->stalls.v[i];
		const char *name = np_synth_stall_op(stall);
		if (name)
			put_torch(w, stall->start_ns, stall->end_ns - stall->start_ns, run->pid, "",
			          name, NP_DB_NULL, 50001);
		if (stall->fault == NP_SYNTH_IDLE_SYNC && device)
			ROW(w, w->cann, stall->start_ns + NP_INNER_NS, stall->end_ns - NP_INNER_NS,
			    20000, global_tid(run, run->pid), stall->conn,
			    str(w, CANN, NP_STALL_SYNC_CALL));
		else if (stall->fault == NP_SYNTH_IDLE_DEPENDENCY && device)
			ROW(w, w->task, stall->start_ns, stall->end_ns, run->device, stall->conn,
			    w->next_task++, run->pid, str(w, CANN, "EVENT_WAIT"), NONE32, 2,
			    stall->task, NONE32);
	}
	if (run->stalls.n > 0 && run->stalls.v[0].fault == NP_SYNTH_IDLE_GC)
		put_gc(w);
}

static void put_items(struct dbw *w)
{
	const struct np_synth_run *run = w->run;
	bool device = !np_synth_has(run, NP_SYNTH_HOST_ONLY);
	for (uint32_t s = 0; s < run->plan->options.steps; s++) {
		char name[32];
		const struct np_synth_step *step = &run->steps[s];
		(void)snprintf(name, sizeof name, "%u", step->id);
		put_torch(w, step->host_start_ns, step->host_end_ns - step->host_start_ns, run->pid,
		          "ProfilerStep#", name, NP_DB_NULL, 50001);
	}
	for (size_t i = 0; i < run->items.n && !w->nomem; i++) {
		const struct np_synth_item *item = &run->items.v[i];
		put_framework(w, item);
		if (!device || (item->kind == NP_ITEM_COMM && run->n_comms == 0))
			continue;
		put_api(w, item);
		if (item->kind == NP_ITEM_KERNEL) {
			put_kernel(w, item);
		} else if (item->kind == NP_ITEM_COMM) {
			put_comm(w, item);
		} else {
			put_task(w, item, "MEMCPY_ASYNC", NONE32);
			w->next_task++;
		}
	}
}

/* ── memory ── */

static void put_memory(struct dbw *w)
{
	const struct np_synth_run *run = w->run;
	sqlite3_stmt *record = np_db_out_insert(&w->db, "MEMORY_RECORD", 7);
	for (size_t i = 0; i < run->mem_events.n; i++) {
		const struct np_synth_mem_event *event = &run->mem_events.v[i];
		int64_t total = (int64_t)event->total_bytes;
		for (int sum = 0; sum < 2; sum++)
			ROW(w, record, str(w, MEMORY, sum ? "PTA+GE" : "PTA"), event->ns, total,
			    NP_MEM_RESERVED_BYTES, total, 2, run->device);
	}
	np_db_out_done(&w->db, record);
	sqlite3_stmt *op = np_db_out_insert(&w->db, "OP_MEMORY", 15);
	for (size_t i = 0; i < run->mem.n; i++) {
		const struct np_synth_mem *mem = &run->mem.v[i];
		bool freed = mem->free_ns != 0;
		int64_t alloc = (int64_t)mem->alloc_total_bytes,
			rest = (int64_t)mem->free_total_bytes;
		int64_t at = freed ? mem->free_ns : NP_DB_NULL;
		int64_t dur = freed ? mem->free_ns - mem->alloc_ns : NP_DB_NULL;
		ROW(w, op, str(w, MEMORY, np_synth_ops[mem->op].aten), (int64_t)mem->size_bytes,
		    mem->alloc_ns, at, at, dur, dur, alloc, NP_MEM_RESERVED_BYTES, alloc,
		    freed ? rest : NP_DB_NULL, freed ? (int64_t)NP_MEM_RESERVED_BYTES : NP_DB_NULL,
		    freed ? rest : NP_DB_NULL, 2, run->device);
	}
	np_db_out_done(&w->db, op);
}

static void put_module_memory(struct dbw *w)
{
	const struct np_synth_run *run = w->run;
	sqlite3_stmt *stmt = np_db_out_insert(&w->db, "NPU_MODULE_MEM", 4);
	for (size_t m = 0; m < NP_SYNTH_MODULES; m++) {
		np_ns at = run->session_start_ns + NP_SYNTH_FIRST_SAMPLE_NS;
		for (int i = 0; i < NP_SYNTH_MAX_SAMPLES && at < run->session_end_ns; i++) {
			ROW(w, stmt, np_synth_modules[m].id, at,
			    (int64_t)np_synth_modules[m].kb * 1024, run->device);
			at += NP_SYNTH_SAMPLE_NS;
		}
	}
	np_db_out_done(&w->db, stmt);
}

static void put_strings(struct dbw *w)
{
	sqlite3_stmt *stmt = np_db_out_insert(&w->db, "STRING_IDS", 2);
	for (int s = 0; s < SPACES; s++) {
		for (size_t i = 0; i < w->strings[s].strings.n; i++) {
			np_str value = w->strings[s].strings.v[i];
			np_db_out_int(&w->db, stmt, 1, ((int64_t)s << SPACE_SHIFT) + (int64_t)i);
			np_db_out_text(&w->db, stmt, 2, value.len ? value.ptr : "", value.len);
			np_db_out_step(&w->db, stmt);
		}
	}
	np_db_out_done(&w->db, stmt);
}

/* ── together ── */

static void make_tables(struct dbw *w)
{
	for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
		np_db_out_table(&w->db, &tables[i]);
	np_db_out_table(&w->db, &compute_tables[w->old]);
	if (w->run->n_comms > 0) {
		np_db_out_table(&w->db, &comm_op_tables[w->old]);
		np_db_out_table(&w->db, &comm_task_tables[w->old]);
		w->comm_op = np_db_out_insert(&w->db, "COMMUNICATION_OP", w->old ? 12 : 14);
		w->comm_task =
			np_db_out_insert(&w->db, "COMMUNICATION_TASK_INFO", w->old ? 14 : 16);
	}
	w->task = np_db_out_insert(&w->db, "TASK", 11);
	w->compute = np_db_out_insert(&w->db, "COMPUTE_TASK_INFO", w->old ? 13 : 15);
	w->pmu = np_db_out_insert(&w->db, "TASK_PMU_INFO", 3);
	w->cann = np_db_out_insert(&w->db, "CANN_API", 6);
	w->torch = np_db_out_insert(&w->db, "PYTORCH_API", 11);
	w->conn = np_db_out_insert(&w->db, "CONNECTION_IDS", 2);
}

static void finalize(struct dbw *w)
{
	sqlite3_stmt *const all[] = {w->task,      w->compute, w->pmu,   w->comm_op,
	                             w->comm_task, w->cann,    w->torch, w->conn};
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		np_db_out_done(&w->db, all[i]);
}

enum np_status np_synth_write_profiler_db(const struct np_synth_run *run, const char *dir,
                                          struct np_synth_stats *stats, struct np_err *err)
{
	char name[64] = "ascend_pytorch_profiler.db";
	if (!np_synth_has(run, NP_SYNTH_RANK_UNKNOWN))
		(void)snprintf(name, sizeof name, "ascend_pytorch_profiler_%u.db", run->rank);
	struct dbw w = {.run = run, .old = np_synth_has(run, NP_SYNTH_OLD_HEADER), .next_op = 1};
	NP_TRY(np_db_out_open(&w.db, dir, name, err));
	for (int s = 0; s < SPACES; s++)
		if (!np_intern_init(&w.strings[s]))
			w.nomem = true;
	if (!w.nomem) {
		make_tables(&w);
		put_enums(&w);
		put_module_names(&w);
		put_info(&w);
		if (!run->plan->options.lite) {
			put_items(&w);
			put_stalls(&w);
			put_mstx(&w);
			put_memory(&w);
			if (!np_synth_has(run, NP_SYNTH_HOST_ONLY))
				put_module_memory(&w);
		}
		put_strings(&w);
		finalize(&w);
		np_db_out_exec(&w.db, "CREATE INDEX TaskIndex ON TASK (startNs,globalTaskId)");
		if (run->n_comms > 0)
			np_db_out_exec(&w.db, "CREATE INDEX CommunicationTaskIndex ON "
			                      "COMMUNICATION_TASK_INFO (globalTaskId)");
	}
	for (int s = 0; s < SPACES; s++)
		np_intern_release(&w.strings[s]);
	enum np_status status = np_db_out_close(&w.db, stats, w.nomem ? NULL : err);
	return w.nomem ? np_err_nomem(err) : status;
}
