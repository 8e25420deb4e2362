/*
 * Overall Summary (cluster_and_advisor.md §3.3): where the time of a single rank went, as
 * `compare` splits it (analysis/overall.h), over all that is looked at.
 */
#include "analysis/overall.h"

#include <math.h>

#include "advice/checker.h"
#include "report/lang.h"

static const struct np_column columns[] = {
	{"Performance Index", "", NP_COL_TEXT, "part of the time; parts of parts are indented"},
	{"Duration(ms)", "", NP_COL_REAL, "over all steps that are looked at"},
	{"Duration Ratio", "", NP_COL_PERCENT, "of E2E Time"},
};

/* NP_NO_I64: without tasks of the collectives nobody knows how much of them was waiting. */
static np_ns wait_of(const struct np_overall *overall)
{
	np_ns wait = 0;
	bool known = overall->groups.n == 0;
	for (size_t i = 0; i < overall->groups.n; i++) {
		known |= overall->groups.v[i].has_wait;
		wait += overall->groups.v[i].wait;
	}
	return known ? wait : NP_NO_I64;
}

static void add(struct np_table *table, const char *label, np_ns ns, np_ns whole)
{
	np_cell_cstr(table, label);
	np_cell_real(table, ns == NP_NO_I64 ? NAN : (double)ns / 1e6);
	np_cell_real(table, ns != NP_NO_I64 && whole > 0 ? (double)ns / (double)whole : NAN);
}

/* A row that the official sheet does not have: only where there is something. */
static void add_if(struct np_table *table, const char *label, np_ns ns, np_ns whole)
{
	if (ns > 0)
		add(table, label, ns, whole);
}

static void fill(struct np_table *table, const struct np_overall *overall)
{
	const np_ns *ns = overall->ns;
	np_ns whole = ns[NP_OVERALL_E2E], wait = wait_of(overall);
	add(table, "Computing Time", ns[NP_OVERALL_COMPUTING], whole);
	if (overall->split) {
		add(table, "    -- Flash Attention", ns[NP_OVERALL_FA_FWD] + ns[NP_OVERALL_FA_BWD],
		    whole);
		add(table, "    -- Conv", ns[NP_OVERALL_CONV_FWD] + ns[NP_OVERALL_CONV_BWD], whole);
		add(table, "    -- Matmul", ns[NP_OVERALL_MATMUL], whole);
		add(table, "    -- Vector", ns[NP_OVERALL_VECTOR], whole);
		add(table, "    -- SDMA(Tensor Move)", ns[NP_OVERALL_TENSOR_MOVE], whole);
		add(table, "    -- Other Cube", ns[NP_OVERALL_CUBE], whole);
		add_if(table, "    -- Page Attention", ns[NP_OVERALL_PAGE_ATTENTION], whole);
		add_if(table, "    -- MC2", ns[NP_OVERALL_MC2], whole);
		add_if(table, "    -- Other", ns[NP_OVERALL_OTHER], whole);
	}
	add(table, "Uncovered Communication Time", ns[NP_OVERALL_UNCOVERED], whole);
	add(table, "    -- Wait", wait, whole);
	add(table, "    -- Transmit",
	    wait == NP_NO_I64 ? NP_NO_I64 : ns[NP_OVERALL_UNCOVERED] - wait, whole);
	add(table, "Free Time", ns[NP_OVERALL_FREE_TIME], whole);
	add(table, "    -- SDMA", ns[NP_OVERALL_SDMA], whole);
	add(table, "    -- Free", ns[NP_OVERALL_FREE], whole);
	add(table, "E2E Time", whole, whole);
}

/* Where to look first: the largest of the three. */
static const char *next(const struct np_overall *overall)
{
	np_ns computing = overall->ns[NP_OVERALL_COMPUTING];
	np_ns comm = overall->ns[NP_OVERALL_UNCOVERED], idle = overall->ns[NP_OVERALL_FREE_TIME];
	if (comm > computing && comm >= idle)
		return NP_N("Most of the time nothing is computed while ranks communicate: look at "
		            "communication first.");
	if (idle > computing)
		return NP_N("Most of the time the device is idle: look at schedule first.");
	return NP_N("Most of the time the device computes: look at computation first.");
}

static void tell(struct np_advice *self, const struct np_checker *checker,
                 const struct np_overall *overall)
{
	const np_ns *ns = overall->ns;
	struct np_problem_text text = {
		.code = "ADVICE_OVERALL", .total_us = NAN, .gain_us = NAN, .advice = next(overall)};
	struct np_finding *finding = np_advice_problem(
		self, checker, &text,
		"the model takes %.3f ms from end to end: computing %.3f ms, uncovered "
		"communication %.3f ms, free %.3f ms",
		(double)ns[NP_OVERALL_E2E] / 1e6, (double)ns[NP_OVERALL_COMPUTING] / 1e6,
		(double)ns[NP_OVERALL_UNCOVERED] / 1e6, (double)ns[NP_OVERALL_FREE_TIME] / 1e6);
	np_finding_evidence(finding, np_kernel_source(self->rank), NULL, NULL,
	                    "%zu kernels in %u steps", self->rank->n_rows, self->steps);
	np_finding_command(finding, "npuprof analyze %s",
	                   np_shell_quote(self->report, self->rank->capture->path));
}

static void run(struct np_advice *self, const struct np_checker *checker)
{
	struct np_overall overall;
	bool text = np_capture_file(self->rank->capture, NP_ROLE_KERNELS) != NULL;
	/* several ranks are told apart by slow rank, two runs by the comparison */
	if (self->many || self->options->base)
		return;
	self->oom |= !np_overall_compute(self->rank, !text, &overall);
	if (!self->oom) {
		tell(self, checker, &overall);
		fill(NP_ADVICE_TABLE(self, checker, columns), &overall);
	}
	np_overall_release(&overall);
}

const struct np_checker np_checker_overall = {
	.name = "overall_summary",
	.dimension = NP_DIM_OVERALL,
	.category = NP_N("Overall Summary"),
	.category_zh = "整网耗时分析",
	.run = run,
};
