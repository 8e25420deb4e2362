/* src/io/input: windows over files, gzip and memory; files that shrink. */
#include "unit.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <zlib.h>

#include "base/mem.h"
#include "io/input.h"

static char folder[] = "/tmp/npuprof-input-XXXXXX";

static const char *path_of(const char *name)
{
	static char path[256];
	(void)snprintf(path, sizeof path, "%s/%s", folder, name);
	return path;
}

static const char *file_with(const char *name, const void *bytes, size_t len)
{
	const char *path = path_of(name);
	FILE *file = fopen(path, "wb");
	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, len, file), len);
	assert_int_equal(fclose(file), 0);
	return path;
}

/* Bytes that don't compress to nothing. */
static char *some_bytes(size_t len)
{
	char *bytes = malloc(len + 1);
	assert_non_null(bytes);
	uint32_t x = 12345;
	for (size_t i = 0; i < len; i++) {
		x = x * 1664525 + 1013904223;
		bytes[i] = (char)('a' + (x >> 28));
	}
	return bytes;
}

/* One gzip member behind out[*len]; out must be large enough. */
static void gzip_append(char *out, size_t *len, size_t cap, const char *bytes, size_t n)
{
	z_stream z = {0};
	assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
	z.next_in = (Bytef *)(uintptr_t)bytes;
	z.avail_in = (uInt)n;
	z.next_out = (Bytef *)out + *len;
	z.avail_out = (uInt)(cap - *len);
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	*len += z.total_out;
	(void)deflateEnd(&z);
}

/* Read everything, keeping `keep` bytes of each window (0: none). Returns
 * the status that ended it, and what was read in `got`. */
static enum np_status read_all(struct np_input *input, size_t keep, struct np_buf *got)
{
	struct np_window window = {0};
	size_t consumed = 0;
	for (;;) {
		enum np_status status = np_input_next(input, consumed, &window, NULL);
		if (status != NP_OK)
			return status;
		assert_int_equal(window.offset, got->len);
		consumed = window.eof || window.len <= keep ? window.len : window.len - keep;
		np_buf_add(got, window.ptr, consumed);
		assert_false(got->failed);
		if (window.eof)
			return NP_OK;
	}
}

static void a_plain_file_is_one_window(void **state)
{
	(void)state;
	struct np_input *input = NULL;
	assert_int_equal(np_input_open(file_with("plain", "hello\n", 6), &input, NULL), NP_OK);
	struct np_window window;
	assert_int_equal(np_input_next(input, 0, &window, NULL), NP_OK);
	assert_str(((np_str){window.ptr, window.len}), "hello\n");
	assert_true(window.eof);
	assert_int_equal(np_input_next(input, 4, &window, NULL), NP_OK);
	assert_str(((np_str){window.ptr, window.len}), "o\n");
	assert_int_equal(window.offset, 4);
	assert_int_equal(np_input_next(input, 99, &window, NULL), NP_OK);
	assert_int_equal(window.len, 0);
	assert_str(np_input_whole(input), "hello\n");
	assert_int_equal(np_input_file_size(input), 6);
	assert_false(np_input_is_gzip(input));
	assert_false(np_input_faulted(input));
	assert_true(strstr(np_input_name(input), "/plain") != NULL);
	np_input_close(input);
	np_input_close(NULL);
}

static void memory_keeps_its_offset(void **state)
{
	(void)state;
	struct np_input *input = NULL;
	assert_int_equal(np_input_open_mem(NP_STR("abcdef"), "chunk", 1000, &input, NULL), NP_OK);
	np_input_limit_window(input, 2);
	struct np_window window;
	assert_int_equal(np_input_next(input, 0, &window, NULL), NP_OK);
	assert_str(((np_str){window.ptr, window.len}), "ab");
	assert_int_equal(window.offset, 1000);
	assert_int_equal(np_input_next(input, 1, &window, NULL), NP_OK);
	assert_str(((np_str){window.ptr, window.len}), "bcd");
	assert_false(window.eof);
	assert_int_equal(np_input_next(input, 0, &window, NULL), NP_OK);
	assert_str(((np_str){window.ptr, window.len}), "bcdef");
	assert_int_equal(window.offset, 1001);
	assert_true(window.eof);
	np_input_close(input);
}

static void an_empty_file_is_valid(void **state)
{
	(void)state;
	struct np_input *input = NULL;
	assert_int_equal(np_input_open(file_with("empty", "", 0), &input, NULL), NP_OK);
	struct np_window window;
	assert_int_equal(np_input_next(input, 0, &window, NULL), NP_OK);
	assert_int_equal(window.len, 0);
	assert_true(window.eof);
	assert_non_null(window.ptr);
	np_input_release_behind(input, 1 << 30);
	np_input_close(input);
}

