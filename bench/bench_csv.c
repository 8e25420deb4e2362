/*
 * How fast is the CSV reader? GB/s of thread CPU time (1 GB = 1e9 bytes), best of
 * a few runs, on a file given by the caller:
 *
 *    bench_csv kernel_details.csv [runs]
 *
 * "first" is the first run of the process, page faults included.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/pool.h"
#include "io/csv.h"
#include "io/csv_scan.h"

static const char *const number_columns[] = {"Start Time(us)", "Duration(us)", "Wait Time(us)",
                                             "aicore_time(us)"};
enum { N_NUMBERS = 4, N_CHUNKS = 2 };

struct result {
	uint64_t rows;
	int64_t sum;
};

static double clock_s(clockid_t clock)
{
	struct timespec now;
	(void)clock_gettime(clock, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static struct result read_rows(struct np_csv *csv, bool numbers)
{
	struct result result = {0, 0};
	int columns[N_NUMBERS];
	for (int i = 0; i < N_NUMBERS; i++)
		columns[i] = np_csv_find(csv, number_columns[i]);
	struct np_csv_row row;
	bool got = false;
	while (np_csv_next(csv, &row, &got, NULL) == NP_OK && got) {
		result.rows++;
		int64_t value = 0;
		for (int i = 0; i < N_NUMBERS && numbers; i++)
			if (columns[i] >= 0 &&
			    np_csv_us_to_ns(row.fields[columns[i]], &value) == NP_NUM_OK)
				result.sum += value;
	}
	return result;
}

static struct result run_reader(const char *path, bool numbers)
{
	struct result result = {0, 0};
	struct np_input *input = NULL;
	struct np_csv *csv = NULL;
	if (np_input_open(path, &input, NULL) == NP_OK && np_csv_open(input, &csv, NULL) == NP_OK)
		result = read_rows(csv, numbers);
	np_csv_close(csv);
	np_input_close(input);
	return result;
}

static struct result run_rows(const char *path)
{
	return run_reader(path, false);
}

static struct result run_numbers(const char *path)
{
	return run_reader(path, true);
}

/* Positions of separators only, in steps that fit the caches. */
static struct result run_index(const char *path)
{
	enum { STEP = 64 << 10 };
	static uint32_t seps[STEP + 64], rows[STEP + 64];
	struct result result = {0, 0};
	struct np_input *input = NULL;
	if (np_input_open(path, &input, NULL) != NP_OK)
		return result;
	np_str whole = np_input_whole(input);
	struct np_csv_scan scan = {0};
	for (size_t at = 0; at < whole.len; at += STEP) {
		struct np_csv_marks marks = {.seps = seps, .rows = rows};
		size_t len = whole.len - at < STEP ? whole.len - at : STEP;
		np_csv_scan_index(np_simd_level(), &scan, whole.ptr + at, len, 0, &marks);
		result.rows += marks.n_rows;
		result.sum += (int64_t)marks.n_seps;
		np_input_release_behind(input, at);
	}
	np_input_close(input);
	return result;
}

struct split {
	const struct np_csv *header;
	np_str chunks[N_CHUNKS];
	uint64_t offsets[N_CHUNKS];
	struct result results[N_CHUNKS];
};

static void read_chunk(void *ctx, size_t i)
{
	struct split *split = ctx;
	struct np_input *input = NULL;
	struct np_csv *csv = NULL;
	if (np_input_open_mem(split->chunks[i], "chunk", split->offsets[i], &input, NULL) ==
	            NP_OK &&
	    np_csv_open_chunk(split->header, input, &csv, NULL) == NP_OK)
		split->results[i] = read_rows(csv, true);
	np_csv_close(csv);
	np_input_close(input);
}

static struct result run_split(const char *path)
{
	struct result result = {0, 0};
	struct split split = {0};
	struct np_input *input = NULL;
	struct np_csv *csv = NULL;
	if (np_input_open(path, &input, NULL) == NP_OK && np_csv_open(input, &csv, NULL) == NP_OK) {
		split.header = csv;
		size_t n = np_csv_split(csv, N_CHUNKS, split.chunks, split.offsets);
		np_pool_run(N_CHUNKS, n, read_chunk, &split);
		for (size_t i = 0; i < n; i++) {
			result.rows += split.results[i].rows;
			result.sum += split.results[i].sum;
		}
	}
	np_csv_close(csv);
	np_input_close(input);
	return result;
}

static struct result run_split_only(const char *path)
{
	struct result result = {0, 0};
	struct split split = {0};
	struct np_input *input = NULL;
	struct np_csv *csv = NULL;
	if (np_input_open(path, &input, NULL) == NP_OK && np_csv_open(input, &csv, NULL) == NP_OK)
		result.rows = np_csv_split(csv, N_CHUNKS, split.chunks, split.offsets);
	np_csv_close(csv);
	np_input_close(input);
	return result;
}

static void measure(const char *name, const char *path, double gb, int runs, clockid_t clock,
                    struct result (*run)(const char *path))
{
	double first = 0, best = 0;
	struct result result = {0, 0};
	for (int i = 0; i < runs; i++) {
		double start = clock_s(clock);
		result = run(path);
		double rate = gb / (clock_s(clock) - start);
		if (i == 0)
			first = rate;
		if (rate > best)
			best = rate;
	}
	(void)printf("%-34s first %6.2f   best %6.2f GB/s   (%llu rows, sum %lld)\n", name, first,
	             best, (unsigned long long)result.rows, (long long)result.sum);
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		(void)fprintf(stderr, "usage: bench_csv FILE.csv [RUNS]\n");
		return 2;
	}
	const char *path = argv[1];
	int runs = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 5;
	struct np_input *input = NULL;
	if (np_input_open(path, &input, NULL) != NP_OK) {
		(void)fprintf(stderr, "bench_csv: cannot open %s\n", path);
		return 4;
	}
	double gb = (double)np_input_file_size(input) * 1e-9;
	np_input_close(input);
	(void)printf("%s, %.1f MB, %s\n", path, gb * 1e3, np_simd_name(np_simd_level()));
	measure("index + 4 columns, cpu", path, gb, runs, CLOCK_THREAD_CPUTIME_ID, run_numbers);
	measure("rows split, cpu", path, gb, runs, CLOCK_THREAD_CPUTIME_ID, run_rows);
	measure("index only, cpu", path, gb, runs, CLOCK_THREAD_CPUTIME_ID, run_index);
	measure("split into 2, cpu", path, gb, runs, CLOCK_THREAD_CPUTIME_ID, run_split_only);
	measure("2 chunks, 2 threads, wall", path, gb, runs, CLOCK_MONOTONIC, run_split);
	return 0;
}
