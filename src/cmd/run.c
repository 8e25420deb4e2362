#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cmd/progress.h"
#include "collect/run.h"

struct options {
	struct np_opt_list targets, stages;
	const char *preset, *warmup, *ranks, *level, *aic_metrics, *phase, *export_type, *out,
		*name, *step_anchor, *pre_check, *python, *profile, *watch, *finish;
	uint64_t active, call;
	double timeout, export_timeout, grace;
	bool compile, with_stack, with_shapes, no_shapes, with_memory, collectives, no_export,
		no_check, stop_after_capture, list_presets;
};

#define AT(field) offsetof(struct options, field)

static const struct np_option options[] = {
	{"target", 0, NP_OPT_LIST, AT(targets), "MODULE:NAME",
         "the call to record, as pkg.dit:DiT.forward; may be given several times"},
	{"preset", 0, NP_OPT_STRING, AT(preset), "NAME", "what is known of a framework"},
	{"list-presets", 0, NP_OPT_FLAG, AT(list_presets), NULL, "tell all presets"},
	{"warmup", 0, NP_OPT_STRING, AT(warmup), "N",
         "calls before the recorded one (default: 5, or the preset's)"},
	{"compile", 0, NP_OPT_FLAG, AT(compile), NULL, "a compiler is at work: warm up 10 calls"},
	{"active", 0, NP_OPT_UINT, AT(active), "N", "calls in a row to record (default: 1)"},
	{"call", 0, NP_OPT_UINT, AT(call), "K",
         "record from call K on, counted from 1 (default: warm-up + 1)"},
	{"ranks", 0, NP_OPT_STRING, AT(ranks), "LIST", "all, or as 0,2,4-7 (default: 0)"},
	{"phase", 0, NP_OPT_STRING, AT(phase), "WHAT", "prefill, decode or both (default: both)"},
	{"level", 0, NP_OPT_STRING, AT(level), "LEVEL",
         "Level0, Level1, Level2 or Level_none (default: Level1)"},
	{"aic-metrics", 0, NP_OPT_STRING, AT(aic_metrics), "NAME",
         "unit counters (default: PipeUtilization)"},
	{"with-stack", 0, NP_OPT_FLAG, AT(with_stack), NULL, "record Python call stacks"},
	{"with-shapes", 0, NP_OPT_FLAG, AT(with_shapes), NULL, "record input shapes (the default)"},
	{"no-shapes", 0, NP_OPT_FLAG, AT(no_shapes), NULL, "do not record input shapes"},
	{"with-memory", 0, NP_OPT_FLAG, AT(with_memory), NULL, "record memory"},
	{"export-type", 0, NP_OPT_STRING, AT(export_type), "LIST",
         "text, db or text,db (default: text)"},
	{"collectives", 0, NP_OPT_FLAG, AT(collectives), NULL, "record every collective as well"},
	{"stage", 0, NP_OPT_LIST, AT(stages), "NAME=MODULE:NAME",
         "a stage of the collectives; may be given several times"},
	{"step-anchor", 0, NP_OPT_STRING, AT(step_anchor), "NAME",
         "the stage whose calls count steps (default: the first)"},
	{"watch", 0, NP_OPT_STRING, AT(watch), "DIR",
         "the command records by itself, below DIR: judge what is new there"},
	{"out", 0, NP_OPT_STRING, AT(out), "DIR",
         "parent of run directories (default: npuprof-runs)"},
	{"name", 0, NP_OPT_STRING, AT(name), "NAME",
         "the run directory is NAME_<time> (default: the preset or script)"},
	{"pre-check", 0, NP_OPT_STRING, AT(pre_check), "CMD",
         "run it by sh -c first; it must end with 0 and print something"},
	{"timeout", 0, NP_OPT_DOUBLE, AT(timeout), "SECONDS",
         "end the command then (default: never)"},
	{"stop-after-capture", 0, NP_OPT_FLAG, AT(stop_after_capture), NULL,
         "end the command once all ranks have recorded: for servers"},
	{"grace", 0, NP_OPT_DOUBLE, AT(grace), "SECONDS",
         "from SIGTERM to SIGKILL when npuprof ends it (default: 30)"},
	{"python", 0, NP_OPT_STRING, AT(python), "PYTHON",
         "a Python with torch_npu, for the export (default: the command's)"},
	{"export-timeout", 0, NP_OPT_DOUBLE, AT(export_timeout), "SECONDS",
         "per export (default: 1800)"},
	{"no-export", 0, NP_OPT_FLAG, AT(no_export), NULL, "keep the raw dump only"},
	{"profile", 0, NP_OPT_STRING, AT(profile), "WHAT",
         "of the gate: kernel, framework or cluster (default: by the configuration)"},
	{"no-check", 0, NP_OPT_FLAG, AT(no_check), NULL, "do not judge; never a pass"},
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
		.preset = own->preset,
		.targets = own->targets.v,
		.n_targets = own->targets.n,
		.stages = own->stages.v,
		.n_stages = own->stages.n,
		.step_anchor = own->step_anchor,
		.call = own->call,
		.warmup = own->warmup,
		.active = own->active,
		.ranks = own->ranks,
		.level = own->level,
		.aic_metrics = own->aic_metrics,
		.phase = own->phase,
		.export_type = own->export_type,
		.compile = own->compile,
		.with_stack = own->with_stack,
		.no_shapes = own->no_shapes && !own->with_shapes,
		.with_memory = own->with_memory,
		.collectives = own->collectives,
		.watch = own->watch,
		.pre_check = own->pre_check,
		.python = own->python,
		.profile = own->profile,
		.no_export = own->no_export,
		.no_check = own->no_check,
		.stop_after_capture = own->stop_after_capture,
		.timeout_s = own->timeout,
		.export_timeout_s = own->export_timeout,
		.grace_s = own->grace,
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
