/* src/io/archive: what is unpacked, what is refused, what is left behind. */
#include "unit.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "io/archive.h"

static char folder[64];

static int setup(void **state)
{
	(void)state;
	(void)snprintf(folder, sizeof folder, "/tmp/npuprof-archive-XXXXXX");
	return mkdtemp(folder) ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	char command[200];
	(void)snprintf(command, sizeof command, "rm -rf '%s'", folder);
	return system(command);
}

static const char *at(const char *name)
{
	static char paths[4][256];
	static unsigned turn;
	char *path = paths[turn++ % 4];
	(void)snprintf(path, sizeof paths[0], "%s/%s", folder, name);
	return path;
}

enum kind { TAR, TAR_GZ, TAR_ZST, ZIP };

struct member {
	const char *path, *text, *link;
	unsigned type; /* 0: a regular file */
};

static void add_member(struct archive *out, const struct member *member)
{
	struct archive_entry *entry = archive_entry_new();
	size_t len = member->text ? strlen(member->text) : 0;
	archive_entry_set_pathname(entry, member->path);
	archive_entry_set_filetype(entry, member->type ? member->type : AE_IFREG);
	archive_entry_set_perm(entry, 04777);
	archive_entry_set_size(entry, (la_int64_t)len);
	archive_entry_set_mtime(entry, 1736412474, 730135222);
	if (member->type == AE_IFLNK)
		archive_entry_set_symlink(entry, member->link);
	else if (member->link)
		archive_entry_set_hardlink(entry, member->link);
	assert_true(archive_write_header(out, entry) >= ARCHIVE_WARN);
	if (len)
		assert_int_equal(archive_write_data(out, member->text, len), len);
	archive_entry_free(entry);
}

/* Members end with one that has no path. */
static const char *make_archive(enum kind kind, const struct member *members)
{
	struct archive *out = archive_write_new();
	if (kind == ZIP)
		assert_int_equal(archive_write_set_format_zip(out), ARCHIVE_OK);
	else
		assert_int_equal(archive_write_set_format_pax(out), ARCHIVE_OK);
	if (kind == TAR_GZ)
		assert_int_equal(archive_write_add_filter_gzip(out), ARCHIVE_OK);
	if (kind == TAR_ZST)
		assert_int_equal(archive_write_add_filter_zstd(out), ARCHIVE_OK);
	assert_int_equal(archive_write_open_filename(out, at("archive")), ARCHIVE_OK);
	for (; members->path; members++)
		add_member(out, members);
	assert_int_equal(archive_write_close(out), ARCHIVE_OK);
	(void)archive_write_free(out);
	(void)mkdir(at("out"), 0700);
	return at("archive");
}

static enum np_status unpack(struct np_archive_stats *stats, uint64_t max_bytes)
{
	return np_archive_unpack(at("archive"), at("out"), max_bytes, NULL, NULL, stats, NULL);
}

static void assert_file(const char *path, const char *text)
{
	char got[1024] = "";
	FILE *file = fopen(path, "rb");
	if (!file)
		fail_msg("no file %s", path);
	size_t len = fread(got, 1, sizeof got - 1, file);
	(void)fclose(file);
	assert_int_equal(len, strlen(text));
	assert_string_equal(got, text);
}

static void all_kinds_are_probed_and_unpacked(void **state)
{
	(void)state;
	static const struct member members[] = {
		{"./cap/", NULL, NULL, AE_IFDIR},
		{"./cap/a.json", "{}", NULL, 0},
		{"cap/deep/er/b.csv", "x,y\n", NULL, 0},
		{"cap/empty", "", NULL, 0},
		{NULL, NULL, NULL, 0},
	};
	for (enum kind kind = TAR; kind <= ZIP; kind++) {
		struct np_archive_stats stats;
		assert_true(np_archive_probe(make_archive(kind, members)));
		assert_int_equal(unpack(&stats, 100), NP_OK);
		assert_int_equal(stats.files, 3);
		assert_int_equal(stats.bytes, 6);
		assert_int_equal(stats.refused, 0);
		assert_file(at("out/cap/a.json"), "{}");
		assert_file(at("out/cap/deep/er/b.csv"), "x,y\n");
		struct stat st;
		assert_int_equal(stat(at("out/cap/a.json"), &st), 0);
		assert_int_equal(st.st_mode & 07777, 0600);
		assert_int_equal(st.st_mtim.tv_sec, 1736412474);
		if (kind != ZIP)
			assert_int_equal(st.st_mtim.tv_nsec, 730135222);
		assert_int_equal(stat(at("out/cap/deep"), &st), 0);
		assert_int_equal(st.st_mode & 0777, 0700);
	}
}

