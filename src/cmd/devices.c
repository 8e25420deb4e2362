#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "cmd/remote.h"
#include "collect/devices.h"
#include "collect/interrupt.h"

struct options {
	struct np_remote_options remote;
	const char *container, *from;
	uint64_t pick, max_used, timeout;
	bool span, env;
};

#define AT(field) offsetof(struct options, field)

static const struct np_option options[] = {
	{"pick", 0, NP_OPT_UINT, AT(pick), "N",
         "choose N free, healthy devices of one group, on each host"},
	{"span-groups", 0, NP_OPT_FLAG, AT(span), NULL,
         "--pick: from several groups when none has enough"},
	{"env", 0, NP_OPT_FLAG, AT(env), NULL,
         "--pick: print only ASCEND_RT_VISIBLE_DEVICES=…, for export"},
	{"max-used-mb", 0, NP_OPT_UINT, AT(max_used), "MB",
         "memory in use of a free device (default: 4096 or 10 %)"},
	{"container", 0, NP_OPT_STRING, AT(container), "NAME",
         "ask in this container; docker:NAME or podman:NAME choose"},
	{"from", 0, NP_OPT_STRING, AT(from), "FILE", "a recorded output of npu-smi; - is stdin"},
	{"timeout", 0, NP_OPT_UINT, AT(timeout), "SECONDS", "of npu-smi (default: 60)"},
	NP_REMOTE_OPTIONS(AT(remote)),
};

static enum np_status read_hosts(const struct np_call *call, struct np_hosts *hosts,
                                 struct np_err *err)
{
	const struct options *own = call->options;
	NP_TRY(np_remote_hosts(&own->remote, call->argc ? call->argv[0] : NULL, hosts, err));
	if (own->from && (hosts->v.n || own->container))
		return np_err_set(err, NP_E_USAGE, NULL,
		                  "--from reads a file: it asks no host and no container");
	if ((own->env || own->span) && !own->pick)
		return np_err_set(err, NP_E_USAGE, NULL, "--%s goes with --pick",
		                  own->env ? "env" : "span-groups");
	if (own->env && hosts->v.n > 1)
		return np_err_set(err, NP_E_USAGE, NULL, "--env wants one host");
	return NP_OK;
}

static enum np_status ask(const struct np_call *call, const struct np_hosts *hosts,
                          const atomic_bool *cancel, struct np_report *report, struct np_err *err)
{
	const struct options *own = call->options;
	struct np_container container = {0};
	struct np_ssh_options ssh;
	NP_TRY(np_remote_ssh(call, &own->remote, cancel, report, &ssh, err));
	const struct np_devices_options devices = {
		.hosts = hosts,
		.ssh = &ssh,
		.container = own->container ? &container : NULL,
		.from = own->from,
		.pick = own->pick,
		.max_used_mb = own->max_used,
		.timeout_ms = own->timeout * 1000,
		.span = own->span,
		.at_once = (unsigned)call->common->jobs,
	};
	if (own->container)
		NP_TRY(np_container_parse(own->container, &container, err));
	return np_devices_report(&devices, report, err);
}

static enum np_status fill(const struct np_call *call, struct np_report *report, struct np_err *err)
{
	struct np_hosts hosts;
	np_hosts_init(&hosts);
	enum np_status status = read_hosts(call, &hosts, err);
	if (status == NP_OK) {
		const atomic_bool *cancel = np_interrupt_begin();
		status = ask(call, &hosts, cancel, report, err);
		int sig = np_interrupt_end();
		if (sig)
			(void)raise(
				sig); /* everything is put away: now as if it had not been caught */
	}
	np_hosts_release(&hosts);
	return status;
}

/* Only the assignment, when there is one; else the report with its reasons, on stderr. */
static int print_env(const struct np_call *call)
{
	struct np_err err = {0};
	struct np_report *report = np_report_new(call->cmd->name);
	enum np_status status = report ? fill(call, report, &err) : np_err_nomem(&err);
	int exit_code = status == NP_OK ? report->exit_code : np_cmd_fail(&err);
	if (status == NP_OK && exit_code == NP_EXIT_OK) {
		const struct np_cell *cell = np_table_cell(report->tables.v[0], 0, 1);
		(void)printf("ASCEND_RT_VISIBLE_DEVICES=%.*s\n", NP_FMT(cell->s));
	} else if (status == NP_OK) {
		np_cmd_talk(call, report);
	}
	np_report_free(report);
	return exit_code;
}

static int run(const struct np_call *call)
{
	const struct options *own = call->options;
	return own->env ? print_env(call) : np_cmd_run_report(call, fill);
}

static const char *const examples[] = {
	"npuprof devices --pick 4",
	"e=$(npuprof devices --pick 2 --env) && export \"$e\"",
	"npuprof devices 'node[01-16]' --pick 8 --container train",
	"npu-smi info | npuprof devices --from -",
	NULL,
};

const struct np_cmd np_cmd_devices = {
	.name = "devices",
	.summary = "NPUs here or on hosts: ids, health, load, and which ones are free",
	.words = "[HOST]",
	.max_words = 1,
	.detail =
		"Asks npu-smi on this machine, or over ssh on hosts: user@node7:2222, node[01-16], "
		"a,b.\n"
		"--pick never guesses: output that is not understood is an error (4), and so is "
		"a lack\n"
		"of free devices (1), with the reason for each of them.",
	.examples = examples,
	.options = options,
	.n_options = sizeof options / sizeof *options,
	.options_size = sizeof(struct options),
	.run = run,
};
