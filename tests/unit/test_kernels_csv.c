/* Kernel tables of every exporter and every damage, against what they say by hand. */
#include <math.h>
#include <zlib.h>

#include "capture/kernel_header.h"
#include "capture/reader.h"
#include "same_profile.h"
#include "temp_file.h"

static struct np_profile *profile;

static void release(void)
{
	np_profile_free(profile);
	profile = NULL;
}

static enum np_status read_file(const char *path, unsigned what, unsigned threads)
{
	struct np_err err = {0};
	release();
	profile = np_profile_new();
	assert_non_null(profile);
	struct np_read read = {profile, what, threads};
	enum np_status status = np_read_kernels_csv(&read, path, &err);
	if (status == NP_OK) {
		assert_true(np_profile_finish_steps(profile));
		assert_true(np_profile_finish_kernels(profile));
	} else {
		assert_true(*err.msg);
	}
	return status;
}

enum { WHAT = NP_KERNELS | NP_KERNEL_SHAPES | NP_KERNEL_METRICS };

static enum np_status read_text(const char *text)
{
	const char *path = temp_text(".csv", text);
	enum np_status status = read_file(path, WHAT, 1);
	(void)unlink(path);
	return status;
}

static void read_ok(const char *text)
{
	assert_int_equal(read_text(text), NP_OK);
}

static np_str string(uint32_t id)
{
	return id == NP_ID_NONE ? NP_STR("(none)") : np_intern_get(&profile->strings, id);
}

static uint64_t diag(const char *code)
{
	uint64_t n = 0;
	for (size_t i = 0; i < profile->diags.n; i++)
		if (strcmp(profile->diags.v[i].code, code) == 0)
			n += profile->diags.v[i].count;
	return n;
}

/* ── generations of headers, torch_npu.md 3.1 ── */

#define STEP   "Step Id,"
#define DEVICE "Device_id,"
#define IDS    "Model ID,Task ID,Stream ID,"
#define TIMES  "Start Time(us),Duration(us),Wait Time(us),"
#define SHAPES                                                                         \
	"Input Shapes,Input Data Types,Input Formats,Output Shapes,Output Data Types," \
	"Output Formats"
#define PIPE                                                                       \
	"aicore_time(us),aic_total_cycles,aic_mac_time(us),aic_mac_ratio,"         \
	"aic_scalar_time(us),aic_scalar_ratio,aic_mte1_time(us),aic_mte1_ratio,"   \
	"aic_mte2_time(us),aic_mte2_ratio,aic_fixpipe_time(us),aic_fixpipe_ratio," \
	"aic_icache_miss_rate,aiv_time(us),aiv_total_cycles,aiv_vec_time(us),"     \
	"aiv_vec_ratio,aiv_scalar_time(us),aiv_scalar_ratio,aiv_mte2_time(us),"    \
	"aiv_mte2_ratio,aiv_mte3_time(us),aiv_mte3_ratio,aiv_icache_miss_rate,"    \
	"cube_utilization(%)"
#define BODY(block) \
	"Name,Type,OP State,Accelerator Core," TIMES block ",HF32 Eligible," SHAPES ",Context ID,"
#define MIX_NUM "Block Num,Mix Block Num"
#define MIX_DIM "Block Dim,Mix Block Dim"
#define OF_910A                                                                                    \
	STEP IDS "Name,Type,OP State,Accelerator Core," TIMES "Block Dim,HF32 Eligible," SHAPES    \
		 ",aicore_time(us),total_cycles,vec_time(us),vec_ratio,mac_time(us),mac_ratio,"    \
		 "scalar_time(us),scalar_ratio,mte1_time(us),mte1_ratio,mte2_time(us),mte2_ratio," \
		 "mte3_time(us),mte3_ratio,icache_miss_rate,memory_bound,cube_utilization(%)"
#define OLD_BODY                                                                       \
	STEP IDS "Name,Type,Accelerator Core," TIMES "Block Dim,Mix Block Dim," SHAPES \
		 ",Context ID,aicore_time(us),aic_total_cycles,"
