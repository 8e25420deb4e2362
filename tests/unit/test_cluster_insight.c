/* The modes `summary` and `communication`: the same figures for text and database, what a
 * capture lacks, thresholds on both sides, and memory that runs out. */
#include <math.h>

#include "unit.h"

#include "base/mem.h"
#include "cluster/communication.h"
#include "cluster/summary.h"
#include "synth_set.h"

/* ── a whole run over a made-up set ── */

static void run(const char *dir, const char *mode, int64_t step, struct np_report *report)
{
	const struct np_recipe *recipe = np_recipe_find(np_str_of(mode));
	struct np_cluster_options options = {.recipes = &recipe,
	                                     .n_recipes = 1,
	                                     .has_step = step >= 0,
	                                     .step = step,
	                                     .no_cache = true,
	                                     .threads = 1};
	struct np_captures *all = NULL;
	struct np_cluster cluster;
	struct np_err err = {0};
	assert_non_null(recipe);
	assert_int_equal(np_discover(dir, &all, &err), NP_OK);
	assert_int_equal(np_cluster_open(&cluster, all, &options, report, &err), NP_OK);
	assert_int_equal(np_cluster_map(&cluster, &err), NP_OK);
	assert_int_equal(np_cluster_reduce(&cluster, &err), NP_OK);
	assert_int_equal(np_report_ok(report, &err), NP_OK);
	np_cluster_close(&cluster);
	np_captures_free(all);
}

static struct np_report *run_synth(unsigned formats, uint32_t ranks, int level, const char *faults,
                                   const char *mode, int64_t step)
{
	char dir[TREE_PATH];
	struct np_report *report = np_report_new("cluster");
	assert_non_null(report);
	(void)tree_new(dir);
	synth_set(dir, formats, ranks, level, faults);
	run(dir, mode, step, report);
	tree_remove(dir);
	return report;
}

static const struct np_table *table_of(const struct np_report *report, const char *id)
{
	for (size_t i = 0; i < report->tables.n; i++)
		if (strcmp(report->tables.v[i]->id, id) == 0)
			return report->tables.v[i];
	fail_msg("no table %s", id);
	return NULL;
}

static size_t column_of(const struct np_table *table, const char *name)
{
	for (size_t c = 0; c < table->n_columns; c++)
		if (strcmp(table->columns[c].name, name) == 0)
			return c;
	fail_msg("no column %s.%s", table->id, name);
	return 0;
}

static double real(const struct np_report *report, const char *id, size_t row, const char *column)
{
	const struct np_table *table = table_of(report, id);
	const struct np_cell *cell = np_table_cell(table, row, column_of(table, column));
	return cell->na ? NAN : cell->r;
}

static size_t rows_of(const struct np_report *report, const char *id)
{
	return np_table_rows(table_of(report, id));
}

static bool has_code(const struct np_report *report, const char *code)
{
	for (size_t i = 0; i < report->findings.n; i++)
		if (strcmp(report->findings.v[i]->code, code) == 0)
			return true;
	return false;
}

/* Every cell of both, reals to within 1 us in the unit of the column. */
static void assert_same(const struct np_report *a, const struct np_report *b, const char *id,
                        double tolerance)
{
	const struct np_table *x = table_of(a, id), *y = table_of(b, id);
	assert_int_equal(np_table_rows(x), np_table_rows(y));
	assert_true(np_table_rows(x) > 0);
	for (size_t r = 0; r < np_table_rows(x); r++) {
		for (size_t c = 0; c < x->n_columns; c++) {
			const struct np_cell *p = np_table_cell(x, r, c),
					     *q = np_table_cell(y, r, c);
			if (p->na || q->na)
				assert_int_equal(p->na, q->na);
			else if (x->columns[c].type == NP_COL_TEXT)
				assert_true(np_str_eq(p->s, q->s));
			else if (x->columns[c].type == NP_COL_REAL ||
			         x->columns[c].type == NP_COL_PERCENT)
				assert_true(fabs(p->r - q->r) <= tolerance);
			else if (x->columns[c].type != NP_COL_TIME_NS)
				assert_int_equal(p->i, q->i);
		}
	}
}

