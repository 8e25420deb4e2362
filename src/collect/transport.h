/*
 * A transport runs commands somewhere: here, or on a host over ssh.
 *
 *   np_transport_run ──▶ ops->run ──▶ local  fork and exec
 *        │                       ├──▶ ssh    the system's ssh, one connection per host
 *        └ repeats what may be   └──▶ fake   a test's script
 *          repeated
 *
 * A command is an argv; where a shell stands between (ssh, a container) the transport quotes it.
 * The exit status of the command and a failure of the transport are told apart: the first is
 * `status` of an outcome, the second an error with the state of the link.
 *
 * Threads: a transport belongs to one thread at a time, several transports to several threads.
 */
#ifndef NP_COLLECT_TRANSPORT_H
#define NP_COLLECT_TRANSPORT_H

#include "collect/hostlist.h"
#include "collect/subprocess.h"

/* name, what a person reads. Behind it: is a repetition of use? */
#define NP_LINK_MAP(X)                                               \
	X(OK, "connected", false)                                    \
	X(UNREACHABLE, "the host cannot be reached", true)           \
	X(LOST, "the connection was lost", true)                     \
	X(NAME, "no such host", false)                               \
	X(AUTH, "the host refused the login", false)                 \
	X(HOST_KEY_UNKNOWN, "the host's key is not known", false)    \
	X(HOST_KEY_CHANGED, "the host's key is another one", false)  \
	X(CONFIG, "ssh refused its configuration or options", false) \
	X(TIMEOUT, "it took too long", false)                        \
	X(CANCELLED, "interrupted", false)

enum np_link {
#define X(name, text, again) NP_LINK_##name,
	NP_LINK_MAP(X)
#undef X
};

const char *np_link_text(enum np_link link); /* never NULL */
const char *np_link_name(enum np_link link); /* "HOST_KEY_CHANGED"; never NULL */

struct np_command {
	const char *const *argv;
	const char *what; /* for messages; NULL: argv[0] */
	struct np_source input;
	struct np_sink out, err;   /* take NULL: kept in the outcome */
	uint64_t timeout_ms;       /* of one try; 0: none */
	const atomic_bool *cancel; /* NULL: the transport's own */
	/*
	 * It does no harm to run it again after the connection was lost in the middle. With a
	 * sink or an input that is pulled, `restart` puts them back to their beginnings.
	 */
	bool repeatable;
	void (*restart)(void *ctx);
	void *restart_ctx;
};

struct np_outcome {
	int status; /* of the command: 0…255, 128 + the signal that ended it */
	enum np_link link;
	unsigned tries;
	struct np_buf out, err; /* of the streams without a sink; without ssh's own talk */
};

struct np_transport;

struct np_transport_ops {
	const char *kind; /* "local", "ssh", "fake" */
	/* One try. NP_OK: the command ended, by itself. Else outcome->link says why not. */
	enum np_status (*run)(struct np_transport *self, const struct np_command *command,
	                      struct np_outcome *outcome, struct np_err *err);
	/* Called before a repetition: forget a connection that is no good any more; NULL. */
	void (*forget)(struct np_transport *self);
	void (*close)(struct np_transport *self); /* frees it; must not fail */
};

enum { NP_TRANSPORT_TRIES = 4, NP_TRANSPORT_DELAY_MS = 1000, NP_TRANSPORT_MAX_DELAY_MS = 30000 };

/* How often and what is told; set the fields after opening. */
struct np_retry {
	unsigned tries;    /* in all; 0: NP_TRANSPORT_TRIES */
	uint64_t delay_ms; /* before the second one, doubled for each further; 0: the default */
	/* called before each wait: the error, which try failed, and how long is waited */
	void (*tell)(void *ctx, const struct np_transport *transport, const struct np_err *err,
	             unsigned failed_try, uint64_t wait_ms);
	void *ctx;
};

struct np_transport {
	const struct np_transport_ops *ops;
	char name[320]; /* "local" or the host as the user named it */
	struct np_retry retry;
	const atomic_bool *cancel; /* ends what runs, and every wait; NULL */
};

/*
 * Run a command to its end. NP_OK: it ended by itself, outcome->status tells how. E_NOTFOUND,
 * E_ACCESS, E_IO, E_LIMIT, E_USAGE otherwise, with `link`; err->where is the host and err->msg
 * names the command that repairs it where there is one. What does not reach the command (the
 * link could not be set up) is repeated for every command; what was lost in the middle only
 * when the command is repeatable. `outcome` is to be released in every case.
 */
enum np_status np_transport_run(struct np_transport *self, const struct np_command *command,
                                struct np_outcome *outcome, struct np_err *err);
void np_outcome_release(struct np_outcome *outcome);

/*
 * As np_transport_run(), and a status other than 0 is an error, too: E_IO with the first line
 * that the command wrote to stderr. 127 (no such command) is E_NOTFOUND.
 */
enum np_status np_transport_check(struct np_transport *self, const struct np_command *command,
                                  struct np_outcome *outcome, struct np_err *err);

void np_transport_close(struct np_transport *self); /* NULL is fine */

/* This machine. Commands run without a shell. */
enum np_status np_transport_local(struct np_transport **out, struct np_err *err);

struct np_ssh_options {
	const char *program;        /* NULL: $NPUPROF_SSH, else "ssh" */
	const char *config;         /* a file for ssh's -F; NULL: the user's own */
	const char *const *options; /* "Name=value" for ssh's -o; NULL-terminated; NULL */
	/* The loud one: take the key of a host that is not known yet, and remember it. The key
	 * of a known host that has changed is refused all the same. */
	bool accept_unknown_host_key;
	unsigned connect_timeout_s; /* 0: 15 */
	unsigned alive_s;           /* seconds between signs of life, 3 may miss; 0: 15 */
	const atomic_bool *cancel;  /* as in struct np_transport */
	struct np_retry retry;
};

/*
 * A host over the system's ssh: the user's own configuration, agent, jump hosts and known_hosts,
 * in batch mode, so that nothing waits for a password. Nothing is connected yet: the first
 * command does that, all later ones share its connection, which is left when it is closed.
 * E_USAGE for options that would weaken the check of host keys.
 *
 * The far login shell must be a POSIX one. Whatever it prints before the command starts is
 * dropped. The command leads a process group there, which gets SIGTERM after a timeout or a
 * cancel.
 */
enum np_status np_transport_ssh(const struct np_host *host, const struct np_ssh_options *options,
                                struct np_transport **out, struct np_err *err);

#endif
