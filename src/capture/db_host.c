/*
 * Ranges on the host: PYTORCH_API, CANN_API, MSTX_EVENTS, GC_RECORD; and all
 * connections of the first.
 */
#include <string.h>

#include "capture/db_load.h"

/* Returned by add_op() for a row that is not kept; SIZE_MAX: out of memory. */
#define DROPPED (SIZE_MAX - 1)

struct connection {
	int64_t conn;
	uint32_t next; /* of the same id, NP_IDS_NONE behind the last */
};

/* What only this file needs of a load. */
struct np_dbl_host {
	struct np_ids layers;        /* ENUM_API_TYPE.id → enum np_host_layer */
	struct np_ids connection_of; /* CONNECTION_IDS.id → first of its connections */
	NP_VEC(struct connection) connections;
	bool has_connections;
	struct np_ids stacks; /* PYTORCH_CALLCHAINS.id → string id */
	int64_t stack_id;     /* the chain whose frames are being joined */
	struct np_buf stack;
};

/* ── layers ── */

static const struct {
	int64_t type;
	const char *name; /* in ENUM_API_TYPE */
	enum np_host_layer layer;
} layers[] = {
	{50001, "op", NP_HOST_OP},        {50002, "queue", NP_HOST_QUEUE},
	{50003, "trace", NP_HOST_PYTHON}, {50004, "mstx", NP_HOST_MSTX},
	{20000, "acl", NP_HOST_ACL},      {15000, "model", NP_HOST_MODEL},
	{10000, "node", NP_HOST_NODE},    {5500, "communication", NP_HOST_HCCL},
	{5500, "hccl", NP_HOST_HCCL},     {5000, "runtime", NP_HOST_RUNTIME},
};

/* ENUM_API_TYPE of the file wins over the numbers known here. */
static enum np_status layer_row(struct np_dbl *self, const struct np_db_value *row)
{
	np_str name = np_db_text(&row[1]);
	for (size_t i = 0; i < NP_DBL_COUNT(layers); i++)
		if (np_str_is(name, layers[i].name))
			return np_ids_put(&self->host->layers, np_dbl_i64(&row[0]), layers[i].layer)
			               ? NP_OK
			               : np_err_nomem(self->err);
	return NP_OK;
}

static uint8_t layer_of(const struct np_dbl *self, int64_t type)
{
	uint32_t known = np_ids_get(&self->host->layers, type);
	if (known != NP_IDS_NONE)
		return (uint8_t)known;
	for (size_t i = 0; i < NP_DBL_COUNT(layers); i++)
		if (layers[i].type == type)
			return (uint8_t)layers[i].layer;
	return NP_HOST_OTHER;
}

/* ── what the api tables refer to ── */

/*
 * CONNECTION_IDS gives an API several connections. host_ops has the first one; the
 * others are kept only where all are asked for, linked behind it, the last one next.
 */
static enum np_status connection_row(struct np_dbl *self, const struct np_db_value *row)
{
	struct np_dbl_host *host = self->host;
	int64_t id = np_dbl_i64(&row[0]), conn = np_dbl_conn(&row[1]);
	uint32_t first = np_ids_get(&host->connection_of, id);
	bool known = first != NP_IDS_NONE;
	if (id < 0 || conn == NP_NO_I64 || (known && !(self->what & NP_HOST_CONNS)))
		return NP_OK;
	struct connection added = {conn, known ? host->connections.v[first].next : NP_IDS_NONE};
	uint32_t at = (uint32_t)host->connections.n;
	if (host->connections.n >= NP_IDS_NONE || !np_vec_push(&host->connections, added) ||
	    (!known && !np_ids_put(&host->connection_of, id, at)))
		return np_err_nomem(self->err);
	if (known)
		host->connections.v[first].next = at;
	return NP_OK;
}

static bool keep_stack(struct np_dbl *self)
{
	struct np_dbl_host *host = self->host;
	if (host->stack_id == NP_NO_I64)
		return true;
	uint32_t id = np_intern_add(&self->profile->strings, np_buf_str(&host->stack));
	return id != NP_ID_NONE && np_ids_put(&host->stacks, host->stack_id, id);
}

/* Frames come in order, the innermost first, all of one chain together; they are joined
 * as the trace has them. */
static enum np_status frame_row(struct np_dbl *self, const struct np_db_value *row)
{
	struct np_dbl_host *host = self->host;
	int64_t id = np_dbl_i64(&row[0]);
	if (id != host->stack_id) {
		if (!keep_stack(self))
			return np_err_nomem(self->err);
		np_buf_clear(&host->stack);
		host->stack_id = id;
	}
	uint32_t frame = np_dbl_string(self, &row[1]);
	if (frame == NP_ID_NONE)
		return NP_OK;
	if (host->stack.len > 0)
		np_buf_add_cstr(&host->stack, ";\r\n");
	np_buf_add_str(&host->stack, np_intern_get(&self->profile->strings, frame));
	return NP_OK; /* a chain beyond the cap of the buffer is cut there */
}

/* ── rows ── */

