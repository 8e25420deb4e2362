#include "io/json.h"

#include <stdio.h>

#include "io/json_reader.h"
#include "io/json_text.h"

/* ── errors ─────────────────────────────────────────────────────────────────── */

static enum np_status give(const struct np_json *self, enum np_status status, struct np_err *err)
{
	if (UNLIKELY(status != NP_OK) && err)
		*err = self->err;
	return status;
}

/* The input ends, or a NUL byte stands, where something had to come. */
static __attribute__((cold)) enum np_status stopped(struct np_json *self, enum np_status code,
                                                    uint64_t offset, const char *what)
{
	if (self->stop == STOP_ERROR)
		return self->status;
	if (self->stop == STOP_NUL)
		return np_json_fail(self, NP_E_FORMAT, self->scanned,
		                    "NUL byte: the file has a hole or is damaged");
	return np_json_fail(self, code, offset, what);
}

static __attribute__((cold)) enum np_status junk(struct np_json *self, uint64_t offset,
                                                 const char *expected)
{
	char what[96];
	unsigned char c = (unsigned char)*at(self, offset);
	if (c > 0x20 && c < 0x7f)
		(void)snprintf(what, sizeof what, "expected %s, found `%c`", expected, c);
	else
		(void)snprintf(what, sizeof what, "expected %s, found byte 0x%02x", expected, c);
	return np_json_fail(self, NP_E_FORMAT, offset, what);
}

/* ── tokens ─────────────────────────────────────────────────────────────────── */

/* Look up the first odd byte behind `open`; is it behind `close` too? */
static __attribute__((noinline)) bool is_clean(struct np_json *self, uint64_t open, uint64_t close)
{
	if (open < self->batch) /* begins in a batch that is gone */
		return false;
	size_t i = (size_t)(open - self->batch) / NP_JSON_BLOCK;
	uint64_t word = self->odd[i] & ~0ull << (open - self->batch) % NP_JSON_BLOCK;
	while (!word && ++i < self->n_blocks)
		word = self->odd[i];
	self->clean_end =
		self->batch + i * NP_JSON_BLOCK + (word ? (unsigned)__builtin_ctzll(word) : 0);
	return close <= self->clean_end;
}

static __attribute__((noinline)) enum np_status check_string(struct np_json *self,
                                                             struct np_json_token *out)
{
	struct np_json_repairs *r = &self->repairs;
	np_json_check_string(out->text, out->offset + 1, r, &out->escaped);
	if (!self->strict)
		return NP_OK;
	if (r->control_char.count)
		return np_json_fail(self, NP_E_FORMAT, r->control_char.first_offset,
		                    "control character in a string");
	if (r->bad_utf8.count)
		return np_json_fail(self, NP_E_FORMAT, r->bad_utf8.first_offset, "invalid UTF-8");
	if (r->bad_escape.count)
		return np_json_fail(self, NP_E_FORMAT, r->bad_escape.first_offset,
		                    "invalid escape");
	return NP_OK;
}

/* A string whose opening quote was taken at `open`. */
INLINE enum np_status string(struct np_json *self, uint64_t open, struct np_json_token *out)
{
	uint64_t close;
	if (UNLIKELY(!take(self, &close)))
		return stopped(self, NP_E_TRUNCATED, open, "the input ends inside this string");
	out->offset = open;
	out->text = (np_str){at(self, open + 1), (size_t)(close - open - 1)};
	out->escaped = false;
	self->end = close + 1;
	if (LIKELY(close <= self->clean_end) || is_clean(self, open, close))
		return NP_OK;
	return check_string(self, out);
}

