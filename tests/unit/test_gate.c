/* The gate: verdicts for faults that are known, and for real captures. */
#include "gate/gate.h"

#include <math.h>

#include "report/lang.h"
#include "synth_set.h"

static char root[TREE_PATH], set[TREE_PATH + 16];
static struct np_report *report;

static int setup(void **state)
{
	(void)state;
	tree_new(root);
	(void)snprintf(set, sizeof set, "%s/set", root);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	np_report_free(report);
	report = NULL;
	(void)np_lang_use(NP_LANG_EN, NULL);
	tree_remove(root);
	return 0;
}

static int check_with(const char *path, const struct np_gate_options *options)
{
	struct np_captures *all = NULL;
	np_report_free(report);
	report = np_report_new("check");
	assert_non_null(report);
	assert_int_equal(np_discover(path, &all, NULL), NP_OK);
	assert_int_equal(np_gate_run(all, options, report, NULL), NP_OK);
	np_captures_free(all);
	return report->exit_code;
}

static int check(const char *path, enum np_gate_profile profile, double start)
{
	struct np_gate_options options = {.profile = profile,
	                                  .threads = 1,
	                                  .has_start_epoch = !isnan(start),
	                                  .start_epoch = isnan(start) ? 0 : start};
	return check_with(path, &options);
}

static const struct np_finding *find(const char *code)
{
	for (size_t i = 0; i < report->findings.n; i++)
		if (strcmp(report->findings.v[i]->code, code) == 0)
			return report->findings.v[i];
	return NULL;
}

static size_t count(const char *code)
{
	size_t n = 0;
	for (size_t i = 0; i < report->findings.n; i++)
		n += strcmp(report->findings.v[i]->code, code) == 0;
	return n;
}

/* Findings, but for the remark that a capture is a database. */
static size_t findings(void)
{
	return report->findings.n - count("DB_ONLY");
}

/* "PASS", "FAIL", "UNKNOWN" of one check, "" when the profile does not have it. */
static np_str verdict_of(const char *check_id, size_t column)
{
	const struct np_table *table = report->tables.v[0];
	for (size_t row = 0; row < np_table_rows(table); row++)
		if (np_str_is(np_table_cell(table, row, 0)->s, check_id))
			return np_table_cell(table, row, column)->s;
	return (np_str){NULL, 0};
}

static size_t count_verdicts(const char *verdict)
{
	const struct np_table *table = report->tables.v[0];
	size_t n = 0;
	for (size_t row = 0; row < np_table_rows(table); row++)
		n += np_str_is(np_table_cell(table, row, 2)->s, verdict);
	return n;
}

static void explain(const char *what, int got, int expected)
{
	const struct np_table *table = report->tables.v[0];
	for (size_t row = 0; row < np_table_rows(table); row++)
		if (!np_str_is(np_table_cell(table, row, 2)->s, "PASS"))
			print_message("%.*s %.*s: %.*s\n", NP_FMT(np_table_cell(table, row, 2)->s),
			              NP_FMT(np_table_cell(table, row, 0)->s),
			              NP_FMT(np_table_cell(table, row, 3)->s));
	for (size_t i = 0; i < report->findings.n; i++)
		print_message("%s: %s\n", report->findings.v[i]->code,
		              report->findings.v[i]->title);
	fail_msg("%s: exit status %d, expected %d", what, got, expected);
}

static void assert_exit(const char *what, int got, int expected)
{
	static const enum np_verdict verdicts[] = {NP_VERDICT_PASS, NP_VERDICT_FAIL,
	                                           NP_VERDICT_NONE, NP_VERDICT_UNKNOWN};
	if (got != expected)
		explain(what, got, expected);
	assert_int_equal(report->verdict, verdicts[expected]);
	assert_int_equal(count_verdicts("FAIL") > 0, expected == 1);
}

static void make(unsigned formats, uint32_t ranks, int level, const char *faults)
{
	static unsigned n;
	(void)snprintf(set, sizeof set, "%s/s%u", root, ++n % 1000);
	synth_set(set, formats, ranks, level, faults);
}

/* ── what is made for it ── */

static void the_selftest_passes(void **state)
{
	(void)state;
	report = np_report_new("check");
	assert_int_equal(np_gate_selftest(report, NULL), NP_OK);
	assert_int_equal(report->exit_code, 0);
	assert_int_equal(report->verdict, NP_VERDICT_PASS);
	assert_true(np_table_rows(report->tables.v[0]) >= 26);
}

