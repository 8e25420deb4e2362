/*
 * A pull over the local transport, with a side between that lies, breaks or is ended: threads,
 * journals that were torn, parts that are stale, links that were planted. Runs under TSan.
 */
#include "collect/pull.h"

#include <pthread.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>

#include "temp_tree.h"
#include "transport_fake.h"

enum { SHARD = 65536 };

struct lab {
	char source[TREE_PATH], dest[TREE_PATH], other[TREE_PATH];
	/* true: it has answered in the command's place. Called from all threads. */
	bool (*hook)(struct lab *lab, const struct np_command *command, struct np_outcome *outcome,
	             struct np_err *err, enum np_status *status);
	struct np_pull_options options;
	struct np_pull_result result;
	struct np_report *report;
	struct np_err err;
	atomic_bool cancel;
	atomic_int seen;
};

/* ── the side between ── */

struct side {
	struct np_transport base;
	struct np_transport *local;
	struct lab *lab;
};

static enum np_status side_run(struct np_transport *base, const struct np_command *command,
                               struct np_outcome *outcome, struct np_err *err)
{
	struct side *self = (struct side *)base;
	enum np_status status = NP_OK;
	if (self->lab->hook && self->lab->hook(self->lab, command, outcome, err, &status))
		return status;
	return self->local->ops->run(self->local, command, outcome, err);
}

static void side_close(struct np_transport *base)
{
	np_transport_close(((struct side *)base)->local);
	free(base);
}

static const struct np_transport_ops side_ops = {
	.kind = "side", .run = side_run, .close = side_close};

static enum np_status side_open(void *ctx, struct np_transport **out, struct np_err *err)
{
	struct side *self = calloc(1, sizeof *self);
	if (!self)
		return np_err_nomem(err);
	self->base.ops = &side_ops;
	(void)snprintf(self->base.name, sizeof self->base.name, "side");
	self->base.retry.delay_ms = 1;
	self->lab = ctx;
	*out = &self->base;
	return np_transport_local(&self->local, err);
}

static bool is(const struct np_command *command, const char *what)
{
	return strcmp(command->what, what) == 0;
}

/* ── the laboratory ── */

static void lab_open(struct lab *lab)
{
	*lab = (struct lab){.options = {.connections = 4, .shard_bytes = SHARD}};
	(void)tree_new(lab->source);
	(void)tree_new(lab->dest);
	(void)tree_new(lab->other);
	lab->options.source = lab->options.path = lab->source;
	lab->options.dest = lab->dest;
	lab->options.cancel = &lab->cancel;
}

static void lab_close(struct lab *lab)
{
	np_report_free(lab->report);
	tree_remove(lab->source);
	tree_remove(lab->dest);
	tree_remove(lab->other);
}

/* The exit code, or -1 for an error. */
static int pull(struct lab *lab)
{
	struct np_pull_link link = {.open = side_open, .ctx = lab};
	np_report_free(lab->report);
	lab->report = np_report_new("pull");
	lab->err = (struct np_err){0};
	assert_non_null(lab->report);
	enum np_status status = np_pull(&link, &lab->options, &lab->result, lab->report, &lab->err);
	return status == NP_OK ? lab->report->exit_code : -1;
}

static bool has(const struct lab *lab, const char *code)
{
	for (size_t i = 0; i < lab->report->findings.n; i++)
		if (strcmp(lab->report->findings.v[i]->code, code) == 0)
			return true;
	return false;
}

static const char *at(const char *root, const char *name)
{
	static char path[2 * TREE_PATH];
	(void)snprintf(path, sizeof path, "%s/%s", root, name);
	return path;
}

/* `size` bytes that depend on `seed`. */
static void put(const char *root, const char *name, size_t size, unsigned seed)
{
	tree_put(root, name, "");
	FILE *file = fopen(at(root, name), "wbe");
	assert_non_null(file);
	for (size_t i = 0; i < size; i++) {
		seed = seed * 1103515245u + 12345u;
		(void)fputc((int)(seed >> 24), file);
	}
	assert_int_equal(fclose(file), 0);
}

static char *slurp(const char *root, const char *name, size_t *size)
{
	FILE *file = fopen(at(root, name), "rbe");
	*size = 0;
	if (!file)
		return NULL;
	char *bytes = malloc(8 << 20);
	assert_non_null(bytes);
	*size = fread(bytes, 1, 8 << 20, file);
	(void)fclose(file);
	return bytes;
}

