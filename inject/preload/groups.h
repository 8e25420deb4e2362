/*
 * The communicators of this process: what is known of each, and how many calls it has had.
 *
 * Finding one takes no lock. A communicator is added and dropped under one; that a thread
 * uses one which another destroys meanwhile is against the rules of every such library.
 */
#ifndef NP_PRELOAD_GROUPS_H
#define NP_PRELOAD_GROUPS_H

#include "text.h"

enum { NP_REC_GROUPS_MAX = 4096 }; /* slots; three quarters are used */

struct np_rec_group {
	void *key; /* the communicator's handle */
	const struct np_text *name;
	uint64_t hash;               /* np_rec_group_hash() of the name, 0 without one */
	int32_t rank, world, device; /* -1 unknown */
	uint64_t calls;              /* so far: the number of the next one; atomic */
};

/* NULL: not known. Handles NULL and 1 are never known. */
struct np_rec_group *np_rec_group_find(void *key);

/* Adds it, in place of one that had the same handle; `calls` too is taken over. NULL: too many. */
struct np_rec_group *np_rec_group_add(const struct np_rec_group *group);

/* Forgets it; what was known goes to *out, which may be NULL. Was it known? */
int np_rec_group_drop(void *key, struct np_rec_group *out);

/* The id of a communicator's name in captures: torch_npu's 2 × 32 bit polynomial hash. */
uint64_t np_rec_group_hash(const char *name, size_t length);

/* A child has none: communicators do not survive fork(). */
void np_rec_groups_after_fork(void);

#endif
