/*
 * Memory and counters of a database. The db has bytes where the CSV has MiB or KiB,
 * and bytes per second where the trace has MiB/s; here they are as in the text.
 */
#include <math.h>
#include <string.h>

#include "capture/db_load.h"

static const double MIB = 1048576;

static bool sane_time(struct np_dbl *self, np_ns ts)
{
	bool sane = np_time_sane(ts, 0);
	self->bad_time += !sane;
	return sane;
}

/* ── OP_MEMORY ── */

enum {
	P_NAME,
	P_SIZE,
	P_ALLOC,
	P_RELEASE,
	P_ACTIVE_RELEASE,
	P_ALLOCATED,
	P_RESERVED,
	P_ACTIVE,
	P_STREAM,
	P_DEVICE
};

static np_ns later_time(const struct np_db_value *value)
{
	np_ns ts = np_dbl_i64(value);
	return np_time_sane(ts, 0) ? ts : NP_NO_I64;
}

static enum np_status op_memory_row(struct np_dbl *self, const struct np_db_value *row)
{
	np_ns alloc = np_dbl_i64(&row[P_ALLOC]);
	if (!sane_time(self, alloc))
		return NP_OK;
	size_t i = np_profile_add(self->profile, op_memory);
	if (i == SIZE_MAX)
		return np_err_nomem(self->err);
	struct np_op_memory *m = &self->profile->op_memory;
	m->name[i] = np_dbl_string(self, &row[P_NAME]);
	m->device[i] = np_dbl_u32(&row[P_DEVICE]);
	m->size_bytes[i] = np_dbl_i64(&row[P_SIZE]);
	m->alloc_ns[i] = alloc;
	m->release_ns[i] = later_time(&row[P_RELEASE]);
	m->active_release_ns[i] = later_time(&row[P_ACTIVE_RELEASE]);
	m->allocated_mb[i] = np_dbl_double(&row[P_ALLOCATED]) / MIB;
	m->reserved_mb[i] = np_dbl_double(&row[P_RESERVED]) / MIB;
	m->active_mb[i] = np_dbl_double(&row[P_ACTIVE]) / MIB;
	m->stream[i] = np_dbl_i64(&row[P_STREAM]);
	return NP_OK;
}

/* ── MEMORY_RECORD, NPU_MODULE_MEM, NPU_MEM ── */

static enum np_status add_memory(struct np_dbl *self, uint32_t component, uint32_t device, np_ns ts,
                                 const double mib[3])
{
	if (!sane_time(self, ts))
		return NP_OK;
	size_t i = np_profile_add(self->profile, memory);
	if (i == SIZE_MAX)
		return np_err_nomem(self->err);
	struct np_memory *m = &self->profile->memory;
	m->component[i] = component;
	m->device[i] = device;
	m->ts_ns[i] = ts;
	m->allocated_mb[i] = mib[0];
	m->reserved_mb[i] = mib[1];
	m->active_mb[i] = mib[2];
	return NP_OK;
}

/* component, device, time, allocated, reserved, active */
static enum np_status record_row(struct np_dbl *self, const struct np_db_value *row)
{
	const double mib[] = {np_dbl_double(&row[3]) / MIB, np_dbl_double(&row[4]) / MIB,
	                      np_dbl_double(&row[5]) / MIB};
	return add_memory(self, np_dbl_string(self, &row[0]), np_dbl_u32(&row[1]),
	                  np_dbl_i64(&row[2]), mib);
}

/* module, device, time, reserved */
static enum np_status module_row(struct np_dbl *self, const struct np_db_value *row)
{
	const double mib[] = {NAN, np_dbl_double(&row[3]) / MIB, NAN};
	return add_memory(self, np_ids_get(&self->modules, np_dbl_i64(&row[0])),
	                  np_dbl_u32(&row[1]), np_dbl_i64(&row[2]), mib);
}

/* type, device, time, ddr, hbm. Only "app" has rows in memory_record.csv: APP. */
static enum np_status app_row(struct np_dbl *self, const struct np_db_value *row)
{
	uint32_t type = np_dbl_string(self, &row[0]);
	if (!np_str_ieq(np_intern_get(&self->profile->strings, type), NP_STR("app")))
		return NP_OK;
	double ddr = np_dbl_double(&row[3]), hbm = np_dbl_double(&row[4]);
	const double mib[] = {NAN, (isnan(ddr) ? hbm : isnan(hbm) ? ddr : ddr + hbm) / MIB, NAN};
	uint32_t app = np_intern_add(&self->profile->strings, NP_STR("APP"));
	if (app == NP_ID_NONE)
		return np_err_nomem(self->err);
	return add_memory(self, app, np_dbl_u32(&row[1]), np_dbl_i64(&row[2]), mib);
}

