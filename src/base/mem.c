#include "base/mem.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* 0: off; n: the n-th allocation fails, and all that follow */
static _Atomic uint64_t fail_countdown;

static bool must_fail(void)
{
	uint64_t left = atomic_load_explicit(&fail_countdown, memory_order_relaxed);
	if (left == 0)
		return false;
	if (left == 1)
		return true;
	atomic_store_explicit(&fail_countdown, left - 1, memory_order_relaxed);
	return false;
}

void np_mem_fail_after(uint64_t n)
{
	atomic_store(&fail_countdown, n);
}

void *np_alloc(size_t size)
{
	return must_fail() ? NULL : malloc(size ? size : 1);
}

void *np_calloc(size_t n, size_t size)
{
	return must_fail() ? NULL : calloc(n ? n : 1, size ? size : 1);
}

void *np_realloc(void *ptr, size_t n, size_t size)
{
	size_t bytes = 0;
	if (must_fail() || __builtin_mul_overflow(n, size, &bytes))
		return NULL;
	return realloc(ptr, bytes ? bytes : 1);
}

void np_free(void *ptr)
{
	free(ptr);
}

/* ── arena ── */

struct np_arena_chunk {
	struct np_arena_chunk *next;
	size_t used, size; /* of data */
	_Alignas(16) unsigned char data[];
};

enum { ARENA_ALIGN = 16, ARENA_FIRST = 4096, ARENA_LARGEST = 1 << 20 };

void np_arena_init(struct np_arena *self)
{
	self->head = NULL;
	self->total_bytes = 0;
}

void np_arena_release(struct np_arena *self)
{
	struct np_arena_chunk *chunk = self->head;
	while (chunk) {
		struct np_arena_chunk *next = chunk->next;
		np_free(chunk);
		chunk = next;
	}
	np_arena_init(self);
}

static struct np_arena_chunk *chunk_new(size_t size)
{
	struct np_arena_chunk *chunk = np_alloc(sizeof *chunk + size);
	if (chunk) {
		chunk->next = NULL;
		chunk->used = 0;
		chunk->size = size;
	}
	return chunk;
}

void *np_arena_alloc(struct np_arena *self, size_t size)
{
	if (size > SIZE_MAX / 2)
		return NULL;
	size_t need = (size + ARENA_ALIGN - 1) & ~(size_t)(ARENA_ALIGN - 1);
	struct np_arena_chunk *head = self->head;
	if (head && head->size - head->used >= need) {
		void *ptr = head->data + head->used;
		head->used += need;
		return ptr;
	}
	size_t grown = head ? head->size * 2 : ARENA_FIRST;
	if (grown > ARENA_LARGEST)
		grown = ARENA_LARGEST;
	bool own = need > grown / 2 && head; /* keep filling the old chunk */
	struct np_arena_chunk *chunk = chunk_new(own || need > grown ? need : grown);
	if (!chunk)
		return NULL;
	chunk->used = need;
	self->total_bytes += chunk->size;
	if (own) {
		chunk->next = head->next;
		head->next = chunk;
	} else {
		chunk->next = head;
		self->head = chunk;
	}
	return chunk->data;
}

void *np_arena_zalloc(struct np_arena *self, size_t size)
{
	void *ptr = np_arena_alloc(self, size);
	if (ptr)
		memset(ptr, 0, size);
	return ptr;
}

np_str np_arena_dup(struct np_arena *self, np_str text)
{
	char *copy = np_arena_alloc(self, text.len + 1);
	if (!copy)
		return (np_str){NULL, 0};
	if (text.len)
		memcpy(copy, text.ptr, text.len);
	copy[text.len] = '\0';
	return (np_str){copy, text.len};
}

const char *np_arena_cstr(struct np_arena *self, np_str text)
{
	return np_arena_dup(self, text).ptr;
}

const char *np_arena_printf(struct np_arena *self, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	int len = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (len < 0)
		return NULL;
	char *text = np_arena_alloc(self, (size_t)len + 1);
	if (!text)
		return NULL;
	va_start(ap, fmt);
	(void)vsnprintf(text, (size_t)len + 1, fmt, ap);
	va_end(ap);
	return text;
}

bool np_vec_grow(void **ptr, size_t *cap, size_t need, size_t elem_size)
{
	size_t grown = *cap + *cap / 2 + 8;
	if (grown < need)
		grown = need;
	void *bigger = np_realloc(*ptr, grown, elem_size);
	if (!bigger)
		return false;
	*ptr = bigger;
	*cap = grown;
	return true;
}
