#include "groups.h"

#include <pthread.h>
#include <string.h>

static void *const DROPPED = (void *)1;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct np_rec_group groups[NP_REC_GROUPS_MAX]; /* open addressing */
static unsigned live;

static unsigned first_slot(const void *key)
{
	uint64_t bits = (uint64_t)(uintptr_t)key * 0x9e3779b97f4a7c15ull;
	return (unsigned)(bits >> 40) % NP_REC_GROUPS_MAX;
}

struct np_rec_group *np_rec_group_find(void *key)
{
	if (!key || key == DROPPED)
		return NULL;
	unsigned slot = first_slot(key);
	for (unsigned i = 0; i < NP_REC_GROUPS_MAX; i++, slot = (slot + 1) % NP_REC_GROUPS_MAX) {
		void *found = __atomic_load_n(&groups[slot].key, __ATOMIC_ACQUIRE);
		if (found == key)
			return &groups[slot];
		if (!found)
			return NULL;
	}
	return NULL;
}

static void drop_locked(void *key, struct np_rec_group *out)
{
	struct np_rec_group *group = np_rec_group_find(key);
	if (!group)
		return;
	if (out) {
		*out = *group;
		out->calls = __atomic_load_n(&group->calls, __ATOMIC_RELAXED);
	}
	__atomic_store_n(&group->key, DROPPED, __ATOMIC_RELEASE);
	live--;
}

int np_rec_group_drop(void *key, struct np_rec_group *out)
{
	(void)pthread_mutex_lock(&lock);
	int known = np_rec_group_find(key) != NULL;
	drop_locked(key, out);
	(void)pthread_mutex_unlock(&lock);
	return known;
}

static struct np_rec_group *add_locked(const struct np_rec_group *group)
{
	drop_locked(group->key, NULL);
	if (live >= NP_REC_GROUPS_MAX / 4 * 3)
		return NULL;
	unsigned slot = first_slot(group->key);
	for (unsigned i = 0; i < NP_REC_GROUPS_MAX; i++, slot = (slot + 1) % NP_REC_GROUPS_MAX) {
		struct np_rec_group *here = &groups[slot];
		if (here->key && here->key != DROPPED)
			continue;
		here->name = group->name;
		here->hash = group->hash;
		here->rank = group->rank;
		here->world = group->world;
		here->device = group->device;
		__atomic_store_n(&here->calls, group->calls, __ATOMIC_RELAXED);
		__atomic_store_n(&here->key, group->key, __ATOMIC_RELEASE);
		live++;
		return here;
	}
	return NULL;
}

struct np_rec_group *np_rec_group_add(const struct np_rec_group *group)
{
	if (!group->key || group->key == DROPPED)
		return NULL;
	(void)pthread_mutex_lock(&lock);
	struct np_rec_group *out = add_locked(group);
	(void)pthread_mutex_unlock(&lock);
	return out;
}

uint64_t np_rec_group_hash(const char *name, size_t length)
{
	uint32_t high = 0, low = 0;
	for (size_t i = 0; i < length; i++) {
		high = high * 29 + (unsigned char)name[i];
		low = low * 131 + (unsigned char)name[i];
	}
	return (uint64_t)high << 32 | low;
}

void np_rec_groups_after_fork(void)
{
	lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	for (unsigned i = 0; i < NP_REC_GROUPS_MAX; i++)
		if (groups[i].key)
			groups[i].key = NULL;
	live = 0;
}
