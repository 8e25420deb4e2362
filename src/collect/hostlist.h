/*
 * Names of hosts as people write them:
 *
 *   node7  user@node7:2222  [fe80::1%eth0]:22  a,b,c  node[001-128]  rack[1-2]n[01-04,07]
 *
 * A range keeps the width of its first number when that begins with 0. Brackets may stand
 * several times; the last ones turn fastest. A host that was there before is left out; the
 * order is kept. In a file there is one list per line, `#` begins a comment.
 *
 * A name is what the user's ssh configuration knows, or DNS: it is not resolved here.
 */
#ifndef NP_COLLECT_HOSTLIST_H
#define NP_COLLECT_HOSTLIST_H

#include "base/err.h"
#include "base/intern.h"

enum {
	NP_HOSTS_MAX = 4096,
	NP_HOSTS_MAX_NAMES = 65536, /* before those that were there already are left out */
	NP_HOST_MAX_BYTES = 255,    /* of one name, user and port included */
	NP_HOSTS_FILE_MAX = 4 << 20,
};

struct np_host {
	const char *text; /* "user@node7:2222", as written, brackets expanded */
	const char *user; /* NULL: what ssh's configuration says */
	const char *name; /* without brackets around an IPv6 address */
	unsigned port;    /* 0: what ssh's configuration says */
};

struct np_hosts {
	struct np_arena arena;
	NP_VEC(struct np_host) v;
	struct np_intern names; /* what was there before; made with the first host */
	bool has_names;
	size_t n_names; /* that were read */
};

void np_hosts_init(struct np_hosts *self);
void np_hosts_release(struct np_hosts *self);

/*
 * Add the hosts of a list. `where` stands before the column in errors ("HOST" gives "HOST:12").
 * E_USAGE, E_LIMIT (more than NP_HOSTS_MAX), E_NOMEM; what was added before the error stays.
 */
enum np_status np_hosts_parse(struct np_hosts *self, np_str text, const char *where,
                              struct np_err *err);

/* Lines of a file. Errors name "path:line". E_EMPTY when it names no host. */
enum np_status np_hosts_parse_lines(struct np_hosts *self, np_str text, const char *path,
                                    struct np_err *err);

/* The same for a file; "-" is stdin. */
enum np_status np_hosts_read(struct np_hosts *self, const char *path, struct np_err *err);

#endif
