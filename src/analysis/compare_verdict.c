/*
 * Checks: a figure, how much it may grow, and what is said when it grows more.
 *
 * By default those of requirements §2.5; with --fail-on its conditions fail instead, and
 * the default ones only warn. What is within noise never fails.
 */
#include <math.h>
#include <stdlib.h>

#include "analysis/compare_side.h"

/* ── --fail-on ── */

enum metric { M_TOTAL, M_COUNT, M_OP, M_CLASS, M_MEMORY, M_NEW };

struct condition {
	enum metric metric;
	int id;       /* M_TOTAL, M_COUNT */
	np_str name;  /* M_OP, M_CLASS */
	np_str text;  /* as written */
	bool percent; /* else ns */
	double limit;
};

static bool parse_limit(np_str text, struct condition *out)
{
	static const struct {
		const char *unit;
		bool percent;
		double factor;
	} units[] = {{"%", true, 0.01}, {"us", false, 1e3}, {"ms", false, 1e6}, {"s", false, 1e9}};
	text = np_str_trim(text);
	for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
		np_str unit = np_str_of(units[i].unit);
		np_str number = np_str_sub(text, 0, text.len - unit.len);
		if (text.len <= unit.len || !np_str_ends(text, unit) ||
		    !np_str_to_double(np_str_trim(number), &out->limit))
			continue;
		out->percent = units[i].percent;
		out->limit *= units[i].factor;
		return true;
	}
	return false;
}

static bool parse_metric(np_str text, struct condition *out)
{
	static const char *const totals[] = {
#define X(id, name, field, what) name,
		NP_CMP_TOTAL_MAP(X)
#undef X
	};
	static const char *const counts[] = {
#define X(id, name, field, what) name,
		NP_CMP_COUNT_MAP(X)
#undef X
	};
	for (int id = 0; id < NP_CMP_TOTALS; id++)
		if (np_str_is(text, totals[id])) {
			out->metric = M_TOTAL;
			out->id = id;
			return true;
		}
	for (int id = 0; id < NP_CMP_COUNTS; id++)
		if (np_str_is(text, counts[id])) {
			out->metric = M_COUNT;
			out->id = id;
			return out->percent;
		}
	np_str kind = np_str_cut(text, ':', &out->name);
	out->metric = np_str_is(kind, "op")      ? M_OP
	              : np_str_is(kind, "class") ? M_CLASS
	              : np_str_is(text, "new")   ? M_NEW
	                                         : M_MEMORY;
	if (out->metric == M_MEMORY)
		return np_str_is(text, "memory") && out->percent;
	return out->metric == M_NEW ? !out->percent : out->name.len > 0;
}

static enum np_status parse_condition(np_str text, struct condition *out, struct np_err *err)
{
	*out = (struct condition){.text = text};
	size_t at = text.len;
	while (at > 0 && text.ptr[at - 1] != '>')
		at--;
	if (at > 0 && parse_limit(np_str_from(text, at), out) &&
	    parse_metric(np_str_trim(np_str_sub(text, 0, at - 1)), out))
		return NP_OK;
	return np_err_set(err, NP_E_USAGE, "--fail-on",
	                  "cannot read '%.*s': wanted total>5%%, computing, comm, not_overlapped, "
	                  "overlapped, free, kernels>10%%, collectives, copies, memory, new>10ms, "
	                  "op:NAME>3%%, class:NAME>3%%; limits in %%, us, ms or s",
	                  NP_FMT(text));
}

enum np_status np_cmp_parse_fail_on(const char *text, struct np_err *err)
{
	np_str rest = np_str_of(text);
	struct condition condition;
	do {
		NP_TRY(parse_condition(np_str_trim(np_str_cut(rest, ',', &rest)), &condition, err));
	} while (rest.len > 0);
	return NP_OK;
}

/* ── figures ── */

struct figure {
	bool known, noise;
	bool is_time;
	double base, target;
};

static void add_group(struct figure *out, const struct np_cmp_group *group)
{
	out->noise = out->known ? out->noise && group->verdict == NP_CMP_NOISE
	                        : group->verdict == NP_CMP_NOISE;
	out->known = true;
	out->base += (double)group->base.median;
	out->target += (double)group->target.median;
}

/* By type, else by normalised name. */
static struct figure figure_of_op(const struct np_cmp_pair *pair, np_str name)
{
	struct figure out = {.is_time = true};
	for (size_t i = 0; i < pair->by_type.v.n; i++) {
		const struct np_cmp_group *group = &pair->by_type.v.v[i];
		if (np_str_eq(np_cmp_text(pair->compare, pair->types.v.v[group->key].a), name))
			add_group(&out, group);
	}
	for (size_t i = 0; !out.known && i < pair->by_op.v.n; i++) {
		const struct np_cmp_group *group = &pair->by_op.v.v[i];
		if (np_str_eq(np_cmp_text(pair->compare, pair->ops.v.v[group->key].b), name))
			add_group(&out, group);
	}
	return out;
}

