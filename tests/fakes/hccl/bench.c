/* hccl_bench [ROUNDS CALLS]: nanoseconds of one HcclAllReduce, the best and the median round.
 * Run as it is, and under LD_PRELOAD: bench/preload.py. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

extern int HcclCommInitRootInfo(uint32_t ranks, const void *root, uint32_t rank, void **comm);
extern int HcclAllReduce(void *send, void *recv, uint64_t count, int type, int op, void *comm,
                         void *stream);

static double now(void)
{
	struct timespec time;
	(void)clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	static double best[1000];
	int32_t stream = 3;
	void *comm = NULL;
	long rounds = argc > 2 ? strtol(argv[1], NULL, 10) : 200;
	long calls = argc > 2 ? strtol(argv[2], NULL, 10) : 10000;
	if (rounds < 1 || rounds > 1000 || calls < 1 ||
	    HcclCommInitRootInfo(8, NULL, 1, &comm) != 0)
		return 1;
	for (long round = 0; round < rounds; round++) {
		double begin = now();
		for (long i = 0; i < calls; i++)
			(void)HcclAllReduce(NULL, NULL, 4096, 4, 0, comm, &stream);
		best[round] = (now() - begin) / (double)calls;
	}
	qsort(best, (size_t)rounds, sizeof *best, by_value);
	printf("%.2f %.2f\n", best[0], best[rounds / 2]);
	return 0;
}