static void text_and_db_agree(void **state)
{
	(void)state;
	struct np_report *text = run_synth(NP_SYNTH_TEXT, 4, 1, "", "communication", -1);
	struct np_report *db = run_synth(NP_SYNTH_DB, 4, 1, "", "communication", -1);
	assert_same(text, db, "CommunicationTime", 1e-6);
	assert_same(text, db, "CommunicationGroups", 0);
	assert_same(text, db, "CommunicationPackets", 1e-6);
	assert_int_equal(rows_of(text, "CommunicationMatrix"), rows_of(db, "CommunicationMatrix"));
	np_report_free(text);
	np_report_free(db);
	text = run_synth(NP_SYNTH_TEXT, 4, 1, "", "summary", -1);
	db = run_synth(NP_SYNTH_DB, 4, 1, "", "summary", -1);
	assert_same(text, db, "SummaryComputing", 1e-3);
	assert_same(text, db, "SummaryStrategy", 0);
	assert_int_equal(rows_of(text, "SummaryRanks"), 8); /* 4 ranks, 2 steps */
	for (size_t r = 0; r < 8; r++)
		assert_true(fabs(real(text, "SummaryRanks", r, "computing_us") -
		                 real(db, "SummaryRanks", r, "computing_us")) < 0.1);
	np_report_free(text);
	np_report_free(db);
}

static void slow_rank_is_found(void **state)
{
	(void)state;
	struct np_report *report = run_synth(NP_SYNTH_DB, 4, 1, "slow-rank=2", "communication", -1);
	assert_true(has_code(report, "COMM_SLOW_RANK"));
	const struct np_table *table = table_of(report, "CommunicationSlowRanks");
	size_t rank = column_of(table, "rank"), found = 0;
	for (size_t r = 0; r < np_table_rows(table); r++)
		found += np_table_cell(table, r, rank)->i == 2;
	assert_true(found > 0);
	assert_int_equal(report->exit_code, 0);
	np_report_free(report);
	report = run_synth(NP_SYNTH_DB, 4, 1, "slow-rank=2", "summary", -1);
	assert_true(has_code(report, "RANKS_UNEVEN"));
	assert_true(has_code(report, "SLOW_GROUP"));
	np_report_free(report);
}

/* Without communication.json there are elapsed times, and it is said. */
static void level0_has_elapsed_times(void **state)
{
	(void)state;
	struct np_report *report = run_synth(NP_SYNTH_TEXT, 2, 0, "", "communication", -1);
	assert_true(has_code(report, "CLUSTER_RANK_LACKING"));
	assert_int_equal(report->exit_code, 3);
	assert_true(rows_of(report, "CommunicationTime") > 0);
	assert_true(real(report, "CommunicationTime", 0, "elapsed_ms") > 0);
	assert_true(isnan(real(report, "CommunicationTime", 0, "transit_ms")));
	assert_int_equal(rows_of(report, "CommunicationMatrix"), 0);
	np_report_free(report);
}

static void one_rank_and_no_step(void **state)
{
	(void)state;
	struct np_report *report = run_synth(NP_SYNTH_DB, 1, 1, "", "communication", -1);
	assert_true(has_code(report, "CLUSTER_MODE_EMPTY"));
	assert_int_equal(report->exit_code, 3);
	np_report_free(report);
	report = run_synth(NP_SYNTH_DB, 1, 1, "", "summary", -1);
	assert_int_equal(rows_of(report, "SummaryRanks"), 2);
	assert_int_equal(rows_of(report, "SummarySpread"), 0);
	np_report_free(report);
	report = run_synth(NP_SYNTH_TEXT, 2, 1, "", "summary", 99);
	assert_true(has_code(report, "CLUSTER_STEP_ABSENT")); /* then all are taken */
	assert_int_equal(rows_of(report, "SummaryRanks"), 4);
	np_report_free(report);
	report = run_synth(NP_SYNTH_TEXT, 2, 1, "", "summary", 13);
	assert_int_equal(rows_of(report, "SummaryRanks"), 2);
	np_report_free(report);
}

/* ── rules, on figures made by hand ── */

struct hand {
	struct np_captures all;
	struct np_capture capture;
	struct np_cluster_options options;
	struct np_cluster cluster;
};

static void hand_open(struct hand *self, size_t ranks)
{
	memset(self, 0, sizeof *self);
	np_arena_init(&self->cluster.arena);
	assert_true(np_intern_init(&self->cluster.strings));
	self->cluster.all = &self->all;
	self->cluster.options = &self->options;
	self->cluster.report = np_report_new("cluster");
	for (size_t r = 0; r < ranks; r++)
		assert_true(np_vec_push(
			&self->cluster.ranks,
			(struct np_cluster_rank){.capture = &self->capture, .rank = (int64_t)r}));
}

