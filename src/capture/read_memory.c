/*
 * operator_memory*.csv, memory_record*.csv, npu_module_mem*.csv (torch_npu.md §3.6).
 * torch_npu writes totals in MB (MiB, really), msprof in KB: the header tells.
 */
#include <math.h>

#include "capture/csv_table.h"
#include "capture/reader.h"

/* ── operator_memory ── */

enum {
	NAME,
	SIZE,
	ALLOC,
	RELEASE,
	ACTIVE_RELEASE,
	ALLOCATED,
	RESERVED,
	ACTIVE,
	STREAM,
	DEVICE,
	DEVICE_ID,
	N_OP_MEMORY
};

static const struct np_csv_column op_memory[N_OP_MEMORY] = {
	{{"Name"}},
	{{"Size(KB)"}},
	{{"Allocation Time(us)"}},
	{{"Release Time(us)"}},
	{{"Active Release Time(us)"}},
	{{"Allocation Total Allocated(MB)", "Allocation Total Allocated(KB)"}},
	{{"Allocation Total Reserved(MB)", "Allocation Total Reserved(KB)"}},
	{{"Allocation Total Active(MB)", "Allocation Total Active(KB)"}},
	{{"Stream Ptr"}},
	{{"Device Type", "Device"}},
	{{"Device_id"}},
};

/* A total in MiB, whatever the unit of its column. */
static double total_mib(struct np_csv_table *table, size_t i)
{
	double value = np_csv_table_double(table, i);
	int column = table->columns[i];
	bool kb = column >= 0 &&
	          np_str_ends(np_csv_column_name(table->csv, (size_t)column), NP_STR("(KB)"));
	return kb ? value / 1024 : value;
}

static uint32_t device_of(struct np_csv_table *table, size_t label, size_t id)
{
	uint32_t device = np_npu_number(np_csv_table_text(table, label));
	return device != NP_NO_U32 ? device : np_csv_table_u32(table, id);
}

static int64_t size_bytes(struct np_csv_table *table)
{
	double kb = np_csv_table_double(table, SIZE);
	return fabs(kb) < 0x1p50 ? llround(kb * 1024) : NP_NO_I64; /* NaN is not less */
}

static bool add_op_memory(struct np_csv_table *table)
{
	np_ns alloc = np_csv_table_time(table, ALLOC);
	if (alloc == NP_NO_I64) {
		table->bad_time++;
		return true;
	}
	uint32_t name;
	if (!np_csv_table_intern(table, NAME, &name))
		return false;
	size_t i = np_profile_add(table->profile, op_memory);
	if (i == SIZE_MAX)
		return false;
	struct np_op_memory *m = &table->profile->op_memory;
	m->name[i] = name;
	m->device[i] = device_of(table, DEVICE, DEVICE_ID);
	m->size_bytes[i] = size_bytes(table);
	m->alloc_ns[i] = alloc;
	m->release_ns[i] = np_csv_table_time(table, RELEASE);
	m->active_release_ns[i] = np_csv_table_time(table, ACTIVE_RELEASE);
	m->allocated_mb[i] = total_mib(table, ALLOCATED);
	m->reserved_mb[i] = total_mib(table, RESERVED);
	m->active_mb[i] = total_mib(table, ACTIVE);
	m->stream[i] = np_csv_table_i64(table, STREAM);
	return true;
}

/* ── memory_record, npu_module_mem ── */

enum { M_COMPONENT, M_TIME, M_ALLOCATED, M_RESERVED, M_ACTIVE, M_DEVICE, M_DEVICE_ID, N_MEMORY };

static const struct np_csv_column memory[N_MEMORY] = {
	{{"Component"}},
	{{"Timestamp(us)"}},
	{{"Total Allocated(MB)", "Total Allocated(KB)"}},
	{{"Total Reserved(MB)", "Total Reserved(KB)"}},
	{{"Total Active(MB)", "Total Active(KB)"}},
	{{"Device Type", "Device"}},
	{{"Device_id"}},
};

static bool add_memory(struct np_csv_table *table)
{
	np_ns ts = np_csv_table_time(table, M_TIME);
	if (ts == NP_NO_I64) {
		table->bad_time++;
		return true;
	}
	uint32_t component;
	if (!np_csv_table_intern(table, M_COMPONENT, &component))
		return false;
	size_t i = np_profile_add(table->profile, memory);
	if (i == SIZE_MAX)
		return false;
	struct np_memory *m = &table->profile->memory;
	m->component[i] = component;
	m->device[i] = device_of(table, M_DEVICE, M_DEVICE_ID);
	m->ts_ns[i] = ts;
	m->allocated_mb[i] = total_mib(table, M_ALLOCATED);
	m->reserved_mb[i] = total_mib(table, M_RESERVED);
	m->active_mb[i] = total_mib(table, M_ACTIVE);
	return true;
}

/* ── both ── */

static enum np_status read_rows(struct np_csv_table *table, bool (*add)(struct np_csv_table *),
                                struct np_err *err)
{
	table->profile->loaded |= NP_MEMORY;
	for (;;) {
		bool got;
		NP_TRY(np_csv_table_next(table, &got, err));
		if (!got)
			return NP_OK;
		if (!add(table))
			return np_err_nomem(err);
	}
}

enum np_status np_read_op_memory(const struct np_read *read, const char *path, struct np_err *err)
{
	if (!(read->what & NP_MEMORY))
		return NP_OK;
	struct np_csv_table table;
	enum np_status st = np_csv_table_open(&table, read->profile, path, err);
	if (st == NP_OK) {
		np_csv_table_columns(&table, op_memory, N_OP_MEMORY);
		st = table.columns[ALLOC] >= 0
		             ? read_rows(&table, add_op_memory, err)
		             : np_err_set(err, NP_E_FORMAT, path, "no column Allocation Time(us)");
	}
	np_csv_table_close(&table);
	return st;
}

enum np_status np_read_memory(const struct np_read *read, const char *path, struct np_err *err)
{
	if (!(read->what & NP_MEMORY))
		return NP_OK;
	struct np_csv_table table;
	enum np_status st = np_csv_table_open(&table, read->profile, path, err);
	if (st == NP_OK) {
		np_csv_table_columns(&table, memory, N_MEMORY);
		st = table.columns[M_TIME] >= 0 && table.columns[M_COMPONENT] >= 0
		             ? read_rows(&table, add_memory, err)
		             : np_err_set(err, NP_E_FORMAT, path,
		                          "no columns Component and Timestamp(us)");
	}
	np_csv_table_close(&table);
	return st;
}
