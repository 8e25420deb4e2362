/*
 * Digests on disk: $XDG_CACHE_HOME/npuprof/<hash>.digest, one file per part of a
 * capture.
 *
 * The name is a hash of everything that the digest depends on: the program and the
 * part, its tables, rank, options that map() looks at, and path, size and mtime of
 * every file of the capture. So there is nothing to invalidate: what has changed has
 * another name. The whole text that was hashed stands in the file and is compared, so
 * that a collision is a miss. Files are written beside their name and renamed, so any
 * number of processes may share the directory; whatever goes wrong is a miss, never an
 * error.
 *
 *   "npdig02" | sum of the rest | length of the key | key | digest
 *
 * What is not used any more goes after NP_CACHE_MAX_DAYS, or, the longest unused
 * first, beyond NP_CACHE_MAX_BYTES; looked after at most once per run and hour, when
 * something is written.
 */
#define XXH_INLINE_ALL
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/fs.h"
#include "cluster/internal.h"

static const char magic[8] = "npdig02";

#define SUFFIX ".digest"
#define MARKER ".swept"

enum {
	MAX_FILE_BYTES = 1 << 30,
	SWEEP_SECONDS = 3600,     /* between two looks for what is old */
	UNUSED_SECONDS = 86400,   /* a file that is used is marked so, once a day */
	LEFTOVER_SECONDS = 86400, /* temporary files of a process that died */
	HEADER_BYTES = sizeof magic + sizeof(uint64_t) + sizeof(uint32_t),
};

/* ── the directory ── */

