/*
 * The official test for a rank that arrives last (cluster_and_advisor.md §2.11): the
 * others wait for it, so its collective is much shorter than theirs.
 */
#ifndef NP_CLUSTER_DIXON_H
#define NP_CLUSTER_DIXON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NP_DIXON_MIN = 3, NP_DIXON_MAX = 100 };

/* Critical value at 99.5 %; n in NP_DIXON_MIN … NP_DIXON_MAX, NaN otherwise. */
double np_dixon_limit(size_t n);

/* Dixon's ratio for the smallest of n ascending values: its distance to the next, or next
 * but one, over the spread without the largest ones. 0 where there is no spread. */
double np_dixon_ratio(const int64_t *sorted, size_t n);

/*
 * Which of n values in any order are too small: low[i], and how many. Up to 100 values
 * Dixon's test, which accuses the first smallest one only and nobody when there are no more
 * than three different values; above, all below mean - 3 sigma, and the smallest where the
 * largest is above mean + 3 sigma. `scratch` holds n values.
 */
size_t np_low_outliers(const int64_t *v, size_t n, int64_t *scratch, bool *low);

#endif
