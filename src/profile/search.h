/* Rows of a sorted column. */
#ifndef NP_PROFILE_SEARCH_H
#define NP_PROFILE_SEARCH_H

#include <stddef.h>
#include <stdint.h>

/* The first row of sorted[0…n), ascending, whose value is not below `from`; n: none. */
static inline size_t np_first_from(const int64_t *sorted, size_t n, int64_t from)
{
	size_t low = 0, high = n;
	while (low < high) {
		size_t mid = low + (high - low) / 2;
		if (sorted[mid] < from)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

#endif
