/*
 * A transport whose answers are a script: each run takes the next one.
 */
#ifndef NP_TESTS_TRANSPORT_FAKE_H
#define NP_TESTS_TRANSPORT_FAKE_H

#include "collect/transport.h"

struct fake_answer {
	enum np_link link; /* OK: the command ends with `status` and `out` */
	int status;
	const char *out, *err;
};

struct fake_transport {
	struct np_transport base;
	const struct fake_answer *answers;
	size_t n, runs, forgotten;
};

static enum np_status fake_say(const struct np_sink *sink, struct np_buf *kept, const char *text,
                               struct np_err *err)
{
	if (!text)
		return NP_OK;
	if (sink->take)
		return sink->take(sink->ctx, text, strlen(text), err);
	np_buf_add_cstr(kept, text);
	return NP_OK;
}

static enum np_status fake_run(struct np_transport *base, const struct np_command *command,
                               struct np_outcome *outcome, struct np_err *err)
{
	struct fake_transport *self = (struct fake_transport *)base;
	struct fake_answer answer = {.link = NP_LINK_UNREACHABLE};
	if (self->runs < self->n)
		answer = self->answers[self->runs];
	self->runs++;
	NP_TRY(fake_say(&command->out, &outcome->out, answer.out, err));
	NP_TRY(fake_say(&command->err, &outcome->err, answer.err, err));
	outcome->link = answer.link;
	outcome->status = answer.status;
	return answer.link == NP_LINK_OK
	               ? NP_OK
	               : np_err_set(err, NP_E_IO, base->name, "%s", np_link_text(answer.link));
}

static void fake_forget(struct np_transport *base)
{
	((struct fake_transport *)base)->forgotten++;
}

static void fake_close(struct np_transport *base)
{
	(void)base;
}

static const struct np_transport_ops fake_ops = {
	.kind = "fake", .run = fake_run, .forget = fake_forget, .close = fake_close};

/* In the caller's storage; waits of 1 ms. */
static inline struct np_transport *fake_open(struct fake_transport *self,
                                             const struct fake_answer *answers, size_t n)
{
	*self = (struct fake_transport){
		.base = {.ops = &fake_ops, .name = "fake"}, .answers = answers, .n = n};
	self->base.retry.delay_ms = 1;
	return &self->base;
}

#endif
