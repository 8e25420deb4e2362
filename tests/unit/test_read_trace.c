#include "unit.h"

#include "base/fs.h"
#include "capture/trace_doc.h"
#include "same_profile.h"

static const unsigned everything = NP_LOAD_ALL;

static struct np_err err;

static enum np_status read_text(np_str text, unsigned threads, const struct np_trace_plan *plan,
                                size_t window, struct np_profile *profile)
{
	struct np_input *input = NULL;
	struct np_read read = {profile, everything, threads};
	assert_int_equal(np_input_open_mem(text, "trace", 0, &input, &err), NP_OK);
	if (window)
		np_input_limit_window(input, window);
	enum np_status status = np_trace_read_input(&read, input, plan, &err);
	np_input_close(input);
	return status;
}

static struct np_profile *load_as(const char *text, enum np_status expected)
{
	struct np_profile *profile = np_profile_new();
	assert_non_null(profile);
	enum np_status status = read_text(np_str_of(text), 1, NULL, 0, profile);
	if (status != expected)
		fail_msg("status %s: %s %s", np_status_name(status), err.where, err.msg);
	return profile;
}

static struct np_profile *load(const char *text)
{
	return load_as(text, NP_OK);
}

static uint64_t diag(const struct np_profile *profile, const char *code)
{
	for (size_t i = 0; i < profile->diags.n; i++)
		if (strcmp(profile->diags.v[i].code, code) == 0)
			return profile->diags.v[i].count;
	return 0;
}

#define text_of(profile, id) np_intern_get(&(profile)->strings, (id))

/* ── host ── */

static void test_torch_ranges_go_to_their_layers(void **state)
{
	(void)state;
	struct np_profile *p = load(
		"[{\"ph\":\"X\",\"name\":\"aten::add\",\"pid\":7,\"tid\":8,\"ts\":\"1000.001\","
		"\"dur\":5,"
		"\"cat\":\"cpu_op\",\"args\":{\"Sequence number\":41,\"Input Dims\":\"1;\\r\\n2\","
		"\"Input type\":\"float\",\"Call stack\":\"a.py(1)\"}},"
		"{\"ph\":\"X\",\"name\":\"Enqueue@x\",\"pid\":7,\"tid\":8,\"ts\":\"1000.002\","
		"\"dur\":4,"
		"\"cat\":\"enqueue\",\"args\":{\"correlation_id\":12}},"
		"{\"ph\":\"X\",\"name\":\"f\",\"pid\":7,\"tid\":8,\"ts\":\"1000.003\",\"dur\":3,"
		"\"cat\":\"python_function\"},"
		"{\"ph\":\"X\",\"name\":\"GC\",\"pid\":9,\"tid\":8,\"ts\":\"1000.004\",\"dur\":3,"
		"\"cat\":\"GC\"}]");
	assert_int_equal(p->host_ops.n, 4);
	assert_int_equal(p->host_ops.layer[0], NP_HOST_OP);
	assert_int_equal(p->host_ops.layer[1], NP_HOST_QUEUE);
	assert_int_equal(p->host_ops.layer[2], NP_HOST_PYTHON);
	assert_int_equal(p->host_ops.layer[3], NP_HOST_GC);
	assert_str(text_of(p, p->host_ops.name[0]), "aten::add");
	assert_int_equal(p->host_ops.start_ns[0], 1000001);
	assert_int_equal(p->host_ops.dur_ns[0], 5000);
	assert_int_equal(p->host_ops.seq[0], 41);
	assert_int_equal(p->host_ops.seq[1], NP_NO_I64);
	assert_int_equal(p->host_ops.conn[0], NP_NO_I64);
	assert_int_equal(p->host_ops.conn[1], 12);
	assert_int_equal(p->host_ops.pid[0], 7);
	assert_int_equal(p->host_ops.tid[0], 8);
	assert_str(text_of(p, p->host_ops.shapes[0]), "1;\r\n2");
	assert_str(text_of(p, p->host_ops.dtypes[0]), "float");
	assert_str(text_of(p, p->host_ops.stack[0]), "a.py(1)");
	np_profile_free(p);
}

static void test_cann_prefixes_are_cut_off_and_name_the_layer(void **state)
{
	(void)state;
	static const char *const names[] = {"AscendCL@a",      "Model@b", "Node@launch",
	                                    "Communication@d", "Hccl@e",  "Runtime@f"};
	static const uint8_t layers[] = {NP_HOST_ACL,  NP_HOST_MODEL, NP_HOST_NODE,
	                                 NP_HOST_HCCL, NP_HOST_HCCL,  NP_HOST_RUNTIME};
	for (size_t i = 0; i < 6; i++) {
		char text[512];
		(void)snprintf(text, sizeof text,
		               "[{\"name\":\"%s\",\"pid\":1,\"tid\":2,\"ts\":3,\"dur\":4,\"args\":"
		               "{\"item_id\":\"op\",\"connection_id\":\"77\"},\"ph\":\"X\"}]",
		               names[i]);
		struct np_profile *p = load(text);
		assert_int_equal(p->host_ops.n, 1);
		assert_int_equal(p->host_ops.layer[0], layers[i]);
		assert_str(text_of(p, p->host_ops.name[0]), strchr(names[i], '@') + 1);
		assert_int_equal(p->host_ops.conn[0], 77);
		if (layers[i] == NP_HOST_NODE)
			assert_str(text_of(p, p->host_ops.item[0]), "op");
		else
			assert_int_equal(p->host_ops.item[0], NP_ID_NONE);
		np_profile_free(p);
	}
}

