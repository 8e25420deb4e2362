#include "cmd/progress.h"

#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "base/mem.h"

enum { FIRST_MS = 500, NEXT_MS = 200 };

struct np_progress_line {
	struct np_progress counters;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	bool stop, shown;
};

static void print_line(struct np_progress_line *self)
{
	const char *what = atomic_load(&self->counters.what);
	size_t done = atomic_load(&self->counters.done), total = atomic_load(&self->counters.total);
	if (!what || total == 0)
		return;
	(void)fprintf(stderr, "\r%s %zu of %zu (%zu %%)\x1b[K", what, done, total,
	              done * 100 / total);
	(void)fflush(stderr);
	self->shown = true;
}

static void *draw(void *arg)
{
	struct np_progress_line *self = arg;
	int wait_ms = FIRST_MS;
	(void)pthread_mutex_lock(&self->lock);
	while (!self->stop) {
		struct timespec until;
		(void)clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += wait_ms * 1000000L;
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
		(void)pthread_cond_timedwait(&self->wake, &self->lock, &until);
		if (!self->stop)
			print_line(self);
		wait_ms = NEXT_MS;
	}
	(void)pthread_mutex_unlock(&self->lock);
	return NULL;
}

struct np_progress_line *np_progress_show(const struct np_common *common)
{
	if (common->quiet || common->no_progress || !isatty(STDERR_FILENO))
		return NULL;
	struct np_progress_line *self = np_calloc(1, sizeof *self);
	if (!self)
		return NULL;
	(void)pthread_mutex_init(&self->lock, NULL);
	(void)pthread_cond_init(&self->wake, NULL);
	if (pthread_create(&self->thread, NULL, draw, self) != 0) {
		np_free(self);
		return NULL;
	}
	return self;
}

struct np_progress *np_progress_of(struct np_progress_line *self)
{
	return self ? &self->counters : NULL;
}

void np_progress_hide(struct np_progress_line *self)
{
	if (!self)
		return;
	(void)pthread_mutex_lock(&self->lock);
	self->stop = true;
	(void)pthread_cond_signal(&self->wake);
	(void)pthread_mutex_unlock(&self->lock);
	(void)pthread_join(self->thread, NULL);
	if (self->shown)
		(void)fprintf(stderr, "\r\x1b[K");
	(void)pthread_cond_destroy(&self->wake);
	(void)pthread_mutex_destroy(&self->lock);
	np_free(self);
}
