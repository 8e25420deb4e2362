#include "synth/out.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

enum np_status np_out_open(struct np_out *self, const char *dir, const char *name,
                           struct np_err *err)
{
	*self = (struct np_out){.fd = -1};
	int n = snprintf(self->path, sizeof self->path, "%s/%s", dir, name);
	if (n < 0 || (size_t)n >= sizeof self->path)
		return np_err_set(err, NP_E_LIMIT, dir, "path is too long");
	self->buf = np_alloc(NP_OUT_BUFFER + NP_OUT_MARGIN);
	if (!self->buf)
		return np_err_nomem(err);
	self->fd = open(self->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);
	if (self->fd < 0) {
		int errnum = errno;
		np_out_abandon(self);
		return np_err_sys(err, errnum, self->path, "create");
	}
	return NP_OK;
}

void np_out_abandon(struct np_out *self)
{
	if (self->buf && self->fd >= 0)
		(void)close(self->fd);
	self->fd = -1;
	np_free(self->buf);
	self->buf = NULL;
}

enum np_status np_out_close(struct np_out *self, uint64_t *bytes, struct np_err *err)
{
	np_out_flush(self);
	int errnum = self->errnum;
	if (close(self->fd) != 0 && errnum == 0)
		errnum = errno;
	self->fd = -1;
	*bytes += self->total_bytes;
	np_out_abandon(self);
	return errnum ? np_err_sys(err, errnum, self->path, "write") : NP_OK;
}

void np_out_flush(struct np_out *self)
{
	size_t done = 0;
	while (done < self->len && self->errnum == 0) {
		ssize_t n = write(self->fd, self->buf + done, self->len - done);
		if (n < 0 && errno != EINTR)
			self->errnum = errno;
		else if (n > 0)
			done += (size_t)n;
	}
	self->total_bytes += self->len;
	self->len = 0;
}

void np_out_bytes(struct np_out *self, const char *bytes, size_t len)
{
	if (self->len >= NP_OUT_BUFFER) /* a number may have used the margin */
		np_out_flush(self);
	while (len > NP_OUT_BUFFER - self->len) {
		size_t part = NP_OUT_BUFFER - self->len;
		memcpy(self->buf + self->len, bytes, part);
		self->len += part;
		bytes += part;
		len -= part;
		np_out_flush(self);
	}
	memcpy(self->buf + self->len, bytes, len);
	self->len += len;
}

/* Room for one number: the margin behind the buffer makes one check enough. */
static char *number_room(struct np_out *self)
{
	if (self->len >= NP_OUT_BUFFER)
		np_out_flush(self);
	return self->buf + self->len;
}

enum { DIGITS = 24 };

/* the decimal digits of value, right-aligned in tmp; returns where they begin */
static size_t digits_of(char tmp[DIGITS], uint64_t value)
{
	size_t at = DIGITS;
	do {
		tmp[--at] = (char)('0' + value % 10);
		value /= 10;
	} while (value);
	return at;
}

void np_out_u64(struct np_out *self, uint64_t value)
{
	char tmp[DIGITS];
	char *to = number_room(self);
	size_t from = digits_of(tmp, value);
	memcpy(to, tmp + from, DIGITS - from);
	self->len += DIGITS - from;
}

void np_out_i64(struct np_out *self, int64_t value)
{
	if (value < 0)
		np_out_char(self, '-');
	np_out_u64(self, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

void np_out_fixed(struct np_out *self, int64_t value, unsigned digits)
{
	char tmp[DIGITS];
	if (value < 0)
		np_out_char(self, '-');
	char *to = number_room(self);
	size_t from = digits_of(tmp, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
	while (DIGITS - from <= digits)
		tmp[--from] = '0';
	size_t whole = DIGITS - from - digits;
	memcpy(to, tmp + from, whole);
	to[whole] = '.';
	memcpy(to + whole + 1, tmp + from + whole, digits);
	self->len += whole + 1 + digits;
}

void np_out_short(struct np_out *self, int64_t value, unsigned digits)
{
	while (digits > 1 && value % 10 == 0) {
		value /= 10;
		digits--;
	}
	np_out_fixed(self, value, digits);
}

void np_out_csv(struct np_out *self, const char *text)
{
	size_t len = strlen(text);
	if (!strpbrk(text, ",\"\r\n")) {
		np_out_bytes(self, text, len);
		return;
	}
	np_out_char(self, '"');
	for (size_t i = 0; i < len; i++) {
		if (text[i] == '"')
			np_out_char(self, '"');
		np_out_char(self, text[i]);
	}
	np_out_char(self, '"');
}

void np_out_json(struct np_out *self, const char *text)
{
	static const char hex[] = "0123456789abcdef";
	np_out_char(self, '"');
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;
		if (c == '"' || c == '\\') {
			np_out_char(self, '\\');
			np_out_char(self, (char)c);
		} else if (c == '\n') {
			np_out_lit(self, "\\n");
		} else if (c == '\r') {
			np_out_lit(self, "\\r");
		} else if (c < 0x20) {
			np_out_lit(self, "\\u00");
			np_out_char(self, hex[c >> 4]);
			np_out_char(self, hex[c & 15]);
		} else {
			np_out_char(self, (char)c);
		}
	}
	np_out_char(self, '"');
}
