/* Pipelines: the schedule of DualPipeV, pp_chart. */
#include "cluster_unit.h"

#include "cluster/dualpipev.h"

extern const struct np_recipe np_recipe_pp_chart;

static const struct np_cluster_options plain, compat = {.compat = true};

/* ── the schedule ── */

/* "12", "3F+9B", "10b", "10w", "logits" → how often each micro-batch was there */
static void count_task(const char *name, size_t m, unsigned *forward, unsigned *backward,
                       unsigned *weights)
{
	while (*name && strcmp(name, "logits") != 0) {
		char *end;
		unsigned long id = strtoul(name, &end, 10);
		assert_true(end > name && id < 2 * m);
		if (*end == 'B' || *end == 'b')
			backward[id]++;
		else if (*end == 'w')
			weights[id]++;
		else
			forward[id]++;
		name = *end && *end != '+' ? end + 1 : end;
		name += *name == '+';
	}
}

static void check_stage(size_t stages, size_t m, size_t stage)
{
	struct np_pipe_tasks tasks;
	unsigned *counts = calloc(6 * m, sizeof *counts);
	size_t logits = 0;
	assert_non_null(counts);
	assert_true(np_dualpipev(stages, m, stage, &tasks));
	/* closed form: 2m + 4P - 2i - 2, logits, and the split overlap of the last stage */
	size_t expected =
		2 * m + 4 * stages - 2 * stage - 2 + (stage == 0 ? m : 0) + (stage == stages - 1);
	assert_int_equal(tasks.n, expected);
	for (size_t t = 0; t < tasks.n; t++) {
		assert_true(t == 0 || tasks.v[t].phase >= tasks.v[t - 1].phase);
		logits += strcmp(tasks.v[t].name, "logits") == 0;
		count_task(tasks.v[t].name, m, counts, counts + 2 * m, counts + 4 * m);
	}
	assert_int_equal(logits, stage == 0 ? m : 0);
	/* every micro-batch goes once through each chunk, there and back */
	for (size_t id = 0; id < 2 * m; id++) {
		assert_int_equal(counts[id], 1);
		assert_int_equal(counts[2 * m + id], 1);
		assert_int_equal(counts[4 * m + id],
		                 id >= m && id < m + stages - stage - 1 ? 1 : 0);
	}
	np_pipe_tasks_release(&tasks);
	free(counts);
}

static void every_micro_batch_is_there_once(void **state)
{
	(void)state;
	for (size_t stages = 1; stages <= 9; stages++)
		for (size_t m = 2 * stages; m <= 2 * stages + 7; m++)
			for (size_t stage = 0; stage < stages; stage++)
				check_stage(stages, m, stage);
}

static void two_stages_of_four_batches(void **state)
{
	(void)state;
	static const char *const expected[2][17] = {
		{"0", "1", "2", "4", "logits", "4b", "4w", "5", "logits", "3F+5B", "6F+0B",
	         "logits", "6B", "7F+1B", "logits", "7B", "2B"},
		{"0", "4", "1", "5", "2F", "4B", "6F+0B", "3F+5B", "7F+1B", "6B", "2B", "7B", "3B",
	         NULL},
	};
	static const uint8_t phases[2][17] = {
		{0, 0, 1, 1, 2, 2, 2, 2, 3, 3, 3, 4, 4, 4, 5, 5, 6},
		{1, 1, 1, 1, 3, 3, 3, 3, 3, 5, 5, 6, 6},
	};
	for (size_t stage = 0; stage < 2; stage++) {
		struct np_pipe_tasks tasks;
		assert_true(np_dualpipev(2, 4, stage, &tasks));
		assert_int_equal(tasks.n, stage == 0 ? 18 : 13);
		for (size_t t = 0; t < tasks.n && t < 17; t++) {
			assert_string_equal(tasks.v[t].name, expected[stage][t]);
			assert_int_equal(tasks.v[t].phase, phases[stage][t]);
		}
		np_pipe_tasks_release(&tasks);
	}
}

static void fewer_batches_than_two_per_stage_have_none(void **state)
{
	(void)state;
	assert_true(np_dualpipev_fits(4, 8));
	assert_false(np_dualpipev_fits(4, 7));
	assert_false(np_dualpipev_fits(0, 8));
	assert_false(np_dualpipev_fits(-1, INT64_MAX));
	assert_true(np_dualpipev_fits(1, NP_PIPE_MAX_BATCHES));
	assert_false(np_dualpipev_fits(1, NP_PIPE_MAX_BATCHES + 1));
	assert_false(np_dualpipev_fits(NP_PIPE_MAX_STAGES + 1, NP_PIPE_MAX_BATCHES));
}

/* ── pp_chart ── */

