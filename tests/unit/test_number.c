#include "unit.h"

#include <math.h>

#include "base/number.h"

static void assert_python(double value, const char *expected)
{
	char out[NP_PYTHON_CHARS];
	size_t len = np_format_python(value, out);
	assert_string_equal(out, expected);
	assert_int_equal(len, strlen(expected));
}

static void doubles_are_printed_as_python_prints_them(void **state)
{
	(void)state;
	static const struct {
		double value;
		const char *text;
	} cases[] = {
		{3, "3.0"},
		{0, "0.0"},
		{-0.0, "-0.0"},
		{-1.5, "-1.5"},
		{0.1, "0.1"},
		{0.1 + 0.2, "0.30000000000000004"},
		{1.0 / 3, "0.3333333333333333"},
		{2.0 / 3, "0.6666666666666666"},
		{100.0 / 3, "33.333333333333336"},
		{123456.789, "123456.789"},
		{0.0001, "0.0001"},
		{0.00012345, "0.00012345"},
		{1e-05, "1e-05"},
		{1.5e-05, "1.5e-05"},
		{1e-10, "1e-10"},
		{9.99e-11, "9.99e-11"},
		{1e15, "1000000000000000.0"},
		{9007199254740993.0, "9007199254740992.0"},
		{9999999999999998.0, "9999999999999998.0"},
		{999999999999999.9, "999999999999999.9"},
		{1e16, "1e+16"},
		{12345678901234567890.0, "1.2345678901234567e+19"},
		{1e22, "1e+22"},
		{1e23, "1e+23"},
		{9.5367431640625e-07, "9.5367431640625e-07"},
		/* a power of two, where the nearest decimal of 16 digits does not read back */
		{0x1p-44, "5.684341886080802e-14"},
		{0x1p-1022, "2.2250738585072014e-308"},
		{5e-324, "5e-324"},
		{1.7976931348623157e308, "1.7976931348623157e+308"},
		{-2.2250738585072011e-308, "-2.225073858507201e-308"},
		{INFINITY, "inf"},
		{-INFINITY, "-inf"},
		{NAN, "nan"},
		{-(double)NAN, "nan"},
		{1736412474730135.2, "1736412474730135.2"},
		{1736412474730135222.0, "1.7364124747301353e+18"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_python(cases[i].value, cases[i].text);
}

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* What is printed reads back, and no text with one digit less does. */
static void assert_shortest(double value)
{
	char out[NP_PYTHON_CHARS], shorter[64];
	(void)np_format_python(value, out);
	double back = strtod(out, NULL);
	if (memcmp(&back, &value, sizeof value) != 0)
		fail_msg("%a is printed as %s", value, out);
	int digits = 0, zeros = 0;
	for (const char *p = out; *p && *p != 'e'; p++) {
		if (*p < '0' || *p > '9' || (digits == 0 && *p == '0'))
			continue;
		digits++;
		zeros = *p == '0' ? zeros + 1 : 0;
	}
	digits -= zeros;
	if (digits < 2)
		return;
	(void)snprintf(shorter, sizeof shorter, "%.*e", digits - 2, value);
	if (strtod(shorter, NULL) == value)
		fail_msg("%s is longer than %s", out, shorter);
}

static void random_doubles_read_back_from_the_shortest_text(void **state)
{
	(void)state;
	uint64_t seed = UINT64_C(0x9e3779b97f4a7c15);
	for (int i = 0; i < 20000; i++) {
		uint64_t bits = next_random(&seed);
		double value, share = (double)(bits >> 11) * 0x1p-53;
		memcpy(&value, &bits, sizeof value);
		if (isfinite(value))
			assert_shortest(value);
		assert_shortest(share * 1e6);
		assert_shortest(round(share * 1e9) / 1000);
		assert_shortest(ldexp(share, (int)(bits % 80) - 40));
	}
}

static void powers_of_two_and_their_neighbours_are_shortest(void **state)
{
	(void)state;
	for (int e = -1074; e < 1024; e++) {
		double value = ldexp(1, e);
		assert_shortest(value);
		assert_shortest(nextafter(value, INFINITY));
		if (e > -1074)
			assert_shortest(-nextafter(value, 0));
	}
}

static void rounding_is_that_of_python(void **state)
{
	(void)state;
	/* made by Python's round() */
	static const struct {
		double value;
		int decimals;
		double rounded;
	} cases[] = {
		{2.675, 2, 2.67},
		{2.685, 2, 2.69},
		{1.005, 2, 1.0},
		{0.5, 0, 0},
		{1.5, 0, 2},
		{2.5, 0, 2},
		{3.5, 0, 4},
		{-2.5, 0, -2},
		{0.125, 2, 0.12},
		{0.375, 2, 0.38},
		{0.00005, 4, 0.0001},
		{0.00015, 4, 0.0001},
		{0.00025, 4, 0.0003},
		{0.00035, 4, 0.0003},
		{5.015, 2, 5.01},
		{1e-7, 4, 0},
		{1234567.891, 1, 1234567.9},
		{1e22, 3, 1e22},
		{123456789012345.678, 2, 123456789012345.67},
		{9007199254740991.5, 3, 9007199254740992.0},
		{0.1, 17, 0.1},
		{0.1, 25, 0.1},
		{1.23e-20, 21, 1.2e-20},
		{5e-324, 323, 0},
		{5e-324, 324, 5e-324},
		{1.7976931348623157e308, 2, 1.7976931348623157e308},
		{2.5, -3, 2}, /* as 0 */
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		double got = np_round_half_even(cases[i].value, cases[i].decimals);
		if (got != cases[i].rounded)
			fail_msg("round(%.17g, %d) is %.17g", cases[i].value, cases[i].decimals,
			         got);
	}
	assert_true(signbit(np_round_half_even(-0.2, 0)));
	assert_true(signbit(np_round_half_even(-0.0, 2)));
	assert_true(isnan(np_round_half_even(NAN, 2)));
	assert_true(np_round_half_even(-INFINITY, 2) == -INFINITY);
}

/* "%.*f" is exact and rounds halves to even: slow, and another way to the same. */
static void rounding_agrees_with_the_c_library(void **state)
{
	(void)state;
	char text[400];
	uint64_t seed = 42;
	for (int i = 0; i < 20000; i++) {
		uint64_t bits = next_random(&seed);
		int decimals = (int)(bits % 8);
		double value = ldexp((double)(bits >> 11), -(int)(bits >> 3 & 63));
		if (bits & 16) /* halves, many of them exact */
			value = ((double)(bits >> 40) + 0.5) / pow(10, decimals);
		(void)snprintf(text, sizeof text, "%.*f", decimals, value);
		double got = np_round_half_even(value, decimals);
		if (got != strtod(text, NULL))
			fail_msg("round(%.17g, %d) is %.17g", value, decimals, got);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(doubles_are_printed_as_python_prints_them),
		cmocka_unit_test(random_doubles_read_back_from_the_shortest_text),
		cmocka_unit_test(powers_of_two_and_their_neighbours_are_shortest),
		cmocka_unit_test(rounding_is_that_of_python),
		cmocka_unit_test(rounding_agrees_with_the_c_library),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
