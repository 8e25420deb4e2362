/* Getting a capture: words of the command line, known log lines, presets, events, documents. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "collect/run_internal.h"
#include "gate/log_signs.h"
#include "io/json.h"

static struct np_report *report;

static int setup(void **state)
{
	(void)state;
	report = np_report_new("run");
	return report ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	np_report_free(report);
	report = NULL;
	return 0;
}

/* ── words ── */

static void a_target_is_module_and_qualname(void **state)
{
	struct np_run_target target;
	struct np_err err;
	(void)state;
	assert_int_equal(
		np_run_parse_target(&report->arena, "pkg.dit:DiT.forward", false, &target, &err),
		NP_OK);
	assert_string_equal(target.module, "pkg.dit");
	assert_string_equal(target.qualname, "DiT.forward");
	assert_string_equal(target.text, "pkg.dit:DiT.forward");
	assert_null(target.stage);
	assert_int_equal(np_run_parse_target(&report->arena, "dit=m:f", true, &target, &err),
	                 NP_OK);
	assert_string_equal(target.stage, "dit");
	assert_string_equal(target.text, "m:f");
	static const char *const bad[] = {"",      "m",     "m:",    ":f",    "m:f:g", "m..a:f",
	                                  "m:.f",  "m:f.",  "1m:f",  "m f:g", "m:f()", "m;os:f",
	                                  "m:f\n", "./m:f", "m-a:f", "a=m:f"};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_int_equal(np_run_parse_target(&report->arena, bad[i], false, &target, &err),
		                 NP_E_USAGE);
	assert_int_equal(np_run_parse_target(&report->arena, "m:f", true, &target, &err),
	                 NP_E_USAGE);
	assert_int_equal(np_run_parse_target(&report->arena, "=m:f", true, &target, &err),
	                 NP_E_USAGE);
}

static void ranks_are_numbers_and_ranges(void **state)
{
	int64_t *ranks = NULL;
	size_t n = 0;
	struct np_err err;
	(void)state;
	assert_int_equal(np_run_parse_ranks(&report->arena, "all", &ranks, &n, &err), NP_OK);
	assert_null(ranks);
	assert_int_equal(np_run_parse_ranks(&report->arena, "3,0,4-6,5", &ranks, &n, &err), NP_OK);
	static const int64_t wanted[] = {3, 0, 4, 5, 6};
	assert_int_equal(n, 5);
	assert_memory_equal(ranks, wanted, sizeof wanted);
	static const char *const bad[] = {"",     "a",    "-1",  "1-",      "2-1",
	                                  "1,,2", "1, 2", "0x1", "1000000", "0-999999"};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_int_equal(np_run_parse_ranks(&report->arena, bad[i], &ranks, &n, &err),
		                 NP_E_USAGE);
}

static void a_command_is_one_line_for_a_shell(void **state)
{
	char *argv[] = {(char[]){"torchrun"},
	                (char[]){"--nproc=2"},
	                (char[]){"it's"},
	                (char[]){"-"},
	                (char[]){"--x y"},
	                (char[]){""},
	                NULL};
	(void)state;
	assert_string_equal(np_run_command_line(report, argv),
	                    "torchrun --nproc=2 'it'\\''s' - --'x y' ''");
}

/* ── log signs ── */

static const char *sign_of(const char *line)
{
	size_t which = np_log_sign_of(np_str_of(line));
	return which < np_log_n_signs() ? np_log_sign(which)->text : NULL;
}

static void known_lines_are_recognised(void **state)
{
	static const struct {
		const char *line, *sign;
	} cases[] = {
		{"Incorrect schedule: Stop profiler while current state is WARMUP which will "
	         "result in empty parsed data.",
	         "current state is WARMUP"},
		{"Incorrect schedule: Stop profiler while current state is RECORD which may",
	         "current state is RECORD"},
		{"Stop profiler while current state is RECORD_AND_SAVE, perhaps the",
	         "current state is RECORD_AND_SAVE"},
		{"Incorrect schedule: WARMUP followed by NONE", "WARMUP followed by NONE"},
		{"Incorrect schedule: RECORD followed by NONE", "RECORD followed by NONE"},
		{"Incorrect schedule: RECORD followed by WARMUP", "RECORD followed by WARMUP"},
		{"Task [KernelViewParser] run failed.", "run failed"},
		{"card 3: UB LINK ERROR", "UB LINK ERROR"},
		{"OSError: [Errno 98] Address already in use", "Address already in use"},
		{"listen EADDRINUSE :::16666", "EADDRINUSE"},
		{"HCCL Port 16666 is taken", "16666"},
		{"step 16666 of 20000", NULL},
		{"run.sh: line 1: $'\\r': command not found", "$'\\r'"},
		{"env: 'python3\\r': No such file or directory", "\\r"},
		{"The profiling data cannot be parsed during the daemon process",
	         "cannot be parsed during the daemon process"},
		{"", NULL},
		{"all is well", NULL},
	};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const char *sign = sign_of(cases[i].line);
		if (cases[i].sign)
			assert_string_equal(sign ? sign : "(none)", cases[i].sign);
		else
			assert_null(sign);
	}
}

