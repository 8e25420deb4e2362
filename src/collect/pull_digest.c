/*
 * Digests of what has come, while the rest still comes: the hasher follows the front of each
 * file through the page cache, and the far side digests its files in one process meanwhile.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "collect/pull_state.h"
#include "collect/remote_digest.h"

/* ── here ── */

static enum np_status hash_front(struct pull *self, struct item *item, const char *path,
                                 size_t front, struct np_err *err)
{
	int fd = -1;
	enum np_status status = NP_OK;
	if (!item->hash)
		item->hash = np_hash_new(self->options->with_md5);
	if (!item->hash)
		return np_err_nomem(err);
	if (item->n_hashed < front) {
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			return np_err_set(err, NP_E_IO, path, "%s", strerror(errno));
	}
	for (; item->n_hashed < front && status == NP_OK; item->n_hashed++)
		status = np_hash_add_file(item->hash, fd, path, item->n_hashed * self->shard_bytes,
		                          np_pull_shard_size(self, item, item->n_hashed), err);
	if (fd >= 0)
		(void)close(fd);
	if (status != NP_OK || front < item->n_shards)
		return status;
	if (!np_hash_end(item->hash, &item->local))
		status = np_err_set(err, NP_E_IO, path, "libcrypto cannot digest it");
	np_hash_free(item->hash);
	item->hash = NULL;
	return status;
}

void np_pull_judge(struct pull *self, struct item *item)
{
	struct np_err err = {0};
	if (!item->has_local || !item->has_remote ||
	    (item->state != ITEM_WANTED && item->state != ITEM_PRESENT))
		return;
	if (strcmp(item->local.sha256, item->remote) == 0) {
		if (np_pull_store_finish(self, item, &err) != NP_OK)
			np_pull_fail_locked(self, &err);
	} else if (item->state == ITEM_PRESENT && !self->options->force) {
		item->state = ITEM_CONFLICT;
	}
}

void *np_pull_hasher(void *arg)
{
	struct pull *self = arg;
	struct np_err err = {0};
	(void)pthread_mutex_lock(&self->lock);
	for (;;) {
		while (!self->stop && !self->to_hash.n && self->n_workers)
			(void)pthread_cond_wait(&self->wake, &self->lock);
		if (self->stop || !self->to_hash.n)
			break;
		struct item *item = &self->items.v[self->to_hash.v[--self->to_hash.n]];
		size_t front = item->n_front;
		const char *path = item->state == ITEM_PRESENT ? item->final : item->part;
		item->queued = false;
		(void)pthread_mutex_unlock(&self->lock);
		/* only this thread touches hash, n_hashed and local of an item */
		enum np_status status = hash_front(self, item, path, front, &err);
		if (status != NP_OK)
			np_pull_fail(self, &err);
		(void)pthread_mutex_lock(&self->lock);
		if (status == NP_OK && item->n_hashed == item->n_shards) {
			item->has_local = true;
			np_pull_judge(self, item);
		}
	}
	(void)pthread_mutex_unlock(&self->lock);
	np_pull_thread_ends(self, false);
	return NULL;
}

/* ── there ── */

struct far {
	struct pull *pull;
	const char **paths;
	size_t *items;
	size_t n;
};

static void take_far(void *ctx, size_t i, const char *hex)
{
	struct far *far = ctx;
	struct pull *pull = far->pull;
	struct item *item = &pull->items.v[far->items[i]];
	(void)pthread_mutex_lock(&pull->lock);
	memcpy(item->remote, hex, sizeof item->remote);
	item->has_remote = true;
	np_pull_judge(pull, item);
	(void)pthread_mutex_unlock(&pull->lock);
}

static void choose_far(struct far *far)
{
	struct pull *pull = far->pull;
	(void)pthread_mutex_lock(&pull->lock);
	for (size_t i = 0; i < pull->items.n; i++) {
		const struct item *item = &pull->items.v[i];
		if ((item->state != ITEM_WANTED && item->state != ITEM_PRESENT) || item->has_remote)
			continue;
		far->paths[far->n] = item->file->path;
		far->items[far->n++] = i;
	}
	(void)pthread_mutex_unlock(&pull->lock);
}

