#include "unit.h"

#include "report/report.h"
#include "report/write.h"
#include "report/writer.h"
#include "report_fixture.h"

/* One literal per line of output. */
/* clang-format off */
static const char golden_text_cut[] =
	"\033[1mnpuprof check\033[0m\n"
	"input: /data/run 1\n"
	"input: /data/\\x1b[7mx\n"
	"verdict: \033[1;31mFAIL\033[0m (1 error, 1 warning)\n"
	"\n"
	"\033[1;31merror\033[0m KERNELS_EMPTY kernel_details.csv has no rows\n"
	"  Without kernels nothing can be said about the device; the profiler was stopped before the export had written\n"
	"  them.\n"
	"  - rank_0/kernel_details.csv: Duration(us): 1-200: evidence 1\n"
	"  - rank_0/kernel_details.csv: 1-200: evidence 2\n"
	"  - rank_0/kernel_details.csv: evidence 3\n"
	"  … 2 more (-v shows all)\n"
	"  impact: at most 1234.500 us, 25.0 % of the step\n"
	"  advice: Export the capture again.\n"
	"  $ npuprof export 'raw dir/it'\\''s'\n"
	"\n"
	"\033[1;33mwarning\033[0m NAME_ODD hostile \\x1b[2J\\n# x\n"
	"  - *<i>\\u202etxt.exe\\u2069</i>*\n"
	"  impact: at most 50.0 % of the step\n"
	"  $ cat $'\\033[2J ```'\n"
	"\n"
	"\033[1;36minfo\033[0m NOTHING 一切正常，没有需要修改的地方。\n"
	"\n"
	"\033[1mOperators\033[0m\n"
	"\033[1m  name                       count  bandwidth (GB/s)   dur (us)              start (UTC)      size     busy  async\033[0m\n"
	"  MatMul_1     9223372036854775807             0.000      0.000  2025-01-09 08:47:54.730  -8.0 EiB    0.0 %  yes\n"
	"  矩阵乘法                      -1                 -   1234.567  2025-01-09 08:47:54.730     544 B   12.5 %  no\n"
	"  \\x1b[31mre…                   -2             3.000   2469.134  2025-01-09 08:47:54.730   1.5 KiB   25.0 %  yes\n"
	"  two\\nlines…                   -3             4.500   3703.701  2025-01-09 08:47:54.730  32.5 KiB   37.5 %  no\n"
	"  \\u202etxt.…                   -4             6.000   4938.268  2025-01-09 08:47:54.730   1.0 MiB   50.0 %  yes\n"
	"  <b>&bold</…                   -5             7.500   6172.835  2025-01-09 08:47:54.730  32.0 MiB   62.5 %  no\n"
	"  say \"hi\", …                   -6             9.000   7407.402  2025-01-09 08:47:54.730   1.0 GiB   75.0 %  yes\n"
	"  =1+cmd|'/c…                   -7            10.500   8641.969  2025-01-09 08:47:54.730  32.0 GiB   87.5 %  no\n"
	"  bad \\xff…                     -8            12.000   9876.536  2025-01-09 08:47:54.730   1.0 TiB  100.0 %  yes\n"
	"                                -9            13.500  11111.103  2025-01-09 08:47:54.730  32.0 TiB  112.5 %  no\n"
	"  -                              -                 -          -                        -         -        -  -\n"
	"\n"
	"\033[1mRanks\033[0m\n"
	"  (no rows)\n"
	"\n"
	"note: rank 3 was left out\n"
	"note: 1. not a list\n";

