/*
 * A program that uses HCCL, for tests/e2e/collect_preload.py.
 *
 *   hccl_caller HOW script            calls what stdin says, see run_script()
 *   hccl_caller HOW loop ACKS [N]     calls HcclAllReduce with the counts 1, 2, …; after each
 *                                     return the number is stored in the file ACKS (8 bytes)
 *   hccl_caller HOW threads T N       T threads at a time make N calls each, on one communicator each
 *   hccl_caller HOW fork              see run_fork()
 *   hccl_caller HOW signal N          N calls, while SIGUSR1's handler calls too
 *   hccl_caller HOW exit              three calls on a thread that is still there at exit()
 *   hccl_caller HOW unwind            two calls, and one that does not return but ends the thread
 *   hccl_caller HOW closed            the library is closed, as often as it was opened
 *   hccl_caller HOW next              asks next.c's libraries
 *
 * HOW it comes by the functions: "linked" (only hccl_caller_linked), "dlopen" (RTLD_LOCAL and
 * dlsym of the handle), "default" (dlsym(RTLD_DEFAULT), the library not yet loaded).
 */
#include "fake.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { VARIABLES = 64, WORDS = 64, ERRNO_BEFORE = 33 };

/* ── the functions ── */

typedef int caller_fn(void *function, const uint64_t *a);

#define AS(type, function, ...) ((int (*)(__VA_ARGS__))(function))
#define F1(n, A)                TRAMPOLINE(n, 1, AS(int, f, A)((A)a[0]))
#define F2(n, A, B)             TRAMPOLINE(n, 2, AS(int, f, A, B)((A)a[0], (B)a[1]))
#define F3(n, A, B, C)          TRAMPOLINE(n, 3, AS(int, f, A, B, C)((A)a[0], (B)a[1], (C)a[2]))
#define F4(n, A, B, C, D) \
	TRAMPOLINE(n, 4, AS(int, f, A, B, C, D)((A)a[0], (B)a[1], (C)a[2], (D)a[3]))
#define F5(n, A, B, C, D, E) \
	TRAMPOLINE(n, 5, AS(int, f, A, B, C, D, E)((A)a[0], (B)a[1], (C)a[2], (D)a[3], (E)a[4]))
#define F6(n, A, B, C, D, E, F)                                                              \
	TRAMPOLINE(n, 6,                                                                     \
	           AS(int, f, A, B, C, D, E, F)((A)a[0], (B)a[1], (C)a[2], (D)a[3], (E)a[4], \
	                                        (F)a[5]))
#define F7(n, A, B, C, D, E, F, G)                                                              \
	TRAMPOLINE(n, 7,                                                                        \
	           AS(int, f, A, B, C, D, E, F, G)((A)a[0], (B)a[1], (C)a[2], (D)a[3], (E)a[4], \
	                                           (F)a[5], (G)a[6]))
#define F8(n, A, B, C, D, E, F, G, H)                                                              \
	TRAMPOLINE(n, 8,                                                                           \
	           AS(int, f, A, B, C, D, E, F, G, H)((A)a[0], (B)a[1], (C)a[2], (D)a[3], (E)a[4], \
	                                              (F)a[5], (G)a[6], (H)a[7]))
#define F9(n, A, B, C, D, E, F, G, H, J)                                                     \
	TRAMPOLINE(n, 9,                                                                     \
	           AS(int, f, A, B, C, D, E, F, G, H, J)((A)a[0], (B)a[1], (C)a[2], (D)a[3], \
	                                                 (E)a[4], (F)a[5], (G)a[6], (H)a[7], \
	                                                 (J)a[8]))
#define F10(n, A, B, C, D, E, F, G, H, J, K)                                                    \
	TRAMPOLINE(n, 10,                                                                       \
	           AS(int, f, A, B, C, D, E, F, G, H, J, K)((A)a[0], (B)a[1], (C)a[2], (D)a[3], \
	                                                    (E)a[4], (F)a[5], (G)a[6], (H)a[7], \
	                                                    (J)a[8], (K)a[9]))
#define INITS                                            \
	F4(HcclCommInitRootInfo, W, P, W, P)             \
	F5(HcclCommInitRootInfoConfig, W, P, W, P, P)    \
	F3(HcclCommInitClusterInfo, P, W, P)             \
	F4(HcclCommInitClusterInfoConfig, P, W, P, P)    \
	F7(HcclCreateSubCommConfig, P, W, P, U, W, P, P) \
	F3(HcclCommInitAll, W, P, P)                     \
	F1(HcclCommDestroy, P)
