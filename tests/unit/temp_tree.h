/*
 * Trees of files that a test makes for itself, below $TMPDIR; and captures in
 * them, as small as they may be.
 */
#ifndef NP_TESTS_TEMP_TREE_H
#define NP_TESTS_TEMP_TREE_H

#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>

#include "unit.h"

enum { TREE_PATH = 4096 };

/* A new empty directory; the caller's buffer. */
static inline char *tree_new(char path[TREE_PATH])
{
	const char *base = getenv("TMPDIR");
	(void)snprintf(path, TREE_PATH, "%s/npuprof-tree-XXXXXX", base && *base ? base : "/tmp");
	assert_non_null(mkdtemp(path));
	return path;
}

static inline int tree_erase(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static inline void tree_remove(const char *path)
{
	assert_int_equal(nftw(path, tree_erase, 16, FTW_DEPTH | FTW_PHYS), 0);
}

/* root/relative, with all directories that lead there. Static memory. */
static inline const char *tree_path(const char *root, const char *relative)
{
	static char path[2 * TREE_PATH];
	(void)snprintf(path, sizeof path, "%s/%s", root, relative);
	for (char *slash = path + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		(void)mkdir(path, 0700);
		*slash = '/';
	}
	return path;
}

static inline void tree_put(const char *root, const char *relative, const char *text)
{
	FILE *file = fopen(tree_path(root, relative), "wb");
	assert_non_null(file);
	assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
	assert_int_equal(fclose(file), 0);
}

static inline void tree_dir(const char *root, const char *relative)
{
	assert_int_equal(mkdir(tree_path(root, relative), 0700), 0);
}

static inline void tree_link(const char *root, const char *relative, const char *target)
{
	assert_int_equal(symlink(target, tree_path(root, relative)), 0);
}

static inline void tree_set_time(const char *root, const char *relative, time_t seconds)
{
	struct timespec times[2] = {{.tv_sec = seconds}, {.tv_sec = seconds}};
	assert_int_equal(utimensat(AT_FDCWD, tree_path(root, relative), times, 0), 0);
}

#define TREE_KERNELS                                                                       \
	"Step Id,Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us)\r\n" \
	"1,MatMul_1,MatMulV3,AI_CORE,1700000000000000.125\t,12.5,0\r\n"

/* <dir>/ASCEND_PROFILER_OUTPUT/kernel_details.csv, and profiler_info unless rank < 0. */
static inline void tree_torch(const char *root, const char *dir, int rank)
{
	char name[TREE_PATH];
	(void)snprintf(name, sizeof name, "%s/ASCEND_PROFILER_OUTPUT/kernel_details.csv", dir);
	tree_put(root, name, TREE_KERNELS);
	(void)snprintf(name, sizeof name, "%s/profiler_info_%d.json", dir, rank);
	if (rank >= 0)
		tree_put(root, name, "{}");
}

/* ── everything below a path as text, times and sizes included ── */

static char *tree_listing_;
static size_t tree_listing_len_;

static inline int tree_list_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	char line[TREE_PATH + 128];
	(void)ftw;
	int len = snprintf(line, sizeof line, "%s %d %o %lld %lld.%09ld\n", path, type, st->st_mode,
	                   (long long)st->st_size, (long long)st->st_mtim.tv_sec,
	                   st->st_mtim.tv_nsec);
	assert_true(len > 0 && (size_t)len < sizeof line);
	char *grown = realloc(tree_listing_, tree_listing_len_ + (size_t)len + 1);
	assert_non_null(grown);
	memcpy(grown + tree_listing_len_, line, (size_t)len + 1);
	tree_listing_ = grown;
	tree_listing_len_ += (size_t)len;
	return 0;
}

/* free() it. */
static inline char *tree_listing(const char *path)
{
	tree_listing_ = NULL;
	tree_listing_len_ = 0;
	assert_int_equal(nftw(path, tree_list_one, 16, FTW_PHYS), 0);
	return tree_listing_;
}

#endif
