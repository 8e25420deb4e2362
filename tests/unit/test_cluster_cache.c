/* The cache of digests: what is a hit, what must not be one, and what it does to the disk. */
#include <dirent.h>
#include <sys/wait.h>

#include "cluster/parts.h"
#include "cluster_set.h"
#include "report/writer.h"

static const struct np_part *const part = &np_part_comm_ops;

/* Names of files in cache/npuprof that end so; the last one into `path` when it is not NULL. */
static size_t cached(const struct cset *self, const char *ending, char *path)
{
	char dir[2 * TREE_PATH];
	size_t n = 0;
	(void)snprintf(dir, sizeof dir, "%s/cache/npuprof", self->root);
	DIR *list = opendir(dir);
	for (struct dirent *entry; list && (entry = readdir(list));) {
		if (!np_str_ends(np_str_of(entry->d_name), np_str_of(ending)))
			continue;
		n++;
		if (path)
			(void)snprintf(path, 3 * TREE_PATH, "%s/%s", dir, entry->d_name);
	}
	if (list)
		(void)closedir(list);
	return n;
}

static void set_of(struct cset *self, uint32_t ranks, const char *faults)
{
	synth_set(self->dir, NP_SYNTH_TEXT, ranks, 1, faults);
}

/* How many of the ranks' digests are in the cache as things stand now. */
static size_t hits(struct cset *self)
{
	size_t n = 0;
	np_captures_free(self->all);
	assert_int_equal(np_discover(self->dir, &self->all, &self->err), NP_OK);
	for (size_t i = 0; i < self->all->captures.n; i++) {
		struct np_digest *digest =
			np_cache_get(&self->options, self->all->captures.v[i], part);
		n += digest != NULL;
		np_digest_free(digest);
	}
	return n;
}

/* The clusters's rows point into captures that hits() frees. */
static void fill(struct cset *self)
{
	cset_run(self);
	np_cluster_close(&self->cluster);
	self->open = false;
}

static void a_second_run_reads_digests_and_says_the_same(void **state)
{
	struct cset *self = *state;
	struct np_write_options how = {.format = NP_FORMAT_JSON};
	struct np_buf first = {0}, second = {0};
	set_of(self, 3, "");
	cset_run(self);
	assert_int_equal(np_report_write(self->report, &how, &first, NULL), NP_OK);
	assert_int_equal(cached(self, ".digest", NULL), 3);
	cset_run(self);
	assert_int_equal(np_report_write(self->report, &how, &second, NULL), NP_OK);
	assert_int_equal(first.len, second.len);
	assert_memory_equal(first.ptr, second.ptr, first.len);
	np_cluster_close(&self->cluster);
	self->open = false;
	assert_int_equal(hits(self), 3);
	np_buf_release(&first);
	np_buf_release(&second);
}

/* Hits come from the files: figures that the cache has wrong are told wrong. */
static void a_hit_does_not_read_the_capture(void **state)
{
	struct cset *self = *state;
	set_of(self, 2, "");
	cset_run(self);
	struct np_digest *empty = np_digest_new();
	assert_non_null(np_digest_table(empty, part->tables[0]));
	for (size_t i = 0; i < 2; i++)
		np_cache_put(&self->options, self->cluster.ranks.v[i].capture, part, empty);
	np_digest_free(empty);
	cset_run(self);
	assert_non_null(cset_find(self, "CLUSTER_MODE_EMPTY"));
	self->options.no_cache = true;
	cset_run(self);
	assert_null(cset_find(self, "CLUSTER_MODE_EMPTY"));
}

static void a_touched_file_is_a_miss(void **state)
{
	struct cset *self = *state;
	char path[2 * TREE_PATH];
	set_of(self, 2, "");
	cset_run(self);
	(void)snprintf(path, sizeof path, "%s", cset_file(self, 1, "step_trace_time.csv"));
	np_cluster_close(&self->cluster);
	self->open = false;
	struct timespec times[2] = {{.tv_sec = SYNTH_START, .tv_nsec = 1},
	                            {.tv_sec = SYNTH_START, .tv_nsec = 1}};
	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
	assert_int_equal(hits(self), 1);
}

static void a_file_of_another_size_is_a_miss(void **state)
{
	struct cset *self = *state;
	struct stat st;
	char path[2 * TREE_PATH];
	set_of(self, 2, "");
	cset_run(self);
	(void)snprintf(path, sizeof path, "%s", cset_file(self, 0, "step_trace_time.csv"));
	np_cluster_close(&self->cluster);
	self->open = false;
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(truncate(path, st.st_size - 1), 0);
	struct timespec times[2] = {st.st_atim, st.st_mtim};
	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
	assert_int_equal(hits(self), 1);
}

