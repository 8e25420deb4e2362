/* A small report with every column type, absent cells and hostile names. */
#ifndef NP_TESTS_REPORT_FIXTURE_H
#define NP_TESTS_REPORT_FIXTURE_H

#include <math.h>

#include "report/report.h"

static const struct np_column fixture_columns[] = {
	{"name", "", NP_COL_TEXT, "what it is called"},
	{"count", "", NP_COL_INT, "how often"},
	{"bandwidth", "GB/s", NP_COL_REAL, "bytes / duration"},
	{"dur_ns", "ns", NP_COL_DUR_NS, "end - start"},
	{"start_ns", "ns", NP_COL_TIME_NS, ""},
	{"size_bytes", "bytes", NP_COL_BYTES, NULL},
	{"busy", "", NP_COL_PERCENT, "share of the step"},
	{"async", "", NP_COL_BOOL, ""},
};

static const struct np_column fixture_empty[] = {{"rank", "", NP_COL_INT, "rank id"}};

static const char *const fixture_names[] = {
	"MatMul_1",
	"矩阵乘法",
	"\x1b[31mred\x1b]0;title\x07",
	"two\nlines\r\tand a tab",
	"\xe2\x80\xaetxt.exe\xe2\x81\xa9",
	"<b>&bold</b>|pipe",
	"say \"hi\", it's",
	"=1+cmd|'/c calc'!A0",
	"bad \xff\xc2 utf8 \xc2\x9b",
	"",
};

static inline void fixture_table(struct np_report *report)
{
	struct np_table *table = NP_REPORT_TABLE(report, "ops", "Operators", fixture_columns);
	for (size_t i = 0; i < sizeof fixture_names / sizeof *fixture_names; i++) {
		int64_t k = (int64_t)i;
		np_cell_cstr(table, fixture_names[i]);
		np_cell_int(table, k == 0 ? INT64_MAX : -k);
		np_cell_real(table, k == 1 ? (double)NAN : 1.5 * (double)k);
		np_cell_int(table, 1234567 * k);
		np_cell_int(table, 1736412474730135222 + k);
		np_cell_int(table, k == 0 ? INT64_MIN : (INT64_C(1) << (5 * k)) + 512);
		np_cell_real(table, (double)k / 8);
		np_cell_bool(table, i % 2 == 0);
	}
	for (size_t c = 0; c < sizeof fixture_columns / sizeof *fixture_columns; c++)
		np_cell_na(table);
}

static inline void fixture_findings(struct np_report *report)
{
	struct np_finding *finding = np_report_finding(report, "KERNELS_EMPTY", NP_ERROR,
	                                               "%s has no rows", "kernel_details.csv");
	np_finding_detail(finding, "Without kernels nothing can be said about the device; the "
	                           "profiler was stopped before the export had written them.");
	for (int i = 1; i <= 5; i++)
		np_finding_evidence(finding, "rank_0/kernel_details.csv",
		                    i == 1 ? "Duration(us)" : NULL, i <= 2 ? "1-200" : NULL,
		                    "evidence %d", i);
	np_finding_impact(finding, 1234.5, 0.25);
	np_finding_advice(finding, "Export the capture again.");
	np_finding_command(finding, "npuprof export %s", np_shell_quote(report, "raw dir/it's"));

	finding = np_report_finding(report, "NAME_ODD", NP_WARNING, "hostile %s", "\x1b[2J\n# x");
	np_finding_evidence(finding, NULL, NULL, NULL, "*<i>%s</i>*", fixture_names[4]);
	np_finding_impact(finding, NAN, 0.5);
	np_finding_command(finding, "cat %s", np_shell_quote(report, "\x1b[2J ```"));

	(void)np_report_finding(report, "NOTHING", NP_INFO, "一切正常，没有需要修改的地方。");
}

static inline struct np_report *fixture_report(void)
{
	struct np_report *report = np_report_new("check");
	if (!report)
		return NULL;
	np_report_input(report, "/data/run 1");
	np_report_input(report, "/data/\x1b[7mx");
	report->verdict = NP_VERDICT_FAIL;
	report->exit_code = 1;
	fixture_findings(report);
	fixture_table(report);
	(void)NP_REPORT_TABLE(report, "ranks", "Ranks", fixture_empty);
	np_report_note(report, "rank %d was left out", 3);
	np_report_note(report, "1. not a list");
	return report;
}

#endif
