/* Layouts and lite sets of synth: what an analysis across ranks may rely on. */
#include "synth_unit.h"

#include <stdlib.h>
#include <string.h>

#include "capture/capture.h"
#include "synth/program.h"

enum { END_JITTER_NS = 400 };

/* 32 ranks on 8 hosts: tp 2, ep 2, dp 4, pp 4. */
static void layout_of(struct fixture *f, const char *fault)
{
	f->options.ranks = 32;
	f->options.tp = f->options.ep = 2;
	f->options.pp = f->options.dp = f->options.layers = 4;
	f->options.ranks_per_host = 4;
	f->options.ops = 4;
	f->options.layout = true;
	f->options.start_epoch_ns = INT64_C(1748764800) * 1000000000;
	f->options.n_faults = 0;
	if (!fault)
		return;
	assert_int_equal(np_synth_parse_fault(fault, &f->faults[0], &f->err), NP_OK);
	f->options.n_faults = 1;
}

static void plan_of(struct fixture *f, const char *fault, struct np_synth_plan *plan)
{
	layout_of(f, fault);
	assert_int_equal(np_synth_layout_options(&f->options, &f->err), NP_OK);
	assert_int_equal(np_synth_plan_init(plan, &f->options, &f->err), NP_OK);
}

/* What all ranks recorded of one collective, by the true clock. */
struct seen {
	uint32_t n, last_rank;
	np_ns first_end, last_end, last, second, sum, base;
};

static void see(struct seen *seen, uint32_t rank, np_ns start, np_ns end)
{
	if (seen->n++ == 0) {
		*seen = (struct seen){1, rank, end, end, start, INT64_MIN, 0, start};
		return;
	}
	seen->first_end = end < seen->first_end ? end : seen->first_end;
	seen->last_end = end > seen->last_end ? end : seen->last_end;
	seen->sum += start - seen->base;
	if (start > seen->last) {
		seen->second = seen->last;
		seen->last = start;
		seen->last_rank = rank;
	} else if (start > seen->second) {
		seen->second = start;
	}
}

static size_t instance_at(const struct np_synth_plan *plan, uint32_t group, uint32_t seq)
{
	for (size_t i = 0; i < plan->instances.n; i++)
		if (plan->instances.v[i].group == group && plan->instances.v[i].seq == seq)
			return i;
	fail_msg("no instance %u of group %u", seq, group);
	return 0;
}

static struct seen *see_all(const struct np_synth_plan *plan)
{
	struct np_synth_run run = {.plan = plan};
	struct seen *seen = calloc(plan->instances.n, sizeof *seen);
	assert_non_null(seen);
	for (uint32_t rank = 0; rank < plan->options.ranks; rank++) {
		assert_int_equal(np_synth_run_fill(&run, plan, rank, 0, NULL), NP_OK);
		for (size_t i = 0; i < run.items.n; i++) {
			const struct np_synth_item *item = &run.items.v[i];
			if (item->kind != NP_ITEM_COMM)
				continue;
			/* no drift: the host's clock is only off */
			np_ns start = item->start_ns - run.shift_ns;
			size_t at = instance_at(plan, item->group, item->index);
			see(&seen[at], rank, start, start + item->dur_ns);
		}
	}
	np_synth_run_release(&run);
	return seen;
}

