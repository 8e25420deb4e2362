/*
 * What of a pull lies on the disk here: parts, the journal of shards that have come, and the
 * lock that keeps a second call away.
 *
 * The journal is lines, appended by one write() each:
 *
 *   S <size> <mtime ns> <bytes per shard> <shard> <path>     a shard is in its part
 *   D <size> <mtime ns> <mtime ns here> <sha256> <path>      the file is verified and named
 *
 * Size and mtime are the source's, so that a file that has changed there is begun anew; a named
 * file that was written here since is compared again. A line without its end, of a process that
 * was killed, is cut off. The path is percent-coded.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/fs.h"
#include "collect/pull_state.h"

enum { JOURNAL_MAX_BYTES = 1 << 30, MAX_SHARDS = 1 << 24 };

static enum np_status failed(struct np_err *err, const char *path)
{
	return np_err_set(err, errno == EACCES || errno == EROFS ? NP_E_ACCESS : NP_E_IO, path,
	                  "%s", strerror(errno));
}

/* Nobody has planted a link that would lead our files elsewhere. */
static enum np_status own_directory(const char *path, struct np_err *err)
{
	struct np_file_stat stat;
	NP_TRY(np_file_stat(path, false, &stat, err));
	if (stat.kind == NP_FILE_NONE || stat.kind == NP_FILE_DIR)
		return NP_OK;
	return np_err_set(err, NP_E_EXISTS, path, "it is a link or a file: remove it");
}

/* A file system without locks (Lustre may be mounted so) does without: the user knows then what
 * else runs there. */
static enum np_status take_lock(struct pull *self, const char *path, struct np_err *err)
{
	struct stat stat;
	self->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0640);
	if (self->lock_fd < 0)
		return failed(err, path);
	bool taken = flock(self->lock_fd, LOCK_EX | LOCK_NB) == 0;
	bool unknown = !taken && (errno == ENOSYS || errno == EOPNOTSUPP || errno == ENOLCK);
	if (!taken && !unknown && errno != EWOULDBLOCK)
		return failed(err, path);
	/* another one may have ended between open() and flock(), and removed it */
	bool gone = fstat(self->lock_fd, &stat) != 0 || stat.st_nlink == 0;
	self->locked = (taken || unknown) && !gone;
	return self->locked ? NP_OK
	                    : np_err_set(err, NP_E_EXISTS, self->options->dest,
	                                 "another pull is at work in this directory");
}

enum np_status np_pull_store_open(struct pull *self, struct np_err *err)
{
	self->state_dir = np_path_join(&self->arena, self->options->dest, NP_PULL_STATE);
	const char *parts =
		self->state_dir ? np_path_join(&self->arena, self->state_dir, "parts") : NULL;
	const char *lock =
		self->state_dir ? np_path_join(&self->arena, self->state_dir, "lock") : NULL;
	const char *journal =
		self->state_dir ? np_path_join(&self->arena, self->state_dir, "journal") : NULL;
	if (!parts || !lock || !journal)
		return np_err_nomem(err);
	NP_TRY(own_directory(self->state_dir, err));
	NP_TRY(own_directory(parts, err));
	NP_TRY(np_mkdirs(parts, err));
	NP_TRY(take_lock(self, lock, err));
	self->journal = open(journal, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0640);
	return self->journal < 0 ? failed(err, journal) : NP_OK;
}

/* ── the journal ── */

static void add_coded(struct np_buf *out, const char *path)
{
	for (; *path; path++) {
		unsigned char c = (unsigned char)*path;
		if (c <= ' ' || c == '%' || c == 0x7f)
			np_buf_printf(out, "%%%02x", c);
		else
			np_buf_add_char(out, *path);
	}
}

static enum np_status append(struct pull *self, struct np_buf *line, struct np_err *err)
{
	np_buf_add_char(line, '\n');
	if (line->failed)
		return np_err_nomem(err);
	ssize_t wrote = write(self->journal, line->ptr, line->len);
	if (wrote != (ssize_t)line->len) {
		errno = wrote < 0 ? errno : ENOSPC;
		return failed(err, self->state_dir);
	}
	return NP_OK;
}

static enum np_status note_shard(struct pull *self, const struct item *item, size_t shard,
                                 struct np_err *err)
{
	struct np_buf line = {0};
	np_buf_printf(&line, "S %llu %lld %llu %zu ", (unsigned long long)item->file->size_bytes,
	              (long long)item->file->mtime_ns, (unsigned long long)self->shard_bytes,
	              shard);
	add_coded(&line, item->file->path);
	enum np_status status = append(self, &line, err);
	np_buf_release(&line);
	return status;
}

