/* The parallel-strategy model: placement, names, groups, folds and advice, on the facts
 * that are known of MindStudio Insight, and how the strategy of a run is found. */
#include <math.h>

#include "unit.h"

#include "base/mem.h"
#include "cluster/cluster.h"
#include "cluster/parallel.h"

static struct np_strategy strategy(enum np_layout layout, uint32_t tp, uint32_t cp, uint32_t pp,
                                   uint32_t dp, uint32_t ep)
{
	struct np_strategy s = {.layout = layout, .size = {tp, cp, pp, dp}, .ep = ep, .moe_tp = 1};
	const char *why;
	assert_true(np_strategy_sound(&s, &why));
	return s;
}

static struct np_strategy all_two(enum np_layout layout)
{
	return strategy(layout, 2, 2, 2, 2, 2);
}

/* "name ranks… x,y; …" of a view. */
static void assert_view(const struct np_strategy *s, enum np_view view, const char *expected)
{
	struct np_buf text = {0};
	char name[NP_ELEMENT_NAME];
	uint32_t ranks[64];
	size_t n = np_view_ranks(s, view);
	assert_true(n <= 64);
	for (size_t i = 0; i < np_view_count(s, view); i++) {
		struct np_element e;
		np_view_name_of(s, view, i, name);
		np_view_element(s, view, i, &e);
		np_view_element_ranks(s, view, i, ranks);
		np_buf_printf(&text, "%s%s", i > 0 ? "; " : "", name);
		for (size_t r = 0; r < n; r++) {
			np_buf_printf(&text, "%c%u", r > 0 ? ',' : ' ', ranks[r]);
			assert_int_equal(np_view_of_rank(s, view, ranks[r]), i);
		}
		np_buf_printf(&text, " (%u,%u)", e.x, e.y);
	}
	assert_str(np_buf_str(&text), expected);
	np_buf_release(&text);
}

static void vector_1_every_rank(void **state)
{
	(void)state;
	struct np_strategy s = all_two(NP_LAYOUT_MEGATRON);
	assert_view(&s, NP_VIEW_TP,
	            "dp0-pp0-cp0-tp0 0 (0,0); dp0-pp0-cp0-tp1 1 (1,0); dp0-pp0-cp1-tp0 2 (2,0); "
	            "dp0-pp0-cp1-tp1 3 (3,0); dp1-pp0-cp0-tp0 4 (4,0); dp1-pp0-cp0-tp1 5 (5,0); "
	            "dp1-pp0-cp1-tp0 6 (6,0); dp1-pp0-cp1-tp1 7 (7,0); dp0-pp1-cp0-tp0 8 (0,1); "
	            "dp0-pp1-cp0-tp1 9 (1,1); dp0-pp1-cp1-tp0 10 (2,1); dp0-pp1-cp1-tp1 11 (3,1); "
	            "dp1-pp1-cp0-tp0 12 (4,1); dp1-pp1-cp0-tp1 13 (5,1); dp1-pp1-cp1-tp0 14 (6,1); "
	            "dp1-pp1-cp1-tp1 15 (7,1)");
	for (size_t rank = 0; rank < 16; rank++) {
		struct np_place place;
		np_strategy_place(&s, rank, &place);
		assert_int_equal(np_strategy_rank(&s, place.digit), rank);
	}
}

static void vector_2_tp_folded(void **state)
{
	(void)state;
	struct np_strategy s = all_two(NP_LAYOUT_MINDSPEED);
	assert_view(&s, NP_VIEW_CP,
	            "dp0-pp0-cp0 0,1 (0,0); dp0-pp0-cp1 2,3 (1,0); dp1-pp0-cp0 4,5 (2,0); "
	            "dp1-pp0-cp1 6,7 (3,0); dp0-pp1-cp0 8,9 (0,1); dp0-pp1-cp1 10,11 (1,1); "
	            "dp1-pp1-cp0 12,13 (2,1); dp1-pp1-cp1 14,15 (3,1)");
	s = all_two(NP_LAYOUT_MEGATRON_PP);
	assert_view(&s, NP_VIEW_CP,
	            "dp0-pp0-cp0 0,1 (0,0); dp0-pp0-cp1 2,3 (1,0); dp0-pp1-cp0 4,5 (0,1); "
	            "dp0-pp1-cp1 6,7 (1,1); dp1-pp0-cp0 8,9 (2,0); dp1-pp0-cp1 10,11 (3,0); "
	            "dp1-pp1-cp0 12,13 (2,1); dp1-pp1-cp1 14,15 (3,1)");
}

