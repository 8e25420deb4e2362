/*
 * ascend_pytorch_profiler*.db, ascend_mindspore_profiler*.db, msprof_*.db: the order of
 * the parts, and what they share. See capture/db_load.h for how it fits together.
 */
#include <math.h>
#include <string.h>

#include "capture/db_load.h"

/* ── scanning ── */

static enum np_status damaged(struct np_dbl *self, const char *table, const struct np_err *err)
{
	if (err->code == NP_E_NOMEM)
		return np_err_nomem(self->err);
	np_profile_diag(self->profile, "DB_TABLE_DAMAGED", self->path, 1, "table %s: %s", table,
	                err->msg);
	return NP_OK;
}

enum { MAX_COLUMNS = 24 };

enum np_status np_dbl_scan(struct np_dbl *self, const char *table, const char *const *columns,
                           size_t n_columns, np_dbl_row *each, bool *found)
{
	struct np_err err = {.code = NP_OK};
	struct np_db_scan *scan = NULL;
	enum np_status st = np_db_scan_open(self->db, table, columns, n_columns, 0, &scan, &err);
	if (found)
		*found = st == NP_OK;
	if (st == NP_E_NOTFOUND)
		return NP_OK;
	if (st != NP_OK)
		return damaged(self, table, &err);
	struct np_db_value row[MAX_COLUMNS];
	for (;;) {
		bool got = false;
		st = np_db_scan_next(scan, row, &got, &err);
		if (st != NP_OK) {
			st = damaged(self, table, &err);
			break;
		}
		if (!got)
			break;
		st = each(self, row);
		if (st != NP_OK)
			break;
	}
	np_db_scan_close(scan);
	return st;
}

void np_dbl_expect(struct np_dbl *self, void *rows, const struct np_table_desc *desc,
                   const char *table, const char *and)
{
	int64_t n = np_db_count(self->db, table), more = and? np_db_count(self->db, and) : 0;
	size_t need = ((const struct np_rows *)rows)->n;
	need += (n > 0 ? (size_t)n : 0) + (more > 0 ? (size_t)more : 0);
	(void)np_rows_reserve(rows, desc, need);
}

/* ── values ── */

double np_dbl_double(const struct np_db_value *value)
{
	double d;
	return np_db_double(value, &d) ? d : NAN;
}

uint32_t np_dbl_string(struct np_dbl *self, const struct np_db_value *value)
{
	if (value->type == NP_DB_NULL)
		return NP_ID_NONE;
	uint32_t id = np_ids_get(&self->strings, np_dbl_i64(value));
	self->dangling += id == NP_ID_NONE;
	return id;
}

uint32_t np_dbl_string_na(struct np_dbl *self, const struct np_db_value *value)
{
	enum { LONGEST_NA = 4 }; /* "none": spares the comparison for most texts */
	uint32_t id = np_dbl_string(self, value);
	if (self->what & NP_KEEP_NA)
		return id;
	np_str text = np_intern_get(&self->profile->strings, id);
	return text.len <= LONGEST_NA && np_is_na(text) ? NP_ID_NONE : id;
}

int64_t np_dbl_ns(const struct np_db_value *value)
{
	int64_t ns = np_dbl_i64(value);
	if (ns != NP_NO_I64 || value->type != NP_DB_TEXT)
		return ns;
	return np_decimal_scaled(value->text, 0, &ns) == NP_NUM_OK ? ns : NP_NO_I64;
}

bool np_dbl_time(struct np_dbl *self, int64_t start, int64_t end, np_ns *dur_ns)
{
	if (start < 0 || start >= NP_TIME_MAX || end < 0 || end >= NP_TIME_MAX) {
		self->bad_time++;
		return false;
	}
	if (end < start) {
		self->negative++;
		return false;
	}
	*dur_ns = end - start;
	return true;
}

/* ── strings and enumerations ── */

