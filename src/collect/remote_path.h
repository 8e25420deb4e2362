/*
 * HOST:DIR as scp and rsync write it: a colon before the first slash names a host.
 *
 *   node7:/data/prof   user@node7:prof   [fe80::1]:/data   ssh://user@node7:2222/data/prof
 *   /data/prof   ./with:colon                                 on this machine
 */
#ifndef NP_COLLECT_REMOTE_PATH_H
#define NP_COLLECT_REMOTE_PATH_H

#include "base/err.h"
#include "base/mem.h"

struct np_remote_path {
	const char *host; /* as np_hosts_parse() reads it; NULL: this machine */
	const char *path;
};

/* Strings are the arena's. E_USAGE when there is a host but no path, or nothing at all. */
enum np_status np_remote_path_parse(struct np_arena *arena, const char *text,
                                    struct np_remote_path *out, struct np_err *err);

#endif
