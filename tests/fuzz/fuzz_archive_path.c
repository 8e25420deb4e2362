/* Any bytes as the path of an archive member: what is called safe must be safe. */
#include <stdlib.h>
#include <string.h>

#include "io/archive.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	np_str path = {(const char *)data, size};
	if (!np_archive_safe_path(path))
		return 0;
	if (size == 0 || data[0] == '/' || memchr(data, '\0', size))
		abort();
	for (np_str rest = path; rest.len;)
		if (np_str_is(np_str_cut(rest, '/', &rest), ".."))
			abort();
	return 0;
}
