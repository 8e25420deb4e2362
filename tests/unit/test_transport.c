/* What is the same for every transport: repetition, errors; and the local one, and marks. */
#include "collect/transport.h"

#include "collect/hosts_run.h"
#include "collect/quote.h"
#include "collect/ssh_errors.h"
#include "collect/ssh_marks.h"
#include "unit.h"

#include "transport_fake.h"

static const char *const words[] = {"true", NULL};

static void count_told(void *ctx, const struct np_transport *transport, const struct np_err *err,
                       unsigned failed_try, uint64_t wait_ms)
{
	uint64_t *told = ctx;
	assert_string_equal(transport->name, "fake");
	assert_true(err->msg[0] != '\0');
	assert_int_equal(failed_try, told[0] + 1);
	told[0]++;
	told[1] += wait_ms;
}

static void what_never_began_is_tried_again_and_told(void **state)
{
	static const struct fake_answer answers[] = {{.link = NP_LINK_UNREACHABLE},
	                                             {.link = NP_LINK_UNREACHABLE},
	                                             {.status = 7, .out = "x"}};
	struct fake_transport fake;
	struct np_transport *transport = fake_open(&fake, answers, 3);
	struct np_outcome outcome;
	uint64_t told[2] = {0};
	(void)state;
	transport->retry.tell = count_told;
	transport->retry.ctx = told;
	const struct np_command command = {.argv = words};
	assert_int_equal(np_transport_run(transport, &command, &outcome, NULL), NP_OK);
	assert_int_equal(outcome.status, 7);
	assert_int_equal(outcome.tries, 3);
	assert_string_equal(outcome.out.ptr, "x");
	assert_int_equal(told[0], 2);
	assert_int_equal(told[1], 1 + 2); /* the wait doubles */
	assert_int_equal(fake.forgotten, 2);
	np_outcome_release(&outcome);
}

static void it_ends_after_the_given_number_of_tries(void **state)
{
	struct fake_transport fake;
	struct np_transport *transport = fake_open(&fake, NULL, 0);
	struct np_outcome outcome;
	struct np_err err = {0};
	const struct np_command command = {.argv = words, .repeatable = true};
	(void)state;
	assert_int_equal(np_transport_run(transport, &command, &outcome, &err), NP_E_IO);
	assert_int_equal(outcome.tries, NP_TRANSPORT_TRIES);
	assert_int_equal(outcome.link, NP_LINK_UNREACHABLE);
	np_outcome_release(&outcome);
	transport->retry.tries = 1;
	assert_int_equal(np_transport_run(transport, &command, &outcome, &err), NP_E_IO);
	assert_int_equal(outcome.tries, 1);
	np_outcome_release(&outcome);
}

static void only_a_repeatable_command_is_repeated_after_a_loss(void **state)
{
	static const struct fake_answer answers[] = {{.link = NP_LINK_LOST, .out = "half"},
	                                             {.out = "whole"}};
	struct fake_transport fake;
	struct np_transport *transport = fake_open(&fake, answers, 2);
	struct np_outcome outcome;
	struct np_command command = {.argv = words};
	(void)state;
	assert_int_equal(np_transport_run(transport, &command, &outcome, NULL), NP_E_IO);
	assert_int_equal(outcome.link, NP_LINK_LOST);
	assert_int_equal(fake.runs, 1);
	np_outcome_release(&outcome);
	transport = fake_open(&fake, answers, 2);
	command.repeatable = true;
	assert_int_equal(np_transport_run(transport, &command, &outcome, NULL), NP_OK);
	assert_string_equal(outcome.out.ptr, "whole");
	np_outcome_release(&outcome);
}

