#include "unit.h"

#include <dirent.h>

/* the fuzz target, to run its corpus here as well */
#include "../fuzz/fuzz_db_pages.c"

static void varints_have_one_to_nine_bytes(void **state)
{
	(void)state;
	static const struct {
		uint8_t bytes[9], len;
		uint64_t value;
	} cases[] = {
		{{0}, 1, 0},
		{{0x7f}, 1, 127},
		{{0x81, 0x00}, 2, 128},
		{{0xff, 0x7f}, 2, 16383},
		{{0x80, 0x01}, 2, 1}, /* longer than needed, but right */
		{{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}, 8, (1ull << 56) - 1},
		{{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, 9, UINT64_MAX},
		{{0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x05}, 9, 5},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const uint8_t *p = cases[i].bytes;
		uint64_t value = 0;
		assert_ptr_equal(np_pages_varint(p, p + 9, &value), p + cases[i].len);
		assert_true(value == cases[i].value);
		for (size_t k = 0; k < cases[i].len; k++)
			assert_null(np_pages_varint(p, p + k, &value));
	}
}

static void headers_are_taken_only_when_known(void **state)
{
	(void)state;
	uint8_t image[1024] = "SQLite format 3";
	struct np_pages pages;
	struct np_pages_header header;
	image[16] = 2; /* 512 */
	image[18] = image[19] = 1;
	image[21] = 64;
	image[22] = image[23] = 32;
	image[47] = 4;
	image[59] = 1;
	assert_true(np_pages_header(image, sizeof image, &header));
	assert_int_equal(header.page_size, 512);
	assert_int_equal(header.n_pages, 0);
	assert_null(np_pages_init(&pages, image, sizeof image));
	assert_int_equal(pages.n_pages, 2);
	assert_false(np_pages_header(image, 99, &header));
	assert_non_null(np_pages_init(&pages, image, sizeof image - 1));
	static const struct {
		uint8_t at, value;
	} odd[] = {{0, 's'}, {16, 1}, {17, 1}, {18, 0}, {19, 3}, {20, 33}, {21, 63},
	           {22, 0},  {23, 0}, {31, 3}, {47, 5}, {47, 0}, {59, 2},  {59, 0}};
	for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
		uint8_t was = image[odd[i].at];
		image[odd[i].at] = odd[i].value;
		assert_non_null(np_pages_init(&pages, image, sizeof image));
		image[odd[i].at] = was;
	}
	image[31] = 1; /* fewer pages than the file has: the rest is not looked at */
	assert_null(np_pages_init(&pages, image, sizeof image));
	assert_int_equal(pages.n_pages, 1);
}

static void the_fuzz_corpus_is_survived(void **state)
{
	(void)state;
	char path[4096];
	const char *source = getenv("NPUPROF_SOURCE");
	(void)snprintf(path, sizeof path, "%s/tests/fuzz/corpus/db_pages", source ? source : ".");
	DIR *dir = opendir(path);
	assert_non_null(dir);
	size_t n = 0;
	for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
		char name[4096 + 300];
		(void)snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
		FILE *f = entry->d_name[0] == '.' ? NULL : fopen(name, "rb");
		if (!f)
			continue;
		uint8_t *bytes = malloc(1 << 18);
		size_t len = fread(bytes, 1, 1 << 18, f);
		(void)fclose(f);
		/* exactly as large as it is, so that the sanitizer sees the end */
		uint8_t *exact = malloc(len ? len : 1);
		memcpy(exact, bytes, len);
		free(bytes);
		assert_int_equal(LLVMFuzzerTestOneInput(exact, len), 0);
		free(exact);
		n++;
	}
	(void)closedir(dir);
	assert_true(n >= 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(varints_have_one_to_nine_bytes),
		cmocka_unit_test(headers_are_taken_only_when_known),
		cmocka_unit_test(the_fuzz_corpus_is_survived),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
