#include "collect/collect.h"

#include <signal.h>
#include <string.h>

#include "cmd/remote.h"
#include "cmd/run_options.h"
#include "collect/interrupt.h"

struct options {
	struct np_remote_options remote;
	struct np_run_words run;
	struct np_opt_list arms, env;
	const char *out, *container, *workspace, *deploy, *chdir, *devices, *set_env, *port_range,
		*remote_npuprof, *resume;
	double poll, patience;
	bool span_groups, no_pull, keep_raw, selftest;
};

#define AT(field) offsetof(struct options, field)

static const struct np_option run_options[] = {NP_RUN_OPTIONS(struct options, run)};

static const struct np_option options[] = {
	{"out", 0, NP_OPT_STRING, AT(out), "DIR", "directory here (default: npuprof-collect)"},
	{"resume", 0, NP_OPT_STRING, AT(resume), "DIR",
         "go on where a collect into DIR was ended; no HOST, no command"},
	{"workspace", 0, NP_OPT_STRING, AT(workspace), "DIR",
         "directory there (default: ~/npuprof)"},
	{"deploy", 0, NP_OPT_STRING, AT(deploy), "PATH",
         "bring this tree into the workspace first, and run the command in it"},
	{"chdir", 0, NP_OPT_STRING, AT(chdir), "DIR",
         "run the command there (default: the deployed tree, else the workspace)"},
	{"devices", 0, NP_OPT_STRING, AT(devices), "WHAT",
         "N free ones, a list as 0,1 or id:3, or none (default: --nproc_per_node, else 1)"},
	{"span-groups", 0, NP_OPT_FLAG, AT(span_groups), NULL,
         "devices may be of several groups, linked by PCIe"},
	{"arm", 0, NP_OPT_LIST, AT(arms), "NAME=WORDS",
         "run once per arm: NAME=VALUE words are its environment, others replace {options}"},
	{"env", 0, NP_OPT_LIST, AT(env), "NAME=VALUE", "in the command's environment"},
	{"set-env", 0, NP_OPT_STRING, AT(set_env), "FILE",
         "script to source there, or none (default: the toolkit's set_env.sh)"},
	{"port-range", 0, NP_OPT_STRING, AT(port_range), "FROM-TO",
         "HCCL_NPU_SOCKET_PORT_RANGE (default: 20000-21000)"},
	{"remote-npuprof", 0, NP_OPT_STRING, AT(remote_npuprof), "PATH",
         "an npuprof that is installed there (default: send this one)"},
	{"keep-raw", 0, NP_OPT_FLAG, AT(keep_raw), NULL, "fetch the raw data, too"},
	{"no-pull", 0, NP_OPT_FLAG, AT(no_pull), NULL, "fetch nothing; never a pass"},
	{"poll", 0, NP_OPT_DOUBLE, AT(poll), "SECONDS", "between looks at a run (default: 2)"},
	{"patience", 0, NP_OPT_DOUBLE, AT(patience), "SECONDS",
         "that a lost connection may stay lost (default: 600)"},
	{"selftest", 0, NP_OPT_FLAG, AT(selftest), NULL, "judge fixtures with known answers"},
	NP_RUN_OPTIONS(struct options, run),
	{"container", 0, NP_OPT_STRING, AT(container), "NAME",
         "in this container there; docker:NAME or podman:NAME choose"},
	NP_REMOTE_OPTIONS(AT(remote)),
};

static void say(const char *line)
{
	np_cmd_complain("", line);
}

static enum np_status name_hosts(const struct np_call *call, struct np_hosts *hosts,
                                 const char *const **out, struct np_arena *arena,
                                 struct np_err *err)
{
	const struct options *own = call->options;
	NP_TRY(np_remote_hosts(&own->remote, call->argc ? call->argv[0] : NULL, hosts, err));
	const char **names = np_arena_zalloc(arena, (hosts->v.n + 1) * sizeof *names);
	if (!names)
		return np_err_nomem(err);
	for (size_t i = 0; i < hosts->v.n; i++)
		names[i] = hosts->v.v[i].text;
	*out = names;
	return NP_OK;
}

/* Options of `npuprof run`, as words for the far side. */
static enum np_status run_words(const struct np_call *call, struct np_arena *arena,
                                const char *const **out, struct np_err *err)
{
	const struct options *own = call->options;
	struct options copy = *own;
	const struct np_option_set set = {run_options, sizeof run_options / sizeof *run_options,
	                                  &copy};
	size_t n = 0;
	const char **words = np_arena_zalloc(arena, (NP_COLLECT_MAX_WORDS + 1) * sizeof *words);
	if (!words)
		return np_err_nomem(err);
	NP_TRY(np_options_words(&set, arena, words, &n, NP_COLLECT_MAX_WORDS, err));
	*out = words;
	return NP_OK;
}