#define ARITHMETIC                                                                   \
	OLD_BODY "aic_mac_fp16_ratio,aic_mac_int8_ratio,aic_cube_fops,aiv_time(us)," \
		 "aiv_total_cycles,aiv_vec_fp32_ratio,aiv_vec_fp16_ratio,"           \
		 "aiv_vec_int32_ratio,aiv_vec_misc_ratio,aiv_vector_fops,cube_utilization(%)"
#define MEMORY_L0                                                                      \
	OLD_BODY "aic_l0a_read_bw(GB/s),aic_l0a_write_bw(GB/s),aic_l0b_read_bw(GB/s)," \
		 "aic_l0b_write_bw(GB/s),aic_l0c_read_bw_cube(GB/s),"                  \
		 "aic_l0c_write_bw_cube(GB/s),aiv_time(us),aiv_total_cycles,"          \
		 "aiv_l0c_read_bw(GB/s),aiv_l0c_write_bw(GB/s)"
#define LEVEL0(block) "Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us)," block
#define OP_SUMMARY                                                                 \
	DEVICE "Model ID,Task ID,Stream ID,Op Name,OP Type,OP State,Task Type,"    \
	       "Task Start Time(us),Task Duration(us),Task Wait Time(us)," MIX_NUM \
	       ",HF32 Eligible," SHAPES ",Context ID," PIPE

static const struct {
	const char *what, *header;
	size_t columns;
	enum np_pmu_group group;
	unsigned units;
} generations[] = {
	{"with step and device", STEP DEVICE IDS BODY(MIX_NUM) PIPE, 47, NP_PMU_PIPE, 15},
	{"without device, 2025", STEP IDS BODY(MIX_DIM) PIPE, 46, NP_PMU_PIPE, 15},
	{"without schedule", DEVICE IDS BODY(MIX_NUM) PIPE, 46, NP_PMU_PIPE, 15},
	{"48 columns", STEP DEVICE IDS BODY(MIX_NUM) PIPE ",memory_bound", 48, NP_PMU_PIPE, 15},
	{"op_summary", OP_SUMMARY, 46, NP_PMU_PIPE, 15},
	{"910A", OF_910A, 36, NP_PMU_PIPE_910A, 15},
	{"ArithmeticUtilization", ARITHMETIC, 32, NP_PMU_ARITHMETIC, 0},
	{"MemoryL0", MEMORY_L0, 31, NP_PMU_MEMORY_L0, 0},
	{"Level0 with shapes", STEP DEVICE LEVEL0("Block Num,") SHAPES, 15, NP_PMU_NONE, 0},
	{"Level0", STEP DEVICE LEVEL0("Block Num"), 9, NP_PMU_NONE, 0},
	{"Level0 without device", STEP LEVEL0("Block Dim"), 8, NP_PMU_NONE, 0},
	{"Level0 without steps", DEVICE LEVEL0("Block Num"), 8, NP_PMU_NONE, 0},
};

static void cell_of(np_str name, char out[64], size_t i)
{
	bool start = np_str_ends(name, NP_STR("Start Time(us)"));
	if (start)
		(void)snprintf(out, 64, "1736412474730135.222\t");
	else if (np_str_ends(name, NP_STR("Duration(us)")))
		(void)snprintf(out, 64, "12.345");
	else if (np_str_is(name, "Step Id"))
		(void)snprintf(out, 64, "50");
	else if (np_str_is(name, "Accelerator Core") || np_str_is(name, "Task Type"))
		(void)snprintf(out, 64, "AI_CORE");
	else if (np_str_is(name, "Name") || np_str_is(name, "Op Name"))
		(void)snprintf(out, 64, "MatMul_1");
	else
		(void)snprintf(out, 64, "%zu", i + 100);
}

/* A row whose every cell is told by the column's name or place. */
static void build(struct np_buf *out, const char *header)
{
	np_buf_add_cstr(out, header);
	np_buf_add_cstr(out, "\r\n");
	np_str rest = np_str_of(header);
	for (size_t i = 0; rest.len; i++) {
		char cell[64];
		cell_of(np_str_cut(rest, ',', &rest), cell, i);
		np_buf_printf(out, "%s%s", i ? "," : "", cell);
	}
	np_buf_add_cstr(out, "\r\n");
}

