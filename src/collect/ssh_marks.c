#include "collect/ssh_marks.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "collect/quote.h"

enum { TAIL_MAX = 24 }; /* of a mark: a sign, a number, a line feed */

enum np_status np_marks_make(struct np_marks *self, struct np_err *err)
{
	unsigned char bytes[16];
	ssize_t got;
	do
		got = getrandom(bytes, sizeof bytes, 0);
	while (got < 0 && errno == EINTR);
	if (got != (ssize_t)sizeof bytes)
		return np_err_sys(err, errno, NULL, "get random bytes");
	self->mark[0] = 0x1e;
	for (size_t i = 0; i < sizeof bytes; i++)
		(void)snprintf(self->mark + 1 + 2 * i, 3, "%02x", bytes[i]);
	return NP_OK;
}

const char *np_marks_line(const struct np_marks *self, struct np_arena *arena,
                          const char *const *argv)
{
	/* the status is told on stderr, behind all that the command wrote there */
	static const char script[] = "printf '\\036%s+%s\\n' \"$0\" \"$$\"; printf '\\036%s+\\n' "
				     "\"$0\" >&2; (\"$@\"); s=$?; "
				     "printf '\\036%s=%s\\n' \"$0\" \"$s\" >&2; exit \"$s\"";
	struct np_buf line = {0};
	np_buf_add_cstr(&line, "exec sh -c ");
	np_quote_word(&line, np_str_of(script));
	np_buf_printf(&line, " %s ", self->mark + 1);
	np_quote_argv(&line, argv);
	const char *text = line.failed ? NULL : np_arena_cstr(arena, np_buf_str(&line));
	np_buf_release(&line);
	return text;
}

void np_mark_filter_init(struct np_mark_filter *self, const struct np_marks *marks,
                         struct np_sink to)
{
	*self = (struct np_mark_filter){.marks = marks, .to = to};
	self->noise.max_bytes = (size_t)NP_MARK_NOISE + 1;
}

void np_mark_filter_release(struct np_mark_filter *self)
{
	np_buf_release(&self->noise);
}

static enum np_status give(struct np_mark_filter *self, const char *bytes, size_t len,
                           struct np_err *err)
{
	if (len == 0)
		return NP_OK;
	if (self->begun && !self->ended)
		return self->to.take(self->to.ctx, bytes, len, err);
	size_t room = NP_MARK_NOISE > self->noise.len ? NP_MARK_NOISE - self->noise.len : 0;
	np_buf_add(&self->noise, bytes, len < room ? len : room);
	return NP_OK;
}

/* The whole of a mark without its line feed: does it say something? */
static bool heed(struct np_mark_filter *self)
{
	np_str tail = {self->held + NP_MARK_BYTES, self->n_held - NP_MARK_BYTES};
	uint64_t number = 0;
	if (tail.len == 0 || (tail.ptr[0] != '+' && tail.ptr[0] != '='))
		return false;
	np_str digits = np_str_from(tail, 1);
	if (digits.len && (!np_str_to_u64(digits, &number) || number > INT32_MAX))
		return false;
	if (tail.ptr[0] == '+' && !self->begun) {
		self->begun = true;
		self->pid = (int64_t)number;
		return true;
	}
	if (tail.ptr[0] != '=' || digits.len == 0 || !self->begun || self->ended)
		return false;
	self->ended = true;
	self->status = (int)number;
	return true;
}

/* May `c` follow the bytes that are held? */
static bool fits(const struct np_mark_filter *self, char c)
{
	size_t n = self->n_held;
	if (n < NP_MARK_BYTES)
		return c == self->marks->mark[n];
	if (n == NP_MARK_BYTES)
		return c == '+' || c == '=';
	return n < NP_MARK_BYTES + TAIL_MAX && ((c >= '0' && c <= '9') || c == '\n');
}

static enum np_status let_go(struct np_mark_filter *self, struct np_err *err)
{
	size_t n = self->n_held;
	self->n_held = 0;
	return give(self, self->held, n, err);
}

/* Where a mark begins, or begins to begin at the end of the bytes; NULL. One byte of 256 in packed
 * data looks like a mark: it must not cut what is handed on into crumbs. */
static const char *find_mark(const struct np_mark_filter *self, const char *p, const char *end)
{
	const char *mark = self->marks->mark;
	for (; p < end; p++) {
		p = memchr(p, mark[0], (size_t)(end - p));
		if (!p)
			return NULL;
		size_t left = (size_t)(end - p);
		if (memcmp(p, mark, left < NP_MARK_BYTES ? left : NP_MARK_BYTES) == 0)
			return p;
	}
	return NULL;
}

enum np_status np_mark_filter_take(void *ctx, const void *bytes, size_t len, struct np_err *err)
{
	struct np_mark_filter *self = ctx;
	const char *p = bytes, *end = p + len;
	while (p < end) {
		if (self->n_held == 0) {
			const char *hit = find_mark(self, p, end);
			NP_TRY(give(self, p, (size_t)((hit ? hit : end) - p), err));
			if (!hit)
				break;
			self->held[self->n_held++] = *hit;
			p = hit + 1;
		} else if (!fits(self, *p)) {
			NP_TRY(let_go(self, err)); /* and look at this byte again */
		} else if (*p == '\n' && heed(self)) {
			self->n_held = 0;
			p++;
		} else {
			self->held[self->n_held++] = *p++;
			if (p[-1] == '\n')
				NP_TRY(let_go(self, err));
		}
	}
	return NP_OK;
}

enum np_status np_mark_filter_end(struct np_mark_filter *self, struct np_err *err)
{
	return let_go(self, err);
}
