/*
 * Inside the gate: the facts that checks look at, and how they answer.
 * Facts are gathered once; a check is a pure function of them.
 */
#ifndef NP_GATE_CONTEXT_H
#define NP_GATE_CONTEXT_H

#include "capture/kernel_header.h"
#include "capture/summary.h"
#include "gate/gate.h"

/* Unit ratios are sampled in this many judged rows (R47, §2.1 check 4). */
enum { NP_GATE_SAMPLE_ROWS = 200, NP_GATE_NAMES_SHOWN = 5 };

/* One CSV file of the captures. */
struct np_csv_facts {
	const struct np_capture *capture;
	const struct np_file *file;
	enum np_status status; /* of opening it and reading its header */
	struct np_err err;
	struct np_kernel_header header;
	bool is_kernel_table; /* kernel_details*.csv or op_summary*.csv */
	bool has_rows;
	size_t sampled;        /* judged rows looked at */
	size_t sampled_valued; /* with at least one unit ratio that is not N/A */
};

/* One trace_view or msprof_*.json. */
struct np_trace_facts {
	const struct np_capture *capture;
	const struct np_file *file;
	enum np_status status;
	struct np_err err;
	struct np_json_repairs repairs;
	uint64_t events;
};

struct np_gate {
	const struct np_captures *all;
	const struct np_gate_options *options;
	struct np_report
		*report; /* where findings go; a scratch one when only the verdict counts */
	NP_VEC(struct np_csv_facts) csv;
	NP_VEC(struct np_trace_facts) traces;
	struct np_summary *summaries; /* one per capture */
	bool start_known;
	np_ns start_ns;
	char start_reason[512]; /* why it is not known, or where it comes from */
	bool run_failed;        /* a log says that a parser failed; the check of the logs sets it */
	bool oom;
};

/* The answer of one check. */
struct np_check_result {
	struct np_gate *gate;
	enum np_verdict verdict;
	struct np_buf message;
	size_t told; /* messages so far; beyond NP_GATE_NAMES_SHOWN they are counted only */
	size_t untold;
};

/* Add a message and raise the verdict: PASS < UNKNOWN < FAIL. */
void np_check_pass(struct np_check_result *self, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void np_check_unknown(struct np_check_result *self, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void np_check_fail(struct np_check_result *self, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Does this capture count, i.e. is it a rank and not a result directory? */
bool np_gate_counts(const struct np_capture *capture);
/* "rank 3" or the directory's name; in the report's arena. */
const char *np_gate_label(struct np_gate *gate, const struct np_capture *capture);
/* A finding with the command that exports again, or NULL when this code was told of
 * this file already: several checks may meet one defect. */
struct np_finding *np_gate_finding(struct np_gate *gate, const char *code, const char *file,
                                   const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/* Are there step times that the exporter made from device data? (That the host called
 * prof.step() says nothing about the device.) */
bool np_gate_step_rows(const struct np_summary *sum);
/* A database is the only kernel table of this capture. */
bool np_gate_db_only(const struct np_capture *capture);
/* "rank 3: kernel_details.csv": which capture, and where in it, for messages. */
const char *np_gate_short_path(struct np_gate *gate, const char *path);

/* Its JSON ends midway. */
bool np_gate_trace_is_cut(const struct np_trace_facts *trace);
/* DELIVERABLE_MISSING, one finding for all captures without this file. why: NP_N() text. */
void np_gate_tell_missing(struct np_gate *gate, const struct np_capture *capture, enum np_role role,
                          const char *why);
/* OUTPUT_FS_SUSPECT where the three signs of R62 meet; after the checks. */
void np_gate_tell_output_fs(struct np_gate *gate);

/* The checks; see the table in gate.c for titles and profiles. */
typedef void np_check_fn(struct np_gate *gate, struct np_check_result *out);
np_check_fn np_check_artefacts, np_check_order, np_check_units, np_check_values, np_check_rows,
	np_check_freshness;
np_check_fn np_check_trace, np_check_header, np_check_ranks, np_check_plausible, np_check_steps,
	np_check_logs, np_check_provenance, np_check_all_fresh, np_check_framework_files,
	np_check_communication;

/* Gathering (facts.c). */
enum np_status np_gate_gather(struct np_gate *gate, struct np_err *err);
void np_gate_release(struct np_gate *gate);

#endif
