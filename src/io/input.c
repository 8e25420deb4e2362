#include "io/input.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/mem.h"

enum {
	GZIP_FIRST_WINDOW = 256 << 10,
	GZIP_MAX_FEED = 1 << 30, /* zlib counts in 32 bits */
	RELEASE_STEP = 4 << 20,
};

/* ── SIGBUS ───────────────────────────────────────────────────────────────────
 *
 * The handler must find out whether an address lies in one of our maps, without
 * a lock. Live maps are in blocks of slots that are never freed:
 *
 *    first block ─▶ [slot|slot|…] ─next─▶ [slot|slot|…] ─▶ NULL
 *
 * A slot's `seq` is odd while it describes a live map. The handler reads seq,
 * the range, and seq again: when seq moved, the slot was changing hands, and so
 * it was not the map that just faulted, whose reader is still using it.
 */
struct map_slot {
	_Atomic bool taken;
	_Atomic bool faulted;
	_Atomic uint32_t seq;
	_Atomic uintptr_t start, end;
};

enum { BLOCK_SLOTS = 62 };

struct map_block {
	struct map_slot slots[BLOCK_SLOTS];
	struct map_block *_Atomic next;
};

static struct map_block first_block;
static struct sigaction previous_action;
static uintptr_t page_bytes;

static struct map_slot *slot_of_address(uintptr_t address, uintptr_t *end)
{
	for (struct map_block *block = &first_block; block; block = atomic_load(&block->next)) {
		for (int i = 0; i < BLOCK_SLOTS; i++) {
			struct map_slot *slot = &block->slots[i];
			uint32_t seq = atomic_load(&slot->seq);
			uintptr_t start = atomic_load(&slot->start);
			*end = atomic_load(&slot->end);
			if (seq % 2 && address >= start && address < *end &&
			    atomic_load(&slot->seq) == seq)
				return slot;
		}
	}
	return NULL;
}

/*
 * Behind the end of a file that shrank every page faults, so the zeros go over
 * the whole rest of the map: one fault per file, not one per page.
 */
