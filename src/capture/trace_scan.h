/*
 * JSON read straight from the bytes, for text that is exactly right.
 *
 * A trace is millions of small objects; its cost is in short strings and
 * numbers. The scanners here look at every byte once and accept only what
 * RFC 8259 allows. Whatever they don't like, and whatever ends before it is
 * complete, gives NULL: then the caller reads the same bytes with io/json.h,
 * which repairs or explains. So the two must agree on what is right, and a
 * test compares them.
 *
 *   p ─▶ value ─▶ returned: first byte behind it      NULL: odd, or incomplete
 *
 * Pure functions; never look at `end` or beyond.
 */
#ifndef NP_CAPTURE_TRACE_SCAN_H
#define NP_CAPTURE_TRACE_SCAN_H

#include <string.h>

#include "base/str.h"
#include "io/json.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#elif defined(__ARM_NEON) && defined(__aarch64__)
#include <arm_neon.h>
#endif

/* A scalar or a container as it stands in the file. */
struct np_trace_value {
	np_str text;            /* STRING: raw between the quotes; NUMBER: its text; else empty */
	enum np_json_type type; /* STRING, NUMBER, TRUE, FALSE, NULL, OBJECT_BEGIN, ARRAY_BEGIN */
	bool raw;               /* text is to go through np_json_unescape() */
};

static inline bool np_trace_is_digit(char c)
{
	return (unsigned char)(c - '0') < 10;
}

static inline const char *np_trace_skip_space(const char *p, const char *end)
{
	while (p < end && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t'))
		p++;
	return p;
}

/* The first byte that a string can't simply contain: quote, backslash, control
 * byte, or one that is not ASCII; `end` when there is none. The vector twins are
 * part of the base instruction sets, so nothing is chosen at run time. */
static inline const char *np_trace_plain(const char *p, const char *end)
{
#if defined(__SSE2__)
	for (; end - p >= 16; p += 16) {
		__m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
		__m128i stop = _mm_or_si128(_mm_cmpeq_epi8(v, _mm_set1_epi8('"')),
		                            _mm_cmpeq_epi8(v, _mm_set1_epi8('\\')));
		/* as signed bytes, 0x80…0xff are below 0x20 too */
		stop = _mm_or_si128(stop, _mm_cmplt_epi8(v, _mm_set1_epi8(0x20)));
		unsigned mask = (unsigned)_mm_movemask_epi8(stop);
		if (mask)
			return p + __builtin_ctz(mask);
	}
#elif defined(__ARM_NEON) && defined(__aarch64__)
	for (; end - p >= 16; p += 16) {
		int8x16_t v = vld1q_s8((const int8_t *)(const void *)p);
		uint8x16_t stop =
			vorrq_u8(vceqq_s8(v, vdupq_n_s8('"')), vceqq_s8(v, vdupq_n_s8('\\')));
		stop = vorrq_u8(stop, vcltq_s8(v, vdupq_n_s8(0x20)));
		/* four bits per byte */
		uint8x8_t narrow = vshrn_n_u16(vreinterpretq_u16_u8(stop), 4);
		uint64_t mask = vget_lane_u64(vreinterpret_u64_u8(narrow), 0);
		if (mask)
			return p + __builtin_ctzll(mask) / 4;
	}
#endif
	while (p < end && *p != '"' && *p != '\\' && (unsigned char)(*p - 0x20) < 0x60)
		p++;
	return p;
}

/* The rest of np_trace_string() when the first stop, `q`, is no closing quote. */
const char *np_trace_string_rest(const char *p, const char *q, const char *end,
                                 struct np_trace_value *out);

/* A string; p is behind its opening quote. */
static inline const char *np_trace_string(const char *p, const char *end,
                                          struct np_trace_value *out)
{
	const char *q = np_trace_plain(p, end);
	if (q == end || *q != '"')
		return np_trace_string_rest(p, q, end, out);
	*out = (struct np_trace_value){{p, (size_t)(q - p)}, NP_JSON_STRING, false};
	return q + 1;
}

/* Behind the digits at p, eight at a time: a byte is a digit when it is 0…9 without
 * its 0x30, and adding 0x76 lifts all else into the top bit. A carry can only reach
 * bytes behind the first that is no digit. */
static inline const char *np_trace_digits(const char *p, const char *end)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	for (; end - p >= 8; p += 8) {
		uint64_t bytes;
		memcpy(&bytes, p, 8);
		bytes ^= 0x3030303030303030u;
		uint64_t other = (bytes | (bytes + 0x7676767676767676u)) & 0x8080808080808080u;
		if (other)
			return p + __builtin_ctzll(other) / 8;
	}
#endif
	while (p < end && np_trace_is_digit(*p))
		p++;
	return p;
}

/* A number at p. It is not complete at `end`; that what follows may follow a number
 * is for the caller to see, who looks for a comma or bracket anyway. */
static inline const char *np_trace_number(const char *p, const char *end,
                                          struct np_trace_value *out)
{
	const char *start = p;
	if (p < end && *p == '-')
		p++;
	if (p == end || !np_trace_is_digit(*p))
		return NULL;
	p = *p == '0' ? p + 1 : np_trace_digits(p + 1, end);
	if (p < end && *p == '.') {
		if (++p == end || !np_trace_is_digit(*p))
			return NULL;
		p = np_trace_digits(p + 1, end);
	}
	if (p < end && (*p == 'e' || *p == 'E')) {
		p++;
		if (p < end && (*p == '+' || *p == '-'))
			p++;
		if (p == end || !np_trace_is_digit(*p))
			return NULL;
		p = np_trace_digits(p + 1, end);
	}
	if (p == end)
		return NULL;
	*out = (struct np_trace_value){{start, (size_t)(p - start)}, NP_JSON_NUMBER, false};
	return p;
}

/* true, false, null, arrays and objects; the latter are checked and skipped. */
const char *np_trace_other_value(const char *p, const char *end, struct np_trace_value *out);

static inline const char *np_trace_any_value(const char *p, const char *end,
                                             struct np_trace_value *out)
{
	if (p == end)
		return NULL;
	if (*p == '"')
		return np_trace_string(p + 1, end, out);
	if (np_trace_is_digit(*p) || *p == '-')
		return np_trace_number(p, end, out);
	return np_trace_other_value(p, end, out);
}

/*
 * How far a value reaches when nothing but quotes, escapes and the number of
 * brackets is looked at. NULL: it is not complete before `end`.
 */
const char *np_trace_extent(const char *p, const char *end);

/* Eight ASCII digits as a number; false when one is none. Little-endian words:
 * pairs, then fours, then all eight are combined by multiplication. */
static inline bool np_trace_eight_digits(const char *p, uint64_t *out)
{
	uint64_t word8;
	memcpy(&word8, p, 8);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	word8 = __builtin_bswap64(word8);
#endif
	uint64_t digits = word8 - 0x3030303030303030u;
	if (((word8 + 0x4646464646464646u) | digits) & 0x8080808080808080u)
		return false;
	digits = digits * 10 + (digits >> 8);
	*out = (((digits & 0x000000ff000000ffu) * 0x000f424000000064u) +
	        (((digits >> 16) & 0x000000ff000000ffu) * 0x0000271000000001u)) >>
	       32;
	return true;
}

/*
 * Microseconds to ns as np_us_to_ns(), rounded half up: quick for plain
 * decimals, the exact function for all else. False: not a number or too large.
 */
bool np_trace_us(np_str text, int64_t *ns);

/* A number as a double, correctly rounded. */
bool np_trace_double(np_str text, double *out);

#endif
