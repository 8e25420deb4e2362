#include <math.h>

#include "capture/csv_table.h"
#include "capture/reader.h"
#include "temp_file.h"

#define TEXT(p, id) np_intern_get(&(p)->strings, (id))

typedef enum np_status read_fn(const struct np_read *read, const char *path, struct np_err *err);

static enum np_status read_path(struct np_profile *p, read_fn *reader, const char *path)
{
	struct np_read read = {.profile = p, .what = NP_LOAD_ALL, .threads = 1};
	return reader(&read, path, NULL);
}

static struct np_profile *load_text(read_fn *reader, const char *text)
{
	struct np_profile *p = np_profile_new();
	const char *path = temp_text(".csv", text);
	assert_int_equal(read_path(p, reader, path), NP_OK);
	temp_remove(path);
	return p;
}

static const struct np_diag *diag(const struct np_profile *p, const char *code)
{
	for (size_t i = 0; i < p->diags.n; i++)
		if (strcmp(p->diags.v[i].code, code) == 0)
			return &p->diags.v[i];
	return NULL;
}

#define OLD_STEP_HEADER                                                                            \
	"Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble," \
	"Communication(Not Overlapped and Exclude Receive)"

static void a_step_trace_of_today_has_device_and_preparing(void **state)
{
	(void)state;
	struct np_profile *p =
		load_text(np_read_step_trace,
	                  "Device_id," OLD_STEP_HEADER ",Preparing\n"
	                  "0,13,231290.09999999995,2,3,4,5,6,0,8,206.25\n3,14,1,1,1,1,1,1,1,1,1\n");
	const struct np_step_trace *t = &p->step_trace;
	assert_int_equal(t->n, 2);
	assert_int_equal(t->device[0], 0);
	assert_int_equal(t->step[0], 13);
	assert_true(t->computing_us[0] == 231290.09999999995);
	assert_true(t->comm_not_overlapped_us[0] == 2 && t->overlapped_us[0] == 3);
	assert_true(t->comm_us[0] == 4 && t->free_us[0] == 5 && t->stage_us[0] == 6);
	assert_true(t->bubble_us[0] == 0 && t->comm_not_overlapped_exclude_receive_us[0] == 8);
	assert_true(t->preparing_us[0] == 206.25);
	assert_int_equal(t->device[1], 3);
	assert_int_equal(p->loaded, NP_STEP_TRACE);
	assert_int_equal(p->diags.n, 0);
	np_profile_free(p);
}

static void an_old_step_trace_lacks_both_and_may_have_no_step(void **state)
{
	(void)state;
	struct np_profile *p =
		load_text(np_read_step_trace, OLD_STEP_HEADER "\r\n,1.5,2,N/A,4,5,6,7,oops\r\n");
	const struct np_step_trace *t = &p->step_trace;
	assert_int_equal(t->n, 1);
	assert_int_equal(t->device[0], NP_NO_U32);
	assert_int_equal(t->step[0], NP_NO_I64);
	assert_true(t->computing_us[0] == 1.5 && isnan(t->overlapped_us[0]));
	assert_true(isnan(t->comm_not_overlapped_exclude_receive_us[0]));
	assert_true(isnan(t->preparing_us[0]));
	assert_int_equal(diag(p, "BAD_NUMBER")->count, 1);
	np_profile_free(p);
}

static void another_table_is_not_taken_for_a_step_trace(void **state)
{
	(void)state;
	struct np_profile *p = np_profile_new();
	const char *path = temp_text(".csv", "Name,Size(KB)\na,1\n");
	assert_int_equal(read_path(p, np_read_step_trace, path), NP_E_FORMAT);
	assert_int_equal(read_path(p, np_read_op_memory, path), NP_E_FORMAT);
	assert_int_equal(read_path(p, np_read_memory, path), NP_E_FORMAT);
	temp_remove(path);
	path = temp_text(".csv", "");
	assert_int_equal(read_path(p, np_read_step_trace, path), NP_E_EMPTY);
	assert_int_equal(read_path(p, np_read_memory, path), NP_E_EMPTY);
	temp_remove(path);
	assert_int_equal(read_path(p, np_read_op_memory, path), NP_E_NOTFOUND);
	assert_int_equal(p->loaded, 0);
	np_profile_free(p);
}

