/* The diagnosis across ranks on timelines made by hand: matching, clocks, arrivals, blame,
 * cost, path. What synth plants is tested by tests/e2e/truth.py. */
#include "unit.h"

#include <math.h>
#include <string.h>

#include "cluster/diag_cost.h"
#include "cluster/diag_path.h"

enum { MAX_RANKS = 4 };

/* A cluster of a few ranks without files; ops are added in order of start. */
struct world {
	struct np_captures all;
	struct np_capture captures[MAX_RANKS];
	struct np_cluster_options options;
	struct np_cluster cluster;
	struct np_report *report;
	np_ns computed[MAX_RANKS], exposed[MAX_RANKS];
};

static void open_world(struct world *w, size_t n)
{
	static const char *const hosts[] = {"a", "b", "c", "d"};
	memset(w, 0, sizeof *w);
	w->report = np_report_new("cluster");
	assert_non_null(w->report);
	w->cluster = (struct np_cluster){
		.all = &w->all, .options = &w->options, .report = w->report, .sole = true};
	np_arena_init(&w->cluster.arena);
	assert_true(np_intern_init(&w->cluster.strings));
	for (size_t r = 0; r < n; r++) {
		w->captures[r].path = w->captures[r].name = "capture";
		w->captures[r].host = hosts[r];
		w->captures[r].host_uid = w->captures[r].distributed = "";
		struct np_digest *digest = np_digest_new();
		assert_non_null(digest);
		assert_non_null(np_digest_table(digest, &np_timeline_ops_desc));
		assert_non_null(np_digest_table(digest, &np_timeline_steps_desc));
		struct np_timeline_facts *facts = np_digest_table(digest, &np_timeline_facts_desc);
		assert_true(np_rows_add(facts, &np_timeline_facts_desc) == 0);
		facts->has_kernels[0] = 1;
		facts->rounded[0] = 0;
		facts->no_group[0] = 0;
		assert_true(np_vec_push(&w->cluster.ranks,
		                        (struct np_cluster_rank){.capture = &w->captures[r],
		                                                 .rank = (int64_t)r,
		                                                 .digest = digest}));
	}
}

static void close_world(struct world *w)
{
	np_cluster_close(&w->cluster);
	np_report_free(w->report);
}

static np_id id_of(struct world *w, const char *text)
{
	return np_intern_add(&w->cluster.strings, np_str_of(text));
}

/* `compute` is what the rank computed since its last op; ops hide nothing. */
static void add_op(struct world *w, size_t rank, const char *group, const char *type, np_ns start,
                   np_ns dur, np_ns compute)
{
	struct np_timeline_ops *ops =
		np_digest_table(w->cluster.ranks.v[rank].digest, &np_timeline_ops_desc);
	size_t r = np_rows_add(ops, &np_timeline_ops_desc);
	assert_true(r != SIZE_MAX);
	ops->name[r] = ops->type[r] = id_of(w, type);
	ops->group[r] = id_of(w, group);
	ops->dtype[r] = NP_ID_NONE;
	ops->count[r] = ops->step[r] = 1;
	ops->start_ns[r] = start;
	ops->dur_ns[r] = dur;
	w->computed[rank] += compute;
	ops->compute_start_ns[r] = ops->compute_end_ns[r] = w->computed[rank];
	ops->exposed_start_ns[r] = w->exposed[rank];
	w->exposed[rank] += dur;
	ops->exposed_end_ns[r] = w->exposed[rank];
	ops->wait_us[r] = ops->transit_us[r] = NAN;
}

static void add_step(struct world *w, size_t rank, np_ns start, np_ns end)
{
	struct np_timeline_steps *steps =
		np_digest_table(w->cluster.ranks.v[rank].digest, &np_timeline_steps_desc);
	size_t r = np_rows_add(steps, &np_timeline_steps_desc);
	assert_true(r != SIZE_MAX);
	steps->step[r] = 1;
	steps->start_ns[r] = start;
	steps->end_ns[r] = end;
	steps->compute_start_ns[r] = steps->exposed_start_ns[r] = 0;
	steps->compute_end_ns[r] = w->computed[rank];
	steps->exposed_end_ns[r] = w->exposed[rank];
	steps->computing_us[r] = steps->free_us[r] = NAN;
}

static void until_blame(struct np_diagnosis *d, struct world *w)
{
	assert_true(np_diagnosis_open(d, &w->cluster));
	assert_true(np_diag_match(d));
	assert_true(np_diag_clock(d));
	assert_true(np_diag_arrive(d));
	assert_true(np_diag_blame(d));
}

/* ── matching ── */

