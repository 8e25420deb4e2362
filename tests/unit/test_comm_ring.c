/* The writer of collective logs inside a user's process (inject/preload): ring, texts, groups,
 * stages. Under TSan, too. */
#include "temp_tree.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "../../inject/preload/groups.h"
#include "../../inject/preload/recorder.h"
#include "capture/parallel.h"

const struct np_ring_options np_rec_layer = {
	.name = "unit",
	.recorder = "test 1",
	.layer = NP_COMM_LAYER_HCCL,
};

void np_rec_layer_after_fork(void)
{
	np_rec_groups_after_fork();
}

/* ── reading ── */

struct log {
	const struct np_comm_log_header *header;
	const char *strings;
	const struct np_comm_record *records;
	size_t bytes;
};

static struct log read_log(const char *path)
{
	struct stat st;
	int fd = open(path, O_RDONLY);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	void *map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	assert_true(map != MAP_FAILED);
	(void)close(fd);
	struct log log = {.header = map, .strings = (const char *)map + NP_COMM_LOG_HEADER_BYTES};
	log.bytes = (size_t)st.st_size;
	log.records = (const void *)(log.strings + log.header->string_capacity);
	assert_memory_equal(log.header->magic, NP_COMM_LOG_MAGIC, 8);
	assert_int_equal(log.bytes, NP_COMM_LOG_HEADER_BYTES + log.header->string_capacity +
	                                    log.header->capacity * sizeof *log.records);
	return log;
}

static void close_log(struct log *log)
{
	(void)munmap((void *)log->header, log->bytes);
}

static const char *text_at(const struct log *log, uint32_t offset)
{
	uint32_t length;
	assert_in_range(offset, NP_COMM_LOG_FIRST_STRING, log->header->string_bytes - 5);
	memcpy(&length, log->strings + offset, sizeof length);
	assert_int_equal(strlen(log->strings + offset + 4), length);
	return log->strings + offset + 4;
}

/* How many files, and the path of the last. */
static int files_in(const char *dir, char path[TREE_PATH])
{
	int number = 0;
	DIR *open_dir = opendir(dir);
	assert_non_null(open_dir);
	for (struct dirent *entry; (entry = readdir(open_dir));)
		if (entry->d_name[0] != '.') {
			(void)snprintf(path, TREE_PATH, "%s/%s", dir, entry->d_name);
			number++;
		}
	(void)closedir(open_dir);
	return number;
}

static struct np_ring *open_ring(const char *dir, uint64_t capacity)
{
	struct np_ring_options options = np_rec_layer;
	struct np_ring *ring = NULL;
	options.dir = dir;
	options.capacity = capacity;
	assert_int_equal(np_ring_open(&options, &ring), 0);
	return ring;
}

static bool put(struct np_ring *ring, uint64_t count)
{
	struct np_comm_record *record = np_ring_begin(ring);
	if (!record)
		return false;
	record->count = count;
	np_ring_commit(ring);
	return true;
}

/* ── ring ── */

static void ring_holds_the_last_records(void **state)
{
	char dir[TREE_PATH], path[TREE_PATH];
	(void)state;
	(void)tree_new(dir);
	struct np_ring *ring = open_ring(dir, 5);
	for (uint64_t i = 1; i <= 12; i++)
		assert_true(put(ring, i * 10));
	assert_int_equal(files_in(dir, path), 1);
	struct log log = read_log(path);
	assert_int_equal(log.header->closed, 0);
	assert_int_equal(log.header->written, 12);
	assert_int_equal(log.header->pid, getpid());
	assert_string_equal(log.header->recorder, "test 1");
	for (uint64_t n = 8; n <= 12; n++) {
		assert_int_equal(log.records[(n - 1) % 5].seq, n);
		assert_int_equal(log.records[(n - 1) % 5].count, n * 10);
	}
	np_ring_close(ring);
	assert_int_equal(log.header->closed, 1);
	close_log(&log);
	tree_remove(dir);
}

static void unfinished_record_is_none(void **state)
{
	char dir[TREE_PATH];
	(void)state;
	(void)tree_new(dir);
	struct np_ring *ring = open_ring(dir, 3);
	for (uint64_t i = 1; i <= 3; i++)
		assert_true(put(ring, i));
	struct log log = read_log(ring->path);
	assert_int_equal(log.records[0].seq, 1);
	assert_non_null(np_ring_begin(ring)); /* and killed here */
	assert_int_equal(log.records[0].seq, 0);
	assert_int_equal(log.records[1].seq, 2);
	assert_int_equal(log.header->written, 3);
	close_log(&log);
	np_ring_close(ring);
	tree_remove(dir);
}

