/*
 * What commands that go to other hosts have in common: the options about hosts and ssh, and
 * what is told while a connection is tried again.
 */
#ifndef NP_CMD_REMOTE_H
#define NP_CMD_REMOTE_H

#include "cmd/cmd.h"
#include "collect/transport.h"

struct np_remote_options {
	const char *hosts_from, *ssh_config;
	struct np_opt_list ssh_options;
	bool insecure;
};

/* Rows for a table of options; `at` is the offset of a struct np_remote_options. */
#define NP_REMOTE_SSH_OPTIONS(at)                                                      \
	{"ssh-config",  0,                                                             \
	 NP_OPT_STRING, (at) + offsetof(struct np_remote_options, ssh_config),         \
	 "FILE",        "instead of ~/.ssh/config"},                                   \
		{"ssh-option", 0,                                                      \
	         NP_OPT_LIST,  (at) + offsetof(struct np_remote_options, ssh_options), \
	         "NAME=VALUE", "as ssh -o; may be given several times"},               \
	{                                                                              \
		"insecure-accept-host-key", 0, NP_OPT_FLAG,                            \
			(at) + offsetof(struct np_remote_options, insecure), NULL,     \
			"take the key of a host that is not known yet"                 \
	}

/* The same for commands that go to several hosts. */
#define NP_REMOTE_OPTIONS(at)                                                  \
	{"hosts-from",  0,                                                     \
	 NP_OPT_STRING, (at) + offsetof(struct np_remote_options, hosts_from), \
	 "FILE",        "hosts, a list per line; - is stdin"},                 \
		NP_REMOTE_SSH_OPTIONS(at)

/* The hosts of a word (NULL: none) and of --hosts-from, into an initialised list. */
enum np_status np_remote_hosts(const struct np_remote_options *own, const char *word,
                               struct np_hosts *hosts, struct np_err *err);

/*
 * Options for the transport; they borrow from `own` and `call`. Repetitions are told on stderr
 * unless -q, and the loud option in a note of the report. E_USAGE: too many --ssh-option.
 */
enum np_status np_remote_ssh(const struct np_call *call, const struct np_remote_options *own,
                             const atomic_bool *cancel, struct np_report *report,
                             struct np_ssh_options *out, struct np_err *err);

#endif
