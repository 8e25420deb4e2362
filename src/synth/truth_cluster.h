/*
 * What truth.json says of a layout besides its ranks, all of true time:
 *
 *   "run":    {"first_ns", "end_ns", "step_ns"}           step_ns: the mean
 *   "costs":  [one per fault, in their order: {"fault", "rank" | "host" | "stage" | "link",
 *              "step_cost_ns", "late_ns", "late_more_ns", "carried_ns", "wait_ns",
 *              "transfer_ns"}]
 *   "hosts":  [{"host", "name", "offset_ns", "drift_ppb"}]
 *   "groups": [{"name", "hash", "label", "ranks": [first, stride, count],
 *               "kind", "step", "last_rank", "late_ns", "wait_ns", "transfer_ns": [one per
 *               collective, in order]}]
 *
 * The costs come from running the same cluster again without that one fault, and are means
 * per step: step_cost_ns is what the whole run would save; late_ns is the time by which
 * ranks with the fault came last to collectives, after the second last, and late_more_ns how
 * much more that is than without it; carried_ns is the late time in groups none of whose
 * ranks has the fault, as far as it was less without it. Sends and receives do not count for
 * these: one of the two always waits for the other in a pipeline. wait_ns and transfer_ns
 * are sums over everything, more than without.
 */
#ifndef NP_SYNTH_TRUTH_CLUSTER_H
#define NP_SYNTH_TRUTH_CLUSTER_H

#include "synth/write.h"

/* Errors: E_NOMEM. */
enum np_status np_synth_truth_cluster(struct np_out *out, const struct np_synth_plan *plan,
                                      struct np_err *err);

#endif
