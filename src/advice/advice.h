/*
 * The expert: what to change in a capture or a whole cluster, and what it is worth.
 *
 *   captures ──▶ cluster (two ranks or more) ──▶ slow rank, slow link, diagnosis
 *        └──▶ for each dimension the rank and step worth looking at ──▶ its checkers
 *                                                                         │
 *                               report: findings by gain, `problems`, one table per checker
 *
 * A checker is one small file and one line in checkers.c. Conditions are those of
 * cluster_and_advisor.md §3, thresholds are rules (rules.h).
 */
#ifndef NP_ADVICE_ADVICE_H
#define NP_ADVICE_ADVICE_H

#include "base/progress.h"
#include "capture/capture.h"
#include "report/report.h"

enum np_dimension {
	NP_DIM_OVERALL,
	NP_DIM_CLUSTER,
	NP_DIM_COMPUTATION,
	NP_DIM_SCHEDULE,
	NP_DIM_COMMUNICATION,
	NP_DIM_MEMORY,
	NP_DIM_COMPARISON,
	NP_N_DIMENSIONS,
};

struct np_advise_options {
	unsigned dimensions;            /* bits 1 << enum np_dimension; 0: all */
	const char *rules_file;         /* or NULL */
	const struct np_captures *base; /* --bp: what to compare with, or NULL */
	bool has_rank, has_step;
	int64_t rank, step; /* look at these instead of the worst */
	bool force, no_cache;
	unsigned threads;
	struct np_progress *progress;
};

/*
 * Everything into `report`: findings by what they are worth, a table `problems` (the official
 * overview), and a table per checker that found something. Exit code 0, or 3 where a checker
 * could not judge. Errors: E_EMPTY (no capture with data), those of the rules, E_NOMEM.
 */
enum np_status np_advise(const struct np_captures *all, const struct np_advise_options *options,
                         struct np_report *report, struct np_err *err);

/* "computation" → its bit; "all" → all of them; 0: no such dimension. */
unsigned np_dimension_parse(const char *name);

/* The rules as a table, with what the file changes. */
enum np_status np_advise_list_rules(const char *rules_file, struct np_report *report,
                                    struct np_err *err);

/* Sheets of the workbook: the table `problems` first, then each checker's, named as the
 * official tool names them (zh: its Chinese names). Written atomically. */
enum np_status np_advise_xlsx(const struct np_report *report, bool zh, const char *path,
                              struct np_err *err);

/*
 * {"tune_ops_name": ["MatMulV3_1", …]}, as `aoe --tune_ops_file` wants it: of the tables of block
 * dim and of no bound the ten longest names each. false: there is nothing to tune.
 * out->failed says whether memory was enough.
 */
bool np_advise_tuning(const struct np_report *report, struct np_buf *out);

#endif