static void test_a_step_is_the_first_range_of_torch_with_its_number(void **state)
{
	(void)state;
	struct np_profile *p = load(
		"[{\"ph\":\"X\",\"name\":\"ProfilerStep#6\",\"ts\":50,\"dur\":9,\"cat\":\"cpu_op\"}"
		","
		"{\"ph\":\"X\",\"name\":\"ProfilerStep#5\",\"ts\":5,\"dur\":1,\"cat\":\"mstx\"},"
		"{\"ph\":\"X\",\"name\":\"ProfilerStep#5\",\"ts\":20,\"dur\":9,\"cat\":\"cpu_op\"},"
		"{\"ph\":\"X\",\"name\":\"ProfilerStep#5\",\"ts\":10,\"dur\":9,\"cat\":\"cpu_op\"},"
		"{\"ph\":\"X\",\"name\":\"ProfilerStep#x\",\"ts\":10,\"dur\":9,\"cat\":\"cpu_op\"}"
		"]");
	assert_int_equal(p->steps.n, 2);
	assert_int_equal(p->steps.id[0], 5);
	assert_int_equal(p->steps.host_start_ns[0], 10000);
	assert_int_equal(p->steps.host_end_ns[0], 19000);
	assert_int_equal(p->steps.id[1], 6);
	assert_int_equal(p->steps.start_ns[1], NP_NO_I64);
	assert_int_equal(p->host_ops.n, 5);
	np_profile_free(p);
}

static void test_begin_and_end_make_ranges_and_the_unmatched_are_told(void **state)
{
	(void)state;
	struct np_profile *p =
		load("[{\"ph\":\"E\",\"pid\":1,\"tid\":1,\"ts\":1},"
	             "{\"ph\":\"B\",\"name\":\"out\",\"pid\":1,\"tid\":1,\"ts\":2},"
	             "{\"ph\":\"B\",\"name\":\"in\",\"pid\":1,\"tid\":1,\"ts\":3},"
	             "{\"ph\":\"B\",\"name\":\"other\",\"pid\":1,\"tid\":2,\"ts\":3},"
	             "{\"ph\":\"E\",\"pid\":1,\"tid\":1,\"ts\":4},{\"ph\":\"E\",\"pid\":1,\"tid\":"
	             "1,\"ts\":9}]");
	assert_int_equal(p->host_ops.n, 2);
	assert_str(text_of(p, p->host_ops.name[0]), "out");
	assert_int_equal(p->host_ops.dur_ns[0], 7000);
	assert_str(text_of(p, p->host_ops.name[1]), "in");
	assert_int_equal(p->host_ops.dur_ns[1], 1000);
	assert_int_equal(diag(p, "UNMATCHED_BEGIN_END"), 2);
	np_profile_free(p);
}

static void test_host_rows_come_by_start_and_the_longer_first(void **state)
{
	(void)state;
	static const char *const times[] = {"5,\"dur\":1", "4611686018427387,\"dur\":1",
	                                    "5,\"dur\":3", "1736412474714258,\"dur\":1",
	                                    "5,\"dur\":2", "5,\"dur\":3",
	                                    "0,\"dur\":0"};
	char text[2048] = "[";
	for (size_t i = 0; i < 7; i++) {
		size_t len = strlen(text);
		(void)snprintf(text + len, sizeof text - len,
		               "%s{\"ph\":\"X\",\"name\":\"%zu\",\"cat\":\"cpu_op\",\"ts\":%s}",
		               i ? "," : "", i, times[i]);
	}
	(void)snprintf(text + strlen(text), 2, "]");
	struct np_profile *p = load(text);
	static const char *const names[] = {"6", "2", "5", "4", "0", "3", "1"};
	assert_int_equal(p->host_ops.n, 7);
	for (size_t i = 0; i < 7; i++)
		assert_str(text_of(p, p->host_ops.name[i]), names[i]);
	np_profile_free(p);
}

/* ── device ── */

#define HARDWARE(pid, labels)                                                                 \
	"{\"name\":\"process_name\",\"pid\":" pid ",\"args\":{\"name\":\"Ascend Hardware\"}," \
	"\"ph\":\"M\"},{\"name\":\"process_labels\",\"pid\":" pid                             \
	",\"args\":{\"labels\":\"" labels "\"},\"ph\":\"M\"}"

