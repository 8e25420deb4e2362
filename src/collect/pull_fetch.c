/*
 * The workers: each has a connection and takes jobs until there are none.
 *
 *   far side:  dd | zstd ─ ssh ─▶ stream ─ unzstd ─ pwrite ─▶ part
 *
 * What a stream brings is known beforehand to the byte; one that brings less or more is no good.
 * A batch that is no good is fetched file by file, since only one of them need have changed.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#include "base/fs.h"
#include "collect/pull_state.h"

enum { UNPACKED_BYTES = 256 << 10, MAX_TRIES = 3 };

struct stream {
	struct pull *pull;
	const struct job *job;
	bool packed;
	ZSTD_DStream *zstd;
	size_t hint;        /* of zstd: 0 at the end of a frame */
	bool ended, broken; /* the frame is complete; it is no zstd or too long */
	size_t item;        /* where it stands */
	uint64_t offset, left;
	uint64_t taken, wire;
	int fd;
	char *room;
};

static const char whole_script[] = "cd -- \"$1\" && exec xargs -0 cat --";
static const char whole_packed[] = "cd -- \"$1\" && xargs -0 cat -- | zstd -q -1 -c";
static const char shard_script[] =
	"cd -- \"$1\" && exec dd if=\"$2\" bs=1048576 iflag=skip_bytes,count_bytes,fullblock "
	"skip=\"$3\" count=\"$4\" status=none";
static const char shard_packed[] =
	"cd -- \"$1\" && dd if=\"$2\" bs=1048576 iflag=skip_bytes,count_bytes,fullblock "
	"skip=\"$3\" count=\"$4\" status=none | zstd -q -1 -c";

/* ── the stream ── */

static struct item *item_of(struct stream *self)
{
	return &self->pull->items.v[self->item];
}

static void close_part(struct stream *self)
{
	if (self->fd >= 0)
		(void)close(self->fd);
	self->fd = -1;
}

/* Stand at the begin of the item's bytes. */
static void enter(struct stream *self)
{
	struct item *item = item_of(self);
	bool shard = self->job->n_items == 1;
	self->offset = shard ? self->job->shard * self->pull->shard_bytes : 0;
	self->left = shard ? np_pull_shard_size(self->pull, item, self->job->shard)
	                   : item->file->size_bytes;
}

static void rewind_stream(void *ctx)
{
	struct stream *self = ctx;
	close_part(self);
	if (self->zstd)
		(void)ZSTD_initDStream(self->zstd);
	self->hint = 1;
	self->ended = self->broken = false;
	atomic_fetch_sub(&self->pull->bytes_done, self->taken);
	self->taken = 0;
	self->item = self->job->item;
	enter(self);
}

static enum np_status put(struct stream *self, const char *bytes, size_t len, struct np_err *err)
{
	while (len) {
		while (self->left == 0) {
			close_part(self);
			if (self->item + 1 >= self->job->item + self->job->n_items) {
				self->broken = true;
				return NP_OK;
			}
			self->item++;
			enter(self);
		}
		const char *part = item_of(self)->part;
		if (self->fd < 0)
			self->fd = open(part, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0640);
		size_t now = len < self->left ? len : (size_t)self->left;
		ssize_t wrote =
			self->fd < 0 ? -1 : pwrite(self->fd, bytes, now, (off_t)self->offset);
		if (wrote < 0 && errno == EINTR)
			continue;
		if (wrote < 0)
			return np_err_set(err, NP_E_IO, part, "%s", strerror(errno));
		bytes += wrote;
		len -= (size_t)wrote;
		self->offset += (uint64_t)wrote;
		self->left -= (uint64_t)wrote;
		self->taken += (uint64_t)wrote;
		atomic_fetch_add(&self->pull->bytes_done, (uint64_t)wrote);
	}
	np_pull_progress(self->pull);
	return NP_OK;
}

static enum np_status unpack(struct stream *self, const void *bytes, size_t len, struct np_err *err)
{
	ZSTD_inBuffer in = {bytes, len, 0};
	bool full = false; /* then there may be more, though all of the input is taken */
	while ((in.pos < in.size || (full && self->hint)) && !self->broken) {
		ZSTD_outBuffer out = {self->room, UNPACKED_BYTES, 0};
		self->hint = ZSTD_decompressStream(self->zstd, &out, &in);
		if (ZSTD_isError(self->hint)) {
			self->broken = true;
			return NP_OK;
		}
		full = out.pos == out.size;
		NP_TRY(put(self, self->room, out.pos, err));
	}
	return NP_OK;
}

