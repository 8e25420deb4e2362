/*
 * What OpenSSH's client says when it cannot do its work, as a state of the link and one line
 * that tells a person what to do.
 */
#ifndef NP_COLLECT_SSH_ERRORS_H
#define NP_COLLECT_SSH_ERRORS_H

#include "collect/transport.h"

/*
 * `talk` is what ssh wrote to stderr, `begun` whether the command had started. Appends one
 * line to `out`: what failed, and the command that repairs it where there is one. `connect` is
 * the ssh command line to show, e.g. "ssh -p 2222 user@node7".
 */
enum np_link np_ssh_explain(np_str talk, bool begun, const struct np_host *host,
                            const char *connect, struct np_buf *out);

#endif
