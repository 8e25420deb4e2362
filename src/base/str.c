#include "base/str.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/digits.h"
#include "base/mem.h"

np_str np_str_of(const char *cstr)
{
	return (np_str){cstr, cstr ? strlen(cstr) : 0};
}

bool np_str_eq(np_str a, np_str b)
{
	return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

bool np_str_is(np_str a, const char *cstr)
{
	return np_str_eq(a, np_str_of(cstr));
}

static unsigned char lower(char c)
{
	return (unsigned char)(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
}

static bool ieq(const char *a, const char *b, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (lower(a[i]) != lower(b[i]))
			return false;
	return true;
}

bool np_str_ieq(np_str a, np_str b)
{
	return a.len == b.len && ieq(a.ptr, b.ptr, a.len);
}

int np_str_cmp(np_str a, np_str b)
{
	size_t common = a.len < b.len ? a.len : b.len;
	int order = common ? memcmp(a.ptr, b.ptr, common) : 0;
	return order ? order : (a.len > b.len) - (a.len < b.len);
}

bool np_str_starts(np_str text, np_str prefix)
{
	return text.len >= prefix.len && np_str_eq((np_str){text.ptr, prefix.len}, prefix);
}

bool np_str_ends(np_str text, np_str suffix)
{
	return text.len >= suffix.len &&
	       np_str_eq(np_str_from(text, text.len - suffix.len), suffix);
}

bool np_str_istarts(np_str text, np_str prefix)
{
	return text.len >= prefix.len && ieq(text.ptr, prefix.ptr, prefix.len);
}

bool np_str_contains(np_str text, np_str part)
{
	return part.len == 0 ||
	       (text.len >= part.len && memmem(text.ptr, text.len, part.ptr, part.len) != NULL);
}

bool np_str_icontains(np_str text, np_str part)
{
	for (size_t i = 0; i + part.len <= text.len; i++)
		if (ieq(text.ptr + i, part.ptr, part.len))
			return true;
	return part.len == 0;
}

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

np_str np_str_trim(np_str text)
{
	while (text.len && is_space(text.ptr[0])) {
		text.ptr++;
		text.len--;
	}
	while (text.len && is_space(text.ptr[text.len - 1]))
		text.len--;
	return text;
}

np_str np_str_from(np_str text, size_t start)
{
	if (start >= text.len)
		return (np_str){NULL, 0};
	return (np_str){text.ptr + start, text.len - start};
}

np_str np_str_sub(np_str text, size_t start, size_t len)
{
	np_str rest = np_str_from(text, start);
	if (rest.len > len)
		rest.len = len;
	return rest;
}

np_str np_str_cut(np_str text, char sep, np_str *rest)
{
	const char *hit = text.len ? memchr(text.ptr, sep, text.len) : NULL;
	if (!hit) {
		*rest = (np_str){NULL, 0};
		return text;
	}
	size_t len = (size_t)(hit - text.ptr);
	*rest = np_str_from(text, len + 1);
	return (np_str){text.ptr, len};
}

bool np_str_to_u64(np_str text, uint64_t *out)
{
	if (text.len == 0 || text.len > 20)
		return false;
	const char *p = text.ptr, *end = p + text.len;
	uint64_t value;
	(void)np_digits(&p, end, &value); /* as many as cannot overflow */
	for (; p < end; p++) {
		unsigned digit = (unsigned)(unsigned char)*p - '0';
		if (digit > 9 || __builtin_mul_overflow(value, 10u, &value) ||
		    __builtin_add_overflow(value, digit, &value))
			return false;
	}
	*out = value;
	return true;
}

bool np_str_to_i64(np_str text, int64_t *out)
{
	bool negative = text.len && text.ptr[0] == '-';
	if (negative || (text.len && text.ptr[0] == '+'))
		text = np_str_from(text, 1);
	uint64_t value = 0;
	if (!np_str_to_u64(text, &value) || value > (uint64_t)INT64_MAX + negative)
		return false;
	*out = negative ? (int64_t)(0 - value) : (int64_t)value;
	return true;
}

/* 10^0 … 10^19: all that fit in 64 bits. */
static const uint64_t pow10_u64[] = {1,
                                     10,
                                     100,
                                     1000,
                                     10000,
                                     100000,
                                     1000000,
                                     10000000,
                                     100000000,
                                     1000000000,
                                     10000000000,
                                     100000000000,
                                     1000000000000,
                                     10000000000000,
                                     100000000000000,
                                     1000000000000000,
                                     10000000000000000,
                                     100000000000000000,
                                     1000000000000000000,
                                     10000000000000000000U};

__extension__ typedef unsigned __int128 u128;

/*
 * digits / 10^n, correctly rounded: the quotient of both, shifted to 64 bits, has 63 or 64
 * bits, and whether anything remains decides what 53 of them leave open.
 */
static double quotient(uint64_t digits, unsigned n)
{
	if (digits == 0)
		return 0;
	int up = __builtin_clzll(digits), down = __builtin_clzll(pow10_u64[n]);
	u128 high = (u128)(digits << up) << 63;
	uint64_t divisor = pow10_u64[n] << down;
	uint64_t q = (uint64_t)(high / divisor);
	bool rest = high - (u128)q * divisor != 0;
	int shift = 64 - __builtin_clzll(q) - 53;
	uint64_t half = UINT64_C(1) << (shift - 1), low = q & (2 * half - 1);
	q >>= shift;
	if (low > half || (low == half && (rest || (q & 1))))
		q++;
	uint64_t scale_bits = (uint64_t)(1023 + shift + down - up - 63) << 52;
	double scale; /* a power of two between 2^-127 and 2^1: the product is exact */
	memcpy(&scale, &scale_bits, sizeof scale);
	return (double)q * scale;
}

/* Digits, a point, digits: at most 19 in all, and none else. */
static bool short_decimal(const char *p, const char *end, double *out)
{
	uint64_t digits = 0, behind = 0;
	unsigned n = np_digits(&p, end, &digits), fraction = 0;
	if (p < end && *p == '.') {
		p++;
		fraction = np_digits(&p, end, &behind);
		for (; fraction >= 16 && fraction < 19 && p < end && (unsigned)(*p - '0') <= 9;
		     p++) {
			behind = behind * 10 + (uint64_t)(*p - '0');
			fraction++;
		}
	}
	n += fraction;
	if (p != end || n == 0 || __builtin_mul_overflow(digits, pow10_u64[fraction], &digits) ||
	    __builtin_add_overflow(digits, behind, &digits))
		return false;
	*out = quotient(digits, fraction);
	return true;
}

/* What is no short decimal goes through strtod on a NUL-terminated copy. */
bool np_str_to_double(np_str text, double *out)
{
	if (text.len == 0) /* ptr may be NULL, to which not even 0 may be added */
		return false;
	const char *p = text.ptr, *end = text.ptr + text.len;
	bool negative = *p == '-';
	if (*p == '-' || *p == '+')
		p++;
	double magnitude;
	if (short_decimal(p, end, &magnitude)) {
		*out = negative ? -magnitude : magnitude;
		return true;
	}
	char copy[128];
	if (p == end || text.len >= sizeof copy)
		return false;
	memcpy(copy, text.ptr, text.len);
	copy[text.len] = '\0';
	if (strspn(copy, "+-0123456789.eE") != text.len)
		return false;
	char *stop = NULL;
	double value = strtod(copy, &stop);
	if (stop != copy + text.len || isinf(value))
		return false;
	*out = value;
	return true;
}

/* ── buffer ── */

#define BUF_DEFAULT_MAX ((size_t)1 << 30)

void np_buf_release(struct np_buf *self)
{
	np_free(self->ptr);
	*self = (struct np_buf){.max_bytes = self->max_bytes};
}

void np_buf_clear(struct np_buf *self)
{
	self->len = 0;
	self->failed = false;
	if (self->ptr)
		self->ptr[0] = '\0';
}

bool np_buf_reserve(struct np_buf *self, size_t more_bytes)
{
	size_t max = self->max_bytes ? self->max_bytes : BUF_DEFAULT_MAX;
	if (self->failed || more_bytes > max || self->len > max - more_bytes) {
		self->failed = true;
		return false;
	}
	if (self->len + more_bytes < self->cap)
		return true;
	if (np_vec_grow((void **)&self->ptr, &self->cap, self->len + more_bytes + 1, 1))
		return true;
	self->failed = true;
	return false;
}

void np_buf_add(struct np_buf *self, const void *bytes, size_t len)
{
	if (!np_buf_reserve(self, len))
		return;
	if (len)
		memcpy(self->ptr + self->len, bytes, len);
	self->len += len;
	self->ptr[self->len] = '\0';
}

void np_buf_add_str(struct np_buf *self, np_str text)
{
	np_buf_add(self, text.ptr, text.len);
}

void np_buf_add_cstr(struct np_buf *self, const char *text)
{
	np_buf_add(self, text, strlen(text));
}

void np_buf_add_char(struct np_buf *self, char c)
{
	np_buf_add(self, &c, 1);
}

void np_buf_printf(struct np_buf *self, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	int len = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (len < 0 || !np_buf_reserve(self, (size_t)len)) {
		self->failed = true;
		return;
	}
	va_start(ap, fmt);
	(void)vsnprintf(self->ptr + self->len, (size_t)len + 1, fmt, ap);
	va_end(ap);
	self->len += (size_t)len;
}

np_str np_buf_str(const struct np_buf *self)
{
	return (np_str){self->ptr, self->len};
}