static void vector_3_tp_and_cp_folded(void **state)
{
	(void)state;
	struct np_strategy s = all_two(NP_LAYOUT_MEGATRON);
	assert_view(&s, NP_VIEW_PP,
	            "dp0-pp0 0,1,2,3 (0,0); dp1-pp0 4,5,6,7 (1,0); dp0-pp1 8,9,10,11 (0,1); "
	            "dp1-pp1 12,13,14,15 (1,1)");
	assert_view(&s, NP_VIEW_DP, "dp0 0,1,2,3,8,9,10,11 (0,0); dp1 4,5,6,7,12,13,14,15 (1,0)");
}

/* "0,1 2,3 …" */
static void assert_groups(const struct np_strategy *s, const char *token, const char *expected)
{
	struct np_rank_groups groups;
	struct np_err err = {0};
	struct np_buf text = {0};
	assert_int_equal(np_strategy_groups(s, token, &groups, &err), NP_OK);
	for (size_t i = 0; i < groups.n * groups.size; i++)
		np_buf_printf(&text, "%s%u",
		              i == 0            ? ""
		              : i % groups.size ? ","
		                                : " ",
		              groups.ranks[i]);
	assert_str(np_buf_str(&text), expected);
	np_buf_release(&text);
	np_rank_groups_release(&groups);
}

static size_t connections(const struct np_strategy *s, const char *const *tokens)
{
	size_t n = 0;
	for (; *tokens; tokens++) {
		struct np_rank_groups groups;
		struct np_err err = {0};
		assert_int_equal(np_strategy_groups(s, *tokens, &groups, &err), NP_OK);
		assert_int_equal(groups.n, 4);
		n += groups.size > 1 ? groups.n : 0;
		np_rank_groups_release(&groups);
	}
	return n;
}

static void vector_4_vllm(void **state)
{
	(void)state;
	static const char *const tokens[] = {"pp", "dp", "tp", "ep", NULL};
	struct np_strategy s = strategy(NP_LAYOUT_VLLM, 2, 1, 2, 2, 2);
	assert_view(&s, NP_VIEW_TP,
	            "dp0-pp0-tp0 0 (0,0); dp0-pp0-tp1 1 (1,0); dp0-pp1-tp0 2 (0,1); "
	            "dp0-pp1-tp1 3 (1,1); dp1-pp0-tp0 4 (2,0); dp1-pp0-tp1 5 (3,0); "
	            "dp1-pp1-tp0 6 (2,1); dp1-pp1-tp1 7 (3,1)");
	assert_groups(&s, "ep", "0,1 2,3 4,5 6,7");
	assert_groups(&s, "pp", "0,2 1,3 4,6 5,7");
	assert_groups(&s, "dp", "0,4 1,5 2,6 3,7");
	assert_int_equal(connections(&s, tokens), 16);
	s = strategy(NP_LAYOUT_VLLM, 2, 1, 2, 2, 4); /* innerDP 2, externalDP 1 */
	assert_groups(&s, "ep", "0,1,4,5 2,3,6,7");
}

