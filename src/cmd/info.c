#include "capture/describe.h"
#include "cmd/progress.h"

static enum np_status describe(const struct np_call *call, struct np_report *report,
                               struct np_err *err)
{
	struct np_captures *all = NULL;
	NP_TRY(np_discover(call->argv[0], &all, err));
	np_report_input(report, call->argv[0]);
	struct np_progress_line *line = np_progress_show(call->common);
	enum np_status status =
		np_describe(all, (unsigned)call->common->jobs, np_progress_of(line), report, err);
	np_progress_hide(line);
	np_captures_free(all);
	return status;
}

static int run(const struct np_call *call)
{
	return np_cmd_run_report(call, describe);
}

static const char *const examples[] = {
	"npuprof info cluster_root",
	"npuprof info prof.tar.gz --json",
	"npuprof info cluster_root --format csv --table captures",
	NULL,
};

const struct np_cmd np_cmd_info = {
	.name = "info",
	.summary = "tell what is here: captures, ranks, formats, configuration, what is missing",
	.words = "PATH",
	.min_words = 1,
	.max_words = 1,
	.detail = "PATH is a directory of captures, one capture, one deliverable, or a tar or zip "
		  "of them.\n"
		  "Nothing is written into it. Exit status: 0 done, 2 no such path or no capture "
		  "in it,\n"
		  "4 something could not be read (the rest is still told).",
	.examples = examples,
	.options_size = 1,
	.run = run,
};