static const char golden_text_full[] =
	"npuprof check\n"
	"input: /data/run 1\n"
	"input: /data/\\x1b[7mx\n"
	"verdict: FAIL (1 error, 1 warning)\n"
	"\n"
	"error KERNELS_EMPTY kernel_details.csv has no rows\n"
	"  Without kernels nothing can be said about the device; the profiler was stopped before the export had written them.\n"
	"  - rank_0/kernel_details.csv: Duration(us): 1-200: evidence 1\n"
	"  - rank_0/kernel_details.csv: 1-200: evidence 2\n"
	"  - rank_0/kernel_details.csv: evidence 3\n"
	"  - rank_0/kernel_details.csv: evidence 4\n"
	"  - rank_0/kernel_details.csv: evidence 5\n"
	"  impact: at most 1234.500 us, 25.0 % of the step\n"
	"  advice: Export the capture again.\n"
	"  $ npuprof export 'raw dir/it'\\''s'\n"
	"\n"
	"warning NAME_ODD hostile \\x1b[2J\\n# x\n"
	"  - *<i>\\u202etxt.exe\\u2069</i>*\n"
	"  impact: at most 50.0 % of the step\n"
	"  $ cat $'\\033[2J ```'\n"
	"\n"
	"info NOTHING 一切正常，没有需要修改的地方。\n"
	"\n"
	"Operators\n"
	"  name                                       count  bandwidth (GB/s)   dur (us)              start (UTC)      size     busy  async\n"
	"  MatMul_1                     9223372036854775807             0.000      0.000  2025-01-09 08:47:54.730  -8.0 EiB    0.0 %  yes\n"
	"  矩阵乘法                                      -1                 -   1234.567  2025-01-09 08:47:54.730     544 B   12.5 %  no\n"
	"  \\x1b[31mred\\x1b]0;title\\x07                   -2             3.000   2469.134  2025-01-09 08:47:54.730   1.5 KiB   25.0 %  yes\n"
	"  two\\nlines\\r\\tand a tab                       -3             4.500   3703.701  2025-01-09 08:47:54.730  32.5 KiB   37.5 %  no\n"
	"  \\u202etxt.exe\\u2069                           -4             6.000   4938.268  2025-01-09 08:47:54.730   1.0 MiB   50.0 %  yes\n"
	"  <b>&bold</b>|pipe                             -5             7.500   6172.835  2025-01-09 08:47:54.730  32.0 MiB   62.5 %  no\n"
	"  say \"hi\", it's                                -6             9.000   7407.402  2025-01-09 08:47:54.730   1.0 GiB   75.0 %  yes\n"
	"  =1+cmd|'/c calc'!A0                           -7            10.500   8641.969  2025-01-09 08:47:54.730  32.0 GiB   87.5 %  no\n"
	"  bad \\xff\\xc2 utf8 \\u009b                      -8            12.000   9876.536  2025-01-09 08:47:54.730   1.0 TiB  100.0 %  yes\n"
	"                                                -9            13.500  11111.103  2025-01-09 08:47:54.730  32.0 TiB  112.5 %  no\n"
	"  -                                              -                 -          -                        -         -        -  -\n"
	"  name: what it is called\n"
	"  count: how often\n"
	"  bandwidth: bytes / duration\n"
	"  dur_ns: end - start\n"
	"  busy: share of the step\n"
	"\n"
	"Ranks\n"
	"  (no rows)\n"
	"\n"
	"note: rank 3 was left out\n"
	"note: 1. not a list\n";

