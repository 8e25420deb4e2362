/*
 * Collectives: COMMUNICATION_OP, and COMMUNICATION_TASK_INFO and
 * COMMUNICATION_SCHEDULE_TASK_INFO ⋈ TASK.
 */
#include <sqlite3.h>

#include "capture/db_load.h"

/* ── COMMUNICATION_OP ── */

#define OP_COLUMNS(X)           \
	X(NAME, "opName")       \
	X(START, "startNs")     \
	X(END, "endNs")         \
	X(CONN, "connectionId") \
	X(GROUP, "groupName")   \
	X(ID, "opId")           \
	X(DTYPE, "dataType")    \
	X(ALGORITHM, "algType") \
	X(COUNT, "count")       \
	X(DEVICE, "deviceId")   \
	X(TYPE, "opType")

enum {
#define X(id, name) O_##id,
	OP_COLUMNS(X)
#undef X
		N_OP,
};

static const char *const op_columns[] = {
#define X(id, name) name,
	OP_COLUMNS(X)
#undef X
};

static enum np_status op_row(struct np_dbl *self, const struct np_db_value *row)
{
	np_ns start = np_dbl_i64(&row[O_START]), dur;
	if (!np_dbl_time(self, start, np_dbl_i64(&row[O_END]), &dur))
		return NP_OK;
	struct np_comm_ops *o = &self->ops;
	size_t i = np_rows_add(o, &np_comm_ops_desc);
	if (i == SIZE_MAX || !np_ids_put(&self->op_of, np_dbl_i64(&row[O_ID]), (uint32_t)i))
		return np_err_nomem(self->err);
	o->name[i] = np_dbl_string(self, &row[O_NAME]);
	o->type[i] = np_dbl_string_na(self, &row[O_TYPE]);
	if (o->type[i] == NP_ID_NONE && o->name[i] != NP_ID_NONE &&
	    (o->type[i] = np_profile_comm_type(self->profile, o->name[i])) == NP_ID_NONE)
		return np_err_nomem(self->err);
	o->group[i] = np_dbl_string_na(self, &row[O_GROUP]);
	o->algorithm[i] = np_dbl_string_na(self, &row[O_ALGORITHM]);
	o->dtype[i] = np_ids_get(&self->dtypes, np_dbl_i64(&row[O_DTYPE]));
	int64_t count = np_dbl_i64(&row[O_COUNT]);
	o->count[i] = count >= 0 ? count : NP_NO_I64;
	o->device[i] = np_dbl_u32(&row[O_DEVICE]);
	o->start_ns[i] = start;
	o->dur_ns[i] = dur;
	o->conn[i] = np_dbl_conn(&row[O_CONN]);
	o->step[i] = NP_NO_U32;
	if (o->device[i] == NP_NO_U32 && o->conn[i] != NP_NO_I64 &&
	    !np_ids_put(&self->conn_device, o->conn[i], NP_DBL_UNSEEN))
		return np_err_nomem(self->err);
	return NP_OK;
}

/* ── COMMUNICATION_TASK_INFO ── */

#define COMM_TASK_COLUMNS(X)          \
	X(ID, "globalTaskId")         \
	X(TYPE, "taskType")           \
	X(PLANE, "planeId")           \
	X(NOTIFY, "notifyId")         \
	X(SRC, "srcRank")             \
	X(DST, "dstRank")             \
	X(TRANSPORT, "transportType") \
	X(SIZE, "size")               \
	X(LINK, "linkType")           \
	X(OP, "opId")

enum {
#define X(id, name) K_##id,
	COMM_TASK_COLUMNS(X)
#undef X
		N_COMM_TASK,
};

static const char *const comm_task_columns[] = {
#define X(id, name) name,
	COMM_TASK_COLUMNS(X)
#undef X
};

/* The exporter saturates "none", 2^64 - 1, at the end of SQLite's integers. */
static uint64_t notify_id(const struct np_db_value *value)
{
	int64_t id = np_dbl_i64(value);
	return id < 0 || id == INT64_MAX ? UINT64_MAX : (uint64_t)id;
}

