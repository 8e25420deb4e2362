#include "base/pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>

enum { MAX_THREADS = 256 };

/* cgroup v2: "max 100000" or "200000 100000" (quota and period in us) */
static unsigned cgroup_limit(void)
{
	FILE *file = fopen("/sys/fs/cgroup/cpu.max", "re");
	if (!file)
		return MAX_THREADS;
	unsigned long long quota = 0, period = 0;
	int got = fscanf(file, "%llu %llu", &quota, &period);
	(void)fclose(file);
	if (got != 2 || period == 0)
		return MAX_THREADS;
	unsigned long long cpus = (quota + period - 1) / period;
	return cpus < 1 ? 1 : cpus > MAX_THREADS ? MAX_THREADS : (unsigned)cpus;
}

unsigned np_cpu_count(void)
{
	cpu_set_t set;
	unsigned count = 1;
	if (sched_getaffinity(0, sizeof set, &set) == 0)
		count = (unsigned)CPU_COUNT(&set);
	unsigned limit = cgroup_limit();
	if (count > limit)
		count = limit;
	return count ? count : 1;
}

struct pool {
	atomic_size_t next;
	size_t n;
	void (*job)(void *ctx, size_t i);
	void *ctx;
};

static void *work(void *arg)
{
	struct pool *pool = arg;
	for (;;) {
		size_t i = atomic_fetch_add(&pool->next, 1);
		if (i >= pool->n)
			return NULL;
		pool->job(pool->ctx, i);
	}
}

void np_pool_run(unsigned threads, size_t n, void (*job)(void *ctx, size_t i), void *ctx)
{
	struct pool pool = {.n = n, .job = job, .ctx = ctx};
	atomic_init(&pool.next, 0);
	if (threads == 0)
		threads = np_cpu_count();
	if (threads > n)
		threads = (unsigned)n;
	if (threads > MAX_THREADS)
		threads = MAX_THREADS;
	pthread_t ids[MAX_THREADS];
	unsigned started = 0;
	while (started + 1 < threads && pthread_create(&ids[started], NULL, work, &pool) == 0)
		started++;
	(void)work(&pool);
	for (unsigned i = 0; i < started; i++)
		(void)pthread_join(ids[i], NULL);
}