static const char golden_json[] =
	"{\n"
	"  \"schema_version\": 1,\n"
	"  \"tool\": \"npuprof\",\n"
	"  \"version\": \"" NPUPROF_VERSION "\",\n"
	"  \"command\": \"check\",\n"
	"  \"inputs\": [\n"
	"    \"/data/run 1\",\n"
	"    \"/data/\\u001b[7mx\"\n"
	"  ],\n"
	"  \"verdict\": \"FAIL\",\n"
	"  \"exit_code\": 1,\n"
	"  \"findings\": [\n"
	"    {\"code\": \"KERNELS_EMPTY\", \"severity\": \"error\", \"title\": \"kernel_details.csv has no rows\", \"detail\": \"Without kernels nothing can be said about the device; the profiler was stopped before the export had written them.\", \"evidence\": [{\"file\": \"rank_0/kernel_details.csv\", \"column\": \"Duration(us)\", \"rows\": \"1-200\", \"text\": \"evidence 1\"}, {\"file\": \"rank_0/kernel_details.csv\", \"column\": null, \"rows\": \"1-200\", \"text\": \"evidence 2\"}, {\"file\": \"rank_0/kernel_details.csv\", \"column\": null, \"rows\": null, \"text\": \"evidence 3\"}, {\"file\": \"rank_0/kernel_details.csv\", \"column\": null, \"rows\": null, \"text\": \"evidence 4\"}, {\"file\": \"rank_0/kernel_details.csv\", \"column\": null, \"rows\": null, \"text\": \"evidence 5\"}], \"impact_us\": 1234.5, \"impact_share\": 0.25, \"advice\": \"Export the capture again.\", \"command\": \"npuprof export 'raw dir/it'\\\\''s'\"},\n"
	"    {\"code\": \"NAME_ODD\", \"severity\": \"warning\", \"title\": \"hostile \\u001b[2J\\n# x\", \"detail\": null, \"evidence\": [{\"file\": null, \"column\": null, \"rows\": null, \"text\": \"*\\u003ci\\u003e\342\200\256txt.exe\342\201\251\\u003c/i\\u003e*\"}], \"impact_us\": null, \"impact_share\": 0.5, \"advice\": null, \"command\": \"cat $'\\\\033[2J ```'\"},\n"
	"    {\"code\": \"NOTHING\", \"severity\": \"info\", \"title\": \"一切正常，没有需要修改的地方。\", \"detail\": null, \"evidence\": [], \"impact_us\": null, \"impact_share\": null, \"advice\": null, \"command\": null}\n"
	"  ],\n"
	"  \"tables\": [\n"
	"    {\"id\": \"ops\", \"title\": \"Operators\",\n"
	"      \"columns\": [\n"
	"        {\"name\": \"name\", \"unit\": \"\", \"type\": \"text\", \"help\": \"what it is called\"},\n"
	"        {\"name\": \"count\", \"unit\": \"\", \"type\": \"int\", \"help\": \"how often\"},\n"
	"        {\"name\": \"bandwidth\", \"unit\": \"GB/s\", \"type\": \"real\", \"help\": \"bytes / duration\"},\n"
	"        {\"name\": \"dur_ns\", \"unit\": \"ns\", \"type\": \"duration\", \"help\": \"end - start\"},\n"
	"        {\"name\": \"start_ns\", \"unit\": \"ns\", \"type\": \"time\", \"help\": \"\"},\n"
	"        {\"name\": \"size_bytes\", \"unit\": \"bytes\", \"type\": \"bytes\", \"help\": \"\"},\n"
	"        {\"name\": \"busy\", \"unit\": \"share\", \"type\": \"percent\", \"help\": \"share of the step\"},\n"
	"        {\"name\": \"async\", \"unit\": \"\", \"type\": \"bool\", \"help\": \"\"}],\n"
	"      \"rows\": [\n"
	"        [\"MatMul_1\", 9223372036854775807, 0, 0, 1736412474730135222, -9223372036854775808, 0, true],\n"
	"        [\"矩阵乘法\", -1, null, 1234567, 1736412474730135223, 544, 0.125, false],\n"
	"        [\"\\u001b[31mred\\u001b]0;title\\u0007\", -2, 3, 2469134, 1736412474730135224, 1536, 0.25, true],\n"
	"        [\"two\\nlines\\r\\tand a tab\", -3, 4.5, 3703701, 1736412474730135225, 33280, 0.375, false],\n"
	"        [\"\342\200\256txt.exe\342\201\251\", -4, 6, 4938268, 1736412474730135226, 1049088, 0.5, true],\n"
	"        [\"\\u003cb\\u003e\\u0026bold\\u003c/b\\u003e|pipe\", -5, 7.5, 6172835, 1736412474730135227, 33554944, 0.625, false],\n"
	"        [\"say \\\"hi\\\", it's\", -6, 9, 7407402, 1736412474730135228, 1073742336, 0.75, true],\n"
	"        [\"=1+cmd|'/c calc'!A0\", -7, 10.5, 8641969, 1736412474730135229, 34359738880, 0.875, false],\n"
	"        [\"bad \357\277\275\357\277\275 utf8 \302\233\", -8, 12, 9876536, 1736412474730135230, 1099511628288, 1, true],\n"
	"        [\"\", -9, 13.5, 11111103, 1736412474730135231, 35184372089344, 1.125, false],\n"
	"        [null, null, null, null, null, null, null, null]]},\n"
	"    {\"id\": \"ranks\", \"title\": \"Ranks\",\n"
	"      \"columns\": [\n"
	"        {\"name\": \"rank\", \"unit\": \"\", \"type\": \"int\", \"help\": \"rank id\"}],\n"
	"      \"rows\": []}\n"
	"  ],\n"
	"  \"notes\": [\n"
	"    \"rank 3 was left out\",\n"
	"    \"1. not a list\"\n"
	"  ]\n"
	"}\n";

