/*
 * How far long work has come: counters that the work raises and somebody else
 * shows. Library code only counts; a command decides whether a person sees it.
 *
 * Threads: any number may raise and read. NULL is accepted everywhere.
 */
#ifndef NP_BASE_PROGRESS_H
#define NP_BASE_PROGRESS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct np_progress {
	_Atomic(const char *) what; /* "reading captures"; static text */
	atomic_size_t done, total;
	atomic_bool
		timed; /* each step is as much as the others: how many a second, and time left */
};

static inline void np_progress_begin(struct np_progress *self, const char *what, size_t total)
{
	if (!self)
		return;
	atomic_store(&self->done, 0);
	atomic_store(&self->total, total);
	atomic_store(&self->timed, false);
	atomic_store(&self->what, what);
}

static inline void np_progress_step(struct np_progress *self)
{
	if (self)
		atomic_fetch_add(&self->done, 1);
}

#endif
