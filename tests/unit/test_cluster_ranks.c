/* Which captures make a cluster, what is said about the others, and what one bad rank does. */
#include "cluster_set.h"
#include "report/writer.h"

static void set_of(struct cset *self, uint32_t ranks, const char *faults)
{
	synth_set(self->dir, NP_SYNTH_TEXT, ranks, 1, faults);
}

static const struct np_table *table_of(const struct cset *self, const char *id)
{
	for (size_t i = 0; i < self->report->tables.n; i++)
		if (strcmp(self->report->tables.v[i]->id, id) == 0)
			return self->report->tables.v[i];
	return NULL;
}

/* The rows of HcclPerRankStats as text, of one rank; for comparing runs. */
static void rank_rows(const struct cset *self, int64_t rank, struct np_buf *out)
{
	const struct np_table *table = table_of(self, "HcclPerRankStats");
	assert_non_null(table);
	np_buf_clear(out);
	for (size_t r = 0; r < np_table_rows(table); r++) {
		if (np_table_cell(table, r, table->n_columns - 1)->i != rank)
			continue;
		np_buf_add_str(out, np_table_cell(table, r, 0)->s);
		for (size_t c = 1; c + 1 < table->n_columns; c++)
			np_buf_printf(out, " %lld %.17g", (long long)np_table_cell(table, r, c)->i,
			              np_table_cell(table, r, c)->r);
	}
	assert_false(out->failed);
}

static bool has_note(const struct cset *self, const char *part)
{
	for (size_t i = 0; i < self->report->notes.n; i++)
		if (strstr(self->report->notes.v[i], part))
			return true;
	return false;
}

static void one_capture_per_rank_in_order(void **state)
{
	struct cset *self = *state;
	set_of(self, 5, "");
	cset_run(self);
	assert_int_equal(self->cluster.ranks.n, 5);
	for (size_t i = 0; i < 5; i++) {
		assert_int_equal(self->cluster.ranks.v[i].rank, i);
		assert_non_null(self->cluster.ranks.v[i].digest);
		assert_int_equal(np_cluster_find_rank(&self->cluster, (int64_t)i), i);
	}
	assert_true(np_cluster_find_rank(&self->cluster, 5) == SIZE_MAX);
	assert_true(np_cluster_find_rank(&self->cluster, -1) == SIZE_MAX);
	assert_int_equal(self->report->exit_code, 0);
	assert_int_equal(self->report->findings.n, 0);
}

/* ── the gate ── */

static void a_duplicate_rank_is_refused(void **state)
{
	struct cset *self = *state;
	set_of(self, 3, "duplicate-rank=1");
	cset_run(self);
	assert_true(self->cluster.refused);
	assert_int_equal(self->report->exit_code, 1);
	assert_int_equal(self->report->verdict, NP_VERDICT_FAIL);
	(void)cset_expect(self, "RANK_DUP");
	(void)cset_expect(self, "CLUSTER_REFUSED");
	assert_int_equal(self->report->tables.n, 0);
}

static void force_takes_the_newest_and_says_so(void **state)
{
	struct cset *self = *state;
	set_of(self, 3, "duplicate-rank=1");
	self->options.force = true;
	cset_run(self);
	assert_false(self->cluster.refused);
	assert_null(cset_find(self, "CLUSTER_REFUSED"));
	assert_int_equal(self->cluster.ranks.n, 3);
	const char *newest = "";
	for (size_t i = 0; i < self->all->captures.n; i++)
		if (self->all->captures.v[i]->rank == 1 &&
		    strcmp(self->all->captures.v[i]->batch, newest) > 0)
			newest = self->all->captures.v[i]->batch;
	assert_string_equal(self->cluster.ranks.v[1].capture->batch, newest);
	assert_true(has_note(self, "--force"));
	assert_true(has_note(self, "is left out"));
	assert_int_equal(self->report->exit_code, 3);
}