static void the_selftest_passes_in_chinese(void **state)
{
	assert_int_equal(np_lang_use(NP_LANG_ZH, NULL), NP_OK);
	the_selftest_passes(state);
}

static void sets_without_faults_pass(void **state)
{
	(void)state;
	static const struct {
		unsigned formats;
		enum np_gate_profile profile;
		int expected;
	} cases[] = {
		{NP_SYNTH_TEXT, NP_GATE_KERNEL, 0},
		{NP_SYNTH_TEXT, NP_GATE_FRAMEWORK, 0},
		{NP_SYNTH_TEXT, NP_GATE_CLUSTER, 0},
		{NP_SYNTH_DB, NP_GATE_KERNEL, 0},
		{NP_SYNTH_DB, NP_GATE_CLUSTER, 0},
		{NP_SYNTH_DB, NP_GATE_FRAMEWORK, 1}, /* R61 wants the statistics files */
		{NP_SYNTH_TEXT | NP_SYNTH_DB, NP_GATE_FRAMEWORK, 0},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		make(cases[i].formats, 4, 1, "");
		char what[64];
		(void)snprintf(what, sizeof what, "formats %u profile %s", cases[i].formats,
		               np_gate_profile_name(cases[i].profile));
		assert_exit(what, check(set, cases[i].profile, SYNTH_START), cases[i].expected);
		if (cases[i].expected == 0)
			assert_int_equal(findings(), 0);
	}
}

/* msprof records its configuration in sample.json. */
static void an_msprof_set_passes(void **state)
{
	(void)state;
	make(NP_SYNTH_MSPROF, 2, 1, "");
	assert_exit("msprof", check(set, NP_GATE_KERNEL, SYNTH_START), 0);
	assert_int_equal(findings(), 0);
}

/* ── planted faults ── */

struct planted {
	enum np_synth_fault_id id;
	const char *argument;
	unsigned formats;
	int kernel, cluster; /* exit status */
};