static size_t add_op(struct np_dbl *self, np_ns start, np_ns end,
                     const struct np_db_value *global_tid)
{
	np_ns dur;
	if (!np_dbl_time(self, start, end, &dur))
		return DROPPED;
	size_t i = np_profile_add(self->profile, host_ops);
	if (i == SIZE_MAX)
		return SIZE_MAX;
	struct np_host_ops *h = &self->profile->host_ops;
	int64_t tid = np_dbl_i64(global_tid);
	h->pid[i] = tid >= 0 ? (uint32_t)((uint64_t)tid >> 32) : NP_NO_U32;
	h->tid[i] = tid >= 0 ? (uint32_t)tid : NP_NO_U32;
	h->start_ns[i] = start;
	h->dur_ns[i] = dur;
	h->layer[i] = NP_HOST_OTHER;
	h->name[i] = h->item[i] = h->shapes[i] = h->dtypes[i] = h->stack[i] = NP_ID_NONE;
	h->conn[i] = h->seq[i] = NP_NO_I64;
	return i;
}

enum { A_START, A_END, A_TID, A_CONN, A_NAME, A_TYPE, A_SEQ, A_DTYPES, A_SHAPES, A_STACK };

static int64_t torch_connection(const struct np_dbl *self, const struct np_db_value *value)
{
	int64_t id = np_dbl_conn(value);
	uint32_t at = np_ids_get(&self->host->connection_of, id);
	if (at != NP_IDS_NONE)
		return self->host->connections.v[at].conn;
	return self->host->has_connections ? NP_NO_I64 : id;
}

static bool add_conn(struct np_dbl *self, size_t op, int64_t id, int64_t conn)
{
	size_t i = np_profile_add(self->profile, host_conns);
	if (i == SIZE_MAX)
		return false;
	struct np_host_conns *c = &self->profile->host_conns;
	c->op[i] = (uint32_t)op;
	c->id[i] = id;
	c->conn[i] = conn;
	return true;
}

/* All connections of an op. Where there is no CONNECTION_IDS, the id is the connection. */
static bool add_conns(struct np_dbl *self, size_t op, const struct np_db_value *value)
{
	const struct np_dbl_host *host = self->host;
	int64_t id = np_dbl_conn(value);
	if (id == NP_NO_I64)
		return true;
	if (!host->has_connections)
		return add_conn(self, op, id, id);
	for (uint32_t at = np_ids_get(&host->connection_of, id); at != NP_IDS_NONE;
	     at = host->connections.v[at].next)
		if (!add_conn(self, op, id, host->connections.v[at].conn))
			return false;
	return true;
}

static enum np_status torch_row(struct np_dbl *self, const struct np_db_value *row)
{
	size_t i = add_op(self, np_dbl_ns(&row[A_START]), np_dbl_ns(&row[A_END]), &row[A_TID]);
	if (i >= DROPPED)
		return i == SIZE_MAX ? np_err_nomem(self->err) : NP_OK;
	struct np_host_ops *h = &self->profile->host_ops;
	h->layer[i] = layer_of(self, np_dbl_i64(&row[A_TYPE]));
	h->name[i] = np_dbl_string(self, &row[A_NAME]);
	h->conn[i] = torch_connection(self, &row[A_CONN]);
	if ((self->what & NP_HOST_CONNS) && !add_conns(self, i, &row[A_CONN]))
		return np_err_nomem(self->err);
	int64_t seq = np_dbl_i64(&row[A_SEQ]);
	h->seq[i] = seq >= 0 ? seq : NP_NO_I64;
	if (self->what & NP_HOST_ARGS) {
		h->dtypes[i] = np_dbl_string(self, &row[A_DTYPES]);
		h->shapes[i] = np_dbl_string(self, &row[A_SHAPES]);
		h->stack[i] = np_ids_get(&self->host->stacks, np_dbl_i64(&row[A_STACK]));
	}
	return NP_OK;
}

static enum np_status cann_row(struct np_dbl *self, const struct np_db_value *row)
{
	size_t i = add_op(self, np_dbl_i64(&row[A_START]), np_dbl_i64(&row[A_END]), &row[A_TID]);
	if (i >= DROPPED)
		return i == SIZE_MAX ? np_err_nomem(self->err) : NP_OK;
	struct np_host_ops *h = &self->profile->host_ops;
	h->layer[i] = layer_of(self, np_dbl_i64(&row[A_TYPE]));
	h->name[i] = np_dbl_string(self, &row[A_NAME]);
	h->conn[i] = np_dbl_conn(&row[A_CONN]);
	/* the trace has the operator in item_id; here it is what the call has launched */
	if (h->layer[i] == NP_HOST_NODE)
		h->item[i] = np_ids_get(&self->launched, h->conn[i]);
	return NP_OK;
}

enum { M_START, M_END, M_TID, M_CONN, M_MESSAGE, M_TYPE };

