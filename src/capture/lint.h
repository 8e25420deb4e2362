/*
 * The linter of a tree of captures: is this one complete batch that may be
 * analysed together? Requirements R86–R91, R102, R119; field_reports A14, A26, A48.
 *
 * Captures are judged in sets: those below one parent, and all parents together
 * when no rank is in two of them (one directory per host). Roles such as
 * actor/ and rollout/ each have their own ranks and stay apart.
 */
#ifndef NP_CAPTURE_LINT_H
#define NP_CAPTURE_LINT_H

#include "capture/capture.h"
#include "capture/summary.h"
#include "report/report.h"

/* Add a finding for each thing wrong. `summaries` may be NULL: then spans, steps
 * and idle ranks are not looked at. Returns how many errors about sets of ranks were added. */
size_t np_lint(const struct np_captures *all, const struct np_summary *summaries,
               struct np_report *report);

/* The problems that discovery met (unreadable, loops, contradictions) as findings. */
void np_lint_problems(const struct np_captures *all, struct np_report *report);

/* How grave a problem of discovery or a diagnostic of a reader is. */
enum np_severity np_lint_severity(const char *code);

/* What readers repaired or dropped, as findings, one per code and file; told once. */
void np_lint_profile(const struct np_profile *profile, struct np_report *report);
void np_lint_diags(const struct np_summary *summaries, size_t n, struct np_report *report);

/* The command that makes deliverables from a raw dump (R37); in the report's arena. */
const char *np_reanalyse_command(struct np_report *report, const struct np_capture *capture);

#endif
