#include "capture/trace_doc.h"

enum { AHEAD_BYTES = 512 }; /* some two events: memory has answered by then */

static uint64_t offset_of(const struct np_trace_span *self, const char *p)
{
	return (uint64_t)((uintptr_t)p - (uintptr_t)self->origin);
}

/* The element at p by the tolerant reader; NULL: not complete, or *status tells. */
static const char *read_exact(struct np_trace_span *self, struct np_trace_part *part,
                              bool *is_event, enum np_status *status, struct np_err *err)
{
	const char *behind = np_trace_extent(self->p, self->end);
	if (!behind)
		return NULL;
	np_str text = {self->p, (size_t)(behind - self->p)};
	*status =
		np_trace_event_read_exact(&part->event, text, self->file, offset_of(self, self->p),
	                                  &part->repairs, is_event, err);
	return *status == NP_OK ? behind : NULL;
}

/* The element at p, which has one; p moves behind it. */
static enum np_trace_stop element(struct np_trace_span *self, struct np_trace_part *part,
                                  enum np_status *status, struct np_err *err)
{
	bool is_event = true;
	const char *behind = NULL;
	if (self->end - self->p > AHEAD_BYTES)
		__builtin_prefetch(self->p + AHEAD_BYTES);
	if (*self->p == '{' && !self->exact)
		behind = np_trace_event_read(&part->event, self->p, self->end);
	if (!behind)
		behind = read_exact(self, part, &is_event, status, err);
	if (!behind)
		return *status == NP_OK ? NP_TRACE_STOP_MORE : NP_TRACE_STOP_ERROR;
	if (is_event)
		*status = np_trace_part_add(part, err);
	else
		part->not_events++;
	self->p = behind;
	self->after_element = true;
	self->last_comma = NULL;
	return *status == NP_OK ? NP_TRACE_STOP_LIMIT : NP_TRACE_STOP_ERROR;
}

/* A comma: one too many when no element came since the last one. */
static void comma(struct np_trace_span *self, struct np_trace_part *part)
{
	if (!self->after_element)
		np_trace_repair(&part->repairs.trailing_comma, offset_of(self, self->p));
	self->after_element = false;
	self->last_comma = self->p++;
}

enum np_trace_stop np_trace_span_run(struct np_trace_span *self, struct np_trace_part *part,
                                     enum np_status *status, struct np_err *err)
{
	*status = NP_OK;
	for (;;) {
		self->p = np_trace_skip_space(self->p, self->end);
		if (self->p == self->end)
			return NP_TRACE_STOP_MORE;
		if (*self->p == ',') {
			comma(self, part);
		} else if (*self->p == ']') {
			if (self->last_comma)
				np_trace_repair(&part->repairs.trailing_comma,
				                offset_of(self, self->last_comma));
			self->p++;
			return NP_TRACE_STOP_CLOSE;
		} else if (self->after_element || *self->p == '}' || *self->p == ':') {
			*status = np_err_at(err, NP_E_FORMAT, self->file, offset_of(self, self->p),
			                    "expected a comma or the end of the event list");
			return NP_TRACE_STOP_ERROR;
		} else if (self->p >= self->limit) {
			return NP_TRACE_STOP_LIMIT;
		} else {
			enum np_trace_stop stop = element(self, part, status, err);
			if (stop != NP_TRACE_STOP_LIMIT)
				return stop;
		}
	}
}
