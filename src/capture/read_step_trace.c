/*
 * step_trace_time.csv (torch_npu.md §3.2). Device_id and Preparing came with later
 * versions; columns are found by their exact names, since one name begins another.
 */
#include "capture/csv_table.h"
#include "capture/reader.h"

enum { DEVICE, STEP, FIRST_TIME, N_TIMES = 9, N_COLUMNS = FIRST_TIME + N_TIMES };

static const struct np_csv_column wanted[N_COLUMNS] = {
	{{"Device_id"}},  {{"Step"}},
	{{"Computing"}},  {{"Communication(Not Overlapped)"}},
	{{"Overlapped"}}, {{"Communication"}},
	{{"Free"}},       {{"Stage"}},
	{{"Bubble"}},     {{"Communication(Not Overlapped and Exclude Receive)"}},
	{{"Preparing"}},
};

static bool add_row(struct np_csv_table *table)
{
	size_t i = np_profile_add(table->profile, step_trace);
	if (i == SIZE_MAX)
		return false;
	struct np_step_trace *t = &table->profile->step_trace;
	double *const times[N_TIMES] = {t->computing_us,  t->comm_not_overlapped_us,
	                                t->overlapped_us, t->comm_us,
	                                t->free_us,       t->stage_us,
	                                t->bubble_us,     t->comm_not_overlapped_exclude_receive_us,
	                                t->preparing_us};
	t->device[i] = np_csv_table_u32(table, DEVICE);
	t->step[i] = np_csv_table_i64(table, STEP);
	for (size_t c = 0; c < N_TIMES; c++)
		times[c][i] = np_csv_table_double(table, FIRST_TIME + c);
	return true;
}

static enum np_status read_rows(struct np_csv_table *table, const char *path, struct np_err *err)
{
	np_csv_table_columns(table, wanted, N_COLUMNS);
	if (table->columns[FIRST_TIME] < 0)
		return np_err_set(err, NP_E_FORMAT, path, "no column Computing: not a step trace");
	table->profile->loaded |= NP_STEP_TRACE;
	for (;;) {
		bool got;
		NP_TRY(np_csv_table_next(table, &got, err));
		if (!got)
			return NP_OK;
		if (!add_row(table))
			return np_err_nomem(err);
	}
}

enum np_status np_read_step_trace(const struct np_read *read, const char *path, struct np_err *err)
{
	if (!(read->what & NP_STEP_TRACE))
		return NP_OK;
	struct np_csv_table table;
	enum np_status st = np_csv_table_open(&table, read->profile, path, err);
	if (st == NP_OK)
		st = read_rows(&table, path, err);
	np_csv_table_close(&table);
	return st;
}
