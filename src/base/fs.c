#include "base/fs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static enum np_file_kind kind_of(mode_t mode)
{
	if (S_ISREG(mode))
		return NP_FILE_REG;
	if (S_ISDIR(mode))
		return NP_FILE_DIR;
	return S_ISLNK(mode) ? NP_FILE_LINK : NP_FILE_OTHER;
}

/* File systems can hold times that 64 bits of nanoseconds cannot (after 2262). */
static np_ns time_of(struct timespec time)
{
	np_ns ns;
	if (__builtin_mul_overflow((np_ns)time.tv_sec, (np_ns)1000000000, &ns) ||
	    __builtin_add_overflow(ns, (np_ns)time.tv_nsec, &ns))
		return time.tv_sec < 0 ? INT64_MIN : INT64_MAX;
	return ns;
}

enum np_status np_file_stat(const char *path, bool follow, struct np_file_stat *out,
                            struct np_err *err)
{
	struct stat st;
	*out = (struct np_file_stat){.kind = NP_FILE_NONE};
	if (fstatat(AT_FDCWD, path, &st, follow ? 0 : AT_SYMLINK_NOFOLLOW) != 0) {
		if (errno == ENOENT || errno == ENOTDIR)
			return NP_OK;
		return np_err_sys(err, errno, path, "look at it");
	}
	out->kind = kind_of(st.st_mode);
	out->size_bytes = (uint64_t)st.st_size;
	out->mtime_ns = time_of(st.st_mtim);
	out->dev = st.st_dev;
	out->ino = st.st_ino;
	out->mode = st.st_mode & 07777;
	return NP_OK;
}

static enum np_file_kind kind_of_entry(int dir_fd, const struct dirent *entry)
{
	switch (entry->d_type) {
	case DT_REG:
		return NP_FILE_REG;
	case DT_DIR:
		return NP_FILE_DIR;
	case DT_LNK:
		return NP_FILE_LINK;
	case DT_UNKNOWN: {
		struct stat st;
		if (fstatat(dir_fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
			return kind_of(st.st_mode);
		return NP_FILE_OTHER;
	}
	default:
		return NP_FILE_OTHER;
	}
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct np_dir_entry *)a)->name,
	              ((const struct np_dir_entry *)b)->name);
}

typedef NP_VEC(struct np_dir_entry) entry_vec;

static enum np_status read_entries(struct np_arena *arena, DIR *dir, const char *path,
                                   entry_vec *found, struct np_err *err)
{
	for (;;) {
		errno = 0;
		struct dirent *entry = readdir(dir);
		if (!entry)
			return errno ? np_err_sys(err, errno, path, "read the directory") : NP_OK;
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (found->n >= NP_DIR_MAX_ENTRIES)
			return np_err_set(err, NP_E_LIMIT, path,
			                  "more than %d entries in one directory",
			                  NP_DIR_MAX_ENTRIES);
		const char *name = np_arena_cstr(arena, np_str_of(entry->d_name));
		struct np_dir_entry row = {name, kind_of_entry(dirfd(dir), entry)};
		if (!name || !np_vec_push(found, row))
			return np_err_nomem(err);
	}
}

enum np_status np_dir_list(struct np_arena *arena, const char *path, struct np_dir *out,
                           struct np_err *err)
{
	*out = (struct np_dir){NULL, 0};
	DIR *dir = opendir(path);
	if (!dir)
		return np_err_sys(err, errno, path, "open the directory");
	entry_vec found = {0};
	enum np_status status = read_entries(arena, dir, path, &found, err);
	(void)closedir(dir);
	if (status == NP_OK && found.n) {
		out->v = np_arena_alloc(arena, found.n * sizeof *found.v);
		if (!out->v) {
			status = np_err_nomem(err);
		} else {
			memcpy(out->v, found.v, found.n * sizeof *found.v);
			out->n = found.n;
			qsort(out->v, out->n, sizeof *out->v, by_name);
		}
	}
	np_vec_release(&found);
	return status;
}

const char *np_path_join(struct np_arena *arena, const char *dir, const char *name)
{
	size_t len = strlen(dir);
	const char *slash = len == 0 || dir[len - 1] == '/' ? "" : "/";
	return np_arena_printf(arena, "%s%s%s", dir, slash, name);
}

np_str np_path_base(const char *path)
{
	size_t end = strlen(path);
	while (end > 1 && path[end - 1] == '/')
		end--;
	size_t start = end;
	while (start > 0 && path[start - 1] != '/')
		start--;
	return (np_str){path + start, end - start};
}