static void matches_by_sequence(void **state)
{
	(void)state;
	struct world w;
	struct np_diagnosis d;
	open_world(&w, 2);
	for (int k = 0; k < 5; k++)
		add_op(&w, 0, "7", "allreduce", k * 1000, 100, 0);
	for (int k = 0; k < 5; k++)
		add_op(&w, 1, "7", "allreduce", k * 1000 + 50, 50, 0);
	until_blame(&d, &w);
	assert_int_equal(d.groups.n, 1);
	assert_int_equal(d.instances.n, 5);
	assert_int_equal(d.n_unmatched, 0);
	for (size_t i = 0; i < 5; i++) {
		assert_int_equal(d.instances.v[i].n, 2);
		assert_true(d.instances.v[i].complete);
		assert_int_equal(d.instances.v[i].seq, i);
	}
	np_diagnosis_close(&d);
	close_world(&w);
}

/* One rank lacks an op in the middle: what is around it is still matched, one is left. */
static void a_missing_op_is_skipped(void **state)
{
	(void)state;
	static const char *const types[] = {"allreduce", "allgather", "broadcast", "reducescatter"};
	struct world w;
	struct np_diagnosis d;
	open_world(&w, 2);
	for (int k = 0; k < 4; k++)
		add_op(&w, 0, "7", types[k], k * 1000, 100, 0);
	for (int k = 0; k < 4; k++)
		if (k != 1)
			add_op(&w, 1, "7", types[k], k * 1000, 100, 0);
	until_blame(&d, &w);
	assert_int_equal(d.instances.n, 3);
	assert_int_equal(d.n_unmatched, 1);
	assert_int_equal(np_diag_instance_of(&d, 0, 1), NP_DIAG_NONE);
	for (uint32_t row = 0; row < 3; row++) {
		uint32_t k = np_diag_instance_of(&d, 1, row);
		assert_true(k != NP_DIAG_NONE);
		const struct np_diag_member *m = np_diag_member_of(&d, &d.instances.v[k], 0);
		assert_true(d.ops[0]->type[m->row] == d.ops[1]->type[row]);
	}
	np_diagnosis_close(&d);
	close_world(&w);
}

static void pairs_sends_with_receives(void **state)
{
	(void)state;
	struct world w;
	struct np_diagnosis d;
	open_world(&w, 2);
	add_op(&w, 0, "9", "send", 100, 10, 0);
	add_op(&w, 0, "9", "send", 200, 10, 0);
	add_op(&w, 0, "9", "receive", 300, 50, 0);
	add_op(&w, 1, "9", "receive", 90, 20, 0);
	add_op(&w, 1, "9", "send", 340, 10, 0);
	add_op(&w, 1, "9", "receive", 190, 20, 0);
	until_blame(&d, &w);
	assert_int_equal(d.instances.n, 3);
	for (size_t i = 0; i < 3; i++)
		assert_true(d.instances.v[i].p2p);
	assert_int_equal(np_diag_instance_of(&d, 0, 1), np_diag_instance_of(&d, 1, 2));
	assert_int_equal(np_diag_instance_of(&d, 0, 2), np_diag_instance_of(&d, 1, 1));
	/* the receiver of the third waited for its sender: 340 - 300 */
	const struct np_diag_instance *k = &d.instances.v[np_diag_instance_of(&d, 0, 2)];
	assert_int_equal(k->last, 1);
	assert_int_equal(np_diag_wait(&d, k, np_diag_member_of(&d, k, 0)), 40);
	np_diagnosis_close(&d);
	close_world(&w);
}

/* ── clocks ── */

static void measures_offsets(void **state)
{
	(void)state;
	static const np_ns offsets[] = {0, 5000000, -3000000};
	struct world w;
	struct np_diagnosis d;
	open_world(&w, 3);
	for (int k = 0; k < 12; k++)
		for (size_t r = 0; r < 3; r++)
			add_op(&w, r, "7", "allreduce",
			       k * 1000000 + 1000000000 + offsets[r] + (np_ns)r * 10,
			       1000 - (np_ns)r * 10, 0);
	until_blame(&d, &w);
	assert_int_equal(d.domains.n, 3);
	for (size_t r = 0; r < 3; r++) {
		assert_true(d.domains.v[r].known);
		assert_int_equal(d.domains.v[r].offset, offsets[r]);
		assert_int_equal(d.domains.v[r].spread, 0);
		assert_int_equal(d.domains.v[r].n, 12);
	}
	assert_false(d.by_duration);
	for (size_t i = 0; i < d.instances.n; i++) {
		assert_int_equal(d.instances.v[i].last, 2);
		assert_int_equal(d.instances.v[i].lateness, 10);
		assert_int_equal(d.instances.v[i].waits, 30);
		assert_int_equal(d.instances.v[i].transfer, 980);
	}
	np_diagnosis_close(&d);
	close_world(&w);
}

