#include "collect/comm_export.h"
#include "collect/comm_tell.h"
#include "comm_log_unit.h"

struct set {
	char root[TREE_PATH];
	struct np_clog_found found;
	struct np_clog_sum sum;
	struct np_report *report;
};

static void set_up(struct set *set)
{
	memset(set, 0, sizeof *set);
	(void)tree_new(set->root);
}

/* Sum up and judge what lies in the tree. */
static void look(struct set *set, struct np_clog_options options)
{
	char *words[] = {set->root};
	assert_int_equal(np_clog_find(words, 1, &set->found, NULL), NP_OK);
	assert_int_equal(np_clog_sum_up(&set->found, &options, &set->sum, NULL), NP_OK);
	set->report = np_report_new("comm");
	assert_int_equal(np_clog_judge(&set->sum, &set->found, set->report, NULL), NP_OK);
	assert_int_equal(np_clog_tell(&set->sum, set->report, NULL), NP_OK);
}

static void forget(struct set *set)
{
	np_report_free(set->report);
	np_clog_sum_release(&set->sum);
	np_clog_found_release(&set->found);
}

static void tear_down(struct set *set)
{
	forget(set);
	tree_remove(set->root);
}

static const struct np_clog_options all = {.rank = -1, .threads = 2};

static const struct np_finding *finding(const struct set *set, const char *code)
{
	for (size_t i = 0; i < set->report->findings.n; i++)
		if (strcmp(set->report->findings.v[i]->code, code) == 0)
			return set->report->findings.v[i];
	return NULL;
}

static const struct np_table *table(const struct set *set, const char *id)
{
	for (size_t i = 0; i < set->report->tables.n; i++)
		if (strcmp(set->report->tables.v[i]->id, id) == 0)
			return set->report->tables.v[i];
	return NULL;
}

static const struct np_cell *cell(const struct set *set, const char *id, size_t row,
                                  const char *column)
{
	const struct np_table *found = table(set, id);
	assert_non_null(found);
	for (size_t c = 0; c < found->n_columns; c++)
		if (strcmp(found->columns[c].name, column) == 0)
			return np_table_cell(found, row, c);
	fail_msg("no column %s", column);
	return NULL;
}

/* Two ranks: `calls` all_reduces of 1000 bytes in a stage. */
static struct unit_log rank_log(int rank, int calls, const char *stage)
{
	struct unit_log log = unit_log_new(UNIT_CAPACITY, NP_COMM_LAYER_TORCH, rank);
	uint32_t name = unit_string(&log, "0,1"), at = stage ? unit_string(&log, stage) : 0;
	log.header->closed = 1;
	for (int i = 0; i < calls; i++) {
		struct np_comm_record *record = unit_put(&log, 1, 1000);
		record->comm_name = name;
		record->stage = at;
	}
	return log;
}

static void estimates_are_those_of_the_guide(void **state)
{
	(void)state;
	static const struct {
		uint8_t op;
		int32_t world;
		uint64_t bytes, send, moved;
		enum np_clog_estimate estimate;
	} cases[] = {
		{1, 4, 1000, 1000, 1500, NP_COMM_GUIDE},
		{1, 1, 1000, 1000, 0, NP_COMM_GUIDE},
		{1, 3, 1000, 1000, 1333, NP_COMM_GUIDE},
		{2, 4, 1000, 0, 750, NP_COMM_GUIDE},
		{3, 4, 1000, 1000, 3000, NP_COMM_GUIDE},
		{5, 4, 1000, 1000, 750, NP_COMM_GUIDE},
		{6, 4, 1000, 1000, 750, NP_COMM_GUIDE},
		{4, 4, 4000, 4000, 3000, NP_COMM_DERIVED},
		{7, 4, 1000, 1000, 0, NP_COMM_NO_ESTIMATE},
		{1, -1, 1000, 1000, 0, NP_COMM_NO_ESTIMATE},
		{1, 2, INT64_MAX, 0, INT64_MAX, NP_COMM_GUIDE},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		uint64_t moved;
		assert_int_equal(np_clog_moved(cases[i].op, cases[i].world, cases[i].bytes,
		                               cases[i].send, &moved),
		                 cases[i].estimate);
		assert_int_equal(moved, cases[i].moved);
	}
	/* the bus factor is another number: of the whole buffer */
	const struct np_clog_cell gather = {.bytes = 1000, .send_bytes = 1000, .recv_bytes = 4000};
	uint64_t bus;
	assert_true(np_clog_bus(3, 4, &gather, &bus));
	assert_int_equal(bus, 3000);
	assert_true(np_clog_bus(2, 4, &gather, &bus));
	assert_int_equal(bus, 1000);
	assert_false(np_clog_bus(13, 4, &gather, &bus));
}

