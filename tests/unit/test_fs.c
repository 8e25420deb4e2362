#include "unit.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_tree_is_removed_and_what_its_links_lead_to_stays),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
