#include "collect/sink.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { PATIENCE_MS = 2000, CHUNK = 4096 };

np_ns np_monotonic(void)
{
	struct timespec now;
	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (np_ns)now.tv_sec * 1000000000 + now.tv_nsec;
}

void np_sink_open(struct np_sink *self, int fd)
{
	struct stat stat;
	char path[64];
	*self = (struct np_sink){.fd = fd};
	if (fd < 0 || fstat(fd, &stat) != 0) {
		self->fd = -1;
		return;
	}
	self->direct = S_ISREG(stat.st_mode);
	if (self->direct)
		return;
	/* O_NONBLOCK on the stream itself would be seen by all who share it, as the shell */
	(void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	int again = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY | O_APPEND);
	if (again < 0)
		return;
	self->own = true;
	self->fd = again;
}

void np_sink_close(struct np_sink *self)
{
	if (self->own && self->fd >= 0)
		(void)close(self->fd);
	self->fd = -1;
	self->lost += self->pending.len - self->at;
	np_buf_release(&self->pending);
	self->at = 0;
}

bool np_sink_waits(const struct np_sink *self)
{
	return self->fd >= 0 && self->pending.len > self->at;
}

/* Write what can be written without waiting; the number of bytes, -1 when the reader left. */
static ssize_t write_some(const struct np_sink *self, np_str bytes)
{
	struct pollfd room = {.fd = self->fd, .events = POLLOUT};
	size_t done = 0;
	while (done < bytes.len) {
		if (!self->direct && !self->own && poll(&room, 1, 0) != 1)
			break;
		size_t want = bytes.len - done;
		if (!self->direct && !self->own && want > CHUNK)
			want = CHUNK;
		ssize_t n = write(self->fd, bytes.ptr + done, want);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			break;
		if (n <= 0)
			return -1;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

void np_sink_add(struct np_sink *self, np_str bytes)
{
	if (self->fd < 0 || bytes.len == 0)
		return;
	if (self->shedding) {
		self->lost += bytes.len;
		return;
	}
	if (!np_sink_waits(self)) {
		ssize_t n = write_some(self, bytes);
		if (n < 0) {
			np_sink_close(self);
			return;
		}
		bytes = np_str_from(bytes, (size_t)n);
	}
	np_buf_add_str(&self->pending, bytes);
	if (self->pending.failed) {
		self->lost += bytes.len;
		self->pending.failed = false;
	}
}

void np_sink_flush(struct np_sink *self, np_ns now)
{
	if (!np_sink_waits(self))
		return;
	ssize_t n = write_some(self, np_str_from(np_buf_str(&self->pending), self->at));
	if (n < 0) {
		np_sink_close(self);
		return;
	}
	self->at += (size_t)n;
	if (n > 0) {
		self->stuck_since = 0;
		self->shedding = false;
	} else if (self->stuck_since == 0) {
		self->stuck_since = now;
	}
	if (self->at == self->pending.len) {
		np_buf_clear(&self->pending);
		self->at = 0;
	} else if (self->at > NP_SINK_PENDING) {
		self->pending.len -= self->at;
		memmove(self->pending.ptr, self->pending.ptr + self->at, self->pending.len + 1);
		self->at = 0;
	}
}

bool np_sink_full(struct np_sink *self, np_ns now)
{
	if (!np_sink_waits(self) || self->pending.len - self->at < NP_SINK_PENDING)
		return false;
	if (self->stuck_since == 0)
		self->stuck_since = now;
	if (now - self->stuck_since < (np_ns)PATIENCE_MS * 1000000)
		return !self->shedding;
	self->shedding = true;
	return false;
}
