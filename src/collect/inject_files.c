/*
 * The assembler copies the files as they are (see report/embed.c). cmake/Inject.cmake lists
 * them in inject_files.inc, one NP_INJECT_FILE(symbol, name, path) each.
 */
#include "collect/inject_files.h"

#include <stdio.h>
#include <string.h>

#include "base/fs.h"

#ifndef NP_INJECT_LIBRARY
#define NP_INJECT_LIBRARY "/dev/null" /* for tools that do not know the build */
#endif

#if __has_include(<inject_files.inc>)
#define NP_INJECT_FILE(symbol, name, path)                                                    \
	__asm__(".pushsection .rodata\n"                                                      \
	        "np_inject_" #symbol "_begin:\n.incbin \"" path "\"\n"                        \
	        "np_inject_" #symbol "_end:\n.byte 0\n.popsection\n");                        \
	extern const char np_inject_##symbol##_begin[] __attribute__((visibility("hidden"))); \
	extern const char np_inject_##symbol##_end[] __attribute__((visibility("hidden")));
#include <inject_files.inc>
#undef NP_INJECT_FILE
#endif

static const struct {
	const char *name, *begin, *end;
} files[] = {
#if __has_include(<inject_files.inc>)
#define NP_INJECT_FILE(symbol, name, path) \
	{name, np_inject_##symbol##_begin, np_inject_##symbol##_end},
#include <inject_files.inc>
#undef NP_INJECT_FILE
#else
	{"", "", ""},
#endif
};

size_t np_inject_n_files(void)
{
	return sizeof files / sizeof *files;
}

struct np_inject_file np_inject_file(size_t i)
{
	/* the two symbols are the ends of one object, which the compiler cannot know */
	return (struct np_inject_file){
		files[i].name,
		{files[i].begin, (size_t)((uintptr_t)files[i].end - (uintptr_t)files[i].begin)}};
}

static enum np_status make_parent(const char *path, struct np_err *err)
{
	char dir[4096];
	const char *slash = strrchr(path, '/');
	(void)snprintf(dir, sizeof dir, "%.*s", (int)(slash - path), path);
	return np_mkdirs(dir, err);
}

static enum np_status unpack(const char *dir, struct np_inject_file file, struct np_err *err)
{
	char path[4096];
	struct np_file_stat stat;
	struct np_outfile out;
	if ((size_t)snprintf(path, sizeof path, "%s/%s", dir, file.name) >= sizeof path)
		return np_err_set(err, NP_E_LIMIT, dir, "the path is too long");
	NP_TRY(make_parent(path, err));
	NP_TRY(np_file_stat(path, false, &stat, err));
	if (stat.kind != NP_FILE_NONE)
		return np_err_set(err, NP_E_EXISTS, path, "is there already");
	NP_TRY(np_outfile_begin(&out, path, err));
	out.hasty = true;
	(void)fwrite(file.bytes.ptr, 1, file.bytes.len, out.file);
	return np_outfile_commit(&out, err);
}

enum np_status np_inject_unpack(const char *dir, struct np_err *err)
{
	NP_TRY(np_mkdirs(dir, err));
	for (size_t i = 0; i < np_inject_n_files(); i++)
		NP_TRY(unpack(dir, np_inject_file(i), err));
	return NP_OK;
}
