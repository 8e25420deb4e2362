/*
 * Any bytes as the list of files that a host gives: whatever is accepted stays below the root.
 */
#include <stdlib.h>
#include <string.h>

#include "collect/manifest.h"
#include "collect/remote_list.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct np_remote_list list;
	struct np_err err = {0};
	const np_str text = {(const char *)data, size};
	if (np_remote_list_parse(&list, text, "host", &err) == NP_OK) {
		if (!list.root)
			abort();
		for (size_t i = 0; i < list.files.n; i++)
			if (!np_is_safe_path(np_str_of(list.files.v[i].path)) ||
			    list.files.v[i].rank < NP_REMOTE_NO_RANK ||
			    (i && strcmp(list.files.v[i - 1].path, list.files.v[i].path) >= 0))
				abort();
	}
	np_remote_list_release(&list);
	return 0;
}