enum np_status np_dbl_read_memory(struct np_dbl *self)
{
	static const char *const op_memory[] = {"name",
	                                        "size",
	                                        "allocationTime",
	                                        "releaseTime",
	                                        "activeReleaseTime",
	                                        "allocationTotalAllocated",
	                                        "allocationTotalReserved",
	                                        "allocationTotalActive",
	                                        "streamPtr",
	                                        "deviceId"};
	static const char *const record[] = {
		"component",      "deviceId",      "timestamp|timestampNs",
		"totalAllocated", "totalReserved", "totalActive"};
	static const char *const module[] = {"moduleId", "deviceId", "timestampNs",
	                                     "totalReserved"};
	static const char *const app[] = {"type", "deviceId", "timestampNs", "ddr", "hbm"};
	bool found[4];
	NP_TRY(np_dbl_scan(self, "OP_MEMORY", op_memory, NP_DBL_COUNT(op_memory), op_memory_row,
	                   &found[0]));
	NP_TRY(np_dbl_scan(self, "MEMORY_RECORD", record, NP_DBL_COUNT(record), record_row,
	                   &found[1]));
	NP_TRY(np_dbl_scan(self, "NPU_MODULE_MEM", module, NP_DBL_COUNT(module), module_row,
	                   &found[2]));
	NP_TRY(np_dbl_scan(self, "NPU_MEM", app, NP_DBL_COUNT(app), app_row, &found[3]));
	if (found[0] || found[1] || found[2] || found[3])
		self->profile->loaded |= NP_MEMORY;
	return NP_OK;
}

/* ── counters ── */

/* One sample; `name` is the counter and its series as in the trace. */
static enum np_status add_counter(struct np_dbl *self, const char *process, const char *name,
                                  const struct np_db_value *at, double value)
{
	np_ns ts = np_dbl_i64(&at[1]);
	if (isnan(value) || !sane_time(self, ts))
		return NP_OK;
	uint32_t process_id = np_intern_add(&self->profile->strings, np_str_of(process));
	uint32_t name_id = np_intern_add(&self->profile->strings, np_str_of(name));
	size_t i = np_profile_add(self->profile, counters);
	if (i == SIZE_MAX)
		return np_err_nomem(self->err);
	struct np_counters *c = &self->profile->counters;
	c->process[i] = process_id;
	c->name[i] = name_id;
	c->device[i] = np_dbl_u32(&at[0]);
	c->ts_ns[i] = ts;
	c->value[i] = value;
	return process_id != NP_ID_NONE && name_id != NP_ID_NONE ? NP_OK : np_err_nomem(self->err);
}

/* "read" → "Read"; false when it is neither. */
static bool mode_of(struct np_dbl *self, const struct np_db_value *value, const char **mode)
{
	np_str text = np_intern_get(&self->profile->strings, np_dbl_string(self, value));
	*mode = np_str_ieq(text, NP_STR("read")) ? "Read" : "Write";
	return np_str_ieq(text, NP_STR("read")) || np_str_ieq(text, NP_STR("write"));
}

/* In all of these: deviceId, timestampNs, then the table's own columns. */

static enum np_status freq_row(struct np_dbl *self, const struct np_db_value *row)
{
	return add_counter(self, "AI Core Freq", "AI Core Freq MHz", row, np_dbl_double(&row[2]));
}

static enum np_status hbm_row(struct np_dbl *self, const struct np_db_value *row)
{
	char name[64];
	const char *mode;
	if (!mode_of(self, &row[4], &mode))
		return NP_OK;
	(void)snprintf(name, sizeof name, "HBM %lld/%s %s(MB/s)", (long long)np_dbl_i64(&row[3]),
	               mode, mode);
	return add_counter(self, "HBM", name, row, np_dbl_double(&row[2]) / MIB);
}