static enum np_status take(void *ctx, const void *bytes, size_t len, struct np_err *err)
{
	struct stream *self = ctx;
	self->wire += len;
	if (self->broken) /* let it run out; what it brings is dropped */
		return NP_OK;
	return self->packed ? unpack(self, bytes, len, err) : put(self, bytes, len, err);
}

static uint64_t expected(const struct stream *self)
{
	const struct pull *pull = self->pull;
	if (self->job->n_items == 1)
		return np_pull_shard_size(pull, &pull->items.v[self->job->item], self->job->shard);
	uint64_t sum = 0;
	for (size_t i = 0; i < self->job->n_items; i++)
		sum += pull->items.v[self->job->item + i].file->size_bytes;
	return sum;
}

static bool is_whole(const struct stream *self)
{
	return !self->broken && self->taken == expected(self) &&
	       (!self->packed || self->hint == 0 || self->taken == 0);
}

/* ── one job ── */

static bool is_packed_already(const char *path)
{
	static const char *const ends[] = {".gz", ".zst", ".xz", ".bz2", ".zip", ".npz", ".lz4"};
	np_str name = np_str_of(path);
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
		if (np_str_ends(name, np_str_of(ends[i])))
			return true;
	return false;
}

static bool wants_packing(const struct pull *pull, const struct job *job)
{
	const struct item *item = &pull->items.v[job->item];
	if (pull->options->no_compress || !pull->list.tools.zstd)
		return false;
	return job->n_items > 1 || !(item->plain || is_packed_already(item->file->path));
}

/* The names of a batch, each with a NUL. */
static bool add_names(struct np_buf *out, const struct pull *pull, const struct job *job)
{
	for (size_t i = 0; i < job->n_items; i++) {
		np_buf_add_cstr(out, "./");
		np_buf_add_cstr(out, pull->items.v[job->item + i].file->path);
		np_buf_add_char(out, '\0');
	}
	return !out->failed;
}

static const char *const *argv_of(struct np_arena *arena, struct stream *stream)
{
	const struct pull *pull = stream->pull;
	const struct job *job = stream->job;
	const struct item *item = &pull->items.v[job->item];
	uint64_t begin = job->shard * pull->shard_bytes;
	if (job->n_items > 1) {
		const char *const args[] = {pull->list.root, NULL};
		return np_place_script(arena, &pull->link->place, true,
		                       stream->packed ? whole_packed : whole_script, args);
	}
	const char *const args[] = {
		pull->list.root, np_arena_printf(arena, "./%s", item->file->path),
		np_arena_printf(arena, "%llu", (unsigned long long)begin),
		np_arena_printf(arena, "%llu", (unsigned long long)expected(stream)), NULL};
	if (!args[1] || !args[2] || !args[3])
		return NULL;
	return np_place_script(arena, &pull->link->place, false,
	                       stream->packed ? shard_packed : shard_script, args);
}

static enum np_status run_stream(struct stream *stream, struct np_transport *transport,
                                 struct np_outcome *outcome, struct np_err *err)
{
	struct np_arena arena;
	struct np_buf names = {0};
	np_arena_init(&arena);
	struct np_command command = {
		.argv = argv_of(&arena, stream),
		.what = "fetching",
		.out = {take, stream},
		.repeatable = true,
		.restart = rewind_stream,
		.restart_ctx = stream,
		.cancel = &stream->pull->ended,
	};
	if (stream->job->n_items > 1) {
		bool good = add_names(&names, stream->pull, stream->job);
		command.input =
			(struct np_source){.kind = NP_SOURCE_BYTES, .bytes = np_buf_str(&names)};
		command.argv = good ? command.argv : NULL;
	}
	rewind_stream(stream);
	enum np_status status = command.argv ? np_transport_run(transport, &command, outcome, err)
	                                     : np_err_nomem(err);
	close_part(stream);
	np_buf_release(&names);
	np_arena_release(&arena);
	return status;
}

