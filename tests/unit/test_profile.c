#include "unit.h"

#include <math.h>

#include "profile/interval.h"
#include "profile/profile.h"

static void add_kernel(struct np_profile *p, int64_t step, uint32_t device, np_ns start, np_ns dur)
{
	size_t row = np_profile_add(p, kernels);
	struct np_kernels *k = &p->kernels;
	k->step[row] = step < 0 ? NP_NO_U32 : np_profile_add_step(p, step);
	k->device[row] = device;
	k->stream[row] = k->task[row] = k->context[row] = k->model[row] = NP_NO_U32;
	k->name[row] = k->type[row] = k->core[row] = k->op_state[row] = k->hf32[row] = NP_ID_NONE;
	k->start_ns[row] = start;
	k->dur_ns[row] = dur;
	k->wait_ns[row] = NP_NO_I64;
	k->block_num[row] = k->mix_block_num[row] = k->conn[row] = NP_NO_U32;
}

static void kernels_are_ordered_with_everything_that_hangs_on_them(void **state)
{
	(void)state;
	struct np_profile *p = np_profile_new();
	add_kernel(p, 7, 0, 300, 50);
	add_kernel(p, 6, 0, 100, 50);
	add_kernel(p, 7, 0, 200, 150);
	add_kernel(p, -1, 0, 10, 5);
	struct np_metric *metric = np_profile_metric_add(p, NP_STR("aic_mac_ratio"));
	for (int i = 0; i < 4; i++)
		metric->v[i] = i;
	assert_true(np_profile_finish_steps(p));
	assert_true(np_profile_finish_kernels(p));
	metric = np_profile_metric_add(p, NP_STR("aic_mac_ratio"));
	const double order[] = {3, 1, 2, 0};
	const np_ns waits[] = {0, 85, 50, 0};
	for (int i = 0; i < 4; i++) {
		assert_true(metric->v[i] == order[i]);
		assert_int_equal(p->kernels.wait_ns[i], waits[i]);
	}
	assert_int_equal(p->steps.n, 2);
	assert_int_equal(p->steps.id[0], 6);
	assert_int_equal(p->steps.id[1], 7);
	assert_int_equal(p->kernels.step[1], 0);
	assert_int_equal(p->kernels.step[2], 1);
	assert_int_equal(p->kernels.step[0], NP_NO_U32);
	assert_int_equal(p->steps.start_ns[1], 200);
	assert_int_equal(p->steps.end_ns[1], 350);
	assert_int_equal(p->steps.kernels[1], 2);
	np_profile_free(p);
}

static void add_host_op(struct np_profile *p, np_ns start, np_ns dur)
{
	size_t row = np_profile_add(p, host_ops);
	struct np_host_ops *t = &p->host_ops;
	t->layer[row] = 0;
	t->name[row] = (uint32_t)row;
	t->item[row] = t->shapes[row] = t->dtypes[row] = t->stack[row] = NP_ID_NONE;
	t->pid[row] = t->tid[row] = NP_NO_U32;
	t->conn[row] = t->seq[row] = NP_NO_I64;
	t->start_ns[row] = start;
	t->dur_ns[row] = dur;
}

/* as if by start, then longer first, then as before */
static void assert_host_order(const struct np_host_ops *t)
{
	for (size_t i = 1; i < t->n; i++) {
		assert_true(t->start_ns[i - 1] <= t->start_ns[i]);
		if (t->start_ns[i - 1] < t->start_ns[i])
			continue;
		assert_true(t->dur_ns[i - 1] >= t->dur_ns[i]);
		if (t->dur_ns[i - 1] == t->dur_ns[i])
			assert_true(t->name[i - 1] < t->name[i]);
	}
}

static void host_ops_are_ordered_by_start_then_longer_first_then_as_they_came(void **state)
{
	(void)state;
	static const struct {
		size_t n;
		uint64_t starts, durations; /* how many different ones */
	} cases[] = {{0, 1, 1},   {1, 1, 1},     {2, 1, 2},         {64, 3, 2},
	             {65, 1, 65}, {3000, 40, 5}, {3000, 2, 100000}, {5000, 1u << 31, 3},
	             {200, 1, 1}, {5000, 0, 9},  {5000, 9, 0},      {5000, 0, 0}};
	uint64_t seed = 1;
	for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
		struct np_profile *p = np_profile_new();
		uint64_t sum = 0;
		for (size_t i = 0; i < cases[c].n; i++) {
			uint64_t value[2] = {cases[c].starts, cases[c].durations};
			for (int k = 0; k < 2; k++) { /* 0: of all that there are */
				seed = seed * 6364136223846793005u + 1442695040888963407u;
				uint64_t high = seed >> 32 | seed << 32;
				value[k] = value[k] ? (high >> 1) % value[k] : high;
			}
			add_host_op(p, (np_ns)value[0], (np_ns)value[1]);
			sum += i;
		}
		assert_true(np_profile_sort_host_ops(p));
		assert_int_equal(p->host_ops.n, cases[c].n);
		assert_host_order(&p->host_ops);
		for (size_t i = 0; i < p->host_ops.n; i++)
			sum -= p->host_ops.name[i];
		assert_int_equal(sum, 0);
		np_profile_free(p);
	}
}

static void host_ops_at_the_ends_of_time_are_ordered(void **state)
{
	(void)state;
	struct np_profile *p = np_profile_new();
	for (int i = 0; i < 100; i++) {
		add_host_op(p, INT64_MAX, i % 2 ? INT64_MIN : INT64_MAX);
		add_host_op(p, INT64_MIN, i % 2 ? 0 : INT64_MIN);
	}
	assert_true(np_profile_sort_host_ops(p));
	assert_host_order(&p->host_ops);
	assert_true(p->host_ops.start_ns[0] == INT64_MIN && p->host_ops.dur_ns[0] == 0);
	assert_true(p->host_ops.start_ns[199] == INT64_MAX && p->host_ops.dur_ns[199] == INT64_MIN);
	np_profile_free(p);
}