static bool is_space(char c)
{
	return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

static __attribute__((cold)) enum np_status odd_scalar(struct np_json *self, bool at_end,
                                                       struct np_json_token *out)
{
	if (at_end && np_json_is_unfinished(out->text))
		return np_json_fail(self, NP_E_TRUNCATED, out->offset,
		                    "the input ends inside this value");
	return junk(self, out->offset, "a value");
}

/* np_json_is_plain_number() where it may look. */
INLINE bool is_plain_number(const struct np_json *self, np_str text)
{
	size_t before = (size_t)(text.ptr - self->window.ptr);
	return self->window.len - before >= 16 && np_json_is_plain_number(text);
}

/* Set type, or refuse the text. */
INLINE enum np_status classify(struct np_json *self, bool at_end, struct np_json_token *out)
{
	char c = out->text.ptr[0];
	out->type = NP_JSON_NUMBER;
	if (c == 't' || c == 'f' || c == 'n') {
		out->type = c == 't' ? NP_JSON_TRUE : c == 'f' ? NP_JSON_FALSE : NP_JSON_NULL;
		if (np_str_is(out->text, c == 't' ? "true" : c == 'f' ? "false" : "null"))
			return NP_OK;
		return odd_scalar(self, at_end, out);
	}
	enum np_json_numeric verdict = NP_JSON_NUMERIC_OK;
	if (!is_plain_number(self, out->text))
		verdict = np_json_check_number(out->text);
	if (UNLIKELY(verdict == NP_JSON_NUMERIC_BAD))
		return odd_scalar(self, at_end, out);
	if (UNLIKELY(verdict == NP_JSON_NUMERIC_REPAIR))
		NP_TRY(np_json_repair(self, &self->repairs.bad_number, out->offset, 1,
		                      "not a JSON number"));
	if (UNLIKELY(at_end) && self->depth) /* the rest of its digits may be missing */
		return np_json_fail(self, NP_E_TRUNCATED, out->offset,
		                    "the input ends inside this number");
	return NP_OK;
}

/* A number or word whose first byte was taken at `start`; it reaches to the next
 * structure bit, white space (or comments) excepted. */
INLINE enum np_status scalar(struct np_json *self, uint64_t start, struct np_json_token *out)
{
	uint64_t stop;
	bool at_end = false;
	if (UNLIKELY(!peek(self, &stop))) {
		if (self->stop == STOP_ERROR)
			return self->status;
		stop = self->scanned;
		at_end = self->stop == STOP_EOF;
	}
	const char *text = at(self, start);
	size_t len = (size_t)(stop - start);
	if (UNLIKELY(self->comments)) {
		size_t n = 1;
		while (n < len && !is_space(text[n]) && text[n] != '#' && text[n] != '/')
			n++;
		at_end = at_end && n == len;
		len = n;
	} else if (is_space(text[len - 1])) {
		at_end = false;
		while (is_space(text[len - 1]))
			len--;
	}
	out->offset = start;
	out->text = (np_str){text, len};
	out->escaped = false;
	self->end = start + len;
	return classify(self, at_end, out);
}

static enum np_status push(struct np_json *self, bool object, uint64_t offset)
{
	if (self->depth == NP_JSON_MAX_DEPTH)
		return np_json_fail(self, NP_E_LIMIT, offset, "nested too deeply");
	uint64_t bit = 1ull << self->depth % 64, *word = &self->kinds[self->depth / 64];
	*word = object ? *word | bit : *word & ~bit;
	self->depth++;
	self->in_object = object;
	return NP_OK;
}

static void pop(struct np_json *self)
{
	self->depth--;
	uint32_t level = self->depth - 1; /* of what is innermost now */
	self->in_object = self->depth && (self->kinds[level / 64] >> level % 64 & 1);
	self->state = self->depth ? AFTER : ENDING;
}

static void container_token(struct np_json *self, enum np_json_type type, uint64_t offset,
                            struct np_json_token *out)
{
	out->type = type;
	out->text = (np_str){at(self, offset), 1};
	out->escaped = false;
	out->offset = offset;
	self->end = offset + 1;
}

static enum np_status open_container(struct np_json *self, char c, uint64_t offset,
                                     struct np_json_token *out)
{
	container_token(self, c == '{' ? NP_JSON_OBJECT_BEGIN : NP_JSON_ARRAY_BEGIN, offset, out);
	self->state = FIRST;
	return push(self, c == '{', offset);
}

static enum np_status close_container(struct np_json *self, char c, uint64_t offset,
                                      struct np_json_token *out)
{
	if (c != (self->in_object ? '}' : ']'))
		return junk(self, offset, self->in_object ? "`,` or `}`" : "`,` or `]`");
	container_token(self, c == '}' ? NP_JSON_OBJECT_END : NP_JSON_ARRAY_END, offset, out);
	pop(self);
	out->depth = self->depth;
	return NP_OK;
}

/* A value whose first byte `c` was taken at `offset`. */
INLINE enum np_status value(struct np_json *self, char c, uint64_t offset,
                            struct np_json_token *out)
{
	out->depth = self->depth;
	if (c == '"') {
		out->type = NP_JSON_STRING;
		self->state = self->depth ? AFTER : ENDING;
		return string(self, offset, out);
	}
	if (c == '{' || c == '[')
		return open_container(self, c, offset, out);
	if (UNLIKELY(c == ',' || c == ':' || c == '}' || c == ']'))
		return junk(self, offset, "a value");
	self->state = self->depth ? AFTER : ENDING;
	return scalar(self, offset, out);
}

/* A key whose first byte `c` was taken at `offset`, and its colon. */
INLINE enum np_status key(struct np_json *self, char c, uint64_t offset, struct np_json_token *out)
{
	uint64_t colon;
	out->type = NP_JSON_KEY;
	out->depth = self->depth;
	if (UNLIKELY(c != '"'))
		return junk(self, offset, "a key in quotes");
	NP_TRY(string(self, offset, out));
	if (UNLIKELY(!take(self, &colon)))
		return stopped(self, NP_E_TRUNCATED, offset, "the input ends behind this key");
	if (UNLIKELY(*at(self, colon) != ':'))
		return junk(self, colon, "`:`");
	out->text.ptr = at(self, offset + 1); /* the window may have moved */
	self->key = offset;
	self->end = colon + 1;
	self->state = VALUE;
	return NP_OK;
}

/* ── the ends ───────────────────────────────────────────────────────────────── */

/* The input ended between tokens, with containers open. */
static enum np_status close_unclosed(struct np_json *self)
{
	if (self->stop != STOP_EOF)
		return stopped(self, NP_E_TRUNCATED, 0, "");
	self->state = CLOSING;
	self->end = self->scanned;
	return np_json_repair(self, &self->repairs.unclosed, self->root, self->depth,
	                      "the input ends inside this container");
}

/* No more bits where a token was due. */
static __attribute__((cold)) enum np_status at_stop(struct np_json *self)
{
	if (self->state == ROOT)
		return stopped(self, NP_E_EMPTY, self->scanned, "no JSON value in here");
	if (self->state == VALUE)
		return stopped(self, NP_E_TRUNCATED, self->key, "the input ends behind this key");
	return close_unclosed(self);
}

static bool is_garbage(char c)
{
	return c == 0 || c == '\v' || c == '\f' || c == 0x1a;
}

/* One byte behind the outermost value; *slash: the one before was `/`. */
static enum np_status read_rest_byte(struct np_json *self, char c, uint64_t pos, bool *in_comment,
                                     bool *slash)
{
	static const char what[] = "bytes behind the end of the value";
	struct np_json_repair *garbage = &self->repairs.trailing_bytes;
	if (*in_comment) {
		*in_comment = c != '\n';
		return NP_OK;
	}
	if (*slash ? c == '/' : self->comments && c == '#') {
		uint64_t start = *slash ? pos - 1 : pos;
		if (start >= self->looked) /* else the scan has counted it */
			np_json_repair_add(&self->repairs.comment, start, 1);
		*in_comment = true;
		*slash = false;
		return NP_OK;
	}
	if (*slash)
		return np_json_fail(self, NP_E_FORMAT, pos - 1, what);
	*slash = self->comments && c == '/';
	if (*slash || is_space(c))
		return NP_OK;
	if (!is_garbage(c) || garbage->count >= MAX_TRAILING)
		return np_json_fail(self, NP_E_FORMAT, pos, what);
	return np_json_repair(self, garbage, pos, 1, what);
}

/* What follows the outermost value: white space, comments, a little garbage. */
static enum np_status read_rest(struct np_json *self)
{
	bool in_comment = false, slash = false;
	uint64_t pos = self->end;
	for (;;) {
		if (pos < self->window.offset + self->window.len) {
			NP_TRY(read_rest_byte(self, *at(self, pos), pos, &in_comment, &slash));
			pos++;
			continue;
		}
		if (self->window.eof)
			break;
		self->keep = pos;
		if (self->scanned < pos)
			self->scanned = pos;
		if (!np_json_next_window(self))
			return self->status;
	}
	if (slash)
		return np_json_fail(self, NP_E_FORMAT, pos - 1,
		                    "bytes behind the end of the value");
	self->end = pos;
	return NP_OK;
}

/* Tokens when there is nothing to take any more: what closes the unclosed, then END. */
static __attribute__((noinline)) enum np_status finish(struct np_json *self,
                                                       struct np_json_token *out)
{
	if (self->state == CLOSING && self->depth) {
		container_token(self, self->in_object ? NP_JSON_OBJECT_END : NP_JSON_ARRAY_END,
		                self->scanned, out);
		out->text.len = 0;
		self->end = self->scanned;
		pop(self);
		out->depth = self->depth;
		self->state = self->depth ? CLOSING : ENDING;
		return NP_OK;
	}
	if (self->state != ENDED)
		NP_TRY(read_rest(self));
	if (np_input_faulted(self->input))
		return np_json_fail(self, NP_E_IO, self->end,
		                    "the file became shorter while it was read");
	self->state = ENDED;
	*out = (struct np_json_token){.type = NP_JSON_END, .offset = self->end};
	return NP_OK;
}

/* The input stopped behind a comma. */
static enum np_status stopped_after_comma(struct np_json *self, uint64_t comma,
                                          struct np_json_token *out)
{
	if (self->stop == STOP_EOF)
		NP_TRY(np_json_repair(self, &self->repairs.trailing_comma, comma, 1,
		                      "a comma before the end"));
	NP_TRY(close_unclosed(self));
	return finish(self, out);
}

/* ── the pull reader ────────────────────────────────────────────────────────── */

INLINE bool is_close(char c)
{
	return c == '}' || c == ']';
}

/* Behind a comma came another (*c at *pos) or a closing bracket. Ends at what
 * follows the last comma. */
static __attribute__((cold)) enum np_status extra_commas(struct np_json *self, uint64_t comma,
                                                         uint64_t *pos, char *c)
{
	while (*c == ',') {
		NP_TRY(np_json_repair(self, &self->repairs.trailing_comma, *pos, 1,
		                      "a comma too many"));
		if (!take(self, pos)) {
			*c = 0;
			return NP_OK;
		}
		*c = *at(self, *pos);
	}
	return is_close(*c) ? np_json_repair(self, &self->repairs.trailing_comma, comma, 1,
	                                     "a comma before the closing bracket")
	                    : NP_OK;
}

INLINE enum np_status step(struct np_json *self, struct np_json_token *out)
{
	uint64_t pos;
	if (UNLIKELY(self->state >= CLOSING))
		return finish(self, out);
	if (UNLIKELY(!take(self, &pos))) {
		NP_TRY(at_stop(self));
		return finish(self, out);
	}
	char c = *at(self, pos);
	enum state state = self->state;
	if (state == AFTER) {
		uint64_t comma = pos;
		if (c != ',')
			return close_container(self, c, pos, out);
		if (UNLIKELY(!take(self, &pos)))
			return stopped_after_comma(self, comma, out);
		c = *at(self, pos);
		if (UNLIKELY(c == ',' || is_close(c))) {
			NP_TRY(extra_commas(self, comma, &pos, &c));
			if (c == 0)
				return stopped_after_comma(self, comma, out);
			if (is_close(c))
				return close_container(self, c, pos, out);
		}
	} else if (state == FIRST && is_close(c)) {
		return close_container(self, c, pos, out);
	} else if (UNLIKELY(state == ROOT)) {
		self->root = pos;
	}
	if (self->in_object && state != VALUE)
		return key(self, c, pos, out);
	return value(self, c, pos, out);
}

enum np_status np_json_next(struct np_json *self, struct np_json_token *out, struct np_err *err)
{
	if (UNLIKELY(self->status != NP_OK))
		return give(self, self->status, err);
	self->keep = self->end;
	enum np_status status = step(self, out);
	self->last_type = out->type;
	self->last_offset = out->offset;
	return give(self, status, err);
}

/* The input ended while brackets were looked for. */
static __attribute__((cold)) enum np_status skip_stopped(struct np_json *self, uint32_t target)
{
	if (self->stop == STOP_EOF && self->scan_state.in_string)
		return np_json_fail(self, NP_E_TRUNCATED, self->last_bit,
		                    "the input ends inside this string");
	NP_TRY(close_unclosed(self));
	while (self->depth > target)
		pop(self);
	self->state = self->depth ? CLOSING : ENDING;
	return NP_OK;
}

/* To behind the bracket that brings the depth down to `target`. */
static enum np_status skip_to_depth(struct np_json *self, uint32_t target)
{
	uint64_t found = self->brackets[self->index] & self->bits;
	for (;;) {
		for (; found; found &= found - 1) {
			uint64_t pos = self->block + (unsigned)__builtin_ctzll(found);
			char c = *at(self, pos);
			if (!is_close(c)) {
				NP_TRY(push(self, c == '{', pos));
				continue;
			}
			if (c != (self->in_object ? '}' : ']'))
				return junk(self, pos, "the other closing bracket");
			pop(self);
			if (self->depth == target) {
				self->bits = self->structure[self->index] & ~(found ^ (found - 1));
				self->end = pos + 1;
				return NP_OK;
			}
		}
		do {
			self->index++;
			if (self->index >= self->n_blocks) {
				self->bits = 0;
				if (!np_json_refill(self))
					return skip_stopped(self, target);
				self->index = 0;
			}
			found = self->brackets[self->index];
		} while (!found);
		self->block = self->batch + self->index * NP_JSON_BLOCK;
	}
}

/* The value of the key just read: scalars as they are, of containers the beginning. */
INLINE enum np_status skip_value(struct np_json *self, struct np_json_token *out)
{
	uint64_t pos;
	if (UNLIKELY(!take(self, &pos)))
		return at_stop(self);
	char c = *at(self, pos);
	NP_TRY(value(self, c, pos, out));
	if (c != '{' && c != '[')
		return NP_OK;
	return skip_to_depth(self, self->depth - 1);
}

enum np_status np_json_skip(struct np_json *self, np_str *raw, uint64_t *raw_offset,
                            struct np_err *err)
{
	struct np_json_token token = {.offset = self->last_offset};
	enum np_status status = self->status;
	bool skips = self->last_type == NP_JSON_KEY || self->last_type == NP_JSON_OBJECT_BEGIN ||
	             self->last_type == NP_JSON_ARRAY_BEGIN;
	if (raw)
		*raw = (np_str){NULL, 0};
	if (status != NP_OK || !skips)
		return give(self, status, err);
	if (self->last_type == NP_JSON_KEY) {
		self->keep = self->end;
		status = skip_value(self, &token);
	} else {
		self->keep = UINT64_MAX;
		status = skip_to_depth(self, self->depth - 1);
	}
	self->last_type = NP_JSON_END;
	if (status == NP_OK && raw && self->whole) {
		*raw = (np_str){at(self, token.offset), (size_t)(self->end - token.offset)};
		*raw_offset = token.offset;
	}
	return give(self, status, err);
}

/*
 * The common member `, "key": value` without the state machine: a cursor over the
 * batch's structure bits, in registers. Nothing is changed before the member is
 * known to be plain and inside the batch; else the answer is false and the long
 * way begins where this one did.
 */
struct cursor {
	const uint64_t *structure;
	uint64_t bits;
	size_t index, n_blocks;
};

/* The next structure bit as an offset in the batch. */
INLINE bool cursor_take(struct cursor *self, size_t *pos)
{
	while (UNLIKELY(!self->bits)) {
		if (++self->index >= self->n_blocks)
			return false;
		self->bits = self->structure[self->index];
	}
	*pos = self->index * NP_JSON_BLOCK + (unsigned)__builtin_ctzll(self->bits);
	self->bits &= self->bits - 1;
	return true;
}

/* The string from the quote at `open` is plain text; *close is its other quote. */
INLINE bool cursor_string(struct np_json *reader, struct cursor *self, size_t open, size_t *close)
{
	if (UNLIKELY(!cursor_take(self, close)))
		return false;
	uint64_t end = reader->batch + *close;
	return LIKELY(end <= reader->clean_end) || is_clean(reader, reader->batch + open, end);
}

/* The number from `start` is of the grammar; *end is behind it. */
INLINE bool cursor_number(const struct np_json *reader, const struct cursor *self,
                          const char *bytes, size_t start, size_t *end)
{
	struct cursor ahead = *self;
	if (UNLIKELY(!cursor_take(&ahead, end)))
		return false;
	while (is_space(bytes[*end - 1]))
		--*end;
	np_str text = {bytes + start, *end - start};
	return is_plain_number(reader, text) || np_json_check_number(text) == NP_JSON_NUMERIC_OK;
}

INLINE void cursor_commit(struct np_json *reader, const struct cursor *self, uint64_t end)
{
	reader->bits = self->bits;
	reader->index = self->index;
	reader->block = reader->batch + self->index * NP_JSON_BLOCK;
	reader->end = end;
	reader->state = AFTER;
}

/* The container value whose bracket was just taken. */
INLINE void fast_container(struct np_json *self, char c, uint64_t offset, struct np_json_token *out)
{
	if (open_container(self, c, offset, out) == NP_OK &&
	    skip_to_depth(self, self->depth - 1) == NP_OK)
		out->text = (np_str){at(self, offset), (size_t)(self->end - offset)};
}

/* False: nothing done. True: done, or failed with self->status. */
INLINE bool fast_member(struct np_json *self, struct np_json_member *out)
{
	struct cursor cursor = {self->structure, self->bits, self->index, self->n_blocks};
	size_t open, close, colon, start, end;
	if (UNLIKELY(self->comments || self->state > AFTER || self->index >= self->n_blocks))
		return false;
	const char *bytes = at(self, self->batch);
	if (UNLIKELY(!cursor_take(&cursor, &open)))
		return false;
	if (self->state == AFTER && (bytes[open] != ',' || !cursor_take(&cursor, &open)))
		return false;
	if (bytes[open] != '"' || !cursor_string(self, &cursor, open, &close) ||
	    !cursor_take(&cursor, &colon) || bytes[colon] != ':' || !cursor_take(&cursor, &start))
		return false;
	struct np_json_token *value = &out->value;
	char c = bytes[start];
	value->escaped = false;
	value->depth = self->depth;
	value->offset = self->batch + start;
	out->key = (np_str){bytes + open + 1, close - open - 1};
	out->key_offset = self->batch + open;
	out->key_escaped = false;
	if (c == '"') {
		if (!cursor_string(self, &cursor, start, &end))
			return false;
		value->type = NP_JSON_STRING;
		value->text = (np_str){bytes + start + 1, end - start - 1};
		cursor_commit(self, &cursor, self->batch + end + 1);
	} else if ((unsigned)(c - '0') < 10 || c == '-') {
		if (!cursor_number(self, &cursor, bytes, start, &end))
			return false;
		value->type = NP_JSON_NUMBER;
		value->text = (np_str){bytes + start, end - start};
		cursor_commit(self, &cursor, self->batch + end);
	} else if (c == '{' || c == '[') {
		cursor_commit(self, &cursor, self->batch + start + 1);
		fast_container(self, c, value->offset, value);
	} else {
		return false;
	}
	return true;
}

/* The same the long way. False: the object has ended, or self->status. */
static bool slow_member(struct np_json *self, struct np_json_member *out)
{
	struct np_json_token *token = &out->value;
	if (step(self, token) != NP_OK || token->type == NP_JSON_OBJECT_END)
		return false;
	out->key = token->text;
	out->key_escaped = token->escaped;
	out->key_offset = token->offset;
	if (skip_value(self, token) != NP_OK)
		return false;
	if (token->type == NP_JSON_OBJECT_BEGIN || token->type == NP_JSON_ARRAY_BEGIN)
		token->text =
			(np_str){at(self, token->offset), (size_t)(self->end - token->offset)};
	return true;
}

enum np_status np_json_members(struct np_json *self, struct np_json_member *out, size_t max,
                               size_t *n, struct np_err *err)
{
	uint64_t moves = self->moves;
	size_t got = 0;
	*n = 0;
	if (self->status != NP_OK)
		return give(self, self->status, err);
	if (!self->in_object || self->state == VALUE)
		return np_err_set(err, NP_E_USAGE, np_input_name(self->input),
		                  "not inside an object");
	self->keep = self->end;
	self->last_type = NP_JSON_END;
	while (got < max) {
		if (LIKELY(fast_member(self, &out[got]))) {
			if (UNLIKELY(self->status != NP_OK))
				break;
		} else if (!slow_member(self, &out[got])) {
			break;
		}
		got++;
	}
	for (size_t i = 0; UNLIKELY(self->moves != moves) && i < got; i++) {
		struct np_json_member *member = &out[i];
		bool quoted = member->value.type == NP_JSON_STRING;
		member->key.ptr = at(self, member->key_offset + 1);
		member->value.text.ptr = at(self, member->value.offset + quoted);
	}
	*n = got;
	return give(self, self->status, err);
}
