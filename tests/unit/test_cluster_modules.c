/* Modules and what is launched in them: module_statistic, operator_mfu. */
#include "cluster_unit.h"

#include <math.h>

#include "cluster/module_tree.h"
#include "cluster/modules.h"

extern const struct np_recipe np_recipe_module_statistic, np_recipe_operator_mfu;

static const struct np_cluster_options plain, compat = {.compat = true};

static const char *row_text(const struct np_digest *digest, const struct np_digest_modules *rows,
                            size_t r)
{
	static char text[256];
	(void)snprintf(text, sizeof text, "%s|%s|%s|%s|%lld|%lld|%s",
	               np_intern_get(&digest->strings, rows->parent[r]).ptr,
	               np_intern_get(&digest->strings, rows->module[r]).ptr,
	               np_intern_get(&digest->strings, rows->op[r]).ptr,
	               np_intern_get(&digest->strings, rows->kernels[r]).ptr,
	               (long long)rows->total_ns[r], (long long)rows->count[r],
	               np_intern_get(&digest->strings, rows->mfu[r]).ptr);
	return text;
}

static void expect_rows(const struct np_profile *profile, const char *const *expected, size_t n)
{
	struct unit_rank rank = {0};
	assert_int_equal(map_part(&np_part_modules, &rank, profile, &plain, 0, INT64_MAX), NP_OK);
	const struct np_digest_modules *rows = np_digest_find(rank.digest, &np_digest_modules_desc);
	for (size_t r = 0; r < rows->n && r < n; r++)
		assert_string_equal(row_text(rank.digest, rows, r), expected[r]);
	assert_int_equal(rows->n, n);
	np_digest_free(rank.digest);
}

/* ── the tree ── */

static void operators_go_to_the_innermost_module(void **state)
{
	(void)state;
	struct np_profile *p = np_profile_new();
	add_in_domain(p, "Module", "layer", 100, 200);
	add_in_domain(p, "Module", "attention", 110, 150);
	add_op(p, "mm", 120, 130, 1);   /* within both */
	add_op(p, "add", 150, 150, 2);  /* at the inner end: still within */
	add_op(p, "over", 149, 151, 3); /* not in attention as a whole */
	add_op(p, "outside", 201, 202, 4);
	add_kernel(p, "k1", 1000, 7, 1, NULL);
	add_kernel(p, "k2", 2000, 5, 2, NULL);
	add_kernel(p, "k3", 3000, 3, 3, NULL);
	add_kernel(p, "k4", 4000, 1, 4, NULL);
	add_kernel(p, "k5", 1500, 2, 1, NULL); /* the second one of mm */
	static const char *const expected[] = {"layer|attention|mm|k1, k5|9|1|",
	                                       "|layer|over|k3|3|1|", "|layer|add|k2|5|1|"};
	expect_rows(p, expected, 3);
	np_profile_free(p);
}

static void instances_are_added_up_and_kinds_kept_apart(void **state)
{
	(void)state;
	struct np_profile *p = np_profile_new();
	/* twice mm, once mm and add: the same module, two kinds */
	for (int i = 0; i < 3; i++) {
		np_ns at = 1000 * (i + 1);
		add_in_domain(p, "Module", "mlp", at, at + 100);
		add_op(p, "mm", at + 10, at + 20, 10 + 2 * i);
		if (i == 1)
			add_op(p, "add", at + 30, at + 40, 11 + 2 * i);
		add_kernel(p, "k", at, 10 + i, 10 + 2 * (unsigned)i, NULL);
		if (i == 1)
			add_kernel(p, "a", at + 50, 5, 13, NULL);
	}
	static const char *const expected[] = {"|mlp_0|mm|k|22|2|", "|mlp_1|mm|k|11|1|",
	                                       "|mlp_1|add|a|5|1|"};
	expect_rows(p, expected, 3);
	np_profile_free(p);
}

