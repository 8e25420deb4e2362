/* Every rule of `npuprof dynamic check`: one configuration each, and the code it must give. */
#include "collect/dynamic_check.h"
#include "temp_tree.h"

/* A configuration without a fault: the sample of the guide with one step of warm-up. */
static void good_config(struct np_buf *out)
{
	const char *const values[NP_DYN_N_FIELDS] = {
		[NP_DYN_WARMUP] = "1", [NP_DYN_PROF_DIR] = "\"/tmp\"", [NP_DYN_START_STEP] = "-1"};
	np_dyn_template(out, NP_DYN_FOR_CLUSTER, values);
}

/* `from` replaced by `to`, once. */
static void replace(struct np_buf *text, const char *from, const char *to)
{
	struct np_buf out = {0};
	const char *at = strstr(text->ptr, from);
	assert_non_null(at);
	np_buf_add(&out, text->ptr, (size_t)(at - text->ptr));
	np_buf_add_cstr(&out, to);
	np_buf_add_cstr(&out, at + strlen(from));
	assert_false(out.failed);
	np_buf_release(text);
	*text = out;
}

static const struct np_finding *find(const struct np_report *report, const char *code)
{
	for (size_t i = 0; i < report->findings.n; i++)
		if (strcmp(report->findings.v[i]->code, code) == 0)
			return report->findings.v[i];
	return NULL;
}

struct rule {
	const char *from, *to; /* in the good configuration */
	const char *code;      /* NULL: no finding at all */
	enum np_severity severity;
	const char *in_title; /* part of the title, "" */
	int exit_code;
};

