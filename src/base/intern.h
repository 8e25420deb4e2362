/*
 * Interned strings: equal text, equal 32-bit id.
 *
 * Ids are dense and in order of first appearance, so a column of ids can be
 * counted with a plain array. Id 0 is always the empty string. NP_ID_NONE
 * stands for "no value" in a column and is never given out.
 *
 *   slots (open addressing, power of two)      strings
 *   ┌──────────┬────┐                          ┌────────────────┐
 *   │ hash hi  │ id │ ───────────────────────▶ │ ptr,len        │ ──▶ arena
 *   └──────────┴────┘                          └────────────────┘
 *
 * Threads: one writer; readers may share a table that no longer changes.
 */
#ifndef NP_BASE_INTERN_H
#define NP_BASE_INTERN_H

#include "base/mem.h"

#define NP_ID_NONE UINT32_MAX

struct np_intern {
	struct np_arena text;
	NP_VEC(np_str) strings;
	struct np_intern_slot *slots;
	size_t mask;   /* slots - 1 */
	uint64_t seed; /* of the hash, see base/seed.h */
};

/* false: out of memory (release is still right) */
bool np_intern_init(struct np_intern *self);
void np_intern_release(struct np_intern *self);

/* The id of `text`, which is copied when it is new. NP_ID_NONE: out of memory. */
uint32_t np_intern_add(struct np_intern *self, np_str text);

/* The id of `text` when it is there, else NP_ID_NONE. */
uint32_t np_intern_find(const struct np_intern *self, np_str text);

/* The text of an id; empty for NP_ID_NONE. NUL-terminated. */
np_str np_intern_get(const struct np_intern *self, uint32_t id);

#endif
