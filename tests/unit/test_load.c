/* A run as text and the same run as databases: one answer, but for what
 * docs/formats/text_vs_db.md lists. */
#include <math.h>

#include "capture/capture.h"
#include "synth_set.h"

static char root[TREE_PATH];
static struct np_captures *text_set, *db_set;
static struct np_profile *text, *db;

static void load(struct np_captures *all, size_t i, unsigned what, struct np_profile **out)
{
	struct np_err err = {0};
	np_profile_free(*out);
	if (np_capture_load(all->captures.v[i], what, 1, out, &err) != NP_OK)
		fail_msg("%s", err.msg);
	assert_int_equal((*out)->loaded & what, what);
	assert_int_equal((*out)->diags.n, 0);
}

static void load_both(size_t rank, unsigned what)
{
	load(text_set, rank, what, &text);
	load(db_set, rank, what, &db);
}

static np_str text_of(const struct np_profile *profile, uint32_t id)
{
	return id == NP_ID_NONE ? NP_STR("(none)") : np_intern_get(&profile->strings, id);
}

static void same_text(const char *what, size_t row, uint32_t a, uint32_t b)
{
	np_str x = text_of(text, a), y = text_of(db, b);
	if (!np_str_eq(x, y))
		fail_msg("%s of row %zu: text %.*s, db %.*s", what, row, NP_FMT(x), NP_FMT(y));
}

static void same_number(const char *what, size_t row, int64_t a, int64_t b)
{
	if (a != b)
		fail_msg("%s of row %zu: text %lld, db %lld", what, row, (long long)a,
		         (long long)b);
}

static void same_real(const char *what, size_t row, double a, double b, double tolerance)
{
	if (isnan(a) != isnan(b) || fabs(a - b) > tolerance)
		fail_msg("%s of row %zu: text %.17g, db %.17g", what, row, a, b);
}

