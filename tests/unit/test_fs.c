#include "unit.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/fs.h"

static void touch(const char *path)
{
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	assert_int_equal(fclose(file), 0);
}

static void a_tree_is_removed_and_what_its_links_lead_to_stays(void **state)
{
	(void)state;
	char root[] = "/tmp/npuprof-test-XXXXXX", path[512], outside[512], file[512];
	struct np_err err;
	assert_non_null(mkdtemp(root));
	(void)snprintf(outside, sizeof outside, "%s/outside", root);
	assert_int_equal(np_mkdirs(outside, &err), NP_OK);
	(void)snprintf(file, sizeof file, "%s/outside/file", root);
	touch(file);
	(void)snprintf(path, sizeof path, "%s/tree/a/b", root);
	assert_int_equal(np_mkdirs(path, &err), NP_OK);
	(void)snprintf(path, sizeof path, "%s/tree/a/b/file", root);
	touch(path);
	(void)snprintf(path, sizeof path, "%s/tree/a/link", root);
	assert_int_equal(symlink(outside, path), 0);
	(void)snprintf(path, sizeof path, "%s/tree", root);
	np_remove_tree(path);
	assert_int_not_equal(access(path, F_OK), 0);
	assert_int_equal(access(file, F_OK), 0);
	np_remove_tree(root);
	assert_int_not_equal(access(root, F_OK), 0);
	np_remove_tree(root); /* nothing there: nothing happens */
}

/* As root a rename onto /dev/null would succeed, and the machine would be without. */
static void what_is_no_regular_file_is_written_to_and_never_replaced(void **state)
{
	(void)state;
	char root[] = "/tmp/npuprof-test-XXXXXX", path[512], got[16] = "";
	struct np_outfile out;
	struct np_file_stat st;
	struct np_err err;
	assert_non_null(mkdtemp(root));
	(void)snprintf(path, sizeof path, "%s/pipe", root);
	assert_int_equal(mkfifo(path, 0600), 0);
	int fd = open(path, O_RDWR | O_NONBLOCK);
	assert_true(fd >= 0);
	assert_int_equal(np_outfile_begin(&out, path, &err), NP_OK);
	assert_true(fputs("hello", out.file) >= 0);
	assert_int_equal(np_outfile_commit(&out, &err), NP_OK);
	assert_int_equal(read(fd, got, sizeof got), 5);
	assert_string_equal(got, "hello");
	assert_int_equal(np_file_stat(path, false, &st, &err), NP_OK);
	assert_int_equal(st.kind, NP_FILE_OTHER);
	assert_int_equal(np_outfile_begin(&out, path, &err), NP_OK);
	np_outfile_abort(&out);
	assert_int_equal(access(path, F_OK), 0);
	(void)close(fd);
	np_remove_tree(root);
}

static void a_link_stays_and_the_file_behind_it_is_replaced(void **state)
{
	(void)state;
	char root[] = "/tmp/npuprof-test-XXXXXX", file[512], link[512];
	struct np_outfile out;
	struct np_file_stat st;
	struct np_err err;
	assert_non_null(mkdtemp(root));
	(void)snprintf(file, sizeof file, "%s/file", root);
	(void)snprintf(link, sizeof link, "%s/link", root);
	touch(file);
	assert_int_equal(symlink(file, link), 0);
	assert_int_equal(np_outfile_begin(&out, link, &err), NP_OK);
	assert_true(fputs("new", out.file) >= 0);
	assert_int_equal(np_outfile_commit(&out, &err), NP_OK);
	assert_int_equal(np_file_stat(link, false, &st, &err), NP_OK);
	assert_int_equal(st.kind, NP_FILE_LINK);
	assert_int_equal(np_file_stat(file, false, &st, &err), NP_OK);
	assert_int_equal(st.size_bytes, 3);
	np_remove_tree(root);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_tree_is_removed_and_what_its_links_lead_to_stays),
		cmocka_unit_test(what_is_no_regular_file_is_written_to_and_never_replaced),
		cmocka_unit_test(a_link_stays_and_the_file_behind_it_is_replaced),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
