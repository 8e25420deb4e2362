/* Children and their streams. Threads: several at once. */
#include "collect/subprocess.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>

#include "base/pool.h"
#include "unit.h"

static enum np_status shell(const char *script, struct np_subprocess *spec,
                            struct np_subprocess_result *result, struct np_err *err)
{
	const char *const argv[] = {"sh", "-c", script, NULL};
	spec->argv = argv;
	enum np_status status = np_subprocess_run(spec, result, err);
	spec->argv = NULL;
	return status;
}

static void the_exit_status_and_the_signal_are_told(void **state)
{
	static const struct {
		const char *script;
		int status, signal;
	} cases[] = {{"exit 0", 0, 0},
	             {"exit 1", 1, 0},
	             {"exit 255", 255, 0},
	             {"kill -KILL $$", 128 + SIGKILL, SIGKILL},
	             {"kill -PIPE $$", 128 + SIGPIPE, SIGPIPE}};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct np_subprocess spec = {.timeout_ms = 60000};
		struct np_subprocess_result result;
		assert_int_equal(shell(cases[i].script, &spec, &result, NULL), NP_OK);
		assert_int_equal(result.status, cases[i].status);
		assert_int_equal(result.signal, cases[i].signal);
		assert_false(result.timed_out || result.cancelled || result.left_behind);
		np_subprocess_release(&result);
	}
}

static void a_program_that_is_not_there_is_an_error(void **state)
{
	const char *const argv[] = {"npuprof-no-such-program", NULL};
	const char *const directory[] = {"/tmp", NULL};
	const struct np_subprocess spec = {.argv = argv}, other = {.argv = directory};
	struct np_subprocess_result result;
	struct np_err err = {0};
	(void)state;
	if (getenv("NPUPROF_EMULATED")) /* qemu-user forks for vfork(): posix_spawn() sees no error */
		skip();
	assert_int_equal(np_subprocess_run(&spec, &result, &err), NP_E_NOTFOUND);
	np_subprocess_release(&result);
	assert_string_equal(err.where, "npuprof-no-such-program");
	assert_int_equal(np_subprocess_run(&other, &result, &err), NP_E_ACCESS);
	np_subprocess_release(&result);
}

static void both_outputs_are_read_while_the_input_is_written(void **state)
{
	enum { SIZE = 4 << 20 };
	char *input = malloc(SIZE);
	struct np_subprocess spec = {.timeout_ms = 60000};
	struct np_subprocess_result result;
	(void)state;
	assert_non_null(input);
	for (size_t i = 0; i < SIZE; i++)
		input[i] = (char)(i * 31 >> 3);
	spec.input = (struct np_source){.kind = NP_SOURCE_BYTES, .bytes = {input, SIZE}};
	assert_int_equal(shell("tee /dev/stderr", &spec, &result, NULL), NP_OK);
	assert_int_equal(result.status, 0);
	assert_int_equal(result.out.len, SIZE);
	assert_int_equal(result.err.len, SIZE);
	assert_memory_equal(result.out.ptr, input, SIZE);
	assert_memory_equal(result.err.ptr, input, SIZE);
	np_subprocess_release(&result);
	/* one that reads nothing gets SIGPIPE's errno, we get no signal */
	assert_int_equal(shell("exec <&-; exit 3", &spec, &result, NULL), NP_OK);
	assert_int_equal(result.status, 3);
	np_subprocess_release(&result);
	free(input);
}

struct feed {
	size_t left;
	bool fail;
};

static ssize_t pull(void *ctx, void *buf, size_t size)
{
	struct feed *feed = ctx;
	size_t n = feed->left < size ? feed->left : size;
	if (n == 0 && feed->fail)
		return -1;
	memset(buf, 'p', n);
	feed->left -= n;
	return (ssize_t)n;
}

static void an_input_may_be_pulled_or_a_descriptor_or_nothing(void **state)
{
	struct feed feed = {.left = 300000};
	struct np_subprocess spec = {.input = {.kind = NP_SOURCE_PULL, .pull = pull, .ctx = &feed}};
	struct np_subprocess_result result;
	struct np_err err = {0};
	(void)state;
	assert_int_equal(shell("wc -c", &spec, &result, NULL), NP_OK);
	assert_true(strtol(result.out.ptr, NULL, 10) == 300000);
	np_subprocess_release(&result);

	feed = (struct feed){.left = 10, .fail = true};
	assert_int_equal(shell("cat >&2; sleep 60", &spec, &result, &err), NP_E_IO);
	np_subprocess_release(&result);

	spec.input = (struct np_source){.kind = NP_SOURCE_FD,
	                                .fd = open("/proc/version", O_RDONLY | O_CLOEXEC)};
	assert_int_equal(shell("cat", &spec, &result, NULL), NP_OK);
	assert_true(result.out.len > 5 && memcmp(result.out.ptr, "Linux", 5) == 0);
	np_subprocess_release(&result);
	(void)close(spec.input.fd);

	spec.input = (struct np_source){.kind = NP_SOURCE_NONE};
	assert_int_equal(shell("wc -c", &spec, &result, NULL), NP_OK);
	assert_true(strtol(result.out.ptr, NULL, 10) == 0);
	np_subprocess_release(&result);
}

static enum np_status refuse(void *ctx, const void *bytes, size_t len, struct np_err *err)
{
	(void)bytes;
	*(size_t *)ctx += len;
	return np_err_set(err, NP_E_LIMIT, "sink", "enough");
}