static void what_a_repetition_cannot_cure_is_not_repeated(void **state)
{
	static const enum np_link links[] = {NP_LINK_AUTH,     NP_LINK_HOST_KEY_UNKNOWN,
	                                     NP_LINK_NAME,     NP_LINK_HOST_KEY_CHANGED,
	                                     NP_LINK_CONFIG,   NP_LINK_TIMEOUT,
	                                     NP_LINK_CANCELLED};
	(void)state;
	for (size_t i = 0; i < sizeof links / sizeof *links; i++) {
		const struct fake_answer answer = {.link = links[i]};
		struct fake_transport fake;
		struct np_transport *transport = fake_open(&fake, &answer, 1);
		struct np_outcome outcome;
		const struct np_command command = {.argv = words, .repeatable = true};
		assert_int_equal(np_transport_run(transport, &command, &outcome, NULL), NP_E_IO);
		assert_int_equal(fake.runs, 1);
		np_outcome_release(&outcome);
	}
}

static void start_over(void *ctx)
{
	np_buf_clear(ctx);
}

static enum np_status append(void *ctx, const void *bytes, size_t len, struct np_err *err)
{
	(void)err;
	np_buf_add(ctx, bytes, len);
	return NP_OK;
}

static void a_sink_starts_over_with_a_repetition(void **state)
{
	static const struct fake_answer answers[] = {{.link = NP_LINK_LOST, .out = "half"},
	                                             {.out = "whole"}};
	struct fake_transport fake;
	struct np_transport *transport = fake_open(&fake, answers, 2);
	struct np_outcome outcome;
	struct np_buf got = {0};
	const struct np_command command = {.argv = words,
	                                   .out = {append, &got},
	                                   .repeatable = true,
	                                   .restart = start_over,
	                                   .restart_ctx = &got};
	(void)state;
	assert_int_equal(np_transport_run(transport, &command, &outcome, NULL), NP_OK);
	assert_string_equal(got.ptr, "whole");
	np_outcome_release(&outcome);
	np_buf_release(&got);
}

static void a_cancel_ends_the_waiting(void **state)
{
	struct fake_transport fake;
	struct np_transport *transport = fake_open(&fake, NULL, 0);
	const atomic_bool cancelled = true;
	struct np_outcome outcome;
	const struct np_command command = {.argv = words, .cancel = &cancelled};
	(void)state;
	transport->retry.delay_ms = 3600000;
	assert_int_equal(np_transport_run(transport, &command, &outcome, NULL), NP_E_IO);
	assert_int_equal(fake.runs, 1);
	np_outcome_release(&outcome);
}

static void a_status_may_be_asked_to_be_zero(void **state)
{
	static const struct fake_answer answers[] = {
		{.status = 0, .out = "fine"},
		{.status = 3, .err = "\n  no space left\nmore"},
		{.status = 127, .err = "sh: x: not found"},
	};
	struct fake_transport fake;
	struct np_transport *transport = fake_open(&fake, answers, 3);
	struct np_outcome outcome;
	struct np_err err = {0};
	const struct np_command command = {.argv = words, .what = "packing"};
	(void)state;
	assert_int_equal(np_transport_check(transport, &command, &outcome, &err), NP_OK);
	np_outcome_release(&outcome);
	assert_int_equal(np_transport_check(transport, &command, &outcome, &err), NP_E_IO);
	assert_string_equal(err.msg, "packing: exit status 3: no space left");
	np_outcome_release(&outcome);
	assert_int_equal(np_transport_check(transport, &command, &outcome, &err), NP_E_NOTFOUND);
	np_outcome_release(&outcome);
}

static enum np_status local_job(void *ctx, size_t i, struct np_transport *transport,
                                struct np_err *err)
{
	const char *const argv[] = {"sh", "-c", "echo \"$1\"; exit 255", "sh", "a b", NULL};
	const struct np_command command = {.argv = argv};
	assert_int_equal(i, 0);
	assert_string_equal(transport->ops->kind, "local");
	return np_transport_run(transport, &command, ctx, err);
}

