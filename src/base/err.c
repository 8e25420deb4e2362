#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#ifdef __clang_analyzer__ /* they are defined here, see err.h */
#undef np_err_set
#undef np_err_sys
#undef np_err_nomem
#endif

#define COUNT(a) (sizeof(a) / sizeof *(a))

const char *np_status_text(enum np_status code)
{
	static const char *const text[] = {
#define X(name, text) text,
		NP_STATUS_MAP(X)
#undef X
	};
	return (unsigned)code < COUNT(text) ? text[code] : "unknown error";
}

const char *np_status_name(enum np_status code)
{
	static const char *const name[] = {
#define X(name, text) #name,
		NP_STATUS_MAP(X)
#undef X
	};
	return (unsigned)code < COUNT(name) ? name[code] : "E_UNKNOWN";
}

static void fill(struct np_err *err, enum np_status code, const char *fmt, va_list ap)
	__attribute__((format(printf, 3, 0)));

static void fill(struct np_err *err, enum np_status code, const char *fmt, va_list ap)
{
	err->code = code;
	(void)vsnprintf(err->msg, sizeof err->msg, fmt, ap);
}

enum np_status np_err_set(struct np_err *err, enum np_status code, const char *where,
                          const char *fmt, ...)
{
	if (!err)
		return code;
	va_list ap;
	va_start(ap, fmt);
	fill(err, code, fmt, ap);
	va_end(ap);
	(void)snprintf(err->where, sizeof err->where, "%s", where ? where : "");
	return code;
}

enum np_status np_err_at(struct np_err *err, enum np_status code, const char *where,
                         uint64_t offset, const char *fmt, ...)
{
	if (!err)
		return code;
	va_list ap;
	va_start(ap, fmt);
	fill(err, code, fmt, ap);
	va_end(ap);
	(void)snprintf(err->where, sizeof err->where, "%s:%llu", where ? where : "",
	               (unsigned long long)offset);
	return code;
}

enum np_status np_err_sys(struct np_err *err, int errnum, const char *where, const char *what)
{
	enum np_status code = NP_E_IO;
	if (errnum == ENOENT || errnum == ENOTDIR)
		code = NP_E_NOTFOUND;
	else if (errnum == EACCES || errnum == EPERM)
		code = NP_E_ACCESS;
	else if (errnum == ENOMEM)
		code = NP_E_NOMEM;
	else if (errnum == EEXIST)
		code = NP_E_EXISTS;
	char text[128] = "";
	/* the GNU strerror_r returns the text, wherever it put it */
	const char *reason = strerror_r(errnum, text, sizeof text);
	return np_err_set(err, code, where, "cannot %s: %s", what, reason);
}

enum np_status np_err_nomem(struct np_err *err)
{
	return np_err_set(err, NP_E_NOMEM, NULL, "out of memory");
}