static void what_could_leave_the_target_is_refused(void **state)
{
	(void)state;
	static const struct member members[] = {
		{"../slip", "evil", NULL, 0},
		{"a/../../slip", "evil", NULL, 0},
		{"/tmp/npuprof-absolute-slip", "evil", NULL, 0},
		{"good", "good", NULL, 0},
		{"link", NULL, "..", AE_IFLNK},
		{"link/slip", "inside", NULL, 0}, /* the link is not there, so this is a folder */
		{"hard", NULL, "good", 0},
		{"fifo", NULL, NULL, AE_IFIFO},
		{"device", NULL, NULL, AE_IFCHR},
		{NULL, NULL, NULL, 0},
	};
	(void)make_archive(TAR, members);
	struct np_archive_stats stats;
	assert_int_equal(unpack(&stats, 100), NP_OK);
	assert_int_equal(stats.refused, 7);
	assert_string_equal(stats.first_refused, "../slip");
	assert_int_equal(stats.files, 2);
	assert_file(at("out/good"), "good");
	assert_file(at("out/link/slip"), "inside");
	assert_int_not_equal(access(at("slip"), F_OK), 0);
	assert_int_not_equal(access(at("out/hard"), F_OK), 0);
	assert_int_not_equal(access(at("out/fifo"), F_OK), 0);
	assert_int_not_equal(access("/tmp/npuprof-absolute-slip", F_OK), 0);
}

static void a_zip_that_slips_is_refused(void **state)
{
	(void)state;
	static const struct member members[] = {
		{"ok", "ok", NULL, 0},
		{"../../slip", "evil", NULL, 0},
		{"l", NULL, "/etc", AE_IFLNK},
		{NULL, NULL, NULL, 0},
	};
	(void)make_archive(ZIP, members);
	struct np_archive_stats stats;
	assert_int_equal(unpack(&stats, 100), NP_OK);
	assert_int_equal(stats.refused, 2);
	assert_int_equal(stats.files, 1);
	assert_int_not_equal(access(at("slip"), F_OK), 0);
}

/* Links that somebody else put into the target are not followed either. */
static void links_in_the_target_are_not_followed(void **state)
{
	(void)state;
	static const struct member members[] = {
		{"dir/file", "evil", NULL, 0}, {"file", "new", NULL, 0},
		{"twice", "first", NULL, 0},   {"twice", "second", NULL, 0},
		{"twice/below", "x", NULL, 0}, {NULL, NULL, NULL, 0},
	};
	(void)make_archive(TAR, members);
	assert_int_equal(mkdir(at("elsewhere"), 0700), 0);
	FILE *victim = fopen(at("elsewhere/file"), "w");
	assert_non_null(victim);
	(void)fputs("old", victim);
	(void)fclose(victim);
	assert_int_equal(symlink("../elsewhere", at("out/dir")), 0);
	assert_int_equal(symlink("../elsewhere/file", at("out/file")), 0);
	struct np_archive_stats stats;
	assert_int_equal(unpack(&stats, 100), NP_OK);
	assert_file(at("elsewhere/file"), "old");
	assert_file(at("out/file"), "new");
	assert_file(at("out/twice"), "second");
	assert_int_equal(stats.refused, 2);
	assert_string_equal(stats.first_refused, "dir/file");
}

static void too_much_is_a_limit_and_leaves_no_part(void **state)
{
	(void)state;
	static const struct member members[] = {
		{"one", "12345", NULL, 0},
		{"two", "123456", NULL, 0},
		{NULL, NULL, NULL, 0},
	};
	for (enum kind kind = TAR; kind <= ZIP; kind++) {
		struct np_archive_stats stats;
		(void)make_archive(kind, members);
		assert_int_equal(unpack(&stats, 11), NP_OK);
		assert_int_equal(unlink(at("out/two")), 0);
		assert_int_equal(unpack(&stats, 10), NP_E_LIMIT);
		assert_int_equal(stats.files, 1);
		assert_file(at("out/one"), "12345");
		assert_int_not_equal(access(at("out/two"), F_OK), 0);
	}
}