static void every_generation_of_headers_is_read(void **state)
{
	(void)state;
	for (size_t g = 0; g < sizeof generations / sizeof *generations; g++) {
		struct np_buf text = {0};
		build(&text, generations[g].header);
		const char *path = temp_text(".csv", text.ptr);
		struct np_input *input = NULL;
		struct np_csv *csv = NULL;
		struct np_kernel_header header;
		assert_int_equal(np_input_open(path, &input, NULL), NP_OK);
		assert_int_equal(np_csv_open(input, &csv, NULL), NP_OK);
		np_kernel_header_read(csv, &header);
		if (header.n_columns != generations[g].columns)
			fail_msg("%s: %zu columns", generations[g].what, header.n_columns);
		if (header.group != generations[g].group || header.units != generations[g].units)
			fail_msg("%s: %s, units %x", generations[g].what,
			         np_pmu_group_name(header.group), header.units);
		np_csv_close(csv);
		np_input_close(input);
		assert_int_equal(read_file(path, WHAT, 1), NP_OK);
		assert_int_equal(profile->kernels.n, 1);
		assert_int_equal(profile->kernels.start_ns[0], 1736412474730135222);
		assert_int_equal(profile->kernels.dur_ns[0], 12345);
		assert_str(string(profile->kernels.name[0]), "MatMul_1");
		assert_str(string(profile->kernels.core[0]), "AI_CORE");
		assert_int_equal(profile->metrics.n, header.n_metrics);
		assert_int_equal(profile->diags.n, 0);
		bool step = header.column[NP_KCOL_STEP] >= 0;
		assert_int_equal(profile->steps.n, step);
		assert_int_equal(profile->kernels.step[0], step ? 0 : NP_NO_U32);
		if (header.column[NP_KCOL_BLOCK] >= 0)
			assert_int_equal(profile->kernels.block_num[0],
			                 100 + header.column[NP_KCOL_BLOCK]);
		unlink(path);
		np_buf_release(&text);
	}
}

static void one_broken_column_is_no_table(void **state)
{
	(void)state;
	assert_int_equal(read_text("kernel\n1\n"), NP_E_FORMAT);
	assert_int_equal(read_text(""), NP_E_EMPTY);
	assert_int_equal(read_text("Name,Duration(us)\na,1\n"), NP_E_FORMAT);
	assert_int_equal(read_text("Name,Start Time(us)\na,1\n"), NP_E_FORMAT);
	assert_int_equal(read_file("/nonexistent/kernel_details.csv", WHAT, 1), NP_E_NOTFOUND);
}

static void task_time_is_read_by_its_own_names(void **state)
{
	(void)state;
	read_ok("kernel_name,kernel_type,stream_id,task_id,task_time(us),task_start(us),"
	        "task_stop(us)\n"
	        "MatMul,AI_CORE,3,7,2.5,\"1700000000000000.250\t\",\"1700000000000002.750\t\"\n");
	assert_int_equal(profile->kernels.n, 1);
	assert_int_equal(profile->kernels.start_ns[0], 1700000000000000250);
	assert_int_equal(profile->kernels.dur_ns[0], 2500);
	assert_int_equal(profile->kernels.stream[0], 3);
	assert_int_equal(profile->kernels.task[0], 7);
	assert_str(string(profile->kernels.core[0]), "AI_CORE");
	assert_int_equal(profile->metrics.n, 0);
}

/* ── cells ── */

#define H "Step Id,Name,Accelerator Core,Start Time(us),Duration(us),Wait Time(us),aic_mac_ratio\n"

static void marks_and_line_ends_do_not_matter(void **state)
{
	(void)state;
	read_ok("\xef\xbb\xbf" H "1,a,AI_CORE,1700000000000000.001\t,1.5\t, 2 ,\t0.5\r\n"
	        "\r\n\n 1 , b ,AI_CORE,1700000000000002.001,1.5,0,0.25");
	assert_int_equal(profile->kernels.n, 2);
	assert_int_equal(profile->steps.n, 1);
	assert_int_equal(profile->kernels.start_ns[0], 1700000000000000001);
	assert_int_equal(profile->kernels.dur_ns[0], 1500);
	assert_int_equal(profile->kernels.wait_ns[0], 2000);
	assert_str(string(profile->kernels.name[1]), "b");
	assert_float_equal(profile->metrics.v[0].v[1], 0.25, 0);
	assert_int_equal(diag("NO_FINAL_NEWLINE"), 1);
}