static const struct planted planted[] = {
	{NP_SYNTH_STALE, "", NP_SYNTH_TEXT, 1, 1},
	{NP_SYNTH_STALE, "", NP_SYNTH_DB, 1, 1},
	{NP_SYNTH_STALE, "", NP_SYNTH_MSPROF, 1, 1},
	{NP_SYNTH_NA_METRICS, "", NP_SYNTH_TEXT, 1, 0},
	{NP_SYNTH_NA_METRICS, "=1", NP_SYNTH_TEXT, 1, 0}, /* one rank is enough */
	{NP_SYNTH_NA_METRICS, "", NP_SYNTH_DB, 1, 0},
	{NP_SYNTH_NO_METRICS, "", NP_SYNTH_TEXT, 1, 0},
	{NP_SYNTH_NO_METRICS, "", NP_SYNTH_DB, 1, 0},
	{NP_SYNTH_NO_METRICS, "", NP_SYNTH_MSPROF, 1, 0},
	{NP_SYNTH_OLD_HEADER, "", NP_SYNTH_TEXT, 0, 0},
	{NP_SYNTH_ASCEND_910A, "", NP_SYNTH_TEXT, 0, 0},
	{NP_SYNTH_HEADER_ONLY, "", NP_SYNTH_TEXT, 1, 1},
	{NP_SYNTH_HEADER_ONLY, "", NP_SYNTH_MSPROF, 1, 1},
	{NP_SYNTH_NO_KERNELS, "", NP_SYNTH_TEXT, 1, 0}, /* R90: step times are enough */
	{NP_SYNTH_NO_KERNELS, "=1", NP_SYNTH_TEXT, 1, 0},
	{NP_SYNTH_EMPTY_DIR, "", NP_SYNTH_TEXT, 1, 1},
	{NP_SYNTH_EMPTY_DIR, "=1", NP_SYNTH_DB, 1, 1},
	{NP_SYNTH_RAW_ONLY, "", NP_SYNTH_TEXT, 1, 1},
	{NP_SYNTH_RAW_ONLY, "=0", NP_SYNTH_DB, 1, 1},
	{NP_SYNTH_TRUNCATED, "", NP_SYNTH_TEXT, 1, 0},
	{NP_SYNTH_TRUNCATED, "=1", NP_SYNTH_TEXT, 1, 0},
	{NP_SYNTH_TRUNCATED, "", NP_SYNTH_MSPROF, 1, 0},
	{NP_SYNTH_TRACE_COMMA, "", NP_SYNTH_TEXT, 1, 0},
	{NP_SYNTH_BAD_UTF8, "", NP_SYNTH_TEXT, 1, 0},
	{NP_SYNTH_MISSING_RANK, "=1", NP_SYNTH_TEXT, 1, 1},
	{NP_SYNTH_MISSING_RANK, "=0", NP_SYNTH_DB, 1, 1},
	{NP_SYNTH_DUPLICATE_RANK, "=1", NP_SYNTH_TEXT, 1, 1},
	{NP_SYNTH_MIXED_BATCH, "", NP_SYNTH_TEXT, 1, 1},
	{NP_SYNTH_MIXED_FORMAT, "", NP_SYNTH_TEXT, 0, 0},
	{NP_SYNTH_MIXED_FORMAT, "", NP_SYNTH_DB, 0, 0},
	{NP_SYNTH_RANK_UNKNOWN, "", NP_SYNTH_TEXT, 3, 3},
	{NP_SYNTH_HOST_ONLY, "", NP_SYNTH_TEXT, 1, 1},
	{NP_SYNTH_HOST_ONLY, "", NP_SYNTH_DB, 1, 1},
	{NP_SYNTH_NO_COMM_TABLES, "", NP_SYNTH_TEXT, 0, 1},
	{NP_SYNTH_RUN_FAILED, "", NP_SYNTH_TEXT, 1, 1},
	{NP_SYNTH_RUN_FAILED, "", NP_SYNTH_DB, 1, 1},
	{NP_SYNTH_NEGATIVE, "", NP_SYNTH_TEXT, 1, 1},
	{NP_SYNTH_NEGATIVE, "", NP_SYNTH_DB, 1, 1},
	{NP_SYNTH_RAGGED, "", NP_SYNTH_TEXT, 0, 0},
	{NP_SYNTH_IDLE_RANK, "=1", NP_SYNTH_TEXT, 0, 0},
	{NP_SYNTH_IDLE_RANK, "=1", NP_SYNTH_DB, 0, 0},
	{NP_SYNTH_SPAN, "=1", NP_SYNTH_TEXT, 0, 0},
	{NP_SYNTH_UNCLOSED_STEP, "", NP_SYNTH_TEXT, 1, 1},
	{NP_SYNTH_UNCLOSED_STEP, "", NP_SYNTH_DB, 1, 1},
	{NP_SYNTH_FORMULA_NAMES, "", NP_SYNTH_TEXT, 0, 0},
	{NP_SYNTH_HOSTILE_NAMES, "", NP_SYNTH_TEXT, 0, 0},
	{NP_SYNTH_HOSTILE_NAMES, "", NP_SYNTH_DB, 0, 0},
};

/* Is the fault's finding one that the profile must report? */
static bool must_tell(const struct planted *fault, int exit_code, enum np_gate_profile profile)
{
	if (!*np_synth_fault_info(fault->id)->code)
		return false;
	if (exit_code != 0)
		return true;
	/* passed: it is a remark, which every profile makes, or no business of this one */
	return fault->id == NP_SYNTH_MIXED_FORMAT || fault->id == NP_SYNTH_RAGGED ||
	       fault->id == NP_SYNTH_IDLE_RANK || fault->id == NP_SYNTH_SPAN ||
	       (profile == NP_GATE_KERNEL && fault->kernel != 0);
}

static void every_planted_fault_gets_its_verdict_and_its_code(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof planted / sizeof *planted; i++) {
		const struct np_synth_fault_info *info = np_synth_fault_info(planted[i].id);
		char fault[64], what[128];
		(void)snprintf(fault, sizeof fault, "%s%s", info->name, planted[i].argument);
		make(planted[i].formats, 2, 1, fault);
		for (int p = 0; p < 2; p++) {
			enum np_gate_profile profile = p ? NP_GATE_CLUSTER : NP_GATE_KERNEL;
			int expected = p ? planted[i].cluster : planted[i].kernel;
			int got = check(set, profile, SYNTH_START);
			(void)snprintf(what, sizeof what, "%s formats %u profile %s", fault,
			               planted[i].formats, np_gate_profile_name(profile));
			assert_exit(what, got, expected);
			if (must_tell(&planted[i], expected, profile) && !find(info->code))
				explain(info->code, got, expected);
		}
	}
}

