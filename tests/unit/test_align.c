#include "unit.h"

#include "analysis/align.h"

static uint32_t noise(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 8;
}

/* The runs must turn a into b, and all between them must be equal. Returns the edits. */
static size_t check(const uint32_t *a, size_t n, const uint32_t *b, size_t m,
                    const struct np_alignment *alignment)
{
	size_t x = 0, y = 0, edits = 0;
	for (size_t i = 0; i <= alignment->runs.n; i++) {
		struct np_align_run end = {n, 0, m, 0};
		const struct np_align_run *run =
			i < alignment->runs.n ? &alignment->runs.v[i] : &end;
		assert_true(run->a >= x && run->b >= y);
		assert_int_equal(run->a - x, run->b - y);
		assert_true(i == 0 || i == alignment->runs.n || run->a > x);
		for (; x < run->a; x++, y++)
			assert_int_equal(a[x], b[y]);
		x += run->n_a;
		y += run->n_b;
		edits += run->n_a + run->n_b;
	}
	assert_int_equal(x, n);
	assert_int_equal(y, m);
	assert_int_equal(alignment->matched * 2 + edits, n + m);
	return edits;
}

static size_t edits_of(const uint32_t *a, size_t n, const uint32_t *b, size_t m)
{
	struct np_alignment alignment;
	assert_true(np_align(a, n, b, m, &alignment));
	size_t edits = check(a, n, b, m, &alignment);
	np_alignment_release(&alignment);
	return edits;
}

/* n + m - 2 * the longest common subsequence, by the book. */
static size_t shortest(const uint32_t *a, size_t n, const uint32_t *b, size_t m)
{
	static size_t rows[2][64];
	memset(rows, 0, sizeof rows);
	for (size_t i = 1; i <= n; i++) {
		for (size_t k = 1; k <= m; k++) {
			size_t up = rows[(i - 1) % 2][k], left = rows[i % 2][k - 1];
			rows[i % 2][k] = a[i - 1] == b[k - 1] ? rows[(i - 1) % 2][k - 1] + 1
			                 : up > left          ? up
			                                      : left;
		}
		rows[(i + 1) % 2][0] = 0;
	}
	return n + m - 2 * rows[n % 2][m];
}

static void an_inserted_kernel_is_where_it_was_inserted(void **state)
{
	(void)state;
	const uint32_t a[] = {1, 2, 3, 1, 2, 3, 1, 2, 3}, b[] = {1, 2, 3, 1, 2, 9, 3, 1, 2, 3};
	struct np_alignment alignment;
	assert_true(np_align(a, 9, b, 10, &alignment));
	assert_int_equal(alignment.runs.n, 1);
	assert_int_equal(alignment.runs.v[0].b, 5);
	assert_int_equal(alignment.runs.v[0].n_b, 1);
	assert_int_equal(alignment.runs.v[0].n_a, 0);
	assert_int_equal(alignment.matched, 9);
	assert_false(alignment.cut);
	np_alignment_release(&alignment);
}

static void removed_and_replaced_runs_are_told_apart(void **state)
{
	(void)state;
	const uint32_t a[] = {1, 2, 3, 4, 5, 6}, b[] = {1, 3, 4, 8, 9, 6};
	struct np_alignment alignment;
	assert_true(np_align(a, 6, b, 6, &alignment));
	assert_int_equal(alignment.runs.n, 2);
	assert_int_equal(alignment.runs.v[0].n_a, 1);
	assert_int_equal(alignment.runs.v[0].n_b, 0);
	assert_int_equal(alignment.runs.v[1].a, 4);
	assert_int_equal(alignment.runs.v[1].n_a, 1);
	assert_int_equal(alignment.runs.v[1].n_b, 2);
	np_alignment_release(&alignment);
}

static void empty_and_equal_sequences_are_fine(void **state)
{
	(void)state;
	const uint32_t a[] = {1, 2, 3};
	assert_int_equal(edits_of(a, 0, a, 0), 0);
	assert_int_equal(edits_of(a, 3, a, 3), 0);
	assert_int_equal(edits_of(a, 3, a, 0), 3);
	assert_int_equal(edits_of(a, 0, a, 3), 3);
}