#define ALL                                               \
	FAKE_OLD_API(F2, F3, F4, F5, F6, F7, F8, F9, F10) \
	FAKE_NEW_API(F2, F3, F4, F5, F6, F7, F8, F9, F10) INITS

#define TRAMPOLINE(n, number, call)                     \
	static int call_##n(void *f, const uint64_t *a) \
	{                                               \
		return call;                            \
	}
ALL
#undef TRAMPOLINE
#ifdef LINKED
#define TRAMPOLINE(n, number, call) extern int n(void) __attribute__((weak));
	ALL
#undef TRAMPOLINE
#define ADDRESS(n) (void *)n
#else
#define ADDRESS(n) NULL
#endif

	static struct function {
	const char *name;
	int number;
	caller_fn *call;
	void *address;
} functions[] = {
#define TRAMPOLINE(n, number, call) {#n, number, call_##n, ADDRESS(n)},
	ALL
#undef TRAMPOLINE
	{NULL, 0, NULL, NULL},
};

static struct fake_seen *(*seen)(void);
static unsigned long (*total)(void);
static void (*set_return)(int);

static void die(const char *why)
{
	(void)fprintf(stderr, "caller: %s: %s\n", why, strerror(errno));
	exit(9);
}

static void *symbol_of(void *handle, const char *name)
{
	(void)dlerror();
	void *found = dlsym(handle, name);
	if (!found && !dlerror())
		die("dlsym() says neither yes nor no");
	return found;
}

static void find_functions(const char *how)
{
	bool linked = strcmp(how, "linked") == 0;
	void *handle = linked ? NULL : RTLD_DEFAULT;
	if (strcmp(how, "dlopen") == 0)
		handle = dlopen("libhccl.so", RTLD_NOW | RTLD_LOCAL);
	for (struct function *f = functions; !linked && f->name; f++)
		f->address = symbol_of(handle, f->name);
	void *library = dlopen("libhccl.so", RTLD_NOW | RTLD_LOCAL);
	if (!library)
		die(dlerror());
	if (!dlopen("libascendcl.so", RTLD_NOW | RTLD_LOCAL))
		die(dlerror());
	*(void **)&seen = dlsym(library, "fake_seen");
	*(void **)&total = dlsym(library, "fake_calls");
	*(void **)&set_return = dlsym(library, "fake_return");
}

static struct function *function_of(const char *name)
{
	for (struct function *f = functions; f->name; f++)
		if (strcmp(f->name, name) == 0)
			return f;
	die(name);
	return NULL;
}

/* Calls it; the arguments, errno before and errno after must pass unchanged. */
static int checked_call(const struct function *f, const uint64_t *args)
{
	errno = ERRNO_BEFORE;
	int rc = f->call(f->address, args);
	int after = errno;
	const struct fake_seen *last = seen();
	if (!last->name || strcmp(last->name, f->name) != 0 || last->number != f->number ||
	    memcmp(last->args, args, (size_t)f->number * sizeof *args) != 0)
		die("the arguments have changed");
	if (last->errno_in != ERRNO_BEFORE || after != FAKE_ERRNO)
		die("errno has changed");
	return rc;
}

/* ── script ── */

static struct variable {
	char name[32];
	uint64_t words[WORDS * 8];
} variables[VARIABLES];

static uint64_t *variable(const char *name)
{
	for (size_t i = 0; i < VARIABLES; i++) {
		if (variables[i].name[0] == '\0')
			(void)snprintf(variables[i].name, sizeof variables[i].name, "%s", name);
		if (strcmp(variables[i].name, name) == 0)
			return variables[i].words;
	}
	die("too many variables");
	return NULL;
}

static uint64_t value(const char *word)
{
	if (word[0] == '@')
		return (uint64_t)(uintptr_t)variable(word + 1);
	if (word[0] == '*')
		return *variable(word + 1);
	return (uint64_t)strtoll(word, NULL, 0);
}

static void set_variable(char **words, int number)
{
	uint64_t *out = variable(words[1]);
	for (int i = 2; i < number; i++)
		out[i - 2] = value(words[i]);
}

/* HcclCommConfig of so many bytes */
static void set_config(char **words, int number)
{
	char *out = (char *)variable(words[1]);
	size_t size = (size_t)value(words[2]);
	uint32_t magic = 0xf0f0f0f0;
	memcpy(out, &size, sizeof size);
	memcpy(out + 8, &magic, sizeof magic);
	memset(out + 32, 0, 128);
	if (number > 3)
		memcpy(out + 32, words[3], strlen(words[3]));
}

