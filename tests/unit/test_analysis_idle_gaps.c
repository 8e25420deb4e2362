/* Gaps and the host's time, on profiles made by hand: who is asked, and what counts. */
#include "unit.h"

#include "analysis/idle_gaps.h"

enum { MAIN = 1, ENGINE = 2, CONSUMER = 3 };

struct world {
	struct np_analysis analysis;
	struct np_rules rules;
	struct np_span span;
	struct np_launch launches[8];
	uint8_t classes[8];
	uint32_t span_of[8];
	struct np_gaps gaps;
};

static uint32_t text(struct world *w, const char *name)
{
	return np_intern_add(&w->analysis.profile->strings, np_str_of(name));
}

static uint32_t host(struct world *w, uint8_t layer, const char *name, uint32_t tid, np_ns start,
                     np_ns end)
{
	struct np_host_ops *t = &w->analysis.profile->host_ops;
	size_t i = np_profile_add(w->analysis.profile, host_ops);
	assert_int_not_equal(i, SIZE_MAX);
	t->layer[i] = layer;
	t->name[i] = text(w, name);
	t->item[i] = t->shapes[i] = t->dtypes[i] = t->stack[i] = NP_ID_NONE;
	t->pid[i] = 7;
	t->tid[i] = tid;
	t->start_ns[i] = start;
	t->dur_ns[i] = end - start;
	t->conn[i] = t->seq[i] = NP_NO_I64;
	return (uint32_t)i;
}

static void task(struct world *w, const char *type, uint32_t stream, np_ns start, np_ns end)
{
	struct np_tasks *t = &w->analysis.profile->tasks;
	size_t i = np_profile_add(w->analysis.profile, tasks);
	assert_int_not_equal(i, SIZE_MAX);
	t->name[i] = t->type[i] = text(w, type);
	t->device[i] = 0;
	t->stream[i] = stream;
	t->task[i] = t->context[i] = NP_NO_U32;
	t->start_ns[i] = start;
	t->dur_ns[i] = end - start;
	t->conn[i] = NP_NO_I64;
	t->compute[i] = 0;
}

/* Launched by [h0, h1) of `tid`. */
static struct np_launch *kernel(struct world *w, np_ns start, np_ns end, np_ns h0, np_ns h1,
                                uint32_t tid)
{
	struct np_kernels *k = &w->analysis.profile->kernels;
	size_t i = np_profile_add(w->analysis.profile, kernels);
	assert_in_range(i, 0, 7);
	k->step[i] = k->context[i] = k->task[i] = k->model[i] = k->conn[i] = NP_NO_U32;
	k->device[i] = 0;
	k->stream[i] = 2;
	k->name[i] = k->type[i] = k->core[i] = k->op_state[i] = k->hf32[i] = NP_ID_NONE;
	k->start_ns[i] = start;
	k->dur_ns[i] = end - start;
	k->wait_ns[i] = 0;
	k->block_num[i] = k->mix_block_num[i] = NP_NO_U32;
	w->classes[i] = NP_CLASS_VECTOR;
	w->span_of[i] = 0;
	w->launches[i] =
		(struct np_launch){h0, h1, NP_NO_U32, NP_NO_U32, NP_NO_U32, tid, 2, NP_LAUNCH_CALL};
	w->span.end = end;
	return &w->launches[i];
}

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof *w);
	if (!w)
		return -1;
	w->rules = np_default_rules;
	w->analysis.rules = &w->rules;
	w->analysis.profile = np_profile_new();
	w->analysis.launches = w->launches;
	w->analysis.class = w->classes;
	w->analysis.span_of = w->span_of;
	w->span = (struct np_span){.start = 1000, .host_start = NP_NO_I64, .host_end = NP_NO_I64};
	w->analysis.spans.v = &w->span;
	w->analysis.spans.n = 1;
	*state = w;
	return w->analysis.profile ? 0 : -1;
}