static void collectives_end_together_and_truth_is_what_ranks_recorded(void **state)
{
	static const char *const faults[] = {NULL, "slow-rank=5", "clock-offset"};
	for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
		struct np_synth_plan plan;
		plan_of(*state, faults[i], &plan);
		struct seen *seen = see_all(&plan);
		size_t p2p = 0;
		for (size_t k = 0; k < plan.instances.n; k++) {
			const struct np_synth_instance *truth = &plan.instances.v[k];
			uint32_t count = plan.groups[truth->group].count;
			assert_int_equal(seen[k].n, count);
			assert_true(seen[k].last_end - seen[k].first_end < END_JITTER_NS);
			assert_int_equal(seen[k].last, truth->last_ns);
			assert_int_equal(seen[k].last_rank, truth->last_rank);
			assert_int_equal(seen[k].last - seen[k].second, truth->late_ns);
			assert_int_equal((seen[k].last - seen[k].base) * count - seen[k].sum,
			                 truth->wait_ns);
			np_ns transfer = seen[k].first_end - seen[k].last;
			assert_in_range(transfer - truth->transfer_ns, 0, END_JITTER_NS);
			p2p += np_synth_is_p2p((enum np_synth_coll)truth->coll);
		}
		/* 8 pipelines, 3 pairs each, 4 micro-batches, two ways, 2 steps */
		assert_int_equal(p2p, 8 * 3 * 4 * 2 * 2);
		free(seen);
		np_synth_plan_release(&plan);
	}
}

static void tasks_of_every_kind_fit_into_their_operation(void **state)
{
	struct np_synth_plan plan;
	plan_of(*state, NULL, &plan);
	struct np_synth_run run = {.plan = &plan};
	bool kinds[NP_COLLS] = {false};
	for (uint32_t rank = 0; rank < 32; rank += 3) {
		assert_int_equal(np_synth_run_fill(&run, &plan, rank, 0, NULL), NP_OK);
		for (size_t i = 0; i < run.items.n; i++) {
			struct np_synth_comm_task tasks[NP_SYNTH_MAX_COMM_TASKS];
			const struct np_synth_item *item = &run.items.v[i];
			np_ns plane_end[NP_SYNTH_MAX_LINKS] = {0};
			if (item->kind != NP_ITEM_COMM)
				continue;
			kinds[item->coll] = true;
			size_t n = np_synth_comm_tasks(&run, item, tasks);
			for (size_t k = 0; k < n; k++) {
				np_ns end = tasks[k].start_ns + tasks[k].dur_ns;
				assert_true(tasks[k].dur_ns >= 0);
				assert_true(!tasks[k].payload || tasks[k].dur_ns > 0);
				assert_true(tasks[k].start_ns >= plane_end[tasks[k].plane]);
				assert_true(end <= item->start_ns + item->dur_ns);
				plane_end[tasks[k].plane] = end;
			}
		}
	}
	for (int kind = 0; kind < NP_COLLS; kind++)
		assert_true(kinds[kind]);
	np_synth_run_release(&run);
	np_synth_plan_release(&plan);
}

/* Groups of a kind share no rank and have all; names and hashes are distinct. */
static void groups_partition_the_ranks(void **state)
{
	struct np_synth_plan plan;
	plan_of(*state, NULL, &plan);
	for (int dim = NP_DIM_WORLD; dim <= NP_DIM_PP; dim++) {
		for (uint32_t rank = 0; rank < 32; rank++) {
			uint32_t at = np_synth_group_of(&plan, rank, (enum np_synth_dim)dim);
			const struct np_synth_group *group = &plan.groups[at];
			assert_true(rank >= group->first);
			uint32_t member = np_synth_member(group, rank);
			assert_true(member < group->count);
			assert_int_equal(np_synth_member_rank(group, member), rank);
		}
	}
	for (size_t i = 0; i < plan.n_groups; i++) {
		char name[NP_SYNTH_GROUP_NAME];
		np_synth_group_name(&plan, &plan.groups[i], name);
		assert_int_equal(np_group_hash(np_str_of(name)), plan.groups[i].hash);
		for (size_t k = 0; k < i; k++)
			assert_true(plan.groups[k].hash != plan.groups[i].hash);
	}
	np_synth_plan_release(&plan);
}

/* ── faults ── */

struct late {
	np_ns sum[32]; /* per rank: last minus second last, of collectives */
	np_ns all;
};

static void sum_late(const struct np_synth_plan *plan, struct late *out)
{
	*out = (struct late){.all = 0};
	for (size_t i = 0; i < plan->instances.n; i++) {
		const struct np_synth_instance *one = &plan->instances.v[i];
		if (np_synth_is_p2p((enum np_synth_coll)one->coll))
			continue;
		out->sum[one->last_rank] += one->late_ns;
		out->all += one->late_ns;
	}
}

