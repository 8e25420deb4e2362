/*
 * The gate: is this capture usable? Fail-closed, with three verdicts.
 *
 * The six checks of the field's check_output.py come first, in its order and
 * with its meaning (requirements R44–R52, §2.1); then what it never looked at.
 * Every check has a verdict of its own: PASS, FAIL, or UNKNOWN when nothing
 * failed but something cannot be judged. Any FAIL fails the whole (exit 1), else
 * any UNKNOWN leaves it open (exit 3); 3 is not 0.
 */
#ifndef NP_GATE_GATE_H
#define NP_GATE_GATE_H

#include "base/progress.h"
#include "capture/capture.h"
#include "report/report.h"

/* What the capture is for (requirements §6.4). */
enum np_gate_profile {
	NP_GATE_KERNEL,    /* judging kernels: order and unit utilisation */
	NP_GATE_FRAMEWORK, /* one framework run, all of torch_npu's deliverables (R61, R69) */
	NP_GATE_CLUSTER,   /* analysis across ranks: steps and communication of every rank */
	NP_GATE_N_PROFILES,
};

const char *np_gate_profile_name(enum np_gate_profile profile); /* "kernel", … */
bool np_gate_profile_parse(const char *name, enum np_gate_profile *out);

struct np_gate_options {
	enum np_gate_profile profile;
	const char *start_marker;     /* a file whose mtime is the start; NULL: none */
	bool has_start_epoch;         /* wins over the marker */
	double start_epoch;           /* seconds */
	double tolerance_seconds;     /* files may be this much older than the start */
	bool any_age;                 /* leave out the checks of freshness */
	bool some_ranks;              /* only some were recorded, by wish: none is missing (R7) */
	unsigned threads;             /* 0: all processors */
	struct np_progress *progress; /* or NULL */
};

/*
 * Run all checks of the profile: one row per check in the table `checks`,
 * findings with the command that repairs, verdict and exit_code of the report.
 * E_NOMEM only; anything wrong with the input is a verdict.
 */
enum np_status np_gate_run(const struct np_captures *all, const struct np_gate_options *options,
                           struct np_report *report, struct np_err *err);

/*
 * Make fixtures in a temporary directory, run the gate on each and compare with
 * the answers known for them: table `selftest`, verdict PASS or FAIL. E_IO when
 * the fixtures cannot be written.
 */
enum np_status np_gate_selftest(struct np_report *report, struct np_err *err);

#endif