static void ranks_are_summed_and_told_each(void **state)
{
	(void)state;
	struct set set;
	set_up(&set);
	for (int rank = 0; rank < 2; rank++) {
		struct unit_log log = rank_log(rank, 10, "dit");
		unit_log_write(&log, set.root, rank ? "comm/b.nplog" : "comm/a.nplog");
	}
	look(&set, all);
	assert_int_equal(set.report->exit_code, 0);
	assert_str(cell(&set, "collectives", 0, "stage")->s, "dit");
	assert_str(cell(&set, "collectives", 0, "group")->s, "0,1");
	assert_int_equal(cell(&set, "collectives", 0, "ranks")->i, 2);
	assert_int_equal(cell(&set, "collectives", 0, "calls")->i, 20);
	assert_int_equal(cell(&set, "collectives", 0, "size_bytes")->i, 10000);
	assert_int_equal(cell(&set, "collectives", 0, "moved~_bytes")->i, 10000);
	/* R27: of a symmetric pair twice that of one rank */
	assert_int_equal(cell(&set, "groups", 0, "total~_bytes")->i, 20000);
	assert_int_equal(cell(&set, "sizes", 0, "max_bytes")->i, 1000);
	assert_null(finding(&set, "COMM_COUNTS_DIFFER"));
	assert_null(finding(&set, "COMM_STAGE_OTHER"));
	tear_down(&set);
}

static void a_rank_that_calls_less_is_told(void **state)
{
	(void)state;
	struct set set;
	set_up(&set);
	for (int rank = 0; rank < 2; rank++) {
		struct unit_log log = rank_log(rank, 10 - rank, "dit");
		unit_log_write(&log, set.root, rank ? "comm/b.nplog" : "comm/a.nplog");
	}
	look(&set, all);
	assert_non_null(finding(&set, "COMM_COUNTS_DIFFER"));
	assert_int_equal(finding(&set, "COMM_COUNTS_DIFFER")->severity, NP_WARNING);
	forget(&set);
	/* where records are missing, different numbers say nothing */
	struct unit_log log = rank_log(1, 9, "dit");
	log.header->lost = 1;
	unit_log_write(&log, set.root, "comm/b.nplog");
	look(&set, all);
	assert_null(finding(&set, "COMM_COUNTS_DIFFER"));
	assert_non_null(finding(&set, "COMM_LOST"));
	tear_down(&set);
}

static void traffic_outside_of_stages_is_told(void **state)
{
	(void)state;
	struct set set;
	set_up(&set);
	struct unit_log log = rank_log(0, 4, "dit");
	for (int i = 0; i < 6; i++)
		unit_put(&log, 1, 1000);
	unit_log_write(&log, set.root, "run/comm/a.nplog");
	tree_put(set.root, "run/events/1.jsonl",
	         "{\"time\": 1, \"event\": \"not_found\", \"target\": \"m:Text.forwrd\", "
	         "\"stage\": \"text\", \"reason\": \"no such name\", "
	         "\"near\": [\"Text.forward\"]}\nnot json\n");
	look(&set, all);
	assert_non_null(finding(&set, "COMM_STAGE_OTHER"));
	const struct np_finding *anchor = finding(&set, "COMM_ANCHOR_NOT_FOUND");
	assert_non_null(anchor);
	assert_non_null(strstr(anchor->advice, "Text.forward"));
	assert_str(cell(&set, "stages", 0, "stage")->s, "other");
	tear_down(&set);
}

/* Requests 1 … 3: dit in all of them, the encoder in one of them, or two. */
static void encoder_case(struct set *set, uint32_t last_of_encoder)
{
	struct unit_log log = unit_log_new(64, NP_COMM_LAYER_TORCH, 0);
	uint32_t dit = unit_string(&log, "dit"), text = unit_string(&log, "text_encoder");
	for (uint32_t request = 1; request <= 3; request++) {
		struct np_comm_record *record = unit_put(&log, 1, 1000);
		record->stage = dit;
		record->request = record->step = request;
		if (request > last_of_encoder)
			continue;
		record = unit_put(&log, 2, 10);
		record->stage = text;
		record->request = record->step = request;
	}
	unit_log_write(&log, set->root, "comm/a.nplog");
	look(set, all);
}

static void a_cached_prompt_is_told(void **state)
{
	(void)state;
	struct set set;
	set_up(&set);
	encoder_case(&set, 1);
	const struct np_finding *found = finding(&set, "COMM_FIRST_REQUEST_ONLY");
	assert_non_null(found);
	assert_int_equal(found->severity, NP_WARNING);
	assert_int_equal(np_table_rows(table(&set, "requests")), 4);
	forget(&set);
	encoder_case(&set, 2);
	assert_null(finding(&set, "COMM_FIRST_REQUEST_ONLY"));
	tear_down(&set);
}