static void test_tasks_have_their_ids_and_the_device_of_their_label(void **state)
{
	(void)state;
	struct np_profile *p = load(
		"[{\"name\":\"AddN\",\"pid\":100,\"tid\":2,\"ts\":\"9\",\"dur\":1.5,\"args\":"
		"{\"Model Id\":4294967295,\"Task Type\":\"AI_CORE\",\"Physic Stream Id\":2,\"Task "
		"Id\":3,"
		"\"Batch Id\":0,\"Subtask Id\":4294967295,\"connection_id\":990},\"ph\":\"X\"},"
		"{\"name\":\"EVENT_WAIT\",\"pid\":3254508961,\"tid\":4,\"ts\":\"5\",\"dur\":1,"
		"\"args\":"
		"{\"Task Type\":\"EVENT_WAIT_SQE\",\"Physic Stream Id\":4,\"Task Id\":65536,"
		"\"Subtask Id\":7},\"ph\":\"X\"},"
		"{\"name\":\"bare\",\"pid\":100,\"tid\":11,\"ts\":\"11\",\"dur\":1,\"ph\":\"X\"}"
		"," HARDWARE("100", "NPU 3") "," HARDWARE("3254508961", "NPU") "]");
	assert_int_equal(p->tasks.n, 3);
	assert_int_equal(p->host_ops.n, 0);
	assert_str(text_of(p, p->tasks.name[1]), "AddN");
	assert_str(text_of(p, p->tasks.type[1]), "AI_CORE");
	assert_int_equal(p->tasks.device[1], 3);
	assert_int_equal(p->tasks.stream[1], 2);
	assert_int_equal(p->tasks.task[1], 3);
	assert_int_equal(p->tasks.context[1], NP_NO_U32);
	assert_int_equal(p->tasks.conn[1], 990);
	assert_int_equal(p->tasks.dur_ns[1], 1500);
	assert_int_equal(p->tasks.compute[1], 1);
	assert_int_equal(p->tasks.device[0], 1);
	assert_int_equal(p->tasks.context[0], 7);
	assert_int_equal(p->tasks.conn[0], NP_NO_I64);
	assert_int_equal(p->tasks.compute[0], 0);
	assert_str(text_of(p, p->tasks.name[2]), "bare");
	assert_int_equal(p->tasks.stream[2], 11);
	np_profile_free(p);
}

#define LANE(pid, tid, name)                                                                   \
	"{\"name\":\"thread_name\",\"pid\":" pid ",\"tid\":" tid ",\"args\":{\"name\":\"" name \
	"\"},\"ph\":\"M\"}"
#define COMM_OP(tid, ts, dur)                                                                 \
	"{\"name\":\"hcom_allReduce__271_0_1\",\"pid\":9,\"tid\":" tid ",\"ts\":" ts          \
	",\"dur\":" dur ",\"args\":{\"connection_id\":5,\"data_type\":\"FP32\",\"alg_type\":" \
	"\"RING\",\"count\":64},"                                                             \
	"\"ph\":\"X\"}"
#define COMM_TASK(tid, ts)                                                                      \
	"{\"name\":\"Memcpy\",\"pid\":9,\"tid\":" tid ",\"ts\":" ts ",\"dur\":1,\"args\":"      \
	"{\"notify_id\":\"18446744073709551615\",\"stream id\":4,\"task id\":8,\"src rank\":0," \
	"\"dst rank\":4294967295,\"transport type\":\"SDMA\",\"size(Byte)\":4096,"              \
	"\"link type\":\"HCCS\"},\"ph\":\"X\"}"

static void test_communication_tasks_belong_to_the_operation_of_their_lane(void **state)
{
	(void)state;
	struct np_profile *p = load("[" COMM_OP("10", "200", "50") "," COMM_OP("0", "100",
	                                                                       "50") "," COMM_OP("0", "300", "50") "," COMM_TASK("1", "110") "," COMM_TASK("2", "310") "," COMM_TASK("11", "210") "," COMM_TASK("11", "110") "," COMM_TASK("21", "110") "," LANE("9",
	                                                                                                                                                                                                                                                         "0", "Group 10.0.0.1%eth0_6 Communication") "," LANE("9",
	                                                                                                                                                                                                                                                                                                              "1", "Plane 0") "," LANE("9", "2", "Plane 1") "," LANE("9",
	                                                                                                                                                                                                                                                                                                                                                                     "10", "Group 586 Communication") "," LANE("9",
	                                                                                                                                                                                                                                                                                                                                                                                                               "11",
	                                                                                                                                                                                                                                                                                                                                                                                                               "Plane 0") "," LANE("9",
	                                                                                                                                                                                                                                                                                                                                                                                                                                   "20",
	                                                                                                                                                                                                                                                                                                                                                                                                                                   "Group idle Communication") "," LANE("9", "21", "Plane 7") ","
	                                                                                                                                                                                                                                                                                                                                                                                                                                                                                              "{\"name\":\"process_name\",\"pid\":9,\"args\":{\"name\":\"HCCL\"},\"ph\":\"M\"}]");
	assert_int_equal(p->comm_ops.n, 3);
	assert_int_equal(p->comm_tasks.n, 5);
	assert_str(text_of(p, p->comm_ops.group[0]), "10.0.0.1%eth0_6");
	assert_str(text_of(p, p->comm_ops.group[1]), "586");
	assert_str(text_of(p, p->comm_ops.algorithm[0]), "RING");
	assert_str(text_of(p, p->comm_ops.dtype[0]), "FP32");
	assert_int_equal(p->comm_ops.count[0], 64);
	assert_int_equal(p->comm_ops.conn[0], 5);
	assert_int_equal(p->comm_ops.device[0], NP_NO_U32);
	static const uint32_t op[] = {0, NP_NO_U32, NP_NO_U32, 1, 2}, plane[] = {0, 0, 7, 0, 1};
	for (size_t i = 0; i < 5; i++) {
		assert_int_equal(p->comm_tasks.op[i], op[i]);
		assert_int_equal(p->comm_tasks.plane[i], plane[i]);
	}
	assert_int_equal(p->comm_tasks.src_rank[0], 0);
	assert_int_equal(p->comm_tasks.dst_rank[0], NP_NO_U32);
	assert_int_equal(p->comm_tasks.size_bytes[0], 4096);
	assert_true(p->comm_tasks.notify[0] == UINT64_MAX);
	assert_str(text_of(p, p->comm_tasks.transport[0]), "SDMA");
	assert_str(text_of(p, p->comm_tasks.link[0]), "HCCS");
	assert_int_equal(p->comm_tasks.stream[0], 4);
	assert_int_equal(p->comm_tasks.task[0], 8);
	np_profile_free(p);
}