static void no_hosts_are_this_machine(void **state)
{
	struct np_host_result result;
	struct np_outcome outcome;
	(void)state;
	assert_int_equal(np_hosts_run(NULL, NULL, 0, local_job, &outcome, &result), 0);
	assert_int_equal(outcome.status, 255);
	assert_string_equal(outcome.out.ptr, "a b\n");
	np_outcome_release(&outcome);
}

/* ── quoting ── */

static void words_are_quoted_only_where_it_is_needed(void **state)
{
	static const char *const argv[] = {"if", "a-b_c./:,@+9", "",     "a b", "it's", "$x", "a=b",
	                                   "~",  "-rf",          "x\ny", NULL};
	struct np_arena arena;
	(void)state;
	np_arena_init(&arena);
	assert_string_equal(np_quote_line(&arena, argv),
	                    "'if' a-b_c./:,@+9 '' 'a b' 'it'\\''s' '$x' 'a=b' '~' -rf 'x\ny'");
	np_arena_release(&arena);
}

/* xorshift: the same words on every machine */
static uint32_t next_random(uint32_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 17;
	*seed ^= *seed << 5;
	return *seed;
}

static void any_words_pass_any_shell_unchanged(void **state)
{
	static const char letters[] =
		"ab '\"\\$`!*?[]{}()<>|&;#~=%^\n\t-\r\x1b\x7f\xe6\x96\x87\xff";
	static const char *const shells[] = {"sh", "bash"};
	uint32_t seed = 20260101;
	(void)state;
	for (int round = 0; round < 60; round++) {
		char words_of[6][24];
		const char *argv[10] = {"printf", "%s\\0"};
		struct np_buf want = {0};
		size_t n = 1 + next_random(&seed) % 6;
		for (size_t i = 0; i < n; i++) {
			size_t len = next_random(&seed) % 20;
			for (size_t k = 0; k < len; k++)
				words_of[i][k] = letters[next_random(&seed) % (sizeof letters - 1)];
			words_of[i][len] = '\0';
			argv[2 + i] = words_of[i];
			np_buf_add(&want, words_of[i], len + 1);
		}
		struct np_arena arena;
		np_arena_init(&arena);
		const char *line = np_quote_line(&arena, argv);
		const char *const shell[] = {shells[round % 2], "-c", line, NULL};
		const struct np_subprocess child = {.argv = shell};
		struct np_subprocess_result result;
		assert_int_equal(np_subprocess_run(&child, &result, NULL), NP_OK);
		assert_true(np_str_eq(np_buf_str(&result.out), np_buf_str(&want)));
		np_subprocess_release(&result);
		np_arena_release(&arena);
		np_buf_release(&want);
	}
}

static void containers_have_names(void **state)
{
	static const char *const bad[] = {"",        "-x",        "a b", "a;b",
	                                  "docker:", "podman:-x", "a/b", "a:b"};
	struct np_container container;
	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_int_equal(np_container_parse(bad[i], &container, NULL), NP_E_USAGE);
	assert_int_equal(np_container_parse("podman:my_box.1-a", &container, NULL), NP_OK);
	assert_int_equal(container.engine, NP_ENGINE_PODMAN);
	assert_str(container.name, "my_box.1-a");

	struct np_arena arena;
	np_arena_init(&arena);
	static const char *const argv[] = {"echo", "a b", NULL};
	const char *const *words_of = np_container_argv(&arena, &container, argv, true);
	static const char *const want[] = {"podman", "exec", "-i",        "my_box.1-a",
	                                   "bash",   "-lc",  "echo 'a b'"};
	for (size_t i = 0; i < 7; i++)
		assert_string_equal(words_of[i], want[i]);
	assert_null(words_of[7]);
	np_arena_release(&arena);
}

/* ── marks ── */

static const struct np_marks marks = {"\x1e"
                                      "0123456789abcdef0123456789abcdef"};

