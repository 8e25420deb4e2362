/*
 * How fast does a trace become columns? One cold run per process:
 *
 *    bench_trace trace_view.json [threads] [all]
 *
 * Prints GB/s (1 GB = 1e9 bytes) of CPU time of the process and of wall time,
 * the rows, and the peak resident memory, mapped file pages included. With
 * `all`, shapes and call stacks are loaded too.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "base/fs.h"
#include "capture/reader.h"

static double clock_s(clockid_t clock)
{
	struct timespec now;
	(void)clock_gettime(clock, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

int main(int argc, char **argv)
{
	struct np_err err;
	struct np_file_stat stat;
	if (argc < 2) {
		(void)fprintf(stderr, "usage: bench_trace FILE [threads] [all]\n");
		return 2;
	}
	struct np_read read = {
		.profile = np_profile_new(),
		.what = NP_HOST_OPS | NP_TASKS | NP_COMM | NP_FLOWS | NP_COUNTERS | NP_STEPS,
		.threads = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 1,
	};
	if (argc > 3)
		read.what |= NP_HOST_ARGS;
	if (!read.profile || np_file_stat(argv[1], true, &stat, &err) != NP_OK)
		return 4;
	double thread = clock_s(CLOCK_THREAD_CPUTIME_ID),
	       process = clock_s(CLOCK_PROCESS_CPUTIME_ID);
	double wall = clock_s(CLOCK_MONOTONIC);
	enum np_status status = np_read_trace(&read, argv[1], &err);
	wall = clock_s(CLOCK_MONOTONIC) - wall;
	thread = clock_s(CLOCK_THREAD_CPUTIME_ID) - thread;
	process = clock_s(CLOCK_PROCESS_CPUTIME_ID) - process;
	if (status != NP_OK)
		(void)fprintf(stderr, "%s: %s\n", err.where, err.msg);
	struct rusage usage;
	(void)getrusage(RUSAGE_SELF, &usage);
	double gb = (double)stat.size_bytes / 1e9;
	const struct np_profile *p = read.profile;
	(void)printf(
		"threads %u: %.3f GB/s wall, %.3f thread CPU, %.3f process CPU; peak %ld MB for a "
		"file of %.0f MB\n",
		read.threads, gb / wall, gb / thread, gb / process, usage.ru_maxrss / 1000,
		gb * 1e3);
	(void)printf("host_ops %zu tasks %zu comm_ops %zu comm_tasks %zu flows %zu counters %zu "
	             "steps %zu dropped %llu strings %zu\n",
	             p->host_ops.n, p->tasks.n, p->comm_ops.n, p->comm_tasks.n, p->flows.n,
	             p->counters.n, p->steps.n, (unsigned long long)p->dropped_rows,
	             p->strings.strings.n);
	for (size_t i = 0; i < p->diags.n; i++)
		(void)printf("%s: %s\n", p->diags.v[i].code, p->diags.v[i].text);
	np_profile_free(read.profile);
	return status == NP_OK ? 0 : 4;
}
