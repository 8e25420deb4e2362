#include "cluster/dixon.h"

#include <math.h>
#include <string.h>

#include "cluster/stats.h"

/* For n = 3, 4, … 100 */
static const double limits[] = {
	.994, .920, .823, .744, .680, .723, .676, .638, .707, .675, .649, .672, .649, .629,
	.611, .595, .580, .568, .556, .545, .536, .526, .519, .510, .503, .496, .489, .484,
	.478, .473, .468, .463, .458, .454, .450, .446, .442, .439, .435, .432, .429, .425,
	.423, .420, .417, .414, .412, .409, .407, .405, .402, .400, .398, .396, .394, .392,
	.391, .388, .387, .385, .383, .382, .380, .379, .377, .376, .374, .372, .371, .370,
	.368, .368, .366, .365, .364, .363, .361, .360, .359, .358, .356, .356, .355, .353,
	.352, .352, .351, .350, .349, .348, .347, .346, .345, .344, .344, .343, .341, .341,
};
_Static_assert(sizeof limits / sizeof *limits == NP_DIXON_MAX - NP_DIXON_MIN + 1,
               "one limit per number of values");

static const double SIGMAS = 3;

double np_dixon_limit(size_t n)
{
	return n >= NP_DIXON_MIN && n <= NP_DIXON_MAX ? limits[n - NP_DIXON_MIN] : NAN;
}

double np_dixon_ratio(const int64_t *sorted, size_t n)
{
	enum { FIRST_WITHOUT_MAX = 8, FIRST_NEXT_BUT_ONE = 11, FIRST_WITHOUT_TWO = 14 };
	size_t next = n >= FIRST_NEXT_BUT_ONE ? 2 : 1;
	size_t top = n >= FIRST_WITHOUT_TWO ? 3 : n >= FIRST_WITHOUT_MAX ? 2 : 1;
	if (n < NP_DIXON_MIN)
		return 0;
	double spread = (double)(sorted[n - top] - sorted[0]);
	return spread > 0 ? (double)(sorted[next] - sorted[0]) / spread : 0;
}

static size_t first_smallest(const int64_t *v, size_t n)
{
	size_t at = 0;
	for (size_t i = 1; i < n; i++)
		at = v[i] < v[at] ? i : at;
	return at;
}

static size_t dixon(const int64_t *v, size_t n, int64_t *scratch, bool *low)
{
	enum { TOO_FEW = 3 };
	size_t distinct = 1;
	if (n < NP_DIXON_MIN)
		return 0;
	memcpy(scratch, v, n * sizeof *v);
	np_stats_sort(scratch, n);
	for (size_t i = 1; i < n; i++)
		distinct += scratch[i] != scratch[i - 1];
	if (distinct <= TOO_FEW || !(np_dixon_ratio(scratch, n) > np_dixon_limit(n)))
		return 0;
	low[first_smallest(v, n)] = true;
	return 1;
}

static size_t sigmas(const int64_t *v, size_t n, bool *low)
{
	long double sum = 0, squares = 0;
	int64_t max = v[0];
	size_t found = 0;
	for (size_t i = 0; i < n; i++) {
		sum += (long double)v[i];
		max = v[i] > max ? v[i] : max;
	}
	long double mean = sum / (long double)n;
	for (size_t i = 0; i < n; i++)
		squares += ((long double)v[i] - mean) * ((long double)v[i] - mean);
	long double off = SIGMAS * sqrtl(squares / (long double)n);
	for (size_t i = 0; i < n; i++)
		low[i] = (long double)v[i] < mean - off;
	if ((long double)max > mean + off)
		low[first_smallest(v, n)] = true;
	for (size_t i = 0; i < n; i++)
		found += low[i];
	return found;
}

size_t np_low_outliers(const int64_t *v, size_t n, int64_t *scratch, bool *low)
{
	if (n == 0)
		return 0;
	memset(low, 0, n * sizeof *low);
	return n <= NP_DIXON_MAX ? dixon(v, n, scratch, low) : sigmas(v, n, low);
}
