/* synth: what it writes is what it says, and twice the same. */
#include "synth_unit.h"

/* ── determinism ── */

static void compare_trees(struct fixture *f, const char *a, const char *b, size_t *files)
{
	struct np_dir left, right;
	assert_int_equal(np_dir_list(&f->arena, a, &left, NULL), NP_OK);
	assert_int_equal(np_dir_list(&f->arena, b, &right, NULL), NP_OK);
	assert_int_equal(left.n, right.n);
	for (size_t i = 0; i < left.n; i++) {
		assert_string_equal(left.v[i].name, right.v[i].name);
		const char *x = np_path_join(&f->arena, a, left.v[i].name);
		const char *y = np_path_join(&f->arena, b, right.v[i].name);
		if (left.v[i].kind == NP_FILE_DIR) {
			compare_trees(f, x, y, files);
			continue;
		}
		if (!np_str_eq(slurp(f, x), slurp(f, y)))
			fail_msg("%s differs", x);
		++*files;
	}
}

static void the_same_options_give_the_same_bytes(void **state)
{
	struct fixture *f = *state;
	struct np_synth_stats stats;
	size_t files = 0;
	f->options.ranks = 4;
	f->options.formats = NP_SYNTH_TEXT | NP_SYNTH_DB | NP_SYNTH_MSPROF;
	assert_int_equal(np_synth_write(f->set, &f->options, &stats, &f->err), NP_OK);
	assert_int_equal(np_synth_write(f->other, &f->options, NULL, &f->err), NP_OK);
	compare_trees(f, f->set, f->other, &files);
	assert_int_equal(files, stats.files);
	assert_int_equal(stats.directories, 4);
}

static void another_seed_gives_other_durations(void **state)
{
	struct fixture *f = *state;
	write_set(f, NULL);
	int64_t first = truth(f, 0, "computing_ns");
	f->options.seed = 2;
	write_set(f, NULL);
	assert_int_not_equal(truth(f, 0, "computing_ns"), first);
}

/* ── the numbers ── */

static void step_rows_are_the_sums_of_their_kernels(void **state)
{
	struct fixture *f = *state;
	f->options.steps = 3;
	write_set(f, NULL);
	for (uint32_t rank = 0; rank < 2; rank++) {
		struct sheet kernels = read_sheet(f, out_path(f, rank, "kernel_details.csv"));
		struct sheet steps = read_sheet(f, out_path(f, rank, "step_trace_time.csv"));
		assert_int_equal(steps.rows, 3);
		assert_false(kernels.ragged || steps.ragged);
		for (size_t s = 0; s < steps.rows; s++) {
			int64_t sum[2] = {0, 0};
			for (size_t k = 0; k < kernels.rows; k++) {
				if (!np_str_eq(cell(&kernels, k, 0),
				               cell(&steps, s, column(&steps, "Step"))))
					continue;
				bool comm = np_str_is(
					cell(&kernels, k, column(&kernels, "Accelerator Core")),
					"COMMUNICATION");
				sum[comm] += ns_at(&kernels, k, "Duration(us)");
			}
			int64_t exposed = ns_at(&steps, s, "Communication(Not Overlapped)");
			assert_int_equal(ns_at(&steps, s, "Computing"), sum[0]);
			assert_int_equal(ns_at(&steps, s, "Communication"), sum[1]);
			assert_int_equal(ns_at(&steps, s, "Overlapped"), sum[1] - exposed);
			assert_true(exposed > 0 && exposed < sum[1]);
			assert_int_equal(ns_at(&steps, s, "Computing") + exposed +
			                         ns_at(&steps, s, "Free"),
			                 ns_at(&steps, s, "Stage"));
		}
		assert_int_equal(ns_at(&steps, 0, "Computing"), truth(f, rank, "computing_ns"));
		assert_int_equal(ns_at(&steps, 0, "Free"), truth(f, rank, "free_csv_ns"));
	}
}

static void waits_are_gaps_between_rows(void **state)
{
	struct fixture *f = *state;
	write_set(f, NULL);
	struct sheet s = read_sheet(f, out_path(f, 0, "kernel_details.csv"));
	assert_int_equal(ns_at(&s, 0, "Wait Time(us)"), 0);
	for (size_t i = 1; i < s.rows; i++) {
		int64_t gap = ns_at(&s, i, "Start Time(us)") - ns_at(&s, i - 1, "Start Time(us)") -
		              ns_at(&s, i - 1, "Duration(us)");
		assert_int_equal(ns_at(&s, i, "Wait Time(us)"), gap > 0 ? gap : 0);
	}
}