static void hand_close(struct hand *self)
{
	np_report_free(self->cluster.report);
	np_vec_release(&self->cluster.ranks);
	np_intern_release(&self->cluster.strings);
	np_arena_release(&self->cluster.arena);
}

/* How many of a group with these elapsed times are slow; by name and kind of the group. */
static size_t slow(const double *elapse, size_t n, const char *name, bool p2p)
{
	struct hand hand;
	struct np_group group = {.name = name};
	hand_open(&hand, n);
	struct np_comm_units units = {.cluster = &hand.cluster};
	for (size_t r = 0; r < n; r++)
		assert_true(np_vec_push(&units.units, (struct np_comm_unit){.step = 1,
		                                                            .rank = (uint32_t)r,
		                                                            .p2p = p2p,
		                                                            .elapse = elapse[r],
		                                                            .recorded = &group}));
	assert_true(np_comm_slow_ranks(&units));
	size_t found = rows_of(hand.cluster.report, "CommunicationSlowRanks");
	assert_int_equal(has_code(hand.cluster.report, "COMM_SLOW_RANK"), found > 0);
	np_vec_release(&units.units);
	hand_close(&hand);
	return found;
}

static void slow_from_ten_percent(void **state)
{
	(void)state;
	const double at[] = {100, 90}, below[] = {100, 90.1}, many[] = {1, 2, 3, 4, 100};
	const double none[] = {0, 0}, unknown[] = {100, NAN};
	assert_int_equal(slow(at, 2, "dp", false), 1);
	assert_int_equal(slow(below, 2, "dp", false), 0);
	assert_int_equal(slow(many, 5, "dp", false), 3);
	assert_int_equal(slow(at, 2, "pp", false), 0);
	assert_int_equal(slow(at, 2, "dp", true), 0);
	assert_int_equal(slow(at, 1, "dp", false), 0);
	assert_int_equal(slow(none, 2, "dp", false), 0);
	assert_int_equal(slow(unknown, 2, "dp", false), 0);
}

/* Is computing of 100 + difference against 100, in steps of 1000 us, uneven? */
static bool uneven(double difference)
{
	struct hand hand;
	hand_open(&hand, 2);
	struct np_summary summary = {.cluster = &hand.cluster};
	for (uint32_t r = 0; r < 2; r++) {
		struct np_sum_row row = {.step = 1, .rank = r};
		row.v[NP_SUM_E2E] = 1000;
		row.v[NP_SUM_COMPUTING] = r == 0 ? 100 : 100 + difference;
		assert_true(np_vec_push(&summary.rows, row));
	}
	assert_true(np_summary_advice(&summary));
	bool found = has_code(hand.cluster.report, "RANKS_UNEVEN");
	np_vec_release(&summary.rows);
	hand_close(&hand);
	return found;
}

static void uneven_above_five_percent(void **state)
{
	(void)state;
	assert_false(uneven(50));
	assert_true(uneven(50.1));
	assert_false(uneven(0));
	assert_false(uneven(NAN));
}

/* Packets of 15.9 and 16 MB on HCCS: is a share of small ones told? */
static bool small_told(double small, double large)
{
	struct hand hand;
	hand_open(&hand, 1);
	struct np_digest *digest = np_digest_new();
	assert_non_null(digest);
	struct np_digest_insight_pack *pack = np_digest_table(digest, &np_digest_insight_pack_desc);
	np_id hccs = np_intern_add(&hand.cluster.strings, NP_STR("HCCS"));
	for (int i = 0; i < 2; i++) {
		size_t r = np_rows_add(pack, &np_digest_insight_pack_desc);
		pack->step[r] = 1;
		pack->group[r] = NP_ID_NONE;
		pack->transport[r] = hccs;
		pack->package_mb[r] = i == 0 ? 15.9 : 16;
		pack->count[r] = i == 0 ? small : large;
		pack->ms[r] = 1;
	}
	hand.cluster.ranks.v[0].digest = digest;
	struct np_comm_units units = {.cluster = &hand.cluster};
	assert_true(
		np_vec_push(&units.units, (struct np_comm_unit){.step = 1, .group = NP_ID_NONE}));
	assert_true(np_comm_packets(&units));
	assert_int_equal(rows_of(hand.cluster.report, "CommunicationPackets"), 2);
	bool told = has_code(hand.cluster.report, "COMM_SMALL_PACKETS");
	np_vec_release(&units.units);
	np_digest_free(digest);
	hand_close(&hand);
	return told;
}