static void each_file_has_its_own_name(void **state)
{
	char dir[TREE_PATH], path[TREE_PATH];
	(void)state;
	(void)tree_new(dir);
	struct np_ring *first = open_ring(dir, 4), *second = open_ring(dir, 4);
	assert_true(put(first, 1) && put(second, 2));
	assert_int_equal(files_in(dir, path), 2);
	assert_string_not_equal(first->path, second->path);
	np_ring_close_all();
	struct log log = read_log(first->path);
	assert_int_equal(log.header->closed, 1);
	assert_true(put(first, 3)); /* a thread that still runs at exit() */
	assert_int_equal(log.header->written, 2);
	close_log(&log);
	np_ring_close(first);
	np_ring_close(second);
	tree_remove(dir);
}

static void texts_are_written_once(void **state)
{
	char dir[TREE_PATH];
	(void)state;
	(void)tree_new(dir);
	struct np_ring *ring = open_ring(dir, 4);
	const struct np_text *dit = np_text_intern("dit", 3), *vae = np_text_intern("vae_", 3);
	assert_ptr_equal(np_text_intern("ditto", 3), dit);
	assert_null(np_text_intern("", 0));
	uint32_t first = np_ring_text(ring, dit), second = np_ring_text(ring, vae);
	assert_int_equal(first, NP_COMM_LOG_FIRST_STRING);
	assert_int_equal(np_ring_text(ring, dit), first);
	assert_int_equal(np_ring_text(ring, NULL), 0);
	assert_int_equal(np_ring_text(ring, &np_text_no_room), NP_COMM_LOG_NO_ROOM);
	struct log log = read_log(ring->path);
	assert_string_equal(text_at(&log, first), "dit");
	assert_string_equal(text_at(&log, second), "vae");
	close_log(&log);
	np_ring_close(ring);
	tree_remove(dir);
}

/* More strings than a file, and then than the process, has room for. */
static void texts_find_no_room(void **state)
{
	char dir[TREE_PATH], name[2000];
	(void)state;
	(void)tree_new(dir);
	struct np_ring *ring = open_ring(dir, 4);
	uint32_t written = 0, refused = 0;
	memset(name, 'x', sizeof name);
	for (int i = 0; i < 2 * NP_TEXT_MAX; i++) {
		memcpy(name,
		       (char[]){(char)('a' + i % 26), (char)('a' + i / 26 % 26),
		                (char)('a' + i / 676)},
		       3);
		const struct np_text *text = np_text_intern(name, sizeof name);
		uint32_t offset = np_ring_text(ring, text);
		if (text != &np_text_no_room)
			assert_int_equal(text->length, NP_TEXT_BYTES_MAX);
		if (offset == NP_COMM_LOG_NO_ROOM)
			refused++;
		else
			written++;
	}
	assert_int_equal(written, (NP_COMM_LOG_STRING_BYTES - NP_COMM_LOG_FIRST_STRING) / 1032);
	assert_int_equal(written + refused, 2 * NP_TEXT_MAX);
	assert_true(put(ring, 1));
	np_ring_close(ring);
	tree_remove(dir);
}

/* ── what fails ── */

static void lost_file_stops_the_log(void **state)
{
	char dir[TREE_PATH];
	uint64_t i = 0;
	(void)state;
	(void)tree_new(dir);
	struct np_ring *ring = open_ring(dir, 100000);
	struct log log = read_log(ring->path);
	assert_int_equal(unlink(ring->path), 0);
	while (put(ring, i + 1))
		i++;
	assert_in_range(i, 1, 99999);
	assert_int_equal(ring->stopped, ENOENT);
	assert_false(put(ring, 1));
	assert_int_equal(log.header->lost, 2);
	assert_int_equal(log.header->written, i);
	close_log(&log);
	np_ring_close(ring);
	tree_remove(dir);
}

static void another_file_in_its_place_is_left_alone(void **state)
{
	char dir[TREE_PATH];
	struct stat st;
	(void)state;
	(void)tree_new(dir);
	struct np_ring *ring = open_ring(dir, 100000);
	assert_int_equal(unlink(ring->path), 0);
	int fd = open(ring->path, O_WRONLY | O_CREAT | O_EXCL, 0644);
	assert_true(fd >= 0);
	while (put(ring, 1))
		;
	assert_int_equal(ring->stopped, ESTALE);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_size, 0);
	(void)close(fd);
	np_ring_close(ring);
	tree_remove(dir);
}