/* A clock that runs 100 ppm fast over two seconds. */
static void measures_drift(void **state)
{
	(void)state;
	struct world w;
	struct np_diagnosis d;
	open_world(&w, 2);
	for (int k = 0; k < 40; k++) {
		np_ns t = 1000000000 + (np_ns)k * 50000000;
		add_op(&w, 0, "7", "allreduce", t, 1000, 0);
		add_op(&w, 1, "7", "allreduce", t + (np_ns)k * 5000, 1000, 0);
	}
	until_blame(&d, &w);
	assert_true(fabs(d.domains.v[1].drift_ppm - 100) < 1);
	assert_true(d.domains.v[1].spread < 500);
	assert_false(d.by_duration);
	np_diagnosis_close(&d);
	close_world(&w);
}

/* Ends that no offset explains: durations tell who was last. */
static void without_clocks_durations_tell(void **state)
{
	(void)state;
	struct world w;
	struct np_diagnosis d;
	open_world(&w, 2);
	for (int k = 0; k < 10; k++) {
		add_op(&w, 0, "7", "allreduce", k * 1000000, 3000, 0);
		add_op(&w, 1, "7", "allreduce", k * 1000000 + (k % 3) * 200000, 1000, 0);
	}
	until_blame(&d, &w);
	assert_true(d.by_duration);
	for (size_t i = 0; i < d.instances.n; i++) {
		const struct np_diag_instance *k = &d.instances.v[i];
		assert_int_equal(k->last, 1);
		assert_int_equal(k->lateness, 2000);
		assert_int_equal(k->transfer, 1000);
		assert_int_equal(np_diag_wait(&d, k, np_diag_member_of(&d, k, 0)), 2000);
	}
	np_diagnosis_close(&d);
	close_world(&w);
}

/* ── blame ── */

/*
 * Ranks 0 and 1 are a tp group, 2 and 3 the other; then (0, 2) and (1, 3). Rank 1 computes
 * 400 us more, so 0 is late in (0, 2) because of 1: the blame moves on.
 */
static void carried_world(struct world *w, int rounds, bool idle)
{
	enum { US = 1000 };
	np_ns t = 100 * US;
	open_world(w, 4);
	for (int r = 0; r < 4; r++)
		w->captures[r].host = "one";
	for (int r = 0; r < 4; r++)
		add_op(w, (size_t)r, "1", "allreduce", 0, 100 * US, 0);
	for (int k = 0; k < rounds; k++) {
		np_ns more = idle ? 0 : 400 * US;
		add_op(w, 1, "20", "allreduce", t + 1400 * US, 100 * US, 1000 * US + more);
		add_op(w, 0, "20", "allreduce", t + 1000 * US, 500 * US, 1000 * US);
		add_op(w, 2, "21", "allreduce", t + 1000 * US, 100 * US, 1000 * US);
		add_op(w, 3, "21", "allreduce", t + 1000 * US, 100 * US, 1000 * US);
		add_op(w, 0, "30", "allreduce", t + 1600 * US, 100 * US, 100 * US);
		add_op(w, 2, "30", "allreduce", t + 1200 * US, 500 * US, 100 * US);
		add_op(w, 1, "31", "allreduce", t + 1600 * US, 100 * US, 100 * US);
		add_op(w, 3, "31", "allreduce", t + 1200 * US, 500 * US, 100 * US);
		for (size_t r = 0; r < 4; r++)
			add_op(w, r, "1", "allreduce", t + 1700 * US, 100 * US, 0);
		t += 1800 * US;
	}
	for (size_t r = 0; r < 4; r++)
		add_step(w, r, 0, t);
}

static const struct np_diag_instance *instance_of_group(const struct np_diagnosis *d,
                                                        const char *group, uint32_t seq)
{
	for (size_t i = 0; i < d->instances.n; i++)
		if (d->instances.v[i].seq == seq &&
		    np_str_is(np_cluster_text(d->cluster, d->groups.v[d->instances.v[i].group].key),
		              group))
			return &d->instances.v[i];
	fail_msg("no collective %u of %s", seq, group);
	return NULL;
}