/* Feeds `text` in pieces of every size: the same comes out. */
static void filtered(const char *text, size_t len, const char *want, const char *noise, bool begun,
                     bool ended, int status)
{
	for (size_t step = 1; step <= len; step++) {
		struct np_buf got = {0};
		struct np_mark_filter filter;
		np_mark_filter_init(&filter, &marks, (struct np_sink){append, &got});
		for (size_t i = 0; i < len; i += step)
			assert_int_equal(np_mark_filter_take(&filter, text + i,
			                                     len - i < step ? len - i : step, NULL),
			                 NP_OK);
		assert_int_equal(np_mark_filter_end(&filter, NULL), NP_OK);
		assert_str(np_buf_str(&got), want);
		assert_str(np_buf_str(&filter.noise), noise);
		assert_true(filter.begun == begun && filter.ended == ended);
		assert_int_equal(filter.status, status);
		np_mark_filter_release(&filter);
		np_buf_release(&got);
	}
}

#define M      \
	"\x1e" \
	"0123456789abcdef0123456789abcdef"
#define FILTERED(text, ...) filtered(text, sizeof(text) - 1, __VA_ARGS__)

static void marks_part_the_command_from_the_rest(void **state)
{
	(void)state;
	FILTERED("motd" M "+17\nbody" M "=3\nbye", "body", "motdbye", true, true, 3);
	FILTERED(M "+\n" M "=255\n", "", "", true, true, 255);
	FILTERED("Permission denied", "", "Permission denied", false, false, 0);
	FILTERED(M "+1\nhalf", "half", "", true, false, 0);
	FILTERED(M "+1\nhalf\x1e"
	           "0123",
	         "half\x1e"
	         "0123",
	         "", true, false, 0);
	/* what only looks like a mark is the command's */
	FILTERED(M "+1\n\x1e\x1e"
	           "01\x1e" M "+2\n" M "x\n" M "=\n" M "=12a\n",
	         "\x1e\x1e"
	         "01\x1e" M "+2\n" M "x\n" M "=\n" M "=12a\n",
	         "", true, false, 0);
	FILTERED(M "=1\n" M "+1\nx", "x", M "=1\n", true, false, 0);
	FILTERED(M "+99999999999999999999999999\n", "", M "+99999999999999999999999999\n", false,
	         false, 0);
}

static void the_far_line_runs_the_words_between_marks(void **state)
{
	struct np_arena arena;
	struct np_marks own;
	(void)state;
	np_arena_init(&arena);
	assert_int_equal(np_marks_make(&own, NULL), NP_OK);
	static const char *const argv[] = {"sh", "-c", "echo out; echo err >&2; exit 9", NULL};
	const char *line = np_marks_line(&own, &arena, argv);
	const char *const shell[] = {"sh", "-c", line, NULL};
	struct np_buf out = {0}, errs = {0};
	struct np_mark_filter out_filter, err_filter;
	np_mark_filter_init(&out_filter, &own, (struct np_sink){append, &out});
	np_mark_filter_init(&err_filter, &own, (struct np_sink){append, &errs});
	const struct np_subprocess child = {.argv = shell,
	                                    .out = {np_mark_filter_take, &out_filter},
	                                    .err = {np_mark_filter_take, &err_filter}};
	struct np_subprocess_result result;
	assert_int_equal(np_subprocess_run(&child, &result, NULL), NP_OK);
	assert_str(np_buf_str(&out), "out\n");
	assert_str(np_buf_str(&errs), "err\n");
	assert_true(out_filter.begun && out_filter.pid > 1);
	assert_true(err_filter.begun && err_filter.ended && err_filter.status == 9);
	assert_int_equal(result.status, 9);
	np_subprocess_release(&result);
	np_mark_filter_release(&out_filter);
	np_mark_filter_release(&err_filter);
	np_buf_release(&out);
	np_buf_release(&errs);
	np_arena_release(&arena);
}

/* ── what ssh says ── */

