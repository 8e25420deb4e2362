/*
 * Errors: a status code that is returned, and a message that is filled in.
 *
 * Every fallible function returns `enum np_status` (0 is success) and takes a
 * `struct np_err *` that may be NULL. The message says where (file, and byte
 * or row) and what, in lower case without a full stop; the caller decides
 * whether it is printed. Nothing here allocates, so an error can always be
 * told, also the one about memory.
 *
 * Threads: a struct np_err belongs to one thread at a time.
 */
#ifndef NP_BASE_ERR_H
#define NP_BASE_ERR_H

#include <stdint.h>

/* name, text that names the kind of failure to a person */
#define NP_STATUS_MAP(X)                   \
	X(OK, "ok")                        \
	X(E_NOMEM, "out of memory")        \
	X(E_IO, "input/output error")      \
	X(E_NOTFOUND, "not found")         \
	X(E_ACCESS, "permission denied")   \
	X(E_FORMAT, "malformed input")     \
	X(E_TRUNCATED, "input ends early") \
	X(E_RANGE, "value out of range")   \
	X(E_LIMIT, "limit exceeded")       \
	X(E_USAGE, "wrong usage")          \
	X(E_UNSUPPORTED, "not supported")  \
	X(E_EMPTY, "nothing there")        \
	X(E_EXISTS, "exists already")

enum np_status {
#define X(name, text) NP_##name,
	NP_STATUS_MAP(X)
#undef X
};

struct np_err {
	enum np_status code;
	char where[512]; /* file, "file:offset", option; "" when there is none */
	char msg[512];   /* what went wrong, and what to do when that is known */
};

/* The text of a code, e.g. "malformed input". Never NULL. */
const char *np_status_text(enum np_status code);

/* The name of a code, e.g. "E_FORMAT". Never NULL. */
const char *np_status_name(enum np_status code);

/*
 * Fill *err (may be NULL) and return `code`, so that `return np_err_set(...)`
 * reads well. `where` may be NULL. Texts too long for the struct are cut.
 */
enum np_status np_err_set(struct np_err *err, enum np_status code, const char *where,
                          const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* The same with "where:offset". */
enum np_status np_err_at(struct np_err *err, enum np_status code, const char *where,
                         uint64_t offset, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));

/* Turn an errno into the fitting code: "cannot <what>: <strerror>". */
enum np_status np_err_sys(struct np_err *err, int errnum, const char *where, const char *what);

/* "out of memory", for the many places that can say no more. */
enum np_status np_err_nomem(struct np_err *err);

#ifdef __clang_analyzer__
/*
 * It looks into one file at a time, so it would go on with what these return as
 * if that could be NP_OK, and find NULL wherever something was not allocated.
 */
#define np_err_set(err, code, ...) ((void)np_err_set(err, code, __VA_ARGS__), (code))
#define np_err_sys(err, ...)       ((void)np_err_sys(err, __VA_ARGS__), NP_E_IO)
#define np_err_nomem(err)          ((void)np_err_nomem(err), NP_E_NOMEM)
#endif

/* Forward a failure. For functions that own nothing at that point. */
#define NP_TRY(call)                                \
	do {                                        \
		enum np_status np_try_st_ = (call); \
		if (np_try_st_ != NP_OK)            \
			return np_try_st_;          \
	} while (0)

#endif
