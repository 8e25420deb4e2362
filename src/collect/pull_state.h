/*
 * What the parts of a pull share. Private to src/collect/pull*.c.
 */
#ifndef NP_COLLECT_PULL_STATE_H
#define NP_COLLECT_PULL_STATE_H

#include <pthread.h>

#include "collect/hash.h"
#include "collect/pull.h"

enum item_state {
	ITEM_WANTED,   /* to fetch, or under way */
	ITEM_PRESENT,  /* a file of its name and size is there: only to be compared */
	ITEM_DONE,     /* verified and named */
	ITEM_CONFLICT, /* there, and not the same */
	ITEM_FAILED,   /* given up */
};

struct item {
	const struct np_remote_file *file;
	const char *part, *final; /* paths */
	enum item_state state;
	uint8_t *have;                    /* per shard: it has come */
	size_t n_shards, n_have, n_front; /* front: shards from the begin without a gap */
	struct np_hash *hash;             /* of the first n_hashed shards */
	size_t n_hashed;
	bool queued; /* for the hasher */
	bool plain;  /* does not get smaller: not compressed any more */
	bool has_local, has_remote;
	struct np_digests local;
	char remote[NP_SHA256_HEX + 1];
	unsigned tries;
	bool had;        /* it was there before this call */
	const char *why; /* of FAILED and CONFLICT; NULL */
};

/* One stream: a shard of a file, or several small files. */
struct job {
	size_t item, n_items; /* in pull->items, consecutive */
	size_t shard;         /* of a single item */
};

struct pull {
	const struct np_pull_link *link;
	const struct np_pull_options *options;
	struct np_pull_result *result;
	struct np_transport *side; /* the connection for lists and digests, beside the workers' */
	struct np_remote_list list;
	struct np_arena arena;
	uint64_t shard_bytes;
	NP_VEC(struct item) items;
	int journal, lock_fd;
	bool locked;
	const char *state_dir;

	/* the rest under `lock` */
	pthread_mutex_t lock;
	pthread_cond_t wake;
	NP_VEC(struct job) jobs;  /* taken from the end */
	NP_VEC(size_t) to_hash;   /* items */
	size_t n_workers, n_busy; /* threads at work; busy: of every kind */
	bool stop;                /* failure: everybody goes home */
	struct np_err failure;
	bool begun; /* something could have been fetched: a failure is a result, not an error */
	uint64_t bytes_total;

	atomic_bool ended; /* `stop`, or the user wants it: ends every command that runs */
	_Atomic uint64_t bytes_done; /* for the progress line: counts while it comes */
};

/* ── pull_store.c ── */

/* Make DEST and its state directory, take the lock, open the journal. */
enum np_status np_pull_store_open(struct pull *self, struct np_err *err);
/* Paths of all items, what the journal knows of them, and what is there already. */
enum np_status np_pull_store_items(struct pull *self, struct np_err *err);
/* Enough room for what is to come? E_LIMIT. */
enum np_status np_pull_store_room(struct pull *self, struct np_err *err);
/* A shard has come (under the lock): write it down, hand it to the hasher. */
enum np_status np_pull_store_shard(struct pull *self, size_t item, size_t shard,
                                   struct np_err *err);
/* The digests are known to be the same: give the file its name. */
enum np_status np_pull_store_finish(struct pull *self, struct item *item, struct np_err *err);
/* `complete`: nothing is left to resume, so the state directory goes, too. */
void np_pull_store_close(struct pull *self, bool complete);

/* ── pull_fetch.c ── */

/* One thread of those which empty the queue of jobs, each over a connection of its own. */
void *np_pull_worker(void *pull);

/* ── pull_digest.c ── */

/* Threads beside the workers: digests here, and digests there. */
void *np_pull_hasher(void *pull);
void *np_pull_far_digests(void *pull);
/* Both are known: finish, or leave it for the next round (under the lock). */
void np_pull_judge(struct pull *self, struct item *item);
/* Forget the shards of an item that differ from the far side's. */
enum np_status np_pull_forget_bad(struct pull *self, size_t item, struct np_err *err);

/* ── pull.c ── */

/* The first failure stops everything; the second one is for those who hold the lock. */
void np_pull_fail(struct pull *self, const struct np_err *err);
void np_pull_fail_locked(struct pull *self, const struct np_err *err);
/* A thread is at its end; a worker is one of n_workers. */
void np_pull_thread_ends(struct pull *self, bool is_worker);
/* Bytes of a shard. */
uint64_t np_pull_shard_size(const struct pull *self, const struct item *item, size_t shard);
void np_pull_progress(struct pull *self);

#endif
