/*
 * `plan schedule`: what a schedule records in K calls of prof.step(), as a report.
 *
 * Tables: summary (one row), need (how many calls), picture (a character per step),
 * cycles, schedule (step, action). The long ones are bounded and say so.
 */
#ifndef NP_COLLECT_PLAN_SCHEDULE_H
#define NP_COLLECT_PLAN_SCHEDULE_H

#include "collect/schedule.h"
#include "report/report.h"

struct np_plan_schedule {
	const char *words[NP_SCHEDULE_FIELDS]; /* as np_schedule_parse() takes them */
	bool has_steps; /* else the advised number of calls, and nothing is judged */
	uint64_t steps; /* K */
	unsigned width; /* columns for the picture; 0: 50 steps per line */
};

/* With has_steps the verdict is FAIL and the exit code 1 when data will be missing or
 * incomplete (SCHEDULE_INCOMPLETE). E_USAGE: np_schedule_parse(), or K is too great. */
enum np_status np_plan_schedule(const struct np_plan_schedule *self, struct np_report *report,
                                struct np_err *err);

#endif
