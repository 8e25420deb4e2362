/*
 * The inner loop of the CSV reader: where are the separators?
 *
 * 64 bytes become bit masks, one bit per byte:
 *
 *    bytes    a,"b,c",d⏎
 *    quotes   ..1...1...
 *    inside   ..1111....   running XOR of quotes, carried from block to block
 *    commas   .1..1..1..
 *    breaks   .........1
 *    seps     .1.....1.1   (commas | breaks) & ~inside
 *
 * A quote toggles wherever it stands; a doubled one toggles twice, which is
 * right. The twins (plain C, AVX2 + PCLMUL, NEON) give equal answers.
 *
 * Threads: pure functions over the caller's state.
 */
#ifndef NP_IO_CSV_SCAN_H
#define NP_IO_CSV_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/simd.h"

struct np_csv_scan {
	uint64_t inside; /* between quotes: all ones, else 0 */
	bool nul;        /* a NUL byte was seen; only ever set here */
};

/* Room that the index needs in both arrays behind what is there, for `len` bytes. */
#define NP_CSV_SCAN_ROOM(len) ((size_t)(len) + 64)

struct np_csv_marks {
	uint32_t *seps; /* positions of commas and line breaks outside quotes, plus `base` */
	size_t n_seps;
	uint32_t *rows; /* for each such line break, its index in seps */
	size_t n_rows;
};

/* Append the marks of bytes[0 … len) to *marks; base + len < 2^32. */
void np_csv_scan_index(enum np_simd level, struct np_csv_scan *state, const char *bytes, size_t len,
                       uint32_t base, struct np_csv_marks *marks);

/* Find the first and the last line break outside quotes. false when there is none
 * (then *first and *last are left alone). */
bool np_csv_scan_breaks(enum np_simd level, struct np_csv_scan *state, const char *bytes,
                        size_t len, size_t *first, size_t *last);

#endif
