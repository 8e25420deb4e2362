/*
 * The gate's own test, for people and pre-commit hooks: fixtures with known
 * answers (R50: the ten of the field's script, and more), judged by the same
 * code as real captures.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "gate/gate.h"

enum { T0 = 1700000000, FRESH = T0 + 60, STALE = T0 - 3600, PATH_SIZE = 4096 };

enum flaw {
	MEMORY_BOUND = 1 << 0, /* the optional column is there */
	OLD_FILES = 1 << 1,
	HEADER_ONLY = 1 << 2,
	NO_MARKER = 1 << 3,
	MARKER_MISSING = 1 << 4,
	NO_UNITS = 1 << 5,
	ALL_NA = 1 << 6,
	NO_ORDER = 1 << 7,
	EMPTY_DIR = 1 << 8,
	NO_TRACE = 1 << 9,
	CUT_TRACE = 1 << 10,
	COMMA_TRACE = 1 << 11,
	RAW_ONLY = 1 << 12,
	OTHER_GROUP = 1 << 13,
	OF_910A = 1 << 14,
	FAILED_LOG = 1 << 15,
	NEGATIVE_ROWS = 1 << 16,
	NO_CONFIG = 1 << 17,
	FEWER_STEPS = 1 << 18,
	SECOND_RANK_BARE = 1 << 19,
	EPOCH_LATER = 1 << 20,
	TOLERANT = 1 << 21,
	OP_SUMMARY_NAMES = 1 << 22,
	FEW_NA = 1 << 23,
	TWO_SPLIT = 1 << 24, /* name and duration in one file, the core in another */
};

static const struct fixture {
	const char *name;
	unsigned flaws;
	int exit_code;
	const char *decided_by; /* the check that must say so; "" when all pass */
} fixtures[] = {
	/* the ten of R50 */
	{"ok", MEMORY_BOUND, 0, ""},
	{"ok without memory_bound", 0, 0, ""},
	{"stale", OLD_FILES, 1, "freshness"},
	{"header only", HEADER_ONLY, 1, "data_rows"},
	{"no marker", NO_MARKER, 3, "freshness"},
	{"marker missing", MARKER_MISSING, 3, "freshness"},
	{"no utilisation", NO_UNITS, 1, "unit_utilisation"},
	{"all N/A", ALL_NA, 1, "judged_values"},
	{"no order", NO_ORDER, 1, "execution_order"},
	{"empty directory", EMPTY_DIR, 1, "artefacts_exist"},
	/* and more */
	{"names of op_summary", OP_SUMMARY_NAMES, 0, ""},
	{"some N/A", FEW_NA, 0, ""},
	{"order split over two files", TWO_SPLIT, 1, "execution_order"},
	{"trace missing", NO_TRACE, 1, "trace_view"},
	{"trace cut", CUT_TRACE, 1, "trace_view"},
	{"trace ends in ,]", COMMA_TRACE, 1, "trace_view"},
	{"raw dump only", RAW_ONLY, 1, "ranks_complete"},
	{"another PMU group", OTHER_GROUP, 1, "unit_utilisation"},
	{"910A", OF_910A, 0, ""},
	{"run failed in a log", FAILED_LOG, 1, "log_signs"},
	{"negative durations", NEGATIVE_ROWS, 1, "kernels_plausible"},
	{"configuration not recorded", NO_CONFIG, 3, "provenance"},
	{"fewer steps than scheduled", FEWER_STEPS, 1, "steps_complete"},
	{"second rank without kernels", SECOND_RANK_BARE, 1, "ranks_complete"},
	{"epoch wins over the marker", EPOCH_LATER, 1, "freshness"},
	{"old, but within the tolerance", OLD_FILES | TOLERANT, 0, ""},
};

/* ── writing ── */

static bool join(char *out, const char *dir, const char *name)
{
	return (size_t)snprintf(out, PATH_SIZE, "%s/%s", dir, name) < PATH_SIZE;
}

static bool put(const char *dir, const char *name, const char *text, bool old)
{
	char path[PATH_SIZE];
	if (!join(path, dir, name))
		return false;
	char *slash = strrchr(path, '/');
	*slash = '\0';
	bool ok = np_mkdirs(path, NULL) == NP_OK;
	*slash = '/';
	FILE *file = ok ? fopen(path, "we") : NULL;
	if (!file)
		return false;
	ok = fputs(text, file) >= 0;
	ok &= fclose(file) == 0;
	struct timespec when = {.tv_sec = old ? STALE : FRESH};
	struct timespec times[2] = {when, when};
	return ok && utimensat(AT_FDCWD, path, times, 0) == 0;
}

