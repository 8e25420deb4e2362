#include "cmd/remote.h"

enum np_status np_remote_ssh(const struct np_remote_options *self, const atomic_bool *cancel,
                             struct np_report *report, struct np_ssh_options *out,
                             struct np_err *err)
{
	*out = (struct np_ssh_options){
		.config = self->ssh_config,
		.options = self->ssh_options.v, /* zeroed behind the last one */
		.accept_unknown_host_key = self->insecure,
		.cancel = cancel,
	};
	if (self->ssh_options.n == NP_OPT_MAX_LIST)
		return np_err_set(err, NP_E_USAGE, NULL, "too many --ssh-option");
	if (self->insecure)
		np_report_note(report,
		               "--insecure-accept-host-key: keys of unknown hosts were taken "
		               "without a look at their fingerprints");
	return NP_OK;
}
