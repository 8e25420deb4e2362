#include <stdio.h>
#include <string.h>

#include "analysis/compare.h"
#include "cmd/cmd.h"
#include "cmd/progress.h"

enum { MAX_RUNS = 64 };

struct options {
	const char *step, *rank, *fail_on;
	uint64_t top;
	bool force, show_normalised;
	struct np_opt_list rules;
};

#define AT(field) offsetof(struct options, field)

static const struct np_option options[] = {
	{"step", 0, NP_OPT_STRING, AT(step), "ID", "only this step, on both sides"},
	{"rank", 0, NP_OPT_STRING, AT(rank), "N", "this rank, where a path holds several"},
	{"fail-on", 0, NP_OPT_STRING, AT(fail_on), "CONDITIONS",
         "fail by these instead: total>5%,op:MatMulV3>3%,kernels>10%"},
	{"rule", 0, NP_OPT_LIST, AT(rules), "NAME=VALUE",
         "another threshold; may be given several times"},
	{"force", 0, NP_OPT_FLAG, AT(force), NULL, "a verdict although the sides are not alike"},
	{"show-normalised", 0, NP_OPT_FLAG, AT(show_normalised), NULL,
         "list the names that were joined"},
	{"top", 0, NP_OPT_UINT, AT(top), "N", "rows of long tables (default: 20)"},
};

/* One word of the command line: its runs, and what must be freed behind them. */
struct side {
	struct np_captures *all[MAX_RUNS];
	const struct np_capture *chosen[MAX_RUNS];
	struct np_compare_input input;
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
		if (np_capture_has_data(capture) && (!own->rank || capture->rank == rank)) {
			*out = capture;
			n++;
		}
	}
	/* one capture is meant whatever its rank, so that two ranks can be compared */
	if (n == 0 && own->rank && all->captures.n == 1 &&
	    np_capture_has_data(all->captures.v[0])) {
		*out = all->captures.v[0];
		n = 1;
	}
	if (n == 1)
		return NP_OK;
	if (n == 0)
		return np_err_set(err, NP_E_NOTFOUND, all->input,
		                  "no capture%s%s with data (npuprof info tells what is there)",
		                  own->rank ? " of rank " : "", own->rank ? own->rank : "");
	return np_err_set(err, NP_E_USAGE, all->input,
	                  "%zu captures: choose one by --rank, or give its path", n);
}

/* "a,b,c" are three runs of a side, unless a path of that very name exists. */
static enum np_status open_side(const char *word, const struct options *own,
                                struct np_report *report, struct side *side, struct np_err *err)
{
	char path[4096];
	struct np_err none = {0};
	side->input = (struct np_compare_input){.label = word, .captures = side->chosen};
	if (np_is_gpu_trace(word)) {
		side->input.gpu_trace = word;
		np_report_input(report, word);
		return NP_OK;
	}
	np_str rest = np_str_of(word);
	bool whole = np_discover(word, &side->all[0], &none) == NP_OK || !strchr(word, ',');
	if (!whole || !side->all[0]) {
		np_captures_free(side->all[0]);
		side->all[0] = NULL;
	}
	do {
		np_str one = whole ? rest : np_str_cut(rest, ',', &rest);
		if (side->input.n == MAX_RUNS || one.len >= sizeof path)
			return np_err_set(err, NP_E_USAGE, word, "at most %d runs per side",
			                  MAX_RUNS);
		(void)snprintf(path, sizeof path, "%.*s", NP_FMT(one));
		size_t i = side->input.n++;
		if (!side->all[i])
			NP_TRY(np_discover(path, &side->all[i], err));
		NP_TRY(choose(side->all[i], own, &side->chosen[i], err));
		np_report_input(report, side->chosen[i]->path);
	} while (!whole && rest.len > 0);
	return NP_OK;
}

static enum np_status read_options(const struct np_call *call, struct np_rules *rules,
                                   struct np_compare_options *how, struct np_err *err)
{
	const struct options *own = call->options;
	*rules = np_default_rules;
	*how = (struct np_compare_options){.top = (unsigned)own->top,
	                                   .threads = (unsigned)call->common->jobs,
	                                   .force = own->force,
	                                   .show_normalised = own->show_normalised,
	                                   .fail_on = own->fail_on,
	                                   .rules = rules};
	for (size_t i = 0; i < own->rules.n; i++)
		NP_TRY(np_rules_set(rules, own->rules.v[i], err));
	how->has_step = own->step != NULL;
	if (own->step && !np_str_to_i64(np_str_of(own->step), &how->step))
		return np_err_set(err, NP_E_USAGE, NULL, "--step wants a number, got '%s'",
		                  own->step);
	return NP_OK;
}

static enum np_status compare_sides(const struct np_call *call, struct np_report *report,
                                    struct side *sides, struct np_err *err)
{
	size_t n = (size_t)call->argc;
	struct np_rules rules;
	struct np_compare_options how;
	NP_TRY(read_options(call, &rules, &how, err));
	for (size_t i = 0; i < n; i++)
		NP_TRY(open_side(call->argv[i], call->options, report, &sides[i], err));
	struct np_compare_input *targets = np_calloc(n, sizeof *targets);
	if (!targets)
		return np_err_nomem(err);
	for (size_t i = 1; i < n; i++)
		targets[i - 1] = sides[i].input;
	struct np_progress_line *line = np_progress_show(call->common);
	how.progress = np_progress_of(line);
	enum np_status status = np_compare(&sides[0].input, targets, n - 1, &how, report, err);
	np_progress_hide(line);
	np_free(targets);
	return status;
}

static enum np_status compare(const struct np_call *call, struct np_report *report,
                              struct np_err *err)
{
	struct side *sides = np_calloc((size_t)call->argc, sizeof *sides);
	if (!sides)
		return np_err_nomem(err);
	enum np_status status = compare_sides(call, report, sides, err);
	for (int i = 0; i < call->argc; i++)
		for (size_t k = 0; k < MAX_RUNS; k++)
			np_captures_free(sides[i].all[k]);
	np_free(sides);
	return status;
}

static int run(const struct np_call *call)
{
	return np_cmd_run_report(call, compare);
}

static const char *const examples[] = {
	"npuprof compare before_ascend_pt after_ascend_pt",
	"npuprof compare before1,before2,before3 after1,after2,after3 --fail-on 'total>3%'",
	"npuprof compare cluster_a cluster_b --rank 0 --json",
	NULL,
};

const struct np_cmd np_cmd_compare = {
	.name = "compare",
	.summary = "compare runs: what became slower, what is new, is it noise",
	.words = "BASE TARGET...",
	.min_words = 2,
	.max_words = MAX_RUNS,
	.examples = examples,
	.options = options,
	.n_options = sizeof options / sizeof *options,
	.options_size = sizeof(struct options),
	.run = run,
};
