/*
 * Many schedules in one process, for tests/e2e/collect_plan.py. A line of stdin
 *   wait warmup active repeat skip_first skip_first_wait K
 * gives a line
 *   state warning(-|W4|W5|W6) deleted ready complete data clean advised actions cycles
 * actions: a letter per step 0 … K. cycles: first-recorded-saved_in-fate of each one that
 * has begun, with commas.
 */
#include <stdio.h>
#include <string.h>

#include "collect/schedule.h"

static void put_cycles(const struct np_schedule *schedule, int64_t steps, int64_t begun)
{
	struct np_cycle cycle;
	for (int64_t k = 1; k <= begun; k++) {
		np_schedule_cycle(schedule, steps, k, &cycle);
		(void)printf("%s%lld-%lld-%lld-%d", k > 1 ? "," : "", (long long)cycle.first,
		             (long long)cycle.recorded, (long long)cycle.saved_in, (int)cycle.fate);
	}
	(void)printf("%s\n", begun ? "" : "-");
}

static void answer(const char *const words[NP_SCHEDULE_FIELDS], int64_t steps)
{
	static const char *const warnings[] = {"-", "W4", "W5", "W6"};
	struct np_schedule schedule;
	struct np_schedule_end end;
	bool reset[NP_SCHEDULE_FIELDS];
	struct np_err err = {0};
	if (np_schedule_parse(words, &schedule, reset, &err) != NP_OK) {
		(void)printf("error %s\n", err.msg);
		return;
	}
	struct np_schedule_need need = np_schedule_need(&schedule);
	np_schedule_finish(&schedule, steps, &end);
	(void)printf("%s %s %d %lld %lld %lld %lld %lld ", np_step_action_name(end.state),
	             end.warning ? warnings[end.state] : "-", end.deleted, (long long)end.ready,
	             (long long)end.complete, (long long)need.data, (long long)need.clean,
	             (long long)need.advised);
	for (int64_t i = 0, run = -1; i <= steps; i++) {
		enum np_step_action action = np_schedule_action(&schedule, i);
		/* what is told in one go must be the same as one by one */
		if (i > run)
			run = np_schedule_run_end(&schedule, i);
		else if (action != np_schedule_action(&schedule, i - 1))
			(void)printf("!");
		(void)printf("%c", "nwRS"[action]);
	}
	(void)printf(" ");
	put_cycles(&schedule, steps, end.begun);
}

int main(void)
{
	char w[NP_SCHEDULE_FIELDS][24];
	long long steps = 0;
	while (scanf("%23s %23s %23s %23s %23s %23s %lld", w[0], w[1], w[2], w[3], w[4], w[5],
	             &steps) == 7) {
		const char *const words[NP_SCHEDULE_FIELDS] = {w[0], w[1], w[2], w[3], w[4], w[5]};
		answer(words, steps);
	}
	return 0;
}