static void on_sigbus(int signo, siginfo_t *info, void *context)
{
	(void)context;
	int saved_errno = errno;
	uintptr_t address = (uintptr_t)info->si_addr & ~(page_bytes - 1), end = 0;
	/* si_code <= 0: sent by a process, si_addr means nothing */
	struct map_slot *slot = info->si_code > 0 ? slot_of_address(address, &end) : NULL;
	if (slot) {
		atomic_store(&slot->faulted, true);
		void *zeros = mmap((void *)address, end - address, PROT_READ,
		                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
		if (zeros != MAP_FAILED) {
			errno = saved_errno;
			/* cppcheck-suppress memleak; in the map, goes with it */
			return;
		}
	}
	/* Not ours: as if we had never been here. A fault comes again on return. */
	(void)sigaction(SIGBUS, &previous_action, NULL);
	if (info->si_code <= 0)
		(void)raise(signo);
	errno = saved_errno;
}

static void install_handler(void)
{
	page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
	struct sigaction action = {.sa_sigaction = on_sigbus,
	                           .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART};
	(void)sigemptyset(&action.sa_mask);
	(void)sigaction(SIGBUS, &action, &previous_action);
}

static struct map_slot *claim_in(struct map_block *block)
{
	for (int i = 0; i < BLOCK_SLOTS; i++) {
		bool free_slot = false;
		if (atomic_compare_exchange_strong(&block->slots[i].taken, &free_slot, true))
			return &block->slots[i];
	}
	return NULL;
}

/* NULL: out of memory */
static struct map_slot *slot_claim(void)
{
	for (struct map_block *block = &first_block;;) {
		struct map_slot *slot = claim_in(block);
		if (slot)
			return slot;
		struct map_block *next = atomic_load(&block->next);
		if (!next) {
			struct map_block *fresh = np_calloc(1, sizeof *fresh);
			if (!fresh)
				return NULL;
			if (atomic_compare_exchange_strong(&block->next, &next, fresh))
				next = fresh;
			else
				np_free(fresh); /* another thread was first */
		}
		block = next;
	}
}

static void slot_publish(struct map_slot *slot, const void *start, size_t len)
{
	atomic_store(&slot->faulted, false);
	atomic_store(&slot->start, (uintptr_t)start);
	/* the last page belongs to the map as a whole */
	atomic_store(&slot->end, ((uintptr_t)start + len + page_bytes - 1) & ~(page_bytes - 1));
	atomic_fetch_add(&slot->seq, 1);
}

static void slot_retire(struct map_slot *slot)
{
	atomic_fetch_add(&slot->seq, 1);
	atomic_store(&slot->taken, false);
}

/* ── the input ── */

struct gzip {
	z_stream z;
	char *buf;
	size_t cap, len;       /* buf[0 … len) is the last window */
	size_t fed;            /* compressed bytes handed to zlib */
	bool open, ended;      /* z is initialised; the last member is complete */
	enum np_status failed; /* found damage behind the bytes in buf */
	const char *why;
};

struct np_input {
	char *name;
	const char *base; /* the file or memory */
	size_t len;
	struct map_slot *slot; /* NULL: memory, or an empty file */
	size_t released;       /* pages below base + released were given back */
	size_t window_bytes;   /* test hook, 0: none */
	size_t pos, given;     /* whole inputs: the last window is [pos, pos + given) */
	uint64_t begin;        /* content offset of the first byte */
	uint64_t offset;       /* and of the last window */
	bool is_gzip;
	struct gzip gz;
};

static struct np_input *input_new(const char *name, struct np_err *err)
{
	struct np_input *self = np_calloc(1, sizeof *self);
	size_t size = strlen(name) + 1;
	char *copy = self ? np_alloc(size) : NULL;
	if (!copy) {
		np_free(self);
		(void)np_err_nomem(err);
		return NULL;
	}
	memcpy(copy, name, size);
	self->name = copy;
	return self;
}

static enum np_status map_file(struct np_input *self, int fd, struct np_err *err)
{
	struct stat st;
	if (fstat(fd, &st) != 0)
		return np_err_sys(err, errno, self->name, "look at it");
	if (!S_ISREG(st.st_mode))
		return np_err_set(err, NP_E_FORMAT, self->name,
		                  S_ISDIR(st.st_mode) ? "is a directory" : "not a regular file");
	if ((uintmax_t)st.st_size > SIZE_MAX / 2)
		return np_err_set(err, NP_E_LIMIT, self->name, "too large to map");
	if (st.st_size == 0)
		return NP_OK;
	struct map_slot *slot = slot_claim();
	if (!slot)
		return np_err_nomem(err);
	void *base = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (base == MAP_FAILED) {
		int saved = errno;
		atomic_store(&slot->taken, false);
		return np_err_sys(err, saved, self->name, "map it");
	}
	slot_publish(slot, base, (size_t)st.st_size);
	self->slot = slot;
	self->base = base;
	self->len = (size_t)st.st_size;
	return NP_OK;
}

static voidpf gzip_alloc(voidpf ctx, uInt n, uInt size)
{
	(void)ctx;
	return np_calloc(n, size);
}

static void gzip_free(voidpf ctx, voidpf ptr)
{
	(void)ctx;
	np_free(ptr);
}

static enum np_status gzip_open(struct np_input *self, struct np_err *err)
{
	self->gz.z = (z_stream){.zalloc = gzip_alloc, .zfree = gzip_free};
	if (inflateInit2(&self->gz.z, 15 + 16) != Z_OK)
		return np_err_nomem(err);
	self->gz.open = true;
	return NP_OK;
}

enum np_status np_input_open(const char *path, struct np_input **out, struct np_err *err)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	(void)pthread_once(&once, install_handler);
	*out = NULL;
	struct np_input *self = input_new(path, err);
	if (!self)
		return NP_E_NOMEM;
	/* O_NONBLOCK: a FIFO without a writer must not hold us up */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	enum np_status status =
		fd < 0 ? np_err_sys(err, errno, path, "open it") : map_file(self, fd, err);
	if (fd >= 0)
		(void)close(fd);
	if (status == NP_OK && self->len >= 2 && memcmp(self->base, "\x1f\x8b", 2) == 0) {
		self->is_gzip = true;
		status = gzip_open(self, err);
	}
	if (status != NP_OK) {
		np_input_close(self);
		return status;
	}
	*out = self;
	return NP_OK;
}