/* R105: whatever failed, somebody must be told what to do about it. */
static void whatever_fails_there_is_a_command_or_an_advice(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof planted / sizeof *planted; i++) {
		if (planted[i].kernel != 1)
			continue;
		const struct np_synth_fault_info *info = np_synth_fault_info(planted[i].id);
		char fault[64];
		(void)snprintf(fault, sizeof fault, "%s%s", info->name, planted[i].argument);
		make(planted[i].formats, 2, 1, fault);
		(void)check(set, NP_GATE_KERNEL, SYNTH_START);
		size_t errors = 0, helped = 0;
		for (size_t k = 0; k < report->findings.n; k++) {
			const struct np_finding *finding = report->findings.v[k];
			errors += finding->severity == NP_ERROR;
			helped += finding->severity == NP_ERROR &&
			          (finding->command || finding->advice);
		}
		if (errors == 0 || helped == 0)
			explain(fault, (int)helped, (int)errors);
	}
}

static void one_defect_is_told_once(void **state)
{
	(void)state;
	make(NP_SYNTH_TEXT, 2, 1, "stale=0");
	(void)check(set, NP_GATE_KERNEL, SYNTH_START);
	assert_int_equal(count("STALE"), 1);
	make(NP_SYNTH_TEXT, 2, 1, "raw-only=0");
	(void)check(set, NP_GATE_KERNEL, SYNTH_START);
	assert_int_equal(count("RAW_ONLY"), 1);
	assert_int_equal(find("RAW_ONLY")->severity, NP_ERROR);
	/* nothing is known about the configuration of kernels that are not there */
	make(NP_SYNTH_TEXT, 2, 1, "no-kernel-details");
	(void)check(set, NP_GATE_KERNEL, SYNTH_START);
	assert_int_equal(count("CONFIG_MISSING"), 0);
	assert_int_equal(count("KERNELS_MISSING"), 2);
}

static void missing_files_are_one_finding_per_kind(void **state)
{
	(void)state;
	make(NP_SYNTH_DB, 4, 1, "");
	assert_exit("framework", check(set, NP_GATE_FRAMEWORK, SYNTH_START), 1);
	assert_int_equal(count("DELIVERABLE_MISSING"), 3);
	assert_int_equal(find("DELIVERABLE_MISSING")->evidence.n, 4);
}

/* ── another purpose ── */

static void a_capture_made_for_something_else_is_told_so(void **state)
{
	(void)state;
	make(NP_SYNTH_TEXT, 2, 1, "no-metrics");
	assert_exit("kernel", check(set, NP_GATE_KERNEL, SYNTH_START), 1);
	const struct np_finding *finding = find("OTHER_PROFILE_FITS");
	assert_non_null(finding);
	assert_int_equal(finding->severity, NP_INFO);
	assert_non_null(strstr(finding->command, "check --profile cluster "));
	/* when it passes, or when nothing fits, nothing is proposed */
	assert_exit("cluster", check(set, NP_GATE_CLUSTER, SYNTH_START), 0);
	assert_int_equal(findings(), 0);
	make(NP_SYNTH_TEXT, 2, 1, "empty-dir");
	assert_exit("empty", check(set, NP_GATE_KERNEL, SYNTH_START), 1);
	assert_null(find("OTHER_PROFILE_FITS"));
	/* a profile that only lacks the start fits as well */
	make(NP_SYNTH_TEXT, 2, 1, "no-metrics");
	assert_exit("no start", check(set, NP_GATE_KERNEL, (double)NAN), 1);
	assert_non_null(find("OTHER_PROFILE_FITS"));
}

