/*
 * The table of analyses, and running them.
 */
#include "analysis/analysis.h"

static const struct {
	const char *id, *what;
	np_analysis_fn *run;
} analyses[] = {
	{"steps", "steps", np_analyze_steps},
	{"idle", "idle time by cause", np_analyze_idle},
	{"launch", "launch delays", np_analyze_launch},
	{"queue", "queue depth, who bounds the device", np_analyze_queue},
};

enum { N_ANALYSES = sizeof analyses / sizeof *analyses };

enum np_status np_analyze(const struct np_capture *capture,
                          const struct np_analyze_options *options, struct np_report *report,
                          struct np_err *err)
{
	struct np_analysis self;
	enum np_status status = np_analysis_prepare(&self, capture, options, report, 0, err);
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