static void a_healthy_cluster_has_no_rank_that_stands_out(void **state)
{
	struct np_synth_plan plan;
	struct late late;
	plan_of(*state, NULL, &plan);
	sum_late(&plan, &late);
	np_ns step = (plan.end_ns - plan.first_ns) / plan.options.steps;
	for (int rank = 0; rank < 32; rank++)
		assert_true(late.sum[rank] / plan.options.steps < step / 50);
	np_synth_plan_release(&plan);
}

static void faults_of_a_rank_make_that_rank_late(void **state)
{
	static const char *const faults[] = {
		"slow-rank=5",     "low-freq=5",   "expert-imbalance=5", "late-start=5",
		"carried-delay=5", "host-bound=5", "idle-sync=5",        "idle-gc=5"};
	for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
		struct np_synth_plan plan;
		struct late late;
		plan_of(*state, faults[i], &plan);
		sum_late(&plan, &late);
		for (int rank = 0; rank < 32; rank++)
			if (rank != 5 && late.sum[rank] >= late.sum[5])
				fail_msg("%s: rank %d is later", faults[i], rank);
		np_synth_plan_release(&plan);
	}
}

static int64_t cost(struct fixture *f, const char *key)
{
	char path[128];
	(void)snprintf(path, sizeof path, "%s/truth.json", f->set);
	return json_int(slurp(f, path), "\"costs\": [", key);
}

static void costs_tell_what_a_fault_does(void **state)
{
	static const struct {
		const char *fault;
		bool step, late, carried, transfer;
	} cases[] = {{"slow-rank=5", true, true, true, false},
	             {"carried-delay=5", true, true, true, false},
	             {"stage-imbalance=1", true, false, false, false},
	             {"pipeline-bubble", true, false, false, false},
	             {"slow-node=3", true, false, false, true},
	             {"slow-link=4-5", true, false, false, true},
	             {"clock-offset=2", false, false, false, false},
	             {"clock-drift", false, false, false, false},
	             {"stale", false, false, false, false}};
	struct fixture *f = *state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		layout_of(f, NULL);
		f->options.lite = true;
		write_set(f, cases[i].fault);
		np_ns step = cost(f, "step_cost_ns");
		if (cases[i].step)
			assert_true(step > 100000);
		else
			assert_int_equal(step, 0);
		if (cases[i].late)
			assert_true(cost(f, "late_more_ns") > step / 2);
		if (cases[i].carried)
			assert_true(cost(f, "carried_ns") > step / 2);
		if (cases[i].transfer)
			assert_true(cost(f, "transfer_ns") > 100000);
		if (!cases[i].step)
			assert_int_equal(cost(f, "wait_ns"), 0);
	}
}

/* ── files ── */

static np_ns ns_behind(np_str text, const char *name, const char *key, int ns_per_unit)
{
	char quoted[64];
	(void)snprintf(quoted, sizeof quoted, "\"%s\": ", key);
	const char *at = strstr(text.ptr, name);
	at = at ? strstr(at, quoted) : NULL;
	if (!at)
		fail_msg("no %s of %s", key, name);
	return (np_ns)(strtold(at + strlen(quoted), NULL) * ns_per_unit + 0.5L);
}

