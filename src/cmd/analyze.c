#include <stdio.h>

#include "analysis/analysis.h"
#include "cmd/progress.h"

struct options {
	const char *step, *rank, *fail_on;
	uint64_t top;
	struct np_opt_list stages, rules;
};

#define AT(field) offsetof(struct options, field)

static const struct np_option options[] = {
	{"step", 0, NP_OPT_STRING, AT(step), "ID", "only this step"},
	{"rank", 0, NP_OPT_STRING, AT(rank), "N", "this rank, when PATH holds several"},
	{"top", 0, NP_OPT_UINT, AT(top), "N", "rows of long tables (default: 20)"},
	{"rule", 0, NP_OPT_LIST, AT(rules), "NAME=VALUE",
         "another threshold; may be given several times"},
};

/* The capture that is meant: the only one with data, or that of --rank. */
static enum np_status choose(const struct np_captures *all, const struct options *own,
                             const struct np_capture **out, struct np_err *err)
{
	int64_t rank = 0;
	size_t n = 0;
	if (own->rank && !np_str_to_i64(np_str_of(own->rank), &rank))
		return np_err_set(err, NP_E_USAGE, NULL, "--rank wants a number, got '%s'",
		                  own->rank);
	for (size_t i = 0; i < all->captures.n; i++) {
		const struct np_capture *capture = all->captures.v[i];
		if (!np_capture_has_data(capture) || (own->rank && capture->rank != rank))
			continue;
		*out = capture;
		n++;
	}
	if (n == 1)
		return NP_OK;
	if (n == 0)
		return np_err_set(
			err, NP_E_NOTFOUND, all->input,
			own->rank ? "no capture of rank %s with data (npuprof info tells what is "
				    "there)"
				  : "no capture with data (npuprof info tells what is there)%s",
			own->rank ? own->rank : "");
	return np_err_set(err, NP_E_USAGE, all->input,
	                  "%zu captures: choose one by --rank, or give its path", n);
}

static enum np_status analyze(const struct np_call *call, struct np_report *report,
                              struct np_err *err)
{
	const struct options *own = call->options;
	struct np_rules rules = np_default_rules;
	struct np_analyze_options how = {.top = (unsigned)own->top,
	                                 .threads = (unsigned)call->common->jobs,
	                                 .rules = &rules};
	for (size_t i = 0; i < own->rules.n; i++)
		NP_TRY(np_rules_set(&rules, own->rules.v[i], err));
	how.has_step = own->step != NULL;
	if (own->step && !np_str_to_i64(np_str_of(own->step), &how.step))
		return np_err_set(err, NP_E_USAGE, NULL, "--step wants a number, got '%s'",
		                  own->step);
	struct np_captures *all = NULL;
	const struct np_capture *capture = NULL;
	NP_TRY(np_discover(call->argv[0], &all, err));
	enum np_status status = choose(all, own, &capture, err);
	if (status == NP_OK) {
		np_report_input(report, capture->path);
		struct np_progress_line *line = np_progress_show(call->common);
		how.progress = np_progress_of(line);
		status = np_analyze(capture, &how, report, err);
		np_progress_hide(line);
	}
	np_captures_free(all);
	return status;
}

static int run(const struct np_call *call)
{
	struct np_err err = {0};
	struct np_report *report = np_report_new("analyze");
	int exit_code = NP_EXIT_INPUT;
	if (!report)
		(void)np_err_nomem(&err);
	if (!report || analyze(call, report, &err) != NP_OK)
		exit_code = np_cmd_fail(&err);
	else
		exit_code = np_cmd_finish(call, report);
	np_report_free(report);
	return exit_code;
}

static const char *const examples[] = {
	"npuprof analyze prof/node0_77_20250601080000000_ascend_pt",
	"npuprof analyze cluster_root --rank 3 --step 12",
	NULL,
};

const struct np_cmd np_cmd_analyze = {
	.name = "analyze",
	.summary = "tell what one rank does with its time, and what to change",
	.words = "PATH",
	.min_words = 1,
	.max_words = 1,
	.examples = examples,
	.options = options,
	.n_options = sizeof options / sizeof *options,
	.options_size = sizeof(struct options),
	.run = run,
};
