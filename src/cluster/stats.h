/*
 * The statistics of the official recipes (cluster_and_advisor.md, "Conventions" and §2.2).
 */
#ifndef NP_CLUSTER_STATS_H
#define NP_CLUSTER_STATS_H

#include <stddef.h>
#include <stdint.h>

#include "report/report.h"

/* Count, MeanNs, StdNs (ddof 1; NaN for one value), MinNs, quartiles (linear interpolation,
 * position (n - 1) q), MaxNs, SumNs: what pandas' describe() gives. */
struct np_describe {
	size_t n;
	double mean, std, min, q1, median, q3, max, sum;
};

/* n > 0; sorts v. Sum and mean are exact for integers (128 bits), the variance is taken
 * around the exact mean. */
void np_describe_i64(int64_t *v, size_t n, struct np_describe *out);
void np_describe_f64(double *v, size_t n, struct np_describe *out);

/* pop: ddof 0 instead of 1. NaN where it is not defined. v must be sorted for quantiles only. */
double np_std_f64(const double *v, size_t n, unsigned ddof);
double np_quantile_sorted_i64(const int64_t *v, size_t n, double q);
double np_quantile_sorted_f64(const double *v, size_t n, double q);

/* The same value so many times: digests keep durations so, since a clock has few of them. */
struct np_run {
	int64_t value;
	uint64_t times; /* > 0 */
};

/* Sort by value and join equal values; returns how many are left. */
size_t np_runs_unite(struct np_run *v, size_t n);
/* Of united runs, n > 0: what np_describe_i64() gives for all values. */
void np_describe_runs(const struct np_run *v, size_t n, struct np_describe *out);

/* The middle value, and the median of the distances from it (MAD); sorts v, n > 0. */
double np_median_f64(double *v, size_t n);
double np_mad_f64(double *v, size_t n, double median);

void np_stats_sort(int64_t *v, size_t n);

/* The nine columns, for tables whose columns are NP_DESCRIBE_COLUMNS. */
void np_cell_describe(struct np_table *table, const struct np_describe *d);

#define NP_DESCRIBE_COLUMNS                                                             \
	{"Count", "", NP_COL_INT, "how many"}, {"MeanNs", "", NP_COL_REAL, "mean"},     \
		{"StdNs", "", NP_COL_REAL, "standard deviation of the sample (n - 1)"}, \
		{"MinNs", "", NP_COL_REAL, "smallest"},                                 \
		{"Q1Ns", "", NP_COL_REAL, "first quartile, linear interpolation"},      \
		{"MedianNs", "", NP_COL_REAL, "median"},                                \
		{"Q3Ns", "", NP_COL_REAL, "third quartile"},                            \
		{"MaxNs", "", NP_COL_REAL, "largest"},                                  \
	{                                                                               \
		"SumNs", "", NP_COL_REAL, "sum"                                         \
	}

#endif