static struct figure figure_of_memory(const struct np_cmp_pair *pair)
{
	double sides[2] = {NAN, NAN};
	for (int s = 0; s < 2; s++) {
		const struct np_cmp_side *side = s ? pair->target : pair->base;
		for (size_t i = 0; i < side->peaks.n; i++)
			sides[s] = fmax(sides[s], side->peaks.v[i].reserved_mb);
	}
	return (struct figure){.known = !isnan(sides[0]) && !isnan(sides[1]),
	                       .base = sides[0],
	                       .target = sides[1]};
}

static struct figure figure_of(const struct np_cmp_pair *pair, const struct condition *condition)
{
	struct figure out = {.known = true};
	switch (condition->metric) {
	case M_TOTAL: {
		const struct np_cmp_total_row *row = &pair->totals[condition->id];
		out.is_time = true;
		out.noise = row->has_interval && row->verdict == NP_CMP_NOISE;
		out.base = (double)row->base;
		out.target = (double)row->target;
		return out;
	}
	case M_COUNT:
		out.base = pair->counts[condition->id].base;
		out.target = pair->counts[condition->id].target;
		return out;
	case M_CLASS:
		out = (struct figure){.is_time = true};
		for (size_t i = 0; i < pair->by_class.v.n; i++) {
			const struct np_cmp_group *group = &pair->by_class.v.v[i];
			const char *name = np_class_name((enum np_class)group->key);
			if (np_str_is(condition->name, name))
				add_group(&out, group);
		}
		return out;
	case M_OP:
		return figure_of_op(pair, condition->name);
	case M_NEW:
		out.is_time = true;
		out.target = (double)pair->net_new;
		return out;
	default:
		return figure_of_memory(pair);
	}
}

/* ── the table of checks ── */

static const struct np_column columns[] = {
	{"target", "", NP_COL_INT, "which TARGET, from 1"},
	{"check", "", NP_COL_TEXT, "what may not grow, and by how much"},
	{"base", "", NP_COL_REAL, "times in us"},
	{"target_value", "", NP_COL_REAL, "times in us"},
	{"change", "", NP_COL_PERCENT, "target / base - 1"},
	{"result", "", NP_COL_TEXT, "PASS, WARN, FAIL or UNKNOWN"},
};

static void put_check(struct np_cmp_pair *pair, np_str text, const struct figure *figure,
                      const char *result)
{
	struct np_table *table = NP_CMP_TABLE(pair->compare, "checks", "Checks", columns);
	double scale = figure->is_time ? 1e-3 : 1;
	np_cell_int(table, pair->number);
	np_cell_text(table, text);
	np_cell_real(table, figure->known ? figure->base * scale : NAN);
	np_cell_real(table, figure->known ? figure->target * scale : NAN);
	np_cell_real(table, figure->known ? np_cmp_change(figure->base, figure->target) : NAN);
	np_cell_cstr(table, result);
}

/* By how much a figure grew, 0…; from nothing to something: infinite. */
static double growth(const struct figure *figure)
{
	if (figure->base > 0)
		return figure->target / figure->base - 1;
	return figure->target > 0 ? INFINITY : 0;
}

static bool exceeds(const struct figure *figure, const struct condition *condition)
{
	if (figure->noise)
		return false;
	return condition->percent ? growth(figure) > condition->limit
	                          : figure->target - figure->base > condition->limit;
}

static void check_condition(struct np_cmp_pair *pair, const struct condition *condition)
{
	struct figure figure = figure_of(pair, condition);
	if (!figure.known) {
		pair->unknown = true;
		put_check(pair, condition->text, &figure, "UNKNOWN");
		np_report_note(pair->compare->report, "--fail-on %.*s: not in these captures",
		               NP_FMT(condition->text));
		return;
	}
	bool failed = exceeds(&figure, condition);
	put_check(pair, condition->text, &figure, failed ? "FAIL" : "PASS");
	if (!failed)
		return;
	pair->failed = true;
	struct np_finding *finding = np_report_finding(
		pair->compare->report, "FAIL_ON_MATCHED", NP_ERROR, "%.*s: %+.1f %%",
		NP_FMT(condition->text), 100 * np_cmp_change(figure.base, figure.target));
	np_finding_evidence(finding, pair->target->source, NULL, NULL, "table checks");
}