static void a_sparse_member_counts_with_its_holes(void **state)
{
	(void)state;
	struct archive *out = archive_write_new();
	assert_int_equal(archive_write_set_format_pax_restricted(out), ARCHIVE_OK);
	assert_int_equal(archive_write_open_filename(out, at("archive")), ARCHIVE_OK);
	struct archive_entry *entry = archive_entry_new();
	archive_entry_set_pathname(entry, "holes");
	archive_entry_set_filetype(entry, AE_IFREG);
	archive_entry_set_size(entry, 1 << 30);
	archive_entry_sparse_add_entry(entry, (1 << 30) - 4096, 4096);
	assert_int_equal(archive_write_header(out, entry), ARCHIVE_OK);
	static const char zeros[65536];
	for (la_int64_t left = 1 << 30; left > 0; left -= (la_int64_t)sizeof zeros)
		assert_int_equal(archive_write_data(out, zeros, sizeof zeros), sizeof zeros);
	archive_entry_free(entry);
	assert_int_equal(archive_write_close(out), ARCHIVE_OK);
	(void)archive_write_free(out);
	assert_int_equal(mkdir(at("out"), 0700), 0);
	struct stat st;
	assert_int_equal(stat(at("archive"), &st), 0);
	assert_true(st.st_size < 1 << 20);
	struct np_archive_stats stats;
	assert_int_equal(unpack(&stats, 1 << 20), NP_E_LIMIT);
	assert_int_not_equal(access(at("out/holes"), F_OK), 0);
	assert_int_equal(unpack(&stats, 1 << 30), NP_OK);
	assert_int_equal(stats.bytes, 1 << 30);
	assert_int_equal(stat(at("out/holes"), &st), 0);
	assert_int_equal(st.st_size, 1 << 30);
	assert_true(st.st_blocks < 4096);
}

static bool only_csv(void *ctx, np_str member)
{
	++*(int *)ctx;
	return np_str_ends(member, NP_STR(".csv"));
}

static void only_what_is_wanted_is_unpacked(void **state)
{
	(void)state;
	static const struct member members[] = {
		{"a.csv", "a", NULL, 0},
		{"b.json", "b", NULL, 0},
		{"../c.json", "c", NULL, 0},
		{NULL, NULL, NULL, 0},
	};
	(void)make_archive(TAR_GZ, members);
	struct np_archive_stats stats;
	int asked = 0;
	assert_int_equal(
		np_archive_unpack(at("archive"), at("out"), 100, only_csv, &asked, &stats, NULL),
		NP_OK);
	assert_int_equal(asked, 3);
	assert_int_equal(stats.files, 1);
	assert_int_equal(stats.refused, 0);
	assert_int_not_equal(access(at("out/b.json"), F_OK), 0);
}

static void names_beyond_ascii_are_kept(void **state)
{
	(void)state;
	static const struct member members[] = {
		{"\xe6\x80\xa7\xe8\x83\xbd/a.csv", "a", NULL, 0},
		{NULL, NULL, NULL, 0},
	};
	(void)make_archive(TAR, members);
	struct np_archive_stats stats;
	assert_int_equal(unpack(&stats, 100), NP_OK);
	assert_file(at("out/\xe6\x80\xa7\xe8\x83\xbd/a.csv"), "a");
}

static void what_came_before_the_damage_stays(void **state)
{
	(void)state;
	static char large[800001];
	uint32_t x = 1;
	for (size_t i = 0; i < sizeof large - 1; i++) {
		x = x * 1664525 + 1013904223;
		large[i] = (char)('!' + (x >> 24) % 90);
	}
	const struct member members[] = {
		{"first", "first", NULL, 0},
		{"large", large, NULL, 0},
		{NULL, NULL, NULL, 0},
	};
	for (enum kind kind = TAR; kind <= ZIP; kind++) {
		(void)make_archive(kind, members);
		assert_int_equal(truncate(at("archive"), 500000), 0);
		struct np_archive_stats stats;
		assert_int_equal(unpack(&stats, 1 << 20), NP_E_TRUNCATED);
		assert_int_equal(stats.files, 1);
		assert_file(at("out/first"), "first");
		assert_int_not_equal(access(at("out/large"), F_OK), 0);
	}
}

