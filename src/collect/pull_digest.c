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
		if (np_pull_store_finish(self, item, &err) != NP_OK) {
			self->stop = true;
			self->failure = self->failure.code ? self->failure : err;
		}
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
		while (!self->stop && !self->to_hash.n && !self->fetched)
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
	return NULL;
}

/* ── there ──────────────────────────────────────────────────────────────────
 * openssl is four to five times as fast as sha256sum, but puts an end of line behind each name,
 * whatever the name is; so files with odd names go to the other one.
 */

static const char openssl_script[] = "cd -- \"$1\" && exec xargs -0 openssl dgst -sha256 -r";
static const char sha256sum_script[] = "cd -- \"$1\" && exec xargs -0 sha256sum -z --";

struct far {
	struct pull *pull;
	bool openssl;
	size_t next; /* item */
	struct np_buf line;
};

static bool needs_remote(const struct pull *pull, const struct item *item, bool openssl)
{
	bool odd = strpbrk(item->file->path, "\n\\") != NULL;
	bool by_openssl = pull->list.tools.openssl && !(odd && pull->list.tools.sha256sum);
	return (item->state == ITEM_WANTED || item->state == ITEM_PRESENT) && !item->has_remote &&
	       by_openssl == openssl;
}

/* "<64 hex> *./path" (openssl) or "<64 hex>  ./path"; they come in the order they were asked. */
static void take_line(struct far *far)
{
	struct pull *pull = far->pull;
	np_str line = np_buf_str(&far->line);
	if (line.len < NP_SHA256_HEX + 4 || !np_is_sha256(np_str_sub(line, 0, NP_SHA256_HEX)))
		return;
	np_str path = np_str_from(line, NP_SHA256_HEX + 4); /* two characters and "./" */
	(void)pthread_mutex_lock(&pull->lock);
	for (size_t i = far->next; i < pull->items.n; i++) {
		struct item *item = &pull->items.v[i];
		if (!np_str_is(path, item->file->path))
			continue;
		memcpy(item->remote, line.ptr, NP_SHA256_HEX);
		item->remote[NP_SHA256_HEX] = '\0';
		item->has_remote = true;
		far->next = i + 1;
		np_pull_judge(pull, item);
		break;
	}
	(void)pthread_mutex_unlock(&pull->lock);
}

static enum np_status take_digests(void *ctx, const void *bytes, size_t len, struct np_err *err)
{
	struct far *far = ctx;
	const char *text = bytes;
	for (size_t i = 0; i < len; i++) {
		if (text[i] != (far->openssl ? '\n' : '\0')) {
			np_buf_add_char(&far->line, text[i]);
			continue;
		}
		if (far->line.failed)
			return np_err_nomem(err);
		take_line(far);
		np_buf_clear(&far->line);
	}
	return NP_OK;
}

static void restart_digests(void *ctx)
{
	struct far *far = ctx;
	far->next = 0;
	np_buf_clear(&far->line);
}

static enum np_status ask_digests(struct pull *self, bool openssl, struct np_err *err)
{
	struct far far = {.pull = self, .openssl = openssl};
	struct np_arena arena;
	struct np_buf names = {0};
	struct np_outcome outcome = {0};
	const char *const args[] = {self->list.root, NULL};
	(void)pthread_mutex_lock(&self->lock);
	for (size_t i = 0; i < self->items.n; i++)
		if (needs_remote(self, &self->items.v[i], openssl)) {
			np_buf_add_cstr(&names, "./");
			np_buf_add_cstr(&names, self->items.v[i].file->path);
			np_buf_add_char(&names, '\0');
		}
	(void)pthread_mutex_unlock(&self->lock);
	np_arena_init(&arena);
	struct np_command command = {
		.argv = np_place_script(&arena, &self->link->place, true,
	                                openssl ? openssl_script : sha256sum_script, args),
		.what = "digests",
		.input = {.kind = NP_SOURCE_BYTES, .bytes = np_buf_str(&names)},
		.out = {take_digests, &far},
		.repeatable = true,
		.restart = restart_digests,
		.restart_ctx = &far,
		.cancel = self->options->cancel,
	};
	enum np_status status = names.failed || !command.argv ? np_err_nomem(err) : NP_OK;
	/* a file that it cannot read has no digest, and is told by the worker that fetches it */
	if (status == NP_OK && names.len)
		status = np_transport_run(self->side, &command, &outcome, err);
	np_outcome_release(&outcome);
	np_buf_release(&far.line);
	np_buf_release(&names);
	np_arena_release(&arena);
	return status;
}

void *np_pull_far_digests(void *arg)
{
	struct pull *self = arg;
	struct np_err err = {0};
	if (!self->list.tools.openssl && !self->list.tools.sha256sum)
		return NULL; /* told at the end: unverified */
	enum np_status status = ask_digests(self, true, &err);
	if (status == NP_OK)
		status = ask_digests(self, false, &err);
	if (status != NP_OK)
		np_pull_fail(self, &err);
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