/* The world's first all-reduce, from the files: ends differ by the clocks that truth tells. */
static void ends_in_the_files_differ_by_the_clocks(void **state)
{
	struct fixture *f = *state;
	layout_of(f, NULL);
	f->options.lite = true;
	write_set(f, "clock-offset");
	struct np_synth_plan plan;
	plan_of(f, "clock-offset", &plan);
	char name[96], anchor[32], path[128];
	(void)snprintf(name, sizeof name, "hcom_allReduce__%03u_0_1@%llu",
	               (unsigned)(plan.groups[0].hash % 1000),
	               (unsigned long long)plan.groups[0].hash);
	np_synth_plan_release(&plan);
	(void)snprintf(path, sizeof path, "%s/truth.json", f->set);
	np_str truth_text = slurp(f, path);
	np_ns first = 0, largest = 0;
	for (uint32_t rank = 0; rank < 32; rank++) {
		np_str text = slurp(f, out_path(f, rank, "communication.json"));
		(void)snprintf(anchor, sizeof anchor, "{\"host\": %u,", rank / 4);
		np_ns offset = json_int(truth_text, anchor, "offset_ns");
		np_ns end = ns_behind(text, name, "Start Timestamp(us)", 1000) +
		            ns_behind(text, name, "Elapse Time(ms)", 1000000) - offset;
		if (rank == 0)
			first = end;
		assert_true(llabs(end - first) <= END_JITTER_NS + 250);
		largest = llabs(offset) > largest ? llabs(offset) : largest;
	}
	assert_true(largest > 1000000);
}

static size_t count_files(struct fixture *f, const char *dir)
{
	struct np_dir entries;
	size_t n = 0;
	assert_int_equal(np_dir_list(&f->arena, dir, &entries, NULL), NP_OK);
	for (size_t i = 0; i < entries.n; i++)
		n += entries.v[i].kind == NP_FILE_DIR
		             ? count_files(f, np_path_join(&f->arena, dir, entries.v[i].name))
		             : 1;
	return n;
}

