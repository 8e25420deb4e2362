#include "collect/subprocess.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

enum { CHUNK = 262144, PIPE_BYTES = 1 << 20, TICK_MS = 100, TICK_NO_PIDFD_MS = 20 };

uint64_t np_clock_ms(void)
{
	struct timespec now;
	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

bool np_sleep_ms(uint64_t ms, const atomic_bool *cancel)
{
	uint64_t end = np_clock_ms() + ms;
	for (uint64_t now = np_clock_ms(); now < end; now = np_clock_ms()) {
		if (cancel && atomic_load(cancel))
			return false;
		uint64_t left = end - now < TICK_MS ? end - now : TICK_MS;
		struct timespec nap = {.tv_sec = 0, .tv_nsec = (long)left * 1000000};
		(void)nanosleep(&nap, NULL);
	}
	return !(cancel && atomic_load(cancel));
}

/* ── SIGPIPE, blocked for this thread ── */

struct pipe_guard {
	sigset_t before;
	bool was_pending;
};

static void sigpipe_set(sigset_t *set)
{
	(void)sigemptyset(set);
	(void)sigaddset(set, SIGPIPE);
}

static void guard_begin(struct pipe_guard *guard)
{
	sigset_t set, pending;
	(void)sigpending(&pending);
	guard->was_pending = sigismember(&pending, SIGPIPE) == 1;
	sigpipe_set(&set);
	(void)pthread_sigmask(SIG_BLOCK, &set, &guard->before);
}

static void guard_end(struct pipe_guard *guard)
{
	sigset_t set;
	const struct timespec now = {0, 0};
	sigpipe_set(&set);
	if (!guard->was_pending)
		while (sigtimedwait(&set, NULL, &now) < 0 && errno == EINTR)
			continue;
	(void)pthread_sigmask(SIG_SETMASK, &guard->before, NULL);
}

/* ── starting ── */

struct child {
	const struct np_subprocess *spec;
	struct np_subprocess_result *result;
	pid_t pid;
	int pidfd;        /* -1: an old kernel */
	int in, out, err; /* our ends; -1: closed */
	char *feed;       /* CHUNK bytes of PULL */
	np_str pending;   /* of the input, not yet written */
	bool input_ended;
	bool ended; /* the child is gone, but not yet reaped: its group's id is still ours */
	uint64_t deadline, ended_at, killed_at;
	bool killed_hard;
};

static void close_fd(int *fd)
{
	if (*fd >= 0)
		(void)close(*fd);
	*fd = -1;
}

static char **merged_env(const char *const *extra)
{
	size_t n = 0, n_extra = 0, used = 0;
	while (environ && environ[n])
		n++;
	while (extra && extra[n_extra])
		n_extra++;
	char **env = np_calloc(n + n_extra + 1, sizeof *env);
	for (size_t i = 0; env && i < n; i++) {
		bool replaced = false;
		size_t len = strcspn(environ[i], "=");
		for (size_t k = 0; k < n_extra; k++)
			replaced |= strncmp(environ[i], extra[k], len + 1) == 0;
		if (!replaced)
			env[used++] = environ[i];
	}
	for (size_t k = 0; env && k < n_extra; k++)
		env[used++] = (char *)(uintptr_t)extra[k];
	return env;
}

static int spawn_attributes(posix_spawnattr_t *attr, const sigset_t *mask)
{
	sigset_t defaults;
	(void)sigemptyset(&defaults);
	(void)sigaddset(&defaults, SIGPIPE);
	(void)sigaddset(&defaults, SIGINT);
	(void)sigaddset(&defaults, SIGTERM);
	(void)sigaddset(&defaults, SIGHUP);
	int error = posix_spawnattr_setsigdefault(attr, &defaults);
	error = error ? error : posix_spawnattr_setsigmask(attr, mask);
	error = error ? error : posix_spawnattr_setpgroup(attr, 0);
	return error ? error
	             : posix_spawnattr_setflags(attr, POSIX_SPAWN_SETPGROUP |
	                                                      POSIX_SPAWN_SETSIGDEF |
	                                                      POSIX_SPAWN_SETSIGMASK);
}

static int spawn_streams(posix_spawn_file_actions_t *actions, const struct np_subprocess *spec,
                         int in, int out, int err)
{
	int error;
	if (spec->input.kind == NP_SOURCE_NONE)
		error = posix_spawn_file_actions_addopen(actions, 0, "/dev/null", O_RDONLY, 0);
	else
		error = posix_spawn_file_actions_adddup2(actions, in, 0);
	error = error ? error : posix_spawn_file_actions_adddup2(actions, out, 1);
	return error ? error : posix_spawn_file_actions_adddup2(actions, err, 2);
}

/* 0 or an errno; `in`, `out`, `err` are the child's ends. */
static int spawn_child(struct child *self, const sigset_t *mask, int in, int out, int err)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	char **env = merged_env(self->spec->env);
	int error = env ? posix_spawn_file_actions_init(&actions) : ENOMEM;
	if (error) {
		np_free(env);
		return error;
	}
	error = posix_spawnattr_init(&attr);
	if (error == 0) {
		error = spawn_streams(&actions, self->spec, in, out, err);
		error = error ? error : spawn_attributes(&attr, mask);
		if (error == 0)
			error = posix_spawnp(&self->pid, self->spec->argv[0], &actions, &attr,
			                     (char *const *)(uintptr_t)self->spec->argv, env);
		(void)posix_spawnattr_destroy(&attr);
	}
	(void)posix_spawn_file_actions_destroy(&actions);
	np_free(env);
	return error;
}