static void test_overlap_lanes_are_no_host_rows_wherever_their_name_comes(void **state)
{
	(void)state;
	struct np_profile *p = load(
		"[{\"name\":\"Free\",\"pid\":5,\"tid\":3,\"ts\":1,\"dur\":1,\"ph\":\"X\"},"
		"{\"name\":\"unknown\",\"pid\":6,\"tid\":3,\"ts\":1,\"dur\":1,\"ph\":\"X\"},"
		"{\"name\":\"process_name\",\"pid\":5,\"args\":{\"name\":\"Overlap Analysis\"},"
		"\"ph\":\"M\"},{\"name\":\"Free\",\"pid\":5,\"tid\":3,\"ts\":1,\"dur\":1,\"ph\":"
		"\"X\"}]");
	assert_int_equal(p->host_ops.n, 1);
	assert_str(text_of(p, p->host_ops.name[0]), "unknown");
	assert_int_equal(p->host_ops.layer[0], NP_HOST_OTHER);
	np_profile_free(p);
}

static void test_every_numeric_argument_of_a_counter_is_a_row(void **state)
{
	(void)state;
	struct np_profile *p = load(
		"[{\"name\":\"HBM 0/Read\",\"ts\":\"2.5\",\"pid\":64,\"tid\":0,\"args\":"
		"{\"Read(MB/s)\":0.1,\"count\":-3e2,\"note\":\"x\"},\"ph\":\"C\"},"
		"{\"name\":\"process_name\",\"pid\":64,\"args\":{\"name\":\"HBM\"},\"ph\":\"M\"},"
		"{\"name\":\"process_labels\",\"pid\":64,\"args\":{\"labels\":\"NPU\"},\"ph\":"
		"\"M\"}]");
	assert_int_equal(p->counters.n, 2);
	assert_str(text_of(p, p->counters.process[0]), "HBM");
	assert_str(text_of(p, p->counters.name[0]), "HBM 0/Read Read(MB/s)");
	assert_str(text_of(p, p->counters.name[1]), "HBM 0/Read count");
	assert_true(p->counters.value[0] == 0.1);
	assert_true(p->counters.value[1] == -300.0);
	assert_int_equal(p->counters.device[0], 0);
	assert_int_equal(p->counters.ts_ns[0], 2500);
	np_profile_free(p);
}

static void test_flow_ids_beyond_64_bits_stay_exact_texts(void **state)
{
	(void)state;
	struct np_profile *p = load("[{\"ph\":\"s\",\"id\":\"98765432109876543210987\",\"pid\":1,"
	                            "\"tid\":2,\"ts\":\"1\","
	                            "\"cat\":\"HostToDevice\"},{\"ph\":\"f\",\"id\":"
	                            "9007199254740993,\"pid\":1,\"tid\":2,"
	                            "\"ts\":\"1\",\"cat\":\"async_npu\"}]");
	assert_int_equal(p->flows.n, 2);
	assert_int_equal(p->flows.end[0], 0);
	assert_str(text_of(p, p->flows.id[0]), "98765432109876543210987");
	assert_str(text_of(p, p->flows.cat[0]), "HostToDevice");
	assert_int_equal(p->flows.end[1], 1);
	assert_str(text_of(p, p->flows.id[1]), "9007199254740993");
	np_profile_free(p);
}

/* ── numbers ── */

static void test_times_are_exact_in_every_notation(void **state)
{
	(void)state;
	static const struct {
		const char *ts;
		int64_t ns;
	} cases[] = {
		{"\"1778655624745710.848\"", 1778655624745710848},
		{"1778655624745710.848", 1778655624745710848},
		{"1778655624745710", 1778655624745710000},
		{"\"1736412474714258.9\"", 1736412474714258900},
		{"0.0004", 0},
		{"3.6500000000000004", 3650},
		{"0.0005", 1},
		{"0.4995", 500},
		{"1.23e3", 1230000},
		{"0", 0},
		{"\"12345678.5\"", 12345678500},
		{"\"12345678901234567890e-5\"", 123456789012345679},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char text[256];
		(void)snprintf(
			text, sizeof text,
			"[{\"ph\":\"X\",\"name\":\"a\",\"ts\":%s,\"dur\":%s,\"cat\":\"cpu_op\"}]",
			cases[i].ts, i < 4 ? "1" : cases[i].ts);
		struct np_profile *p = load(text);
		assert_int_equal(p->host_ops.n, 1);
		assert_int_equal(p->host_ops.start_ns[0], cases[i].ns);
		assert_int_equal(p->host_ops.dur_ns[0], i < 4 ? 1000 : cases[i].ns);
		np_profile_free(p);
	}
}