static void short_sequences_get_a_shortest_edit(void **state)
{
	(void)state;
	uint32_t seed = 1, a[15], b[15]; /* too short for anchors, which may cost an edit */
	for (int round = 0; round < 20000; round++) {
		uint32_t alphabet = 1 + noise(&seed) % 5;
		size_t n = noise(&seed) % 8, m = noise(&seed) % 8;
		for (size_t i = 0; i < n; i++)
			a[i] = noise(&seed) % alphabet;
		for (size_t i = 0; i < m; i++)
			b[i] = noise(&seed) % alphabet;
		assert_int_equal(edits_of(a, n, b, m), shortest(a, n, b, m));
	}
}

static void longer_ones_get_a_right_edit_with_anchors(void **state)
{
	(void)state;
	uint32_t seed = 7, a[60], b[60];
	for (int round = 0; round < 5000; round++) {
		uint32_t alphabet = 1 + noise(&seed) % 60;
		size_t n = noise(&seed) % 60, m = noise(&seed) % 60;
		for (size_t i = 0; i < n; i++)
			a[i] = noise(&seed) % alphabet;
		for (size_t i = 0; i < m; i++)
			b[i] = i < n && noise(&seed) % 4 ? a[i] : noise(&seed) % alphabet;
		assert_true(edits_of(a, n, b, m) >= shortest(a, n, b, m));
	}
}

static void hostile_sequences_end_and_are_right(void **state)
{
	(void)state;
	enum { N = 30000 };
	uint32_t seed = 3, *a = calloc(N, sizeof *a), *b = calloc(N, sizeof *b);
	assert_non_null(a);
	assert_non_null(b);
	for (int shape = 0; shape < 4; shape++) {
		for (size_t i = 0; i < N; i++) {
			a[i] = shape == 0   ? noise(&seed) % 2
			       : shape == 1 ? (uint32_t)i
			       : shape == 2 ? (uint32_t)(i % 2)
			                    : 1;
			b[i] = shape == 0   ? noise(&seed) % 2
			       : shape == 1 ? (uint32_t)(N - i)
			       : shape == 2 ? (uint32_t)(i / 2 % 2)
			                    : (uint32_t)(i == 0 ? 2 : 1);
		}
		size_t edits = edits_of(a, N, b, N);
		assert_true(shape != 3 || edits == 2);
	}
	free(a);
	free(b);
}

static void many_edits_are_found_though_the_search_is_cut(void **state)
{
	(void)state;
	enum { N = 20000 };
	uint32_t *a = calloc(N, sizeof *a), *b = calloc(2 * N, sizeof *b);
	assert_non_null(a);
	assert_non_null(b);
	size_t m = 0;
	for (size_t i = 0; i < N; i++) { /* every tenth kernel is followed by a new one */
		a[i] = (uint32_t)(i % 10);
		b[m++] = a[i];
		if (i % 10 == 4)
			b[m++] = 77;
	}
	assert_int_equal(edits_of(a, N, b, m), m - N);
	free(a);
	free(b);
}

static void memory_that_runs_out_is_told(void **state)
{
	(void)state;
	uint32_t a[40], b[40];
	for (uint32_t i = 0; i < 40; i++) {
		a[i] = i;
		b[i] = i % 3 ? i : 100 + i;
	}
	for (uint64_t n = 1;; n++) {
		struct np_alignment alignment;
		np_mem_fail_after(n);
		bool ok = np_align(a, 40, b, 40, &alignment);
		np_mem_fail_after(0);
		np_alignment_release(&alignment);
		if (ok)
			break;
		assert_true(n < 1000);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_inserted_kernel_is_where_it_was_inserted),
		cmocka_unit_test(removed_and_replaced_runs_are_told_apart),
		cmocka_unit_test(empty_and_equal_sequences_are_fine),
		cmocka_unit_test(short_sequences_get_a_shortest_edit),
		cmocka_unit_test(longer_ones_get_a_right_edit_with_anchors),
		cmocka_unit_test(hostile_sequences_end_and_are_right),
		cmocka_unit_test(many_edits_are_found_though_the_search_is_cut),
		cmocka_unit_test(memory_that_runs_out_is_told),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