static void backward_operators_make_modules(void **state)
{
	(void)state;
	struct np_profile *p = np_profile_new();
	add_in_domain(p, "Module", "model", 100, 300);
	add_in_domain(p, "Module", "linear", 110, 200);
	/* connection 5 is shared by forward and backward, 6 and 7 launch */
	add_op(p, "fwd", 120, 130, 5);
	add_op(p, "bwd", 1120, 1130, 5);
	add_op(p, "mm", 121, 125, 6);
	add_op(p, "mm_bwd", 1121, 1125, 7);
	add_kernel(p, "k", 1000, 4, 6, NULL);
	add_kernel(p, "kb", 5000, 8, 7, NULL);
	static const char *const all[] = {"model|linear|mm|k|4|1|",
	                                  "model|[Backward]linear|mm_bwd|kb|8|1|"};
	expect_rows(p, all, 2);
	/* a queue's connection is no pass */
	p->host_ops.name[0] = id_of(p, "Enqueue@mm");
	expect_rows(p, all, 1);
	np_profile_free(p);
}

/* ── the same of a trace: by arrows ── */

static void add_arrow(struct np_profile *p, const char *category, const char *id, np_ns from,
                      uint32_t from_tid, np_ns to, uint32_t to_tid)
{
	for (uint8_t end = 0; end < 2; end++) {
		size_t i = np_profile_add(p, flows);
		p->flows.end[i] = end;
		p->flows.cat[i] = id_of(p, category);
		p->flows.id[i] = id_of(p, id);
		p->flows.pid[i] = 1;
		p->flows.tid[i] = end ? to_tid : from_tid;
		p->flows.ts_ns[i] = end ? to : from;
	}
}

static struct np_profile *traced(void)
{
	struct np_profile *p = np_profile_new();
	add_in_domain(p, "Module", "model", 100, 300);
	add_op(p, "mm", 120, 130, 1);
	add_op(p, "allreduce", 140, 150, 2);
	add_op(p, "mm_bwd", 1120, 1130, 3);
	p->host_conns.n = 0;
	add_kernel(p, "k", 5000, 4, UINT32_MAX, NULL);
	add_kernel(p, "kb", 6000, 8, UINT32_MAX, NULL);
	add_kernel(p, "unlinked", 7000, 16, UINT32_MAX, NULL);
	static const char *const names[] = {"other", "k", "kb"};
	static const np_ns starts[] = {5000, 5000, 6000};
	for (size_t t = 0; t < 3; t++) {
		add_task(p, starts[t], 4, 2, NP_NO_I64);
		p->tasks.name[t] = id_of(p, names[t]);
	}
	size_t c = np_profile_add(p, comm_ops);
	p->comm_ops.name[c] = p->comm_ops.type[c] = id_of(p, "hcom_allReduce_");
	p->comm_ops.group[c] = p->comm_ops.algorithm[c] = p->comm_ops.dtype[c] = NP_ID_NONE;
	p->comm_ops.count[c] = p->comm_ops.conn[c] = NP_NO_I64;
	p->comm_ops.device[c] = p->comm_ops.step[c] = NP_NO_U32;
	p->comm_ops.start_ns[c] = 5500;
	p->comm_ops.dur_ns[c] = 32;
	add_arrow(p, "async_npu", "a", 120, 1, 5000, 2);
	add_arrow(p, "async_npu", "b", 1120, 1, 6000, 2);
	add_arrow(p, "async_npu", "c", 140, 1, 5500, 0);
	add_arrow(p, "fwdbwd", "d", 120, 1, 1120, 1);
	return p;
}

static void arrows_of_a_trace_serve_as_well(void **state)
{
	(void)state;
	struct np_profile *p = traced();
	static const char *const expected[] = {"|model|mm|k|4|1|",
	                                       "|model|allreduce|hcom_allReduce_|32|1|",
	                                       "|[Backward]model|mm_bwd|kb|8|1|"};
	expect_rows(p, expected, 3);
	np_profile_free(p);
}