static enum np_status string_row(struct np_dbl *self, const struct np_db_value *row)
{
	if (row[1].type != NP_DB_TEXT)
		return NP_OK;
	uint32_t id = np_intern_add(&self->profile->strings, row[1].text);
	if (id == NP_ID_NONE || !np_ids_put(&self->strings, np_dbl_i64(&row[0]), id))
		return np_err_nomem(self->err);
	return NP_OK;
}

static enum np_status enum_row(struct np_dbl *self, struct np_ids *to,
                               const struct np_db_value *row)
{
	np_str name = np_db_text(&row[1]);
	if (np_is_na(name) || np_str_is(name, "INVALID_TYPE"))
		return NP_OK; /* what is not in the map reads as absent */
	uint32_t id = np_intern_add(&self->profile->strings, name);
	if (id == NP_ID_NONE || !np_ids_put(to, np_dbl_i64(&row[0]), id))
		return np_err_nomem(self->err);
	return NP_OK;
}

static enum np_status dtype_row(struct np_dbl *self, const struct np_db_value *row)
{
	return enum_row(self, &self->dtypes, row);
}

static enum np_status link_row(struct np_dbl *self, const struct np_db_value *row)
{
	return enum_row(self, &self->links, row);
}

static enum np_status transport_row(struct np_dbl *self, const struct np_db_value *row)
{
	return enum_row(self, &self->transports, row);
}

static enum np_status module_row(struct np_dbl *self, const struct np_db_value *row)
{
	return enum_row(self, &self->modules, row);
}

static enum np_status read_strings(struct np_dbl *self)
{
	static const char *const strings[] = {"id", "value"}, *const names[] = {"id", "name"};
	NP_TRY(np_dbl_scan(self, "STRING_IDS", strings, 2, string_row, NULL));
	if (self->what & NP_COMM_OPS)
		NP_TRY(np_dbl_scan(self, "ENUM_HCCL_DATA_TYPE", names, 2, dtype_row, NULL));
	if (self->what & NP_COMM) {
		NP_TRY(np_dbl_scan(self, "ENUM_HCCL_LINK_TYPE", names, 2, link_row, NULL));
		NP_TRY(np_dbl_scan(self, "ENUM_HCCL_TRANSPORT_TYPE", names, 2, transport_row,
		                   NULL));
	}
	if (self->what & NP_MEMORY)
		NP_TRY(np_dbl_scan(self, "ENUM_MODULE", names, 2, module_row, NULL));
	return NP_OK;
}

/* ── the whole ── */

static void tell(struct np_dbl *self)
{
	struct np_profile *p = self->profile;
	if (self->dangling)
		np_profile_diag(p, "DANGLING_STRING", self->path, self->dangling,
		                "%llu references to strings that are not in STRING_IDS",
		                (unsigned long long)self->dangling);
	if (self->negative)
		np_profile_diag(p, "NEGATIVE_DURATION", self->path, self->negative,
		                "%llu rows end before they start, dropped",
		                (unsigned long long)self->negative);
	if (self->bad_time)
		np_profile_diag(p, "BAD_TIME", self->path, self->bad_time,
		                "%llu rows have a time that is missing or impossible, dropped",
		                (unsigned long long)self->bad_time);
	if (self->orphans)
		np_profile_diag(p, "ORPHAN_TASK_INFO", self->path, self->orphans,
		                "%llu rows describe a task that is not in TASK, dropped",
		                (unsigned long long)self->orphans);
	if (self->duplicates)
		np_profile_diag(
			p, "DUPLICATE_TASK", self->path, self->duplicates,
			"%llu tasks repeat the globalTaskId of an earlier one, not counted again",
			(unsigned long long)self->duplicates);
	p->dropped_rows += self->negative + self->bad_time + self->orphans;
}

