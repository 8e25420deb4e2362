#include "unit.h"

#include "base/intern.h"
#include "base/map.h"
#include "base/pool.h"
#include "base/time.h"

static int64_t us(const char *text, enum np_num expected)
{
	int64_t ns = -1;
	enum np_num got = np_us_to_ns(np_str_of(text), &ns);
	if (got != expected)
		fail_msg("\"%s\": got %d, expected %d", text, (int)got, (int)expected);
	return ns;
}

static void decimal_microseconds_become_exact_nanoseconds(void **state)
{
	(void)state;
	assert_int_equal(us("1736412474730135.222\t", NP_NUM_OK), 1736412474730135222);
	assert_int_equal(us("1778655624745710.848", NP_NUM_OK), 1778655624745710848);
	assert_int_equal(us(" 50.621 ", NP_NUM_OK), 50621);
	assert_int_equal(us("0", NP_NUM_OK), 0);
	assert_int_equal(us("-3.5", NP_NUM_OK), -3500);
	assert_int_equal(us("1.23e+15", NP_NUM_OK), 1230000000000000000);
	assert_int_equal(us("1.5E-3", NP_NUM_OK), 2); /* 1.5 ns, half away from zero */
	assert_int_equal(us("3.6500000000000004", NP_NUM_OK), 3650);
	assert_int_equal(us("3.6504999999999999", NP_NUM_OK), 3650);
	assert_int_equal(us("3.6505", NP_NUM_OK), 3651);
	assert_int_equal(us("-0.0005", NP_NUM_OK), -1);
	assert_int_equal(us("1e-300", NP_NUM_OK), 0);
	assert_int_equal(us("9223372036854775.807", NP_NUM_OK), INT64_MAX);
}

static void cells_that_are_not_numbers_are_told_apart(void **state)
{
	(void)state;
	static const char *const na[] = {"", " ", "N/A", "n/a\t", "NA", "None", "null", "-"};
	for (size_t i = 0; i < sizeof na / sizeof *na; i++)
		(void)us(na[i], NP_NUM_NA);
	static const char *const bad[] = {"x", "1.2.3", "1e",   "--1", "1 2",
	                                  ".", "+",     "0x10", "nan", "inf"};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		(void)us(bad[i], NP_NUM_BAD);
	(void)us("9223372036854775.808", NP_NUM_RANGE);
	(void)us("1e30", NP_NUM_RANGE);
	(void)us("99999999999999999999999999", NP_NUM_RANGE);
}

static void random_nanoseconds_survive_a_round_trip(void **state)
{
	(void)state;
	srandom(7);
	for (int i = 0; i < 100000; i++) {
		int64_t ns = ((int64_t)random() << 32 ^ random()) >> (random() % 40);
		char text[32];
		(void)np_ns_format_us(text, sizeof text, ns);
		assert_int_equal(us(text, NP_NUM_OK), ns);
	}
}

static void doubles_agree_with_strtod(void **state)
{
	(void)state;
	srandom(11);
	for (int i = 0; i < 100000; i++) {
		char text[64];
		double scale = (double)(random() % 2000000) - 1e6;
		(void)snprintf(text, sizeof text, random() % 2 ? "%.17g" : "%.3f",
		               scale / (double)(1 + random() % 1000));
		double got = 0;
		assert_true(np_str_to_double(np_str_of(text), &got));
		assert_true(got == strtod(text, NULL));
	}
	/* 1 to 20 digits with the point anywhere: both sides of what is short */
	for (int i = 0; i < 200000; i++) {
		char digits[32], text[64];
		int n = 1 + (int)(random() % 20), at = (int)(random() % (n + 1));
		for (int k = 0; k < n; k++)
			digits[k] = (char)('0' + random() % 10);
		(void)snprintf(text, sizeof text, "%s%.*s.%.*s", random() % 2 ? "-" : "", at,
		               digits, n - at, digits + at);
		double got = 0;
		assert_true(np_str_to_double(np_str_of(text), &got));
		assert_true(got == strtod(text, NULL));
	}
	/* halfway between two doubles: to the even one */
	double half;
	assert_true(np_str_to_double(NP_STR("9007199254740993"), &half));
	assert_true(half == 9007199254740992.0);
	assert_true(np_str_to_double(NP_STR("900719925474099.5"), &half));
	assert_true(half == 900719925474099.5);
	double unused;
	assert_false(np_str_to_double(NP_STR("1e999"), &unused));
	assert_false(np_str_to_double(NP_STR("nan"), &unused));
	assert_false(np_str_to_double(NP_STR(""), &unused));
	assert_false(np_str_to_double(NP_STR("1.5 "), &unused));
}