static void too_deep_modules_are_left_out(void **state)
{
	(void)state;
	struct np_intern names;
	struct np_module_tree tree;
	enum { DEPTH = 30 };
	struct np_span spans[2 * DEPTH];
	uint32_t owner[DEPTH];
	assert_true(np_intern_init(&names));
	uint32_t name = np_intern_add(&names, NP_STR("m"));
	for (uint32_t i = 0; i < DEPTH; i++) {
		spans[2 * i] = (struct np_span){.start = i,
		                                .end = 1000 - i,
		                                .order = i,
		                                .name = name,
		                                .op = NP_SPAN_MODULE};
		/* starts with the module, ends before the next one could hold it */
		spans[2 * i + 1] =
			(struct np_span){.start = i, .end = 1000 - i, .order = DEPTH + i, .op = i};
	}
	assert_true(np_module_tree_build(&tree, &names, spans, 2 * DEPTH, owner));
	assert_int_equal(tree.nodes.n, DEPTH + 1);
	for (uint32_t i = 0; i < DEPTH; i++) {
		assert_int_equal(owner[i], i < NP_MODULE_MAX_DEPTH ? i + 1 : 0);
		if (i < NP_MODULE_MAX_DEPTH) {
			assert_int_equal(tree.nodes.v[owner[i]].depth, i + 1);
			assert_int_equal(
				np_intern_get(&names, tree.nodes.v[owner[i]].parent_path).len,
				i ? 2 * i - 1 : 0);
		}
	}
	np_module_tree_release(&tree);
	np_intern_release(&names);
}

static enum np_status map_and_free(void *ctx)
{
	struct unit_rank rank = {.capture = {.chip = {true, 1, 1000, 0}}};
	enum np_status status = map_part(&np_part_op_mfu, &rank, ctx, &plain, 0, INT64_MAX);
	np_digest_free(rank.digest);
	return status;
}

static void without_memory_modules_are_not_made(void **state)
{
	(void)state;
	struct np_profile *p = np_profile_new();
	add_in_domain(p, "Module", "model", 100, 300);
	add_in_domain(p, "mfu_flops", "1000-mm", 100, 300);
	add_op(p, "fwd", 120, 130, 5);
	add_op(p, "bwd", 1120, 1130, 5);
	add_op(p, "mm", 121, 125, 6);
	add_op(p, "mm_bwd", 1121, 1125, 7);
	add_kernel(p, "k", 1000, 4, 6, NULL);
	add_kernel(p, "kb", 5000, 8, 7, NULL);
	survive_no_memory(map_and_free, p);
	np_profile_free(p);
	p = traced();
	survive_no_memory(map_and_free, p);
	np_profile_free(p);
}

static void ranks_without_modules_are_told(void **state)
{
	(void)state;
	struct np_profile *p = np_profile_new();
	struct unit_rank ranks[2] = {0};
	struct np_report *report = np_report_new("cluster");
	assert_int_equal(map_part(&np_part_modules, &ranks[0], p, &plain, 0, INT64_MAX), NP_OK);
	assert_int_equal(reduce_ranks(&np_recipe_module_statistic, ranks, 1, &plain, report),
	                 NP_OK);
	assert_int_equal(findings_of(report, "CLUSTER_MODE_EMPTY"), 1);
	assert_int_equal(report->exit_code, 3);
	assert_null(table_of(report, "ModuleStatistic"));
	np_report_free(report);
	/* one of two */
	report = np_report_new("cluster");
	assert_int_equal(map_part(&np_part_modules, &ranks[0], p, &plain, 0, INT64_MAX), NP_OK);
	add_in_domain(p, "Module", "layer", 100, 200);
	add_op(p, "mm", 120, 130, 1);
	add_kernel(p, "k", 1000, 7, 1, NULL);
	assert_int_equal(map_part(&np_part_modules, &ranks[1], p, &plain, 0, INT64_MAX), NP_OK);
	assert_int_equal(reduce_ranks(&np_recipe_module_statistic, ranks, 2, &plain, report),
	                 NP_OK);
	assert_int_equal(findings_of(report, "CLUSTER_RANK_LACKING"), 1);
	const struct np_table *table = table_of(report, "ModuleStatistic");
	assert_non_null(table);
	assert_int_equal(np_table_rows(table), 1);
	assert_int_equal(np_table_cell(table, 0, 7)->i, 1);
	assert_true(np_table_cell(table, 0, 5)->r == 7);
	np_report_free(report);
	np_profile_free(p);
}

