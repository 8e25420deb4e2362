/*
 * Fetch a directory from a host: sharded, parallel, verified, resumable (R43, §2.8).
 *
 *   list ─▶ shards ─▶ workers ─ pwrite ─▶ DEST/.npuprof-pull/parts ─▶ hasher ─┐
 *     └───▶ digests of the source, by the far side ───────────────────────────┴▶ same? rename
 *
 * A file gets its name only when all of it has come and its SHA-256 is that of the source. What
 * has come is written down per shard, so that the same call goes on where an earlier one was
 * ended, whatever ended it. A file whose digest differs is fetched again, shard by shard where
 * only some of them differ.
 *
 * The clock of the files is this machine's, unless `preserve` (R52).
 */
#ifndef NP_COLLECT_PULL_H
#define NP_COLLECT_PULL_H

#include "base/progress.h"
#include "collect/remote_list.h"
#include "report/report.h"

enum {
	NP_PULL_CONNECTIONS = 3,
	NP_PULL_SHARD_BYTES = 64 << 20,
	NP_PULL_BATCH_BYTES = 16 << 20, /* small files that travel as one stream */
	NP_PULL_BATCH_FILES = 1000,
	NP_PULL_ROUNDS = 3, /* how often a file with a wrong digest is fetched again */
};

/* How to get a connection; called from several threads. */
struct np_pull_link {
	enum np_status (*open)(void *ctx, struct np_transport **out, struct np_err *err);
	void *ctx;
	struct np_place place;
};

struct np_pull_options {
	const char *source;      /* "host:/dir", for messages and the manifest */
	const char *path;        /* the directory or file over there */
	const char *dest;        /* made when it is not there */
	const char *const *only; /* patterns (fnmatch) of base names or paths; NULL: all */
	size_t n_only;
	const int64_t *ranks; /* NULL: all, and what belongs to no rank */
	size_t n_ranks;
	unsigned connections; /* 0: NP_PULL_CONNECTIONS */
	uint64_t shard_bytes; /* 0: NP_PULL_SHARD_BYTES */
	bool no_compress, preserve, with_md5, force, dry_run;
	const char *arm; /* for the manifest (R54), or NULL */
	struct np_progress *progress;
	const atomic_bool *cancel;
};

/* What came of it; a report has the same and the findings. */
struct np_pull_result {
	size_t files, had_files;   /* verified in all; of them already there */
	uint64_t bytes, had_bytes; /* likewise */
	uint64_t wire_bytes;       /* what travelled, compressed */
	uint64_t fetched_bytes;    /* what came, uncompressed */
	uint64_t resumed_bytes;    /* that an earlier call had fetched */
	size_t refetched;          /* shards fetched again for a wrong digest */
	size_t failed, conflicts;  /* files given up; files that are there and differ */
	bool complete, verified;
};

/*
 * Fetch, verify, write the manifest; table `pulled`, findings PULL_INCOMPLETE (the connection,
 * the disk or the user ended it: the same call resumes), PULL_SOURCE_CHANGED (also: no digest of
 * it came), PULL_FILE_DIFFERS, PULL_UNVERIFIED, PULL_LINKS; exit_code 0, 1, 3 or 4.
 * Nothing is written through a link below DEST, and a file there is replaced with `force` only.
 * Errors (nothing was fetched): those of np_remote_list(); E_EXISTS: another call is at work in
 * DEST, or its place is taken; E_EMPTY: no file matches; E_LIMIT: not enough room, or a list
 * that cannot be true; E_USAGE: DEST lies in the source; E_ACCESS, E_IO: DEST cannot be written.
 */
enum np_status np_pull(const struct np_pull_link *link, const struct np_pull_options *options,
                       struct np_pull_result *result, struct np_report *report, struct np_err *err);

#endif
