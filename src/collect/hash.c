#include "collect/hash.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <string.h>
#include <unistd.h>

enum { PIECE = 1 << 20 };

struct np_hash {
	EVP_MD_CTX *sha256, *md5; /* md5: NULL when not wanted */
	unsigned char piece[PIECE];
};

static bool begin(struct np_hash *self)
{
	return EVP_DigestInit_ex(self->sha256, EVP_sha256(), NULL) == 1 &&
	       (!self->md5 || EVP_DigestInit_ex(self->md5, EVP_md5(), NULL) == 1);
}

struct np_hash *np_hash_new(bool with_md5)
{
	struct np_hash *self = np_calloc(1, sizeof *self);
	if (!self)
		return NULL;
	self->sha256 = EVP_MD_CTX_new();
	self->md5 = with_md5 ? EVP_MD_CTX_new() : NULL;
	if (self->sha256 && (!with_md5 || self->md5) && begin(self))
		return self;
	np_hash_free(self);
	return NULL;
}

bool np_hash_add(struct np_hash *self, const void *bytes, size_t len)
{
	return EVP_DigestUpdate(self->sha256, bytes, len) == 1 &&
	       (!self->md5 || EVP_DigestUpdate(self->md5, bytes, len) == 1);
}

static bool end_one(EVP_MD_CTX *ctx, char *hex)
{
	static const char digits[] = "0123456789abcdef";
	unsigned char raw[EVP_MAX_MD_SIZE];
	unsigned n = 0;
	if (EVP_DigestFinal_ex(ctx, raw, &n) != 1)
		return false;
	for (unsigned i = 0; i < n; i++) {
		*hex++ = digits[raw[i] >> 4];
		*hex++ = digits[raw[i] & 15];
	}
	*hex = '\0';
	return true;
}

bool np_hash_end(struct np_hash *self, struct np_digests *out)
{
	*out = (struct np_digests){0};
	return end_one(self->sha256, out->sha256) && (!self->md5 || end_one(self->md5, out->md5)) &&
	       begin(self);
}

void np_hash_free(struct np_hash *self)
{
	if (!self)
		return;
	EVP_MD_CTX_free(self->sha256);
	EVP_MD_CTX_free(self->md5);
	np_free(self);
}

enum np_status np_hash_add_file(struct np_hash *self, int fd, const char *path, uint64_t offset,
                                uint64_t len, struct np_err *err)
{
	while (len) {
		size_t want = len < PIECE ? (size_t)len : PIECE;
		ssize_t got = pread(fd, self->piece, want, (off_t)offset);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return np_err_set(err, NP_E_IO, path, "%s", strerror(errno));
		if (got == 0)
			return np_err_at(err, NP_E_TRUNCATED, path, offset, "the file ends here");
		if (!np_hash_add(self, self->piece, (size_t)got))
			return np_err_set(err, NP_E_IO, path, "libcrypto cannot digest it");
		offset += (uint64_t)got;
		len -= (uint64_t)got;
	}
	return NP_OK;
}

static enum np_status hash_all(struct np_hash *self, int fd, const char *path, uint64_t *size,
                               struct np_err *err)
{
	for (;;) {
		ssize_t got = read(fd, self->piece, PIECE);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return np_err_set(err, NP_E_IO, path, "%s", strerror(errno));
		if (got == 0)
			return NP_OK;
		if (!np_hash_add(self, self->piece, (size_t)got))
			return np_err_set(err, NP_E_IO, path, "libcrypto cannot digest it");
		*size += (uint64_t)got;
	}
}

enum np_status np_hash_file(const char *path, bool with_md5, struct np_digests *out, uint64_t *size,
                            struct np_err *err)
{
	uint64_t bytes = 0;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return np_err_set(err, errno == ENOENT ? NP_E_NOTFOUND : NP_E_IO, path, "%s",
		                  strerror(errno));
	struct np_hash *hash = np_hash_new(with_md5);
	enum np_status status = hash ? hash_all(hash, fd, path, &bytes, err) : np_err_nomem(err);
	if (status == NP_OK && !np_hash_end(hash, out))
		status = np_err_set(err, NP_E_IO, path, "libcrypto cannot digest it");
	np_hash_free(hash);
	(void)close(fd);
	if (size)
		*size = bytes;
	return status;
}

bool np_is_sha256(np_str text)
{
	for (size_t i = 0; i < text.len; i++)
		if (!((text.ptr[i] >= '0' && text.ptr[i] <= '9') ||
		      (text.ptr[i] >= 'a' && text.ptr[i] <= 'f')))
			return false;
	return text.len == NP_SHA256_HEX;
}
