/* Files that a test makes for itself, below $TMPDIR; removed by temp_remove(). */
#ifndef NP_TESTS_TEMP_FILE_H
#define NP_TESTS_TEMP_FILE_H

#include <sqlite3.h>

#include "unit.h"

/* A name that nothing has yet; static memory, good until the next call. */
static inline const char *temp_path(const char *suffix)
{
	static char path[4096];
	static unsigned count;
	const char *dir = getenv("TMPDIR");
	(void)snprintf(path, sizeof path, "%s/npuprof-test-%d-%u%s", dir ? dir : "/tmp",
	               (int)getpid(), ++count, suffix);
	return path;
}

static inline const char *temp_text(const char *suffix, const char *text)
{
	const char *path = temp_path(suffix);
	FILE *file = fopen(path, "wb");
	assert_non_null(file);
	assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
	assert_int_equal(fclose(file), 0);
	return path;
}

/* A database made by the statements. */
static inline const char *temp_db(const char *sql)
{
	const char *path = temp_path(".db");
	sqlite3 *db = NULL;
	char *message = NULL;
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	if (sqlite3_exec(db, sql, NULL, NULL, &message) != SQLITE_OK)
		fail_msg("%s", message);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
	return path;
}

static inline void temp_remove(const char *path)
{
	assert_int_equal(unlink(path), 0);
}

#endif
