#include "ring.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
	AHEAD_RECORDS = 2048, /* 256 KiB are reserved at a time */
	AHEAD_STRINGS = 16 * 1024,
	SAME_NAME_MAX = 1000, /* files of one thread id in a run */
};

/* For the list, and around each descriptor: there is one of ours at a time. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct np_ring *rings;

/* ── disk ── */

static uint64_t records_at(void)
{
	return (uint64_t)NP_COMM_LOG_HEADER_BYTES + NP_COMM_LOG_STRING_BYTES;
}

static int reserve_open(int fd, uint64_t offset, uint64_t bytes)
{
	int error;
	do
		error = posix_fallocate(fd, (off_t)offset, (off_t)bytes);
	while (error == EINTR);
	return error;
}

/* The file is opened anew: thousands of threads must not cost thousands of descriptors. */
static int reserve_locked(const struct np_ring *self, uint64_t offset, uint64_t bytes)
{
	struct stat found;
	int fd = open(self->path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return errno;
	int error = 0;
	if (fstat(fd, &found) != 0)
		error = errno;
	else if (found.st_dev != self->dev || found.st_ino != self->ino)
		error = ESTALE;
	else
		error = reserve_open(fd, offset, bytes);
	(void)close(fd);
	return error;
}

static int reserve(const struct np_ring *self, uint64_t offset, uint64_t bytes)
{
	(void)pthread_mutex_lock(&lock);
	int error = reserve_locked(self, offset, bytes);
	(void)pthread_mutex_unlock(&lock);
	return error;
}

static int reserve_records(struct np_ring *self)
{
	uint64_t more = self->capacity - self->reserved;
	if (more > AHEAD_RECORDS)
		more = AHEAD_RECORDS;
	int error = reserve(self, records_at() + self->reserved * sizeof *self->records,
	                    more * sizeof *self->records);
	if (error == 0)
		self->reserved += more;
	return error;
}

/* ── opening ── */

static int number_of(const char *variable)
{
	const char *text = getenv(variable);
	char *end = NULL;
	long value = text && *text ? strtol(text, &end, 10) : -1;
	return end && *end == '\0' && value >= 0 && value <= INT32_MAX ? (int)value : -1;
}

static void host_name(char *out, size_t size)
{
	if (gethostname(out, size) != 0 || out[0] == '\0')
		(void)snprintf(out, size, "unknown");
	out[size - 1] = '\0';
}

/* The host's name is part of a file's name. */
static void tame_name(char *name)
{
	static const char fine[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
	for (; *name; name++)
		if (!strchr(fine, *name))
			*name = '_';
}

static void read_command(char *out, size_t size)
{
	int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? 0 : read(fd, out, size - 1);
	if (fd >= 0)
		(void)close(fd);
	if (got < 0)
		got = 0;
	while (got > 0 && out[got - 1] == '\0')
		got--;
	for (ssize_t i = 0; i < got; i++)
		if (out[i] == '\0')
			out[i] = ' ';
	out[got] = '\0';
}

static int64_t clock_ns(clockid_t clock)
{
	struct timespec now;
	(void)clock_gettime(clock, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void fill_header(struct np_ring *self, const struct np_ring_options *options)
{
	struct np_comm_log_header *header = self->header;
	header->version = NP_COMM_LOG_VERSION;
	header->layer = options->layer;
	header->header_bytes = NP_COMM_LOG_HEADER_BYTES;
	header->record_bytes = sizeof(struct np_comm_record);
	header->string_capacity = NP_COMM_LOG_STRING_BYTES;
	header->capacity = self->capacity;
	header->string_bytes = NP_COMM_LOG_FIRST_STRING;
	header->start_ns = clock_ns(CLOCK_REALTIME);
	header->start_monotonic_ns = clock_ns(CLOCK_MONOTONIC);
	header->pid = (int32_t)getpid();
	header->tid = (int32_t)syscall(SYS_gettid);
	header->parent_pid = (int32_t)getppid();
	header->rank = number_of("RANK");
	header->world = number_of("WORLD_SIZE");
	header->local_rank = number_of("LOCAL_RANK");
	header->device = -1;
	host_name(header->host, sizeof header->host);
	read_command(header->command, sizeof header->command);
	(void)snprintf(header->recorder, sizeof header->recorder, "%s", options->recorder);
	/* a reader that sees the magic sees the rest */
	__atomic_thread_fence(__ATOMIC_RELEASE);
	memcpy(header->magic, NP_COMM_LOG_MAGIC, sizeof header->magic);
}

/* A thread id comes again, in another thread or on a host of the same name: the file of
 * the first is left alone. */
static int create(struct np_ring *self, const struct np_ring_options *options)
{
	char host[sizeof self->header->host];
	host_name(host, sizeof host);
	tame_name(host);
	for (int i = 1; i <= SAME_NAME_MAX; i++) {
		char again[16] = "";
		if (i > 1)
			(void)snprintf(again, sizeof again, "-%d", i);
		int length = snprintf(self->path, sizeof self->path, "%s/comm-%s-%s-%d-%ld%s.nplog",
		                      options->dir, options->name, host, (int)getpid(),
		                      (long)syscall(SYS_gettid), again);
		if (length < 0 || (size_t)length >= sizeof self->path) {
			errno = ENAMETOOLONG;
			return -1;
		}
		int fd = open(self->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
		if (fd >= 0 || errno != EEXIST)
			return fd;
	}
	errno = EEXIST;
	return -1;
}

/* Beyond RLIMIT_FSIZE ftruncate() would be a SIGXFSZ for the user's process. */
static int check_limit(size_t bytes)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
	    limit.rlim_cur < bytes)
		return EFBIG;
	return 0;
}

static int map_file(struct np_ring *self, int fd)
{
	struct stat found;
	if (ftruncate(fd, (off_t)self->map_bytes) != 0 || fstat(fd, &found) != 0)
		return errno;
	self->dev = found.st_dev;
	self->ino = found.st_ino;
	uint64_t first = self->capacity < AHEAD_RECORDS ? self->capacity : AHEAD_RECORDS;
	int error = reserve_open(fd, 0, NP_COMM_LOG_HEADER_BYTES + AHEAD_STRINGS);
	if (error == 0)
		error = reserve_open(fd, records_at(), first * sizeof *self->records);
	if (error)
		return error;
	self->reserved = first;
	self->string_reserved = AHEAD_STRINGS;
	void *map = mmap(NULL, self->map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return errno;
	(void)madvise(map, self->map_bytes, MADV_DONTFORK);
	self->header = map;
	self->strings = (char *)map + NP_COMM_LOG_HEADER_BYTES;
	self->records = (struct np_comm_record *)((char *)map + records_at());
	return 0;
}

static int open_file(struct np_ring *self, const struct np_ring_options *options)
{
	int error = check_limit(self->map_bytes);
	if (error)
		return error;
	int fd = create(self, options);
	if (fd < 0)
		return errno;
	error = map_file(self, fd);
	if (error)
		(void)unlink(self->path);
	(void)close(fd);
	return error;
}

static int open_locked(struct np_ring *self, const struct np_ring_options *options)
{
	int error = open_file(self, options);
	if (error)
		return error;
	fill_header(self, options);
	self->after = rings;
	if (rings)
		rings->before = self;
	rings = self;
	return 0;
}

static void delist(struct np_ring *self)
{
	(void)pthread_mutex_lock(&lock);
	if (self->before)
		self->before->after = self->after;
	else
		rings = self->after;
	if (self->after)
		self->after->before = self->before;
	(void)pthread_mutex_unlock(&lock);
}

int np_ring_open(const struct np_ring_options *options, struct np_ring **out)
{
	*out = NULL;
	struct np_ring *self = mmap(NULL, sizeof *self, PROT_READ | PROT_WRITE,
	                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (self == MAP_FAILED)
		return errno;
	(void)madvise(self, sizeof *self, MADV_DONTFORK);
	self->capacity = options->capacity;
	self->map_bytes = records_at() + self->capacity * sizeof *self->records;
	self->next = 1;
	self->string_bytes = NP_COMM_LOG_FIRST_STRING;
	(void)pthread_mutex_lock(&lock);
	int error = open_locked(self, options);
	(void)pthread_mutex_unlock(&lock);
	if (error) {
		(void)munmap(self, sizeof *self);
		return error;
	}
	*out = self;
	return 0;
}

/* ── records ── */

void np_ring_lost(struct np_ring *self, uint64_t calls)
{
	(void)__atomic_fetch_add(&self->header->lost, calls, __ATOMIC_RELAXED);
}

static int make_room(struct np_ring *self)
{
	if (!self->stopped)
		self->stopped = reserve_records(self);
	if (self->stopped)
		np_ring_lost(self, 1);
	return self->stopped;
}

struct np_comm_record *np_ring_begin(struct np_ring *self)
{
	if (__builtin_expect(self->slot >= self->reserved, 0) && make_room(self))
		return NULL;
	struct np_comm_record *record = &self->records[self->slot];
	/* whoever looks at it now, or after a kill, finds no record rather than half of two */
	__atomic_store_n(&record->seq, 0, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	return record;
}

void np_ring_commit(struct np_ring *self)
{
	uint64_t n = self->next++;
	__atomic_store_n(&self->records[self->slot].seq, n, __ATOMIC_RELEASE);
	__atomic_store_n(&self->header->written, n, __ATOMIC_RELEASE);
	if (++self->slot == self->capacity)
		self->slot = 0;
}

/* ── strings ── */

static int reserve_strings(struct np_ring *self, uint64_t end)
{
	if (end > NP_COMM_LOG_STRING_BYTES)
		return ENOSPC;
	while (self->string_reserved < end) {
		int error = reserve(self, NP_COMM_LOG_HEADER_BYTES + self->string_reserved,
		                    AHEAD_STRINGS);
		if (error)
			return error;
		self->string_reserved += AHEAD_STRINGS;
	}
	return 0;
}

static uint32_t write_text(struct np_ring *self, const struct np_text *text)
{
	uint64_t at = self->string_bytes;
	uint64_t end = (at + sizeof text->length + text->length + 1 + 3) & ~(uint64_t)3;
	if (reserve_strings(self, end) != 0)
		return NP_COMM_LOG_NO_ROOM;
	memcpy(self->strings + at, &text->length, sizeof text->length);
	memcpy(self->strings + at + sizeof text->length, text->bytes, text->length + 1);
	self->string_bytes = end;
	__atomic_store_n(&self->header->string_bytes, end, __ATOMIC_RELEASE);
	return (uint32_t)at;
}

uint32_t np_ring_text(struct np_ring *self, const struct np_text *text)
{
	if (!text)
		return 0;
	if (text == &np_text_no_room)
		return NP_COMM_LOG_NO_ROOM;
	uint32_t *offset = &self->offsets[text->slot];
	if (__builtin_expect(*offset == 0, 0))
		*offset = write_text(self, text);
	return *offset;
}

/* ── the end ── */

static void mark_closed(struct np_ring *self)
{
	__atomic_store_n(&self->header->closed, 1, __ATOMIC_RELEASE);
}

void np_ring_close(struct np_ring *self)
{
	delist(self);
	mark_closed(self);
	(void)munmap(self->header, self->map_bytes);
	(void)munmap(self, sizeof *self);
}

void np_ring_close_all(void)
{
	if (pthread_mutex_trylock(&lock) != 0) /* exit() of a signal handler, inside here */
		return;
	for (struct np_ring *ring = rings; ring; ring = ring->after)
		mark_closed(ring);
	(void)pthread_mutex_unlock(&lock);
}

void np_ring_after_fork(void)
{
	lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	rings = NULL;
}