static const char golden_csv[] =
	"# table: ops\r\n"
	"name,count,bandwidth,dur_ns,start_ns,size_bytes,busy,async\r\n"
	"MatMul_1,9223372036854775807,0,0,1736412474730135222,-9223372036854775808,0,true\r\n"
	"矩阵乘法,-1,,1234567,1736412474730135223,544,0.125,false\r\n"
	"\\x1b[31mred\\x1b]0;title\\x07,-2,3,2469134,1736412474730135224,1536,0.25,true\r\n"
	"\"two\n"
	"lines\r\tand a tab\",-3,4.5,3703701,1736412474730135225,33280,0.375,false\r\n"
	"\342\200\256txt.exe\342\201\251,-4,6,4938268,1736412474730135226,1049088,0.5,true\r\n"
	"<b>&bold</b>|pipe,-5,7.5,6172835,1736412474730135227,33554944,0.625,false\r\n"
	"\"say \"\"hi\"\", it's\",-6,9,7407402,1736412474730135228,1073742336,0.75,true\r\n"
	"'=1+cmd|'/c calc'!A0,-7,10.5,8641969,1736412474730135229,34359738880,0.875,false\r\n"
	"bad \377\302 utf8 \\u009b,-8,12,9876536,1736412474730135230,1099511628288,1,true\r\n"
	",-9,13.5,11111103,1736412474730135231,35184372089344,1.125,false\r\n"
	",,,,,,,\r\n"
	"# table: ranks\r\n"
	"rank\r\n"
	"# table: findings\r\n"
	"code,severity,title,detail,advice,command\r\n"
	"KERNELS_EMPTY,error,kernel_details.csv has no rows,Without kernels nothing can be said about the device; the profiler was stopped before the export had written them.,Export the capture again.,npuprof export 'raw dir/it'\\''s'\r\n"
	"NAME_ODD,warning,\"hostile \\x1b[2J\n"
	"# x\",,,cat $'\\033[2J ```'\r\n"
	"NOTHING,info,一切正常，没有需要修改的地方。,,,\r\n";

static const char golden_md[] =
	"# npuprof check\n"
	"\n"
	"- Input: /data/run 1\n"
	"- Input: /data/\\\\x1b\\[7mx\n"
	"- Verdict: **FAIL**\n"
	"\n"
	"## Findings\n"
	"\n"
	"- **error** `KERNELS_EMPTY` kernel_details.csv has no rows\n"
	"\n"
	"  Without kernels nothing can be said about the device; the profiler was stopped before the export had written them.\n"
	"\n"
	"  - rank_0/kernel_details.csv: Duration(us): 1-200: evidence 1\n"
	"  - rank_0/kernel_details.csv: 1-200: evidence 2\n"
	"  - rank_0/kernel_details.csv: evidence 3\n"
	"  - rank_0/kernel_details.csv: evidence 4\n"
	"  - rank_0/kernel_details.csv: evidence 5\n"
	"\n"
	"  Impact: at most 1234.500 us, 25.0 % of the step\n"
	"\n"
	"  Advice: Export the capture again.\n"
	"\n"
	"  ```sh\n"
	"  npuprof export 'raw dir/it'\\''s'\n"
	"  ```\n"
	"- **warning** `NAME_ODD` hostile \\\\x1b\\[2J\\\\n# x\n"
	"\n"
	"  - \\*&lt;i&gt;\\\\u202etxt.exe\\\\u2069&lt;/i&gt;\\*\n"
	"\n"
	"  Impact: at most 50.0 % of the step\n"
	"\n"
	"  ````sh\n"
	"  cat $'\\033[2J ```'\n"
	"  ````\n"
	"- **info** `NOTHING` 一切正常，没有需要修改的地方。\n"
	"\n"
	"## Operators\n"
	"\n"
	"| name | count | bandwidth (GB/s) | dur (us) | start (UTC) | size | busy | async |\n"
	"| --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |\n"
	"| MatMul_1 | 9223372036854775807 | 0.000 | 0.000 | 2025-01-09 08:47:54.730 | -8.0 EiB | 0.0 % | yes |\n"
	"| 矩阵乘法 | -1 | - | 1234.567 | 2025-01-09 08:47:54.730 | 544 B | 12.5 % | no |\n"
	"| \\\\x1b\\[31mred\\\\x1b\\]0;title\\\\x07 | -2 | 3.000 | 2469.134 | 2025-01-09 08:47:54.730 | 1.5 KiB | 25.0 % | yes |\n"
	"| two\\\\nlines\\\\r\\\\tand a tab | -3 | 4.500 | 3703.701 | 2025-01-09 08:47:54.730 | 32.5 KiB | 37.5 % | no |\n"
	"| \\\\u202etxt.exe\\\\u2069 | -4 | 6.000 | 4938.268 | 2025-01-09 08:47:54.730 | 1.0 MiB | 50.0 % | yes |\n"
	"| &lt;b&gt;&amp;bold&lt;/b&gt;\\|pipe | -5 | 7.500 | 6172.835 | 2025-01-09 08:47:54.730 | 32.0 MiB | 62.5 % | no |\n"
	"| say \"hi\", it's | -6 | 9.000 | 7407.402 | 2025-01-09 08:47:54.730 | 1.0 GiB | 75.0 % | yes |\n"
	"| =1+cmd\\|'/c calc'!A0 | -7 | 10.500 | 8641.969 | 2025-01-09 08:47:54.730 | 32.0 GiB | 87.5 % | no |\n"
	"| bad \\\\xff\\\\xc2 utf8 \\\\u009b | -8 | 12.000 | 9876.536 | 2025-01-09 08:47:54.730 | 1.0 TiB | 100.0 % | yes |\n"
	"|  | -9 | 13.500 | 11111.103 | 2025-01-09 08:47:54.730 | 32.0 TiB | 112.5 % | no |\n"
	"| - | - | - | - | - | - | - | - |\n"
	"\n"
	"## Ranks\n"
	"\n"
	"(no rows)\n"
	"\n"
	"## Notes\n"
	"\n"
	"- rank 3 was left out\n"
	"- 1\\. not a list\n";

