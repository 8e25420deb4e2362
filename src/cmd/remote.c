#include "cmd/remote.h"

#include <stdio.h>

enum np_status np_remote_hosts(const struct np_remote_options *own, const char *word,
                               struct np_hosts *hosts, struct np_err *err)
{
	if (word)
		NP_TRY(np_hosts_parse(hosts, np_str_of(word), "HOST", err));
	if (own->hosts_from)
		NP_TRY(np_hosts_read(hosts, own->hosts_from, err));
	return NP_OK;
}

/* On the thread of the host; a line is written at once. */
static void tell(void *ctx, const struct np_transport *transport, const struct np_err *err,
                 unsigned failed_try, uint64_t wait_ms)
{
	char text[sizeof err->msg + 96];
	(void)ctx;
	(void)snprintf(text, sizeof text, "%s (try %u; again in %llu s)", err->msg, failed_try,
	               (unsigned long long)(wait_ms + 999) / 1000);
	np_cmd_complain(transport->name, text);
}

enum np_status np_remote_ssh(const struct np_call *call, const struct np_remote_options *own,
                             const atomic_bool *cancel, struct np_report *report,
                             struct np_ssh_options *out, struct np_err *err)
{
	if (own->ssh_options.n >= NP_OPT_MAX_LIST) /* the list has no end mark then */
		return np_err_set(err, NP_E_USAGE, NULL, "at most %d --ssh-option",
		                  NP_OPT_MAX_LIST - 1);
	*out = (struct np_ssh_options){
		.config = own->ssh_config,
		.options = own->ssh_options.v,
		.accept_unknown_host_key = own->insecure,
		.cancel = cancel,
	};
	if (!call->common->quiet)
		out->retry.tell = tell;
	if (own->insecure)
		np_report_note(report,
		               "--insecure-accept-host-key: keys of unknown hosts were taken "
		               "without a look at their fingerprints");
	return NP_OK;
}
