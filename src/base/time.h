/*
 * Time is a 64-bit integer of nanoseconds; no float touches a timestamp.
 *
 * Captures write times as decimal microseconds ("1736412474730135.222"), at
 * 1.7e15 us, where a double is only good to 0.25 us. Here the digits go to
 * integers directly.
 */
#ifndef NP_BASE_TIME_H
#define NP_BASE_TIME_H

#include "base/str.h"

typedef int64_t np_ns;

enum np_num {
	NP_NUM_OK,
	NP_NUM_NA,    /* one of the "not available" tokens: empty, N/A, NA, none, null, - */
	NP_NUM_BAD,   /* not a number */
	NP_NUM_RANGE, /* a number, but too large for the type */
};

/* Is the trimmed text one of the NA tokens (any case)? Spec: requirements §2.1. */
bool np_is_na(np_str text);

/*
 * Decimal text times 10^scale as an integer, rounded half away from zero:
 * scale 3 reads microseconds as ns, 6 milliseconds. Surrounding spaces and
 * tabs, a sign and an exponent ("1.23e+15") are accepted. *out is set only on
 * NP_NUM_OK.
 */
enum np_num np_decimal_scaled(np_str text, int scale, int64_t *out);

static inline enum np_num np_us_to_ns(np_str text, np_ns *out)
{
	return np_decimal_scaled(text, 3, out);
}

/* Floating numbers in cells, e.g. ratios: trimmed, NA told apart from bad. */
enum np_num np_num_double(np_str text, double *out);
/* Integers in cells; "3.0" counts as 3. */
enum np_num np_num_i64(np_str text, int64_t *out);

/* "1736412474730135.222": ns as microseconds with three decimals. Needs 24 bytes. */
int np_ns_format_us(char *out, size_t size, np_ns ns);

/* "2025-01-09 08:47:54.730" UTC. Needs 32 bytes; years outside 1…9999 print the number. */
int np_ns_format_date(char *out, size_t size, np_ns ns);

/* A duration for people: "870 ns", "12.3 us", "4.56 ms", "7.89 s". Needs 32 bytes. */
int np_ns_format_human(char *out, size_t size, np_ns ns);

/* CLOCK_REALTIME in ns. */
np_ns np_time_now(void);

#endif