static enum np_status llc_row(struct np_dbl *self, const struct np_db_value *row)
{
	char name[96];
	const char *mode;
	if (!mode_of(self, &row[5], &mode))
		return NP_OK;
	long long id = np_dbl_i64(&row[2]);
	(void)snprintf(name, sizeof name, "LLC %lld %s/Throughput Throughput(MB/s)", id, mode);
	NP_TRY(add_counter(self, "LLC", name, row, np_dbl_double(&row[4]) / MIB));
	/* the trace writes the share of 1 under the title "(%)", the db the percentage */
	(void)snprintf(name, sizeof name, "LLC %lld %s/Hit Rate Hit Rate(%%)", id, mode);
	return add_counter(self, "LLC", name, row, np_dbl_double(&row[3]) / 100);
}

static enum np_status ddr_row(struct np_dbl *self, const struct np_db_value *row)
{
	NP_TRY(add_counter(self, "DDR", "DDR/Read Read(MB/s)", row, np_dbl_double(&row[2]) / MIB));
	return add_counter(self, "DDR", "DDR/Write Write(MB/s)", row, np_dbl_double(&row[3]) / MIB);
}

static enum np_status npu_mem_row(struct np_dbl *self, const struct np_db_value *row)
{
	np_str type = np_intern_get(&self->profile->strings, np_dbl_string(self, &row[4]));
	bool app = np_str_ieq(type, NP_STR("app"));
	double ddr = np_dbl_double(&row[2]) / 1024, hbm = np_dbl_double(&row[3]) / 1024;
	NP_TRY(add_counter(self, "NPU MEM", app ? "APP/DDR KB" : "Device/DDR KB", row, ddr));
	NP_TRY(add_counter(self, "NPU MEM", app ? "APP/HBM KB" : "Device/HBM KB", row, hbm));
	return add_counter(self, "NPU MEM", app ? "APP/Memory KB" : "Device/Memory KB", row,
	                   ddr + hbm);
}

static enum np_status soc_row(struct np_dbl *self, const struct np_db_value *row)
{
	NP_TRY(add_counter(self, "Stars Soc Info", "L2 Buffer Bw Level L2 Buffer Bw Level", row,
	                   np_dbl_double(&row[2])));
	return add_counter(self, "Stars Soc Info", "Mata Bw Level Mata Bw Level", row,
	                   np_dbl_double(&row[3]));
}

/* The trace has the accelerator as a second series of each counter; so it is here. */
static enum np_status acc_row(struct np_dbl *self, const struct np_db_value *row)
{
	static const char *const names[] = {"read_bandwidth", "write_band_width", "read_ost",
	                                    "write_ost"};
	char name[64];
	for (size_t i = 0; i < NP_DBL_COUNT(names); i++) {
		(void)snprintf(name, sizeof name, "%s value", names[i]);
		NP_TRY(add_counter(self, "Acc PMU", name, row, np_dbl_double(&row[3 + i])));
		(void)snprintf(name, sizeof name, "%s acc_id", names[i]);
		NP_TRY(add_counter(self, "Acc PMU", name, row, np_dbl_double(&row[2])));
	}
	return NP_OK;
}

enum np_status np_dbl_read_counters(struct np_dbl *self)
{
	enum { MAX_COLUMNS = 8 };
	static const struct {
		const char *table;
		np_dbl_row *each;
		const char *columns[MAX_COLUMNS];
	} tables[] = {
		{"AICORE_FREQ", freq_row, {"deviceId", "timestampNs", "freq"}},
		{"HBM", hbm_row, {"deviceId", "timestampNs", "bandwidth", "hbmId", "type"}},
		{"LLC",
	         llc_row,
	         {"deviceId", "timestampNs", "llcId", "hitRate", "throughput", "mode"}},
		{"DDR", ddr_row, {"deviceId", "timestampNs", "read", "write"}},
		{"NPU_MEM", npu_mem_row, {"deviceId", "timestampNs", "ddr", "hbm", "type"}},
		{"SOC_BANDWIDTH_LEVEL",
	         soc_row,
	         {"deviceId", "timestampNs", "l2BufferBwLevel", "mataBwLevel"}},
		{"ACC_PMU",
	         acc_row,
	         {"deviceId", "timestampNs", "accId", "readBwLevel", "writeBwLevel", "readOstLevel",
	          "writeOstLevel"}},
	};
	for (size_t i = 0; i < NP_DBL_COUNT(tables); i++) {
		size_t n = 0;
		bool found;
		while (n < MAX_COLUMNS && tables[i].columns[n])
			n++;
		NP_TRY(np_dbl_scan(self, tables[i].table, tables[i].columns, n, tables[i].each,
		                   &found));
		if (found)
			self->profile->loaded |= NP_COUNTERS;
	}
	return NP_OK;
}