static void vector_5_mindie(void **state)
{
	(void)state;
	static const char *const tokens[] = {"pp", "dp", "tp", "ep", "moe-tp", NULL};
	struct np_strategy s = {
		.layout = NP_LAYOUT_MINDIE, .size = {2, 1, 2, 2}, .ep = 2, .moe_tp = 2};
	const char *why;
	assert_true(np_strategy_sound(&s, &why));
	assert_view(&s, NP_VIEW_TP,
	            "dp0-pp0-tp0 0 (0,0); dp0-pp0-tp1 1 (1,0); dp1-pp0-tp0 2 (2,0); "
	            "dp1-pp0-tp1 3 (3,0); dp0-pp1-tp0 4 (0,1); dp0-pp1-tp1 5 (1,1); "
	            "dp1-pp1-tp0 6 (2,1); dp1-pp1-tp1 7 (3,1)");
	assert_int_equal(connections(&s, tokens), 20);
	assert_groups(&s, "moe-tp", "0,1 2,3 4,5 6,7");
	assert_groups(&s, "ep", "0,2 1,3 4,6 5,7");
}

static void groups_by_token(void **state)
{
	(void)state;
	static const uint32_t sizes[] = {2, 2, 3, 4};
	struct np_rank_groups groups;
	assert_true(np_orthogonal_groups(sizes, 4, 1 | 4, &groups)); /* tp-dp */
	assert_int_equal(groups.n, 8);
	assert_int_equal(groups.size, 6);
	static const uint32_t first[] = {0, 1, 4, 5, 8, 9}, second[] = {2, 3, 6, 7, 10, 11},
			      last[] = {38, 39, 42, 43, 46, 47};
	assert_memory_equal(groups.ranks, first, sizeof first);
	assert_memory_equal(groups.ranks + 6, second, sizeof second);
	assert_memory_equal(groups.ranks + 42, last, sizeof last);
	np_rank_groups_release(&groups);
	struct np_strategy s = strategy(NP_LAYOUT_MEGATRON, 2, 1, 1, 4, 2);
	assert_groups(&s, "ep", "0,2 1,3 4,6 5,7");
	assert_groups(&s, "tp-ep", "0,1,2,3 4,5,6,7");
	assert_groups(&s, "dp-modulo-ep", "0,4 1,5 2,6 3,7");
	assert_groups(&s, "dp", "0,2,4,6 1,3,5,7");
	assert_groups(&s, "tp-dp-cp", "0,1,2,3,4,5,6,7");
	s = strategy(NP_LAYOUT_MEGATRON, 2, 2, 2, 1, 1);
	assert_groups(&s, "tp-pp", "0,1,4,5 2,3,6,7");
	assert_groups(&s, "dp-cp", "0,2 1,3 4,6 5,7");
	struct np_err err = {0};
	assert_int_equal(np_strategy_groups(&s, "xp", &groups, &err), NP_E_USAGE);
	assert_int_equal(np_strategy_groups(&s, "moe-tp", &groups, &err), NP_E_USAGE);
	assert_int_equal(np_strategy_groups(&s, "", &groups, &err), NP_E_USAGE);
}

static size_t emitted(const struct np_strategy *s, enum np_view view, const double *by_rank,
                      double max)
{
	struct np_fold folds[16];
	size_t n = 0;
	np_fold_times(s, view, by_rank, folds);
	for (size_t i = 0; i < np_view_count(s, view); i++) {
		if (isnan(folds[i].max))
			continue;
		assert_true(folds[i].max == max);
		n++;
	}
	return n;
}

static void vector_6_missing_ranks(void **state)
{
	(void)state;
	struct np_strategy s = all_two(NP_LAYOUT_MEGATRON);
	double computing[16];
	for (int i = 0; i < 16; i++)
		computing[i] = i == 4 || i == 5 ? NAN : 90;
	assert_int_equal(emitted(&s, NP_VIEW_TP, computing, 90), 14);
	assert_int_equal(emitted(&s, NP_VIEW_CP, computing, 90), 7);
	assert_int_equal(emitted(&s, NP_VIEW_PP, computing, 90), 4);
	assert_int_equal(emitted(&s, NP_VIEW_DP, computing, 180), 2);
	computing[7] = 40;
	struct np_fold folds[8];
	np_fold_times(&s, NP_VIEW_CP, computing, folds);
	assert_true(folds[3].max == 90 && folds[3].min == 40);
}