static void test_rows_without_a_sane_time_are_dropped_and_counted(void **state)
{
	(void)state;
	struct np_profile *p =
		load("[{\"ph\":\"X\",\"name\":\"a\",\"ts\":1,\"dur\":-1,\"cat\":\"cpu_op\"},"
	             "{\"ph\":\"X\",\"name\":\"a\",\"ts\":\"soon\",\"dur\":1,\"cat\":\"cpu_op\"},"
	             "{\"ph\":\"X\",\"name\":\"a\",\"ts\":99999999999999999999,\"dur\":1,\"cat\":"
	             "\"cpu_op\"},"
	             "{\"ph\":\"X\",\"name\":\"a\",\"ts\":9000000000000000,\"dur\":1,\"cat\":\"cpu_"
	             "op\"},"
	             "{\"ph\":\"X\",\"name\":\"a\",\"ts\":-5,\"dur\":1,\"cat\":\"cpu_op\"},"
	             "{\"ph\":\"X\",\"name\":\"a\",\"ts\":1,\"cat\":\"cpu_op\"},"
	             "{\"ph\":\"s\",\"cat\":\"a\",\"id\":1},"
	             "{\"ph\":\"X\",\"name\":\"good\",\"ts\":1,\"dur\":0,\"cat\":\"cpu_op\"}]");
	assert_int_equal(p->host_ops.n, 1);
	assert_int_equal(p->flows.n, 0);
	assert_int_equal(diag(p, "NEGATIVE_DURATION"), 1);
	assert_int_equal(diag(p, "BAD_TIME"), 6);
	assert_int_equal(p->dropped_rows, 7);
	np_profile_free(p);
}

static void test_odd_pids_and_tids_get_ids_of_their_own(void **state)
{
	(void)state;
	struct np_profile *p = load(
		"[{\"ph\":\"X\",\"name\":\"a\",\"pid\":\"host\",\"tid\":9223372036854775808,\"ts\":"
		"1,"
		"\"dur\":4,\"cat\":\"cpu_op\"},"
		"{\"ph\":\"X\",\"name\":\"b\",\"pid\":\"42\",\"tid\":4294967295,\"ts\":2,\"dur\":4,"
		"\"cat\":\"cpu_op\"},"
		"{\"ph\":\"X\",\"name\":\"c\",\"pid\":\"host\",\"tid\":4278190079,\"ts\":3,\"dur\":"
		"4,"
		"\"cat\":\"cpu_op\"},{\"ph\":\"X\",\"name\":\"d\",\"ts\":4,\"dur\":4,\"cat\":\"cpu_"
		"op\"}]");
	assert_int_equal(p->host_ops.pid[0], p->host_ops.pid[2]);
	assert_true(p->host_ops.pid[0] >= NP_TRACE_ODD);
	assert_true(p->host_ops.tid[0] >= NP_TRACE_ODD);
	assert_int_not_equal(p->host_ops.tid[0], p->host_ops.tid[1]);
	assert_int_equal(p->host_ops.pid[1], 42);
	assert_int_equal(p->host_ops.tid[2], 4278190079u);
	assert_int_equal(p->host_ops.pid[3], NP_NO_U32);
	np_profile_free(p);
}

/* ── documents ── */

#define EVENT(name) "{\"ph\":\"X\",\"name\":\"" name "\",\"ts\":1,\"dur\":2,\"cat\":\"cpu_op\"}"

static void test_both_forms_of_a_trace_are_read(void **state)
{
	(void)state;
	static const char *const texts[] = {
		"[" EVENT("a") "]",
		" [ " EVENT("a") " ] \n",
		"{\"traceEvents\":[" EVENT("a") "]}",
		"{\"schemaVersion\":1,\"x\":[{}],\"traceEvents\":[" EVENT(
			"a") "],\"y\":{\"z\":[]}}",
	};
	for (size_t i = 0; i < 4; i++) {
		struct np_profile *p = load(texts[i]);
		assert_int_equal(p->host_ops.n, 1);
		assert_int_equal(p->diags.n, 0);
		np_profile_free(p);
	}
	struct np_profile *p = load("[]");
	assert_int_equal(p->host_ops.n, 0);
	assert_int_equal(p->diags.n, 0);
	assert_true(p->loaded & NP_HOST_OPS);
	np_profile_free(p);
}

static void test_what_is_no_trace_is_refused(void **state)
{
	(void)state;
	np_profile_free(load_as("", NP_E_EMPTY));
	np_profile_free(load_as("  ", NP_E_EMPTY));
	np_profile_free(load_as("17", NP_E_FORMAT));
	np_profile_free(load_as("{\"a\":1}", NP_E_FORMAT));
	np_profile_free(load_as("[] x", NP_E_FORMAT));
	struct np_profile *p = load_as("[" EVENT("a") " " EVENT("b") "]", NP_E_FORMAT);
	assert_int_equal(p->host_ops.n, 1); /* what came before stays */
	np_profile_free(p);
}

static void test_repairs_are_made_and_told_once(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		uint64_t repairs;
	} cases[] = {
		{"[" EVENT("a") ",]", 1},
		{"[" EVENT("a"), 1},
		{"[" EVENT("a") ",,\n", 3},
		{"\xef\xbb\xbf[" EVENT("a") "]", 1},
		{"[" EVENT("a\x01") "]", 1},
		{"[" EVENT("a\xff") "]", 1},
		{"[" EVENT("a\\q") "]", 1},
		{"[" EVENT("\\ud800") "]", 1},
		{"{\"traceEvents\":[" EVENT("a"), 1},
		{"[{\"ph\":\"X\",\"ts\":1,\"dur\":1,\"cat\":\"cpu_op\",\"x\":NaN,}]", 2},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct np_profile *p = load(cases[i].text);
		if (p->host_ops.n != 1 || diag(p, "JSON_REPAIRED") != cases[i].repairs)
			fail_msg("case %zu: %zu rows, %llu repairs", i, p->host_ops.n,
			         (unsigned long long)diag(p, "JSON_REPAIRED"));
		assert_int_equal(p->diags.n, 1);
		np_profile_free(p);
	}
	struct np_profile *p = load("[" EVENT("a\xff") "]");
	assert_str(text_of(p, p->host_ops.name[0]), "a\xef\xbf\xbd");
	np_profile_free(p);
}

