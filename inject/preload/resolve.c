#include "resolve.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "recorder.h"

typedef void *dlsym_fn(void *handle, const char *name);

/* The first version of dlsym() of this machine's glibc; since 2.34 it lies in libc too. */
#if defined __x86_64__
#define DLSYM_VERSION "GLIBC_2.2.5"
#elif defined __aarch64__
#define DLSYM_VERSION "GLIBC_2.17"
#endif

static dlsym_fn *real_dlsym(void)
{
	static dlsym_fn *real;
	dlsym_fn *found = __atomic_load_n(&real, __ATOMIC_ACQUIRE);
	if (found)
		return found;
	void *symbol = NULL;
#ifdef DLSYM_VERSION
	symbol = dlvsym(RTLD_NEXT, "dlsym", DLSYM_VERSION);
#endif
	if (!symbol)
		symbol = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
	memcpy(&found, &symbol, sizeof found);
	__atomic_store_n(&real, found, __ATOMIC_RELEASE);
	return found;
}

static void *look(void *handle, const struct np_symbol *symbol)
{
	dlsym_fn *real = real_dlsym();
	void *found = real ? real(handle, symbol->name) : NULL;
	return found == symbol->wrapper ? NULL : found; /* never ourselves */
}

static void *look_in(const char *library, int flags, const struct np_symbol *symbol)
{
	void *handle = dlopen(library, flags);
	void *found = handle ? look(handle, symbol) : NULL;
	if (handle && !found)
		(void)dlclose(handle);
	return found; /* with its library: what is called must stay */
}

static void *search(const struct np_symbol *symbol)
{
	void *found = look(RTLD_NEXT, symbol);
	for (size_t i = 0; !found && np_symbol_libraries[i]; i++)
		found = look_in(np_symbol_libraries[i], RTLD_LAZY | RTLD_NOLOAD, symbol);
	for (size_t i = 0; !found && np_symbol_libraries_loaded[i]; i++)
		found = look_in(np_symbol_libraries_loaded[i], RTLD_LAZY | RTLD_NOLOAD, symbol);
	if (symbol->wrapper)
		for (size_t i = 0; !found && np_symbol_libraries[i]; i++)
			found = look_in(np_symbol_libraries[i], RTLD_LAZY, symbol);
	return found;
}

/* The first one that is found stays. */
static void *settle(struct np_symbol *symbol, void *found)
{
	void *before = NULL;
	if (__atomic_compare_exchange_n(&symbol->real, &before, found, false, __ATOMIC_ACQ_REL,
	                                __ATOMIC_ACQUIRE))
		return found;
	return before;
}

void *np_symbol_find(struct np_symbol *symbol)
{
	void *found = np_symbol_real(symbol);
	if (found)
		return found;
	int error = errno;
	found = search(symbol);
	(void)dlerror();
	errno = error;
	return found ? settle(symbol, found) : NULL;
}

/* ── dlsym ── */

struct choice {
	void *jump;  /* to the real dlsym(); NULL: */
	void *value; /* the answer */
};
struct choice np_dlsym_choose(void *handle, const char *name);

static struct np_symbol *symbol_of(const char *name)
{
	for (struct np_symbol *symbol = np_symbols; symbol->name; symbol++)
		if (symbol->wrapper && strcmp(symbol->name, name) == 0)
			return symbol;
	return NULL;
}

/* Its library stays, whatever the program closes: wrappers lead to it. */
static void pin(void *function)
{
	Dl_info info;
	if (dladdr(function, &info) && info.dli_fname)
		/* cppcheck-suppress leakReturnValNotUsed ; it is meant to stay */
		(void)dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
	(void)dlerror();
}

static void *answer(void *handle, struct np_symbol *symbol, dlsym_fn *real)
{
	void *found = handle == RTLD_DEFAULT ? symbol->wrapper : real(handle, symbol->name);
	if (!found)
		return NULL;
	if (found == symbol->wrapper) /* in the scope of all; what for? */
		return np_symbol_find(symbol) ? found : real(RTLD_NEXT, symbol->name);
	bool known = np_symbol_real(symbol) == found;
	if (known || settle(symbol, found) == found) {
		if (!known)
			pin(found);
		return symbol->wrapper;
	}
	NP_REC_TELL("there is a second %s; calls of it are not recorded", symbol->name);
	return found;
}

/* Called by the code below, in front of every dlsym() of the process. */
struct choice np_dlsym_choose(void *handle, const char *name)
{
	dlsym_fn *real = real_dlsym();
	struct choice pass = {.jump = NULL};
	memcpy(&pass.jump, &real, sizeof pass.jump);
	if (!real || !name || handle == RTLD_NEXT)
		return pass;
	struct np_symbol *symbol = symbol_of(name);
	if (!symbol || !np_rec_on())
		return pass;
	return (struct choice){.value = answer(handle, symbol, real)};
}

/*
 * A C function could not promise the jump: no compiler of ours has to make a tail call. The
 * arguments are kept over np_dlsym_choose(), whose two pointers come back in two registers.
 */
#if defined __x86_64__
__asm__(".text\n"
        ".globl dlsym\n"
        ".type dlsym, @function\n"
        ".p2align 4\n"
        "dlsym:\n"
        "	.cfi_startproc\n"
        "	endbr64\n"
        "	pushq %rdi\n"
        "	.cfi_adjust_cfa_offset 8\n"
        "	pushq %rsi\n"
        "	.cfi_adjust_cfa_offset 8\n"
        "	subq $8, %rsp\n" /* the stack is aligned to 16 at a call */
        "	.cfi_adjust_cfa_offset 8\n"
        "	call np_dlsym_choose\n"
        "	addq $8, %rsp\n"
        "	.cfi_adjust_cfa_offset -8\n"
        "	popq %rsi\n"
        "	.cfi_adjust_cfa_offset -8\n"
        "	popq %rdi\n"
        "	.cfi_adjust_cfa_offset -8\n"
        "	testq %rax, %rax\n"
        "	je 1f\n"
        "	jmp *%rax\n"
        "1:	movq %rdx, %rax\n"
        "	ret\n"
        "	.cfi_endproc\n"
        ".size dlsym, .-dlsym\n");
#elif defined __aarch64__
__asm__(".text\n"
        ".globl dlsym\n"
        ".type dlsym, %function\n"
        ".p2align 4\n"
        "dlsym:\n"
        "	.cfi_startproc\n"
        "	hint #34\n" /* bti c */
        "	stp x29, x30, [sp, #-32]!\n"
        "	.cfi_def_cfa_offset 32\n"
        "	.cfi_offset 29, -32\n"
        "	.cfi_offset 30, -24\n"
        "	mov x29, sp\n"
        "	stp x0, x1, [sp, #16]\n"
        "	bl np_dlsym_choose\n"
        "	mov x16, x0\n"
        "	mov x17, x1\n"
        "	ldp x0, x1, [sp, #16]\n"
        "	ldp x29, x30, [sp], #32\n"
        "	.cfi_restore 30\n"
        "	.cfi_restore 29\n"
        "	.cfi_def_cfa_offset 0\n"
        "	cbz x16, 1f\n"
        "	br x16\n"
        "1:	mov x0, x17\n"
        "	ret\n"
        "	.cfi_endproc\n"
        ".size dlsym, .-dlsym\n");
#endif
/* On another machine dlsym() is left alone: what goes through a handle is not seen there. */