static const struct rule rules[] = {
	{"", "", NULL, NP_INFO, "", 0},
	{"\"active\"", "# two steps\n\"active\"", "DYN_JSON_COMMENTS", NP_ERROR, "line 11", 1},
	{"\"active\"", "// two steps\n\"active\"", "DYN_JSON_COMMENTS", NP_ERROR, "1 comments", 1},
	{"\"active\": 2,", "\"active\": 2", "DYN_JSON_INVALID", NP_ERROR, "", 1},
	{"\"rank_list\": []", "\"rank_list\": [1,]", "DYN_JSON_INVALID", NP_ERROR, "", 1},
	{"true", "True", "DYN_JSON_INVALID", NP_ERROR, "", 1},
	{"\"activities\"", "\"wait\": 1, \"activities\"", "DYN_KEY_UNKNOWN", NP_WARNING, "wait", 0},
	{"\"with_flops\"", "\"with_flop\"", "DYN_KEY_UNKNOWN", NP_ERROR, "with_flop", 1},
	{"\"l2_cache\"", "\"with_stack\"", "DYN_KEY_UNKNOWN", NP_ERROR, "experimental_config", 1},
	{"\"with_flops\"", "\"l2_cache\"", "DYN_KEY_UNKNOWN", NP_ERROR, "l2_cache", 1},
	{"\"with_flops\"", "\"with_stack\"", "DYN_KEY_DUPLICATE", NP_WARNING, "with_stack", 0},
	{"  \"with_flops\": false,\n", "", "DYN_KEY_MISSING", NP_INFO, "1 keys", 0},
	{"  \"start_step\": -1,\n", "", "DYN_KEY_MISSING", NP_ERROR, "start_step", 1},
	{"\"with_flops\": false", "\"with_flops\": 0", "DYN_TYPE", NP_ERROR, "with_flops", 1},
	{"\"active\": 2", "\"active\": \"2\"", "DYN_TYPE", NP_ERROR, "takes 1 instead", 1},
	{"\"active\": 2", "\"active\": 2.0", "DYN_TYPE", NP_ERROR, "active", 1},
	{"\"active\": 2", "\"active\": 0", "DYN_VALUE", NP_ERROR, "at least 1", 1},
	{"\"warmup\": 1", "\"warmup\": -1", "DYN_VALUE", NP_ERROR, "takes 0 instead", 1},
	{"\"warmup\": 1", "\"warmup\": 0", "DYN_WARMUP_NONE", NP_INFO, "", 0},
	{"\"active\": 2", "\"active\": 50", "DYN_ACTIVE_LONG", NP_WARNING, "50", 0},
	{"\"analyse\": true", "\"analyse\": \"false\"", "DYN_ANALYSE_NOT_BOOL", NP_ERROR, "", 1},
	{"\"analyse\": true", "\"analyse\": null", "DYN_ANALYSE_NOT_BOOL", NP_ERROR, "", 1},
	{"\"analyse\": true", "\"analyse\": false", "DYN_ASYNC_WITHOUT_ANALYSE", NP_WARNING, "", 0},
	{"\"async_mode\": true", "\"async_mode\": 1", "DYN_TYPE", NP_ERROR, "async_mode", 1},
	{"\"start_step\": -1", "\"start_step\": -2", "DYN_VALUE", NP_ERROR, "start_step", 1},
	{"\"start_step\": -1", "\"start_step\": 1.5", "DYN_TYPE", NP_ERROR, "start_step", 1},
	{"\"start_step\": -1", "\"start_step\": 0", "DYN_START_NEVER", NP_INFO, "", 0},
	{"\"start_step\": -1", "\"start_step\": 7", "DYN_START_UNCHECKED", NP_WARNING, "7", 3},
	{"\"is_rank\": false", "\"is_rank\": true", "DYN_RANK_LIST_EMPTY", NP_ERROR, "", 1},
	{"\"is_rank\": false,\n  \"rank_list\": []",
         "\"is_rank\": true,\n  \"rank_list\": [\"1\", -2, 3]", "DYN_RANK_LIST_ENTRY", NP_ERROR,
         "2 of 3", 1},
	{"\"rank_list\": []", "\"rank_list\": [1]", "DYN_RANK_LIST_IGNORED", NP_WARNING, "", 0},
	{"\"Level1\"", "\"level1\"", "DYN_VALUE", NP_ERROR, "profiler_level", 1},
	{"\"AiCoreNone\"", "\"ACL_AICORE_PIPE_UTILIZATION\"", "DYN_METRICS_NAME", NP_ERROR,
         "PipeUtilization", 1},
	{"\"AiCoreNone\"", "\"Pipe\"", "DYN_VALUE", NP_ERROR, "aic_metrics", 1},
	{"\"Level1\",\n    \"aic_metrics\": \"AiCoreNone\"",
         "\"Level0\",\n    \"aic_metrics\": \"PipeUtilization\"", "DYN_METRICS_LEVEL0", NP_ERROR,
         "Level0", 1},
	{"\"Level1\"", "\"Level0\"", "DYN_PURPOSE", NP_WARNING, "below Level1", 0},
	{"\"Level1\"", "\"Level_none\"", "DYN_LEVEL_NONE", NP_WARNING, "", 0},
	{"[\"db\"]", "[\"csv\"]", "DYN_VALUE", NP_ERROR, "export_type", 1},
	{"[\"db\"]", "[]", "DYN_VALUE", NP_ERROR, "export_type", 1},
	{"[\"db\"],", "[\"text\"],\n \"op_attr\": true,", "DYN_OP_ATTR_DB", NP_ERROR, "", 1},
	{"\"mstx_domain_include\": [],\n    \"mstx_domain_exclude\": []",
         "\"mstx_domain_include\": [\"a\"],\n    \"mstx_domain_exclude\": [\"b\"]",
         "DYN_MSTX_DOMAINS", NP_WARNING, "", 0},
	{"\"mstx_domain_include\": []", "\"mstx_domain_include\": [\"a\"]", "DYN_MSTX_OFF",
         NP_WARNING, "", 0},
	{"\"mstx\": false", "\"msprof_tx\": true, \"mstx\": false", "DYN_MSPROF_TX", NP_INFO, "",
         0},
	{"[\"CPU\", \"NPU\"]", "[\"CPU\"]", "DYN_NO_NPU", NP_ERROR, "", 1},
	{"[\"CPU\", \"NPU\"]", "[\"CPU\", \"CUDA\", \"NPU\"]", "DYN_VALUE", NP_ERROR, "1 of 3", 1},
	{"\"host_sys\": []", "\"host_sys\": [\"disk\"]", "DYN_HOST_SYS", NP_INFO, "", 0},
	{"\"gc_detect_threshold\": null", "\"gc_detect_threshold\": -1", "DYN_VALUE", NP_ERROR,
         "gc_detect_threshold", 1},
	{"\"/tmp\"", "\"./here\"", "DYN_PROF_DIR_RELATIVE", NP_WARNING, "", 0},
	{"\"/tmp\"", "\"/proc/version/x\"", "DYN_PROF_DIR_UNWRITABLE", NP_ERROR, "", 1},
};

static char shm[TREE_PATH];