static void small_above_twenty_percent(void **state)
{
	(void)state;
	assert_false(small_told(2, 8));
	assert_true(small_told(3, 8));
}

/* An operation of `elapse` ms on the quicker of two ranks, `rdma` ms of it on RDMA. */
static bool retransmission_told(double elapse, double rdma)
{
	struct hand hand;
	bool told;
	hand_open(&hand, 2);
	np_id op = np_intern_add(&hand.cluster.strings, NP_STR("hcom_allReduce__1_1_1"));
	for (int k = 0; k < 2; k++) {
		struct np_digest *digest = np_digest_new();
		struct np_digest_insight_rdma *links =
			np_digest_table(digest, &np_digest_insight_rdma_desc);
		struct np_digest_insight_time *times =
			np_digest_table(digest, &np_digest_insight_time_desc);
		size_t r = np_rows_add(links, &np_digest_insight_rdma_desc);
		links->step[r] = 1;
		links->group[r] = NP_ID_NONE;
		links->op[r] = op;
		links->ms[r] = rdma;
		r = np_rows_add(times, &np_digest_insight_time_desc);
		times->step[r] = 1;
		times->group[r] = NP_ID_NONE;
		times->op[r] = op;
		times->elapse_ms[r] = k == 0 ? elapse : 9000;
		hand.cluster.ranks.v[k].digest = digest;
	}
	struct np_comm_units units = {.cluster = &hand.cluster};
	assert_true(np_comm_advice(&units));
	told = has_code(hand.cluster.report, "COMM_RETRANSMISSION");
	np_digest_free(hand.cluster.ranks.v[0].digest);
	np_digest_free(hand.cluster.ranks.v[1].digest);
	hand_close(&hand);
	return told;
}

static void retransmission_beyond_four_seconds(void **state)
{
	(void)state;
	assert_true(retransmission_told(4000.1, 4000.1));
	assert_false(retransmission_told(4000, 4000.1));
	assert_false(retransmission_told(4000.1, 4000));
}

/* ── the checks that need kernels and tasks ── */

static uint32_t text(struct np_profile *profile, const char *s)
{
	return np_intern_add(&profile->strings, np_str_of(s));
}

static void add_kernel(struct np_profile *p, const char *type, np_ns start, np_ns dur)
{
	size_t r = np_profile_add(p, kernels);
	p->kernels.type[r] = text(p, type);
	p->kernels.core[r] = text(p, "AI_CORE");
	p->kernels.start_ns[r] = start;
	p->kernels.dur_ns[r] = dur;
}

static void add_op(struct np_profile *p, const char *name, double start_us, double gbps)
{
	size_t r = np_profile_add(p, comm_time);
	p->comm_time.step[r] = 1;
	p->comm_time.op[r] = text(p, name);
	p->comm_time.group[r] = text(p, "7");
	p->comm_time.start_us[r] = start_us;
	p->comm_time.elapse_ms[r] = 1;
	r = np_profile_add(p, comm_bandwidth);
	p->comm_bandwidth.step[r] = 1;
	p->comm_bandwidth.op[r] = text(p, name);
	p->comm_bandwidth.group[r] = text(p, "7");
	p->comm_bandwidth.transport[r] = text(p, "SDMA");
	p->comm_bandwidth.transit_ms[r] = 1;
	p->comm_bandwidth.gbps[r] = gbps;
	p->comm_bandwidth.package_mb[r] = NAN;
}

static void add_copy(struct np_profile *p, int64_t size, const char *link)
{
	size_t r = np_profile_add(p, comm_tasks);
	p->comm_tasks.op[r] = NP_NO_U32;
	p->comm_tasks.name[r] = text(p, "Memcpy");
	p->comm_tasks.transport[r] = text(p, "SDMA");
	p->comm_tasks.link[r] = text(p, link);
	p->comm_tasks.size_bytes[r] = size;
	p->comm_tasks.dur_ns[r] = 1000000;
}

static struct np_digest *checked(struct np_profile *profile)
{
	struct np_digest *digest = np_digest_new();
	struct np_map_job job = {.profile = profile, .digest = digest};
	struct np_err err = {0};
	assert_non_null(digest);
	assert_int_equal(np_part_insight_check.map(&job, &err), NP_OK);
	return digest;
}