static void test_a_truncated_trace_keeps_the_rows_before_the_damage(void **state)
{
	(void)state;
	static const char whole[] = "[" EVENT("a") ", " EVENT("b") "]";
	size_t second = strlen("[" EVENT("a") ", ");
	for (size_t len = second + 1; len < sizeof whole - 2; len++) {
		struct np_profile *p = np_profile_new();
		assert_int_equal(read_text((np_str){whole, len}, 1, NULL, 0, p), NP_E_TRUNCATED);
		assert_int_equal(p->host_ops.n, 1);
		assert_int_equal(diag(p, "TRACE_TRUNCATED"), 1);
		np_profile_free(p);
	}
}

static void test_elements_that_are_no_events_are_counted(void **state)
{
	(void)state;
	struct np_profile *p = load("[1, null, \"x\", [" EVENT("no") "], " EVENT("a") ", {}]");
	assert_int_equal(p->host_ops.n, 1);
	assert_int_equal(diag(p, "NOT_AN_EVENT"), 4);
	np_profile_free(p);
}

static void test_rows_of_an_earlier_file_are_left_alone(void **state)
{
	(void)state;
	static const char text[] =
		"[" COMM_OP("0", "100", "50") "," COMM_TASK("1", "110") "," HARDWARE(
			"8", "NPU 2") ","
				      "{\"name\":\"k\",\"pid\":8,\"ts\":1,\"dur\":1,\"args\":{"
				      "\"Task Type\":\"AIV\"},\"ph\":\"X\"},"
				      "{\"name\":\"h\",\"pid\":8,\"ts\":1,\"dur\":1,\"ph\":\"X\"}"
				      "," EVENT("z") "," LANE("9", "0",
	                                                      "Group 586 Communication") "]";
	struct np_profile *p = load(text);
	assert_int_equal(p->tasks.n, 2);
	assert_int_equal(
		read_text(NP_STR("[" EVENT("y") "," COMM_OP("0", "10", "50") "]"), 1, NULL, 0, p),
		NP_OK);
	assert_int_equal(p->host_ops.n, 2);
	assert_int_equal(p->tasks.n, 2);
	assert_int_equal(p->tasks.device[0], 2);
	assert_int_equal(p->comm_ops.n, 2);
	assert_int_equal(p->comm_ops.group[0], NP_ID_NONE);
	assert_str(text_of(p, p->comm_ops.group[1]), "586");
	assert_int_equal(p->comm_tasks.op[0], 1);
	np_profile_free(p);
}

static void test_only_the_tables_asked_for_are_filled(void **state)
{
	(void)state;
	static const char text[] = "[" EVENT("a") "," COMM_OP("0", "1", "5") "," HARDWARE(
		"8", "NPU") ","
			    "{\"name\":\"h\",\"pid\":8,\"ts\":1,\"dur\":1,\"ph\":\"X\"}]";
	struct np_input *input;
	struct np_read read = {np_profile_new(), NP_TASKS | NP_KERNELS, 1};
	assert_int_equal(np_input_open_mem(np_str_of(text), "t", 0, &input, &err), NP_OK);
	assert_int_equal(np_trace_read_input(&read, input, NULL, &err), NP_OK);
	np_input_close(input);
	assert_int_equal(read.profile->host_ops.n, 0);
	assert_int_equal(read.profile->comm_ops.n, 0);
	assert_int_equal(read.profile->tasks.n, 1);
	assert_int_equal(read.profile->loaded, NP_TASKS);
	np_profile_free(read.profile);
}

/* ── one answer ── */

static void assert_one_answer(np_str text)
{
	static const struct np_trace_plan exact = {0, 0, true};
	struct np_profile *a = np_profile_new(), *b = np_profile_new();
	enum np_status status = read_text(text, 1, NULL, 0, a);
	assert_int_equal(read_text(text, 1, &exact, 0, b), status);
	if (other_profile(a, b))
		fail_msg("exact reader: %s differ in %.*s", other_profile(a, b), NP_FMT(text));
	np_profile_free(b);
	for (size_t window = 1; window < 40; window += 13) {
		b = np_profile_new();
		assert_int_equal(read_text(text, 1, NULL, window, b), status);
		if (other_profile(a, b))
			fail_msg("window %zu: %s differ in %.*s", window, other_profile(a, b),
			         NP_FMT(text));
		np_profile_free(b);
	}
	for (size_t chunk = 16; chunk < 3000; chunk = chunk * 3 + 1) {
		struct np_trace_plan plan = {chunk, 1, false};
		b = np_profile_new();
		assert_int_equal(read_text(text, 3, &plan, 0, b), status);
		if (other_profile(a, b))
			fail_msg("chunks of %zu: %s differ in %.*s", chunk, other_profile(a, b),
			         NP_FMT(text));
		np_profile_free(b);
	}
	np_profile_free(a);
}