static void vector_7_domain_means(void **state)
{
	(void)state;
	struct np_strategy s = strategy(NP_LAYOUT_MEGATRON, 2, 2, 1, 1, 1);
	double tp[] = {10, 12, 13, 14}, out[4];
	np_fold_mean(&s, NP_VIEW_TP, tp, out);
	assert_true(out[0] == 10 && out[3] == 14);
	np_fold_mean(&s, NP_VIEW_CP, tp, out);
	assert_true(out[0] == 11 && out[1] == 13.5);
	np_fold_mean(&s, NP_VIEW_PP, tp, out);
	assert_true(out[0] == 12.25);
	np_fold_mean(&s, NP_VIEW_DP, tp, out);
	assert_true(isnan(out[0]));
}

static void vector_8_one_slow(void **state)
{
	(void)state;
	static const enum np_dim dims[] = {NP_DIM_DP, NP_DIM_CP, NP_DIM_TP};
	static const char *const names[] = {"dp7", "cp7", "tp7"};
	double times[8];
	for (int i = 0; i < 8; i++)
		times[i] = i < 7 ? 123.45 : 0.01;
	for (int d = 0; d < 3; d++) {
		struct np_strategy s = {.size = {1, 1, 1, 1}, .ep = 1, .moe_tp = 1};
		const double *by_rank[NP_N_DIMS] = {NULL};
		struct np_slow_list slow;
		char name[NP_ELEMENT_NAME];
		s.size[dims[d]] = 8;
		by_rank[dims[d]] = times;
		assert_true(np_slow_elements(&s, by_rank, &slow));
		assert_int_equal(slow.n, 1);
		assert_int_equal(slow.v[0].element, 7);
		assert_true(fabs(slow.v[0].sync[dims[d]] - 123.44) < 1e-9);
		np_view_name_of(&s, slow.view, slow.v[0].element, name);
		assert_string_equal(name, names[d]);
	}
}

static void vector_8_two_domains(void **state)
{
	(void)state;
	struct np_strategy s = strategy(NP_LAYOUT_MEGATRON, 8, 2, 1, 1, 1);
	double tp[16], cp[16];
	char name[NP_ELEMENT_NAME];
	for (int i = 0; i < 16; i++) {
		tp[i] = i == 7 ? 0.01 : 123.45;
		cp[i] = i < 8 ? 0.01 : 100.01;
	}
	const double *by_rank[NP_N_DIMS] = {[NP_DIM_TP] = tp, [NP_DIM_CP] = cp};
	struct np_slow_list slow;
	assert_true(np_slow_elements(&s, by_rank, &slow));
	assert_int_equal(slow.n, 3);
	assert_int_equal(slow.v[0].element, 7);
	np_view_name_of(&s, slow.view, 7, name);
	assert_string_equal(name, "cp0-tp7");
	assert_true(fabs(slow.v[0].sync[NP_DIM_TP] - 123.44) < 1e-9);
	assert_true(fabs(slow.v[0].sync[NP_DIM_CP] - 100) < 1e-9);
	assert_true(fabs(slow.v[0].total - 223.44) < 1e-9);
}

static void five_percent_is_not_slow(void **state)
{
	(void)state;
	struct np_strategy s = strategy(NP_LAYOUT_MEGATRON, 1, 1, 1, 2, 1);
	double at[] = {100, 95}, below[] = {100, 94.9}, none[] = {NAN, NAN}, one[] = {NAN, 1};
	const double *by_rank[NP_N_DIMS] = {[NP_DIM_DP] = at};
	struct np_slow_list slow;
	assert_true(np_slow_elements(&s, by_rank, &slow));
	assert_int_equal(slow.n, 0);
	by_rank[NP_DIM_DP] = below;
	assert_true(np_slow_elements(&s, by_rank, &slow));
	assert_int_equal(slow.n, 1);
	by_rank[NP_DIM_DP] = none;
	assert_true(np_slow_elements(&s, by_rank, &slow));
	assert_int_equal(slow.n, 0);
	by_rank[NP_DIM_DP] = one;
	assert_true(np_slow_elements(&s, by_rank, &slow));
	assert_int_equal(slow.n, 0);
}

