#include "io/archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"

enum { MAX_PATH_BYTES = 4095, MAX_NAME_BYTES = 255, READ_BLOCK_BYTES = 256 << 10 };

bool np_archive_safe_path(np_str path)
{
	if (path.len == 0 || path.len > MAX_PATH_BYTES || path.ptr[0] == '/' ||
	    memchr(path.ptr, '\0', path.len))
		return false;
	for (np_str rest = path; rest.len;) {
		np_str name = np_str_cut(rest, '/', &rest);
		if (name.len > MAX_NAME_BYTES || np_str_is(name, ".."))
			return false;
	}
	return true;
}

/* ── reading ── */

/* libarchive has one code for all damage; only its text tells an early end. */
static enum np_status damage(struct archive *reader, const char *path, struct np_err *err)
{
	/* the last is zlib's Z_BUF_ERROR in a zip member: the input was used up */
	static const char *const early[] = {"truncated", "unexpected end",
	                                    "decompression failed (-5)"};
	const char *text = archive_error_string(reader);
	int code = archive_errno(reader);
	if (!text)
		text = "the archive is damaged";
	for (size_t i = 0; i < sizeof early / sizeof *early; i++)
		if (strcasestr(text, early[i]))
			return np_err_set(err, NP_E_TRUNCATED, path, "%s", text);
	if (code == ENOMEM || code == EIO || code == EACCES || code == ENOENT)
		return np_err_sys(err, code, path, "read it");
	return np_err_set(err, NP_E_FORMAT, path, "%s", text);
}

static enum np_status reader_open(const char *path, struct archive **out, struct np_err *err)
{
	*out = NULL;
	struct np_file_stat st;
	NP_TRY(np_file_stat(path, true, &st, err));
	if (st.kind == NP_FILE_NONE)
		return np_err_sys(err, ENOENT, path, "open it");
	if (st.kind != NP_FILE_REG) /* a FIFO would hold us up */
		return np_err_set(err, NP_E_FORMAT, path, "not a regular file");
	struct archive *reader = archive_read_new();
	if (!reader)
		return np_err_nomem(err);
	(void)archive_read_support_filter_gzip(reader);
	/* without its library libarchive would start a program named zstd: never that */
	if (archive_libzstd_version())
		(void)archive_read_support_filter_zstd(reader);
	(void)archive_read_support_format_tar(reader);
	(void)archive_read_support_format_zip(reader);
	if (archive_read_open_filename(reader, path, READ_BLOCK_BYTES) != ARCHIVE_OK) {
		enum np_status status = damage(reader, path, err);
		(void)archive_read_free(reader);
		return status;
	}
	*out = reader;
	return NP_OK;
}

bool np_archive_probe(const char *path)
{
	struct archive *reader = NULL;
	struct archive_entry *entry = NULL;
	if (reader_open(path, &reader, NULL) != NP_OK)
		return false;
	int result = archive_read_next_header(reader, &entry);
	(void)archive_read_free(reader);
	return result == ARCHIVE_OK || result == ARCHIVE_WARN;
}

/* ── writing ── */

struct unpack {
	struct archive *reader;
	const char *path; /* of the archive, for messages */
	int root;         /* the target directory */
	uint64_t max_bytes;
	struct np_archive_stats *stats;
	struct np_err *err;
};

static void refuse(struct unpack *self, np_str member)
{
	struct np_archive_stats *stats = self->stats;
	if (stats->refused++ == 0)
		(void)snprintf(stats->first_refused, sizeof stats->first_refused, "%.*s",
		               NP_FMT(member));
}

/*
 * Open the directory that the member lies in, making what is missing, one name at
 * a time and never through a link. Returns its descriptor, and its last name in
 * *name; -1 and errno when something is in the way.
 */
static int open_parent(int root, np_str member, char name[MAX_NAME_BYTES + 1])
{
	int dir = fcntl(root, F_DUPFD_CLOEXEC, 0);
	np_str rest = member;
	while (dir >= 0) {
		np_str part = np_str_cut(rest, '/', &rest);
		memcpy(name, part.ptr, part.len);
		name[part.len] = '\0';
		if (rest.len == 0)
			break;
		if (part.len == 0 || np_str_is(part, "."))
			continue;
		int next = -1, saved = 0;
		if (mkdirat(dir, name, 0700) == 0 || errno == EEXIST)
			next = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		saved = errno;
		(void)close(dir);
		errno = saved;
		dir = next;
	}
	return dir;
}

static enum np_status too_large(struct unpack *self, np_str member)
{
	return np_err_set(self->err, NP_E_LIMIT, self->path,
	                  "more than %llu bytes when unpacked, at member %.*s",
	                  (unsigned long long)self->max_bytes, NP_FMT(member));
}

static enum np_status write_block(struct unpack *self, int fd, np_str member, const char *bytes,
                                  size_t len, uint64_t offset)
{
	while (len) {
		ssize_t n = pwrite(fd, bytes, len, (off_t)offset);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return np_err_set(self->err, NP_E_IO, self->path,
			                  "cannot write member %.*s: %s", NP_FMT(member),
			                  n < 0 ? strerrordesc_np(errno) : "disk full");
		bytes += n;
		len -= (size_t)n;
		offset += (uint64_t)n;
	}
	return NP_OK;
}