/* kernel_details.csv with 4 rows of two steps. */
static void kernel_table(struct np_buf *out, unsigned flaws)
{
	const char *prefix = flaws & OF_910A ? "" : "aiv_";
	const char *cube = flaws & OF_910A ? "" : "aic_";
	bool summary = flaws & OP_SUMMARY_NAMES;
	const char *core = flaws & NO_ORDER    ? "Some Core"
	                   : flaws & TWO_SPLIT ? "Stream ID"
	                   : summary           ? "Task Type"
	                                       : "Accelerator Core";
	np_buf_printf(out, "Step Id,%s,%s,%s,%s,%s,%s", summary ? "Op Name" : "Name",
	              summary ? "OP Type" : "Type", core,
	              summary ? "Task Start Time(us)" : "Start Time(us)",
	              summary ? "Task Duration(us)" : "Duration(us)",
	              summary ? "Task Wait Time(us)" : "Wait Time(us)");
	bool units = !(flaws & (NO_UNITS | OTHER_GROUP));
	if (units)
		np_buf_printf(out, ",%svec_ratio,%smac_ratio,%smte2_ratio,%smte3_ratio", prefix,
		              cube, prefix, prefix);
	if (flaws & OTHER_GROUP)
		np_buf_add_cstr(out, ",aic_l2_read_bw(GB/s),aic_main_mem_read_bw(GB/s)");
	if (flaws & MEMORY_BOUND)
		np_buf_add_cstr(out, ",memory_bound");
	np_buf_add_cstr(out, "\r\n");
	for (int i = 0; i < 4 && !(flaws & HEADER_ONLY); i++) {
		bool na = (flaws & ALL_NA) || ((flaws & FEW_NA) && i < 2);
		np_buf_printf(out, "%d,MatMul_%d,MatMulV3,AI_CORE,17000000%02d000000.125\t,%s,0",
		              i / 2 + 1, i, i, (flaws & NEGATIVE_ROWS) && i < 2 ? "-3.5" : "12.5");
		if (units)
			np_buf_add_cstr(out, na ? ",N/A,N/A,N/A,N/A" : ",0.1,0.8,0.5,0.2");
		if (flaws & OTHER_GROUP)
			np_buf_add_cstr(out, ",1.5,2.5");
		if (flaws & MEMORY_BOUND)
			np_buf_add_cstr(out, ",0.625");
		np_buf_add_cstr(out, "\r\n");
	}
}

static bool put_kernels(const char *dir, unsigned flaws)
{
	struct np_buf table = {0};
	kernel_table(&table, flaws);
	bool ok = !table.failed && put(dir, "kernel_details.csv", table.ptr, flaws & OLD_FILES);
	np_buf_release(&table);
	return ok;
}

static bool put_trace(const char *dir, unsigned flaws)
{
	static const char event[] =
		"{\"ph\": \"X\", \"name\": \"MatMul_0\", \"pid\": 1, \"tid\": 2, \"ts\": "
		"\"1700000000000000.125\", \"dur\": 12.5}";
	char text[512];
	const char *end = flaws & CUT_TRACE     ? ", {\"ph\": \"X\", \"na"
	                  : flaws & COMMA_TRACE ? ",]"
	                                        : "]";
	(void)snprintf(text, sizeof text, "[%s%s", event, end);
	return flaws & NO_TRACE || put(dir, "trace_view.json", text, flaws & OLD_FILES);
}

static bool put_rank(const char *home, const char *output, int rank, unsigned flaws)
{
	char name[64], text[512];
	(void)snprintf(name, sizeof name, "profiler_info_%d.json", rank);
	(void)snprintf(
		text, sizeof text,
		"{\"config\": {\"common_config\": {\"activities\": [\"ProfilerActivity.NPU\"], "
		"\"schedule\": {\"wait\": 0, \"active\": %d, \"warmup\": 1, \"repeat\": 1, "
		"\"skip_first\": 0}}, \"experimental_config\": {\"_profiler_level\": \"Level1\", "
		"\"_aic_metrics\": \"ACL_AICORE_PIPE_UTILIZATION\"}}, \"rank_id\": %d}",
		flaws & FEWER_STEPS ? 5 : 2, rank);
	bool ok = flaws & NO_CONFIG || put(home, name, text, false);
	if (flaws & FAILED_LOG)
		ok &= put(home, "logs/profiler.log",
		          "\x1b[31m[ERROR]\x1b[0m Task [KernelParser] run \x1b[1mfailed.\n", false);
	return ok && put_kernels(output, flaws) && put_trace(output, flaws);
}

static bool put_capture(const char *dir, unsigned flaws)
{
	char home[PATH_SIZE], output[PATH_SIZE];
	if (flaws & EMPTY_DIR)
		return true;
	if (!join(home, dir, "host_7_20231114221320000_ascend_pt") ||
	    !join(output, home, "ASCEND_PROFILER_OUTPUT"))
		return false;
	if (flaws & RAW_ONLY)
		return put(home, "FRAMEWORK/torch.op_range", "raw", false) &&
		       put(home, "PROF_000001_20231114221320000_ABC/device_0/data/x.slice_0", "raw",
		           false);
	bool ok = put_rank(home, output, 0, flaws);
	if (flaws & TWO_SPLIT)
		ok &= put(output, "task_time.csv", "kernel_type,other\nAI_CORE,1\n", false);
	if (flaws & SECOND_RANK_BARE)
		ok &= join(home, dir, "host_8_20231114221320001_ascend_pt") &&
		      join(output, home, "ASCEND_PROFILER_OUTPUT") && put_trace(output, 0) &&
		      put(home, "profiler_info_1.json", "{\"config\": {\"common_config\": {}}}",
		          false);
	return ok;
}