static enum np_status comm_task_row(struct np_dbl *self, const struct np_db_value *row)
{
	struct np_comm_tasks *c = &self->profile->comm_tasks;
	size_t i = np_profile_add(self->profile, comm_tasks);
	if (i == SIZE_MAX)
		return np_err_nomem(self->err);
	c->start_ns[i] = NP_NO_I64; /* pending: TASK has the times */
	c->dur_ns[i] = 0;
	c->device[i] = c->stream[i] = c->task[i] = NP_NO_U32;
	if (!np_ids_put(&self->comm_task_of, np_dbl_i64(&row[K_ID]), (uint32_t)i))
		return np_err_nomem(self->err);
	uint32_t op = np_ids_get(&self->op_of, np_dbl_i64(&row[K_OP]));
	c->op[i] = op == NP_IDS_NONE ? NP_NO_U32 : op + (uint32_t)self->first_comm_op;
	c->name[i] = np_dbl_string_na(self, &row[K_TYPE]);
	c->plane[i] = np_dbl_u32(&row[K_PLANE]);
	c->src_rank[i] = np_dbl_u32(&row[K_SRC]);
	c->dst_rank[i] = np_dbl_u32(&row[K_DST]);
	c->transport[i] = np_ids_get(&self->transports, np_dbl_i64(&row[K_TRANSPORT]));
	c->link[i] = np_ids_get(&self->links, np_dbl_i64(&row[K_LINK]));
	int64_t size = np_dbl_i64(&row[K_SIZE]);
	c->size_bytes[i] = size >= 0 ? size : NP_NO_I64;
	/* Level0 knows nothing of a task and writes 0 here */
	c->notify[i] = c->name[i] == NP_ID_NONE ? UINT64_MAX : notify_id(&row[K_NOTIFY]);
	return NP_OK;
}

enum np_status np_dbl_read_comm(struct np_dbl *self)
{
	bool ops, tasks;
	NP_TRY(np_dbl_scan(self, "COMMUNICATION_OP", op_columns, N_OP, op_row, &ops));
	if (ops)
		self->profile->loaded |= self->what & (NP_COMM_OPS | NP_COMM | NP_KERNELS);
	if (!(self->what & NP_COMM))
		return NP_OK;
	NP_TRY(np_dbl_scan(self, "COMMUNICATION_TASK_INFO", comm_task_columns, N_COMM_TASK,
	                   comm_task_row, &tasks));
	if (tasks)
		self->profile->loaded |= NP_COMM;
	return NP_OK;
}

/* ── COMMUNICATION_SCHEDULE_TASK_INFO ── */

enum { S_ID, S_NAME, S_CORE, S_TYPE, N_SCHEDULE };

static enum np_status schedule_row(struct np_dbl *self, const struct np_db_value *row)
{
	size_t i = np_profile_add(self->profile, comm_schedule);
	if (i == SIZE_MAX)
		return np_err_nomem(self->err);
	struct np_comm_schedule *s = &self->profile->comm_schedule;
	s->start_ns[i] = NP_NO_I64; /* pending */
	s->dur_ns[i] = 0;
	s->device[i] = s->stream[i] = s->task[i] = s->context[i] = s->model[i] = NP_NO_U32;
	s->conn[i] = NP_NO_I64;
	s->name[i] = np_dbl_string_na(self, &row[S_NAME]);
	s->core[i] = np_dbl_string_na(self, &row[S_CORE]);
	s->type[i] = np_dbl_string_na(self, &row[S_TYPE]);
	if (!np_ids_put(&self->schedule_of, np_dbl_i64(&row[S_ID]), (uint32_t)i))
		return np_err_nomem(self->err);
	return NP_OK;
}

enum np_status np_dbl_read_schedule(struct np_dbl *self)
{
	static const char *const columns[] = {"globalTaskId", "name", "taskType", "opType"};
	bool found;
	NP_TRY(np_dbl_scan(self, "COMMUNICATION_SCHEDULE_TASK_INFO", columns, N_SCHEDULE,
	                   schedule_row, &found));
	if (found)
		self->profile->loaded |= NP_COMM_SCHEDULE;
	return NP_OK;
}

/* ── devices ── */