void *np_pull_far_digests(void *arg)
{
	struct pull *self = arg;
	struct np_err err = {0};
	struct far far = {.pull = self};
	bool possible = self->list.tools.openssl || self->list.tools.sha256sum;
	far.paths = np_calloc(self->items.n + 1, sizeof *far.paths);
	far.items = np_calloc(self->items.n + 1, sizeof *far.items);
	enum np_status status = far.paths && far.items ? NP_OK : np_err_nomem(&err);
	if (status == NP_OK && possible) { /* else told at the end: unverified */
		choose_far(&far);
		/* a file that it cannot read is told by the worker that fetches it */
		status = np_remote_digests(self->side, &self->link->place, self->list.root,
		                           &self->list.tools, far.paths, far.n, take_far, &far,
		                           &self->ended, &err);
	}
	if (status != NP_OK)
		np_pull_fail(self, &err);
	np_free(far.paths);
	np_free(far.items);
	np_pull_thread_ends(self, false);
	return NULL;
}

/* ── which shards are wrong ── */

static const char shards_script[] =
	"cd -- \"$1\" && i=0 && while [ \"$i\" -lt \"$4\" ]; do\n"
	"d=$(dd if=\"$2\" bs=1048576 iflag=skip_bytes,count_bytes,fullblock skip=$((i * $3)) "
	"count=\"$3\" status=none | if command -v sha256sum >/dev/null; then sha256sum; else "
	"openssl dgst -sha256 -r; fi)\n"
	"echo \"${d%% *}\"; i=$((i + 1)); done";

static bool is_same_shard(struct pull *self, struct item *item, size_t shard, np_str far)
{
	struct np_digests digests = {{0}, {0}};
	struct np_hash *hash = np_hash_new(false);
	int fd = open(item->part, O_RDONLY | O_CLOEXEC);
	bool same = hash && fd >= 0 &&
	            np_hash_add_file(hash, fd, item->part, shard * self->shard_bytes,
	                             np_pull_shard_size(self, item, shard), NULL) == NP_OK &&
	            np_hash_end(hash, &digests) && np_str_is(far, digests.sha256);
	if (fd >= 0)
		(void)close(fd);
	np_hash_free(hash);
	return same;
}

/* All shards when none of them, or the question itself, says which. */
static void forget(struct pull *self, struct item *item, np_str far)
{
	size_t forgotten = 0;
	for (size_t i = 0; i < item->n_shards; i++) {
		np_str digest = np_str_trim(np_str_cut(far, '\n', &far));
		if (item->n_shards > 1 && is_same_shard(self, item, i, digest))
			continue;
		item->have[i] = 0;
		forgotten++;
	}
	if (forgotten == 0) {
		memset(item->have, 0, item->n_shards);
		forgotten = item->n_shards;
	}
	self->result->refetched += forgotten;
	item->n_have = item->n_shards - forgotten;
	item->n_front = item->n_hashed = 0;
	while (item->n_front < item->n_shards && item->have[item->n_front])
		item->n_front++;
	item->has_local = item->has_remote = false;
}

enum np_status np_pull_forget_bad(struct pull *self, size_t at, struct np_err *err)
{
	struct item *item = &self->items.v[at];
	struct np_arena arena;
	struct np_outcome outcome = {0};
	np_arena_init(&arena);
	const char *const args[] = {
		self->list.root, np_arena_printf(&arena, "./%s", item->file->path),
		np_arena_printf(&arena, "%llu", (unsigned long long)self->shard_bytes),
		np_arena_printf(&arena, "%zu", item->n_shards), NULL};
	struct np_command command = {.what = "digests of shards", .repeatable = true};
	enum np_status status = NP_OK;
	if (item->n_shards > 1) {
		command.argv =
			np_place_script(&arena, &self->link->place, false, shards_script, args);
		status = command.argv && args[1] && args[2] && args[3]
		                 ? np_transport_run(self->side, &command, &outcome, err)
		                 : np_err_nomem(err);
	}
	if (status == NP_OK)
		forget(self, item, np_buf_str(&outcome.out));
	np_outcome_release(&outcome);
	np_arena_release(&arena);
	return status;
}