/* One pass: a mark of the host and its task. */
static void add_pass(struct np_profile *p, const char *message, np_ns host, np_ns start, np_ns end)
{
	int64_t conn = (int64_t)p->mstx.n + 1;
	add_mstx(p, NP_MSTX_START_END, message, host, host + 5, conn);
	add_task(p, start, end - start, 77, conn);
}

static struct np_profile *two_steps(void)
{
	struct np_profile *p = np_profile_new();
	add_step(p, 1, 0, 100);
	add_step(p, 2, 101, 200);
	add_pass(p, "forward_step", 10, 1000, 1100);
	add_pass(p, "Backward_step", 20, 1150, 1300);
	add_pass(p, "WeightGradStore_pop", 30, 1290, 1350); /* overlaps the one before */
	add_pass(p, "forward_step", 110, 2000, 2100);
	add_pass(p, "backward_step", 120, 2100, 2250);
	add_pass(p, "dataloader", 130, 2260, 2270);
	add_mstx(p, NP_MSTX_MARKER_EX, "forward without a task", 140, 140, 999);
	return p;
}

static size_t count_tasks(const struct np_profile *p, const struct np_cluster_options *options,
                          np_ns from, np_ns to)
{
	struct unit_rank rank = {0};
	assert_int_equal(map_part(&np_part_pp_tasks, &rank, p, options, from, to), NP_OK);
	const struct np_digest_pp_tasks *rows =
		np_digest_find(rank.digest, &np_digest_pp_tasks_desc);
	size_t n = rows->n;
	np_digest_free(rank.digest);
	return n;
}

static void the_step_filter_is_for_all_messages(void **state)
{
	(void)state;
	struct np_profile *p = two_steps();
	assert_int_equal(count_tasks(p, &plain, 0, INT64_MAX), 5);
	assert_int_equal(count_tasks(p, &plain, 0, 100), 3);
	assert_int_equal(count_tasks(p, &plain, 101, 200), 2);
	/* official: forward OR backward OR (pop AND in range) */
	assert_int_equal(count_tasks(p, &compat, 101, 200), 4);
	np_profile_free(p);
}

static int64_t int_at(const struct np_table *table, size_t row, size_t column)
{
	const struct np_cell *cell = np_table_cell(table, row, column);
	return cell->na ? -1 : cell->i;
}

static void bubbles_are_the_time_between_tasks(void **state)
{
	(void)state;
	struct np_profile *p = two_steps();
	struct unit_rank rank = {0};
	struct np_report *report = np_report_new("cluster");
	assert_int_equal(map_part(&np_part_pp_tasks, &rank, p, &plain, 0, INT64_MAX), NP_OK);
	assert_int_equal(reduce_ranks(&np_recipe_pp_chart, &rank, 1, &plain, report), NP_OK);
	const struct np_table *tasks = table_of(report, "StepTaskInfo");
	assert_int_equal(np_table_rows(tasks), 5);
	assert_str(np_table_cell(tasks, 0, 1)->s, "FP");
	assert_str(np_table_cell(tasks, 2, 1)->s, "BP");
	assert_int_equal(int_at(tasks, 2, 4), 1);
	const struct np_table *bubbles = table_of(report, "PipelineBubble");
	/* step 1: 1000 … 1350 without 1100 … 1150; step 2: nothing between */
	static const int64_t expected[2][8] = {{0, -1, 1, 3, 1000, 1350, 300, 50},
	                                       {0, -1, 2, 2, 2000, 2250, 250, 0}};
	assert_int_equal(np_table_rows(bubbles), 2);
	for (size_t r = 0; r < 2; r++)
		for (size_t c = 0; c < 8; c++)
			assert_int_equal(int_at(bubbles, r, c), expected[r][c]);
	assert_int_equal(report->exit_code, 0);
	np_report_free(report);
	np_profile_free(p);
}

/* A rank of a DualPipeV of one stage and two micro-batches: 3m + 4P - 2 + 1 = 9 tasks. */
static void chart_dual(size_t n_tasks, const char *pp_info,
                       const struct np_cluster_options *options, struct np_report *report)
{
	struct np_profile *p = np_profile_new();
	struct unit_rank rank = {.capture = {.pp_info = pp_info,
	                                     .parallel = {.tp = 1, .pp = 1, .dp = 1},
	                                     .world_size = 1}};
	add_step(p, 3, 0, 10000);
	for (size_t t = 0; t < n_tasks; t++)
		add_pass(p, t % 2 ? "backward" : "forward", 10 + 10 * (np_ns)t,
		         1000 + 10 * (np_ns)t, 1008 + 10 * (np_ns)t);
	add_pass(p, "forward", 20, 1001, 1005);      /* within another one */
	add_pass(p, "forward", 20000, 90000, 90005); /* outside of all steps */
	assert_int_equal(map_part(&np_part_pp_tasks, &rank, p, options, 0, INT64_MAX), NP_OK);
	assert_int_equal(reduce_ranks(&np_recipe_pp_chart, &rank, 1, options, report), NP_OK);
	np_profile_free(p);
}

