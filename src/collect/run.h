/*
 * `npuprof run`: start a command with the profiler injected, nothing changed in its tree;
 * then find what was recorded, export it, and judge it.
 *
 *   options ─▶ run directory ─▶ pre-check ─▶ command ─▶ events ─▶ dumps ─▶ export ─▶ gate ─▶ report
 *               (docs/formats/inject.md)      (spawn.h)  (events.h)  (dumps.h)
 *
 * The start marker is written before the command starts, on the file system that gets the
 * products (R52, R53). "Done", "OK" and exit status 0 are never evidence: only new files with
 * rows are (R34, R35).
 *
 * Exit status in the report: 0 the command succeeded and the gate passed; 1 the command
 * failed, a target was not reached, the export failed, or the gate failed; 2 the pre-check
 * failed; 3 nothing failed, but it is not judged (only a raw dump, --no-export, --no-check, or
 * the gate cannot tell).
 */
#ifndef NP_COLLECT_RUN_H
#define NP_COLLECT_RUN_H

#include "base/progress.h"
#include "report/report.h"

struct np_run_options {
	const char *out;  /* parent of run directories; NULL: npuprof-runs */
	const char *name; /* NULL: the preset's, or that of the script */
	const char *preset;
	const char *const *targets; /* module:qualname */
	size_t n_targets;
	const char *const *stages; /* name=module:qualname */
	size_t n_stages;
	const char *step_anchor;    /* a stage's name; NULL: the first */
	const char *request_anchor; /* a stage's name; NULL: one that is called "request" */
	const char *call;           /* number of the profiled call, from 1; NULL: warm-up + 1 */
	const char *warmup;         /* a number; NULL: the preset's, else 5; 10 with compile (R6) */
	const char *active;         /* a number from 1 on; NULL: 1 */
	const char *ranks;          /* "0", "all", "0,2,4-7"; NULL: 0 (R7) */
	const char *level, *aic_metrics, *phase, *export_type; /* NULL: Level1, PipeUtilization,
	                                                        * both, text (R20) */
	bool compile, with_stack, no_shapes, with_memory, collectives;
	const char *watch; /* the command records by itself, below this directory */
	const char *pre_check, *python, *profile;
	bool no_export, no_check, stop_after_capture;
	double timeout_s, export_timeout_s; /* 0: none; 1800 */
	double grace_s;                     /* 0: 30 */
	char *const *command;               /* NULL-terminated */
	int out_fd, err_fd;                 /* where the command's output goes on to; -1 */
	void (*say)(const char *line);      /* talk while it runs; NULL: silence */
	unsigned threads;
	struct np_progress *progress;
};

/* Errors: E_USAGE (the options), E_NOTFOUND (no such command, no such directory), E_ACCESS, E_IO
 * (the run directory cannot be written), E_NOMEM. All else is in the report. */
enum np_status np_run(const struct np_run_options *options, struct np_report *report,
                      struct np_err *err);

/*
 * Export and judge the directory of an earlier run: one whose launcher was killed, or that
 * could not be exported where it was made. Of the options count python, profile, no_export,
 * no_check, export_timeout_s, threads. E_NOTFOUND: no run.json; E_USAGE: it still runs.
 */
enum np_status np_run_finish(const char *dir, const struct np_run_options *options,
                             struct np_report *report, struct np_err *err);

/* The table of presets. */
void np_run_list_presets(struct np_report *report);

#endif