static bool same(const struct lab *lab, const char *name)
{
	size_t a_size, b_size;
	char *a = slurp(lab->source, name, &a_size), *b = slurp(lab->dest, name, &b_size);
	bool result = a && b && a_size == b_size && memcmp(a, b, a_size) == 0;
	free(a);
	free(b);
	return result;
}

static bool there(const char *root, const char *name)
{
	struct stat stat;
	return lstat(at(root, name), &stat) == 0;
}

/* ── it works ── */

static const char *const names[] = {"big.bin", "d/a b%20.csv", "d/small.csv", "empty", "x/y/z"};
enum { N_NAMES = sizeof names / sizeof *names };

static void put_all(struct lab *lab)
{
	put(lab->source, "big.bin", 20 * SHARD + 17, 1);
	put(lab->source, "d/a b%20.csv", 3 * SHARD, 2);
	put(lab->source, "d/small.csv", 300, 3);
	put(lab->source, "empty", 0, 4);
	put(lab->source, "x/y/z", SHARD + 1, 5);
}

static void assert_all_same(const struct lab *lab)
{
	for (size_t i = 0; i < N_NAMES; i++)
		assert_true(same(lab, names[i]));
	assert_false(there(lab->dest, NP_PULL_STATE));
}

static void shards_come_over_several_threads(void **state)
{
	struct lab lab;
	(void)state;
	lab_open(&lab);
	put_all(&lab);
	for (unsigned i = 0; i < 200; i++) {
		char name[32];
		(void)snprintf(name, sizeof name, "many/%u", i);
		put(lab.source, name, 1 + i * 7, i);
	}
	struct np_progress progress = {.total = 0};
	lab.options.progress = &progress;
	assert_int_equal(pull(&lab), 0);
	assert_all_same(&lab);
	assert_true(same(&lab, "many/199"));
	assert_int_equal(lab.result.files, N_NAMES + 200);
	assert_int_equal(lab.result.had_files, 0);
	assert_int_equal(progress.done, lab.result.bytes >> 20);
	assert_int_equal(pull(&lab), 0);
	assert_int_equal(lab.result.had_files, N_NAMES + 200);
	assert_int_equal(lab.result.wire_bytes, 0);
	lab_close(&lab);
}

/* ── broken and resumed ── */

/* The line is lost for good after six shards. */
static bool breaks_after_six(struct lab *lab, const struct np_command *command,
                             struct np_outcome *outcome, struct np_err *err, enum np_status *status)
{
	if (!is(command, "fetching") || atomic_fetch_add(&lab->seen, 1) < 6)
		return false;
	outcome->link = NP_LINK_AUTH;
	*status = np_err_set(err, NP_E_ACCESS, "side", "refused");
	return true;
}

static void append_to_journal(const struct lab *lab, const char *text)
{
	FILE *file = fopen(at(lab->dest, NP_PULL_STATE "/journal"), "abe");
	assert_non_null(file);
	(void)fputs(text, file);
	assert_int_equal(fclose(file), 0);
}

static void a_torn_journal_is_resumed(void **state)
{
	static const char *const tails[] = {"S 1310737 1", "S", "D 300 1 1 00",
	                                    "garbage\nS 1 2 3\nD x\n\n\nS 9 9 9 9 %zz%4\n", ""};
	(void)state;
	for (size_t i = 0; i < sizeof tails / sizeof *tails; i++) {
		struct lab lab;
		lab_open(&lab);
		put_all(&lab);
		lab.hook = breaks_after_six;
		assert_int_equal(pull(&lab), 4);
		assert_true(has(&lab, "PULL_INCOMPLETE"));
		append_to_journal(&lab, tails[i]);
		lab.seen = 0; /* and torn once more */
		assert_int_equal(pull(&lab), 4);
		assert_true(lab.result.resumed_bytes + lab.result.had_bytes > 0);
		append_to_journal(&lab, tails[i]);
		lab.hook = NULL;
		assert_int_equal(pull(&lab), 0);
		assert_true(lab.result.resumed_bytes > 0);
		assert_true(lab.result.fetched_bytes < lab.result.bytes);
		assert_all_same(&lab);
		lab_close(&lab);
	}
}

