/*
 * Digests on disk: $XDG_CACHE_HOME/npuprof/<hash>.digest, one file per part of a
 * capture.
 *
 * The name is a hash of everything that the digest depends on: version of
 * npuprof and of the part, rank, options that map() looks at, and path, size and
 * mtime of every file of the capture. So there is nothing to invalidate: what has
 * changed has another name. The whole text that was hashed stands in front of the
 * digest and is compared, so that a collision is a miss. Files are written beside
 * their name and renamed; whatever goes wrong is a miss, never an error.
 */
#define XXH_INLINE_ALL
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/fs.h"
#include "cluster/internal.h"

static const char magic[8] = "npdig01";

enum { MAX_CACHED_BYTES = 1 << 30 };

/* The directory, made when it is not there; NULL: no cache. */
static const char *directory(struct np_arena *arena)
{
	const char *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	const char *path = NULL;
	if (base && *base == '/')
		path = np_arena_printf(arena, "%s/npuprof", base);
	else if (home && *home == '/')
		path = np_arena_printf(arena, "%s/.cache/npuprof", home);
	return path && np_mkdirs(path, NULL) == NP_OK ? path : NULL;
}

static void add_options(struct np_buf *key, const struct np_cluster_options *options)
{
	np_buf_printf(key, "step %d %lld\ntop %llu\nrank %lld\ntypes %s\nname %d\n",
	              options->has_step, (long long)options->step, (unsigned long long)options->top,
	              (long long)options->rank,
	              options->parallel_types ? options->parallel_types : "",
	              options->exclude_op_name);
}

/* Everything that the digest depends on, as text. */
static void make_key(const struct np_cluster_options *options, const struct np_capture *capture,
                     const struct np_part *part, struct np_buf *key)
{
	np_buf_printf(key, "npuprof %s\n%s %u\ncompat %d\nrank %lld\n", NPUPROF_VERSION, part->name,
	              part->revision, options->compat, (long long)capture->rank);
	if (part->by_options || options->has_step)
		add_options(key, options);
	char absolute[PATH_MAX];
	for (size_t i = 0; i < capture->files.n; i++) {
		const struct np_file *file = &capture->files.v[i];
		np_buf_printf(key, "%llu %lld ", (unsigned long long)file->size_bytes,
		              (long long)file->mtime_ns);
		np_buf_add_cstr(key, realpath(file->path, absolute) ? absolute : file->path);
		np_buf_add_char(key, '\n');
	}
}

static const char *file_of(struct np_arena *arena, const struct np_buf *key)
{
	const char *dir = key->failed ? NULL : directory(arena);
	XXH128_hash_t hash = XXH3_128bits(key->ptr, key->len);
	return dir ? np_arena_printf(arena, "%s/%016llx%016llx.digest", dir,
	                             (unsigned long long)hash.high64,
	                             (unsigned long long)hash.low64)
	           : NULL;
}

static struct np_digest *read_file(struct np_arena *arena, const char *path,
                                   const struct np_part *part, const struct np_buf *key)
{
	size_t n_known = 0;
	np_str bytes, rest;
	struct np_digest *digest = NULL;
	uint64_t sum;
	while (part->tables[n_known])
		n_known++;
	if (np_file_slurp(arena, path, MAX_CACHED_BYTES, &bytes, NULL) != NP_OK ||
	    bytes.len < sizeof magic + sizeof sum + key->len ||
	    memcmp(bytes.ptr, magic, sizeof magic) != 0)
		return NULL;
	memcpy(&sum, bytes.ptr + sizeof magic, sizeof sum);
	rest = np_str_from(bytes, sizeof magic + sizeof sum);
	if (XXH3_64bits(rest.ptr, rest.len) != sum || memcmp(rest.ptr, key->ptr, key->len) != 0)
		return NULL;
	(void)np_digest_unpack(np_str_from(rest, key->len), part->tables, n_known, &digest, NULL);
	return digest;
}

struct np_digest *np_cache_get(const struct np_cluster_options *options,
                               const struct np_capture *capture, const struct np_part *part)
{
	struct np_buf key = {0};
	struct np_arena arena;
	struct np_digest *digest = NULL;
	if (options->no_cache)
		return NULL;
	np_arena_init(&arena);
	make_key(options, capture, part, &key);
	const char *path = file_of(&arena, &key);
	if (path)
		digest = read_file(&arena, path, part, &key);
	np_arena_release(&arena);
	np_buf_release(&key);
	return digest;
}

static void write_file(const char *path, const struct np_buf *body)
{
	struct np_outfile file;
	uint64_t sum = XXH3_64bits(body->ptr, body->len);
	if (np_outfile_begin(&file, path, NULL) != NP_OK)
		return;
	file.hasty = true; /* the sum tells what a power failure has left */
	(void)fwrite(magic, 1, sizeof magic, file.file);
	(void)fwrite(&sum, 1, sizeof sum, file.file);
	(void)fwrite(body->ptr, 1, body->len, file.file);
	(void)np_outfile_commit(&file, NULL); /* removes the temporary when it fails */
}

void np_cache_put(const struct np_cluster_options *options, const struct np_capture *capture,
                  const struct np_part *part, const struct np_digest *digest)
{
	struct np_buf body = {.max_bytes = MAX_CACHED_BYTES};
	struct np_arena arena;
	if (options->no_cache)
		return;
	np_arena_init(&arena);
	make_key(options, capture, part, &body);
	const char *path = file_of(&arena, &body);
	np_digest_pack(digest, &body);
	if (path && !body.failed)
		write_file(path, &body);
	np_arena_release(&arena);
	np_buf_release(&body);
}