/* Descriptors 0…2 of our own could be closed: a pipe end there would be lost in the child. */
static int make_pipe(int ends[2])
{
	if (pipe2(ends, O_CLOEXEC) != 0)
		return errno;
	for (int i = 0; i < 2; i++) {
		if (ends[i] > 2)
			continue;
		int moved = fcntl(ends[i], F_DUPFD_CLOEXEC, 3);
		if (moved < 0)
			return errno;
		(void)close(ends[i]);
		ends[i] = moved;
	}
	return 0;
}

static void unblock(int fd)
{
	int flags = fcntl(fd, F_GETFL);
	if (flags >= 0)
		(void)fcntl(fd, F_SETFL, flags | O_NONBLOCK);
}

static enum np_status start(struct child *self, const sigset_t *mask, struct np_err *err)
{
	const struct np_source *input = &self->spec->input;
	int in[2] = {-1, -1}, out[2] = {-1, -1}, errs[2] = {-1, -1};
	bool piped = input->kind == NP_SOURCE_BYTES || input->kind == NP_SOURCE_PULL;
	int error = make_pipe(out);
	error = error ? error : make_pipe(errs);
	if (error == 0 && piped)
		error = make_pipe(in);
	if (error == 0)
		error = spawn_child(self, mask, piped ? in[0] : input->fd, out[1], errs[1]);
	close_fd(&in[0]);
	close_fd(&out[1]);
	close_fd(&errs[1]);
	self->in = in[1];
	self->out = out[0];
	self->err = errs[0];
	if (error)
		return np_err_sys(err, error, self->spec->argv[0], "start the program");
	/* fewer turns for what comes fast; a refusal is no matter */
	(void)fcntl(self->out, F_SETPIPE_SZ, PIPE_BYTES);
	unblock(self->in);
	unblock(self->out);
	unblock(self->err);
	self->pidfd = (int)syscall(SYS_pidfd_open, self->pid, 0);
	if (self->pidfd >= 0)
		(void)fcntl(self->pidfd, F_SETFD, FD_CLOEXEC);
	return NP_OK;
}

/* ── the loop ── */

static enum np_status deliver(const struct np_sink *sink, struct np_buf *kept, const void *bytes,
                              size_t len, struct np_err *err)
{
	if (sink->take)
		return sink->take(sink->ctx, bytes, len, err);
	kept->max_bytes = NP_SUBPROCESS_MAX_BYTES;
	np_buf_add(kept, bytes, len);
	if (kept->failed && kept->len + len >= NP_SUBPROCESS_MAX_BYTES)
		return np_err_set(err, NP_E_LIMIT, NULL, "the output is larger than %d MiB",
		                  NP_SUBPROCESS_MAX_BYTES >> 20);
	return kept->failed ? np_err_nomem(err) : NP_OK;
}

static enum np_status read_some(struct child *self, int *fd, const struct np_sink *sink,
                                struct np_buf *kept, struct np_err *err)
{
	char bytes[CHUNK];
	ssize_t got = read(*fd, bytes, sizeof bytes);
	if (got < 0)
		return errno == EINTR || errno == EAGAIN
		               ? NP_OK
		               : np_err_sys(err, errno, self->spec->argv[0], "read its output");
	if (got == 0) {
		close_fd(fd);
		return NP_OK;
	}
	if (self->ended)
		self->ended_at = np_clock_ms(); /* there is still something coming */
	return deliver(sink, kept, bytes, (size_t)got, err);
}

/* The next bytes of the input into `pending`. */
static enum np_status refill(struct child *self, struct np_err *err)
{
	const struct np_source *input = &self->spec->input;
	if (self->pending.len || self->input_ended)
		return NP_OK;
	if (input->kind == NP_SOURCE_BYTES) {
		self->input_ended = true;
		self->pending = input->bytes;
		return NP_OK;
	}
	ssize_t got = input->pull(input->ctx, self->feed, CHUNK);
	if (got < 0)
		return np_err_set(err, NP_E_IO, self->spec->argv[0], "its input cannot be read");
	self->input_ended = got == 0;
	self->pending = (np_str){self->feed, (size_t)got};
	return NP_OK;
}

static enum np_status write_some(struct child *self, struct np_err *err)
{
	NP_TRY(refill(self, err));
	if (self->pending.len) {
		ssize_t put = write(self->in, self->pending.ptr, self->pending.len);
		if (put < 0 && (errno == EINTR || errno == EAGAIN))
			return NP_OK;
		if (put < 0) { /* EPIPE: it reads no more, which is its right */
			close_fd(&self->in);
			return NP_OK;
		}
		self->pending = np_str_from(self->pending, (size_t)put);
	}
	if (self->pending.len == 0 && self->input_ended)
		close_fd(&self->in);
	return NP_OK;
}