static void a_manifest_that_was_never_finished_goes(void **state)
{
	struct lab lab;
	(void)state;
	lab_open(&lab);
	put_all(&lab);
	put(lab.dest, "npuprof_manifest.json.77.tmp", 10, 1);
	put(lab.dest, "npuprof_manifest.json.old", 10, 1);
	assert_int_equal(pull(&lab), 0);
	assert_false(there(lab.dest, "npuprof_manifest.json.77.tmp"));
	assert_true(there(lab.dest, "npuprof_manifest.json"));
	assert_true(there(lab.dest, "npuprof_manifest.json.old"));
	assert_all_same(&lab);
	lab_close(&lab);
}

/* A part of a longer file of the same name must not lend its tail to the new one. */
static void a_file_that_shrank_has_no_old_tail(void **state)
{
	struct lab lab;
	(void)state;
	lab_open(&lab);
	put(lab.source, "a", 7 * SHARD, 1);
	put(lab.source, "b", 7 * SHARD, 1);
	lab.hook = breaks_after_six;
	lab.options.connections = 1;
	assert_int_equal(pull(&lab), 4);
	lab.seen = 0;
	lab.options.connections = 4;
	put(lab.source, "a", SHARD / 2, 2);
	put(lab.source, "b", 0, 2);
	lab.hook = NULL;
	assert_int_equal(pull(&lab), 0);
	assert_true(same(&lab, "a"));
	assert_true(same(&lab, "b"));
	lab_close(&lab);
}

static void a_named_file_that_was_written_since_is_compared(void **state)
{
	struct lab lab;
	(void)state;
	lab_open(&lab);
	put_all(&lab);
	put(lab.dest, "empty", 5, 1); /* keeps the first call from being complete */
	assert_int_equal(pull(&lab), 1);
	assert_int_equal(lab.result.conflicts, 1);
	assert_int_equal(lab.result.files, N_NAMES - 1);
	put(lab.dest, "d/small.csv", 300, 99);
	assert_int_equal(pull(&lab), 1);
	assert_int_equal(lab.result.conflicts, 2);
	assert_int_equal(lab.result.had_files, N_NAMES - 2);
	lab.options.force = true;
	assert_int_equal(pull(&lab), 0);
	assert_all_same(&lab);
	lab_close(&lab);
}

/* ── lies ── */

static enum np_status say(const struct np_command *command, struct np_outcome *outcome,
                          const char *bytes, size_t n)
{
	if (command->out.take)
		return command->out.take(command->out.ctx, bytes, n, NULL);
	np_buf_add(&outcome->out, bytes, n);
	return NP_OK;
}

static bool wrong_digests(struct lab *lab, const struct np_command *command,
                          struct np_outcome *outcome, struct np_err *err, enum np_status *status)
{
	static const char line[] = "000000000000000000000000000000000000000000000000000000000000"
				   "0000 *./big.bin\n";
	(void)lab;
	(void)err;
	if (!is(command, "digests"))
		return false;
	*status = say(command, outcome, line, sizeof line - 1);
	return true;
}

static void what_has_a_wrong_digest_or_none_gets_no_name(void **state)
{
	struct lab lab;
	(void)state;
	lab_open(&lab);
	put_all(&lab);
	lab.hook = wrong_digests;
	assert_int_equal(pull(&lab), 1);
	assert_true(has(&lab, "PULL_SOURCE_CHANGED"));
	assert_int_equal(lab.result.failed, N_NAMES);
	for (size_t i = 0; i < N_NAMES; i++)
		assert_false(there(lab.dest, names[i]));
	lab.hook = NULL;
	assert_int_equal(pull(&lab), 0);
	assert_all_same(&lab);
	lab_close(&lab);
}

static const char *listed;
static size_t listed_len;

static bool a_list_of_lies(struct lab *lab, const struct np_command *command,
                           struct np_outcome *outcome, struct np_err *err, enum np_status *status)
{
	(void)lab;
	(void)err;
	if (!is(command, "list of files"))
		return false;
	*status = say(command, outcome, listed, listed_len);
	return true;
}

