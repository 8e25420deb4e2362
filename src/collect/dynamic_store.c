#include "collect/dynamic_store.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "collect/dynamic_text.h"

#define SECOND 1000000000LL

static void nap(np_ns ns)
{
	struct timespec pause = {(time_t)(ns / SECOND), (long)(ns % SECOND)};
	(void)nanosleep(&pause, NULL);
}

static np_ns mtime_of(const struct stat *st)
{
	return (np_ns)st->st_mtim.tv_sec * SECOND + st->st_mtim.tv_nsec;
}

static np_ns patience_of(const struct np_dyn_rewrite *self)
{
	return (np_ns)((self->patience_seconds > 0 ? self->patience_seconds : 10) * 1e9);
}

/* ── opening, under the lock ── */

static enum np_status open_regular(const char *path, bool writing, int *fd, struct stat *st,
                                   struct np_err *err)
{
	*fd = -1;
	/* looked at before it is opened: a pipe would wait for its other end */
	if (stat(path, st) == 0 && !S_ISREG(st->st_mode))
		return np_err_set(err, NP_E_FORMAT, path, "is no regular file");
	*fd = open(path, (writing ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NOCTTY);
	if (*fd < 0)
		return np_err_sys(err, errno, path, writing ? "open it for writing" : "open");
	if (fstat(*fd, st) != 0)
		return np_err_sys(err, errno, path, "stat");
	if (st->st_size > NP_DYN_MAX_BYTES)
		return np_err_set(err, NP_E_LIMIT, path,
		                  "is larger than the 1 MiB that torch_npu reads");
	return NP_OK;
}

/* Is this still the file of that name? An editor may have put another one there. */
static bool is_current(const char *path, const struct stat *st)
{
	struct stat now;
	return stat(path, &now) == 0 && now.st_dev == st->st_dev && now.st_ino == st->st_ino;
}

static enum np_status open_locked(const char *path, const struct np_dyn_rewrite *self, int *fd,
                                  struct np_err *err)
{
	np_ns until = np_time_now() + patience_of(self);
	struct stat st;
	for (;;) {
		enum np_status status = open_regular(path, true, fd, &st, err);
		bool locked = status == NP_OK && flock(*fd, LOCK_EX | LOCK_NB) == 0;
		/* a file system without flock() has no such editors to keep out either */
		bool no_locks =
			status == NP_OK && !locked && errno != EWOULDBLOCK && errno != EINTR;
		if ((locked || no_locks) && is_current(path, &st))
			return NP_OK;
		if (*fd >= 0)
			(void)close(*fd);
		*fd = -1;
		NP_TRY(status);
		if (np_time_now() > until)
			return np_err_set(err, NP_E_EXISTS, path,
			                  "another npuprof is changing it (flock)");
		nap(SECOND / 500);
	}
}

/* ── reading ── */

static enum np_status read_all(int fd, const char *path, struct np_buf *out, struct np_err *err)
{
	char block[16384];
	np_buf_clear(out);
	for (off_t at = 0;;) {
		ssize_t got = pread(fd, block, sizeof block, at);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return np_err_sys(err, errno, path, "read");
		if (got == 0)
			return out->failed ? np_err_nomem(err) : NP_OK;
		np_buf_add(out, block, (size_t)got);
		at += got;
		if (at > NP_DYN_MAX_BYTES)
			return np_err_set(err, NP_E_LIMIT, path,
			                  "is larger than the 1 MiB that torch_npu reads");
	}
}

/* ── the lease ── */

static bool take_lease(int fd, const struct np_dyn_rewrite *self)
{
	enum { TRIES = 400 };
	if (self->no_lease)
		return false;
	/* who opens the file makes the kernel send this signal, which does nothing by default;
	 * the usual SIGIO would end the program */
	if (fcntl(fd, F_SETSIG, SIGURG) != 0)
		return false;
	for (int i = 0; i < TRIES; i++) {
		if (fcntl(fd, F_SETLEASE, F_WRLCK) == 0)
			return true;
		if (errno != EAGAIN && errno != EBUSY && errno != EINTR)
			return false; /* no leases here */
		nap(SECOND / 2000);   /* somebody has it open */
	}
	return false;
}

static void drop_lease(int fd)
{
	(void)fcntl(fd, F_SETLEASE, F_UNLCK);
}

/* ── writing ── */

static enum np_status write_at(int fd, const char *path, np_str text, size_t at, struct np_err *err)
{
	while (text.len) {
		ssize_t put = pwrite(fd, text.ptr, text.len, (off_t)at);
		if (put < 0 && errno == EINTR)
			continue;
		if (put <= 0)
			return np_err_sys(err, put < 0 ? errno : EIO, path, "write");
		text = np_str_from(text, (size_t)put);
		at += (size_t)put;
	}
	return NP_OK;
}

static enum np_status add_spaces(struct np_buf *text, size_t len, struct np_err *err)
{
	while (text->len < len && !text->failed)
		np_buf_add_char(text, ' ');
	return text->failed ? np_err_nomem(err) : NP_OK;
}

/* The three steps of dynamic_store.h; `shown` is what the file is to hold. */
static enum np_status write_steps(int fd, const char *path, size_t old_len, np_str shown,
                                  bool leased, struct np_err *err)
{
	struct np_buf padded = {0}, spaces = {0};
	enum np_status status = NP_OK;
	if (shown.len > old_len) {
		status = add_spaces(&spaces, shown.len - old_len, err);
		if (status == NP_OK)
			status = write_at(fd, path, np_buf_str(&spaces), old_len, err);
		if (status == NP_OK && !leased)
			nap(SECOND / 20);
		if (status != NP_OK) /* the old text is still there; take the spaces away */
			(void)!ftruncate(fd, (off_t)old_len);
	}
	np_buf_add_str(&padded, shown);
	if (status == NP_OK)
		status = add_spaces(&padded, old_len, err);
	if (status == NP_OK)
		status = write_at(fd, path, np_buf_str(&padded), 0, err);
	if (status == NP_OK && shown.len < old_len && ftruncate(fd, (off_t)shown.len) != 0)
		status = np_err_sys(err, errno, path, "cut");
	np_buf_release(&spaces);
	np_buf_release(&padded);
	return status;
}

/* The kernel stamps a write by a clock that is some ms late, a server by its own one. */
static enum np_status stamp(int fd, const char *path, struct np_dyn_rewrite *self,
                            struct np_err *err)
{
	struct stat st;
	if (fstat(fd, &st) != 0)
		return np_err_sys(err, errno, path, "stat");
	if (!self->same_second && mtime_of(&st) / SECOND <= self->mtime_before / SECOND) {
		const struct timespec now[2] = {{.tv_nsec = UTIME_NOW}, {.tv_nsec = UTIME_NOW}};
		np_ns ours = np_time_now();
		const struct timespec exact[2] = {
			{.tv_nsec = UTIME_OMIT},
			{.tv_sec = (time_t)(ours / SECOND), .tv_nsec = (long)(ours % SECOND)}};
		if (futimens(fd, exact) != 0 && futimens(fd, now) != 0)
			return np_err_sys(err, errno, path, "set the time of");
		if (fstat(fd, &st) != 0)
			return np_err_sys(err, errno, path, "stat");
	}
	self->mtime_after = mtime_of(&st);
	return NP_OK;
}

static enum np_status write_and_look(int fd, const char *path, struct np_dyn_rewrite *self,
                                     struct np_err *err)
{
	struct np_buf back = {0};
	np_str text = np_buf_str(&self->new_text);
	enum np_status status = write_steps(fd, path, self->old_text.len, text, self->leased, err);
	if (status == NP_OK)
		status = stamp(fd, path, self, err);
	if (status == NP_OK)
		status = read_all(fd, path, &back, err);
	if (status == NP_OK && !np_str_eq(np_buf_str(&back), text))
		self->overwritten = true;
	np_buf_release(&back);
	return status;
}

/* Nobody wrote since we have read it. */
static enum np_status is_unchanged(int fd, const char *path, const struct np_dyn_rewrite *self,
                                   bool *same, struct np_err *err)
{
	struct np_buf again = {0};
	struct stat st;
	enum np_status status = read_all(fd, path, &again, err);
	if (status == NP_OK && fstat(fd, &st) != 0)
		status = np_err_sys(err, errno, path, "stat");
	*same = status == NP_OK && np_str_eq(np_buf_str(&again), np_buf_str(&self->old_text)) &&
	        mtime_of(&st) == self->mtime_before;
	np_buf_release(&again);
	return status;
}

/* Wait until a write gives the mtime another second. */
static enum np_status wait_second(const char *path, const struct np_dyn_rewrite *self,
                                  struct np_err *err)
{
	/* the clock of files may be a tick late */
	np_ns next = (self->mtime_before / SECOND + 1) * SECOND + SECOND / 50;
	np_ns pause = next - np_time_now();
	if (self->same_second || pause <= 0)
		return NP_OK;
	if (pause > patience_of(self))
		return np_err_set(err, NP_E_RANGE, path,
		                  "its time lies %.0f s in the future: ranks that have seen it "
		                  "ignore every change until then; set the clocks right, then "
		                  "touch the file",
		                  (double)pause / 1e9);
	nap(pause);
	return NP_OK;
}

/* One attempt; *again: somebody else was faster. */
static enum np_status attempt(int fd, const char *path, np_dyn_transform *transform, void *context,
                              struct np_dyn_rewrite *self, bool *again, struct np_err *err)
{
	struct stat st;
	bool same = false;
	*again = false;
	if (fstat(fd, &st) != 0)
		return np_err_sys(err, errno, path, "stat");
	self->mtime_before = mtime_of(&st);
	self->inode = st.st_ino;
	np_buf_clear(&self->new_text);
	NP_TRY(read_all(fd, path, &self->old_text, err));
	NP_TRY(transform(context, np_buf_str(&self->old_text), &self->new_text, err));
	if (self->new_text.failed)
		return np_err_nomem(err);
	if (self->new_text.len > NP_DYN_MAX_BYTES)
		return np_err_set(err, NP_E_LIMIT, path, "would be larger than 1 MiB");
	if (self->dry_run)
		return NP_OK;
	NP_TRY(wait_second(path, self, err));
	self->leased = take_lease(fd, self);
	enum np_status status = is_unchanged(fd, path, self, &same, err);
	if (status == NP_OK && same)
		status = write_and_look(fd, path, self, err);
	else
		*again = status == NP_OK;
	if (self->leased)
		drop_lease(fd);
	return status;
}

static enum np_status settle(int fd, const char *path, struct np_dyn_rewrite *self,
                             struct np_err *err)
{
	struct stat st = {0};
	struct np_buf back = {0};
	if (fsync(fd) != 0)
		return np_err_sys(err, errno, path, "write it to the disk");
	enum np_status status = read_all(fd, path, &back, err);
	if (status == NP_OK && fstat(fd, &st) != 0)
		status = np_err_sys(err, errno, path, "stat");
	if (status == NP_OK &&
	    (!np_str_eq(np_buf_str(&back), np_buf_str(&self->new_text)) || !is_current(path, &st)))
		self->overwritten = true;
	np_buf_release(&back);
	return status;
}

enum np_status np_dyn_rewrite(const char *path, np_dyn_transform *transform, void *context,
                              struct np_dyn_rewrite *self, struct np_err *err)
{
	enum { TRIES = 20 };
	int fd = -1;
	bool again = true;
	struct stat st;
	enum np_status status = self->dry_run ? open_regular(path, false, &fd, &st, err)
	                                      : open_locked(path, self, &fd, err);
	for (int i = 0; status == NP_OK && again && i < TRIES; i++) {
		status = attempt(fd, path, transform, context, self, &again, err);
		self->retries += again;
	}
	if (status == NP_OK && again)
		status = np_err_set(err, NP_E_EXISTS, path,
		                    "somebody changes it all the time; close other editors");
	if (status == NP_OK && !self->dry_run)
		status = settle(fd, path, self, err);
	if (fd >= 0)
		(void)close(fd);
	return status;
}

void np_dyn_rewrite_release(struct np_dyn_rewrite *self)
{
	np_buf_release(&self->old_text);
	np_buf_release(&self->new_text);
}

enum np_status np_dyn_read(struct np_arena *arena, const char *path, np_str *out,
                           struct np_err *err)
{
	enum { TRIES = 20 };
	enum np_status status = np_file_slurp(arena, path, NP_DYN_MAX_BYTES, out, err);
	for (int i = 0; status == NP_E_IO && i < TRIES; i++) {
		nap(SECOND / 500);
		status = np_file_slurp(arena, path, NP_DYN_MAX_BYTES, out, err);
	}
	return status;
}
