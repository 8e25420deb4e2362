#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cmd/progress.h"
#include "cmd/run_options.h"
#include "collect/run.h"

struct options {
	struct np_run_words run;
	const char *out, *name, *watch, *finish;
	bool list_presets;
};

#define AT(field) offsetof(struct options, field)

static const struct np_option options[] = {
	NP_RUN_OPTIONS(struct options, run),
	{"list-presets", 0, NP_OPT_FLAG, AT(list_presets), NULL, "tell all presets"},
	{"watch", 0, NP_OPT_STRING, AT(watch), "DIR",
         "the command records by itself, below DIR: judge what is new there"},
	{"out", 0, NP_OPT_STRING, AT(out), "DIR",
         "parent of run directories (default: npuprof-runs)"},
	{"name", 0, NP_OPT_STRING, AT(name), "NAME",
         "the run directory is NAME_<time> (default: the preset or script)"},
	{"finish", 0, NP_OPT_STRING, AT(finish), "RUN",
         "export and judge the directory of an earlier run; no command"},
};

static void say(const char *line)
{
	np_cmd_complain("", line);
}

/* One JSON document on stdout must stay one: the command's output then goes to stderr. */
static int out_fd(const struct np_common *common)
{
	bool text = !common->json && (!common->format || strcmp(common->format, "text") == 0);
	return common->output || text ? STDOUT_FILENO : STDERR_FILENO;
}

static void translate(const struct np_call *call, struct np_run_options *out)
{
	const struct options *own = call->options;
	*out = (struct np_run_options){
		.out = own->out,
		.name = own->name,
		.preset = own->run.preset,
		.targets = own->run.targets.v,
		.n_targets = own->run.targets.n,
		.stages = own->run.stages.v,
		.n_stages = own->run.stages.n,
		.step_anchor = own->run.step_anchor,
		.request_anchor = own->run.request_anchor,
		.call = own->run.call,
		.warmup = own->run.warmup,
		.active = own->run.active,
		.ranks = own->run.ranks,
		.level = own->run.level,
		.aic_metrics = own->run.aic_metrics,
		.phase = own->run.phase,
		.export_type = own->run.export_type,
		.compile = own->run.compile,
		.with_stack = own->run.with_stack,
		.no_shapes = own->run.no_shapes && !own->run.with_shapes,
		.with_memory = own->run.with_memory,
		.collectives = own->run.collectives,
		.watch = own->watch,
		.pre_check = own->run.pre_check,
		.python = own->run.python,
		.profile = own->run.profile,
		.no_export = own->run.no_export,
		.no_check = own->run.no_check,
		.stop_after_capture = own->run.stop_after_capture,
		.timeout_s = own->run.timeout,
		.export_timeout_s = own->run.export_timeout,
		.grace_s = own->run.grace,
		.command = call->command,
		.out_fd = out_fd(call->common),
		.err_fd = STDERR_FILENO,
		.say = call->common->quiet ? NULL : say,
		.threads = (unsigned)call->common->jobs,
	};
}

static enum np_status fill(const struct np_call *call, struct np_report *report, struct np_err *err)
{
	const struct options *own = call->options;
	struct np_run_options run;
	if (own->list_presets) {
		np_run_list_presets(report);
		return NP_OK;
	}
	translate(call, &run);
	if (own->finish && call->n_command)
		return np_err_set(err, NP_E_USAGE, "--finish", "takes no command");
	if (own->finish)
		return np_run_finish(own->finish, &run, report, err);
	if (call->n_command == 0)
		return np_err_set(err, NP_E_USAGE, NULL,
		                  "no command was given: npuprof run [options] -- CMD "
		                  "(npuprof help run)");
	return np_run(&run, report, err);
}

static int run_run(const struct np_call *call)
{
	/* a terminal that is closed must not end what runs for hours */
	(void)signal(SIGPIPE, SIG_IGN);
	return np_cmd_run_report(call, fill);
}

static const char *const examples[] = {
	"npuprof run --target mymodel.dit:DiT.forward -- python3 infer.py",
	"npuprof run --preset lightx2v --target MODULE:CLASS.infer --compile -- torchrun run.py",
	"npuprof run --list-presets",
	"npuprof run --finish npuprof-runs/infer_20260919T080000Z --python /opt/venv/bin/python",
	NULL,
};

const struct np_cmd np_cmd_run = {
	.name = "run",
	.summary = "run a command with the profiler injected, export and judge the result",
	.words = "-- CMD…",
	.max_words = 0,
	.takes_command = true,
	.detail =
		"Nothing in the command's tree is changed: the hook comes through PYTHONPATH, also "
		"into\n"
		"processes that are forked, spawned or started by torchrun. After the warm-up one "
		"call\n"
		"is recorded, exported in a process of its own, and judged by the gate. Exit "
		"status:\n"
		"0 the command succeeded and the gate passed, 1 one of both failed or nothing was\n"
		"recorded, 2 usage, no such command, or the pre-check failed, 3 not judged, 4 the "
		"run\n"
		"directory cannot be written.",
	.examples = examples,
	.options = options,
	.n_options = sizeof options / sizeof *options,
	.options_size = sizeof(struct options),
	.run = run_run,
};