static void another_place_is_a_miss(void **state)
{
	struct cset *self = *state;
	char moved[3 * TREE_PATH];
	set_of(self, 2, "");
	fill(self);
	assert_int_equal(hits(self), 2);
	(void)snprintf(moved, sizeof moved, "%s-moved", self->dir);
	assert_int_equal(rename(self->dir, moved), 0);
	(void)snprintf(self->dir, sizeof self->dir, "%s/set-moved", self->root);
	assert_int_equal(hits(self), 0);
}

static void options_that_the_map_looks_at_are_in_the_key(void **state)
{
	struct cset *self = *state;
	set_of(self, 2, "");
	fill(self);
	assert_int_equal(hits(self), 2);
	self->options.compat = true;
	assert_int_equal(hits(self), 0);
	self->options.compat = false;
	self->options.has_step = true;
	self->options.step = 13;
	assert_int_equal(hits(self), 0);
	fill(self);
	assert_int_equal(hits(self), 2);
	self->options.step = 12;
	assert_int_equal(hits(self), 0);
	self->options.has_step = false;
	self->options.top = 3; /* of the reduce only */
	assert_int_equal(hits(self), 2);
}

static void another_revision_of_the_part_is_another_key(void **state)
{
	struct cset *self = *state;
	struct np_buf keys[3] = {{0}};
	struct np_part other = *part;
	set_of(self, 1, "");
	cset_run(self);
	const struct np_capture *capture = self->cluster.ranks.v[0].capture;
	np_cache_key(&self->options, capture, part, &keys[0]);
	other.revision++;
	np_cache_key(&self->options, capture, &other, &keys[1]);
	other = *part;
	other.by_options = true;
	np_cache_key(&self->options, capture, &other, &keys[2]);
	for (size_t i = 0; i < 3; i++) {
		assert_true(keys[i].len > 0 && !keys[i].failed);
		for (size_t k = 0; k < i; k++)
			assert_false(np_str_eq(np_buf_str(&keys[i]), np_buf_str(&keys[k])));
	}
	for (size_t i = 0; i < 3; i++)
		np_buf_release(&keys[i]);
}

/* Every way to damage a file of the cache, and all of them are only misses. */
static void a_damaged_file_is_a_miss_and_is_written_anew(void **state)
{
	struct cset *self = *state;
	char path[3 * TREE_PATH];
	struct stat st;
	set_of(self, 1, "");
	fill(self);
	assert_int_equal(cached(self, ".digest", path), 1);
	assert_int_equal(stat(path, &st), 0);
	for (off_t at = 0; at < st.st_size; at += st.st_size / 50 + 1) {
		FILE *file = fopen(path, "r+b");
		assert_non_null(file);
		assert_int_equal(fseek(file, at, SEEK_SET), 0);
		int byte = fgetc(file);
		assert_int_equal(fseek(file, at, SEEK_SET), 0);
		assert_int_equal(fputc(byte ^ 0x10, file), byte ^ 0x10);
		assert_int_equal(fclose(file), 0);
		assert_int_equal(hits(self), 0);
		fill(self);
		assert_int_equal(hits(self), 1);
		assert_int_equal(truncate(path, at), 0);
		assert_int_equal(hits(self), 0);
		fill(self);
	}
	assert_int_equal(hits(self), 1);
}

static void the_key_in_the_file_is_compared(void **state)
{
	(void)state;
	struct np_buf file = {0};
	struct np_digest *digest = np_digest_new();
	assert_non_null(np_digest_table(digest, part->tables[0]));
	np_cache_encode(NP_STR("a key"), digest, &file);
	np_digest_free(digest);
	digest = np_cache_decode(np_buf_str(&file), NP_STR("a key"), part);
	assert_non_null(digest);
	np_digest_free(digest);
	assert_null(np_cache_decode(np_buf_str(&file), NP_STR("a kez"), part));
	assert_null(np_cache_decode(np_buf_str(&file), NP_STR("a ke"), part));
	assert_null(np_cache_decode(np_buf_str(&file), NP_STR("a key "), part));
	np_buf_release(&file);
}