static enum np_status check_fail_on(struct np_cmp_pair *pair, struct np_err *err)
{
	np_str rest = np_str_of(pair->compare->options->fail_on);
	do {
		struct condition condition;
		NP_TRY(parse_condition(np_str_trim(np_str_cut(rest, ',', &rest)), &condition, err));
		check_condition(pair, &condition);
	} while (rest.len > 0);
	return NP_OK;
}

/* ── the default checks ── */

static void check_total(struct np_cmp_pair *pair, bool may_fail)
{
	const struct np_rules *rules = pair->compare->rules;
	const struct np_cmp_total_row *row = &pair->totals[NP_CMP_TOTAL_SPAN];
	struct figure figure = {true, false, true, (double)row->base, (double)row->target};
	double change = growth(&figure);
	bool slower = row->verdict == NP_CMP_SLOWER;
	bool failed = slower && change >= rules->compare_fail;
	put_check(pair, NP_STR("total"), &figure,
	          failed && may_fail ? "FAIL"
	          : slower           ? "WARN"
	                             : "PASS");
	pair->failed = pair->failed || (failed && may_fail);
	if (row->verdict == NP_CMP_NOISE || (!slower && change > -rules->compare_fail))
		return;
	struct np_finding *finding =
		np_report_finding(pair->compare->report,
	                          failed   ? "TOTAL_REGRESSED"
	                          : slower ? "TOTAL_SLOWER"
	                                   : "TOTAL_IMPROVED",
	                          failed && may_fail ? NP_ERROR
	                          : slower           ? NP_WARNING
	                                             : NP_INFO,
	                          "a step takes %.3f ms instead of %.3f ms (%+.1f %%)",
	                          figure.target / 1e6, figure.base / 1e6, 100 * change);
	np_finding_evidence(finding, pair->target->source, "Start Time, Duration", NULL,
	                    "table totals; changed and alignment tell where it comes from");
	if (slower)
		np_finding_impact(finding, (figure.target - figure.base) / 1e3,
		                  change / (1 + change));
}

static void check_kernels(struct np_cmp_pair *pair)
{
	struct figure figure = {true, false, false, pair->counts[NP_CMP_COUNT_KERNELS].base,
	                        pair->counts[NP_CMP_COUNT_KERNELS].target};
	bool more = growth(&figure) >= pair->compare->rules->compare_kernels;
	put_check(pair, NP_STR("kernels"), &figure, more ? "WARN" : "PASS");
	if (!more)
		return;
	struct np_finding *finding =
		np_report_finding(pair->compare->report, "KERNELS_MORE", NP_WARNING,
	                          "a step has %.0f kernels instead of %.0f (%+.1f %%)",
	                          figure.target, figure.base, 100 * growth(&figure));
	np_finding_detail(finding, "a fusion may have been lost, or an operator fallen apart");
	np_finding_evidence(finding, pair->target->source, "Name", NULL,
	                    "table alignment shows where they came");
}

static np_ns copy_time(const struct np_cmp_side *side)
{
	np_ns most = 0;
	for (size_t i = 0; i < side->samples.n; i++)
		most = side->samples.v[i].copy_ns > most ? side->samples.v[i].copy_ns : most;
	return most;
}

static void check_copies(struct np_cmp_pair *pair, bool may_fail)
{
	const struct np_rules *rules = pair->compare->rules;
	struct figure figure = {true, false, false, pair->counts[NP_CMP_COUNT_COPIES].base,
	                        pair->counts[NP_CMP_COUNT_COPIES].target};
	np_ns cost = copy_time(pair->target);
	bool matters = (double)cost >= rules->compare_minor * (double)pair->target_span;
	bool warned = matters && growth(&figure) >= rules->compare_copy_warn;
	bool failed = warned && may_fail && growth(&figure) >= rules->compare_copy_fail;
	put_check(pair, NP_STR("copies"), &figure, failed ? "FAIL" : warned ? "WARN" : "PASS");
	pair->failed = pair->failed || failed;
	if (!warned)
		return;
	struct np_finding *finding = np_report_finding(
		pair->compare->report, failed ? "COPIES_REGRESSED" : "COPIES_MORE",
		failed ? NP_ERROR : NP_WARNING, "a step has %.0f copies instead of %.0f",
		figure.target, figure.base);
	np_finding_detail(finding, "copies move data and compute nothing");
	np_finding_evidence(finding, pair->target->source, "Name", NULL, "table copy_ops");
	np_finding_impact(finding, (double)cost / 1e3,
	                  pair->target_span > 0 ? (double)cost / (double)pair->target_span : 0);
	np_finding_advice(finding, "look for new .contiguous(), .to(), slices and layout changes");
}

