/*
 * MSTX_EVENTS as a table of its own, with all that host_ops has no place for.
 */
#include "capture/db_load.h"

#define MSTX_COLUMNS(X)            \
	X(START, "startNs")        \
	X(END, "endNs")            \
	X(TYPE, "eventType")       \
	X(RANGE, "rangeId")        \
	X(CATEGORY, "category")    \
	X(MESSAGE, "message")      \
	X(TID, "globalTid")        \
	X(END_TID, "endGlobalTid") \
	X(DOMAIN, "domainId")      \
	X(CONN, "connectionId")

enum {
#define X(id, name) M_##id,
	MSTX_COLUMNS(X)
#undef X
		N_MSTX,
};

static const char *const mstx_columns[] = {
#define X(id, name) name,
	MSTX_COLUMNS(X)
#undef X
};

/* The same rows as in host_ops, which counts those that are dropped when both are read. */
static bool is_range(struct np_dbl *self, np_ns start, np_ns end)
{
	np_ns dur;
	if (!(self->what & NP_HOST_OPS))
		return np_dbl_time(self, start, end, &dur);
	return start >= 0 && end >= start && end < NP_TIME_MAX;
}

static uint32_t tid_of(const struct np_db_value *global_tid)
{
	int64_t tid = np_dbl_i64(global_tid);
	return tid >= 0 ? (uint32_t)tid : NP_NO_U32;
}

static int64_t not_negative(const struct np_db_value *value)
{
	int64_t number = np_dbl_i64(value);
	return number >= 0 ? number : NP_NO_I64;
}

static enum np_status mstx_row(struct np_dbl *self, const struct np_db_value *row)
{
	int64_t start = np_dbl_i64(&row[M_START]), end = np_dbl_i64(&row[M_END]);
	int64_t type = np_dbl_i64(&row[M_TYPE]), tid = np_dbl_i64(&row[M_TID]);
	if (type == NP_MSTX_MARKER || type == NP_MSTX_MARKER_EX)
		end = start; /* a mark has no end, whatever stands there */
	if (!is_range(self, start, end))
		return NP_OK;
	size_t i = np_profile_add(self->profile, mstx);
	if (i == SIZE_MAX)
		return np_err_nomem(self->err);
	struct np_mstx *m = &self->profile->mstx;
	m->start_ns[i] = start;
	m->end_ns[i] = end;
	m->event_type[i] = type >= 0 && type < NP_MSTX_UNKNOWN ? (uint8_t)type : NP_MSTX_UNKNOWN;
	m->message[i] = np_dbl_string(self, &row[M_MESSAGE]);
	m->domain[i] = np_dbl_string(self, &row[M_DOMAIN]);
	m->range_id[i] = not_negative(&row[M_RANGE]);
	m->category[i] = not_negative(&row[M_CATEGORY]);
	m->pid[i] = tid >= 0 ? (uint32_t)((uint64_t)tid >> 32) : NP_NO_U32;
	m->tid[i] = tid_of(&row[M_TID]);
	m->end_tid[i] = tid_of(&row[M_END_TID]);
	m->conn[i] = np_dbl_conn(&row[M_CONN]);
	return NP_OK;
}

enum np_status np_dbl_read_mstx(struct np_dbl *self)
{
	bool found;
	NP_TRY(np_dbl_scan(self, "MSTX_EVENTS", mstx_columns, N_MSTX, mstx_row, &found));
	if (found)
		self->profile->loaded |= NP_MSTX;
	return NP_OK;
}