static void no_cache_reads_and_writes_nothing(void **state)
{
	struct cset *self = *state;
	char dir[2 * TREE_PATH];
	set_of(self, 2, "");
	self->options.no_cache = true;
	fill(self);
	(void)snprintf(dir, sizeof dir, "%s/cache", self->root);
	assert_int_equal(access(dir, F_OK), -1);
	self->options.no_cache = false;
	fill(self);
	assert_int_equal(hits(self), 2);
	self->options.no_cache = true;
	assert_int_equal(hits(self), 0);
}

static void a_digest_with_diagnostics_is_not_kept(void **state)
{
	struct cset *self = *state;
	set_of(self, 2, "");
	cset_run(self);
	char path[2 * TREE_PATH];
	(void)snprintf(path, sizeof path, "%s", cset_file(self, 1, "trace_view.json"));
	tree_remove(tree_path(self->root, "cache"));
	assert_int_equal(truncate(path, 2000), 0);
	cset_run(self);
	assert_int_equal(cached(self, ".digest", NULL), 1);
	size_t told = self->report->findings.n;
	assert_true(told > 0);
	cset_run(self); /* and told again */
	assert_int_equal(self->report->findings.n, told);
}

static void files_are_for_this_user_only(void **state)
{
	struct cset *self = *state;
	char path[3 * TREE_PATH];
	struct stat st;
	mode_t before = umask(0);
	set_of(self, 1, "");
	fill(self);
	(void)umask(before);
	assert_int_equal(cached(self, ".digest", path), 1);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0640);
	assert_int_equal(stat(tree_path(self->root, "cache/npuprof"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0750);
	assert_int_equal(cached(self, ".tmp", NULL), 0);
}

static void a_directory_that_others_can_write_to_is_not_trusted(void **state)
{
	struct cset *self = *state;
	set_of(self, 2, "");
	fill(self);
	assert_int_equal(hits(self), 2);
	assert_int_equal(chmod(tree_path(self->root, "cache/npuprof"), 0777), 0);
	assert_int_equal(hits(self), 0);
	assert_int_equal(chmod(tree_path(self->root, "cache/npuprof"), 0700), 0);
	assert_int_equal(hits(self), 2);
}

/* Places where no cache can be: the run is as good without. */
static void without_a_place_there_is_no_cache(void **state)
{
	struct cset *self = *state;
	static const char *const places[] = {"", "relative", "/proc/npuprof-none", "/dev/null"};
	set_of(self, 2, "");
	for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
		assert_int_equal(setenv("XDG_CACHE_HOME", places[i], 1), 0);
		assert_int_equal(setenv("HOME", places[i], 1), 0);
		cset_run(self);
		assert_int_equal(self->report->exit_code, 0);
		assert_int_equal(self->report->tables.n, 4);
	}
	assert_int_equal(unsetenv("HOME"), 0);
	assert_int_equal(unsetenv("XDG_CACHE_HOME"), 0);
	cset_run(self);
	assert_int_equal(self->report->exit_code, 0);
	tree_put(self->root, "file", "");
	assert_int_equal(setenv("HOME", tree_path(self->root, "file"), 1), 0);
	cset_run(self);
	assert_int_equal(self->report->exit_code, 0);
}

static void a_read_only_directory_is_read(void **state)
{
	struct cset *self = *state;
	if (geteuid() == 0)
		skip(); /* root may write everywhere */
	set_of(self, 2, "");
	fill(self);
	const char *dir = tree_path(self->root, "cache/npuprof");
	assert_int_equal(chmod(dir, 0500), 0);
	assert_int_equal(hits(self), 2);
	self->options.compat = true;
	cset_run(self);
	assert_int_equal(self->report->exit_code, 0);
	assert_int_equal(chmod(dir, 0700), 0);
}

static void what_is_no_file_is_a_miss(void **state)
{
	struct cset *self = *state;
	char path[3 * TREE_PATH];
	set_of(self, 1, "");
	fill(self);
	assert_int_equal(cached(self, ".digest", path), 1);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0); /* would be waited for */
	assert_int_equal(hits(self), 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(hits(self), 0);
	fill(self);
}

/* ── sweeping ── */

static void put_old(const struct cset *self, const char *name, int64_t days, size_t bytes)
{
	char relative[256];
	char text[1024];
	memset(text, 'x', sizeof text);
	text[bytes < sizeof text ? bytes : sizeof text - 1] = '\0';
	(void)snprintf(relative, sizeof relative, "cache/npuprof/%s", name);
	tree_put(self->root, relative, text);
	tree_set_time(self->root, relative, time(NULL) - days * 86400);
}

static bool is_there(const struct cset *self, const char *name)
{
	char relative[256];
	(void)snprintf(relative, sizeof relative, "cache/npuprof/%s", name);
	return access(tree_path(self->root, relative), F_OK) == 0;
}

