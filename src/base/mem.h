/*
 * The one door to the heap, and the two shapes memory takes here:
 *
 *   np_arena   many small things that die together (strings, rows, nodes)
 *   NP_VEC(T)  one growing array of T
 *
 * All of them report failure by their return value; nothing aborts. Tests
 * make the n-th allocation fail with np_mem_fail_after().
 *
 * Threads: the functions are safe to call from anywhere; an arena or a vector
 * belongs to one thread at a time.
 */
#ifndef NP_BASE_MEM_H
#define NP_BASE_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

/* As malloc, calloc, realloc, free; n * size is checked. NULL on failure. */
void *np_alloc(size_t size);
void *np_calloc(size_t n, size_t size);
void *np_realloc(void *ptr, size_t n, size_t size);
void np_free(void *ptr);

/* Test hook: the n-th allocation from now (1 = the next) and all after it
 * fail; 0 switches it off. Process-wide. */
void np_mem_fail_after(uint64_t n);

/* ── arena ──────────────────────────────────────────────────────────────────
 *
 *   head ─▶ [chunk 1 MiB ####....] ─▶ [chunk ########] ─▶ [chunk ########] ─▶ NULL
 *                        ^ used
 *
 * Allocation moves a mark; release frees the chunks. Chunks double from 4 KiB
 * to 1 MiB. A request larger than that gets a chunk of its own.
 */
struct np_arena {
	struct np_arena_chunk *head;
	size_t total_bytes; /* of all chunks */
};

void np_arena_init(struct np_arena *self);
void np_arena_release(struct np_arena *self);

/* 16-byte aligned, not cleared; NULL on failure. size 0 gives a valid pointer. */
void *np_arena_alloc(struct np_arena *self, size_t size);
/* cleared */
void *np_arena_zalloc(struct np_arena *self, size_t size);

/* Copies with a NUL behind the last byte; ptr is NULL on failure. */
np_str np_arena_dup(struct np_arena *self, np_str text);
const char *np_arena_cstr(struct np_arena *self, np_str text);
const char *np_arena_printf(struct np_arena *self, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* ── vector ───────────────────────────────────────────────────────────────── */

#define NP_VEC(T)           \
	struct {            \
		T *v;       \
		size_t n;   \
		size_t cap; \
	}

/* Room for `need` elements in all; false on failure (the vector is unchanged). */
#define np_vec_reserve(vec, need) \
	((need) <= (vec)->cap ||  \
	 np_vec_grow((void **)&(vec)->v, &(vec)->cap, (need), sizeof *(vec)->v))

/* Append one; false on failure. */
#define np_vec_push(vec, ...) \
	(np_vec_reserve((vec), (vec)->n + 1) ? ((vec)->v[(vec)->n++] = (__VA_ARGS__), true) : false)

#define np_vec_release(vec)        \
	do {                       \
		np_free((vec)->v); \
		(vec)->v = NULL;   \
		(vec)->n = 0;      \
		(vec)->cap = 0;    \
	} while (0)

/* The function behind np_vec_reserve(): grows by halves, at least to `need`. */
bool np_vec_grow(void **ptr, size_t *cap, size_t need, size_t elem_size);

#endif
