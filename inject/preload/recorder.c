#include "recorder.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum {
	CAPACITY_MAX = 1 << 24, /* records: 2 GiB of a sparse file */
	MARKS = 64,             /* so many marks may come while one is being read */
};

int np_rec_state = NP_REC_UNKNOWN;
const struct np_call np_call_unknown = {
	.count = NP_COMM_NO_U64,
	.send_bytes = NP_COMM_NO_U64,
	.recv_bytes = NP_COMM_NO_U64,
	.tensor_bytes = NP_COMM_NO_U64,
	.comm_seq = NP_COMM_NO_U64,
	.rank = -1,
	.world = -1,
	.peer = -1,
	.stream = -1,
	.device = -1,
	.dtype = NP_COMM_DTYPE_UNKNOWN,
	.reduce = NP_COMM_REDUCE_NONE,
};

struct thread {
	struct np_ring *ring;
	uint32_t generation;  /* of the process that the ring was made in */
	volatile bool busy;   /* inside the recorder */
	volatile bool inside; /* inside the real function */
	bool failed;          /* this thread's log could not be made */
};
static __thread struct thread self;

static pthread_mutex_t init_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t mark_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_key_t thread_key;
static char dir[PATH_MAX];
static uint64_t capacity = NP_COMM_LOG_CAPACITY;
static uint64_t lost; /* calls without a ring to count them; the next ring tells */

/* ── processes ── */

static uint32_t generation = 1; /* one more in each child of fork() */
/* A word that the kernel makes 0 in a child, however that was made; NULL: a kernel before 4.14,
 * then each call asks for the number of its process. */
static uint32_t *alive;
static pid_t process;

static void after_fork(void)
{
	init_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	np_ring_after_fork();
	np_text_after_fork();
	np_rec_layer_after_fork();
	mark_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	lost = 0;
	generation++;
	if (alive)
		__atomic_store_n(alive, 1, __ATOMIC_RELEASE);
	else
		process = getpid();
}

/* A child in which no handler was run: made by a bare clone(). */
static bool is_child(void)
{
	if (!alive)
		return getpid() != process;
	return __builtin_expect(__atomic_load_n(alive, __ATOMIC_ACQUIRE) == 0, 0);
}

static void watch_forks(void)
{
	process = getpid();
	void *page = mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE,
	                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page != MAP_FAILED &&
	    madvise(page, (size_t)sysconf(_SC_PAGESIZE), MADV_WIPEONFORK) == 0) {
		alive = page;
		*alive = 1;
	}
	(void)pthread_atfork(NULL, NULL, after_fork);
}

/* ── set-up ── */

/* One write, so that the lines of many processes do not mix. */
static void write_line(const char *text)
{
	char line[PATH_MAX + 512];
	int length = snprintf(line, sizeof line, "npuprof: [%d] %s\n", (int)getpid(), text);
	if (length > 0 && write(STDERR_FILENO, line, strlen(line)) < 0)
		return; /* there is nobody else to tell */
}

void np_rec_tell(const char *format, ...)
{
	char text[PATH_MAX + 384];
	va_list arguments;
	va_start(arguments, format);
	/* clang 14 sees no va_start(): NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized) */
	int length = vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	if (length > 0)
		write_line(text);
}

/* NULL: not set, or empty. */
static const char *variable(const char *name)
{
	const char *text = getenv(name);
	return text && *text ? text : NULL;
}

static uint64_t read_capacity(void)
{
	const char *text = variable("NPUPROF_COMM_CAPACITY");
	char *end = NULL;
	if (!text)
		return NP_COMM_LOG_CAPACITY;
	unsigned long long value = strtoull(text, &end, 10);
	if (*end || text[0] == '-' || value == 0 || value > CAPACITY_MAX) {
		NP_REC_TELL("NPUPROF_COMM_CAPACITY=%s: not a number from 1 to %d; %d is used", text,
		            CAPACITY_MAX, NP_COMM_LOG_CAPACITY);
		return NP_COMM_LOG_CAPACITY;
	}
	return value;
}

/* The directory is kept as an absolute path: programs change theirs. */
static bool read_dir(const char *text)
{
	char here[PATH_MAX];
	int length;
	if (text[0] == '/')
		length = snprintf(dir, sizeof dir, "%s", text);
	else if (getcwd(here, sizeof here))
		length = snprintf(dir, sizeof dir, "%s/%s", here, text);
	else
		length = -1;
	if (length > 0 && (size_t)length < sizeof dir)
		return true;
	NP_REC_TELL("NPUPROF_COMM=%s: no such path; collectives are not recorded", text);
	return false;
}

