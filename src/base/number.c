#include "base/number.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__extension__ typedef unsigned __int128 u128;

enum {
	MANTISSA_BITS = 53,
	MAX_POWER = 27, /* 5^27 is the last below 2^63 */
	MAX_DIGITS = 17,
	EXACT_DOUBLE_POWER = 22, /* 10^22 is the last that is a double */
};

static const uint64_t pow5[MAX_POWER + 1] = {
	1,
	5,
	25,
	125,
	625,
	3125,
	15625,
	78125,
	390625,
	1953125,
	9765625,
	48828125,
	244140625,
	1220703125,
	6103515625,
	30517578125,
	152587890625,
	762939453125,
	3814697265625,
	19073486328125,
	95367431640625,
	476837158203125,
	2384185791015625,
	11920928955078125,
	59604644775390625,
	298023223876953125,
	1490116119384765625,
	7450580596923828125,
};

static const double pow10_double[EXACT_DOUBLE_POWER + 1] = {
	1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
	1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
};

/* value = mantissa * 2^exponent; value is normal and positive. */
static uint64_t split(double value, int *exponent)
{
	uint64_t bits;
	memcpy(&bits, &value, sizeof bits);
	*exponent = (int)(bits >> 52) - 1075;
	return (bits & ((UINT64_C(1) << 52) - 1)) | UINT64_C(1) << 52;
}

/* ── printing ── */

/* 0.d1d2d3… * 10^point, without zeros at the end */
struct decimal {
	char digits[24];
	int n, point;
};

/*
 * The decimal of at most 17 digits nearest to value that reads back the same,
 * for 1e-10 <= value < 1e16. With k so that value * 10^k has 17 digits before
 * the point, and t = 5 - exponent - k bits behind it:
 *
 *   scaled = 32 * mantissa * 5^k = value * 10^k * 2^t      below 2^121
 *   half   = 16 * 5^k            = what half a unit of the mantissa is there
 *
 * A multiple of 100 (15 digits), 10 or 1 no further away than that reads back.
 */
static uint64_t nearest_multiple(u128 scaled, unsigned t, uint64_t unit, u128 below, u128 above,
                                 bool even)
{
	uint64_t down = (uint64_t)(scaled >> t) / unit * unit;
	u128 to_down = scaled - ((u128)down << t), to_up = ((u128)unit << t) - to_down;
	bool down_reads = to_down < below || (even && to_down == below);
	bool up_reads = to_up < above || (even && to_up == above);
	if (down_reads && up_reads) /* the nearer one, of two the one that is even */
		up_reads = to_up < to_down || (to_up == to_down && down / unit % 2 == 1);
	return up_reads ? down + unit : down_reads ? down : 0;
}

static uint64_t shortest_exact(double value, int *power)
{
	int exponent;
	uint64_t mantissa = split(value, &exponent);
	/* 1233 / 4096 is log10(2): k may be one too small, which is seen below */
	int k = MAX_DIGITS - 1 - (((exponent + MANTISSA_BITS) * 1233) >> 12);
	u128 scaled = (u128)mantissa * pow5[k] << 5;
	unsigned t = (unsigned)(5 - exponent - k);
	if ((uint64_t)(scaled >> t) < UINT64_C(10000000000000000)) {
		k++;
		scaled *= 5;
		t--;
	}
	u128 half = (u128)pow5[k] << 4;
	/* below a power of two the doubles are twice as dense */
	u128 below = mantissa == UINT64_C(1) << (MANTISSA_BITS - 1) ? half >> 1 : half;
	*power = k;
	uint64_t found = 0;
	for (uint64_t unit = 100; unit >= 1 && found == 0; unit /= 10)
		found = nearest_multiple(scaled, t, unit, below, half, mantissa % 2 == 0);
	return found;
}

static struct decimal decimal_of(uint64_t digits, int power)
{
	struct decimal out = {.n = 0};
	while (digits > 0 && digits % 10 == 0) {
		digits /= 10;
		power--;
	}
	char *end = out.digits + sizeof out.digits, *p = end;
	for (; digits > 0; digits /= 10)
		*--p = (char)('0' + digits % 10);
	out.n = (int)(end - p);
	out.point = out.n - power;
	memmove(out.digits, p, (size_t)out.n);
	return out;
}

/* The number that "%.*e" printed: d.ddde±dd, the point maybe that of a locale. */
static uint64_t read_scientific(const char *text, int precision, int *power)
{
	uint64_t digits = 0;
	const char *p = text;
	for (; *p != 'e'; p++)
		if (*p >= '0' && *p <= '9')
			digits = digits * 10 + (uint64_t)(*p - '0');
	*power = precision - (int)strtol(p + 1, NULL, 10);
	return digits;
}