static void file_limit_is_no_signal(void **state)
{
	char dir[TREE_PATH], path[TREE_PATH];
	struct rlimit before, small;
	struct np_ring *ring = NULL;
	struct np_ring_options options = np_rec_layer;
	(void)state;
	(void)tree_new(dir);
	options.dir = dir;
	options.capacity = 100000;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	small = before;
	small.rlim_cur = 1 << 20;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	int error = np_ring_open(&options, &ring);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_int_equal(error, EFBIG);
	assert_null(ring);
	assert_int_equal(files_in(dir, path), 0);
	options.dir = "/nonexistent/x";
	assert_int_equal(np_ring_open(&options, &ring), ENOENT);
	tree_remove(dir);
}

/* ── groups ── */

static struct np_rec_group group_of(uintptr_t key, uint64_t calls)
{
	return (struct np_rec_group){.key = (void *)key, .rank = 1, .world = 2, .calls = calls};
}

static void groups_come_and_go(void **state)
{
	struct np_rec_group a = group_of(0x1000, 0), out;
	(void)state;
	assert_null(np_rec_group_find(a.key));
	assert_null(np_rec_group_find(NULL));
	assert_null(np_rec_group_find((void *)1));
	assert_null(np_rec_group_add(&(struct np_rec_group){.key = NULL}));
	struct np_rec_group *found = np_rec_group_add(&a);
	assert_ptr_equal(np_rec_group_find(a.key), found);
	found->calls = 7;
	a.rank = 5;
	assert_int_equal(np_rec_group_add(&a)->calls, 0); /* another with the same handle */
	assert_int_equal(np_rec_group_find(a.key)->rank, 5);
	assert_true(np_rec_group_drop(a.key, &out));
	assert_int_equal(out.rank, 5);
	assert_false(np_rec_group_drop(a.key, NULL));
	assert_null(np_rec_group_find(a.key));
}

static void groups_have_an_end(void **state)
{
	(void)state;
	uintptr_t known = 0;
	for (uintptr_t i = 1; i <= NP_REC_GROUPS_MAX; i++) {
		struct np_rec_group group = group_of(i * 64, i);
		known += np_rec_group_add(&group) != NULL;
	}
	assert_int_equal(known, NP_REC_GROUPS_MAX / 4 * 3);
	for (uintptr_t i = 1; i <= NP_REC_GROUPS_MAX; i++) {
		struct np_rec_group *found = np_rec_group_find((void *)(i * 64));
		assert_int_equal(found != NULL, i <= known);
		if (found)
			assert_int_equal(found->calls, i);
	}
	/* a slot of one that is gone serves another; what is not there is still not found */
	for (uintptr_t i = 1; i <= 3 * NP_REC_GROUPS_MAX; i++) {
		struct np_rec_group group = group_of(0x7000000 + i * 64, i);
		assert_true(np_rec_group_drop(i <= known ? (void *)(i * 64)
		                                         : (void *)(0x7000000 + (i - known) * 64),
		                              NULL));
		assert_non_null(np_rec_group_add(&group));
		assert_null(np_rec_group_find((void *)(0x9000000 + i * 64)));
	}
	np_rec_groups_after_fork();
	assert_null(np_rec_group_find((void *)(0x7000000 + 3 * NP_REC_GROUPS_MAX * 64)));
}

static void hash_is_that_of_captures(void **state)
{
	(void)state;
	assert_true(np_rec_group_hash("group_name_0", 12) == 5862276093215481612ull);
	assert_true(np_rec_group_hash("", 0) == 0);
	const char *long_name = "127.0.0.1%eth0_60000_0_1723@\xe4\xb8\xad";
	assert_true(np_rec_group_hash(long_name, strlen(long_name)) ==
	            np_group_hash((np_str){long_name, strlen(long_name)}));
	assert_true(np_rec_group_hash("\xff", 1) == (255ull << 32 | 255));
}

/* ── a process ── */

static void switch_on(const char *dir)
{
	assert_int_equal(setenv("NPUPROF_COMM", dir, 1), 0);
	assert_int_equal(setenv("NPUPROF_COMM_CAPACITY", "3000", 1), 0);
	np_rec_state = NP_REC_UNKNOWN;
	assert_true(np_rec_init());
}

static void record(uint64_t count)
{
	NP_REC_FRAME(frame);
	struct np_call call = np_call_unknown;
	call.op = 1;
	call.count = count;
	errno = 99;
	assert_true(np_rec_enter(&frame));
	assert_true(np_rec_on());
	np_rec_start(&frame);
	assert_int_equal(errno, 99);
	NP_REC_FRAME(inner); /* a call that the real function makes */
	assert_false(np_rec_enter(&inner));
	errno = 98;
	assert_true(np_rec_stop(&frame));
	np_rec_leave(&frame, &call, count % 2 ? 0 : 4);
	assert_int_equal(errno, 98);
}

enum { THREADS = 4, CALLS = 5000, STAGES = 8 };