static void a_mixed_batch_is_refused(void **state)
{
	struct cset *self = *state;
	set_of(self, 3, "mixed-batch=2");
	cset_run(self);
	assert_true(self->cluster.refused);
	assert_int_equal(self->report->exit_code, 1);
	(void)cset_expect(self, "BATCH_MIXED");
	self->options.force = true;
	cset_run(self);
	assert_false(self->cluster.refused);
	assert_int_equal(self->cluster.ranks.n, 3);
	assert_int_equal(self->report->exit_code, 3);
}

static void a_missing_rank_is_told_and_the_rest_compared(void **state)
{
	struct cset *self = *state;
	set_of(self, 4, "missing-rank=2");
	cset_run(self);
	(void)cset_expect(self, "RANK_MISSING");
	assert_int_equal(self->cluster.ranks.n, 3);
	assert_int_equal(self->report->exit_code, 3);
	assert_int_equal(self->report->tables.n, 4);
}

static void an_unknown_rank_is_left_out_and_told(void **state)
{
	struct cset *self = *state;
	set_of(self, 3, "rank-unknown=0");
	cset_run(self);
	const struct np_finding *finding = cset_expect(self, "CLUSTER_RANK_UNKNOWN");
	assert_non_null(strstr(finding->title, "1 captures"));
	assert_true(finding->evidence.n == 1 && finding->evidence.v[0].file);
	assert_int_equal(self->cluster.ranks.n, 2);
	assert_int_equal(self->report->exit_code, 3);
}

static void without_any_rank_there_is_an_error(void **state)
{
	struct cset *self = *state;
	tree_torch(self->root, "set/a_ascend_pt", -1);
	cset_run_at(self, self->dir);
	assert_int_equal(self->status, NP_E_EMPTY);
}

/* ── --rank_list, --step_id ── */

static void only_the_ranks_of_the_list(void **state)
{
	struct cset *self = *state;
	set_of(self, 5, "");
	self->options.rank_list = "4, 1,1";
	cset_run(self);
	assert_int_equal(self->cluster.ranks.n, 2);
	assert_int_equal(self->cluster.ranks.v[0].rank, 1);
	assert_int_equal(self->cluster.ranks.v[1].rank, 4);
	assert_int_equal(self->report->exit_code, 0);
	self->options.rank_list = "all";
	cset_run(self);
	assert_int_equal(self->cluster.ranks.n, 5);
}

static void absent_ranks_of_the_list_are_told(void **state)
{
	struct cset *self = *state;
	set_of(self, 3, "");
	self->options.rank_list = "0,7,9";
	cset_run(self);
	assert_int_equal(self->cluster.ranks.n, 1);
	assert_int_equal(self->report->findings.n, 2);
	assert_non_null(strstr(cset_expect(self, "CLUSTER_RANK_ABSENT")->title, "rank 7"));
	assert_int_equal(self->report->exit_code, 3);
	self->options.rank_list = "7";
	cset_run_at(self, self->dir);
	assert_int_equal(self->status, NP_E_NOTFOUND);
}

static void a_list_that_is_none_is_wrong_usage(void **state)
{
	struct cset *self = *state;
	static const char *const lists[] = {"", "a", "0-3", "0,,1", "1.5", "99999999999999999999"};
	set_of(self, 2, "");
	for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
		self->options.rank_list = lists[i];
		cset_run_at(self, self->dir);
		assert_int_equal(self->status, NP_E_USAGE);
	}
}

static void a_step_limits_what_is_counted(void **state)
{
	struct cset *self = *state;
	set_of(self, 2, "");
	cset_run(self);
	int64_t all = np_table_cell(table_of(self, "HcclAllRankStats"), 0, 1)->i;
	self->options.has_step = true;
	self->options.step = 13;
	cset_run(self);
	int64_t one = np_table_cell(table_of(self, "HcclAllRankStats"), 0, 1)->i;
	assert_true(one > 0 && one < all);
	assert_null(cset_find(self, "CLUSTER_STEP_ABSENT"));
}