static void run_line(char **words, int number)
{
	uint64_t args[FAKE_ARGS] = {0};
	if (strcmp(words[0], "set") == 0) {
		set_variable(words, number);
	} else if (strcmp(words[0], "config") == 0) {
		set_config(words, number);
	} else if (strcmp(words[0], "return") == 0) {
		set_return((int)value(words[1]));
	} else if (strcmp(words[0], "has") == 0) {
		printf("%d\n", function_of(words[1])->address != NULL);
	} else if (strcmp(words[0], "missing") == 0) {
		const struct function *f = function_of(words[1]);
		printf("%d\n", f->call(f->address, args));
	} else if (strcmp(words[0], "mark") == 0) {
		void (*mark)(const char *, uint32_t, uint32_t);
		*(void **)&mark = dlsym(RTLD_DEFAULT, "npuprof_comm_mark");
		mark(strcmp(words[1], "-") ? words[1] : NULL, (uint32_t)value(words[2]),
		     (uint32_t)value(words[3]));
	} else {
		const struct function *f = function_of(words[0]);
		if (f->number != number - 1)
			die(f->name);
		for (int i = 0; i < f->number; i++)
			args[i] = value(words[i + 1]);
		printf("%d\n", f->address ? checked_call(f, args) : -1);
	}
}

/*
 *   set NAME VALUE …            a variable of 64-bit words
 *   config NAME SIZE COMM_NAME  a variable that holds an HcclCommConfig
 *   return RC                   of the functions from now on
 *   mark PATH STEP REQUEST      npuprof_comm_mark(); "-" for NULL
 *   has HcclX                   prints 1 or 0
 *   HcclX ARGUMENT …            prints what it returned
 *   missing HcclX               calls it with zeros; nothing of it is to arrive
 * A value is a number, @NAME (the variable's address) or *NAME (its first word).
 */
static void run_script(void)
{
	char line[4096];
	while (fgets(line, sizeof line, stdin)) {
		char *words[WORDS], *rest = line;
		int number = 0;
		for (char *word; number < WORDS && (word = strtok_r(rest, " \n", &rest));)
			words[number++] = word;
		if (number)
			run_line(words, number);
	}
}

/* ── more than one call ── */

static int stream_of_thread = 7;

static void *new_comm(uint32_t rank, uint32_t size)
{
	void *comm = NULL;
	const uint64_t args[] = {size, 0, rank, (uint64_t)(uintptr_t)&comm};
	if (checked_call(function_of("HcclCommInitRootInfo"), args) != 0)
		die("HcclCommInitRootInfo");
	return comm;
}

static void all_reduce(void *comm, uint64_t count)
{
	const uint64_t args[] = {1,
	                         2,
	                         count,
	                         4,
	                         0,
	                         (uint64_t)(uintptr_t)comm,
	                         (uint64_t)(uintptr_t)&stream_of_thread};
	if (checked_call(&functions[0], args) != 0)
		die("HcclAllReduce");
}

static void run_loop(const char *path, uint64_t number)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	if (fd < 0 || ftruncate(fd, 8) != 0)
		die(path);
	volatile uint64_t *ack = mmap(NULL, 8, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (ack == MAP_FAILED)
		die(path);
	void *comm = new_comm(3, 8);
	for (uint64_t i = 1; i <= number; i++) {
		all_reduce(comm, i);
		*ack = i;
	}
}

static void *thread_main(void *data)
{
	uint64_t number = *(const uint64_t *)data;
	void *comm = new_comm(0, 2);
	for (uint64_t i = 1; i <= number; i++)
		all_reduce(comm, i);
	return NULL;
}

static void run_threads(int threads, uint64_t number)
{
	pthread_t made[256];
	for (int i = 0; i < threads; i++)
		if (pthread_create(&made[i], NULL, thread_main, &number) != 0)
			die("pthread_create");
	for (int i = 0; i < threads; i++)
		(void)pthread_join(made[i], NULL);
}

static void calls(void *comm, int number, uint64_t count)
{
	for (int i = 0; i < number; i++)
		all_reduce(comm, count);
}

static void wait_for(pid_t child, const char *name)
{
	int status = 0;
	if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
		die(name);
	printf("%s %d\n", name, (int)child);
}

/* 3 calls (count 1); a child of fork() makes 5 (count 2) and one more of its own 4 (count 3);
 * a child of a bare clone() 2 (count 4); 1 more (count 5). */
