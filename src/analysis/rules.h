/*
 * Thresholds, as data: each with its default, its unit, and where it comes from.
 * One X per rule: X(name, default, "unit", "source or reason").
 */
#ifndef NP_ANALYSIS_RULES_H
#define NP_ANALYSIS_RULES_H

#include "base/err.h"
#include "base/str.h"

#define NP_RULE_MAP(X)                                                                          \
	X(warmup_min_steps, 3, "steps", "requirements §2.4 layer 0: fewer give no verdict")     \
	X(warmup_ratio, 1.5, "first / mean of the rest", "requirements §2.4 layer 0")           \
	X(step_spread, 0.30, "share of the median", "cannbot step 1: inconsistent step")        \
	X(step_partial, 0.50, "share of the median's kernels", "cannbot step 1: partial step")  \
	X(compile_min_us, 10000, "us", "a compile call with a cached result takes 2000 us")     \
	X(recompile_gap, 0.50, "share of the step", "requirements §2.4 method rules: one gap")  \
	X(stage_bottleneck, 0.70, "share", "requirements §2.4 layer 1")                         \
	X(idle_heavy, 0.30, "share of the step", "DEVICE_IDLE_GAP_HEAVY")                       \
	X(gap_min_us, 1000, "us", "PRELAUNCH, TAIL, INTERNAL_BUBBLE: at least this")            \
	X(gap_min_share, 0.10, "share of the step", "… or this, whichever is more")             \
	X(host_bound_idle, 0.20, "share of the step", "diagnosis §1: all queues empty")         \
	X(host_bound_busy, 0.70, "share of that time", "diagnosis §1: launching thread busy")   \
	X(dependency_slack_us, 1, "us", "diagnosis §1: a wait that ends at the gap's end")      \
	X(overlap_hidden, 0.90, "share", "requirements §2.4 layer 3b")                          \
	X(overlap_exposed, 0.10, "share", "requirements §2.4 layer 3b")                         \
	X(exposed_comm_warn, 0.30, "share of the step", "requirements §2.4 layer 3b")           \
	X(memory_bound, 1.0, "mte2 / max(mac, vec)", "requirements §2.10")                      \
	X(memory_bound_share, 0.20, "share of computing", "MEMORY_BOUND_OPS: at least this")    \
	X(fusion_count, 3, "occurrences", "a sequence that repeats less is no candidate")       \
	X(fusion_share, 0.03, "share of the step", "FUSION_CANDIDATE: lower bound, at least")   \
	X(veto_vec, 0.80, "vec ratio", "requirements §2.10: vector-saturated, no fusion")       \
	X(veto_mte2, 0.10, "mte2 ratio", "… and as good as no loads")                           \
	X(fusion_p0, 0.15, "share of the step", "requirements §2.4 layer 5: P0 fusion saving")  \
	X(matmul_share, 0.50, "share of computing", "requirements §2.4 layer 5")                \
	X(attention_share, 0.30, "share of computing", "requirements §2.4 layer 5")             \
	X(vector_share, 0.20, "share of computing", "requirements §2.4 layer 5")                \
	X(aicpu_masked, 0.90, "share", "requirements §2.4: AICPU_MASKED_BUT_UNDESIRABLE")       \
	X(aicpu_partial, 0.20, "share", "requirements §2.4: AICPU_PARTIALLY_EXPOSED")           \
	X(aicpu_min_us, 20, "us", "insight §1.2 expert: AI CPU operator")                       \
	X(freq_drop, 0.05, "share below nominal", "insight §1.2 expert")                        \
	X(freq_busy, 0.01, "share of busy time", "FREQ_DROP: below that it is a sample's edge") \
	X(shape_distinct, 8, "shapes", "DYNAMIC_SHAPE: a type with at least this many")         \
	X(shape_new, 0.50, "share of calls", "DYNAMIC_SHAPE: with a shape not seen before")     \
	X(outlier_cost, 0.01, "share of the span", "OP_OUTLIERS: excess over the median")       \
	X(outlier_iqr, 1.5, "times the quartile range", "cannbot step 3")                       \
	X(outlier_min, 4, "samples", "cannbot step 3")                                          \
	X(recompile_ratio, 10, "wall / kernel sum", "requirements §2.4 method rules")           \
	X(compare_fail, 0.05, "share of base", "requirements §2.5: total, a regression")        \
	X(compare_warn, 0.01, "share of base", "requirements §2.5: below it is noise")          \
	X(compare_kernels, 0.10, "share of base", "requirements §2.5: more kernels")            \
	X(compare_copy_fail, 0.50, "share of base", "requirements §2.5: more copies")           \
	X(compare_copy_warn, 0.20, "share of base", "requirements §2.5: more copies")           \
	X(compare_new_us, 10000, "us per step", "requirements §2.5: net new work")              \
	X(compare_op, 0.10, "share of base", "an operator type that is told as slower")         \
	X(compare_op_impact, 0.005, "share of the step", "… when it costs this much")           \
	X(compare_minor, 0.001, "share of the step", "groups below it are not judged")

struct np_rules {
#define X(name, value, unit, source) double name;
	NP_RULE_MAP(X)
#undef X
};

extern const struct np_rules np_default_rules;

struct np_rule_info {
	const char *name, *unit, *source;
	size_t offset; /* of the double in struct np_rules */
};
extern const struct np_rule_info np_rule_infos[];
extern const size_t np_n_rules;

/* "idle_heavy=0.25" into *rules. E_USAGE for an unknown name or no number. */
enum np_status np_rules_set(struct np_rules *rules, const char *assignment, struct np_err *err);

#endif
