/*
 * analysis.db, communication_analyzer.db: the exporter's own summaries (torch_npu.md §3.12).
 */
#include <math.h>
#include <string.h>

#include "capture/comm_rows.h"
#include "capture/reader.h"
#include "io/db.h"

struct load {
	struct np_profile *profile;
	struct np_db *db;
	const char *path;
	struct np_err *err;
	struct np_intern links_seen; /* "op group link step type" of links that have their row */
	uint64_t odd;                /* rows whose values make no sense */
};

typedef enum np_status row_reader(struct load *load, const struct np_db_value *row);

enum { MAX_COLUMNS = 16 };

static enum np_status damaged(struct load *self, const char *table, const struct np_err *err)
{
	if (err->code == NP_E_NOMEM)
		return np_err_nomem(self->err);
	np_profile_diag(self->profile, "DB_TABLE_DAMAGED", self->path, 1, "table %s: %s", table,
	                err->msg);
	return NP_OK;
}

static enum np_status scan(struct load *self, const char *table, const char *const *columns,
                           size_t n_columns, row_reader *each, unsigned loaded)
{
	struct np_err err = {.code = NP_OK};
	struct np_db_scan *rows = NULL;
	enum np_status st = np_db_scan_open(self->db, table, columns, n_columns, 0, &rows, &err);
	if (st == NP_E_NOTFOUND)
		return NP_OK;
	if (st != NP_OK)
		return damaged(self, table, &err);
	self->profile->loaded |= loaded;
	struct np_db_value row[MAX_COLUMNS];
	bool got = true;
	while (st == NP_OK && got) {
		st = np_db_scan_next(rows, row, &got, &err);
		if (st != NP_OK) {
			st = damaged(self, table, &err);
			break;
		}
		if (got)
			st = each(self, row);
	}
	np_db_scan_close(rows);
	return st;
}

static double number(const struct np_db_value *value)
{
	double d;
	return np_db_double(value, &d) ? d : NAN;
}

/* Integers and decimal texts alike: src_rank is TEXT, deviceId INTEGER. */
static uint32_t small_number(const struct np_db_value *value)
{
	int64_t i;
	return np_db_i64(value, &i) && i >= 0 && i < NP_NO_U32 ? (uint32_t)i : NP_NO_U32;
}

static int64_t step_number(const struct np_db_value *value)
{
	int64_t i;
	if (value->type == NP_DB_INT || value->type == NP_DB_REAL)
		return np_db_i64(value, &i) ? i : NP_NO_I64;
	return np_comm_step(np_str_trim(np_db_text(value)));
}

/* A text that may be absent; numbers (a group's hash in a column without type) as text. */
static bool text_id(struct load *self, const struct np_db_value *value, uint32_t *id)
{
	char digits[32];
	np_str text = np_db_text(value);
	if (value->type == NP_DB_INT) {
		(void)snprintf(digits, sizeof digits, "%lld", (long long)value->i);
		text = np_str_of(digits);
	}
	*id = text.len > 0 ? np_intern_add(&self->profile->strings, text) : NP_ID_NONE;
	return text.len == 0 || *id != NP_ID_NONE;
}

/* step, type, name, group: the first columns of all CommAnalyzer tables */
#define KEY_COLUMNS "step", "type", "hccl_op_name", "group_name"
enum { N_KEY = 4 };

static bool read_key(struct load *self, const struct np_db_value *row, struct np_comm_key *key)
{
	key->step = step_number(&row[0]);
	key->p2p = row[1].type == NP_DB_NULL ? np_comm_is_p2p(np_db_text(&row[2]))
	                                     : np_str_is(np_db_text(&row[1]), "p2p");
	if (!np_comm_name(self->profile, np_db_text(&row[2]), key))
		return false;
	/* the name has no "@group" here, but some versions wrote it */
	return row[3].type == NP_DB_NULL || text_id(self, &row[3], &key->group);
}

static enum np_status time_row(struct load *self, const struct np_db_value *row)
{
	struct np_comm_key key;
	struct np_comm_times times = {
		.start_us = number(&row[N_KEY]),
		.elapse_ms = number(&row[N_KEY + 1]),
		.transit_ms = number(&row[N_KEY + 2]),
		.wait_ms = number(&row[N_KEY + 3]),
		.sync_ms = number(&row[N_KEY + 4]),
		.idle_ms = number(&row[N_KEY + 5]),
	};
	if (!read_key(self, row, &key) || !np_comm_add_time(self->profile, &key, &times))
		return np_err_nomem(self->err);
	return NP_OK;
}

/* Is this the first row of its link? false: out of memory. */
static bool first_of_link(struct load *self, const struct np_comm_key *key,
                          const struct np_comm_link *link, bool *first)
{
	char text[128];
	size_t had = self->links_seen.strings.n;
	(void)snprintf(text, sizeof text, "%lld %u %u %u %u", (long long)key->step,
	               (unsigned)key->p2p, key->op, key->group, link->transport);
	bool ok = np_intern_add(&self->links_seen, np_str_of(text)) != NP_ID_NONE;
	*first = self->links_seen.strings.n > had;
	return ok;
}

/* The table has a row per packet size, which repeats the sums of the link, and a row
 * with size 0 and count 0 for a link without sizes. */