/* ── judging ── */

static enum np_status judge(const struct fixture *fixture, const char *dir, const char *marker,
                            struct np_report *report, struct np_err *err)
{
	struct np_gate_options options = {.threads = 1};
	if (!(fixture->flaws & NO_MARKER))
		options.start_marker =
			fixture->flaws & MARKER_MISSING ? "/nonexistent/marker" : marker;
	if (fixture->flaws & EPOCH_LATER) {
		options.has_start_epoch = true;
		options.start_epoch = FRESH + 1;
	}
	options.tolerance_seconds = fixture->flaws & TOLERANT ? 4000 : 0;
	struct np_captures *all = NULL;
	NP_TRY(np_discover(dir, &all, err));
	enum np_status status = np_gate_run(all, &options, report, err);
	np_captures_free(all);
	return status;
}

static const struct np_column columns[] = {
	{"fixture", "", NP_COL_TEXT, "what is wrong with it"},
	{"expected", "", NP_COL_INT, "exit status that is right"},
	{"got", "", NP_COL_INT, "exit status that the gate gave"},
	{"decided_by", "", NP_COL_TEXT, "the check that decides"},
	{"result", "", NP_COL_TEXT, "ok or WRONG"},
};

/* Did this check give the verdict that the exit status stands for? */
static bool decided(const struct np_report *report, const struct fixture *fixture)
{
	const char *wanted = fixture->exit_code == 1 ? "FAIL" : "UNKNOWN";
	if (fixture->exit_code == 0)
		return report->verdict == NP_VERDICT_PASS;
	for (size_t t = 0; t < report->tables.n; t++) {
		const struct np_table *table = report->tables.v[t];
		for (size_t row = 0; row < np_table_rows(table); row++)
			if (np_str_is(np_table_cell(table, row, 0)->s, fixture->decided_by))
				return np_str_is(np_table_cell(table, row, 2)->s, wanted);
	}
	return false;
}

static enum np_status run_fixture(const struct fixture *fixture, const char *root, size_t i,
                                  struct np_table *table, bool *all_ok, struct np_err *err)
{
	char dir[PATH_SIZE], marker[PATH_SIZE], name[32];
	struct timespec times[2] = {{.tv_sec = T0}, {.tv_sec = T0}};
	(void)snprintf(name, sizeof name, "f%zu", i);
	bool made = join(dir, root, name);
	(void)snprintf(name, sizeof name, "marker%zu", i);
	made = made && join(marker, root, name) && np_mkdirs(dir, NULL) == NP_OK &&
	       put_capture(dir, fixture->flaws) && put(root, name, "", false) &&
	       utimensat(AT_FDCWD, marker, times, 0) == 0;
	if (!made)
		return np_err_sys(err, errno, dir, "write the fixture");
	struct np_report *report = np_report_new("check");
	if (!report)
		return np_err_nomem(err);
	enum np_status status = judge(fixture, dir, marker, report, err);
	bool ok = report->exit_code == fixture->exit_code && decided(report, fixture);
	np_cell_cstr(table, fixture->name);
	np_cell_int(table, fixture->exit_code);
	np_cell_int(table, report->exit_code);
	np_cell_cstr(table, *fixture->decided_by ? fixture->decided_by : NULL);
	np_cell_cstr(table, ok ? "ok" : "WRONG");
	*all_ok &= ok;
	np_report_free(report);
	return status;
}

enum np_status np_gate_selftest(struct np_report *report, struct np_err *err)
{
	const char *base = getenv("TMPDIR");
	char root[4096];
	(void)snprintf(root, sizeof root, "%s/npuprof-selftest-XXXXXX",
	               base && *base ? base : P_tmpdir);
	if (!mkdtemp(root))
		return np_err_sys(err, errno, root, "create a temporary directory");
	struct np_table *table = NP_REPORT_TABLE(report, "selftest", "Fixtures", columns);
	bool all_ok = true;
	enum np_status status = NP_OK;
	for (size_t i = 0; i < sizeof fixtures / sizeof *fixtures && status == NP_OK; i++)
		status = run_fixture(&fixtures[i], root, i, table, &all_ok, err);
	np_remove_tree(root);
	report->verdict = all_ok ? NP_VERDICT_PASS : NP_VERDICT_FAIL;
	report->exit_code = all_ok ? 0 : 1;
	return status;
}