#define NUMBER(table, column) same_number(#column, i, text->table.column[i], db->table.column[i])
#define TEXT(table, column)   same_text(#column, i, text->table.column[i], db->table.column[i])
#define REAL(table, column, tolerance) \
	same_real(#column, i, text->table.column[i], db->table.column[i], tolerance)

static void kernels_are_the_same(void **state)
{
	(void)state;
	for (size_t rank = 0; rank < 2; rank++) {
		load_both(rank, NP_KERNELS | NP_KERNEL_SHAPES | NP_KERNEL_METRICS);
		assert_int_equal(text->kernels.n, db->kernels.n);
		assert_true(text->kernels.n > 100);
		for (size_t i = 0; i < text->kernels.n; i++) {
			NUMBER(kernels, start_ns);
			NUMBER(kernels, dur_ns);
			NUMBER(kernels, wait_ns);
			NUMBER(kernels, device);
			TEXT(kernels, name);
			TEXT(kernels, type);
			TEXT(kernels, core);
			bool comm = np_is_comm_core(text_of(text, text->kernels.core[i]));
			/* a collective has no task of its own in the text */
			if (!comm) {
				NUMBER(kernels, stream);
				NUMBER(kernels, task);
				NUMBER(kernels, block_num);
				NUMBER(kernels, mix_block_num);
				TEXT(kernels, op_state);
				TEXT(kernels, hf32);
				TEXT(kernel_shapes, in_shapes);
				TEXT(kernel_shapes, in_dtypes);
				TEXT(kernel_shapes, in_formats);
				TEXT(kernel_shapes, out_shapes);
				TEXT(kernel_shapes, out_dtypes);
				TEXT(kernel_shapes, out_formats);
			}
			same_number("step", i,
			            text->kernels.step[i] == NP_NO_U32
			                    ? -1
			                    : text->steps.id[text->kernels.step[i]],
			            db->kernels.step[i] == NP_NO_U32
			                    ? -1
			                    : db->steps.id[db->kernels.step[i]]);
		}
	}
}

static void metrics_are_the_same(void **state)
{
	(void)state;
	load_both(0, NP_KERNELS | NP_KERNEL_METRICS);
	assert_true(text->metrics.n >= 25);
	for (size_t m = 0; m < text->metrics.n; m++) {
		np_str name = text_of(text, text->metrics.v[m].name);
		char key[128];
		(void)snprintf(key, sizeof key, "%.*s", NP_FMT(name));
		if (strcmp(key, "cube_utilization(%)") == 0)
			continue; /* computed by the text's exporter, in no database */
		const struct np_metric *other = np_profile_metric(db, key);
		if (!other)
			fail_msg("the database has no %s", key);
		/* the text is rounded to three digits behind the point */
		for (size_t i = 0; i < text->kernels.n; i++)
			same_real(key, i, text->metrics.v[m].v[i], other->v[i], 0.000501);
	}
}

static void steps_are_the_same(void **state)
{
	(void)state;
	load_both(1, NP_STEPS | NP_KERNELS);
	assert_int_equal(text->steps.n, 2);
	assert_int_equal(db->steps.n, 2);
	for (size_t i = 0; i < text->steps.n; i++) {
		NUMBER(steps, id);
		NUMBER(steps, start_ns);
		NUMBER(steps, end_ns);
		NUMBER(steps, kernels);
		NUMBER(steps, host_start_ns);
		NUMBER(steps, host_end_ns);
	}
}

static void the_exporters_step_rows_are_the_same(void **state)
{
	(void)state;
	load_both(0, NP_STEP_TRACE);
	assert_int_equal(text->step_trace.n, 2);
	assert_int_equal(db->step_trace.n, 2);
	for (size_t i = 0; i < text->step_trace.n; i++) {
		NUMBER(step_trace, step);
		REAL(step_trace, computing_us, 0.25);
		REAL(step_trace, comm_not_overlapped_us, 0.25);
		REAL(step_trace, overlapped_us, 0.25);
		REAL(step_trace, comm_us, 0.25);
		/* free and stage have another definition in each of the files */
		assert_true(text->step_trace.free_us[i] > 0 && db->step_trace.free_us[i] > 0);
		REAL(step_trace, bubble_us, 0.25);
		REAL(step_trace, preparing_us, 0.25);
	}
}

static void collectives_are_the_same(void **state)
{
	(void)state;
	load_both(0, NP_COMM | NP_STEPS);
	assert_int_equal(text->comm_ops.n, db->comm_ops.n);
	assert_true(text->comm_ops.n > 8);
	for (size_t i = 0; i < text->comm_ops.n; i++) {
		NUMBER(comm_ops, start_ns);
		NUMBER(comm_ops, dur_ns);
		TEXT(comm_ops, name);
		NUMBER(comm_ops, count);
		TEXT(comm_ops, dtype);
		TEXT(comm_ops, algorithm);
	}
	assert_int_equal(text->comm_tasks.n, db->comm_tasks.n);
	for (size_t i = 0; i < text->comm_tasks.n; i++) {
		NUMBER(comm_tasks, start_ns);
		NUMBER(comm_tasks, dur_ns);
		TEXT(comm_tasks, name);
		NUMBER(comm_tasks, size_bytes);
		TEXT(comm_tasks, transport);
		NUMBER(comm_tasks, src_rank);
		NUMBER(comm_tasks, dst_rank);
	}
}

/* Rows of the two need not come in one order. */
static size_t partner(const struct np_comm_time *a, size_t i, const struct np_comm_time *b)
{
	for (size_t k = 0; k < b->n; k++)
		if (a->step[i] == b->step[k] && a->p2p[i] == b->p2p[k] &&
		    np_str_eq(text_of(text, a->op[i]), text_of(db, b->op[k])) &&
		    np_str_eq(text_of(text, a->group[i]), text_of(db, b->group[k])))
			return k;
	return SIZE_MAX;
}

static void communication_times_are_the_same(void **state)
{
	(void)state;
	load_both(0, NP_COMM_SUMMARY);
	size_t matched = 0, totals = 0;
	for (size_t i = 0; i < text->comm_time.n; i++) {
		np_str op = text_of(text, text->comm_time.op[i]);
		size_t k = partner(&text->comm_time, i, &db->comm_time);
		if (k == SIZE_MAX) {
			/* sums of the file; a database holds operations only */
			if (!np_str_contains(op, NP_STR("Total")))
				fail_msg("the database has no %.*s", NP_FMT(op));
			totals++;
			continue;
		}
		matched++;
		same_real("elapse", i, text->comm_time.elapse_ms[i], db->comm_time.elapse_ms[k],
		          1e-6);
		same_real("transit", i, text->comm_time.transit_ms[i], db->comm_time.transit_ms[k],
		          1e-6);
		same_real("wait", i, text->comm_time.wait_ms[i], db->comm_time.wait_ms[k], 1e-6);
	}
	assert_true(matched > 8);
	assert_true(matched + totals == text->comm_time.n);
	assert_true(text->comm_matrix.n > 0);
	assert_true(db->comm_matrix.n > 0);
}

static void memory_is_the_same(void **state)
{
	(void)state;
	load_both(0, NP_MEMORY);
	assert_int_equal(text->op_memory.n, db->op_memory.n);
	assert_true(text->op_memory.n > 0);
	for (size_t i = 0; i < text->op_memory.n; i++) {
		TEXT(op_memory, name);
		NUMBER(op_memory, alloc_ns);
		NUMBER(op_memory, release_ns);
		NUMBER(op_memory, size_bytes);
		REAL(op_memory, allocated_mb, 1e-3);
	}
}

static void tasks_of_the_device_are_the_same(void **state)
{
	(void)state;
	load_both(0, NP_TASKS);
	assert_true(text->tasks.n > 100);
	size_t i = 0;
	for (size_t k = 0; k < db->tasks.n; k++) {
		/* those of collectives are in lanes of their own in the text: comm_tasks */
		np_str type = text_of(db, db->tasks.type[k]);
		if (np_str_is(type, "SDMA") || np_str_is(type, "Notify Wait"))
			continue;
		assert_true(i < text->tasks.n);
		same_number("start_ns", i, text->tasks.start_ns[i], db->tasks.start_ns[k]);
		same_number("dur_ns", i, text->tasks.dur_ns[i], db->tasks.dur_ns[k]);
		i++;
	}
	assert_int_equal(i, text->tasks.n);
}

static void host_operators_are_the_same(void **state)
{
	(void)state;
	load_both(0, NP_HOST_OPS);
	size_t n_text = 0, n_db = 0;
	for (size_t i = 0; i < text->host_ops.n; i++)
		n_text += text->host_ops.layer[i] == NP_HOST_OP;
	for (size_t i = 0; i < db->host_ops.n; i++)
		n_db += db->host_ops.layer[i] == NP_HOST_OP;
	assert_true(n_text > 100);
	assert_int_equal(n_text, n_db);
}

/* Both formats in one directory: read once, and text first. */
static void a_capture_with_both_is_read_once(void **state)
{
	(void)state;
	char dir[TREE_PATH + 8];
	(void)snprintf(dir, sizeof dir, "%s/both", root);
	synth_set(dir, NP_SYNTH_TEXT | NP_SYNTH_DB, 2, 1, "");
	struct np_captures *all = NULL;
	struct np_profile *both = NULL;
	assert_int_equal(np_discover(dir, &all, NULL), NP_OK);
	const unsigned absent = NP_COUNTERS | NP_COMM_SCHEDULE;
	load(all, 0, NP_LOAD_ALL & ~absent, &both);
	load(db_set, 0, NP_HOST_CONNS, &db);
	/* only the db has the connections, and then gives the host ops as well */
	assert_true(db->host_conns.n > 100);
	assert_int_equal(both->host_conns.n, db->host_conns.n);
	assert_int_equal(both->host_ops.n, db->host_ops.n);
	load_both(0, NP_KERNELS | NP_COMM | NP_TASKS | NP_MEMORY);
	assert_int_equal(both->kernels.n, text->kernels.n);
	assert_int_equal(both->tasks.n, text->tasks.n);
	assert_int_equal(both->comm_ops.n, text->comm_ops.n);
	assert_int_equal(both->op_memory.n, text->op_memory.n);
	np_profile_free(both);
	np_captures_free(all);
}

static void damage_in_one_file_leaves_the_other_tables(void **state)
{
	(void)state;
	char dir[TREE_PATH + 8];
	(void)snprintf(dir, sizeof dir, "%s/damaged", root);
	synth_set(dir, NP_SYNTH_TEXT, 1, 1, "");
	struct np_captures *all = NULL;
	struct np_profile *profile = NULL;
	assert_int_equal(np_discover(dir, &all, NULL), NP_OK);
	const struct np_capture *capture = all->captures.v[0];
	assert_int_equal(truncate(np_capture_file(capture, NP_ROLE_KERNELS)->path, 0), 0);
	assert_int_equal(np_capture_load(capture, NP_KERNELS | NP_STEP_TRACE, 1, &profile, NULL),
	                 NP_OK);
	assert_int_equal(profile->kernels.n, 0);
	assert_int_equal(profile->step_trace.n, 2);
	assert_int_equal(profile->diags.n, 1);
	assert_string_equal(profile->diags.v[0].code, "FILE_DAMAGED");
	np_profile_free(profile);
	np_captures_free(all);
}

static int setup(void **state)
{
	(void)state;
	char dir[TREE_PATH + 8];
	tree_new(root);
	(void)snprintf(dir, sizeof dir, "%s/text", root);
	synth_set(dir, NP_SYNTH_TEXT, 2, 1, "");
	assert_int_equal(np_discover(dir, &text_set, NULL), NP_OK);
	(void)snprintf(dir, sizeof dir, "%s/db", root);
	synth_set(dir, NP_SYNTH_DB, 2, 1, "");
	assert_int_equal(np_discover(dir, &db_set, NULL), NP_OK);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	np_profile_free(text);
	np_profile_free(db);
	np_captures_free(text_set);
	np_captures_free(db_set);
	tree_remove(root);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kernels_are_the_same),
		cmocka_unit_test(metrics_are_the_same),
		cmocka_unit_test(steps_are_the_same),
		cmocka_unit_test(the_exporters_step_rows_are_the_same),
		cmocka_unit_test(collectives_are_the_same),
		cmocka_unit_test(communication_times_are_the_same),
		cmocka_unit_test(memory_is_the_same),
		cmocka_unit_test(tasks_of_the_device_are_the_same),
		cmocka_unit_test(host_operators_are_the_same),
		cmocka_unit_test(a_capture_with_both_is_read_once),
		cmocka_unit_test(damage_in_one_file_leaves_the_other_tables),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
