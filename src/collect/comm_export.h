/*
 * All records of a set of logs in order of time, one row each, as they are: exact numbers,
 * nothing summed. The columns are documented in docs/formats/comm_log.md.
 *
 *   log ─┐
 *   log ─┼─ heap: the earliest record of all ─▶ filter ─▶ row
 *   log ─┘
 *
 * Memory: one record per log. Within a log the order is that of the records, so a clock that
 * was set back shows.
 */
#ifndef NP_COLLECT_COMM_EXPORT_H
#define NP_COLLECT_COMM_EXPORT_H

#include <stdio.h>

#include "collect/comm_sum.h"

enum np_clog_format {
	NP_COMM_JSONL, /* an object per line; what is unknown is null, a hash is a string */
	NP_COMM_CSV,   /* RFC 4180, with a heading; what is unknown is empty */
};

struct np_clog_exported {
	uint64_t rows;
	size_t unreadable;         /* logs; the others are exported */
	const char *first_problem; /* "path: why", in the arena of `found`; NULL */
};

/* Filters of the options hold; NP_COMM_SHOW_AUTO means both layers. Errors: E_IO (writing),
 * E_NOMEM. */
enum np_status np_clog_export(struct np_clog_found *found, const struct np_clog_options *options,
                              enum np_clog_format format, FILE *out,
                              struct np_clog_exported *result, struct np_err *err);

#endif
