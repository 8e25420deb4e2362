/*
 * Which request and denoising step the k-th call of a model's forward belongs to, and
 * the other way round (R32, R113).
 *
 *   call (from 0)   0   1   2   3 │ 4   5   6   7 │ 8 …     n = 4 steps per request
 *   request         1             │ 2             │ 3       one forward per step
 *   step            1   2   3   4 │ 1   2   3   4 │ 1
 *
 * Calls are counted from 0, requests, steps and forwards of a step from 1. Classifier-free
 * guidance done as two forwards makes two calls of one step.
 */
#ifndef NP_COLLECT_REQUEST_H
#define NP_COLLECT_REQUEST_H

#include "base/err.h"
#include "report/report.h"

struct np_request_shape {
	uint64_t steps_per_request; /* n ≥ 1 */
	uint64_t forwards_per_step; /* 1 or 2 */
};

enum { NP_REQUEST_STEPS_MAX = 1000000 };
#define NP_REQUEST_CALL_MAX UINT64_C(1000000000000000)

struct np_request_place {
	uint64_t call;    /* from 0 */
	uint64_t request; /* from 1; also how many requests are needed */
	uint64_t step;    /* from 1 */
	uint64_t forward; /* from 1 */
};

struct np_request_place np_request_of_call(const struct np_request_shape *shape, uint64_t call);
/* forward ≥ 1. The reverse of np_request_of_call() for places that exist. */
uint64_t np_request_call_of(const struct np_request_shape *shape, uint64_t request, uint64_t step,
                            uint64_t forward);

/* `plan request`: `by_call` asks for the place of `call`, else for the calls of
 * (request, step). E_USAGE: a number is out of range. */
struct np_plan_request {
	struct np_request_shape shape;
	bool by_call;
	uint64_t call, request, step;
};
enum np_status np_plan_request(const struct np_plan_request *self, struct np_report *report,
                               struct np_err *err);

#endif
