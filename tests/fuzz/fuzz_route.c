/* Any bytes as a source file: the first one says as what. Hits have lines of the file. */
#include <stdlib.h>

#include "collect/route.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const files[] = {"executor/a.py", "b.py", "models/c.yaml",
	                                    "tests/d.json"};
	struct np_route route = {0};
	uint64_t lines = 1;
	if (size == 0)
		return 0;
	np_str text = {(const char *)data + 1, size - 1};
	for (size_t i = 0; i < text.len; i++)
		lines += text.ptr[i] == '\n';
	np_arena_init(&route.arena);
	if (np_route_scan(&route, files[data[0] % 4], text, NULL) == NP_OK)
		for (size_t i = 0; i < route.hits.n; i++)
			if (route.hits.v[i].line == 0 || route.hits.v[i].line > lines)
				abort();
	(void)np_route_choose(&route);
	np_route_release(&route);
	return 0;
}