/* ── what became of it (under the lock) ── */

static enum np_status settle_whole(struct stream *stream, struct np_err *err)
{
	struct pull *pull = stream->pull;
	const struct job *job = stream->job;
	pull->result->wire_bytes += stream->wire;
	pull->result->fetched_bytes += stream->taken;
	if (stream->packed && stream->taken > (1 << 20) &&
	    stream->wire > stream->taken - stream->taken / 16)
		pull->items.v[job->item].plain = true;
	if (job->n_items == 1)
		return np_pull_store_shard(pull, job->item, job->shard, err);
	for (size_t i = 0; i < job->n_items; i++)
		NP_TRY(np_pull_store_shard(pull, job->item + i, 0, err));
	return NP_OK;
}

static void give_up(struct pull *pull, struct item *item, const struct np_outcome *outcome)
{
	np_str said = np_str_trim(np_buf_str(&outcome->err));
	said = np_str_cut(said, '\n', &(np_str){0});
	if (said.len > 150)
		said.len = 150;
	item->state = ITEM_FAILED;
	item->why = said.len ? np_arena_cstr(&pull->arena, said)
	                     : "it does not have the size any more that it was listed with";
}

static enum np_status settle_broken(struct stream *stream, const struct np_outcome *outcome,
                                    struct np_err *err)
{
	struct pull *pull = stream->pull;
	const struct job *job = stream->job;
	pull->result->wire_bytes += stream->wire;
	atomic_fetch_sub(&pull->bytes_done, stream->taken);
	if (job->n_items == 1) {
		struct item *item = &pull->items.v[job->item];
		if (++item->tries >= MAX_TRIES)
			give_up(pull, item, outcome);
		else if (!np_vec_push(&pull->jobs, *job))
			return np_err_nomem(err);
		return NP_OK;
	}
	for (size_t i = 0; i < job->n_items; i++)
		if (!np_vec_push(&pull->jobs, ((struct job){job->item + i, 1, 0})))
			return np_err_nomem(err);
	return NP_OK;
}

/* ── workers ── */

static bool next_job(struct pull *pull, struct job *out, bool *packed)
{
	(void)pthread_mutex_lock(&pull->lock);
	bool found = false;
	while (!found && !pull->stop && pull->jobs.n) {
		*out = pull->jobs.v[--pull->jobs.n];
		found = pull->items.v[out->item].state == ITEM_WANTED;
	}
	*packed = found && wants_packing(pull, out);
	(void)pthread_mutex_unlock(&pull->lock);
	return found;
}

static enum np_status work(struct pull *pull, struct np_transport *transport, struct stream *stream,
                           struct np_err *err)
{
	struct job job;
	while (next_job(pull, &job, &stream->packed)) {
		struct np_outcome outcome = {0};
		stream->job = &job;
		stream->wire = stream->taken = 0;
		enum np_status status = run_stream(stream, transport, &outcome, err);
		(void)pthread_mutex_lock(&pull->lock);
		if (status == NP_OK && outcome.status == 0 && is_whole(stream))
			status = settle_whole(stream, err);
		else if (status == NP_OK)
			status = settle_broken(stream, &outcome, err);
		(void)pthread_mutex_unlock(&pull->lock);
		np_outcome_release(&outcome);
		stream->job = NULL;
		NP_TRY(status);
	}
	return NP_OK;
}

void *np_pull_worker(void *arg)
{
	struct pull *pull = arg;
	struct np_transport *transport = NULL;
	struct np_err err = {0};
	struct stream stream = {.pull = pull, .fd = -1};
	stream.room = np_alloc(UNPACKED_BYTES);
	stream.zstd = ZSTD_createDStream();
	enum np_status status = stream.room && stream.zstd ? NP_OK : np_err_nomem(&err);
	if (status == NP_OK)
		status = pull->link->open(pull->link->ctx, &transport, &err);
	if (status == NP_OK)
		status = work(pull, transport, &stream, &err);
	if (status != NP_OK)
		np_pull_fail(pull, &err);
	np_transport_close(transport);
	(void)ZSTD_freeDStream(stream.zstd);
	np_free(stream.room);
	np_pull_thread_ends(pull, true);
	return NULL;
}