static void every_sign_is_reachable_and_explained(void **state)
{
	(void)state;
	assert_true(np_log_n_signs() < 64); /* the gate remembers them in a word */
	for (size_t i = 0; i < np_log_n_signs(); i++) {
		const struct np_log_sign *sign = np_log_sign(i);
		const char *line = np_arena_printf(&report->arena, "%s %s", sign->text,
		                                   sign->also ? sign->also : "");
		assert_int_equal(np_log_sign_of(np_str_of(line)), i);
		assert_non_null(sign->meaning);
		assert_false(sign->fatal && sign->about_run);
	}
}

static void escape_sequences_are_dropped(void **state)
{
	static const struct {
		const char *text, *plain;
	} cases[] = {
		{"\x1b[31mred\x1b[0m", "red"},
		{"UB \x1b[1;4mLINK\x1b[m ERROR", "UB LINK ERROR"},
		{"\x1b]0;title\x07text", "text"},
		{"\x1b]8;;url\x1b\\text", "text"},
		{"\x1b(Btext", "text"},
		{"cut \x1b[", "cut "},
		{"cut \x1b", "cut "},
		{"\x1b\nnext", "\nnext"},
		{"\x1b]0;never ends\nnext", "\nnext"},
		{"plain", "plain"},
	};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char text[64];
		size_t len = strlen(cases[i].text);
		memcpy(text, cases[i].text, len + 1);
		len = np_log_strip_ansi(text, len);
		assert_int_equal(len, strlen(cases[i].plain));
		assert_memory_equal(text, cases[i].plain, len);
	}
}

/* ── presets ── */

static void presets_are_sorted_and_whole(void **state)
{
	struct np_run_target target;
	struct np_err err;
	enum np_gate_profile profile;
	(void)state;
	assert_null(np_preset(np_n_presets()));
	assert_null(np_preset_find("no such"));
	for (size_t i = 0; i < np_n_presets(); i++) {
		const struct np_preset *preset = np_preset(i);
		assert_true(i == 0 || strcmp(np_preset(i - 1)->name, preset->name) < 0);
		assert_ptr_equal(np_preset_find(preset->name), preset);
		assert_non_null(preset->choose);
		assert_non_null(preset->notes);
		assert_true(preset->warmup >= 1 && preset->compile_warmup >= 10); /* R6 */
		if (preset->profile)
			assert_true(np_gate_profile_parse(preset->profile, &profile));
		for (size_t t = 0; t < NP_PRESET_TARGETS && preset->targets[t]; t++)
			assert_int_equal(np_run_parse_target(&report->arena, preset->targets[t],
			                                     false, &target, &err),
			                 NP_OK);
		for (size_t h = 0; h < NP_PRESET_HINTS && preset->hints[h].target; h++)
			assert_int_equal(np_run_parse_target(&report->arena,
			                                     preset->hints[h].target, false,
			                                     &target, &err),
			                 NP_OK);
		for (size_t v = 0; v < NP_PRESET_VARIABLES && preset->variables[v]; v++)
			assert_non_null(strchr(preset->variables[v], '='));
	}
	np_run_list_presets(report);
	assert_int_equal(np_table_rows(report->tables.v[0]), np_n_presets());
}

/* ── events ── */

static void add(struct np_run_events *events, const char *line)
{
	struct np_run_event event;
	struct np_err err;
	assert_int_equal(np_run_event_parse(&report->arena, np_str_of(line), &event, &err), NP_OK);
	assert_true(np_vec_push(&events->all, event));
}

static void an_event_has_what_it_has(void **state)
{
	struct np_run_event event;
	struct np_err err;
	(void)state;
	assert_int_equal(np_run_event_parse(
				 &report->arena,
				 NP_STR("{\"time\": 1.5, \"pid\": 7, \"ppid\": 1, \"rank\": null, "
	                                "\"event\": \"not_found\", \"target\": \"m:f\", "
	                                "\"near\": [\"g\", \"h\"], \"reason\": \"no f\"}"),
				 &event, &err),
	                 NP_OK);
	assert_string_equal(event.event, "not_found");
	assert_string_equal(event.near, "g, h");
	assert_int_equal(event.pid, 7);
	assert_true(event.rank == NP_NO_I64 && event.calls == NP_NO_I64);
	assert_string_equal(event.dir, "");
	static const char *const bad[] = {"",
	                                  "{",
	                                  "[]",
	                                  "{}",
	                                  "{\"event\": 1}",
	                                  "{\"event\": \"\"}",
	                                  "{\"event\": \"start\"",
	                                  "{\"event\": \"start\",}"};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_int_not_equal(
			np_run_event_parse(&report->arena, np_str_of(bad[i]), &event, &err), NP_OK);
}

