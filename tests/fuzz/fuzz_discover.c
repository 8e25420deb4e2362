/*
 * Any bytes as a small directory tree: discovery and its report must cope.
 *
 *   >name 1c           make a directory and enter it
 *   <1c                go up
 *   @name 0a target 1c  a symbolic link, never out of the tree
 *   =name 0a content 1c a file (1c at the end of the input may be missing)
 *
 * A name "%x" stands for a well-known one, see `known`. When the input begins
 * with '!' its first file is looked at instead of the tree.
 */
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/describe.h"
#include "report/writer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_ENTRIES = 64, MAX_DEPTH = 12, MAX_NAME = 120, SEPARATOR = 0x1c };

static const char *const known[] = {
	"w_1_20250601080000000_ascend_pt",
	"w_2_20250601080000001_ascend_ms",
	"ASCEND_PROFILER_OUTPUT",
	"mindstudio_profiler_output",
	"PROF_000001_20250601080000000_ABCDEFGH",
	"FRAMEWORK",
	"logs",
	"host",
	"device_0",
	"data",
	"cluster_analysis_output",
	"kernel_details.csv",
	"op_summary_20250601080000.csv",
	"trace_view.json",
	"step_trace_time.csv",
	"communication.json",
	"communication_matrix.json",
	"profiler_info_0.json",
	"profiler_info.json",
	"profiler_metadata.json",
	"info.json",
	"sample.json",
	"ascend_pytorch_profiler_0.db",
	"analysis.db",
	"msprof_20250601080000.json",
	"memory_record.csv",
};

struct tree {
	int dirs[MAX_DEPTH + 1]; /* descriptors from the top down */
	int depth, entries;
	char first[4096]; /* path of the first file, "" without */
	char here[MAX_DEPTH][MAX_NAME + 1];
	const char *top;
};

/* A name that is safe to create, into out[MAX_NAME + 1]. */
static bool get_name(np_str text, char *out)
{
	if (text.len == 2 && text.ptr[0] == '%') {
		size_t n = sizeof known / sizeof *known;
		(void)snprintf(out, MAX_NAME + 1, "%s", known[(unsigned char)text.ptr[1] % n]);
		return true;
	}
	if (text.len == 0 || text.len > MAX_NAME || memchr(text.ptr, '/', text.len) ||
	    memchr(text.ptr, '\0', text.len) || np_str_is(text, ".") || np_str_is(text, ".."))
		return false;
	memcpy(out, text.ptr, text.len);
	out[text.len] = '\0';
	return true;
}

static void enter(struct tree *tree, np_str text)
{
	char name[MAX_NAME + 1];
	int here = tree->dirs[tree->depth];
	if (tree->depth == MAX_DEPTH || !get_name(text, name))
		return;
	(void)mkdirat(here, name, 0700);
	int dir = openat(here, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0)
		return;
	memcpy(tree->here[tree->depth++], name, sizeof name);
	tree->dirs[tree->depth] = dir;
}

static void make_link(struct tree *tree, np_str text, np_str target)
{
	char name[MAX_NAME + 1], to[MAX_NAME + 1];
	if (!get_name(text, name))
		return;
	if (np_str_is(target, "..") && tree->depth > 0)
		(void)snprintf(to, sizeof to, "..");
	else if (!get_name(target, to))
		(void)snprintf(to, sizeof to, ".");
	if (symlinkat(to, tree->dirs[tree->depth], name) != 0)
		return; /* the name is there already, or is none */
}

static void make_file(struct tree *tree, np_str text, np_str content)
{
	char name[MAX_NAME + 1];
	if (!get_name(text, name))
		return;
	int fd = openat(tree->dirs[tree->depth], name,
	                O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return;
	if (write(fd, content.ptr, content.len) != (ssize_t)content.len)
		abort(); /* the test's disk is full */
	(void)close(fd);
	if (tree->first[0])
		return;
	size_t len = (size_t)snprintf(tree->first, sizeof tree->first, "%s", tree->top);
	for (int i = 0; i < tree->depth; i++)
		len += (size_t)snprintf(tree->first + len, sizeof tree->first - len, "/%s",
		                        tree->here[i]);
	(void)snprintf(tree->first + len, sizeof tree->first - len, "/%s", name);
}

static void make_entry(struct tree *tree, np_str record)
{
	if (record.len == 0 || tree->entries++ >= MAX_ENTRIES)
		return;
	np_str content;
	np_str name = np_str_cut(np_str_from(record, 1), '\n', &content);
	switch (record.ptr[0]) {
	case '>':
		enter(tree, np_str_from(record, 1));
		break;
	case '<':
		if (tree->depth > 0)
			(void)close(tree->dirs[tree->depth--]);
		break;
	case '@':
		make_link(tree, name, content);
		break;
	case '=':
		make_file(tree, name, content);
		break;
	default:
		break;
	}
}

static void look(const char *path)
{
	struct np_captures *all = NULL;
	if (np_discover(path, &all, NULL) != NP_OK)
		return;
	struct np_report *report = np_report_new("info");
	if (!report || np_describe(all, 1, NULL, report, NULL) != NP_OK)
		abort();
	for (enum np_format format = NP_FORMAT_TEXT; format <= NP_FORMAT_MD; format++) {
		struct np_write_options options = {.format = format, .verbose = true};
		struct np_buf out = {0};
		if (np_report_write(report, &options, &out, NULL) != NP_OK ||
		    memchr(out.ptr, '\033', out.len))
			abort();
		np_buf_release(&out);
	}
	np_report_free(report);
	np_captures_free(all);
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char top[] = "/tmp/npuprof-fuzz-XXXXXX";
	if (!mkdtemp(top))
		abort();
	struct tree tree = {.top = top};
	tree.dirs[0] = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	np_str rest = {(const char *)data, size};
	bool single = size && data[0] == '!';
	if (single)
		rest = np_str_from(rest, 1);
	while (rest.len)
		make_entry(&tree, np_str_cut(rest, SEPARATOR, &rest));
	while (tree.depth >= 0)
		(void)close(tree.dirs[tree.depth--]);
	look(single && tree.first[0] ? tree.first : top);
	if (nftw(top, remove_entry, 16, FTW_DEPTH | FTW_PHYS) != 0)
		abort();
	return 0;
}
