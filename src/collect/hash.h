/*
 * Digests of files: SHA-256, and MD5 where a delivery list wants it (R43). libcrypto does the
 * work.
 *
 * Threads: a hash belongs to one thread at a time.
 */
#ifndef NP_COLLECT_HASH_H
#define NP_COLLECT_HASH_H

#include "base/err.h"
#include "base/mem.h"

enum { NP_SHA256_HEX = 64, NP_MD5_HEX = 32 };

struct np_digests {
	char sha256[NP_SHA256_HEX + 1];
	char md5[NP_MD5_HEX + 1]; /* "" when it was not asked for */
};

struct np_hash;

/* NULL: out of memory, or libcrypto has no such digest. */
struct np_hash *np_hash_new(bool with_md5);
bool np_hash_add(struct np_hash *self, const void *bytes, size_t len);
/* The digests of all that was added; the hash begins anew. */
bool np_hash_end(struct np_hash *self, struct np_digests *out);
void np_hash_free(struct np_hash *self);

/* Add the bytes [offset, offset + len) of an open file. E_TRUNCATED when it ends before. */
enum np_status np_hash_add_file(struct np_hash *self, int fd, const char *path, uint64_t offset,
                                uint64_t len, struct np_err *err);

/* All of a file; *size may be NULL. */
enum np_status np_hash_file(const char *path, bool with_md5, struct np_digests *out, uint64_t *size,
                            struct np_err *err);

/* 64 lower-case hex digits. */
bool np_is_sha256(np_str text);

#endif
