/*
 * Ctrl-C while something runs elsewhere: the first SIGINT, SIGTERM or SIGHUP sets a flag that
 * transports look at, so that far processes and connections are ended properly; the second one
 * has its usual effect.
 *
 * Threads: begin and end in the main thread.
 */
#ifndef NP_COLLECT_INTERRUPT_H
#define NP_COLLECT_INTERRUPT_H

#include <stdatomic.h>
#include <stdbool.h>

/* Take the signals; the flag is true once one came. A signal that is ignored stays ignored. */
const atomic_bool *np_interrupt_begin(void);

/* Give them back. Returns the signal that came, or 0: the caller may exit with 128 + it. */
int np_interrupt_end(void);

#endif
