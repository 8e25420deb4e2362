#include "collect/interrupt.h"

#include <signal.h>
#include <stddef.h>

static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
enum { N_SIGNALS = sizeof signals / sizeof *signals };

static struct sigaction before[N_SIGNALS];
static atomic_bool came;
static atomic_int which;

static void note(int sig)
{
	atomic_store(&which, sig);
	atomic_store(&came, true);
}

const atomic_bool *np_interrupt_begin(void)
{
	struct sigaction action = {.sa_handler = note, .sa_flags = (int)SA_RESETHAND};
	(void)sigemptyset(&action.sa_mask);
	atomic_store(&came, false);
	atomic_store(&which, 0);
	for (size_t i = 0; i < N_SIGNALS; i++) {
		(void)sigaction(signals[i], NULL, &before[i]);
		if (before[i].sa_handler != SIG_IGN)
			(void)sigaction(signals[i], &action, NULL);
	}
	return &came;
}

int np_interrupt_end(void)
{
	for (size_t i = 0; i < N_SIGNALS; i++)
		(void)sigaction(signals[i], &before[i], NULL);
	return atomic_load(&which);
}