/* R90: a very large cluster may keep nothing else. */
static void step_times_alone_are_enough_for_a_cluster(void **state)
{
	(void)state;
	make(NP_SYNTH_DB, 2, 1, "");
	struct np_captures *all = NULL;
	assert_int_equal(np_discover(set, &all, NULL), NP_OK);
	for (size_t i = 0; i < all->captures.n; i++)
		assert_int_equal(
			unlink(np_capture_file(all->captures.v[i], NP_ROLE_PROFILER_DB)->path), 0);
	np_captures_free(all);
	assert_exit("analysis.db only", check(set, NP_GATE_CLUSTER, SYNTH_START), 0);
	assert_exit("analysis.db only", check(set, NP_GATE_KERNEL, SYNTH_START), 1);
	assert_non_null(find("KERNELS_MISSING"));
	assert_null(find("NO_DEVICE_DATA"));
}

/* ── freshness ── */

static int check_at(double start, double tolerance)
{
	const struct np_gate_options options = {.has_start_epoch = true,
	                                        .start_epoch = start,
	                                        .tolerance_seconds = tolerance,
	                                        .threads = 1};
	return check_with(set, &options);
}

static void numbers_that_are_no_seconds_never_pass_a_file(void **state)
{
	(void)state;
	make(NP_SYNTH_TEXT, 2, 1, "");
	assert_exit("start 0", check_at(0, 0), 0);
	assert_exit("NaN start", check_at((double)NAN, 0), 3);
	assert_exit("huge start", check_at(1e300, 0), 3);
	assert_exit("infinite start", check_at(-(double)INFINITY, 0), 3);
	assert_exit("NaN tolerance", check_at(SYNTH_START + 1e6, (double)NAN), 3);
	assert_exit("negative tolerance", check_at(SYNTH_START, -1), 3);
	assert_exit("future start", check_at(SYNTH_START + 1e6, 0), 1);
	assert_exit("tolerant", check_at(SYNTH_START + 1e6, 1e6 + 60), 0);
	assert_int_equal(findings(), 0);
}

static void one_nanosecond_is_older(void **state)
{
	(void)state;
	make(NP_SYNTH_TEXT, 1, 1, "");
	struct np_captures *all = NULL;
	assert_int_equal(np_discover(set, &all, NULL), NP_OK);
	const char *path = np_capture_file(all->captures.v[0], NP_ROLE_KERNELS)->path;
	struct timespec times[2] = {{.tv_sec = SYNTH_START - 1, .tv_nsec = 999999999},
	                            {.tv_sec = SYNTH_START - 1, .tv_nsec = 999999999}};
	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
	np_captures_free(all);
	assert_exit("1 ns", check_at(SYNTH_START, 0), 1);
	assert_exit("1 ns allowed", check_at(SYNTH_START, 1), 0);
}

static void compressed_tables_have_an_age_too(void **state)
{
	(void)state;
	char command[3 * TREE_PATH];
	make(NP_SYNTH_TEXT, 1, 1, "stale");
	(void)snprintf(command, sizeof command,
	               "find '%s' -name kernel_details.csv -exec gzip -n {} ';'", set);
	if (system(command) != 0)
		skip();
	assert_exit("gz", check_at(SYNTH_START, 0), 1);
	assert_non_null(find("STALE"));
}

/* ── single things ── */

static void nothing_at_all_fails_with_a_word_about_it(void **state)
{
	(void)state;
	assert_exit("empty", check(root, NP_GATE_KERNEL, 0), 1);
	assert_non_null(find("NO_CAPTURE"));
	assert_int_equal(report->findings.n, 1);
}

static void a_table_without_cores_fails_with_a_word_about_it(void **state)
{
	(void)state;
	tree_torch(root, "a_ascend_pt", 0);
	tree_put(root, "a_ascend_pt/ASCEND_PROFILER_OUTPUT/kernel_details.csv",
	         "Name,Type,Start Time(us),Duration(us),aic_mac_ratio\na,b,1700000000000000,1,1\n");
	assert_exit("no core", check(root, NP_GATE_KERNEL, 0), 1);
	assert_str(verdict_of("execution_order", 2), "FAIL");
	assert_non_null(strstr(find("ORDER_UNUSABLE")->evidence.v[0].text, "without core"));
	assert_non_null(find("CONFIG_MISSING")); /* three of four ratios are missing */
}

static void a_file_that_cannot_be_read_fails(void **state)
{
	(void)state;
	make(NP_SYNTH_TEXT, 1, 1, "");
	struct np_captures *all = NULL;
	assert_int_equal(np_discover(set, &all, NULL), NP_OK);
	assert_int_equal(
		truncate(np_capture_file(all->captures.v[0], NP_ROLE_OP_STATISTIC)->path, 0), 0);
	np_captures_free(all);
	assert_exit("empty op_statistic", check(set, NP_GATE_KERNEL, 0), 1);
	assert_str(verdict_of("artefacts_exist", 2), "FAIL");
	assert_non_null(find("FILE_DAMAGED"));
}