static void an_absent_step_is_told_every_time(void **state)
{
	struct cset *self = *state;
	set_of(self, 2, "");
	self->options.has_step = true;
	self->options.step = 77;
	for (int i = 0; i < 2; i++) { /* not lost in the cache */
		cset_run(self);
		const struct np_finding *finding = cset_expect(self, "CLUSTER_STEP_ABSENT");
		assert_non_null(strstr(finding->title, "77"));
		assert_int_equal(self->report->exit_code, 3);
		assert_true(np_table_rows(table_of(self, "HcclAllRankStats")) > 0);
	}
}

/* ── a bad rank ── */

static void damage_all_files(const struct cset *self, size_t row)
{
	const struct np_capture *capture = self->cluster.ranks.v[row].capture;
	for (size_t i = 0; i < capture->files.n; i++)
		if (strncmp(capture->files.v[i].path, capture->output, strlen(capture->output)) ==
		    0) {
			FILE *file = fopen(capture->files.v[i].path, "wb");
			assert_non_null(file);
			assert_true(fputs("no table\n", file) >= 0);
			assert_int_equal(fclose(file), 0);
		}
}

static void an_unreadable_rank_is_told_and_the_rest_completes(void **state)
{
	struct cset *self = *state;
	struct np_buf before = {0}, after = {0};
	set_of(self, 3, "");
	cset_run(self);
	rank_rows(self, 2, &before);
	assert_true(before.len > 0);
	damage_all_files(self, 1);
	cset_run(self);
	const struct np_finding *finding = cset_expect(self, "CLUSTER_RANK_UNREADABLE");
	assert_non_null(strstr(finding->title, "rank 1"));
	assert_true(finding->evidence.n == 1 && finding->evidence.v[0].file);
	assert_int_equal(self->report->exit_code, 4);
	assert_null(self->cluster.ranks.v[1].digest);
	rank_rows(self, 2, &after);
	assert_string_equal(before.ptr, after.ptr);
	rank_rows(self, 1, &after);
	assert_int_equal(after.len, 0);
	np_buf_release(&before);
	np_buf_release(&after);
}

static void a_rank_cut_short_changes_only_itself(void **state)
{
	struct cset *self = *state;
	struct np_buf before[3] = {{0}}, after = {0};
	struct stat st;
	set_of(self, 3, "");
	self->options.no_cache = true;
	cset_run(self);
	for (int64_t i = 0; i < 3; i++)
		rank_rows(self, i, &before[i]);
	char path[2 * TREE_PATH];
	(void)snprintf(path, sizeof path, "%s", cset_file(self, 1, "trace_view.json"));
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(truncate(path, st.st_size / 2), 0);
	(void)snprintf(path, sizeof path, "%s", cset_file(self, 1, "kernel_details.csv"));
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(truncate(path, st.st_size / 2), 0);
	cset_run(self);
	for (int64_t i = 0; i < 3; i++) {
		rank_rows(self, i, &after);
		assert_int_equal(strcmp(before[i].ptr, after.ptr) == 0, i != 1);
		np_buf_release(&before[i]);
	}
	np_buf_release(&after);
}

static void captures_stay_as_they_are(void **state)
{
	struct cset *self = *state;
	static const char *const faults[] = {"", "truncated-trace=1", "duplicate-rank=1"};
	for (size_t i = 0; i < 3; i++) {
		(void)snprintf(self->dir, sizeof self->dir, "%s/set%zu", self->root, i);
		synth_set(self->dir, NP_SYNTH_TEXT | NP_SYNTH_DB, 2, 1, faults[i]);
		char *before = tree_listing(self->dir);
		self->options.force = true;
		cset_run(self);
		char *after = tree_listing(self->dir);
		assert_string_equal(before, after);
		free(before);
		free(after);
	}
}

/* ── threads, memory ── */