static void what_is_no_regular_file_is_refused(void **state)
{
	(void)state;
	struct np_input *input = NULL;
	struct np_err err;
	assert_int_equal(np_input_open(folder, &input, &err), NP_E_FORMAT);
	assert_null(input);
	assert_non_null(strstr(err.msg, "directory"));
	assert_int_equal(mkfifo(path_of("fifo"), 0600), 0);
	assert_int_equal(np_input_open(path_of("fifo"), &input, &err), NP_E_FORMAT);
	assert_int_equal(np_input_open(path_of("absent"), &input, &err), NP_E_NOTFOUND);
	assert_int_equal(np_input_open("/dev/zero", &input, &err), NP_E_FORMAT);
}

static void gzip_gives_what_plain_gives(void **state)
{
	(void)state;
	enum { N = 700000 };
	char *bytes = some_bytes(N);
	char *packed = malloc(2 * N);
	size_t len = 0;
	gzip_append(packed, &len, 2 * N, bytes, 300000);
	gzip_append(packed, &len, 2 * N, bytes, 0);
	gzip_append(packed, &len, 2 * N, bytes + 300000, N - 300000);
	memset(packed + len, 0, 512);
	(void)file_with("multi", packed, len + 512);
	static const size_t limits[] = {0, 1, 2, 7, 4096, 1 << 20};
	for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
		for (size_t keep = 0; keep < 60; keep += 29) {
			struct np_input *input = NULL;
			assert_int_equal(np_input_open(path_of("multi"), &input, NULL), NP_OK);
			assert_true(np_input_is_gzip(input));
			assert_int_equal(np_input_whole(input).len, 0);
			assert_int_equal(np_input_file_size(input), len + 512);
			np_input_limit_window(input, limits[i]);
			struct np_buf got = {0};
			assert_int_equal(read_all(input, keep, &got), NP_OK);
			assert_int_equal(got.len, N);
			assert_memory_equal(got.ptr, bytes, N);
			np_buf_release(&got);
			np_input_close(input);
		}
	}
	free(packed);
	free(bytes);
}

static enum np_status read_file(const char *path, struct np_buf *got)
{
	struct np_input *input = NULL;
	enum np_status status = np_input_open(path, &input, NULL);
	if (status == NP_OK)
		status = read_all(input, 0, got);
	np_input_close(input);
	return status;
}

static void bytes_before_the_damage_are_given_first(void **state)
{
	(void)state;
	enum { N = 600000 };
	char *bytes = some_bytes(N);
	char *packed = malloc(2 * N);
	size_t len = 0;
	gzip_append(packed, &len, 2 * N, bytes, N);
	struct np_buf got = {0};

	assert_int_equal(read_file(file_with("cut", packed, len / 2), &got), NP_E_TRUNCATED);
	assert_in_range(got.len, N / 3, N - 1);
	assert_memory_equal(got.ptr, bytes, got.len);

	np_buf_clear(&got);
	assert_int_equal(read_file(file_with("no-trailer", packed, len - 8), &got), NP_E_TRUNCATED);
	assert_int_equal(got.len, N);

	np_buf_clear(&got);
	packed[len - 8] ^= 1; /* the checksum */
	assert_int_equal(read_file(file_with("crc", packed, len), &got), NP_E_FORMAT);
	assert_int_equal(got.len, N);
	packed[len - 8] ^= 1;

	np_buf_clear(&got);
	memcpy(packed + len, "rubbish", 7);
	assert_int_equal(read_file(file_with("rubbish", packed, len + 7), &got), NP_E_FORMAT);
	assert_int_equal(got.len, N);

	np_buf_clear(&got);
	assert_int_equal(read_file(file_with("magic-only", packed, 2), &got), NP_E_TRUNCATED);
	assert_int_equal(got.len, 0);
	np_buf_release(&got);
	free(packed);
	free(bytes);
}

/*
 * cmocka has a SIGBUS handler of its own while a test runs, so what is about ours
 * happens in children that main() forks before the first test.
 */
static int shrinking_status, foreign_status;

#define CHECK(condition)                           \
	do {                                       \
		if (!(condition))                  \
			_exit(__LINE__ % 200 + 1); \
	} while (0)

static void shrinking_child(void)
{
	enum { N = 40 << 12 };
	char *bytes = some_bytes(N);
	struct np_input *input = NULL, *other = NULL;
	CHECK(np_input_open(file_with("shrinks", bytes, N), &input, NULL) == NP_OK);
	CHECK(np_input_open(file_with("other", "x", 1), &other, NULL) == NP_OK);
	CHECK(truncate(path_of("shrinks"), 5000) == 0);
	struct np_window window;
	CHECK(np_input_next(input, 0, &window, NULL) == NP_OK);
	CHECK(memcmp(window.ptr, bytes, 5000) == 0);
	CHECK(!np_input_faulted(input));
	unsigned sum = 0;
	for (size_t i = 8192; i < window.len; i++)
		sum += (unsigned char)window.ptr[i];
	CHECK(sum == 0);
	CHECK(np_input_faulted(input));
	CHECK(!np_input_faulted(other));
	np_input_close(other);
	np_input_close(input);
	/* the slot is clean for its next owner */
	CHECK(np_input_open(path_of("other"), &input, NULL) == NP_OK);
	CHECK(!np_input_faulted(input));
	_exit(0);
}

