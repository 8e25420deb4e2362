/*
 * bench_db [DATABASE]: rows per second of full scans of a TASK table, by our
 * page scan and by libsqlite3, with equal checksums. Without an argument a
 * database of 3 M rows is made in $TMPDIR (or /tmp) and removed again. CPU time
 * of the thread, so that a shared machine disturbs little.
 */
#include <sqlite3.h>
#include <unistd.h>

#include "io/db.h"

enum { N_COLUMNS = 11, N_ROWS = 3000000, N_ROUNDS = 5 };

static const char *const columns[N_COLUMNS] = {
	"startNs",  "endNs",     "deviceId", "connectionId", "globalTaskId", "globalPid",
	"taskType", "contextId", "streamId", "taskId",       "modelId",
};

static double cpu_seconds(void)
{
	struct timespec ts;
	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static int make(const char *path)
{
	/* connection -1 or a number, few small numbers, times of 8 bytes: as real ones */
	static const char fill[] =
		"PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; BEGIN;"
		"CREATE TABLE TASK(startNs INTEGER, endNs INTEGER, deviceId INTEGER,"
		" connectionId INTEGER, globalTaskId INTEGER, globalPid INTEGER, taskType INTEGER,"
		" contextId INTEGER, streamId INTEGER, taskId INTEGER, modelId INTEGER);"
		"WITH RECURSIVE n(i) AS (VALUES(0) UNION ALL SELECT i + 1 FROM n WHERE i < 2999999)"
		"INSERT INTO TASK SELECT 1736412474730135222 + i * 1210,"
		" 1736412474730135222 + i * 1210 + 300 + (i * 7919) % 900, i % 8,"
		" CASE i % 3 WHEN 0 THEN 4294967295 ELSE i * 2 END, i, 123456, 20 + i % 9,"
		" CASE i % 5 WHEN 0 THEN i % 60000 ELSE 4294967295 END, i % 40, i % 65536, "
		"4294967295"
		" FROM n; COMMIT";
	sqlite3 *db;
	int rc = sqlite3_open(path, &db);
	if (rc == SQLITE_OK)
		rc = sqlite3_exec(db, fill, NULL, NULL, NULL);
	(void)sqlite3_close(db);
	return rc;
}

struct result {
	double seconds;
	uint64_t sum;
	int64_t n_rows;
	bool native;
};

static enum np_status scan(struct np_db *db, unsigned flags, struct result *out, struct np_err *err)
{
	struct np_db_scan *scan;
	struct np_db_value row[N_COLUMNS];
	bool got = true;
	*out = (struct result){0};
	double start = cpu_seconds();
	NP_TRY(np_db_scan_open(db, "TASK", columns, N_COLUMNS, flags, &scan, err));
	enum np_status status;
	while ((status = np_db_scan_next(scan, row, &got, err)) == NP_OK && got) {
		for (size_t i = 0; i < N_COLUMNS; i++)
			out->sum += (uint64_t)row[i].i * (i + 1);
		out->n_rows++;
	}
	out->native = np_db_scan_is_native(scan);
	np_db_scan_close(scan);
	out->seconds = cpu_seconds() - start;
	return status;
}

static int run(const char *path)
{
	struct np_err err = {0};
	struct np_db *db;
	if (np_db_open(path, &db, &err) != NP_OK)
		goto failed;
	for (int round = 0; round < N_ROUNDS; round++) {
		struct result ours, theirs;
		if (scan(db, 0, &ours, &err) != NP_OK ||
		    scan(db, NP_DB_NO_NATIVE, &theirs, &err) != NP_OK)
			goto failed;
		printf("%lld rows: %s %.1f M rows/s, libsqlite3 %.1f M rows/s, ratio %.1f, "
		       "checksums %s\n",
		       (long long)ours.n_rows, ours.native ? "native" : "NOT NATIVE",
		       (double)ours.n_rows / ours.seconds * 1e-6,
		       (double)theirs.n_rows / theirs.seconds * 1e-6, theirs.seconds / ours.seconds,
		       ours.sum == theirs.sum && ours.n_rows == theirs.n_rows ? "equal" : "DIFFER");
	}
	np_db_close(db);
	return 0;
failed:
	(void)fprintf(stderr, "bench_db: %s: %s\n", err.where, err.msg);
	return 4;
}

int main(int argc, char **argv)
{
	if (argc > 1)
		return run(argv[1]);
	char path[4096];
	const char *tmp = getenv("TMPDIR");
	(void)snprintf(path, sizeof path, "%s/bench_db.%ld.db", tmp ? tmp : "/tmp", (long)getpid());
	int status = make(path) == SQLITE_OK ? run(path) : 4;
	(void)unlink(path);
	return status;
}
