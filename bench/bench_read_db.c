/*
 * bench_read_db [DATABASE]: what np_read_profiler_db() costs beyond a bare scan of the
 * tables it needs. Without an argument a database of 3 M tasks, 1.5 M kernels and 1.5 M
 * node calls in 100 steps is made in $TMPDIR (or /tmp) and removed again. CPU time of the
 * thread.
 */
#include <sqlite3.h>
#include <unistd.h>

#include "capture/reader.h"
#include "io/db.h"

enum { N_ROUNDS = 3, MAX_COLUMNS = 14 };

static double cpu_seconds(void)
{
	struct timespec ts;
	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static int make(const char *path)
{
	/* every other task is a kernel, launched by a node call of the same connection */
	static const char fill[] =
		"PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; BEGIN;"
		"CREATE TABLE STRING_IDS(id INTEGER PRIMARY KEY, value TEXT);"
		"INSERT INTO STRING_IDS VALUES(1,'MatMulV2'),(2,'AI_CORE'),(3,'KERNEL_AICORE'),"
		"(4,'\"1024,1024;1024,1024\"'),(5,'FLOAT16;FLOAT16'),(6,'ND;ND'),(7,'dynamic');"
		"CREATE TABLE STEP_TIME(id INTEGER, startNs INTEGER, endNs INTEGER);"
		"CREATE TABLE TASK(startNs INTEGER, endNs INTEGER, deviceId INTEGER,"
		" connectionId INTEGER, globalTaskId INTEGER, globalPid INTEGER, taskType INTEGER,"
		" contextId INTEGER, streamId INTEGER, taskId INTEGER, modelId INTEGER);"
		"CREATE TABLE COMPUTE_TASK_INFO(name INTEGER, globalTaskId INTEGER PRIMARY KEY,"
		" blockDim INTEGER, mixBlockDim INTEGER, taskType INTEGER, opType INTEGER,"
		" inputFormats INTEGER, inputDataTypes INTEGER, inputShapes INTEGER,"
		" outputFormats INTEGER, outputDataTypes INTEGER, outputShapes INTEGER,"
		" attrInfo INTEGER);"
		"CREATE TABLE CANN_API(startNs INTEGER, endNs INTEGER, type INTEGER,"
		" globalTid INTEGER, connectionId INTEGER PRIMARY KEY, name INTEGER);"
		"WITH RECURSIVE n(i) AS (VALUES(0) UNION ALL SELECT i + 1 FROM n WHERE i < 2999999)"
		"INSERT INTO TASK SELECT 1736412474730135222 + i * 1210,"
		" 1736412474730135222 + i * 1210 + 300 + (i * 7919) % 900, 0, i, i, 123456, 3,"
		" 4294967295, i % 40, i % 65536, 4294967295 FROM n;"
		"INSERT INTO COMPUTE_TASK_INFO SELECT 1, globalTaskId, 24, 0, 2, 1, 6, 5, 4, 6, 5, "
		"4,"
		" 7 FROM TASK WHERE globalTaskId % 2 = 0;"
		"INSERT INTO CANN_API SELECT startNs - 900000, startNs - 899000, 10000, 4294967297,"
		" globalTaskId, 1 FROM TASK WHERE globalTaskId % 2 = 0;"
		"INSERT INTO STEP_TIME SELECT globalTaskId / 30000, startNs - 900000,"
		" startNs - 900001 + 30000 * 1210 FROM TASK WHERE globalTaskId % 30000 = 0;"
		"COMMIT";
	sqlite3 *db;
	int rc = sqlite3_open(path, &db);
	if (rc == SQLITE_OK)
		rc = sqlite3_exec(db, fill, NULL, NULL, NULL);
	(void)sqlite3_close(db);
	return rc;
}

/* The columns that the reader takes, and nothing done with them. */
static enum np_status scan(struct np_db *db, const char *table, const char *const *columns,
                           uint64_t *rows, struct np_err *err)
{
	struct np_db_scan *scan;
	struct np_db_value row[MAX_COLUMNS];
	size_t n = 0;
	while (n < MAX_COLUMNS && columns[n])
		n++;
	enum np_status status = np_db_scan_open(db, table, columns, n, 0, &scan, err);
	if (status != NP_OK)
		return status == NP_E_NOTFOUND ? NP_OK : status;
	bool got = true;
	while ((status = np_db_scan_next(scan, row, &got, err)) == NP_OK && got)
		(*rows)++;
	np_db_scan_close(scan);
	return status;
}

static enum np_status bare(const char *path, uint64_t *rows, struct np_err *err)
{
	static const char *const task[] = {"startNs",      "endNs",    "deviceId",  "connectionId",
	                                   "globalTaskId", "taskType", "contextId", "streamId",
	                                   "taskId",       "modelId",  NULL};
	static const char *const compute[] = {
		"globalTaskId", "name", "blockNum|blockDim", "mixBlockDim", "taskType",
		"opType",       NULL};
	static const char *const api[] = {"startNs", "endNs", "type", "connectionId", NULL};
	struct np_db *db;
	NP_TRY(np_db_open(path, &db, err));
	enum np_status status = scan(db, "TASK", task, rows, err);
	if (status == NP_OK)
		status = scan(db, "COMPUTE_TASK_INFO", compute, rows, err);
	if (status == NP_OK)
		status = scan(db, "CANN_API", api, rows, err);
	np_db_close(db);
	return status;
}

static enum np_status load(const char *path, unsigned what, size_t *rows, struct np_err *err)
{
	struct np_profile *profile = np_profile_new();
	if (!profile)
		return np_err_nomem(err);
	struct np_read read = {.profile = profile, .what = what, .threads = 1};
	enum np_status status = np_read_profiler_db(&read, path, err);
	*rows = profile->kernels.n + profile->tasks.n;
	np_profile_free(profile);
	return status;
}

static int run(const char *path)
{
	struct np_err err = {0};
	for (int round = 0; round < N_ROUNDS; round++) {
		uint64_t scanned = 0;
		size_t kernels = 0, tasks = 0;
		double t0 = cpu_seconds();
		enum np_status status = bare(path, &scanned, &err);
		double t1 = cpu_seconds();
		if (status == NP_OK)
			status = load(path, NP_KERNELS | NP_STEPS, &kernels, &err);
		double t2 = cpu_seconds();
		if (status == NP_OK)
			status = load(path, NP_TASKS, &tasks, &err);
		double t3 = cpu_seconds();
		if (status != NP_OK) {
			(void)fprintf(stderr, "bench_read_db: %s: %s\n", err.where, err.msg);
			return 4;
		}
		printf("%llu rows scanned in %.3f s (%.1f M rows/s); %zu kernels with steps %.3f "
		       "s, "
		       "%.2f of a scan; %zu tasks %.3f s, %.2f of a scan\n",
		       (unsigned long long)scanned, t1 - t0, (double)scanned / (t1 - t0) * 1e-6,
		       kernels, t2 - t1, (t2 - t1) / (t1 - t0), tasks, t3 - t2,
		       (t3 - t2) / (t1 - t0));
	}
	return 0;
}

int main(int argc, char **argv)
{
	if (argc > 1)
		return run(argv[1]);
	char path[4096];
	const char *tmp = getenv("TMPDIR");
	(void)snprintf(path, sizeof path, "%s/bench_read_db.%ld.db", tmp ? tmp : "/tmp",
	               (long)getpid());
	int status = make(path) == SQLITE_OK ? run(path) : 4;
	(void)unlink(path);
	return status;
}
