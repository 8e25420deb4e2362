/* What every unit test includes: cmocka with its own prerequisites, and where
 * the data are. */
#ifndef NP_TESTS_UNIT_H
#define NP_TESTS_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/str.h"

#define assert_str(text, expected)                                                           \
	do {                                                                                 \
		np_str text_ = (text);                                                       \
		const char *expected_ = (expected);                                          \
		if (!np_str_is(text_, expected_))                                            \
			fail_msg("got \"%.*s\", expected \"%s\"", NP_FMT(text_), expected_); \
	} while (0)

/*
 * A path below the folder of real captures ($NPUPROF_SHARED, else ../shared
 * beside the source tree), or NULL where that is absent: then call skip().
 * Static memory, good until the next call.
 */
static inline const char *shared_path(const char *relative)
{
	static char path[4096];
	const char *root = getenv("NPUPROF_SHARED");
	const char *source = getenv("NPUPROF_SOURCE");
	if (root)
		(void)snprintf(path, sizeof path, "%s/%s", root, relative);
	else
		(void)snprintf(path, sizeof path, "%s/../shared/%s", source ? source : ".",
		               relative);
	return access(path, R_OK) == 0 ? path : NULL;
}

#endif
