#include "analysis/bootstrap.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static int by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

void np_sort_i64(int64_t *values, size_t n)
{
	if (n > 1)
		qsort(values, n, sizeof *values, by_value);
}

/* without overflow, towards the lower */
static int64_t middle(int64_t low, int64_t high)
{
	return low + (int64_t)(((uint64_t)high - (uint64_t)low) / 2);
}

int64_t np_median_sorted(const int64_t *values, size_t n)
{
	return n % 2 ? values[n / 2] : middle(values[n / 2 - 1], values[n / 2]);
}

/* xorshift64*: small, and the same everywhere */
static uint64_t next_random(uint64_t *state)
{
	uint64_t x = *state;
	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	*state = x;
	return x * 0x2545f4914f6cdd1du;
}

/* Draw n places out of n with replacement; which are in the middle when sorted? */
static void draw_middle(uint64_t *state, uint32_t *counts, size_t n, uint32_t *low, uint32_t *high)
{
	memset(counts, 0, n * sizeof *counts);
	for (size_t i = 0; i < n; i++)
		counts[(next_random(state) >> 32) * n >> 32]++;
	size_t at = 0, seen = counts[0], first = (n - 1) / 2, second = n / 2;
	while (seen <= first)
		seen += counts[++at];
	*low = (uint32_t)at;
	while (seen <= second)
		seen += counts[++at];
	*high = (uint32_t)at;
}

static size_t drawn(size_t n)
{
	return n < NP_BOOTSTRAP_MAX ? n : NP_BOOTSTRAP_MAX;
}

bool np_bootstrap_init(struct np_bootstrap *self, size_t n_base, size_t n_target)
{
	*self = (struct np_bootstrap){.n_base = n_base, .n_target = n_target};
	if (n_base < NP_BOOTSTRAP_MIN || n_target < NP_BOOTSTRAP_MIN)
		return true;
	size_t base = drawn(n_base), target = drawn(n_target);
	uint32_t *counts = np_realloc(NULL, base > target ? base : target, sizeof *counts);
	self->places = np_realloc(NULL, NP_RESAMPLES, sizeof *self->places);
	self->scratch = np_realloc(NULL, NP_RESAMPLES, sizeof *self->scratch);
	bool ok = counts && self->places && self->scratch;
	uint64_t state = 0x6e70757072666f31u;
	for (size_t i = 0; ok && i < NP_RESAMPLES; i++) {
		uint32_t *to = self->places[i];
		draw_middle(&state, counts, base, &to[0], &to[1]);
		draw_middle(&state, counts, target, &to[2], &to[3]);
		/* back to places among all samples, in the middle of what each stands for */
		for (int k = 0; k < 4; k++) {
			size_t n = k < 2 ? n_base : n_target, m = k < 2 ? base : target;
			to[k] = (uint32_t)((2 * (uint64_t)to[k] + 1) * n / (2 * m));
		}
	}
	np_free(counts);
	if (!ok)
		np_bootstrap_release(self);
	return ok;
}

void np_bootstrap_release(struct np_bootstrap *self)
{
	np_free(self->places);
	np_free(self->scratch);
	*self = (struct np_bootstrap){0};
}

bool np_bootstrap_usable(const struct np_bootstrap *self)
{
	return self->places != NULL;
}

void np_bootstrap_difference(struct np_bootstrap *self, const int64_t *base, const int64_t *target,
                             int64_t *low, int64_t *high)
{
	for (size_t i = 0; i < NP_RESAMPLES; i++) {
		const uint32_t *at = self->places[i];
		self->scratch[i] =
			middle(target[at[2]], target[at[3]]) - middle(base[at[0]], base[at[1]]);
	}
	np_sort_i64(self->scratch, NP_RESAMPLES);
	*low = self->scratch[NP_RESAMPLES * 25 / 1000];
	*high = self->scratch[NP_RESAMPLES * 975 / 1000 - 1];
}