static void what_is_no_archive_is_told(void **state)
{
	(void)state;
	struct np_archive_stats stats;
	FILE *file = fopen(at("archive"), "w");
	assert_non_null(file);
	for (int i = 0; i < 1000; i++)
		(void)fputs("Step Id,Name\n", file);
	(void)fclose(file);
	assert_int_equal(mkdir(at("out"), 0700), 0);
	assert_false(np_archive_probe(at("archive")));
	assert_int_equal(unpack(&stats, 100), NP_E_FORMAT);
	assert_int_equal(mkfifo(at("fifo"), 0600), 0);
	assert_false(np_archive_probe(at("fifo")));
	assert_false(np_archive_probe(at("absent")));
	assert_false(np_archive_probe(folder));
	assert_int_equal(np_archive_unpack(at("absent"), folder, 1, NULL, NULL, &stats, NULL),
	                 NP_E_NOTFOUND);
	/* a bare gz */
	char command[300];
	(void)snprintf(command, sizeof command, "gzip -c '%s' > '%s'", at("archive"),
	               at("bare.gz"));
	assert_int_equal(system(command), 0);
	assert_false(np_archive_probe(at("bare.gz")));
	/* an empty file, and one of zeros */
	assert_int_equal(truncate(at("archive"), 0), 0);
	assert_false(np_archive_probe(at("archive")));
	assert_int_equal(truncate(at("archive"), 100000), 0);
	assert_false(np_archive_probe(at("archive")));
	static const struct member members[] = {{"a", "a", NULL, 0}, {NULL, NULL, NULL, 0}};
	(void)make_archive(TAR, members);
	assert_int_equal(
		np_archive_unpack(at("archive"), at("no-dir"), 1, NULL, NULL, &stats, NULL),
		NP_E_NOTFOUND);
}

static void safe_paths_stay_below(void **state)
{
	(void)state;
	static const char *const good[] = {"a",   "a/b", "./a", "a//b", "a/",
	                                   "..a", "a..", "...", "a/.b"};
	static const char *const bad[] = {"",     "/",      "/a",   "..", "../a",
	                                  "a/..", "a/../b", "./..", "//a"};
	for (size_t i = 0; i < sizeof good / sizeof *good; i++)
		assert_true(np_archive_safe_path(np_str_of(good[i])));
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_false(np_archive_safe_path(np_str_of(bad[i])));
	assert_false(np_archive_safe_path(NP_STR("a\0b")));
	assert_false(np_archive_safe_path((np_str){NULL, 0}));
	char text[5000];
	memset(text, 'a', sizeof text);
	assert_true(np_archive_safe_path((np_str){text, 255}));
	assert_false(np_archive_safe_path((np_str){text, 256}));
	for (size_t i = 100; i < sizeof text; i += 101)
		text[i] = '/';
	assert_true(np_archive_safe_path((np_str){text, 4095}));
	assert_false(np_archive_safe_path((np_str){text, 4096}));
}

#define WITH_FOLDER(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_FOLDER(all_kinds_are_probed_and_unpacked),
		WITH_FOLDER(what_could_leave_the_target_is_refused),
		WITH_FOLDER(a_zip_that_slips_is_refused),
		WITH_FOLDER(links_in_the_target_are_not_followed),
		WITH_FOLDER(too_much_is_a_limit_and_leaves_no_part),
		WITH_FOLDER(a_sparse_member_counts_with_its_holes),
		WITH_FOLDER(only_what_is_wanted_is_unpacked),
		WITH_FOLDER(names_beyond_ascii_are_kept),
		WITH_FOLDER(what_came_before_the_damage_stays),
		WITH_FOLDER(what_is_no_archive_is_told),
		cmocka_unit_test(safe_paths_stay_below),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