#define BAIT \
	"}, {\\\"ph\\\": \\\"X\\\", \\\"name\\\": \\\"bait\\\", \\\"ts\\\": 1, \\\"dur\\\": 1}, {"

static const char mixed[] = "[" EVENT(
	"one") ", {\"ph\": \"X\", \"name\": \"" BAIT BAIT BAIT "\", \"ts\": 3, \"dur\": 4, \"pid\":"
	       " \"p\", \"tid\": \"t\"}, [" EVENT("no") ", " EVENT("no") "], " COMM_OP("0", "100", "50") ", " COMM_TASK(
		       "1",
		       "110") ",, {\"ph\": \"B\", \"pid\": \"q\", \"tid\": 1, \"ts\": "
			      "5, \"name\": \"be\"}, "
			      "{\"ph\": \"X\", \"args\": {\"x\": [{\"a\": 1}, {\"a\": "
			      "2}, {\"a\": {}}]}, \"ts\": 1.5, \"dur\": 2,"
			      " \"name\": \"\xc3\xa9\\u00e9\", \"cat\": \"cpu_op\"}, "
			      "{\"ph\": \"E\", \"pid\": \"q\", \"tid\": 1,"
			      " \"ts\": 6}, {\"name\": \"c\", \"ts\": \"2.5\", "
			      "\"pid\": 64, \"args\": {\"a\": 1, \"b\": 2}, \"ph\":"
			      " \"C\"}, {\"ph\": \"s\", \"id\": \"x1\", \"pid\": "
			      "\"q\", \"tid\": \"p\", \"ts\": 3, \"cat\": "
			      "\"c\"}, " EVENT("ProfilerStep#4") ", " LANE("9", "0", "Group 5 Communication") ", " HARDWARE(
				      "\"p\"", "NPU 1") ", " EVENT("two") ", " EVENT("\x02") "]";

static void test_threads_windows_and_the_exact_reader_agree(void **state)
{
	(void)state;
	assert_one_answer(np_str_of(mixed));
	assert_one_answer(NP_STR("{\"traceEvents\": [" EVENT("a") ", " EVENT("b") "], \"m\": 1}"));
	struct np_profile *p = load(mixed);
	for (size_t i = 0; i < p->host_ops.n; i++)
		assert_false(np_str_is(text_of(p, p->host_ops.name[i]), "bait"));
	np_profile_free(p);
}

static void test_they_agree_on_damaged_traces_too(void **state)
{
	(void)state;
	static char text[sizeof mixed];
	uint32_t random = 1;
	for (size_t cut = 0; cut < sizeof mixed; cut += 29)
		assert_one_answer((np_str){mixed, cut});
	for (int round = 0; round < 300; round++) {
		static const char bytes[] = "{}[],:\"\\0 xu\xff\x01-.e9";
		memcpy(text, mixed, sizeof mixed);
		for (int i = 0; i < 1 + round % 3; i++) {
			random = random * 1664525u + 1013904223u;
			text[(random >> 8) % (sizeof mixed - 1)] =
				bytes[(random >> 3) % (sizeof bytes - 1)];
		}
		assert_one_answer((np_str){text, sizeof mixed - 1});
	}
}

static void test_running_out_of_memory_is_an_error_and_leaks_nothing(void **state)
{
	(void)state;
	for (unsigned threads = 1; threads <= 2; threads++) {
		struct np_trace_plan plan = {200, 1, false};
		bool failed = true;
		for (uint64_t n = 1; failed && n < 4000; n++) {
			struct np_profile *p = np_profile_new();
			struct np_input *input = NULL;
			struct np_read read = {p, everything, threads};
			assert_int_equal(np_input_open_mem(np_str_of(mixed), "t", 0, &input, &err),
			                 NP_OK);
			np_mem_fail_after(n);
			enum np_status status = np_trace_read_input(&read, input, &plan, &err);
			np_mem_fail_after(0);
			failed = status == NP_E_NOMEM;
			if (!failed)
				assert_int_equal(status, NP_OK);
			np_input_close(input);
			np_profile_free(p);
		}
		assert_false(failed);
	}
}

/* ── real captures ── */

static struct np_profile *load_file(const char *path)
{
	struct np_read read = {np_profile_new(), everything, 1};
	if (np_read_trace(&read, path, &err) != NP_OK)
		fail_msg("%s: %s", err.where, err.msg);
	return read.profile;
}

static void test_a_real_trace_of_level2_is_read_completely(void **state)
{
	(void)state;
	const char *path =
		shared_path("data/ddp2/text/level2/rank1_ascend_pt/ASCEND_PROFILER_OUTPUT/"
	                    "trace_view.json");
	if (!path)
		skip();
	struct np_profile *p = load_file(path);
	assert_int_equal(p->diags.n, 0);
	assert_int_equal(p->host_ops.n, 3599);
	assert_int_equal(p->tasks.n, 535);
	assert_int_equal(p->comm_ops.n, 4);
	assert_int_equal(p->comm_tasks.n, 296);
	assert_int_equal(p->flows.n, 1217);
	assert_int_equal(p->counters.n, 7508);
	assert_int_equal(p->steps.n, 1);
	assert_int_equal(p->steps.id[0], 50);
	size_t compute = 0;
	for (size_t i = 0; i < p->tasks.n; i++) {
		compute += p->tasks.compute[i];
		assert_int_equal(p->tasks.device[i], 1);
	}
	assert_int_equal(compute, 187); /* kernel_details.csv without its 4 collectives */
	for (size_t i = 0; i < p->comm_tasks.n; i++)
		assert_int_not_equal(p->comm_tasks.op[i], NP_NO_U32);
	assert_str(text_of(p, p->comm_ops.group[0]), "0");
	np_profile_free(p);
}

