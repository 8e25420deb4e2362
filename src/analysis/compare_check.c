/*
 * May these two sides be compared? Comparing what is not alike is the field's most frequent
 * mistake (requirements §2.5, traps), so each difference is told, and some forbid a verdict.
 */
#include <string.h>

#include "analysis/compare_side.h"
#include "report/lang.h"

static void refuse(struct np_cmp_pair *pair, const char *title, const char *detail)
{
	struct np_finding *finding =
		np_report_finding(pair->compare->report, "NOT_COMPARABLE", NP_ERROR,
	                          "target %lld is not comparable with the base: %s",
	                          (long long)pair->number, np_tr(title));
	np_finding_detail(finding, "%s", detail);
	np_finding_advice(finding,
	                  "collect both sides alike; --force gives a verdict all the same");
	pair->comparable = false;
}

static bool both_differ(const char *a, const char *b)
{
	return *a && *b && strcmp(a, b) != 0;
}

/* ── what forbids a verdict ── */

static bool has_common_work(const struct np_cmp_pair *pair)
{
	for (size_t i = 0; i < pair->by_type.v.n; i++)
		if (pair->by_type.v.v[i].base.n && pair->by_type.v.v[i].target.n)
			return true;
	return false;
}

static void check_machines(struct np_cmp_pair *pair)
{
	const struct np_cmp_side *base = pair->base, *target = pair->target;
	struct np_arena *arena = &pair->compare->report->arena;
	if (both_differ(base->chip, target->chip)) {
		const char *what = np_arena_printf(arena, np_tr("it ran on %s, the base on %s"),
		                                   target->chip, base->chip);
		refuse(pair, what ? what : "", "kernels take other times on another chip");
	}
	if (base->world_size > 0 && target->world_size > 0 &&
	    base->world_size != target->world_size) {
		const char *what =
			np_arena_printf(arena, np_tr("it has %lld ranks, the base %lld"),
		                        (long long)target->world_size, (long long)base->world_size);
		refuse(pair, what ? what : "",
		       "with another number of ranks each has another share of the work and other "
		       "collectives");
	}
	bool gpu = base->is_gpu || target->is_gpu;
	if (gpu)
		(void)np_report_finding(
			pair->compare->report, "COMPARED_WITH_GPU", NP_INFO,
			"one side is a GPU: kernels have other names there; compare "
			"the tables totals, overall, classes and api");
	else if (!has_common_work(pair))
		refuse(pair, "no operator is on both sides",
		       "names, types or the program itself have nothing in common");
}

/* ── what must be kept in mind ── */

static void check_windows(struct np_cmp_pair *pair)
{
	const struct np_cmp_side *base = pair->base, *target = pair->target;
	struct np_report *report = pair->compare->report;
	double nb = pair->counts[NP_CMP_COUNT_KERNELS].base;
	double nt = pair->counts[NP_CMP_COUNT_KERNELS].target;
	if (base->is_gpu || target->is_gpu)
		return;
	if (base->has_steps != target->has_steps || nb > 3 * nt || nt > 3 * nb) {
		struct np_finding *finding = np_report_finding(
			report, "COMPARED_DIFFERENT_WINDOW", NP_WARNING,
			"a step has %.0f kernels in the base and %.0f in target %lld%s", nb, nt,
			(long long)pair->number,
			base->has_steps != target->has_steps
				? np_tr("; only one side records steps")
				: "");
		np_finding_detail(finding, "the windows may hold different work");
		np_finding_advice(finding,
		                  "choose the same step on both sides by --step, or record "
		                  "steps with schedule() and prof.step()");
		return;
	}
	size_t sb = base->samples.n / base->n_runs, st = target->samples.n / target->n_runs;
	if (sb != st) {
		struct np_finding *finding =
			np_report_finding(report, "COMPARED_DIFFERENT_STEPS", NP_WARNING,
		                          "the base has %zu steps per run, target %lld has %zu", sb,
		                          (long long)pair->number, st);
		np_finding_detail(finding,
		                  "medians per step are compared, so that the figures stand; "
		                  "warm-up may be in one of them");
	}
}

static void check_recording(struct np_cmp_pair *pair)
{
	const struct np_cmp_side *base = pair->base, *target = pair->target;
	struct np_report *report = pair->compare->report;
	long long number = (long long)pair->number;
	if (both_differ(base->level, target->level)) {
		struct np_finding *finding =
			np_report_finding(report, "COMPARED_DIFFERENT_LEVEL", NP_WARNING,
		                          "the base was collected at %s, target %lld at %s",
		                          base->level, number, target->level);
		np_finding_detail(finding,
		                  "a higher level costs time on host and device, and records "
		                  "more");
		np_finding_advice(finding, "collect both sides at one level");
	}
	if (base->has_db != target->has_db)
		(void)np_report_finding(
			report, "COMPARED_DIFFERENT_FORMAT", NP_INFO,
			"the base is %s, target %lld is %s: E2E and Free of the overall "
			"metrics reach over copies in databases only",
			base->kind, number, target->kind);
	if (base->has_types != target->has_types || base->has_shapes != target->has_shapes)
		np_report_note(
			report,
			"target %lld: types or shapes are recorded on one side only, so groups "
			"go without them",
			number);
	if (base->rank != NP_NO_I64 && target->rank != NP_NO_I64 && base->rank != target->rank)
		(void)np_report_finding(report, "COMPARED_DIFFERENT_RANK", NP_INFO,
		                        "rank %lld is compared with rank %lld of the base",
		                        (long long)target->rank, (long long)base->rank);
	if (both_differ(base->host, target->host))
		(void)np_report_finding(report, "COMPARED_DIFFERENT_CARDS", NP_INFO,
		                        "other cards: the base ran on %s, target %lld on %s",
		                        base->host, number, target->host);
}

/* A class that one side lacks and that is more than noise on the other. */
static void check_classes(struct np_cmp_pair *pair)
{
	for (size_t i = 0; i < pair->by_class.v.n; i++) {
		const struct np_cmp_group *group = &pair->by_class.v.v[i];
		np_ns span = group->base.n ? pair->base_span : pair->target_span;
		np_ns ns = group->base.n ? group->base.median : group->target.median;
		if ((group->base.n && group->target.n) ||
		    (double)ns < pair->compare->rules->compare_warn * (double)span)
			continue;
		struct np_finding *finding = np_report_finding(
			pair->compare->report, "COMPARED_DIFFERENT_CLASSES", NP_WARNING,
			"%s is in %s only", np_tr(np_class_name((enum np_class)group->key)),
			np_tr(group->base.n ? "the base" : "the target"));
		np_finding_detail(finding,
		                  "either the work was changed, or one side did not record it");
	}
}

void np_cmp_check_sides(struct np_cmp_pair *pair)
{
	pair->comparable = true;
	check_machines(pair);
	check_windows(pair);
	check_recording(pair);
	check_classes(pair);
	if (!np_bootstrap_usable(&pair->samples))
		np_report_note(
			pair->compare->report,
			"target %lld: %zu and %zu steps, too few for an interval (%d per side); "
			"thresholds alone decide",
			(long long)pair->number, pair->base->samples.n, pair->target->samples.n,
			NP_BOOTSTRAP_MIN);
}
