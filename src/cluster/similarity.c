#include "cluster/similarity.h"

#include <string.h>

struct block {
	size_t a, b, len;
};

/* The longest common block of a[from…to) and b[from…to): the first in a, then in b. */
static struct block longest(np_str a, size_t a_from, size_t a_to, np_str b, size_t b_from,
                            size_t b_to)
{
	uint16_t rows[2][NP_SIMILARITY_BYTES + 1] = {{0}};
	struct block best = {a_from, b_from, 0};
	for (size_t i = a_from; i < a_to; i++) {
		uint16_t *now = rows[i & 1], *before = rows[(i & 1) ^ 1];
		for (size_t j = b_from; j < b_to; j++) {
			uint16_t run = a.ptr[i] == b.ptr[j] ? (uint16_t)(before[j] + 1) : 0;
			now[j + 1] = run;
			if (run > best.len)
				best = (struct block){i + 1 - run, j + 1 - run, run};
		}
	}
	return best;
}

struct piece {
	uint16_t a_from, a_to, b_from, b_to;
};

static size_t common(np_str a, np_str b)
{
	struct piece stack[NP_SIMILARITY_BYTES + 2]; /* each block leaves at most one more */
	size_t n = 1, sum = 0;
	stack[0] = (struct piece){0, (uint16_t)a.len, 0, (uint16_t)b.len};
	while (n > 0) {
		struct piece p = stack[--n];
		struct block block = longest(a, p.a_from, p.a_to, b, p.b_from, p.b_to);
		if (block.len == 0)
			continue;
		sum += block.len;
		uint16_t a_end = (uint16_t)(block.a + block.len);
		uint16_t b_end = (uint16_t)(block.b + block.len);
		if (block.a > p.a_from && block.b > p.b_from)
			stack[n++] = (struct piece){p.a_from, (uint16_t)block.a, p.b_from,
			                            (uint16_t)block.b};
		if (a_end < p.a_to && b_end < p.b_to)
			stack[n++] = (struct piece){a_end, p.a_to, b_end, p.b_to};
	}
	return sum;
}

/* No more than the bytes that both have, in any order. */
static size_t at_most(np_str a, np_str b)
{
	int counts[256] = {0};
	size_t sum = 0;
	for (size_t i = 0; i < a.len; i++)
		counts[(unsigned char)a.ptr[i]]++;
	for (size_t i = 0; i < b.len; i++)
		sum += counts[(unsigned char)b.ptr[i]]-- > 0;
	return sum;
}

double np_similarity(np_str a, np_str b, double least)
{
	a = np_str_sub(a, 0, a.len < NP_SIMILARITY_BYTES ? a.len : NP_SIMILARITY_BYTES);
	b = np_str_sub(b, 0, b.len < NP_SIMILARITY_BYTES ? b.len : NP_SIMILARITY_BYTES);
	double length = (double)(a.len + b.len);
	if (length == 0)
		return 1;
	if (2 * (double)at_most(a, b) / length < least)
		return 0;
	return 2 * (double)common(a, b) / length;
}