static void sayings_of_ssh_are_explained(void **state)
{
	static const struct {
		const char *talk;
		enum np_link link;
		const char *part;
	} cases[] = {
		{"@@@@@@\n@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\n@@@@@@\n"
	         "Host key verification failed.\n",
	         NP_LINK_HOST_KEY_CHANGED, "ssh-keygen -R '[n7]:2222'"},
		{"Host key verification failed.\n", NP_LINK_HOST_KEY_UNKNOWN,
	         "ssh -p 2222 u@n7 true"},
		{"u@n7: Permission denied (publickey,password).\n", NP_LINK_AUTH,
	         "ssh-copy-id -p 2222 u@n7"},
		{"ssh: Could not resolve hostname n7: Name or service not known\n", NP_LINK_NAME,
	         "ssh -G -p 2222 u@n7"},
		{"ssh: connect to host n7 port 2222: Connection refused\n", NP_LINK_UNREACHABLE,
	         "sshd running"},
		{"ssh: connect to host n7 port 2222: Connection timed out\n", NP_LINK_UNREACHABLE,
	         "firewall"},
		{"command-line: line 0: Bad configuration option: x\n", NP_LINK_CONFIG, "ssh -G"},
		{"kex_exchange_identification: read: Connection reset by peer\n",
	         NP_LINK_UNREACHABLE, "MaxStartups"},
		{"something new\n", NP_LINK_UNREACHABLE, "something new"},
		{"", NP_LINK_UNREACHABLE, "ssh failed; look at: ssh -p 2222 u@n7 -v true"},
	};
	const struct np_host host = {.text = "u@n7:2222", .user = "u", .name = "n7", .port = 2222};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct np_buf text = {0};
		assert_int_equal(np_ssh_explain(np_str_of(cases[i].talk), false, &host,
		                                "ssh -p 2222 u@n7", &text),
		                 cases[i].link);
		if (!np_str_contains(np_buf_str(&text), np_str_of(cases[i].part)))
			fail_msg("'%s' is not in '%s'", cases[i].part, text.ptr);
		np_buf_release(&text);
	}
	struct np_buf text = {0};
	assert_int_equal(np_ssh_explain(NP_STR("client_loop: send disconnect: Broken pipe\n"), true,
	                                &host, "ssh n7", &text),
	                 NP_LINK_LOST);
	np_buf_release(&text);
}

static void options_that_weaken_are_refused(void **state)
{
	static const char *const refused[] = {"StrictHostKeyChecking=no",
	                                      " stricthostkeychecking  no", "ControlPath=x",
	                                      "BATCHMODE no"};
	const struct np_host host = {.text = "n7", .name = "n7"};
	(void)state;
	for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
		const char *const list[] = {"Compression=yes", refused[i], NULL};
		const struct np_ssh_options options = {.options = list};
		struct np_transport *transport = NULL;
		assert_int_equal(np_transport_ssh(&host, &options, &transport, NULL), NP_E_USAGE);
		assert_null(transport);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_never_began_is_tried_again_and_told),
		cmocka_unit_test(it_ends_after_the_given_number_of_tries),
		cmocka_unit_test(only_a_repeatable_command_is_repeated_after_a_loss),
		cmocka_unit_test(what_a_repetition_cannot_cure_is_not_repeated),
		cmocka_unit_test(a_sink_starts_over_with_a_repetition),
		cmocka_unit_test(a_cancel_ends_the_waiting),
		cmocka_unit_test(a_status_may_be_asked_to_be_zero),
		cmocka_unit_test(no_hosts_are_this_machine),
		cmocka_unit_test(words_are_quoted_only_where_it_is_needed),
		cmocka_unit_test(any_words_pass_any_shell_unchanged),
		cmocka_unit_test(containers_have_names),
		cmocka_unit_test(marks_part_the_command_from_the_rest),
		cmocka_unit_test(the_far_line_runs_the_words_between_marks),
		cmocka_unit_test(sayings_of_ssh_are_explained),
		cmocka_unit_test(options_that_weaken_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