/* clang-format on */

static const enum np_format all_formats[] = {NP_FORMAT_TEXT, NP_FORMAT_JSON, NP_FORMAT_CSV,
                                             NP_FORMAT_MD, NP_FORMAT_HTML};

/* The rendered report, to be released by the caller. The report is freed. */
static struct np_buf render(struct np_report *report, struct np_write_options options)
{
	struct np_buf out = {0};
	struct np_err err = {0};
	assert_non_null(report);
	if (np_report_write(report, &options, &out, &err) != NP_OK)
		fail_msg("%s: %s", err.where, err.msg);
	np_report_free(report);
	return out;
}

/* Fails with the first line that differs. */
static void assert_render(struct np_report *report, struct np_write_options options,
                          const char *expected)
{
	struct np_buf out = render(report, options);
	np_str got = np_buf_str(&out), want = np_str_of(expected);
	while (got.len || want.len) {
		np_str got_line = np_str_cut(got, '\n', &got),
		       want_line = np_str_cut(want, '\n', &want);
		if (!np_str_eq(got_line, want_line))
			fail_msg("got      \"%.*s\"\nexpected \"%.*s\"", NP_FMT(got_line),
			         NP_FMT(want_line));
	}
	assert_int_equal(out.len, strlen(expected));
	np_buf_release(&out);
}

static void text_is_as_recorded(void **state)
{
	(void)state;
	assert_render(fixture_report(), (struct np_write_options){.width = 114, .color = true},
	              golden_text_cut);
	assert_render(fixture_report(), (struct np_write_options){.verbose = true},
	              golden_text_full);
}

static void json_is_as_recorded(void **state)
{
	(void)state;
	assert_render(fixture_report(), (struct np_write_options){.format = NP_FORMAT_JSON},
	              golden_json);
}

static void csv_is_as_recorded(void **state)
{
	(void)state;
	assert_render(fixture_report(), (struct np_write_options){.format = NP_FORMAT_CSV},
	              golden_csv);
}

static void md_is_as_recorded(void **state)
{
	(void)state;
	assert_render(fixture_report(), (struct np_write_options){.format = NP_FORMAT_MD},
	              golden_md);
}

static void an_empty_report_is_complete_in_every_format(void **state)
{
	(void)state;
	assert_render(np_report_new("info"), (struct np_write_options){0}, "npuprof info\n");
	assert_render(np_report_new("info"), (struct np_write_options){.format = NP_FORMAT_MD},
	              "# npuprof info\n");
	assert_render(np_report_new("info"), (struct np_write_options){.format = NP_FORMAT_CSV},
	              "code,severity,title,detail,advice,command\r\n");
	assert_render(np_report_new("info"), (struct np_write_options){.format = NP_FORMAT_JSON},
	              "{\n  \"schema_version\": 1,\n  \"tool\": \"npuprof\",\n"
	              "  \"version\": \"" NPUPROF_VERSION "\",\n  \"command\": \"info\",\n"
	              "  \"inputs\": [],\n  \"verdict\": null,\n  \"exit_code\": 0,\n"
	              "  \"findings\": [],\n  \"tables\": [],\n  \"notes\": []\n}\n");
}

static struct np_report *two_texts(void)
{
	static const struct np_column columns[] = {{"short", "", NP_COL_TEXT, ""},
	                                           {"n", "", NP_COL_INT, ""},
	                                           {"long", "", NP_COL_TEXT, ""}};
	struct np_report *report = np_report_new("x");
	struct np_table *table = NP_REPORT_TABLE(report, "t", "T", columns);
	np_cell_cstr(table, "twelve chars");
	np_cell_int(table, 12345678901234);
	np_cell_cstr(table, "a text that is a good deal longer");
	np_cell_cstr(table, "b");
	np_cell_int(table, 1);
	np_cell_cstr(table, "矩阵乘法矩阵乘法矩阵乘法");
	return report;
}