static void *record_many(void *unused)
{
	(void)unused;
	for (uint64_t i = 1; i <= CALLS; i++)
		record(i);
	return NULL;
}

static volatile bool marking;

/* The stage says the number of the step, so that half of one mark and half of another shows. */
static void *mark_many(void *unused)
{
	(void)unused;
	char path[32];
	for (uint32_t i = 0; __atomic_load_n(&marking, __ATOMIC_RELAXED); i++) {
		(void)snprintf(path, sizeof path, "request/s%u", i % STAGES);
		np_rec_mark(path, i, i);
	}
	return NULL;
}

static void *groups_many(void *base)
{
	for (uintptr_t i = 1; i <= 2000; i++) {
		struct np_rec_group group = group_of((uintptr_t)base + i % 50 * 64, i);
		(void)np_rec_group_add(&group);
		struct np_rec_group *found = np_rec_group_find(group.key);
		(void)__atomic_fetch_add(&found->calls, 1, __ATOMIC_RELAXED);
		assert_true(np_rec_group_drop(group.key, NULL));
	}
	return NULL;
}

static void check_thread_log(const char *path)
{
	struct log log = read_log(path);
	char path_text[32];
	assert_int_equal(log.header->written, CALLS);
	assert_int_equal(log.header->closed, 1);
	assert_int_equal(log.header->capacity, 3000);
	for (uint64_t n = CALLS - 2999; n <= CALLS; n++) {
		const struct np_comm_record *r = &log.records[(n - 1) % 3000];
		assert_int_equal(r->seq, n);
		assert_int_equal(r->count, n);
		assert_int_equal(r->flags, n % 2 ? 0 : NP_COMM_FAILED);
		assert_int_equal(r->step, r->request);
		if (r->step == NP_COMM_NO_U32)
			continue;
		(void)snprintf(path_text, sizeof path_text, "request/s%u", r->step % STAGES);
		assert_string_equal(text_at(&log, r->stage_path), path_text);
		assert_string_equal(text_at(&log, r->stage), path_text + 8);
	}
	close_log(&log);
}

static void threads_do_not_disturb_each_other(void **state)
{
	char dir[TREE_PATH], path[TREE_PATH];
	pthread_t writers[THREADS], marker, groups[2];
	(void)state;
	(void)tree_new(dir);
	switch_on(dir);
	__atomic_store_n(&marking, true, __ATOMIC_RELAXED);
	assert_int_equal(pthread_create(&marker, NULL, mark_many, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&writers[i], NULL, record_many, NULL), 0);
	for (uintptr_t i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&groups[i], NULL, groups_many,
		                                (void *)(0x100000 + i * 0x100000)),
		                 0);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(writers[i], NULL), 0);
	__atomic_store_n(&marking, false, __ATOMIC_RELAXED);
	assert_int_equal(pthread_join(marker, NULL), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_join(groups[i], NULL), 0);
	for (int left = THREADS; left > 0; left--) {
		assert_int_equal(files_in(dir, path), left);
		check_thread_log(path);
		assert_int_equal(unlink(path), 0);
	}
	tree_remove(dir);
}

static void child_has_a_file_of_its_own(void **state)
{
	char dir[TREE_PATH], path[TREE_PATH];
	int status = 0;
	(void)state;
	(void)tree_new(dir);
	switch_on(dir);
	np_rec_mark(NULL, NP_COMM_NO_U32, NP_COMM_NO_U32);
	record(1);
	assert_int_equal(files_in(dir, path), 1);
	char parents[TREE_PATH];
	(void)snprintf(parents, sizeof parents, "%s", path);
	pid_t child = fork();
	if (child == 0) {
		record(3);
		record(5);
		_exit(files_in(dir, path) == 2 ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	record(7);
	struct log log = read_log(parents);
	assert_int_equal(log.header->written, 2);
	assert_int_equal(log.records[1].count, 7);
	assert_int_equal(log.records[1].stage, 0);
	close_log(&log);
	tree_remove(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ring_holds_the_last_records),
		cmocka_unit_test(unfinished_record_is_none),
		cmocka_unit_test(each_file_has_its_own_name),
		cmocka_unit_test(texts_are_written_once),
		cmocka_unit_test(lost_file_stops_the_log),
		cmocka_unit_test(another_file_in_its_place_is_left_alone),
		cmocka_unit_test(file_limit_is_no_signal),
		cmocka_unit_test(groups_come_and_go),
		cmocka_unit_test(groups_have_an_end),
		cmocka_unit_test(hash_is_that_of_captures),
		cmocka_unit_test(threads_do_not_disturb_each_other),
		cmocka_unit_test(child_has_a_file_of_its_own),
		cmocka_unit_test(texts_find_no_room), /* the last: the process is full then */
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
