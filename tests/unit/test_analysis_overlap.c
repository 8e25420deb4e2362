#include "analysis_set.h"

/* Computing 0-100, and two collectives that are hidden, half hidden, or not at all. */
static void add_comm(struct set *f, int64_t start_us, int64_t dur_us)
{
	add_kernel(f, 1, "hcom_allReduce__1_0_1", "hcom_allReduce_", "COMMUNICATION", start_us,
	           dur_us);
}

static void add_compute(struct set *f, int64_t start_us, int64_t dur_us)
{
	add_kernel(f, 1, "m", "MatMul", "AI_CORE", start_us, dur_us);
}

static int64_t all_of(const struct set *f, const char *column)
{
	return find_cell(f, "overlap", "group", "(all)", column)->i;
}

static void assert_kind(const struct set *f, const char *kind)
{
	assert_str(find_cell(f, "overlap", "group", "(all)", "kind")->s, kind);
}

static void hidden_and_exposed_time_sum_to_communication(void **state)
{
	add_compute(*state, 0, 100);
	add_comm(*state, 50, 80);
	set_analyze(*state);
	assert_int_equal(all_of(*state, "comm_ns"), 80000);
	assert_int_equal(all_of(*state, "hidden_ns"), 50000);
	assert_int_equal(all_of(*state, "exposed_ns"), 30000);
	assert_kind(*state, "proportional");
	assert_true(find_cell(*state, "overlap", NULL, NULL, "wait_ns")->na);
	assert_true(find_cell(*state, "overlap", NULL, NULL, "file_wait_us")->na);
	assert_true(has_note(*state, "were not collected"));
}

static void nine_tenths_covered_is_hidden(void **state)
{
	add_compute(*state, 0, 100);
	add_comm(*state, 91, 10);
	set_analyze(*state);
	assert_kind(*state, "hidden");
}

static void less_than_a_tenth_covered_is_exposed(void **state)
{
	add_compute(*state, 0, 100);
	add_comm(*state, 91, 100);
	set_analyze(*state);
	assert_kind(*state, "exposed");
}

static void exposed_time_beyond_its_limit_is_told(void **state)
{
	add_compute(*state, 0, 69);
	add_comm(*state, 69, 31);
	set_analyze(*state);
	const struct np_finding *finding = expect(*state, "COMM_EXPOSED", NP_WARNING);
	assert_true(fabs(finding->impact_us - 31) < 1e-9);
	assert_true(fabs(finding->impact_share - 0.31) < 1e-9);
}

static void exposed_time_at_its_limit_is_silent(void **state)
{
	add_compute(*state, 0, 70);
	add_comm(*state, 70, 30);
	set_analyze(*state);
	expect_none(*state, "COMM_EXPOSED");
}

static void without_communication_there_is_no_table(void **state)
{
	add_compute(*state, 0, 70);
	set_analyze(*state);
	assert_null(find_table(*state, "overlap"));
}

static void planted_exposed_communication_is_found(void **state)
{
	set_analyze_synth(*state, NP_SYNTH_TEXT, 2, 3, 4, "exposed-comm");
	const struct np_finding *finding = expect(*state, "COMM_EXPOSED", NP_WARNING);
	assert_non_null(strstr(finding->detail, "is transfer"));
	assert_non_null(strstr(finding->advice, "Start collectives earlier"));
	set_analyze_synth(*state, NP_SYNTH_TEXT, 2, 3, 4, NULL);
	expect_none(*state, "COMM_EXPOSED");
}