static void integers_know_their_range(void **state)
{
	(void)state;
	int64_t i = 0;
	uint64_t u = 0;
	assert_true(np_str_to_i64(NP_STR("-9223372036854775808"), &i) && i == INT64_MIN);
	assert_false(np_str_to_i64(NP_STR("9223372036854775808"), &i));
	assert_true(np_str_to_u64(NP_STR("18446744073709551615"), &u) && u == UINT64_MAX);
	assert_false(np_str_to_u64(NP_STR("18446744073709551616"), &u));
	/* something else among the digits, wherever they are read eight at a time or one by one */
	char text[] = "12345678901234567890";
	for (size_t len = 1; len < sizeof text; len++) {
		u = 0;
		assert_true(np_str_to_u64((np_str){text, len}, &u) && u % 10 == len % 10);
		for (size_t at = 0; at < len; at++) {
			char digit = text[at];
			text[at] = at % 2 ? ':' : ' ';
			assert_false(np_str_to_u64((np_str){text, len}, &u));
			text[at] = digit;
		}
	}
	assert_false(np_str_to_u64(NP_STR("000000000000000000001"), &u));
	assert_false(np_str_to_i64(NP_STR(""), &i));
	assert_false(np_str_to_i64(NP_STR("-"), &i));
	assert_int_equal(np_num_i64(NP_STR(" 3.0\t"), &i), NP_NUM_OK);
	assert_int_equal(i, 3);
}

static void equal_strings_share_an_id(void **state)
{
	(void)state;
	struct np_intern table;
	assert_true(np_intern_init(&table));
	assert_int_equal(np_intern_add(&table, NP_STR("")), 0);
	for (int round = 0; round < 2; round++)
		for (int i = 0; i < 5000; i++) {
			char text[32];
			(void)snprintf(text, sizeof text, "kernel_%d", i);
			assert_int_equal(np_intern_add(&table, np_str_of(text)), i + 1);
		}
	assert_str(np_intern_get(&table, 43), "kernel_42");
	assert_int_equal(np_intern_find(&table, NP_STR("nobody")), NP_ID_NONE);
	assert_str(np_intern_get(&table, NP_ID_NONE), "");
	np_intern_release(&table);
}

static void a_map_finds_what_was_put(void **state)
{
	(void)state;
	struct np_map map;
	np_map_init(&map);
	assert_int_equal(np_map_get(&map, 1, 99), 99);
	for (uint64_t i = 0; i < 20000; i++)
		assert_true(np_map_put(&map, i << 32, (uint32_t)i));
	for (uint64_t i = 0; i < 20000; i++)
		assert_int_equal(np_map_get(&map, i << 32, 99), i);
	assert_int_equal(np_map_get(&map, 7, 99), 99);
	assert_int_equal(map.n, 20000);
	np_map_release(&map);
	/* room keeps what is there, and needs no key */
	np_map_init(&map);
	assert_true(np_map_reserve(&map, 0));
	assert_int_equal(np_map_get(&map, 1, 99), 99);
	assert_true(np_map_put(&map, 5, 1));
	assert_true(np_map_reserve(&map, 100000));
	assert_true(np_map_reserve(&map, 10));
	assert_int_equal(np_map_get(&map, 5, 99), 1);
	assert_false(np_map_reserve(&map, SIZE_MAX / 4));
	assert_int_equal(np_map_get(&map, 5, 99), 1);
	np_map_release(&map);
}

static void every_failing_allocation_is_reported(void **state)
{
	(void)state;
	for (uint64_t n = 1; n < 40; n++) {
		struct np_intern table;
		np_mem_fail_after(n);
		bool ok = np_intern_init(&table);
		for (int i = 0; ok && i < 3000; i++) {
			char text[32];
			(void)snprintf(text, sizeof text, "%d", i);
			ok = np_intern_add(&table, np_str_of(text)) != NP_ID_NONE;
		}
		np_mem_fail_after(0);
		np_intern_release(&table);
		if (ok)
			return;
	}
}

static void buffers_stop_at_their_cap(void **state)
{
	(void)state;
	struct np_buf buf = {.max_bytes = 10};
	np_buf_add_cstr(&buf, "12345678");
	np_buf_add_cstr(&buf, "90a");
	assert_true(buf.failed);
	assert_str(np_buf_str(&buf), "12345678");
	np_buf_release(&buf);
}

static void add_one(void *ctx, size_t i)
{
	((int *)ctx)[i]++;
}

static void each_job_runs_once(void **state)
{
	(void)state;
	static int hits[1000];
	np_pool_run(8, 1000, add_one, hits);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(hits[i], 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(decimal_microseconds_become_exact_nanoseconds),
		cmocka_unit_test(cells_that_are_not_numbers_are_told_apart),
		cmocka_unit_test(random_nanoseconds_survive_a_round_trip),
		cmocka_unit_test(doubles_agree_with_strtod),
		cmocka_unit_test(integers_know_their_range),
		cmocka_unit_test(equal_strings_share_an_id),
		cmocka_unit_test(a_map_finds_what_was_put),
		cmocka_unit_test(every_failing_allocation_is_reported),
		cmocka_unit_test(buffers_stop_at_their_cap),
		cmocka_unit_test(each_job_runs_once),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