static void text_and_db_have_the_same_kernels(void **state)
{
	struct fixture *f = *state;
	f->options.formats = NP_SYNTH_TEXT | NP_SYNTH_DB;
	write_set(f, NULL);
	struct sheet s = read_sheet(f, out_path(f, 1, "kernel_details.csv"));
	sqlite3 *db = open_db(out_path(f, 1, "ascend_pytorch_profiler_1.db"));
	sqlite3_stmt *stmt = NULL;
	const char *sql = "SELECT startNs, endNs - startNs, value FROM (SELECT startNs, endNs, "
			  "name FROM TASK JOIN "
			  "COMPUTE_TASK_INFO USING (globalTaskId) UNION ALL SELECT startNs, endNs, "
			  "opName FROM "
			  "COMMUNICATION_OP) JOIN STRING_IDS ON id = name ORDER BY startNs";
	assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), SQLITE_OK);
	size_t row = 0;
	for (; sqlite3_step(stmt) == SQLITE_ROW; row++) {
		assert_true(row < s.rows);
		assert_int_equal(sqlite3_column_int64(stmt, 0), ns_at(&s, row, "Start Time(us)"));
		assert_int_equal(sqlite3_column_int64(stmt, 1), ns_at(&s, row, "Duration(us)"));
		assert_str(cell(&s, row, column(&s, "Name")),
		           (const char *)sqlite3_column_text(stmt, 2));
	}
	assert_int_equal(row, s.rows);
	(void)sqlite3_finalize(stmt);
	assert_int_equal(query_int(db,
	                           "SELECT count(*) FROM PYTORCH_API p LEFT JOIN STRING_IDS s ON "
	                           "s.id = p.name WHERE s.id IS NULL"),
	                 0);
	(void)sqlite3_close(db);
}

static void a_collective_ends_at_once_everywhere(void **state)
{
	struct fixture *f = *state;
	write_set(f, NULL);
	struct sheet a = read_sheet(f, out_path(f, 0, "kernel_details.csv"));
	struct sheet b = read_sheet(f, out_path(f, 1, "kernel_details.csv"));
	size_t core = column(&a, "Accelerator Core"), j = 0, found = 0;
	for (size_t i = 0; i < a.rows; i++) {
		if (!np_str_is(cell(&a, i, core), "COMMUNICATION"))
			continue;
		while (!np_str_is(cell(&b, j, core), "COMMUNICATION"))
			j++;
		assert_int_equal(ns_at(&a, i, "Start Time(us)") + ns_at(&a, i, "Duration(us)"),
		                 ns_at(&b, j, "Start Time(us)") + ns_at(&b, j, "Duration(us)"));
		j++;
		found++;
	}
	assert_int_equal(found, f->options.steps * (f->options.layers + 1));
}

static void op_statistic_sums_the_kernels(void **state)
{
	struct fixture *f = *state;
	write_set(f, NULL);
	struct sheet s = read_sheet(f, out_path(f, 0, "kernel_details.csv"));
	struct sheet ops = read_sheet(f, out_path(f, 0, "op_statistic.csv"));
	int64_t last = INT64_MAX;
	for (size_t i = 0; i < ops.rows; i++) {
		int64_t total = 0, count = 0;
		for (size_t k = 0; k < s.rows; k++) {
			if (!np_str_eq(cell(&s, k, column(&s, "Type")),
			               cell(&ops, i, column(&ops, "OP Type"))))
				continue;
			total += ns_at(&s, k, "Duration(us)");
			count++;
		}
		assert_int_equal(ns_at(&ops, i, "Total Time(us)"), total);
		assert_true(total <= last && count > 0);
		last = total;
	}
}

/* Level 2 adds the runtime's calls, in all three places. */
static void levels_differ_in_host_calls(void **state)
{
	struct fixture *f = *state;
	f->options.formats = NP_SYNTH_TEXT | NP_SYNTH_DB;
	for (int level = 1; level <= 2; level++) {
		f->options.level = level;
		write_set(f, NULL);
		bool runtime = level == 2;
		np_str trace = slurp(f, out_path(f, 0, "trace_view.json"));
		np_str api = slurp(f, out_path(f, 0, "api_statistic.csv"));
		assert_int_equal(strstr(trace.ptr, "\"Runtime@KernelLaunchWithHandle\"") != NULL,
		                 runtime);
		assert_int_equal(strstr(api.ptr, "host,runtime,") != NULL, runtime);
		sqlite3 *db = open_db(out_path(f, 0, "ascend_pytorch_profiler_0.db"));
		assert_int_equal(query_int(db, "SELECT count(*) FROM CANN_API WHERE type = 5000"),
		                 runtime ? truth(f, 0, "kernels") : 0);
		(void)sqlite3_close(db);
	}
}