static void facts_of_a_target_are_counted(void **state)
{
	struct np_run_events events = {.files = 0};
	struct np_target_facts facts;
	(void)state;
	add(&events, "{\"event\": \"wrapped\", \"pid\": 1, \"target\": \"m:f\"}");
	add(&events, "{\"event\": \"wrapped\", \"pid\": 2, \"target\": \"m:f\"}");
	add(&events, "{\"event\": \"calls\", \"pid\": 1, \"target\": \"m:f\", \"calls\": 3}");
	add(&events, "{\"event\": \"calls\", \"pid\": 2, \"target\": \"m:f\", \"calls\": 9}");
	add(&events,
	    "{\"event\": \"not_found\", \"pid\": 3, \"target\": \"m:f\", \"near\": [\"F\"], "
	    "\"reason\": \"m has no f\"}");
	add(&events,
	    "{\"event\": \"not_found\", \"pid\": 4, \"target\": \"m:f\", \"near\": [\"x\"], "
	    "\"reason\": \"module m was not imported in this process\"}");
	np_target_facts(&events, "m:f", &facts);
	assert_int_equal(facts.wrapped, 2);
	assert_int_equal(facts.most_calls, 9);
	assert_int_equal(facts.sum_calls, 12);
	assert_int_equal(facts.not_found, 2);
	assert_string_equal(facts.near, "F"); /* of the process that imported it */
	np_target_facts(&events, "m:g", &facts);
	assert_true(facts.most_calls == NP_NO_I64 && facts.wrapped == 0 && !facts.imported);
	np_run_events_release(&events);
}

static void a_run_is_done_when_all_ranks_are(void **state)
{
	struct np_run_events events = {.files = 0};
	static const int64_t two[] = {0, 1};
	(void)state;
	assert_false(np_run_events_done(&events, NULL, 0));
	assert_false(np_run_events_done(&events, two, 1));
	add(&events, "{\"event\": \"wrapped\", \"rank\": 0}");
	add(&events, "{\"event\": \"wrapped\", \"rank\": 1}");
	add(&events, "{\"event\": \"profiled\", \"rank\": null}"); /* no RANK counts as 0 */
	assert_true(np_run_events_done(&events, two, 1));
	assert_false(np_run_events_done(&events, two, 2));
	assert_false(np_run_events_done(&events, NULL, 0));
	add(&events, "{\"event\": \"profiled\", \"rank\": 1}");
	assert_true(np_run_events_done(&events, two, 2));
	assert_true(np_run_events_done(&events, NULL, 0));
	/* one that is in its window is waited for while it lives */
	char line[64];
	(void)snprintf(line, sizeof line, "{\"event\": \"profiling\", \"pid\": %ld}",
	               (long)getpid());
	add(&events, line);
	assert_false(np_run_events_done(&events, two, 2));
	(void)snprintf(line, sizeof line, "{\"event\": \"profiled\", \"pid\": %ld}",
	               (long)getpid());
	add(&events, line);
	add(&events, "{\"event\": \"profiling\", \"pid\": 2147483647}"); /* no such process */
	assert_true(np_run_events_done(&events, two, 2));
	np_run_events_release(&events);
}

/* ── run.json ── */

static void run_json_is_strict_json_whatever_the_words(void **state)
{
	char *argv[] = {(char[]){"python3"}, (char[]){"a \"b\"\n\xff\x01 \\"}, NULL};
	struct np_run_options options = {.collectives = true, .command = argv};
	struct np_run run = {.options = &options,
	                     .report = report,
	                     .argv = argv,
	                     .state = "finished",
	                     .name = "n",
	                     .dir = "/d \"q\"",
	                     .search = "/d/prof",
	                     .comm_dir = "/d/comm",
	                     .level = "Level1",
	                     .aic_metrics = "PipeUtilization",
	                     .phase = "both",
	                     .text = true,
	                     .call = 6,
	                     .command_state = NP_RUN_ENDED,
	                     .started_ns = 1234567890123456789,
	                     .end = {.exit_status = -1, .signal = 9}};
	struct np_buf text = {0};
	struct np_input *input = NULL;
	const struct np_jval *root = NULL;
	struct np_err err;
	int64_t value = 0;
	(void)state;
	np_run_json(&run, &text);
	assert_int_equal(np_input_open_mem(np_buf_str(&text), "run.json", 0, &input, &err), NP_OK);
	assert_int_equal(np_json_parse(&report->arena, input, NP_JSON_STRICT, &root, NULL, &err),
	                 NP_OK);
	np_input_close(input);
	assert_true(np_ji64(np_jpath(root, "command_status.signal"), &value) && value == 9);
	assert_int_equal(np_jpath(root, "command_status.exit")->type, NP_J_NULL);
	assert_true(np_str_is(np_jget(root, "started")->text, "1234567890.123456789"));
	assert_int_equal(np_jget(root, "command")->n, 2);
	assert_int_equal(np_jget(root, "ranks")->type, NP_J_NULL);
	np_buf_release(&text);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_target_is_module_and_qualname),
		CASE(ranks_are_numbers_and_ranges),
		CASE(a_command_is_one_line_for_a_shell),
		CASE(known_lines_are_recognised),
		CASE(every_sign_is_reachable_and_explained),
		CASE(escape_sequences_are_dropped),
		CASE(presets_are_sorted_and_whole),
		CASE(an_event_has_what_it_has),
		CASE(facts_of_a_target_are_counted),
		CASE(a_run_is_done_when_all_ranks_are),
		CASE(run_json_is_strict_json_whatever_the_words),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