/* Our map is innocent; a fault in somebody else's must end the process as ever. */
static void foreign_child(void)
{
	struct np_input *input = NULL;
	CHECK(np_input_open(file_with("mine", "x", 1), &input, NULL) == NP_OK);
	(void)file_with("theirs", "y", 1);
	int fd = open(path_of("theirs"), O_RDONLY);
	const volatile char *map = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE, fd, 0);
	CHECK(map != MAP_FAILED);
	(void)close(2); /* a sanitizer would report it there */
	(void)map[4096];
	_exit(0);
}

static int status_of_child(void (*body)(void))
{
	int status = -1;
	pid_t child = fork();
	if (child == 0) {
		body();
		_exit(0);
	}
	if (child < 0 || waitpid(child, &status, 0) != child)
		return -1;
	return status;
}

static void a_file_that_shrinks_does_not_kill_us(void **state)
{
	(void)state;
	assert_int_equal(shrinking_status, 0);
}

static void a_foreign_sigbus_still_kills(void **state)
{
	(void)state;
	assert_int_not_equal(foreign_status, -1);
	assert_int_not_equal(foreign_status, 0);
}

static void pages_behind_can_be_given_back_and_come_again(void **state)
{
	(void)state;
	enum { N = 9 << 20 };
	char *bytes = some_bytes(N);
	struct np_input *input = NULL;
	assert_int_equal(np_input_open(file_with("large", bytes, N), &input, NULL), NP_OK);
	struct np_window window;
	assert_int_equal(np_input_next(input, 0, &window, NULL), NP_OK);
	for (uint64_t offset = 0; offset < N + (1 << 20); offset += 1 << 20)
		np_input_release_behind(input, offset);
	assert_memory_equal(window.ptr, bytes, N);
	np_input_close(input);
	free(bytes);
}

static void hundreds_of_files_can_be_open(void **state)
{
	(void)state;
	enum { N = 300 };
	static struct np_input *inputs[N];
	const char *path = file_with("many", "many", 4);
	for (int i = 0; i < N; i++)
		assert_int_equal(np_input_open(path, &inputs[i], NULL), NP_OK);
	for (int i = 0; i < N; i++) {
		assert_str(np_input_whole(inputs[i]), "many");
		np_input_close(inputs[i]);
	}
}

static void running_out_of_memory_is_told(void **state)
{
	(void)state;
	enum { N = 600000 };
	char *bytes = some_bytes(N);
	char *packed = malloc(2 * N);
	size_t len = 0;
	gzip_append(packed, &len, 2 * N, bytes, N);
	(void)file_with("oom", packed, len);
	bool succeeded = false;
	for (uint64_t n = 1; n < 20 && !succeeded; n++) {
		struct np_input *input = NULL;
		struct np_window window;
		np_mem_fail_after(n);
		enum np_status status = np_input_open(path_of("oom"), &input, NULL);
		for (size_t i = 0; status == NP_OK && i < 3; i++)
			status = np_input_next(input, 0, &window, NULL);
		np_mem_fail_after(0);
		assert_true(status == NP_OK || status == NP_E_NOMEM);
		succeeded = status == NP_OK;
		np_input_close(input);
	}
	assert_true(succeeded);
	free(packed);
	free(bytes);
}

static int remove_folder(void **state)
{
	(void)state;
	char command[300];
	(void)snprintf(command, sizeof command, "rm -rf '%s'", folder);
	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_plain_file_is_one_window),
		cmocka_unit_test(memory_keeps_its_offset),
		cmocka_unit_test(an_empty_file_is_valid),
		cmocka_unit_test(what_is_no_regular_file_is_refused),
		cmocka_unit_test(gzip_gives_what_plain_gives),
		cmocka_unit_test(bytes_before_the_damage_are_given_first),
		cmocka_unit_test(a_file_that_shrinks_does_not_kill_us),
		cmocka_unit_test(a_foreign_sigbus_still_kills),
		cmocka_unit_test(pages_behind_can_be_given_back_and_come_again),
		cmocka_unit_test(hundreds_of_files_can_be_open),
		cmocka_unit_test(running_out_of_memory_is_told),
	};
	if (!mkdtemp(folder))
		return 1;
	shrinking_status = status_of_child(shrinking_child);
	foreign_status = status_of_child(foreign_child);
	return cmocka_run_group_tests(tests, NULL, remove_folder);
}