static void text_and_db_of_one_run_agree(void **state)
{
	static const char *const columns[] = {"ops", "comm_ns", "hidden_ns", "exposed_ns"};
	struct set *f = *state;
	int64_t text[4];
	double wait = 0;
	for (int k = 0; k < 2; k++) {
		set_analyze_synth(f, k ? NP_SYNTH_DB : NP_SYNTH_TEXT, 4, 3, 4, NULL);
		const struct np_table *table = find_table(f, "overlap");
		assert_int_equal(np_table_rows(table), 3); /* all, default_group, tp */
		for (int c = 0; c < 4; c++) {
			int64_t value = all_of(f, columns[c]);
			if (k)
				assert_int_equal(value, text[c]);
			text[c] = value;
		}
		const struct np_cell *cell =
			find_cell(f, "overlap", "group", "(all)", "file_wait_us");
		assert_false(cell->na);
		if (k)
			assert_true(fabs(cell->r - wait) < 1e-3);
		wait = cell->r;
		const struct np_cell *own = np_table_cell(table, 1, 7);
		const struct np_cell *transmit = np_table_cell(table, 1, 8);
		assert_false(own->na);
		assert_int_equal(own->i + transmit->i, np_table_cell(table, 1, 4)->i);
		tree_remove(tree_path(f->root, "synth"));
	}
}

/* ── waits, by hand ── */

struct hand {
	struct np_capture capture;
	struct np_analysis self;
	struct set set; /* only its report */
};

static void hand_task(struct np_profile *p, const char *name, uint32_t plane, np_ns start,
                      np_ns dur)
{
	size_t i = np_profile_add(p, comm_tasks);
	struct np_comm_tasks *t = &p->comm_tasks;
	t->op[i] = 0;
	t->name[i] = np_intern_add(&p->strings, np_str_of(name));
	t->plane[i] = plane;
	t->device[i] = 0;
	t->start_ns[i] = start;
	t->dur_ns[i] = dur;
}

/* One collective 100-200 of group g; computing covers 100-120. */
static void hand_open(struct hand *h)
{
	static const struct np_analyze_options options;
	memset(h, 0, sizeof *h);
	h->capture.path = "x";
	struct np_profile *p = np_profile_new();
	h->set.report = np_report_new("analyze");
	uint32_t name = np_intern_add(&p->strings, NP_STR("hcom_x"));
	size_t k = np_profile_add(p, kernels), o = np_profile_add(p, comm_ops);
	p->kernels.name[k] = p->comm_ops.name[o] = name;
	p->kernels.start_ns[k] = 100;
	p->kernels.dur_ns[k] = 100;
	p->comm_ops.group[o] = np_intern_add(&p->strings, NP_STR("g"));
	h->self = (struct np_analysis){.capture = &h->capture,
	                               .profile = p,
	                               .report = h->set.report,
	                               .options = &options,
	                               .rules = &np_default_rules,
	                               .n_rows = 1,
	                               .total_ns = 100};
	h->self.rows = np_calloc(1, sizeof *h->self.rows);
	h->self.class = np_calloc(1, 1); /* NP_CLASS_COMM */
	struct np_span span = {.start = 100, .end = 200, .comm = 100, .comm_not_overlapped = 80};
	assert_true(np_vec_push(&h->self.spans, span));
	assert_true(np_intervals_add(&h->self.comm, 100, 200));
	assert_true(np_intervals_add(&h->self.compute, 100, 120));
}

static void hand_close(struct hand *h)
{
	np_analysis_release(&h->self);
	np_report_free(h->set.report);
}

static const struct np_cell *hand_wait(struct hand *h)
{
	np_analyze_overlap(&h->self);
	assert_false(h->self.oom);
	return find_cell(&h->set, "overlap", "group", "g", "wait_ns");
}

static void the_plane_that_waits_least_counts_where_exposed(void **state)
{
	(void)state;
	struct hand h;
	hand_open(&h);
	hand_task(h.self.profile, "Notify_Wait", 0, 100, 60);
	hand_task(h.self.profile, "Notify_Wait", 1, 110, 30); /* 20 of it exposed */
	hand_task(h.self.profile, "Memcpy", 2, 140, 50);      /* never waits: says nothing */
	assert_int_equal(hand_wait(&h)->i, 20);
	assert_int_equal(find_cell(&h.set, "overlap", "group", "g", "transmit_ns")->i, 60);
	hand_close(&h);
}

static void waits_of_an_rdma_handshake_are_transfer(void **state)
{
	(void)state;
	struct hand h;
	hand_open(&h);
	hand_task(h.self.profile, "Notify_Wait", 0, 120, 5);
	hand_task(h.self.profile, "RDMASend", 0, 130, 5);
	hand_task(h.self.profile, "RDMASend", 0, 140, 5);
	hand_task(h.self.profile, "Notify_Wait", 0, 150, 5); /* behind two sends */
	hand_task(h.self.profile, "RDMASend", 0, 160, 5);
	hand_task(h.self.profile, "Notify_Wait", 0, 170, 5); /* behind send, send, wait, send */
	assert_int_equal(hand_wait(&h)->i, 5);
	hand_close(&h);
}

