/*
 * How long does a comparison take? One cold run per process:
 *
 *    npuprof synth big1 --ranks 1 --steps 10 --layers 100 --ops 82 --seed 1   (and big2, 2)
 *    bench_compare big1 big2 [threads]
 *
 * Prints seconds of wall and CPU time, kernels per side, and the peak resident memory,
 * mapped file pages included.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "analysis/compare.h"

static double clock_s(clockid_t clock)
{
	struct timespec now;
	(void)clock_gettime(clock, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static const struct np_capture *first(const struct np_captures *all)
{
	for (size_t i = 0; all && i < all->captures.n; i++)
		if (np_capture_has_data(all->captures.v[i]))
			return all->captures.v[i];
	return NULL;
}

int main(int argc, char **argv)
{
	struct np_err err = {0};
	struct np_captures *all[2] = {NULL, NULL};
	if (argc < 3) {
		(void)fprintf(stderr, "usage: bench_compare BASE TARGET [threads]\n");
		return 2;
	}
	struct np_compare_options options = {
		.threads = argc > 3 ? (unsigned)strtoul(argv[3], NULL, 10) : 1};
	double wall = clock_s(CLOCK_MONOTONIC), cpu = clock_s(CLOCK_PROCESS_CPUTIME_ID);
	const struct np_capture *captures[2] = {NULL, NULL};
	for (int i = 0; i < 2; i++)
		captures[i] =
			np_discover(argv[i + 1], &all[i], &err) == NP_OK ? first(all[i]) : NULL;
	struct np_report *report = np_report_new("compare");
	struct np_compare_input base = {argv[1], &captures[0], 1, NULL};
	struct np_compare_input target = {argv[2], &captures[1], 1, NULL};
	enum np_status status = NP_E_EMPTY;
	if (captures[0] && captures[1] && report)
		status = np_compare(&base, &target, 1, &options, report, &err);
	wall = clock_s(CLOCK_MONOTONIC) - wall;
	cpu = clock_s(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	struct rusage usage;
	(void)getrusage(RUSAGE_SELF, &usage);
	if (status == NP_OK)
		(void)printf("threads %u: %.3f s wall, %.3f s cpu; peak %ld MB; verdict %s\n",
		             options.threads, wall, cpu, usage.ru_maxrss / 1000,
		             np_verdict_name(report->verdict));
	else
		(void)fprintf(stderr, "%s: %s\n", err.where, err.msg);
	np_report_free(report);
	np_captures_free(all[0]);
	np_captures_free(all[1]);
	return status == NP_OK ? 0 : 4;
}