static void contention_beside_products(void **state)
{
	(void)state;
	struct np_profile *p = np_profile_new();
	add_kernel(p, "MatMulV3", 1000000, 1000000);
	add_kernel(p, "Add", 9000000, 1000000);
	add_op(p, "slow_beside", 1500, 14.3); /* 1.5 … 2.5 ms: half beside */
	add_op(p, "fast_beside", 1000, 14.4);
	add_op(p, "slow_alone", 5000, 1);
	add_op(p, "slow_beside_add", 9000, 1);
	struct np_digest *digest = checked(p);
	const struct np_digest_insight_check *rows =
		np_digest_find(digest, &np_digest_insight_check_desc);
	assert_int_equal(rows->n, 1);
	assert_int_equal(rows->count[0], 1);
	assert_int_equal(rows->of[0], 4);
	assert_true(fabs(rows->ms[0] - 0.5) < 1e-9);
	assert_str(np_intern_get(&digest->strings, rows->op[0]), "slow_beside");
	np_digest_free(digest);
	np_profile_free(p);
}

static void sizes_of_512(void **state)
{
	(void)state;
	struct np_profile *p = np_profile_new();
	add_copy(p, 1024, "HCCS");
	add_copy(p, 1025, "HCCS");
	add_copy(p, 511, "HCCS");     /* too small to matter */
	add_copy(p, 1025, "ON_CHIP"); /* does not leave the chip */
	struct np_digest *digest = checked(p);
	const struct np_digest_insight_check *rows =
		np_digest_find(digest, &np_digest_insight_check_desc);
	assert_int_equal(rows->n, 1);
	assert_int_equal(rows->what[0], NP_INSIGHT_ALIGNMENT);
	assert_int_equal(rows->count[0], 1);
	assert_int_equal(rows->of[0], 2);
	struct hand hand;
	hand_open(&hand, 1);
	rows->op[0] = NP_ID_NONE;
	hand.cluster.ranks.v[0].digest = digest;
	struct np_comm_units units = {.cluster = &hand.cluster};
	assert_true(np_comm_advice(&units));
	assert_true(has_code(hand.cluster.report, "COMM_UNALIGNED"));
	assert_false(has_code(hand.cluster.report, "COMM_CONTENTION"));
	hand_close(&hand);
	np_digest_free(digest);
	np_profile_free(p);
}

/* ── memory ── */

static void out_of_memory(void **state)
{
	(void)state;
	static const char *const modes[] = {"summary", "communication"};
	char dir[TREE_PATH];
	(void)tree_new(dir);
	synth_set(dir, NP_SYNTH_DB, 2, 1, "");
	for (size_t m = 0; m < 2; m++) {
		const struct np_recipe *recipe = np_recipe_find(np_str_of(modes[m]));
		struct np_cluster_options options = {
			.recipes = &recipe, .n_recipes = 1, .no_cache = true, .threads = 1};
		struct np_captures *all = NULL;
		struct np_err err = {0};
		struct np_cluster cluster;
		struct np_report *report = np_report_new("cluster");
		assert_int_equal(np_discover(dir, &all, &err), NP_OK);
		assert_int_equal(np_cluster_open(&cluster, all, &options, report, &err), NP_OK);
		assert_int_equal(np_cluster_map(&cluster, &err), NP_OK);
		enum np_status status = NP_E_NOMEM;
		for (uint64_t n = 1; n < 3000 && status != NP_OK; n += 1 + n / 20) {
			struct np_report *trial = np_report_new("cluster");
			cluster.report = trial;
			np_mem_fail_after(n);
			status = np_cluster_reduce(&cluster, &err);
			np_mem_fail_after(0);
			if (status == NP_OK)
				status = np_report_ok(trial, &err);
			assert_true(status == NP_OK || status == NP_E_NOMEM);
			np_report_free(trial);
		}
		assert_int_equal(status, NP_OK);
		cluster.report = report;
		np_cluster_close(&cluster);
		np_captures_free(all);
		np_report_free(report);
	}
	tree_remove(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_and_db_agree),
		cmocka_unit_test(slow_rank_is_found),
		cmocka_unit_test(level0_has_elapsed_times),
		cmocka_unit_test(one_rank_and_no_step),
		cmocka_unit_test(slow_from_ten_percent),
		cmocka_unit_test(uneven_above_five_percent),
		cmocka_unit_test(small_above_twenty_percent),
		cmocka_unit_test(retransmission_beyond_four_seconds),
		cmocka_unit_test(contention_beside_products),
		cmocka_unit_test(sizes_of_512),
		cmocka_unit_test(out_of_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
