/* What the tests of synth share: a directory per test, and small readers that are
 * not npuprof's, so that those can be tested with these files. */
#ifndef NP_TESTS_SYNTH_UNIT_H
#define NP_TESTS_SYNTH_UNIT_H

#include "unit.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "synth/model.h"
#include "synth/synth.h"
#include "synth/tree.h"

#define OUTPUT "ASCEND_PROFILER_OUTPUT"

/* ── a directory for each test ── */

struct fixture {
	char root[64], set[96], other[96];
	struct np_arena arena;
	struct np_synth_options options;
	struct np_synth_fault faults[4];
	struct np_err err;
};

static inline int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof *f);
	if (!f)
		return -1;
	(void)snprintf(f->root, sizeof f->root, "/tmp/npuprof-synth-XXXXXX");
	if (!mkdtemp(f->root))
		return -1;
	(void)snprintf(f->set, sizeof f->set, "%s/set", f->root);
	(void)snprintf(f->other, sizeof f->other, "%s/other", f->root);
	np_arena_init(&f->arena);
	np_synth_options_init(&f->options);
	f->options.layers = 2;
	f->options.faults = f->faults;
	*state = f;
	return 0;
}

static inline int teardown(void **state)
{
	struct fixture *f = *state;
	np_mem_fail_after(0);
	(void)np_tree_remove(f->root, NULL);
	np_arena_release(&f->arena);
	free(f);
	return 0;
}

static inline void write_set(struct fixture *f, const char *fault)
{
	f->options.n_faults = 0;
	if (fault) {
		assert_int_equal(np_synth_parse_fault(fault, &f->faults[0], &f->err), NP_OK);
		f->options.n_faults = 1;
	}
	f->options.force = true;
	enum np_status status = np_synth_write(f->set, &f->options, NULL, &f->err);
	if (status != NP_OK)
		fail_msg("%s: %s: %s", fault ? fault : "no fault", f->err.where, f->err.msg);
}

/* The path of a rank's directory (its pid is in the name), "" when there is none. */
static inline const char *rank_dir(struct fixture *f, uint32_t rank)
{
	struct np_dir dir;
	char pid[32];
	(void)snprintf(pid, sizeof pid, "_%u_", 100000 + rank * 7);
	assert_int_equal(np_dir_list(&f->arena, f->set, &dir, NULL), NP_OK);
	for (size_t i = 0; i < dir.n; i++)
		if (strstr(dir.v[i].name, pid))
			return np_path_join(&f->arena, f->set, dir.v[i].name);
	return "";
}

static inline const char *out_path(struct fixture *f, uint32_t rank, const char *name)
{
	const char *dir = rank_dir(f, rank);
	return *dir ? np_arena_printf(&f->arena, "%s/" OUTPUT "/%s", dir, name) : "";
}

static inline bool exists(const char *path)
{
	return access(path, F_OK) == 0;
}

static inline np_str slurp(struct fixture *f, const char *path)
{
	np_str text = {NULL, 0};
	if (np_file_slurp(&f->arena, path, 64 << 20, &text, NULL) != NP_OK)
		fail_msg("cannot read %s", path);
	return text;
}

static inline size_t count_dirs(struct fixture *f)
{
	struct np_dir dir;
	size_t n = 0;
	assert_int_equal(np_dir_list(&f->arena, f->set, &dir, NULL), NP_OK);
	for (size_t i = 0; i < dir.n; i++)
		n += dir.v[i].kind == NP_FILE_DIR;
	return n;
}

/* ── a small csv: cells of a whole file ── */

struct sheet {
	np_str *cells;
	size_t columns, rows; /* rows without the header */
	bool ragged;
};

static inline struct sheet read_sheet(struct fixture *f, const char *path)
{
	np_str text = slurp(f, path);
	struct sheet s = {.cells = np_arena_alloc(&f->arena, (text.len + 1) * sizeof(np_str))};
	size_t n = 0, in_row = 0;
	bool quoted = false;
	const char *start = text.ptr;
	for (const char *p = text.ptr; p < text.ptr + text.len; p++) {
		if (*p == '"')
			quoted = !quoted;
		if (quoted || (*p != ',' && *p != '\n'))
			continue;
		s.cells[n++] = np_str_trim((np_str){start, (size_t)(p - start)});
		in_row++;
		start = p + 1;
		if (*p == ',')
			continue;
		if (s.columns == 0)
			s.columns = in_row;
		else
			s.rows++;
		s.ragged = s.ragged || in_row != s.columns;
		in_row = 0;
	}
	assert_false(quoted);
	return s;
}

static inline size_t column(const struct sheet *s, const char *name)
{
	for (size_t i = 0; i < s->columns; i++)
		if (np_str_is(s->cells[i], name))
			return i;
	fail_msg("no column \"%s\"", name);
	return 0;
}

static inline np_str cell(const struct sheet *s, size_t row, size_t col)
{
	return s->cells[(row + 1) * s->columns + col];
}

static inline int64_t ns_at(const struct sheet *s, size_t row, const char *name)
{
	int64_t ns = 0;
	assert_int_equal(np_us_to_ns(cell(s, row, column(s, name)), &ns), NP_NUM_OK);
	return ns;
}

/* ── a small database ── */

static inline sqlite3 *open_db(const char *path)
{
	sqlite3 *db = NULL;
	if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK)
		fail_msg("cannot open %s", path);
	return db;
}

static inline int64_t query_int(sqlite3 *db, const char *sql)
{
	sqlite3_stmt *stmt = NULL;
	if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) != SQLITE_OK)
		fail_msg("%s: %s", sql, sqlite3_errmsg(db));
	assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
	int64_t value = sqlite3_column_int64(stmt, 0);
	(void)sqlite3_finalize(stmt);
	return value;
}

/* The value of `"key": <integer>` behind the n-th `anchor` of a json text. */
static inline int64_t json_int(np_str text, const char *anchor, const char *key)
{
	const char *at = strstr(text.ptr, anchor);
	char quoted[64];
	(void)snprintf(quoted, sizeof quoted, "\"%s\": ", key);
	at = at ? strstr(at, quoted) : NULL;
	if (!at)
		fail_msg("no %s behind %s", key, anchor);
	return strtoll(at + strlen(quoted), NULL, 10);
}

static inline int64_t truth(struct fixture *f, uint32_t rank, const char *key)
{
	char anchor[32], path[128];
	(void)snprintf(anchor, sizeof anchor, "{\"rank\": %u,", rank);
	(void)snprintf(path, sizeof path, "%s/truth.json", f->set);
	return json_int(slurp(f, path), anchor, key);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

#endif