static void translate(const struct np_call *call, struct np_collect_options *out)
{
	const struct options *own = call->options;
	*out = (struct np_collect_options){
		.out = own->out ? own->out : "npuprof-collect",
		.container = own->container,
		.workspace = own->workspace,
		.deploy = own->deploy,
		.chdir = own->chdir,
		.devices = own->devices,
		.set_env = own->set_env,
		.port_range = own->port_range,
		.remote_npuprof = own->remote_npuprof,
		.env = own->env.v,
		.arms = own->arms.v,
		.command = (const char *const *)(void *)call->command,
		.ssh_config = own->remote.ssh_config,
		.ssh_options = own->remote.ssh_options.v,
		.accept_unknown_host_key = own->remote.insecure,
		.span_groups = own->span_groups,
		.no_pull = own->no_pull,
		.no_check = own->run.no_check,
		.keep_raw = own->keep_raw,
		.say = call->common->quiet ? NULL : say,
		.poll_s = own->poll,
		.patience_s = own->patience,
		.threads = (unsigned)call->common->jobs,
	};
}

static enum np_status begin_new(const struct np_call *call, struct np_hosts *hosts,
                                struct np_collect_options *todo, struct np_report *report,
                                struct np_err *err)
{
	const struct options *own = call->options;
	struct np_ssh_options ssh;
	if (own->arms.n == NP_OPT_MAX_LIST || own->env.n == NP_OPT_MAX_LIST)
		return np_err_set(err, NP_E_USAGE, NULL, "too many --arm or --env");
	if (call->n_command == 0)
		return np_err_set(err, NP_E_USAGE, NULL,
		                  "no command was given: npuprof collect HOST [options] -- CMD "
		                  "(npuprof help collect)");
	NP_TRY(np_remote_ssh(call, &own->remote, todo->cancel, report, &ssh, err));
	todo->retry = ssh.retry;
	NP_TRY(name_hosts(call, hosts, &todo->hosts, &report->arena, err));
	NP_TRY(run_words(call, &report->arena, &todo->run, err));
	return np_collect(todo, report, err);
}

static enum np_status fill(const struct np_call *call, struct np_report *report, struct np_err *err)
{
	const struct options *own = call->options;
	struct np_collect_options todo;
	struct np_hosts hosts;
	if (own->selftest)
		return np_collect_selftest(report, err);
	translate(call, &todo);
	todo.cancel = np_interrupt_begin();
	np_hosts_init(&hosts);
	enum np_status status;
	if (own->resume && (call->n_command || call->argc))
		status = np_err_set(err, NP_E_USAGE, "--resume",
		                    "takes no host and no command: both are known");
	else if (own->resume)
		status = np_collect_resume(own->resume, &todo, report, err);
	else
		status = begin_new(call, &hosts, &todo, report, err);
	(void)np_interrupt_end();
	np_hosts_release(&hosts);
	return status;
}

static int run(const struct np_call *call)
{
	(void)signal(SIGPIPE, SIG_IGN);
	return np_cmd_run_report(call, fill);
}

static const char *const examples[] = {
	"npuprof collect node7 --deploy ./model --target dit:DiT.forward -- python3 infer.py",
	"npuprof collect node[01-04] --ranks all --target dit:DiT.forward -- torchrun --nnodes {n} "
	"--node_rank {index} --master_addr {master} --nproc_per_node 8 train.py",
	"npuprof collect node7 --arm with=FUSED=1 --arm without=FUSED=0 --target dit:DiT.forward "
	"-- python3 infer.py",
	"npuprof collect --resume npuprof-collect",
	NULL,
};

const struct np_cmd np_cmd_collect = {
	.name = "collect",
	.summary = "one command from here to judged captures of one host or many",
	.words = "HOST[,HOST…] -- CMD…",
	.max_words = 1,
	.takes_command = true,
	.detail = "Deploys, picks free devices, runs the command there under npuprof run, fetches "
		  "what was\n"
		  "recorded, verifies and judges it. A lost connection does not end the run; "
		  "--resume goes on\n"
		  "at any stage. Ctrl-C ends the runs and fetches what exists. In CMD, {host} "
		  "{index} {n}\n"
		  "{master} {arm} are replaced. Exit status: 0 all passed, 1 something failed, 2 "
		  "usage, 3 something\n"
		  "is not verified, 4 a host could not be worked with.",
	.examples = examples,
	.options = options,
	.n_options = sizeof options / sizeof *options,
	.options_size = sizeof(struct options),
	.run = run,
};
