/*
 * The NEON twin of the JSON scanner against the plain one, on random input. It
 * needs only libc, so that it can be linked statically and run under qemu; the
 * definition itself is tested natively in tests/unit/test_json_scan.c.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/json_scan.h"

enum { BLOCKS = 32, BYTES = BLOCKS * NP_JSON_BLOCK, ROUNDS = 20000 };

struct result {
	uint64_t structure[BLOCKS], brackets[BLOCKS], odd[BLOCKS];
	struct np_json_scan state;
	bool nul;
};

static void run(np_json_scan_fn *scan, const char *text, size_t first, struct result *out)
{
	memset(out, 0, sizeof *out);
	struct np_json_masks low = {out->structure, out->brackets, out->odd};
	struct np_json_masks high = {out->structure + first, out->brackets + first,
	                             out->odd + first};
	out->nul = scan(&out->state, text, first, low);
	out->nul |= scan(&out->state, text + first * NP_JSON_BLOCK, BLOCKS - first, high);
}

static void fill(char *text, int round)
{
	static const char favourites[] =
		"\\\\\\\"\"{}[]:, \t\n\r0a\x01\x0c\x1a\x1f\x7f\x80\xff\xc3\xa9";
	int any = (int)(random() % 4);
	for (size_t i = 0; i < BYTES; i++)
		text[i] = random() % 100 < any
		                  ? (char)random()
		                  : favourites[(size_t)random() % (sizeof favourites - 1)];
	if (round % 3 == 0) { /* a long run of backslashes across borders */
		size_t start = (size_t)random() % BYTES, len = (size_t)random() % 200;
		memset(text + start, '\\', start + len < BYTES ? len : BYTES - start);
	}
}

int main(void)
{
	static struct result plain, vector;
	char text[BYTES];
	if (np_simd_level() == NP_SIMD_SCALAR) {
		(void)fprintf(stderr, "no vector twin on this processor\n");
		return 77;
	}
	srandom(1);
	for (int round = 0; round < ROUNDS; round++) {
		size_t first = (size_t)random() % BLOCKS;
		fill(text, round);
		run(np_json_scan_for(NP_SIMD_SCALAR), text, first, &plain);
		run(np_json_scan_for(np_simd_level()), text, first, &vector);
		if (memcmp(&plain, &vector, sizeof plain) != 0) {
			(void)fprintf(stderr, "round %d: %s differs from scalar\n", round,
			              np_simd_name(np_simd_level()));
			return 1;
		}
	}
	(void)printf("%s equals scalar in %d rounds\n", np_simd_name(np_simd_level()), ROUNDS);
	return 0;
}