static void what_is_old_goes_and_nothing_else(void **state)
{
	struct cset *self = *state;
	put_old(self, "old.digest", NP_CACHE_MAX_DAYS + 1, 10);
	put_old(self, "young.digest", NP_CACHE_MAX_DAYS - 1, 10);
	put_old(self, "a.digest.17.tmp", 2, 10);
	put_old(self, "b.digest.18.tmp", 0, 10);
	put_old(self, "somebody's", 1000, 10);
	np_cache_sweep(tree_path(self->root, "cache/npuprof"), UINT64_MAX);
	assert_false(is_there(self, "old.digest"));
	assert_true(is_there(self, "young.digest"));
	assert_false(is_there(self, "a.digest.17.tmp"));
	assert_true(is_there(self, "b.digest.18.tmp"));
	assert_true(is_there(self, "somebody's"));
}

static void beyond_the_limit_the_longest_unused_go(void **state)
{
	struct cset *self = *state;
	put_old(self, "c.digest", 1, 100);
	put_old(self, "a.digest", 3, 100);
	put_old(self, "b.digest", 2, 100);
	np_cache_sweep(tree_path(self->root, "cache/npuprof"), 150);
	assert_false(is_there(self, "a.digest"));
	assert_false(is_there(self, "b.digest"));
	assert_true(is_there(self, "c.digest"));
}

static void a_hit_counts_as_use(void **state)
{
	struct cset *self = *state;
	char path[3 * TREE_PATH];
	struct stat st;
	set_of(self, 1, "");
	fill(self);
	assert_int_equal(cached(self, ".digest", path), 1);
	struct timespec times[2] = {{.tv_sec = time(NULL) - 20 * 86400},
	                            {.tv_sec = time(NULL) - 20 * 86400}};
	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
	assert_int_equal(hits(self), 1);
	assert_int_equal(stat(path, &st), 0);
	assert_true(time(NULL) - st.st_mtim.tv_sec < 86400);
}

/* ── many at a time ── */

static void *run_hits(void *arg)
{
	const struct cset *self = arg;
	for (int i = 0; i < 50; i++)
		for (size_t c = 0; c < self->all->captures.n; c++) {
			const struct np_capture *capture = self->all->captures.v[c];
			struct np_digest *digest = np_cache_get(&self->options, capture, part);
			if (!digest)
				return arg; /* a reader saw half a file */
			np_cache_put(&self->options, capture, part, digest);
			np_digest_free(digest);
		}
	return NULL;
}

static void readers_and_writers_share_the_directory(void **state)
{
	struct cset *self = *state;
	set_of(self, 2, "");
	fill(self);
	assert_int_equal(hits(self), 2);
	/* threads of one process have one name for their temporary files, so processes */
	pid_t children[3];
	for (size_t i = 0; i < 3; i++) {
		children[i] = fork();
		assert_true(children[i] >= 0);
		if (children[i] == 0)
			_exit(run_hits(self) ? 1 : 0);
	}
	for (size_t i = 0; i < 3; i++) {
		int status = -1;
		assert_int_equal(waitpid(children[i], &status, 0), children[i]);
		assert_int_equal(status, 0);
	}
	assert_int_equal(cached(self, ".digest", NULL), 2);
	assert_int_equal(cached(self, ".tmp", NULL), 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, cset_new, cset_free)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_second_run_reads_digests_and_says_the_same),
		CASE(a_hit_does_not_read_the_capture),
		CASE(a_touched_file_is_a_miss),
		CASE(a_file_of_another_size_is_a_miss),
		CASE(another_place_is_a_miss),
		CASE(options_that_the_map_looks_at_are_in_the_key),
		CASE(another_revision_of_the_part_is_another_key),
		CASE(a_damaged_file_is_a_miss_and_is_written_anew),
		CASE(the_key_in_the_file_is_compared),
		CASE(no_cache_reads_and_writes_nothing),
		CASE(a_digest_with_diagnostics_is_not_kept),
		CASE(files_are_for_this_user_only),
		CASE(a_directory_that_others_can_write_to_is_not_trusted),
		CASE(without_a_place_there_is_no_cache),
		CASE(a_read_only_directory_is_read),
		CASE(what_is_no_file_is_a_miss),
		CASE(what_is_old_goes_and_nothing_else),
		CASE(beyond_the_limit_the_longest_unused_go),
		CASE(a_hit_counts_as_use),
		CASE(readers_and_writers_share_the_directory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