static enum np_status bandwidth_row(struct load *self, const struct np_db_value *row)
{
	struct np_comm_key key;
	struct np_comm_link link = {
		.transit_mb = number(&row[N_KEY + 1]),
		.transit_ms = number(&row[N_KEY + 2]),
		.gbps = number(&row[N_KEY + 3]),
		.large_ratio = number(&row[N_KEY + 4]),
	};
	const double package[] = {number(&row[N_KEY + 5]), number(&row[N_KEY + 6]),
	                          number(&row[N_KEY + 7])};
	bool has_package = package[0] > 0 || package[1] > 0, first;
	if (!has_package && !np_comm_link_used(&link))
		return NP_OK;
	if (!read_key(self, row, &key) || !text_id(self, &row[N_KEY], &link.transport) ||
	    !first_of_link(self, &key, &link, &first))
		return np_err_nomem(self->err);
	if (first && !np_comm_add_bandwidth(self->profile, &key, &link, NULL))
		return np_err_nomem(self->err);
	if (has_package && !np_comm_add_bandwidth(self->profile, &key, &link, package))
		return np_err_nomem(self->err);
	return NP_OK;
}

static enum np_status matrix_row(struct load *self, const struct np_db_value *row)
{
	struct np_comm_key key;
	struct np_comm_link link = {
		.transit_mb = number(&row[N_KEY + 3]),
		.transit_ms = number(&row[N_KEY + 4]),
		.gbps = number(&row[N_KEY + 5]),
	};
	uint32_t src = small_number(&row[N_KEY]), dst = small_number(&row[N_KEY + 1]), op;
	if (src == NP_NO_U32 || dst == NP_NO_U32) {
		self->odd++;
		return NP_OK;
	}
	if (!read_key(self, row, &key) || !text_id(self, &row[N_KEY + 2], &link.transport) ||
	    !text_id(self, &row[N_KEY + 6], &op) ||
	    !np_comm_add_matrix(self->profile, &key, src, dst, &link, op))
		return np_err_nomem(self->err);
	return NP_OK;
}

static enum np_status step_row(struct load *self, const struct np_db_value *row)
{
	size_t i = np_profile_add(self->profile, step_trace);
	if (i == SIZE_MAX)
		return np_err_nomem(self->err);
	struct np_step_trace *t = &self->profile->step_trace;
	t->device[i] = small_number(&row[0]);
	t->step[i] = step_number(&row[1]);
	double *const columns[] = {t->computing_us,  t->comm_not_overlapped_us,
	                           t->overlapped_us, t->comm_us,
	                           t->free_us,       t->stage_us,
	                           t->bubble_us,     t->comm_not_overlapped_exclude_receive_us,
	                           t->preparing_us};
	for (size_t c = 0; c < sizeof columns / sizeof *columns; c++)
		columns[c][i] = number(&row[2 + c]);
	return NP_OK;
}

#define COUNT(array) (sizeof(array) / sizeof *(array))

static enum np_status read_tables(struct load *self, unsigned what)
{
	static const char *const steps[] = {
		"deviceId",   "step",
		"computing",  "communication_not_overlapped",
		"overlapped", "communication",
		"free",       "stage",
		"bubble",     "communication_not_overlapped_and_exclude_receive",
		"preparing"};
	static const char *const times[] = {
		KEY_COLUMNS, "start_timestamp",      "elapse_time", "transit_time",
		"wait_time", "synchronization_time", "idle_time"};
	static const char *const bandwidth[] = {
		KEY_COLUMNS,    "transport_type", "transit_size",
		"transit_time", "bandwidth",      "large_packet_ratio",
		"package_size", "count",          "total_duration"};
	static const char *const matrix[] = {KEY_COLUMNS,      "src_rank",     "dst_rank",
	                                     "transport_type", "transit_size", "transit_time",
	                                     "bandwidth",      "op_name"};
	if (what & NP_STEP_TRACE)
		NP_TRY(scan(self, "StepTraceTime", steps, COUNT(steps), step_row, NP_STEP_TRACE));
	if (!(what & NP_COMM_SUMMARY))
		return NP_OK;
	NP_TRY(scan(self, "CommAnalyzerTime", times, COUNT(times), time_row, NP_COMM_SUMMARY));
	NP_TRY(scan(self, "CommAnalyzerBandwidth", bandwidth, COUNT(bandwidth), bandwidth_row,
	            NP_COMM_SUMMARY));
	return scan(self, "CommAnalyzerMatrix", matrix, COUNT(matrix), matrix_row, NP_COMM_SUMMARY);
}

enum np_status np_read_analysis_db(const struct np_read *read, const char *path, struct np_err *err)
{
	struct load load = {.profile = read->profile, .path = path, .err = err};
	NP_TRY(np_db_open(path, &load.db, err));
	const char *note = np_db_note(load.db);
	if (note[0])
		np_profile_diag(load.profile, "DB_OPENED_PARTLY", path, 1, "%s", note);
	enum np_status st = np_intern_init(&load.links_seen) ? read_tables(&load, read->what)
	                                                     : np_err_nomem(err);
	if (load.odd > 0)
		np_profile_diag(load.profile, "COMM_ENTRY_UNKNOWN", path, load.odd,
		                "%llu rows of CommAnalyzerMatrix name no two ranks, left out",
		                (unsigned long long)load.odd);
	np_intern_release(&load.links_seen);
	np_db_close(load.db);
	return st;
}
