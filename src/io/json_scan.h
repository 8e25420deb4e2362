/*
 * The first pass over JSON: 64 bytes at a time into three 64-bit masks, bit i
 * for byte i. It knows strings, escapes and white space, and no grammar.
 *
 *   bytes      {"a\"b": [12, true] }
 *   structure  ##....##.##.#.#...#.#   quotes not escaped (both ends), {}[]:, outside
 *                                      strings, first bytes of all else that is not
 *                                      white space
 *   brackets   #........#........#.#   {}[] outside strings
 *   odd        ...#.................   inside strings: a backslash, a byte < 0x20 or
 *                                      >= 0x80
 *
 * So after an opening quote the next structure bit is the closing one, and junk
 * between tokens always has a bit of its own. The control bytes 0x0C and 0x1A
 * outside strings may get theirs each instead of only the first of a run.
 *
 * Twins: plain C, AVX2 with PCLMUL, NEON. Threads: pure functions.
 */
#ifndef NP_IO_JSON_SCAN_H
#define NP_IO_JSON_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/simd.h"

enum { NP_JSON_BLOCK = 64 };

/* What one block tells the next; zeroed memory is the start of a text. */
struct np_json_scan {
	uint64_t in_string; /* all ones inside a string, else 0 */
	uint64_t escaped;   /* 1: the next byte follows an odd run of backslashes */
	uint64_t scalar;    /* 1: the last byte belonged to a scalar */
	/* only np_json_scan_comments() */
	bool in_comment;
	uint64_t comments, first_comment; /* how many began, offset of the first */
};

struct np_json_masks {
	uint64_t *structure, *brackets, *odd; /* one word per block */
};

/* Scan `blocks` * 64 bytes. True when a NUL byte is among them (anywhere). */
typedef bool np_json_scan_fn(struct np_json_scan *state, const char *bytes, size_t blocks,
                             struct np_json_masks out);

/* The twin for a level; the plain one where this build has no such twin. */
np_json_scan_fn *np_json_scan_for(enum np_simd level);

/*
 * The same with `#` and `//` comments to the end of the line, which count as
 * white space. Byte by byte: for small files. `avail` >= blocks * 64 is how far
 * one may look (a `//` may straddle the end); `offset` is that of bytes[0].
 */
bool np_json_scan_comments(struct np_json_scan *state, const char *bytes, size_t blocks,
                           size_t avail, uint64_t offset, struct np_json_masks out);

#endif