static void end_thread(void *ring)
{
	self.busy = true;
	if (self.ring == ring && self.generation == generation) {
		np_ring_close(self.ring);
		self.ring = NULL;
	}
	self.busy = false;
}

static int set_up(void)
{
	const char *where = variable("NPUPROF_COMM");
	if (!where || variable("NPUPROF_INJECT_OFF") || !read_dir(where))
		return NP_REC_OFF;
	capacity = read_capacity();
	if (pthread_key_create(&thread_key, end_thread) != 0) {
		NP_REC_TELL("no thread key is left; collectives are not recorded");
		return NP_REC_OFF;
	}
	watch_forks();
	return NP_REC_ON;
}

bool np_rec_init(void)
{
	int error = errno;
	if (self.busy) /* a signal handler, within here */
		return false;
	self.busy = true;
	(void)pthread_mutex_lock(&init_lock);
	int state = __atomic_load_n(&np_rec_state, __ATOMIC_ACQUIRE);
	if (state == NP_REC_UNKNOWN) {
		state = set_up();
		__atomic_store_n(&np_rec_state, state, __ATOMIC_RELEASE);
	}
	(void)pthread_mutex_unlock(&init_lock);
	self.busy = false;
	errno = error;
	return state == NP_REC_ON;
}

__attribute__((constructor)) static void at_load(void)
{
	(void)np_rec_init();
}

__attribute__((destructor)) static void at_exit(void)
{
	if (np_rec_state == NP_REC_ON && !is_child())
		np_ring_close_all();
}

/* ── threads ── */

static void open_ring(void)
{
	struct np_ring_options options = np_rec_layer;
	options.dir = dir;
	options.capacity = capacity;
	int error = np_ring_open(&options, &self.ring);
	if (error) {
		self.failed = true;
		NP_REC_TELL("cannot write the log of collectives to %s: %s; this process is not "
		            "recorded, and goes on",
		            dir, strerror(error));
		return;
	}
	(void)pthread_setspecific(thread_key, self.ring);
}

/* This thread's ring, made at its first call in this process; NULL: none. */
static struct np_ring *ring_of_thread(void)
{
	if (__builtin_expect(self.generation != generation, 0)) {
		self = (struct thread){.generation = generation, .busy = self.busy};
		self.ring = NULL;
	}
	if (__builtin_expect(!self.ring, 0) && !self.failed)
		open_ring();
	return self.ring;
}

static void count_lost(void)
{
	if (self.ring && self.generation == generation)
		np_ring_lost(self.ring, 1);
	else
		(void)__atomic_fetch_add(&lost, 1, __ATOMIC_RELAXED);
}

/* ── stages ── */

struct mark {
	uintptr_t stage, path; /* struct np_text */
	uint32_t step, request;
};
static struct mark marks[MARKS]; /* mark number n lies in n % MARKS */
static uint64_t mark_last;       /* 0: none yet */

static void publish_mark(const struct mark *mark)
{
	(void)pthread_mutex_lock(&mark_lock);
	uint64_t n = mark_last + 1;
	struct mark *slot = &marks[n % MARKS];
	__atomic_store_n(&slot->stage, mark->stage, __ATOMIC_RELAXED);
	__atomic_store_n(&slot->path, mark->path, __ATOMIC_RELAXED);
	__atomic_store_n(&slot->step, mark->step, __ATOMIC_RELAXED);
	__atomic_store_n(&slot->request, mark->request, __ATOMIC_RELAXED);
	__atomic_store_n(&mark_last, n, __ATOMIC_RELEASE);
	(void)pthread_mutex_unlock(&mark_lock);
}

/* Never waits for the writer: each mark is stored beside the last ones, and only a reader that
 * is overtaken by all of them has to look again. */
static struct mark read_mark(void)
{
	for (;;) {
		uint64_t n = __atomic_load_n(&mark_last, __ATOMIC_ACQUIRE);
		if (n == 0)
			return (struct mark){.step = NP_COMM_NO_U32, .request = NP_COMM_NO_U32};
		const struct mark *slot = &marks[n % MARKS];
		struct mark out = {
			.stage = __atomic_load_n(&slot->stage, __ATOMIC_RELAXED),
			.path = __atomic_load_n(&slot->path, __ATOMIC_RELAXED),
			.step = __atomic_load_n(&slot->step, __ATOMIC_RELAXED),
			.request = __atomic_load_n(&slot->request, __ATOMIC_RELAXED),
		};
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (__atomic_load_n(&mark_last, __ATOMIC_RELAXED) - n < MARKS - 1)
			return out;
	}
}

