#include "unit.h"

#include <math.h>

#include "analysis/analysis.h"

struct fixture {
	struct np_analyze_options options;
	struct np_analysis self;
};

/* [0, 1000) ns: computing 0-250 and 600-700, communication 200-500. */
static struct np_analysis *set_up(struct fixture *fixture, unsigned buckets)
{
	const struct np_span span = {.id = 1, .start = 0, .end = 1000};
	*fixture = (struct fixture){.options = {.buckets = buckets}};
	struct np_analysis *self = &fixture->self;
	self->report = np_report_new("report");
	self->options = &fixture->options;
	assert_true(np_vec_push(&self->spans, span));
	assert_true(np_intervals_add(&self->compute, 0, 250));
	assert_true(np_intervals_add(&self->compute, 600, 700));
	assert_true(np_intervals_add(&self->comm, 200, 500));
	return self;
}

static void tear_down(struct np_analysis *self)
{
	np_report_free(self->report);
	np_vec_release(&self->spans);
	np_intervals_release(&self->compute);
	np_intervals_release(&self->comm);
}

static void buckets_tell_the_shares_of_their_stretch(void **state)
{
	(void)state;
	static const double expected[4][3] = {{1, 0, 0}, {0, 1, 0}, {0.4, 0, 0.6}, {0, 0, 1}};
	struct fixture fixture;
	struct np_analysis *self = set_up(&fixture, 4);
	np_analyze_thumbnail(self);
	const struct np_table *table = self->report->tables.v[0];
	assert_string_equal(table->id, "thumbnail");
	assert_int_equal(np_table_rows(table), 4);
	for (size_t r = 0; r < 4; r++) {
		assert_int_equal(np_table_cell(table, r, 0)->i, 250 * r);
		for (size_t c = 0; c < 3; c++)
			assert_true(np_table_cell(table, r, c + 1)->r == expected[r][c]);
	}
	tear_down(self);
}

static void any_number_of_buckets_adds_up_to_the_whole(void **state)
{
	(void)state;
	for (unsigned n = 1; n < 40; n++) {
		struct fixture fixture;
		struct np_analysis *self = set_up(&fixture, n);
		np_analyze_thumbnail(self);
		const struct np_table *table = self->report->tables.v[0];
		double sums[3] = {0};
		for (size_t r = 0; r < n; r++) {
			bool last = r + 1 == n;
			np_ns next = last ? 1000 : np_table_cell(table, r + 1, 0)->i;
			double length = (double)(next - np_table_cell(table, r, 0)->i);
			for (size_t c = 0; c < 3; c++)
				sums[c] += np_table_cell(table, r, c + 1)->r * length;
		}
		assert_true(fabs(sums[0] - 350) < 1e-6);
		assert_true(fabs(sums[1] - 250) < 1e-6);
		assert_true(fabs(sums[2] - 400) < 1e-6);
		tear_down(self);
	}
}

static void a_short_capture_has_no_empty_buckets(void **state)
{
	(void)state;
	struct fixture fixture;
	struct np_analysis *self = set_up(&fixture, 5000);
	np_analyze_thumbnail(self);
	assert_int_equal(np_table_rows(self->report->tables.v[0]), 1000);
	tear_down(self);
}

static void nothing_is_made_when_nothing_was_asked_for_or_is_there(void **state)
{
	(void)state;
	struct fixture fixture;
	struct np_analysis *self = set_up(&fixture, 0);
	np_analyze_thumbnail(self);
	assert_int_equal(self->report->tables.n, 0);
	self->spans.n = 0;
	fixture.options.buckets = 10;
	np_analyze_thumbnail(self);
	assert_int_equal(self->report->tables.n, 0);
	tear_down(self);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(buckets_tell_the_shares_of_their_stretch),
		cmocka_unit_test(any_number_of_buckets_adds_up_to_the_whole),
		cmocka_unit_test(a_short_capture_has_no_empty_buckets),
		cmocka_unit_test(nothing_is_made_when_nothing_was_asked_for_or_is_there),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
