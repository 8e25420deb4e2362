/*
 * One directory per host holds the socket of the shared connection:
 *
 *   DIR (0700) / m      ssh's master listens here; it leaves by itself a minute after the last
 *                       command, and at once when the transport is closed
 *
 * ssh cannot tell its own failure (255) from a command's exit status 255, and login shells talk;
 * ssh_marks.h tells the two apart.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "collect/quote.h"
#include "collect/ssh_errors.h"
#include "collect/ssh_marks.h"

enum {
	MAX_WORDS = 128,
	SOCKET_DIR_MAX = 60, /* sun_path holds 108, and ssh adds 17 bytes while it makes one */
	CONTROL_TIMEOUT_MS = 3000,
	KILL_TIMEOUT_MS = 5000,
};

struct ssh {
	struct np_transport base;
	struct np_arena arena;
	struct np_host host;
	struct np_ssh_options options;
	char dir[SOCKET_DIR_MAX + 24]; /* "" while there is none */
	const char *connect;           /* the command line to show */
	bool ending;                   /* a far process is being ended */
};

static struct ssh *ssh_of(struct np_transport *base)
{
	return (struct ssh *)base;
}

/* ── the words of ssh ── */

struct words {
	struct np_arena *arena;
	const char *v[MAX_WORDS];
	size_t n;
	bool failed;
};

static void word(struct words *self, const char *text)
{
	if (!text || self->n + 1 >= MAX_WORDS) {
		self->failed = true;
		return;
	}
	self->v[self->n++] = text;
	self->v[self->n] = NULL;
}

static void option(struct words *self, const char *name, const char *value)
{
	word(self, "-o");
	word(self, np_arena_printf(self->arena, "%s=%s", name, value));
}

/* Which host, and how: what every call of ssh begins with. */
static void begin_words(struct words *self, struct ssh *ssh)
{
	const struct np_ssh_options *own = &ssh->options;
	word(self, own->program);
	if (own->config) {
		word(self, "-F");
		word(self, own->config);
	}
	for (size_t i = 0; own->options && own->options[i]; i++) {
		word(self, "-o");
		word(self, own->options[i]);
	}
	if (ssh->host.port) {
		word(self, "-p");
		word(self, np_arena_printf(self->arena, "%u", ssh->host.port));
	}
	if (ssh->host.user) {
		word(self, "-l");
		word(self, ssh->host.user);
	}
	option(self, "ControlPath", np_arena_printf(self->arena, "%s/m", ssh->dir));
}

static void batch_words(struct words *self, struct ssh *ssh)
{
	const struct np_ssh_options *own = &ssh->options;
	const char *seconds = np_arena_printf(self->arena, "%u", own->connect_timeout_s);
	const char *alive = np_arena_printf(self->arena, "%u", own->alive_s);
	option(self, "BatchMode", "yes");
	option(self, "ControlMaster", "auto");
	option(self, "ControlPersist", "60");
	option(self, "ConnectTimeout", seconds ? seconds : "15");
	option(self, "ServerAliveInterval", alive ? alive : "15");
	option(self, "ServerAliveCountMax", "3");
	option(self, "ForwardX11", "no");
	option(self, "ClearAllForwardings", "yes");
	option(self, "RequestTTY", "no");
	option(self, "PermitLocalCommand", "no");
	option(self, "EscapeChar", "none");
	option(self, "LogLevel", "ERROR");
	if (own->accept_unknown_host_key)
		option(self, "StrictHostKeyChecking", "accept-new");
}

/* ── the socket's directory ── */

static bool is_plain_dir(const char *dir)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				    "/._+-";
	return dir && dir[0] == '/' && strlen(dir) < SOCKET_DIR_MAX &&
	       strspn(dir, plain) == strlen(dir);
}

static enum np_status make_dir(struct ssh *self, struct np_err *err)
{
	const char *const places[] = {getenv("XDG_RUNTIME_DIR"), getenv("TMPDIR"), "/tmp"};
	int error = ENOENT;
	if (self->dir[0])
		return NP_OK;
	for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
		if (!is_plain_dir(places[i]))
			continue;
		(void)snprintf(self->dir, sizeof self->dir, "%s/npuprof-XXXXXX", places[i]);
		if (mkdtemp(self->dir)) /* mode 0700 */
			return NP_OK;
		error = errno;
		self->dir[0] = '\0';
	}
	return np_err_sys(err, error, "/tmp", "make a private directory for ssh's socket");
}

/* ── the master ── */