static void check_new(struct np_cmp_pair *pair)
{
	struct figure figure = {true, false, true, 0, (double)pair->net_new};
	bool more = (double)pair->net_new > pair->compare->rules->compare_new_us * 1e3;
	put_check(pair, NP_STR("new"), &figure, more ? "WARN" : "PASS");
	if (!more)
		return;
	struct np_finding *finding = np_report_finding(
		pair->compare->report, "NEW_WORK", NP_WARNING,
		"operators that the base does not have take %.3f ms more than those that went",
		(double)pair->net_new / 1e6);
	np_finding_evidence(finding, pair->target->source, "Name", NULL, "tables new and removed");
}

/* ── operators that changed ── */

static int by_diff(const void *a, const void *b)
{
	const struct np_cmp_group *x = *(const struct np_cmp_group *const *)a;
	const struct np_cmp_group *y = *(const struct np_cmp_group *const *)b;
	np_ns xd = llabs(x->target.median - x->base.median);
	np_ns yd = llabs(y->target.median - y->base.median);
	if (xd != yd)
		return xd > yd ? -1 : 1;
	return (x->key > y->key) - (x->key < y->key);
}

static void tell_op(struct np_cmp_pair *pair, const struct np_cmp_group *group)
{
	bool slower = group->verdict == NP_CMP_SLOWER;
	np_ns diff = group->target.median - group->base.median;
	np_str type = np_cmp_text(pair->compare, pair->types.v.v[group->key].a);
	struct np_finding *finding = np_report_finding(
		pair->compare->report, slower ? "OP_SLOWER" : "OP_FASTER",
		slower ? NP_WARNING : NP_INFO,
		"%.*s takes %.3f ms per step instead of %.3f ms (%+.1f %%, %.0f times instead of "
		"%.0f)",
		NP_FMT(type), (double)group->target.median / 1e6, (double)group->base.median / 1e6,
		100 * np_cmp_change((double)group->base.median, (double)group->target.median),
		group->target.count, group->base.count);
	np_finding_evidence(finding, pair->target->source, "Duration", NULL,
	                    "table op_types; table changed tells by shape");
	if (slower)
		np_finding_impact(finding, (double)diff / 1e3,
		                  pair->target_span > 0 ? (double)diff / (double)pair->target_span
		                                        : 0);
}

static bool is_told(const struct np_cmp_pair *pair, const struct np_cmp_group *group)
{
	const struct np_rules *rules = pair->compare->rules;
	double base = (double)group->base.median, target = (double)group->target.median;
	return (group->verdict == NP_CMP_SLOWER || group->verdict == NP_CMP_FASTER) &&
	       fabs(target - base) >= rules->compare_op * base &&
	       fabs(target - base) >= rules->compare_op_impact * (double)pair->base_span;
}

static bool tell_ops(struct np_cmp_pair *pair)
{
	enum { MOST = 10 };
	size_t n = 0;
	const struct np_cmp_group **told = np_realloc(NULL, pair->by_type.v.n + 1, sizeof *told);
	for (size_t i = 0; told && i < pair->by_type.v.n; i++)
		if (is_told(pair, &pair->by_type.v.v[i]))
			told[n++] = &pair->by_type.v.v[i];
	if (told && n > 1)
		qsort(told, n, sizeof *told, by_diff);
	for (size_t i = 0; told && i < n && i < MOST; i++)
		tell_op(pair, told[i]);
	if (n > MOST)
		np_report_note(pair->compare->report,
		               "%zu more operator types changed: table op_types", n - MOST);
	np_free(told);
	return told != NULL;
}

static void sum_new(struct np_cmp_pair *pair)
{
	for (size_t i = 0; i < pair->by_op.v.n; i++) {
		const struct np_cmp_group *group = &pair->by_op.v.v[i];
		if (group->verdict == NP_CMP_NEW)
			pair->net_new += group->target.median;
		else if (group->verdict == NP_CMP_REMOVED)
			pair->net_new -= group->base.median;
	}
}

enum np_status np_cmp_checks(struct np_cmp_pair *pair, struct np_err *err)
{
	sum_new(pair);
	if (!pair->comparable && !pair->compare->options->force) {
		pair->unknown = true;
		return NP_OK;
	}
	bool gpu = pair->base->is_gpu || pair->target->is_gpu;
	bool by_default = pair->compare->options->fail_on == NULL;
	/* a GPU is no earlier state of the work: only an explicit condition fails */
	check_total(pair, by_default && !gpu);
	if (!gpu) {
		check_kernels(pair);
		check_copies(pair, by_default);
		check_new(pair);
	}
	if (!by_default)
		NP_TRY(check_fail_on(pair, err));
	return gpu || tell_ops(pair) ? NP_OK : np_err_nomem(err);
}
