#include "comm_log_unit.h"

static enum np_status open_bytes(const struct unit_log *unit, size_t len, struct np_clog *log)
{
	return np_clog_open_mem((np_str){unit->bytes, len}, "unit", log, NULL);
}

/* The numbers of all records that the reader gives, as text: "1 2 3". */
static const char *numbers(struct np_clog *log)
{
	static char text[256];
	struct np_comm_record record;
	size_t len = 0;
	text[0] = '\0';
	while (np_clog_next(log, &record))
		len += (size_t)snprintf(text + len, sizeof text - len, "%s%llu", len ? " " : "",
		                        (unsigned long long)record.seq);
	return text;
}

static void records_come_oldest_first(void **state)
{
	(void)state;
	struct np_clog log;
	struct unit_log unit = unit_log_new(8, NP_COMM_LAYER_TORCH, 0);
	for (int i = 0; i < 3; i++)
		unit_put(&unit, 1, 8);
	assert_int_equal(open_bytes(&unit, unit.len, &log), NP_OK);
	assert_string_equal(numbers(&log), "1 2 3");
	assert_int_equal(log.overwritten + log.damaged + log.cut_off + log.implausible, 0);
	np_clog_close(&log);
	unit_log_free(&unit);
}

static void a_ring_that_is_full_loses_the_oldest(void **state)
{
	(void)state;
	struct np_clog log;
	struct unit_log unit = unit_log_new(4, NP_COMM_LAYER_TORCH, 0);
	for (int i = 0; i < 10; i++)
		unit_put(&unit, 1, 8);
	assert_int_equal(open_bytes(&unit, unit.len, &log), NP_OK);
	assert_string_equal(numbers(&log), "7 8 9 10");
	assert_int_equal(log.overwritten, 6);
	np_clog_close(&log);
	unit_log_free(&unit);
}

/* Killed between the record's number and header.written, or between the fields and the number. */
static void a_killed_writer_costs_nothing(void **state)
{
	(void)state;
	struct np_clog log;
	struct unit_log unit = unit_log_new(4, NP_COMM_LAYER_TORCH, 0);
	for (int i = 0; i < 6; i++)
		unit_put(&unit, 1, 8);
	unit.header->written = 5;
	assert_int_equal(open_bytes(&unit, unit.len, &log), NP_OK);
	assert_string_equal(numbers(&log), "3 4 5 6");
	np_clog_close(&log);
	/* the slot of record 7 (now 3) was begun: its number is 0 */
	unit.header->written = 6;
	unit.records[2].seq = 0;
	unit.records[2].tensor_bytes = 99;
	assert_int_equal(open_bytes(&unit, unit.len, &log), NP_OK);
	assert_string_equal(numbers(&log), "4 5 6");
	assert_int_equal(log.overwritten, 3);
	assert_int_equal(log.damaged, 0);
	np_clog_close(&log);
	unit_log_free(&unit);
}

static void a_wrong_count_in_the_header_is_found_out(void **state)
{
	(void)state;
	static const uint64_t wrong[] = {0, 1, 9, 1000, (uint64_t)1 << 61};
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		struct np_clog log;
		struct unit_log unit = unit_log_new(8, NP_COMM_LAYER_TORCH, 0);
		for (int k = 0; k < 3; k++)
			unit_put(&unit, 1, 8);
		unit.header->written = wrong[i];
		assert_int_equal(open_bytes(&unit, unit.len, &log), NP_OK);
		assert_string_equal(numbers(&log), "1 2 3");
		np_clog_close(&log);
		unit_log_free(&unit);
	}
}

static void a_torn_record_is_left_out_and_counted(void **state)
{
	(void)state;
	struct np_clog log;
	struct unit_log unit = unit_log_new(8, NP_COMM_LAYER_TORCH, 0);
	for (int i = 0; i < 4; i++)
		unit_put(&unit, 1, 8);
	unit.records[1].seq = 77;
	assert_int_equal(open_bytes(&unit, unit.len, &log), NP_OK);
	assert_string_equal(numbers(&log), "1 3 4");
	assert_int_equal(log.damaged, 1);
	np_clog_close(&log);
	unit_log_free(&unit);
}

static void a_cut_file_gives_what_it_holds(void **state)
{
	(void)state;
	struct np_clog log;
	struct unit_log unit = unit_log_new(8, NP_COMM_LAYER_TORCH, 0);
	for (int i = 0; i < 6; i++)
		unit_put(&unit, 1, 8);
	size_t head = NP_COMM_LOG_HEADER_BYTES + UNIT_STRINGS;
	size_t len = head + 3 * sizeof(struct np_comm_record) + 50;
	assert_int_equal(open_bytes(&unit, len, &log), NP_OK);
	assert_string_equal(numbers(&log), "1 2 3");
	assert_int_equal(log.cut_off, 3);
	np_clog_close(&log);
	/* and of a ring: of 9 … 14 those in slots 0, 1, 2 */
	for (int i = 0; i < 8; i++)
		unit_put(&unit, 1, 8);
	assert_int_equal(open_bytes(&unit, len, &log), NP_OK);
	assert_string_equal(numbers(&log), "9 10 11");
	assert_int_equal(log.cut_off, 5);
	np_clog_close(&log);
	assert_int_equal(open_bytes(&unit, head + 100, &log), NP_E_TRUNCATED);
	assert_int_equal(open_bytes(&unit, 100, &log), NP_E_TRUNCATED);
	unit_log_free(&unit);
}