/* `ssh -O exit`: the master leaves. False when it does not answer. */
static bool ask_to_leave(struct ssh *self)
{
	struct np_arena arena;
	struct np_subprocess_result result = {0};
	np_arena_init(&arena);
	struct words words = {.arena = &arena};
	begin_words(&words, self);
	option(&words, "LogLevel", "QUIET");
	word(&words, "-O");
	word(&words, "exit");
	word(&words, "--");
	word(&words, self->host.name);
	const struct np_subprocess child = {.argv = words.v, .timeout_ms = CONTROL_TIMEOUT_MS};
	bool done = !words.failed && np_subprocess_run(&child, &result, NULL) == NP_OK &&
	            result.status == 0;
	np_subprocess_release(&result);
	np_arena_release(&arena);
	return done;
}

/* Is this the master of our socket? Its title names the socket, whose directory's name is
 * ours alone. (The size of files in /proc is 0, so they are not slurped.) */
static bool is_our_master(const struct ssh *self, uint64_t pid)
{
	char path[64], title[1024];
	(void)snprintf(path, sizeof path, "/proc/%llu/cmdline", (unsigned long long)pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	ssize_t got = read(fd, title, sizeof title);
	(void)close(fd);
	np_str text = {title, got > 0 ? (size_t)got : 0};
	return np_str_contains(text, np_str_of(self->dir)) &&
	       np_str_contains(text, NP_STR("[mux]"));
}

/* One that does not listen any more (stopped, or waiting for a dead network) is ended. */
static void end_masters(const struct ssh *self)
{
	struct np_arena arena;
	struct np_dir all = {0};
	np_arena_init(&arena);
	if (np_dir_list(&arena, "/proc", &all, NULL) != NP_OK)
		all.n = 0;
	for (size_t i = 0; i < all.n; i++) {
		uint64_t pid = 0;
		if (np_str_to_u64(np_str_of(all.v[i].name), &pid) && pid > 1 && pid < INT32_MAX &&
		    is_our_master(self, pid))
			(void)kill((pid_t)pid, SIGKILL);
	}
	np_arena_release(&arena);
}

static void forget(struct np_transport *base)
{
	struct ssh *self = ssh_of(base);
	char path[sizeof self->dir + 8];
	if (!self->dir[0])
		return;
	(void)snprintf(path, sizeof path, "%s/m", self->dir);
	if (access(path, F_OK) != 0)
		return;
	if (!ask_to_leave(self))
		end_masters(self);
	(void)unlink(path);
}

static void close_ssh(struct np_transport *base)
{
	struct ssh *self = ssh_of(base);
	forget(base);
	if (self->dir[0])
		np_remove_tree(self->dir);
	np_arena_release(&self->arena);
	np_free(self);
}

/* ── one command ── */

static enum np_status keep(void *ctx, const void *bytes, size_t len, struct np_err *err)
{
	struct np_buf *buf = ctx;
	buf->max_bytes = NP_SUBPROCESS_MAX_BYTES;
	if (buf->len + len >= NP_SUBPROCESS_MAX_BYTES)
		return np_err_set(err, NP_E_LIMIT, NULL, "the output is larger than %d MiB",
		                  NP_SUBPROCESS_MAX_BYTES >> 20);
	np_buf_add(buf, bytes, len);
	return buf->failed ? np_err_nomem(err) : NP_OK;
}

/*
 * The far process group gets SIGTERM; best effort, over the connection that there is. Where
 * that does not answer it is given up on the way, so that a second attempt makes another one.
 */
static void end_far(struct ssh *self, int64_t pid)
{
	char target[32];
	static const atomic_bool never = false;
	(void)snprintf(target, sizeof target, "-%lld", (long long)pid);
	const char *const argv[] = {"kill", "-s", "TERM", "--", target, NULL};
	const struct np_command command = {
		.argv = argv, .timeout_ms = KILL_TIMEOUT_MS, .cancel = &never};
	bool done = false;
	if (pid <= 1 || self->ending) /* what ends others is not ended so itself */
		return;
	self->ending = true;
	for (int i = 0; i < 2 && !done; i++) {
		struct np_outcome outcome = {0};
		done = self->base.ops->run(&self->base, &command, &outcome, NULL) == NP_OK;
		np_outcome_release(&outcome);
	}
	self->ending = false;
}

struct attempt {
	struct np_marks marks;
	struct np_mark_filter out, err;
	struct np_subprocess_result result;
};

static enum np_status ended_early(struct ssh *self, const struct np_command *command,
                                  struct attempt *try, struct np_outcome *outcome,
                                  struct np_err *err)
{
	const char *what = command->what ? command->what : command->argv[0];
	bool timed_out = try->result.timed_out;
	outcome->link = timed_out ? NP_LINK_TIMEOUT : NP_LINK_CANCELLED;
	if (try->out.begun)
		end_far(self, try->out.pid);
	else
		forget(&self->base); /* it may be the connection that hangs */
	if (!timed_out)
		return np_err_set(err, NP_E_IO, self->base.name, "%s: interrupted", what);
	return np_err_set(err, NP_E_IO, self->base.name, "%s: no end after %llu s; %s", what,
	                  (unsigned long long)(command->timeout_ms + 999) / 1000,
	                  try->out.begun ? "it was ended" : "the host did not even start it");
}

/* The command is over: by itself, or not. */
static enum np_status judge(struct ssh *self, const struct np_command *command, struct attempt *try,
                            struct np_outcome *outcome, struct np_err *err)
{
	if (try->err.ended) {
		outcome->status = try->err.status;
		return NP_OK;
	}
	if (try->result.timed_out || try->result.cancelled)
		return ended_early(self, command, try, outcome, err);
	struct np_buf text = {0};
	outcome->link =
		np_ssh_explain(np_buf_str(&try->err.noise), try->out.begun || try->err.begun,
	                       &self->host, self->connect, &text);
	enum np_status status = np_err_set(
		err,
		outcome->link == NP_LINK_AUTH || outcome->link == NP_LINK_HOST_KEY_UNKNOWN ||
				outcome->link == NP_LINK_HOST_KEY_CHANGED
			? NP_E_ACCESS
			: NP_E_IO,
		self->base.name, "%s", text.ptr ? text.ptr : "ssh failed");
	np_buf_release(&text);
	return status;
}

static enum np_status run_words(struct ssh *self, const struct np_command *command,
                                const char *const *argv, struct attempt *try, struct np_err *err)
{
	const struct np_subprocess child = {
		.argv = argv,
		.input = command->input,
		.out = {np_mark_filter_take, &try->out},
		.err = {np_mark_filter_take, &try->err},
		.timeout_ms = command->timeout_ms,
		.cancel = command->cancel ? command->cancel : self->base.cancel,
	};
	enum np_status status = np_subprocess_run(&child, &try->result, err);
	if (status == NP_OK)
		status = np_mark_filter_end(&try->out, err);
	if (status == NP_OK)
		status = np_mark_filter_end(&try->err, err);
	return status;
}

static enum np_status run(struct np_transport *base, const struct np_command *command,
                          struct np_outcome *outcome, struct np_err *err)
{
	struct ssh *self = ssh_of(base);
	struct attempt try = {0};
	struct np_arena arena;
	outcome->link = NP_LINK_CONFIG;
	NP_TRY(make_dir(self, err));
	NP_TRY(np_marks_make(&try.marks, err));
	np_arena_init(&arena);
	struct words words = {.arena = &arena};
	begin_words(&words, self);
	batch_words(&words, self);
	word(&words, "--");
	word(&words, self->host.name);
	word(&words, np_marks_line(&try.marks, &arena, command->argv));
	np_mark_filter_init(&try.out, &try.marks,
	                    command->out.take ? command->out
	                                      : (struct np_sink){keep, &outcome->out});
	np_mark_filter_init(&try.err, &try.marks,
	                    command->err.take ? command->err
	                                      : (struct np_sink){keep, &outcome->err});
	enum np_status status =
		words.failed ? np_err_nomem(err) : run_words(self, command, words.v, &try, err);
	if (status == NP_OK) {
		outcome->link = NP_LINK_OK;
		status = judge(self, command, &try, outcome, err);
	} else if (try.out.begun) {
		end_far(self, try.out.pid); /* a sink has had enough */
	}
	np_subprocess_release(&try.result);
	np_mark_filter_release(&try.out);
	np_mark_filter_release(&try.err);
	np_arena_release(&arena);
	return status;
}

/* ── opening ── */

static const struct np_transport_ops ops = {
	.kind = "ssh", .run = run, .forget = forget, .close = close_ssh};

/* "Name=value" or "Name value", the name without case */
static bool is_option(const char *text, const char *name)
{
	np_str rest = np_str_trim(np_str_of(text));
	if (!np_str_istarts(rest, np_str_of(name)))
		return false;
	char next = rest.len > strlen(name) ? rest.ptr[strlen(name)] : '=';
	return next == '=' || next == ' ' || next == '\t';
}

/* What would undo the promises of this transport, or its way to find the connection again. */
static enum np_status check_options(const struct np_ssh_options *options, struct np_err *err)
{
	static const char *const refused[] = {
		"StrictHostKeyChecking",
		"NoHostAuthenticationForLocalhost",
		"VerifyHostKeyDNS",
		"ControlPath",
		"ControlMaster",
		"ControlPersist",
		"BatchMode",
		"RemoteCommand",
		"ForkAfterAuthentication",
		"SessionType",
		"StdinNull",
	};
	for (size_t i = 0; options->options && options->options[i]; i++)
		for (size_t k = 0; k < sizeof refused / sizeof *refused; k++)
			if (is_option(options->options[i], refused[k]))
				return np_err_set(err, NP_E_USAGE, NULL,
				                  "--ssh-option %s is not taken: %s", refused[k],
				                  k < 3 ? "--insecure-accept-host-key accepts "
				                          "the key of an unknown host"
				                        : "npuprof sets it itself");
	return NP_OK;
}

static const char *connect_line(struct ssh *self)
{
	const struct np_ssh_options *own = &self->options;
	struct np_buf text = {0};
	np_buf_add_cstr(&text, "ssh");
	if (own->config) {
		np_buf_add_cstr(&text, " -F ");
		np_quote_word(&text, np_str_of(own->config));
	}
	for (size_t i = 0; own->options && own->options[i]; i++) {
		np_buf_add_cstr(&text, " -o ");
		np_quote_word(&text, np_str_of(own->options[i]));
	}
	if (self->host.port)
		np_buf_printf(&text, " -p %u", self->host.port);
	np_buf_add_char(&text, ' ');
	if (self->host.user)
		np_buf_printf(&text, "%s@", self->host.user);
	np_quote_word(&text, np_str_of(self->host.name));
	const char *line = text.failed ? NULL : np_arena_cstr(&self->arena, np_buf_str(&text));
	np_buf_release(&text);
	return line;
}

static const char *copy(struct np_arena *arena, const char *text)
{
	return text ? np_arena_cstr(arena, np_str_of(text)) : NULL;
}

static enum np_status set_up(struct ssh *self, const struct np_host *host,
                             const struct np_ssh_options *options, struct np_err *err)
{
	const char *program = options->program ? options->program : getenv("NPUPROF_SSH");
	size_t n = 0;
	while (options->options && options->options[n])
		n++;
	if (n > MAX_WORDS / 4)
		return np_err_set(err, NP_E_LIMIT, NULL, "too many options for ssh");
	const char **copies = np_arena_zalloc(&self->arena, (n + 1) * sizeof *copies);
	for (size_t i = 0; copies && i < n; i++)
		copies[i] = copy(&self->arena, options->options[i]);
	self->options = *options;
	self->options.options = copies;
	self->options.program = copy(&self->arena, program && *program ? program : "ssh");
	self->options.config = copy(&self->arena, options->config);
	if (options->connect_timeout_s == 0)
		self->options.connect_timeout_s = 15;
	if (options->alive_s == 0)
		self->options.alive_s = 15;
	self->host = (struct np_host){.text = copy(&self->arena, host->text),
	                              .user = copy(&self->arena, host->user),
	                              .name = copy(&self->arena, host->name),
	                              .port = host->port};
	self->connect = connect_line(self);
	if (!copies || (n && !copies[n - 1]) || !self->options.program || !self->host.text ||
	    !self->host.name || !self->connect)
		return np_err_nomem(err);
	(void)snprintf(self->base.name, sizeof self->base.name, "%s", host->text);
	return NP_OK;
}

enum np_status np_transport_ssh(const struct np_host *host, const struct np_ssh_options *options,
                                struct np_transport **out, struct np_err *err)
{
	static const struct np_ssh_options none = {0};
	options = options ? options : &none;
	NP_TRY(check_options(options, err));
	struct ssh *self = np_calloc(1, sizeof *self);
	if (!self)
		return np_err_nomem(err);
	np_arena_init(&self->arena);
	self->base.ops = &ops;
	self->base.cancel = options->cancel;
	self->base.retry = options->retry;
	enum np_status status = set_up(self, host, options, err);
	if (status != NP_OK) {
		close_ssh(&self->base);
		return status;
	}
	*out = &self->base;
	return NP_OK;
}