static int teardown(void **state)
{
	struct world *w = *state;
	np_gaps_release(&w->gaps);
	np_profile_free(w->analysis.profile);
	free(w);
	return 0;
}

static np_ns part_of(const struct world *w, size_t gap, enum np_idle_class class)
{
	const struct np_gap *g = &w->gaps.v.v[gap];
	for (uint32_t i = 0; i < g->n_parts; i++)
		if (w->gaps.parts[g->part + i].class == class)
			return w->gaps.parts[g->part + i].ns;
	return 0;
}

static void find(struct world *w, size_t gaps)
{
	assert_true(np_gaps_find(&w->analysis, &w->gaps));
	assert_int_equal(w->gaps.v.n, gaps);
	for (size_t g = 0; g < gaps; g++) {
		const struct np_gap *gap = &w->gaps.v.v[g];
		np_ns sum = 0;
		for (uint32_t i = 0; i < gap->n_parts; i++)
			sum += w->gaps.parts[gap->part + i].ns;
		assert_int_equal(sum, gap->end - gap->start);
	}
}

/* ── what is asked ── */

static void the_first_class_of_nested_ranges_counts(void **state)
{
	struct world *w = *state;
	host(w, NP_HOST_OP, "ProfilerStep#3", MAIN, 0, 9000);
	host(w, NP_HOST_OP, "aten::to", MAIN, 2100, 2900);
	uint32_t sync = host(w, NP_HOST_ACL, "aclrtSynchronizeStream", MAIN, 2200, 2700);
	host(w, NP_HOST_RUNTIME, "StreamWait", MAIN, 2300, 2400);
	kernel(w, 1000, 2000, 500, 510, MAIN);
	kernel(w, 3000, 4000, 2950, 2980, MAIN);
	find(w, 1);
	assert_int_equal(part_of(w, 0, NP_IDLE_UNTRACED), 100 + 50);
	assert_int_equal(part_of(w, 0, NP_IDLE_OP), 100 + 200);
	assert_int_equal(part_of(w, 0, NP_IDLE_SYNC), 500);
	assert_int_equal(part_of(w, 0, NP_IDLE_CANN), 0);
	assert_int_equal(part_of(w, 0, NP_IDLE_LAUNCH), 30);
	assert_int_equal(part_of(w, 0, NP_IDLE_LATENCY), 20);
	assert_int_equal(w->gaps.v.v[0].class, NP_IDLE_SYNC);
	assert_int_equal(w->gaps.v.v[0].row, sync);
}

static void the_producer_is_asked_until_it_enqueued_then_the_consumer(void **state)
{
	struct world *w = *state;
	host(w, NP_HOST_OP, "ProfilerStep#3", MAIN, 0, 9000);
	host(w, NP_HOST_OP, "aten::add", MAIN, 1900, 2600);
	uint32_t enqueue = host(w, NP_HOST_QUEUE, "Enqueue@add", MAIN, 2400, 2500);
	host(w, NP_HOST_PYTHON, "busy.py(1): main", MAIN, 2600, 3500);
	uint32_t dequeue = host(w, NP_HOST_QUEUE, "Dequeue@add", CONSUMER, 2650, 2900);
	kernel(w, 1000, 2000, 500, 510, MAIN);
	struct np_launch *launch = kernel(w, 3000, 4000, 2800, 2850, CONSUMER);
	launch->enqueue = enqueue;
	launch->dequeue = dequeue;
	find(w, 1);
	assert_int_equal(part_of(w, 0, NP_IDLE_OP), 500);
	assert_int_equal(part_of(w, 0, NP_IDLE_QUEUED), 150);
	assert_int_equal(part_of(w, 0, NP_IDLE_CANN), 150);
	assert_int_equal(part_of(w, 0, NP_IDLE_PYTHON), 0);
	assert_int_equal(part_of(w, 0, NP_IDLE_LAUNCH), 50);
	assert_int_equal(part_of(w, 0, NP_IDLE_LATENCY), 150);
}

