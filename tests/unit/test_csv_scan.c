/* src/io/csv_scan: the vector twins against the plain one. */
#include "unit.h"

#include "io/csv_scan.h"

enum { MAX = 3000 };

struct answer {
	struct np_csv_scan state;
	size_t n_seps, n_rows;
	uint32_t seps[NP_CSV_SCAN_ROOM(MAX)], rows[NP_CSV_SCAN_ROOM(MAX)];
	bool found;
	size_t first, last;
	struct np_csv_scan breaks_state;
};

/* Index in two pieces, cut at `cut`, so that the state is carried. */
static void ask(enum np_simd level, const char *bytes, size_t len, size_t cut, struct answer *out)
{
	memset(out, 0, sizeof *out);
	struct np_csv_marks marks = {.seps = out->seps, .rows = out->rows};
	np_csv_scan_index(level, &out->state, bytes, cut, 7, &marks);
	np_csv_scan_index(level, &out->state, bytes + cut, len - cut, (uint32_t)cut + 7, &marks);
	out->n_seps = marks.n_seps;
	out->n_rows = marks.n_rows;
	size_t first = 0, last = 0;
	(void)np_csv_scan_breaks(level, &out->breaks_state, bytes, cut, &first, &last);
	out->found = np_csv_scan_breaks(level, &out->breaks_state, bytes + cut, len - cut,
	                                &out->first, &out->last);
}

static void assert_same(const struct answer *a, const struct answer *b)
{
	assert_int_equal(a->n_seps, b->n_seps);
	assert_int_equal(a->n_rows, b->n_rows);
	assert_memory_equal(a->seps, b->seps, a->n_seps * sizeof a->seps[0]);
	assert_memory_equal(a->rows, b->rows, a->n_rows * sizeof a->rows[0]);
	assert_int_equal(a->state.inside, b->state.inside);
	assert_int_equal(a->state.nul, b->state.nul);
	assert_int_equal(a->found, b->found);
	assert_int_equal(a->first, b->first);
	assert_int_equal(a->last, b->last);
	assert_int_equal(a->breaks_state.inside, b->breaks_state.inside);
	assert_int_equal(a->breaks_state.nul, b->breaks_state.nul);
}

static void twins_agree_on_random_bytes(void **state)
{
	(void)state;
	static struct answer plain, vector;
	static const char alphabet[] = ",\n\"ab,,,\n\"\r 0123456789abcdefghijk";
	srandom(5);
	for (int round = 0; round < 4000; round++) {
		size_t len = (size_t)random() % (round % 10 ? 200 : MAX);
		size_t kinds = 1 + (size_t)random() % (sizeof alphabet - 1);
		char *bytes = malloc(len + 1); /* exact size: the sanitizer sees a byte too many */
		assert_non_null(bytes);
		bytes = realloc(bytes, len ? len : 1);
		for (size_t i = 0; i < len; i++)
			bytes[i] = random() % 2000 == 0 ? '\0' : alphabet[(size_t)random() % kinds];
		if (round % 7 == 0)
			for (size_t i = 0; i < len; i++)
				bytes[i] = (char)random();
		size_t cut = len ? (size_t)random() % (len + 1) : 0;
		ask(NP_SIMD_SCALAR, bytes, len, cut, &plain);
		ask(np_simd_level(), bytes, len, cut, &vector);
		assert_same(&plain, &vector);
		free(bytes);
	}
}

static void separators_in_quotes_do_not_count(void **state)
{
	(void)state;
	static struct answer got;
	ask(np_simd_level(), "a,\"b,c\",d\n", 10, 0, &got);
	assert_int_equal(got.n_seps, 3);
	assert_int_equal(got.seps[0], 7 + 1);
	assert_int_equal(got.seps[1], 7 + 7);
	assert_int_equal(got.seps[2], 7 + 9);
	assert_int_equal(got.n_rows, 1);
	assert_int_equal(got.rows[0], 2);
	assert_int_equal(got.state.inside, 0);
	assert_false(got.state.nul);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(separators_in_quotes_do_not_count),
		cmocka_unit_test(twins_agree_on_random_bytes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
