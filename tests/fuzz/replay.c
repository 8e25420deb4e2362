/*
 * Runs a fuzz target without a fuzzer: on every file of the directories (or
 * files) named as arguments, on prefixes of each, and on copies with one byte
 * changed. So the corpus is a regression test under any compiler.
 *
 * Each input lies in a block of exactly its size, so that ASan sees the first
 * byte read behind it.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
	MAX_FILE_BYTES = 4 << 20,
	CUTS = 256,    /* prefixes per file; all of them for files up to this size */
	CHANGES = 256, /* changed bytes per file */
	PATH_BYTES = 4096,
};

static unsigned long runs;

static void die(const char *what, const char *path)
{
	(void)fprintf(stderr, "replay: %s: %s\n", what, path);
	exit(2);
}

static void run_one(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1);
	if (!copy)
		die("out of memory", "");
	if (size)
		memcpy(copy, data, size);
	(void)LLVMFuzzerTestOneInput(copy, size);
	free(copy);
	runs++;
}

static void run_variants(uint8_t *data, size_t size)
{
	run_one(data, size);
	size_t step = size / CUTS + 1;
	for (size_t cut = 0; cut < size; cut += step)
		run_one(data, cut);
	static const uint8_t masks[] = {0x01, 0x20, 0x80, 0xff};
	step = size / CHANGES + 1;
	for (size_t at = 0; at < size; at += step) {
		uint8_t mask = masks[at / step % sizeof masks];
		data[at] ^= mask;
		run_one(data, size);
		data[at] ^= mask;
	}
}

static void run_file(const char *path)
{
	FILE *file = fopen(path, "rb");
	uint8_t *data = malloc(MAX_FILE_BYTES);
	if (!file || !data)
		die("cannot open", path);
	size_t size = fread(data, 1, MAX_FILE_BYTES, file);
	if (ferror(file))
		die("cannot read", path);
	(void)fclose(file);
	run_variants(data, size);
	free(data);
}

static int visible(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

static size_t run_dir(const char *path)
{
	struct dirent **entries = NULL;
	int n = scandir(path, &entries, visible, alphasort);
	if (n < 0)
		die("cannot list", path);
	for (int i = 0; i < n; i++) {
		char file[PATH_BYTES];
		int len = snprintf(file, sizeof file, "%s/%s", path, entries[i]->d_name);
		if (len < 0 || len >= PATH_BYTES)
			die("path too long", path);
		run_file(file);
		free(entries[i]);
	}
	free(entries);
	return (size_t)n;
}

int main(int argc, char **argv)
{
	size_t files = 0;
	run_one(NULL, 0);
	for (int i = 1; i < argc; i++) {
		struct stat info;
		if (stat(argv[i], &info) != 0)
			die("no such file or directory", argv[i]);
		if (S_ISDIR(info.st_mode)) {
			files += run_dir(argv[i]);
		} else {
			run_file(argv[i]);
			files++;
		}
	}
	(void)printf("replay: %zu files, %lu runs\n", files, runs);
	if (files == 0)
		die("nothing to replay", argc > 1 ? argv[1] : "no argument");
	return 0;
}
