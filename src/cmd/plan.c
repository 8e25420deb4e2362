#include <stdio.h>

#include "base/fs.h"
#include "cmd/cmd.h"
#include "collect/plan_schedule.h"
#include "collect/request.h"
#include "collect/route.h"
#include "collect/snippet.h"
#include "collect/window.h"

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

/* ── plan request ── */

struct request_options {
	const char *call, *request, *step;
	uint64_t per_request;
	const char *per_step;
};

#define AT(field) offsetof(struct request_options, field)

static const struct np_option request_options[] = {
	{"call", 'k', NP_OPT_STRING, AT(call), "K", "which request and step is call K, from 0"},
	{"request", 0, NP_OPT_STRING, AT(request), "R", "which calls are request R, from 1, …"},
	{"step", 0, NP_OPT_STRING, AT(step), "S", "… and its step S, from 1"},
	{"steps-per-request", 'n', NP_OPT_UINT, AT(per_request), "N",
         "num_inference_steps of a request"},
	{"forwards-per-step", 0, NP_OPT_STRING, AT(per_step), "F",
         "1, or 2 where guidance is a forward of its own (default: 1)"},
};
#undef AT

static enum np_status take_number(const char *option, const char *word, uint64_t *out,
                                  struct np_err *err)
{
	if (word && !np_str_to_u64(np_str_of(word), out))
		return np_err_set(err, NP_E_USAGE, NULL, "--%s wants a number, got '%s'", option,
		                  word);
	return NP_OK;
}

static enum np_status request_fill(const struct np_call *call, struct np_report *report,
                                   struct np_err *err)
{
	const struct request_options *own = call->options;
	struct np_plan_request plan = {.shape = {own->per_request, 1}, .by_call = own->call};
	bool by_step = own->request || own->step;
	if (!own->call == !by_step || (by_step && !(own->request && own->step)))
		return np_err_set(err, NP_E_USAGE, NULL,
		                  "give either --call, or --request and --step");
	NP_TRY(take_number("call", own->call, &plan.call, err));
	NP_TRY(take_number("request", own->request, &plan.request, err));
	NP_TRY(take_number("step", own->step, &plan.step, err));
	NP_TRY(take_number("forwards-per-step", own->per_step, &plan.shape.forwards_per_step, err));
	return np_plan_request(&plan, report, err);
}

static int request_run(const struct np_call *call)
{
	return run_plan(call, request_fill);
}

static const char *const request_examples[] = {
	"npuprof plan request --call 5 --steps-per-request 4",
	"npuprof plan request --request 2 --step 3 --steps-per-request 30 --forwards-per-step 2",
	NULL,
};

static const struct np_cmd verb_request = {
	.name = "plan request",
	.summary = "which request and denoising step a call of forward() is, and the reverse",
	.words = "",
	.examples = request_examples,
	.options = request_options,
	.n_options = sizeof request_options / sizeof *request_options,
	.options_size = sizeof(struct request_options),
	.run = request_run,
};

/* ── plan window ── */

struct window_options {
	const char *active, *ranks, *level, *disk;
	double step_ms;
	uint64_t kernels;
	bool with_stack;
};

#define AT(field) offsetof(struct window_options, field)

static const struct np_option window_options[] = {
	{"active", 0, NP_OPT_STRING, AT(active), "N", "recorded steps (default: 1)"},
	{"step-ms", 0, NP_OPT_DOUBLE, AT(step_ms), "MS", "how long a step takes"},
	{"kernels", 0, NP_OPT_UINT, AT(kernels), "N", "kernels per step and rank"},
	{"ranks", 0, NP_OPT_STRING, AT(ranks), "N", "ranks that record (default: 1)"},
	{"level", 0, NP_OPT_STRING, AT(level), "N", "profiler_level 0, 1 or 2 (default: 1)"},
	{"with-stack", 0, NP_OPT_FLAG, AT(with_stack), NULL, "Python stacks are recorded"},
	{"disk-free", 0, NP_OPT_STRING, AT(disk), "DIR", "judge whether DIR has the space"},
};
#undef AT

static enum np_status window_fill(const struct np_call *call, struct np_report *report,
                                  struct np_err *err)
{
	const struct window_options *own = call->options;
	uint64_t level = 1;
	struct np_plan_window plan = {.active = 1,
	                              .ranks = 1,
	                              .with_stack = own->with_stack,
	                              .step_ms = own->step_ms,
	                              .kernels = own->kernels,
	                              .disk = own->disk};
	NP_TRY(take_number("active", own->active, &plan.active, err));
	NP_TRY(take_number("ranks", own->ranks, &plan.ranks, err));
	NP_TRY(take_number("level", own->level, &level, err));
	plan.level = level > 2 ? 3 : (int)level;
	return np_plan_window(&plan, report, err);
}

static int window_run(const struct np_call *call)
{
	return run_plan(call, window_fill);
}

static const char *const window_examples[] = {
	"npuprof plan window --active 10 --step-ms 45 --kernels 3500 --ranks 8",
	"npuprof plan window --active 3 --step-ms 900 --ranks 64 --disk-free /data/prof",
	NULL,
};

