/* Ranges and marks of the user in a trace: by event_type, by category, by process. */
#include "unit.h"

#include "capture/trace_doc.h"

#define text_of(profile, id) np_intern_get(&(profile)->strings, (id))

static const char mstx_trace[] =
	"[{\"ph\":\"X\",\"name\":\"forward\",\"pid\":7,\"tid\":8,\"ts\":\"1000.005\",\"dur\":2,"
	"\"args\":{\"event_type\":\"start/end\",\"Category\":\"3\",\"domain\":\"Module\","
	"\"connection_id\":91}},"
	"{\"ph\":\"X\",\"name\":\"m\",\"pid\":7,\"tid\":8,\"ts\":\"1000.001\",\"dur\":0.5,"
	"\"args\":{\"event_type\":\"marker_ex\"}},"
	"{\"ph\":\"X\",\"name\":\"old\",\"pid\":17,\"tid\":8,\"ts\":\"1000.002\",\"dur\":1},"
	"{\"ph\":\"B\",\"name\":\"b\",\"pid\":7,\"tid\":9,\"ts\":\"1000.003\",\"cat\":\"mstx\"},"
	"{\"ph\":\"E\",\"pid\":7,\"tid\":9,\"ts\":\"1001.003\"},"
	"{\"ph\":\"X\",\"name\":\"aten::add\",\"pid\":7,\"tid\":8,\"ts\":\"1000.004\",\"dur\":5,"
	"\"cat\":\"cpu_op\"},"
	"{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":17,\"args\":{\"name\":\"msproftx\"}}]";

static void assert_mstx(const struct np_profile *p)
{
	static const struct {
		const char *message;
		np_ns start, end;
		enum np_mstx_type type;
	} expected[] = {{"m", 1000001, 1000001, NP_MSTX_MARKER_EX},
	                {"old", 1000002, 1001002, NP_MSTX_UNKNOWN},
	                {"b", 1000003, 1001003, NP_MSTX_UNKNOWN},
	                {"forward", 1000005, 1002005, NP_MSTX_START_END}};
	const struct np_mstx *m = &p->mstx;
	assert_int_equal(m->n, 4);
	for (size_t i = 0; i < 4; i++) {
		assert_str(text_of(p, m->message[i]), expected[i].message);
		assert_int_equal(m->start_ns[i], expected[i].start);
		assert_int_equal(m->end_ns[i], expected[i].end);
		assert_int_equal(m->event_type[i], expected[i].type);
		assert_true(m->range_id[i] == NP_NO_I64 && m->end_tid[i] == m->tid[i]);
	}
	assert_str(text_of(p, m->domain[3]), "Module");
	assert_true(m->category[3] == 3 && m->conn[3] == 91 && m->tid[3] == 8 && m->pid[3] == 7);
	assert_true(m->domain[0] == NP_ID_NONE && m->category[0] == NP_NO_I64);
}

static struct np_profile *load(unsigned what)
{
	struct np_input *input = NULL;
	struct np_profile *p = np_profile_new();
	struct np_read read = {p, what, 1};
	assert_non_null(p);
	assert_int_equal(np_input_open_mem(np_str_of(mstx_trace), "trace", 0, &input, NULL), NP_OK);
	assert_int_equal(np_trace_read_input(&read, input, NULL, NULL), NP_OK);
	np_input_close(input);
	return p;
}

static void ranges_of_the_user_are_a_table_of_their_own(void **state)
{
	(void)state;
	struct np_profile *p = load(NP_LOAD_ALL);
	assert_mstx(p);
	assert_int_equal(p->host_ops.n, 5);
	np_profile_free(p);
}

static void they_come_without_the_host_ops_that_lead_there(void **state)
{
	(void)state;
	struct np_profile *p = load(NP_MSTX);
	assert_mstx(p);
	assert_int_equal(p->host_ops.n, 0);
	assert_int_equal(p->loaded, NP_MSTX);
	np_profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranges_of_the_user_are_a_table_of_their_own),
		cmocka_unit_test(they_come_without_the_host_ops_that_lead_there),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