static void kernels_of_another_day_fail(void **state)
{
	(void)state;
	tree_torch(root, "a_ascend_pt", 0);
	tree_put(root, "a_ascend_pt/profiler_info_0.json",
	         "{\"end_info\": {\"collectionTimeEnd\": 1700200000000000000}}");
	assert_exit("clock", check(root, NP_GATE_KERNEL, 0), 1);
	assert_str(verdict_of("kernels_plausible", 2), "FAIL");
	assert_non_null(find("CLOCK_GAP"));
	tree_put(root, "a_ascend_pt/profiler_info_0.json", "{}");
	tree_put(root, "a_ascend_pt/ASCEND_PROFILER_OUTPUT/kernel_details.csv",
	         "Name,Accelerator Core,Start "
	         "Time(us),Duration(us)\na,AI_CORE,1700000000000000,0\n");
	assert_exit("zero", check(root, NP_GATE_KERNEL, 0), 1);
	assert_non_null(find("ZERO_DURATIONS"));
}

static void without_a_start_freshness_stays_open(void **state)
{
	(void)state;
	make(NP_SYNTH_TEXT, 2, 1, "");
	assert_exit("no start", check(set, NP_GATE_KERNEL, (double)NAN), 3);
	assert_int_equal(count_verdicts("UNKNOWN"), 2);
	assert_str(verdict_of("freshness", 2), "UNKNOWN");
	assert_str(verdict_of("all_fresh", 2), "UNKNOWN");
	assert_str(verdict_of("freshness", 3), "no --start-marker or --start-epoch was given");
}

static void threads_change_nothing(void **state)
{
	(void)state;
	make(NP_SYNTH_TEXT, 4, 1, "na-metrics=2 negative-duration=1");
	(void)check(set, NP_GATE_KERNEL, SYNTH_START);
	struct np_report *one = report;
	report = NULL;
	const struct np_gate_options options = {
		.threads = 4, .has_start_epoch = true, .start_epoch = SYNTH_START};
	(void)check_with(set, &options);
	assert_int_equal(one->findings.n, report->findings.n);
	for (size_t i = 0; i < one->findings.n; i++)
		assert_string_equal(one->findings.v[i]->title, report->findings.v[i]->title);
	for (size_t row = 0; row < np_table_rows(one->tables.v[0]); row++)
		assert_true(np_str_eq(np_table_cell(one->tables.v[0], row, 3)->s,
		                      np_table_cell(report->tables.v[0], row, 3)->s));
	np_report_free(one);
}

/* ── real captures ── */