static void layers_are_not_counted_twice(void **state)
{
	(void)state;
	struct set set;
	set_up(&set);
	struct unit_log log = rank_log(0, 4, "dit");
	unit_log_write(&log, set.root, "comm/t.nplog");
	log = unit_log_new(64, NP_COMM_LAYER_HCCL, 0);
	for (int i = 0; i < 6; i++)
		unit_put(&log, 1, 1000)->comm_hash = 12345;
	unit_log_write(&log, set.root, "comm/h.nplog");
	look(&set, all);
	assert_int_equal(np_table_rows(table(&set, "collectives")), 1);
	assert_int_equal(cell(&set, "collectives", 0, "calls")->i, 4);
	assert_int_equal(cell(&set, "layers", 0, "torch_calls")->i, 4);
	assert_int_equal(cell(&set, "layers", 0, "hccl_calls")->i, 6);
	assert_non_null(finding(&set, "COMM_LAYERS_DIFFER"));
	forget(&set);
	struct np_clog_options options = all;
	options.show = NP_COMM_SHOW_HCCL;
	look(&set, options);
	assert_int_equal(cell(&set, "collectives", 0, "calls")->i, 6);
	forget(&set);
	options.show = NP_COMM_SHOW_BOTH;
	look(&set, options);
	assert_int_equal(np_table_rows(table(&set, "collectives")), 2);
	forget(&set);
	options = all;
	options.group = "@12345";
	options.show = NP_COMM_SHOW_HCCL;
	look(&set, options);
	assert_int_equal(cell(&set, "collectives", 0, "calls")->i, 6);
	tear_down(&set);
}

static void one_bad_log_does_not_spoil_the_others(void **state)
{
	(void)state;
	struct set set;
	set_up(&set);
	struct unit_log log = rank_log(0, 4, "dit");
	unit_log_write(&log, set.root, "comm/a.nplog");
	tree_put(set.root, "comm/b.nplog", "this is a text");
	tree_put(set.root, "comm/c.nplog", "");
	look(&set, all);
	assert_int_equal(set.report->exit_code, 4);
	assert_non_null(finding(&set, "COMM_LOG_UNREADABLE"));
	assert_int_equal(finding(&set, "COMM_LOG_UNREADABLE")->evidence.n, 1);
	assert_int_equal(cell(&set, "collectives", 0, "calls")->i, 4);
	assert_int_equal(np_table_rows(table(&set, "ranks")), 3);
	tear_down(&set);
}

static void stretches_of_time_are_at_most_sixty(void **state)
{
	(void)state;
	struct set set;
	set_up(&set);
	struct unit_log log = rank_log(0, 3000, "dit");
	unit_log_write(&log, set.root, "comm/a.nplog");
	struct np_clog_options options = all;
	options.timeline = true;
	look(&set, options);
	size_t rows = np_table_rows(table(&set, "timeline")), calls = 0;
	assert_in_range(rows, 2, 61);
	for (size_t i = 0; i < rows; i++)
		calls += (size_t)cell(&set, "timeline", i, "calls")->i;
	assert_int_equal(calls, 3000);
	tear_down(&set);
}

static void records_are_exported_in_order_of_time(void **state)
{
	(void)state;
	struct set set;
	char *text = NULL, *at;
	size_t len = 0;
	set_up(&set);
	for (int rank = 0; rank < 3; rank++) {
		struct unit_log log = rank_log(rank, 5, "=1+1");
		for (int i = 0; i < 5; i++)
			log.records[i].start_ns = 1000 + i * 10 + (3 - rank);
		unit_log_write(&log, set.root,
		               rank == 0   ? "comm/a.nplog"
		               : rank == 1 ? "comm/b.nplog"
		                           : "comm/c.nplog");
	}
	look(&set, all);
	FILE *file = open_memstream(&text, &len);
	struct np_clog_exported result;
	assert_int_equal(np_clog_export(&set.found, &all, NP_COMM_JSONL, file, &result, NULL),
	                 NP_OK);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(result.rows, 15);
	long last = 0;
	size_t lines = 0;
	for (at = text; (at = strstr(at, "{\"time_ns\": ")) != NULL; at++, lines++) {
		long now = strtol(at + 12, NULL, 10);
		assert_true(now >= last);
		last = now;
	}
	assert_int_equal(lines, 15);
	free(text);
	tear_down(&set);
}

static void lists_of_ranks_are_read(void **state)
{
	(void)state;
	int64_t ranks[8];
	assert_int_equal(np_clog_ranks(NP_STR("0,1,5"), ranks, 8), 3);
	assert_int_equal(ranks[2], 5);
	assert_int_equal(np_clog_ranks(NP_STR("0-3,8"), ranks, 8), 5);
	assert_int_equal(ranks[4], 8);
	assert_int_equal(np_clog_ranks(NP_STR("0-100"), ranks, 8), 101);
	assert_int_equal(np_clog_ranks(NP_STR("tp"), ranks, 8), 0);
	assert_int_equal(np_clog_ranks(NP_STR("3-1"), ranks, 8), 0);
	assert_int_equal(np_clog_ranks(NP_STR(""), ranks, 8), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(estimates_are_those_of_the_guide),
		cmocka_unit_test(ranks_are_summed_and_told_each),
		cmocka_unit_test(a_rank_that_calls_less_is_told),
		cmocka_unit_test(traffic_outside_of_stages_is_told),
		cmocka_unit_test(a_cached_prompt_is_told),
		cmocka_unit_test(layers_are_not_counted_twice),
		cmocka_unit_test(one_bad_log_does_not_spoil_the_others),
		cmocka_unit_test(stretches_of_time_are_at_most_sixty),
		cmocka_unit_test(records_are_exported_in_order_of_time),
		cmocka_unit_test(lists_of_ranks_are_read),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