enum np_status np_input_open_mem(np_str bytes, const char *name, uint64_t offset,
                                 struct np_input **out, struct np_err *err)
{
	*out = input_new(name, err);
	if (!*out)
		return NP_E_NOMEM;
	(*out)->base = bytes.ptr;
	(*out)->len = bytes.len;
	(*out)->begin = (*out)->offset = offset;
	return NP_OK;
}

void np_input_close(struct np_input *self)
{
	if (!self)
		return;
	if (self->gz.open)
		(void)inflateEnd(&self->gz.z);
	if (self->slot) {
		slot_retire(self->slot);
		(void)munmap((void *)(uintptr_t)self->base, self->len);
	}
	np_free(self->gz.buf);
	np_free(self->name);
	np_free(self);
}

/* ── gzip ── */

static void gzip_damage(struct gzip *gz, enum np_status status, const char *why)
{
	gz->failed = status;
	gz->why = why;
}

/* One member is done: another one, padding, or the end. */
static void gzip_end_of_member(struct np_input *self)
{
	struct gzip *gz = &self->gz;
	gz->fed -= gz->z.avail_in;
	gz->z.avail_in = 0;
	const char *p = self->base + gz->fed, *end = self->base + self->len;
	if (end - p >= 2 && memcmp(p, "\x1f\x8b", 2) == 0) {
		(void)inflateReset(&gz->z);
		return;
	}
	while (p < end && *p == '\0') /* tapes and block devices pad with zeros */
		p++;
	if (p < end)
		gzip_damage(gz, NP_E_FORMAT, "other bytes follow the gzip stream");
	gz->ended = true;
}

static void gzip_feed(struct np_input *self)
{
	struct gzip *gz = &self->gz;
	size_t left = self->len - gz->fed;
	if (left > GZIP_MAX_FEED)
		left = GZIP_MAX_FEED;
	gz->z.next_in = (Bytef *)(uintptr_t)(self->base + gz->fed);
	gz->z.avail_in = (uInt)left;
	gz->fed += left;
}

/* Inflate until the buffer is full, the end, or damage. */
static void gzip_fill(struct np_input *self)
{
	struct gzip *gz = &self->gz;
	while (gz->len < gz->cap && !gz->ended && !gz->failed) {
		if (gz->z.avail_in == 0)
			gzip_feed(self);
		if (gz->z.avail_in == 0) {
			gzip_damage(gz, NP_E_TRUNCATED, "the gzip stream ends early");
			break;
		}
		gz->z.next_out = (Bytef *)gz->buf + gz->len;
		gz->z.avail_out = (uInt)(gz->cap - gz->len);
		int result = inflate(&gz->z, Z_NO_FLUSH);
		gz->len = gz->cap - gz->z.avail_out;
		if (result == Z_STREAM_END)
			gzip_end_of_member(self);
		else if (result == Z_MEM_ERROR)
			gzip_damage(gz, NP_E_NOMEM, "out of memory");
		else if (result != Z_OK && result != Z_BUF_ERROR)
			gzip_damage(gz, NP_E_FORMAT, "the gzip stream is damaged");
	}
}

/* Move what is kept to the front and make room behind it, at least as much again,
 * so that a reader that keeps everything pays for each byte a bounded number of
 * times. */