static void lite_has_the_small_files_alone(void **state)
{
	struct fixture *f = *state;
	layout_of(f, NULL);
	f->options.lite = true;
	f->options.formats = NP_SYNTH_TEXT | NP_SYNTH_DB;
	write_set(f, NULL);
	assert_int_equal(count_dirs(f), 32);
	assert_int_equal(count_files(f, rank_dir(f, 31)), 7);
	static const char *const names[] = {"step_trace_time.csv", "communication.json",
	                                    "communication_matrix.json", "analysis.db",
	                                    "ascend_pytorch_profiler_31.db"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		assert_true(exists(out_path(f, 31, names[i])));
	sqlite3 *db = open_db(out_path(f, 31, "analysis.db"));
	assert_int_equal(query_int(db, "SELECT count(*) FROM StepTraceTime"), 2);
	assert_true(query_int(db, "SELECT count(*) FROM CommAnalyzerTime WHERE type = 'p2p'") > 0);
	assert_true(query_int(db, "SELECT count(*) FROM CommAnalyzerMatrix WHERE "
	                          "hccl_op_name LIKE 'send-%'") > 0);
	(void)sqlite3_close(db);
	db = open_db(out_path(f, 31, "ascend_pytorch_profiler_31.db"));
	assert_int_equal(query_int(db, "SELECT rankId FROM RANK_DEVICE_MAP"), 31);
	assert_int_equal(query_int(db, "SELECT count(*) FROM TASK"), 0);
	assert_int_equal(query_int(db, "SELECT count(*) FROM HOST_INFO WHERE hostName='node7'"), 1);
	assert_int_equal(query_int(db, "SELECT count(*) FROM META_DATA WHERE name = "
	                               "'parallel_group_info'"),
	                 1);
	(void)sqlite3_close(db);
}

/* Lite files have the bytes that the full set has. */
static void lite_is_a_part_of_the_full_set(void **state)
{
	static const char *const names[] = {"step_trace_time.csv", "communication.json",
	                                    "communication_matrix.json"};
	struct fixture *f = *state;
	np_str lite[3];
	layout_of(f, NULL);
	f->options.lite = true;
	write_set(f, NULL);
	for (int i = 0; i < 3; i++)
		lite[i] = slurp(f, out_path(f, 13, names[i]));
	f->options.lite = false;
	write_set(f, NULL);
	for (int i = 0; i < 3; i++)
		assert_true(np_str_eq(lite[i], slurp(f, out_path(f, 13, names[i]))));
}

/* mstx ranges, and the connections that a forward operator shares with its backward one. */
static void a_full_db_has_marks_and_pairs(void **state)
{
	struct fixture *f = *state;
	layout_of(f, NULL);
	f->options.formats = NP_SYNTH_DB;
	write_set(f, "expert-imbalance=9");
	sqlite3 *db = open_db(out_path(f, 9, "ascend_pytorch_profiler_9.db"));
	static const struct {
		const char *message;
		int64_t count;
	} cases[] = {/* one layer per stage, 4 micro-batches, 2 steps */
	             {"TransformerLayer_1", 8}, {"SelfAttention", 8}, {"MoELayer", 8},
	             {"forward_step", 8},       {"backward_step", 8}, {"dataloader_start", 2},
	             {"dataloader_stop", 2}};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const char *sql = np_arena_printf(
			&f->arena,
			"SELECT count(*) FROM MSTX_EVENTS m JOIN STRING_IDS s ON s.id = m.message "
			"WHERE s.value = '%s'",
			cases[i].message);
		assert_int_equal(query_int(db, sql), cases[i].count);
	}
	/* a module is inside the layer, and a layer inside the micro-batch */
	assert_int_equal(
		query_int(db, "SELECT count(*) FROM MSTX_EVENTS m JOIN STRING_IDS s ON s.id = "
	                      "m.message JOIN MSTX_EVENTS o JOIN STRING_IDS t ON t.id = o.message "
	                      "WHERE s.value = 'MoELayer' AND t.value LIKE 'TransformerLayer%' "
	                      "AND m.startNs >= o.startNs AND m.endNs <= o.endNs"),
		8);
	/* each range of FLOPs has one operator in it */
	assert_int_equal(
		query_int(db, "SELECT max(n) * 100 + min(n) FROM (SELECT count(*) n FROM "
	                      "MSTX_EVENTS m JOIN STRING_IDS d ON d.id = m.domainId JOIN "
	                      "PYTORCH_API p ON CAST(p.startNs AS INTEGER) BETWEEN m.startNs AND "
	                      "m.endNs JOIN STRING_IDS s ON s.id = p.name WHERE d.value = "
	                      "'mfu_flops' AND s.value IN ('aten::linear', "
	                      "'npu::npu_grouped_matmul') GROUP BY m.rowid)"),
		101);
	/* 4 micro-batches of 4 kernels and 2 of experts, 2 steps */
	assert_int_equal(
		query_int(db, "SELECT count(*) FROM (SELECT min(c.id) a, max(c.id) b FROM "
	                      "CONNECTION_IDS c GROUP BY connectionId HAVING count(*) > 1) x JOIN "
	                      "PYTORCH_API p ON p.connectionId = x.a JOIN PYTORCH_API q ON "
	                      "q.connectionId = x.b WHERE p.name = q.name AND p.type = 50001 AND "
	                      "CAST(p.startNs AS INTEGER) < CAST(q.startNs AS INTEGER)"),
		4 * 6 * 2);
	/* three times the tokens: more than 3 * 4000 */
	assert_int_equal(
		query_int(db, "SELECT count(DISTINCT inputShapes) FROM COMPUTE_TASK_INFO c JOIN "
	                      "STRING_IDS s ON s.id = c.opType JOIN STRING_IDS i ON i.id = "
	                      "c.inputShapes WHERE s.value = 'GroupedMatmul' AND "
	                      "CAST(trim(i.value, '\"') AS INTEGER) > 12000"),
		1);
	(void)sqlite3_close(db);
}

