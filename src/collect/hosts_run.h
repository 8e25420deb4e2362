/*
 * The same job on many hosts at a time: one transport and one thread per host while its job
 * runs. What happens on one host changes nothing on the others.
 */
#ifndef NP_COLLECT_HOSTS_RUN_H
#define NP_COLLECT_HOSTS_RUN_H

#include "collect/transport.h"

enum { NP_HOSTS_AT_ONCE = 16 };

struct np_host_result {
	enum np_status status;
	struct np_err err; /* when status is not NP_OK */
};

/* Called on some thread, for each host once; `i` is its place in the list. */
typedef enum np_status np_host_job(void *ctx, size_t i, struct np_transport *transport,
                                   struct np_err *err);

/*
 * Run `job` for each host, on up to `at_once` of them at a time (0: NP_HOSTS_AT_ONCE). No hosts
 * at all means this machine: one job on the local transport. results[] has a place for each
 * host, at least one. Returns how many jobs failed. `ssh` may be NULL; its callbacks are called
 * from several threads.
 */
size_t np_hosts_run(const struct np_hosts *hosts, const struct np_ssh_options *ssh,
                    unsigned at_once, np_host_job *job, void *ctx, struct np_host_result *results);

#endif