static void other_groupings_and_single_ranks_work(void **state)
{
	static const struct {
		uint32_t ranks, tp;
	} shapes[] = {{1, 0}, {3, 0}, {4, 4}, {9, 3}, {16, 2}};
	struct fixture *f = *state;
	f->options.steps = 1;
	for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
		f->options.ranks = shapes[i].ranks;
		f->options.tp = shapes[i].tp;
		write_set(f, NULL);
		uint32_t last = shapes[i].ranks - 1;
		assert_int_equal(exists(out_path(f, last, "communication.json")),
		                 shapes[i].ranks > 1);
		assert_int_equal(truth(f, last, "collectives"), shapes[i].ranks > 1 ? 3 : 0);
	}
}

/* The tasks of a collective stay inside it and do not overlap on their plane. */
static void tasks_of_a_collective_fit_into_it(void **state)
{
	struct fixture *f = *state;
	f->options.ranks = 12;
	f->options.start_epoch_ns = 1000000000;
	struct np_synth_plan plan;
	assert_int_equal(np_synth_plan_init(&plan, &f->options, NULL), NP_OK);
	struct np_synth_run run = {.plan = &plan};
	size_t rdma = 0;
	for (uint32_t rank = 0; rank < 12; rank += 5) {
		assert_int_equal(np_synth_run_fill(&run, &plan, rank, 0, NULL), NP_OK);
		for (size_t i = 0; i < run.items.n; i++) {
			struct np_synth_comm_task tasks[NP_SYNTH_MAX_COMM_TASKS];
			const struct np_synth_item *item = &run.items.v[i];
			np_ns plane_end[NP_SYNTH_MAX_LINKS] = {0};
			if (item->kind != NP_ITEM_COMM)
				continue;
			size_t n = np_synth_comm_tasks(&run, item, tasks);
			for (size_t k = 0; k < n; k++) {
				np_ns end = tasks[k].start_ns + tasks[k].dur_ns;
				assert_true(tasks[k].dur_ns >= 0);
				assert_true(tasks[k].start_ns >= plane_end[tasks[k].plane]);
				assert_true(tasks[k].start_ns >= item->start_ns);
				assert_true(end <= item->start_ns + item->dur_ns);
				plane_end[tasks[k].plane] = end;
				rdma += tasks[k].rdma;
			}
			assert_int_equal(plane_end[0], item->start_ns + item->dur_ns);
		}
	}
	assert_true(rdma > 0);
	np_synth_run_release(&run);
	np_synth_plan_release(&plan);
}

/* ── the door ── */

static void every_fault_of_the_table_parses_and_is_written(void **state)
{
	struct fixture *f = *state;
	f->options.steps = f->options.layers = 1;
	f->options.formats = NP_SYNTH_TEXT | NP_SYNTH_DB;
	for (int i = 0; i < NP_SYNTH_FAULTS; i++) {
		const struct np_synth_fault_info *info =
			np_synth_fault_info((enum np_synth_fault_id)i);
		char text[64], code[96], path[128];
		const char *argument = info->argument[0] == 'A'                        ? "=1-0"
		                       : info->argument[0] && info->argument[0] != '[' ? "=1"
		                                                                       : "";
		if (i == NP_SYNTH_LOW_FREQ) { /* from here on: what these faults need */
			f->options.ranks = 16;
			f->options.tp = f->options.pp = f->options.ep = 2;
			f->options.layers = 2;
		}
		(void)snprintf(text, sizeof text, "%s%s", info->name, argument);
		write_set(f, text);
		(void)snprintf(code, sizeof code, "{\"fault\": \"%s\", \"code\": \"%s\"",
		               info->name, info->code);
		(void)snprintf(path, sizeof path, "%s/truth.json", f->set);
		assert_non_null(strstr(slurp(f, path).ptr, code));
	}
}

static void the_guide_has_every_fault_with_its_code(void **state)
{
	struct fixture *f = *state;
	const char *source = getenv("NPUPROF_SOURCE");
	if (!source)
		skip();
	np_str guide = slurp(f, np_path_join(&f->arena, source, "docs/guide/synth.md"));
	for (int i = 0; i < NP_SYNTH_FAULTS; i++) {
		const struct np_synth_fault_info *info =
			np_synth_fault_info((enum np_synth_fault_id)i);
		const char *argument =
			info->argument[0] == '['
				? np_arena_printf(&f->arena, "[=%c]", info->argument[1])
				: info->argument;
		const char *row = np_arena_printf(
			&f->arena, "| `%s%s%s` | %s%s%s | %s |", info->name,
			info->argument[0] && info->argument[0] != '[' ? "=" : "", argument,
			info->code[0] ? "`" : "", info->code[0] ? info->code : "–",
			info->code[0] ? "`" : "", info->help);
		if (!strstr(guide.ptr, row))
			fail_msg("the guide has no line %s", row);
	}
}