static void steps_are_ordered_by_id_and_rows_follow(void **state)
{
	(void)state;
	struct np_profile *p = np_profile_new();
	add_kernel(p, 5, 0, 1, 1);
	add_kernel(p, 9, 0, 2, 1);
	add_kernel(p, 7, 0, 3, 1);
	assert_true(np_profile_finish_steps(p));
	assert_int_equal(p->kernels.step[0], 0);
	assert_int_equal(p->kernels.step[1], 2);
	assert_int_equal(p->kernels.step[2], 1);
	assert_int_equal(np_profile_find_step(p, 9), 2);
	assert_int_equal(np_profile_find_step(p, 8), NP_NO_U32);
	np_profile_free(p);
}

static void appended_kernels_keep_their_names_steps_and_metrics(void **state)
{
	(void)state;
	struct np_profile *a = np_profile_new(), *b = np_profile_new();
	add_kernel(a, 1, 0, 10, 1);
	a->kernels.name[0] = np_intern_add(&a->strings, NP_STR("first"));
	np_profile_metric_add(a, NP_STR("x"))->v[0] = 1.5;
	add_kernel(b, 2, 0, 20, 1);
	b->kernels.name[0] = np_intern_add(&b->strings, NP_STR("second"));
	np_profile_metric_add(b, NP_STR("y"))->v[0] = 2.5;
	assert_true(np_profile_append_kernels(a, b));
	np_profile_free(b);
	assert_int_equal(a->kernels.n, 2);
	assert_str(np_intern_get(&a->strings, a->kernels.name[1]), "second");
	assert_int_equal(a->steps.id[a->kernels.step[1]], 2);
	const struct np_metric *x = np_profile_metric(a, "x"), *y = np_profile_metric(a, "y");
	assert_true(x->v[0] == 1.5 && isnan(x->v[1]) && isnan(y->v[0]) && y->v[1] == 2.5);
	np_profile_free(a);
}

static void every_table_has_names_and_a_row_to_describe_it(void **state)
{
	(void)state;
#define CHECK(tag, COLUMNS, member)                       \
	assert_true(tag##_desc.n_columns > 1);            \
	assert_string_equal(tag##_desc.name, #member);    \
	for (size_t c = 0; c < tag##_desc.n_columns; c++) \
		assert_true(strlen(tag##_desc.columns[c].help) > 2);
	NP_TABLES(CHECK)
#undef CHECK
}

static void out_of_memory_while_rows_grow_leaves_a_table_that_can_be_freed(void **state)
{
	(void)state;
	for (uint64_t n = 1; n < 30; n++) {
		struct np_profile *p = np_profile_new();
		np_mem_fail_after(n);
		size_t row = np_profile_add(p, kernels);
		np_mem_fail_after(0);
		if (n < 17)
			assert_int_equal(row, SIZE_MAX);
		np_profile_free(p);
	}
}

static uint64_t as_bits(const struct np_intervals *set)
{
	uint64_t bits = 0;
	for (size_t i = 0; i < set->n; i++) {
		assert_true(set->v[i].start < set->v[i].end);
		if (i)
			assert_true(set->v[i - 1].end < set->v[i].start);
		for (np_ns t = set->v[i].start; t < set->v[i].end; t++)
			bits |= UINT64_C(1) << t;
	}
	return bits;
}

static void random_set(struct np_intervals *set, uint64_t *bits)
{
	set->n = 0;
	*bits = 0;
	for (long k = random() % 6; k > 0; k--) {
		np_ns start = random() % 60, end = start + random() % 5;
		assert_true(np_intervals_add(set, start, end));
		for (np_ns t = start; t < end; t++)
			*bits |= UINT64_C(1) << t;
	}
	np_intervals_merge(set);
}

static void interval_algebra_agrees_with_bit_sets(void **state)
{
	(void)state;
	struct np_intervals a = {0}, b = {0}, out = {0};
	srandom(3);
	for (int i = 0; i < 20000; i++) {
		uint64_t x, y;
		random_set(&a, &x);
		random_set(&b, &y);
		assert_true(as_bits(&a) == x && as_bits(&b) == y);
		assert_true(np_intervals_subtract(&a, &b, &out));
		assert_true(as_bits(&out) == (x & ~y));
		assert_true(np_intervals_intersect(&a, &b, &out));
		assert_true(as_bits(&out) == (x & y));
		assert_true(np_intervals_union(&a, &b, &out));
		assert_true(as_bits(&out) == (x | y));
		assert_int_equal(np_intervals_length(&out), __builtin_popcountll(x | y));
	}
	np_intervals_release(&a);
	np_intervals_release(&b);
	np_intervals_release(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kernels_are_ordered_with_everything_that_hangs_on_them),
		cmocka_unit_test(host_ops_are_ordered_by_start_then_longer_first_then_as_they_came),
		cmocka_unit_test(host_ops_at_the_ends_of_time_are_ordered),
		cmocka_unit_test(steps_are_ordered_by_id_and_rows_follow),
		cmocka_unit_test(appended_kernels_keep_their_names_steps_and_metrics),
		cmocka_unit_test(every_table_has_names_and_a_row_to_describe_it),
		cmocka_unit_test(out_of_memory_while_rows_grow_leaves_a_table_that_can_be_freed),
		cmocka_unit_test(interval_algebra_agrees_with_bit_sets),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