static void unsound_strategies(void **state)
{
	(void)state;
	const char *why;
	struct np_strategy s = {.size = {0, 1, 1, 1}, .ep = 1, .moe_tp = 1};
	assert_false(np_strategy_sound(&s, &why));
	s = (struct np_strategy){.size = {1 << 20, 1, 2, 1}, .ep = 1, .moe_tp = 1};
	assert_false(np_strategy_sound(&s, &why));
	s = (struct np_strategy){.size = {1, 1, 1, 4}, .ep = 3, .moe_tp = 1};
	assert_false(np_strategy_sound(&s, &why));
	s.layout = NP_LAYOUT_VLLM; /* EP % TP */
	s.size[NP_DIM_TP] = 4;
	s.ep = 2;
	assert_false(np_strategy_sound(&s, &why));
	assert_non_null(why);
}

/* ── the strategy of a run ── */

enum { MAX_RANKS = 16, MAX_GROUPS = 6 };

struct run {
	struct np_cluster cluster;
	struct np_capture captures[MAX_RANKS];
	struct np_group groups[MAX_RANKS][MAX_GROUPS];
	int64_t members[MAX_RANKS][MAX_GROUPS][MAX_RANKS];
	struct np_parallel_plan plan;
};

static void run_open(struct run *self, size_t n)
{
	memset(self, 0, sizeof *self);
	np_arena_init(&self->cluster.arena);
	self->cluster.report = np_report_new("cluster");
	for (size_t r = 0; r < n; r++) {
		self->captures[r].parallel = (struct np_parallel){NP_NO_I64, NP_NO_I64, NP_NO_I64,
		                                                  NP_NO_I64, NP_NO_I64, NP_NO_I64};
		self->captures[r].groups = self->groups[r];
		assert_true(np_vec_push(&self->cluster.ranks,
		                        (struct np_cluster_rank){.capture = &self->captures[r],
		                                                 .rank = (int64_t)r}));
	}
}

static void run_close(struct run *self)
{
	np_parallel_release(&self->plan);
	np_arena_release(&self->cluster.arena);
	np_vec_release(&self->cluster.ranks);
	np_report_free(self->cluster.report);
}

static void run_args(struct run *self, int64_t tp, int64_t pp, int64_t dp, int64_t cp, int64_t ep)
{
	for (size_t r = 0; r < self->cluster.ranks.n; r++)
		self->captures[r].parallel =
			(struct np_parallel){tp, pp, dp, cp, ep, (int64_t)self->cluster.ranks.n};
}

/* The groups of this token under the name, as the ranks would have recorded them. */
static void run_groups(struct run *self, const struct np_strategy *s, const char *token,
                       const char *name)
{
	struct np_rank_groups groups;
	struct np_err err = {0};
	assert_int_equal(np_strategy_groups(s, token, &groups, &err), NP_OK);
	for (size_t i = 0; i < groups.n * groups.size; i++) {
		uint32_t rank = groups.ranks[i];
		const uint32_t *group = &groups.ranks[i - i % groups.size];
		size_t g = self->captures[rank].n_groups++;
		for (size_t m = 0; m < groups.size; m++)
			self->members[rank][g][m] = group[m];
		self->groups[rank][g] = (struct np_group){
			.name = name, .ranks = self->members[rank][g], .n_ranks = groups.size};
	}
	np_rank_groups_release(&groups);
}

static void run_find(struct run *self)
{
	struct np_err err = {0};
	assert_int_equal(np_parallel_of(&self->cluster, &self->plan, &err), NP_OK);
	np_parallel_tell(&self->plan, &self->cluster);
	assert_int_equal(self->cluster.report->findings.n, self->plan.n_problems > 0);
}

static void assert_sizes(const struct run *self, uint32_t tp, uint32_t cp, uint32_t pp, uint32_t dp)
{
	const uint32_t sizes[] = {tp, cp, pp, dp};
	assert_memory_equal(self->plan.strategy.size, sizes, sizeof sizes);
}

