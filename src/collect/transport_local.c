#include <string.h>

#include "collect/transport.h"

static enum np_status run(struct np_transport *self, const struct np_command *command,
                          struct np_outcome *outcome, struct np_err *err)
{
	const char *what = command->what ? command->what : command->argv[0];
	const struct np_subprocess child = {
		.argv = command->argv,
		.input = command->input,
		.out = command->out,
		.err = command->err,
		.timeout_ms = command->timeout_ms,
		.cancel = command->cancel ? command->cancel : self->cancel,
	};
	struct np_subprocess_result result;
	enum np_status status = np_subprocess_run(&child, &result, err);
	outcome->status = result.status;
	outcome->out = result.out;
	outcome->err = result.err;
	if (status == NP_OK && result.timed_out) {
		outcome->link = NP_LINK_TIMEOUT;
		return np_err_set(err, NP_E_IO, self->name, "%s: no end after %llu s; it was ended",
		                  what, (unsigned long long)(command->timeout_ms + 999) / 1000);
	}
	if (status == NP_OK && result.cancelled) {
		outcome->link = NP_LINK_CANCELLED;
		return np_err_set(err, NP_E_IO, self->name, "%s: interrupted", what);
	}
	return status;
}

static void close_local(struct np_transport *self)
{
	np_free(self);
}

static const struct np_transport_ops ops = {.kind = "local", .run = run, .close = close_local};

enum np_status np_transport_local(struct np_transport **out, struct np_err *err)
{
	*out = np_calloc(1, sizeof **out);
	if (!*out)
		return np_err_nomem(err);
	(*out)->ops = &ops;
	memcpy((*out)->name, "local", sizeof "local");
	return NP_OK;
}
