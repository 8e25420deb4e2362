#include <math.h>

#include "capture/comm_rows.h"
#include "capture/reader.h"
#include "temp_file.h"

#define TEXT(p, id) np_intern_get(&(p)->strings, (id))

typedef enum np_status read_fn(const struct np_read *read, const char *path, struct np_err *err);

static void read_into(struct np_profile *p, read_fn *reader, const char *path)
{
	struct np_err err = {.code = NP_OK};
	struct np_read read = {.profile = p, .what = NP_LOAD_ALL, .threads = 1};
	if (reader(&read, path, &err) != NP_OK)
		fail_msg("%s: %s", err.where, err.msg);
}

static struct np_profile *load_text(read_fn *reader, const char *text)
{
	struct np_profile *p = np_profile_new();
	const char *path = temp_text(".json", text);
	read_into(p, reader, path);
	temp_remove(path);
	return p;
}

static struct np_profile *load_sql(const char *sql)
{
	struct np_profile *p = np_profile_new();
	const char *path = temp_db(sql);
	read_into(p, np_read_analysis_db, path);
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

/* the same op in both formats, and a total that only the text has */
static const char comm_json[] =
	"{\"step13\": {\"p2p\": {}, \"collective\": {"
	"\"hcom_allReduce__170_1_1@3985\": {\"Communication Time Info\": {"
	"\"Start Timestamp(us)\": 1764246877147674.5, \"Elapse Time(ms)\": 0.5, "
	"\"Transit Time(ms)\": 0, \"Wait Time(ms)\": 0.25, "
	"\"Synchronization Time(ms)\": 0.125, \"Idle Time(ms)\": 1, "
	"\"Wait Time Ratio\": 1.0, \"Synchronization Time Ratio\": 1.0}, "
	"\"Communication Bandwidth Info\": {"
	"\"RDMA\": {\"Transit Size(MB)\": 0, \"Transit Time(ms)\": 0, \"Bandwidth(GB/s)\": 0, "
	"\"Large Packet Ratio\": 0, \"Size Distribution\": {}}, "
	"\"HCCS\": {\"Transit Size(MB)\": 6.25, \"Transit Time(ms)\": 3, \"Bandwidth(GB/s)\": 2.1, "
	"\"Large Packet Ratio\": 0.5, \"Size Distribution\": {\"9.6e-05\": [3, 1.5], "
	"\"2.064384\": [12, 1.25]}}, "
	"\"SDMA\": {\"Transit Size(MB)\": 6.25, \"Transit Time(ms)\": 3, \"Bandwidth(GB/s)\": 2.1, "
	"\"Large Packet Ratio\": 0, \"Size Distribution\": {}}}}, "
	"\"Total Op Info\": {\"Communication Time Info\": {\"Elapse Time(ms)\": 0.5}, "
	"\"Communication Bandwidth Info\": {\"HCCS\": {\"Transit Time(ms)\": 3, "
	"\"Transit Size(MB)\": 6.25, \"Size Distribution\": {}}}}}}}";

#define TIME_TABLE                                                                            \
	"CREATE TABLE CommAnalyzerTime(hccl_op_name TEXT,group_name TEXT,"                    \
	"start_timestamp NUMERIC,elapse_time NUMERIC,transit_time NUMERIC,wait_time NUMERIC," \
	"synchronization_time NUMERIC,idle_time NUMERIC,step TEXT,type TEXT);"
#define BANDWIDTH_TABLE                                                                         \
	"CREATE TABLE CommAnalyzerBandwidth(hccl_op_name TEXT,group_name TEXT,"                 \
	"transport_type TEXT,transit_size NUMERIC,transit_time NUMERIC,bandwidth NUMERIC,"      \
	"large_packet_ratio NUMERIC,package_size NUMERIC,count NUMERIC,total_duration NUMERIC," \
	"step TEXT,type TEXT);"
#define MATRIX_TABLE                                                                       \
	"CREATE TABLE CommAnalyzerMatrix(hccl_op_name TEXT,group_name TEXT,src_rank TEXT," \
	"dst_rank TEXT,transport_type TEXT,transit_size NUMERIC,transit_time NUMERIC,"     \
	"bandwidth NUMERIC,step TEXT,type TEXT,op_name TEXT);"

static void an_op_has_a_row_of_times(void **state)
{
	(void)state;
	struct np_profile *p = load_text(np_read_comm_json, comm_json);
	const struct np_comm_time *t = &p->comm_time;
	assert_int_equal(t->n, 2);
	assert_int_equal(t->step[0], 13);
	assert_int_equal(t->p2p[0], 0);
	assert_str(TEXT(p, t->op[0]), "hcom_allReduce__170_1_1");
	assert_str(TEXT(p, t->group[0]), "3985");
	assert_true(t->start_us[0] == 1764246877147674.5);
	assert_true(t->elapse_ms[0] == 0.5 && t->transit_ms[0] == 0 && t->wait_ms[0] == 0.25);
	assert_true(t->sync_ms[0] == 0.125 && t->idle_ms[0] == 1);
	assert_str(TEXT(p, t->op[1]), "Total Op Info");
	assert_int_equal(t->group[1], NP_ID_NONE);
	assert_true(isnan(t->start_us[1]) && t->elapse_ms[1] == 0.5 && isnan(t->wait_ms[1]));
	assert_int_equal(p->loaded, NP_COMM_SUMMARY);
	assert_int_equal(p->diags.n, 0);
	np_profile_free(p);
}

static void a_link_has_one_row_and_one_per_packet_size(void **state)
{
	(void)state;
	struct np_profile *p = load_text(np_read_comm_json, comm_json);
	const struct np_comm_bandwidth *b = &p->comm_bandwidth;
	/* RDMA moved nothing: HCCS, its two sizes, SDMA, and HCCS of the total */
	assert_int_equal(b->n, 5);
	assert_str(TEXT(p, b->transport[0]), "HCCS");
	assert_true(b->transit_mb[0] == 6.25 && b->transit_ms[0] == 3);
	assert_true(b->gbps[0] == 2.1 && b->large_ratio[0] == 0.5);
	assert_true(isnan(b->package_mb[0]) && isnan(b->package_count[0]));
	assert_true(b->package_mb[1] == 9.6e-05 && b->package_count[1] == 3);
	assert_true(b->package_ms[1] == 1.5);
	assert_true(b->package_mb[2] == 2.064384 && b->package_count[2] == 12);
	assert_str(TEXT(p, b->transport[3]), "SDMA");
	assert_true(isnan(b->package_mb[3]));
	assert_str(TEXT(p, b->op[4]), "Total Op Info");
	assert_true(isnan(b->gbps[4]) && isnan(b->large_ratio[4]));
	np_profile_free(p);
}

static void a_matrix_has_a_row_per_pair_of_ranks(void **state)
{
	(void)state;
	struct np_profile *p = load_text(
		np_read_comm_matrix,
		"{\"step\": {\"p2p\": {\"send-top1@77\": {\"0-12\": {\"Transport Type\": \"HCCS\", "
		"\"Transit Size(MB)\": 4.5, \"Transit Time(ms)\": 2, \"Bandwidth(GB/s)\": 2.25, "
		"\"Op Name\": \"hcom_send__077_0_1\"}}, \"send-total@77\": {\"3-4\": "
		"{\"Transport Type\": \"RDMA\", \"Transit Size(MB)\": 1, \"Transit Time(ms)\": 1, "
		"\"Bandwidth(GB/s)\": 1}, \"nonsense\": {}}}, \"collective\": {}}}");
	const struct np_comm_matrix *m = &p->comm_matrix;
	assert_int_equal(m->n, 2);
	assert_int_equal(m->step[0], NP_NO_I64);
	assert_int_equal(m->p2p[0], 1);
	assert_str(TEXT(p, m->kind[0]), "send-top1");
	assert_str(TEXT(p, m->group[0]), "77");
	assert_int_equal(m->src[0], 0);
	assert_int_equal(m->dst[0], 12);
	assert_str(TEXT(p, m->transport[0]), "HCCS");
	assert_true(m->transit_mb[0] == 4.5 && m->transit_ms[0] == 2 && m->gbps[0] == 2.25);
	assert_str(TEXT(p, m->op[0]), "hcom_send__077_0_1");
	assert_str(TEXT(p, m->kind[1]), "send-total");
	assert_int_equal(m->op[1], NP_ID_NONE);
	assert_int_equal(diag(p, "COMM_ENTRY_UNKNOWN")->count, 1);
	np_profile_free(p);
}

static void the_db_gives_the_same_rows_as_the_text(void **state)
{
	(void)state;
	struct np_profile *p = load_sql(
		TIME_TABLE BANDWIDTH_TABLE MATRIX_TABLE
		"INSERT INTO CommAnalyzerTime VALUES('hcom_allReduce__170_1_1','3985',"
		"1764246877147674.5,0.5,0,0.25,0.125,NULL,'step13','collective');"
		"INSERT INTO CommAnalyzerBandwidth VALUES"
		"('hcom_allReduce__170_1_1','3985','HCCS',6.25,3,2.1,0.5,9.6e-05,3,1.5,'step13','"
		"p2p'),"
		"('hcom_allReduce__170_1_1','3985','SDMA',6.25,3,2.1,0,0,0,0,'step13','p2p'),"
		"('hcom_allReduce__170_1_1','3985','HCCS',6.25,3,2.1,0.5,2.064384,12,1.25,'step13',"
		"'p2p'),"
		"('hcom_allReduce__170_1_1','3985','RDMA',0,0,0,0,0,0,0,'step13','p2p');"
		"INSERT INTO CommAnalyzerMatrix VALUES"
		"('send-total','77','0','12','HCCS',4.5,2,2.25,'step','p2p',''),"
		"('send-total','77','x','12','HCCS',4.5,2,2.25,'step','p2p',NULL);");
	const struct np_comm_time *t = &p->comm_time;
	assert_int_equal(t->n, 1);
	assert_int_equal(t->step[0], 13);
	assert_int_equal(t->p2p[0], 0);
	assert_str(TEXT(p, t->op[0]), "hcom_allReduce__170_1_1");
	assert_str(TEXT(p, t->group[0]), "3985");
	assert_true(t->start_us[0] == 1764246877147674.5 && t->wait_ms[0] == 0.25);
	assert_true(isnan(t->idle_ms[0]));
	const struct np_comm_bandwidth *b = &p->comm_bandwidth;
	assert_int_equal(b->n, 4); /* HCCS, a size, SDMA, another size of HCCS */
	assert_int_equal(b->p2p[0], 1);
	assert_true(isnan(b->package_mb[0]) && b->package_mb[1] == 9.6e-05);
	assert_str(TEXT(p, b->transport[2]), "SDMA");
	assert_true(isnan(b->package_mb[2]) && b->package_mb[3] == 2.064384);
	const struct np_comm_matrix *m = &p->comm_matrix;
	assert_int_equal(m->n, 1);
	assert_int_equal(m->step[0], NP_NO_I64);
	assert_int_equal(m->dst[0], 12);
	assert_int_equal(m->op[0], NP_ID_NONE);
	assert_int_equal(diag(p, "COMM_ENTRY_UNKNOWN")->count, 1);
	np_profile_free(p);
}

static void step_times_of_the_db_may_lack_the_device(void **state)
{
	(void)state;
	struct np_profile *p = load_sql(
		"CREATE TABLE StepTraceTime(step TEXT,computing NUMERIC,"
		"communication_not_overlapped NUMERIC,overlapped NUMERIC,communication NUMERIC,"
		"free NUMERIC,stage NUMERIC,bubble NUMERIC,"
		"communication_not_overlapped_and_exclude_receive NUMERIC,preparing NUMERIC);"
		"INSERT INTO StepTraceTime VALUES('50',8900.456,1,2,3,4,5,6,7,8),"
		"(NULL,9,1,2,3,4,5,6,7,NULL);");
	const struct np_step_trace *t = &p->step_trace;
	assert_int_equal(t->n, 2);
	assert_int_equal(t->device[0], NP_NO_U32);
	assert_int_equal(t->step[0], 50);
	assert_true(t->computing_us[0] == 8900.456 && t->comm_us[0] == 3);
	assert_true(t->comm_not_overlapped_us[0] == 1 && t->overlapped_us[0] == 2);
	assert_true(t->comm_not_overlapped_exclude_receive_us[0] == 7 && t->preparing_us[0] == 8);
	assert_int_equal(t->step[1], NP_NO_I64);
	assert_true(isnan(t->preparing_us[1]));
	assert_int_equal(p->loaded, NP_STEP_TRACE);
	np_profile_free(p);
}

static void msprof_has_neither_steps_nor_classes(void **state)
{
	(void)state;
	struct np_profile *p = load_text(
		np_read_comm_json, "{\"hcom_send__1_0@77\": {\"Communication Time Info\": "
				   "{\"Elapse Time(ms)\": 2.5}}, "
				   "\"hcom_allReduce__1_0@77\": {\"Communication Time Info\": "
				   "{\"Elapse Time(ms)\": 0.44047118378186786}}, "
				   "\"Total HCCL Operators\": {\"Communication Time Info\": {}}}");
	const struct np_comm_time *t = &p->comm_time;
	assert_int_equal(t->n, 3);
	assert_int_equal(t->step[0], NP_NO_I64);
	assert_int_equal(t->p2p[0], 1);
	assert_int_equal(t->p2p[1], 0);
	assert_str(TEXT(p, t->op[0]), "hcom_send__1_0");
	assert_str(TEXT(p, t->group[1]), "77");
	assert_true(t->elapse_ms[1] == 0.44047118378186786);
	assert_int_equal(p->diags.n, 0);
	np_profile_free(p);
}

static void a_damaged_file_leaves_nothing(void **state)
{
	(void)state;
	struct np_profile *p = np_profile_new();
	struct np_err err;
	struct np_read read = {.profile = p, .what = NP_LOAD_ALL, .threads = 1};
	char cut[sizeof comm_json];
	memcpy(cut, comm_json, sizeof cut);
	cut[sizeof cut - 200] = 0;
	const char *path = temp_text(".json", cut);
	assert_int_not_equal(np_read_comm_json(&read, path, &err), NP_OK);
	temp_remove(path);
	assert_int_equal(p->comm_time.n, 0);
	assert_int_equal(p->comm_bandwidth.n, 0);
	assert_int_equal(p->loaded, 0);
	np_profile_free(p);
}

static void odd_json_is_told_and_the_rest_is_read(void **state)
{
	(void)state;
	struct np_profile *p = load_text(
		np_read_comm_json,
		"{\"step1\": {\"p2p\": 7, \"other\": {}, \"collective\": {\"a@1\": [], \"b@2\": "
		"{\"Communication Time Info\": {\"Elapse Time(ms)\": \"N/A\"}, "
		"\"Communication Bandwidth Info\": {\"HCCS\": {\"Transit Size(MB)\": 1, "
		"\"Size Distribution\": {\"x\": [1, 2], \"1\": [1]}}}}}}, \"meta\": 1, \"step2\": "
		"[],}");
	assert_int_equal(p->comm_time.n, 1);
	assert_true(isnan(p->comm_time.elapse_ms[0]));
	assert_int_equal(p->comm_bandwidth.n, 1);
	assert_int_equal(diag(p, "COMM_ENTRY_UNKNOWN")->count, 7);
	assert_non_null(diag(p, "JSON_REPAIRED"));
	np_profile_free(p);
	p = np_profile_new();
	struct np_err err;
	struct np_read read = {.profile = p, .what = NP_LOAD_ALL, .threads = 1};
	const char *path = temp_text(".json", "[1, 2]");
	assert_int_equal(np_read_comm_json(&read, path, &err), NP_E_FORMAT);
	temp_remove(path);
	assert_int_equal(p->loaded, 0);
	np_profile_free(p);
}

static void what_is_not_asked_for_is_not_read(void **state)
{
	(void)state;
	struct np_profile *p = np_profile_new();
	struct np_read read = {.profile = p, .what = NP_KERNELS, .threads = 1};
	assert_int_equal(np_read_comm_json(&read, "/nonexistent", NULL), NP_OK);
	assert_int_equal(np_read_comm_matrix(&read, "/nonexistent", NULL), NP_OK);
	assert_int_equal(np_read_step_trace(&read, "/nonexistent", NULL), NP_OK);
	assert_int_equal(np_read_memory(&read, "/nonexistent", NULL), NP_OK);
	assert_int_equal(np_read_op_memory(&read, "/nonexistent", NULL), NP_OK);
	np_profile_free(p);
}

static void memory_may_run_out_anywhere(void **state)
{
	(void)state;
	char db[4096], json[4096];
	(void)snprintf(
		db, sizeof db, "%s",
		temp_db(TIME_TABLE BANDWIDTH_TABLE MATRIX_TABLE
	                "INSERT INTO CommAnalyzerTime VALUES('a','3',1,2,3,4,5,6,'step1','p2p');"
	                "INSERT INTO CommAnalyzerBandwidth VALUES"
	                "('a','3','HCCS',1,2,3,4,5,6,7,'step1','p2p');"
	                "INSERT INTO CommAnalyzerMatrix VALUES"
	                "('a-top1','3','0','1','HCCS',1,2,3,'step1','p2p','a');"));
	(void)snprintf(json, sizeof json, "%s", temp_text(".json", comm_json));
	const struct {
		read_fn *read;
		const char *path;
	} cases[] = {{np_read_analysis_db, db}, {np_read_comm_json, json}};
	for (size_t c = 0; c < 2; c++) {
		unsigned failed = 0;
		for (uint64_t n = 1; n < 500; n++) {
			struct np_profile *p = np_profile_new();
			struct np_read read = {.profile = p, .what = NP_LOAD_ALL, .threads = 1};
			np_mem_fail_after(n);
			enum np_status st = cases[c].read(&read, cases[c].path, NULL);
			np_mem_fail_after(0);
			if (st == NP_OK)
				assert_int_equal(p->comm_time.n, c == 0 ? 1 : 2);
			else
				assert_int_equal(st, NP_E_NOMEM);
			failed += st != NP_OK;
			np_profile_free(p);
		}
		assert_true(failed > 10);
	}
	temp_remove(db);
	temp_remove(json);
}

/* ── text and db of the same run ── */

/* A row as one line of text, numbers to 12 digits: both formats print what they had as
 * doubles, the db sometimes with one digit less. */
struct lines {
	char (*v)[256];
	size_t n;
};

static int by_text(const void *a, const void *b)
{
	return strcmp(a, b);
}

static struct lines bandwidth_lines(const struct np_profile *p)
{
	const struct np_comm_bandwidth *b = &p->comm_bandwidth;
	struct lines lines = {calloc(b->n + 1, sizeof *lines.v), 0};
	for (size_t i = 0; i < b->n; i++)
		if (b->group[i] != NP_ID_NONE) /* totals are in the text only */
			(void)snprintf(lines.v[lines.n++], 256,
			               "%lld %d %s %s %s %.12g %.12g %.12g %.12g %.12g %.12g %.12g",
			               (long long)b->step[i], b->p2p[i], TEXT(p, b->op[i]).ptr,
			               TEXT(p, b->group[i]).ptr, TEXT(p, b->transport[i]).ptr,
			               b->transit_mb[i], b->transit_ms[i], b->gbps[i],
			               b->large_ratio[i], b->package_mb[i], b->package_count[i],
			               b->package_ms[i]);
	qsort(lines.v, lines.n, sizeof *lines.v, by_text);
	return lines;
}

static struct lines time_lines(const struct np_profile *p)
{
	const struct np_comm_time *t = &p->comm_time;
	struct lines lines = {calloc(t->n + 1, sizeof *lines.v), 0};
	for (size_t i = 0; i < t->n; i++)
		if (t->group[i] != NP_ID_NONE)
			(void)snprintf(lines.v[lines.n++], 256,
			               "%lld %d %s %s %.17g %.12g %.12g %.12g %.12g %.12g",
			               (long long)t->step[i], t->p2p[i], TEXT(p, t->op[i]).ptr,
			               TEXT(p, t->group[i]).ptr, t->start_us[i], t->elapse_ms[i],
			               t->transit_ms[i], t->wait_ms[i], t->sync_ms[i],
			               t->idle_ms[i]);
	qsort(lines.v, lines.n, sizeof *lines.v, by_text);
	return lines;
}

static struct lines matrix_lines(const struct np_profile *p)
{
	const struct np_comm_matrix *m = &p->comm_matrix;
	struct lines lines = {calloc(m->n + 1, sizeof *lines.v), 0};
	for (size_t i = 0; i < m->n; i++)
		(void)snprintf(lines.v[lines.n++], 256,
		               "%lld %d %s %s %u %u %s %.12g %.12g %.12g %s", (long long)m->step[i],
		               m->p2p[i], TEXT(p, m->kind[i]).ptr, TEXT(p, m->group[i]).ptr,
		               m->src[i], m->dst[i], TEXT(p, m->transport[i]).ptr, m->transit_mb[i],
		               m->transit_ms[i], m->gbps[i],
		               TEXT(p, m->op[i]).len ? TEXT(p, m->op[i]).ptr : "-");
	qsort(lines.v, lines.n, sizeof *lines.v, by_text);
	return lines;
}

static void assert_same_lines(struct lines a, struct lines b)
{
	assert_true(a.n > 0);
	for (size_t i = 0; i < a.n && i < b.n; i++)
		assert_string_equal(a.v[i], b.v[i]);
	assert_int_equal(a.n, b.n);
	free(a.v);
	free(b.v);
}

static void text_and_db_of_a_real_run_agree(void **state)
{
	(void)state;
	for (int rank = 0; rank < 4; rank++) {
		char base[256], name[512];
		(void)snprintf(base, sizeof base, "data/qwen3_4rank/rank_%d_ascend_pt/%s", rank,
		               "ASCEND_PROFILER_OUTPUT");
		struct np_profile *text = np_profile_new(), *db = np_profile_new();
		(void)snprintf(name, sizeof name, "%s/communication.json", base);
		const char *path = shared_path(name);
		if (!path) {
			np_profile_free(text);
			np_profile_free(db);
			skip();
		}
		read_into(text, np_read_comm_json, path);
		(void)snprintf(name, sizeof name, "%s/communication_matrix.json", base);
		read_into(text, np_read_comm_matrix, shared_path(name));
		(void)snprintf(name, sizeof name, "%s/analysis.db", base);
		read_into(db, np_read_analysis_db, shared_path(name));
		assert_same_lines(time_lines(text), time_lines(db));
		assert_same_lines(bandwidth_lines(text), bandwidth_lines(db));
		assert_same_lines(matrix_lines(text), matrix_lines(db));
		assert_int_equal(text->diags.n + db->diags.n, 0);
		np_profile_free(text);
		np_profile_free(db);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_op_has_a_row_of_times),
		cmocka_unit_test(a_link_has_one_row_and_one_per_packet_size),
		cmocka_unit_test(a_matrix_has_a_row_per_pair_of_ranks),
		cmocka_unit_test(the_db_gives_the_same_rows_as_the_text),
		cmocka_unit_test(step_times_of_the_db_may_lack_the_device),
		cmocka_unit_test(msprof_has_neither_steps_nor_classes),
		cmocka_unit_test(a_damaged_file_leaves_nothing),
		cmocka_unit_test(odd_json_is_told_and_the_rest_is_read),
		cmocka_unit_test(what_is_not_asked_for_is_not_read),
		cmocka_unit_test(memory_may_run_out_anywhere),
		cmocka_unit_test(text_and_db_of_a_real_run_agree),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
