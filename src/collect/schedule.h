/*
 * The state machine of torch_npu.profiler.schedule(), as arithmetic: no profiler
 * and no device is needed to know what K calls of prof.step() will record.
 *
 *   start()  step()  step()  step()  step()  stop()
 *     │        │       │       │       │       │
 *     ▼ step 0 ▼ step 1▼ step 2▼ step 3▼ step 4▼       K = 4 calls, steps 0 … K
 *       NONE    WARMUP  RECORD  REC&SAVE NONE
 *                                     └── on_trace_ready runs in call 4
 *
 * Step i is what runs under the mark ProfilerStep#i: from the i-th call (step 0: from
 * start()) to the next one, or to stop(). Its action is action(i). Where the loop calls
 * step() behind the work, step i is iteration i, and step K is empty.
 *
 * Everything takes constant time whatever the numbers are, but what lists steps.
 * Formulas: R65, R112 and the source of torch_npu: action() by schedule(), S_k by
 * S_k = skip_first + k·n − (skip_first_wait ≠ 0 ? wait : 0), n = wait + warmup + active.
 */
#ifndef NP_COLLECT_SCHEDULE_H
#define NP_COLLECT_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum np_step_action { NP_STEP_NONE, NP_STEP_WARMUP, NP_STEP_RECORD, NP_STEP_SAVE };

/* "NONE", "WARMUP", "RECORD", "RECORD_AND_SAVE": as ProfilerAction names them. */
const char *np_step_action_name(enum np_step_action action);

/* The parameters after torch_npu has looked at them. */
struct np_schedule {
	int64_t wait, warmup, active, repeat, skip_first, skip_first_wait;
};

enum {
	NP_SCHEDULE_PARAM_MAX = 10000000, /* repeat · n stays exact in a double, as in Python */
	NP_SCHEDULE_SKIP_MAX = 1000000000,
};
#define NP_SCHEDULE_STEPS_MAX INT64_C(1000000000000000)

/* What a person wrote: numbers that Python would take, also those it would refuse. */
enum np_schedule_field {
	NP_SCHEDULE_WAIT,
	NP_SCHEDULE_WARMUP,
	NP_SCHEDULE_ACTIVE,
	NP_SCHEDULE_REPEAT,
	NP_SCHEDULE_SKIP_FIRST,
	NP_SCHEDULE_SKIP_FIRST_WAIT,
	NP_SCHEDULE_FIELDS,
};
const char *np_schedule_field_name(enum np_schedule_field field); /* "skip_first_wait" */

/*
 * `words`: one per field, NULL for the default (active: 1, else 0). What torch_npu resets
 * is reset and marked in `reset` (wait, warmup, repeat, skip_first: no integer, or below
 * 0, become 0; active: no integer, or below 1, becomes 1; skip_first_wait: no integer
 * becomes 0). E_USAGE: a word that is no number at all, or one beyond the limits above.
 */
enum np_status np_schedule_parse(const char *const words[NP_SCHEDULE_FIELDS],
                                 struct np_schedule *out, bool reset[NP_SCHEDULE_FIELDS],
                                 struct np_err *err);

/* The action of step `step` ≥ 0. */
enum np_step_action np_schedule_action(const struct np_schedule *self, int64_t step);

/* The last step of the run of equal actions that `step` is in (a run of RECORD_AND_SAVE is
 * one step: the next one may be another cycle's); INT64_MAX when it does not end. */
int64_t np_schedule_run_end(const struct np_schedule *self, int64_t step);

/* S_k: in which call of step(), counted from 1, on_trace_ready runs for cycle k ≥ 1. */
int64_t np_schedule_saved_in(const struct np_schedule *self, int64_t cycle);

/* What becomes of the cycle at stop(). */
enum np_cycle_fate {
	NP_CYCLE_COMPLETE,
	NP_CYCLE_UNCLEAN, /* complete if the last step's work ran before stop(); W6 */
	NP_CYCLE_PARTIAL, /* only the first of its steps; W5 */
	NP_CYCLE_DELETED, /* its directory is removed; W4 */
	NP_CYCLE_NOT_REACHED,
};
const char *np_cycle_fate_name(enum np_cycle_fate fate); /* a word for people, NP_N() */

struct np_cycle {
	int64_t number;      /* from 1 */
	int64_t first, last; /* steps that record, by the schedule */
	int64_t recorded;    /* of them, by K calls: first … first + recorded − 1 */
	int64_t saved_in;    /* S_k */
	enum np_cycle_fate fate;
};
void np_schedule_cycle(const struct np_schedule *self, int64_t steps, int64_t number,
                       struct np_cycle *out);

/* What K calls of step() and then stop() give. */
struct np_schedule_end {
	enum np_step_action state; /* action(K): the one that stop() leaves */
	const char *warning;       /* what torch_npu prints then (W4, W5, W6); NULL: nothing */
	bool deleted;              /* the directory of the cycle that had begun is removed */
	int64_t ready;             /* how often on_trace_ready runs, that of stop() included */
	int64_t complete;          /* cycles that are complete */
	int64_t begun;             /* cycles with at least one step that records */
};
void np_schedule_finish(const struct np_schedule *self, int64_t steps, struct np_schedule_end *out);

/*
 * How many calls are needed. `data`: the fewest with the data of all cycles (S − 1, W6 is
 * printed); `clean`: S_repeat, the last on_trace_ready has run inside of step(); `advised`:
 * one more as margin (R65). Without an end (repeat 0) they are those of the first cycle, and
 * `advised` is S when one more call would begin another cycle but S does not.
 */
struct np_schedule_need {
	int64_t data, clean, advised;
};
struct np_schedule_need np_schedule_need(const struct np_schedule *self);

#endif
