#include "cluster/stats.h"

#include <math.h>
#include <stdlib.h>

__extension__ typedef __int128 wide; /* sums of 64-bit values, exact */

static int by_i64(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

static int by_f64(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

void np_stats_sort(int64_t *v, size_t n)
{
	if (n > 1)
		qsort(v, n, sizeof *v, by_i64);
}

/* Where quantile q lies: between v[low] and v[low + 1], at `part`. */
static size_t position(size_t n, double q, double *part)
{
	double at = (double)(n - 1) * q, low = floor(at);
	*part = at - low;
	return (size_t)low;
}

double np_quantile_sorted_i64(const int64_t *v, size_t n, double q)
{
	double part;
	if (n == 0)
		return NAN;
	size_t low = position(n, q, &part);
	if (part <= 0 || low + 1 >= n)
		return (double)v[low];
	return (double)v[low] + (double)(v[low + 1] - v[low]) * part;
}

double np_quantile_sorted_f64(const double *v, size_t n, double q)
{
	double part;
	if (n == 0)
		return NAN;
	size_t low = position(n, q, &part);
	if (part <= 0 || low + 1 >= n)
		return v[low];
	return v[low] + (v[low + 1] - v[low]) * part;
}

double np_std_f64(const double *v, size_t n, unsigned ddof)
{
	long double sum = 0, squares = 0;
	if (n <= ddof)
		return NAN;
	for (size_t i = 0; i < n; i++)
		sum += v[i];
	long double mean = sum / (long double)n;
	for (size_t i = 0; i < n; i++)
		squares += ((long double)v[i] - mean) * ((long double)v[i] - mean);
	return sqrt((double)(squares / (long double)(n - ddof)));
}

void np_describe_i64(int64_t *v, size_t n, struct np_describe *out)
{
	wide sum = 0;
	long double squares = 0;
	np_stats_sort(v, n);
	for (size_t i = 0; i < n; i++)
		sum += v[i];
	long double mean = (long double)sum / (long double)n;
	for (size_t i = 0; i < n; i++)
		squares += ((long double)v[i] - mean) * ((long double)v[i] - mean);
	*out = (struct np_describe){
		.n = n,
		.mean = (double)mean,
		.std = n > 1 ? sqrt((double)(squares / (long double)(n - 1))) : NAN,
		.min = (double)v[0],
		.q1 = np_quantile_sorted_i64(v, n, 0.25),
		.median = np_quantile_sorted_i64(v, n, 0.5),
		.q3 = np_quantile_sorted_i64(v, n, 0.75),
		.max = (double)v[n - 1],
		.sum = (double)sum,
	};
}

void np_describe_f64(double *v, size_t n, struct np_describe *out)
{
	long double sum = 0;
	qsort(v, n, sizeof *v, by_f64);
	for (size_t i = 0; i < n; i++)
		sum += v[i];
	*out = (struct np_describe){
		.n = n,
		.mean = (double)(sum / (long double)n),
		.std = np_std_f64(v, n, 1),
		.min = v[0],
		.q1 = np_quantile_sorted_f64(v, n, 0.25),
		.median = np_quantile_sorted_f64(v, n, 0.5),
		.q3 = np_quantile_sorted_f64(v, n, 0.75),
		.max = v[n - 1],
		.sum = (double)sum,
	};
}

static int by_value(const void *a, const void *b)
{
	const struct np_run *x = a, *y = b;
	return (x->value > y->value) - (x->value < y->value);
}

size_t np_runs_unite(struct np_run *v, size_t n)
{
	size_t kept = 0;
	if (n > 1)
		qsort(v, n, sizeof *v, by_value);
	for (size_t i = 0; i < n; i++) {
		if (kept > 0 && v[kept - 1].value == v[i].value)
			v[kept - 1].times += v[i].times;
		else
			v[kept++] = v[i];
	}
	return kept;
}

/* The value of rank `at` (from 0) among all; *run and *before are where the last one was
 * found, so that rising ranks cost one pass. */
static double value_at(const struct np_run *v, size_t n, uint64_t at, size_t *run, uint64_t *before)
{
	while (*run + 1 < n && *before + v[*run].times <= at)
		*before += v[(*run)++].times;
	return (double)v[*run].value;
}

void np_describe_runs(const struct np_run *v, size_t n, struct np_describe *out)
{
	wide sum = 0;
	uint64_t count = 0, before = 0;
	long double squares = 0;
	double quartiles[3];
	size_t run = 0;
	for (size_t i = 0; i < n; i++) {
		sum += (wide)v[i].value * (wide)v[i].times;
		count += v[i].times;
	}
	long double mean = (long double)sum / (long double)count;
	for (size_t i = 0; i < n; i++) {
		long double off = (long double)v[i].value - mean;
		squares += off * off * (long double)v[i].times;
	}
	for (size_t q = 0; q < 3; q++) {
		double part;
		uint64_t low = position(count, 0.25 * (double)(q + 1), &part);
		double value = value_at(v, n, low, &run, &before);
		size_t next_run = run;
		uint64_t next_before = before;
		double next = value_at(v, n, low + 1, &next_run, &next_before);
		quartiles[q] = part > 0 && low + 1 < count ? value + (next - value) * part : value;
	}
	*out = (struct np_describe){
		.n = count,
		.mean = (double)mean,
		.std = count > 1 ? sqrt((double)(squares / (long double)(count - 1))) : NAN,
		.min = (double)v[0].value,
		.q1 = quartiles[0],
		.median = quartiles[1],
		.q3 = quartiles[2],
		.max = (double)v[n - 1].value,
		.sum = (double)sum,
	};
}

double np_median_f64(double *v, size_t n)
{
	if (n > 1)
		qsort(v, n, sizeof *v, by_f64);
	return np_quantile_sorted_f64(v, n, 0.5);
}

double np_mad_f64(double *v, size_t n, double median)
{
	for (size_t i = 0; i < n; i++)
		v[i] = fabs(v[i] - median);
	return np_median_f64(v, n);
}

void np_cell_describe(struct np_table *table, const struct np_describe *d)
{
	np_cell_int(table, (int64_t)d->n);
	np_cell_real(table, d->mean);
	np_cell_real(table, d->std);
	np_cell_real(table, d->min);
	np_cell_real(table, d->q1);
	np_cell_real(table, d->median);
	np_cell_real(table, d->q3);
	np_cell_real(table, d->max);
	np_cell_real(table, d->sum);
}