static void tasks_get_the_names_of_the_schedule(void **state)
{
	(void)state;
	static const char info[] = "{\"pp_type\": \"DualPipeV\", \"microbatch_num\": 2}";
	static const char *const names[] = {"0",     "2",      "logits", "1F", "2B",
	                                    "3F+0B", "logits", "3B",     "1B"};
	struct np_report *report = np_report_new("cluster");
	chart_dual(9, info, &plain, report);
	const struct np_table *tasks = table_of(report, "StepTaskInfo");
	assert_int_equal(np_table_rows(tasks), 9);
	for (size_t t = 0; t < 9; t++)
		assert_str(np_table_cell(tasks, t, 1)->s, names[t]);
	assert_int_equal(int_at(tasks, 8, 4), 6);
	assert_int_equal(int_at(table_of(report, "PipelineBubble"), 0, 1), 0);
	assert_int_equal(report->exit_code, 0);
	np_report_free(report);
}

static void another_number_of_tasks_is_told(void **state)
{
	(void)state;
	static const char info[] = "{\"pp_type\": \"dualpipev\", \"microbatch_num\": 2}";
	struct np_report *report = np_report_new("cluster");
	chart_dual(8, info, &plain, report);
	assert_int_equal(findings_of(report, "CLUSTER_PP_SCHEDULE"), 1);
	assert_int_equal(report->exit_code, 3);
	assert_str(np_table_cell(table_of(report, "StepTaskInfo"), 1, 1)->s, "BP");
	np_report_free(report);
	report = np_report_new("cluster");
	chart_dual(8, info, &compat, report); /* the official tool leaves them unnamed */
	assert_str(np_table_cell(table_of(report, "StepTaskInfo"), 1, 1)->s, "");
	assert_int_equal(int_at(table_of(report, "StepTaskInfo"), 1, 4), 0);
	np_report_free(report);
}

static void too_few_batches_are_told(void **state)
{
	(void)state;
	static const char *const infos[] = {"{\"pp_type\": \"dualpipev\", \"microbatch_num\": 1}",
	                                    "{\"pp_type\": \"dualpipev\"}",
	                                    "{\"pp_type\": \"1f1b\", \"microbatch_num\": 1}",
	                                    "not JSON", ""};
	static const size_t findings[] = {1, 1, 0, 0, 0};
	for (size_t i = 0; i < 5; i++) {
		struct np_report *report = np_report_new("cluster");
		chart_dual(9, infos[i], &plain, report);
		assert_int_equal(findings_of(report, "CLUSTER_PP_SCHEDULE"), findings[i]);
		/* nothing is left out: two more than the schedule has */
		assert_int_equal(np_table_rows(table_of(report, "StepTaskInfo")), 11);
		np_report_free(report);
	}
}

static enum np_status chart_once(void *ctx)
{
	struct unit_rank rank = {
		.capture = {.pp_info = "{\"pp_type\": \"dualpipev\", \"microbatch_num\": 2}",
	                    .parallel = {.tp = 1, .pp = 1, .dp = 1},
	                    .world_size = 1}};
	struct np_err err;
	struct np_report *report = np_report_new("cluster");
	enum np_status status =
		report ? map_part(&np_part_pp_tasks, &rank, ctx, &plain, 0, INT64_MAX) : NP_E_NOMEM;
	if (status == NP_OK)
		status = reduce_ranks(&np_recipe_pp_chart, &rank, 1, &plain, report);
	else
		np_digest_free(rank.digest);
	if (status == NP_OK)
		status = np_report_ok(report, &err);
	np_report_free(report);
	return status;
}

static void without_memory_there_is_no_chart(void **state)
{
	(void)state;
	struct np_profile *p = two_steps();
	survive_no_memory(chart_once, p);
	np_profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_micro_batch_is_there_once),
		cmocka_unit_test(two_stages_of_four_batches),
		cmocka_unit_test(fewer_batches_than_two_per_stage_have_none),
		cmocka_unit_test(the_step_filter_is_for_all_messages),
		cmocka_unit_test(bubbles_are_the_time_between_tasks),
		cmocka_unit_test(tasks_get_the_names_of_the_schedule),
		cmocka_unit_test(another_number_of_tasks_is_told),
		cmocka_unit_test(too_few_batches_are_told),
		cmocka_unit_test(without_memory_there_is_no_chart),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
