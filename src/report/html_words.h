/*
 * The words of the page itself: X(key, English). The script asks for them by
 * key; {0} and {1} are what it puts in.
 */
#ifndef NP_REPORT_HTML_WORDS_H
#define NP_REPORT_HTML_WORDS_H

#include "report/lang.h"

#define NP_HTML_WORDS(X)                                                    \
	X("PASS", NP_N("PASS"))                                             \
	X("FAIL", NP_N("FAIL"))                                             \
	X("UNKNOWN", NP_N("UNKNOWN"))                                       \
	X("error", NP_N("error"))                                           \
	X("warning", NP_N("warning"))                                       \
	X("info", NP_N("info"))                                             \
	X("yes", NP_N("yes"))                                               \
	X("no", NP_N("no"))                                                 \
	X("verdict", NP_N("Verdict"))                                       \
	X("contents", NP_N("Contents"))                                     \
	X("charts", NP_N("Overview"))                                       \
	X("findings", NP_N("Findings"))                                     \
	X("no_findings", NP_N("Nothing was found that should be changed"))  \
	X("notes", NP_N("Notes"))                                           \
	X("evidence", NP_N("Evidence"))                                     \
	X("impact", NP_N("Impact, at most:"))                               \
	X("of_step", NP_N("{0} of the step"))                               \
	X("advice", NP_N("Advice:"))                                        \
	X("copy", NP_N("Copy"))                                             \
	X("copied", NP_N("Copied"))                                         \
	X("more", NP_N("… {0} more"))                                       \
	X("filter", NP_N("Filter rows"))                                    \
	X("rows", NP_N("Rows: {0}"))                                        \
	X("rows_of", NP_N("Rows: {0} of {1}"))                              \
	X("left_out", NP_N("{0} more are left out to keep the page small")) \
	X("page", NP_N("Page {0} of {1}"))                                  \
	X("previous", NP_N("Previous"))                                     \
	X("next", NP_N("Next"))                                             \
	X("step", NP_N("Step"))                                             \
	X("computing", NP_N("Computing"))                                   \
	X("comm_not_overlapped", NP_N("Communication, not overlapped"))     \
	X("free", NP_N("Free"))                                             \
	X("chart_timeline", NP_N("The whole capture"))                      \
	X("chart_steps", NP_N("Where each step went"))                      \
	X("chart_classes", NP_N("Kernel time by class"))                    \
	X("chart_ops", NP_N("Operator types with the most kernel time"))    \
	X("chart_idle", NP_N("Why the device was idle"))

#endif