static enum np_status slurp_fd(struct np_arena *arena, int fd, const char *path, size_t max_bytes,
                               np_str *out, struct np_err *err)
{
	struct stat st;
	if (fstat(fd, &st) != 0)
		return np_err_sys(err, errno, path, "look at it");
	if (!S_ISREG(st.st_mode))
		return np_err_set(err, NP_E_FORMAT, path, "not a regular file");
	if ((uint64_t)st.st_size > max_bytes)
		return np_err_set(err, NP_E_LIMIT, path,
		                  "larger than the %zu bytes such a file may have", max_bytes);
	size_t size = (size_t)st.st_size, got = 0;
	char *bytes = np_arena_alloc(arena, size + 1);
	if (!bytes)
		return np_err_nomem(err);
	while (got < size) {
		ssize_t n = read(fd, bytes + got, size - got);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return np_err_sys(err, errno, path, "read it");
		if (n == 0)
			break; /* it shrank under us: what is left is what there is */
		got += (size_t)n;
	}
	bytes[got] = '\0';
	*out = (np_str){bytes, got};
	return NP_OK;
}

enum np_status np_file_slurp(struct np_arena *arena, const char *path, size_t max_bytes,
                             np_str *out, struct np_err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return np_err_sys(err, errno, path, "open it");
	enum np_status status = slurp_fd(arena, fd, path, max_bytes, out, err);
	(void)close(fd);
	return status;
}

enum np_status np_outfile_begin(struct np_outfile *self, const char *path, struct np_err *err)
{
	self->file = NULL;
	self->hasty = false;
	if ((size_t)snprintf(self->path, sizeof self->path, "%s", path) >= sizeof self->path)
		return np_err_set(err, NP_E_LIMIT, path, "path too long");
	/* a device, a pipe or a terminal is written to, never replaced; and what a link
	 * points to is replaced, not the link */
	struct np_file_stat st;
	NP_TRY(np_file_stat(path, true, &st, err));
	self->direct = st.kind == NP_FILE_OTHER;
	char *resolved = st.kind == NP_FILE_REG ? realpath(path, NULL) : NULL;
	if (resolved && strlen(resolved) < sizeof self->path)
		memcpy(self->path, resolved, strlen(resolved) + 1);
	free(resolved);
	(void)snprintf(self->temp, sizeof self->temp, "%s.%ld.tmp", self->path, (long)getpid());
	int fd = self->direct ? open(path, O_WRONLY | O_CLOEXEC)
	                      : open(self->temp,
	                             O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0640);
	if (fd < 0)
		return np_err_sys(err, errno, path, "create it");
	self->file = fdopen(fd, "w");
	if (!self->file) {
		int saved = errno;
		(void)close(fd);
		if (!self->direct)
			(void)unlink(self->temp);
		return np_err_sys(err, saved, path, "create it");
	}
	return NP_OK;
}

enum np_status np_outfile_commit(struct np_outfile *self, struct np_err *err)
{
	bool ok = fflush(self->file) == 0 && !ferror(self->file) &&
	          (self->direct || self->hasty || fsync(fileno(self->file)) == 0);
	int saved = errno;
	if (fclose(self->file) != 0 && ok) {
		ok = false;
		saved = errno;
	}
	self->file = NULL;
	if (ok && !self->direct && rename(self->temp, self->path) != 0) {
		ok = false;
		saved = errno;
	}
	if (ok)
		return NP_OK;
	if (!self->direct)
		(void)unlink(self->temp);
	return np_err_sys(err, saved, self->path, "write it");
}

void np_outfile_abort(struct np_outfile *self)
{
	if (!self->file)
		return;
	(void)fclose(self->file);
	self->file = NULL;
	if (!self->direct)
		(void)unlink(self->temp);
}

enum np_status np_mkdirs(const char *path, struct np_err *err)
{
	char part[4096];
	size_t len = strlen(path);
	if (len == 0 || len >= sizeof part)
		return np_err_set(err, NP_E_LIMIT, path, "path empty or too long");
	memcpy(part, path, len + 1);
	for (size_t i = 1; i <= len; i++) {
		if (part[i] != '/' && part[i] != '\0')
			continue;
		part[i] = '\0';
		if (mkdir(part, 0750) != 0 && errno != EEXIST)
			return np_err_sys(err, errno, part, "create the directory");
		if (i < len)
			part[i] = '/';
	}
	struct np_file_stat st;
	NP_TRY(np_file_stat(path, true, &st, err));
	if (st.kind != NP_FILE_DIR)
		return np_err_set(err, NP_E_EXISTS, path, "is not a directory");
	return NP_OK;
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

void np_remove_tree(const char *path)
{
	(void)nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

enum np_status np_stdin_slurp(struct np_buf *out, size_t max_bytes, struct np_err *err)
{
	char bytes[8192];
	out->max_bytes = max_bytes;
	for (;;) {
		ssize_t got = read(STDIN_FILENO, bytes, sizeof bytes);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return np_err_sys(err, errno, "stdin", "read");
		if (got == 0)
			return NP_OK;
		np_buf_add(out, bytes, (size_t)got);
		if (out->failed)
			return np_err_set(err, NP_E_LIMIT, "stdin", "is larger than %zu MiB",
			                  max_bytes >> 20);
	}
}