static void what_an_engine_thread_leaves_open_is_asked_of_the_main_thread(void **state)
{
	struct world *w = *state;
	host(w, NP_HOST_OP, "ProfilerStep#3", MAIN, 0, 9000);
	host(w, NP_HOST_OP, "enumerate(DataLoader)#_SingleProcess.__next__", MAIN, 2000, 2500);
	host(w, NP_HOST_OP, "autograd::engine", ENGINE, 2600, 2900);
	kernel(w, 1000, 2000, 500, 510, MAIN);
	kernel(w, 3000, 4000, 2900, 2910, ENGINE);
	find(w, 1);
	assert_int_equal(part_of(w, 0, NP_IDLE_DATALOADER), 500);
	assert_int_equal(part_of(w, 0, NP_IDLE_OP), 300);
	assert_int_equal(part_of(w, 0, NP_IDLE_UNTRACED), 100);
}

static void garbage_collection_stops_every_thread(void **state)
{
	struct world *w = *state;
	host(w, NP_HOST_OP, "aten::add", ENGINE, 1500, 2900);
	host(w, NP_HOST_GC, "GC", MAIN, 1900, 2300);
	host(w, NP_HOST_GC, "GC", MAIN, 2500, 2600);
	kernel(w, 1000, 2000, 500, 510, MAIN);
	kernel(w, 3000, 4000, 2900, 2910, ENGINE);
	find(w, 1);
	assert_int_equal(part_of(w, 0, NP_IDLE_GC), 300 + 100);
	assert_int_equal(part_of(w, 0, NP_IDLE_OP), 500);
}

static void names_tell_what_layers_do_not(void **state)
{
	static const struct {
		uint8_t layer;
		const char *name;
		enum np_idle_class class;
	} cases[] = {
		{NP_HOST_OP, "aten::_local_scalar_dense", NP_IDLE_SYNC},
		{NP_HOST_ACL, "aclrtMemcpy", NP_IDLE_SYNC},
		{NP_HOST_ACL, "aclrtMemcpyAsync", NP_IDLE_CANN},
		{NP_HOST_PYTHON, "torch_npu/npu/utils.py(59): synchronize", NP_IDLE_SYNC},
		{NP_HOST_PYTHON, "engine.py(9): synchronize_gradients", NP_IDLE_PYTHON},
		{NP_HOST_PYTHON, "<built-in method item of Tensor object at 0x7f>", NP_IDLE_SYNC},
		{NP_HOST_PYTHON, "torch/utils/data/dataloader.py(630): __next__",
	         NP_IDLE_DATALOADER},
		{NP_HOST_PYTHON, "<built-in function collect>", NP_IDLE_GC},
		{NP_HOST_RUNTIME, "DevMalloc", NP_IDLE_ALLOCATOR},
		{NP_HOST_ACL, "aclrtFree", NP_IDLE_ALLOCATOR},
		{NP_HOST_ACL, "aclnnAddGetWorkspaceSize", NP_IDLE_CANN},
		{NP_HOST_ACL, "opCompile", NP_IDLE_COMPILE},
		{NP_HOST_ACL, "aclopCompileAndExecute", NP_IDLE_CANN},
		{NP_HOST_MSTX, "forward", NP_IDLE_MSTX},
		{NP_HOST_OTHER, "whatever", NP_IDLE_OP},
	};
	struct world *w = *state;
	const size_t n = sizeof cases / sizeof *cases;
	for (size_t i = 0; i < n; i++)
		host(w, cases[i].layer, cases[i].name, MAIN, 2000 + 100 * (np_ns)i,
		     2100 + 100 * (np_ns)i);
	struct np_host_time time;
	assert_true(np_host_time_init(&time, &w->analysis));
	for (uint32_t i = 0; i < n; i++)
		assert_true(np_host_ask(&time, 2000 + 100 * (np_ns)i, 2100 + 100 * (np_ns)i, MAIN,
		                        i, false));
	assert_true(np_host_answer(&time));
	assert_int_equal(time.parts.n, n);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(time.parts.v[i].ns, 100);
		if (time.parts.v[i].class != cases[i].class)
			fail_msg("%s is %s", cases[i].name,
			         np_idle_name((enum np_idle_class)time.parts.v[i].class));
	}
	np_host_time_release(&time);
}

