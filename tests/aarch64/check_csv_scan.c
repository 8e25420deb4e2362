/* The NEON twin of io/csv_scan against the plain one; exit status 0 = they agree. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/csv_scan.h"

enum { MAX = 1000 };

static uint32_t seps[2][NP_CSV_SCAN_ROOM(MAX)], rows[2][NP_CSV_SCAN_ROOM(MAX)];

static int differ(const char *bytes, size_t len)
{
	static const enum np_simd levels[2] = {NP_SIMD_SCALAR, NP_SIMD_NEON};
	struct np_csv_scan state[2] = {{0, false}, {0, false}}, walk[2] = {{0, false}, {0, false}};
	struct np_csv_marks marks[2];
	size_t first[2] = {0, 0}, last[2] = {0, 0};
	bool found[2];
	for (int i = 0; i < 2; i++) {
		marks[i] = (struct np_csv_marks){.seps = seps[i], .rows = rows[i]};
		np_csv_scan_index(levels[i], &state[i], bytes, len / 3, 0, &marks[i]);
		np_csv_scan_index(levels[i], &state[i], bytes + len / 3, len - len / 3,
		                  (uint32_t)(len / 3), &marks[i]);
		found[i] = np_csv_scan_breaks(levels[i], &walk[i], bytes, len, &first[i], &last[i]);
	}
	return marks[0].n_seps != marks[1].n_seps || marks[0].n_rows != marks[1].n_rows ||
	       memcmp(seps[0], seps[1], marks[0].n_seps * sizeof seps[0][0]) != 0 ||
	       memcmp(rows[0], rows[1], marks[0].n_rows * sizeof rows[0][0]) != 0 ||
	       state[0].inside != state[1].inside || state[0].nul != state[1].nul ||
	       walk[0].inside != walk[1].inside || walk[0].nul != walk[1].nul ||
	       found[0] != found[1] || first[0] != first[1] || last[0] != last[1];
}

int main(void)
{
	static const char alphabet[] = ",\n\"ab,,,\n\"\r 0123456789abcdefghijk";
	static char bytes[MAX];
	srandom(5);
	for (int round = 0; round < 20000; round++) {
		size_t len = (size_t)random() % MAX;
		size_t kinds = 1 + (size_t)random() % (sizeof alphabet - 1);
		for (size_t i = 0; i < len; i++)
			bytes[i] = random() % 2000 == 0 ? '\0' : alphabet[(size_t)random() % kinds];
		if (differ(bytes, len)) {
			(void)printf("csv_scan: twins differ in round %d\n", round);
			return 1;
		}
	}
	(void)printf("csv_scan: ok\n");
	return 0;
}