static void real_captures_get_the_verdicts_that_are_right(void **state)
{
	(void)state;
	static const struct {
		const char *path;
		enum np_gate_profile profile;
		bool start;
		int expected;
		const char *code; /* a finding that must be there, or NULL */
	} cases[] = {
		{"data/ddp2/text/level2", NP_GATE_KERNEL, true, 0, NULL},
		{"data/ddp2/text/level2", NP_GATE_KERNEL, false, 3, NULL},
		{"data/ddp2/text/level2", NP_GATE_CLUSTER, true, 0, NULL},
		{"data/ddp2/text/level0", NP_GATE_KERNEL, true, 1, "CONFIG_MISSING"},
		{"data/ddp2/text/level0", NP_GATE_CLUSTER, true, 0, NULL},
		{"data/ddp2/db/level0", NP_GATE_KERNEL, true, 1, "CONFIG_MISSING"},
		{"data/ddp2/db/level0", NP_GATE_KERNEL, true, 1, "OTHER_PROFILE_FITS"},
		{"data/ddp2/db/level2", NP_GATE_KERNEL, false, 3, NULL},
		{"data/ddp2/db/level2", NP_GATE_KERNEL, true, 0, NULL},
		{"data/qwen3_4rank", NP_GATE_KERNEL, true, 1, "KERNELS_MISSING"},
		{"data/qwen3_4rank", NP_GATE_KERNEL, true, 1, "DELIVERABLE_MISSING"},
		{"data/qwen3_4rank", NP_GATE_CLUSTER, true, 0, NULL},
		/* rank 5 never waits and spans 0.61 of the others: a slow rank, no mismatch */
		{"data/synth8", NP_GATE_KERNEL, true, 0, NULL},
		{"data/synth8", NP_GATE_CLUSTER, true, 0, NULL},
		{"data/synth8", NP_GATE_KERNEL, true, 0, "DB_ONLY"},
		{"raw/oddclock400", NP_GATE_KERNEL, true, 1, "RAW_ONLY"},
		{"raw/idwrap500", NP_GATE_KERNEL, true, 1, "RAW_ONLY"},
		{"raw/slices300", NP_GATE_KERNEL, true, 1, "RAW_ONLY"},
		{"raw/pipe1000", NP_GATE_KERNEL, true, 1, "RAW_ONLY"},
		{"raw/memory300", NP_GATE_KERNEL, true, 1, "RAW_ONLY"},
		{"raw/nopmu200", NP_GATE_KERNEL, true, 1, "RAW_ONLY"},
		{"raw/level0_300", NP_GATE_KERNEL, true, 1, "RAW_ONLY"},
		{"raw/memoryub300", NP_GATE_KERNEL, true, 1, "RAW_ONLY"},
	};
	if (!shared_path("data/ddp2") || !shared_path("raw/pipe1000"))
		skip();
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		int got = check(shared_path(cases[i].path), cases[i].profile,
		                cases[i].start ? 0 : (double)NAN);
		assert_exit(cases[i].path, got, cases[i].expected);
		if (cases[i].code && !find(cases[i].code))
			explain(cases[i].code, got, cases[i].expected);
		if (!cases[i].code)
			assert_int_equal(findings(), 0);
		if (got == 3)
			assert_int_equal(count_verdicts("UNKNOWN"), 2);
		if (strncmp(cases[i].path, "raw/", 4) == 0) {
			assert_non_null(strstr(find("RAW_ONLY")->command, "msprof --export=on "));
			assert_int_equal(count("RAW_ONLY"), 1);
		}
	}
}

static void a_rank_that_was_copied_in_part_is_not_called_host_only(void **state)
{
	(void)state;
	if (!shared_path("data/qwen3_4rank"))
		skip();
	(void)check(shared_path("data/qwen3_4rank"), NP_GATE_KERNEL, 0);
	assert_null(find("NO_DEVICE_DATA"));
	assert_int_equal(count("KERNELS_MISSING"), 2);
	assert_int_equal(count("DELIVERABLE_MISSING"), 1);
	assert_int_equal(find("DELIVERABLE_MISSING")->evidence.n, 4);
}

static void profiles_have_names(void **state)
{
	(void)state;
	enum np_gate_profile profile = NP_GATE_KERNEL;
	for (unsigned p = 0; p < NP_GATE_N_PROFILES; p++) {
		assert_true(np_gate_profile_parse(np_gate_profile_name((enum np_gate_profile)p),
		                                  &profile));
		assert_int_equal(profile, p);
	}
	assert_false(np_gate_profile_parse("Kernel", &profile));
	assert_false(np_gate_profile_parse("", &profile));
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(the_selftest_passes),
		T(the_selftest_passes_in_chinese),
		T(sets_without_faults_pass),
		T(an_msprof_set_passes),
		T(every_planted_fault_gets_its_verdict_and_its_code),
		T(whatever_fails_there_is_a_command_or_an_advice),
		T(one_defect_is_told_once),
		T(missing_files_are_one_finding_per_kind),
		T(a_capture_made_for_something_else_is_told_so),
		T(step_times_alone_are_enough_for_a_cluster),
		T(numbers_that_are_no_seconds_never_pass_a_file),
		T(one_nanosecond_is_older),
		T(compressed_tables_have_an_age_too),
		T(nothing_at_all_fails_with_a_word_about_it),
		T(a_table_without_cores_fails_with_a_word_about_it),
		T(a_file_that_cannot_be_read_fails),
		T(kernels_of_another_day_fail),
		T(without_a_start_freshness_stays_open),
		T(threads_change_nothing),
		T(real_captures_get_the_verdicts_that_are_right),
		T(a_rank_that_was_copied_in_part_is_not_called_host_only),
		T(profiles_have_names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