bool np_dbl_comm_device(struct np_dbl *self, int64_t conn, uint32_t device)
{
	uint32_t known = np_ids_get(&self->conn_device, conn);
	if (known == NP_IDS_NONE || known == device || device >= NP_DBL_MANY)
		return true;
	return np_ids_put(&self->conn_device, conn, known == NP_DBL_UNSEEN ? device : NP_DBL_MANY);
}

/* The devices of the ops' own tasks: for captures of several devices whose connections
 * don't tell (rare, so libsqlite3 may take its time). Damage ends it early. */
static void devices_of_tasks(struct np_dbl *self)
{
	static const char query[] =
		"SELECT c.opId, min(t.deviceId), max(t.deviceId) FROM COMMUNICATION_TASK_INFO c "
		"JOIN TASK t ON t.globalTaskId = c.globalTaskId GROUP BY c.opId";
	sqlite3_stmt *stmt = NULL;
	if (sqlite3_prepare_v2(np_db_handle(self->db), query, -1, &stmt, NULL) != SQLITE_OK)
		return;
	while (sqlite3_step(stmt) == SQLITE_ROW) {
		uint32_t op = np_ids_get(&self->op_of, sqlite3_column_int64(stmt, 0));
		sqlite3_int64 low = sqlite3_column_int64(stmt, 1),
			      high = sqlite3_column_int64(stmt, 2);
		if (op != NP_IDS_NONE && self->ops.device[op] == NP_NO_U32 && low == high &&
		    low >= 0 && low < NP_DBL_MANY)
			self->ops.device[op] = (uint32_t)low;
	}
	(void)sqlite3_finalize(stmt);
}

/* Without a look at TASK: the device of a rank that has only one. */
static enum np_status map_row(struct np_dbl *self, const struct np_db_value *row)
{
	np_dbl_note_device(self, np_dbl_u32(&row[0]));
	return NP_OK;
}

static void find_devices(struct np_dbl *self)
{
	struct np_comm_ops *o = &self->ops;
	bool missing = false;
	for (size_t i = 0; i < o->n; i++) {
		if (o->device[i] != NP_NO_U32)
			continue;
		uint32_t device = np_ids_get(&self->conn_device, o->conn[i]);
		if (device < NP_DBL_MANY)
			o->device[i] = device;
		else
			missing = true;
	}
	if (missing && self->tasks_seen && self->only_device == NP_DBL_MANY)
		devices_of_tasks(self);
	for (size_t i = 0; i < o->n && self->only_device < NP_DBL_MANY; i++)
		if (o->device[i] == NP_NO_U32)
			o->device[i] = self->only_device;
}

/* ── as kernels ── */

enum np_status np_dbl_close_comm(struct np_dbl *self)
{
	static const char *const device[] = {"deviceId"};
	if (!self->tasks_seen && self->ops.n)
		NP_TRY(np_dbl_scan(self, "RANK_DEVICE_MAP", device, 1, map_row, NULL));
	find_devices(self);
	if (!(self->what & NP_KERNELS) || self->ops.n == 0)
		return NP_OK;
	struct np_profile *p = self->profile;
	uint32_t core = np_intern_add(&p->strings, NP_STR("COMMUNICATION"));
	bool ok = core != NP_ID_NONE;
	for (size_t op = 0; ok && op < self->ops.n; op++) {
		size_t i = np_dbl_add_kernel(self);
		if (i == SIZE_MAX)
			return np_err_nomem(self->err);
		struct np_kernels *k = &p->kernels;
		int64_t conn = self->ops.conn[op];
		k->name[i] = self->ops.name[op];
		k->type[i] = np_profile_comm_type(p, self->ops.name[op]);
		ok = k->type[i] != NP_ID_NONE || k->name[i] == NP_ID_NONE;
		k->core[i] = core;
		k->device[i] = self->ops.device[op];
		k->start_ns[i] = self->ops.start_ns[op];
		k->dur_ns[i] = self->ops.dur_ns[op];
		k->block_num[i] = 0;
		k->conn[i] = conn >= 0 && conn < UINT32_MAX ? (uint32_t)conn : NP_NO_U32;
	}
	return ok ? NP_OK : np_err_nomem(self->err);
}
