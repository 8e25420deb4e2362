/*
 * What a sum of collective logs says: tables and findings of a report.
 *
 * Sizes are of one rank, the mean of those that make the call, unless a table says that it
 * is all ranks together; moved~ is an estimate of R27, bus~ what bus bandwidth is computed
 * from (torch_npu.md §7.6): two different numbers.
 */
#ifndef NP_COLLECT_COMM_TELL_H
#define NP_COLLECT_COMM_TELL_H

#include "collect/comm_sum.h"
#include "report/lang.h"
#include "report/report.h"

/* Tables stages, collectives, sizes, groups, requests, steps, timeline, layers, ranks: those
 * that there is something for. E_NOMEM. */
enum np_status np_clog_tell(const struct np_clog_sum *sum, struct np_report *report,
                            struct np_err *err);

/* Findings, notes and exit_code: 4 when a log could not be read, else 0. E_NOMEM. */
enum np_status np_clog_judge(const struct np_clog_sum *sum, const struct np_clog_found *found,
                             struct np_report *report, struct np_err *err);

/* ── inside ── */

/* Sums of cells that have one key. */
struct np_clog_row {
	struct np_key key;
	struct np_clog_cell sum;
	uint64_t moved, bus;
	uint32_t processes, groups; /* how many different ones */
	bool estimated, derived;    /* moved: for some; by our own formula for some */
	bool has_bus;
};

struct np_clog_rows {
	struct np_keys keys, processes, groups;
	NP_VEC(struct np_clog_row) v;
};

/* Add a cell under a key; false: out of memory. */
bool np_clog_rows_add(struct np_clog_rows *self, const struct np_clog_sum *sum,
                      const struct np_key *key, const struct np_clog_cell *cell);
/* By bytes, then calls, largest first, then by key. */
void np_clog_rows_sort(struct np_clog_rows *self);
void np_clog_rows_release(struct np_clog_rows *self);

/* Operations that are one on the device: all_gather, all_gather_v and all_gather_object. The
 * id of the plain one. */
uint8_t np_clog_family(uint8_t op);

/* Why two layers may differ in a family; "" nothing known. Flags and dtypes of the torch
 * side: or-ed flags, `cast` when uint8 or bool were reduced, `barriers` when some were. */
const char *np_clog_why(uint8_t family, unsigned flags, bool cast, bool barriers, bool more_below);

#endif