static void blame_moves_on(void **state)
{
	(void)state;
	struct world w;
	struct np_diagnosis d;
	struct np_path path;
	struct np_diag_causes causes = {.list = {0}};
	carried_world(&w, 8, false);
	until_blame(&d, &w);
	const struct np_diag_instance *first = instance_of_group(&d, "20", 3);
	assert_int_equal(first->culprit, 1);
	assert_int_equal(first->cause, NP_CAUSE_COMPUTE);
	assert_int_equal(first->depth, 0);
	const struct np_diag_instance *second = instance_of_group(&d, "30", 3);
	assert_int_equal(second->last, 0);
	assert_int_equal(second->culprit, 1); /* not 0, which only waited */
	assert_int_equal(second->cause, NP_CAUSE_COMPUTE);
	assert_int_equal(second->depth, 1);
	assert_true(np_diag_path(&d, &path));
	assert_true(np_diag_cost(&d, &causes));
	assert_true(causes.list.n > 0);
	assert_int_equal(causes.list.v[0].rank, 1);
	assert_true(causes.list.v[0].accused);
	assert_int_equal(causes.list.v[0].cost, 8 * 400000); /* once, not once per group */
	for (size_t i = 1; i < causes.list.n; i++)
		assert_false(causes.list.v[i].accused);
	np_vec_release(&causes.list);
	np_path_release(&path);
	np_diagnosis_close(&d);
	close_world(&w);
}

static void idle_is_told_from_computing(void **state)
{
	(void)state;
	struct world w;
	struct np_diagnosis d;
	carried_world(&w, 4, true);
	until_blame(&d, &w);
	const struct np_diag_instance *k = instance_of_group(&d, "20", 2);
	assert_int_equal(k->culprit, 1);
	assert_int_equal(k->cause, NP_CAUSE_IDLE);
	np_diagnosis_close(&d);
	close_world(&w);
}

/* Every duration is wait + transfer + a rest that is not negative; the path is the step. */
static void parts_sum_to_the_whole(void **state)
{
	(void)state;
	struct world w;
	struct np_diagnosis d;
	struct np_path path;
	carried_world(&w, 5, false);
	until_blame(&d, &w);
	for (size_t i = 0; i < d.instances.n; i++) {
		const struct np_diag_instance *k = &d.instances.v[i];
		for (uint32_t m = 0; m < k->n; m++) {
			const struct np_diag_member *member = &d.members.v[k->first + m];
			np_ns wait = np_diag_wait(&d, k, member);
			assert_true(wait >= 0);
			assert_true(d.ops[member->rank]->dur_ns[member->row] >= wait + k->transfer);
		}
	}
	assert_true(np_diag_path(&d, &path));
	np_ns sum = 0, ranks = 0;
	for (int b = 0; b < NP_N_BOUNDS; b++)
		sum += path.by_bound[b];
	for (size_t r = 0; r < 4; r++)
		ranks += path.by_rank[r];
	assert_int_equal(sum, 100000 + 5 * 1800000);
	assert_int_equal(ranks, sum);
	assert_int_equal(d.total, sum);
	assert_int_equal(path.by_bound[NP_BOUND_CLOCK], 0);
	/* computing on the path is that of the slow rank, and of what follows it */
	assert_int_equal(path.by_bound[NP_BOUND_COMPUTE], 5 * 1500000);
	np_path_release(&path);
	np_diagnosis_close(&d);
	close_world(&w);
}

static void out_of_memory(void **state)
{
	(void)state;
	for (uint64_t n = 1; n < 400; n += n < 60 ? 1 : 17) {
		struct world w;
		struct np_diagnosis d;
		struct np_path path = {.total = 0};
		struct np_diag_causes causes = {.list = {0}};
		carried_world(&w, 3, false);
		np_mem_fail_after(n);
		bool ok = np_diagnosis_open(&d, &w.cluster);
		ok = ok && np_diag_match(&d) && np_diag_clock(&d) && np_diag_arrive(&d) &&
		     np_diag_blame(&d) && np_diag_path(&d, &path) && np_diag_cost(&d, &causes);
		np_mem_fail_after(0);
		assert_false(n == 1 && ok);
		np_vec_release(&causes.list);
		np_path_release(&path);
		np_diagnosis_close(&d);
		close_world(&w);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(matches_by_sequence),
		cmocka_unit_test(a_missing_op_is_skipped),
		cmocka_unit_test(pairs_sends_with_receives),
		cmocka_unit_test(measures_offsets),
		cmocka_unit_test(measures_drift),
		cmocka_unit_test(without_clocks_durations_tell),
		cmocka_unit_test(blame_moves_on),
		cmocka_unit_test(idle_is_told_from_computing),
		cmocka_unit_test(parts_sum_to_the_whole),
		cmocka_unit_test(out_of_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
