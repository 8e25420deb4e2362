/*
 * Medians, and how sure their difference is.
 *
 * A percentile bootstrap: both sides are drawn again with replacement, NP_RESAMPLES
 * times, the medians are subtracted, and the middle 95 % of the differences is the
 * interval. Of a resample only the median is wanted, and that is one or two of the
 * sorted samples; so the places are drawn once for two sample counts, and each
 * group then costs NP_RESAMPLES look-ups and a sort, whatever its values are:
 *
 *   sorted samples   x0 ≤ x1 ≤ x2 ≤ x3        draws (2,0,2,3) → sorted places 0 2 2 3
 *                                             median = (x2 + x2) / 2
 *
 * The seed is fixed: the same input gives the same interval.
 */
#ifndef NP_ANALYSIS_BOOTSTRAP_H
#define NP_ANALYSIS_BOOTSTRAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	NP_RESAMPLES = 2000,
	NP_BOOTSTRAP_MIN = 3,    /* samples per side; fewer give no interval */
	NP_BOOTSTRAP_MAX = 1000, /* places drawn; of more samples every k-th stands for its
	                            neighbours, which makes the interval wider, never narrower */
};

struct np_bootstrap {
	size_t n_base, n_target; /* samples */
	uint32_t (*places)[4];   /* low and high middle of base, then of target */
	int64_t *scratch;
};

/* false: out of memory. np_bootstrap_release() in every case. */
bool np_bootstrap_init(struct np_bootstrap *self, size_t n_base, size_t n_target);
void np_bootstrap_release(struct np_bootstrap *self);

/* Are there enough samples on both sides? */
bool np_bootstrap_usable(const struct np_bootstrap *self);

/*
 * The 95 % interval of median(target) - median(base). `base` and `target` are sorted,
 * n_base and n_target of them. Only when usable.
 */
void np_bootstrap_difference(struct np_bootstrap *self, const int64_t *base, const int64_t *target,
                             int64_t *low, int64_t *high);

/* The median of n sorted values, n > 0; of an even number the mean of the middle two. */
int64_t np_median_sorted(const int64_t *values, size_t n);

/* Sort ascending. */
void np_sort_i64(int64_t *values, size_t n);

#endif