static struct np_report *check(const char *path, const struct np_dyn_check_options *options)
{
	struct np_dyn_check_options mine = *options;
	struct np_err err = {0};
	struct np_report *report = np_report_new("dynamic check");
	assert_non_null(report);
	mine.shm_dir = shm;
	if (np_dyn_check(path, &mine, report, &err) != NP_OK)
		fail_msg("%s: %s", err.where, err.msg);
	return report;
}

static struct np_report *check_text(const char *root, const char *text,
                                    const struct np_dyn_check_options *options)
{
	char path[TREE_PATH + 32];
	tree_put(root, NP_DYN_FILE_NAME, text);
	(void)snprintf(path, sizeof path, "%s/" NP_DYN_FILE_NAME, root);
	assert_int_equal(chmod(path, 0640), 0);
	return check(path, options);
}

static void every_rule_has_its_code(void **state)
{
	char root[TREE_PATH];
	(void)state;
	tree_new(root);
	for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
		const struct np_dyn_check_options options = {0};
		const struct rule *rule = &rules[i];
		struct np_buf text = {0};
		good_config(&text);
		replace(&text, rule->from, rule->to);
		struct np_report *report = check_text(root, text.ptr, &options);
		for (size_t k = 0; !rule->code && k < report->findings.n; k++)
			if (report->findings.v[k]->severity > NP_INFO)
				fail_msg("the good one: %s", report->findings.v[k]->title);
		const struct np_finding *finding = rule->code ? find(report, rule->code) : NULL;
		if (rule->code && !finding)
			fail_msg("rule %zu: no %s", i, rule->code);
		if (finding && finding->severity != rule->severity)
			fail_msg("rule %zu: severity %d", i, (int)finding->severity);
		if (finding && !strstr(finding->title, rule->in_title))
			fail_msg("rule %zu: %s", i, finding->title);
		if (finding && finding->evidence.n == 0)
			fail_msg("rule %zu: no evidence", i);
		if (report->exit_code != rule->exit_code)
			fail_msg("rule %zu: exit %d", i, report->exit_code);
		np_report_free(report);
		np_buf_release(&text);
	}
	tree_remove(root);
}

static void steps_are_judged_by_where_the_job_is(void **state)
{
	static const struct {
		const char *start;
		int64_t current, max;
		const char *code; /* NULL: none of DYN_START_*, DYN_WINDOW_* */
	} cases[] = {
		{"7", 6, 20, NULL},
		{"7", 7, 20, "DYN_START_PASSED"},
		{"7", 9, 20, "DYN_START_PASSED"},
		{"21", 6, 20, "DYN_START_BEYOND"},
		{"18", 6, 20, NULL}, /* 18, 19, 20 */
		{"19", 6, 20, "DYN_WINDOW_BEYOND"},
		{"-1", 6, 20, NULL},
		{"-1", 18, 20, "DYN_WINDOW_BEYOND"},
	};
	static const char *const codes[] = {"DYN_START_PASSED", "DYN_START_BEYOND",
	                                    "DYN_WINDOW_BEYOND", "DYN_START_UNCHECKED"};
	char root[TREE_PATH];
	(void)state;
	tree_new(root);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const struct np_dyn_check_options options = {.has_current_step = true,
		                                             .has_max_step = true,
		                                             .current_step = cases[i].current,
		                                             .max_step = cases[i].max};
		struct np_buf text = {0};
		char step[64];
		(void)snprintf(step, sizeof step, "\"start_step\": %s", cases[i].start);
		good_config(&text);
		replace(&text, "\"start_step\": -1", step);
		struct np_report *report = check_text(root, text.ptr, &options);
		for (size_t k = 0; k < sizeof codes / sizeof *codes; k++) {
			bool wanted = cases[i].code && strcmp(codes[k], cases[i].code) == 0;
			if ((find(report, codes[k]) != NULL) != wanted)
				fail_msg("case %zu: %s", i, codes[k]);
		}
		assert_int_equal(report->exit_code, cases[i].code ? 1 : 0);
		np_report_free(report);
		np_buf_release(&text);
	}
	tree_remove(root);
}