static void quotes_hold_commas_line_breaks_and_quotes(void **state)
{
	(void)state;
	read_ok("Name,Accelerator Core,Start Time(us),Duration(us),Input Shapes\n"
	        "\"a,b\"\"c\"\"\nd\",AI_CORE,\"1700000000000000\",\"1\","
	        "\"\"\"32,3,224,224;64,3,11,11\"\"\"\n");
	assert_int_equal(profile->kernels.n, 1);
	assert_str(string(profile->kernels.name[0]), "a,b\"c\"\nd");
	assert_str(string(profile->kernel_shapes.in_shapes[0]), "\"32,3,224,224;64,3,11,11\"");
	assert_int_equal(profile->diags.n, 0);
}

static void scientific_notation_is_a_number(void **state)
{
	(void)state;
	read_ok(H "1,a,AI_CORE,1.7e15,1.25e+1,1E0,5e-1\n");
	assert_int_equal(profile->kernels.start_ns[0], INT64_C(1700000000000000000));
	assert_int_equal(profile->kernels.dur_ns[0], 12500);
	assert_int_equal(profile->kernels.wait_ns[0], 1000);
	assert_float_equal(profile->metrics.v[0].v[0], 0.5, 0);
}

static void what_is_not_available_is_not_zero(void **state)
{
	(void)state;
	static const char *const words[] = {"N/A", "", "NA", "none", "null", "-", " n/a\t"};
	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		char text[256];
		(void)snprintf(text, sizeof text, H "%s,a,%s,1700000000000000,1,0,%s\n", words[i],
		               words[i], words[i]);
		read_ok(text);
		assert_int_equal(profile->kernels.n, 1);
		assert_true(isnan(profile->metrics.v[0].v[0]));
		assert_int_equal(profile->kernels.step[0], NP_NO_U32);
		assert_int_equal(profile->kernels.core[0], NP_ID_NONE);
		assert_int_equal(profile->steps.n, 0);
		assert_int_equal(diag("BAD_STEP_ID") + diag("BAD_METRIC"), 0);
	}
	read_ok(H "x,a,AI_CORE,1700000000000000,1,0,y\n1,b,AI_CORE,1700000000000000,N/A,0,1\n");
	assert_int_equal(diag("BAD_STEP_ID"), 1);
	assert_int_equal(diag("BAD_METRIC"), 1);
	assert_int_equal(diag("NA_DURATION"), 1);
	assert_int_equal(profile->kernels.n, 1);
}

static void kernels_outside_of_every_step_stay(void **state)
{
	(void)state;
	read_ok(H ",a,AI_CORE,1700000000000000,1,0,1\n7,b,AI_CORE,1700000000000001,1,0,1\n"
	          ",c,AI_CORE,1700000000000003,1,0,1\n3,d,AI_CORE,1700000000000005,1,0,1\n");
	assert_int_equal(profile->kernels.n, 4);
	assert_int_equal(profile->steps.n, 2);
	assert_int_equal(profile->steps.id[0], 3);
	assert_int_equal(profile->steps.id[1], 7);
	assert_int_equal(profile->kernels.step[0], NP_NO_U32);
	assert_int_equal(profile->kernels.step[1], 1);
	assert_int_equal(profile->kernels.step[3], 0);
	assert_int_equal(profile->steps.start_ns[1], 1700000000000001000);
}

static void rows_with_impossible_times_are_counted_and_left_out(void **state)
{
	(void)state;
	read_ok(H "1,a,AI_CORE,1700000000000000,-1,0,1\n1,b,AI_CORE,-5,1,0,1\n"
	          "1,c,AI_CORE,soon,1,0,1\n1,d,AI_CORE,1700000000000000,long,0,1\n"
	          "1,e,AI_CORE,1e300,1,0,1\n1,f,AI_CORE,1700000000000000,1e300,0,1\n"
	          "1,g,AI_CORE,1700000000000000,0,0,1\n");
	assert_int_equal(profile->kernels.n, 1);
	assert_str(string(profile->kernels.name[0]), "g");
	assert_int_equal(profile->dropped_rows, 6);
	assert_int_equal(diag("NEGATIVE_DURATION"), 1);
	assert_int_equal(diag("BAD_TIME"), 5);
}

