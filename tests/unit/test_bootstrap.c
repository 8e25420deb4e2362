#include "unit.h"

#include "analysis/bootstrap.h"
#include "base/mem.h"

static void the_median_of_an_even_number_is_the_mean_of_the_middle_two(void **state)
{
	(void)state;
	const int64_t odd[] = {1, 5, 9}, even[] = {1, 5, 8, 100},
		      extreme[] = {INT64_MIN, INT64_MAX};
	assert_int_equal(np_median_sorted(odd, 3), 5);
	assert_int_equal(np_median_sorted(even, 4), 6);
	assert_int_equal(np_median_sorted(extreme, 2), -1);
}

static void fewer_than_three_samples_give_no_interval(void **state)
{
	(void)state;
	struct np_bootstrap b;
	assert_true(np_bootstrap_init(&b, 2, 10));
	assert_false(np_bootstrap_usable(&b));
	np_bootstrap_release(&b);
	assert_true(np_bootstrap_init(&b, 3, 3));
	assert_true(np_bootstrap_usable(&b));
	np_bootstrap_release(&b);
}

static void three_samples_give_the_extremes(void **state)
{
	(void)state;
	/* the chance that all medians are the lowest is (7/27)^2 > 2.5 % */
	const int64_t base[] = {100, 110, 120}, target[] = {200, 230, 260};
	struct np_bootstrap b;
	int64_t low = 0, high = 0;
	assert_true(np_bootstrap_init(&b, 3, 3));
	np_bootstrap_difference(&b, base, target, &low, &high);
	assert_int_equal(low, 200 - 120);
	assert_int_equal(high, 260 - 100);
	np_bootstrap_release(&b);
}

static void the_interval_holds_the_difference_and_repeats(void **state)
{
	(void)state;
	enum { N = 40 };
	int64_t base[N], target[N], low[2], high[2];
	for (int i = 0; i < N; i++) {
		base[i] = 1000 + i;
		target[i] = 1005 + i;
	}
	for (int run = 0; run < 2; run++) {
		struct np_bootstrap b;
		assert_true(np_bootstrap_init(&b, N, N));
		np_bootstrap_difference(&b, base, target, &low[run], &high[run]);
		np_bootstrap_release(&b);
	}
	assert_int_equal(low[0], low[1]);
	assert_int_equal(high[0], high[1]);
	assert_true(low[0] < 5 && high[0] > 5);
	assert_true(low[0] > -30 && high[0] < 40);
}

static void equal_samples_differ_by_nothing(void **state)
{
	(void)state;
	enum { N = 2500 }; /* more than are drawn */
	static int64_t same[N];
	struct np_bootstrap b;
	int64_t low = 1, high = 1;
	for (int i = 0; i < N; i++)
		same[i] = 7;
	assert_true(np_bootstrap_init(&b, N, N));
	np_bootstrap_difference(&b, same, same, &low, &high);
	assert_int_equal(low, 0);
	assert_int_equal(high, 0);
	np_bootstrap_release(&b);
}

static void memory_that_runs_out_is_told(void **state)
{
	(void)state;
	for (uint64_t n = 1; n <= 3; n++) {
		struct np_bootstrap b;
		np_mem_fail_after(n);
		assert_false(np_bootstrap_init(&b, 5, 5));
		np_mem_fail_after(0);
		np_bootstrap_release(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_median_of_an_even_number_is_the_mean_of_the_middle_two),
		cmocka_unit_test(fewer_than_three_samples_give_no_interval),
		cmocka_unit_test(three_samples_give_the_extremes),
		cmocka_unit_test(the_interval_holds_the_difference_and_repeats),
		cmocka_unit_test(equal_samples_differ_by_nothing),
		cmocka_unit_test(memory_that_runs_out_is_told),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
