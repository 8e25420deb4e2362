/*
 * Run n independent jobs on all cores.
 *
 * Jobs are numbered; each writes to its own slot of the caller's array, and
 * the caller merges in order of number. So the output is the same for any
 * number of threads.
 */
#ifndef NP_BASE_POOL_H
#define NP_BASE_POOL_H

#include <stddef.h>

/* How many processors this process may use (affinity and cgroup quota), at least 1. */
unsigned np_cpu_count(void);

/*
 * Call job(ctx, i) once for each i in 0…n-1, on up to `threads` threads (0:
 * np_cpu_count()). Returns when all are done. Where threads can't be started
 * the jobs run in the calling thread, so there is nothing to fail.
 */
void np_pool_run(unsigned threads, size_t n, void (*job)(void *ctx, size_t i), void *ctx);

#endif