static void ragged_rows_are_read_as_far_as_they_go(void **state)
{
	(void)state;
	read_ok(H "1,a,AI_CORE,1700000000000000,1\n1,b,AI_CORE,1700000000000002,1,0,0.5,9,9\n"
	          "1,c\n");
	assert_int_equal(profile->kernels.n, 2);
	assert_true(isnan(profile->metrics.v[0].v[0]));
	assert_float_equal(profile->metrics.v[0].v[1], 0.5, 0);
	assert_int_equal(diag("RAGGED_ROWS"), 3);
	assert_int_equal(profile->dropped_rows, 1);
}

static void of_two_columns_of_one_name_the_first_counts(void **state)
{
	(void)state;
	read_ok("Name,Accelerator Core,Start Time(us),Duration(us),Duration(us),Block Num,Block "
	        "Dim\n"
	        "a,AI_CORE,1700000000000000,1,2,3,4\n");
	assert_int_equal(profile->kernels.dur_ns[0], 1000);
	assert_int_equal(profile->kernels.block_num[0], 3);
	assert_int_equal(profile->metrics.n, 0);
}

static void any_bytes_may_be_a_name(void **state)
{
	(void)state;
	read_ok(H "1,\xff\xfe,AI_CORE,1700000000000000,1,0,1\n"
	          "1,\x1b[31m=cmd(),AI_CORE,1700000000000002,1,0,1\n");
	assert_str(string(profile->kernels.name[0]), "\xff\xfe");
	assert_str(string(profile->kernels.name[1]), "\x1b[31m=cmd()");
	/* a quote that never closes spoils its own line only */
	read_ok(H "1,\"open,AI_CORE,1700000000000000,1,0,1\n1,b,AI_CORE,1700000000000002,1,0,1\n");
	assert_int_equal(diag("OPEN_QUOTE"), 1);
	assert_str(string(profile->kernels.name[profile->kernels.n - 1]), "b");
}

/* ── files ── */

static void slices_and_generations_are_appended_by_name(void **state)
{
	(void)state;
	char second[4096];
	(void)snprintf(second, sizeof second, "%s",
	               temp_text(".csv", "Duration(us),Start Time(us),Name,Step Id,aiv_vec_ratio\n"
	                                 "2,1700000000000010,b,2,0.75\n"));
	read_ok(H "1,a,AI_CORE,1700000000000000,1,0,0.5\n");
	struct np_read read = {profile, WHAT, 1};
	assert_int_equal(np_read_kernels_csv(&read, second, NULL), NP_OK);
	assert_true(np_profile_finish_steps(profile) && np_profile_finish_kernels(profile));
	temp_remove(second);
	assert_int_equal(profile->kernels.n, 2);
	assert_str(string(profile->kernels.name[1]), "b");
	assert_int_equal(profile->steps.n, 2);
	assert_int_equal(profile->metrics.n, 2);
	assert_true(isnan(np_profile_metric(profile, "aiv_vec_ratio")->v[0]));
	assert_float_equal(np_profile_metric(profile, "aiv_vec_ratio")->v[1], 0.75, 0);
	assert_true(isnan(np_profile_metric(profile, "aic_mac_ratio")->v[1]));
	/* a row whose wait is not in the file: the gap behind the row before it */
	assert_int_equal(profile->kernels.wait_ns[1], 9000);
}

static void only_what_is_asked_for_is_loaded(void **state)
{
	(void)state;
	const char *path = temp_text(".csv", STEP DEVICE IDS BODY(MIX_NUM) PIPE "\n");
	assert_int_equal(read_file(path, NP_KERNELS, 1), NP_OK);
	assert_int_equal(profile->loaded, NP_KERNELS);
	assert_int_equal(profile->metrics.n, 0);
	assert_int_equal(profile->kernel_shapes.n, 0);
	temp_remove(path);
}