static void an_allocation_has_times_in_ns_and_a_size_in_bytes(void **state)
{
	(void)state;
	struct np_profile *p = load_text(
		np_read_op_memory,
		"Name,Size(KB),Allocation Time(us),Release Time(us),Active Release Time(us),"
		"Duration(us),Active Duration(us),Allocation Total Allocated(MB),"
		"Allocation Total Reserved(MB),Allocation Total Active(MB),"
		"Release Total Allocated(MB),Release Total Reserved(MB),Release Total Active(MB),"
		"Stream Ptr,Device Type\n"
		"aten::empty_strided,0.5,1764246877074330.300\t,1764246877750204.070\t,"
		"1764246877750201.590\t,675873.770\t,675871.290\t,4304.95751953125,10372.0,"
		"4304.5,4312.9580078125,10372.0,4312.9580078125,2,NPU:1\n"
		"aten::mm,18816.5,1764246877074331.000\t,,,,,954.5,1452.0,954.5,,,,1162636336,NPU:"
		"0\n"
		"lost,1,N/A,,,,,1,1,1,,,,1,NPU:0\n");
	const struct np_op_memory *m = &p->op_memory;
	assert_int_equal(m->n, 2);
	assert_str(TEXT(p, m->name[0]), "aten::empty_strided");
	assert_int_equal(m->device[0], 1);
	assert_int_equal(m->size_bytes[0], 512);
	assert_int_equal(m->alloc_ns[0], 1764246877074330300);
	assert_int_equal(m->release_ns[0], 1764246877750204070);
	assert_int_equal(m->active_release_ns[0], 1764246877750201590);
	assert_true(m->allocated_mb[0] == 4304.95751953125 && m->reserved_mb[0] == 10372);
	assert_true(m->active_mb[0] == 4304.5);
	assert_int_equal(m->stream[0], 2);
	assert_int_equal(m->size_bytes[1], 19268096);
	assert_int_equal(m->release_ns[1], NP_NO_I64);
	assert_int_equal(m->active_release_ns[1], NP_NO_I64);
	assert_int_equal(m->stream[1], 1162636336);
	assert_int_equal(diag(p, "BAD_TIME")->count, 1);
	assert_int_equal(p->dropped_rows, 1);
	np_profile_free(p);
}

static void msprof_writes_totals_in_kb_and_the_device_apart(void **state)
{
	(void)state;
	struct np_profile *p = load_text(np_read_op_memory,
	                                 "Device_id,Name,Size(KB),Allocation Time(us),Duration(us),"
	                                 "Allocation Total Allocated(KB),"
	                                 "Allocation Total Reserved(KB)\n"
	                                 "4,MatMul,2,100.5,7,2048,512\n");
	assert_int_equal(p->op_memory.n, 1);
	assert_int_equal(p->op_memory.device[0], 4);
	assert_true(p->op_memory.allocated_mb[0] == 2 && p->op_memory.reserved_mb[0] == 0.5);
	assert_true(isnan(p->op_memory.active_mb[0]));
	assert_int_equal(p->op_memory.stream[0], NP_NO_I64);
	np_profile_free(p);
}

static void memory_of_components_and_modules_share_a_table(void **state)
{
	(void)state;
	struct np_profile *p = load_text(
		np_read_memory, "Component,Timestamp(us),Total Allocated(MB),"
				"Total Reserved(MB),Total Active(MB),Stream Ptr,Device Type\n"
				"APP,1736412474607990.240\t,,2109.6015625,,,NPU:0\n"
				"PTA,1736412474607991.000\t,1.5,2.5,0.5,7,NPU:2\n");
	const char *path =
		temp_text(".csv", "Device_id,Component,Timestamp(us),Total Reserved(KB)\n"
	                          "3,SLOG,1736412474690319.360\t,1024\n");
	assert_int_equal(read_path(p, np_read_memory, path), NP_OK);
	temp_remove(path);
	const struct np_memory *m = &p->memory;
	assert_int_equal(m->n, 3);
	assert_str(TEXT(p, m->component[0]), "APP");
	assert_int_equal(m->ts_ns[0], 1736412474607990240);
	assert_true(isnan(m->allocated_mb[0]) && m->reserved_mb[0] == 2109.6015625);
	assert_int_equal(m->device[1], 2);
	assert_true(m->allocated_mb[1] == 1.5 && m->active_mb[1] == 0.5);
	assert_str(TEXT(p, m->component[2]), "SLOG");
	assert_int_equal(m->device[2], 3);
	assert_true(m->reserved_mb[2] == 1 && isnan(m->active_mb[2]));
	assert_int_equal(p->loaded, NP_MEMORY);
	np_profile_free(p);
}

