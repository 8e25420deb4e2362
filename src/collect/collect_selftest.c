/* Three fixtures with known answers (R53): the judging end of a collect, without ssh. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "collect/collect_internal.h"

enum { PATH_BYTES = 4096 };

struct fixture {
	const char *name;
	bool no_units;  /* no unit ratio: the gate fails */
	bool no_marker; /* the run was skipped: nobody knows when it began */
	int exit_code;
	const char *reason; /* what the report must name */
};

static const struct fixture fixtures[] = {
	{"a whole capture", false, false, 0, ""},
	{"no unit ratios", true, false, 1, ""},
	{"no start marker, as when the run is skipped", false, true, 3, "start"},
};

static const struct np_column columns[] = {
	{"fixture", "", NP_COL_TEXT, "what is wrong with it"},
	{"expected", "", NP_COL_INT, "exit status that is right"},
	{"got", "", NP_COL_INT, "exit status that the gate gave"},
	{"result", "", NP_COL_TEXT, "ok or WRONG"},
};

static bool put(const char *dir, const char *name, const char *text)
{
	char path[PATH_BYTES];
	if (snprintf(path, sizeof path, "%s/%s", dir, name) >= (int)sizeof path)
		return false;
	FILE *file = fopen(path, "we");
	if (!file)
		return false;
	bool good = fputs(text, file) >= 0;
	return fclose(file) == 0 && good;
}

static bool make(const char *home, const struct fixture *fixture)
{
	char out[PATH_BYTES];
	const char *units = fixture->no_units
	                            ? ""
	                            : ",aiv_vec_ratio,aic_mac_ratio,aiv_mte2_ratio,aiv_mte3_ratio";
	const char *values = fixture->no_units ? "" : ",0.1,0.8,0.5,0.2";
	char table[1024];
	if (snprintf(out, sizeof out, "%s/ASCEND_PROFILER_OUTPUT", home) >= (int)sizeof out ||
	    np_mkdirs(out, NULL) != NP_OK)
		return false;
	(void)snprintf(table, sizeof table,
	               "Step Id,Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait "
	               "Time(us)%s\n1,MatMul_0,MatMulV3,AI_CORE,1700000000000000.125,12.5,0%s\n",
	               units, values);
	return put(out, "kernel_details.csv", table) &&
	       put(out, "trace_view.json",
	           "[{\"ph\": \"X\", \"name\": \"MatMul_0\", \"pid\": 1, \"tid\": 2, \"ts\": "
	           "\"1700000000000000.125\", \"dur\": 12.5}]") &&
	       put(home, "profiler_info_0.json",
	           "{\"config\": {\"common_config\": {\"activities\": [\"ProfilerActivity.NPU\"], "
	           "\"schedule\": {\"wait\": 0, \"active\": 1, \"warmup\": 1, \"repeat\": 1, "
	           "\"skip_first\": 0}}, "
	           "\"experimental_config\": {\"_profiler_level\": \"Level1\", \"_aic_metrics\": "
	           "\"ACL_AICORE_PIPE_UTILIZATION\"}}, \"rank_id\": 0}");
}

/* Does some check or finding name the reason? */
static bool names(const struct np_report *report, const char *reason)
{
	if (!*reason)
		return true;
	for (size_t t = 0; t < report->tables.n; t++) {
		const struct np_table *table = report->tables.v[t];
		for (size_t i = 0; i < table->cells.n; i++)
			if (table->columns[i % table->n_columns].type == NP_COL_TEXT &&
			    !table->cells.v[i].na &&
			    np_str_icontains(table->cells.v[i].s, np_str_of(reason)))
				return true;
	}
	return false;
}

static enum np_status judge(const struct fixture *fixture, const char *root, size_t i,
                            struct np_table *table, bool *good, struct np_err *err)
{
	char home[PATH_BYTES], marker[PATH_BYTES];
	struct timespec past[2] = {{.tv_sec = 1000000000}, {.tv_sec = 1000000000}};
	(void)snprintf(home, sizeof home, "%s/%zu/host_7_20231114221320000_ascend_pt", root, i);
	(void)snprintf(marker, sizeof marker, "%s/marker", root);
	if (!make(home, fixture) || !put(root, "marker", "") ||
	    utimensat(AT_FDCWD, marker, past, 0) != 0)
		return np_err_sys(err, errno, home, "write the fixture");
	struct np_report *report = np_report_new("check");
	if (!report)
		return np_err_nomem(err);
	enum np_status status =
		collect_judge(home, fixture->no_marker ? NULL : marker, "kernel", 1, report, err);
	bool right = status == NP_OK && report->exit_code == fixture->exit_code &&
	             names(report, fixture->reason);
	np_cell_cstr(table, fixture->name);
	np_cell_int(table, fixture->exit_code);
	np_cell_int(table, report->exit_code);
	np_cell_cstr(table, right ? "ok" : "WRONG");
	*good &= right;
	np_report_free(report);
	return status;
}

enum np_status np_collect_selftest(struct np_report *report, struct np_err *err)
{
	const char *base = getenv("TMPDIR");
	char root[PATH_BYTES - 200];
	(void)snprintf(root, sizeof root, "%s/npuprof-selftest-XXXXXX",
	               base && *base ? base : P_tmpdir);
	if (!mkdtemp(root))
		return np_err_sys(err, errno, root, "create a temporary directory");
	struct np_table *table = NP_REPORT_TABLE(report, "selftest", "Fixtures", columns);
	bool good = true;
	enum np_status status = NP_OK;
	for (size_t i = 0; i < sizeof fixtures / sizeof *fixtures && status == NP_OK; i++)
		status = judge(&fixtures[i], root, i, table, &good, err);
	np_remove_tree(root);
	report->verdict = good ? NP_VERDICT_PASS : NP_VERDICT_FAIL;
	report->exit_code = good ? 0 : 1;
	return status;
}