static void compressed_tables_are_read_the_same(void **state)
{
	(void)state;
	static const char text[] = H "1,a,AI_CORE,1700000000000000,1,0,0.5\n"
				     "1,a,AI_CORE,1700000000000002,1,0,0.5\n";
	char path[4096];
	(void)snprintf(path, sizeof path, "%s", temp_path(".csv.gz"));
	gzFile out = gzopen(path, "wb");
	assert_non_null(out);
	assert_int_equal(gzwrite(out, text, sizeof text - 1), sizeof text - 1);
	assert_int_equal(gzclose(out), Z_OK);
	assert_int_equal(read_file(path, WHAT, 1), NP_OK);
	struct np_profile *packed = profile;
	profile = NULL;
	read_ok(text);
	assert_null(other_profile(packed, profile));
	np_profile_free(packed);
	temp_remove(path);
}

/* ── threads ── */

/* More than the 32 MiB from which on the reader uses its threads; steps, names with line
 * breaks and damage are spread all over it. */
static const char *large_file(size_t *rows)
{
	const char *path = temp_path(".csv");
	FILE *file = fopen(path, "wb");
	assert_non_null(file);
	size_t size = (size_t)fprintf(file, H);
	for (*rows = 0; size < (34u << 20); ++*rows) {
		unsigned i = (unsigned)*rows;
		int len = fprintf(file,
		                  "%u,\"kernel_%u_with_a_name_that_is_as_long_as_those_of_fused_"
		                  "operators_are%s\",%s,17000%011u.%03u\t,%s%u.5,0,%s\r\n",
		                  i / 10000, i % 300, i % 1000 == 0 ? ",\r\n\"\"x\"\"" : "",
		                  i % 7 ? "AI_CORE" : "AI_VECTOR_CORE", i * 3, i % 1000,
		                  i % 50000 == 17 ? "-" : "", i % 100, i % 3 ? "0.5" : "N/A");
		size += (size_t)len;
	}
	assert_int_equal(fclose(file), 0);
	return path;
}

static void many_threads_read_what_one_reads(void **state)
{
	(void)state;
	size_t rows = 0;
	const char *path = large_file(&rows);
	assert_int_equal(read_file(path, WHAT, 1), NP_OK);
	struct np_profile *one = profile;
	profile = NULL;
	assert_int_equal(read_file(path, WHAT, 4), NP_OK);
	assert_int_equal(one->kernels.n + one->dropped_rows, rows);
	assert_true(one->dropped_rows > 1);
	const char *differs = NULL;
	/* ids of strings may differ, texts may not */
#define SAME(table, column)                                        \
	if (memcmp(one->table.column, profile->table.column,       \
	           one->table.n * sizeof *one->table.column) != 0) \
		differs = #column;
	assert_int_equal(one->kernels.n, profile->kernels.n);
	SAME(kernels, start_ns)
	SAME(kernels, dur_ns)
	SAME(kernels, wait_ns)
	SAME(kernels, step)
	SAME(steps, id)
	SAME(steps, kernels)
	if (memcmp(one->metrics.v[0].v, profile->metrics.v[0].v, one->kernels.n * sizeof(double)) !=
	    0)
		differs = "metric";
	for (size_t i = 0; i < one->kernels.n && !differs; i++)
		if (!np_str_eq(np_intern_get(&one->strings, one->kernels.name[i]),
		               string(profile->kernels.name[i])) ||
		    !np_str_eq(np_intern_get(&one->strings, one->kernels.core[i]),
		               string(profile->kernels.core[i])))
			differs = "text";
	if (differs)
		fail_msg("%s differs", differs);
	assert_int_equal(one->diags.n, profile->diags.n);
	assert_string_equal(one->diags.v[0].text, profile->diags.v[0].text);
	np_profile_free(one);
	temp_remove(path);
}

