#include <stdio.h>

#include "cmd/cmd.h"
#include "collect/plan_schedule.h"

/* ── plan schedule ── */

struct schedule_options {
	const char *wait, *warmup, *active, *repeat, *skip_first, *skip_first_wait, *steps;
};

#define AT(field) offsetof(struct schedule_options, field)

static const struct np_option schedule_options[] = {
	{"wait", 0, NP_OPT_STRING, AT(wait), "N",
         "steps without profiling, per cycle (default: 0)"},
	{"warmup", 0, NP_OPT_STRING, AT(warmup), "N", "steps of warm-up, per cycle (default: 0)"},
	{"active", 0, NP_OPT_STRING, AT(active), "N", "recorded steps, per cycle (default: 1)"},
	{"repeat", 0, NP_OPT_STRING, AT(repeat), "N",
         "cycles; 0: without end (default: 0, as torch_npu has it)"},
	{"skip-first", 0, NP_OPT_STRING, AT(skip_first), "N",
         "steps before the first cycle (default: 0)"},
	{"skip-first-wait", 0, NP_OPT_STRING, AT(skip_first_wait), "N",
         "not 0: no wait in the first cycle (default: 0)"},
	{"steps", 'k', NP_OPT_STRING, AT(steps), "K",
         "calls of prof.step(); judges whether they are enough"},
};
#undef AT

static enum np_status schedule_fill(const struct np_call *call, struct np_report *report,
                                    struct np_err *err)
{
	const struct schedule_options *own = call->options;
	struct np_plan_schedule plan = {
		.words = {[NP_SCHEDULE_WAIT] = own->wait,
	                  [NP_SCHEDULE_WARMUP] = own->warmup,
	                  [NP_SCHEDULE_ACTIVE] = own->active,
	                  [NP_SCHEDULE_REPEAT] = own->repeat,
	                  [NP_SCHEDULE_SKIP_FIRST] = own->skip_first,
	                  [NP_SCHEDULE_SKIP_FIRST_WAIT] = own->skip_first_wait},
		.has_steps = own->steps,
		.width = np_cmd_width(call->common),
	};
	if (own->steps && !np_str_to_u64(np_str_of(own->steps), &plan.steps))
		return np_err_set(err, NP_E_USAGE, NULL, "--steps wants a number, got '%s'",
		                  own->steps);
	return np_plan_schedule(&plan, report, err);
}

/* As np_cmd_run_report(), but of long tables people see the beginning. */
static int run_plan(const struct np_call *call, np_cmd_fill *fill)
{
	enum { ROWS_SHOWN = 16 };
	struct np_err err = {0};
	struct np_report *report = np_report_new(call->cmd->name);
	enum np_status status = report ? fill(call, report, &err) : np_err_nomem(&err);
	int exit_code = status == NP_OK
	                        ? np_cmd_finish_as(call, report,
	                                           &(struct np_finish){.max_rows = ROWS_SHOWN})
	                        : np_cmd_fail(&err);
	np_report_free(report);
	return exit_code;
}

static int schedule_run(const struct np_call *call)
{
	return run_plan(call, schedule_fill);
}

static const char *const schedule_examples[] = {
	"npuprof plan schedule --skip-first 10 --warmup 1 --active 3 --repeat 1",
	"npuprof plan schedule --warmup 2 --active 30 --repeat 1 --steps 32",
	NULL,
};

static const struct np_cmd verb_schedule = {
	.name = "plan schedule",
	.summary = "what a schedule records, and how many calls of prof.step() it needs",
	.words = "",
	.detail = "Follows torch_npu's own state machine. With --steps the exit status is 1 when "
		  "data will be\n"
		  "missing or incomplete; without it the recommended number is planned for.",
	.examples = schedule_examples,
	.options = schedule_options,
	.n_options = sizeof schedule_options / sizeof *schedule_options,
	.options_size = sizeof(struct schedule_options),
	.run = schedule_run,
};

/* ── the command ── */

static const struct np_cmd *const verbs[] = {&verb_schedule};

const struct np_cmd np_cmd_plan = {
	.name = "plan",
	.summary = "plan a capture: the schedule, the window, the code, the way in",
	.words = "",
	.options_size = 1,
	.verbs = verbs,
	.n_verbs = sizeof verbs / sizeof *verbs,
};