/* digits * 10^-power, in whatever locale there is. */
static double read_back(uint64_t digits, int power)
{
	char text[48];
	(void)snprintf(text, sizeof text, "%llue%d", (unsigned long long)digits, -power);
	return strtod(text, NULL);
}

/* The same for the very small and the very large, by the C library. Just below a power of
 * two doubles are twice as dense: the nearest decimal may miss, and the next above not. */
static uint64_t shortest_library(double value, int *power)
{
	char text[64];
	uint64_t digits = 0;
	int exponent;
	bool is_power_of_two = frexp(value, &exponent) == 0.5;
	/* 15 digits are never too many, but where a double has less than 53 bits */
	int precision = value >= DBL_MIN ? 14 : 0;
	for (; precision < MAX_DIGITS; precision++) {
		(void)snprintf(text, sizeof text, "%.*e", precision, value);
		digits = read_scientific(text, precision, power);
		if (read_back(digits, *power) == value)
			return digits;
		if (is_power_of_two && read_back(digits + 1, *power) == value)
			return digits + 1;
	}
	return digits;
}

static size_t lay_out(const struct decimal *decimal, char *out)
{
	char *p = out;
	const char *digits = decimal->digits;
	int n = decimal->n, point = decimal->point;
	if (point > 16 || point < -3) {
		*p++ = digits[0];
		if (n > 1) {
			*p++ = '.';
			memcpy(p, digits + 1, (size_t)n - 1);
			p += n - 1;
		}
		return (size_t)(p - out) + (size_t)snprintf(p, 8, "e%+03d", (point - 1) % 1000);
	}
	for (int i = 0; i < point; i++)
		*p++ = i < n ? digits[i] : '0';
	if (point <= 0)
		*p++ = '0';
	*p++ = '.';
	for (int i = point; i < 0; i++)
		*p++ = '0';
	for (int i = point > 0 ? point : 0; i < n; i++)
		*p++ = digits[i];
	if (point >= n)
		*p++ = '0';
	*p = '\0';
	return (size_t)(p - out);
}

/* A whole number below 1e16, and ".0". */
static size_t lay_out_whole(uint64_t whole, char *out)
{
	char text[20], *end = text + sizeof text, *p = end;
	do {
		*--p = (char)('0' + whole % 10);
		whole /= 10;
	} while (whole > 0);
	size_t n = (size_t)(end - p);
	memcpy(out, p, n);
	memcpy(out + n, ".0", 3);
	return n + 2;
}

size_t np_format_python(double value, char out[NP_PYTHON_CHARS])
{
	size_t sign = 0;
	if (isnan(value)) {
		memcpy(out, "nan", 4);
		return 3;
	}
	if (signbit(value)) {
		*out = '-';
		sign = 1;
		value = -value;
	}
	if (isinf(value)) {
		memcpy(out + sign, "inf", 4);
		return sign + 3;
	}
	if (value < 1e16 && value == (double)(uint64_t)value)
		return sign + lay_out_whole((uint64_t)value, out + sign);
	int power;
	uint64_t digits = 0;
	if (value >= 1e-10 && value < 1e16)
		digits = shortest_exact(value, &power);
	if (digits == 0)
		digits = shortest_library(value, &power);
	struct decimal decimal = decimal_of(digits, power);
	return sign + lay_out(&decimal, out + sign);
}

/* ── rounding ── */

/* By the C library, which prints exactly and rounds halves to even. */
static double round_library(double value, int decimals)
{
	char text[768]; /* 309 digits, a point, 323 more */
	(void)snprintf(text, sizeof text, "%.*f", decimals, value);
	return strtod(text, NULL);
}

/* value * 10^decimals is mantissa * 5^decimals * 2^(exponent + decimals). */
static double round_positive(double value, int decimals)
{
	int exponent;
	uint64_t mantissa = split(value, &exponent);
	if (exponent + decimals >= 0)
		return value; /* a multiple already */
	unsigned t = (unsigned)-(exponent + decimals);
	u128 scaled = (u128)mantissa * pow5[decimals]; /* below 2^(53 + 52) */
	if (t > 120)
		return 0;
	u128 whole = scaled >> t, half = (u128)1 << (t - 1), rest = scaled - (whole << t);
	if (rest > half || (rest == half && whole % 2 == 1))
		whole++;
	if (whole > (u128)1 << MANTISSA_BITS)
		return round_library(value, decimals);
	return (double)(uint64_t)whole / pow10_double[decimals];
}

double np_round_half_even(double value, int decimals)
{
	if (decimals < 0)
		decimals = 0;
	/* no double has digits behind that many */
	if (!isfinite(value) || value == 0 || decimals > 323)
		return value;
	double magnitude = fabs(value);
	double rounded = magnitude >= 0x1p-1000 && decimals <= EXACT_DOUBLE_POWER
	                         ? round_positive(magnitude, decimals)
	                         : round_library(magnitude, decimals);
	return copysign(rounded, value);
}
