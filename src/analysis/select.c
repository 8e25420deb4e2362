#include "analysis/select.h"

static void swap(np_ns *a, np_ns *b)
{
	np_ns old = *a;
	*a = *b;
	*b = old;
}

/* A value between the smallest and the largest of three places. */
static np_ns pivot_of(const np_ns *v, size_t low, size_t high)
{
	np_ns a = v[low], b = v[low + (high - low) / 2], c = v[high];
	if ((a <= b) == (b <= c))
		return b;
	return (b <= a) == (a <= c) ? a : c;
}

np_ns np_select_ns(np_ns *v, size_t n, size_t k)
{
	size_t low = 0, high = n - 1;
	while (low < high) {
		/* three parts: < pivot, == pivot, > pivot; equal values end the search at once */
		np_ns pivot = pivot_of(v, low, high);
		size_t below = low, at = low, above = high + 1;
		while (at < above) {
			if (v[at] < pivot)
				swap(&v[below++], &v[at++]);
			else if (v[at] > pivot)
				swap(&v[at], &v[--above]);
			else
				at++;
		}
		if (k < below)
			high = below - 1;
		else if (k >= above)
			low = above;
		else
			return pivot;
	}
	return v[low];
}

np_ns np_percentile_ns(np_ns *v, size_t n, unsigned percent)
{
	size_t rank = (n * percent + 99) / 100; /* nearest rank: ceil(n p / 100), from 1 */
	return np_select_ns(v, n, rank > 0 ? rank - 1 : 0);
}