static void signal_group(struct child *self, int sig)
{
	(void)kill(-self->pid, sig);
}

static void begin_end(struct child *self)
{
	if (self->killed_at)
		return;
	self->killed_at = np_clock_ms();
	signal_group(self, SIGTERM);
}

/* Timeout, cancel, and what follows when SIGTERM was not enough. */
static void look_at_clock(struct child *self)
{
	uint64_t now = np_clock_ms();
	if (!self->killed_at && !self->ended && self->deadline && now >= self->deadline) {
		self->result->timed_out = true;
		begin_end(self);
	}
	if (!self->killed_at && !self->ended && self->spec->cancel &&
	    atomic_load(self->spec->cancel)) {
		self->result->cancelled = true;
		begin_end(self);
	}
	if (self->killed_at && !self->killed_hard &&
	    now - self->killed_at >= NP_SUBPROCESS_TERM_MS) {
		self->killed_hard = true;
		signal_group(self, SIGKILL);
	}
}

static void look_for_end(struct child *self)
{
	siginfo_t info = {0};
	if (self->ended)
		return;
	if (waitid(P_PID, (id_t)self->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
	    info.si_pid == self->pid) {
		self->ended = true;
		self->ended_at = np_clock_ms();
	}
}

static bool is_done(struct child *self)
{
	if (!self->ended)
		return false;
	if (self->out < 0 && self->err < 0)
		return true;
	if (np_clock_ms() - self->ended_at < NP_SUBPROCESS_GRACE_MS)
		return false;
	self->result->left_behind = true;
	return true;
}

static int nap_ms(const struct child *self)
{
	if (self->pidfd < 0 || self->ended)
		return TICK_NO_PIDFD_MS;
	uint64_t now = np_clock_ms();
	uint64_t left = self->deadline > now ? self->deadline - now : TICK_MS;
	return left < TICK_MS ? (int)left + 1 : TICK_MS;
}

static enum np_status turn(struct child *self, struct np_err *err)
{
	const struct np_subprocess *spec = self->spec;
	struct pollfd fds[4] = {
		{.fd = self->out, .events = POLLIN},
		{.fd = self->err, .events = POLLIN},
		{.fd = self->in, .events = POLLOUT},
		{.fd = self->ended ? -1 : self->pidfd, .events = POLLIN},
	};
	int ready = poll(fds, 4, nap_ms(self));
	if (ready < 0 && errno != EINTR)
		return np_err_sys(err, errno, spec->argv[0], "wait for the program");
	look_at_clock(self);
	if (ready > 0) {
		if (fds[0].revents)
			NP_TRY(read_some(self, &self->out, &spec->out, &self->result->out, err));
		if (fds[1].revents)
			NP_TRY(read_some(self, &self->err, &spec->err, &self->result->err, err));
		if (fds[2].revents)
			NP_TRY(write_some(self, err));
	}
	look_for_end(self);
	return NP_OK;
}

static void reap(struct child *self)
{
	int state = 0;
	pid_t got;
	/* the leader is not reaped yet, so the number of its group cannot be another's */
	if (self->killed_at)
		signal_group(self, SIGKILL);
	do
		got = waitpid(self->pid, &state, 0);
	while (got < 0 && errno == EINTR);
	self->result->signal = WIFSIGNALED(state) ? WTERMSIG(state) : 0;
	self->result->status =
		self->result->signal ? 128 + self->result->signal : WEXITSTATUS(state);
}

static enum np_status attend(struct child *self, struct np_err *err)
{
	enum np_status status = NP_OK;
	while (!is_done(self)) {
		struct np_err later = {0};
		enum np_status now = turn(self, status == NP_OK ? err : &later);
		if (now == NP_OK)
			continue;
		if (status == NP_OK)
			status = now;
		/* nobody takes its output any more: end it, and wait for that */
		close_fd(&self->out);
		close_fd(&self->err);
		close_fd(&self->in);
		begin_end(self);
	}
	reap(self);
	return status;
}

enum np_status np_subprocess_run(const struct np_subprocess *self,
                                 struct np_subprocess_result *result, struct np_err *err)
{
	struct pipe_guard guard;
	struct child child = {
		.spec = self, .result = result, .pidfd = -1, .in = -1, .out = -1, .err = -1};
	*result = (struct np_subprocess_result){0};
	if (self->input.kind == NP_SOURCE_PULL) {
		child.feed = np_alloc(CHUNK);
		if (!child.feed)
			return np_err_nomem(err);
	}
	if (self->timeout_ms)
		child.deadline = np_clock_ms() + self->timeout_ms;
	guard_begin(&guard);
	enum np_status status = start(&child, &guard.before, err);
	if (status == NP_OK)
		status = attend(&child, err);
	guard_end(&guard);
	close_fd(&child.in);
	close_fd(&child.out);
	close_fd(&child.err);
	close_fd(&child.pidfd);
	np_free(child.feed);
	return status;
}

void np_subprocess_release(struct np_subprocess_result *result)
{
	np_buf_release(&result->out);
	np_buf_release(&result->err);
}
