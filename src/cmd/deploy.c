#include "collect/deploy.h"
#include "cmd/remote.h"
#include "collect/hosts_run.h"
#include "collect/interrupt.h"

struct options {
	struct np_remote_options remote;
	struct np_opt_list excludes;
	const char *workspace, *name, *container;
	bool delete_extra, dry_run, keep_crlf, no_default_excludes;
};

#define AT(field) offsetof(struct options, field)

static const struct np_option options[] = {
	{"workspace", 0, NP_OPT_STRING, AT(workspace), "DIR",
         "directory over there, in which PATH appears under its name"},
	{"name", 0, NP_OPT_STRING, AT(name), "NAME", "under this name"},
	{"exclude", 0, NP_OPT_LIST, AT(excludes), "PATTERN",
         "leave out, e.g. '*.ckpt' or data/; beside .git, __pycache__, build/ and the like"},
	{"no-default-excludes", 0, NP_OPT_FLAG, AT(no_default_excludes), NULL,
         "only what --exclude says"},
	{"delete", 0, NP_OPT_FLAG, AT(delete_extra), NULL, "remove what is there and not here"},
	{"keep-crlf", 0, NP_OPT_FLAG, AT(keep_crlf), NULL, "send text files with CRLF as they are"},
	{"dry-run", 0, NP_OPT_FLAG, AT(dry_run), NULL, "only tell what would be done"},
	{"container", 0, NP_OPT_STRING, AT(container), "NAME",
         "in this container there; docker:NAME or podman:NAME choose"},
	NP_REMOTE_SSH_OPTIONS(AT(remote)),
};

enum { MAX_EXCLUDES = NP_OPT_MAX_LIST + 16 };

static size_t gather_excludes(const struct options *own, const char **out)
{
	size_t n = 0;
	for (size_t i = 0; np_deploy_excludes[i] && !own->no_default_excludes; i++)
		out[n++] = np_deploy_excludes[i];
	for (size_t i = 0; i < own->excludes.n; i++)
		out[n++] = own->excludes.v[i];
	return n;
}

static enum np_status deploy(const struct np_call *call, const struct np_hosts *hosts,
                             const atomic_bool *cancel, struct np_report *report,
                             struct np_err *err)
{
	const struct options *own = call->options;
	const char *excludes[MAX_EXCLUDES];
	struct np_container container;
	struct np_ssh_options ssh;
	struct np_transport *transport = NULL;
	struct np_deploy_options todo = {
		.path = call->argv[1],
		.workspace = own->workspace,
		.name = own->name,
		.choice = {excludes, gather_excludes(own, excludes), own->keep_crlf,
	                   (unsigned)call->common->jobs},
		.delete_extra = own->delete_extra,
		.dry_run = own->dry_run,
		.cancel = cancel,
	};
	if (!own->workspace)
		return np_err_set(err, NP_E_USAGE, NULL, "--workspace DIR says where to");
	if (hosts->v.n != 1)
		return np_err_set(err, NP_E_USAGE, call->argv[0], "one host, please");
	if (own->container) {
		NP_TRY(np_container_parse(own->container, &container, err));
		todo.place.container = &container;
	}
	NP_TRY(np_remote_ssh(call, &own->remote, cancel, report, &ssh, err));
	NP_TRY(np_transport_ssh(&hosts->v.v[0], &ssh, &transport, err));
	np_report_input(report, call->argv[1]);
	enum np_status status = np_deploy(transport, &todo, report, err);
	np_transport_close(transport);
	return status;
}

static enum np_status fill(const struct np_call *call, struct np_report *report, struct np_err *err)
{
	struct np_hosts hosts;
	np_hosts_init(&hosts);
	const atomic_bool *cancel = np_interrupt_begin();
	enum np_status status = np_hosts_parse(&hosts, np_str_of(call->argv[0]), "HOST", err);
	if (status == NP_OK)
		status = deploy(call, &hosts, cancel, report, err);
	(void)np_interrupt_end();
	np_hosts_release(&hosts);
	return status;
}

static int run(const struct np_call *call)
{
	return np_cmd_run_report(call, fill);
}

static const char *const examples[] = {
	"npuprof deploy node7 --workspace /data/ws ./model",
	"npuprof deploy node7 --workspace /workspace --container train ./model --dry-run",
	NULL,
};

const struct np_cmd np_cmd_deploy = {
	.name = "deploy",
	.summary = "bring a source tree to a host: what changed, as a whole or not at all",
	.words = "HOST PATH",
	.min_words = 2,
	.max_words = 2,
	.detail = "Files are compared by content. What changed is staged beside the tree that is "
		  "there, verified,\n"
		  "and switched in by a rename. Line ends of text files become LF, and are told.",
	.examples = examples,
	.options = options,
	.n_options = sizeof options / sizeof *options,
	.options_size = sizeof(struct options),
	.run = run,
};
