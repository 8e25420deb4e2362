#include "base/time.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <time.h>

#include "base/digits.h"

bool np_is_na(np_str text)
{
	text = np_str_trim(text);
	switch (text.len) {
	case 0:
		return true;
	case 1:
		return text.ptr[0] == '-';
	case 2:
		return np_str_ieq(text, NP_STR("na"));
	case 3:
		return np_str_ieq(text, NP_STR("n/a"));
	case 4:
		return np_str_ieq(text, NP_STR("none")) || np_str_ieq(text, NP_STR("null"));
	default:
		return false;
	}
}

static const uint64_t pow10_u64[20] = {1u,
                                       10u,
                                       100u,
                                       1000u,
                                       10000u,
                                       100000u,
                                       1000000u,
                                       10000000u,
                                       100000000u,
                                       1000000000u,
                                       UINT64_C(10000000000),
                                       UINT64_C(100000000000),
                                       UINT64_C(1000000000000),
                                       UINT64_C(10000000000000),
                                       UINT64_C(100000000000000),
                                       UINT64_C(1000000000000000),
                                       UINT64_C(10000000000000000),
                                       UINT64_C(100000000000000000),
                                       UINT64_C(1000000000000000000),
                                       UINT64_C(10000000000000000000)};

static bool is_digit(char c)
{
	return (unsigned char)(c - '0') <= 9;
}

/* A decimal number taken apart: digits * 10^exponent. */
struct decimal {
	uint64_t digits; /* up to 19 significant ones */
	int64_t exponent;
	bool negative;
};

static bool parse_exponent(const char **p, const char *end, int64_t *exponent)
{
	const char *q = *p + 1;
	bool negative = q < end && *q == '-';
	if (q < end && (*q == '-' || *q == '+'))
		q++;
	if (q == end)
		return false;
	int64_t value = 0;
	for (; q < end && is_digit(*q); q++)
		if (value < 100000)
			value = value * 10 + (*q - '0');
	*exponent += negative ? -value : value;
	*p = q;
	return q[-1] >= '0' && q[-1] <= '9';
}

static bool parse_decimal(np_str text, struct decimal *out)
{
	const char *p = text.ptr, *end = text.ptr + text.len;
	*out = (struct decimal){.negative = p < end && *p == '-'};
	if (p < end && (*p == '-' || *p == '+'))
		p++;
	int kept = 0;
	bool any = false, point = false;
	for (; p < end; p++) {
		if (*p == '.' && !point) {
			point = true;
			continue;
		}
		if (!is_digit(*p))
			break;
		any = true;
		/* the 20th digit and later only count as magnitude; the caller's
		 * ranges end at 19 digits, so they cannot round anything visible */
		if (kept < 19) {
			out->digits = out->digits * 10 + (uint64_t)(*p - '0');
			kept += out->digits != 0;
			out->exponent -= point;
		} else {
			out->exponent += !point;
		}
	}
	if (any && p < end && (*p == 'e' || *p == 'E') && !parse_exponent(&p, end, &out->exponent))
		return false;
	return any && p == end;
}

/*
 * The shape nearly every cell has: 1…16 digits, a point, up to three more.
 * Returns false to have the general code look at it.
 */
static bool fast_us(np_str text, int64_t *out)
{
	static const uint64_t missing[] = {1000, 100, 10, 1};
	if (text.len == 0 || text.len > 16 + 1 + 3)
		return false;
	const char *p = text.ptr, *end = text.ptr + text.len;
	uint64_t value = 0, fraction = 0;
	unsigned n = 0;
	if (np_digits(&p, end, &value) == 0)
		return false;
	if (p < end && *p == '.')
		for (p++; p < end && is_digit(*p) && n < 3; p++, n++)
			fraction = fraction * 10 + (uint64_t)(*p - '0');
	if (p != end)
		return false;
	value = value * 1000 + fraction * missing[n]; /* at most 19 digits: fits 64 bits */
	if (value > (uint64_t)INT64_MAX)
		return false;
	*out = (int64_t)value;
	return true;
}

enum np_num np_decimal_scaled(np_str text, int scale, int64_t *out)
{
	if (text.len && text.ptr[text.len - 1] == '\t') /* as the exporter ends its times */
		text.len--;
	if (scale == 3 && fast_us(text, out))
		return NP_NUM_OK;
	text = np_str_trim(text);
	if (text.len == 0)
		return NP_NUM_NA;
	struct decimal number;
	if (!parse_decimal(text, &number))
		return np_is_na(text) ? NP_NUM_NA : NP_NUM_BAD;
	int64_t shift = number.exponent + scale;
	uint64_t value = number.digits;
	if (value == 0) {
		*out = 0;
		return NP_NUM_OK;
	}
	if (shift > 0) {
		if (shift > 19 || __builtin_mul_overflow(value, pow10_u64[shift], &value))
			return NP_NUM_RANGE;
	} else if (shift < -19) {
		value = 0;
	} else if (shift < 0) {
		uint64_t divisor = pow10_u64[-shift];
		uint64_t quotient = value / divisor, rest = value % divisor;
		value = quotient + (rest >= divisor - rest);
	}
	if (value > (uint64_t)INT64_MAX)
		return NP_NUM_RANGE;
	*out = number.negative ? -(int64_t)value : (int64_t)value;
	return NP_NUM_OK;
}

enum np_num np_num_double(np_str text, double *out)
{
	text = np_str_trim(text);
	if (np_str_to_double(text, out))
		return NP_NUM_OK;
	return np_is_na(text) ? NP_NUM_NA : NP_NUM_BAD;
}

enum np_num np_num_i64(np_str text, int64_t *out)
{
	text = np_str_trim(text);
	if (np_str_to_i64(text, out))
		return NP_NUM_OK;
	return np_decimal_scaled(text, 0, out);
}

int np_ns_format_us(char *out, size_t size, np_ns ns)
{
	uint64_t magnitude = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;
	return snprintf(out, size, "%s%" PRIu64 ".%03u", ns < 0 ? "-" : "", magnitude / 1000,
	                (unsigned)(magnitude % 1000));
}

int np_ns_format_date(char *out, size_t size, np_ns ns)
{
	time_t seconds = (time_t)(ns / 1000000000);
	unsigned ms = (unsigned)(ns % 1000000000 / 1000000);
	struct tm tm;
	if (ns < 0 || !gmtime_r(&seconds, &tm))
		return snprintf(out, size, "%" PRId64 " ns", ns);
	return snprintf(out, size, "%04d-%02d-%02d %02d:%02d:%02d.%03u", tm.tm_year + 1900,
	                tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec, ms);
}

int np_ns_format_human(char *out, size_t size, np_ns ns)
{
	static const struct {
		double unit_ns;
		const char *name;
	} units[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "us"}};
	double value = (double)ns;
	for (size_t i = 0; i < sizeof units / sizeof *units; i++)
		if (fabs(value) >= units[i].unit_ns)
			return snprintf(out, size, "%.4g %s", value / units[i].unit_ns,
			                units[i].name);
	return snprintf(out, size, "%" PRId64 " ns", ns);
}

np_ns np_time_now(void)
{
	struct timespec ts;
	(void)clock_gettime(CLOCK_REALTIME, &ts);
	return (np_ns)ts.tv_sec * 1000000000 + ts.tv_nsec;
}