static const struct np_cmd verb_window = {
	.name = "plan window",
	.summary = "how large a capture will be, from observed rates",
	.words = "",
	.detail = "With --disk-free the exit status is 1 when even the lower end does not fit, 3 "
		  "when only\n"
		  "that fits.",
	.examples = window_examples,
	.options = window_options,
	.n_options = sizeof window_options / sizeof *window_options,
	.options_size = sizeof(struct window_options),
	.run = window_run,
};

/* ── plan snippet ── */

#define AT(field) offsetof(struct np_snippet_words, field)

static const struct np_option snippet_options[] = {
	{"for", 0, NP_OPT_STRING, AT(target), "WHAT", "torch_npu, msprof, vllm, dynamic or path-a"},
	{"phase", 0, NP_OPT_STRING, AT(phase), "PHASE", "prefill, decode, both or separate"},
	{"profile", 0, NP_OPT_STRING, AT(profile), "WHAT", "kernel or cluster (default: kernel)"},
	{"active", 0, NP_OPT_STRING, AT(active), "N", "recorded steps or calls"},
	{"warmup", 0, NP_OPT_STRING, AT(warmup), "N", "steps or calls before them"},
	{"out-dir", 0, NP_OPT_STRING, AT(out_dir), "DIR", "where the captures go"},
	{"rank-list", 0, NP_OPT_STRING, AT(rank_list), "LIST",
         "ranks that record, as 0,8-15 (default: 0; cluster and dynamic: all)"},
	{"level", 0, NP_OPT_STRING, AT(level), "N", "profiler_level 1 or 2 (default: 1)"},
	{"aic-metrics", 0, NP_OPT_STRING, AT(aic_metrics), "NAME",
         "PMU group (default: PipeUtilization; cluster: AiCoreNone)"},
};
#undef AT

static enum np_status put_snippet(const struct np_call *call, const struct np_buf *code,
                                  struct np_err *err)
{
	struct np_outfile file;
	if (!call->common->output) {
		(void)fwrite(code->ptr, 1, code->len, stdout);
		return NP_OK; /* np_main looks at stdout's state at the end */
	}
	NP_TRY(np_outfile_begin(&file, call->common->output, err));
	(void)fwrite(code->ptr, 1, code->len, file.file);
	return np_outfile_commit(&file, err);
}

static int snippet_run(const struct np_call *call)
{
	struct np_buf code = {0}, talk = {0};
	struct np_snippet snippet = {0};
	struct np_err err = {0};
	enum np_status status = NP_OK;
	if (call->common->json || call->common->format || call->common->table)
		status = np_err_set(&err, NP_E_USAGE, NULL,
		                    "a snippet is code: --json, --format and --table do not go "
		                    "with it");
	if (status == NP_OK)
		status = np_snippet_choose(call->options, &snippet, &err);
	if (status == NP_OK) {
		np_snippet_write(&snippet, &code, &talk);
		status = code.failed || talk.failed ? np_err_nomem(&err) : NP_OK;
	}
	if (status == NP_OK)
		status = put_snippet(call, &code, &err);
	if (status == NP_OK && !call->common->quiet)
		(void)fputs(talk.ptr, stderr);
	np_snippet_release(&snippet);
	np_buf_release(&code);
	np_buf_release(&talk);
	return status == NP_OK ? NP_EXIT_OK : np_cmd_fail(&err);
}

static const char *const snippet_examples[] = {
	"npuprof plan snippet --for torch_npu --phase decode --active 10 -o profile_run.py",
	"npuprof plan snippet --for dynamic --profile cluster --rank-list 0,8 > "
	"profiler_config.json",
	NULL,
};

static const struct np_cmd verb_snippet = {
	.name = "plan snippet",
	.summary = "code or configuration to copy, for what the capture is for",
	.words = "",
	.detail = "The snippet alone goes to stdout or to -o FILE; what to do with it is told on "
		  "stderr.\n"
		  "kernel: utilisation of the units, one rank. cluster: communication, all ranks, "
		  "small.",
	.examples = snippet_examples,
	.options = snippet_options,
	.n_options = sizeof snippet_options / sizeof *snippet_options,
	.options_size = sizeof(struct np_snippet_words),
	.run = snippet_run,
};

/* ── plan route ── */

static enum np_status route_fill(const struct np_call *call, struct np_report *report,
                                 struct np_err *err)
{
	return np_plan_route(call->argv[0], report, err);
}

static int route_run(const struct np_call *call)
{
	return run_plan(call, route_fill);
}

static const char *const route_examples[] = {
	"npuprof plan route ~/src/cann-recipes-infer",
	NULL,
};

static const struct np_cmd verb_route = {
	.name = "plan route",
	.summary = "is a profiler wired into this source tree, and what to do then",
	.words = "DIR",
	.min_words = 1,
	.max_words = 1,
	.detail = "A: switch on the framework's own profiler. B: inject one. With the evidence, "
		  "and the steps\n"
		  "by which the result is accepted. Exit status 3: B, but not everything could be "
		  "read.",
	.examples = route_examples,
	.options_size = 1,
	.run = route_run,
};

/* ── the command ── */

static const struct np_cmd *const verbs[] = {&verb_schedule, &verb_request, &verb_window,
                                             &verb_snippet, &verb_route};

const struct np_cmd np_cmd_plan = {
	.name = "plan",
	.summary = "plan a capture: the schedule, the window, the code, the way in",
	.words = "",
	.options_size = 1,
	.verbs = verbs,
	.n_verbs = sizeof verbs / sizeof *verbs,
};