static void any_number_of_threads_says_the_same(void **state)
{
	struct cset *self = *state;
	struct np_write_options how = {.format = NP_FORMAT_JSON};
	struct np_buf first = {0}, other = {0};
	self->recipes[1] = np_recipe_find(NP_STR("diagnose"));
	self->options.n_recipes = 2;
	self->options.no_cache = true;
	set_of(self, 6, "slow-rank=3");
	for (unsigned threads = 1; threads <= 4; threads++) {
		self->options.threads = threads;
		cset_run(self);
		np_buf_clear(&other);
		assert_int_equal(
			np_report_write(self->report, &how, threads == 1 ? &first : &other, NULL),
			NP_OK);
		if (threads > 1)
			assert_string_equal(first.ptr, other.ptr);
	}
	np_buf_release(&first);
	np_buf_release(&other);
}

static void out_of_memory_is_an_error_and_no_crash(void **state)
{
	struct cset *self = *state;
	set_of(self, 2, "truncated-trace=1");
	self->options.threads = 1;
	self->options.no_cache = true;
	cset_run(self);
	size_t failures = 0;
	for (uint64_t n = 1;; n += 1 + n / 8) {
		cset_close(self);
		self->report = np_report_new("cluster");
		assert_int_equal(np_discover(self->dir, &self->all, &self->err), NP_OK);
		np_mem_fail_after(n);
		self->status = np_cluster_open(&self->cluster, self->all, &self->options,
		                               self->report, &self->err);
		self->open = true;
		if (self->status == NP_OK)
			self->status = np_cluster_map(&self->cluster, &self->err);
		if (self->status == NP_OK)
			self->status = np_cluster_reduce(&self->cluster, &self->err);
		np_mem_fail_after(0);
		if (self->status == NP_OK)
			break;
		assert_int_equal(self->status, NP_E_NOMEM);
		failures++;
		assert_true(n < 10000000);
	}
	assert_true(failures > 10);
}

/* ── mpirun, as far as one process can tell ── */

static void without_mpirun_a_process_is_alone(void **state)
{
	(void)state;
	struct np_err err = {0};
	assert_int_equal(unsetenv("PMI_SIZE") | unsetenv("PMIX_RANK"), 0);
	assert_int_equal(setenv("OMPI_COMM_WORLD_SIZE", "1", 1), 0);
	assert_int_equal(np_cluster_join(&err), NP_OK);
	assert_int_equal(setenv("OMPI_COMM_WORLD_SIZE", "4", 1), 0);
	assert_int_equal(setenv("NPUPROF_MPI", "0", 1), 0);
	assert_int_equal(np_cluster_join(&err), NP_OK);
	assert_true(np_cluster_is_root());
	assert_int_equal(np_share_count(), 1);
	np_cluster_leave(NP_OK, &err);
	assert_int_equal(unsetenv("NPUPROF_MPI") | unsetenv("OMPI_COMM_WORLD_SIZE"), 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, cset_new, cset_free)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(one_capture_per_rank_in_order),
		CASE(a_duplicate_rank_is_refused),
		CASE(force_takes_the_newest_and_says_so),
		CASE(a_mixed_batch_is_refused),
		CASE(a_missing_rank_is_told_and_the_rest_compared),
		CASE(an_unknown_rank_is_left_out_and_told),
		CASE(without_any_rank_there_is_an_error),
		CASE(only_the_ranks_of_the_list),
		CASE(absent_ranks_of_the_list_are_told),
		CASE(a_list_that_is_none_is_wrong_usage),
		CASE(a_step_limits_what_is_counted),
		CASE(an_absent_step_is_told_every_time),
		CASE(an_unreadable_rank_is_told_and_the_rest_completes),
		CASE(a_rank_cut_short_changes_only_itself),
		CASE(captures_stay_as_they_are),
		CASE(any_number_of_threads_says_the_same),
		CASE(out_of_memory_is_an_error_and_no_crash),
		cmocka_unit_test(without_mpirun_a_process_is_alone),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