static void args_and_groups_agree(void **state)
{
	(void)state;
	struct run run;
	run_open(&run, 16);
	struct np_strategy s = all_two(NP_LAYOUT_MEGATRON_PP);
	run_args(&run, 2, 2, 2, 2, 2);
	run_groups(&run, &s, "tp", "tp");
	run_groups(&run, &s, "dp-cp", "dp_cp");
	run_groups(&run, &s, "pp", "pp");
	run_groups(&run, &s, "ep", "exp");
	run_find(&run);
	assert_int_equal(run.plan.source, NP_PARALLEL_BOTH);
	assert_true(run.plan.regular);
	assert_int_equal(run.plan.n_problems, 0);
	assert_int_equal(run.plan.strategy.layout, NP_LAYOUT_MEGATRON_PP);
	assert_sizes(&run, 2, 2, 2, 2);
	assert_int_equal(run.plan.places[6].digit[NP_DIM_PP], 1); /* rank 6 = tp0 cp1 pp1 dp0 */
	assert_int_equal(run.plan.places[6].digit[NP_DIM_CP], 1);
	assert_int_equal(run.plan.places[6].digit[NP_DIM_DP], 0);
	assert_int_equal(run.plan.places[15].ep, 1);
	run_close(&run);
}

static void groups_alone(void **state)
{
	(void)state;
	struct run run;
	run_open(&run, 12);
	struct np_strategy s = strategy(NP_LAYOUT_MEGATRON, 2, 3, 1, 2, 1);
	run_groups(&run, &s, "tp", "tp");
	run_groups(&run, &s, "cp", "cp");
	run_groups(&run, &s, "dp-cp", "dp_cp");
	run_find(&run);
	assert_int_equal(run.plan.source, NP_PARALLEL_GROUPS);
	assert_true(run.plan.regular);
	assert_sizes(&run, 2, 3, 1, 2);
	run_close(&run);
}

static void args_alone(void **state)
{
	(void)state;
	struct run run;
	run_open(&run, 8);
	run_args(&run, 2, 2, NP_NO_I64, NP_NO_I64, NP_NO_I64);
	run_find(&run);
	assert_int_equal(run.plan.source, NP_PARALLEL_ARGS);
	assert_sizes(&run, 2, 1, 2, 2); /* dp = 8 / 4 */
	assert_int_equal(run.plan.places[7].digit[NP_DIM_PP], 1);
	run_close(&run);
}

static void nothing_recorded(void **state)
{
	(void)state;
	struct run run;
	run_open(&run, 3);
	run_find(&run);
	assert_int_equal(run.plan.source, NP_PARALLEL_UNKNOWN);
	assert_false(run.plan.regular);
	assert_sizes(&run, 1, 1, 1, 3);
	run_close(&run);
}

static void wrong_sizes_are_told(void **state)
{
	(void)state;
	struct run run;
	run_open(&run, 8);
	run_args(&run, 2, 2, 3, 1, 1); /* 12 ranks */
	run_find(&run);
	assert_false(run.plan.regular);
	assert_true(run.plan.n_problems > 0);
	assert_int_equal(run.plan.source, NP_PARALLEL_DISPUTE);
	assert_sizes(&run, 1, 1, 1, 8);
	run_close(&run);
	run_open(&run, 4);
	run_args(&run, -1, 0, INT64_MAX, 1 << 20, 5);
	run_find(&run);
	assert_false(run.plan.regular);
	assert_true(run.plan.n_problems > 0);
	run_close(&run);
}

static void groups_are_believed(void **state)
{
	(void)state;
	struct run run;
	run_open(&run, 8);
	struct np_strategy s = strategy(NP_LAYOUT_MEGATRON, 4, 1, 1, 2, 1);
	run_args(&run, 2, 2, 2, 1, 1);
	run_groups(&run, &s, "tp", "tp");
	run_groups(&run, &s, "dp", "dp");
	run_groups(&run, &s, "pp", "pp");
	run_find(&run);
	assert_int_equal(run.plan.source, NP_PARALLEL_DISPUTE);
	assert_true(run.plan.regular);
	assert_sizes(&run, 4, 1, 1, 2);
	run_close(&run);
}

