#include "collect/schedule.h"

#include <string.h>

#include "base/str.h"
#include "report/lang.h"

const char *np_step_action_name(enum np_step_action action)
{
	static const char *const names[] = {"NONE", "WARMUP", "RECORD", "RECORD_AND_SAVE"};
	return names[action];
}

const char *np_schedule_field_name(enum np_schedule_field field)
{
	static const char *const names[] = {"wait",   "warmup",     "active",
	                                    "repeat", "skip_first", "skip_first_wait"};
	return names[field];
}

const char *np_cycle_fate_name(enum np_cycle_fate fate)
{
	static const char *const names[] = {NP_N("complete"), NP_N("complete, unclean exit"),
	                                    NP_N("incomplete"), NP_N("deleted"),
	                                    NP_N("not reached")};
	return names[fate];
}

/* ── parameters ── */

/* *is_int false: a number, but none that Python calls an int, which torch_npu resets. */
static enum np_status parse_word(enum np_schedule_field field, const char *word, int64_t *out,
                                 bool *is_int, struct np_err *err)
{
	double real = 0;
	int64_t max =
		field == NP_SCHEDULE_SKIP_FIRST ? NP_SCHEDULE_SKIP_MAX : NP_SCHEDULE_PARAM_MAX;
	*is_int = np_str_to_i64(np_str_of(word), out);
	if (!np_str_to_double(np_str_of(word), &real) && !*is_int)
		return np_err_set(err, NP_E_USAGE, NULL, "%s wants a number, got '%s'",
		                  np_schedule_field_name(field), word);
	if (*is_int)
		real = (double)*out;
	if (real > (double)max || real < -(double)max)
		return np_err_set(err, NP_E_USAGE, NULL, "%s is %s, at most %lld is supported",
		                  np_schedule_field_name(field), word, (long long)max);
	return NP_OK;
}

enum np_status np_schedule_parse(const char *const words[NP_SCHEDULE_FIELDS],
                                 struct np_schedule *out, bool reset[NP_SCHEDULE_FIELDS],
                                 struct np_err *err)
{
	int64_t values[NP_SCHEDULE_FIELDS];
	for (enum np_schedule_field i = 0; i < NP_SCHEDULE_FIELDS; i++) {
		int64_t smallest = i == NP_SCHEDULE_ACTIVE ? 1 : 0;
		bool is_int = true;
		values[i] = smallest;
		reset[i] = false;
		if (!words[i])
			continue;
		NP_TRY(parse_word(i, words[i], &values[i], &is_int, err));
		bool below = values[i] < smallest && i != NP_SCHEDULE_SKIP_FIRST_WAIT;
		reset[i] = !is_int || below;
		if (reset[i])
			values[i] = smallest;
	}
	*out = (struct np_schedule){.wait = values[NP_SCHEDULE_WAIT],
	                            .warmup = values[NP_SCHEDULE_WARMUP],
	                            .active = values[NP_SCHEDULE_ACTIVE],
	                            .repeat = values[NP_SCHEDULE_REPEAT],
	                            .skip_first = values[NP_SCHEDULE_SKIP_FIRST],
	                            .skip_first_wait = values[NP_SCHEDULE_SKIP_FIRST_WAIT]};
	return NP_OK;
}

/* ── actions ── */

static int64_t cycle_length(const struct np_schedule *self)
{
	return self->wait + self->warmup + self->active;
}

/* The first cycle has no wait phase: it begins that much later in its cycle. */
static int64_t ahead(const struct np_schedule *self)
{
	return self->skip_first_wait != 0 ? self->wait : 0;
}

enum np_step_action np_schedule_action(const struct np_schedule *self, int64_t step)
{
	int64_t n = cycle_length(self);
	if (step < self->skip_first)
		return NP_STEP_NONE;
	int64_t s = step - self->skip_first + ahead(self);
	if (self->repeat > 0 && s / n >= self->repeat)
		return NP_STEP_NONE;
	int64_t m = s % n;
	if (m < self->wait)
		return NP_STEP_NONE;
	if (m < self->wait + self->warmup)
		return NP_STEP_WARMUP;
	return m < n - 1 ? NP_STEP_RECORD : NP_STEP_SAVE;
}

