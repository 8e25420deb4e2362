/*
 * Two sequences of kernels, side by side: what was inserted, removed, replaced,
 * and where.
 *
 *   base     A B C D E     F G        runs   removed  {a 3, n_a 1, b 3, n_b 0}   D
 *            │ │ │   │     │ │               inserted {a 5, n_a 0, b 4, n_b 2}   x y
 *   target   A B C   E x y F G
 *
 * Common ends are cut off, then the blocks between the elements that occur once on
 * both sides and stand in the same order (patience), then Myers' linear-space search
 * for a shortest edit inside them. A search that needs more than NP_ALIGN_COST edits
 * is cut where it has come furthest, as GNU diff does: so the time is at most
 * (n + m) * NP_ALIGN_COST, and the memory linear, for any input. Such a result is
 * right (it turns base into target), only not always the shortest.
 */
#ifndef NP_ANALYSIS_ALIGN_H
#define NP_ANALYSIS_ALIGN_H

#include "base/mem.h"

enum { NP_ALIGN_COST = 400 };

/* n_a elements from a on were replaced by n_b from b on; either may be none, not both. */
struct np_align_run {
	size_t a, n_a, b, n_b;
};

struct np_alignment {
	NP_VEC(struct np_align_run) runs; /* in order; between them all is equal */
	size_t matched;                   /* pairs outside the runs */
	bool cut;                         /* somewhere the search was cut short */
};

/* Align a[n] with b[m]; equal elements have equal ids. false: out of memory.
 * np_alignment_release() in every case. */
bool np_align(const uint32_t *a, size_t n, const uint32_t *b, size_t m, struct np_alignment *out);
void np_alignment_release(struct np_alignment *self);

#endif
