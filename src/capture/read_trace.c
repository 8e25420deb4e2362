#include "base/pool.h"
#include "capture/trace_doc.h"

enum { RELEASE_BYTES = 4 << 20, PARALLEL_BYTES = 32 << 20 };

enum place {
	AT_START,
	IN_OBJECT, /* of the form {"traceEvents": …} */
	IN_EVENTS,
	AT_END,
};

struct doc {
	struct np_trace_part part;
	struct np_input *input;
	struct np_window window;
	struct np_trace_span span;
	size_t chunk_bytes;
	struct np_trace_crew *crew; /* NULL: no waves */
	enum place place;
	bool object, found; /* of the object form; the event list has begun */
	bool done;
};

static uint64_t offset_at(const struct doc *self, const char *p)
{
	return self->window.offset + (uint64_t)(p - self->window.ptr);
}

static enum np_status malformed(const struct doc *self, struct np_err *err, const char *what)
{
	return np_err_at(err, NP_E_FORMAT, self->span.file, offset_at(self, self->span.p), "%s",
	                 what);
}

static void enter_events(struct doc *self, const char *p)
{
	self->place = IN_EVENTS;
	self->found = true;
	self->span.p = p;
	self->span.after_element = false;
	self->span.last_comma = NULL;
}

/* *more: nothing can be said before more bytes are there. */
static enum np_status read_start(struct doc *self, bool *more, struct np_err *err)
{
	const char *p = self->span.p, *end = self->span.end;
	if (self->window.offset == 0 && p == self->window.ptr && end - p < 3 && !self->window.eof) {
		*more = true;
		return NP_OK;
	}
	if (offset_at(self, p) == 0 && end - p >= 3 && memcmp(p, "\xef\xbb\xbf", 3) == 0) {
		np_trace_repair(&self->part.repairs.bom, 0);
		p += 3;
	}
	self->span.p = p = np_trace_skip_space(p, end);
	if (p == end) {
		*more = true;
		return NP_OK;
	}
	if (*p == '[') {
		enter_events(self, p + 1);
		return NP_OK;
	}
	if (*p != '{')
		return malformed(self, err, "not a trace: neither an event list nor an object");
	self->object = true;
	self->place = IN_OBJECT;
	self->span.p = p + 1;
	return NP_OK;
}

/* Behind the value at p, checked; NULL: not complete, or *status tells. */
static const char *skip_value(struct doc *self, const char *p, enum np_status *status,
                              struct np_err *err)
{
	struct np_trace_value value;
	const char *behind = np_trace_any_value(p, self->span.end, &value);
	if (behind)
		return behind;
	behind = np_trace_extent(p, self->span.end);
	if (!behind)
		return NULL;
	bool is_event;
	np_str text = {p, (size_t)(behind - p)};
	*status =
		np_trace_event_read_exact(&self->part.event, text, self->span.file,
	                                  offset_at(self, p), &self->part.repairs, &is_event, err);
	return *status == NP_OK ? behind : NULL;
}

/* One member of the outer object, or its end. */
static enum np_status read_member(struct doc *self, bool *more, struct np_err *err)
{
	struct np_trace_value key;
	enum np_status status = NP_OK;
	const char *end = self->span.end, *p = np_trace_skip_space(self->span.p, end);
	self->span.p = p;
	*more = p == end;
	if (*more)
		return NP_OK;
	if (*p == ',' || *p == '}') {
		self->place = *p == '}' ? AT_END : IN_OBJECT;
		self->span.p = p + 1;
		return NP_OK;
	}
	if (*p != '"')
		return malformed(self, err, "expected a key");
	p = np_trace_string(p + 1, end, &key);
	if (!p) {
		*more = !self->window.eof;
		return *more ? NP_OK : malformed(self, err, "unreadable key");
	}
	p = np_trace_skip_space(p, end);
	if (p < end && *p != ':')
		return malformed(self, err, "expected a colon behind the key");
	p = p < end ? np_trace_skip_space(p + 1, end) : p;
	if (p < end && *p == '[' && np_str_is(key.text, "traceEvents")) {
		enter_events(self, p + 1);
		return NP_OK;
	}
	p = p < end ? skip_value(self, p, &status, err) : NULL;
	if (p)
		self->span.p = p;
	else
		*more = status == NP_OK;
	return status;
}

static enum np_status read_events(struct doc *self, bool *more, struct np_err *err)
{
	enum np_status status = NP_OK;
	enum np_trace_stop stop;
	bool wave = self->crew && (size_t)(self->span.end - self->span.p) > self->chunk_bytes;
	if (wave) {
		stop = np_trace_crew_run(self->crew, &self->span, &self->part, self->chunk_bytes,
		                         &status, err);
	} else {
		size_t left = (size_t)(self->span.end - self->span.p);
		self->span.limit =
			left > RELEASE_BYTES ? self->span.p + RELEASE_BYTES : self->span.end;
		stop = np_trace_span_run(&self->span, &self->part, &status, err);
	}
	if (stop == NP_TRACE_STOP_CLOSE)
		self->place = self->object ? IN_OBJECT : AT_END;
	*more = stop == NP_TRACE_STOP_MORE;
	np_input_release_behind(self->input, offset_at(self, self->span.p));
	return status;
}

