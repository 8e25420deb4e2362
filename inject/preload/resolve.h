/*
 * The real functions behind the wrappers, and dlsym().
 *
 * Three ways lead a program to HCCL, and each must lead to the wrapper:
 *   a reference of its own (PLT)           the preloaded library is found first
 *   dlsym(RTLD_DEFAULT, name)              the same
 *   dlopen(…) and dlsym(handle, name)      dlsym() itself is replaced, for exactly these names
 * A program that asks whether an optional function exists gets the truth: a wrapper is handed
 * out only when there is a function behind it.
 *
 * Every other name, and RTLD_NEXT, is passed on by a jump: who asks is told from the return
 * address, so the real dlsym() must see the caller's.
 */
#ifndef NP_PRELOAD_RESOLVE_H
#define NP_PRELOAD_RESOLVE_H

#include <stddef.h>

struct np_symbol {
	const char *name;
	void *wrapper; /* NULL: only called by us */
	void *real;    /* atomic; NULL: not found so far */
};

/* Of the layer, defined by whoever uses this; ends with a NULL name. */
extern struct np_symbol np_symbols[];
/* The libraries where a function is looked for that is not to be seen; each ends with NULL.
 * The first are loaded when it must be, the others only looked into when they are there. */
extern const char *const np_symbol_libraries[], *const np_symbol_libraries_loaded[];

/* The real function; NULL: nowhere. Looks for it until it is found. errno and dlerror() stay. */
void *np_symbol_find(struct np_symbol *symbol);

/* The same, without looking. */
static inline void *np_symbol_real(const struct np_symbol *symbol)
{
	return __atomic_load_n(&symbol->real, __ATOMIC_ACQUIRE);
}

#endif
