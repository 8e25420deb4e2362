#include <string.h>

#include "analysis/analysis.h"
#include "capture/describe.h"
#include "cmd/progress.h"
#include "gate/gate.h"

enum {
	BUCKETS = 600,                /* of the timeline's picture */
	PASTE_ROWS = 10,              /* of each table in md */
	CLUSTER_PAGE_BYTES = 3000000, /* of html for more than one rank; else the writer's own */
};

struct options {
	const char *rank, *profile;
	uint64_t top;
};

#define AT(field) offsetof(struct options, field)

static const struct np_option options[] = {
	{"rank", 0, NP_OPT_STRING, AT(rank), "N",
         "analyse this rank (default: the first with data)"},
	{"profile", 0, NP_OPT_STRING, AT(profile), "WHAT",
         "judge as kernel, framework or cluster (default: kernel)"},
	{"top", 0, NP_OPT_UINT, AT(top), "N", "rows of long tables (default: 100; md: 20)"},
};

/* The rank to analyse; NULL when none has data, or none is that of --rank. */
static const struct np_capture *choose(const struct np_captures *all, const char *wish,
                                       size_t *with_data)
{
	const struct np_capture *chosen = NULL;
	int64_t rank = 0;
	bool any = !wish || !np_str_to_i64(np_str_of(wish), &rank);
	*with_data = 0;
	for (size_t i = 0; i < all->captures.n; i++) {
		const struct np_capture *capture = all->captures.v[i];
		if (!np_capture_has_data(capture))
			continue;
		++*with_data;
		if (!chosen && (any || capture->rank == rank))
			chosen = capture;
	}
	return chosen;
}

static bool is_page(const struct np_call *call)
{
	const char *format = call->common->format;
	return !call->common->json && (!format || strcmp(format, "html") == 0);
}

/* A rank that cannot be analysed is a note; the rest of the report stands. */
static enum np_status analyse(const struct np_call *call, const struct np_captures *all,
                              struct np_progress *progress, struct np_report *report,
                              struct np_err *err)
{
	const struct options *own = call->options;
	size_t with_data = 0;
	const struct np_capture *capture = choose(all, own->rank, &with_data);
	struct np_analyze_options how = {.top = own->top        ? (unsigned)own->top
	                                        : is_page(call) ? 100
	                                                        : 0,
	                                 .threads = (unsigned)call->common->jobs,
	                                 .buckets = is_page(call) ? BUCKETS : 0,
	                                 .progress = progress};
	if (!capture && own->rank)
		return np_err_set(
			err, NP_E_NOTFOUND, all->input,
			"no capture of rank %s with data (npuprof info tells what is there)",
			own->rank);
	if (!capture) {
		np_report_note(report, "no capture with data: nothing was analysed");
		return NP_OK;
	}
	np_report_input(report, capture->path);
	if (with_data > 1 && !own->rank)
		np_report_note(
			report,
			"the first of %zu captures with data was analysed; --rank chooses another",
			with_data);
	struct np_err why = {0};
	enum np_status status = np_analyze(capture, &how, report, &why);
	if (status == NP_E_NOMEM)
		return np_err_nomem(err);
	if (status != NP_OK)
		np_report_note(report, "%s was not analysed: %s", capture->name, why.msg);
	return NP_OK;
}

static enum np_status judge(const struct np_call *call, const struct np_captures *all,
                            struct np_progress *progress, struct np_report *report,
                            struct np_err *err)
{
	const struct options *own = call->options;
	struct np_gate_options gate = {
		.any_age = true, .threads = (unsigned)call->common->jobs, .progress = progress};
	if (own->profile && !np_gate_profile_parse(own->profile, &gate.profile))
		return np_err_set(err, NP_E_USAGE, NULL,
		                  "unknown profile '%s': use kernel, framework or cluster",
		                  own->profile);
	return np_gate_run(all, &gate, report, err);
}

static enum np_status report_all(const struct np_call *call, struct np_report *report,
                                 size_t *n_captures, struct np_err *err)
{
	const struct options *own = call->options;
	struct np_captures *all = NULL;
	int64_t rank;
	if (is_page(call) && !call->common->output)
		return np_err_set(err, NP_E_USAGE, NULL, "a page wants a file: -o report.html");
	if (own->rank && !np_str_to_i64(np_str_of(own->rank), &rank))
		return np_err_set(err, NP_E_USAGE, NULL, "--rank wants a number, got '%s'",
		                  own->rank);
	NP_TRY(np_discover(call->argv[0], &all, err));
	np_report_input(report, call->argv[0]);
	*n_captures = all->captures.n;
	struct np_progress_line *line = np_progress_show(call->common);
	struct np_progress *progress = np_progress_of(line);
	unsigned threads = (unsigned)call->common->jobs;
	enum np_status status = analyse(call, all, progress, report, err);
	if (status == NP_OK)
		status = judge(call, all, progress, report, err);
	report->exit_code = 0; /* a report tells the verdict, it does not act by it */
	if (status == NP_OK)
		status = np_describe(all, threads, progress, report, err);
	np_report_unite_findings(report);
	np_progress_hide(line);
	np_captures_free(all);
	return status;
}

static int run(const struct np_call *call)
{
	struct np_err err = {0};
	struct np_report *report = np_report_new("report");
	int exit_code = NP_EXIT_INPUT;
	size_t n_captures = 0;
	if (!report)
		(void)np_err_nomem(&err);
	if (!report || report_all(call, report, &n_captures, &err) != NP_OK) {
		exit_code = np_cmd_fail(&err);
	} else {
		struct np_finish how = {.format = "html", .max_rows = PASTE_ROWS};
		how.max_bytes = n_captures > 1 ? CLUSTER_PAGE_BYTES : 0;
		exit_code = np_cmd_finish_as(call, report, &how);
	}
	np_report_free(report);
	return exit_code;
}

static const char *const examples[] = {
	"npuprof report cluster_root --rank 3 -o report.html",
	"npuprof report prof.tar.gz --lang zh -o report.html",
	"npuprof report cluster_root --format md | head -c 60000",
	NULL,
};

const struct np_cmd np_cmd_report = {
	.name = "report",
	.summary = "everything about a capture as one page to open or to send",
	.words = "PATH",
	.min_words = 1,
	.max_words = 1,
	.detail = "The analysis of one rank, the verdict of the gate (without freshness), and what "
		  "is there, as\n"
		  "one HTML file of at most 1 MB (3 MB for several ranks) that loads nothing from "
		  "anywhere.\n"
		  "--format md gives a short text to paste. Exit status: 0 done, 2 no such path or "
		  "no capture\n"
		  "in it, 4 something could not be read (the rest is still told).",
	.examples = examples,
	.options = options,
	.n_options = sizeof options / sizeof *options,
	.options_size = sizeof(struct options),
	.run = run,
};
