#include "collect/transport.h"

#include <stdio.h>
#include <string.h>

static const struct {
	const char *name, *text;
	bool again;
} links[] = {
#define X(name, text, again) {#name, text, again},
	NP_LINK_MAP(X)
#undef X
};

const char *np_link_text(enum np_link link)
{
	return links[link].text;
}

const char *np_link_name(enum np_link link)
{
	return links[link].name;
}

void np_outcome_release(struct np_outcome *outcome)
{
	np_buf_release(&outcome->out);
	np_buf_release(&outcome->err);
}

static bool is_cancelled(const struct np_transport *self, const struct np_command *command)
{
	const atomic_bool *cancel = command->cancel ? command->cancel : self->cancel;
	return cancel && atomic_load(cancel);
}

/* May it be done again, after this failure? */
static bool may_repeat(const struct np_transport *self, const struct np_command *command,
                       const struct np_outcome *outcome)
{
	unsigned limit = self->retry.tries ? self->retry.tries : NP_TRANSPORT_TRIES;
	if (!links[outcome->link].again || outcome->tries >= limit || is_cancelled(self, command))
		return false;
	return outcome->link == NP_LINK_UNREACHABLE || command->repeatable;
}

static uint64_t wait_before(const struct np_transport *self, unsigned failed_try)
{
	uint64_t wait = self->retry.delay_ms ? self->retry.delay_ms : NP_TRANSPORT_DELAY_MS;
	for (unsigned i = 1; i < failed_try && wait < NP_TRANSPORT_MAX_DELAY_MS; i++)
		wait *= 2;
	return wait < NP_TRANSPORT_MAX_DELAY_MS ? wait : NP_TRANSPORT_MAX_DELAY_MS;
}

enum np_status np_transport_run(struct np_transport *self, const struct np_command *command,
                                struct np_outcome *outcome, struct np_err *err)
{
	struct np_err own = {0};
	struct np_err *failure = err ? err : &own;
	*outcome = (struct np_outcome){0};
	for (;;) {
		unsigned tries = outcome->tries + 1;
		np_outcome_release(outcome);
		*outcome = (struct np_outcome){.tries = tries};
		enum np_status status = self->ops->run(self, command, outcome, failure);
		outcome->tries = tries;
		if (status == NP_OK || !may_repeat(self, command, outcome))
			return status;
		uint64_t wait = wait_before(self, tries);
		if (self->retry.tell)
			self->retry.tell(self->retry.ctx, self, failure, tries, wait);
		if (self->ops->forget)
			self->ops->forget(self);
		if (!np_sleep_ms(wait, command->cancel ? command->cancel : self->cancel)) {
			outcome->link = NP_LINK_CANCELLED;
			return status;
		}
		if (command->restart)
			command->restart(command->restart_ctx);
	}
}

static np_str first_line(np_str text)
{
	np_str line = {0};
	while (text.len && line.len == 0)
		line = np_str_trim(np_str_cut(text, '\n', &text));
	return line;
}

enum np_status np_transport_check(struct np_transport *self, const struct np_command *command,
                                  struct np_outcome *outcome, struct np_err *err)
{
	NP_TRY(np_transport_run(self, command, outcome, err));
	if (outcome->status == 0)
		return NP_OK;
	const char *what = command->what ? command->what : command->argv[0];
	np_str said = first_line(np_buf_str(&outcome->err));
	if (said.len == 0)
		said = first_line(np_buf_str(&outcome->out));
	if (said.len > 300)
		said.len = 300;
	return np_err_set(err, outcome->status == 127 ? NP_E_NOTFOUND : NP_E_IO, self->name,
	                  "%s: exit status %d%s%.*s", what, outcome->status, said.len ? ": " : "",
	                  NP_FMT(said));
}

void np_transport_close(struct np_transport *self)
{
	if (self)
		self->ops->close(self);
}