static void comm_ops_gives_at_least_so_many(void **state)
{
	static const struct {
		uint32_t tp, pp, dp, ep;
	} shapes[] = {{2, 1, 1, 1}, {1, 1, 4, 1}, {1, 2, 4, 2}, {2, 2, 2, 2}, {4, 3, 1, 1}};
	struct fixture *f = *state;
	for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
		struct np_synth_options options = f->options;
		options.tp = shapes[i].tp;
		options.pp = shapes[i].pp;
		options.dp = shapes[i].dp;
		options.ep = shapes[i].ep;
		options.ranks = options.tp * options.pp * options.dp;
		options.comm_ops = 50;
		options.layout = true;
		assert_int_equal(np_synth_layout_options(&options, &f->err), NP_OK);
		struct np_synth_plan plan;
		assert_int_equal(np_synth_plan_init(&plan, &options, &f->err), NP_OK);
		for (uint32_t stage = 0; stage < plan.pp; stage++)
			assert_in_range(plan.programs[stage].comms, 50, 80);
		np_synth_plan_release(&plan);
	}
}

static void sizes_that_do_not_fit_are_refused(void **state)
{
	static const struct {
		uint32_t ranks, tp, pp, dp, ep, layers;
		const char *fault;
		enum np_status status;
	} cases[] = {{8, 2, 3, 0, 0, 4, NULL, NP_E_USAGE},
	             {8, 2, 2, 4, 0, 4, NULL, NP_E_USAGE},
	             {8, 2, 2, 2, 4, 4, NULL, NP_E_USAGE},
	             {8, 1, 8, 1, 0, 4, NULL, NP_E_USAGE},
	             {8, 2, 2, 2, 0, 4, "expert-imbalance=1", NP_E_USAGE},
	             {8, 2, 1, 4, 0, 4, "stage-imbalance=0", NP_E_USAGE},
	             {8, 2, 1, 4, 0, 4, "pipeline-bubble", NP_E_USAGE},
	             {8, 1, 2, 4, 0, 4, "carried-delay=1", NP_E_USAGE},
	             {8, 2, 2, 2, 0, 4, "slow-node=1", NP_E_RANGE},
	             {8, 2, 2, 2, 0, 4, "stage-imbalance=2", NP_E_RANGE},
	             {8, 2, 2, 2, 0, 4, "clock-drift=8", NP_E_RANGE}};
	struct fixture *f = *state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct np_synth_options options = f->options;
		options.ranks = cases[i].ranks;
		options.tp = cases[i].tp;
		options.pp = cases[i].pp;
		options.dp = cases[i].dp;
		options.ep = cases[i].ep;
		options.layers = cases[i].layers;
		options.n_faults = cases[i].fault != NULL;
		if (cases[i].fault)
			assert_int_equal(
				np_synth_parse_fault(cases[i].fault, &f->faults[0], &f->err),
				NP_OK);
		assert_int_equal(np_synth_write(f->set, &options, NULL, &f->err), cases[i].status);
	}
}

/* The n-th allocation fails, for many n: an error and nothing lost (the sanitizer looks). */
static void running_out_of_memory_is_told(void **state)
{
	struct fixture *f = *state;
	layout_of(f, "slow-rank=1");
	f->options.lite = true;
	f->options.force = true;
	for (uint64_t n = 1; n < 400; n += n < 60 ? 1 : 17) {
		np_mem_fail_after(n);
		enum np_status status = np_synth_write(f->set, &f->options, NULL, &f->err);
		np_mem_fail_after(0);
		if (status == NP_OK)
			break;
		assert_int_equal(status, NP_E_NOMEM);
		(void)np_tree_remove(f->set, NULL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(collectives_end_together_and_truth_is_what_ranks_recorded),
		TEST(tasks_of_every_kind_fit_into_their_operation),
		TEST(groups_partition_the_ranks),
		TEST(a_healthy_cluster_has_no_rank_that_stands_out),
		TEST(faults_of_a_rank_make_that_rank_late),
		TEST(costs_tell_what_a_fault_does),
		TEST(ends_in_the_files_differ_by_the_clocks),
		TEST(lite_has_the_small_files_alone),
		TEST(lite_is_a_part_of_the_full_set),
		TEST(a_full_db_has_marks_and_pairs),
		TEST(comm_ops_gives_at_least_so_many),
		TEST(sizes_that_do_not_fit_are_refused),
		TEST(running_out_of_memory_is_told),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