static void memory_may_run_out_anywhere(void **state)
{
	(void)state;
	const char *path = temp_text(".csv", H "1,a,AI_CORE,1700000000000000,1,0,0.5\n"
	                                       "2,\"b\"\"\",AI_CORE,1700000000000002,-1,0,0.5\n");
	bool finished = false;
	for (uint64_t n = 1; n < 2000 && !finished; n++) {
		struct np_profile *made = np_profile_new();
		struct np_read read = {made, WHAT, 1};
		np_mem_fail_after(n);
		enum np_status status = np_read_kernels_csv(&read, path, NULL);
		void *probe = np_alloc(1);
		finished = probe != NULL;
		np_free(probe);
		np_mem_fail_after(0);
		assert_true(status == NP_E_NOMEM || status == NP_OK);
		if (finished)
			assert_int_equal(status, NP_OK);
		np_profile_free(made);
	}
	assert_true(finished);
	temp_remove(path);
}

/* ── real files ── */

struct sums {
	size_t rows;
	int64_t dur_ns, wait_ns;
};

/* The field of a plain row: the tables of the real captures quote only shapes. */
static void parse_by_hand(const char *path, struct sums *out)
{
	char line[1 << 16];
	FILE *file = fopen(path, "rb");
	assert_non_null(file);
	int duration = -1;
	*out = (struct sums){0};
	while (fgets(line, sizeof line, file)) {
		int field = 0;
		bool quoted = false;
		double value = 0;
		bool got = false;
		for (char *c = line, *start = line;; c++) {
			quoted ^= *c == '"';
			if (*c && (*c != ',' || quoted) && *c != '\r' && *c != '\n')
				continue;
			if (duration < 0 && strncmp(start, "Duration(us)", 12) == 0)
				duration = field - 1000;
			else if (field == duration)
				got = sscanf(start, "%lf", &value) == 1;
			if (*c != ',')
				break;
			field++;
			start = c + 1;
		}
		if (duration < 0) { /* that was the header */
			duration += 1000;
			continue;
		}
		out->rows += got;
		out->dur_ns += got ? llround(value * 1000) : 0;
	}
	assert_int_equal(fclose(file), 0);
}

static void real_tables_have_the_rows_and_the_time_that_they_say(void **state)
{
	(void)state;
	static const struct {
		const char *path;
		size_t rows;
	} files[] = {
		{"data/ddp2/text/level0/rank0_ascend_pt", 191},
		{"data/ddp2/text/level2/rank0_ascend_pt", 191},
		{"data/qwen3_4rank/rank_0_ascend_pt", 2463},
		{"data/qwen3_4rank/rank_2_ascend_pt", 2587},
	};
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		char relative[256];
		(void)snprintf(relative, sizeof relative,
		               "%s/ASCEND_PROFILER_OUTPUT/kernel_details.csv", files[i].path);
		const char *path = shared_path(relative);
		if (!path)
			skip();
		struct sums sums;
		parse_by_hand(path, &sums);
		assert_int_equal(sums.rows, files[i].rows);
		assert_int_equal(read_file(path, WHAT, 1), NP_OK);
		assert_int_equal(profile->kernels.n, files[i].rows);
		int64_t total = 0;
		for (size_t k = 0; k < profile->kernels.n; k++)
			total += profile->kernels.dur_ns[k];
		assert_int_equal(total, sums.dur_ns);
		assert_int_equal(profile->diags.n, 0);
		assert_int_equal(profile->steps.n, 1);
	}
}

static int teardown(void **state)
{
	(void)state;
	release();
	return 0;
}

int main(void)
{
#define T(test) cmocka_unit_test_teardown(test, teardown)
	const struct CMUnitTest tests[] = {
		T(every_generation_of_headers_is_read),
		T(one_broken_column_is_no_table),
		T(task_time_is_read_by_its_own_names),
		T(marks_and_line_ends_do_not_matter),
		T(quotes_hold_commas_line_breaks_and_quotes),
		T(scientific_notation_is_a_number),
		T(what_is_not_available_is_not_zero),
		T(kernels_outside_of_every_step_stay),
		T(rows_with_impossible_times_are_counted_and_left_out),
		T(ragged_rows_are_read_as_far_as_they_go),
		T(of_two_columns_of_one_name_the_first_counts),
		T(any_bytes_may_be_a_name),
		T(slices_and_generations_are_appended_by_name),
		T(only_what_is_asked_for_is_loaded),
		T(compressed_tables_are_read_the_same),
		T(many_threads_read_what_one_reads),
		T(memory_may_run_out_anywhere),
		T(real_tables_have_the_rows_and_the_time_that_they_say),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