static void the_widest_texts_lose_first_and_numbers_never(void **state)
{
	(void)state;
	assert_render(two_texts(), (struct np_write_options){.width = 52},
	              "npuprof x\n\nT\n"
	              "  short                      n  long\n"
	              "  twelve chars  12345678901234  a text that is a go…\n"
	              "  b                          1  矩阵乘法矩阵乘法矩…\n");
	assert_render(two_texts(), (struct np_write_options){.width = 41},
	              "npuprof x\n\nT\n"
	              "  short                     n  long\n"
	              "  twelve cha…  12345678901234  a text th…\n"
	              "  b                         1  矩阵乘法…\n");
	assert_render(two_texts(), (struct np_write_options){.width = 1},
	              "npuprof x\n\nT\n"
	              "  short                  n  long\n"
	              "  twelve …  12345678901234  a text …\n"
	              "  b                      1  矩阵乘…\n");
}

static void lines_fit_end_in_no_blank_and_hold_no_controls(void **state)
{
	(void)state;
	for (unsigned width = 0; width < 200; width += 3) {
		struct np_buf out =
			render(fixture_report(),
		               (struct np_write_options){.width = width, .verbose = width % 2});
		np_str rest = np_buf_str(&out);
		for (bool in_table = false; rest.len;) {
			np_str line = np_str_cut(rest, '\n', &rest);
			assert_false(np_str_ends(line, NP_STR(" ")));
			for (size_t i = 0; i < line.len; i++)
				assert_true((unsigned char)line.ptr[i] >= 0x20 &&
				            line.ptr[i] != 0x7f);
			in_table = in_table ? line.len > 0 : np_str_is(line, "Operators");
			bool whole = np_str_starts(line, NP_STR("  $ ")) ||
			             np_str_starts(line, NP_STR("input"));
			if (width >= 111 || (width >= 80 && !in_table))
				assert_true(whole || np_text_width(line) <= width);
		}
		np_buf_release(&out);
	}
}

static void a_huge_cell_does_not_widen_all_rows(void **state)
{
	(void)state;
	enum { HUGE_LEN = 100000, ROWS = 1000 };
	static const struct np_column columns[] = {{"a", "", NP_COL_TEXT, ""},
	                                           {"b", "", NP_COL_INT, ""}};
	struct np_report *report = np_report_new("x");
	struct np_table *table = NP_REPORT_TABLE(report, "t", "T", columns);
	np_cell_printf(table, "%0*d", HUGE_LEN, 1);
	np_cell_int(table, 0);
	for (int i = 0; i < ROWS; i++) {
		np_cell_cstr(table, "x");
		np_cell_int(table, i);
	}
	struct np_buf out = render(report, (struct np_write_options){0});
	assert_non_null(strstr(out.ptr, "0000000000")); /* whole */
	assert_in_range(out.len, HUGE_LEN, HUGE_LEN + (ROWS + 5) * 220);
	np_buf_release(&out);
}

static void chinese_is_wrapped_between_characters(void **state)
{
	(void)state;
	struct np_buf out = {0};
	np_text_wrap(&out, np_str_of("一二三四五六七八九十一二三四。五六 abc七"), 2, 2, 30);
	assert_str(np_buf_str(&out), "一二三四五六七八九十一二三\n  四。五六 abc七");
	np_buf_clear(&out);
	np_text_wrap(&out,
	             np_str_of("  two words  /a/path/that/is/far/too/long/for/any/line end  "), 0,
	             2, 22);
	assert_str(np_buf_str(&out),
	           "  two words\n  /a/path/that/is/far/too/long/for/any/line\n  end");
	np_buf_clear(&out);
	np_buf_add_cstr(&out, "error A_CODE_THAT_FILLS_IT ");
	np_text_wrap(&out, np_str_of("title"), 27, 2, 28);
	assert_str(np_buf_str(&out), "error A_CODE_THAT_FILLS_IT\n  title");
	np_buf_release(&out);
}

