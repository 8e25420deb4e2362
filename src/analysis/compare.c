#include "analysis/compare.h"

#include <string.h>

#include "analysis/compare_side.h"

static enum np_status fill_pair(struct np_cmp_pair *pair, struct np_err *err)
{
	bool gpu = pair->base->is_gpu || pair->target->is_gpu;
	if (!np_cmp_pair_groups(pair) || !np_cmp_totals(pair) || !np_cmp_kernel_groups(pair))
		return np_err_nomem(err);
	np_cmp_check_sides(pair);
	np_cmp_table_totals(pair);
	np_cmp_table_overall(pair);
	if (!np_cmp_table_groups(pair) || !np_cmp_table_more(pair) ||
	    (!gpu && !np_cmp_table_alignment(pair)))
		return np_err_nomem(err);
	return np_cmp_checks(pair, err);
}

static enum np_status compare_one(struct np_compare *self, struct np_cmp_side *base,
                                  const struct np_compare_input *input, int64_t number,
                                  struct np_err *err)
{
	struct np_cmp_side target;
	struct np_cmp_pair pair = {
		.compare = self, .base = base, .target = &target, .number = number};
	np_cmp_keys_init(&pair.types);
	np_cmp_keys_init(&pair.ops);
	enum np_status status = np_cmp_side_load(self, input, &target, err);
	if (status == NP_OK)
		status = fill_pair(&pair, err);
	/* the worst of the targets counts: FAIL, then UNKNOWN, then PASS */
	struct np_report *report = self->report;
	if (pair.failed)
		report->verdict = NP_VERDICT_FAIL;
	else if (pair.unknown && report->verdict != NP_VERDICT_FAIL)
		report->verdict = NP_VERDICT_UNKNOWN;
	np_cmp_side_release(&target);
	np_bootstrap_release(&pair.samples);
	np_cmp_keys_release(&pair.types);
	np_cmp_keys_release(&pair.ops);
	np_vec_release(&pair.by_class.v);
	np_vec_release(&pair.by_type.v);
	np_vec_release(&pair.by_op.v);
	return status;
}

static void set_exit_code(struct np_report *report)
{
	report->exit_code = report->verdict == NP_VERDICT_FAIL      ? 1
	                    : report->verdict == NP_VERDICT_UNKNOWN ? 3
	                                                            : 0;
}

static size_t count_runs(const struct np_compare_input *base,
                         const struct np_compare_input *targets, size_t n_targets)
{
	size_t n = base->n;
	for (size_t i = 0; i < n_targets; i++)
		n += targets[i].n;
	return n;
}

enum np_status np_compare(const struct np_compare_input *base,
                          const struct np_compare_input *targets, size_t n_targets,
                          const struct np_compare_options *options, struct np_report *report,
                          struct np_err *err)
{
	struct np_compare self = {.options = options, .report = report};
	struct np_cmp_side side = {0};
	self.rules = options->rules ? options->rules : &np_default_rules;
	if (options->fail_on)
		NP_TRY(np_cmp_parse_fail_on(options->fail_on, err));
	np_progress_begin(options->progress, "comparing", count_runs(base, targets, n_targets));
	np_cmp_keys_init(&self.joined);
	np_cmp_keys_init(&self.api);
	np_cmp_keys_init(&self.comm);
	enum np_status status = np_intern_init(&self.strings) ? NP_OK : np_err_nomem(err);
	if (status == NP_OK)
		status = np_cmp_side_load(&self, base, &side, err);
	report->verdict = NP_VERDICT_PASS;
	for (size_t i = 0; status == NP_OK && i < n_targets; i++)
		status = compare_one(&self, &side, &targets[i], (int64_t)i + 1, err);
	if (status == NP_OK && options->show_normalised)
		np_cmp_table_normalised(&self);
	set_exit_code(report);
	np_cmp_side_release(&side);
	np_cmp_keys_release(&self.joined);
	np_cmp_keys_release(&self.api);
	np_cmp_keys_release(&self.comm);
	np_intern_release(&self.strings);
	return status == NP_OK ? np_report_ok(report, err) : status;
}