static void lists_that_lie_are_refused(void **state)
{
#define LIST(text, status)                \
	{                                 \
		text, sizeof text, status \
	}
	static const struct {
		const char *text;
		size_t len;
		enum np_status status;
	} lists[] = {
		LIST("root /tmp\0f 9223372036854775807 1.0 644 ./a", NP_E_LIMIT),
		LIST("root /tmp\0f 4611686018427387904 1.0 644 ./a\0f 4611686018427387904 1.0 644 "
	             "./b\0f 9223372036854775807 1.0 644 ./c\0f 9223372036854775807 1.0 644 ./d",
	             NP_E_FORMAT),
		LIST("root /tmp\0f 1000000000000000 1.0 644 ./a", NP_E_LIMIT),
		LIST("root /tmp\0f 1 1.0 644 ./.npuprof-pull/journal", NP_E_FORMAT),
		LIST("root /tmp\0f 1 1.0 644 ./.npuprof-pull", NP_E_FORMAT),
		LIST("root /tmp\0f 1 1.0 644 ./a\0f 1 1.0 644 ./a", NP_E_FORMAT),
		LIST("f 1 1.0 644 ./a", NP_E_FORMAT),
		LIST("root /tmp", NP_E_EMPTY),
	};
#undef LIST
	struct lab lab;
	(void)state;
	lab_open(&lab);
	lab.hook = a_list_of_lies;
	for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
		listed = lists[i].text;
		listed_len = lists[i].len;
		lab.options.shard_bytes = i == 2 ? 64 << 20 : SHARD;
		assert_int_equal(pull(&lab), -1);
		assert_int_equal(lab.err.code, lists[i].status);
		assert_false(there(lab.dest, NP_PULL_STATE));
	}
	lab_close(&lab);
}

/* More, less, or something else than was asked for. */
static bool other_bytes(struct lab *lab, const struct np_command *command,
                        struct np_outcome *outcome, struct np_err *err, enum np_status *status)
{
	static char room[2 * SHARD];
	if (!is(command, "fetching"))
		return false;
	int turn = atomic_fetch_add(&lab->seen, 1);
	(void)err;
	*status = say(command, outcome, room, turn % 2 ? sizeof room : 5);
	return true;
}

static void streams_that_lie_are_given_up(void **state)
{
	struct lab lab;
	(void)state;
	lab_open(&lab);
	put_all(&lab);
	lab.hook = other_bytes;
	assert_int_equal(pull(&lab), 1);
	assert_int_equal(lab.result.failed, N_NAMES - 1);
	assert_true(same(&lab, "empty"));
	assert_false(there(lab.dest, "big.bin"));
	lab_close(&lab);
}

/* ── what was planted in DEST ── */

static void links_in_dest_are_not_followed(void **state)
{
	struct lab lab;
	(void)state;
	lab_open(&lab);
	put_all(&lab);
	assert_int_equal(symlink(lab.other, at(lab.dest, "d")), 0);
	put(lab.dest, "x", 3, 1); /* a file where a directory is to be */
	tree_link(lab.dest, "empty", "../victim");
	lab.options.force = true;
	assert_int_equal(pull(&lab), 1);
	assert_true(has(&lab, "PULL_FILE_DIFFERS"));
	assert_int_equal(lab.result.conflicts, 4);
	assert_true(same(&lab, "big.bin"));
	assert_false(there(lab.other, "small.csv"));
	assert_false(there(lab.dest, "../victim"));
	lab_close(&lab);
}

static void links_in_our_own_place_are_refused(void **state)
{
	struct lab lab;
	(void)state;
	lab_open(&lab);
	put_all(&lab);
	assert_int_equal(symlink(lab.other, at(lab.dest, NP_PULL_STATE)), 0);
	assert_int_equal(pull(&lab), -1);
	assert_int_equal(lab.err.code, NP_E_EXISTS);
	assert_int_equal(unlink(at(lab.dest, NP_PULL_STATE)), 0);
	assert_int_equal(mkdir(at(lab.dest, NP_PULL_STATE), 0700), 0);
	assert_int_equal(symlink(lab.other, at(lab.dest, NP_PULL_STATE "/parts")), 0);
	assert_int_equal(pull(&lab), -1);
	assert_int_equal(unlink(at(lab.dest, NP_PULL_STATE "/parts")), 0);
	assert_int_equal(symlink("../../victim", at(lab.dest, NP_PULL_STATE "/journal")), 0);
	assert_int_equal(pull(&lab), -1);
	assert_false(there(lab.dest, "big.bin"));
	lab_close(&lab);
}