void np_rec_mark(const char *stage_path, uint32_t step, uint32_t request)
{
	int error = errno;
	if (np_rec_on()) {
		const char *path = stage_path ? stage_path : "";
		const char *slash = strrchr(path, '/');
		const char *stage = slash ? slash + 1 : path;
		bool was_busy = self.busy;
		self.busy = true;
		struct mark mark = {
			.stage = (uintptr_t)np_text_intern(stage, strlen(stage)),
			.path = (uintptr_t)np_text_intern(path, strlen(path)),
			.step = step,
			.request = request,
		};
		publish_mark(&mark);
		self.busy = was_busy;
	}
	errno = error;
}

/* ── calls ── */

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;
	(void)clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

bool np_rec_enter(struct np_rec_frame *frame)
{
	frame->error = errno;
	if (self.busy) { /* a signal handler, while we were at work */
		count_lost();
		return false;
	}
	if (is_child())
		after_fork();
	if (self.inside && self.generation == generation)
		return false;
	self.busy = true;
	if (!ring_of_thread()) {
		count_lost();
		self.busy = false;
		errno = frame->error;
		return false;
	}
	frame->active = true;
	return true;
}

void np_rec_start(struct np_rec_frame *frame)
{
	self.inside = true;
	self.busy = false;
	errno = frame->error;
	frame->start_ns = (int64_t)clock_ns(CLOCK_REALTIME);
	frame->begin = clock_ns(CLOCK_MONOTONIC);
}

static void fill_record(struct np_comm_record *record, const struct np_rec_frame *frame,
                        const struct np_call *call, int32_t rc)
{
	struct np_ring *ring = self.ring;
	struct mark mark = read_mark();
	record->start_ns = frame->start_ns;
	record->call_ns = frame->end - frame->begin;
	record->count = call->count;
	record->send_bytes = call->send_bytes;
	record->recv_bytes = call->recv_bytes;
	record->tensor_bytes = call->tensor_bytes;
	record->comm_seq = call->comm_seq;
	record->comm_hash = call->comm_hash;
	record->comm_name = np_ring_text(ring, call->comm_name);
	record->stage = np_ring_text(ring, (const struct np_text *)mark.stage);
	record->stage_path = np_ring_text(ring, (const struct np_text *)mark.path);
	record->shape = 0;
	record->step = mark.step;
	record->request = mark.request;
	record->rank = call->rank;
	record->world = call->world;
	record->peer = call->peer;
	record->stream = call->stream;
	record->device = call->device;
	record->rc = rc;
	record->flags = (uint16_t)(call->flags | (rc ? NP_COMM_FAILED : 0));
	record->op = call->op;
	record->dtype = call->dtype;
	record->reduce = call->reduce;
	memset(record->reserved, 0, sizeof record->reserved);
}

bool np_rec_stop(struct np_rec_frame *frame)
{
	frame->end = clock_ns(CLOCK_MONOTONIC);
	frame->error = errno;
	frame->active = false;
	self.inside = false;
	if (self.generation != generation || is_child())
		return false;
	self.busy = true;
	return true;
}

void np_rec_leave(struct np_rec_frame *frame, const struct np_call *call, int32_t rc)
{
	struct np_comm_record *record = np_ring_begin(self.ring);
	if (record) {
		fill_record(record, frame, call, rc);
		np_ring_commit(self.ring);
	} else {
		NP_REC_TELL("the log of collectives %s is cut short: %s; the program goes on",
		            self.ring->path, strerror(self.ring->stopped));
	}
	if (self.ring->header->device < 0 && call->device >= 0)
		self.ring->header->device = call->device;
	if (__builtin_expect(__atomic_load_n(&lost, __ATOMIC_RELAXED) != 0, 0))
		np_ring_lost(self.ring, __atomic_exchange_n(&lost, 0, __ATOMIC_RELAXED));
	self.busy = false;
	errno = frame->error;
}

void np_rec_unwind(struct np_rec_frame *frame)
{
	if (!frame->active)
		return;
	self.inside = false;
	count_lost();
}
