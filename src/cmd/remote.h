/*
 * What commands that go to other machines have in common: the options about ssh and containers.
 */
#ifndef NP_CMD_REMOTE_H
#define NP_CMD_REMOTE_H

#include "cmd/cmd.h"
#include "collect/quote.h"
#include "collect/transport.h"

/* A member of a command's struct of options. */
struct np_remote_options {
	const char *container, *ssh_config;
	struct np_opt_list ssh_options;
	bool insecure;
};

/* Rows for its table: `type` is the struct, `member` the member's name. */
#define NP_REMOTE_OPTIONS(type, member)                                                            \
	{"container",   0,                                                                         \
	 NP_OPT_STRING, offsetof(type, member.container),                                          \
	 "NAME",        "in this container there; docker:NAME or podman:NAME choose"},             \
		{"ssh-config",  0,                                                                 \
	         NP_OPT_STRING, offsetof(type, member.ssh_config),                                 \
	         "FILE",        "instead of ~/.ssh/config"},                                       \
		{"ssh-option", 0,          NP_OPT_LIST, offsetof(type, member.ssh_options),        \
	         "NAME=VALUE", "as ssh -o"},                                                       \
	{                                                                                          \
		"insecure-accept-host-key", 0, NP_OPT_FLAG, offsetof(type, member.insecure), NULL, \
			"take the key of a host that is not known yet"                             \
	}

/* The options of ssh; borrows from `self`. E_USAGE. Tells of a key that was taken unseen. */
enum np_status np_remote_ssh(const struct np_remote_options *self, const atomic_bool *cancel,
                             struct np_report *report, struct np_ssh_options *out,
                             struct np_err *err);

#endif