static void test_msprof_traces_of_both_exporters_are_read_from_gzip(void **state)
{
	(void)state;
	static const char *const paths[] = {"golden/raw/pipe1000/cpp/msprof.json.gz",
	                                    "golden/raw/pipe1000/py/msprof.json.gz"};
	for (size_t i = 0; i < 2; i++) {
		const char *path = shared_path(paths[i]);
		if (!path)
			skip();
		struct np_profile *p = load_file(path);
		assert_int_equal(p->diags.n, 0);
		assert_int_equal(p->host_ops.n, 1076 + 1145 + 1015 + 80);
		assert_int_equal(p->tasks.n, 1145);
		assert_int_equal(p->comm_ops.n, 10);
		assert_int_equal(p->comm_tasks.n, 80);
		assert_int_equal(p->flows.n, i == 0 ? 2190 : 2210 + 10);
		assert_int_equal(p->counters.n, i == 0 ? 4 : 146);
		assert_int_equal(p->steps.n, 0);
		assert_int_equal(p->tasks.device[0], 0);
		assert_str(text_of(p, p->comm_ops.group[0]), "10.0.0.1%eth0_60000_0_1700000000");
		size_t compute = 0;
		for (size_t k = 0; k < p->tasks.n; k++)
			compute += p->tasks.compute[k];
		assert_int_equal(compute, 577 + 267 + 156 + 5);
		for (size_t k = 0; k < p->comm_tasks.n; k++)
			assert_int_not_equal(p->comm_tasks.op[k], NP_NO_U32);
		np_profile_free(p);
	}
}

static void test_real_traces_give_one_answer_however_they_are_cut(void **state)
{
	(void)state;
	const char *path =
		shared_path("data/ddp2/text/level2/rank0_ascend_pt/ASCEND_PROFILER_OUTPUT/"
	                    "trace_view.json");
	if (!path)
		skip();
	struct np_arena arena;
	np_str text;
	np_arena_init(&arena);
	assert_int_equal(np_file_slurp(&arena, path, 64 << 20, &text, &err), NP_OK);
	static const struct np_trace_plan plans[] = {
		{0, 0, true}, {20000, 1, false}, {333333, 1, false}};
	struct np_profile *a = np_profile_new();
	assert_int_equal(read_text(text, 1, NULL, 0, a), NP_OK);
	for (size_t i = 0; i < 3; i++) {
		struct np_profile *b = np_profile_new();
		assert_int_equal(read_text(text, 2, &plans[i], 0, b), NP_OK);
		if (other_profile(a, b))
			fail_msg("plan %zu: %s differ", i, other_profile(a, b));
		np_profile_free(b);
	}
	np_profile_free(a);
	np_arena_release(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_torch_ranges_go_to_their_layers),
		cmocka_unit_test(test_cann_prefixes_are_cut_off_and_name_the_layer),
		cmocka_unit_test(test_a_step_is_the_first_range_of_torch_with_its_number),
		cmocka_unit_test(test_begin_and_end_make_ranges_and_the_unmatched_are_told),
		cmocka_unit_test(test_host_rows_come_by_start_and_the_longer_first),
		cmocka_unit_test(test_tasks_have_their_ids_and_the_device_of_their_label),
		cmocka_unit_test(test_communication_tasks_belong_to_the_operation_of_their_lane),
		cmocka_unit_test(test_overlap_lanes_are_no_host_rows_wherever_their_name_comes),
		cmocka_unit_test(test_every_numeric_argument_of_a_counter_is_a_row),
		cmocka_unit_test(test_flow_ids_beyond_64_bits_stay_exact_texts),
		cmocka_unit_test(test_times_are_exact_in_every_notation),
		cmocka_unit_test(test_rows_without_a_sane_time_are_dropped_and_counted),
		cmocka_unit_test(test_odd_pids_and_tids_get_ids_of_their_own),
		cmocka_unit_test(test_both_forms_of_a_trace_are_read),
		cmocka_unit_test(test_what_is_no_trace_is_refused),
		cmocka_unit_test(test_repairs_are_made_and_told_once),
		cmocka_unit_test(test_a_truncated_trace_keeps_the_rows_before_the_damage),
		cmocka_unit_test(test_elements_that_are_no_events_are_counted),
		cmocka_unit_test(test_rows_of_an_earlier_file_are_left_alone),
		cmocka_unit_test(test_only_the_tables_asked_for_are_filled),
		cmocka_unit_test(test_threads_windows_and_the_exact_reader_agree),
		cmocka_unit_test(test_they_agree_on_damaged_traces_too),
		cmocka_unit_test(test_running_out_of_memory_is_an_error_and_leaks_nothing),
		cmocka_unit_test(test_a_real_trace_of_level2_is_read_completely),
		cmocka_unit_test(test_msprof_traces_of_both_exporters_are_read_from_gzip),
		cmocka_unit_test(test_real_traces_give_one_answer_however_they_are_cut),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
