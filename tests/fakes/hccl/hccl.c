/* libhccl.so of the tests, see fake.h. With FAKE_OLD it lacks what an older CANN lacks. */
#include "fake.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

static __thread struct fake_seen seen;
static __thread int result;
static unsigned long calls;

EXPORT struct fake_seen *fake_seen(void)
{
	return &seen;
}

EXPORT unsigned long fake_calls(void)
{
	return __atomic_load_n(&calls, __ATOMIC_RELAXED);
}

EXPORT void fake_return(int rc)
{
	result = rc;
}

static int saw(const char *name, int number, const uint64_t *args)
{
	seen.name = name;
	seen.number = number;
	seen.errno_in = errno;
	memcpy(seen.args, args, (size_t)number * sizeof *args);
	(void)__atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);
	errno = FAKE_ERRNO;
	if (result == FAKE_NO_RETURN)
		pthread_exit(NULL);
	return result;
}

#define V(value)               ((uint64_t)(value))
#define SAW(name, number, ...) return saw(#name, number, (const uint64_t[]){__VA_ARGS__});
#define F2(n, A, B)                   \
	EXPORT int n(A a, B b)        \
	{                             \
		SAW(n, 2, V(a), V(b)) \
	}
#define F3(n, A, B, C)                      \
	EXPORT int n(A a, B b, C c)         \
	{                                   \
		SAW(n, 3, V(a), V(b), V(c)) \
	}
#define F4(n, A, B, C, D)                         \
	EXPORT int n(A a, B b, C c, D d)          \
	{                                         \
		SAW(n, 4, V(a), V(b), V(c), V(d)) \
	}
#define F5(n, A, B, C, D, E)                            \
	EXPORT int n(A a, B b, C c, D d, E e)           \
	{                                               \
		SAW(n, 5, V(a), V(b), V(c), V(d), V(e)) \
	}
#define F6(n, A, B, C, D, E, F)                               \
	EXPORT int n(A a, B b, C c, D d, E e, F f)            \
	{                                                     \
		SAW(n, 6, V(a), V(b), V(c), V(d), V(e), V(f)) \
	}
#define F7(n, A, B, C, D, E, F, G)                                  \
	EXPORT int n(A a, B b, C c, D d, E e, F f, G g)             \
	{                                                           \
		SAW(n, 7, V(a), V(b), V(c), V(d), V(e), V(f), V(g)) \
	}
#define F8(n, A, B, C, D, E, F, G, H)                                     \
	EXPORT int n(A a, B b, C c, D d, E e, F f, G g, H h)              \
	{                                                                 \
		SAW(n, 8, V(a), V(b), V(c), V(d), V(e), V(f), V(g), V(h)) \
	}
#define F9(n, A, B, C, D, E, F, G, H, J)                                        \
	EXPORT int n(A a, B b, C c, D d, E e, F f, G g, H h, J j)               \
	{                                                                       \
		SAW(n, 9, V(a), V(b), V(c), V(d), V(e), V(f), V(g), V(h), V(j)) \
	}
#define F10(n, A, B, C, D, E, F, G, H, J, K)                                           \
	EXPORT int n(A a, B b, C c, D d, E e, F f, G g, H h, J j, K k)                 \
	{                                                                              \
		SAW(n, 10, V(a), V(b), V(c), V(d), V(e), V(f), V(g), V(h), V(j), V(k)) \
	}
#ifdef __clang__
#pragma clang diagnostic ignored "-Wmissing-prototypes"
#endif
FAKE_OLD_API(F2, F3, F4, F5, F6, F7, F8, F9, F10)
#ifndef FAKE_OLD
FAKE_NEW_API(F2, F3, F4, F5, F6, F7, F8, F9, F10)
#endif

/* ── communicators ── */

struct fake_comm {
	char name[128];
	uint32_t rank, size;
};

/* The communicator `comm` with the name of its configuration, else "fake_<rank>_<size>". */
static int make(void **comm, uint32_t rank, uint32_t size, const char *config)
{
	if (result)
		return result;
	struct fake_comm *made = calloc(1, sizeof *made);
	if (!made)
		return 3;
	size_t config_size = 0;
	if (config)
		memcpy(&config_size, config, sizeof config_size);
	if (config_size >= 160 && config[32])
		memcpy(made->name, config + 32, sizeof made->name);
	else
		(void)snprintf(made->name, sizeof made->name, "fake_%u_%u", rank, size);
	made->rank = rank;
	made->size = size;
	*comm = made;
	return 0;
}

EXPORT int HcclCommInitRootInfo(W ranks, const void *root, W rank, void **comm)
{
	(void)saw("HcclCommInitRootInfo", 4, (const uint64_t[]){ranks, V(root), rank, V(comm)});
	return make(comm, rank, ranks, NULL);
}

EXPORT int HcclCommInitRootInfoConfig(W ranks, const void *root, W rank, const void *config,
                                      void **comm)
{
	(void)saw("HcclCommInitRootInfoConfig", 5,
	          (const uint64_t[]){ranks, V(root), rank, V(config), V(comm)});
	return make(comm, rank, ranks, config);
}

EXPORT int HcclCommInitClusterInfo(const char *table, W rank, void **comm)
{
	(void)saw("HcclCommInitClusterInfo", 3, (const uint64_t[]){V(table), rank, V(comm)});
	return make(comm, rank, 16, NULL);
}

EXPORT int HcclCommInitClusterInfoConfig(const char *table, W rank, void *config, void **comm)
{
	(void)saw("HcclCommInitClusterInfoConfig", 4,
	          (const uint64_t[]){V(table), rank, V(config), V(comm)});
	return make(comm, rank, 16, config);
}

EXPORT int HcclCreateSubCommConfig(void **parent, W ranks, W *ids, U id, W rank, void *config,
                                   void **comm)
{
	(void)saw("HcclCreateSubCommConfig", 7,
	          (const uint64_t[]){V(parent), ranks, V(ids), id, rank, V(config), V(comm)});
	return ids ? make(comm, rank, ranks, config) : result;
}

EXPORT int HcclCommInitAll(W devices, int32_t *ids, void **comms)
{
	(void)saw("HcclCommInitAll", 3, (const uint64_t[]){devices, V(ids), V(comms)});
	for (W i = 0; i < devices; i++)
		(void)make(&comms[i], i, devices, NULL);
	return result;
}

EXPORT int HcclCommDestroy(void *comm)
{
	(void)saw("HcclCommDestroy", 1, (const uint64_t[]){V(comm)});
	if (result == 0)
		free(comm);
	return result;
}

EXPORT int HcclGetRankSize(void *comm, W *out)
{
	*out = ((struct fake_comm *)comm)->size;
	return 0;
}

EXPORT int HcclGetRankId(void *comm, W *out)
{
	*out = ((struct fake_comm *)comm)->rank;
	return 0;
}

EXPORT int HcclGetCommName(void *comm, char *out)
{
	memcpy(out, ((struct fake_comm *)comm)->name, 128);
	return 0;
}