static enum np_status mstx_row(struct np_dbl *self, const struct np_db_value *row)
{
	int64_t start = np_dbl_i64(&row[M_START]), end = np_dbl_i64(&row[M_END]);
	int64_t type = np_dbl_i64(&row[M_TYPE]);
	if (type == NP_MSTX_MARKER || type == NP_MSTX_MARKER_EX)
		end = start; /* a mark has no end, whatever stands there */
	size_t i = add_op(self, start, end, &row[M_TID]);
	if (i >= DROPPED)
		return i == SIZE_MAX ? np_err_nomem(self->err) : NP_OK;
	struct np_host_ops *h = &self->profile->host_ops;
	h->layer[i] = NP_HOST_MSTX;
	h->name[i] = np_dbl_string(self, &row[M_MESSAGE]);
	h->conn[i] = np_dbl_conn(&row[M_CONN]);
	return NP_OK;
}

static enum np_status gc_row(struct np_dbl *self, const struct np_db_value *row)
{
	size_t i = add_op(self, np_dbl_i64(&row[0]), np_dbl_i64(&row[1]), &row[2]);
	if (i >= DROPPED)
		return i == SIZE_MAX ? np_err_nomem(self->err) : NP_OK;
	self->profile->host_ops.layer[i] = NP_HOST_GC;
	uint32_t name = np_intern_add(&self->profile->strings, NP_STR("GC"));
	self->profile->host_ops.name[i] = name;
	return name != NP_ID_NONE ? NP_OK : np_err_nomem(self->err);
}

/* ── the whole ── */

static enum np_status scan_layers(struct np_dbl *self)
{
	static const char *const names[] = {"id", "name"};
	return np_dbl_scan(self, "ENUM_API_TYPE", names, 2, layer_row, NULL);
}

static enum np_status scan_cann(struct np_dbl *self, bool *found)
{
	static const char *const cann[] = {"startNs",      "endNs", "globalTid",
	                                   "connectionId", "name",  "type"};
	return np_dbl_scan(self, "CANN_API", cann, NP_DBL_COUNT(cann), cann_row, found);
}

static enum np_status scan_host(struct np_dbl *self)
{
	static const char *const connections[] = {"id", "connectionId"};
	static const char *const frames[] = {"id", "stack"};
	static const char *const torch[] = {
		"startNs", "endNs",          "globalTid",   "connectionId", "name",
		"type",    "sequenceNumber", "inputDtypes", "inputShapes",  "callchainId"};
	static const char *const mstx[] = {"startNs",      "endNs",   "globalTid",
	                                   "connectionId", "message", "eventType"};
	static const char *const gc[] = {"startNs", "endNs", "globalTid"};
	struct np_dbl_host *host = self->host;
	struct np_profile *profile = self->profile;
	bool found[4];
	NP_TRY(scan_layers(self));
	NP_TRY(np_dbl_scan(self, "CONNECTION_IDS", connections, 2, connection_row,
	                   &host->has_connections));
	if (self->what & NP_HOST_ARGS) {
		NP_TRY(np_dbl_scan(self, "PYTORCH_CALLCHAINS", frames, 2, frame_row, NULL));
		if (!keep_stack(self))
			return np_err_nomem(self->err);
	}
	np_dbl_expect(self, &profile->host_ops, &np_host_ops_desc, "PYTORCH_API", "CANN_API");
	if (self->what & NP_HOST_CONNS)
		np_dbl_expect(self, &profile->host_conns, &np_host_conns_desc, "CONNECTION_IDS",
		              NULL);
	NP_TRY(np_dbl_scan(self, "PYTORCH_API", torch, NP_DBL_COUNT(torch), torch_row, &found[0]));
	NP_TRY(scan_cann(self, &found[1]));
	NP_TRY(np_dbl_scan(self, "MSTX_EVENTS", mstx, NP_DBL_COUNT(mstx), mstx_row, &found[2]));
	NP_TRY(np_dbl_scan(self, "GC_RECORD", gc, NP_DBL_COUNT(gc), gc_row, &found[3]));
	if (found[0] || found[1] || found[2] || found[3])
		self->profile->loaded |= NP_HOST_OPS;
	if (found[0])
		self->profile->loaded |= self->what & (NP_HOST_ARGS | NP_HOST_CONNS);
	return NP_OK;
}

static enum np_status scan_cann_alone(struct np_dbl *self)
{
	bool found;
	NP_TRY(scan_layers(self));
	np_dbl_expect(self, &self->profile->host_ops, &np_host_ops_desc, "CANN_API", NULL);
	NP_TRY(scan_cann(self, &found));
	if (found)
		self->profile->loaded |= NP_HOST_CANN;
	return NP_OK;
}

enum np_status np_dbl_read_host(struct np_dbl *self)
{
	enum { MAX_STACK_BYTES = 1 << 20 };
	struct np_dbl_host host = {.stack_id = NP_NO_I64, .stack.max_bytes = MAX_STACK_BYTES};
	self->host = &host;
	enum np_status st;
	if (self->what & NP_HOST_OPS) {
		st = scan_host(self);
	} else {
		st = scan_cann_alone(self);
	}
	self->host = NULL;
	np_ids_release(&host.layers);
	np_ids_release(&host.connection_of);
	np_ids_release(&host.stacks);
	np_vec_release(&host.connections);
	np_buf_release(&host.stack);
	return st;
}