static void no_wait_at_all_is_not_zero(void **state)
{
	(void)state;
	struct hand h;
	hand_open(&h);
	hand_task(h.self.profile, "Memcpy", 0, 120, 5);
	assert_true(hand_wait(&h)->na);
	hand_close(&h);
}

/* ── golden/insight_qwen3_4rank.json, 50-59: sums of communication.json per group ── */

static void assert_file_us(const struct set *f, const char *column, double ms)
{
	const struct np_cell *cell =
		find_cell(f, "overlap", "group", "default_group (5862276093215481612)", column);
	if (cell->na || fabs(cell->r / 1000 - ms) > 0.000101)
		fail_msg("%s is %g us, expected %g ms", column, cell->r, ms);
}

/* Ranks 1 and 3 were shared without their kernels: analyze needs these. */
static void default_group_is_that_of_the_viewer(void **state)
{
	static const struct {
		const char *path;
		double ms[5]; /* elapse, transit, sync, wait, idle */
	} ranks[] = {
		{"data/qwen3_4rank/rank_0_ascend_pt", {2.2324, 0.0, 1.6462, 1.6462, 0.5863}},
		{"data/qwen3_4rank/rank_2_ascend_pt", {2.2553, 0.0061, 0.3119, 1.8385, 0.4106}},
	};
	for (int i = 0; i < 2; i++) {
		if (!set_analyze_shared(*state, ranks[i].path))
			skip();
		assert_file_us(*state, "file_elapse_us", ranks[i].ms[0]);
		assert_file_us(*state, "file_transit_us", ranks[i].ms[1]);
		assert_file_us(*state, "file_sync_us", ranks[i].ms[2]);
		assert_file_us(*state, "file_wait_us", ranks[i].ms[3]);
		assert_file_us(*state, "file_idle_us", ranks[i].ms[4]);
	}
}

static void the_pipeline_of_qwen3_is_exposed_and_no_transfer(void **state)
{
	if (!set_analyze_shared(*state, "data/qwen3_4rank/rank_0_ascend_pt"))
		skip();
	const struct np_finding *finding = expect(*state, "COMM_EXPOSED", NP_WARNING);
	assert_true(fabs(finding->impact_us - 420174.26) < 1e-6);
	assert_non_null(strstr(finding->advice, "Hardly the network"));
}

static void names_of_one_group_are_joined(void **state)
{
	static const char *const paths[] = {"data/ddp2/text/level2/rank0_ascend_pt",
	                                    "data/ddp2/db/level2/rank0_ascend_pt"};
	for (int i = 0; i < 2; i++) {
		if (!set_analyze_shared(*state, paths[i]))
			skip();
		const struct np_table *table = find_table(*state, "overlap");
		assert_int_equal(np_table_rows(table), 2);
		assert_false(np_table_cell(table, 1, 7)->na);
		assert_false(np_table_cell(table, 1, 9)->na);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_open, set_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(hidden_and_exposed_time_sum_to_communication),
		TEST(nine_tenths_covered_is_hidden),
		TEST(less_than_a_tenth_covered_is_exposed),
		TEST(exposed_time_beyond_its_limit_is_told),
		TEST(exposed_time_at_its_limit_is_silent),
		TEST(without_communication_there_is_no_table),
		TEST(planted_exposed_communication_is_found),
		TEST(text_and_db_of_one_run_agree),
		cmocka_unit_test(the_plane_that_waits_least_counts_where_exposed),
		cmocka_unit_test(waits_of_an_rdma_handshake_are_transfer),
		cmocka_unit_test(no_wait_at_all_is_not_zero),
		TEST(default_group_is_that_of_the_viewer),
		TEST(the_pipeline_of_qwen3_is_exposed_and_no_transfer),
		TEST(names_of_one_group_are_joined),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
