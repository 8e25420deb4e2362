/*
 * Inside np_read_profiler_db(): one load of one database.
 *
 * Tables are scanned once, each in the order in which it can be joined without
 * keeping more than an array of row numbers:
 *
 *   STRING_IDS ─▶ STEP_TIME ─▶ CANN_API (nodes) ─▶ COMPUTE_TASK_INFO ─┐
 *                 COMMUNICATION_OP ─▶ COMMUNICATION_TASK_INFO ────────┤
 *                                COMMUNICATION_SCHEDULE_TASK_INFO ────┤
 *                                                                     ▼
 *        kernels, comm_tasks, comm_schedule (pending) ◀── TASK ──▶ tasks, step windows
 *                                     │
 *                                     ▼
 *             TASK_PMU_INFO ─▶ pending rows without a task are dropped ─▶ steps
 *
 * A pending row has start_ns = NP_NO_I64 until its TASK row is met.
 *
 * Every function returns an error only when memory is out; a table that is not
 * there is "not collected", and one that is damaged gives what could be read
 * and a diagnostic.
 */
#ifndef NP_CAPTURE_DB_LOAD_H
#define NP_CAPTURE_DB_LOAD_H

#include "capture/db_ids.h"
#include "capture/db_ranges.h"
#include "capture/reader.h"
#include "io/db.h"

enum { NP_DBL_MAX_METRICS = 512 };

struct np_dbl {
	struct np_profile *profile;
	struct np_db *db;
	const char *path;
	unsigned what;
	struct np_err *err;

	struct np_ids strings; /* STRING_IDS.id → id in profile->strings */
	struct np_ids dtypes, links, transports, modules; /* ENUM_*: id → string id */

	size_t first_kernel, first_comm_task, first_comm_op,
		first_schedule;     /* rows of earlier files before these */
	struct np_ids kernel_of;    /* globalTaskId → row in kernels */
	struct np_ids compute_name; /* globalTaskId → kernel name, for tasks and host ops */
	struct np_ids comm_task_of; /* globalTaskId → row in comm_tasks */
	struct np_ids launched;     /* connectionId → kernel name, for the item of node calls */
	struct np_ids conn_device; /* connectionId of a collective → device, or one of the below */
	struct np_ids op_of;       /* opId → row in ops */
	struct np_ids schedule_of; /* globalTaskId → row in comm_schedule */
	struct np_comm_ops ops;    /* all COMMUNICATION_OP rows; moved to the profile at the end */
	uint32_t only_device;      /* of all TASK rows; NP_NO_U32 none yet, NP_DBL_MANY several */
	bool tasks_seen;           /* TASK was asked for */

	struct np_ranges steps;  /* host ranges of STEP_TIME, then device windows */
	struct np_ids conn_step; /* connectionId of a node call → index in steps */
	bool has_nodes;          /* CANN_API has node calls at all */

	/* Metrics by name while their rows are read: some exporters write them in runs of one
	 * metric, others all of one kernel together. */
	struct np_dbl_metric {
		uint32_t name; /* string id */
		double scale;  /* its unit to that of the column */
		double *v;     /* its values per kernel, NULL: not kept */
	} metrics[64];         /* at name % 64 */

	struct np_dbl_host *host; /* while the host's tables are read */

	uint64_t dangling, negative, bad_time, orphans, duplicates; /* rows, told at the end */
};

/* In the place of a device id; every device is below NP_DBL_MANY. */
#define NP_DBL_MANY   (UINT32_MAX - 2) /* tasks on several devices */
#define NP_DBL_UNSEEN (UINT32_MAX - 1) /* in conn_device: no task met yet */

/* ── scanning ── */

typedef enum np_status np_dbl_row(struct np_dbl *load, const struct np_db_value *row);

/* columns as in np_db_scan_open(); found (may be NULL): is the table there? */
enum np_status np_dbl_scan(struct np_dbl *load, const char *table, const char *const *columns,
                           size_t n_columns, np_dbl_row *each, bool *found);

/*
 * Room in a table of the profile (as np_rows_reserve() takes it) for the rows of one or two
 * (NULL) tables of the database, so that its columns need not move while they grow. Where it
 * fails they grow.
 */
void np_dbl_expect(struct np_dbl *load, void *rows, const struct np_table_desc *desc,
                   const char *table, const char *and);

#define NP_DBL_COUNT(array) (sizeof(array) / sizeof *(array))

/* ── values ── */

/* NP_NO_I64 for NULL and what is no integer. */
static inline int64_t np_dbl_i64(const struct np_db_value *value)
{
	int64_t i;
	if (value->type == NP_DB_INT)
		return value->i;
	return np_db_i64(value, &i) ? i : NP_NO_I64;
}

/* NP_NO_U32 for what is none. The exporters' own "none" is 4294967295, too. */
static inline uint32_t np_dbl_u32(const struct np_db_value *value)
{
	int64_t i = np_dbl_i64(value);
	return i >= 0 && i <= UINT32_MAX ? (uint32_t)i : NP_NO_U32;
}

/* A connection id; 4294967295 and negative ones are none. */
static inline int64_t np_dbl_conn(const struct np_db_value *value)
{
	int64_t i = np_dbl_i64(value);
	return i >= 0 && i != UINT32_MAX ? i : NP_NO_I64;
}

double np_dbl_double(const struct np_db_value *value); /* NaN when there is none */

/* A reference to STRING_IDS: NP_ID_NONE for NULL, and counted when it dangles. */
uint32_t np_dbl_string(struct np_dbl *load, const struct np_db_value *value);
/* The same, where the exporter writes "N/A" for what it doesn't know: absent, too, unless
 * NP_KEEP_NA asks for the text. */
uint32_t np_dbl_string_na(struct np_dbl *load, const struct np_db_value *value);

/* A time of PYTORCH_API: ns as text, which may have a fraction; NP_NO_I64 for none. */
int64_t np_dbl_ns(const struct np_db_value *value);

/* Are start and end a range to keep? Counts it when not. */
bool np_dbl_time(struct np_dbl *load, int64_t start, int64_t end, np_ns *dur_ns);

/* ── parts ── */

enum np_status np_dbl_read_steps(struct np_dbl *load);  /* STEP_TIME, CANN_API's nodes */
enum np_status np_dbl_close_steps(struct np_dbl *load); /* windows, kernels.step, ops.step */
void np_dbl_step_task(struct np_dbl *load, int64_t conn, np_ns start, np_ns end);

enum np_status np_dbl_read_comm(struct np_dbl *load);     /* before TASK */
enum np_status np_dbl_close_comm(struct np_dbl *load);    /* devices, rows in kernels */
enum np_status np_dbl_read_schedule(struct np_dbl *load); /* before TASK */
bool np_dbl_comm_device(struct np_dbl *load, int64_t conn, uint32_t device);

enum np_status np_dbl_read_tasks(struct np_dbl *load);  /* COMPUTE_TASK_INFO, TASK */
enum np_status np_dbl_close_tasks(struct np_dbl *load); /* metrics; drops pending rows */
void np_dbl_note_device(struct np_dbl *load, uint32_t device);

enum np_status np_dbl_read_host(struct np_dbl *load); /* after TASK */
enum np_status np_dbl_read_mstx(struct np_dbl *load);
enum np_status np_dbl_read_memory(struct np_dbl *load);
enum np_status np_dbl_read_counters(struct np_dbl *load);

/* Append a kernel row (and its shapes row) with everything absent; SIZE_MAX: out of memory. */
size_t np_dbl_add_kernel(struct np_dbl *load);

#endif