static void figures_for_people(void **state)
{
	(void)state;
	char text[NP_CELL_CHARS];
	static const struct {
		int64_t bytes;
		const char *text;
	} sizes[] = {{0, "0 B"},
	             {1023, "1023 B"},
	             {1024, "1.0 KiB"},
	             {-1536, "-1.5 KiB"},
	             {1048575, "1.0 MiB"},
	             {1048064, "1023.5 KiB"},
	             {INT64_MAX, "8.0 EiB"}};
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		(void)np_format_bytes(text, sizes[i].bytes);
		assert_string_equal(text, sizes[i].text);
	}
	(void)np_format_percent(text, 0.12345);
	assert_string_equal(text, "12.3 %");
	(void)np_format_percent(text, -1.7e308);
	static const struct np_column real = {"r", "", NP_COL_REAL, ""};
	static const struct {
		double value;
		const char *text;
	} reals[] = {{0, "0.000"},
	             {1e-7, "1e-07"},
	             {2.0 / 3, "0.667"},
	             {-1e300, "-1e+300"},
	             {123456789.5, "123456789.500"},
	             {(double)INFINITY, "inf"}};
	for (size_t i = 0; i < sizeof reals / sizeof *reals; i++)
		assert_str(np_cell_shown(&real, &(struct np_cell){.r = reals[i].value}, text),
		           reals[i].text);
}

static void headings_tell_the_shown_unit_once(void **state)
{
	(void)state;
	static const struct {
		struct np_column column;
		const char *heading;
	} cases[] = {
		{{"dur_ns", "ns", NP_COL_DUR_NS, ""}, "dur (us)"},
		{{"dur", "ns", NP_COL_DUR_NS, ""}, "dur (us)"},
		{{"wait_us", "us", NP_COL_REAL, ""}, "wait_us"},
		{{"wait", "us", NP_COL_REAL, ""}, "wait (us)"},
		{{"us", "us", NP_COL_REAL, ""}, "us (us)"},
		{{"size_bytes", "bytes", NP_COL_BYTES, ""}, "size"},
		{{"pages_bytes", "bytes", NP_COL_INT, ""}, "pages_bytes"},
		{{"start_ns", "ns", NP_COL_TIME_NS, ""}, "start (UTC)"},
		{{"share", "%", NP_COL_PERCENT, ""}, "share"},
		{{"name", NULL, NP_COL_TEXT, ""}, "name"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct np_buf out = {0};
		np_column_heading(&out, &cases[i].column);
		assert_str(np_buf_str(&out), cases[i].heading);
		np_buf_release(&out);
	}
}

static void csv_gives_the_table_asked_for(void **state)
{
	(void)state;
	struct np_write_options options = {.format = NP_FORMAT_CSV, .table = "ranks"};
	assert_render(fixture_report(), options, "rank\r\n");
	options.table = "findings";
	assert_render(two_texts(), options, "code,severity,title,detail,advice,command\r\n");
	options.table = NULL; /* one table alone needs no line that names it */
	struct np_buf out = render(two_texts(), options);
	assert_true(np_str_starts(np_buf_str(&out), NP_STR("short,n,long\r\ntwelve chars,")));
	np_buf_release(&out);

	struct np_report *report = fixture_report();
	struct np_err err = {0};
	options.table = "op";
	assert_int_equal(np_report_write(report, &options, &out, &err), NP_E_NOTFOUND);
	assert_string_equal(err.where, "op");
	assert_non_null(strstr(err.msg, "ops, ranks, findings"));
	assert_int_equal(out.len, 0);
	np_report_free(report);
}

static void a_csv_record_is_never_a_blank_line(void **state)
{
	(void)state;
	static const struct np_column columns[] = {{"a", "", NP_COL_TEXT, ""}};
	struct np_report *report = np_report_new("x");
	struct np_table *table = NP_REPORT_TABLE(report, "t", "T", columns);
	np_cell_na(table);
	np_cell_cstr(table, "");
	np_cell_cstr(table, "a\r\nb");
	assert_render(report, (struct np_write_options){.format = NP_FORMAT_CSV},
	              "a\r\n\"\"\r\n\"\"\r\n\"a\r\nb\"\r\n");
}

static void csv_shows_control_characters_but_those_of_text(void **state)
{
	(void)state;
	static const struct np_column columns[] = {{"a", "", NP_COL_TEXT, ""}};
	static const struct {
		const char *text, *field;
	} cases[] = {
		{"\033[31mred", "\\x1b[31mred"},
		{"a\177\010b", "a\\x7f\\x08b"},
		{"\302\2331m", "\\u009b1m"}, /* C1: a terminal may obey it like ESC [ */
		{"\302\251 \303\251", "\302\251 \303\251"},
		{"a\tb\nc", "\"a\tb\nc\""},
		{"end\302", "end\302"},
		{"\033,\"", "\"\\x1b,\"\"\""},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct np_report *report = np_report_new("x");
		struct np_table *table = NP_REPORT_TABLE(report, "t", "T", columns);
		char expected[128];
		np_cell_cstr(table, cases[i].text);
		(void)snprintf(expected, sizeof expected, "a\r\n%s\r\n", cases[i].field);
		assert_render(report, (struct np_write_options){.format = NP_FORMAT_CSV}, expected);
	}
}

static void what_is_infinite_is_null_or_empty(void **state)
{
	(void)state;
	static const struct np_column columns[] = {{"a", "", NP_COL_REAL, ""},
	                                           {"b", "", NP_COL_INT, ""}};
	struct np_report *report = np_report_new("x");
	struct np_table *table = NP_REPORT_TABLE(report, "t", "T", columns);
	np_cell_real(table, INFINITY);
	np_cell_int(table, (INT64_C(1) << 53) + 1);
	struct np_buf out = {0};
	struct np_write_options options = {.format = NP_FORMAT_JSON};
	assert_int_equal(np_report_write(report, &options, &out, NULL), NP_OK);
	assert_non_null(strstr(out.ptr, "[null, 9007199254740993]"));
	np_buf_release(&out);
	assert_render(report, (struct np_write_options){.format = NP_FORMAT_CSV},
	              "a,b\r\n,9007199254740993\r\n");
}

static void formats_have_names(void **state)
{
	(void)state;
	static const char *const names[] = {"text", "json", "csv", "md", "html"};
	enum np_format format;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		assert_true(np_format_parse(names[i], &format));
		assert_int_equal(format, all_formats[i]);
	}
	static const char *const others[] = {"", "JSON", "jso", "htm"};
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		assert_false(np_format_parse(others[i], &format));
	assert_false(np_format_parse(NULL, &format));
}

