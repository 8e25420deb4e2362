#include <stdio.h>

#include "analysis/analysis.h"
#include "cmd/progress.h"

struct options {
	const char *step, *rank;
	uint64_t top;
	struct np_opt_list stages, rules, fail_on;
};

#define AT(field) offsetof(struct options, field)

static const struct np_option options[] = {
	{"step", 0, NP_OPT_STRING, AT(step), "ID", "only this step"},
	{"rank", 0, NP_OPT_STRING, AT(rank), "N", "this rank, when PATH holds several"},
	{"top", 0, NP_OPT_UINT, AT(top), "N", "rows of long tables (default: 20)"},
	{"stage", 0, NP_OPT_LIST, AT(stages), "NAME=PATTERN",
         "a stage: kernels or host ranges of these names; several"},
	{"rule", 0, NP_OPT_LIST, AT(rules), "NAME=VALUE", "another threshold; several"},
	{"fail-on", 0, NP_OPT_LIST, AT(fail_on), "WHAT",
         "exit 1 on this code, or on error, warning or info; several"},
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

/* "NAME=PATTERN" of every --stage. The names are cut out of argv's copies in `text`. */
static enum np_status take_stages(const struct np_opt_list *list, struct np_arena *text,
                                  struct np_opt_pattern out[NP_OPT_MAX_LIST], struct np_err *err)
{
	for (size_t i = 0; i < list->n; i++) {
		np_str pattern, name = np_str_cut(np_str_of(list->v[i]), '=', &pattern);
		if (name.len == 0 || pattern.len == 0)
			return np_err_set(err, NP_E_USAGE, NULL,
			                  "--stage wants NAME=PATTERN, got '%s'", list->v[i]);
		out[i].name = np_arena_cstr(text, name);
		out[i].pattern = pattern.ptr; /* the end of the argument */
		if (!out[i].name)
			return np_err_nomem(err);
	}
	return NP_OK;
}

/* ── --fail-on ── */

static bool is_severity(const char *what, enum np_severity *out)
{
	for (int s = NP_INFO; s <= NP_ERROR; s++)
		if (np_str_is(np_str_of(what), np_severity_name((enum np_severity)s))) {
			*out = (enum np_severity)s;
			return true;
		}
	return false;
}

/* A misspelt severity must not be a code that never comes. */
static enum np_status check_fail_on(const struct np_opt_list *list, struct np_err *err)
{
	for (size_t i = 0; i < list->n; i++) {
		enum np_severity severity;
		const char *c = list->v[i];
		if (is_severity(c, &severity))
			continue;
		while ((*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9') || *c == '_')
			c++;
		if (*c || c == list->v[i])
			return np_err_set(err, NP_E_USAGE, NULL,
			                  "--fail-on wants error, warning, info or a CODE of "
			                  "docs/findings.md, got '%s'",
			                  list->v[i]);
	}
	return NP_OK;
}

static bool fails(const struct np_finding *finding, const struct np_opt_list *list)
{
	for (size_t i = 0; i < list->n; i++) {
		enum np_severity severity;
		if (is_severity(list->v[i], &severity)
		            ? finding->severity >= severity
		            : np_str_is(np_str_of(finding->code), list->v[i]))
			return true;
	}
	return false;
}

/* With --fail-on the command judges: PASS or FAIL, exit 0 or 1. */
static void judge(struct np_report *report, const struct np_opt_list *list)
{
	if (list->n == 0)
		return;
	report->verdict = NP_VERDICT_PASS;
	for (size_t i = 0; i < report->findings.n; i++)
		if (fails(report->findings.v[i], list)) {
			report->verdict = NP_VERDICT_FAIL;
			report->exit_code = NP_EXIT_FAILED;
		}
}

static enum np_status take_options(const struct options *own, struct np_rules *rules,
                                   struct np_analyze_options *how, struct np_err *err)
{
	for (size_t i = 0; i < own->rules.n; i++)
		NP_TRY(np_rules_set(rules, own->rules.v[i], err));
	NP_TRY(check_fail_on(&own->fail_on, err));
	how->top = own->top > UINT32_MAX ? UINT32_MAX : (unsigned)own->top;
	how->rules = rules;
	how->has_step = own->step != NULL;
	if (own->step && !np_str_to_i64(np_str_of(own->step), &how->step))
		return np_err_set(err, NP_E_USAGE, NULL, "--step wants a number, got '%s'",
		                  own->step);
	return NP_OK;
}

static enum np_status analyze_at(const struct np_call *call, struct np_analyze_options *how,
                                 struct np_report *report, struct np_err *err)
{
	struct np_captures *all = NULL;
	const struct np_capture *capture = NULL;
	NP_TRY(np_discover(call->argv[0], &all, err));
	enum np_status status = choose(all, call->options, &capture, err);
	if (status == NP_OK) {
		np_report_input(report, capture->path);
		struct np_progress_line *line = np_progress_show(call->common);
		how->progress = np_progress_of(line);
		status = np_analyze(capture, how, report, err);
		np_progress_hide(line);
	}
	np_captures_free(all);
	return status;
}

static enum np_status analyze(const struct np_call *call, struct np_report *report,
                              struct np_err *err)
{
	const struct options *own = call->options;
	struct np_rules rules = np_default_rules;
	struct np_opt_pattern stages[NP_OPT_MAX_LIST];
	struct np_analyze_options how = {.threads = (unsigned)call->common->jobs,
	                                 .stages = stages,
	                                 .n_stages = own->stages.n};
	struct np_arena text;
	NP_TRY(take_options(own, &rules, &how, err));
	np_arena_init(&text);
	enum np_status status = take_stages(&own->stages, &text, stages, err);
	if (status == NP_OK)
		status = analyze_at(call, &how, report, err);
	if (status == NP_OK)
		judge(report, &own->fail_on);
	np_arena_release(&text);
	return status;
}

static int run(const struct np_call *call)
{
	return np_cmd_run_report(call, analyze);
}

static const char *const examples[] = {
	"npuprof analyze prof/node0_77_20250601080000000_ascend_pt",
	"npuprof analyze cluster_root --rank 3 --step 12",
	"npuprof analyze capture --stage 'attn=*Attention*' --stage 'mlp=*MatMul*'",
	"npuprof analyze capture --fail-on error --fail-on COMM_EXPOSED --json > report.json",
	NULL,
};

const struct np_cmd np_cmd_analyze = {
	.name = "analyze",
	.summary = "tell what one rank does with its time, and what to change",
	.words = "PATH",
	.min_words = 1,
	.max_words = 1,
	.detail =
		"Layers: health of the steps, stages, kinds of work, idle time and communication, "
		"operators,\n"
		"advice. Priorities: error is P0, warning P1, info P2. Exit status: 0 done, 1 a "
		"finding of\n"
		"--fail-on came, 2 usage or no such rank or step, 4 the input could not be read or "
		"has no kernels.",
	.examples = examples,
	.options = options,
	.n_options = sizeof options / sizeof *options,
	.options_size = sizeof(struct options),
	.run = run,
};