static void ragged_rows_are_read_and_told(void **state)
{
	(void)state;
	struct np_profile *p =
		load_text(np_read_memory, "Component,Timestamp(us),Total Reserved(MB),Device\n"
	                                  "SLOG,5.000\nHCCL,6.000,1,NPU:0,surplus\n");
	assert_int_equal(p->memory.n, 2);
	assert_int_equal(p->memory.device[0], NP_NO_U32);
	assert_true(isnan(p->memory.reserved_mb[0]));
	assert_int_equal(p->memory.device[1], 0);
	assert_int_equal(diag(p, "RAGGED_ROWS")->count, 2);
	np_profile_free(p);
}

static void only_npu_labels_have_a_number(void **state)
{
	(void)state;
	assert_int_equal(np_npu_number(NP_STR("NPU:12")), 12);
	assert_int_equal(np_npu_number(NP_STR("npu:0")), 0);
	assert_int_equal(np_npu_number(NP_STR("NPU:")), NP_NO_U32);
	assert_int_equal(np_npu_number(NP_STR("NPU:-1")), NP_NO_U32);
	assert_int_equal(np_npu_number(NP_STR("NPU:4294967295")), NP_NO_U32);
	assert_int_equal(np_npu_number(NP_STR("CPU")), NP_NO_U32);
	assert_int_equal(np_npu_number((np_str){NULL, 0}), NP_NO_U32);
}

static void memory_may_run_out_anywhere(void **state)
{
	(void)state;
	const char *path = temp_text(".csv", "Name,Component,Size(KB),Allocation Time(us),"
	                                     "Timestamp(us),Computing,Step\n"
	                                     "a,\"quoted \"\"b\"\"\",1,2,3,4,5\n");
	read_fn *const readers[] = {np_read_op_memory, np_read_memory, np_read_step_trace};
	for (size_t r = 0; r < 3; r++) {
		unsigned failed = 0;
		for (uint64_t n = 1; n < 200; n++) {
			struct np_profile *p = np_profile_new();
			np_mem_fail_after(n);
			enum np_status st = read_path(p, readers[r], path);
			np_mem_fail_after(0);
			size_t rows = p->op_memory.n + p->memory.n + p->step_trace.n;
			np_profile_free(p);
			failed += st != NP_OK;
			if (st == NP_OK)
				assert_int_equal(rows, 1);
			else
				assert_int_equal(st, NP_E_NOMEM);
		}
		assert_true(failed > 3);
	}
	temp_remove(path);
}

static void real_deliverables_are_read_to_the_last_row(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		read_fn *read;
	} files[] = {{"operator_memory.csv", np_read_op_memory},
	             {"memory_record.csv", np_read_memory},
	             {"npu_module_mem.csv", np_read_memory},
	             {"step_trace_time.csv", np_read_step_trace}};
	struct np_profile *p = np_profile_new();
	for (size_t i = 0; i < 4; i++) {
		char name[512];
		(void)snprintf(name, sizeof name, "data/%s/%s/%s",
		               "ddp2/text/level2/rank0_ascend_pt", "ASCEND_PROFILER_OUTPUT",
		               files[i].name);
		const char *path = shared_path(name);
		if (!path) {
			np_profile_free(p);
			skip();
		}
		assert_int_equal(read_path(p, files[i].read, path), NP_OK);
		if (i == 2)
			assert_true(p->memory.n > 1001);
	}
	assert_int_equal(p->step_trace.n, 1);
	assert_int_equal(p->step_trace.step[0], 50);
	assert_true(p->step_trace.comm_us[0] == 99973.27799999999);
	assert_true(p->op_memory.n > 100);
	assert_int_equal(p->op_memory.alloc_ns[0], 1736412474720984920);
	for (size_t i = 0; i < p->memory.n; i++)
		assert_int_equal(p->memory.device[i], 0);
	assert_int_equal(p->diags.n, 0);
	np_profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_step_trace_of_today_has_device_and_preparing),
		cmocka_unit_test(an_old_step_trace_lacks_both_and_may_have_no_step),
		cmocka_unit_test(another_table_is_not_taken_for_a_step_trace),
		cmocka_unit_test(an_allocation_has_times_in_ns_and_a_size_in_bytes),
		cmocka_unit_test(msprof_writes_totals_in_kb_and_the_device_apart),
		cmocka_unit_test(memory_of_components_and_modules_share_a_table),
		cmocka_unit_test(ragged_rows_are_read_and_told),
		cmocka_unit_test(only_npu_labels_have_a_number),
		cmocka_unit_test(memory_may_run_out_anywhere),
		cmocka_unit_test(real_deliverables_are_read_to_the_last_row),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