static void two_at_a_time_are_told(void **state)
{
	struct lab lab;
	(void)state;
	lab_open(&lab);
	put_all(&lab);
	put(lab.dest, NP_PULL_STATE "/lock", 0, 1);
	FILE *file = fopen(at(lab.dest, NP_PULL_STATE "/lock"), "rbe");
	assert_non_null(file);
	assert_int_equal(flock(fileno(file), LOCK_EX), 0);
	assert_int_equal(pull(&lab), -1);
	assert_int_equal(lab.err.code, NP_E_EXISTS);
	(void)fclose(file);
	assert_int_equal(pull(&lab), 0);
	assert_all_same(&lab);
	lab_close(&lab);
}

/* ── the disk, and the user ── */

static void a_disk_that_takes_no_more_is_told_and_resumed(void **state)
{
	struct lab lab;
	struct rlimit before, small;
	(void)state;
	lab_open(&lab);
	put_all(&lab);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	small = before;
	small.rlim_cur = 10 * SHARD;
	(void)signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	int code = pull(&lab);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_int_equal(code, 4);
	assert_true(has(&lab, "PULL_INCOMPLETE"));
	assert_false(there(lab.dest, "big.bin"));
	assert_int_equal(pull(&lab), 0);
	assert_all_same(&lab);
	lab_close(&lab);
}

/* The far digests would never end; the user, or the failure of another thread, ends them. */
static bool endless_digests(struct lab *lab, const struct np_command *command,
                            struct np_outcome *outcome, struct np_err *err, enum np_status *status)
{
	if (is(command, "fetching") && lab->options.n_only)
		return breaks_after_six(lab, command, outcome, err, status);
	if (is(command, "fetching"))
		atomic_store(&lab->cancel, true);
	if (!is(command, "digests"))
		return false;
	assert_non_null(command->cancel);
	while (!atomic_load(command->cancel))
		(void)np_sleep_ms(10, NULL);
	outcome->link = NP_LINK_CANCELLED;
	*status = np_err_set(err, NP_E_IO, "side", "interrupted");
	return true;
}

static void an_end_is_an_end_for_every_thread(void **state)
{
	static const char *const everything[] = {"*"};
	struct lab lab;
	(void)state;
	lab_open(&lab);
	put_all(&lab);
	lab.hook = endless_digests;
	assert_int_equal(pull(&lab), 4); /* by the user */
	assert_true(has(&lab, "PULL_INCOMPLETE"));
	atomic_store(&lab.cancel, false);
	lab.options.only = everything;
	lab.options.n_only = 1;
	lab.seen = 6;
	assert_int_equal(pull(&lab), 4); /* by the failure of a worker */
	lab.hook = NULL;
	assert_int_equal(pull(&lab), 0);
	assert_all_same(&lab);
	lab_close(&lab);
}

static void times_before_1970_are_kept(void **state)
{
	struct timespec old[2] = {{-5, 0}, {-5, 0}};
	struct stat stat_here;
	struct lab lab;
	(void)state;
	lab_open(&lab);
	put(lab.source, "a", 10, 1);
	assert_int_equal(utimensat(AT_FDCWD, at(lab.source, "a"), old, 0), 0);
	lab.options.preserve = true;
	assert_int_equal(pull(&lab), 0);
	assert_int_equal(stat(at(lab.dest, "a"), &stat_here), 0);
	assert_int_equal(stat_here.st_mtim.tv_sec, -5);
	assert_int_equal(stat_here.st_mtim.tv_nsec, 0);
	lab_close(&lab);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shards_come_over_several_threads),
		cmocka_unit_test(a_torn_journal_is_resumed),
		cmocka_unit_test(a_manifest_that_was_never_finished_goes),
		cmocka_unit_test(a_file_that_shrank_has_no_old_tail),
		cmocka_unit_test(a_named_file_that_was_written_since_is_compared),
		cmocka_unit_test(what_has_a_wrong_digest_or_none_gets_no_name),
		cmocka_unit_test(lists_that_lie_are_refused),
		cmocka_unit_test(streams_that_lie_are_given_up),
		cmocka_unit_test(links_in_dest_are_not_followed),
		cmocka_unit_test(links_in_our_own_place_are_refused),
		cmocka_unit_test(two_at_a_time_are_told),
		cmocka_unit_test(a_disk_that_takes_no_more_is_told_and_resumed),
		cmocka_unit_test(an_end_is_an_end_for_every_thread),
		cmocka_unit_test(times_before_1970_are_kept),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