static enum np_status gzip_make_room(struct np_input *self, size_t consumed, struct np_err *err)
{
	struct gzip *gz = &self->gz;
	gz->len -= consumed;
	if (gz->len && consumed)
		memmove(gz->buf, gz->buf + consumed, gz->len);
	self->offset += consumed;
	if (gz->cap && gz->len <= gz->cap / 2)
		return NP_OK;
	size_t cap = gz->cap ? gz->cap * 2
	                     : (self->window_bytes ? self->window_bytes : GZIP_FIRST_WINDOW);
	if (cap > NP_INPUT_MAX_WINDOW)
		cap = NP_INPUT_MAX_WINDOW;
	if (cap > gz->cap) {
		char *grown = np_realloc(gz->buf, cap, 1);
		if (!grown)
			return np_err_nomem(err);
		gz->buf = grown;
		gz->cap = cap;
	}
	if (gz->len == gz->cap)
		return np_err_at(err, NP_E_LIMIT, self->name, self->offset,
		                 "one record is larger than %d MiB", NP_INPUT_MAX_WINDOW >> 20);
	return NP_OK;
}

static enum np_status gzip_next(struct np_input *self, size_t consumed, struct np_window *out,
                                struct np_err *err)
{
	struct gzip *gz = &self->gz;
	NP_TRY(gzip_make_room(self, consumed, err));
	size_t before = gz->len;
	gzip_fill(self);
	if (gz->failed && gz->len == before)
		return np_err_at(err, gz->failed, self->name, self->offset + gz->len, "%s",
		                 gz->why);
	if (gz->fed - gz->z.avail_in > self->released + RELEASE_STEP) {
		size_t done = (gz->fed - gz->z.avail_in) & ~(size_t)(RELEASE_STEP - 1);
		(void)madvise((void *)(uintptr_t)self->base, done, MADV_DONTNEED);
		self->released = done;
	}
	*out = (struct np_window){gz->buf, gz->len, self->offset, gz->ended && !gz->failed};
	return NP_OK;
}

/* ── windows ── */

enum np_status np_input_next(struct np_input *self, size_t consumed, struct np_window *out,
                             struct np_err *err)
{
	size_t given = self->is_gzip ? self->gz.len : self->given;
	if (consumed > given)
		consumed = given;
	if (self->is_gzip)
		return gzip_next(self, consumed, out, err);
	self->pos += consumed;
	self->offset += consumed;
	size_t left = self->len - self->pos;
	if (self->window_bytes && left > given - consumed + self->window_bytes)
		left = given - consumed + self->window_bytes;
	self->given = left;
	*out = (struct np_window){
		.ptr = self->base ? self->base + self->pos : "",
		.len = left,
		.offset = self->offset,
		.eof = self->pos + left == self->len,
	};
	return NP_OK;
}

np_str np_input_whole(const struct np_input *self)
{
	if (self->is_gzip)
		return (np_str){NULL, 0};
	return (np_str){self->base, self->len};
}

void np_input_release_behind(struct np_input *self, uint64_t offset)
{
	if (!self->slot || self->is_gzip)
		return;
	if (offset > self->len)
		offset = self->len;
	size_t done = (size_t)offset & ~(size_t)(RELEASE_STEP - 1);
	if (done <= self->released)
		return;
	/* private and read-only: the pages stay in the cache and come again when touched */
	(void)madvise((void *)(uintptr_t)(self->base + self->released), done - self->released,
	              MADV_DONTNEED);
	self->released = done;
}

bool np_input_faulted(const struct np_input *self)
{
	return self->slot && atomic_load(&self->slot->faulted);
}

const char *np_input_name(const struct np_input *self)
{
	return self->name;
}

uint64_t np_input_file_size(const struct np_input *self)
{
	return self->len;
}

uint64_t np_input_begin(const struct np_input *self)
{
	return self->begin;
}

bool np_input_is_gzip(const struct np_input *self)
{
	return self->is_gzip;
}

void np_input_limit_window(struct np_input *self, size_t bytes)
{
	self->window_bytes = bytes;
}
