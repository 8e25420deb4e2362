/*
 * What files there are on the other side, and which rank each belongs to.
 *
 * One command lists them: GNU find and a POSIX shell are all it needs. Names are taken as bytes
 * between NULs, so spaces, quotes and line ends in them are harmless; what would leave the
 * directory is refused here, once.
 */
#ifndef NP_COLLECT_REMOTE_LIST_H
#define NP_COLLECT_REMOTE_LIST_H

#include "base/time.h"
#include "collect/quote.h"
#include "collect/transport.h"

struct np_remote_file {
	const char *path; /* relative to the root */
	uint64_t size_bytes;
	np_ns mtime_ns;
	unsigned mode; /* permission bits */
	int64_t rank;  /* of the capture it lies in; NP_REMOTE_NO_RANK */
};

enum { NP_REMOTE_NO_RANK = -1 };

/* Where a transfer keeps what it has, in its DEST. Never a file that is listed. */
#define NP_PULL_STATE ".npuprof-pull"

/* What helps over there. */
struct np_remote_tools {
	bool zstd, openssl, sha256sum;
};

struct np_remote_list {
	struct np_arena arena;
	const char *root; /* absolute; of a single file its directory */
	struct np_remote_tools tools;
	NP_VEC(struct np_remote_file) files; /* sorted by path */
	NP_VEC(const char *) links;          /* symbolic links: not followed */
	size_t n_others;                     /* devices, sockets, … */
};

/* Where a remote command runs. */
struct np_place {
	const struct np_container *container; /* NULL: the host itself */
};

/*
 * List `path`, a directory or one file ("~/…" is below the far home). E_NOTFOUND when it is
 * not there; E_UNSUPPORTED without GNU find; E_FORMAT for names that leave the directory;
 * errors of the transport.
 */
enum np_status np_remote_list(struct np_remote_list *self, struct np_transport *transport,
                              const struct np_place *place, const char *path, struct np_err *err);
void np_remote_list_release(struct np_remote_list *self);

/* The parser behind it: pure, for any bytes. */
enum np_status np_remote_list_parse(struct np_remote_list *self, np_str text, const char *where,
                                    struct np_err *err);

/* The argv of `script` with its arguments ($1 …, NULL-terminated) by sh at the place. In the
 * arena; NULL: out of memory. */
const char *const *np_place_script(struct np_arena *arena, const struct np_place *place,
                                   bool with_input, const char *script, const char *const *args);

#endif