static void set_mtime(const char *root, np_ns when)
{
	char path[TREE_PATH + 32];
	const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = when / 1000000000}};
	(void)snprintf(path, sizeof path, "%s/" NP_DYN_FILE_NAME, root);
	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static void times_of_the_file_are_judged(void **state)
{
	char root[TREE_PATH];
	struct np_buf text = {0};
	np_ns now = np_time_now();
	const struct np_dyn_check_options none = {0};
	const struct np_dyn_check_options after = {.has_job_start = true,
	                                           .job_start_ns = now - 1000000000LL};
	(void)state;
	tree_new(root);
	good_config(&text);
	np_report_free(check_text(root, text.ptr, &none));
	set_mtime(root, now + 3600 * 1000000000LL);
	struct np_report *report = check(root, &none);
	assert_non_null(find(report, "DYN_MTIME_FUTURE"));
	np_report_free(report);
	set_mtime(root, now - 3600 * 1000000000LL);
	report = check(root, &after);
	assert_non_null(find(report, "DYN_MTIME_OLD"));
	assert_int_equal(report->exit_code, 1);
	np_report_free(report);
	report = check(root, &none);
	assert_int_equal(report->exit_code, 0);
	np_report_free(report);
	np_buf_release(&text);
	tree_remove(root);
}

static void the_place_is_judged(void **state)
{
	char root[TREE_PATH], dir[TREE_PATH + 32], link[TREE_PATH + 32];
	struct np_buf text = {0};
	const struct np_dyn_check_options none = {0};
	(void)state;
	tree_new(root);
	good_config(&text);
	struct np_report *report = check(root, &none);
	assert_non_null(find(report, "DYN_NO_CONFIG"));
	assert_int_equal(report->exit_code, 1);
	np_report_free(report);
	(void)snprintf(dir, sizeof dir, "%s/a b", root);
	assert_int_equal(mkdir(dir, 0777), 0);
	assert_int_equal(chmod(dir, 0777), 0);
	report = check_text(dir, text.ptr, &none);
	assert_non_null(find(report, "DYN_PATH_CHARSET"));
	assert_non_null(find(report, "DYN_MODE"));
	np_report_free(report);
	(void)snprintf(link, sizeof link, "%s/link", root);
	assert_int_equal(symlink(dir, link), 0);
	report = check(link, &none);
	assert_non_null(find(report, "DYN_PATH_SYMLINK"));
	np_report_free(report);
	np_buf_release(&text);
	tree_remove(root);
}

static void too_large_is_told(void **state)
{
	char root[TREE_PATH];
	struct np_buf text = {0};
	const struct np_dyn_check_options none = {0};
	(void)state;
	tree_new(root);
	good_config(&text);
	while (text.len < NP_DYN_MAX_BYTES)
		np_buf_add_cstr(&text,
		                "                                                          ");
	struct np_report *report = check_text(root, text.ptr, &none);
	assert_non_null(find(report, "DYN_TOO_LARGE"));
	np_report_free(report);
	np_buf_release(&text);
	tree_remove(root);
}

static void network_file_systems_are_known(void **state)
{
	(void)state;
	assert_string_equal(np_dyn_network_fs(0x6969), "NFS");
	assert_string_equal(np_dyn_network_fs(0x0BD00BD0), "Lustre");
	assert_string_equal(np_dyn_network_fs((long)(int)0xFF534D42), "CIFS");
	assert_null(np_dyn_network_fs(0xEF53)); /* ext4 */
}

static void the_template_is_the_sample_of_the_guide(void **state)
{
	struct np_buf text = {0};
	const char *const none[NP_DYN_N_FIELDS] = {0};
	(void)state;
	np_dyn_template(&text, NP_DYN_FOR_CLUSTER, none);
	assert_non_null(strstr(text.ptr, "\"prof_dir\": \"./cluster_profile_output\""));
	assert_non_null(strstr(text.ptr, "\"start_step\": -1"));
	assert_non_null(strstr(text.ptr, "\"export_type\": [\"db\"]"));
	assert_null(strstr(text.ptr, "#"));
	np_buf_release(&text);
}

static int make_shm(void **state)
{
	(void)state;
	tree_new(shm);
	return 0;
}

static int remove_shm(void **state)
{
	(void)state;
	tree_remove(shm);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_rule_has_its_code),
		cmocka_unit_test(steps_are_judged_by_where_the_job_is),
		cmocka_unit_test(times_of_the_file_are_judged),
		cmocka_unit_test(the_place_is_judged),
		cmocka_unit_test(too_large_is_told),
		cmocka_unit_test(network_file_systems_are_known),
		cmocka_unit_test(the_template_is_the_sample_of_the_guide),
	};
	return cmocka_run_group_tests(tests, make_shm, remove_shm);
}