static enum np_status note_done(struct pull *self, const struct item *item, np_ns mtime_here,
                                struct np_err *err)
{
	struct np_buf line = {0};
	np_buf_printf(&line, "D %llu %lld %lld %s ", (unsigned long long)item->file->size_bytes,
	              (long long)item->file->mtime_ns, (long long)mtime_here, item->local.sha256);
	add_coded(&line, item->file->path);
	enum np_status status = append(self, &line, err);
	np_buf_release(&line);
	return status;
}

static int hex_of(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* `path` is room for the decoded path; items are sorted. */
static struct item *find_item(struct pull *self, np_str coded, struct np_buf *path)
{
	np_buf_clear(path);
	for (size_t i = 0; i < coded.len; i++) {
		bool escape = coded.ptr[i] == '%' && coded.len - i > 2;
		int high = escape ? hex_of(coded.ptr[i + 1]) : -1;
		int low = escape ? hex_of(coded.ptr[i + 2]) : -1;
		if (high >= 0 && low >= 0)
			i += 2;
		np_buf_add_char(path,
		                high >= 0 && low >= 0 ? (char)(high * 16 + low) : coded.ptr[i]);
	}
	size_t from = 0, to = path->failed ? 0 : self->items.n;
	while (from < to) {
		size_t middle = from + (to - from) / 2;
		int order =
			np_str_cmp(np_str_of(self->items.v[middle].file->path), np_buf_str(path));
		if (order == 0)
			return &self->items.v[middle];
		if (order < 0)
			from = middle + 1;
		else
			to = middle;
	}
	return NULL;
}

static void take_shard(struct pull *self, np_str line, struct np_buf *path)
{
	uint64_t size = 0, shard_bytes = 0, shard = 0;
	int64_t mtime = 0;
	bool good = np_str_to_u64(np_str_cut(line, ' ', &line), &size);
	good = np_str_to_i64(np_str_cut(line, ' ', &line), &mtime) && good;
	good = np_str_to_u64(np_str_cut(line, ' ', &line), &shard_bytes) && good;
	good = np_str_to_u64(np_str_cut(line, ' ', &line), &shard) && good;
	struct item *item = good ? find_item(self, line, path) : NULL;
	if (!item || size != item->file->size_bytes || mtime != item->file->mtime_ns ||
	    shard_bytes != self->shard_bytes || shard >= item->n_shards)
		return;
	item->have[shard] = 1;
}

static void take_done(struct pull *self, np_str line, struct np_buf *path)
{
	uint64_t size = 0;
	int64_t mtime = 0, mtime_here = 0;
	bool good = np_str_to_u64(np_str_cut(line, ' ', &line), &size);
	good = np_str_to_i64(np_str_cut(line, ' ', &line), &mtime) && good;
	good = np_str_to_i64(np_str_cut(line, ' ', &line), &mtime_here) && good;
	np_str sha256 = np_str_cut(line, ' ', &line);
	struct item *item = good && np_is_sha256(sha256) ? find_item(self, line, path) : NULL;
	struct np_file_stat stat;
	if (self->options->with_md5) /* which it has not: digest it again */
		return;
	if (!item || size != item->file->size_bytes || mtime != item->file->mtime_ns ||
	    np_file_stat(item->final, false, &stat, NULL) != NP_OK || stat.kind != NP_FILE_REG ||
	    stat.size_bytes != size || stat.mtime_ns != mtime_here)
		return;
	item->state = ITEM_DONE;
	item->has_local = true;
	memcpy(item->local.sha256, sha256.ptr, NP_SHA256_HEX);
}

static enum np_status read_journal(struct pull *self, struct np_err *err)
{
	struct np_arena arena;
	struct np_buf name = {0};
	np_str text = {0};
	np_arena_init(&arena);
	const char *path = np_path_join(&arena, self->state_dir, "journal");
	enum np_status status = path ? np_file_slurp(&arena, path, JOURNAL_MAX_BYTES, &text, err)
	                             : np_err_nomem(err);
	const char *begin = text.ptr;
	while (status == NP_OK && text.len) {
		const char *end = memchr(text.ptr, '\n', text.len);
		if (!end) { /* torn: what comes next would make a line of it */
			if (ftruncate(self->journal, text.ptr - begin) != 0)
				status = failed(err, path);
			break;
		}
		np_str line = np_str_sub(text, 0, (size_t)(end - text.ptr));
		text = np_str_from(text, line.len + 1);
		if (np_str_starts(line, NP_STR("S ")))
			take_shard(self, np_str_from(line, 2), &name);
		else if (np_str_starts(line, NP_STR("D ")))
			take_done(self, np_str_from(line, 2), &name);
	}
	np_buf_release(&name);
	np_arena_release(&arena);
	return status;
}

/* ── items ── */

static enum np_status prepare(struct pull *self, struct item *item, struct np_hash *hash,
                              struct np_err *err)
{
	struct np_digests digests;
	bool good = np_hash_add(hash, item->file->path, strlen(item->file->path)) &&
	            np_hash_end(hash, &digests);
	uint64_t size = item->file->size_bytes;
	item->n_shards = (size_t)((size + self->shard_bytes - 1) / self->shard_bytes);
	if (item->n_shards > MAX_SHARDS) /* a far side that lies is not worth the memory */
		return np_err_set(err, NP_E_LIMIT, item->file->path,
		                  "it is listed with %llu bytes: too many shards",
		                  (unsigned long long)size);
	item->have = np_arena_zalloc(&self->arena, item->n_shards + 1);
	item->final = np_path_join(&self->arena, self->options->dest, item->file->path);
	item->part = good ? np_arena_printf(&self->arena, "%s/parts/%.32s", self->state_dir,
	                                    digests.sha256)
	                  : NULL;
	return item->have && item->final && item->part ? NP_OK : np_err_nomem(err);
}

/*
 * The directories between DEST and a file: a link among them, whoever made it, would lead what
 * comes elsewhere. `seen` is the last directory that was looked at, and what was found.
 */
struct seen {
	np_str dir;
	const char *why; /* NULL: fine */
};

static enum np_status look_at_parents(struct pull *self, const char *path, struct seen *seen,
                                      struct np_err *err)
{
	const char *end = strrchr(path, '/');
	np_str dir = {path, end ? (size_t)(end - path) : 0};
	if (np_str_eq(dir, seen->dir))
		return NP_OK;
	*seen = (struct seen){dir, NULL};
	struct np_arena arena;
	enum np_status status = NP_OK;
	np_arena_init(&arena);
	for (size_t i = 1; i <= dir.len && status == NP_OK && !seen->why; i++) {
		struct np_file_stat stat;
		if (i < dir.len && dir.ptr[i] != '/')
			continue;
		const char *part =
			np_arena_printf(&arena, "%s/%.*s", self->options->dest, (int)i, dir.ptr);
		status = part ? np_file_stat(part, false, &stat, err) : np_err_nomem(err);
		if (status == NP_OK && stat.kind == NP_FILE_LINK)
			seen->why = "a directory of its path is a link here";
		else if (status == NP_OK && stat.kind != NP_FILE_DIR && stat.kind != NP_FILE_NONE)
			seen->why = "a directory of its path is a file here";
	}
	np_arena_release(&arena);
	return status;
}

/* Is something there under its name already? */
static enum np_status look_at_final(struct pull *self, struct item *item, struct seen *seen,
                                    struct np_err *err)
{
	struct np_file_stat stat;
	NP_TRY(look_at_parents(self, item->file->path, seen, err));
	if (seen->why) {
		item->state = ITEM_CONFLICT;
		item->why = seen->why;
	}
	if (item->state == ITEM_DONE || item->state == ITEM_CONFLICT)
		return NP_OK;
	NP_TRY(np_file_stat(item->final, false, &stat, err));
	if (stat.kind == NP_FILE_NONE)
		return NP_OK;
	if (stat.kind == NP_FILE_REG && stat.size_bytes == item->file->size_bytes)
		item->state = ITEM_PRESENT;
	else if (!self->options->force || stat.kind != NP_FILE_REG)
		item->state = ITEM_CONFLICT;
	if (item->state == ITEM_CONFLICT)
		item->why = stat.kind == NP_FILE_REG ? "its size is another one"
		                                     : "it is no regular file here";
	return NP_OK;
}

/* The journal may promise more than a part holds, after a crash of the machine. */
static void count_shards(struct pull *self, struct item *item)
{
	struct np_file_stat stat;
	uint64_t held = 0;
	if (item->state == ITEM_WANTED && np_file_stat(item->part, false, &stat, NULL) == NP_OK &&
	    stat.kind == NP_FILE_REG)
		held = stat.size_bytes;
	for (size_t i = 0; i < item->n_shards; i++) {
		uint64_t end = i * self->shard_bytes + np_pull_shard_size(self, item, i);
		if (item->state == ITEM_WANTED && end > held)
			item->have[i] = 0;
		item->n_have += item->have[i];
		if (item->state == ITEM_WANTED && item->have[i])
			self->result->resumed_bytes += np_pull_shard_size(self, item, i);
	}
	while (item->n_front < item->n_shards && item->have[item->n_front])
		item->n_front++;
}

enum np_status np_pull_store_items(struct pull *self, struct np_err *err)
{
	struct seen seen = {0};
	struct np_hash *hash = np_hash_new(false);
	enum np_status status = hash ? NP_OK : np_err_nomem(err);
	for (size_t i = 0; i < self->items.n && status == NP_OK; i++)
		status = prepare(self, &self->items.v[i], hash, err);
	np_hash_free(hash);
	NP_TRY(status);
	NP_TRY(read_journal(self, err));
	for (size_t i = 0; i < self->items.n; i++) {
		NP_TRY(look_at_final(self, &self->items.v[i], &seen, err));
		count_shards(self, &self->items.v[i]);
	}
	return NP_OK;
}

enum np_status np_pull_store_room(struct pull *self, struct np_err *err)
{
	enum { SPARE_BYTES = 16 << 20 };
	struct statvfs fs;
	uint64_t need = 0;
	for (size_t i = 0; i < self->items.n; i++)
		for (size_t k = 0;
		     self->items.v[i].state == ITEM_WANTED && k < self->items.v[i].n_shards; k++)
			if (!self->items.v[i].have[k])
				need += np_pull_shard_size(self, &self->items.v[i], k);
	if (need == 0)
		return NP_OK;
	if (statvfs(self->options->dest, &fs) != 0)
		return failed(err, self->options->dest);
	uint64_t room = (uint64_t)fs.f_bavail * fs.f_frsize;
	if (room >= need && room - need >= SPARE_BYTES)
		return NP_OK;
	return np_err_set(err, NP_E_LIMIT, self->options->dest,
	                  "not enough room: %llu MiB are to come, %llu MiB are free; --only and "
	                  "--ranks fetch less",
	                  (unsigned long long)(need >> 20), (unsigned long long)(room >> 20));
}

enum np_status np_pull_store_shard(struct pull *self, size_t at, size_t shard, struct np_err *err)
{
	struct item *item = &self->items.v[at];
	NP_TRY(note_shard(self, item, shard, err));
	item->n_have += !item->have[shard];
	item->have[shard] = 1;
	size_t before = item->n_front;
	while (item->n_front < item->n_shards && item->have[item->n_front])
		item->n_front++;
	if (item->n_front == before || item->queued)
		return NP_OK;
	item->queued = true;
	if (!np_vec_push(&self->to_hash, at))
		return np_err_nomem(err);
	(void)pthread_cond_broadcast(&self->wake);
	return NP_OK;
}

static enum np_status make_parent(const char *path, struct np_err *err)
{
	char dir[4096];
	const char *slash = strrchr(path, '/');
	if (!slash || slash == path)
		return NP_OK;
	if ((size_t)(slash - path) >= sizeof dir)
		return np_err_set(err, NP_E_LIMIT, path, "the path is too long");
	memcpy(dir, path, (size_t)(slash - path));
	dir[slash - path] = '\0';
	return np_mkdirs(dir, err);
}

/* An earlier call may have fetched a file of this name that was longer then. */
static enum np_status trim_part(const struct item *item, struct np_err *err)
{
	struct np_file_stat stat;
	NP_TRY(np_file_stat(item->part, false, &stat, err));
	if (stat.kind == NP_FILE_REG && stat.size_bytes == item->file->size_bytes)
		return NP_OK;
	if (stat.kind != NP_FILE_REG || stat.size_bytes < item->file->size_bytes)
		return np_err_set(err, NP_E_IO, item->part, "somebody else has changed it");
	return truncate(item->part, (off_t)item->file->size_bytes) == 0 ? NP_OK
	                                                                : failed(err, item->part);
}

static enum np_status keep_time(const struct item *item, struct np_err *err)
{
	np_ns ns = item->file->mtime_ns, below = ns % 1000000000;
	below += below < 0 ? 1000000000 : 0; /* before 1970 */
	struct timespec time = {(time_t)((ns - below) / 1000000000), (long)below};
	struct timespec times[2] = {time, time};
	return utimensat(AT_FDCWD, item->part, times, 0) == 0 ? NP_OK : failed(err, item->part);
}

enum np_status np_pull_store_finish(struct pull *self, struct item *item, struct np_err *err)
{
	struct np_file_stat stat = {0};
	if (item->state == ITEM_WANTED) {
		NP_TRY(make_parent(item->final, err));
		NP_TRY(trim_part(item, err));
		if (self->options->preserve)
			NP_TRY(keep_time(item, err));
		NP_TRY(np_file_stat(item->part, false, &stat, err));
		if (rename(item->part, item->final) != 0)
			return failed(err, item->final);
		NP_TRY(note_done(self, item, stat.mtime_ns, err));
	}
	item->state = ITEM_DONE;
	return NP_OK;
}

void np_pull_store_close(struct pull *self, bool complete)
{
	struct stat stat;
	/* nothing has come that a later call could use */
	bool empty = self->journal >= 0 && fstat(self->journal, &stat) == 0 && stat.st_size == 0;
	if (self->journal >= 0)
		(void)close(self->journal);
	if ((complete || empty) && self->locked)
		np_remove_tree(self->state_dir);
	if (self->lock_fd >= 0)
		(void)close(self->lock_fd);
}