/* ── utilisation ── */

/* Two kernels of 300 and 100 ns in a range of 8192 · 200 operations; the chip does
 * 8192 per ns, so the range takes half of its peak. */
static struct np_profile *two_kernels(const char *dtypes)
{
	struct np_profile *p = np_profile_new();
	add_in_domain(p, "mfu_flops", "1638400-linear", 100, 200);
	add_in_domain(p, "mfu_flops", "nonsense", 100, 200);
	add_in_domain(p, "mfu_flops", "-5-negative", 100, 200);
	add_op(p, "before", 99, 150, 1);
	add_op(p, "mm", 100, 150, 2);
	add_op(p, "add", 200, 210, 3); /* begins with the end: within */
	add_op(p, "behind", 201, 210, 4);
	for (unsigned i = 1; i <= 4; i++)
		add_kernel(p, "k", 1000 * i, i == 2 ? 300 : 100, i, dtypes);
	return p;
}

static const struct np_digest_op_mfu *map_mfu(struct unit_rank *rank, const struct np_profile *p,
                                              const struct np_cluster_options *options)
{
	rank->capture.chip = (struct np_chip){true, 1, NP_NO_I64, 1000, 0};
	assert_int_equal(map_part(&np_part_op_mfu, rank, p, options, 0, INT64_MAX), NP_OK);
	return np_digest_find(rank->digest, &np_digest_op_mfu_desc);
}

static void operations_are_shared_out_by_duration(void **state)
{
	(void)state;
	struct np_profile *p = two_kernels("FLOAT16;FLOAT16");
	struct unit_rank rank = {0};
	const struct np_digest_op_mfu *rows = map_mfu(&rank, p, &plain);
	assert_int_equal(rows->n, 2);
	for (size_t i = 0; i < 2; i++)
		assert_true(fabs(rows->mfu[i] - 0.5) < 1e-12);
	assert_true(fabs(rows->flops[0] - 1638400 * 0.75) < 1e-6);
	assert_true(fabs(rows->flops[1] - 1638400 * 0.25) < 1e-6);
	assert_str(np_intern_get(&rank.digest->strings, rows->in_shapes[0]), "16,16");
	np_digest_free(rank.digest);
	/* the official tool: all of them for each */
	rows = map_mfu(&rank, p, &compat);
	assert_int_equal(rows->n, 2);
	assert_true(fabs(rows->mfu[0] - 1638400 / 300e-9 / 8192e9) < 1e-12);
	assert_true(fabs(rows->mfu[1] - 1638400 / 100e-9 / 8192e9) < 1e-12);
	assert_true(rows->flops[0] == 1638400 && rows->flops[1] == 1638400);
	np_digest_free(rank.digest);
	np_profile_free(p);
}

static void the_peak_depends_on_the_data_type(void **state)
{
	(void)state;
	static const struct {
		const char *types;
		double mfu; /* 0: no rows */
	} cases[] = {{"DT_BF16;INT8", 0.5},
	             {"FLOAT", 0.5},
	             {"int8;FLOAT16", 0.25},
	             {NULL, 0.5},
	             {"INT32", 0}};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct np_profile *p = two_kernels(cases[i].types);
		struct unit_rank rank = {0};
		const struct np_digest_op_mfu *rows = map_mfu(&rank, p, &plain);
		assert_int_equal(rows->n, cases[i].mfu > 0 ? 2 : 0);
		if (rows->n)
			assert_true(fabs(rows->mfu[0] - cases[i].mfu) < 1e-12);
		np_digest_free(rank.digest);
		np_profile_free(p);
	}
}