/* tp groups {0,2},{1,3}: no known placement, but the places are in the groups. */
static void unknown_placement(void **state)
{
	(void)state;
	struct run run;
	run_open(&run, 4);
	struct np_strategy s = strategy(NP_LAYOUT_MEGATRON, 2, 1, 1, 2, 1);
	run_args(&run, 2, 1, 2, 1, 1);
	run_groups(&run, &s, "dp", "tp");
	run_groups(&run, &s, "tp", "dp");
	run_find(&run);
	assert_false(run.plan.regular);
	assert_int_equal(run.plan.places[2].digit[NP_DIM_TP], 1);
	assert_int_equal(run.plan.places[2].digit[NP_DIM_DP], 0);
	run_close(&run);
}

static void hostile_groups(void **state)
{
	(void)state;
	struct run run;
	int64_t ranks[] = {INT64_MAX, -1, 0, 0};
	run_open(&run, 2);
	run.groups[0][0] = (struct np_group){.name = "tp", .ranks = ranks, .n_ranks = 4};
	run.groups[0][1] = (struct np_group){.name = "dp", .ranks = ranks, .n_ranks = 0};
	run.groups[1][0] = (struct np_group){.name = "exp", .ranks = ranks, .n_ranks = 2};
	run.captures[0].n_groups = 2;
	run.captures[1].n_groups = 1;
	run_find(&run);
	assert_false(run.plan.regular);
	assert_true(run.plan.n_problems > 0);
	run_close(&run);
}

static void out_of_memory(void **state)
{
	(void)state;
	struct np_strategy s = all_two(NP_LAYOUT_MEGATRON);
	double times[16] = {1, 2, 3, 4, 5, 6, 7, 8};
	const double *by_rank[NP_N_DIMS] = {times, times, times, times};
	struct np_slow_list slow;
	bool done = false;
	for (uint64_t n = 1; n < 100 && !done; n++) {
		np_mem_fail_after(n);
		done = np_slow_elements(&s, by_rank, &slow);
		np_mem_fail_after(0);
		assert_true(done || n < 99);
	}
	struct run run;
	run_open(&run, 8);
	run_args(&run, 3, 3, 3, 3, 3);
	enum np_status status = NP_E_NOMEM;
	for (uint64_t n = 1; n < 100 && status != NP_OK; n++) {
		struct np_err err = {0};
		np_parallel_release(&run.plan);
		np_mem_fail_after(n);
		status = np_parallel_of(&run.cluster, &run.plan, &err);
		np_mem_fail_after(0);
		assert_true(status == NP_OK || status == NP_E_NOMEM);
	}
	assert_int_equal(status, NP_OK);
	run_close(&run);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(vector_1_every_rank),
		cmocka_unit_test(vector_2_tp_folded),
		cmocka_unit_test(vector_3_tp_and_cp_folded),
		cmocka_unit_test(vector_4_vllm),
		cmocka_unit_test(vector_5_mindie),
		cmocka_unit_test(groups_by_token),
		cmocka_unit_test(vector_6_missing_ranks),
		cmocka_unit_test(vector_7_domain_means),
		cmocka_unit_test(vector_8_one_slow),
		cmocka_unit_test(vector_8_two_domains),
		cmocka_unit_test(five_percent_is_not_slow),
		cmocka_unit_test(unsound_strategies),
		cmocka_unit_test(args_and_groups_agree),
		cmocka_unit_test(groups_alone),
		cmocka_unit_test(args_alone),
		cmocka_unit_test(nothing_recorded),
		cmocka_unit_test(wrong_sizes_are_told),
		cmocka_unit_test(groups_are_believed),
		cmocka_unit_test(unknown_placement),
		cmocka_unit_test(hostile_groups),
		cmocka_unit_test(out_of_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
