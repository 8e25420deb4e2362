/*
 * How fast a kernel table becomes columns: np_read_kernels_csv on one core.
 *
 *   bench_kernels FILE [base|shapes|all] [THREADS]
 *
 * One read per process, so that memory is fresh, as in one run of the tool.
 */
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "capture/reader.h"

static double now(clockid_t clock)
{
	struct timespec ts;
	(void)clock_gettime(clock, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	struct np_file_size {
		double bytes;
	} size = {0};
	if (argc < 2)
		return 2;
	unsigned what = NP_KERNELS;
	if (argc > 2 && strcmp(argv[2], "shapes") == 0)
		what |= NP_KERNEL_SHAPES;
	if (argc > 2 && strcmp(argv[2], "all") == 0)
		what |= NP_KERNEL_SHAPES | NP_KERNEL_METRICS;
	int64_t threads = 1;
	if (argc > 3)
		(void)np_str_to_i64(np_str_of(argv[3]), &threads);
	FILE *file = fopen(argv[1], "re");
	if (!file)
		return 2;
	(void)fseek(file, 0, SEEK_END);
	size.bytes = (double)ftell(file);
	(void)fclose(file);
	struct np_profile *profile = np_profile_new();
	struct np_read read = {profile, what, (unsigned)threads};
	struct np_err err = {0};
	double cpu = now(CLOCK_PROCESS_CPUTIME_ID), wall = now(CLOCK_MONOTONIC);
	if (np_read_kernels_csv(&read, argv[1], &err) != NP_OK) {
		(void)fprintf(stderr, "%s: %s\n", err.where, err.msg);
		return 1;
	}
	cpu = now(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	wall = now(CLOCK_MONOTONIC) - wall;
	struct rusage usage;
	(void)getrusage(RUSAGE_SELF, &usage);
	(void)printf("%zu rows, %.2f GB/s cpu, %.2f GB/s wall, peak %ld MB\n", profile->kernels.n,
	             size.bytes / cpu / 1e9, size.bytes / wall / 1e9, usage.ru_maxrss / 1024);
	np_profile_free(profile);
	return 0;
}
