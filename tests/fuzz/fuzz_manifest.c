/*
 * Any bytes as a delivery list: whatever is accepted stays below the directory.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "collect/manifest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char dir[] = "/tmp/npuprof-fuzz-XXXXXX";

static void remove_dir(void)
{
	np_remove_tree(dir);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char path[64];
	struct np_manifest manifest;
	struct np_err err = {0};
	if (!*path) {
		if (!mkdtemp(dir) || atexit(remove_dir) != 0)
			abort();
		(void)snprintf(path, sizeof path, "%s/%s", dir, NP_MANIFEST_NAME);
	}
	FILE *file = fopen(path, "wb");
	if (!file || fwrite(data, 1, size, file) != size || fclose(file) != 0)
		abort();
	np_manifest_init(&manifest);
	if (np_manifest_read(&manifest, dir, &err) == NP_OK)
		for (size_t i = 0; i < manifest.files.n; i++)
			if (!np_is_safe_path(np_str_of(manifest.files.v[i].path)) ||
			    strlen(manifest.files.v[i].digests.sha256) != NP_SHA256_HEX)
				abort();
	np_manifest_release(&manifest);
	return 0;
}