/* ── what was issued ── */

static void copies_and_waits_are_told_from_latency(void **state)
{
	struct world *w = *state;
	task(w, "EVENT_WAIT_SQE", 2, 1500, 2800);
	task(w, "NOTIFY_WAIT_SQE", 9, 1500, 2990); /* another stream's */
	task(w, "MEMCPY_ASYNC", 9, 2100, 2300);
	kernel(w, 1000, 2000, 500, 510, MAIN);
	kernel(w, 5000, 6000, 600, 610, MAIN);
	find(w, 1);
	assert_int_equal(part_of(w, 0, NP_IDLE_COPY), 200);
	assert_int_equal(part_of(w, 0, NP_IDLE_DEPENDENCY), 600);
	assert_int_equal(part_of(w, 0, NP_IDLE_LATENCY), 2200);
}

static void a_wait_that_ends_a_microsecond_before_is_all_of_it(void **state)
{
	struct world *w = *state;
	task(w, "EVENT_WAIT", 2, 2000, 4200);
	kernel(w, 1000, 2000, 500, 510, MAIN);
	kernel(w, 5000, 6000, 600, 610, MAIN);
	find(w, 1);
	assert_int_equal(part_of(w, 0, NP_IDLE_DEPENDENCY), 3000);
}

static void a_kernel_may_begin_before_its_launch_returns(void **state)
{
	struct world *w = *state;
	host(w, NP_HOST_NODE, "launch", MAIN, 2500, 9000);
	kernel(w, 1000, 2000, 500, 510, MAIN);
	kernel(w, 3000, 4000, 2500, 9000, MAIN);
	kernel(w, 4500, 5000, 8000, 8500, MAIN); /* clocks that disagree */
	find(w, 2);
	assert_int_equal(part_of(w, 0, NP_IDLE_UNTRACED), 500);
	assert_int_equal(part_of(w, 0, NP_IDLE_LAUNCH), 500);
	assert_int_equal(part_of(w, 1, NP_IDLE_CANN), 500);
}

static void edges_of_steps_are_apart(void **state)
{
	struct world *w = *state;
	host(w, NP_HOST_OP, "ProfilerStep#3", MAIN, 400, 9000);
	host(w, NP_HOST_OP, "aten::item", MAIN, 2000, 9000);
	w->span.host_start = 400;
	w->span.host_end = 9000;
	kernel(w, 1000, 2000, 700, 710, MAIN);
	find(w, 2);
	assert_int_equal(w->gaps.v.v[0].kind, NP_GAP_PREPARING);
	assert_int_equal(w->gaps.v.v[0].end - w->gaps.v.v[0].start, 600);
	assert_int_equal(part_of(w, 0, NP_IDLE_UNTRACED), 300);
	assert_int_equal(w->gaps.v.v[1].kind, NP_GAP_TAIL);
	assert_int_equal(part_of(w, 1, NP_IDLE_SYNC), 7000);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_first_class_of_nested_ranges_counts),
		TEST(the_producer_is_asked_until_it_enqueued_then_the_consumer),
		TEST(what_an_engine_thread_leaves_open_is_asked_of_the_main_thread),
		TEST(garbage_collection_stops_every_thread),
		TEST(names_tell_what_layers_do_not),
		TEST(copies_and_waits_are_told_from_latency),
		TEST(a_wait_that_ends_a_microsecond_before_is_all_of_it),
		TEST(a_kernel_may_begin_before_its_launch_returns),
		TEST(edges_of_steps_are_apart),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