/* Either the whole output, or E_NOMEM; never part of it with success. */
static void every_failing_allocation_of_a_writer_is_told(void **state)
{
	(void)state;
	struct np_report *report = fixture_report();
	for (size_t f = 0; f < sizeof all_formats / sizeof *all_formats; f++) {
		struct np_write_options options = {.format = all_formats[f], .width = 90};
		struct np_buf whole = {0};
		assert_int_equal(np_report_write(report, &options, &whole, NULL), NP_OK);
		uint64_t n = 1;
		for (bool done = false; !done && n < 1000; n++) {
			struct np_buf out = {0};
			np_mem_fail_after(n);
			enum np_status status = np_report_write(report, &options, &out, NULL);
			np_mem_fail_after(0);
			done = status == NP_OK;
			if (done)
				assert_true(np_str_eq(np_buf_str(&out), np_buf_str(&whole)));
			else
				assert_int_equal(status, NP_E_NOMEM);
			np_buf_release(&out);
		}
		assert_in_range(n, 4, 999);
		np_buf_release(&whole);
	}
	np_report_free(report);
}

static void a_full_buffer_and_a_failed_report_are_errors(void **state)
{
	(void)state;
	for (size_t f = 0; f < sizeof all_formats / sizeof *all_formats; f++) {
		struct np_report *report = fixture_report();
		struct np_write_options options = {.format = all_formats[f]};
		struct np_buf out = {.max_bytes = 500};
		assert_int_equal(np_report_write(report, &options, &out, NULL), NP_E_NOMEM);
		np_buf_release(&out);
		report->failed = true;
		assert_int_equal(np_report_write(report, &options, &out, NULL), NP_E_NOMEM);
		assert_int_equal(out.len, 0);
		np_report_free(report);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_is_as_recorded),
		cmocka_unit_test(json_is_as_recorded),
		cmocka_unit_test(csv_is_as_recorded),
		cmocka_unit_test(md_is_as_recorded),
		cmocka_unit_test(an_empty_report_is_complete_in_every_format),
		cmocka_unit_test(the_widest_texts_lose_first_and_numbers_never),
		cmocka_unit_test(lines_fit_end_in_no_blank_and_hold_no_controls),
		cmocka_unit_test(a_huge_cell_does_not_widen_all_rows),
		cmocka_unit_test(chinese_is_wrapped_between_characters),
		cmocka_unit_test(figures_for_people),
		cmocka_unit_test(headings_tell_the_shown_unit_once),
		cmocka_unit_test(csv_gives_the_table_asked_for),
		cmocka_unit_test(a_csv_record_is_never_a_blank_line),
		cmocka_unit_test(csv_shows_control_characters_but_those_of_text),
		cmocka_unit_test(what_is_infinite_is_null_or_empty),
		cmocka_unit_test(formats_have_names),
		cmocka_unit_test(every_failing_allocation_of_a_writer_is_told),
		cmocka_unit_test(a_full_buffer_and_a_failed_report_are_errors),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