/* Of this user, and nobody else can put files there: what is in it goes into reports. */
static bool is_private(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
	       (st.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

/* NULL: no cache. `make`: it is made when it is not there. */
static const char *directory(struct np_arena *arena, bool make)
{
	const char *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	const char *path = NULL;
	if (base && *base == '/')
		path = np_arena_printf(arena, "%s/npuprof", base);
	else if (home && *home == '/')
		path = np_arena_printf(arena, "%s/.cache/npuprof", home);
	if (!path || (make && np_mkdirs(path, NULL) != NP_OK))
		return NULL;
	return is_private(path) ? path : NULL;
}

/* ── the key ── */

static void add_text(struct np_buf *key, const char *text)
{
	/* with its length, so that no text can look like two */
	np_buf_printf(key, "%zu:", strlen(text));
	np_buf_add_cstr(key, text);
	np_buf_add_char(key, '\n');
}

static void add_options(struct np_buf *key, const struct np_cluster_options *options)
{
	np_buf_printf(key, "step %d %lld\ntop %llu\nrank %lld\nname %d\n", options->has_step,
	              (long long)options->step, (unsigned long long)options->top,
	              (long long)options->rank, options->exclude_op_name);
	add_text(key, options->parallel_types ? options->parallel_types : "");
}

/* The version alone would serve digests of the readers that were there before a rebuild. */
static void add_program(struct np_buf *key)
{
	struct np_file_stat exe;
	if (np_file_stat("/proc/self/exe", true, &exe, NULL) != NP_OK)
		exe = (struct np_file_stat){.kind = NP_FILE_NONE};
	np_buf_printf(key, "npuprof %s %llu %lld\n", NPUPROF_VERSION,
	              (unsigned long long)exe.size_bytes, (long long)exe.mtime_ns);
}

static void add_part(struct np_buf *key, const struct np_part *part)
{
	np_buf_printf(key, "%s %u\n", part->name, part->revision);
	for (size_t t = 0; part->tables[t]; t++) {
		const struct np_table_desc *table = part->tables[t];
		np_buf_printf(key, "%s", table->name);
		for (size_t c = 0; c < table->n_columns; c++)
			np_buf_printf(key, " %s %s", table->columns[c].type,
			              table->columns[c].name);
		np_buf_add_char(key, '\n');
	}
}

void np_cache_key(const struct np_cluster_options *options, const struct np_capture *capture,
                  const struct np_part *part, struct np_buf *key)
{
	char absolute[PATH_MAX];
	add_program(key);
	add_part(key, part);
	np_buf_printf(key, "compat %d\nrank %lld\n", options->compat, (long long)capture->rank);
	if (part->by_options || options->has_step)
		add_options(key, options);
	for (size_t i = 0; i < capture->files.n; i++) {
		const struct np_file *file = &capture->files.v[i];
		np_buf_printf(key, "%llu %lld %d ", (unsigned long long)file->size_bytes,
		              (long long)file->mtime_ns, file->readable);
		add_text(key, realpath(file->path, absolute) ? absolute : file->path);
	}
}

static const char *file_of(struct np_arena *arena, const struct np_buf *key, bool make)
{
	const char *dir = key->failed ? NULL : directory(arena, make);
	XXH128_hash_t hash = XXH3_128bits(key->ptr, key->len);
	return dir ? np_arena_printf(arena, "%s/%016llx%016llx" SUFFIX, dir,
	                             (unsigned long long)hash.high64,
	                             (unsigned long long)hash.low64)
	           : NULL;
}

/* ── the file ── */

void np_cache_encode(np_str key, const struct np_digest *digest, struct np_buf *out)
{
	uint64_t sum = 0;
	uint32_t len = (uint32_t)key.len;
	if (key.len > UINT32_MAX) {
		out->failed = true;
		return;
	}
	np_buf_add(out, magic, sizeof magic);
	size_t at = out->len;
	np_buf_add(out, &sum, sizeof sum);
	np_buf_add(out, &len, sizeof len);
	np_buf_add_str(out, key);
	np_digest_pack(digest, out);
	if (out->failed)
		return;
	sum = XXH3_64bits(out->ptr + at + sizeof sum, out->len - at - sizeof sum);
	memcpy(out->ptr + at, &sum, sizeof sum);
}

struct np_digest *np_cache_decode(np_str bytes, np_str key, const struct np_part *part)
{
	struct np_digest *digest = NULL;
	uint64_t sum;
	uint32_t len;
	size_t n_known = 0;
	if (bytes.len < HEADER_BYTES || memcmp(bytes.ptr, magic, sizeof magic) != 0)
		return NULL;
	memcpy(&sum, bytes.ptr + sizeof magic, sizeof sum);
	np_str rest = np_str_from(bytes, sizeof magic + sizeof sum);
	if (XXH3_64bits(rest.ptr, rest.len) != sum)
		return NULL;
	memcpy(&len, rest.ptr, sizeof len);
	rest = np_str_from(rest, sizeof len);
	if (len != key.len || rest.len < len || !np_str_eq(np_str_sub(rest, 0, len), key))
		return NULL;
	while (part->tables[n_known])
		n_known++;
	(void)np_digest_unpack(np_str_from(rest, len), part->tables, n_known, &digest, NULL);
	return digest;
}

static int64_t age_of(np_ns mtime_ns)
{
	return (int64_t)time(NULL) - mtime_ns / 1000000000;
}

/* What is used stays: its time is that of the last use, to a day. */
static void mark_used(const char *path)
{
	struct np_file_stat st;
	if (np_file_stat(path, true, &st, NULL) == NP_OK && age_of(st.mtime_ns) > UNUSED_SECONDS)
		(void)utimensat(AT_FDCWD, path, NULL, 0);
}

struct np_digest *np_cache_get(const struct np_cluster_options *options,
                               const struct np_capture *capture, const struct np_part *part)
{
	struct np_buf key = {0};
	struct np_arena arena;
	struct np_digest *digest = NULL;
	np_str bytes;
	if (options->no_cache)
		return NULL;
	np_arena_init(&arena);
	np_cache_key(options, capture, part, &key);
	const char *path = file_of(&arena, &key, false);
	if (path && np_file_slurp(&arena, path, MAX_FILE_BYTES, &bytes, NULL) == NP_OK)
		digest = np_cache_decode(bytes, np_buf_str(&key), part);
	if (digest)
		mark_used(path);
	np_arena_release(&arena);
	np_buf_release(&key);
	return digest;
}

/* ── what is too old or too much ── */

struct cached {
	const char *path;
	uint64_t bytes;
	np_ns used_ns;
};

typedef NP_VEC(struct cached) cached_vec;

static int oldest_first(const void *a, const void *b)
{
	const struct cached *x = a, *y = b;
	if (x->used_ns != y->used_ns)
		return x->used_ns < y->used_ns ? -1 : 1;
	return strcmp(x->path, y->path);
}

/* Removes what is too old; the others go into `kept`. Only files of our own making. */
static void sweep_one(struct np_arena *arena, const char *dir, const char *name, cached_vec *kept,
                      uint64_t *total)
{
	np_str text = np_str_of(name);
	bool digest = np_str_ends(text, NP_STR(SUFFIX));
	bool leftover =
		np_str_contains(text, NP_STR(SUFFIX ".")) && np_str_ends(text, NP_STR(".tmp"));
	struct np_file_stat st;
	const char *path = digest || leftover ? np_path_join(arena, dir, name) : NULL;
	if (!path || np_file_stat(path, false, &st, NULL) != NP_OK || st.kind != NP_FILE_REG)
		return;
	int64_t age = age_of(st.mtime_ns);
	if (age > (digest ? NP_CACHE_MAX_DAYS * INT64_C(86400) : LEFTOVER_SECONDS))
		(void)unlink(path);
	else if (digest && np_vec_push(kept, (struct cached){path, st.size_bytes, st.mtime_ns}))
		*total += st.size_bytes;
}

void np_cache_sweep(const char *dir, uint64_t max_bytes)
{
	struct np_arena arena;
	struct np_dir entries;
	cached_vec kept = {0};
	uint64_t total = 0;
	np_arena_init(&arena);
	if (np_dir_list(&arena, dir, &entries, NULL) == NP_OK)
		for (size_t i = 0; i < entries.n; i++)
			sweep_one(&arena, dir, entries.v[i].name, &kept, &total);
	if (kept.n > 0 && total > max_bytes)
		qsort(kept.v, kept.n, sizeof *kept.v, oldest_first);
	for (size_t i = 0; i < kept.n && total > max_bytes; i++) {
		(void)unlink(kept.v[i].path);
		total -= kept.v[i].bytes;
	}
	np_vec_release(&kept);
	np_arena_release(&arena);
}

/* The marker's time is that of the last sweep, of whichever process. */
static void sweep_sometimes(struct np_arena *arena, const char *path)
{
	static atomic_flag done = ATOMIC_FLAG_INIT;
	struct np_file_stat st;
	if (atomic_flag_test_and_set(&done))
		return;
	size_t len = strlen(path) - np_path_base(path).len;
	const char *dir = np_arena_cstr(arena, (np_str){path, len});
	const char *marker = dir ? np_path_join(arena, dir, MARKER) : NULL;
	if (!marker || np_file_stat(marker, false, &st, NULL) != NP_OK)
		return;
	int64_t age = age_of(st.mtime_ns);
	if (st.kind == NP_FILE_REG && age >= 0 && age < SWEEP_SECONDS)
		return;
	int fd = open(marker, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0640);
	if (fd < 0)
		return;
	(void)futimens(fd, NULL);
	(void)close(fd);
	np_cache_sweep(dir, NP_CACHE_MAX_BYTES);
}

static void write_file(const char *path, const struct np_buf *body)
{
	struct np_outfile file;
	if (np_outfile_begin(&file, path, NULL) != NP_OK)
		return;
	file.hasty = true; /* the sum tells what a power failure has left */
	(void)fwrite(body->ptr, 1, body->len, file.file);
	(void)np_outfile_commit(&file, NULL); /* removes the temporary when it fails */
}

void np_cache_put(const struct np_cluster_options *options, const struct np_capture *capture,
                  const struct np_part *part, const struct np_digest *digest)
{
	struct np_buf key = {0}, body = {.max_bytes = MAX_FILE_BYTES};
	struct np_arena arena;
	if (options->no_cache)
		return;
	np_arena_init(&arena);
	np_cache_key(options, capture, part, &key);
	const char *path = file_of(&arena, &key, true);
	if (path)
		np_cache_encode(np_buf_str(&key), digest, &body);
	if (path && !body.failed) {
		write_file(path, &body);
		sweep_sometimes(&arena, path);
	}
	np_arena_release(&arena);
	np_buf_release(&key);
	np_buf_release(&body);
}