static void run_fork(void)
{
	void *comm = new_comm(0, 4);
	calls(comm, 3, 1);
	printf("parent %d\n", (int)getpid());
	(void)fflush(stdout);
	pid_t child = fork();
	if (child == 0) {
		calls(comm, 5, 2);
		pid_t grandchild = fork();
		if (grandchild == 0) {
			calls(comm, 4, 3);
			exit(0);
		}
		wait_for(grandchild, "grandchild");
		exit(0);
	}
	wait_for(child, "child");
	child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	if (child == 0) {
		calls(comm, 2, 4);
		_exit(0);
	}
	wait_for(child, "clone");
	calls(comm, 1, 5);
}

static void *signal_comm;
static volatile unsigned long signal_calls;

static void on_signal(int number)
{
	(void)number;
	const uint64_t args[] = {1,
	                         2,
	                         999,
	                         4,
	                         0,
	                         (uint64_t)(uintptr_t)signal_comm,
	                         (uint64_t)(uintptr_t)&stream_of_thread};
	int error = errno;
	struct fake_seen before = *seen();
	(void)functions[0].call(functions[0].address, args);
	*seen() = before;
	errno = error;
	signal_calls++;
}

static void run_signal(int number)
{
	signal_comm = new_comm(0, 4);
	struct sigaction action = {.sa_handler = on_signal};
	(void)sigaction(SIGUSR1, &action, NULL);
	printf("ready\n");
	(void)fflush(stdout);
	calls(signal_comm, number, 1);
	(void)signal(SIGUSR1, SIG_IGN);
	printf("%lu %lu\n", signal_calls, total());
}

static void *exit_main(void *ready)
{
	calls(new_comm(0, 2), 3, 1);
	(void)pthread_barrier_wait(ready);
	for (;;)
		(void)pause();
	return NULL;
}

static void run_exit(void)
{
	static pthread_barrier_t ready;
	pthread_t thread;
	(void)pthread_barrier_init(&ready, NULL, 2);
	if (pthread_create(&thread, NULL, exit_main, &ready) != 0)
		die("pthread_create");
	(void)pthread_barrier_wait(&ready);
}

static void *unwind_main(void *data)
{
	calls(data, 2, 1);
	set_return(FAKE_NO_RETURN);
	calls(data, 1, 2);
	return data; /* never */
}

static void run_unwind(void)
{
	pthread_t thread;
	void *result = NULL;
	void *comm = new_comm(0, 4);
	if (pthread_create(&thread, NULL, unwind_main, comm) != 0 ||
	    pthread_join(thread, &result) != 0 || result)
		die("unwind");
}

static void run_closed(void)
{
	void *comm = new_comm(0, 4);
	calls(comm, 1, 1);
	void *handle = dlopen("libhccl.so", RTLD_NOW | RTLD_NOLOAD);
	for (int i = 0; handle && i < 3; i++) /* find_functions() has it twice */
		(void)dlclose(handle);
	calls(comm, 1, 2);
}

static void run_next(void)
{
	int (*who)(void), (*local)(void);
	void *first = dlopen("libnp_next_first.so", RTLD_NOW | RTLD_LOCAL);
	if (!first)
		die(dlerror());
	*(void **)&who = dlsym(first, "np_test_who");
	*(void **)&local = dlsym(first, "np_test_local");
	printf("%d %d\n", who(), local());
}

int main(int argc, char **argv)
{
	if (argc < 3)
		die("usage: HOW WHAT …");
	find_functions(argv[1]);
	const char *what = argv[2];
	uint64_t first = argc > 3 ? strtoull(argv[3], NULL, 10) : 0;
	if (strcmp(what, "script") == 0)
		run_script();
	else if (strcmp(what, "loop") == 0 && argc > 3)
		run_loop(argv[3], argc > 4 ? strtoull(argv[4], NULL, 10) : UINT64_MAX);
	else if (strcmp(what, "threads") == 0 && argc > 4)
		run_threads((int)first, strtoull(argv[4], NULL, 10));
	else if (strcmp(what, "fork") == 0)
		run_fork();
	else if (strcmp(what, "signal") == 0)
		run_signal((int)first);
	else if (strcmp(what, "exit") == 0)
		run_exit();
	else if (strcmp(what, "unwind") == 0)
		run_unwind();
	else if (strcmp(what, "closed") == 0)
		run_closed();
	else if (strcmp(what, "next") == 0)
		run_next();
	else
		die(what);
	return 0;
}