int64_t np_schedule_run_end(const struct np_schedule *self, int64_t step)
{
	enum np_step_action action = np_schedule_action(self, step);
	int64_t n = cycle_length(self), cycle_start = 0, end = 0;
	if (self->repeat > 0 && step >= np_schedule_saved_in(self, self->repeat))
		return INT64_MAX;
	if (step < self->skip_first) {
		end = self->skip_first - 1;
		bool goes_on = np_schedule_action(self, self->skip_first) == NP_STEP_NONE;
		return goes_on ? np_schedule_run_end(self, self->skip_first) : end;
	}
	int64_t s = step - self->skip_first + ahead(self);
	cycle_start = step - s % n;
	switch (action) {
	case NP_STEP_NONE:
		return cycle_start + self->wait - 1;
	case NP_STEP_WARMUP:
		return cycle_start + self->wait + self->warmup - 1;
	case NP_STEP_RECORD:
		return cycle_start + n - 2;
	case NP_STEP_SAVE:
		break;
	}
	return step;
}

int64_t np_schedule_saved_in(const struct np_schedule *self, int64_t cycle)
{
	return self->skip_first + cycle * cycle_length(self) - ahead(self);
}

/* ── the end ── */

/* How many steps with RECORD_AND_SAVE lie before `step`: all of them are left by a step(). */
static int64_t saves_before(const struct np_schedule *self, int64_t step)
{
	if (step <= self->skip_first)
		return 0;
	int64_t done = (step - self->skip_first + ahead(self)) / cycle_length(self);
	return self->repeat > 0 && done > self->repeat ? self->repeat : done;
}

void np_schedule_cycle(const struct np_schedule *self, int64_t steps, int64_t number,
                       struct np_cycle *out)
{
	int64_t saved = np_schedule_saved_in(self, number);
	int64_t first = saved - self->active, warm = first - self->warmup;
	*out = (struct np_cycle){
		.number = number, .first = first, .last = saved - 1, .saved_in = saved};
	if (steps >= first)
		out->recorded = (steps < saved ? steps : saved - 1) - first + 1;
	if (steps >= saved)
		out->fate = NP_CYCLE_COMPLETE;
	else if (steps == saved - 1)
		out->fate = NP_CYCLE_UNCLEAN;
	else if (steps >= first)
		out->fate = NP_CYCLE_PARTIAL;
	else
		out->fate = steps >= warm ? NP_CYCLE_DELETED : NP_CYCLE_NOT_REACHED;
}

void np_schedule_finish(const struct np_schedule *self, int64_t steps, struct np_schedule_end *out)
{
	static const char *const warnings[] = {
		NULL,
		"Incorrect schedule: Stop profiler while current state is WARMUP which will "
		"result in empty parsed data.",
		"Incorrect schedule: Stop profiler while current state is RECORD which may "
		"result in incomplete parsed data.",
		"Stop profiler while current state is RECORD_AND_SAVE, perhaps the scheduling "
		"cycle has not yet completed.",
	};
	enum np_step_action state = np_schedule_action(self, steps);
	bool recording = state == NP_STEP_RECORD || state == NP_STEP_SAVE;
	int64_t saved = saves_before(self, steps);
	*out = (struct np_schedule_end){.state = state,
	                                .warning = warnings[state],
	                                .deleted = state == NP_STEP_WARMUP,
	                                .ready = saved + recording,
	                                .complete = saved + (state == NP_STEP_SAVE),
	                                .begun = saved + recording};
}

struct np_schedule_need np_schedule_need(const struct np_schedule *self)
{
	int64_t clean = np_schedule_saved_in(self, self->repeat > 0 ? self->repeat : 1);
	struct np_schedule_need need = {clean - 1, clean, clean + 1};
	bool here = np_schedule_action(self, clean) == NP_STEP_NONE;
	if (here && np_schedule_action(self, clean + 1) != NP_STEP_NONE)
		need.advised = clean;
	return need;
}
