/*
 * What JSON's strings and numbers look like inside: the checks that the reader
 * makes on each. Internal to src/io. Pure functions.
 */
#ifndef NP_IO_JSON_TEXT_H
#define NP_IO_JSON_TEXT_H

#include <string.h>

#include "io/json.h"

/*
 * Check the raw bytes of a string and count what is wrong with control bytes,
 * UTF-8 and escapes. `offset` is that of text.ptr[0]. *escaped: it has a backslash.
 */
void np_json_check_string(np_str text, uint64_t offset, struct np_json_repairs *repairs,
                          bool *escaped);

enum np_json_numeric {
	NP_JSON_NUMERIC_OK,
	NP_JSON_NUMERIC_REPAIR, /* NaN, Infinity, leading zeros or `+` */
	NP_JSON_NUMERIC_BAD,
};
enum np_json_numeric np_json_check_number(np_str text);

/*
 * The quick yes for most numbers: at most 16 bytes, digits and at most one point
 * between them, no leading zero. False: ask np_json_check_number(). 16 bytes at
 * text.ptr must be readable.
 *
 *   "167.56, "   8 bytes as a word; those behind the end become `0`
 *   "167.5600"   the point is found and becomes `0` too
 *   "16705600"   all digits?
 */
static inline bool np_json_is_plain_number(np_str text)
{
	const uint64_t ones = 0x0101010101010101u, low7 = ones * 0x7f;
	uint64_t bad = 0, points = 0;
	if (text.len == 0 || text.len > 16)
		return false;
	for (size_t i = 0; i < text.len; i += 8) {
		uint64_t word, kept = text.len - i < 8 ? (1ull << 8 * (text.len - i)) - 1 : ~0ull;
		memcpy(&word, text.ptr + i, 8);
		word = (word & kept) | (ones * '0' & ~kept);
		uint64_t x = word ^ ones * '.';
		uint64_t point = ~(((x & low7) + low7) | x | low7); /* top bit of each `.` */
		bad |= (point & (point - 1)) | (points && point);   /* a second one */
		points |= point;
		word ^= (point >> 7) * ('.' ^ '0');
		/* the high nibble is 3 before and after adding 6 */
		uint64_t nibbles = ones * 0xf0, threes = ones * 0x30;
		bad |= ((word & nibbles) ^ threes) | (((word + ones * 6) & nibbles) ^ threes);
	}
	bool zero = text.ptr[0] == '0' && text.len > 1 && text.ptr[1] != '.';
	return !bad && !zero && text.ptr[0] != '.' && text.ptr[text.len - 1] != '.';
}

/* Could `text` become a number or one of the words if more bytes followed? */
bool np_json_is_unfinished(np_str text);

/* Count one (or `count`) more at `offset`. */
void np_json_repair_add(struct np_json_repair *repair, uint64_t offset, uint64_t count);

#endif