static void what_is_no_log_is_told(void **state)
{
	(void)state;
	struct np_clog log;
	struct unit_log unit = unit_log_new(4, NP_COMM_LAYER_TORCH, 0);
	unit_put(&unit, 1, 8);
	unit.header->version = 2;
	assert_int_equal(open_bytes(&unit, unit.len, &log), NP_E_UNSUPPORTED);
	unit.header->version = 1;
	unit.header->record_bytes = 64;
	assert_int_equal(open_bytes(&unit, unit.len, &log), NP_E_FORMAT);
	unit.header->record_bytes = 128;
	unit.header->capacity = 0;
	assert_int_equal(open_bytes(&unit, unit.len, &log), NP_E_FORMAT);
	unit.header->capacity = (uint64_t)1 << 60;
	assert_int_equal(open_bytes(&unit, unit.len, &log), NP_E_FORMAT);
	unit.header->capacity = 4;
	unit.header->string_capacity = UINT64_MAX - 10;
	assert_int_equal(open_bytes(&unit, unit.len, &log), NP_E_TRUNCATED);
	unit.header->magic[0] = 'X';
	assert_int_equal(open_bytes(&unit, unit.len, &log), NP_E_FORMAT);
	memset(unit.bytes, 0, unit.len);
	assert_int_equal(open_bytes(&unit, unit.len, &log), NP_E_EMPTY);
	assert_int_equal(open_bytes(&unit, 0, &log), NP_E_EMPTY);
	unit_log_free(&unit);
}

static void strings_stay_inside(void **state)
{
	(void)state;
	struct np_clog log;
	struct unit_log unit = unit_log_new(4, NP_COMM_LAYER_TORCH, 0);
	uint32_t name = unit_string(&unit, "扩散"), huge = UINT32_MAX - 8, last = UNIT_STRINGS - 4;
	memcpy(unit.strings + 100, &huge, 4);
	memcpy(unit.strings + last, "\1\0\0\0", 4); /* one byte, of which there is no room */
	assert_int_equal(open_bytes(&unit, unit.len, &log), NP_OK);
	assert_str(np_clog_string(&log, name), "扩散");
	assert_str(np_clog_string(&log, 0), "");
	assert_str(np_clog_string(&log, NP_COMM_LOG_NO_ROOM), "(no room)");
	assert_str(np_clog_string(&log, 100), "(damaged)");
	assert_str(np_clog_string(&log, last), "(damaged)");
	assert_str(np_clog_string(&log, 4), "(damaged)");
	assert_str(np_clog_string(&log, UNIT_STRINGS), "(damaged)");
	assert_str(np_clog_string(&log, 0xfffffff0u), "(damaged)");
	np_clog_close(&log);
	unit_log_free(&unit);
}

static void what_cannot_be_becomes_unknown(void **state)
{
	(void)state;
	struct np_clog log;
	struct np_comm_record record;
	struct unit_log unit = unit_log_new(4, NP_COMM_LAYER_TORCH, 0);
	struct np_comm_record *put = unit_put(&unit, 1, 8);
	put->tensor_bytes = (uint64_t)1 << 60;
	put->world = -7;
	put->start_ns = -1;
	assert_int_equal(open_bytes(&unit, unit.len, &log), NP_OK);
	assert_true(np_clog_next(&log, &record));
	assert_true(record.tensor_bytes == NP_COMM_NO_U64);
	assert_int_equal(record.world, -1);
	assert_int_equal(record.start_ns, 0);
	assert_int_equal(log.implausible, 1);
	np_clog_close(&log);
	unit_log_free(&unit);
}

static void names_are_those_of_the_format(void **state)
{
	(void)state;
	assert_string_equal(np_clog_op_name(1), "all_reduce");
	assert_null(np_clog_op_name(99));
	assert_int_equal(np_clog_op_find(NP_STR("all_to_all_v")), 6);
	assert_int_equal(np_clog_op_find(NP_STR("nothing")), 0);
	assert_int_equal(np_clog_dtype_bytes(11), 2);
	assert_int_equal(np_clog_dtype_bytes(13), 0);
	assert_string_equal(np_clog_dtype_name(NP_COMM_DTYPE_BOOL), "bool");
	assert_true(np_clog_op_moves(13) && !np_clog_op_moves(42) && !np_clog_op_moves(40));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(records_come_oldest_first),
		cmocka_unit_test(a_ring_that_is_full_loses_the_oldest),
		cmocka_unit_test(a_killed_writer_costs_nothing),
		cmocka_unit_test(a_wrong_count_in_the_header_is_found_out),
		cmocka_unit_test(a_torn_record_is_left_out_and_counted),
		cmocka_unit_test(a_cut_file_gives_what_it_holds),
		cmocka_unit_test(what_is_no_log_is_told),
		cmocka_unit_test(strings_stay_inside),
		cmocka_unit_test(what_cannot_be_becomes_unknown),
		cmocka_unit_test(names_are_those_of_the_format),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