static void a_sink_that_has_enough_ends_the_child(void **state)
{
	size_t got = 0;
	struct np_subprocess spec = {.out = {refuse, &got}};
	struct np_subprocess_result result;
	struct np_err err = {0};
	(void)state;
	assert_int_equal(shell("yes", &spec, &result, &err), NP_E_LIMIT);
	assert_string_equal(err.msg, "enough");
	assert_true(got > 0);
	np_subprocess_release(&result);
}

static void a_timeout_ends_the_whole_group(void **state)
{
	struct np_subprocess spec = {.timeout_ms = 300};
	struct np_subprocess_result result;
	(void)state;
	/* the one that ignores SIGTERM, too */
	assert_int_equal(shell("sleep 600 & echo $!; trap '' TERM; while :; do sleep 600; done",
	                       &spec, &result, NULL),
	                 NP_OK);
	assert_true(result.timed_out);
	long pid = strtol(result.out.ptr, NULL, 10);
	assert_true(pid > 1);
	bool gone = false;
	for (int i = 0; i < 500 && !gone; i++) { /* until somebody has reaped it */
		char path[64], text[512] = "";
		(void)snprintf(path, sizeof path, "/proc/%ld/stat", pid);
		FILE *file = fopen(path, "re");
		gone = !file || !fgets(text, sizeof text, file) || strstr(text, ") Z ");
		if (file)
			(void)fclose(file);
		if (!gone)
			(void)np_sleep_ms(20, NULL);
	}
	assert_true(gone);
	np_subprocess_release(&result);
}

static void *cancel_soon(void *flag)
{
	(void)np_sleep_ms(200, NULL);
	atomic_store((atomic_bool *)flag, true);
	return NULL;
}

static void a_cancel_from_another_thread_ends_it(void **state)
{
	atomic_bool flag = false;
	pthread_t thread;
	struct np_subprocess spec = {.cancel = &flag};
	struct np_subprocess_result result;
	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, cancel_soon, &flag), 0);
	assert_int_equal(shell("sleep 600", &spec, &result, NULL), NP_OK);
	assert_true(result.cancelled && result.signal == SIGTERM);
	np_subprocess_release(&result);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_false(np_sleep_ms(60000, &flag));
}

static void what_a_child_leaves_behind_is_not_waited_for(void **state)
{
	struct np_subprocess spec = {0};
	struct np_subprocess_result result;
	(void)state;
	assert_int_equal(shell("sleep 600 & echo $!", &spec, &result, NULL), NP_OK);
	assert_true(result.left_behind && result.status == 0);
	assert_true(result.out.len > 1); /* what came before is there */
	(void)kill((pid_t)strtol(result.out.ptr, NULL, 10), SIGKILL);
	np_subprocess_release(&result);
}

static void an_environment_is_added_to_ours(void **state)
{
	const char *const env[] = {"NPUPROF_TEST_A=x y", "HOME=/nowhere", NULL};
	struct np_subprocess spec = {.env = env};
	struct np_subprocess_result result;
	(void)state;
	assert_int_equal(
		shell("echo \"$NPUPROF_TEST_A,$HOME,${PATH:+path}\"", &spec, &result, NULL), NP_OK);
	assert_string_equal(result.out.ptr, "x y,/nowhere,path\n");
	np_subprocess_release(&result);
}

static void no_descriptor_stays_open(void **state)
{
	struct np_subprocess spec = {.input = {.kind = NP_SOURCE_BYTES, .bytes = NP_STR("x")}};
	struct np_subprocess_result result;
	(void)state;
	int before = dup(0);
	(void)close(before);
	for (int i = 0; i < 20; i++) {
		assert_int_equal(shell("cat", &spec, &result, NULL), NP_OK);
		np_subprocess_release(&result);
	}
	int after = dup(0);
	(void)close(after);
	assert_int_equal(before, after);
}

static void one_job(void *ctx, size_t i)
{
	struct np_subprocess_result result;
	char script[64];
	struct np_subprocess spec = {0};
	(void)snprintf(script, sizeof script, "echo %zu; exit %zu", i, i);
	enum np_status status = shell(script, &spec, &result, NULL);
	((bool *)ctx)[i] = status == NP_OK && result.status == (int)i &&
	                   strtoul(result.out.ptr, NULL, 10) == i;
	np_subprocess_release(&result);
}

static void many_threads_run_children_at_once(void **state)
{
	bool good[48] = {false};
	(void)state;
	np_pool_run(12, 48, one_job, good);
	for (size_t i = 0; i < 48; i++)
		assert_true(good[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_exit_status_and_the_signal_are_told),
		cmocka_unit_test(a_program_that_is_not_there_is_an_error),
		cmocka_unit_test(both_outputs_are_read_while_the_input_is_written),
		cmocka_unit_test(an_input_may_be_pulled_or_a_descriptor_or_nothing),
		cmocka_unit_test(a_sink_that_has_enough_ends_the_child),
		cmocka_unit_test(a_timeout_ends_the_whole_group),
		cmocka_unit_test(a_cancel_from_another_thread_ends_it),
		cmocka_unit_test(what_a_child_leaves_behind_is_not_waited_for),
		cmocka_unit_test(an_environment_is_added_to_ours),
		cmocka_unit_test(no_descriptor_stays_open),
		cmocka_unit_test(many_threads_run_children_at_once),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
