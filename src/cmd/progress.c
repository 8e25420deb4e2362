#include "cmd/progress.h"

#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"

enum { FIRST_MS = 500, NEXT_MS = 200, SAMPLES = 32 };

struct np_progress_line {
	struct np_progress counters;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	bool stop, shown;
	/* of `done`, the last SAMPLES of them: a rate that follows the link, and does not jump */
	struct sample {
		size_t done;
		double at_s;
	} samples[SAMPLES];
	size_t n_samples;
};

/* "; 2.4/s, 5:25 left": empty until it is known. */
static void add_rate(struct np_progress_line *self, size_t done, size_t total, char *out,
                     size_t size)
{
	struct timespec now;
	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	struct sample last = {done, (double)now.tv_sec + (double)now.tv_nsec / 1e9};
	self->samples[self->n_samples++ % SAMPLES] = last;
	const struct sample *first =
		&self->samples[self->n_samples > SAMPLES ? self->n_samples % SAMPLES : 0];
	double seconds = last.at_s - first->at_s;
	*out = '\0';
	if (seconds < 1 || done <= first->done || done > total)
		return;
	double rate = (double)(done - first->done) / seconds;
	unsigned long left = (unsigned long)((double)(total - done) / rate + 0.5);
	(void)snprintf(out, size, "; %.1f/s, %lu:%02lu left", rate, left / 60, left % 60);
}

static void print_line(struct np_progress_line *self)
{
	const char *what = atomic_load(&self->counters.what);
	size_t done = atomic_load(&self->counters.done), total = atomic_load(&self->counters.total);
	if (!what || total == 0)
		return;
	char rate[64] = "";
	if (atomic_load(&self->counters.timed))
		add_rate(self, done, total, rate, sizeof rate);
	(void)fprintf(stderr, "\r%s %zu of %zu (%zu %%)%s\x1b[K", what, done, total,
	              done * 100 / total, rate);
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
