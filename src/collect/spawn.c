#include "collect/spawn.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "collect/sink.h"

enum {
	READ_BYTES = 1 << 16,
	LINE_MAX_BYTES = 8192, /* a longer line is passed on in parts */
	PART_MS = 200,         /* how long an unfinished line waits for its rest */
	LOOK_MS = 500,
	QUIET_MS = 500, /* after the child's end: others may hold the pipes for good */
};

/* One pipe of the child. */
struct stream {
	int fd; /* -1: at its end */
	struct np_buf part;
	np_ns part_since;
	struct np_sink sink;
};

struct job {
	const struct np_spawn *spec;
	struct np_spawn_end *end;
	struct stream streams[2];
	size_t n_streams;
	int log_fd, signal_fd;
	int terminal;    /* our controlling terminal while we are in its foreground; -1 */
	bool lent;       /* the terminal is the child's */
	bool dead;       /* the child was waited for */
	np_ns dead_at;   /* monotonic */
	np_ns begin;     /* monotonic */
	np_ns term_at;   /* when SIGTERM was sent by us; 0 */
	np_ns last_look; /* of enough() */
	np_ns last_bytes;
	unsigned interrupts;
	sigset_t old_mask;
	struct sigaction old_pipe;
};

/* ── signals ── */

static const int handed_on[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

static bool is_ignored(int signal)
{
	struct sigaction action;
	return sigaction(signal, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

static enum np_status take_signals(struct job *self, struct np_err *err)
{
	sigset_t mask;
	struct sigaction ignore = {.sa_handler = SIG_IGN};
	(void)sigemptyset(&mask);
	for (size_t i = 0; i < sizeof handed_on / sizeof *handed_on; i++)
		if (!is_ignored(handed_on[i])) /* nohup stays what it is */
			(void)sigaddset(&mask, handed_on[i]);
	(void)sigaddset(&mask, SIGCHLD);
	(void)sigaddset(&mask, SIGTSTP);
	(void)sigaddset(&mask, SIGCONT);
	self->signal_fd = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
	if (self->signal_fd < 0)
		return np_err_sys(err, errno, NULL, "watch signals");
	(void)sigaddset(&mask, SIGTTOU); /* so that the terminal can be taken back */
	(void)sigprocmask(SIG_BLOCK, &mask, &self->old_mask);
	(void)sigaction(SIGPIPE, &ignore, &self->old_pipe);
	return NP_OK;
}

static void give_signals_back(struct job *self)
{
	struct signalfd_siginfo info;
	if (self->signal_fd < 0)
		return;
	/* what arrived in the last moment was meant for the child, which is gone */
	while (read(self->signal_fd, &info, sizeof info) == (ssize_t)sizeof info)
		continue;
	(void)close(self->signal_fd);
	(void)sigaction(SIGPIPE, &self->old_pipe, NULL);
	(void)sigprocmask(SIG_SETMASK, &self->old_mask, NULL);
}

static void send(struct job *self, int signal)
{
	if (kill(-self->end->pid, signal) != 0 && !self->dead)
		(void)kill(self->end->pid, signal);
	self->end->killed |= signal == SIGKILL;
}

static void lend_terminal(struct job *self)
{
	if (self->terminal >= 0 && tcsetpgrp(self->terminal, self->end->pid) == 0)
		self->lent = true;
}

static void take_terminal(struct job *self)
{
	if (self->lent)
		(void)tcsetpgrp(self->terminal, getpgrp());
}

/* ^Z: we stop as well, so that the shell gets its prompt. */
static void stop_with_child(struct job *self)
{
	bool lent = self->lent;
	take_terminal(self);
	self->lent = false;
	(void)raise(SIGSTOP);
	if (self->terminal >= 0 && lent && tcgetpgrp(self->terminal) == getpgrp())
		lend_terminal(self);
	send(self, SIGCONT);
}

static void find_terminal(struct job *self)
{
	bool ours = !self->spec->no_stdin && isatty(STDIN_FILENO) &&
	            tcgetpgrp(STDIN_FILENO) == getpgrp();
	self->terminal = ours ? STDIN_FILENO : -1;
}

/* The child wants the terminal. In the background nobody has it to give: then we stop as well,
 * as any job does, until the shell brings us to the foreground. */
static void wait_for_terminal(struct job *self)
{
	if (self->terminal < 0 && isatty(STDIN_FILENO)) {
		(void)raise(SIGSTOP);
		find_terminal(self);
	}
	lend_terminal(self);
	if (self->lent)
		send(self, SIGCONT);
}

static void on_signal(struct job *self, int signal)
{
	if (signal == SIGCHLD)
		return;
	if (signal == SIGCONT) {
		send(self, SIGCONT);
		return;
	}
	if (signal == SIGTSTP) {
		send(self, SIGTSTP);
		stop_with_child(self);
		return;
	}
	if (self->end->interrupted == 0)
		self->end->interrupted = signal;
	self->interrupts += signal == SIGINT;
	send(self, signal == SIGINT && self->interrupts > 1 ? SIGKILL : signal);
}

static void read_signals(struct job *self)
{
	struct signalfd_siginfo info;
	while (read(self->signal_fd, &info, sizeof info) == (ssize_t)sizeof info)
		on_signal(self, (int)info.ssi_signo);
}

/* What has become of the child? */
static void reap(struct job *self)
{
	int status = 0;
	while (!self->dead && waitpid(self->end->pid, &status, WNOHANG | WUNTRACED) > 0) {
		if (WIFSTOPPED(status)) {
			int why = WSTOPSIG(status);
			if (why == SIGTTIN || why == SIGTTOU) {
				wait_for_terminal(self);
			} else if (why == SIGTSTP && self->lent) {
				stop_with_child(self);
			}
			continue;
		}
		self->dead = true;
		self->dead_at = np_monotonic();
		self->end->exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
		self->end->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
	}
}

/* ── output ── */

static void write_log(struct job *self, np_str bytes)
{
	while (self->log_fd >= 0 && bytes.len) {
		ssize_t n = write(self->log_fd, bytes.ptr, bytes.len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			self->end->log_errno = errno;
			(void)close(self->log_fd);
			self->log_fd = -1;
			return;
		}
		bytes = np_str_from(bytes, (size_t)n);
	}
}

/* Pass on the first `len` bytes of what was read. */
static void pass_on(struct job *self, struct stream *stream, size_t len)
{
	np_str bytes = np_str_sub(np_buf_str(&stream->part), 0, len);
	if (len == 0)
		return;
	write_log(self, bytes);
	np_sink_add(&stream->sink, bytes);
	size_t rest = stream->part.len - len;
	memmove(stream->part.ptr, stream->part.ptr + len, rest);
	stream->part.len = rest;
	stream->part.ptr[rest] = '\0';
}

/* The end of the last whole line; a progress bar's '\r' ends one as well. */
static size_t whole_lines(const struct np_buf *part)
{
	for (size_t i = part->len; i > 0; i--)
		if (part->ptr[i - 1] == '\n' || part->ptr[i - 1] == '\r')
			return i;
	return part->len >= LINE_MAX_BYTES ? part->len : 0;
}

static void read_stream(struct job *self, struct stream *stream)
{
	char bytes[READ_BYTES];
	ssize_t n = read(stream->fd, bytes, sizeof bytes);
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n <= 0) {
		pass_on(self, stream, stream->part.len);
		(void)close(stream->fd);
		stream->fd = -1;
		return;
	}
	self->end->out_bytes += (uint64_t)n;
	self->last_bytes = np_monotonic();
	if (stream->part.len == 0)
		stream->part_since = self->last_bytes;
	np_buf_add(&stream->part, bytes, (size_t)n);
	if (stream->part.failed) { /* no memory: nothing is held back */
		stream->part.failed = false;
		pass_on(self, stream, stream->part.len);
		write_log(self, (np_str){bytes, (size_t)n});
		return;
	}
	size_t whole = whole_lines(&stream->part);
	pass_on(self, stream, whole);
	if (whole && stream->part.len)
		stream->part_since = self->last_bytes;
}

static void pass_old_parts(struct job *self, np_ns now)
{
	for (size_t i = 0; i < self->n_streams; i++) {
		struct stream *stream = &self->streams[i];
		if (stream->part.len && now - stream->part_since >= (np_ns)PART_MS * 1000000)
			pass_on(self, stream, stream->part.len);
	}
}

/* ── the group ── */

/* Is this process of the group, and more than a zombie that nobody has waited for? */
static bool is_member(const char *name, pid_t group)
{
	char path[288], text[512];
	int64_t pgrp = 0;
	(void)snprintf(path, sizeof path, "/proc/%s/stat", name);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
	if (fd >= 0)
		(void)close(fd);
	if (n <= 0)
		return false;
	text[n] = '\0';
	/* "pid (any name) S ppid pgrp …" */
	const char *at = strrchr(text, ')');
	np_str rest;
	if (!at || at[1] != ' ' || at[2] == 'Z' || at[2] == 'X')
		return false;
	(void)np_str_cut(np_str_of(at + 4), ' ', &rest);
	return np_str_to_i64(np_str_cut(rest, ' ', &rest), &pgrp) && pgrp == group;
}

static bool group_lives(pid_t group)
{
	if (kill(-group, 0) != 0)
		return false;
	DIR *proc = opendir("/proc");
	bool lives = !proc; /* without /proc a zombie counts, too */
	for (struct dirent *entry = proc ? readdir(proc) : NULL; entry && !lives;
	     entry = readdir(proc))
		lives = entry->d_name[0] >= '1' && entry->d_name[0] <= '9' &&
		        is_member(entry->d_name, group);
	if (proc)
		(void)closedir(proc);
	return lives;
}

/* ── the loop ── */

static int until(np_ns now, np_ns deadline, int most_ms)
{
	int64_t ms = (deadline - now) / 1000000 + 1;
	return ms < 0 ? 0 : ms > most_ms ? most_ms : (int)ms;
}

static int wait_ms(const struct job *self, np_ns now)
{
	int most = self->dead ? 50 : LOOK_MS;
	for (size_t i = 0; i < self->n_streams; i++) {
		if (self->streams[i].part.len)
			most = until(now, self->streams[i].part_since + (np_ns)PART_MS * 1000000,
			             most);
		if (np_sink_waits(&self->streams[i].sink) && most > PART_MS)
			most = PART_MS;
	}
	return most;
}

static void wait_for_something(struct job *self)
{
	struct pollfd fds[5] = {{.fd = self->signal_fd, .events = POLLIN}};
	nfds_t n = 1;
	np_ns now = np_monotonic();
	for (size_t i = 0; i < self->n_streams; i++) {
		struct stream *stream = &self->streams[i];
		bool full = np_sink_full(&stream->sink, now);
		fds[n++] = (struct pollfd){.fd = full ? -1 : stream->fd, .events = POLLIN};
		fds[n++] =
			(struct pollfd){.fd = np_sink_waits(&stream->sink) ? stream->sink.fd : -1,
		                        .events = POLLOUT};
	}
	(void)poll(fds, n, wait_ms(self, now));
	if (fds[0].revents)
		read_signals(self);
	now = np_monotonic();
	for (size_t i = 0; i < self->n_streams; i++) {
		if (fds[1 + 2 * i].revents)
			read_stream(self, &self->streams[i]);
		if (fds[2 + 2 * i].revents)
			np_sink_flush(&self->streams[i].sink, now);
	}
	pass_old_parts(self, now);
}

static double seconds(np_ns ns)
{
	return (double)ns / 1e9;
}

/* Time limits: ask it to end, then make it. */
static void watch_time(struct job *self)
{
	np_ns now = np_monotonic();
	const struct np_spawn *spec = self->spec;
	bool look = now - self->last_look >= (np_ns)LOOK_MS * 1000000;
	if (look)
		self->last_look = now;
	if (self->dead)
		return;
	if (self->term_at) {
		if (seconds(now - self->term_at) >= spec->grace_s && !self->end->killed)
			send(self, SIGKILL);
	} else if (spec->timeout_s > 0 && seconds(now - self->begin) >= spec->timeout_s) {
		self->end->timed_out = true;
	} else if (look && spec->enough && spec->enough(spec->ctx)) {
		self->end->enough = true;
	}
	if (!self->term_at && (self->end->timed_out || self->end->enough)) {
		self->term_at = now;
		send(self, SIGTERM);
		send(self, SIGCONT); /* a stopped one does not see SIGTERM */
	}
}

static bool is_over(const struct job *self)
{
	bool open = false;
	for (size_t i = 0; i < self->n_streams; i++)
		open |= self->streams[i].fd >= 0;
	if (!self->dead)
		return false;
	np_ns last = self->last_bytes > self->dead_at ? self->last_bytes : self->dead_at;
	return !open || np_monotonic() - last >= (np_ns)QUIET_MS * 1000000;
}

/* Give our own readers a moment for what still waits. */
static void drain(struct job *self)
{
	np_ns deadline = np_monotonic() + (np_ns)2 * 1000000000;
	for (size_t i = 0; i < self->n_streams; i++) {
		struct stream *stream = &self->streams[i];
		if (stream->fd >= 0)
			(void)close(stream->fd);
		pass_on(self, stream, stream->part.len);
		for (np_ns now = np_monotonic(); np_sink_waits(&stream->sink) && now < deadline;
		     now = np_monotonic()) {
			struct pollfd room = {.fd = stream->sink.fd, .events = POLLOUT};
			(void)poll(&room, 1, until(now, deadline, LOOK_MS));
			np_sink_flush(&stream->sink, np_monotonic());
		}
		np_sink_close(&stream->sink);
		self->end->unseen_bytes += stream->sink.lost;
		np_buf_release(&stream->part);
	}
}

static void run_loop(struct job *self)
{
	while (!is_over(self)) {
		wait_for_something(self);
		reap(self);
		watch_time(self);
	}
	/* after our own SIGKILL, or a wished end, nothing of the group is to go on */
	if (self->end->timed_out || self->end->enough || self->end->killed)
		(void)kill(-self->end->pid, SIGKILL);
	take_terminal(self);
	drain(self);
	self->end->group_left = group_lives(self->end->pid);
	self->end->seconds = seconds(self->dead_at - self->begin);
}

/* ── start ── */

struct pipes {
	int out[2], err[2], exec[2];
};

static void close_pipe(int fds[2])
{
	for (int i = 0; i < 2; i++)
		if (fds[i] >= 0)
			(void)close(fds[i]);
}

/* In the child; async-signal-safe calls only. */
static _Noreturn void become(const struct job *self, const struct pipes *pipes)
{
	int null = self->spec->no_stdin ? open("/dev/null", O_RDONLY | O_CLOEXEC) : -1;
	(void)setpgid(0, 0);
	if (null >= 0)
		(void)dup2(null, STDIN_FILENO);
	(void)dup2(pipes->out[1], STDOUT_FILENO);
	(void)dup2(pipes->err[1] >= 0 ? pipes->err[1] : pipes->out[1], STDERR_FILENO);
	/* a shell's pipelines want it as it is by default, whatever we do with it */
	(void)sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
	(void)sigprocmask(SIG_SETMASK, &self->old_mask, NULL);
	(void)execvpe(self->spec->argv[0], self->spec->argv, self->spec->env);
	int why = errno;
	ssize_t n = write(pipes->exec[1], &why, sizeof why);
	_exit(n == (ssize_t)sizeof why ? 127 : 126);
}

/* One stream for both where they go to one place: then their order is kept. */
static bool same_place(int a, int b)
{
	struct stat x, y;
	return a >= 0 && b >= 0 && fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_dev == y.st_dev &&
	       x.st_ino == y.st_ino;
}

static enum np_status make_pipes(struct job *self, struct pipes *pipes, struct np_err *err)
{
	const struct np_spawn *spec = self->spec;
	bool one = spec->out_fd == spec->err_fd || same_place(spec->out_fd, spec->err_fd);
	*pipes = (struct pipes){{-1, -1}, {-1, -1}, {-1, -1}};
	if (pipe2(pipes->out, O_CLOEXEC) != 0 || (!one && pipe2(pipes->err, O_CLOEXEC) != 0) ||
	    pipe2(pipes->exec, O_CLOEXEC) != 0)
		return np_err_sys(err, errno, NULL, "make a pipe");
	self->n_streams = one ? 1 : 2;
	self->streams[0].fd = pipes->out[0];
	self->streams[1].fd = pipes->err[0];
	np_sink_open(&self->streams[0].sink, spec->out_fd);
	np_sink_open(&self->streams[1].sink, one ? -1 : spec->err_fd);
	for (size_t i = 0; i < self->n_streams; i++)
		(void)fcntl(self->streams[i].fd, F_SETFL, O_NONBLOCK);
	return NP_OK;
}

static enum np_status start(struct job *self, struct np_err *err)
{
	struct pipes pipes;
	enum np_status status = make_pipes(self, &pipes, err);
	pid_t pid = status == NP_OK ? fork() : -1;
	if (status == NP_OK && pid < 0)
		status = np_err_sys(err, errno, NULL, "start a process");
	if (pid == 0)
		become(self, &pipes);
	int why = 0;
	if (pid > 0) {
		self->end->pid = pid;
		(void)setpgid(pid, pid);
		(void)close(pipes.out[1]);
		(void)close(pipes.exec[1]);
		if (pipes.err[1] >= 0)
			(void)close(pipes.err[1]);
		pipes.out[1] = pipes.err[1] = pipes.exec[1] = -1;
		ssize_t n;
		do
			n = read(pipes.exec[0], &why, sizeof why);
		while (n < 0 && errno == EINTR);
		if (n != (ssize_t)sizeof why)
			why = 0;
	}
	if (why) {
		(void)waitpid(pid, NULL, 0);
		self->end->exec_errno = why;
		status = np_err_sys(err, why, self->spec->argv[0], "run");
	}
	if (pipes.exec[0] >= 0)
		(void)close(pipes.exec[0]);
	pipes.exec[0] = -1;
	if (status != NP_OK) {
		close_pipe(pipes.out);
		close_pipe(pipes.err);
		close_pipe(pipes.exec);
		np_sink_close(&self->streams[0].sink);
		np_sink_close(&self->streams[1].sink);
	}
	return status;
}

static enum np_status open_log(struct job *self, struct np_err *err)
{
	if (!self->spec->log)
		return NP_OK;
	self->log_fd =
		open(self->spec->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0640);
	return self->log_fd >= 0 ? NP_OK : np_err_sys(err, errno, self->spec->log, "open");
}

enum np_status np_spawn_run(const struct np_spawn *self, struct np_spawn_end *end,
                            struct np_err *err)
{
	struct job job = {.spec = self, .end = end, .log_fd = -1, .signal_fd = -1, .terminal = -1};
	*end = (struct np_spawn_end){.exit_status = -1};
	job.streams[0].fd = job.streams[1].fd = job.streams[0].sink.fd = job.streams[1].sink.fd =
		-1;
	find_terminal(&job);
	enum np_status status = open_log(&job, err);
	if (status == NP_OK)
		status = take_signals(&job, err);
	job.begin = np_monotonic();
	if (status == NP_OK)
		status = start(&job, err);
	if (status == NP_OK) {
		if (self->started)
			self->started(self->ctx, end->pid);
		run_loop(&job);
	}
	give_signals_back(&job);
	if (job.log_fd >= 0)
		(void)close(job.log_fd);
	return status;
}

bool np_spawn_succeeded(const struct np_spawn_end *end)
{
	return !end->timed_out && (end->enough || end->exit_status == 0);
}