/* Holes of sparse members stay holes, but count with their length. */
static enum np_status write_data(struct unpack *self, int fd, np_str member,
                                 struct archive_entry *entry, uint64_t *size)
{
	uint64_t left = self->max_bytes - self->stats->bytes;
	uint64_t told = archive_entry_size_is_set(entry) ? (uint64_t)archive_entry_size(entry) : 0;
	*size = told;
	if (told > left)
		return too_large(self, member);
	for (;;) {
		const void *bytes = NULL;
		size_t len = 0;
		la_int64_t offset = 0;
		int result = archive_read_data_block(self->reader, &bytes, &len, &offset);
		if (result == ARCHIVE_EOF)
			break;
		if (result != ARCHIVE_OK && result != ARCHIVE_WARN)
			return damage(self->reader, self->path, self->err);
		uint64_t at = (uint64_t)offset;
		if (offset < 0 || at > left || len > left - at)
			return too_large(self, member);
		NP_TRY(write_block(self, fd, member, bytes, len, at));
		if (at + len > *size)
			*size = at + len;
	}
	if (ftruncate(fd, (off_t)*size) != 0)
		return np_err_sys(self->err, errno, self->path, "write a member");
	return NP_OK;
}

static void keep_mtime(int fd, struct archive_entry *entry)
{
	if (!archive_entry_mtime_is_set(entry))
		return;
	struct timespec mtime = {archive_entry_mtime(entry), archive_entry_mtime_nsec(entry)};
	struct timespec times[2] = {mtime, mtime};
	/* a time that the file system cannot hold is no reason to lose the file */
	(void)futimens(fd, times);
}

/* Write one safe regular member. A part of a file is worse than none: it is removed. */
static enum np_status unpack_file(struct unpack *self, np_str member, struct archive_entry *entry)
{
	char name[MAX_NAME_BYTES + 1];
	int dir = open_parent(self->root, member, name), fd = -1;
	if (dir >= 0 && name[0] != '\0' && strcmp(name, ".") != 0) {
		(void)unlinkat(dir, name, 0); /* of two members with one name the last stays */
		fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	} else if (dir >= 0) {
		errno = EISDIR;
	}
	enum np_status status = NP_OK;
	uint64_t size = 0;
	if (fd >= 0) {
		status = write_data(self, fd, member, entry, &size);
		keep_mtime(fd, entry);
		if (close(fd) != 0 && status == NP_OK)
			status = np_err_sys(self->err, errno, self->path, "write a member");
		if (status != NP_OK)
			(void)unlinkat(dir, name, 0);
	} else if (errno == ENOTDIR || errno == ELOOP || errno == EISDIR || errno == EEXIST) {
		refuse(self, member); /* a file, link or directory is in its way */
	} else {
		status = np_err_sys(self->err, errno, self->path, "create a member's file");
	}
	if (fd >= 0 && status == NP_OK) {
		self->stats->files++;
		self->stats->bytes += size;
	}
	if (dir >= 0)
		(void)close(dir);
	return status;
}

static enum np_status unpack_entry(struct unpack *self, struct archive_entry *entry,
                                   bool (*want)(void *ctx, np_str member), void *ctx)
{
	const char *path = archive_entry_pathname(entry);
	if (!path) /* not to be said in this locale */
		path = archive_entry_pathname_utf8(entry);
	np_str member = np_str_of(path);
	bool link = archive_entry_hardlink(entry) || archive_entry_symlink(entry);
	if (archive_entry_filetype(entry) == AE_IFDIR && !link)
		return NP_OK; /* made when a file needs it */
	if (want && !want(ctx, member))
		return NP_OK;
	if (link || archive_entry_filetype(entry) != AE_IFREG || !np_archive_safe_path(member)) {
		refuse(self, member);
		return NP_OK;
	}
	if (archive_entry_is_data_encrypted(entry))
		return np_err_set(self->err, NP_E_UNSUPPORTED, self->path,
		                  "member %.*s is encrypted", NP_FMT(member));
	return unpack_file(self, member, entry);
}

enum np_status np_archive_unpack(const char *path, const char *dir, uint64_t max_bytes,
                                 bool (*want)(void *ctx, np_str member), void *ctx,
                                 struct np_archive_stats *stats, struct np_err *err)
{
	*stats = (struct np_archive_stats){0};
	struct unpack self = {.path = path, .max_bytes = max_bytes, .stats = stats, .err = err};
	NP_TRY(reader_open(path, &self.reader, err));
	self.root = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	enum np_status status = NP_OK;
	if (self.root < 0)
		status = np_err_sys(err, errno, dir, "open the directory");
	while (status == NP_OK) {
		struct archive_entry *entry = NULL;
		int result = archive_read_next_header(self.reader, &entry);
		if (result == ARCHIVE_EOF)
			break;
		if (result == ARCHIVE_RETRY)
			continue;
		if (result == ARCHIVE_OK || result == ARCHIVE_WARN)
			status = unpack_entry(&self, entry, want, ctx);
		else
			status = damage(self.reader, path, err);
	}
	if (self.root >= 0)
		(void)close(self.root);
	(void)archive_read_free(self.reader);
	return status;
}
