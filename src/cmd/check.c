#include <stdio.h>

#include "cmd/progress.h"
#include "gate/gate.h"

struct options {
	const char *dir, *marker, *epoch, *profile;
	double tolerance;
	bool selftest;
};

#define AT(field) offsetof(struct options, field)

static const struct np_option options[] = {
	{"dir", 'd', NP_OPT_STRING, AT(dir), "PATH",
         "the capture or cluster root (instead of PATH)"},
	{"profile", 0, NP_OPT_STRING, AT(profile), "WHAT",
         "kernel, framework or cluster (default: kernel)"},
	{"start-marker", 0, NP_OPT_STRING, AT(marker), "FILE",
         "its mtime is the start of the capture"},
	{"start-epoch", 0, NP_OPT_STRING, AT(epoch), "SECONDS",
         "start of the capture; wins over the marker"},
	{"freshness-tolerance", 0, NP_OPT_DOUBLE, AT(tolerance), "SECONDS",
         "how much older than the start a file may be (default: 0)"},
	{"selftest", 0, NP_OPT_FLAG, AT(selftest), NULL, "judge fixtures with known answers"},
};

static enum np_status gate_options(const struct np_call *call, struct np_gate_options *out,
                                   struct np_err *err)
{
	const struct options *own = call->options;
	*out = (struct np_gate_options){.start_marker = own->marker,
	                                .tolerance_seconds = own->tolerance,
	                                .threads = (unsigned)call->common->jobs};
	if (own->profile && !np_gate_profile_parse(own->profile, &out->profile))
		return np_err_set(err, NP_E_USAGE, NULL,
		                  "unknown profile '%s': use kernel, framework or cluster",
		                  own->profile);
	if (own->epoch) {
		out->has_start_epoch = true;
		if (!np_str_to_double(np_str_of(own->epoch), &out->start_epoch))
			return np_err_set(err, NP_E_USAGE, NULL,
			                  "--start-epoch wants seconds, got '%s'", own->epoch);
	}
	return NP_OK;
}

static enum np_status judge_path(const struct np_call *call, struct np_report *report,
                                 struct np_err *err)
{
	const struct options *own = call->options;
	const char *path = own->dir ? own->dir : call->argc ? call->argv[0] : NULL;
	if (!path)
		return np_err_set(err, NP_E_USAGE, NULL, "no PATH was given (npuprof help check)");
	struct np_gate_options gate;
	NP_TRY(gate_options(call, &gate, err));
	struct np_captures *all = NULL;
	NP_TRY(np_discover(path, &all, err));
	np_report_input(report, path);
	struct np_progress_line *line = np_progress_show(call->common);
	gate.progress = np_progress_of(line);
	enum np_status status = np_gate_run(all, &gate, report, err);
	np_progress_hide(line);
	np_captures_free(all);
	return status;
}

static enum np_status judge(const struct np_call *call, struct np_report *report,
                            struct np_err *err)
{
	const struct options *own = call->options;
	NP_TRY(own->selftest ? np_gate_selftest(report, err) : judge_path(call, report, err));
	if (call->common->json)
		np_cmd_talk(call, report);
	return NP_OK;
}

static int run(const struct np_call *call)
{
	return np_cmd_run_report(call, judge);
}

static const char *const examples[] = {
	"touch .start; python3 train.py; npuprof check prof_out --start-marker .start",
	"npuprof check prof_out --profile cluster --json > verdict.json",
	NULL,
};

const struct np_cmd np_cmd_check = {
	.name = "check",
	.summary = "judge whether a capture is usable, fail-closed",
	.words = "PATH",
	.max_words = 1,
	.detail =
		"Sixteen checks, each PASS, FAIL or UNKNOWN with its evidence. Exit status: 0 all "
		"passed,\n"
		"1 a check failed, 2 no such path, 3 nothing failed but something cannot be "
		"judged,\n"
		"4 the input could not be read. Every failure prints the command that repairs it.",
	.examples = examples,
	.options = options,
	.n_options = sizeof options / sizeof *options,
	.options_size = sizeof(struct options),
	.run = run,
};