/* Nothing but blanks may follow; NUL bytes are padding of a disk that was full. */
static enum np_status read_end(struct doc *self, bool *more, struct np_err *err)
{
	const char *p = self->span.p, *end = self->span.end;
	for (; p < end; p++) {
		if (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t')
			continue;
		self->span.p = p;
		if (*p != '\0')
			return malformed(self, err, "bytes behind the end of the trace");
		np_trace_repair(&self->part.repairs.trailing_bytes, offset_at(self, p));
	}
	self->span.p = p;
	*more = true;
	return NP_OK;
}

static enum np_status step(struct doc *self, bool *more, struct np_err *err)
{
	*more = false;
	switch (self->place) {
	case AT_START:
		return read_start(self, more, err);
	case IN_OBJECT:
		return read_member(self, more, err);
	case IN_EVENTS:
		return read_events(self, more, err);
	case AT_END:
		break;
	}
	return read_end(self, more, err);
}

/* The bytes are at their end. Between elements that is repaired, as viewers do it
 * for traces of programs that were killed; within one it is damage. */
static enum np_status end_of_input(struct doc *self, struct np_err *err)
{
	struct np_trace_span *span = &self->span;
	self->done = true;
	if (self->place == AT_END)
		return self->found ? NP_OK : malformed(self, err, "no traceEvents in the object");
	if (self->place == AT_START)
		return np_err_set(err, NP_E_EMPTY, span->file, "the trace is empty");
	if (span->p != span->end)
		return np_err_at(err, NP_E_TRUNCATED, span->file, offset_at(self, span->p),
		                 "the trace ends in the middle of this event");
	if (self->place == IN_OBJECT && !self->found)
		return np_err_at(err, NP_E_TRUNCATED, span->file, offset_at(self, span->p),
		                 "the trace ends before its events");
	if (self->place == IN_EVENTS && span->last_comma)
		np_trace_repair(&self->part.repairs.trailing_comma,
		                offset_at(self, span->last_comma));
	if (self->place == IN_EVENTS || self->object)
		np_trace_repair(&self->part.repairs.unclosed, offset_at(self, span->end));
	return NP_OK;
}

static enum np_status next_window(struct doc *self, struct np_err *err)
{
	/* a comma may be in bytes that are gone by then: its distance is kept */
	size_t back = self->span.last_comma ? (size_t)(self->span.p - self->span.last_comma) : 0;
	size_t consumed = self->window.ptr ? (size_t)(self->span.p - self->window.ptr) : 0;
	NP_TRY(np_input_next(self->input, consumed, &self->window, err));
	self->span.p = self->window.ptr;
	self->span.end = self->window.ptr + self->window.len;
	self->span.origin = (const char *)((uintptr_t)self->window.ptr - self->window.offset);
	if (self->span.last_comma)
		self->span.last_comma = (const char *)((uintptr_t)self->span.p - (uintptr_t)back);
	return NP_OK;
}

static enum np_status read_all(struct doc *self, struct np_err *err)
{
	NP_TRY(next_window(self, err));
	while (!self->done) {
		bool more;
		NP_TRY(step(self, &more, err));
		if (!more)
			continue;
		if (self->window.eof)
			NP_TRY(end_of_input(self, err));
		else
			NP_TRY(next_window(self, err));
	}
	if (np_input_faulted(self->input))
		return np_err_set(err, NP_E_TRUNCATED, self->span.file,
		                  "the file became shorter while it was read");
	return NP_OK;
}

static const unsigned answers = NP_STEPS | NP_HOST_OPS | NP_TASKS | NP_COMM | NP_COMM_OPS |
                                NP_FLOWS | NP_COUNTERS | NP_HOST_ARGS | NP_MSTX;

enum np_status np_trace_read_input(const struct np_read *read, struct np_input *input,
                                   const struct np_trace_plan *plan, struct np_err *err)
{
	struct doc doc = {.input = input};
	struct np_trace_base base;
	struct np_err own; /* the caller's may be NULL, and the message is needed */
	struct np_profile *profile = read->profile;
	unsigned what = np_load_implied(read->what) & answers;
	size_t parallel = plan && plan->parallel_bytes ? plan->parallel_bytes : PARALLEL_BYTES;
	doc.chunk_bytes = plan && plan->chunk_bytes ? plan->chunk_bytes : NP_TRACE_CHUNK_BYTES;
	unsigned threads = read->threads ? read->threads : np_cpu_count();
	/* without memory for a crew it goes on alone */
	if (threads > 1 && np_input_whole(input).len >= parallel)
		doc.crew = np_trace_crew_new(threads, what);
	doc.span.file = np_input_name(input);
	doc.span.exact = plan && plan->exact;
	np_trace_base_of(profile, &base);
	enum np_status status = np_trace_part_init(&doc.part, profile, what, &own);
	if (status == NP_OK)
		status = read_all(&doc, &own);
	np_trace_crew_free(doc.crew); /* its memory is needed for the sorting */
	if (status == NP_E_TRUNCATED)
		np_profile_diag(profile, "TRACE_TRUNCATED", doc.span.file, 1, "%s", own.msg);
	if (status != NP_E_NOMEM) {
		struct np_err late;
		enum np_status finished =
			np_trace_part_finish(&doc.part, &base, doc.span.file, &late);
		if (finished != NP_OK) {
			status = finished;
			own = late;
		}
	}
	if (doc.found)
		profile->loaded |= what;
	np_trace_part_release(&doc.part);
	if (status != NP_OK && err)
		*err = own;
	return status;
}

enum np_status np_read_trace(const struct np_read *read, const char *path, struct np_err *err)
{
	struct np_input *input;
	NP_TRY(np_input_open(path, &input, err));
	enum np_status status = np_trace_read_input(read, input, NULL, err);
	np_input_close(input);
	return status;
}
