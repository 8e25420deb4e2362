/*
 * Digits eight at a time, for the innermost loops of the number readers.
 *
 * Eight ASCII digits are one 64-bit word; three multiplications join them to
 * pairs, fours, and the whole. Little-endian only, as all targets are.
 */
#ifndef NP_BASE_DIGITS_H
#define NP_BASE_DIGITS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Are the 8 bytes at p all digits? Then *out is their value. */
static inline bool np_digits8(const char *p, uint64_t *out)
{
	uint64_t v;
	memcpy(&v, p, 8);
	if (((v & UINT64_C(0xF0F0F0F0F0F0F0F0)) |
	     (((v + UINT64_C(0x0606060606060606)) & UINT64_C(0xF0F0F0F0F0F0F0F0)) >> 4)) !=
	    UINT64_C(0x3333333333333333))
		return false;
	v = (v & UINT64_C(0x0F0F0F0F0F0F0F0F)) * 2561 >> 8;
	v = (v & UINT64_C(0x00FF00FF00FF00FF)) * 6553601 >> 16;
	*out = (v & UINT64_C(0x0000FFFF0000FFFF)) * UINT64_C(42949672960001) >> 32;
	return true;
}

/* Read digits from *p up to `end` into *value (at most 16 of them); how many. */
static inline unsigned np_digits(const char **p, const char *end, uint64_t *value)
{
	const char *start = *p, *q = *p;
	uint64_t v = 0, eight = 0;
	if (end - q >= 8 && np_digits8(q, &eight)) {
		v = eight;
		q += 8;
		if (end - q >= 8 && np_digits8(q, &eight)) {
			v = v * 100000000 + eight;
			q += 8;
		}
	}
	for (; q < end && q - start < 16 && (unsigned char)(*q - '0') <= 9; q++)
		v = v * 10 + (uint64_t)(*q - '0');
	*p = q;
	*value = v;
	return (unsigned)(q - start);
}

#endif