static void the_innermost_range_counts(void **state)
{
	(void)state;
	struct np_profile *p = np_profile_new();
	add_in_domain(p, "mfu_flops", "8000-outer", 100, 300);
	add_in_domain(p, "mfu_flops", "1000-inner", 150, 200);
	add_op(p, "a", 120, 130, 1);
	add_op(p, "b", 160, 170, 2);
	add_op(p, "c", 250, 260, 3);
	for (unsigned i = 1; i <= 3; i++)
		add_kernel(p, "k", 1000 * i, 100, i, "FLOAT16");
	struct unit_rank rank = {0};
	const struct np_digest_op_mfu *rows = map_mfu(&rank, p, &plain);
	static const char *const ranges[] = {"outer", "inner", "outer"};
	static const double flops[] = {4000, 1000, 4000};
	assert_int_equal(rows->n, 3);
	for (size_t i = 0; i < 3; i++) {
		assert_str(np_intern_get(&rank.digest->strings, rows->flops_op[i]), ranges[i]);
		assert_true(fabs(rows->flops[i] - flops[i]) < 1e-9);
	}
	np_digest_free(rank.digest);
	np_profile_free(p);
}

static void modules_show_the_mean_by_position(void **state)
{
	(void)state;
	struct np_profile *p = two_kernels("FLOAT16");
	add_in_domain(p, "Module", "m", 90, 250);
	struct unit_rank rank = {0};
	(void)map_mfu(&rank, p, &plain);
	const struct np_digest_modules *rows =
		np_digest_find(rank.digest, &np_digest_module_mfu_desc);
	assert_int_equal(rows->n, 4);
	assert_string_equal(row_text(rank.digest, rows, 0), "|m|before|k|100|1|");
	assert_string_equal(row_text(rank.digest, rows, 1), "|m|mm|k|300|1|50.0%");
	np_digest_free(rank.digest);
	np_profile_free(p);
}

static void what_is_lacking_for_mfu_is_told(void **state)
{
	(void)state;
	static const struct {
		bool ranges, chip;
		const char *says;
	} cases[] = {{false, true, "mfu_flops"}, {true, false, "info.json"}};
	for (size_t i = 0; i < 2; i++) {
		struct np_profile *p = cases[i].ranges ? two_kernels("FLOAT16") : np_profile_new();
		struct unit_rank rank = {0};
		struct np_report *report = np_report_new("cluster");
		(void)map_mfu(&rank, p, &plain);
		np_digest_free(rank.digest);
		rank.capture.chip.recorded = cases[i].chip;
		assert_int_equal(map_part(&np_part_op_mfu, &rank, p, &plain, 0, INT64_MAX), NP_OK);
		assert_int_equal(reduce_ranks(&np_recipe_operator_mfu, &rank, 1, &plain, report),
		                 NP_OK);
		assert_int_equal(findings_of(report, "CLUSTER_MODE_EMPTY"), 1);
		assert_non_null(strstr(report->findings.v[0]->title, cases[i].says));
		assert_int_equal(report->exit_code, 3);
		np_report_free(report);
		np_profile_free(p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(operators_go_to_the_innermost_module),
		cmocka_unit_test(instances_are_added_up_and_kinds_kept_apart),
		cmocka_unit_test(backward_operators_make_modules),
		cmocka_unit_test(arrows_of_a_trace_serve_as_well),
		cmocka_unit_test(too_deep_modules_are_left_out),
		cmocka_unit_test(without_memory_modules_are_not_made),
		cmocka_unit_test(ranks_without_modules_are_told),
		cmocka_unit_test(operations_are_shared_out_by_duration),
		cmocka_unit_test(the_peak_depends_on_the_data_type),
		cmocka_unit_test(the_innermost_range_counts),
		cmocka_unit_test(modules_show_the_mean_by_position),
		cmocka_unit_test(what_is_lacking_for_mfu_is_told),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