static void wrong_faults_are_refused(void **state)
{
	static const char *const wrong[] = {"",
	                                    "slow",
	                                    "slow-rank",
	                                    "slow-rank=",
	                                    "slow-rank=x",
	                                    "slow-rank=-1",
	                                    "slow-link=1",
	                                    "slow-link=1-1",
	                                    "slow-link=1-",
	                                    "aicpu=two",
	                                    "warmup-in-window=1",
	                                    "stale=1=2"};
	struct np_synth_fault fault;
	(void)state;
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		if (np_synth_parse_fault(wrong[i], &fault, NULL) != NP_E_USAGE)
			fail_msg("\"%s\" was accepted", wrong[i]);
	unsigned formats;
	assert_int_equal(np_synth_parse_formats("text,db", &formats, NULL), NP_OK);
	assert_int_equal(formats, NP_SYNTH_TEXT | NP_SYNTH_DB);
	assert_int_equal(np_synth_parse_formats("text,xml", &formats, NULL), NP_E_USAGE);
	assert_int_equal(np_synth_parse_formats("", &formats, NULL), NP_E_USAGE);
}

static void wrong_options_are_refused(void **state)
{
	struct fixture *f = *state;
	const struct np_synth_options good = f->options;
	struct np_synth_options bad[10];
	for (int i = 0; i < 10; i++)
		bad[i] = good;
	bad[0].ranks = 0;
	bad[1].steps = NP_SYNTH_MAX_STEPS + 1;
	bad[2].layers = 0;
	bad[3].ops = 0;
	bad[4].formats = 0;
	bad[5].level = 3;
	bad[6].tp = 3;
	bad[7].start_epoch_ns = -1;
	bad[8].steps = NP_SYNTH_MAX_STEPS;
	bad[8].layers = NP_SYNTH_MAX_LAYERS;
	bad[9].n_faults = 1;
	f->faults[0] = (struct np_synth_fault){NP_SYNTH_SLOW_RANK, 2, -1};
	for (int i = 0; i < 10; i++) {
		enum np_status expected = i == 8 ? NP_E_LIMIT : i == 9 ? NP_E_RANGE : NP_E_USAGE;
		assert_int_equal(np_synth_write(f->set, &bad[i], NULL, NULL), expected);
		assert_false(exists(f->set));
	}
}

static void only_empty_directories_and_own_ones_are_written_into(void **state)
{
	struct fixture *f = *state;
	assert_int_equal(np_synth_write(f->set, &f->options, NULL, NULL), NP_OK);
	assert_int_equal(np_synth_write(f->set, &f->options, NULL, NULL), NP_E_EXISTS);
	f->options.force = true;
	f->options.ranks = 1;
	assert_int_equal(np_synth_write(f->set, &f->options, NULL, NULL), NP_OK);
	assert_int_equal(count_dirs(f), 1); /* those of the first set are gone */
	char path[128];
	(void)snprintf(path, sizeof path, "%s/truth.json", f->set);
	assert_int_equal(truncate(path, 0), 0);
	assert_int_equal(np_synth_write(f->set, &f->options, NULL, NULL), NP_E_EXISTS);
}

static void running_out_of_memory_is_told(void **state)
{
	struct fixture *f = *state;
	f->options.steps = f->options.layers = 1;
	f->options.formats = NP_SYNTH_TEXT | NP_SYNTH_DB | NP_SYNTH_MSPROF;
	f->options.set_mtimes = true;
	uint64_t n = 1;
	for (;; n += n < 120 ? 1 : 7) {
		np_mem_fail_after(n);
		enum np_status status = np_synth_write(f->set, &f->options, NULL, &f->err);
		np_mem_fail_after(0);
		char path[128];
		(void)snprintf(path, sizeof path, "%s/truth.json", f->set);
		assert_int_equal(exists(path), status == NP_OK);
		if (exists(f->set))
			assert_int_equal(np_tree_remove(f->set, NULL), NP_OK);
		if (status == NP_OK)
			break;
		assert_int_equal(status, NP_E_NOMEM);
	}
	assert_true(n > 50);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_same_options_give_the_same_bytes),
		TEST(another_seed_gives_other_durations),
		TEST(step_rows_are_the_sums_of_their_kernels),
		TEST(waits_are_gaps_between_rows),
		TEST(text_and_db_have_the_same_kernels),
		TEST(a_collective_ends_at_once_everywhere),
		TEST(op_statistic_sums_the_kernels),
		TEST(levels_differ_in_host_calls),
		TEST(other_groupings_and_single_ranks_work),
		TEST(tasks_of_a_collective_fit_into_it),
		TEST(every_fault_of_the_table_parses_and_is_written),
		TEST(the_guide_has_every_fault_with_its_code),
		TEST(wrong_faults_are_refused),
		TEST(wrong_options_are_refused),
		TEST(only_empty_directories_and_own_ones_are_written_into),
		TEST(running_out_of_memory_is_told),
	};
	return cmocka_run_group_tests_name("synth", tests, NULL, NULL);
}
