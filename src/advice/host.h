/*
 * Calls of the host that a checker looks at: what they cost, and who made them.
 * Private to src/advice/.
 *
 * They are judged over the whole capture of the rank, and told per step of it,
 * so that a rare call is not missed because another step was looked at.
 */
#ifndef NP_ADVICE_HOST_H
#define NP_ADVICE_HOST_H

#include "advice/checker.h"

struct np_host_calls {
	NP_VEC(uint32_t) rows; /* of host_ops, in order of start */
	np_ns total;
	uint32_t longest; /* row; only with rows.n > 0 */
};

/* false: out of memory */
bool np_host_calls_add(struct np_host_calls *self, const struct np_host_ops *ops, uint32_t row);
void np_host_calls_release(struct np_host_calls *self);

/* All calls of this layer with one of these names; names end with NULL. Out of memory is
 * noted in `self`. */
void np_host_calls_named(struct np_advice *self, enum np_host_layer layer, const char *const *names,
                         struct np_host_calls *out);

/* Steps with kernels in the capture, at least 1. */
unsigned np_capture_steps(const struct np_advice *self);

/*
 * count and total; and as upper bound of the gain the time in which the device was idle
 * while the calls ran: what a call hides behind queued work costs nothing.
 */
void np_host_calls_worth(struct np_advice *self, const struct np_host_calls *calls,
                         struct np_problem_text *text);

/* Evidence: in which framework operators they were, and the user's code of the longest. */
void np_host_calls_evidence(struct np_advice *self, const struct np_host_calls *calls,
                            struct np_finding *finding);

/* Of a call stack "file(line): function;…" the innermost frames that are not of an installed
 * package, at most `most`, on one line; all are of packages: the innermost. */
void np_user_frames(np_str stack, unsigned most, struct np_buf *out);

/* Idle time of the steps looked at, us per step. */
double np_free_us(const struct np_advice *self);

#endif
