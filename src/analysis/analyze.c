/*
 * The table of analyses, and running them.
 */
#include "analysis/analysis.h"

static const struct {
	const char *id, *what;
	np_analysis_fn *run;
} analyses[] = {
	{"warmup", "warm-up and health of the steps", np_analyze_warmup},
	{"steps", "steps", np_analyze_steps},
	{"step_trace", "the exporter's own step times", np_analyze_step_trace},
	{"stages", "stages", np_analyze_stages},
	{"classes", "kinds of work", np_analyze_classes},
	{"idle", "idle time by cause", np_analyze_idle},
	{"queue", "queue depth, who bounds the device", np_analyze_queue},
	{"launch", "launch delays", np_analyze_launch},
	{"overlap", "communication hidden or exposed", np_analyze_overlap},
	{"bound", "what limits the operators", np_analyze_bound},
	{"fusion", "kernels to fuse", np_analyze_fusion},
	{"operators", "operators", np_analyze_operators},
	{"outliers", "kernels that took too long", np_analyze_outliers},
	{"aicpu", "AI CPU", np_analyze_aicpu},
	{"frequency", "frequency", np_analyze_frequency},
	{"shapes", "input shapes", np_analyze_shapes},
	{"thumbnail", "timeline thumbnail", np_analyze_thumbnail},
	{"advice", "what to do", np_analyze_advice}, /* the last: it ranks what is told */
};

enum { N_ANALYSES = sizeof analyses / sizeof *analyses };

enum np_status np_analyze(const struct np_capture *capture,
                          const struct np_analyze_options *options, struct np_report *report,
                          struct np_err *err)
{
	struct np_analysis self;
	enum np_status status = np_analysis_prepare(&self, capture, options, report, 0, err);
	/* stages are told by what launched the kernels, so the links come first */
	if (status == NP_OK && !np_links_build(&self))
		status = np_err_nomem(err);
	np_progress_begin(options->progress, "analysing", N_ANALYSES);
	for (size_t i = 0; status == NP_OK && i < N_ANALYSES; i++) {
		analyses[i].run(&self);
		np_progress_step(options->progress);
		if (self.oom)
			status = np_err_nomem(err);
	}
	np_analysis_release(&self);
	return status == NP_OK ? np_report_ok(report, err) : status;
}