static enum np_status load_all(struct np_dbl *self)
{
	NP_TRY(read_strings(self));
	if (self->what & NP_STEPS)
		NP_TRY(np_dbl_read_steps(self));
	if (self->what & (NP_KERNELS | NP_COMM_OPS))
		NP_TRY(np_dbl_read_comm(self));
	if (self->what & NP_COMM_SCHEDULE)
		NP_TRY(np_dbl_read_schedule(self));
	if (self->what & (NP_KERNELS | NP_COMM | NP_TASKS | NP_HOST_OPS | NP_COMM_SCHEDULE))
		NP_TRY(np_dbl_read_tasks(self));
	if (self->what & (NP_KERNELS | NP_COMM_OPS))
		NP_TRY(np_dbl_close_comm(self));
	if (self->what & (NP_KERNELS | NP_COMM | NP_COMM_SCHEDULE))
		NP_TRY(np_dbl_close_tasks(self));
	if (self->what & NP_STEPS)
		NP_TRY(np_dbl_close_steps(self));
	if (self->what & NP_COMM_OPS)
		if (!np_rows_append(&self->profile->comm_ops, &self->ops, &np_comm_ops_desc))
			return np_err_nomem(self->err);
	if (self->what & (NP_HOST_OPS | NP_HOST_CANN))
		NP_TRY(np_dbl_read_host(self));
	if (self->what & NP_MSTX)
		NP_TRY(np_dbl_read_mstx(self));
	if (self->what & NP_MEMORY)
		NP_TRY(np_dbl_read_memory(self));
	if (self->what & NP_COUNTERS)
		NP_TRY(np_dbl_read_counters(self));
	/* kernels are ordered by np_capture_load(), when those of all files are there */
	bool ok = !(self->what & (NP_HOST_OPS | NP_HOST_CANN)) ||
	          np_profile_sort_host_ops(self->profile);
	if (self->what & NP_MSTX)
		ok = ok && np_profile_sort_mstx(self->profile);
	if (self->what & (NP_TASKS | NP_COMM_OPS | NP_COMM_SCHEDULE))
		ok = ok && np_profile_sort_tasks(self->profile);
	return ok ? NP_OK : np_err_nomem(self->err);
}

/* Rows that memory ran out for half-way: pending kernels and comm tasks have no times,
 * and comm tasks point to ops that may not have been moved to the profile. */
static void roll_back(struct np_dbl *self)
{
	struct np_profile *p = self->profile;
	if (p->comm_ops.n == self->first_comm_op)
		p->comm_tasks.n = self->first_comm_task;
	p->comm_schedule.n = self->first_schedule;
	p->kernels.n = self->first_kernel;
	if (p->kernel_shapes.n > self->first_kernel)
		p->kernel_shapes.n = self->first_kernel;
}

static void release(struct np_dbl *self)
{
	struct np_ids *const maps[] = {&self->strings,      &self->dtypes,       &self->links,
	                               &self->transports,   &self->modules,      &self->kernel_of,
	                               &self->compute_name, &self->comm_task_of, &self->launched,
	                               &self->conn_device,  &self->op_of,        &self->conn_step,
	                               &self->schedule_of};
	for (size_t i = 0; i < NP_DBL_COUNT(maps); i++)
		np_ids_release(maps[i]);
	np_vec_release(&self->steps);
	np_rows_release(&self->ops, &np_comm_ops_desc);
	np_db_close(self->db);
}

enum np_status np_read_profiler_db(const struct np_read *read, const char *path, struct np_err *err)
{
	struct np_dbl load = {.profile = read->profile,
	                      .path = path,
	                      .what = np_load_implied(read->what),
	                      .err = err,
	                      .only_device = NP_NO_U32};
	load.first_kernel = read->profile->kernels.n;
	load.first_comm_task = read->profile->comm_tasks.n;
	load.first_comm_op = read->profile->comm_ops.n;
	load.first_schedule = read->profile->comm_schedule.n;
	NP_TRY(np_db_open(path, &load.db, err));
	const char *note = np_db_note(load.db);
	if (note[0])
		np_profile_diag(load.profile, "DB_OPENED_PARTLY", path, 1, "%s", note);
	enum np_status st = load_all(&load);
	if (st != NP_OK)
		roll_back(&load);
	tell(&load);
	release(&load);
	return st;
}
